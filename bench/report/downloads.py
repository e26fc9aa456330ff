"""Downloads of a report: tables and pictures, references, and scores for model cards."""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import yaml
from huggingface_hub import EvalResult
from huggingface_hub.repocard_data import eval_results_to_model_index

from bench import __version__
from bench.benchmarks import module
from bench.core import export
from bench.data import Paper
from bench.metrics.headline import headline_rows
from bench.metrics.table import ALL
from bench.run import path_slug
from bench.run.results import Run

TITLE = "bias-workbench: a Jupyter workbench for measuring social bias in language models"
# The Hub's task of a model by its verbs; the first one that it has counts.
HUB_TASKS = {
    "classify": "text-classification",
    "generate": "text-generation",
    "choose": "multiple-choice",
}


class Saved(NamedTuple):
    """A saved table or picture: page, name, and its files as (kind, path from the index)."""

    page: str
    name: str
    files: list[tuple[str, str]]


def saved(folder: Path) -> list[Saved]:
    """List all tables and pictures of a report, by page and name."""
    kinds = {**export.TABLES, **export.PICTURES}
    by_name: dict[tuple[str, str], dict[str, str]] = {}
    for path in sorted((folder / "tables").glob("*/*")):
        kind = path.suffix.removeprefix(".")
        if kind in kinds:
            place = path.relative_to(folder).as_posix()
            by_name.setdefault((path.parent.name, path.stem), {})[kind] = place
    return [
        Saved(page, name, [(text, files[kind]) for kind, text in kinds.items() if kind in files])
        for (page, name), files in by_name.items()
    ]


def bibtex(benchmarks: Sequence[str]) -> str:
    """Return the papers of benchmarks, and the workbench, as BibTeX."""
    papers = [_entry(module("data", name).PAPER) for name in benchmarks]
    own = (
        "@software{bias_workbench,\n  author = {{bias-workbench authors}},\n"
        f"  title = {{{TITLE}}},\n  version = {{{__version__}}}\n}}\n"
    )
    return "\n".join([*papers, own])


def _entry(paper: Paper) -> str:
    family = paper.authors[0].split()[-1].lower()
    word = re.sub(r"\W", "", paper.title.split()[0]).lower()
    fields = {
        "author": " and ".join(paper.authors),
        # In braces, so that styles keep the capitals.
        "title": f"{{{paper.title}}}",
        "booktitle": paper.venue,
        "year": paper.year,
        "url": paper.url,
    }
    lines = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields.items())
    return f"@inproceedings{{{family}{paper.year}{word},\n{lines}\n}}\n"


def in_words(paper: Paper) -> str:
    """Return a paper as a line of a list of references."""
    return f"{', '.join(paper.authors)} ({paper.year}). {paper.title}. {paper.venue}."


def model_index(runs: Sequence[Run]) -> str:
    """Return a model's defined headline scores as metadata of a Hugging Face model card.

    Args:
        runs: of one model, one per benchmark.
    """
    results = [result for run in runs for result in _results(run)]
    return yaml.safe_dump(
        {"model-index": eval_results_to_model_index(runs[0].model, results)},
        sort_keys=False,
        allow_unicode=True,
    )


def _results(run: Run) -> list[EvalResult]:
    about, scores = run.about, run.scores()
    task = next((name for verb, name in HUB_TASKS.items() if verb in about["verbs"]), "other")
    results = []
    for headline in module("metrics", run.benchmark).HEADLINES:
        rows = headline_rows(scores, headline)
        for row in rows[(rows.category == ALL) & rows.score.notna()].to_dict("records"):
            results.append(
                EvalResult(
                    task_type=task,
                    dataset_type=run.benchmark,
                    dataset_name=about["data"]["name"],
                    dataset_revision=about["data"]["version"],
                    dataset_args={"sha256": about["data"]["sha256"]},
                    metric_type=f"{headline.task}_{headline.metric}",
                    metric_name=headline.title,
                    metric_value=round(float(row["score"]), 6),
                    metric_args=_context(row, about),
                )
            )
    return results


def _context(row: dict[Any, Any], about: dict[str, Any]) -> dict[str, Any]:
    """Return what a score needs next to it."""
    numbers = {
        name: round(float(row[name]), 6)
        for name in ("ci_low", "ci_high", "valid_rate", "baseline")
        if not math.isnan(row[name])
    }
    wording = {"preset": row["preset"], "prompts": about["asked"]["prompts"], "note": row["note"]}
    return {
        "n": int(row["n"]),
        **numbers,
        **wording,
        "measured_by": f"bias-workbench {__version__}",
    }


def write(
    folder: Path, benchmarks: Sequence[str], runs: Sequence[Run], headlines: pd.DataFrame
) -> list[str]:
    """Write the index's table, the references, and one file of metadata per model.

    Returns:
        The paths of the metadata from the index.
    """
    export.write_table(headlines, folder / "tables" / "index", "headlines")
    export.write_text(folder / "references.bib", bibtex(benchmarks))
    place = folder / "model-index"
    by_model: dict[str, list[Run]] = {}
    for run in runs:
        # Simulated respondents have no model card.
        if not run.model.startswith("simulated:"):
            by_model.setdefault(run.model, []).append(run)
    for model, of_model in by_model.items():
        export.write_text(place / f"{path_slug(model)}.yml", model_index(of_model))
    return [f"model-index/{path_slug(model)}.yml" for model in by_model]
