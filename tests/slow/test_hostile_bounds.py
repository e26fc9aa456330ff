"""Small files that would grow: each is refused in seconds, within 500 MB of memory, and the message says the bound.

Those that are measured are read in a process of their own each, which takes minutes in all (`-m slow`).
"""

import gzip
import io
import json
import subprocess
import sys
import tarfile
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

MEMORY = 500  # MB, the imported libraries among them
CODE = """
import json, sys
from pathlib import Path
import bench.data.fetch, bench.data.cbbq, bench.data.mcbe, bench.data.readers, bench.data.readers, bench.data.readers, openpyxl
from bench.core.errors import BadInput
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
MCBE = "bench.data.mcbe.load(path.parent, ['age'])"
COLUMNS = "context,sentence,words,subtype,explanation,score"


def refused(call: str, path: Path) -> str:
    """The message with which `call` refuses a file, after its memory was looked at."""
    if not Path("/proc/self/status").exists():
        pytest.skip("the peak of a process's memory is read in /proc")
    done = subprocess.run(
        [sys.executable, "-c", CODE, call, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    message, megabytes = json.loads(done.stdout)
    assert megabytes < MEMORY
    assert str(path) in message
    return message


def sheet(path: Path, rows: str, size: int = 1, shared: str = "") -> Path:
    """An xlsx file with `rows` in its sheet, `size` times."""
    book = '<?xml version="1.0"?><workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="a" sheetId="1" r:id="rId1"/></sheets></workbook>'
    kinds = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr(
            "[Content_Types].xml",
            '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="xml" ContentType="application/xml"/><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/></Types>',
        )
        zipped.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="{kinds}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        )
        zipped.writestr("xl/workbook.xml", book)
        zipped.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="{kinds}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        )
        if shared:
            zipped.writestr("xl/sharedStrings.xml", shared)
        with zipped.open("xl/worksheets/sheet1.xml", "w", force_zip64=True) as part:
            part.write(
                b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
            )
            for _ in range(size):
                part.write(rows.encode())
            part.write(b"</sheetData></worksheet>")
    return path


LOL = '<!DOCTYPE a [<!ENTITY a "haha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>'


@pytest.mark.parametrize(
    ("rows", "size", "said"),
    [
        ("<row>" + "<c/>" * 1_000_000 + "</row>", 1, "more than 1,000 columns"),
        ('<row r="1"><c r="ABCDE1"/></row>', 1, "more than 1,000 columns"),
        ('<row r="1"><c r="XFD1"/></row>', 100_000, "more than 1,000 columns"),
        ('<row r="2000000000"><c><v>1</v></c></row>', 1, "more than 1,048,576 rows"),
        ('<row r="1e9"><c><v>1</v></c></row>', 1, "more than 1,048,576 rows"),
        ('<row r="1000000"><c r="ZZ1000000"><v>1</v></c></row>', 1, "more than 2,000,000 cells"),
        ("<row><c><v>1</v></c></row>", 400_000, "more than 1,000,000 elements"),
        (" " * 2**20, 1000, "at most 67,108,864 are read"),
    ],
)
def test_a_sheet_that_reaches_far(tmp_path: Path, rows: str, size: int, said: str) -> None:
    path = sheet(tmp_path / "age.xlsx", rows, size)
    assert path.stat().st_size < 2 * 2**20
    assert said in refused(MCBE, path)


def test_other_workbooks(tmp_path: Path, refusal: Callable[..., str]) -> None:
    from bench.data.readers import read_xlsx

    path = sheet(tmp_path / "a.xlsx", "<row><c><v>1</v></c></row>", shared=f"{LOL}<sst>&b;</sst>")
    assert "has a document type" in refusal(read_xlsx, path, ["a"])
    path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(5000))
    assert "has a password, or is an old .xls file" in refusal(read_xlsx, path, ["a"])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as zipped:
        zipped.writestr("xl/workbook.xml", "x")
    assert "packed in a way that xlsx does not have" in refusal(read_xlsx, path, ["a"])
    with zipfile.ZipFile(path, "w") as zipped:
        for k in range(10_001):
            zipped.writestr(str(k), "")
    assert "has 10,001 parts, at most 10,000" in refusal(read_xlsx, path, ["a"])
    # What a sheet says of its own size is not believed, and other sheets, links and macros are passed over.
    cells = "".join(f'<c t="inlineStr"><is><t>{text}</t></is></c>' for text in ("a", "甲"))
    sheet(path, f"<row>{cells}</row><row>{cells.replace('>a<', '>=1+1<')}</row>")
    assert read_xlsx(path, ["a"]) == [{"a": "=1+1", "甲": "甲"}]


def test_formulas_count_as_what_was_stored_with_them(
    tmp_path: Path, refusal: Callable[..., str]
) -> None:
    from bench.data.readers import read_xlsx

    head = '<row r="1"><c t="inlineStr"><is><t>a</t></is></c></row>'
    path = sheet(
        tmp_path / "a.xlsx", head + '<row><c t="str"><f>HYPERLINK("x")</f><v>shown</v></c></row>'
    )
    assert read_xlsx(path, ["a"]) == [{"a": "shown"}]
    sheet(path, head + "<row><c><f>1+1</f></c></row>")
    assert f"{path}, row 1, column `a`: holds a formula without a value" in refusal(
        read_xlsx, path, ["a"]
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (f"{COLUMNS}\n" + "x," * 25_000_000, "its record is longer than 16,777,216 characters"),
        ("a," * 1_000_000, "has 1,000,001 columns; at most 1,000"),
        (f'{COLUMNS}\n"' + "x\n" * 25_000_000, "its record is longer than 16,777,216 characters"),
        (f"{COLUMNS}\n{'x' * 200_000},,,,,\n", "a cell is longer than 131,072 characters"),
        (f"{COLUMNS}\n" + ",,,,,\n" * 1_700_000, "has more than 5,000,000 cells"),
        (f"{COLUMNS}\na,b,c,d,e,{'9' * 100_000}\n", "has no placeholder [PLH]"),
        (f"{COLUMNS}\na,[PLH],c,d,e,{'9' * 100_000}\n", "is not a number from 0 to 10"),
        (f"{COLUMNS}\na,x{' ' * 130_000}x,c,d,e,1\n", "has no placeholder [PLH]"),
    ],
)
def test_a_long_csv_file(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "age.csv"
    path.write_text(content, "utf-8")
    assert said in refused(MCBE, path)


@pytest.mark.parametrize(
    ("names", "context", "said"),
    [
        (
            "甲" + ",乙" * 40_000,
            "{{NAME1}}和{{NAME2}}",
            "it yields 3,200,160,002 questions, at most 10,000 are made",
        ),
        (
            "甲" + ",乙" * 60,
            "{{NAME1}}和{{NAME2}}" + "字" * 100_000,
            "characters, at most 134,217,728 are made",
        ),
        ("甲", "{" * 130_000, "has no placeholder"),
    ],
)
def test_templates_that_would_yield_more_than_could_be_asked(
    tmp_path: Path, names: str, context: str, said: str
) -> None:
    import csv

    from tests.helpers.recorded import templates

    folder = templates(tmp_path / "d")
    path = folder / "region/ambiguous/templates_generate_neg.csv"
    with path.open(encoding="utf-8-sig", newline="") as stream:
        header, row = list(csv.reader(stream))[:2]
    cells = dict(zip(header, row, strict=True)) | {
        "NAME1": f"[{names}]",
        "NAME2": f"[{names}]",
        "context": context,
    }
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([header, [cells[name] for name in header]])
    call = "bench.data.cbbq.load(path.parents[2], ['region'])"
    assert said in refused(call, path)


LINES = "[one for one in bench.data.readers.read_json_lines(path)]"
ARRAY = "bench.data.readers.read_json_array(path, ['a'])"


@pytest.mark.parametrize(
    ("call", "content", "said"),
    [
        (LINES, '{"a":' * 1_000_000, "line 1: JSON nested too deeply"),
        (LINES, '{"a": ' + "[" * 10_000_000, "line 1: JSON nested too deeply"),
        (LINES, "[" + "[]," * 5_000_000 + "1]", "line 1: expected a JSON object"),
        (LINES, '{"a": "' + "x" * 50_000_000, "line 1: is longer than 16,777,216 bytes"),
        (LINES, '{"a": ' + "1" * 1_000_000 + "}", "holds a number of too many digits"),
        (LINES, '{"a": 1, "a": 2}', "field 'a' occurs more than once"),
        (ARRAY, "[" + "[]," * 30_000_000, "expected a JSON array of objects"),
        (ARRAY, '[{"b":' + "[" * 20_000_000, "JSON nested too deeply"),
        (ARRAY, '[{"b": "' + "x" * 50_000_000 + '"}]', "not JSON (Unterminated string"),
        (ARRAY, " " * (2**27 + 1), "is larger than 134,217,728 bytes"),
        (ARRAY, '[{"a": "\\ud800"}]', "half of a surrogate pair"),
        (ARRAY, '[{"a": "x"} {"a": "y"}]', "expected a comma or the end of the array"),
        (ARRAY, '[{"a": "x"}] 1', "something stands behind the end"),
        (ARRAY, '[{"a": "x"},]', "expected a JSON array of objects"),
    ],
)
def test_json_that_is_deep_or_long(tmp_path: Path, call: str, content: str, said: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(content, "utf-8")
    assert said in refused(call, path)


YAML = "bench.data.readers.read_yaml(path)"
TOML = "bench.data.readers.read_toml(path)"
ALIASES = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 9)}]\n" for k in range(1, 12)
)
MERGED = "a0: &a0 {x: 1}\n" + "".join(
    f"a{k}: &a{k} {{<<: [{', '.join([f'*a{k - 1}'] * 9)}]}}\n" for k in range(1, 12)
)


@pytest.mark.parametrize(
    ("call", "content", "said"),
    [
        (YAML, ALIASES, "stands for more than 100,000 values, anchors written out"),
        (YAML, MERGED, "stands for more than 100,000 values, anchors written out"),
        (YAML, "a: &a [*a]", "nested more than 16 deep"),
        (YAML, "[" * 100_000, "nested too deeply"),
        (YAML, "a: " + "9" * 500_000, "is a number of too many digits"),
        (YAML, "a: 1" + ":1" * 400_000, "is a number of too many digits"),
        (YAML, "a: 0x" + "f" * 5000, "is a number of too many digits"),
        (YAML, 'a: "\\ud800"', "half of a surrogate pair"),
        (YAML, "a: 2024-99-99", "not YAML (month must be in 1..12)"),
        (YAML, "a: !!python/object/apply:os.system [id]", "could not determine a constructor"),
        (YAML, "# " * 2**20, "is larger than 1,048,576 bytes"),
        (TOML, "a = " + "[" * 100_000, "is nested too deeply"),
        (TOML, "a = " + "[" * 20 + "]" * 20, "nested more than 16 deep"),
        (
            TOML,
            "[" + "a." * 100_000 + "a]\n" + "".join(f"b{k} = 1\n" for k in range(50_000)),
            "a key of more than 16 parts",
        ),
        (TOML, "a" + ".a" * 400_000 + " = 1", "a key of more than 16 parts"),
        (TOML, "a = " + "9" * 100_000, "holds a number of too many digits"),
        (TOML, "a = 0x" + "f" * 100_000, "holds a number of too many digits"),
        (TOML, "# " * 2**20, "is larger than 1,048,576 bytes"),
    ],
)
def test_yaml_and_toml_that_grow(tmp_path: Path, call: str, content: str, said: str) -> None:
    path = tmp_path / "a.file"
    path.write_text(content, "utf-8")
    assert said in refused(call, path)


ARCHIVE = "bench.data.fetch.unpack(path, path.parent / 'into', lambda name: name.endswith('.csv'))"


def zip_of_zeros(path: Path) -> None:
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped,
        zipped.open("a.csv", "w", force_zip64=True) as part,
    ):
        for _ in range(700):
            part.write(bytes(2**20))


def tar_of_zeros(path: Path) -> None:
    with gzip.open(path, "wb", 6) as stream:  # to a thousandth
        info = tarfile.TarInfo("a.csv")
        info.size = 700 * 2**20
        stream.write(info.tobuf())
        for _ in range(700):
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
        ("a.zip", zip_of_zeros, "unpacks to more than 400 times its size"),
        ("a.tar.gz", tar_of_zeros, "unpacks to more than"),
        ("a.tar.gz", tar_with_a_long_name, "a header of more than 1,048,576 bytes"),
        ("a.zip", zip_of_many, "has more than 100,000 members"),
        ("a.zip", zip_of_long_names, "or names of thousands of bytes"),
    ],
)
def test_archives_that_grow(
    tmp_path: Path, name: str, make: Callable[[Path], None], said: str
) -> None:
    (tmp_path / "into").mkdir()
    make(tmp_path / name)
    assert said in refused(ARCHIVE, tmp_path / name)
    assert not list((tmp_path / "into").iterdir())


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ("A/x.csv", "a/X.csv", "have one name, but for capital letters"),
        ("a.csv", "a.csv", "have one name"),
        ("e\u0301.csv", "\u00e9.csv", "have one name"),
        ("a.csv", "a\nb.csv", "has a character in its name that no name should have"),
        ("a.csv", "a\u202evsc.csv", "has a character in its name that no name should have"),
        ("a.csv", "a" * 300 + ".csv", "has a name of more than 255 bytes"),
        ("a.csv", "a.csv/b.csv", "cannot be unpacked"),
    ],
)
@pytest.mark.parametrize("form", ["zip", "tar.gz"])
def test_names_that_cannot_both_be_written(
    tmp_path: Path, refusal: Callable[..., str], form: str, first: str, second: str, said: str
) -> None:
    from bench.data.fetch import unpack

    path = tmp_path / f"x.{form}"
    if form == "zip":
        with zipfile.ZipFile(path, "w") as zipped, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it knows that a name is there twice
            for name in (first, second):
                zipped.writestr(name, "x")
    else:
        with tarfile.open(path, "w:gz") as tar:
            for name in (first, second):
                info = tarfile.TarInfo(name)
                info.size = 1
                tar.addfile(info, io.BytesIO(b"x"))
    (tmp_path / "into").mkdir()
    message = refusal(unpack, path, tmp_path / "into", lambda name: True)
    assert said in message
    assert message.isprintable()
