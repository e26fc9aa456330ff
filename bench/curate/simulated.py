"""Simulate people and a model of known reliability, to demonstrate and test the rounds.

They know the truth of the examples (`truth.csv`, `finished.csv`), which we wrote, and err at known
rates. Their answers are no people's judgements.
"""

import hashlib
import random
import re
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from openpyxl import load_workbook
from rapidfuzz.distance import LCSseq, Levenshtein

from bench.core.errors import BadInput
from bench.core.files import atomic_path
from bench.curate import EXAMPLES, cbbq, sheets
from bench.curate.cbbq import Scenario, rounds
from bench.curate.mcbe.rounds import ACCEPT, AGAIN, EDIT, NO, QUALITY, REJECT, YES, Rounds
from bench.curate.sheets import ANSWERS, Sheet
from bench.data.cbbq.templates import SLOTS
from bench.data.readers import Row, read_csv
from bench.metrics.agreement import SimulatedAnnotators

CLAUSE = re.compile(r"[^，。；]+[，。；]?")
# A merged text that shares this much with the complete explanation is accepted.
ALIKE = 0.9
# These names are part of the settings of the CBBQ example's copy.
MODEL = "simulated drafter"
EDITOR, REVIEWERS, PANEL = "editor", ("reviewer 1", "reviewer 2"), "panel"
# After this many draws the editor writes the facts.
PATIENCE = 3
REFUSAL = "抱歉，我不能续写这段情境。"
# From a row to its answers by question.
Answer = Callable[[Mapping[str, str]], Mapping[str, Any]]
# What a drafter's replies are, and how often.
DRAFTS: Mapping[str, float] = {"right": 0.35, "slip": 0.3, "swapped": 0.2, "refusal": 0.15}
# What a hasty writer drops or words differently.
SLIPS = (("；", "，"), ("当即", "马上"), ("核对后", "复核时"), ("写明", "上写着"), ("看到", "发现"))


def mcbe_truth() -> dict[str, Row]:
    """Return what is true of the McBE example's drafts, by draft."""
    columns = ("draft", "subtype", "explanation", "severity")
    return {row["draft"]: row for row in read_csv(EXAMPLES / "mcbe" / "truth.csv", columns)}


class Annotators(NamedTuple):
    """Annotators of McBE drafts who see the truth at known rates.

    Attributes:
        truth: by draft, `subtype`, `explanation` and `severity`.
        reliability: probability of the right subcategory, else a random one; Fleiss' kappa is
            about its square where subcategories are equally frequent.
        objects: probability of an objection to a draft.
        rejects: probability that a merged explanation is rejected, whatever it says.
        spread: standard deviation of a severity around the true one; half in the second round.
        yes: probability of a yes to a quality question.
    """

    truth: Mapping[str, Row]
    reliability: float = 0.8
    objects: float = 0.02
    rejects: float = 0.04
    spread: float = 0.9
    yes: float = 0.93
    seed: int = 0

    def fill(self, state: Rounds) -> bool:
        """Fill in all sheets that are not complete; return whether there is one."""
        waiting = [back.sheet for back in state.sent.values() if back.missing]
        for sheet in waiting:
            for person in sheet.people:
                self.fill_one(state, sheet, person)
        return bool(waiting)

    def fill_one(self, state: Rounds, sheet: Sheet, person: str) -> None:
        """Fill in a person's sheet."""
        path = state.project.sheets / sheet.name / f"{person}.xlsx"
        sheets.fill(path, sheet, person, lambda row: self.answers(sheet, person, row))

    def answers(self, sheet: Sheet, person: str, row: Mapping[str, str]) -> dict[str, Any]:
        """Answer the questions about a row."""
        right = self.truth[row["item_id"]]
        key = "\0".join(map(str, (self.seed, sheet.name, person, row["item_id"])))
        digest = hashlib.sha256(key.encode()).digest()
        rng = np.random.default_rng(int.from_bytes(digest[:8]))
        answers: dict[str, Any] = {}
        for question in sheet.questions:
            name = question.name
            if name == "objection" and rng.random() < self.objects:
                answers[name] = "模拟的异议：情境不够清楚"
            elif name in ("subtype", "decision"):
                slips = rng.random() >= self.reliability and name == "subtype"
                labels = [choice for choice in question.choices if choice != "leave out"]
                answers[name] = str(rng.choice(labels)) if slips else right["subtype"]
            elif name == "explanation":
                answers[name] = right["explanation"]
                if "merged" not in row:
                    clauses = np.array(CLAUSE.findall(right["explanation"]))
                    kept = rng.random(len(clauses)) < 0.75
                    kept[0] = True
                    answers[name] = "".join(clauses[kept])
            elif name == "severity" and not question.choices:
                spread = self.spread / (2 if sheet.name == AGAIN else 1)
                severity = np.round(2 * rng.normal(float(right["severity"]), spread)) / 2
                answers[name] = float(np.clip(severity, 0, 10))
            elif name == "verdict":
                alike = LCSseq.normalized_similarity(row["merged"], right["explanation"])
                rejects = rng.random() < self.rejects
                answers[name] = REJECT if rejects else ACCEPT if alike >= ALIKE else EDIT
                if answers[name] == EDIT:
                    answers["edited"] = right["explanation"]
            elif name == "reason":
                answers[name] = "模拟讨论的结论"
            elif sheet.name == QUALITY:
                answers[name] = YES if rng.random() < self.yes else NO
        return answers


def merge(prompts: Sequence[str]) -> list[str]:
    """Merge explanations as a model would: each clause once; sometimes only one text."""
    replies = []
    for prompt in prompts:
        texts = re.findall(r"^\d+\. (.*)$", prompt, re.MULTILINE)
        is_lazy = int(hashlib.sha256(prompt.encode()).hexdigest(), 16) % 4 == 0
        merged = texts[:1] if is_lazy else texts
        clauses = [clause for text in merged for clause in CLAUSE.findall(text)]
        replies.append(re.sub("[，；]$", "。", "".join(dict.fromkeys(clauses))))
    return replies


def corrupt(state: Rounds, name: str, person: str, other: str) -> None:
    """Make mistakes that people make in a person's filled sheet.

    A number out of range and one in words, an empty cell, a changed text, a formula, a doubled and
    a missing row, and a row of another person's sheet.
    """
    place = state.project.sheets / name
    foreign = [cell.value for cell in load_workbook(place / f"{other}.xlsx")[ANSWERS][2]]
    book = load_workbook(place / f"{person}.xlsx")
    page = book[ANSWERS]
    columns = {str(cell.value): cell.column for cell in page[1]}
    answer = columns[state.sent[name].sheet.questions[0].name]
    for row, value in ((2, "12"), (3, "很严重"), (4, None), (5, "=1+2")):
        page.cell(row, answer).value = value
    page.cell(6, columns["sentence"]).value = f"{page.cell(6, columns['sentence']).value}！"
    page.append([cell.value for cell in page[7]])
    page.delete_rows(8)
    page.append(foreign)
    with atomic_path(place / f"{person}.xlsx") as draft:
        book.save(draft)


def cbbq_facts() -> dict[str, str]:
    """Return the finished facts of the CBBQ example, by template."""
    rows = read_csv(EXAMPLES / "cbbq" / "finished.csv", ["template", "facts"])
    return {row["template"]: row["facts"] for row in rows}


def drafter(
    templates: Sequence[Scenario], prompts: Sequence[str], seed: Sequence[int], **_options: object
) -> list[str]:
    """Reply as a model with known failings: it writes the facts, slips, swaps them, or refuses."""
    known, replies = cbbq_facts(), []
    for prompt, draw in zip(prompts, seed, strict=True):
        about = [each for each in templates if each.filled(each.cells["context"]) in prompt]
        facts = known.get(about[0].name, "") if about else ""
        way = random.Random(draw).choices([*DRAFTS], [*DRAFTS.values()])[0]
        if way == "slip":
            for old, new in SLIPS:
                facts = facts.replace(old, new, 1)
        if way == "swapped":
            first, second = SLOTS
            facts = facts.replace(first, "\0").replace(second, first).replace("\0", second)
        is_refused = way == "refusal" or not facts
        replies.append(REFUSAL if is_refused else about[0].filled(facts))
    return replies


def work(
    project: cbbq.Project,
    write: rounds.Writer | None = None,
    model: str = MODEL,
    reliability: float = 0.9,
    seed: int = 0,
) -> None:
    """Lead the CBBQ example from drafts to discussions; what is filled in already stays.

    Args:
        write: a model's `generate`; default: `drafter`.
        reliability: probability of a reviewer's right answer; kappa is its square on many items.

    Raises:
        BadInput: a template without finished facts, as in a project of your own.
    """
    facts = cbbq_facts()
    for scenario in project.templates():
        if scenario.name not in facts:
            raise BadInput(
                f"simulated people know only the example's templates, not {scenario.name!r}"
            )
    write = write or partial(drafter, project.templates())

    def decide(sheet: Sheet, _person: str) -> Answer:
        number = sheet.name.removeprefix(f"{rounds.DECIDE}-")
        drawn = [row for row in project.table("drafts") if row["round"] == number]
        last = {row["template"] for row in drawn if int(row["draw"]) >= PATIENCE}
        return partial(_decide, facts, last)

    for _ in range(PATIENCE):
        rounds.draw(project, write, model, seed)
        _hand_out(project, rounds.DECIDE, [EDITOR], seed, decide)
    review = partial(_reviewer, project, reliability, seed)
    _hand_out(project, rounds.REVIEW, REVIEWERS, seed, review)
    _hand_out(project, rounds.DISCUSS, [PANEL], seed, lambda *_: _discuss)


def _hand_out(
    project: cbbq.Project,
    kind: str,
    people: Sequence[str],
    seed: int,
    answer_of: Callable[[Sheet, str], Answer],
) -> None:
    """Hand out the sheets of a kind, and fill in for people who have filled in nothing yet."""
    rounds.hand_out(project, kind, people, seed)
    rounds.resend(project)
    for back in [sheets.read(project.sheets, name) for name in rounds.sent(project, kind)]:
        for person in back.sheet.people:
            if person not in set(back.answers.person):
                path = project.sheets / back.sheet.name / f"{person}.xlsx"
                sheets.fill(path, back.sheet, person, answer_of(back.sheet, person))


def _decide(
    known: Mapping[str, str], last: Collection[str], row: Mapping[str, str]
) -> dict[str, str]:
    """Accept, edit, or ask for another draft unless it is one of the `last`."""
    facts = known[row["item_id"]]

    def order(text: str) -> list[str]:
        return sorted((slot for slot in SLOTS if slot in text), key=text.index)

    distance = Levenshtein.normalized_distance(row["draft"], facts)
    if distance == 0:
        return {"decision": rounds.ACCEPT}
    # Facts about the wrong person differ in few characters, but no editor would fix each.
    if row["item_id"] in last or (distance <= rounds.SMALL and order(row["draft"]) == order(facts)):
        return {"decision": rounds.EDIT, "edited": facts}
    return {"decision": rounds.AGAIN}


def _reviewer(
    project: cbbq.Project, reliability: float, seed: int, sheet: Sheet, person: str
) -> Answer:
    items = [row["item_id"] for row in sheet.rows]
    truth = rounds.Rounds(project).forms.set_index("item_id").loc[items].reset_index()
    truth["topic"] = [rounds.LETTERS[label] for label in truth.label]
    panel = SimulatedAnnotators(reliability, len(sheet.people), seed).annotate(truth)
    rater = f"simulated {sheet.people.index(person) + 1}"
    letters = panel[panel.rater == rater].set_index("item_id").rating

    def answer(row: Mapping[str, str]) -> dict[str, str]:
        rng = random.Random(zlib.crc32(f"{seed}:{person}:{row['item_id']}".encode()))
        answers = {"answer": str(letters[row["item_id"]]), "asks_the_bias": YES}
        if rng.random() < 0.95:
            return {**answers, "reads_well": YES}
        return {**answers, "reads_well": NO, "note": "读起来有些绕（模拟的意见）"}

    return answer


def _discuss(row: Mapping[str, str]) -> dict[str, str]:
    """Leave out a template with a form that no reviewer answered by its label, keep the others."""
    for form, text in row.items():
        label = text[-2:-1]
        lines = [line for line in row["said"].split("\n") if line.startswith(f"{form}, ")]
        given = [line.partition(": ")[2][:1] for line in lines]
        if given and label not in given:
            reason = f"两位评审都没有选 {label}（模拟的结论）"
            return {"decision": rounds.LEAVE_OUT, "reason": reason}
    return {"decision": rounds.KEEP, "reason": "每道题至少有一位评审按标签作答（模拟的结论）"}
