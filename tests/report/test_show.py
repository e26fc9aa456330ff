"""What a notebook shows: tables, pictures and examples with the judge's grades, all as text."""

import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import bench
from bench import show

PLANTED = "<img src=x onerror=alert(1)>"


@pytest.fixture
def shown(monkeypatch):
    """Everything that is displayed: a text or the contents by type, and the metadata of it."""
    pieces = []

    def display(piece, metadata=None, **_):
        pieces.append((getattr(piece, "data", piece), metadata))

    monkeypatch.setattr(show, "display", display)
    return pieces


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


def test_a_published_table_has_per_cent_and_marks_its_categories(shown, tmp_path):
    frame = pd.DataFrame({"category": ["SES", "all"], "share": [0.125, np.nan], "note": ["", ""]})
    bench.publish(frame, "shares", into=tmp_path, percent=["share"])
    page = shown[0][0]["text/html"]
    assert "share, %" in page
    assert ">12.5</td>" in page
    assert page.count("data-category='SES'") == page.count("data-category=") == 1
    assert "note" not in page, "an empty column is not shown"
    assert pd.read_csv(tmp_path / "shares.csv").share[0] == 0.125


def test_a_published_frame_is_escaped_named_and_saved_in_full(shown, tmp_path):
    frame = pd.DataFrame({"p": [1e-9] * 30, PLANTED: ["<b>"] * 30}, pd.Index([1] * 30, name="n"))
    bench.publish(frame, "ranks", "Mean <i>ranks</i>", into=tmp_path / "tables")
    ((data, metadata),) = shown
    assert metadata == {"caption": "Mean <i>ranks</i>"}
    assert not re.search("<b>|<img|<i>", data["text/html"])
    for text in ("Mean &lt;i&gt;ranks", "1.0e-09", "10 more rows"):
        assert text in data["text/html"]
    saved = pd.read_csv(tmp_path / "tables/ranks.csv")
    assert (list(saved.columns[:2]), len(saved)) == (["n", "p"], 30)
    assert {path.suffix for path in (tmp_path / "tables").iterdir()} == {".csv", ".parquet", ".tex"}


def test_an_empty_frame_is_saved_and_said_to_be_empty(shown, tmp_path):
    bench.publish(pd.DataFrame(columns=["a"]), "doubles", "Duplicates", into=tmp_path)
    assert "Duplicates: none." in shown[0][0]
    assert (tmp_path / "doubles.csv").read_text("utf-8-sig").strip() == "a"


def test_a_published_picture_has_its_caption_as_text_and_is_closed(shown, tmp_path):
    before = plt.get_fignums()
    bench.publish(plt.figure().subplots(), "line", "A line", into=tmp_path)
    assert shown[0][1]["image/png"]["alt"] == "A line"
    assert "A line" in shown[1][0]
    assert {path.name for path in tmp_path.iterdir()} == {"line.png", "line.svg", "line.pdf"}
    assert plt.get_fignums() == before
