"""Numbers that the McBE paper prints, and what can be recomputed from them (Lan et al., Findings of ACL 2025)."""

import pandas as pd

from bench.data.published import published
from bench.metrics.correlation import correlations
from bench.metrics.mcbe import HEADLINES

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
