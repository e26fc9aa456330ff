"""Progress in a notebook leaves nothing behind that a page would show."""

import nbformat
from nbclient import NotebookClient

from bench.report.execute import drop_blank_outputs

CELL = """
import tqdm
from bench.core import progress
bar = tqdm.tqdm
tqdm.tqdm = lambda **options: bar(**(options | {"delay": 0, "mininterval": 0}))
with progress.progress(3, "outer", "models") as outer:
    for _ in range(3):
        with progress.progress(2, "inner", "steps") as inner:
            inner.advance()
        outer.advance()
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
