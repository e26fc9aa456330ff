"""Reports: pages that answer, tables next to them, nothing from elsewhere, failures that stay local."""

import contextlib
import html
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import yaml

import bench
from bench.benchmarks import names
from bench.core import i18n
from bench.report import build, downloads, matrix, site, study, study_runs
from bench.report.study_runs import Cell, run_folder
from bench.run import Run, evaluate
from tests.helpers.answering import said
from tests.slow.helpers.browser import axe, visit

PLANTED = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"
STUDY = """
title: Report <of> tests
question: Is every page complete?
models: ["simulated:bias=1", "simulated:refuse=1", "{replay}"]
benchmarks:
  cbbq: {{categories: [gender, age], limit: 2}}
  nli_coal: {{categories: [zh], limit: 4}}
analyses:
  meta_evaluation: {{languages: [zh], rates: [0, 0.5, 1], seeds: [0]}}
  self_correction: {{}}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A report on three respondents, one of which plants HTML and knows nothing of NLI-CoAL."""
    folder = tmp_path_factory.mktemp("study")
    given = {"categories": ["gender", "age"], "limit": 2, "data": "samples"}
    rows = evaluate("cbbq", "simulated:", out=folder / "asked", **given).records
    answers = rows[["task", "item_id", "request"]].assign(response=f"A {PLANTED}")
    answers.to_json(folder / "planted.jsonl", orient="records", lines=True)
    (folder / "mine.yml").write_text(STUDY.format(replay="replay:planted.jsonl"), "utf-8")
    with contextlib.chdir(folder):
        return build.make("mine.yml", "mine")


@pytest.fixture
def index(made):
    return page(made, "index.html")


def page(made, name):
    # Without the places where long names may be broken.
    return (made.page.parent / name).read_text("utf-8").replace("<wbr>", "")


def score(made, model):
    scores = pd.read_csv(made.page.parent / "tables/cbbq/scores.csv")
    where = f"model == '{model}' and category == 'all' and metric == 's_amb' and preset == 'robust'"
    return scores.query(where).iloc[0]


@pytest.mark.slow
def test_the_index_has_a_page_per_notebook_and_says_what_failed(made, index):
    pages = {path.name for path in made.page.parent.glob("*.html")}
    assert pages == {"index.html", "cbbq.html", "nli_coal.html", "meta_evaluation.html"}
    assert made.failed == ["planted on nli_coal"]
    for text in ('href="cbbq.html"', "Report &lt;of&gt; tests", "failed:", "planted answered"):
        assert text in index
    assert "has no answer for task" in index
    # What has no runs to be about is no failure.
    assert "<li>self correction: <span" in index
    assert "not applicable: no model was asked under Q and another prompt setting" in index
    rows = {
        model: re.search(rf'<th scope="row">{model}</th>.*?</tr>', index, re.DOTALL)[0]
        for model in ("simulated:bias=1", "simulated:refuse=1")
    }
    assert "100\u00a0%" in rows["simulated:bias=1"]
    assert "—" in rows["simulated:refuse=1"]
    assert "no answer could be read" in rows["simulated:refuse=1"]


@pytest.mark.slow
def test_the_index_answers_first(made, index):
    marks = ("glance", "findings", "cbbq", "provenance", "cite")
    places = [index.index(f'id="{mark}"') for mark in marks]
    assert places == sorted(places)
    findings = re.findall(r"<li>(.*?) <a href=\"([\w.]+)#What-was-found\">", index)
    assert 3 <= len(findings) <= 5
    # One of each benchmark before the second of any.
    assert [link for _, link in findings][:2] == ["cbbq.html", "nli_coal.html"]
    glance = index.partition('id="glance"')[2].partition("</table>")[0]
    assert glance.count('<th scope="row">') == 3
    assert "Only 0% of its answers could be read" in glance
    assert '<td class="na"><span>failed: ' in glance
    assert "higher: more bias" in glance
    rows = index.partition('class="provenance"')[2].partition("</details>")[0]
    assert rows.count("run.json") == 2 * 5
    for link in re.findall(r'href="([^"]+/run.json)"', rows):
        assert (made.page.parent / link).is_file()
    assert "wording: bench-cbbq-3" in rows


@pytest.mark.slow
@pytest.mark.parametrize("name", ["index.html", "cbbq.html", "nli_coal.html"])
def test_no_page_asks_for_anything_from_elsewhere(made, name):
    text = page(made, name)
    links = r"""(?:src|href|action)\s*=\s*["']([^"']+)["']|url\(([^)]+)\)|@import"""
    found = [link for pair in re.findall(links, text) for link in pair if link]
    assert found
    assert [link for link in found if re.match(r"(https?:)?//", link)] == []
    assert "<script" not in text


@pytest.mark.slow
def test_every_table_is_next_to_its_page_and_agrees_with_it(made):
    folder, text = made.page.parent, page(made, "cbbq.html")
    linked = set(re.findall(r'href="(tables/cbbq/[\w.]+)"', text))
    scores = {f"scores.{kind}" for kind in ("csv", "parquet", "tex", "png")}
    expected = {"by_category.csv", "provenance.csv", *scores}
    assert {f"tables/cbbq/{name}" for name in expected} <= linked
    for link in linked:
        assert (folder / link).is_file()
    kept = {path.name for path in (folder / "tables/cbbq").iterdir()}
    for name in kept:
        stem, _, kind = name.rpartition(".")
        kinds = ("csv", "parquet", "tex") if kind in ("csv", "parquet", "tex") else ("png", "svg")
        assert {f"{stem}.{other}" for other in kinds} <= kept
    assert score(made, "simulated:bias=1").score == 1
    same = pd.read_parquet(folder / "tables/cbbq/scores.parquet").score
    pd.testing.assert_series_equal(pd.read_csv(folder / "tables/cbbq/scores.csv").score, same)
    tex = (folder / "tables/cbbq/metric_cards.tex").read_text("utf-8")
    assert "\\toprule" in tex
    assert "s\\_amb" in tex
    title = (folder / "tables/cbbq/scores.svg").read_text("utf-8").partition("</title>")[0]
    assert "answered 100" in title
    # Code is folded, pictures have words, and what a model says is text.
    assert text.count('<details class="code">') >= 5
    alternatives = re.findall(r'<img[^>]*?alt="([^"]*)"', text, re.DOTALL)
    assert len(alternatives) >= 4
    assert all(len(words) > 20 for words in alternatives)
    assert PLANTED not in text
    assert "&lt;script&gt;document.title=" in text


@pytest.mark.slow
@pytest.mark.parametrize(("width", "dark"), [(360, False), (390, True), (1280, True)])
def test_the_pages_in_a_browser(made, width, dark):
    script = """({
        title: document.title,
        pictures: [...document.images].filter(image => image.complete && image.naturalWidth > 0).length,
        broken: [...document.images].filter(image => image.complete && image.naturalWidth === 0).length,
        tables: document.querySelectorAll('table').length,
        wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
        text: document.body.innerText.length,
        ground: getComputedStyle(document.body).backgroundColor,
    })"""
    for name, pictures in (("index.html", 0), ("cbbq.html", 4), ("nli_coal.html", 2)):
        seen = visit(made.page.parent / name, script, width, dark=dark)
        assert seen.console == []
        own = ("file:", "data:", "about:")
        assert [url for url in seen.requests if not url.startswith(own)] == []
        assert seen.value["pictures"] >= pictures
        assert seen.value["broken"] == 0
        assert seen.value["tables"] >= 2
        assert seen.value["wide"] <= 0, f"{name} scrolls sideways at {width} pixels"
        assert seen.value["text"] > 500
        assert "taken" not in seen.value["title"]
        assert (seen.value["ground"] == "rgb(255, 255, 255)") is not dark


@pytest.mark.slow
@pytest.mark.parametrize("name", ["index.html", "cbbq.html", "meta_evaluation.html"])
def test_the_pages_are_accessible(made, name):
    rules = "{runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'best-practice']}"
    violations = "found => found.violations.map(rule => [rule.id, ...rule.nodes.map(node => node.html.slice(0, 200))])"
    script = f"{axe()};axe.run(document, {rules}).then({violations})"
    for width, dark in ((390, True), (1280, False)):
        assert visit(made.page.parent / name, script, width, dark=dark).value == []


@pytest.mark.slow
def test_the_keyboard_skips_the_navigation_and_reaches_the_pages(made):
    script = "({text: document.activeElement.innerText, at: location.hash})"
    assert visit(made.page, script, keys=["Tab"]).value["text"] == "Skip to the content"
    assert visit(made.page, script, keys=["Tab", "Enter"]).value["at"] == "#main"
    assert visit(made.page, script, keys=["Tab"] * 3).value["text"] == "CBBQ"


@pytest.mark.slow
def test_papers_and_a_model_card_are_there(made, index):
    from huggingface_hub.repocard_data import model_index_to_eval_results

    bib = (made.page.parent / "references.bib").read_text("utf-8")
    assert bib.count("@inproceedings{") == 2
    assert "@inproceedings{huang2024cbbq," in bib
    assert "author = {Panatchakorn Anantaprayoon and Masahiro Kaneko and Naoaki Okazaki}" in bib
    assert "Yufei Huang, Deyi Xiong (2024)." in index
    (path,) = (made.page.parent / "model-index").iterdir()
    card = yaml.safe_load(path.read_text("utf-8"))
    name, results = model_index_to_eval_results(card["model-index"])
    assert name.endswith("planted.jsonl")
    assert {result.dataset_name for result in results} == {"CBBQ samples"}
    (biased,) = [result for result in results if result.metric_type == "ambiguous_s_amb"]
    row = score(made, "planted")
    assert biased.metric_value == pytest.approx(row.score, abs=1e-6)
    assert biased.metric_args["n"] == row.n
    assert f'href="model-index/{path.name}"' in index


@pytest.mark.slow
def test_the_same_report_in_chinese(made, tmp_path):
    folder = shutil.copytree(made.page.parent, tmp_path / "copy")
    plan = study.load(made.page.parent.parent / "mine.yml")
    cells = [cell._replace(state="done") for cell in study_runs.cells(plan)]
    cells[-1] = cells[-1]._replace(state="not applicable", why="the model has generate")
    runs = {cell.place: Run.open(run_folder(folder, cell)) for cell in cells[:-1]}
    with i18n.use_language("zh"):
        titles = {variant.key: variant.title for variant in plan.variants}
        titles["meta_evaluation"] = i18n.notebook("meta_evaluation")
        pages = [
            site.page(name, title, folder / "notebooks" / f"{name}.ipynb")
            for name, title in titles.items()
        ]
        left_out = {"self_correction": "no model was asked twice"}
        index = site.Site(plan, folder).write(cells, pages, runs, left_out).read_text("utf-8")
    index = index.replace("<wbr>", "")
    headings = ("一览", "主要发现", "数字的依据", "下载", "如何引用")
    for text in (
        '<html lang="zh-CN">',
        *(f">{heading}</h2>" for heading in headings),
        "不适用：该模型只能 generate",
        ">元评估</a>",
        '<li>自我纠正: <span class="faint">不适用：',
    ):
        assert text in index
    # The notebook's own words are said to be English.
    text = (folder / "cbbq.html").read_text("utf-8")
    assert '<div class="notebook" lang="en">' in text
    assert ">目录</summary>" in text
    assert '<h2 id="What-was-found" lang="zh-CN">主要发现</h2>' in text


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
    def ask(plan):
        return study_runs.ask(plan, plan.models[0], plan.variants[0], Path("r")).state

    assert ask(small) == "done"
    shard = Path("r/runs/simulated_bias=1/nli_coal/records/000000.parquet")
    before = shard.stat().st_mtime_ns
    assert ask(small) == "done"
    assert shard.stat().st_mtime_ns == before
    Path("mine.yml").write_text(SMALL.replace("limit: 2", "limit: 3"))
    assert ask(study.load(Path("mine.yml"))) == "done"
    assert len(list(shard.parents[2].iterdir())) == 2


def test_the_index_says_what_is_still_to_come_and_links_no_page_that_is_not_there(small):
    cells, runs, folder = study_runs.cells(small), {}, Path("r").resolve()
    report = site.Site(small, folder)

    def index(k, waiting):
        cells[k] = study_runs.ask(small, small.models[k], small.variants[0], folder)
        runs[cells[k].place] = Run.open(run_folder(folder, cells[k]))
        text = report.write(cells, [], runs, {}, waiting).read_text("utf-8").replace("<wbr>", "")
        for link in re.findall(r'href="([^"#]+)"', text):
            assert link.startswith("data:") or (folder / link).exists()
        return text

    early = index(0, ["NLI-CoAL"])
    rows = re.findall(r'<th scope="row">(.*?)</th>(.*?)</tr>', early, re.DOTALL)
    assert "still being asked" not in rows[0][1]
    assert rows[1][0] == "simulated:bias=0"
    assert "still being asked" in rows[1][1]
    assert 'role="status"' in early
    (picture,) = re.findall(r'<img src="data:image/png[^>]*alt="([^"]+)"', early, re.DOTALL)
    assert "simulated:bias=1" in picture
    complete = index(1, [])
    assert "still being asked" not in complete
    assert 'role="status"' not in complete


def _die(sending, *arguments):
    os._exit(9)


def test_a_worker_that_is_killed_fails_its_own_model_alone(small, monkeypatch):
    settled = []
    with monkeypatch.context() as patch:
        patch.setattr(study_runs, "_work", _die)
        study_runs._ask_beside(small, small.models[0], Path("r"), 1, settled.append)
    study_runs._ask_beside(small, small.models[1], Path("r"), 1, settled.append)
    assert [cell.state for cell in settled] == ["failed", "done"]
    assert "ended early" in settled[0].why


def test_where_no_process_can_be_started_each_cell_says_so(small, monkeypatch):
    def without_server(*arguments):
        raise EOFError("unexpected EOF")

    monkeypatch.setattr(study_runs.processes, "start", without_server)
    settled = []
    with study_runs.asking(small, Path("r"), 1, settled.append):
        pass
    assert [cell.state for cell in settled] == [study_runs.FAILED] * 2
    assert "unexpected EOF" in settled[0].why


def test_a_package_of_the_same_name_in_the_working_folder_is_not_imported(tmp_path):
    (tmp_path / "pandas.py").write_text("raise SystemExit('the wrong package')")
    script = tmp_path / "bin/script.py"
    script.parent.mkdir()
    script.write_text(
        "import os\n"
        "from bench.run import processes\n"
        "if __name__ == '__main__':\n"
        "    processes.start_server(['pandas'])\n"
        "    process = processes.start('one', os.getpid)\n"
        "    process.join()\n"
        "    print(process.exitcode)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(bench.__file__).parents[1])}
    command = [sys.executable, script]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.stdout == "0\n", done.stderr


def test_long_names_break_after_a_sign_and_nowhere_else():
    name = "simulated:bias=0.5,position=0.5"
    broken = name.replace(":", ":<wbr>").replace(",", ",<wbr>")
    for text, expected in [
        (html.escape(f"{name} <b>"), f"{broken} &lt;b&gt;"),
        ("Qwen/Qwen2.5-0.5B-Instruct, 12:30", "Qwen/<wbr>Qwen2.5-0.5B-Instruct, 12:30"),
        ("x" * 50, "<wbr>".join(["x" * 24, "x" * 24, "xx"])),
        (
            f"<td class='a:{name}'>{name}</td><pre>{name} <b>{name}</b></pre>",
            f"<td class='a:{name}'>{broken}</td><pre>{name} <b>{name}</b></pre>",
        ),
    ]:
        assert site.with_breaks(text) == expected


def test_every_benchmark_can_be_cited():
    text = downloads.bibtex(names())
    assert text.count("@inproceedings{") == len(names())
    assert text.count("{") == text.count("}")


def test_two_models_of_one_short_name_keep_their_own_rows(own_folder):
    variant, cells, runs = study.Variant("nli_coal"), [], {}
    for folder, label in (("one", "neutral"), ("two", "entailment")):
        Path(folder).mkdir()
        answer = {"task": "ps", "request": "label", "response": label}
        lines = [json.dumps({**answer, "item_id": f"zh:{k}"}) for k in range(240)]
        Path(folder, "answers.jsonl").write_text("\n".join(lines), "utf-8")
        model = study.StudyModel(f"replay:{folder}/answers.jsonl", folder=folder)
        cells.append(Cell(model, variant, "done"))
        given = {"tasks": ["ps"], "categories": ["zh"], "out": f"run-{folder}"}
        runs[cells[-1].place] = evaluate("nli_coal", model.model, **given)
    models = [cell.model for cell in cells]
    (shown,) = matrix.benchmarks([variant], cells, runs)
    for rows in (shown["rows"], matrix.overview(models, [shown])):
        assert [row["model"] for row in rows] == [model.model for model in models]


ASKED = """
title: An endpoint in two variants
models: ["{model}"]
benchmarks:
  cbbq:
    - {{name: Q, categories: [gender], limit: 1, data: samples}}
    - {{name: Q+IF, categories: [gender], limit: 1, data: samples, settings: {{prompting: Q+IF}}, page: false}}
analyses: {{self_correction: , explore: }}
options: {{limits: {{budget_requests: 40}}}}
"""


@pytest.mark.slow
def test_a_report_asks_nobody_beyond_its_study(serve, own_folder):
    server = serve(lambda body: said("A"))
    Path("mine.yml").write_text(ASKED.format(model=server.model), "utf-8")
    made = build.make("mine.yml", "out")
    assert made.failed == []
    runs = [Run.open(path.parent) for path in Path("out/runs").glob("*/*/run.json")]
    assert len(runs) == 2
    assert len(server.seen) == sum(len(run.records) for run in runs)
    server.shutdown()
    server.server_close()
    # With the server gone, every page can be made again from the records.
    pages = sorted(path.name for path in made.page.parent.glob("*.html"))
    assert pages == ["cbbq-Q.html", "explore.html", "index.html", "self_correction.html"]
    for name in pages:
        (made.page.parent / name).unlink()
    assert build.make("mine.yml", "out").failed == []
    assert sorted(path.name for path in made.page.parent.glob("*.html")) == pages
