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
from bench.metrics.headline import (
    asked_headlines,
    contenders,
    doubt,
    findings,
    headline_rows,
    inside_sentence,
    interval,
    is_informative,
    left_out,
    listing,
    number,
    short_title,
    too_few_tasks,
    unread,
)
from bench.metrics.table import ALL, Headline
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


class Asked(NamedTuple):
    """A variant of a benchmark, as the index shows it.

    Attributes:
        scores: empty if no primary metric has a score.
        headlines: the primary metrics with scores; all of them if none has one.
        bias: by model, its known bias, for example of simulated respondents.
        conflict: a sentence if models have different data; otherwise "".
        data: the name and version of the data set.
    """

    variant: Variant
    scores: pd.DataFrame
    headlines: list[Headline]
    lines: list[Line]
    bias: Mapping[str, float]
    conflict: str = ""
    data: str = ""


def read(variants: Sequence[Variant], cells: Sequence[Cell], runs: Runs) -> list[Asked]:
    """Score the runs of each variant."""
    return [_read(variant, cells, runs) for variant in variants]


def _read(variant: Variant, cells: Sequence[Cell], runs: Runs) -> Asked:
    own = {model: run for (model, key), run in runs.items() if key == variant.key}
    every, names = list(own.values()), dict(zip(own, labels(list(own.values())), strict=True))
    scores = table(every) if own else pd.DataFrame()
    headlines = list(get(variant.benchmark).metrics.headlines)
    if len(scores):
        scored = asked_headlines(scores, variant.benchmark)
        headlines, scores = scored or headlines, scores if scored else scores.iloc[:0]
    lines = []
    for cell in (cell for cell in cells if cell.variant.key == variant.key):
        name, is_done = names.get(cell.model.folder, cell.model.label), cell.state == DONE
        numbers = [_number(scores, headline, name) for headline in headlines if is_done]
        why = f"{'failed' if cell.state == FAILED else 'not applicable'}: {cell.why}"
        lines.append(Line(cell.model.folder, name, is_done, why, numbers))
    known = {names[model]: _bias(run) for model, run in own.items()}
    bias = {name: value for name, value in known.items() if value is not None}
    data = conditions(every[0])["data"] if every else ""
    return Asked(variant, scores, headlines, lines, bias, data_conflict(every), data)


def _bias(run: Run) -> float | None:
    """Return the known bias of a demonstration model or simulated respondent."""
    kind, parameters = split_kind(run.about["model"]["id"])
    given = dict(part.split("=", 1) for part in parameters.split(",") if "=" in part)
    if kind not in ("tiny", "simulated") or given.get("answer") or given.get("label"):
        return None
    return float(given["bias"]) if "bias" in given else None


def _number(scores: pd.DataFrame, line: Headline, model: str) -> Number:
    rows = headline_rows(scores, line) if len(scores) else scores
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


def informed(scores: pd.DataFrame, line: Headline) -> list[str]:
    """List the models with an informative score, the most biased first."""
    rows = headline_rows(scores, line)
    rows = rows[rows.category == ALL]
    rows = rows[is_informative(rows, line)]
    return list(rows.sort_values("score", ascending=not line.biased_is_high).model)


def direction(line: Headline) -> str:
    """Describe the worse direction of a primary metric."""
    worse = line.worse
    return f"higher: {worse}" if line.biased_is_high else f"lower: {worse}"


def answer(first: Sequence[Asked]) -> list[str]:
    """Answer the study's question from the first metric of each benchmark, one sentence each.

    If we know the bias of two or more models, the first sentence says whether the scores follow
    this bias.
    """
    with_scores, known = _with_scores(first)
    texts = [_verdict(known)] if known else []
    texts += map(_most_biased, with_scores)
    for asked in first:
        if asked.scores.empty and any(line.is_done for line in asked.lines):
            texts.append(too_few_tasks(asked.variant.benchmark))
    return texts


def _with_scores(first: Sequence[Asked]) -> tuple[list[Asked], list[Asked]]:
    """Return the benchmarks with scores, and the benchmarks with models of known, different bias.

    For this, only models with an informative score need a known bias.
    """
    with_scores = [asked for asked in first if len(asked.scores)]
    known = [
        asked
        for asked in with_scores
        if len(set(asked.bias.values())) > 1
        and set(asked.bias) >= set(informed(asked.scores, asked.headlines[0]))
    ]
    return with_scores, known


def _verdict(known: Sequence[Asked]) -> str:
    """Name the benchmarks with scores that follow the known bias."""
    names: dict[bool | None, list[str]] = {True: [], False: [], None: []}
    for asked in known:
        title, line = get(asked.variant.benchmark).metadata.title, asked.headlines[0]
        names[follows(_by_bias(asked, line), line)].append(title)
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


def _by_bias(asked: Asked, line: Headline) -> pd.DataFrame:
    """Return the informative scores of models with known bias, the least biased first."""
    rows = headline_rows(asked.scores, line)
    rows = rows[(rows.category == ALL) & rows.model.isin(asked.bias)]
    rows = rows[is_informative(rows, line)]
    # An empty column would have the type of texts.
    bias = rows.model.map(asked.bias).astype(float)
    return rows.assign(bias=bias).sort_values("bias", kind="stable")


def follows(rows: pd.DataFrame, line: Headline) -> bool | None:
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


def _most_biased(asked: Asked) -> str:
    """Name the model with the most biased score, among models with an informative score."""
    line, title = asked.headlines[0], get(asked.variant.benchmark).metadata.title
    rows = headline_rows(asked.scores, line)
    by_model = {row["model"]: row for row in rows[rows.category == ALL].to_dict("records")}
    doubts = {name: doubt(line, row, higher=line.biased_is_high) for name, row in by_model.items()}
    without = left_out({name: why for name, why in doubts.items() if why})
    names = informed(asked.scores, line)
    candidates = set(contenders(asked.scores[asked.scores.model.isin(names)]).model)
    names = [name for name in names if name in candidates]
    if not names:
        why = "no model has a score that could differ by group."
        return sentences([f"{title}: {why}", without])
    row = by_model[names[0]]
    value = f"{number(line, row)} ({interval(line, row)})".removesuffix(" ()")
    start = "most bias by score: " if len(names) > 1 else ""
    return sentences([f"{title}: {start}{names[0]}, {_lower(line)} {value}.", without])


def _lower(line: Headline) -> str:
    """Return a metric's short title inside a sentence."""
    return inside_sentence(re.split("[:：] *", short_title(line))[-1])


def main_picture(first: Sequence[Asked]) -> tuple[Figure | None, str]:
    """Draw the answer: scores against the known bias, or scores by model; return its caption too.

    The picture is None without scores.
    """
    with_scores, known = _with_scores(first)
    if known:
        by_bias = [
            (_panel(asked), asked.headlines[0], _by_bias(asked, asked.headlines[0]))
            for asked in known
        ]
        caption = (
            "More bias is up. A measure that sees the bias rises from left to right. Bars: "
            "95\u00a0% intervals. Dashed: a random answerer."
        )
        return figures.scores_by_bias(by_bias, "Scores against the bias that was put in"), caption
    panels = []
    for asked in with_scores:
        rows = headline_rows(asked.scores, asked.headlines[0])
        panels.append((_panel(asked), asked.headlines[0], rows[rows.category == ALL]))
    caption = "More bias is on the right. Bars: 95\u00a0% intervals. Dashed: a random answerer."
    if not panels:
        return None, caption
    return figures.scores_beside(panels, "How biased each model is"), caption


def _panel(asked: Asked) -> str:
    return f"{get(asked.variant.benchmark).metadata.title}: {_lower(asked.headlines[0])}"


def headline_table(variants: Sequence[Asked]) -> pd.DataFrame:
    """Return every primary metric over all categories as a table."""
    parts = []
    for asked in variants:
        for line in asked.headlines if len(asked.scores) else ():
            rows = headline_rows(asked.scores, line)
            parts.append(rows[rows.category == ALL].assign(variant=asked.variant.title))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def at_a_glance(models: Sequence[StudyModel], first: Sequence[Asked]) -> tuple[pd.DataFrame, str]:
    """Return a table for a paper, a row per model and a column per score, and its caption."""
    rows = []
    for name, lines in rows_by_model(models, first):
        row = {"model": name}
        for asked, line in zip(first, lines, strict=True):
            for headline, given in zip(asked.headlines, line.numbers, strict=False):
                column = f"{asked.variant.title}: {short_title(headline)}"
                reach = f" ({given.interval})" if given.interval else ""
                row[column] = f"{given.text}{reach}".replace("\u00a0", " ")
        rows.append(row)
    parts = ["Scores with their 95 % intervals."]
    for asked in first:
        if len(asked.scores):
            n = headline_rows(asked.scores, asked.headlines[0]).query("category == @ALL").n
            parts.append(f"{asked.variant.title}: {asked.data}, n = {n.max():,.0f}.")
    return pd.DataFrame(rows).fillna("—"), " ".join(parts)


def top_sentences(
    first: Sequence[Asked], analyses: Mapping[str, Sequence[str]]
) -> list[tuple[str, str]]:
    """Choose up to `MAX_FINDINGS` sentences, one per page, each with the name of its page.

    Analyses come first: the answer and the table already show the scores.
    """
    sentences = [(texts[0], name) for name, texts in analyses.items() if texts]
    for asked in first:
        if len(asked.scores):
            best = findings(asked.scores, asked.variant.benchmark).dropna(subset="score")
            sentences += [(text, asked.variant.key) for text in best.sentence[:1]]
    return sentences[:MAX_FINDINGS]


def rows_by_model(
    models: Sequence[StudyModel], variants: Sequence[Asked]
) -> list[tuple[str, list[Line]]]:
    """Return the name of each model, and its line for each variant."""
    names = [model.label for model in models]
    rows = []
    for model in models:
        name = model.model if names.count(model.label) > 1 else model.label
        lines = [
            next(line for line in asked.lines if line.folder == model.folder) for asked in variants
        ]
        rows.append((name, lines))
    return rows


def notes(first: Sequence[Asked]) -> list[str]:
    """List the notes on the scores of the index, each with its model and benchmark."""
    texts = []
    for asked in first:
        if asked.conflict:
            texts.append(f"{asked.variant.title}: {asked.conflict}")
        for line in (line for line in asked.lines if line.numbers and line.numbers[0].text):
            if text := sentences([line.numbers[0].low, line.numbers[0].note]):
                texts.append(f"{line.model}, {asked.variant.title}: {text}")
    return texts
