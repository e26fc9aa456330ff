"""Trends over size: which models are a series, slopes as SciPy has them, sentences and pictures."""

from collections.abc import Callable
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
from bench.analyses.model_size_trends import (
    COUNTED,
    GIVEN,
    LAYERS,
    NAMED,
    SIMULATED,
    Result,
    Sized,
    analyse,
    band,
    billions,
    by_size,
    family,
    findings,
    format_size,
    gains,
    over_models,
    pictures,
    slopes,
    trends,
)
from bench.metrics.bootstrap import Place, Replicates, Sample
from bench.metrics.cbbq import HEADLINES
from bench.metrics.table import ALL
from bench.run.results import Run
from bench.scorers.stand_ins.tiny import SIZES, config, tokenizer
from tests.helpers.drawing import drawn, ticks, told

Refusal = Callable[..., str]
QWEN, SS = [0.5, 1.5, 7, 32], [87.69, 80.49, 77.82, 77.11]
PLACE = (ALL, "ambiguous", "s_amb")
RNG = np.random.default_rng(0)
PUBLISHED = pd.DataFrame(
    {
        "series": "Paper",
        "model": ["x", "y"],
        "billions": [1.0, 64.0],
        "category": ALL,
        "task": "ambiguous",
        "metric": "s_amb",
        "score": [0.6, 0.9],
    }
)


def run_of(model: str, parameters: Any = None) -> Run:
    about = {"benchmark": "cbbq", "asked": {"model": model}, "model": {"parameters": parameters}}
    return Run(Path(model), about)


def noisy(value: float, spread: float = 0.01) -> np.ndarray:
    return np.concatenate([[value], value + spread * RNG.standard_normal(1000)])


def sized(values: dict[float, np.ndarray], place: Place = PLACE) -> list[Sized]:
    """Return models of these sizes with a score each, observed and resampled."""
    models = []
    for size, score in values.items():
        replicates = Replicates()
        replicates.add(place, np.asarray(score, float), Sample(1001, 1))
        models.append(Sized(f"m-{size:g}B", size, "its name", replicates))
    return models


def families(names: list[str]) -> dict[str, list[Sized]]:
    """Return series of three sizes with all scores of two categories; the second series rises."""

    def replicates(k: int, size: float) -> Replicates:
        scores, value = Replicates(), 0.3 + 0.05 * k * np.log2(size)
        for headline in HEADLINES:
            for category in ("gender", "age", ALL):
                place = (category, headline.task, headline.metric)
                scores.add(place, noisy(value), Sample(1001, 1))
        return scores

    return {
        name: [Sized(f"{name}-{b}B", b, "its name", replicates(k % 3, b)) for b in (1, 2, 8)]
        for k, name in enumerate(names)
    }


def result_of(series: Any, headlines: Any = HEADLINES, **more: Any) -> Result:
    """Return the result of series, with `more` columns of their points."""
    rows = [
        (name, one.model, one.billions, *place, v[0], v[0] - 0.01, v[0] + 0.01)
        for name, models in series.items()
        for one in models
        for place, v in one.replicates.items()
    ]
    columns = ["series", "model", "billions", "category", "task", "metric"]
    own = pd.DataFrame(rows, columns=[*columns, "score", "ci_low", "ci_high"])
    own = own.assign(**{"valid_rate": 1.0, "position": 0.5, "baseline": np.nan, **more})
    return Result("cbbq", series, own, trends(series), list(headlines), PUBLISHED)


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
        ("Qwen/Qwen2.5-0.5B", 494_032_768, {"Qwen/Qwen2.5-0.5B": 0.36}, (0.36, GIVEN)),
    ],
)
def test_a_size_is_given_or_counted_or_read_from_the_name(
    model: str, counted: int | None, given: dict[str, float], size: tuple[float, str]
) -> None:
    assert billions(run_of(model, counted), given) == (pytest.approx(size[0]), size[1])


@pytest.mark.parametrize(
    "model", ["mistralai/Mixtral-8x7B-v0.1", "openai:qwen-plus@http://x/v1", "gpt-3.5", "q4_k_m"]
)
def test_an_unknown_size_is_asked_for(model: str, refusal: Refusal) -> None:
    message = refusal(billions, run_of(model))
    assert "its size is not known" in message
    assert "sizes = {" in message
    for wrong in (0, -1, "7", True, None):
        assert "expected billions" in refusal(billions, run_of(model), {model: wrong})


@pytest.mark.parametrize("name", SIZES)
def test_the_layers_of_tiny_models_are_counted(name: str) -> None:
    with torch.device("meta"):
        network = Qwen2ForCausalLM(config(tokenizer(["一二三ABC"]), SIZES[name]))
    counted = network.num_parameters() - network.get_input_embeddings().weight.numel()
    size, source = billions(run_of(f"tiny:{name}", SIZES[name]._asdict()))
    assert (size, source) == (pytest.approx(counted / 1e9), LAYERS)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("Qwen/Qwen2.5-0.5B-Instruct", "Qwen2.5-Instruct"),
        ("Qwen/Qwen2.5-7B", "Qwen2.5"),
        ("tiny:s,bias=0.2", "tiny:bias=0.2"),
        ("simulated:bias=0.2", "simulated:bias=0.2"),
    ],
)
def test_a_family_is_the_name_without_the_size(model: str, name: str) -> None:
    assert family(run_of(model)) == name


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    folder = tmp_path_factory.mktemp("runs")
    return run.evaluate_all("mcbe", list(SIMULATED), folder, tasks=["ss"], limit=4)


def test_a_series_is_opened_ordered_and_paired(asked: list[Run]) -> None:
    (result,) = analyse(asked[::-1]).values()
    (models,) = result.series.values()
    assert [one.billions for one in models] == [0.5, 1.5, 7, 32]
    whole = result.points[(result.points.category == ALL) & (result.points.task == "ss")]
    own = asked[0].scores().query("category == 'all' and task == 'ss' and metric == 'score'")
    assert whole.score.iloc[0] == pytest.approx(own.score.iloc[0])
    assert whole.baseline.iloc[0] == pytest.approx(own.baseline.iloc[0])
    assert list(whole.position) == sorted(whole.position, reverse=True)
    assert whole.valid_rate.min() == 1
    assert set(result.published.task) == {"ss"}
    assert [one.task for one in result.headlines if one.task != ALL] == ["ss"]
    assert len(findings(result)) == len(result.headlines)


def test_series_that_cannot_be_made_are_refused(asked: list[Run], refusal: Refusal) -> None:
    first, second = asked[0].model, asked[1].model
    about = asked[1].about
    nameless = Run(
        asked[1].folder, about | {"asked": about["asked"] | {"model": "simulated:bias=0.1"}}
    )
    other = Run(asked[1].folder, about | {"data": about["data"] | {"sha256": "0"}})
    assert by_size(asked, {"two": [first, second]})["mcbe"].keys() == {"two"}
    for message, *arguments in (
        ("no run of gpt on mcbe", asked, {"x": [first, "gpt"]}),
        ("expected a list", asked, {"x": first}),
        ("no series has models of two sizes", asked[:1]),
        ("no series has models of two sizes", [asked[0], nameless]),
        ("its size is not known", [asked[0], nameless], {"x": [first, nameless.model]}),
        ("both of 3 billion", asked[:2], {"x": [first, second]}, {first: 3, second: 3}),
        ("different data", [asked[0], other], {"x": [first, second]}),
    ):
        assert message in refusal(by_size, *arguments)


def test_the_slope_is_that_of_least_squares_over_doublings() -> None:
    values = np.array([SS, SS[::-1]]).T
    found = slopes(QWEN, values)
    for k in (0, 1):
        assert found[k] == pytest.approx(stats.linregress(np.log2(QWEN), values[:, k]).slope)
    # By hand: 1, 2 and 4 are a doubling apart, and (0 - 1, 1 - 1, 2 - 1) . (3, 5, 9) / 2 = 3.
    assert slopes([1, 2, 4], np.array([[3.0], [5.0], [9.0]])) == pytest.approx([3.0])


@given(
    st.lists(
        st.floats(0.001, 1000), min_size=2, max_size=6, unique_by=lambda x: round(np.log2(x), 2)
    ),
    st.floats(-5, 5),
    st.floats(0.1, 10),
)
def test_a_line_is_found_whatever_the_unit_of_size(
    sizes: list[float], slope: float, unit: float
) -> None:
    values = (slope * np.log2(sizes) + 7)[:, None]
    assert slopes(sizes, values) == pytest.approx([slope], abs=1e-6)
    assert slopes(np.array(sizes) * unit, values) == pytest.approx([slope], abs=1e-6)


def test_the_slope_over_models_is_tested_by_distances_from_the_line() -> None:
    # By hand: 1, 3, 2, 4 over 0, 1, 2, 3 have the slope 0.8 and the residuals -.3, .9, -.9, .3,
    # whose squares add to 1.8; the error is sqrt(1.8 / 2 / 5), and t = 0.8 / 0.4243 = 1.886.
    tested = over_models([1, 2, 4, 8], np.array([1.0, 3, 2, 4]))
    assert tested.difference == pytest.approx(0.8)
    assert tested.p == pytest.approx(0.2)
    assert tested.ci_high - 0.8 == pytest.approx(4.3027 * np.sqrt(0.18), rel=1e-4)
    two = over_models([1, 2], np.array([1.0, 3]))
    assert two.difference == 2
    assert np.isnan([two.p, two.ci_low, two.ci_high]).all()
    assert two.note == "two sizes make no trend"


def test_a_band_goes_along_the_line_and_is_its_percentiles() -> None:
    values = np.array([noisy(1), noisy(2), noisy(4)])
    line, low, high = band([1, 2, 4], values, np.array([1.0, 2, 4, 8]))
    fit = stats.linregress([0, 1, 2], values[:, 0])
    assert line == pytest.approx(fit.intercept + fit.slope * np.arange(4))
    assert ((low < line) & (line < high)).all()
    every = [stats.linregress([0, 1, 2], values[:, k]) for k in range(1, 1001)]
    ends = np.percentile([one.intercept + 3 * one.slope for one in every], [2.5, 97.5])
    assert [low[3], high[3]] == pytest.approx(list(ends))


def test_trends_and_gains_are_paired_over_resamples() -> None:
    # What makes the scores of all sizes rise and fall together.
    common = 0.2 * RNG.standard_normal(1000)
    scores = {1: 0.2, 4: 0.4, 8: 0.9}
    models = sized({b: np.concatenate([[s], s + common]) for b, s in scores.items()})
    (row,) = trends({"s": models}).to_dict("records")
    fit = stats.linregress([0, 2, 3], list(scores.values()))
    assert row["per_doubling"] == pytest.approx(fit.slope)
    # Unpaired, the spread would be tenths; it cancels out, and no spread makes no interval.
    assert row["p_items"] < 1e-6
    assert np.isnan([row["items_low"], row["items_high"]]).all()
    # Over models, as SciPy tests a slope: three models leave one degree of freedom.
    arm = stats.t.ppf(0.975, 1) * fit.stderr
    assert (row["ci_low"], row["ci_high"]) == pytest.approx((fit.slope - arm, fit.slope + arm))
    assert row["p"] == pytest.approx(fit.pvalue)
    steps = gains({"s": models})
    assert list(steps.gain) == pytest.approx([0.1, 0.5])
    assert list(steps.step) == ["1B to 4B", "4B to 8B"]
    assert list(steps.doublings) == [2, 1]


def test_a_size_without_a_number_is_left_out_and_named() -> None:
    models = sized({1: noisy(0.2), 2: np.full(1001, np.nan), 4: noisy(0.4)})
    (row,) = trends({"s": models}).to_dict("records")
    assert row["sizes"] == 2
    assert row["note"] == "two sizes make no trend; no number for m-2B"
    assert row["per_doubling"] == pytest.approx(0.1)
    (alone,) = trends({"s": models[:2]}).to_dict("records")
    assert np.isnan(alone["per_doubling"])
    assert alone["note"] == "fewer than two sizes have a number"


def test_a_mean_over_other_categories_has_a_note() -> None:
    models = sized({1: noisy(0.2), 2: noisy(0.4), 4: noisy(0.5)})
    for one, value in zip(models, (noisy(0.1), noisy(0.2), np.full(1001, np.nan)), strict=True):
        one.replicates.add(("age", "ambiguous", "s_amb"), value, Sample(1001, 1))
    table = trends({"s": models}).set_index("category")
    assert table.note["all"].startswith("age: without a number at some sizes")


def test_p_is_adjusted_for_the_other_categories() -> None:
    models = sized({1: noisy(0.2), 2: noisy(0.21), 4: noisy(0.2)}, ("a", "ambiguous", "s_amb"))
    for one, value in zip(models, (0.2, 0.235, 0.26), strict=True):
        one.replicates.add(("b", "ambiguous", "s_amb"), noisy(value), Sample(1001, 1))
    a, b = trends({"s": models}).sort_values("category").itertuples()
    assert b.p_holm == pytest.approx(2 * b.p)
    assert a.p_holm == pytest.approx(min(1, a.p))


@pytest.mark.parametrize(
    ("scores", "more", "text"),
    [
        ((0.2, 0.31, 0.39, 0.5), {}, "rises with size (worse): +9.8 points of 100 a doubling"),
        ((0.5, 0.39, 0.31, 0.2), {}, "falls with size (better): -9.8 points of 100 a doubling"),
        ((0.2, 0.31, 0.39, 0.5), {}, "4 sizes, 1B to 8B"),
        ((0.2, 0.203, 0.201), {}, "no change with size could be shown"),
        # Surely different on any items, and no nearer to a line than by chance.
        ((0.2, 0.6, 0.3, 0.5), {}, "no change with size could be shown"),
        ((0.2, 0.4), {}, "no trend; these models differ: +20.0 points of 100 a doubling"),
        ((0.2, 0.2), {}, "no difference between these models could be shown: 0.0 points"),
        ((0.2, np.nan), {}, "nothing can be said: fewer than two sizes have a number."),
        ((0.2, 0.4), {"valid_rate": 0.5}, "Readable answers go from 50% to 50%"),
        ((0.2, 0.4), {"position": [0.8, 0.3]}, "first option goes from 0.80 to 0.30"),
    ],
)
def test_a_finding_is_no_stronger_than_the_test(
    scores: tuple[float, ...], more: dict[str, Any], text: str
) -> None:
    models = sized({2**k: noisy(score) for k, score in enumerate(scores)})
    (sentence,) = findings(result_of({"s": models}, HEADLINES[:1], **more))
    assert sentence.startswith("s, Ambiguous, share of stereotyped answers: ")
    assert text in sentence


@pytest.mark.parametrize(
    ("size", "text"),
    [(32, "32B"), (0.5, "0.5B"), (0.335, "335M"), (3.29e-4, "329K"), (9.27e-5, "92.7K")],
)
def test_sizes_are_written_as_people_do(size: float, text: str) -> None:
    assert format_size(size) == text


@pytest.mark.parametrize("n", [1, pytest.param(12, marks=pytest.mark.slow)])
def test_scores_are_drawn_over_doublings_with_published_ones_hollow(n: int) -> None:
    series = families([f"A-family-of-a-long-name-{k}-Instruct" for k in range(n)])
    fig = drawn(pictures.over_size(result_of(series, baseline=1 / 3)))
    first = fig.axes[0]
    assert first.get_xscale() == "log"
    assert ticks(first.get_xticklabels())[0] == "1B"
    hollow = [line for line in first.lines if line.get_markerfacecolor() == "white"]
    assert [list(line.get_ydata()) for line in hollow] == [[0.6, 0.9]]
    assert len(first.collections) >= n  # bands
    assert any(list(line.get_ydata()) == pytest.approx([1 / 3, 1 / 3]) for line in first.lines)
    names = [text.get_text() for text in fig.legends[0].get_texts()]
    assert {*names} == {*series, "Paper", "a random answerer, or the best constant one"}
    assert "Ambiguous, share of stereotyped answers" in fig.get_label()


def test_the_title_says_what_changes() -> None:
    still, rising = families(["a"]), {"b": families(["a", "b"])["b"]}
    for series, change in (
        (still, "no change shown"),
        (rising, "rises with size"),
        (still | rising, "differs between series"),
    ):
        fig = pictures.over_size(result_of(series, HEADLINES[:1]))
        assert fig is not None
        assert fig.get_suptitle() == f"Ambiguous: {change}"
    assert pictures.over_size(result_of(still, [])) is None


@pytest.mark.parametrize("n", [1, pytest.param(12, marks=pytest.mark.slow)])
def test_categories_are_filled_where_a_change_was_shown(n: int) -> None:
    result = result_of(families([f"series-{k}" for k in range(n)]))
    axis = drawn(pictures.by_category(result, HEADLINES[0])).axes[0]
    own = result.trends[(result.trends.category != ALL) & (result.trends.metric == "s_amb")]
    for fill, mask in (("filled", own.p_holm < 0.05), ("white", own.p_holm >= 0.05)):
        marks = [
            line.get_xdata()
            for line in axis.lines
            if line.get_marker() != "None"
            and (line.get_markerfacecolor() == "white") == (fill == "white")
        ]
        assert sum(map(len, marks)) == mask.sum()
    whole = result._replace(trends=result.trends[result.trends.category == ALL])
    assert pictures.by_category(whole, HEADLINES[0]) is None


def test_readable_answers_and_position_are_drawn_next_to_scores() -> None:
    result = result_of(families(["a", "b"]))
    position = 0.9 / result.points.billions
    result = result._replace(points=result.points.assign(position=position))
    fig = drawn(pictures.beside(result))
    assert len(fig.axes) == 3 * len(HEADLINES)
    assert list(fig.axes[2].lines[0].get_ydata()) == pytest.approx([0.9, 0.45, 0.9 / 8])
    none = result.points.assign(position=np.nan)
    assert pictures.beside(result._replace(points=none)) is None
    fig = drawn(pictures.beside(result._replace(points=none.assign(valid_rate=0.95))))
    assert told(fig.axes[2]) == ["none in this task"]
