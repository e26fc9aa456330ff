"""Results of a batch, JSON Lines in the form of OpenAI, vLLM, SGLang, Alibaba, Zhipu or Anthropic.

The `custom_id` of a request ends with a hash of its names and of its body, so that we never take
the answer to another prompt, or of another model, for an answer to this request.
"""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from bench.config import Generation
from bench.core.errors import BadInput
from bench.data.readers import read_json_lines, read_lines
from bench.scorers.base import Answer, Model, digest
from bench.scorers.endpoint import responses
from bench.scorers.endpoint.chat import OPENED, Chat, thoughts_in
from bench.scorers.endpoint.responses import Broken, Refusal, Unanswered, at
from bench.tasks.request import Request

# Services take ids of 6 to 64 letters, digits, hyphens and underscores.
LONGEST = 64
# Endings of files of results, and fields of a result: of OpenAI's form, or Anthropic's.
ENDINGS = (".jsonl", ".json", ".ndjson", ".gz")
RESULT = {"response", "result", "error"}
# Statuses for a request that a service does not take.
OF_REQUEST = (400, 413, 422)


class Batch(Model):
    """A model with its answers in a file of results or a folder of such files.

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
        # By id: answers, refused texts, and failures; an answer may follow a failure.
        self._answers: dict[str, dict[str, Any] | Unanswered] = {}
        self._failures: dict[str, list[Refusal]] = {}
        for path in _files(source) if source else []:
            for number, line in read_json_lines(path, replies=True):
                self._read(f"{path}, line {number}", line)
        self.ids = self._answers.keys() | self._failures.keys()
        if source and not self.ids:
            raise BadInput(f"{source}: holds no results (*.jsonl); put those of a batch there")
        for answer in self._answers.values():
            with suppress(Unanswered):
                if isinstance(answer, dict) and thoughts_in(answer["choices"][0]) == OPENED:
                    self.chat.thoughts = OPENED

    def _read(self, place: str, line: Mapping[str, Any]) -> None:
        """Read a result: an answer, a refused text, or a failure."""
        custom_id = line.get("custom_id")
        if not isinstance(custom_id, str) or not RESULT & line.keys():
            raise BadInput(f"{place}: is no result of a batch, with `custom_id` and `response`")
        status, body = _response(line)
        name = at(body, "model")
        if isinstance(name, str) and name not in self._names:
            self._names.append(name)
        texts = "\n".join(responses.error_texts([line.get("error"), body]))
        answer: dict[str, Any] | Unanswered | None = None
        try:
            choice = responses.first_choice(body)
            if choice and status < 400:
                end = choice.get("finish_reason")
                if str(end).lower() not in responses.BROKEN_OFF:
                    answer = {**body, "choices": [choice]}
                texts = f"broke off its reply ({end})"
            else:
                responses.check_refused_text(status or 400, texts)
        except Unanswered as refused:
            answer = refused
        if answer is None:
            reason = f"status {status}: " * (status >= 400) + responses.first_line(texts)
            self._failures.setdefault(custom_id, []).append(Refusal(reason, reason, status, texts))
        elif str(self._answers.setdefault(custom_id, answer)) != str(answer):
            raise BadInput(f"{place}: a second answer to {custom_id}; leave one of them out")

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
        learnt = ""
        for failure in failures:
            learnt = self.chat.learn(self.chat.accepted(self.chat.body(request)), failure)
        if answer is None:
            # If the service answered others, a refused request has a fault of its own.
            if failures and failures[-1].status in OF_REQUEST and not learnt and self._answers:
                return Answer("", error=failures[-1].reason)
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


def _files(source: Path) -> list[Path]:
    """Return the files of results that a file or a folder holds."""
    if not source.is_dir():
        return [source]
    files = [path for path in sorted(source.iterdir()) if path.suffix in ENDINGS]
    return [path for path in files if path.suffix == ".jsonl" or _has_ids(path)]


def _has_ids(path: Path) -> bool:
    """Return whether the first line of a file is a result of a batch."""
    lines = (text for _, text in read_lines(path) if text.strip())
    return '"custom_id"' in next(lines, "")


def _response(line: Mapping[str, Any]) -> tuple[int, Any]:
    """Return the status, 0 for none, and the body of a result in OpenAI's form.

    For example, `response` may be the answer itself, without a status, and its `body` a text.
    """
    if "result" in line:  # Anthropic
        message, error = (at(line, "result", name) for name in ("message", "error"))
        if not isinstance(message, dict):
            return 0, error or {"message": at(line, "result", "type")}
        choice = {"message": message, "finish_reason": message.get("stop_reason")}
        usage = {"completion_tokens": at(message, "usage", "output_tokens")}
        return 200, {"model": message.get("model"), "choices": [choice], "usage": usage}
    response = line.get("response")
    status, body = at(response, "status_code"), at(response, "body")
    if isinstance(body, str):
        with suppress(ValueError, RecursionError):
            body = json.loads(body)
    status = int(status) if str(status).isdecimal() else 0
    return status, body if body is not None else response


def is_batch(path: Path) -> bool:
    """Return whether a path has results of a batch: a folder, or lines with `custom_id`."""
    if path.suffix == ".csv" or not path.is_file():
        return path.is_dir()
    return _has_ids(path)
