"""Trends over size: which models are a series, slopes as SciPy has them, findings and pictures."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from transformers import Qwen2ForCausalLM

from bench import run
from bench.analyses import model_size_trends as sizes
from bench.analyses.model_size_trends import COUNTED, GIVEN, LAYERS, NAMED, Sized, pictures
from bench.metrics.bootstrap import Replicates, Sample
from bench.metrics.cbbq import HEADLINES
from bench.metrics.table import ALL
from bench.run import Run
from bench.scorers.stand_ins.tiny import SIZES, config, tokenizer
from tests.helpers.drawing import drawn

RNG = np.random.default_rng(0)


def run_of(model: str, parameters: Any = None) -> Run:
    about = {"benchmark": "cbbq", "asked": {"model": model}, "model": {"parameters": parameters}}
    return Run(Path(model), about)


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


def result_of(series: dict[str, list[Sized]]) -> sizes.Result:
    """Return the result of series."""
    rows = [
        (name, one.model, one.billions, *place, v[0], v[0] - 0.01, v[0] + 0.01)
        for name, models in series.items()
        for one in models
        for place, v in one.replicates.items()
    ]
    columns = ["series", "model", "billions", "category", "task", "metric", "score"]
    own = pd.DataFrame(rows, columns=[*columns, "ci_low", "ci_high"])
    own = own.assign(valid_rate=1.0, position=0.9 / own.billions, baseline=np.nan)
    published = pd.DataFrame([["Paper", "x", 1.0, *own.iloc[0, 3:6], 0.6]], columns=columns)
    trends = sizes.trends(series)
    return sizes.Result("cbbq", series, own, trends, list(HEADLINES[:1]), published)


@pytest.mark.parametrize(
    ("model", "counted", "given", "size"),
    [
        ("Qwen/Qwen2.5-0.5B-Instruct", None, {}, (0.5, NAMED)),
        ("HuggingFaceTB/SmolLM2-135M-Instruct", None, {}, (0.135, NAMED)),
        ("models/qwen2.5-1.5b-instruct-q4_k_m.gguf", None, {}, (1.5, NAMED)),
        ("openai:glm-4-9b-chat@http://localhost:8000/v1", None, {}, (9, NAMED)),
        ("Qwen/Qwen3-30B-A3B", None, {}, (30, NAMED)),
        ("internlm/internlm2_5-7b-chat", None, {}, (7, NAMED)),
        ("Qwen/Qwen2.5-0.5B", 494_032_768, {}, (0.494032768, COUNTED)),
        ("Qwen/Qwen2.5-0.5B", 494_032_768, {"Qwen2.5-0.5B": 0.49}, (0.49, GIVEN)),
    ],
)
def test_a_size_is_given_or_counted_or_read_from_the_name(
    model: str, counted: int | None, given: dict[str, float], size: tuple[float, str]
) -> None:
    assert sizes.billions(run_of(model, counted), given) == (pytest.approx(size[0]), size[1])


@pytest.mark.parametrize(
    "model", ["mistralai/Mixtral-8x7B-v0.1", "openai:qwen-plus@http://x/v1", "gpt-3.5", "q4_k_m"]
)
def test_an_unknown_size_is_asked_for(model: str, refusal: Any) -> None:
    assert "its size is not known" in refusal(sizes.billions, run_of(model))
    for wrong in (0, "7", True):
        assert "expected billions" in refusal(sizes.billions, run_of(model), {model: wrong})


def test_the_layers_of_tiny_models_are_counted() -> None:
    for name, size in SIZES.items():
        with torch.device("meta"):
            network = Qwen2ForCausalLM(config(tokenizer(["一二三ABC"]), size))
        counted = network.num_parameters() - network.get_input_embeddings().weight.numel()
        found = sizes.billions(run_of(f"tiny:{name}", size._asdict()))
        assert found == (pytest.approx(counted / 1e9), LAYERS)
    for model, family in (
        ("Qwen/Qwen2.5-0.5B-Instruct", "Qwen2.5-Instruct"),
        ("tiny:s,bias=0.2", "tiny:bias=0.2"),
    ):
        assert sizes.family(run_of(model)) == family


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    folder = tmp_path_factory.mktemp("runs")
    return run.evaluate_all("mcbe", list(sizes.SIMULATED), folder, tasks=["ss"], limit=4)


def test_a_series_is_opened_ordered_and_paired(asked: list[Run]) -> None:
    (result,) = sizes.analyse(asked[::-1]).values()
    (models,) = result.series.values()
    assert [one.billions for one in models] == [0.5, 1.5, 7, 32]
    whole = result.points[(result.points.category == ALL) & (result.points.task == "ss")]
    own = asked[0].scores().query("category == 'all' and task == 'ss' and metric == 'score'")
    assert whole.score.iloc[0] == pytest.approx(own.score.iloc[0])
    assert whole.baseline.iloc[0] == pytest.approx(own.baseline.iloc[0])
    assert whole.valid_rate.min() == 1
    assert set(result.published.task) == {"ss"}


def test_series_that_cannot_be_made_are_refused(asked: list[Run], refusal: Any) -> None:
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


def test_the_slope_is_that_of_least_squares_over_doublings() -> None:
    of, scores = [0.5, 1.5, 7, 32], np.array([87.69, 80.49, 77.82, 77.11])
    expected = stats.linregress(np.log2(of), scores).slope
    assert sizes.slopes(of, scores[:, None]) == pytest.approx([expected])
    # By hand: 1, 2 and 4 are a doubling apart, and (0 - 1, 1 - 1, 2 - 1) . (3, 5, 9) / 2 = 3.
    assert sizes.slopes([1, 2, 4], np.array([[3.0], [5.0], [9.0]])) == pytest.approx([3.0])
    # By hand: 1, 3, 2, 4 over 0, 1, 2, 3 have the slope 0.8 and the residuals -.3, .9, -.9, .3,
    # whose squares add to 1.8; the error is sqrt(1.8 / 2 / 5), and t = 0.8 / 0.4243 = 1.886.
    tested = sizes.over_models([1, 2, 4, 8], np.array([1.0, 3, 2, 4]))
    assert (tested.difference, tested.p) == pytest.approx((0.8, 0.2))
    assert tested.ci_high - 0.8 == pytest.approx(4.3027 * np.sqrt(0.18), rel=1e-4)
    two = sizes.over_models([1, 2], np.array([1.0, 3]))
    assert two.difference == 2
    assert np.isnan([two.p, two.ci_low, two.ci_high]).all()
    assert two.note == "two sizes make no trend"


@given(st.floats(-5, 5), st.floats(0.1, 10))
def test_a_line_is_found_whatever_the_unit_of_size(slope: float, unit: float) -> None:
    of = np.array([0.1, 0.5, 7, 13, 70])
    values = (slope * np.log2(of) + 7)[:, None]
    assert sizes.slopes(of * unit, values) == pytest.approx([slope], abs=1e-6)


def test_a_band_goes_along_the_line_and_is_its_percentiles() -> None:
    values = np.array([noisy(1), noisy(2), noisy(4)])
    line, low, high = sizes.band([1, 2, 4], values, np.array([1.0, 2, 4, 8]))
    fit = stats.linregress([0, 1, 2], values[:, 0])
    assert line == pytest.approx(fit.intercept + fit.slope * np.arange(4))
    every = [stats.linregress([0, 1, 2], values[:, k]) for k in range(1, 1001)]
    ends = np.percentile([one.intercept + 3 * one.slope for one in every], [2.5, 97.5])
    assert [low[3], high[3]] == pytest.approx(list(ends))


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
    assert list(steps.step) == ["1B to 4B", "4B to 8B"]
    assert list(steps.doublings) == [2, 1]


def test_gaps_are_named_and_p_is_adjusted_for_the_other_categories() -> None:
    models = sized({1: noisy(0.2), 2: np.full(1001, np.nan), 4: noisy(0.4)})
    (row,) = sizes.trends({"s": models}).to_dict("records")
    assert (row["sizes"], row["note"]) == (2, "two sizes make no trend; no number for m-2B")
    assert row["per_doubling"] == pytest.approx(0.1)
    (alone,) = sizes.trends({"s": models[:2]}).to_dict("records")
    assert np.isnan(alone["per_doubling"])
    assert alone["note"] == "fewer than two sizes have a number"
    scores = {1: noisy(0.2), 2: noisy(0.4), 4: noisy(0.5)}
    gap = sized(scores, a=[0.2, 0.21, 0.2], b=[0.2, 0.235, 0.26], age=[0.1, 0.2, np.nan])
    table = sizes.trends({"s": gap}).set_index("category")
    assert table.note["all"].startswith("age: without a number at some sizes")
    table = sizes.trends({"s": sized(scores, a=[0.2, 0.21, 0.2], b=[0.2, 0.235, 0.26])})
    a, b = (table[table.category == name].iloc[0] for name in "ab")
    assert b.p_holm == pytest.approx(2 * b.p)
    assert a.p_holm == pytest.approx(min(1, a.p))


@pytest.mark.parametrize(
    ("scores", "text"),
    [
        ((0.2, 0.31, 0.39, 0.5), "rises with size (worse): +9.8 points of 100 a doubling"),
        ((0.5, 0.39, 0.31, 0.2), "falls with size (better): -9.8 points of 100 a doubling"),
        # Surely different on any items, and no nearer to a line than by chance.
        ((0.2, 0.6, 0.3, 0.5), "no change with size could be shown"),
        ((0.2, 0.4), "no trend; these models differ: +20.0 points of 100 a doubling"),
        ((0.2, np.nan), "nothing can be said: fewer than two sizes have a number."),
    ],
)
def test_a_finding_is_no_stronger_than_the_test(scores: tuple[float, ...], text: str) -> None:
    models = sized({2**k: noisy(score) for k, score in enumerate(scores)})
    (sentence,) = sizes.findings(result_of({"s": models}))
    assert text in sentence


def test_pictures_show_scores_over_size() -> None:
    rising = sized({1: noisy(0.2), 2: noisy(0.4), 8: noisy(0.7)}, age=[0.1, 0.2, 0.4])
    result = result_of({"a": rising})
    first = drawn(pictures.over_size(result)).axes[0]
    shown = {(tuple(line.get_xdata()), tuple(line.get_ydata())) for line in first.lines}
    assert ((1.0,), (0.6,)) in shown, "what the paper prints"
    assert any(y == pytest.approx((0.2, 0.4, 0.7)) for _x, y in shown if len(y) == 3)
    drawn(pictures.by_category(result, HEADLINES[0]))
    lines = drawn(pictures.beside(result)).axes[2].lines
    assert list(lines[0].get_ydata()) == pytest.approx([0.9, 0.45, 0.9 / 8])
