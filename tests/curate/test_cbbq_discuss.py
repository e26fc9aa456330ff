"""CBBQ templates of one's own: where objections lead, which templates are ready, and the data set."""

import csv
import re

import pytest

from bench import data
from bench.core.errors import BadInput
from bench.curate import cbbq_discuss, cbbq_drafts, cbbq_review, cbbq_simulated, cbbq_write, sheets
from bench.data.cbbq import audit, expand
from bench.tasks import prompts
from bench.tasks.prompts import PROMPTS
from tests.helpers.curating_cbbq import FACTS, accepted, answered, changed, drafter, reviewed

# Simulated people work through all rounds.
pytestmark = pytest.mark.slow


def test_forms_that_lack_something_are_listed_and_only_whole_templates_are_written(begun, tmp_path):
    with pytest.raises(
        BadInput,
        match="no template is ready, so there is nothing to write; waits for facts that the editor accepts: 4",
    ):
        cbbq_write.write(begun)
    cbbq_drafts.draw(begun, drafter({"案例题": FACTS["work-1"]}), "me")
    cbbq_drafts.hand_out(begun, "ada")
    answered(begun, "decide-1", "ada", {"work-1": {"decision": "accept"}})
    changed(begun, "templates", 3, question_nonneg="")
    state = cbbq_review.completeness(begun).set_index("template")
    assert dict(state.complete) == {
        "work-1": True,
        "work-2": False,
        "knowledge-1": False,
        "knowledge-2": False,
    }
    assert state["ambiguous neg"]["work-2"] == "yes"
    assert state["disambiguous non_neg"]["work-2"] == "lacks facts that a person accepted or wrote"
    assert state["ambiguous neg"]["knowledge-1"] == "waits: the row has faults"
    with pytest.raises(
        BadInput,
        match="waits for reviewers: 1; waits for facts that the editor accepts: 2; waits until its row is mended: 1",
    ):
        cbbq_write.write(begun)
    reviewed(begun)
    made = cbbq_write.write(begun)
    assert dict(zip(made.left_out.template, made.left_out.note, strict=True)) == {
        "work-2": "waits for facts that the editor accepts",
        "knowledge-1": "waits until its row is mended",
        "knowledge-2": "waits for facts that the editor accepts",
    }
    assert cbbq_write.counts(data.find("cbbq", made.folder)).iloc[-1].templates == 4


def test_the_data_set_is_what_the_release_would_be(finished):
    made = cbbq_write.write(finished)
    path = made.folder / "accent" / "disambiguous" / "templates_generate_neg.csv"
    assert path.read_bytes().startswith(b"\xef\xbb\xbfquestion_index,question_polarity,")
    with path.open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert rows[0]["context"].endswith(FACTS["work-1"])
    assert [row["label"] for row in rows] == ["1"] * 4
    assert audit.check(made.folder).query("kind != 'count'").empty
    source = data.find("cbbq", made.folder)
    counted = cbbq_write.counts(source)
    # Two names by two names in two orders, of four templates, in two polarities and two contexts.
    assert list(counted.questions) == [32, 32, 32, 32, 128]
    assert len(data.load(source)) == 128
    files = expand.expand(source, made.folder.parent / "expanded", "csv", "strict")
    assert [one.rows for one in files] == [64, 64]


def test_where_a_row_comes_from_is_kept(finished):
    found = cbbq_write.write(finished).provenance
    assert len(found) == 16
    drafted = found[found.file.str.contains("/disambiguous/")]
    assert set(drafted.drafted_by) == {cbbq_simulated.MODEL}
    assert set(drafted.wording_version) == {cbbq_drafts.wordings().version}
    assert set(found.answered_as_labelled) == {2}
    assert (found[found.file.str.contains("/ambiguous/")].drafted_by == "").all()


def test_a_folder_with_something_else_is_not_written_over(done, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    with pytest.raises(BadInput, match="was not written here"):
        cbbq_write.write(done, tmp_path / "mine")
    first = cbbq_write.write(done)
    for row in (1, 2):
        changed(done, "biases", row, category="region")
    again = cbbq_write.write(done)
    assert first.folder == again.folder
    assert not list(again.folder.glob("accent/*/*.csv")), "what is no more is gone"
    assert list(cbbq_write.counts(data.find("cbbq", again.folder)).category) == ["region"] * 4 + [
        "all"
    ]


WRONG = "work-1:disambiguous:neg"


@pytest.fixture
def disputed(begun):
    """All is reviewed; of work-1 cy answered A where the label is B, and said why, and bo found a form of work-2 unfit."""
    return reviewed(
        accepted(begun),
        bo={"work-2:ambiguous:neg": {"asks_the_bias": "no"}},
        cy={WRONG: {"answer": "A", "note": "=看不\x85懂"}},
    )


def standing(project):
    return dict(
        cbbq_discuss.discussed(project).standing[["template", "note"]].itertuples(index=False)
    )


def test_a_template_with_an_objection_waits_for_a_discussion(disputed):
    assert cbbq_discuss.discussed(disputed).waiting.to_numpy().tolist() == [
        ["work-1", "a panel"],
        ["work-2", "a panel"],
    ]
    (path,) = cbbq_discuss.hand_out(disputed, "di", seed=3)
    assert (path.parent.name, path.name) == ("discuss-1", "di.xlsx")
    assert cbbq_discuss.hand_out(disputed, "di", seed=3) == [], "nothing is asked twice"
    rows = sheets.opened(disputed.sheets, "discuss-1").rows.set_index("item_id")
    assert list(rows.index) == ["work-1", "work-2"]
    assert rows["disambiguous neg"]["work-1"].splitlines()[-4:] == [
        "A 乡音很重的职员",
        "B 普通话标准的职员",
        "C 不确定",
        "(B)",
    ]
    said = rows.said["work-1"].splitlines()
    assert len(said) == 8
    assert "disambiguous neg, bo: B, asks_the_bias: yes, reads_well: yes" in said
    assert "disambiguous neg, cy: A, asks_the_bias: yes, reads_well: yes — =看不 懂" in said
    found = cbbq_discuss.discussed(disputed)
    assert standing(disputed) == {
        "work-1": "waits for a discussion",
        "work-2": "waits for a discussion",
        "knowledge-1": "",
        "knowledge-2": "",
    }
    assert set(found.waiting.people) == {"di"}
    assert list(found.standing.objections) == [1, 1, 0, 0]
    made = cbbq_write.write(disputed)
    assert list(made.left_out.note) == ["waits for a discussion"] * 2
    assert set(made.provenance.item_id.str.partition(":")[0]) == {"knowledge-1", "knowledge-2"}


def test_what_a_discussion_decided_is_done_and_kept(disputed):
    cbbq_discuss.hand_out(disputed, "di")
    answered(
        disputed,
        "discuss-1",
        "di",
        {
            "work-1": {"decision": "keep", "reason": "=题目清楚"},
            "work-2": {"decision": "leave out", "reason": "问题跑题"},
        },
    )
    found = cbbq_discuss.discussed(disputed)
    assert found.waiting.empty
    assert found.to_mend.empty
    assert standing(disputed) == {
        "work-1": "",
        "work-2": "left out: 问题跑题",
        "knowledge-1": "",
        "knowledge-2": "",
    }
    made = cbbq_write.write(disputed)
    (row,) = made.left_out.itertuples(index=False)
    assert tuple(row) == ("work-2", 1, "leave out", "问题跑题", "left out: 问题跑题")
    of = made.provenance[made.provenance.item_id.str.startswith("work-1:")]
    assert set(zip(of.objections, of.decision, of.reason, of.discussed_by, strict=True)) == {
        (1, "keep", "=题目清楚", "di")
    }
    assert set(made.provenance.decision[~made.provenance.item_id.isin(of.item_id)]) == {""}
    assert "'=题目清楚" in (made.folder / "provenance.csv").read_text("utf-8"), "no formula"


def test_a_decision_without_a_reason_or_that_is_none_is_to_be_mended(disputed):
    cbbq_discuss.hand_out(disputed, "di")
    answered(
        disputed,
        "discuss-1",
        "di",
        {"work-1": {"decision": "keep"}, "work-2": {"decision": "perhaps", "reason": "?"}},
    )
    found = cbbq_discuss.discussed(disputed)
    assert sorted(
        zip(found.to_mend.item_id, found.to_mend.column, found.to_mend.what, strict=True)
    ) == [
        ("work-1", "reason", "is empty"),
        ("work-2", "decision", "is not allowed"),
    ]
    assert list(found.waiting.template) == ["work-1", "work-2"]
    assert set(found.standing.decision) == {""}
    assert list(standing(disputed).values()) == ["waits for a discussion"] * 2 + [""] * 2


def test_a_text_that_was_mended_after_an_objection_is_reviewed_anew_and_needs_no_discussion(
    disputed,
):
    cbbq_discuss.hand_out(disputed, "di")
    answered(disputed, "discuss-1", "di", {"work-1": {"decision": "leave out", "reason": "看不懂"}})
    mended = FACTS["work-1"].replace("两个关键数据", "两个最关键的数据")
    answered(disputed, "decide-1", "ada", {"work-1": {"decision": "edit", "edited": mended}})
    assert standing(disputed)["work-1"] == "waits for reviewers"
    assert set(cbbq_review.reviewed(disputed).waiting.item_id) == {
        WRONG,
        "work-1:disambiguous:non_neg",
    }
    reviewed(disputed, sheet="review-2")
    found = cbbq_discuss.discussed(disputed)
    assert standing(disputed)["work-1"] == ""
    assert list(found.waiting.template) == ["work-2"]
    assert (found.to_mend.item_id == "work-1").sum() == 0
    contexts = cbbq_review.forms(disputed).set_index("item_id").context
    assert contexts[WRONG].endswith(mended)


def test_a_discussion_of_what_nobody_objects_to_any_more_does_not_count(disputed):
    cbbq_discuss.hand_out(disputed, "di")
    answered(disputed, "discuss-1", "di", {"work-1": {"decision": "leave out", "reason": "看不懂"}})
    answered(disputed, "review-1", "cy", {WRONG: {"answer": "B"}})
    found = cbbq_discuss.discussed(disputed)
    assert standing(disputed)["work-1"] == ""
    assert list(found.standing.decision) == [""] * 4
    # cy answers A again: what was decided then stands.
    answered(disputed, "review-1", "cy", {WRONG: {"answer": "A"}})
    assert standing(disputed)["work-1"] == "left out: 看不懂"


def test_an_objection_that_comes_later_is_discussed_with_the_first(disputed):
    cbbq_discuss.hand_out(disputed, "di")
    answered(disputed, "discuss-1", "di", {"work-1": {"decision": "keep", "reason": "清楚"}})
    answered(disputed, "review-1", "bo", {WRONG: {"reads_well": "no"}})
    assert standing(disputed)["work-1"] == "waits for a discussion"
    (path,) = cbbq_discuss.hand_out(disputed, "di")
    assert path.parent.name == "discuss-2"
    assert list(sheets.opened(disputed.sheets, "discuss-2").rows.item_id) == ["work-1"]
    assert cbbq_discuss.discussed(disputed).standing.objections[0] == 2


def test_a_template_that_lost_its_facts_waits_for_the_editor_and_for_no_discussion(disputed):
    answered(
        disputed,
        "decide-1",
        "ada",
        {"work-1": {"decision": "again"}, "work-2": {"decision": "again"}},
    )
    assert (
        list(standing(disputed).values())
        == ["waits for facts that the editor accepts"] * 2 + [""] * 2
    )
    assert cbbq_discuss.hand_out(disputed, "di") == []


def test_a_data_set_of_which_nothing_is_ready_any_more_is_taken_away(finished, done):
    made = cbbq_write.write(done)
    for row in range(1, 5):
        changed(done, "templates", row, question_neg="谁？")
    with pytest.raises(BadInput, match="waits for reviewers: 4"):
        cbbq_write.write(done)
    assert (made.folder / "dataset.toml").is_file()
    cbbq_write.withdraw(done)
    assert [path for path in made.folder.rglob("*") if path.is_file()] == []
    cbbq_write.withdraw(done)


def test_simulated_people_go_on_where_they_were_interrupted(begun, finished):
    """As where the process was killed when sheets had gone out: some files are there and empty, others are missing."""
    accepted(begun)
    cbbq_review.hand_out(begun, cbbq_simulated.REVIEWERS, 1)
    (begun.sheets / "review-1" / "reviewer 2.xlsx").unlink()
    cbbq_simulated.work(begun, reliability=1.0, seed=1)
    found = cbbq_discuss.discussed(begun)
    assert found.standing.ready.all()
    assert found.waiting.empty


def test_a_simulated_panel_leaves_out_what_neither_reviewer_answered_as_labelled(begun):
    accepted(begun)
    cbbq_review.hand_out(begun, cbbq_simulated.REVIEWERS, 1)
    sheet = sheets.opened(begun.sheets, "review-1")
    labels = cbbq_review.forms(begun).set_index("item_id").label
    for person in sheet.people:
        wrong = {
            item: {
                "answer": "C" if item == WRONG else "ABC"[labels[item]],
                "asks_the_bias": "yes",
                "reads_well": "yes",
            }
            for item in labels.index
        }
        answered(begun, "review-1", person, wrong)
    answered(begun, "review-1", "reviewer 1", {"work-2:ambiguous:neg": {"reads_well": "no"}})
    cbbq_simulated.work(begun, seed=1)
    assert standing(begun) == {
        "work-1": "left out: 两位评审都没有选 B（模拟的结论）",
        "work-2": "",
        "knowledge-1": "",
        "knowledge-2": "",
    }


def test_a_set_brings_the_wording_that_its_project_has(done):
    own = done.folder / "prompts.toml"
    text = (PROMPTS / "cbbq.toml").read_text("utf-8")
    own.write_text(re.sub('version = "[^"]+"', 'version = "mine-1"', text, count=1), "utf-8")
    folder = cbbq_write.write(done).folder
    assert prompts.load("cbbq", data=folder).version == "mine-1"
    own.unlink()
    cbbq_write.write(done)
    assert prompts.load("cbbq", data=folder).path.parent == PROMPTS
