"""Sheets for people: what goes out, what comes back, what has to be fixed; right answers stay."""

import io
import json
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
from bench.curate.sheets import ANSWERS, CHOICES, KEY, READ_ME, Question

TEXTS = ["甲乙丙", "=1+1", "第三句", "第四句", "第五句", "第六句\n两行"]
ROWS = pd.DataFrame({"item_id": [f"d{k}" for k in range(1, 7)], "sentence": TEXTS})
ASKED = [
    Question("kind", "Of what kind is it?", choices=("口味", "礼仪", "=健康")),
    Question("severity", "How severe is it?", lowest=0, highest=10),
    Question("remark", "What else?", required=False),
]
RIGHT = {"kind": "口味", "severity": 4.5, "remark": "好"}
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


def fill(folder, person, answers=RIGHT, name="s"):
    path = folder / name / f"{person}.xlsx"
    sheets.fill(path, sheets.load(folder, name), person, lambda row: answers)
    return path


def edit(path, change):
    """Change the page of the answers: `change(page, column of a name, row of a text)`."""
    book = load_workbook(path)
    page = book[ANSWERS]
    columns = {cell.value: cell.column for cell in page[1]}
    rows = {page.cell(row, columns["sentence"]).value: row for row in range(2, page.max_row + 1)}
    change(page, columns, rows)
    book.save(path)


def type_in(path, number_format="", **cells):
    """Write into the first row of a file, one cell per question."""

    def change(page, columns, rows):
        for name, value in cells.items():
            cell = page.cell(2, columns[name])
            cell.value = value
            cell.number_format = number_format or cell.number_format

    edit(path, change)


def repack(path, change, part=PAGE):
    """Change a part of a workbook."""
    stream = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            raw = old.read(name)
            new.writestr(name, change(raw) if name == part else raw)
    path.write_bytes(stream.getvalue())


def read_bo(path):
    """Return the answers of bo and all problems; those of 安娜 are right."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        returned = sheets.read(path.parent.parent, "s")
    assert (returned.answers.person == "安娜").sum() == 18
    assert "安娜" not in set(returned.to_mend.person)
    return returned.answers[returned.answers.person == "bo"], returned.to_mend


def problems(returned):
    columns = ["person", "item_id", "column", "what"]
    return sorted(returned.to_mend[columns].itertuples(index=False, name=None))


def test_a_sheet_has_validated_cells_locked_texts_and_no_formula(folder):
    book = load_workbook(folder / "s" / "安娜.xlsx")
    page = book[ANSWERS]
    assert book.sheetnames == [READ_ME, ANSWERS, CHOICES]
    assert [cell.value for cell in page[1]] == [KEY, "sentence", "kind", "severity", "remark"]
    assert page.protection.sheet
    assert page.column_dimensions["A"].hidden
    assert page["B2"].protection.locked
    assert not page["C2"].protection.locked
    rules = {str(rule.sqref): rule for rule in page.data_validations.dataValidation}
    assert (rules["C2:C7"].type, rules["C2:C7"].formula1) == ("list", "choices!$A$1:$A$3")
    decimal = rules["D2:D7"]
    assert (decimal.type, decimal.formula1, decimal.formula2) == ("decimal", "0", "10")
    assert not [cell for row in page.iter_rows() for cell in row if cell.data_type == "f"]
    assert "Judge by yourself." in [cell.value for cell in book[READ_ME]["B"]]


def test_people_see_the_same_rows_in_different_orders_that_the_seed_fixes(folder, tmp_path):
    def order(place, person):
        page = load_workbook(place / "s" / f"{person}.xlsx")[ANSWERS]
        return [page.cell(row, 2).value for row in range(2, 8)]

    anna, bo = order(folder, "安娜"), order(folder, "bo")
    assert sorted(anna) == sorted(bo)
    assert anna != bo
    sheets.write(tmp_path / "again", "s", ROWS, ASKED, ["安娜"], 3)
    assert order(tmp_path / "again", "安娜") == anna


def test_right_answers_come_back_each_once(folder):
    fill(folder, "安娜", {"kind": "口味", "severity": 4.5})
    fill(folder, "bo", {"kind": "=健康", "severity": 10, "remark": "+ 很好"})
    returned = sheets.read(folder, "s")
    assert returned.to_mend.empty
    assert returned.missing == []
    assert len(returned.answers) == 6 * 2 + 6 * 3
    assert set(returned.wide("severity").bo) == {"10"}
    assert set(returned.wide("severity")["安娜"]) == {"4.5"}
    assert returned.answers_to("kind")["d1", "bo"] == "=健康"


def test_a_question_may_begin_like_a_formula(tmp_path):
    (path,) = sheets.write(tmp_path, "s", ROWS, [Question("-q", "?", ("=a", "@b"))], ["a"], 1)
    type_in(path, **{"'-q": "'=a"})
    assert set(sheets.read(tmp_path, "s").answers.answer) == {"=a"}


def test_every_fault_is_listed_with_its_place_and_all_else_is_taken(back):
    def spoil(page, columns, rows):
        page.cell(rows["甲乙丙"], columns["severity"]).value = 11
        page.cell(rows["'=1+1"], columns["kind"]).value = "别的"
        page.cell(rows["第三句"], columns["severity"]).value = None
        page.cell(rows["第四句"], columns["sentence"]).value = "第四句。"
        page.cell(rows["第五句"], columns["kind"]).value = "=A1"
        page.delete_rows(rows["第六句\n两行"])

    edit(back, spoil)
    answers, mend = read_bo(back)
    listed = mend[["item_id", "column", "what"]].itertuples(index=False, name=None)
    assert sorted(listed) == [
        ("d1", "severity", "is not allowed"),
        ("d2", "kind", "is not allowed"),
        ("d3", "severity", "is empty"),
        ("d4", "sentence", "its text was changed, so the row's answers wait until it is put back"),
        ("d5", "kind", "holds a formula instead of a value"),
        ("d6", "", "the row is missing"),
    ]
    wrong = mend[mend.item_id == "d1"].iloc[0]
    assert (wrong.person, wrong.file, wrong.value) == ("bo", "bo.xlsx", "11")
    assert (wrong.allowed, wrong.row > 1) == ("a number from 0 to 10", True)
    taken = answers[answers.question != "remark"]
    assert sorted(taken.item_id + taken.question) == sorted(
        ["d1kind", "d2severity", "d3kind", "d5severity"]
    )


def test_unlike_doubles_give_no_answer_and_an_empty_double_takes_none_away(back):
    def double(page, columns, rows):
        for text, severity in (("甲乙丙", 9), ("第三句", None)):
            line = [page.cell(rows[text], at).value for at in range(1, 6)]
            line[columns["severity"] - 1] = severity
            page.append(line)

    edit(back, double)
    answers, mend = read_bo(back)
    severity = answers[answers.question == "severity"].set_index("item_id").answer
    assert "d1" not in severity
    assert severity["d3"] == "4.5"
    assert mend.what.str.contains("unlike answers; none is taken").sum() == 1


def test_rows_of_another_person_and_of_another_sheet_are_foreign(folder, back):
    sheets.write(folder, "other", ROWS[:1], ASKED[1:2], ["bo"], 3)
    other = load_workbook(folder / "other" / "bo.xlsx")[ANSWERS]["A2"].value
    of_anna = [cell.value for cell in load_workbook(folder / "s" / "安娜.xlsx")[ANSWERS][2]]

    def add(page, columns, rows):
        page.append(of_anna)
        page.append([other, "甲乙丙", "口味", 1, None])

    edit(back, add)
    answers, mend = read_bo(back)
    assert sorted(mend.what) == [
        "is a row of the sheet other, of bo; its answers are not taken",
        "is a row of 安娜, and this file is bo's; its answers are not taken",
    ]
    assert (mend.item_id == "").sum() == 1, "the other sheet's item is none of this one"
    assert len(answers) == 18


def test_files_may_come_back_renamed_swapped_and_twice(folder, back):
    before = sheets.read(folder, "s").answers
    back.rename(back.with_name("tmp"))
    back.with_name("安娜.xlsx").rename(back)
    back.with_name("tmp").rename(back.with_name("安娜.xlsx"))
    pd.testing.assert_frame_equal(sheets.read(folder, "s").answers, before)
    back.with_name("安娜.xlsx").rename(back.with_name("final.XLSX"))
    for name in ("bo (1).xlsx", "~$final.xlsx"):
        shutil.copy(back.with_name("final.XLSX"), back.with_name(name))
    returned = sheets.read(folder, "s")
    pd.testing.assert_frame_equal(returned.answers, before)
    assert set(returned.to_mend.what) == {"the row is there more than once"}


def test_filled_sheets_are_not_overwritten(folder, back):
    before = back.read_bytes()
    with pytest.raises(BadInput, match="give this one another name"):
        sheets.write(folder, "s", ROWS[:2], ASKED, ["bo"], 3)
    sheets.ask(folder, "s", ["bo", "third"])
    assert back.read_bytes() == before


def test_who_gives_up_is_replaced_and_may_return(folder):
    fill(folder, "安娜")
    fill(folder, "bo", {"kind": "口味"})
    sheets.ask(folder, "s", ["安娜", "third"])
    returned = sheets.read(folder, "s")
    # What bo filled in does not count, nor is it to be fixed; the file stays.
    assert set(returned.answers.person) == {"安娜"}
    assert problems(returned) == [("third", "", "", "nothing is filled in yet")]
    assert (folder / "s" / "bo.xlsx").exists()
    sheets.ask(folder, "s", ["安娜", "third", "bo"])
    assert (sheets.read(folder, "s").answers.person == "bo").sum() == 6
    with pytest.raises(BadInput, match="cannot name a file"):
        sheets.ask(folder, "s", ["../x"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"people": ["../x"]}, "cannot name a file"),
        ({"people": ["a", "A"]}, "each once"),
        ({"people": []}, "each once"),
        ({"name": "con"}, "cannot name a file"),
        ({"questions": [Question("sentence", "?")]}, "no other column's"),
        ({"questions": [Question("q ", "?")]}, "no other column's"),
        ({"questions": []}, "no other column's"),
        ({"questions": [Question("q", "?", ("A", "Ａ"))]}, "choices that differ"),
        ({"rows": ROWS.assign(item_id="x")}, "twice or has no name"),
        ({"rows": ROWS.assign(sentence="\uffff")}, "control character"),
        ({"rows": ROWS.assign(sentence="\ufeff甲")}, "byte order mark"),
        ({"rows": ROWS[:0]}, "no rows"),
        ({"instructions": "\x00"}, "control character"),
    ],
)
def test_what_would_not_come_back_does_not_go_out(tmp_path, change, message):
    call = {"name": "s", "rows": ROWS, "questions": ASKED, "people": ["a"], "seed": 1} | change
    with pytest.raises(BadInput, match=message) as refused:
        sheets.write(tmp_path, **call)
    assert str(tmp_path) in str(refused.value)
    assert not list(tmp_path.iterdir())


QUESTION = {"name": "q", "asked": "?", "choices": []}


@pytest.mark.parametrize(
    "change",
    [
        *({"people": people} for people in (["../x"], "an", [1], [])),
        *({"former": former} for former in ("bo", [None])),
        *({"seed": seed} for seed in (-1, "1", 2**70)),
        *({"rows": rows} for rows in ([], {}, [1], [{"sentence": "a"}])),
        {"rows": [{"item_id": "a"}, {"item_id": "b", "x": "y"}]},
        {"rows": [{"item_id": "a", "s": "\ud800"}]},
        *({"questions": [QUESTION | more]} for more in ({"choices": "abc"}, {"lowest": 0})),
        *({"questions": [QUESTION | {"lowest": low, "highest": 1}]} for low in ("0", None)),
        *({"questions": questions} for questions in ([], {"q": "?"})),
        {"instructions": None},
        {"name": "../s"},
        {"more": 1},
        *("[" * 100_000, "1" * 5000, '{"name": "s"}', "null", ""),
    ],
)
def test_a_changed_record_is_refused_with_its_file(folder, change):
    path = folder / "s" / sheets.RECORD
    record = json.loads(path.read_text("utf-8"))
    path.write_text(change if isinstance(change, str) else json.dumps(record | change), "utf-8")
    with pytest.raises(BadInput, match="put back the one that was written") as refused:
        sheets.read(folder, "s")
    assert str(refused.value).startswith(f"{path}: is no record of a sheet")


@pytest.mark.parametrize(
    ("value", "number_format", "taken", "listed"),
    [
        ("７．５", "", "7.5", None),
        (" 4.50 ", "", "4.50", None),
        (5, "0.00", "5", None),
        # 5 % is seen, and is not 0.05.
        (0.05, "0%", None, "5%"),
        (0.455, "0.0%", None, "45.5%"),
        (5, "0%", None, "500%"),
        *((text, "", None, text) for text in ("4,5", "４，５", "5分", "٣", "1_0", "#N/A", "=4.5")),
        (datetime(2026, 5, 4), "", None, "2026-05-04 00:00:00"),
        (True, "", None, "True"),
        (1e999, "", None, ""),
    ],
)
def test_a_number_is_taken_as_it_is_seen_or_listed(back, value, number_format, taken, listed):
    type_in(back, number_format, severity=value)
    answers, mend = read_bo(back)
    severity = list(answers[answers.question == "severity"].answer)
    assert [answer for answer in severity if answer != "4.5"] == ([taken] if taken else [])
    assert len(severity) == (6 if taken else 5)
    assert list(zip(mend.column, mend.value, strict=True)) == [("severity", listed)] * (not taken)


def test_invisible_characters_of_a_text_become_blanks_so_that_it_can_go_out_again(back):
    type_in(back, remark="甲\x85乙\x9b31m\r\n丙\x7f")
    answers, mend = read_bo(back)
    assert "甲 乙 31m\n丙" in set(answers.answer)
    assert mend.empty
    said = list(answers[answers.question == "remark"].answer)
    rows = pd.DataFrame({"item_id": list("abcdef"), "said": said})
    sheets.write(back.parent.parent, "again", rows, ASKED, ["an"], 1)


@pytest.mark.parametrize(
    "cell",
    [
        't="str"><v>甲乙丙</v>',
        't="s"><v>0</v>',
        't="inlineStr"><is><r><t>甲</t></r><r><rPr><b/></rPr><t>乙丙</t></r></is>',
    ],
)
def test_texts_may_be_written_in_the_ways_of_other_programs(back, cell):
    ours = 't="inlineStr"><is><t>甲乙丙</t></is>'
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    shared = f'<sst xmlns="{main}"><si><t>甲乙丙</t><phoneticPr fontId="1"/></si></sst>'
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    table = f'<Override PartName="/xl/sharedStrings.xml" ContentType="{kind}"/></Types>'
    repack(back, lambda raw: raw.replace(ours.encode(), cell.encode()))
    repack(back, lambda raw: raw.replace(b"</Types>", table.encode()), "[Content_Types].xml")
    # Excel writes lists of choices in a form that openpyxl warns of.
    extension = b'<extLst><ext uri="{CCE6A557-97BC-4b89-ADB6-D9C93CAAB3DF}"/></extLst></worksheet>'
    repack(back, lambda raw: raw.replace(b"</worksheet>", extension))
    with zipfile.ZipFile(back, "a") as book:
        assert ours.encode() not in book.read(PAGE)
        book.writestr("xl/sharedStrings.xml", shared)
    answers, mend = read_bo(back)
    assert len(answers) == 18, mend.what.tolist()
    assert mend.empty


def test_of_endless_rows_a_thousand_are_listed(back):
    row = b'<row><c t="str"><v>x</v></c></row>'
    repack(back, lambda raw: raw.replace(b"</sheetData>", row * 1500 + b"</sheetData>"))
    answers, mend = read_bo(back)
    assert len(answers) == 18
    assert len(mend) == 1001
    assert "500 more things are to be fixed; the first 1,000 are listed" in set(mend.what)


@pytest.mark.parametrize(
    ("added", "what"),
    [
        (b" " * (65 * 2**20), "cannot be read: part xl/worksheets/sheet2.xml: unpacks to "),
        (b'<row r="1048577"/>', "cannot be read: "),
        (b"<row>", "cannot be read as xlsx"),
    ],
)
def test_a_bomb_is_one_line_and_its_sender_is_not_reported_as_late(back, added, what):
    repack(back, lambda raw: raw.replace(b"</sheetData>", added + b"</sheetData>"))
    answers, mend = read_bo(back)
    assert answers.empty
    (row,) = mend.itertuples()
    assert (row.person, row.file) == ("bo", "bo.xlsx")
    assert row.what.startswith(what)


def test_other_formats_are_named_and_broken_files_do_not_stop_the_others(back):
    for name in ("bo.ods", "bo.CSV", "notes.txt", ".~lock.bo.xlsx#"):
        back.with_name(name).write_bytes(b"x")
    back.with_name("folder.xlsx").mkdir()
    back.with_name("broken.xlsx").write_bytes(b"no zip")
    answers, mend = read_bo(back)
    assert len(answers) == 18
    what = dict(zip(mend.file, mend.what, strict=True))
    assert set(what) == {"bo.CSV", "bo.ods", "broken.xlsx", "folder.xlsx"}
    assert what["bo.ods"] == "is no xlsx file; save it as one (Excel workbook, .xlsx)"
    assert what["broken.xlsx"].startswith("cannot be read")
    assert what["folder.xlsx"] == "cannot be read: is no file"


def test_a_file_that_does_not_say_when_it_was_saved_has_the_time_of_the_file(back):
    stream = io.BytesIO()
    with zipfile.ZipFile(back) as old, zipfile.ZipFile(stream, "w") as new:
        for name in (name for name in old.namelist() if "core" not in name):
            raw = re.sub(rb"<(Override|Relationship) [^>]*core[^>]*/>", b"", old.read(name))
            new.writestr(name, raw)
    back.write_bytes(stream.getvalue())
    os.utime(back, (1_750_000_000, 1_750_000_000))
    assert set(read_bo(back)[0].when) == {"2025-06-15T15:06:40+00:00"}
