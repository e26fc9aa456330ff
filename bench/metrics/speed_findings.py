"""What a measurement of speed found: ratios with what is meant to be reached, and sentences made by rule."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from bench.core.i18n import N_, _
from bench.metrics.headline import listing

OURS = "workbench"
WORKS = {
    "nll": N_("likelihood of sentences"),
    "letters": N_("letters of questions"),
    "ss": N_("scenario selection"),
    "generate": N_("short replies"),
}
# Tokens of all questions, each for itself, beside those that are left where what several begin with stands once.
TOKENS, ALONE = "tokens", "each text alone"
# How the note of a time begins that was not measured as a whole.
GUESS = N_("extrapolated")
COLUMNS = [
    "work",
    "against",
    "what",
    "times",
    "low",
    "high",
    "at_most",
    "at_least",
    "reached",
    "note",
]


def ratios(found: pd.DataFrame) -> pd.DataFrame:
    """How many times as fast, and in how many times less memory, the workbench works than each of the others.

    `low` and `high` are over the turns; `at_most` is what it would be if the workbench did what it does at the machine's own
    speed at products of matrices; `at_least` is what is meant to be reached, and `reached` whether it is.

    Args:
        found: results of `bench.analyses.speed.measure`; those of a growth are left out.
    """
    ours = found[(found.along == "") & (found.who == OURS)]
    shares = dict(zip(ours.work, ours.share_of_matmul, strict=True))
    rows = []
    for row in _records(found[(found.along == "") & (found.who != OURS)]):
        of = {"work": WORKS.get(row["work"], "all questions of CBBQ"), "against": row["who"]}
        what = "fewer tokens" if row["work"] == TOKENS else "faster"
        span = {"times": row["times"], "low": row["times_low"], "high": row["times_high"]}
        most = row["times"] / shares.get(row["work"], np.nan)
        rows.append(
            {
                **of,
                "what": what,
                **span,
                "at_most": most,
                "at_least": row["at_least"],
                "note": row["note"],
            }
        )
        if row["memory_times"] == row["memory_times"]:
            memory = {"times": row["memory_times"], "at_least": row["memory_at_least"], "note": ""}
            rows.append({**of, "what": "less memory", **memory})
    table = pd.DataFrame(rows, columns=COLUMNS)
    table["reached"] = [
        "" if np.isnan([times, least]).any() else "yes" if times >= least else "no"
        for times, least in zip(table.times, table.at_least, strict=True)
    ]
    return table


def findings(found: pd.DataFrame, aims: bool = True) -> list[str]:
    """A sentence a work: how fast the workbench is, and how many times as fast as the others; with `aims`, as it should be."""
    table = ratios(found)
    told = []
    for row in _records(found[(found.along == "") & (found.who == OURS)]):
        name, pace = WORKS[row["work"]], row["items_per_second"]
        mine = table[(table.work == name) & table.times.notna()]
        faster = _records(mine[mine.what == "faster"])
        # Who asks one by one needs less memory, of course; harnesses ask in batches too.
        larger = _records(mine[(mine.what == "less memory") & mine.at_least.notna()])
        said = [
            _(
                "{times} times the speed of {who}{sure}",
                times=f"{one['times']:,.1f}",
                who=_called(one),
                sure=_sure(one, aims),
            )
            for one in faster
        ]
        also = [
            _(
                "{who} takes {times} times its memory{sure}",
                times=f"{one['times']:,.1f}",
                who=one["against"],
                sure=_sure(one, aims),
            )
            for one in larger
        ]
        rate = _(
            "{work}, {n} items: {pace} a second",
            work=_(name).capitalize(),
            n=row["items"],
            pace=f"{pace:,.{0 if pace >= 10 else 1}f}",
        )
        parts = _("; ").join(
            filter(None, (_(", ").join(filter(None, (rate, listing(said)))), listing(also)))
        )
        told.append(_("{text}.", text=parts))
    for one in _records(table[table.what == "fewer tokens"]):
        told.append(
            _(
                "All questions of CBBQ have {times} times as many tokens as are left where what they begin with in common is computed once{sure}.",
                times=f"{one['times']:,.1f}",
                sure=_sure(one, aims),
            )
        )
    return told


def as_markdown(sentences: Sequence[str]) -> str:
    """The sentences as a list."""
    return "\n".join(f"- {sentence}" for sentence in sentences)


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    rows: Any = table.to_dict("records")
    return list(rows)


def _called(row: dict[str, Any]) -> str:
    """Who it is compared with, within a sentence."""
    who = str(row["against"])
    if who.startswith("authors"):
        return _("the {who}", who=who)
    return _("asking {who}", who=who) if " " in who else who


def _sure(row: dict[str, Any], aims: bool) -> str:
    """The span of the turns, and whether the aim is reached, in brackets."""
    turns = (
        ""
        if row["low"] != row["low"]
        else _("{low} to {high}", low=f"{row['low']:,.1f}", high=f"{row['high']:,.1f}")
    )
    limit = (
        _(", at most {most} on this machine", most=f"{row['at_most']:,.1f}")
        if row["at_most"] < row["at_least"]
        else ""
    )
    aim, least = "", f"{row['at_least']:g}"
    if aims and row["reached"] == "yes":
        aim = _("aim {least}, reached{limit}", least=least, limit=limit)
    elif aims and row["reached"] == "no":
        aim = _("aim {least}, missed{limit}", least=least, limit=limit)
    guess = _(GUESS) if str(row["note"]).startswith(GUESS) else ""
    said = _("; ").join(filter(None, (turns, guess, aim)))
    return _(" ({text})", text=said) if said else ""
