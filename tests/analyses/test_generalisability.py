"""How far a score generalises: components by hand and of known size, intervals, and studies of runs."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from bench import run
from bench.analyses.generalisability import generalised
from bench.metrics.bootstrap import Sample
from bench.metrics.generalisability import (
    MODELS,
    NEGATIVE,
    ONE_DEGREE,
    ORDERS,
    SEEDS,
    WORDINGS,
    Crossed,
    by_facet,
    components,
    d_study,
    error_variance,
    finding,
    interval,
)
from bench.metrics.table import ALL
from bench.run.results import Run

UNIT = (-np.inf, np.inf)


def crossed(values: np.ndarray, *facets: str) -> Crossed:
    """A table of one category: values [items, *facets]."""
    scores = values.mean(0)
    return Crossed(facets, scores, values - scores, Sample(len(values), 1))


def test_components_of_items_and_wordings_are_those_by_hand() -> None:
    table = crossed(np.array([[1.0, 1], [0, 1], [0, 0]]), WORDINGS)
    found = components(table)
    assert found.df.to_dict() == {"items": 2, "wordings": 1, "items x wordings": 2}
    assert found.mean_square.tolist() == pytest.approx([1 / 2, 1 / 6, 1 / 6])
    assert found.variance.tolist() == pytest.approx([1 / 6, 0, 1 / 6], abs=1e-12)
    assert ONE_DEGREE in found.note["wordings"]
    # 1/6 over 3 items, and 1/6 over 3 items times 2 wordings.
    assert error_variance(found, table.sizes) == pytest.approx(1 / 18 + 1 / 36)
    planned = d_study(found, table.sizes).set_index("wordings")
    assert planned.error[8] ** 2 == pytest.approx(1 / 18 + 1 / 144)
    assert planned.half_width[8] == pytest.approx(1.959964 * planned.error[8])
    assert planned.g.isna().all()


def test_a_negative_component_is_set_to_nought_and_said() -> None:
    found = components(crossed(np.array([[1.0, 0], [0, 1], [1, 0], [0, 1]]), WORDINGS))
    assert found.variance["wordings"] == 0
    assert NEGATIVE in found.note["wordings"]


def test_components_of_four_facets_are_found_again() -> None:
    sizes = {MODELS: 4, WORDINGS: 3, ORDERS: 3, SEEDS: 2}
    true = {
        "items": 1.0,
        "models": 0.5,
        "wordings": 0.3,
        "orders": 0.2,
        "items x wordings": 0.4,
        "models x wordings": 0.3,
        "items x models x wordings x orders x seeds": 0.6,
    }
    dice, axes = np.random.default_rng(0), {"items": 12, **sizes}
    means = []
    for _ in range(150):
        values = np.zeros(tuple(axes.values()))
        for source, variance in true.items():
            held = source.split(" x ")
            shape = [size if name in held else 1 for name, size in axes.items()]
            values = values + dice.normal(0, variance**0.5, shape)
        means.append(components(crossed(values, *sizes)).variance)
    found = pd.DataFrame(means).mean()
    for source, variance in true.items():
        assert found[source] == pytest.approx(variance, rel=0.25)
    # What is not there is hardly found; estimates that are set to 0 leave a little.
    assert found.drop(list(true)).max() < 0.06


def test_an_analysis_of_variance_by_least_squares_gives_the_same_mean_squares() -> None:
    dice = np.random.default_rng(3)
    values = dice.normal(size=(5, 3, 2))
    found = components(crossed(values, WORDINGS, SEEDS))
    long = pd.DataFrame(
        [(i, w, s, values[i, w, s]) for i in range(5) for w in range(3) for s in range(2)],
        columns=["items", "wordings", "seeds", "y"],
    )

    def explained(*terms: str) -> float:
        parts = [np.ones((len(long), 1))]
        for term in terms:
            cells = long.groupby(term.split(" x ")).ngroup()
            parts.append(pd.get_dummies(cells).to_numpy(float))
        design = np.hstack(parts)
        fitted = design @ np.linalg.lstsq(design, long.y.to_numpy(), rcond=None)[0]
        return float(((fitted - long.y.mean()) ** 2).sum())

    main = explained("items", "wordings", "seeds")
    assert found.mean_square["items"] * 4 == pytest.approx(explained("items"))
    both = explained("items", "wordings", "seeds", "items x wordings")
    assert found.mean_square["items x wordings"] * 8 == pytest.approx(both - main)
    total = float(((long.y - long.y.mean()) ** 2).sum())
    assert (found.mean_square * found.df).sum() == pytest.approx(total)


def test_coefficients_are_those_of_their_formulas() -> None:
    dice = np.random.default_rng(1)
    values = (
        dice.normal(size=(20, 1, 1)) + dice.normal(size=(1, 5, 1)) + dice.normal(size=(20, 5, 4))
    )
    table = crossed(values, MODELS, WORDINGS)
    found = components(table)
    part = found.variance
    relative = part["items x models"] / 20 + part["models x wordings"] / 2
    relative += part["items x models x wordings"] / 40
    absolute = relative + part["items"] / 20 + part["wordings"] / 2 + part["items x wordings"] / 40
    row = d_study(found, table.sizes).set_index("wordings").loc[2]
    assert row.g == pytest.approx(part["models"] / (part["models"] + relative))
    assert row.dependability == pytest.approx(part["models"] / (part["models"] + absolute))
    assert row.error**2 == pytest.approx(absolute)
    assert by_facet(found).sum() == pytest.approx(1)


def test_an_interval_of_one_wording_and_many_seeds_of_no_effect_is_that_of_items() -> None:
    values = np.repeat(np.random.default_rng(2).integers(0, 2, (30, 1)), 4, axis=1).astype(float)
    found = interval(crossed(values, SEEDS), components(crossed(values, SEEDS)), (0, 1))
    error = stats.sem(values[:, 0]) * stats.t.ppf(0.975, 29)
    assert (found.items_low, found.items_high) == pytest.approx(
        (values.mean() - error, values.mean() + error)
    )
    assert (found.ci_low, found.ci_high) == pytest.approx((found.items_low, found.items_high))


def test_two_seeds_of_independent_answers_do_not_widen_an_interval() -> None:
    dice, widths = np.random.default_rng(6), []
    for _ in range(40):
        table = crossed((dice.random((60, 2)) < 0.3).astype(float), SEEDS)
        found = interval(table, components(table), (0, 1))
        widths.append((found.ci_high - found.ci_low) / (found.items_high - found.items_low))
    assert np.median(widths) == pytest.approx(1, abs=0.1)


def test_items_that_do_not_differ_have_no_interval_of_their_own() -> None:
    table = crossed(np.tile([[0.0, 1, 0, 0]], (10, 1)), ORDERS)
    found = interval(table, components(table), (0, 2))
    assert np.isnan([found.items_low, found.items_high]).all()
    assert (found.ci_low, found.ci_high) == pytest.approx((0, 0.25 * (1 + stats.t.ppf(0.975, 3))))


@pytest.mark.slow
@pytest.mark.parametrize(("wordings", "least"), [(2, 0.87), (4, 0.9), (8, 0.92)])
@pytest.mark.parametrize("spread", [0.0, 0.3, 0.8])
def test_an_interval_over_wordings_holds_the_true_score(
    wordings: int,
    least: float,
    spread: float,
) -> None:
    dice, held, narrow, n = np.random.default_rng(5), 0, 0, 400
    true = stats.norm.sf(0.5 / np.sqrt(1 + 0.7**2 + 0.4**2 + spread**2))
    for _ in range(n):
        latent = dice.normal(0, 0.7, (60, 1)) + dice.normal(0, spread, (1, wordings))
        latent = latent + dice.normal(0, np.sqrt(1 + 0.4**2), (60, wordings))
        table = crossed((latent > 0.5).astype(float), WORDINGS)
        found = interval(table, components(table), (0, 1))
        held += found.ci_low <= true <= found.ci_high
        narrow += found.items_low <= true <= found.items_high
    assert least <= held / n <= 0.99
    if spread == 0.8:
        assert narrow / n < 0.8


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """Two respondents that prefer A, in two wordings, three orders of options and two seeds."""
    folder = tmp_path_factory.mktemp("runs")
    common = {"data": "samples", "categories": ["gender", "age"], "repeats": 2}
    return [
        run.evaluate(
            "cbbq",
            model,
            out=folder / f"{k}{prompts}",
            prompts=prompts or None,
            settings={"option_order": "rotated"},
            **common,
        )
        for k, model in enumerate(
            ["simulated:bias=0.3,position=0.5,seed=1", "simulated:bias=0.8,seed=2"]
        )
        for prompts in ("", "reworded")
    ]


def test_a_study_of_runs_is_one_crossed_table(asked: list[Run]) -> None:
    study = generalised(asked)
    assert study.left_out.empty
    assert set(study.components.model) == {ALL}
    row = study.scores.set_index(["model", "metric"]).loc["simulated:bias=0.8,seed=2", "s_amb"]
    assert row[["wordings", "orders", "seeds"]].tolist() == [2, 3, 2]
    scores = [
        one.scores().query("category == 'all' and metric == 's_amb'").score.iloc[0] for one in asked
    ]
    assert row.score == pytest.approx(np.mean(scores[2:]))
    assert row.ci_low <= row.items_low < row.score < row.items_high <= row.ci_high
    # They do not read, so their answers are the same in other words.
    by_source = study.components[study.components.metric == "s_amb"].set_index("source").variance
    assert by_source[[name for name in by_source.index if "wordings" in name]].max() < 1e-12
    assert by_source["models"] > 0
    assert set(study.planned.wordings) == {1, 2, 4, 8}
    assert len(study.findings) == 3


def test_a_respondent_that_goes_by_position_moves_with_the_order(asked: list[Run]) -> None:
    first, other = generalised(asked[:2]), generalised(asked[2:])
    variances = [
        part.components[part.components.metric == "s_amb"].set_index("source").variance["orders"]
        for part in (first, other)
    ]
    assert variances[0] > 5 * variances[1]


def test_what_makes_no_crossed_table_is_left_out(asked: list[Run], tmp_path: Path) -> None:
    options = {"data": "samples", "categories": ["gender", "age"]}
    alone = run.evaluate("cbbq", "simulated:bias=0.4", out=tmp_path / "a", **options)
    plain = run.evaluate(
        "cbbq",
        "simulated:bias=0.8,seed=2",
        out=tmp_path / "b",
        settings={"prompting": "Q+IF"},
        **options,
    )
    study = generalised([*asked, alone, plain])
    why = dict(zip(study.left_out.model, study.left_out.why, strict=True))
    assert why["simulated:bias=0.4"] == "asked in one way alone"
    assert why["simulated:bias=0.8,seed=2"] == "asked with other options or data"
    nothing = generalised([alone])
    assert nothing.scores.empty
    assert nothing.components.empty
    assert nothing.findings == []


def test_a_score_without_a_number_is_told(tmp_path: Path) -> None:
    # Who always says unknown has no number of disambiguous answers that name a person.
    silent = run.evaluate(
        "cbbq",
        "simulated:answer=C",
        out=tmp_path,
        data="samples",
        categories=["age"],
        repeats=2,
    )
    (why,) = generalised([silent]).left_out.why
    assert why.startswith("Disambiguous")
    assert why.endswith("no number under one of the conditions")


def test_a_finding_says_what_two_wordings_are_worth() -> None:
    table = crossed(np.array([[1.0, 1], [0, 1], [0, 0]]), WORDINGS)
    found = components(table)
    told = finding(found, d_study(found, table.sizes), table.sizes, "Accuracy")
    assert "0.289" in told
    assert "1 degree of freedom" in told
