"""What the index tells: a row a model and a column a benchmark, then every headline number, and the findings in words."""

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

# So many findings stand on the index.
MOST = 5
Runs = Mapping[tuple[str, str], Run]


class Finding(NamedTuple):
    """A sentence, and the page that it is from."""

    sentence: str
    page: str


def benchmarks(
    variants: Sequence[Variant], cells: Sequence[Cell], runs: Runs
) -> list[dict[str, Any]]:
    """What the index shows of each variant: its headlines, a row per model, and the score table of these."""
    return [_benchmark(variant, cells, runs) for variant in variants]


def _benchmark(variant: Variant, cells: Sequence[Cell], runs: Runs) -> dict[str, Any]:
    here = {model: run for (model, key), run in runs.items() if key == variant.key}
    scores = table(list(here.values()), beside=False) if here else pd.DataFrame()
    shown_headlines = (
        headlines(scores, variant.benchmark)
        if len(scores)
        else module("metrics", variant.benchmark).HEADLINES
    )
    # The names under which the score table has them: short ones only where those tell the models apart.
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
    """Why a cell has no number."""
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
    """A headline's number of one model, with what has to stand beside it."""
    some = headline_rows(scores, headline)
    some = some[(some.category == ALL) & (some.model == model)]
    if some.empty:
        gap = _("the model cannot be asked this task")
        return {
            "score": "",
            "interval": "",
            "low": "",
            "note": _("not applicable: {why}", why=gap),
        }
    found = some.iloc[0].to_dict()
    return {
        "score": number(headline, found),
        "interval": interval(headline, found),
        "low": unread(headline, found),
        "note": note(found["note"]),
    }


def overview(models: Sequence[StudyModel], shown: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row per model: its first headline number on each variant, or why there is none."""
    names = [model.label for model in models]
    rows = []
    for model in models:
        cells = [next(row for row in one["rows"] if row["asked"] == model.folder) for one in shown]
        name = model.model if names.count(model.label) > 1 else model.label
        rows.append({"model": name, "cells": cells})
    return rows


def headline_table(shown: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """The numbers of the index as a table: every headline of every benchmark, over all categories."""
    parts = []
    for one in shown:
        for headline in headlines(one["scores"], one["benchmark"]) if len(one["scores"]) else ():
            rows = headline_rows(one["scores"], headline)
            parts.append(rows[rows.category == ALL].assign(variant=one["title"]))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def told(shown: Sequence[dict[str, Any]], analyses: Mapping[str, Sequence[str]]) -> list[Finding]:
    """Three to five findings: the first of every page, then the second of each benchmark, until there are enough.

    Args:
        analyses: names of analysis notebooks, each with the sentences that its page lists as findings.
    """
    sources = []
    for one in shown:
        found = findings(one["scores"], one["benchmark"]) if len(one["scores"]) else pd.DataFrame()
        if len(found):
            first = top_findings(found, one["benchmark"])
            # What is undefined is said where nothing else can be.
            first = first.iloc[first.score.isna().argsort(kind="stable")]
            sources.append([Finding(text, one["name"]) for text in first.sentence])
    sources += [[Finding(text, name) for text in some[:1]] for name, some in analyses.items()]
    longest = max(map(len, sources), default=0)
    return [source[k] for k in range(longest) for source in sources if k < len(source)][:MOST]
