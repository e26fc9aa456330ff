"""Change files of runs, studies and data sets at random, run commands on them, and count outcomes.

    python -m tests.fuzz 20000 --seed 1 --out outcomes.jsonl

A command may refuse a file in a sentence, or give the result that it gave before. A changed study
or data set is another input, and so is a changed run where a command says what is left to ask.
"""

import argparse
import contextvars
import copy
import faulthandler
import io
import json
import math
import os
import random
import re
import shutil
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from bench import cli, records
from bench.benchmarks import get
from bench.core.places import NOTEBOOKS
from bench.scorers.base import digest
from tests.slow.helpers.hostile import NASTY, damaged

LIMIT = 60  # seconds after which a command ends everything with a traceback
REFUSED, SAME, OTHER_INPUT = "refused", "same result", "other input"
FAULTS = OTHER_RESULT, TRACEBACK, OUTSIDE = "other result", "traceback", "written outside"
OPTIONS = {
    "cbbq": ["--categories", "age", "--limit", "3"],
    "mcbe": ["--categories", "age", "--tasks", "ss,ba", "--limit", "3", "--judge", "simulated:"],
    "nli_coal": ["--categories", "zh", "--limit", "2"],
}
STUDY = """
title: Fuzz
models: ["simulated:bias=0.2", {model: "simulated:bias=0.8", name: second}]
benchmarks:
  NAME: [{name: a, limit: 2, data: data, categories: [CATEGORY]}, {name: b, seed: 2, page: false}]
analyses: {compare_models: {variants: [a]}, explore: }
options: {preset: robust, repeats: 1, limits: {budget_requests: 400}}
"""
VALUES = [
    *(None, [], {}, "x", "", True, 0, -1, 0.5, 10**30, 2**62, 1e308, math.nan, math.inf, "12"),
    *("../../x", "/nowhere/x", ["x"], {"a": "b"}, "\u202e\x1b[31m$x_{$\n", "\ud800", "a\0b"),
    *("名" * 5000, "2026-01-01T00:00:00+00:00", [[[{"a": []}]]], [None, 1, "x", []]),
]
CELLS = [None, "", "x", "A", "../../x", "9" * 400, 0, 2**31 - 1, math.nan, True, [0.5], [-math.inf]]
NUMBER = re.compile(r'\b(?:score|value|ci_low|ci_high|n|valid_rate)"?: ?([^\s,}]+)')


FORMATS: dict[str, tuple[Callable[[str], Any], Callable[[Any], str]]] = {
    ".json": (json.loads, json.dumps),
    ".yml": (yaml.safe_load, yaml.safe_dump),
}


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the place of every value in nested lists and mappings: what it is in, and its key."""
    for key, part in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(part, dict | list):
            yield from places(part)


def change_value(path: Path, rng: random.Random) -> str:
    """Set, remove, rename or copy one of a file's values."""
    read, write = FORMATS[path.suffix]
    content = read(path.read_text("utf-8"))
    every = list(places(content))
    (within, key), (source, other) = rng.choice(every), rng.choice(every)
    kind, value = rng.choice(["set", "set", "set", "remove", "copy", "rename"]), rng.choice(VALUES)
    if kind == "remove":
        del within[key]
    elif kind == "rename" and isinstance(within, dict):
        within[rng.choice(["x", "../x", "", f"{key} "])] = within.pop(key)
    else:
        value = source[other] if kind == "copy" else value
        within[key] = copy.deepcopy(value)
    if path.name == "run.json" and rng.random() < 0.3:
        with suppress(KeyError, TypeError, ValueError):
            content["identity"] = digest([content["benchmark"], content["asked"]])[:8]
    path.write_text(write(content), "utf-8")
    return f"{key} {kind} {value!r:.40}"


def change_bytes(path: Path, rng: random.Random) -> str:
    """Flip a bit, cut, repeat, insert, or take the bytes of another file."""
    raw, other = path.read_bytes(), Path("other", *path.parts[1:])
    at, size = rng.randrange(len(raw)), rng.choice([1, 4, 64, 1000])
    changed = {
        "flip": raw[:at] + bytes([raw[at] ^ 1 << rng.randrange(8)]) + raw[at + 1 :],
        "cut": raw[:at],
        "zero": raw[:at] + b"\0" * size + raw[at + size :],
        "repeat": raw[:at] + raw[max(at - size, 0) :],
        "insert": damaged(raw, [("insert", rng.random(), rng.choice(NASTY))]),
        "token": damaged(raw, [("token", rng.random(), rng.choice(NASTY))]),
        "foreign": other.read_bytes() if other.is_file() else b"",
    }
    kind = rng.choice(list(changed))
    path.write_bytes(changed[kind])
    return f"bytes {kind} at {at}"


def change_table(path: Path, rng: random.Random) -> str:
    """Change rows, cells or columns of a Parquet file, as other programs do."""
    table = pq.read_table(path)
    names, at = table.schema.names, rng.randrange(len(table))
    name = rng.choice(names)
    values = table.column(name).to_pylist()
    values[at] = rng.choice(CELLS)
    cell = table.slice(0, 0)
    with suppress(pa.ArrowException, OverflowError):
        k, field = names.index(name), table.schema.field(name)
        cell = table.set_column(k, field, pa.array(values, field.type))
    changed = {
        "drop": table.drop_columns([name]),
        "rename": table.rename_columns([f"{n}x" if n == name else n for n in names]),
        "rows": table.slice(0, at),
        "twice": pa.concat_tables([table, table.slice(at, 1)]),
        "order": table.take(list(range(len(table)))[::-1]),
        "more": table.append_column("more", pa.array([1] * len(table))),
        "cell": cell,
    }
    kind = rng.choice(list(changed))
    # A program may keep what else is in the footer, or drop it.
    kept = changed[kind] if rng.random() < 0.5 else changed[kind].replace_schema_metadata()
    pq.write_table(kept, path)
    return f"{name} {kind} {values[at]!r:.40}"


def asking(name: str, out: str, model: str = "replay:answers.jsonl") -> list[str]:
    words = ["run", name, "--model", model, "--data", "data", "--out", out, "--format", "json"]
    return [*words, *OPTIONS[name]]


def page(name: str) -> None:
    """Run the cells of a benchmark's notebook over the run, as a page of a report does."""
    place: dict[str, Any] = {}
    for cell in json.loads((NOTEBOOKS / f"{name}.ipynb").read_text("utf-8"))["cells"]:
        code, tags = "".join(cell["source"]), cell["metadata"].get("tags", [])
        if cell["cell_type"] == "code" and "known_bias" not in code:
            exec(compile(code, name, "exec"), place)
            if "parameters" in tags:
                place |= {"recorded": ["run"], "tables": "out", "data": "data"}
    print(json.dumps(place["scores"].to_dict("records"), default=str))


# The words of commands; `page` is none of them, see `page`.
COMMANDS: dict[str, Callable[[str], list[str]]] = {
    "score": lambda _: ["score", "run", "--format", "json"],
    "table": lambda _: ["score", "run", "other", "--format", "json"],
    "continue": lambda name: asking(name, "run"),
    "dry run": lambda name: [*asking(name, "run"), "--dry-run"],
    "repeat": lambda _: ["run", "--from", "run", "--out", "again", "--format", "json"],
    "export": lambda _: ["export", "run", "--as", "eee", "--out", "out"],
    "mark": lambda _: ["mark", "run", "--out", "out/out.csv"],
    "page": lambda name: ["page", name],
    "unfinished": lambda name: asking(name, "unfinished"),
    "data": lambda name: ["data", name, "--data", "data", "--format", "json"],
    "new": lambda name: asking(name, "again"),
    "report": lambda _: ["report", "study.yml", "--out", "out", "--dry-run", "--format", "json"],
}
OF_RUN = ["score", "continue", "dry run", "repeat", "mark", "export"] * 9
OF_RUN += ["table", "table", "page"]
# Of each file: how often it is changed, where it is, by what, and the commands that read it.
FILES: dict[str, tuple[int, str, Callable[[Path, random.Random], str], list[str]]] = {
    "run.json": (8, "run/run.json", change_value, OF_RUN),
    "items.parquet": (3, "run/items.parquet", change_table, OF_RUN),
    "records": (4, "run/records/answers.parquet", change_table, OF_RUN),
    "answers": (1, "unfinished/records/answers.jsonl", change_bytes, ["unfinished"]),
    "study": (2, "study.yml", change_value, ["report"]),
    "dataset.toml": (2, "data/dataset.toml", change_bytes, ["data", "new", "continue"]),
}


def called(words: list[str]) -> tuple[int, str, str]:
    """Run a command; return status, output and errors."""
    of_page, out, err = words[0] == "page", io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = cli._status(
            lambda: page(words[1]) if of_page else cli.app(words, standalone_mode=False)
        )
    return status, out.getvalue(), err.getvalue()


def numbers(out: str) -> list[str]:
    """Return the numbers that a command printed or wrote."""
    text = "\n".join([out, *(path.read_text("utf-8") for path in Path("out").rglob("*.json"))])
    return sorted(NUMBER.findall(text) or re.findall(r"\b\d+\b", out))


def prepare(folder: Path, name: str) -> None:
    """Write a data set, two runs, one that was cut off, and a study into `folder`."""
    category = {"cbbq": "age", "mcbe": "age.csv", "nli_coal": "zh_*"}[name]
    for path in [
        *get(name).metadata.samples.glob(category),
        get(name).metadata.samples / "dataset.toml",
    ]:
        copied = folder / "data" / path.name
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(path, copied) if path.is_dir() else shutil.copy(path, copied)
    os.chdir(folder)
    study = STUDY.replace("NAME", name).replace("CATEGORY", OPTIONS[name][1])
    Path("study.yml").write_text(study, "utf-8")
    assert called(asking(name, "other", "simulated:bias=0.9"))[0] == 0
    rows = pq.read_table("other/records/answers.parquet").to_pandas()
    rows["response"] = rows.response.where(rows.response != "A", rows.response[0])
    rows.to_json("answers.jsonl", orient="records", lines=True)
    assert called(asking(name, "run"))[0] == 0
    shutil.copytree("run", "unfinished")
    records.reopen(Path("unfinished"))


def listen(written: list[str]) -> None:
    """Add to `written` every path that is written, made, renamed or removed from now on."""

    def hear(event: str, given: tuple[Any, ...]) -> None:
        if event == "open" and given[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            given = given[:1]
        elif event not in ("os.mkdir", "os.remove", "os.rmdir", "os.rename", "os.link"):
            return
        paths = [path for path in given if isinstance(path, str | bytes | Path)]
        written.extend(os.path.abspath(os.fsdecode(path)) for path in paths)

    sys.addaudithook(hear)


def copied(base: Path, case: Path) -> None:
    """Go to a fresh copy of a folder."""
    os.chdir(base)
    shutil.rmtree(case, ignore_errors=True)
    shutil.copytree(base, case)
    os.chdir(case)
    Path("out").mkdir()


def attempt(home: Path, known: dict[Any, Any], seed: str, written: list[str]) -> dict[str, str]:
    """Change one file and run a command; return a row for the list of outcomes.

    Args:
        known: the numbers of commands where nothing is changed, which is filled up.
    """
    rng, case = random.Random(seed), home / "a" / "b" / "case"
    kind = rng.choices(list(FILES), [weight for weight, *_ in FILES.values()])[0]
    _, place, change, commands = FILES[kind]
    name, command = rng.choice(list(OPTIONS)), rng.choice(commands)
    words = COMMANDS[command](name)
    copied(home / name, case)
    path = rng.choice(sorted(Path().glob(place)))
    how = (change_bytes if rng.random() < 0.3 else change)(path, rng)
    row = {"seed": seed, "file": kind, "command": command, "benchmark": name, "how": how}
    written.clear()
    faulthandler.dump_traceback_later(LIMIT, exit=True)
    try:
        status, out, err = contextvars.copy_context().run(called, words)
    except Exception:
        text = " ".join(traceback.format_exc().splitlines()[-5:])
        return row | {"outcome": TRACEBACK, "text": text}
    finally:
        faulthandler.cancel_dump_traceback_later()
    own = [f"{case / part}{os.sep}" for part in ("run", "unfinished", "again", "out", "tmp")]
    others = [p for p in written if not f"{p}{os.sep}".startswith((*own, "/dev/", "/proc/"))]
    if others := [p for p in others if "__pycache__" not in p and "matplotlib" not in p]:
        return row | {"outcome": OUTSIDE, "text": " ".join(others[:3])}
    if status:
        last = err.strip().rpartition("\n")[2]
        is_sentence = last.startswith("bench: ") and "Traceback" not in err
        return row | {"outcome": REFUSED if is_sentence else TRACEBACK, "text": last}
    now = numbers(out)
    if (name, command) not in known:
        copied(home / name, case)
        known[name, command] = numbers(called(words)[1])
    is_input = kind == "dataset.toml" or command in ("dry run", "report")
    outcome = OTHER_INPUT if is_input else OTHER_RESULT
    return row | {"outcome": SAME if now == known[name, command] else outcome, "text": ""}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first change")
    parser.add_argument("--out", type=Path, default=Path("outcomes.jsonl"))
    given = parser.parse_args()
    counts: Counter[tuple[str, str]] = Counter()
    known: dict[Any, Any] = {}
    written: list[str] = []
    with tempfile.TemporaryDirectory() as folder, given.out.open("w", encoding="utf-8") as stream:
        home = Path(folder).resolve()
        for name in OPTIONS:
            prepare(home / name, name)
        tempfile.tempdir = str(home / "a" / "b" / "case" / "tmp")
        listen(written)
        for k in range(given.first, given.first + given.count):
            row = attempt(home, known, f"{given.seed}-{k}", written)
            print(json.dumps(row), file=stream, flush=True)
            counts[row["file"], row["outcome"]] += 1
        os.chdir("/")
    for (file, outcome), n in sorted(counts.items()):
        print(f"{file:14} {outcome:24} {n:6}")


if __name__ == "__main__":
    main()
