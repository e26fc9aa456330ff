"""The notebook judge_agreement: a blind sample, marks of people read back, and winners by hand."""

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import bench
from bench.core.cells import unguarded
from bench.core.errors import NoRuns
from bench.data.readers import read_table
from bench.run import evaluate
from tests.helpers.notebooks import run_cells

NAN = math.nan
MODELS = ["simulated:bias=0.3", "simulated:bias=0.8"]
GOOD, CONSTANT = "simulated:competence=1,seed=5", "simulated:answer=5"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two models' analyses under two judges, and one model's explanations under one."""
    analysed = {"tasks": ["ba"], "categories": ["gender", "age"], "data": "samples"}
    explained = {"settings": {"explanation": "yes"}, "categories": ["gender"], "limit": 6}
    options = [("mcbe", model, {**analysed, "judge": GOOD}) for model in MODELS]
    options.append(("mcbe", MODELS[0], {**analysed, "judge": CONSTANT}))
    options += [("cbbq", MODELS[0], {**explained, "data": "samples", "judge": GOOD})]
    folders = tmp_path_factory
    return [evaluate(name, model, out=folders.mktemp("run"), **o) for name, model, o in options]


def notebook(runs, until="constant", **parameters):
    """Run the notebook up to a cell on some runs."""
    folders = [str(run.folder) for run in runs]
    return run_cells("judge_agreement", until=until, runs=folders, **parameters)


@pytest.fixture(scope="module")
def cells(runs):
    """The notebook's variables once it has drawn all replies and can read marks."""
    return notebook(runs, "read-marks", items=0)


@pytest.fixture
def sheet(cells, own_folder):
    """The sample of all replies, with marks: 50 points, or 有."""
    is_analysis = cells["sheet"].question.str.startswith("Points")
    return cells["sheet"].assign(mark=np.where(is_analysis, "50", "有"))


@pytest.mark.parametrize("name", ["sample.csv", "sample.xlsx"])
def test_a_sample_is_blind_balanced_and_the_same_again(runs, own_folder, capsys, name):
    variables = notebook(runs, "write", items=4, sample=name)
    drawn = variables["drawn"]
    assert pd.crosstab(drawn.task, drawn.model).loc["ba"].tolist() == [4, 4]
    ba = drawn[drawn.task == "ba"]
    assert ba.groupby(["model", "category"]).size().tolist() == [2, 2, 2, 2]
    read = pd.read_csv if name.endswith("csv") else pd.read_excel
    written = read(name, dtype=str).fillna("")
    assert list(written) == ["reply_id", "prompt", "reply", "reference", "question", "mark"]
    assert "simulated" not in written.to_csv()
    assert (written.mark == "").all()
    assert [unguarded(cell) for cell in written.reply] == list(drawn.reply)
    before = Path(name).read_bytes()
    assert list(notebook(runs[::-1], "write", items=4, sample=name)["drawn"].reply) == list(
        drawn.reply
    )
    assert "is there already" in capsys.readouterr().out
    assert Path(name).read_bytes() == before
    assert list(notebook(runs, "draw", items=4, seed=1)["drawn"].reply) != list(drawn.reply)


def test_cells_of_a_sample_are_no_formulas_and_fit_into_a_spreadsheet(tmp_path):
    replies = ["=1+1", "\x00\x1b[31m", "字" * 60_000, "\ufffe", "_x0041_", "'=1"]
    columns = ["reply_id", "prompt", "reference", "question", "mark"]
    drawn = pd.DataFrame({"reply": replies, **dict.fromkeys(columns, "-1+1")})
    variables = {**run_cells("judge_agreement", until="imports"), "drawn": drawn}
    for name in ("sample.csv", "sample.xlsx"):
        variables |= {"sample": str(tmp_path / name), "COLUMNS": [*drawn]}
        run_cells("judge_agreement", only="write", **variables)
        texts = [row["reply"] for row in read_table(tmp_path / name, ["reply"], replies=True)]
        assert not any(text.startswith(("=", "+", "-", "@")) for text in texts)
        assert max(map(len, texts)) < 32_767
        assert texts[0] == "'=1+1"


def test_marks_of_three_people_with_gaps_are_compared_with_the_other_people(runs, sheet):
    ann, bo, cy = (sheet.assign(mark="") for _ in range(3))
    analyses, verdicts = (sheet.index[sheet.mark == mark] for mark in ("50", "有"))
    rows = [*analyses[:2], *verdicts[:2]]
    ann.loc[rows, "mark"] = ["10", "3.5", "有", "有"]
    bo.loc[rows, "mark"] = ["40", "", "无", "无"]
    cy.loc[rows, "mark"] = ["100", "n/a", "没有", ""]
    ann.to_csv("ann.csv", index=False)
    bo.sample(frac=1, random_state=0).to_csv("bo.csv", index=False, sep=";")
    cy.to_excel("cy.xlsx", index=False)
    variables = notebook(runs, "raters", items=0, people=["[ab]*.csv", "cy.xlsx"])
    table = variables["compared"].pivot_table("people", "reply_id", "rater")
    table = table.reindex(sheet.reply_id[rows])
    # The mean of the others' points, or their majority; NaN if they are none or split.
    people = {"ann": [70, NAN, 0, 0], "bo": [55, NAN, NAN, 1], "cy": [25, NAN, NAN, NAN]}
    people[GOOD] = [50, 3.5, 0, NAN]
    expected = pd.DataFrame(people, table.index)
    assert table[[*people]].to_numpy() == pytest.approx(expected.to_numpy(), nan_ok=True)
    constant = variables["constant"].set_index("reply_id").mark
    assert set(constant[sheet.reply_id[analyses[:2]]]) == {3.5}, "the lower median of 50 and 3.5"


def change(column, row, value):
    return lambda rows: rows.assign(**{column: rows[column].where(rows.index != row, value)})


def shares(rows):
    return rows.assign(mark=rows.mark.replace("50", "0.5"))


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (change("mark", 2, "101"), "row 3, column `mark`: '101' is not allowed; write "),
        (change("mark", 2, "good"), "row 3, column `mark`: 'good' is not allowed; write "),
        (change("reply", 2, "else"), "row 3, column `reply`: 'else' is not the reply r0003 of"),
        (change("reply_id", 2, "r9999"), "row 3, column `reply_id`: 'r9999' is not in the sample"),
        (change("reply_id", 2, ""), "row 3, column `reply_id`: is empty"),
        (change("reply_id", 2, "r0001"), "row 3: has the same reply_id 'r0001' as row 1"),
        (lambda rows: rows.drop(2), "column `reply_id`: the row of r0003 is missing"),
        (lambda rows: rows.head(0), "has no rows"),
        (lambda rows: rows.drop(columns="mark"), "column `mark` is missing"),
        (lambda rows: rows.assign(mark=""), "column `mark`: is empty; fill it in"),
        (shares, "column `mark`: no mark is above 1; give points of 100, not shares"),
    ],
)
@pytest.mark.parametrize("name", ["ann.csv", "ann.xlsx"])
def test_a_mistake_in_marks_names_file_row_and_column(cells, sheet, refusal, name, edit, message):
    rows = edit(sheet)
    rows.to_csv(name, index=False) if name.endswith("csv") else rows.to_excel(name, index=False)
    error = refusal(cells["read_marks"], Path(name))
    assert error.startswith(name)
    assert message in error


def test_without_marks_or_replies_a_sentence_says_what_to_do(runs, own_folder):
    with pytest.raises(NoRuns, match="no such file with marks; fill in the column `mark`"):
        notebook(runs, people="marks/*.csv")
    plain = evaluate("cbbq", "simulated:", limit=1, categories=["gender"], data="samples")
    with pytest.raises(NoRuns, match="none of 1 runs has replies for people to mark"):
        notebook([plain])


@pytest.mark.parametrize(("kind", "raters"), [("mcbe", 1), ("cbbq", 1), ("mcbe", 2)])
def test_one_person_or_one_model_is_enough_for_each_page(runs, own_folder, kind, raters):
    some = [run for run in runs if run.benchmark == kind][:1]
    rows = notebook(some, "write", items=0)["sheet"]
    marks = {"mcbe": ["50", "70"], "cbbq": ["有", "无"]}[kind] * len(rows)
    for person in "ab"[:raters]:
        rows.assign(mark=marks[: len(rows)]).to_csv(f"{person}.csv", index=False)
    variables = notebook(some, "far-grades-grades-kind-severit", items=0, people=["[ab].csv"])
    coefficients = variables["coefficients"][0].groupby("between").estimate.first()
    assert np.isnan(coefficients.get("people", NAN)) == (raters == 1)
    assert len(variables["pairs"]) == 0


# Of the pairs A B, A C and B C of each item, judge and people name the same winner (+), another one
# (-), or one side (1) or both (2) name none: + + -, then 1 1 +, then 2 - -, then + + +.
BY_HAND = pd.DataFrame(
    {
        "kind": "analysis",
        "rater": "judge",
        "item_id": np.repeat(["i1", "i2", "i3", "i4"], 3),
        "model": [*"ABC"] * 4,
        "mark": [9, 5, 1, 5, 5, 2, 4, 4, 8, 1, 2, 3],
        "people": [80, 60, 70, 50, 60, 50, 30, 30, 20, 10, 20, 30],
    }
)


def winners(compared, **changes):
    variables = {"np": np, "pd": pd, "bench": bench, "tables": ""}
    compared = compared.assign(cluster=compared.item_id)
    for cell in ("pairs", "winners"):
        variables = run_cells(
            "judge_agreement", only=cell, **{**variables, "compared": compared}, changes=changes
        )
    return variables["winners"].set_index("pair")


def test_winners_of_pairs_and_ties_by_hand():
    table = winners(BY_HAND)
    assert table.estimate.to_dict() == {
        "all pairs": pytest.approx(6 / 9),
        "A and B": 1,
        "A and C": pytest.approx(2 / 3),
        "B and C": 0.5,
    }
    assert table.n.tolist() == [9, 2, 3, 4]
    assert table.ties.tolist() == [3 / 12, 2 / 4, 1 / 4, 0]
    # Means over items: judge 4.75, 4, 3.5; people 42.5, 42.5, 42.5.
    assert table.same_by_means.tolist()[1:] == ["no"] * 3
    same = winners(BY_HAND.assign(people=BY_HAND.mark * 10))
    assert same.same_by_means.tolist()[1:] == ["yes"] * 3
    counted = {'pairs["counted"] = 1 - pairs.tie': 'pairs["counted"] = 1.0'}
    assert winners(BY_HAND, **counted).estimate["all pairs"] == pytest.approx(7 / 12)


def test_repeats_of_an_analysis_are_averaged_before_winners_are_named():
    # The judge's means are 0.2 and 0.2 but for the last digit; people's are 6 and 5.
    rows = [("A", 0.1, 5.0), ("A", 0.2, 6.0), ("A", 0.3, 7.0), ("B", 0.2, 5.0)]
    repeats = pd.DataFrame(rows, columns=["model", "mark", "people"])
    table = winners(repeats.assign(kind="analysis", rater="judge", item_id="i"))
    assert table.loc["A and B", ["n", "ties"]].tolist() == [0, 1]


def test_verdicts_of_people_become_answers_of_a_judge(runs, sheet):
    marks = ["有", "无", "有"]
    rows = sheet[sheet.question.str.startswith("Does")].index
    for name, verdict in (("ann.csv", "有"), ("bo.csv", "无")):
        filled = sheet.assign(mark="")
        filled.loc[rows[:3], "mark"] = marks
        filled.loc[rows[3], "mark"] = verdict
        filled.to_csv(name, index=False)
    changes = {'folder = ""': 'folder = "verdicts"'}
    variables = notebook(runs, "verdicts", items=0, people="ann.csv,bo.csv", changes=changes)
    (path,) = Path("verdicts").iterdir()
    answers = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    drawn = variables["drawn"].set_index("reply_id").loc[sheet.reply_id[rows[:4]]]
    key = ["task", "item_id", "repeat"]
    expected = [(*row, "judge") for row in drawn[key].itertuples(index=False)]
    assert {tuple(a[k] for k in (*key, "request")): a["response"] for a in answers} == dict(
        zip(expected, [*marks, ""], strict=True)
    )
