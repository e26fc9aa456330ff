"""Results of a batch in OpenAI's form, as vLLM, SGLang, Alibaba and Zhipu write it: JSON Lines.

The `custom_id` of a request ends with a hash of its names and of its body, so that we never take
the answer to another prompt, or of another model, for an answer to this request.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from bench.config import Generation
from bench.core.errors import BadInput
from bench.data.readers import read_json_lines
from bench.scorers.base import Answer, Model, digest
from bench.scorers.endpoint import responses
from bench.scorers.endpoint.chat import OPENED, Chat, thoughts_in
from bench.scorers.endpoint.responses import Broken, Refusal, Unanswered, at
from bench.tasks.request import Request

# Services take ids of 6 to 64 letters, digits, hyphens and underscores.
LONGEST = 64


class Batch(Model):
    """A model with its answers in a file of results or a folder of such files (`*.jsonl`).

    Args:
        source: None if there are no results yet.
        name: the model's name at the service.
    """

    request_types = ("choose", "generate")
    answer_modes = ("text", "letters")

    def __init__(self, source: Path | None, name: str, generation: Generation) -> None:
        self.source, self.chat = source, Chat(name, generation)
        self.unsupported = {"nll": "a batch tells no probabilities of a text's tokens"}
        self._names: list[str] = []
        # By id: choices, refused texts, and failures; an answer may follow a failure.
        self._answers: dict[str, dict[str, Any] | Unanswered] = {}
        self._failures: dict[str, list[Refusal]] = {}
        files = [source] if source else []
        for path in sorted(source.glob("*.jsonl")) if source and source.is_dir() else files:
            for number, line in read_json_lines(path):
                self._read(f"{path}, line {number}", line)
        self.ids = self._answers.keys() | self._failures.keys()
        if source and not self.ids:
            raise BadInput(f"{source}: holds no results (*.jsonl); put those of a batch there")
        for answer in self._answers.values():
            with suppress(Unanswered):
                if isinstance(answer, dict) and thoughts_in(answer) == OPENED:
                    self.chat.thoughts = OPENED

    def _read(self, place: str, line: Mapping[str, Any]) -> None:
        """Read a result: a choice or a failure."""
        custom_id, response = line.get("custom_id"), line.get("response")
        body, status = at(response, "body"), at(response, "status_code")
        if not isinstance(custom_id, str) or "body" in line:
            raise BadInput(f"{place}: is no result of a batch, with `custom_id` and `response`")
        if custom_id in self._answers:
            raise BadInput(f"{place}: a second answer to {custom_id}; leave one of them out")
        name = at(body, "model")
        if isinstance(name, str) and name not in self._names:
            self._names.append(name)
        choice, status = at(body, "choices", 0), status if isinstance(status, int) else 0
        texts = "\n".join(responses.error_texts([line.get("error"), body]))
        if isinstance(choice, dict) and status < 400:
            if choice.get("finish_reason") not in responses.BROKEN_OFF:
                self._answers[custom_id] = choice
                return
            texts = f"broke off its reply ({choice['finish_reason']})"
        try:
            responses.check_refused_text(status or 400, texts)
        except Unanswered as refused:
            self._answers[custom_id] = refused
            return
        reason = f"status {status}: " * (status >= 400) + responses.first_line(texts)
        self._failures.setdefault(custom_id, []).append(Refusal(reason, reason, status, texts))

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "results of a batch (OpenAI's protocol)",
            "id": self.chat.name,
            **self.chat.describe(),
            # The service's own names of the model.
            "answered_as": self._names,
            "lacks": self.unsupported,
        }

    def find(self, request: Request) -> Answer | Refusal | None:
        """Find the answer to a request, or a failure, for example with an unsupported field."""
        custom_id = self.id_of(request)
        answer, failures = self._answers.get(custom_id), self._failures.get(custom_id, [])
        for failure in failures:
            self.chat.learn(self.chat.accepted(self.chat.body(request)), failure)
        if answer is None:
            return failures[-1] if failures else None
        if isinstance(answer, Unanswered):
            return Answer("", error=str(answer))
        try:
            return self.chat.read(request, answer)
        except Broken as broken:
            return Refusal(str(broken), str(broken), 0)

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        """Answer `requests`; an answer that is missing at the service has an error."""
        answers = []
        for request in requests:
            found = self.find(request)
            if found is None:
                raise BadInput(f"{self.source}: has no answer to {self.id_of(request)}")
            if isinstance(found, Refusal):
                found = Answer("", error=found.reason)
            answers.append(found)
        return answers

    def id_of(self, request: Request) -> str:
        """Return the id of a request: readable names, and a hash."""
        names = (request.task, request.item_id, request.request, request.repeat)
        hashed = digest([*names, self.chat.body(request)])
        readable = "-".join(re.sub("[^A-Za-z0-9]+", "_", str(name)).strip("_") for name in names)
        return f"{readable[: LONGEST - len(hashed) - 1]}-{hashed}"

    def line(self, request: Request, url: str) -> dict[str, Any]:
        """Return the line of a batch file that asks a request."""
        body = self.chat.accepted(self.chat.body(request))
        return {"custom_id": self.id_of(request), "method": "POST", "url": url, "body": body}


def is_batch(path: Path) -> bool:
    """Return whether a path has results of a batch: a folder, or lines with `custom_id`."""
    if path.suffix == ".csv" or not path.is_file():
        return path.is_dir()
    return any("custom_id" in line for _, line in islice(read_json_lines(path), 1))
