"""Small files that would grow are read or refused within bounded memory and time.

Each is read in a process of its own; the message names the file and the limit.
"""

import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from openpyxl import Workbook

pytestmark = pytest.mark.slow
in_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read there")

MEMORY, SECONDS = 500, 100  # MB, with the imported libraries; on a busy machine
CODE = """
import json, sys
from pathlib import Path
from bench.core.errors import BadInput
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
YAML, TOML = "read_yaml(path)", "read_toml(path)"


def text(content: str) -> Callable[[Path], object]:
    return lambda path: path.write_text(content, "utf-8")


# Each line stands twice for the line before.
DOUBLED = "".join(f"a{k}: &a{k} [*a{k - 1}, *a{k - 1}]\n" for k in range(1, 11))


def sheet(path: Path, rows: str, repeat: int = 1, head: str = "") -> None:
    """Write a workbook whose sheet has these rows, as XML, so many times."""
    Workbook().save(path)
    with zipfile.ZipFile(path) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    start = f'{head}<worksheet xmlns="{space}"><sheetData>'
    parts["xl/worksheets/sheet1.xml"] = (
        start.encode() + rows.encode() * repeat + b"</sheetData></worksheet>"
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, raw in parts.items():
            new.writestr(name, raw)


def xml(*args: object) -> Callable[[Path], object]:
    return lambda path: sheet(path, *args)  # type: ignore[arg-type]


CASES: list[tuple[str, Callable[[Path], object], str]] = [
    (CSV, text("a\n" + "x," * 5_000_000), "line 2: is longer than 4,194,304 characters"),
    (CSV, text('a\n"' + "x\n" * 5_000_000), "its record is longer than 4,194,304 characters"),
    (CSV, text("a\n" + "1\n" * 5_000_000), "more than 5,000,000 cells"),
    (ARRAY, text("[" + "{}," * 5_000_000 + "1]"), "row 1: field `a` is missing"),
    (YAML, text(f"a0: &a0 [{'1,' * 30_000}]\n{DOUBLED}"), "was read"),
    (YAML, text("a: 1" + ":1" * 32_000), "not YAML (a number of too many digits"),
    (TOML, text("a = " + "[" * 65_000), "not TOML (maximum recursion depth"),
    (XLSX, xml('<row><c r="XFD1"/></row>', 100_000), "has more than 5,000,000 cells"),
    (XLSX, xml('<row r="2000000000"><c><v>1</v></c></row>'), "has more than 5,000,000 cells"),
    (XLSX, xml(" " * 2**20, 100), "unpacks to more than 16,777,216 bytes"),
    (
        XLSX,
        xml("<row><c><v>&b;</v></c></row>", 1, '<!DOCTYPE a [<!ENTITY b "h">]>'),
        "xlsx (ValueError",
    ),
]


@in_proc
@pytest.mark.parametrize(("call", "make", "said"), CASES)
def test_a_file_that_grows_takes_bounded_memory_and_time(
    tmp_path: Path, call: str, make: Callable[[Path], object], said: str
) -> None:
    path = tmp_path / "a.xlsx"
    make(path)
    command = [sys.executable, "-c", CODE, call, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=SECONDS)
    message, megabytes = json.loads(done.stdout)
    assert said in message
    assert str(path) in message or message == "was read"
    assert megabytes < MEMORY
