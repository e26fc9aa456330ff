"""Trends over size: which models are a series, slopes as SciPy has them, findings and pictures."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from bench import run
from bench.analyses import model_size_trends as sizes
from bench.analyses.model_size_trends import COUNTED, GIVEN, LAYERS, NAMED, Sized, pictures
from bench.metrics.bootstrap import Replicates, Sample
from bench.metrics.cbbq import HEADLINES
from bench.metrics.table import ALL
from bench.run import Run
from tests.helpers.drawing import drawn

RNG = np.random.default_rng(0)


def run_of(model: str, parameters: Any = None) -> Run:
    about = {"benchmark": "cbbq", "asked": {"model": model}, "model": {"parameters": parameters}}
    return Run(Path(model), about | {"data": {"language": "zh", "labels": {}}})


def noisy(value: float) -> np.ndarray:
    return np.concatenate([[value], value + 0.01 * RNG.standard_normal(1000)])


def sized(values: dict[float, np.ndarray], **categories: list[float]) -> list[Sized]:
    """Return models of these sizes with a score each, observed and resampled."""
    models = []
    for k, (size, score) in enumerate(values.items()):
        replicates = Replicates()
        of = {ALL: score, **{name: noisy(given[k]) for name, given in categories.items()}}
        for name, values_of in of.items():
            replicates.add((name, "ambiguous", "s_amb"), np.asarray(values_of), Sample(1001, 1))
        models.append(Sized(f"m-{size:g}B", size, "its name", replicates))
    return models


def test_a_size_is_given_or_counted_or_read_from_the_name(refusal: Any) -> None:
    small = "Qwen/Qwen2.5-0.5B"
    for model, counted, given, size, source in (
        ("models/qwen2.5-1.5b-instruct-q4_k_m.gguf", None, {}, 1.5, NAMED),
        ("openai:glm-4-9b-chat@http://localhost:8000/v1", None, {}, 9, NAMED),
        ("Qwen/Qwen3-30B-A3B", None, {}, 30, NAMED),
        (small, 494_032_768, {}, 0.494032768, COUNTED),
        ("tiny:s", {"layers": 2, "hidden": 4}, {}, (2 * (10 * 16 + 5 * 4) + 4) / 1e9, LAYERS),
        (small, 494_032_768, {"Qwen2.5-0.5B": 0.49}, 0.49, GIVEN),
    ):
        assert sizes.billions(run_of(model, counted), given) == (pytest.approx(size), source)
    for model in ("mistralai/Mixtral-8x7B-v0.1", "openai:qwen-plus@http://x/v1", "gpt-3.5", "q4_k"):
        assert "its size is not known" in refusal(sizes.billions, run_of(model))
    assert "expected billions" in refusal(sizes.billions, run_of("m"), {"m": "7"})


def test_runs_are_opened_ordered_and_paired_or_refused(tmp_path: Path, refusal: Any) -> None:
    asked = run.evaluate_all("mcbe", list(sizes.SIMULATED), tmp_path, tasks=["ss"], limit=4)
    (result,) = sizes.analyse(asked[::-1]).values()
    (models,) = result.series.values()
    assert [one.billions for one in models] == [0.5, 1.5, 7, 32]
    whole = result.points[(result.points.category == ALL) & (result.points.task == "ss")]
    own = asked[0].scores().query("category == 'all' and task == 'ss' and metric == 'score'")
    for column in ("score", "baseline"):
        assert whole[column].iloc[0] == pytest.approx(own[column].iloc[0])
    lines = drawn(pictures.over_size(result)).axes[0].lines
    assert any(list(line.get_ydata()) == pytest.approx(list(whole.score)) for line in lines)
    drawn(pictures.by_category(result, result.headlines[0]))
    (first, second), about = [one.model for one in asked[:2]], asked[1].about
    named = about | {"asked": about["asked"] | {"model": "simulated:bias=0.1"}}
    nameless = Run(asked[1].folder, named)
    other = Run(asked[1].folder, about | {"data": about["data"] | {"sha256": "0"}})
    for message, *arguments in (
        ("no run of gpt on mcbe", asked, {"x": [first, "gpt"]}),
        ("expected a list", asked, {"x": first}),
        ("no series has models of two sizes", asked[:1]),
        ("its size is not known", [asked[0], nameless], {"x": [first, nameless.model]}),
        ("both of 3 billion", asked[:2], {"x": [first, second]}, {first: 3, second: 3}),
        ("different data", [asked[0], other], {"x": [first, second]}),
    ):
        assert message in refusal(sizes.by_size, *arguments)


def test_trends_and_gains_are_paired_over_resamples() -> None:
    # What makes the scores of all sizes rise and fall together.
    common = 0.2 * RNG.standard_normal(1000)
    scores = {1: 0.2, 4: 0.4, 8: 0.9}
    models = sized({b: np.concatenate([[s], s + common]) for b, s in scores.items()})
    (row,) = sizes.trends({"s": models}).to_dict("records")
    fit = stats.linregress([0, 2, 3], list(scores.values()))
    assert row["per_doubling"] == pytest.approx(fit.slope)
    # Unpaired, the spread would be tenths; it cancels out, and no spread makes no interval.
    assert row["p_items"] < 1e-6
    assert np.isnan([row["items_low"], row["items_high"]]).all()
    # Over models, as SciPy tests a slope: three models leave one degree of freedom.
    arm = stats.t.ppf(0.975, 1) * fit.stderr
    assert (row["ci_low"], row["ci_high"]) == pytest.approx((fit.slope - arm, fit.slope + arm))
    assert row["p"] == pytest.approx(fit.pvalue)
    steps = sizes.gains({"s": models})
    assert list(steps.gain) == pytest.approx([0.1, 0.5])
    assert list(steps.doublings) == [2, 1]


def test_gaps_are_named_and_p_is_adjusted_for_the_other_categories() -> None:
    models = sized({1: noisy(0.2), 2: np.full(1001, np.nan), 4: noisy(0.4)})
    (row,) = sizes.trends({"s": models}).to_dict("records")
    assert (row["sizes"], row["note"]) == (2, "two sizes make no trend; no number for m-2B")
    scores = {1: noisy(0.2), 2: noisy(0.4), 4: noisy(0.5)}
    table = sizes.trends({"s": sized(scores, a=[0.2, 0.21, 0.2], b=[0.2, 0.235, 0.26])})
    a, b = (table[table.category == name].iloc[0] for name in "ab")
    assert b.p_holm == pytest.approx(2 * b.p)
    assert a.p_holm == pytest.approx(min(1, a.p))


@pytest.fixture
def two_sizes() -> sizes.Result:
    """Two sizes whose three scores differ by 2.2, 2.2 and 4 standard errors."""
    headlines = [HEADLINES[0]._replace(task=name) for name in "abc"]
    models = []
    for size in (1, 2):
        replicates = Replicates()
        for headline, apart in zip(headlines, (2.2, 2.2, 4), strict=True):
            spread = np.append(0, RNG.standard_normal(1000)) * (size == 2)
            values = 0.3 + 0.01 * ((size == 2) * apart + spread)
            replicates.add((ALL, headline.task, headline.metric), values, Sample(1001, 1))
        models.append(Sized(f"m-{size}B", size, "its name", replicates))
    table = sizes.trends({"s": models})
    nothing = pd.DataFrame(columns=["series", *sizes.PLACE, "billions"])
    return sizes.Result("cbbq", {"s": models}, nothing, table, headlines, nothing)


def test_p_of_two_sizes_is_adjusted_for_the_other_scores(two_sizes: sizes.Result) -> None:
    table = two_sizes.trends
    expected = multipletests(table.p_items, method="holm")[1]
    assert table.p_holm.to_numpy() == pytest.approx(expected)


def test_two_sizes_differ_in_the_scores_whose_adjusted_p_says_so(two_sizes: sizes.Result) -> None:
    (sentence,) = sizes.findings(two_sizes)
    assert "They differ in 1 of 3 scores" in sentence
