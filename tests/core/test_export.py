"""No spreadsheet program runs a cell of an exported table, TeX acts on none, and none is lost."""

import csv
import io
import re
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.core import export
from bench.core.cells import RISKY, guarded, unguarded
from bench.run.human_marks import cell

HOSTILE = [
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-2+3+cmd|' /C calc'!A0",
    "@SUM(1+1)",
    "\t=1+1",
    "\r=1+1",
    "\n=1",
    "＝1+1",
    "－1",
    "'=1",
    "''@x",
    "=",
]
texts = (
    st.text(st.sampled_from("=+-@'＝\t\r\n\";,0123456789.eE甲a "))
    | st.text()
    | st.sampled_from(HOSTILE)
)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_formula_is_text_to_a_spreadsheet(text: str) -> None:
    assert guarded(text) == f"'{text}"
    assert unguarded(guarded(text)) == text


@pytest.mark.parametrize(
    "text", ["", "甲", "'", "it's", "'x", "-1", "+1.5", "-1e-3", "1-2", "a=b", " =1"]
)
def test_what_no_spreadsheet_runs_stays_as_it_is(text: str) -> None:
    assert guarded(text) == text == unguarded(text)


@given(texts)
def test_a_guarded_cell_is_harmless_and_comes_back_without_loss(text: str) -> None:
    assert unguarded(guarded(text)) == text
    shown = guarded(text)
    assert not shown.startswith(RISKY) or re.fullmatch(
        r"[+-](\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", shown, re.ASCII
    )


@given(st.lists(st.tuples(texts, texts, st.floats(allow_nan=False)), min_size=1, max_size=5))
def test_a_table_as_csv_comes_back_without_loss(rows: list[tuple[str, str, float]]) -> None:
    frame = pd.DataFrame(rows, columns=["=model", "note", "score"])
    written = export.to_csv(frame)
    header, *read = list(csv.reader(io.StringIO(written, newline="")))
    assert [unguarded(name) for name in header] == list(frame.columns)
    found = [(unguarded(a), unguarded(b), float(c)) for a, b, c in read]
    assert found == rows
    assert all(not one.startswith(("=", "@", "\t", "\r")) for row in read for one in row[:2])


def test_numbers_are_never_guarded() -> None:
    frame = pd.DataFrame({"score": [-1.5, 2.0], "n": [-3, 4], "mixed": [-0.5, "-x"]})
    assert export.to_csv(frame) == "score,n,mixed\n-1.5,-3,-0.5\n2.0,4,'-x\n"


def test_the_files_of_a_table(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"model": ["=HYPERLINK(1)", "\\input{/etc/passwd}%^^41"], "score": [-0.5, 1.0]}
    )
    export.write_table(frame, tmp_path, "scores")
    assert (tmp_path / "scores.csv").read_text("utf-8") == (
        "model,score\n'=HYPERLINK(1),-0.5\n\\input{/etc/passwd}%^^41,1.0\n"
    )
    # Parquet is read by programs, and holds what was there.
    pd.testing.assert_frame_equal(
        pd.read_parquet(tmp_path / "scores.parquet"), frame, check_dtype=False
    )
    tex = (tmp_path / "scores.tex").read_text("utf-8")
    assert (
        r"\textbackslash{}input\{/etc/passwd\}\%\textasciicircum{}\textasciicircum{}41 & 1.000 \\"
        in tex
    )


# Only commands that show a character.
SAFE = re.compile(
    r"(?:[^\\{}%$&#_^~<>|\n]|\\[&%$#_{}]|\{[\[*]\}"
    r"|\\text(?:backslash|asciitilde|asciicircum|less|greater|bar)\{\})*"
)


@given(texts | st.text(st.sampled_from("\\{}%$&#_^~<>|[]*\n\r\x1b\u202eab1")))
def test_no_text_is_a_command_to_tex(text: str) -> None:
    lines = export.to_latex(pd.DataFrame({"a": [text], "b": [1.0]})).splitlines()
    row = lines[lines.index(r"\midrule") + 1]
    assert row.endswith(r" & 1.000 \\")
    shown = row.removesuffix(r" & 1.000 \\")
    assert SAFE.fullmatch(shown), shown
    assert not shown.startswith(("[", "*"))
    assert shown.isprintable()


def test_no_column_name_is_a_command_to_tex() -> None:
    written = export.to_latex(pd.DataFrame({"%_x": ["[1em]"], "y": [float("nan")]}))
    assert "\\%\\_x & y" in written
    assert r"{[}1em] & -- \\" in written


def test_a_nul_of_a_reply_is_named_in_a_table() -> None:
    assert cell("=a\0b") == r"'=a\x00b"
