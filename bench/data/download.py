"""Downloading one file: from https never to elsewhere, within a size, and whole."""

import urllib.request
from pathlib import Path

from bench.core.progress import progress, say

TIMEOUT = 60.0


def download(url: str, path: Path, most: int) -> Path:
    """Write what `url` gives to `path`, at most `most` bytes.

    Raises:
        OSError, HTTPException: the connection or the disk failed.
        ValueError: it leads from https to elsewhere, is larger, or ended early.
    """
    say(f"downloading {url}")
    with urllib.request.urlopen(url, timeout=TIMEOUT) as response, path.open("wb") as file:
        if url.startswith("https:") and not response.url.startswith("https:"):
            raise ValueError(f"it leads to {response.url}, which is not https")
        # GitHub packs while it sends and may not know the length.
        length = int(response.headers.get("Content-Length") or 0)
        done = 0
        with progress(length // 1024, "downloading", "KiB") as bar:
            while chunk := response.read(2**16):
                done += file.write(chunk)
                if done > most:
                    raise ValueError(f"it is larger than {most:,} bytes")
                bar.advance(done // 1024 - bar.done)
    if length and done != length:
        raise ValueError(f"it ended after {done:,} of {length:,} bytes")
    return path
