"""Looking for a secret in every byte of everything that was written, however packed."""

import base64
import io
import re

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
        if secret in path.name or (path.is_file() and has(path.read_bytes(), secret.encode()))
    ]


def has(content, secret, depth=DEPTH):
    parts = unpacked(content) if depth else ()
    return secret in content or any(has(part, secret, depth - 1) for part in parts)


def unpacked(content):
    if content[:4] == b"PAR1":
        table = pq.read_table(io.BytesIO(content))
        columns = ["\n".join(map(str, column.to_pylist())) for column in table.columns]
        return [part.encode(errors="replace") for part in (str(table.schema.metadata), *columns)]
    if content[:8] == b"\x89PNG\r\n\x1a\n":
        return [repr(Image.open(io.BytesIO(content)).text).encode()]
    return [decoded(match[0]) for match in BASE64.finditer(content)]


def decoded(text):
    letters = re.sub(rb"\\n|\s", b"", text).rstrip(b"=").replace(b"-", b"+").replace(b"_", b"/")
    return base64.b64decode(letters[: len(letters) - (len(letters) % 4 == 1)] + b"==")
