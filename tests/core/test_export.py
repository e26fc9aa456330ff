"""No spreadsheet program runs a cell of an exported table, TeX acts on none, and none is lost."""

import csv
import io
import re

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.core import export
from bench.core.cells import RISKY, guarded, unguarded

HOSTILE = ["=cmd|' /C calc'!A0", "+1+1", "-2+3+cmd|' /C calc'!A0", "@SUM(1+1)", "\t=1+1", "\r=1"]
HOSTILE += ["\n=1", "＝1+1", "－1", "'=1", "''@x", "="]
HARMLESS = ["", "甲", "'", "it's", "'x", "-1", "+1.5", "-1e-3", "1-2", "a=b", " =1"]
signs = st.text(st.sampled_from("=+-@'＝\t\r\n\";,0123456789.eE甲a "))
texts = signs | st.text() | st.sampled_from(HOSTILE)
NUMBER = re.compile(r"[+-](\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)


@pytest.mark.parametrize("text", HARMLESS)
def test_a_harmless_cell_stays(text):
    assert guarded(text) == text == unguarded(text)


@given(st.lists(st.tuples(texts, texts, st.floats(allow_nan=False)), min_size=1, max_size=5))
def test_a_table_as_csv_is_harmless_and_comes_back_without_loss(rows):
    frame = pd.DataFrame(rows, columns=["=model", "note", "score"])
    written = export.to_csv(frame)
    header, *read = list(csv.reader(io.StringIO(written, newline="")))
    assert [unguarded(name) for name in header] == list(frame.columns)
    assert [(unguarded(a), unguarded(b), float(c)) for a, b, c in read] == rows
    shown = [text for row in read for text in row[:2]]
    assert all(not text.startswith(RISKY) or NUMBER.fullmatch(text) for text in shown)


def test_the_files_of_a_table(tmp_path):
    frame = pd.DataFrame({"model": ["=HYPERLINK(1)", "\\input{/etc}%^^41"], "score": [-0.5, None]})
    export.write_table(frame, tmp_path, "scores")
    written = (tmp_path / "scores.csv").read_text("utf-8")
    assert written == "model,score\n'=HYPERLINK(1),-0.5\n\\input{/etc}%^^41,\n"
    # Parquet is read by programs, and holds what was there.
    read = pd.read_parquet(tmp_path / "scores.parquet")
    pd.testing.assert_frame_equal(read, frame, check_dtype=False)
    tex = (tmp_path / "scores.tex").read_text("utf-8")
    caret = r"\textasciicircum "
    assert rf"\textbackslash input\{{/etc\}}\%{caret}{caret}41 & -- \\" in tex


# Only commands that show a character.
SAFE = re.compile(
    r"(?:[^\\{}%$&#_^~\n]|\\[&%$#_{}]|\{[\[*]\}"
    r"|\\text(?:backslash|asciitilde|asciicircum)(?:\{\}| (?:\\space )?|\\space ))*"
)


@given(texts | st.text(st.sampled_from("\\{}%$&#_^~<>|[]*\n\r\x1b\u202eab1")))
def test_no_text_is_a_command_to_tex(text):
    lines = export.to_latex(pd.DataFrame({"%_a": [text], "b": [1.0]})).splitlines()
    assert any(r"\%\_a & b" in line for line in lines)
    row = lines[lines.index(r"\midrule") + 1]
    assert row.endswith(r" & 1.000 \\")
    shown = row.removesuffix(r" & 1.000 \\")
    assert SAFE.fullmatch(shown), shown
    assert not shown.startswith(("[", "*"))
    assert shown.isprintable()
