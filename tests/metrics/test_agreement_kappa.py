"""Agreement of raters: kappas of textbooks and by their formulas, what is undefined, bad ratings."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.core.errors import BadInput
from bench.metrics.agreement import (
    cohen_kappa,
    fleiss_kappa,
    severity_level,
)

# Fleiss, 1971, as the encyclopaedia's worked example has it: ten items, fourteen raters, five categories.
FLEISS = [
    [0, 0, 0, 0, 14],
    [0, 2, 6, 4, 2],
    [0, 0, 3, 5, 6],
    [0, 3, 9, 2, 0],
    [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0],
    [3, 2, 6, 3, 0],
    [2, 5, 3, 2, 2],
    [6, 5, 2, 1, 0],
    [0, 2, 2, 3, 7],
]


def rated(table: list[list[object]]) -> pd.DataFrame:
    """Ratings from rows of items and columns of raters."""
    rows = [(f"i{i}", f"r{k}", value) for i, row in enumerate(table) for k, value in enumerate(row)]
    return pd.DataFrame(rows, columns=["item_id", "rater", "rating"])


def spread(counts: list[list[int]]) -> pd.DataFrame:
    return rated([[f"c{k}" for k, n in enumerate(row) for _ in range(n)] for row in counts])


def fleiss_by_hand(counts: np.ndarray) -> float:
    """Fleiss, 1971, equations 2 to 7."""
    n, raters = len(counts), counts[0].sum()
    agreement = [sum(c * (c - 1) for c in row) / (raters * (raters - 1)) for row in counts]
    chance = sum((counts[:, k].sum() / (n * raters)) ** 2 for k in range(counts.shape[1]))
    return (sum(agreement) / n - chance) / (1 - chance)


def test_fleiss_kappa_of_the_textbook() -> None:
    found = fleiss_kappa(spread(FLEISS))
    assert round(found.kappa, 3) == 0.210
    assert found.kappa == pytest.approx(fleiss_by_hand(np.array(FLEISS)))
    assert (found.n, found.raters, found.note) == (10, 14, "")
    assert found.ci_low < found.kappa < found.ci_high


def test_the_interval_of_fleiss_kappa_is_that_of_items_drawn_again() -> None:
    dice = np.random.default_rng(2)
    table = (dice.integers(0, 3, (80, 1)) + (dice.random((80, 5)) < 0.3)).tolist()
    found = fleiss_kappa(rated(table))
    counts = np.array([[row.count(k) for k in range(4)] for row in table])
    values = [fleiss_by_hand(counts[dice.integers(0, 80, 80)]) for _ in range(2000)]
    low, high = np.percentile(values, [2.5, 97.5])
    assert found.kappa == pytest.approx(fleiss_by_hand(counts))
    assert [found.ci_low, found.ci_high] == pytest.approx([low, high], abs=0.1 * (high - low))


def test_levels_of_bias_scores_are_categories() -> None:
    scores = rated([[0.5, 0.9], [4, 3], [9, 6]])
    found = fleiss_kappa(scores.assign(rating=severity_level(scores.rating)))
    assert found.kappa == pytest.approx(
        fleiss_by_hand(np.array([[2, 0, 0, 0], [0, 2, 0, 0], [0, 0, 1, 1]]))
    )


@pytest.mark.parametrize(
    ("table", "kappa", "interval", "note"),
    [
        (
            [[1, 1], [1, 1]],
            math.nan,
            False,
            "all ratings are of one category, so chance agrees as perfectly as the raters",
        ),
        ([[1, 2]], -1, False, "too few items, or too few of another category, for an interval"),
        (
            [[1, 1], [2, 2], [3, 3], [1, 1]],
            1,
            False,
            "raters agree on every item, so resamples are all alike and there is no interval",
        ),
    ],
)
def test_what_is_undefined_is_said_and_nothing_warns(
    table: list[list[object]], kappa: float, interval: bool, note: str
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = fleiss_kappa(rated(table))
    assert found.kappa == pytest.approx(kappa, nan_ok=True)
    assert math.isnan(found.ci_low) is not interval
    assert found.note == note


GOOD = rated([["a", "b", "b"], ["a", "a", "b"]])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (GOOD.drop(index=4), "item i1: r1 has not rated it; every rater rates every item"),
        (pd.concat([GOOD, GOOD[2:3]]), "item i0: r2 has rated it more than once"),
        (
            GOOD.assign(rating=GOOD.rating.where(GOOD.index != 5, "")),
            "item i1: the rating of r2 is missing",
        ),
        (
            GOOD.assign(rater="x").drop_duplicates("item_id"),
            "agreement needs at least two raters; found 1",
        ),
        (GOOD[:0], "agreement needs at least two raters; found 0"),
        (
            GOOD.drop(columns="rater"),
            "ratings: column `rater` is missing; needed: item_id, rater, rating",
        ),
        (GOOD.assign(item_id=None), "ratings: column `item_id` has an empty cell"),
    ],
)
def test_bad_ratings_are_refused_with_a_sentence(rows: pd.DataFrame, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        fleiss_kappa(rows)
    assert str(caught.value) == message


def cohen_by_hand(first: list[float], second: list[float], power: float) -> float:
    """Cohen, 1968: one less the mean distance over the mean distance of all pairs of ratings; power 0 counts each alike."""

    def distance(a: float, b: float) -> float:
        return float(a != b) * abs(a - b) ** power

    observed = np.mean([distance(a, b) for a, b in zip(first, second, strict=True)])
    return float(1 - observed / np.mean([distance(a, b) for a in first for b in second]))


@pytest.mark.parametrize(("weights", "power"), [(None, 0), ("linear", 1), ("quadratic", 2)])
def test_cohen_kappa_agrees_with_its_formula(weights: str | None, power: float) -> None:
    dice = np.random.default_rng(4)
    # Level 2 is never given, so that the distance of 1 and 3 must still be 2.
    first = dice.choice([0, 1, 3, 4], 50)
    second = np.where(dice.random(50) < 0.6, first, dice.choice([0, 1, 3, 4], 50))
    found = cohen_kappa(first, second, weights)
    assert found.kappa == pytest.approx(cohen_by_hand(list(first), list(second), power))
    assert found.ci_low < found.kappa < found.ci_high
    assert (found.n, found.raters, found.note) == (50, 2, "")


def test_cohen_kappa_of_the_textbook_and_its_interval() -> None:
    # Fifty proposals, yes or no: 20 and 15 alike, 5 and 10 not. Kappa 0.4; its variance by Fleiss, Cohen and Everitt, 1969.
    table = {("yes", "yes"): 20, ("yes", "no"): 5, ("no", "yes"): 10, ("no", "no"): 15}
    pairs = [pair for pair, n in table.items() for _ in range(n)]
    found = cohen_kappa(*zip(*pairs, strict=True))
    p = np.array([[20, 5], [10, 15]]) / 50
    row, column = p.sum(1), p.sum(0)
    terms = sum(p[i, i] * (1 - (row[i] + column[i]) * 0.6) ** 2 for i in (0, 1))
    terms += 0.36 * (p[0, 1] * (column[0] + row[1]) ** 2 + p[1, 0] * (column[1] + row[0]) ** 2)
    error = math.sqrt((terms - (0.4 - 0.5 * 0.6) ** 2) / 50) / 0.5
    assert found.kappa == pytest.approx(0.4)
    assert [found.ci_low, found.ci_high] == pytest.approx(
        [0.4 - 1.959964 * error, 0.4 + 1.959964 * error]
    )


@pytest.mark.parametrize(
    ("first", "second", "kappa"), [([1, 2, 3], [1, 2, 3], 1), ([1], [2], 0), ([1, 1], [1, 2], 0)]
)
def test_a_variance_of_nought_gives_no_interval(
    first: list[int], second: list[int], kappa: float
) -> None:
    found = cohen_kappa(first, second)
    assert found.kappa == kappa
    assert math.isnan(found.ci_low)
    assert found.note == "the formula gives its variance as nought, so there is no interval"


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=20),
    st.sampled_from([None, "linear", "quadratic"]),
)
def test_cohen_kappa_is_the_same_for_either_order_and_never_warns(
    pairs: list[tuple[int, int]], weights: str | None
) -> None:
    first, second = ([pair[k] for pair in pairs] for k in (0, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, turned = cohen_kappa(first, second, weights), cohen_kappa(second, first, weights)
    assert turned[:3] == pytest.approx(found[:3], nan_ok=True)
    assert math.isnan(found.kappa) == (len({*first, *second}) == 1)
    assert (found.note == "") == (not math.isnan(found.ci_low))
    assert math.isnan(found.kappa) or -1 - 1e-9 <= found.kappa <= 1 + 1e-9


@pytest.mark.parametrize(
    ("first", "second", "weights", "message"),
    [
        ([1], [1, 2], None, "two raters of the same items are needed; found 1 and 2 ratings"),
        ([], [], None, "two raters of the same items are needed; found 0 and 0 ratings"),
        ([1, None], [1, 2], None, "item 2: a rating is missing"),
        (
            ["a", "b"],
            ["a", "b"],
            "linear",
            "linear weights need numbers as categories, such as levels; found 'a'",
        ),
        (
            [1],
            [1],
            "cubic",
            "weighting of Cohen's kappa 'cubic' is unknown; allowed: None, linear, quadratic",
        ),
    ],
)
def test_bad_pairs_of_raters_are_refused_with_a_sentence(
    first: list[object], second: list[object], weights: str | None, message: str
) -> None:
    with pytest.raises(BadInput) as caught:
        cohen_kappa(first, second, weights)
    assert str(caught.value) == message
