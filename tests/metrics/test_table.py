"""Two data sets beside each other: what both cover, what only one does, by hand; and the picture of it."""

import re

import pandas as pd
import pytest

from bench.analyses import curate_nli, quality
from bench.core.i18n import use_language
from bench.data import SAMPLES
from bench.figures import coverage as pictures
from bench.metrics import coverage
from tests.helpers.drawing import drawn


def texts(*rows: tuple[str, str, str, str], language: str = "en") -> pd.DataFrame:
    """Rows of category, topic, group and text."""
    table = pd.DataFrame(rows, columns=["category", "topic", "group", "text"])
    table["groups"] = [(one,) for one in table.pop("group")]
    names = [f"{one}:{k}" for k, one in enumerate(table.category, 1)]
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
    found = coverage.compare(FIRST, SECOND, 0.8)
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
    stricter = coverage.compare(FIRST, SECOND, 0.9).near.set_index(["side", "category"])
    assert stricter.near["second", "all"] == 1
    # Nine of ten words each: 2 * 9 / 20, which is near from 0.9 on.
    one, other = (texts(("age", "t", "g", f"a b c d e f g h i {last}")) for last in "jk")
    assert coverage.compare(one, other, 0.9).near.near.tolist() == [1, 1, 1, 1]


def test_what_was_found_is_told() -> None:
    told = coverage.findings(coverage.compare(FIRST, SECOND), "Ours", "Theirs")
    assert told == [
        "Ours has 2 categories, Theirs has 2 categories; 1 are in both; only Ours has race; only Theirs has sport.",
        "Of 5 different topics 1 are in both; 2 are in Ours alone (“tech”, “work”), 2 in Theirs alone (“home”, “club”).",
        "Of 4 different groups 1 are in both; 2 are in Ours alone (“the young”, “them”), 1 in Theirs alone (“members”).",
        "1 of 4 texts of Ours (25%) have a near-duplicate in Theirs (ROUGE-L of 0.8 or more).",
        "2 of 3 texts of Theirs (67%) have a near-duplicate in Ours (ROUGE-L of 0.8 or more).",
    ]


def test_texts_of_two_languages_are_not_near() -> None:
    found = coverage.compare(FIRST, SECOND.assign(language="fr"))
    assert not found.near.texts.any()
    assert found.near.share.isna().all()
    assert found.pairs.empty
    assert coverage.findings(found, "a", "b")[-1].startswith(
        "The two have no texts in one language"
    )


@pytest.mark.parametrize("near", [0, 1.1, -1, float("nan"), "0.8", None])
def test_a_threshold_that_is_none_is_refused(refusal, near) -> None:
    assert "above 0 and at most 1" in refusal(coverage.compare, FIRST, SECOND, near)


def test_an_empty_set_is_refused(refusal) -> None:
    assert "no texts" in refusal(coverage.compare, FIRST, SECOND.head(0))


@pytest.mark.parametrize("benchmark", ["mcbe", "cbbq", "nli_coal"])
def test_samples_beside_themselves_share_all(benchmark: str) -> None:
    (look,) = quality.looks([benchmark])
    assert quality.beside([look]) == []
    assert quality.of_beside([])[0].startswith("These are the samples")
    (one,) = quality.beside([look], {benchmark: str(SAMPLES / benchmark)})
    assert not one.found.counts[["first_only", "second_only"]].any(axis=None)
    assert (one.found.near.share == 1).all()
    assert len(set(one.names)) == 2
    fig = pictures.shared(one.found, benchmark, one.names)
    drawn(fig)
    assert len(fig.axes[0].get_yticks()) == look.texts.category.nunique()


def test_the_picture_counts_what_the_table_does() -> None:
    fig = pictures.shared(coverage.compare(FIRST, SECOND), "mcbe", ("Ours", "x" * 60))
    drawn(fig)
    topics = fig.axes[0]
    assert sum(bar.get_width() for bar in topics.patches) == 5
    assert fig.get_label().startswith("Ours has 2 categories")


def test_it_is_told_in_chinese() -> None:
    with use_language("zh"):
        fig = pictures.shared(
            coverage.compare(FIRST, SECOND.assign(language="fr")), "mcbe", ("甲", "乙")
        )
        told = [fig.get_label(), fig.get_suptitle(), *(ax.get_xlabel() for ax in fig.axes)]
        (captions,) = [
            curate_nli.draw_captions(pd.DataFrame({"why": ["", "is empty"], "frame": ["x", ""]}))
        ]
        assert captions is not None
        told += [captions.get_label(), captions.get_suptitle()]
    assert told[0].endswith("。")
    for text in told:
        # Names of categories and values are data.
        rest = re.sub(r"“[^”]*”|race|sport|ROUGE-L", "", text)
        assert not re.search(r"[A-Za-z]{2}", rest), text
