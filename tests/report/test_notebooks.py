"""Running notebooks: failing ones are shown up to there, unchanged ones are not run again."""

import errno
from pathlib import Path

import nbformat
import pandas as pd
import papermill
import pytest
from bs4 import BeautifulSoup
from nbformat import v4

from bench.core.errors import RunFailed
from bench.core.shipped import NOTEBOOKS
from bench.report import build, execute, fingerprint, jobs, site

LAST = "What the numbers rest on"
FINDING = "print('A < B.'); print('C.')"
SENTENCE = "from bench.core.errors import BadInput; raise BadInput('two models are needed')"


@pytest.mark.parametrize(
    ("notebook", "given", "message"),
    [
        ("cbbq", {"modles": []}, "cbbq.ipynb: parameter 'modles' is unknown; allowed: models"),
        ("cbqb", {"modles": []}, "notebook 'cbqb' is unknown; allowed: 00_start, cbbq, "),
        ("meta_evaluation", {"model": {"a": 1}}, "model: expected str, found {'a': 1}"),
    ],
)
def test_a_wrong_parameter_or_notebook_is_refused(refusal, notebook, given, message):
    def check():
        source = NOTEBOOKS / f"{notebook}.ipynb"
        jobs.check_parameters(source, jobs.types_of_parameters(source), given)

    assert message in refusal(check)


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.rglob("*.ipynb")), ids=lambda p: p.stem)
def test_papermill_knows_every_parameter_of_a_notebook(path):
    assert list(papermill.inspect_notebook(str(path))) == list(jobs.types_of_parameters(path))


def written(path, *cells):
    """A notebook of a heading, cells (text if they begin with #), and a section that comes last."""
    book = [v4.new_markdown_cell("# A notebook")]
    book.append(v4.new_code_cell("x = 1", metadata={"tags": ["parameters"]}))
    for cell in [*cells, f"## {LAST}"]:
        tags = [site.FINDING] if cell == FINDING else []
        make = v4.new_markdown_cell if cell.startswith("#") else v4.new_code_cell
        book.append(make(cell, metadata={"tags": tags}))
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(v4.new_notebook(cells=book, metadata=kernel), path)
    return path


@pytest.fixture(scope="module")
def kernel():
    """A kernel for all notebooks, as a report has it."""
    one = execute.OwnKernel()
    yield one
    one.end()


@pytest.fixture
def shown(tmp_path, kernel):
    """`shown(cell...)`: run a notebook, and return its trouble and its page."""

    def run_cells(*cells):
        source, target = written(tmp_path / "one.ipynb", *cells), tmp_path / "out/one.ipynb"
        trouble = execute.run_notebook(source, target, {"x": 2}, kernel)
        return trouble, site.page("one", "one", target, trouble)

    return run_cells


LEFT = """import os, matplotlib, numpy, pandas
os.chdir('/')
matplotlib.rcParams['font.size'] = 99
pandas.set_option('display.precision', 1)
numpy.random.seed(0)
y = 1"""
FOUND = """print('y' in globals(), os.path.basename(os.getcwd()), mpl.rcParams['font.size'] == 99,
      pd.get_option('display.precision'), np.random.get_state()[1][0] == 0)"""


def test_a_kernel_is_as_new_for_each_notebook(tmp_path, kernel):
    first = written(tmp_path / "first.ipynb", LEFT)
    imports = "import os, matplotlib as mpl, numpy as np, pandas as pd"
    second = written(tmp_path / "second.ipynb", imports, FOUND)
    for source in (first, second):
        target = tmp_path / source.stem / source.name
        assert execute.run_notebook(source, target, {"x": 2}, kernel) is None
    cell = nbformat.read(target, as_version=4).cells[-2]
    assert cell.outputs[0].text.split() == ["False", "second", "False", "6", "False"]
    assert cell.execution_count == 4


def test_a_notebook_without_the_name_of_a_kernel_is_run_and_a_full_disk_is_explained(
    tmp_path, kernel, monkeypatch
):
    source, target = written(tmp_path / "one.ipynb", FINDING), tmp_path / "out/one.ipynb"
    book = nbformat.read(source, as_version=4)
    book.metadata = {}
    nbformat.write(book, source)
    assert execute.run_notebook(source, target, {"x": 1}, kernel, "a hash") is None
    assert fingerprint.is_fresh(target, "a hash")
    before = target.read_bytes()
    full = OSError(errno.ENOSPC, "No space left on device")

    def write_half(source, draft, **options):
        Path(draft).write_text('{"cells": [')
        raise full

    monkeypatch.setattr(execute.papermill, "execute_notebook", write_half)
    with pytest.raises(RunFailed, match=r"one.ipynb: cannot be written \(No space left"):
        execute.run_notebook(source, target, {"x": 1}, kernel)
    assert target.read_bytes() == before


def test_a_page_has_findings_and_the_headings_of_sections_that_show_something(shown):
    some, none = ["## Asked", "print('a table')"], ["## Not asked", "### No table", "y = 1"]
    displayed = "from IPython.display import Markdown; display(Markdown('## Table 12'))"
    trouble, page = shown(FINDING, *some, displayed, *none, "## Caution")
    assert trouble is None
    assert page.title == "A notebook"
    assert page.findings == ["A < B.", "C."]
    assert [heading for _mark, heading in page.contents] == ["Asked", "Table 12", "Caution", LAST]
    assert all(f'id="{mark}"' in page.body for mark, _heading in page.contents)
    assert "a table" in page.body
    assert "No table" not in page.body


@pytest.mark.parametrize(
    ("cell", "kind", "shows", "hides"),
    [
        ("raise ValueError('a <b>')", "ValueError", "a &lt;b&gt;", LAST),
        ("raise ValueError", "ValueError", "Traceback", "An Exception was encountered"),
        # A message for the reader needs no traceback.
        (SENTENCE, "BadInput", "shown before", "Traceback"),
        # It ends the kernel, so it is the last.
        pytest.param(
            "import os; os._exit(1)", "DeadKernelError", "", "Found", marks=pytest.mark.slow
        ),
    ],
)
def test_a_notebook_is_shown_up_to_where_it_fails(shown, cell, kind, shows, hides):
    trouble, page = shown("print('shown before')", cell)
    assert trouble.kind == kind
    assert page.title
    assert shows in page.body
    assert hides not in page.body


FRAME = pd.DataFrame({"model": list("abc"), "n": [1, 2, 3]}, [1097, 13, 1112])


@pytest.mark.parametrize(
    ("frame", "headings"),
    [
        (FRAME, ["model", "n"]),
        (FRAME.rename_axis(columns="x"), ["model", "n"]),
        (FRAME.set_index("n"), ["model", "n", "1", "2", "3"]),
        (FRAME.set_index("model"), ["n", "model", "a", "b", "c"]),
        (FRAME.set_index(["n", "model"]).T, ["n", "1", "2", "3", "model", "a", "b", "c"]),
    ],
)
def test_a_frame_shows_its_index_and_no_row_numbers(frame, headings):
    soup = BeautifulSoup(site.framed(frame._repr_html_()), "html.parser")
    assert [head.text for head in soup.select("th")] == headings
    assert [box["tabindex"] for box in soup.select("div")] == ["0"]


@pytest.fixture
def made(tmp_path, monkeypatch):
    """`made(x, shared)`: make a page, and return whether its notebook was run for it."""
    ran = []

    def run_notebook(source, target, parameters, kernel, inputs):
        ran.append(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        book = nbformat.read(source, as_version=4)
        failed = parameters["x"] == 13
        book.metadata[fingerprint.METADATA] = {} if failed else {"inputs": inputs}
        nbformat.write(book, target)
        return execute.Trouble("ValueError", "no") if failed else None

    def make(x=1, shared=""):
        before, folder = len(ran), tmp_path / "report"
        parameters = {"x": x, "runs": [str(tmp_path / "run")]}
        job = build.Job("one", "One", tmp_path / "one.ipynb", parameters, [])
        build._run_notebook(folder, [], shared, [], job)
        (folder / "one.html").write_text("a page")
        return len(ran) > before

    monkeypatch.setattr(execute, "run_notebook", run_notebook)
    monkeypatch.setattr(build, "is_own", lambda notebook: False)
    written(tmp_path / "one.ipynb")
    (tmp_path / "run/records").mkdir(parents=True)
    (tmp_path / "run/run.json").write_text("{}")
    return make


def test_a_notebook_is_run_again_only_where_something_changed(tmp_path, made):
    assert [made(), made()] == [True, False]
    assert [made(x=2), made(x=2)] == [True, False]
    (tmp_path / "run/records/answers.parquet").write_bytes(b"rows")
    assert [made(x=2), made(x=2)] == [True, False]
    written(tmp_path / "one.ipynb", "print(x)")
    assert [made(x=2), made(x=2)] == [True, False]
    # The data of the study, or the package.
    assert [made(x=2, shared="new"), made(x=2, shared="new")] == [True, False]
    (tmp_path / "report/one.html").unlink()
    assert [made(x=2, shared="new"), made(x=2, shared="new")] == [True, False]


def test_a_notebook_that_failed_or_that_can_read_anything_is_always_run_again(made, monkeypatch):
    assert [made(x=13), made(x=13)] == [True, True]
    monkeypatch.setattr(build, "is_own", lambda notebook: True)
    assert [made(), made()] == [True, True]


STATE = """import decimal, os, numpy as np, pandas as pd
pd.set_option("display.precision", 1), np.random.seed(0), decimal.setcontext(decimal.Context(3))
os.environ["BENCH_DATA"] = "/nowhere"; pd.Series.mean = lambda series: 42"""
SEEN = """import decimal, os, pandas as pd
print(pd.get_option("display.precision"), decimal.getcontext().prec, os.environ.get("BENCH_DATA"),
      pd.Series([1.0]).mean())"""


@pytest.mark.slow
def test_what_a_notebook_of_one_s_own_sets_holds_in_no_other_page(tmp_path, monkeypatch):
    monkeypatch.delenv("BENCH_DATA", raising=False)
    kernels, shown = [], []
    for name, cell in (("sets", STATE), ("sees", SEEN)):
        source = written(tmp_path / f"{name}.ipynb", cell)
        job = build.Job(name, name, source, {"x": 1})
        assert build._run_notebook(tmp_path / "report", [], "", kernels, job) is None
        book = nbformat.read(tmp_path / f"report/notebooks/{name}.ipynb", as_version=4)
        shown += [output.text for cell in book.cells for output in cell.get("outputs", [])]
    assert shown == ["6 28 None 1.0\n"]
