"""Influence of single units on a score: by hand, and against scores that are computed without them."""

import math
from pathlib import Path

import pandas as pd
import pytest

from bench import run
from bench.benchmarks import module
from bench.metrics import cbbq
from bench.metrics.bootstrap import leave_one_out
from bench.metrics.cbbq.answers import SUMS
from bench.metrics.influence import deviations, influence, spread
from bench.metrics.table import ALL

PLACE = (ALL, "ambiguous", "s_amb")


def answers(biased: dict[str, dict[str, list[int]]]) -> pd.DataFrame:
    """Readable ambiguous answers, 1 for a stereotyped one, by category and scene."""
    rows = [
        {"category": category, "cluster": scene, "biased": one}
        for category, scenes in biased.items()
        for scene, some in scenes.items()
        for one in some
    ]
    fixed = {"task": "ambiguous", "request": "answer", "n": 1, "valid": 1}
    frame = pd.DataFrame(rows).assign(**fixed)
    frame["part"] = frame.category + "|ambiguous"
    return frame.reindex(columns=[*dict.fromkeys([*frame.columns, *SUMS])], fill_value=0)


def test_a_score_without_a_unit_is_that_of_the_others() -> None:
    rows = answers({"age": {"a": [1, 0], "b": [0, 0], "c": [1, 1]}})
    left = cbbq.replicates_of(rows, "robust", leave_one_out)
    assert [unit for _, unit in left.left_out] == ["a", "b", "c"]
    assert left[PLACE] == pytest.approx([0.5, 0.5, 0.75, 0.25])
    # Of one stratum: each unit's value less the mean.
    assert deviations(left, PLACE).tolist() == pytest.approx([0, -0.5, 0.5])
    assert spread(deviations(left, PLACE), left.samples[PLACE].freedom) == pytest.approx(0.5)


def test_deviations_give_the_standard_error_of_a_mean_over_categories() -> None:
    rows = answers({"age": {"a": [1], "b": [0]}, "SES": {"c": [1], "d": [0], "e": [0]}})
    left = cbbq.replicates_of(rows, "robust", leave_one_out)
    found = deviations(left, PLACE)
    # Half of each category's mean: variances 1/2 over 2 units and 1/3 over 3, by hand.
    squared_error = (0.5**2) * (1 / 2) / 2 + (0.5**2) * (1 / 3) / 3
    parts = {"age": (2, 5), "SES": (3, 5)}
    by_stratum = found.groupby(level="stratum").apply(
        lambda some: (some**2).sum() / (len(some) - 1)
    )
    total = sum(by_stratum[name] * n for name, (n, _) in parts.items()) / 5**2
    assert total == pytest.approx(squared_error)


def test_the_only_unit_of_a_category_has_no_deviation() -> None:
    rows = answers({"age": {"a": [1], "b": [0]}, "SES": {"c": [1]}})
    left = cbbq.replicates_of(rows, "robust", leave_one_out)
    assert deviations(left, PLACE).isna().tolist() == [True, False, False]
    assert math.isnan(spread(deviations(left, PLACE), 2))


@pytest.mark.parametrize(
    ("benchmark", "options"),
    [
        ("cbbq", {"categories": ["gender", "age"]}),
        ("mcbe", {"tasks": ["pc", "ss", "bs"], "categories": ["gender", "age"]}),
        ("nli_coal", {"categories": ["en"]}),
    ],
)
def test_a_listed_unit_moves_the_score_table_as_told(
    benchmark: str, options: dict, tmp_path: Path
) -> None:
    asked = run.evaluate(
        benchmark, "simulated:bias=0.4,seed=1", out=tmp_path, data="samples", **options
    )
    found = influence(asked.records, asked.items, benchmark, "robust", top=1)
    room = module("metrics", benchmark)
    assert set(found.metric) == {headline.metric for headline in room.HEADLINES}
    for row in found.to_dict("records"):
        kept = asked.items[room.units(asked.items) != row["unit"]]
        records = asked.records[asked.records.item_id.isin(kept.item_id)]
        table = room.score_records(records, kept, "robust").set_index(
            ["category", "task", "metric"]
        )
        assert table.score[ALL, row["task"], row["metric"]] == pytest.approx(row["without"])
        assert row["change"] == pytest.approx(row["without"] - row["score"])
