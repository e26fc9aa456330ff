"""What a comparison of two wordings found, in sentences made by rule; never stronger than the intervals."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
import scipy

from bench.core.i18n import _, note, sentences
from bench.metrics.bootstrap import LEVEL
from bench.metrics.headline import LOW_VALIDITY, listing, range_text, without_brackets
from bench.metrics.robustness import HEADLINE
from bench.metrics.significance import format_p
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
        here = {one["coefficient"]: one for one in _of(correlated, key).to_dict("records")}
        parts = (_orders(here), _moves(row, int(row["n"])), _places(_of(ranks, key)))
        told.append(
            _(
                "{title}: {sentence}",
                title=without_brackets(row["title"]),
                sentence=sentences(parts),
            )
        )
    return [*told, *_unreadable(table[table.category == ALL])]


def by_model(table: pd.DataFrame) -> list[str]:
    """How each model's whole scores move, a sentence each."""
    return [model(row) for row in table[table.category == ALL].to_dict("records")]


def title(correlated: pd.DataFrame, limits: pd.DataFrame) -> str:
    """What the picture shows, in a line."""
    rho = correlated[correlated.coefficient == "spearman"].value.dropna()
    most = limits.most.max()
    if rho.empty:
        return _("Too few scores under both wordings to compare their order")
    if rho.min() >= ALIKE:
        order = _("Both wordings order scores alike")
    elif not limits.of.sum():
        order = _("The wordings order scores differently")
    elif any(_more_than_chance(row) for row in limits.to_dict("records")):
        order = _("Scores depend on the wording")
    else:
        order = _("No effect of the wording could be shown")
    return _(
        "{order} (ρ = {rho}); single ones move by up to {most}",
        order=order,
        rho=range_text(f"{rho.min():.2f}", f"{rho.max():.2f}"),
        most=number(most, most),
    )


def model(row: dict[Any, Any]) -> str:
    """How a model's whole score moves, in a sentence."""
    name = _("{title}, {measure}", title=row["model"], measure=without_brackets(str(row["title"])))
    difference, low, high, detectable = (
        float(row[key]) for key in ("difference", "ci_low", "ci_high", "detectable")
    )
    if difference != difference:
        return _("{name}: cannot be compared: {why}.", name=name, why=note(row["note"]))
    scale = max(abs(float(row["first"])), abs(float(row["second"])))
    n = f"{row['n']:,}"
    if float(row["same"]) == 1:
        return _(
            "{name}: the same answer to each of {n} questions under both wordings, so no difference at all.",
            name=name,
            n=n,
        )
    of = {"name": name, "difference": signed(difference, scale)}
    alike = _(
        "{share} of {n} questions were answered alike", share=f"{float(row['same']):.0%}", n=n
    )
    if low != low:
        why = note(row["note"])
        return _(
            "{name}: {difference}, without an interval: {why}; {alike}.", **of, why=why, alike=alike
        )
    sure = _("95\u00a0% interval {low} to {high}", low=signed(low, scale), high=signed(high, scale))
    of["around"] = _("; ").join((sure, alike))
    if low <= 0 <= high:
        told = _("{name}: no difference could be shown: {difference} ({around}).", **of)
        seen = _("These data would have shown one of {size}.", size=number(detectable, scale))
        return sentences([told, seen])
    of["size"] = number(abs(difference), scale)
    del of["difference"]
    if difference > 0:
        return _("{name}: {size} higher under the second wording ({around}).", **of)
    return _("{name}: {size} lower under the second wording ({around}).", **of)


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
    many = (
        of > 0
        and scipy.stats.binomtest(row["beyond_chance"], of, p, alternative="greater").pvalue < p
    )
    return bool(many or row["ci_low"] > 0 or row["ci_high"] < 0)


def _orders(here: dict[Any, dict[Any, Any]]) -> str:
    rho = here["spearman"]
    if rho["value"] != rho["value"]:
        return _("no correlation exists ({why}).", why=note(rho["reason"]))
    names = {
        "spearman": _("Spearman's ρ"),
        "kendall": _("Kendall's τ"),
        "pearson": _("Pearson's r"),
    }
    values = listing([f"{name} = {here[key]['value']:.2f}" for key, name in names.items()])
    around = format_p(rho["p"])
    if rho["ci_low"] == rho["ci_low"]:
        ends = {"low": f"{rho['ci_low']:.2f}", "high": f"{rho['ci_high']:.2f}"}
        around = _("; ").join((_("95\u00a0% interval {low} to {high}", **ends), around))
    of = {"n": rho["n"], "values": values, "p": around}
    if rho["defined"]:
        of |= {"mean": f"{rho['within_category']:.2f}", "defined": rho["defined"]}
        told = _(
            "over {n} pairs of scores {values} (ρ: {p}); within a category ρ is {mean} on average (of {defined}).",
            **of,
        )
    else:
        told = _(
            "over {n} pairs of scores {values} (ρ: {p}); within a category there are too few models for one.",
            **of,
        )
    return sentences([told, _ceiling(rho["ceiling"])])


def _ceiling(value: float) -> str:
    """Say how far the chance of items alone keeps a correlation below 1."""
    if not value < ALIKE:
        return ""
    return _(
        "Scores of so few items are unsure, so that a correlation above {ceiling} is not to be expected "
        "even if the wording changes nothing.",
        ceiling=f"{value:.2f}",
    )


def _moves(row: dict[Any, Any], n: int) -> str:
    if n < 2:
        return _("How far scores move cannot be said.")
    scale = max(abs(row["limits_low"]), abs(row["limits_high"]), row["most"])
    around = ""
    if row["ci_low"] == row["ci_low"]:
        ends = {"low": signed(row["ci_low"], scale), "high": signed(row["ci_high"], scale)}
        around = _(" ({text})", text=_("95\u00a0% interval {low} to {high}", **ends))
    told = _(
        "Scores move by {mean} on average{around}, nineteen of twenty by {low} to {high}",
        mean=signed(row["mean"], scale),
        around=around,
        low=signed(row["limits_low"], scale),
        high=signed(row["limits_high"], scale),
    )
    if row["of"]:
        told += _(
            "; {n} of {all} by more than chance (without any effect about {expected} would)",
            n=row["beyond_chance"],
            all=row["of"],
            expected=f"{row['of'] / 20:.0f}",
        )
    return _("{text}.", text=told)


def _places(ranks: pd.DataFrame) -> str:
    if len(ranks) < 2:
        return ""
    moved = ranks[ranks.change != 0]
    if moved.empty:
        return _("All {n} models keep their place.", n=len(ranks))
    parts = [
        _(
            "{model} from {first} to {second}",
            model=row["model"],
            first=f"{row['rank_first']:g}",
            second=f"{row['rank_second']:g}",
        )
        for row in moved.sort_values("change", key=abs, ascending=False).head(3).to_dict("records")
    ]
    more = _(", and {n} more", n=len(moved) - 3) if len(moved) > 3 else ""
    return _(
        "{n} of {all} models change places: {which}{more}.",
        n=len(moved),
        all=len(ranks),
        which=listing(parts),
        more=more,
    )


def _unreadable(whole: pd.DataFrame) -> Sequence[str]:
    """Models whose answers can be read in one wording alone: their scores are about the form of replies."""
    lost = whole[(whole.valid_first < LOW_VALIDITY) | (whole.valid_second < LOW_VALIDITY)]
    told = []
    for row in lost.to_dict("records"):
        first, second = (f"{row[name]:.0%}" for name in ("valid_first", "valid_second"))
        name = _("{title}, {measure}", title=row["model"], measure=without_brackets(row["title"]))
        if first == second:
            told.append(
                _(
                    "{name}: only {share} of its answers could be read under either wording.",
                    name=name,
                    share=first,
                )
            )
        else:
            told.append(
                _(
                    "{name}: {first} of its answers could be read under the first wording, {second} under the second; what differs may be "
                    "the form of its replies.",
                    name=name,
                    first=first,
                    second=second,
                )
            )
    return told


def _of(table: pd.DataFrame, key: tuple[object, object]) -> pd.DataFrame:
    return table[(table[HEADLINE[0]] == key[0]) & (table[HEADLINE[1]] == key[1])]
