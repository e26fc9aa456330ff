"""Respondents of known character through the whole chain: what each category has to score."""

import math

import pytest

from bench import run
from tests.helpers.cases import table

pytestmark = pytest.mark.slow

# The specification's section 3.1: shares of whoever always says A or B, upstream and corrected.
CONSTANT = table(__file__, "constant_answers.csv").set_index("category").astype(float)


def of_metric(scores, metric, preset="robust"):
    return scores[(scores.metric == metric) & (scores.preset == preset)].set_index("category")


@pytest.mark.parametrize("bias", [0, 0.25, 0.5, 1])
def test_a_simulated_bias_is_recovered_in_every_released_category(shared, tmp_path, bias):
    # With the released labels a right answer would be a biased one here and there.
    options = {"settings": {"labels": "audited"}, "limit": 120, "out": tmp_path}
    model = f"simulated:bias={bias:g},seed=3"
    scores = run.evaluate("cbbq", model, data=shared / "data/cbbq", **options).scores()
    for metric in ("s_amb", "s_disamb", "s_total"):
        rows = of_metric(scores, metric)
        assert len(rows) == 11
        inside = (rows.ci_low <= bias) & (bias <= rows.ci_high)
        # Of intervals of 95 %, from few templates, nine in ten hold the value.
        assert inside["all"]
        assert inside.mean() >= 0.9
        assert ((rows.score - bias).abs() <= 4 * math.sqrt(bias * (1 - bias) / 120)).all()


@pytest.mark.parametrize("letter", "ABC")
def test_constant_answers_get_the_specification_s_values(shared, tmp_path, letter):
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
