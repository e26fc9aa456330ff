"""Predictions of an NLI model that was asked elsewhere: `predictions:FILE.jsonl` or `.csv`, a row a pair, matched by its id.

{"id": 2000, "label": "neutral"}
{"id": 2000, "entailment": 0.1, "contradiction": 0.2, "neutral": 0.7}
{"id": 2000, "label": ["neutral", "contradiction", "entailment"], "scores": [0.7, 0.2, 0.1]}
{"id": 2000, "scores": [{"label": "neutral", "score": 0.7}, {"label": "contradiction", "score": 0.2}, ...]}

`id` is the released one, whose order does not matter; a field `language` (en, ja, zh) says whose, where several are asked.
The three numbers are probabilities, which sum to 1 within 0.002; or all of the file are logits, some of which are negative.
The label is the one of the largest; of equals the first of entailment, contradiction, neutral. A table has the same names
as columns, `label` or the three.
"""

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.core.cells import to_number, to_whole_number
from bench.core.errors import BadInput, plain, quoted
from bench.data.readers import csv_rows, open_file, read_json_lines
from bench.scorers.base import Answer
from bench.tasks.nli_labels import LABELS, label
from bench.tasks.request import Request

# Three rounded probabilities may miss 1 by a little.
TOLERANCE = 0.002 + 1e-9
# No id of a pair, and no logit of a model, comes near.
MOST = 10**15
COLUMNS = ("language", "label", *LABELS)


class Row(NamedTuple):
    """A prediction: where it stands, and its label (empty where numbers say it) or three numbers in the order of `LABELS`."""

    place: str
    label: str
    numbers: tuple[float, ...]


class Predictions:
    """Gives each pair the prediction of its id."""

    verbs: tuple[str, ...] = ("classify",)
    reads: tuple[str, ...] = ()

    def __init__(self, path: Path, label_names: Sequence[str] = ()) -> None:
        """Read the file.

        Args:
            label_names: what LABEL_0, LABEL_1 and LABEL_2 mean, where labels are called so.

        Raises:
            BadInput: a field is missing, an id doubled, a label unknown, or numbers are neither probabilities nor logits.
        """
        if not path.is_file():
            raise BadInput(f"{path}: no such file of predictions")
        self.path = path
        self._meant = {f"label_{k}": name for k, name in enumerate(label_names)}
        self._rows: dict[tuple[str, int], Row] = {}
        for place, row in _rows(path):
            key = _language(place, row), _id(place, row)
            if key in self._rows:
                raise BadInput(
                    f"{place}: id {_told(key)} stands in {self._rows[key].place.removeprefix(f'{path}, ')} already; every pair needs one"
                )
            self._rows[key] = self._read(place, row)
        if not self._rows:
            raise BadInput(f"{path}: holds no predictions")
        if len({language == "" for language, _ in self._rows}) > 1:
            place = next(row.place for (language, _), row in self._rows.items() if not language)
            raise BadInput(f"{place}: field `language` is missing, which other rows have")
        self._named = any(language for language, _ in self._rows)
        self.form, self._probabilities = self._normalised()

    def describe(self) -> dict[str, Any]:
        with open_file(self.path) as stream:
            revision = hashlib.file_digest(stream, "sha256").hexdigest()[:16]
        return {
            "kind": f"predictions from a file ({self.form})",
            "id": f"predictions:{self.path.name}",
            "revision": revision,
        }

    def cover(self, requests: Sequence[Request], known: Iterable[str]) -> None:
        """Check that there is a prediction for each of `requests`, and none for a pair that the data do not know.

        A file may have more than is asked, as where the down-sampled sets are.

        Args:
            known: the item ids of the data, in the languages that are asked.

        Raises:
            BadInput: a prediction is missing or of an unknown id, or several languages are asked and it says none.
        """
        languages = list(dict.fromkeys(request.category for request in requests))
        if len(languages) > 1 and not self._named:
            raise BadInput(
                f"{self.path}: field `language` is missing, and {', '.join(languages)} are asked; add it, or choose one with --categories"
            )
        missing = list(dict.fromkeys(r.item_id for r in requests if self._key(r) not in self._rows))
        if missing:
            total = len({request.item_id for request in requests})
            raise BadInput(
                f"{self.path}: has no prediction for {len(missing):,} of {total:,} pairs, the first is id {missing[0].partition(':')[2]} "
                f"({missing[0].partition(':')[0]})"
            )
        there = set(known)
        for (language, one), row in self._rows.items():
            if language in ("", *languages) and f"{language or languages[0]}:{one}" not in there:
                raise BadInput(f"{row.place}: id {_told((language, one))} is none of the data's")

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        return [self._answer(self._key(request)) for request in requests]

    def _answer(self, key: tuple[str, int]) -> Answer:
        if key not in self._rows:
            raise BadInput(f"{self.path}: has no prediction for id {_told(key)}")
        if key not in self._probabilities:
            return Answer(self._rows[key].label)
        row = self._probabilities[key]
        return Answer(
            LABELS[int(row.argmax())], tuple(math.log(p) if p > 0 else -math.inf for p in row)
        )

    def _key(self, request: Request) -> tuple[str, int]:
        language, _, one = request.item_id.partition(":")
        return (language if self._named else ""), int(one)

    def _read(self, place: str, row: Mapping[str, Any]) -> Row:
        """A row's label or numbers; the numbers are looked at when all are there."""
        names, scores = row.get("label", row.get("labels")), row.get("scores")
        if isinstance(scores, list) and all(isinstance(one, dict) for one in scores):
            names, scores = (
                [one.get("label") for one in scores],
                [one.get("score") for one in scores],
            )
        if isinstance(scores, list):
            if not isinstance(names, list) or len(names) != len(scores):
                raise BadInput(
                    f"{place}: `scores` has {len(scores)} entries; expected a list `label` of as many names beside it"
                )
            found = dict(zip((self._label(place, name) for name in names), scores, strict=True))
            if len(scores) != len(LABELS) or len(found) != len(LABELS):
                raise BadInput(
                    f"{place}, field `scores`: expected one for each of {', '.join(LABELS)}; ask the pipeline with top_k=None"
                )
            return Row(place, "", tuple(_number(place, name, found[name]) for name in LABELS))
        held = [name for name in LABELS if row.get(name) not in (None, "")]
        if held:
            lacking = next((name for name in LABELS if name not in held), None)
            if lacking:
                raise BadInput(f"{place}: field `{lacking}` is missing beside {', '.join(held)}")
            return Row(place, "", tuple(_number(place, name, row[name]) for name in LABELS))
        if names in (None, ""):
            raise BadInput(
                f"{place}: field `label` is missing; expected it, or {', '.join(LABELS)}; found: {plain(', '.join(map(str, row)))[:80]}"
            )
        return Row(place, self._label(place, names), ())

    def _label(self, place: str, name: object) -> str:
        known = isinstance(name, str) and (self._meant.get(name.strip().lower()) or label(name))
        if known:
            return str(known)
        way_out = (
            "; say what they mean with --label-names"
            if str(name).lower().startswith("label_")
            else ""
        )
        raise BadInput(
            f"{place}, field `label`: {quoted(name)[:40]} is unknown; allowed: {', '.join(LABELS)}{way_out}"
        )

    def _normalised(self) -> tuple[str, dict[tuple[str, int], np.ndarray]]:
        """What the numbers are, and the probabilities that they stand for."""
        some = {key: np.array(row.numbers) for key, row in self._rows.items() if row.numbers}
        sound = {
            key for key, row in some.items() if (row >= 0).all() and abs(row.sum() - 1) <= TOLERANCE
        }
        odd = next((key for key in some if key not in sound), None)
        # Logits happen to look like probabilities now and then, and probabilities may have a slip: most rows decide.
        negative = any((row < 0).any() for row in some.values())
        if odd is None:
            return "probabilities" if some else "labels", some
        if negative and len(sound) * 2 < len(some):
            shifted = {key: np.exp(row - row.max()) for key, row in some.items()}
            return "logits", {key: row / row.sum() for key, row in shifted.items()}
        told = ", ".join(f"{name} {value:g}" for name, value in zip(LABELS, some[odd], strict=True))
        raise BadInput(
            f"{self._rows[odd].place}: {told} sum to {some[odd].sum():g}; expected probabilities, which are 0 to 1 and sum to 1 "
            "(within 0.002), not counts or percentages; or logits, some of which are negative"
        )


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of a file, each with its place."""
    if path.suffix != ".csv":
        yield from ((f"{path}, line {line}", row) for line, row in read_json_lines(path))
        return
    for k, row in enumerate(csv_rows(path, ("id",), more=COLUMNS), start=1):
        if isinstance(row, str):
            raise BadInput(f"{path}, row {k}: {row}")
        yield f"{path}, row {k}", dict(row)


def _id(place: str, row: Mapping[str, Any]) -> int:
    given = row.get("id")
    if given is None:
        raise BadInput(
            f"{place}: field `id` is missing; found: {plain(', '.join(map(str, row)))[:80]}"
        )
    found = (
        given
        if type(given) is int
        else to_whole_number(given.strip())
        if isinstance(given, str)
        else None
    )
    if found is None or not 0 <= found < MOST:
        raise BadInput(f"{place}, field `id`: {quoted(given)[:40]} is not a whole number from 0")
    return found


def _language(place: str, row: Mapping[str, Any]) -> str:
    given = row.get("language") or ""
    if not isinstance(given, str):
        raise BadInput(f"{place}, field `language`: {quoted(given)[:40]} is not a text")
    return given.strip()


def _number(place: str, name: str, given: object) -> float:
    value = to_number(given.strip()) if isinstance(given, str) else given
    # NaN is outside of everything.
    if not isinstance(value, int | float) or isinstance(value, bool) or not -MOST < value < MOST:
        raise BadInput(
            f"{place}, field `{name}`: {quoted(given)[:40]} is not a number from -{MOST:g} to {MOST:g}"
        )
    return float(value)


def _told(key: tuple[str, int]) -> str:
    language, one = key
    return f"{one} ({language})" if language else str(one)
