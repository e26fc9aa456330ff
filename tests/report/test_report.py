"""Reports: pages that answer, tables next to them, nothing from elsewhere."""

import contextlib
import re
from pathlib import Path

import nbformat
import pandas as pd
import pytest

import bench
from bench.report import build, study, study_runs
from bench.report.site import Page
from bench.run import Run, evaluate
from tests.helpers.answering import said
from tests.helpers.cases import edited
from tests.slow.helpers.browser import axe, visit

PLANTED = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A report on three respondents, one of which plants HTML and knows nothing of NLI-CoAL."""
    folder = tmp_path_factory.mktemp("study")
    given = {"categories": ["gender", "age"], "limit": 2, "data": "samples"}
    rows = evaluate("cbbq", "simulated:", out=folder / "asked", **given).records
    answers = rows[["task", "item_id", "request"]].assign(response=f"A {PLANTED}")
    answers.to_json(folder / "planted.jsonl", orient="records", lines=True)
    with contextlib.chdir(folder):
        return build.make(load("three_models.yml"), "mine")


def load(name, *changes):
    """Write a study beside this file into the working folder, with texts replaced, and read it."""
    Path("mine.yml").write_text(edited(__file__, name, *changes), "utf-8")
    return study.load(Path("mine.yml"))


def page(made, name="index.html"):
    return (made.page.parent / name).read_text("utf-8")


@pytest.mark.slow
def test_the_index_answers_first_and_says_what_failed(made):
    index, folder = page(made), made.page.parent
    pages = {path.stem for path in folder.glob("*.html")}
    benchmarks = {"cbbq", "nli_coal", "answers-cbbq", "answers-nli_coal"}
    assert pages == {"index", "meta_evaluation", *benchmarks}
    assert made.failed == ["planted on nli_coal"]
    for text in (
        "Report &lt;of&gt; tests",
        "has no answer for task",
        # What has no runs to be about is no failure.
        "Self correction: no model was asked under two prompt settings; there is ",
        "Yufei Huang, Deyi Xiong (2024).",
    ):
        assert text in index
    headings = re.findall("<h2[^>]*>(.*?)(?:<a|</h2>)", index)
    assert headings[:3] == ["What was found", "At a glance", "Other pages"]
    found = re.findall(r"<li>([^<]+) <a href='([\w.]+)'>", index)
    assert [link for _, link in found] == ["cbbq.html", "nli_coal.html", "meta_evaluation.html"]
    # The recorded answers are no reference; what its letter would give stands beside its score.
    assert found[0][0].startswith("planted answered 50")
    glance = index.partition("At a glance")[2].partition("</table>")[0]
    assert glance.count("<th scope='row'>") == 3
    assert "<td class='na'><span>failed: " in glance
    assert "simulated:refuse=1, CBBQ: Only 0\u00a0% of its answers could be read" in index
    links = re.findall(r"href='(tables/[^']+)'", index)
    assert links
    top = index.partition("<nav")[2].partition("</nav>")[0]
    assert re.findall(r"<span>(.*?)</span>|href=\"(\w+\.html)\"", top) == [
        ("", "index.html"),
        ("Benchmarks", ""),
        ("", "cbbq.html"),
        ("", "nli_coal.html"),
        ("Analyses", ""),
        ("", "meta_evaluation.html"),
    ]
    assert all((folder / link).is_file() for link in links)


@pytest.mark.slow
def test_every_table_is_next_to_its_page_and_agrees_with_it(made):
    text, tables = page(made, "cbbq.html"), made.page.parent / "tables/cbbq"
    linked = set(re.findall(r"href=[\"']tables/cbbq/([\w.]+)", text))
    # A table without rows is saved and not linked.
    kept = {path.name for path in tables.iterdir() if path.stem not in ("published", "faults")}
    assert linked == kept
    assert {"categories.pdf", "scores.parquet", "known_bias.tex", "scores.svg"} <= linked
    scores = pd.read_csv(tables / "scores.csv")
    s_amb = scores.query("category == 'all' and metric == 's_amb' and preset == 'robust'")
    assert s_amb.set_index("model").score["simulated:bias=1"] == 1
    pd.testing.assert_series_equal(pd.read_parquet(tables / "scores.parquet").score, scores.score)
    # Pictures have words, and what a model says is text.
    assert min(map(len, re.findall(r'<img[^>]*?alt="([^"]*)"', text, re.DOTALL))) > 20
    answers = page(made, "answers-cbbq.html")
    assert PLANTED not in text + answers
    assert "&lt;script&gt;document.title=" in answers
    # A category links to its questions.
    assert "<a href='answers-cbbq.html#gender'>" in text
    assert 'id="gender"' in answers


@pytest.mark.slow
@pytest.mark.parametrize(("width", "dark"), [(360, False), (390, True), (1280, True)])
@pytest.mark.parametrize(
    ("name", "pictures"),
    [("index.html", 0), ("cbbq.html", 4), ("nli_coal.html", 2), ("answers-cbbq.html", 0)],
)
def test_a_page_in_a_browser_shows_all_and_shuts_nobody_out(made, name, pictures, width, dark):
    text = page(made, name)
    assert not re.search(
        r"""(?:(?:src|href|action)\s*=|url\(|@import)\s*["']?(?:https?:)?//""", text
    )
    assert text.count("<script") == 1
    rules = "{runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'best-practice']}"
    script = f"""{axe()};axe.run(document, {rules}).then(found => ({{
        title: document.title,
        pictures: [...document.images].map(image => image.complete && image.naturalWidth > 0),
        wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
        ground: getComputedStyle(document.body).backgroundColor,
        violations: found.violations.map(rule => [rule.id, ...rule.nodes.map(node => node.html)]),
    }}))"""
    shown, console, urls = visit(made.page.parent / name, script, width, dark=dark)
    assert console == []
    assert [url for url in urls if not url.startswith(("file:", "data:", "about:"))] == []
    assert all(shown["pictures"])
    assert len(shown["pictures"]) >= pictures
    assert shown["wide"] <= 0, f"{name} scrolls sideways at {width} pixels"
    assert "taken" not in shown["title"]
    assert (shown["ground"] == "rgb(255, 255, 255)") is not dark
    assert shown["violations"] == []


@pytest.mark.slow
def test_filters_of_answers_count_what_is_shown_and_what_was_asked_and_are_in_the_address(made):
    script = """(() => {
        const { elements } = document.querySelector("form.filters");
        elements.model.value = "planted";
        elements.verdict.value = "stereotyped";
        elements.model.dispatchEvent(new Event("input", { bubbles: true }));
        const shown = document.querySelectorAll("article:not([hidden])").length;
        return [document.querySelector("output").textContent, shown, location.hash];
    })()"""
    place = made.page.parent / "answers-cbbq.html"
    (output, n, address), *_ = visit(place, script, 1280, dark=False)
    assert address == "#model=planted&verdict=stereotyped"
    rows = bench.answers(*map(bench.open, made.page.parent.glob("runs/*/cbbq")))
    own = rows[(rows.model == "planted") & (rows.verdict == "stereotyped")]
    assert 0 < n == own.item_id.nunique() < (total := rows.item_id.nunique())
    assert output == f"{n} of the {total} shown; {n} of {total} asked"


def test_a_second_call_reads_the_records_and_a_changed_study_keeps_the_old_ones(own_folder):
    def ask(limit):
        plan = load("two_models.yml", ("limit: 2", f"limit: {limit}"))
        first, _second = study_runs.cells(plan)
        return study_runs.ask(plan, first, Path("r"), study_runs.budgets(plan)).state

    def times():
        return [path.stat().st_mtime_ns for path in Path("r").glob("runs/*/*/records/*.parquet")]

    assert ask(2) == "done"
    (first,) = times()
    assert [ask(limit) for limit in (2, 3, 2, 3, 2, 4)] == ["done"] * 6
    # Each run is asked once, and found again.
    assert len(times()) == 3
    assert first in times()


def test_the_table_of_first_scores_says_why_a_model_has_none():
    run = evaluate("cbbq", "simulated:bias=1", data="samples", categories=["age"], limit=2)
    rows = bench.explain(bench.score(run)).assign(variant="CBBQ")
    asked = pd.DataFrame(
        [
            {"model": "simulated:bias=1", "variant": "CBBQ", "why": ""},
            {"model": "<b>", "variant": "CBBQ", "why": "failed: no <memory>"},
        ]
    )
    text = bench.show.glance(rows[rows.primary & (rows.category == "all")], asked)
    first, second = re.findall("<th scope='row'>(.*?)</tr>", text, re.DOTALL)
    assert "100\u00a0%" in first
    assert "--share: 100.0%; --baseline: 33.3%" in first
    assert "&lt;b&gt;" in second
    assert "failed: no &lt;memory&gt;" in second


@pytest.mark.parametrize(("failed", "says"), [([], "s"), (["real"], "No real model has a score.")])
def test_a_study_with_a_real_model_is_not_answered_about_references(own_folder, failed, says):
    plan = load("two_models.yml", ("simulated:bias=0", "acme/real"))
    cells = [
        cell._replace(state=study_runs.FAILED if cell.model.label in failed else study_runs.DONE)
        for cell in study_runs.cells(plan)
    ]
    pages = [Page("nli_coal", "NLI-CoAL", findings=["s"]), Page("explore", "E", findings=["s"])]
    listed = build.index_job(plan, cells, pages).parameters["pages"]
    assert [page["sentence"] for page in listed] == [says, says]


@pytest.mark.slow
def test_a_report_asks_nobody_beyond_its_study(serve, own_folder):
    server = serve(lambda body: said("A"))
    plan = load("endpoint.yml", ("MODEL", server.model))
    made = build.make(plan, "out")
    (record,) = Path("out/runs").glob("*/*/run.json")
    assert len(server.seen) == len(Run.open(record.parent).records)
    server.shutdown()
    server.server_close()
    # With the server gone, every page can be made again from the records.
    for path in Path("out").glob("*.html"):
        path.unlink()
    assert made.failed == build.make(plan, "out").failed == []
    pages = {path.stem for path in Path("out").glob("*.html")}
    assert pages == {"answers-cbbq", "cbbq", "explore", "index"}


@pytest.mark.slow
def test_all_endpoints_of_a_report_share_its_budget(serve, own_folder):
    server = serve(lambda body: said("A"))
    models = [server.model, server.model.replace("openai:", "openai:other-")]
    changes = ('["MODEL"]', str(models)), ("limit: 1", "limit: 20"), ("[age]", "[age, race]")
    made = build.make(load("endpoint.yml", *changes), "out")
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
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), "my_words.ipynb")
    made = build.make(load("own_page.yml"), "out")
    assert not made.failed
    assert "Replies about gender have 1.0 letters" in page(made)
    assert {path.stem for path in Path("out").glob("*.html")} == {"index", "my_words"}
