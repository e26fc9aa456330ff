"""McBE's settings: separators, rows that are left out, encodings; and when items are equal."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.core.errors import BadInput
from bench.data import mcbe
from bench.data.readers import read_csv
from tests.data.mcbe.test_load import (
    COLUMNS,
    LINE,
    content_hash,
    csv_bytes,
    load,
    write,
    write_xlsx,
)
from tests.helpers.recorded import GOOD

BAD = GOOD | {"score": "11"}
CHECK = "`bench data mcbe --check`"
LEAVE_OUT = "`--set bad_rows=leave_out`"


def read(folder: Path, **settings: str) -> list[mcbe.Instance]:
    return mcbe.load(folder, list(mcbe.files(folder)), **settings)


def test_the_release_s_numbers_are_those_of_paper_and_card() -> None:
    assert mcbe.RELEASED == {"rows": 4077, "categories": 12, "subcategories": 82}
    assert len(mcbe.CATEGORIES) == mcbe.RELEASED["categories"]


def test_the_first_value_of_a_setting_is_the_default(tmp_path: Path) -> None:
    folder = write(tmp_path / "age.csv", GOOD)
    assert read(folder) == read(
        folder, **{name: values[0] for name, values in mcbe.SETTINGS.items()}
    )


@pytest.mark.parametrize("name", list(mcbe.SETTINGS))
def test_a_value_that_a_setting_cannot_have_is_refused(tmp_path: Path, refusal, name: str) -> None:
    message = refusal(read, write(tmp_path / "age.csv", GOOD), **{name: "latin-1"})
    assert message.endswith(
        f"`{name}`: 'latin-1' is unknown; allowed: {', '.join(mcbe.SETTINGS[name])}"
    )


def test_labels_are_those_of_the_whole_file_sorted_and_shared(tmp_path: Path) -> None:
    rows = [GOOD | {"subtype": name} for name in (" 乙", "甲", "b", "乙", "B")]
    items = read(write(tmp_path / "age.csv", *rows, BAD | {"subtype": "丙"}), bad_rows="leave_out")
    assert items[0].labels == ("B", "b", "乙", "甲")
    assert all(item.labels is items[0].labels for item in items)


def test_an_item_is_recognised_in_whatever_row_and_file_it_stands(tmp_path: Path) -> None:
    other = GOOD | {"context": "散会后，"}
    first = read(write(tmp_path / "a" / "age.csv", GOOD, other))
    second = read(
        write(tmp_path / "b" / "race.csv", other, {k: f" {v}\u3000" for k, v in GOOD.items()})
    )
    assert [item.content_hash for item in first] == [item.content_hash for item in reversed(second)]
    assert first[0].content_hash == content_hash(GOOD) != content_hash(other)


@pytest.mark.parametrize("column", COLUMNS)
def test_another_cell_is_another_item(tmp_path: Path, column: str) -> None:
    cells = {"sentence": "[PLH]来了。", "words": "甲，丙", "score": "4.6"}
    first, second = read(
        write(tmp_path / "age.csv", GOOD, GOOD | {column: cells.get(column, "别的")})
    )
    assert first.content_hash != second.content_hash


@pytest.mark.parametrize(
    ("separators", "words"),
    [
        ("comma", ("甲,乙、丙;丁；戊", "己")),
        ("any", ("甲", "乙", "丙", "丁", "戊", "己")),
    ],
)
def test_the_separators_of_a_list_of_words_can_be_chosen(
    tmp_path: Path, separators: str, words: tuple[str, ...]
) -> None:
    folder = write(
        tmp_path / "age.csv",
        GOOD
        | {"words": "甲,乙、 丙;丁；戊，，己" if separators == "any" else "甲,乙、丙;丁；戊，己"},
    )
    assert read(folder, separators=separators)[0].words == words


def test_a_word_named_twice_behind_another_separator_is_refused(tmp_path: Path, refusal) -> None:
    folder = write(tmp_path / "age.csv", GOOD | {"words": "甲，乙、甲"})
    assert read(folder)[0].words == ("甲", "乙、甲")
    assert "row 1, column `words`: names a word twice" in refusal(read, folder, separators="any")


@pytest.mark.parametrize("suffix", ["csv", "xlsx"])
def test_a_worldview_row_without_a_placeholder_may_have_no_words(
    tmp_path: Path, suffix: str
) -> None:
    row = GOOD | {"sentence": "结婚要趁早。", "words": " "}
    if suffix == "csv":
        write(tmp_path / "worldview.csv", row)
    else:
        write_xlsx(tmp_path / "worldview.xlsx", [COLUMNS, [row[name] for name in COLUMNS]])
    (item,) = read(tmp_path)
    assert (item.words, item.filled("丁克"), item.filled("")) == (
        (),
        "结婚要趁早。",
        "结婚要趁早。",
    )


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("worldview", {"words": ""}, "column `words`: is empty"),
        ("worldview", {"words": "，", "sentence": "无"}, "column `words`: holds no word"),
        ("age", {"words": "", "sentence": "无"}, "column `words`: is empty"),
    ],
)
def test_any_other_row_needs_words(
    tmp_path: Path, refusal, name: str, change: dict[str, str], said: str
) -> None:
    assert said in refusal(read, write(tmp_path / f"{name}.csv", GOOD | change))


@pytest.mark.parametrize(
    "slot", ["【PLH】", "[plh]", "［ＰＬＨ］", "{PLH}", "PLH", "[ PLH ]", "[PHL]", "<plh>"]
)
def test_what_looks_like_the_placeholder_is_named(tmp_path: Path, refusal, slot: str) -> None:
    message = refusal(read, write(tmp_path / "age.csv", GOOD | {"sentence": f"那个{slot}先发言。"}))
    assert f"column `sentence`: has no placeholder [PLH] (it has {slot!r} instead)" in message


@pytest.mark.parametrize("text", ["[PLH]来了。", "（pH）值", "没有", "[a]", "PL H"])
def test_nothing_else_looks_like_the_placeholder(text: str) -> None:
    assert mcbe.lookalike(text) == ""


def test_the_only_wrong_row_is_refused_with_two_ways_out(tmp_path: Path, refusal) -> None:
    folder = write(tmp_path / "age.csv", GOOD, BAD)
    message = refusal(read, folder)
    assert (
        message
        == f"{folder / 'age.csv'}, row 2, column `score`: '11' is not a number from 0 to 10; "
        f"{CHECK} lists what is wrong, {LEAVE_OUT} runs without this row"
    )


@pytest.mark.parametrize(
    ("wrong", "said"), [(2, "1 more row is wrong"), (4, "3 more rows are wrong")]
)
def test_more_wrong_rows_are_counted(tmp_path: Path, refusal, wrong: int, said: str) -> None:
    message = refusal(read, write(tmp_path / "age.csv", GOOD, *[BAD] * wrong))
    assert "row 2, column `score`: '11' is not a number from 0 to 10; " in message
    assert message.endswith(f"; {said}: {CHECK} lists them, {LEAVE_OUT} runs without them")


def test_wrong_rows_can_be_left_out_and_the_others_keep_their_ids(tmp_path: Path) -> None:
    (tmp_path / "age.csv").write_bytes(
        csv_bytes(LINE, LINE.replace("4.5", "x"), LINE, LINE + ",more", LINE)
    )
    assert [item.item_id for item in read(tmp_path, bad_rows="leave_out")] == [
        "age:1",
        "age:3",
        "age:5",
    ]


@pytest.mark.parametrize("bad_rows", mcbe.SETTINGS["bad_rows"])
def test_a_file_without_a_right_row_is_refused_in_any_case(
    tmp_path: Path, refusal, bad_rows: str
) -> None:
    message = refusal(read, write(tmp_path / "age.csv", BAD, BAD), bad_rows=bad_rows)
    assert message.endswith(f"; no other row of the file is right: {CHECK} lists what is wrong")
    assert "row 1, column `score`" in message


def gbk(folder: Path) -> Path:
    (folder / "age.csv").write_bytes(
        csv_bytes(LINE, LINE.replace("甲", "镕")).decode().encode("gb18030")
    )
    return folder


def test_a_file_in_gbk_is_read_where_that_is_asked_for(tmp_path: Path, refusal) -> None:
    message = refusal(read, gbk(tmp_path))
    assert "line 2: not UTF-8" in message
    assert (
        "if it is GBK, read it with `--set encoding=gb18030`, or convert it: iconv -f GB18030"
        in message
    )
    assert [item.words for item in read(tmp_path, encoding="gb18030")] == [
        ("甲", "乙"),
        ("镕", "乙"),
    ]


def test_the_option_is_named_for_mcbe_alone(tmp_path: Path, refusal) -> None:
    message = refusal(read_csv, gbk(tmp_path) / "age.csv", COLUMNS)
    assert "if it is GBK, convert it: iconv" in message
    assert "--set" not in message


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_file_in_utf_8_is_not_read_as_gbk(tmp_path: Path, refusal, mark: str) -> None:
    (tmp_path / "age.csv").write_bytes(mark.encode() + csv_bytes(LINE))
    assert "is UTF-8, not GB18030" in refusal(read, tmp_path, encoding="gb18030")


def test_bytes_in_neither_encoding_are_refused(tmp_path: Path, refusal) -> None:
    (tmp_path / "age.csv").write_bytes(csv_bytes(LINE).decode().encode("gbk") + b"\xff\xff")
    assert "age.csv, line 3: not GB18030 (byte 0xff)" in refusal(read, tmp_path, encoding="gb18030")


def test_xlsx_has_no_encoding_to_choose(tmp_path: Path) -> None:
    write_xlsx(tmp_path / "age.xlsx", [COLUMNS, list(GOOD.values())])
    assert read(tmp_path, encoding="gb18030") == read(tmp_path)


@pytest.mark.parametrize("suffix", ["csv", "xlsx"])
def test_a_file_name_that_a_browser_left_encoded_is_its_category(
    tmp_path: Path, suffix: str
) -> None:
    write_xlsx(tmp_path / "lgbtq%2B.xlsx", [COLUMNS, list(GOOD.values())])
    if suffix == "csv":
        (tmp_path / "lgbtq%2B.xlsx").unlink()
        write(tmp_path / "lgbtq%2B.csv", GOOD)
    assert [item.item_id for item in load(tmp_path)] == ["lgbtq+:1"]


def test_an_error_cell_of_a_spreadsheet_is_an_empty_one(tmp_path: Path, refusal) -> None:
    write_xlsx(tmp_path / "age.xlsx", [COLUMNS, ["#N/A", *list(GOOD.values())[1:]]])
    assert "row 1, column `context`: is empty" in refusal(read, tmp_path)


def test_a_header_with_control_characters_is_told_on_one_line(tmp_path: Path, refusal) -> None:
    (tmp_path / "age.csv").write_text('"con\ntext\x1b[2J",sentence\n1,2\n', "utf-8")
    message = refusal(read, tmp_path)
    assert message.endswith("found: con\\ntext\\x1b[2J, sentence")


@given(st.dictionaries(st.sampled_from(COLUMNS), st.text(st.characters(codec="utf-8")), min_size=1))
def test_no_wrong_row_gets_through(
    tmp_path_factory: pytest.TempPathFactory, change: dict[str, str]
) -> None:
    for category in ("age", "worldview"):
        folder = tmp_path_factory.mktemp("any")
        for separators in mcbe.SETTINGS["separators"]:
            try:
                items = read(
                    write(folder / f"{category}.csv", GOOD, GOOD | change),
                    separators=separators,
                    bad_rows="leave_out",
                )
            except BadInput:  # a NUL
                assert "\0" in "".join(change.values())
                continue
            for item in items:
                assert 0 <= item.score <= 10
                assert item.words or (category == "worldview" and "[PLH]" not in item.sentence)
                assert "[PLH]" in item.sentence or category == "worldview"
                assert all(word == word.strip() != "" for word in item.words)
                assert item.subtype in item.labels
