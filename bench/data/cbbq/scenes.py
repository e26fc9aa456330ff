"""Tell which of CBBQ's questions are about one scene.

A scene is an ambiguous context. It is asked about in several templates: by a negative and a
non-negative question, and again with facts that decide, in a disambiguous context that begins with
it. Answers to all of these are alike, so a scene is what is drawn again for an interval.
"""

import re

import pandas as pd

# The end of a sentence, in Chinese and other languages.
SENTENCE = re.compile(r"[。！？\n]|[.!?](?=\s|$)")
# What stands for a name; both people have the same one, whichever is mentioned first.
NAME = "＿"


def scenes(items: pd.DataFrame) -> pd.Series:
    """Name the scene of each item, within its category.

    A disambiguous context belongs to the ambiguous one with which it begins, else to the one with
    the same first sentence; without any, its own first sentence names its scene.

    Args:
        items: as `bench.data.frame` makes them of `bench.data.cbbq.Question`.
    """
    templates = items.drop_duplicates("cluster").set_index("cluster")
    texts = templates.reindex(columns=["context", "name1", "name2", "ans0", "ans1"], fill_value="")
    contexts = [_masked(*row) for row in texts.itertuples(index=False)]
    about = list(zip(templates.category, templates.condition, contexts, strict=True))
    ambiguous: dict[str, list[str]] = {}
    for category, condition, context in about:
        if condition == "ambiguous":
            ambiguous.setdefault(category, []).append(context)
    names = []
    for category, condition, context in about:
        if condition != "ambiguous":
            context = _scene(context, ambiguous.get(category, []))
        names.append(f"{category}:{context}")
    return items.cluster.map(dict(zip(templates.index, names, strict=True)))


def _scene(context: str, known: list[str]) -> str:
    """Find the ambiguous context that a disambiguous one adds facts to."""
    begins = [scene for scene in known if context.startswith(scene)]
    if begins:
        return max(begins, key=len)
    first = _first_sentence(context)
    return next((scene for scene in known if _first_sentence(scene) == first), first)


def _first_sentence(text: str) -> str:
    return SENTENCE.split(text, maxsplit=1)[0]


def _masked(context: str, name1: str, name2: str, ans0: str, ans1: str) -> str:
    """Put one sign for both names, those of the options where a file does not tell the names."""
    names = [name1, name2] if name1 and name2 else [ans0, ans1]
    for name in sorted(filter(None, names), key=len, reverse=True):
        context = context.replace(name, NAME)
    return context.strip()
