"""Write finished McBE projects as one data folder.

    diet.csv            the items in McBE's columns, one file per category
    dataset.toml        name, version, language, licence, labels of the categories
    prompts.toml        what models are asked in, if the first project has it
    provenance.jsonl    the log, with the items' names in this set; "" for drafts that were left out

A project is one batch of one category. A set may have several.
"""

from pathlib import Path
from typing import Any

import pandas as pd

from bench.core.cells import as_csv
from bench.core.errors import BadInput
from bench.core.files import atomic_write, explain_write_errors
from bench.curate.mcbe import log
from bench.curate.mcbe.rounds import Rounds
from bench.data import dataset, mcbe
from bench.data.dataset import MANIFEST, PROMPTS_FILE
from bench.data.readers import read_text, to_toml


def finish(*projects: Rounds, out: str | Path = "") -> Path:
    """Write the items of projects as one data folder, and return it.

    Args:
        projects: what `rounds.advance` or `rounds.look` gave; the first one's manifest counts.
        out: the folder; default: `dataset-VERSION` in the first project.

    Raises:
        BadInput: rounds are not over, no draft was kept, manifests differ, or the folder holds
            another set: nothing is overwritten.
    """
    first = projects[0].project
    if len({rounds.project.folder.resolve() for rounds in projects}) < len(projects):
        raise BadInput(f"{first.folder}: is given twice; each project goes into a set once")
    for rounds in projects:
        if rounds.waits:
            raise BadInput(f"{rounds.project.folder}: is not done; it waits for {rounds.waits}")
        _compare(projects[0], rounds)
    if all(rounds.rows.empty for rounds in projects):
        count = sum(len(rounds.drafts) for rounds in projects)
        raise BadInput(f"{first.folder}: all {count} drafts were left out, so there is no set")
    version = first.manifest.told.get("version", "1")
    folder = Path(out).expanduser() if out else first.folder / f"dataset-{version}"
    files = _files(projects)
    if (folder / MANIFEST).exists():
        for name, text in files.items():
            path = folder / name
            if not path.exists() or path.read_bytes() != text.encode():
                raise BadInput(
                    f"{path}: is there and differs; nothing is overwritten, so give the set "
                    "another `version` in project.toml"
                )
        return folder
    with explain_write_errors(folder):
        for name, text in files.items():
            atomic_write(folder / name, text)
    return folder


def _compare(first: Rounds, other: Rounds) -> None:
    """Check that two projects say the same of the set, and of a category that they share."""
    ours, theirs = (
        {
            **rounds.project.manifest.told,
            "language": ", ".join(rounds.project.manifest.languages),
            f"categories.{rounds.project.category}": rounds.project.manifest.categories,
        }
        for rounds in (first, other)
    )
    for key in sorted({*ours, *theirs}):
        is_other_category = key.startswith("categories.") and not (key in ours and key in theirs)
        if ours.get(key) != theirs.get(key) and not is_other_category:
            raise BadInput(
                f"{other.project.folder}, key `{key}`: differs from that of "
                f"{first.project.folder}; projects of one set say the same of it"
            )


def _files(projects: tuple[Rounds, ...]) -> dict[str, str]:
    """Return name and text of each file, the manifest last: half a set is none."""
    first = projects[0].project
    tables: dict[str, pd.DataFrame] = {}
    lines: list[dict[Any, Any]] = []
    for rounds in projects:
        project = rounds.project
        table = pd.concat([tables.get(project.category, rounds.rows[:0]), rounds.rows])
        start = len(table) - len(rounds.rows)
        names = {
            item: f"{project.category}:{start + row}"
            for row, item in enumerate(rounds.rows.item_id, start=1)
        }
        tables[project.category] = table
        for line in log.read(project.folder).to_dict("records"):
            draft = line.pop("item_id")
            ids = {"project": project.folder.name, "draft": draft, "item_id": names.get(draft, "")}
            lines.append(ids | line)
    labels = {
        rounds.project.category: rounds.project.manifest.categories[rounds.project.category]
        for rounds in projects
        if len(tables[rounds.project.category])
    }
    manifest = first.manifest._replace(categories=labels)
    prompts = first.folder / PROMPTS_FILE
    files = {PROMPTS_FILE: read_text(prompts)} if prompts.is_file() else {}
    for category in labels:
        rows = tables[category]
        items = rows[list(mcbe.COLUMNS)].assign(score=rows.score.astype(float))
        files[f"{category}.csv"] = as_csv(items)
    files[log.FILE] = log.as_lines(lines)
    files[MANIFEST] = to_toml({**manifest.told, **dataset.manifest_tables(manifest)})
    return files
