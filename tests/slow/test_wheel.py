"""A wheel reports from any folder, and a source distribution can be tested."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import venv
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

HOME = Path(__file__).parents[2]


def call(*command, cwd, **environment):
    """Run a command outside of this checkout; return its output."""
    environment, command = os.environ | {"PYTHONPATH": ""} | environment, [*map(str, command)]
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def names(pattern, folder):
    return {path.name for path in folder.glob(pattern)}


def built(kind, project, out):
    """The file that the project's build backend makes, as pip and build call it."""
    code = f"import build_backend, sys; print(build_backend.build_{kind}(sys.argv[1]))"
    printed = call(sys.executable, "-c", code, out, cwd=project, PYTHONPATH=str(project / ".ci"))
    return out / printed.splitlines()[-1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A new environment with the wheel of a source distribution; it sees this one's packages."""
    folder = tmp_path_factory.mktemp("environment")
    with tarfile.open(built("sdist", HOME, folder)) as archive:
        archive.extractall(folder / "source", filter="data")
    wheel = built("wheel", next((folder / "source").iterdir()), folder)
    venv.create(folder / "venv")
    (packages,) = folder.glob("venv/lib/python*/site-packages")
    others = [path for path in sys.path if path.endswith("-packages")]
    (packages / "others.pth").write_text("\n".join(others))
    pip = [sys.executable, "-m", "pip", "--python", folder / "venv/bin/python"]
    call(*pip, "install", "--no-deps", "--no-index", wheel, cwd=folder)
    for path in (packages, *packages.rglob("*")):
        path.chmod(path.stat().st_mode & ~0o222)
    return packages


@pytest.fixture
def bench(installed, tmp_path):
    """The installed command, where another package and kernel of the same names lie."""
    kernel = {"argv": ["false"], "display_name": "x", "language": "python"}
    for place, text in (
        ("jupyter/kernels/python3/kernel.json", json.dumps(kernel)),
        ("work/bench/__init__.py", "raise SystemExit('the wrong package')"),
    ):
        (tmp_path / place).parent.mkdir(parents=True)
        (tmp_path / place).write_text(text)
    # nbconvert's templates are not among the packages of an environment.
    jupyter = os.pathsep.join([str(tmp_path / "jupyter"), f"{sys.prefix}/share/jupyter"])

    def run(*words):
        before = sorted(installed.rglob("*"))
        command = installed.parents[2] / "bin/bench"
        printed = call(command, *words, cwd=tmp_path / "work", JUPYTER_PATH=jupyter)
        assert sorted(installed.rglob("*")) == before, "something was written into site-packages"
        return printed.strip()

    return run


def test_a_study_is_reported_in_any_folder(bench, tmp_path):
    shutil.copy(HOME / "tests/slow/wheel.yml", tmp_path / "work/mine.yml")
    folder = tmp_path / "work/reports/mine"
    assert bench("report", "mine.yml") == str(folder / "index.html")
    pages = {path.stem for path in folder.glob("*.html")}
    assert pages == {"index", "cbbq", "compare_models", "answers-cbbq"}
    assert len(list(folder.glob("runs/*/cbbq/run.json"))) == 2


def test_what_a_user_needs_comes_along(bench, installed, tmp_path):
    code = "from bench.core.shipped import DEMO; from bench.report import study; study.load(DEMO)"
    demo = call(installed.parents[2] / "bin/python", "-c", f"{code}; print(DEMO)", cwd=tmp_path)
    assert demo.strip() == str(installed / "bench/shipped/reports/demo.yml")
    assert bench("new", "mcbe", "mine").splitlines() == ["mine/dataset.toml", "mine/sport.csv"]
    weights = "bench/scorers/tiny_weights/*/*"
    assert names(weights, installed) == names(weights, HOME)
    (metadata,) = installed.glob("bias_workbench-*.dist-info/METADATA")
    assert f"Version: {bench('--version')}" in metadata.read_text("utf-8").splitlines()
    assert (installed / "bench/py.typed").is_file()


def test_notebooks_come_along(bench, tmp_path):
    bench("notebooks", "books")
    books = sorted((tmp_path / "work/books").rglob("*.ipynb"))
    assert {path.name for path in books} == names("notebooks/**/*.ipynb", HOME)
    assert names("curation/**/*.*", tmp_path / "work/books") >= names("notebooks/**/*.py", HOME)
    cells = [cell for path in books for cell in json.loads(path.read_text("utf-8"))["cells"]]
    assert not any(cell.get("outputs") for cell in cells)
