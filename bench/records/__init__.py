"""Read and write the folder of a run: `run.json`, `items.parquet` and `records/*.parquet`.

Records have one row per request and are written in shards, each to a temporary name that is then
renamed. Scores are computed from these rows; `scores.json` is a copy for other programs, which
nothing here reads.

The footer of a file holds a seal: the run and shard that it belongs to, and a checksum of all its
bytes. Parquet's own page checksums do not cover the footer, where a changed byte can turn a text
into a null without an error. A file without a seal is refused.
"""

import hashlib
import io
import json
import os
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Self

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ConfigDict, TypeAdapter, ValidationError

from bench.core.errors import BadInput, RunFailed, explained, quoted
from bench.core.files import atomic_path, atomic_write, explain_write_errors
from bench.core.locks import HELD, Held, lock
from bench.core.progress import say
from bench.records.run_json import RunJson

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
        # Whether the reply was cut off at its limit of tokens; null where that is not known.
        ("cut", pa.bool_()),
        # Position of the request in the plan; similar prompts are asked together in any order.
        ("place", pa.int64()),
    ]
)
RUN_JSON, ITEMS = "run.json", "items.parquet"
SCORES = "scores.json"
JOURNAL, LOCK = "journal.jsonl", ".lock"
LOCKS = (LOCK, LOCK + HELD)
# Environment variable with the file in which `note_opened` lists runs.
OPENED_RUNS = "BENCH_OPENED_RUNS"
SEAL = b"bench.seal"
# What identifies an answer in the records of a run.
KEYS = ["task", "item_id", "request", "repeat"]
# Stands for the checksum while it is computed.
NO_CHECKSUM = b"00000000"
# Shard and position of a request, the hash of its prompt, and its answer: see `Journal.add`.
_JOURNAL_LINE = TypeAdapter(
    tuple[int, int, str, str, list[float] | None, str, float, bool | None],
    config=ConfigDict(strict=True),
)


class Damaged(Exception):
    """A file whose content is not what was written; the message says why."""


@contextmanager
def run_lock(folder: Path) -> Iterator[str]:
    """Lock the folder of a run for writing until the block ends or this process dies.

    Yields why this process may not write there, "" if it may. A folder that was created for this
    and in which no run was begun is removed again.
    """
    refusal = ""
    with ExitStack() as stack:
        if not folder.exists():
            stack.callback(_remove_empty, folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(lock(folder / LOCK))
        except Held as holder:
            refusal = f"{holder} is asking this run; wait until it has ended"
        except OSError as error:
            refusal = f"cannot be written ({error.strerror or error}); fix that"
        try:
            yield refusal and f"{folder}: {refusal}, or give another --out"
        finally:
            # Before the release, so that no other process can have begun a run here.
            if not refusal and not (folder / RUN_JSON).is_file():
                with suppress(OSError):
                    (folder / LOCK).unlink(missing_ok=True)


def _remove_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


def note_opened(folder: Path) -> None:
    """Add a run's folder to the list of the runs that a page rests on, if there is one."""
    if listing := os.environ.get(OPENED_RUNS):
        with open(listing, "a", encoding="utf-8") as stream:
            stream.write(f"{folder.resolve()}\n")


def _write_json(path: Path, content: Any) -> None:
    with explain_write_errors(path):
        atomic_write(path, json.dumps(content, ensure_ascii=False, indent=2, default=str) + "\n")


def write_run_json(folder: Path, about: dict[str, Any]) -> None:
    """Write `run.json`."""
    _write_json(folder / RUN_JSON, about)


def read_run_json(folder: Path) -> dict[str, Any]:
    """Read `run.json`; `BadInput` if the folder holds no run, or a value in it is not allowed."""
    path = folder / RUN_JSON
    try:
        content = path.read_bytes()
        about: dict[str, Any] = json.loads(content, parse_constant=_refuse_constant)
        RunJson.model_validate_json(content)
    except (FileNotFoundError, NotADirectoryError):
        raise BadInput(
            f"{folder}: holds no run (no {RUN_JSON}); give a folder that `bench run` wrote"
        ) from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"]))
        what = f"key `{key}`: {explained(first)}" if key else explained(first)
        raise BadInput(
            f"{path}: {what}; put back the file that `bench run` wrote, or ask into another folder"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(f"{path}: cannot be read ({error})") from None
    return about


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no value of JSON")


def shard_path(folder: Path, number: int) -> Path:
    """Return the file of shard `number`, counted from 0."""
    return folder / "records" / f"{number:06d}.parquet"


def write_shard(folder: Path, number: int, rows: Sequence[dict[str, Any]]) -> None:
    """Write a complete shard."""
    table = pa.Table.from_pylist(list(rows), schema=SCHEMA)
    _write(table, shard_path(folder, number), f"{_identity(read_run_json(folder))} {number}")


def missing_shards(folder: Path, sizes: Mapping[int, int]) -> dict[int, str]:
    """Find the shards that have to be asked: number to why its file is damaged, "" without a file.

    Args:
        sizes: the number of rows of each shard.
    """
    missing, identity = {}, _identity(read_run_json(folder))
    for number, expected in sizes.items():
        path = shard_path(folder, number)
        try:
            with _opened(path, f"{identity} {number}") as file:
                n_rows = file.metadata.num_rows
            if n_rows != expected:
                missing[number] = f"it has {n_rows} rows, not {expected}"
        except FileNotFoundError:
            missing[number] = ""
        except Damaged as damage:
            missing[number] = str(damage)
        except OSError as error:
            raise RunFailed(f"{path}: cannot be read ({error.strerror or error})") from None
    return missing


def set_aside(folder: Path, number: int, reason: str) -> None:
    """Rename a damaged shard, so that it is asked again; the folder has to be locked."""
    path = shard_path(folder, number)
    aside = path.with_name(f"{path.name}.damaged")
    with explain_write_errors(aside):
        os.replace(path, aside)
    say(
        f"{path}: is no complete record file of this run ({reason}); it is moved to {aside.name}, "
        "and asked again"
    )


def read(folder: Path, *, prompts: bool = True) -> pd.DataFrame:
    """Read all records of a run in the order of the plan; `BadInput` if a file is not its own.

    Args:
        prompts: whether to read `prompt` and `prompt_hash` too, which are most of a run's size.
    """
    left_out = () if prompts else ("prompt", "prompt_hash")
    names = [name for name in SCHEMA.names if name not in left_out]
    frame: pd.DataFrame = _read_shards(folder, names).to_pandas()
    frame = frame.sort_values("place", kind="stable", ignore_index=True)
    return frame.drop(columns="place")


def count(folder: Path) -> int:
    """Count the answers of a run by the footers of its files; damaged files count as empty."""
    n = 0
    for path in (folder / "records").glob("*.parquet"):
        with suppress(OSError, pa.ArrowException):
            n += pq.read_metadata(path).num_rows
    return n


def is_complete(folder: Path) -> bool:
    """Return whether every request of the run is answered; False where there is no run."""
    try:
        return len(_read_shards(folder, ["place"])) == read_run_json(folder)["requests"]
    except BadInput:
        return False


def count_cut_off(folder: Path) -> dict[str, int]:
    """Count by task the replies that were cut off at their limit of tokens."""
    rows = _read_shards(folder, ["task", "cut"]).to_pylist()
    return dict(Counter(row["task"] for row in rows if row["cut"]))


def write_items(folder: Path, about: dict[str, Any], items: pd.DataFrame) -> None:
    """Write the items of the run `about` beside the records, so that scoring needs no data set."""
    table = pa.Table.from_pandas(items, preserve_index=False)
    _write(table, folder / ITEMS, f"{ITEMS} {_identity(about)}")


def has_items(folder: Path, items: pd.DataFrame) -> bool:
    """Return whether exactly these items are stored, undamaged."""
    try:
        with _opened(folder / ITEMS, *_owners_of_items(folder)) as file:
            return bool(file.read().equals(pa.Table.from_pandas(items, preserve_index=False)))
    except (Damaged, OSError):
        return False


def read_items(folder: Path) -> pd.DataFrame:
    """Read the items of a run, as `bench.data.frame` made them."""
    try:
        with _opened(folder / ITEMS, *_owners_of_items(folder)) as file:
            items: pd.DataFrame = file.read(use_threads=False).to_pandas()
            is_owned = _owner(file) != ITEMS
        answered = () if is_owned else _read_shards(folder, ["item_id"])["item_id"].to_pylist()
        if others := set(answered) - set(items.item_id):
            raise Damaged(f"it has no item {quoted(min(others))}, which the records answer")
    except (Damaged, OSError) as error:
        raise BadInput(
            f"{folder / ITEMS}: is missing or damaged ({error}); start its `bench run` again, "
            "which writes it anew"
        ) from None
    return items


def text_hash(text: str) -> str:
    """Return a short hash of a text, such as a reply, to notice when it is another one."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def write_scores(folder: Path, scores: dict[str, Any]) -> None:
    """Write `scores.json`."""
    _write_json(folder / SCORES, scores)


class Journal:
    """Answers that come one at a time, kept until their shard is written.

    One line per answer, with a checksum: a line that was cut off or changed is no answer. The file
    is removed when the block that it was opened for ends without an error.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "records" / JOURNAL
        self._known: dict[tuple[int, int, str], list[Any]] = {}
        self._file: BinaryIO | None = None
        for text in self.path.read_bytes().split(b"\n") if self.path.is_file() else ():
            checksum, _, line = text.partition(b" ")
            if checksum == b"%08x" % zlib.crc32(line):
                with suppress(ValidationError):
                    shard, position, prompt_hash, *answer = _JOURNAL_LINE.validate_json(line)
                    self._known[shard, position, prompt_hash] = answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._file:
            with suppress(OSError):  # a full disk, which `add` has reported
                self._file.close()
        if kind is None:
            with explain_write_errors(self.path):
                self.path.unlink(missing_ok=True)

    def get(self, shard: int, position: int, prompt_hash: str) -> list[Any] | None:
        """Return the answer to the request at `position` of `shard`, if it had the same prompt."""
        return self._known.get((shard, position, prompt_hash))

    def add(self, shard: int, position: int, prompt_hash: str, answer: Sequence[Any]) -> None:
        """Keep the values of an answer."""
        line = json.dumps([shard, position, prompt_hash, *answer]).encode()
        with explain_write_errors(self.path):
            if self._file is None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._file = self.path.open("ab")
                self._file.write(b"\n")  # the last line may have been cut off
            self._file.write(b"%08x %b\n" % (zlib.crc32(line), line))
            self._file.flush()  # to the system, where it outlives this process


def _read_shards(folder: Path, names: Sequence[str]) -> pa.Table:
    """Read columns of all shards, one after the other."""
    schema = pa.schema([SCHEMA.field(name) for name in names])
    tables: list[pa.Table] = []
    identity = _identity(read_run_json(folder))
    for path in sorted((folder / "records").glob("[0-9]*.parquet")):
        if not path.stem.isdecimal():  # a copy that somebody made
            continue
        try:
            with _opened(path, f"{identity} {int(path.stem)}") as file:
                tables.append(file.read(names, use_threads=False).cast(schema))
        except (Damaged, OSError) as error:
            raise BadInput(
                f"{path}: is not a complete record file ({error}); start its `bench run` again, "
                "which moves it aside and asks it anew"
            ) from None
    if not tables:
        raise BadInput(
            f"{folder}: holds no records yet; start its `bench run` again to continue it"
        )
    return pa.concat_tables(tables)


def _identity(about: dict[str, Any]) -> str:
    """Hash who was asked what; a judge may be added later, so it is no part of this."""
    asked = {k: v for k, v in about["asked"].items() if v is not None and "judge" not in k}
    return text_hash(json.dumps([about["benchmark"], asked], sort_keys=True, ensure_ascii=False))


def _owners_of_items(folder: Path) -> tuple[str, str]:
    """Return what the seal of a run's items may name; version 0.1 did not seal whose they are."""
    return f"{ITEMS} {_identity(read_run_json(folder))}", ITEMS


def _write(table: pa.Table, path: Path, owner: str) -> None:
    """Write a table with a seal: its owner, and the checksum of the file's bytes."""
    seal = f"{owner} ".encode() + NO_CHECKSUM
    metadata = {**(table.schema.metadata or {}), SEAL: seal}
    buffer = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(metadata), buffer, compression="zstd")
    before, _, after = buffer.getvalue().rpartition(seal)
    checksum = _checksum(buffer.getvalue(), seal)
    with explain_write_errors(path), atomic_path(path) as draft:
        draft.write_bytes(before + seal.removesuffix(NO_CHECKSUM) + checksum + after)


@contextmanager
def _opened(path: Path, *owners: str) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file; `Damaged` if it is not what was written for one of `owners`."""
    content = path.read_bytes()
    try:
        with pq.ParquetFile(pa.BufferReader(content)) as file:
            seal = (file.metadata.metadata or {}).get(SEAL)
            if not seal:
                raise Damaged("it has no checksum")
            if seal not in content or _checksum(content, seal) != seal[-8:]:
                raise Damaged("its bytes are not those that were written")
            if _owner(file) not in owners:
                raise Damaged("it is another run's, or has another place in it")
            yield file
    except (pa.ArrowException, ValueError, OSError) as error:
        raise Damaged(" ".join(str(error).split()) or type(error).__name__) from None


def _owner(file: pq.ParquetFile) -> str:
    """Return the owner that a file's seal names."""
    return bytes(file.metadata.metadata[SEAL][:-9]).decode()


def _checksum(content: bytes, seal: bytes) -> bytes:
    """Compute the checksum of a file as if its seal held none."""
    before, _, after = content.rpartition(seal)
    return b"%08x" % zlib.crc32(before + seal[:-8] + NO_CHECKSUM + after)
