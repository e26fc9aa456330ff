"""Answers that were recorded elsewhere: `replay:FILE` of a language model, `predictions:FILE` of an
NLI model, JSON Lines or a CSV table; `lm-eval:FILE`, what lm-evaluation-harness logged.

A replay has an answer per line, found by its names or by its exact prompt; a table has the columns
task, item_id, request, response and, where there are several, repeat; others are ignored. People
who grade replies by hand fill in such a table. Results of a batch are in `scorers.endpoint.batch`.

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

Logged samples are of tasks that `bench export` wrote: `doc` is the question, `resps` the reply, or
the log-likelihood of each letter. The results file beside them names the model.
"""

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.core.cells import to_number, to_whole_number, unguarded
from bench.core.errors import BadInput, plain, quoted
from bench.data.readers import as_path, open_file, read_json_lines, read_table, read_text
from bench.scorers.base import VERBS, Answer, Model
from bench.scorers.endpoint import batch
from bench.tasks import READ
from bench.tasks.nli_labels import LABELS, label
from bench.tasks.request import Request

NAMES = ("task", "item_id", "request")
# The options of a logged choice.
LETTERS = "ABC"
# Rounded probabilities may miss a sum of 1 by a little.
TOLERANCE = 0.002 + 1e-9
# No id of a pair, no repeat and no logit of a model comes near.
MAX_NUMBER = 10**15


class _Recorded(Model):
    """A file of recorded answers."""

    kind: str
    prefix: str
    holds: str
    verbs = VERBS
    reads = tuple(READ)
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

    def _rows(self, columns: Sequence[str], more: Sequence[str]) -> Iterator["_Row"]:
        if self.path.suffix != ".csv":
            for line, row in read_json_lines(self.path):
                yield _Row(f"{self.path}, line {line}", "field", row)
            return
        for row in read_table(self.path, columns, more, replies=True):
            yield _Row(f"{self.path}, row {row.number}", "column", row)


class _Row(NamedTuple):
    """A row of a file, and its place for messages."""

    place: str
    kind: str
    fields: Mapping[str, Any]

    def wrong(self, name: str, expected: str) -> BadInput:
        value = quoted(self.fields[name])[:40]
        return BadInput(f"{self.place}, {self.kind} `{name}`: {value} is {expected}")

    def require(self, *names: str, hint: str = "") -> None:
        for name in names:
            if self.fields.get(name) in (None, ""):
                problem = hint or f"found: {plain(', '.join(map(str, self.fields)))[:80]}"
                raise BadInput(f"{self.place}: {self.kind} `{name}` is missing; {problem}")

    def text(self, name: str) -> str:
        value = self.fields.get(name, "")
        if not isinstance(value, str):
            raise self.wrong(name, "not a text")
        return value

    def integer(self, name: str) -> int:
        value = self.fields.get(name, 0)
        number = to_whole_number(value.strip()) if isinstance(value, str) else value
        if type(number) is not int or not 0 <= number < MAX_NUMBER:
            raise self.wrong(name, "not a whole number from 0")
        return number

    def number(self, name: str) -> float:
        value = self.fields[name]
        number = to_number(value.strip()) if isinstance(value, str) else value
        # NaN is outside of every range.
        if type(number) not in (int, float) or not -MAX_NUMBER < number < MAX_NUMBER:
            raise self.wrong(name, f"not a number from -{MAX_NUMBER:g} to {MAX_NUMBER:g}")
        return float(number)


class Replay(_Recorded):
    """Returns what a file says; a missing answer is an error that names the request.

    `as_model` is the name of the model that gave the answers, if that is known.
    """

    kind, prefix = "recorded answers", "replay"
    holds = "recorded answers"
    takes = ("as_model", "generation")

    def __init__(self, rest: str | Path, as_model: str = "", **_: Any) -> None:
        super().__init__(rest, as_model)
        path = self.path
        self._answers: dict[tuple[Any, ...], str] = {}
        for row in self._rows((*NAMES, "response"), ("repeat",)):
            names = ("prompt",) if "prompt" in row.fields and path.suffix != ".csv" else NAMES
            for name in (*names, "response"):
                if name not in row.fields:
                    row.require(name, hint=f"expected {', '.join(NAMES)}, or prompt; and response")
            key: tuple[Any, ...] = tuple(map(row.text, names))
            if "reply" in row.fields and path.suffix == ".csv":
                # Only cells of `bench mark`, which has this column, are guarded by an apostrophe.
                key = tuple(map(unguarded, key))
            if names == NAMES:
                key = (*key, row.integer("repeat"))
            if key in self._answers:
                raise BadInput(
                    f"{row.place}: answers the same request as an earlier line: {quoted(key)}"
                )
            response = row.fields["response"]
            if type(response) in (int, float) and math.isfinite(response):
                response = repr(response)
            if not isinstance(response, str):
                raise row.wrong("response", "neither text nor a number")
            self._answers[key] = response

    @classmethod
    def check(cls, rest: str) -> None:
        if not as_path(rest).is_dir():  # of results of a batch
            super().check(rest)

    @classmethod
    def writes_replies(cls, rest: str) -> bool:
        """Tell whether these are results of a batch, which followed the options."""
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
    """Returns what `lm_eval --log_samples` logged for a task of `bench export`."""

    kind, prefix = "answers logged by lm-evaluation-harness", "lm-eval"
    holds = "samples of lm-evaluation-harness"

    def __init__(self, rest: str | Path) -> None:
        super().__init__(rest)
        path = self.path
        self._answers: dict[tuple[str, ...], tuple[str, Answer]] = {}
        n_options: set[int] = set()
        for row in self._rows((), ()):
            question, logged = row.fields.get("doc"), row.fields.get("resps")
            try:
                key = tuple(str(question[name]) for name in NAMES)  # type: ignore[index]
                prompt = str(question["prompt"])  # type: ignore[index]
                values = [response[0] for response in logged]  # type: ignore[union-attr]
                n_options.add(len(values))
                answer = Answer(values[0]) if len(values) == 1 else _likeliest(values)
            except (TypeError, KeyError, IndexError, ValueError):
                raise BadInput(
                    f"{row.place}: is no logged sample of a task that `bench export cbbq --as "
                    "lm-eval` wrote; give the file samples_TASK_DATE.jsonl of `--log_samples`"
                ) from None
            self._answers[key] = prompt, answer
        if n_options == {1}:
            self.verbs, self.reads = ("generate",), ("text",)
        elif n_options == {len(LETTERS)}:
            self.verbs, self.reads = ("choose",), ("letters",)
        else:
            raise BadInput(f"{path}: holds no samples, or those of several tasks")
        self._results = _results_beside(path)
        named = self._results.get("model_name") or path.parent.name.replace("__", "/")
        self.name = self.display_name = str(named or self.name)

    def describe(self) -> dict[str, Any]:
        about, config = super().describe(), self._results.get("config", {})
        known = {
            "revision": config.get("model_sha") or about["revision"],
            "dtype": config.get("model_dtype"),
            "parameters": config.get("model_num_parameters"),
            "harness": self._results.get("lm_eval_version"),
            "samples": self.path.name,
        }
        return about | {name: value for name, value in known.items() if value}

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
    """Answer with the likeliest letter, of equals the first."""
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

    `label_names` are what LABEL_0, LABEL_1 and LABEL_2 mean, where labels are called so.
    """

    prefix = "predictions"
    holds = "predictions"
    verbs = ("classify",)
    reads = ()
    takes = ("label_names",)

    def __init__(self, rest: str | Path, label_names: Sequence[str] = ()) -> None:
        super().__init__(rest)
        path = self.path
        self._meaning = {f"label_{k}": name for k, name in enumerate(label_names)}
        self._places: dict[tuple[str, int], str] = {}
        self._labels: dict[tuple[str, int], str] = {}
        numbers: dict[tuple[str, int], np.ndarray] = {}
        for row in self._rows(("id",), ("language", "label", *LABELS)):
            row.require("id")
            language = row.text("language").strip() if row.fields.get("language") else ""
            key = language, row.integer("id")
            if before := self._places.get(key):
                earlier = before.removeprefix(f"{path}, ")
                raise BadInput(
                    f"{row.place}: id {_id_text(key)} is in {earlier} already; every pair needs one"
                )
            self._places[key] = row.place
            prediction = self._read(row)
            if isinstance(prediction, str):
                self._labels[key] = prediction
            else:
                numbers[key] = np.array(prediction)
        if not self._places:
            raise BadInput(f"{path}: holds no predictions")
        self._has_languages = any(language for language, _ in self._places)
        for (language, _), place in self._places.items():
            if self._has_languages and not language:
                raise BadInput(f"{place}: field `language` is missing, which other rows have")
        form, self._probabilities = self._normalised(numbers)
        self.kind = f"predictions from a file ({form})"

    def cover(self, requests: Sequence[Request], known: Callable[[], Iterable[str]]) -> None:
        """Check that each request has a prediction, and each prediction a pair in the data.

        A file may have more than the requests, as where the down-sampled sets are evaluated;
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
        answers = []
        for request in requests:
            key = self._key(request.item_id)
            if key not in self._places:
                raise BadInput(f"{self.path}: has no prediction for id {_id_text(key)}")
            probabilities = self._probabilities.get(key)
            answers.append(
                Answer(self._labels[key])
                if probabilities is None
                else Answer.of_probabilities(probabilities, LABELS)
            )
        return answers

    def _key(self, item_id: str) -> tuple[str, int]:
        language, _, number = item_id.partition(":")
        return (language if self._has_languages else ""), int(number)

    def _read(self, row: _Row) -> str | list[float]:
        """Return a row's label, or where it has them its numbers in the order of `LABELS`."""
        names, scores = row.fields.get("label", row.fields.get("labels")), row.fields.get("scores")
        if isinstance(scores, list):
            if all(isinstance(entry, dict) for entry in scores):
                names = [entry.get("label") for entry in scores]
                scores = [entry.get("score") for entry in scores]
            named = [self._label(row, name) for name in names] if isinstance(names, list) else []
            if len(scores) != len(LABELS) or sorted(named) != sorted(LABELS):
                raise BadInput(
                    f"{row.place}, field `scores`: expected one for each of {', '.join(LABELS)}, "
                    "beside a list `label` of their names; call the pipeline with top_k=None"
                )
            row = row._replace(fields=dict(zip(named, scores, strict=True)))
        given = [name for name in LABELS if row.fields.get(name) not in (None, "")]
        if given:
            row.require(*LABELS, hint=f"expected it beside {', '.join(given)}")
            return [row.number(name) for name in LABELS]
        if names in (None, ""):
            row.require("label", hint=f"expected it, or {', '.join(LABELS)}")
        return self._label(row, names)

    def _label(self, row: _Row, name: object) -> str:
        spelt = str(name).strip().lower()
        number = to_number(spelt)
        if number.is_integer():  # as data sets of the Hub have labels
            spelt = f"label_{number:.0f}"
        if known := self._meaning.get(spelt) or label(spelt):
            return known
        nameless = spelt.startswith("label_")
        hint = "; give their meaning with --label-names" if nameless else ""
        raise BadInput(
            f"{row.place}, field `label`: {quoted(name)[:40]} is unknown; "
            f"allowed: {', '.join(LABELS)}{hint}"
        )

    def _normalised(
        self, rows: dict[tuple[str, int], np.ndarray]
    ) -> tuple[str, dict[tuple[str, int], np.ndarray]]:
        """Return what the numbers are, and the probabilities that they stand for."""
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
            f"{self._places[wrong[0]]}: {values} sum to {row.sum():g}; expected "
            "probabilities, which are 0 to 1 and sum to 1 (within 0.002), not counts or "
            "percentages; or logits, some of which are negative"
        )


def _id_text(key: tuple[str, int]) -> str:
    language, number = key
    return f"{number} ({language})" if language else str(number)
