"""Running notebooks: one that fails is shown as far as it came, and one that would be the same again is not run again."""

import shutil
from types import SimpleNamespace

import nbformat
import pytest

from bench import notebooks, report, words
from bench.errors import BadInput
from bench.site import matrix, pages


def test_a_misspelt_notebook_parameter_is_refused():
    with pytest.raises(BadInput, match=r"cbbq\.ipynb: parameter 'modles' is unknown; allowed: models"):
        notebooks.check_parameters(report.NOTEBOOKS / "cbbq.ipynb", {"modles": []})
    with pytest.raises(BadInput, match=r"no such notebook; there are cbbq, .*, mcbe"):
        notebooks.check_parameters(report.NOTEBOOKS / "nothing.ipynb", {})


def written(path, *cells):
    """A notebook of a heading, cells of code, and a section that comes last."""
    book = [nbformat.v4.new_markdown_cell("# A notebook")]
    book += [nbformat.v4.new_code_cell(cell) for cell in cells]
    book.append(nbformat.v4.new_markdown_cell("## Never reached"))
    book[1].metadata["tags"] = ["parameters"]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(nbformat.v4.new_notebook(cells=book, metadata=kernel), path)
    return path


def test_a_notebook_that_fails_is_shown_with_its_error(tmp_path):
    source = written(tmp_path / "bad.ipynb", "x = 1", "raise ValueError('the <b>reason</b>')")
    trouble = notebooks.run_notebook(source, tmp_path / "out" / "bad.ipynb", {"x": 2})
    assert trouble == ("ValueError", "the <b>reason</b>")
    shown = pages.page("bad", "bad", tmp_path / "out" / "bad.ipynb", trouble)
    assert "the &lt;b&gt;reason&lt;/b&gt;" in shown.body
    assert "Traceback" in shown.body
    assert shown.title == "A notebook"
    assert "Never reached" not in shown.body
    assert "An Exception was encountered" not in shown.body


def test_an_analysis_whose_runs_do_not_suffice_ends_with_a_sentence(tmp_path):
    raises = "from bench.errors import BadInput\nraise BadInput('two models are needed; this study has one')"
    source = written(tmp_path / "few.ipynb", "x = 1", "print('shown before')", raises)
    trouble = notebooks.run_notebook(source, tmp_path / "out" / "few.ipynb", {})
    assert trouble.is_sentence
    shown = pages.page("few", "few", tmp_path / "out" / "few.ipynb", trouble)
    assert "shown before" in shown.body
    assert "Traceback" not in shown.body
    assert "Never reached" not in shown.body


@pytest.mark.slow
def test_a_kernel_that_dies_does_not_stop_the_rest(tmp_path):
    source = written(tmp_path / "dead.ipynb", "x = 1", "import os\nos._exit(1)")
    trouble = notebooks.run_notebook(source, tmp_path / "out" / "dead.ipynb", {})
    assert trouble.kind == "DeadKernelError"
    assert pages.page("dead", "dead", tmp_path / "out" / "dead.ipynb", trouble).title


def test_a_notebook_is_run_again_only_where_something_changed(tmp_path, monkeypatch):
    ran = []

    def run_notebook(source, target, parameters):
        ran.append(parameters["x"])
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
        return notebooks.Trouble("ValueError", "no") if parameters["x"] == 13 else None

    monkeypatch.setattr(notebooks, "run_notebook", run_notebook)
    monkeypatch.setattr(report, "NOTEBOOKS", tmp_path)
    source, run, folder = written(tmp_path / "one.ipynb", "x = 1"), tmp_path / "run", tmp_path / "report"
    (run / "records").mkdir(parents=True)
    (run / "run.json").write_text("{}")
    (folder / "tables" / "one").mkdir(parents=True)

    def times(x=1):
        before = len(ran)
        made = report._page(SimpleNamespace(variants=()), folder, "one", {"x": x}, [run])
        (folder / made.file).write_text(made.body)
        return len(ran) - before

    assert times() == 1
    assert times() == 0
    assert times(x=2) == 1
    (run / "records" / "000000.parquet").write_bytes(b"rows")
    assert times(x=2) == 1
    written(source, "x = 1", "print(x)")
    assert times(x=2) == 1
    assert times(x=2) == 0
    with words.spoken("zh"):
        assert times(x=2) == 1
    assert times(x=2) == 1
    monkeypatch.setattr(notebooks, "__version__", "99")
    assert times(x=2) == 1
    (folder / "one.html").unlink()
    assert times(x=2) == 1
    # One that failed is tried again.
    assert times(x=13) == 1
    assert times(x=13) == 1


def test_findings_are_first_of_every_page_and_an_analysis_may_have_one(tmp_path):
    shows = "from IPython.display import HTML, display\ndisplay(HTML(\"<div class='findings'><ul><li>A &lt; B.</li><li>C.</li></ul></div>\"))"
    source = written(tmp_path / "compare.ipynb", "x = 1", shows)
    assert notebooks.run_notebook(source, tmp_path / "out" / "compare.ipynb", {}) is None
    made = pages.page("compare", "compare", tmp_path / "out" / "compare.ipynb")
    assert made.findings == ["A < B.", "C."]
    assert matrix.told([], {"compare": made.findings, "without": []}) == [("A < B.", "compare")]
