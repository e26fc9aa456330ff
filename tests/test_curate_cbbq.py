"""CBBQ templates of one's own: what tables lack, drafts and decisions, forms, reviewers, what is new, and the data set."""

import csv
import shutil
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from openpyxl import load_workbook

from bench import data
from bench.analyses import curate_cbbq
from bench.curate import cbbq, cbbq_drafts, cbbq_review, cbbq_simulated, cbbq_write, sheets
from bench.data import cbbq_check, cbbq_expand
from bench.data.cbbq_templates import CONDITIONS
from bench.errors import BadInput
from bench.figures.curate_cbbq import novelty as picture
from bench.metrics import annotators

FACTS = cbbq_simulated.finished()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The example, worked on by simulated people who are always right."""
    project = cbbq.copied(tmp_path_factory.mktemp("curated") / "done")
    cbbq_simulated.work(project, reliability=1.0, seed=1)
    return project


@pytest.fixture
def done(finished, tmp_path):
    """A copy of it, to be changed."""
    shutil.copytree(finished.folder, tmp_path / "done")
    return cbbq.opened(tmp_path / "done")


@pytest.fixture
def begun(tmp_path):
    return cbbq.copied(tmp_path / "begun")


def changed(project, table, row, **cells):
    rows = project.table(table)
    rows[row - 1] |= cells
    project.save(table, rows)


def told(project):
    return [(one.file, one.row, one.column) for one in cbbq.faults(project).itertuples()]


def answered(project, sheet, person, decisions):
    """Fill in a sheet: item to its answers."""
    path = project.sheets / sheet / f"{person}.xlsx"
    sheets.fill(
        path, sheets.opened(project.sheets, sheet), person, lambda row: decisions.get(row["item_id"], {})
    )


def drafter(replies):
    """A model that says, of a template's context, what `replies` have for it."""

    def write(prompts, *, max_new_tokens, seed):
        return [
            next((reply for start, reply in replies.items() if start in prompt), "") for prompt in prompts
        ]

    return write


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
    ],
)
def test_a_fault_is_listed_with_its_place_and_the_other_templates_go_on(begun, table, cells, column):
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
    assert [one.label(condition, polarity) for condition in CONDITIONS for polarity in ("neg", "non_neg")] == [2, 2, 1, 0]  # fmt: skip
    changed(begun, "biases", 1, category="gender")
    one = begun.templates()[0]
    assert (one.target, one.label("disambiguous", "neg"), one.label("disambiguous", "non_neg")) == (1, 0, 1)


def test_instructions_hold_the_context_and_the_reversed_property_and_take_turns(begun):
    one = begun.templates()[0]
    prompts = cbbq_drafts.wordings().prompts
    for prompt in prompts.values():
        asked = cbbq_drafts.ask(one, prompt)
        assert "一位乡音很重的职员和一位普通话标准的职员" in asked
        assert one.bias["reversed"] in asked
        assert "{" not in asked
    turns = [cbbq_drafts.wording_of("x", draw, 7, list(prompts)) for draw in range(1, len(prompts) + 1)]
    assert sorted(turns) == sorted(prompts)
    assert turns != [
        cbbq_drafts.wording_of("x", draw, 9, list(prompts)) for draw in range(1, len(prompts) + 1)
    ]


def test_what_is_filled_in_is_never_taken_for_a_field(begun):
    changed(begun, "biases", 1, property="{target}", reversed="{context}{}")
    one = begun.templates()[0]
    assert cbbq_drafts.ask(one, "{context}|{property}|{reversed}").endswith("|{target}|{context}{}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[a]\nprompt = "{context}{reversed}"', "version"),
        ('version = "1"\n[a]\nprompt = "{context}"', "expected a text with"),
        ('version = "1"\n[a]\nprompt = "{context}{reversed}{other_one}"', "of fields no others"),
    ],
)
def test_wordings_that_cannot_be_filled_are_refused(tmp_path, text, message):
    said = "\n".join(f'{name} = "x"' for name in cbbq_drafts.ON_SHEETS)
    path = tmp_path / "wordings.toml"
    path.write_text(f"{text}\n[sheet]\n{said}\n", "utf-8")
    with pytest.raises(BadInput, match=message):
        cbbq_drafts.wordings(path)
    path.write_text(text, "utf-8")
    with pytest.raises(BadInput, match=r"\[sheet\]|version"):
        cbbq_drafts.wordings(path)


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ("", "says nothing"),
        ("{{NAME1}}说对了。", "does not name {{NAME2}}"),
        ("谁都没有说。", "nor"),
        ("{{NAME1}}说对了，{{NAME2}说错了。", "no placeholder"),
        ("{{NAME1}}说对了，{{NAME2}}说错", "breaks off"),
        ("{{NAME1}}说对了，{{NAME2}}说错了。" + "又" * 300 + "。", "characters"),
        ("{{NAME1}}说对了，{{NAME2}}说错了。", ""),
    ],
)
def test_facts_have_to_name_both_in_whole_sentences(facts, why):
    found = cbbq_drafts.wrong_facts(facts)
    assert (found == "") if why == "" else why in found


def test_a_reply_is_read_with_slots_for_names_and_without_the_context(begun):
    one = begun.templates()[0]
    reply = f"\n情境：{one.filled(one.cells['context'])}\n评语写明，乡音很重的职员条理清楚，\n普通话标准的职员漏看了数据。 "
    assert cbbq_drafts.read_facts(reply, one) == "评语写明，{{NAME1}}条理清楚，{{NAME2}}漏看了数据。"


@settings(max_examples=40, deadline=None)
@example("\0\ud800=一\r\n二\u2028\x1f　")
@given(st.text(max_size=60))
def test_whatever_a_model_says_is_kept_as_text_and_comes_back(said):
    with TemporaryDirectory() as folder:
        project = cbbq.copied(f"{folder}/p")
        row = dict.fromkeys(cbbq.TABLES["drafts"], "1")
        facts = cbbq_drafts.read_facts(said, project.templates()[0])
        project.save("drafts", [row | {"facts": facts}])
        assert project.table("drafts") == [row | {"facts": facts}]


PIECES = ["{{NAME1}}", "{{NAME2}}", "说错了", "，", "a b", "的", "。"]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_names_that_are_filled_in_are_read_as_slots_again(facts):
    # A name that stands in one of the other list, at its beginning and at its end.
    row = dict.fromkeys(cbbq.TABLES["templates"], "x") | {"NAME1": "[店员]", "NAME2": "[老店员, 店员甲]"}
    one = cbbq.Scenario(row | {"context": "情境"}, dict.fromkeys(cbbq.TABLES["biases"], "x"))
    assert cbbq_drafts.read_facts(one.filled(facts), one) == facts.strip()


def test_decisions_by_hand(begun):
    good = {
        "案例题": FACTS["work-1"],
        "抽查录音": "{{NAME2}}说错了；{{NAME1}}的解答与规定相符。",
        "知识竞答": FACTS["knowledge-1"],
    }
    assert cbbq_drafts.draw(begun, drafter(good), "me", seed=3) == 4
    assert cbbq_drafts.draw(begun, drafter(good), "me", seed=3) == 0, "nothing is asked twice"
    cbbq_drafts.hand_out(begun, "ada", seed=1)
    assert cbbq_drafts.hand_out(begun, "ada", seed=1) == []
    small = FACTS["knowledge-1"].replace("当即", "马上")
    answered(
        begun,
        "decide-1",
        "ada",
        {
            "work-1": {"decision": "accept"},
            "work-2": {"decision": "again"},
            "knowledge-1": {"decision": "edit", "edited": small},
            "knowledge-2": {"decision": "accept"},  # says nothing, and cannot be accepted
        },
    )
    found = cbbq_drafts.decided(begun)
    assert found.facts == {"work-1": FACTS["work-1"], "knowledge-1": small}
    kinds = found.drafts.set_index("template").kind
    assert dict(kinds) == {"work-1": "as drafted", "work-2": "drawn again", "knowledge-1": "small edit", "knowledge-2": "undecided"}  # fmt: skip
    # Two of so many characters were changed.
    assert found.drafts.set_index("template").distance["knowledge-1"] == pytest.approx(2 / len(small))
    (row,) = found.to_mend.itertuples()
    assert (row.item_id, row.what) == ("knowledge-2", "cannot stand: says nothing")
    first = cbbq_drafts.shares(found.drafts).iloc[0]
    assert (first.n, first.usable) == (3, pytest.approx(2 / 3))
    # Wilson, by hand: centre (p + z²/2n) / (1 + z²/n).
    z, n, p = 1.959964, 3, 2 / 3
    arm = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    assert (first.ci_low, first.ci_high) == pytest.approx([(p + z**2 / (2 * n) + sign * arm) / (1 + z**2 / n) for sign in (-1, 1)], abs=1e-5)  # fmt: skip
    assert [one.name for one in cbbq_drafts.pending(begun)] == ["work-2"], "only what is to be drawn again"
    assert cbbq_drafts.draw(begun, drafter(good), "me", seed=3) == 1
    again = begun.table("drafts")[-1]
    assert (again["template"], again["round"], again["draw"]) == ("work-2", "2", "2")
    assert again["wording"] != begun.table("drafts")[1]["wording"]
    assert len(cbbq_drafts.hand_out(begun, "ada")) == 1


def test_an_edit_is_large_beyond_a_fifth_of_the_characters(begun):
    draft = "{{NAME1}}对，{{NAME2}}错。"  # 22 characters
    cbbq_drafts.draw(begun, drafter({"案例题": draft, "抽查录音": draft}), "me")
    cbbq_drafts.hand_out(begun, "ada")
    four, five = (draft[:-1] + "了" * k + "。" for k in (4, 6))
    answered(begun, "decide-1", "ada", {"work-1": {"decision": "edit", "edited": four}, "work-2": {"decision": "edit", "edited": five}})  # fmt: skip
    found = cbbq_drafts.decided(begun).drafts.set_index("template")
    assert found.distance["work-1"] == pytest.approx(4 / len(four))
    assert (found.kind["work-1"], found.kind["work-2"]) == ("small edit", "large edit")


def test_a_template_that_comes_later_gets_a_sheet_of_its_own(done):
    rows = done.table("templates")
    done.save("templates", [*rows, rows[0] | {"template": "work-3", "scenario": "月度例会"}])
    assert [one.name for one in cbbq_drafts.pending(done)] == ["work-3"]
    before = {path.name for path in done.sheets.iterdir()}
    cbbq_drafts.draw(done, drafter({}), "me")
    (path,) = cbbq_drafts.hand_out(done, "ada")
    assert path.parent.name not in before


def test_a_template_that_was_faulty_when_the_sheet_was_written_is_drawn_again(begun):
    cbbq_drafts.draw(begun, drafter({}), "me")
    question = begun.table("templates")[0]["question_neg"]
    changed(begun, "templates", 1, question_neg="")
    cbbq_drafts.hand_out(begun, "ada")
    assert cbbq_drafts.pending(begun) == []
    changed(begun, "templates", 1, question_neg=question)
    assert [one.name for one in cbbq_drafts.pending(begun)] == ["work-1"]


def test_drafts_that_came_before_a_failure_are_kept(begun, monkeypatch):
    monkeypatch.setattr(cbbq_drafts, "BATCH", 3)
    write = drafter({})

    def fails(prompts, **options):
        if len(prompts) < 3:
            raise RuntimeError("the endpoint is gone")
        return write(prompts, **options)

    with pytest.raises(RuntimeError):
        cbbq_drafts.draw(begun, fails, "me")
    assert len(begun.table("drafts")) == 3
    assert cbbq_drafts.draw(begun, write, "me") == 1


def test_forms_that_lack_something_are_listed_and_only_whole_templates_are_written(begun, tmp_path):
    with pytest.raises(BadInput, match="no template has its four forms"):
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
    made = cbbq_write.write(begun)
    assert list(made.left_out.template) == ["work-2", "knowledge-1", "knowledge-2"]
    assert cbbq_write.counts(data.find("cbbq", made.folder)).iloc[-1].templates == 4


def test_the_data_set_is_what_the_release_would_be(finished):
    made = cbbq_write.write(finished)
    path = made.folder / "accent" / "disambiguous" / "templates_generate_neg.csv"
    assert path.read_bytes().startswith(b"\xef\xbb\xbfquestion_index,question_polarity,")
    with path.open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert rows[0]["context"].endswith(FACTS["work-1"])
    assert [row["label"] for row in rows] == ["1"] * 4
    assert cbbq_check.check(made.folder).query("kind != 'count'").empty
    source = data.find("cbbq", made.folder)
    counted = cbbq_write.counts(source)
    # Two names by two names in two orders, of four templates, in two polarities and two contexts.
    assert list(counted.questions) == [32, 32, 32, 32, 128]
    assert len(data.load(source)) == 128
    files = cbbq_expand.expand(source, made.folder.parent / "expanded", "csv", "strict")
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
        changed(done, "biases", row, category="gender")
    again = cbbq_write.write(done)
    assert first.folder == again.folder
    assert not list(again.folder.glob("accent/*/*.csv")), "what is no more is gone"
    assert list(cbbq_write.counts(data.find("cbbq", again.folder)).category) == ["gender"] * 4 + ["all"]


def test_reviewers_who_are_always_right_agree(finished):
    found = cbbq_review.reviewed(finished)
    assert found.waiting.empty
    (row,) = cbbq_review.kappas(found.answers).itertuples()
    assert (row.category, row.kappa, row.n, row.band) == ("accent", 1.0, 16, "almost perfect")
    shares = cbbq_review.shares(found.answers).set_index("said")
    assert (shares.templates["answered as labelled"], shares.n["answered as labelled"]) == (1.0, 4)


def test_kappa_of_reviewers_by_hand():
    # Each says A six times and B four times, and they are alike in eight of ten: chance is 0.36 + 0.16.
    one, two = "AAAAAABBBB", "AAAAABBBBA"
    rows = [
        {
            "category": "c",
            "item_id": f"i{k}",
            "person": who,
            "rater": who,
            "question": "answer",
            "answer": said[k],
        }
        for who, said in (("x", one), ("y", two))
        for k in range(10)
    ]
    (row,) = cbbq_review.kappas(pd.DataFrame(rows)).itertuples()
    assert row.kappa == pytest.approx((0.8 - 0.52) / (1 - 0.52))
    assert row.band == "moderate"
    with pytest.raises(BadInput, match="no form has been answered by two"):
        cbbq_review.kappas(pd.DataFrame(rows[:10]))


def test_the_paper_s_kappas_have_the_bands_that_it_names():
    assert [annotators.band(kappa) for kappa in (0.92, 0.85, 0.69)] == ["almost perfect", "almost perfect", "substantial"]  # fmt: skip


def test_a_text_that_changed_after_its_review_is_reviewed_again(done):
    assert cbbq_review.hand_out(done, ["x", "y"]) == []
    context = done.table("templates")[0]["context"].replace("单位", "公司")
    changed(done, "templates", 1, context=context)
    found = cbbq_review.reviewed(done)
    assert set(found.waiting.item_id) == {f"work-1:{condition}:{polarity}" for condition in CONDITIONS for polarity in ("neg", "non_neg")}  # fmt: skip
    assert found.answers.template.nunique() == 3
    paths = cbbq_review.hand_out(done, ["x", "y"])
    assert [path.parent.name for path in paths] == ["review-2"] * 2
    assert len(sheets.opened(done.sheets, "review-2").rows) == 4
    assert set(cbbq_review.reviewed(done).waiting.people) == {"x, y"}


def test_two_reviewers_are_two(done):
    for people in ([], ["x"], ["x", "x"], ["x", "y", "z"]):
        with pytest.raises(BadInput, match="2 different people"):
            cbbq_review.hand_out(done, people)


def test_wrong_rows_of_a_sheet_are_listed_and_the_right_ones_stay(done):
    path = done.sheets / "review-1" / "reviewer 1.xlsx"
    book = load_workbook(path)
    page = book["answers"]
    columns = {cell.value: cell.column for cell in page[1]}
    wrong = page.cell(2, columns["key"]).value
    page.cell(2, columns["answer"]).value = "D"
    page.cell(3, columns["key"]).value = "0123456789abcdef"  # a row of another sheet
    page.append([page.cell(4, k).value for k in range(1, page.max_column + 1)])  # one that is doubled
    page.delete_rows(5)  # one that is missing
    book.save(path)
    found = cbbq_review.reviewed(done)
    sheet = sheets.opened(done.sheets, "review-1")
    assert sheet.keys("reviewer 1")[wrong] in set(found.to_mend.item_id)
    assert found.to_mend.what.str.contains("no sheet that is known").any()
    assert found.to_mend.what.str.contains("more than once").any()
    assert found.to_mend.what.str.contains("missing").any()
    given = found.answers[(found.answers.question == "answer") & (found.answers.person == "reviewer 1")]
    assert len(given) == 16 - 3
    assert (cbbq_review.kappas(found.answers).n == 13).all()
    assert set(found.waiting.people) == {"reviewer 1"}


def test_objections_are_listed_with_their_notes(done):
    sheet = sheets.opened(done.sheets, "review-1")
    path = done.sheets / "review-1" / "reviewer 2.xlsx"
    said = {"answer": "A", "asks_the_bias": "no", "reads_well": "yes", "note": "=太绕了"}
    sheets.fill(
        path, sheet, "reviewer 2", lambda row: said if row["item_id"] == "work-1:disambiguous:neg" else {}
    )
    found = cbbq_review.objections(cbbq_review.reviewed(done).answers)
    some = found[(found.item_id == "work-1:disambiguous:neg") & (found.person == "reviewer 2")]
    assert sorted(zip(some.question, some.answer, some.expected, some.note, strict=True)) == [
        ("answer", "A", "B", "=太绕了"), ("asks_the_bias", "no", "yes", "=太绕了"),
    ]  # fmt: skip


def test_what_is_too_near_is_found_in_the_same_set_and_in_others(done):
    samples = data.find("cbbq", data.SAMPLES / "cbbq")
    found = cbbq_review.novelty(done, [samples])
    assert not found.too_near.any()
    assert set(found.set) == {"this set", samples.name}
    assert len(found) == 4 * 2 * 2
    # A context told again in another scenario, and one of the samples.
    rows = done.table("templates")
    theirs = next(one for one in data.overview.texts(samples).text if "一位①和一位②" in one)
    changed(done, "templates", 2, context=rows[0]["context"])
    changed(
        done,
        "templates",
        4,
        context=theirs.replace("①", "{{NAME1}}").replace("②", "{{NAME2}}").partition("。")[0] + "。",
    )
    found = cbbq_review.novelty(done, [samples])
    near = found[found.too_near & (found.condition == "ambiguous")]
    pairs = {(row.item_id, row.set): row.rouge_l for row in near.itertuples()}
    assert pairs["work-1:ambiguous", "this set"] == pairs["work-2:ambiguous", "this set"] == 1
    assert pairs["knowledge-2:ambiguous", samples.name] > 0.99
    figure = picture(found, curate_cbbq.usual(samples))
    assert "comparisons reach 0.8" in figure.get_label()
    assert picture(found.iloc[:0], curate_cbbq.usual(samples)) is None


def test_simulated_reviewers_have_the_kappa_that_they_must():
    # Many forms, as the example's are: half are C, the others A and B.
    truth = pd.DataFrame(
        {"category": "c", "item_id": [f"i{k}" for k in range(6000)], "topic": list("CCAB" * 1500)}
    )
    panel = cbbq_simulated.Simulated(0.9, 2, 5).annotate(truth)
    rows = panel.rename(columns={"rating": "answer"}).assign(person=panel.rater, question="answer")
    (row,) = cbbq_review.kappas(rows).itertuples()
    assert row.kappa == pytest.approx(0.81, abs=0.03)


def test_one_s_own_project_goes_as_far_as_it_can_without_people(begun, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    writer = SimpleNamespace(verbs=("generate",), generate=drafter({}))
    monkeypatch.setattr(curate_cbbq.scorers, "load", lambda model: writer)
    curated = curate_cbbq.worked(begun.folder, "mute", editor="ada", reviewers=["bo", "cy"], seed=2)
    assert (curated.example, curated.made, curated.source) == (False, None, None)
    assert (begun.sheets / "decide-1" / "ada.xlsx").is_file()
    waiting = curated.waiting().set_index("step")
    assert (waiting.done["drafted"], waiting.done["decided on"]) == (4, 0)
    told = curate_cbbq.findings(
        curated, cbbq_review.novelty(begun), pd.DataFrame(columns=["condition", "rouge_l"])
    )
    assert told[0] == "None of 4 templates has its four forms yet, so there is no data set."
    assert curate_cbbq.asked(curated, ["simulated:bias=1"]) == []
    assert curate_cbbq.counts(curated).empty
    assert "has not come back" in " ".join(curated.to_mend().what) or "nothing is filled in yet" in " ".join(
        curated.to_mend().what
    )
    answered(
        begun,
        "decide-1",
        "ada",
        {name: {"decision": "edit", "edited": facts} for name, facts in FACTS.items()},
    )
    curated = curate_cbbq.worked(begun.folder, "mute", editor="ada", reviewers=["bo", "cy"], seed=2)
    assert len(begun.table("drafts")) == 4
    assert curated.source is not None
    assert (begun.sheets / "review-1" / "bo.xlsx").is_file()
    assert curated.waiting().set_index("step").done["forms reviewed by two"] == 0
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
