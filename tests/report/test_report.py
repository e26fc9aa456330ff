"""Reports: pages that answer, tables next to them, nothing from elsewhere."""

import contextlib
import os
import re
from pathlib import Path

import nbformat
import pandas as pd
import pytest

from bench.report import build, site, study, study_runs
from bench.report.study_runs import run_folder
from bench.run import Run, evaluate
from tests.helpers.answering import said
from tests.slow.helpers.browser import axe, visit

PLANTED = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"
STUDY = """
title: Report <of> tests
models: ["simulated:bias=1", "simulated:refuse=1", "replay:planted.jsonl"]
benchmarks:
  cbbq: {categories: [gender, age], limit: 2}
  nli_coal: {categories: [zh], limit: 4}
analyses:
  meta_evaluation: {languages: [zh], rates: [0, 0.5, 1], seeds: [0]}
  self_correction: {}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A report on three respondents, one of which plants HTML and knows nothing of NLI-CoAL."""
    folder = tmp_path_factory.mktemp("study")
    given = {"categories": ["gender", "age"], "limit": 2, "data": "samples"}
    rows = evaluate("cbbq", "simulated:", out=folder / "asked", **given).records
    answers = rows[["task", "item_id", "request"]].assign(response=f"A {PLANTED}")
    answers.to_json(folder / "planted.jsonl", orient="records", lines=True)
    (folder / "mine.yml").write_text(STUDY, "utf-8")
    with contextlib.chdir(folder):
        return build.make(study.load(Path("mine.yml")), "mine")


def page(made, name="index.html"):
    return (made.page.parent / name).read_text("utf-8")


def score(made, model):
    scores = pd.read_csv(made.page.parent / "tables/cbbq/scores.csv")
    where = f"model == '{model}' and category == 'all' and metric == 's_amb' and preset == 'robust'"
    return scores.query(where).iloc[0]


@pytest.mark.slow
def test_the_index_answers_first_and_says_what_failed(made):
    index, folder = page(made), made.page.parent
    pages = {path.name for path in folder.glob("*.html")}
    answers = {"answers-cbbq.html", "answers-nli_coal.html"}
    assert pages == {"index.html", "cbbq.html", "nli_coal.html", "meta_evaluation.html", *answers}
    assert made.failed == ["planted on nli_coal"]
    for text in (
        'href="cbbq.html"',
        "Report &lt;of&gt; tests",
        "has no answer for task",
        # What has no runs to be about is no failure.
        "no page: no model was asked under two prompt settings; there is simulated:bias=1: Q",
        "Yufei Huang, Deyi Xiong (2024).",
    ):
        assert text in index
    marks = ("glance", "findings", "pages", "provenance", "cite")
    places = [index.index(f'id="{mark}"') for mark in marks]
    assert places == sorted(places)
    findings = re.findall(r"<li>(.*?) <a href=\"([\w.]+)\">More", index)
    assert [link for _, link in findings] == ["meta_evaluation.html", "cbbq.html", "nli_coal.html"]
    # Nobody is the most biased of one: the others answer nothing readable, or always the same.
    answer = index.partition('id="glance"')[0]
    assert "CBBQ: simulated:bias=1, share of stereotyped answers 100" in answer
    assert "most biased" not in answer
    glance = index.partition('id="glance"')[2].partition("</table>")[0]
    # Three models, and where to look further.
    assert glance.count('<th scope="row">') == 4
    assert '<td class="na"><span>failed: ' in glance
    notes = index.partition('id="notes"')[2].partition("</details>")[0]
    assert "simulated:refuse=1, CBBQ: Only 0\u00a0% of its answers could be read" in notes
    links = re.findall(r'href="([^"]+/run.json)"', index)
    assert len(links) == 5
    assert all((folder / link).is_file() for link in links)


@pytest.mark.slow
def test_every_table_is_next_to_its_page_and_agrees_with_it(made):
    text, tables = page(made, "cbbq.html"), made.page.parent / "tables/cbbq"
    linked = {Path(link).name for link in re.findall(r"href=[\"'](tables/cbbq/[\w.]+)", text)}
    # A table without rows is saved and not linked.
    kept = {path.name for path in tables.iterdir() if path.stem not in ("published", "faults")}
    assert linked == kept
    assert {"categories.pdf", "scores.parquet", "scores.tex", "scores.svg"} <= linked
    assert score(made, "simulated:bias=1").score == 1
    same = pd.read_parquet(tables / "scores.parquet").score
    pd.testing.assert_series_equal(pd.read_csv(tables / "scores.csv").score, same)
    # Pictures have words, and what a model says is text.
    alternatives = re.findall(r'<img[^>]*?alt="([^"]*)"', text, re.DOTALL)
    assert len(alternatives) >= 4
    assert min(map(len, alternatives)) > 20
    answers = page(made, "answers-cbbq.html")
    assert PLANTED not in text + answers
    assert "&lt;script&gt;document.title=" in answers
    # A category links to its questions.
    assert "<a href='answers-cbbq.html#gender'>" in page(made, "cbbq.html")
    assert 'id="gender"' in answers


RULES = "{runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'best-practice']}"


@pytest.mark.slow
@pytest.mark.parametrize(("width", "dark"), [(360, False), (390, True), (1280, True)])
@pytest.mark.parametrize(
    ("name", "pictures"),
    [("index.html", 1), ("cbbq.html", 4), ("nli_coal.html", 2), ("answers-cbbq.html", 0)],
)
def test_a_page_in_a_browser_shows_all_and_shuts_nobody_out(made, name, pictures, width, dark):
    links = r"""(?:src|href|action)\s*=\s*["']([^"']+)["']|url\(([^)]+)\)|@import"""
    found = [link for pair in re.findall(links, page(made, name)) for link in pair if link]
    assert [link for link in found if re.match(r"(https?:)?//", link)] == []
    assert page(made, name).count("<script") == 1
    script = f"""{axe()};axe.run(document, {RULES}).then(found => ({{
        title: document.title,
        pictures: [...document.images].map(image => image.complete && image.naturalWidth > 0),
        wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
        ground: getComputedStyle(document.body).backgroundColor,
        violations: found.violations.map(rule => [rule.id, ...rule.nodes.map(node => node.html)]),
    }}))"""
    seen = visit(made.page.parent / name, script, width, dark=dark)
    assert seen.console == []
    own = ("file:", "data:", "about:")
    assert [url for url in seen.requests if not url.startswith(own)] == []
    assert sum(seen.value["pictures"]) >= pictures
    assert all(seen.value["pictures"])
    assert seen.value["wide"] <= 0, f"{name} scrolls sideways at {width} pixels"
    assert "taken" not in seen.value["title"]
    assert (seen.value["ground"] == "rgb(255, 255, 255)") is not dark
    assert seen.value["violations"] == []


SMALL = """
title: T
models: ["simulated:bias=1", "simulated:bias=0"]
benchmarks: {nli_coal: {categories: [zh], limit: 2}}
"""


@pytest.fixture
def small(own_folder):
    Path("mine.yml").write_text(SMALL)
    return study.load(Path("mine.yml"))


def test_a_second_call_reads_the_records_and_a_changed_study_keeps_the_old_ones(small):
    def ask(limit=2):
        Path("mine.yml").write_text(SMALL.replace("limit: 2", f"limit: {limit}"))
        plan = study.load(Path("mine.yml"))
        first, _second = study_runs.cells(plan)
        return study_runs.ask(plan, first, Path("r"), study_runs.budgets(plan)).state

    assert ask() == "done"
    answers = Path("r/runs/simulated_bias=1/nli_coal/records/answers.parquet")
    before = answers.stat().st_mtime_ns
    assert [ask(limit) for limit in (2, 3, 2, 3, 2, 4)] == ["done"] * 6
    # Each run is asked once, and found again.
    times = [path.stat().st_mtime_ns for path in Path("r").glob("runs/*/*/records/*.parquet")]
    assert len(times) == 3
    assert before in times


def test_the_index_says_why_a_model_has_no_scores_and_links_no_page_that_is_not_there(small):
    folder, budgets = Path("r").resolve(), study_runs.budgets(small)
    first, second = study_runs.cells(small)
    first = study_runs.ask(small, first, folder, budgets)
    cells = [first, second._replace(state=study_runs.FAILED, why="no memory")]
    runs = {first.place: Run.open(run_folder(folder, first))}
    text = site.write(small, folder, cells, [], runs).read_text("utf-8")
    for link in re.findall(r'href="([^"#]+)"', text):
        assert link.startswith("data:") or (folder / link).exists()
    rows = re.findall(r'<th scope="row">(.*?)</th>(.*?)</tr>', text, re.DOTALL)
    assert ["failed: no memory" in row for _, row in rows[:2]] == [False, True]
    assert len(re.findall(r'<img src="data:image/png[^>]*alt="[^"]+"', text)) == 1
    for heading in ("At a glance", "Downloads", "How to cite"):
        assert f">{heading}</h2>" in text


def _die(*arguments):
    os._exit(9)


@pytest.mark.slow
def test_a_worker_that_is_killed_fails_its_own_model(small, monkeypatch):
    monkeypatch.setattr(study_runs, "_work", _die)
    given = study_runs.cells(small)[:1], Path("r"), 1, study_runs.budgets(small)
    (cell,) = study_runs._ask_beside(small, *given)
    assert (cell.state, "ended early (exit status 9)" in cell.why) == ("failed", True)


OWN = """
title: Mine
models: ["simulated:"]
benchmarks: {cbbq: {limit: 1, data: samples, page: false}}
analyses: {./my_words.ipynb: {}}
"""
ASKED = """
title: An endpoint
models: ["MODEL"]
benchmarks: {cbbq: {categories: [age], limit: 1, data: samples}}
analyses: {explore: }
options: {limits: {budget_requests: 40}}
"""


@pytest.mark.slow
def test_a_report_asks_nobody_beyond_its_study(serve, own_folder):
    server = serve(lambda body: said("A"))
    Path("mine.yml").write_text(ASKED.replace("MODEL", server.model), "utf-8")
    made = build.make(study.load(Path("mine.yml")), "out")
    (record,) = Path("out/runs").glob("*/*/run.json")
    assert len(server.seen) == len(Run.open(record.parent).records)
    server.shutdown()
    server.server_close()
    # With the server gone, every page can be made again from the records.
    pages = sorted(made.page.parent.glob("*.html"))
    assert [path.stem for path in pages] == ["answers-cbbq", "cbbq", "explore", "index"]
    for path in pages:
        path.unlink()
    assert made.failed == build.make(study.load(Path("mine.yml")), "out").failed == []
    assert sorted(made.page.parent.glob("*.html")) == pages


@pytest.mark.slow
def test_all_processes_of_a_report_share_its_budget(serve, own_folder):
    server = serve(lambda body: said("A"))
    models = [server.model, server.model.replace("openai:", "openai:other-")]
    text = ASKED.replace('["MODEL"]', str(models)).replace("limit: 1", "limit: 20")
    Path("mine.yml").write_text(text.replace("[age]", "[age, race]"), "utf-8")
    made = build.make(study.load(Path("mine.yml")), "out", jobs=2)
    # Up to four to each model found out what it can do.
    assert 40 - 8 <= len(server.seen) <= 40
    assert [part.split(" on ")[1] for part in made.failed] == ["cbbq", "cbbq"]


@pytest.mark.slow
def test_a_notebook_beside_the_study_is_a_page_like_any_other(own_folder):
    text = (Path(__file__).parents[2] / "docs/studies.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    cells = [nbformat.v4.new_markdown_cell("# My words")]
    for cell in code.split("# %%")[1:]:
        tags, _, source = cell.partition("\n")
        metadata = {"tags": re.findall(r'"(\w+)"', tags)}
        cells.append(nbformat.v4.new_code_cell(source, metadata=metadata))
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    book = nbformat.v4.new_notebook(cells=cells, metadata=kernel)
    nbformat.write(book, own_folder / "my_words.ipynb")
    Path("mine.yml").write_text(OWN, "utf-8")
    index, failed = build.make(study.load(Path("mine.yml")), own_folder / "out")
    assert not failed
    assert "Replies about gender have 1.0 letters" in index.read_text("utf-8")
    assert Path("out/my_words.html").is_file()
    assert not Path("out/cbbq.html").exists()
