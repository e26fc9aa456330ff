"""The quality of data: what each benchmark's data hold, how alike their texts are, what their audits find.

looked = looks(["mcbe", "cbbq"], {"mcbe": "~/data/mcbe"})
looked[0].diversity.table
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from bench.benchmarks import module, names, resolve
from bench.core.errors import BadInput, expected
from bench.core.i18n import _
from bench.data import SAMPLES, Source, find, spread_evenly
from bench.data import texts as overview
from bench.metrics import annotators, coverage, diversity, diversity_findings
from bench.metrics.headline import category_name_warnings

# Simulated annotators rate so many items a category at most.
RATED = 100


@dataclass(frozen=True)
class Look:
    """A data set that is looked at."""

    source: Source
    texts: pd.DataFrame

    @property
    def benchmark(self) -> str:
        return self.source.benchmark

    @property
    def title(self) -> str:
        """The benchmark's name, as sentences have it."""
        return str(module("data", self.benchmark).TITLE)

    @property
    def rows(self) -> str:
        """What a row of its texts is called."""
        return module("data", self.benchmark).TEXTS

    @cached_property
    def diversity(self) -> diversity.Diversity:
        """What its texts share."""
        return diversity.diversity(self.texts)

    @cached_property
    def duplicates(self) -> pd.DataFrame:
        """Rows that say the very same."""
        return diversity.duplicates(self.texts)

    def coverage(self, by: str) -> pd.DataFrame:
        """How many texts are about what, by `category`, `topic` or `group`."""
        return diversity.coverage(self.texts, by)

    def audit(self) -> pd.DataFrame:
        """What its check finds, kind by kind."""
        return overview.audit(self.source)

    def findings(self) -> list[str]:
        """What was found, in sentences."""
        items = module("data", self.benchmark).ITEMS
        return diversity_findings.findings(
            self.title, self.texts, self.rows, items, self.diversity, self.duplicates
        )


class Beside(NamedTuple):
    """A data set beside another one of the same benchmark, and what they share."""

    first: Look
    second: Look
    found: coverage.Compared

    @property
    def names(self) -> tuple[str, str]:
        """What the two are called."""
        one, other = self.first.source.name, self.second.source.name
        if one != other:
            return one, other
        return _("{name} (first)", name=one), _("{name} (other)", name=one)

    def findings(self) -> list[str]:
        """What was found, in sentences."""
        return coverage.findings(self.found, *self.names)


class Annotated(NamedTuple):
    """Annotations whose agreement is measured, or those of simulated annotators.

    Attributes:
        benchmark: whose categories they have; "" of a file of one's own.
        who: the annotators, as a sentence names them.
        known: the kappa that simulated ones were made to have; NaN for people.
        kappas: see `bench.metrics.annotators.kappas`.
    """

    benchmark: str
    who: str
    known: float
    kappas: pd.DataFrame

    def sentence(self) -> str:
        """How far they agree."""
        return diversity_findings.of_kappas(self.kappas, self.who)


def looks(benchmarks: Sequence[str], data: Mapping[str, str] | str = "") -> list[Look]:
    """The data of each of `benchmarks`, all if empty.

    Args:
        data: folder by benchmark, or `samples` for all; what it does not name is looked for by
            `bench.data.find`.

    Raises:
        BadInput: an unknown benchmark, or its data are missing or wrong.
    """
    wanted = list(dict.fromkeys(resolve(name) for name in benchmarks)) or list(names())
    given = dict.fromkeys(wanted, data) if isinstance(data, str) else data
    folders = {resolve(name): folder for name, folder in given.items()}
    unused = [name for name in folders if name not in wanted]
    if unused:
        raise BadInput(expected(unused[0], wanted, "benchmark with a folder of data,"))
    sources = [find(name, folders.get(name)) for name in wanted]
    return [Look(source, overview.texts(source)) for source in sources]


def against(
    looked: Sequence[Look], others: Mapping[str, str] | None = None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What the data sets share with each other and with those of other folders; see `bench.metrics.diversity.overlaps`.

    Args:
        others: folder by benchmark.
    """
    more = [
        look for name, folder in (others or {}).items() for look in looks([name], {name: folder})
    ]
    sets = {look.title: look.texts for look in looked}
    sets |= {f"other {look.title}": look.texts for look in more}
    return diversity.overlaps(sets)


def beside(
    looked: Sequence[Look], others: Mapping[str, str] | None = None, near: float = coverage.NEAR
) -> list[Beside]:
    """Each data set beside the one that `others` names for its benchmark, or else, where it is not they, beside the samples.

    Args:
        others: folder by benchmark.
        near: from which ROUGE-L on texts are near-duplicates.
    """
    folders = {resolve(name): folder for name, folder in (others or {}).items()}
    found = []
    for look in looked:
        if look.benchmark not in folders and look.source.is_sample:
            continue
        source = find(look.benchmark, folders.get(look.benchmark, SAMPLES / look.benchmark))
        other = Look(source, overview.texts(source))
        found.append(Beside(look, other, coverage.compare(look.texts, other.texts, near)))
    return found


def of_beside(compared: Sequence[Beside]) -> list[str]:
    """What the comparisons found, in sentences."""
    if not compared:
        return [
            _(
                "These are the samples, and no other data were named (parameter others), so there is nothing to hold them against."
            )
        ]
    sets = (
        (look.benchmark, vars(look.source)) for one in compared for look in (one.first, one.second)
    )
    return [*(text for one in compared for text in one.findings()), *category_name_warnings(sets)]


def stacked(looked: Sequence[Look], frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """One frame a data set, one below the other, with a first column that names the benchmark."""
    parts = [frame.assign(benchmark=look.title) for look, frame in zip(looked, frames, strict=True)]
    table = pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)
    return table[["benchmark", *(name for name in table if name != "benchmark")]]


def annotated(
    looked: Sequence[Look],
    annotations: str = "",
    *,
    levels: bool = False,
    reliability: float = 0.9,
    raters: int = 3,
) -> list[Annotated]:
    """How far annotators agree: those of a CSV file, or simulated ones who say what each text is about.

    Args:
        annotations: see `bench.metrics.annotators.read`; simulated annotators if empty, three for each data set.
        levels: ratings are severities from 0 to 10, compared by their five levels.
        reliability: how often a simulated annotator sees the truth.
    """
    if annotations:
        given = annotators.read_annotations(Path(annotations).expanduser(), levels=levels)
        return [
            Annotated(
                "",
                _("the annotators of {file}", file=Path(annotations).name),
                float("nan"),
                annotators.kappas(given),
            )
        ]
    found = []
    for look in looked:
        simulated = annotators.SimulatedAnnotators(reliability, raters)
        parts = [
            some.loc[spread_evenly(list(some.index), RATED)]
            for _unused, some in look.texts.groupby("category", sort=False)
        ]
        who = _("{n} simulated annotators of the topics of {title}", n=raters, title=look.title)
        kappas = annotators.kappas(simulated.annotate(pd.concat(parts)))
        found.append(Annotated(look.benchmark, who, simulated.kappa, kappas))
    return found


def notes(looked: Sequence[Look], found: Sequence[Annotated]) -> list[str]:
    """What a reader has to know before the first number: samples, and annotators that are simulated."""
    samples = [look.title for look in looked if look.source.is_sample]
    told = []
    if samples:
        told.append(
            _(
                "The data for {names} are this package's own samples. They are not the benchmark's items, and tell nothing about its data; "
                "“bench fetch” brings these, and the parameter data takes another folder.",
                names=_(", ").join(samples),
            )
        )
    if any(one.known == one.known for one in found):
        told.append(
            _(
                "Annotators called simulated are no people: they give the right topic at a known rate, to show what kappa makes of it. The "
                "parameter annotations takes a file of your own."
            )
        )
    return told


def provenance(looked: Sequence[Look]) -> pd.DataFrame:
    """What the numbers rest on: data, version, hash, licence, and how many rows."""
    return pd.DataFrame(
        [
            {
                "benchmark": look.benchmark,
                "data": look.source.name,
                "version": look.source.version,
                "sha256": look.source.sha256[:12],
                "licence": look.source.licence,
                "found": look.source.found,
                "rows": len(look.texts),
                "asks": int(look.texts["items"].sum()),
            }
            for look in looked
        ]
    )
