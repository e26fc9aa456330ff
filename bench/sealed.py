"""Parquet files that say what they are, and in which a single changed byte is found.

Parquet's own checksums say nothing of the footer, where a changed byte may make a null of a text. So the footer carries a
seal: what the file is, and a checksum of all its bytes but the checksum's own.
"""

import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

KEY = b"bench.seal"
NONE = b"00000000"  # what stands for the checksum while it is computed


class Damaged(Exception):
    """A file that is not what was written; the message says how that is seen."""


def write(table: pa.Table, path: Path, what: str) -> None:
    """Write a table that is sealed as `what`.

    Raises:
        OSError: it cannot be written.
    """
    seal = f"{what} ".encode() + NONE
    metadata = {**(table.schema.metadata or {}), KEY: seal}
    pq.write_table(table.replace_schema_metadata(metadata), path, compression="zstd")
    content = path.read_bytes()
    with path.open("rb+") as stream:
        stream.seek(content.rindex(seal) + len(seal) - len(NONE))
        stream.write(_checksum(content, seal))


def rows(path: Path, what: str) -> int:
    """The number of rows of a file that is sealed as `what`; one without a seal, as older ones are, is read to its end.

    Raises:
        Damaged: it is not what was written, or is something else.
        OSError: it cannot be read.
    """
    file = _opened(path)
    with file:
        seal = (file.metadata.metadata or {}).get(KEY)
        if seal is None:
            return len(_table(file))
        if seal[: -len(NONE)] != f"{what} ".encode():
            raise Damaged("it is another run's, or has another place in it")
        return int(file.metadata.num_rows)


def read(path: Path) -> pa.Table:
    """The table in a file, sealed or not.

    Raises:
        Damaged: it is not what was written.
        OSError: it cannot be read.
    """
    with _opened(path) as file:
        return _table(file)


def _opened(path: Path) -> pq.ParquetFile:
    content = path.read_bytes()
    try:
        file = pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)
        seal = (file.metadata.metadata or {}).get(KEY)
    except (pa.ArrowException, ValueError, OSError) as error:
        raise Damaged(" ".join(str(error).split()) or type(error).__name__) from None
    if seal is not None and (seal not in content or _checksum(content, seal) != seal[-len(NONE) :]):
        raise Damaged("its bytes are not those that were written")
    return file


def _table(file: pq.ParquetFile) -> pa.Table:
    try:
        table = file.read(use_threads=False)
    except (pa.ArrowException, ValueError, OSError) as error:
        raise Damaged(" ".join(str(error).split()) or type(error).__name__) from None
    return table.replace_schema_metadata(
        {key: value for key, value in (table.schema.metadata or {}).items() if key != KEY} or None
    )


def _checksum(content: bytes, seal: bytes) -> bytes:
    place = content.rindex(seal) + len(seal) - len(NONE)
    before = zlib.crc32(NONE, zlib.crc32(memoryview(content)[:place]))
    return b"%08x" % zlib.crc32(memoryview(content)[place + len(NONE) :], before)
