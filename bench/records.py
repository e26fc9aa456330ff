"""What was asked and what came back: a folder with `run.json`, `items.parquet` and `records/*.parquet`, a row a request.

A shard is written beside its final name and renamed, so that a file with a shard's name is whole. Scores are never
stored; they are computed from these rows, so that a corrected metric needs no model.
"""

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from bench.errors import BadInput, RunFailed
from bench.progress import say

SCHEMA = pa.schema(
    [
        ("benchmark", pa.string()),
        ("category", pa.string()),
        ("task", pa.string()),
        ("item_id", pa.string()),
        ("request", pa.string()),
        ("repeat", pa.int32()),
        ("seed", pa.int64()),
        ("prompt_version", pa.string()),
        ("prompt_hash", pa.string()),
        ("prompt", pa.string()),
        ("response", pa.string()),
        ("logprobs", pa.list_(pa.float64())),
        ("parsed", pa.string()),
        ("valid", pa.bool_()),
        ("error", pa.string()),
        ("seconds", pa.float64()),
        # Whether the reply was cut off at its limit of tokens, as far as that is known.
        ("cut", pa.bool_()),
        # The request's place in the plan: what begins alike is asked together, whatever its place.
        ("place", pa.int64()),
    ]
)
ABOUT = "run.json"
ITEMS = "items.parquet"


def shard_path(folder: Path, number: int) -> Path:
    """The file of shard `number`, counted from 0."""
    return folder / "records" / f"{number:06d}.parquet"


def write_shard(folder: Path, number: int, rows: Sequence[dict[str, Any]]) -> None:
    """Write a shard so that it is there whole or not at all."""
    table = pa.Table.from_pylist(list(rows), schema=SCHEMA)
    _whole(
        shard_path(folder, number),
        lambda draft: pq.write_table(table, draft, compression="zstd", write_page_checksum=True),
    )


def has_shard(folder: Path, number: int, rows: int) -> bool:
    """Whether shard `number` is there, whole; one that is damaged is moved aside, so that it is asked again.

    Raises:
        RunFailed: it cannot be moved.
    """
    path = shard_path(folder, number)
    if not path.is_file():
        return False
    try:
        found = len(_read_shard(path))
        if found == rows:
            return True
        why = f"{found} rows, not {rows}"
    except (pa.ArrowInvalid, OSError) as error:
        why = str(error)
    aside = path.with_name(f"{path.name}.damaged")
    with written(aside):
        os.replace(path, aside)
    say(f"{path}: is not a whole record file ({why}); it is moved to {aside.name}, and asked again")
    return False


def write_items(folder: Path, items: pd.DataFrame) -> None:
    """Keep what the items say beside the records, so that scoring needs no data set."""
    _whole(folder / ITEMS, lambda draft: items.to_parquet(draft, index=False))


def write_about(folder: Path, about: dict[str, Any]) -> None:
    """Write `run.json`."""
    text = json.dumps(about, ensure_ascii=False, indent=2, default=str) + "\n"
    _whole(folder / ABOUT, lambda draft: draft.write_text(text, "utf-8"))


def read_about(folder: Path) -> dict[str, Any]:
    """`run.json` of a run.

    Raises:
        BadInput: not a run's folder.
    """
    try:
        about: dict[str, Any] = json.loads((folder / ABOUT).read_text("utf-8"))
    except FileNotFoundError:
        raise BadInput(f"{folder}: holds no run (no {ABOUT}); give a folder that `bench run` wrote") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{folder / ABOUT}: cannot be read ({error})") from None
    missing = [
        name
        for name in (
            "benchmark",
            "asked",
            "model",
            "preset",
            "verbs",
            "reads",
            "requests",
            "shard",
        )
        if not isinstance(about, dict) or name not in about
    ]
    if missing:
        raise BadInput(
            f"{folder / ABOUT}: is not what a run writes (`{missing[0]}` is missing); give another folder"
        )
    return about


def read_items(folder: Path) -> pd.DataFrame:
    """The items of a run, as `bench.data.frame` made them.

    Raises:
        BadInput: the file is missing or not whole.
    """
    try:
        return pd.read_parquet(folder / ITEMS, partitioning=None)
    except (pa.ArrowInvalid, OSError) as error:
        raise BadInput(
            f"{folder / ITEMS}: is missing or not whole ({error}); run again into another folder"
        ) from None


def read(folder: Path) -> pd.DataFrame:
    """All rows of a run, in the order in which they were planned.

    Raises:
        BadInput: no records yet, or a file that is not whole.
    """
    paths = sorted((folder / "records").glob("[0-9]*.parquet"))
    if not paths:
        raise BadInput(f"{folder}: holds no records yet; start its `bench run` again to continue it")
    tables: list[pa.Table] = []
    for path in paths:
        try:
            table = _read_shard(path)
            if "place" not in table.schema.names:  # an older run's, which was asked in the plan's order
                done = sum(len(earlier) for earlier in tables)
                table = table.append_column("place", pa.array(range(done, done + len(table)), pa.int64()))
            if "cut" not in table.schema.names:  # nor was it asked whether replies were cut off
                missing = pa.nulls(len(table), pa.bool_())
                table = table.add_column(SCHEMA.get_field_index("cut"), "cut", missing)
            if table.schema.names != SCHEMA.names:
                raise pa.ArrowInvalid(f"its columns are {', '.join(table.schema.names[:5])}...")
            tables.append(table.cast(SCHEMA))
        except (pa.ArrowInvalid, OSError) as error:
            raise BadInput(
                f"{path}: is not a whole record file ({error}); start its `bench run` again, which moves it aside and asks it anew"
            ) from None
    frame: pd.DataFrame = pa.concat_tables(tables).to_pandas()
    frame = frame.sort_values("place", kind="stable", ignore_index=True)
    return frame.drop(columns=["cut", "place"])


def cut(folder: Path) -> dict[str, int]:
    """How many replies of a run were cut off at their limit of tokens, by task; only tasks that have some."""
    tables = [
        pq.read_table(path, partitioning=None) for path in sorted((folder / "records").glob("[0-9]*.parquet"))
    ]
    tasks = [
        row["task"] for table in tables if "cut" in table.schema.names
        for row in table.select(["task", "cut"]).to_pylist() if row["cut"]
    ]  # fmt: skip
    return dict(Counter(tasks))


@contextmanager
def written(path: Path) -> Iterator[None]:
    """Say of whatever the system refuses in the block that `path` cannot be written.

    Raises:
        RunFailed: it cannot, because the disk is full, the folder read-only...
    """
    try:
        yield
    except OSError as error:
        raise RunFailed(
            f"{path}: cannot be written ({error.strerror or error}); "
            "once that is mended, the same command continues from what is recorded"
        ) from error


def _read_shard(path: Path) -> pa.Table:
    return pq.read_table(path, partitioning=None, page_checksum_verification=True)


def _whole(path: Path, write: Any) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    with written(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            write(draft)
            with draft.open("rb") as stream:
                os.fsync(stream.fileno())
            os.replace(draft, path)
        finally:
            draft.unlink(missing_ok=True)
