"""People's points for bias analyses: a blind sheet of several models, read back."""

import csv
import hashlib
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from bench.analyses import judge_agreement as ja
from bench.run import Run, evaluate
from bench.run.human_marks import AnalysisSheet, analyses_to_mark
from tests.helpers.recorded import command

# Simulated people and a judge mark every analysis of several runs.
pytestmark = pytest.mark.slow

MODELS = [f"simulated:competence=0.{k},seed={k}" for k in (2, 5, 8)]
JUDGE = "simulated:competence=0.7,seed=5"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    folder = tmp_path_factory.mktemp("runs")
    return [
        evaluate("mcbe", model, judge=JUDGE, out=folder / f"m{k}", tasks=["ba"], repeats=2)
        for k, model in enumerate(MODELS)
    ]


def rows_of(path: str) -> list[dict[str, str]]:
    with Path(path).open(encoding="utf-8-sig", newline="") as stream:
        return list(csv.DictReader(stream))


def save(path: str, rows: list[dict[str, str]]) -> None:
    with Path(path).open("w", encoding="utf-8-sig", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def points_for(analysis: str) -> int:
    """Points of a simulated person that depend on the text alone: 20, 40 or 60."""
    return 20 * (1 + int(hashlib.sha256(analysis.encode()).hexdigest(), 16) % 3)


def fill(path: str, second: int = 0) -> None:
    """Fill in a sheet; of a row that stands there twice one mark is higher by `second`."""
    rows, seen = rows_of(path), set()
    for row in rows:
        same = (row["item_id"], row["analysis"])
        row["human"] = str(points_for(row["analysis"]) + (second if same in seen else 0))
        seen.add(same)
    save(path, rows)


def test_a_sheet_is_blind_stratified_and_holds_some_rows_twice(
    runs: list[Run], own_folder: Path, monkeypatch: Any, capsys: Any, refusal: Any
) -> None:
    folders = [run.folder for run in runs]
    status, printed, _ = command(monkeypatch, capsys, "mark", *folders, "--out", "sheet.csv")
    assert status == 0
    assert "12 instances by 3 models, 4 of them twice" in printed
    text = Path("sheet.csv").read_text("utf-8-sig")
    assert not re.search("simulated|competence|m[012]\\b|seed", text)
    rows = rows_of("sheet.csv")
    assert {row["human"] for row in rows} == {""}
    # One of eight instances of each of twelve categories, by three models; four rows twice.
    items = Counter(row["item_id"] for row in rows)
    assert len({item.partition(":")[0] for item in items}) == len(items) == 12
    assert sum(n - 3 for n in items.values()) == 4
    assert len({row["key"] for row in rows}) == 40
    assert analyses_to_mark(list(reversed(runs)), Path("again.csv")) == AnalysisSheet(40, 4, 12, 3)
    assert rows_of("again.csv") == rows
    other = evaluate("mcbe", "simulated:", tasks=["bs"], limit=1, out="bs")
    message = refusal(analyses_to_mark, [runs[0], other], Path("none.csv"))
    assert "have no instance that all models analysed" in message
    assert not Path("none.csv").exists()


def test_points_meet_the_judge_s_marks_of_what_people_saw(
    runs: list[Run], own_folder: Path
) -> None:
    analyses_to_mark(runs, Path("sheet.csv"))
    fill("sheet.csv")
    marks = ja.analyses(runs, "sheet.csv")
    assert len(marks) == 36
    assert list(marks.human) == [points_for(text) for text in marks.said]
    judged, row = runs[0].records, marks[marks.model == MODELS[0]].iloc[0]
    given = judged[(judged.item_id == row.item_id) & (judged.repeat == 0)].set_index("request")
    weights = {1: 3.5, 2: 1.5, 3: 2.5, 4: 0.5}
    points = [weight * float(given.response[f"judge:{k}"]) for k, weight in weights.items()]
    assert row.judge == pytest.approx(sum(points))
    # The first model, asked again by another seed for another judge, says something else of some.
    judge = "simulated:seed=9"
    again = evaluate("mcbe", MODELS[0], judge=judge, tasks=["ba"], out="again", seed=4)

    def said(run: Run) -> "pd.Series[str]":
        rows = run.records
        return rows[(rows.request == "answer") & (rows.repeat == 0)].set_index("item_id").response

    shown = {row["item_id"] for row in rows_of("sheet.csv")}
    changed = {item for item in shown if said(again)[item] != said(runs[0])[item]}
    assert changed, "else nothing is tested"
    found = ja.analyses([*runs, again], "sheet.csv")
    assert set(found.item_id[found.by == judge]) == shown - changed


def test_second_marks_tell_how_far_a_person_agrees_with_himself(
    runs: list[Run], own_folder: Path
) -> None:
    analyses_to_mark(runs, Path("ann.csv"))
    rows = rows_of("ann.csv")
    save("ben.csv", [{**row, "human": "50" if k < 10 else ""} for k, row in enumerate(rows)])
    fill("ann.csv", second=6)
    given = ja.points("*n.csv", runs)
    told = ja.self_consistency(given).set_index("person")
    assert told["rows"].tolist() == [40, 40]
    assert told.marked.to_dict() == {"ann.csv": 40, "ben.csv": 10}
    own = given[given.person == "ann.csv"].set_index(["item_id", "model"])
    apart = [abs(m - own.human[~own.second][name]) for name, m in own.human[own.second].items()]
    assert told.distance["ann.csv"] == pytest.approx(sum(apart) / 4) != 0
    # Marks of both people count.
    marks = ja.analyses(runs, "*n.csv")
    some = given.groupby(["item_id", "model"]).human.mean()
    assert marks.human.tolist() == [some[row.item_id, row.model] for row in marks.itertuples()]
    # A plain file has no second marks.
    table = pd.DataFrame({"item_id": ["age:1"], "model": MODELS[0], "human": [80]})
    table.to_csv("people.csv", index=False)
    assert "second" not in ja.points("people.csv", runs)


def test_a_wrong_sheet_names_the_place(runs: list[Run], own_folder: Path, refusal: Any) -> None:
    analyses_to_mark(runs, Path("empty.csv"))
    analyses_to_mark(runs, Path("sheet.csv"))
    fill("sheet.csv")
    rows = rows_of("sheet.csv")
    for changed, message in (
        ({"human": "101"}, "column `human`: '101' is not allowed; allowed: a number from 0 to 100"),
        ({"human": "good"}, "column `human`: 'good' is not allowed"),
        ({"analysis": "else"}, "column `analysis`: 'else' is not what the model wrote"),
        ({"key": rows[0]["key"]}, "column `key`: "),
    ):
        save("sheet.csv", [*rows[:2], {**rows[2], **changed}])
        assert f"sheet.csv, row 3, {message}" in refusal(ja.analyses, runs, "sheet.csv")
    assert "empty.csv: has no marks of these runs" in refusal(ja.analyses, runs, "empty.csv")
