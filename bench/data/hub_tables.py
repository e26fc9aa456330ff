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


def rewrite(benchmark: str, folder: Path, into: Path) -> bool:
    """Write the rows of all tables below a folder as files that the loader finds, if there are any.

    The category of a row is in its column `category`, or it is the name of its file or folder, as
    for a configuration of the Hub.
    """
    metadata = get(benchmark).metadata
    columns, place_of_rows = metadata.release.row_columns, metadata.release.place_of_rows
    if not place_of_rows:
        return False
    known = [*metadata.categories, *read_manifest(folder).categories]
    files: dict[str, pd.DataFrame] = {}
    faults: list[str] = []
    repeats = 0
    for path in _tables(folder):
        try:
            read = read_table(path, (), (*columns, "category"))
        except BadInput as error:
            if ".json" not in path.suffixes:  # others may be settings
                faults.append(str(error))
            continue
        rows = pd.DataFrame(read, index=[row.number for row in read])
        if missing := [name for name in columns if name not in rows]:
            if len(missing) < len(columns):
                faults.append(f"{path.name} lacks {', '.join(missing)}")
            continue
        if "category" not in rows:
            places = [*path.relative_to(folder).parts[:-1], category_of(path)]
            named = [name for name in (PART.sub("", composed(p)) for p in places) if name in known]
            if not named:
                faults.append(
                    f"{path.name} has no column `category`, and its name and folder are none of "
                    f"{', '.join(known)}"
                )
                continue
            rows["category"] = named[-1]
        try:
            for category, part in rows.groupby("category", sort=False):
                if reason := category_name_error(str(category)):
                    problem = f"{quoted(category)} cannot be a category's name: {reason}"
                    raise BadInput(f"row {part.index[0]}, column `category`: {problem}")
                for name, table in place_of_rows(str(category), part):
                    # A configuration of all rows may lie beside configurations of its parts.
                    earlier = files.get(name, table[:0])
                    cells = pd.MultiIndex.from_frame(table)
                    is_new = ~cells.isin(pd.MultiIndex.from_frame(earlier))
                    files[name] = pd.concat([earlier, table[is_new]])
                    repeats += len(table) - is_new.sum()
        except BadInput as error:
            raise BadInput(f"{path}, {error}") from None
    if faults and not files:
        remedy = f"`bench fetch {benchmark}` brings the release"
        raise BadInput(f"{folder}: holds no data of {metadata.title}; {faults[0]}; {remedy}")
    for fault in faults:
        say(f"{folder}: a file is left out: {fault}")
    if repeats:
        say(f"{folder}: {repeats:,} rows repeat rows of another file; each is kept once")
    for name, table in files.items():
        atomic_write(into / name, as_csv(table))
    if files and (folder / MANIFEST).is_file():  # which names new categories
        shutil.copyfile(folder / MANIFEST, into / MANIFEST)
    return bool(files)


def _tables(folder: Path) -> list[Path]:
    """List the tables below a folder, of one format: the same rows may be there in several."""
    paths = [path.relative_to(folder) for path in sorted(folder.rglob("*"))]
    paths = [path for path in paths if not any(part.startswith(".") for part in path.parts)]
    for suffix in SUFFIXES:
        if tables := [path for path in paths if path.name.removesuffix(".gz").endswith(suffix)]:
            return [folder / path for path in tables]
    return []
