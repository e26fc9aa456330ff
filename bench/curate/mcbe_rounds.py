"""The rounds through which drafts become McBE items: what is asked next, of whom, and what has been decided so far.

    subcategory  five people choose  -> majority; ties and objections are discussed
    explanation  three people write  -> a model merges -> two review -> what they disagree about is discussed
    severity     six people score    -> mean; again where they lie more than 3.5 apart; then an expert
    quality      eight people answer questions about the finished rows

A sheet goes out when all that it rests on is there. Nothing is kept but what people and the model wrote, so that going on after
weeks gives the same.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from bench.core.errors import BadInput
from bench.core.files import atomic_write, explain_write_errors
from bench.core.i18n import _
from bench.core.progress import progress
from bench.curate import mcbe, mcbe_rules, provenance, sheets
from bench.curate.mcbe import FIELD, Project
from bench.curate.mcbe_rules import LEAVE_OUT, NO, UNSURE, VERDICTS, YES
from bench.curate.workbook import LONGEST as CELL
from bench.curate.workbook import Question
from bench.data.readers import read_json_lines

SUBCATEGORY, DISCUSSION = "1-subcategory", "1-discussion"
EXPLANATION, REVIEW, SETTLING = "2-explanation", "2-review", "2-discussion"
SEVERITY, AGAIN, EXPERT = "3-severity", "3-severity-again", "3-expert"
QUALITY = "4-quality"
MERGED = "merged.jsonl"
# Characters of a merged explanation; ours have a hundred.
LONGEST = 2000
KEPT = ("item_id", "text", "model", "wording", "prompt_hash", "when")
# So many are merged, and kept, at once.
BATCH = 16
TEXTS = ["context", "sentence", "words"]
# From prompts to replies.
Writer = Callable[[Sequence[str]], Sequence[str]]


class Value(NamedTuple):
    """A value that was decided, and how: in which round, by whom, when."""

    value: str
    how: str
    round: str
    who: str
    when: str


class Round(NamedTuple):
    """A sheet that went out, and what came back of it.

    Attributes:
        lacks: how many answers are not there yet.
        signed: by item, the people who answered about it, and the last time.
    """

    sheet: sheets.Sheet
    returned: sheets.Returned
    lacks: int
    signed: Mapping[str, tuple[str, str]]

    @property
    def complete(self) -> bool:
        return not self.lacks


class Rounds:
    """How far a project is.

    Attributes:
        faults: what is wrong with the drafts, see `mcbe.check`; nothing is asked before it is mended.
        sent: the sheets that went out, by name.
        values: by field (`subtype`, `explanation`, `score`) and draft.
        left_out: why a draft was left out, by draft.
        outcomes: what the rules made of a round, a row a draft, by the sheet's name.
        merged: what the model wrote, by draft.
        waits: what is waited for, or "" where all is done.
    """

    def __init__(self, project: Project, send: bool, merge: Writer | None, model: str) -> None:
        self.project, self.send, self.merge, self.model = project, send, merge, model
        self.faults = mcbe.check(project)
        self.drafts = project.drafts.rename(columns={"draft": "item_id"})
        self.sent: dict[str, Round] = {}
        self.values: dict[str, dict[str, Value]] = {"subtype": {}, "explanation": {}, "score": {}}
        self.left_out: dict[str, str] = {}
        self.outcomes: dict[str, pd.DataFrame] = {}
        self.merged: dict[str, dict[str, Any]] = {}
        self.waiting: list[str] = []
        if len(self.faults):
            self.waiting.append(
                _("{n} things in {file} to be mended", n=len(self.faults), file=mcbe.DRAFTS)
            )
        else:
            self._go()

    @property
    def waits(self) -> str:
        return _("; ").join(self.waiting)

    @property
    def kept(self) -> pd.DataFrame:
        """The drafts that were not left out."""
        return self.drafts[~self.drafts.item_id.isin(self.left_out)]

    @property
    def rows(self) -> pd.DataFrame:
        """The drafts that were kept, with what has been decided: `item_id`, texts, `subtype`, `explanation`, `score`."""
        values = {
            field: [found[item].value if item in found else "" for item in self.kept.item_id]
            for field, found in self.values.items()
        }
        return self.kept[["item_id", *TEXTS]].assign(**values)

    def state(self) -> pd.DataFrame:
        """A row a sheet that went out: `sheet`, `rows`, `people`, `answers` (of those needed), `needed`, `to_mend`."""
        return pd.DataFrame(
            [
                {
                    "sheet": name,
                    "rows": len(one.sheet.rows),
                    "people": len(one.sheet.people),
                    "answers": len(one.sheet.needed) - one.lacks,
                    "needed": len(one.sheet.needed),
                    "to_mend": len(one.returned.to_mend),
                }
                for name, one in self.sent.items()
            ],
            columns=["sheet", "rows", "people", "answers", "needed", "to_mend"],
        )

    def to_mend(self) -> pd.DataFrame:
        """What is to be mended in the drafts and in all sheets: `sheet` and the columns of `bench.curate.sheets.Returned`."""
        # Rows as a spreadsheet program counts them, with the header.
        wrong = self.faults.rename(columns={"draft": "item_id"}).assign(
            sheet="", person="", file=mcbe.DRAFTS, row=self.faults.row + 1, allowed=""
        )
        parts = [wrong] + [
            one.returned.to_mend.assign(sheet=name) for name, one in self.sent.items()
        ]
        columns = ["sheet", *sheets.MEND_COLUMNS]
        return pd.concat(
            [part[columns] for part in parts if len(part)] or [wrong[columns]], ignore_index=True
        )

    def ratings(self, name: str, question: str) -> pd.DataFrame:
        """What people answered in a round: `category`, `item_id`, `rater`, `rating`."""
        answers = self.sent[name].returned.answers
        some = answers[answers.question == question]
        return pd.DataFrame(
            {
                "category": self.project.category,
                "item_id": some.item_id,
                "rater": some.person,
                "rating": some.answer,
            }
        )

    def _go(self) -> None:
        if not self._subcategories() or self.kept.empty:
            return
        explained, scored = self._explanations(), self._severities()
        if explained and scored:
            choices = (YES, NO, UNSURE)
            asked = [
                Question(name, text, choices)
                for name, text in self.project.wording["quality"].items()
            ]
            self._round(QUALITY, self.rows, asked, "quality", "quality")

    def _subcategories(self) -> bool:
        asked = self.project.wording["asked"]
        ask = [
            Question("subtype", asked["subcategory"], self.project.subcategories),
            Question("objection", asked["objection"], required=False),
        ]
        first = self._round(
            SUBCATEGORY, self.drafts[["item_id", *TEXTS]], ask, "subcategory", "subcategory"
        )
        if first is None:
            return False
        objections: dict[str, str] = {}
        for (item, _unused), text in first.of("objection").items():
            objections[item] = "; ".join(filter(None, [objections.get(item, ""), text]))[:CELL]
        outcome = mcbe_rules.majority(first.wide("subtype"), objections)
        self.outcomes[SUBCATEGORY] = outcome
        for row in outcome[outcome.discuss == ""].itertuples():
            how = f"majority of {len(self.sent[SUBCATEGORY].sheet.people)}: {row.votes}"
            self._decide("subtype", str(row.item_id), row.chosen, how, SUBCATEGORY)
        open_ones = outcome[outcome.discuss != ""]
        if open_ones.empty:
            return True
        shown = self._beside(open_ones[["item_id", "votes", "objections"]])
        ask = [
            Question("decision", asked["decision"], (*self.project.subcategories, LEAVE_OUT)),
            Question("reason", asked["reason"]),
        ]
        settled = self._round(DISCUSSION, shown, ask, "panel", "discussion")
        if settled is None:
            return False
        reasons = settled.of("reason")
        for (item, person), decision in settled.of("decision").items():
            if decision == LEAVE_OUT:
                self.left_out[item] = reasons[item, person]
            else:
                self._decide(
                    "subtype", item, decision, f"discussion: {reasons[item, person]}", DISCUSSION
                )
        return True

    def _explanations(self) -> bool:
        asked = self.project.wording["asked"]
        rows = self.rows[["item_id", *TEXTS, "subtype"]]
        explain_write_errors = self._round(
            EXPLANATION,
            rows,
            [Question("explanation", asked["explanation"])],
            "explanation",
            "explanation",
        )
        if explain_write_errors is None:
            return False
        texts = explain_write_errors.wide("explanation")
        people = self.sent[EXPLANATION].sheet.people
        numbered = {name: f"explanation_{k}" for k, name in enumerate(people, start=1)}
        given = texts[people].rename(columns=numbered).rename_axis(columns=None).reset_index()
        if not self._merge(given):
            self.waiting.append(_("a model that merges the explanations"))
            return False
        merged = {item: str(line["text"]) for item, line in self.merged.items()}
        shown = self._beside(given.assign(merged=given.item_id.map(merged)))
        ask = [
            Question("verdict", asked["verdict"], VERDICTS),
            Question("edited", asked["edited"], required=False),
        ]
        back = self._round(REVIEW, shown, ask, "review", "review")
        if back is None:
            return False
        edits = back.of("edited")
        outcome = mcbe_rules.reviewed(back.wide("verdict"), edits, merged)
        self.outcomes[REVIEW] = outcome
        for row in outcome[outcome.discuss == ""].itertuples():
            self._decide(
                "explanation", str(row.item_id), row.text, f"merged by a model, {row.how}", REVIEW
            )
        open_ones = outcome[outcome.discuss != ""]
        if open_ones.empty:
            return True
        beside = shown.merge(open_ones[["item_id", "discuss"]], on="item_id")
        beside["edits"] = [
            "\n".join(text for (item, _unused), text in edits.items() if item == one)[:CELL]
            for one in beside.item_id
        ]
        settled = self._round(
            SETTLING, beside, [Question("explanation", asked["explanation"])], "panel", "settling"
        )
        if settled is None:
            return False
        for (item, _unused), text in settled.of("explanation").items():
            self._decide("explanation", item, text, "discussion", SETTLING)
        return True

    def _severities(self) -> bool:
        asked = self.project.wording["asked"]
        ask = [Question("severity", asked["severity"], lowest=0, highest=10)]
        rows = self.rows[["item_id", *TEXTS]]
        for name, which, text in ((SEVERITY, "", "severity"), (AGAIN, ", second round", "again")):
            back = self._round(name, rows, ask, "severity", text)
            if back is None:
                return False
            outcome = mcbe_rules.severities(back.wide("severity"))
            self.outcomes[name] = outcome
            how = f"mean of {len(self.sent[name].sheet.people)}{which}"
            for row in outcome[~outcome.again].to_dict("records"):
                self._decide("score", row["item_id"], f"{row['mean']:.5g}", how, name)
            wide = outcome[outcome.again]
            if wide.empty:
                return True
            rows = self._beside(wide[["item_id", "lowest", "highest"]])
        final = self._round(
            EXPERT, rows, [*ask, Question("reason", asked["reason"])], "expert", "expert"
        )
        if final is None:
            return False
        for (item, _unused), score in final.of("severity").items():
            self._decide("score", item, f"{float(score):g}", "expert", EXPERT)
        return True

    def _round(
        self, name: str, rows: pd.DataFrame, questions: list[Question], role: str, text: str
    ) -> sheets.Returned | None:
        """What came back of a sheet, once all needed answers are there; the sheet goes out where it has not yet."""
        project, people = self.project, self.project.people[role]
        place = project.sheets / name
        said = project.wording["sheets"]
        instructions = f"{said[text].strip()}\n{said['filling']}"
        if (place / sheets.MANIFEST).exists():
            before = sheets.opened(project.sheets, name)
            now = rows.fillna("").astype(str).reset_index(drop=True)
            if not before.rows.equals(now):
                raise BadInput(
                    f"{place}: went out with other rows or texts than would be asked now, because something it rests on was changed since; put that back, or begin a new project"
                )
            if self.send:
                sheets.ask(project.sheets, name, people)
        elif self.send:
            sheets.write(project.sheets, name, rows, questions, people, project.seed, instructions)
        else:
            self.waiting.append(_("sheet {name} to be sent", name=name))
            return None
        sheet, returned = sheets.opened(project.sheets, name), sheets.read(project.sheets, name)
        lacks = len(returned.lacking(sheet))
        about = returned.answers.groupby("item_id")
        signed = {
            str(item): (", ".join(some.person.unique()), some.when.max())
            for item, some in about[["person", "when"]]
        }
        self.sent[name] = Round(sheet, returned, lacks, signed)
        if lacks:
            self.waiting.append(_("{n} answers of sheet {name}", n=lacks, name=name))
        return None if lacks else returned

    def _merge(self, given: pd.DataFrame) -> bool:
        """Have the explanations merged that are not yet; False where there is nobody to do it."""
        path = self.project.folder / MERGED
        self.merged = _merged(path) if path.is_file() else {}
        wording = self.project.wording
        prompts = {}
        for row in self._beside(given).to_dict("records"):
            texts = [row[name] for name in given if name != "item_id"]
            listed = "\n".join(f"{k}. {one}" for k, one in enumerate(texts, start=1))
            values = {
                "context": row["context"],
                "sentence": row["sentence"].replace("[PLH]", row["words"].split("，")[0]),
                "explanations": listed,
            }
            # Every other piece is a field's name; what is filled in is never taken for one.
            pieces = FIELD.split(wording["merge"]["prompt"].strip())
            prompts[str(row["item_id"])] = "".join(
                values[one] if k % 2 else one for k, one in enumerate(pieces)
            )
        missing = {item: text for item, text in prompts.items() if item not in self.merged}
        if not missing:
            return True
        if self.merge is None or not self.send:
            return False
        waiting = list(missing.items())
        with progress(len(waiting), f"merging with {self.model}", "explanations") as bar:
            for start in range(0, len(waiting), BATCH):
                some = waiting[start : start + BATCH]
                replies = self.merge([prompt for _unused, prompt in some])
                when = datetime.now(UTC).isoformat(timespec="seconds")
                for (item, prompt), reply in zip(some, replies, strict=True):
                    digest = hashlib.sha256(prompt.encode()).hexdigest()[:16]
                    self.merged[item] = {
                        "item_id": item,
                        "text": clean(reply),
                        "model": self.model,
                        "wording": wording["version"],
                        "prompt_hash": digest,
                        "when": when,
                    }
                atomic_write(path, provenance.as_lines(self.merged.values()))
                bar.advance(len(some))
        return True

    def _beside(self, some: pd.DataFrame) -> pd.DataFrame:
        """The texts of some drafts, with what is known of them."""
        return self.drafts[["item_id", *TEXTS]].merge(some, on="item_id")

    def _decide(self, field: str, item: str, value: object, how: str, name: str) -> None:
        self.values[field][item] = Value(str(value), how, name, *self.sent[name].signed[item])


def advance(project: Project, merge: Writer | None = None, model: str = "") -> Rounds:
    """Read what came back, send out what can be asked now, and log where every value comes from.

    Args:
        merge: writes a reply to each prompt, such as `scorer.generate`; explanations wait without one.
        model: what the log calls it.

    Raises:
        BadInput: something was changed on which a sheet rests that went out already.
        RunFailed: a file cannot be written, or an endpoint does not answer.
    """
    with explain_write_errors(project.folder):
        found = Rounds(project, True, merge, model)
        provenance.add(project.folder, _log(found))
    return found


def look(project: Project) -> Rounds:
    """How far a project is; nothing is written."""
    return Rounds(project, False, None, "")


def _merged(path: Path) -> dict[str, dict[str, Any]]:
    """What the model wrote, as it was kept, by draft.

    Raises:
        BadInput: a line that is not as it was written; with its number.
    """
    found: dict[str, dict[str, Any]] = {}
    for number, line in read_json_lines(path):
        if not all(isinstance(line.get(name), str) for name in KEPT):
            raise BadInput(
                f"{path}, line {number}: expected texts {', '.join(KEPT)}; remove the line, and its explanation is merged again"
            )
        found[line["item_id"]] = line | {"text": clean(line["text"])}
    return found


def clean(reply: str) -> str:
    """A model's reply as a text that a cell can hold."""
    some = reply.strip()[: 2 * LONGEST]
    text = "".join(char if char.isprintable() or char == "\n" else " " for char in some).strip()
    return text[:LONGEST]


def _log(found: Rounds) -> list[Mapping[str, object]]:
    lines: list[Mapping[str, object]] = []
    for row in found.drafts.to_dict("records"):
        about = {
            "item_id": row["item_id"],
            "who": row["author"],
            "how": f"draft; source: {row['source']}",
        }
        lines += [{**about, "field": name, "value": row[name]} for name in TEXTS]
    for name, one in found.sent.items():
        lines += [
            {
                "item_id": row.item_id,
                "field": row.question,
                "value": row.answer,
                "who": row.person,
                "round": name,
                "how": "answer",
                "when": row.when,
            }
            for row in one.returned.answers.itertuples()
        ]
    for line in found.merged.values():
        about = {key: line[key] for key in ("item_id", "model", "wording", "prompt_hash", "when")}
        lines.append(
            {
                **about,
                "field": "explanation",
                "value": line["text"],
                "who": line["model"],
                "round": MERGED,
                "how": "merged",
            }
        )
    for field, values in found.values.items():
        lines += [
            {**one._asdict(), "item_id": item, "field": field} for item, one in values.items()
        ]
    lines += [
        {
            "item_id": item,
            "field": "item",
            "value": LEAVE_OUT,
            "round": DISCUSSION,
            "how": f"discussion: {why}",
            "who": ", ".join(found.project.people["panel"]),
        }
        for item, why in found.left_out.items()
    ]
    return lines
