"""Read a project of McBE items: what people wrote, and what is wrong with it (Lan et al., 2025).

    project.toml      name, version, language, licence; category and subcategories; people
    drafts.csv        draft (its name), context, sentence, words, author, source
    wording.toml      what people and the model are asked, if not our texts, as in another language
    prompts.toml      what models will be asked in, if not our prompts
    sheets/           what is asked of whom, and what came back (`bench.curate.sheets`)
    merged.jsonl      what a model made of people's explanations
    provenance.jsonl  where each value comes from

`mcbe.rounds` leads through the rounds of judgement and writes the data set.
"""

import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from pydantic import AfterValidator, BaseModel, Field, TypeAdapter, ValidationError

from bench.core.cells import as_csv, unguarded
from bench.core.errors import BadInput, quoted
from bench.core.files import atomic_write, file_name_error
from bench.curate import check_files
from bench.curate.sheets import (
    Names,
    Text,
    cell_fault,
    check_texts,
    error_text,
    is_column,
    repeats,
)
from bench.data import dataset, mcbe
from bench.data.dataset import Manifest
from bench.data.readers import as_path as path_of
from bench.data.readers import read_csv, read_toml

WORDING = Path(__file__).parents[1] / "wordings" / "mcbe.toml"
MANIFEST, DRAFTS = "project.toml", "drafts.csv"
COLUMNS = ("draft", "context", "sentence", "words", "author", "source")
FAULT_COLUMNS = ["row", "draft", "column", "what", "value"]
LEAVE_OUT = "leave out"
FIELD = re.compile(r"\{(\w*)\}")
# Columns of the quality sheet, which no question can have as its name.
TAKEN = ("key", "item_id", "context", "sentence", "words", "subtype", "explanation", "score")
One = Annotated[Names, Field(min_length=1, max_length=1)]
Some = Annotated[Names, Field(min_length=1, max_length=60)]
Two = Annotated[Names, Field(min_length=2, max_length=60)]
Three = Annotated[Names, Field(min_length=3, max_length=60)]


class People(BaseModel):
    """Names by role; McBE's paper had 5, 3, 2, 6 and 8 people, a panel and an expert."""

    subcategory: Three
    explanation: Some
    review: Two
    severity: Three
    quality: Some
    panel: One
    expert: One


def _check_subcategories(names: list[str]) -> list[str]:
    if repeats([LEAVE_OUT, "", *names]) or any(name != name.strip() for name in names):
        raise ValueError(
            f"needs names that differ, without blanks at their ends; {LEAVE_OUT!r} is the answer "
            "that leaves a draft out"
        )
    return names


class Category(BaseModel):
    """What `project.toml` says of the category beyond what a data set does."""

    subcategories: Annotated[
        list[Text], Field(min_length=2, max_length=60), AfterValidator(_check_subcategories)
    ]


class ProjectFile(BaseModel):
    """What `project.toml` says beyond what a data set does."""

    categories: Annotated[dict[str, Category], Field(min_length=1, max_length=1)]
    people: People
    seed: Annotated[int, Field(ge=0, strict=True)] = 0


@dataclass(frozen=True)
class Project:
    """A category that is being curated.

    Attributes:
        manifest: what the finished set says of itself, with the category's labels.
        category: the name of its file, such as `occupation`.
        people: names by role, see `People`.
        wording: what people and the model are asked, see `wordings/mcbe.toml`.
    """

    folder: Path
    manifest: Manifest
    category: str
    subcategories: tuple[str, ...]
    people: Mapping[str, list[str]]
    seed: int
    wording: Mapping[str, Any]

    @property
    def sheets(self) -> Path:
        """The folder of the sheets for people."""
        return self.folder / "sheets"

    @property
    def groups(self) -> bool:
        """Whether the category compares groups; if not, sentences need no slot, as in worldview."""
        return self.manifest.categories[self.category].groups

    @property
    def drafts(self) -> pd.DataFrame:
        """The drafts, `COLUMNS`, every cell a text."""
        table = pd.DataFrame(read_csv(self.folder / DRAFTS, COLUMNS), columns=list(COLUMNS))
        return table.map(lambda cell: unguarded(cell).strip())


def open_project(folder: str | Path) -> Project:
    """Open the project in a folder.

    Raises:
        BadInput: a file is missing, or `project.toml` has a wrong value; with the key.
    """
    folder = path_of(folder)
    check_files("mcbe", folder)
    path, own = folder / MANIFEST, folder / "wording.toml"
    values = read_toml(path)
    try:
        described = TypeAdapter(ProjectFile).validate_python(values)
    except ValidationError as error:
        raise BadInput(f"{path}, {error_text(error)}") from None
    ((category, about),) = described.categories.items()
    del values["categories"][category]["subcategories"]
    return Project(
        folder=folder,
        manifest=dataset.parse_manifest(path, values),
        category=category,
        subcategories=tuple(about.subcategories),
        people=described.people.model_dump(),
        seed=described.seed,
        wording=_own_wording(own) if own.exists() else read_toml(WORDING),
    )


def check_drafts(project: Project) -> pd.DataFrame:
    """List what is wrong with the drafts by the rules of McBE's loader; rows count from 1."""
    drafts = project.drafts
    if drafts.empty:
        return pd.DataFrame([(0, "", "", "there are no drafts yet", "")], columns=FAULT_COLUMNS)
    # The loader needs complete rows, so what people will say is filled in. It comes first in a row:
    # a byte order mark at its beginning, which is listed below, would stop the loader.
    rows = drafts.assign(subtype="?", explanation="?", score="0")[[*mcbe.COLUMNS][::-1]]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / DRAFTS
        atomic_write(path, as_csv(rows))
        items = [item for _, item in mcbe.read(path, project.category, groups=project.groups)]
    is_doubled = drafts.draft.duplicated(keep=False)
    is_repeated = drafts[["sentence", "words"]].duplicated()
    faults = []
    for at, cells in enumerate(drafts.to_dict("records")):
        name, item = cells["draft"], items[at]
        wrong = [(str(column), cell_fault(cell), quoted(cell)) for column, cell in cells.items()]
        if file_name_error(name) or is_doubled[at]:
            wrong.append(("draft", "is empty, doubled, or no plain name such as d1", name))
        if is_repeated[at]:
            wrong.append(("sentence", "repeats an earlier draft", cells["sentence"]))
        if isinstance(item, mcbe.RowError):
            wrong.append((item.column, item.what, item.value))
        elif project.groups and len(item.words) < 2:
            wrong.append(("words", "lists one word; two or more are compared", item.words[0]))
        faults += [(at + 1, name, column, what, cell) for column, what, cell in wrong if what]
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
