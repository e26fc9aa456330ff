"""The index of a report: models by benchmarks, headline scores, and findings in words."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from bench.benchmarks import module
from bench.core.i18n import _, note
from bench.metrics.headline import (
    findings,
    headline_rows,
    headlines,
    interval,
    number,
    short_title,
    top_findings,
    unread,
)
from bench.metrics.table import ALL, Headline
from bench.report.study import StudyModel, Variant
from bench.report.study_runs import ASKED, DONE, FAILED, Cell
from bench.run.results import Run, labels, table

# Number of findings on the index.
MOST = 5
Runs = Mapping[tuple[str, str], Run]


class Finding(NamedTuple):
    """A sentence and its page."""

    sentence: str
    page: str


def benchmarks(
    variants: Sequence[Variant], cells: Sequence[Cell], runs: Runs
) -> list[dict[str, Any]]:
    """Return headlines, one row per model and the score table of each variant."""
    return [_benchmark(variant, cells, runs) for variant in variants]


def _benchmark(variant: Variant, cells: Sequence[Cell], runs: Runs) -> dict[str, Any]:
    here = {model: run for (model, key), run in runs.items() if key == variant.key}
    scores = table(list(here.values()), beside=False) if here else pd.DataFrame()
    shown_headlines = (
        headlines(scores, variant.benchmark)
        if len(scores)
        else module("metrics", variant.benchmark).HEADLINES
    )
    # The models' names in the score table.
    shown = dict(zip(here, labels(list(here.values())), strict=True))
    rows = []
    for cell in (cell for cell in cells if cell.variant.key == variant.key):
        model = shown.get(cell.model.folder, cell.model.label)
        numbers = [
            _number(scores, headline, model) for headline in shown_headlines if cell.state == DONE
        ]
        rows.append(
            {
                "asked": cell.model.folder,
                "model": model,
                "done": cell.state == DONE,
                "why": _why(cell),
                "numbers": numbers,
            }
        )
    return {
        "name": variant.key,
        "benchmark": variant.benchmark,
        "title": variant.title,
        "scores": scores,
        "rows": rows,
        "headlines": [_heading(headline) for headline in shown_headlines],
    }


def _why(cell: Cell) -> str:
    """Return why a cell has no score."""
    if cell.state == ASKED:
        return _("still being asked")
    why = note(cell.why)
    if cell.state == FAILED:
        return _("failed: {why}", why=why)
    return _("not applicable: {why}", why=why)


def _heading(headline: Headline) -> dict[str, str]:
    worse = _(headline.worse)
    return {
        "title": short_title(headline),
        "direction": _("higher: {what}", what=worse)
        if headline.biased_is_high
        else _("lower: {what}", what=worse),
    }


def _number(scores: pd.DataFrame, headline: Headline, model: str) -> dict[str, str]:
    """Return a model's headline score with its interval and note."""
    rows = headline_rows(scores, headline)
    rows = rows[(rows.category == ALL) & (rows.model == model)]
    if rows.empty:
        gap = _("the model cannot be asked this task")
        return {
            "score": "",
            "interval": "",
            "low": "",
            "note": _("not applicable: {why}", why=gap),
        }
    row = rows.iloc[0].to_dict()
    return {
        "score": number(headline, row),
        "interval": interval(headline, row),
        "low": unread(headline, row),
        "note": note(row["note"]),
    }


def overview(models: Sequence[StudyModel], shown: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one row per model: its row of each variant."""
    names = [model.label for model in models]
    rows = []
    for model in models:
        cells = [
            next(row for row in variant["rows"] if row["asked"] == model.folder)
            for variant in shown
        ]
        name = model.model if names.count(model.label) > 1 else model.label
        rows.append({"model": name, "cells": cells})
    return rows


def headline_table(shown: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Return every headline score over all categories as a table."""
    parts = []
    for variant in shown:
        scores = variant["scores"]
        for headline in headlines(scores, variant["benchmark"]) if len(scores) else ():
            rows = headline_rows(scores, headline)
            parts.append(rows[rows.category == ALL].assign(variant=variant["title"]))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def top_sentences(
    shown: Sequence[dict[str, Any]], analyses: Mapping[str, Sequence[str]]
) -> list[Finding]:
    """Choose up to five findings: the first of each page, then the second of each benchmark.

    Args:
        analyses: findings of the analyses' pages, by name of the page.
    """
    sources = []
    for variant in shown:
        scores, benchmark = variant["scores"], variant["benchmark"]
        every = findings(scores, benchmark) if len(scores) else pd.DataFrame()
        if len(every):
            first = top_findings(every, benchmark)
            # Undefined scores come last.
            first = first.iloc[first.score.isna().argsort(kind="stable")]
            sources.append([Finding(text, variant["name"]) for text in first.sentence])
    sources += [[Finding(text, name) for text in texts[:1]] for name, texts in analyses.items()]
    longest = max(map(len, sources), default=0)
    return [source[k] for k in range(longest) for source in sources if k < len(source)][:MOST]
