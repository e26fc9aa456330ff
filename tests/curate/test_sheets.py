"""Sheets for people: what goes out, what comes back, and what is to be mended, with nothing lost that was right."""

import shutil

import pandas as pd
import pytest
from openpyxl import load_workbook

from bench.core.errors import BadInput
from bench.curate import sheets
from bench.curate.workbook import ANSWERS, CHOICES, KEY, READ_ME, Question

ROWS = pd.DataFrame(
    {
        "item_id": [f"diet:{k}" for k in range(1, 7)],
        "sentence": ["甲乙丙", "=1+1", "第三句", "第四句", "第五句", "第六句\n两行"],
    }
)
KIND = Question("kind", "Of what kind is it?", choices=("口味", "礼仪", "=健康"))
SEVERITY = Question("severity", "How severe is it?", lowest=0, highest=10)
REMARK = Question("remark", "What else?", required=False)
PEOPLE = ["安娜", "bo"]


@pytest.fixture
def folder(tmp_path):
    sheets.write(
        tmp_path, "severity-1", ROWS, [KIND, SEVERITY, REMARK], PEOPLE, 3, "Judge by yourself."
    )
    return tmp_path


def fill(folder, person, answers=None, name="severity-1"):
    sheet = sheets.opened(folder, name)
    path = folder / name / f"{person}.xlsx"
    sheets.fill(path, sheet, person, answers or (lambda row: {"kind": "口味", "severity": 4.5}))
    return path


def edit(path, change):
    """Change the page of the answers: `change(page, column of a name, row of a text)`."""
    book = load_workbook(path)
    page = book[ANSWERS]
    columns = {cell.value: cell.column for cell in page[1]}
    rows = {page.cell(row, columns["sentence"]).value: row for row in range(2, page.max_row + 1)}
    change(page, columns, rows)
    book.save(path)


def faults(found):
    return [
        tuple(row)
        for row in found.to_mend[["person", "item_id", "column", "what"]].itertuples(index=False)
    ]


def test_a_sheet_has_validated_cells_locked_texts_and_no_formula(folder):
    book = load_workbook(folder / "severity-1" / "安娜.xlsx")
    assert book.sheetnames == [READ_ME, ANSWERS, CHOICES]
    page = book[ANSWERS]
    assert [cell.value for cell in page[1]] == [KEY, "sentence", "kind", "severity", "remark"]
    assert page.protection.sheet
    assert page.column_dimensions["A"].hidden
    assert page["B2"].protection.locked
    assert not page["C2"].protection.locked
    rules = {str(one.sqref): one for one in page.data_validations.dataValidation}
    assert rules["C2:C7"].type == "list"
    assert rules["C2:C7"].formula1 == "choices!$A$1:$A$3"
    assert (rules["D2:D7"].type, rules["D2:D7"].formula1, rules["D2:D7"].formula2) == (
        "decimal",
        "0",
        "10",
    )
    assert not [cell for row in page.iter_rows() for cell in row if cell.data_type == "f"]
    assert "Judge by yourself." in [cell.value for cell in book[READ_ME]["B"]]


def test_people_see_the_same_rows_in_unlike_orders_that_the_seed_fixes(folder, tmp_path):
    def order(place, person):
        page = load_workbook(place / "severity-1" / f"{person}.xlsx")[ANSWERS]
        return [page.cell(row, 2).value for row in range(2, 8)]

    anna, bo = order(folder, "安娜"), order(folder, "bo")
    assert sorted(anna) == sorted(bo)
    assert anna != bo
    again = tmp_path / "again"
    sheets.write(
        again, "severity-1", ROWS, [KIND, SEVERITY, REMARK], PEOPLE, 3, "Judge by yourself."
    )
    assert order(again, "安娜") == anna


def test_right_answers_come_back_each_once(folder):
    fill(folder, "安娜")
    fill(folder, "bo", lambda row: {"kind": "=健康", "severity": 10, "remark": "+ 很好"})
    found = sheets.read(folder, "severity-1")
    assert found.to_mend.empty
    assert len(found.answers) == 6 * 2 + 6 * 3
    assert set(found.wide("severity").bo) == {"10"}
    assert set(found.wide("severity")["安娜"]) == {"4.5"}
    assert set(found.wide("kind").bo) == {"=健康"}
    assert set(found.wide("remark").bo.dropna()) == {"+ 很好"}
    assert found.answers.when.str.match(r"\d{4}-\d\d-\d\dT").all()


def test_what_has_not_come_back_is_told_in_a_line_a_person(folder):
    (folder / "severity-1" / "bo.xlsx").unlink()
    found = sheets.read(folder, "severity-1")
    assert faults(found) == [
        ("bo", "", "", "has not come back"),
        ("安娜", "", "", "nothing is filled in yet"),
    ]
    assert found.answers.empty


def test_every_fault_is_listed_and_nothing_right_is_lost(folder):
    fill(folder, "安娜")
    path = fill(folder, "bo")

    def spoil(page, columns, rows):
        page.cell(rows["甲乙丙"], columns["severity"]).value = "11"
        page.cell(rows["'=1+1"], columns["kind"]).value = "=A1"
        page.cell(rows["第三句"], columns["severity"]).value = None
        page.cell(rows["第四句"], columns["sentence"]).value = "别的句子"
        page.append([page.cell(rows["第五句"], at).value for at in range(1, 6)])
        page.delete_rows(rows["第六句\n两行"])
        page.append(["0123456789abcdef", "外来的", "口味", 3])

    edit(path, spoil)
    found = sheets.read(folder, "severity-1")
    assert sorted(faults(found)) == sorted(
        [
            ("bo", "", "", "is a row of no sheet that is known here; its answers are not taken"),
            ("bo", "diet:1", "severity", "is not allowed"),
            ("bo", "diet:2", "kind", "holds a formula instead of a value"),
            ("bo", "diet:3", "severity", "is empty"),
            (
                "bo",
                "diet:4",
                "sentence",
                "its text was changed, so the row's answers wait until it is put back",
            ),
            ("bo", "diet:5", "", "the row is there more than once"),
            ("bo", "diet:6", "", "the row is missing"),
        ]
    )
    wrong = found.to_mend[found.to_mend.item_id == "diet:1"].iloc[0]
    assert (wrong.value, wrong.allowed) == ("11", "a number from 0 to 10")
    assert wrong.row > 1
    of_bo = found.answers[found.answers.person == "bo"]
    assert sorted(zip(of_bo.item_id, of_bo.question, strict=True)) == [
        ("diet:1", "kind"),
        ("diet:2", "severity"),
        ("diet:3", "kind"),
        ("diet:5", "kind"),
        ("diet:5", "severity"),
    ]
    assert len(found.answers[found.answers.person == "安娜"]) == 12


def test_a_doubled_row_with_unlike_answers_gives_none_and_an_empty_double_takes_none_away(folder):
    path = fill(folder, "安娜")

    def double(page, columns, rows):
        for text, severity in (("甲乙丙", 9), ("第三句", None)):
            line = [page.cell(rows[text], at).value for at in range(1, 6)]
            line[columns["severity"] - 1] = severity
            page.append(line)

    edit(path, double)
    severity = sheets.read(folder, "severity-1").wide("severity")["安娜"]
    assert "diet:1" not in severity
    assert severity["diet:3"] == "4.5"
    assert len(severity) == 5


def test_rows_of_another_person_and_of_another_round_are_foreign(folder):
    sheets.write(folder, "severity-2", ROWS[:1], [SEVERITY], ["bo"], 3)
    anna, bo = fill(folder, "安娜"), fill(folder, "bo")
    other = load_workbook(folder / "severity-2" / "bo.xlsx")[ANSWERS]["A2"].value
    page = load_workbook(anna)[ANSWERS]
    lines = [[cell.value for cell in page[2]], [other, "甲乙丙", "口味", 1, None]]

    def add(page, columns, rows):
        for line in lines:
            page.append(line)

    edit(bo, add)
    found = sheets.read(folder, "severity-1")
    assert sorted(what for *_, what in faults(found)) == [
        "is a row of the sheet severity-2, of bo; its answers are not taken",
        "is a row of 安娜, and this file is bo's; its answers are not taken",
    ]
    assert len(found.answers) == 24


def test_files_may_come_back_renamed_sorted_and_twice(folder, tmp_path):
    path = fill(folder, "bo", lambda row: {"kind": "礼仪", "severity": "７．５"})
    back = tmp_path / "back"
    back.mkdir()
    for name in ("bo (1).xlsx", "final.xlsx", "~$final.xlsx"):
        shutil.copy(path, back / name)
    found = sheets.read(folder, "severity-1", back)
    assert set(found.wide("severity").bo) == {"7.5"}
    assert len(found.wide("severity")) == 6
    assert {what for person, *_, what in faults(found) if person == "bo"} == {
        "the row is there more than once"
    }


def test_a_broken_file_is_told_and_the_others_are_read(folder):
    fill(folder, "安娜")
    (folder / "severity-1" / "bo.xlsx").write_bytes(b"no zip")
    found = sheets.read(folder, "severity-1")
    assert len(found.answers) == 12
    assert any(
        (person == "bo" and what.startswith("cannot be read ("))
        or what.startswith("cannot be read as")
        for person, *_, what in faults(found)
    )


def test_a_sheet_that_is_filled_in_is_never_written_over(folder):
    path = fill(folder, "bo")
    before = path.read_bytes()
    sheets.write(
        folder,
        "severity-1",
        ROWS,
        [KIND, SEVERITY, REMARK],
        ["bo", "third"],
        3,
        "Judge by yourself.",
    )
    assert path.read_bytes() == before
    with pytest.raises(BadInput, match="holds another sheet of this name"):
        sheets.write(folder, "severity-1", ROWS[:2], [SEVERITY], ["bo"], 3)


def test_one_who_gives_up_is_replaced_and_no_longer_waited_for(folder):
    fill(folder, "安娜")
    fill(folder, "bo", lambda row: {"kind": "口味"})
    sheets.ask(folder, "severity-1", ["安娜", "third"])
    found = sheets.read(folder, "severity-1")
    # The half that bo filled in does not count, nor is it to be mended; the file stays.
    assert set(found.answers.person) == {"安娜"}
    assert faults(found) == [("third", "", "", "nothing is filled in yet")]
    assert (folder / "severity-1" / "bo.xlsx").exists()
    fill(folder, "third")
    assert set(sheets.read(folder, "severity-1").answers.person) == {"安娜", "third"}
    # Back again, with what was answered.
    sheets.ask(folder, "severity-1", ["安娜", "third", "bo"])
    found = sheets.read(folder, "severity-1")
    assert (found.answers.person == "bo").sum() == 6
    with pytest.raises(BadInput, match="cannot name a file"):
        sheets.ask(folder, "severity-1", ["../x"])
    assert sheets.opened(folder, "severity-1").people == ["安娜", "third", "bo"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"people": ["../x"]}, "cannot name a file"),
        ({"people": ["a", "A"]}, "each once"),
        ({"name": "con"}, "cannot name a file"),
        ({"questions": [Question("sentence", "?")]}, "no other column's"),
        ({"rows": ROWS.assign(item_id="x")}, "twice or has no name"),
        ({"rows": ROWS.assign(sentence="\x1b[0m")}, "control character"),
        ({"rows": ROWS[:0]}, "no rows"),
    ],
)
def test_what_can_be_no_sheet_is_refused(tmp_path, change, message):
    call = {
        "name": "one",
        "rows": ROWS,
        "questions": [SEVERITY],
        "people": ["a"],
        "seed": 1,
    } | change
    with pytest.raises(BadInput, match=message):
        sheets.write(tmp_path, **call)
    assert not list(tmp_path.rglob("*.xlsx"))


def test_a_record_that_was_changed_by_hand_is_refused(folder):
    (folder / "severity-1" / "sheet.json").write_text('{"name": 1}')
    with pytest.raises(BadInput, match="is no record of a sheet"):
        sheets.read(folder, "severity-1")
