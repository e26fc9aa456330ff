"""Diversity: ROUGE-L by a slow table and by hand, intervals by leaving out, duplicates."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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


def texts(**categories):
    """Chinese texts by category, with blanks between them."""
    rows = [(name, text) for name, words in categories.items() for text in words.split()]
    table = pd.DataFrame(rows, columns=["category", "text"]).assign(language="zh")
    return table.assign(item_id=table.category + ":" + table.index.astype(str))


SCENES = texts(age="甲乙丙丁 甲乙丙戊 己庚辛壬", race="甲乙癸子 己庚丑寅")


@settings(max_examples=20, deadline=None)
@given(st.lists(st.text("甲乙丙丁 aB.", max_size=90), min_size=2, max_size=5))
def test_rouge_l_is_that_of_the_slow_table(each):
    values = diversity.rouge_l(each, each)
    assert values == pytest.approx(np.array([[slow(a, b) for b in each] for a in each]), abs=1e-6)


def test_means_within_and_across_categories_of_a_language():
    table = diversity.diversity(SCENES).table.set_index("category")
    # Within age 3 / 4, 0, 0; within race 0; across 甲乙: 1 / 2 twice, 己庚: 1 / 2 once, of six.
    assert table["mean"].to_dict() == pytest.approx(
        {"all": 0.75 / 4, "across": 1.5 / 6, "age": 0.25, "race": 0}
    )
    assert list(table.pairs) == [4, 6, 3, 1]
    assert table.below_half["age"] == pytest.approx(2 / 3)
    assert np.isnan(table.ci_low["race"])  # two texts leave nothing when one is left out
    mixed = pd.concat([SCENES, SCENES.assign(language="ja", category="ja")], ignore_index=True)
    assert diversity.diversity(mixed).table.set_index("category").pairs["across"] == 6


def test_the_interval_is_that_of_leaving_out_texts_one_by_one():
    rng = np.random.default_rng(3)
    each = ["".join(rng.choice(list("甲乙丙丁戊己"), 12)) for _ in range(9)]
    values = np.array([[slow(a, b) for b in each] for a in each])

    def mean(kept):
        return np.mean([values[a, b] for a, b in combinations(kept, 2)])

    without = np.array([mean([k for k in range(9) if k != gone]) for gone in range(9)])
    arm = 1.96 * np.sqrt(8 / 9 * ((without - without.mean()) ** 2).sum())
    table = diversity.diversity(texts(age=" ".join(each))).table
    middle = mean(range(9))
    found = table[["mean", "ci_low", "ci_high"]].to_numpy()[0]
    assert found == pytest.approx([middle, middle - arm, middle + arm])


def test_near_and_exact_duplicates():
    near = diversity.diversity(
        texts(age="甲乙丙丁戊己庚辛壬癸", race="甲乙丙丁戊己庚辛壬子 子丑寅卯")
    ).near
    assert near[["item_a", "item_b"]].to_numpy().tolist() == [["age:0", "race:1"]]
    assert list(near.rouge_l) == pytest.approx([0.9])
    # The same text counts once in a category, and twice in two.
    again = texts(age="甲乙 甲乙", race="甲乙 丙丁").assign(whole=[*"1233"])
    table = diversity.diversity(again).table.set_index("category")
    assert table.loc["age", ["texts", "distinct", "pairs"]].tolist() == [2, 1, 0]
    assert table.note["age"] == "no pair of distinct texts"
    assert table["mean"]["across"] == pytest.approx(0.5)  # 甲乙 with itself 1, with 丙丁 0
    duplicates = diversity.duplicates(again)
    assert duplicates[["rows", "items"]].to_numpy().tolist() == [[2, "race:2, race:3"]]


def test_nearest_texts_of_another_data_set():
    other = texts(age="甲乙丙丑 辛壬癸子")
    shared, near = diversity.overlaps({"one": SCENES, "two": other})
    row = shared[shared["first"] == "one"].iloc[0]
    by_hand = np.mean([max(slow(a, b) for b in other.text) for a in SCENES.text])
    assert [row["mean"], row.highest, row.texts] == pytest.approx([by_hand, 0.75, 5])
    assert near.empty
    assert set(diversity.overlaps({"one": SCENES, "two": other}, near=0.75)[1].rouge_l) == {0.75}
    assert diversity.overlaps({"one": SCENES, "two": other.assign(language="ja")})[0].empty
