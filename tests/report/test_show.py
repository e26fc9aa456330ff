"""What a notebook shows: examples with the judge's grades, unreadable replies among them, and all as text."""

import base64
import io
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image

from bench import run, show
from bench.core import export
from bench.core.text import language_of
from bench.data import SAMPLES

HEADER = "context,sentence,words,subtype,explanation,score\n"
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
    rows = "".join(f"开会，,[PLH]先说{k}。,甲，乙,x,y,1\n" for k in range(10))
    (tmp_path / "age.csv").write_text(HEADER + rows, "utf-8")
    replies: dict[str, list] = {"model": [], "judge": []}
    for k in range(1, 11):
        reply = PLANTED if k == 1 else "" if k in (5, 6) else f"分析{k}"
        named = {"task": "ba", "item_id": f"age:{k}"}
        replies["model"].append({**named, "request": "answer", "response": reply})
        for j in range(1, 5):
            grade = {"request": f"judge:{j}", "response": "无" if j == 4 else "3"}
            replies["judge"].append({**named, **grade})
    for name, lines in replies.items():
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    return run.evaluate(
        "mcbe",
        f"replay:{tmp_path / 'model.jsonl'}",
        judge=f"replay:{tmp_path / 'judge.jsonl'}",
        tasks=["ba"],
        data=tmp_path,
        out=tmp_path / "out",
    )


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
    assert "(bias analysis)" in page
    shown.clear()
    show.examples(asked, task="ss")
    assert shown == [], "a task that was not asked"


def test_tables_round_and_name_what_they_hold(asked, shown):
    show.overall(run.table([asked]), "ba")
    for name in ("score", "accuracy", "underlying_meaning", "cultural_difference", "highlights"):
        assert f">{name}<" in shown[-1]
    assert "age" not in shown[-1]
    show.table(pd.DataFrame({"a": []}), "nothing")
    assert shown[-1] == "<p>No rows.</p>"
    # A p value is never shown as zero, other numbers are.
    p_values = {"p": [1e-9, 0.04], "p_holm": [0.0009, np.nan], "pearson": [-1e-9, 0]}
    show.table(pd.DataFrame({"r": [-0.5, 0.0], **p_values}), "t")
    least = "&lt;\u00a00.001"
    first, second = ["-0.500", least, least, "-0.000"], ["0.000", "0.040", "—", "0.000"]
    assert re.findall(r"<td[^>]*>([^<]*)</td>", shown[-1]) == first + second
    # Bounds are one column, and none where all are missing.
    bounds = {"ci_low": [0.1, np.nan], "ci_high": [0.2, np.nan], "note": ["", "x"]}
    show.table(pd.DataFrame({**bounds, "bound_low": np.nan, "bound_high": np.nan}), "t", digits=1)
    assert re.findall("<th[^>]*>([^<]+)<", shown[-1]) == ["95\u00a0% interval", "note"]
    assert re.findall("<td[^>]*>([^<]+)<", shown[-1]) == ["0.1\u00a0to\u00a00.2", "x"]


def test_a_thought_is_shown_with_the_answer_that_it_led_to(tmp_path, shown):
    options = {"categories": ["age"], "limit": 2, "settings": {"prompting": "Q+IF+CoT"}}
    show.examples(run.evaluate("cbbq", "simulated:bias=1", out=tmp_path, **options), n=4)
    (page,) = shown
    assert page.count("<details") == 4
    assert "thought" not in page
    assert page.count("想一想。") == 4


def test_a_grade_is_below_the_reply_that_it_is_of(tmp_path, shown):
    settings = {"explanation": "yes", "option_order": "rotated"}
    options = {"categories": ["age"], "tasks": ["ambiguous"], "limit": 1, "judge": "simulated:"}
    asked = run.evaluate("cbbq", "simulated:bias=1", settings=settings, out=tmp_path, **options)
    show.examples(asked, n=3)
    (page,) = shown
    for order in ("", ":BCA", ":CAB"):
        part = page.partition(f"age:ambiguous:1, explanation{order}: ")[2]
        part = part.partition("</details>")[0]
        assert part.count("<li>") == 1
        assert f"<li>judge{order}: " in part


@pytest.fixture
def audited(tmp_path):
    """A run on a category whose polarity column contradicts its file in one template."""
    folder = tmp_path / "data" / "age"
    shutil.copytree(SAMPLES / "cbbq" / "age", folder)
    path = folder / "ambiguous" / "templates_generate_neg.csv"
    text = path.read_text("utf-8-sig")
    assert ",neg," in text
    path.write_text(text.replace(",neg,", ",non_neg,", 1), "utf-8-sig")
    return run.evaluate(
        "cbbq", "simulated:bias=1", data=tmp_path / "data", limit=2, out=tmp_path / "out"
    )


def test_an_audit_counts_faults_and_what_the_settings_touch(audited, shown):
    show.audit(audited)
    text, faults, settings, touched = shown
    assert "what is odd, and how many templates and questions it touches" in text
    assert ">polarity_column_wrong<" in faults
    assert "polarity=file" in settings
    assert re.search("<td[^>]*>age</td><td[^>]*>ambiguous</td>", touched)
    folder = Path(audited.about["data"]["folder"])
    assert str(folder) not in "".join(shown)
    # Data that have changed or are gone: what is on record stays.
    (folder / "age" / "disambiguous" / "templates_generate_neg.csv").unlink()
    for k in range(2):
        shown.clear()
        show.audit(audited)
        assert "not on this machine" in shown[0]
        assert len(shown) == 3
        if not k:
            shutil.rmtree(folder)


def test_an_audit_of_the_samples_finds_nothing(tmp_path, shown):
    options = {"data": SAMPLES / "cbbq", "limit": 1, "out": tmp_path / "out"}
    show.audit(run.evaluate("cbbq", "simulated:bias=1", **options))
    assert len(shown) == 1
    assert "nothing odd was found" in shown[0]


def test_texts_are_escaped_and_findings_kept_for_the_index(shown, asked, tmp_path):
    show.into(tmp_path / "kept")
    try:
        show.sentences([f"{PLANTED} is no different.", "Nothing else."], [asked])
        show.sentences(["Of one model."])
    finally:
        show.into("")
    show.notes([PLANTED])
    show.parted(pd.DataFrame({"heading": [PLANTED], "What was marked": [PLANTED * 400]}), PLANTED)
    page = "".join(shown)
    assert PLANTED not in page
    assert "&lt;img" in page
    assert "characters)" in shown[-1]
    assert "<li>Of one model.</li>" in page
    kept = pd.read_csv(tmp_path / "kept" / "findings.csv")
    assert list(kept.sentence) == [f"{PLANTED} is no different.", "Nothing else."]


def test_a_picture_in_a_notebook_has_few_colours_and_looks_the_same(shown):
    fig = Figure(figsize=(4, 3), dpi=100)
    ax = fig.subplots()
    ax.imshow(np.linspace(0, 1, 64).reshape(8, 8), cmap="RdBu")
    fig.set_label("Squares from red to blue 年龄.")
    fine = export.to_png(fig)
    small = export.quantize_png(fine)
    few, many = (Image.open(io.BytesIO(png)) for png in (small, fine))
    assert few.mode == "P"
    assert few.info["Description"] == "Squares from red to blue 年龄."
    pixels = (np.asarray(image.convert("RGB"), int) for image in (few, many))
    off = np.abs(np.subtract(*pixels)).max(axis=2)
    assert off.max() < 40
    assert (off > 0).mean() < 0.02
    assert len(small) < 0.6 * len(fine)


def test_a_picture_has_no_more_pixels_than_a_notebook_shows_and_is_fine_in_a_report(
    shown, tmp_path
):
    fig = Figure(figsize=(4, 3))
    fig.subplots().plot([0, 1])
    show.figure(fig, "line")
    show.into(tmp_path)
    show.figure(fig, "line")
    show.into("")
    in_notebook, in_report = (
        Image.open(io.BytesIO(base64.b64decode(re.search(r"image/png': '(.+?)'", text)[1])))
        for text in shown[:2]
    )
    assert in_notebook.width == 4 * show.PIXELS
    assert in_report.width == Image.open(tmp_path / "line.png").width


@pytest.mark.parametrize(
    ("text", "languages", "code"),
    [
        ("请打分：좋은 문장입니다 여러분", (), "ko"),
        ("请给下面这句话打分：좋다", ("ko",), "zh"),
        ("7점", ("ko",), "ko"),
        ("東京の人", ("zh",), "ja"),
        ("ｶﾀｶﾅ", (), "ja"),
        ("東京", ("en", "ja"), "ja"),
        ("你好", ("ko",), "zh"),
        ("你好", (), "zh"),
        ("唔好 A", ("yue", "en"), "yue"),
        ("Buenos días", ("es",), "es"),
        ("A", ("zh", "ko"), "en"),
        ("", (), "en"),
    ],
)
def test_the_language_of_a_text_is_told_by_its_letters(
    text: str, languages: tuple[str, ...], code: str
) -> None:
    assert language_of(text, languages) == code


def test_korean_is_marked_as_korean(shown, tmp_path) -> None:
    row = "회의가 열린다.,[PLH]은 어렵다고 말한다.,노인，청년,x,y,1\n"
    prompts = 'version = "1"\n[bias_scoring]\nprompt = "점수를 매기세요: {sentence}"\n'
    (tmp_path / "age.csv").write_text(HEADER + row, "utf-8")
    (tmp_path / "dataset.toml").write_text('language = "ko"\n', "utf-8")
    (tmp_path / "prompts.toml").write_text(prompts, "utf-8")
    options = {"tasks": ["bs"], "data": tmp_path, "out": tmp_path / "run"}
    show.examples(run.evaluate("mcbe", "simulated:bias=0.5", **options))
    assert "<pre class='asked' lang='ko'>점수를 매기세요: 노인은 어렵다고 말한다." in "".join(shown)
