"""Simulated annotators of McBE items, of known reliability: to lead through the rounds, and to test them.

They know the truth of the example (`truth.csv`) and err at known rates. What they give are no people's judgements.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from openpyxl import load_workbook
from rapidfuzz.distance import LCSseq

from bench.core.files import atomic_path
from bench.curate import sheets
from bench.curate.begin import EXAMPLES
from bench.curate.mcbe_rounds import AGAIN, QUALITY, Rounds
from bench.curate.mcbe_rules import ACCEPT, EDIT, NO, REJECT, YES
from bench.curate.workbook import ANSWERS
from bench.data.readers import Row, read_csv

TRUTH = "truth.csv"
CLAUSE = re.compile(r"[^，。；]+[，。；]?")
# A merged text that shares so much with the whole explanation is accepted.
ALIKE = 0.9
REASON, OBJECTION = "模拟讨论的结论", "模拟的异议：情境不够清楚"


class Annotators(NamedTuple):
    """People who see the truth at known rates.

    Attributes:
        reliability: with this probability the subcategory is the right one, else one of all at random; so Fleiss' kappa is
            about its square where subcategories are equally frequent.
        objects: probability of an objection to a draft; rejects: of a merged explanation that is rejected, whatever it says.
        spread: standard deviation of a severity around the true one, in points; half of it in the second round.
        yes: probability of a yes to a quality question.
        truth: by draft, `subtype`, `explanation` and `severity`.
    """

    truth: Mapping[str, Row]
    reliability: float = 0.8
    objects: float = 0.02
    rejects: float = 0.04
    spread: float = 0.9
    yes: float = 0.93
    seed: int = 0

    def fill(self, found: Rounds) -> bool:
        """Fill in all sheets that went out and are not complete; False where there is none."""
        open_ones = [one.sheet for one in found.sent.values() if not one.complete]
        for sheet in open_ones:
            for person in sheet.people:
                self.fill_one(found, sheet, person)
        return bool(open_ones)

    def fill_one(self, found: Rounds, sheet: sheets.Sheet, person: str) -> Path:
        """Fill in a person's sheet; its file."""
        path = found.project.sheets / sheet.name / f"{person}.xlsx"
        sheets.fill(path, sheet, person, lambda row: self._answers(sheet, person, row))
        return path

    def _answers(self, sheet: sheets.Sheet, person: str, row: Mapping[str, str]) -> dict[str, Any]:
        right = self.truth[row["item_id"]]
        dice = _dice(self.seed, sheet.name, person, row["item_id"])
        found: dict[str, Any] = {}
        for question in sheet.questions:
            if question.name == "objection" and dice.random() < self.objects:
                found["objection"] = OBJECTION
            elif question.name in ("subtype", "decision"):
                slip = dice.random() >= self.reliability and question.name == "subtype"
                labels = [one for one in question.choices if one != "leave out"]
                found[question.name] = dice.choice(labels) if slip else right["subtype"]
            elif question.name == "explanation":
                found["explanation"] = (
                    right["explanation"]
                    if "merged" in row
                    else self._part(right["explanation"], dice)
                )
            elif question.name == "severity" and not question.choices:
                spread = self.spread / (2 if sheet.name == AGAIN else 1)
                found["severity"] = float(
                    np.clip(np.round(2 * dice.normal(float(right["severity"]), spread)) / 2, 0, 10)
                )
            elif question.name == "verdict":
                alike = LCSseq.normalized_similarity(row["merged"], right["explanation"])
                rejects = dice.random() < self.rejects
                found["verdict"] = REJECT if rejects else ACCEPT if alike >= ALIKE else EDIT
                if found["verdict"] == EDIT:
                    found["edited"] = right["explanation"]
            elif question.name == "reason":
                found["reason"] = REASON
            elif sheet.name == QUALITY:
                found[question.name] = YES if dice.random() < self.yes else NO
        return {
            name: str(value) if isinstance(value, str) else value for name, value in found.items()
        }

    def _part(self, text: str, dice: np.random.Generator) -> str:
        """An explanation without some of its clauses."""
        clauses = CLAUSE.findall(text)
        kept = dice.random(len(clauses)) < 0.75
        kept[0] = True
        return "".join(one for one, keep in zip(clauses, kept, strict=True) if keep)


def truth(folder: Path = EXAMPLES / "mcbe") -> dict[str, Row]:
    """What is true of the example's drafts, by draft."""
    rows = read_csv(folder / TRUTH, ("draft", "subtype", "explanation", "severity"))
    return {row["draft"]: row for row in rows}


def writer(prompts: Sequence[str]) -> list[str]:
    """Stands in for a model that merges: each clause of the explanations once; of every fourth prompt it copies the first alone."""
    replies = []
    for prompt in prompts:
        texts = re.findall(r"^\d+\. (.*)$", prompt, re.MULTILINE)
        lazy = int(hashlib.sha256(prompt.encode()).hexdigest(), 16) % 4 == 0
        clauses = [one for text in (texts[:1] if lazy else texts) for one in CLAUSE.findall(text)]
        replies.append(re.sub("[，；]$", "。", "".join(dict.fromkeys(clauses))))
    return replies


def spoil(found: Rounds, name: str, person: str, other: str) -> None:
    """Make the mistakes in a person's filled sheet that people make.

    A number out of range and one in words, an empty cell, a changed text, a formula, a row twice, a row that is gone, and one of
    another person's sheet.
    """
    place = found.project.sheets / name
    stranger = [cell.value for cell in load_workbook(place / f"{other}.xlsx")[ANSWERS][2]]
    book = load_workbook(place / f"{person}.xlsx")
    page = book[ANSWERS]
    columns = {str(cell.value): cell.column for cell in page[1]}
    answer = columns[found.sent[name].sheet.questions[0].name]
    for row, value in ((2, "12"), (3, "很严重"), (4, None), (5, "=1+2")):
        page.cell(row, answer).value = value
    page.cell(6, columns["sentence"]).value = f"{page.cell(6, columns['sentence']).value}！"
    page.append([cell.value for cell in page[7]])
    page.delete_rows(8)
    page.append(stranger)
    with atomic_path(place / f"{person}.xlsx") as draft:
        book.save(draft)


def _dice(*key: object) -> np.random.Generator:
    digest = hashlib.sha256("\0".join(map(str, key)).encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8]))
