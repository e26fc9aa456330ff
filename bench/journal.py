"""Answers that came one at a time, kept from the moment they come until the shard that they belong to is written.

A file beside the records, a line an answer: its checksum and JSON. A run that is killed reads it when it goes on, and asks
for none of them again; a line that was cut off or changed is no answer.
"""

import json
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from bench.core.files import explain_write_errors
from bench.records import shard_path
from bench.scorers.base import Answer

FILE = "journal.jsonl"


class Journal:
    """The journal of a run. It is removed when the block that it was opened for ends well."""

    def __init__(self, path: Path, written: Callable[[int], bool] = lambda shard: False) -> None:
        """The journal in a file; answers of shards that are `written` are no longer needed."""
        self.path = path
        self._known = {key: answer for key, answer in _read(path) if not written(key[0])}
        self._file: BinaryIO | None = None

    @classmethod
    def of(cls, folder: Path) -> "Journal":
        """That of the run in `folder`, for whom the folder is held."""
        return cls(folder / "records" / FILE, lambda shard: shard_path(folder, shard).is_file())

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file:
            with suppress(OSError):  # all is written, or it was said that it cannot be
                self._file.close()
        if kind is None:
            with explain_write_errors(self.path):
                self.path.unlink(missing_ok=True)

    def known(self, shard: int, place: int, prompt_hash: str) -> Answer | None:
        """The answer that came to the request at `place` of `shard`, if it was asked with the same text."""
        return self._known.get((shard, place, prompt_hash))

    def add(self, shard: int, place: int, prompt_hash: str, answer: Answer) -> None:
        """Keep an answer.

        Raises:
            RunFailed: it cannot be written.
        """
        parts = [answer.response, answer.logprobs, answer.error, answer.seconds, answer.cut]
        line = json.dumps([shard, place, prompt_hash, *parts]).encode()
        with explain_write_errors(self.path):
            if self._file is None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._file = self.path.open("ab")
                self._file.write(b"\n")  # the last line may have been cut off
            self._file.write(b"%08x %b\n" % (zlib.crc32(line), line))
            self._file.flush()  # to the system, where it outlives this process


def _read(path: Path) -> Iterator[tuple[tuple[int, int, str], Answer]]:
    """The answers in a journal, by shard, place in it and hash of what was asked."""
    if not path.is_file():
        return
    with path.open("rb") as stream:
        for said in stream:
            checksum, _, line = said.rstrip(b"\n").partition(b" ")
            if checksum == b"%08x" % zlib.crc32(line):
                shard, place, prompt_hash, response, logprobs, *rest = json.loads(line)
                answer = Answer(response, None if logprobs is None else tuple(logprobs), *rest)
                yield (shard, place, prompt_hash), answer
