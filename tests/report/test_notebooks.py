"""Running notebooks: one that fails is shown as far as it came, and one that would be the same again is not run again."""

import shutil
from types import SimpleNamespace

import nbformat
import pytest

from bench import records, run
from bench.core.errors import BadInput
from bench.core.i18n import use_language
from bench.report import build, execute, matrix, site


def test_a_misspelt_notebook_parameter_is_refused():
    with pytest.raises(
        BadInput, match=r"cbbq\.ipynb: parameter 'modles' is unknown; allowed: models"
    ):
        execute.check_parameters(build.NOTEBOOKS / "cbbq.ipynb", {"modles": []})
    with pytest.raises(BadInput, match=r"no such notebook; there are cbbq, .*, mcbe"):
        execute.check_parameters(build.NOTEBOOKS / "nothing.ipynb", {})


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
    trouble = execute.run_notebook(source, tmp_path / "out" / "bad.ipynb", {"x": 2})
    assert trouble == ("ValueError", "the <b>reason</b>")
    shown = site.page("bad", "bad", tmp_path / "out" / "bad.ipynb", trouble)
    assert "the &lt;b&gt;reason&lt;/b&gt;" in shown.body
    assert "Traceback" in shown.body
    assert shown.title == "A notebook"
    assert "Never reached" not in shown.body
    assert "An Exception was encountered" not in shown.body


def test_an_analysis_whose_runs_do_not_suffice_ends_with_a_sentence(tmp_path):
    raises = "from bench.core.errors import BadInput\nraise BadInput('two models are needed; this study has one')"
    source = written(tmp_path / "few.ipynb", "x = 1", "print('shown before')", raises)
    trouble = execute.run_notebook(source, tmp_path / "out" / "few.ipynb", {})
    assert trouble.is_sentence
    shown = site.page("few", "few", tmp_path / "out" / "few.ipynb", trouble)
    assert "shown before" in shown.body
    assert "Traceback" not in shown.body
    assert "Never reached" not in shown.body


@pytest.mark.slow
def test_a_kernel_that_dies_does_not_stop_the_rest(tmp_path):
    source = written(tmp_path / "dead.ipynb", "x = 1", "import os\nos._exit(1)")
    trouble = execute.run_notebook(source, tmp_path / "out" / "dead.ipynb", {})
    assert trouble.kind == "DeadKernelError"
    assert site.page("dead", "dead", tmp_path / "out" / "dead.ipynb", trouble).title


def test_a_notebook_is_run_again_only_where_something_changed(tmp_path, monkeypatch):
    ran = []

    def run_notebook(source, target, parameters):
        ran.append(parameters["x"])
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
        return execute.Trouble("ValueError", "no") if parameters["x"] == 13 else None

    monkeypatch.setattr(execute, "run_notebook", run_notebook)
    monkeypatch.setattr(build, "NOTEBOOKS", tmp_path)
    source, run, folder = (
        written(tmp_path / "one.ipynb", "x = 1"),
        tmp_path / "run",
        tmp_path / "report",
    )
    (run / "records").mkdir(parents=True)
    (run / "run.json").write_text("{}")
    (folder / "tables" / "one").mkdir(parents=True)

    def times(x=1):
        before = len(ran)
        made = build._page(SimpleNamespace(variants=()), folder, "one", {"x": x}, [run])
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
    with use_language("zh"):
        assert times(x=2) == 1
    assert times(x=2) == 1
    monkeypatch.setattr(execute, "__version__", "99")
    assert times(x=2) == 1
    (folder / "one.html").unlink()
    assert times(x=2) == 1
    # One that failed is tried again.
    assert times(x=13) == 1
    assert times(x=13) == 1


@pytest.mark.slow
def test_a_page_is_made_again_when_any_run_that_it_opens_changes(own_folder):
    """Also those that a pattern names, and those that no parameter names."""

    def ask(out, bias, limit=2):
        model = f"simulated:bias={bias}"
        return run.evaluate("nli_coal", model, limit=limit, out=own_folder / out).folder

    hidden, _ = ask("hidden", 0.9), ask("runs/a", 0.1)
    (own_folder / "mine.yml").write_text(
        "title: T\nmodels: ['simulated:bias=0.5']\n"
        "benchmarks: {nli_coal: [{name: X, limit: 2, page: false}]}\n"
        "analyses: {explore: {runs: ['runs/*']}}\n"
    )
    lines = [
        "from pathlib import Path",
        "from bench.analyses import opened",
        "from bench.run.results import Run",
        f"Run.open({str(hidden)!r})",
        "Path(tables, 'models.txt').write_text(' '.join(run.model for run in opened(runs)))",
    ]
    source = written(own_folder / "explore.ipynb", "runs = []\ntables = ''", "\n".join(lines))

    def is_made_again(biases):
        page = own_folder / "out/notebooks/explore.ipynb"
        before = page.stat().st_mtime_ns if page.exists() else 0
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(build, "_notebook", lambda plan, name: source)
            assert build.make(own_folder / "mine.yml", "out").failed == []
        models = (own_folder / "out/tables/explore/models.txt").read_text()
        assert models == " ".join(f"simulated:bias={bias}" for bias in biases)
        return page.stat().st_mtime_ns != before

    assert is_made_again([0.5, 0.1])
    ask("runs/b", 0.2)
    assert is_made_again([0.5, 0.1, 0.2])
    shutil.rmtree("runs/a")
    assert is_made_again([0.5, 0.2])
    shutil.rmtree(hidden)
    ask("hidden", 0.9, limit=3)
    assert is_made_again([0.5, 0.2])
    assert not is_made_again([0.5, 0.2])


def test_runs_that_a_notebook_opened_are_part_of_its_fingerprint(tmp_path, monkeypatch):
    source, target = written(tmp_path / "one.ipynb", "x = 1"), tmp_path / "made.ipynb"
    shutil.copy(source, target)
    named, opened = (
        run.evaluate("nli_coal", f"simulated:bias={bias}", limit=2, out=tmp_path / str(bias)).folder
        for bias in (0.1, 0.9)
    )
    now = execute.fingerprint(source, {}, [named])
    with monkeypatch.context() as patch:
        patch.setenv(records.OPENED_RUNS, str(target.with_suffix(".opened")))
        run.Run.open(opened)
    execute.remember(target, now)
    assert execute.changed(target, now) == []
    (opened / "run.json").write_text((opened / "run.json").read_text() + "\n")
    assert execute.changed(target, now) == ["runs"]
    shutil.rmtree(opened)
    assert execute.changed(target, now) == ["runs"]
    assert execute.changed(target, execute.fingerprint(source, {}, [])) == ["runs"]


def test_findings_are_first_of_every_page_and_an_analysis_may_have_one(tmp_path):
    shows = "from IPython.display import HTML, display\ndisplay(HTML(\"<div class='findings'><ul><li>A &lt; B.</li><li>C.</li></ul></div>\"))"
    source = written(tmp_path / "compare.ipynb", "x = 1", shows)
    assert execute.run_notebook(source, tmp_path / "out" / "compare.ipynb", {}) is None
    made = site.page("compare", "compare", tmp_path / "out" / "compare.ipynb")
    assert made.findings == ["A < B.", "C."]
    assert matrix.top_sentences([], {"compare": made.findings, "without": []}) == [
        ("A < B.", "compare")
    ]
