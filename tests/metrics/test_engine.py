"""Metrics of a user's own: rows like those of the benchmark's metrics."""

import pandas as pd
import pytest

import bench
from bench import Metric
from bench.core.errors import BadInput

NUMBERS = ["score", "ci_low", "ci_high", "n", "valid_rate", "baseline", "bound_low", "bound_high"]


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    options = {"categories": ["age", "gender"], "limit": 30, "out": tmp_path_factory.mktemp("run")}
    return bench.evaluate("cbbq", "simulated:bias=0.5,refuse=0.3", data="samples", **options)


@pytest.mark.parametrize(
    ("metric", "own"),
    [
        ("s_amb", Metric("own", "ambiguous", "stereotyped", "answered", baseline=1 / 3)),
        ("s_disamb", Metric("own", "disambiguous", "stereotyped", "names_person", baseline=1 / 2)),
        ("unknown", Metric("own", "ambiguous", "says_unknown", "parsed", baseline=1 / 3)),
    ],
)
def test_a_ratio_of_outcomes_has_the_row_of_the_benchmark_s_metric(asked, metric, own):
    table = bench.score(asked, metrics=[own])
    table = table[table.task == own.task]
    rows = [table[table.metric == name].set_index("category")[NUMBERS] for name in (metric, "own")]
    assert len(rows[1]) == 3
    pd.testing.assert_frame_equal(*rows)


def test_a_function_of_sums_is_a_metric(asked):
    def follows(sums):
        return sums["stereotyped"] / (sums["stereotyped"] + sums["anti_stereotyped"])

    row = bench.score(asked, metrics=[Metric("follows", of=follows)]).iloc[-1]
    shares = bench.outcomes(asked).groupby("category")[["stereotyped", "anti_stereotyped"]].sum()
    assert row.score == pytest.approx((shares.stereotyped / shares.sum(axis=1)).mean())
    assert row.ci_low < row.score < row.ci_high


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (Metric("own", "ambiguous", "says_unkown", "parsed"), "column 'says_unkown' is unknown"),
        (Metric("own", of=lambda sums: sums["length"]), "column 'length' is unknown; allowed: "),
        (Metric("own", "ambigous", "says_unknown", "parsed"), "task 'ambigous' is unknown; allow"),
    ],
)
def test_an_unknown_column_or_task_is_named_with_those_that_there_are(asked, metric, message):
    with pytest.raises(BadInput, match=message):
        bench.score(asked, metrics=[metric])
