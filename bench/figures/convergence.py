"""A picture of a multitrait matrix: do measures of one trait order models alike."""

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from bench.core.i18n import _
from bench.figures.style import FAINT, INK, WIDTH, set_title, style
from bench.metrics.convergence import CONVERGENT, DISCRIMINANT

# Not that of bias: neither end is the worse one.
PALETTE = "PuOr"


def matrix(pairs: pd.DataFrame, reliability: pd.DataFrame) -> Figure | None:
    """Draw correlations of measures below the diagonal, and their reliability on it.

    Args:
        pairs: of `bench.metrics.convergence.correlated`.
        reliability: of `bench.metrics.convergence.reliabilities`.

    Returns:
        None where no two measures have enough models.
    """
    if pairs.rho.isna().all():
        return None
    style()
    names = list(reliability.measure)
    at = {name: k for k, name in enumerate(names)}
    values = np.full((len(names), len(names)), np.nan)
    texts = np.full(values.shape, "", dtype=object)
    for row in pairs.to_dict("records"):
        below, left = at[row["second"]], at[row["first"]]
        values[below, left] = row["rho"]
        known = row["rho"] == row["rho"]
        n = _("n = {n}", n=row["n"])
        texts[below, left] = f"{row['rho']:z.2f}\n{n}" if known else n
    size = 0.75 * len(names)
    fig = Figure(figsize=(min(WIDTH, 1.9 + size), 1.7 + size * 0.8), layout="constrained")
    ax = fig.subplots()
    sns.heatmap(
        values,
        ax=ax,
        annot=texts,
        fmt="",
        cmap=PALETTE,
        vmin=-1,
        vmax=1,
        linewidths=1,
        annot_kws={"fontsize": "x-small"},
        cbar_kws={"label": _("Spearman's ρ"), "shrink": 0.7},
    )
    for k, value in enumerate(reliability.reliability):
        shown = f"({value:.2f})" if value == value else "(–)"
        ax.text(k + 0.5, k + 0.5, shown, ha="center", va="center", fontsize="x-small", color=INK)
    traits = list(reliability.trait)
    for k in range(1, len(names)):
        if traits[k] != traits[k - 1]:
            ax.axhline(k, color=FAINT, lw=1)
            ax.axvline(k, color=FAINT, lw=1)
    rows = [
        _("{name} ({trait})", name=name, trait=_(trait))
        for name, trait in zip(names, traits, strict=True)
    ]
    ax.set_xticks(np.arange(len(names)) + 0.5, names, rotation=40, ha="right", fontsize="small")
    ax.set_yticks(np.arange(len(names)) + 0.5, rows, rotation=0, fontsize="small")
    ax.grid(visible=False)
    told = _title(pairs)
    set_title(fig, told, wrap=True)
    listed = _("; ").join(
        _(
            "{first} and {second}: ρ = {rho}",
            first=row["first"],
            second=row["second"],
            rho=f"{row['rho']:z.2f}",
        )
        for row in pairs[pairs.rho.notna()].to_dict("records")
    )
    said = _("{text}.", text=listed)
    fig.set_label(_("{title}. {said}", title=told, said=said))
    return fig


def _title(pairs: pd.DataFrame) -> str:
    """What the picture shows, in a line."""
    means = pairs.groupby("kind").rho.mean()
    same, apart = means.get(CONVERGENT, np.nan), means.get(DISCRIMINANT, np.nan)
    if np.isnan(same) or np.isnan(apart):
        return _("How measures order models alike (reliability on the diagonal)")
    of = {"same": f"{same:z.2f}", "apart": f"{apart:z.2f}"}
    if same > apart:
        return _(
            "Measures of one trait go together more (mean ρ {same}) than those of two ({apart})",
            **of,
        )
    return _(
        "Measures of one trait go together no more (mean ρ {same}) than those of two ({apart})",
        **of,
    )
