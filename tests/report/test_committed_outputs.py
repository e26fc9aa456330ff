"""`.ci/notebooks --check` finds other words and numbers, not other dates or bytes of pictures."""

from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

from nbformat.v4 import new_code_cell, new_notebook, new_output

LOADER = SourceFileLoader("ci_notebooks", str(Path(__file__).parents[2] / ".ci/notebooks"))
script = module_from_spec(spec_from_loader(LOADER.name, LOADER))
LOADER.exec_module(script)


def book(number="0.25", date="2026-01-02T03:04:05+00:00", png="AAAA", tags=(), outputs=3):
    printed = [
        new_output("stream", name="stdout", text=f"Asked {date}.\n"),
        new_output("display_data", {"image/png": png, "text/plain": "Scores of one model."}),
        new_output("display_data", {"text/html": f"<table><tr><td>{number}</td></tr></table>"}),
    ]
    metadata = {"tags": list(tags)}
    cell = new_code_cell("show.table(scores)", metadata=metadata, outputs=printed[:outputs])
    return new_notebook(cells=[cell])


def test_another_number_and_a_missing_output_are_reported_but_not_another_date():
    (difference,) = script.differences(book(), book("0.75"))
    for text in ("cell 0 (show.table(scores))", "“0.25”", "“0.75”"):
        assert text in difference
    assert script.differences(book(), book(outputs=2))
    assert script.differences(book(outputs=2), book())
    assert script.differences(book(), book(date="2027-09-08T07:06:05+00:00", png="BBBB")) == []
    measured = {"tags": [script.IGNORED]}
    assert script.differences(book(**measured), book("0.75", **measured)) == []
