"""The grades that judges and people both gave: of runs, and of files and sheets of people."""

import hashlib
import re
from pathlib import Path

import pandas as pd
import pytest

from bench.analyses import marks as marks_of
from bench.benchmarks import get
from bench.run import evaluate
from bench.run.human_marks import write_sheet
from tests.helpers.recorded import command

GOOD, CONSTANT = "simulated:competence=1,seed=5", "simulated:answer=5"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return [
        evaluate("mcbe", f"simulated:bias=0.{k}", judge=judge, tasks=["ba", "bs"], **options)
        for k in (3, 8)
        for n, judge in enumerate([GOOD, CONSTANT])
        for options in [{"categories": ["gender", "age"], "out": folder / f"{k}{n}"}]
    ]


def test_grades_of_runs_are_those_of_simulated_people_or_a_file(runs, tmp_path, refusal):
    found = marks_of.analyses(runs)
    distance = (found.grade - found.human).abs().groupby(found.judge).mean()
    # The mean of three people, each off by 10 points, is off by 10 / sqrt(3), its distance
    # sqrt(2 / pi) of that; less where the scale ends.
    assert 0.4 * 4.6 < distance[GOOD] < 1.2 * 4.6
    people = found.set_index(["judge", "model", "item_id"]).human.sort_index()
    assert people[GOOD].equals(people[CONSTANT])
    severities, items = marks_of.severities(runs), runs[0].items.set_index("item_id").score
    assert not severities.duplicated(["judge", "item_id"]).any(), "each model once"
    assert list(severities.human) == list(items[severities.item_id])
    path, row = tmp_path / "people.csv", "gender:1,simulated:bias=0.3"
    path.write_text(f"item_id,model,human\n{row},80\n{row},90\nage:2,else,1\n", "utf-8")
    given = marks_of.analyses(runs, str(path))
    assert set(given.model) == {"simulated:bias=0.3"}
    assert list(given.human) == [85.0, 85.0]
    path.write_text("item_id,model,human\nage:2,else,1\n", "utf-8")
    assert "people.csv: has no marks of these runs" in refusal(marks_of.analyses, runs, str(path))


def test_verdicts_of_people_are_read_from_the_table_that_was_marked(own_folder, refusal):
    options = {
        "limit": 12,
        "settings": {"explanation": "yes"},
        "data": get("cbbq").metadata.samples,
    }
    judge = "simulated:competence=1"
    run = evaluate("cbbq", "simulated:bias=0.5", judge=judge, categories=["gender"], **options)
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


# People's points: a blind sheet of several models, read back.
MODELS = [f"simulated:competence=0.{k},seed={k}" for k in (2, 5, 8)]
JUDGE = "simulated:competence=0.7,seed=5"


@pytest.fixture(scope="module")
def marked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return [
        evaluate("mcbe", model, judge=JUDGE, out=folder / f"m{k}", tasks=["ba"], repeats=2)
        for k, model in enumerate(MODELS)
    ]


def points_for(analysis):
    """Points of a simulated person that depend on the text alone: 20, 40 or 60."""
    return 20 * (1 + int(hashlib.sha256(analysis.encode()).hexdigest(), 16) % 3)


def filled(runs, path, second=0):
    """Fill in a new sheet; of a row that is there twice one mark is higher by `second`."""
    write_sheet(runs, Path(path))
    rows = pd.read_csv(path, dtype=str)
    again = rows.duplicated(["item_id", "analysis"])
    rows["human"] = (rows.analysis.map(points_for) + second * again).astype(str)
    rows.to_csv(path, index=False)
    return rows


@pytest.mark.slow
def test_a_sheet_is_blind_stratified_and_holds_some_rows_twice(
    marked, own_folder, monkeypatch, capsys, refusal
):
    folders = [run.folder for run in marked]
    status, printed, _ = command(monkeypatch, capsys, "mark", *folders, "--out", "sheet.csv")
    assert status == 0
    assert "12 instances by 3 models, 4 of them twice" in printed
    assert not re.search(
        "simulated|competence|m[012]\\b|seed", Path("sheet.csv").read_text("utf-8")
    )
    rows = pd.read_csv("sheet.csv")
    assert rows.human.isna().all()
    # One of eight instances of each of twelve categories, by three models; four rows twice.
    items = rows.item_id.value_counts()
    assert len(set(items.index.str.partition(":").get_level_values(0))) == len(items) == 12
    assert (items - 3).sum() == 4
    text = write_sheet(list(reversed(marked)), Path("again.csv"))
    assert text.startswith("40 analyses to mark in column `human`")
    assert pd.read_csv("again.csv").equals(rows)
    other = evaluate("mcbe", "simulated:", tasks=["bs"], limit=1, out="bs")
    assert "have no instance" in refusal(write_sheet, [marked[0], other], Path("none.csv"))


@pytest.mark.slow
def test_points_meet_the_judge_s_marks_and_tell_how_far_a_person_agrees_with_himself(
    marked, own_folder
):
    rows = filled(marked, "ann.csv", second=6)
    marks = marks_of.analyses(marked, "ann.csv")
    assert len(marks) == 36
    judged, row = marked[0].records, marks[marks.model == MODELS[0]].iloc[0]
    given = judged[(judged.item_id == row.item_id) & (judged.repeat == 0)].set_index("request")
    weights = {1: 3.5, 2: 1.5, 3: 2.5, 4: 0.5}
    points = [weight * float(given.response[f"judge:{k}"]) for k, weight in weights.items()]
    assert row.grade == pytest.approx(sum(points))
    rows.assign(human=["50"] * 10 + [""] * 30).to_csv("ben.csv", index=False)
    given = marks_of.points("*n.csv", marked)
    assert given.groupby("person").human.count().to_dict() == {"ann.csv": 40, "ben.csv": 10}
    own = given[given.person == "ann.csv"].set_index(["item_id", "model"])
    assert own.second.sum() == 4
    # Marks of both people count.
    marks = marks_of.analyses(marked, "*n.csv")
    some = given.groupby(["item_id", "model"]).human.mean()
    assert marks.human.tolist() == [some[row.item_id, row.model] for row in marks.itertuples()]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("human", "101", "'101' is not allowed; give a number from 0 to 100"),
        ("human", "good", "'good' is not allowed"),
        ("analysis", "else", "'else' is not the model's analysis"),
    ],
)
def test_a_wrong_sheet_names_the_place(marked, own_folder, refusal, column, value, message):
    rows = filled(marked, "sheet.csv")[:3]
    rows.loc[2, column] = value
    rows.to_csv("sheet.csv", index=False)
    place = f"sheet.csv, row 3, column `{column}`: {message}"
    assert place in refusal(marks_of.analyses, marked, "sheet.csv")
