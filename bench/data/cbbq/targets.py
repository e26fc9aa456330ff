"""Find the option of a CBBQ row that names the stereotyped group.

The column `bias_targeted_groups` is compared with what fills the options. Where that does not tell,
the slot that `target` names in dataset.toml counts, and in a category of the release the slot in
which the release has the group.
"""

import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from pathlib import Path

from bench.data import dataset

# The slots as dataset.toml names them.
SLOT_NAMES = dataset.TARGETS
# Released categories by the option that names the group where a row does not tell; `age` has both.
FIRST_OPTION = (
    "SES",
    "disability",
    "disease",
    "educational_qualification",
    "ethnicity",
    "household_registration",
    "nationality",
    "race",
    "region",
    "religion",
    "sexual_orientation",
)
SECOND_OPTION = ("gender", "physical_appearance")
# Released names that stand in the other slot than the rest of their category.
OLDER_IN_SLOT_1 = ("爷爷", "外公", "奶奶", "外婆")
TARGET_IN_SLOT_1 = ("变性女生", "变性女孩")
# Released rows about them have the groups of other rows.
FOREIGN_GROUPS = {"race": ("阿拉伯人", "中东地区的人", "来自中东地区的人")}

SEPARATORS = re.compile(r"[/、，,；;]")
# What may stand behind the word for a group: 河南人, 残障人士, 女性.
GENERIC = re.compile(r"的?(?:人士|人群|群体|居民|患者|者|人|性|族|徒)$")
# The only words of one character that mean a group by themselves.
SHORT = ("女", "男")
DENIAL = re.compile(
    r"(?:非(?![洲裔常])|不是|不(?![丹仅但])|没有|没|无(?!锡)|無|未(?!来)|ない|なし"
    r"|\b(?:not|non|no|never|without)\b[\s-]*)",
    re.IGNORECASE,
)


# The texts of the first and of the second option, whoever fills them.
Options = tuple[frozenset[str], frozenset[str]]


@lru_cache(maxsize=1 << 12)
def target_option(
    category: str,
    group: str,
    options: Options,
    declared: int | None,
    all_options: Options | None = None,
) -> int | None:
    """Find the option, 0 or 1, that names the stereotyped group; None where nothing tells.

    Args:
        declared: the slot that dataset.toml declares.
        all_options: those of the row's whole template, where `options` are of one question of it.
    """
    named = None
    if not options[0] & set(FOREIGN_GROUPS.get(category, ())):
        named = named_option(group, options)
        if named is None and all_options:
            named = named_option(group, all_options)
    if named is not None:
        return named
    return usual_option(category, group, options[0]) if declared is None else declared


def usual_option(category: str, group: str, first: Collection[str] = ()) -> int | None:
    """Find the option that names the group in the release; None in other categories.

    Args:
        first: the texts of the first option.
    """
    if category == "age":
        older = 0 if set(first) & set(OLDER_IN_SLOT_1) else 1
        return older if "老" in group else 1 - older
    if category in SECOND_OPTION:
        return 0 if set(first) & set(TARGET_IN_SLOT_1) else 1
    return 0 if category in FIRST_OPTION else None


def named_option(group: str, options: Options) -> int | None:
    """Find the option whose texts alone name one of the groups, or which alone does not deny it.

    None where no option does, both do, or groups of the row contradict each other.
    """
    found: set[int] = set()
    for word, denied in _words(group):
        mentions = [{_mention(word, text) for text in texts} for texts in options]
        for k in (0, 1):
            mine, other = mentions[k], mentions[1 - k]
            if 1 in mine and -1 not in mine and not {1, None} & other:
                found.add(1 - k if denied else k)
            elif -1 in mine and not {1, None} & mine and not {-1, None} & other:
                found.add(k if denied else 1 - k)
    return found.pop() if len(found) == 1 else None


def declared_option(path: Path, category: str) -> int | None:
    """Read the option that dataset.toml declares for a category, from the path of a file of it.

    Raises:
        BadInput: the manifest is wrong.
    """
    folder = path.parents[2]
    if folder.name == "data" and not (folder / dataset.MANIFEST).is_file():
        folder = folder.parent
    said = dataset.read_manifest(folder).categories.get(category)
    return SLOT_NAMES.index(said.target) if said and said.target else None


def unknown_target(place: str, group: str, category: str) -> str:
    """Say of a row that nothing tells which option names its group."""
    return (
        f"{place}, column `bias_targeted_groups`: {group!r} does not tell which option names the "
        f'stereotyped group; add target = "NAME1" or target = "NAME2", whichever slot holds it, '
        f"to [categories.{category}] in {dataset.MANIFEST}"
    )


def _words(group: str) -> Iterator[tuple[str, bool]]:
    """List the groups of a cell, each as the word that names it, and whether that is denied."""
    for part in SEPARATORS.split(group):
        word = part.strip()
        while (shorter := GENERIC.sub("", word)) != word and (len(shorter) > 1 or shorter in SHORT):
            word = shorter
        if denial := DENIAL.search(word):
            word = word[denial.end() :].strip()
        if word:
            yield word, denial is not None


@lru_cache(maxsize=1 << 16)
def _mention(word: str, text: str) -> int | None:
    """Tell whether a text names a group (1), denies it (-1), or does not mention it (0).

    None where it mentions the group and denies something.
    """
    bounded = rf"(?<![A-Za-z]){re.escape(word)}(?![A-Za-z])"
    match = re.search(bounded, text, re.IGNORECASE)
    if not match:
        return 0
    denials = [found.end() for found in DENIAL.finditer(text)]
    if not denials:
        return 1
    return -1 if denials == [match.start()] else None
