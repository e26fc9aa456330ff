"""McBE items of one's own: a project folder, in which drafts become items over weeks (Lan et al., 2025, section 3).

    project.toml      name, version, language, licence; the category, its subcategories; who does what
    drafts.csv        draft (its name), context, sentence, words, author, source: what people wrote
    sheets/           what is asked of whom, and what came back (`bench.curate.sheets`)
    merged.jsonl      what a model made of people's explanations
    provenance.jsonl  where every value comes from (`bench.curate.provenance`)

Here is what a project holds, and what is wrong with its drafts. `mcbe_rounds` leads through the rounds, `mcbe_write` makes the
data set.
"""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from bench.curate.mcbe_rules import LEAVE_OUT
from bench.curate.sheets import NAME
from bench.data import mcbe, toml
from bench.data.cells import as_csv, unguarded
from bench.data.tables import read_csv
from bench.errors import BadInput, quoted
from bench.whole import write_text

EXAMPLE = Path(__file__).parent / "examples" / "mcbe"
WORDING = Path(__file__).parent / "wordings" / "mcbe.toml"
MANIFEST, DRAFTS, SHEETS = "project.toml", "drafts.csv", "sheets"
COLUMNS = ("draft", "context", "sentence", "words", "author", "source")
# Who does what, and how many there have to be at least; McBE's paper had 5, 3, 2, 6 and 8. Panel and expert fill in one sheet.
ROLES = {"subcategory": 3, "explanation": 1, "review": 2, "severity": 2, "quality": 1, "panel": 1, "expert": 1}  # fmt: skip
TOLD = ("name", "version", "language", "licence", "note")


@dataclass(frozen=True)
class Project:
    """A category that is being curated.

    Attributes:
        told: name, version, language, licence and note of the data set.
        category: its file's name, such as `occupation`; `labels` what it is called, by the code of the language.
        groups: whether it compares groups of people; else sentences need no slot, as in worldview.
        people: names by role, see `ROLES`.
        wording: what is asked, see `wordings/mcbe.toml`.
    """

    folder: Path
    told: Mapping[str, str]
    category: str
    labels: Mapping[str, str]
    groups: bool
    subcategories: tuple[str, ...]
    people: Mapping[str, tuple[str, ...]]
    seed: int
    wording: Mapping[str, Any]

    @property
    def sheets(self) -> Path:
        """Where the sheets for people are written."""
        return self.folder / SHEETS

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
        BadInput: `project.toml` is missing, or says something that is not allowed; with the key.
    """
    folder = Path(folder).expanduser()
    path = folder / MANIFEST
    found = toml.read(path)
    categories = found.get("categories")
    if not isinstance(categories, dict) or len(categories) != 1:
        raise BadInput(
            f"{path}: expected one table [categories.NAME], with labels and subcategories; another category is another project"
        )
    ((category, about),) = categories.items()
    where = f"{path}, key `categories.{category}"
    if not isinstance(about, dict) or not NAME.fullmatch(category):
        raise BadInput(f"{where}`: expected a table, under a name that a file can have")
    subcategories = _texts(f"{where}.subcategories`", about.get("subcategories"), least=2)
    if LEAVE_OUT in subcategories:
        raise BadInput(f"{where}.subcategories`: {LEAVE_OUT!r} is what leaves a draft out; name it otherwise")
    labels = {key: value for key, value in about.items() if key not in ("subcategories", "groups")}
    if "en" not in labels or not all(isinstance(value, str) and value for value in labels.values()):
        raise BadInput(f'{where}`: expected labels such as en = "Occupation" and zh = "职业"')
    groups = about.get("groups", True)
    if not isinstance(groups, bool):
        raise BadInput(f"{where}.groups`: {quoted(groups)} is not allowed; expected true or false")
    people = found.get("people")
    if not isinstance(people, dict):
        raise BadInput(f"{path}: expected a table [people] with the names of {', '.join(ROLES)}")
    for role in ("panel", "expert"):
        if role in people and people[role] and len(people[role]) > 1:
            raise BadInput(f"{path}, key `people.{role}`: expected one name, for one sheet is filled in")
    seed = found.get("seed", 0)
    if type(seed) is not int or seed < 0:
        raise BadInput(f"{path}, key `seed`: {quoted(seed)} is not allowed; expected a whole number from 0")
    return Project(
        folder=folder,
        told={key: str(found[key]) for key in TOLD if key in found},
        category=category,
        labels=labels,
        groups=groups,
        subcategories=subcategories,
        people={
            role: _texts(f"{path}, key `people.{role}`", people.get(role), least)
            for role, least in ROLES.items()
        },
        seed=seed,
        wording=toml.read(folder / "wording.toml" if (folder / "wording.toml").exists() else WORDING),
    )


def begin(folder: str | Path, example: Path = EXAMPLE) -> Project:
    """Open the project of a folder; in an empty one the example is laid out first, to be changed by people.

    Raises:
        BadInput: as `opened`.
        OSError: the folder cannot be written.
    """
    folder = Path(folder).expanduser()
    if not (folder / MANIFEST).exists():
        for name in (DRAFTS, MANIFEST):
            write_text(folder / name, (example / name).read_text("utf-8"))
    return opened(folder)


def check(project: Project) -> pd.DataFrame:
    """What is wrong with the drafts, by the rules of McBE's own loader: `row` (from 1), `draft`, `column`, `what`, `value`.

    Raises:
        BadInput: the file cannot be read.
    """
    drafts = project.drafts
    found = []
    for row, name in enumerate(drafts.draft, start=1):
        if not NAME.fullmatch(name) or (drafts.draft == name).sum() > 1:
            found.append((row, name, "draft", "is empty, doubled, or no plain name such as d1", name))
    again = drafts[["sentence", "words"]].duplicated()
    found += [(row + 1, drafts.draft[row], "sentence", "repeats an earlier draft", drafts.sentence[row]) for row in drafts.index[again]]  # fmt: skip
    if drafts.empty:
        return pd.DataFrame([(0, "", "", "there are no drafts yet", "")], columns=["row", "draft", "column", "what", "value"])  # fmt: skip
    # The loader wants whole rows: what people will say is filled in for the time being.
    whole = drafts.assign(subtype="?", explanation="?", score="0")[list(mcbe.COLUMNS)]
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "drafts.csv"
        write_text(path, as_csv(whole))
        for row, (_, one) in enumerate(mcbe.read(path, project.category, groups=project.groups), start=1):
            if isinstance(one, mcbe.Fault):
                found.append((row, drafts.draft[row - 1], one.column, one.what, one.value))
            elif project.groups and len(one.words) < 2:
                found.append((row, drafts.draft[row - 1], "words", "lists one word; two or more are compared", one.words[0]))  # fmt: skip
    return pd.DataFrame(sorted(found), columns=["row", "draft", "column", "what", "value"])


def _texts(where: str, given: object, least: int) -> tuple[str, ...]:
    texts = tuple(given) if isinstance(given, list) else ()
    whole = all(isinstance(one, str) and one.strip() == one and one for one in texts)
    if len(texts) < least or not whole or len(set(texts)) < len(texts):
        raise BadInput(f"{where}: {quoted(given)} is not allowed; expected a list of {least} texts or more, each once")  # fmt: skip
    return texts
