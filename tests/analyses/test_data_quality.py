"""Data quality: two sets compared by hand, annotations, words, and pictures of the counts."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from bench.analyses import data_quality
from bench.analyses.data_quality import Annotations, DataSet
from bench.core.errors import BadInput
from bench.data import SAMPLES
from bench.figures import style
from tests.helpers.drawing import drawn, ticks, told

Compare = Callable[..., data_quality.Pair]


@pytest.fixture(scope="module")
def sets() -> list[DataSet]:
    return data_quality.open_sets(["mcbe", "nli_coal"], "samples")


def texts(*rows: tuple[str, str, str, str], language: str = "en") -> pd.DataFrame:
    """Rows of category, topic, group and text."""
    table = pd.DataFrame(rows, columns=["category", "topic", "group", "text"])
    table["groups"] = [(group,) for group in table.pop("group")]
    names = [f"{name}:{k}" for k, name in enumerate(table.category, 1)]
    more = {"whole": table.text, "benchmark": "mcbe", "items": 1}
    return table.assign(item_id=names, language=language, **more)


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


@pytest.fixture
def pair(sets: list[DataSet], monkeypatch: pytest.MonkeyPatch) -> Compare:
    """Compare two frames of texts as if they were data sets of these names."""

    def compare(first: pd.DataFrame, second: pd.DataFrame, near: float = 0.8) -> data_quality.Pair:
        source = replace(sets[0].source, found="--data")
        one = DataSet(replace(source, name="Ours"), first)
        other = DataSet(replace(source, name="Theirs"), second)
        monkeypatch.setattr(DataSet, "read", lambda *_: other)
        return data_quality.compare([one], {"mcbe": "theirs"}, near)[0]

    return compare


def test_topics_groups_and_near_texts_by_hand(pair: Compare) -> None:
    found = pair(FIRST, SECOND)
    counts = found.counts.set_index(["by", "category"])
    for place, shared in {
        ("topic", "all"): [1, 2, 2],
        ("topic", "age"): [1, 1, 1],
        ("group", "age"): [1, 1, 0],
        ("group", "race"): [0, 1, 0],
        ("topic", "sport"): [0, 0, 1],
    }.items():
        assert counts.loc[place].tolist() == shared, place
    both = found.values[(found.values.by == "group") & (found.values["where"] == "both")]
    values = both[["category", "value", "first", "second"]].to_numpy().tolist()
    assert values == [["age", "the old", 2, 2]]
    near = found.near.set_index(["side", "category"])
    # "one two three four six" shares four of five words with "one two three four five": 8 of 10.
    assert near.loc[("first", "all"), ["texts", "near"]].tolist() == [4, 1]
    assert near.loc[("second", "all"), ["texts", "near"]].tolist() == [3, 2]
    assert near.share["second", "age"] == 1
    assert found.pairs.rouge_l.tolist() == pytest.approx([1, 1, 0.8])
    assert "(67%)" in found.findings()[1]
    assert sum(bar.get_width() for bar in drawn(data_quality.plot_shared(found)).axes[0].patches)
    assert pair(FIRST, SECOND, 0.9).near.set_index(["side", "category"]).near["second", "all"] == 1
    # Nine of ten words each: 2 * 9 / 20, which is near from 0.9 on.
    one, other = (texts(("age", "t", "g", f"a b c d e f g h i {last}")) for last in "jk")
    assert pair(one, other, 0.9).near.near.tolist() == [1, 1, 1, 1]
    # Texts of two languages are never near.
    french = pair(FIRST, SECOND.assign(language="fr"))
    assert french.near.share.isna().all()
    assert french.pairs.empty


@pytest.mark.parametrize("benchmark", ["mcbe", "cbbq", "nli_coal"])
def test_samples_share_everything_with_themselves(benchmark: str) -> None:
    (samples,) = data_quality.open_sets([benchmark])
    assert data_quality.compare([samples]) == []
    (pair,) = data_quality.compare([samples], {benchmark: str(SAMPLES / benchmark)})
    assert "(100%)" in pair.findings()[0]
    assert not pair.counts[["first_only", "second_only"]].any(axis=None)


def test_data_sets_are_described(sets: list[DataSet], tmp_path: Path, refusal: Any) -> None:
    shared, _ = data_quality.overlaps(sets[:1], {"NLI-CoAL": str(SAMPLES / "nli_coal")})
    assert set(shared.language) == {"zh"}
    assert set(shared.second) == {"McBE", "other NLI-CoAL"}
    assert list(data_quality.provenance(sets)["rows"]) == [96, len(sets[1].texts)]
    with pytest.raises(BadInput, match="cbbq"):
        data_quality.open_sets(["mcbe"], {"cbbq": "x"})
    for near in (0, 1.1, math.nan, "0.8"):
        assert "above 0 and at most 1" in refusal(data_quality.compare, sets, {}, near)
    assert not math.isnan(data_quality.annotations(sets)[0].known)
    rows = "".join(f"age:{k},{rater},{k % 2}\n" for k in range(1, 9) for rater in "ab")
    (tmp_path / "ours.csv").write_text("item_id,rater,rating\n" + rows)
    (rated,) = data_quality.annotations(sets, str(tmp_path / "ours.csv"))
    assert rated.kappas.kappa[0] == 1
    assert math.isnan(rated.known)


def test_pictures_show_the_tables(sets: list[DataSet], monkeypatch: pytest.MonkeyPatch) -> None:
    for by in ("category", "topic", "group"):
        bars = drawn(data_quality.plot_coverage(sets[0], by)).axes[0].containers[0]
        counted = sorted(sets[0].coverage(by).texts, reverse=True)[: data_quality.BARS]
        assert [bar.get_width() for bar in bars] == counted
    for data in sets:
        drawn(data_quality.plot_overlap(data))
    assert len(drawn(data_quality.plot_between(sets[0])).axes[0].texts) == 12 * 12
    assert data_quality.plot_between(sets[1]) is None, "two languages have nothing across them"
    missing = [math.nan] * 2
    kappas = {"kappa": [0.7, 0.9, math.nan], "ci_low": [0.6, *missing], "ci_high": [0.8, *missing]}
    table = pd.DataFrame({"category": ["all", "age", "race"], **kappas})
    rated = data_quality.plot_kappas(Annotations("mcbe", "", 0.81, table), "mcbe")
    assert "undefined" in told(drawn(rated).axes[0])
    # Where no font shows the names, bars are numbered and there are no clouds.
    monkeypatch.setattr(style, "fonts", lambda: [style.LATIN_FONT])
    names = ticks(drawn(data_quality.plot_coverage(sets[0], "topic")).axes[0].get_yticklabels())
    assert names[0] == "row 1 of the table"
    assert data_quality.plot_clouds(data_quality.word_counts(sets[0].texts), "mcbe") is None


def test_words_are_cut_and_common_ones_left_out() -> None:
    scenes = texts(
        ("age", "", "", "然后老人可能在公园里下棋"),
        ("age", "", "", "老人不会用手机"),
        ("race", "", "", "两位老人"),
        language="zh",
    )
    counted = data_quality.word_counts(scenes)
    age = counted[counted.category == "age"].set_index("word")
    assert (age.texts["老人"], age.of["老人"]) == (2, 2)
    assert "公园" in age.index
    assert not {"然后", "可能", "两位", "在"} & set(counted.word)
    english = scenes.assign(language="en", text="The old man and the nurse")
    assert set(data_quality.word_counts(english).word) == {"old", "man", "nurse"}
    japanese = scenes.assign(language="ja")
    nothing = data_quality.word_counts(japanese)
    assert nothing.empty
    assert "Japanese" in next(iter(data_quality.word_notes(japanese, nothing)))


def test_clouds_leave_out_words_that_no_font_shows(sets: list[DataSet]) -> None:
    counted = data_quality.word_counts(sets[0].texts)
    counted = counted[counted.category.isin(["gender", "age"])]
    lost = counted.head(1).assign(word="\U0001f12f", category="race")  # no font has every sign
    every = pd.concat([counted, lost])
    assert next(iter(data_quality.word_notes(sets[0].texts, every))).startswith("1 words")
    fig = drawn(data_quality.plot_clouds(every, "mcbe"))
    assert [bool(ax.images) for ax in fig.axes] == [True, True]


def test_words_need_the_packages_of_the_extra(monkeypatch: Any, refusal: Any) -> None:
    monkeypatch.setattr(data_quality, "find_spec", lambda name: None if name == "jieba" else name)
    assert "jieba not installed" in refusal(data_quality.word_counts, FIRST)
