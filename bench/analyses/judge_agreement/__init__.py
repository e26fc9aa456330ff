"""Compare judges with people, mark by mark, and with a judge that always gives the same mark.

    marks = analyses(runs, "people.csv")     # McBE's bias analyses, by judge and people
    marks = severities(runs)                 # McBE's bias scores, by model and people
    marks = verdicts(runs, "marked.csv")     # CBBQ's explanations: biased or not
    findings(by_category(marks), POINTS, "analyses")

A verdict is 1 or 0, so that a distance is a share of disagreement. The baseline is a judge that
always gives the same mark: one that is not nearer to people than that is of no use.
"""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bench.analyses.judge_agreement.marks import (
    analyses,
    judged,
    notes,
    points,
    severities,
    verdicts,
)
from bench.core.numbers import decimals
from bench.core.text import sentences
from bench.metrics.agreement import TIES, cohen_kappa, severity_level, winner_consistency
from bench.metrics.bootstrap import LEVEL, estimate, resample
from bench.metrics.headline import percent
from bench.metrics.significance import difference, format_p, holm
from bench.metrics.table import ALL

__all__ = ["analyses", "judged", "notes", "points", "severities", "verdicts"]

_ROUNDING = 1e-9
NO_WINNER = "no comparison in which both name a winner"


class Scale(NamedTuple):
    """A scale of marks: its name on an axis, its ends, and digits; `share` if a distance is one."""

    name: str
    low: float
    high: float
    digits: int = 1
    share: bool = False

    def text(self, distance: float) -> str:
        """Return a distance in words."""
        if self.share:
            return percent(distance)
        return f"{decimals(distance, self.digits)} points"


POINTS = Scale("points for an analysis, 0 to 100", 0, 100)
SEVERITY = Scale("severity, 0 to 10", 0, 10, 2)
VERDICT = Scale("verdict, 1: biased", 0, 1, 2, share=True)


def summary(marks: pd.DataFrame) -> pd.DataFrame:
    """Summarize how each judge's marks differ from people's, and how they go together.

    Returns:
        `by`, `n` (marks), `items`, `difference` with `ci_low` and `ci_high`, `limit_low` and
        `limit_high` (of agreement), `same` (share of equal marks), `pearson` with its interval,
        `note`. Intervals are by bootstrap over clusters.
    """
    rows = []
    for by, part in marks.groupby("by", sort=False):
        x, y = part.judge.to_numpy(float), part.human.to_numpy(float)
        sums = {"n": np.ones(len(x)), "x": x, "y": y, "xx": x * x, "yy": y * y, "xy": x * y}
        frame = pd.DataFrame({"stratum": ALL, "cluster": part.cluster.to_numpy(), **sums})
        totals = resample(frame, "stratum", "cluster", list(sums))
        mean = estimate(totals, lambda s: (s[:, 0, 1] - s[:, 0, 2]) / s[:, 0, 0])
        r = estimate(totals, _pearson)
        spread = 1.96 * float(np.std(x - y, ddof=1)) if len(x) > 1 else np.nan
        constant = "no r: one of the two always gives the same mark"
        rows.append(
            {
                "by": by,
                "n": len(part),
                "items": part.item_id.nunique(),
                "difference": mean.value,
                "ci_low": mean.low,
                "ci_high": mean.high,
                "limit_low": mean.value - spread,
                "limit_high": mean.value + spread,
                "same": float(np.mean(np.abs(x - y) < _ROUNDING)),
                "pearson": r.value,
                "pearson_low": r.low,
                "pearson_high": r.high,
                "note": constant if np.isnan(r.value) else "",
            }
        )
    return pd.DataFrame(rows)


def _pearson(sums: np.ndarray) -> np.ndarray:
    x, y, xx, yy, xy = (sums[:, 0, k] / sums[:, 0, 0] for k in range(1, 6))
    spread = (xx - x * x) * (yy - y * y)
    # The spread of a constant is zero but for rounding.
    return np.asarray((xy - x * y) / np.sqrt(np.where(spread > _ROUNDING, spread, np.nan)))


def by_category(marks: pd.DataFrame) -> pd.DataFrame:
    """Compute the distance from people in each category, and that of a constant judge.

    The constant mark is people's median, so it is at its best: it was chosen after their marks were
    known.

    Returns:
        `by`, `category` (`all` first), `n`, `items`, `distance`, `ci_low`, `ci_high`, `constant`
        (its distance), `constant_mark`, `nearer` (the constant's distance less the judge's) with
        `nearer_low` and `nearer_high`, `p` (paired over clusters; of the categories adjusted by
        Holm), `detectable`, `note`.
    """
    tables = []
    for by, own in marks.groupby("by", sort=False):
        rows: list[dict[str, Any]] = []
        for category, part in [(ALL, own), *own.groupby("category", sort=False)]:
            # Of an even number the lower of the two in the middle, which people gave.
            mark = float(np.quantile(part.human, 0.5, method="lower"))
            judge, constant = (part.judge - part.human).abs(), (mark - part.human).abs()
            sums = part[["cluster"]].assign(stratum=str(category), n=1.0, distance=judge)
            totals = resample(sums, "stratum", "cluster", ["n", "distance"])
            distance = estimate(totals, lambda s: s[:, 0, 1] / s[:, 0, 0])
            nearer = difference(constant.to_numpy(), judge.to_numpy(), list(part.cluster))
            rows.append(
                {
                    "by": by,
                    "category": str(category),
                    "n": len(part),
                    "items": part.item_id.nunique(),
                    "distance": distance.value,
                    "ci_low": distance.low,
                    "ci_high": distance.high,
                    "constant": float(constant.mean()),
                    "constant_mark": mark,
                    "nearer": nearer.difference,
                    "nearer_low": nearer.ci_low,
                    "nearer_high": nearer.ci_high,
                    "p": nearer.p,
                    "detectable": nearer.detectable,
                    "note": nearer.note,
                }
            )
        table = pd.DataFrame(rows)
        table.loc[1:, "p"] = holm(table.p[1:].to_numpy())
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def kappas(marks: pd.DataFrame, *, levels: bool = False) -> pd.DataFrame:
    """Compute Cohen's kappa of each judge: `by`, `kappa`, `ci_low`, `ci_high`, `n`, `note`.

    Intervals are by bootstrap over clusters, because marks of one model or item are not
    independent.

    Args:
        levels: compare McBE's five levels of severity, weighed by the square of their distance
            (Cohen, 1968); else each mark is a category.

    Raises:
        BadInput: a mark is no severity.
    """
    rows = []
    for by, part in marks.groupby("by", sort=False):
        judge, human = (
            list(severity_level(part[name]) if levels else part[name])
            for name in ("judge", "human")
        )
        kappa = cohen_kappa(judge, human, "quadratic" if levels else None, list(part.cluster))
        undefined = "all marks are of one category, so chance agrees as perfectly"
        reason = undefined if np.isnan(kappa.kappa) else ""
        rows.append((by, kappa.kappa, kappa.ci_low, kappa.ci_high, kappa.n, reason))
    return pd.DataFrame(rows, columns=["by", "kappa", "ci_low", "ci_high", "n", "note"])


def winners(marks: pd.DataFrame, *, by_pair: bool = False) -> pd.DataFrame:
    """Compute how often judge and people name the same better one of two models.

    Args:
        by_pair: for each pair of models by itself (McBE's Table 13).

    Returns:
        `by`, `ties_count` (the rule, see `bench.metrics.agreement.winner_consistency`), `rate`,
        `ci_low`, `ci_high`, `n` (comparisons that count), `tied` (share without a winner), `note`;
        and by pair `model_a`, `model_b`, `items`, `judge_difference` and `human_difference`
        (model_a's mean less model_b's), `same_winner` (whether both means name the same).

    Raises:
        BadInput: no item has marks of two models.
    """
    parts = [
        winner_consistency(part, rule, by_pair=by_pair).assign(by=by, ties_count=rule)
        for by, part in marks.groupby("by", sort=False)
        for rule in TIES
    ]
    names = {f"{who}_mean_difference": f"{who}_difference" for who in ("judge", "human")}
    table = pd.concat(parts, ignore_index=True).rename(columns={"ties": "tied", **names})
    models, means = (["model_a", "model_b"], ["items", *names.values(), "same_winner"])
    columns = ["by", "ties_count", *(models if by_pair else []), "rate", "ci_low", "ci_high", "n"]
    columns += ["tied", *(means if by_pair else [])]
    return table[columns].assign(note=np.where(table.n > 0, "", NO_WINNER))


def winner_findings(compared: pd.DataFrame) -> list[str]:
    """Say of each judge how often it names the same better one of two models as people do."""
    return [
        (
            f"{row['by']} and people name the same better one of two models in "
            f"{percent(row['rate'])} of the comparisons without a tie (95\u00a0% interval "
            f"{percent(row['ci_low'])} to {percent(row['ci_high'])}; n = {row['n']:,}; "
            f"{percent(row['tied'])} are ties)."
        )
        for row in compared[(compared.ties_count == "exclude") & (compared.n > 0)].to_dict(
            "records"
        )
    ]


def self_consistency(points: pd.DataFrame) -> pd.DataFrame:
    """Compute how far each person's second mark is from the first, of rows that are there twice.

    Args:
        points: `item_id`, `model`, `person`, `second` and `human`, NaN where a row is not marked.

    Returns:
        `person`, `rows`, `marked`, `n` (rows marked twice), `distance` (mean |first - second|),
        `difference` (mean first - second), `same` (share that is the same), `note`.
    """
    rows = []
    for person, own in points.groupby("person", sort=False):
        keyed = own.set_index(["item_id", "model"])
        apart = (keyed.human[~keyed.second] - keyed.human[keyed.second]).dropna()
        rows.append(
            {
                "person": person,
                "rows": len(own),
                "marked": int(own.human.notna().sum()),
                "n": len(apart),
                "distance": apart.abs().mean(),
                "difference": apart.mean(),
                "same": (apart.abs() < _ROUNDING).mean(),
                "note": "" if len(apart) else "no row was marked twice",
            }
        )
    return pd.DataFrame(rows)


def differing(marks: pd.DataFrame, n: int) -> pd.DataFrame:
    """Return the `n` marks on which judge and people differ most, for `bench.show.parted`.

    Returns:
        `heading`, and the texts that were marked.
    """
    far = marks.assign(apart=(marks.judge - marks.human).abs())
    far = far[far.apart > _ROUNDING].sort_values("apart", ascending=False, kind="stable").head(n)
    headings = [
        (
            f"{row['item_id']}, {row['model']}: {row['by']} {decimals(row['judge'])}, people "
            f"{decimals(row['human'])}"
        )
        for row in far.to_dict("records")
    ]
    texts = {"said": "What was marked", "reference": "The reference"}
    shown = {name: far[column] for column, name in texts.items() if column in far}
    return pd.DataFrame({"heading": pd.Series(headings, far.index, dtype=object), **shown})


def above(by: str, what: str) -> str:
    """Return the line above the marks on which a judge and people differ most."""
    return f"{by} and people differ most on these {what}:"


def title(compared: pd.DataFrame, by: str) -> str:
    """Say whether a judge is nearer to people than a constant mark, over all categories."""
    row = compared[(compared.by == by) & (compared.category == ALL)].iloc[0]
    if not row.p < 1 - LEVEL:
        return f"{by} could not be told from a constant mark"
    if row.nearer > 0:
        return f"{by} is nearer to people than a constant mark"
    return f"{by} is farther from people than a constant mark"


def _verdict(row: Any) -> str:
    if not row.p < 1 - LEVEL:
        return "they could not be told apart"
    return "it is nearer to people" if row.nearer > 0 else "it is farther from people"


def findings(
    compared: pd.DataFrame, scale: Scale, what: str, *, simulated: bool = False
) -> list[str]:
    """Say how far the nearest judge is from people, and how many are nearer than a constant mark.

    Args:
        compared: as `by_category` returns it.
        what: what is marked, such as "analyses".
        simulated: people are simulated.
    """
    rows = compared[compared.category == ALL].sort_values("distance", kind="stable")
    if rows.empty:
        return []
    row = rows.iloc[0]
    low, high = scale.text(row.ci_low), scale.text(row.ci_high)
    evidence = [
        f"95\u00a0% interval {low} to {high}",
        f"n = {row.n:,}",
        row.note if np.isnan(row.p) else format_p(row.p),
    ]
    text = (
        f"{row.by} marks {what} {scale.text(row.distance)} from "
        f"{'simulated people' if simulated else 'people'} on average, a constant mark "
        f"{scale.text(row.constant)} ({'; '.join(evidence)}): {_verdict(row)}."
    )
    others = ""
    if len(rows) > 1:
        nearer = int(((rows.p < 1 - LEVEL) & (rows.nearer > 0)).sum())
        others = (
            f"{nearer} of {len(rows)} are nearer than a constant mark; the farthest is "
            f"{scale.text(rows.distance.iloc[-1])} from people."
        )
    return [sentences([text, others])]
