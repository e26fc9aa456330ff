"""Where objections lead: a discussion decides whether a template stays, and what stands between each template and the data set.

A template goes into the data set when its four forms are complete, both reviewers have answered all that they were asked
of them, and nothing was objected, or a discussion decided to keep it all the same. One sheet, `discuss-N`, goes to one
person or panel. Who would rather mend a text edits the table, or the facts on the editor's sheet: its forms are reviewed
anew then, and what was objected to the earlier ones no longer counts.
"""

import unicodedata
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from bench.core.files import explain_write_errors
from bench.curate import sheets
from bench.curate.cbbq import Project
from bench.curate.cbbq_drafts import each, on_sheets
from bench.curate.cbbq_review import (
    ASKED,
    LETTERS,
    Reviewed,
    completeness,
    objections,
    reviewed,
    seen,
)
from bench.curate.cbbq_sheets import following, hand_over, sent
from bench.curate.workbook import Question

SHEET = "discuss"
KEEP, LEAVE_OUT = "keep", "leave out"
FORMS = 4
# Characters of a reviewer's note that the sheet shows.
LONGEST = 1000
STANDING = [
    "template",
    "objections",
    "decision",
    "reason",
    "decided_by",
    "decided_when",
    "ready",
    "note",
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
        standing: a row a template of the table: `template`, `objections` (their number), `decision` (keep, leave out, or ""),
            `reason`, `decided_by`, `decided_when`, `ready` (it goes into the data set), `note` (why it does not, or "").
        waiting: who has not decided about which template yet: `template`, `people`.
        to_mend: what is wrong in sheets that came back.
    """

    standing: pd.DataFrame
    waiting: pd.DataFrame
    to_mend: pd.DataFrame


def open_questions(project: Project, review: Reviewed) -> dict[str, dict[str, str]]:
    """What is to be discussed as it stands now, by template: those that are reviewed and were objected to.

    Returns:
        `item_id` (the template), `bias`, a column a form with its text and label, `said`: all answers and notes.
    """
    said = review.answers
    objected = _templates(objections(said)) - _templates(review.waiting)
    found: dict[str, dict[str, str]] = {}
    for item, row in seen(project).items():
        template, _, form = item.partition(":")
        if template in objected:
            some = said[said.item_id == item]
            given = [f"{letter} {row[letter]}" for letter in LETTERS]
            one = found.setdefault(template, {"item_id": template, "bias": row["bias"]})
            one[form.replace(":", " ")] = "\n".join(
                [row["context"], row["question_asked"], *given, f"({some.label.iloc[0]})"]
            )
            one["said"] = "\n".join(
                [*filter(None, [one.pop("said", "")]), *_told(form.replace(":", " "), some)]
            )
    # One that was complete when it was reviewed, and has lost its facts since, waits for facts that the editor accepts.
    return {template: row for template, row in found.items() if len(row) == FORMS + 3}


def hand_out(project: Project, person: str, seed: int = 0) -> list[Path]:
    """Write a sheet for one person, or panel, of the templates with objections that no sheet has as they are now.

    Raises:
        BadInput: the name cannot be a file's.
        RunFailed: a file cannot be written.
    """
    now = open_questions(project, reviewed(project))
    there = []
    for name in sent(project, SHEET):
        rows = sheets.opened(project.sheets, name).rows.to_dict("records")
        there += rows
        hand_over(
            project,
            name,
            [person],
            [row["item_id"] for row in rows if now.get(row["item_id"]) == row],
        )
    new = [row for row in now.values() if row not in there]
    if not new:
        return []
    asked = on_sheets(project)
    questions = [
        Question("decision", asked["outcome"], choices=(KEEP, LEAVE_OUT)),
        Question("reason", asked["reason"]),
    ]
    name = following(project, SHEET)
    with explain_write_errors(project.sheets / name):
        return sheets.write(
            project.sheets, name, pd.DataFrame(new), questions, [person], seed, asked["discuss"]
        )


def discussed(project: Project) -> Discussed:
    """What was decided of the templates as they are now; what was decided of other texts or objections does not count.

    A decision without a reason is to be mended, and none until then.
    """
    review = reviewed(project)
    now = open_questions(project, review)
    decisions: dict[str, dict[str, str]] = {}
    waits = dict.fromkeys(now, "a panel")
    mend = []
    for name in sent(project, SHEET):
        sheet, found = sheets.opened(project.sheets, name), sheets.read(project.sheets, name)
        here = {
            row["item_id"]
            for row in sheet.rows.to_dict("records")
            if now.get(row["item_id"]) == row
        }
        mend.append(found.to_mend[found.to_mend.item_id.isin([*here, ""] if here else [])])
        waits |= {template: ", ".join(sheet.people) for template in here}
        for row in each(found.answers[found.answers.item_id.isin(here)]):
            one = decisions.setdefault(
                row.item_id, {"decided_by": row.person, "decided_when": row.when}
            )
            one[row.question] = row.answer
    decisions = {
        template: one for template, one in decisions.items() if {"decision", "reason"} <= set(one)
    }
    unread, sound = _templates(review.waiting), {one.name for one in project.templates()}
    objected = objections(review.answers)
    rows = []
    for row in each(completeness(project)):
        name, one = row.template, decisions.get(row.template, {})
        decision, reason = one.get("decision", ""), one.get("reason", "")
        if not row.complete:
            note = FACTS if name in sound else MEND
        elif name in unread:
            note = REVIEWERS
        elif name in now and decision != KEEP:
            note = LEFT_OUT.format(reason=reason) if decision else PANEL
        else:
            note = ""
        rows.append(
            (
                name,
                _count(objected, name),
                decision,
                reason,
                one.get("decided_by", ""),
                one.get("decided_when", ""),
                not note,
                note,
            )
        )
    waiting = [
        (template, people) for template, people in waits.items() if template not in decisions
    ]
    return Discussed(
        pd.DataFrame(rows, columns=STANDING),
        pd.DataFrame(waiting, columns=["template", "people"]),
        pd.concat(mend, ignore_index=True) if mend else pd.DataFrame(columns=sheets.MEND_COLUMNS),
    )


def _templates(rows: pd.DataFrame) -> set[str]:
    """The templates of forms."""
    return {item.partition(":")[0] for item in rows.item_id}


def _count(rows: pd.DataFrame, template: str) -> int:
    return sum(item.partition(":")[0] == template for item in rows.item_id)


def _told(form: str, said: pd.DataFrame) -> list[str]:
    """What each reviewer said of a form, in a line."""
    lines = []
    for person, some in said.groupby("person", sort=True):
        of = dict(zip(some.question, some.answer, strict=True))
        given = [of.get("answer", ""), *(f"{name}: {of.get(name, '')}" for name in ASKED)]
        note = _plain(of.get("note", ""))
        lines.append(f"{form}, {person}: {', '.join(given)}{f' — {note}' if note else ''}")
    return lines


def _plain(note: str) -> str:
    """A note on one line, as a cell can hold it."""
    text = "".join(
        " " if unicodedata.category(char) in ("Cc", "Cs") else char for char in note
    ).strip()
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
