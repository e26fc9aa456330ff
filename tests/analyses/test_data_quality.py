"""Data quality: findings and pictures of data sets, two sets compared by hand, and words."""

import math
import subprocess
import sys
from dataclasses import replace

import pandas as pd
import pytest

from bench.analyses import data_quality
from bench.analyses.data_quality import Annotations, DataSet
from bench.data import SAMPLES
from bench.figures import style
from tests.helpers.drawing import drawn, ticks, told


@pytest.fixture(scope="module")
def sets():
    return data_quality.open_sets(["mcbe", "nli_coal"], "samples")


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


@pytest.fixture
def pair(sets, monkeypatch):
    """Compare two frames of texts as if they were data sets of these names."""

    def compare(first, second, near=0.8, names=("Ours", "Theirs")):
        source = replace(sets[0].source, found="--data")
        one, other = (
            DataSet(replace(source, name=name), frame)
            for name, frame in zip(names, (first, second), strict=True)
        )
        monkeypatch.setattr(DataSet, "read", lambda *_: other)
        (found,) = data_quality.compare([one], {"mcbe": "theirs"}, near)
        return found

    return compare


def test_data_sets_are_described(sets):
    assert [own.title for own in sets] == ["McBE", "NLI-CoAL"]
    assert sets[0].finding().startswith("McBE: two texts of one category share 0.")
    rated = data_quality.annotations(sets)
    assert "simulated annotators of the topics of McBE agree with kappa" in rated[0].sentence()
    assert len(data_quality.notes(sets, rated)) == 2
    stacked = data_quality.stacked(sets, [own.coverage("category") for own in sets])
    assert list(dict.fromkeys(stacked.benchmark)) == ["McBE", "NLI-CoAL"]
    shared, _ = data_quality.overlaps(sets[:1], {"NLI-CoAL": str(SAMPLES / "nli_coal")})
    assert set(shared.language) == {"zh"}
    assert set(shared.second) == {"McBE", "other NLI-CoAL"}
    assert "(Chinese) come nearest to those of" in data_quality.overlap_finding(shared)
    assert "same language" in data_quality.overlap_finding(shared[:0])
    assert list(data_quality.provenance(sets)["rows"]) == [96, len(sets[1].texts)]
    with pytest.raises(Exception, match="cbbq"):
        data_quality.open_sets(["mcbe"], {"cbbq": "x"})


def test_annotations_of_a_file(sets, tmp_path):
    rows = "".join(f"age:{k},{rater},{k % 2}\n" for k in range(1, 9) for rater in "ab")
    (tmp_path / "ours.csv").write_text("item_id,rater,rating\n" + rows)
    (rated,) = data_quality.annotations(sets, str(tmp_path / "ours.csv"))
    assert "the annotators of ours.csv agree with kappa 1.00" in rated.sentence()
    assert math.isnan(rated.known)
    assert len(data_quality.notes(sets[:0], [rated])) == 0


def test_pictures_show_the_tables(sets, monkeypatch):
    for by in ("category", "topic", "group"):
        counted = sets[0].coverage(by)
        ax = drawn(data_quality.plot_coverage(sets[0], by)).axes[0]
        widths = [bar.get_width() for bar in ax.containers[0]]
        assert widths == sorted(counted.texts, reverse=True)[: data_quality.BARS]
        more = len(counted) > data_quality.BARS
        assert ("more are in the table" in ax.get_xlabel()) == more
    left, right = drawn(data_quality.plot_overlap(sets[0])).axes
    across = sets[0].diversity.table.set_index("category")["mean"]["across"]
    assert len(left.patches) == 2
    assert len(ticks(right.get_yticklabels())) == 12
    assert any(list(line.get_xdata()) == [across] * 2 for line in right.lines)
    assert len(drawn(data_quality.plot_between(sets[0])).axes[0].texts) == 144
    # Two languages have nothing across them.
    assert len(drawn(data_quality.plot_overlap(sets[1])).axes[0].patches) == 1
    assert data_quality.plot_between(sets[1]) is None
    # Where no font shows the names, bars are numbered and there are no clouds.
    monkeypatch.setattr(style, "fonts", lambda: [style.LATIN_FONT])
    ax = drawn(data_quality.plot_coverage(sets[0], "topic")).axes[0]
    assert ticks(ax.get_yticklabels())[:2] == ["row 1 of the table", "row 2 of the table"]
    assert data_quality.plot_clouds(data_quality.word_counts(sets[0].texts), "mcbe") is None


def test_kappas_are_sorted_and_gaps_are_named():
    kappas = pd.DataFrame(
        {
            "category": ["all", "age", "race"],
            "kappa": [0.7, 0.9, math.nan],
            "ci_low": [0.6, math.nan, math.nan],
            "ci_high": [0.8, math.nan, math.nan],
        }
    )
    for known, start in ((0.81, "Simulated annotators agree"), (math.nan, "Annotators agree")):
        fig = drawn(data_quality.plot_kappas(Annotations("mcbe", "", known, kappas), "mcbe"))
        labels = ticks(fig.axes[0].get_yticklabels())
        assert labels[-1] == "all"
        assert "race" in labels[0]
        assert "undefined" in told(fig.axes[0])
        assert fig.get_label() == f"{start} with kappa 0.70 to 0.90."
    nothing = Annotations("mcbe", "", math.nan, kappas.assign(kappa=math.nan))
    assert drawn(data_quality.plot_kappas(nothing, "mcbe")).get_label() == "No kappa is defined."


def test_topics_groups_and_near_texts_by_hand(pair) -> None:
    found = pair(FIRST, SECOND)
    counts = found.counts.set_index(["by", "category"])
    assert counts.loc["topic", "all"].tolist() == [1, 2, 2]
    assert counts.loc["topic", "age"].tolist() == [1, 1, 1]
    assert counts.loc["group", "age"].tolist() == [1, 1, 0]
    assert counts.loc["group", "race"].tolist() == [0, 1, 0]
    assert counts.loc["topic", "sport"].tolist() == [0, 0, 1]
    both = found.values[(found.values.by == "group") & (found.values["where"] == "both")]
    values = both[["category", "value", "first", "second"]].values.tolist()
    assert values == [["age", "the old", 2, 2]]
    near = found.near.set_index(["side", "category"])
    # "one two three four six" shares four of five words with "one two three four five": 8 of 10.
    assert near.loc[("first", "all"), ["texts", "near"]].tolist() == [4, 1]
    assert near.loc[("second", "all"), ["texts", "near"]].tolist() == [3, 2]
    assert near.share["second", "age"] == 1
    assert found.pairs.rouge_l.tolist() == pytest.approx([1, 1, 0.8])
    assert found.findings() == [
        "1 of 4 texts of Ours (25%) have a near-duplicate in Theirs (ROUGE-L of 0.8 or more).",
        "2 of 3 texts of Theirs (67%) have a near-duplicate in Ours (ROUGE-L of 0.8 or more).",
    ]
    fig = drawn(data_quality.plot_shared(pair(FIRST, SECOND, names=("Ours", "x" * 60))))
    assert sum(bar.get_width() for bar in fig.axes[0].patches) == 5
    assert fig.get_label() == "1 of 5 topics and 1 of 4 groups are in both."
    assert pair(FIRST, SECOND, 0.9).near.set_index(["side", "category"]).near["second", "all"] == 1
    # Nine of ten words each: 2 * 9 / 20, which is near from 0.9 on.
    one, other = (texts(("age", "t", "g", f"a b c d e f g h i {last}")) for last in "jk")
    assert pair(one, other, 0.9).near.near.tolist() == [1, 1, 1, 1]


def test_texts_of_two_languages_are_not_near(pair) -> None:
    found = pair(FIRST, SECOND.assign(language="fr"))
    assert not found.near.texts.any()
    assert found.near.share.isna().all()
    assert found.pairs.empty
    assert found.findings() == []
    assert "no texts\nin one language" in told(drawn(data_quality.plot_shared(found)).axes[2])


@pytest.mark.parametrize("near", [0, 1.1, -1, float("nan"), "0.8", None])
def test_a_wrong_threshold_is_refused(sets, refusal, near) -> None:
    assert "above 0 and at most 1" in refusal(data_quality.compare, sets, {}, near)


@pytest.mark.parametrize("benchmark", ["mcbe", "cbbq", "nli_coal"])
def test_samples_share_everything_with_themselves(benchmark: str) -> None:
    (samples,) = data_quality.open_sets([benchmark])
    assert data_quality.compare([samples]) == []
    assert data_quality.pair_findings([])[0].startswith("These are the samples")
    pairs = data_quality.compare([samples], {benchmark: str(SAMPLES / benchmark)})
    assert "(100%)" in data_quality.pair_findings(pairs)[0]
    assert not pairs[0].counts[["first_only", "second_only"]].any(axis=None)
    assert len(set(pairs[0].names)) == 2
    fig = drawn(data_quality.plot_shared(pairs[0]))
    assert len(fig.axes[0].get_yticks()) == samples.texts.category.nunique()


def test_words_are_cut_and_common_ones_left_out():
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
    counted = data_quality.word_counts(japanese)
    assert counted.empty
    assert list(data_quality.word_notes(japanese, counted)) == [
        "Words of Japanese are not counted: the workbench cuts Chinese and English alone."
    ]


def test_clouds_leave_out_words_that_no_font_shows(sets):
    counted = data_quality.word_counts(sets[0].texts)
    counted = counted[counted.category.isin(["gender", "age"])]
    assert list(data_quality.word_notes(sets[0].texts, counted)) == []
    fig = drawn(data_quality.plot_clouds(counted, "mcbe"))
    assert sum(bool(ax.images) for ax in fig.axes) == 2
    lost = counted.head(1).assign(word="\U0001f12f", category="race")  # no font has every sign
    every = pd.concat([counted, lost])
    assert next(iter(data_quality.word_notes(sets[0].texts, every))).startswith("1 words")
    assert len(drawn(data_quality.plot_clouds(every, "mcbe")).axes) == 2
    assert data_quality.plot_clouds(lost, "mcbe") is None


def test_words_need_the_packages_of_the_extra(monkeypatch, refusal):
    monkeypatch.setattr(data_quality, "find_spec", lambda name: None if name == "jieba" else name)
    reason = data_quality.missing_packages()
    assert "jieba not installed" in reason
    assert 'pip install "bias-workbench[words]"' in reason
    assert refusal(data_quality.word_counts, FIRST) == reason
    slow = "{'jieba', 'wordcloud', 'torch'}"
    code = f"import bench.analyses.data_quality, sys; print({slow} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()", "loaded before words are counted"
