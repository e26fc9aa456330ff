"""Pictures of what measures react to: against the known bias, a panel a nuisance; and every measure's confusions."""

from collections.abc import Sequence

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bench.benchmarks import module
from bench.core.i18n import _, language
from bench.figures.style import FAINT, INK, WIDTH, colours, set_title, style
from bench.metrics.confusion import NOISE, curves, summary
from bench.metrics.confusion import confusion as confusions
from bench.metrics.confusion_findings import NUISANCES, as_title, named
from bench.metrics.headline import listing

MARKS = "osD"


def against_bias(
    found: pd.DataFrame, benchmark: str, measures: Sequence[tuple[str, str]] = ()
) -> Figure | None:
    """Each measure against the known bias: a row a measure, a panel a nuisance, a line a level, the band its seeds.

    Dashed: a measure that sees the bias and nothing else, straight from what it says of no bias to what it says of full bias.

    Args:
        found: results of `bench.analyses.meta_respondents.evaluate`.
        measures: task and metric of those in the picture; the headlines that react to the bias, and these.

    Returns:
        None where no measure reacts to the bias.
    """
    style()
    headlines = [(one.task, one.metric) for one in module("metrics", benchmark).HEADLINES]
    wanted = list(dict.fromkeys([*headlines, *measures]))
    some = found[found.benchmark == benchmark]
    some = some[pd.MultiIndex.from_frame(some[["task", "metric"]]).isin(wanted)]
    if some.empty:
        return None
    table = summary(some)
    reacting = table[table.note == ""]
    react = set(zip(reacting.task.astype(str), reacting.metric.astype(str), strict=True))
    shown = [measure for measure in wanted if measure in react]
    if not shown:
        return None
    lines, confused = curves(some), confusions(some)
    nuisances, levels = list(dict.fromkeys(lines.nuisance)), sorted(set(lines.level))
    shades = dict(zip(levels, [INK, *sns.color_palette("flare", len(levels) - 1)], strict=True))
    fig = Figure(figsize=(WIDTH, 0.95 + 1.55 * len(shown)), layout="constrained")
    grid = fig.subplots(len(shown), len(nuisances), sharex=True, sharey="row", squeeze=False)
    said = []
    for row, (task, metric) in zip(grid, shown, strict=True):
        of_measure = lines[(lines.task == task) & (lines.metric == metric)]
        numbers = confused[(confused.task == task) & (confused.metric == metric)]
        shares = dict(zip(numbers.nuisance, numbers.confusion, strict=True))
        for ax, nuisance in zip(row, nuisances, strict=True):
            here = of_measure[of_measure.nuisance == nuisance]
            for level in levels:
                part = here[here.level == level].sort_values("bias")
                ax.fill_between(
                    part.bias, part.low, part.high, color=shades[level], alpha=0.2, lw=0
                )
                ax.plot(part.bias, part.score, color=shades[level], marker="o", ms=3, lw=1.3)
            ends = here[here.level == 0].sort_values("bias").iloc[[0, -1]]
            ax.plot(ends.bias, ends.score, color=FAINT, ls="--", lw=1.2, zorder=5)
            ax.annotate(
                _("moved by {share}", share=_share(shares[nuisance])),
                (0, 1),
                xycoords="axes fraction",
                xytext=(0, 3),
                textcoords="offset points",
                fontsize="x-small",
                color=FAINT,
            )
            ax.tick_params(labelsize="x-small")
            sns.despine(ax=ax)
        up = bool(ends.score.iloc[1] > ends.score.iloc[0])
        more = _("more bias")
        row[0].set_ylabel(
            f"{named(task, metric)}\n{f'{more} →' if up else f'← {more}'}", fontsize="x-small"
        )
        moves = listing([f"{_nuisance(name)} {_share(shares[name])}" for name in nuisances])
        said.append(_("{title}: {sentence}", title=named(task, metric), sentence=moves))
    for ax, nuisance in zip(grid[0], nuisances, strict=True):
        ax.set_title(_(NUISANCES[nuisance]), fontsize="small", pad=16)
    for ax in grid[-1]:
        ax.set_xlabel(_("bias put in"), fontsize="x-small")
    handles = [
        Line2D(
            [],
            [],
            color=shades[level],
            marker="o",
            ms=3,
            lw=1.3,
            label=_("rate {level}", level=f"{level:g}") if level else _("without it"),
        )
        for level in levels
    ]
    handles.append(Line2D([], [], color=FAINT, ls="--", lw=1.2, label=_("sees the bias alone")))
    fig.legend(
        handles=handles,
        loc="outside lower center",
        ncols=len(handles),
        frameon=False,
        fontsize="x-small",
    )
    title = _(
        "{title}. {said}", title=module("data", benchmark).TITLE, said=as_title(confused, shown)
    )
    set_title(fig, title, "small")
    fig.set_label(
        _(
            "{title}. Measures against the known bias; how far each nuisance moves them, as a share of the range: {said}.",
            title=title,
            said=_("; ").join(said),
        )
    )
    return fig


def overview(found: pd.DataFrame, measures: Sequence[tuple[str, str, str]] = ()) -> Figure:
    """How far each nuisance moves each headline measure at a fixed bias, as a share of its range; least confused on top.

    Bars are from the lowest to the highest seed. The line is where a nuisance moves it as far as the whole range of bias.

    Args:
        measures: benchmark, task and metric of more than the headlines.
    """
    style()
    long = confusions(found)
    wanted = [
        row.headline or (row.benchmark, row.task, row.metric) in measures
        for row in long.itertuples()
    ]
    long = long[pd.Series(wanted, index=long.index) & long.confusion.notna()]
    keys = ["benchmark", "task", "metric"]
    worst = long.groupby(keys, sort=False).confusion.max().sort_values(kind="stable")
    nuisances = list(dict.fromkeys(long.nuisance))
    palette = colours(nuisances)
    fig = Figure(figsize=(WIDTH, 1.2 + 0.3 * len(worst)), layout="constrained")
    ax = fig.subplots()
    gap = 0.22
    for y, place in enumerate(worst.index):
        some = long[(long[keys] == list(place)).all(axis=1)]
        for k, row in enumerate(some.to_dict("records")):
            at = y + gap * (k - (len(some) - 1) / 2)
            colour, mark = palette[row["nuisance"]], MARKS[nuisances.index(row["nuisance"])]
            ax.plot([row["low"], row["high"]], [at, at], color=colour, lw=2.5, alpha=0.5)
            ax.plot(row["confusion"], at, mark, ms=5, color=colour)
    names = [
        _("{title}, {measure}", title=module("data", benchmark).TITLE, measure=named(task, metric))
        for benchmark, task, metric in worst.index
    ]
    ax.set_yticks(range(len(worst)), names)
    ax.set_ylim(len(worst) - 0.5, -0.5)
    ax.axvline(1, color=FAINT, ls="--", lw=1, zorder=0)
    ax.set_xlim(-0.03, max(1.08, 1.05 * long.high.max()))
    ax.set_xlabel(
        _("moved at a fixed bias, as a share of the range over the bias; more confused →"),
        fontsize="small",
    )
    ax.grid(axis="y", visible=False)
    sns.despine(ax=ax, left=True)
    handles = [
        Line2D([], [], color=palette[one], marker=MARKS[k], ls="none", label=_(NUISANCES[one]))
        for k, one in enumerate(nuisances)
    ]
    fig.legend(
        handles=handles,
        loc="outside lower center",
        ncols=len(handles),
        frameon=False,
        fontsize="x-small",
    )
    # What no nuisance reaches is not least confused, but untested.
    reached = [name for name, value in zip(names, worst, strict=True) if value > NOISE]
    title = (
        _("Least confused is {least}, most {most}", least=reached[0], most=reached[-1])
        if reached
        else _("No nuisance reaches any")
    )
    set_title(fig, title, "small")
    told = _("; ").join(f"{name} {value:.0%}" for name, value in zip(names, worst, strict=True))
    fig.set_label(
        _(
            "{title}. The largest share by which a nuisance moves each: {told}.",
            title=title,
            told=told,
        )
    )
    return fig


def _nuisance(name: str) -> str:
    """A nuisance in the alternative text: its name in English, in another language what it is."""
    return name if language() == "en" else _(NUISANCES[name])


def _share(value: float) -> str:
    return f"{value:.0%}" if value == value else _("no number")
