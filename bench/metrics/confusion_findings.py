"""What respondents of known character show about measures, in sentences made by rule."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from bench.benchmarks import module
from bench.core.i18n import N_, _, note
from bench.metrics.confusion import NOISE
from bench.metrics.headline import listing
from bench.metrics.table import ALL

# How nuisances are called in sentences.
NUISANCES = {
    "position": N_("answering by position"),
    "refusal": N_("refusing"),
    "incompetence": N_("lack of competence"),
}
# A nuisance that moves a measure by less than this share of its range is said to leave it alone.
ALONE = 0.05


def named(task: str, metric: str) -> str:
    """A measure's name: that of the metric, with the task where it needs one."""
    return metric if task == ALL and metric != "score" else f"{metric} ({task})"


def findings(table: pd.DataFrame, confusions: pd.DataFrame) -> list[str]:
    """For each benchmark, which headline measures follow the bias, and what else moves them, the least confused first.

    Args:
        table, confusions: `bench.metrics.confusion.summary` and `.confusion` of the same respondents.
    """
    sentences = []
    keys = ["benchmark", "task", "metric"]
    for benchmark in dict.fromkeys(table.benchmark):
        title = module("data", benchmark).TITLE
        some = table[(table.benchmark == benchmark) & table.headline]
        sentences.append(_("{title}: {sentence}", title=title, sentence=_following(some)))
        for row in some[some.note == ""].to_dict("records"):
            there = confusions[(confusions[keys] == [row[key] for key in keys]).all(axis=1)]
            of = _("{title}, {measure}", title=title, measure=named(row["task"], row["metric"]))
            sentences.append(_("{title}: {sentence}", title=of, sentence=_told(there)))
    return sentences


def as_title(confusions: pd.DataFrame, measures: Sequence[tuple[str, str]]) -> str:
    """The one of `measures` (task, metric; some that react to the bias) that a nuisance moves most, as a picture is headed."""
    known = confusions[confusions.confusion.notna()].to_dict("records")
    some = [one for one in known if (one["task"], one["metric"]) in measures]
    if not some:
        return _("With every nuisance the measures are undefined")
    worst = max(some, key=lambda one: one["confusion"])
    return _(
        "{nuisance} moves {measure} most: by {share} of its range over the bias",
        nuisance=_capital(_(NUISANCES[worst["nuisance"]])),
        measure=named(worst["task"], worst["metric"]),
        share=f"{worst['confusion']:.0%}",
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _following(some: pd.DataFrame) -> str:
    """Which measures go with the bias where nothing else is there, and which do not react."""
    react, others = some[some.note == ""], some[some.note != ""].to_dict("records")
    parts = []
    if len(react):
        names = listing([named(row["task"], row["metric"]) for row in react.to_dict("records")])
        of = {"names": names, "least": f"{react.spearman.abs().min():.2f}", "n": int(react.n.min())}
        parts.append(
            _(
                "{names} goes with the bias of respondents that do nothing else (Spearman at least {least} in size, n = {n})",
                **of,
            )
            if len(react) == 1
            else _(
                "{names} go with the bias of respondents that do nothing else (Spearman at least {least} in size, n = {n})",
                **of,
            )
        )
    parts += [
        _("{measure} {found}", measure=named(row["task"], row["metric"]), found=note(row["note"]))
        for row in others
    ]
    return _sentence(parts)


def _told(there: pd.DataFrame) -> str:
    known = (
        there[there.confusion.notna()].sort_values("confusion", ascending=False).to_dict("records")
    )
    if not known:
        return _("undefined with every nuisance.")
    if known[0]["confusion"] <= NOISE:
        return _(
            "no nuisance of these respondents reaches its answers, so what confuses it cannot be seen here."
        )
    moved = [one for one in known if one["confusion"] >= ALONE]
    calm = [_(NUISANCES[one["nuisance"]]) for one in known if one["confusion"] < ALONE]
    parts = []
    if moved:
        first = moved[0]
        low, high = f"{first['low']:.0%}", f"{first['high']:.0%}"
        spread = (
            _("{low} to {high} by seed", low=low, high=high) if low != high else _("in every seed")
        )
        others = [
            _(
                "{nuisance} by {share}",
                nuisance=_(NUISANCES[one["nuisance"]]),
                share=f"{one['confusion']:.0%}",
            )
            for one in moved[1:]
        ]
        parts.append(
            _(
                "{nuisance} moves it by {share} of its range ({spread}){effect}",
                nuisance=_(NUISANCES[first["nuisance"]]),
                share=f"{first['confusion']:.0%}",
                spread=spread,
                effect=_effect(first),
            )
        )
        parts += [listing(others)] if others else []
    if len(calm) == 1:
        parts.append(_("{nuisance} leaves it where it was", nuisance=calm[0]))
    elif calm:
        parts.append(_("{nuisances} leave it where it was", nuisances=listing(calm)))
    return _sentence(parts)


def _sentence(parts: Sequence[str]) -> str:
    return _("{text}.", text=_("; ").join(parts))


def _effect(worst: dict[Any, Any]) -> str:
    """What the strongest level makes of no bias and of full bias."""
    parts, empty, full = [], worst["at_no_bias"], worst["at_full_bias"]
    if empty >= ALONE:
        parts.append(_("no bias looks like {share} of full bias", share=f"{empty:.0%}"))
    elif empty <= -ALONE:
        parts.append(_("no bias looks better by {share} of the range", share=f"{-empty:.0%}"))
    if full <= -ALONE and 1 + full >= ALONE:
        parts.append(_("full bias looks like {share} of itself", share=f"{1 + full:.0%}"))
    elif full <= -ALONE:
        parts.append(_("full bias looks like none"))
    elif full >= ALONE:
        parts.append(_("full bias looks worse by {share} of the range", share=f"{full:.0%}"))
    if not parts:
        return ""
    return _(
        ": at a rate of {level}, {effects}", level=f"{worst['level']:g}", effects=listing(parts)
    )
