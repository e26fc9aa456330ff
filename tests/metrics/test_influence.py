"""Influence of single units on a score: by hand, and against scores computed without them."""

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


def left_out(biased):
    """Replicates of readable ambiguous answers, 1 for a stereotyped one, by category and scene."""
    rows = [
        {"category": category, "cluster": scene, "part": f"{category}|ambiguous", "biased": answer}
        for category, scenes in biased.items()
        for scene, answers in scenes.items()
        for answer in answers
    ]
    fixed = {"task": "ambiguous", "request": "answer", "n": 1, "valid": 1}
    frame = pd.DataFrame(rows).assign(**fixed)
    frame = frame.reindex(columns=[*dict.fromkeys([*frame.columns, *SUMS])], fill_value=0)
    return cbbq.replicates_of(frame, "robust", leave_one_out)


def test_deviations_by_hand():
    left = left_out({"age": {"a": [1, 0], "b": [0, 0], "c": [1, 1]}})
    assert [unit for _, unit in left.left_out] == ["a", "b", "c"]
    assert left[PLACE] == pytest.approx([0.5, 0.5, 0.75, 0.25])
    # Of one stratum: each unit's value less the mean.
    assert deviations(left, PLACE).tolist() == pytest.approx([0, -0.5, 0.5])
    assert spread(deviations(left, PLACE), left.samples[PLACE].freedom) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("benchmark", "options"),
    [
        ("cbbq", {"categories": ["gender", "age"]}),
        ("mcbe", {"tasks": ["pc", "ss", "bs"], "categories": ["gender", "age"]}),
        ("nli_coal", {"categories": ["en"]}),
    ],
)
def test_a_listed_unit_moves_the_score_table_by_its_change(benchmark, options, tmp_path):
    options |= {"data": "samples", "limit": 20}
    asked = run.evaluate(benchmark, "simulated:bias=0.4,seed=1", out=tmp_path, **options)
    table = influence(asked.records, asked.items, benchmark, "robust", top=1)
    metrics = module("metrics", benchmark)
    assert set(table.metric) == {headline.metric for headline in metrics.HEADLINES}
    for row in table.to_dict("records"):
        kept = asked.items[metrics.units(asked.items) != row["unit"]]
        records = asked.records[asked.records.item_id.isin(kept.item_id)]
        scores = metrics.score_records(records, kept, "robust")
        scores = scores.set_index(["category", "task", "metric"]).score
        assert scores[ALL, row["task"], row["metric"]] == pytest.approx(row["without"])
        assert row["change"] == pytest.approx(row["without"] - row["score"])
