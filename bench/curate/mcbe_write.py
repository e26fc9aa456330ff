"""From projects whose rounds are over to a data folder that every room reads: items, manifest, and where each value is from.

diet.csv            the items, in McBE's columns, a file a category
dataset.toml        name, version, language, licence, and what the categories are called
prompts.toml        what models are asked in, where the first project has it
provenance.jsonl    each value's line of the log, under the item's name in this set; drafts that were left out have none

A project is one batch of one category. A set may have several: more categories, or what was added to one later.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from bench.core.cells import as_csv
from bench.core.errors import BadInput
from bench.core.files import atomic_write, explain_write_errors
from bench.curate import provenance
from bench.curate.mcbe_rounds import Rounds
from bench.data import dataset, mcbe, readers
from bench.data.dataset import MANIFEST, PROMPTS_FILE
from bench.data.readers import read_text


def finish(found: Rounds, *others: Rounds, out: str | Path = "") -> Path:
    """Write the items of projects as one data folder, and return it.

    Args:
        found: what `mcbe_rounds.advance` or `look` gave; its manifest is that of the set.
        others: of further projects, whose manifests say the same of the set.
        out: the folder; `dataset-VERSION` in the first project's without it.

    Raises:
        BadInput: rounds are not over, no draft was kept, manifests differ, or the folder holds another set: nothing is written over.
        RunFailed: a file cannot be written.
    """
    every = (found, *others)
    if len({one.project.folder.resolve() for one in every}) < len(every):
        raise BadInput(f"{found.project.folder}: is given twice; each project goes into a set once")
    for one in every:
        if one.waits:
            raise BadInput(f"{one.project.folder}: is not done; it waits for {one.waits}")
        _compare(found, one)
    if all(one.rows.empty for one in every):
        drafts = sum(len(one.drafts) for one in every)
        raise BadInput(
            f"{found.project.folder}: all {drafts} drafts were left out, so there is no set"
        )
    told = found.project.manifest.told
    folder = (
        Path(out).expanduser()
        if out
        else found.project.folder / f"dataset-{told.get('version', '1')}"
    )
    files = _files(every)
    if (folder / MANIFEST).exists():
        for name, text in files.items():
            path = folder / name
            if not path.exists() or path.read_bytes() != text.encode():
                raise BadInput(
                    f"{path}: is there and differs; give the set another `version` in project.toml, for nothing is written over"
                )
        return folder
    with explain_write_errors(folder):
        for name, text in files.items():
            atomic_write(folder / name, text)
    return folder


def _compare(found: Rounds, other: Rounds) -> None:
    """See that two projects say the same of the set, and of the category if it is one.

    Raises:
        BadInput: they do not; with the key.
    """
    here, there = (
        {**one.project.manifest.told, "language": ", ".join(one.project.manifest.languages)}
        for one in (found, other)
    )
    differs = next((key for key in sorted({*here, *there}) if here.get(key) != there.get(key)), "")
    same = found.project.category == other.project.category
    if (
        not differs
        and same
        and found.project.manifest.categories != other.project.manifest.categories
    ):
        differs = f"categories.{found.project.category}"
    if differs:
        raise BadInput(
            f"{other.project.folder}, key `{differs}`: differs from that of {found.project.folder}; projects of one set say the same of it"
        )


def _files(every: Sequence[Rounds]) -> dict[str, str]:
    """Name to text of the files of a set, the manifest last: a half of a set is none."""
    tables: dict[str, list[pd.DataFrame]] = {}
    lines: list[Mapping[Any, Any]] = []
    for one in every:
        project, parts = one.project, tables.setdefault(one.project.category, [])
        before = sum(map(len, parts))
        names = {
            item: f"{project.category}:{before + row}"
            for row, item in enumerate(one.rows.item_id, start=1)
        }
        parts.append(one.rows)
        lines += [
            {
                "project": project.folder.name,
                "draft": line["item_id"],
                **line,
                "item_id": names.get(line["item_id"], ""),
            }
            for line in provenance.read(project.folder).to_dict("records")
        ]
    whole = {name: pd.concat(parts, ignore_index=True) for name, parts in tables.items()}
    categories = {
        one.project.category: one.project.manifest.categories[one.project.category]
        for one in every
        if len(whole[one.project.category])
    }
    said = every[0].project.manifest._replace(categories=categories)
    # What models are asked in a language that is not ours.
    wording = every[0].project.folder / PROMPTS_FILE
    return {
        **({PROMPTS_FILE: read_text(wording)} if wording.is_file() else {}),
        **{
            f"{name}.csv": as_csv(rows[list(mcbe.COLUMNS)].assign(score=rows.score.astype(float)))
            for name, rows in whole.items()
            if len(rows)
        },
        provenance.LOG: provenance.as_lines(lines),
        MANIFEST: readers.to_toml({**said.told, **dataset.manifest_tables(said)}),
    }
