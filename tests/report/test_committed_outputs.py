"""What `.ci/notebooks --check` finds: other words and numbers, not other dates or bytes of pictures."""

from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

LOADER = SourceFileLoader("ci_notebooks", str(Path(__file__).parents[2] / ".ci/notebooks"))
script: Any = module_from_spec(spec_from_loader(LOADER.name, LOADER))  # type: ignore[arg-type]
LOADER.exec_module(script)
TABLE = "<table><tr><th>score</th><td style='text-align: left'>{}</td></tr></table>"


def book(
    number: str,
    date: str = "2026-01-02T03:04:05+00:00",
    png: str = "AAAA",
    tags: tuple[str, ...] = (),
) -> Any:
    cell = new_code_cell(
        "show.table(scores)",
        metadata={"tags": list(tags)},
        outputs=[
            new_output("stream", name="stdout", text=f"Asked {date}.\n"),
            new_output(
                "display_data", {"text/html": TABLE.format(number), "text/plain": "<HTML object>"}
            ),
            new_output("display_data", {"image/png": png, "text/plain": "Scores of one model."}),
        ],
    )
    return new_notebook(cells=[new_markdown_cell("# Scores"), cell])


def test_another_number_in_a_table_is_reported_with_its_cell() -> None:
    (difference,) = script.differences(book("0.25"), book("0.75"))
    for text in ("cell 1 (show.table(scores))", "“0.25”", "“0.75”"):
        assert text in difference


def test_dates_bytes_of_pictures_progress_and_speeds_may_differ() -> None:
    again = book("0.25", "2027-09-08T07:06:05+00:00", "BBBB")
    progress = new_output("stream", name="stderr", text="asking, 10 a second\n")
    again.cells[1].outputs.insert(0, progress)
    assert script.differences(book("0.25"), again) == []
    measured = {"tags": (script.IGNORED,)}
    assert script.differences(book("0.25", **measured), book("0.75", **measured)) == []


def test_an_output_that_is_missing_is_reported() -> None:
    shorter = book("0.25")
    shorter.cells[1].outputs.pop()
    assert script.differences(book("0.25"), shorter)
    assert script.differences(shorter, book("0.25"))
