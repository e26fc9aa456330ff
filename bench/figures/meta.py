"""Pictures of a meta-evaluation: measures against the bias that was put in."""

from collections.abc import Sequence

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bench.core.i18n import _
from bench.figures.style import FAINT, INK, WIDTH, colours, label, set_title, style
from bench.metrics.headline import listing, range_text
from bench.metrics.meta_findings import NAMES

# What a correlation of this much lets a title call following the rate.
FOLLOWS = 0.9
# Measures that are differences, and go from -1; the others are shares.
SIGNED = "gap"


def against_rate(
    found: pd.DataFrame, correlated: pd.DataFrame, measures: Sequence[str] = ("coal", "fn")
) -> Figure:
    """Each measure against the rate, a row a language, a mark a model; dashed: what models of just their set would get.

    Hollow marks are models that did not learn their set, which no correlation counts.

    Args:
        found: results of `bench.analyses.meta.evaluate`.
        correlated: their `correlations`.
    """
    style()
    languages = list(dict.fromkeys(found.language))
    seeds = list(dict.fromkeys(found.seed))
    fig = Figure(figsize=(WIDTH, 0.9 + 1.9 * len(languages)), layout="constrained")
    grid = fig.subplots(len(languages), len(measures), sharex=True, squeeze=False)
    palette = colours([str(seed) for seed in seeds])
    for row, language in zip(grid, languages, strict=True):
        for ax, measure in zip(row, measures, strict=True):
            some = found[(found.language == language) & (found.measure == measure)]
            should = some.drop_duplicates("rate").sort_values("rate")
            ax.plot(should.rate, should.expected, color=INK, ls="--", lw=1, zorder=1)
            for seed in seeds:
                part = some[some.seed == seed].sort_values("rate")
                colour = palette[str(seed)]
                ax.plot(
                    part.rate[part.passed], part.score[part.passed], color=colour, lw=1, alpha=0.6
                )
                for passed, face in ((True, colour), (False, "white")):
                    here = part[part.passed == passed]
                    ax.plot(
                        here.rate,
                        here.score,
                        "o",
                        ms=4.5,
                        color=colour,
                        mfc=face,
                        ls="none",
                        zorder=3,
                    )
            ax.set(xlim=(-0.04, 1.04), ylim=(-1.08, 1.08) if SIGNED in measure else (-0.04, 1.04))
            ax.set_title(f"{measure}, {label('nli_coal', language)}", fontsize="small")
            said = _said(correlated, language, measure)
            ax.annotate(
                said,
                (0.03, 0.95),
                xycoords="axes fraction",
                va="top",
                fontsize="x-small",
                color=FAINT,
            )
            sns.despine(ax=ax)
    for ax in grid[-1]:
        ax.set_xlabel(_("rate put in"), fontsize="small")
    handles = [
        Line2D(
            [],
            [],
            color=palette[str(seed)],
            marker="o",
            ms=4.5,
            lw=1,
            label=_("seed {seed}", seed=seed),
        )
        for seed in seeds
    ]
    handles.append(Line2D([], [], color=INK, ls="--", lw=1, label=_("a model of just its set")))
    handles.append(
        Line2D([], [], color=FAINT, marker="o", mfc="white", ls="none", label=_("set not learned"))
    )
    fig.legend(
        handles=handles,
        loc="outside lower center",
        ncols=len(handles),
        frameon=False,
        fontsize="x-small",
    )
    title = _title(correlated, measures)
    set_title(fig, title)
    said = _("; ").join(
        _(
            "{title}: {sentence}",
            title=_("{title}, {measure}", title=measure, measure=language),
            sentence=_said(correlated, language, measure),
        )
        for language in languages
        for measure in measures
    )
    fig.set_label(_("{title}. Dots are models, by rate and score: {said}.", title=title, said=said))
    return fig


def _pearson(correlated: pd.DataFrame, language: str, measure: str) -> pd.DataFrame:
    return correlated[
        (correlated.language == language)
        & (correlated.measure == measure)
        & (correlated.coefficient == "pearson")
    ]


def _said(correlated: pd.DataFrame, language: str, measure: str) -> str:
    """Pearson's r over the models of each seed, or why there is none."""
    some = _pearson(correlated, language, measure)
    some = some[some.seed != "all"]
    known = some[some.value.notna()]
    if some.empty:
        return _("no model passed")
    if known.empty:
        return _("r undefined: the score is constant")
    told = f"r = {range_text(f'{known.value.min():.3f}', f'{known.value.max():.3f}')}"
    if len(known) == len(some):
        return told
    return _(
        "{r}; undefined for {n} of {all} seeds", r=told, n=len(some) - len(known), all=len(some)
    )


def _title(correlated: pd.DataFrame, measures: Sequence[str]) -> str:
    """Which measures follow the rate in every language and seed, and which do not."""
    follow: list[str] = []
    others: list[str] = []
    for measure in measures:
        some = correlated[(correlated.measure == measure) & (correlated.coefficient == "pearson")]
        (follow if len(some) and (some.value >= FOLLOWS).all() else others).append(measure)
    names, rest = _listed(follow), _listed(others)
    if not follow and len(others) == 1:
        return _("{measures} does not follow the rate that was put in", measures=rest)
    if not follow:
        return _("{measures} do not follow the rate that was put in", measures=rest)
    told = (
        _("{measures} follows the rate that was put in", measures=names)
        if len(follow) == 1
        else _("{measures} follow the rate that was put in", measures=names)
    )
    if not others:
        return told
    if len(others) == 1:
        return _("{told}, {others} does not", told=told, others=rest)
    return _("{told}, {others} do not", told=told, others=rest)


def _listed(names: Sequence[str]) -> str:
    return listing([NAMES.get(name, name.replace("_", " ")) for name in names])
