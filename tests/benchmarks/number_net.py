"""Write down all numbers of answers that are always the same, and compare two such lists.

    python tests/benchmarks/number_net.py write BEFORE      # at one commit
    python tests/benchmarks/number_net.py write AFTER       # at another
    python tests/benchmarks/number_net.py compare BEFORE AFTER

The answers are those of simulated respondents, which are drawn from the request alone. Only the
`bench` command is used, so that the package may be changed in every other way. `write` keeps:

- scores.json: the rows of `bench score --format json` of each run under each preset;
- files.json: the SHA-256 of every file of `bench expand` and `bench build`;
- report/tables: the tables of every notebook that asks no model, of one report on all benchmarks.

The package's samples are asked, and the released data in BENCH_SHARED where that is set.
"""

import argparse
import hashlib
import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

PRESETS = ("robust", "paper", "official")
ASKED = yaml.safe_load(Path(__file__).with_name("respondents.yml").read_text("utf-8"))
STUDY = Path(__file__).with_name("numbers.yml")


def bench(*arguments: str | Path) -> str:
    """Call the command, and return what it prints."""
    call = [sys.executable, "-m", "bench", *map(str, arguments)]
    result = subprocess.run(call, capture_output=True, text=True, check=False)
    if result.returncode:
        sys.exit(f"{' '.join(call)}\n{result.stderr}")
    return result.stdout


def ask(folder: Path) -> None:
    """Ask every respondent every benchmark under every setting."""
    for benchmark, sets in ASKED["samples"].items():
        for settings in sets:
            run(folder, benchmark, settings.split(), ["--data", "samples"])
    for benchmark, options in ASKED["released"].items():
        if released := shared(benchmark):
            for settings in options["settings"]:
                given = ["--data", str(released), *options["options"].split()]
                run(folder, benchmark, settings.split(), given, "released")


def run(folder: Path, benchmark: str, settings: list[str], options: list[str], *marks: str) -> None:
    """Ask every respondent a benchmark under some settings."""
    given = [*options, *(part for setting in settings for part in ("--set", setting))]
    if benchmark == "mcbe" or "explanation=yes" in settings:
        given += ["--judge", "simulated:seed=3"]
    for name, respondent in ASKED["respondents"].items():
        out = folder / " ".join([benchmark, *settings, *marks, name])
        bench("run", benchmark, "--model", respondent, *given, "--out", out, "--format", "json")


def shared(benchmark: str) -> Path | None:
    """Return the folder of a benchmark's released data, if it is there."""
    folder = Path(os.environ.get("BENCH_SHARED", "no folder"), "data", benchmark)
    return folder if folder.is_dir() else None


def scores(runs: Path) -> dict[str, Any]:
    """Return the scores of each run under each preset."""
    folders = sorted(path for path in runs.iterdir() if path.is_dir())
    printed = {
        f"{folder.name} {preset}": json.loads(
            bench("score", folder, "--preset", preset, "--format", "json")
        )
        for folder in folders
        for preset in PRESETS
    }
    # Before 0.3.0 the official rows were among the scores.
    return {name: [*of["scores"], *of.get("official", [])] for name, of in printed.items()}


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


def write(folder: Path) -> None:
    """Write all numbers of this checkout to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    ask(folder / "runs")
    keep(folder / "scores.json", scores(folder / "runs"))
    keep(folder / "files.json", files(folder / "built"))
    bench("report", STUDY, "--out", folder / "report")


def keep(path: Path, content: Any) -> None:
    text = json.dumps(content, indent=1, ensure_ascii=False, sort_keys=True)
    path.write_text(text + "\n", "utf-8")


def compare(before: Path, after: Path) -> Iterator[str]:
    """Yield a line for each number, row, table or file that differs."""
    yield from _scores(before / "scores.json", after / "scores.json")
    built = [json.loads((folder / "files.json").read_text("utf-8")) for folder in (before, after)]
    for name in sorted(built[0].keys() | built[1].keys()):
        if built[0].get(name) != built[1].get(name):
            yield f"file {name}"
    yield from _tables(before / "report" / "tables", after / "report" / "tables")


def _scores(before: Path, after: Path) -> Iterator[str]:
    known, now = (cells(path) for path in (before, after))
    for place in sorted(known.keys() | now.keys(), key=str):
        left, right = known.get(place), now.get(place)
        is_number = isinstance(left, float) and isinstance(right, float)
        if left != right and not (
            is_number and math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-9)
        ):
            yield f"{' '.join(map(str, place))}: {left} -> {right}"


def cells(path: Path) -> dict[tuple[Any, ...], Any]:
    """Return every value of the scores, by run, row and column."""
    names = ("category", "task", "metric", "preset")
    return {
        (case, tuple(row.get(name) for name in names), column): value
        for case, rows in json.loads(path.read_text("utf-8")).items()
        for row in rows
        for column, value in row.items()
    }


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    writing = commands.add_parser("write", help="write all numbers of this checkout")
    writing.add_argument("folder", type=Path)
    comparing = commands.add_parser("compare", help="list what differs; status 1 if anything does")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    given = parser.parse_args()
    if given.command == "write":
        write(given.folder)
        return
    differences = list(compare(given.before, given.after))
    print("\n".join(differences) or "all numbers are equal")
    sys.exit(bool(differences))


if __name__ == "__main__":
    main()
