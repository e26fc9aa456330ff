"""What a notebook shows: tables, pictures and examples with the judge's grades, all as text."""

import base64
import io
import re
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image

import bench
from bench import run, show
from bench.show.layout import lay_out
from tests.helpers.recorded import replay, table

PLANTED = "<img src=x onerror=alert(1)>"


@pytest.fixture
def shown(monkeypatch):
    """The HTML of all that is displayed."""
    pieces = []
    monkeypatch.setattr(
        show, "display", lambda piece, **_: pieces.append(getattr(piece, "data", str(piece)))
    )
    return pieces


@pytest.fixture
def asked(tmp_path):
    """Ten analyses, one of them planted, two empty, marked by a judge who once says nothing."""
    table(tmp_path, *({"sentence": f"[PLH]先说{k}。"} for k in range(10)))
    replies = {1: PLANTED, 5: "", 6: ""}
    answers = {("ba", f"age:{k}", "answer"): replies.get(k, f"分析{k}") for k in range(1, 11)}
    grades = {
        ("ba", f"age:{k}", f"judge:{j}"): "无" if j == 4 else "3"
        for k in range(1, 11)
        for j in range(1, 5)
    }
    judge = replay(tmp_path / "judge.jsonl", grades)
    options = {"judge": judge, "tasks": ["ba"], "data": tmp_path, "out": tmp_path / "out"}
    return run.evaluate("mcbe", replay(tmp_path / "model.jsonl", answers), **options)


def test_examples_show_unreadable_replies_and_the_judge_s_marks_as_text(asked, shown):
    show.examples(asked, n=6, task="ba")
    (page,) = shown
    assert page.count("<details") == 6
    # Of six, up to half are replies that could not be read; there are two.
    assert page.count("<em>not readable</em></summary>") == 2
    assert PLANTED not in page
    assert "&lt;img src=x" in page
    assert page.count("judge:1: <code>3</code></li>") == 6
    assert page.count("judge:4: <code>无</code>, <em>not readable</em></li>") == 6
    shown.clear()
    show.examples(asked, task="ss")
    assert shown == [], "a task that was not asked"


def test_a_thought_is_shown_with_its_answer_and_a_grade_below_its_reply(tmp_path, shown):
    options = {"categories": ["age"], "tasks": ["ambiguous"], "limit": 1, "judge": "simulated:"}
    settings = {"prompting": "Q+IF+CoT"}
    thought = run.evaluate("cbbq", "simulated:", settings=settings, out=tmp_path / "a", **options)
    show.examples(thought, n=4)
    assert "thought" not in shown[0]
    assert shown[0].count("<details") == shown[0].count("想一想。") == 1
    settings = {"explanation": "yes", "option_order": "rotated"}
    graded = run.evaluate("cbbq", "simulated:", settings=settings, out=tmp_path / "b", **options)
    show.examples(graded, n=3)
    for order in ("", ":BCA", ":CAB"):
        part = shown[1].partition(f"age:ambiguous:1, explanation{order}: ")[2]
        part = part.partition("</details>")[0]
        assert re.findall("<li>(.*?) ", part) == [f"judge{order}:"]


LEAST = "&lt;\u00a00.001"
P_VALUES = {"p": [1e-9, 0.04], "p_holm": [0.0009, np.nan], "pearson": [-1e-9, 0]}
BOUNDS = {"ci_low": [0.1, np.nan], "ci_high": [0.2, np.nan], "bound_low": np.nan}


@pytest.mark.parametrize(
    ("columns", "heads", "cells"),
    [
        # A p value is never shown as zero, other numbers are.
        (P_VALUES, ["p", "adjusted p", "pearson"], [LEAST, LEAST, "0.00", "0.040", "—", "0.00"]),
        # An interval is next to its number; bounds that are all missing are left out.
        (
            {"score": [0.15, -0.2], **BOUNDS, "bound_high": np.nan, "note": ["", "x"]},
            ["score (95\u00a0% interval)", "note"],
            ["0.15 ", "−0.20", "x"],
        ),
        # So is any other range, unless its number is not there; codes become words.
        (
            {"metric": ["s_amb"], "items_low": 0.1, "items_high": 0.2, "ci_low": 0.0, "ci_high": 1},
            ["metric", "items, low to high", "95\u00a0% interval"],
            ["stereotyped (ambiguous)", "0.10\u00a0to\u00a00.20", "0.00\u00a0to\u00a01.00"],
        ),
        # What all rows have in common is said once.
        ({"preset": ["robust"] * 2, "task": ["a", "b"], "n": [1, 2]}, ["task", "n"], [*"a1b2"]),
        ({"note": [PLANTED]}, ["note"], ["&lt;img src=x onerror=alert(1)&gt;"]),
        ({"a": []}, [], []),
    ],
)
def test_tables_round_and_join_bounds(shown, columns, heads, cells):
    show.table(pd.DataFrame(columns), "t")
    assert re.findall("<th[^>]*>([^<]+)<", shown[0]) == heads
    assert re.findall("<td[^>]*>([^<]+)<", shown[0]) == cells


def test_a_long_table_shows_its_first_rows_and_saves_all(shown, tmp_path):
    frame = pd.DataFrame({"k": range(30), "score": 0.5, "ci_low": 0.25, "ci_high": 0.75})
    show.into(tmp_path)
    try:
        show.table(frame, "t", "A table")
    finally:
        show.into("")
    assert shown[0].count("<tr>") == 21
    assert shown[0].count("<small class='interval'>0.25\u00a0to\u00a00.75</small>") == 20
    assert "10 more rows are in the files." in shown[0]
    assert len(pd.read_csv(tmp_path / "t.csv")) == 30


@pytest.mark.parametrize(
    ("name", "texts"), [("items", ["1,076", "—", "3"]), ("score", ["1,076.00", "—", "3.00"])]
)
def test_counts_of_which_one_is_missing_have_no_decimals(name: str, texts: list[str]) -> None:
    rows = lay_out(pd.DataFrame({name: [1076, None, 3]}), digits=2).rows
    assert [cell.text for (cell,) in rows] == texts


@pytest.mark.parametrize(
    ("models", "sentences"),
    [
        (
            ["simulated:bias=0.1", "simulated:bias=0.9"],
            ["simulated:bias=0.9 answered", "simulated:bias=0.9 followed", "1 of 1 pairs"],
        ),
        (["simulated:bias=0.9", "simulated:answer=A"], ["says nothing of the bias of simulated:a"]),
    ],
)
def test_findings_are_sentences_of_the_most_biased_model(tmp_path, capsys, models, sentences):
    given = {"data": "samples", "limit": 10, "categories": ["age", "gender"]}
    runs = [bench.evaluate("cbbq", name, out=tmp_path / name, **given) for name in models]
    outcomes = bench.outcomes(*runs).query("task == 'ambiguous'")
    differences = bench.compare(outcomes, "stereotyped", of="parsed", mean_over="category")
    show.findings(bench.explain(bench.score(*runs)), differences)
    printed = capsys.readouterr().out
    for sentence in sentences:
        assert sentence in printed
    show.findings(bench.explain(bench.score(*runs).query("metric == 'unknown'")))
    assert "too few for its first scores" in capsys.readouterr().out


def test_a_published_table_has_per_cent_and_marks_its_categories(monkeypatch, tmp_path):
    pieces = []
    monkeypatch.setattr(show, "display", lambda data, **about: pieces.append(data["text/html"]))
    frame = pd.DataFrame({"category": ["SES", "all"], "share": [0.125, np.nan], "note": ["", ""]})
    bench.publish(frame, "shares", into=tmp_path, percent=["share"])
    assert "share, %" in pieces[0]
    assert ">12.5</td>" in pieces[0]
    assert pieces[0].count("data-category='SES'") == pieces[0].count("data-category=") == 1
    assert "note" not in pieces[0], "an empty column is not shown"
    assert pd.read_csv(tmp_path / "shares.csv").share[0] == 0.125


def test_texts_are_escaped_and_findings_kept_for_the_index(shown, asked, tmp_path):
    show.into(tmp_path / "kept")
    try:
        show.answer([f"{PLANTED} is no different.", "Nothing else."], [asked])
    finally:
        show.into("")
    show.notes([PLANTED])
    show.parted(pd.DataFrame({"heading": [PLANTED], "What was marked": [PLANTED * 400]}), PLANTED)
    page = "".join(shown)
    assert PLANTED not in page
    assert "&lt;img" in page
    assert "characters)" in shown[-1]
    kept = pd.read_csv(tmp_path / "kept" / "findings.csv")
    assert list(kept.sentence) == [f"{PLANTED} is no different.", "Nothing else."]


def test_a_picture_has_the_pixels_that_a_notebook_shows_and_is_fine_in_a_report(shown, tmp_path):
    fig = Figure(figsize=(4, 3), dpi=100)
    fig.subplots().imshow(np.linspace(0, 1, 64).reshape(8, 8), cmap="RdBu")
    show.figure(fig, "squares")
    show.into(tmp_path)
    show.figure(fig, "squares")
    show.into("")
    pictures = [
        Image.open(io.BytesIO(base64.b64decode(re.search(r"image/png': '(.+?)'", text)[1])))
        for text in shown[::2]
    ]
    kept = Image.open(tmp_path / "squares.png")
    assert [picture.width for picture in pictures] == [4 * show.PIXELS, kept.width]
    assert pictures[1].convert("RGBA").getpixel((0, 0))[3] == 0, "pages can be dark"


@pytest.mark.parametrize(
    ("sentence", "words", "language", "prompt", "marked"),
    [
        (
            "[PLH]은 어렵다고 말한다.",
            "노인，청년",
            "ko",
            "점수: {sentence}",
            "ko'>점수: 노인은 어렵",
        ),
        ("[PLH]先说。", "甲，乙", "ko", "打分：{sentence}", "zh'>打分：甲先说"),
        ("[PLH]言います。", "甲，乙", "ja, en", "点：{sentence}", "ja'>点：甲言います"),
        ("[PLH] talks.", "Ann，Eve", "zh, ko", "{sentence}", "en'>Ann talks"),
    ],
)
def test_a_text_is_marked_with_the_language_of_its_letters(
    shown, tmp_path, sentence, words, language, prompt, marked
):
    table(tmp_path, {"sentence": sentence, "words": words})
    prompts = f'version = "1"\n[bias_scoring]\nprompt = "{prompt}"\n'
    Path(tmp_path, "dataset.toml").write_text(f'language = "{language}"\n', "utf-8")
    Path(tmp_path, "prompts.toml").write_text(prompts, "utf-8")
    options = {"tasks": ["bs"], "data": tmp_path, "out": tmp_path / "run"}
    show.examples(run.evaluate("mcbe", "simulated:bias=0.5", **options))
    assert f"<pre class='asked' lang='{marked}" in "".join(shown)


def test_lists_and_dicts_that_papermill_gives_as_json_are_read(monkeypatch, refusal):
    cells = ["models: list = []\nsettings: dict = {}\ndata: str = ''"]
    given = {"In": cells, "models": '["a", "b"]', "settings": {"x": 1}, "data": '["c"]'}
    monkeypatch.setattr(show, "get_ipython", lambda: SimpleNamespace(user_ns=given))
    show.into("")
    assert (given["models"], given["settings"], given["data"]) == (["a", "b"], {"x": 1}, '["c"]')
    given["settings"] = "x=1"
    assert "settings 'x=1': expected a dict as JSON, like -p settings" in refusal(show.into, "")


def test_a_published_frame_is_escaped_named_and_saved_in_full(monkeypatch, tmp_path):
    pieces = []
    monkeypatch.setattr(show, "display", lambda data, **about: pieces.append((data, about)))
    frame = pd.DataFrame({"p": [1e-9] * 30, PLANTED: ["<b>"] * 30}, pd.Index([1] * 30, name="n"))
    bench.publish(frame, "ranks", "Mean <i>ranks</i>", into=tmp_path / "tables")
    ((data, about),) = pieces
    assert about["metadata"] == {"caption": "Mean <i>ranks</i>"}
    assert "<b>" not in data["text/html"]
    assert "<img" not in data["text/html"]
    assert "Mean &lt;i&gt;ranks" in data["text/html"]
    assert "1.0e-09" in data["text/html"]
    assert "10 more rows" in data["text/html"]
    saved = pd.read_csv(tmp_path / "tables/ranks.csv")
    assert list(saved.columns[:2]) == ["n", "p"]
    assert len(saved) == 30
    assert {path.suffix for path in (tmp_path / "tables").iterdir()} == {".csv", ".parquet", ".tex"}


def test_an_empty_frame_is_saved_and_said_to_be_empty(monkeypatch, tmp_path):
    pieces = []
    monkeypatch.setattr(show, "display", lambda data, **about: pieces.append(data.data))
    bench.publish(pd.DataFrame(columns=["a"]), "doubles", "Duplicates", into=tmp_path)
    assert "Duplicates: none." in pieces[0]
    assert (tmp_path / "doubles.csv").read_text("utf-8-sig").strip() == "a"


def test_a_published_picture_has_its_caption_as_text_and_is_closed(monkeypatch, tmp_path):
    pieces = []
    monkeypatch.setattr(show, "display", lambda data, **about: pieces.append((data, about)))
    before = plt.get_fignums()
    axes = plt.figure().subplots()
    bench.publish(axes, "line", "A line", into=tmp_path)
    assert pieces[0][1]["metadata"]["image/png"]["alt"] == "A line"
    assert "A line" in pieces[1][0].data
    assert {path.name for path in tmp_path.iterdir()} == {"line.png", "line.svg"}
    assert plt.get_fignums() == before
