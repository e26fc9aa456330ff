"""Measure how rightly replies are read, on replies that were labelled by hand.

Run `python -m tests.benchmarks.replies` for a table by kind of question, with `--list` for every
reply that is read otherwise than labelled, or with other files in the form of
tests/tasks/replies/labelled.csv. Its columns:

- id: a name, any;
- kind: of question, one of `READERS` below;
- style, family: how it is written, and the kind of model that writes so; they only describe;
- options: what the question offers, where a reader needs it, separated by `|`;
- reply: the whole reply;
- reading: what a careful person reads in it, or `none`.
"""

import argparse
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd

from bench.benchmarks.cbbq import requests as cbbq
from bench.benchmarks.mcbe import requests as mcbe
from bench.benchmarks.nli_coal import requests as nli_coal

TABLES = Path(__file__).parents[1] / "tasks/replies"
NONE = "none"
# What can become of a reply: `read though none` has no answer for a careful person, `unread` has.
OUTCOMES = ("right", "misread", "read though none", "unread")


def read_cbbq(request, reply, options):
    item = SimpleNamespace(**{f"ans{k}": text for k, text in enumerate(options)})
    return cbbq.parse("ambiguous", request, reply, item)


def read_mcbe(task, request, reply, options):
    name = request or mcbe.SEPARATOR.join(options)
    return mcbe.parse(task, name, reply, SimpleNamespace(labels=tuple(options)))


READERS = {
    "cbbq": partial(read_cbbq, "answer"),
    "cbbq_explained": partial(read_cbbq, "explanation"),
    "cbbq_cot": partial(read_cbbq, "answer"),
    "cbbq_judge": partial(read_cbbq, "judge"),
    "ss": partial(read_mcbe, "ss", ""),
    "sc": partial(read_mcbe, "sc", "answer"),
    "bs": partial(read_mcbe, "bs", "answer"),
    "judge13": partial(read_mcbe, "ba", "judge:1"),
    "judge5": partial(read_mcbe, "ba", "judge:4"),
    "nli": lambda reply, options: nli_coal.parse("ps", "label", reply, None),
}


def read_tables(paths):
    """Read labelled replies and add what is read in them: columns `read`, `outcome`."""
    rows = pd.concat(pd.read_csv(path, dtype=str, keep_default_na=False) for path in paths)
    rows["read"] = [
        READERS[row.kind](row.reply, row.options.split("|")) or NONE for row in rows.itertuples()
    ]
    conditions = [rows.reading == rows.read, rows.read == NONE, rows.reading == NONE]
    rows["outcome"] = np.select(conditions, ["right", "unread", "read though none"], "misread")
    return rows


def by_kind(rows):
    """Count outcomes by kind of question and over all, with the share in percent that is misread.

    A reply that is read though it has no answer counts as misread, and both over all replies.
    """
    counts = pd.crosstab(rows.kind, rows.outcome).reindex(columns=OUTCOMES, fill_value=0)
    counts.loc["all"] = counts.sum()
    total = counts.sum(axis=1)
    counts.insert(0, "replies", total)
    counts["% misread"] = 100 * (counts["misread"] + counts["read though none"]) / total
    counts["% unread"] = 100 * counts["unread"] / total
    return counts


def main():
    """Print the table of the files that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="*", type=Path, default=sorted(TABLES.glob("*.csv")))
    parser.add_argument("--list", action="store_true", help="print each reply that is read wrongly")
    given = parser.parse_args()
    for path in given.files:
        rows = read_tables([path])
        print(f"{path}\n{by_kind(rows).to_string(float_format='%.1f')}\n")
        for row in rows[rows.outcome != "right"].itertuples() if given.list else ():
            print(f"{row.id}: {row.outcome}: {row.reading!r} read as {row.read!r}: {row.reply!r}")


if __name__ == "__main__":
    main()
