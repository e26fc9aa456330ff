"""Running notebooks: one that fails is shown up to there, one that is unchanged is not run again."""

import re
import shutil
from types import SimpleNamespace

import nbformat
import pytest

from bench import records, run
from bench.core.i18n import use_language
from bench.report import build, execute, matrix, site


def test_a_misspelt_parameter_or_notebook_is_refused(refusal):
    folder = build.NOTEBOOKS
    message = refusal(execute.check_parameters, folder / "cbbq.ipynb", {"modles": []})
    assert "cbbq.ipynb: parameter 'modles' is unknown; allowed: models" in message
    message = refusal(execute.check_parameters, folder / "nothing.ipynb", {})
    assert re.search("no such notebook; there are cbbq, .*, mcbe", message)


def written(path, *cells):
    """A notebook of a heading, cells of code, and a section that comes last."""
    book = [nbformat.v4.new_markdown_cell("# A notebook")]
    book += [nbformat.v4.new_code_cell(cell) for cell in cells]
    book.append(nbformat.v4.new_markdown_cell("## Never reached"))
    book[1].metadata["tags"] = ["parameters"]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(nbformat.v4.new_notebook(cells=book, metadata=kernel), path)
    return path


def shown(folder, *cells):
    """Run a notebook, and return its trouble and its page."""
    source, target = written(folder / "one.ipynb", *cells), folder / "out/one.ipynb"
    trouble = execute.run_notebook(source, target, {"x": 2})
    return trouble, site.page("one", "one", target, trouble)


def test_a_notebook_that_fails_is_shown_with_its_error(tmp_path):
    trouble, page = shown(tmp_path, "x = 1", "raise ValueError('the <b>reason</b>')")
    assert trouble == ("ValueError", "the <b>reason</b>")
    assert "the &lt;b&gt;reason&lt;/b&gt;" in page.body
    assert "Traceback" in page.body
    assert page.title == "A notebook"
    assert "Never reached" not in page.body
    assert "An Exception was encountered" not in page.body


def test_an_analysis_whose_runs_do_not_suffice_ends_with_a_sentence(tmp_path):
    raises = "from bench.core.errors import BadInput\nraise BadInput('two models are needed')"
    trouble, page = shown(tmp_path, "x = 1", "print('shown before')", raises)
    assert trouble.is_sentence
    assert "shown before" in page.body
    assert "Traceback" not in page.body
    assert "Never reached" not in page.body


@pytest.mark.slow
def test_a_kernel_that_dies_does_not_stop_the_rest(tmp_path):
    trouble, page = shown(tmp_path, "x = 1", "import os\nos._exit(1)")
    assert trouble.kind == "DeadKernelError"
    assert page.title


def test_findings_are_the_first_of_each_page(tmp_path):
    text = "<div class='findings'><ul><li>A &lt; B.</li><li>C.</li></ul></div>"
    shows = f"from IPython.display import HTML, display\ndisplay(HTML({text!r}))"
    trouble, page = shown(tmp_path, "x = 1", shows)
    assert trouble is None
    assert page.findings == ["A < B.", "C."]
    first = matrix.top_sentences([], {"compare": page.findings, "without": []})
    assert first == [("A < B.", "compare")]


def test_a_notebook_is_run_again_only_where_something_changed(tmp_path, monkeypatch):
    ran = []

    def run_notebook(source, target, parameters):
        ran.append(parameters["x"])
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
        return execute.Trouble("ValueError", "no") if parameters["x"] == 13 else None

    monkeypatch.setattr(execute, "run_notebook", run_notebook)
    monkeypatch.setattr(build, "NOTEBOOKS", tmp_path)
    source, run, folder = (tmp_path / name for name in ("one.ipynb", "run", "report"))
    written(source, "x = 1")
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
