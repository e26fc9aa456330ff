"""Requests and results of a batch in OpenAI's form: JSON Lines with a `custom_id` in each line.

This id ends with a hash of the names of a request and of its body, so that we never take the answer
to another prompt, or of another model, for an answer to this request.
"""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from bench.config import Generation
from bench.core.errors import BadInput
from bench.core.progress import say
from bench.data.readers import read_json_lines, read_lines
from bench.scorers.base import Answer, Model, digest
from bench.scorers.endpoint import responses
from bench.scorers.endpoint.chat import OPENED, Chat, thoughts_in
from bench.scorers.endpoint.responses import Refusal, Unanswered, at
from bench.tasks.request import Request

# Services take ids of at most 64 letters, digits, hyphens and underscores.
LONGEST = 64


class Batch(Model):
    """A model whose answers are in a file of results, or in a folder of such files.

    Args:
        source: None if there are no results yet.
        name: the model's name at the service.
    """

    request_types = ("choose", "generate")
    answer_modes = ("text", "letters")

    def __init__(self, source: Path | None, name: str, generation: Generation) -> None:
        self.source, self.chat = source, Chat(name, generation)
        self.unsupported = {"nll": "a batch tells no probabilities of a text's tokens"}
        # By id: the place of the last result, and all results; an answer may follow failures.
        self._places: dict[str, str] = {}
        self._results: dict[str, list[dict[str, Any] | Unanswered | Refusal]] = {}
        paths = sorted(source.glob("*.jsonl*")) if source and source.is_dir() else [source]
        for path in filter(None, paths):
            for number, line in read_json_lines(path, replies=True):
                self._add(f"{path}, line {number}", line)
        if source and not self._places:
            raise BadInput(f"{source}: holds no results (*.jsonl); put those of a batch there")

    def _add(self, place: str, line: Mapping[str, Any]) -> None:
        custom_id = line.get("custom_id")
        if not isinstance(custom_id, str) or not {"response", "error"} & line.keys():
            fields = "`custom_id`, and `response` or `error`"
            raise BadInput(f"{place}: is no result of a batch in OpenAI's form, with {fields}")
        results = self._results.setdefault(custom_id, [])
        if results and not isinstance(results[-1], Refusal):
            where = f"{place}, and {self._places[custom_id]}"
            raise BadInput(f"{where}: are both answers to {custom_id}; leave one of them out")
        self._places[custom_id] = place
        results.append(result := _result(place, line))
        with suppress(Unanswered):
            if isinstance(result, dict) and thoughts_in(result["choices"][0]) == OPENED:
                self.chat.thoughts = OPENED

    def describe(self) -> dict[str, Any]:
        names = [at(results[-1], "model") for results in self._results.values()]
        return {
            "kind": "results of a batch (OpenAI's protocol)",
            "id": self.chat.name,
            **self.chat.describe(),
            # The service's own names of the model.
            "answered_as": [name for name in dict.fromkeys(names) if isinstance(name, str)],
            "lacks": self.unsupported,
        }

    def find(self, request: Request) -> Answer | Refusal | None:
        """Return the answer to a request, or the last failure of the service."""
        results = self._results.get(self.id_of(request), [])
        for failure in results:
            if isinstance(failure, Refusal):
                self.chat.learn(self.chat.accepted(self.chat.body(request)), failure)
        result = results[-1] if results else None
        if result is None or isinstance(result, Refusal):
            return result
        try:
            if isinstance(result, Unanswered):
                raise result
            return self.chat.read(request, result)
        except Unanswered as reason:
            return Answer("", error=str(reason))

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        """Return the answers to requests; a request that failed at the service has an error."""
        answers = []
        for request in requests:
            found = self.find(request)
            if found is None:
                raise BadInput(
                    f"{self.source}: has no answer to {self.id_of(request)}; `bench requests` with "
                    f"the same options and --results {self.source} writes all that are left"
                )
            answers.append(found if isinstance(found, Answer) else Answer("", error=found.reason))
        return answers

    def cover(self, requests: Sequence[Request]) -> None:
        """Refuse results that lack answers, or that answer other requests; report failures."""
        self.check_known(requests)
        self.answer([request for request in requests if not request.then and not request.of_judge])
        last = [results[-1] for results in self._results.values()]
        if failed := [result for result in last if isinstance(result, Refusal)]:
            say(f"{len(failed):,} requests failed at the service, such as {failed[0]}")

    def check_known(self, requests: Sequence[Request]) -> None:
        """Refuse results with an id of none of these requests.

        Of a request that needs an earlier reply, we know the names, but not yet the hash.
        """
        ids = {self.id_of(request) for request in requests if not request.then}
        names = {_readable(request) for request in requests if request.then or request.of_judge}
        for custom_id, place in self._places.items():
            if custom_id not in ids and custom_id.rpartition("-")[0] not in names:
                raise BadInput(
                    f"{place}: {custom_id} is the id of no request of this run; give the options "
                    "of the first `bench requests`, and only its results"
                )

    def id_of(self, request: Request) -> str:
        """Return the id of a request: readable names, and a hash."""
        names = (request.task, request.item_id, request.request, request.repeat)
        return f"{_readable(request)}-{digest([*names, self.chat.body(request)])}"

    def line(self, request: Request) -> dict[str, Any]:
        """Return the line of a batch file that asks a request."""
        body = self.chat.accepted(self.chat.body(request))
        url = "/v1/chat/completions"
        return {"custom_id": self.id_of(request), "method": "POST", "url": url, "body": body}


def _readable(request: Request) -> str:
    names = (request.task, request.item_id, request.request, request.repeat)
    readable = "-".join(re.sub("[^A-Za-z0-9]+", "_", str(name)).strip("_") for name in names)
    return readable[: LONGEST - 17]  # leave room for a hyphen and the hash


def _result(place: str, line: Mapping[str, Any]) -> dict[str, Any] | Unanswered | Refusal:
    """Return the answer of a result, the reason of a refused text, or a failure of the service."""
    response = line.get("response")
    code = str(at(response, "status_code"))
    status = int(code) if code.isdecimal() else 0
    # Some services give the answer itself as the response, or write the body as a text.
    body: Any = at(response, "body") or response
    if isinstance(body, str):
        with suppress(ValueError, RecursionError):
            body = json.loads(body)
    texts = "\n".join(responses.error_texts([line.get("error"), body]))
    answer: dict[str, Any] | None = None
    try:
        choice = responses.first_choice(body)
        if not choice or status >= 400:
            responses.check_refused_text(status or 400, texts)
        elif str(end := choice.get("finish_reason")).lower() in responses.BROKEN_OFF:
            texts = f"broke off its reply ({end})"
        else:
            answer = {**body, "choices": [choice]}
            responses.text_of(choice)
            return answer
    except responses.Broken as broken:
        texts = str(broken)
    except Unanswered as refused:
        return answer or refused
    reason = f"status {status}: " * (status >= 400) + responses.first_line(texts)
    return Refusal(f"{place}: {reason}", reason, status, texts)


def is_batch(path: Path) -> bool:
    """Return whether a path has results of a batch: a folder, or lines with `custom_id`."""
    if path.suffix == ".csv" or not path.is_file():
        return path.is_dir()
    return '"custom_id"' in next((text for _, text in read_lines(path) if text.strip()), "")
