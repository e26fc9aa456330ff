"""Lead curation projects through their rounds in tests, with people who make no slips."""

from typing import ClassVar

from bench.curate import sheets, simulated
from bench.curate.cbbq import rounds as cbbq_rounds
from bench.curate.cbbq.rounds import DECIDE, REVIEW, Rounds
from bench.curate.mcbe import rounds

FACTS = simulated.cbbq_facts()
CONTEXTS = {
    "案例题": "work-1",
    "抽查录音": "work-2",
    "知识竞答": "knowledge-1",
    "导览机": "knowledge-2",
}


class Scripted(simulated.Annotators):
    """Annotators without slips, except for what a test has them say.

    `script` maps (sheet, person or "*", draft, question) to an answer.
    """

    script: ClassVar[dict] = {}

    def answers(self, sheet, person, row):
        answers = super().answers(sheet, person, row)
        for (name, who, item, question), value in self.script.items():
            if (name, item) == (sheet.name, row["item_id"]) and who in (person, "*"):
                answers[question] = value
        return answers


def work_mcbe(project, script=None, merge=simulated.merge):
    """Go through all rounds of a McBE project."""
    truth = simulated.mcbe_truth()
    people = Scripted(truth, reliability=1, objects=0, rejects=0, spread=0.3, yes=1)
    Scripted.script = script or {}
    state = rounds.advance(project, merge, "a writer")
    while people.fill(state):
        state = rounds.advance(project, merge, "a writer")
    return state


def replace_text(path, *pairs):
    """Replace texts of a file, which it has."""
    text = path.read_text("utf-8")
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text, "utf-8")


def change(project, table, row, **cells):
    """Change cells of a CBBQ table; rows count from 1."""
    rows = project.table(table)
    rows[row - 1] |= cells
    project.save(table, rows)


def answer(project, sheet, person, answers):
    """Fill in a sheet: item to its answers."""
    path = project.sheets / sheet / f"{person}.xlsx"
    record = sheets.load(project.sheets, sheet)
    sheets.fill(path, record, person, lambda row: answers.get(row["item_id"], {}))


def drafter(replies):
    """Return a model that says, about a context, what `replies` have for a part of it."""

    def write(prompts, *, max_new_tokens, seed):
        return [
            next((reply for part, reply in replies.items() if part in prompt), "")
            for prompt in prompts
        ]

    return write


def accept_all(project):
    """Have an editor, ada, accept the finished facts of every template."""
    replies = {part: FACTS[name] for part, name in CONTEXTS.items()}
    cbbq_rounds.draw(project, drafter(replies), "me")
    cbbq_rounds.hand_out(project, DECIDE, ["ada"])
    answer(project, "decide-1", "ada", {name: {"decision": "accept"} for name in FACTS})
    return project


def right_answers(project):
    """Return what reviewers should answer, by form."""
    forms = Rounds(project).forms
    yes = {"asks_the_bias": "yes", "reads_well": "yes"}
    return {
        item: {"answer": "ABC"[k], **yes}
        for item, k in zip(forms.item_id, forms.label, strict=True)
    }


def review_all(project, sheet="", people=("bo", "cy"), **script):
    """Have reviewers answer as labelled, except for `script` by person and form."""
    cbbq_rounds.hand_out(project, REVIEW, people)
    for person in people:
        answers = {
            item: right | script.get(person, {}).get(item, {})
            for item, right in right_answers(project).items()
        }
        for name in [sheet] if sheet else cbbq_rounds.sent(project, REVIEW):
            answer(project, name, person, answers)
    return project
