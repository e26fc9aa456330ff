"""Keep the score tables and outcomes of a run beside its records, so that each is computed once.

A table is a file `cache/OPTIONS-KEY-SHA256.parquet` in the folder of the run. KEY is a hash of the
run's files and of the code, so that a table of other answers or of another version is never read.
The folder can be deleted: the tables are then computed again.
"""

import hashlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from bench import records
from bench.core.errors import RunFailed
from bench.core.files import atomic_path
from bench.core.places import PACKAGE
from bench.scorers.base import digest

FOLDER = "cache"
# Files of the package that numbers rest on.
CODE = ("*.py", "*.toml", "*.csv")


def kept(
    folder: Path, options: Any, benchmark: Path, compute: Callable[[], pd.DataFrame]
) -> pd.DataFrame:
    """Return a table of a run: the one that was kept, or else a computed one, which is then kept.

    A run that is still being asked keeps none, and neither does a folder that cannot be written. A
    newer table replaces the one with the same options; `benchmark` is the folder of its code.
    """
    if (folder / records.ANSWERS).exists():
        return compute()
    own_code = "" if benchmark.is_relative_to(PACKAGE) else code_hash(benchmark)
    key = digest([hash_files(folder, records.files(folder)), code_hash(), own_code])
    place, name = folder / FOLDER, digest(options)[:8]
    for path in place.glob(f"{name}-{key}-*.parquet"):
        with suppress(OSError):
            content = path.read_bytes()
            if path.stem.endswith(_short_hash(content)):
                return records.parquet(content).to_pandas(use_threads=False)
    table = compute()
    content = table.to_parquet(index=False)
    with suppress(OSError, RunFailed):
        place.mkdir(exist_ok=True)
        for older in place.glob(f"{name}-*.parquet"):
            older.unlink(missing_ok=True)
        with atomic_path(place / f"{name}-{key}-{_short_hash(content)}.parquet") as draft:
            draft.write_bytes(content)
    return table


@cache
def code_hash(folder: Path = PACKAGE) -> str:
    """Hash the code in a folder, by default all of the package; its version has many states."""
    return hash_files(folder, sorted(file for pattern in CODE for file in folder.rglob(pattern)))


def hash_files(folder: Path, files: Iterable[Path]) -> str:
    """Hash the names and bytes of some files in a folder."""
    hashes = {
        file.relative_to(folder).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
    }
    return digest(hashes)


def _short_hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
