"""Do benchmarks order models alike: correlations against SciPy, traits of known structure, too few models."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from bench import run
from bench.analyses.convergence import measured
from bench.figures.convergence import matrix
from bench.metrics.convergence import Measure, correlated, findings, reliabilities


def measure(name: str, trait: str, scores: list[float], error: float = 0.0) -> Measure:
    """A measure with these scores of models m0, m1 and so on, resampled with a standard error."""
    dice = np.random.default_rng(len(name))
    values = {
        f"m{k}": np.concatenate([[score], score + dice.normal(0, error, 1000)])
        for k, score in enumerate(scores)
    }
    return Measure(f"{name} {trait}", name, trait, values)


@pytest.fixture
def five() -> list[Measure]:
    """Two traits, each measured by two benchmarks; the traits are unrelated."""
    grasp, preference = [1.0, 2, 3, 4, 5], [3.0, 5, 1, 2, 4]
    return [
        measure("A", "grasp", grasp, 0.1),
        measure("B", "grasp", [value**2 for value in grasp], 3),
        measure("A", "preference", preference, 0.1),
        measure("B", "preference", [*preference[:3], 4, 2.0], 0.1),
    ]


def test_correlations_and_p_are_scipy_s(five: list[Measure]) -> None:
    found = correlated(five).set_index(["first", "second"])
    row = found.loc["A preference", "B preference"]
    x, y = [3, 5, 1, 2, 4], [3, 5, 1, 4, 2]
    assert row.rho == pytest.approx(stats.spearmanr(x, y).statistic)
    exact = stats.permutation_test(
        (x,),
        lambda order: stats.spearmanr(order, y).statistic,
        permutation_type="pairings",
    )
    assert row.p == pytest.approx(exact.pvalue)
    assert (row.n, row.kind) == (5, "convergent")
    whole = found.loc["A grasp", "B grasp"]
    assert (whole.rho, whole.p) == pytest.approx((1.0, 2 / 120))
    # Other items could turn close scores round.
    assert whole.ci_low < whole.ci_high == 1
    assert found.loc["A grasp", "B preference"].kind == "discriminant"
    assert found.loc["A grasp", "A preference"].rho == pytest.approx(-0.1)


def test_reliability_is_what_is_not_chance_of_items(five: list[Measure]) -> None:
    found = reliabilities(five).set_index("measure").reliability
    assert found["A grasp"] == pytest.approx(1 - 0.01 / 2.5, abs=0.001)
    noisy = measure("C", "grasp", [1.0, 1.1, 0.9, 1.0], 5)
    assert reliabilities([noisy]).reliability.tolist() == [0.0]


def test_findings_set_one_trait_against_two(five: list[Measure]) -> None:
    told = findings(correlated(five))
    assert len(told) == 3
    assert "1.00" in told[0]


def test_three_models_are_too_few_for_a_sentence(five: list[Measure]) -> None:
    three = [one._replace(values=dict(list(one.values.items())[:3])) for one in five]
    found = correlated(three)
    assert found.rho.isna().all()
    assert set(found.reason) == {"3 models have both; 4 are needed at least"}
    (told,) = findings(found)
    assert "Too few models" in told
    assert matrix(found, reliabilities(three)) is None


def test_models_with_one_score_have_no_order(five: list[Measure]) -> None:
    level = measure("C", "grasp", [1.0] * 5)
    found = correlated([five[0], level])
    assert found.reason.tolist() == ["all models have the same score"]


@pytest.mark.slow
def test_runs_of_respondents_that_differ_in_bias_alone_agree(tmp_path: Path) -> None:
    runs = {
        benchmark: [
            run.evaluate(
                benchmark,
                f"simulated:bias={bias},seed={k}",
                out=tmp_path / f"{benchmark}{k}",
                **options,
            )
            for k, bias in enumerate([0.1, 0.35, 0.6, 0.9])
        ]
        for benchmark, options in (
            ("cbbq", {"data": "samples", "categories": ["gender", "age"]}),
            ("mcbe", {"data": "samples", "tasks": ["ss", "bs"]}),
            ("nli_coal", {"data": "samples", "categories": ["en"]}),
        )
    }
    every = measured(runs)
    assert [one.name for one in every] == [
        "McBE BS",
        "CBBQ accuracy",
        "McBE SS",
        "CBBQ s_amb",
        "NLI-CoAL directional_gap",
    ]
    found = correlated(every)
    assert (found.n == 4).all()
    across = found.set_index(["first", "second"]).rho
    assert across["CBBQ s_amb", "NLI-CoAL directional_gap"] == pytest.approx(1)
    figure = matrix(found, reliabilities(every))
    assert figure is not None
    assert "CBBQ s_amb" in figure.get_label()
