"""Downloads of a report: tables and pictures, and references."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from bench import __version__
from bench.benchmarks import get
from bench.benchmarks.base import Paper
from bench.core import export
from bench.core.errors import plain

OWN = f"""\
@software{{bias_workbench,
  author = {{{{bias-workbench authors}}}},
  title = {{bias-workbench: a Jupyter workbench for measuring social bias in language models}},
  version = {{{__version__}}}
}}
"""


def saved(folder: Path) -> list[dict[str, Any]]:
    """List all tables and pictures of a report: page, name, and files as (kind, address)."""
    kinds = {**export.TABLES, **export.PICTURES}
    files: dict[tuple[str, str], dict[str, str]] = {}
    for path in sorted((folder / "tables").glob("*/*")):
        kind = path.suffix.removeprefix(".")
        if kind in kinds:
            address = path.relative_to(folder).as_posix()
            files.setdefault((path.parent.name, path.stem), {})[kind] = address
    return [
        {
            "page": page,
            "name": name,
            "files": [(text, own[kind]) for kind, text in kinds.items() if kind in own],
        }
        for (page, name), own in files.items()
    ]


def bibtex(papers: Sequence[Paper]) -> str:
    """Return papers, and the workbench, as BibTeX."""
    entries = []
    for paper in papers:
        family = paper.authors[0].split()[-1].lower()
        word = re.sub(r"\W", "", paper.title.split()[0]).lower()
        # Braces keep the capitals of a title.
        entries.append(
            f"@inproceedings{{{family}{paper.year}{word},\n"
            f"  author = {{{' and '.join(paper.authors)}}},\n"
            f"  title = {{{{{paper.title}}}}},\n"
            f"  booktitle = {{{paper.venue}}},\n"
            f"  year = {{{paper.year}}},\n"
            f"  url = {{{paper.url}}}\n}}\n"
        )
    return "\n".join([*entries, OWN])


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
    export.write_text(tables / "at_a_glance.tex", latex)
    lines = [list(map(str, glance)), ["---"] * len(glance.columns), *glance.to_numpy().tolist()]
    cells = (" | ".join(plain(cell).replace("|", "\\|") for cell in line) for line in lines)
    markdown = "".join(f"| {line} |\n" for line in cells)
    export.write_text(tables / "at_a_glance.md", f"{markdown}\n{caption}\n")
    papers = [get(name).metadata.paper for name in benchmarks]
    export.write_text(folder / "references.bib", bibtex(papers))
