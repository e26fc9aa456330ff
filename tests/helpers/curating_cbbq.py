"""What tests of curated CBBQ templates share: a project's tables and sheets changed, and a model that says what it is told to."""

from bench.curate import cbbq, cbbq_drafts, cbbq_review, cbbq_sheets, cbbq_simulated, sheets

FACTS = cbbq_simulated.finished()


def changed(project, table, row, **cells):
    rows = project.table(table)
    rows[row - 1] |= cells
    project.save(table, rows)


def told(project):
    return [(one.file, one.row, one.column) for one in cbbq.faults(project).itertuples()]


def answered(project, sheet, person, decisions):
    """Fill in a sheet: item to its answers."""
    path = project.sheets / sheet / f"{person}.xlsx"
    sheets.fill(
        path,
        sheets.opened(project.sheets, sheet),
        person,
        lambda row: decisions.get(row["item_id"], {}),
    )


def drafter(replies):
    """A model that says, of a template's context, what `replies` have for it."""

    def write(prompts, *, max_new_tokens, seed):
        return [
            next((reply for start, reply in replies.items() if start in prompt), "")
            for prompt in prompts
        ]

    return write


def accepted(project):
    """A project whose editor, ada, has accepted the finished facts of every template."""
    replies = {
        "案例题": "work-1",
        "抽查录音": "work-2",
        "知识竞答": "knowledge-1",
        "导览机": "knowledge-2",
    }
    cbbq_drafts.draw(
        project, drafter({start: FACTS[name] for start, name in replies.items()}), "me"
    )
    cbbq_drafts.hand_out(project, "ada")
    answered(project, "decide-1", "ada", {name: {"decision": "accept"} for name in FACTS})
    return project


def reviewed(project, sheet="", people=("bo", "cy"), **said):
    """Have two reviewers answer a sheet, or all, as labelled but for what `said` has, by person and form."""
    cbbq_review.hand_out(project, people)
    labels = dict(cbbq_review.forms(project)[["item_id", "label"]].itertuples(index=False))
    for person in people:
        right = {
            item: {"answer": "ABC"[label], "asks_the_bias": "yes", "reads_well": "yes"}
            | said.get(person, {}).get(item, {})
            for item, label in labels.items()
        }
        for name in [sheet] if sheet else cbbq_sheets.sent(project, cbbq_review.SHEET):
            answered(project, name, person, right)
    return project
