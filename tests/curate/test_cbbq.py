"""CBBQ templates of your own: faults in tables, drafts, reviews, discussions, and the data set."""

import csv
import shutil

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from bench import cli, curate, data
from bench.analyses import curate_cbbq
from bench.core import places
from bench.core.errors import BadInput
from bench.core.i18n import use_language
from bench.curate import cbbq, copy_example, mcbe, sheets, simulated
from bench.curate.cbbq import release, rounds
from bench.curate.cbbq.rounds import DECIDE, DISCUSS, REVIEW, Rounds
from bench.data.cbbq import audit, expand
from bench.data.cbbq.templates import CONDITIONS
from bench.data.nli_coal.language_pack_audit import check
from bench.tasks import prompts
from tests.helpers.curating import (
    FACTS,
    accept_all,
    answer,
    change,
    drafter,
    replace_text,
    review_all,
    right_answers,
)
from tests.helpers.drawing import drawn, ticks

EXAMPLE = curate.EXAMPLES / "cbbq"
WRONG = "work-1:disambiguous:neg"
NAMES = ["work-1", "work-2", "knowledge-1", "knowledge-2"]


@pytest.fixture
def disputed(begun):
    """All is reviewed; cy answered a form of work-1 wrongly, bo found a form of work-2 unfit."""
    return review_all(
        accept_all(begun),
        bo={"work-2:ambiguous:neg": {"asks_the_bias": "no"}},
        cy={WRONG: {"answer": "A", "note": "=看不\x85懂"}},
    )


def notes_of(project):
    standing = Rounds(project).standing
    return dict(zip(standing.template, standing.note, strict=True))


def decide(project, **decisions):
    """Answer the sheet of the discussion: decision and reason by template."""
    keys = ("decision", "reason")
    answers = {
        name.replace("_", "-"): dict(zip(keys, decision, strict=True))
        for name, decision in decisions.items()
    }
    answer(project, "discuss-1", "di", answers)


@pytest.mark.parametrize("name", ["mcbe", "cbbq", "nli-coal"])
def test_the_command_copies_an_example_and_overwrites_nothing(tmp_path, name):
    place, key = tmp_path / "mine", name.replace("-", "_")
    done = CliRunner().invoke(cli.app, ["curate", name, str(place)])
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [str(place / file) for file in curate.FILES[key]]
    assert str(places.NOTEBOOKS / f"{curate.NOTEBOOKS[key]}.ipynb") in done.stderr
    assert sorted(path.name for path in place.iterdir()) == sorted(curate.FILES[key])
    for folder in (place, place / curate.FILES[key][0]):
        with pytest.raises(BadInput, match="is not empty"):
            copy_example(key, folder)


def test_the_examples_have_no_faults(tmp_path, begun):
    for name in ("mcbe", "nli_coal"):
        copy_example(name, tmp_path / name)
    assert mcbe.check_drafts(mcbe.open_project(tmp_path / "mcbe")).empty
    assert "refused" not in set(check(tmp_path / "nli_coal", frames=False).kind)
    assert cbbq.faults(begun).empty
    assert [scenario.name for scenario in begun.templates()] == NAMES
    assert {scenario.target for scenario in begun.templates()} == {0}


@pytest.mark.parametrize(("module", "name"), [(mcbe, "mcbe"), (cbbq, "cbbq")])
def test_a_folder_without_a_project_says_how_one_begins(tmp_path, module, name):
    message = rf"is missing; a project begins with .*`bench curate {name} "
    with pytest.raises(BadInput, match=message):
        module.open_project(tmp_path)


@pytest.mark.parametrize(
    ("table", "cells", "column"),
    [
        ("templates", {"context": "有一位{{NAME1}}。"}, "context"),
        ("templates", {"context": "{{NAME1}}、{{NAME2}}和{{NAME1}}。"}, "context"),
        ("templates", {"context": "一位{{NAME1}}和一位{{NAME2}}，还有{{NMAE1}}。"}, "context"),
        ("templates", {"context": "一位{{NAME1}}和\x07一位{{NAME2}}。"}, "context"),
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
        ("templates", {"author": "m\x85e"}, "author"),
        ("biases", {"reversed": "工作不够专业"}, "reversed"),
        ("biases", {"category": "disease"}, "category"),
        ("biases", {"category": "unheard"}, "category"),
        ("biases", {"category": "a/b"}, "category"),
        ("biases", {"source": " "}, "source"),
    ],
)
def test_a_fault_is_listed_with_its_place_and_other_templates_go_on(begun, table, cells, column):
    change(begun, table, 1, **cells)
    assert (f"{table}.csv", 1, column) in [
        *cbbq.faults(begun)[["file", "row", "column"]].itertuples(index=False, name=None)
    ]
    assert cbbq.faults(begun).value.map(str.isprintable).all()
    names = [scenario.name for scenario in begun.templates()]
    assert "knowledge-2" in names
    assert "work-1" not in names or "template" in cells


def test_a_bias_in_one_scenario_and_a_missing_column_are_reported(begun):
    change(begun, "templates", 2, scenario="业务考核")
    (row,) = cbbq.faults(begun).itertuples()
    assert (row.row, row.value) == (0, "'accent-work'")
    assert "1 scenario;" in row.what
    (begun.folder / "biases.csv").write_text("bias,category\n", "utf-8")
    with pytest.raises(BadInput, match="column `group` is missing"):
        cbbq.faults(begun)


def test_labels_follow_the_slot_of_the_stereotyped_group(begun):
    def labels():
        scenario = begun.templates()[0]
        return [scenario.label(*form) for form in rounds.FORMS]

    assert labels() == [2, 2, 1, 0]
    change(begun, "biases", 1, category="gender")
    assert labels() == [2, 2, 0, 1]


def test_instructions_take_turns_and_what_is_filled_in_is_never_a_field(begun):
    scenario, ours = begun.templates()[0], rounds.instructions(begun).prompts
    for prompt in ours.values():
        text = rounds.fill_prompt(scenario, prompt)
        assert "一位乡音很重的职员和一位普通话标准的职员" in text
        assert scenario.bias["reversed"] in text
        assert "{" not in text
    turns = [rounds.prompt_name("x", draw, 7, list(ours)) for draw in range(1, len(ours) + 1)]
    assert sorted(turns) == sorted(ours)
    change(begun, "biases", 1, property="{target}", reversed="{context}{}")
    text = rounds.fill_prompt(begun.templates()[0], "{context}|{property}|{reversed}")
    assert text.endswith("|{target}|{context}{}")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('version = "bench-draft-1"', "", "expected `version = "),
        ("{reversed}", "", "expected a text with"),
        ("{target}", "{somebody}", "of fields no others"),
        ("[sheet]", "[texts]", r"table \[sheet\], `decide`: is missing"),
        ('outcome = "', 'outcome = "\\u001b', r"table \[sheet\], `outcome`: holds a control"),
    ],
)
def test_a_wrong_wording_is_refused(begun, old, new, message):
    path = begun.folder / "wording.toml"
    shutil.copy(rounds.WORDINGS, path)
    replace_text(path, (old, new))
    with pytest.raises(BadInput, match=message):
        rounds.instructions(begun)


@pytest.mark.parametrize(
    ("facts", "fault"),
    [
        ("", "says nothing"),
        ("{{NAME1}}说对了。", "does not name {{NAME2}}"),
        ("谁都没有说。", "nor"),
        ("{{NAME1}}说对了，{{NAME2}说错了。", "no placeholder"),
        ("{{NAME1}}说对了，{{NAME2}}说错", "breaks off"),
        ("{{NAME1}}说对了，{{NAME2}}说错了。" + "又" * 300 + "。", "characters"),
        ("{{NAME1}}说对了，\x85{{NAME2}}说错了。", "control character"),
    ],
)
def test_facts_have_to_name_both_in_whole_sentences(facts, fault):
    assert fault in rounds.facts_fault(facts)
    assert rounds.facts_fault("{{NAME1}}说对了，{{NAME2}}说错了。") == ""


def test_a_reply_is_read_with_slots_for_names_and_without_the_context(begun):
    scenario = begun.templates()[0]
    context = scenario.filled(scenario.cells["context"])
    reply = f"\n情境：{context}\n评语写明，乡音很重的职员条理清楚，\n普通话标准的职员漏看了数据。 "
    facts = "评语写明，{{NAME1}}条理清楚，{{NAME2}}漏看了数据。"
    assert rounds.read_facts(reply, scenario) == facts


@settings(max_examples=50, deadline=None)
@example("\0\ud800=一\r\n二\u2028\x1f　")
@given(st.text(max_size=60))
def test_whatever_a_model_replies_is_kept_as_text_and_read_again(tmp_path_factory, reply):
    project = cbbq.Project(tmp_path_factory.mktemp("project"))
    facts = rounds.read_facts(reply, cbbq.open_project(EXAMPLE).templates()[0])
    row = dict.fromkeys(cbbq.TABLES["drafts"], "1") | {"facts": facts}
    project.save("drafts", [row])
    assert project.table("drafts") == [row]


@given(
    st.lists(st.sampled_from(["{{NAME1}}", "{{NAME2}}", "说错了", "，", "a b", "的", "。"])).map(
        "".join
    )
)
def test_names_that_are_filled_in_are_read_as_slots_again(facts):
    # A name that is part of one of the other list, at its beginning and at its end.
    row = dict.fromkeys(cbbq.TABLES["templates"], "x")
    row |= {"NAME1": "[店员]", "NAME2": "[老店员, 店员甲]", "context": "情境"}
    scenario = cbbq.Scenario(row, dict.fromkeys(cbbq.TABLES["biases"], "x"), 0)
    assert rounds.read_facts(scenario.filled(facts), scenario) == facts.strip()


def test_decisions_about_drafts(begun):
    good = {
        "案例题": FACTS["work-1"],
        "抽查录音": "{{NAME2}}说错了；{{NAME1}}的解答与规定相符。",
        "知识竞答": FACTS["knowledge-1"],
    }
    assert rounds.draw(begun, drafter(good), "me", seed=3) == 4
    assert rounds.draw(begun, drafter(good), "me", seed=3) == 0, "nothing is asked twice"
    rounds.hand_out(begun, DECIDE, ["ada"], seed=1)
    assert rounds.hand_out(begun, DECIDE, ["ada"], seed=1) == []
    small = FACTS["knowledge-1"].replace("当即", "马上")
    decisions = {
        "work-1": {"decision": "accept"},
        "work-2": {"decision": "again"},
        "knowledge-1": {"decision": "edit", "edited": small},
        "knowledge-2": {"decision": "accept"},  # says nothing, and cannot be accepted
    }
    answer(begun, "decide-1", "ada", decisions)
    state = Rounds(begun)
    assert state.facts == {"work-1": FACTS["work-1"], "knowledge-1": small}
    table = state.drafts.set_index("template")
    kinds = ["as drafted", "drawn again", "small edit", "undecided"]
    assert list(table.kind[["work-1", "work-2", "knowledge-1", "knowledge-2"]]) == kinds
    assert table.distance["knowledge-1"] == pytest.approx(2 / len(small))
    (row,) = state.to_mend.itertuples()
    assert (row.item_id, row.what) == ("knowledge-2", "cannot stand: says nothing")
    first = curate_cbbq.draft_shares(state.drafts).iloc[0]
    assert (first.n, first.usable) == (3, pytest.approx(2 / 3))
    # Wilson, by hand: centre (p + z²/2n) / (1 + z²/n).
    z, n, p = 1.959964, 3, 2 / 3
    arm = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    bounds = [(p + z**2 / (2 * n) + sign * arm) / (1 + z**2 / n) for sign in (-1, 1)]
    assert (first.ci_low, first.ci_high) == pytest.approx(bounds, abs=1e-5)
    assert [scenario.name for scenario in rounds.pending(begun)] == ["work-2"]
    assert rounds.draw(begun, drafter(good), "me", seed=3) == 1
    again = begun.table("drafts")[-1]
    assert (again["template"], again["round"], again["draw"]) == ("work-2", "2", "2")
    assert again["wording"] != begun.table("drafts")[1]["wording"]
    assert len(rounds.hand_out(begun, DECIDE, ["ada"])) == 1


def test_an_edit_is_large_beyond_a_fifth_of_the_characters(begun):
    draft = "{{NAME1}}对，{{NAME2}}错。"  # 22 characters
    rounds.draw(begun, drafter({"案例题": draft, "抽查录音": draft}), "me")
    rounds.hand_out(begun, DECIDE, ["ada"])
    texts = {"work-1": draft[:-1] + "了" * 4 + "。", "work-2": draft[:-1] + "了" * 6 + "。"}
    edits = {name: {"decision": "edit", "edited": text} for name, text in texts.items()}
    answer(begun, "decide-1", "ada", edits)
    table = Rounds(begun).drafts.set_index("template")
    assert table.distance["work-1"] == pytest.approx(4 / 26)
    assert (table.kind["work-1"], table.kind["work-2"]) == ("small edit", "large edit")


def test_a_template_is_drawn_if_it_comes_later_or_was_never_handed_out(begun):
    rounds.draw(begun, drafter({}), "me")
    question = begun.table("templates")[0]["question_neg"]
    change(begun, "templates", 1, question_neg="")
    rounds.hand_out(begun, DECIDE, ["ada"])
    assert rounds.pending(begun) == []
    change(begun, "templates", 1, question_neg=question)
    rows = begun.table("templates")
    later = rows[0] | {"template": "work-3", "scenario": "月度例会"}
    begun.save("templates", [*rows, later])
    assert [scenario.name for scenario in rounds.pending(begun)] == ["work-1", "work-3"]


def test_drafts_that_came_before_a_failure_are_kept(begun, monkeypatch):
    monkeypatch.setattr(rounds, "BATCH", 3)
    write = drafter({})

    def fails(batch, **options):
        if len(batch) < 3:
            raise RuntimeError("the endpoint is gone")
        return write(batch, **options)

    with pytest.raises(RuntimeError):
        rounds.draw(begun, fails, "me")
    assert len(begun.table("drafts")) == 3
    assert rounds.draw(begun, write, "me") == 1


@pytest.mark.parametrize("cell", [{"round": "../1"}, {"round": ""}, {"draw": "0"}, {"draw": "１"}])
def test_a_draft_of_no_round_is_refused(begun, cell):
    rounds.draw(begun, drafter({}), "me")
    change(begun, "drafts", 2, **cell)
    with pytest.raises(BadInput, match=r"drafts.csv, row 2, column `\w+`: .* whole number"):
        Rounds(begun)


def test_lost_files_are_written_again_and_renamed_ones_are_left(begun):
    accept_all(begun)
    rounds.hand_out(begun, REVIEW, ["bo", "cy"])
    (begun.sheets / "decide-9").mkdir()  # as where the process was killed before the record
    place = begun.sheets / "review-1"
    (place / "bo.xlsx").rename(place / "bo, done.xlsx")
    (place / "cy.xlsx").unlink()
    rounds.resend(begun)
    assert {path.name for path in place.glob("*.xlsx")} == {"bo, done.xlsx", "cy.xlsx"}
    assert rounds.sent(begun, "decide") == ["decide-1"]


def test_kappa_of_reviewers_by_hand():
    # Each says A six times and B four times, and they are alike in eight of ten.
    rows = [
        ("c", f"i{k}", f"t{k // 2}", person, person, "answer", letter)
        for person, letters in (("x", "AAAAAABBBB"), ("y", "AAAAABBBBA"))
        for k, letter in enumerate(letters)
    ]
    columns = ["category", "item_id", "template", "person", "rater", "question", "answer"]
    answers = pd.DataFrame(rows, columns=columns)
    (row,) = curate_cbbq.kappas(answers).itertuples()
    assert row.kappa == pytest.approx((0.8 - 0.52) / (1 - 0.52))
    assert (row.n, row.clusters, row.band) == (10, 5, "moderate")
    assert -1 <= row.ci_low < row.kappa < row.ci_high <= 1
    assert curate_cbbq.kappas(answers[answers.person == "x"]).empty


def test_a_reviewer_who_gives_up_is_replaced_and_a_complete_review_stays(begun):
    accept_all(begun)
    for people in ([], ["x"], ["x", "x"], ["x", "y", "z"]):
        with pytest.raises(BadInput, match="2 different people"):
            rounds.hand_out(begun, REVIEW, people)
    rounds.hand_out(begun, REVIEW, ["bo", "cy"])
    answer(begun, "review-1", "bo", right_answers(begun))
    assert rounds.hand_out(begun, REVIEW, ["bo", "di"]) == []
    assert set(Rounds(begun).unread.people) == {"di"}
    answer(begun, "review-1", "di", right_answers(begun))
    assert Rounds(begun).unread.empty
    assert rounds.hand_out(begun, REVIEW, ["x", "y"]) == []
    assert sheets.load(begun.sheets, "review-1").people == ["bo", "di"]


def test_missing_answers_are_waited_for_and_notes_are_no_objections(begun):
    accept_all(begun)
    form = "work-1:ambiguous:neg"
    review_all(begun, bo={form: {"reads_well": None}}, cy={form: {"note": "no"}})
    state = Rounds(begun)
    assert state.unread.to_numpy().tolist() == [[form, "bo"]]
    (row,) = state.to_mend.itertuples()
    assert (row.person, row.item_id, row.column) == ("bo", form, "reads_well")
    assert state.objections.empty


@pytest.mark.slow
def test_copies_holes_and_removed_templates_leave_the_rest_as_it_is(done):
    before = Rounds(done).answers
    for name in ("review-1 (copy)", "review-2"):
        shutil.copytree(done.sheets / "review-1", done.sheets / name)
    pd.testing.assert_frame_equal(Rounds(done).answers, before)
    shutil.rmtree(done.sheets / "review-2")
    (done.sheets / "review-9").mkdir()
    done.save("templates", done.table("templates")[1:])
    state = Rounds(done)
    assert len(state.answers) == (before.template != "work-1").sum()
    assert state.unread.empty
    assert state.to_mend.empty
    assert "work-1" not in state.facts
    done.save("templates", [])
    state = Rounds(done)
    assert state.completeness.empty
    assert state.standing.empty
    assert rounds.hand_out(done, REVIEW, ["x", "y"]) == []
    assert curate_cbbq.novelty(state).empty


def test_templates_wait_until_they_are_complete_and_only_ready_ones_are_written(begun):
    with pytest.raises(BadInput, match="waits for facts that the editor accepts: 4"):
        release.write(Rounds(begun))
    rounds.draw(begun, drafter({"案例题": FACTS["work-1"]}), "me")
    rounds.hand_out(begun, DECIDE, ["ada"])
    answer(begun, "decide-1", "ada", {"work-1": {"decision": "accept"}})
    change(begun, "templates", 3, question_nonneg="")
    state = Rounds(begun).completeness.set_index("template")
    assert list(state.complete) == [True, False, False, False]
    assert state["ambiguous neg"]["work-2"] == "yes"
    assert state["disambiguous non_neg"]["work-2"] == "lacks facts that a person accepted or wrote"
    assert state["ambiguous neg"]["knowledge-1"] == "waits: the row has faults"
    with pytest.raises(
        BadInput, match=r"waits for reviewers: 1; waits for facts .*: 2; waits until"
    ):
        release.write(Rounds(begun))
    review_all(begun)
    left_out = release.write(Rounds(begun)).left_out
    assert dict(zip(left_out.template, left_out.note, strict=True)) == {
        "work-2": rounds.FACTS,
        "knowledge-1": rounds.MEND,
        "knowledge-2": rounds.FACTS,
    }


def test_a_template_with_an_objection_waits_for_a_discussion_with_reasons(disputed):
    waiting = Rounds(disputed).undecided
    assert waiting.to_numpy().tolist() == [["work-1", "a panel"], ["work-2", "a panel"]]
    (path,) = rounds.hand_out(disputed, DISCUSS, ["di"], seed=3)
    assert (path.parent.name, path.name) == ("discuss-1", "di.xlsx")
    assert rounds.hand_out(disputed, DISCUSS, ["di"], seed=3) == [], "nothing is asked twice"
    (row,) = (
        row for row in sheets.load(disputed.sheets, "discuss-1").rows if row["item_id"] == "work-1"
    )
    options = ["A 乡音很重的职员", "B 普通话标准的职员", "C 不确定", "(B)"]
    assert row["disambiguous neg"].splitlines()[-4:] == options
    said = row["said"].splitlines()
    assert len(said) == 8
    assert "disambiguous neg, bo: B, asks_the_bias: yes, reads_well: yes" in said
    assert "disambiguous neg, cy: A, asks_the_bias: yes, reads_well: yes — =看不 懂" in said
    state = Rounds(disputed)
    assert list(state.standing.note) == [rounds.PANEL] * 2 + [""] * 2
    assert set(state.undecided.people) == {"di"}
    assert list(state.standing.objections) == [1, 1, 0, 0]
    items = release.write(state).provenance.item_id.str.partition(":")[0]
    assert set(items) == {"knowledge-1", "knowledge-2"}
    answer(disputed, "discuss-1", "di", {"work-1": {"decision": "keep"}})
    state = Rounds(disputed)
    assert state.standing.note[0] == rounds.PANEL, "a decision needs a reason"
    assert "is empty" in set(state.to_mend.what)
    decide(disputed, work_1=("keep", "=题目清楚"), work_2=("leave out", "问题跑题"))
    state = Rounds(disputed)
    assert state.undecided.empty
    assert state.to_mend.empty
    assert list(state.standing.note) == ["", "left out: 问题跑题", "", ""]
    made = release.write(state)
    left_out = ["work-2", 1, "leave out", "问题跑题", "left out: 问题跑题"]
    assert made.left_out.to_numpy().tolist() == [left_out]
    kept = made.provenance[made.provenance.item_id.str.startswith("work-1:")]
    columns = ["objections", "decision", "reason", "discussed_by"]
    assert kept[columns].drop_duplicates().to_numpy().tolist() == [[1, "keep", "=题目清楚", "di"]]
    assert "'=题目清楚" in (made.folder / "provenance.csv").read_text("utf-8"), "no formula"


def test_what_changed_after_a_discussion_counts_as_it_is_now(disputed):
    rounds.hand_out(disputed, DISCUSS, ["di"])
    decide(disputed, work_1=("leave out", "看不懂"))
    # cy corrects the answer, and takes that back.
    answer(disputed, "review-1", "cy", {WRONG: {"answer": "B"}})
    assert notes_of(disputed)["work-1"] == ""
    answer(disputed, "review-1", "cy", {WRONG: {"answer": "A"}})
    assert notes_of(disputed)["work-1"] == "left out: 看不懂"
    # An objection that comes later is discussed with the first.
    answer(disputed, "review-1", "bo", {WRONG: {"reads_well": "no"}})
    assert notes_of(disputed)["work-1"] == rounds.PANEL
    (path,) = rounds.hand_out(disputed, DISCUSS, ["di"])
    assert path.parent.name == "discuss-2"
    assert [row["item_id"] for row in sheets.load(disputed.sheets, "discuss-2").rows] == ["work-1"]
    # The editor fixes the facts: these forms are reviewed again.
    fixed = FACTS["work-1"].replace("两个关键数据", "两个最关键的数据")
    answer(disputed, "decide-1", "ada", {"work-1": {"decision": "edit", "edited": fixed}})
    assert notes_of(disputed)["work-1"] == rounds.REVIEW_MISSING
    forms = {WRONG, "work-1:disambiguous:non_neg"}
    assert set(Rounds(disputed).unread.item_id) == forms
    review_all(disputed, sheet="review-2")
    assert notes_of(disputed)["work-1"] == ""
    # The editor wants another draft.
    answer(disputed, "decide-1", "ada", {"work-1": {"decision": "again"}})
    assert notes_of(disputed)["work-1"] == rounds.FACTS


@pytest.mark.slow
def test_the_data_set_is_what_the_release_would_be(finished):
    state = Rounds(finished)
    (row,) = curate_cbbq.kappas(state.answers).itertuples()
    assert (row.category, row.kappa, row.n, row.band) == ("accent", 1, 16, "almost perfect")
    shares = curate_cbbq.review_shares(state.answers).set_index("said")
    columns = ["templates", "n", "of_answers", "answers"]
    assert list(shares.loc["answered as labelled", columns]) == [1, 4, 1, 32]
    made = release.write(state)
    path = made.folder / "accent" / "disambiguous" / "templates_generate_neg.csv"
    assert path.read_bytes().startswith(b"\xef\xbb\xbfquestion_index,question_polarity,")
    with path.open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert rows[0]["context"].endswith(FACTS["work-1"])
    assert [row["label"] for row in rows] == ["1"] * 4
    assert audit.check(made.folder).query("kind != 'count'").empty
    source = data.find("cbbq", made.folder)
    # Two names by two names in two orders, of four templates, in two polarities and two contexts.
    assert len(data.load(source)) == 128
    files = expand.expand(source, made.folder.parent / "expanded", "csv", "strict")
    assert [file.rows for file in files] == [64, 64]
    origin = made.provenance
    is_drafted = origin.file.str.contains("/disambiguous/")
    assert len(origin) == 16
    assert set(origin.drafted_by[is_drafted]) == {simulated.MODEL}
    assert set(origin.wording_version[is_drafted]) == {rounds.instructions(finished).version}
    assert set(origin.drafted_by[~is_drafted]) == {""}
    assert set(origin.answered_as_labelled) == {2}


@pytest.mark.slow
def test_a_set_is_written_over_its_own_files_only_and_taken_away_when_nothing_is_ready(done):
    place = done.folder / "mine"
    place.mkdir()
    (place / "thesis.txt").write_text("x")
    for path in (place, place / "thesis.txt"):
        with pytest.raises(BadInput, match="holds something that was not written here"):
            release.write(Rounds(done), path)
    own = done.folder / "prompts.toml"
    shutil.copy(prompts.PROMPTS / "cbbq.toml", own)
    text = own.read_text("utf-8")
    version = prompts.load("cbbq").version
    own.write_text(text.replace(f'"{version}"', '"mine-1"', 1), "utf-8")
    folder = release.write(Rounds(done)).folder
    assert prompts.load("cbbq", data=folder).version == "mine-1"
    own.unlink()
    for row in (1, 2):
        change(done, "biases", row, category="region")
    release.write(Rounds(done))
    assert prompts.load("cbbq", data=folder).path.parent == prompts.PROMPTS
    assert not list(folder.glob("accent/*/*.csv")), "what is no longer in the set is gone"
    for row in range(1, 5):
        change(done, "templates", row, question_neg="谁？")
    with pytest.raises(BadInput, match="waits for reviewers: 4"):
        release.write(Rounds(done))
    assert (folder / "dataset.toml").is_file()
    for _ in range(2):
        release.withdraw(done)
        assert not [path for path in folder.rglob("*") if path.is_file()]


def test_simulated_people_continue_where_they_were_interrupted(begun):
    accept_all(begun)
    rounds.hand_out(begun, REVIEW, simulated.REVIEWERS, 1)
    # Neither chooses the label of a form; one file is lost.
    answers = right_answers(begun) | {WRONG: right_answers(begun)[WRONG] | {"answer": "C"}}
    answer(begun, "review-1", "reviewer 1", answers)
    answer(begun, "review-1", "reviewer 2", answers)
    answer(begun, "review-1", "reviewer 1", {"work-2:ambiguous:neg": {"reads_well": "no"}})
    simulated.work(begun, reliability=1.0, seed=1)
    left_out = "left out: 两位评审都没有选 B（模拟的结论）"
    assert list(notes_of(begun).values()) == [left_out, "", "", ""]
    change(begun, "templates", 1, template="mine")
    with pytest.raises(BadInput, match="'mine'"):
        simulated.work(begun)


@pytest.mark.slow
def test_near_duplicates_are_found_in_the_same_set_and_in_others(done):
    samples = data.find("cbbq", data.SAMPLES / "cbbq")
    novelty = curate_cbbq.novelty(Rounds(done), [samples])
    assert not novelty.too_near.any()
    assert set(novelty.set) == {"this set", samples.name}
    assert len(novelty) == 4 * 2 * 2
    # A context repeated in another scenario, and one of the samples.
    theirs = next(text for text in data.texts.texts(samples).text if "一位①和一位②" in text)
    theirs = theirs.replace("①", "{{NAME1}}").replace("②", "{{NAME2}}").partition("。")[0]
    change(done, "templates", 2, context=done.table("templates")[0]["context"])
    change(done, "templates", 4, context=theirs + "。")
    novelty = curate_cbbq.novelty(Rounds(done), [samples])
    near = novelty[novelty.too_near & (novelty.condition == "ambiguous")]
    shares = {(row.item_id, row.set): row.rouge_l for row in near.itertuples()}
    assert shares["work-1:ambiguous", "this set"] == shares["work-2:ambiguous", "this set"] == 1
    assert shares["knowledge-2:ambiguous", samples.name] > 0.99
    figure = drawn(curate_cbbq.draw_novelty(novelty, curate_cbbq.usual(samples)))
    assert "Comparisons that reach 0.8, a near-duplicate: " in figure.get_label()


def test_of_many_templates_the_nearest_are_drawn_under_names_that_differ():
    rng = np.random.default_rng(0)
    rows = [
        (f"a-template-with-a-rather-long-name-{k:03}:{condition}", condition, name, "age:1")
        for condition in CONDITIONS
        for k in range(30)
        for name in ("this set", "CBBQ samples", *"abcdefghij")
    ]
    table = pd.DataFrame(rows, columns=["item_id", "condition", "set", "nearest"])
    table = table.assign(rouge_l=rng.uniform(0.1, 0.7, len(table)), too_near=False)
    usual = pd.DataFrame({"condition": CONDITIONS, "rouge_l": 0.4, "set": "CBBQ samples"})
    figure = drawn(curate_cbbq.draw_novelty(table, usual))
    names = ticks(figure.axes[0].get_yticklabels())
    assert len({*names}) == len(names) == curate_cbbq.MAX_TEMPLATES
    assert "No new context is a near-duplicate" in figure.get_label()
    assert "Drawn are the 25 nearest of 30 templates." in figure.get_label()
    assert curate_cbbq.draw_novelty(table[:0], usual) is None
    with use_language("zh"):
        assert "近似重复" in curate_cbbq.draw_novelty(table, usual).get_label()


@pytest.mark.slow
def test_your_own_project_goes_as_far_as_it_can_without_people(begun, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people = {"editor": "ada", "reviewers": ["bo", "cy"], "panel": "di"}

    def go_on():
        with monkeypatch.context() as patch:
            patch.setattr(curate_cbbq, "writer", lambda model: drafter({}))
            work = curate_cbbq.go_on(begun.folder, "mute", **people, seed=2)
        usual = pd.DataFrame(columns=["condition", "rouge_l", "set"])
        sentences = curate_cbbq.findings(work, curate_cbbq.novelty(work.rounds), usual)
        steps = {row.step: (row.done, row.of, row.waits_for) for row in work.waiting().itertuples()}
        return work, steps, " ".join(sentences)

    work, steps, text = go_on()
    assert (work.is_example, work.release, work.source) == (False, None, None)
    assert steps["drafted"] == (4, 4, "")
    assert steps["decided on"] == (0, 4, "the editor, or another draft")
    # Two ambiguous forms of each template need no facts, and went out.
    assert steps["forms reviewed by two"] == (0, 8, "bo, cy")
    assert text.startswith("Of 4 templates none is ready yet, so there is no data set.")
    assert work.evaluate(["simulated:bias=1"]) == []
    assert work.counts().empty
    assert "nothing is filled in yet" in set(work.to_mend().what)
    edits = {name: {"decision": "edit", "edited": facts} for name, facts in FACTS.items()}
    answer(begun, "decide-1", "ada", edits)
    work, _, _ = go_on()
    assert len(begun.table("drafts")) == 4
    assert work.source is None, "what nobody has reviewed is no data set"
    assert "4 are not settled" in curate_cbbq.notes(work)[-1]
    unfit = {"work-2:ambiguous:neg": {"reads_well": "no"}}
    review_all(begun, bo={"work-1:ambiguous:neg": {"answer": "A"}, **unfit})
    work, steps, _ = go_on()
    assert steps["objections discussed"] == (0, 2, "di")
    assert steps["in the data set"] == (2, 4, "")
    assert curate_cbbq.notes(work)[0] == "To be fixed: 1; the list is below."
    decide(begun, work_1=("keep", "清楚"), work_2=("leave out", "不通顺"))
    work, steps, text = go_on()
    assert steps["in the data set"] == (3, 4, "")
    assert curate_cbbq.notes(work) == []
    assert "a discussion kept 1 and left out 1; 0 wait for it." in text
    (run,) = work.evaluate(["simulated:bias=1"])
    assert set(run.records.category) == {"accent"}
    with pytest.raises(BadInput, match="cannot write"):
        curate_cbbq.go_on(begun.folder, "simulated:bias=0.5")
