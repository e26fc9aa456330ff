"""Results of a batch, as OpenAI's batch service, vLLM, Alibaba and Zhipu write them: JSON Lines.

{"custom_id": "...", "response": {"status_code": 200, "body": {"choices": [...]}}, "error": null}

A result belongs to the request with its `custom_id`. This begins with task, item, request and
repeat, to be read by people, and ends with a hash of these and of the body, so that the answer to
another question or prompt, or of another model, is found to be none.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from bench.config import Generation
from bench.core.errors import BadInput
from bench.data.readers import open_file, read_json_lines
from bench.scorers.base import Answer, digest
from bench.scorers.endpoint import responses
from bench.scorers.endpoint.chat import OPENED, Chat, thoughts_in
from bench.scorers.endpoint.responses import Broken, Refusal, Unanswered, at
from bench.tasks.request import Request

# Services take ids of 6 to 64 characters; these are allowed everywhere.
LONGEST, OTHER = 64, re.compile(r"[^A-Za-z0-9]+")
# Ids that a message lists.
LISTED = 10


class Found(NamedTuple):
    """What the results say on a request.

    Attributes:
        custom_id: of the request.
        answer: None if the results have none.
        failure: why the service did not answer; it may be asked again.
    """

    custom_id: str
    answer: Answer | None
    failure: Refusal | None = None


class Batch:
    """A model whose answers are in result files, or not there yet.

    Attributes:
        source: the file of results, or a folder of such files (`*.jsonl`); None for none.
        chat: makes the bodies of requests and reads choices.
        ids: of all results.

    Args:
        name: the model's name at the service.

    Raises:
        BadInput: a line is no result, or two answer the same request.
    """

    verbs: tuple[str, ...] = ("choose", "generate")
    reads: tuple[str, ...] = ("text", "letters")

    def __init__(self, source: Path | None, name: str, generation: Generation) -> None:
        self.source, self.chat = source, Chat(name, generation)
        self.lacks = {"nll": "a batch tells no probabilities of a text's tokens"}
        # By id: the choice, why the text was refused, or why the service did not answer.
        self._results: dict[str, dict[str, Any] | str | Refusal] = {}
        self._failures: dict[str, list[Refusal]] = {}
        self._names: dict[str, None] = {}
        self._tokens = {"prompt_tokens": 0, "completion_tokens": 0}
        self._hash = hashlib.sha256()
        doubled: dict[str, None] = {}
        for path in _files(source) if source else ():
            with open_file(path) as stream:
                self._hash.update(stream.read())
            for number, line in read_json_lines(path):
                key, result = self._read(f"{path}, line {number}", line)
                if isinstance(result, Refusal):  # there may be an answer of another try
                    self._failures.setdefault(key, []).append(result)
                    self._results.setdefault(key, result)
                elif isinstance(self._results.get(key), dict | str):
                    doubled[key] = None
                else:
                    self._results[key] = result
        if doubled:
            raise BadInput(f"{source}: {listed('requests answered twice', list(doubled))}")
        self.ids = set(self._results)
        if any(_thoughts_in(result) == OPENED for result in self._results.values()):
            self.chat.thoughts = OPENED

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "results of a batch (OpenAI's protocol)",
            "id": self.chat.name,
            "revision": self._hash.hexdigest()[:16],
            **self.chat.describe(),
            # What the service itself calls the model.
            "answered_as": list(self._names),
            "lacks": self.lacks,
        }

    @property
    def spent(self) -> str:
        """How many tokens the service counted, in words."""
        prompts, replies = self._tokens.values()
        return f"{prompts:,} tokens of prompts and {replies:,} of replies" * bool(prompts)

    def find(self, request: Request) -> Found:
        """Find the answer to a request, and learn from failures which fields are not taken."""
        body = self.chat.body(request)
        key = custom_id(request, body)
        for failure in self._failures.get(key, ()):
            self.chat.learn(self.chat.accepted(body), failure)
        result = self._results.get(key)
        if isinstance(result, dict):
            try:
                return Found(key, self.chat.read(request, result))
            except Broken as broken:
                reason = str(broken)
                return Found(key, Answer("", error=reason), Refusal(reason, reason, 0))
        if isinstance(result, Refusal):
            return Found(key, Answer("", error=result.reason), result)
        return Found(key, None if result is None else Answer("", error=result))

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        results = [self.find(request) for request in requests]
        if missing := [result.custom_id for result in results if result.answer is None]:
            raise BadInput(f"{self.source}: {listed('requests without an answer', missing)}")
        return [result.answer for result in results if result.answer]

    def line(self, request: Request, url: str) -> dict[str, Any]:
        """Return the line of a batch file that asks a request."""
        body = self.chat.body(request)
        asked = {"custom_id": custom_id(request, body), "method": "POST", "url": url}
        return {**asked, "body": self.chat.accepted(body)}

    def _read(
        self, place: str, line: Mapping[str, Any]
    ) -> tuple[str, dict[str, Any] | str | Refusal]:
        """Return the id of a line, and its choice, why it was refused, or the failure."""
        key, response = line.get("custom_id"), line.get("response")
        if not isinstance(key, str) or not key:
            raise BadInput(f"{place}: has no `custom_id`, so it is no result of a batch")
        if "body" in line and response is None:
            raise BadInput(f"{place}: is a request, not a result; give what the service wrote")
        body, status = at(response, "body"), at(response, "status_code")
        status = status if isinstance(status, int) else 0
        if isinstance(name := at(body, "model"), str):
            self._names[name] = None
        for name in self._tokens:
            self._tokens[name] += responses.token_count(body, name)
        choice = at(body, "choices", 0)
        if isinstance(choice, dict) and status < 400:
            reason = choice.get("finish_reason")
            if reason not in responses.BROKEN_OFF:
                return key, choice
            return key, _failure(status, f"broke off its reply ({reason})")
        texts = "\n".join(responses.error_texts([line.get("error"), body]))
        try:
            responses.check_refused_text(status or 400, texts, "")
        except Unanswered as refused:
            return key, str(refused)
        return key, _failure(status, texts)


def _files(source: Path) -> list[Path]:
    files = sorted(source.glob("*.jsonl")) if source.is_dir() else [source]
    if not files:
        raise BadInput(f"{source}: holds no results (*.jsonl); put those of a batch there")
    return files


def _thoughts_in(result: object) -> str:
    with suppress(Unanswered):
        return thoughts_in(result) if isinstance(result, dict) else ""
    return ""


def _failure(status: int, texts: str) -> Refusal:
    text = responses.first_line(texts, "")
    reason = f"status {status}: {text}" if status >= 400 else text
    return Refusal(reason, reason, status, texts)


def custom_id(request: Request, body: Mapping[str, Any]) -> str:
    """Return the id of a request: at most 64 letters, digits, hyphens and underscores."""
    names = (request.task, request.item_id, request.request, request.repeat)
    hashed = digest([*names, body])
    readable = "-".join(OTHER.sub("_", str(name)).strip("_") for name in names)
    return f"{readable[: LONGEST - len(hashed) - 1]}-{hashed}"


def is_batch(path: Path) -> bool:
    """Tell results of a batch from other recorded answers: a folder, or lines with `custom_id`."""
    if path.is_dir():
        return True
    if path.suffix == ".csv" or not path.is_file():
        return False
    return any("custom_id" in line for _, line in islice(read_json_lines(path), 1))


def listed(what: str, ids: Sequence[str]) -> str:
    """Say how many ids there are of something, and list the first."""
    more = f" and {len(ids) - LISTED:,} more" if len(ids) > LISTED else ""
    return f"{what}: {len(ids):,} ({', '.join(ids[:LISTED])}{more})"
