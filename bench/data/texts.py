"""Texts of a data set in one form for every benchmark, and the findings of its audit.

A person wrote each text: an instance of McBE, a template of CBBQ, a sentence of NLI-CoAL
without its occupation.
"""

import re
from typing import TYPE_CHECKING, NamedTuple

from bench.benchmarks import module
from bench.data import Source, audit_module, check

if TYPE_CHECKING:
    import pandas as pd

# Marks for the names in a template: one character each, so that a slot is one token.
FIRST, SECOND = "①", "②"
# A name or a number in a sentence of a check.
VARYING = re.compile(r"(['\"]).*?\1|\d[\d,]*")


class Text(NamedTuple):
    """One row of `texts`.

    Attributes:
        language: of the text: zh, en, ja or another.
        topic: the subcategory; of NLI-CoAL the set.
        groups: of McBE all groups, of CBBQ the stereotyped one, of NLI-CoAL the occupation.
        text: the text for ROUGE-L and word counts; CBBQ's context and NLI-CoAL's frame with a mark
            for a name.
        whole: the complete row; equal ones are duplicates.
        items: how many questions it is asked as.
    """

    benchmark: str
    item_id: str
    category: str
    language: str
    topic: str
    groups: tuple[str, ...]
    text: str
    whole: str
    items: int


def texts(source: Source) -> "pd.DataFrame":
    """The texts of a data set: a row an instance, template or pair, with the columns of `Text`.

    Raises:
        BadInput: the data is wrong.
    """
    import pandas as pd

    rows = module("data", source.benchmark).texts(source)
    return pd.DataFrame(list(rows), columns=list(Text._fields))


def language(source: Source) -> str:
    """Return the language of a data set of one language: its manifest's, or the release's."""
    return source.language.partition(",")[0] or module("data", source.benchmark).LANGUAGE


def audit(source: Source) -> "pd.DataFrame":
    """Count the findings of a data set's audit by kind and sentence.

    Returns:
        Columns `kind`, `what`, `findings`, `example`; no rows if the benchmark has no audit. `kind`
        is refused (the loader takes no such row), odd, or count (numbers next to the release's).
        Names and numbers in `what` are left out, so that findings of a kind are counted together.
    """
    import pandas as pd

    columns = ["kind", "what", "findings", "example"]
    room = audit_module(source.benchmark)
    if room is None:
        return pd.DataFrame(columns=columns)
    findings = check(source)
    # If a benchmark names its faults, their table stands in the module of its check.
    faults = getattr(room, "FAULTS", {})
    rows: dict[tuple[str, str], list[str]] = {}
    for finding in findings.to_dict("records"):
        kind, what, place = finding["kind"], finding["what"], finding["file"]
        if faults:
            what = faults.get(finding["fault"], "")
        elif kind != "count":
            # A sentence about a row names a word or a number, which the next row has not.
            what = VARYING.sub("…", what)
        if what:
            place += f", row {finding['row']}" if finding["row"] else ""
            example = ": ".join(filter(None, (place, finding["value"])))
            rows.setdefault((kind, what), []).append(example)
    table = [(*key, len(places), places[0]) for key, places in rows.items()]
    frame = pd.DataFrame(table, columns=columns)
    return frame.sort_values(["kind", "findings"], ascending=[False, False]).reset_index(drop=True)
