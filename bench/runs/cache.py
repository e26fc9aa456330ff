"""Keep the score tables and outcomes of a run beside its records, so that each is computed once.

A table is a file `cache/OPTIONS-KEY-SHA256.parquet` in the folder of the run. KEY is a hash of the
run's files and of the code, so that a table of other answers or of another version is never read.
The folder can be deleted: the tables are then computed again.
"""

import hashlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd

from bench.core.errors import RunFailed
from bench.core.files import atomic_path
from bench.core.inputs import PACKAGE_CODE, Code, hash_file
from bench.runs import records
from bench.scorers.base import digest

FOLDER = "cache"


def kept(
    folder: Path,
    metadata: Mapping[str, Any],
    benchmark_code: Code,
    options: Any,
    compute: Callable[[], pd.DataFrame],
) -> pd.DataFrame:
    """Return a table of a run: the one that was kept, or else a computed one, which is then kept.

    A run that is still being asked keeps none, and neither does a folder that cannot be written, or
    a process whose code has been updated since it was imported. A newer table replaces the one with
    the same options.

    Args:
        metadata: the content of `run.json` from which `compute` makes the table.
    """
    code = [PACKAGE_CODE, benchmark_code]
    if (folder / records.ANSWERS).exists() or not all(part.sha256 for part in code):
        return compute()
    key = _key(folder, metadata, [part.sha256 for part in code])
    place, name = folder / FOLDER, digest(options)
    for path in place.glob(f"{name}-{key}-*.parquet"):
        with suppress(OSError):
            content = path.read_bytes()
            if path.stem.endswith(_short_hash(content)):
                return records.parquet(content).to_pandas(use_threads=False)
    table = compute()
    # Another process may have changed the run or the code meanwhile.
    is_current = all(part.is_current() for part in code)
    if not is_current or key != _key(folder, metadata, [part.sha256 for part in code]):
        return table
    content = table.to_parquet(index=False)
    with suppress(OSError, RunFailed):
        place.mkdir(exist_ok=True)
        for older in place.glob(f"{name}-*.parquet"):
            older.unlink(missing_ok=True)
        with atomic_path(place / f"{name}-{key}-{_short_hash(content)}.parquet") as draft:
            draft.write_bytes(content)
    return table


def _key(folder: Path, metadata: Mapping[str, Any], code: list[str]) -> str:
    """Hash what the tables of a run are made of."""
    files = {path.relative_to(folder).as_posix(): path for path in records.files(folder)}
    # We compute from this content of `run.json`, even if another process has changed the file.
    files.pop(records.RUN_JSON, None)
    return digest([metadata, {name: hash_file(path) for name, path in files.items()}, code])


def _short_hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
