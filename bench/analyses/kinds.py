"""What models answer: refused, unreadable, unknown, stereotyped, right or other."""

import numpy as np
import pandas as pd

from bench.core.numbers import decimals
from bench.figures.stacked import KINDS
from bench.metrics.primary import listing

# Columns of outcomes that say it, in benchmarks that have these.
NEEDED = ["answered", "parsed", "refused", "stereotyped", "correct", "says_unknown"]
# Larger shares have a sentence: such a model decides little, or often does not answer.
OFTEN = {"unknown": (0.5, "say that it is unknown"), "refused": (0.1, "refuse to answer")}


def answer_kinds(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Compute how many of a model's answers are refusals, unreadable, unknown, and so on.

    Args:
        outcomes: of `bench.outcomes`; benchmarks whose answers are not stereotyped, right or
            unknown, such as McBE, are left out.

    Returns:
        A row per `benchmark`, `task` and `model`, with a column of shares for each kind, of which
        the first one that fits counts.

    Examples:
        >>> import bench
        >>> run = bench.evaluate("cbbq", "simulated:refuse=0.3", data="samples", limit=10)
        >>> answer_kinds(bench.outcomes(run))[["task", "refused", "unknown"]].round(1)
                   task  refused  unknown
        0     ambiguous      0.3      0.7
        1  disambiguous      0.3      0.0
    """
    if not set(NEEDED) <= set(outcomes):
        return pd.DataFrame(columns=["benchmark", "task", "model", *KINDS])
    rows = outcomes.dropna(subset=NEEDED)
    facts = {
        "refused": rows.refused > 0,
        "unreadable": rows.parsed < rows.answered,
        "unknown": rows.says_unknown > 0,
        "stereotyped": rows.stereotyped > 0,
        "right": rows.correct > 0,
    }
    kind = pd.Series(np.select([*facts.values()], [*facts], "other"), rows.index)
    shares = pd.DataFrame({name: (kind == name).astype(float) for name in KINDS})
    keys = [rows[name] for name in ("benchmark", "task", "model")]
    return shares.groupby(keys, sort=False).mean().reset_index()


def often(kinds: pd.DataFrame) -> list[str]:
    """Say which models often answer that it is unknown, or refuse, over the tasks of a benchmark.

    Args:
        kinds: of `answer_kinds`.
    """
    means = kinds.groupby(["benchmark", "model"], sort=False)[[*OFTEN]].mean().reset_index()
    sentences = []
    for benchmark, rows in means.groupby("benchmark", sort=False):
        for kind, (least, text) in OFTEN.items():
            shares = rows.set_index("model")[kind]
            shares = shares[shares > least]
            names = [f"{model} ({decimals(100 * share)}\u00a0%)" for model, share in shares.items()]
            if names:
                sentences.append(
                    f"In more than {decimals(100 * least)}\u00a0% of the answers to {benchmark}, "
                    f"these models {text}: {listing(names)}."
                )
    return sentences
