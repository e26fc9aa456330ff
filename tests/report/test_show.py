"""What a notebook shows: examples with the judge's marks, unreadable replies among them, and everything as text."""

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
    with (
        (tmp_path / "model.jsonl").open("w", encoding="utf-8") as model,
        (tmp_path / "judge.jsonl").open("w", encoding="utf-8") as judge,
    ):
        for k in range(1, 11):
            reply = PLANTED if k == 1 else "" if k in (5, 6) else f"分析{k}"
            named = {"task": "ba", "item_id": f"age:{k}"}
            model.write(json.dumps({**named, "request": "answer", "response": reply}) + "\n")
            for j in range(1, 5):
                judge.write(
                    json.dumps(
                        {**named, "request": f"judge:{j}", "response": "无" if j == 4 else "3"}
                    )
                    + "\n"
                )
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


def test_a_task_that_was_not_asked_shows_nothing(asked, shown):
    show.examples(asked, task="ss")
    assert shown == []


def test_overall_shows_every_measure_of_a_task_over_all_categories(asked, shown):
    show.overall(run.table([asked]), "ba")
    (page,) = shown
    for name in ("score", "accuracy", "underlying_meaning", "cultural_difference", "highlights"):
        assert f">{name}<" in page
    assert "age" not in page


def test_an_empty_table_says_so(shown):
    show.table(pd.DataFrame({"a": []}), "nothing")
    assert shown == ["<p>No rows.</p>"]


def test_a_p_value_is_never_nought_and_other_numbers_are_as_they_are(shown):
    show.table(
        pd.DataFrame(
            {"r": [-0.5, 0.0], "p": [1e-9, 0.04], "p_holm": [0.0009, np.nan], "pearson": [-1e-9, 0]}
        ),
        "t",
    )
    (page,) = shown
    assert re.findall(r"<td[^>]*>([^<]*)</td>", page) == [
        "-0.500",
        "&lt;\u00a00.001",
        "&lt;\u00a00.001",
        "-0.000",
        "0.000",
        "0.040",
        "—",
        "0.000",
    ]


def test_a_thought_is_shown_with_the_answer_that_it_led_to(tmp_path, shown):
    one = run.evaluate(
        "cbbq",
        "simulated:bias=1",
        categories=["age"],
        limit=2,
        settings={"prompting": "Q+IF+CoT"},
        out=tmp_path,
    )
    show.examples(one, n=4)
    (page,) = shown
    assert page.count("<details") == 4
    assert "thought" not in page
    assert page.count("想一想。") == 4


def test_a_mark_stands_below_the_reply_that_it_is_of(tmp_path, shown):
    one = run.evaluate(
        "cbbq",
        "simulated:bias=1",
        categories=["age"],
        tasks=["ambiguous"],
        limit=1,
        judge="simulated:",
        settings={"explanation": "yes", "option_order": "rotated"},
        out=tmp_path,
    )
    show.examples(one, n=3)
    (page,) = shown
    for order in ("", ":BCA", ":CAB"):
        part = page.partition(f"age:ambiguous:1, explanation{order}: ")[2].partition("</details>")[
            0
        ]
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
    said, faults, settings, touched = shown
    assert "what is odd, and how many templates and questions it touches" in said
    assert ">polarity_column_wrong<" in faults
    assert "polarity=file" in settings
    assert (
        "<td style='text-align: left'>age</td><td style='text-align: left'>ambiguous</td>"
        in touched
    )
    assert str(audited.about["data"]["folder"]) not in "".join(shown)


def test_an_audit_of_data_that_are_gone_says_so_and_keeps_what_is_on_record(audited, shown):
    (
        Path(audited.about["data"]["folder"])
        / "age"
        / "disambiguous"
        / "templates_generate_neg.csv"
    ).unlink()
    show.audit(audited)
    assert "not on this machine" in shown[0]
    assert len(shown) == 3
    shutil.rmtree(audited.about["data"]["folder"])
    shown.clear()
    show.audit(audited)
    assert "not on this machine" in shown[0]


def test_an_audit_of_the_samples_finds_nothing(tmp_path, shown):
    show.audit(
        run.evaluate(
            "cbbq", "simulated:bias=1", data=SAMPLES / "cbbq", limit=1, out=tmp_path / "out"
        )
    )
    assert len(shown) == 1
    assert "nothing odd was found" in shown[0]


def test_findings_of_an_analysis_are_text_and_kept_for_the_index(shown, asked, tmp_path):
    show.into(tmp_path / "kept")
    try:
        show.sentences([f"{PLANTED} is no different.", "Nothing else."], [asked])
        show.sentences(["Of one model."])
    finally:
        show.into("")
    page = "".join(shown)
    assert PLANTED not in page
    assert "&lt;img" in page
    assert "<li>Of one model.</li>" in page
    kept = pd.read_csv(tmp_path / "kept" / "findings.csv")
    assert list(kept.sentence) == [f"{PLANTED} is no different.", "Nothing else."]


def test_a_picture_in_a_notebook_has_few_colours_and_looks_the_same(shown):
    fig = Figure(figsize=(4, 3), dpi=100)
    ax = fig.subplots()
    ax.imshow(np.linspace(0, 1, 64).reshape(8, 8), cmap="RdBu")
    fig.set_label("Squares from red to blue 年龄.")
    whole = export.to_png(fig)
    small = export.quantize_png(whole)
    few, many = (Image.open(io.BytesIO(one)) for one in (small, whole))
    assert few.mode == "P"
    assert few.info["Description"] == "Squares from red to blue 年龄."
    off = np.abs(np.asarray(few.convert("RGB"), int) - np.asarray(many.convert("RGB"), int)).max(
        axis=2
    )
    assert off.max() < 40
    assert (off > 0).mean() < 0.02
    assert len(small) < 0.6 * len(whole)


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
    (tmp_path / "age.csv").write_text(
        HEADER + "회의가 열린다.,[PLH]은 어렵다고 말한다.,노인，청년,x,y,1\n", "utf-8"
    )
    (tmp_path / "dataset.toml").write_text('language = "ko"\n', "utf-8")
    (tmp_path / "prompts.toml").write_text(
        'version = "1"\n[bias_scoring]\nprompt = "점수를 매기세요: {sentence}"\n', "utf-8"
    )
    done = run.evaluate(
        "mcbe", "simulated:bias=0.5", tasks=["bs"], data=tmp_path, out=tmp_path / "run"
    )
    show.examples(done)
    assert "<pre class='asked' lang='ko'>점수를 매기세요: 노인은 어렵다고 말한다." in "".join(shown)
