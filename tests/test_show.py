"""What a notebook shows: examples with the judge's marks, unreadable replies among them, and everything as text."""

import json

import pytest

from bench import run, show

HEADER = "context,sentence,words,subtype,explanation,score\n"
PLANTED = "<img src=x onerror=alert(1)>"


@pytest.fixture
def shown(monkeypatch):
    """The HTML of all that is displayed."""
    pieces = []
    monkeypatch.setattr(show, "display", lambda piece, **_: pieces.append(getattr(piece, "data", str(piece))))
    return pieces


@pytest.fixture
def asked(tmp_path):
    """Ten analyses, one of them planted, two empty, marked by a judge who once says nothing."""
    rows = "".join(f"开会，,[PLH]先说{k}。,甲，乙,x,y,1\n" for k in range(10))
    (tmp_path / "age.csv").write_text(HEADER + rows, "utf-8")
    with (tmp_path / "model.jsonl").open("w", encoding="utf-8") as model, (tmp_path / "judge.jsonl").open("w", encoding="utf-8") as judge:  # fmt: skip
        for k in range(1, 11):
            reply = PLANTED if k == 1 else "" if k in (5, 6) else f"分析{k}"
            named = {"task": "ba", "item_id": f"age:{k}"}
            model.write(json.dumps({**named, "request": "answer", "response": reply}) + "\n")
            for j in range(1, 5):
                judge.write(
                    json.dumps({**named, "request": f"judge:{j}", "response": "无" if j == 4 else "3"}) + "\n"
                )
    return run.evaluate(
        "mcbe", f"replay:{tmp_path / 'model.jsonl'}", judge=f"replay:{tmp_path / 'judge.jsonl'}", tasks=["ba"],
        data=tmp_path, out=tmp_path / "out",
    )  # fmt: skip


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
