"""McBE's files: the samples, settings, and that a wrong file is refused with name, row, column."""

import csv
import hashlib
import shutil
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import data
from bench.core.errors import BadInput
from bench.data import mcbe
from tests.helpers.recorded import GOOD

PAPER = (
    "gender religion nationality socioeco age appearance health region lgbtq+ worldview "
    "subculture race"
)
COLUMNS = ["context", "sentence", "words", "subtype", "explanation", "score"]
BAD = GOOD | {"score": "11"}
LINE = ",".join(GOOD.values())


def write(path: Path, *rows: dict[str, Any], encoding: str = "utf-8") -> Path:
    """Write `rows` to `path`, as CSV or xlsx, and return its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    names = list(dict.fromkeys(name for row in rows for name in row)) or COLUMNS
    if path.suffix == ".xlsx":
        book = openpyxl.Workbook()
        for record in [names, *([row[name] for name in names] for row in rows)]:
            book.active.append(record)
        book.save(path)
    else:
        with path.open("w", encoding=encoding, newline="") as stream:
            writer = csv.DictWriter(stream, names)
            writer.writeheader()
            writer.writerows(rows)
    return path.parent


def load(folder: Path, *categories: str, **settings: str) -> list[mcbe.Instance]:
    return data.load(data.find("mcbe", folder), categories, **settings)


def instance(row: dict[str, str], words: tuple[str, ...]) -> mcbe.Instance:
    """Make the only instance of `age` by hand."""
    cells = row | {"score": str(float(row["score"]))}
    text = "\0".join(cells[name].strip() for name in COLUMNS)
    kept = {name: cells[name] for name in ("context", "sentence", "subtype", "explanation")}
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return mcbe.Instance(
        "age",
        1,
        words=words,
        score=float(row["score"]),
        labels=(row["subtype"],),
        content_hash=digest,
        **kept,
    )


@pytest.fixture(scope="module")
def samples() -> list[mcbe.Instance]:
    return load(data.SAMPLES / "mcbe")


def test_the_samples_are_complete(samples: list[mcbe.Instance]) -> None:
    ids = [item.item_id for item in samples]
    assert ids == [f"{name}:{row}" for name in PAPER.split() for row in range(1, 9)]
    assert {len(set(item.words)) for item in samples} == {2, 3, 4, 5, 6}
    assert len({item.sentence for item in samples}) == 96
    for item in samples:
        assert "[PLH]" in item.sentence
        assert not any("PLH" in item.filled(word) for word in item.words)
        assert 0 <= item.score <= 10
        texts = (item.context, item.subtype, item.explanation)
        assert all(text == text.strip() != "" for text in texts)
        of_file = {other.subtype for other in samples if other.category == item.category}
        assert item.labels == tuple(sorted(of_file))


@pytest.mark.parametrize("suffix", ["csv", "xlsx"])
def test_a_row_is_read_in_any_order_of_columns_and_text_that_looks_missing_is_kept(
    tmp_path: Path, suffix: str
) -> None:
    row = GOOD | {"words": "NA，None", "subtype": "null", "score": "7"}
    mixed = {"note": "x"} | dict(reversed(row.items()))
    assert load(write(tmp_path / f"age.{suffix}", mixed)) == [instance(row, ("NA", "None"))]


def test_xlsx_and_csv_give_equal_instances(samples: list[mcbe.Instance], tmp_path: Path) -> None:
    for path in (data.SAMPLES / "mcbe").glob("*.csv"):
        with path.open(encoding="utf-8-sig", newline="") as stream:
            rows = [row | {"score": float(row["score"])} for row in csv.DictReader(stream)]
        write(tmp_path / "xlsx_files" / f"{path.stem}.xlsx", *rows)
    assert load(tmp_path) == samples
    # An xlsx file has no encoding to choose.
    assert load(tmp_path, encoding="gb18030") == samples


@pytest.mark.parametrize("suffix", ["csv", "xlsx"])
def test_the_category_is_the_stem_and_test_is_none(tmp_path: Path, suffix: str) -> None:
    write(tmp_path / f"test.{suffix}", GOOD)
    write(tmp_path / f"lgbtq%2B.{suffix}", GOOD, GOOD)  # as a browser may name it
    (tmp_path / "notes.csv").write_text("who,when\nme,now\n", "utf-8")
    assert [item.item_id for item in load(tmp_path)] == ["lgbtq+:1", "lgbtq+:2"]


def test_xlsx_files_are_read_before_csv_files(tmp_path: Path) -> None:
    write(tmp_path / "csv_files" / "age.csv", GOOD | {"subtype": "from csv"})
    write(tmp_path / "xlsx_files" / "age.xlsx", GOOD | {"score": 4.5})
    assert [item.subtype for item in load(tmp_path)] == ["职场"]


@pytest.mark.parametrize(
    ("cell", "settings", "words"),
    [
        (" 甲， 乙 ，丙、丁，", {}, ("甲", "乙", "丙、丁")),
        ("甲,乙、丙;丁；戊，己", {"separators": "comma"}, ("甲,乙、丙;丁；戊", "己")),
        ("甲,乙、 丙;丁；戊，，己", {"separators": "any"}, tuple("甲乙丙丁戊己")),
    ],
)
def test_words_are_split_stripped_and_empty_ones_dropped(
    tmp_path: Path, cell: str, settings: dict[str, str], words: tuple[str, ...]
) -> None:
    (item,) = load(write(tmp_path / "age.csv", GOOD | {"words": cell}), **settings)
    assert item.words == words


@pytest.mark.parametrize(("cell", "words"), [("丁克", ("丁克",)), (" ", ())])
@pytest.mark.parametrize("suffix", ["csv", "xlsx"])
def test_worldview_needs_no_slot_and_then_no_words(
    tmp_path: Path, suffix: str, cell: str, words: tuple[str, ...]
) -> None:
    row = GOOD | {"sentence": "结婚要趁早。", "words": cell}
    (item,) = load(write(tmp_path / f"worldview.{suffix}", row))
    assert (item.words, item.filled("别的")) == (words, "结婚要趁早。")


def test_labels_and_hashes_are_of_the_stripped_cells(tmp_path: Path) -> None:
    rows = [GOOD | {"subtype": name} for name in (" 乙", "甲", "b", "乙", "B")]
    items = load(write(tmp_path / "age.csv", *rows, BAD | {"subtype": "丙"}), bad_rows="leave_out")
    assert {item.labels for item in items} == {("B", "b", "乙", "甲")}
    assert items[0].content_hash == items[3].content_hash
    assert len({item.content_hash for item in items}) == 4
    assert all(item.labels is items[0].labels for item in items), "holds one list for a file"


# A change of the third of four rows, the category, and the column and words of the error.
WRONG_CELLS = """
words= | age | words | is empty
words= ， ， | age | words | holds no word
words=甲，乙，甲 | age | words | names a word twice
sentence=没有空位。 | age | sentence | has no placeholder [PLH]: '没有空位。'
sentence=那个【PLH】说。 | age | sentence | no placeholder [PLH] (it has '【PLH】' instead)
context=   | age | context | is empty
context=#N/A | age | context | is empty
subtype= | age | subtype | is empty
score=11 | age | score | '11' is not a number from 0 to 10
score=-0.1 | age | score | '-0.1' is not a number
score=nan | age | score | 'nan' is not a number
score=严重 | age | score | '严重' is not a number
score=1_0 | age | score | '1_0' is not a number
words= | worldview | words | is empty
"""


@pytest.mark.parametrize("suffix", ["csv", "xlsx"])
@pytest.mark.parametrize("case", WRONG_CELLS.strip("\n").split("\n"))
def test_a_wrong_cell_is_refused_with_file_row_and_column(
    tmp_path: Path, refusal, suffix: str, case: str
) -> None:
    change, category, column, error = (part.strip("\n") for part in case.split(" | "))
    name, cell = change.split("=", 1)
    if cell == "#N/A" and suffix == "csv":  # an error in a spreadsheet, but a text in CSV
        return
    path = tmp_path / f"{category}.{suffix}"
    message = refusal(load, write(path, GOOD, GOOD, GOOD | {name: cell}, GOOD))
    assert message.startswith(f"{path}, row 3, column `{column}`: ")
    assert error in message
    assert "wrong rows: 1 of 4; `bench data mcbe --check`" in message
    assert message.endswith("`--set bad_rows=leave_out` runs without them")


def csv_bytes(*lines: str) -> bytes:
    return "\n".join([",".join(COLUMNS), *lines, ""]).encode()


SLOTS = ("[plh]", "［ＰＬＨ］", "{PLH}", "PLH", "[ PLH ]", "[PHL]", "<plh>")


@pytest.mark.parametrize("slot", [*SLOTS, "[PLH]", "（pH）值", "[a]", "PL H"])
def test_what_looks_like_the_placeholder_is_found(slot: str) -> None:
    assert mcbe.lookalike(f"那个{slot}先发言。") == (slot if slot in SLOTS else "")


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("age.csv", csv_bytes(), ": has a header but no rows"),
        (
            "age.csv",
            csv_bytes(LINE + ",x"),
            ", row 1: has 7 cells, the header has 6; wrong rows: 1",
        ),
        (
            "age.csv",
            csv_bytes(LINE).decode().encode("gbk"),
            ", line 2: not UTF-8 (byte 0xbf); if it is GBK, read it with `--set encoding=gb18030`",
        ),
        (
            "age.csv",
            csv_bytes(LINE).replace(b"words", b"Words"),
            ", row 1 (header): column `words` is missing; found: context, sentence, Words",
        ),
        ("age.xlsx", b"PK\x03\x04 not a zip", ": cannot be read as xlsx"),
    ],
)
def test_a_broken_file_is_refused_with_the_place(
    tmp_path: Path, refusal, name: str, content: bytes, error: str
) -> None:
    (tmp_path / name).write_bytes(content)
    assert refusal(load, tmp_path).startswith(f"{tmp_path / name}{error}")


def test_the_hash_of_the_data_changes_with_a_byte_and_not_with_the_place(tmp_path: Path) -> None:
    for name in ("a", "b"):
        shutil.copytree(data.SAMPLES / "mcbe", tmp_path / name)
    hashes = [data.find("mcbe", tmp_path / name).sha256 for name in ("a", "b")]
    path = tmp_path / "b" / "age.csv"
    path.write_bytes(path.read_bytes() + b"\n")
    hashes.append(data.find("mcbe", tmp_path / "b").sha256)
    assert hashes[0] == hashes[1] != hashes[2]


@pytest.mark.parametrize("name", list(mcbe.SETTINGS))
def test_the_first_value_of_a_setting_is_the_default_and_unknown_ones_are_refused(
    tmp_path: Path, refusal, name: str
) -> None:
    folder, allowed = write(tmp_path / "age.csv", GOOD), mcbe.SETTINGS[name]
    assert load(folder) == load(folder, **{name: allowed[0]})
    message = refusal(load, folder, **{name: "latin-1"})
    assert message == f"value of {name} 'latin-1' is unknown; allowed: {', '.join(allowed)}"


def test_wrong_rows_can_be_left_out_and_the_others_keep_their_ids(tmp_path: Path) -> None:
    wrong = LINE.replace("4.5", "x")
    (tmp_path / "age.csv").write_bytes(csv_bytes(LINE, wrong, LINE, LINE + ",more", LINE))
    items = load(tmp_path, bad_rows="leave_out")
    assert [item.item_id for item in items] == ["age:1", "age:3", "age:5"]
    (effect,) = mcbe.touched(tmp_path, None, bad_rows="leave_out")
    assert effect[:3] == ("age", "", 2)
    assert effect.left_out
    assert mcbe.touched(tmp_path, None) == []


@pytest.mark.parametrize("bad_rows", mcbe.SETTINGS["bad_rows"])
def test_a_file_without_a_right_row_is_refused_in_any_case(
    tmp_path: Path, refusal, bad_rows: str
) -> None:
    message = refusal(load, write(tmp_path / "age.csv", BAD, BAD), bad_rows=bad_rows)
    assert message.endswith("; wrong rows: 2 of 2; `bench data mcbe --check` lists them")


def test_a_file_in_gbk_is_read_where_that_is_asked_for(tmp_path: Path, refusal) -> None:
    path = tmp_path / "age.csv"
    write(path, GOOD | {"words": "镕，乙"}, encoding="gb18030")
    assert [item.words for item in load(tmp_path, encoding="gb18030")] == [("镕", "乙")]
    path.write_bytes(path.read_bytes() + b"\xff\xff")
    assert "age.csv, line 3: not GB18030 (byte 0xff)" in refusal(load, tmp_path, encoding="gb18030")
    path.write_bytes(csv_bytes(LINE))
    assert "is UTF-8, not GB18030" in refusal(load, tmp_path, encoding="gb18030")


@pytest.mark.parametrize(
    ("names", "tables"),
    [
        (
            ["a/Gender.XLSX", "a/LGBTQ%2B.xlsx", "b/gender.csv", "b/age.csv", "c/age.xlsx"],
            {
                "a/Gender.XLSX": "xlsx_files/gender.xlsx",
                "a/LGBTQ%2B.xlsx": "xlsx_files/lgbtq+.xlsx",
            },
        ),
        (["README.md", "data/test.csv"], {}),
    ],
)
def test_tables_of_a_repository_are_named_as_the_loader_knows_them(
    names: list[str], tables: dict[str, str]
) -> None:
    assert mcbe.arrange(names) == tables


@given(st.dictionaries(st.sampled_from(COLUMNS), st.text(st.characters(codec="utf-8")), min_size=1))
def test_no_wrong_row_gets_through(
    tmp_path_factory: pytest.TempPathFactory, change: dict[str, str]
) -> None:
    for category in ("age", "worldview"):
        folder = write(tmp_path_factory.mktemp("any") / f"{category}.csv", GOOD, GOOD | change)
        for separators in mcbe.SETTINGS["separators"]:
            try:
                items = mcbe.load(folder, [category], separators=separators, bad_rows="leave_out")
            except BadInput:  # a NUL
                assert "\0" in "".join(change.values())
                continue
            for item in items:
                assert 0 <= item.score <= 10
                assert item.words or (category == "worldview" and "[PLH]" not in item.sentence)
                assert "[PLH]" in item.sentence or category == "worldview"
                assert all(word == word.strip() != "" for word in item.words)
                assert item.subtype in item.labels
