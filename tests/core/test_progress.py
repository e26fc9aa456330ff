"""Progress in a notebook leaves nothing behind; without a terminal it is lines."""

import nbformat
from nbclient import NotebookClient

from bench.core import progress
from bench.report.execute import drop_blank_outputs

CELL = """
from bench.core import progress
progress.BAR_DELAY = 0
with progress.progress(3, "outer", "models") as outer:
    for _ in range(3):
        with progress.progress(2, "inner", "steps") as inner:
            inner.update()
        outer.update()
progress.say("a word for people")
print("a result")
"""


def test_bars_in_a_notebook_are_gone_when_they_are_done() -> None:
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    NotebookClient(book, kernel_name="python3").execute()
    bars = [output for output in book.cells[0].outputs if output.output_type == "display_data"]
    assert [output.data for output in bars] == [{"text/plain": ""}] * 4
    drop_blank_outputs(book)
    rest = book.cells[0].outputs
    assert "".join(output.text for output in rest) == "a word for people\na result\n"


def test_where_no_bar_can_be_drawn_lines_say_how_far_it_is(monkeypatch, capsys):
    for name in ("LINE_INTERVAL", "BAR_DELAY"):
        monkeypatch.setattr(progress, name, 0.0)
    with progress.progress(7, "asking", "requests", done=2) as bar:
        bar.update(2)
    lines = capsys.readouterr().err.splitlines()
    assert any(line.startswith("asking: 4 of 7 requests, ") for line in lines)
    assert all(line.endswith(" left") for line in lines)
