"""ROUGE-L by a slow table, and the functions in cells of `data_quality` by hand."""

import json
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.core.shipped import NOTEBOOKS
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


@pytest.fixture(scope="module")
def cells():
    """The functions that cells of the notebook define."""
    book = json.loads((NOTEBOOKS / "data_quality.ipynb").read_text("utf-8"))
    names = {"np": np, "pd": pd, "rouge_l": diversity.rouge_l}
    for cell in book["cells"]:
        source = "".join(cell["source"])
        if source.startswith(("def pairs_of", "def jackknife", "def nearest")):
            exec(source, names)
    return names


def test_pairs_are_of_distinct_texts_in_a_language_within_or_across_categories(cells):
    pairs = cells["pairs_of"](SCENES).groupby("category").rouge_l
    # Within age 3 / 4, 0, 0; within race 0; across 甲乙: 1 / 2 twice, 己庚: 1 / 2 once, of six.
    assert pairs.mean().to_dict() == pytest.approx({"across": 1.5 / 6, "age": 0.25, "race": 0})
    assert pairs.size().to_dict() == {"across": 6, "age": 3, "race": 1}
    mixed = pd.concat([SCENES, SCENES.assign(language="ja", category="ja")], ignore_index=True)
    assert (cells["pairs_of"](mixed).category == "across").sum() == 6
    # The same text counts once in a category, and twice in two.
    again = cells["pairs_of"](texts(age="甲乙 甲乙", race="甲乙 丙丁"))
    assert sorted(again.rouge_l) == [0, 0, 1]


def test_the_interval_is_that_of_leaving_out_texts_one_by_one(cells):
    rng = np.random.default_rng(3)
    each = ["".join(rng.choice(list("甲乙丙丁戊己"), 12)) for _ in range(9)]
    values = np.array([[slow(a, b) for b in each] for a in each])

    def mean(kept):
        return np.mean([values[a, b] for a, b in combinations(kept, 2)])

    without = np.array([mean([k for k in range(9) if k != gone]) for gone in range(9)])
    arm = 1.96 * np.sqrt(8 / 9 * ((without - without.mean()) ** 2).sum())
    found = cells["jackknife"](cells["pairs_of"](texts(age=" ".join(each))))
    middle = mean(range(9))
    wanted = {"compared": 9, "pairs": 36, "estimate": middle}
    assert found == pytest.approx(wanted | {"ci_low": middle - arm, "ci_high": middle + arm})
    two = cells["jackknife"](cells["pairs_of"](texts(age="甲乙 甲丙")))
    assert two["estimate"] == 0.5
    assert np.isnan(two["ci_low"]), "two texts leave nothing when one is left out"
    # Of three texts, each pair is what leaving one out leaves: 1/2, 1/2 and 1.
    three = cells["jackknife"](cells["pairs_of"](texts(age="甲乙 甲丙 甲乙丁")))
    assert np.isfinite([three["ci_low"], three["ci_high"]]).all()


def test_nearest_texts_of_another_data_set(cells):
    other = texts(age="甲乙丙丑 辛壬癸子")
    near = cells["nearest"](SCENES, other)
    by_hand = {a: max(slow(a, b) for b in other.text) for a in SCENES.text}
    assert dict(zip(near.text_a, near.rouge_l, strict=True)) == pytest.approx(by_hand)
    assert max(by_hand.values()) == 0.75
    assert cells["nearest"](SCENES, other.assign(language="ja")).empty
