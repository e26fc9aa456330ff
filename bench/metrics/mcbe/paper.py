"""Numbers that the McBE paper prints, and what can be recomputed from them (Lan et al., Findings of ACL 2025)."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import scipy

from bench.data.published import published
from bench.metrics.correlation import correlations
from bench.metrics.mcbe import HEADLINES

# Friedman's test of its models, as printed.
FRIEDMAN, FRIEDMAN_P = "84.27", "7.26e-14"
# What its blocks could be: tasks, categories, categories and tasks (two tasks have no worldview), subcategories.
DESIGNS = {
    "tasks": 5,
    "categories without worldview": 11,
    "categories": 12,
    "category and task": 58,
    "subcategories": 82,
}
# What Table 12 prints of its scores under the original and under new prompts: coefficient and p.
TABLE_12_PRINTED = {
    ("sc", "spearman"): ("1", "0"),
    ("sc", "pearson"): ("0.999", "2.63e-10"),
    ("bs", "spearman"): ("0.967", "2.16e-5"),
    ("bs", "pearson"): ("0.999", "2.76e-11"),
}


def table_12() -> pd.DataFrame:
    """Read the scores that Table 12 prints, in the columns of `bench.metrics.robustness.Points`.

    They have no intervals, which need the answers. Scores are from 0 to 100.
    """
    printed = published("mcbe")
    printed = printed[printed.source.str.endswith("Table 12")]
    table = printed.pivot_table(
        index=["model", "category", "task", "metric"], columns="setting", values="score", sort=False
    ).reset_index()
    table = table.rename(
        columns={
            "released items, original prompts": "first",
            "released items, new prompts": "second",
        }
    )
    titles = {headline.task: headline.title for headline in HEADLINES}
    return table.assign(
        title=table.task.map(titles), higher="better", difference=table.second - table["first"]
    )


def table_12_recomputed() -> pd.DataFrame:
    """The eight printed numbers beside the same from Table 12's scores.

    They are of the nine scores of a task, all categories and models together, with p on two sides by the t
    distribution (`scipy.stats.spearmanr`, `pearsonr`).

    Returns:
        Columns `task`, `coefficient`, `n`, `value`, `printed`, `p`, `printed_p`, and `same`: whether both are printed so.
    """
    table, rows = table_12(), []
    for task, some in table.groupby("task", sort=False):
        for one in correlations(some["first"].to_numpy(), some.second.to_numpy()):
            printed = TABLE_12_PRINTED.get((str(task), one.coefficient))
            if printed:
                value, p = (
                    f"{one.value:.3f}".rstrip("0").rstrip("."),
                    "0" if one.p == 0 else f"{one.p:.2e}".replace("e-0", "e-"),
                )
                rows.append(
                    {
                        "task": task,
                        "coefficient": one.coefficient,
                        "n": one.n,
                        "value": f"{one.value:.6f}",
                        "printed": printed[0],
                        "p": f"{one.p:.5e}",
                        "printed_p": printed[1],
                        "same": "yes" if (value, p) == printed else "no",
                    }
                )
    return pd.DataFrame(rows)


def friedman_by_models(models: Sequence[int]) -> pd.DataFrame:
    """p of the printed statistic for so many models, and whether both printed numbers go together: `models`, `df`, `p`, `fits`."""
    fit = friedman_models()
    return pd.DataFrame(
        [
            {
                "models": k,
                "df": k - 1,
                "p": f"{scipy.stats.chi2.sf(float(FRIEDMAN), k - 1):.2e}",
                "fits": "yes" if k in fit else "no",
            }
            for k in models
        ]
    )


def friedman_models(statistic: str = FRIEDMAN, p: str = FRIEDMAN_P, most: int = 40) -> list[int]:
    """For how many models a statistic that is printed so can have a p that is printed so."""
    low, high = _bounds(statistic)
    least, greatest = _bounds(p)
    # p falls as the statistic rises.
    return [
        k
        for k in range(3, most + 1)
        if scipy.stats.chi2.sf(high, k - 1) < greatest and scipy.stats.chi2.sf(low, k - 1) > least
    ]


def friedman_designs(
    models: int, blocks: Mapping[str, int], statistic: str = FRIEDMAN, p: str = FRIEDMAN_P
) -> pd.DataFrame:
    """Whether tie-free ranks of so many models over so many blocks can give both printed numbers.

    Without ties, Q = 12 S / (n k (k + 1)) - 3 n (k + 1). S, the sum of the squared rank sums, is an integer, and even or odd
    as the sum of the rank sums is, which is n k (k + 1) / 2. So only some values can come; whether ranks exist for each of these is not asked.

    Args:
        blocks: how many blocks, by what they are; see `DESIGNS`.

    Returns:
        A row for each of `blocks`: `what`, `models`, `blocks`, `statistic` (the value nearest to the printed one that can come, at
        most n (k - 1)), `p`, `kendall_w`, and `fits`.
    """
    rows = []
    printed = float(statistic)
    for what, n in blocks.items():
        step = 12 / (n * models * (models + 1))
        total = n * models * (models + 1) // 2
        nearest = math.floor((printed + 3 * n * (models + 1)) / step)
        sums = np.array([s for s in range(nearest - 2, nearest + 4) if (s - total) % 2 == 0])
        values = np.minimum(step * sums - 3 * n * (models + 1), n * (models - 1))
        values = values[np.argsort(abs(values - printed), kind="stable")]
        fits = [
            value
            for value in values
            if _printed(value, statistic) and _printed(scipy.stats.chi2.sf(value, models - 1), p)
        ]
        value = float(fits[0] if fits else values[0])
        rows.append(
            {
                "what": what,
                "models": models,
                "blocks": n,
                "statistic": value,
                "p": f"{scipy.stats.chi2.sf(value, models - 1):.4e}",
                "kendall_w": value / (n * (models - 1)),
                "fits": "yes" if fits else "no",
            }
        )
    return pd.DataFrame(rows)


def _bounds(printed: str) -> tuple[float, float]:
    """Between which values lies what is printed so."""
    digits, _, power = printed.partition("e")
    half = 0.5 * 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))
    return float(printed) - half, float(printed) + half


def _printed(value: float, text: str) -> bool:
    low, high = _bounds(text)
    return low <= value <= high
