"""Diversity: ROUGE-L by a slow table and by hand, intervals by leaving out one by one, duplicates, words, annotators."""

import math
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats import inter_rater

from bench import data
from bench.core.errors import BadInput
from bench.data import cbbq
from bench.data import texts as overview
from bench.metrics import agreement, diversity
from bench.metrics.bootstrap import LEVEL


def slow(first, second):
    """ROUGE-L by the textbook's table of longest common subsequences."""
    one, other = diversity.tokens(first), diversity.tokens(second)
    table = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i, a in enumerate(one):
        for j, b in enumerate(other):
            table[i + 1][j + 1] = (
                table[i][j] + 1 if a == b else max(table[i][j + 1], table[i + 1][j])
            )
    return 2 * table[-1][-1] / (len(one) + len(other)) if one or other else 1.0


def rows(*texts):
    """Texts from (category, text) or (category, text, whole); all Chinese."""
    made = [
        overview.Text("cbbq", f"{one[0]}:{k}", one[0], "zh", "t", ("g",), one[1], one[-1], 2)
        for k, one in enumerate(texts)
    ]
    return pd.DataFrame(made, columns=list(overview.Text._fields))


SCENES = rows(
    ("age", "甲乙丙丁"),
    ("age", "甲乙丙戊"),
    ("age", "己庚辛壬"),
    ("race", "甲乙癸子"),
    ("race", "己庚丑寅"),
)


def test_rouge_l_by_hand():
    # 甲丙丁 is common: 2 * 3 / (4 + 5). Words: the, sat, `.`: 2 * 3 / (4 + 5), whatever their case.
    assert diversity.rouge_l(["甲乙丙丁"], ["甲 丙戊丁己"])[0, 0] == pytest.approx(2 * 3 / 9)
    assert diversity.rouge_l(["The cat sat."], ["the dog sat down."])[0, 0] == pytest.approx(
        2 * 3 / 9
    )
    assert diversity.rouge_l(["甲"], ["乙"])[0, 0] == 0


@settings(max_examples=20, deadline=None)
@given(st.lists(st.text("甲乙丙丁 aB.", max_size=90), min_size=2, max_size=5))
def test_rouge_l_is_that_of_the_slow_table(texts):
    found = diversity.rouge_l(texts, texts)
    expected = [[slow(a, b) for b in texts] for a in texts]
    assert found == pytest.approx(np.array(expected), abs=1e-6)
    assert found == pytest.approx(diversity.rouge_l(texts, list(texts)))


def test_means_within_and_across():
    table = diversity.diversity(SCENES).table.set_index("category")
    # Within age 3 / 4, 0, 0; within race 0; across 甲乙: 1 / 2 twice, 己庚: 1 / 2 once, of six pairs.
    assert table["mean"]["age"] == pytest.approx(0.25)
    assert table["mean"]["race"] == 0
    assert table["mean"]["all"] == pytest.approx(0.75 / 4)
    assert table["mean"]["across"] == pytest.approx(1.5 / 6)
    assert list(table.pairs[["all", "across", "age", "race"]]) == [4, 6, 3, 1]
    assert table.below_half["age"] == pytest.approx(2 / 3)
    assert math.isnan(table.ci_low["race"])  # two texts leave nothing when one is left out
    between = diversity.diversity(SCENES).between
    assert between.loc["age", "race"] == between.loc["race", "age"] == pytest.approx(0.25)
    assert between.loc["age", "age"] == pytest.approx(0.25)


def test_the_interval_is_that_of_leaving_out_texts_one_by_one():
    dice = np.random.default_rng(3)
    texts = ["".join(dice.choice(list("甲乙丙丁戊己"), 12)) for _ in range(9)]
    values = np.array([[slow(a, b) for b in texts] for a in texts])

    def mean(some):
        return np.mean([values[a, b] for a, b in combinations(some, 2)])

    without = np.array([mean([k for k in range(9) if k != gone]) for gone in range(9)])
    error = np.sqrt(8 / 9 * ((without - without.mean()) ** 2).sum())
    found = diversity.jackknife(values, np.triu(np.ones((9, 9), bool), 1))
    assert found == pytest.approx(
        (mean(range(9)), mean(range(9)) - 1.96 * error, mean(range(9)) + 1.96 * error)
    )
    assert LEVEL == 0.95


def test_the_histogram_counts_every_pair_once():
    found = diversity.diversity(SCENES).histogram
    assert found.within.sum() == pytest.approx(1)
    assert found.across.sum() == pytest.approx(1)
    # 3 / 4 is one of four pairs.
    assert found.within[found.low.sub(0.75).abs().idxmin()] == pytest.approx(1 / 4)


def test_near_duplicates_are_the_pairs_above_the_threshold():
    long = "甲乙丙丁戊己庚辛壬癸"
    found = diversity.diversity(
        rows(("age", long), ("race", long[:-1] + "子"), ("race", "子丑寅卯"))
    ).near
    assert list(found.rouge_l) == pytest.approx([0.9])
    assert (found.item_a[0], found.item_b[0]) == ("age:0", "race:1")


def test_the_same_text_in_a_category_counts_once_and_in_two_twice():
    again = rows(
        ("age", "甲乙", "1"), ("age", "甲乙", "2"), ("race", "甲乙", "3"), ("race", "丙丁", "3")
    )
    table = diversity.diversity(again).table.set_index("category")
    assert (table.texts["age"], table.distinct["age"], table.pairs["age"]) == (2, 1, 0)
    assert table.note["age"] == "no pair of distinct texts"
    assert table["mean"]["across"] == pytest.approx(0.5)  # 甲乙 with itself 1, with 丙丁 0
    found = diversity.duplicates(again)
    assert list(found["rows"]) == [2]
    assert found["items"][0] == "race:2, race:3"


def test_languages_are_not_compared():
    mixed = pd.concat([SCENES, SCENES.assign(language="ja", category="ja")], ignore_index=True)
    assert diversity.diversity(mixed).table.set_index("category").pairs["across"] == 6


def test_of_many_texts_a_stated_number_is_drawn():
    dice = np.random.default_rng(1)
    many = rows(*[("age", "".join(dice.choice(list("甲乙丙丁戊己庚辛"), 9))) for _ in range(60)])
    found = diversity.diversity(many, largest=20)
    whole = found.table.set_index("category").loc["all"]
    assert whole.compared == 20
    assert whole.pairs == 190
    assert diversity.diversity(many, largest=20).each.equals(found.each)


def test_nearest_texts_of_another_data_set():
    other = rows(("age", "甲乙丙丑"), ("age", "辛壬癸子"))
    shared, near = diversity.overlaps({"one": SCENES, "two": other})
    by_hand = [max(slow(a, b) for b in other.text) for a in SCENES.text]
    row = shared[shared["first"] == "one"].iloc[0]
    assert row["mean"] == pytest.approx(np.mean(by_hand))
    assert row.highest == pytest.approx(0.75)
    assert row.texts == 5
    assert near.empty
    assert diversity.overlaps({"one": SCENES, "two": other.assign(language="ja")})[0].empty


def test_nothing_to_compare_is_refused():
    with pytest.raises(BadInput, match="no texts"):
        diversity.diversity(SCENES.iloc[:0])


@pytest.mark.parametrize("name", ["mcbe", "cbbq", "nli_coal"])
def test_our_samples_are_read_and_counted(name):
    source = data.find(name, data.SAMPLES / name)
    texts, items = overview.texts(source), data.load(source)
    assert texts["items"].sum() == len(items)
    assert texts.item_id.is_unique
    assert set(texts.category) == {item.category for item in items}
    assert diversity.coverage(texts, "category").texts.sum() == len(texts)
    assert not texts.text.str.contains(r"PLH|NAME|\[Sub\]").any()
    assert {"kind", "what", "findings", "example"} <= set(overview.audit(source))


def test_expanded_questions_stand_for_their_templates():
    source = data.find("cbbq", data.SAMPLES / "cbbq")
    texts = overview.texts(source)
    questions = [one for one in data.load(source, ["gender"]) if one.condition == "ambiguous"]
    found = pd.DataFrame(cbbq._question_texts(questions, "zh"))
    whole = texts[texts.item_id.str.startswith("gender:ambiguous")]
    assert list(found.item_id) == list(whole.item_id)
    assert list(found["items"]) == list(whole["items"])
    assert list(found.text) == list(whole.text)


@pytest.mark.slow
@pytest.mark.parametrize(("reliability", "raters"), [(0.9, 2), (0.7, 3)])
def test_simulated_annotators_have_the_kappa_that_was_put_in(reliability, raters):
    dice = np.random.default_rng(2)
    truth = pd.DataFrame(
        {
            "category": "age",
            "item_id": map(str, range(6000)),
            "topic": dice.choice(list("aaab"), 6000),
        }
    )
    made = agreement.SimulatedAnnotators(reliability, raters, seed=1)
    found = agreement.kappas(made.annotate(truth)).iloc[0]
    assert made.kappa == pytest.approx(reliability**2)
    assert found.kappa == pytest.approx(made.kappa, abs=0.03)
    assert found.ci_low < made.kappa < found.ci_high


def test_kappas_by_category_are_those_of_statsmodels(tmp_path):
    dice = np.random.default_rng(4)
    given = [
        (f"{c}:{k}", r, str(dice.integers(3)))
        for c in ("age", "race")
        for k in range(30)
        for r in "xyz"
    ]
    path = tmp_path / "mine.csv"
    pd.DataFrame(given, columns=["item_id", "rater", "rating"]).to_csv(path, index=False)
    annotations = agreement.read_annotations(path)
    found = agreement.kappas(annotations).set_index("category")
    for name in ("age", "race"):
        some = annotations[annotations.category == name]
        table = some.pivot_table(
            index="item_id", columns="rater", values="rating", aggfunc="first"
        ).to_numpy()
        assert found.kappa[name] == pytest.approx(
            inter_rater.fleiss_kappa(inter_rater.aggregate_raters(table)[0])
        )
    two = agreement.kappas(annotations[annotations.rater != "z"]).set_index("category")
    counts = pd.crosstab(
        *[
            list(annotations[(annotations.rater == r) & (annotations.category == "age")].rating)
            for r in "xy"
        ]
    )
    assert two.kappa["age"] == pytest.approx(inter_rater.cohens_kappa(counts.to_numpy()).kappa)
    assert agreement.band(0.81) == "almost perfect"
    assert [agreement.band(k) for k in (0.8, 0.0, -0.1, math.nan)] == [
        "substantial",
        "poor",
        "poor",
        "",
    ]


@pytest.mark.parametrize(
    ("text", "levels", "message"),
    [
        ("item_id,rater\na:1,x\n", False, "rating"),
        ("item_id,rater,rating\n", False, "no rows"),
        ("item_id,rater,rating\na:1,x,\n", False, "row 1, column `rating`: is empty"),
        ("item_id,rater,rating\na:1,x,11\n", True, "'11' is no severity from 0 to 10"),
        ("item_id,rater,rating\na:1,x,2\n", True, "two raters"),
    ],
)
def test_wrong_annotations_are_refused_by_place(tmp_path, text, levels, message):
    path = tmp_path / "mine.csv"
    path.write_text(text, "utf-8")
    with pytest.raises(BadInput, match=message):
        agreement.kappas(agreement.read_annotations(path, levels=levels))


def test_a_text_counts_for_each_group_that_it_compares_and_one_without_groups_for_none() -> None:
    rows = [
        overview.Text("mcbe", f"age:{k}", "age", "zh", "t", groups, f"text {k}", f"text {k}", 1)
        for k, groups in enumerate([("old", "young"), ("old",), ()])
    ]
    texts = pd.DataFrame(rows, columns=list(overview.Text._fields))
    found = diversity.coverage(texts, "group")
    assert dict(zip(found.group, found.texts, strict=True)) == {"old": 2, "young": 1}
    assert diversity.coverage(texts, "topic").texts.tolist() == [3]
