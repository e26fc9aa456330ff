"""Rewrite tables of any name, as data sets of the Hub keep them, as our files."""

import re
import shutil
from pathlib import Path

import pandas as pd

from bench.benchmarks import get
from bench.core.cells import as_csv
from bench.core.errors import BadInput, quoted
from bench.core.files import atomic_write
from bench.core.progress import say
from bench.data.dataset import MANIFEST, category_name_error, category_of, composed, read_manifest
from bench.data.readers import read_table

# `Dataset.save_to_disk` writes Arrow.
SUFFIXES = (".parquet", ".arrow", ".jsonl", ".json", ".csv", ".tsv", ".xlsx")
# The end of a name of a configuration or split: `test-00000-of-00002`.
PART = re.compile(r"-\d{5}-of-\d{5}$")


def is_table(name: str) -> bool:
    """Return whether a file of a repository may hold rows."""
    path = Path(name)
    return path.suffix in SUFFIXES and not any(part.startswith(".") for part in path.parts)


def rewrite(benchmark: str, folder: Path, into: Path) -> bool:
    """Write the rows of all tables below a folder as files that the loader finds, if there are any.

    The category of a row is in its column `category`, or it is the name of its file or folder, as
    for a configuration of the Hub.
    """
    metadata = get(benchmark).metadata
    columns, place_of_rows = metadata.release.row_columns, metadata.release.place_of_rows
    if not place_of_rows:
        return False
    paths = [path for path in sorted(folder.rglob("*")) if is_table(str(path.relative_to(folder)))]
    # The same rows may be there in several formats.
    kind = next((kind for kind in SUFFIXES if any(path.suffix == kind for path in paths)), "")
    known = [*metadata.categories, *read_manifest(folder).categories]
    files: dict[str, list[pd.DataFrame]] = {}
    faults: list[str] = []
    for path in [path for path in paths if path.suffix == kind]:
        names = [PART.sub("", composed(part)) for part in path.relative_to(folder).parts[:-1]]
        names.append(PART.sub("", category_of(path)))
        try:
            read = read_table(path, (), (*columns, "category"))
        except BadInput as error:
            if kind != ".json":  # others may be settings
                faults.append(str(error))
            continue
        rows = pd.DataFrame(read, index=[row.number for row in read])
        missing = [name for name in columns if name not in rows]
        if missing:
            if len(missing) < len(columns):
                faults.append(f"{path.name} lacks {', '.join(missing)}")
            continue
        if "category" in rows:
            for row in read:
                if reason := category_name_error(row["category"]):
                    problem = f"{quoted(row['category'])} cannot be a category's name: {reason}"
                    raise BadInput(f"{path}, row {row.number}, column `category`: {problem}")
        else:
            of_file = next((name for name in reversed(names) if name in known), "")
            if not of_file:
                faults.append(
                    f"{path.name} has no column `category`, and its name and folder are none of "
                    f"{', '.join(known)}"
                )
            rows = rows.assign(category=of_file)
        try:
            for category, part in rows.groupby("category", sort=False):
                for name, table in place_of_rows(str(category), part):
                    files.setdefault(name, []).append(table)
        except BadInput as error:
            raise BadInput(f"{path}, {error}") from None
    if faults and not files:
        remedy = f"`bench fetch {benchmark}` brings the release"
        raise BadInput(f"{folder}: holds no data of {metadata.title}; {faults[0]}; {remedy}")
    for fault in faults:
        say(f"{folder}: a file is left out: {fault}")
    repeats = 0
    for name, tables in files.items():
        # A configuration of all rows may lie beside configurations of its parts.
        rows = pd.concat(tables)
        place = pd.Series([k for k, table in enumerate(tables) for _ in range(len(table))])
        cells = [rows[column].to_numpy() for column in rows]
        is_first = (place == place.groupby(cells, dropna=False).transform("min")).to_numpy()
        repeats += len(rows) - is_first.sum()
        atomic_write(into / name, as_csv(rows[is_first]))
    if repeats:
        say(f"{folder}: {repeats:,} rows repeat rows of another file; each is kept once")
    if files and (folder / MANIFEST).is_file():  # which names new categories
        shutil.copyfile(folder / MANIFEST, into / MANIFEST)
    return bool(files)
