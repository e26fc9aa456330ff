"""Readings checked by hand: a sheet of replies, a person, and the parser's precision."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from scipy.stats import beta

from bench import run
from bench.metrics.readings import precision
from bench.report import execute
from bench.run import readings
from bench.tasks import mcbe
from tests.helpers.recorded import cell, command

pytestmark = pytest.mark.usefixtures("own_folder")

# The column that is filled in.
FILLED = "what did you read?"
SHEET = Path("sheet.csv")


@pytest.fixture
def mark(monkeypatch, capsys) -> Callable[..., tuple[int, str, str]]:
    return lambda *given: command(monkeypatch, capsys, "mark", "--readings", *given)


def asked(out: str = "out", **options) -> run.Run:
    given = {"tasks": ["sc", "ss", "bs"], "categories": ["age", "race"], **options}
    return run.evaluate("mcbe", "simulated:refuse=0.2,competence=0.5", out=out, **given)


def sheet() -> pd.DataFrame:
    return pd.read_csv(SHEET, dtype=str, keep_default_na=False)


def filled(done: run.Run, n: int = 100) -> pd.DataFrame:
    """Write a sheet of which a person fills in `n` rows, and return its rows.

    A simulated respondent's reply is an answer and nothing else, or an excuse.
    """
    readings.write_sheet(done, SHEET)
    rows = sheet()
    answers = rows.reply.mask(rows.reply.str.startswith("抱歉"), "none")
    rows[FILLED] = answers.where(rows.index < n, "")
    rows.to_csv(SHEET, index=False)
    return rows


def test_counts_and_intervals_by_hand() -> None:
    pairs = [("A", "A"), ("A", "A"), ("B", "A"), ("B", ""), ("", "C"), ("", "")]
    frame = pd.DataFrame(pairs, columns=["reader", "person"]).assign(task="ss")
    frame = pd.concat([frame, pd.DataFrame({"reader": [""], "person": ["7"], "task": ["bs"]})])
    table = precision(frame).set_index("task")
    counts = ["replies", "read", "right", "misread", "read_though_none", "unread", "precision"]
    assert table.loc["ss", counts].tolist() == [6, 4, 2, 1, 1, 1, 2 / 4]
    interval = table.loc["ss", ["ci_low", "ci_high"]].tolist()
    assert interval == pytest.approx([beta.ppf(0.025, 2, 3), beta.ppf(0.975, 3, 2)])
    assert table.precision.isna().tolist() == [False, False, True]
    assert table.loc["all", "unread"] == 2


@pytest.mark.parametrize("wrong", [0, 10])
def test_a_sheet_gives_the_precision_that_the_person_left(mark, wrong: int) -> None:
    done = asked()
    status, printed, _ = mark("out", "sheet.csv")
    assert (status, printed.startswith("sheet.csv: 100 replies")) == (0, True)
    blind = sheet()
    assert set(blind[FILLED]) == {""}
    assert not {"parsed", "valid"} & set(blind)
    # Of 16 instances; the third task gets what the two others have not.
    assert blind.task.value_counts().to_dict() == {"sc": 16, "bs": 16, "ss": 68}
    SHEET.unlink()
    rows = filled(done)
    assert rows.drop(columns=FILLED).equals(blind.drop(columns=FILLED)), "the same each time"
    read = rows.index[rows[FILLED] != "none"]
    n, right = len(read), len(read) - wrong
    assert n < 100, "some replies are refusals"
    rows.loc[read[:wrong], FILLED] = "none"
    rows.to_csv(SHEET, index=False)
    status, printed, _ = mark("out", "sheet.csv")
    assert (status, "100 of 100 replies are filled in" in printed) == (0, True)
    low = beta.ppf(0.025, right, n - right + 1)  # by Clopper and Pearson
    high = beta.ppf(0.975, right + 1, n - right) if wrong else 1
    text = f"{right} of {n} right, 95 % interval {100 * low:.0f} to {100 * high:.0f} "
    text += f"(0 misread, {wrong} read though none, 0 unread)"
    assert f"all: readings checked by hand: {text}" in printed
    scores = done.scores()
    assert text in cell(scores, "score", "robust", category="all", task="all").note
    assert text not in " ".join(done.scores("official").note)
    kept = json.loads(Path("out/readings.json").read_text("utf-8"))
    assert (kept["sheet"], kept["rows"], len(kept["readings"])) == ("sheet.csv", 100, 100)


def test_the_parser_is_asked_again_whenever_the_run_is_looked_at(monkeypatch) -> None:
    done = asked()
    rows, before = filled(done, 80), execute._of_run(done.folder)
    table = readings.read_sheet(done, SHEET).precision
    assert (table.precision[0], table.replies[0]) == (1, 80), "in part"
    assert execute._of_run(done.folder) != before, "its pages are made again"
    parse = mcbe.parse
    monkeypatch.setattr(
        mcbe, "parse", lambda task, *rest: "A" if task == "ss" else parse(task, *rest)
    )
    row = precision(done.readings).set_index("task").loc["ss"]
    answers = rows[FILLED][:80][rows.task == "ss"]
    assert row.right == (answers == "A").sum()
    assert row.misread == (answers == "B").sum()
    assert row.read_though_none == (answers == "none").sum() > 0


@pytest.mark.parametrize(
    ("places", "column", "value", "message"),
    [
        (0, FILLED, "Z", f"sheet.csv, row 1, column `{FILLED}`: 'Z' is not allowed"),
        (99, FILLED, "11", "'11' is not allowed; allowed: a number from 0 to 10, or none"),
        (4, "reply", "B, yes", "row 5, column `reply`: 'B, yes' is not what out recorded"),
        (4, "item_id", "age:99", "sheet.csv, row 5, column `reply`: "),
        (99, "row", "1 of 100", "row 100, column `row`: '1 of 100' stands there twice"),
        (slice(None), FILLED, "", "is filled in"),
        (99, None, None, "has 99 of 100 rows, row 100 of 100 is missing"),
    ],
)
def test_a_wrong_sheet_is_one_sentence_with_the_next_command(
    mark, places: Any, column: str | None, value: str, message: str
) -> None:
    rows = filled(asked())
    if column:
        rows.loc[places, column] = value
    else:
        rows = rows.drop(places)
    rows.to_csv(SHEET, index=False)
    status, printed, err = mark("out", "sheet.csv")
    assert (status, printed, err.count("\n")) == (2, "", 1)
    assert message in err
    assert "bench mark --readings out " in err
    assert not Path("out/readings.json").exists()
