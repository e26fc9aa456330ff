"""What categories are called, in English and in the language of their data.

Categories of a release have their names in its data module. Others are told by the manifest of a data folder, and
`run.json` keeps what it said; whoever opens such a folder or such a run makes them known to pictures and sentences here.
"""

from collections.abc import Mapping
from typing import Any

from bench.benchmarks import module
from bench.data.manifest import is_label

# By benchmark and category: the label in the data's own language, and the English one. The last that was told stands.
_told: dict[tuple[str, str], tuple[str, str]] = {}


def learn(benchmark: str, told: Any) -> None:
    """Take over what a data set says of its categories; what is no label is passed over, for runs may come from anywhere.

    Args:
        told: what `run.json` says of the data: `labels` by category and by the code of their language, and `language`.
    """
    said = told if isinstance(told, Mapping) else {}
    labels, languages = said.get("labels"), str(said.get("language", "")).split(",")
    for category, some in labels.items() if isinstance(labels, Mapping) else ():
        fit = (
            {code: text for code, text in some.items() if is_label(text)} if isinstance(some, Mapping) else {}
        )
        own = next(
            (fit[code.strip()] for code in languages if code.strip() in fit and code.strip() != "en"), ""
        )
        if "en" in fit:
            _told[benchmark, category] = (own, fit["en"])


def own(benchmark: str, category: str) -> str:
    """A category's name in the language of its data; "" where it has none but the English one."""
    known = _told.get((benchmark, category))
    return known[0] if known else module("data", benchmark).CATEGORY_LABELS.get(category, "")


def english(benchmark: str, category: str) -> str:
    """A category's name in English."""
    known = _told.get((benchmark, category))
    return known[1] if known else category.replace("_", " ")
