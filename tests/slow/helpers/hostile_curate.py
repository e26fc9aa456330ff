"""Readers of curation projects for hostile files: what people wrote, sheets, and what a project keeps.

Test support. Projects are small, of our own example, and under way, so that each file is read.
"""

from functools import cache
from pathlib import Path

import pandas as pd

from bench import data
from bench.core.errors import BadInput
from bench.curate import EXAMPLES, cbbq, mcbe, sheets, simulated
from bench.curate.cbbq import rounds as cbbq_rounds
from bench.curate.mcbe import rounds
from bench.curate.sheets import Question
from tests.slow.helpers.hostile import Files, Reader, attempt, made, of, short, write

# As few people as a project may have.
PEOPLE = """\
[people]
subcategory = ["an", "bai", "chen"]
explanation = ["an"]
review = ["he", "jin"]
severity = ["an", "bai", "ding"]
quality = ["liu"]
panel = ["panel"]
expert = ["tang"]
"""
MANIFEST = """\
name = "Our set"
version = "1"
licence = "MIT"
note = "Not the release's."
language = "zh"

[categories.diet]
en = "Diet"
zh = "饮食"

[categories."rôle+2"]
en = "Role"
zh = "角色"
groups = false
"""
NAME = "severity-1"


@cache
def mcbe_begun() -> Files:
    files = short(of(EXAMPLES / "mcbe", "project.toml", "drafts.csv"), 4)
    project = files["project.toml"].decode().partition("[people]")[0] + PEOPLE
    return {**files, "project.toml": project.encode(), "wording.toml": mcbe.WORDING.read_bytes()}


@cache
def mcbe_under_way() -> Files:
    """A project whose explanations were merged and sent to the reviewers."""
    people = simulated.Annotators(simulated.mcbe_truth(), reliability=1, objects=0, spread=0)

    def work(folder: Path) -> None:
        write(folder, mcbe_begun())
        for _ in range(3):
            state = rounds.advance(mcbe.open_project(folder), simulated.merge, "a writer")
            people.fill(state)
        assert state.merged

    return made(work, "*.*", "sheets/*/*")


def read_mcbe(folder: Path) -> None:
    project = mcbe.open_project(folder)
    mcbe.check_drafts(project)
    for state in (rounds.look(project), rounds.advance(project)):
        assert state.waits
        state.state()
        state.to_mend()
    rounds.read_log(folder)


@cache
def returned() -> Files:
    """A sheet that came back from two people, beside another one."""
    asked = [
        Question("kind", "Of what kind?", choices=("口味", "礼仪")),
        Question("severity", "How severe?", lowest=0, highest=10),
        Question("remark", "What else?", required=False),
    ]
    rows = pd.DataFrame({"item_id": ["d1", "d2", "d3"], "sentence": ["甲乙丙", "=1+1", "两\n行"]})
    answers = {"kind": "口味", "severity": 4.5, "remark": "+ 好"}

    def send(folder: Path) -> None:
        paths = sheets.write(folder, NAME, rows, asked, ["an", "bo"], 1, "Judge by yourself.")
        sheets.write(folder, "other", rows, asked[:1], ["an"], 1)
        for path in paths:
            sheets.fill(path, sheets.load(folder, NAME), path.stem, lambda row: answers)

    return made(send, f"{NAME}/*", "other/*.json")


def read_returned(folder: Path) -> None:
    """Read a sheet, which lists whatever came back; a listed problem counts as a refusal."""
    try:
        found = sheets.read(folder, NAME)
    except BadInput as error:
        raise AssertionError(f"a sheet that came back was refused: {error}") from None
    assert set(found.answers.question) <= {"kind", "severity", "remark"}
    assert found.answers.map(lambda cell: isinstance(cell, str)).all(axis=None)
    assert found.to_mend.what.map(str.isprintable).all()
    assert (found.to_mend.file != "").all()
    # What was taken can go out again.
    taken = list(found.answers.answer[found.answers.question == "remark"])
    if taken:
        ids = [f"r{k}" for k, _ in enumerate(taken)]
        again = pd.DataFrame({"item_id": ids, "said": taken})
        sheets.write(folder, "again", again, [Question("kind", "?")], ["an"], 1)
    if len(found.to_mend):
        raise BadInput(f"{folder}: {found.to_mend.what.iloc[0]}")


def read_record(folder: Path) -> None:
    sheets.load(folder, NAME)
    attempt(lambda: sheets.ask(folder, NAME, ["an", "third"]))
    sheets.read(folder, NAME)


@cache
def cbbq_begun() -> Files:
    files = of(EXAMPLES / "cbbq", "dataset.toml", "biases.csv", "templates.csv")
    return {**files, "wording.toml": cbbq_rounds.WORDINGS.read_bytes()}


@cache
def cbbq_under_way() -> Files:
    def work(folder: Path) -> None:
        write(folder, cbbq_begun())
        simulated.work(cbbq.open_project(folder), reliability=1.0, seed=1)

    return made(work, "*.*", "sheets/*/*")


def read_cbbq(folder: Path) -> None:
    project = cbbq.open_project(folder)
    cbbq.faults(project)
    cbbq_rounds.draw(project, lambda prompts, **_: ["{{NAME1}}与{{NAME2}}。"] * len(prompts), "m")
    cbbq_rounds.hand_out(project, cbbq_rounds.DECIDE, ["editor"])
    cbbq_rounds.Rounds(project)


def own_manifest() -> Files:
    """Data folders with categories of their own."""
    (table,) = short(of(data.SAMPLES / "mcbe", "age.csv"), 3).values()
    return {"dataset.toml": MANIFEST.encode(), "diet.csv": table, "rôle+2.csv": table}


def read_manifest(folder: Path) -> None:
    source = data.find("mcbe", folder)
    source.describe()
    attempt(lambda: data.check(source))
    data.load(source)


READERS = {
    "McBE projects": Reader(mcbe_begun, read_mcbe),
    "McBE projects, what they keep": Reader(
        mcbe_under_way,
        read_mcbe,
        (
            "merged.jsonl",
            "provenance.jsonl",
        ),
    ),
    "sheets that come back": Reader(returned, read_returned, (".xlsx",)),
    "sheets that come back, parts": Reader(returned, read_returned, (".xlsx",), inside=True),
    "records of sheets": Reader(returned, read_record, (".json",)),
    "CBBQ projects": Reader(cbbq_begun, read_cbbq),
    "CBBQ projects, drafts": Reader(cbbq_under_way, read_cbbq, ("drafts.csv",)),
    "manifests": Reader(own_manifest, read_manifest, (".toml",)),
}
