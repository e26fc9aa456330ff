"""From a project whose rounds are over to a data folder that every room reads: items, manifest, and where each value is from.

diet.csv            the items, in McBE's columns
dataset.toml        name, version, language, licence, and what the category is called
provenance.jsonl    each value's line of the log, under the item's name in this set; drafts that were left out have none
"""

from pathlib import Path

from bench.curate import provenance
from bench.curate.mcbe_rounds import Rounds
from bench.data import mcbe, toml
from bench.data.cells import as_csv
from bench.errors import BadInput
from bench.whole import write_text

MANIFEST = "dataset.toml"


def finish(found: Rounds, out: str | Path = "") -> Path:
    """Write a project's items as a data folder, and return it.

    Args:
        found: what `mcbe_rounds.advance` or `look` gave.
        out: the folder; `dataset-VERSION` in the project without it.

    Raises:
        BadInput: rounds are not over, no draft was kept, or the folder holds another set: nothing is written over.
        OSError: a file cannot be written.
    """
    project = found.project
    if found.waits:
        raise BadInput(f"{project.folder}: is not done; it waits for {found.waits}")
    rows = found.rows
    if rows.empty:
        raise BadInput(f"{project.folder}: all {len(found.drafts)} drafts were left out, so there is no set")
    folder = Path(out).expanduser() if out else project.folder / f"dataset-{project.told.get('version', '1')}"
    items = rows.rename(columns={"item_id": "draft"})
    names = {name: f"{project.category}:{row}" for row, name in enumerate(items.draft, start=1)}
    table = items[list(mcbe.COLUMNS)].assign(score=items.score.astype(float))
    log = provenance.read(project.folder)
    lines = [{"draft": line["item_id"], **line, "item_id": names.get(line["item_id"], "")} for line in log.to_dict("records")]  # fmt: skip
    about = {**project.labels} if project.groups else {**project.labels, "groups": False}
    files = {
        f"{project.category}.csv": as_csv(table),
        "provenance.jsonl": provenance.as_lines(lines),
        MANIFEST: toml.written({**project.told, "categories": {project.category: about}}),
    }
    if (folder / MANIFEST).exists():
        for name, text in files.items():
            path = folder / name
            if not path.exists() or path.read_text("utf-8") != text:
                raise BadInput(f"{path}: is there and differs; give the set another `version` in project.toml, for nothing is written over")  # fmt: skip
        return folder
    for name, text in files.items():
        write_text(folder / name, text)
    return folder
