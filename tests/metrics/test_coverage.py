"""How often intervals hold the true value, and how often a test calls equal scores different, in simulated studies.

The benchmarks' own functions compute the headline scores of studies drawn from populations whose scores are known. What a
study samples (template, occupation, instance) differs in size, and its answers are alike.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from bench.metrics import cbbq, mcbe, nli_coal
from bench.metrics.bootstrap import Place, Replicates
from bench.metrics.cbbq.answers import SUMS as CBBQ_SUMS
from bench.metrics.mcbe.cells import Cells
from bench.metrics.mcbe.instances import Values
from bench.metrics.nli_coal.answers import GENDERS, SETS
from bench.metrics.nli_coal.answers import SUMS as NLI_SUMS
from bench.metrics.significance import compare_resamples
from bench.metrics.table import ALL
from bench.tasks.nli_coal import LABELS

# What is meant to hold, of 95 %, with 1.1 points of chance in 400 studies; near the ends of a scale it is more.
LEAST, MOST = 0.92, 0.99
# How much answers about one thing are alike.
ALIKE = 0.3
Dice = np.random.Generator
Study = Callable[[Dice, int], tuple[Replicates, dict[Place, float]]]


def counts(dice: Dice, n: int, least: int, most: int, shares: list[float]) -> np.ndarray:
    """Answers of `n` clusters by kind: the shares of a cluster are scattered around those of the population."""
    each = dice.dirichlet(np.array(shares) * (1 / ALIKE - 1), n)
    return np.array([dice.multinomial(dice.integers(least, most + 1), some) for some in each])


def cbbq_rows(dice: Dice, n: int) -> pd.DataFrame:
    """A category's answers to both contexts, a row a template: stereotyped, the other person, unknown."""
    parts = []
    for task, shares in (
        ("ambiguous", [0.35, 0.25, 0.4]),
        ("disambiguous", [0.32, 0.48, 0.2]),
    ):
        biased, other, unknown = counts(dice, n, 4, 60, shares).T
        rows = pd.DataFrame(0, index=range(n), columns=CBBQ_SUMS)
        rows["n"] = rows["came"] = rows["valid"] = biased + other + unknown
        rows["biased"], rows["decided"] = biased, biased + other
        rows["correct"] = unknown if task == "ambiguous" else other
        named = rows.assign(category="gender", task=task, request="answer", part=f"gender|{task}")
        parts.append(named.assign(cluster=[f"{task}:{k}" for k in range(n)]))
    return pd.concat(parts, ignore_index=True)


def cbbq_study(dice: Dice, n: int) -> tuple[Replicates, dict[Place, float]]:
    truth = {
        (ALL, "ambiguous", "s_amb"): 0.35,
        (ALL, "disambiguous", "s_disamb"): 0.4,
        (ALL, ALL, "accuracy"): (0.4 + 0.48) / 2,
    }
    return cbbq.replicates_of(cbbq_rows(dice, n), "robust"), truth


def nli_study(dice: Dice, n: int) -> tuple[Replicates, dict[Place, float]]:
    """A language's labels: a third of `n` occupations of each type, a row an occupation, set and gender word."""
    shares = {"ps": [0.5, 0.2, 0.3], "as": [0.2, 0.4, 0.4], "ns": [0.25, 0.15, 0.6]}
    parts = []
    for kind, sets in (
        ("female-stereo", ("ps", "as")),
        ("male-stereo", ("ps", "as")),
        ("neutral", ("ns",)),
    ):
        for name in sets:
            for k, said in enumerate(counts(dice, n // 3, 6, 24, shares[name])):
                gender = dice.choice(GENDERS)
                cells = dict.fromkeys(NLI_SUMS, 0.0)
                cells |= {
                    f"{name}_{gender}_{label}": float(m)
                    for label, m in zip(LABELS, said, strict=True)
                }
                parts.append(
                    {
                        "category": "en",
                        "task": name,
                        "stratum": f"en|{kind}",
                        "cluster": f"{kind}:{k}",
                        **cells,
                    }
                )
    rows = pd.DataFrame(parts).assign(probable=False)
    rows["sentence"] = range(len(rows))  # each of its own
    # Five parts of equal size: PS and AS of two types, NS of one.
    neutral = (2 * 0.3 + 2 * 0.4 + 0.6) / 5
    truth = {(ALL, ALL, "coal"): (0.5 + 0.4 + 0.4) / 3, (ALL, ALL, "fn"): 1 - neutral}
    assert set(SETS) == set(rows.task)
    return nli_coal.replicates_of(rows), truth


def mcbe_study(dice: Dice, n: int) -> tuple[Replicates, dict[Place, float]]:
    """A category's instances, a row an instance, task and repeat; how hard an instance is shows in all its tasks."""
    hard = dice.normal(0, 1, n)
    # Variances of the likelihoods fall off exponentially, so that scores crowd at 100.
    pc = 100 * np.exp(-2 * dice.exponential(0.5, n))
    ss = 100 / (1 + np.exp(hard + dice.normal(0, 1, n)))
    parts = []
    for repeat in range(2):
        sc = 100.0 * (hard + dice.normal(0, 1, n) < 0)
        bs = 100 / (1 + np.exp(hard + dice.normal(0, 1, n)))
        for task, top in (("pc", pc), ("sc", sc), ("ss", ss), ("bs", bs)):
            parts += [("age", task, f"age:{k}", repeat, "score", top[k], 1) for k in range(n)]
    terms = pd.DataFrame(
        parts, columns=["category", "task", "item_id", "repeat", "measure", "top", "bottom"]
    )
    places = {(ALL, task, "score"): 50.0 for task in ("pc", "sc", "ss", "bs", ALL)}
    return mcbe.replicates_of(Cells(Values(terms, {}), ["age"])), places


STUDIES: dict[str, Study] = {"cbbq": cbbq_study, "mcbe": mcbe_study, "nli_coal": nli_study}


def coverage(study: Study, clusters: int, studies: int) -> dict[Place, float]:
    """The share of studies whose interval holds the true value, a headline score each."""
    held: dict[Place, list[bool]] = {}
    for k in range(studies):
        found, truth = study(np.random.default_rng([clusters, k]), clusters)
        for place, value in truth.items():
            _, low, high = found.estimate(place)
            held.setdefault(place, []).append(low <= value <= high)
    return {place: float(np.mean(some)) for place, some in held.items()}


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", STUDIES)
def test_intervals_hold_the_true_value(benchmark: str) -> None:
    # Drawing answers in place of what they came from would hold it in half of the studies; studies
    # on the structure of data sets are in tests/benchmarks/coverage_study.py.
    for place, share in coverage(STUDIES[benchmark], 24, 60).items():
        assert share >= 0.85, place


@pytest.mark.slow
@pytest.mark.parametrize("clusters", [12, 24, 60])
@pytest.mark.parametrize("benchmark", STUDIES)
def test_95_percent_intervals_hold_the_true_value_in_92_to_99_percent_of_400_studies(
    benchmark: str, clusters: int
) -> None:
    for place, share in coverage(STUDIES[benchmark], clusters, 400).items():
        assert LEAST <= share <= MOST, place


def called_different(clusters: int, studies: int) -> float:
    """How often two models are called different at 5 % that follow the stereotype equally often, though one decides seldom."""
    place = (ALL, "disambiguous", "s_disamb")
    p = []
    for k in range(studies):
        dice = np.random.default_rng([clusters, k])
        one, other = (
            cbbq.replicates_of(deciding(dice, clusters, often), "robust") for often in (0.9, 0.2)
        )
        p.append(compare_resamples(one[place] - other[place], one.samples[place]).p)
    return float(np.mean(np.array(p) < 0.05))


def deciding(dice: Dice, n: int, often: float) -> pd.DataFrame:
    """Answers to a category's disambiguous questions, two in five of those that decide stereotyped, a row a template."""
    rows = pd.DataFrame(0, index=range(n), columns=CBBQ_SUMS)
    rows["n"] = rows["valid"] = dice.integers(4, 61, n)
    rows["decided"] = dice.binomial(rows.n, often)
    rows["biased"] = dice.binomial(
        rows.decided, dice.beta(0.4 * (1 / ALIKE - 1), 0.6 * (1 / ALIKE - 1), n)
    )
    named = rows.assign(
        category="gender", task="disambiguous", request="answer", part="gender|disambiguous"
    )
    return named.assign(cluster=[str(k) for k in range(n)])


@pytest.mark.slow
def test_models_that_decide_unequally_often_are_not_told_apart_by_that() -> None:
    assert called_different(24, 60) <= 0.15


@pytest.mark.slow
@pytest.mark.parametrize("clusters", [12, 24, 60])
def test_a_test_at_5_percent_errs_in_3_to_7_percent_of_a_thousand_studies(clusters: int) -> None:
    assert 0.03 <= called_different(clusters, 1000) <= 0.07
