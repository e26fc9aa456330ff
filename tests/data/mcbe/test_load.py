"""McBE's files: the samples, an instance by hand, the files that are read, and their checks."""

import hashlib
import tomllib
from pathlib import Path

import pandas as pd
import pytest

from bench import data
from bench.benchmarks import get
from bench.benchmarks.mcbe import items as mcbe
from tests.helpers.recorded import GOOD

SAMPLES, check = get("mcbe").metadata.samples, get("mcbe").check
CASES = tomllib.loads(Path(__file__).with_name("checks.toml").read_text("utf-8"))
# Ten different rows, in which nothing is odd.
ROWS = [GOOD | {"context": f"第{k}次开会时，", "sentence": f"[PLH]说了{k}句。"} for k in range(10)]


def write(path, *rows, encoding="utf-8"):
    """Write rows to a CSV or xlsx file, and return its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pd.DataFrame(list(rows))
    if path.suffix == ".xlsx":
        table.to_excel(path, index=False)
    else:
        table.to_csv(path, index=False, encoding=encoding)
    return path.parent


def load(folder, **settings):
    return data.load(data.find("mcbe", folder), **settings)


def found(folder, kind="odd", part="", **settings):
    """Return the findings of a kind with a part in their text."""
    findings = check(folder, **settings)
    findings = findings[(findings.kind == kind) & findings.what.str.contains(part, regex=False)]
    return [f"{row.file} {row.row} {row.column}: {row.what}" for row in findings.itertuples()]


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
    write(tmp_path / "xlsx_files/notes.csv", {"who": "me", "when": "now"})
    for settings in ({}, {"encoding": "gb18030"}):  # an xlsx file has no encoding to choose
        assert [item.item_id for item in load(tmp_path, **settings)] == ["lgbtq+:1", "lgbtq+:2"]
    names = ["a/Gender.XLSX", "a/LGBTQ%2B.xlsx", "b/gender.csv", "b/age.csv", "c/age.xlsx"]
    tables = ["xlsx_files/gender.xlsx", "xlsx_files/lgbtq+.xlsx"]
    assert mcbe.arrange(names) == dict(zip(names, tables, strict=False))
    assert mcbe.arrange(["README.md", "data/test.csv"]) == {}


def test_a_single_file_is_a_category_of_its_name(tmp_path, refusal):
    folder = write(tmp_path / "sport.csv", GOOD)
    assert [item.item_id for item in load(folder / "sport.csv")] == ["sport:1"]
    write(tmp_path / "all.csv", GOOD)  # the name of all categories together
    assert "'all' cannot be a category's name" in refusal(load, tmp_path / "all.csv")


def test_wrong_rows_are_refused_or_left_out_and_the_others_keep_their_ids(tmp_path, refusal):
    bad, path = GOOD | {"score": "11", "subtype": "别的"}, tmp_path / "age.csv"
    write(path, GOOD, bad, GOOD, bad, GOOD)
    assert refusal(load, tmp_path) == (
        f"{path}, row 2, column `score`: '11' is not a number from 0 to 10; wrong rows: 2 of 5; "
        "`bench data mcbe --check` lists them, `--set bad_rows=leave_out` runs without them"
    )
    loaded = data.read(data.find("mcbe", tmp_path), bad_rows="leave_out")
    items = [(item.item_id, item.labels) for item in loaded.items]
    assert items == [(f"age:{k}", ("职场",)) for k in (1, 3, 5)]
    (effect,) = loaded.effects
    assert (*effect[:3], effect.is_excluded) == ("age", "", 2, True)
    message = refusal(load, write(path, bad, bad), bad_rows="leave_out")
    assert message.endswith("; wrong rows: 2 of 2; `bench data mcbe --check` lists them")
    write(path, GOOD | {"words": "镕，乙"}, encoding="gb18030")
    assert [item.words for item in load(tmp_path, encoding="gb18030")] == [("镕", "乙")]


# Checks


def test_the_samples_are_told_from_the_release_and_have_no_refused_row():
    counts = [f" 0 : category {name}: 8 rows" for name in mcbe.CATEGORIES]
    assert found(SAMPLES, "count") == [*counts, " 0 : all: 96 rows; the release has 4,077 rows"]
    assert found(SAMPLES, "refused") == []


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
    assert " 0 : category age: 7 refused rows, 1 rows" in found(tmp_path, "count")
    assert " 0 : category region: no rows" in found(tmp_path, "count")
    (tmp_path / "empty").mkdir()
    message = " 0 : holds no data of McBE in the layout of its release; "
    assert found(tmp_path / "empty", "refused")[0].startswith(message)
    write(tmp_path / "b/age.csv", bad[0], encoding="gb18030")
    assert found(tmp_path / "b", "refused", encoding="gb18030") == expected[1:2]


def test_an_odd_cell_is_reported_once_and_read(tmp_path):
    rows = [
        GOOD | {"sentence": f"[PLH]说{k}。"} | dict([change.split("=", 1)])
        for k, (change, *_) in enumerate(CASES["odd"])
    ]
    rows += [row | {"score": str(k / 3)} for k, row in enumerate(ROWS)]
    write(tmp_path / "age.csv", *rows)
    # Worldview may have no placeholder and one word.
    write(tmp_path / "worldview.csv", GOOD | {"sentence": "要。", "words": "甲"})
    odd = zip(CASES["odd"], found(tmp_path), strict=True)
    for row, ((_, column, what), text) in enumerate(odd, start=1):
        assert text.startswith(f"age.csv {row} {column}: ")
        assert what in text
    assert len(mcbe.load(tmp_path, ["age"]).items) == len(rows)


def test_rows_that_repeat_are_reported(tmp_path):
    write(tmp_path / "gender.csv", GOOD, *ROWS)
    rows = [ROWS[0], GOOD | {"context": "后来，", "score": "5"}, GOOD | {"words": "甲， 乙"}]
    write(tmp_path / "age.csv", *rows)
    assert found(tmp_path, part="repeats") == CASES["repeats"]
