"""What a measurement of speed found: ratios with what is meant to be reached, and sentences made by rule."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from bench.metrics.findings import listing

OURS = "workbench"
WORKS = {
    "nll": "likelihood of sentences", "letters": "letters of questions", "ss": "scenario selection", "generate": "short replies",
}  # fmt: skip
# Tokens of all questions, each for itself, beside those that are left where what several begin with stands once.
TOKENS, ALONE = "tokens", "each text alone"
# How the note of a time begins that was not measured as a whole.
GUESS = "extrapolated"
COLUMNS = ["work", "against", "what", "times", "low", "high", "at_most", "at_least", "reached", "note"]


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
            {**of, "what": what, **span, "at_most": most, "at_least": row["at_least"], "note": row["note"]}
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
        said = [f"{one['times']:,.1f} times the speed of {_called(one)}{_sure(one, aims)}" for one in faster]
        also = [
            f"{one['against']} takes {one['times']:,.1f} times its memory{_sure(one, aims)}" for one in larger
        ]
        rate = f"{name.capitalize()}, {row['items']} items: {pace:,.{0 if pace >= 10 else 1}f} a second"
        told.append(f"{rate}{', ' * bool(said)}{listing(said)}{'; ' * bool(also)}{listing(also)}.")
    for one in _records(table[table.what == "fewer tokens"]):
        told.append(
            f"All questions of CBBQ have {one['times']:,.1f} times as many tokens as are left where what they begin with in "
            f"common is computed once{_sure(one, aims)}."
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
    return f"the {who}" if who.startswith("authors") else f"asking {who}" if " " in who else who


def _sure(row: dict[str, Any], aims: bool) -> str:
    """The span of the turns, and whether the aim is reached, in brackets."""
    span = "" if row["low"] != row["low"] else f"{row['low']:,.1f} to {row['high']:,.1f}"
    met = {"yes": "reached", "no": "missed"}.get(row["reached"], "")
    limit = f", at most {row['at_most']:,.1f} on this machine" if row["at_most"] < row["at_least"] else ""
    aim = f"aim {row['at_least']:g}, {met}{limit}" if aims and met else ""
    guess = GUESS if str(row["note"]).startswith(GUESS) else ""
    said = "; ".join(filter(None, (span, guess, aim)))
    return f" ({said})" if said else ""
