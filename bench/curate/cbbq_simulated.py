"""What stands in for people and a model where the way is only tried out: a drafter, an editor, reviewers and a panel of known quality.

They fill in the same sheets as people do. The finished facts of the example, which they know, are our own.
"""

import random
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rapidfuzz.distance import Levenshtein

from bench.core.errors import BadInput
from bench.curate import cbbq_discuss, cbbq_drafts, cbbq_review, cbbq_sheets, sheets
from bench.curate.begin import EXAMPLES
from bench.curate.cbbq import Project, Scenario
from bench.curate.cbbq_discuss import KEEP, LEAVE_OUT
from bench.curate.cbbq_drafts import ACCEPT, AGAIN, EDIT, SMALL, Writer
from bench.curate.sheets import Sheet
from bench.data.cbbq.templates import SLOTS
from bench.data.readers import read_csv
from bench.metrics.annotators import SimulatedAnnotators

# What they do is part of the example's settings: who changes this file begins another copy.
MODEL = "simulated drafter"
EDITOR = "editor"
REVIEWERS = ("reviewer 1", "reviewer 2")
PANEL = "panel"
# After so many draws the editor writes the facts.
PATIENCE = 3
REFUSAL = "抱歉，我不能续写这段情境。"
# What a hasty writer drops or puts otherwise.
SLIPS = (("；", "，"), ("当即", "马上"), ("核对后", "复核时"), ("写明", "上写着"), ("看到", "发现"))


def finished() -> dict[str, str]:
    """The facts of the example, by template."""
    return {
        row["template"]: row["facts"]
        for row in read_csv(EXAMPLES / "cbbq" / "finished.csv", ["template", "facts"])
    }


class Drafter:
    """A model of known failings: it writes the finished facts, with a slip, about the wrong person, or refuses.

    Called as a scorer's `generate`. Shares of the four are `shares`; the dice follow from a prompt's seed.
    """

    shares = (0.35, 0.3, 0.2, 0.15)

    def __init__(self, templates: Sequence[Scenario]) -> None:
        self.templates = list(templates)
        self.facts = finished()

    def __call__(
        self, prompts: Sequence[str], *, max_new_tokens: int = 0, seed: Sequence[int] = ()
    ) -> list[str]:
        return [self._reply(prompt, number) for prompt, number in zip(prompts, seed, strict=True)]

    def _reply(self, prompt: str, seed: int) -> str:
        one = next(
            (one for one in self.templates if one.filled(one.cells["context"]) in prompt), None
        )
        if one is None or one.name not in self.facts:
            return REFUSAL
        dice = random.Random(seed)
        facts = self.facts[one.name]
        how = dice.choices(("right", "slip", "swapped", "refusal"), self.shares)[0]
        if how == "refusal":
            return REFUSAL
        if how == "slip":
            for old, new in SLIPS:
                facts = facts.replace(old, new, 1)
        if how == "swapped":
            first, second = SLOTS
            facts = facts.replace(first, "\0").replace(second, first).replace("\0", second)
        return one.filled(facts)


def work(
    project: Project,
    write: Writer | None = None,
    model: str = MODEL,
    reliability: float = 0.9,
    seed: int = 0,
) -> None:
    """Go the way from drafts to discussions with simulated people: an editor who knows the finished facts, two reviewers, a panel.

    What somebody has filled in already is left as it is.

    Args:
        write: a model's `generate`; the simulated drafter without it.
        reliability: with this probability a reviewer gives the right answer; their kappa is its square on many items.

    Raises:
        BadInput: a template of which no finished facts are known, as in a project of one's own.
    """
    known = finished()
    unknown = [one.name for one in project.templates() if one.name not in known]
    if unknown:
        raise BadInput(f"simulated people know the example's templates alone, not {unknown[0]!r}")
    write = write or Drafter(project.templates())
    for _ in range(PATIENCE):
        cbbq_drafts.draw(project, write, model, seed)
        cbbq_drafts.hand_out(project, EDITOR, seed)
        draws = {
            (f"{cbbq_drafts.SHEET}-{row['round']}", row["template"]): int(row["draw"])
            for row in project.table("drafts")
        }
        for sheet, person in _unfilled(project, cbbq_drafts.SHEET):
            last = {
                item
                for (name, item), draw in draws.items()
                if name == sheet.name and draw >= PATIENCE
            }
            _fill(
                project,
                sheet,
                person,
                lambda row, last=last: _decide(row, known, row["item_id"] in last),  # type: ignore[misc]
            )
    cbbq_review.hand_out(project, REVIEWERS, seed)
    for sheet, person in _unfilled(project, cbbq_review.SHEET):
        _review(project, sheet, person, reliability, seed)
    cbbq_discuss.hand_out(project, PANEL, seed)
    for sheet, person in _unfilled(project, cbbq_discuss.SHEET):
        _fill(project, sheet, person, _discuss)


def _unfilled(project: Project, kind: str) -> list[tuple[Sheet, str]]:
    """The sheets of a kind in which somebody has filled in nothing yet, as where the work was interrupted."""
    cbbq_sheets.resend(project, kind)
    found = []
    for name in cbbq_sheets.sent(project, kind):
        sheet, came = (
            sheets.opened(project.sheets, name),
            set(sheets.read(project.sheets, name).answers.person),
        )
        found += [(sheet, person) for person in sheet.people if person not in came]
    return found


def _fill(
    project: Project,
    sheet: Sheet,
    person: str,
    answer: Callable[[Mapping[str, str]], Mapping[str, Any]],
) -> None:
    sheets.fill(project.sheets / sheet.name / f"{person}.xlsx", sheet, person, answer)


def _decide(row: Mapping[str, str], known: Mapping[str, str], last: bool) -> dict[str, str]:
    facts = known[row["item_id"]]
    distance = Levenshtein.normalized_distance(row["draft"], facts)
    if distance == 0:
        return {"decision": ACCEPT}
    # Facts about the wrong person differ in few characters, and no editor would mend them one by one.
    near = distance <= SMALL and _order(row["draft"]) == _order(facts)
    if near or last:
        return {"decision": EDIT, "edited": facts}
    return {"decision": AGAIN}


def _order(facts: str) -> list[str]:
    """The slots in the order in which facts mention them."""
    return sorted((slot for slot in SLOTS if slot in facts), key=facts.index)


def _review(project: Project, sheet: Sheet, person: str, reliability: float, seed: int) -> None:
    items = cbbq_review.forms(project).set_index("item_id").loc[sheet.rows.item_id].reset_index()
    truth = items.assign(topic=[cbbq_review.LETTERS[label] for label in items.label])
    panel = SimulatedAnnotators(reliability, len(sheet.people), seed).annotate(truth)
    mine = (
        panel[panel.rater == f"simulated {sheet.people.index(person) + 1}"]
        .set_index("item_id")
        .rating
    )

    def answer(row: Mapping[str, str]) -> dict[str, Any]:
        dice = random.Random(zlib.crc32(f"{seed}:{person}:{row['item_id']}".encode()))
        reads_well = dice.random() < 0.95
        note = {} if reads_well else {"note": "读起来有些绕（模拟的意见）"}
        return {
            "answer": str(mine[row["item_id"]]),
            "asks_the_bias": "yes",
            "reads_well": "yes" if reads_well else "no",
            **note,
        }

    _fill(project, sheet, person, answer)


def _discuss(row: Mapping[str, str]) -> dict[str, str]:
    """A panel that keeps what one reviewer alone objected to, and leaves out a form that neither answered by its label."""
    for form, text in row.items():
        label = text[-2:-1]
        given = [
            line.partition(": ")[2][:1]
            for line in row["said"].split("\n")
            if line.startswith(f"{form}, ")
        ]
        if given and label not in given:
            return {"decision": LEAVE_OUT, "reason": f"两位评审都没有选 {label}（模拟的结论）"}
    return {"decision": KEEP, "reason": "每道题至少有一位评审按标签作答（模拟的结论）"}
