"""Reports: pages that answer, tables beside them, nothing that leaves the page, and failures that stay where they are."""

import contextlib
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
from bench.core import i18n
from bench.report import breaks, build, downloads, matrix, study, study_runs
from bench.report import site as pages
from bench.report.study_runs import Cell, run_folder
from bench.run import Run, evaluate
from bench.tasks.prompts import load as load_wording
from tests.helpers.answering import said
from tests.slow.helpers.browser import axe, visit

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
  self_correction: {{}}
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
        return build.make("mine.yml", "mine")


def page(made, name):
    # Without the places where long names may be broken.
    return (made.page.parent / name).read_text("utf-8").replace("<wbr>", "")


@pytest.mark.slow
def test_the_report_has_an_index_and_a_page_a_notebook(made):
    folder = made.page.parent
    assert made.page.name == "index.html"
    pages = {path.name for path in folder.glob("*.html")}
    assert pages == {"index.html", "cbbq.html", "nli_coal.html", "meta_evaluation.html"}
    assert 'href="cbbq.html"' in page(made, "index.html")
    assert "Report &lt;of&gt; tests" in page(made, "index.html")


@pytest.mark.slow
def test_one_that_fails_does_not_stop_the_rest(made):
    assert made.failed == ["planted on nli_coal"]
    index = page(made, "index.html")
    assert "failed:" in index
    assert "has no answer for task" in index
    # What has no runs to be about is no failure.
    assert "<li>self correction: <span" in index
    assert "not applicable: no model was asked under Q and another prompt setting" in index
    assert "planted answered" in index
    row = re.search(r'<th scope="row">simulated:bias=1</th>.*?</tr>', index, re.DOTALL)[0]
    assert "100\u00a0%" in row


@pytest.mark.slow
def test_an_undefined_score_is_a_dash_with_its_reason(made):
    index = page(made, "index.html")
    row = re.search(r'<th scope="row">simulated:refuse=1</th>.*?</tr>', index, re.DOTALL)[0]
    assert "—" in row
    assert "no answer could be read" in row


@pytest.mark.slow
@pytest.mark.parametrize("name", ["index.html", "cbbq.html", "nli_coal.html"])
def test_no_page_asks_for_anything_from_elsewhere(made, name):
    text = page(made, name)
    found = re.findall(
        r"""(?:src|href|action)\s*=\s*["']([^"']+)["']|url\(([^)]+)\)|@import""", text
    )
    links = [link for pair in found for link in pair if link]
    assert links
    assert [link for link in links if re.match(r"(https?:)?//", link)] == []
    assert "<script" not in text


@pytest.mark.slow
def test_every_table_lies_beside_the_page_and_agrees_with_it(made):
    folder = made.page.parent
    linked = set(re.findall(r'href="(tables/cbbq/[\w.]+)"', page(made, "cbbq.html")))
    assert {
        "tables/cbbq/by_category.csv",
        "tables/cbbq/provenance.csv",
        "tables/cbbq/scores.csv",
    } <= linked
    assert {
        "tables/cbbq/scores.parquet",
        "tables/cbbq/scores.tex",
        "tables/cbbq/scores.png",
    } <= linked
    for link in linked:
        assert (folder / link).is_file()
    kept = {path.name for path in (folder / "tables/cbbq").iterdir()}
    for name in kept:
        stem, _, kind = name.rpartition(".")
        beside = ("csv", "parquet", "tex") if kind in ("csv", "parquet", "tex") else ("png", "svg")
        assert {f"{stem}.{other}" for other in beside} <= kept
    scores = pd.read_csv(folder / "tables/cbbq/scores.csv")
    biased = scores.query(
        "model == 'simulated:bias=1' and category == 'all' and metric == 's_amb' and preset == 'robust'"
    )
    assert biased.score.item() == 1
    same = pd.read_parquet(folder / "tables/cbbq/scores.parquet")
    pd.testing.assert_series_equal(scores.score, same.score)
    tex = (folder / "tables/cbbq/metric_cards.tex").read_text("utf-8")
    assert "\\toprule" in tex
    assert "s\\_amb" in tex
    # A picture's words go with its file.
    assert (
        "answered 100"
        in (folder / "tables/cbbq/scores.svg").read_text("utf-8").partition("</title>")[0]
    )


@pytest.mark.slow
def test_code_is_folded_and_pictures_have_words(made):
    text = page(made, "cbbq.html")
    assert text.count('<details class="code">') >= 5
    alternatives = re.findall(r'<img[^>]*?alt="([^"]*)"', text, re.DOTALL)
    assert len(alternatives) >= 4
    assert all(len(i18n) > 20 for i18n in alternatives)


@pytest.mark.slow
def test_what_a_model_says_is_shown_as_text(made):
    text = page(made, "cbbq.html")
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
        assert [
            url for url in seen.requests if not url.startswith(("file:", "data:", "about:"))
        ] == []
        assert seen.value["pictures"] >= pictures
        assert seen.value["broken"] == 0
        assert seen.value["tables"] >= 2
        assert seen.value["wide"] <= 0, f"{name} scrolls sideways at {width} pixels"
        assert seen.value["text"] > 500
        assert "taken" not in seen.value["title"]
        assert (seen.value["ground"] == "rgb(255, 255, 255)") is not dark


@pytest.mark.slow
@pytest.mark.parametrize("name", ["index.html", "cbbq.html", "meta_evaluation.html"])
def test_nobody_is_shut_out(made, name):
    rules = "{runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'best-practice']}"
    told = "found => found.violations.map(one => [one.id, ...one.nodes.map(node => node.html.slice(0, 200))])"
    for width, dark in ((390, True), (1280, False)):
        seen = visit(
            made.page.parent / name,
            f"{axe()};axe.run(document, {rules}).then({told})",
            width,
            dark=dark,
        )
        assert seen.value == []


@pytest.mark.slow
def test_the_keyboard_skips_the_navigation_and_reaches_the_pages(made):
    script = "({tag: document.activeElement.tagName, text: document.activeElement.innerText, at: location.hash})"
    first = visit(made.page, script, keys=["Tab"]).value
    assert first["text"] == "Skip to the content"
    assert visit(made.page, script, keys=["Tab", "Enter"]).value["at"] == "#main"
    assert visit(made.page, script, keys=["Tab"] * 3).value["text"] == "CBBQ"


@pytest.mark.slow
def test_the_index_answers_first(made):
    index = page(made, "index.html")
    places = [
        index.index(f'id="{mark}"') for mark in ("glance", "findings", "cbbq", "provenance", "cite")
    ]
    assert places == sorted(places)
    found = re.findall(r"<li>(.*?) <a href=\"([\w.]+)#What-was-found\">", index)
    assert 3 <= len(found) <= 5
    # One of each benchmark before the second of any.
    assert [link for _, link in found][:2] == ["cbbq.html", "nli_coal.html"]
    glance = index.partition('id="glance"')[2].partition("</table>")[0]
    assert glance.count('<th scope="row">') == 3
    assert "Only 0% of its answers could be read" in glance
    assert '<td class="na"><span>failed: ' in glance
    assert "higher: more bias" in glance


@pytest.mark.slow
def test_every_run_is_told_with_what_it_rests_on(made):
    index = page(made, "index.html")
    rows = index.partition('class="provenance"')[2].partition("</details>")[0]
    assert rows.count("run.json") == 2 * 5
    for link in re.findall(r'href="([^"]+/run.json)"', rows):
        assert (made.page.parent / link).is_file()
    assert "wording: bench-cbbq-3" in rows


@pytest.mark.slow
def test_the_papers_are_cited_as_they_were_published(made):
    bib = (made.page.parent / "references.bib").read_text("utf-8")
    assert bib.count("@inproceedings{") == 2
    assert "@inproceedings{huang2024cbbq," in bib
    assert "author = {Panatchakorn Anantaprayoon and Masahiro Kaneko and Naoaki Okazaki}" in bib
    assert "Yufei Huang, Deyi Xiong (2024)." in page(made, "index.html")


@pytest.mark.slow
def test_scores_are_there_for_a_model_card(made):
    from huggingface_hub.repocard_data import model_index_to_eval_results

    (path,) = (made.page.parent / "model-index").iterdir()
    found = yaml.safe_load(path.read_text("utf-8"))
    name, results = model_index_to_eval_results(found["model-index"])
    assert name.endswith("planted.jsonl")
    assert {one.dataset_name for one in results} == {"CBBQ samples"}
    (biased,) = [one for one in results if one.metric_type == "ambiguous_s_amb"]
    scores = pd.read_csv(made.page.parent / "tables/cbbq/scores.csv")
    row = scores.query(
        "model == 'planted' and category == 'all' and metric == 's_amb' and preset == 'robust'"
    )
    assert biased.metric_value == pytest.approx(row.score.item(), abs=1e-6)
    assert biased.metric_args["n"] == row.n.item()
    assert f'href="model-index/{path.name}"' in page(made, "index.html")


@pytest.mark.slow
def test_the_same_report_in_chinese(made, tmp_path):
    folder = shutil.copytree(made.page.parent, tmp_path / "copy")
    plan = study.load(made.page.parent.parent / "mine.yml")
    cells = [
        Cell(model, variant, "done")
        for model in plan.models
        for variant in plan.variants
        if (run_folder(folder, Cell(model, variant, "")) / "run.json").is_file()
        and not (model.model.startswith("replay:") and variant.key == "nli_coal")
    ]
    cells.append(Cell(plan.models[2], plan.variants[1], "not applicable", "the model has generate"))
    runs = {
        cell.place: Run.open(run_folder(folder, cell)) for cell in cells if cell.state == "done"
    }
    with i18n.use_language("zh"):
        made_pages = [
            pages.page(name, title, folder / "notebooks" / f"{name}.ipynb")
            for name, title in {
                **{variant.key: variant.title for variant in plan.variants},
                "meta_evaluation": i18n.notebook("meta_evaluation"),
            }.items()
        ]
        left_out = {"self_correction": "no model was asked twice"}
        index = pages.Site(plan, folder).write(cells, made_pages, runs, left_out).read_text("utf-8")
    index = index.replace("<wbr>", "")
    assert '<html lang="zh-CN">' in index
    for heading in ("一览", "主要发现", "数字的依据", "下载", "如何引用"):
        assert f">{heading}</h2>" in index
    assert "不适用：该模型只能 generate" in index
    assert (
        "simulated:bias=1 对 100% 的歧义问题作出了符合刻板印象的回答" in index or "planted" in index
    )
    assert ">元评估</a>" in index
    assert '<li>自我纠正: <span class="faint">不适用：' in index
    # The notebook's own words are said to be English.
    text = (folder / "cbbq.html").read_text("utf-8")
    assert '<div class="notebook" lang="en">' in text
    assert ">目录</summary>" in text
    assert '<h2 id="What-was-found" lang="zh-CN">主要发现</h2>' in text


def test_a_second_call_reads_the_records_and_a_changed_study_keeps_the_old_ones(
    tmp_path, monkeypatch
):
    path = tmp_path / "mine.yml"
    text = 'title: T\nmodels: ["simulated:bias=1"]\nbenchmarks: {nli_coal: {categories: [zh], limit: 2}}\n'
    path.write_text(text)
    plan = study.load(path)
    assert study_runs.ask(plan, plan.models[0], plan.variants[0], tmp_path / "r").state == "done"
    run = tmp_path / "r" / "runs" / "simulated_bias=1" / "nli_coal"
    before = (run / "records" / "000000.parquet").stat().st_mtime_ns
    study_runs.ask(plan, plan.models[0], plan.variants[0], tmp_path / "r")
    assert (run / "records" / "000000.parquet").stat().st_mtime_ns == before
    path.write_text(text.replace("limit: 2", "limit: 3"))
    changed = study.load(path)
    assert (
        study_runs.ask(changed, changed.models[0], changed.variants[0], tmp_path / "r").state
        == "done"
    )
    assert len(list(run.parent.iterdir())) == 2


def test_the_index_says_what_is_still_to_come_and_links_no_page_that_is_not_there(tmp_path):
    path, folder = tmp_path / "mine.yml", tmp_path / "r"
    models = '["simulated:bias=1", "simulated:bias=0"]'
    path.write_text(
        f"title: T\nmodels: {models}\nbenchmarks: {{nli_coal: {{categories: [zh], limit: 2}}}}\n"
    )
    plan = study.load(path)
    cells = study_runs.cells(plan)
    cells[0] = study_runs.ask(plan, plan.models[0], plan.variants[0], folder)
    runs = {cells[0].place: Run.open(run_folder(folder, cells[0]))}
    site = pages.Site(plan, folder)
    early = site.write(cells, [], runs, {}, ["NLI-CoAL"]).read_text("utf-8").replace("<wbr>", "")
    rows = re.findall(r'<th scope="row">(.*?)</th>(.*?)</tr>', early, re.DOTALL)
    assert "still being asked" not in rows[0][1]
    assert rows[1][0] == "simulated:bias=0"
    assert "still being asked" in rows[1][1]
    assert 'role="status"' in early
    for link in re.findall(r'href="([^"#]+)"', early):
        assert link.startswith("data:") or (folder / link).exists()
    (picture,) = re.findall(r'<img src="data:image/png[^>]*alt="([^"]+)"', early, re.DOTALL)
    assert "simulated:bias=1" in picture
    cells[1] = study_runs.ask(plan, plan.models[1], plan.variants[0], folder)
    runs[cells[1].place] = Run.open(run_folder(folder, cells[1]))
    whole = site.write(cells, [], runs, {}).read_text("utf-8")
    assert "still being asked" not in whole
    assert 'role="status"' not in whole
    for link in re.findall(r'href="([^"#]+)"', whole):
        assert link.startswith("data:") or (folder / link).exists()


def _die(sending, *arguments):
    os._exit(9)


def test_a_worker_that_is_killed_fails_its_own_model_alone(tmp_path, monkeypatch):
    path = tmp_path / "mine.yml"
    models = '["simulated:bias=1", "simulated:bias=0"]'
    path.write_text(
        f"title: T\nmodels: {models}\nbenchmarks: {{nli_coal: {{categories: [zh], limit: 2}}}}\n"
    )
    plan = study.load(path)
    settled = []
    with monkeypatch.context() as patch:
        patch.setattr(study_runs, "_work", _die)
        study_runs._ask_beside(plan, plan.models[0], tmp_path, 1, settled.append)
    study_runs._ask_beside(plan, plan.models[1], tmp_path, 1, settled.append)
    assert [cell.state for cell in settled] == ["failed", "done"]
    assert "ended early" in settled[0].why


def test_where_no_process_can_be_started_each_cell_says_so(tmp_path, monkeypatch):
    study_file = tmp_path / "study.yml"
    study_file.write_text(
        "title: T\nmodels: ['simulated:']\nbenchmarks: {cbbq: {data: samples, limit: 1}}\n"
    )

    def without_server(*arguments):
        raise EOFError("unexpected EOF")

    monkeypatch.setattr(study_runs.processes, "start", without_server)
    settled = []
    with study_runs.asking(study.load(study_file), tmp_path, 1, settled.append):
        pass
    assert [cell.state for cell in settled] == [study_runs.FAILED]
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


def test_long_names_break_behind_a_sign_and_nowhere_else():
    name = "simulated:bias=0.5,position=0.5"
    assert breaks.in_text(f"{name} <b>") == "simulated:<wbr>bias=0.5,<wbr>position=0.5 &lt;b&gt;"
    assert (
        breaks.in_text("Qwen/Qwen2.5-0.5B-Instruct, 12:30")
        == "Qwen/<wbr>Qwen2.5-0.5B-Instruct, 12:30"
    )
    assert breaks.in_text("x" * 50).count("<wbr>") == 2
    page = f"<td class='a:{name}'>{name}</td><pre>{name} <b>{name}</b></pre>"
    broken = name.replace(":", ":<wbr>").replace(",", ",<wbr>")
    assert breaks.in_html(page) == page.replace(f"'>{name}<", f"'>{broken}<")


def test_every_benchmark_can_be_cited():
    from bench.benchmarks import names

    text = downloads.bibtex(names())
    assert text.count("@inproceedings{") == len(names())
    assert text.count("{") == text.count("}")


def test_two_models_of_one_short_name_keep_their_own_rows(tmp_path):
    paths = [tmp_path / name / "answers.jsonl" for name in ("one", "two")]
    for path, label in zip(paths, ("neutral", "entailment"), strict=True):
        path.parent.mkdir()
        rows = [
            {"task": "ps", "item_id": f"zh:{k}", "request": "label", "response": label}
            for k in range(240)
        ]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    models = [f"replay:{path}" for path in paths]
    runs = [
        evaluate("nli_coal", model, tasks=["ps"], categories=["zh"], out=tmp_path / str(k))
        for k, model in enumerate(models)
    ]
    variant, of_study = (
        study.Variant("nli_coal"),
        [study.StudyModel(model, folder=str(k)) for k, model in enumerate(models)],
    )
    cells = [Cell(model, variant, "done") for model in of_study]
    by_place = {cell.place: run for cell, run in zip(cells, runs, strict=True)}
    (shown,) = matrix.benchmarks([variant], cells, by_place)
    assert [row["model"] for row in shown["rows"]] == models
    assert [row["model"] for row in matrix.overview(of_study, [shown])] == models


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
    (own_folder / "mine.yml").write_text(ASKED.format(model=server.model), "utf-8")
    made = build.make("mine.yml", "out")
    assert made.failed == []
    runs = [Run.open(path.parent) for path in (own_folder / "out/runs").glob("*/*/run.json")]
    assert len(runs) == 2
    assert len(server.seen) == sum(len(run.records) for run in runs)
    server.shutdown()
    server.server_close()
    # With the server gone, every page can be made again from the records.
    pages_made = sorted(path.name for path in made.page.parent.glob("*.html"))
    assert pages_made == ["cbbq-Q.html", "explore.html", "index.html", "self_correction.html"]
    for name in pages_made:
        (made.page.parent / name).unlink()
    assert build.make("mine.yml", "out").failed == []
    assert sorted(path.name for path in made.page.parent.glob("*.html")) == pages_made
