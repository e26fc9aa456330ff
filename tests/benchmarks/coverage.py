"""Simulate studies whose true scores are known, and count how often intervals hold these.

    python -m tests.benchmarks.coverage [--small]
    python -m tests.benchmarks.coverage --data DIR    # released data: DIR/cbbq, DIR/nli_coal

Small studies are those of `no_effect.py`: shares and means of one model, differences of two, with
and without an effect, and slopes over models. Any other study keeps the structure of a data set
(which template asks about which scene, which sentence stands with which occupation, how many
instances a category has) and draws the answers: each scene, template, occupation, sentence and
instance has an effect of its own on the logit of a stereotyped answer. The package's own functions
make the intervals. Printed are tables in the form of Markdown: the share of 95 % intervals that
hold the true value, with its standard error, and for benchmarks their mean width. A hundred studies
of everything take about ten minutes on one core, and a thousand small studies take four.
"""

import argparse
import math
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
from scipy.special import expit
from scipy.stats import norm

from bench.benchmarks.cbbq import scores as cbbq
from bench.benchmarks.cbbq.outcomes import SUMS as CBBQ_SUMS
from bench.benchmarks.cbbq.scenes import scenes
from bench.benchmarks.mcbe import scores as mcbe
from bench.benchmarks.nli_coal.formulas import score_metrics
from bench.benchmarks.nli_coal.outcomes import CROSSED
from bench.benchmarks.nli_coal.outcomes import SUMS as NLI_SUMS
from bench.benchmarks.nli_coal.requests import LABELS
from bench.data import OWN_SAMPLES, find, frame, load
from bench.metrics.bootstrap import Estimate, count_clusters, interval, replicate, resample
from bench.metrics.engine import Scoring
from bench.metrics.significance import slope_test
from bench.metrics.statistics import _mean_ratio, _weights_of_parts, compare
from bench.metrics.table import ALL
from tests.benchmarks.no_effect import (
    KINDS,
    LENGTHS,
    MODELS,
    NODES,
    UNITS,
    WEIGHTS,
    compared,
    draw,
    intercept,
    print_head,
    print_row,
    with_error,
)

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
# Effects of small studies, in the units of each kind.
EFFECTS = {
    "1 answer, share .3": 0.3,
    "2 answers, share .5": 0.2,
    "8 answers, share .3": 0.2,
    "16 answers, share .3": 0.2,
    "1 to 40 answers, share .3": 0.2,
    "normal numbers": 2.0,
    "points 0 to 100": -1.0,
    "seconds, exponential": 1.0,
}
# `held`: whether an interval holds the truth.
KEYS = ["benchmark", "score", "effects", "truth"]
COLUMNS = [*KEYS, "study", "held", "width"]


def check(ends, value, *keys):
    """Check whether the interval of one study holds the true value, if there is one."""
    if not math.isnan(ends.low):
        yield *keys, ends.low - 1e-12 <= value <= ends.high + 1e-12, ends.high - ends.low


def scores_of(scoring, primary_metrics):
    """Return the value and resamples, the sample and the limits of each primary score."""
    wanted = {(line.task, line.metric) for line in primary_metrics}
    scores = {}
    for metric in scoring.metrics:
        if metric.key in wanted:
            values = scoring.values(metric)
            samples = scoring.samples(metric)
            for k, category in enumerate([*scoring.categories, ALL]):
                scores[category, *metric.key] = values[:, k], samples[k], metric.limits
    return scores


def with_extent(name, category):
    return f"{name}, {'all categories' if category == ALL else 'one category'}"


def table(rows):
    """Count how often intervals hold the truth."""
    frame = pd.DataFrame(rows, columns=COLUMNS)
    # Intervals of one study go together; a share of 0 or 1 is not known for sure.
    each = frame.groupby([*KEYS, "study"], sort=False).held.mean().groupby(KEYS, sort=False)
    studies = each.count()
    least = np.sqrt(0.5 * studies) / (studies + 1)
    error = np.maximum(each.std(ddof=0), least) / np.sqrt(studies)
    width = frame.groupby(KEYS, sort=False).width.mean()
    counts = {"share": each.mean(), "error": error, "studies": studies, "width": width}
    return pd.DataFrame(counts).reset_index()


def cbbq_templates(folder):
    """List the templates: `category`, `task`, `cluster` (the scene), `size` (questions)."""
    items = frame(load(find("cbbq", folder)))
    keys = {"category": items.category, "task": items.condition, "template": items.cluster}
    keys["cluster"] = scenes(items)
    rows = pd.DataFrame(keys).groupby([*keys], sort=False).size().rename("size").reset_index()
    return rows.assign(request="answer")


def cbbq_rows(templates, share, effects, rng, common=None):
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
    correct = np.where(ambiguous, unknown, decided - biased)
    sums = dict.fromkeys(CBBQ_SUMS, 0) | dict.fromkeys(["answered", "replied", "parsed"], n)
    sums |= {"stereotyped": biased, "names_person": n - unknown, "correct": correct}
    sums["says_unknown"] = unknown
    return templates.drop(columns="size").assign(**sums)


def cbbq_coverage(templates, studies):
    for (name, effects), share, k in product(CBBQ_EFFECTS.items(), SHARES, range(studies)):
        rows = cbbq_rows(templates, share, effects, np.random.default_rng([1, k]))
        rows["stratum"] = rows.category
        metrics = list(cbbq.score_metrics(rows, "robust"))
        scoring = cbbq.CbbqScoring(rows, CBBQ_SUMS, metrics, "robust")
        scores = scores_of(scoring, cbbq.METRICS.primary_metrics)
        for (category, _task, metric), score in scores.items():
            true = 0.7 * (1 - share) if metric == "accuracy" else share
            keys = ("CBBQ", with_extent(metric, category), name, f"{share:g}", k)
            yield from check(interval(*score), true, *keys)


def cbbq_pairs(templates, studies):
    """Check paired differences of one model or prompt set and another."""
    for (name, effects), more, k in product(CBBQ_EFFECTS.items(), (0.0, 0.05), range(studies)):
        sides = []
        for side, share in enumerate((0.35, 0.35 + more)):
            own, common = np.random.default_rng([4, k, side]), np.random.default_rng([5, k])
            rows = cbbq_rows(templates, share, effects, own, common)
            sides.append(rows.assign(model=-side, item_id=rows.index, stratum=rows.category))
        both = pd.concat(sides[::-1])
        for (task, of), by in product(
            {"ambiguous": "answered", "disambiguous": "names_person"}.items(), (0, 1)
        ):
            how = {"by": "category"} if by else {"mean_over": "category"}
            for row in compare(both[both.task == task], "stereotyped", of, **how).itertuples():
                ends = Estimate(row.estimate, row.ci_low, row.ci_high)
                what = with_extent("difference", task if by else ALL)
                yield from check(ends, more, "CBBQ", what, name, f"{more:g}", k)


def nli_pairs(folder):
    """List the pairs of one language, with what they are drawn by."""
    items = frame(load(find("nli_coal", folder), ["en"]))
    pro = items.set.map({"ps": True, "as": False}) == (items.gender == "feminine")
    kind = np.where(items.set == "ns", "neutral", np.where(pro, "female-stereo", "male-stereo"))
    rows = items[["category", "set", "gender", "cluster", "frame"]]
    rows = rows.rename(columns={"set": "task", "frame": "sentence"})
    return rows.assign(stratum=items.category + "|" + kind)


def nli_coverage(pairs, studies):
    neutral = (pairs.task == "ns").mean()
    occupation, i = np.unique(pairs.cluster.to_numpy(), return_inverse=True)
    sentence, j = np.unique(pairs.sentence.to_numpy(), return_inverse=True)
    stereotyped = pairs.task.map({"ps": 0, "as": 1, "ns": -1}).to_numpy()
    for (name, effects), share, k in product(NLI_EFFECTS.items(), NLI_SHARES, range(studies)):
        rng, n = np.random.default_rng([2, k]), len(pairs)
        logit = intercept(share, *effects) + effects[0] * rng.normal(size=len(occupation))[i]
        p = expit(logit + effects[1] * rng.normal(size=len(sentence))[j])
        biased, other = rng.random(n) < p, rng.random(n) < 0.3
        either = np.where(stereotyped >= 0, stereotyped, rng.integers(2, size=n))
        reverse = other & (stereotyped >= 0)
        labels = np.select([biased, reverse], [either, 1 - stereotyped], LABELS.index("neutral"))
        cells = pairs.task + "_" + pairs.gender + "_" + np.array(LABELS)[labels]
        sums = pd.get_dummies(cells, dtype=float).reindex(columns=NLI_SUMS, fill_value=0.0)
        reversed_share = 0.3 * (1 - share)
        not_neutral = (1 - neutral) * (share + reversed_share) + neutral * share
        truth = {"coal": share, "fn": not_neutral, "coal_balanced": share}
        truth |= {"directional_gap": share - reversed_share, "gender_gap": 0.0}
        rows = pd.concat([pairs, sums], axis=1)
        metrics = [metric for metric in score_metrics(soft=False) if metric.name in truth]
        scoring = Scoring(rows, NLI_SUMS, metrics, "robust", by_task=False, crossed=CROSSED)
        for metric in metrics:
            values = scoring.values(metric)
            (sample, _) = scoring.samples(metric)
            keys = ("NLI-CoAL", metric.name, name, f"{share:g}", k)
            ends = interval(values[:, 0], sample, metric.limits)
            yield from check(ends, truth[metric.name], *keys)


def mcbe_coverage(studies):
    categories = frame(load(find("mcbe", OWN_SAMPLES))).category
    sizes = dict(categories.value_counts(sort=False))
    for shift, k in product((0.0, -3.0), range(studies)):
        rng, parts = np.random.default_rng([3, k]), []
        for category, n in sizes.items():
            # What is hard about an instance shows in three tasks.
            hard = rng.normal(shift, 1, n)
            top = {
                # Variances of likelihoods fall off exponentially, so that scores crowd at 100.
                "pc": 100 * np.exp(-2 * rng.exponential(0.5, n)),
                "sc": 100.0 * (hard + rng.normal(0, 1, n) < 0),
                "ss": 100 * expit(-hard - rng.normal(0, 1, n)),
                "bs": 100 * expit(-hard - rng.normal(0, 1, n)),
            }
            own = pd.DataFrame({**top, "item_id": [f"{category}:{k}" for k in range(n)]})
            own = own.melt("item_id", var_name="task", value_name="score")
            own = own.assign(category=category, stratum=category, repeat=0, cluster=own.item_id)
            parts.append(own.assign(answered=1.0, parsed=1.0, scored=1.0))
        rows = pd.concat(parts, ignore_index=True)
        metrics = [m for m in mcbe.score_metrics(rows, "official", ()) if m.name == "score"]
        scoring = Scoring(rows, ["answered", "parsed", "scored", "score"], metrics, "official")
        smooth = float(WEIGHTS @ (100 * expit(-shift + math.sqrt(2) * NODES)))
        right = 100 * float(norm.cdf(-shift / math.sqrt(2)))
        truth = {"pc": 50.0, "sc": right, "ss": smooth, "bs": smooth}
        truth[ALL] = float(np.mean(list(truth.values())))
        for (category, task, _metric), score in scores_of(
            scoring, mcbe.METRICS.primary_metrics
        ).items():
            keys = ("McBE", with_extent(task, category), f"instance, difficulty {shift:g}")
            yield from check(interval(*score), truth[task], *keys, f"{truth[task]:.0f}", k)


def held(tests, truth):
    """Count how often an interval holds the truth, of those that there are."""
    tests = tests.dropna(subset="ci_low")
    return with_error((tests.ci_low <= truth + 1e-12) & (tests.ci_high >= truth - 1e-12))


def intervals(side, limits):
    """Make the interval of one model's score in each study, as `bench.share` does it."""
    sums = np.stack(side[:2], axis=-1).swapaxes(0, 1)  # [units, studies, sums]
    columns = [str(k) for k in range(2 * sums.shape[1])]
    rows = pd.DataFrame(sums.reshape(len(sums), -1), columns=columns)
    totals = resample(rows.assign(all="all", unit=rows.index), "all", "unit", columns)
    ends = []
    for at in range(0, len(columns), 2):
        ratio = partial(_mean_ratio, _weights_of_parts(totals, [at + 1]), at=at)
        (rests_on,) = count_clusters(totals, np.full((1, 1), True), columns[at + 1])
        ends.append(interval(replicate(totals, ratio), rests_on, limits))
    return pd.DataFrame(ends, columns=["estimate", "ci_low", "ci_high"])


def small_studies(studies):
    print_head("score of one model, units:", UNITS)
    for name, kind in KINDS.items():
        length, cells = LENGTHS.get(name, 1.0), []
        for units in UNITS:
            side = draw(kind, studies, units, 1)[0]
            limits = None if math.isinf(length) else (0, length)
            cells.append(held(intervals(side, limits), side[2]))
        print_row(name, cells)
    print()
    print_head("difference of two models, units:", UNITS)
    for name, effect in [*dict.fromkeys(KINDS, 0.0).items(), *EFFECTS.items()]:
        kind = partial(KINDS[name], effect=effect) if effect else KINDS[name]
        cells = []
        for units in UNITS:
            first, second = draw(kind, studies, units)
            tests = compared(first, second, LENGTHS.get(name, 1.0))
            cells.append(held(tests, first[2] - second[2]))
        print_row(f"{name}, effect {effect:g}", cells)
    print()
    print_head("slope over models:", MODELS)
    for slope in (0.0, 0.03):
        rng, cells = np.random.default_rng(8), []
        for models in MODELS:
            x = np.arange(models)
            scores = 0.4 + slope * x + 0.03 * rng.normal(size=(studies, models))
            cells.append(held(pd.DataFrame([slope_test(x, own) for own in scores]), slope))
        print_row(f"slope {slope:g}", cells)
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--studies", type=int, help="of each kind (100; of small ones 1000)")
    parser.add_argument("--small", action="store_true", help="small studies alone")
    parser.add_argument("--data", help="folder of released data sets; default: the samples")
    given = parser.parse_args()
    small_studies(given.studies or 1000)
    if given.small:
        return
    templates = cbbq_templates(f"{given.data}/cbbq" if given.data else OWN_SAMPLES)
    pairs = nli_pairs(f"{given.data}/nli_coal" if given.data else OWN_SAMPLES)
    n = given.studies or 100
    parts = [cbbq_coverage(templates, n), cbbq_pairs(templates, n)]
    parts += [nli_coverage(pairs, n), mcbe_coverage(n)]
    print("| benchmark | what | effects | truth | share | error | studies | width |")
    print("|---|---|---|---|---:|---:|---:|---:|")
    for part in parts:
        for row in table(part).itertuples(index=False):
            numbers = f"{row.share:.3f} | {row.error:.3f} | {row.studies} | {row.width:.3g}"
            print(f"| {' | '.join(row[:4])} | {numbers} |", flush=True)


if __name__ == "__main__":
    main()
