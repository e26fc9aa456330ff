"""The house itself: data flows one way, files stay small, notebooks can be read, commands stand where they are promised."""

import ast
import json
import re
import subprocess
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

HOME = Path(__file__).parents[1]
MODULES = sorted((HOME / "bench").rglob("*.py"))
TESTS = sorted((HOME / "tests").rglob("test_*.py"))
NOTEBOOKS = sorted((HOME / "notebooks").glob("*.ipynb"))
ROOMS = [
    "core",
    "benchmarks",
    "data",
    "tasks",
    "scorers",
    "train",
    "records",
    "metrics",
    "figures",
    "config",
    "run",
    "curate",
    "analyses",
    "show",
    "report",
    "cli",
]


def imports(path):
    """Yield the names that a module imports, but for type checking."""
    tree = ast.parse(path.read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


def test_a_room_imports_only_rooms_to_its_left():
    wrong = []
    for path in MODULES:
        room = path.relative_to(HOME / "bench").parts[0].removesuffix(".py")
        if room in ROOMS:
            others = {name.split(".")[1] for name in imports(path) if name.startswith("bench.")}
            right = others & set(ROOMS[ROOMS.index(room) + 1 :])
            wrong += [f"{path.relative_to(HOME)} imports bench.{other}" for other in right]
    assert not wrong


@pytest.mark.parametrize("room", ["data", "tasks", "records", "metrics", "figures", "curate"])
def test_only_scorers_and_training_need_torch(room):
    for path in MODULES:
        if path.relative_to(HOME / "bench").parts[0].removesuffix(".py") == room:
            packages = {name.partition(".")[0] for name in imports(path)}
            assert not packages & {"torch", "transformers"}, path.relative_to(HOME)


def test_every_file_says_what_it_is_for():
    silent = [path for path in MODULES + TESTS if not path.read_text("utf-8").startswith('"""')]
    assert not silent, "no first line that says what it is for"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_can_be_read_and_run(path):
    book = json.loads(path.read_text("utf-8"))
    code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    assert book["metadata"]["kernelspec"]["name"] == "python3"
    assert sum("parameters" in cell["metadata"].get("tags", []) for cell in code) == 1
    assert any(cell["outputs"] for cell in code), "committed without outputs"
    assert not [
        output for cell in code for output in cell["outputs"] if output["output_type"] == "error"
    ]
    assert max(len(cell["source"]) for cell in code) <= 25
    assert any("NBVAL_CHECK_OUTPUT" in "".join(cell["source"]) for cell in code), (
        "no checked headline number"
    )
    assert str(HOME) not in path.read_text("utf-8"), "holds a path of the machine it was run on"


def test_a_benchmark_has_the_same_name_in_every_room():
    from bench.benchmarks import names

    for name in names():
        for room in ("data", "tasks", "metrics"):
            assert find_spec(f"bench.{room}.{name}")
        assert (HOME / f"notebooks/{name}.ipynb").is_file()
        assert (HOME / "bench/data/samples" / name / "dataset.toml").is_file()


def test_conda_names_no_package_that_pyproject_does_not():
    of_conda = {"python", "pip", "fontconfig", "font-ttf-noto-cjk"}
    other_names = {"pytorch": "torch", "matplotlib-base": "matplotlib"}
    project = tomllib.loads((HOME / "pyproject.toml").read_text("utf-8"))["project"]
    known = {re.match(r"[\w-]+", requirement)[0] for requirement in project["dependencies"]}
    *packages, by_pip = yaml.safe_load((HOME / "environment.yml").read_text("utf-8"))[
        "dependencies"
    ]
    assert by_pip == {"pip": ["-e .[test]"]}
    names = {name.partition("=")[0] for name in packages} - of_conda
    assert {other_names.get(name, name) for name in names} <= known
    # Bounds of versions stand in pyproject.toml alone.
    assert [name for name in packages if not name.replace("-", "").isalpha()] == ["python=3.11"]


def test_the_top_level_holds_what_was_agreed():
    done = subprocess.run(["git", "ls-files"], cwd=HOME, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("not a git checkout")
    tops = {Path(name).parts[0] for name in done.stdout.splitlines()}
    allowed = {
        "README.md",
        "environment.yml",
        "notebooks",
        "bench",
        "reports",
        "tests",
        "pyproject.toml",
        "LICENSE",
        "CHANGELOG.md",
        "CITATION.cff",
        "docs",
    }
    assert {name for name in tops if not name.startswith(".")} <= allowed
