"""What people, spreadsheet programs and models leave in a curation project, and is not as it should be."""

import shutil

import pandas as pd
import pytest

from bench import data
from bench.core.errors import BadInput
from bench.curate import (
    cbbq,
    cbbq_drafts,
    cbbq_review,
    cbbq_simulated,
    cbbq_write,
    mcbe,
    mcbe_rounds,
    mcbe_simulated,
    mcbe_write,
    provenance,
)
from bench.curate.workbook import UNFIT
from tests.helpers.curating_mcbe import worked
from tests.slow.helpers import hostile_curate

pytestmark = pytest.mark.slow


def with_text(folder, name, *pairs):
    path = folder / name
    text = path.read_text("utf-8")
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text, "utf-8")


def small(folder, *pairs):
    """A project of a few drafts and people; in its drafts, pairs of texts are exchanged."""
    hostile_curate.write(folder, hostile_curate.mcbe_begun())
    with_text(folder, mcbe.DRAFTS, *pairs)
    return mcbe.opened(folder)


@pytest.mark.parametrize("name", ["../x", "a/b", "con", "a" * 70, "x.", "\\u001b[31m", "AN"])
def test_a_person_whose_name_no_file_can_have_is_refused_with_the_key(tmp_path, name):
    mcbe.copied(tmp_path)
    with_text(tmp_path, "project.toml", ('"an", "chen", "gao"', f'"an", "{name}", "gao"'))
    with pytest.raises(BadInput, match=r"project.toml, key `people.explanation`: "):
        mcbe.opened(tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("natural = ", '"context" = ', r"table \[quality\]: 'context' cannot be a question's name"),
        ("natural = ", '"" = ', r"table \[quality\]: '' cannot be a question's name"),
        ("natural = ", '"x " = ', r"table \[quality\]: 'x ' cannot be a question's name"),
        (
            'reason = "',
            'reason = "\\u001b',
            r"table \[asked\], `reason`: holds a control character",
        ),
        ("{context}", "{context!r}", "expected the fields"),
    ],
)
def test_a_wording_that_no_sheet_can_have_is_refused(tmp_path, old, new, message):
    mcbe.copied(tmp_path)
    shutil.copy(mcbe.WORDING, tmp_path / "wording.toml")
    with_text(tmp_path, "wording.toml", (old, new))
    with pytest.raises(BadInput, match=message) as refused:
        mcbe.opened(tmp_path)
    assert str(tmp_path / "wording.toml") in str(refused.value)


def test_a_prompt_may_hold_braces_and_what_is_filled_in_is_no_field(tmp_path):
    small(tmp_path, ("公司聚餐订在一家湘菜馆", "{sentence}{x.__class__}"))
    with_text(tmp_path, "wording.toml", ("{context}", '{context} {"a": {0.__class__}} {'))
    seen = []

    def write(prompts):
        seen.extend(prompts)
        return mcbe_simulated.writer(prompts)

    worked(mcbe.opened(tmp_path), merge=write)
    assert '{sentence}{x.__class__}，大家在群里接龙报名。 {"a": {0.__class__}} {' in seen[0]


@pytest.mark.parametrize(
    "replies",
    [
        ["\x1b[31m红\x1b]0;x\x07", "字" * 10_000_000, "\ud800半\udc00"],
        ["\ufeff=1+1", "\0\uffff", "\u2028\u202e-1"],
        ["", "\r", "{{NAME1}}\r\n,\"'"],
    ],
)
def test_whatever_a_model_writes_goes_to_the_reviewers_and_into_the_set(tmp_path, replies):
    found = worked(small(tmp_path), merge=lambda prompts: replies)
    assert found.waits == ""
    shown = found.sent[mcbe_rounds.REVIEW].sheet.rows.merged
    assert shown.str.len().max() <= mcbe_rounds.LONGEST
    assert not any(UNFIT.search(text) for text in shown)
    folder = mcbe_write.finish(found)
    assert len(data.load(data.find("mcbe", folder))) == 3
    assert mcbe_rounds.look(mcbe.opened(tmp_path)).waits == ""


@pytest.mark.parametrize(
    ("cut", "message"),
    [
        (lambda text: text[:-60], r"merged.jsonl, line 3: not JSON \(Unterminated string"),
        (
            lambda text: text.replace('"when"', '"then"', 1),
            "merged.jsonl, line 1: expected texts item_id, text, model, wording, prompt_hash, when; remove the line",
        ),
        (lambda text: text.replace('"d01"', '["d01"]', 1), "merged.jsonl, line 1: expected texts"),
    ],
)
def test_a_merged_text_that_is_not_as_it_was_kept_is_refused_with_its_line(tmp_path, cut, message):
    worked(small(tmp_path))
    path = tmp_path / "merged.jsonl"
    path.write_text(cut(path.read_text("utf-8")), "utf-8")
    with pytest.raises(BadInput, match=message):
        mcbe_rounds.look(mcbe.opened(tmp_path))


def test_a_log_that_says_no_text_is_refused_with_its_line(tmp_path):
    (tmp_path / "provenance.jsonl").write_text('{"item_id": "d1"}\n{"item_id": ["d2"]}\n')
    with pytest.raises(
        BadInput, match=r"provenance.jsonl, line 2, field `item_id`: \['d2'\] is not a text"
    ):
        provenance.read(tmp_path)


@pytest.mark.parametrize("cell", ["\ufeff甲", "甲\x85", "甲\uffff", "\x1b[31m"])
def test_a_draft_with_what_no_sheet_can_hold_is_told_with_its_row(tmp_path, cell):
    project = mcbe.copied(tmp_path)
    with_text(tmp_path, "drafts.csv", ("公司聚餐订在", f"{cell}公司聚餐订在"))
    found = mcbe.check(project)
    assert list(zip(found.row, found.column, strict=True)) == [(1, "context")]
    assert found.value[0].isprintable()
    assert mcbe_rounds.advance(project).waits


def test_drafts_that_begin_like_formulas_come_out_as_they_went_in(tmp_path):
    pairs = [
        ("公司聚餐订在", "=1+1公司"),
        ("班级要选", "@SUM(班级"),
        ("[PLH]说话", "-1+[PLH]"),
        ("别叫[PLH]", "＝＋[PLH]"),
    ]
    project = small(tmp_path, *pairs)
    assert mcbe.check(project).empty
    folder = mcbe_write.finish(worked(project))
    items = data.load(data.find("mcbe", folder))
    assert [one.context[:6] for one in items[:2]] == ["=1+1公司", "@SUM(班"]
    assert [one.sentence[:6] for one in items[:2]] == ["＝＋[PLH", "-1+[PL"]


@pytest.mark.parametrize(
    ("encode", "message"),
    [
        (lambda text: text.encode("gb18030"), r"drafts.csv, line 2: not UTF-8 .*if it is GBK"),
        (lambda text: text.encode("utf-16"), r"drafts.csv: is UTF-16"),
        (
            lambda text: text.replace(",", ";").encode(),
            r"drafts.csv, row 1 \(header\): column `draft` is missing; found: draft;context",
        ),
        (
            lambda text: text.replace(",", "\t").encode(),
            r"drafts.csv, row 1 \(header\): column `draft` is missing",
        ),
    ],
)
def test_drafts_that_a_spreadsheet_saved_otherwise_are_refused_with_a_way_out(
    tmp_path, encode, message
):
    project = mcbe.copied(tmp_path)
    path = tmp_path / "drafts.csv"
    path.write_bytes(encode(path.read_text("utf-8")))
    with pytest.raises(BadInput, match=message):
        mcbe.check(project)


def test_a_set_that_was_saved_in_another_encoding_is_not_taken_for_it(tmp_path):
    found = worked(small(tmp_path))
    folder = mcbe_write.finish(found)
    path = folder / "diet.csv"
    for encoding in ("gb18030", "utf-16", "utf-8-sig"):
        path.write_bytes(path.read_bytes().decode("utf-8").encode(encoding))
        with pytest.raises(BadInput, match=r"diet.csv: is there and differs"):
            mcbe_write.finish(found)
        path.write_bytes(path.read_bytes().decode(encoding).encode())


@pytest.mark.parametrize(
    ("column", "cell"),
    [("round", "../1"), ("round", ""), ("draw", "x"), ("draw", "0"), ("draw", "１")],
)
def test_a_draft_of_no_round_is_refused(tmp_path, column, cell):
    project = cbbq.copied(tmp_path / "p")
    cbbq_simulated.work(project, reliability=1.0, seed=1)
    rows = project.table("drafts")
    rows[1] |= {column: cell}
    project.save("drafts", rows)
    with pytest.raises(
        BadInput, match=rf"drafts.csv, row 2, column `{column}`: .* is not a whole number"
    ):
        cbbq_review.completeness(project)


def test_a_copy_of_a_sheets_folder_is_passed_over(tmp_path):
    project = cbbq.copied(tmp_path / "p")
    cbbq_simulated.work(project, reliability=1.0, seed=1)
    before = cbbq_review.reviewed(project)
    shutil.copytree(project.sheets / "review-1", project.sheets / "review-1 copy")
    found = cbbq_review.reviewed(project)
    pd.testing.assert_frame_equal(found.answers, before.answers)
    assert found.to_mend.empty


def test_a_template_with_what_no_sheet_can_hold_is_told(tmp_path):
    project = cbbq.copied(tmp_path / "p")
    rows = project.table("templates")
    rows[0]["author"] = "m\x85e"
    project.save("templates", rows)
    found = cbbq.faults(project)
    assert ("templates.csv", 1, "author") in set(
        zip(found.file, found.row, found.column, strict=True)
    )
    assert found.value.map(str.isprintable).all()
    assert cbbq_drafts.draw(project, lambda prompts, **_: [""] * len(prompts), "m") == 3


def test_a_set_is_not_written_where_a_file_is(tmp_path):
    project = cbbq.copied(tmp_path / "p")
    (tmp_path / "p" / cbbq_write.FOLDER).write_text("notes")
    with pytest.raises(BadInput, match="release: holds something that was not written here"):
        cbbq_write.write(project)
