"""Rewrite tables as data sets of the Hub keep them, Parquet or JSON of any name, as our files."""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from bench.benchmarks import module
from bench.core.cells import as_csv
from bench.core.errors import BadInput, quoted
from bench.core.files import atomic_write
from bench.core.progress import say
from bench.data.dataset import MANIFEST, category_name_error

SUFFIXES = (".parquet", ".jsonl", ".json", ".csv")
# What follows the name of a configuration or split: `test-00000-of-00002`.
PART = re.compile(r"-\d{5}-of-\d{5}$")


def is_table(name: str) -> bool:
    """Tell whether a file of a repository may hold rows."""
    path = Path(name)
    return path.suffix in SUFFIXES and not any(part.startswith(".") for part in path.parts)


def rewrite(benchmark: str, folder: Path, into: Path) -> bool:
    """Write the rows of all tables below a folder as files that the loader finds.

    A row is of the category in its column `category`, or that of its file's name or folder, which
    is how the Hub names configurations.

    Returns:
        Whether there were any rows with the benchmark's columns.

    Raises:
        BadInput: there are rows with some of these columns, and none with all; a category or a
            context cannot be one, or a cell is a list.
    """
    room = module("data", benchmark)
    if not (hasattr(room, "place_of_rows") and hasattr(room, "ROW_COLUMNS")):
        return False
    paths = [path for path in sorted(folder.rglob("*")) if is_table(str(path.relative_to(folder)))]
    # The same rows may be there in several formats.
    kind = next((kind for kind in SUFFIXES if any(path.suffix == kind for path in paths)), "")
    files: dict[str, list[pd.DataFrame]] = {}
    incomplete = ""
    for path in [path for path in paths if path.suffix == kind]:
        names = [PART.sub("", part) for part in path.relative_to(folder).with_suffix("").parts]
        rows = _read(path)
        missing = [name for name in room.ROW_COLUMNS if name not in rows]
        if missing and len(missing) < len(room.ROW_COLUMNS):
            incomplete = incomplete or f"{path.name} lacks {', '.join(missing)}"
        if "category" not in rows:
            known = [name for name in reversed(names) if name in room.CATEGORIES]
            rows = rows.assign(category=known[0] if known else "")
        elif not missing:
            _check(path, rows, room.ROW_COLUMNS)
        try:
            for category, part in rows.groupby("category", sort=False):
                for name, table in room.place_of_rows(str(category), part):
                    files.setdefault(name, []).append(table)
        except BadInput as error:
            raise BadInput(f"{path}, {error}") from None
    if incomplete and not files:
        remedy = f"`bench fetch {benchmark}` brings the release"
        raise BadInput(f"{folder}: holds no data of {room.TITLE}; {incomplete}; {remedy}")
    repeats = 0
    for name, tables in files.items():
        # A configuration of all rows may lie beside those of its parts.
        earlier: set[tuple[object, ...]] = set()
        for k, table in enumerate(tables):
            cells = list(table.itertuples(index=False, name=None))
            tables[k] = table[[row not in earlier for row in cells]]
            repeats += len(table) - len(tables[k])
            earlier.update(cells)
        atomic_write(into / name, as_csv(pd.concat(tables)))
    if repeats:
        say(f"{folder}: {repeats:,} rows repeat rows of another file; each is kept once")
    if files and (folder / MANIFEST).is_file():  # which names new categories
        shutil.copyfile(folder / MANIFEST, into / MANIFEST)
    return bool(files)


def _check(path: Path, rows: pd.DataFrame, columns: Sequence[str]) -> None:
    """Refuse categories that cannot name a file, and cells that hold several values."""
    for number, category in enumerate(rows.category.fillna("").astype(str), start=1):
        if error := category_name_error(category):
            raise BadInput(
                f"{path}, row {number}, column `category`: {quoted(category)} cannot be a "
                f"category's name: {error}"
            )
    for column in columns:
        for number, cell in enumerate(rows[column], start=1):
            if not pd.api.types.is_scalar(cell):
                raise BadInput(
                    f"{path}, row {number}, column `{column}`: {quoted(cell)} is a list; write a "
                    "text, with the separator of that column between its parts"
                )


def _read(path: Path) -> pd.DataFrame:
    try:
        if path.suffix == ".parquet":
            rows = pd.read_parquet(path)
        elif path.suffix == ".csv":
            rows = pd.read_csv(path, dtype=str, keep_default_na=False)
        else:
            rows = pd.read_json(path, lines=path.suffix == ".jsonl", dtype=False)
    except (ValueError, OSError, LookupError) as error:  # pyarrow's errors are of these
        if path.suffix != ".parquet":  # any other file of settings or texts
            return pd.DataFrame()
        raise BadInput(f"{path}: cannot be read as a table ({error})") from None
    rows = rows.rename(columns=lambda name: str(name).lstrip("\ufeff"))
    return rows.reset_index(drop=True)
