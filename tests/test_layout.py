"""Data flow one way through the rooms, notebooks can be read, and the versions fit together."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from functools import cache
from graphlib import TopologicalSorter
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bench.benchmarks import get, names

HOME = Path(__file__).parents[1]
MODULES = sorted((HOME / "bench").rglob("*.py"))
NOTEBOOKS = sorted([*HOME.glob("notebooks/*.ipynb"), *HOME.glob("notebooks/curation/*.ipynb")])
ROOMS = re.findall(
    r"[\w/]+",
    "core config benchmarks data tasks scorers metrics figures base NAME train runs run "
    "export analyses show report cli",
)
PROJECT = tomllib.loads((HOME / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
LINES = (HOME / ".ci/requirements.txt").read_text("utf-8").replace("\\\n", " ").splitlines()
PINS = [line.strip() for line in LINES if line and not line.startswith("#")]
CONSTRAINTS = (HOME / ".ci/constraints.txt").read_text("utf-8").splitlines()[1:]


@cache
def imports(path):
    """Return the names that a module imports, but for type checking."""
    tree, names = ast.parse(path.read_text("utf-8")), []
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{name.name}" for name in node.names)]
    return names


def room(parts):
    """Return the package that a module is in; `NAME` for the package of one benchmark.

    The class `Benchmark` (`base`) stands to the right of all that it has defaults from.
    """
    below = parts[2] if parts[1] == "benchmarks" and len(parts) > 2 else ""
    return "NAME" if below in names() else "base" if below == "base" else parts[1]


def test_a_room_imports_only_rooms_to_its_left():
    wrong = []
    for path in MODULES:
        own = room(path.relative_to(HOME).with_suffix("").parts)
        right = ROOMS[ROOMS.index(own) + 1 :] if own in ROOMS else []
        others = {room(name.split(".")) for name in imports(path) if name.startswith("bench.")}
        wrong += [f"{path.relative_to(HOME)} imports {other}" for other in others & {*right}]
    assert not wrong


# A user names a benchmark in the command, a study, a script, a run's folder or a frame of scores.
LOOKUPS = ["data/__init__", "run/__init__", "run/batch", "run/costs", "runs/open", "runs/scores"]


def test_a_benchmark_is_looked_up_only_where_a_user_names_it():
    registry = re.compile(r"^\s*from bench(\.benchmarks import| import .*\bbenchmarks\b)", re.M)
    asking = {
        path.relative_to(HOME / "bench").with_suffix("").as_posix()
        for path in MODULES
        if registry.search(path.read_text("utf-8"))
    }
    of_users = ("analyses/", "cli/", "report/", "show/")
    assert sorted(name for name in asking if not name.startswith(of_users)) == LOOKUPS


def test_there_is_no_circle_of_imports():
    parts = {path: path.relative_to(HOME).with_suffix("").parts for path in MODULES}
    names = {path: ".".join(names).removesuffix(".__init__") for path, names in parts.items()}
    graph = {}
    for path, name in names.items():
        imported = {*imports(path)} & {*names.values()}
        # `from bench.data import readers` is an import of this module, not of names of its package.
        packages = {other.rpartition(".")[0] for other in imported}
        graph[name] = imported - packages - {name}
    TopologicalSorter(graph).prepare()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_can_be_read_and_run(path):
    book = json.loads(path.read_text("utf-8"))
    code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    assert book["metadata"]["kernelspec"]["name"] == "python3"
    assert sum("parameters" in cell["metadata"].get("tags", []) for cell in code) == 1
    kinds = {output["output_type"] for cell in code for output in cell["outputs"]}
    assert kinds, "committed without outputs"
    assert "error" not in kinds
    assert max(len(cell["source"]) for cell in code) <= 25
    checked = any("NBVAL_CHECK_OUTPUT" in "".join(cell["source"]) for cell in code)
    assert checked, "no checked primary number"
    assert str(HOME) not in path.read_text("utf-8"), "holds a path of the machine it was run on"


def test_the_top_level_holds_what_was_agreed():
    done = subprocess.run(["git", "ls-files"], cwd=HOME, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("not a git checkout")
    tops = {Path(name).parts[0] for name in done.stdout.splitlines()}
    allowed = """
    README.md CONTRIBUTING.md CHANGELOG.md LICENSE CITATION.cff environment.yml pyproject.toml
    Makefile
    notebooks bench reports tests docs
    """
    assert {name for name in tops if not name.startswith(".")} <= {*allowed.split()}


# Modules that were taken out of the package; CHANGELOG.md says what their users have instead.
GONE = re.findall(
    r"[\w/]+",
    "i18n locale curate judge_injection meta_respondents planning readings convergence "
    "equivalence influence card kernels lm_eval repeating process processes server_start "
    "hub_tables expand published marks human_marks language_pack_audit overview explore "
    "texts cbbq/figures mcbe/figures nli_coal/figures audit "
    "corpora meta_evaluation tiny_nli nli_coal/build nli_coal/extract nli_coal/language_pack "
    "core/places core/threads data/dataset metrics/frames figures/stacked "
    "runs/explain runs/items runs/cache cli/make",
)


@pytest.mark.parametrize("name", GONE)
def test_a_module_that_was_taken_out_of_the_package_stays_out(name):
    places = [f"/{path.relative_to(HOME).with_suffix('')}/" for path in MODULES]
    assert [place for place in places if f"/{name}/" in place] == []


def test_the_options_of_a_run_are_described_once():
    nodes = [node for path in MODULES for node in ast.walk(ast.parse(path.read_text("utf-8")))]
    owners = {
        node.name
        for node in nodes
        if isinstance(node, ast.ClassDef)
        for line in node.body
        if isinstance(line, ast.AnnAssign) and ast.unparse(line.target) == "max_new_tokens"
    }
    # A request has its own limit, as have requests that are decoded together.
    assert owners == {"RunConfig", "Request", "Decoding"}


# Packages and their versions.


def distributions(requirements):
    return {canonicalize_name(Requirement(line).name) for line in requirements}


def versions(lines):
    pairs = [line.split()[0].split("==") for line in lines]
    return {canonicalize_name(name): version for name, version in pairs}


def test_pins_have_hashes_and_fit_pyproject():
    """Renew the pins with .ci/pin where this fails."""
    pin = re.compile(r"[\w.-]+==[\w.!+]+(\s*;[^;]*?)?(\s+--hash=sha256:[0-9a-f]{64})+")
    assert [line for line in PINS if not pin.fullmatch(line)] == []
    pinned, with_hashes = versions(CONSTRAINTS), versions(PINS)
    # torch has no hash: which build fits depends on the machine.
    assert {name: pinned[name] for name in pinned if name != "torch"} == with_hashes
    for one in (*PROJECT["dependencies"], *EXTRAS["test"], *EXTRAS["cluster"], *EXTRAS["words"]):
        needed = Requirement(one)
        name = canonicalize_name(needed.name)
        if name != "bias-workbench":
            assert needed.specifier.contains(pinned[name]), f"{one}, pinned {pinned[name]}"


def test_every_package_that_is_imported_is_declared():
    extras = [*EXTRAS["cluster"], *EXTRAS["words"], *EXTRAS["adapters"]]
    declared = distributions((*PROJECT["dependencies"], *extras))
    imported = {name.partition(".")[0] for path in MODULES for name in imports(path)}
    packages = packages_distributions()
    missing = {
        name
        for name in imported - {"bench", "dask", *sys.stdlib_module_names}
        if name in packages and not declared & set(map(canonicalize_name, packages[name]))
    }
    assert missing <= {"minicons", "axe_core_python"}


def test_conda_names_no_package_that_pyproject_does_not():
    of_conda = {"python", "pip", "fontconfig", "font-ttf-noto-cjk"}
    other_names = {"pytorch": "torch", "matplotlib-base": "matplotlib"}
    environment = yaml.safe_load((HOME / "environment.yml").read_text("utf-8"))
    *packages, by_pip = environment["dependencies"]
    assert by_pip == {"pip": ["-e .[test]"]}
    own = {name.partition("=")[0] for name in packages} - of_conda
    assert {other_names.get(name, name) for name in own} <= distributions(PROJECT["dependencies"])


def test_the_citation_names_the_papers_of_the_benchmarks():
    citation = yaml.safe_load((HOME / "CITATION.cff").read_text("utf-8"))
    assert citation["title"] in (HOME / "notebooks/index.ipynb").read_text("utf-8")
    cited = []
    for paper in citation["references"]:
        authors = tuple(f"{one['given-names']} {one['family-names']}" for one in paper["authors"])
        cited.append((authors, *(paper[k] for k in ("title", "collection-title", "year", "url"))))
    papers = [get(name).metadata.paper for name in names()]
    assert sorted(cited) == sorted((p.authors, p.title, p.venue, p.year, p.url) for p in papers)
