"""Read NLI corpora to train on: files of premise, hypothesis and label.

- JSON Lines (.jsonl, .json), as SNLI, OCNLI and NLI-CoAL: `sentence1` and `sentence2` (or `premise`
  and `hypothesis`), `gold_label` or `label`
- tab-separated (.tsv, .txt): label, premise, hypothesis (JSNLI), or a header with names (XNLI)

Rows on whose label the annotators did not agree are left out and counted. Sentences stay as they
are.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.core.errors import BadInput, expected, plain
from bench.data.readers import as_path, check_header, open_file, read_json_lines, read_lines

LABELS = ("entailment", "contradiction", "neutral")
# Unambiguous spellings of labels; numbers are ambiguous, their order differs between corpora.
SPELLINGS: Mapping[str, str] = {
    **{label: label for label in LABELS},
    "contradictory": "contradiction",
}
# How corpora mark that most annotators did not agree.
NO_CONSENSUS = ("-", "-1")
# The names of each field, the one that counts first.
FIELDS = {
    "premise": ("sentence1", "premise"),
    "hypothesis": ("sentence2", "hypothesis", "hypo"),
    "label": ("gold_label", "label"),
}
BARE = ("label", "premise", "hypothesis")
JSON, TABLE = (".jsonl", ".json"), (".tsv", ".txt")


class Example(NamedTuple):
    """A labelled pair of sentences."""

    premise: str
    hypothesis: str
    label: str


class File(NamedTuple):
    """A file: its SHA-256, its number of pairs, and of rows left out for lack of consensus."""

    path: Path
    sha256: str
    rows: int
    left_out: int


class Corpus(NamedTuple):
    """The pairs of some files, in their order, and the files."""

    examples: list[Example]
    files: list[File]

    @property
    def counts(self) -> dict[str, int]:
        """Count the pairs with each label."""
        found = Counter(example.label for example in self.examples)
        return {label: found[label] for label in LABELS}


def read(paths: Sequence[str | Path], labels: Mapping[str, str] | None = None) -> Corpus:
    """Read the labelled pairs of some files.

    Args:
        labels: what other spellings mean, such as {"0": "entailment", "1": "neutral"}.

    Raises:
        BadInput: a file is missing, of another kind or without pairs, a field is missing or empty,
            or a label is unknown; with file and line.
    """
    for value in (labels or {}).values():
        if value not in LABELS:
            raise BadInput(expected(value, LABELS, "meaning of a label"))
    known = {**SPELLINGS, **(labels or {})}
    examples: list[Example] = []
    files = []
    for path in map(as_path, paths):
        if not path.is_file():
            raise BadInput(f"{path}: no such file")
        found = [_example(place, fields, known) for place, fields in _rows(path)]
        kept = [example for example in found if example is not None]
        if not kept:
            raise BadInput(f"{path}: holds no pairs with a label")
        examples += kept
        with open_file(path) as stream:
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
        files.append(File(path, sha256, len(kept), len(found) - len(kept)))
    return Corpus(examples, files)


def _rows(path: Path) -> Iterator[tuple[str, dict[str, object]]]:
    """Read rows: file and line, and premise, hypothesis and label by these names."""
    if path.suffix.lower() in JSON:
        for line, row in read_json_lines(path):
            place = f"{path}, line {line}"
            yield place, {field: row[_name(place, field, row)] for field in FIELDS}
    elif path.suffix.lower() in TABLE:
        yield from _table(path)
    else:
        raise BadInput(expected(path.suffix, (*JSON, *TABLE), f"{path}: ending"))


def _table(path: Path) -> Iterator[tuple[str, dict[str, object]]]:
    names: Sequence[str] = ()
    chosen: dict[str, str] = {}
    for line, text in read_lines(path):
        cells, where = text.rstrip("\r").split("\t"), f"{path}, line {line}"
        if not text.strip():
            continue
        if not names:
            names, chosen = BARE, {field: field for field in BARE}
            header = [cell.strip() for cell in cells]
            # A first row of three names, or of more columns than three, is a header.
            if len(header) > len(BARE) or set(header) & {
                name for some in FIELDS.values() for name in some
            }:
                names = header
                chosen = {field: _name(f"{where} (header)", field, names) for field in FIELDS}
                check_header(path, header, list(chosen.values()))
                continue
        if len(cells) != len(names):
            raise BadInput(
                f"{where}: has {len(cells)} cells; expected {len(names)}: {plain(', '.join(names))}"
            )
        row = dict(zip(names, cells, strict=True))
        yield where, {field: row[chosen[field]] for field in FIELDS}


def _name(place: str, field: str, row: Mapping[str, object] | Sequence[str]) -> str:
    """Find the name under which `row` has `field`."""
    for name in FIELDS[field]:
        if name in row:
            return name
    found = plain(", ".join(map(str, row)))[:200] or "nothing"
    raise BadInput(f"{place}: field `{'` or `'.join(FIELDS[field])}` is missing; found: {found}")


def _example(place: str, row: Mapping[str, object], known: Mapping[str, str]) -> Example | None:
    """Make the pair of a row, None if there is no consensus on its label."""
    value = row["label"]
    label = (
        str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else ""
    )
    if label in NO_CONSENSUS and label not in known:
        return None
    if label not in known:
        shown = plain(repr(value))[:60]
        more = "; say what numbers mean" if label.isdecimal() else ""
        raise BadInput(
            f"{place}, field `label`: {shown} is unknown; allowed: {', '.join(known)}, and - where "
            f"there is no consensus{more}"
        )
    for field in ("premise", "hypothesis"):
        text = row[field]
        if not isinstance(text, str) or not text.strip():
            raise BadInput(f"{place}, field `{field}`: {plain(repr(text))[:60]} is not a text")
    return Example(str(row["premise"]), str(row["hypothesis"]), known[label])
