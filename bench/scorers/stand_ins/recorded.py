"""Answers that were recorded elsewhere: `replay:FILE` of a language model, `predictions:FILE` of an
NLI model; JSON Lines or a CSV table.

A replay has an answer per line, found by its names or by its exact prompt; a table has the columns
task, item_id, request, response and, where there are several, repeat; others are ignored. People
who grade replies by hand fill in such a table.

    {"task": "ss", "item_id": "gender:1", "request": "甲|乙", "repeat": 0, "response": "A"}
    {"prompt": "...", "response": "A"}

Predictions have a pair per line, found by its released id; a field `language` (en, ja, zh) says
whose where there are several. Numbers are probabilities, which sum to 1 within 0.002, or all of the
file are logits, some of which are negative; of equals the first of entailment, contradiction,
neutral is the label. A table has the same names as columns, `label` or the three.

    {"id": 2000, "label": "neutral"}
    {"id": 2000, "entailment": 0.1, "contradiction": 0.2, "neutral": 0.7}
    {"id": 2000, "label": ["neutral", "contradiction", "entailment"], "scores": [0.7, 0.2, 0.1]}
    {"id": 2000, "scores": [{"label": "neutral", "score": 0.7}, ...]}
"""

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.core.cells import to_number, to_whole_number, unguarded
from bench.core.errors import BadInput, plain, quoted
from bench.data.readers import MAX_LINE, open_file, read_csv, read_json_lines
from bench.scorers.base import VERBS, Answer
from bench.tasks import READ
from bench.tasks.nli_labels import LABELS, label
from bench.tasks.request import Request

NAMES = ("task", "item_id", "request")
MAX_REPEAT = 10**9
# Rounded probabilities may miss a sum of 1 by a little.
TOLERANCE = 0.002 + 1e-9
# No id of a pair, and no logit of a model, comes near.
MAX_NUMBER = 10**15


class _Recorded:
    """A file of recorded answers."""

    kind: str
    prefix: str
    holds: str
    verbs: tuple[str, ...] = VERBS
    reads: tuple[str, ...] = tuple(READ)

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise BadInput(f"{path}: no such file of {self.holds}")
        self.path = path

    def describe(self) -> dict[str, Any]:
        with open_file(self.path) as stream:
            revision = hashlib.file_digest(stream, "sha256").hexdigest()[:16]
        return {"kind": self.kind, "id": f"{self.prefix}:{self.path.name}", "revision": revision}

    def _rows(
        self, columns: Sequence[str], more: Sequence[str]
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the file's rows with their places."""
        if self.path.suffix != ".csv":
            for line, row in read_json_lines(self.path):
                yield f"{self.path}, line {line}", row
            return
        # Tables of `bench mark` also hold replies, which may be long.
        for number, cells in enumerate(read_csv(self.path, columns, more, MAX_LINE), start=1):
            yield f"{self.path}, row {number}", dict(cells)


class Replay(_Recorded):
    """Returns what a file says; a missing answer is an error that names the request."""

    kind, prefix, holds = "recorded answers", "replay", "recorded answers"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._answers: dict[tuple[Any, ...], str] = {}
        for place, row in self._rows((*NAMES, "response"), ("repeat",)):
            if path.suffix == ".csv":
                row = self._of_table(place, row)
            key = self._key(place, row)
            if key in self._answers:
                raise BadInput(
                    f"{place}: answers the same request as an earlier line: {quoted(key)}"
                )
            self._answers[key] = self._response(place, row)

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        return [Answer(self._find(request)) for request in requests]

    def _find(self, request: Request) -> str:
        names = (request.task, request.item_id, request.request, request.repeat)
        for key in (names, (request.text,)):
            if key in self._answers:
                return self._answers[key]
        raise BadInput(
            f"{self.path}: has no answer for task {request.task!r}, item_id {request.item_id!r}, "
            f"request {request.request!r}, repeat {request.repeat}"
        )

    def _of_table(self, place: str, row: Mapping[str, str]) -> dict[str, Any]:
        repeat = to_whole_number(row.get("repeat", "0"))
        if repeat is None:
            raise BadInput(
                f"{place}, column `repeat`: {quoted(row['repeat'])} is not a whole number"
            )
        # Only cells of `bench mark`, which has a column `reply`, are guarded by an apostrophe.
        names = {name: unguarded(row[name]) if "reply" in row else row[name] for name in NAMES}
        return {**names, "repeat": repeat, "response": row["response"]}

    def _key(self, place: str, row: Mapping[str, Any]) -> tuple[Any, ...]:
        names = ("prompt",) if "prompt" in row else NAMES
        for name in names:
            if name not in row:
                raise BadInput(
                    f"{place}: field `{name}` is missing; expected {', '.join(NAMES)}, or prompt"
                )
            if not isinstance(row[name], str):
                raise BadInput(f"{place}, field `{name}`: {quoted(row[name])} is not a text")
        key = tuple(row[name] for name in names)
        if "prompt" in row:
            return key
        repeat = row.get("repeat", 0)
        if type(repeat) is not int or not 0 <= repeat < MAX_REPEAT:
            raise BadInput(
                f"{place}, field `repeat`: {quoted(repeat)} is not a whole number from 0"
            )
        return (*key, repeat)

    def _response(self, place: str, row: Mapping[str, Any]) -> str:
        if "response" not in row:
            raise BadInput(f"{place}: field `response` is missing")
        response = row["response"]
        if isinstance(response, str):
            return response
        if type(response) in (int, float) and math.isfinite(response):
            return repr(response)
        raise BadInput(
            f"{place}, field `response`: {quoted(response)} is neither text nor a number"
        )


class Prediction(NamedTuple):
    """A row of a file: its label ("" where numbers say it), or numbers in the order of `LABELS`."""

    place: str
    label: str
    numbers: tuple[float, ...]


class Predictions(_Recorded):
    """Returns the prediction of each pair's id.

    Args:
        label_names: what LABEL_0, LABEL_1 and LABEL_2 mean, where labels are called so.

    Raises:
        BadInput: a field is missing, an id doubled, a label unknown, or numbers are neither
            probabilities nor logits.
    """

    prefix, holds = "predictions", "predictions"
    verbs: tuple[str, ...] = ("classify",)
    reads: tuple[str, ...] = ()

    def __init__(self, path: Path, label_names: Sequence[str] = ()) -> None:
        super().__init__(path)
        self._meaning = {f"label_{k}": name for k, name in enumerate(label_names)}
        self._rows_by_key: dict[tuple[str, int], Prediction] = {}
        for place, row in self._rows(("id",), ("language", "label", *LABELS)):
            key = _language(place, row), _id(place, row)
            if before := self._rows_by_key.get(key):
                earlier = before.place.removeprefix(f"{path}, ")
                raise BadInput(
                    f"{place}: id {_id_text(key)} is in {earlier} already; every pair needs one"
                )
            self._rows_by_key[key] = self._read(place, row)
        if not self._rows_by_key:
            raise BadInput(f"{path}: holds no predictions")
        self._has_languages = any(language for language, _ in self._rows_by_key)
        for (language, _), prediction in self._rows_by_key.items():
            if self._has_languages and not language:
                raise BadInput(
                    f"{prediction.place}: field `language` is missing, which other rows have"
                )
        self.form, self._probabilities = self._normalised()
        self.kind = f"predictions from a file ({self.form})"

    def cover(self, requests: Sequence[Request], known: Iterable[str]) -> None:
        """Check that each request has a prediction, and each prediction a pair in the data.

        A file may have more than the requests, as where the down-sampled sets are evaluated.

        Args:
            known: the item ids of the data, in the languages of the requests.

        Raises:
            BadInput: a prediction is missing or of an unknown id, or the language of one is.
        """
        languages = list(dict.fromkeys(request.category for request in requests))
        if len(languages) > 1 and not self._has_languages:
            raise BadInput(
                f"{self.path}: field `language` is missing, and {', '.join(languages)} are asked; "
                "add it, or choose one with --categories"
            )
        ids = dict.fromkeys(request.item_id for request in requests)
        missing = [item_id for item_id in ids if self._key(item_id) not in self._rows_by_key]
        if missing:
            first, _, first_id = missing[0].partition(":")
            raise BadInput(
                f"{self.path}: has no prediction for {len(missing):,} of {len(ids):,} pairs, "
                f"the first is id {first_id} ({first})"
            )
        in_data = set(known)
        for (language, number), prediction in self._rows_by_key.items():
            item_id = f"{language or languages[0]}:{number}"
            if language in ("", *languages) and item_id not in in_data:
                raise BadInput(
                    f"{prediction.place}: id {_id_text((language, number))} is not in the data"
                )

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        return [self._answer(self._key(request.item_id)) for request in requests]

    def _answer(self, key: tuple[str, int]) -> Answer:
        if key not in self._rows_by_key:
            raise BadInput(f"{self.path}: has no prediction for id {_id_text(key)}")
        if key not in self._probabilities:
            return Answer(self._rows_by_key[key].label)
        return Answer.of_probabilities(self._probabilities[key], LABELS)

    def _key(self, item_id: str) -> tuple[str, int]:
        language, _, number = item_id.partition(":")
        return (language if self._has_languages else ""), int(number)

    def _read(self, place: str, row: Mapping[str, Any]) -> Prediction:
        names, scores = row.get("label", row.get("labels")), row.get("scores")
        if isinstance(scores, list) and all(isinstance(entry, dict) for entry in scores):
            names = [entry.get("label") for entry in scores]
            scores = [entry.get("score") for entry in scores]
        if isinstance(scores, list):
            if not isinstance(names, list) or len(names) != len(scores):
                raise BadInput(
                    f"{place}: `scores` has {len(scores)} entries; "
                    "expected a list `label` of as many names beside it"
                )
            row = dict(zip((self._label(place, name) for name in names), scores, strict=True))
            if len(scores) != len(LABELS) or len(row) != len(LABELS):
                raise BadInput(
                    f"{place}, field `scores`: expected one for each of {', '.join(LABELS)}; "
                    "call the pipeline with top_k=None"
                )
        given = [name for name in LABELS if row.get(name) not in (None, "")]
        missing = [name for name in LABELS if name not in given]
        if given and missing:
            raise BadInput(f"{place}: field `{missing[0]}` is missing beside {', '.join(given)}")
        if given:
            return Prediction(place, "", tuple(_number(place, name, row[name]) for name in LABELS))
        if names in (None, ""):
            raise BadInput(
                f"{place}: field `label` is missing; expected it, or {', '.join(LABELS)}; "
                f"found: {_names_of(row)}"
            )
        return Prediction(place, self._label(place, names), ())

    def _label(self, place: str, name: object) -> str:
        known = isinstance(name, str) and (self._meaning.get(name.strip().lower()) or label(name))
        if known:
            return str(known)
        nameless = str(name).lower().startswith("label_")
        hint = "; give their meaning with --label-names" if nameless else ""
        raise BadInput(
            f"{place}, field `label`: {quoted(name)[:40]} is unknown; "
            f"allowed: {', '.join(LABELS)}{hint}"
        )

    def _normalised(self) -> tuple[str, dict[tuple[str, int], np.ndarray]]:
        """Return what the numbers are, and the probabilities that they stand for."""
        rows = {key: np.array(row.numbers) for key, row in self._rows_by_key.items() if row.numbers}
        wrong = [
            key
            for key, row in rows.items()
            if (row < 0).any() or not abs(row.sum() - 1) <= TOLERANCE
        ]
        if not wrong:
            return "probabilities" if rows else "labels", rows
        # Some logits look like probabilities, and probabilities may have a slip: most rows decide.
        negative = any((row < 0).any() for row in rows.values())
        if negative and len(wrong) * 2 > len(rows):
            shifted = {key: np.exp(row - row.max()) for key, row in rows.items()}
            return "logits", {key: row / row.sum() for key, row in shifted.items()}
        row = rows[wrong[0]]
        values = ", ".join(f"{name} {value:g}" for name, value in zip(LABELS, row, strict=True))
        raise BadInput(
            f"{self._rows_by_key[wrong[0]].place}: {values} sum to {row.sum():g}; expected "
            "probabilities, which are 0 to 1 and sum to 1 (within 0.002), not counts or "
            "percentages; or logits, some of which are negative"
        )


def _id(place: str, row: Mapping[str, Any]) -> int:
    value = row.get("id")
    if value is None:
        raise BadInput(f"{place}: field `id` is missing; found: {_names_of(row)}")
    number = to_whole_number(value.strip()) if isinstance(value, str) else value
    if type(number) is not int or not 0 <= number < MAX_NUMBER:
        raise BadInput(f"{place}, field `id`: {quoted(value)[:40]} is not a whole number from 0")
    return number


def _id_text(key: tuple[str, int]) -> str:
    language, number = key
    return f"{number} ({language})" if language else str(number)


def _language(place: str, row: Mapping[str, Any]) -> str:
    value = row.get("language") or ""
    if not isinstance(value, str):
        raise BadInput(f"{place}, field `language`: {quoted(value)[:40]} is not a text")
    return value.strip()


def _number(place: str, name: str, value: object) -> float:
    number = to_number(value.strip()) if isinstance(value, str) else value
    # NaN is outside of every range.
    if type(number) not in (int, float) or not -MAX_NUMBER < number < MAX_NUMBER:  # type: ignore[operator]
        raise BadInput(
            f"{place}, field `{name}`: {quoted(value)[:40]} is not a number "
            f"from -{MAX_NUMBER:g} to {MAX_NUMBER:g}"
        )
    return float(number)  # type: ignore[arg-type]


def _names_of(row: Mapping[str, Any]) -> str:
    return plain(", ".join(map(str, row)))[:80]
