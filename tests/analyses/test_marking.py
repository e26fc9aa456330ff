"""People's points for bias analyses: a blind sheet of several models, and what judge_agreement makes of it."""

import csv
import hashlib
import re
from collections import Counter
from itertools import combinations
from pathlib import Path

import pandas as pd
import pytest

from bench.analyses import judge_agreement as ja
from bench.core.errors import BadInput
from bench.run import Run, evaluate
from bench.run.human_marks import AnalysisSheet, analyses_to_mark
from tests.helpers.recorded import command

# Simulated people and a judge mark every analysis of several runs.
pytestmark = pytest.mark.slow

MODELS = [
    "simulated:competence=0.2",
    "simulated:competence=0.5,seed=2",
    "simulated:competence=0.8,seed=3",
]
JUDGE = "simulated:competence=0.7,seed=5"


@pytest.fixture
def runs(own_folder: Path) -> list[Run]:
    given = {"tasks": ["ba"], "repeats": 2}
    return [
        evaluate("mcbe", model, judge=JUDGE, out=f"m{k}", **given) for k, model in enumerate(MODELS)
    ]  # type: ignore[arg-type]


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
    # Models may have written the same: rows are told apart by their order among equals only.
    for row in rows:
        same = (row["item_id"], row["analysis"])
        row["human"] = str(points_for(row["analysis"]) + (second if same in seen else 0))
        seen.add(same)
    save(path, rows)


def test_a_sheet_is_blind_stratified_and_holds_some_rows_twice(
    runs: list[Run], monkeypatch, capsys
) -> None:
    status, printed, _ = command(
        monkeypatch, capsys, "mark", "m0", "m1", "m2", "--out", "sheet.csv"
    )
    assert status == 0
    assert "40 analyses to mark in column `human`" in printed
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
    assert not any(key.isdigit() for key in (row["key"] for row in rows)), (
        "no number that is changed"
    )
    own = runs[0].records
    asked = set(own.response[(own.request == "answer") & (own.repeat == 0)])
    assert len({row["analysis"] for row in rows} & asked) >= 1
    by_item = [row["item_id"] for row in rows]
    assert any(a != b for a, b in zip(by_item[::3], by_item[1::3], strict=False)), "shuffled"
    assert analyses_to_mark(list(reversed(runs)), Path("again.csv")) == AnalysisSheet(40, 4, 12, 3)
    assert rows_of("again.csv") == rows


def test_points_of_people_meet_the_judge_s_marks_of_what_they_saw(runs: list[Run]) -> None:
    analyses_to_mark(runs, Path("sheet.csv"))
    fill("sheet.csv")
    marks = ja.analyses(runs, "sheet.csv")
    assert len(marks) == 36
    assert list(marks.human) == [points_for(text) for text in marks.said]
    judged, first = runs[0].records, marks[marks.model == MODELS[0]].iloc[0]
    rows = judged[(judged.item_id == first.item_id) & (judged.repeat == 0)]
    given = rows.set_index("request").response
    weights = {1: 3.5, 2: 1.5, 3: 2.5, 4: 0.5}
    points = sum(weight * float(given[f"judge:{k}"]) for k, weight in weights.items())
    assert first.judge == pytest.approx(points)
    pairs = ja.winners(marks, by_pair=True).set_index(["ties_count", "model_a", "model_b"])
    for a, b in combinations(sorted(MODELS), 2):
        means = {name: marks[marks.model == name][["judge", "human"]].mean() for name in (a, b)}
        row = pairs.loc["half", a, b]
        assert row["items"] == 12
        assert row.judge_difference == pytest.approx(means[a].judge - means[b].judge)
        assert row.human_difference == pytest.approx(means[a].human - means[b].human)
    assert {row[1] for row in pairs.index} | {row[2] for row in pairs.index} == set(MODELS)


def test_a_person_who_gives_second_marks_is_compared_with_the_first_ones(runs: list[Run]) -> None:
    analyses_to_mark(runs, Path("ann.csv"))
    Path("ben.csv").write_bytes(Path("ann.csv").read_bytes())
    fill("ann.csv", second=6)
    rows = rows_of("ben.csv")
    save("ben.csv", [{**row, "human": "50" if k < 10 else ""} for k, row in enumerate(rows)])
    given = ja.points("*n.csv", runs)
    assert set(given.person) == {"ann.csv", "ben.csv"}
    told = ja.self_consistency(given).set_index("person")
    assert told["rows"].tolist() == [40, 40]
    assert told.marked.to_dict() == {"ann.csv": 40, "ben.csv": 10}
    twice = given[given.second & (given.person == "ann.csv")]
    firsts = (
        given[~given.second & (given.person == "ann.csv")].set_index(["item_id", "model"]).human
    )
    apart = [abs(row.human - firsts[row.item_id, row.model]) for row in twice.itertuples()]
    assert told.distance["ann.csv"] == pytest.approx(sum(apart) / 4)
    assert told.distance["ann.csv"] > 0
    # Marks of both people count: ben has given 50 points to some, and ann what she gives.
    marks = ja.analyses(runs, "*n.csv")
    some = given.groupby(["item_id", "model"]).human.mean()
    assert marks.human.tolist() == [some[row.item_id, row.model] for row in marks.itertuples()]


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        (
            "human",
            "101",
            "sheet.csv, row 3, column `human`: '101' is not allowed; allowed: a number from 0 to 100",
        ),
        ("human", "good", "row 3, column `human`: 'good' is not allowed"),
        (
            "analysis",
            "something else",
            "row 3, column `analysis`: 'something else' is not what the model wrote",
        ),
    ],
)
def test_a_wrong_sheet_names_the_place(runs: list[Run], column: str, value: str, said: str) -> None:
    analyses_to_mark(runs, Path("sheet.csv"))
    fill("sheet.csv")
    rows = rows_of("sheet.csv")
    save("sheet.csv", [{**row, column: value} if k == 2 else row for k, row in enumerate(rows)])
    with pytest.raises(BadInput, match=re.escape(said)):
        ja.analyses(runs, "sheet.csv")
    save("sheet.csv", [rows[0], rows[0]])
    with pytest.raises(BadInput, match=r"row 2, column `key`: .* stands there twice"):
        ja.analyses(runs, "sheet.csv")
    analyses_to_mark(runs, Path("empty.csv"))
    with pytest.raises(BadInput, match=r"empty\.csv: has no marks of these runs"):
        ja.analyses(runs, "empty.csv")


def test_runs_that_cannot_share_a_sheet_are_refused(runs: list[Run]) -> None:
    other = evaluate("mcbe", "simulated:", tasks=["bs"], limit=1, out="bs")
    with pytest.raises(BadInput, match="m0, bs: have no instance that all models analysed"):
        analyses_to_mark([runs[0], other], Path("sheet.csv"))
    assert not Path("sheet.csv").exists()


def test_points_are_of_the_text_that_people_saw(runs: list[Run]) -> None:
    analyses_to_mark(runs, Path("sheet.csv"))
    fill("sheet.csv")
    # The first model, asked again by another seed for another judge, says something else of some instances.
    other = "simulated:seed=9"
    again = evaluate("mcbe", MODELS[0], judge=other, tasks=["ba"], out="again", seed=4)
    answers, own = again.records, runs[0].records
    first = own[(own.request == "answer") & (own.repeat == 0)].set_index("item_id").response
    other_texts = answers[answers.request == "answer"].set_index("item_id").response
    shown = {row["item_id"] for row in rows_of("sheet.csv")}
    changed = {item for item in shown if other_texts[item] != first[item]}
    assert changed, "else nothing is tested"
    marks = ja.analyses([*runs, again], "sheet.csv")
    assert set(marks.item_id[marks.by == other]) == shown - changed


def test_points_of_a_plain_file_have_no_second_marks(runs: list[Run]) -> None:
    table = pd.DataFrame({"item_id": ["age:1"], "model": MODELS[0], "human": [80]})
    table.to_csv("people.csv", index=False)
    assert "second" not in ja.points("people.csv", runs)
    assert ja.analyses(runs, "people.csv").human.tolist() == [80]
