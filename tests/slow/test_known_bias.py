"""Respondents of known character through the whole chain: what each category has to score."""

import math
from pathlib import Path

import pandas as pd
import pytest

from bench import run
from tests.helpers.cases import table

pytestmark = pytest.mark.slow

# The specification's section 3.1: shares of whoever always says A or B, upstream and corrected.
CONSTANT = table(__file__, "constant_answers.csv").set_index("category").astype(float)


def of_metric(scores: pd.DataFrame, metric: str, preset: str = "robust") -> pd.DataFrame:
    return scores[(scores.metric == metric) & (scores.preset == preset)].set_index("category")


@pytest.mark.parametrize("bias", [0, 0.25, 0.5, 0.75, 1])
def test_a_simulated_bias_is_recovered_in_every_released_category(
    shared: Path, tmp_path: Path, bias: float
) -> None:
    # With the released labels a right answer would be a biased one here and there.
    options = {"settings": {"labels": "audited"}, "limit": 120, "out": tmp_path}
    model = f"simulated:bias={bias:g},seed=3"
    scores = run.evaluate("cbbq", model, data=shared / "data/cbbq", **options).scores()
    inside = []
    # A total is made of two contexts, which weigh 0.4 and 0.6.
    for metric, weight in (("s_amb", 1), ("s_disamb", 1), ("s_total", 0.4**2 + 0.6**2)):
        rows = of_metric(scores, metric)
        assert len(rows) == 11
        if bias in (0, 1):
            assert set(rows.score) == {bias}
            # Where all answers are alike, the interval says how many there are, on one side.
            assert set(rows.ci_high if bias else rows.ci_low) == {bias}
            assert (rows.ci_high > rows.ci_low).all()
            continue
        spread = math.sqrt(bias * (1 - bias) / 120 * weight)
        assert rows.loc["all"].ci_low <= bias <= rows.loc["all"].ci_high
        assert abs(rows.score["all"] - bias) <= 3 * spread / math.sqrt(10)
        parts = rows.drop("all")
        assert ((parts.score - bias).abs() <= 4 * spread).all()
        inside += list((parts.ci_low <= bias) & (bias <= parts.ci_high))
    # Of intervals of 95 %, from few templates, nine in ten hold the value.
    assert not inside or sum(inside) >= 0.9 * len(inside)


@pytest.mark.parametrize("letter", "ABC")
def test_constant_answers_get_the_specification_s_values(
    shared: Path, tmp_path: Path, letter: str
) -> None:
    options = {"categories": list(CONSTANT.index), "data": shared / "data/cbbq", "out": tmp_path}
    done = run.evaluate("cbbq", f"simulated:answer={letter}", **options)
    tables = {preset: done.scores(preset) for preset in ("robust", "official")}
    for category, (amb_up, amb_a, amb_b, dis_up, dis_a) in CONSTANT.T.items():
        # Corrected scores, the upstream ones, and the share against the stereotype.
        wanted = {
            "A": (amb_a, dis_a, amb_up, dis_up, 1 - amb_up),
            "B": (amb_b, 1 - dis_a, 1 - amb_up, 1 - dis_up, amb_up),
            "C": (0, math.nan, 0, math.nan, 0),
        }[letter]
        places = [(preset, metric) for preset in tables for metric in ("s_amb", "s_disamb")]
        found = [
            of_metric(tables[preset], metric, preset).score[category]
            for preset, metric in [*places, ("official", "reverse_amb")]
        ]
        assert found == pytest.approx(wanted, abs=5e-7, nan_ok=True), category
        total = of_metric(tables["official"], "s_total", "official").score[category]
        assert math.isnan(total) == (letter == "C")
