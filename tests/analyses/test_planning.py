"""Planning: sizes of samples against the exact power of the t test, and from recorded runs."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from bench import cli, run
from bench.analyses.planning import ALONE, PAIRED, planned
from bench.metrics.significance import detectable, units_needed
from bench.run.results import Run


def exact_power(sd: float, difference: float, n: int) -> float:
    """The power of a two-sided one-sample t test at 5 %."""
    edge, shift = stats.t.ppf(0.975, n - 1), difference * np.sqrt(n) / sd
    return float(stats.nct.sf(edge, n - 1, shift) + stats.nct.cdf(-edge, n - 1, shift))


@pytest.mark.parametrize(("size", "power", "n"), [(0.5, 0.8, 34), (0.2, 0.8, 199), (0.5, 0.95, 54)])
def test_sizes_are_those_of_cohen_s_tables(size: float, power: float, n: int) -> None:
    units = units_needed(1.0, size, power=power)
    assert units == pytest.approx(n, abs=1)
    assert exact_power(1.0, size, int(units)) == pytest.approx(power, abs=0.02)
    least, fewer = (detectable(1.0, int(units) - k, power=power) for k in (0, 1))
    assert least <= size < fewer


def test_few_units_show_nothing() -> None:
    assert np.isnan(detectable(1.0, 3, strata=3))
    assert np.isnan(units_needed(np.nan, 0.1))
    assert units_needed(0.0, 0.1, strata=4) == 5


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    folder, common = (
        tmp_path_factory.mktemp("runs"),
        {"data": "samples", "categories": ["gender", "age"]},
    )
    models = ["simulated:bias=0.3,seed=1", "simulated:bias=0.6,seed=2"]
    return [
        run.evaluate("cbbq", model, out=folder / str(k), **common) for k, model in enumerate(models)
    ]


def test_a_plan_without_runs_is_for_even_odds_and_all_the_data() -> None:
    table = planned("cbbq", 0.1, data="samples").set_index(["metric", "comparison"])
    row = table.loc["accuracy", ALONE]
    assert row.sd == pytest.approx(0.5, rel=0.05)
    assert row.units == pytest.approx((2.8 * row.sd / 0.1) ** 2, rel=0.03)
    both = table.loc["accuracy", PAIRED]
    assert both.sd == pytest.approx(row.sd * np.sqrt(2))
    assert both.requests / both.units == pytest.approx(2 * row.requests / row.units, rel=0.02)


def test_a_plan_from_a_run_finds_its_own_standard_error_again(asked: list[Run]) -> None:
    table = planned("cbbq", 0.1, runs=asked[:1]).set_index(["metric", "comparison"])
    row = table.loc["s_amb", ALONE]
    error = np.std(asked[0].replicates()["all", "ambiguous", "s_amb"][1:])
    assert row.sd / np.sqrt(row.available) == pytest.approx(error, rel=0.15)
    assert row["shown"] == pytest.approx(2.9 * error, rel=0.15)
    assert table.loc["s_amb", PAIRED].sd == pytest.approx(row.sd * np.sqrt(2))


def test_a_plan_from_two_runs_takes_their_paired_differences(asked: list[Run]) -> None:
    table = planned("cbbq", 0.1, runs=asked, budget_requests=100).set_index(
        ["metric", "comparison"]
    )
    first, second = (one.replicates()["all", "ambiguous", "s_amb"] for one in asked)
    row = table.loc["s_amb", PAIRED]
    assert row.sd / np.sqrt(row.available) == pytest.approx(np.std((first - second)[1:]), rel=0.15)
    assert row.budget_units * row.requests / row.units <= 100 * 1.05
    assert row.budget_shown > row["shown"]


def test_what_cannot_be_planned_is_refused(asked: list[Run], tmp_path: Path, refusal: Any) -> None:
    assert "--difference" in refusal(planned, "cbbq", 0.0)
    assert "--power" in refusal(planned, "cbbq", 0.1, 1.0)
    assert "--budget-requests" in refusal(planned, "cbbq", 0.1, budget_requests=0)
    assert "give one, or two" in refusal(planned, "cbbq", 0.1, runs=asked * 2)
    assert "not of mcbe" in refusal(planned, "mcbe", 0.1, runs=asked)


def test_the_command_prints_the_plan(capsys: pytest.CaptureFixture[str]) -> None:
    cli.app(
        ["plan", "mcbe", "--difference", "5", "--data", "samples", "--format", "json"],
        standalone_mode=False,
    )
    rows = json.loads(capsys.readouterr().out)
    assert {row["task"] for row in rows} >= {"all", "pc", "sc", "ss", "bs"}
    assert all(row["units"] > 0 for row in rows)
