"""Tables for spreadsheets and TeX run and lose nothing; numbers and progress can be read."""

import csv
import io
from itertools import product

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.core import export, progress
from bench.core.cells import guarded, unguarded
from bench.core.numbers import decimals
from tests.helpers.cases import cases

HOSTILE = ["=cmd|' /C calc'!A0", "+1+1", "-2+3+cmd|' /C calc'!A0", "@SUM(1+1)", "\t=1+1", "\r=1"]
HOSTILE += ["\n=1", "＝1+1", "＋1", "－1", "＠x", "'=1", "''@x", "="]
HARMLESS = ["", "甲", "'", "it's", "'x", "-1", "+1.5", "-1e-3", "1-2", "a=b", " =1"]
SIGNS = st.text(st.sampled_from("=+-@'＝\t\r\n\";,0123456789.eE甲a "))
TEXTS = SIGNS | st.text() | st.sampled_from(HOSTILE)


@pytest.mark.parametrize(("mark", "text"), [*product([""], HARMLESS), *product(["'"], HOSTILE)])
def test_a_cell_that_a_spreadsheet_program_may_run_gets_an_apostrophe(mark, text):
    assert guarded(text) == mark + text


@given(st.lists(st.tuples(TEXTS, TEXTS, st.floats(allow_nan=False)), min_size=1, max_size=5))
def test_a_table_as_csv_comes_back_without_loss(rows):
    written = export.to_csv(pd.DataFrame(rows, columns=["=model", "note", "score"]))
    header, *read = csv.reader(io.StringIO(written, newline=""))
    assert [unguarded(name) for name in header] == ["=model", "note", "score"]
    assert [(unguarded(a), unguarded(b), float(c)) for a, b, c in read] == rows


def test_the_files_of_a_table(tmp_path):
    frame = pd.DataFrame({"model": ["=HYPERLINK(1)", "\\input{/etc}%^^41"], "score": [-0.5, None]})
    export.write_table(frame, tmp_path, "scores")
    written = (tmp_path / "scores.csv").read_text("utf-8")
    assert written == "model,score\n'=HYPERLINK(1),-0.5\n\\input{/etc}%^^41,\n"
    # Parquet is read by programs, and holds what was there.
    read = pd.read_parquet(tmp_path / "scores.parquet")
    pd.testing.assert_frame_equal(read, frame, check_dtype=False)
    tex = (tmp_path / "scores.tex").read_text("utf-8")
    assert r"\textbackslash input\{/etc\}\%\textasciicircum \textasciicircum 41 & -- \\" in tex
    # A table that is too long for a paper has no LaTeX.
    export.write_table(pd.DataFrame({"n": range(export.MAX_LATEX_ROWS + 1)}), tmp_path, "scores")
    assert {path.suffix for path in tmp_path.iterdir()} == {".csv", ".parquet"}


@cases(__file__, "decimals.csv")
def test_halves_are_rounded_away_from_zero(case):
    assert decimals(float(case["value"]), int(case["digits"])) == case["text"]


def test_where_no_bar_can_be_drawn_lines_say_how_far_it_is(monkeypatch, capsys):
    for name in ("LINE_INTERVAL", "BAR_DELAY"):
        monkeypatch.setattr(progress, name, 0.0)
    with progress.progress(7, "asking", "requests", done=2) as bar:
        bar.update(2)
    lines = capsys.readouterr().err.splitlines()
    assert any(line.startswith("asking: 4 of 7 requests, ") for line in lines)
    assert all(line.endswith(" left") for line in lines)
