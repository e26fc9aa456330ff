"""CBBQ templates of one's own: what tables lack, people of the example, and how far a project goes without people."""

from types import SimpleNamespace

import pandas as pd
import pytest

from bench.analyses import curate_cbbq
from bench.core.errors import BadInput
from bench.curate import cbbq, cbbq_review, cbbq_simulated
from bench.data.cbbq.templates import CONDITIONS
from tests.helpers.curating_cbbq import FACTS, answered, changed, drafter, reviewed, told


def test_the_example_has_no_fault_and_two_scenarios_a_bias(begun):
    assert told(begun) == []
    assert len(begun.templates()) == 4
    assert {one.category for one in begun.templates()} == {"accent"}
    assert all(one.target == 0 for one in begun.templates())


@pytest.mark.parametrize(
    ("table", "cells", "column"),
    [
        ("templates", {"context": "有一位{{NAME1}}。"}, "context"),
        ("templates", {"context": "{{NAME1}}、{{NAME2}}和{{NAME1}}。"}, "context"),
        ("templates", {"context": "一位{{NAME1}}和一位{{NAME2}}，还有{{NMAE1}}。"}, "context"),
        ("templates", {"NAME1": "职员"}, "NAME1"),
        ("templates", {"NAME2": "[乡音很重的职员, 别人]"}, "NAME2"),
        ("templates", {"ans0": "{{NAME2}}"}, "ans0"),
        ("templates", {"ans1": "{{NAME1}}和{{NAME2}}"}, "ans1"),
        ("templates", {"ans2": "{{NAME1}}"}, "ans2"),
        ("templates", {"question_neg": ""}, "question_neg"),
        ("templates", {"question_neg": "谁的得分低"}, "question_neg"),
        ("templates", {"question_nonneg": "谁的案例分析得分低？"}, "question_nonneg"),
        ("templates", {"bias": "nobody"}, "bias"),
        ("templates", {"template": "a:b"}, "template"),
        ("templates", {"template": "work-2"}, "template"),
        ("biases", {"reversed": "工作不够专业"}, "reversed"),
        ("biases", {"category": "disease"}, "category"),
        ("biases", {"category": "unheard"}, "category"),
        ("biases", {"category": "a/b"}, "category"),
        ("biases", {"source": " "}, "source"),
        ("templates", {"context": "一位{{NAME1}}和\x07一位{{NAME2}}。"}, "context"),
    ],
)
def test_a_fault_is_listed_with_its_place_and_the_other_templates_go_on(
    begun, table, cells, column
):
    changed(begun, table, 1, **cells)
    assert (f"{table}.csv", 1, column) in told(begun)
    names = [one.name for one in begun.templates()]
    assert "knowledge-2" in names
    assert "work-1" not in names or "template" in cells


def test_a_bias_in_one_scenario_is_told(begun):
    changed(begun, "templates", 2, scenario="业务考核")
    (row,) = cbbq.faults(begun).itertuples()
    assert (row.row, row.value) == (0, "'accent-work'")
    assert "1 scenario;" in row.what


def test_a_missing_table_or_column_is_a_sentence(tmp_path, begun):
    with pytest.raises(BadInput, match=r"dataset.toml: is missing; a project begins with"):
        cbbq.opened(tmp_path)
    with pytest.raises(BadInput, match="is not empty"):
        cbbq.copied(begun.folder)
    (begun.folder / "biases.csv").write_text("bias,category\n", "utf-8")
    with pytest.raises(BadInput, match="column `group` is missing"):
        cbbq.faults(begun)


def test_the_stereotyped_group_fills_the_slot_that_its_category_has(begun):
    one = begun.templates()[0]
    assert [
        one.label(condition, polarity)
        for condition in CONDITIONS
        for polarity in ("neg", "non_neg")
    ] == [2, 2, 1, 0]
    changed(begun, "biases", 1, category="gender")
    one = begun.templates()[0]
    assert (one.target, one.label("disambiguous", "neg"), one.label("disambiguous", "non_neg")) == (
        1,
        0,
        1,
    )


@pytest.mark.slow
def test_one_s_own_project_goes_as_far_as_it_can_without_people(begun, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    writer = SimpleNamespace(verbs=("generate",), generate=drafter({}))
    monkeypatch.setattr(curate_cbbq.scorers, "load", lambda model: writer)

    def worked():
        return curate_cbbq.worked(
            begun.folder, "mute", editor="ada", reviewers=["bo", "cy"], panel="di", seed=2
        )

    def said(curated):
        return curate_cbbq.findings(
            curated, cbbq_review.novelty(begun), pd.DataFrame(columns=["condition", "rouge_l"])
        )

    curated = worked()
    assert (curated.example, curated.made, curated.source) == (False, None, None)
    assert (begun.sheets / "decide-1" / "ada.xlsx").is_file()
    waiting = curated.waiting().set_index("step")
    assert (waiting.done["drafted"], waiting.done["decided on"]) == (4, 0)
    # Two ambiguous forms of each template need no facts, and went out.
    assert (waiting.done["forms reviewed by two"], waiting.of["forms reviewed by two"]) == (0, 8)
    assert said(curated)[0] == "Of 4 templates none is ready yet, so there is no data set."
    assert curate_cbbq.asked(curated, ["simulated:bias=1"]) == []
    assert curate_cbbq.counts(curated).empty
    assert "has not come back" in " ".join(
        curated.to_mend().what
    ) or "nothing is filled in yet" in " ".join(curated.to_mend().what)
    answered(
        begun,
        "decide-1",
        "ada",
        {name: {"decision": "edit", "edited": facts} for name, facts in FACTS.items()},
    )
    curated = worked()
    assert len(begun.table("drafts")) == 4
    assert (begun.sheets / "review-1" / "bo.xlsx").is_file()
    waiting = curated.waiting().set_index("step")
    assert (waiting.done["forms reviewed by two"], waiting.waits_for["forms reviewed by two"]) == (
        0,
        "bo, cy",
    )
    assert curated.source is None, "what nobody has reviewed is no data set"
    assert (
        curate_cbbq.notes(curated)[-1]
        == "Of 4 templates 4 are not settled, and so not in the data set: waits for reviewers (4)."
    )
    reviewed(
        begun,
        bo={"work-1:ambiguous:neg": {"answer": "A"}, "work-2:ambiguous:neg": {"reads_well": "no"}},
    )
    curated = worked()
    waiting = curated.waiting().set_index("step")
    assert (
        waiting.done["objections discussed"],
        waiting.of["objections discussed"],
        waiting.waits_for["objections discussed"],
    ) == (0, 2, "di")
    assert waiting.done["in the data set"] == 2
    assert curate_cbbq.notes(curated) == [
        "One thing is to be mended; the list is below.",
        "Of 4 templates 2 are not settled, and so not in the data set: waits for a discussion (2).",
    ]
    answered(
        begun,
        "discuss-1",
        "di",
        {
            "work-1": {"decision": "keep", "reason": "清楚"},
            "work-2": {"decision": "leave out", "reason": "不通顺"},
        },
    )
    curated = worked()
    assert curated.waiting().set_index("step").done["in the data set"] == 3
    assert curate_cbbq.notes(curated) == []
    assert "a discussion kept 1 and left out 1; 0 wait for it." in " ".join(said(curated))
    assert list(curate_cbbq.standing(curated).note) == ["", "left out: 不通顺", "", ""]
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    (run,) = curate_cbbq.asked(curated, ["simulated:bias=1"])
    assert set(run.records.category) == {"accent"}


def test_simulated_people_know_the_example_alone(begun):
    changed(begun, "templates", 1, template="mine")
    with pytest.raises(BadInput, match="'mine'"):
        cbbq_simulated.work(begun)


def test_a_model_that_cannot_write_is_refused(begun):
    with pytest.raises(BadInput, match="cannot write"):
        curate_cbbq.worked(begun.folder, "simulated:bias=0.5")
