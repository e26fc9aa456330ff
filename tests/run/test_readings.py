"""Readings checked by hand: a sheet of replies, a person, and the parser's precision."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
import scipy.stats

from bench import run
from bench.core.cells import to_number
from bench.core.i18n import use_language
from bench.metrics.headline import sentence
from bench.metrics.mcbe import HEADLINES
from bench.metrics.readings import precision
from bench.report import execute
from bench.run import readings
from bench.tasks import mcbe
from tests.helpers.recorded import cell, command

Rows = list[dict[str, str]]
# The column that is filled in, and that of the replies.
FILLED, REPLY = "what did you read?", "reply"
SHEET = Path("sheet.csv")


@pytest.fixture
def mark(own_folder: Path, monkeypatch, capsys) -> Callable[..., tuple[int, str, str]]:
    return lambda *given: command(monkeypatch, capsys, "mark", "--readings", *given)


def asked(out: str = "out", **options) -> run.Run:
    given = {"tasks": ["sc", "ss", "bs"], "categories": ["age", "race"], **options}
    return run.evaluate("mcbe", "simulated:refuse=0.2,competence=0.5", out=out, **given)


def rows_of(path: Path | str) -> Rows:
    with Path(path).open(encoding="utf-8-sig", newline="") as stream:
        return list(csv.DictReader(stream))


def save(rows: Rows) -> None:
    with SHEET.open("w", encoding="utf-8-sig", newline="") as stream:
        writer = csv.DictWriter(stream, readings.COLUMNS)
        writer.writeheader()
        writer.writerows(rows)


def read_by_person(row: dict[str, str]) -> str:
    """What a person reads in a simulated respondent's reply, which is an answer and nothing else."""
    reply = row[REPLY]
    if "number" in row["allowed"]:
        return reply if to_number(reply) == to_number(reply) else "none"
    return reply if reply in row["allowed"].split(", ") else "none"


def filled(done: run.Run, n: int = 100) -> Rows:
    """Write a sheet of which a person has filled in `n` rows, and return these."""
    readings.write_sheet(done, SHEET)
    rows = rows_of(SHEET)
    rows = [{**row, FILLED: read_by_person(row) if k < n else ""} for k, row in enumerate(rows)]
    save(rows)
    return rows


def clopper_pearson(right: int, n: int) -> tuple[float, float]:
    low = scipy.stats.beta.ppf(0.025, right, n - right + 1) if right else 0.0
    high = scipy.stats.beta.ppf(0.975, right + 1, n - right) if right < n else 1.0
    return low, high


def test_counts_and_intervals_by_hand() -> None:
    pairs = [("A", "A"), ("A", "A"), ("B", "A"), ("B", ""), ("", "C"), ("", "")]
    frame = pd.DataFrame(pairs, columns=["reader", "person"]).assign(task="ss")
    frame = pd.concat([frame, pd.DataFrame({"reader": [""], "person": ["7"], "task": ["bs"]})])
    table = precision(frame).set_index("task")
    counts = ["replies", "read", "right", "misread", "read_though_none", "unread", "precision"]
    assert table.loc["ss", counts].tolist() == [6, 4, 2, 1, 1, 1, 2 / 4]
    interval = table.loc["ss", ["ci_low", "ci_high"]].tolist()
    assert interval == pytest.approx(clopper_pearson(2, 4))
    assert table.precision.isna().tolist() == [False, False, True]
    assert table.loc["all", "unread"] == 2


@pytest.mark.parametrize("wrong", [0, 10])
def test_a_sheet_gives_the_precision_that_the_person_left(mark, wrong: int) -> None:
    done = asked()
    status, printed, _ = mark("out", "sheet.csv")
    assert (status, printed.startswith("sheet.csv: 100 replies")) == (0, True)
    rows = rows_of(SHEET)
    assert {row[FILLED] for row in rows} == {""}
    assert not {"parsed", "valid"} & set(rows[0]), "the sheet is blind"
    # Of 16 instances; the third task gets what the two others have not.
    counts = pd.Series([row["task"] for row in rows]).value_counts()
    assert counts.to_dict() == {"sc": 16, "bs": 16, "ss": 68}
    rows = [{**row, FILLED: read_by_person(row)} for row in rows]
    read = [row for row in rows if row[FILLED] != "none"]
    n, right = len(read), len(read) - wrong
    assert n < 100, "some replies are refusals"
    for row in read[:wrong]:
        row[FILLED] = "none"
    save(rows)
    status, printed, _ = mark("out", "sheet.csv")
    assert status == 0
    assert "100 of 100 replies are filled in" in printed
    low, high = clopper_pearson(right, n)
    text = f"{right} of {n} right, 95 % interval {100 * low:.0f} to {100 * high:.0f} "
    text += f"(0 misread, {wrong} read though none, 0 unread)"
    assert f"all: readings checked by hand: {text}" in printed
    scores = done.scores()
    assert text in cell(scores, "score", "robust", category="all", task="all").note
    assert text not in " ".join(scores.note[scores.preset == "official"])
    kept = json.loads(Path("out/readings.json").read_text("utf-8"))
    assert (kept["sheet"], kept["rows"], len(kept["readings"])) == ("sheet.csv", 100, 100)
    row = cell(scores, "score", "robust", category="all", task="sc").to_dict()
    headline = next(h for h in HEADLINES if h.task == "sc")
    assert "readings checked by hand" in sentence(headline, {**row, "model": "m"})
    with use_language("zh"):
        assert "人工核对读取结果" in sentence(headline, {**row, "model": "m"})


def test_the_parser_is_asked_again_whenever_the_run_is_looked_at(own_folder, monkeypatch) -> None:
    done = asked()
    before = execute._of_run(done.folder)
    rows = filled(done)
    assert execute._of_run(done.folder) == before
    assert readings.read_sheet(done, SHEET).precision.precision[0] == 1
    assert execute._of_run(done.folder) != before, "its pages are made again"
    parse = mcbe.parse
    monkeypatch.setattr(
        mcbe, "parse", lambda task, *rest: "A" if task == "ss" else parse(task, *rest)
    )
    row = precision(done.readings).set_index("task").loc["ss"]
    answers = pd.Series([row[FILLED] for row in rows if row["task"] == "ss"])
    assert row.right == (answers == "A").sum()
    assert row.misread == (answers == "B").sum()
    assert row.read_though_none == (answers == "none").sum() > 0


def test_letters_are_those_that_the_prompt_shows(own_folder: Path) -> None:
    given = {"settings": {"option_order": "rotated", "explanation": "yes"}, "out": "out"}
    given |= {"categories": ["age"], "limit": 6, "judge": "simulated:competence=1"}
    done = run.evaluate("cbbq", "simulated:bias=0.5", **given)
    readings.write_sheet(done, SHEET)
    rows = rows_of(SHEET)
    assert {row["allowed"] for row in rows} == {"A, B, C, none", "biased, unbiased, none"}
    for row in rows:
        # An explanation begins with the letter; 有 is biased.
        row[FILLED] = {"有": "biased", "无": "Unbiased"}.get(row[REPLY], row[REPLY][0].lower())
    save(rows)
    row = readings.read_sheet(done, SHEET).precision.iloc[0]
    assert row["read"] == row.right == len(rows) == 72


def test_a_sheet_is_the_same_each_time_and_may_be_filled_in_part_by_part(mark) -> None:
    done = asked()
    filled(done, 0)
    readings.write_sheet(done, Path("again.csv"))
    assert rows_of(SHEET) == rows_of("again.csv")
    SHEET.unlink()
    filled(done, 30)
    status, printed, _ = mark("out", "sheet.csv")
    assert (status, "30 of 100 replies are filled in" in printed) == (0, True)
    assert precision(done.readings).replies[0] == 30


def changed(row: int, column: str, value: str) -> Callable[[Rows], Rows]:
    return lambda rows: [
        {**row_, column: value} if k == row else row_ for k, row_ in enumerate(rows)
    ]


WRONG_SHEETS = [
    (
        changed(0, FILLED, "Z"),
        f"sheet.csv, row 1, column `{FILLED}`: 'Z' is not allowed; allowed: ",
    ),
    (
        changed(99, FILLED, "11"),
        f"row 100, column `{FILLED}`: '11' is not allowed; allowed: a number from 0 to 10, or none",
    ),
    (changed(4, REPLY, "B, yes"), "row 5, column `reply`: 'B, yes' is not what out recorded for "),
    (changed(4, "item_id", "age:99"), "sheet.csv, row 5, column `reply`: "),
    (lambda rows: rows[:6] + rows[8:], "sheet.csv: has 98 of 100 rows, row 7 of 100 is missing"),
    (lambda rows: [*rows[:-1], rows[0]], "row 100, column `row`: '1 of 100' stands there twice"),
    (changed(2, "row", "third"), "row 3, column `row`: 'third' is not a row's number"),
    (lambda rows: [], "sheet.csv: has 0 of 100 rows"),
    (
        lambda rows: [{**row, FILLED: ""} for row in rows],
        f"no row of column `{FILLED}` is filled in",
    ),
]


@pytest.mark.parametrize(("change", "message"), WRONG_SHEETS)
def test_a_wrong_sheet_is_one_sentence_with_the_next_command(mark, change, message) -> None:
    save(change(filled(asked())))
    status, printed, err = mark("out", "sheet.csv")
    assert (status, printed, err.count("\n")) == (2, "", 1)
    assert message in err
    assert "bench mark --readings out " in err
    assert not Path("out/readings.json").exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["out"], "needs a run and a sheet, like `bench mark --readings RUN_DIR SHEET.csv`"),
        (["out", "a.csv", "--out", "b.csv"], "needs a run and a sheet"),
        (["letters", "a.csv"], "letters: holds no reply whose words were read"),
        (["out", "no/such/a.csv"], "there is no folder no/such"),
    ],
)
def test_a_wrong_call_is_one_sentence(mark, given: list[str], message: str) -> None:
    options = {"tasks": ["ss"], "categories": ["age"], "limit": 1}
    asked(**options)
    asked("letters", read="letters", **options)
    status, _, err = mark(*given)
    assert (status, err.count("\n")) == (2, 1)
    assert message in err


@pytest.mark.parametrize("content", ['{"readings": [1]}', "[]", "", '{"readings": [{"task": 1}]}'])
def test_a_file_of_readings_that_is_none_is_refused(own_folder, refusal, content: str) -> None:
    done = asked()
    Path("out/readings.json").write_text(content, "utf-8")
    assert refusal(done.scores).startswith("out/readings.json: was not written by `bench mark")
