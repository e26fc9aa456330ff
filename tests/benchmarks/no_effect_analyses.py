"""Studies without an effect of two prompt sets, sizes or instructions, for `no_effect.py`.

Respondents of the same bias differ in their seeds alone, so that two prompt sets, sizes or
instructions differ by chance. Runs are made once, and a study takes some of them at random.
"""

import tempfile
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import bench
from bench.analyses import open_scores
from bench.metrics.significance import holm
from bench.run import evaluate
from bench.run.results import Run

# Runs of each respondent in each condition. In a small pool, a chance finding returns often.
POOL = 150
# Options of the runs of a benchmark.
OPTIONS: dict[str, dict[str, Any]] = {
    "cbbq": {"limit": 6},
    "mcbe": {"limit": 6, "tasks": ["sc", "ss", "bs"]},
}
# Seeds of the second condition are others than those of the first.
SECOND = 1000
# Of the respondents of a study of two conditions.
BIASES = (0.3, 0.6)
SIZES = (0.5, 1.5, 7.0, 32.0)
REWORDED = {"prompts": "reworded"}
INSTRUCTED = {"settings": {"prompting": "Q+IF"}}


@cache
def scratch() -> "tempfile.TemporaryDirectory[str]":
    """Make a folder for runs, which is removed at the end."""
    return tempfile.TemporaryDirectory()


@cache
def answered(benchmark: str, bias: float, seed: int, *, condition: str = "") -> Run:
    """Ask a respondent with one of its seeds, in the first or the second condition."""
    options: dict[str, Any] = {"": {}, "reworded": REWORDED, "instructed": INSTRUCTED}[condition]
    seed += SECOND if condition else 0
    folder = Path(scratch().name, benchmark, str(bias), condition, str(seed))
    options = {**OPTIONS[benchmark], **options, "seed": seed, "data": "samples"}
    return evaluate(benchmark, f"simulated:bias={bias}", out=folder, **options)


def both_conditions(benchmark: str, condition: str, seed: int) -> list[Run]:
    """Return the runs of a study: each respondent in two conditions that change nothing."""
    rng = np.random.default_rng(seed)
    return [
        answered(benchmark, bias, int(rng.integers(POOL)), condition=name)
        for bias in BIASES
        for name in ("", condition)
    ]


def changes(benchmark: str, condition: str, seed: int, **measure: Any) -> pd.DataFrame:
    """Compare a measure between the two conditions of a study, as the notebooks do."""
    runs = both_conditions(benchmark, condition, seed)
    sides = [
        bench.outcomes(*runs[k::2]).assign(prompts=name)
        for k, name in enumerate(("first", "second"))
    ]
    rows, by = pd.concat(sides), ["model", "task"]
    return bench.compare(rows, **measure, between="prompts", by=by, mean_over="category")


def depends_on_prompts(benchmark: str, *, seed: int) -> bool:
    """Tell whether `prompt_robustness` says that a score moves under other words."""
    measure = {"column": "stereotyped", "of": "answered"}
    if benchmark == "mcbe":
        measure = {"column": "score", "of": "scored"}
    return bool((changes(benchmark, "reworded", seed, **measure).p_adjusted < 0.05).any())


def changes_with_size(benchmark: str, models: int, *, seed: int) -> bool:
    """Tell whether `model_size_trends` says that a score changes with size."""
    seeds = np.random.default_rng(seed).permutation(POOL)[:models]
    runs = [sized(benchmark, int(own)) for own in seeds]
    sizes = dict(zip([run.label for run in runs], SIZES[:models], strict=True))
    scores = open_scores(runs, columns={"billions": sizes}).common
    slopes = bench.trend(
        scores.query("primary and category == 'all'"), by=["title", "task", "metric"]
    )
    excludes_zero = slopes.ci_low * slopes.ci_high > 0
    return bool((excludes_zero & (slopes.p_adjusted < 0.05)).any())


@cache
def sized(benchmark: str, seed: int) -> Run:
    """Ask a respondent under a name of its own."""
    folder = Path(scratch().name, benchmark, "sized", str(seed))
    model, options = f"simulated:bias=0.5,seed={seed}", OPTIONS[benchmark]
    return evaluate(benchmark, model, name=f"m{seed}", out=folder, data="samples", **options)


def corrects_itself(*, seed: int) -> bool:
    """Tell whether `self_correction` says that an instruction changes the share of stereotypes."""
    tested = changes("cbbq", "instructed", seed, column="stereotyped", of="answered")
    of_bias = tested[tested.task == "ambiguous"]
    return bool((holm(of_bias.p.to_numpy(float)) < 0.05).any())


ANALYSES: Mapping[str, Callable[..., bool]] = {
    "prompt_robustness, McBE": partial(depends_on_prompts, "mcbe"),
    "prompt_robustness, CBBQ": partial(depends_on_prompts, "cbbq"),
    "model_size_trends, McBE, 4 sizes": partial(changes_with_size, "mcbe", 4),
    "model_size_trends, CBBQ, 4 sizes": partial(changes_with_size, "cbbq", 4),
    "self_correction, CBBQ, 2 models": corrects_itself,
}
