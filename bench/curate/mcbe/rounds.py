"""Lead McBE drafts through the rounds of judgement, and write the data set that comes of them.

    subcategory  five people choose  -> majority; ties and objections are discussed
    explanation  three people write  -> a model merges -> two review -> disagreement is discussed
    severity     six people score    -> mean; again where more than 3.5 apart; then an expert
    quality      eight people answer questions about the finished rows

After Lan et al. (Findings of ACL 2025, section 3.3 and appendix). A sheet goes out when all that it
rests on is there. Only what people and the model wrote is kept, so that continuing gives the same.

The data set has one file per category, in McBE's columns, with `dataset.toml`, the first project's
`prompts.toml`, and the logs of all projects with the items' names in the set.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from bench.core.cells import as_csv
from bench.core.errors import BadInput, quoted
from bench.core.files import atomic_write, explain_write_errors, file_name_error
from bench.core.progress import progress
from bench.curate import sheets
from bench.curate.mcbe import DRAFTS, FIELD, LEAVE_OUT, Project, check_drafts
from bench.curate.sheets import MAX_CELL, Question, Returned
from bench.data import card, dataset, mcbe
from bench.data.dataset import MANIFEST, PROMPTS_FILE
from bench.data.readers import Row, read_json_lines, read_text, to_toml

SUBCATEGORY, DISCUSSION = "1-subcategory", "1-discussion"
EXPLANATION, REVIEW, SETTLING = "2-explanation", "2-review", "2-discussion"
SEVERITY, AGAIN, EXPERT = "3-severity", "3-severity-again", "3-expert"
QUALITY = "4-quality"
VERDICTS = ACCEPT, EDIT, REJECT = ("accept", "edit", "reject")
YES, NO, UNSURE = "yes", "no", "not sure"
MERGED, LOG = "merged.jsonl", "provenance.jsonl"
MERGED_FIELDS = ("item_id", "text", "model", "wording", "prompt_hash", "when")
# One line per value of a draft: who said it or how it came to be, and in which round; where a model
# wrote it, which. A value that changes later gets a line of its own.
LOG_COLUMNS = [
    *("item_id", "field", "value", "who", "round", "how", "when", "model", "wording"),
    "prompt_hash",
]
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
    table = scores.astype(float).agg(["mean", "min", "max"], axis=1)
    table = table.rename(columns={"min": "lowest", "max": "highest"})
    table["spread"] = table.highest - table.lowest
    # A difference of decimals may miss 3.5, which is not too wide, by a hair.
    table["again"] = table.spread > WIDEST + 1e-9
    return table.rename_axis("item_id").reset_index()


class Waits(Exception):
    """A step cannot go on; the message is what it waits for."""


class Rounds:
    """How far a project is.

    Attributes:
        faults: what is wrong with the drafts; nothing is asked before it is fixed.
        sent: what came back of the sheets that went out, by name.
        decisions: what was decided, see `LOG_COLUMNS`: the `field` subtype, explanation or score,
            or `item`, where a draft is left out.
        outcomes: what the rules made of a round, by the sheet's name.
        merged: what the model wrote, by draft.
        waiting: what is waited for; empty where all is done.
    """

    def __init__(self, project: Project, send: bool, merge: Writer | None, model: str) -> None:
        self.project, self.send, self.merge, self.model = project, send, merge, model
        self.faults = check_drafts(project)
        self.drafts = project.drafts.rename(columns={"draft": "item_id"})
        self.sent: dict[str, Returned] = {}
        self.decisions: list[dict[str, str]] = []
        self.outcomes: dict[str, pd.DataFrame] = {}
        self.merged: dict[str, dict[str, str]] = {}
        self.waiting: list[str] = []
        if len(self.faults):
            self.waiting = [f"{len(self.faults)} things in {DRAFTS} to be fixed"]
        elif self._goes(self._subcategories) and len(self.rows):
            tracks = [self._goes(self._explanations), self._goes(self._severities)]
            if all(tracks):
                self._goes(self._quality)

    @property
    def waits(self) -> str:
        """What is waited for, in words; "" where all is done."""
        return "; ".join(self.waiting)

    @property
    def left_out(self) -> dict[str, str]:
        """Why a draft was left out, by draft."""
        return {
            line["item_id"]: line["how"].removeprefix("discussion: ")
            for line in self.decisions
            if line["field"] == "item"
        }

    @property
    def rows(self) -> pd.DataFrame:
        """The drafts that were not left out with `subtype`, `explanation`, `score`, if decided."""
        kept = self.drafts.loc[~self.drafts.item_id.isin(self.left_out), ["item_id", *TEXTS]]
        for field in ("subtype", "explanation", "score"):
            values = {d["item_id"]: d["value"] for d in self.decisions if d["field"] == field}
            kept[field] = [values.get(item, "") for item in kept.item_id]
        return kept

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

    def log_lines(self) -> Iterator[Mapping[str, str]]:
        """Yield the lines of the log: drafts, answers, merged texts, decisions."""
        for row in self.drafts.to_dict("records"):
            origin = {"who": row["author"], "how": f"draft; source: {row['source']}"}
            for name in TEXTS:
                yield {"item_id": row["item_id"], "field": name, "value": row[name], **origin}
        for name, back in self.sent.items():
            new_names = {"question": "field", "answer": "value", "person": "who"}
            answers = back.answers.rename(columns=new_names).assign(round=name, how="answer")
            yield from answers.to_dict("records")  # type: ignore[misc]
        for line in self.merged.values():
            merged = {"field": "explanation", "value": line["text"], "who": line["model"]}
            yield {**line, **merged, "round": MERGED, "how": "merged"}
        yield from sorted(self.decisions, key=lambda line: line["field"] == "item")

    def _goes(self, step: Callable[[], object]) -> bool:
        """Go a step; False, with what is waited for, where it cannot be gone yet."""
        try:
            step()
        except Waits as wait:
            self.waiting.append(str(wait))
            return False
        return True

    def _subcategories(self) -> None:
        first = self._ask(SUBCATEGORY, self.drafts[["item_id"]])
        objections: dict[str, str] = {}
        for (item, _person), text in first.answers_to("objection").items():
            objections[item] = "; ".join(filter(None, [objections.get(item, ""), text]))[:MAX_CELL]
        outcome = self.outcomes[SUBCATEGORY] = majority(first.wide("subtype"), objections)
        won = outcome[outcome.discuss == ""]
        hows = f"majority of {len(first.sheet.people)}: " + won.votes
        self._decide("subtype", SUBCATEGORY, zip(won.item_id, won.chosen, hows, strict=True))
        disputed = outcome.loc[outcome.discuss != "", ["item_id", "votes", "objections"]]
        if len(disputed):
            back = self._ask(DISCUSSION, disputed)
            reasons = back.answers_to("reason")
            for key, label in back.answers_to("decision").items():
                field = "item" if label == LEAVE_OUT else "subtype"
                self._decide(field, DISCUSSION, [(key[0], label, f"discussion: {reasons[key]}")])

    def _explanations(self) -> None:
        written = self._ask(EXPLANATION, self.rows[["item_id", "subtype"]])
        people = written.sheet.people
        given = written.wide("explanation")[people].rename_axis(columns=None)
        given.columns = pd.Index([f"explanation_{k}" for k, _ in enumerate(people, start=1)])
        given = given.reset_index()
        self._merge(given)
        merged = {item: line["text"] for item, line in self.merged.items()}
        shown = given.assign(merged=given.item_id.map(merged))
        back = self._ask(REVIEW, shown)
        edits = back.answers_to("edited")
        outcome = self.outcomes[REVIEW] = review_outcome(back.wide("verdict"), edits, merged)
        stands = outcome[outcome.discuss == ""]
        hows = "merged by a model, " + stands.how
        self._decide("explanation", REVIEW, zip(stands.item_id, stands.text, hows, strict=True))
        disputed = shown.merge(outcome.loc[outcome.discuss != "", ["item_id", "discuss"]])
        if len(disputed):
            disputed["edits"] = [
                "\n".join(text for (item, _), text in edits.items() if item == name)[:MAX_CELL]
                for name in disputed.item_id
            ]
            texts = self._ask(SETTLING, disputed).answers_to("explanation").items()
            decisions = [(item, text, "discussion") for (item, _person), text in texts]
            self._decide("explanation", SETTLING, decisions)

    def _severities(self) -> None:
        rows = self.rows[["item_id"]]
        for name, suffix in ((SEVERITY, ""), (AGAIN, ", second round")):
            back = self._ask(name, rows)
            outcome = self.outcomes[name] = severities(back.wide("severity"))
            how = f"mean of {len(back.sheet.people)}{suffix}"
            means = outcome.loc[~outcome.again, ["item_id", "mean"]].itertuples(index=False)
            self._decide("score", name, ((item, f"{mean:.5g}", how) for item, mean in means))
            rows = outcome.loc[outcome.again, ["item_id", "lowest", "highest"]]
            if rows.empty:
                return
        scores = self._ask(EXPERT, rows).answers_to("severity").items()
        decisions = [(item, f"{float(score):g}", "expert") for (item, _person), score in scores]
        self._decide("score", EXPERT, decisions)

    def _quality(self) -> None:
        self._ask(QUALITY, self.rows.drop(columns=TEXTS))

    def _ask(self, name: str, known: pd.DataFrame) -> Returned:
        """Return what came back of a sheet, which is sent if it is new.

        Args:
            known: `item_id`, and what the sheet shows next to the texts of the drafts.

        Raises:
            Waits: answers are missing.
        """
        project, texts, asked = self.project, self.project.wording["sheets"], ROUNDS[name]
        people = project.people[asked.role]
        rows = self._with_texts(known).fillna("").astype(str)
        if (project.sheets / name / sheets.RECORD).exists():
            if sheets.load(project.sheets, name).rows != rows.to_dict("records"):
                raise BadInput(
                    f"{project.sheets / name}: went out with other rows or texts than would be "
                    "asked now, because something it rests on was changed since; put that back, or "
                    "begin a new project"
                )
            if self.send:
                sheets.ask(project.sheets, name, people)
        elif self.send:
            instructions = f"{texts[asked.instructions].strip()}\n{texts['filling']}"
            questions = _questions(project, name)
            sheets.write(project.sheets, name, rows, questions, people, project.seed, instructions)
        else:
            raise Waits(f"sheet {name} to be sent")
        back = self.sent[name] = sheets.read(project.sheets, name)
        if missing := len(back.missing):
            raise Waits(f"{missing} answers of sheet {name}")
        return back

    def _merge(self, given: pd.DataFrame) -> None:
        """Have the explanations merged that are not yet."""
        path, wording = self.project.folder / MERGED, self.project.wording
        for line in _read_lines(path, MERGED_FIELDS):
            self.merged[line["item_id"]] = line | {"text": clean(line["text"])}
        # Every other piece is a field's name, so that what is filled in is never taken for one.
        pieces = FIELD.split(wording["merge"]["prompt"].strip())
        prompts: list[tuple[str, str]] = []
        for row in self._with_texts(given).to_dict("records"):
            texts = [row[name] for name in given if name != "item_id"]
            fields = {
                "context": row["context"],
                "sentence": row["sentence"].replace("[PLH]", row["words"].split("，")[0]),
                "explanations": "\n".join(f"{k}. {text}" for k, text in enumerate(texts, start=1)),
            }
            parts = [fields[piece] if k % 2 else piece for k, piece in enumerate(pieces)]
            if row["item_id"] not in self.merged:
                prompts.append((row["item_id"], "".join(parts)))
        if prompts and (self.merge is None or not self.send):
            raise Waits("a model that merges the explanations")
        with progress(len(prompts), f"merging with {self.model}", "explanations") as bar:
            for start in range(0, len(prompts), BATCH):
                batch = prompts[start : start + BATCH]
                assert self.merge
                replies = self.merge([prompt for _item, prompt in batch])
                when = datetime.now(UTC).isoformat(timespec="seconds")
                for (item, prompt), reply in zip(batch, replies, strict=True):
                    digest = hashlib.sha256(prompt.encode()).hexdigest()[:16]
                    values = (item, clean(reply), self.model, wording["version"], digest, when)
                    self.merged[item] = dict(zip(MERGED_FIELDS, values, strict=True))
                atomic_write(path, _as_lines(self.merged.values()))
                bar.update(len(batch))

    def _with_texts(self, rows: pd.DataFrame) -> pd.DataFrame:
        return self.drafts[["item_id", *TEXTS]].merge(rows, on="item_id")

    def _decide(self, field: str, name: str, decisions: Iterable[tuple[str, str, str]]) -> None:
        """Keep decisions of a round: item, value, and how it was decided."""
        answers = self.sent[name].answers.groupby("item_id")
        who, when = (
            answers.person.agg(lambda people: ", ".join(people.unique())),
            answers.when.max(),
        )
        for item, value, how in decisions:
            line = {"item_id": item, "field": field, "value": value, "how": how, "round": name}
            self.decisions.append(line | {"who": who[item], "when": when[item]})


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
        add_to_log(project.folder, rounds.log_lines())
    return rounds


def look(project: Project) -> Rounds:
    """Return how far a project is, and write nothing."""
    return Rounds(project, False, None, "")


def clean(reply: str) -> str:
    """Turn a model's reply into a text that a cell can hold."""
    characters = reply.strip()[: 2 * MAX_MERGED]
    text = "".join(char if char.isprintable() or char == "\n" else " " for char in characters)
    return text.strip()[:MAX_MERGED]


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


def read_log(folder: Path) -> pd.DataFrame:
    """Read the log of a project, `LOG_COLUMNS`; no rows if there is none yet.

    Raises:
        BadInput: it is no JSON Lines file, or a value is no text; with the line.
    """
    rows = _read_lines(folder / LOG, LOG_COLUMNS, "")
    return pd.DataFrame(rows, columns=LOG_COLUMNS, dtype=str)


def _read_lines(path: Path, names: Sequence[str], default: str | None = None) -> list[Row]:
    """Read the texts of these names in each line of a file that we wrote; [] if there is none."""
    rows: list[Row] = []
    for number, line in read_json_lines(path) if path.is_file() else ():
        rows.append({name: line.get(name, default) for name in names})  # type: ignore[misc]
        for name, value in rows[-1].items():
            if not isinstance(value, str):
                raise BadInput(
                    f"{path}, line {number}, field `{name}`: {quoted(value)} is not a text; "
                    "put back the original, or remove the line"
                )
    return rows


def add_to_log(folder: Path, lines: Iterable[Mapping[str, str]]) -> None:
    """Add the lines that the log does not have yet."""
    before = read_log(folder)
    table = pd.concat([before, pd.DataFrame([*lines])]).reindex(columns=LOG_COLUMNS).fillna("")
    # What a panel answers, and what follows from it, are two lines of one name.
    subject = [table.item_id, table.field, table.who, table["round"], table.how == "answer"]
    content = table.drop(columns="when").agg("\0".join, axis=1)
    # Compared with the last line only: going back to an earlier answer is a new line.
    is_new = content != content.groupby([key.to_numpy() for key in subject]).shift()
    rows = table[is_new.to_numpy()]
    if len(rows) > len(before):
        atomic_write(folder / LOG, _as_lines(rows.to_dict("records")))


def _as_lines(rows: Iterable[Mapping[Any, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def finish(*projects: Rounds, out: str | Path = "") -> Path:
    """Write the items of projects as one data folder, and return it.

    Args:
        projects: a batch of a category each; the first one's manifest counts.
        out: the folder; default: `dataset-VERSION` in the first project.

    Raises:
        BadInput: rounds are not over, no draft was kept, manifests differ, or the folder holds
            another set: nothing is overwritten.
    """
    first = projects[0].project
    if len({rounds.project.folder.resolve() for rounds in projects}) < len(projects):
        raise BadInput(f"{first.folder}: is given twice; each project goes into a set once")
    sayings: dict[str, tuple[object, Path]] = {}
    for rounds in projects:
        project = rounds.project
        if rounds.waits:
            raise BadInput(f"{project.folder}: is not done; it waits for {rounds.waits}")
        says = {
            **dict.fromkeys(dataset.TEXTS),
            **project.manifest.texts,
            "language": project.manifest.languages,
            f"categories.{project.category}": project.manifest.categories,
        }
        for key, value in says.items():
            earlier, folder = sayings.setdefault(key, (value, project.folder))
            if value != earlier:
                raise BadInput(
                    f"{project.folder}, key `{key}`: differs from that of {folder}; projects of "
                    "one set say the same of it"
                )
    if all(rounds.rows.empty for rounds in projects):
        count = sum(len(rounds.drafts) for rounds in projects)
        raise BadInput(f"{first.folder}: all {count} drafts were left out, so there is no set")
    version = first.manifest.texts.get("version", "1")
    if not out and (error := file_name_error(version)):
        raise BadInput(
            f"{first.folder / MANIFEST}, key `version`: {quoted(version)} cannot name the folder "
            f"of the set: {error}; write another version, or give a folder"
        )
    place = Path(out).expanduser() if out else first.folder / f"dataset-{version}"
    is_there = (place / MANIFEST).exists()
    with explain_write_errors(place):
        for name, text in _files(projects).items():
            path = place / name
            if not is_there:
                atomic_write(path, text)
            elif not path.exists() or path.read_bytes() != text.encode():
                raise BadInput(
                    f"{path}: is there and differs; nothing is overwritten, so give the set "
                    "another `version` in project.toml"
                )
        card.write("mcbe", place)
    return place


def _files(projects: Sequence[Rounds]) -> dict[str, str]:
    """Return name and text of each file, the manifest last: half a set is none."""
    first = projects[0].project
    tables: dict[str, pd.DataFrame] = {}
    labels, lines = {}, []
    for rounds in projects:
        project, rows = rounds.project, rounds.rows
        start = len(tables.get(project.category, ())) + 1
        tables[project.category] = pd.concat([tables.get(project.category), rows])
        places = {item: f"{project.category}:{k}" for k, item in enumerate(rows.item_id, start)}
        log = read_log(project.folder).rename(columns={"item_id": "draft"})
        log.insert(0, "project", project.folder.name)
        log.insert(2, "item_id", [places.get(draft, "") for draft in log.draft])
        lines += log.to_dict("records")
        if len(tables[project.category]):
            labels[project.category] = project.manifest.categories[project.category]
    manifest = first.manifest._replace(categories=labels)
    prompts = first.folder / PROMPTS_FILE
    files = {PROMPTS_FILE: read_text(prompts)} if prompts.is_file() else {}
    for category in labels:
        rows = tables[category][list(mcbe.COLUMNS)]
        files[f"{category}.csv"] = as_csv(rows.assign(score=rows.score.astype(float)))
    files[LOG] = _as_lines(lines)
    files[MANIFEST] = to_toml({**manifest.texts, **dataset.manifest_tables(manifest)})
    return files
