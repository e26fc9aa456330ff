"""CBBQ templates of one's own: two reviewers, how far they agree, and what is new."""

import shutil

import numpy as np
import pandas as pd
import pytest
from openpyxl import load_workbook

from bench import data
from bench.analyses import curate_cbbq
from bench.core.errors import BadInput
from bench.curate import cbbq_discuss, cbbq_drafts, cbbq_review, cbbq_simulated, sheets
from bench.data.cbbq.templates import CONDITIONS
from bench.figures.curate_cbbq import novelty as picture
from bench.metrics import annotators
from tests.helpers.curating_cbbq import accepted, answered, changed, reviewed

# Simulated people work through the rounds.
pytestmark = pytest.mark.slow


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
            "template": f"t{k // 2}",
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
    assert (row.n, row.clusters) == (10, 5)
    assert -1 <= row.ci_low < row.kappa < row.ci_high <= 1
    few = cbbq_review.kappas(pd.DataFrame(rows)[lambda some: some.template != "t4"]).iloc[0]
    assert np.isnan([few.ci_low, few.ci_high]).all()
    assert few.note == "4 clusters of items: an interval needs 5 at least"
    assert row.band == "moderate"
    with pytest.raises(BadInput, match="no form has been answered by two"):
        cbbq_review.kappas(pd.DataFrame(rows[:10]))


def test_the_paper_s_kappas_have_the_bands_that_it_names():
    assert [annotators.band(kappa) for kappa in (0.92, 0.85, 0.69)] == [
        "almost perfect",
        "almost perfect",
        "substantial",
    ]


def test_a_text_that_changed_after_its_review_is_reviewed_again(done):
    assert cbbq_review.hand_out(done, ["x", "y"]) == []
    context = done.table("templates")[0]["context"].replace("单位", "公司")
    changed(done, "templates", 1, context=context)
    found = cbbq_review.reviewed(done)
    assert set(found.waiting.item_id) == {
        f"work-1:{condition}:{polarity}"
        for condition in CONDITIONS
        for polarity in ("neg", "non_neg")
    }
    assert found.answers.template.nunique() == 3
    paths = cbbq_review.hand_out(done, ["x", "y"])
    assert [path.parent.name for path in paths] == ["review-2"] * 2
    assert len(sheets.opened(done.sheets, "review-2").rows) == 4
    assert set(cbbq_review.reviewed(done).waiting.people) == {"x, y"}


def test_a_reviewer_who_gives_up_is_replaced_and_a_whole_review_stays_as_it_is(begun):
    accepted(begun)
    cbbq_review.hand_out(begun, ["bo", "cy"])
    labels = dict(cbbq_review.forms(begun)[["item_id", "label"]].itertuples(index=False))
    right = {
        item: {"answer": "ABC"[label], "asks_the_bias": "yes", "reads_well": "yes"}
        for item, label in labels.items()
    }
    answered(begun, "review-1", "bo", right)
    assert cbbq_review.hand_out(begun, ["bo", "di"]) == []
    assert sheets.opened(begun.sheets, "review-1").people == ["bo", "di"]
    assert set(cbbq_review.reviewed(begun).waiting.people) == {"di"}
    answered(begun, "review-1", "di", right)
    assert cbbq_review.reviewed(begun).waiting.empty
    # Nothing is open, so other names in a later call change nothing.
    assert cbbq_review.hand_out(begun, ["x", "y"]) == []
    assert sheets.opened(begun.sheets, "review-1").people == ["bo", "di"]


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
    page.append(
        [page.cell(4, k).value for k in range(1, page.max_column + 1)]
    )  # one that is doubled
    page.delete_rows(5)  # one that is missing
    book.save(path)
    found = cbbq_review.reviewed(done)
    sheet = sheets.opened(done.sheets, "review-1")
    assert sheet.keys("reviewer 1")[wrong] in set(found.to_mend.item_id)
    assert found.to_mend.what.str.contains("no sheet that is known").any()
    assert found.to_mend.what.str.contains("more than once").any()
    assert found.to_mend.what.str.contains("missing").any()
    given = found.answers[
        (found.answers.question == "answer") & (found.answers.person == "reviewer 1")
    ]
    assert len(given) == 16 - 3
    assert (cbbq_review.kappas(found.answers).n == 13).all()
    assert set(found.waiting.people) == {"reviewer 1"}


def test_objections_are_listed_with_their_notes(done):
    sheet = sheets.opened(done.sheets, "review-1")
    path = done.sheets / "review-1" / "reviewer 2.xlsx"
    said = {"answer": "A", "asks_the_bias": "no", "reads_well": "yes", "note": "=太绕了"}
    sheets.fill(
        path,
        sheet,
        "reviewer 2",
        lambda row: said if row["item_id"] == "work-1:disambiguous:neg" else {},
    )
    found = cbbq_review.objections(cbbq_review.reviewed(done).answers)
    some = found[(found.item_id == "work-1:disambiguous:neg") & (found.person == "reviewer 2")]
    assert sorted(zip(some.question, some.answer, some.expected, some.note, strict=True)) == [
        ("answer", "A", "B", "=太绕了"),
        ("asks_the_bias", "no", "yes", "=太绕了"),
    ]


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
        context=theirs.replace("①", "{{NAME1}}").replace("②", "{{NAME2}}").partition("。")[0]
        + "。",
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
    rows = panel.rename(columns={"rating": "answer"}).assign(
        person=panel.rater, question="answer", template=panel.item_id
    )
    (row,) = cbbq_review.kappas(rows).itertuples()
    assert row.kappa == pytest.approx(0.81, abs=0.03)


def test_whoever_has_not_answered_all_questions_of_a_form_is_waited_for(begun):
    accepted(begun)
    reviewed(begun, bo={"work-1:ambiguous:neg": {"reads_well": None}})
    found = cbbq_review.reviewed(begun)
    assert found.waiting.to_numpy().tolist() == [["work-1:ambiguous:neg", "bo"]]
    (row,) = found.to_mend.itertuples()
    assert (row.person, row.item_id, row.column, row.what) == (
        "bo",
        "work-1:ambiguous:neg",
        "reads_well",
        "is empty",
    )


def test_a_note_that_says_no_is_no_objection(begun):
    accepted(begun)
    reviewed(begun, cy={"work-1:ambiguous:neg": {"note": "no"}})
    found = cbbq_review.reviewed(begun)
    assert (found.answers.answer == "no").sum() == 1
    assert cbbq_review.objections(found.answers).empty


def test_a_copy_or_a_hole_among_the_sheets_stops_nothing(done):
    before = cbbq_review.reviewed(done).answers
    for name in ("review-1 (copy)", "review-2"):
        shutil.copytree(done.sheets / "review-1", done.sheets / name)
    assert cbbq_review.reviewed(done).answers.equals(before)
    shutil.rmtree(done.sheets / "review-2")
    (done.sheets / "review-9").mkdir()
    assert cbbq_review.reviewed(done).waiting.empty
    shutil.move(done.sheets / "review-1", done.sheets / "review-2")
    changed(done, "templates", 1, question_neg="谁的分析得分低？")
    assert {path.parent.name for path in cbbq_review.hand_out(done, ["x", "y"])} == {"review-3"}


def test_a_template_that_was_taken_away_leaves_the_others_as_they_are(done):
    before = cbbq_review.reviewed(done).answers
    done.save("templates", done.table("templates")[1:])
    found = cbbq_review.reviewed(done)
    assert len(found.answers) == len(before[before.template != "work-1"])
    assert found.waiting.empty
    assert found.to_mend.empty
    assert cbbq_drafts.decided(done).to_mend.empty
    assert "work-1" not in cbbq_drafts.decided(done).facts


def test_nothing_is_wrong_with_an_empty_table(begun):
    begun.save("templates", [])
    assert cbbq_review.completeness(begun).empty
    assert cbbq_review.reviewed(begun).answers.empty
    assert cbbq_review.hand_out(begun, ["x", "y"]) == []
    assert cbbq_review.novelty(begun).empty
    assert cbbq_discuss.discussed(begun).standing.empty
    assert cbbq_discuss.hand_out(begun, "panel") == []


def test_answers_stay_when_a_reviewer_s_file_is_renamed_or_others_review_from_now_on(done):
    place = done.sheets / "review-1"
    (place / "reviewer 1.xlsx").rename(place / "from Li.xlsx")
    before = cbbq_review.reviewed(done).answers
    assert len(before[before.question == "answer"]) == 32
    assert cbbq_review.hand_out(done, ["x", "y"]) == []
    changed(done, "templates", 1, question_neg="谁的分析得分低？")
    cbbq_review.hand_out(done, ["x", "y"])
    reviewed(done, sheet="review-2", people=("x", "y"))
    found = cbbq_review.reviewed(done)
    assert found.waiting.empty
    assert sorted(set(found.answers.person)) == ["reviewer 1", "reviewer 2", "x", "y"]
    (row,) = cbbq_review.kappas(found.answers).itertuples()
    assert (row.kappa, row.n, row.raters) == (1, 16, 2)
