"""Running notebooks: failing ones are shown up to there, unchanged ones are not run again."""

import shutil
from queue import SimpleQueue
from unittest.mock import Mock

import nbformat
import papermill
import pytest
from nbformat import v4

from bench import records, run
from bench.core import places
from bench.report import build, execute, fingerprint, site

LAST = "What the numbers rest on"
FINDING = "print('A < B.'); print('C.')"
SENTENCE = "from bench.core.errors import BadInput; raise BadInput('two models are needed')"


@pytest.mark.parametrize(
    ("notebook", "given", "message"),
    [
        ("cbbq", {"modles": []}, "cbbq.ipynb: parameter 'modles' is unknown; allowed: models"),
        ("cbqb", {"modles": []}, "notebook 'cbqb' is unknown; allowed: 00_start, cbbq, "),
        ("meta_evaluation", {"model": {"a": 1}}, "found {'a': 1}; of this type are options"),
    ],
)
def test_a_wrong_parameter_or_notebook_is_refused(refusal, notebook, given, message):
    source = places.NOTEBOOKS / f"{notebook}.ipynb"
    assert message in refusal(execute.check_parameters, source, given)


@pytest.mark.parametrize("path", sorted(places.NOTEBOOKS.rglob("*.ipynb")), ids=lambda p: p.stem)
def test_papermill_knows_every_parameter_of_a_notebook(path):
    assert list(papermill.inspect_notebook(str(path))) == list(execute.types_of_parameters(path))


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
    yield execute.OwnKernel()
    execute.end_kernels()


@pytest.fixture
def shown(tmp_path, kernel):
    """`shown(cell...)`: run a notebook, and return its trouble and its page."""

    def run_cells(*cells):
        source, target = written(tmp_path / "one.ipynb", *cells), tmp_path / "out/one.ipynb"
        trouble = execute.run_notebook(source, target, {"x": 2}, kernel)
        return trouble, site.page("one", "one", target, trouble)

    return run_cells


def test_a_kernel_is_as_new_for_each_notebook(tmp_path, kernel):
    left = "import os, matplotlib; os.chdir('/'); matplotlib.rcParams['font.size'] = 99; y = 1"
    seen = "print('y' in globals(), os.path.basename(os.getcwd()), mpl.rcParams['font.size'] == 99)"
    first = written(tmp_path / "first.ipynb", left)
    second = written(tmp_path / "second.ipynb", "import os, matplotlib as mpl", seen)
    for source in (first, second):
        target = tmp_path / source.stem / source.name
        assert execute.run_notebook(source, target, {"x": 2}, kernel) is None
    cell = nbformat.read(target, as_version=4).cells[-2]
    assert cell.outputs[0].text.split() == ["False", "second", "False"]
    assert cell.execution_count == 4


def test_a_page_has_findings_and_the_headings_of_sections_that_show_something(shown):
    some, none = ["## Asked", "print('a table')"], ["## Not asked", "### No table", "y = 1"]
    trouble, page = shown(FINDING, *some, *none, "## Caution")
    assert trouble is None
    assert page.title == "A notebook"
    assert page.findings == ["A < B.", "C."]
    assert [heading for _mark, heading in page.contents] == ["Asked", "Caution", LAST]
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


def test_a_notebook_is_run_again_only_where_something_changed(tmp_path, monkeypatch):
    ran, kernels = [], SimpleQueue()
    kernels.put(Mock())

    def run_notebook(source, target, parameters, kernel):
        ran.append(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
        return execute.Trouble("ValueError", "no") if parameters["x"] == 13 else None

    def times(x=1):
        """Make the page with this parameter, and count the runs of its notebook."""
        before, folder = len(ran), tmp_path / "report"
        parameters = {"x": x, "runs": [str(tmp_path / "run")]}
        job = build.Job("one", "One", tmp_path / "one.ipynb", parameters, [])
        build._run_notebook(folder, job, [], kernels)
        (folder / "one.html").write_text("a page")
        return len(ran) - before

    monkeypatch.setattr(execute, "run_notebook", run_notebook)
    written(tmp_path / "one.ipynb")
    (tmp_path / "run/records").mkdir(parents=True)
    (tmp_path / "run/run.json").write_text("{}")
    assert [times(), times()] == [1, 0]
    assert times(x=2) == 1
    (tmp_path / "run/records/answers.parquet").write_bytes(b"rows")
    assert times(x=2) == 1
    written(tmp_path / "one.ipynb", "print(x)")
    assert times(x=2) == 1
    monkeypatch.setattr(fingerprint, "__version__", "99")
    assert times(x=2) == 1
    (tmp_path / "report/one.html").unlink()
    assert [times(x=2), times(x=2)] == [1, 0]
    # A notebook that failed is tried again.
    assert [times(x=13), times(x=13)] == [1, 1]


def test_runs_that_a_notebook_opened_are_part_of_its_fingerprint(tmp_path, monkeypatch):
    source, target = written(tmp_path / "one.ipynb"), written(tmp_path / "made.ipynb")
    opened = run.evaluate("nli_coal", "simulated:", limit=2, out=tmp_path / "opened").folder
    now = fingerprint.of_page(source, {}, [])
    with monkeypatch.context() as patch:
        patch.setenv(records.OPENED_RUNS, str(target.with_suffix(".opened")))
        run.Run.open(opened)
    fingerprint.remember(target, now)
    assert fingerprint.changed(target, now) == []
    (opened / "run.json").write_text((opened / "run.json").read_text() + "\n")
    assert fingerprint.changed(target, now) == ["runs"]
    shutil.rmtree(opened)
    assert fingerprint.changed(target, now) == ["runs"]
