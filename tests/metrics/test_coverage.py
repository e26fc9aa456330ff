"""How often intervals hold the true value, and how often a test calls equal scores different, in simulated studies.

The benchmarks' own functions compute the headline scores of studies drawn from populations whose scores are known. What a
study samples (template, occupation, instance) differs in size, and its answers are alike.
"""

import numpy as np
import pandas as pd
import pytest

from bench.metrics import cbbq, mcbe, nli_coal
from bench.metrics.cbbq.answers import SUMS as CBBQ_SUMS
from bench.metrics.mcbe.cells import Cells
from bench.metrics.mcbe.instances import Values
from bench.metrics.nli_coal.answers import GENDERS
from bench.metrics.nli_coal.answers import SUMS as NLI_SUMS
from bench.metrics.significance import compare_resamples
from bench.metrics.table import ALL
from bench.tasks.nli_coal import LABELS

# What is meant to hold, of 95 %, with 1.1 points of chance in 400 studies; near the ends of a scale it is more.
LEAST, MOST = 0.92, 0.99
# How much answers about one thing are alike.
ALIKE = 0.3


def counts(rng, n, least, most, shares):
    """Answers of `n` clusters by kind: the shares of a cluster are scattered around those of the population."""
    each = rng.dirichlet(np.array(shares) * (1 / ALIKE - 1), n)
    return np.array([rng.multinomial(rng.integers(least, most + 1), own) for own in each])


def cbbq_rows(task, **sums):
    """A category's answers to a context, a row a template."""
    rows = pd.DataFrame(sums).reindex(columns=CBBQ_SUMS, fill_value=0)
    named = {"category": "gender", "task": task, "request": "answer", "part": f"gender|{task}"}
    return rows.assign(**named, cluster=[f"{task}:{k}" for k in range(len(rows))])


def cbbq_study(rng, n):
    parts = []
    for task, shares in (("ambiguous", [0.35, 0.25, 0.4]), ("disambiguous", [0.32, 0.48, 0.2])):
        biased, other, unknown = counts(rng, n, 4, 60, shares).T
        given = dict.fromkeys(("n", "came", "valid"), biased + other + unknown)
        right = unknown if task == "ambiguous" else other
        given |= {"biased": biased, "decided": biased + other, "correct": right}
        parts.append(cbbq_rows(task, **given))
    truth = {("ambiguous", "s_amb"): 0.35, ("disambiguous", "s_disamb"): 0.4}
    truth[ALL, "accuracy"] = (0.4 + 0.48) / 2
    return cbbq.replicates_of(pd.concat(parts, ignore_index=True), "robust"), truth


def nli_study(rng, n):
    """A language's labels: a third of `n` occupations of each type, a row an occupation, set and gender word."""
    shares = {"ps": [0.5, 0.2, 0.3], "as": [0.2, 0.4, 0.4], "ns": [0.25, 0.15, 0.6]}
    rows = []
    for kind in ("female-stereo", "male-stereo", "neutral"):
        for name in ("ns",) if kind == "neutral" else ("ps", "as"):
            for k, labels in enumerate(counts(rng, n // 3, 6, 24, shares[name])):
                gender = rng.choice(GENDERS)
                cells = [f"{name}_{gender}_{label}" for label in LABELS]
                unit = {"task": name, "stratum": f"en|{kind}", "cluster": f"{kind}:{k}"}
                rows.append(unit | dict(zip(cells, labels.astype(float), strict=True)))
    names = ["task", "stratum", "cluster", *NLI_SUMS]
    frame = pd.DataFrame(rows).reindex(columns=names).fillna(0.0)
    # Sentences of their own.
    frame = frame.assign(category="en", probable=False, sentence=range(len(rows)))
    # Five parts of equal size: PS and AS of two types, NS of one.
    neutral = (2 * 0.3 + 2 * 0.4 + 0.6) / 5
    truth = {(ALL, "coal"): (0.5 + 0.4 + 0.4) / 3, (ALL, "fn"): 1 - neutral}
    return nli_coal.replicates_of(frame), truth


def mcbe_study(rng, n):
    """A category's instances, a row an instance, task and repeat; how hard an instance is shows in all its tasks."""
    hard = rng.normal(0, 1, n)
    # Variances of the likelihoods fall off exponentially, so that scores crowd at 100.
    pc = 100 * np.exp(-2 * rng.exponential(0.5, n))
    ss = 100 / (1 + np.exp(hard + rng.normal(0, 1, n)))
    rows = []
    for repeat in range(2):
        sc = 100.0 * (hard + rng.normal(0, 1, n) < 0)
        bs = 100 / (1 + np.exp(hard + rng.normal(0, 1, n)))
        for task, top in (("pc", pc), ("sc", sc), ("ss", ss), ("bs", bs)):
            rows += [("age", task, f"age:{k}", repeat, "score", top[k], 1) for k in range(n)]
    columns = ["category", "task", "item_id", "repeat", "measure", "top", "bottom"]
    terms = pd.DataFrame(rows, columns=columns)
    truth = {(task, "score"): 50.0 for task in ("pc", "sc", "ss", "bs", ALL)}
    return mcbe.replicates_of(Cells(Values(terms, {}), ["age"])), truth


STUDIES = {"cbbq": cbbq_study, "mcbe": mcbe_study, "nli_coal": nli_study}


@pytest.mark.slow
@pytest.mark.parametrize("clusters", [12, 24, 60])
@pytest.mark.parametrize("benchmark", STUDIES)
def test_95_percent_intervals_hold_the_true_value_in_92_to_99_percent_of_400_studies(
    benchmark, clusters
):
    # Drawing answers in place of what they came from would hold it in half of the studies; studies
    # on the structure of data sets are in tests/benchmarks/coverage_study.py.
    held = {}
    for k in range(400):
        rng = np.random.default_rng([clusters, k])
        replicates, truth = STUDIES[benchmark](rng, clusters)
        for place, value in truth.items():
            _, low, high = replicates.estimate((ALL, *place))
            held.setdefault(place, []).append(low <= value <= high)
    for place, covered in held.items():
        assert LEAST <= np.mean(covered) <= MOST, place


def deciding(rng, n, often):
    """Replicates of answers to disambiguous questions, two in five of those that decide stereotyped."""
    asked = rng.integers(4, 61, n)
    decided = rng.binomial(asked, often)
    shares = rng.beta(0.4 * (1 / ALIKE - 1), 0.6 * (1 / ALIKE - 1), n)
    given = {"n": asked, "valid": asked, "decided": decided}
    rows = cbbq_rows("disambiguous", **given, biased=rng.binomial(decided, shares))
    return cbbq.replicates_of(rows, "robust")


@pytest.mark.slow
@pytest.mark.parametrize("clusters", [12, 24, 60])
def test_models_that_decide_unequally_often_are_called_different_in_3_to_7_percent_of_studies(
    clusters,
):
    place, p = (ALL, "disambiguous", "s_disamb"), []
    for k in range(1000):
        rng = np.random.default_rng([clusters, k])
        often, seldom = (deciding(rng, clusters, share) for share in (0.9, 0.2))
        p.append(compare_resamples(often[place] - seldom[place], often.samples[place]).p)
    assert 0.03 <= np.mean(np.array(p) < 0.05) <= 0.07
