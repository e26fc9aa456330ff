"""Diversity: ROUGE-L by a slow table and by hand, intervals by leaving out, duplicates."""

import math
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.data.texts import Text
from bench.metrics import diversity


def slow(first, second):
    """ROUGE-L by the textbook's table of longest common subsequences."""
    one, other = diversity.tokens(first), diversity.tokens(second)
    table = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i, a in enumerate(one):
        for j, b in enumerate(other):
            longest = max(table[i][j + 1], table[i + 1][j])
            table[i + 1][j + 1] = table[i][j] + 1 if a == b else longest
    return 2 * table[-1][-1] / (len(one) + len(other)) if one or other else 1.0


def rows(*each):
    """Texts from (category, text) or (category, text, whole row); all Chinese."""
    made = [
        Text("cbbq", f"{row[0]}:{k}", row[0], "zh", "t", ("g",), row[1], row[-1], 2)
        for k, row in enumerate(each)
    ]
    return pd.DataFrame(made, columns=list(Text._fields))


SCENES = rows(
    ("age", "甲乙丙丁"),
    ("age", "甲乙丙戊"),
    ("age", "己庚辛壬"),
    ("race", "甲乙癸子"),
    ("race", "己庚丑寅"),
)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.text("甲乙丙丁 aB.", max_size=90), min_size=2, max_size=5))
def test_rouge_l_is_that_of_the_slow_table(texts):
    values = diversity.rouge_l(texts, texts)
    assert values == pytest.approx(np.array([[slow(a, b) for b in texts] for a in texts]), abs=1e-6)


def test_means_within_and_across_languages_apart():
    mixed = pd.concat([SCENES, SCENES.assign(language="ja", category="ja")], ignore_index=True)
    assert diversity.diversity(mixed).table.set_index("category").pairs["across"] == 6
    table = diversity.diversity(SCENES).table.set_index("category")
    # Within age 3 / 4, 0, 0; within race 0; across 甲乙: 1 / 2 twice, 己庚: 1 / 2 once, of six.
    assert table["mean"].to_dict() == pytest.approx(
        {"all": 0.75 / 4, "across": 1.5 / 6, "age": 0.25, "race": 0}
    )
    assert list(table.pairs) == [4, 6, 3, 1]
    assert table.below_half["age"] == pytest.approx(2 / 3)
    assert math.isnan(table.ci_low["race"])  # two texts leave nothing when one is left out


def test_the_interval_is_that_of_leaving_out_texts_one_by_one():
    rng = np.random.default_rng(3)
    texts = ["".join(rng.choice(list("甲乙丙丁戊己"), 12)) for _ in range(9)]
    values = np.array([[slow(a, b) for b in texts] for a in texts])

    def mean(kept):
        return np.mean([values[a, b] for a, b in combinations(kept, 2)])

    without = np.array([mean([k for k in range(9) if k != gone]) for gone in range(9)])
    arm = 1.96 * np.sqrt(8 / 9 * ((without - without.mean()) ** 2).sum())
    result = diversity.jackknife(values, np.triu(np.ones((9, 9), bool), 1))
    middle = mean(range(9))
    assert result == pytest.approx((middle, middle - arm, middle + arm))


def test_near_and_exact_duplicates():
    long = "甲乙丙丁戊己庚辛壬癸"
    texts = rows(("age", long), ("race", long[:-1] + "子"), ("race", "子丑寅卯"))
    (near,) = diversity.diversity(texts).near.itertuples()
    assert (near.rouge_l, near.item_a, near.item_b) == (pytest.approx(0.9), "age:0", "race:1")
    # The same text counts once in a category, and twice in two.
    pairs = [("age", "甲乙"), ("age", "甲乙"), ("race", "甲乙"), ("race", "丙丁")]
    again = rows(*((*pair, whole) for pair, whole in zip(pairs, "1233", strict=True)))
    table = diversity.diversity(again).table.set_index("category")
    assert table.loc["age", ["texts", "distinct", "pairs"]].tolist() == [2, 1, 0]
    assert table.note["age"] == "no pair of distinct texts"
    assert table["mean"]["across"] == pytest.approx(0.5)  # 甲乙 with itself 1, with 丙丁 0
    duplicates = diversity.duplicates(again)
    assert duplicates[["rows", "items"]].to_numpy().tolist() == [[2, "race:2, race:3"]]


def test_nearest_texts_of_another_data_set():
    other = rows(("age", "甲乙丙丑"), ("age", "辛壬癸子"))
    shared, near = diversity.overlaps({"one": SCENES, "two": other})
    row = shared[shared["first"] == "one"].iloc[0]
    by_hand = np.mean([max(slow(a, b) for b in other.text) for a in SCENES.text])
    assert [row["mean"], row.highest, row.texts] == pytest.approx([by_hand, 0.75, 5])
    assert near.empty
    _, near = diversity.overlaps({"one": SCENES, "two": other}, near=0.75)
    assert set(near.rouge_l) == {0.75}
    assert diversity.overlaps({"one": SCENES, "two": other.assign(language="ja")})[0].empty
