"""What a data set holds, in one form for every benchmark: its texts, with what each is about, and what its audit found.

A text is what somebody wrote: an instance of McBE, a template of CBBQ, a sentence of NLI-CoAL without its occupation.
"""

import re
from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

import pandas as pd

from bench.benchmarks import module
from bench.core.i18n import N_
from bench.data import Source, check, load
from bench.data.cbbq import CONDITIONS, Question, files, read_templates
from bench.data.cbbq.templates import SLOTS, Template, repaired
from bench.data.mcbe import Instance
from bench.data.nli_coal import Pair
from bench.data.nli_coal.frames import SLOT

# What stands for a name in a template: one character each, so that a slot is one token.
FIRST, SECOND = "①", "②"
# What a row of `texts` is called, by benchmark; and what `items` counts.
ROWS = {"mcbe": N_("instances"), "cbbq": N_("templates"), "nli_coal": N_("pairs")}
ITEMS = {"mcbe": N_("instances"), "cbbq": N_("questions"), "nli_coal": N_("pairs")}

# A name or a number in what a check says.
VARYING = re.compile(r"(['\"]).*?\1|\d[\d,]*")


class Text(NamedTuple):
    """One row of `texts`.

    Attributes:
        language: of the text: zh, en, ja or another.
        topic: the subcategory; of NLI-CoAL the set.
        groups: whom it is about: of McBE all who are compared, of CBBQ the stereotyped group, of NLI-CoAL the occupation.
        text: what ROUGE-L compares and words are counted in; CBBQ's context and NLI-CoAL's frame with a mark for a name.
        whole: everything that the row says; two rows of which this is the same are duplicates.
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


def texts(source: Source) -> pd.DataFrame:
    """The texts of a data set: a row an instance, template or pair, with the columns of `Text`.

    Raises:
        BadInput: the data is wrong.
    """
    return pd.DataFrame(list(_READ[source.benchmark](source)), columns=list(Text._fields))


def audit(source: Source) -> pd.DataFrame:
    """What the benchmark's check finds, kind by kind: columns `kind`, `what`, `findings`, `example`.

    `kind` is refused (the loader takes no such row), odd (look at it) or count (numbers beside the release's, for McBE).
    Names and numbers in `what` are left out, so that findings of a kind are counted together.

    Raises:
        BadInput: the benchmark has no check.
    """
    found = check(source)
    # Where a benchmark names its faults, their table stands in the module of its check.
    faults = getattr(import_module(f"bench.data.{source.benchmark}.audit"), "FAULTS", {})
    rows: dict[tuple[str, str], list[str]] = {}
    for kind, file, row, value, what, fault in zip(
        found.kind,
        found.file,
        found.row,
        found.value,
        found.what,
        found.get("fault", found.what),
        strict=True,
    ):
        # What is said of one row names a word or a number, which the next one has not.
        alike = what if kind == "count" else VARYING.sub("…", what)
        told = faults.get(fault, "") if faults else alike
        if told:
            place = f"{file}, row {row}" if row else file
            rows.setdefault((kind, told), []).append(": ".join(filter(None, (place, value))))
    table = [(*key, len(places), places[0]) for key, places in rows.items()]
    frame = pd.DataFrame(table, columns=["kind", "what", "findings", "example"])
    return frame.sort_values(["kind", "findings"], ascending=[False, False]).reset_index(drop=True)


def _of_mcbe(source: Source) -> list[Text]:
    instances: list[Instance] = load(source)
    return [
        Text(
            "mcbe",
            one.item_id,
            one.category,
            _language(source),
            one.subtype,
            tuple(one.words),
            one.filled(one.words[0]) if one.words else one.sentence,
            "\n".join((one.context, one.sentence, "，".join(one.words))),
            1,
        )
        for one in instances
    ]


def _of_cbbq(source: Source) -> list[Text]:
    found = []
    for category, paths in files(source.folder).items():
        for condition in CONDITIONS:
            some = read_templates(paths, category, condition)
            found += [_of_template(one, _language(source)) for one in some]
            if not some and any(path.parent.name == condition for path in paths):
                found += _of_questions(
                    [one for one in load(source, [category]) if one.condition == condition],
                    _language(source),
                )
    return found


def _language(source: Source) -> str:
    """The language of a set of one language: its manifest's, or that of the releases."""
    return source.language.partition(",")[0] or str(module("data", source.benchmark).LANGUAGE)


def _of_template(one: Template, language: str) -> Text:
    cells = {name: cell.strip() for name, cell in one.cells.items()}
    # Misspelt placeholders stand for names too.
    text = repaired(cells["context"]).replace(SLOTS[0], FIRST).replace(SLOTS[1], SECOND)
    whole = "\n".join(
        cells[name] for name in ("context", "question", "ans0", "ans1", "NAME1", "NAME2")
    )
    return Text(
        "cbbq",
        f"{one.category}:{one.condition}:{one.name}",
        one.category,
        language,
        cells["subcategory"],
        (cells["bias_targeted_groups"],),
        text,
        whole,
        one.size,
    )


def _of_questions(questions: list[Question], language: str) -> list[Text]:
    """Templates of which only the expanded questions are there: the first of each stands for it."""
    sizes = pd.Series([one.cluster for one in questions]).value_counts()
    found: dict[str, Text] = {}
    for one in questions:
        text = one.context
        for name, mark in ((one.name1, FIRST), (one.name2, SECOND)):
            text = text.replace(name, mark) if name else text
        whole = "\n".join((text, one.question))
        found.setdefault(
            one.cluster,
            Text(
                "cbbq",
                one.cluster,
                one.category,
                language,
                one.topic,
                (one.group,),
                text,
                whole,
                int(sizes[one.cluster]),
            ),
        )
    return list(found.values())


def _of_nli_coal(source: Source) -> list[Text]:
    pairs: list[Pair] = load(source)
    return [
        Text(
            "nli_coal",
            one.item_id,
            one.category,
            one.category,
            one.set.upper(),
            (one.occupation,),
            one.frame.replace(SLOT, FIRST) or one.premise,
            f"{one.premise}\n{one.hypothesis}",
            1,
        )
        for one in pairs
    ]


_READ: dict[str, Callable[[Source], list[Text]]] = {
    "mcbe": _of_mcbe,
    "cbbq": _of_cbbq,
    "nli_coal": _of_nli_coal,
}
