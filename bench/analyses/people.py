"""Judges and people: the marks that both gave, from runs and from files of people's marks, or of simulated people.

marks = analyses(runs, "people.csv")             # McBE's bias analyses, by the judge of each run and by people
marks = severities(runs)                         # McBE's bias scores: of the model, and of people as the data have them
marks = verdicts(runs, "marked.csv")             # CBBQ's explanations: biased or not
"""

import glob
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rapidfuzz.distance import LCSseq

from bench.analyses import opened
from bench.core.cells import to_whole_number
from bench.core.errors import BadInput, NoRuns, quoted
from bench.core.i18n import _
from bench.data.readers import MAX_LINE, read_csv
from bench.metrics import mcbe
from bench.metrics.agreement import read_human
from bench.metrics.judges import COLUMNS
from bench.run.human_marks import cell, read_analyses
from bench.run.results import Run, labels, short_name
from bench.tasks.cbbq import BIASED, LETTERS, verdict
from bench.tasks.replies import final

# Simulated people: so many, each off the rule's points by a normal draw of this standard deviation.
PEOPLE, SPREAD = 3, 10.0
# How often a simulated person's verdict is the rule's.
RELIABILITY = 0.9
HIGHEST = 100
KEYS = ["task", "item_id", "order", "repeat"]


def judged(
    runs: Sequence[str | Path],
    *,
    models: Sequence[str] = (),
    judges: Sequence[str] = (),
    demo: Sequence[str] = (),
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[Run]:
    """The runs that judges and people are compared on; where none are given, those of `demo`, marked by each of `judges`.

    Args:
        runs, models, demo, options: see `bench.analyses.opened`; the benchmarks of the demonstration are those of `options`.

    Raises:
        NoRuns: none of the runs has marks of a judge, or severities, which people's are in the data.
    """
    if runs:
        given = opened(runs, benchmarks=["mcbe", "cbbq"], models=models)
        found = [
            run for run in given if run.about["asked"]["judge"] or (run.records.task == "bs").any()
        ]
        if not found:
            raise NoRuns(
                f"none of {len(given)} runs has marks of a judge, or severities; ask with --judge, or McBE's task bs"
            )
        return found
    asked = options or {}
    return [
        run
        for judge in judges
        for run in opened(
            [],
            benchmarks=list(asked),
            demo=demo,
            options={name: {**some, "judge": judge} for name, some in asked.items()},
        )
    ]


def analyses(runs: Sequence[Run], people: str = "", *, seed: int = 0) -> pd.DataFrame:
    """The points of McBE's bias analyses, by judge and people: the columns of `bench.metrics.judges`, `said` and `reference`.

    A row is a judge, a model and an item; repeats, and several people, are averaged.

    Args:
        people: see `points`. If empty, people are simulated: each gives the share of the reference that is in the analysis, in
            its order and in points, which is also what a simulated judge goes by, off by a normal draw.

    Raises:
        BadInput: the file is wrong, or has no marks of these runs.
    """
    parts = []
    for run, judge, name in _marked(runs, "mcbe", "ba"):
        # Under another judge the model may have written something else, so each run is looked up by itself.
        given = points(people, [run]).dropna(subset="human") if people else None
        records, items = run.records, run.items.set_index("item_id")
        judge_points = mcbe.analyses(records, run.items)
        if given is not None and "second" in given:
            judge_points = judge_points[judge_points.repeat == 0]  # as sheets have it
        marks = judge_points.groupby("item_id", sort=False)["judge"].mean().reset_index()
        said = records[(records.task == "ba") & (records.request == "answer")].drop_duplicates(
            "item_id"
        )
        marks = marks.merge(
            said[["item_id", "response"]].rename(columns={"response": "said"}), on="item_id"
        )
        marks["reference"] = items.explanation.reindex(marks.item_id).to_numpy()
        if given is None:
            marks["human"] = _simulated(marks, name, seed)
        else:
            some = given[given.model.isin([run.model, run.label])]
            marks = marks.merge(some.groupby("item_id").human.mean().reset_index(), on="item_id")
        parts.append(
            marks.assign(
                by=judge,
                model=name,
                category=items.category.reindex(marks.item_id).to_numpy(),
                cluster=marks.item_id,
            )
        )
    return _together(parts, people, [*COLUMNS, "said", "reference"])


def points(people: str, runs: Sequence[Run]) -> pd.DataFrame:
    """Read people's points for McBE's bias analyses: `item_id`, `model`, `human`, `person` (the file).

    Args:
        people: a sheet of `bench mark`, or a pattern of sheets, one a person, which gives a column
            `second` too (whether it is a row's second mark) and NaN where a row is not marked; or a
            CSV file as `bench.metrics.agreement.read_human` takes it, whose `model` is a model as it
            was asked for or as tables name it.

    Raises:
        BadInput: a file is wrong.
    """
    place = str(Path(people).expanduser())
    analysed = [run for run in runs if run.benchmark == "mcbe"]
    parts = []
    for path in map(Path, sorted(glob.glob(place)) or [place]):
        first = next(iter(read_csv(path, ["human"], longest=MAX_LINE)), {})
        read = read_analyses(analysed, path) if "key" in first else read_human(path)
        parts.append(read.assign(person=path.name))
    return pd.concat(parts, ignore_index=True)


def severities(runs: Sequence[Run]) -> pd.DataFrame:
    """Severities of McBE's bias scoring: of each model, as `by` and `judge`, and of people, as the data have them.

    A model that was asked in several runs, such as under two judges, counts once; repeats are averaged.
    """
    some = [run for run in _first(runs, "mcbe") if (run.records.task == "bs").any()]
    parts = []
    for run, name in zip(some, labels(some), strict=True):
        items = run.items.set_index("item_id")
        found = (
            mcbe.severities(run.records, run.items)
            .groupby("item_id", sort=False)
            .mean()
            .reset_index()
        )
        found = found.rename(columns={"model": "judge", "people": "human"})
        parts.append(
            found.assign(
                by=name,
                model=name,
                category=items.category.reindex(found.item_id).to_numpy(),
                cluster=found.item_id,
            )
        )
    return _together(parts, "", COLUMNS)


def verdicts(runs: Sequence[Run], people: str = "", *, seed: int = 0) -> pd.DataFrame:
    """Verdicts on CBBQ's explanations, 1 for biased, by judge and people: the columns of `bench.metrics.judges`, and `said`.

    Args:
        people: a table as `bench mark` writes it, its column `response` filled in; rows of other replies than those of
            a run are passed over. If empty, people are simulated: biased where the choice is, which is also what a simulated
            judge goes by, and otherwise once in ten times.

    Raises:
        BadInput: the file is wrong, or has no marks of these runs.
    """
    given = _read_verdicts(Path(people).expanduser()) if people else None
    parts = []
    for run, judge, name in _marked(runs, "cbbq", ""):
        records, items = (
            run.records.assign(order=_order(run.records.request)),
            run.items.set_index("item_id"),
        )
        said = records[records.request.str.startswith("explanation")]
        marks = records[records.request.str.startswith("judge") & (records.error == "")]
        marks = marks.assign(verdict=[verdict(reply) for reply in marks.response])
        both = marks.loc[marks.verdict != "", [*KEYS, "verdict"]].merge(
            said[[*KEYS, "response", "parsed"]], on=KEYS
        )
        both = both.assign(said=both.response, judge=(both.verdict == BIASED).astype(float))
        about = items.loc[both.item_id]
        if given is None:
            chosen = about.target.where(about.polarity == "neg", 1 - about.target).map(
                lambda k: LETTERS[k]
            )
            rule = both.parsed.to_numpy() == chosen.to_numpy()
            keys = zip(*(both[key] for key in KEYS), strict=True)
            slips = np.array([_dice(seed, name, *key).random() for key in keys]) >= RELIABILITY
            both["human"] = (rule ^ slips).astype(float)
        else:
            both["reply"] = both.said.map(cell)
            both = both.merge(given, on=[*KEYS, "reply"])
            about = items.loc[both.item_id]
        parts.append(
            both.assign(
                by=judge,
                model=name,
                category=about.category.to_numpy(),
                cluster=about.cluster.to_numpy(),
            )
        )
    return _together(parts, people, [*COLUMNS, "said"])


def notes(analysed: pd.DataFrame, decided: pd.DataFrame, people: str, marked: str) -> list[str]:
    """What has to stand above a result with simulated people; nothing above one with people's own marks.

    Args:
        analysed, decided: `analyses` and `verdicts`.
        people, marked: the files that they were made with; "" where people are simulated.
    """
    found = []
    if len(analysed) and not people:
        some = analysed.drop_duplicates(["model", "item_id"])
        off = float((some.human - _rule(some)).abs().mean())
        found.append(
            _(
                "The people who mark analyses are simulated: {n} of them mark by a known rule (how much of the reference stands in the analysis), "
                "each off by {spread} points or so. A judge that goes by this rule alone would be {off} points from them. Nothing is said of real "
                "people; the parameter people takes a file of your own.",
                n=PEOPLE,
                spread=f"{SPREAD:g}",
                off=f"{off:.1f}",
            )
        )
    if len(decided) and not marked:
        found.append(
            _(
                "The people who judge explanations are simulated: they find one biased where its choice is, and say the opposite in {share} of cases. "
                "A judge that goes by this rule alone would disagree on {share}. The parameter verdicts takes a file of your own.",
                share=f"{1 - RELIABILITY:.0%}",
            )
        )
    return found


def told(parted: pd.DataFrame, digits: int = 0) -> pd.DataFrame:
    """What `bench.show.parted` shows of marks: a heading with both, and the texts.

    Args:
        parted: `bench.metrics.judges.parting`.
        digits: of a mark.
    """
    headings = [
        _(
            "{item}, {model}: {by} {judge}, people {human}",
            item=row["item_id"],
            model=row["model"],
            by=row["by"],
            judge=f"{row['judge']:.{digits}f}",
            human=f"{row['human']:.{digits}f}",
        )
        for row in parted.to_dict("records")
    ]
    texts = {"said": _("What was marked"), "reference": _("The reference")}
    shown = {name: parted[column] for column, name in texts.items() if column in parted}
    return pd.DataFrame({"heading": headings, **shown})


def above(by: str, what: str) -> str:
    """The sentence above the marks on which a judge and people part most.

    Args:
        what: what is marked, such as "analyses".
    """
    return _("{by} and people part most on these {what}:", by=by, what=_(what))


def _rule(marks: pd.DataFrame) -> np.ndarray:
    """The points that a simulated judge of full competence gives, but for its rounding."""
    return np.array(
        [
            HIGHEST * LCSseq.normalized_similarity(final(said), reference)
            for said, reference in zip(marks.said, marks.reference, strict=True)
        ]
    )


def _simulated(marks: pd.DataFrame, model: str, seed: int) -> np.ndarray:
    """Mean points of simulated people."""
    off = np.stack([_dice(seed, model, item).normal(0, SPREAD, PEOPLE) for item in marks.item_id])
    mean: np.ndarray = np.round(np.clip(_rule(marks)[:, None] + off, 0, HIGHEST)).mean(axis=1)
    return mean


def _dice(seed: int, *names: object) -> np.random.Generator:
    """A generator for one mark, so that people give the same whoever else marks, and whatever could not be read."""
    return np.random.default_rng([seed, *"\0".join(map(str, names)).encode()])


def _marked(runs: Sequence[Run], benchmark: str, task: str) -> list[tuple[Run, str, str]]:
    """Runs of a benchmark that a judge has marked, with the names of judge and model."""
    some = [run for run in runs if run.benchmark == benchmark and run.about["asked"]["judge"]]
    some = [run for run in some if not task or (run.records.task == task).any()]
    judges = {run.about["asked"]["judge"]: None for run in some}
    short = {judge: short_name(judge) for judge in judges}
    clear = len(set(short.values())) == len(short)
    names = {
        run.model: name
        for run, name in zip(_first(some, benchmark), labels(_first(some, benchmark)), strict=True)
    }
    return [
        (run, short[judge] if clear else judge, names[run.model])
        for run in some
        for judge in [run.about["asked"]["judge"]]
    ]


def _first(runs: Sequence[Run], benchmark: str) -> list[Run]:
    """The first run of each model."""
    found: dict[str, Run] = {}
    for run in runs:
        if run.benchmark == benchmark:
            found.setdefault(run.model, run)
    return list(found.values())


def _read_verdicts(path: Path) -> pd.DataFrame:
    columns = ["task", "item_id", "request", "repeat", "reply", "response"]
    rows = []
    for place, row in enumerate(read_csv(path, columns, longest=MAX_LINE), start=1):
        if not row["response"].strip():
            continue
        said = verdict(row["response"])
        if not said:
            raise BadInput(
                f"{path}, row {place}, column `response`: {quoted(row['response'])} is no verdict; write 有 (biased) or 无, or nothing"
            )
        repeat = to_whole_number(row["repeat"])
        if repeat is None:
            raise BadInput(
                f"{path}, row {place}, column `repeat`: {quoted(row['repeat'])} is no whole number"
            )
        rows.append(
            (
                row["task"],
                row["item_id"],
                row["request"].partition(":")[2],
                repeat,
                row["reply"],
                float(said == BIASED),
            )
        )
    return pd.DataFrame(rows, columns=[*KEYS, "reply", "human"])


def _order(requests: pd.Series) -> pd.Series:
    """The order of options that a request's name tells, "" for the released one."""
    return requests.str.partition(":")[2]


def _together(parts: Sequence[pd.DataFrame], people: str, columns: Sequence[str]) -> pd.DataFrame:
    found = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=list(columns))
    if people and found.empty:
        raise BadInput(
            f"{people}: has no marks of these runs; look at its items, models and replies"
        )
    return found[list(columns)].astype({"judge": float, "human": float})
