"""Disambiguate contexts: a model drafts facts, and a person accepts, edits or has it draw again.

As in the paper, a model gets the ambiguous context and the reversed property, in varied
instructions, and people correct what it writes. The instructions are ours, in `wordings/cbbq.toml`.
"""

import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from rapidfuzz.distance import Levenshtein

from bench.core.errors import BadInput
from bench.curate import sheets
from bench.curate.cbbq import Project, Scenario, rounds
from bench.curate.sheets import Problem, Question, cell_fault, check_texts
from bench.data.audit import show_cell
from bench.data.cbbq.templates import SLOTS, malformed
from bench.data.readers import Row, read_toml

# `write(prompts, max_new_tokens=..., seed=[...])` gives replies, as a scorer's `generate` does.
Writer = Callable[..., Sequence[str]]

WORDINGS = Path(__file__).parents[1] / "wordings" / "cbbq.toml"
DECISIONS = ACCEPT, EDIT, AGAIN = ("accept", "edit", "again")
SHEET = "decide"
SHEET_TEXTS = (
    *("decide", "decision", "edited", "review", "answer", "asks_the_bias", "reads_well", "note"),
    *("discuss", "outcome", "reason"),
)
FIELDS = {"context", "target", "other", "property", "reversed"}
MAX_NEW_TOKENS = 200
# Drafts that are asked for and kept together.
BATCH = 16
# Characters of facts, which are a sentence or two; the longest of the samples have 60.
MAX_FACTS = 300
# An edit is small up to this share of changed characters: Levenshtein distance over longer length.
SMALL = 0.2
# What became of a draft, best first.
KINDS = AS_DRAFTED, SMALL_EDIT, LARGE_EDIT, DRAWN_AGAIN, UNDECIDED = (
    *("as drafted", "small edit", "large edit", "drawn again", "undecided"),
)
DRAFT_COLUMNS = [
    *("template", "round", "draw", "wording", "model", "drafted", "facts", "decision"),
    *("distance", "kind", "person", "when"),
]
ENDS = tuple("。！？…”」』.!?")


class Wording(NamedTuple):
    """Instructions for drafting by name, their version, and the texts on sheets."""

    version: str
    prompts: dict[str, str]
    sheet: Mapping[str, str]


class Decided(NamedTuple):
    """What people made of the drafts.

    Attributes:
        facts: the facts that each template has in the end.
        drafts: `DRAFT_COLUMNS`: `facts` as they became, `distance` (share of characters changed).
        to_mend: what people have to fix.
    """

    facts: dict[str, str]
    drafts: pd.DataFrame
    to_mend: pd.DataFrame


def read_wording(path: Path = WORDINGS) -> Wording:
    """Read instructions and texts on sheets.

    Raises:
        BadInput: a version, an instruction or a text is missing, or a field in braces is unknown.
    """
    values = read_toml(path)
    texts, version = values.get("sheet"), values.get("version")
    check_texts(path, "sheet", texts, SHEET_TEXTS)
    tables = {name: table for name, table in values.items() if isinstance(table, dict)}
    prompts: dict[str, Any] = {
        name: table.get("prompt") for name, table in tables.items() if name != "sheet"
    }
    if not isinstance(version, str) or not prompts:
        raise BadInput(f'{path}: expected `version = "..."`, and tables with a `prompt` each')
    for name, prompt in prompts.items():
        used = set(re.findall(r"\{(\w*)\}", prompt)) if isinstance(prompt, str) else set()
        if not {"context", "reversed"} <= used <= FIELDS:
            raise BadInput(
                f"{path}, table [{name}], `prompt`: expected a text with {{context}} and "
                f"{{reversed}}, and of fields no others than {', '.join(sorted(FIELDS))}"
            )
    return Wording(version, prompts, tables["sheet"])


def wording_of(project: Project) -> Wording:
    """Read a project's own `wording.toml`, or ours."""
    own = project.folder / "wording.toml"
    return read_wording(own if own.is_file() else WORDINGS)


def instruction(scenario: Scenario, prompt: str) -> str:
    """Fill in the prompt for a template, with the first name of each list in the slots."""
    first = [people[0] for people in scenario.names]
    values = {
        "context": scenario.filled(scenario.cells["context"]),
        "target": first[scenario.target],
        "other": first[1 - scenario.target],
        "property": scenario.bias["property"],
        "reversed": scenario.bias["reversed"],
    }
    # In one pass, so that what is filled in is never taken for a field.
    return re.sub(r"\{(\w+)\}", lambda field: values[field[1]], prompt).strip()


def prompt_name(template: str, draw: int, seed: int, names: Sequence[str]) -> str:
    """Choose the instruction of a draw: each in turn, in an order by seed and template."""
    order = np.random.default_rng([seed, zlib.crc32(template.encode())]).permutation(len(names))
    return names[order[(draw - 1) % len(names)]]


def read_facts(reply: str, scenario: Scenario) -> str:
    """Read what a reply adds to the context, with slots for names; cut off a repeated context."""
    lines = re.sub(r"\s*\n\s*", "", reply.strip())
    text = "".join(char for char in lines if unicodedata.category(char) not in ("Cc", "Cs"))
    slots = {
        name: slot for people, slot in zip(scenario.names, SLOTS, strict=True) for name in people
    }
    # The longest first: a name may be part of another one.
    known = "|".join(map(re.escape, sorted(slots, key=len, reverse=True)))
    text = re.sub(known, lambda name: slots[name[0]], text)
    return text.rpartition(scenario.cells["context"])[2].strip()


def facts_fault(facts: str) -> str:
    """Say why facts cannot stand as they are; "" if they can."""
    if not facts:
        return "says nothing"
    if wrong := malformed(facts):
        return f"holds {show_cell(wrong[0])}, which is no placeholder"
    if fault := cell_fault(facts):
        return fault
    if missing := [slot for slot in SLOTS if slot not in facts]:
        return f"does not name {' nor '.join(missing)}, and each question asks about one of the two"
    if len(facts) > MAX_FACTS:
        return f"has {len(facts)} characters; a sentence or two have at most {MAX_FACTS}"
    return "" if facts.endswith(ENDS) else "breaks off before the end of a sentence"


def pending(project: Project) -> list[Scenario]:
    """Return the templates that need a draft.

    They have none, a person wants another, or the last one was never handed out, because the
    template had a fault when the sheet of that round was written.
    """
    last = {row["template"]: row for row in project.table("drafts")}
    handed = {
        name.removeprefix(f"{SHEET}-"): {
            row["item_id"] for row in sheets.load(project.sheets, name).rows
        }
        for name in rounds.sent(project, SHEET)
    }
    drafts = decided(project).drafts
    again = {
        row["template"]
        for row in drafts[drafts.decision == AGAIN].to_dict("records")
        if str(row["draw"]) == last[row["template"]]["draw"]
    }

    def is_missed(name: str) -> bool:
        number = last[name]["round"]
        return number in handed and name not in handed[number]

    return [
        scenario
        for scenario in project.templates()
        if scenario.name not in last or scenario.name in again or is_missed(scenario.name)
    ]


def draw(project: Project, write: Writer, model: str, seed: int = 0) -> int:
    """Have drafts written where they are needed, keep them with their origin, return their number.

    Args:
        write: a scorer's `generate`.
        model: its name in the table of drafts.
    """
    scenarios, before, wording = pending(project), project.table("drafts"), wording_of(project)
    round_ = 1 + max((int(row["round"]) for row in before), default=0)
    draws = Counter({row["template"]: 0 for row in before})
    for row in before:
        draws[row["template"]] = max(draws[row["template"]], int(row["draw"]))
    rows: list[Row] = []
    for scenario in scenarios:
        name, number = scenario.name, draws[scenario.name] + 1
        rows.append(
            {
                "template": name,
                "round": str(round_),
                "draw": str(number),
                "wording": prompt_name(name, number, seed, list(wording.prompts)),
                "version": wording.version,
                "model": model,
                "seed": str(zlib.crc32(f"{seed}:{name}:{number}".encode()) % 2**31),
            }
        )
    for start in range(0, len(rows), BATCH):
        batch = rows[start : start + BATCH]
        about = scenarios[start : start + BATCH]
        prompts = [
            instruction(scenario, wording.prompts[row["wording"]])
            for scenario, row in zip(about, batch, strict=True)
        ]
        seeds = [int(row["seed"]) for row in batch]
        replies = write(prompts, max_new_tokens=MAX_NEW_TOKENS, seed=seeds)
        for row, scenario, reply in zip(batch, about, replies, strict=True):
            row["facts"] = read_facts(reply, scenario)[: 2 * MAX_FACTS]
            row["fault"] = facts_fault(row["facts"])
        project.save("drafts", [*before, *rows[: start + BATCH]])
    return len(rows)


def hand_out(project: Project, person: str, seed: int = 0) -> list[Path]:
    """Write a sheet of the drafts of each round that has none yet; the new files."""
    known = {scenario.name: scenario for scenario in project.templates()}
    parts: dict[str, list[dict[str, str]]] = {}
    for row in project.table("drafts"):
        if scenario := known.get(row["template"]):
            bias = scenario.bias
            shown_row = {
                "item_id": scenario.name,
                "context": scenario.cells["context"],
                "draft": row["facts"],
                "fault": row["fault"],
                "against": f"{bias['group']}：{bias['property']} → {bias['reversed']}",
            }
            parts.setdefault(row["round"], []).append(shown_row)
    texts, there = wording_of(project).sheet, rounds.sent(project, SHEET)
    questions = [
        Question("decision", texts["decision"], DECISIONS),
        Question("edited", texts["edited"], required=False),
    ]
    paths: list[Path] = []
    for number, rows in parts.items():
        name, table = f"{SHEET}-{number}", pd.DataFrame(rows)
        if name in there:
            rounds.reassign(project, name, [person], [*table.item_id])
            continue
        where = project.sheets, name
        paths += sheets.write(*where, table, questions, [person], seed, texts["decide"])
    return paths


def decided(project: Project) -> Decided:
    """Read what people have decided; list accepted drafts that cannot stand, and empty edits."""
    drafts = project.table("drafts")
    numbers = {row["round"] for row in drafts}
    known = {scenario.name for scenario in project.templates()}
    back = {
        number: sheets.read(project.sheets, name)
        for name in rounds.sent(project, SHEET)
        if (number := name.removeprefix(f"{SHEET}-")) in numbers
    }
    answers: dict[tuple[str, str], dict[str, str]] = {}
    for number, returned in back.items():
        for answer in returned.answers.to_dict("records"):
            origin = {"person": answer["person"], "when": answer["when"]}
            given = answers.setdefault((answer["item_id"], number), origin)
            given[answer["question"]] = answer["answer"]
    # Of a template that is no longer there, or has a fault, nothing is to be fixed on a sheet.
    mend = [rounds.to_mend([*back.values()], [*known, ""])]
    outcomes = []
    facts: dict[str, str] = {}
    for row in drafts:
        if row["template"] not in known:
            continue
        outcome, fault = _outcome(row, answers.get((row["template"], row["round"]), {}))
        outcomes.append(outcome)
        if fault:
            file = f"{SHEET}-{row['round']}/{outcome['person']}.xlsx"
            allowed = "facts that name both, in whole sentences"
            problem = Problem(outcome["person"], file, 0, row["template"], "edited", fault)
            mend.append(pd.DataFrame([problem._replace(allowed=allowed)]))
        elif outcome["facts"]:
            facts[row["template"]] = outcome["facts"]
    listed = pd.concat([part for part in mend if len(part)] or mend[:1], ignore_index=True)
    return Decided(facts, pd.DataFrame(outcomes, columns=DRAFT_COLUMNS), listed)


def _outcome(row: Row, given: Mapping[str, str]) -> tuple[dict[str, Any], str]:
    """Return what became of a draft, and what is wrong with the decision."""
    decision, edited = given.get("decision", ""), given.get("edited", "").strip()
    facts = {EDIT: edited, ACCEPT: row["facts"]}.get(decision, "")
    fault = ""
    if decision == EDIT and not edited:
        fault = "is to be edited, and the text that it is edited to is missing"
    elif decision in (ACCEPT, EDIT) and (reason := facts_fault(facts)):
        fault = f"cannot stand: {reason}"
    is_settled = bool(decision) and not fault
    distance, kind = np.nan, DRAWN_AGAIN if is_settled else UNDECIDED
    if is_settled and facts:
        distance = Levenshtein.normalized_distance(row["facts"], facts)
        kind = AS_DRAFTED if distance == 0 else SMALL_EDIT if distance <= SMALL else LARGE_EDIT
    outcome = {
        **{name: row[name] for name in ("template", "wording", "model")},
        **{name: int(row[name]) for name in ("round", "draw")},
        "drafted": row["facts"],
        "facts": "" if fault else facts,
        "decision": decision if is_settled else "",
        "distance": distance,
        "kind": kind,
        "person": given.get("person", ""),
        "when": given.get("when", ""),
    }
    return outcome, fault
