"""McBE's files: the samples, an instance by hand, settings, and which files are read."""

import csv
import hashlib

import pytest

from bench import data
from bench.benchmarks import get
from bench.benchmarks.mcbe import items as mcbe
from tests.data.mcbe.conftest import write
from tests.helpers.recorded import GOOD

BAD = GOOD | {"score": "11", "subtype": "别的"}


def load(folder, *categories, **settings):
    return data.load(data.find("mcbe", folder), categories, **settings)


def effects(folder, **settings):
    return data.read(data.find("mcbe", folder), **settings).effects


def test_the_samples_are_the_same_in_csv_and_xlsx(tmp_path):
    samples = load(get("mcbe").metadata.samples)
    ids = [item.item_id for item in samples]
    assert ids == [f"{name}:{row}" for name in mcbe.CATEGORIES for row in range(1, 9)]
    assert len({item.sentence for item in samples}) == 96
    for item in samples:
        assert "[PLH]" in item.sentence
        assert not any("PLH" in item.filled(word) for word in item.words)
        of_file = {other.subtype for other in samples if other.category == item.category}
        assert item.labels == tuple(sorted(of_file))
    for path in get("mcbe").metadata.samples.glob("*.csv"):
        with path.open(encoding="utf-8-sig", newline="") as stream:
            rows = [row | {"score": float(row["score"])} for row in csv.DictReader(stream)]
        write(tmp_path / "xlsx_files" / f"{path.stem}.xlsx", *rows)
    # An xlsx file has no encoding to choose.
    assert load(tmp_path) == load(tmp_path, encoding="gb18030") == samples


@pytest.mark.parametrize("suffix", ["csv", "xlsx"])
def test_an_instance_by_hand(tmp_path, suffix):
    row = GOOD | {"words": "NA， 乙、丙，，", "subtype": "null", "score": "7", "context": " 会。 "}
    cells = "会。", "[PLH]先发言。", "NA， 乙、丙，，", "null", "说明。", "7.0"
    expected = mcbe.Instance(
        "age",
        1,
        *cells[:2],
        ("NA", "乙、丙"),
        *cells[3:5],
        7.0,
        labels=("null", "别的"),
        content_hash=hashlib.sha256("\0".join(cells).encode()).hexdigest()[:16],
    )
    mixed = {"note": "x"} | dict(reversed(row.items()))
    folder = write(tmp_path / f"age.{suffix}", mixed, mixed | {"subtype": " 别的"})
    assert load(folder)[0] == expected
    assert load(folder, separators="any")[0].words == ("NA", "乙", "丙")


def test_xlsx_is_read_before_csv_and_names_as_a_browser_writes_them(tmp_path):
    write(tmp_path / "csv_files/age.csv", GOOD)
    write(tmp_path / "xlsx_files/test.xlsx", GOOD)
    write(tmp_path / "xlsx_files/lgbtq%2B.xlsx", GOOD, GOOD)
    (tmp_path / "xlsx_files/notes.csv").write_text("who,when\nme,now\n", "utf-8")
    assert [item.item_id for item in load(tmp_path)] == ["lgbtq+:1", "lgbtq+:2"]
    names = ["a/Gender.XLSX", "a/LGBTQ%2B.xlsx", "b/gender.csv", "b/age.csv", "c/age.xlsx"]
    tables = ["xlsx_files/gender.xlsx", "xlsx_files/lgbtq+.xlsx"]
    assert mcbe.arrange(names) == dict(zip(names, tables, strict=False))
    assert mcbe.arrange(["README.md", "data/test.csv"]) == {}


def test_wrong_rows_are_refused_or_left_out_and_the_others_keep_their_ids(tmp_path, refusal):
    write(tmp_path / "age.csv", GOOD, BAD, GOOD, BAD, GOOD)
    assert refusal(load, tmp_path) == (
        f"{tmp_path / 'age.csv'}, row 2, column `score`: '11' is not a number from 0 to 10; wrong "
        "rows: 2 of 5; `bench data mcbe --check` lists them, `--set bad_rows=leave_out` runs "
        "without them"
    )
    items = load(tmp_path, bad_rows="leave_out")
    assert [item.item_id for item in items] == ["age:1", "age:3", "age:5"]
    assert {item.labels for item in items} == {("职场",)}
    (effect,) = effects(tmp_path, bad_rows="leave_out")
    assert (*effect[:3], effect.left_out) == ("age", "", 2, True)
    message = refusal(load, write(tmp_path / "age.csv", BAD, BAD), bad_rows="leave_out")
    assert message.endswith("; wrong rows: 2 of 2; `bench data mcbe --check` lists them")
    write(tmp_path / "age.csv", GOOD | {"words": "镕，乙"}, encoding="gb18030")
    assert [item.words for item in load(tmp_path, encoding="gb18030")] == [("镕", "乙")]
