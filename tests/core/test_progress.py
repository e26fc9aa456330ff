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
            inner.advance()
        outer.advance()
progress.say("a word for people")
print("a result")
"""


def test_bars_in_a_notebook_are_gone_when_they_are_done() -> None:
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    NotebookClient(book, kernel_name="python3").execute()
    outputs = book.cells[0].outputs
    bars = [output for output in outputs if output.output_type == "display_data"]
    assert len(bars) == 4, "an output each, which changed in place"
    assert all(output.data == {"text/plain": ""} for output in bars)
    drop_blank_outputs(book)
    rest = book.cells[0].outputs
    assert {output.name for output in rest} == {"stdout"}
    assert "".join(output.text for output in rest) == "a word for people\na result\n"


def test_a_widget_leaves_what_stands_beside_it() -> None:
    view = {
        "application/vnd.jupyter.widget-view+json": {"model_id": "x"},
        "text/html": "<p>begins</p>",
    }
    cell = nbformat.v4.new_code_cell(outputs=[nbformat.v4.new_output("display_data", view)])
    book = nbformat.v4.new_notebook(cells=[cell], metadata={"widgets": {"state": {}}})
    drop_blank_outputs(book)
    assert book.cells[0].outputs[0].data == {"text/html": "<p>begins</p>"}
    assert "widgets" not in book.metadata
