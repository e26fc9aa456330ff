"""Lead McBE drafts through the rounds of judgement: what is asked next, of whom, what is decided.

    subcategory  five people choose  -> majority; ties and objections are discussed
    explanation  three people write  -> a model merges -> two review -> disagreement is discussed
    severity     six people score    -> mean; again where more than 3.5 apart; then an expert
    quality      eight people answer questions about the finished rows

After Lan et al. (Findings of ACL 2025, section 3.3 and appendix). A sheet goes out when all that it
rests on is there. Only what people and the model wrote is kept, so that continuing gives the same.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from bench.core.errors import BadInput
from bench.core.files import atomic_write, explain_write_errors
from bench.core.i18n import _
from bench.core.progress import progress
from bench.curate import sheets
from bench.curate.mcbe import DRAFTS, FIELD, LEAVE_OUT, Project, check_drafts, log
from bench.curate.sheets import MAX_CELL, Question, Returned
from bench.data.readers import read_json_lines

SUBCATEGORY, DISCUSSION = "1-subcategory", "1-discussion"
EXPLANATION, REVIEW, SETTLING = "2-explanation", "2-review", "2-discussion"
SEVERITY, AGAIN, EXPERT = "3-severity", "3-severity-again", "3-expert"
QUALITY = "4-quality"
VERDICTS = ACCEPT, EDIT, REJECT = ("accept", "edit", "reject")
YES, NO, UNSURE = "yes", "no", "not sure"
MERGED = "merged.jsonl"
MERGED_FIELDS = ("item_id", "text", "model", "wording", "prompt_hash", "when")
# Characters of a merged explanation; ours have a hundred.
MAX_MERGED = 2000
# Explanations that are merged and kept together.
BATCH = 16
TEXTS = ["context", "sentence", "words"]
# Severities of an item that lie farther apart are given again.
WIDEST = 3.5
# A function from prompts to replies.
Writer = Callable[[Sequence[str]], Sequence[str]]


class Round(NamedTuple):
    """Who is asked in a round, with which instructions, and which questions."""

    role: str
    instructions: str
    questions: tuple[str, ...]


ROUNDS = {
    SUBCATEGORY: Round("subcategory", "subcategory", ("subtype", "objection")),
    DISCUSSION: Round("panel", "discussion", ("decision", "reason")),
    EXPLANATION: Round("explanation", "explanation", ("explanation",)),
    REVIEW: Round("review", "review", ("verdict", "edited")),
    SETTLING: Round("panel", "settling", ("explanation",)),
    SEVERITY: Round("severity", "severity", ("severity",)),
    AGAIN: Round("severity", "again", ("severity",)),
    EXPERT: Round("expert", "expert", ("severity", "reason")),
    QUALITY: Round("quality", "quality", ()),
}


def majority(chosen: pd.DataFrame, objections: Mapping[str, str]) -> pd.DataFrame:
    """Find the subcategory that more than half of the people chose.

    Args:
        chosen: one row per item, one column per person.
        objections: what people said against an item, by item.

    Returns:
        `item_id`, `chosen` ("" without a majority), `votes` in words, `share` of the winner,
        `objections`, and `discuss`: why the item has to be discussed, or "".
    """
    rows = []
    for item, answers in chosen.iterrows():
        votes = sorted(answers.value_counts().items(), key=lambda vote: (-vote[1], str(vote[0])))
        winner, count = votes[0]
        has_majority, objection = count > len(answers) / 2, objections.get(str(item), "")
        rows.append(
            {
                "item_id": item,
                "chosen": winner if has_majority else "",
                "votes": ", ".join(f"{name} {n}" for name, n in votes),
                "share": count / len(answers),
                "objections": objection,
                "discuss": ("objection" if objection else "") if has_majority else "no majority",
            }
        )
    return pd.DataFrame(rows)


def review_outcome(
    verdicts: pd.DataFrame, edits: Mapping[tuple[str, str], str], merged: Mapping[str, str]
) -> pd.DataFrame:
    """Find which merged explanations the reviewers leave standing.

    If all accept, the text stands. If one edits, or all edit alike, the edited text stands.
    Otherwise it has to be discussed.

    Args:
        verdicts: `VERDICTS`, one row per item, one column per reviewer.
        edits: the edited texts by item and reviewer.
        merged: what the model wrote, by item.

    Returns:
        `item_id`, `text` ("" if open), `how` (`accepted`, `edited` or ""), `discuss` (why, or "").
    """
    rows = []
    for item, answers in verdicts.iterrows():
        texts = [edits.get((str(item), str(name)), "") for name in answers.index[answers == EDIT]]
        reasons = {
            "rejected": (answers == REJECT).any(),
            "edited without a text": not all(texts),
            "edited otherwise": len({*texts}) > 1,
            "the model wrote nothing": not texts and not merged[str(item)],
        }
        reason = next((reason for reason, holds in reasons.items() if holds), "")
        text, how = (texts[0], "edited") if texts else (merged[str(item)], "accepted")
        rows.append((item, *(("", "") if reason else (text, how)), reason))
    return pd.DataFrame(rows, columns=["item_id", "text", "how", "discuss"])


def severities(scores: pd.DataFrame) -> pd.DataFrame:
    """Average people's severities, and mark the items where they lie too far apart.

    Args:
        scores: from 0 to 10, one row per item, one column per person.

    Returns:
        `item_id`, `mean`, `lowest`, `highest`, `spread`, `again` (whether it is above `WIDEST`).
    """
    numbers = scores.astype(float)
    table = pd.DataFrame({"mean": numbers.mean(axis=1)})
    table["lowest"], table["highest"] = numbers.min(axis=1), numbers.max(axis=1)
    table["spread"] = table.highest - table.lowest
    # A difference of decimals may miss 3.5, which is not too wide, by a hair.
    table["again"] = table.spread > WIDEST + 1e-9
    return table.rename_axis("item_id").reset_index()


class Value(NamedTuple):
    """A value that was decided: how, in which round, by whom, when."""

    value: str
    how: str
    round: str
    who: str
    when: str


class Rounds:
    """How far a project is.

    Attributes:
        faults: what is wrong with the drafts; nothing is asked before it is fixed.
        sent: what came back of the sheets that went out, by name.
        values: by field (`subtype`, `explanation`, `score`) and draft.
        left_out: why a draft was left out, by draft.
        outcomes: what the rules made of a round, by the sheet's name.
        merged: what the model wrote, by draft.
        waiting: what is waited for; empty where all is done.
    """

    def __init__(self, project: Project, send: bool, merge: Writer | None, model: str) -> None:
        self.project, self.send, self.merge, self.model = project, send, merge, model
        self.faults = check_drafts(project)
        self.drafts = project.drafts.rename(columns={"draft": "item_id"})
        self.sent: dict[str, Returned] = {}
        self.values: dict[str, dict[str, Value]] = {"subtype": {}, "explanation": {}, "score": {}}
        self.left_out: dict[str, str] = {}
        self.outcomes: dict[str, pd.DataFrame] = {}
        self.merged: dict[str, dict[str, str]] = {}
        self.waiting: list[str] = []
        if len(self.faults):
            self.waiting = [_("{n} things in {file} to be fixed", n=len(self.faults), file=DRAFTS)]
        elif self._subcategories() and len(self.kept):
            explained, scored = self._explanations(), self._severities()
            if explained and scored:
                self._ask(QUALITY, self.rows.drop(columns=TEXTS))

    @property
    def waits(self) -> str:
        """What is waited for, in words; "" where all is done."""
        return _("; ").join(self.waiting)

    @property
    def kept(self) -> pd.DataFrame:
        """The drafts that were not left out."""
        return self.drafts[~self.drafts.item_id.isin(self.left_out)]

    @property
    def rows(self) -> pd.DataFrame:
        """The kept drafts with what is decided: `subtype`, `explanation`, `score`."""
        values = {
            field: [values[item].value if item in values else "" for item in self.kept.item_id]
            for field, values in self.values.items()
        }
        return self.kept[["item_id", *TEXTS]].assign(**values)

    def state(self) -> pd.DataFrame:
        """Count the required answers of each sheet, and what is to be fixed."""
        columns = ["sheet", "rows", "people", "answers", "needed", "to_mend"]
        counts = []
        for name, back in self.sent.items():
            sheet, missing = back.sheet, len(back.missing)
            size = len(sheet.rows), len(sheet.people)
            needed = size[0] * size[1] * sum(question.required for question in sheet.questions)
            counts.append((name, *size, needed - missing, needed, len(back.to_mend)))
        return pd.DataFrame(counts, columns=columns)

    def to_mend(self) -> pd.DataFrame:
        """List what people have to fix in the drafts and in all sheets: `sheet`, `MEND_COLUMNS`."""
        # Rows as a spreadsheet program counts them, with the header.
        faults = self.faults.rename(columns={"draft": "item_id"})
        faults = faults.assign(sheet="", person="", file=DRAFTS, row=faults.row + 1, allowed="")
        parts = [faults, *(back.to_mend.assign(sheet=name) for name, back in self.sent.items())]
        filled = [part for part in parts if len(part)] or [faults]
        return pd.concat(filled, ignore_index=True)[["sheet", *sheets.MEND_COLUMNS]]

    def ratings(self, name: str, question: str) -> pd.DataFrame:
        """Return the answers of a round: `category`, `item_id`, `rater`, `rating`."""
        answers = self.sent[name].answers
        answers = answers[answers.question == question].assign(category=self.project.category)
        answers = answers.rename(columns={"person": "rater", "answer": "rating"})
        return answers[["category", "item_id", "rater", "rating"]]

    def _subcategories(self) -> bool:
        first = self._ask(SUBCATEGORY, self.drafts[["item_id"]])
        if first is None:
            return False
        objections: dict[str, str] = {}
        for (item, _person), text in first.answers_to("objection").items():
            objections[item] = "; ".join(filter(None, [objections.get(item, ""), text]))[:MAX_CELL]
        outcome = self.outcomes[SUBCATEGORY] = majority(first.wide("subtype"), objections)
        won = outcome[outcome.discuss == ""]
        hows = f"majority of {len(first.sheet.people)}: " + won.votes
        self._decide("subtype", SUBCATEGORY, zip(won.item_id, won.chosen, hows, strict=True))
        disputed = outcome.loc[outcome.discuss != "", ["item_id", "votes", "objections"]]
        if disputed.empty:
            return True
        back = self._ask(DISCUSSION, disputed)
        if back is None:
            return False
        reasons = back.answers_to("reason")
        settled = [
            (key[0], decision, f"discussion: {reasons[key]}")
            for key, decision in back.answers_to("decision").items()
        ]
        self.left_out = {
            item: how.removeprefix("discussion: ")
            for item, text, how in settled
            if text == LEAVE_OUT
        }
        kept = [decision for decision in settled if decision[0] not in self.left_out]
        self._decide("subtype", DISCUSSION, kept)
        return True

    def _explanations(self) -> bool:
        written = self._ask(EXPLANATION, self.rows[["item_id", "subtype"]])
        if written is None:
            return False
        people = written.sheet.people
        given = written.wide("explanation")[people].rename_axis(columns=None)
        given.columns = pd.Index([f"explanation_{k}" for k, _ in enumerate(people, start=1)])
        given = given.reset_index()
        if not self._merge(given):
            self.waiting.append(_("a model that merges the explanations"))
            return False
        merged = {item: line["text"] for item, line in self.merged.items()}
        shown = given.assign(merged=given.item_id.map(merged))
        back = self._ask(REVIEW, shown)
        if back is None:
            return False
        edits = back.answers_to("edited")
        outcome = self.outcomes[REVIEW] = review_outcome(back.wide("verdict"), edits, merged)
        stands = outcome[outcome.discuss == ""]
        hows = "merged by a model, " + stands.how
        self._decide("explanation", REVIEW, zip(stands.item_id, stands.text, hows, strict=True))
        disputed = shown.merge(outcome.loc[outcome.discuss != "", ["item_id", "discuss"]])
        if disputed.empty:
            return True
        disputed["edits"] = [
            "\n".join(text for (item, _person), text in edits.items() if item == disputed_item)
            for disputed_item in disputed.item_id
        ]
        disputed["edits"] = disputed.edits.str[:MAX_CELL]
        settled = self._ask(SETTLING, disputed)
        if settled is None:
            return False
        texts = settled.answers_to("explanation").items()
        decisions = [(item, text, "discussion") for (item, _person), text in texts]
        self._decide("explanation", SETTLING, decisions)
        return True

    def _severities(self) -> bool:
        rows = self.rows[["item_id"]]
        for name, suffix in ((SEVERITY, ""), (AGAIN, ", second round")):
            back = self._ask(name, rows)
            if back is None:
                return False
            outcome = self.outcomes[name] = severities(back.wide("severity"))
            how = f"mean of {len(back.sheet.people)}{suffix}"
            means = outcome.loc[~outcome.again, ["item_id", "mean"]].itertuples(index=False)
            self._decide("score", name, ((item, f"{mean:.5g}", how) for item, mean in means))
            rows = outcome.loc[outcome.again, ["item_id", "lowest", "highest"]]
            if rows.empty:
                return True
        final = self._ask(EXPERT, rows)
        if final is None:
            return False
        scores = final.answers_to("severity").items()
        decisions = [(item, f"{float(score):g}", "expert") for (item, _person), score in scores]
        self._decide("score", EXPERT, decisions)
        return True

    def _ask(self, name: str, known: pd.DataFrame) -> Returned | None:
        """Return what came back of a sheet, None where answers are missing; send it if it is new.

        Args:
            known: `item_id`, and what the sheet shows next to the texts of the drafts.
        """
        project, wording, round_ = self.project, self.project.wording, ROUNDS[name]
        people = project.people[round_.role]
        rows = self._with_texts(known).fillna("").astype(str)
        place = project.sheets / name
        if (place / sheets.RECORD).exists():
            if sheets.load(project.sheets, name).rows != rows.to_dict("records"):
                raise BadInput(
                    f"{place}: went out with other rows or texts than would be asked now, because "
                    "something it rests on was changed since; put that back, or begin a new project"
                )
            if self.send:
                sheets.ask(project.sheets, name, people)
        elif self.send:
            instructions = wording["sheets"][round_.instructions].strip()
            instructions = f"{instructions}\n{wording['sheets']['filling']}"
            questions = _questions(project, name)
            seed = project.seed
            sheets.write(project.sheets, name, rows, questions, people, seed, instructions)
        else:
            self.waiting.append(_("sheet {name} to be sent", name=name))
            return None
        back = self.sent[name] = sheets.read(project.sheets, name)
        if missing := len(back.missing):
            self.waiting.append(_("{n} answers of sheet {name}", n=missing, name=name))
            return None
        return back

    def _merge(self, given: pd.DataFrame) -> bool:
        """Have the explanations merged that are not yet; False where no model can do it."""
        path = self.project.folder / MERGED
        self.merged = _read_merged(path) if path.is_file() else {}
        wording = self.project.wording
        # Every other piece is a field's name, so that what is filled in is never taken for one.
        pieces = FIELD.split(wording["merge"]["prompt"].strip())
        prompts = {}
        for row in self._with_texts(given).to_dict("records"):
            texts = [row[name] for name in given if name != "item_id"]
            fields = {
                "context": row["context"],
                "sentence": row["sentence"].replace("[PLH]", row["words"].split("，")[0]),
                "explanations": "\n".join(f"{k}. {text}" for k, text in enumerate(texts, start=1)),
            }
            prompts[str(row["item_id"])] = "".join(
                fields[piece] if k % 2 else piece for k, piece in enumerate(pieces)
            )
        missing = [(item, text) for item, text in prompts.items() if item not in self.merged]
        if missing and (self.merge is None or not self.send):
            return False
        with progress(len(missing), f"merging with {self.model}", "explanations") as bar:
            for start in range(0, len(missing), BATCH):
                batch = missing[start : start + BATCH]
                assert self.merge
                replies = self.merge([prompt for _item, prompt in batch])
                when = datetime.now(UTC).isoformat(timespec="seconds")
                for (item, prompt), reply in zip(batch, replies, strict=True):
                    digest = hashlib.sha256(prompt.encode()).hexdigest()[:16]
                    values = (item, clean(reply), self.model, wording["version"], digest, when)
                    self.merged[item] = dict(zip(MERGED_FIELDS, values, strict=True))
                atomic_write(path, log.as_lines(self.merged.values()))
                bar.advance(len(batch))
        return True

    def _with_texts(self, rows: pd.DataFrame) -> pd.DataFrame:
        return self.drafts[["item_id", *TEXTS]].merge(rows, on="item_id")

    def _decide(self, field: str, name: str, decisions: Any) -> None:
        """Keep decisions of a round: item, value, and how it was decided."""
        about = self.sent[name].answers.groupby("item_id")
        who, when = about.person.agg(lambda people: ", ".join(people.unique())), about.when.max()
        for item, value, how in decisions:
            self.values[field][item] = Value(value, how, name, who[item], when[item])


def advance(project: Project, merge: Writer | None = None, model: str = "") -> Rounds:
    """Read what came back, send what can be asked now, and log where each value comes from.

    Args:
        merge: writes a reply to each prompt, such as `scorer.generate`; default: explanations wait.
        model: its name in the log.

    Raises:
        BadInput: something was changed that a sheet rests on which went out already.
    """
    with explain_write_errors(project.folder):
        rounds = Rounds(project, True, merge, model)
        log.add(project.folder, log_lines(rounds))
    return rounds


def look(project: Project) -> Rounds:
    """Return how far a project is, and write nothing."""
    return Rounds(project, False, None, "")


def clean(reply: str) -> str:
    """Turn a model's reply into a text that a cell can hold."""
    characters = reply.strip()[: 2 * MAX_MERGED]
    text = "".join(char if char.isprintable() or char == "\n" else " " for char in characters)
    return text.strip()[:MAX_MERGED]


def log_lines(rounds: Rounds) -> Iterator[Mapping[str, object]]:
    """Yield the lines of the log: drafts, answers, merged texts, decisions, drafts left out."""
    for row in rounds.drafts.to_dict("records"):
        origin = {"who": row["author"], "how": f"draft; source: {row['source']}"}
        for name in TEXTS:
            yield {"item_id": row["item_id"], "field": name, "value": row[name], **origin}
    for name, back in rounds.sent.items():
        new_names = {"question": "field", "answer": "value", "person": "who"}
        answers = back.answers.rename(columns=new_names)
        yield from answers.assign(round=name, how="answer").to_dict("records")  # type: ignore[misc]
    for line in rounds.merged.values():
        merged = {"field": "explanation", "value": line["text"], "who": line["model"]}
        yield {**line, **merged, "round": MERGED, "how": "merged"}
    for field, values in rounds.values.items():
        for item, value in values.items():
            yield {"item_id": item, "field": field, **value._asdict()}
    for item, reason in rounds.left_out.items():
        left_out = {"item_id": item, "field": "item", "value": LEAVE_OUT, "round": DISCUSSION}
        who = ", ".join(rounds.project.people["panel"])
        yield {**left_out, "how": f"discussion: {reason}", "who": who}


def _questions(project: Project, name: str) -> list[Question]:
    asked, quality = project.wording["asked"], project.wording["quality"]
    known = {
        "subtype": Question("subtype", asked["subcategory"], project.subcategories),
        "objection": Question("objection", asked["objection"], required=False),
        "decision": Question("decision", asked["decision"], (*project.subcategories, LEAVE_OUT)),
        "reason": Question("reason", asked["reason"]),
        "explanation": Question("explanation", asked["explanation"]),
        "verdict": Question("verdict", asked["verdict"], VERDICTS),
        "edited": Question("edited", asked["edited"], required=False),
        "severity": Question("severity", asked["severity"], lowest=0, highest=10),
    }
    if name == QUALITY:
        return [Question(key, text, (YES, NO, UNSURE)) for key, text in quality.items()]
    return [known[question] for question in ROUNDS[name].questions]


def _read_merged(path: Path) -> dict[str, dict[str, str]]:
    """Read what the model wrote, by draft.

    Raises:
        BadInput: a line that is not as it was written; with its number.
    """
    merged: dict[str, dict[str, str]] = {}
    for number, line in read_json_lines(path):
        if not all(isinstance(line.get(name), str) for name in MERGED_FIELDS):
            raise BadInput(
                f"{path}, line {number}: expected texts {', '.join(MERGED_FIELDS)}; "
                "remove the line, and its explanation is merged again"
            )
        merged[line["item_id"]] = line | {"text": clean(line["text"])}
    return merged
