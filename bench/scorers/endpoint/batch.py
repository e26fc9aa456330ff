"""Requests and results of a batch in OpenAI's form: JSON Lines with a `custom_id` in each line.

The id ends with a hash of the request. So the answer of another model, or to another prompt, has
another id.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.config import Generation
from bench.core.errors import BadInput
from bench.core.progress import say
from bench.data.readers import read_json_lines, read_lines
from bench.scorers.base import Answer, Model, digest
from bench.scorers.endpoint import responses
from bench.scorers.endpoint.chat import OPENED, Chat, thoughts_in
from bench.scorers.endpoint.responses import Broken, Refusal, Unanswered, at
from bench.tasks.request import Request

# Services take ids of at most 64 letters, digits, hyphens and underscores; the hash has 16.
LONGEST_NAMES = 64 - 17


class Batch(Model):
    """The model `name` of a service, with the results of a batch in a file or folder, if any."""

    request_types = ("choose", "generate")
    answer_modes = ("text", "letters")
    unsupported: Mapping[str, str] = {"nll": "a batch tells no probabilities of a text's tokens"}

    def __init__(self, source: Path | None, name: str, options: Generation) -> None:
        self.source, self.chat = source, Chat(name, options)
        # Places and results by id: a body, an error that is the answer, or the service's failure.
        self._results: dict[str, tuple[str, dict[str, Any] | Answer | Refusal]] = {}
        paths = sorted(source.glob("*.jsonl*")) if source and source.is_dir() else [source]
        for path in filter(None, paths):
            for number, line in read_json_lines(path, replies=True):
                location, custom_id = f"{path}, line {number}", line.get("custom_id")
                if not isinstance(custom_id, str) or not {"response", "error"} & line.keys():
                    raise BadInput(
                        f"{location}: is no result of a batch in OpenAI's form, with `custom_id`, "
                        "and `response` or `error`"
                    )
                earlier, result = self._results.get(custom_id, ("", None))
                if result and not isinstance(result, Refusal):  # which a later answer replaces
                    raise BadInput(
                        f"{location}, and {earlier}: are both answers to {custom_id}; leave one of "
                        "them out"
                    )
                self._results[custom_id] = location, self._result(location, line)
        if source and not self._results:
            raise BadInput(f"{source}: holds no results (*.jsonl); put those of a batch there")

    def _result(self, location: str, line: Mapping[str, Any]) -> dict[str, Any] | Answer | Refusal:
        response, error = line.get("response"), line.get("error")
        # Some services give the answer itself as the response, or write the body as a text.
        body: Any = at(response, "body") or response
        if isinstance(body, str):
            body = responses.parsed(body, "")
        if isinstance(at(body, "choices"), dict):  # SGLang has one choice in place of a list
            body = {**body, "choices": [body["choices"]]}
        code = str(at(response, "status_code"))
        status = int(code) if code.isdecimal() else 0
        reason = "\n".join(responses.error_texts([error, body]))
        answer = None
        try:
            if status < 400 and not error:
                status, reason = responses.error_in(body)
                if not status:
                    answer = body
                    if thoughts_in(body["choices"][0]) == OPENED:
                        self.chat.thoughts = OPENED
                    return answer
            responses.check_refused_text(status or 400, reason)
        except Broken as broken:
            reason = str(broken)
        except Unanswered as refused:
            return answer or Answer("", error=str(refused))
        first = f"status {status}: " * (status >= 400) + responses.first_line(reason)
        return Refusal(location, first, status)

    def describe(self) -> dict[str, Any]:
        names = [at(result, "model") for _, result in self._results.values()]
        return {
            "kind": "results of a batch (OpenAI's protocol)",
            "id": self.chat.name,
            **self.chat.describe(),
            # The service's own names of the model.
            "answered_as": [name for name in dict.fromkeys(names) if isinstance(name, str)],
            "unsupported": self.unsupported,
        }

    def find(self, request: Request) -> Answer | Refusal | None:
        """Return the answer to a request, or the last failure of the service."""
        _, result = self._results.get(self.id_of(request), ("", None))
        try:
            return self.chat.read(request, result) if isinstance(result, dict) else result
        except Broken as reason:  # letters without probabilities
            return Answer("", error=str(reason))

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        """Return the answers to requests; a request that failed at the service has an error."""
        answers = []
        for request in requests:
            answer = self.find(request)
            if answer is None:
                raise BadInput(
                    f"{self.source}: has no answer to {self.id_of(request)}; `bench requests` with "
                    f"the same options and --results {self.source} writes all that are left"
                )
            answers.append(
                Answer("", error=answer.reason) if isinstance(answer, Refusal) else answer
            )
        return answers

    def cover(self, requests: Sequence[Request]) -> None:
        """Refuse results that lack answers, and report failures of the service."""
        self.answer([request for request in requests if not request.then and not request.of_judge])
        results = [result for _, result in self._results.values()]
        if failed := [result for result in results if isinstance(result, Refusal)]:
            again = f"`bench requests` with --results {self.source} writes them again"
            say(f"failed at the service: {len(failed):,} requests ({again}), first {failed[0]}")

    def id_of(self, request: Request) -> str:
        """Return the id of a request: readable names, and a hash."""
        names = (request.task, request.item_id, request.request, request.repeat)
        parts = [re.sub("[^A-Za-z0-9]+", "_", str(name)).strip("_") for name in names]
        return f"{'-'.join(parts)[:LONGEST_NAMES]}-{digest([*names, self.chat.body(request)])}"


def is_batch(path: Path) -> bool:
    """Return whether a path has results of a batch: a folder, or lines with `custom_id`."""
    if path.suffix == ".csv" or not path.is_file():
        return path.is_dir()
    return '"custom_id"' in next((text for _, text in read_lines(path) if text.strip()), "")
