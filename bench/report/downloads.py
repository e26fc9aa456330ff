"""Downloads of a report: tables and pictures, references, and scores for model cards."""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

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
    entries = []
    for paper in (module("data", name).PAPER for name in benchmarks):
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
        entries.append(f"@inproceedings{{{family}{paper.year}{word},\n{lines}\n}}\n")
    own = (
        "@software{bias_workbench,\n  author = {{bias-workbench authors}},\n"
        f"  title = {{{TITLE}}},\n  version = {{{__version__}}}\n}}\n"
    )
    return "\n".join([*entries, own])


def in_words(paper: Paper) -> str:
    """Return a paper as a line of a list of references."""
    return f"{', '.join(paper.authors)} ({paper.year}). {paper.title}. {paper.venue}."


def model_index(runs: Sequence[Run]) -> str:
    """Return the defined headline scores of a model's runs as metadata of a model card."""
    results = []
    for run in runs:
        about, scores = run.about, run.scores()
        task = next((name for verb, name in HUB_TASKS.items() if verb in about["verbs"]), "other")
        for headline in module("metrics", run.benchmark).HEADLINES:
            rows = headline_rows(scores, headline)
            for row in rows[(rows.category == ALL) & rows.score.notna()].to_dict("records"):
                numbers = {
                    name: round(float(row[name]), 6)
                    for name in ("ci_low", "ci_high", "valid_rate", "baseline")
                    if not math.isnan(row[name])
                }
                result = EvalResult(
                    task_type=task,
                    dataset_type=run.benchmark,
                    dataset_name=about["data"]["name"],
                    dataset_revision=about["data"]["version"],
                    dataset_args={"sha256": about["data"]["sha256"]},
                    metric_type=f"{headline.task}_{headline.metric}",
                    metric_name=headline.title,
                    metric_value=round(float(row["score"]), 6),
                    metric_args={
                        "n": int(row["n"]),
                        **numbers,
                        "preset": row["preset"],
                        "prompts": about["asked"]["prompts"],
                        "note": row["note"],
                        "measured_by": f"bias-workbench {__version__}",
                    },
                )
                results.append(result)
    content = {"model-index": eval_results_to_model_index(runs[0].model, results)}
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True)


def write(
    folder: Path, benchmarks: Sequence[str], runs: Sequence[Run], headlines: pd.DataFrame
) -> list[str]:
    """Write the index's table, the references, and metadata; return the metadata's paths."""
    export.write_table(headlines, folder / "tables" / "index", "headlines")
    export.write_text(folder / "references.bib", bibtex(benchmarks))
    by_model: dict[str, list[Run]] = {}
    for run in runs:
        # Simulated respondents have no model card.
        if not run.model.startswith("simulated:"):
            by_model.setdefault(f"model-index/{path_slug(run.model)}.yml", []).append(run)
    for path, of_model in by_model.items():
        export.write_text(folder / path, model_index(of_model))
    return list(by_model)
