"""Files by the id that git gives their content: what tells whether a file is the released one, byte for byte."""

import hashlib
import tomllib
from pathlib import Path
from typing import NamedTuple

# The ids of released files, as far as they are known, by benchmark and path in the release.
CHECKSUMS = Path(__file__).with_name("checksums.toml")


class Written(NamedTuple):
    """A file that was written: how many rows it holds, its id, and the one of the release, if known."""

    path: Path
    rows: int
    blob: str
    released: str

    @property
    def as_released(self) -> bool:
        return self.blob == self.released


def blob_id(path: Path) -> str:
    """The id by which git knows the content of a file: SHA-1 of `blob`, its length, and its bytes."""
    digest = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with path.open("rb") as stream:
        while some := stream.read(2**20):
            digest.update(some)
    return digest.hexdigest()


def released(name: str) -> dict[str, str]:
    """Path to id of the released files in the table `name` of the list; nothing where it has none."""
    known: dict[str, dict[str, str]] = tomllib.loads(CHECKSUMS.read_text("utf-8"))
    return known.get(name, {})
