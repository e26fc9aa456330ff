"""The content of a report's index: the answer to the study's question, one table, some findings."""

import re
from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from bench.benchmarks import get
from bench.core.text import sentences
from bench.figures.forest import scores_beside, scores_by_bias
from bench.metrics import primary
from bench.metrics.table import ALL, PrimaryMetric
from bench.report.study import StudyModel, Variant
from bench.report.study_runs import DONE, FAILED, Cell
from bench.run.models import conditions
from bench.run.results import Run, data_conflict, labels, table
from bench.scorers import split_kind

Runs = Mapping[tuple[str, str], Run]
# The kinds of models that are references for real ones.
OF_KNOWN_BIAS = ("tiny", "simulated")


class Line(NamedTuple):
    """A model on a variant.

    Attributes:
        why: the reason why it has no scores; else "".
        numbers: a row of `numbers` for each primary metric; None without a score.
    """

    model: str
    why: str
    numbers: list[dict[Any, Any] | None]


class VariantScores(NamedTuple):
    """A variant of a benchmark, as the index shows it.

    Attributes:
        scores: the score tables of its runs; empty if no primary metric has a score.
        primary_metrics: the primary metrics with scores; all of them if none has one.
        lines: by the folder of the model.
        bias: by model, its known bias, for example of simulated respondents.
        conflict: a sentence if models have different data; otherwise "".
        data: the name and version of the data set.
        has_real: whether the study has a real model, with or without a score.
    """

    variant: Variant
    scores: pd.DataFrame
    primary_metrics: list[PrimaryMetric]
    lines: Mapping[str, Line]
    bias: Mapping[str, float]
    conflict: str = ""
    data: str = ""
    has_real: bool = False

    @property
    def first(self) -> PrimaryMetric:
        return self.primary_metrics[0]

    @property
    def benchmark(self) -> str:
        return get(self.variant.benchmark).metadata.title

    @property
    def panel(self) -> str:
        """The title of a panel with its first metric."""
        return f"{self.benchmark}: {_lower(self.first)}"

    def overall(self, line: PrimaryMetric) -> pd.DataFrame:
        """Return the scores of a metric over all categories, a row per model."""
        rows = primary.primary_rows(self.scores, line)
        return rows[rows.category == ALL]

    def informative(self) -> pd.DataFrame:
        """Return the informative rows of the first metric, the most biased first."""
        rows = self.overall(self.first)
        rows = rows[primary.is_informative(rows, self.first)]
        return rows.sort_values("score", ascending=not self.first.biased_is_high)

    @property
    def has_known_bias(self) -> bool:
        """Whether we know the bias of all models with an informative score, and it differs.

        A study with a real model is about this model, whether its score is informative or not.
        """
        if self.has_real or self.scores.empty or len(set(self.bias.values())) < 2:
            return False
        real = primary.real_models(self.overall(self.first))
        return set(self.bias) >= {*self.informative().model, *real.model}

    def by_bias(self) -> pd.DataFrame:
        """Return the informative rows of models with known bias, the least biased first."""
        rows = self.overall(self.first)
        rows = rows[primary.is_informative(rows, self.first) & rows.model.isin(self.bias)]
        # An empty column would have the type of texts.
        bias = rows.model.map(self.bias).astype(float)
        return rows.assign(bias=bias).sort_values("bias", kind="stable")


def read(variants: Sequence[Variant], cells: Sequence[Cell], runs: Runs) -> list[VariantScores]:
    has_real = any(split_kind(cell.model.model)[0] not in OF_KNOWN_BIAS for cell in cells)
    return [_read(variant, cells, runs)._replace(has_real=has_real) for variant in variants]


def _read(variant: Variant, cells: Sequence[Cell], runs: Runs) -> VariantScores:
    own = {model: run for (model, key), run in runs.items() if key == variant.key}
    every, names = list(own.values()), dict(zip(own, labels(list(own.values())), strict=True))
    scores = table(every) if own else pd.DataFrame()
    metrics = list(get(variant.benchmark).metrics.primary_metrics)
    if len(scores):
        scored = primary.primary_metrics(scores, variant.benchmark)
        metrics, scores = scored or metrics, scores if scored else scores.iloc[:0]
    by_metric = [numbers(scores, line) if len(scores) else {} for line in metrics]
    lines = {}
    for cell in (cell for cell in cells if cell.variant.key == variant.key):
        name = names.get(cell.model.folder, cell.model.label)
        why = f"{'failed' if cell.state == FAILED else 'not applicable'}: {cell.why}"
        values = [by_model.get(name) for by_model in by_metric]
        lines[cell.model.folder] = Line(name, "" if cell.state == DONE else why, values)
    known = {names[model]: _bias(run) for model, run in own.items()}
    bias = {name: value for name, value in known.items() if value is not None}
    data = conditions(every[0])["data"] if every else ""
    return VariantScores(variant, scores, metrics, lines, bias, data_conflict(every), data)


def _bias(run: Run) -> float | None:
    """Return the known bias of a demonstration model or simulated respondent."""
    kind, parameters = split_kind(run.metadata["model"]["id"])
    given = dict(part.split("=", 1) for part in parameters.split(",") if "=" in part)
    if kind not in OF_KNOWN_BIAS or given.get("answer") or given.get("label"):
        return None
    return float(given["bias"]) if "bias" in given else None


def numbers(scores: pd.DataFrame, line: PrimaryMetric) -> dict[str, dict[Any, Any]]:
    """Return the rows of a metric over all categories by model, with texts for the index.

    These are `text`, `reach` (of the interval), `low` (a sentence on unread answers), `released`
    (the released code's number, if it differs), and `share` and `baseline_share`, the positions
    between the best (0) and the worst possible value (1); NaN if undefined.
    """
    rows = primary.primary_rows(scores, line)
    same = (scores.task == line.task) & (scores.metric == line.metric)
    official = scores[same & (scores.preset == "official") & (scores.category == ALL)]
    official = official[official.preset != scores.preset.iloc[0]]
    released = {row["model"]: primary.number(line, row) for row in official.to_dict("records")}
    return {
        row["model"]: {
            **row,
            "text": primary.number(line, row),
            "reach": primary.interval(line, row),
            "low": primary.unread(line, row),
            "released": released.get(row["model"], ""),
            "share": line.badness(row["score"]),
            "baseline_share": line.badness(row["baseline"]),
        }
        for row in rows[rows.category == ALL].to_dict("records")
    }


def direction(line: PrimaryMetric) -> str:
    return f"{'higher' if line.biased_is_high else 'lower'}: {line.worse}"


def answer(first: Sequence[VariantScores]) -> list[str]:
    """Answer the study's question from the first metric of each benchmark, one sentence each.

    If we know the bias of two or more models, the first sentence says whether the scores follow
    this bias.
    """
    known = [result for result in first if result.has_known_bias]
    texts = [_verdict(known)] if known else []
    texts += [_most_biased(result) for result in first if len(result.scores)]
    for result in first:
        if result.scores.empty and any(not line.why for line in result.lines.values()):
            texts.append(primary.too_few_tasks(result.variant.benchmark))
    return texts


def _verdict(known: Sequence[VariantScores]) -> str:
    """Name the benchmarks with scores that follow the known bias."""
    names: dict[bool | None, list[str]] = {True: [], False: [], None: []}
    for result in known:
        names[follows(result.by_bias(), result.first)].append(result.benchmark)
    seen, unseen, unsure = (primary.listing(names[key]) for key in (True, False, None))
    if not (seen or unseen):
        return f"It cannot be told whether the scores of {unsure} follow the bias that was put in."
    start = "In part" if unseen or unsure else "Yes"
    texts = [f"No: no score follows the bias that was put in ({unseen})."]
    if seen:
        texts = [f"{start}: the scores of {seen} follow the bias that was put in."]
        texts += [f"This is not so for {unseen}."] if unseen else []
    texts += [f"For {unsure} it cannot be told."] if unsure else []
    return " ".join(texts)


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
    """Name the model with the most biased score, among models with an informative score.

    If there are real models, it is one of them. If their scores say nothing, neither do we.
    """
    line, rows = result.first, result.overall(result.first)
    if result.has_real and primary.real_models(rows).empty:
        missing = {one.model: one.why or "no score" for one in result.lines.values() if one.why}
        text = f"{result.benchmark}: no real model has a score."
        return sentences([text, primary.left_out(missing)])
    rows = primary.contenders(rows)
    by_model = {row["model"]: row for row in rows.to_dict("records")}
    higher = line.biased_is_high
    doubts = {name: primary.doubt(line, row, higher=higher) for name, row in by_model.items()}
    doubts = {name: why for name, why in doubts.items() if why}
    known = rows[~rows.model.isin(doubts)]
    known = primary.most_biased_first(result.scores, line, known)

    def scored(row: Mapping[Any, Any]) -> str:
        ends = f"{primary.number(line, row)} ({primary.interval(line, row)})".removesuffix(" ()")
        text = f"{_lower(line)} {ends}"
        if gap := primary.direction_row(result.scores, line, row["model"]):
            text = f"{primary.direction(gap)}; {primary.measure_words(line.metric)} {ends}"
        return text

    if known.empty and len(primary.real_models(rows)):
        texts = [
            f"{name}: {scored(by_model[name])}, but {why}; no statement."
            for name, why in doubts.items()
        ]
        return sentences([f"{result.benchmark}: {texts[0]}", *texts[1:]])
    without = primary.left_out(doubts)
    if known.empty:
        why = "no model has a score that could differ by group."
        return sentences([f"{result.benchmark}: {why}", without])
    start = "most bias by score: " if len(known) > 1 else ""
    first = known.model.iloc[0]
    text = f"{result.benchmark}: {start}{first}, {scored(by_model[first])}."
    return sentences([text, without])


def _lower(line: PrimaryMetric) -> str:
    return primary.inside_sentence(re.split("[:：] *", primary.short_title(line))[-1])


def main_picture(first: Sequence[VariantScores]) -> tuple[Figure | None, str]:
    """Draw the answer: scores against the known bias, or scores by model; return its caption too.

    The picture is None without scores.
    """
    with_scores = [result for result in first if len(result.scores)]
    known = [result for result in first if result.has_known_bias]
    bars = "Bars: 95\u00a0% intervals. Dashed: a random answerer."
    panels = {result.panel: result.first for result in known or with_scores}
    if known:
        rows = pd.concat([result.by_bias().assign(panel=result.panel) for result in known])
        caption = f"More bias is up. A measure that sees the bias rises from left to right. {bars}"
        title = "Scores against the bias that was put in"
        return scores_by_bias(rows, panels, title), caption
    caption = f"More bias is on the right. {bars}"
    if not panels:
        return None, caption
    parts = [result.overall(result.first).assign(panel=result.panel) for result in with_scores]
    return scores_beside(pd.concat(parts), panels, "How biased each model is"), caption


def primary_table(variants: Sequence[VariantScores]) -> pd.DataFrame:
    """Return every primary metric over all categories as a table."""
    parts = [
        result.overall(line).assign(variant=result.variant.title)
        for result in variants
        for line in (result.primary_metrics if len(result.scores) else ())
    ]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def at_a_glance(
    models: Sequence[StudyModel], first: Sequence[VariantScores]
) -> tuple[pd.DataFrame, str]:
    """Return a table for a paper, a row per model and a column per score, and its caption."""
    rows = []
    for name, lines in rows_by_model(models, first):
        row = {"model": name}
        for result, own in zip(first, lines, strict=True):
            for line, given in zip(result.primary_metrics, own.numbers, strict=False):
                if given:
                    column = f"{result.variant.title}: {primary.short_title(line)}"
                    text = f"{given['text']} ({given['reach']})".removesuffix(" ()")
                    row[column] = text.replace("\u00a0", " ")
        rows.append(row)
    parts = ["Scores with their 95 % intervals."]
    for result in first:
        if len(result.scores):
            n = result.overall(result.first).n.max()
            parts.append(f"{result.variant.title}: {result.data}, n = {n:,.0f}.")
    return pd.DataFrame(rows).fillna("—"), " ".join(parts)


def rows_by_model(
    models: Sequence[StudyModel], variants: Sequence[VariantScores]
) -> list[tuple[str, list[Line]]]:
    """Return the name of each model, and its line for each variant."""
    names, none = [model.label for model in models], Line("", "not asked", [])
    return [
        (
            model.model if names.count(model.label) > 1 else model.label,
            [result.lines.get(model.folder, none) for result in variants],
        )
        for model in models
    ]


def notes(first: Sequence[VariantScores]) -> list[str]:
    """List the notes on the scores of the index, each with its model and benchmark."""
    texts = []
    for result in first:
        if result.conflict:
            texts.append(f"{result.variant.title}: {result.conflict}")
        for line in result.lines.values():
            given = line.numbers[0] if line.numbers else None
            if given and (text := sentences([given["low"], given["note"]])):
                texts.append(f"{line.model}, {result.variant.title}: {text}")
    return texts
