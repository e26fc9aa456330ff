"""Recorded answers: `replay:FILE.jsonl`, an object a line, by name or by exact prompt; or `replay:FILE.csv`, by name.

{"task": "ss", "item_id": "gender:1", "request": "甲|乙", "repeat": 0, "response": "A"}
{"prompt": "...", "response": "A"}

A table has the columns task, item_id, request, response and, where there are several, repeat; other columns are passed
over. It is what people fill in who mark replies by hand.
"""

import hashlib
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.core.cells import to_whole_number, unguarded
from bench.core.errors import BadInput, quoted
from bench.data.readers import MAX_LINE, open_file, read_csv, read_json_lines
from bench.scorers.base import VERBS, Answer
from bench.tasks import READ
from bench.tasks.request import Request

NAMES = ("task", "item_id", "request")
MOST = 10**9


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The answers in a file, each with its place."""
    if path.suffix != ".csv":
        yield from ((f"{path}, line {line}", row) for line, row in read_json_lines(path))
        return
    # The table of `bench mark` holds replies, which may be long; they are passed over.
    for number, row in enumerate(
        read_csv(path, (*NAMES, "response"), ("repeat",), MAX_LINE), start=1
    ):
        repeat = to_whole_number(row.get("repeat", "0"))
        if repeat is None:
            raise BadInput(
                f"{path}, row {number}, column `repeat`: {quoted(row['repeat'])} is not a whole number"
            )
        # Only a table of `bench mark` has its cells guarded; another's apostrophe is its own.
        names = {name: unguarded(row[name]) if "reply" in row else row[name] for name in NAMES}
        yield f"{path}, row {number}", {**names, "repeat": repeat, "response": row["response"]}


class Replay:
    """Gives back what a file says; an answer that it lacks is an error that names the request."""

    verbs: tuple[str, ...] = VERBS
    reads: tuple[str, ...] = tuple(READ)

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise BadInput(f"{path}: no such file of recorded answers")
        self.path = path
        self._answers: dict[tuple[Any, ...], str] = {}
        for place, row in _rows(path):
            self._answers[self._key(place, row)] = self._response(place, row)

    def describe(self) -> dict[str, Any]:
        with open_file(self.path) as stream:
            revision = hashlib.file_digest(stream, "sha256").hexdigest()[:16]
        return {"kind": "recorded answers", "id": f"replay:{self.path.name}", "revision": revision}

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        return [Answer(self._find(request)) for request in requests]

    def _find(self, request: Request) -> str:
        named = (request.task, request.item_id, request.request, request.repeat)
        for key in (named, (request.text,)):
            if key in self._answers:
                return self._answers[key]
        raise BadInput(
            f"{self.path}: has no answer for task {request.task!r}, item_id {request.item_id!r}, "
            f"request {request.request!r}, repeat {request.repeat}"
        )

    def _key(self, place: str, row: dict[str, Any]) -> tuple[Any, ...]:
        if "prompt" in row:
            key: tuple[Any, ...] = (row["prompt"],)
        else:
            missing = next((name for name in NAMES if name not in row), None)
            if missing:
                raise BadInput(
                    f"{place}: field `{missing}` is missing; expected {', '.join(NAMES)}, or prompt"
                )
            key = (*(row[name] for name in NAMES), row.get("repeat", 0))
            if type(key[-1]) is not int or not 0 <= key[-1] < MOST:
                raise BadInput(
                    f"{place}, field `repeat`: {quoted(key[-1])} is not a whole number from 0"
                )
        for name, part in zip(("prompt",) if len(key) == 1 else NAMES, key, strict=False):
            if not isinstance(part, str):
                raise BadInput(f"{place}, field `{name}`: {quoted(part)} is not a text")
        if key in self._answers:
            raise BadInput(f"{place}: answers the same request as an earlier line: {quoted(key)}")
        return key

    def _response(self, place: str, row: dict[str, Any]) -> str:
        if "response" not in row:
            raise BadInput(f"{place}: field `response` is missing")
        response = row["response"]
        if isinstance(response, str):
            return response
        if (
            isinstance(response, int | float)
            and not isinstance(response, bool)
            and math.isfinite(response)
        ):
            return repr(response)
        raise BadInput(
            f"{place}, field `response`: {quoted(response)} is neither text nor a number"
        )
