"""Lead CBBQ templates through the rounds of judgement: drafts, reviews and discussions.

    decide     a model adds facts to a context; an editor accepts, edits or has it draw again
    review     two people answer each form of a template blind, and say whether it is fit
    discuss    a panel keeps or leaves out the templates that reviewers objected to

A template has four forms: ambiguous and disambiguous, each with the negative and the non-negative
question. It is ready when these are complete, both reviewers have answered all that is required,
and nothing was objected, or a discussion decided to keep it. Who would rather fix a text edits the
table, or the facts on the editor's sheet: its forms are reviewed again then, and earlier answers no
longer count.

As in the paper, a model gets the ambiguous context and the reversed property, in varied
instructions. These and the questions to people are ours, in `wordings/cbbq.toml`.
"""

import re
import unicodedata
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from rapidfuzz.distance import Levenshtein

from bench.core.errors import BadInput
from bench.curate import sheets
from bench.curate.cbbq import QUESTIONS, Project, Scenario
from bench.curate.sheets import MEND_COLUMNS, Problem, Question, Returned, cell_fault, check_texts
from bench.data.audit import show_cell
from bench.data.cbbq.templates import CONDITIONS, SLOTS, malformed
from bench.data.readers import Row, read_toml

# `write(prompts, max_new_tokens=..., seed=[...])` gives replies, as a scorer's `generate` does.
Writer = Callable[..., Sequence[str]]

WORDINGS = Path(__file__).parents[1] / "wordings" / "cbbq.toml"
# The kinds of sheets; the sheets are `review-1`, `review-2` and so on.
KINDS_OF_SHEETS = DECIDE, REVIEW, DISCUSS = ("decide", "review", "discuss")
DECISIONS = ACCEPT, EDIT, AGAIN = ("accept", "edit", "again")
LETTERS = ("A", "B", "C")
YES, NO = "yes", "no"
ASKED = ("asks_the_bias", "reads_well")
KEEP, LEAVE_OUT = "keep", "leave out"
SHEET_TEXTS = (
    *("decide", "decision", "edited", "review", "answer", *ASKED, "note"),
    *("discuss", "outcome", "reason"),
)
FIELDS = {"context", "target", "other", "property", "reversed"}
MAX_NEW_TOKENS = 200
# Drafts that are asked for and kept together.
BATCH = 16
# Characters of facts, which are a sentence or two; the longest of the samples have 60.
MAX_FACTS = 300
# Characters of a reviewer's note that the sheet of the discussion shows.
MAX_NOTE = 1000
# An edit is small up to this share of changed characters: Levenshtein distance over longer length.
SMALL = 0.2
# Kappa is of two.
REVIEWERS = 2
# What became of a draft, best first.
KINDS = AS_DRAFTED, SMALL_EDIT, LARGE_EDIT, DRAWN_AGAIN, UNDECIDED = (
    *("as drafted", "small edit", "large edit", "drawn again", "undecided"),
)
# Why a template is not in the data set yet.
MEND, FACTS, REVIEW_MISSING, PANEL, LEFT_OUT = (
    "waits until its row is mended",
    "waits for facts that the editor accepts",
    "waits for reviewers",
    "waits for a discussion",
    "left out: {reason}",
)
FORMS = [*product(CONDITIONS, QUESTIONS)]
DRAFT_COLUMNS = [
    *("template", "round", "draw", "wording", "model", "drafted", "facts", "decision"),
    *("distance", "kind", "person", "when"),
]
FORM_COLUMNS = [
    *("item_id", "template", "category", "condition", "polarity", "context", "question"),
    *("label", "lacks"),
]
ANSWER_COLUMNS = [
    *("item_id", "template", "category", "condition", "polarity", "person", "rater"),
    *("question", "answer", "label"),
]
STANDING_COLUMNS = [
    *("template", "objections", "decision", "reason", "decided_by", "decided_when"),
    *("ready", "note"),
]
ENDS = tuple("。！？…”」』.!?")


class Instructions(NamedTuple):
    """Instructions for drafting by name, their version, and the texts on sheets."""

    version: str
    prompts: dict[str, str]
    sheet: Mapping[str, str]


def instructions(project: Project) -> Instructions:
    """Read a project's own `wording.toml`, or ours.

    Raises:
        BadInput: a version, an instruction or a text is missing, or a field in braces is unknown.
    """
    own = project.folder / "wording.toml"
    path = own if own.is_file() else WORDINGS
    values = read_toml(path)
    texts, version = values.pop("sheet", None), values.get("version")
    check_texts(path, "sheet", texts, SHEET_TEXTS)
    prompts: dict[str, Any] = {
        name: table.get("prompt") for name, table in values.items() if isinstance(table, dict)
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
    return Instructions(version, prompts, texts)


def fill_prompt(scenario: Scenario, prompt: str) -> str:
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


class Rounds:
    """How far a project is, as its files are now.

    Attributes:
        scenarios: the templates without faults, by name.
        facts: the facts that each template has in the end.
        drafts: `DRAFT_COLUMNS`: `facts` as they became, `distance` (share of characters changed).
        forms: the four forms of each template: `FORM_COLUMNS`, `lacks` is "" for a complete form.
        completeness: what each template lacks: `template`, one column per form, `complete`.
        answers: what reviewers said of the forms as they are: `ANSWER_COLUMNS`; `rater` is the
            sheet's first or second person, `label` a letter.
        unread: `item_id`, `people` who have not answered all required questions about the form.
        objections: what has to be discussed: answers that are not the label, and each no.
        standing: one row per template of the table, `STANDING_COLUMNS`: the number of `objections`,
            `decision` (keep, leave out, or ""), `ready`, `note` (why it is not ready, or "").
        undecided: `template`, `people` of the panel who have not decided about it yet.
        to_mend: what people have to fix on sheets.
        shown: the rows of the sheets of each kind as they would go out now, by `item_id`.
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self.scenarios = {scenario.name: scenario for scenario in project.templates()}
        self.facts: dict[str, str] = {}
        self.shown: dict[str, dict[str, dict[str, str]]] = {REVIEW: {}, DISCUSS: {}}
        self._problems: list[pd.DataFrame] = [pd.DataFrame(columns=MEND_COLUMNS)]
        self.drafts = self._decided()
        self.forms, self.completeness = self._forms()
        self.answers, self.unread = self._reviewed()
        self.objections = objections(self.answers)
        self._dispute()
        self.standing, self.undecided = self._discussed()
        filled = [part for part in self._problems if len(part)] or self._problems[:1]
        self.to_mend = pd.concat(filled, ignore_index=True)

    def _decided(self) -> pd.DataFrame:
        """Read what the editor decided; list accepted drafts that cannot stand, and empty edits."""
        drafts = self.project.table("drafts")
        answers: dict[tuple[str, str], dict[str, str]] = {}
        for name in sent(self.project, DECIDE):
            number = name.removeprefix(f"{DECIDE}-")
            if number in {row["round"] for row in drafts}:
                back = sheets.read(self.project.sheets, name)
                # Of a template that is no longer there, or has a fault, nothing is to be fixed.
                about = back.to_mend.item_id.isin([*self.scenarios, ""])
                self._problems.append(back.to_mend[about])
                for item, given in _by_item(back).items():
                    answers[item, number] = given
        rows = []
        for row in drafts:
            name, draft = row["template"], row["facts"]
            if name not in self.scenarios:
                continue
            given = answers.get((name, row["round"]), {})
            decision, edited = given.get("decision", ""), given.get("edited", "").strip()
            facts = {EDIT: edited, ACCEPT: draft}.get(decision, "")
            fault, distance, kind = "", np.nan, DRAWN_AGAIN if decision else UNDECIDED
            if decision == EDIT and not edited:
                fault = "is to be edited, and the text that it is edited to is missing"
            elif decision in (ACCEPT, EDIT) and (reason := facts_fault(facts)):
                fault = f"cannot stand: {reason}"
            if fault:
                file = f"{DECIDE}-{row['round']}/{given['person']}.xlsx"
                allowed = "facts that name both, in whole sentences"
                problem = Problem(given["person"], file, 0, name, "edited", fault, "", allowed)
                self._problems.append(pd.DataFrame([problem]))
                facts, decision, kind = "", "", UNDECIDED
            elif facts:
                self.facts[name] = facts
                distance = Levenshtein.normalized_distance(draft, facts)
                kind = SMALL_EDIT if distance <= SMALL else LARGE_EDIT
                kind = AS_DRAFTED if distance == 0 else kind
            numbers = {"round": int(row["round"]), "draw": int(row["draw"])}
            origin = {"person": "", "when": "", **given}
            rows.append(
                {**row, **origin, **numbers, "drafted": draft, "facts": facts}
                | {"decision": decision, "distance": distance, "kind": kind}
            )
        return pd.DataFrame(rows, columns=DRAFT_COLUMNS)

    def _forms(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        rows, lacks = [], {}
        for name, scenario in self.scenarios.items():
            cells, own = scenario.cells, self.facts.get(name, "")
            for condition, polarity in FORMS:
                item, is_ambiguous = f"{name}:{condition}:{polarity}", condition == CONDITIONS[0]
                context = cells["context"] + ("" if is_ambiguous else own)
                question, label = cells[QUESTIONS[polarity]], scenario.label(condition, polarity)
                missing = "" if own or is_ambiguous else "facts that a person accepted or wrote"
                form = (name, scenario.category, condition, polarity, context, question, label)
                rows.append((item, *form, missing))
                lacks[item] = f"lacks {missing}" if missing else YES
                if not missing:
                    options = [scenario.filled(cells[f"ans{k}"]) for k in range(len(LETTERS))]
                    self.shown[REVIEW][item] = {
                        "item_id": item,
                        "context": scenario.filled(context),
                        "question_asked": question,
                        **dict(zip(LETTERS, options, strict=True)),
                        "bias": f"{scenario.bias['group']}：{scenario.bias['property']}",
                    }
        complete = []
        faulty = "waits: the row has faults"
        for name in (row["template"] for row in self.project.table("templates")):
            states = {" ".join(form): lacks.get(":".join([name, *form]), faulty) for form in FORMS}
            is_complete = {*states.values()} == {YES}
            complete.append({"template": name, **states, "complete": is_complete})
        return pd.DataFrame(rows, columns=FORM_COLUMNS), pd.DataFrame(complete)

    def _reviewed(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        waits = {item: {"two reviewers"} for item in self.shown[REVIEW]}
        columns = ["item_id", "person", "rater", "question", "answer"]
        parts = [pd.DataFrame(columns=columns, dtype=str)]
        for back, items in self._current(REVIEW):
            waits |= {item: set() for item in items}
            for item, person, _question in back.missing:
                if item in items:
                    waits[item].add(person)
            raters = {name: f"reviewer {k}" for k, name in enumerate(back.sheet.people, start=1)}
            parts.append(back.answers.assign(rater=back.answers.person.map(raters)))
        forms = self.forms.drop(columns=["question"])
        forms["label"] = [LETTERS[label] for label in forms.label]
        answers = pd.concat(parts, ignore_index=True).merge(forms, on="item_id")
        unread = [(item, ", ".join(sorted(people))) for item, people in waits.items() if people]
        return answers[ANSWER_COLUMNS], pd.DataFrame(unread, columns=["item_id", "people"])

    def _dispute(self) -> None:
        """Collect what has to be discussed: templates with objections and complete reviews."""
        disputed = {*templates_of(self.objections)} - {*templates_of(self.unread)}
        rows: dict[str, dict[str, str]] = {}
        for item, form in self.shown[REVIEW].items():
            template, _, name = item.partition(":")
            if template not in disputed:
                continue
            name, given = name.replace(":", " "), self.answers[self.answers.item_id == item]
            options = [f"{letter} {form[letter]}" for letter in LETTERS]
            text = [form["context"], form["question_asked"], *options, f"({given.label.iloc[0]})"]
            row = rows.setdefault(template, {"item_id": template, "bias": form["bias"]})
            opinions = [*filter(None, [row.pop("said", "")]), *_said(name, given)]
            row |= {name: "\n".join(text), "said": "\n".join(opinions)}
        # A template that has lost its facts since the review waits for new facts.
        self.shown[DISCUSS] = {n: row for n, row in rows.items() if len(row) == len(FORMS) + 3}

    def _discussed(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Read what was decided of the templates as they are now; a decision needs a reason."""
        disputed = self.shown[DISCUSS]
        waits, decisions = dict.fromkeys(disputed, "a panel"), {}
        for back, items in self._current(DISCUSS):
            waits |= dict.fromkeys(items, ", ".join(back.sheet.people))
            for item, given in _by_item(back).items():
                if {"decision", "reason"} <= {*given}:
                    decisions[item] = given
        unread, count = {*templates_of(self.unread)}, Counter(templates_of(self.objections))
        rows = []
        for row in self.completeness.to_dict("records"):
            name, note = row["template"], ""
            given = decisions.get(name, {})
            if not row["complete"]:
                note = FACTS if name in self.scenarios else MEND
            elif name in unread:
                note = REVIEW_MISSING
            elif name in disputed and given.get("decision") != KEEP:
                note = LEFT_OUT.format(reason=given["reason"]) if given else PANEL
            fields = ("decision", "reason", "person", "when")
            values = [given.get(field, "") for field in fields]
            rows.append((name, count[name], *values, not note, note))
        waiting = [(name, people) for name, people in waits.items() if name not in decisions]
        undecided = pd.DataFrame(waiting, columns=["template", "people"])
        return pd.DataFrame(rows, columns=STANDING_COLUMNS), undecided

    def _current(self, kind: str) -> Iterator[tuple[Returned, set[str]]]:
        """Yield what came back of each sheet about rows that are as they are now, and these items.

        Of other rows, nothing is to be fixed. A copied sheet asks nothing new.
        """
        asked: set[str] = set()
        for name in sent(self.project, kind):
            back = sheets.read(self.project.sheets, name)
            items = {item for item in _same(back.sheet.rows, self.shown[kind]) if item not in asked}
            asked |= items
            if items:
                self._problems.append(back.to_mend[back.to_mend.item_id.isin([*items, ""])])
            yield back._replace(answers=back.answers[back.answers.item_id.isin(items)]), items


def objections(answers: pd.DataFrame) -> pd.DataFrame:
    """List what has to be discussed: answers that are not the label, each no, and the notes."""
    is_wrong = (answers.question == "answer") & (answers.answer != answers.label)
    is_no = answers.question.isin(ASKED) & (answers.answer == NO)
    notes = answers.loc[answers.question == "note", ["item_id", "person", "answer"]]
    notes = notes.rename(columns={"answer": "note"})
    table = answers[is_wrong | is_no].merge(notes, how="left").fillna({"note": ""})
    table["expected"] = table.label.where(table.question == "answer", YES)
    return table[["item_id", "person", "question", "answer", "expected", "note"]]


def templates_of(rows: pd.DataFrame) -> list[str]:
    """Return the templates of forms, with which their names begin."""
    return [item.partition(":")[0] for item in rows.item_id]


def _said(form: str, answers: pd.DataFrame) -> list[str]:
    """Write what each reviewer said of a form, one line each."""
    lines = []
    for person, rows in answers.groupby("person", sort=True):
        given = dict(zip(rows.question, rows.answer, strict=True))
        parts = [given.get("answer", ""), *(f"{name}: {given.get(name, '')}" for name in ASKED)]
        characters = given.get("note", "")
        note = "".join(
            " " if unicodedata.category(char) in ("Cc", "Cs") else char for char in characters
        ).strip()
        note = note if len(note) <= MAX_NOTE else f"{note[:MAX_NOTE]}…"
        lines.append(f"{form}, {person}: {', '.join(parts)}{f' — {note}' if note else ''}")
    return lines


def _by_item(back: Returned) -> dict[str, dict[str, str]]:
    """Return the answers of a sheet for one person: by item, with `person` and `when`."""
    answers: dict[str, dict[str, str]] = {}
    for row in back.answers.to_dict("records"):
        origin = {"person": row["person"], "when": row["when"]}
        answers.setdefault(row["item_id"], origin)[row["question"]] = row["answer"]
    return answers


def _same(rows: Sequence[Row], now: Mapping[str, Mapping[str, str]]) -> set[str]:
    """Return the items of a sheet's rows that are as they are now."""
    return {row["item_id"] for row in rows if now.get(row["item_id"]) == row}


def sent(project: Project, kind: str) -> list[str]:
    """Return the sheets of a kind that went out, in the order of their numbers."""
    names = [path.parent.name for path in project.sheets.glob(f"{kind}-*/{sheets.RECORD}")]
    # A copy of a folder under another name is no sheet.
    return sorted((name for name in names if _number(name)), key=_number)


def _number(name: str) -> int:
    digits = re.fullmatch(r"[a-z]+-([1-9][0-9]{0,8})", name)
    return int(digits[1]) if digits else 0


def resend(project: Project) -> None:
    """Write the files of sheets that were lost, or never written after an interruption."""
    for kind in KINDS_OF_SHEETS:
        for name in sent(project, kind):
            sheets.send(project.sheets, name)


def pending(project: Project) -> list[Scenario]:
    """Return the templates that need a draft.

    They have none, a person wants another, or the last one was never handed out, because the
    template had a fault when the sheet of that round was written.
    """
    rounds, number = Rounds(project), len(f"{DECIDE}-")
    handed = {
        name[number:]: {row["item_id"] for row in sheets.load(project.sheets, name).rows}
        for name in sent(project, DECIDE)
    }
    # The last draft of each template is the one that counts.
    waits = {
        row["template"]: row["template"] in handed.get(row["round"], [row["template"]])
        for row in project.table("drafts")
    }
    wanted = dict(zip(rounds.drafts.template, rounds.drafts.decision == AGAIN, strict=True))
    return [
        scenario
        for name, scenario in rounds.scenarios.items()
        if not waits.get(name) or wanted[name]
    ]


def draw(project: Project, write: Writer, model: str, seed: int = 0) -> int:
    """Have drafts written where they are needed, keep them with their origin, return their number.

    Args:
        write: a scorer's `generate`.
        model: its name in the table of drafts.
    """
    scenarios, before, texts = pending(project), project.table("drafts"), instructions(project)
    round_ = 1 + max((int(row["round"]) for row in before), default=0)
    rows: list[Row] = []
    for start in range(0, len(scenarios), BATCH):
        batch = scenarios[start : start + BATCH]
        prompts, new = [], []
        for scenario in batch:
            name = scenario.name
            draws = [int(row["draw"]) for row in before if row["template"] == name]
            number = 1 + max(draws, default=0)
            row = {
                "template": name,
                "round": str(round_),
                "draw": str(number),
                "wording": prompt_name(name, number, seed, list(texts.prompts)),
                "version": texts.version,
                "model": model,
                "seed": str(zlib.crc32(f"{seed}:{name}:{number}".encode()) % 2**31),
            }
            new.append(row)
            prompts.append(fill_prompt(scenario, texts.prompts[row["wording"]]))
        seeds = [int(row["seed"]) for row in new]
        replies = write(prompts, max_new_tokens=MAX_NEW_TOKENS, seed=seeds)
        for row, scenario, reply in zip(new, batch, replies, strict=True):
            facts = read_facts(reply, scenario)[: 2 * MAX_FACTS]
            rows.append(row | {"facts": facts, "fault": facts_fault(facts)})
        project.save("drafts", [*before, *rows])
    return len(rows)


def hand_out(project: Project, kind: str, people: Sequence[str], seed: int = 0) -> list[Path]:
    """Write sheets of the rows that no sheet of this kind has as they are now; the new files.

    Drafts are handed out once, on a sheet per round of drafting. Where something is not answered
    yet, `people` replace those who were asked before.

    Args:
        people: an editor, two reviewers, or a panel, for the sheets `KINDS_OF_SHEETS`.
    """
    if kind == REVIEW and not len({*people}) == len(people) == REVIEWERS:
        raise BadInput(
            f"reviewers: {REVIEWERS} different people are needed for Cohen's kappa; "
            f"found {', '.join(people) or 'none'}"
        )
    rounds, texts, names = Rounds(project), instructions(project).sheet, sent(project, kind)
    known = {name: sheets.load(project.sheets, name).rows for name in names}
    parts: dict[str, list[dict[str, str]]] = defaultdict(list)
    if kind == DECIDE:
        for row in project.table("drafts"):
            if scenario := rounds.scenarios.get(row["template"]):
                bias = scenario.bias
                shown = {
                    "item_id": scenario.name,
                    "context": scenario.cells["context"],
                    "draft": row["facts"],
                    "fault": row["fault"],
                    "against": f"{bias['group']}：{bias['property']} → {bias['reversed']}",
                }
                parts[f"{kind}-{row['round']}"].append(shown)
        asked = {name: {row["item_id"] for row in rows} for name, rows in parts.items()}
    else:
        now, there = rounds.shown[kind], [row for rows in known.values() for row in rows]
        new = f"{kind}-{max(map(_number, names), default=0) + 1}"
        parts[new] = [row for row in now.values() if row not in there]
        asked = {name: _same(rows, now) for name, rows in known.items()}
    for name in names:
        missing = {item for item, _, _ in sheets.read(project.sheets, name).missing}
        if missing & asked.get(name, set()):
            sheets.ask(project.sheets, name, people)
    questions = {
        DECIDE: [
            Question("decision", texts["decision"], DECISIONS),
            Question("edited", texts["edited"], required=False),
        ],
        REVIEW: [
            Question("answer", texts["answer"], LETTERS),
            *(Question(name, texts[name], (YES, NO)) for name in ASKED),
            Question("note", texts["note"], required=False),
        ],
        DISCUSS: [
            Question("decision", texts["outcome"], (KEEP, LEAVE_OUT)),
            Question("reason", texts["reason"]),
        ],
    }[kind]
    return [
        path
        for name, rows in parts.items()
        if rows and name not in names
        for path in sheets.write(
            project.sheets, name, pd.DataFrame(rows), questions, people, seed, texts[kind]
        )
    ]
