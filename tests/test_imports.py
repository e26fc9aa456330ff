"""What an entry point imports: nothing heavy that it has no use for."""

import subprocess
import sys

import pytest

import bench

# What takes long to import. `scipy` is light, and loads `scipy.stats` when that is first used.
NAMES = """
IPython PIL accelerate babel distributed filelock huggingface_hub ipykernel jinja2 jupyter_client
matplotlib nbconvert nbformat numpy openai openpyxl pandas papermill psutil pyarrow pydantic
rapidfuzz rich scipy scipy.stats seaborn statsmodels torch tqdm transformers yaml
"""
HEAVY = {*NAMES.split()}
COMMAND = {"pydantic", "rich"}  # the latter for help texts
TABLES = {"numpy", "pandas", "pyarrow"}
RUN = {*COMMAND, *TABLES, "filelock", "scipy", "tqdm", "yaml"}
NUMBERS = {*COMMAND, *TABLES, "rapidfuzz", "scipy"}
STATISTICS = {*NUMBERS, "scipy.stats", "statsmodels"}
# seaborn brings IPython for its widgets.
PICTURES = {"IPython", "PIL", "matplotlib", "seaborn", "tqdm"}
FUNCTIONS = """
import contextlib, importlib, io, pkgutil, sys

def command(*arguments):
    from bench import cli
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        status = cli._status(arguments)
    assert not status, (arguments, status)

def every_help():
    from bench import cli
    for one in cli.app.registered_commands:
        command(one.name or one.callback.__name__, "--help")

def every_metric():
    for module in pkgutil.iter_modules(importlib.import_module("bench.metrics").__path__):
        importlib.import_module("bench.metrics." + module.name)
"""
OPTIONS = "'--model', 'simulated:', '--data', 'samples', '--limit', '2', '--out', sys.argv[1]"
# Steps of one interpreter each, the lightest first: what a step loads is there in the next one.
STEPS = {
    "command": (
        ("import bench", set()),
        ("command('--help')", {"rich"}),
        ("every_help()", COMMAND),
        ("import bench.scorers, bench.data, bench.tasks", COMMAND),
        ("command('data', 'cbbq', '--data', 'samples')", COMMAND),
    ),
    "run": (
        ("import bench.run, bench.report.study", RUN),
        (f"command('run', 'cbbq', {OPTIONS})", {*RUN, "rich"}),
        ("command('score', sys.argv[1])", {*RUN, "rich"}),
        ("import bench.report.study_runs", {*RUN, "rich"}),
    ),
    "numbers and pictures": (
        ("import bench.benchmarks.cbbq.scores", {*TABLES, "pydantic", "scipy"}),
        ("import bench.benchmarks.mcbe.scores, bench.core.export", NUMBERS),
        ("every_metric()", STATISTICS),
        ("import bench.figures", {*STATISTICS, *PICTURES}),
    ),
}


@pytest.mark.parametrize("name", STEPS)
def test_an_entry_point_imports_what_it_needs(name, tmp_path):
    code = [FUNCTIONS]
    for step, _ in STEPS[name]:
        code += [step, "print(*sys.modules)"]
    command = [sys.executable, "-c", "\n".join(code), tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for (step, allowed), line in zip(STEPS[name], done.stdout.splitlines(), strict=True):
        assert HEAVY & {*line.split()} <= allowed, step


def test_completion_lists_what_is_meant_to_be_used():
    assert {"evaluate", "open", "score", "load", "run", "show"} <= {*dir(bench)}
    for place in (bench, bench.run, bench.show):
        assert {*dir(place)} == {*place.__all__}
        assert [name for name in dir(place) if not hasattr(place, name)] == []
    assert not hasattr(bench, "nothing")


def test_ctrl_c_ends_the_command_in_a_line():
    code = """
import signal
from bench import __main__, cli
signal.signal(signal.SIGINT, signal.default_int_handler)
cli.main = lambda: signal.raise_signal(signal.SIGINT)
__main__.main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 130
    assert done.stderr == "bench: interrupted; the same command continues from what is recorded\n"
