"""Sheets for people: what goes out, what comes back, what has to be fixed; right answers stay."""

import io
import re
import shutil
import zipfile
from datetime import datetime

import pandas as pd
import pytest
from openpyxl import load_workbook

from bench.core.errors import BadInput
from bench.curate import sheets
from bench.curate.sheets import ANSWERS, KEY, READ_ME, Question

TEXTS = ["甲乙丙", "=1+1", "第三句", "第四句", "第五句", "第六句\n两行", "第七句", "第八句"]
ROWS = pd.DataFrame({"item_id": [f"d{k}" for k in range(1, 9)], "sentence": TEXTS})
ASKED = [
    Question("kind", "Of what kind is it?", choices=("口味", "礼仪", "=健康")),
    Question("severity", "How severe is it?", lowest=0, highest=10),
    Question("remark", "What else?", required=False),
]
COLUMNS = [KEY, "sentence", "kind", "severity", "remark"]
RIGHT = {"kind": "口味", "severity": 4.5, "remark": "好"}


@pytest.fixture
def folder(tmp_path):
    """A sheet that went out to two people."""
    sheets.write(tmp_path, "s", ROWS, ASKED, ["安娜", "bo"], 3, "Judge by yourself.")
    return tmp_path


@pytest.fixture
def back(folder):
    """The file of bo, who has filled it in, as 安娜 has."""
    fill(folder, "安娜")
    return fill(folder, "bo")


def fill(folder, person, answers=RIGHT):
    path = folder / "s" / f"{person}.xlsx"
    sheets.fill(path, sheets.load(folder, "s"), person, lambda row: answers)
    return path


def cells_of(path):
    return [[cell.value for cell in row] for row in load_workbook(path)[ANSWERS]]


def edit(path, *changes, added=()):
    """Change cells, given by their row's text, column and value, and add rows."""
    book = load_workbook(path)
    page = book[ANSWERS]
    rows = {page.cell(row, 2).value: row for row in range(2, page.max_row + 1)}
    for text, column, value, *number_format in changes:
        cell = page.cell(rows[text], COLUMNS.index(column) + 1)
        cell.value = value
        cell.number_format = (number_format or [cell.number_format])[0]
    for row in added:
        page.append(row)
    book.save(path)


def stuff(path, with_what):
    """Add XML after the rows of a workbook."""
    stream, ends = io.BytesIO(), b"</sheetData>"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(ends, with_what + ends))
    path.write_bytes(stream.getvalue())


def read_bo(path):
    """Return the answers of bo and all problems; those of 安娜 are right."""
    returned = sheets.read(path.parent.parent, "s")
    assert (returned.answers.person == "安娜").sum() == 3 * len(ROWS)
    assert "安娜" not in set(returned.to_mend.person)
    return returned.answers[returned.answers.person == "bo"], returned.to_mend


def test_a_sheet_has_a_hidden_key_validated_cells_locked_texts_and_no_formula(folder, tmp_path):
    book = load_workbook(folder / "s" / "安娜.xlsx")
    page = book[ANSWERS]
    assert (page.protection.sheet, page.column_dimensions["A"].hidden) == (True, True)
    assert [page[cell].protection.locked for cell in ("B2", "C2")] == [True, False]
    rules = {str(rule.sqref): rule for rule in page.data_validations.dataValidation}
    assert (rules["C2:C9"].type, rules["C2:C9"].formula1) == ("list", "choices!$A$1:$A$3")
    decimal = rules["D2:D9"]
    assert (decimal.type, decimal.formula1, decimal.formula2) == ("decimal", "0", "10")
    assert not [cell for row in page.iter_rows() for cell in row if cell.data_type == "f"]
    assert "Judge by yourself." in [cell.value for cell in book[READ_ME]["B"]]
    # Each person sees the rows in another order, which the seed fixes.
    (again,) = sheets.write(tmp_path / "again", "s", ROWS, ASKED, ["安娜"], 3)
    anna, bo = (cells_of(folder / "s" / f"{person}.xlsx") for person in ("安娜", "bo"))
    assert (cells_of(again), anna[0]) == (anna, COLUMNS)
    assert [row[1] for row in anna] != [row[1] for row in bo]


def test_every_fault_is_listed_with_its_place_and_all_else_is_taken(folder, back):
    sheets.write(folder, "other", ROWS[:1], ASKED[1:2], ["bo"], 3)
    own, of_anna, other = (
        {row[1]: row for row in cells_of(path)}
        for path in (back, folder / "s" / "安娜.xlsx", folder / "other" / "bo.xlsx")
    )
    doubles = [[*own["第七句"][:3], 9], own["第八句"][:3]]
    edit(
        back,
        ("甲乙丙", "severity", 11),
        ("'=1+1", "kind", "别的"),
        ("第三句", "severity", None),
        ("第四句", "sentence", "第四句。"),
        ("第五句", "kind", "=A1"),
        *(("第六句\n两行", column, None) for column in COLUMNS),
        added=[*doubles, of_anna["第八句"], other["甲乙丙"], ["?", "x"]],
    )
    answers, mend = read_bo(back)
    listed = mend.item_id + " " + mend.column + " " + mend.what.str.partition(";")[0]
    assert sorted(listed) == [
        "  is a row of no known sheet",
        "  is a row of the sheet other, of bo",
        "d1 severity is not allowed",
        "d2 kind is not allowed",
        "d3 severity is empty",
        "d4 sentence its text was changed, so the row's answers wait until it is put back",
        "d5 kind holds a formula instead of a value",
        "d6  the row is missing",
        "d7  the row is there more than once",
        "d7 severity the row is there more than once, with unlike answers",
        "d8  is a row of 安娜, and this file is bo's",
        "d8  the row is there more than once",
    ]
    (wrong,) = mend[mend.item_id == "d1"].itertuples()
    assert (wrong.person, wrong.file, wrong.value) == ("bo", "bo.xlsx", "11")
    assert (wrong.row, wrong.allowed) == (1 + [*own].index("甲乙丙"), "a number from 0 to 10")
    required = answers[answers.question != "remark"]
    assert " ".join(sorted(required.item_id + required.question)) == (
        "d1kind d2severity d3kind d5severity d7kind d8kind d8severity"
    )


def test_an_answer_is_taken_as_it_is_seen_or_listed(tmp_path):
    # What is typed, the answer that is taken, and else what is listed.
    typed = [
        ("severity", "７．５", "7.5", ""),
        ("severity", " 4.50 ", "4.50", ""),
        ("severity", (5, "0.00"), "5", ""),
        ("severity", (0.455, "0.0%"), None, "45.5%"),
        ("severity", datetime(2026, 5, 4), None, "2026-05-04 00:00:00"),
        ("severity", 1e999, None, ""),
        *(("severity", text, None, text) for text in ("4,5", "5分", "٣", "1_0", "#N/A", "=4.5")),
        # Invisible characters become blanks, so that the text can go out again.
        ("remark", "甲\x85乙\x9b31m\r\n丙\x7f", "甲 乙 31m\n丙", ""),
        ("kind", "'=健康", "=健康", ""),
    ]
    items = [f"{k:02}" for k, _ in enumerate(typed)]
    rows = pd.DataFrame({"item_id": items, "sentence": items})
    (path,) = sheets.write(tmp_path, "s", rows, ASKED, ["bo"], 1)
    fill(tmp_path, "bo")
    for item, (question, value, _, _) in zip(items, typed, strict=True):
        edit(path, (item, question, *(value if isinstance(value, tuple) else (value,))))
    returned = sheets.read(tmp_path, "s")
    mend = dict(zip(returned.to_mend.item_id, returned.to_mend.value, strict=True))
    assert returned.missing == [(item, "bo", "severity") for item in sorted(mend)]
    for item, (question, _, answer, listed) in zip(items, typed, strict=True):
        assert returned.answers_to(question).get((item, "bo")) == answer
        assert mend.get(item) == (None if answer else listed)
    again = pd.DataFrame({"item_id": ["a"], "said": [returned.wide("remark").bo["12"]]})
    assert sheets.write(tmp_path, "again", again, ASKED, ["an"], 1)


def test_files_may_come_back_renamed_swapped_and_twice(folder, back):
    before, anna = sheets.read(folder, "s").answers, back.with_name("安娜.xlsx")
    back.rename(back.with_name("tmp"))
    anna.rename(back)
    back.with_name("tmp").rename(anna)
    pd.testing.assert_frame_equal(sheets.read(folder, "s").answers, before)
    anna.rename(back.with_name("final.XLSX"))
    for name in ("bo (1).xlsx", "~$final.xlsx"):
        shutil.copy(back.with_name("final.XLSX"), back.with_name(name))
    returned = sheets.read(folder, "s")
    pd.testing.assert_frame_equal(returned.answers, before)
    assert set(returned.to_mend.what) == {"the row is there more than once"}


def test_who_gives_up_is_replaced_and_may_return_and_no_file_is_overwritten(folder, back):
    before = back.read_bytes()
    sheets.ask(folder, "s", ["安娜", "third"])
    returned = sheets.read(folder, "s")
    # What bo filled in does not count, nor is it to be fixed.
    assert set(returned.answers.person) == {"安娜"}
    assert returned.to_mend[["person", "what"]].to_numpy().tolist() == [
        ["third", "nothing is filled in yet"]
    ]
    sheets.ask(folder, "s", ["安娜", "third", "bo"])
    assert (sheets.read(folder, "s").answers.person == "bo").sum() == 24
    with pytest.raises(BadInput, match="give this one another name"):
        sheets.write(folder, "s", ROWS, ASKED, ["bo"], 3)
    assert back.read_bytes() == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"people": ["a", "A"]}, "each once"),
        ({"name": "con"}, "cannot name a file"),
        ({"questions": [Question("sentence", "?")]}, "no other column's"),
        ({"questions": [Question("q", "?", ("A", "Ａ"))]}, "choices that differ"),
        ({"rows": ROWS.assign(item_id="x")}, "twice or has no name"),
        ({"rows": ROWS.assign(sentence="\uffff")}, "control character"),
    ],
)
def test_what_would_not_come_back_does_not_go_out_nor_come_in(tmp_path, change, message):
    call = {"name": "s", "rows": ROWS, "questions": ASKED, "people": ["a"], "seed": 1}
    with pytest.raises(BadInput, match=rf"{tmp_path}.*{message}"):
        sheets.write(tmp_path, **(call | change))
    assert not list(tmp_path.iterdir())
    sheets.write(tmp_path, **call)
    record = tmp_path / "s" / sheets.RECORD
    for text in ('"seed": "1"', '"seed": 1, "people": ["../x"]', '"seed": ' + "[" * 100_000):
        record.write_text(record.read_text("utf-8").replace('"seed": 1', text, 1), "utf-8")
        with pytest.raises(BadInput, match=rf"{record}: is no record .* put back the one that"):
            sheets.read(tmp_path, "s")


def test_what_cannot_be_read_is_one_line_and_does_not_stop_the_others(back):
    for name in ("bo.ods", "bo.CSV", "notes.txt", ".~lock.bo.xlsx#", "broken.xlsx"):
        back.with_name(name).write_bytes(b"x")
    back.with_name("folder.xlsx").mkdir()
    for name, with_what in (
        ("bomb.xlsx", b" " * (65 * 2**20)),
        ("rows.xlsx", b"<row><c><v>1</v></c></row>" * 1500),
        ("tags.xlsx", b"<row>"),
    ):
        shutil.copy(back, back.with_name(name))
        stuff(back.with_name(name), with_what)
    answers, mend = read_bo(back)
    assert len(answers) == 24
    assert (mend.file == "rows.xlsx").sum() == 1001
    lines = mend[(mend.file != "rows.xlsx") | mend.what.str.contains("more things")]
    assert {
        row.file: re.split(r"[(;]|part |unpacks", row.what)[0] for row in lines.itertuples()
    } == {
        **dict.fromkeys(("bo.CSV", "bo.ods"), "is no xlsx file"),
        **dict.fromkeys(("broken.xlsx", "tags.xlsx"), "cannot be read as xlsx "),
        "folder.xlsx": "cannot be read: is no file",
        "bomb.xlsx": "cannot be read: ",
        "rows.xlsx": "508 more things are to be fixed",
    }
