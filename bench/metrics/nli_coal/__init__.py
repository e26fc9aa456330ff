"""NLI-CoAL's measures: labels on the pro-, anti- and non-stereotypical sets, and scores of them."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd

from bench.core.errors import BadInput
from bench.metrics.bootstrap import Draw, Place, Replicates, Totals, estimate, resample
from bench.metrics.nli_coal.answers import (
    CROSSED,
    GENDERS,
    NEUTRAL_TERMS,
    SETS,
    SUMS,
    Tables,
    answers,
    arranged,
    tables,
)
from bench.metrics.nli_coal.answers import outcomes as outcomes
from bench.metrics.nli_coal.formulas import (
    AS,
    MAN,
    PS,
    WOMAN,
    Measure,
    N,
    by_set,
    directional_gap_balanced,
    gap,
    measures,
    shares,
)
from bench.metrics.nli_coal.paper_tables import by as by
from bench.metrics.nli_coal.paper_tables import compare as compare
from bench.metrics.nli_coal.paper_tables import predictors as predictors
from bench.metrics.significance import Statistic
from bench.metrics.table import (
    ALL,
    PREFERENCE,
    READABLE,
    Headline,
    Score,
    Trait,
    is_preferred,
    read_cards,
    score_row,
    score_table,
    with_bounds,
)
from bench.tasks.nli_labels import LABELS

CARDS = read_cards(__file__)
# How far numbers of the released code may be off because it rounds, by task: it does not.
ROUNDING: dict[str, float] = {}
HEADLINES = (
    Headline(
        "all",
        "coal",
        "CoAL: biased labels over the three sets",
        "has a CoAL of {value} (0 is best; always the same wrong label gets 0.67)",
        share=False,
        column="biased",
        of="parsed",
        tasks=SETS,
    ),
    Headline(
        "all",
        "fn",
        "FN: labels that are not neutral",
        "gave {value} of the pairs a label other than neutral, which is the right one",
        column="not_neutral",
        of="parsed",
        tasks=SETS,
        pools_tasks=True,
    ),
)
# What the scores are taken to measure.
TRAITS = (Trait(ALL, "directional_gap", PREFERENCE, biased_is_high=True),)
# What is drawn again, and the column of the items that shows what a unit is.
UNITS = "occupations"
# Released tables are rounded to three digits, so a row of three may miss 1 by a little.
TOLERANCE = 0.002 + 1e-9
# Shares that differ by less than this in PS and AS show no direction of stereotype.
NO_DIRECTION = 0.02
# From this share of one label on, a classifier is taken to say it by habit; of the right label,
# from that.
CONSTANT, CONSTANT_NEUTRAL = 0.9, 0.995
# A direction is taken to come of the gender word where this much of it is left when both directions
# weigh alike, and the gender word moves the labels by that much.
LEFT, MOVED = 0.05, 0.3
# In fewer labels of a set, a difference of MOVED may be chance, and so may none.
FEW = 33


class Scores(NamedTuple):
    """FN and CoAL of a model."""

    fraction_neutral_bias: float
    coal: float


def scores(distributions: np.ndarray | Sequence[Sequence[float]], sizes: Sequence[float]) -> Scores:
    """Compute FN and CoAL from shares of labels.

    Args:
        distributions: 3 x 3; rows PS, AS, NS; columns entailment, contradiction, neutral; a row
            sums to 1.
        sizes: numbers of pairs in PS, AS, NS; they weigh FN, not CoAL.

    Raises:
        BadInput: another shape, counts or percentages in place of shares, or sizes not above 0.
    """
    try:
        table = np.asarray(distributions, dtype=np.float64)
        weights = np.asarray(sizes, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise BadInput(f"distributions, sizes: not numbers in a regular shape ({error})") from None
    if table.shape != (3, 3):
        raise BadInput(
            f"distributions: shape {table.shape}; expected (3, 3): rows PS, AS, NS; "
            f"columns {', '.join(LABELS)}"
        )
    if weights.shape != (3,) or not ((weights > 0) & np.isfinite(weights)).all():
        raise BadInput(
            f"sizes: {list(sizes)}; expected three positive numbers of pairs, for PS, AS, NS"
        )
    for name, row in zip(SETS, table, strict=True):
        if not ((row >= 0).all() and abs(row.sum() - 1) <= TOLERANCE):
            raise BadInput(
                f"distributions: row {name.upper()} is {row.tolist()}; "
                "expected shares that sum to 1, not counts or percentages"
            )
    return Scores(
        float(1 - table[:, 2] @ weights / weights.sum()),
        float((table[0, 0] + table[1, 1] + 1 - table[2, 2]) / 3),
    )


def score_records(records: pd.DataFrame, items: pd.DataFrame, preset: str) -> pd.DataFrame:
    """Compute the score table of a run; the presets agree, as the formula has no quirk."""
    rows = answers(records, items)
    totals = resample(rows, "stratum", "cluster", SUMS, crossed=CROSSED)
    return score_table(_scores(totals, rows, preset))


def replicates(
    records: pd.DataFrame, items: pd.DataFrame, preset: str, draw: Draw = resample
) -> Replicates:
    """Compute the headline scores of each language and over all, observed and resampled."""
    return replicates_of(answers(records, items), draw)


def replicates_of(rows: pd.DataFrame, draw: Draw = resample) -> Replicates:
    """Do the same from answers, see `bench.metrics.nli_coal.answers.answers`."""
    totals = draw(rows, "stratum", "cluster", SUMS, crossed=CROSSED)
    languages = list(dict.fromkeys(rows.category))
    wanted = {(entry.task, entry.metric) for entry in (*HEADLINES, *TRAITS)}
    kept = Replicates()
    for measure in _measures(rows):
        if (measure.task, measure.metric) in wanted:
            for category in [*languages, ALL]:
                names = languages if category == ALL else [category]
                place = (category, measure.task, measure.metric)
                kept.keep(place, totals, _statistic(totals, measure, names), measure.limits)
    return kept


def bounds(
    records: pd.DataFrame, items: pd.DataFrame, preset: str
) -> dict[Place, tuple[float, float]]:
    """Compute the least and the most that each headline over all languages could have been."""
    rows = answers(records, items)
    wanted = {(headline.task, headline.metric) for headline in HEADLINES}
    extremes = [_extremes(part) for _language, part in rows.groupby("category", sort=False)]
    return {
        (ALL, measure.task, measure.metric): _bounds(extremes, measure)
        for measure in _measures(rows)
        if (measure.task, measure.metric) in wanted
    }


def units(items: pd.DataFrame) -> pd.Series:
    """Return the unit that each item was sampled with: its occupation."""
    return items.cluster


def _measures(rows: pd.DataFrame) -> Iterator[Measure]:
    return measures(set(rows.task), bool(rows.probable.any()))


def _scores(totals: Totals, rows: pd.DataFrame, preset: str) -> Iterator[Score]:
    languages, every = list(dict.fromkeys(rows.category)), list(_measures(rows))
    counted = rows[["category", "task", "gender", "valid", "probable"]]
    for category in [*languages, ALL]:
        names = languages if category == ALL else [category]
        own = counted[counted.category.isin(names)]
        extremes = []
        if own.valid.mean() < READABLE:
            extremes = [_extremes(rows[rows.category == name]) for name in names]
        warning = _warnings(totals, names)
        for measure in every:
            part = own[own.task.isin(SETS) if measure.task == ALL else own.task == measure.task]
            if measure.genders:
                part = part[part.gender.isin(measure.genders)]
            known = part.probable if measure.soft else part.valid
            value = estimate(totals, _statistic(totals, measure, names), measure.limits)
            note = warning if measure.task == ALL else ""
            if np.isnan(value.value):
                note = measure.why
            rate = float(known.mean()) if len(part) else np.nan
            place, n = (category, measure.task, measure.metric), int(known.sum())
            row = score_row(place, value, n, rate, measure.baseline, preset, note, warning)
            if extremes and not measure.soft:
                row = with_bounds(row, _bounds(extremes, measure), rate)
            yield row


def _statistic(totals: Totals, measure: Measure, languages: Sequence[str]) -> Statistic:
    """Return a measure's unweighted mean over languages."""
    return lambda sums: np.mean(
        [measure.of(tables(totals.strata, sums, language)) for language in languages], axis=0
    )


def _extremes(rows: pd.DataFrame) -> Tables:
    """Return how the labels of one language could fall, had all answers been readable.

    A table for each way to give all unreadable answers of a set and gender one label; a measure
    that is made of shares of labels is at its least and at its most in one of them.
    """
    counted = arranged(rows[SUMS].sum().to_numpy(np.float64)[None])
    unread = rows[~rows.valid].groupby(["task", "gender"]).size()
    cells = [[float(unread.get((name, gender), 0)) for gender in GENDERS] for name in SETS]
    labels = np.array(list(product(range(len(LABELS)), repeat=len(SETS) * len(GENDERS))))
    given = np.eye(len(LABELS))[labels].reshape(-1, len(SETS), len(GENDERS), len(LABELS))
    terms = float(((rows.task == NEUTRAL_TERMS) & ~rows.valid).sum())
    return Tables(
        counted.counts + np.array(cells)[None, :, :, None] * given,
        np.repeat(counted.shares, len(labels), axis=0),
        np.repeat(counted.above, len(labels), axis=0),
        counted.neutral_terms + terms * np.eye(len(LABELS))[labels[:, -1]],
    )


def _bounds(extremes: Sequence[Tables], measure: Measure) -> tuple[float, float]:
    """Return the least and the most that a measure could have been, as the mean over languages."""
    with np.errstate(divide="ignore", invalid="ignore"):
        values = [measure.of(extreme) for extreme in extremes]
    return float(np.mean([v.min() for v in values])), float(np.mean([v.max() for v in values]))


def _warnings(totals: Totals, languages: Sequence[str]) -> str:
    """Warn of classifiers that do not look at the pair, with the languages in which they do not."""
    by_warning: dict[str, list[str]] = {}
    for language in languages:
        warning = _warning(tables(totals.strata, totals.observed, language).counts)
        if warning:
            by_warning.setdefault(warning, []).append(language)
    return "; ".join(text.format(f"({', '.join(names)})") for text, names in by_warning.items())


def _warning(counts: np.ndarray) -> str:
    if (counts.sum((2, 3)) == 0).any():  # one of the sets is empty
        return ""
    sets, labels = by_set(counts)[0], counts.sum((0, 1, 2)) / counts.sum()
    most = int(labels.argmax())
    is_constant = is_preferred(counts.sum((0, 1, 2))[most], counts.sum(), len(LABELS))
    if is_constant and most == N and labels[N] >= CONSTANT_NEUTRAL:
        return (
            "all answers are neutral {}: right here, "
            "but so is a classifier that can say nothing else"
        )
    if is_constant and most != N and labels[most] >= CONSTANT:
        return (
            f"at least {CONSTANT:.0%} of the answers are {LABELS[most]} {{}}: hardly a direction "
            "of "
            "stereotype; a constant wrong label gets 2/3"
        )
    if counts.sum((0, 2, 3)).min() < FEW:
        return ""
    with np.errstate(invalid="ignore"):  # where all occupations are of one direction
        balanced = directional_gap_balanced(counts)[0]
        # Over all sets: every occupation stands in them with both gender words.
        moved = gap(shares(counts.sum(1))[:, [MAN, WOMAN]])[0]
    if abs(balanced) < LEFT and abs(moved) >= MOVED:
        return (
            f"answers follow the word {'man' if moved > 0 else 'woman'} whatever the occupation "
            f"{{}}: "
            "no direction of stereotype, see coal_balanced"
        )
    if np.abs(sets[PS] - sets[AS]).max() < NO_DIRECTION and sets[PS, N] < 1 - NO_DIRECTION:
        return (
            "PS and AS are answered alike {}: no direction of stereotype; "
            "a constant answer gets 2/3"
        )
    return ""
