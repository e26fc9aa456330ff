"""Looking for a secret in every byte of everything that was written, however packed or spelt."""

import base64
import gzip
import io
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
from PIL import Image

# Packed in packed in packed: deeper nothing is written.
DEPTH = 4
BASE64 = re.compile(rb"[A-Za-z0-9+/_-](?:[A-Za-z0-9+/_\s-]|\\n){22,}={0,2}")


def spellings(secret: str) -> list[bytes]:
    """How the letters and digits of a secret may be written in a file, in lower case."""
    plain = secret.encode()
    found = [plain, plain.hex().encode(), secret.encode("utf-16-le"), secret.encode("utf-16-be")]
    # Signs of URLs, JSON and HTML.
    found += [b"".join(sign % byte for byte in plain) for sign in (b"%%%02x", b"\\u%04x", b"&#%d;")]
    # In base64 the same bytes are spelt in three ways, by where they begin; the characters at the
    # edges depend on their neighbours.
    for k, skip in enumerate((0, 2, 3)):
        shifted = base64.b64encode(b"\0" * k + plain)
        found.append(shifted[skip : len(shifted) // 4 * 4 - 4])
    return [spelling.lower() for spelling in found]


def leaks(root: Path, secret: str) -> list[str]:
    """Every file and folder under `root` that has the secret in its name or in its bytes."""
    spelt = spellings(secret)
    return [
        str(path)
        for path in sorted(root.rglob("*"))
        if secret in path.name or (path.is_file() and _has(path.read_bytes(), spelt))
    ]


def _has(content: bytes, spelt: list[bytes], depth: int = DEPTH) -> bool:
    low = content.lower()
    found = any(spelling in low for spelling in spelt)
    return found or (depth > 0 and any(_has(part, spelt, depth - 1) for part in _unpacked(content)))


def _unpacked(content: bytes) -> Iterator[bytes]:
    if content[:2] == b"\x1f\x8b":
        yield gzip.decompress(content)
    elif content[:4] == b"PK\3\4":
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            yield "\n".join(archive.namelist()).encode()
            yield from map(archive.read, archive.namelist())
    elif content[:4] == b"PAR1":
        table = pq.read_table(io.BytesIO(content))
        yield str(table.schema.metadata).encode()
        for column in table.columns:
            yield "\n".join(map(str, column.to_pylist())).encode(errors="replace")
    elif content[:8] == b"\x89PNG\r\n\x1a\n":
        yield repr(Image.open(io.BytesIO(content)).text).encode()  # type: ignore[attr-defined]
    else:
        for match in BASE64.finditer(content):
            letters = re.sub(rb"\\n|\s", b"", match[0]).rstrip(b"=")
            letters = letters[: len(letters) // 4 * 4]
            yield base64.b64decode(letters.replace(b"-", b"+").replace(b"_", b"/"))
