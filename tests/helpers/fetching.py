"""What the tests of fetching share: a download that may break, and what lies in a fetched folder. Test support."""

import io
import tomllib
from pathlib import Path
from typing import Any

from bench import data


def manifest(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / data.MANIFEST).read_text("utf-8"))


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def leftovers(user: Path) -> list[str]:
    return [path.name for path in user.iterdir() if path.name.startswith(".") and path.is_dir()]


class Response(io.BytesIO):
    """What `urlopen` gives; with `dies`, the connection breaks when half is read."""

    def __init__(
        self, raw: bytes, dies: Exception | None = None, url: str = "https://x", length: int = 0
    ) -> None:
        super().__init__(raw[: len(raw) // 2] if dies else raw)
        self.dies, self.url = dies, url
        self.headers = {"Content-Length": str(length)} if length else {}

    def read(self, size: int | None = -1) -> bytes:
        chunk = super().read(size)
        if not chunk and self.dies:
            raise self.dies
        return chunk
