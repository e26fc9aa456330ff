"""Readers of curation projects for hostile files: what people wrote, sheets, what a project keeps.

Test support. Projects are small, of our own example, and under way, so that each file is read.
"""

from functools import cache
from pathlib import Path

import pandas as pd

from bench.core.errors import BadInput
from bench.curate import EXAMPLES, cbbq, mcbe, sheets, simulated
from bench.curate.cbbq import rounds as cbbq_rounds
from bench.curate.mcbe import rounds
from bench.curate.sheets import Question
from tests.helpers.curating import begin_mcbe, mcbe_people
from tests.slow.helpers.hostile import Files, Reader, made, of, write

ASKED = [
    Question("kind", "Of what kind?", choices=("口味", "礼仪")),
    Question("severity", "How severe?", lowest=0, highest=10),
    Question("remark", "What else?", required=False),
]


@cache
def mcbe_begun() -> Files:
    files = made(lambda folder: begin_mcbe(folder, drafts=4), "*")
    return {**files, "wording.toml": mcbe.WORDING.read_bytes()}


@cache
def mcbe_under_way() -> Files:
    """A project whose explanations were merged and sent to the reviewers."""

    def work(folder: Path) -> None:
        write(folder, mcbe_begun())
        for _ in range(3):
            state = rounds.advance(mcbe.open_project(folder), simulated.merge, "a writer")
            mcbe_people().fill(state)
        assert state.merged

    return made(work, "*.*", "sheets/*/*")


def read_mcbe(folder: Path) -> None:
    project = mcbe.open_project(folder)
    for state in (rounds.look(project), rounds.advance(project)):
        assert state.waits
        state.state()
        state.to_mend()


@cache
def returned() -> Files:
    """A sheet that came back from two people."""
    rows = pd.DataFrame({"item_id": ["d1", "d2", "d3"], "sentence": ["甲乙丙", "=1+1", "两\n行"]})
    answers = {"kind": "口味", "severity": 4.5, "remark": "+ 好"}

    def send(folder: Path) -> None:
        for path in sheets.write(folder, "s", rows, ASKED, ["an", "bo"], 1, "Judge by yourself."):
            sheets.fill(path, sheets.load(folder, "s"), path.stem, lambda row: answers)

    return made(send, "s/*")


def read_returned(folder: Path) -> None:
    """Read a sheet, which lists whatever came back; a listed problem counts as a refusal."""
    try:
        found = sheets.read(folder, "s")
    except BadInput as error:
        raise AssertionError(f"a sheet that came back was refused: {error}") from None
    assert found.answers.map(lambda cell: isinstance(cell, str)).all(axis=None)
    assert found.to_mend.what.map(str.isprintable).all()
    if len(found.to_mend):
        raise BadInput(f"{folder}: {found.to_mend.what.iloc[0]}")


@cache
def cbbq_begun() -> Files:
    files = of(EXAMPLES / "cbbq", "dataset.toml", "biases.csv", "templates.csv")
    return {**files, "wording.toml": cbbq_rounds.WORDINGS.read_bytes()}


def read_cbbq(folder: Path) -> None:
    project = cbbq.open_project(folder)
    cbbq_rounds.draw(project, lambda prompts, **_: ["{{NAME1}}与{{NAME2}}。"] * len(prompts), "m")
    cbbq_rounds.hand_out(project, cbbq_rounds.DECIDE, ["editor"])
    cbbq_rounds.Rounds(project)


READERS = {
    "McBE projects": Reader(mcbe_begun, read_mcbe),
    "McBE projects, what they keep": Reader(mcbe_under_way, read_mcbe, (".jsonl",)),
    "sheets that come back": Reader(returned, read_returned, (".xlsx",)),
    "CBBQ projects": Reader(cbbq_begun, read_cbbq),
}
