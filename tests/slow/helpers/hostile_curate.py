"""Readers of curation projects for hostile files: what people wrote, sheets that came back, and what a project keeps.

Test support. Projects are small, of our own example, and under way, so that each file is read.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from bench import data
from bench.core.errors import BadInput
from bench.curate import (
    cbbq,
    cbbq_discuss,
    cbbq_drafts,
    cbbq_review,
    cbbq_simulated,
    mcbe,
    mcbe_rounds,
    mcbe_simulated,
    provenance,
    sheets,
)
from bench.curate.begin import EXAMPLES
from bench.curate.workbook import Question
from tests.slow.helpers.hostile import Files, Reader, attempt, of, short

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
NAME = "severity-1"


@cache
def mcbe_begun() -> Files:
    files = short(of(EXAMPLES / "mcbe", "project.toml", "drafts.csv"), 4)
    project = files["project.toml"].decode().partition("[people]")[0] + PEOPLE
    return {**files, "project.toml": project.encode(), "wording.toml": mcbe.WORDING.read_bytes()}


def read_mcbe(folder: Path) -> None:
    project = mcbe.opened(folder)
    mcbe.check(project)
    for found in (mcbe_rounds.look(project), mcbe_rounds.advance(project)):
        assert found.waits
        found.state()
        found.to_mend()
    provenance.read(folder)


@cache
def mcbe_under_way() -> Files:
    """A project whose explanations were merged and sent to the reviewers."""
    people = mcbe_simulated.Annotators(mcbe_simulated.truth(), reliability=1, objects=0, spread=0)
    with TemporaryDirectory() as root:
        write(Path(root), mcbe_begun())
        for _ in range(3):
            found = mcbe_rounds.advance(mcbe.opened(root), mcbe_simulated.writer, "a writer")
            people.fill(found)
        assert found.merged
        return of(Path(root), "*.*", "sheets/*/*")


@cache
def returned() -> Files:
    """A sheet that came back from two people, beside another one."""
    asked = [
        Question("kind", "Of what kind?", choices=("口味", "礼仪")),
        Question("severity", "How severe?", lowest=0, highest=10),
        Question("remark", "What else?", required=False),
    ]
    rows = pd.DataFrame({"item_id": ["d1", "d2", "d3"], "sentence": ["甲乙丙", "=1+1", "两\n行"]})
    with TemporaryDirectory() as root:
        place = Path(root)
        sheets.write(place, NAME, rows, asked, ["an", "bo"], 1, "Judge by yourself.")
        sheets.write(place, "other", rows, asked[:1], ["an"], 1)
        answers = {"kind": "口味", "severity": 4.5, "remark": "+ 好"}
        for person in ("an", "bo"):
            sheets.fill(
                place / NAME / f"{person}.xlsx",
                sheets.opened(place, NAME),
                person,
                lambda row: answers,
            )
        return of(place, f"{NAME}/*", "other/*.json")


def read_returned(folder: Path) -> None:
    """Whatever comes back is listed; what is listed counts as a refusal here."""
    try:
        found = sheets.read(folder, NAME)
    except BadInput as error:
        raise AssertionError(f"a sheet that came back was refused: {error}") from None
    assert set(found.answers.question) <= {"kind", "severity", "remark"}
    assert found.answers.map(lambda cell: isinstance(cell, str)).all(axis=None)
    for row in found.to_mend.itertuples():
        assert row.what.isprintable(), row.what
        assert row.file
    # What was taken can go out again.
    taken = found.answers[found.answers.question == "remark"]
    if len(taken):
        again = pd.DataFrame(
            {"item_id": [f"r{k}" for k in range(len(taken))], "said": list(taken.answer)}
        )
        sheets.write(folder, "again", again, [Question("kind", "?")], ["an"], 1)
    if len(found.to_mend):
        raise BadInput(f"{folder}: {found.to_mend.what.iloc[0]}")


def read_record(folder: Path) -> None:
    sheets.opened(folder, NAME)
    attempt(lambda: sheets.ask(folder, NAME, ["an", "third"]))
    sheets.read(folder, NAME)


@cache
def cbbq_begun() -> Files:
    files = of(EXAMPLES / "cbbq", "dataset.toml", "biases.csv", "templates.csv")
    return {**files, "wording.toml": cbbq_drafts.WORDINGS.read_bytes()}


@cache
def cbbq_under_way() -> Files:
    with TemporaryDirectory() as root:
        write(Path(root), cbbq_begun())
        cbbq_simulated.work(cbbq.opened(root), reliability=1.0, seed=1)
        return of(Path(root), "*.*", "sheets/*/*")


def read_cbbq(folder: Path) -> None:
    project = cbbq.opened(folder)
    cbbq.faults(project)
    cbbq_drafts.decided(project)
    cbbq_review.completeness(project)
    cbbq_review.texts(project)
    cbbq_review.reviewed(project)
    cbbq_drafts.draw(project, lambda prompts, **_: ["{{NAME1}}与{{NAME2}}。"] * len(prompts), "m")
    cbbq_drafts.hand_out(project, "editor")
    cbbq_discuss.discussed(project)


def own_manifest() -> Files:
    """Data folders with categories of their own."""
    text = """\
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
    (table,) = (raw for name, raw in short(of(data.SAMPLES / "mcbe", "age.csv"), 3).items())
    return {"dataset.toml": text.encode(), "diet.csv": table, "rôle+2.csv": table}


def read_manifest(folder: Path) -> None:
    source = data.find("mcbe", folder)
    source.describe()
    attempt(lambda: data.check(source))
    data.load(source)


def write(folder: Path, files: Files) -> None:
    for name, raw in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(raw)


def named(*wanted: str) -> Callable[[str], bool]:
    """Whether a file's name ends as one of these."""
    return lambda name: name.endswith(wanted)


READERS = {
    "McBE projects": Reader(mcbe_begun, read_mcbe),
    "McBE projects, what they keep": Reader(
        mcbe_under_way, read_mcbe, named("merged.jsonl", "provenance.jsonl")
    ),
    "sheets that come back": Reader(returned, read_returned, named(".xlsx")),
    "sheets that come back, parts": Reader(returned, read_returned, named(".xlsx"), inside=True),
    "records of sheets": Reader(returned, read_record, named(".json")),
    "CBBQ projects": Reader(cbbq_begun, read_cbbq),
    "CBBQ projects, drafts": Reader(cbbq_under_way, read_cbbq, named("drafts.csv")),
    "manifests": Reader(own_manifest, read_manifest, named(".toml")),
}
