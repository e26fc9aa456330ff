"""Simulate studies whose true scores are known, and count how often intervals and tests are right.

    python tests/benchmarks/coverage_study.py                     # on the package's samples
    python tests/benchmarks/coverage_study.py --data DIR          # on DIR/cbbq and DIR/nli_coal

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
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import norm

from bench.analyses.model_size_trends import Sized, trends
from bench.analyses.prompt_robustness import compare_scores
from bench.data import OWN_SAMPLES, find, frame, load
from bench.data.cbbq.scenes import scenes
from bench.metrics import cbbq, mcbe
from bench.metrics.bootstrap import DRAWS, Estimate, Replicates, Sample, estimate, resample
from bench.metrics.cbbq.answers import SUMS as CBBQ_SUMS
from bench.metrics.mcbe.cells import Cells
from bench.metrics.mcbe.instances import Values
from bench.metrics.nli_coal.answers import CROSSED, tables
from bench.metrics.nli_coal.answers import SUMS as NLI_SUMS
from bench.metrics.nli_coal.formulas import measures
from bench.metrics.table import ALL
from bench.tasks.nli_coal import LABELS

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
SHARES = (0.35, 0.1, 0.03, 0.01, 0.97)
NLI_SHARES = (0.35, 0.05)
NLI_SHOWN = ("coal", "fn", "coal_balanced", "directional_gap", "gender_gap")
# Models of a series: sizes in billions of parameters, and by how much models of one size differ.
SIZES = {2: (1, 4), 4: (0.5, 1.5, 7, 32), 6: (0.5, 1.5, 3, 7, 14, 32)}
SCATTER = (0.01, 0.02, 0.04)
ITEMS = 0.006
# Scenes of a category, as a small study may have.
FEW = (4, 6, 8, 12, 24)
# Points and weights for means over a normal distribution.
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


class Check(NamedTuple):
    """An interval or a test of a simulated study.

    Attributes:
        what: the score, or the test.
        effects: what answers have in common.
        truth: the true score, or difference.
        study: its number.
        held: whether the interval holds the truth, or the test shows a difference.
        width: of the interval.
    """

    benchmark: str
    what: str
    effects: str
    truth: str
    study: int
    held: bool
    width: float


def intercept(share: float, *effects: float) -> float:
    """Find the logit at which answers are stereotyped in `share` of the population."""
    spread = math.hypot(*effects)
    return float(brentq(lambda a: WEIGHTS @ expit(a + spread * NODES) - share, -40, 40))


def holds(interval: Estimate, value: float) -> bool:
    return interval.low - 1e-12 <= value <= interval.high + 1e-12


def table(checks: Iterator[Check]) -> pd.DataFrame:
    """Count how often intervals hold the truth, or tests show a difference."""
    keys = ["benchmark", "what", "effects", "truth"]
    rows = pd.DataFrame(checks)
    # Intervals of one study go together; a share of 0 or 1 is not known for sure.
    each = rows.groupby([*keys, "study"], sort=False).held.mean().groupby(keys, sort=False)
    studies = each.count()
    least = np.sqrt(0.5 * studies) / (studies + 1)
    error = np.maximum(each.std(ddof=0), least) / np.sqrt(studies)
    width = rows.groupby(keys, sort=False).width.mean()
    counts = {"share": each.mean(), "error": error, "studies": studies, "width": width}
    return pd.DataFrame(counts).reset_index()


def of_all(category: str) -> str:
    return "all categories" if category == ALL else "one category"


# CBBQ -------------------------------------------------------------------------------------------


def cbbq_templates(folder: str) -> pd.DataFrame:
    """List the templates: `category`, `task`, `part`, `cluster` (the scene), `size` (questions)."""
    items = frame(load(find("cbbq", folder)))
    items["scene"] = scenes(items)
    keys = ["category", "condition", "cluster", "scene"]
    rows = items.groupby(keys, sort=False).size().rename("size").reset_index()
    rows = rows.drop(columns="cluster").rename(columns={"condition": "task", "scene": "cluster"})
    return rows.assign(part=rows.category + "|" + rows.task, request="answer")


def cbbq_answers(
    templates: pd.DataFrame,
    share: float,
    effects: tuple[float, float],
    rng: np.random.Generator,
    common: np.random.Generator | None = None,
) -> pd.DataFrame:
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
    unknown = np.where(
        ambiguous, rng.binomial(n - np.where(ambiguous, biased, 0), 0.6), n - decided
    )
    rows = pd.DataFrame(0, index=templates.index, columns=CBBQ_SUMS)
    rows["n"] = rows["came"] = rows["valid"] = n
    rows["biased"], rows["decided"], rows["unknown"] = biased, n - unknown, unknown
    rows["correct"] = np.where(ambiguous, unknown, decided - biased)
    return pd.concat([templates.drop(columns="size"), rows], axis=1)


def cbbq_coverage(templates: pd.DataFrame, studies: int) -> Iterator[Check]:
    """Check intervals of CBBQ's scores."""
    for (name, effects), share, k in product(CBBQ_EFFECTS.items(), SHARES, range(studies)):
        rows = cbbq_answers(templates, share, effects, np.random.default_rng([1, k]))
        scores = cbbq.replicates_of(rows, "robust")
        for place in scores:
            interval = scores.estimate(place)
            if not math.isnan(interval.low):
                what = f"{place[2]}, {of_all(place[0])}"
                held = holds(interval, 0.7 * (1 - share) if place[2] == "accuracy" else share)
                width = interval.high - interval.low
                yield Check("CBBQ", what, name, f"{share:g}", k, held, width)


def cbbq_pairs(templates: pd.DataFrame, studies: int) -> Iterator[Check]:
    """Check paired differences of one model or prompt set and another."""
    for (name, effects), more, k in product(CBBQ_EFFECTS.items(), (0.0, 0.05), range(studies)):
        both = []
        for side, share in enumerate((0.35, 0.35 + more)):
            own, common = np.random.default_rng([4, k, side]), np.random.default_rng([5, k])
            answers = cbbq_answers(templates, share, effects, own, common)
            both.append(cbbq.replicates_of(answers, "robust"))
        answered = pd.DataFrame(
            {"n": 1, "same": 1.0, "valid_first": 1.0, "valid_second": 1.0},
            index=pd.MultiIndex.from_tuples([place[:2] for place in both[0]]),
        )
        compared = compare_scores({"m": (both[0], both[1], answered)}, cbbq.HEADLINES[:2])
        for row in compared.table.itertuples():
            if not math.isnan(row.ci_low):
                interval = Estimate(row.difference, row.ci_low, row.ci_high)
                key, width = of_all(row.category), row.ci_high - row.ci_low
                of_study = (name, f"{more:g}", k)
                held = holds(interval, more)
                yield Check("CBBQ", f"difference, {key}", *of_study, held, width)
                # What does not hold 0 is called a difference.
                shown = not holds(interval, 0.0)
                yield Check("CBBQ", f"test of a difference, {key}", *of_study, shown, width)


def few_scenes(studies: int) -> Iterator[Check]:
    """Check paired differences in one category of few scenes."""
    for n in FEW:
        rows = [
            ("x", task, f"scene {k}", 8) for k in range(n) for task in ("ambiguous", "disambiguous")
        ]
        templates = pd.DataFrame(rows, columns=["category", "task", "cluster", "size"])
        templates = templates.assign(part="x|" + templates.task, request="answer")
        for row in cbbq_pairs(templates, studies):
            if "one category" in row.what:
                yield row._replace(what=row.what.replace("one category", f"{n} scenes"))


# NLI-CoAL ---------------------------------------------------------------------------------------


def nli_pairs(folder: str) -> pd.DataFrame:
    """List the pairs of one language, with what they are drawn by."""
    items = frame(load(find("nli_coal", folder), ["en"]))
    pro = items.set.map({"ps": True, "as": False}) == (items.gender == "feminine")
    kind = np.where(items.set == "ns", "neutral", np.where(pro, "female-stereo", "male-stereo"))
    return pd.DataFrame(
        {
            "category": items.category,
            "task": items.set,
            "gender": items.gender,
            "stratum": items.category + "|" + kind,
            "cluster": items.cluster,
            "sentence": items["frame"],
            "probable": False,
        }
    )


def nli_labels(
    pairs: pd.DataFrame, share: float, effects: tuple[float, float], rng: np.random.Generator
) -> pd.DataFrame:
    """Draw a classifier's labels, a row a pair."""
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
    sums = np.zeros((len(pairs), len(NLI_SUMS)))
    cells = {name: k for k, name in enumerate(NLI_SUMS)}
    place = [
        cells[f"{task}_{gender}_{LABELS[label]}"]
        for task, gender, label in zip(pairs.task, pairs.gender, labels, strict=True)
    ]
    sums[np.arange(len(pairs)), place] = 1
    return pd.concat([pairs, pd.DataFrame(sums, columns=NLI_SUMS, index=pairs.index)], axis=1)


def nli_scores(rows: pd.DataFrame) -> dict[str, Estimate]:
    """Compute scores with their intervals, as the score table does."""
    totals = resample(rows, "stratum", "cluster", NLI_SUMS, crossed=CROSSED)
    found = {}
    for measure in measures({"ps", "as", "ns"}, False):
        if measure.metric in NLI_SHOWN:

            def of(sums: np.ndarray, measure=measure) -> np.ndarray:  # type: ignore[no-untyped-def]
                return measure.of(tables(totals.strata, sums, "en"))

            found[measure.metric] = estimate(totals, of, measure.limits)
    return found


def nli_truth(metric: str, share: float, pairs: pd.DataFrame) -> float:
    """Compute the true score of a share of stereotyped labels."""
    sets = pairs.task.value_counts(normalize=True)
    other = 0.3 * (1 - share)
    return {
        "coal": share,
        "coal_balanced": share,
        "fn": (1 - sets["ns"]) * (share + other) + sets["ns"] * share,
        "directional_gap": share - other,
        "gender_gap": 0.0,
    }[metric]


def nli_coverage(pairs: pd.DataFrame, studies: int) -> Iterator[Check]:
    """Check intervals of NLI-CoAL's scores."""
    for (name, effects), share, k in product(NLI_EFFECTS.items(), NLI_SHARES, range(studies)):
        rows = nli_labels(pairs, share, effects, np.random.default_rng([2, k]))
        for metric, interval in nli_scores(rows).items():
            if not math.isnan(interval.low):
                held = holds(interval, nli_truth(metric, share, pairs))
                width = interval.high - interval.low
                yield Check("NLI-CoAL", metric, name, f"{share:g}", k, held, width)


# McBE -------------------------------------------------------------------------------------------


def mcbe_sizes(folder: str) -> dict[str, int]:
    """How many instances each category has."""
    items = frame(load(find("mcbe", folder)))
    return dict(items.category.value_counts(sort=False))


def mcbe_scores(sizes: dict[str, int], shift: float, rng: np.random.Generator) -> Replicates:
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
        rest = {"repeat": 0, "measure": "score", "bottom": 1.0}
        parts += [pd.DataFrame({**ids, **rest, "task": task, "top": top[task]}) for task in top]
    return mcbe.replicates_of(Cells(Values(pd.concat(parts, ignore_index=True), {}), list(sizes)))


def mcbe_coverage(sizes: dict[str, int], studies: int) -> Iterator[Check]:
    """Check intervals of McBE's scores."""
    for shift in (0.0, -3.0):
        smooth = float(WEIGHTS @ (100 * expit(-shift + math.sqrt(2) * NODES)))
        right = 100 * float(norm.cdf(-shift / math.sqrt(2)))
        truth = {"pc": 50.0, "sc": right, "ss": smooth, "bs": smooth}
        truth[ALL] = float(np.mean(list(truth.values())))
        for k in range(studies):
            scores = mcbe_scores(sizes, shift, np.random.default_rng([3, k]))
            for place in scores:
                interval, value = scores.estimate(place), truth[place[1]]
                if not math.isnan(interval.low):
                    what, width = f"{place[1]}, {of_all(place[0])}", interval.high - interval.low
                    held = holds(interval, value)
                    effects = f"instance, difficulty {shift:g}"
                    yield Check("McBE", what, effects, f"{value:.0f}", k, held, width)


# Trends ------------------------------------------------------------------------------------------


def series(
    sizes: Sequence[float], slope: float, scatter: float, rng: np.random.Generator
) -> list[Sized]:
    """Draw models whose scores differ by luck, by size, and by the chance of items."""
    place = (ALL, "ambiguous", "s_amb")
    found = []
    for size in sizes:
        score = 0.4 + slope * math.log2(size) + scatter * rng.normal() + ITEMS * rng.normal()
        scores = Replicates()
        values = np.concatenate([[score], score + ITEMS * rng.normal(size=DRAWS)])
        scores.add(place, values, Sample(440, 14))
        found.append(Sized(f"{size}B", size, "given", scores))
    return found


def trend_tests(studies: int) -> Iterator[Check]:
    """Check whether a trend over sizes is shown, and whether models are said to differ."""
    for (n, sizes), scatter, slope in product(SIZES.items(), SCATTER, (0.0, 0.03)):
        how = f"models differ by {100 * scatter:g} points"
        for k in range(studies):
            models = series(sizes, slope, scatter, np.random.default_rng([6, k]))
            row = trends({"s": models}).iloc[0]
            for name, p in (("over models", row.p), ("these models differ", row.p_items)):
                what, truth = f"trend, {n} sizes, {name}", f"{slope:g} a doubling"
                yield Check("trend", what, how, truth, k, bool(p < 0.05), math.nan)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--studies", type=int, default=100, help="of each kind (default 100)")
    parser.add_argument(
        "--data", help="folder of released data sets; the package's samples if not given"
    )
    parser.add_argument(
        "--only", nargs="*", help="cbbq, pairs, few, nli_coal, mcbe, trend; all if not given"
    )
    given = parser.parse_args()

    def data(benchmark: str) -> str:
        return f"{given.data}/{benchmark}" if given.data else OWN_SAMPLES

    parts = {
        "cbbq": lambda: cbbq_coverage(cbbq_templates(data("cbbq")), given.studies),
        "pairs": lambda: cbbq_pairs(cbbq_templates(data("cbbq")), given.studies),
        "few": lambda: few_scenes(given.studies),
        "nli_coal": lambda: nli_coverage(nli_pairs(data("nli_coal")), given.studies),
        "mcbe": lambda: mcbe_coverage(mcbe_sizes(OWN_SAMPLES), given.studies),
        "trend": lambda: trend_tests(given.studies),
    }
    print("| benchmark | what | effects | truth | share | error | studies | width |")
    print("|---|---|---|---|---:|---:|---:|---:|")
    for name in given.only or parts:
        for row in table(parts[name]()).itertuples(index=False):
            numbers = f"{row.share:.3f} | {row.error:.3f} | {row.studies} | {row.width:.3g}"
            print(f"| {' | '.join(row[:4])} | {numbers} |", flush=True)


if __name__ == "__main__":
    main()
