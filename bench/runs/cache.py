"""Keep the score tables and outcomes of a run beside its records, to compute each only once.

A table is a file `cache/OPTIONS-KEY-SHA256.parquet` in the folder of the run. KEY is a hash of the
run's files and of the code, so that we never read a table of other answers or of other code. You
can delete the folder: the tables are then computed again.
"""

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pandas as pd

from bench.core.errors import RunFailed
from bench.core.files import atomic_path
from bench.core.inputs import PACKAGE_CODE, hash_file
from bench.runs import records
from bench.scorers.base import digest

if TYPE_CHECKING:
    from bench.runs.open import Run

FOLDER = "cache"


def kept(run: "Run", options: Sequence[Any], compute: Callable[[], pd.DataFrame]) -> pd.DataFrame:
    """Return a table of a run: the one that was kept, or else a computed one, which is then kept.

    A run that is still being asked keeps none, and neither does a folder that cannot be written, or
    a process whose code has been updated since it was imported. A newer table replaces the one with
    the same options.
    """
    folder, name, key = run.folder / FOLDER, digest(options), _key(run)
    for path in folder.glob(f"{name}-{key}-*.parquet") if key else ():
        with suppress(OSError):
            content = path.read_bytes()
            if path.stem.endswith(_short_hash(content)):
                return records.parquet(content).to_pandas(use_threads=False)
    table = compute()
    # Another process may have changed the run or the code meanwhile.
    if key and key == _key(run):
        content = table.to_parquet(index=False)
        with suppress(OSError, RunFailed):
            folder.mkdir(exist_ok=True)
            for older in folder.glob(f"{name}-*.parquet"):
                older.unlink(missing_ok=True)
            with atomic_path(folder / f"{name}-{key}-{_short_hash(content)}.parquet") as draft:
                draft.write_bytes(content)
    return table


def _key(run: "Run") -> str:
    """Hash what the tables of a run are made of; "" if we must not keep any."""
    if (run.folder / records.ANSWERS).exists():
        return ""
    code = [PACKAGE_CODE.key(), run.definition.code.key()]
    files = [run.folder / records.ITEMS, *sorted(run.folder.glob("records/*.parquet"))]
    # We compute from this content of `run.json`, even if another process has changed the file.
    return digest([run.metadata, {path.name: hash_file(path) for path in files}, code])


def _short_hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
