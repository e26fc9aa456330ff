"""Have two reviewers answer each form of a template blind, and collect what they object to.

A template has four forms: ambiguous and disambiguous, each with the negative and the non-negative
question. Blind answers, by a form's words alone, show whether an ambiguous form is ambiguous and
whether facts decide. The questions to reviewers are ours.
"""

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from bench.core.errors import BadInput
from bench.curate.cbbq import QUESTIONS, Project, rounds
from bench.curate.cbbq.drafts import decided, facts_fault, wording_of
from bench.curate.sheets import Question
from bench.data.cbbq.templates import CONDITIONS

SHEET = "review"
LETTERS = ("A", "B", "C")
YES, NO = "yes", "no"
ASKED = ("asks_the_bias", "reads_well")
REVIEWERS = 2
FORMS = [*product(CONDITIONS, QUESTIONS)]
FORM_COLUMNS = [
    *("item_id", "template", "bias", "category", "condition", "polarity", "context"),
    *("question", "label", "lacks"),
]
ANSWER_COLUMNS = [
    *("item_id", "template", "category", "condition", "polarity", "person", "rater"),
    *("question", "answer", "label"),
]


class Reviewed(NamedTuple):
    """What reviewers said of the forms as they are now; earlier texts do not count.

    Attributes:
        answers: `ANSWER_COLUMNS`; `rater` is the sheet's first or second person, `label` a letter.
        waiting: `item_id`, `people` who have not answered all required questions about the form.
        to_mend: what people have to fix.
    """

    answers: pd.DataFrame
    waiting: pd.DataFrame
    to_mend: pd.DataFrame


def forms(project: Project) -> pd.DataFrame:
    """Return the four forms of each template: `FORM_COLUMNS`, `lacks` is "" for a complete form."""
    facts = decided(project).facts
    rows = []
    for scenario in project.templates():
        own = facts.get(scenario.name, "")
        fault = f"facts: {facts_fault(own)}" if facts_fault(own) else ""
        lacks = fault if own else "facts that a person accepted or wrote"
        for condition, polarity in FORMS:
            is_ambiguous = condition == CONDITIONS[0]
            rows.append(
                {
                    "item_id": f"{scenario.name}:{condition}:{polarity}",
                    "template": scenario.name,
                    "bias": scenario.bias["bias"],
                    "category": scenario.category,
                    "condition": condition,
                    "polarity": polarity,
                    "context": scenario.cells["context"] + ("" if is_ambiguous else own),
                    "question": scenario.cells[QUESTIONS[polarity]],
                    "label": scenario.label(condition, polarity),
                    "lacks": "" if is_ambiguous else lacks,
                }
            )
    return pd.DataFrame(rows, columns=FORM_COLUMNS)


def completeness(project: Project) -> pd.DataFrame:
    """Say what each template lacks: `template`, one column per form, `complete`."""
    lacks = forms(project).set_index("item_id").lacks
    rows = []
    for row in project.table("templates"):
        states = {}
        for condition, polarity in FORMS:
            lack = lacks.get(f"{row['template']}:{condition}:{polarity}")
            lack = f"lacks {lack}" if lack else YES if lack == "" else "waits: the row has faults"
            states[f"{condition} {polarity}"] = lack
        is_complete = {*states.values()} == {YES}
        rows.append({"template": row["template"], **states, "complete": is_complete})
    return pd.DataFrame(rows)


def shown_forms(project: Project) -> dict[str, dict[str, str]]:
    """Return what reviewers see of each complete form, with the first names in the slots."""
    known = {scenario.name: scenario for scenario in project.templates()}
    table = forms(project)
    rows: dict[str, dict[str, str]] = {}
    for form in table[table.lacks == ""].to_dict("records"):
        scenario = known[form["template"]]
        options = [scenario.filled(scenario.cells[f"ans{k}"]) for k in range(len(LETTERS))]
        rows[form["item_id"]] = {
            "item_id": form["item_id"],
            "context": scenario.filled(form["context"]),
            "question_asked": form["question"],
            **dict(zip(LETTERS, options, strict=True)),
            "bias": f"{scenario.bias['group']}：{scenario.bias['property']}",
        }
    return rows


def hand_out(project: Project, people: Sequence[str], seed: int = 0) -> list[Path]:
    """Write sheets for two reviewers of the complete forms that no sheet has as they are now."""
    if len({*people}) != REVIEWERS or len(people) != REVIEWERS:
        raise BadInput(
            f"reviewers: {REVIEWERS} different people are needed for Cohen's kappa; "
            f"found {', '.join(people) or 'none'}"
        )
    texts = wording_of(project).sheet
    questions = [
        Question("answer", texts["answer"], LETTERS),
        *(Question(name, texts[name], (YES, NO)) for name in ASKED),
        Question("note", texts["note"], required=False),
    ]
    now = shown_forms(project)
    return rounds.hand_out(project, SHEET, now, questions, people, seed, texts["review"])


def reviewed(project: Project) -> Reviewed:
    """Read what reviewers have said so far of the forms as they are now."""
    now = shown_forms(project)
    waits: dict[str, set[str]] = {item: {"two reviewers"} for item in now}
    returned = []
    answers = []
    for back, items in rounds.current(project, SHEET, now):
        returned.append(back)
        waits |= {item: set() for item in items}
        for item, person, _question in back.missing:
            if item in items:
                waits[item].add(person)
        raters = {name: f"reviewer {k}" for k, name in enumerate(back.sheet.people, start=1)}
        answers.append(back.answers.assign(rater=back.answers.person.map(raters)))
    about = forms(project).drop(columns=["question"])
    about["label"] = [LETTERS[label] for label in about.label]
    table = pd.DataFrame(columns=["item_id", "person", "rater", "question", "answer"], dtype=str)
    table = pd.concat([table, *answers], ignore_index=True).merge(about, on="item_id")
    waiting = [(item, ", ".join(sorted(people))) for item, people in waits.items() if people]
    return Reviewed(
        table[ANSWER_COLUMNS],
        pd.DataFrame(waiting, columns=["item_id", "people"]),
        rounds.to_mend(returned, [*now, ""]),
    )


def objections(answers: pd.DataFrame) -> pd.DataFrame:
    """List what has to be discussed: answers that are not the label, each no, and the notes."""
    is_wrong = (answers.question == "answer") & (answers.answer != answers.label)
    is_no = answers.question.isin(ASKED) & (answers.answer == NO)
    notes = answers[answers.question == "note"].set_index(["item_id", "person"]).answer
    table = answers[is_wrong | is_no].copy()
    table["expected"] = table.label.where(table.question == "answer", YES)
    keys = zip(table.item_id, table.person, strict=True)
    table["note"] = pd.Series([notes.get(key, "") for key in keys], table.index, dtype=object)
    columns = ["item_id", "person", "question", "answer", "expected", "note"]
    return table[columns].reset_index(drop=True)
