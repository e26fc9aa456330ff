"""Read and write the folder of a run: `run.json`, `items.parquet` and the records.

While a model is asked, each of its answers becomes a line of `records/answers.jsonl`. After the
last one, we write all answers to `records/answers.parquet` in the order of the plan, note the hash
of this file in `run.json`, and remove `answers.jsonl`. As long as there is an `answers.jsonl`, we
read only this file. Runs of version 0.2 have several files `records/000000.parquet` instead.

We compute scores from the records; `scores.json` is a copy for other programs.
"""

import hashlib
import io
import itertools
import json
import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from bench.benchmarks.base import Benchmark
from bench.core import inputs
from bench.core.errors import CONTINUES, BadInput, RunFailed
from bench.core.files import atomic_path, atomic_write, explain_write_errors
from bench.core.locks import HELD, Held, lock
from bench.core.progress import say
from bench.metrics.verdicts import parsed
from bench.runs import schema
from bench.scorers.base import digest

SCHEMA = pa.schema(
    {
        "benchmark": pa.string(),
        "category": pa.string(),
        "task": pa.string(),
        "item_id": pa.string(),
        "request": pa.string(),
        "repeat": pa.int32(),
        "seed": pa.int64(),
        "prompt_version": pa.string(),
        "prompt_hash": pa.string(),
        "prompt": pa.string(),
        "response": pa.string(),
        "logprobs": pa.list_(pa.float64()),
        # The value in the reply, and whether there is one: null in `answers.jsonl`.
        "parsed": pa.string(),
        "valid": pa.bool_(),
        "error": pa.string(),
        "seconds": pa.float64(),
        # Whether the reply was truncated at its limit of tokens; null if unknown.
        "cut": pa.bool_(),
    }
)
# The columns that identify a request of a run.
KEYS = ["task", "item_id", "request", "repeat"]
# Replies by `KEYS`; None for a failed request.
Replies = dict[tuple[Any, ...], str | None]
RUN_JSON = inputs.RUN_JSON
ITEMS = "items.parquet"
# The entry of `run.json` with the hash of the code that parsed the replies.
PARSED_BY = "parsed_by"
# Rows as dictionaries take several times the memory of a table, so we convert tables in parts.
MAX_ROWS_IN_PYTHON = 10_000
ANSWERS = "records/answers.jsonl"
RECORDS = "records/answers.parquet"
# The texts before and after the checksum in a line of `answers.jsonl`; then comes the answer.
CHECKSUM, ANSWER = '{"crc32": ', ', "answer": '
LOCK = ".lock"
LOCKS = (LOCK, LOCK + HELD)


@contextmanager
def run_lock(folder: Path) -> Iterator[None]:
    """Lock the folder of a run for writing; remove new folders again if no run begins there."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    with ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(lock(folder / LOCK))
        except (Held, OSError) as error:
            reason = f"{error} is asking this run; wait until it has ended"
            if isinstance(error, OSError):
                reason = f"cannot be written ({error.strerror or error}); fix that"
            raise BadInput(f"{folder}: {reason}, or give another --out") from None
        try:
            yield
        finally:
            # We still hold the lock, so that no other process begins a run here.
            if not (folder / RUN_JSON).is_file():
                with suppress(OSError):
                    (folder / LOCK).unlink(missing_ok=True)
                    for path in missing:
                        path.rmdir()


def write_run_json(folder: Path, metadata: dict[str, Any]) -> None:
    """Write `run.json` with a hash of its content, so that we notice changes."""
    write_json(folder / RUN_JSON, {**metadata, schema.HASH: digest(metadata)})


def write_json(path: Path, content: Any) -> None:
    atomic_write(path, json.dumps(content, ensure_ascii=False, indent=2, default=str) + "\n")


def run_json_in(folder: Path) -> dict[str, Any]:
    """Read the `run.json` in a folder; return {} if there is none."""
    return read_run_json(folder) if (folder / RUN_JSON).is_file() else {}


def read_run_json(folder: Path) -> dict[str, Any]:
    """Read `run.json`; entries of older versions get the names of today.

    Raises:
        BadInput: the file is missing, or was changed since we wrote it.
    """
    path = folder / RUN_JSON
    try:
        return schema.read(json.loads(path.read_bytes()))
    except (FileNotFoundError, NotADirectoryError):
        raise BadInput(
            f"{folder}: holds no run (no {RUN_JSON}); give a folder that `bench run` wrote"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(
            f"{path}: is damaged or was changed ({error}); put back the file that `bench run` "
            "wrote, or give another --out"
        ) from None


def write_items(folder: Path, metadata: dict[str, Any], items: pd.DataFrame) -> None:
    """Write the items of a run, and `run.json`."""
    _write_table(folder, ITEMS, pa.Table.from_pandas(items, preserve_index=False), metadata)


def read_items(folder: Path) -> pd.DataFrame:
    """Read the items of a run, as `bench.data.frame` made them."""
    return _read_table(folder, ITEMS).to_pandas(use_threads=False)


def read(folder: Path, *, prompts: bool = True) -> pd.DataFrame:
    """Read the answers of a run; it is faster without the prompts, which are most of its size."""
    left_out = () if prompts else ("prompt", "prompt_hash")
    table = _read_answers(folder, [name for name in SCHEMA.names if name not in left_out])
    if not len(table):
        raise BadInput(f"{folder}: holds no records yet; its `bench run` continues it")
    if table["parsed"].null_count:  # the run is still asked
        table = table.drop_columns(["parsed", "valid"])
    return table.to_pandas(use_threads=False)


def replies_of(rows: pd.DataFrame) -> Replies:
    """Return the replies in some records."""
    columns = (rows[name].tolist() for name in (*KEYS, "response", "error"))
    return {
        tuple(key): None if error else response
        for *key, response, error in zip(*columns, strict=True)
    }


def count(folder: Path) -> int:
    """Count the answers of a run; 0 for a damaged file."""
    with suppress(BadInput):
        return len(_read_answers(folder, KEYS))
    return 0


def is_complete(folder: Path) -> bool:
    """Return whether a folder holds a run with its items and all its answers, undamaged."""
    with suppress(BadInput):
        _read_table(folder, ITEMS, [])
        is_asked = (folder / ANSWERS).exists()
        return not is_asked and count(folder) == read_run_json(folder)["requests"]
    return False


def reopen(folder: Path) -> pd.DataFrame:
    """Prepare `answers.jsonl` for more answers, and return the recorded ones without prompts."""
    path = folder / ANSWERS
    if not path.exists():
        try:
            _write_lines(path, _recorded(folder, SCHEMA.names))
        except BadInput:
            for damaged in sorted((folder / "records").glob("*.parquet")):
                with explain_write_errors(damaged):
                    os.replace(damaged, f"{damaged}.damaged")
                say(f"{damaged}: is moved to {damaged.name}.damaged, and asked again")
            _write_lines(path, SCHEMA.empty_table())
    names = [*KEYS, "prompt_hash", "response", "error"]
    return _read_answers(folder, names).to_pandas(use_threads=False)


def add(folder: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Add answers, which are rows of `SCHEMA`, to `answers.jsonl`."""
    path = folder / ANSWERS
    with explain_write_errors(path), path.open("ab") as file:
        # We begin a new line, because a killed process may have left half a line.
        file.write(f"\n{''.join(map(_line, rows))}".encode())
        file.flush()  # the system keeps them if this process dies
        if len(rows) > 1:  # a block of a local model: wait for the disk too
            os.fsync(file.fileno())


def finish(
    folder: Path,
    metadata: dict[str, Any],
    replies: Replies,
    benchmark: Benchmark,
) -> pa.Table:
    """Parse all replies, write `answers.parquet` in the order of `replies`, and remove the lines.

    Args:
        replies: the recorded replies by `KEYS`; None for a failed request.

    Raises:
        RunFailed: another program has changed `answers.jsonl`; we keep the unchanged answers.
    """
    path, table = folder / ANSWERS, _read_answers(folder, SCHEMA.names)
    rows = table.select([*KEYS, "response", "error"]).to_pandas(use_threads=False)
    numbers = {
        key: k
        for k, (key, reply) in enumerate(replies_of(rows).items())
        if key in replies and replies[key] == reply
    }
    if lost := [key for key in replies if key not in numbers]:
        _write_lines(path, table.take(sorted(numbers.values())))
        raise RunFailed(
            f"{path}: {len(lost):,} of {len(replies):,} answers are missing or not as we recorded "
            f"them, the first is {', '.join(map(str, lost[0]))}; another program, for example one "
            f"that synchronises folders, may have changed the file; {CONTINUES}"
        )
    answers = table.take([numbers[key] for key in replies])
    answers = answers.drop_columns(["parsed", "valid"])
    rows = answers.drop_columns("prompt").to_pandas(use_threads=False)
    values = parsed(benchmark, rows, read_items(folder))
    metadata[PARSED_BY] = benchmark.parser
    answers = answers.append_column("parsed", pa.array(values, pa.string()))
    answers = answers.append_column("valid", pa.array(values != "")).select(SCHEMA.names)
    _write_table(folder, RECORDS, answers, metadata)
    with explain_write_errors(path):
        path.unlink(missing_ok=True)
    return answers


def _write_lines(path: Path, answers: pa.Table) -> None:
    """Write `answers.jsonl` with the rows of a table."""
    with atomic_path(path) as draft, draft.open("w", encoding="utf-8", newline="\n") as file:
        for batch in answers.to_batches(MAX_ROWS_IN_PYTHON):
            file.writelines(map(_line, batch.to_pylist()))


def _line(row: dict[str, Any]) -> str:
    """Return an answer as a line of JSON with a checksum."""
    text = json.dumps(row, ensure_ascii=False)
    return f"{CHECKSUM}{zlib.crc32(text.encode())}{ANSWER}{text}}}\n"


def _row(line: bytes) -> dict[str, Any] | None:
    """Return the answer in a line; None if this line is empty, truncated or changed."""
    checksum, _, text = line.strip().removesuffix(b"}").partition(ANSWER.encode())
    if checksum != f"{CHECKSUM}{zlib.crc32(text)}".encode():
        return None
    return json.loads(text)


def _read_answers(folder: Path, names: Sequence[str]) -> pa.Table:
    path = folder / ANSWERS
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return _recorded(folder, names)
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror}); fix that") from None
    columns = pa.schema(map(SCHEMA.field, {*names, *KEYS}))
    tables = [columns.empty_table()]
    with file:
        rows = filter(None, map(_row, file))
        while batch := list(itertools.islice(rows, MAX_ROWS_IN_PYTHON)):
            tables.append(pa.Table.from_pylist(batch, columns))
    table = pa.concat_tables(tables)
    # The last answer to a request counts.
    is_earlier = table.select(KEYS).to_pandas(use_threads=False).duplicated(keep="last")
    return table.filter(pa.array(~is_earlier)).select(names)


def _recorded(folder: Path, names: Sequence[str]) -> pa.Table:
    """Read the answers in Parquet files, in the order of the plan."""
    if (folder / RECORDS).exists():
        return _read_table(folder, RECORDS, names).cast(pa.schema(map(SCHEMA.field, names)))
    # Version 0.2 wrote several files, with the position of each request in the plan.
    columns = [*names, "place"]
    tables = [SCHEMA.append(pa.field("place", pa.int64())).empty_table().select(columns)]
    for path in sorted((folder / "records").glob("[0-9]*.parquet")):
        tables.append(_read_table(folder, f"records/{path.name}", columns))
    return pa.concat_tables(tables).sort_by("place").select(names)


def _write_table(folder: Path, name: str, table: pa.Table, metadata: dict[str, Any]) -> None:
    """Write a Parquet file of a run, and note its SHA-256 in `run.json`."""
    path = folder / name
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd", write_page_checksum=True)
    with atomic_path(path) as draft:
        draft.write_bytes(buffer.getvalue())
    sha256 = hashlib.sha256(buffer.getvalue()).hexdigest()
    metadata["files"] = {**metadata.get("files", {}), name: sha256}
    write_run_json(folder, metadata)


def parquet(content: bytes, columns: Sequence[str] | None = None) -> pa.Table:
    """Read columns of a Parquet file, by default all, without threads.

    A process that has threads of Arrow is aborted at its end now and then (apache/arrow#34314).
    """
    table = pq.ParquetFile(pa.BufferReader(content)).read(columns, use_threads=False)
    return table if columns is None else table.select(columns)


def _read_table(folder: Path, name: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a Parquet file of a run; raise `BadInput` if its hash is not the one in `run.json`."""
    path = folder / name
    noted = read_run_json(folder).get("files", {})
    try:
        content = path.read_bytes()
        # Version 0.2 noted no hashes.
        if name in noted and noted[name] != hashlib.sha256(content).hexdigest():
            raise ValueError("its content was changed")
        return parquet(content, columns)
    except (pa.ArrowException, ValueError, KeyError, OSError) as error:
        reason = " ".join(str(error).split())
        remedy = "writes it anew" if name == ITEMS else "moves it aside and asks again"
        raise BadInput(
            f"{path}: is missing or damaged ({reason}); start its `bench run` again, which {remedy}"
        ) from None
