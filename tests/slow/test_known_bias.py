"""Respondents of known character through the whole chain: what each category has to score."""

import math
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import pytest

from bench import run

pytestmark = pytest.mark.slow

# The specification's section 3.1. Ambiguous: always A upstream, A corrected, B corrected;
# disambiguous: A upstream, A corrected.
HALF = (0.5, 0.5, 0.5, 0.5, 0.5)
CONSTANT = {
    "ethnicity": HALF,
    "physical_appearance": HALF,
    "sexual_orientation": HALF,
    "disability": (0.507557, 0.507557, 0.492443, 0.507712, 0.507712),
    "disease": (0.510239, 0.510239, 0.489761, 0.510239, 0.510239),
    "educational_qualification": (1.0, 0.5, 0.5, 0.5, 0.5),
    "gender": (0.505867, 0.494133, 0.505867, 0.500544, 0.486398),
}
LARGE = {
    "age": (0.490270, 0.506486, 0.493514, 0.490270, 0.496757),
    "household_registration": (0.506897, 0.506897, 0.493103, 0.506897, 0.506897),
    "nationality": (0.5, 0.5, 0.5, 0.499917, 0.499917),
}


def of_metric(table: pd.DataFrame, metric: str, preset: str = "robust") -> pd.DataFrame:
    return table[(table.metric == metric) & (table.preset == preset)].set_index("category")


@pytest.mark.parametrize("bias", [0, 0.25, 0.5, 0.75, 1])
def test_a_simulated_bias_is_recovered_in_every_released_category(
    shared: Path, tmp_path: Path, bias: float
) -> None:
    # With the released labels a right answer would be a biased one here and there.
    options = {"settings": {"labels": "audited"}, "limit": 120, "out": tmp_path}
    model = f"simulated:bias={bias:g},seed=3"
    table = run.evaluate("cbbq", model, data=shared / "data/cbbq", **options).scores()
    inside = []
    # A total is made of two contexts, which weigh 0.4 and 0.6.
    for metric, weight in (("s_amb", 1), ("s_disamb", 1), ("s_total", 0.4**2 + 0.6**2)):
        rows = of_metric(table, metric)
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
@pytest.mark.parametrize("expected", [CONSTANT, LARGE])
def test_constant_answers_get_the_specification_s_values(
    shared: Path, tmp_path: Path, expected: Mapping[str, tuple[float, ...]], letter: str
) -> None:
    options = {"categories": list(expected), "data": shared / "data/cbbq", "out": tmp_path}
    done = run.evaluate("cbbq", f"simulated:answer={letter}", **options)
    tables = {preset: done.scores(preset) for preset in ("robust", "official")}
    for category, (amb_up, amb_a, amb_b, dis_up, dis_a) in expected.items():
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
