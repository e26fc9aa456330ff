"""Small files that would grow are refused within 500 MB of memory, with the limit in the message.

Each is read in a process of its own.
"""

import gzip
import json
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from openpyxl import Workbook

pytestmark = pytest.mark.slow

MEMORY = 500  # MB, with the imported libraries
CODE = """
import json, sys
from pathlib import Path
from bench.core.errors import BadInput
from bench.data.cbbq import load
from bench.data.fetch import unpack
from bench.data.readers import *
path = Path(sys.argv[2])
try:
    eval(sys.argv[1])
    message = "was read"
except BadInput as refusal:
    message = str(refusal)
status = Path("/proc/self/status").read_text()
peak = int(status.partition("VmHWM:")[2].split()[0]) // 1024
print(json.dumps([message, peak]))
"""
CSV, XLSX, ARRAY = (f"read_{kind}(path, ['a'])" for kind in ("csv", "xlsx", "json_array"))
LINES, YAML, TOML = "list(read_json_lines(path))", "read_yaml(path)", "read_toml(path)"
UNPACK = "unpack(path, path.parent / 'into', lambda name: name.endswith('.csv'))"


def refused(call: str, path: Path) -> str:
    """Return the message with which `call` refuses a file, after a look at its memory."""
    if not Path("/proc/self/status").exists():
        pytest.skip("the peak of a process's memory is read in /proc")
    command = [sys.executable, "-c", CODE, call, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    message, megabytes = json.loads(done.stdout)
    assert megabytes < MEMORY
    assert str(path) in message
    return str(message)


ALIASES = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 9)}]\n" for k in range(1, 12)
)
MERGED = "a0: &a0 {x: 1}\n" + "".join(
    f"a{k}: &a{k} {{<<: [{', '.join([f'*a{k - 1}'] * 9)}]}}\n" for k in range(1, 12)
)
LONG_HEADING = f"[{'a.' * 100_000}a]\n" + "".join(f"b{k} = 1\n" for k in range(50_000))


@pytest.mark.parametrize(
    ("call", "content", "said"),
    [
        (CSV, "a\n" + "x," * 25_000_000, "line 2: is longer than 16,777,216 bytes"),
        (CSV, "a," * 1_000_000, "has 1,000,001 columns; at most 1,000"),
        (CSV, 'a\n"' + "x\n" * 25_000_000, "its record is longer than 16,777,216 characters"),
        (CSV, f"a\n{'x' * 200_000}\n", "a cell is longer than 131,072 characters"),
        (CSV, "a\n" + "1\n" * 5_000_000, "has more than 5,000,000 cells"),
        (LINES, '{"a":' * 1_000_000, "line 1: JSON nested too deeply"),
        (LINES, "[" + "[]," * 5_000_000 + "1]", "line 1: expected a JSON object"),
        (LINES, '{"a": "' + "x" * 50_000_000, "line 1: is longer than 16,777,216 bytes"),
        (LINES, '{"a": ' + "1" * 1_000_000 + "}", "holds a number of too many digits"),
        (LINES, '{"a": 1, "a": 2}', "field 'a' occurs more than once"),
        (ARRAY, "[" + "[]," * 20_000_000, "holds more than 2,000,000 values"),
        (ARRAY, "[" + "{}," * 990_000 + "1]", "row 1: field `a` is missing"),
        (ARRAY, '[{"b":' + "[" * 900_000, "JSON nested too deeply"),
        (ARRAY, " " * (2**26 + 1), "is larger than 67,108,864 bytes"),
        (ARRAY, '[{"a": "\\ud800"}]', "half of a surrogate pair"),
        (YAML, ALIASES, "stands for more than 100,000 values with each alias written out"),
        (YAML, MERGED, "stands for more than 100,000 values with each alias written out"),
        (YAML, "a: &a [*a]", "nested more than 16 deep"),
        (YAML, "[" * 100_000, "nested too deeply"),
        (YAML, "a: 1" + ":1" * 400_000, "is a number of too many digits"),
        (YAML, 'a: "\\ud800"', "half of a surrogate pair"),
        (YAML, "a: 2024-99-99", "not YAML (month must be in 1..12)"),
        (YAML, "a: !!python/object/apply:os.system [id]", "could not determine a constructor"),
        (YAML, "a: 1\na: 2", "key 'a' is there twice"),
        (YAML, "# " * 2**20, "is larger than 1,048,576 bytes"),
        (TOML, "a = " + "[" * 100_000, "is nested too deeply"),
        (TOML, "a = " + "[" * 20 + "]" * 20, "nested more than 16 deep"),
        (TOML, LONG_HEADING, "a key of more than 16 parts"),
        (TOML, "a = 0x" + "f" * 100_000, "holds a number of too many digits"),
    ],
)
def test_text_that_grows_is_refused(tmp_path: Path, call: str, content: str, said: str) -> None:
    path = tmp_path / "a.file"
    path.write_text(content, "utf-8")
    assert said in refused(call, path)


def sheet(path: Path, rows: str, repeat: int = 1) -> Path:
    """Write a workbook whose sheet has these rows, as XML, so many times."""
    Workbook().save(path)
    with zipfile.ZipFile(path) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, raw in parts.items():
            if name != "xl/worksheets/sheet1.xml":
                new.writestr(name, raw)
        with new.open("xl/worksheets/sheet1.xml", "w", force_zip64=True) as part:
            head = f'<!DOCTYPE a [<!ENTITY b "haha">]><worksheet xmlns="{space}"><sheetData>'
            part.write(
                head.removeprefix("" if "&b;" in rows else head[: head.index("<w")]).encode()
            )
            for _ in range(repeat):
                part.write(rows.encode())
            part.write(b"</sheetData></worksheet>")
    return path


@pytest.mark.parametrize(
    ("rows", "repeat", "said"),
    [
        ("<row>" + "<c/>" * 900_000 + "</row>", 1, "more than 1,000 columns"),
        ("<row>" + "<c/>" * 1_000_000 + "</row>", 1, "or 1,000,000 elements"),
        ('<row r="1"><c r="ABCDE1"/></row>', 1, "not a valid column name"),
        ('<row r="1"><c r="XFD1"/></row>', 100_000, "more than 1,000 columns"),
        ('<row r="2000000000"><c><v>1</v></c></row>', 1, "more than 1,048,576 rows"),
        (" " * 2**20, 1000, "unpacks to more than 67,108,864 bytes"),
        ("<row><c><v>&b;</v></c></row>", 1, "cannot be read as xlsx (ValueError"),
        (
            '<row r="1"><c t="str"><v>a</v></c></row><row><c><f>1+1</f></c></row>',
            1,
            "row 1, column",
        ),
    ],
)
def test_a_sheet_that_grows_is_refused(tmp_path: Path, rows: str, repeat: int, said: str) -> None:
    assert said in refused(XLSX, sheet(tmp_path / "a.xlsx", rows, repeat))


def tar_of_zeros(path: Path) -> None:
    with gzip.open(path, "wb", 6) as stream:
        info = tarfile.TarInfo("a.csv")
        info.size = 1100 * 2**20
        stream.write(info.tobuf())
        for _ in range(1100):
            stream.write(bytes(2**20))


def tar_with_a_long_name(path: Path) -> None:
    with gzip.open(path, "wb", 1) as stream:
        info = tarfile.TarInfo("././@LongLink")
        info.type, info.size = tarfile.GNUTYPE_LONGNAME, 600 * 2**20
        stream.write(info.tobuf(tarfile.GNU_FORMAT))
        for _ in range(600):
            stream.write(b"x" * 2**20)


def zip_of_many(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as zipped:
        for k in range(100_001):
            zipped.writestr(f"{k}.py", "")


def zip_of_long_names(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as zipped:
        for k in range(1000):
            zipped.writestr(f"{k}{'n' * 50_000}", "")


@pytest.mark.parametrize(
    ("name", "make", "said"),
    [
        ("a.tar.gz", tar_of_zeros, "unpacks to more than 1,073,741,824 bytes"),
        ("a.tar.gz", tar_with_a_long_name, "of more than 33,554,432 bytes"),
        ("a.zip", zip_of_many, "has more than 100,000 members"),
        ("a.zip", zip_of_long_names, "of more than 33,554,432 bytes"),
    ],
)
def test_an_archive_that_grows_is_refused(
    tmp_path: Path, name: str, make: Callable[[Path], None], said: str
) -> None:
    make(tmp_path / name)
    assert said in refused(UNPACK, tmp_path / name)
    assert not (tmp_path / "into").exists()


@pytest.mark.parametrize(
    ("names", "context", "said"),
    [
        ("甲" + ",乙" * 40_000, "{{NAME1}}和{{NAME2}}", "3,200,160,002 questions, at most 10,000"),
        (
            "甲" + ",乙" * 60,
            "{{NAME1}}和{{NAME2}}" + "字" * 100_000,
            "at most 134,217,728 are made",
        ),
    ],
)
def test_templates_that_would_yield_too_many_questions_are_refused(
    tmp_path: Path, names: str, context: str, said: str
) -> None:
    import csv

    from tests.helpers.recorded import templates

    path = templates(tmp_path / "d") / "region/ambiguous/templates_generate_neg.csv"
    with path.open(encoding="utf-8-sig", newline="") as stream:
        row = next(csv.DictReader(stream))
    row |= {"NAME1": f"[{names}]", "NAME2": f"[{names}]", "context": context}
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(row))
        writer.writeheader()
        writer.writerow(row)
    assert said in refused("load(path.parents[2], ['region'])", path)
