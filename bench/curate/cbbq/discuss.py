"""Decide about templates that reviewers objected to, and say which templates are ready.

A template goes into the data set when its four forms are complete, both reviewers have answered
all that is required, and nothing was objected, or a discussion decided to keep it. A sheet,
`discuss-N`, goes to one person or panel. Who would rather fix a text edits the table, or the facts
on the editor's sheet: its forms are reviewed again then, and earlier objections no longer count.
"""

import unicodedata
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from bench.curate.cbbq import Project, rounds
from bench.curate.cbbq.drafts import wording_of
from bench.curate.cbbq.review import (
    ASKED,
    FORMS,
    LETTERS,
    Reviewed,
    completeness,
    objections,
    reviewed,
    shown_forms,
)
from bench.curate.sheets import Question

SHEET = "discuss"
KEEP, LEAVE_OUT = "keep", "leave out"
# Characters of a reviewer's note that the sheet shows.
MAX_NOTE = 1000
STANDING_COLUMNS = [
    *("template", "objections", "decision", "reason", "decided_by", "decided_when"),
    *("ready", "note"),
]
# Why a template is not in the data set yet.
MEND, FACTS, REVIEWERS, PANEL, LEFT_OUT = (
    "waits until its row is mended",
    "waits for facts that the editor accepts",
    "waits for reviewers",
    "waits for a discussion",
    "left out: {reason}",
)


class Discussed(NamedTuple):
    """What the discussion decided, and which templates are ready.

    Attributes:
        standing: one row per template of the table, `STANDING_COLUMNS`: the number of `objections`,
            `decision` (keep, leave out, or ""), `ready`, `note` (why it is not ready, or "").
        waiting: `template`, `people` who have not decided about it yet.
        to_mend: what people have to fix.
    """

    standing: pd.DataFrame
    waiting: pd.DataFrame
    to_mend: pd.DataFrame


def open_questions(project: Project, review: Reviewed) -> dict[str, dict[str, str]]:
    """Return what has to be discussed, by template: those with objections and complete reviews.

    Returns:
        `item_id` (the template), `bias`, one column per form with its text and label, `said`: all
        answers and notes.
    """
    answers = review.answers
    disputed = {*_templates(objections(answers))} - {*_templates(review.waiting)}
    rows: dict[str, dict[str, str]] = {}
    for item, form in shown_forms(project).items():
        template, _, name = item.partition(":")
        if template not in disputed:
            continue
        given = answers[answers.item_id == item]
        options = [f"{letter} {form[letter]}" for letter in LETTERS]
        text = [form["context"], form["question_asked"], *options, f"({given.label.iloc[0]})"]
        row = rows.setdefault(template, {"item_id": template, "bias": form["bias"]})
        said = [*filter(None, [row.pop("said", "")]), *_said(name.replace(":", " "), given)]
        row |= {name.replace(":", " "): "\n".join(text), "said": "\n".join(said)}
    # A template that has lost its facts since the review waits for new facts.
    return {name: row for name, row in rows.items() if len(row) == len(FORMS) + 3}


def hand_out(project: Project, person: str, seed: int = 0) -> list[Path]:
    """Write a sheet for a person or panel of disputed templates that no sheet has as they are."""
    texts = wording_of(project).sheet
    questions = [
        Question("decision", texts["outcome"], (KEEP, LEAVE_OUT)),
        Question("reason", texts["reason"]),
    ]
    now = open_questions(project, reviewed(project))
    return rounds.hand_out(project, SHEET, now, questions, [person], seed, texts["discuss"])


def discussed(project: Project) -> Discussed:
    """Read what was decided of the templates as they are now; a decision needs a reason."""
    review = reviewed(project)
    now = open_questions(project, review)
    decisions: dict[str, dict[str, str]] = {}
    waits = dict.fromkeys(now, "a panel")
    returned = []
    for back, items in rounds.current(project, SHEET, now):
        returned.append(back)
        waits |= dict.fromkeys(items, ", ".join(back.sheet.people))
        for answer in back.answers.to_dict("records"):
            origin = {"decided_by": answer["person"], "decided_when": answer["when"]}
            decision = decisions.setdefault(answer["item_id"], origin)
            decision[answer["question"]] = answer["answer"]
    decisions = {
        name: decision
        for name, decision in decisions.items()
        if {"decision", "reason"} <= {*decision}
    }
    unread, sound = {*_templates(review.waiting)}, {one.name for one in project.templates()}
    count = Counter(_templates(objections(review.answers)))
    rows = []
    for row in completeness(project).to_dict("records"):
        name = row["template"]
        decision = decisions.get(name, {})
        if not row["complete"]:
            note = FACTS if name in sound else MEND
        elif name in unread:
            note = REVIEWERS
        elif name in now and decision.get("decision") != KEEP:
            note = LEFT_OUT.format(reason=decision["reason"]) if decision else PANEL
        else:
            note = ""
        values = [decision.get(field, "") for field in STANDING_COLUMNS[2:6]]
        rows.append((name, count[name], *values, not note, note))
    waiting = [(name, people) for name, people in waits.items() if name not in decisions]
    return Discussed(
        pd.DataFrame(rows, columns=STANDING_COLUMNS),
        pd.DataFrame(waiting, columns=["template", "people"]),
        rounds.to_mend(returned, [*now, ""]),
    )


def _templates(rows: pd.DataFrame) -> list[str]:
    return [item.partition(":")[0] for item in rows.item_id]


def _said(form: str, answers: pd.DataFrame) -> list[str]:
    """Write what each reviewer said of a form, one line each."""
    lines = []
    for person, rows in answers.groupby("person", sort=True):
        given = dict(zip(rows.question, rows.answer, strict=True))
        parts = [given.get("answer", ""), *(f"{name}: {given.get(name, '')}" for name in ASKED)]
        note = _one_line(given.get("note", ""))
        lines.append(f"{form}, {person}: {', '.join(parts)}{f' — {note}' if note else ''}")
    return lines


def _one_line(note: str) -> str:
    characters = (" " if unicodedata.category(char) in ("Cc", "Cs") else char for char in note)
    text = "".join(characters).strip()
    return text if len(text) <= MAX_NOTE else f"{text[:MAX_NOTE]}…"
