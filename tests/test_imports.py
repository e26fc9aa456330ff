"""What an entry point imports: nothing heavy that it has no use for."""

import json
import subprocess
import sys

import pytest

# What takes long to import. `scipy` is light, and loads `scipy.stats` when that is first used.
HEAVY = {
    "IPython",
    "PIL",
    "accelerate",
    "babel",
    "distributed",
    "filelock",
    "huggingface_hub",
    "ipykernel",
    "jinja2",
    "jupyter_client",
    "matplotlib",
    "nbconvert",
    "nbformat",
    "numpy",
    "openai",
    "openpyxl",
    "pandas",
    "papermill",
    "psutil",
    "pyarrow",
    "pydantic",
    "rapidfuzz",
    "rich",
    "scipy",
    "scipy.stats",
    "seaborn",
    "statsmodels",
    "torch",
    "tqdm",
    "transformers",
    "yaml",
}
COMMAND = {"pydantic"}
TABLES = {"numpy", "pandas", "pyarrow"}
RUN = {*COMMAND, *TABLES, "filelock", "scipy"}
NUMBERS = {*COMMAND, *TABLES, "rapidfuzz", "scipy"}
# seaborn brings IPython for its widgets.
PICTURES = {"IPython", "PIL", "matplotlib", "seaborn", "tqdm"}
FUNCTIONS = """
import contextlib, importlib, io, json, pkgutil, sys

def command(*arguments):
    from bench import cli
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        status = cli._status(lambda: cli.app(arguments, standalone_mode=False))
    assert not status, (arguments, status)

def every_help():
    from bench import cli
    for one in cli.app.registered_commands:
        command(one.name or one.callback.__name__, "--help")

def every_metric():
    for module in pkgutil.iter_modules(importlib.import_module("bench.metrics").__path__):
        importlib.import_module("bench.metrics." + module.name)
"""
# Steps of one interpreter each, the lightest first: what a step loads is there in the next one.
STEPS = {
    "command": (
        ("import bench", set()),
        ("command('--help')", COMMAND),
        ("every_help()", COMMAND),
        ("import bench.scorers, bench.data, bench.tasks", COMMAND),
        ("command('data', 'cbbq', '--data', 'samples')", COMMAND),
    ),
    "run": (
        ("import bench.run, bench.report.study", {*RUN, "yaml"}),
        (
            "command('run', 'cbbq', '--model', 'simulated:bias=0.5', '--data', 'samples', '--limit', "
            "'2', '--out', sys.argv[1] + '/run')",
            {*RUN, "rich", "yaml"},
        ),
        ("command('score', sys.argv[1] + '/run')", {*RUN, "rich", "yaml"}),
        ("import bench.report.study_runs", {*RUN, "rich", "yaml"}),
    ),
    "numbers and pictures": (
        ("import bench.metrics.cbbq", {*TABLES, "scipy"}),
        ("import bench.metrics.mcbe, bench.metrics.nli_coal", NUMBERS),
        ("import bench.core.export", NUMBERS),
        ("every_metric()", {*NUMBERS, "scipy.stats", "statsmodels"}),
        ("import bench.figures", {*NUMBERS, *PICTURES, "scipy.stats", "statsmodels"}),
    ),
}


@pytest.mark.parametrize("name", STEPS)
def test_an_entry_point_imports_what_it_needs(name, tmp_path):
    steps = STEPS[name]
    code = [FUNCTIONS, "loaded = []"]
    for step, _ in steps:
        code += [step, "loaded.append(sorted(sys.modules))"]
    code.append("print(json.dumps(loaded))")
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(code), tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for (step, allowed), loaded in zip(steps, json.loads(done.stdout), strict=True):
        assert sorted(HEAVY.intersection(loaded) - allowed) == [], step
