"""Respondents of known character through the whole chain: what the scores have to be, category by category."""

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from bench import data, run
from tests.helpers.recorded import command

pytestmark = pytest.mark.slow

Bench = Callable[..., tuple[int, str, str]]
# The specification's section 3.1: (ambiguous: always A upstream, A corrected, B corrected; disambiguous: A upstream, A corrected).
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
SCORES = {"s_amb": "ambiguous", "s_disamb": "disambiguous", "s_total": "all"}


@pytest.fixture
def bench(
    own_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Bench:
    return lambda *words: command(monkeypatch, capsys, *words)


def check(table: pd.DataFrame, bias: float, n: int, categories: int) -> None:
    """The scores of a respondent that follows the stereotype with chance `bias` and is right otherwise, `n` answers a score."""
    table = table[table.preset == "robust"]
    inside = []
    for metric, task in SCORES.items():
        rows = table[(table.metric == metric) & (table.task == task)].set_index("category")
        assert len(rows) == categories + 1
        if bias in (0, 1):
            assert set(rows.score) == {bias}
            # Where all answers are alike, the interval says how many there are, on one side.
            assert set(rows.ci_high if bias else rows.ci_low) == {bias}
            assert (rows.ci_high > rows.ci_low).all()
            continue
        # A total is made of two contexts, which weigh 0.4 and 0.6.
        spread = math.sqrt(bias * (1 - bias) / n * (0.4**2 + 0.6**2 if metric == "s_total" else 1))
        assert rows.loc["all"].ci_low <= bias <= rows.loc["all"].ci_high
        assert abs(rows.score["all"] - bias) <= 3 * spread / math.sqrt(categories)
        parts = rows.drop("all")
        assert ((parts.score - bias).abs() <= 4 * spread).all()
        inside += list((parts.ci_low <= bias) & (bias <= parts.ci_high))
    # Of intervals of 95 %, from few templates, nine in ten hold the value.
    assert not inside or sum(inside) >= 0.9 * len(inside)


@pytest.mark.parametrize("bias", [0, 0.25, 0.5, 0.75, 1])
def test_a_simulated_bias_is_recovered_in_every_released_category(
    shared: Path, tmp_path: Path, bias: float
) -> None:
    # With the released labels a right answer would be a biased one here and there.
    settings = {"labels": "audited"}
    model = f"simulated:bias={bias:g},seed=3"
    done = run.evaluate(
        "cbbq", model, data=shared / "data/cbbq", settings=settings, limit=120, out=tmp_path
    )
    check(done.scores(), bias, 120, 10)


def test_position_and_order_are_told_apart_from_bias(tmp_path: Path) -> None:
    # Always what is offered first: in the rotated orders that is each option once, as a random answerer has it.
    options: dict[str, Any] = {
        "data": data.SAMPLES / "cbbq",
        "limit": 40,
        "settings": {"option_order": "rotated"},
    }
    first = run.evaluate("cbbq", "simulated:position=1", out=tmp_path / "first", **options).scores()
    both = run.evaluate("cbbq", "simulated:bias=1", out=tmp_path / "biased", **options).scores()
    for table, wanted in (
        (
            first,
            {"s_amb": 1 / 3, "s_disamb": 1 / 2, "one_place": 1, "one_option": 0, "first_option": 1},
        ),
        (both, {"s_amb": 1, "s_disamb": 1, "one_place": 0, "one_option": 1, "first_option": 1 / 3}),
    ):
        for metric, value in wanted.items():
            rows = table[(table.metric == metric) & (table.preset == "robust")]
            assert len(rows) == 15 * (1 if metric.startswith("s_") else 2)
            assert rows.score.to_numpy() == pytest.approx(value), metric


def scores(printed: str) -> dict[tuple[str, str, str], float | None]:
    """(category, task, metric) to score, of what `--format json` printed; of one preset alone."""
    found = json.loads(printed)
    preset = found["scores"][0]["preset"]  # those of other presets stand behind
    return {
        (row["category"], row["task"], row["metric"]): row["score"]
        for row in found["scores"]
        if row["preset"] == preset
    }


@pytest.mark.parametrize("expected", [CONSTANT, LARGE])
def test_constant_answers_get_the_specification_s_values_through_the_command(
    bench: Bench, shared: Path, expected: Mapping[str, tuple[float, ...]]
) -> None:
    """The table of the specification's section 3.1, and what follows from it for B and C."""
    words = ("--data", shared / "data/cbbq", "--categories", ",".join(expected), "--format", "json")
    for letter in "ABC":
        status, printed, _ = bench(
            "run", "cbbq", "--model", f"simulated:answer={letter}", *words, "--out", letter
        )
        assert status == 0
        robust = scores(printed)
        status, printed, _ = bench("score", letter, "--preset", "official", "--format", "json")
        assert status == 0
        official = scores(printed)
        for category, (amb_up, amb_a, amb_b, dis_up, dis_a) in expected.items():
            near = {
                "A": (amb_a, dis_a, amb_up, dis_up, 1 - amb_up),
                "B": (amb_b, 1 - dis_a, 1 - amb_up, 1 - dis_up, amb_up),
                "C": (0, None, 0, None, 0),
            }[letter]
            found = (
                robust[category, "ambiguous", "s_amb"],
                robust[category, "disambiguous", "s_disamb"],
                official[category, "ambiguous", "s_amb"],
                official[category, "disambiguous", "s_disamb"],
                official[category, "ambiguous", "reverse_amb"],
            )
            assert [value is None for value in found] == [value is None for value in near], (
                letter,
                category,
            )
            assert [value or 0 for value in found] == pytest.approx(
                [value or 0 for value in near], abs=5e-7
            ), (letter, category)
            assert robust[category, "ambiguous", "accuracy"] == (letter == "C")
            assert (official[category, "all", "s_total"] is None) == (letter == "C")
