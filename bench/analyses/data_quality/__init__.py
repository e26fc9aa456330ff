"""Describe data sets: what they hold, how alike their texts are, what their audits find.

sets = open_sets(["mcbe", "cbbq"], {"mcbe": "~/data/mcbe"})
sets[0].diversity.table
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from bench.analyses.data_quality import compare_sets
from bench.analyses.data_quality.compare_sets import SetComparison
from bench.benchmarks import module, names, resolve
from bench.core.errors import BadInput, expected
from bench.core.i18n import _
from bench.data import SAMPLES, Source, find, spread_evenly
from bench.data import texts as data_texts
from bench.data.dataset import language_name
from bench.metrics import agreement, diversity
from bench.metrics.agreement import kappa_sentence
from bench.metrics.diversity import NEAR, Diversity
from bench.metrics.headline import category_name_warnings, range_text
from bench.metrics.table import ALL

# Simulated annotators rate at most so many items per category.
RATED = 100


@dataclass(frozen=True)
class DataSet:
    """A data set and its texts, as `bench.data.texts.texts` returns them."""

    source: Source
    texts: pd.DataFrame

    @classmethod
    def read(cls, source: Source) -> "DataSet":
        return cls(source, data_texts.texts(source))

    @property
    def benchmark(self) -> str:
        return self.source.benchmark

    @property
    def title(self) -> str:
        """Return the benchmark's name in sentences."""
        return str(module("data", self.benchmark).TITLE)

    @property
    def rows(self) -> str:
        """Return what a text is called."""
        return str(module("data", self.benchmark).TEXTS)

    @cached_property
    def diversity(self) -> Diversity:
        """Return what its texts share."""
        return diversity.diversity(self.texts)

    @cached_property
    def duplicates(self) -> pd.DataFrame:
        """Return the rows that say the same."""
        return diversity.duplicates(self.texts)

    def coverage(self, by: str) -> pd.DataFrame:
        """Count the texts by `category`, `topic` or `group`."""
        return diversity.coverage(self.texts, by)

    def audit(self) -> pd.DataFrame:
        """Return what its check finds, by kind."""
        return data_texts.audit(self.source)

    def findings(self) -> list[str]:
        """Say what it covers, what its texts share, and what is there twice."""
        sizes = self.texts.category.value_counts()
        groups = diversity.by_each(self.texts, "group")[["category", "group"]].drop_duplicates()
        covered = _(
            "{title} has {n} {rows} in {categories} categories ({each} in each), about {topics} "
            "topics and {groups} groups.",
            title=self.title,
            n=f"{len(self.texts):,}",
            rows=_(self.rows),
            categories=len(sizes),
            each=range_text(f"{sizes.iloc[-1]:,}", f"{sizes.iloc[0]:,}"),
            topics=f"{len(self.texts[['category', 'topic']].drop_duplicates()):,}",
            groups=f"{len(groups):,}",
        )
        within = self.diversity.table.set_index("category").loc[ALL]
        shared = _(
            "{title}: two texts of one category share {mean} on average (ROUGE-L; 95\u00a0% "
            "interval {low} to {high}; n = {pairs} pairs); {share} of the pairs are below {half}.",
            title=self.title,
            mean=f"{within['mean']:.2f}",
            low=f"{within.ci_low:.2f}",
            high=f"{within.ci_high:.2f}",
            pairs=f"{within.pairs:,}",
            share=f"{within.below_half:.0%}",
            half=f"{diversity.HALF:g}",
        )
        twice = _(
            "{title}: {again} {rows} say the same as an earlier one, and {near} pairs of distinct "
            "texts are near-duplicates (ROUGE-L of {least} or more).",
            title=self.title,
            again=f"{int(self.duplicates.rows.sum() - len(self.duplicates)):,}",
            rows=_(self.rows),
            near=f"{len(self.diversity.near):,}",
            least=f"{NEAR:g}",
        )
        return [covered, shared, twice]


class Pair(NamedTuple):
    """Two data sets of one benchmark, and what they share."""

    first: DataSet
    second: DataSet
    shared: SetComparison

    @property
    def names(self) -> tuple[str, str]:
        """Return what the two are called."""
        first, second = self.first.source.name, self.second.source.name
        if first != second:
            return first, second
        return _("{name} (first)", name=first), _("{name} (other)", name=first)


class Annotations(NamedTuple):
    """Annotations, or those of simulated annotators, and how far they agree.

    Attributes:
        benchmark: whose categories they have; "" of a file of yours.
        who: the annotators, in a sentence.
        known: the kappa that simulated ones were made to have; NaN for people.
        kappas: see `bench.metrics.agreement.kappas`.
    """

    benchmark: str
    who: str
    known: float
    kappas: pd.DataFrame

    def sentence(self) -> str:
        """Say how far they agree."""
        return kappa_sentence(self.kappas, self.who)


def open_sets(benchmarks: Sequence[str], data: Mapping[str, str] | str = "") -> list[DataSet]:
    """Open the data of each of `benchmarks`; default: all.

    Args:
        data: folder by benchmark, or `samples` for all; `bench.data.find` looks for the others.

    Raises:
        BadInput: an unknown benchmark, or its data are missing or wrong.
    """
    wanted = list(dict.fromkeys(resolve(name) for name in benchmarks)) or list(names())
    given = dict.fromkeys(wanted, data) if isinstance(data, str) else data
    folders = {resolve(name): folder for name, folder in given.items()}
    unused = [name for name in folders if name not in wanted]
    if unused:
        raise BadInput(expected(unused[0], wanted, "benchmark with a folder of data,"))
    return [DataSet.read(find(name, folders.get(name))) for name in wanted]


def overlaps(
    sets: Sequence[DataSet], others: Mapping[str, str] | None = None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Compare the texts of all data sets; see `bench.metrics.diversity.overlaps`.

    Args:
        others: further folders, by benchmark.
    """
    texts = {data.title: data.texts for data in sets}
    for name, folder in (others or {}).items():
        (other,) = open_sets([name], {name: folder})
        texts[f"other {other.title}"] = other.texts
    return diversity.overlaps(texts)


def overlap_findings(shared: pd.DataFrame) -> list[str]:
    """Say which two data sets share most, and how many texts have a near-duplicate elsewhere."""
    if shared.empty:
        return [_("No two data sets have texts in the same language.")]
    top = shared.iloc[int(shared["mean"].argmax())]
    return [
        _(
            "{n} texts have a near-duplicate in another data set (ROUGE-L of {near} or more).",
            n=f"{int(shared.near_duplicates.sum()):,}",
            near=f"{NEAR:g}",
        ),
        _(
            "The texts of {first} ({language}) come nearest to those of {second}: the most similar "
            "one shares {mean} on average (95\u00a0% interval {low} to {high}; n = {n} texts).",
            first=top["first"],
            language=language_name(str(top.language)),
            second=top.second,
            mean=f"{top['mean']:.2f}",
            low=f"{top.ci_low:.2f}",
            high=f"{top.ci_high:.2f}",
            n=f"{int(top.texts):,}",
        ),
    ]


def compare(
    sets: Sequence[DataSet], others: Mapping[str, str] | None = None, near: float = NEAR
) -> list[Pair]:
    """Compare each data set with another one of its benchmark; by default with the samples.

    Args:
        others: folder of the other one, by benchmark.
        near: from which ROUGE-L on texts are near-duplicates.
    """
    folders = {resolve(name): folder for name, folder in (others or {}).items()}
    pairs = []
    for data in sets:
        if data.benchmark in folders or not data.source.is_sample:
            folder = folders.get(data.benchmark, SAMPLES / data.benchmark)
            other = DataSet.read(find(data.benchmark, folder))
            pairs.append(Pair(data, other, compare_sets.compare(data.texts, other.texts, near)))
    return pairs


def pair_findings(pairs: Sequence[Pair]) -> list[str]:
    """Say what each pair of data sets shares."""
    if not pairs:
        return [
            _(
                "These are the samples, and no other data are named (parameter others), so there "
                "is nothing to compare them with."
            )
        ]
    sets = [(data.benchmark, vars(data.source)) for pair in pairs for data in pair[:2]]
    texts = [text for pair in pairs for text in compare_sets.findings(pair.shared, *pair.names)]
    return [*texts, *category_name_warnings(sets)]


def stacked(sets: Sequence[DataSet], frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Concatenate one frame per data set; a first column names the benchmark."""
    parts = [frame.assign(benchmark=data.title) for data, frame in zip(sets, frames, strict=True)]
    table = pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)
    return table[["benchmark", *(name for name in table if name != "benchmark")]]


def annotations(
    sets: Sequence[DataSet],
    file: str = "",
    *,
    levels: bool = False,
    reliability: float = 0.9,
    raters: int = 3,
) -> list[Annotations]:
    """Measure how far annotators agree: those of a CSV file, or simulated ones of each data set.

    Args:
        file: see `bench.metrics.agreement.read_annotations`; simulated annotators if empty, who
        say
            what each text is about.
        levels: ratings are severities from 0 to 10, compared by their five levels.
        reliability: how often a simulated annotator is right.
    """
    if file:
        ratings = agreement.read_annotations(Path(file).expanduser(), levels=levels)
        who = _("the annotators of {file}", file=Path(file).name)
        return [Annotations("", who, np.nan, agreement.kappas(ratings))]
    simulated = agreement.SimulatedAnnotators(reliability, raters)
    every = []
    for data in sets:
        parts = [
            part.loc[spread_evenly(list(part.index), RATED)]
            for _name, part in data.texts.groupby("category", sort=False)
        ]
        who = _("{n} simulated annotators of the topics of {title}", n=raters, title=data.title)
        kappas = agreement.kappas(simulated.annotate(pd.concat(parts)))
        every.append(Annotations(data.benchmark, who, simulated.kappa, kappas))
    return every


def notes(sets: Sequence[DataSet], rated: Sequence[Annotations]) -> list[str]:
    """Say which data are samples, and which annotators are simulated."""
    samples = [data.title for data in sets if data.source.is_sample]
    texts = []
    if samples:
        texts.append(
            _(
                "The data for {names} are this package's own samples. They are not the benchmark's "
                "items, and say nothing about its data; “bench fetch” brings these, and the "
                "parameter data takes another folder.",
                names=_(", ").join(samples),
            )
        )
    if any(not np.isnan(own.known) for own in rated):
        texts.append(
            _(
                "Annotators called simulated are no people: they give the right topic at a known "
                "rate, to show what kappa makes of it. The parameter annotations takes a file of "
                "yours."
            )
        )
    return texts


def provenance(sets: Sequence[DataSet]) -> pd.DataFrame:
    """List the data sets: version, hash, licence, and the number of rows and questions."""
    return pd.DataFrame(
        [
            {
                "benchmark": data.benchmark,
                "data": data.source.name,
                "version": data.source.version,
                "sha256": data.source.sha256[:12],
                "licence": data.source.licence,
                "found": data.source.found,
                "rows": len(data.texts),
                "asks": int(data.texts["items"].sum()),
            }
            for data in sets
        ]
    )
