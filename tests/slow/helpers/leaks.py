"""Looking for a secret in every byte of everything that was written, however packed."""

import base64
import gzip
import io
import re
import zipfile

import pyarrow.parquet as pq
from PIL import Image

# Packed in packed in packed: deeper nothing is written.
DEPTH = 4
BASE64 = re.compile(rb"[A-Za-z0-9+/_-](?:[A-Za-z0-9+/_\s-]|\\n){22,}={0,2}")


def leaks(root, secret):
    """Every file and folder under `root` that has the secret in its name or in its bytes."""
    return [
        str(path)
        for path in sorted(root.rglob("*"))
        if secret in path.name or (path.is_file() and _has(path.read_bytes(), secret.encode()))
    ]


def _has(content, secret, depth=DEPTH):
    parts = _unpacked(content) if depth else ()
    return secret in content or any(_has(part, secret, depth - 1) for part in parts)


def _unpacked(content):
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
        yield repr(Image.open(io.BytesIO(content)).text).encode()
    else:
        for match in BASE64.finditer(content):
            letters = re.sub(rb"\\n|\s", b"", match[0]).rstrip(b"=")
            letters = letters.replace(b"-", b"+").replace(b"_", b"/")
            yield base64.b64decode(letters[: len(letters) - (len(letters) % 4 == 1)] + b"==")
