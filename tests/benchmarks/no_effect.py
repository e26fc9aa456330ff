"""Simulate studies without an effect, and count how often an analysis claims one.

    python -m tests.benchmarks.no_effect [--studies 200] [--only TEXT]

A study compares simulated respondents of equal bias; they differ in their seeds, or in what is not
bias, such as a preferred letter. A test at 5 % may claim a difference in 5 % of the studies. Runs
are made once, and a study takes some of them at random. Printed is a table in Markdown: of each
analysis the number of studies in which it claims an effect, with Wilson's 95 % interval.

To add an analysis, add a row to ANALYSES: its name, and a function that is called with `seed`, the
number of a study, and returns whether the analysis claims an effect in it.
"""

import argparse
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from statsmodels.stats.proportion import proportion_confint

import bench
from bench.analyses import open_scores
from bench.benchmarks import get
from bench.metrics.differences import DIFFERENT, LESS_READABLE
from bench.report import overview
from bench.report.study import Variant
from bench.run import evaluate
from bench.run.results import Run, table
from tests.benchmarks import no_effect_analyses

# Runs of each kind of respondent. In a small pool, a chance finding returns in many studies.
POOL = 150
# Options of the runs of a benchmark.
OPTIONS: dict[str, dict[str, Any]] = {
    "cbbq": {"limit": 4},
    "mcbe": {"limit": 2, "tasks": ["sc", "ss", "bs"]},
}
PLAIN, REFUSES, LETTERS = "bias=0.5", "bias=0.5,refuse=0.1", "bias=0.5,position=0.7"


@cache
def scratch() -> "tempfile.TemporaryDirectory[str]":
    """Make a folder for runs, which is removed at the end."""
    return tempfile.TemporaryDirectory()


@cache
def pool(benchmark: str, respondent: str) -> list[Run]:
    """Ask respondents that differ in their seeds alone."""
    folder = Path(scratch().name, benchmark, respondent)
    runs: list[Run] = []
    for seed in range(POOL):
        model = f"simulated:{respondent},seed={seed}"
        run = evaluate(
            benchmark, model, out=folder / str(seed), data="samples", **OPTIONS[benchmark]
        )
        runs.append(run)
    return runs


def study(seed: int, benchmark: str, *respondents: str) -> list[Run]:
    """Choose a run of each of some kinds of respondents, none of them twice."""
    seeds = np.random.default_rng(seed).permutation(POOL)
    return [pool(benchmark, kind)[own] for kind, own in zip(respondents, seeds, strict=False)]


@cache
def compared(seed: int, benchmark: str, *respondents: str) -> pd.DataFrame:
    """Compare the models of a study."""
    runs = study(seed, benchmark, *respondents)
    return bench.differences(bench.score(*runs), bench.outcomes(*runs))


def pairs_differ(benchmark: str, *respondents: str, seed: int) -> bool:
    """Tell whether `compare_models` says that two models differ in bias."""
    pairs = compared(seed, benchmark, *respondents)
    # Without a preferred letter, the models are equal in all scores.
    if LETTERS in respondents:
        lines = get(benchmark).metrics.headlines
        of_bias = [(line.task, line.metric) for line in lines if line.worse == "more bias"]
        pairs = pairs[pd.MultiIndex.from_frame(pairs[["task", "metric"]]).isin(of_bias)]
    return bool(pairs.verdict.isin([DIFFERENT, LESS_READABLE]).any())


def ranks_differ(benchmark: str, *respondents: str, seed: int) -> bool:
    """Tell whether `friedman_test` says that models differ."""
    own, common, _runs = open_scores(study(seed, benchmark, *respondents), benchmarks=[benchmark])
    rows = bench.measure(common)
    doubts = bench.measure(own).query("category == 'all' and doubt != ''").model
    rows = rows[~rows.model.isin(doubts)]
    return bool(bench.friedman(rows).test.p[0] < 0.05)


def one_is_most_biased(benchmark: str, *respondents: str, seed: int) -> bool:
    """Tell whether a report's index calls a model the most biased."""
    scores = table(study(seed, benchmark, *respondents))
    lines = list(get(benchmark).metrics.headlines)
    result = compared(seed, benchmark, *respondents)
    variant = Variant.model_construct(benchmark=benchmark)
    asked = overview.Asked(variant, scores, lines, [], result, {})
    return any("is the most biased" in text for text in overview.answer([asked]))


ANALYSES: Mapping[str, Callable[..., bool]] = {
    "compare_models, CBBQ, 2 models": partial(pairs_differ, "cbbq", PLAIN, PLAIN),
    "compare_models, CBBQ, 3 models": partial(pairs_differ, "cbbq", PLAIN, PLAIN, PLAIN),
    "compare_models, CBBQ, 3 refuse a tenth": partial(
        pairs_differ, "cbbq", REFUSES, REFUSES, REFUSES
    ),
    "compare_models, CBBQ, 1 of 3 prefers a letter": partial(
        pairs_differ, "cbbq", PLAIN, PLAIN, LETTERS
    ),
    "compare_models, McBE, 3 models": partial(pairs_differ, "mcbe", PLAIN, PLAIN, PLAIN),
    "compare_models, McBE, 1 of 3 prefers a letter": partial(
        pairs_differ, "mcbe", PLAIN, PLAIN, LETTERS
    ),
    "friedman_test, CBBQ, 4 models": partial(ranks_differ, "cbbq", *[PLAIN] * 4),
    "friedman_test, CBBQ, 1 of 4 prefers a letter": partial(
        ranks_differ, "cbbq", *[PLAIN] * 3, LETTERS
    ),
    "friedman_test, McBE, 4 models": partial(ranks_differ, "mcbe", *[PLAIN] * 4),
    "index, CBBQ, 3 models": partial(one_is_most_biased, "cbbq", PLAIN, PLAIN, PLAIN),
    "index, CBBQ, 1 of 3 prefers a letter": partial(
        one_is_most_biased, "cbbq", PLAIN, PLAIN, LETTERS
    ),
    "index, McBE, 3 models": partial(one_is_most_biased, "mcbe", PLAIN, PLAIN, PLAIN),
    **no_effect_analyses.ANALYSES,
}


def rows(analyses: Mapping[str, Callable[..., bool]], studies: int) -> Iterator[str]:
    """Write the table in Markdown, a row as soon as its studies are done."""
    yield "| analysis | studies | claims | share | 95 % interval |"
    yield "|---|---:|---:|---:|---:|"
    for name, claims in analyses.items():
        count = sum(claims(seed=seed) for seed in range(studies))
        low, high = proportion_confint(count, studies, method="wilson")
        share = f"{count / studies:.1%} | {low:.1%} to {high:.1%}"
        yield f"| {name} | {studies} | {count} | {share} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--studies", type=int, default=200, help="of each row (default 200)")
    parser.add_argument("--only", default="", help="only rows whose name holds this text")
    given = parser.parse_args()
    chosen = {name: claims for name, claims in ANALYSES.items() if given.only in name}
    for row in rows(chosen, given.studies):
        print(row, flush=True)


if __name__ == "__main__":
    main()
