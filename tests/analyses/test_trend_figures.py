"""Pictures of size trends and of self-correction: what is drawn where, hollow or filled, and that it can be laid out."""

import numpy as np
import pandas as pd
import pytest

from bench.figures import self_correction as corrected
from bench.figures import trend as pictures
from bench.metrics import self_correction as sc
from bench.metrics import trend
from bench.metrics.bootstrap import Replicates, Sample
from bench.metrics.cbbq import HEADLINES
from bench.metrics.table import ALL
from bench.metrics.trend import Sized
from tests.helpers.drawing import drawn, ticks, told

DICE = np.random.default_rng(1)
PUBLISHED = pd.DataFrame(
    {
        "series": "Paper",
        "model": ["x", "y"],
        "billions": [1.0, 64.0],
        "category": ALL,
        "task": "ambiguous",
        "metric": "s_amb",
        "score": [0.6, 0.9],
        "source": "a paper",
        "caution": "none",
    }
)


def made(
    names: list[str], categories: tuple[str, ...] = ("gender", "age")
) -> dict[str, list[Sized]]:
    def replicates(k: int, size: float) -> Replicates:
        found, value = Replicates(), 0.3 + 0.05 * k * np.log2(size)
        for headline in HEADLINES:
            for category in (*categories, ALL):
                values = np.concatenate([[value], value + 0.01 * DICE.standard_normal(1000)])
                found.add((category, headline.task, headline.metric), values, Sample(1001, 1))
        return found

    return {
        name: [Sized(f"{name}-{b}B", b, "its name", replicates(k % 3, b)) for b in (1, 2, 8)]
        for k, name in enumerate(names)
    }


def beside(series: dict[str, list[Sized]]) -> pd.DataFrame:
    rows = [
        (
            name,
            one.model,
            one.billions,
            *place,
            v[0],
            v[0] - 0.02,
            v[0] + 0.02,
            1.0,
            1 / 3,
            0.9 / one.billions,
        )
        for name, models in series.items()
        for one in models
        for place, v in one.replicates.items()
    ]
    columns = [
        "series",
        "model",
        "billions",
        "category",
        "task",
        "metric",
        "score",
        "ci_low",
        "ci_high",
        "valid_rate",
        "baseline",
        "position",
    ]
    return pd.DataFrame(rows, columns=columns)


@pytest.mark.parametrize("many", [1, 2, pytest.param(12, marks=pytest.mark.slow)])
def test_scores_are_drawn_over_doublings_with_published_ones_hollow(many: int) -> None:
    series = made([f"A-family-of-a-long-name-{k}-Instruct" for k in range(many)])
    found = trend.trends(series)
    fig = drawn(pictures.over_size(beside(series), found, series, list(HEADLINES), PUBLISHED))
    first = fig.axes[0]
    assert first.get_xscale() == "log"
    assert ticks(first.get_xticklabels())[0] == "1B"
    hollow = [line for line in first.lines if line.get_markerfacecolor() == "white"]
    assert [list(line.get_ydata()) for line in hollow] == [[0.6, 0.9]]
    assert len(first.collections) >= many  # bands
    assert any(list(line.get_ydata()) == pytest.approx([1 / 3, 1 / 3]) for line in first.lines)
    names = [text.get_text() for text in fig.legends[0].get_texts()]
    assert names == [*series, "Paper", "a random answerer, or the best constant one"]
    assert "Ambiguous, share of stereotyped answers" in fig.get_label()


def test_the_title_says_what_moves() -> None:
    still, rising = made(["a"]), {"b": made(["a", "b"])["b"]}
    for series, said in (
        (still, "no change shown"),
        (rising, "rises with size"),
        (still | rising, "differs between series"),
    ):
        fig = pictures.over_size(
            beside(series), trend.trends(series), series, HEADLINES[:1], PUBLISHED[:0]
        )
        assert fig is not None
        assert fig._suptitle.get_text() == f"Ambiguous: {said}"
    assert pictures.over_size(beside(still), trend.trends(still), still, [], PUBLISHED) is None


@pytest.mark.parametrize("many", [1, 2, pytest.param(12, marks=pytest.mark.slow)])
def test_categories_are_filled_where_a_change_was_shown(many: int) -> None:
    series = made([f"series-{k}" for k in range(many)])
    found = trend.trends(series)
    axis = drawn(pictures.by_category(found, HEADLINES[0], "cbbq")).axes[0]
    marks = [line for line in axis.lines if line.get_marker() != "None"]
    here = found[(found.category != ALL) & (found.metric == "s_amb")]
    assert len(marks) == len(here)
    assert (
        sum(line.get_markerfacecolor() != "white" for line in marks) == (here.p_holm < 0.05).sum()
    )
    assert pictures.by_category(found[found.category == ALL], HEADLINES[0], "cbbq") is None


def test_beside_a_score_stand_readable_answers_and_position() -> None:
    series = made(["a", "b"])
    table = beside(series)
    fig = drawn(pictures.beside(table, list(HEADLINES)))
    assert len(fig.axes) == 3 * len(HEADLINES)
    assert list(fig.axes[2].lines[0].get_ydata()) == pytest.approx([0.9, 0.45, 0.9 / 8])
    assert "answers by position change with size in a and b" in fig._suptitle.get_text()
    none = table.assign(position=np.nan)
    assert pictures.beside(none, list(HEADLINES)) is None
    fig = drawn(pictures.beside(none.assign(valid_rate=0.95), list(HEADLINES)))
    assert told(fig.axes[2]) == ["none in this task"]
    assert "hardly change" in fig._suptitle.get_text()


def compared(models: list[str]) -> pd.DataFrame:
    rows = []
    for k, model in enumerate(models):
        for setting in ("Q+IF", "Q+IF+CoT"):
            for measure in sc.MEASURES:
                change = -0.3 if measure is sc.S_AMB and k == 0 else 0.01
                p = 0.001 if change < -0.1 else 0.8
                rows.append(
                    {
                        "model": model,
                        "setting": setting,
                        "category": ALL,
                        "task": measure.task,
                        "metric": measure.metric,
                        "before": 0.5,
                        "after": 0.5 + change,
                        "difference": change,
                        "ci_low": change - 0.05,
                        "ci_high": change + 0.05,
                        "p": p,
                        "p_holm": p,
                        "units": 40,
                        "detectable": 0.1,
                        "note": "",
                        "n": 80,
                    }
                )
    return pd.DataFrame(rows)


@pytest.mark.parametrize("many", [1, 2, pytest.param(12, marks=pytest.mark.slow)])
def test_differences_are_filled_where_one_was_shown(many: int) -> None:
    models = [f"a-very-long-name-of-a-model-{k}-instruct-preview" for k in range(many)]
    fig = drawn(corrected.differences(compared(models)))
    assert (
        fig._suptitle.get_text()
        .replace("\n", " ")
        .startswith(f"Self-correction was shown for {models[0]}")
    )
    marks = [line for line in fig.axes[0].lines if line.get_marker() not in ("None", "")]
    assert len(marks) == 2 * many
    assert [line.get_markerfacecolor() != "white" for line in marks[:2]] == [True, True]
    assert all(line.get_markerfacecolor() == "white" for line in marks[2:])
    assert corrected.differences(compared(models)[:0]) is None


@pytest.mark.parametrize("many", [1, 2, pytest.param(12, marks=pytest.mark.slow)])
def test_answers_are_bars_that_add_to_one(many: int) -> None:
    rows = [
        {
            "model": f"a-very-long-name-of-a-model-{k}-instruct-preview",
            "setting": s,
            "task": t,
            "stereotyped": 0.4,
            "other": 0.1,
            "unknown": 0.3,
            "unreadable": 0.2,
            "n": 40,
        }
        for k in range(many)
        for s in ("Q", "Q+IF", "Q+IF+CoT")
        for t in (sc.AMBIGUOUS, sc.DISAMBIGUOUS)
    ]
    table = pd.DataFrame(rows)
    fig = drawn(corrected.answers(table))
    assert len(fig.axes[0].patches) == 4 * 3 * many
    assert max(bar.get_x() + bar.get_width() for bar in fig.axes[0].patches) == pytest.approx(1)
    assert sum(bool(bar.get_hatch()) for bar in fig.axes[0].patches) == 3 * many
    assert told(fig.axes[0]) == list(dict.fromkeys(table.model))
    title = fig._suptitle.get_text().replace("\n", " ")
    assert "40% under Q, 40% under Q+IF and 40% under Q+IF+CoT" in title
    assert corrected.answers(table[:0]) is None
