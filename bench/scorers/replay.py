"""Answers from other programs, in the forms of docs/formats.md.

`replay:FILE` has an answer of a language model per line, which we find by its names or by its exact
prompt; people who grade replies by hand fill in such a table. `predictions:FILE` has the label or
the probabilities of a pair per line. Results of a batch are in `scorers.endpoint.batch`.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy as np
from pydantic import BaseModel, Field, StrictFloat, StrictInt, StrictStr, ValidationError

from bench.core.errors import BadInput, explained, quoted
from bench.core.inputs import hash_file
from bench.data.readers import as_path, read_json_lines, read_table
from bench.scorers.base import REQUEST_TYPES, Answer, Model
from bench.scorers.endpoint import batch
from bench.tasks import ANSWER_MODES
from bench.tasks.nli_labels import LABELS, label
from bench.tasks.request import Request

NAMES = ("task", "item_id", "request")
# Rounded probabilities may not sum to 1 exactly.
TOLERANCE = 0.002 + 1e-9

WholeNumber = Annotated[int, Field(ge=0, lt=10**15)]
Key = tuple[Any, ...]


class _Reply(BaseModel, allow_inf_nan=False):
    """A row of a replay, with its prompt or the names of its request; we ignore other fields."""

    prompt: StrictStr = ""
    task: StrictStr = ""
    item_id: StrictStr = ""
    request: StrictStr = ""
    repeat: WholeNumber = 0
    response: StrictStr | StrictInt | StrictFloat


class _Prediction(BaseModel, allow_inf_nan=False):
    id: WholeNumber
    language: StrictStr = ""
    label: StrictStr = ""
    entailment: float | None = None
    contradiction: float | None = None
    neutral: float | None = None


Row = TypeVar("Row", bound=BaseModel)


def _row(row_type: type[Row], location: str, fields: Mapping[str, Any]) -> Row:
    try:
        return row_type(**fields)
    except ValidationError as error:
        first = error.errors()[0]
        raise BadInput(f"{location}, field `{first['loc'][0]}`: {explained(first)}") from None


class _Recorded(Model):
    """A file of recorded answers."""

    kind: str
    prefix: str
    request_types = REQUEST_TYPES
    answer_modes = tuple(ANSWER_MODES)
    from_file = True
    is_free = True
    stays_here = True

    def __init__(self, path: str | Path, name: str = "") -> None:
        self.path = as_path(path)
        self.name = name or f"{self.prefix}:{self.path.name}"
        self._answers: dict[Key, Answer] = {}

    @classmethod
    def check(cls, name: str) -> None:
        if not as_path(name).is_file():
            raise BadInput(f"{name}: no such file of {cls.kind} (model {cls.prefix}:{name})")

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "id": self.name, "revision": hash_file(self.path)[:16]}

    def keys(self, request: Request) -> list[Key]:
        """Return the keys that a request can have in the file."""
        raise NotImplementedError

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        answers = []
        for request in requests:
            keys = [key for key in self.keys(request) if key in self._answers]
            if not keys:
                raise BadInput(
                    f"{self.path}: has no answer for task {request.task!r}, item_id "
                    f"{request.item_id!r}, request {request.request!r}, repeat {request.repeat}"
                )
            answers.append(self._answers[keys[0]])
        return answers

    def _rows(
        self, columns: Sequence[str], optional: Sequence[str]
    ) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield the location of each row, for messages, and its fields."""
        if self.path.suffix == ".csv":
            for cells in read_table(self.path, columns, optional, replies=True):
                yield f"{self.path}, row {cells.number}", cells
        else:
            for line, fields in read_json_lines(self.path, replies=True):
                yield f"{self.path}, line {line}", fields

    def _add(self, location: str, key: Key, answer: Answer) -> None:
        if key in self._answers:
            raise BadInput(
                f"{location}: answers the same request as an earlier line: {quoted(key)}"
            )
        self._answers[key] = answer


class Replay(_Recorded):
    """Returns the responses of a file, which the model `as_model` gave."""

    kind, prefix = "recorded answers", "replay"
    takes = ("as_model", "generation")

    def __init__(self, path: str | Path, as_model: str = "", **_: Any) -> None:
        super().__init__(path, as_model)
        is_table = self.path.suffix == ".csv"
        for location, fields in self._rows((*NAMES, "response"), ("repeat",)):
            by_prompt = "prompt" in fields and not is_table
            if missing := [name for name in NAMES if name not in fields and not by_prompt]:
                expected = f"expected {', '.join(NAMES)}, or prompt; and response"
                raise BadInput(f"{location}: field `{missing[0]}` is missing; {expected}")
            row = _row(_Reply, location, fields)
            names = (row.task, row.item_id, row.request, row.repeat)
            self._add(location, (row.prompt,) if by_prompt else names, Answer(str(row.response)))

    @classmethod
    def check(cls, name: str) -> None:
        if not as_path(name).is_dir():  # of results of a batch
            super().check(name)

    @classmethod
    def writes_replies(cls, name: str) -> bool:
        """Return whether these are results of a batch, made with options of generation."""
        return batch.is_batch(as_path(name))

    @classmethod
    def load(cls, name: str, **options: Any) -> Model:
        path = as_path(name)
        if not batch.is_batch(path):
            return cls(path, **options)
        if as_model := options.get("as_model"):
            return batch.Batch(path, as_model, options["generation"])
        raise BadInput(
            f"{path}: holds results of a batch; name the model that gave them by --as-model "
            "NAME (a judge by --as-judge NAME), as in `bench requests`"
        )

    def keys(self, request: Request) -> list[Key]:
        names = (request.task, request.item_id, request.request, request.repeat)
        return [names, (request.text,)]


class Predictions(_Recorded):
    """Returns the prediction of each pair's id."""

    kind, prefix = "predictions", "predictions"
    request_types = ("classify",)
    answer_modes = ()

    def __init__(self, path: str | Path) -> None:
        super().__init__(path)
        for location, fields in self._rows(("id",), ("language", "label", *LABELS)):
            filled = {name: value for name, value in fields.items() if value not in (None, "")}
            row = _row(_Prediction, location, filled)
            self._add(location, (row.language.strip(), row.id), _predicted(location, row))
        languages = {language for language, _ in self._answers}
        if not languages:
            raise BadInput(f"{self.path}: holds no predictions")
        if "" in languages and len(languages) > 1:
            raise BadInput(f"{self.path}: field `language` is missing in some rows")
        self._has_languages = "" not in languages
        has_numbers = any(answer.logprobs for answer in self._answers.values())
        self.kind = f"predictions from a file ({'probabilities' if has_numbers else 'labels'})"

    def cover(self, requests: Sequence[Request]) -> None:
        """Check that there is a prediction for each request; a file may have more."""
        languages = dict.fromkeys(request.category for request in requests)
        if len(languages) > 1 and not self._has_languages:
            raise BadInput(
                f"{self.path}: field `language` is missing, and {', '.join(languages)} are asked; "
                "add it, or choose one with --categories"
            )
        self.answer(requests)

    def keys(self, request: Request) -> list[Key]:
        language, _, number = request.item_id.partition(":")
        return [(language if self._has_languages else "", int(number))]


def _predicted(location: str, row: _Prediction) -> Answer:
    """Answer by the probabilities of a row, or by its label."""
    numbers = [getattr(row, name) for name in LABELS]
    if numbers == [None] * len(LABELS):
        if name := label(row.label):
            return Answer(name)
        raise BadInput(
            f"{location}, field `label`: {quoted(row.label)} is unknown; "
            f"allowed: {', '.join(LABELS)}"
        )
    if None in numbers:
        missing = LABELS[numbers.index(None)]
        raise BadInput(
            f"{location}: field `{missing}` is missing; expected all of {', '.join(LABELS)}"
        )
    probabilities = np.array(numbers)
    if probabilities.min() < 0 or abs(probabilities.sum() - 1) > TOLERANCE:
        values = ", ".join(f"{name} {value:g}" for name, value in zip(LABELS, numbers, strict=True))
        raise BadInput(
            f"{location}: {values} sum to {probabilities.sum():g}; expected probabilities, which "
            "are 0 to 1 and sum to 1 (within 0.002), not counts, percentages or logits"
        )
    return Answer.of_probabilities(probabilities, LABELS)
