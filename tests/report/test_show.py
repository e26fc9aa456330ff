"""What a notebook shows: tables, pictures and examples with the judge's grades, all as text."""

import base64
import io

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image

import bench
from bench import show

PLANTED = "<img src=x onerror=alert(1)>"


@pytest.fixture
def shown(monkeypatch):
    """The HTML of all that is displayed."""
    pieces = []
    monkeypatch.setattr(
        show, "display", lambda piece, **_: pieces.append(getattr(piece, "data", str(piece)))
    )
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


def test_texts_are_escaped_and_findings_kept_for_the_index(shown):
    sentences = [f"{PLANTED} is no different.", "Nothing else."]
    output = show.answer_output(sentences)
    show.notes([PLANTED])
    page = "".join([output.data["text/html"], *shown])
    assert PLANTED not in page
    assert page.count("&lt;img") == 2
    assert output.metadata["findings"] == sentences


def test_a_picture_has_the_pixels_that_a_notebook_shows_and_is_fine_in_a_report(
    monkeypatch, tmp_path
):
    pieces = []
    monkeypatch.setattr(show, "display", lambda data, **about: pieces.append((data, about)))
    monkeypatch.setitem(plt.rcParams, "savefig.dpi", show.DPI)  # as the theme sets it
    fig = Figure(figsize=(4, 3), dpi=100)
    fig.subplots().imshow(np.linspace(0, 1, 64).reshape(8, 8), cmap="RdBu")
    bench.publish(fig, "squares")
    bench.publish(fig, "squares", into=tmp_path)
    pictures = [
        Image.open(io.BytesIO(base64.b64decode(data["image/png"]))) for data, _ in pieces[::2]
    ]
    shown = pieces[0][1]["metadata"]["image/png"]["width"]
    kept = Image.open(tmp_path / "squares.png")
    assert [picture.width for picture in pictures] == [shown, kept.width]
    assert kept.width > shown
    assert pictures[1].convert("RGBA").getpixel((0, 0))[3] == 0, "pages can be dark"


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
    assert {path.name for path in tmp_path.iterdir()} == {"line.png", "line.svg", "line.pdf"}
    assert plt.get_fignums() == before
