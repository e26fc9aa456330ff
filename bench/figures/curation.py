"""Pictures of curated items: how severe people find each, and how far they agree."""

import math

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from bench.core.i18n import _
from bench.curate.mcbe_findings import OF
from bench.figures.style import FAINT, INK, WIDTH, colours, legend_below, set_title, style
from bench.metrics.agreement import LEVELS
from bench.metrics.headline import range_text

# Characters of a name.
LONGEST = 24
# Rows of one picture; of more items those whose severities lie farthest apart.
MANY = 40


def severities(
    ratings: pd.DataFrame, outcome: pd.DataFrame, again: pd.DataFrame | None
) -> Figure | None:
    """How severe people find each item: a dot a rating, a bar their mean; orange where they lie too far apart.

    Args:
        ratings: `item_id`, `rater`, `rating` of the first round.
        outcome: `bench.curate.mcbe_rules.severities` of it.
        again: the same of the second round, None where there was none.

    Returns:
        None where there are no ratings.
    """
    if ratings.empty:
        return None
    style()
    first, wide, second = _palette()
    shown = outcome.nlargest(MANY, "spread") if len(outcome) > MANY else outcome
    shown = shown.sort_values("mean", kind="stable").reset_index(drop=True)
    fig = Figure(figsize=(WIDTH, 1.3 + 0.27 * len(shown)), layout="constrained")
    ax = fig.subplots()
    later = {} if again is None else dict(zip(again.item_id, again["mean"], strict=True))
    names: set[str] = set()

    def once(name: str) -> str | None:
        """A name for the legend, the first time."""
        known = name in names
        names.add(name)
        return None if known else name

    for y, row in enumerate(shown.to_dict("records")):
        given = ratings[ratings.item_id == row["item_id"]].rating.astype(float).sort_values()
        # Equal ratings beside one another.
        up = given.groupby(given).cumcount() * 0.14
        too_far = bool(row["again"])
        ax.plot(
            [row["lowest"], row["highest"]],
            [y, y],
            color=wide if too_far else FAINT,
            lw=1.2,
            zorder=1,
        )
        ax.plot(
            given,
            y + up,
            "o",
            ms=4,
            color=wide if too_far else first,
            alpha=0.8,
            zorder=2,
            label=once(_("a rating, more than 3.5 apart") if too_far else _("a rating")),
        )
        ax.plot(
            [row["mean"]] * 2, [y - 0.3, y + 0.3], color=INK, lw=2, zorder=3, label=once(_("mean"))
        )
        if row["item_id"] in later:
            ax.plot(
                later[row["item_id"]],
                y,
                "D",
                ms=6,
                mfc="white",
                mec=second,
                mew=1.6,
                zorder=4,
                label=once(_("mean of the second round")),
            )
    for level in LEVELS[1:]:
        ax.axvline(level, color="#dddddd", lw=1, zorder=0)
    ax.set_yticks(range(len(shown)), [_short(name) for name in shown.item_id])
    ax.tick_params(axis="y", labelsize="small")
    ax.set(xlim=(-0.2, 10.2), ylim=(-0.6, len(shown) - 0.3))
    ax.set_xlabel(_("severity, 0 to 10 (more severe →; lines: the five levels)"), fontsize="small")
    ax.grid(visible=False)
    sns.despine(ax=ax, left=True)
    legend_below(fig, ax)
    n = int(outcome.again.sum())
    title = _("Severities of {n} of {all} items lie more than 3.5 apart", n=n, all=len(outcome))
    if len(shown) < len(outcome):
        title = _("{title}; drawn: the {n} farthest apart", title=title, n=len(shown))
    set_title(fig, title)
    means = _("; ").join(f"{row['item_id']} {row['mean']:.1f}" for row in shown.to_dict("records"))
    fig.set_label(
        _(
            "{title}. Ratings of {raters} people by item, with their means: {means}.",
            title=title,
            raters=ratings.rater.nunique(),
            means=means,
        )
    )
    return fig


def agreement(found: pd.DataFrame) -> Figure | None:
    """How far annotators agree: a dot with its interval for each measure and what it is of; none where there is nothing.

    Args:
        found: `bench.curate.mcbe_findings.agreement`.
    """
    if found.empty:
        return None
    style()
    fig = Figure(figsize=(WIDTH, 1.2 + 0.34 * len(found)), layout="constrained")
    ax = fig.subplots()
    names = [
        _("{what}: {measure}", what=_(OF[row["of"]]), measure=_(row["measure"]))
        for row in found.to_dict("records")
    ]
    if len(set(found.category)) > 1:
        names = [
            f"{_short(category)}, {name}"
            for category, name in zip(found.category, names, strict=True)
        ]
    colour = _palette()[0]
    for y, row in enumerate(found.to_dict("records")):
        if math.isnan(row["value"]):
            ax.text(0.5, y, _("undefined"), color=FAINT, va="center", ha="center", fontsize="small")
            continue
        if not math.isnan(row["ci_low"]):
            ax.plot(
                [row["ci_low"], row["ci_high"]],
                [y, y],
                color=colour,
                lw=2.5,
                alpha=0.6,
                solid_capstyle="round",
            )
        ax.plot(row["value"], y, "o", ms=5.5, color=colour, zorder=3)
    ax.axvline(0, color=INK, ls="--", lw=1, zorder=1)
    low = float(np.nanmin([0.0, found.ci_low.min(), found.value.min()]))
    ax.set(xlim=(low - 0.04, 1.04), ylim=(len(found) - 0.4, -0.6))
    ax.set_yticks(range(len(found)), names)
    ax.tick_params(axis="y", labelsize="small")
    ax.set_xlabel(_("agreement (more →; dashed: chance)"), fontsize="small")
    sns.despine(ax=ax, left=True)
    defined = found[found.value.notna()]
    ends = range_text(f"{defined.value.min():.2f}", f"{defined.value.max():.2f}")
    title = (
        _("Agreement is {ends}; chance gives 0", ends=ends)
        if len(defined)
        else _("No agreement is defined")
    )
    set_title(fig, title)
    parts = _("; ").join(
        f"{name} {value:.2f}" for name, value in zip(names, found.value, strict=True)
    )
    fig.set_label(_("{title}. With 95 % intervals: {parts}.", title=title, parts=parts))
    return fig


def _short(name: str) -> str:
    """A long name without its middle: what tells names apart mostly stands at the end."""
    return (
        name
        if len(name) <= LONGEST
        else f"{name[: LONGEST // 3]}…{name[-(LONGEST * 2 // 3) + 1 :]}"
    )


def _palette() -> list[tuple[float, float, float]]:
    """Colours of the first round, of what lies too far apart, and of the second round."""
    return list(colours(["first", "wide", "second"]).values())
