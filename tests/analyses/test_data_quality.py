"""Data quality: findings and pictures of data sets, and two sets of one benchmark compared."""

import math

import pandas as pd
import pytest

from bench import show
from bench.analyses import data_quality
from bench.analyses.data_quality import compare_sets, pictures, words
from bench.analyses.data_quality.words import counts
from bench.data import SAMPLES
from bench.figures import style
from bench.metrics import agreement
from tests.helpers.drawing import drawn, ticks


@pytest.fixture(scope="module")
def sets():
    return data_quality.open_sets(
        ["mcbe", "nli_coal"], {name: str(SAMPLES / name) for name in ("mcbe", "nli_coal")}
    )


@pytest.mark.parametrize("by", ["category", "topic", "group"])
def test_bars_are_sorted_by_count(sets, by):
    counted = sets[0].coverage(by)
    fig = drawn(pictures.plot_coverage(counted, by, "mcbe", "instances"))
    widths = [bar.get_width() for bar in fig.axes[0].containers[0]]
    assert widths == sorted(counted.texts, reverse=True)[: pictures.BARS]
    more = len(counted) - pictures.BARS
    assert ("more are in the table" in fig.axes[0].get_xlabel()) == (more > 0)


def test_bars_are_numbered_where_no_font_shows_their_names(sets, monkeypatch):
    monkeypatch.setattr(style, "fonts", lambda: [style.LATIN_FONT])
    fig = drawn(pictures.plot_coverage(sets[0].coverage("topic"), "topic", "mcbe", "instances"))
    assert ticks(fig.axes[0].get_yticklabels())[:2] == [
        "row 1 of the table",
        "row 2 of the table",
    ]
    assert words.plot_clouds(counts(sets[0].texts), "mcbe") is None


def test_overlap_shows_each_category_and_the_line_across(sets):
    fig = drawn(pictures.plot_overlap(sets[0].diversity, "mcbe"))
    table = sets[0].diversity.table.set_index("category")
    left, right = fig.axes
    assert len(left.patches) == 2
    assert len(ticks(right.get_yticklabels())) == 12
    assert any(list(line.get_xdata()) == [table["mean"]["across"]] * 2 for line in right.lines)
    # Two languages have nothing across them.
    assert len(drawn(pictures.plot_overlap(sets[1].diversity, "nli_coal")).axes[0].patches) == 1
    assert pictures.plot_between(sets[1].diversity, "nli_coal") is None
    assert len(drawn(pictures.plot_between(sets[0].diversity, "mcbe")).axes[0].texts) == 144


def test_clouds_leave_out_words_that_no_font_shows(sets):
    counted = counts(sets[0].texts)
    counted = counted[counted.category.isin(["gender", "age"])]
    assert words.not_drawn(counted) == ""
    fig = drawn(words.plot_clouds(counted, "mcbe"))
    assert sum(bool(ax.images) for ax in fig.axes) == 2
    lost = counted.head(1).assign(word="\U0001f12f", category="race")  # no font has every sign
    assert "1 words" in words.not_drawn(pd.concat([counted, lost]))
    assert len(drawn(words.plot_clouds(pd.concat([counted, lost]), "mcbe")).axes) == 2
    assert words.plot_clouds(lost, "mcbe") is None


def test_kappas_are_sorted_and_gaps_are_named():
    found = pd.DataFrame(
        {
            "category": ["all", "age", "race"],
            "kappa": [0.7, 0.9, math.nan],
            "ci_low": [0.6, math.nan, math.nan],
            "ci_high": [0.8, math.nan, math.nan],
        }
    )
    fig = drawn(pictures.plot_kappas(found, "mcbe", agreement.SimulatedAnnotators().kappa))
    labels = ticks(fig.axes[0].get_yticklabels())
    assert labels[-1] == "all"
    assert "race" in labels[0]
    assert "undefined" in [text.get_text() for text in fig.axes[0].texts]
    assert fig.get_label().startswith("Simulated annotators agree with kappa 0.70 to 0.90")
    assert drawn(pictures.plot_kappas(found, "mcbe")).get_label().startswith("Annotators agree")


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


def test_findings_name_each_data_set(sets):
    assert [own.title for own in sets] == ["McBE", "NLI-CoAL"]
    assert sets[0].findings()[0].startswith("McBE has 96 instances in 12 categories (8 in each)")
    rated = data_quality.annotations(sets)
    assert "simulated annotators of the topics of McBE agree with kappa" in rated[0].sentence()
    assert len(data_quality.notes(sets, rated)) == 2
    stacked = data_quality.stacked(sets, [own.coverage("category") for own in sets])
    assert list(dict.fromkeys(stacked.benchmark)) == ["McBE", "NLI-CoAL"]
    shared, _ = data_quality.overlaps(sets)
    assert set(shared.language) == {"zh"}
    assert list(data_quality.provenance(sets)["rows"]) == [96, len(sets[1].texts)]
    with pytest.raises(Exception, match="cbbq"):
        data_quality.open_sets(["mcbe"], {"cbbq": "x"})


def texts(*rows: tuple[str, str, str, str], language: str = "en") -> pd.DataFrame:
    """Rows of category, topic, group and text."""
    table = pd.DataFrame(rows, columns=["category", "topic", "group", "text"])
    table["groups"] = [(group,) for group in table.pop("group")]
    names = [f"{name}:{k}" for k, name in enumerate(table.category, 1)]
    return table.assign(
        item_id=names, language=language, items=1, whole=table.text, benchmark="mcbe"
    )


FIRST = texts(
    ("age", "work", "the old", "one two three four five"),
    ("age", "work", "the young", "six seven eight nine ten"),
    ("age", "tech", "The  Old", "red green blue black white"),
    ("race", "work", "them", "a b c d e"),
)
SECOND = texts(
    ("age", "Work", "the old", "one two three four six"),
    ("age", "home", "the old", "one two three four five"),
    ("sport", "club", "members", "v w x y z"),
)


def test_topics_groups_and_near_texts_by_hand() -> None:
    found = compare_sets.compare(FIRST, SECOND, 0.8)
    counts = found.counts.set_index(["by", "category"])
    assert counts.loc["topic", "all"].tolist() == [1, 2, 2]
    assert counts.loc["topic", "age"].tolist() == [1, 1, 1]
    assert counts.loc["group", "age"].tolist() == [1, 1, 0]
    assert counts.loc["group", "race"].tolist() == [0, 1, 0]
    assert counts.loc["topic", "sport"].tolist() == [0, 0, 1]
    both = found.values[(found.values.by == "group") & (found.values["where"] == "both")]
    assert both[["category", "value", "first", "second"]].values.tolist() == [
        ["age", "the old", 2, 2]
    ]
    near = found.near.set_index(["side", "category"])
    # "one two three four six" shares four of five words with "one two three four five": 8 of 10.
    assert near.loc[("first", "all"), ["texts", "near"]].tolist() == [4, 1]
    assert near.loc[("second", "all"), ["texts", "near"]].tolist() == [3, 2]
    assert near.share["second", "age"] == 1
    assert found.pairs.rouge_l.tolist() == pytest.approx([1, 1, 0.8])
    stricter = compare_sets.compare(FIRST, SECOND, 0.9).near.set_index(["side", "category"])
    assert stricter.near["second", "all"] == 1
    # Nine of ten words each: 2 * 9 / 20, which is near from 0.9 on.
    one, other = (texts(("age", "t", "g", f"a b c d e f g h i {last}")) for last in "jk")
    assert compare_sets.compare(one, other, 0.9).near.near.tolist() == [1, 1, 1, 1]


def test_findings_count_what_two_sets_share() -> None:
    assert compare_sets.findings(compare_sets.compare(FIRST, SECOND), "Ours", "Theirs") == [
        "Of 5 different topics 1 are in both; 2 are in Ours alone, 2 in Theirs alone.",
        "Of 4 different groups 1 are in both; 2 are in Ours alone, 1 in Theirs alone.",
        "1 of 4 texts of Ours (25%) have a near-duplicate in Theirs (ROUGE-L of 0.8 or more).",
        "2 of 3 texts of Theirs (67%) have a near-duplicate in Ours (ROUGE-L of 0.8 or more).",
    ]


def test_texts_of_two_languages_are_not_near() -> None:
    found = compare_sets.compare(FIRST, SECOND.assign(language="fr"))
    assert not found.near.texts.any()
    assert found.near.share.isna().all()
    assert found.pairs.empty
    assert compare_sets.findings(found, "a", "b")[-1] == "a and b have no texts in one language."


@pytest.mark.parametrize("near", [0, 1.1, -1, float("nan"), "0.8", None])
def test_a_wrong_threshold_is_refused(refusal, near) -> None:
    assert "above 0 and at most 1" in refusal(compare_sets.compare, FIRST, SECOND, near)


def test_an_empty_set_is_refused(refusal) -> None:
    assert "no texts" in refusal(compare_sets.compare, FIRST, SECOND.head(0))


@pytest.mark.parametrize("benchmark", ["mcbe", "cbbq", "nli_coal"])
def test_samples_share_everything_with_themselves(benchmark: str) -> None:
    (samples,) = data_quality.open_sets([benchmark])
    assert data_quality.compare([samples]) == []
    assert data_quality.pair_findings([])[0].startswith("These are the samples")
    (pair,) = data_quality.compare([samples], {benchmark: str(SAMPLES / benchmark)})
    assert not pair.shared.counts[["first_only", "second_only"]].any(axis=None)
    assert (pair.shared.near.share == 1).all()
    assert len(set(pair.names)) == 2
    fig = drawn(pictures.plot_shared(pair.shared, benchmark, pair.names))
    assert len(fig.axes[0].get_yticks()) == samples.texts.category.nunique()


def test_the_picture_counts_what_the_table_does() -> None:
    shared = compare_sets.compare(FIRST, SECOND)
    fig = drawn(pictures.plot_shared(shared, "mcbe", ("Ours", "x" * 60)))
    assert sum(bar.get_width() for bar in fig.axes[0].patches) == 5
    assert fig.get_label().startswith("Of 5 different topics 1 are in both")
