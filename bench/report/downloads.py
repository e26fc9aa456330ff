"""Downloads of a report: tables and pictures, and references."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from bench import __version__
from bench.benchmarks import get
from bench.benchmarks.base import Paper
from bench.core import export
from bench.core.errors import plain
from bench.core.files import atomic_write

TITLE = "bias-workbench: a Jupyter workbench for measuring social bias in language models"


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
    for paper in (get(name).metadata.paper for name in benchmarks):
        family = paper.authors[0].split()[-1].lower()
        word = re.sub(r"\W", "", paper.title.split()[0]).lower()
        fields = {
            "author": " and ".join(paper.authors),
            # Braces keep the capitals.
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


def write(
    folder: Path,
    benchmarks: Sequence[str],
    primary_metrics: pd.DataFrame,
    glance: pd.DataFrame,
    caption: str,
) -> None:
    """Write the index's tables and the references; `glance` is a small table for a paper."""
    tables = folder / "tables" / "index"
    export.write_table(primary_metrics, tables, "headlines")
    latex = "% needs \\usepackage{booktabs}\n" + export.to_latex(glance, caption=caption)
    atomic_write(tables / "at_a_glance.tex", latex)
    lines: list[list[str]] = [
        list(map(str, glance)),
        ["---"] * len(glance.columns),
        *glance.to_numpy().tolist(),
    ]
    cells = (" | ".join(plain(cell).replace("|", "\\|") for cell in line) for line in lines)
    markdown = "".join(f"| {line} |\n" for line in cells)
    atomic_write(tables / "at_a_glance.md", f"{markdown}\n{caption}\n")
    atomic_write(folder / "references.bib", bibtex(benchmarks))
