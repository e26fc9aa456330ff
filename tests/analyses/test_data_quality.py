"""Data quality: two sets compared by hand, annotations, words, and pictures of the counts."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from bench.analyses import data_quality
from bench.analyses.data_quality import DataSet
from bench.core.errors import BadInput
from bench.data import SAMPLES
from tests.helpers.drawing import drawn

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
    for place, shared in ((("topic", "all"), [1, 2, 2]), (("group", "age"), [1, 1, 0])):
        assert counts.loc[place].tolist() == shared, place
    both = found.values[(found.values.by == "group") & (found.values["where"] == "both")]
    assert both[["category", "value", "first", "second"]].iloc[0].tolist() == [
        "age",
        "the old",
        2,
        2,
    ]
    near = found.near.set_index(["side", "category"])
    # "one two three four six" shares four of five words with "one two three four five": 8 of 10.
    assert near.loc[("second", "all"), ["texts", "near", "share"]].tolist() == [3, 2, 2 / 3]
    assert found.pairs.rouge_l.tolist() == pytest.approx([1, 1, 0.8])
    assert "(67\u00a0%)" in found.findings()[1]
    bars = drawn(data_quality.plot_shared(found)).axes[0].patches
    assert sum(bar.get_width() for bar in bars) == 5, "topics of both"
    # Texts of two languages are never near.
    french = pair(FIRST, SECOND.assign(language="fr"))
    assert french.near.share.isna().all()
    assert french.pairs.empty


def test_data_sets_are_described(sets: list[DataSet], tmp_path: Path, refusal: Any) -> None:
    shared, _ = data_quality.overlaps(sets[:1], {"NLI-CoAL": str(SAMPLES / "nli_coal")})
    assert set(shared.language) == {"zh"}
    assert list(data_quality.provenance(sets)["rows"]) == [96, len(sets[1].texts)]
    with pytest.raises(BadInput, match="cbbq"):
        data_quality.open_sets(["mcbe"], {"cbbq": "x"})
    for near in (0, 1.1, math.nan, "0.8"):
        assert "above 0 and at most 1" in refusal(data_quality.compare, sets, {}, near)
    rows = "".join(f"age:{k},{rater},{k % 2}\n" for k in range(1, 9) for rater in "ab")
    (tmp_path / "ours.csv").write_text("item_id,rater,rating\n" + rows)
    (rated,) = data_quality.annotations(str(tmp_path / "ours.csv"))
    assert rated.kappas.kappa[0] == 1
    drawn(data_quality.plot_kappas(rated, "mcbe"))
    assert data_quality.annotations() == []


def test_pictures_show_the_tables(sets: list[DataSet]) -> None:
    # What is even is a sentence, and no picture.
    even = data_quality.even_coverage(sets[0])
    for by in ("category", "topic", "group"):
        counted = sorted(sets[0].coverage(by).texts, reverse=True)[: data_quality.BARS]
        if len(set(sets[0].coverage(by).texts)) == 1:
            assert any(f"McBE: {counted[0]} " in text and by in text for text in even)
            assert data_quality.plot_coverage(sets[0], by) is None
            continue
        bars = drawn(data_quality.plot_coverage(sets[0], by)).axes[0].containers[0]
        assert [bar.get_width() for bar in bars] == counted
    drawn(data_quality.plot_overlap(sets[0]))
    assert data_quality.plot_between(sets[0]) is None
    assert data_quality.even_overlap(sets[0]).startswith("McBE: any two categories share 0.")


def test_words_are_cut_and_common_ones_left_out(monkeypatch: Any, refusal: Any) -> None:
    scenes = texts(
        ("age", "", "", "然后老人可能在公园里下棋"),
        ("age", "", "", "两位老人不会用手机"),
        language="zh",
    )
    counted = data_quality.word_counts(scenes)
    age = counted[counted.category == "age"].set_index("word")
    assert (age.texts["老人"], age.of["老人"]) == (2, 2)
    assert "公园" in age.index
    assert not {"然后", "可能", "两位", "在"} & set(counted.word)
    assert data_quality.word_counts(scenes.assign(language="ja")).empty
    # No font has a sign of private use.
    lost = pd.concat([counted, counted.head(1).assign(word="\ue000")])
    assert next(iter(data_quality.word_notes(scenes, lost))).startswith("1 words")
    drawn(data_quality.plot_clouds(lost, "mcbe"))
    monkeypatch.setattr(data_quality, "find_spec", lambda name: None if name == "jieba" else name)
    assert "jieba not installed" in refusal(data_quality.word_counts, FIRST)
