"""The audit of McBE: each finding by a small hostile file, and that nothing stops it."""

import tomllib
from pathlib import Path

from bench.benchmarks import get
from bench.benchmarks.mcbe import items as mcbe
from bench.benchmarks.mcbe.audit import check
from tests.data.mcbe.conftest import write
from tests.helpers.recorded import GOOD

# Ten different rows, in which nothing is odd.
ROWS = [GOOD | {"context": f"第{k}次开会时，", "sentence": f"[PLH]说了{k}句。"} for k in range(10)]


def found(folder, kind="odd", metadata="", **settings):
    """The findings of a kind, `FILE ROW COLUMN: WHAT`, but for categories that are missing."""
    findings = check(folder, **settings)
    missing = findings.what.str.endswith("has no file that is read")
    part = findings[(findings.kind == kind) & ~missing]
    places = part[["file", "row", "column"]].astype(str).agg(" ".join, axis=1)
    return [
        f"{place}: {what}"
        for place, what in zip(places, part.what, strict=True)
        if metadata in what
    ]


def test_the_samples_are_told_from_the_release_and_have_no_refused_row():
    assert found(get("mcbe").metadata.samples, "count") == [
        " 0 : all files: 96 rows, 12 categories, 57 subcategories; the release has 4,077 rows, 12 "
        "categories, 82 subcategories"
    ]
    assert "refused" not in set(check(get("mcbe").metadata.samples).kind)


CASES = tomllib.loads(Path(__file__).with_name("audit.toml").read_text("utf-8"))


def test_every_refused_row_and_file_is_listed(tmp_path):
    expected = CASES["refused"]
    bad = [GOOD | dict([change.split("=")]) for change in CASES["bad"]]
    write(tmp_path / "age.csv", *bad, GOOD)
    write(tmp_path / "worldview.csv", bad[1], GOOD | {"sentence": "要趁早。", "words": ""})
    for name in ("Race.csv", "region.csv"):
        write(tmp_path / name, GOOD)
    contents = {"race.csv": b"", "gender.csv": b'"con\x1b[2J",words\n1,2\n'}
    contents |= {"dataset.toml": b"name =", "age.csv": b"a,b\n", "region.csv": b"\xff"}
    for name, content in contents.items():
        with (tmp_path / name).open("ab") as stream:
            stream.write(content)
    refused = found(tmp_path, "refused")
    assert [text[: len(start)] for text, start in zip(refused, expected, strict=True)] == expected
    assert found(tmp_path, "count")[0].startswith(" 0 : all files (8 rows are refused): 2 rows, ")
    assert "the folder holds no data of McBE; " in found(tmp_path / "gone", "refused")[0]
    write(tmp_path / "b/age.csv", bad[0], encoding="gb18030")
    assert found(tmp_path / "b", "refused", encoding="gb18030") == expected[1:2]


def test_an_odd_cell_is_reported_once_and_read(tmp_path):
    cases = CASES["odd"]
    plain = [GOOD | {"sentence": f"[PLH]说{k}。", "x\x1b": ""} for k in range(len(cases))]
    changes = [dict([change.split("=", 1)]) for change, *_ in cases]
    rows = [row | change for row, change in zip(plain, changes, strict=True)]
    rows += [row | {"score": str(k / 3)} for k, row in enumerate(ROWS)]
    write(tmp_path / "age.csv", *rows)
    # Worldview may have no placeholder and one word.
    write(tmp_path / "worldview.csv", GOOD | {"sentence": "要。", "words": "甲"})
    separators, of_file, *odd, no_slot, label = found(tmp_path)
    assert of_file == "age.csv 0 x\\x1b: is a column that is not read"
    assert no_slot.startswith("worldview.csv 1 sentence: has no placeholder [PLH], so that no word")
    assert label == "worldview.csv 1 subtype: is a label that no other row has"
    assert separators.endswith("any` reads 1 rows otherwise than the default does")
    for row, ((_, column, what), text) in enumerate(zip(cases, odd, strict=True), start=1):
        assert text.startswith(f"age.csv {row} {column}: ")
        assert what in text
    assert len(mcbe.load(tmp_path, ["age"]).items) == len(rows)


def test_rows_that_repeat_and_labels_that_can_be_confused_are_reported(tmp_path):
    labels = ["职场", "职场评价", "IT 业", "ｉｔ业", "其他"]
    rows = [row | {"subtype": label} for row, label in zip(ROWS, labels * 2, strict=True)]
    write(tmp_path / "gender.csv", GOOD, *rows)
    rows = [rows[0], GOOD | {"context": "后来，", "score": "5"}, GOOD | {"words": "甲， 乙"}]
    write(tmp_path / "age.csv", *rows, GOOD | {"context": "种", "subtype": "职"})
    part = "is a label that is part of another"
    assert found(tmp_path, metadata="label") == [
        f"age.csv 0 subtype: {part}, '职场': the released code takes one for the other",
        "age.csv 4 subtype: is a label that no other row has",
        f"gender.csv 0 subtype: {part}, '职场评价': the released code takes one for the other",
        "gender.csv 0 subtype: is a label that differs from 'ｉｔ业' in case, width or blanks "
        "alone",
    ]
    repeats = "repeats the sentence and the words of gender.csv, row 1"
    assert found(tmp_path, metadata="repeats") == [
        "age.csv 1 : repeats gender.csv, row 2",
        f"age.csv 2 sentence: {repeats} with another context, score",
        f"age.csv 3 sentence: {repeats} written otherwise",
        f"age.csv 4 sentence: {repeats} with another context, subtype",
    ]
