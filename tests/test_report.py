"""Reports: pages that answer, tables beside them, nothing that leaves the page, and failures that stay where they are."""

import contextlib
import json
import re

import nbformat
import pandas as pd
import pytest
from browser import visit

from bench import report
from bench.errors import BadInput
from bench.tasks.wording import load as load_wording

PLANTED = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"
STUDY = """
title: Report <of> tests
question: Is every page whole?
models: ["simulated:bias=1", "simulated:refuse=1", "{replay}"]
benchmarks:
  cbbq: {{categories: [gender, age], limit: 2}}
  nli_coal: {{categories: [zh], limit: 4}}
analyses:
  meta_evaluation: {{languages: [zh], rates: [0, 0.5, 1], seeds: [0]}}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A report on three respondents, one of which plants HTML and knows nothing of NLI-CoAL."""
    from bench import data, tasks
    from bench.tasks import cbbq
    from bench.tasks.request import Way

    folder = tmp_path_factory.mktemp("study")
    items = data.load(data.find("cbbq", data.SAMPLES / "cbbq"), ["gender", "age"])
    wording = load_wording("cbbq")
    with (folder / "planted.jsonl").open("w", encoding="utf-8") as stream:
        for task in cbbq.TASKS:
            for request in cbbq.requests(
                items, wording, task, Way("generate"), tasks.settings("cbbq", {}, "robust"), 0
            ):
                named = {"task": task, "item_id": request.item_id, "request": request.request}
                stream.write(json.dumps({**named, "response": f"A {PLANTED}"}) + "\n")
    (folder / "mine.yml").write_text(STUDY.format(replay="replay:planted.jsonl"), "utf-8")
    with contextlib.chdir(folder):
        return report.make("mine.yml", "mine")


def page(made, name):
    return (made.page.parent / name).read_text("utf-8")


def test_the_report_has_an_index_and_a_page_a_notebook(made):
    folder = made.page.parent
    assert made.page.name == "index.html"
    pages = {path.name for path in folder.glob("*.html")}
    assert pages == {"index.html", "cbbq.html", "nli_coal.html", "meta_evaluation.html"}
    assert 'href="cbbq.html"' in page(made, "index.html")
    assert "Report &lt;of&gt; tests" in page(made, "index.html")


def test_one_that_fails_does_not_stop_the_rest(made):
    assert made.failed == ["planted on nli_coal"]
    index = page(made, "index.html")
    assert "failed:" in index
    assert "has no answer for task" in index
    assert "planted answered" in index
    row = re.search(r'<th scope="row">simulated:bias=1</th>.*?</tr>', index, re.DOTALL)[0]
    assert "100\u00a0%" in row


def test_an_undefined_score_is_a_dash_with_its_reason(made):
    index = page(made, "index.html")
    row = re.search(r'<th scope="row">simulated:refuse=1</th>.*?</tr>', index, re.DOTALL)[0]
    assert "—" in row
    assert "no answer could be read" in row
    assert "0 % readable" in row.replace("\u00a0", " ") or "0% readable" in row


@pytest.mark.parametrize("name", ["index.html", "cbbq.html", "nli_coal.html"])
def test_no_page_asks_for_anything_from_elsewhere(made, name):
    text = page(made, name)
    found = re.findall(r"""(?:src|href|action)\s*=\s*["']([^"']+)["']|url\(([^)]+)\)|@import""", text)
    links = [link for pair in found for link in pair if link]
    assert links
    assert [link for link in links if re.match(r"(https?:)?//", link)] == []
    assert "<script" not in text


def test_every_table_lies_beside_the_page_and_agrees_with_it(made):
    folder = made.page.parent
    linked = set(re.findall(r'href="(tables/cbbq/[\w.]+\.csv)"', page(made, "cbbq.html")))
    assert {"tables/cbbq/by_category.csv", "tables/cbbq/provenance.csv", "tables/cbbq/scores.csv"} <= linked
    for link in linked:
        assert (folder / link).is_file()
    scores = pd.read_csv(folder / "tables/cbbq/scores.csv")
    biased = scores.query(
        "model == 'simulated:bias=1' and category == 'all' and metric == 's_amb' and preset == 'robust'"
    )
    assert biased.score.item() == 1
    assert (folder / "tables/cbbq/scores.png").is_file()
    assert (folder / "tables/cbbq/scores.svg").is_file()


def test_code_is_folded_and_pictures_have_words(made):
    text = page(made, "cbbq.html")
    assert text.count('<details class="code">') >= 5
    alternatives = re.findall(r'<img[^>]*?alt="([^"]*)"', text, re.DOTALL)
    assert len(alternatives) >= 4
    assert all(len(words) > 20 for words in alternatives)


def test_what_a_model_says_is_shown_as_text(made):
    text = page(made, "cbbq.html")
    assert PLANTED not in text
    assert "&lt;script&gt;document.title=" in text


@pytest.mark.parametrize("width", [390, 1280])
def test_the_pages_in_a_browser(made, width):
    script = """({
        title: document.title,
        pictures: [...document.images].filter(image => image.complete && image.naturalWidth > 0).length,
        broken: [...document.images].filter(image => image.complete && image.naturalWidth === 0).length,
        tables: document.querySelectorAll('table').length,
        wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
        text: document.body.innerText.length,
    })"""
    for name, pictures in (("index.html", 0), ("cbbq.html", 4), ("nli_coal.html", 2)):
        seen = visit(made.page.parent / name, script, width)
        assert seen.console == []
        assert [url for url in seen.requests if not url.startswith(("file:", "data:", "about:"))] == []
        assert seen.value["pictures"] >= pictures
        assert seen.value["broken"] == 0
        assert seen.value["tables"] >= 2
        assert seen.value["wide"] <= 0, f"{name} scrolls sideways at {width} pixels"
        assert seen.value["text"] > 500
        assert "taken" not in seen.value["title"]


def test_a_second_call_reads_the_records_and_a_changed_study_keeps_the_old_ones(tmp_path, monkeypatch):
    path = tmp_path / "mine.yml"
    text = 'title: T\nmodels: ["simulated:bias=1"]\nbenchmarks: {nli_coal: {categories: [zh], limit: 2}}\n'
    path.write_text(text)
    plan = report.study.load(path)
    assert [cell.state for cell in report._ask_model(plan, plan.models[0], tmp_path / "r")] == ["done"]
    run = tmp_path / "r" / "runs" / "simulated_bias=1" / "nli_coal"
    before = (run / "records" / "000000.parquet").stat().st_mtime_ns
    report._ask_model(plan, plan.models[0], tmp_path / "r")
    assert (run / "records" / "000000.parquet").stat().st_mtime_ns == before
    path.write_text(text.replace("limit: 2", "limit: 3"))
    changed = report.study.load(path)
    assert [cell.state for cell in report._ask_model(changed, changed.models[0], tmp_path / "r")] == ["done"]
    assert len(list(run.parent.iterdir())) == 2


def test_a_misspelt_notebook_parameter_is_refused():
    with pytest.raises(BadInput, match=r"cbbq\.ipynb: parameter 'modles' is unknown; allowed: models"):
        report.check_parameters(report.NOTEBOOKS / "cbbq.ipynb", {"modles": []})
    with pytest.raises(BadInput, match="no such notebook; there are cbbq, mcbe"):
        report.check_parameters(report.NOTEBOOKS / "nothing.ipynb", {})


def test_a_notebook_that_fails_is_shown_with_its_error(tmp_path):
    cells = [
        nbformat.v4.new_markdown_cell("# A notebook"),
        nbformat.v4.new_code_cell("raise ValueError('the <b>reason</b>')"),
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "bad.ipynb")
    assert report.run_notebook(tmp_path / "bad.ipynb", tmp_path / "out" / "bad.ipynb", {}) is False
    shown = report._page("bad", tmp_path / "out" / "bad.ipynb", failed=True)
    assert "the &lt;b&gt;reason&lt;/b&gt;" in shown.body
    assert shown.title == "A notebook"


def test_two_models_of_one_short_name_keep_their_own_rows(tmp_path):
    paths = [tmp_path / name / "answers.jsonl" for name in ("one", "two")]
    for path, label in zip(paths, ("neutral", "entailment"), strict=True):
        path.parent.mkdir()
        rows = [
            {"task": "ps", "item_id": f"zh:{k}", "request": "label", "response": label} for k in range(240)
        ]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    models = [f"replay:{path}" for path in paths]
    (tmp_path / "mine.yml").write_text(
        f"title: T\nmodels: {json.dumps(models)}\nbenchmarks: {{cbbq: {{limit: 1}}}}\n", "utf-8"
    )
    runs = [
        report.evaluate("nli_coal", model, tasks=["ps"], categories=["zh"], out=tmp_path / str(k))
        for k, model in enumerate(models)
    ]
    cells = [report.Cell(model, "nli_coal", "done") for model in models]
    matrix = report._matrix(
        report.study.load(tmp_path / "mine.yml"),
        "nli_coal",
        cells,
        {(run.model, "nli_coal"): run for run in runs},
    )
    assert [row["model"] for row in matrix["rows"]] == models
