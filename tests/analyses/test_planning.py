"""Planning: sizes of samples against the exact power of the t test, and from recorded runs."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from bench import run
from bench.analyses.planning import ALONE, PAIRED, planned
from bench.metrics.significance import detectable, units_needed
from tests.helpers.recorded import command


def exact_power(sd: float, difference: float, n: int) -> float:
    """The power of a two-sided one-sample t test at 5 %."""
    edge, shift = stats.t.ppf(0.975, n - 1), difference * np.sqrt(n) / sd
    return float(stats.nct.sf(edge, n - 1, shift) + stats.nct.cdf(-edge, n - 1, shift))


def test_sizes_are_those_of_cohen_s_tables() -> None:
    for size, power, n in ((0.5, 0.8, 34), (0.2, 0.8, 199), (0.5, 0.95, 54)):
        units = units_needed(1.0, size, power=power)
        assert units == pytest.approx(n, abs=1)
        assert exact_power(1.0, size, int(units)) == pytest.approx(power, abs=0.02)
        least, fewer = (detectable(1.0, int(units) - k, power=power) for k in (0, 1))
        assert least <= size < fewer
    assert np.isnan(detectable(1.0, 3, strata=3))


def test_a_plan_is_for_even_odds_or_what_recorded_runs_show(tmp_path: Path, refusal: Any) -> None:
    table = planned("cbbq", 0.1, data="samples").set_index(["metric", "comparison"])
    alone, both = (table.loc["accuracy", name] for name in (ALONE, PAIRED))
    assert alone.sd == pytest.approx(0.5, rel=0.05)
    assert alone.units == pytest.approx((2.8 * alone.sd / 0.1) ** 2, rel=0.03)
    assert both.sd == pytest.approx(alone.sd * np.sqrt(2))
    assert both.requests / both.units == pytest.approx(2 * alone.requests / alone.units, rel=0.02)
    # From a run comes its standard error, from two that of their paired difference.
    models = ["simulated:bias=0.3,seed=1", "simulated:bias=0.6,seed=2"]
    asked = run.evaluate_all("cbbq", models, tmp_path, categories=["gender", "age"])
    first, second = (one.replicates()["all", "ambiguous", "s_amb"] for one in asked)
    row = (
        planned("cbbq", 0.1, runs=asked[:1]).set_index(["metric", "comparison"]).loc["s_amb", ALONE]
    )
    assert row.sd / np.sqrt(row.available) == pytest.approx(np.std(first[1:]), rel=0.15)
    assert row["shown"] == pytest.approx(2.9 * np.std(first[1:]), rel=0.15)
    table = planned("cbbq", 0.1, runs=asked, budget_requests=100)
    row = table.set_index(["metric", "comparison"]).loc["s_amb", PAIRED]
    assert row.sd / np.sqrt(row.available) == pytest.approx(np.std((first - second)[1:]), rel=0.15)
    assert row.budget_shown > row["shown"]
    for arguments, options, message in (
        (("cbbq", 0.0), {}, "--difference"),
        (("cbbq", 0.1), {"runs": asked * 2}, "give one, or two"),
        (("mcbe", 0.1), {"runs": asked}, "not of mcbe"),
    ):
        assert message in refusal(planned, *arguments, **options)


def test_the_command_prints_the_plan(monkeypatch: Any, capsys: Any) -> None:
    words = ["plan", "mcbe", "--difference", "5", "--data", "samples", "--format", "json"]
    status, printed, _ = command(monkeypatch, capsys, *words)
    assert status == 0
    assert {row["task"] for row in json.loads(printed)} >= {"all", "pc", "sc", "ss", "bs"}
