"""Read a project of McBE items: what people wrote, and what is wrong with it (Lan et al., 2025).

    project.toml      name, version, language, licence; category and subcategories; people
    drafts.csv        draft (its name), context, sentence, words, author, source
    wording.toml      what people and the model are asked, if not our texts, as in another language
    prompts.toml      what models will be asked in, if not our prompts
    sheets/           what is asked of whom, and what came back (`bench.curate.sheets`)
    merged.jsonl      what a model made of people's explanations
    provenance.jsonl  where each value comes from

`mcbe.rounds` leads through the rounds of judgement, `mcbe.finish` writes the data set.
"""

import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from bench.core.cells import as_csv, unguarded
from bench.core.errors import BadInput, quoted
from bench.core.files import atomic_write
from bench.curate import check_files
from bench.curate.sheets import (
    FILE_NAME,
    cell_fault,
    check_texts,
    file_name_fault,
    is_column,
    normalized,
)
from bench.data import dataset, mcbe
from bench.data.dataset import Manifest
from bench.data.readers import as_path as path_of
from bench.data.readers import read_csv, read_toml

WORDING = Path(__file__).parents[1] / "wordings" / "mcbe.toml"
MANIFEST, DRAFTS, SHEETS = "project.toml", "drafts.csv", "sheets"
COLUMNS = ("draft", "context", "sentence", "words", "author", "source")
FAULT_COLUMNS = ["row", "draft", "column", "what", "value"]
LEAVE_OUT = "leave out"
# Roles, with the fewest and the most people of each; McBE's paper had 5, 3, 2, 6 and 8.
ROLES = {
    "subcategory": (3, 60),
    "explanation": (1, 60),
    "review": (2, 60),
    "severity": (3, 60),
    "quality": (1, 60),
    "panel": (1, 1),
    "expert": (1, 1),
}
FIELD = re.compile(r"\{(\w*)\}")
# Columns of the quality sheet, which no question can have as its name.
TAKEN = ("key", "item_id", "context", "sentence", "words", "subtype", "explanation", "score")


@dataclass(frozen=True)
class Project:
    """A category that is being curated.

    Attributes:
        manifest: what the finished set says of itself, with the category's labels.
        category: the name of its file, such as `occupation`.
        people: names by role, see `ROLES`.
        wording: what people and the model are asked, see `wordings/mcbe.toml`.
    """

    folder: Path
    manifest: Manifest
    category: str
    subcategories: tuple[str, ...]
    people: Mapping[str, tuple[str, ...]]
    seed: int
    wording: Mapping[str, Any]

    @property
    def sheets(self) -> Path:
        """The folder of the sheets for people."""
        return self.folder / SHEETS

    @property
    def groups(self) -> bool:
        """Whether the category compares groups; if not, sentences need no slot, as in worldview."""
        return self.manifest.categories[self.category].groups

    @property
    def drafts(self) -> pd.DataFrame:
        """The drafts, `COLUMNS`, every cell a text."""
        rows = read_csv(self.folder / DRAFTS, COLUMNS)
        cells = [{name: unguarded(row[name]).strip() for name in COLUMNS} for row in rows]
        return pd.DataFrame(cells, columns=list(COLUMNS))


def open_project(folder: str | Path) -> Project:
    """Open the project in a folder.

    Raises:
        BadInput: a file is missing, or `project.toml` has a wrong value; with the key.
    """
    folder = path_of(folder)
    check_files("mcbe", folder)
    path = folder / MANIFEST
    values = read_toml(path)
    categories, people, seed = values.get("categories"), values.get("people"), values.get("seed", 0)
    if not isinstance(categories, dict) or len(categories) != 1:
        raise BadInput(
            f"{path}: expected one table [categories.NAME], with labels and subcategories; "
            "another category is another project"
        )
    ((category, about),) = categories.items()
    if not isinstance(about, dict):
        raise BadInput(f"{path}, key `categories.{category}`: expected a table")
    where = f"{path}, key `categories.{category}.subcategories`"
    subcategories = _texts(where, about.pop("subcategories", None), 2, 60)
    if LEAVE_OUT in subcategories:
        raise BadInput(f"{where}: {LEAVE_OUT!r} is the answer that leaves a draft out; rename it")
    manifest = dataset.parse_manifest(path, values)
    if not isinstance(people, dict):
        raise BadInput(f"{path}: expected a table [people] with the names of {', '.join(ROLES)}")
    if type(seed) is not int or seed < 0:
        raise BadInput(
            f"{path}, key `seed`: {quoted(seed)} is not allowed; expected a whole number from 0"
        )
    own = folder / "wording.toml"
    return Project(
        folder=folder,
        manifest=manifest,
        category=category,
        subcategories=subcategories,
        people={
            role: _people(f"{path}, key `people.{role}`", people.get(role), *bounds)
            for role, bounds in ROLES.items()
        },
        seed=seed,
        wording=_own_wording(own) if own.exists() else read_toml(WORDING),
    )


def check_drafts(project: Project) -> pd.DataFrame:
    """List what is wrong with the drafts by the rules of McBE's loader; rows count from 1."""
    drafts = project.drafts
    if drafts.empty:
        return pd.DataFrame([(0, "", "", "there are no drafts yet", "")], columns=FAULT_COLUMNS)
    faults = []
    is_doubled = drafts.draft.duplicated(keep=False)
    is_repeated = drafts[["sentence", "words"]].duplicated()
    for at, cells in enumerate(drafts.to_dict("records")):
        name = cells["draft"]
        if not FILE_NAME.fullmatch(name) or is_doubled[at]:
            what = "is empty, doubled, or no plain name such as d1"
            faults.append((at + 1, name, "draft", what, name))
        for column, cell in cells.items():
            if fault := cell_fault(cell):
                faults.append((at + 1, name, str(column), fault, quoted(cell)))
        if is_repeated[at]:
            what = "repeats an earlier draft"
            faults.append((at + 1, name, "sentence", what, cells["sentence"]))
    # The loader needs complete rows, so what people will say is filled in. It comes first in a row:
    # a byte order mark at its beginning, which is listed above, would stop the loader.
    rows = drafts.assign(subtype="?", explanation="?", score="0")[[*mcbe.COLUMNS][::-1]]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / DRAFTS
        atomic_write(path, as_csv(rows))
        items = mcbe.read(path, project.category, groups=project.groups)
    for at, (_, item) in enumerate(items):
        name = drafts.draft[at]
        if isinstance(item, mcbe.RowError):
            faults.append((at + 1, name, item.column, item.what, item.value))
        elif project.groups and len(item.words) < 2:
            what = "lists one word; two or more are compared"
            faults.append((at + 1, name, "words", what, item.words[0]))
    return pd.DataFrame(sorted(faults), columns=FAULT_COLUMNS)


def _own_wording(path: Path) -> Mapping[str, Any]:
    """Read a project's own texts, which has all that ours has."""
    wording, ours = read_toml(path), read_toml(WORDING)
    if not isinstance(wording.get("version"), str):
        raise BadInput(f'{path}: expected `version = "..."`, which the log names')
    quality = wording.get("quality")
    if not isinstance(quality, dict) or not quality:
        raise BadInput(f"{path}, table [quality]: expected questions, a name and a text each")
    for table, texts in (ours | {"quality": quality}).items():
        if table != "version":
            check_texts(path, table, wording.get(table), texts)
    for name in quality:
        if not is_column(name) or name in TAKEN:
            raise BadInput(
                f"{path}, table [quality]: {quoted(name)} cannot be a question's name; expected a "
                "text on one line that is no column of the sheet"
            )
    if {*FIELD.findall(wording["merge"]["prompt"])} != {"context", "sentence", "explanations"}:
        raise BadInput(
            f"{path}, table [merge], `prompt`: expected the fields {{context}}, {{sentence}} and "
            "{explanations}"
        )
    return wording


def _people(where: str, value: object, least: int, most: int) -> tuple[str, ...]:
    """Check names that become those of files."""
    names = _texts(where, value, least, most)
    if fault := next(filter(None, map(file_name_fault, names)), ""):
        raise BadInput(f"{where}: {fault}")
    if len({normalized(name).casefold() for name in names}) < len(names):
        raise BadInput(
            f"{where}: {quoted(value)} is not allowed; two of the names are one file where small "
            "and capital letters are the same"
        )
    return names


def _texts(where: str, value: object, least: int, most: int) -> tuple[str, ...]:
    """Check a list of texts that differ even where full-width letters are plain ones."""
    texts = tuple(value) if isinstance(value, list) else ()
    if (
        not least <= len(texts) <= most
        or not all(isinstance(text, str) and text and text.strip() == text for text in texts)
        or any(map(cell_fault, texts))
        or len({*map(normalized, texts)}) < len(texts)
    ):
        allowed = "one text" if most == 1 else f"{least} texts or more, each once"
        raise BadInput(f"{where}: {quoted(value)} is not allowed; expected a list of {allowed}")
    return texts
