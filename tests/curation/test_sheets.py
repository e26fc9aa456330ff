"""Sheets: a mistake is named with file, row, column, value and what is allowed."""

import shutil

import pytest
from openpyxl import load_workbook

from tests.helpers.cases import cases

FILE = "sheets/3-severity/an.csv"


@cases(__file__, "wrong_sheets.csv")
def test_a_mistake_is_one_sentence_and_the_other_rows_are_kept(answered, case):
    work = answered("mcbe")
    sheet = work.sheet("3-severity/an")
    sheet.loc[int(case["row"]), case["column"]] = case["value"]
    work.save("3-severity/an", sheet)
    state = work.advance()
    assert f"{FILE}, {case['said']}" in state.problems
    assert "3-severity" not in state.over
    progress = state.progress.set_index(["round", "person"]).answered
    assert (progress["3-severity", "an"], progress["3-severity", "bai"]) == (9, 10)


def test_a_renamed_sheet_is_nobodys_and_no_new_one_is_written(answered):
    work = answered("mcbe")
    folder = work.folder / "sheets/3-severity"
    (folder / "an.csv").rename(folder / "an (1).csv")
    assert work.sentences() == [
        "sheets/3-severity/an (1).csv: 'an (1).csv' is nobody's sheet of this round; allowed: "
        "an.xlsx, an.csv, bai.xlsx, bai.csv, ding.xlsx, ding.csv; rename it or move it away"
    ]
    assert not (folder / "an.xlsx").exists()


def test_one_person_has_one_filled_sheet(answered):
    work = answered("mcbe")
    folder = work.folder / "sheets/3-severity"
    shutil.copy(folder / "an.csv", work.folder / "an.csv")
    (folder / "an.csv").unlink()
    work.advance()  # writes an empty an.xlsx
    shutil.copy(work.folder / "an.csv", folder / "an.csv")
    assert work.sentences() == []
    work.fill(lambda _round, _person, _row: {"severity": "5"})
    assert work.sentences() == [
        "sheets/3-severity/an.xlsx: 'an.xlsx' is filled in, and so is an.csv; allowed: one sheet a "
        "person"
    ]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"person,item_id\nan,d01\n", "column `category` is missing"),
        ("person,item_id,情境\n".encode("gb18030"), "UTF-8"),
        (b"", "is empty"),
    ],
)
def test_a_file_that_is_no_sheet_is_named_with_its_reason(answered, content, reason):
    work = answered("mcbe")
    (work.folder / FILE).write_bytes(content)
    (sentence,) = work.sentences()
    assert sentence.startswith(f"{FILE}: 'an.csv' cannot be read (")
    assert reason in sentence


def test_no_cell_of_a_sheet_is_a_formula(begun):
    work = begun("mcbe")
    work.change("drafts.csv", ("公司聚餐订在", "=HYPERLINK(1)公司聚餐订在"))
    work.advance()
    path = work.folder / "sheets/1-subcategory/an.xlsx"
    cells = [one for row in load_workbook(path)["answers"].iter_rows() for one in row]
    assert {one.data_type for one in cells} <= {"s", "n"}
    # The text comes back as it was.
    work.fill(lambda _round, _person, _row: {"subtype": _row["category"] and "能力"})
    assert not [one for one in work.sentences() if "`context`" in one]


def test_a_text_that_changes_upstream_no_longer_fits_its_sheets(answered):
    work = answered("mcbe")
    work.change("drafts.csv", ("公司聚餐订在一家湘菜馆", "公司聚餐订在一家川菜馆"))
    (first, *_others) = work.sentences()
    assert "column `context`: '公司聚餐订在一家湘菜馆" in first
    assert "is not what is asked now; allowed: '公司聚餐订在一家川菜馆" in first
