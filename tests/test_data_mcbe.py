"""McBE's files: what the samples promise, and that a wrong file is refused with its name, row and column."""

import csv
import hashlib
import shutil
from pathlib import Path

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import GOOD

from bench import data
from bench.data import mcbe
from bench.data.tables import read_csv
from bench.errors import BadInput

PAPER = "gender religion nationality socioeco age appearance health region lgbtq+ worldview subculture race"
COLUMNS = ["context", "sentence", "words", "subtype", "explanation", "score"]


def write(path: Path, *rows: dict[str, str], columns: list[str] = COLUMNS) -> Path:
    """Write `rows` as CSV to `path`; its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return path.parent


def write_xlsx(path: Path, records: list[list[object]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    book = openpyxl.Workbook()
    for record in records:
        book.active.append(record)
    book.save(path)
    return path.parent


def load(folder: Path, *categories: str) -> list[mcbe.Instance]:
    return data.load(data.find("mcbe", folder), categories)


def content_hash(row: dict[str, str]) -> str:
    """The hash of a row's stripped cells, the score as a number, worked out here once more."""
    row = row | {"score": str(float(row["score"]))}
    return hashlib.sha256("\0".join(row[name].strip() for name in COLUMNS).encode()).hexdigest()[:16]


@pytest.fixture(scope="module")
def samples() -> list[mcbe.Instance]:
    return load(data.SAMPLES / "mcbe")


def test_the_samples_have_twelve_categories_of_eight_rows(samples: list[mcbe.Instance]) -> None:
    ids = [item.item_id for item in samples]
    assert ids == [f"{name}:{row}" for name in PAPER.split() for row in range(1, 9)]


def test_every_sample_compares_two_to_six_different_words(samples: list[mcbe.Instance]) -> None:
    counts = [len(set(item.words)) for item in samples]
    assert counts == [len(item.words) for item in samples]
    assert set(counts) == {2, 3, 4, 5, 6}


def test_every_sample_has_a_slot_a_severity_and_no_empty_text(samples: list[mcbe.Instance]) -> None:
    for item in samples:
        assert "[PLH]" in item.sentence
        assert 0 <= item.score <= 10
        assert all(text == text.strip() != "" for text in (item.context, item.subtype, item.explanation))
    assert len({item.sentence for item in samples}) == 96


def test_every_slot_is_filled(samples: list[mcbe.Instance], tmp_path: Path) -> None:
    (item,) = load(write(tmp_path / "age.csv", GOOD | {"sentence": "[PLH]说[PLH]来。"}))
    assert item.filled("老人") == "老人说老人来。"
    assert not any("PLH" in one.filled(word) for one in samples for word in one.words)


def test_words_are_split_at_the_full_width_comma_stripped_and_empty_ones_dropped(tmp_path: Path) -> None:
    (item,) = load(write(tmp_path / "age.csv", GOOD | {"words": " 甲， 乙 ，丙、丁，"}))
    assert item.words == ("甲", "乙", "丙、丁")


def test_text_that_looks_like_a_missing_value_is_kept(tmp_path: Path) -> None:
    row = GOOD | {"words": "NA，None", "subtype": "null", "score": "7"}
    (from_csv,) = load(write(tmp_path / "csv" / "age.csv", row))
    (from_xlsx,) = load(
        write_xlsx(tmp_path / "xlsx" / "age.xlsx", [COLUMNS, [row[name] for name in COLUMNS]])
    )
    assert from_csv == from_xlsx == mcbe.Instance(
        "age", 1, "开会时，", "[PLH]先发言。", ("NA", "None"), "null", "说明。", 7.0, ("null",), content_hash(row)
    )  # fmt: skip


def test_xlsx_and_csv_give_equal_instances(samples: list[mcbe.Instance], tmp_path: Path) -> None:
    for path in (data.SAMPLES / "mcbe").glob("*.csv"):
        with path.open(encoding="utf-8-sig", newline="") as stream:
            header, *records = csv.reader(stream)
        numbers = [[float(cell) if name == "score" else cell for name, cell in zip(header, record, strict=True)] for record in records]  # fmt: skip
        write_xlsx(tmp_path / "xlsx_files" / f"{path.stem}.xlsx", [header, *numbers])
    assert load(tmp_path) == samples


def test_the_category_is_the_stem_and_test_is_none(tmp_path: Path) -> None:
    write(tmp_path / "test.csv", GOOD)
    write(tmp_path / "lgbtq+.csv", GOOD, GOOD)
    (tmp_path / "notes.csv").write_text("who,when\nme,now\n", "utf-8")
    assert [item.item_id for item in load(tmp_path)] == ["lgbtq+:1", "lgbtq+:2"]


def test_xlsx_files_are_read_before_csv_files(tmp_path: Path) -> None:
    write(tmp_path / "csv_files" / "age.csv", GOOD | {"subtype": "from csv"})
    write_xlsx(tmp_path / "xlsx_files" / "age.xlsx", [COLUMNS, [*list(GOOD.values())[:5], 4.5]])
    assert [item.subtype for item in load(tmp_path)] == ["职场"]


def test_worldview_needs_no_slot_and_may_have_a_single_word(tmp_path: Path) -> None:
    (item,) = load(write(tmp_path / "worldview.csv", GOOD | {"sentence": "没有空位。", "words": "丁克"}))
    assert (item.filled("别的"), item.words) == ("没有空位。", ("丁克",))


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_byte_order_mark_and_either_line_ending_are_fine(tmp_path: Path, ending: str, mark: str) -> None:
    text = mark + ending.join([",".join(COLUMNS), ",".join(GOOD.values()), ""])
    (tmp_path / "age.csv").write_bytes(text.encode())
    (item,) = load(tmp_path)
    assert (item.context, item.score) == ("开会时，", 4.5)


def test_columns_may_come_in_another_order_and_with_others(tmp_path: Path) -> None:
    columns = ["score", "note", *COLUMNS[:5]]
    (item,) = load(write(tmp_path / "age.csv", GOOD | {"note": "x"}, columns=columns))
    assert item == mcbe.Instance(
        "age",
        1,
        "开会时，",
        "[PLH]先发言。",
        ("甲", "乙"),
        "职场",
        "说明。",
        4.5,
        ("职场",),
        content_hash(GOOD),
    )


@pytest.mark.parametrize(
    ("change", "column", "said"),
    [
        ({"words": ""}, "words", "is empty"),
        ({"words": " ， ，"}, "words", "holds no word"),
        ({"words": "甲，乙，甲"}, "words", "names a word twice"),
        ({"sentence": "没有空位。"}, "sentence", "no placeholder [PLH]"),
        ({"context": "  "}, "context", "is empty"),
        ({"subtype": ""}, "subtype", "is empty"),
        ({"score": "11"}, "score", "'11' is not a number from 0 to 10"),
        ({"score": "-0.1"}, "score", "'-0.1' is not a number"),
        ({"score": "nan"}, "score", "'nan' is not a number"),
        ({"score": "严重"}, "score", "'严重' is not a number"),
        ({"score": "inf"}, "score", "'inf' is not a number"),
    ],
)
@pytest.mark.parametrize("suffix", ["csv", "xlsx"])
def test_a_wrong_cell_is_refused_with_file_row_and_column(
    tmp_path: Path, refusal, suffix: str, change: dict[str, str], column: str, said: str
) -> None:
    path = tmp_path / f"health.{suffix}"
    rows = [GOOD, GOOD, GOOD | change, GOOD]
    if suffix == "csv":
        write(path, *rows)
    else:
        write_xlsx(path, [COLUMNS, *([row[name] for name in COLUMNS] for row in rows)])
    message = refusal(load, tmp_path)
    assert f"{path}, row 3, column `{column}`" in message
    assert said in message


@pytest.mark.parametrize("missing", COLUMNS)
@pytest.mark.parametrize("suffix", ["csv", "xlsx"])
def test_a_missing_column_is_named_and_those_found_are_listed(tmp_path: Path, refusal, missing: str, suffix: str) -> None:  # fmt: skip
    path, rest = tmp_path / f"race.{suffix}", [name for name in COLUMNS if name != missing]
    if suffix == "csv":
        write(path, GOOD, columns=rest)
    else:
        write_xlsx(path, [rest, [GOOD[name] for name in rest]])
    assert f"{path}, row 1 (header): column `{missing}` is missing; found: {', '.join(rest)}" in refusal(load, tmp_path)  # fmt: skip


def csv_bytes(*lines: str) -> bytes:
    return "\n".join([",".join(COLUMNS), *lines, ""]).encode()


LINE = ",".join(GOOD.values())


@pytest.mark.parametrize(
    ("content", "place", "said"),
    [
        (b"", "", "is empty"),
        (b"\n\n", "", "is empty"),
        (csv_bytes(), "", "has a header but no rows"),
        (csv_bytes(LINE, LINE).decode().encode("gbk"), ", line 2", "iconv"),
        (csv_bytes(LINE) + b"\x00", ", line 3", "NUL"),
        (csv_bytes(LINE, LINE.rpartition(",")[0]), ", row 2", "has 5 cells, the header has 6"),
        (csv_bytes(LINE, LINE + ",x"), ", row 2", "has 7 cells, the header has 6"),
        (csv_bytes(LINE, f'"{LINE}'), ", row 2", "has 1 cells, the header has 6"),
        (csv_bytes("字" * 140_000), ", line 2", "cannot be read as CSV"),
        (csv_bytes(LINE).replace(b"context", b"score"), ", row 1", "column `context` is missing"),
        (
            csv_bytes(LINE).replace(b"context", b"context,score", 1),
            ", row 1",
            "`score` occurs more than once",
        ),
        (csv_bytes(LINE).replace(b"words", b"Words"), ", row 1", "column `words` is missing"),
    ],
)
def test_a_broken_csv_file_is_refused_with_the_place(tmp_path: Path, refusal, content: bytes, place: str, said: str) -> None:  # fmt: skip
    path = tmp_path / "region.csv"
    path.write_bytes(content)
    message = refusal(load, tmp_path)
    assert f"{path}{place}" in message
    assert said in message


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 not a zip", b"context,sentence\n"])
def test_bytes_that_are_no_xlsx_are_refused(tmp_path: Path, refusal, content: bytes) -> None:
    path = tmp_path / "religion.xlsx"
    path.write_bytes(content)
    message = refusal(load, tmp_path)
    assert str(path) in message
    assert "cannot be read as xlsx" in message


def test_an_xlsx_file_that_is_cut_off_is_refused(tmp_path: Path, refusal) -> None:
    path = tmp_path / "religion.xlsx"
    write_xlsx(path, [COLUMNS, list(GOOD.values())])
    path.write_bytes(path.read_bytes()[:-200])
    assert f"{path}: cannot be read as xlsx" in refusal(load, tmp_path)


def test_an_xlsx_file_with_a_header_alone_is_refused(tmp_path: Path, refusal) -> None:
    write_xlsx(tmp_path / "religion.xlsx", [COLUMNS])
    assert "religion.xlsx: has a header but no rows" in refusal(load, tmp_path)


def test_a_doubled_xlsx_column_is_refused_as_a_doubled_csv_column_is(tmp_path: Path, refusal) -> None:
    write_xlsx(tmp_path / "age.xlsx", [["score", *COLUMNS], [1, *GOOD.values()]])
    assert "column `score` occurs more than once" in refusal(load, tmp_path)


@pytest.mark.parametrize("score", ["1_0", "0_5"])
def test_a_score_with_an_underscore_is_no_number(tmp_path: Path, refusal, score: str) -> None:
    assert "column `score`" in refusal(load, write(tmp_path / "age.csv", GOOD | {"score": score}))


def test_a_fault_in_one_category_does_not_stop_another(tmp_path: Path) -> None:
    write(tmp_path / "age.csv", GOOD)
    write(tmp_path / "race.csv", GOOD | {"score": "11"})
    assert [item.item_id for item in load(tmp_path, "age")] == ["age:1"]


def test_the_hash_of_the_data_changes_with_a_byte_and_not_with_the_place(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        shutil.copytree(data.SAMPLES / "mcbe", tmp_path / name)
    path = tmp_path / "c" / "age.csv"
    path.write_bytes(path.read_bytes() + b"\n")
    hashes = [data.find("mcbe", tmp_path / name).sha256 for name in ("a", "b", "c")]
    assert hashes[0] == hashes[1] != hashes[2]


def test_the_hash_follows_a_file_that_is_edited(tmp_path: Path) -> None:
    folder = write(tmp_path / "age.csv", GOOD)
    before = data.find("mcbe", folder).sha256
    write(tmp_path / "age.csv", GOOD | {"words": "丙，丁"})
    assert data.find("mcbe", folder).sha256 != before


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
    assert read(folder) == read(folder, **{name: values[0] for name, values in mcbe.SETTINGS.items()})


@pytest.mark.parametrize("name", list(mcbe.SETTINGS))
def test_a_value_that_a_setting_cannot_have_is_refused(tmp_path: Path, refusal, name: str) -> None:
    message = refusal(read, write(tmp_path / "age.csv", GOOD), **{name: "latin-1"})
    assert message.endswith(f"`{name}`: 'latin-1' is unknown; allowed: {', '.join(mcbe.SETTINGS[name])}")


def test_labels_are_those_of_the_whole_file_sorted_and_shared(tmp_path: Path) -> None:
    rows = [GOOD | {"subtype": name} for name in (" 乙", "甲", "b", "乙", "B")]
    items = read(write(tmp_path / "age.csv", *rows, BAD | {"subtype": "丙"}), bad_rows="leave_out")
    assert items[0].labels == ("B", "b", "乙", "甲")
    assert all(item.labels is items[0].labels for item in items)


def test_labels_of_one_file_are_not_those_of_another(samples: list[mcbe.Instance]) -> None:
    for category in mcbe.CATEGORIES:
        own = [item for item in samples if item.category == category]
        assert {item.labels for item in own} == {tuple(sorted({item.subtype for item in own}))}


def test_an_item_is_recognised_in_whatever_row_and_file_it_stands(tmp_path: Path) -> None:
    other = GOOD | {"context": "散会后，"}
    first = read(write(tmp_path / "a" / "age.csv", GOOD, other))
    second = read(write(tmp_path / "b" / "race.csv", other, {k: f" {v}\u3000" for k, v in GOOD.items()}))
    assert [item.content_hash for item in first] == [item.content_hash for item in reversed(second)]
    assert first[0].content_hash == content_hash(GOOD) != content_hash(other)


@pytest.mark.parametrize("column", COLUMNS)
def test_another_cell_is_another_item(tmp_path: Path, column: str) -> None:
    cells = {"sentence": "[PLH]来了。", "words": "甲，丙", "score": "4.6"}
    first, second = read(write(tmp_path / "age.csv", GOOD, GOOD | {column: cells.get(column, "别的")}))
    assert first.content_hash != second.content_hash


@pytest.mark.parametrize(("separators", "words"), [
    ("comma", ("甲,乙、丙;丁；戊", "己")), ("any", ("甲", "乙", "丙", "丁", "戊", "己")),
])  # fmt: skip
def test_the_separators_of_a_list_of_words_can_be_chosen(tmp_path: Path, separators: str, words: tuple[str, ...]) -> None:  # fmt: skip
    folder = write(tmp_path / "age.csv", GOOD | {"words": "甲,乙、 丙;丁；戊，，己" if separators == "any" else "甲,乙、丙;丁；戊，己"})  # fmt: skip
    assert read(folder, separators=separators)[0].words == words


def test_a_word_named_twice_behind_another_separator_is_refused(tmp_path: Path, refusal) -> None:
    folder = write(tmp_path / "age.csv", GOOD | {"words": "甲，乙、甲"})
    assert read(folder)[0].words == ("甲", "乙、甲")
    assert "row 1, column `words`: names a word twice" in refusal(read, folder, separators="any")


@pytest.mark.parametrize("suffix", ["csv", "xlsx"])
def test_a_worldview_row_without_a_placeholder_may_have_no_words(tmp_path: Path, suffix: str) -> None:
    row = GOOD | {"sentence": "结婚要趁早。", "words": " "}
    if suffix == "csv":
        write(tmp_path / "worldview.csv", row)
    else:
        write_xlsx(tmp_path / "worldview.xlsx", [COLUMNS, [row[name] for name in COLUMNS]])
    (item,) = read(tmp_path)
    assert (item.words, item.filled("丁克"), item.filled("")) == ((), "结婚要趁早。", "结婚要趁早。")


@pytest.mark.parametrize(("name", "change", "said"), [
    ("worldview", {"words": ""}, "column `words`: is empty"),
    ("worldview", {"words": "，", "sentence": "无"}, "column `words`: holds no word"),
    ("age", {"words": "", "sentence": "无"}, "column `words`: is empty"),
])  # fmt: skip
def test_any_other_row_needs_words(tmp_path: Path, refusal, name: str, change: dict[str, str], said: str) -> None:  # fmt: skip
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
    assert message == f"{folder / 'age.csv'}, row 2, column `score`: '11' is not a number from 0 to 10; {CHECK} lists what is wrong, {LEAVE_OUT} runs without this row"  # fmt: skip


@pytest.mark.parametrize(("wrong", "said"), [(2, "1 more row is wrong"), (4, "3 more rows are wrong")])
def test_more_wrong_rows_are_counted(tmp_path: Path, refusal, wrong: int, said: str) -> None:
    message = refusal(read, write(tmp_path / "age.csv", GOOD, *[BAD] * wrong))
    assert "row 2, column `score`: '11' is not a number from 0 to 10; " in message
    assert message.endswith(f"; {said}: {CHECK} lists them, {LEAVE_OUT} runs without them")


def test_wrong_rows_can_be_left_out_and_the_others_keep_their_ids(tmp_path: Path) -> None:
    (tmp_path / "age.csv").write_bytes(csv_bytes(LINE, LINE.replace("4.5", "x"), LINE, LINE + ",more", LINE))
    assert [item.item_id for item in read(tmp_path, bad_rows="leave_out")] == ["age:1", "age:3", "age:5"]


@pytest.mark.parametrize("bad_rows", mcbe.SETTINGS["bad_rows"])
def test_a_file_without_a_right_row_is_refused_in_any_case(tmp_path: Path, refusal, bad_rows: str) -> None:
    message = refusal(read, write(tmp_path / "age.csv", BAD, BAD), bad_rows=bad_rows)
    assert message.endswith(f"; no other row of the file is right: {CHECK} lists what is wrong")
    assert "row 1, column `score`" in message


def gbk(folder: Path) -> Path:
    (folder / "age.csv").write_bytes(csv_bytes(LINE, LINE.replace("甲", "镕")).decode().encode("gb18030"))
    return folder


def test_a_file_in_gbk_is_read_where_that_is_asked_for(tmp_path: Path, refusal) -> None:
    message = refusal(read, gbk(tmp_path))
    assert "line 2: not UTF-8" in message
    assert "if it is GBK, read it with `--set encoding=gb18030`, or convert it: iconv -f GB18030" in message
    assert [item.words for item in read(tmp_path, encoding="gb18030")] == [("甲", "乙"), ("镕", "乙")]


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
def test_a_file_name_that_a_browser_left_encoded_is_its_category(tmp_path: Path, suffix: str) -> None:
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
def test_no_wrong_row_gets_through(tmp_path_factory: pytest.TempPathFactory, change: dict[str, str]) -> None:
    for category in ("age", "worldview"):
        folder = tmp_path_factory.mktemp("any")
        for separators in mcbe.SETTINGS["separators"]:
            try:
                items = read(write(folder / f"{category}.csv", GOOD, GOOD | change), separators=separators, bad_rows="leave_out")  # fmt: skip
            except BadInput:  # a NUL
                assert "\0" in "".join(change.values())
                continue
            for item in items:
                assert 0 <= item.score <= 10
                assert item.words or (category == "worldview" and "[PLH]" not in item.sentence)
                assert "[PLH]" in item.sentence or category == "worldview"
                assert all(word == word.strip() != "" for word in item.words)
                assert item.subtype in item.labels
