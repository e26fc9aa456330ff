"""Simulate small studies without any effect, and count how often a difference is claimed.

    python -m tests.benchmarks.no_effect [--studies 1000]

Two models are equal in the population: 3 to 14 units (such as scenes) were sampled, in which both
answer. The package's own functions test them. Printed is a table in the form of Markdown: the share
of studies with p < 0.05, in percent, with its standard error. Next to it stands how often an
interval and p contradict each other, which is never. A thousand studies of everything take about
three minutes on one core.
"""

import argparse
import math
from functools import partial
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit

import bench
from bench.metrics.bootstrap import Totals, resample
from bench.metrics.significance import holm, slope_test
from bench.metrics.statistics import SUMS, _test

UNITS = (3, 4, 5, 6, 8, 10, 14)
MODELS = (3, 4, 6, 11)
# Standard deviation, on the logit, of what units have of their own, half of it in both models.
SPREAD = 0.7
# Points and weights for means over a normal distribution.
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def intercept(share, *effects):
    """Find the logit at which answers are stereotyped in `share` of the population."""
    spread = math.hypot(*effects)
    return float(brentq(lambda a: WEIGHTS @ expit(a + spread * NODES) - share, -40, 40))


def shares(rng, shape, side, common, *, share, effect=0.0, sizes=(1, 1)):
    """Draw answers of 0 and 1, from `sizes[0]` to `sizes[1]` in a unit; the truth is a share."""
    truth = share + effect * (side == 0)
    answers = np.random.default_rng(shape).integers(sizes[0], sizes[1] + 1, shape)
    spread = SPREAD if sizes[1] > 1 else 1e-6
    own = math.sqrt(0.5) * (common + rng.normal(size=shape))
    return rng.binomial(answers, expit(intercept(truth, spread) + spread * own)), answers, truth


def normal(rng, shape, side, common, *, effect=0.0):
    truth = effect * (side == 0)
    return truth + common + rng.normal(size=shape), np.ones(shape), truth


def points(rng, shape, side, common, *, effect=0.0):
    """Draw points from 0 to 100, most of them high; `effect` is on the logit."""
    at = 1.5 + effect * (side == 0)
    truth = 100 * WEIGHTS @ expit(at + math.sqrt(2) * NODES)
    return 100 * expit(at + common + rng.normal(size=shape)), np.ones(shape), truth


def ratings(rng, shape, side, common):
    """Draw whole numbers from 1 to 5."""
    return rng.integers(1, 6, shape), np.ones(shape), 3.0


def seconds(rng, shape, side, common, *, effect=0.0):
    truth = 1 + effect * (side == 0)
    return truth * rng.exponential(size=shape), np.ones(shape), truth


KINDS = {
    "1 answer, share .5": partial(shares, share=0.5),
    "1 answer, share .3": partial(shares, share=0.3),
    "1 answer, share .02": partial(shares, share=0.02),
    "2 answers, share .5": partial(shares, share=0.5, sizes=(2, 2)),
    "8 answers, share .3": partial(shares, share=0.3, sizes=(8, 8)),
    "8 answers, share .02": partial(shares, share=0.02, sizes=(8, 8)),
    "16 answers, share .3": partial(shares, share=0.3, sizes=(16, 16)),
    "1 to 40 answers, share .3": partial(shares, share=0.3, sizes=(1, 40)),
    "1 to 40 answers, share .03": partial(shares, share=0.03, sizes=(1, 40)),
    "normal numbers": normal,
    "points 0 to 100": points,
    "ratings 1 to 5": ratings,
    "seconds, exponential": seconds,
}
# Lengths of scales other than that of a share.
LENGTHS = dict.fromkeys(("normal numbers", "ratings 1 to 5", "seconds, exponential"), math.inf)
LENGTHS["points 0 to 100"] = 100.0


def draw(kind, studies, units, models=2):
    """Draw studies: for each model the sums and answers [studies, units], and the true value."""
    shape = studies, units
    rng = np.random.default_rng([7, studies, units])
    common = rng.normal(size=shape)
    return [kind(rng, shape, side, common) for side in range(models)]


def compared(first, second, length=math.inf):
    """Compare two models in all studies at once, each as `bench.compare` does it."""
    sums = np.stack([*first[:2], *second[:2]], axis=-1).swapaxes(0, 1)  # [units, studies, sums]
    columns = [str(k) for k in range(4 * sums.shape[1])]
    rows = pd.DataFrame(sums.reshape(len(sums), -1), columns=columns)
    totals = resample(rows.assign(all="all", unit=rows.index), "all", "unit", columns)
    tests = []
    for at in range(0, len(columns), 4):
        of_study = slice(at, at + 4)
        clusters = totals.clusters._replace(sums=totals.clusters.sums[:, of_study])
        both = (totals.observed[..., of_study], totals.resamples[..., of_study])
        tests.append(_test(Totals(totals.strata, SUMS, *both, clusters), length)[0])
    return pd.DataFrame(tests)


def check_first(first, second, tests, length):
    """Check that the first study has the numbers of `bench.compare`."""
    sides = [
        pd.DataFrame({"model": name, "item_id": range(len(side[0][0])), "top": side[0][0]})
        for name, side in (("a", first), ("b", second))
    ]
    rows = pd.concat(sides).assign(of=np.concatenate([first[1][0], second[1][0]]))
    limits = None if math.isinf(length) else (0, length)
    table = bench.compare(rows, "top", "of", cluster="item_id", stratum=None, limits=limits)
    names = ["ci_low", "ci_high", "p", "detectable"]
    np.testing.assert_allclose(table.loc[0, names].astype(float), tests.loc[0, names].astype(float))


def with_error(held):
    """Write a share in percent with its standard error, which is not 0 for a share of 0."""
    n, share = len(held), float(np.mean(held))
    error = max(math.sqrt(share * (1 - share) / n), math.sqrt(0.5 * n) / (n + 1) / math.sqrt(n))
    return f"{100 * share:.1f} ± {100 * error:.1f}"


def print_row(name, cells):
    print(f"| {' | '.join([name, *map(str, cells)])} |", flush=True)


def print_head(name, columns):
    print_row(name, columns)
    print(f"|---|{'---:|' * len(columns)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--studies", type=int, default=1000, help="of each kind (default 1000)")
    studies = parser.parse_args().studies
    print_head("two models, units:", [*UNITS, "contradictions"])
    for name, kind in KINDS.items():
        length, tables = LENGTHS.get(name, 1.0), []
        for units in UNITS:
            sides = draw(kind, studies, units)
            tables.append(compared(*sides, length))
            check_first(*sides, tables[-1], length)
        every = pd.concat(tables).dropna(subset=["p", "ci_low"])
        holds_0 = (every.ci_low <= 0) & (every.ci_high >= 0)
        claims = [with_error(table.p < 0.05) for table in tables]
        print_row(name, [*claims, int((holds_0 != (every.p >= 0.05)).sum())])
    print()
    print_head("any pair of three models, adjusted, units:", UNITS)
    for name in ("2 answers, share .5", "8 answers, share .3", "normal numbers"):
        claims = []
        for units in UNITS:
            pairs = combinations(draw(KINDS[name], studies, units, 3), 2)
            p = [compared(*pair, LENGTHS.get(name, 1.0)).p for pair in pairs]
            claims.append([holm(of_study).min() < 0.05 for of_study in np.transpose(p)])
        print_row(name, map(with_error, claims))
    print()
    print_head("a trend over models:", MODELS)
    rng, claims = np.random.default_rng(8), []
    for models in MODELS:
        scores = 0.4 + 0.03 * rng.normal(size=(studies, models))
        claims.append([slope_test(range(models), own).p < 0.05 for own in scores])
    print_row("scores that differ by luck", map(with_error, claims))


if __name__ == "__main__":
    main()
