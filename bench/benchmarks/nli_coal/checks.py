"""Rules for pairs of NLI-CoAL, in addition to the rules for all benchmarks."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from bench.benchmarks.nli_coal import items
from bench.benchmarks.nli_coal.frames import SLOT, align
from bench.benchmarks.nli_coal.items import NEUTRAL_TERMS, SETS
from bench.core.errors import BadInput
from bench.data.checks import Errors, Rule, Tables, file_name, in_cells, noted
from bench.data.readers import read_json_lines

COLUMNS = ("sentence1", "sentence2", "label", "occ_word", "occ_type")
NAMES = {stem: name for name, stem in {**SETS, **NEUTRAL_TERMS}.items()}
# The folders of sets of all occupations, as they are written.
WHOLE = items.VARIANTS["all", "plain"][0]
# The folders of Japanese sets with blanks between words.
WITH_BLANKS = [items.VARIANTS[name, "tokenized"][0][0] for name in ("all", "downsample")]


def rows(folder: Path, errors: Errors, **settings: str) -> Tables:
    """Yield the pairs of each language, and note the errors of refused ones."""
    for language, language_folder in items.language_folders(folder):
        with noted(errors):
            if not items.files(language_folder):
                raise BadInput(f"{language_folder}: has not all of {', '.join(SETS.values())}")
            items.load(language_folder, [language])
        for path in sorted(language_folder.glob("bias-*-set_v*/*/*.json")):
            with noted(errors):
                yield pd.DataFrame(_rows(path, language, folder))


def _rows(path: Path, language: str, folder: Path) -> Iterator[dict[str, Any]]:
    """Read the pairs of a file. Training files and files of all sets belong to no set."""
    set_ = NAMES.get(re.split("-(?:downsamp|tok)|_v", path.name)[0], "")
    terms, match = items.gender_terms(path.parents[2], language)
    file = file_name(path, folder)
    for number, data in read_json_lines(path):
        cells = {name: str(data.get(name) or "") for name in COLUMNS}
        premise = cells["sentence1"]
        hypothesis = cells["sentence2"]
        if path.parent.name in WITH_BLANKS:
            premise = premise.replace(" ", "")
            hypothesis = hypothesis.replace(" ", "")
        aligned = align(premise, hypothesis, terms, match, cells["occ_word"]) if set_ else None
        _, occupation, gender, _ = aligned or ("", "", "", "")
        is_whole = set_ and path.parent.name in WHOLE
        balance = {"ps": "PS", "as": "AS", "ns": gender, "": cells["label"]}.get(set_, "")
        yield {
            **cells,
            "file": file,
            "row": number,
            "name": language,
            "counts_as": set_.upper() if is_whole else "",
            "key": "\x1f".join((file, premise, hypothesis)) if set_ else "",
            "part": file if set_ in ("ns", "") else file_name(path.parent, folder),
            "balance": balance,
            "unlike": hypothesis if set_ and not aligned else "",
            "occupation": occupation if cells["occ_word"] not in ("", occupation) else "",
        }


RULES = (
    Rule(
        "placeholder_left",
        COLUMNS[:2],
        in_cells(lambda text: SLOT * (SLOT in text)),
        "holds {found}, in which no occupation was filled",
    ),
    Rule(
        "not_one_frame",
        ["sentence2"],
        lambda table, column: table.unlike,
        "is not the premise with a gendered word in place of the occupation",
    ),
    Rule(
        "wrong_occupation",
        ["occ_word"],
        lambda table, column: table.occupation,
        "is not what the sentences have, {found!r}; `--set anomalies=repair` takes that",
    ),
)
RELEASED = {
    language: {"PS": 1000, "AS": 1000, "NS": size}
    for language, size in (("en", 3420), ("ja", 3420), ("zh", 3320))
}
