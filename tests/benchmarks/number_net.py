"""Write down all numbers of answers that are always the same, and compare two such lists.

    python tests/benchmarks/number_net.py write BEFORE      # at one commit
    python tests/benchmarks/number_net.py write AFTER       # at another
    python tests/benchmarks/number_net.py compare BEFORE AFTER

The answers are those of simulated respondents, which are drawn from the request alone. Only the
`bench` command, `bench.items` and `nli_sets` are used, so that the package may be changed in every
other way.
`write` keeps:

- scores.json: the rows of `bench score --format json` of each run under each preset;
- files.json: the SHA-256 of CBBQ's questions in the form of the release, and of NLI-CoAL's sets
  that notebooks/curation/nli_sets.py builds from the words and frames of the release;
- report/tables: the tables of every notebook that asks no model, of one report on all benchmarks.

The package's samples are asked, and the released data in BENCH_SHARED where that is set.
"""

import hashlib
import json
import math
import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import pandas as pd
import yaml

PRESETS = ("robust", "paper", "official")
ASKED = yaml.safe_load(Path(__file__).with_name("respondents.yml").read_text("utf-8"))
STUDY = Path(__file__).with_name("numbers.yml")


# The columns of questions that the release does not have.
OURS = ["name1", "name2", "swapped", "template", "target_name"]
NOTEBOOKS = Path(__file__).parents[2] / "notebooks/curation"
# Build the sets of the release again.
SETS = """
import sys
sys.path.append(sys.argv[1])
import nli_sets
packs = [nli_sets.released_pack(sys.argv[2], language) for language in ("en", "ja", "zh")]
nli_sets.write_sets(packs, sys.argv[3], compat=True)
"""
# Write the items of a run as JSON.
ITEMS = "import bench, sys; bench.items(sys.argv[1]).to_json(sys.argv[2], orient='records')"


def bench(*arguments):
    """Call the command, and return what it prints."""
    return python("-m", "bench", *arguments)


def python(*arguments):
    """Call Python, and return what it prints."""
    call = [sys.executable, *map(str, arguments)]
    result = subprocess.run(call, capture_output=True, text=True, check=False)
    if result.returncode:
        sys.exit(f"{' '.join(call)}\n{result.stderr}")
    return result.stdout


def ask(folder):
    """Ask every respondent every benchmark under every setting."""
    for asked, (name, respondent) in product(ASKED["runs"], ASKED["respondents"].items()):
        benchmark, settings = asked["benchmark"], asked.get("settings", "").split()
        marks, options = [benchmark, *settings], ["--data", "samples"]
        if "released" in asked:
            if not (released := shared(benchmark)):
                continue
            marks, options = [*marks, "released"], ["--data", released, *asked["released"].split()]
        options += [part for setting in settings for part in ("--set", setting)]
        if benchmark == "mcbe" or "explanation=yes" in settings:
            options += ["--judge", "simulated:seed=3"]
        out = folder / " ".join([*marks, name])
        bench("run", benchmark, "--model", respondent, *options, "--out", out, "--format", "json")


def shared(benchmark):
    """Return the folder of a benchmark's released data, if it is there."""
    folder = Path(os.environ.get("BENCH_SHARED", "no folder"), "data", benchmark)
    return folder if folder.is_dir() else None


def scores(runs):
    """Return the scores of each run under each preset."""
    rows = {}
    for folder, preset in product(sorted(filter(Path.is_dir, runs.iterdir())), PRESETS):
        printed = json.loads(bench("score", folder, "--preset", preset, "--format", "json"))
        # Before 0.3.0 the official rows were among the scores.
        rows[f"{folder.name} {preset}"] = [*printed["scores"], *printed.get("official", [])]
    return rows


def files(folder):
    """Return the hashes of what is expanded and built."""
    items = items_of(folder / "runs/cbbq biased")
    write_questions(*items, folder / "built/cbbq", as_released=True)
    if released := shared("cbbq"):
        run, options = folder / "repaired", ["--data", released, "--set", "expansion=repair"]
        bench("run", "cbbq", "--model", "simulated:", *options, "--out", run)
        write_questions(*items_of(run), folder / "built/cbbq_released", as_released=False)
    if released := shared("nli_coal"):
        python("-c", SETS, NOTEBOOKS, released, folder / "built/nli_coal")
    return {
        str(path.relative_to(folder / "built")): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted((folder / "built").rglob("*"))
        if path.suffix in (".csv", ".json")
    }


def items_of(run):
    """Return the items of a run, and the folder of its data."""
    python("-c", ITEMS, run, run / "items.json")
    items = pd.DataFrame(json.loads((run / "items.json").read_text("utf-8")))
    return items, json.loads((run / "run.json").read_text("utf-8"))["data"]["folder"]


def write_questions(items, data, out, *, as_released):
    """Write items of CBBQ as CATEGORY/CONDITION/CONDITION.csv and .json.

    The release has such files of its questions; `data` is the folder of their templates.
    """
    for place, table in items.groupby(["category", "condition"], sort=False):
        path = out.joinpath(*place, place[1])
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = in_released_form(table, Path(data, *place))
        if as_released:
            rows = rows.drop(columns=OURS)
        text = rows.to_csv(index=False, lineterminator="\n")
        path.with_suffix(".csv").write_text(text, "utf-8-sig", newline="")
        if as_released:  # the JSON of the release has a byte order mark in its first key
            rows = rows.rename(columns={"example_id": "\ufeffexample_id"})
        text = json.dumps(rows.to_dict("records"), ensure_ascii=False, separators=(",", ":"))
        path.with_suffix(".json").write_text(text, "utf-8")


def in_released_form(items, folder):
    """Return questions as texts, with the cells of their templates in `folder`."""
    cells = {}
    for polarity, name in (("neg", "neg"), ("non_neg", "nonneg")):
        path = folder / f"templates_generate_{name}.csv"
        rows = pd.read_csv(path, dtype=str, keep_default_na=False).to_dict("records")
        filled = [row for row in rows if "".join(row.values()).strip()]
        cells |= {f"{polarity}:{number}": row for number, row in enumerate(filled, start=1)}
    table = pd.DataFrame([cells[name] for name in items.template], index=items.index)
    table = table.drop(columns=["NAME1", "NAME2"])
    for column in ("context", "ans0", "ans1", *OURS):
        table[column] = items[column].astype(str)
    table.insert(0, "example_id", items.example_id.astype(str))
    return table


def write(folder):
    """Write all numbers of this checkout to `folder`."""
    ask(folder / "runs")
    for name, content in (("scores", scores(folder / "runs")), ("files", files(folder))):
        text = json.dumps(content, indent=1, ensure_ascii=False, sort_keys=True)
        (folder / f"{name}.json").write_text(text + "\n", "utf-8")
    bench("report", STUDY, "--out", folder / "report")


def compare(before, after):
    """Yield a line for each number, row, file or table that differs."""
    for name, read in (("scores", cells), ("files", dict)):
        left, right = (
            read(json.loads((folder / f"{name}.json").read_text("utf-8")))
            for folder in (before, after)
        )
        for key in sorted(left.keys() | right.keys(), key=str):
            if not is_same(left.get(key), right.get(key)):
                yield f"{name}: {key}: {left.get(key)} -> {right.get(key)}"
    tables = [folder / "report/tables" for folder in (before, after)]
    names = {path.relative_to(place) for place in tables for path in place.rglob("*.csv")}
    for name in sorted(names):
        paths = [place / name for place in tables]
        if not all(path.exists() for path in paths):
            yield f"table {name}: only {'before' if paths[0].exists() else 'after'}"
            continue
        try:
            pd.testing.assert_frame_equal(*map(pd.read_csv, paths), check_dtype=False, rtol=1e-9)
        except AssertionError as error:
            yield f"table {name}: {' '.join(str(error).split())}"


def cells(scores):
    """Return every value of the scores, by run, row and column."""
    names = ("category", "task", "metric", "preset")
    return {
        (case, *(row.get(name) for name in names), column): value
        for case, rows in scores.items()
        for row in rows
        for column, value in row.items()
    }


def is_same(left, right):
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-9)
    return bool(left == right)


def main():
    match sys.argv[1:]:
        case ["write", folder]:
            write(Path(folder))
        case ["compare", before, after]:
            differences = list(compare(Path(before), Path(after)))
            print("\n".join(differences) or "all numbers are equal")
            sys.exit(bool(differences))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
