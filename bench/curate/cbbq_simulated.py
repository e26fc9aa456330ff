"""What stands in for people and a model where the way is only tried out: a drafter, an editor and reviewers of known quality.

They fill in the same sheets as people do. The finished facts of the example, which they know, are our own.
"""

import random
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from rapidfuzz.distance import Levenshtein

from bench.curate import cbbq_drafts, cbbq_review, sheets
from bench.curate.begin import EXAMPLES
from bench.curate.cbbq import Project, Scenario
from bench.curate.cbbq_drafts import ACCEPT, AGAIN, EDIT, SMALL, Writer
from bench.data.cbbq_templates import SLOTS
from bench.data.tables import read_csv
from bench.errors import BadInput
from bench.metrics.annotators import Simulated

MODEL = "simulated drafter"
EDITOR = "editor"
REVIEWERS = ("reviewer 1", "reviewer 2")
# After so many draws the editor writes the facts.
PATIENCE = 3
REFUSAL = "抱歉，我不能续写这段情境。"
# What a hasty writer drops or puts otherwise.
SLIPS = (("；", "，"), ("当即", "马上"), ("核对后", "复核时"), ("写明", "上写着"), ("看到", "发现"))


def finished() -> dict[str, str]:
    """The facts of the example, by template."""
    return {row["template"]: row["facts"] for row in read_csv(EXAMPLES / "cbbq" / "finished.csv", ["template", "facts"])}  # fmt: skip


class Drafter:
    """A model of known failings: it writes the finished facts, with a slip, about the wrong person, or refuses.

    Called as a scorer's `generate`. Shares of the four are `shares`; the dice follow from a prompt's seed.
    """

    shares = (0.35, 0.3, 0.2, 0.15)

    def __init__(self, templates: Sequence[Scenario]) -> None:
        self.templates = list(templates)
        self.facts = finished()

    def __call__(self, prompts: Sequence[str], *, max_new_tokens: int = 0, seed: Sequence[int] = ()) -> list[str]:  # fmt: skip
        return [self._reply(prompt, number) for prompt, number in zip(prompts, seed, strict=True)]

    def _reply(self, prompt: str, seed: int) -> str:
        one = next((one for one in self.templates if one.filled(one.cells["context"]) in prompt), None)
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


def work(project: Project, write: Writer | None = None, model: str = MODEL, reliability: float = 0.9, seed: int = 0) -> None:  # fmt: skip
    """Go the way from drafts to reviews with simulated people: an editor who knows the finished facts, and two reviewers.

    What is there already is left as it is.

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
        for path in cbbq_drafts.hand_out(project, EDITOR, seed):
            sheet = sheets.opened(project.sheets, path.parent.name)
            draws = {row["template"]: int(row["draw"]) for row in project.table("drafts")}
            sheets.fill(path, sheet, EDITOR, lambda row, draws=draws: _decide(row, known, draws))  # type: ignore[misc]
    for path in cbbq_review.hand_out(project, REVIEWERS, seed):
        _review(project, path.parent.name, path.stem, reliability, seed)


def _decide(row: Mapping[str, str], known: Mapping[str, str], draws: Mapping[str, int]) -> dict[str, str]:
    facts = known[row["item_id"]]
    distance = Levenshtein.normalized_distance(row["draft"], facts)
    if distance == 0:
        return {"decision": ACCEPT}
    # Facts about the wrong person differ in few characters, and no editor would mend them one by one.
    near = distance <= SMALL and _order(row["draft"]) == _order(facts)
    if near or draws[row["item_id"]] >= PATIENCE:
        return {"decision": EDIT, "edited": facts}
    return {"decision": AGAIN}


def _order(facts: str) -> list[str]:
    """The slots in the order in which facts mention them."""
    return sorted((slot for slot in SLOTS if slot in facts), key=facts.index)


def _review(project: Project, name: str, person: str, reliability: float, seed: int) -> None:
    sheet = sheets.opened(project.sheets, name)
    items = cbbq_review.forms(project).set_index("item_id").loc[sheet.rows.item_id].reset_index()
    truth = items.assign(topic=[cbbq_review.LETTERS[label] for label in items.label])
    panel = Simulated(reliability, len(sheet.people), seed).annotate(truth)
    mine = panel[panel.rater == f"simulated {sheet.people.index(person) + 1}"].set_index("item_id").rating

    def answer(row: Mapping[str, str]) -> dict[str, Any]:
        dice = random.Random(zlib.crc32(f"{seed}:{person}:{row['item_id']}".encode()))
        reads_well = dice.random() < 0.95
        note = {} if reads_well else {"note": "读起来有些绕（模拟的意见）"}
        return {"answer": str(mine[row["item_id"]]), "asks_the_bias": "yes", "reads_well": "yes" if reads_well else "no", **note}  # fmt: skip

    sheets.fill(project.sheets / name / f"{person}.xlsx", sheet, person, answer)
