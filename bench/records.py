"""What was asked and what came back: a folder with `run.json`, `items.parquet` and `records/*.parquet`, a row a request.

A shard is written beside its final name and renamed, so that a file with a shard's name is whole. Scores are never
stored; they are computed from these rows, so that a corrected metric needs no model.
"""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from bench import sealed
from bench.core.errors import BadInput, RunFailed
from bench.core.files import DRAFT, atomic_path, atomic_write, explain_write_errors
from bench.core.progress import say

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
RUN_JSON = "run.json"
# Names the file in which `note_opened` lists runs.
OPENED_RUNS = "BENCH_OPENED_RUNS"
ITEMS = "items.parquet"
READINGS = "readings.json"
# A reply, the hash of its text, and what a person read in it ("" for no answer).
READING_COLUMNS = ("task", "item_id", "request", "reply_hash", "person", "repeat")


def note_opened(folder: Path) -> None:
    """Add a run's folder to the list of a page that wants to know what it rests on."""
    if listing := os.environ.get(OPENED_RUNS):
        with open(listing, "a", encoding="utf-8") as stream:
            stream.write(f"{folder.resolve()}\n")


def shard_path(folder: Path, number: int) -> Path:
    """The file of shard `number`, counted from 0."""
    return folder / "records" / f"{number:06d}.parquet"


def write_shard(folder: Path, number: int, rows: Sequence[dict[str, Any]]) -> None:
    """Write a shard so that it is there whole or not at all.

    Raises:
        RunFailed: it cannot be written.
    """
    path = shard_path(folder, number)
    table = pa.Table.from_pylist(list(rows), schema=SCHEMA)
    with explain_write_errors(path), atomic_path(path) as draft:
        sealed.write(table, draft, f"{_whose(folder)} {number}")


def lacking(folder: Path, sizes: Mapping[int, int]) -> dict[int, str]:
    """The shards that are to be asked: number to what is wrong with the file, "" where there is none.

    Args:
        sizes: how many rows each shard has.

    Raises:
        RunFailed: a file that is there cannot be read.
    """
    found, whose = {}, _whose(folder)
    for number, rows in sizes.items():
        path = shard_path(folder, number)
        if not path.is_file():
            found[number] = ""
            continue
        try:
            there = sealed.rows(path, f"{whose} {number}")
        except sealed.Damaged as damage:
            found[number] = str(damage)
        except OSError as error:
            raise RunFailed(f"{path}: cannot be read ({error.strerror or error})") from None
        else:
            if there != rows:
                found[number] = f"it has {there} rows, not {rows}"
    return found


def put_aside(folder: Path, number: int, why: str) -> None:
    """Take a damaged shard out of the way, so that it is asked again; for whom the folder is held.

    Raises:
        RunFailed: it cannot be moved.
    """
    path = shard_path(folder, number)
    aside = path.with_name(f"{path.name}.damaged")
    with explain_write_errors(aside):
        os.replace(path, aside)
    say(
        f"{path}: is no whole record file of this run ({why}); it is moved to {aside.name}, and asked again"
    )


def sweep(folder: Path) -> None:
    """Remove what killed processes left half written; for whom the folder is held."""
    for place in (folder, folder / "records"):
        for left in place.glob(f"{DRAFT}*"):
            with suppress(OSError):
                left.unlink()


def write_items(folder: Path, items: pd.DataFrame) -> None:
    """Keep what the items say beside the records, so that scoring needs no data set."""
    with explain_write_errors(folder / ITEMS), atomic_path(folder / ITEMS) as draft:
        sealed.write(pa.Table.from_pandas(items, preserve_index=False), draft, ITEMS)


def has_items(folder: Path, items: pd.DataFrame) -> bool:
    """Tell whether just these items are there, undamaged."""
    try:
        stored = sealed.read(folder / ITEMS)
    except (sealed.Damaged, OSError):
        return False
    return bool(stored.equals(pa.Table.from_pandas(items, preserve_index=False)))


def write_run_json(folder: Path, about: dict[str, Any]) -> None:
    """Write `run.json`."""
    with explain_write_errors(folder / RUN_JSON):
        atomic_write(
            folder / RUN_JSON, json.dumps(about, ensure_ascii=False, indent=2, default=str) + "\n"
        )


def read_run_json(folder: Path) -> dict[str, Any]:
    """`run.json` of a run.

    Raises:
        BadInput: not a run's folder.
    """
    try:
        about: dict[str, Any] = json.loads((folder / RUN_JSON).read_text("utf-8"))
    except FileNotFoundError:
        raise BadInput(
            f"{folder}: holds no run (no {RUN_JSON}); give a folder that `bench run` wrote"
        ) from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{folder / RUN_JSON}: cannot be read ({error})") from None
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
            f"{folder / RUN_JSON}: is not what a run writes (`{missing[0]}` is missing); give another folder"
        )
    return about


def read_items(folder: Path) -> pd.DataFrame:
    """The items of a run, as `bench.data.frame` made them.

    Raises:
        BadInput: the file is missing or not whole.
    """
    try:
        table = sealed.read(folder / ITEMS)
    except (sealed.Damaged, OSError) as error:
        raise BadInput(
            f"{folder / ITEMS}: is missing or not whole ({error}); start its `bench run` again, which writes it anew"
        ) from None
    found: pd.DataFrame = table.to_pandas()
    return found


def reply_hash(reply: str) -> str:
    """Give a reply's hash, by which a sheet's answer is held against the reply that was recorded."""
    return hashlib.sha256(reply.encode()).hexdigest()[:16]


def write_readings(folder: Path, readings: dict[str, Any]) -> None:
    """Keep what a person read in a run's replies: the sheet's name and hash, and a row a reply.

    Raises:
        RunFailed: the file cannot be written.
    """
    with explain_write_errors(folder / READINGS):
        text = json.dumps(readings, ensure_ascii=False, indent=1)
        atomic_write(folder / READINGS, text + "\n")


def read_readings(folder: Path) -> pd.DataFrame:
    """Read what a person read in a run's replies: `READING_COLUMNS`; no row where nobody did.

    Raises:
        BadInput: the file is not what `bench mark --readings` writes.
    """
    path = folder / READINGS
    if not path.is_file():
        return pd.DataFrame(columns=list(READING_COLUMNS))
    try:
        rows = json.loads(path.read_text("utf-8"))["readings"]
        texts = READING_COLUMNS[:-1]
        cells = [[*(str(row[name]) for name in texts), int(row["repeat"])] for row in rows]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadInput(
            f"{path}: is not what `bench mark --readings` writes ({type(error).__name__}); remove it, "
            "and read the sheet again"
        ) from None
    return pd.DataFrame(cells, columns=list(READING_COLUMNS))


def read(folder: Path) -> pd.DataFrame:
    """All rows of a run, in the order in which they were planned.

    Raises:
        BadInput: no records yet, or a file that is not whole.
    """
    frame: pd.DataFrame = _all(folder).to_pandas()
    frame = frame.sort_values("place", kind="stable", ignore_index=True)
    return frame.drop(columns="place")


def is_complete(folder: Path) -> bool:
    """Say whether every request of the run in `folder` is answered; False where there is no run."""
    try:
        return len(_all(folder)) == read_run_json(folder)["requests"]
    except BadInput:
        return False


def cut(folder: Path) -> dict[str, int]:
    """How many replies of a run were cut off at their limit of tokens, by task; only tasks that have some."""
    rows = _all(folder).select(["task", "cut"]).to_pylist()
    return dict(Counter(row["task"] for row in rows if row["cut"]))


def _all(folder: Path) -> pa.Table:
    paths = sorted((folder / "records").glob("[0-9]*.parquet"))
    if not paths:
        raise BadInput(
            f"{folder}: holds no records yet; start its `bench run` again to continue it"
        )
    tables: list[pa.Table] = []
    for path in paths:
        try:
            table = sealed.read(path)
            if (
                "place" not in table.schema.names
            ):  # an older run's, which was asked in the plan's order
                done = sum(len(earlier) for earlier in tables)
                table = table.append_column(
                    "place", pa.array(range(done, done + len(table)), pa.int64())
                )
            if "cut" not in table.schema.names:  # nor was it asked whether replies were cut off
                missing = pa.nulls(len(table), pa.bool_())
                table = table.add_column(SCHEMA.get_field_index("cut"), "cut", missing)
            if table.schema.names != SCHEMA.names:
                raise sealed.Damaged(f"its columns are {', '.join(table.schema.names[:5])}...")
            tables.append(table.cast(SCHEMA))
        except (sealed.Damaged, pa.ArrowException, OSError) as error:
            raise BadInput(
                f"{path}: is not a whole record file ({error}); start its `bench run` again, which moves it aside and asks it anew"
            ) from None
    return pa.concat_tables(tables)


def _whose(folder: Path) -> str:
    """What tells a run from others: who was asked what. A judge may come later, and is no part of it."""
    about = read_run_json(folder)
    asked = {k: v for k, v in about["asked"].items() if v is not None and not k.startswith("judge")}
    text = json.dumps([about["benchmark"], asked], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
