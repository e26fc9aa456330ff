"""From an ambiguous context to one that tells who did what: a model drafts the facts, a person accepts, edits or has it draw again.

As in the paper, a model gets the ambiguous context and the reversed property, with varied instructions, and people mend
what it writes. The instructions are ours, in `wordings/cbbq.toml`; a template's draws use them by turns.
"""

import re
import unicodedata
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from rapidfuzz.distance import Levenshtein
from statsmodels.stats.proportion import proportion_confint  # type: ignore[import-untyped]

from bench.core.errors import BadInput
from bench.core.files import explain_write_errors
from bench.core.i18n import _
from bench.curate import sheets
from bench.curate.cbbq import Project, Scenario, holdable
from bench.curate.cbbq_sheets import hand_over, sent
from bench.curate.record import unfit
from bench.curate.workbook import Question
from bench.data import readers
from bench.data.audit import show_cell
from bench.data.cbbq.templates import SLOTS, malformed
from bench.data.readers import Row

# Replies to prompts, called as `write(prompts, max_new_tokens=..., seed=...)` with a seed a prompt: what scorers have as `generate`.
Writer = Callable[..., Sequence[str]]

WORDINGS = Path(__file__).parent / "wordings" / "cbbq.toml"
ACCEPT, EDIT, AGAIN = "accept", "edit", "again"
DECISIONS = (ACCEPT, EDIT, AGAIN)
SHEET = "decide"
# What a file of wordings tells people, beside what it tells models.
ON_SHEETS = (
    "decide",
    "decision",
    "edited",
    "review",
    "answer",
    "asks_the_bias",
    "reads_well",
    "note",
    "discuss",
    "outcome",
    "reason",
)
MAX_NEW_TOKENS = 200
# So many drafts are asked for, and kept, at once.
BATCH = 16
# Facts are a sentence or two; the longest of the samples have 60 characters.
LONGEST = 300
# An edit is small where at most this share of the characters changed: Levenshtein distance over the longer text's length.
SMALL = 0.2
# What became of a draft, best first.
KINDS = ("as drafted", "small edit", "large edit", "drawn again", "undecided")
ENDS = tuple("。！？…”」』.!?")
BLANKS = re.compile(r"\s*\n\s*")


class Wordings(NamedTuple):
    """The instructions for drafting, by name, and their version."""

    version: str
    prompts: dict[str, str]


class Decided(NamedTuple):
    """What people made of the drafts.

    Attributes:
        facts: template to the facts that it has at last.
        drafts: a row a draft: `template`, `round`, `draw`, `wording`, `model`, `drafted`, `facts` (as they became), `decision`,
            `distance` (share of characters changed), `kind`, `person`, `when`.
        to_mend: what is wrong in sheets that came back, as `sheets.read` lists it.
    """

    facts: dict[str, str]
    drafts: pd.DataFrame
    to_mend: pd.DataFrame


def each(frame: pd.DataFrame) -> Iterator[Any]:
    """The rows of a frame, whose cells have whatever type their column has."""
    return iter(frame.itertuples())


def wording_file(project: Project) -> Path:
    """Where the instructions of a project stand: its own `wording.toml`, for another language, or ours."""
    own = project.folder / "wording.toml"
    return own if own.is_file() else WORDINGS


def wordings(path: Path = WORDINGS) -> Wordings:
    """The instructions in a file.

    Raises:
        BadInput: no version, no wording, a text for sheets is missing, or a field in braces is none of those that are
            filled in.
    """
    found = readers.read_toml(path)
    said = found.get("sheet")
    if not isinstance(said, dict) or not all(isinstance(said.get(name), str) for name in ON_SHEETS):
        raise BadInput(f"{path}, table [sheet]: expected the texts {', '.join(ON_SHEETS)}")
    for name in ON_SHEETS:
        if why := unfit(said[name]):
            raise BadInput(f"{path}, table [sheet], `{name}`: {why}")
    prompts = {
        name: table.get("prompt")
        for name, table in found.items()
        if isinstance(table, dict) and name != "sheet"
    }
    version = found.get("version")
    if not isinstance(version, str) or not prompts:
        raise BadInput(f'{path}: expected `version = "..."` and a table with a `prompt` a wording')
    fields = {"context", "target", "other", "property", "reversed"}
    for name, prompt in prompts.items():
        used = set(re.findall(r"\{(\w*)\}", prompt)) if isinstance(prompt, str) else set()
        if not {"context", "reversed"} <= used <= fields:
            raise BadInput(
                f"{path}, table [{name}], `prompt`: expected a text with {{context}} and {{reversed}}, and of fields no others than {', '.join(sorted(fields))}"
            )
    return Wordings(version, {name: str(prompt) for name, prompt in prompts.items()})


def on_sheets(project: Project) -> Mapping[str, str]:
    """What people are told and asked on sheets.

    Raises:
        BadInput: as `wordings`.
    """
    path = wording_file(project)
    wordings(path)
    said: Mapping[str, str] = readers.read_toml(path)["sheet"]
    return said


def ask(one: Scenario, prompt: str) -> str:
    """The instruction for a template, with the first name of each list instead of the slots."""
    first = [names[0] for names in one.names]
    values = {
        "context": one.filled(one.cells["context"]),
        "target": first[one.target],
        "other": first[1 - one.target],
        "property": one.bias["property"],
        "reversed": one.bias["reversed"],
    }
    # In one go, so that what is filled in is never taken for a field.
    return re.sub(r"\{(\w+)\}", lambda found: values[found[1]], prompt).strip()


def wording_of(template: str, draw: int, seed: int, names: Sequence[str]) -> str:
    """Which wording a draw has: all in turn, in an order that follows from seed and template."""
    order = np.random.default_rng([seed, zlib.crc32(template.encode())]).permutation(len(names))
    return names[order[(draw - 1) % len(names)]]


def read_facts(reply: str, one: Scenario) -> str:
    """What a reply adds to the context, with slots instead of names; a context that it says again is cut off, and what is before it."""
    # Control characters and halves of characters, which no table can hold, say nothing.
    text = "".join(
        char
        for char in BLANKS.sub("", reply.strip())
        if unicodedata.category(char) not in ("Cc", "Cs")
    )
    slots = {name: slot for names, slot in zip(one.names, SLOTS, strict=True) for name in names}
    # The longest first, as a name may stand in another, of either list.
    known = "|".join(map(re.escape, sorted(slots, key=len, reverse=True)))
    text = re.sub(known, lambda found: slots[found[0]], text)
    return text.rpartition(one.cells["context"])[2].strip()


def wrong_facts(facts: str) -> str:
    """Why facts cannot stand as they are, or ""."""
    if not facts:
        return "says nothing"
    if wrong := malformed(facts):
        return f"holds {show_cell(wrong[0])}, which is no placeholder"
    if not holdable(facts):
        return "holds a control character, which no sheet can"
    missing = [slot for slot in SLOTS if slot not in facts]
    if missing:
        return f"does not name {' nor '.join(missing)}, and each question asks about one of the two"
    if len(facts) > LONGEST:
        return f"has {len(facts)} characters; a sentence or two have at most {LONGEST}"
    return "" if facts.endswith(ENDS) else "breaks off before the end of a sentence"


def pending(project: Project) -> list[Scenario]:
    """The templates that need a draft: they have none, a person wants another one, or the last one was never handed out.

    The last is so where a template had a fault when the sheet of that round was written.
    """
    drafts = project.table("drafts")
    drawn = {row["template"]: int(row["draw"]) for row in drafts}
    handed = {
        name.removeprefix(f"{SHEET}-"): set(sheets.opened(project.sheets, name).rows.item_id)
        for name in sent(project, SHEET)
    }
    last = {row["template"]: row["round"] for row in drafts}
    missed = {
        name for name, number in last.items() if number in handed and name not in handed[number]
    }
    again = {
        row.template
        for row in each(decided(project).drafts)
        if row.decision == AGAIN and row.draw == drawn[row.template]
    }
    return [
        one for one in project.templates() if one.name not in drawn or one.name in again | missed
    ]


def draw(project: Project, write: Writer, model: str, seed: int = 0) -> int:
    """Have a draft written for each template that needs one, and keep it with all that it came from; how many there were.

    Args:
        write: a scorer's `generate`, or a function that is called alike.
        model: what writes, as provenance names it.

    Raises:
        RunFailed: the drafts cannot be written down.
    """
    some = pending(project)
    version, prompts = wordings(wording_file(project))
    before = project.table("drafts")
    round_ = 1 + max((int(row["round"]) for row in before), default=0)
    rows: list[Row] = []
    asked: list[str] = []
    for one in some:
        number = 1 + max(
            (int(row["draw"]) for row in before if row["template"] == one.name), default=0
        )
        wording = wording_of(one.name, number, seed, list(prompts))
        asked.append(ask(one, prompts[wording]))
        own = zlib.crc32(f"{seed}:{one.name}:{number}".encode()) % 2**31
        rows.append(
            {
                "template": one.name,
                "round": str(round_),
                "draw": str(number),
                "wording": wording,
                "version": version,
                "model": model,
                "seed": str(own),
            }
        )
    for start in range(0, len(rows), BATCH):
        part = rows[start : start + BATCH]
        replies = write(
            asked[start : start + BATCH],
            max_new_tokens=MAX_NEW_TOKENS,
            seed=[int(row["seed"]) for row in part],
        )
        for row, one, reply in zip(part, some[start : start + BATCH], replies, strict=True):
            row["facts"] = read_facts(reply, one)[: 2 * LONGEST]
            row["fault"] = wrong_facts(row["facts"])
        project.add("drafts", part)
    return len(rows)


def _questions(asked: Mapping[str, str]) -> list[Question]:
    """What a person is asked of each draft."""
    return [
        Question("decision", asked["decision"], choices=DECISIONS),
        Question("edited", asked["edited"], required=False),
    ]


def hand_out(project: Project, person: str, seed: int = 0) -> list[Path]:
    """Write a sheet of the drafts of each round that has none yet; the files that are new.

    Raises:
        BadInput: the name cannot be a file's.
        RunFailed: a file cannot be written.
    """
    known = {one.name: one for one in project.templates()}
    parts: dict[str, list[dict[str, str]]] = {}
    for row in project.table("drafts"):
        if one := known.get(row["template"]):
            parts.setdefault(row["round"], []).append(
                {
                    "item_id": one.name,
                    "context": one.cells["context"],
                    "draft": row["facts"],
                    "fault": row["fault"],
                    "against": f"{one.bias['group']}：{one.bias['property']} → {one.bias['reversed']}",
                }
            )
    asked = on_sheets(project)
    made: list[Path] = []
    there = sent(project, SHEET)
    for number, rows in parts.items():
        if (name := f"{SHEET}-{number}") in there:
            hand_over(project, name, [person], [row["item_id"] for row in rows])
        else:
            with explain_write_errors(project.sheets / name):
                made += sheets.write(
                    project.sheets,
                    name,
                    pd.DataFrame(rows),
                    _questions(asked),
                    [person],
                    seed,
                    asked["decide"],
                )
    return made


def decided(project: Project) -> Decided:
    """What people have decided so far; an acceptance of what cannot stand, or an edit without a text, is to be mended."""
    drafts = project.table("drafts")
    known = {one.name for one in project.templates()}
    numbers = {row["round"] for row in drafts}
    back = {
        number: sheets.read(project.sheets, name)
        for name in sent(project, SHEET)
        if (number := name.removeprefix(f"{SHEET}-")) in numbers
    }
    given: dict[tuple[str, str], dict[str, Any]] = {}
    for number, found in back.items():
        for row in each(found.answers):
            cell = given.setdefault(
                (str(row.item_id), number), {"person": row.person, "when": row.when}
            )
            cell[str(row.question)] = row.answer
    rows: list[dict[str, Any]] = []
    facts: dict[str, str] = {}
    # Of a template that is no longer there, or has a fault, nothing is to be mended on a sheet.
    mend = [found.to_mend[found.to_mend.item_id.isin([*known, ""])] for found in back.values()]
    for row in drafts:
        if row["template"] not in known:
            continue
        one = _outcome(row, given.get((row["template"], row["round"]), {}))
        if one["wrong"]:
            mend.append(_to_mend(one))
        elif one["facts"]:
            facts[row["template"]] = one["facts"]
        rows.append({name: value for name, value in one.items() if name != "wrong"})
    columns = [
        "template",
        "round",
        "draw",
        "wording",
        "model",
        "drafted",
        "facts",
        "decision",
        "distance",
        "kind",
        "person",
        "when",
    ]
    listed = (
        pd.concat([part for part in mend if len(part)], ignore_index=True)
        if any(map(len, mend))
        else pd.DataFrame(columns=sheets.MEND_COLUMNS)
    )
    return Decided(facts, pd.DataFrame(rows, columns=columns), listed)


def _outcome(row: Row, given: dict[str, Any]) -> dict[str, Any]:
    """A draft with what a person made of it, and what is wrong with that."""
    decision, edited = given.get("decision", ""), str(given.get("edited", "")).strip()
    facts = edited if decision == EDIT else row["facts"] if decision == ACCEPT else ""
    wrong = ""
    if decision == EDIT and not edited:
        wrong = "is to be edited, and the text that it is edited to is missing"
    elif decision in (ACCEPT, EDIT) and (why := wrong_facts(facts)):
        wrong = f"cannot stand: {why}"
    settled = bool(decision) and not wrong
    distance = Levenshtein.normalized_distance(row["facts"], facts) if settled and facts else np.nan
    kind = KINDS[4]
    if settled:
        kind = (
            KINDS[3]
            if decision == AGAIN
            else KINDS[0 if distance == 0 else 1 if distance <= SMALL else 2]
        )
    return {
        "template": row["template"],
        "round": int(row["round"]),
        "draw": int(row["draw"]),
        "wording": row["wording"],
        "model": row["model"],
        "drafted": row["facts"],
        "facts": "" if wrong else facts,
        "decision": decision if settled else "",
        "distance": distance,
        "kind": kind,
        "person": given.get("person", ""),
        "when": given.get("when", ""),
        "wrong": wrong,
    }


def _to_mend(one: dict[str, Any]) -> pd.DataFrame:
    file = f"{SHEET}-{one['round']}/{one['person']}.xlsx"
    row = (
        one["person"],
        file,
        0,
        one["template"],
        "edited",
        one["wrong"],
        "",
        "facts that name both, in whole sentences",
    )
    return pd.DataFrame([row], columns=sheets.MEND_COLUMNS)


def shares(drafts: pd.DataFrame) -> pd.DataFrame:
    """How drafts fared: a row `first drafts` and one `all drafts`, then one a wording.

    Returns:
        `drafts`, `n` (decided on), a column a kind with its number, `usable` (share that stands as it is or after a small
        edit), `ci_low`, `ci_high` (Wilson, 1927), `note`. An interval is given of first drafts alone: draws of one
        template are not independent.
    """
    done = drafts[drafts.kind != KINDS[4]]
    parts = [("first drafts", done[done.draw == 1]), ("all drafts", done)]
    parts += [(f"wording {name}", some) for name, some in done.groupby("wording")]
    return pd.DataFrame([_share(name, some) for name, some in parts])


def _share(name: str, some: pd.DataFrame) -> dict[str, Any]:
    counts = {kind: int((some.kind == kind).sum()) for kind in KINDS[:4]}
    n, usable = len(some), counts[KINDS[0]] + counts[KINDS[1]]
    first = name == "first drafts"
    low, high = proportion_confint(usable, n, method="wilson") if n and first else (np.nan, np.nan)
    note = (
        "no draft was decided on"
        if not n
        else ""
        if first
        else "several draws of a template are not independent, so there is no interval"
    )
    return {
        "drafts": name,
        "n": n,
        **counts,
        "usable": usable / n if n else np.nan,
        "ci_low": low,
        "ci_high": high,
        "note": note,
    }


def sentence(drafts: pd.DataFrame) -> str:
    """How many first drafts needed small edits at most."""
    row = shares(drafts).iloc[0]
    if not row.n:
        return _("No draft has been decided on yet.")
    return _(
        "Of {n} first drafts {usable} could stand as they were or after an edit of at most {small} of the characters (95 % interval {low} to {high}).",
        n=row.n,
        usable=f"{row.usable:.0%}",
        small=f"{SMALL:.0%}",
        low=f"{row.ci_low:.0%}",
        high=f"{row.ci_high:.0%}",
    )
