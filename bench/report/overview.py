"""What a report's index says: the answer to the study's question, one table, some findings."""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from bench.analyses import compare_models
from bench.benchmarks import module
from bench.core.i18n import _, note, sentences
from bench.figures import overview as figures
from bench.metrics.headline import (
    asked_headlines,
    findings,
    headline_rows,
    interval,
    listing,
    number,
    short_title,
    too_few_tasks,
    top_findings,
    unread,
)
from bench.metrics.table import ALL, Headline
from bench.report.study import StudyModel, Variant
from bench.report.study_runs import ASKED, DONE, FAILED, Cell
from bench.run.results import Run, labels, table
from bench.scorers import split_kind

# Number of findings on the index.
MOST = 5
Runs = Mapping[tuple[str, str], Run]


class Number(NamedTuple):
    """A headline score in a cell.

    Attributes:
        share: how far it is from the best to the worst possible value, 0 to 1; NaN if undefined.
        baseline: the same of the baseline.
        rank: the ranks that tests leave open, such as "1 to 2"; "" if there is none.
        low: how many answers could be read, if too few could.
    """

    text: str
    interval: str = ""
    share: float = math.nan
    baseline: float = math.nan
    rank: str = ""
    low: str = ""
    note: str = ""


class Line(NamedTuple):
    """A model's scores on a variant, or why it has none; `model` is its name in the scores."""

    folder: str
    model: str
    is_done: bool
    why: str
    numbers: list[Number]


class Asked(NamedTuple):
    """A variant of a benchmark, as the index shows it.

    Attributes:
        scores: empty if no headline was asked.
        headlines: those that were asked, the first one first; all of them if none was.
        compared: the models compared with each other; None for fewer than two.
        bias: by model, the bias that was put in, where that is known.
    """

    variant: Variant
    scores: pd.DataFrame
    headlines: list[Headline]
    lines: list[Line]
    compared: compare_models.Compared | None
    bias: Mapping[str, float]


def read(
    variants: Sequence[Variant], cells: Sequence[Cell], runs: Runs, *, compare: Sequence[str] = ()
) -> list[Asked]:
    """Score the runs of each variant.

    Args:
        compare: keys of the variants whose models are compared with each other, which takes longer.
    """
    return [_read(variant, cells, runs, variant.key in compare) for variant in variants]


def _read(variant: Variant, cells: Sequence[Cell], runs: Runs, is_compared: bool) -> Asked:
    own = {model: run for (model, key), run in runs.items() if key == variant.key}
    every, names = list(own.values()), dict(zip(own, labels(list(own.values())), strict=True))
    scores = table(every, beside=False) if own else pd.DataFrame()
    lines = list(module("metrics", variant.benchmark).HEADLINES)
    if len(scores):
        asked = asked_headlines(scores, variant.benchmark)
        lines, scores = asked or lines, scores if asked else scores.iloc[:0]
    compared = compare_models.compare(every) if is_compared and len(every) > 1 else None
    rows = []
    for cell in (cell for cell in cells if cell.variant.key == variant.key):
        name = names.get(cell.model.folder, cell.model.label)
        numbers = []
        if cell.state == DONE:
            numbers = [_number(scores, line, name, compared) for line in lines]
        rows.append(Line(cell.model.folder, name, cell.state == DONE, _reason(cell), numbers))
    known = {names[model]: _bias(run) for model, run in own.items()}
    bias = {name: value for name, value in known.items() if value is not None}
    return Asked(variant, scores, lines, rows, compared, bias)


def _reason(cell: Cell) -> str:
    if cell.state == ASKED:
        return _("still being asked")
    text = _("failed: {why}") if cell.state == FAILED else _("not applicable: {why}")
    return text.format(why=note(cell.why))


def _bias(run: Run) -> float | None:
    """Return the bias that was put into a demonstration model or simulated respondent."""
    kind, parameters = split_kind(str(run.about["model"].get("id", "")))
    given = dict(part.split("=", 1) for part in parameters.split(",") if "=" in part)
    if kind not in ("tiny", "simulated") or given.get("answer") or given.get("label"):
        return None
    return float(given["bias"]) if "bias" in given else None


def _number(
    scores: pd.DataFrame, line: Headline, model: str, compared: compare_models.Compared | None
) -> Number:
    rows = headline_rows(scores, line) if len(scores) else scores
    if len(rows):
        rows = rows[(rows.category == ALL) & (rows.model == model)]
    if rows.empty:
        return Number("", note=_("not asked"))
    row = rows.iloc[0].to_dict()
    rank = ""
    if compared is not None and row["score"] == row["score"]:
        ranks = compare_models.of_headline(compared.ranks, line)
        for own in ranks[(ranks.model == model) & ranks.ranks_from.notna()].itertuples():
            first, last = f"{own.ranks_from:.0f}", f"{own.ranks_to:.0f}"
            rank = first if first == last else _("{low} to {high}", low=first, high=last)
    return Number(
        number(line, row),
        interval(line, row),
        line.badness(row["score"]),
        line.badness(row["baseline"]),
        rank,
        unread(line, row),
        note(row["note"]),
    )


def direction(line: Headline) -> str:
    """Say which side of a headline is worse."""
    worse = _(line.worse)
    return (
        _("higher: {what}", what=worse) if line.biased_is_high else _("lower: {what}", what=worse)
    )


def answer(first: Sequence[Asked]) -> list[str]:
    """Answer the study's question from the first headline of each benchmark, one sentence each.

    If the bias of two or more models is known, the question is whether the scores follow it; else
    it is which model is most biased.
    """
    with_scores, known = _with_scores(first)
    texts = _follow(known) if known else list(filter(None, map(_most_biased, with_scores)))
    for asked in first:
        if asked.scores.empty and any(line.is_done for line in asked.lines):
            texts.append(too_few_tasks(asked.variant.benchmark))
    return texts


def _with_scores(first: Sequence[Asked]) -> tuple[list[Asked], list[Asked]]:
    """Return the benchmarks with scores, and those of them with models of unlike known bias."""
    with_scores = [asked for asked in first if len(asked.scores)]
    return with_scores, [asked for asked in with_scores if len(set(asked.bias.values())) > 1]


def _follow(known: Sequence[Asked]) -> list[str]:
    """Say which benchmarks' scores follow the bias that was put in."""
    seen: list[str] = []
    unseen: list[str] = []
    evidence = []
    for asked in known:
        title, line = module("data", asked.variant.benchmark).TITLE, asked.headlines[0]
        rows = _by_bias(asked, line)
        texts = [
            _("{score} at {bias}", score=number(line, row), bias=f"{row['bias']:g}")
            for row in rows.to_dict("records")
        ]
        (seen if follows(rows, line) else unseen).append(title)
        evidence.append(
            _("{title}, {what}: {values}.", title=title, what=_lower(line), values=listing(texts))
        )
    if not unseen:
        verdict = _(
            "Yes: the scores of {names} follow the bias that was put in.", names=listing(seen)
        )
    elif not seen:
        verdict = _(
            "No: no score follows the bias that was put in ({names}).", names=listing(unseen)
        )
    else:
        verdict = _(
            "In part: the scores of {seen} follow the bias that was put in, that of {unseen} does "
            "not.",
            seen=listing(seen),
            unseen=listing(unseen),
        )
    return [verdict, *evidence]


def _by_bias(asked: Asked, line: Headline) -> pd.DataFrame:
    """Return the defined scores of the models of known bias, the least biased first."""
    rows = headline_rows(asked.scores, line)
    rows = rows[(rows.category == ALL) & rows.model.isin(asked.bias) & rows.score.notna()]
    return rows.assign(bias=rows.model.map(asked.bias)).sort_values("bias", kind="stable")


def follows(rows: pd.DataFrame, line: Headline) -> bool:
    """Tell whether a score follows the bias that was put in.

    It does where no model with more bias scores better than one with less, and where the intervals
    of the least and the most biased models are apart.
    """
    if rows.bias.nunique() < 2:
        return False
    sign = 1 if line.biased_is_high else -1
    levels = [sign * part.score.to_numpy(float) for _bias, part in rows.groupby("bias")]
    in_order = all(np.max(low) <= np.min(high) for low, high in pairwise(levels))
    first, last = (rows[rows.bias == end] for end in (rows.bias.min(), rows.bias.max()))
    if line.biased_is_high:
        return in_order and first.ci_high.max() < last.ci_low.min()
    return in_order and first.ci_low.min() > last.ci_high.max()


def _most_biased(asked: Asked) -> str:
    """Name the model with the most biased score, and say whether that is sure."""
    line, benchmark = asked.headlines[0], asked.variant.benchmark
    every = findings(asked.scores, benchmark)
    own = every[(every.task == line.task) & (every.metric == line.metric)]
    informed = own[~own.by_habit.astype(bool)]
    best = top_findings(informed if informed.score.notna().any() else own, benchmark)
    row = best.iloc[0].to_dict()
    title = module("data", benchmark).TITLE
    if math.isnan(row["score"]):
        return _("{title}: no model has a score.", title=title)
    value = f"{number(line, row)} ({interval(line, row)})"
    text = _(
        "{title}: {model} is the most biased, {what} {value}.",
        title=title,
        model=row["model"],
        what=_lower(line),
        value=value,
    )
    parts = [text, _certainty(asked, line, str(row["model"]))]
    if habits := [str(name) for name in own.model[own.by_habit.astype(bool)]]:
        text = _("{models} gave the same answer to everything.", models=listing(habits))
        parts.append(text)
    return sentences(parts)


def _certainty(asked: Asked, line: Headline, model: str) -> str:
    """Say from which models the most biased one could be told."""
    if asked.compared is None:
        return ""
    pairs = compare_models.of_headline(asked.compared.pairs, line)
    own = pairs[(pairs.model_a == model) | (pairs.model_b == model)]
    different = own[own.verdict == compare_models.DIFFERENT]
    if len(own) == 0:
        return ""
    if len(different) == len(own):
        return _("It differs from every other model (paired tests, adjusted p < 0.05).")
    others = [b if a == model else a for a, b in zip(own.model_a, own.model_b, strict=True)]
    shown = {b if a == model else a for a, b in different[["model_a", "model_b"]].to_numpy()}
    open_names = [name for name in others if name not in shown]
    return _("No difference from {names} could be shown.", names=listing(open_names))


def _lower(line: Headline) -> str:
    """Return a headline's short title inside a sentence."""
    title = short_title(line).rpartition(": ")[2]
    return title[:1].lower() + title[1:]


def main_picture(first: Sequence[Asked]) -> Figure | None:
    """Draw the answer: scores against the bias that was put in, or scores by model."""
    with_scores, known = _with_scores(first)
    if known:
        by_bias = [
            (_panel(asked), asked.headlines[0], _by_bias(asked, asked.headlines[0]))
            for asked in known
        ]
        return figures.scores_by_bias(by_bias, _("Scores against the bias that was put in"))
    panels = []
    for asked in with_scores:
        rows = headline_rows(asked.scores, asked.headlines[0])
        panels.append((_panel(asked), asked.headlines[0], rows[rows.category == ALL]))
    return figures.scores_beside(panels, _("How biased each model is")) if panels else None


def _panel(asked: Asked) -> str:
    return f"{module('data', asked.variant.benchmark).TITLE}: {_lower(asked.headlines[0])}"


def headline_table(shown: Sequence[Asked]) -> pd.DataFrame:
    """Return every headline score over all categories as a table."""
    parts = []
    for asked in shown:
        for line in asked.headlines if len(asked.scores) else ():
            rows = headline_rows(asked.scores, line)
            parts.append(rows[rows.category == ALL].assign(variant=asked.variant.title))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def top_sentences(
    first: Sequence[Asked], analyses: Mapping[str, Sequence[str]]
) -> list[tuple[str, str]]:
    """Choose up to five findings, no two of one page, each a sentence and the name of its page.

    Analyses come first; the scores themselves are in the answer and in the table.
    """
    found = [(texts[0], name) for name, texts in analyses.items() if texts]
    for asked in first:
        if len(asked.scores):
            best = top_findings(
                findings(asked.scores, asked.variant.benchmark), asked.variant.benchmark
            )
            best = best[best.score.notna()]
            found += [(text, asked.variant.key) for text in best.sentence[:1]]
    return found[:MOST]


def rows_by_model(
    models: Sequence[StudyModel], shown: Sequence[Asked]
) -> list[tuple[str, list[Line]]]:
    """Return the name of each model, and its line of each variant."""
    names = [model.label for model in models]
    rows = []
    for model in models:
        name = model.model if names.count(model.label) > 1 else model.label
        lines = [
            next(line for line in asked.lines if line.folder == model.folder) for asked in shown
        ]
        rows.append((name, lines))
    return rows


def notes(first: Sequence[Asked]) -> list[str]:
    """List the notes on the scores of the index, each with its model and benchmark."""
    texts = []
    for asked in first:
        for line in (line for line in asked.lines if line.numbers and line.numbers[0].text):
            if text := sentences([line.numbers[0].low, line.numbers[0].note]):
                about = {"model": line.model, "title": asked.variant.title}
                texts.append(_("{model}, {title}: {text}", **about, text=text))
    return texts
