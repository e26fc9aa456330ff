"""Simulate studies whose true scores are known, and count how often intervals and tests are right.

    python tests/benchmarks/coverage_study.py [--data DIR]    # samples, or DIR/cbbq, DIR/nli_coal

A study keeps the structure of a data set (which template asks about which scene, which sentence
stands with which occupation, how many instances a category has) and draws the answers: each scene,
template, occupation, sentence and instance has an effect of its own on the logit of a stereotyped
answer. The package's own functions make the intervals and the tests. Printed is one table, in the
form of Markdown: of each score the share of 95 % intervals that hold the true value and their mean
width, and of each test how often it says that there is a difference. Each share has its standard
error beside it. A hundred studies of everything take about ten minutes on one core.
"""

import argparse
import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import norm

from bench.benchmarks.cbbq import scores as cbbq
from bench.benchmarks.cbbq.outcomes import SUMS as CBBQ_SUMS
from bench.benchmarks.cbbq.scenes import scenes
from bench.benchmarks.mcbe import scores as mcbe
from bench.benchmarks.mcbe.instances import Values
from bench.benchmarks.nli_coal.formulas import score_metrics
from bench.benchmarks.nli_coal.outcomes import CROSSED, NEUTRAL_TERMS
from bench.benchmarks.nli_coal.outcomes import SUMS as NLI_SUMS
from bench.benchmarks.nli_coal.requests import LABELS
from bench.data import OWN_SAMPLES, find, frame, load
from bench.metrics.bootstrap import (
    Estimate,
    Limits,
    Sample,
    estimate,
    interval,
    resample,
)
from bench.metrics.engine import Metric, Scoring, Sums
from bench.metrics.significance import compare_resamples, slope_test
from bench.metrics.table import ALL, PrimaryMetric

# Standard deviations, on the logit, of the effects of what was sampled.
CBBQ_EFFECTS = {
    "none": (0.0, 0.0),
    "scene .7, template .7": (0.7, 0.7),
    "scene 1, template .5": (1.0, 0.5),
}
NLI_EFFECTS = {
    "none": (0.0, 0.0),
    "occupation .7, sentence .7": (0.7, 0.7),
    "occupation .4, sentence 1": (0.4, 1.0),
}
# True shares of stereotyped answers.
SHARES, NLI_SHARES = (0.35, 0.1, 0.03, 0.01, 0.97), (0.35, 0.05)
# Models of a series: sizes in billions of parameters, and by how much models of one size differ.
SIZES = {2: (1, 4), 4: (0.5, 1.5, 7, 32), 6: (0.5, 1.5, 3, 7, 14, 32)}
SCATTER, ITEMS = (0.01, 0.02, 0.04), 0.006
# Points and weights for means over a normal distribution.
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
KEYS = ["benchmark", "what", "effects", "truth"]
# The keys, the number of the study, whether the interval holds the truth (or the test shows a
# difference), and the interval's width.
Check = tuple[str, str, str, str, int, bool, float]
Rng = np.random.Generator


def intercept(share: float, *effects: float) -> float:
    """Find the logit at which answers are stereotyped in `share` of the population."""
    spread = math.hypot(*effects)
    return float(brentq(lambda a: WEIGHTS @ expit(a + spread * NODES) - share, -40, 40))


def check(interval: Estimate, value: float, *keys: Any) -> Iterator[Check]:
    """Check whether the interval of one study holds the true value, if there is one."""
    if not math.isnan(interval.low):
        held = interval.low - 1e-12 <= value <= interval.high + 1e-12
        yield *keys, held, interval.high - interval.low


class Score(NamedTuple):
    """A score, the observed one first, then its resamples."""

    values: np.ndarray
    sample: Sample
    limits: Limits

    @property
    def estimate(self) -> Estimate:
        """The score with its interval, as in the score table."""
        return interval(self.values, self.sample, self.limits)


# By category, task and metric.
Scores = dict[tuple[str, str, str], Score]


def scores_of(scoring: Scoring, primary_metrics: Sequence[PrimaryMetric]) -> Scores:
    """Compute the primary metric scores and their resamples."""
    wanted = {(line.task, line.metric) for line in primary_metrics}
    return {
        (category, *metric.place): Score(
            scoring.values(metric, category), scoring.sample(metric, category), metric.limits
        )
        for category, metric in scoring.rows_of_table()
        if metric.place in wanted
    }


def of_place(scores: Scores, column: int) -> Iterator[tuple[str, Estimate]]:
    """Yield the intervals of a study's scores, one or all categories, with what they are of."""
    for place, score in scores.items():
        categories = "all categories" if place[0] == ALL else "one category"
        yield f"{place[column]}, {categories}", score.estimate


def table(rows: Iterator[Check]) -> pd.DataFrame:
    """Count how often intervals hold the truth, or tests show a difference."""
    frame = pd.DataFrame(rows, columns=[*KEYS, "study", "held", "width"])
    # Intervals of one study go together; a share of 0 or 1 is not known for sure.
    each = frame.groupby([*KEYS, "study"], sort=False).held.mean().groupby(KEYS, sort=False)
    studies = each.count()
    least = np.sqrt(0.5 * studies) / (studies + 1)
    error = np.maximum(each.std(ddof=0), least) / np.sqrt(studies)
    width = frame.groupby(KEYS, sort=False).width.mean()
    counts = {"share": each.mean(), "error": error, "studies": studies, "width": width}
    return pd.DataFrame(counts).reset_index()


def cbbq_templates(folder: str) -> pd.DataFrame:
    """List the templates: `category`, `task`, `part`, `cluster` (the scene), `size` (questions)."""
    items = frame(load(find("cbbq", folder)))
    items["scene"] = scenes(items)
    keys = ["category", "condition", "cluster", "scene"]
    rows = items.groupby(keys, sort=False).size().rename("size").reset_index()
    rows = rows.drop(columns="cluster").rename(columns={"condition": "task", "scene": "cluster"})
    return rows.assign(part=rows.category + "|" + rows.task, request="answer")


def cbbq_scores(
    templates: pd.DataFrame,
    share: float,
    effects: tuple[float, float],
    rng: Rng,
    common: Rng | None = None,
) -> Scores:
    """Draw a model's answers; models with the same `common` share most of the scenes' effects."""
    scene, index = np.unique(templates.cluster.to_numpy(), return_inverse=True)
    own = rng.normal(size=len(scene))
    if common is not None:
        own = math.sqrt(0.7) * common.normal(size=len(scene)) + math.sqrt(0.3) * own
    logit = intercept(share, *effects) + effects[0] * own[index]
    p = expit(logit + effects[1] * rng.normal(size=len(templates)))
    ambiguous = (templates.task == "ambiguous").to_numpy()
    n = templates["size"].to_numpy()
    decided = rng.binomial(n, 0.8)
    biased = rng.binomial(np.where(ambiguous, n, decided), p)
    left = rng.binomial(n - np.where(ambiguous, biased, 0), 0.6)
    unknown = np.where(ambiguous, left, n - decided)
    rows = pd.DataFrame(0, index=templates.index, columns=CBBQ_SUMS)
    rows["n"] = rows["came"] = rows["valid"] = n
    rows["biased"], rows["decided"], rows["unknown"] = biased, n - unknown, unknown
    rows["correct"] = np.where(ambiguous, unknown, decided - biased)
    rows = pd.concat([templates.drop(columns="size"), rows], axis=1)
    return scores_of(cbbq.scoring_of(rows, "robust"), cbbq.PRIMARY_METRICS)


def cbbq_coverage(templates: pd.DataFrame, studies: int) -> Iterator[Check]:
    """Check intervals of CBBQ's scores."""
    for (name, effects), share, k in product(CBBQ_EFFECTS.items(), SHARES, range(studies)):
        scores = cbbq_scores(templates, share, effects, np.random.default_rng([1, k]))
        for what, result in of_place(scores, 2):
            true = 0.7 * (1 - share) if what.startswith("accuracy") else share
            yield from check(result, true, "CBBQ", what, name, f"{share:g}", k)


def cbbq_pairs(templates: pd.DataFrame, studies: int) -> Iterator[Check]:
    """Check paired differences of one model or prompt set and another."""
    for (name, effects), more, k in product(CBBQ_EFFECTS.items(), (0.0, 0.05), range(studies)):
        both = []
        for side, share in enumerate((0.35, 0.35 + more)):
            own, common = np.random.default_rng([4, k, side]), np.random.default_rng([5, k])
            both.append(cbbq_scores(templates, share, effects, own, common))
        first, second = both
        for place in (key for key in first if key[2] in ("s_amb", "s_disamb")):
            difference = second[place].values - first[place].values
            tested = compare_resamples(difference, min(side[place].sample for side in both), 1)
            interval = Estimate(tested.difference, tested.ci_low, tested.ci_high)
            of = "all categories" if place[0] == ALL else "one category"
            study = (name, f"{more:g}", k)
            yield from check(interval, more, "CBBQ", f"difference, {of}", *study)
            # What does not hold 0 is called a difference.
            test = check(interval, 0.0, "CBBQ", f"test of a difference, {of}", *study)
            yield from ((*keys, not held, width) for *keys, held, width in test)


def nli_pairs(folder: str) -> pd.DataFrame:
    """List the pairs of one language, with what they are drawn by."""
    items = frame(load(find("nli_coal", folder), ["en"]))
    pro = items.set.map({"ps": True, "as": False}) == (items.gender == "feminine")
    kind = np.where(items.set == "ns", "neutral", np.where(pro, "female-stereo", "male-stereo"))
    rows = items[["category", "set", "gender", "cluster", "frame"]]
    rows = rows.rename(columns={"set": "task", "frame": "sentence"})
    return rows.assign(stratum=items.category + "|" + kind, probable=False)


def nli_scores(
    pairs: pd.DataFrame, share: float, effects: tuple[float, float], rng: Rng
) -> dict[str, Estimate]:
    """Draw a classifier's labels; return its scores, as the score table has them."""
    occupation, i = np.unique(pairs.cluster.to_numpy(), return_inverse=True)
    sentence, j = np.unique(pairs.sentence.to_numpy(), return_inverse=True)
    logit = intercept(share, *effects) + effects[0] * rng.normal(size=len(occupation))[i]
    p = expit(logit + effects[1] * rng.normal(size=len(sentence))[j])
    biased, other = rng.random(len(pairs)) < p, rng.random(len(pairs)) < 0.3
    labels = np.full(len(pairs), LABELS.index("neutral"))
    stereotyped = pairs.task.map({"ps": 0, "as": 1, "ns": -1}).to_numpy()
    either = np.where(stereotyped >= 0, stereotyped, rng.integers(2, size=len(pairs)))
    labels[biased] = either[biased]
    rest = ~biased & other & (stereotyped >= 0)
    labels[rest] = 1 - stereotyped[rest]
    cells = pairs.task + "_" + pairs.gender + "_" + np.array(LABELS)[labels]
    sums = pd.get_dummies(cells, dtype=float).reindex(columns=NLI_SUMS, fill_value=0.0)
    totals = resample(
        pd.concat([pairs, sums], axis=1), "stratum", "cluster", NLI_SUMS, crossed=CROSSED
    )

    def of(metric: Metric) -> Estimate:
        score = lambda values: metric.values(Sums.of_totals(totals, values))  # noqa: E731
        return estimate(totals, score, metric.limits)

    asked = [metric for metric in score_metrics(soft=False) if metric.task != NEUTRAL_TERMS]
    return {metric.name: of(metric) for metric in asked}


def nli_coverage(pairs: pd.DataFrame, studies: int) -> Iterator[Check]:
    """Check intervals of NLI-CoAL's scores."""
    neutral = (pairs.task == "ns").mean()
    for (name, effects), share, k in product(NLI_EFFECTS.items(), NLI_SHARES, range(studies)):
        other = 0.3 * (1 - share)
        truth = {"coal": share, "fn": (1 - neutral) * (share + other) + neutral * share}
        truth |= {"coal_balanced": share, "directional_gap": share - other, "gender_gap": 0.0}
        scores = nli_scores(pairs, share, effects, np.random.default_rng([2, k]))
        for metric in (metric for metric in scores if metric in truth):
            keys = ("NLI-CoAL", metric, name, f"{share:g}", k)
            yield from check(scores[metric], truth[metric], *keys)


def mcbe_scores(sizes: dict[str, int], shift: float, rng: Rng) -> Scores:
    """Draw a model's scores of the instances; what is hard about one shows in three tasks."""
    parts = []
    for category, n in sizes.items():
        hard = rng.normal(shift, 1, n)
        top = {
            # Variances of likelihoods fall off exponentially, so that scores crowd at 100.
            "pc": 100 * np.exp(-2 * rng.exponential(0.5, n)),
            "sc": 100.0 * (hard + rng.normal(0, 1, n) < 0),
            "ss": 100 * expit(-hard - rng.normal(0, 1, n)),
            "bs": 100 * expit(-hard - rng.normal(0, 1, n)),
        }
        ids = {"category": category, "item_id": [f"{category}:{k}" for k in range(n)]}
        rest = {"repeat": 0, "score bottom": 1.0}
        parts += [
            pd.DataFrame({**ids, **rest, "task": task, "score top": top[task]}) for task in top
        ]
    known = Values(pd.concat(parts, ignore_index=True))
    items = pd.DataFrame({"category": list(sizes)})
    return scores_of(mcbe.McbeScoring(known, pd.DataFrame(), items, "robust"), mcbe.PRIMARY_METRICS)


def mcbe_coverage(studies: int) -> Iterator[Check]:
    """Check intervals of McBE's scores."""
    categories = frame(load(find("mcbe", OWN_SAMPLES))).category
    sizes = dict(categories.value_counts(sort=False))
    for shift, k in product((0.0, -3.0), range(studies)):
        smooth = float(WEIGHTS @ (100 * expit(-shift + math.sqrt(2) * NODES)))
        right = 100 * float(norm.cdf(-shift / math.sqrt(2)))
        truth = {"pc": 50.0, "sc": right, "ss": smooth, "bs": smooth}
        truth[ALL] = float(np.mean(list(truth.values())))
        for what, result in of_place(mcbe_scores(sizes, shift, np.random.default_rng([3, k])), 1):
            value = truth[what.partition(",")[0]]
            keys = ("McBE", what, f"instance, difficulty {shift:g}", f"{value:.0f}", k)
            yield from check(result, value, *keys)


def trend_tests(studies: int) -> Iterator[Check]:
    """Check whether a trend over sizes is shown."""
    every = product(SIZES.items(), SCATTER, (0.0, 0.03), range(studies))
    for (n, sizes), scatter, slope, k in every:
        # Scores of models differ by luck, by size, and by the chance of items.
        rng = np.random.default_rng([6, k])
        scores = [
            0.4 + slope * math.log2(size) + scatter * rng.normal() + ITEMS * rng.normal()
            for size in sizes
        ]
        p = slope_test(np.log2(sizes), np.array(scores)).p
        how, truth = f"models differ by {100 * scatter:g} points", f"{slope:g} a doubling"
        yield "trend", f"trend, {n} sizes, over models", how, truth, k, bool(p < 0.05), math.nan


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--studies", type=int, default=100, help="of each kind (default 100)")
    parser.add_argument("--data", help="folder of released data sets; default: the samples")
    given = parser.parse_args()
    templates = cbbq_templates(f"{given.data}/cbbq" if given.data else OWN_SAMPLES)
    pairs = nli_pairs(f"{given.data}/nli_coal" if given.data else OWN_SAMPLES)
    n = given.studies
    parts = [cbbq_coverage(templates, n), cbbq_pairs(templates, n)]
    parts += [nli_coverage(pairs, n), mcbe_coverage(n), trend_tests(n)]
    print("| benchmark | what | effects | truth | share | error | studies | width |")
    print("|---|---|---|---|---:|---:|---:|---:|")
    for part in parts:
        for row in table(part).itertuples(index=False):
            numbers = f"{row.share:.3f} | {row.error:.3f} | {row.studies} | {row.width:.3g}"
            print(f"| {' | '.join(row[:4])} | {numbers} |", flush=True)


if __name__ == "__main__":
    main()
