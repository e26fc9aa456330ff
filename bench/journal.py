"""Answers that came one at a time, kept from the moment they come until the shard that they belong to is written.

A file of JSON Lines beside the records. A run that is killed reads it when it goes on, and asks for none of them again.
"""

import json
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from bench.records import written
from bench.scorers.base import Answer

FILE = "journal.jsonl"


class Journal:
    """The journal of a run. It is removed when the block that it was opened for ends well."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known = _read(path)
        self._file: TextIO | None = None

    @classmethod
    def of(cls, folder: Path) -> "Journal":
        """That of the run in `folder`."""
        return cls(folder / "records" / FILE)

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file:
            self._file.close()
        if kind is None:
            self.path.unlink(missing_ok=True)

    def known(self, shard: int, place: int, prompt_hash: str) -> Answer | None:
        """The answer that came to the request at `place` of `shard`, if it was asked with the same text."""
        return self._known.get((shard, place, prompt_hash))

    def add(self, shard: int, place: int, prompt_hash: str, answer: Answer) -> None:
        """Keep an answer.

        Raises:
            RunFailed: it cannot be written.
        """
        line = [
            shard,
            place,
            prompt_hash,
            answer.response,
            answer.logprobs,
            answer.error,
            answer.seconds,
            answer.cut,
        ]
        with written(self.path):
            if self._file is None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                # The last line may have been cut off; what follows must not be part of it.
                self._file = self.path.open("a", encoding="utf-8")
                self._file.write("\n")
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()  # to the system, where it outlives this process


def _read(path: Path) -> dict[tuple[int, int, str], Answer]:
    found: dict[tuple[int, int, str], Answer] = {}
    if not path.is_file():
        return found
    with path.open(encoding="utf-8", errors="replace") as stream:
        for line in stream:
            try:
                shard, place, prompt_hash, *rest = json.loads(line)
                found[int(shard), int(place), str(prompt_hash)] = _answer(*rest)
            except (ValueError, TypeError):  # cut off when the process was killed
                continue
    return found


def _answer(response: Any, logprobs: Any, error: Any, seconds: Any, cut: Any) -> Answer:
    if not (isinstance(response, str) and isinstance(error, str) and cut in (True, False, None)):
        raise TypeError("no answer")
    known = None if logprobs is None else tuple(map(float, logprobs))
    return Answer(response, known, error, float(seconds), cut)
