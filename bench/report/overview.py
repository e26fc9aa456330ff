"""The content of a report's index: the answer to the study's question, one table, some findings."""

import math
import re
from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from bench.benchmarks import get
from bench.core.text import sentences
from bench.figures import overview as figures
from bench.metrics.primary import (
    contenders,
    doubt,
    findings,
    inside_sentence,
    interval,
    is_informative,
    left_out,
    listing,
    number,
    primary_metrics,
    primary_rows,
    short_title,
    too_few_tasks,
    unread,
)
from bench.metrics.table import ALL, PrimaryMetric
from bench.report.study import StudyModel, Variant
from bench.report.study_runs import DONE, FAILED, Cell
from bench.run.models import conditions
from bench.run.results import Run, data_conflict, labels, table
from bench.scorers import split_kind

MAX_FINDINGS = 5
Runs = Mapping[tuple[str, str], Run]


class Number(NamedTuple):
    """A primary metric in a cell.

    Attributes:
        share: its position between the best (0) and the worst possible value (1); NaN if undefined.
        baseline: this position of the baseline.
        low: the number of parsed answers, if there are too few.
        by_habit: whether the model gives a constant answer, so that this score cannot show bias.
        official: the released code's number, if it differs.
    """

    text: str
    interval: str = ""
    share: float = math.nan
    baseline: float = math.nan
    low: str = ""
    note: str = ""
    by_habit: bool = False
    official: str = ""


class Line(NamedTuple):
    """A model's scores on a variant, or the reason why it has none."""

    folder: str
    model: str
    is_done: bool
    why: str
    numbers: list[Number]


class VariantScores(NamedTuple):
    """A variant of a benchmark, as the index shows it.

    Attributes:
        scores: empty if no primary metric has a score.
        primary_metrics: the primary metrics with scores; all of them if none has one.
        bias: by model, its known bias, for example of simulated respondents.
        conflict: a sentence if models have different data; otherwise "".
        data: the name and version of the data set.
    """

    variant: Variant
    scores: pd.DataFrame
    primary_metrics: list[PrimaryMetric]
    lines: list[Line]
    bias: Mapping[str, float]
    conflict: str = ""
    data: str = ""


def read(variants: Sequence[Variant], cells: Sequence[Cell], runs: Runs) -> list[VariantScores]:
    return [_read(variant, cells, runs) for variant in variants]


def _read(variant: Variant, cells: Sequence[Cell], runs: Runs) -> VariantScores:
    own = {model: run for (model, key), run in runs.items() if key == variant.key}
    every, names = list(own.values()), dict(zip(own, labels(list(own.values())), strict=True))
    scores = table(every) if own else pd.DataFrame()
    metrics = list(get(variant.benchmark).metrics.primary_metrics)
    if len(scores):
        scored = primary_metrics(scores, variant.benchmark)
        metrics, scores = scored or metrics, scores if scored else scores.iloc[:0]
    lines = []
    for cell in (cell for cell in cells if cell.variant.key == variant.key):
        name, is_done = names.get(cell.model.folder, cell.model.label), cell.state == DONE
        numbers = [_number(scores, primary, name) for primary in metrics if is_done]
        why = f"{'failed' if cell.state == FAILED else 'not applicable'}: {cell.why}"
        lines.append(Line(cell.model.folder, name, is_done, why, numbers))
    known = {names[model]: _bias(run) for model, run in own.items()}
    bias = {name: value for name, value in known.items() if value is not None}
    data = conditions(every[0])["data"] if every else ""
    return VariantScores(variant, scores, metrics, lines, bias, data_conflict(every), data)


def _bias(run: Run) -> float | None:
    """Return the known bias of a demonstration model or simulated respondent."""
    kind, parameters = split_kind(run.metadata["model"]["id"])
    given = dict(part.split("=", 1) for part in parameters.split(",") if "=" in part)
    if kind not in ("tiny", "simulated") or given.get("answer") or given.get("label"):
        return None
    return float(given["bias"]) if "bias" in given else None


def _number(scores: pd.DataFrame, line: PrimaryMetric, model: str) -> Number:
    rows = primary_rows(scores, line) if len(scores) else scores
    if len(rows):
        rows = rows[(rows.category == ALL) & (rows.model == model)]
    if rows.empty:
        return Number("", note="not asked")
    row = rows.iloc[0].to_dict()
    official = scores[(scores.preset == "official") & (scores.category == ALL)]
    official = official[(official.task == line.task) & (official.metric == line.metric)]
    official = official[official.model == model] if row["preset"] != "official" else rows.iloc[:0]
    return Number(
        number(line, row),
        interval(line, row),
        line.badness(row["score"]),
        line.badness(row["baseline"]),
        unread(line, row),
        row["note"],
        bool(row["by_habit"]),
        *(number(line, other) for other in official.to_dict("records")),
    )


def informed(scores: pd.DataFrame, line: PrimaryMetric) -> list[str]:
    """List the models with an informative score, the most biased first."""
    rows = primary_rows(scores, line)
    rows = rows[rows.category == ALL]
    rows = rows[is_informative(rows, line)]
    return list(rows.sort_values("score", ascending=not line.biased_is_high).model)


def direction(line: PrimaryMetric) -> str:
    worse = line.worse
    return f"higher: {worse}" if line.biased_is_high else f"lower: {worse}"


def answer(first: Sequence[VariantScores]) -> list[str]:
    """Answer the study's question from the first metric of each benchmark, one sentence each.

    If we know the bias of two or more models, the first sentence says whether the scores follow
    this bias.
    """
    with_scores, known = _with_scores(first)
    texts = [_verdict(known)] if known else []
    texts += map(_most_biased, with_scores)
    for result in first:
        if result.scores.empty and any(line.is_done for line in result.lines):
            texts.append(too_few_tasks(result.variant.benchmark))
    return texts


def _with_scores(first: Sequence[VariantScores]) -> tuple[list[VariantScores], list[VariantScores]]:
    """Return the benchmarks with scores, and the benchmarks with models of known, different bias.

    For this, only models with an informative score need a known bias.
    """
    with_scores = [result for result in first if len(result.scores)]
    known = [
        result
        for result in with_scores
        if len(set(result.bias.values())) > 1
        and set(result.bias) >= set(informed(result.scores, result.primary_metrics[0]))
    ]
    return with_scores, known


def _verdict(known: Sequence[VariantScores]) -> str:
    """Name the benchmarks with scores that follow the known bias."""
    names: dict[bool | None, list[str]] = {True: [], False: [], None: []}
    for result in known:
        title, line = get(result.variant.benchmark).metadata.title, result.primary_metrics[0]
        names[follows(_by_bias(result, line), line)].append(title)
    seen, unseen, unsure = (listing(names[key]) for key in (True, False, None))
    if seen:
        start = "In part" if unseen or unsure else "Yes"
        text = f"{start}: the scores of {seen} follow the bias that was put in."
    elif unseen:
        text = f"No: no score follows the bias that was put in ({unseen})."
    else:
        return f"It cannot be told whether the scores of {unsure} follow the bias that was put in."
    return sentences(
        [
            text,
            f"This is not so for {unseen}." if seen and unseen else "",
            f"For {unsure} it cannot be told." if unsure else "",
        ]
    )


def _by_bias(result: VariantScores, line: PrimaryMetric) -> pd.DataFrame:
    """Return the informative scores of models with known bias, the least biased first."""
    rows = primary_rows(result.scores, line)
    rows = rows[(rows.category == ALL) & rows.model.isin(result.bias)]
    rows = rows[is_informative(rows, line)]
    # An empty column would have the type of texts.
    bias = rows.model.map(result.bias).astype(float)
    return rows.assign(bias=bias).sort_values("bias", kind="stable")


def follows(rows: pd.DataFrame, line: PrimaryMetric) -> bool | None:
    """Return whether a score follows the known bias; None if this is uncertain.

    True: the scores have the order of the bias, and the intervals of the least and the most biased
    models are disjoint. False: for some pair of models, the more biased one scores better, and
    their intervals are disjoint.
    """
    sign, ends = (1, ["ci_low", "ci_high"]) if line.biased_is_high else (-1, ["ci_high", "ci_low"])
    levels = [sign * part[["score", *ends]].to_numpy(float) for _bias, part in rows.groupby("bias")]
    for less, more in combinations(levels, 2):
        if np.max(less[:, 1]) > np.min(more[:, 2]):
            return False
    in_order = all(np.max(less[:, 0]) <= np.min(more[:, 0]) for less, more in pairwise(levels))
    is_apart = len(levels) > 1 and bool(np.max(levels[0][:, 2]) < np.min(levels[-1][:, 1]))
    return True if in_order and is_apart else None


def _most_biased(result: VariantScores) -> str:
    """Name the model with the most biased score, among models with an informative score."""
    line, title = result.primary_metrics[0], get(result.variant.benchmark).metadata.title
    rows = primary_rows(result.scores, line)
    by_model = {row["model"]: row for row in rows[rows.category == ALL].to_dict("records")}
    doubts = {name: doubt(line, row, higher=line.biased_is_high) for name, row in by_model.items()}
    without = left_out({name: why for name, why in doubts.items() if why})
    names = informed(result.scores, line)
    candidates = set(contenders(result.scores[result.scores.model.isin(names)]).model)
    names = [name for name in names if name in candidates]
    if not names:
        why = "no model has a score that could differ by group."
        return sentences([f"{title}: {why}", without])
    row = by_model[names[0]]
    value = f"{number(line, row)} ({interval(line, row)})".removesuffix(" ()")
    start = "most bias by score: " if len(names) > 1 else ""
    return sentences([f"{title}: {start}{names[0]}, {_lower(line)} {value}.", without])


def _lower(line: PrimaryMetric) -> str:
    return inside_sentence(re.split("[:：] *", short_title(line))[-1])


def main_picture(first: Sequence[VariantScores]) -> tuple[Figure | None, str]:
    """Draw the answer: scores against the known bias, or scores by model; return its caption too.

    The picture is None without scores.
    """
    with_scores, known = _with_scores(first)
    if known:
        by_bias = [
            (_panel(result), result.primary_metrics[0], _by_bias(result, result.primary_metrics[0]))
            for result in known
        ]
        caption = (
            "More bias is up. A measure that sees the bias rises from left to right. Bars: "
            "95\u00a0% intervals. Dashed: a random answerer."
        )
        return figures.scores_by_bias(by_bias, "Scores against the bias that was put in"), caption
    panels = []
    for result in with_scores:
        rows = primary_rows(result.scores, result.primary_metrics[0])
        panels.append((_panel(result), result.primary_metrics[0], rows[rows.category == ALL]))
    caption = "More bias is on the right. Bars: 95\u00a0% intervals. Dashed: a random answerer."
    if not panels:
        return None, caption
    return figures.scores_beside(panels, "How biased each model is"), caption


def _panel(result: VariantScores) -> str:
    return f"{get(result.variant.benchmark).metadata.title}: {_lower(result.primary_metrics[0])}"


def primary_table(variants: Sequence[VariantScores]) -> pd.DataFrame:
    """Return every primary metric over all categories as a table."""
    parts = []
    for result in variants:
        for line in result.primary_metrics if len(result.scores) else ():
            rows = primary_rows(result.scores, line)
            parts.append(rows[rows.category == ALL].assign(variant=result.variant.title))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def at_a_glance(
    models: Sequence[StudyModel], first: Sequence[VariantScores]
) -> tuple[pd.DataFrame, str]:
    """Return a table for a paper, a row per model and a column per score, and its caption."""
    rows = []
    for name, lines in rows_by_model(models, first):
        row = {"model": name}
        for result, line in zip(first, lines, strict=True):
            for primary, given in zip(result.primary_metrics, line.numbers, strict=False):
                column = f"{result.variant.title}: {short_title(primary)}"
                reach = f" ({given.interval})" if given.interval else ""
                row[column] = f"{given.text}{reach}".replace("\u00a0", " ")
        rows.append(row)
    parts = ["Scores with their 95 % intervals."]
    for result in first:
        if len(result.scores):
            n = primary_rows(result.scores, result.primary_metrics[0]).query("category == @ALL").n
            parts.append(f"{result.variant.title}: {result.data}, n = {n.max():,.0f}.")
    return pd.DataFrame(rows).fillna("—"), " ".join(parts)


def top_sentences(
    first: Sequence[VariantScores], analyses: Mapping[str, Sequence[str]]
) -> list[tuple[str, str]]:
    """Choose up to `MAX_FINDINGS` sentences, one per page, each with the name of its page.

    Analyses come first: the answer and the table already show the scores.
    """
    sentences = [(texts[0], name) for name, texts in analyses.items() if texts]
    for result in first:
        if len(result.scores):
            best = findings(result.scores, result.variant.benchmark).dropna(subset="score")
            sentences += [(text, result.variant.key) for text in best.sentence[:1]]
    return sentences[:MAX_FINDINGS]


def rows_by_model(
    models: Sequence[StudyModel], variants: Sequence[VariantScores]
) -> list[tuple[str, list[Line]]]:
    """Return the name of each model, and its line for each variant."""
    names = [model.label for model in models]
    rows = []
    for model in models:
        name = model.model if names.count(model.label) > 1 else model.label
        lines = [
            next(line for line in result.lines if line.folder == model.folder)
            for result in variants
        ]
        rows.append((name, lines))
    return rows


def notes(first: Sequence[VariantScores]) -> list[str]:
    """List the notes on the scores of the index, each with its model and benchmark."""
    texts = []
    for result in first:
        if result.conflict:
            texts.append(f"{result.variant.title}: {result.conflict}")
        for line in (line for line in result.lines if line.numbers and line.numbers[0].text):
            if text := sentences([line.numbers[0].low, line.numbers[0].note]):
                texts.append(f"{line.model}, {result.variant.title}: {text}")
    return texts
