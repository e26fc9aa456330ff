"""What a comparison of two wordings found, in sentences made by rule; never stronger than the intervals."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
from scipy import stats

from bench.metrics.bootstrap import LEVEL
from bench.metrics.findings import LOW_VALIDITY, listing
from bench.metrics.friedman_findings import p_told
from bench.metrics.robustness import HEADLINE
from bench.metrics.table import ALL

# A rank correlation of this much lets a title say that the order stays.
ALIKE = 0.9


def findings(
    table: pd.DataFrame, correlated: pd.DataFrame, limits: pd.DataFrame, ranks: pd.DataFrame
) -> list[str]:
    """Of each headline, how the order stays and how far scores move; and whose answers could not be read.

    Args:
        table: of `bench.metrics.robustness.points`.
        correlated, limits, ranks: what its functions `correlated`, `limits` and `rank_changes` say of it.
    """
    told = []
    for row in limits.to_dict("records"):
        key = (row["task"], row["metric"])
        title, n = row["title"].partition(" (")[0], int(row["n"])
        here = {one["coefficient"]: one for one in _of(correlated, key).to_dict("records")}
        parts = (_orders(here), _moves(row, n), _places(_of(ranks, key)))
        told.append(f"{title}: {' '.join(filter(None, parts))}")
    return [*told, *_unreadable(table[table.category == ALL])]


def by_model(table: pd.DataFrame) -> list[str]:
    """How each model's whole scores move, a sentence each."""
    return [model(row) for row in table[table.category == ALL].to_dict("records")]


def title(correlated: pd.DataFrame, limits: pd.DataFrame) -> str:
    """What the picture shows, in a line."""
    rho = correlated[correlated.coefficient == "spearman"].value.dropna()
    most = limits.most.max()
    if rho.empty:
        return "Too few scores under both wordings to compare their order"
    told = (
        f"{rho.min():.2f}"
        if f"{rho.min():.2f}" == f"{rho.max():.2f}"
        else f"{rho.min():.2f} to {rho.max():.2f}"
    )
    if rho.min() >= ALIKE:
        order = "Both wordings order scores alike"
    elif not limits.of.sum():
        order = "The wordings order scores differently"
    elif any(_more_than_chance(row) for row in limits.to_dict("records")):
        order = "Scores depend on the wording"
    else:
        order = "No effect of the wording could be shown"
    return f"{order} (ρ = {told}); single ones move by up to {number(most, most)}"


def model(row: dict[Any, Any]) -> str:
    """How a model's whole score moves, in a sentence."""
    name, headline = row["model"], str(row["title"]).partition(" (")[0]
    difference, low, high, detectable = (
        float(row[key]) for key in ("difference", "ci_low", "ci_high", "detectable")
    )
    if difference != difference:
        return f"{name}, {headline}: cannot be compared: {row['note']}."
    scale = max(abs(float(row["first"])), abs(float(row["second"])))
    alike = f"{float(row['same']):.0%} of {row['n']:,} questions were answered alike"
    if float(row["same"]) == 1:
        return f"{name}, {headline}: the same answer to each of {row['n']:,} questions under both wordings, so no difference at all."
    if low != low:
        return (
            f"{name}, {headline}: {signed(difference, scale)}, without an interval: {row['note']}; {alike}."
        )
    around = f"95\u00a0% interval {signed(low, scale)} to {signed(high, scale)}; {alike}"
    if low <= 0 <= high:
        return (
            f"{name}, {headline}: no difference could be shown: {signed(difference, scale)} ({around}). "
            f"These data would have shown one of {number(detectable, scale)}."
        )
    more = "higher" if difference > 0 else "lower"
    return f"{name}, {headline}: {number(abs(difference), scale)} {more} under the second wording ({around})."


def number(value: float, scale: float) -> str:
    """A score with as many digits as its scale, shares or points, makes sensible."""
    return f"{value:.1f}" if scale > 1 else f"{value:.2f}"


def signed(value: float, scale: float) -> str:
    """The same with a sign; nought has none."""
    plain = number(abs(value), scale)
    return plain if float(plain) == 0 else f"{'+' if value > 0 else '−'}{plain}"


def _more_than_chance(row: dict[Any, Any]) -> bool:
    """Whether the mean moved, or more intervals exclude 0 than the one of twenty that would without any effect."""
    of, p = int(row["of"]), 1 - LEVEL
    many = of > 0 and stats.binomtest(row["beyond_chance"], of, p, alternative="greater").pvalue < p
    return bool(many or row["ci_low"] > 0 or row["ci_high"] < 0)


def _orders(here: dict[Any, dict[Any, Any]]) -> str:
    rho = here["spearman"]
    if rho["value"] != rho["value"]:
        return f"no correlation exists ({rho['reason']})."
    names = {"spearman": "Spearman's ρ", "kendall": "Kendall's τ", "pearson": "Pearson's r"}
    values = listing([f"{name} = {here[key]['value']:.2f}" for key, name in names.items()])
    told = f"over {rho['n']} pairs of scores {values}"
    told += f" (ρ: {p_told(rho['p'])})"
    if rho["defined"]:
        return (
            f"{told}; within a category ρ is {rho['within_category']:.2f} on average (of {rho['defined']})."
        )
    return f"{told}; within a category there are too few models for one."


def _moves(row: dict[Any, Any], n: int) -> str:
    if n < 2:
        return "How far scores move cannot be said."
    scale = max(abs(row["limits_low"]), abs(row["limits_high"]), row["most"])
    around = (
        ""
        if row["ci_low"] != row["ci_low"]
        else f" (95\u00a0% interval {signed(row['ci_low'], scale)} to {signed(row['ci_high'], scale)})"
    )
    told = (
        f"Scores move by {signed(row['mean'], scale)} on average{around}, nineteen of twenty by "
        f"{signed(row['limits_low'], scale)} to {signed(row['limits_high'], scale)}"
    )
    if row["of"]:
        told += f"; {row['beyond_chance']} of {row['of']} by more than chance (without any effect about {row['of'] / 20:.0f} would)"
    return told + "."


def _places(ranks: pd.DataFrame) -> str:
    if len(ranks) < 2:
        return ""
    moved = ranks[ranks.change != 0]
    if moved.empty:
        return f"All {len(ranks)} models keep their place."
    parts = [
        f"{row['model']} from {row['rank_first']:g} to {row['rank_second']:g}"
        for row in moved.sort_values("change", key=abs, ascending=False).head(3).to_dict("records")
    ]
    more = f", and {len(moved) - 3} more" if len(moved) > 3 else ""
    return f"{len(moved)} of {len(ranks)} models change places: {listing(parts)}{more}."


def _unreadable(whole: pd.DataFrame) -> Sequence[str]:
    """Models whose answers can be read in one wording alone: their scores are about the form of replies."""
    lost = whole[(whole.valid_first < LOW_VALIDITY) | (whole.valid_second < LOW_VALIDITY)]
    return [
        f"{row['model']}, {row['title'].partition(' (')[0]}: only {row['valid_first']:.0%} and {row['valid_second']:.0%} of its "
        "answers could be read; what differs may be the form of its replies."
        for row in lost.to_dict("records")
    ]


def _of(table: pd.DataFrame, key: tuple[object, object]) -> pd.DataFrame:
    return table[(table[HEADLINE[0]] == key[0]) & (table[HEADLINE[1]] == key[1])]
