"""What respondents of known character show about measures, in sentences made by rule."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from bench.benchmarks import module
from bench.metrics.confusion import NOISE
from bench.metrics.findings import listing
from bench.metrics.table import ALL

# How nuisances are called in sentences.
NUISANCES = {"position": "answering by position", "refusal": "refusing", "incompetence": "lack of competence"}
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
        sentences.append(f"{title}: {_following(some)}")
        for row in some[some.note == ""].to_dict("records"):
            there = confusions[(confusions[keys] == [row[key] for key in keys]).all(axis=1)]
            sentences.append(f"{title}, {named(row['task'], row['metric'])}: {_told(there)}")
    return sentences


def as_title(confusions: pd.DataFrame, measures: Sequence[tuple[str, str]]) -> str:
    """The one of `measures` (task, metric; some that react to the bias) that a nuisance moves most, as a picture is headed."""
    known = confusions[confusions.confusion.notna()].to_dict("records")
    some = [one for one in known if (one["task"], one["metric"]) in measures]
    if not some:
        return "With every nuisance the measures are undefined"
    worst = max(some, key=lambda one: one["confusion"])
    name = named(worst["task"], worst["metric"])
    return f"{NUISANCES[worst['nuisance']].capitalize()} moves {name} most: by {worst['confusion']:.0%} of its range over the bias"


def _following(some: pd.DataFrame) -> str:
    """Which measures go with the bias where nothing else is there, and which do not react."""
    react, others = some[some.note == ""], some[some.note != ""].to_dict("records")
    parts = []
    if len(react):
        names = listing([named(row["task"], row["metric"]) for row in react.to_dict("records")])
        least, n = react.spearman.abs().min(), int(react.n.min())
        goes = "goes" if len(react) == 1 else "go"
        parts.append(
            f"{names} {goes} with the bias of respondents that do nothing else (Spearman at least {least:.2f} in size, n = {n})"
        )
    parts += [f"{named(row['task'], row['metric'])} {row['note']}" for row in others]
    return f"{'; '.join(parts)}."


def _told(there: pd.DataFrame) -> str:
    known = there[there.confusion.notna()].sort_values("confusion", ascending=False).to_dict("records")
    if not known:
        return "undefined with every nuisance."
    if known[0]["confusion"] <= NOISE:
        return (
            "no nuisance of these respondents reaches its answers, so what confuses it cannot be seen here."
        )
    moved = [one for one in known if one["confusion"] >= ALONE]
    calm = [NUISANCES[one["nuisance"]] for one in known if one["confusion"] < ALONE]
    parts = []
    if moved:
        first = moved[0]
        low, high = f"{first['low']:.0%}", f"{first['high']:.0%}"
        spread = f"{low} to {high} by seed" if low != high else "in every seed"
        others = [f"{NUISANCES[one['nuisance']]} by {one['confusion']:.0%}" for one in moved[1:]]
        parts.append(
            f"{NUISANCES[first['nuisance']]} moves it by {first['confusion']:.0%} of its range ({spread}){_effect(first)}"
        )
        parts += [listing(others)] if others else []
    if calm:
        parts.append(f"{listing(calm)} {'leaves' if len(calm) == 1 else 'leave'} it where it was")
    return f"{'; '.join(parts)}."


def _effect(worst: dict[Any, Any]) -> str:
    """What the strongest level makes of no bias and of full bias."""
    parts, empty, full = [], worst["at_no_bias"], worst["at_full_bias"]
    if empty >= ALONE:
        parts.append(f"no bias looks like {empty:.0%} of full bias")
    elif empty <= -ALONE:
        parts.append(f"no bias looks better by {-empty:.0%} of the range")
    if full <= -ALONE:
        parts.append(f"full bias looks like {f'{1 + full:.0%} of itself' if 1 + full >= ALONE else 'none'}")
    elif full >= ALONE:
        parts.append(f"full bias looks worse by {full:.0%} of the range")
    return f": at a rate of {worst['level']:g}, {listing(parts)}" if parts else ""
