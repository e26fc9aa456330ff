"""Small files that would grow are refused within 500 MB of memory, with the limit in the message.

Each is read in a process of its own.
"""

import csv
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

from tests.helpers.recorded import templates

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
TEMPLATES = "load(path.parents[2], ['region'])"


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


def aliases(first: str, later: str) -> str:
    """YAML in which each line stands for nine of the line before."""
    lines = [f"a{k}: &a{k} {later.format(', '.join([f'*a{k - 1}'] * 9))}" for k in range(1, 12)]
    return "\n".join([f"a0: &a0 {first}", *lines])


@pytest.mark.parametrize(
    ("call", "content", "said"),
    [
        (CSV, "a\n" + "x," * 25_000_000, "line 2: is longer than 16,777,216 characters"),
        (CSV, "a," * 1_000_000, "has 1,000,001 columns; at most 1,000"),
        (CSV, 'a\n"' + "x\n" * 25_000_000, "its record is longer than 16,777,216 characters"),
        (CSV, "a\n" + "1\n" * 5_000_000, "more than 5,000,000 cells"),
        (LINES, '{"a":' * 1_000_000, "line 1: JSON nested too deeply"),
        (LINES, "[" + "[]," * 5_000_000 + "1]", "line 1: expected a JSON object"),
        (LINES, '{"a": "' + "x" * 50_000_000, "line 1: is longer than 16,777,216 characters"),
        (LINES, '{"a": ' + "1" * 1_000_000 + "}", "Exceeds the limit (4300 digits)"),
        (ARRAY, "[" + "[]," * 20_000_000, "holds more than 2,000,000 values"),
        (ARRAY, "[" + "{}," * 990_000 + "1]", "row 1: field `a` is missing"),
        (ARRAY, " " * (2**26 + 1), "is larger than 67,108,864 bytes"),
        (YAML, aliases("[x, x, x]", "[{}]"), "stands for more than 100,000 values with each"),
        (YAML, aliases("{x: 1}", "{{<<: [{}]}}"), "stands for more than 100,000 values with each"),
        (YAML, "[" * 100_000, "not YAML (maximum recursion depth"),
        (YAML, "a: 1" + ":1" * 400_000, "is a number of too many digits"),
        (YAML, "# " * 2**20, "is larger than 1,048,576 bytes"),
        (TOML, "a = " + "[" * 100_000, "not TOML (maximum recursion depth"),
        (TOML, f"[{'a.' * 100_000}a]\n" + "b = 1\n" * 50_000, "a key of more than 16 parts"),
        (TOML, "a = 0x" + "f" * 100_000, "a number of too many digits"),
    ],
)
def test_text_that_grows_is_refused(tmp_path: Path, call: str, content: str, said: str) -> None:
    path = tmp_path / "a.file"
    path.write_text(content, "utf-8")
    assert said in refused(call, path)


def sheet(path: Path, rows: str, repeat: int) -> None:
    """Write a workbook whose sheet has these rows, as XML, so many times."""
    Workbook().save(path)
    with zipfile.ZipFile(path) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    entity = '<!DOCTYPE a [<!ENTITY b "haha">]>' if "&b;" in rows else ""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, raw in parts.items():
            if name != "xl/worksheets/sheet1.xml":
                new.writestr(name, raw)
        with new.open("xl/worksheets/sheet1.xml", "w", force_zip64=True) as part:
            part.write(f'{entity}<worksheet xmlns="{space}"><sheetData>'.encode())
            for _ in range(repeat):
                part.write(rows.encode())
            part.write(b"</sheetData></worksheet>")


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
    ],
)
def test_a_sheet_that_grows_is_refused(tmp_path: Path, rows: str, repeat: int, said: str) -> None:
    sheet(tmp_path / "a.xlsx", rows, repeat)
    assert said in refused(XLSX, tmp_path / "a.xlsx")


def tar_of(name: str, kind: bytes, megabytes: int, fill: bytes) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        with gzip.open(path, "wb", 1) as stream:
            info = tarfile.TarInfo(name)
            info.type, info.size = kind, megabytes * 2**20
            stream.write(info.tobuf(tarfile.GNU_FORMAT))
            for _ in range(megabytes):
                stream.write(fill * 2**20)

    return make


def zip_of(members: int, length: int) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        with zipfile.ZipFile(path, "w") as zipped:
            for k in range(members):
                zipped.writestr(f"{k}{'n' * length}.py", "")

    return make


LIMIT = "unpacks to more than 1,073,741,824 bytes or 100,000 members"


@pytest.mark.parametrize(
    ("name", "make", "said"),
    [
        ("a.tar.gz", tar_of("a.csv", tarfile.REGTYPE, 1100, b"\0"), LIMIT),
        (
            "a.tar.gz",
            tar_of("././@LongLink", tarfile.GNUTYPE_LONGNAME, 600, b"x"),
            "of more than 33,554,432 bytes",
        ),
        ("a.zip", zip_of(100_001, 0), LIMIT),
        ("a.zip", zip_of(1000, 50_000), "of more than 33,554,432 bytes"),
    ],
)
def test_an_archive_that_grows_is_refused(
    tmp_path: Path, name: str, make: Callable[[Path], None], said: str
) -> None:
    make(tmp_path / name)
    assert said in refused(UNPACK, tmp_path / name)
    assert not (tmp_path / "into").exists()


@pytest.mark.parametrize(
    ("names", "more", "said"),
    [
        (40_001, 0, "3,200,160,002 questions, at most 10,000"),
        (61, 100_000, "at most 134,217,728 are made"),
    ],
)
def test_templates_that_would_yield_too_many_questions_are_refused(
    tmp_path: Path, names: int, more: int, said: str
) -> None:
    # Longer cells than csv reads by default.
    csv.field_size_limit(2**24)
    cell = f"[{','.join(['甲'] * names)}]"
    cells = {"NAME1": cell, "NAME2": cell, "context": "{{NAME1}}和{{NAME2}}" + "字" * more}
    path = templates(tmp_path / "d", cells) / "region/ambiguous/templates_generate_neg.csv"
    assert said in refused(TEMPLATES, path)
