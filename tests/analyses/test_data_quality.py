"""Pictures of data and of judges: what is drawn, what is said where something is missing, and words that are only words."""

import math

import pandas as pd
import pytest

from bench import show
from bench.analyses import quality
from bench.data import SAMPLES
from bench.figures import diversity as pictures
from bench.figures import style, words
from bench.metrics import annotators
from bench.metrics.words import counts
from tests.helpers.drawing import drawn, ticks


@pytest.fixture(scope="module")
def looked():
    return quality.looks(
        ["mcbe", "nli_coal"], {name: str(SAMPLES / name) for name in ("mcbe", "nli_coal")}
    )


@pytest.mark.parametrize("by", ["category", "topic", "group"])
def test_bars_are_sorted_by_count(looked, by):
    counted = looked[0].coverage(by)
    fig = drawn(pictures.coverage(counted, by, "mcbe", "instances"))
    widths = [bar.get_width() for bar in fig.axes[0].containers[0]]
    assert widths == sorted(counted.texts, reverse=True)[: pictures.MOST]
    more = len(counted) - pictures.MOST
    assert ("more are in the table" in fig.axes[0].get_xlabel()) == (more > 0)


def test_bars_are_numbered_where_no_font_shows_their_names(looked, monkeypatch):
    monkeypatch.setattr(style, "fonts", lambda: [style.LATIN_FONT])
    fig = drawn(pictures.coverage(looked[0].coverage("topic"), "topic", "mcbe", "instances"))
    assert ticks(fig.axes[0].get_yticklabels())[:2] == [
        "row 1 of the table",
        "row 2 of the table",
    ]
    assert words.clouds(counts(looked[0].texts), "mcbe") is None


def test_overlap_shows_each_category_and_the_line_across(looked):
    fig = drawn(pictures.overlap(looked[0].diversity, "mcbe"))
    table = looked[0].diversity.table.set_index("category")
    left, right = fig.axes
    assert len(left.patches) == 2
    assert len(ticks(right.get_yticklabels())) == 12
    assert any(list(line.get_xdata()) == [table["mean"]["across"]] * 2 for line in right.lines)
    # Two languages have nothing across them.
    assert len(drawn(pictures.overlap(looked[1].diversity, "nli_coal")).axes[0].patches) == 1
    assert pictures.between(looked[1].diversity, "nli_coal") is None
    assert len(drawn(pictures.between(looked[0].diversity, "mcbe")).axes[0].texts) == 144


def test_clouds_leave_out_words_that_no_font_shows(looked):
    counted = counts(looked[0].texts)
    counted = counted[counted.category.isin(["gender", "age"])]
    assert words.missing(counted) == ""
    fig = drawn(words.clouds(counted, "mcbe"))
    assert sum(bool(ax.images) for ax in fig.axes) == 2
    lost = counted.head(1).assign(word="\U0001f12f", category="race")  # no font has every sign
    assert "1 words" in words.missing(pd.concat([counted, lost]))
    assert len(drawn(words.clouds(pd.concat([counted, lost]), "mcbe")).axes) == 2
    assert words.clouds(lost, "mcbe") is None


def test_kappas_are_sorted_and_gaps_are_named():
    found = pd.DataFrame(
        {
            "category": ["all", "age", "race"],
            "kappa": [0.7, 0.9, math.nan],
            "ci_low": [0.6, math.nan, math.nan],
            "ci_high": [0.8, math.nan, math.nan],
        }
    )
    fig = drawn(pictures.kappas(found, "mcbe", annotators.SimulatedAnnotators().kappa))
    labels = ticks(fig.axes[0].get_yticklabels())
    assert labels[-1] == "all"
    assert "race" in labels[0]
    assert "undefined" in [text.get_text() for text in fig.axes[0].texts]
    assert fig.get_label().startswith("Simulated annotators agree with kappa 0.70")
    assert drawn(pictures.kappas(found, "mcbe")).get_label().startswith("Annotators agree")


def test_what_was_said_is_text(capsys, monkeypatch):
    shown = []
    monkeypatch.setattr(show, "display", lambda one: shown.append(one.data))
    evil = "<script>alert(1)</script>"
    show.parted(pd.DataFrame({"heading": [evil], "What was marked": [evil * 400]}), evil)
    show.sentences([evil])
    show.notes([evil])
    assert len(shown) == 3
    assert all("<script>" not in text and "&lt;script&gt;" in text for text in shown)
    assert "characters)" in shown[0]


def test_data_are_looked_at_and_told(looked):
    assert [look.title for look in looked] == ["McBE", "NLI-CoAL"]
    assert looked[0].findings()[0].startswith("McBE has 96 instances in 12 categories, each with 8")
    rated = quality.annotated(looked)
    assert "simulated annotators of the topics of McBE agree with kappa" in rated[0].sentence()
    assert len(quality.notes(looked, rated)) == 2
    stacked = quality.stacked(looked, [look.coverage("category") for look in looked])
    assert list(dict.fromkeys(stacked.benchmark)) == ["McBE", "NLI-CoAL"]
    shared, _ = quality.against(looked)
    assert set(shared.language) == {"zh"}
    assert list(quality.provenance(looked)["rows"]) == [96, len(looked[1].texts)]
    with pytest.raises(Exception, match="cbbq"):
        quality.looks(["mcbe"], {"cbbq": "x"})
