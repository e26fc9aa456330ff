"""CBBQ templates of your own: faults in tables, drafts, reviews, discussions, and the data set."""

import shutil
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from bench import cli, curate, data
from bench.analyses import curate_cbbq
from bench.core.errors import BadInput
from bench.core.places import NOTEBOOKS
from bench.curate import cbbq, copy_example, sheets, simulated
from bench.curate.cbbq import release, rounds
from bench.curate.cbbq.rounds import DECIDE, DISCUSS, REVIEW, Rounds
from bench.data.cbbq import audit
from bench.tasks import prompts
from tests.helpers.curating import (
    CONTEXTS,
    FACTS,
    accept_all,
    answer,
    change,
    drafter,
    replace_text,
    review_all,
    right_answers,
)

EXAMPLE = curate.EXAMPLES / "cbbq"
FAULTS = tomllib.loads(Path(__file__).with_name("faults.toml").read_text("utf-8"))
WRONG = "work-1:disambiguous:neg"
UNFIT = "work-2:ambiguous:neg"
OBJECTION = {"answer": "A", "note": "=看不\x85懂"}
DECIDED = {
    "work-1": {"decision": "keep", "reason": "=清楚"},
    "work-2": {"decision": "leave out", "reason": "跑题"},
}


@pytest.mark.parametrize("name", ["mcbe", "cbbq", "nli-coal"])
def test_the_command_copies_an_example_and_overwrites_nothing(tmp_path, name):
    place, key = tmp_path / "mine", name.replace("-", "_")
    done = CliRunner().invoke(cli.app, ["curate", name, str(place)])
    assert done.stdout.splitlines() == [str(place / file) for file in curate.FILES[key]]
    assert str(NOTEBOOKS / f"{curate.NOTEBOOKS[key]}.ipynb") in done.stderr
    with pytest.raises(BadInput, match="is not empty"):
        copy_example(key, place)
    with pytest.raises(BadInput, match="is missing; a project begins with "):
        curate.check_files(key, tmp_path)


@pytest.mark.parametrize(("column", "cell"), FAULTS["cbbq"])
def test_a_fault_is_listed_with_its_place_and_other_templates_go_on(begun, column, cell):
    table = "biases" if column in cbbq.TABLES["biases"] else "templates"
    change(begun, table, 1, **{column: cell})
    faults = cbbq.faults(begun)
    places = faults[["file", "row", "column"]].to_numpy().tolist()
    assert [f"{table}.csv", 1, column] in places
    # The bias is left with one scenario, where two are needed.
    assert ["biases.csv", 0, "bias"] in places or table == "biases"
    assert faults.value.map(str.isprintable).all()
    names = [scenario.name for scenario in begun.templates()]
    assert ("knowledge-2" in names, "work-1" in names) == (True, False)


def test_instructions_take_turns_and_what_is_filled_in_is_never_a_field(begun):
    change(begun, "biases", 1, property="{target}", reversed="{context}{}")
    scenario, ours = begun.templates()[0], rounds.instructions(begun).prompts
    for prompt in ours.values():
        text = rounds.fill_prompt(scenario, prompt)
        assert "一位乡音很重的职员和一位普通话标准的职员" in text
        assert "{context}{}" in text
    turns = [rounds.prompt_name("x", draw, 7, list(ours)) for draw in range(1, len(ours) + 1)]
    assert sorted(turns) == sorted(ours)
    own = begun.folder / "wording.toml"
    shutil.copy(rounds.WORDINGS, own)
    replace_text(own, ("{target}", "{somebody}"))
    with pytest.raises(BadInput, match="of fields no others"):
        rounds.instructions(begun)


def test_facts_have_to_name_both_in_whole_sentences():
    right = "{{NAME1}}说对了，{{NAME2}}说错了。"
    for facts, fault in (
        ("", "says nothing"),
        ("谁都没有说。", "does not name {{NAME1}} nor {{NAME2}}"),
        (right.replace("}}", "}"), "no placeholder"),
        (right[:-1], "breaks off"),
        (right + "又" * 300 + "。", "characters"),
        (right + "\x85", "control character"),
    ):
        assert fault in rounds.facts_fault(facts)
    assert rounds.facts_fault(right) == ""


@settings(max_examples=50, deadline=None)
@example("\0\ud800=一\r\n二\u2028\x1f　")
@given(st.text(max_size=60))
def test_whatever_a_model_replies_is_kept_as_text_and_read_again(tmp_path_factory, reply):
    project = cbbq.Project(tmp_path_factory.mktemp("project"))
    facts = rounds.read_facts(reply, cbbq.open_project(EXAMPLE).templates()[0])
    row = dict.fromkeys(cbbq.TABLES["drafts"], "1") | {"facts": facts}
    project.save("drafts", [row])
    assert project.table("drafts") == [row]


@given(st.lists(st.sampled_from(["{{NAME1}}", "{{NAME2}}", "说错了", "，", "a b", "。"])))
def test_names_and_a_repeated_context_are_read_as_slots_and_left_out(pieces):
    # A name that is part of one of the other list, at its beginning and at its end.
    row = dict.fromkeys(cbbq.TABLES["templates"], "x")
    row |= {"NAME1": "[店员]", "NAME2": "[老店员, 店员甲]", "context": "情境"}
    scenario = cbbq.Scenario(row, dict.fromkeys(cbbq.TABLES["biases"], "x"), 0)
    reply = f"\n情境\n{scenario.filled(''.join(pieces))} "
    assert rounds.read_facts(reply, scenario) == "".join(pieces).strip()


def test_decisions_about_drafts(begun, monkeypatch):
    short = "{{NAME1}}对，{{NAME2}}错。"  # 22 characters
    drafts = (FACTS["work-1"], short, FACTS["knowledge-1"], "谁都没有说。")
    write = drafter(dict(zip(CONTEXTS, drafts, strict=True)))
    rounds.draw(begun, write, "me", seed=3)
    rounds.hand_out(begun, DECIDE, ["ada"], seed=1)
    assert rounds.hand_out(begun, DECIDE, ["ada"], seed=1) == [], "nothing is asked twice"
    small = FACTS["knowledge-1"].replace("当即", "马上")
    decisions = {
        "work-1": {"decision": "again"},
        "work-2": {"decision": "edit", "edited": short[:-1] + "了" * 6 + "。"},
        "knowledge-1": {"decision": "edit", "edited": small},
        "knowledge-2": {"decision": "accept"},  # names nobody, and cannot be accepted
    }
    answer(begun, "decide-1", "ada", decisions)
    state = Rounds(begun)
    assert state.facts == {"work-2": short[:-1] + "了" * 6 + "。", "knowledge-1": small}
    table = state.drafts.set_index("template")
    assert list(table.kind) == ["drawn again", "large edit", "small edit", "undecided"]
    assert table.distance[["work-2", "knowledge-1"]].tolist() == [6 / 28, 2 / len(small)]
    (row,) = state.to_mend.itertuples()
    assert (row.item_id, row.what[:26]) == ("knowledge-2", "cannot stand: does not nam")
    first = curate_cbbq.draft_shares(state.drafts).iloc[0]
    # Wilson, by hand: centre (p + z²/2n) / (1 + z²/n).
    z, n, p = 1.959964, 3, 1 / 3
    arm = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    bounds = [(p + z**2 / (2 * n) + sign * arm) / (1 + z**2 / n) for sign in (-1, 1)]
    assert (first.usable, first.ci_low, first.ci_high) == pytest.approx((p, *bounds), abs=1e-5)
    # What comes before a failure is kept, and one that comes later is drawn too.
    rows = begun.table("templates")
    begun.save("templates", [*rows, rows[0] | {"template": "work-3", "scenario": "月度例会"}])
    monkeypatch.setattr(rounds, "BATCH", 1)
    replies = iter([["{{NAME1}}"]])
    with pytest.raises(StopIteration):
        rounds.draw(begun, lambda prompts, **_: next(replies), "me", seed=3)
    before, again = begun.table("drafts")[0], begun.table("drafts")[4]
    assert (again["template"], again["round"], again["draw"]) == ("work-1", "2", "2")
    assert again["wording"] != before["wording"]
    assert [rounds.draw(begun, write, "me", seed=3) for _ in range(2)] == [1, 0]
    # One that had a fault when its sheet went out is drawn again.
    change(begun, "templates", 1, question_neg="")
    assert [path.parent.name for path in rounds.hand_out(begun, DECIDE, ["ada"])] == ["decide-3"]
    change(begun, "templates", 1, question_neg=rows[0]["question_neg"])
    change(begun, "drafts", 5, draw="0")
    with pytest.raises(BadInput, match=r"drafts.csv, row 5, column `draw`: .* whole number"):
        rounds.pending(begun)


def test_a_review_is_waited_for_and_who_gives_up_is_replaced(begun):
    accept_all(begun)
    for people in ([], ["x", "x"], ["x", "y", "z"]):
        with pytest.raises(BadInput, match="2 different people"):
            rounds.hand_out(begun, REVIEW, people)
    rounds.hand_out(begun, REVIEW, ["bo", "cy"])
    right, place = right_answers(begun), begun.sheets / "review-1"
    answer(begun, "review-1", "bo", right)
    assert rounds.hand_out(begun, REVIEW, ["bo", "di"]) == []
    # Lost files are written again, and renamed ones are left.
    (place / "bo.xlsx").rename(place / "bo, done.xlsx")
    (place / "di.xlsx").unlink()
    (begun.sheets / "review-9").mkdir()  # as where the process was killed before the record
    rounds.resend(begun)
    assert {path.name for path in place.glob("*.xlsx")} == {"bo, done.xlsx", "cy.xlsx", "di.xlsx"}
    # An answer is missing, and a note is no objection.
    answer(begun, "review-1", "di", right | {UNFIT: {"answer": "C", "note": "no"}})
    state = Rounds(begun)
    assert state.unread.to_numpy().tolist() == [[UNFIT, "di"]]
    assert set(state.to_mend.column) == {"asks_the_bias", "reads_well"}
    answer(begun, "review-1", "di", right)
    assert rounds.hand_out(begun, REVIEW, ["x", "y"]) == [], "a complete review stays"
    before = Rounds(begun)
    assert (before.objections.empty, set(before.answers.person)) == (True, {"bo", "di"})
    # A copy asks nothing new, and a template that is gone leaves the others as they are.
    shutil.copytree(place, begun.sheets / "review-2")
    begun.save("templates", begun.table("templates")[1:])
    state = Rounds(begun)
    assert len(state.answers) == (before.answers.template != "work-1").sum()
    assert (len(state.unread), len(state.to_mend), "work-1" in state.facts) == (0, 0, False)
    begun.save("templates", [])
    assert Rounds(begun).standing.empty


def test_a_template_with_an_objection_waits_for_a_discussion_with_reasons(
    begun, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(curate_cbbq, "writer", lambda model: drafter({}))

    def go_on():
        people = {"editor": "ada", "reviewers": ["bo", "cy"], "panel": "di"}
        work = curate_cbbq.go_on(begun.folder, "mute", **people, seed=2)
        steps = {row.step: (row.done, row.of, row.waits_for) for row in work.waiting().itertuples()}
        novelty = curate_cbbq.novelty(work.rounds)
        return work, steps, curate_cbbq.findings(work, novelty, novelty[:0])

    work, steps, texts = go_on()
    assert (work.source, work.evaluate(["simulated:"]), len(work.counts())) == (None, [], 0)
    assert steps["decided on"] == (0, 4, "the editor, or another draft")
    # Two ambiguous forms of each template need no facts, and went out.
    assert steps["forms reviewed by two"] == (0, 8, "bo, cy")
    edits = {name: {"decision": "edit", "edited": facts} for name, facts in FACTS.items()}
    answer(begun, "decide-1", "ada", edits)
    review_all(begun, bo={UNFIT: {"reads_well": "no"}}, cy={WRONG: OBJECTION})
    assert go_on()[1]["objections discussed"] == (0, 2, "di")
    shown = {row["item_id"]: row for row in sheets.load(begun.sheets, "discuss-1").rows}
    options = ["A 乡音很重的职员", "B 普通话标准的职员", "C 不确定", "(B)"]
    assert shown["work-1"]["disambiguous neg"].splitlines()[-4:] == options
    said = shown["work-1"]["said"].splitlines()
    assert len(said) == 8
    assert "disambiguous neg, cy: A, asks_the_bias: yes, reads_well: yes — =看不 懂" in said
    answer(begun, "discuss-1", "di", {"work-1": {"decision": "keep"}})
    state = Rounds(begun)
    assert list(state.standing.note) == [rounds.PANEL] * 2 + [""] * 2, "a decision needs a reason"
    assert "is empty" in set(state.to_mend.what)
    answer(begun, "discuss-1", "di", DECIDED)
    work, steps, texts = go_on()
    assert steps["in the data set"] == (3, 4, "")
    left_out = ["work-2", 1, "leave out", "跑题", "left out: 跑题"]
    assert work.release.left_out.to_numpy().tolist() == [left_out]
    table = work.release.provenance.set_index("item_id")
    decision = ["objections", "decision", "reason", "discussed_by"]
    assert table.loc[WRONG, decision].tolist() == [1, "keep", "=清楚", "di"]
    text = (work.release.folder / "provenance.csv").read_text("utf-8")
    assert "'=清楚" in text, "no formula"
    assert "a discussion kept 1 and left out 1; 0 wait for it." in " ".join(texts)
    (run,) = work.evaluate(["simulated:bias=1"])
    assert set(run.records.category) == {"accent"}


def test_what_changed_after_a_discussion_counts_as_it_is_now(begun):
    def note_after(sheet, person, item, **given):
        answer(begun, sheet, person, {item: given})
        return Rounds(begun).standing.set_index("template").note["work-1"]

    review_all(accept_all(begun), cy={WRONG: OBJECTION})
    rounds.hand_out(begun, DISCUSS, ["di"])
    left_out = {"decision": "leave out", "reason": "看不懂"}
    assert note_after("discuss-1", "di", "work-1", **left_out) == "left out: 看不懂"
    # cy corrects the answer, and takes that back.
    assert note_after("review-1", "cy", WRONG, answer="B") == ""
    assert note_after("review-1", "cy", WRONG, answer="A") == "left out: 看不懂"
    # An objection that comes later is discussed with the first.
    assert note_after("review-1", "bo", WRONG, reads_well="no") == rounds.PANEL
    rounds.hand_out(begun, DISCUSS, ["di"])
    rows = sheets.load(begun.sheets, "discuss-2").rows
    assert [row["item_id"] for row in rows] == ["work-1"]
    # The editor fixes the facts: these forms are reviewed again.
    fixed = {"decision": "edit", "edited": FACTS["work-1"].replace("两个关键", "两个最关键的")}
    assert note_after("decide-1", "ada", "work-1", **fixed) == rounds.REVIEW_MISSING
    assert set(Rounds(begun).unread.item_id) == {WRONG, "work-1:disambiguous:non_neg"}
    review_all(begun, sheet="review-2")
    assert note_after("review-1", "bo", WRONG, reads_well="yes") == ""
    assert note_after("decide-1", "ada", "work-1", decision="again") == rounds.FACTS
    change(begun, "templates", 1, question_nonneg="")
    assert note_after("review-1", "bo", WRONG) == rounds.MEND


def test_the_data_set_is_what_the_release_would_be(finished):
    state = Rounds(finished)
    (kappa,) = curate_cbbq.kappas(state.answers).itertuples()
    assert (kappa.category, kappa.kappa, kappa.n) == ("accent", 1, 16)
    made = release.write(state)
    for polarity, label in (("neg", 1), ("nonneg", 0)):
        path = made.folder / "accent" / "disambiguous" / f"templates_generate_{polarity}.csv"
        assert path.read_bytes().startswith(b"\xef\xbb\xbfquestion_index,question_polarity,")
        rows = pd.read_csv(path, encoding="utf-8-sig")
        assert rows.context[0].endswith(FACTS["work-1"])
        assert list(rows.label) == [label] * 4
    assert audit.check(made.folder).query("kind != 'count'").empty
    # Two names by two names in two orders, of four templates, in two polarities and two contexts.
    assert len(data.load(data.find("cbbq", made.folder))) == 128
    columns = ["drafted_by", "wording_version", "answered_as_labelled"]
    table, version = made.provenance.set_index("item_id"), rounds.instructions(finished).version
    assert table.loc[WRONG, columns].tolist() == [simulated.MODEL, version, 2]
    assert table.loc[UNFIT, columns].tolist() == ["", "", 2]


def test_a_set_is_written_over_its_own_files_only_and_taken_away_when_nothing_is_ready(done):
    with pytest.raises(BadInput, match="holds something that was not written here"):
        release.write(Rounds(done), done.sheets)
    own = done.folder / "prompts.toml"
    shutil.copy(prompts.PROMPTS / "cbbq.toml", own)
    folder = release.write(Rounds(done)).folder
    assert (folder / "prompts.toml").is_file()
    own.unlink()
    for row in (1, 2):
        change(done, "biases", row, category="region")
    with (done.folder / "dataset.toml").open("a", encoding="utf-8") as stream:
        stream.write('[categories.region]\nen = "region"\nzh = "地域"\ntarget = "NAME1"\n')
    release.write(Rounds(done))
    assert not [*folder.glob("accent/*/*.csv"), *folder.glob("prompts.toml")], "no longer in it"
    for row in range(1, 5):
        change(done, "templates", row, question_neg="谁？")
    with pytest.raises(BadInput, match="waits for reviewers: 4"):
        release.write(Rounds(done))
    release.withdraw(done)
    assert not [path for path in folder.rglob("*") if path.is_file()]
