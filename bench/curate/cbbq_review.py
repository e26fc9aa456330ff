"""What two reviewers say of each form of a template, how far they agree, and what a template adds to those that are there.

A template has four forms: ambiguous and disambiguous, each with the negative and the non-negative question. The paper has
two people review every category, and gives Cohen's kappa. What they are asked here is ours: they answer each question
blind, by its words alone, so that it shows whether an ambiguous form is ambiguous, and whether facts decide.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from statsmodels.stats.proportion import proportion_confint  # type: ignore[import-untyped]

from bench.core.errors import BadInput
from bench.core.files import explain_write_errors
from bench.core.i18n import N_
from bench.curate import sheets
from bench.curate.cbbq import QUESTIONS, Project, Scenario
from bench.curate.cbbq_drafts import decided, each, on_sheets, wrong_facts
from bench.curate.cbbq_sheets import following, hand_over, sent
from bench.curate.workbook import Question
from bench.data import Source
from bench.data import texts as overview
from bench.data.cbbq.templates import CONDITIONS, SLOTS
from bench.metrics import annotators, diversity
from bench.metrics.table import Card

SHEET = "review"
# What the project's own other templates are called among the sets.
OWN = N_("this set")
LETTERS = ("A", "B", "C")
YES, NO = "yes", "no"
ASKED = ("asks_the_bias", "reads_well")
COUNT = 2
CARDS = (
    Card(
        "usable",
        "share of first drafts that stand as drafted or after an edit of at most a fifth of the characters",
        "Levenshtein distance / longer length <= 0.2",
        "the threshold is ours",
        "0 to 1",
        "1; a low one says that people wrote the texts",
    ),
    Card(
        "kappa",
        "agreement of the two reviewers' blind answers beyond chance, by category",
        "(observed - chance) / (1 - chance)",
        "Cohen, 1960; bands by Landis and Koch, 1977",
        "-1 to 1",
        "1; two people who guess get 0",
    ),
    Card(
        "as labelled",
        "share of blind answers that are the template's label",
        "mean over answers",
        "ours",
        "0 to 1",
        "1; who guesses gets 1/3",
    ),
    Card(
        "highest ROUGE-L",
        "how much a new context shares with the text of another set, or of its own, that is most like it",
        "max of 2 LCS(a, b) / (|a| + |b|)",
        "Lin, 2004, beta = 1; characters, a slot is one",
        "0 to 1",
        "low: the template adds something",
    ),
)


class Reviewed(NamedTuple):
    """What reviewers said of the forms as they are now; what was said of an earlier text does not count.

    Attributes:
        answers: `item_id`, `template`, `category`, `condition`, `polarity`, `person`, `rater` (the sheet's first or second),
            `question`, `answer`, `label` (a letter).
        waiting: forms, and persons, who have not answered all that is asked of them: `item_id`, `people`.
        to_mend: what is wrong in sheets that came back.
    """

    answers: pd.DataFrame
    waiting: pd.DataFrame
    to_mend: pd.DataFrame


def forms(project: Project) -> pd.DataFrame:
    """The four forms of each template: a row a form, with what it lacks, "" where it is complete.

    Returns:
        `item_id`, `template`, `bias`, `category`, `condition`, `polarity`, `context`, `question`, `label`, `lacks`.
    """
    facts = decided(project).facts
    return pd.DataFrame(
        [row for one in project.templates() for row in _forms(one, facts.get(one.name, ""))],
        columns=[
            "item_id",
            "template",
            "bias",
            "category",
            "condition",
            "polarity",
            "context",
            "question",
            "label",
            "lacks",
        ],
    )


def _forms(one: Scenario, facts: str) -> list[dict[str, Any]]:
    rows = []
    for condition in CONDITIONS:
        for polarity, column in QUESTIONS.items():
            lacks = ""
            if condition == CONDITIONS[1]:
                lacks = (
                    f"facts: {wrong_facts(facts)}"
                    if facts and wrong_facts(facts)
                    else ""
                    if facts
                    else "facts that a person accepted or wrote"
                )
            rows.append(
                {
                    "item_id": f"{one.name}:{condition}:{polarity}",
                    "template": one.name,
                    "bias": one.bias["bias"],
                    "category": one.category,
                    "condition": condition,
                    "polarity": polarity,
                    "context": one.cells["context"] + (facts if condition == CONDITIONS[1] else ""),
                    "question": one.cells[column],
                    "label": one.label(condition, polarity),
                    "lacks": lacks,
                }
            )
    return rows


def completeness(project: Project) -> pd.DataFrame:
    """A row a template of the table, those with faults too: `template`, a column a form with "yes" or what it lacks, `complete`."""
    found = forms(project)
    rows = []
    for row in project.table("templates"):
        some = found[found.template == row["template"]]
        told = {
            f"{one.condition} {one.polarity}": f"lacks {one.lacks}" if one.lacks else YES
            for one in each(some)
        } or {
            f"{condition} {polarity}": "waits: the row has faults"
            for condition in CONDITIONS
            for polarity in QUESTIONS
        }
        rows.append({"template": row["template"], **told, "complete": set(told.values()) == {YES}})
    return pd.DataFrame(rows)


def seen(project: Project) -> dict[str, dict[str, str]]:
    """What reviewers see of each complete form, with the first names in the slots."""
    found = forms(project)
    known = {one.name: one for one in project.templates()}
    rows = {}
    for row in each(found[found.lacks == ""]):
        one = known[str(row.template)]
        said = {letter: one.filled(one.cells[f"ans{k}"]) for k, letter in enumerate(LETTERS)}
        rows[str(row.item_id)] = {
            "item_id": str(row.item_id),
            "context": one.filled(str(row.context)),
            "question_asked": str(row.question),
            **said,
            "bias": f"{one.bias['group']}：{one.bias['property']}",
        }
    return rows


def hand_out(project: Project, people: Sequence[str], seed: int = 0) -> list[Path]:
    """Write sheets for two reviewers of the complete forms that no sheet has as they are now; the files that are new.

    Raises:
        BadInput: not two people.
        RunFailed: a file cannot be written.
    """
    if len(set(people)) != COUNT:
        raise BadInput(
            f"reviewers: {COUNT} different people are needed for Cohen's kappa; found {', '.join(people) or 'none'}"
        )
    texts = seen(project)
    now = {_text(row) for row in texts.values()}
    there: set[tuple[str, ...]] = set()
    for name in sent(project, SHEET):
        rows = sheets.opened(project.sheets, name).rows.to_dict("records")
        hand_over(
            project, name, people, [row["item_id"] for row in rows if _text(row) in now - there]
        )
        there |= {_text(row) for row in rows}
    new = [row for row in texts.values() if _text(row) not in there]
    if not new:
        return []
    asked = on_sheets(project)
    questions = [
        Question("answer", asked["answer"], choices=LETTERS),
        *(Question(name, asked[name], choices=(YES, NO)) for name in ASKED),
        Question("note", asked["note"], required=False),
    ]
    name = following(project, SHEET)
    with explain_write_errors(project.sheets / name):
        return sheets.write(
            project.sheets, name, pd.DataFrame(new), questions, people, seed, asked["review"]
        )


def reviewed(project: Project) -> Reviewed:
    """What reviewers have said so far, of the forms as they are now."""
    about = forms(project).set_index("item_id")
    texts = {item: _text(row) for item, row in seen(project).items()}
    answers: list[dict[str, Any]] = []
    mend = []
    asked: set[str] = set()
    waits: dict[str, set[str]] = {item: {"two reviewers"} for item in texts}
    for name in sent(project, SHEET):
        sheet, found = sheets.opened(project.sheets, name), sheets.read(project.sheets, name)
        now = {
            row["item_id"]
            for row in sheet.rows.to_dict("records")
            if texts.get(row["item_id"]) == _text(row)
        }
        # A sheet that was copied under the next number asks nothing new.
        now -= asked
        asked |= now
        # What was said of an earlier text needs no mending.
        mend.append(found.to_mend[found.to_mend.item_id.isin([*now, ""] if now else [])])
        waits |= {item: set() for item in now}
        for item, who, _unused in found.lacking(sheet):
            if item in now:
                waits[item].add(who)
        for row in each(found.answers):
            if row.item_id in now:
                form = about.loc[row.item_id]
                answers.append(
                    {
                        "item_id": row.item_id,
                        "template": form.template,
                        "category": form.category,
                        "condition": form.condition,
                        "polarity": form.polarity,
                        "person": row.person,
                        "rater": f"reviewer {sheet.people.index(row.person) + 1}",
                        "question": row.question,
                        "answer": row.answer,
                        "label": LETTERS[form.label],
                    }
                )
    columns = [
        "item_id",
        "template",
        "category",
        "condition",
        "polarity",
        "person",
        "rater",
        "question",
        "answer",
        "label",
    ]
    waiting = [(item, ", ".join(sorted(people))) for item, people in waits.items() if people]
    return Reviewed(
        pd.DataFrame(answers, columns=columns),
        pd.DataFrame(waiting, columns=["item_id", "people"]),
        pd.concat(mend, ignore_index=True) if mend else pd.DataFrame(columns=sheets.MEND_COLUMNS),
    )


def kappas(answers: pd.DataFrame) -> pd.DataFrame:
    """Cohen's kappa of the blind answers, by category, with its interval and its band; see `annotators.kappas`.

    Forms that one reviewer alone has answered are left out. Where later sheets went to other people, each sheet's first
    reviewer is taken for the first one. The forms of a template are not independent: the interval is by bootstrap over
    templates, which are its `clusters`.

    Raises:
        BadInput: no form has two answers.
    """
    given = answers[answers.question == "answer"]
    both = given[given.groupby("item_id").person.transform("nunique") == COUNT]
    if both.empty:
        raise BadInput("kappa: no form has been answered by two reviewers yet")
    given = both.rename(columns={"answer": "rating", "template": "cluster"})
    return annotators.kappas(given[["category", "item_id", "rater", "rating", "cluster"]])


def shares(answers: pd.DataFrame) -> pd.DataFrame:
    """What reviewers said, by category: `category`, `said`, `share`, `ci_low`, `ci_high` (Wilson), `n` (templates), `answers`.

    A template counts where all that was said of its forms is so; its forms are not independent, templates are the units.
    """
    rows = []
    for category, some in answers.groupby("category", sort=False):
        asked = some[some.question == "answer"]
        told = {
            "answered as labelled": (asked.template, asked.answer == asked.label),
            "asks the recorded bias": _said(some, ASKED[0]),
            "reads well and is respectful": _said(some, ASKED[1]),
        }
        for said, (templates, right) in told.items():
            whole = right.groupby(templates.to_numpy()).all()
            n = len(whole)
            low, high = (
                proportion_confint(int(whole.sum()), n, method="wilson") if n else (np.nan, np.nan)
            )
            rows.append(
                {
                    "category": category,
                    "said": said,
                    "templates": whole.mean() if n else np.nan,
                    "ci_low": low,
                    "ci_high": high,
                    "n": n,
                    "of_answers": right.mean() if n else np.nan,
                    "answers": len(right),
                }
            )
    return pd.DataFrame(
        rows,
        columns=[
            "category",
            "said",
            "templates",
            "ci_low",
            "ci_high",
            "n",
            "of_answers",
            "answers",
        ],
    )


def objections(answers: pd.DataFrame) -> pd.DataFrame:
    """What is to be discussed: answers that are not the label, and every no, with the reviewer's note."""
    notes = {
        (row.item_id, row.person): row.answer for row in each(answers[answers.question == "note"])
    }
    wrong = (answers.question == "answer") & (answers.answer != answers.label)
    some = answers[wrong | (answers.question.isin(ASKED) & (answers.answer == NO))]
    rows = [
        (
            row.item_id,
            row.person,
            row.question,
            row.answer,
            row.label if row.question == "answer" else YES,
            notes.get((row.item_id, row.person), ""),
        )
        for row in each(some)
    ]
    return pd.DataFrame(
        rows, columns=["item_id", "person", "question", "answer", "expected", "note"]
    )


def texts(project: Project) -> pd.DataFrame:
    """The contexts of complete forms, each once, as `bench.data.texts.texts` has those of a data set."""
    found = forms(project)
    rows = []
    language = next(iter(project.manifest.languages), "zh")
    for row in each(found[(found.lacks == "") & (found.polarity == "neg")]):
        text = row.context.replace(SLOTS[0], overview.FIRST).replace(SLOTS[1], overview.SECOND)
        rows.append(
            (
                "cbbq",
                f"{row.template}:{row.condition}",
                row.category,
                language,
                "",
                (),
                text,
                text,
                1,
            )
        )
    return pd.DataFrame(rows, columns=list(overview.Text._fields))


def novelty(project: Project, others: Sequence[Source] = ()) -> pd.DataFrame:
    """For each new context the text that shares most with it, in its own set (other templates) and in each of `others`.

    Contexts of one condition are compared with those of the same.

    Returns:
        `item_id`, `condition`, `set`, `rouge_l`, `nearest` (its id), `text`, `nearest_text`, `too_near` (a near-duplicate);
        the nearest first.
    """
    own = texts(project)
    sets = {OWN: own, **{source.name: overview.texts(source) for source in others}}
    rows = []
    for condition in CONDITIONS:
        new = _of(own, condition)
        for name, some in sets.items():
            here = _of(some, condition)
            here = here[here.language.isin(new.language)]
            if new.empty or here.empty:
                continue
            values = diversity.rouge_l(list(new.text), list(here.text)).copy()
            if name == OWN:
                np.fill_diagonal(values, -1)
            for row, found in zip(each(new), values, strict=True):
                best = int(found.argmax())
                if found[best] >= 0:
                    rows.append(
                        (
                            row.item_id,
                            condition,
                            name,
                            float(found[best]),
                            here.item_id.iloc[best],
                            row.text,
                            here.text.iloc[best],
                            bool(found[best] >= diversity.NEAR),
                        )
                    )
    columns = [
        "item_id",
        "condition",
        "set",
        "rouge_l",
        "nearest",
        "text",
        "nearest_text",
        "too_near",
    ]
    return (
        pd.DataFrame(rows, columns=columns)
        .sort_values("rouge_l", ascending=False, kind="stable")
        .reset_index(drop=True)
    )


def usual(source: Source) -> pd.DataFrame:
    """How near the contexts of a set are to each other: `condition`, `rouge_l` of each to the nearest other one."""
    rows = []
    found = overview.texts(source)
    for condition in CONDITIONS:
        some = _of(found, condition).drop_duplicates("text")
        if len(some) > 1:
            values = diversity.rouge_l(list(some.text), list(some.text))
            np.fill_diagonal(values, -1)
            rows += [(condition, float(value)) for value in values.max(axis=1)]
    return pd.DataFrame(rows, columns=["condition", "rouge_l"])


def _of(some: pd.DataFrame, condition: str) -> pd.DataFrame:
    """The texts of a condition, which their ids tell behind the first colon."""
    return some[some.item_id.str.split(":").str[1] == condition]


def _said(some: pd.DataFrame, question: str) -> tuple[pd.Series, pd.Series]:
    rows = some[some.question == question]
    return rows.template, rows.answer == YES


def _text(row: Mapping[Any, Any]) -> tuple[str, ...]:
    """What of a row makes it the same as another."""
    return tuple(
        str(row[name]) for name in ("item_id", "context", "question_asked", *LETTERS, "bias")
    )
