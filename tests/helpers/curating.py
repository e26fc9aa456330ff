"""Lead curation projects through their rounds in tests, with people who make no slips."""

from pathlib import Path
from typing import ClassVar

from bench.curate import copy_example, mcbe, sheets, simulated
from bench.curate.cbbq import rounds as cbbq_rounds
from bench.curate.cbbq.rounds import DECIDE, REVIEW, Rounds
from bench.curate.mcbe import rounds

FACTS = simulated.cbbq_facts()
# A part of each template's context.
CONTEXTS = dict(zip(("案例题", "抽查录音", "知识竞答", "导览机"), FACTS, strict=True))
# As few people as a project may have, but one more who judges quality.
PEOPLE = Path(__file__).with_name("people.toml").read_text("utf-8")


class Scripted(simulated.Annotators):
    """Annotators without slips, except for what a test has them say.

    `script` maps (sheet, draft, question) to answers by person.
    """

    script: ClassVar[dict] = {}

    def answers(self, sheet, person, row):
        answers = super().answers(sheet, person, row)
        for (name, item, question), said in self.script.items():
            if (name, item) == (sheet.name, row["item_id"]) and person in said:
                answers[question] = said[person]
        return answers


def mcbe_people(script=None):
    """Return people for a McBE project."""
    Scripted.script = script or {}
    truth = simulated.mcbe_truth()
    return Scripted(truth, reliability=1, objects=0, rejects=0, spread=0.3, yes=1)


def begin_mcbe(folder, *pairs, drafts=7):
    """Copy the McBE example, with few drafts and people, and texts of its files replaced."""
    copy_example("mcbe", folder)
    path, manifest = folder / mcbe.DRAFTS, folder / mcbe.MANIFEST
    lines = path.read_text("utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[: drafts + 1]), "utf-8")
    manifest.write_text(manifest.read_text("utf-8").partition("[people]")[0] + PEOPLE, "utf-8")
    for old, new in pairs:
        replace_text(path if old in path.read_text("utf-8") else manifest, (old, new))
    return mcbe.open_project(folder)


def work_mcbe(project, merge=simulated.merge):
    """Go through all rounds of a McBE project."""
    people = mcbe_people()
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
    yes = {"asks_the_bias": "yes", "reads_well": "yes"}
    forms = Rounds(project).forms.itertuples()
    return {form.item_id: {"answer": "ABC"[form.label], **yes} for form in forms}


def review_all(project, sheet="", people=("bo", "cy"), **script):
    """Have reviewers answer as labelled, except for `script` by person and form."""
    cbbq_rounds.hand_out(project, REVIEW, people)
    answers = right_answers(project)
    for person in people:
        own = {
            item: right | script.get(person, {}).get(item, {}) for item, right in answers.items()
        }
        for name in [sheet] if sheet else cbbq_rounds.sent(project, REVIEW):
            answer(project, name, person, own)
    return project
