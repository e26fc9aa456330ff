"""Sheets for people: what goes out, what comes back, what has to be fixed; right answers stay."""

import io
import os
import re
import shutil
import warnings
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
CHANGED = "its text was changed, so the row's answers wait until it is put back"
PAGE = "xl/worksheets/sheet2.xml"


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


def repack(path, change):
    """Write a workbook again with `change(name, content)` of each part, if any."""
    stream = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            if raw := change(name, old.read(name)):
                new.writestr(name, raw)
    path.write_bytes(stream.getvalue())


def read_bo(path):
    """Return the answers of bo and all problems; those of 安娜 are right."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
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
    edit(
        back,
        ("甲乙丙", "severity", 11),
        ("'=1+1", "kind", "别的"),
        ("第三句", "severity", None),
        ("第四句", "sentence", "第四句。"),
        ("第五句", "kind", "=A1"),
        *(("第六句\n两行", column, None) for column in COLUMNS),
        added=[
            [*own["第七句"][:3], 9],
            own["第八句"][:3],
            of_anna["第八句"],
            other["甲乙丙"],
            ["?", "x"],
        ],
    )
    answers, mend = read_bo(back)
    listed = mend[["item_id", "column", "what"]].itertuples(index=False, name=None)
    doubled, not_taken = "the row is there more than once", "; its answers are not taken"
    assert sorted(listed) == [
        ("", "", f"is a row of no known sheet{not_taken}"),
        ("", "", f"is a row of the sheet other, of bo{not_taken}"),
        ("d1", "severity", "is not allowed"),
        ("d2", "kind", "is not allowed"),
        ("d3", "severity", "is empty"),
        ("d4", "sentence", CHANGED),
        ("d5", "kind", "holds a formula instead of a value"),
        ("d6", "", "the row is missing"),
        ("d7", "", doubled),
        ("d7", "severity", f"{doubled}, with unlike answers; none is taken"),
        ("d8", "", f"is a row of 安娜, and this file is bo's{not_taken}"),
        ("d8", "", doubled),
    ]
    (wrong,) = mend[mend.item_id == "d1"].itertuples()
    assert (wrong.person, wrong.file, wrong.value) == ("bo", "bo.xlsx", "11")
    assert wrong.row == 1 + [*own].index("甲乙丙")
    assert wrong.allowed == "a number from 0 to 10"
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
        ("remark", "'=a", "=a", ""),
        ("kind", "'=健康", "=健康", ""),
    ]
    items = [f"{k:02}" for k, _ in enumerate(typed)]
    rows = pd.DataFrame({"item_id": items, "sentence": items})
    (path,) = sheets.write(tmp_path, "s", rows, ASKED, ["bo"], 1)
    fill(tmp_path, "bo")
    for item, (question, value, _, _) in zip(items, typed, strict=True):
        edit(path, (item, question, *(value if isinstance(value, tuple) else (value,))))
    returned = sheets.read(tmp_path, "s")
    taken, mend = returned.answers, returned.to_mend
    assert returned.missing == [(item, "bo", "severity") for item in sorted(mend.item_id)]
    answers = {(row.item_id, row.question): row.answer for row in taken.itertuples()}
    given = zip(items, typed, strict=True)
    assert [answers.get((item, row[0])) for item, row in given] == [row[2] for row in typed]
    assert dict(zip(mend.item_id, mend.value, strict=True)) == {
        item: listed
        for item, (_, _, answer, listed) in zip(items, typed, strict=True)
        if not answer
    }
    assert (
        returned.wide("severity").bo["00"] == returned.answers_to("severity")["00", "bo"] == "7.5"
    )
    again = pd.DataFrame({"item_id": ["a"], "said": [answers["12", "remark"]]})
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
        ({"people": ["../x"]}, "cannot name a file"),
        ({"people": ["a", "A"]}, "each once"),
        ({"name": "con"}, "cannot name a file"),
        ({"questions": [Question("sentence", "?")]}, "no other column's"),
        ({"questions": [Question("q", "?", ("A", "Ａ"))]}, "choices that differ"),
        ({"rows": ROWS.assign(item_id="x")}, "twice or has no name"),
        ({"rows": ROWS.assign(sentence="\uffff")}, "control character"),
        ({"rows": ROWS[:0]}, "no rows"),
    ],
)
def test_what_would_not_come_back_does_not_go_out(tmp_path, change, message):
    call = {"name": "s", "rows": ROWS, "questions": ASKED, "people": ["a"], "seed": 1} | change
    with pytest.raises(BadInput, match=rf"{tmp_path}.*{message}"):
        sheets.write(tmp_path, **call)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ['"seed": "1"', '"people": ["../x"]', '"more": ' + "[" * 100_000])
def test_a_changed_record_is_refused_with_its_file(folder, text):
    path = folder / "s" / sheets.RECORD
    path.write_text(path.read_text("utf-8").replace('"seed": 3', text), "utf-8")
    with pytest.raises(BadInput, match=rf"{path}: is no record of a sheet .* put back the one"):
        sheets.read(folder, "s")


def test_a_file_may_be_saved_in_the_ways_of_other_programs(back):
    # Excel writes lists of choices in a form that openpyxl warns of.
    extension = b'<extLst><ext uri="{CCE6A557-97BC-4b89-ADB6-D9C93CAAB3DF}"/></extLst></worksheet>'

    def change(name, raw):
        # Google's sheets do not say when they were saved.
        core = rb"<(Override|Relationship) [^>]*core[^>]*/>"
        raw = re.sub(core, b"", raw).replace(b"</worksheet>", extension)
        return b"" if "core" in name else raw

    repack(back, change)
    os.utime(back, (1_750_000_000, 1_750_000_000))
    answers, mend = read_bo(back)
    assert (len(answers), mend.what.tolist()) == (24, [])
    assert set(answers.when) == {"2025-06-15T15:06:40+00:00"}


def test_what_cannot_be_read_is_one_line_and_does_not_stop_the_others(back):
    def stuffed(name, with_what):
        shutil.copy(back, back.with_name(name))
        ends = b"</sheetData>"
        repack(back.with_name(name), lambda _, raw: raw.replace(ends, with_what + ends))

    for name in ("bo.ods", "bo.CSV", "notes.txt", ".~lock.bo.xlsx#", "broken.xlsx"):
        back.with_name(name).write_bytes(b"x")
    back.with_name("folder.xlsx").mkdir()
    stuffed("bomb.xlsx", b" " * (65 * 2**20))
    stuffed("rows.xlsx", b"<row><c><v>1</v></c></row>" * 1500)
    stuffed("tags.xlsx", b"<row>")
    answers, mend = read_bo(back)
    assert len(answers) == 24
    assert (mend.file == "rows.xlsx").sum() == 1001
    lines = mend[(mend.file != "rows.xlsx") | mend.what.str.contains("more things")]
    assert {row.file: re.split(r"[(;]|sheet\d", row.what)[0] for row in lines.itertuples()} == {
        **dict.fromkeys(("bo.CSV", "bo.ods"), "is no xlsx file"),
        **dict.fromkeys(("broken.xlsx", "tags.xlsx"), "cannot be read as xlsx "),
        "folder.xlsx": "cannot be read: is no file",
        "bomb.xlsx": "cannot be read: unpacks to more than 4,194,304 bytes",
        "rows.xlsx": "508 more things are to be fixed",
    }
