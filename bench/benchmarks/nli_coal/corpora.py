"""Read NLI corpora to train on: files of premise, hypothesis and label.

- JSON Lines (.jsonl, .json), as SNLI, OCNLI and NLI-CoAL: `sentence1` and `sentence2` (or `premise`
  and `hypothesis`), `gold_label` or `label`
- tab-separated (.tsv, .txt): label, premise, hypothesis (JSNLI), or a header with names (XNLI)

Rows without a label that the annotators agreed on are excluded and counted. Sentences stay as they
are.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.core.errors import BadInput, expected, plain, quoted
from bench.data.readers import as_path, check_header, open_file, read_json_lines, read_lines

LABELS = ("entailment", "contradiction", "neutral")
# Unambiguous spellings of labels; numbers are ambiguous, their order differs between corpora.
SPELLINGS = {**{label: label for label in LABELS}, "contradictory": "contradiction"}
# How corpora mark that most annotators did not agree.
NO_CONSENSUS = ("-", "-1")
# The names of each field, the one that counts first.
FIELDS = {
    "premise": ("sentence1", "premise"),
    "hypothesis": ("sentence2", "hypothesis", "hypo"),
    "label": ("gold_label", "label"),
}
# The columns of a table without a header.
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
        counts = Counter(example.label for example in self.examples)
        return {label: counts[label] for label in LABELS}


def read(paths: Sequence[str | Path], labels: Mapping[str, str] | None = None) -> Corpus:
    """Read the labelled pairs of some files.

    Args:
        labels: meanings of other spellings, for example {"0": "entailment", "1": "neutral"}.
    """
    for value in (labels or {}).values():
        if value not in LABELS:
            raise BadInput(expected(value, LABELS, "meaning of a label"))
    known = {**SPELLINGS, **(labels or {})}
    examples: list[Example] = []
    files = []
    for path in map(as_path, paths):
        read_rows = [_example(place, row, known) for place, row in _rows(path)]
        kept = [example for example in read_rows if example is not None]
        if not kept:
            raise BadInput(f"{path}: holds no pairs with a label")
        examples += kept
        with open_file(path) as stream:
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
        files.append(File(path, sha256, len(kept), len(read_rows) - len(kept)))
    return Corpus(examples, files)


def _rows(path: Path) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Read the rows of a file by the names of its fields, each with file and line."""
    if path.suffix.lower() not in (*JSON, *TABLE):
        raise BadInput(expected(path.suffix, (*JSON, *TABLE), f"{path}: ending"))
    if path.suffix.lower() in JSON:
        for line, row in read_json_lines(path):
            yield f"{path}, line {line}", row
        return
    columns: Sequence[str] = ()
    for line, text in read_lines(path):
        cells, place = text.rstrip("\r").split("\t"), f"{path}, line {line}"
        if not text.strip():
            continue
        if not columns:
            header = [cell.strip() for cell in cells]
            named = [name for names in FIELDS.values() for name in names if name in header]
            # A first row with a field's name, or of more columns than three, is a header.
            if named or len(header) > len(BARE):
                check_header(path, header, named)
                columns = header
                continue
            columns = BARE
        if len(cells) != len(columns):
            names = plain(", ".join(columns))
            raise BadInput(f"{place}: has {len(cells)} cells; expected {len(columns)}: {names}")
        yield place, dict(zip(columns, cells, strict=True))


def _example(place: str, row: Mapping[str, object], known: Mapping[str, str]) -> Example | None:
    """Make the pair of a row, None if there is no consensus on its label."""
    values: dict[str, object] = {}
    for field, names in FIELDS.items():
        name = next((name for name in names if name in row), None)
        if name is None:
            columns = plain(", ".join(map(str, row)))[:200] or "nothing"
            raise BadInput(f"{place}: field `{'` or `'.join(names)}` is missing; found: {columns}")
        values[field] = row[name]
    value = values["label"]
    is_label = isinstance(value, str | int) and not isinstance(value, bool)
    label = str(value).strip() if is_label else ""
    if label in NO_CONSENSUS and label not in known:
        return None
    if label not in known:
        more = "; say what numbers mean" if label.isdecimal() else ""
        raise BadInput(
            f"{place}, field `label`: {quoted(value)} is unknown; allowed: {', '.join(known)}, and "
            f"- where there is no consensus{more}"
        )
    for field in ("premise", "hypothesis"):
        text = values[field]
        if not isinstance(text, str) or not text.strip():
            raise BadInput(f"{place}, field `{field}`: {quoted(text)} is not a text")
    return Example(str(values["premise"]), str(values["hypothesis"]), known[label])
