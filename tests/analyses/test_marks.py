"""The grades that judges and people both gave: of runs, and of files and sheets of people."""

from pathlib import Path

import pandas as pd
import pytest

from bench.analyses import marks as marks_of
from bench.run import evaluate
from bench.run.human_marks import write_sheet
from tests.helpers.recorded import command

ONE, OTHER = "simulated:bias=0.3", "simulated:bias=0.8"
GOOD, CONSTANT = "simulated:competence=1,seed=5", "simulated:answer=5"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Runs under a good judge, with two repeats, and under one that gives the same mark to all."""
    options, folder = {"tasks": ["ba", "bs"], "categories": ["gender", "age"]}, tmp_path_factory
    return [
        evaluate("mcbe", model, judge=judge, repeats=n, out=folder.mktemp("run"), **options)
        for model, judge, n in ((ONE, GOOD, 1), (OTHER, GOOD, 2), (ONE, CONSTANT, 1))
    ]


def test_grades_of_runs_are_those_of_simulated_people_or_a_file(runs, tmp_path, refusal):
    found = marks_of.analyses([runs[0], runs[2]])
    distance = (found.grade - found.human).abs().groupby(found.judge).mean()
    # The mean of three people, each off by 10 points, is off by 10 / sqrt(3), its distance
    # sqrt(2 / pi) of that; less where the scale ends.
    assert 0.4 * 4.6 < distance[GOOD] < 1.2 * 4.6
    people = found.set_index(["judge", "item_id"]).human
    assert people[GOOD].equals(people[CONSTANT])
    severities, items = marks_of.severities(runs), runs[0].items.set_index("item_id").score
    assert not severities.duplicated(["judge", "item_id"]).any(), "each model once"
    assert list(severities.human) == list(items[severities.item_id])
    path, row = tmp_path / "people.csv", f"gender:1,{ONE}"
    path.write_text(f"item_id,model,human\n{row},80\n{row},90\nage:2,else,1\n", "utf-8")
    given = marks_of.analyses(runs, str(path))
    assert set(given.model) == {ONE}
    assert list(given.human) == [85.0, 85.0]
    path.write_text("item_id,model,human\nage:2,else,1\n", "utf-8")
    assert "people.csv: has no marks of these runs" in refusal(marks_of.analyses, runs, str(path))


def test_verdicts_of_people_are_read_from_the_table_that_was_marked(own_folder, refusal):
    options = {"limit": 12, "settings": {"explanation": "yes"}, "categories": ["gender"]}
    run = evaluate("cbbq", "simulated:bias=0.5", judge="simulated:competence=1", **options)
    write_sheet([run], own_folder / "table.csv")
    table = pd.read_csv("table.csv", dtype=str, keep_default_na=False)
    table["response"] = ["有", "无", *[""] * (len(table) - 2)]
    table.to_csv("done.csv", index=False)
    assert list(marks_of.verdicts([run], "done.csv").human) == [1.0, 0.0]
    for changed, message in (
        ({"reply": "another"}, "no marks of these runs"),
        ({"response": "maybe"}, "row 1, column `response`: 'maybe' is no verdict"),
    ):
        table.assign(**changed).to_csv("other.csv", index=False)
        assert message in refusal(marks_of.verdicts, [run], "other.csv")


def test_a_sheet_is_blind_stratified_and_holds_some_rows_twice(
    runs, own_folder, monkeypatch, capsys, refusal
):
    both = runs[:2]
    folders = [run.folder for run in both]
    status, printed, _ = command(monkeypatch, capsys, "mark", *folders, "--out", "sheet.csv")
    assert status == 0
    assert "2 instances by 2 models, 1 of them twice" in printed
    assert "simulated" not in Path("sheet.csv").read_text("utf-8")
    rows = pd.read_csv("sheet.csv")
    assert rows.human.isna().all()
    # One of eight instances of each category, by two models; one row twice.
    items = rows.item_id.value_counts()
    assert set(items.index.str.partition(":").get_level_values(0)) == {"age", "gender"}
    assert list(items) == [3, 2]
    write_sheet(both[::-1], Path("again.csv"))
    assert pd.read_csv("again.csv").equals(rows)
    other = evaluate("mcbe", "simulated:", tasks=["bs"], limit=1, out="bs")
    assert "have no instance" in refusal(write_sheet, [both[0], other], Path("none.csv"))


@pytest.fixture
def sheet(runs, own_folder):
    """A person's sheet with 20, 40 or 60 points by text; the second mark of a row is 6 higher."""
    write_sheet(runs[:2], Path("ann.csv"))
    rows = pd.read_csv("ann.csv", dtype=str)
    again = rows.duplicated(["item_id", "analysis"])
    rows["human"] = (20 * (1 + rows.analysis.map(len) % 3) + 6 * again).astype(str)
    rows.to_csv("ann.csv", index=False)
    return rows


def test_points_of_all_people_meet_the_judge_s_marks(runs, sheet):
    marks = marks_of.analyses(runs[:2], "ann.csv")
    assert len(marks) == 4
    own, judged = marks[marks.model == OTHER], runs[1].records
    first = judged[(judged.repeat == 0) & judged.request.str.startswith("judge")]
    weights = first.request.map({"judge:1": 3.5, "judge:2": 1.5, "judge:3": 2.5, "judge:4": 0.5})
    points = (weights * first.response.astype(float)).groupby(first.item_id).sum()
    assert list(own.grade) == pytest.approx(list(points[own.item_id]))
    sheet.assign(human=["50", "50", "", "", ""]).to_csv("ben.csv", index=False)
    given = marks_of.points("*n.csv", runs[:2])
    assert given.groupby("person").human.count().to_dict() == {"ann.csv": 5, "ben.csv": 2}
    assert given.second[given.person == "ann.csv"].sum() == 1
    means = given.groupby(["item_id", "model"]).human.mean()
    assert given.equals(marks_of.points(["ann.csv", "b*.csv"], runs[:2]))
    marks = marks_of.analyses(runs[:2], "*n.csv")
    assert list(marks.human) == [means[row.item_id, row.model] for row in marks.itertuples()]


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("human", "101", "'101' is not allowed; give a number from 0 to 100"),
        ("human", "good", "'good' is not allowed"),
        ("analysis", "else", "'else' is not the model's analysis"),
    ],
)
def test_a_wrong_sheet_names_the_place(runs, sheet, refusal, column, value, message):
    sheet.loc[2, column] = value
    sheet.to_csv("sheet.csv", index=False)
    place = f"sheet.csv, row 3, column `{column}`: {message}"
    assert place in refusal(marks_of.analyses, runs[:2], "sheet.csv")
