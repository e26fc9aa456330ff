"""McBE items of one's own: a project folder, in which drafts become items over weeks (Lan et al., 2025, section 3).

    project.toml      name, version, language, licence; the category, its subcategories; who does what
    drafts.csv        draft (its name), context, sentence, words, author, source: what people wrote
    wording.toml      what people and the model are asked, where that is not ours, as in another language
    prompts.toml      what models will be asked in, where that is not our wording
    sheets/           what is asked of whom, and what came back (`bench.curate.sheets`)
    merged.jsonl      what a model made of people's explanations
    provenance.jsonl  where every value comes from (`bench.curate.provenance`)

Here is what a project holds, and what is wrong with its drafts. `mcbe_rounds` leads through the rounds, `mcbe_write` makes the
data set.
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
from bench.curate import begin
from bench.curate.mcbe_rules import LEAVE_OUT
from bench.curate.record import NAME, is_column, unfit, wrong_name
from bench.curate.workbook import simple
from bench.data import dataset as manifest
from bench.data import mcbe, readers
from bench.data.dataset import Manifest
from bench.data.readers import as_path as path_of
from bench.data.readers import read_csv

WORDING = Path(__file__).parent / "wordings" / "mcbe.toml"
MANIFEST, DRAFTS, SHEETS = "project.toml", "drafts.csv", "sheets"
COLUMNS = ("draft", "context", "sentence", "words", "author", "source")
# Who does what, and how many there have to be at least; McBE's paper had 5, 3, 2, 6 and 8.
ROLES = {
    "subcategory": 3,
    "explanation": 1,
    "review": 2,
    "severity": 3,
    "quality": 1,
    "panel": 1,
    "expert": 1,
}
# What is filled into the prompt that merges.
FIELD = re.compile(r"\{(\w*)\}")
# What no question about finished rows is called, as a column of its sheet is.
TAKEN = ("key", "item_id", "context", "sentence", "words", "subtype", "explanation", "score")
# Of these there is one, for one sheet is filled in.
ALONE = ("panel", "expert")


@dataclass(frozen=True)
class Project:
    """A category that is being curated.

    Attributes:
        manifest: what the finished set will say of itself, the category's labels included.
        category: its file's name, such as `occupation`.
        people: names by role, see `ROLES`.
        wording: what is asked, see `wordings/mcbe.toml`.
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
        """Where the sheets for people are written."""
        return self.folder / SHEETS

    @property
    def groups(self) -> bool:
        """Whether the category compares groups of people; else sentences need no slot, as in worldview."""
        return self.manifest.categories[self.category].groups

    @property
    def drafts(self) -> pd.DataFrame:
        """The drafts as they stand, `COLUMNS`, every cell a text.

        Raises:
            BadInput: the file cannot be read, or a column is missing.
        """
        rows = read_csv(self.folder / DRAFTS, COLUMNS)
        cells = [{name: unguarded(row[name]).strip() for name in COLUMNS} for row in rows]
        return pd.DataFrame(cells, columns=list(COLUMNS))


def opened(folder: str | Path) -> Project:
    """The project in a folder.

    Raises:
        BadInput: a file is missing, or `project.toml` says something that is not allowed; with the key.
    """
    folder = path_of(folder)
    begin.check("mcbe", folder)
    path = folder / MANIFEST
    found = readers.read_toml(path)
    categories = found.get("categories")
    if not isinstance(categories, dict) or len(categories) != 1:
        raise BadInput(
            f"{path}: expected one table [categories.NAME], with labels and subcategories; another category is another project"
        )
    ((category, about),) = categories.items()
    if not isinstance(about, dict):
        raise BadInput(
            f"{path}, key `categories.{category}`: expected a table with labels and subcategories"
        )
    where = f"{path}, key `categories.{category}.subcategories`"
    subcategories = _texts(where, about.get("subcategories"), least=2)
    if LEAVE_OUT in subcategories:
        raise BadInput(f"{where}: {LEAVE_OUT!r} is what leaves a draft out; name it otherwise")
    # What the finished set will say of itself has to be right from the beginning.
    one = {key: value for key, value in about.items() if key != "subcategories"}
    said = manifest.parse_manifest(path, found | {"categories": {category: one}})
    people = found.get("people")
    if not isinstance(people, dict):
        raise BadInput(f"{path}: expected a table [people] with the names of {', '.join(ROLES)}")
    seed = found.get("seed", 0)
    if type(seed) is not int or seed < 0:
        raise BadInput(
            f"{path}, key `seed`: {quoted(seed)} is not allowed; expected a whole number from 0"
        )
    own = folder / "wording.toml"
    return Project(
        folder=folder,
        manifest=said,
        category=category,
        subcategories=subcategories,
        people={
            role: _people(
                f"{path}, key `people.{role}`", people.get(role), least, 1 if role in ALONE else 60
            )
            for role, least in ROLES.items()
        },
        seed=seed,
        wording=_wording(own) if own.exists() else readers.read_toml(WORDING),
    )


def copied(folder: str | Path) -> Project:
    """The example's project in an empty or new folder, to try the way out or to begin from.

    Raises:
        BadInput: the folder holds something.
        RunFailed: it cannot be written.
    """
    begin.copy("mcbe", folder)
    return opened(folder)


def check(project: Project) -> pd.DataFrame:
    """What is wrong with the drafts, by the rules of McBE's own loader: `row` (from 1), `draft`, `column`, `what`, `value`.

    Raises:
        BadInput: the file cannot be read.
    """
    drafts = project.drafts
    found = []
    twice = drafts.draft.duplicated(keep=False)
    for row, (name, cells) in enumerate(
        zip(drafts.draft, drafts.to_dict("records"), strict=True), start=1
    ):
        if not NAME.fullmatch(name) or twice[row - 1]:
            found.append(
                (row, name, "draft", "is empty, doubled, or no plain name such as d1", name)
            )
        found += [
            (row, name, str(column), why, quoted(cell))
            for column, cell in cells.items()
            if (why := unfit(cell))
        ]
    again = drafts[["sentence", "words"]].duplicated()
    found += [
        (row + 1, drafts.draft[row], "sentence", "repeats an earlier draft", drafts.sentence[row])
        for row in drafts.index[again]
    ]
    if drafts.empty:
        return pd.DataFrame(
            [(0, "", "", "there are no drafts yet", "")],
            columns=["row", "draft", "column", "what", "value"],
        )
    # The loader wants whole rows: what people will say is filled in for the time being. It comes first in a row, as a byte order
    # mark at its beginning is taken for two files that were joined, and has been told here.
    whole = drafts.assign(subtype="?", explanation="?", score="0")[[*mcbe.COLUMNS][::-1]]
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "drafts.csv"
        atomic_write(path, as_csv(whole))
        for row, (_, one) in enumerate(
            mcbe.read(path, project.category, groups=project.groups), start=1
        ):
            if isinstance(one, mcbe.RowError):
                found.append((row, drafts.draft[row - 1], one.column, one.what, one.value))
            elif project.groups and len(one.words) < 2:
                found.append(
                    (
                        row,
                        drafts.draft[row - 1],
                        "words",
                        "lists one word; two or more are compared",
                        one.words[0],
                    )
                )
    return pd.DataFrame(sorted(found), columns=["row", "draft", "column", "what", "value"])


def _wording(path: Path) -> Mapping[str, Any]:
    """A project's own wording, which has all that ours has.

    Raises:
        BadInput: a text is missing.
    """
    found = readers.read_toml(path)
    for table, texts in readers.read_toml(WORDING).items():
        for name in texts if isinstance(texts, dict) and table != "quality" else ():
            if not isinstance(found.get(table), dict) or not isinstance(
                found[table].get(name), str
            ):
                raise BadInput(
                    f"{path}, table [{table}]: the text `{name}` is missing; {WORDING} has them all"
                )
    quality = found.get("quality")
    if (
        not isinstance(quality, dict)
        or not quality
        or not all(isinstance(text, str) for text in quality.values())
    ):
        raise BadInput(f"{path}, table [quality]: expected questions, a name and a text each")
    for table, texts in found.items():
        for name, text in texts.items() if isinstance(texts, dict) else ():
            if isinstance(text, str) and (why := unfit(text)):
                raise BadInput(f"{path}, table [{table}], `{name}`: {why}")
    wrong = next((name for name in quality if not is_column(name) or name in TAKEN), None)
    if wrong is not None:
        raise BadInput(
            f"{path}, table [quality]: {quoted(wrong)} cannot be a question's name; expected a text on one line that is no column of the sheet"
        )
    fields = set(FIELD.findall(found["merge"]["prompt"]))
    if fields != {"context", "sentence", "explanations"}:
        raise BadInput(
            f"{path}, table [merge], `prompt`: expected the fields {{context}}, {{sentence}} and {{explanations}}"
        )
    if not isinstance(found.get("version"), str):
        raise BadInput(f'{path}: expected `version = "..."`, which the log names')
    return found


def _people(where: str, given: object, least: int, most: int) -> tuple[str, ...]:
    """Names that files can have."""
    found = _texts(where, given, least, most)
    if wrong := next(filter(None, map(wrong_name, found)), ""):
        raise BadInput(f"{where}: {wrong}")
    if len({simple(one).casefold() for one in found}) < len(found):
        raise BadInput(
            f"{where}: {quoted(given)} is not allowed; two of the names are one file where small and capital letters are the same"
        )
    return found


def _texts(where: str, given: object, least: int, most: int = 60) -> tuple[str, ...]:
    texts = tuple(given) if isinstance(given, list) else ()
    whole = all(
        isinstance(one, str) and one.strip() == one and one and not unfit(one) for one in texts
    )
    # Full-width letters are no others for those who read answers.
    if (
        not least <= len(texts) <= most
        or not whole
        or len({simple(one) for one in texts}) < len(texts)
    ):
        many = "one text" if most == 1 else f"{least} texts or more, each once"
        raise BadInput(f"{where}: {quoted(given)} is not allowed; expected a list of {many}")
    return texts
