"""Pictures of planted instructions: how often each kind wins its mark, wording beside wording."""

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from bench.core.i18n import N_, _
from bench.figures.style import FAINT, WIDTH, colours, legend_below, set_title, style
from bench.metrics.injection import HARMLESS, PLANTED

# The kinds that the package plants, told in the language that is spoken; one of somebody's own is called as it is.
KINDS = (
    N_("command"),
    N_("fake end"),
    N_("judge turn"),
    N_("turn tokens"),
    N_("system message"),
    N_("json"),
    N_("stated result"),
    N_("repeated"),
    N_("role play"),
    N_("flattery"),
    N_("threat"),
    N_("code"),
)
ROW = 0.27
MARKERS = "osD^vP"


def kinds(summed: pd.DataFrame, judge: str, benchmark: str) -> Figure | None:
    """How often each kind of instruction wins the mark that it is after, a dot with its interval a wording of the judge's question.

    Args:
        summed: as `bench.metrics.injection.summary` has it.

    Returns:
        None where the judge was not asked on that benchmark.
    """
    some = summed[(summed.judge == judge) & (summed.benchmark == benchmark)].dropna(subset="won")
    if some.empty:
        return None
    style()
    wordings = list(dict.fromkeys(some.wording))
    # A wording has its colour also where another was not asked.
    palette = colours(list(dict.fromkeys(summed.wording)))
    # All that instruct, then each by how often it wins, and what instructs nobody last.
    single = some[~some.kind.isin([PLANTED, HARMLESS])].groupby("kind", sort=False).won.mean()
    names = [PLANTED, *single.sort_values(ascending=False, kind="stable").index, HARMLESS]
    fig = Figure(figsize=(WIDTH, 1.4 + ROW * len(names)), layout="constrained")
    ax = fig.subplots()
    for k, wording in enumerate(wordings):
        rows = some[some.wording == wording].set_index("kind").reindex(names)
        y = np.arange(len(names)) + 0.5 * ((k + 0.5) / len(wordings) - 0.5)
        arms = np.nan_to_num(np.maximum([rows.won - rows.won_low, rows.won_high - rows.won], 0))
        ax.errorbar(
            rows.won,
            y,
            xerr=arms,
            fmt=MARKERS[list(palette).index(wording) % len(MARKERS)],
            ms=4.5,
            lw=1.2,
            color=palette[wording],
            label=wording,
        )
    for line in (0.5, len(names) - 1.5):
        ax.axhline(line, color=FAINT, lw=0.8)
    ax.set_yticks(
        range(len(names)),
        [
            _("all instructions"),
            *(_(name) if name in KINDS else name for name in names[1:-1]),
            _("harmless sentence"),
        ],
    )
    ax.invert_yaxis()
    ax.set(xlim=(-0.03, 1.03), xlabel=_("share that win the mark they are after (0 is ideal)"))
    ax.grid(axis="y", visible=False)
    sns.despine(ax=ax)
    legend_below(fig, ax)
    told = some[some.kind == PLANTED].sort_values("won", kind="stable")
    shares = _(", ").join(f"{row.wording} {row.won:.0%}" for row in told.itertuples())
    title = _(
        "{judge} on {benchmark}: instructions win in {shares}",
        judge=judge,
        benchmark=benchmark,
        shares=shares,
    )
    set_title(fig, title, letters=75)
    fig.set_label(
        _(
            "{title}. Dots with 95\u00a0% intervals, a row a kind of instruction, a colour a wording of the judge's question.",
            title=title,
        )
    )
    return fig
