"""Progress in a notebook leaves nothing behind; estimates rest on the recent speed by size."""

import nbformat
from nbclient import NotebookClient

from bench.core import progress
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


def test_the_time_that_is_left_rests_on_the_size_and_speed_of_what_was_done(monkeypatch, capsys):
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    with progress.progress(7, "asking", "requests", size=300) as bar:
        now = 500.0  # a model is loaded, or trained
        bar.begin()
        bar.advance(1, 100)
        now = 505.0
        bar.advance(1, 100)  # too early to be told
        now = 540.0
        bar.advance(1, 40)  # 240 in 40 s
        now = 1000.0
        bar.begin()  # another model
        now = 1030.0
        bar.advance(1, 30)  # 1 a second, 30 are left
    lines = ["3 of 7 requests, about 10 s left", "4 of 7 requests, about 30 s left"]
    assert capsys.readouterr().err.splitlines() == [
        "asking: 1 of 7 requests",
        *(f"asking: {line}" for line in lines),
    ]
