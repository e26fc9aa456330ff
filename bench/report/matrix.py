"""The index of a report: models by benchmarks, headline scores, and findings in words."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

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


def benchmarks(
    variants: Sequence[Variant], cells: Sequence[Cell], runs: Runs
) -> list[dict[str, Any]]:
    """Return headlines, one row per model and the score table of each variant."""
    return [_benchmark(variant, cells, runs) for variant in variants]


def _benchmark(variant: Variant, cells: Sequence[Cell], runs: Runs) -> dict[str, Any]:
    of_variant = {model: run for (model, key), run in runs.items() if key == variant.key}
    scores, shown = pd.DataFrame(), list(module("metrics", variant.benchmark).HEADLINES)
    if of_variant:
        scores = table(list(of_variant.values()), beside=False)
    if len(scores):
        shown = headlines(scores, variant.benchmark)
    # The models' names in the score table.
    names = dict(zip(of_variant, labels(list(of_variant.values())), strict=True))
    rows = []
    for cell in (cell for cell in cells if cell.variant.key == variant.key):
        model, is_done = names.get(cell.model.folder, cell.model.label), cell.state == DONE
        reason = _("failed: {why}") if cell.state == FAILED else _("not applicable: {why}")
        why = reason.format(why=note(cell.why))
        rows.append(
            {
                "asked": cell.model.folder,
                "model": model,
                "done": is_done,
                "why": _("still being asked") if cell.state == ASKED else why,
                "numbers": [_number(scores, line, model) for line in shown] if is_done else [],
            }
        )
    return {
        "name": variant.key,
        "benchmark": variant.benchmark,
        "title": variant.title,
        "scores": scores,
        "rows": rows,
        "headlines": [
            {
                "title": short_title(headline),
                "direction": _("higher: {what}", what=_(headline.worse))
                if headline.biased_is_high
                else _("lower: {what}", what=_(headline.worse)),
            }
            for headline in shown
        ],
    }


def _number(scores: pd.DataFrame, headline: Headline, model: str) -> dict[str, str]:
    """Return a model's headline score with its interval and note."""
    rows = headline_rows(scores, headline)
    rows = rows[(rows.category == ALL) & (rows.model == model)]
    if rows.empty:
        why = _("not applicable: {why}", why=_("the model cannot be asked this task"))
        return {"score": "", "interval": "", "low": "", "note": why}
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
    return [
        {
            "model": model.model if names.count(model.label) > 1 else model.label,
            "cells": [
                next(row for row in variant["rows"] if row["asked"] == model.folder)
                for variant in shown
            ],
        }
        for model in models
    ]


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
) -> list[tuple[str, str]]:
    """Choose up to five findings, each a sentence and the name of its page.

    The first of each page, then the second of each benchmark; `analyses` has findings by page.
    """
    sources = []
    for variant in shown:
        scores, benchmark = variant["scores"], variant["benchmark"]
        every = findings(scores, benchmark) if len(scores) else pd.DataFrame()
        if len(every):
            first = top_findings(every, benchmark)
            # Undefined scores come last.
            first = first.iloc[first.score.isna().argsort(kind="stable")]
            sources.append([(text, variant["name"]) for text in first.sentence])
    sources += [[(text, name) for text in texts[:1]] for name, texts in analyses.items()]
    return [pair for pairs in zip_longest(*sources) for pair in pairs if pair][:MOST]
