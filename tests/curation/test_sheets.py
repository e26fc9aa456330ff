"""Sheets: a mistake is named with file, row, column, value and what is allowed."""

import pytest
from openpyxl import load_workbook

from tests.helpers.cases import cases

FOLDER = "sheets/3-severity"


# The last case is a draft with a fault, which the editor cannot accept as it is.
@cases(__file__, "wrong_sheets.csv")
def test_a_mistake_is_one_sentence_and_the_other_rows_are_kept(begin, case):
    work = begin(case["benchmark"], answered=True)
    work.answer(case["sheet"], int(case["row"]), case["column"], case["value"])
    state = work.advance()
    assert f"sheets/{case['sheet']}.csv, {case['said']}" in state.problems
    assert case["sheet"].partition("/")[0] not in state.over
    incomplete = state.progress.query("answered < rows")
    assert (incomplete["round"] + "/" + incomplete.person).tolist() == [case["sheet"]]
    assert (incomplete.rows - incomplete.answered).tolist() == [1]


def test_a_renamed_sheet_is_nobodys_and_no_new_one_is_written(begin):
    work = begin("mcbe", answered=True)
    sheet = work.folder / FOLDER / "an.csv"
    sheet.rename(sheet.with_name("an (1).csv"))
    assert work.advance().problems == [
        f"{FOLDER}/an (1).csv: 'an (1).csv' is nobody's sheet of this round; allowed: "
        "an.xlsx, an.csv, bai.xlsx, bai.csv, ding.xlsx, ding.csv; rename it or move it away"
    ]
    assert not sheet.with_suffix(".xlsx").exists()


def test_one_person_has_one_filled_sheet(begin):
    work = begin("mcbe", answered=True)
    sheet = work.folder / FOLDER / "an.csv"
    content = sheet.read_bytes()
    sheet.unlink()
    work.advance()  # writes an empty an.xlsx
    sheet.write_bytes(content)
    assert work.advance().problems == []
    work.fill(lambda _round, _row: {"severity": "5"})
    assert work.advance().problems == [
        f"{FOLDER}/an.xlsx: 'an.xlsx' is filled in, and so is an.csv; allowed: one sheet a person"
    ]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"person,item_id\nan,d01\n", "column `category` is missing"),
        ("person,item_id,情境\n".encode("gb18030"), "UTF-8"),
        (b"", "is empty"),
    ],
)
def test_a_file_that_is_no_sheet_is_named_with_its_reason(begin, content, reason):
    work = begin("mcbe", answered=True)
    (work.folder / FOLDER / "an.csv").write_bytes(content)
    (sentence,) = work.advance().problems
    assert sentence.startswith(f"{FOLDER}/an.csv: 'an.csv' cannot be read (")
    assert reason in sentence


def test_no_cell_of_a_sheet_is_a_formula(begin):
    work = begin("mcbe")
    work.change("drafts.csv", "公司聚餐订在", "=HYPERLINK(1)公司聚餐订在")
    work.advance()
    path = work.folder / "sheets/1-subcategory/an.xlsx"
    cells = [one for row in load_workbook(path)["answers"].iter_rows() for one in row]
    assert {one.data_type for one in cells} <= {"s", "n"}
    # The text comes back as it was.
    work.fill(lambda _round, row: {"subtype": row["category"] and "能力"})
    assert not [one for one in work.advance().problems if "`context`" in one]
