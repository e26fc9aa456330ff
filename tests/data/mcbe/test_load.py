"""McBE's files: the samples, and that a wrong file is refused with name, row and column."""

import csv
import hashlib
import shutil
from pathlib import Path

import openpyxl
import pytest

from bench import data
from bench.data import mcbe
from tests.helpers.recorded import GOOD

PAPER = (
    "gender religion nationality socioeco age appearance health region lgbtq+ worldview "
    "subculture race"
)
COLUMNS = ["context", "sentence", "words", "subtype", "explanation", "score"]


def write(path: Path, *rows: dict[str, str], columns: list[str] = COLUMNS) -> Path:
    """Write `rows` as CSV to `path`, and return its folder."""
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
    """Hash a row's stripped cells, with the score as a number."""
    row = row | {"score": str(float(row["score"]))}
    return hashlib.sha256("\0".join(row[name].strip() for name in COLUMNS).encode()).hexdigest()[
        :16
    ]


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
        assert all(
            text == text.strip() != "" for text in (item.context, item.subtype, item.explanation)
        )
    assert len({item.sentence for item in samples}) == 96


def test_every_slot_is_filled(samples: list[mcbe.Instance], tmp_path: Path) -> None:
    (item,) = load(write(tmp_path / "age.csv", GOOD | {"sentence": "[PLH]说[PLH]来。"}))
    assert item.filled("老人") == "老人说老人来。"
    assert not any("PLH" in one.filled(word) for one in samples for word in one.words)


def test_words_are_split_at_the_full_width_comma_stripped_and_empty_ones_dropped(
    tmp_path: Path,
) -> None:
    (item,) = load(write(tmp_path / "age.csv", GOOD | {"words": " 甲， 乙 ，丙、丁，"}))
    assert item.words == ("甲", "乙", "丙、丁")


def test_text_that_looks_like_a_missing_value_is_kept(tmp_path: Path) -> None:
    row = GOOD | {"words": "NA，None", "subtype": "null", "score": "7"}
    (from_csv,) = load(write(tmp_path / "csv" / "age.csv", row))
    (from_xlsx,) = load(
        write_xlsx(tmp_path / "xlsx" / "age.xlsx", [COLUMNS, [row[name] for name in COLUMNS]])
    )
    assert (
        from_csv
        == from_xlsx
        == mcbe.Instance(
            "age",
            1,
            "开会时，",
            "[PLH]先发言。",
            ("NA", "None"),
            "null",
            "说明。",
            7.0,
            ("null",),
            content_hash(row),
        )
    )


def test_xlsx_and_csv_give_equal_instances(samples: list[mcbe.Instance], tmp_path: Path) -> None:
    for path in (data.SAMPLES / "mcbe").glob("*.csv"):
        with path.open(encoding="utf-8-sig", newline="") as stream:
            header, *records = csv.reader(stream)
        numbers = [
            [
                float(cell) if name == "score" else cell
                for name, cell in zip(header, record, strict=True)
            ]
            for record in records
        ]
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
    (item,) = load(
        write(tmp_path / "worldview.csv", GOOD | {"sentence": "没有空位。", "words": "丁克"})
    )
    assert (item.filled("别的"), item.words) == ("没有空位。", ("丁克",))


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_byte_order_mark_and_either_line_ending_are_fine(
    tmp_path: Path, ending: str, mark: str
) -> None:
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
def test_a_missing_column_is_named_and_those_found_are_listed(
    tmp_path: Path, refusal, missing: str, suffix: str
) -> None:
    path, rest = tmp_path / f"race.{suffix}", [name for name in COLUMNS if name != missing]
    if suffix == "csv":
        write(path, GOOD, columns=rest)
    else:
        write_xlsx(path, [rest, [GOOD[name] for name in rest]])
    assert (
        f"{path}, row 1 (header): column `{missing}` is missing; found: {', '.join(rest)}"
        in refusal(load, tmp_path)
    )


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
def test_a_broken_csv_file_is_refused_with_the_place(
    tmp_path: Path, refusal, content: bytes, place: str, said: str
) -> None:
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


def test_a_doubled_xlsx_column_is_refused_as_a_doubled_csv_column_is(
    tmp_path: Path, refusal
) -> None:
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


def test_labels_of_one_file_are_not_those_of_another(samples: list[mcbe.Instance]) -> None:
    for category in mcbe.CATEGORIES:
        own = [item for item in samples if item.category == category]
        assert {item.labels for item in own} == {tuple(sorted({item.subtype for item in own}))}
