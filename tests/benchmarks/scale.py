"""Measure CPU seconds and memory of each step of a study of CBBQ, by the number of answers.

    python -m tests.benchmarks.scale OUT --data CBBQ --answers 10000 100000 1000000

Simulated respondents are asked four times each, with the released data or templates in `--data`.
Each step is a process of its own; its CPU seconds are those of all that it starts, its memory is
the peak of the largest process (Linux).
"""

import argparse
import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

MODELS, REPEATS, PARTS = 10, 4, 20  # parts: ten categories in two contexts
NOTEBOOKS = ("cbbq", "compare_models", "friedman_test", "explore", "data_quality")
# Orphans of a step, such as kernels, become children of this process.
PR_SET_CHILD_SUBREAPER = 36
RUN_NOTEBOOK = """
import json, sys
from pathlib import Path
from bench.core.places import NOTEBOOKS
from bench.report import execute
name, target, parameters = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])
source = NOTEBOOKS / f"{name}.ipynb"
trouble = execute.run_notebook(source, target, parameters, execute.OwnKernel())
execute.end_kernels()
sys.exit(str(trouble or "") or 0)
"""


def main() -> None:
    """Read the options, measure every step and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path, help="folder for the runs and reports")
    parser.add_argument("--data", required=True, help="folder of CBBQ's data")
    parser.add_argument("--answers", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--steps", nargs="*", help="only these steps; default: all")
    given = parser.parse_args()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    rows = []
    for n in given.answers:
        for name, call in steps(given.out.resolve() / str(n), str(Path(given.data).resolve()), n):
            if not given.steps or name in given.steps:
                seconds, megabytes = measure(call)
                rows.append({"step": name, "answers": n, "CPU s": seconds, "MB": megabytes})
                print(rows[-1], file=sys.stderr, flush=True)
    print(pd.DataFrame(rows).to_string(index=False))


def steps(folder: Path, data: str, n: int) -> list[tuple[str, list[Any]]]:
    """Return name and command of each step of a study of about `n` answers."""
    (folder / "notebooks").mkdir(parents=True, exist_ok=True)
    models = [f"simulated:bias={0.3 + k / 20:.2f},refuse=0.02,seed={k}" for k in range(MODELS)]
    asked = {"data": data, "limit": n // (MODELS * REPEATS * PARTS), "repeats": REPEATS}
    analyses: dict[str, Any] = {name: {} for name in NOTEBOOKS[1:]}
    analyses["friedman_test"] = {"benchmark": "cbbq"}
    analyses["data_quality"] = {"benchmarks": ["cbbq"]}
    for name, page in (("asked", False), ("whole", True)):
        study = {"title": "Scale", "models": models, "analyses": analyses if page else {}}
        study["benchmarks"] = {"cbbq": [{"name": "Q", "page": page, **asked}]}
        (folder / f"{name}.yml").write_text(yaml.safe_dump(study, allow_unicode=True), "utf-8")
    report = folder / "report"
    runs = [str(report / "runs" / model.replace(":", "_") / "cbbq-Q") for model in models]
    bench = [sys.executable, "-m", "bench"]
    ask = [*bench, "report", folder / "asked.yml", "--out", report, "--jobs", "1"]
    given: dict[str, dict[str, Any]] = {name: {"runs": runs} for name in NOTEBOOKS}
    given["cbbq"] = {"recorded": runs, "models": [], "data": data, "limit": asked["limit"]}
    given["friedman_test"] |= {"benchmark": "cbbq"}
    given["data_quality"] = {"benchmarks": ["cbbq"], "data": {"cbbq": data}}
    found = [("plan", [*ask, "--dry-run"]), ("ask", ask), ("score one", [*bench, "score", runs[0]])]
    for name, parameters in given.items():
        target = folder / "notebooks" / f"{name}.ipynb"
        parameters = json.dumps({**parameters, "tables": str(folder / "tables" / name)})
        found.append((name, [sys.executable, "-c", RUN_NOTEBOOK, name, target, parameters]))
    whole = [*bench, "report", folder / "whole.yml", "--out", report]
    return [*found, ("report", whole), ("report again", whole)]


def measure(call: list[Any]) -> tuple[float, int]:
    """Run a command; return the CPU seconds of all processes, and the largest one's megabytes."""
    with open(os.devnull, "wb") as nowhere:
        step = subprocess.Popen(list(map(str, call)), stdout=nowhere)
    seconds, kilobytes, failed = 0.0, 0, False
    while True:
        try:
            child, status, usage = os.wait4(-1, 0)
        except ChildProcessError:
            break
        seconds += usage.ru_utime + usage.ru_stime
        kilobytes = max(kilobytes, usage.ru_maxrss)
        failed |= child == step.pid and status != 0
    if failed:
        sys.exit(f"failed: {call}")
    return round(seconds, 1), kilobytes // 1024


if __name__ == "__main__":
    main()
