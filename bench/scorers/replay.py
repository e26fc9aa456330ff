"""Answers from other programs; docs/formats.md describes the files.

`replay:FILE` has an answer of a language model per line of JSON Lines or row of a CSV table. We
find it by its names or by its exact prompt. People who grade replies by hand fill in such a table.
Results of a batch are in `scorers.endpoint.batch`. For example:

    {"task": "ss", "item_id": "gender:1", "request": "甲|乙", "repeat": 0, "response": "A"}
    {"prompt": "...", "response": "A"}

`predictions:FILE` has a pair of an NLI model per line, with its released id and, if there are
several languages, `language`. Of equally probable labels we take the first of `LABELS`.

    {"id": 2000, "label": "neutral"}
    {"id": 2000, "entailment": 0.1, "contradiction": 0.2, "neutral": 0.7}

`lm-eval:FILE` has samples of lm-evaluation-harness for a task of `bench export`: `doc` is the
question, `resps` the reply, or the log-likelihood of each letter. The results file beside this file
names the model.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationError,
)

from bench.core.cells import to_number, unguarded
from bench.core.errors import BadInput, explained, plain, quoted
from bench.data.readers import as_path, open_file, read_json_lines, read_table, read_text
from bench.scorers.base import VERBS, Answer, Model
from bench.scorers.endpoint import batch
from bench.tasks import READ
from bench.tasks.nli_labels import LABELS, label
from bench.tasks.request import Request

NAMES = ("task", "item_id", "request")
# The options of a logged choice.
LETTERS = "ABC"
# Rounded probabilities may not sum to 1 exactly.
TOLERANCE = 0.002 + 1e-9

Scalar = StrictStr | StrictInt | StrictFloat
WholeNumber = Annotated[int, Field(ge=0, lt=10**15)]


class _Row(BaseModel):
    """The fields of a row that we read; we ignore others."""

    model_config = ConfigDict(allow_inf_nan=False)

    @classmethod
    def read(cls, place: str, fields: Mapping[str, Any]) -> Self:
        try:
            return cls(**fields)
        except ValidationError as error:
            first = error.errors()[0]
            name, problem = first["loc"][0], explained(first)
            if first["type"] == "missing":
                found = plain(", ".join(map(str, fields)))[:80]
                raise BadInput(f"{place}: field `{name}` is missing; found: {found}") from None
            raise BadInput(f"{place}, field `{name}`: {problem}") from None


class _Reply(_Row):
    """A row of a replay, with its prompt or the names of its request."""

    prompt: StrictStr = ""
    task: StrictStr = ""
    item_id: StrictStr = ""
    request: StrictStr = ""
    repeat: WholeNumber = 0
    response: Scalar


class _Prediction(_Row):
    id: WholeNumber
    language: StrictStr = ""
    label: Scalar = ""
    entailment: float | None = None
    contradiction: float | None = None
    neutral: float | None = None


class _Recorded(Model):
    """A file of recorded answers."""

    kind: str
    prefix: str
    holds: str
    request_types = VERBS
    answer_modes = tuple(READ)
    from_file = True
    is_free = True
    stays_here = True

    def __init__(self, rest: str | Path, name: str = "") -> None:
        self.path = as_path(rest)
        self.name = name or f"{self.prefix}:{self.path.name}"

    @classmethod
    def check(cls, rest: str) -> None:
        if not as_path(rest).is_file():
            raise BadInput(f"{rest}: no such file of {cls.holds} (model {cls.prefix}:{rest})")

    def describe(self) -> dict[str, Any]:
        with open_file(self.path) as stream:
            revision = hashlib.file_digest(stream, "sha256").hexdigest()[:16]
        return {"kind": self.kind, "id": self.name, "revision": revision}

    def _rows(
        self, columns: Sequence[str] = (), more: Sequence[str] = ()
    ) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield the place of each row, for messages, and its fields."""
        if self.path.suffix == ".csv":
            for cells in read_table(self.path, columns, more, replies=True):
                yield f"{self.path}, row {cells.number}", cells
            return
        for line, fields in read_json_lines(self.path):
            yield f"{self.path}, line {line}", fields


class Replay(_Recorded):
    """Returns the responses of a file; a missing answer is an error that names the request.

    Args:
        as_model: the name of the model that gave the answers.
    """

    kind, prefix = "recorded answers", "replay"
    holds = "recorded answers"
    takes = ("as_model", "generation")

    def __init__(self, rest: str | Path, as_model: str = "", **_: Any) -> None:
        super().__init__(rest, as_model)
        self._answers: dict[tuple[Any, ...], str] = {}
        is_table = self.path.suffix == ".csv"
        for place, fields in self._rows((*NAMES, "response"), ("repeat",)):
            names = ("prompt",) if "prompt" in fields and not is_table else NAMES
            if missing := [name for name in names if name not in fields]:
                wanted = f"expected {', '.join(NAMES)}, or prompt; and response"
                raise BadInput(f"{place}: field `{missing[0]}` is missing; {wanted}")
            row = _Reply.read(place, fields)
            key: tuple[Any, ...] = tuple(getattr(row, name) for name in names)
            if "reply" in fields and is_table:
                # Only the sheets of `bench mark` guard cells by an apostrophe.
                key = tuple(map(unguarded, key))
            if names == NAMES:
                key = (*key, row.repeat)
            if key in self._answers:
                raise BadInput(
                    f"{place}: answers the same request as an earlier line: {quoted(key)}"
                )
            self._answers[key] = str(row.response)

    @classmethod
    def check(cls, rest: str) -> None:
        if not as_path(rest).is_dir():  # of results of a batch
            super().check(rest)

    @classmethod
    def writes_replies(cls, rest: str) -> bool:
        """Return whether these are results of a batch, made with options of generation."""
        return batch.is_batch(as_path(rest))

    @classmethod
    def load(cls, rest: str, **options: Any) -> Model:
        path = as_path(rest)
        if not batch.is_batch(path):
            return cls(rest, **options)
        if name := options.get("as_model"):
            return batch.Batch(path, name, options["generation"])
        raise BadInput(
            f"{path}: holds results of a batch; name the model that gave them by --as-model "
            "NAME (a judge by --as-judge NAME), as in `bench requests`"
        )

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        answers = []
        for request in requests:
            key = (request.task, request.item_id, request.request, request.repeat)
            response = self._answers.get(key, self._answers.get((request.text,)))
            if response is None:
                raise BadInput(
                    f"{self.path}: has no answer for task {request.task!r}, item_id "
                    f"{request.item_id!r}, request {request.request!r}, repeat {request.repeat}"
                )
            answers.append(Answer(response))
        return answers


class HarnessSamples(_Recorded):
    """Returns the samples of `lm_eval --log_samples` for a task of `bench export`."""

    kind, prefix = "answers logged by lm-evaluation-harness", "lm-eval"
    holds = "samples of lm-evaluation-harness"

    def __init__(self, rest: str | Path) -> None:
        super().__init__(rest)
        path = self.path
        self._answers: dict[tuple[str, ...], tuple[str, Answer]] = {}
        n_options: set[int] = set()
        for place, fields in self._rows():
            question, logged = fields.get("doc"), fields.get("resps")
            try:
                key = tuple(str(question[name]) for name in NAMES)  # type: ignore[index]
                prompt = str(question["prompt"])  # type: ignore[index]
                values = [response[0] for response in logged]  # type: ignore[union-attr]
                n_options.add(len(values))
                answer = Answer(values[0]) if len(values) == 1 else _likeliest(values)
            except (TypeError, KeyError, IndexError, ValueError):
                raise BadInput(
                    f"{place}: is no logged sample of a task that `bench export cbbq --as "
                    "lm-eval` wrote; give the file samples_TASK_DATE.jsonl of `--log_samples`"
                ) from None
            self._answers[key] = prompt, answer
        if n_options == {1}:
            self.request_types, self.answer_modes = ("generate",), ("text",)
        elif n_options == {len(LETTERS)}:
            self.request_types, self.answer_modes = ("choose",), ("letters",)
        else:
            raise BadInput(f"{path}: holds no samples, or those of several tasks")
        self._results = _results_beside(path)
        named = self._results.get("model_name") or path.parent.name.replace("__", "/")
        self.name = self.display_name = str(named or self.name)

    def describe(self) -> dict[str, Any]:
        metadata, config = super().describe(), self._results.get("config", {})
        known = {
            "revision": config.get("model_sha") or metadata["revision"],
            "dtype": config.get("model_dtype"),
            "parameters": config.get("model_num_parameters"),
            "harness": self._results.get("lm_eval_version"),
            "samples": self.path.name,
        }
        return metadata | {name: value for name, value in known.items() if value}

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        answers = []
        for request in requests:
            key = request.task, request.item_id, request.request
            prompt, answer = self._answers.get(key, ("", None))
            if answer is None:
                raise BadInput(
                    f"{self.path}: has no sample of item {request.item_id!r}, request "
                    f"{request.request!r}; give the --data, --categories, --limit and --set of "
                    "`bench export`, and lm_eval no --limit"
                )
            if prompt != request.text:
                raise BadInput(
                    f"{self.path}: item {request.item_id!r} was asked with another prompt; give "
                    "the --prompts and --data of `bench export`"
                )
            answers.append(answer)
        return answers


def _likeliest(values: Sequence[Any]) -> Answer:
    """Answer with the likeliest letter, the first one if several are equal."""
    logprobs = tuple(float(value) for value, _is_greedy in values)
    return Answer(LETTERS[logprobs.index(max(logprobs))], logprobs)


def _results_beside(samples: Path) -> dict[str, Any]:
    """Read the results file of the same date as a file of samples; empty if there is none."""
    date = samples.stem.rpartition("_")[2]
    try:
        content = json.loads(read_text(samples.with_name(f"results_{date}.json")))
    except (BadInput, OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


class Predictions(_Recorded):
    """Returns the prediction of each pair's id.

    Args:
        label_names: the meanings of LABEL_0, LABEL_1 and LABEL_2.
    """

    prefix = "predictions"
    holds = "predictions"
    request_types = ("classify",)
    answer_modes = ()
    takes = ("label_names",)

    def __init__(self, rest: str | Path, label_names: Sequence[str] = ()) -> None:
        super().__init__(rest)
        self._meaning = {f"label_{k}": name for k, name in enumerate(label_names)}
        self._places: dict[tuple[str, int], str] = {}
        self._answers: dict[tuple[str, int], Answer] = {}
        for place, fields in self._rows(("id",), ("language", "label", *LABELS)):
            given = {name: value for name, value in fields.items() if value not in (None, "")}
            row = _Prediction.read(place, given)
            key = row.language.strip(), row.id
            if before := self._places.get(key):
                earlier = before.removeprefix(f"{self.path}, ")
                raise BadInput(
                    f"{place}: id {_id_text(key)} is in {earlier} already; every pair needs one"
                )
            self._places[key], self._answers[key] = place, self._answer(place, row)
        if not self._places:
            raise BadInput(f"{self.path}: holds no predictions")
        self._has_languages = any(language for language, _ in self._places)
        for (language, _), place in self._places.items():
            if self._has_languages and not language:
                raise BadInput(f"{place}: field `language` is missing, which other rows have")
        has_numbers = any(answer.logprobs for answer in self._answers.values())
        self.kind = f"predictions from a file ({'probabilities' if has_numbers else 'labels'})"

    def cover(self, requests: Sequence[Request], known: Callable[[], Iterable[str]]) -> None:
        """Check that each request has a prediction, and each prediction a pair in the data.

        A file may have more pairs than the requests, for example in a run of the down-sampled sets;
        `known` lists the item ids of the data, in the languages of the requests.
        """
        languages = list(dict.fromkeys(request.category for request in requests))
        if len(languages) > 1 and not self._has_languages:
            raise BadInput(
                f"{self.path}: field `language` is missing, and {', '.join(languages)} are asked; "
                "add it, or choose one with --categories"
            )
        ids = dict.fromkeys(request.item_id for request in requests)
        missing = [item_id for item_id in ids if self._key(item_id) not in self._places]
        if missing:
            first, _, first_id = missing[0].partition(":")
            raise BadInput(
                f"{self.path}: has no prediction for {len(missing):,} of {len(ids):,} pairs, "
                f"the first is id {first_id} ({first})"
            )
        in_data = set(known())
        for (language, number), place in self._places.items():
            item_id = f"{language or languages[0]}:{number}"
            if language in ("", *languages) and item_id not in in_data:
                raise BadInput(f"{place}: id {_id_text((language, number))} is not in the data")

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        keys = [self._key(request.item_id) for request in requests]
        for key in keys:
            if key not in self._answers:
                raise BadInput(f"{self.path}: has no prediction for id {_id_text(key)}")
        return [self._answers[key] for key in keys]

    def _key(self, item_id: str) -> tuple[str, int]:
        language, _, number = item_id.partition(":")
        return (language if self._has_languages else ""), int(number)

    def _answer(self, place: str, row: _Prediction) -> Answer:
        """Answer by a row's probabilities, or by its label."""
        numbers = {name: getattr(row, name) for name in LABELS}
        missing = [name for name, value in numbers.items() if value is None]
        if len(missing) == len(LABELS):
            return Answer(self._label(place, row.label))
        if missing:
            raise BadInput(
                f"{place}: field `{missing[0]}` is missing; expected all of {', '.join(LABELS)}"
            )
        row_values = np.array(list(numbers.values()))
        if row_values.min() < 0 or abs(row_values.sum() - 1) > TOLERANCE:
            values = ", ".join(f"{name} {value:g}" for name, value in numbers.items())
            raise BadInput(
                f"{place}: {values} sum to {row_values.sum():g}; expected probabilities, which are "
                "0 to 1 and sum to 1 (within 0.002), not counts, percentages or logits"
            )
        return Answer.of_probabilities(row_values, LABELS)

    def _label(self, place: str, name: object) -> str:
        if name == "":
            raise BadInput(
                f"{place}: field `label` is missing; expected it, or {', '.join(LABELS)}"
            )
        spelt = str(name).strip().lower()
        number = to_number(spelt)
        if number.is_integer():  # as data sets of the Hub have labels
            spelt = f"label_{number:.0f}"
        if known := self._meaning.get(spelt) or label(spelt):
            return known
        nameless = spelt.startswith("label_")
        hint = "; give their meaning with --label-names" if nameless else ""
        raise BadInput(
            f"{place}, field `label`: {quoted(name)[:40]} is unknown; "
            f"allowed: {', '.join(LABELS)}{hint}"
        )


def _id_text(key: tuple[str, int]) -> str:
    language, number = key
    return f"{number} ({language})" if language else str(number)
