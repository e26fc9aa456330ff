"""Sheets that come back to a curation project from people and spreadsheet programs, and are not as they were sent."""

import io
import json
import os
import re
import warnings
import zipfile
from datetime import datetime

import pandas as pd
import pytest
from openpyxl import load_workbook

from bench.core.errors import BadInput
from bench.curate import sheets
from bench.curate.workbook import ANSWERS, Question

pytestmark = pytest.mark.slow

ROWS = pd.DataFrame({"item_id": ["d1", "d2", "d3"], "sentence": ["甲乙丙", "=1+1", "两\n行"]})
ASKED = [
    Question("kind", "Of what kind?", choices=("口味", "礼仪")),
    Question("severity", "How severe?", lowest=0, highest=10),
    Question("remark", "What else?", required=False),
]
RIGHT = {"kind": "口味", "severity": 4.5, "remark": "好"}


@pytest.fixture
def sent(tmp_path):
    """A sheet that two people have filled in, as it was sent to `bo`."""
    sheets.write(tmp_path, "s", ROWS, ASKED, ["an", "bo"], 1, "Judge.")
    for person in ("an", "bo"):
        path = tmp_path / "s" / f"{person}.xlsx"
        sheets.fill(path, sheets.opened(tmp_path, "s"), person, lambda row: RIGHT)
    return tmp_path / "s" / "bo.xlsx"


def read(path):
    """What came back, and of `bo` what is to be mended; that of `an` is right."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = sheets.read(path.parent.parent, "s")
    assert len(found.answers[found.answers.person == "an"]) == 9
    assert "an" not in set(found.to_mend.person)
    return found.answers[found.answers.person == "bo"], found.to_mend


def type_in(path, **cells):
    """Write into the first row of a sheet, a cell a question."""
    book = load_workbook(path)
    page = book[ANSWERS]
    columns = {str(cell.value): cell.column for cell in page[1]}
    for name, (value, form) in cells.items():
        cell = page.cell(2, columns[name])
        cell.value = value
        cell.number_format = form or cell.number_format
    book.save(path)


def repacked(path, change, part="xl/worksheets/sheet2.xml"):
    """Change a part of a workbook."""
    stream = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            raw = old.read(name)
            new.writestr(name, change(raw) if name == part else raw)
    path.write_bytes(stream.getvalue())


@pytest.mark.parametrize(
    ("value", "form", "taken"),
    [
        ("4,5", "", None),
        ("４，５", "", None),
        ("４．５", "", "4.5"),
        (" 4.50 ", "", "4.50"),
        ("5分", "", None),
        ("٣", "", None),
        # 5 % is seen, and is no 0.05.
        (0.05, "0%", None),
        (5, "0%", None),
        (5, "0.00", "5"),
        (datetime(2026, 5, 4), "", None),
        (True, "", None),
        ("#N/A", "", None),
        (1e999, "", None),
        ("1_0", "", None),
        ("=4.5", "", None),
    ],
)
def test_a_number_is_taken_as_it_is_seen_or_listed(sent, value, form, taken):
    type_in(sent, severity=(value, form))
    answers, mend = read(sent)
    first = answers[answers.question == "severity"].answer
    assert list(first[first != "4.5"]) == ([taken] if taken not in (None, "4.5") else [])
    assert len(first) == (2 if taken is None else 3)
    assert len(mend) == (taken is None)
    assert set(mend.column) <= {"severity"}


def test_a_percentage_is_listed_as_it_is_seen(sent):
    type_in(sent, severity=(0.455, "0.0%"))
    assert list(read(sent)[1].value) == ["45.5%"]


def test_what_nobody_sees_in_a_text_is_a_blank_and_its_error_is_no_text(sent):
    type_in(sent, remark=("甲\x85乙\x9b31m\r\n丙\x7f", ""))
    answers, mend = read(sent)
    assert "甲 乙 31m\n丙" in set(answers.answer)
    assert mend.empty
    # It can go out again.
    rows = pd.DataFrame(
        {"item_id": list("abc"), "said": answers[answers.question == "remark"].answer}
    )
    sheets.write(sent.parent.parent, "again", rows, ASKED, ["an"], 1)
    type_in(sent, remark=("#NAME?", ""))
    assert list(read(sent)[1].what) == ["holds a formula instead of a value"]


@pytest.mark.parametrize(
    "cell",
    [
        't="str"><v>{}</v>',
        't="s"><v>0</v>',
        't="inlineStr"><is><r><t>{}</t></r><r><rPr><b/></rPr><t xml:space="preserve"> </t></r></is>',
    ],
)
@pytest.mark.parametrize("text", ["甲乙丙", "口味"])
def test_texts_may_be_written_in_other_ways(sent, cell, text):
    """As other programs do: as what a formula gave, in a table of texts, in runs of letters."""
    ours = f't="inlineStr"><is><t>{text}</t></is>'
    shared = f'<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><si><t>{text}</t><phoneticPr fontId="1"/></si></sst>'
    table = '<Override PartName="/xl/sharedStrings.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"/></Types>'
    repacked(sent, lambda raw: raw.replace(ours.encode(), cell.format(text).encode()))
    repacked(sent, lambda raw: raw.replace(b"</Types>", table.encode()), "[Content_Types].xml")
    with zipfile.ZipFile(sent, "a") as book:
        assert ours.encode() not in book.read("xl/worksheets/sheet2.xml")
        book.writestr("xl/sharedStrings.xml", shared)
    answers, mend = read(sent)
    assert len(answers) == 9, mend.what.tolist()
    assert mend.empty


def test_what_excel_writes_for_a_list_of_choices_is_no_fault(sent):
    """It warns in openpyxl, and a reader may have made warnings errors."""
    extension = b'<extLst><ext xmlns:x14="http://schemas.microsoft.com/office/spreadsheetml/2009/9/main" uri="{CCE6A557-97BC-4b89-ADB6-D9C93CAAB3DF}"><x14:dataValidations count="0"/></ext></extLst></worksheet>'
    repacked(sent, lambda raw: raw.replace(b"</worksheet>", extension))
    answers, mend = read(sent)
    assert len(answers) == 9
    assert mend.empty


def test_of_rows_without_end_a_thousand_are_listed(sent):
    key = load_workbook(sent)[ANSWERS]["A2"].value.encode()
    row = b'<row><c t="str"><v>%s</v></c></row>'
    repacked(
        sent,
        lambda raw: raw.replace(
            b"</sheetData>", row % b"x" * 1500 + row % key * 30 + b"</sheetData>"
        ),
    )
    answers, mend = read(sent)
    # Of the row that is there thirty times more without its text, the one with it counts.
    assert len(answers) == 9
    assert len(mend) == 1000 + 2
    assert "530 more things are to be mended; the first 1,000 are listed" in set(mend.what)
    assert mend.value.str.len().max() < 1000


@pytest.mark.parametrize(
    ("added", "what"),
    [
        (b" " * (65 * 2**20), "cannot be read: unpacks to "),
        (
            b'<row r="1048577"/>',
            "cannot be read: part xl/worksheets/sheet2.xml: has more than 1,048,576 rows",
        ),
        (
            b'<row r="1048576"><c r="ZZ1048576"/></row>',
            "cannot be read: part xl/worksheets/sheet2.xml: has more than 2,000,000 cells",
        ),
        (b"<row>", "cannot be read as xlsx"),
    ],
)
def test_a_bomb_is_a_line_and_its_sender_is_not_said_to_be_late(sent, added, what):
    repacked(sent, lambda raw: raw.replace(b"</sheetData>", added + b"</sheetData>"))
    answers, mend = read(sent)
    assert answers.empty
    (one,) = mend.itertuples()
    assert (one.person, one.file) == ("bo", "bo.xlsx")
    assert one.what.startswith(what)
    assert "CSV" not in one.what


def test_other_formats_are_named_and_capital_letters_are_read(sent):
    sent.rename(sent.with_name("BO.XLSX"))
    for name in ("bo.ods", "bo.CSV", "notes.txt", ".~lock.bo.xlsx#"):
        sent.with_name(name).write_bytes(b"x")
    sent.with_name("folder.xlsx").mkdir()
    answers, mend = read(sent)
    assert len(answers) == 9
    assert sorted(zip(mend.file, mend.what, strict=True)) == [
        ("bo.CSV", "is no xlsx file; save it as one (Excel workbook, .xlsx)"),
        ("bo.ods", "is no xlsx file; save it as one (Excel workbook, .xlsx)"),
        ("folder.xlsx", "cannot be read: is no file"),
    ]


def test_two_peoples_files_may_be_swapped(sent):
    type_in(sent, severity=(9, ""))
    before = sheets.read(sent.parent.parent, "s").answers
    sent.rename(sent.with_name("tmp"))
    sent.with_name("an.xlsx").rename(sent)
    sent.with_name("tmp").rename(sent.with_name("an.xlsx"))
    pd.testing.assert_frame_equal(sheets.read(sent.parent.parent, "s").answers, before)


@pytest.mark.parametrize(
    "change",
    [
        {"people": ["../x"]},
        {"people": "an"},
        {"people": [1]},
        {"people": []},
        {"former": "bo"},
        {"former": [None]},
        {"name": "../s"},
        {"seed": -1},
        {"seed": "1"},
        {"seed": 2**70},
        {"instructions": None},
        {"rows": []},
        {"rows": {}},
        {"rows": [1]},
        {"questions": []},
        {"rows": [{"item_id": "a"}, {"item_id": "b", "x": "y"}]},
        {"rows": [{"sentence": "a"}]},
        {"rows": [{"item_id": "a", "s": "\ud800"}]},
        {"questions": [{"name": "q", "asked": "?"}]},
        {"questions": [{"name": "q", "asked": "?", "choices": "abc"}]},
        {"questions": [{"name": "q", "asked": "?", "choices": [], "lowest": "0", "highest": 1}]},
        {"questions": [{"name": "q", "asked": "?", "choices": [], "lowest": 0}]},
        {"questions": {"q": "?"}},
        {"more": 1},
    ],
)
def test_a_record_that_was_changed_is_refused_with_its_file(sent, change):
    path = sent.with_name("sheet.json")
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | change), "utf-8")
    with pytest.raises(BadInput) as refused:
        sheets.opened(path.parent.parent, "s")
    assert str(refused.value).startswith(f"{path}: ")
    assert "put back the one that was written" in str(refused.value)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "1" * 5000, '{"name": "s", "name": "t"}', "null", ""]
)
def test_a_record_that_is_no_record_is_refused(sent, text):
    sent.with_name("sheet.json").write_text(text)
    with pytest.raises(BadInput, match=r"sheet.json: is no record of a sheet"):
        sheets.read(sent.parent.parent, "s")


@pytest.mark.parametrize(
    "change",
    [
        # XML has no place for it, so that a file could be written and not be read.
        {"rows": ROWS.assign(sentence="\uffff")},
        {"rows": ROWS.assign(sentence="\ufeff甲")},
        {"questions": [Question("q", "\x1b")]},
        {"questions": [Question("q ", "?")]},
        {"questions": [Question("q", "?", choices=("A", "Ａ"))]},
        {"instructions": "\x00"},
    ],
)
def test_what_would_not_come_back_does_not_go_out(tmp_path, change):
    call = {"name": "one", "rows": ROWS, "questions": ASKED, "people": ["a"], "seed": 1} | change
    with pytest.raises(BadInput, match=str(tmp_path / "one")):
        sheets.write(tmp_path, **call)
    assert not list(tmp_path.iterdir())


def test_a_question_may_begin_like_a_formula(tmp_path):
    asked = [Question("-q", "?", choices=("=a", "@b"))]
    (path,) = sheets.write(tmp_path, "s", ROWS, asked, ["a"], 1)
    book = load_workbook(path)
    for row in (2, 3, 4):
        book[ANSWERS].cell(row, 3).value = "'=a"
    book.save(path)
    found = sheets.read(tmp_path, "s")
    assert set(found.answers.answer) == {"=a"}
    assert found.to_mend.empty


def test_a_file_that_does_not_say_when_it_was_saved_has_the_time_of_the_file(sent):
    stream = io.BytesIO()
    with zipfile.ZipFile(sent) as old, zipfile.ZipFile(stream, "w") as new:
        for name in old.namelist():
            raw = old.read(name)
            if "core" not in name:
                new.writestr(name, re.sub(rb"<(Override|Relationship) [^>]*core[^>]*/>", b"", raw))
    sent.write_bytes(stream.getvalue())
    os.utime(sent, (1_750_000_000, 1_750_000_000))
    assert set(read(sent)[0].when) == {"2025-06-15T15:06:40+00:00"}
