"""Write down all numbers of answers that are always the same, and compare two such lists.

    python tests/benchmarks/number_net.py write BEFORE      # at one commit
    python tests/benchmarks/number_net.py write AFTER       # at another
    python tests/benchmarks/number_net.py compare BEFORE AFTER

The answers are those of simulated respondents, which are drawn from the request alone. Only the
`bench` command is used, so that the package may be changed in every other way. `write` keeps:

- scores.json: the rows of `bench score --format json` of each run under each preset;
- rescored.json: the same of the runs of another folder, with `--runs FOLDER`;
- files.json: the SHA-256 of every file of `bench expand` and `bench build`;
- report/tables: the tables of every notebook that asks no model, of one report on all benchmarks.

The package's samples are asked, and the released data in BENCH_SHARED where that is set.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

PRESETS = ("robust", "paper", "official")
RESPONDENTS = {
    "biased": "simulated:bias=0.6,position=0.1,competence=0.8,seed=1",
    "refusing": "simulated:bias=0.3,refuse=0.3,seed=2",
}
SETTINGS = {
    "mcbe": [
        "",
        "context_order=judge",
        "label_order=shuffled",
        "bos=forced replies=until_answered separators=any",
    ],
    "cbbq": [
        "",
        "prompting=Q+IF",
        "prompting=Q+IF+CoT",
        "explanation=yes",
        "option_order=rotated",
        "labels=audited polarity=column",
        "dedupe=yes expansion=repair",
    ],
    "nli_coal": ["", "definitional=leave_out"],
}
# Of the released data, which have more than the samples: enough for a few categories to be scored.
RELEASED = {
    "cbbq": (["", "labels=audited"], "--categories gender,age --limit 300"),
    "nli_coal": (["", "anomalies=keep", "definitional=leave_out"], "--limit 2000"),
}
STUDY = """
title: Numbers
models:
  - simulated:bias=0.2,seed=1
  - simulated:bias=0.7,seed=2
  - simulated:answer=A,label=neutral
benchmarks:
  mcbe: {judge: "simulated:", data: samples}
  cbbq:
    - {name: Q, data: samples, repeats: 2}
    - {name: rotated, data: samples, settings: {option_order: rotated}}
    - {name: Q+IF, data: samples, settings: {prompting: Q+IF}}
  nli_coal: {data: samples}
analyses:
  compare_models: {}
  friedman_test: {benchmark: cbbq}
  prompt_robustness: {benchmark: cbbq}
  self_correction: {}
  judge_agreement: {}
  explore: {}
  data_quality: {}
options: {seed: 0}
"""


def bench(*arguments: str | Path) -> str:
    """Call the command, and return what it prints."""
    call = [sys.executable, "-m", "bench", *map(str, arguments)]
    result = subprocess.run(call, capture_output=True, text=True, check=False)
    if result.returncode:
        sys.exit(f"{' '.join(call)}\n{result.stderr}")
    return result.stdout


def ask(folder: Path) -> None:
    """Ask every respondent every benchmark under every setting."""
    for benchmark, sets in SETTINGS.items():
        for settings in sets:
            run(folder, benchmark, settings.split(), ["--data", "samples"])
    for benchmark, (sets, options) in RELEASED.items():
        if released := shared(benchmark):
            for settings in sets:
                given = ["--data", str(released), *options.split()]
                run(folder, benchmark, settings.split(), given, "released")


def run(folder: Path, benchmark: str, settings: list[str], options: list[str], *marks: str) -> None:
    """Ask every respondent a benchmark under some settings."""
    given = [*options, *(part for setting in settings for part in ("--set", setting))]
    if benchmark == "mcbe" or "explanation=yes" in settings:
        given += ["--judge", "simulated:seed=3"]
    for name, respondent in RESPONDENTS.items():
        out = folder / " ".join([benchmark, *settings, *marks, name])
        bench("run", benchmark, "--model", respondent, *given, "--out", out, "--format", "json")


def shared(benchmark: str) -> Path | None:
    """Return the folder of a benchmark's released data, if it is there."""
    folder = Path(os.environ.get("BENCH_SHARED", "no folder"), "data", benchmark)
    return folder if folder.is_dir() else None


def scores(runs: Path) -> dict[str, Any]:
    """Return the scores of each run under each preset."""
    folders = sorted(path for path in runs.iterdir() if path.is_dir())
    return {
        f"{folder.name} {preset}": json.loads(
            bench("score", folder, "--preset", preset, "--format", "json")
        )["scores"]
        for folder in folders
        for preset in PRESETS
    }


def files(folder: Path) -> dict[str, str]:
    """Return the hashes of what is expanded and built."""
    bench("expand", "cbbq", "--data", "samples", "--out", folder / "cbbq")
    if released := shared("cbbq"):
        bench("expand", "cbbq", "--data", released, "--repair", "--out", folder / "cbbq_released")
    if released := shared("nli_coal"):
        bench("build", "nli-coal", "--from", released, "--compat", "--out", folder / "nli_coal")
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def write(folder: Path, runs: Path | None) -> None:
    """Write all numbers of this checkout to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    if runs:
        keep(folder / "rescored.json", scores(runs))
    ask(folder / "runs")
    keep(folder / "scores.json", scores(folder / "runs"))
    keep(folder / "files.json", files(folder / "built"))
    study = folder / "numbers.yml"
    study.write_text(STUDY, "utf-8")
    bench("report", study, "--out", folder / "report")


def keep(path: Path, content: Any) -> None:
    text = json.dumps(content, indent=1, ensure_ascii=False, sort_keys=True)
    path.write_text(text + "\n", "utf-8")


def compare(before: Path, after: Path) -> Iterator[str]:
    """Yield a line for each number, row, table or file that differs."""
    yield from _scores(before / "scores.json", after / "scores.json")
    if (after / "rescored.json").exists():
        yield from _scores(before / "scores.json", after / "rescored.json")
    built = [json.loads((folder / "files.json").read_text("utf-8")) for folder in (before, after)]
    for name in sorted(built[0].keys() | built[1].keys()):
        if built[0].get(name) != built[1].get(name):
            yield f"file {name}"
    yield from _tables(before / "report" / "tables", after / "report" / "tables")


def _scores(before: Path, after: Path) -> Iterator[str]:
    cells: list[dict[tuple[Any, ...], Any]] = []
    for path in (before, after):
        content = json.loads(path.read_text("utf-8"))
        cells.append({})
        for case, rows in content.items():
            for row in rows:
                key = tuple(row.get(key) for key in ("category", "task", "metric", "preset"))
                cells[-1] |= {(case, key, column): value for column, value in row.items()}
    known, now = cells
    for place in sorted(known.keys() | now.keys(), key=str):
        left, right = known.get(place), now.get(place)
        if not _equal(left, right):
            yield f"{after.name} {' '.join(map(str, place))}: {left} -> {right}"


def _tables(before: Path, after: Path) -> Iterator[str]:
    paths = (path.relative_to(place) for place in (before, after) for path in place.rglob("*.csv"))
    for name in sorted(set(paths)):
        if not (before / name).exists() or not (after / name).exists():
            yield f"table {name}: only {'after' if (after / name).exists() else 'before'}"
            continue
        left, right = (pd.read_csv(folder / name) for folder in (before, after))
        try:
            pd.testing.assert_frame_equal(left, right, check_dtype=False, rtol=1e-9)
        except AssertionError as error:
            yield f"table {name}: {' '.join(str(error).split())}"


def _equal(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return abs(left - right) <= 1e-9 * max(1.0, abs(left))
    return bool(left == right)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    writing = commands.add_parser("write", help="write all numbers of this checkout")
    writing.add_argument("folder", type=Path)
    writing.add_argument("--runs", type=Path, help="score the runs of this folder too")
    comparing = commands.add_parser("compare", help="list what differs; status 1 if anything does")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    given = parser.parse_args()
    if given.command == "write":
        write(given.folder, given.runs)
        return
    differences = list(compare(given.before, given.after))
    print("\n".join(differences) or "all numbers are equal")
    sys.exit(bool(differences))


if __name__ == "__main__":
    main()
