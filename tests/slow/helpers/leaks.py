"""Looking for a secret in every byte of everything that was written, whatever it is packed or spelt in."""

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


def spellings(secret: str) -> dict[str, bytes]:
    """How the letters and digits of a secret may be written in a file."""
    plain = secret.encode()
    # In base64 the same bytes are spelt in three ways, by where they begin; the characters at the edges depend on neighbours.
    shifted = [base64.b64encode(b"\0" * k + plain) for k in range(3)]
    inner = [
        one[skip : len(one) // 4 * 4 - 4] for one, skip in zip(shifted, (0, 2, 3), strict=True)
    ]
    return {
        "as it is": plain,
        "in hexadecimal": plain.hex().encode(),
        "in percent signs": b"".join(b"%%%02X" % byte for byte in plain),
        "in JSON's numbers": b"".join(b"\\u%04x" % byte for byte in plain),
        "in HTML's numbers": b"".join(b"&#%d;" % byte for byte in plain),
        "in UTF-16": secret.encode("utf-16-le"),
        "in UTF-16, reversed": secret.encode("utf-16-be"),
        **{f"in base64, shifted by {k}": one for k, one in enumerate(inner)},
    }


def leaks(root: Path, secret: str) -> list[str]:
    """Every place under `root` that has the secret: in a file's or folder's name, or in its bytes."""
    found = []
    for path in sorted(root.rglob("*")):
        if secret in path.name:
            found.append(f"{path}: in its name")
        if path.is_file():
            found += [f"{path}: {where}" for where in inside(path.read_bytes(), secret)]
    return found


def inside(content: bytes, secret: str, depth: int = DEPTH) -> Iterator[str]:
    """How the secret stands in `content`, or in what is packed in it."""
    for how, spelling in spellings(secret).items():
        if spelling in content or spelling.lower() in content.lower():
            yield how
    if depth:
        for kind, part in _unpacked(content):
            for how in inside(part, secret, depth - 1):
                yield f"{kind}, {how}"


def _unpacked(content: bytes) -> Iterator[tuple[str, bytes]]:
    if content[:2] == b"\x1f\x8b":
        yield "gzip", gzip.decompress(content)
    elif content[:4] == b"PK\3\4":
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            yield "zip", "\n".join(archive.namelist()).encode()
            for name in archive.namelist():
                yield f"zip: {name}", archive.read(name)
    elif content[:4] == b"PAR1":
        table = pq.read_table(io.BytesIO(content))
        yield "parquet", str(table.schema.metadata).encode()
        for name in table.column_names:
            cells = "\n".join(map(str, table[name].to_pylist()))
            yield f"parquet column {name}", cells.encode(errors="replace")
    elif content[:8] == b"\x89PNG\r\n\x1a\n":
        yield "texts of a picture", repr(Image.open(io.BytesIO(content)).text).encode()  # type: ignore[attr-defined]
    else:
        for match in BASE64.finditer(content):
            letters = re.sub(rb"\\n|\s", b"", match[0]).rstrip(b"=")
            letters = letters[: len(letters) // 4 * 4]
            yield "base64", base64.b64decode(letters.replace(b"-", b"+").replace(b"_", b"/"))
