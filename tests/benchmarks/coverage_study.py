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
from collections.abc import Iterator, Mapping, Sequence
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

Dice = np.random.Generator
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


class Row(NamedTuple):
    """A line of the table.

    Attributes:
        what: the score, or the test.
        effects: what answers have in common.
        truth: the true score, or difference.
        share: of intervals that hold the truth, or of tests that show a difference.
        error: the standard error of `share`.
        studies: how many there were.
        width: the mean width of the intervals.
    """

    benchmark: str
    what: str
    effects: str
    truth: str
    share: float
    error: float
    studies: int
    width: float


def intercept(share: float, *effects: float) -> float:
    """Find the logit at which answers are stereotyped in `share` of the population."""
    spread = math.hypot(*effects)
    return float(brentq(lambda a: WEIGHTS @ expit(a + spread * NODES) - share, -40, 40))


def counted(
    benchmark: str,
    what: str,
    effects: str,
    truth: str,
    held: Sequence[Sequence[bool]],
    width: float,
) -> Row:
    """Make a line of how often `held` is true, of each study one or more intervals or tests."""
    each = np.array([np.mean(some) for some in held])
    share, n = float(each.mean()), len(each)
    # Intervals of one study go together; a share of 0 or 1 is not known for sure.
    error = max(float(each.std()) / math.sqrt(n), math.sqrt(0.5 * n) / (n + 1) / math.sqrt(n))
    return Row(benchmark, what, effects, truth, share, error, n, width)


class Count:
    """How often intervals held the truth, by what they are of."""

    def __init__(self) -> None:
        self.held: dict[str, list[list[bool]]] = {}
        self.width: dict[str, list[float]] = {}

    def study(self, found: Mapping[str, Sequence[tuple[Estimate, float]]]) -> None:
        """Add a study: of each score its intervals, with the true values."""
        for key, some in found.items():
            known = [(one, truth) for one, truth in some if not math.isnan(one.low)]
            if known:
                held = [one.low - 1e-12 <= truth <= one.high + 1e-12 for one, truth in known]
                self.held.setdefault(key, []).append(held)
                self.width.setdefault(key, []).extend(one.high - one.low for one, _ in known)

    def rows(self, benchmark: str, effects: str, truth: str) -> Iterator[Row]:
        """Make a line a score."""
        for key, held in self.held.items():
            yield counted(benchmark, key, effects, truth, held, float(np.mean(self.width[key])))


def of_all(place: tuple[str, str, str]) -> str:
    """Say whether a score is of one category or of all."""
    return "all categories" if place[0] == ALL else "one category"


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
    dice: Dice,
    common: Dice | None = None,
) -> pd.DataFrame:
    """Draw a model's answers; models with dice in `common` share most of the scenes' effects."""
    scene, index = np.unique(templates.cluster.to_numpy(), return_inverse=True)
    own = dice.normal(size=len(scene))
    if common is not None:
        own = math.sqrt(0.7) * common.normal(size=len(scene)) + math.sqrt(0.3) * own
    logit = intercept(share, *effects) + effects[0] * own[index]
    p = expit(logit + effects[1] * dice.normal(size=len(templates)))
    ambiguous = (templates.task == "ambiguous").to_numpy()
    n = templates["size"].to_numpy()
    decided = dice.binomial(n, 0.8)
    biased = dice.binomial(np.where(ambiguous, n, decided), p)
    unknown = np.where(
        ambiguous, dice.binomial(n - np.where(ambiguous, biased, 0), 0.6), n - decided
    )
    rows = pd.DataFrame(0, index=templates.index, columns=CBBQ_SUMS)
    rows["n"] = rows["came"] = rows["valid"] = n
    rows["biased"], rows["decided"], rows["unknown"] = biased, n - unknown, unknown
    rows["correct"] = np.where(ambiguous, unknown, decided - biased)
    return pd.concat([templates.drop(columns="size"), rows], axis=1)


def cbbq_truth(metric: str, share: float) -> float:
    """Compute the true score of a share of stereotyped answers."""
    return 0.7 * (1 - share) if metric == "accuracy" else share


def cbbq_coverage(templates: pd.DataFrame, studies: int) -> Iterator[Row]:
    """Count how often intervals hold CBBQ's scores."""
    for name, effects in CBBQ_EFFECTS.items():
        for share in SHARES:
            count = Count()
            for k in range(studies):
                rows = cbbq_answers(templates, share, effects, np.random.default_rng([1, k]))
                scores = cbbq.replicates_of(rows, "robust")
                found: dict[str, list[tuple[Estimate, float]]] = {}
                for place in scores:
                    each = found.setdefault(f"{place[2]}, {of_all(place)}", [])
                    each.append((scores.estimate(place), cbbq_truth(place[2], share)))
                count.study(found)
            yield from count.rows("CBBQ", name, f"{share:g}")


def cbbq_pairs(templates: pd.DataFrame, studies: int) -> Iterator[Row]:
    """Count how often paired differences are held and shown, of one model or wording and another."""
    for name, effects in CBBQ_EFFECTS.items():
        for more in (0.0, 0.05):
            held, shown = Count(), Count()
            for k in range(studies):
                both = [
                    cbbq.replicates_of(
                        cbbq_answers(
                            templates,
                            share,
                            effects,
                            np.random.default_rng([4, k, side]),
                            np.random.default_rng([5, k]),
                        ),
                        "robust",
                    )
                    for side, share in enumerate((0.35, 0.35 + more))
                ]
                answered = pd.DataFrame(
                    {"n": 1, "same": 1.0, "valid_first": 1.0, "valid_second": 1.0},
                    index=pd.MultiIndex.from_tuples([(place[0], place[1]) for place in both[0]]),
                )
                table = compare_scores(
                    {"m": (both[0], both[1], answered)}, cbbq.HEADLINES[:2]
                ).table
                intervals: dict[str, list[tuple[Estimate, float]]] = {}
                tests: dict[str, list[tuple[Estimate, float]]] = {}
                for row in table.itertuples():
                    key = f"{of_all((row.category, '', ''))}"
                    one = Estimate(row.difference, row.ci_low, row.ci_high)
                    intervals.setdefault(f"difference, {key}", []).append((one, more))
                    # What does not hold 0 is called a difference.
                    tests.setdefault(f"test of a difference, {key}", []).append((one, 0.0))
                held.study(intervals)
                shown.study(tests)
            yield from held.rows("CBBQ", name, f"{more:g}")
            for row in shown.rows("CBBQ", name, f"{more:g}"):
                yield row._replace(share=1 - row.share)


def few_scenes(studies: int) -> Iterator[Row]:
    """Count how often paired differences are held and shown in one category of few scenes."""
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
    pairs: pd.DataFrame, share: float, effects: tuple[float, float], dice: Dice
) -> pd.DataFrame:
    """Draw a classifier's labels, a row a pair."""
    occupation, i = np.unique(pairs.cluster.to_numpy(), return_inverse=True)
    sentence, j = np.unique(pairs.sentence.to_numpy(), return_inverse=True)
    logit = intercept(share, *effects) + effects[0] * dice.normal(size=len(occupation))[i]
    p = expit(logit + effects[1] * dice.normal(size=len(sentence))[j])
    biased, other = dice.random(len(pairs)) < p, dice.random(len(pairs)) < 0.3
    labels = np.full(len(pairs), LABELS.index("neutral"))
    stereotyped = pairs.task.map({"ps": 0, "as": 1, "ns": -1}).to_numpy()
    either = np.where(stereotyped >= 0, stereotyped, dice.integers(2, size=len(pairs)))
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


def nli_coverage(pairs: pd.DataFrame, studies: int) -> Iterator[Row]:
    """Count how often intervals hold NLI-CoAL's scores."""
    for name, effects in NLI_EFFECTS.items():
        for share in NLI_SHARES:
            count = Count()
            for k in range(studies):
                scores = nli_scores(
                    nli_labels(pairs, share, effects, np.random.default_rng([2, k]))
                )
                count.study(
                    {key: [(one, nli_truth(key, share, pairs))] for key, one in scores.items()}
                )
            yield from count.rows("NLI-CoAL", name, f"{share:g}")


# McBE -------------------------------------------------------------------------------------------


def mcbe_sizes(folder: str) -> dict[str, int]:
    """How many instances each category has."""
    items = frame(load(find("mcbe", folder)))
    return dict(items.category.value_counts(sort=False))


def mcbe_scores(sizes: dict[str, int], shift: float, dice: Dice) -> Replicates:
    """Draw a model's scores of the instances; what is hard about one shows in three tasks."""
    parts = []
    for category, n in sizes.items():
        hard = dice.normal(shift, 1, n)
        top = {
            # Variances of likelihoods fall off exponentially, so that scores crowd at 100.
            "pc": 100 * np.exp(-2 * dice.exponential(0.5, n)),
            "sc": 100.0 * (hard + dice.normal(0, 1, n) < 0),
            "ss": 100 * expit(-hard - dice.normal(0, 1, n)),
            "bs": 100 * expit(-hard - dice.normal(0, 1, n)),
        }
        for task, scores in top.items():
            parts.append(
                pd.DataFrame(
                    {
                        "category": category,
                        "task": task,
                        "item_id": [f"{category}:{k}" for k in range(n)],
                        "repeat": 0,
                        "measure": "score",
                        "top": scores,
                        "bottom": 1.0,
                    }
                )
            )
    return mcbe.replicates_of(Cells(Values(pd.concat(parts, ignore_index=True), {}), list(sizes)))


def mcbe_coverage(sizes: dict[str, int], studies: int) -> Iterator[Row]:
    """Count how often intervals hold McBE's scores."""
    for shift in (0.0, -3.0):
        smooth = float(WEIGHTS @ (100 * expit(-shift + math.sqrt(2) * NODES)))
        truth = {
            "pc": 50.0,
            "sc": 100 * float(norm.cdf(-shift / math.sqrt(2))),
            "ss": smooth,
            "bs": smooth,
        }
        truth[ALL] = float(np.mean(list(truth.values())))
        count = Count()
        for k in range(studies):
            scores = mcbe_scores(sizes, shift, np.random.default_rng([3, k]))
            found: dict[str, list[tuple[Estimate, float]]] = {}
            for place in scores:
                each = found.setdefault(f"{place[1]}, {of_all(place)}", [])
                each.append((scores.estimate(place), truth[place[1]]))
            count.study(found)
        for row in count.rows("McBE", "instance", ""):
            yield row._replace(truth=f"{truth[row.what.split(',')[0]]:.0f}")


# Trends ------------------------------------------------------------------------------------------


def series(sizes: Sequence[float], slope: float, scatter: float, dice: Dice) -> list[Sized]:
    """Draw models whose scores differ by luck, by size, and by the chance of items."""
    place = (ALL, "ambiguous", "s_amb")
    found = []
    for size in sizes:
        score = 0.4 + slope * math.log2(size) + scatter * dice.normal() + ITEMS * dice.normal()
        scores = Replicates()
        values = np.concatenate([[score], score + ITEMS * dice.normal(size=DRAWS)])
        scores.add(place, values, Sample(440, 14))
        found.append(Sized(f"{size}B", size, "given", scores))
    return found


def trend_tests(studies: int) -> Iterator[Row]:
    """Count how often a trend over sizes is shown, and how often models are said to differ."""
    for n, sizes in SIZES.items():
        for scatter in SCATTER:
            for slope in (0.0, 0.03):
                tests: dict[str, list[list[bool]]] = {"over models": [], "these models differ": []}
                for k in range(studies):
                    models = series(sizes, slope, scatter, np.random.default_rng([6, k]))
                    row = trends({"s": models}).iloc[0]
                    tests["over models"].append([bool(row.p < 0.05)])
                    tests["these models differ"].append([bool(row.p_items < 0.05)])
                for name, shown in tests.items():
                    what, how = (
                        f"trend, {n} sizes, {name}",
                        f"models differ by {100 * scatter:g} points",
                    )
                    yield counted("trend", what, how, f"{slope:g} a doubling", shown, math.nan)


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
    print(f"| {' | '.join(Row._fields)} |")
    print("|---|---|---|---|---:|---:|---:|---:|")
    for name in given.only or parts:
        for row in parts[name]():
            numbers = f"{row.share:.3f} | {row.error:.3f} | {row.studies} | {row.width:.3g}"
            print(f"| {' | '.join(row[:4])} | {numbers} |", flush=True)


if __name__ == "__main__":
    main()
