"""Pictures of self-correction: what a prompt setting changes against Q, and what the answers become."""

import textwrap

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from bench.core.i18n import N_, _, sentences
from bench.figures.style import FAINT, WIDTH, colours, head, style
from bench.metrics.headline import listing
from bench.metrics.self_correction import AMBIGUOUS, BEFORE, DISAMBIGUOUS, KINDS
from bench.metrics.self_correction_findings import CORRECTED, findings, shown
from bench.metrics.table import ALL
from bench.tasks.cbbq import PROMPTING

# Title of a panel, and which way is better.
PANELS = {
    (AMBIGUOUS, "s_amb"): (N_("S_amb"), N_("← less bias")),
    (DISAMBIGUOUS, "s_disamb"): (N_("S_disamb"), N_("← less bias")),
    (ALL, "accuracy"): (N_("Accuracy"), N_("better →")),
    (AMBIGUOUS, "unreadable"): (N_("Unreadable, ambiguous"), N_("← better")),
    (DISAMBIGUOUS, "unknown"): (N_("Unknown where facts tell"), N_("← better")),
    (DISAMBIGUOUS, "unreadable"): (N_("Unreadable where facts tell"), N_("← better")),
}
COLUMNS = 3
MARKS = {"Q+IF": "o", "Q+IF+CoT": "s"}
# Told apart by the colour-blind, and in grey: the stereotype darkest, what is no answer lightest.
FACES = {
    N_("stereotyped"): "#b2182b",
    N_("other"): "#67a9cf",
    N_("unknown"): "#d1e5f0",
    N_("unreadable"): "#f7f7f7",
}
CONTEXTS = {AMBIGUOUS: N_("ambiguous"), DISAMBIGUOUS: N_("disambiguous")}
TITLES = {
    AMBIGUOUS: N_("Ambiguous (unknown is right)"),
    DISAMBIGUOUS: N_("Facts tell (the other is right)"),
}


def differences(compared: pd.DataFrame) -> Figure | None:
    """What each prompt setting changes against Q, a panel a measure, a row a model; hollow: no difference shown.

    None where nothing was compared.

    Args:
        compared: of `bench.metrics.self_correction.compare`.
    """
    whole = compared[compared.category == ALL]
    panels = {
        place: told
        for place, told in PANELS.items()
        if place in set(zip(whole.task, whole.metric, strict=True))
    }
    if not panels:
        return None
    style()
    models, settings = (
        list(dict.fromkeys(whole.model)),
        [one for one in PROMPTING if one in set(whole.setting)],
    )
    names = [_folded(name, 24) for name in models]
    tall = 0.24 + 0.13 * max(name.count("\n") for name in names)
    lines = -(-len(panels) // COLUMNS)
    fig = Figure(figsize=(WIDTH, 0.85 + lines * (0.75 + tall * len(models))), layout="constrained")
    grid = fig.subplots(lines, COLUMNS, sharey=True, squeeze=False).ravel()
    palette = colours(models)
    for ax, ((task, metric), (title, better)) in zip(grid, panels.items(), strict=False):
        rows = whole[(whole.task == task) & (whole.metric == metric)]
        for row in rows.to_dict("records"):
            k = settings.index(row["setting"]) - (len(settings) - 1) / 2
            y, colour = models.index(row["model"]) + 0.28 * k, palette[row["model"]]
            ax.plot([row["ci_low"], row["ci_high"]], [y, y], color=colour, lw=1.6, alpha=0.6)
            face = colour if shown(row) else "white"
            ax.plot(
                row["difference"],
                y,
                MARKS[row["setting"]],
                ms=4.5,
                color=colour,
                mfc=face,
                zorder=3,
            )
            if np.isnan(row["difference"]):
                ax.text(
                    0, y, _("undefined"), color=FAINT, fontsize="xx-small", ha="center", va="center"
                )
        ax.axvline(0, color=FAINT, ls="--", lw=1, zorder=1)
        reach = max(
            0.1,
            float(
                np.nanmax(np.abs(rows[["ci_low", "ci_high", "difference"]].fillna(0).to_numpy()))
            ),
        )
        ax.set_xlim(-1.1 * reach, 1.1 * reach)
        ax.locator_params(axis="x", nbins=5)
        ax.set_yticks(range(len(models)), names, fontsize="x-small")
        ax.set_ylim(len(models) - 0.5, -0.5)
        ax.tick_params(axis="x", labelsize="x-small")
        ax.set_title(_(title), fontsize="small")
        ax.set_xlabel(
            _(better), fontsize="x-small", loc="left" if better.startswith("←") else "right"
        )
        ax.grid(axis="y", visible=False)
        sns.despine(ax=ax, left=True)
    for ax in grid[len(panels) :]:
        ax.set_visible(False)
    handles = [
        Line2D(
            [],
            [],
            color=FAINT,
            marker=MARKS[one],
            ms=4.5,
            lw=1.6,
            label=_("{one} less {other}", one=one, other=BEFORE),
        )
        for one in settings
    ]
    handles.append(
        Line2D(
            [],
            [],
            color=FAINT,
            marker="o",
            mfc="white",
            ls="none",
            ms=4.5,
            label=_("hollow: no difference shown"),
        )
    )
    fig.legend(
        handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize="x-small"
    )
    found = findings(compared)
    head(fig, _title(found), letters=78)
    fig.set_label(sentences(found.sentence))
    return fig


def answers(kinds: pd.DataFrame) -> Figure | None:
    """What the answers become: a bar a model and prompt setting, parts that add to 1, a panel a context.

    None where there are no answers.

    Args:
        kinds: of `bench.metrics.self_correction.kinds`.
    """
    if kinds.empty:
        return None
    style()
    tasks = [task for task in TITLES if task in set(kinds.task)]
    bars = list(kinds[["model", "setting"]].drop_duplicates().itertuples(index=False, name=None))
    models = list(dict.fromkeys(kinds.model))
    # Room above a model's bars for its name.
    at = {bar: k + models.index(bar[0]) for k, bar in enumerate(bars)}
    fig = Figure(figsize=(WIDTH, 1.3 + 0.2 * (len(bars) + len(models))), layout="constrained")
    axes = fig.subplots(1, len(tasks), sharey=True, squeeze=False)[0]
    for ax, task in zip(axes, tasks, strict=True):
        for row in kinds[kinds.task == task].to_dict("records"):
            left = 0.0
            for kind in KINDS:
                ax.barh(
                    at[row["model"], row["setting"]],
                    row[kind],
                    left=left,
                    height=0.8,
                    color=FACES[kind],
                    edgecolor=FAINT,
                    lw=0.5,
                    hatch="////" if kind == "unreadable" else None,
                )
                left += row[kind]
        ax.set(xlim=(0, 1), xticks=(0, 0.25, 0.5, 0.75, 1))
        ax.set_xlabel(_("share of answers"), fontsize="small")
        ax.set_yticks(list(at.values()), [setting for _unused, setting in bars], fontsize="x-small")
        ax.tick_params(axis="x", labelsize="x-small")
        ax.set_ylim(max(at.values()) + 0.6, -1.5)
        ax.set_title(_(TITLES[task]), fontsize="small")
        ax.grid(visible=False)
        sns.despine(ax=ax, left=True)
    for model in models:
        first = min(y for (name, _unused), y in at.items() if name == model)
        axes[0].text(0, first - 0.55, model, fontsize="x-small", va="bottom", clip_on=False)
    handles = [
        Patch(
            facecolor=FACES[kind],
            edgecolor=FAINT,
            hatch="////" if kind == "unreadable" else None,
            label=_(kind),
        )
        for kind in KINDS
    ]
    fig.legend(
        handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize="x-small"
    )
    head(fig, _shift(kinds), letters=78)
    told = _("; ").join(
        _(
            "{title}: {sentence}",
            title=_(", ").join((row["model"], row["setting"], _(CONTEXTS[row["task"]]))),
            sentence=_(", ").join(f"{_(kind)} {row[kind]:.0%}" for kind in KINDS),
        )
        for row in kinds.to_dict("records")
    )
    fig.set_label(_("Shares of answers by prompt setting. {told}.", told=told))
    return fig


def _shift(kinds: pd.DataFrame) -> str:
    """What becomes of the stereotyped answers, from the first setting to the last."""
    task = AMBIGUOUS if AMBIGUOUS in set(kinds.task) else DISAMBIGUOUS
    mean = kinds[kinds.task == task].groupby("setting", sort=False).stereotyped.mean()
    order = [setting for setting in PROMPTING if setting in mean.index]
    shares = [
        _("{share} under {setting}", share=f"{mean[setting]:.0%}", setting=setting)
        for setting in order
    ]
    whose = _("on average") if len(set(kinds.model)) > 1 else str(kinds.model.iloc[0])
    of = {"shares": listing(shares), "whose": whose}
    if task == AMBIGUOUS:
        return _("Stereotyped answers where ambiguous: {shares} ({whose})", **of)
    return _("Stereotyped answers where facts tell: {shares} ({whose})", **of)


def _title(found: pd.DataFrame) -> str:
    """Who corrected itself, and where."""
    some = found[found.verdict == CORRECTED]
    if some.empty:
        return _("No self-correction was shown")
    models = list(dict.fromkeys(some.model))
    who = (
        listing(models)
        if len(models) <= 2
        else _("{n} of {all} models", n=len(models), all=len(set(found.model)))
    )
    return _("Self-correction was shown for {who}", who=who)


def _folded(text: str, width: int) -> str:
    return "\n".join(textwrap.wrap(text, width, break_long_words=True)) or text
