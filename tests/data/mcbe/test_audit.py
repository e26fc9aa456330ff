"""The audit of McBE: each finding by a small hostile file, and that nothing stops it."""

from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.core.errors import BadInput
from bench.data import SAMPLES, mcbe
from bench.data.mcbe.audit import check
from tests.data.mcbe.test_load import COLUMNS, write
from tests.helpers.recorded import GOOD

# Ten different rows, two a label, in which nothing is odd.
ROWS = [GOOD | {"context": f"第{k}次开会时，", "sentence": f"[PLH]说了{k}句。"} for k in range(10)]


def found(folder: Path, kind: str = "odd", **settings: str) -> list[tuple[str, int, str, str]]:
    """(file, row, column, what) of the findings of a kind, but for categories that are missing."""
    findings = check(folder, **settings).query(
        "kind == @kind and not what.str.endswith('has no file that is read')"
    )
    return list(findings[["file", "row", "column", "what"]].itertuples(index=False, name=None))


def odd(folder: Path, row: int, column: str, **settings: str) -> list[str]:
    return [what for _, *place, what in found(folder, **settings) if place == [row, column]]


def test_a_sound_folder_has_nothing_but_its_numbers(tmp_path: Path) -> None:
    for category in mcbe.CATEGORIES:
        rows = [GOOD | {"sentence": f"{category}[PLH]{k}。"} for k in range(10)]
        write(tmp_path / f"{category}.csv", *rows)
    findings = check(tmp_path).query("not what.str.contains('no multiple of')")
    assert list(findings.columns) == ["file", "row", "column", "kind", "what", "value"]
    assert findings[["file", "row", "column", "kind"]].drop_duplicates().values.tolist() == [
        ["", 0, "", "count"]
    ]
    assert list(findings.what) == [
        "120 rows found, the release has 4,077",
        "12 categories found, the release has 12",
        "12 subcategories found, the release has 82",
    ]
    assert list(findings.value) == ["120", "12", "12"]


def test_the_samples_have_no_refused_row_and_are_told_from_the_release() -> None:
    findings = check(SAMPLES / "mcbe")
    assert list(findings[findings.kind == "count"].value) == ["96", "12", "57"]
    what = findings[findings.kind == "odd"].what
    assert what.str.contains("no multiple of").sum() == 3
    assert what.str.contains("no other row has").sum() == 25
    assert len(findings) == 3 + 3 + 25


@pytest.mark.parametrize("suffix", ["csv", "xlsx"])
def test_every_refused_row_is_listed_as_the_loader_says_it(
    tmp_path: Path, refusal, suffix: str
) -> None:
    bad = {"score": "11", "words": "", "sentence": "无", "subtype": " "}
    rows = [GOOD | {column: cell} for column, cell in bad.items()]
    folder = write(tmp_path / f"age.{suffix}", GOOD, *rows)
    refused = found(folder, "refused")
    places = [(f"age.{suffix}", row, column) for row, column in enumerate(bad, start=2)]
    assert [finding[:3] for finding in refused] == places
    for (*_, column, what), row in zip(refused, rows, strict=True):
        message = refusal(mcbe.load, write(tmp_path / f"one/age.{suffix}", GOOD, row), ["age"])
        assert f"row 2, column `{column}`: {what}; " in message
    assert "1 rows found and 4 refused, the release has 4,077" in set(check(folder).what)


def test_a_row_of_another_length_is_refused_and_the_others_are_looked_at(tmp_path: Path) -> None:
    folder = write(tmp_path / "age.csv", GOOD)
    with (folder / "age.csv").open("a", encoding="utf-8") as stream:
        stream.write("a,b\n会后，,[PLH]走了。,甲,职场,说明。,1\n")
    assert found(folder, "refused") == [("age.csv", 2, "", "has 2 cells, the header has 6")]
    assert odd(folder, 3, "words") == ["lists one word, so that the row has no place in pc and ss"]


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("age.csv", b"", "is empty; expected a header"),
        ("age.csv", ",".join(COLUMNS).encode(), "has a header but no rows"),
        ("age.csv", b'"con\x1b[2J\ntext",words\n1,2\n', "found: con\\x1b[2J\\ntext, words"),
        ("age.csv", "开".encode("gbk"), "line 1: not UTF-8"),
        ("age.xlsx", b"no zip", "cannot be read as xlsx"),
        ("dataset.toml", b"name =", "not TOML"),
    ],
)
def test_a_file_that_cannot_be_read_is_a_finding_and_no_exception(
    tmp_path: Path, name: str, content: bytes, what: str
) -> None:
    write(tmp_path / f"race{Path(name).suffix.replace('toml', 'csv')}", GOOD)
    (tmp_path / name).write_bytes(content)
    (finding,) = found(tmp_path, "refused")
    assert finding[:3] == (name, 0, "")
    assert what in finding[3]
    assert "\x1b" not in finding[3]
    assert str(tmp_path) not in finding[3]


def test_a_folder_without_data_is_a_finding(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "gone"):
        assert found(folder, "refused")[0][3].startswith("the folder holds no data of McBE;")
        assert list(check(folder).query("kind == 'count'").value) == ["0", "0", "0"]


# Change of a row, column, and words of the finding.
ODD = """
context= 开会时， | context | has blanks around it
subtype=职场\u3000 | subtype | has blanks around it
words=甲， 乙 | words | has blanks around a word
words=甲，，乙 | words | has an empty item in its list of words
words=甲，乙， | words | has an empty item in its list of words
words=甲,乙，丙 | words | is split into 2 at `，` alone, and into 3 at any separator
words=甲、乙 | words | is split into 1 at `，` alone, and into 2
words=甲；乙;丙 | words | is split into 1 at `，` alone, and into 3
words=甲 | words | lists one word, so that the row has no place in pc and ss
words=男人，人 | words | has a word that is part of another, '男人'
sentence=[PLH]和【PLH】 | sentence | holds '【PLH】', which looks like the placeholder
context=[PLH]来了。 | context | holds the placeholder [PLH], which is filled in
words=甲，[PLH] | words | holds the placeholder [PLH], which is filled in
context=【PLH】来了。 | context | looks like the placeholder
score=+4.5 | score | is not written as a plain number
score=4e0 | score | is not written as a plain number
score=04.5 | score | is not written as a plain number
explanation=红\x1b[31m色� | explanation | or broken characters: U+001B, U+FFFD
sentence=[PLH]LF说 | sentence | or broken characters: U+000A
subtype=职\u202e场 | subtype | or broken characters: U+202E
words=甲，乙\u200b | words | or broken characters: U+200B
context==HYPERLINK("x") | context | begins with `=`, which a spreadsheet may take
subtype=-1 | subtype | begins with `-`
words=@甲，乙 | words | begins with `@`
words=甲，=1+1 | words | begins with `=`
"""


@pytest.mark.parametrize("case", ODD.strip("\n").split("\n"))
def test_an_odd_cell_is_reported_and_read(tmp_path: Path, case: str) -> None:
    change, column, what = case.split(" | ")
    name, value = change.split("=", 1)
    value = value.replace("LF", "\n")
    rows = [GOOD | {"context": "前"}, GOOD | {"sentence": "[PLH]后"} | {name: value}, ROWS[2]]
    suffix = "csv" if "\x1b" in value else "xlsx" if name == "words" else "csv"
    folder = write(tmp_path / f"age.{suffix}", *rows)
    assert len([text for text in odd(folder, 2, column) if what in text]) == 1
    assert not odd(folder, 1, column)
    assert not found(folder, "refused")
    assert len(mcbe.load(folder, ["age"])) == 3


@pytest.mark.parametrize("score", ["4.5", "0", "10", "0.25", "4.333333333333333", "10.0", "-1"])
def test_a_plain_score_and_a_negative_one_are_not_odd(tmp_path: Path, score: str) -> None:
    assert not odd(write(tmp_path / "age.csv", GOOD | {"score": score}, GOOD), 1, "score")[1:]


def test_worldview_may_have_no_placeholder_and_one_word(tmp_path: Path) -> None:
    rows = [GOOD | {"sentence": "要趁早。", "words": ""}, GOOD | {"words": "丁克"}]
    folder = write(tmp_path / "worldview.csv", *rows)
    assert odd(folder, 1, "sentence") == ["has no placeholder [PLH], so that no word is filled in"]
    assert not odd(folder, 2, "words")
    assert not found(folder, "refused")


def test_a_row_that_repeats_an_earlier_one_is_reported_in_any_file(tmp_path: Path) -> None:
    write(tmp_path / "gender.csv", GOOD, ROWS[1], GOOD | {"score": " 4.50"})
    write(tmp_path / "race.csv", ROWS[1])
    rows = [GOOD | {"context": "后来，", "score": "5"}, GOOD | {"words": "甲， 乙"}]
    write(tmp_path / "age.csv", GOOD | {"words": "甲，丙"}, *rows)
    assert odd(tmp_path, 3, "") == ["repeats gender.csv, row 1"]
    assert odd(tmp_path, 1, "") == ["repeats gender.csv, row 2"]
    repeats = "repeats the sentence and the words of gender.csv, row 1"
    assert odd(tmp_path, 2, "sentence") == [f"{repeats} with another context, score"]
    assert odd(tmp_path, 3, "sentence") == [f"{repeats} written otherwise"]


def test_labels_that_can_be_confused_or_occur_once_are_reported_file_by_file(
    tmp_path: Path,
) -> None:
    labels = ["职场", "职场评价", "IT 业", "ｉｔ业", "其他"]
    rows = [row | {"subtype": label} for row, label in zip(ROWS, labels * 2, strict=True)]
    write(tmp_path / "age.csv", *rows, GOOD | {"subtype": "家庭"})
    write(tmp_path / "region.csv", *[row | {"context": "种", "subtype": "职"} for row in ROWS])
    assert odd(tmp_path, 0, "subtype") == [
        "is a label that is part of another, '职场评价': the released code takes one for the other",
        "is a label that differs from 'ｉｔ业' in case, width or blanks alone",
    ]
    once = [finding for finding in found(tmp_path) if "no other row has" in finding[3]]
    assert once == [("age.csv", 11, "subtype", "is a label that no other row has")]


def test_rows_that_other_separators_would_change_are_counted_once(tmp_path: Path) -> None:
    write(tmp_path / "age.csv", GOOD | {"words": "甲、乙"}, ROWS[1], GOOD | {"words": "甲,乙"})
    write(tmp_path / "race.csv", GOOD | {"words": "丙；乙"})
    for separators in mcbe.SETTINGS["separators"]:
        summary = [what for file, *_, what in found(tmp_path, separators=separators) if file == ""]
        assert summary == ["`--set separators=any` reads 3 rows otherwise than the default does"]


def test_a_column_that_is_not_read_is_named(tmp_path: Path) -> None:
    rows = [row | {"id": "7", "x\x1b[2J": "\x1b[2J"} for row in ROWS]
    folder = write(tmp_path / "age.csv", *rows)
    assert odd(folder, 0, "id") == ["is a column that is not read"]
    assert odd(folder, 0, "x\\x1b[2J") == ["is a column that is not read"]
    assert "U+001B" in odd(folder, 1, "x\\x1b[2J")[0]


def test_files_that_are_not_read_and_missing_categories_are_named(tmp_path: Path) -> None:
    for name in ("age.csv", "test.csv", "notes.xlsx", "Race.csv", "csv_files/sport.csv"):
        write(tmp_path / name, *ROWS)
    (tmp_path / "Gender.tsv").write_bytes(b"")
    assert found(tmp_path, "refused") == [
        ("Race.csv", 0, "", "category 'Race' is unknown; if it is race, write its name so")
    ]
    assert [finding for finding in found(tmp_path) if finding[0]] == [
        (
            "Gender.tsv",
            0,
            "",
            "is no category of McBE, and is not read; if it is gender, name it gender.xlsx or "
            "gender.csv",
        ),
        ("notes.xlsx", 0, "", "is no category of McBE, and is not read"),
        ("test.csv", 0, "", "is the demonstration file of the release, which is not counted"),
        ("csv_files/sport.csv", 0, "", "is no category of McBE, and is not read"),
    ]
    findings = check(tmp_path)
    assert findings.query("kind == 'count'").value.tolist() == ["10", "1", "1"]
    missing = findings[findings.what.str.endswith("has no file that is read")].what
    assert list(missing.str.split().str[1]) == [name for name in mcbe.CATEGORIES if name != "age"]


def test_a_second_file_of_a_category_is_named_where_it_differs_or_is_passed_over(
    tmp_path: Path,
) -> None:
    write(tmp_path / "xlsx_files/age.xlsx", *ROWS)
    write(tmp_path / "xlsx_files/region.xlsx", *ROWS)
    write(tmp_path / "csv_files/age.csv", *ROWS[:9])
    write(tmp_path / "csv_files/region.csv", *ROWS)
    write(tmp_path / "csv_files/gender.csv", *ROWS)
    (tmp_path / "region.csv").write_bytes(b"")
    second = [finding for finding in found(tmp_path) if finding[0].endswith(".csv")]
    first = "is not read, as xlsx_files/{}.xlsx goes first; rows: {}"
    assert [(file, what) for file, _, _, what in second] == [
        ("region.csv", first.format("region", "0 and 10")),
        ("csv_files/age.csv", first.format("age", "9 and 10")),
        ("csv_files/gender.csv", first.format("age", "10 and 0")),
    ]


@pytest.mark.parametrize(
    ("category", "rows", "times"),
    [("race", 150, 0), ("race", 151, 1), ("health", 270, 0), ("appearance", 234, 1), ("age", 7, 0)],
)
def test_a_number_of_rows_that_the_published_scores_do_not_allow_is_reported(
    tmp_path: Path, category: str, rows: int, times: int
) -> None:
    many = [GOOD | {"context": str(k), "sentence": f"[PLH]{k}"} for k in range(rows)]
    folder = write(tmp_path / f"{category}.csv", *many)
    assert len([what for what in odd(folder, 0, "") if "no multiple of" in what]) == times
    assert not found(folder, "refused")


def test_a_folder_in_gbk_is_checked_where_that_is_asked_for(tmp_path: Path) -> None:
    folder = write(tmp_path / "age.csv", *ROWS, GOOD | {"score": "11"}, encoding="gb18030")
    assert "`--set encoding=gb18030`" in found(folder, "refused")[0][3]
    assert [row for _, row, _, _ in found(folder, "refused", encoding="gb18030")] == [11]


def test_values_are_shown_cut_and_with_escapes(tmp_path: Path) -> None:
    row = GOOD | {"context": "=\x1b[31m", "explanation": "+" + "长" * 500}
    findings = check(write(tmp_path / "age.csv", row))
    assert findings.query("column == 'context'").value.unique().tolist() == ["'=\\x1b[31m'"]
    (long,) = findings.query("column == 'explanation'").value
    assert long == repr("+" + "长" * 58 + "…")


texts = st.text(st.characters(codec="utf-8"), max_size=40) | st.sampled_from(
    ["", " ", "[PLH]", "【plh】", "甲，乙", "甲、,；;", "=1", "\x1b[2J", "１", "1e999", "-0", "\0"]
)


@given(
    st.lists(
        st.fixed_dictionaries({name: texts | st.just(cell) for name, cell in GOOD.items()}),
        max_size=4,
    )
)
def test_no_text_stops_the_list(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("any")
    for category in ("age", "worldview"):
        write(folder / f"{category}.csv", GOOD, *rows)
    for separators in mcbe.SETTINGS["separators"]:
        findings = check(folder, separators=separators)
        shown = findings[["file", "column", "what", "value"]].to_numpy().flat
        assert all(text.isprintable() for text in shown)
        refused = findings[(findings.kind == "refused") & (findings.row > 0)]
        for category in ("age", "worldview"):
            try:
                loaded = mcbe.load(folder, [category], separators=separators, bad_rows="leave_out")
            except BadInput:
                assert (refused.file != f"{category}.csv").all()  # a NUL: the file is no text
                continue
            left_out = set(refused[refused.file == f"{category}.csv"].row)
            assert {item.row for item in loaded} == set(range(1, len(rows) + 2)) - left_out


@given(st.binary(max_size=200))
def test_no_bytes_stop_the_list(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    folder = tmp_path_factory.mktemp("any")
    (folder / "age.csv").write_bytes(content)
    (folder / "race.xlsx").write_bytes(content)
    (folder / "lgbtq+.csv").write_bytes(",".join(COLUMNS).encode() + b"\n" + content)
    for encoding in mcbe.SETTINGS["encoding"]:
        assert isinstance(check(folder, encoding=encoding), pd.DataFrame)
