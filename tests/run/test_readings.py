"""Readings checked by hand: a sheet of replies, a person who fills it in, and the reader's precision."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import scipy.stats

from bench import run
from bench.core.cells import to_number
from bench.core.errors import BadInput
from bench.core.i18n import use_language
from bench.metrics.headline import sentence
from bench.metrics.mcbe import HEADLINES
from bench.metrics.readings import precision
from bench.report import execute
from bench.run import readings
from bench.tasks import mcbe
from tests.helpers.recorded import cell, command

Bench = Callable[..., tuple[int, str, str]]
# The column that is filled in, and that of the replies.
FILLED, REPLY = "what did you read?", "reply"


@pytest.fixture
def bench(
    own_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Bench:
    return lambda *given: command(monkeypatch, capsys, *given)


def asked(out: str = "out", model: str = "simulated:refuse=0.2,competence=0.5") -> run.Run:
    return run.evaluate(
        "mcbe", model, tasks=["sc", "ss", "bs"], categories=["age", "race"], out=out
    )


def rows_of(path: str) -> list[dict[str, str]]:
    with Path(path).open(encoding="utf-8-sig", newline="") as stream:
        return list(csv.DictReader(stream))


def save(path: str, rows: list[dict[str, str]]) -> None:
    with Path(path).open("w", encoding="utf-8-sig", newline="") as stream:
        writer = csv.DictWriter(stream, readings.COLUMNS)
        writer.writeheader()
        writer.writerows(rows)


def read_by_person(row: dict[str, str]) -> str:
    """What a person reads in the reply of a simulated respondent, which is an answer and nothing else."""
    reply = row[REPLY]
    if "number" in row["allowed"]:
        return reply if to_number(reply) == to_number(reply) else "none"
    return reply if reply in row["allowed"].split(", ") else "none"


def clopper_pearson(right: int, n: int) -> tuple[float, float]:
    low = scipy.stats.beta.ppf(0.025, right, n - right + 1) if right else 0.0
    high = scipy.stats.beta.ppf(0.975, right + 1, n - right) if right < n else 1.0
    return low, high


def test_counts_and_intervals_by_hand() -> None:
    pairs = [("A", "A"), ("A", "A"), ("B", "A"), ("B", ""), ("", "C"), ("", "")]
    frame = pd.DataFrame(pairs, columns=["reader", "person"]).assign(task="ss")
    frame = pd.concat([frame, pd.DataFrame({"reader": [""], "person": ["7"], "task": ["bs"]})])
    found = precision(frame).set_index("task")
    one = found.loc["ss"]
    assert [one.replies, one["read"], one.right, one.misread, one.read_though_none, one.unread] == [
        6,
        4,
        2,
        1,
        1,
        1,
    ]
    assert one.precision == 2 / 4
    assert (one.ci_low, one.ci_high) == pytest.approx(clopper_pearson(2, 4))
    assert found.precision.isna().tolist() == [False, False, True]
    assert found.loc["all", "unread"] == 2


@pytest.mark.parametrize("wrong", [0, 10])
def test_a_sheet_gives_the_precision_that_the_person_left(bench: Bench, wrong: int) -> None:
    done = asked()
    status, printed, _ = bench("mark", "--readings", "out", "sheet.csv")
    assert (status, printed.startswith("sheet.csv: 100 replies")) == (0, True)
    rows = rows_of("sheet.csv")
    assert {row[FILLED] for row in rows} == {""}
    assert not {"parsed", "valid"} & set(rows[0]), "the sheet is blind"
    tasks = pd.Series([row["task"] for row in rows])
    counts = tasks.value_counts().to_dict()
    # Of 16 instances; the third task gets what the two others have not.
    assert counts == {"sc": 16, "bs": 16, "ss": 68}
    for row in rows:
        row[FILLED] = read_by_person(row)
    read = [row for row in rows if row[FILLED] != "none"]
    for row in read[:wrong]:
        row[FILLED] = "none"
    save("sheet.csv", rows)
    status, printed, _ = bench("mark", "--readings", "out", "sheet.csv")
    assert status == 0
    assert "100 of 100 replies are filled in" in printed
    n, right = len(read), len(read) - wrong
    assert n < 100, "some replies are refusals"
    low, high = clopper_pearson(right, n)
    told = f"{right} of {n} right, 95 % interval {100 * low:.0f} to {100 * high:.0f} "
    told += f"(0 misread, {wrong} read though none, 0 unread)"
    assert f"all: readings checked by hand: {told}" in printed
    scores = done.scores()
    row = cell(scores, "score", "robust", category="all", task="all")
    assert told in row.note
    assert told not in " ".join(scores.note[scores.preset == "official"]), "it reads in another way"
    kept = json.loads(Path("out/readings.json").read_text("utf-8"))
    assert (kept["sheet"], kept["rows"], len(kept["readings"])) == ("sheet.csv", 100, 100)


def test_a_finding_says_it_in_both_languages(own_folder: Path) -> None:
    done = asked()
    readings.write_sheet(done, Path("sheet.csv"))
    save("sheet.csv", [{**row, FILLED: read_by_person(row)} for row in rows_of("sheet.csv")])
    readings.read_sheet(done, Path("sheet.csv"))
    row = cell(done.scores(), "score", "robust", category="all", task="sc").to_dict()
    headline = next(h for h in HEADLINES if h.task == "sc")
    assert "readings checked by hand" in sentence(headline, {**row, "model": "m"})
    with use_language("zh"):
        assert "人工核对读取结果" in (said := sentence(headline, {**row, "model": "m"}))
        assert " to " not in said


def test_the_reader_is_asked_again_whenever_the_run_is_looked_at(
    own_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = asked()
    readings.write_sheet(done, Path("sheet.csv"))
    save("sheet.csv", [{**row, FILLED: read_by_person(row)} for row in rows_of("sheet.csv")])
    assert readings.read_sheet(done, Path("sheet.csv")).precision.precision[0] == 1
    whole = mcbe.parse
    monkeypatch.setattr(
        mcbe, "parse", lambda task, *rest: "A" if task == "ss" else whole(task, *rest)
    )
    told = precision(done.readings).set_index("task")
    answers = pd.Series([row[FILLED] for row in rows_of("sheet.csv") if row["task"] == "ss"])
    assert told.right["ss"] == (answers == "A").sum()
    assert told.misread["ss"] == (answers == "B").sum()
    assert told.read_though_none["ss"] == (answers == "none").sum() > 0


def test_letters_are_those_that_the_prompt_shows(own_folder: Path) -> None:
    done = run.evaluate(
        "cbbq",
        "simulated:bias=0.5",
        categories=["age"],
        limit=6,
        out="out",
        settings={"option_order": "rotated", "explanation": "yes"},
        judge="simulated:competence=1",
    )
    readings.write_sheet(done, Path("sheet.csv"))
    rows = rows_of("sheet.csv")
    assert {row["allowed"] for row in rows} == {"A, B, C, none", "biased, unbiased, none"}
    for row in rows:
        # An explanation begins with the letter; 有 is biased.
        row[FILLED] = {"有": "biased", "无": "Unbiased"}.get(row[REPLY], row[REPLY][0].lower())
    save("sheet.csv", rows)
    found = readings.read_sheet(done, Path("sheet.csv")).precision
    assert found["read"][0] == found.right[0] == len(rows) == 72


def test_a_sheet_may_be_filled_in_part_by_part(bench: Bench) -> None:
    done = asked()
    readings.write_sheet(done, Path("sheet.csv"))
    readings.write_sheet(done, Path("again.csv"))
    assert rows_of("sheet.csv") == rows_of("again.csv")
    status, _, err = bench("mark", "--readings", "out", "sheet.csv")
    assert status == 2
    assert "no row of column `what did you read?` is filled in" in err
    rows = rows_of("sheet.csv")
    save(
        "sheet.csv",
        [{**row, FILLED: read_by_person(row) if k < 30 else ""} for k, row in enumerate(rows)],
    )
    status, printed, _ = bench("mark", "--readings", "out", "sheet.csv")
    assert (status, "30 of 100 replies are filled in" in printed) == (0, True)
    assert precision(done.readings).replies[0] == 30


def test_pages_of_a_run_are_made_again_when_its_readings_change(own_folder: Path) -> None:
    done = asked()
    before = execute._of_run(done.folder)
    readings.write_sheet(done, Path("sheet.csv"))
    assert execute._of_run(done.folder) == before
    save("sheet.csv", [{**row, FILLED: "none"} for row in rows_of("sheet.csv")])
    readings.read_sheet(done, Path("sheet.csv"))
    assert execute._of_run(done.folder) != before


def changed(
    row: int, column: str, value: str
) -> Callable[[list[dict[str, str]]], list[dict[str, str]]]:
    return lambda rows: [{**one, column: value} if k == row else one for k, one in enumerate(rows)]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            changed(0, FILLED, "Z"),
            "sheet.csv, row 1, column `what did you read?`: 'Z' is not allowed; allowed: ",
        ),
        (
            changed(99, FILLED, "11"),
            "row 100, column `what did you read?`: '11' is not allowed; allowed: a number from 0 to 10, or none",
        ),
        (
            changed(4, REPLY, "B, I think"),
            "sheet.csv, row 5, column `reply`: 'B, I think' is not what out recorded for ",
        ),
        (changed(4, "item_id", "age:99"), "sheet.csv, row 5, column `reply`: "),
        (
            lambda rows: rows[:6] + rows[8:],
            "sheet.csv: has 98 of 100 rows, row 7 of 100 is missing",
        ),
        (
            lambda rows: [*rows[:-1], rows[0]],
            "sheet.csv, row 100, column `row`: '1 of 100' stands there twice",
        ),
        (
            changed(2, "row", "third"),
            "sheet.csv, row 3, column `row`: 'third' is not a row's number",
        ),
        (lambda rows: [], "sheet.csv: has 0 of 100 rows"),
    ],
)
def test_a_wrong_sheet_is_one_sentence_with_the_next_command(
    bench: Bench, change: Callable[[list[dict[str, str]]], list[dict[str, str]]], said: str
) -> None:
    done = asked()
    readings.write_sheet(done, Path("sheet.csv"))
    save(
        "sheet.csv", change([{**row, FILLED: read_by_person(row)} for row in rows_of("sheet.csv")])
    )
    status, printed, err = bench("mark", "--readings", "out", "sheet.csv")
    assert (status, printed, err.count("\n")) == (2, "", 1)
    assert said in err
    assert "bench mark --readings out " in err
    assert not Path("out/readings.json").exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            ("--readings", "out"),
            "needs a run and a sheet, like `bench mark --readings RUN_DIR SHEET.csv`",
        ),
        (("--readings", "out", "a.csv", "--out", "b.csv"), "needs a run and a sheet"),
        (("--readings", "letters", "a.csv"), "letters: holds no reply whose words were read"),
        (("--readings", "out", "no/such/a.csv"), "there is no folder no/such"),
    ],
)
def test_a_wrong_call_is_one_sentence(bench: Bench, given: tuple[Any, ...], said: str) -> None:
    run.evaluate("mcbe", "simulated:", tasks=["ss"], categories=["age"], limit=1, out="out")
    run.evaluate(
        "mcbe",
        "simulated:",
        tasks=["ss"],
        categories=["age"],
        limit=1,
        read="letters",
        out="letters",
    )
    status, _, err = bench("mark", *given)
    assert (status, err.count("\n")) == (2, 1)
    assert said in err


@pytest.mark.parametrize(
    "content", ['{"readings": [1]}', "[]", "", '{"readings": [{"task": "ss"}]}']
)
def test_a_file_of_readings_that_is_none_is_refused(own_folder: Path, content: str) -> None:
    done = asked()
    Path("out/readings.json").write_text(content, "utf-8")
    with pytest.raises(
        BadInput, match=r"out/readings\.json: was not written by `bench mark --readings`"
    ):
        done.scores()
