"""Respondents of known character through the whole chain, and CBBQ as its scripts count."""

import math
from pathlib import Path

import pandas as pd
import pytest

from bench import run
from bench.benchmarks import get
from bench.config import RunConfig
from bench.run.plan import make_requests, plan_run
from tests.helpers.recorded import scored

pytestmark = pytest.mark.slow

# The specification's section 3.1: scores of constant answers, corrected and upstream.
CONSTANT = pd.read_csv(Path(__file__).with_name("constant_answers.csv"), index_col=[0, 1])


def of_metric(scores, metric):
    return scores[scores.metric == metric].set_index("category")


@pytest.mark.parametrize("bias", [0, 0.25, 0.5, 1])
def test_a_simulated_bias_is_recovered_in_every_released_category(shared, tmp_path, bias):
    # With the released labels a right answer would be a biased one here and there.
    options = {"settings": {"labels": "audited"}, "limit": 120, "data": shared / "data/cbbq"}
    done = run.evaluate("cbbq", f"simulated:bias={bias:g},seed=3", out=tmp_path, **options)
    scores = done.scores()
    for metric in ("s_amb", "s_disamb", "s_total"):
        rows = of_metric(scores, metric)
        assert len(rows) == 11
        inside = (rows.ci_low <= bias) & (bias <= rows.ci_high)
        # Three of ten intervals of 95 % miss the value in one of a hundred samples.
        assert inside["all"]
        assert inside.mean() >= 0.8
        assert ((rows.score - bias).abs() <= 4 * math.sqrt(bias * (1 - bias) / 120)).all()


@pytest.mark.parametrize("letter", "ABC")
def test_constant_answers_get_the_specification_s_values(shared, tmp_path, letter):
    wanted = CONSTANT.loc[letter]
    options = {"categories": list(wanted.index), "data": shared / "data/cbbq", "out": tmp_path}
    done = run.evaluate("cbbq", f"simulated:answer={letter}", **options)
    found = {}
    for column in wanted:
        preset, metric = column.split()
        found[column] = of_metric(done.scores(preset), metric).score[wanted.index]
    pd.testing.assert_frame_equal(pd.DataFrame(found), wanted, rtol=0, atol=5e-7)
    totals = of_metric(done.scores("official"), "s_total").score[wanted.index]
    assert set(totals.isna()) == {letter == "C"}


def test_benchmarks_find_the_bias_of_the_training(own_folder):
    biases = (0.25, 0.5, 0.75)

    def scores(benchmark, where, **options):
        found = []
        for bias in biases:
            model, out = f"tiny:s,bias={bias}", f"{benchmark}-{bias}"
            done = run.evaluate(benchmark, model, out=out, **options)
            assert done.answers().valid.mean() >= 0.95
            table = done.scores().query(f"category == 'all' and preset == 'robust' and {where}")
            found.append(float(table.score.item()))
        return found

    assert scores("cbbq", "metric == 's_amb'") == pytest.approx(biases, abs=0.15)
    expected = [2 / 3 * bias for bias in biases]
    assert scores("nli_coal", "metric == 'coal'") == pytest.approx(expected, abs=0.08)
    fair, half, biased = scores("mcbe", "task == 'pc' and metric == 'score'", tasks=["pc"])
    assert fair > half > biased


PROMPTS = f"{Path(__file__).with_name('cbbq_scripts.toml')}#"
LIMITS = {"gpt-3.5": 1000, "belle": 200, "moss": 256, "bloomz": 128, "chatglm": 2048}
CAN = {"request_types": ["generate"], "answer_modes": [], "judge_request_types": []}


@pytest.mark.parametrize("name", [*LIMITS, None])
def test_replies_may_be_as_long_as_the_script_lets_them_be(name):
    def limit(preset, **options):
        given = {"benchmark": "cbbq", "model": "tiny:s", "preset": preset, "limit": 1, **options}
        given["prompts"] = PROMPTS + name if name else None
        plan = plan_run(get("cbbq"), RunConfig.of(given))
        (requests,) = make_requests(plan, CAN, partial=False).stages
        (limit,) = {request.max_new_tokens for request in requests}
        return limit

    assert limit("official") == (LIMITS[name] if name else 32)
    assert limit("robust") == 32
    assert limit("official", max_new_tokens=8) == 8


# Share of the letters below that count for the stereotype, and against it, by hand.
@pytest.mark.parametrize(
    ("name", "share"), [("moss", 0.25), ("bloomz", 0.25), ("gpt-3.5", 0.75), ("belle", 0.75)]
)
def test_moss_and_bloomz_read_the_first_line_alone(tmp_path, name, share):
    options = {"limit": 4, "categories": ["gender"], "tasks": ["ambiguous"], "out": tmp_path / "r"}
    asked = run.evaluate("cbbq", "simulated:", prompts=PROMPTS + name, **options)
    rows = asked.records.assign(response=["ab", "不知道\nA 或 B", "\nAB", "C\n"], error="")
    table = scored("cbbq", rows, asked.items, "official")
    scores = table[table.category == "all"].set_index("metric").score
    assert (scores["s_amb"], scores["reverse_amb"]) == pytest.approx((share, share))
