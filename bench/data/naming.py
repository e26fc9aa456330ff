"""What categories are called, in English and in the language of their data.

Categories of a release have their names in its data module. Others are told by the manifest of a data folder, and
`run.json` keeps what it said; whoever opens such a folder or such a run makes them known to pictures and sentences here.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from bench.benchmarks import module
from bench.data.dataset import is_label

# By benchmark and category: the label in the data's own language, and the English one. The last that was told stands; where
# sets that are shown together do not call a category alike, `apart` finds it, and pages say so.
_told: dict[tuple[str, str], tuple[str, str]] = {}


class Apart(NamedTuple):
    """A category that two data sets call differently: both sets and their names of it, in its own language and in English."""

    benchmark: str
    category: str
    sets: tuple[str, str]
    names: tuple[tuple[str, str], tuple[str, str]]


def learn(benchmark: str, told: Any) -> None:
    """Take over what a data set says of its categories; what is no label is passed over, for runs may come from anywhere.

    Args:
        told: what `run.json` says of the data: `labels` by category and by the code of their language, and `language`.
    """
    for category, names in _names(told).items():
        _told[benchmark, category] = names


def apart(sets: Iterable[tuple[str, Any]]) -> list[Apart]:
    """The categories that data sets call differently; a set that says nothing of a released category calls it as the release.

    Args:
        sets: the benchmark of each, and what `run.json` says of it.
    """
    found: dict[tuple[str, str], Apart] = {}
    first: dict[tuple[str, str], tuple[str, tuple[str, str]]] = {}
    for benchmark, told in sets:
        name = str(told.get("name", "")) if isinstance(told, Mapping) else ""
        for category, names in {**_released(benchmark), **_names(told)}.items():
            key = benchmark, category
            other, theirs = first.setdefault(key, (name, names))
            if theirs != names:
                found.setdefault(key, Apart(*key, (other, name), (theirs, names)))
    return list(found.values())


def own(benchmark: str, category: str) -> str:
    """A category's name in the language of its data; "" where it has none but the English one."""
    return _known(benchmark, category)[0]


def english(benchmark: str, category: str) -> str:
    """A category's name in English."""
    return _known(benchmark, category)[1]


def _known(benchmark: str, category: str) -> tuple[str, str]:
    if (benchmark, category) in _told:
        return _told[benchmark, category]
    return module("data", benchmark).CATEGORY_LABELS.get(category, ""), category.replace("_", " ")


def _released(benchmark: str) -> dict[str, tuple[str, str]]:
    labels = module("data", benchmark).CATEGORY_LABELS
    return {name: (label, name.replace("_", " ")) for name, label in labels.items()}


def _names(told: Any) -> dict[str, tuple[str, str]]:
    """The labels of the categories of which a data set says any, in its own language and in English."""
    said = told if isinstance(told, Mapping) else {}
    labels, languages = said.get("labels"), str(said.get("language", "")).split(",")
    found = {}
    for category, some in labels.items() if isinstance(labels, Mapping) else ():
        fit = (
            {code: text for code, text in some.items() if is_label(text)}
            if isinstance(some, Mapping)
            else {}
        )
        own = next(
            (
                fit[code.strip()]
                for code in languages
                if code.strip() in fit and code.strip() != "en"
            ),
            "",
        )
        if "en" in fit:
            found[category] = (own, fit["en"])
    return found
