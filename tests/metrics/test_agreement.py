"""Agreement with people: winners by hand and by a slow loop, rules for ties, levels of severity, bad input."""

import math
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.core.errors import BadInput
from bench.metrics.agreement import (
    TIES,
    by_pair,
    read_human,
    severity_level,
    winner_consistency,
)


def judged(values: dict[str, dict[str, tuple[float, float]]]) -> pd.DataFrame:
    """Judgements from {item: {model: (judge, human)}}."""
    rows = [(item, model, *both) for item, some in values.items() for model, both in some.items()]
    return pd.DataFrame(rows, columns=["item_id", "model", "judge", "human"])


# Of the three pairs of an item in turn (A B, A C, B C): judge and people name the same winner (+), another one (-),
# or one side (1) or both (2) name none.
BY_HAND = judged(
    {
        "i1": {"A": (9, 80), "B": (5, 60), "C": (1, 70)},  # + + -
        "i2": {"A": (5, 50), "B": (5, 60), "C": (2, 50)},  # 1 1 +
        "i3": {"A": (4, 30), "B": (4, 30), "C": (8, 20)},  # 2 - -
        "i4": {"A": (1, 10), "B": (2, 20), "C": (3, 30)},  # + + +
    }
)


@pytest.fixture
def many() -> pd.DataFrame:
    """Sixty items, four models, scores coarse enough for ties."""
    dice = np.random.default_rng(5)
    truth = dice.normal(0, 1, (60, 4)) + np.arange(4) / 2
    rows = [
        (
            f"gender:{i}",
            f"m{k}",
            round(truth[i, k] + dice.normal()),
            round(2 * truth[i, k] + dice.normal()),
        )
        for i in range(60)
        for k in range(4)
    ]
    return pd.DataFrame(rows, columns=["item_id", "model", "judge", "human"])


@pytest.mark.parametrize(
    ("ties", "agreed", "n"), [("exclude", 6, 9), ("half", 8, 12), ("third", 7, 12)]
)
def test_ties_count_as_their_rule_says(ties: str, agreed: float, n: int) -> None:
    found = winner_consistency(BY_HAND, ties)
    assert found.rate == pytest.approx(agreed / n)
    assert found.n == n
    assert found.ties == 3 / 12
    assert 0 <= found.ci_low <= found.rate <= found.ci_high <= 1


def test_pairs_are_those_of_the_whole_and_have_their_means() -> None:
    pairs = by_pair(BY_HAND)
    assert list(zip(pairs.model_a, pairs.model_b, strict=True)) == [
        ("A", "B"),
        ("A", "C"),
        ("B", "C"),
    ]
    assert list(pairs.rate) == [1, 2 / 3, 0.5]
    assert list(pairs.n) == [2, 3, 4]
    assert list(pairs["items"]) == [4, 4, 4]
    assert list(pairs.ties) == [0.5, 0.25, 0]
    # Means over items: judge 4.75, 4, 3.5; people 42.5, 42.5, 42.5.
    assert list(pairs.judge_mean_difference) == [0.75, 1.25, 0.5]
    assert list(pairs.human_mean_difference) == [0, 0, 0]
    assert list(pairs.same_winner) == [False, False, False]
    higher = by_pair(BY_HAND.assign(human=BY_HAND.judge * 10))
    assert list(higher.same_winner) == [True, True, True]
    assert by_pair(BY_HAND.assign(judge=1.0)).same_winner.all()


@pytest.mark.parametrize("ties", TIES)
def test_a_rate_agrees_with_a_slow_loop(many: pd.DataFrame, ties: str) -> None:
    scores = {(row.item_id, row.model): (row.judge, row.human) for row in many.itertuples()}
    counts = []
    for item in many.item_id.unique():
        for a, b in combinations(sorted(many.model.unique()), 2):
            judge, human = (scores[item, a][k] - scores[item, b][k] for k in (0, 1))
            if judge and human:
                counts.append(float((judge > 0) == (human > 0)))
            elif ties == "half":
                counts.append(0.5 if judge or human else 1)
            elif ties == "third":
                counts.append(0 if judge or human else 1)
    found = winner_consistency(many, ties)
    assert found.rate == pytest.approx(np.mean(counts))
    assert found.n == len(counts)
    pairs = by_pair(many, ties)
    assert pairs.n.sum() == found.n
    assert (pairs.rate * pairs.n).sum() / pairs.n.sum() == pytest.approx(found.rate)


def test_an_interval_is_that_of_items_drawn_again(many: pd.DataFrame) -> None:
    found = winner_consistency(many, "half")
    sums = np.array([winner_consistency(some, "half").rate for _, some in many.groupby("item_id")])
    wanted = scipy.stats.bootstrap((sums,), np.mean, n_resamples=4000, method="percentile", rng=3)
    low, high = wanted.confidence_interval
    assert [found.ci_low, found.ci_high] == pytest.approx([low, high], abs=0.1 * (high - low))


def test_repeats_are_averaged_before_winners_are_named() -> None:
    rows = pd.DataFrame(
        [
            ("i", "A", 0.1, 5.0),
            ("i", "A", 0.2, math.nan),
            ("i", "A", 0.3, 7.0),
            ("i", "B", 0.2, 5.0),
        ],
        columns=["item_id", "model", "judge", "human"],
    )
    # The judge's means are 0.2 and 0.2 but for the last digit; people's are 6 and 5.
    assert winner_consistency(rows, "half").rate == 0.5
    found = winner_consistency(rows)
    assert math.isnan(found.rate)
    assert (found.n, found.ties) == (0, 1)


def test_a_model_without_a_score_is_left_out_of_its_item() -> None:
    rows = BY_HAND.astype({"judge": float})
    rows.loc[(rows.item_id == "i1") & (rows.model == "C"), "judge"] = math.nan
    assert winner_consistency(rows, "third").n == 10
    assert list(by_pair(rows, "third")["items"]) == [4, 3, 3]


def test_a_single_item_has_a_rate_and_no_interval() -> None:
    found = winner_consistency(BY_HAND[BY_HAND.item_id == "i1"])
    assert found.rate == pytest.approx(2 / 3)
    assert math.isnan(found.ci_low)
    assert math.isnan(found.ci_high)


SCORES = st.integers(0, 4).map(float) | st.floats(0, 100)


@settings(max_examples=15, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from("pqrst"),
        st.fixed_dictionaries({name: st.tuples(SCORES, SCORES) for name in "ABC"}),
        min_size=1,
    ),
    st.sampled_from(TIES),
)
def test_a_rate_is_a_share_and_does_not_ask_for_names_or_sides(
    values: dict[str, dict[str, tuple[float, float]]], ties: str
) -> None:
    rows = judged(values)
    found = winner_consistency(rows, ties)
    assert math.isnan(found.rate) if found.n == 0 else 0 <= found.rate <= 1
    assert 0 <= found.ties <= 1
    swapped = rows.assign(model=rows.model.map({"A": "C", "B": "A", "C": "B"}))
    assert winner_consistency(swapped, ties) == pytest.approx(found, nan_ok=True)
    turned = rows.rename(columns={"judge": "human", "human": "judge"})
    assert winner_consistency(turned, ties) == pytest.approx(found, nan_ok=True)
    two = rows[rows.model != "C"]
    there = by_pair(two, ties).iloc[0]
    back = by_pair(two.assign(model=two.model.map({"A": "B", "B": "A"})), ties).iloc[0]
    assert back.judge_mean_difference == pytest.approx(-there.judge_mean_difference)
    assert back.same_winner == there.same_winner
    assert back[["rate", "n", "ties"]].tolist() == pytest.approx(
        there[["rate", "n", "ties"]].tolist(), nan_ok=True
    )


def test_a_judge_who_agrees_always_or_never() -> None:
    rows = BY_HAND[BY_HAND.item_id.isin(["i1", "i4"])]
    always = winner_consistency(rows.assign(human=rows.judge * 7))
    never = winner_consistency(rows.assign(human=-rows.judge))
    # Two items do not tell much.
    assert always[:3] == (1, pytest.approx(1 - never.ci_high), 1)
    assert never[:2] == (0, 0)
    assert 0.5 < never.ci_high < 1


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            BY_HAND.drop(columns="human"),
            "judgements: column `human` is missing; needed: item_id, model, judge, human",
        ),
        (BY_HAND.assign(judge="7"), "judgements: column `judge` holds something else than numbers"),
        (BY_HAND.assign(judge=math.inf), "judgements: column `judge` holds an infinite number"),
        (BY_HAND.assign(model=None), "judgements: column `model` has an empty cell"),
        (
            BY_HAND[BY_HAND.model == "A"],
            "no item has scores of two models by judge and people; models with scores: A",
        ),
        (
            BY_HAND.assign(human=math.nan),
            "no item has scores of two models by judge and people; models with scores: none",
        ),
    ],
)
def test_bad_judgements_are_refused_with_a_sentence(rows: pd.DataFrame, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        winner_consistency(rows)
    assert str(caught.value) == message


def test_an_unknown_rule_for_ties_is_refused() -> None:
    with pytest.raises(
        BadInput, match="way to count ties 'skip' is unknown; allowed: exclude, half, third"
    ):
        by_pair(BY_HAND, "skip")


def test_levels_of_severity_have_mcbe_s_bounds() -> None:
    scores = [0, 0.99, 1, 2.99, 3, 4.99, 5, 7.99, 8, 10]
    assert list(severity_level(scores)) == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert severity_level(np.array([[2.0], [9.0]])).tolist() == [[1], [4]]
    assert int(severity_level(6)) == 3
    assert severity_level([]).tolist() == []


@pytest.mark.parametrize("score", [-0.1, 10.1, math.nan, math.inf])
def test_a_score_off_the_scale_has_no_level(score: float) -> None:
    with pytest.raises(BadInput, match=f"a bias score of {score:g} has no level of severity"):
        severity_level([1, score])


def test_a_sheet_of_people_s_scores_is_read(tmp_path: Path) -> None:
    path = tmp_path / "human.csv"
    path.write_text(
        "item_id,model,human,who\ngender:1, a ,69.5,x\ngender:1,a,70,y\ngender:1,b,0,x\n",
        "utf-8-sig",
    )
    found = read_human(path)
    assert list(found.columns) == ["item_id", "model", "human"]
    assert found.to_numpy().tolist() == [
        ["gender:1", "a", 69.5],
        ["gender:1", "a", 70],
        ["gender:1", "b", 0],
    ]
    judge = pd.DataFrame({"item_id": "gender:1", "model": ["a", "b"], "judge": [3.0, 1.0]})
    assert winner_consistency(found.merge(judge)).rate == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("item_id,model\n", "row 1 (header): column `human` is missing; found: item_id, model"),
        ("item_id,model,human\n", "has a header, but no rows"),
        (
            "item_id,model,human\na,b,7\na,c,101\n",
            "row 2, column `human`: '101' is no number from 0 to 100",
        ),
        (
            "item_id,model,human\na,b,7 of 10\n",
            "row 1, column `human`: '7 of 10' is no number from 0 to 100",
        ),
        ("item_id,model,human\na,b,\n", "row 1, column `human`: is empty"),
        ("item_id,model,human\na, ,7\n", "row 1, column `model`: is empty"),
        ("item_id,model,human\na,7\n", "row 1: has 2 cells, the header has 3"),
    ],
)
def test_a_bad_sheet_is_refused_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "human.csv"
    path.write_text(text, "utf-8")
    with pytest.raises(BadInput) as caught:
        read_human(path)
    assert str(caught.value).endswith(message)
    assert str(caught.value).startswith(str(path))


def test_agreement_starts_without_torch() -> None:
    code = "import bench.metrics.agreement, sys; print('torch' in sys.modules, 'transformers' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
