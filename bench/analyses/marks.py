"""Collect the grades that judges and people both gave. For example:

grades = load(judged(["reports/mine/runs/*/*"]), people="people.csv")
"""

import glob
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rapidfuzz.distance import LCSseq

from bench.analyses import opened
from bench.benchmarks.cbbq.requests import BIASED, LETTERS, verdict
from bench.benchmarks.mcbe import scores as mcbe
from bench.core.cells import read_cell, to_whole_number
from bench.core.errors import BadInput, NoRuns, quoted
from bench.data import OWN_SAMPLES
from bench.data.readers import as_path, read_table
from bench.metrics.agreement import read_human
from bench.metrics.frames import as_list
from bench.run import evaluate_all
from bench.run.human_marks import cell, read_analyses
from bench.run.results import Run, labels
from bench.scorers.names import short_name
from bench.tasks.replies import final

# The columns of a table of grades; `cluster` is the sampled unit.
COLUMNS = ["judge", "model", "category", "item_id", "cluster", "grade", "human"]
# The number of simulated people.
PEOPLE = 3
# The standard deviation of simulated people's points from the rule's.
SPREAD = 10.0
# The share of a simulated person's verdicts that follow the rule.
RELIABILITY = 0.9
KEYS = ["task", "item_id", "order", "repeat"]


def judged(
    runs: Sequence[str | Path],
    *,
    models: Sequence[str] = (),
    demo: Sequence[str] = (),
    judges: Mapping[str, Sequence[str]] | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[Run]:
    """Open runs with grades of judges, or run a demonstration.

    Args:
        runs, models, demo, options: see `bench.analyses.opened`.
        judges: by benchmark, the judges of the demonstration.
    """
    if runs:
        return opened(runs, benchmarks=["mcbe", "cbbq"], models=models)
    found: list[Run] = []
    for benchmark, names in (judges or {}).items():
        own = {"data": OWN_SAMPLES, **(options or {}).get(benchmark, {})}
        for judge in names:
            found += evaluate_all(benchmark, demo, **{**own, "judge": judge})
    return found


def load(
    runs: Sequence[Run], people: str | Sequence[str] = "", verdicts_file: str = ""
) -> pd.DataFrame:
    """Collect all grades that judges and people both gave.

    Args:
        people, verdicts_file: the files of `analyses` and `verdicts`.

    Returns:
        One row per grade: `kind` (`analyses`, in points of 100; `verdicts`, 1 for biased; or
        `severities`, 0 to 10, with the model itself as its judge), `judge`, `model`, `category`,
        `item_id`, `repeat`, `cluster` (the sampled unit), `grade`, `human`, and the texts `said`
        and `reference`.

    Raises:
        BadInput: a file is wrong, or has no grades of these runs.
        NoRuns: there is no such grade.
    """
    kinds = {
        "analyses": analyses(runs, people),
        "verdicts": verdicts(runs, verdicts_file),
        "severities": severities(runs),
    }
    tables = [table.assign(kind=kind) for kind, table in kinds.items() if len(table)]
    if not tables:
        raise NoRuns(
            f"none of {len(runs)} runs has marks of a judge that people gave too, or severities; "
            "ask with --judge, or McBE's task bs"
        )
    grades = pd.concat(tables)
    keys = ["kind", "judge", "model", "item_id"]
    return grades.assign(repeat=grades.groupby(keys).cumcount()).reset_index(drop=True)


def analyses(runs: Sequence[Run], people: str | Sequence[str] = "") -> pd.DataFrame:
    """Collect the points of McBE's bias analyses, averaged over repeats and people.

    Args:
        people: see `points`. If empty, we simulate people: each gives the share of the reference
            that is in the analysis, in its order and in points, plus normal noise.

    Returns:
        `COLUMNS`, and the texts `said` and `reference`.

    Raises:
        BadInput: the file is wrong, or has no marks of these runs.
    """
    parts = []
    for run, judge, name in _marked(runs, "mcbe", "ba"):
        # Under another judge the model may have written another analysis, so we read the marks of
        # each run.
        given = points(people, [run]).dropna(subset="human") if people else pd.DataFrame()
        records, items = run.records, run.items.set_index("item_id")
        grades = mcbe.analyses(records, run.items)
        if "second" in given:
            grades = grades[grades.repeat == 0]  # as sheets have it
        marks = grades.groupby("item_id", sort=False)["judge"].mean().reset_index(name="grade")
        answers = records[(records.task == "ba") & (records.request == "answer")]
        first = answers.drop_duplicates("item_id").set_index("item_id").response
        marks["said"] = marks.item_id.map(first)
        marks["reference"] = marks.item_id.map(items.explanation)
        if people:
            own = given[given.model.isin([run.model, run.label])]
            marks["human"] = marks.item_id.map(own.groupby("item_id").human.mean())
        else:
            pairs = zip(marks.said, marks.reference, strict=True)
            rule = [100 * LCSseq.normalized_similarity(final(a), b) for a, b in pairs]
            noise = [_rng(name, item).normal(0, SPREAD, PEOPLE) for item in marks.item_id]
            each = np.round(np.clip(np.array(rule)[:, None] + np.stack(noise), 0, 100))
            marks["human"] = each.mean(axis=1)
        parts.append(_described(marks.dropna(subset="human"), items, judge, name))
    files = ", ".join(as_list(people or None))
    return _joined(parts, files, [*COLUMNS, "said", "reference"])


def points(people: str | Sequence[str], runs: Sequence[Run]) -> pd.DataFrame:
    """Read people's points for bias analyses: `item_id`, `model`, `human`, `person` (the file).

    Args:
        people: a sheet of `bench mark`, a pattern of sheets, one per person, or a list of these.
            This gives a column `second` too (whether it is a row's second mark), and NaN for a row
            without a mark. Or CSV files for `bench.metrics.agreement.read_human`, with the models'
            names in `bench run` or in tables.

    Raises:
        BadInput: a file is wrong.
        NoRuns: there is no file yet.
    """
    files: list[str] = []
    for place in map(as_path, as_list(people)):
        matches = [str(place)] if place.is_file() else sorted(glob.glob(str(place)))
        if not matches:
            raise NoRuns(
                f"{'/'.join(place.parts[-2:])}: no such sheet; run this first, and let people "
                "fill it in: bench mark RUN_DIR RUN_DIR --out FILE.csv"
            )
        files += matches
    analysed = [run for run in runs if run.benchmark == "mcbe"]
    parts = []
    for path in map(Path, dict.fromkeys(files)):
        first: dict[str, str] = next(iter(read_table(path, ["human"], replies=True)), {})
        table = read_analyses(analysed, path) if "key" in first else read_human(path)
        parts.append(table.assign(person=path.name))
    return pd.concat(parts, ignore_index=True)


def severities(runs: Sequence[Run]) -> pd.DataFrame:
    """Collect severities of McBE's bias scoring: of each model, as `judge`, and of people.

    A model with several runs, for example under two judges, counts once. We average repeats.
    """
    scored: dict[str, Run] = {}
    for run in runs:
        if run.benchmark == "mcbe" and _has(run, "bs"):
            scored.setdefault(run.model, run)
    parts = []
    for run, name in zip(scored.values(), labels(list(scored.values())), strict=True):
        each = mcbe.severities(run.records, run.items).groupby("item_id", sort=False)
        marks = each.mean().reset_index().rename(columns={"model": "grade", "people": "human"})
        parts.append(_described(marks, run.items.set_index("item_id"), name, name))
    return _joined(parts, "", COLUMNS)


def verdicts(runs: Sequence[Run], people: str | Sequence[str] = "") -> pd.DataFrame:
    """Collect verdicts on CBBQ's explanations, 1 for biased.

    Args:
        people: tables of `bench mark` with the column `response` filled in; we ignore rows with
            other replies than the run's. If empty, we simulate people: their verdict follows the
            choice, except once in ten times.

    Returns:
        `COLUMNS`, and the text `said`.

    Raises:
        BadInput: the file is wrong, or has no marks of these runs.
    """
    files = as_list(people or None)
    given = pd.concat([read_verdicts(as_path(path)) for path in files]) if files else None
    parts = []
    for run, judge, name in _marked(runs, "cbbq"):
        items = run.items.set_index("item_id")
        # The request names the order of options; "" is the released one.
        records = run.records.assign(order=run.records.request.str.partition(":")[2])
        explained = records[records.request.str.startswith("explanation")]
        marks = records[records.request.str.startswith("judge") & (records.error == "")]
        marks = marks.assign(verdict=[verdict(reply) for reply in marks.response])
        marks = marks.loc[marks.verdict != "", [*KEYS, "verdict"]]
        marks = marks.merge(explained[[*KEYS, "response", "parsed"]], on=KEYS)
        marks = marks.assign(said=marks.response, grade=(marks.verdict == BIASED).astype(float))
        if given is None:
            item = items.loc[marks.item_id]
            target = item.target.where(item.polarity == "neg", 1 - item.target)
            rule = marks.parsed.to_numpy() == np.array([LETTERS[k] for k in target])
            keys = zip(*(marks[key] for key in KEYS), strict=True)
            slips = np.array([_rng(name, *key).random() for key in keys]) >= RELIABILITY
            marks["human"] = (rule ^ slips).astype(float)
        else:
            marks["reply"] = marks.said.map(cell)
            marks = marks.merge(given, on=[*KEYS, "reply"])
        scenes = marks.item_id.map(items.cluster)
        parts.append(_described(marks, items, judge, name).assign(cluster=scenes))
    return _joined(parts, ", ".join(files), [*COLUMNS, "said"])


def read_verdicts(path: Path) -> pd.DataFrame:
    """Read people's verdicts: `KEYS`, `reply` and `human`.

    Raises:
        BadInput: a row has no verdict that can be read, or no repeat.
    """
    columns = ["task", "item_id", "request", "repeat", "reply", "response"]
    rows = []
    for row in read_table(path, columns, replies=True):
        if not read_cell(row["response"]):
            continue
        place, said = f"{path}, row {row.number}, column", quoted(row["response"])
        given, repeat = verdict(row["response"]), to_whole_number(read_cell(row["repeat"]))
        if not given:
            allowed = "write 有 (biased) or 无, or nothing"
            raise BadInput(f"{place} `response`: {said} is no verdict; {allowed}")
        if repeat is None:
            raise BadInput(f"{place} `repeat`: {quoted(row['repeat'])} is no whole number")
        task, item, request = (read_cell(row[name]) for name in ("task", "item_id", "request"))
        key = (task, item, request.partition(":")[2], repeat)
        rows.append((*key, row["reply"], float(given == BIASED)))
    return pd.DataFrame(rows, columns=[*KEYS, "reply", "human"])


def _rng(*names: object) -> np.random.Generator:
    """Make a random generator for one mark. This does not depend on the other marks."""
    return np.random.default_rng([0, *"\0".join(map(str, names)).encode()])


def _has(run: Run, task: str) -> bool:
    return bool((run.records.task == task).any())


def _marked(runs: Sequence[Run], benchmark: str, task: str = "") -> list[tuple[Run, str, str]]:
    """List the runs of a benchmark that a judge has marked, with the names of judge and model."""
    marked = [run for run in runs if run.benchmark == benchmark and run.judge]
    marked = [run for run in marked if not task or _has(run, task)]
    short = {run.judge: short_name(run.judge).rstrip(":") for run in marked}
    judges = short if len(set(short.values())) == len(short) else {name: name for name in short}
    return [
        (run, judges[run.judge], name) for run, name in zip(marked, labels(marked), strict=True)
    ]


def _described(marks: pd.DataFrame, items: pd.DataFrame, judge: str, model: str) -> pd.DataFrame:
    """Add to marks their judge and model, and the categories of the items."""
    category = marks.item_id.map(items.category)
    return marks.assign(judge=judge, model=model, category=category, cluster=marks.item_id)


def _joined(parts: Sequence[pd.DataFrame], people: str, columns: Sequence[str]) -> pd.DataFrame:
    marks = pd.concat([pd.DataFrame(columns=list(columns)), *parts], ignore_index=True)
    if people and marks.empty:
        raise BadInput(
            f"{people}: has no marks of these runs; look at its items, models and replies"
        )
    return marks[list(columns)].astype({"grade": float, "human": float})
