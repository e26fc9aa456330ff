"""Find the questions of CBBQ that are about one scene.

A scene is an ambiguous context. Several templates ask about it: with a negative and a non-negative
question, and again in a disambiguous context that begins with it. Answers to all of these are
alike, so we resample scenes for an interval.
"""

import re
from collections.abc import Hashable
from typing import Any

import pandas as pd

# The end of a sentence, in Chinese and other languages.
SENTENCE = re.compile(r"[。！？\n]|[.!?](?=\s|$)")
# The mark for a name; both people have the same one, whichever is mentioned first.
NAME = "＿"


def scenes(items: pd.DataFrame) -> pd.Series:
    """Name the scene of each item, within its category.

    A disambiguous context belongs to the ambiguous context with which it begins. If there is none,
    it belongs to an ambiguous context with the same first sentence, else to a scene of its own.

    Args:
        items: as `bench.data.frame` makes them of `bench.benchmarks.cbbq.items.Question`.
    """
    columns = ["cluster", "category", "condition", "context", "name1", "name2", "ans0", "ans1"]
    templates = items.drop_duplicates("cluster").reindex(columns=columns, fill_value="")
    # Python objects, because reading these is many times faster than reading Arrow's texts.
    rows: list[dict[Hashable, Any]] = templates.astype(object).to_dict("records")
    ambiguous: dict[str, list[str]] = {}
    for row in rows:
        # The names of the options if a file does not have the names.
        names = (row["name1"], row["name2"])
        names = names if all(names) else (row["ans0"], row["ans1"])
        for name in sorted(filter(None, names), key=len, reverse=True):
            row["context"] = row["context"].replace(name, NAME)
        row["context"] = row["context"].strip()
        if row["condition"] == "ambiguous":
            ambiguous.setdefault(row["category"], []).append(row["context"])
    scene_of = {}
    for row in rows:
        scene = row["context"]
        category = row["category"]
        if row["condition"] != "ambiguous":
            contexts = ambiguous.get(category, [])
            first = SENTENCE.split(scene, maxsplit=1)[0]
            same = (text for text in contexts if SENTENCE.split(text, maxsplit=1)[0] == first)
            begins = [text for text in contexts if scene.startswith(text)]
            scene = max(begins, key=len) if begins else next(same, first)
        scene_of[row["cluster"]] = f"{category}:{scene}"
    return items.cluster.map(scene_of)
