"""McBE items of one's own: from drafts through all rounds to a data folder that runs; and what is to be discussed on the way."""

import numpy as np
import pandas as pd
import pytest

from bench import data
from bench.core.errors import BadInput
from bench.curate import (
    mcbe,
    mcbe_findings,
    mcbe_rounds,
    mcbe_rules,
    mcbe_simulated,
    mcbe_write,
    provenance,
    sheets,
)
from bench.curate.mcbe_rounds import (
    AGAIN,
    DISCUSSION,
    EXPERT,
    EXPLANATION,
    QUALITY,
    REVIEW,
    SETTLING,
    SEVERITY,
    SUBCATEGORY,
)
from bench.metrics import annotators
from tests.helpers.curating_mcbe import worked

# Simulated people work through all rounds.
pytestmark = pytest.mark.slow

LABELS = ["口味与性情", "素食与荤食", "饮食习惯与教养"]


def table(rows, people):
    return pd.DataFrame(rows, index=[f"d{k:02}" for k in range(1, len(rows) + 1)], columns=people)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A project that went all the way, with something for every round."""
    project = mcbe.copied(tmp_path_factory.mktemp("done"))
    said = {
        (SUBCATEGORY, "an", "d01", "subtype"): LABELS[1],
        (SUBCATEGORY, "bai", "d01", "subtype"): LABELS[1],
        (SUBCATEGORY, "chen", "d01", "subtype"): LABELS[2],
        (SUBCATEGORY, "ding", "d01", "subtype"): LABELS[2],
        (SUBCATEGORY, "an", "d02", "objection"): "不通顺",
        (SUBCATEGORY, "fan", "d02", "objection"): "重复",
        (DISCUSSION, "panel", "d02", "decision"): "leave out",
        (DISCUSSION, "panel", "d02", "reason"): "不通顺",
        (REVIEW, "he", "d03", "verdict"): "reject",
        (REVIEW, "he", "d04", "verdict"): "edit",
        (REVIEW, "he", "d04", "edited"): "改过的解释。",
        (REVIEW, "jin", "d04", "verdict"): "accept",
        (SEVERITY, "an", "d05", "severity"): 0,
        (SEVERITY, "bai", "d05", "severity"): 4,
        (SEVERITY, "*", "d06", "severity"): 3.5,
        (SEVERITY, "an", "d06", "severity"): 0,
        (SEVERITY, "an", "d07", "severity"): 1,
        (SEVERITY, "bai", "d07", "severity"): 9,
        (AGAIN, "an", "d07", "severity"): 1,
        (AGAIN, "bai", "d07", "severity"): 9,
        (EXPERT, "tang", "d07", "severity"): 5.25,
        (QUALITY, "liu", "d05", "natural"): "not sure",
        (QUALITY, "ma", "d05", "natural"): "no",
    }
    return worked(project, said)


def test_a_majority_is_more_than_half_and_objections_are_discussed():
    given = table(
        [["a"] * 3 + ["b"] * 2, ["a", "a", "b", "b", "c"], ["a", "a", "b", "c", "d"], ["b"] * 5],
        list("vwxyz"),
    )
    found = mcbe_rules.majority(given, {"d04": "不好"}).set_index("item_id")
    assert found.chosen.to_dict() == {"d01": "a", "d02": "", "d03": "", "d04": "b"}
    assert found.discuss.to_dict() == {
        "d01": "",
        "d02": "no majority",
        "d03": "no majority",
        "d04": "objection",
    }
    assert found.votes["d02"] == "a 2, b 2, c 1"
    assert found.share["d01"] == pytest.approx(0.6)


def test_what_two_reviewers_make_of_a_merged_text():
    verdicts = table(
        [
            ["accept", "accept"],
            ["accept", "edit"],
            ["edit", "edit"],
            ["edit", "edit"],
            ["reject", "accept"],
            ["edit", "accept"],
            ["accept", "accept"],
        ],
        ["x", "y"],
    )
    edits = {
        ("d02", "y"): "neu",
        ("d03", "x"): "same",
        ("d03", "y"): "same",
        ("d04", "x"): "one",
        ("d04", "y"): "two",
    }
    merged = dict.fromkeys(verdicts.index, "alt") | {"d07": ""}
    found = mcbe_rules.reviewed(verdicts, edits, merged)
    assert list(found.text) == ["alt", "neu", "same", "", "", "", ""]
    assert list(found.how) == ["accepted", "edited", "edited", "", "", "", ""]
    assert list(found.discuss) == [
        "",
        "",
        "",
        "edited otherwise",
        "rejected",
        "edited without a text",
        "the model wrote nothing",
    ]


def test_a_severity_is_the_mean_and_three_and_a_half_is_not_too_wide():
    given = table(
        [
            ["2", "5.5", "3", "3", "4", "4.5"],
            ["2", "5.6", "3", "3", "4", "4"],
            ["6.1", "9.6", "7", "7", "7", "7"],
        ],
        list("uvwxyz"),
    )
    found = mcbe_rules.severities(given)
    assert list(found["mean"]) == pytest.approx([22 / 6, 21.6 / 6, 43.7 / 6])
    assert list(found.again) == [False, True, False]


def test_drafts_become_items_and_every_round_decides_what_is_its_own(done):
    assert done.waits == ""
    assert done.left_out == {"d02": "不通顺"}
    assert len(done.rows) == 11
    assert done.values["subtype"]["d01"].how.startswith("discussion: ")
    assert done.values["subtype"]["d03"].how == f"majority of 5: {LABELS[0]} 5"
    assert done.values["explanation"]["d03"].how == "discussion"
    assert done.values["explanation"]["d04"].value == "改过的解释。"
    assert done.values["explanation"]["d04"].how == "merged by a model, edited"
    # 0 and 4 are too far apart, 0 and 3.5 are not; the first is near 4.9 in the second round.
    assert set(done.sent[AGAIN].sheet.rows.item_id) == {"d05", "d07"}
    assert done.values["score"]["d05"].how == "mean of 6, second round"
    assert float(done.values["score"]["d06"].value) == pytest.approx(17.5 / 6, abs=1e-3)
    assert (done.values["score"]["d07"].value, done.values["score"]["d07"].who) == ("5.25", "tang")
    assert list(done.sent) == [
        SUBCATEGORY,
        DISCUSSION,
        EXPLANATION,
        REVIEW,
        SETTLING,
        SEVERITY,
        AGAIN,
        EXPERT,
        QUALITY,
    ]
    assert done.to_mend().empty


def test_shares_of_the_quality_questions(done):
    found = mcbe_findings.quality(done).set_index("question")
    natural = found.loc["natural"]
    assert (natural.n, natural["items"], natural.people) == (88, 11, 8)
    assert natural.yes == pytest.approx(86 / 88)
    assert (natural.no, natural.not_sure) == pytest.approx((1 / 88, 1 / 88))
    assert natural.ci_low < natural.yes <= natural.ci_high <= 1
    # All say yes: no interval, and a reason.
    assert np.isnan(found.ci_low["fair"])
    assert found.note["fair"]


def test_where_every_value_is_from(done):
    log = provenance.read(done.project.folder)
    of = log[log.item_id == "d07"]
    assert set(of.field) >= {
        "context",
        "sentence",
        "words",
        "subtype",
        "explanation",
        "severity",
        "score",
        "natural",
    }
    rounds = of[of.field == "severity"].groupby("round").size().to_dict()
    assert rounds == {SEVERITY: 6, AGAIN: 6, EXPERT: 1}
    merged = log[log.how == "merged"]
    assert len(merged) == 11
    assert set(merged.model) == {"a writer"}
    assert set(merged.wording) == {done.project.wording["version"]}
    assert (merged.prompt_hash.str.len() == 16).all()
    assert (log[log.how == "answer"].when != "").all()
    # Read again, nothing is said twice.
    assert provenance.add(done.project.folder, mcbe_rounds._log(done)) == 0


def test_an_answer_that_is_changed_has_a_line_of_its_own(tmp_path):
    line = {"item_id": "d01", "field": "severity", "who": "an", "round": SEVERITY, "how": "answer"}
    for value in ("3", "3", "4", "3"):
        provenance.add(tmp_path, [{**line, "value": value, "when": "later"}])
    assert list(provenance.read(tmp_path).value) == ["3", "4", "3"]


def test_a_category_without_groups_needs_neither_slot_nor_words(tmp_path):
    project = mcbe.copied(tmp_path)
    path, manifest = tmp_path / mcbe.DRAFTS, tmp_path / mcbe.MANIFEST
    text = path.read_text("utf-8").replace(
        "[PLH]哪有力气，跑两步就得喘。,吃素的人，吃肉的人,", "只吃素哪有力气。,,"
    )
    path.write_text(text, "utf-8")
    assert mcbe.check(project).column.tolist() == ["words"]
    manifest.write_text(
        manifest.read_text("utf-8").replace("groups = true", "groups = false"), "utf-8"
    )
    project = mcbe.opened(tmp_path)
    assert mcbe.check(project).empty
    folder = mcbe_write.finish(worked(project))
    items = data.load(data.find("mcbe", folder))
    assert [one.words for one in items if one.sentence == "只吃素哪有力气。"] == [()]
    assert not items[0].groups


def test_a_panel_of_known_reliability_has_the_kappa_that_it_must(tmp_path):
    project = mcbe.copied(tmp_path)
    truth = {
        f"d{k:03}": {"subtype": LABELS[k % 3], "explanation": "x", "severity": "5"}
        for k in range(600)
    }
    people = mcbe_simulated.Annotators(truth, reliability=0.8, objects=0)
    question = sheets.Question("subtype", "?", project.subcategories)
    sheet = sheets.Sheet(
        SUBCATEGORY, 1, list(project.people["subcategory"]), [question], pd.DataFrame(), ""
    )
    ratings = pd.DataFrame(
        [
            {
                "category": "diet",
                "item_id": item,
                "rater": person,
                "rating": people._answers(sheet, person, {"item_id": item})["subtype"],
            }
            for item in truth
            for person in sheet.people
        ]
    )
    found = annotators.kappas(ratings).iloc[0]
    assert found.ci_low < 0.64 < found.ci_high
    assert found.ci_high - found.ci_low < 0.12


def test_agreement_and_sentences(done):
    found = mcbe_findings.agreement(done)
    assert list(zip(found.of, found.measure, strict=True)) == [
        ("subcategory", "Fleiss' kappa"),
        ("subcategory", "Krippendorff's alpha (nominal)"),
        ("severity level", "Fleiss' kappa"),
        ("severity level", "Krippendorff's alpha (ordinal)"),
        ("severity", "Krippendorff's alpha (interval)"),
    ]
    told = mcbe_findings.findings(done)
    assert told[0] == (
        "Of 12 drafts 10 had a subcategory by majority and without objection; 1 had no majority and 1 an objection, "
        "and went to a discussion. 1 were left out."
    )
    assert told[2].startswith("Severities of 2 of 11 items lay more than 3.5 apart")
    assert "those of 1 still did" in told[2]


def test_people_may_stop_and_go_on_and_nothing_is_asked_twice(tmp_path):
    project = mcbe.copied(tmp_path)
    first = mcbe_rounds.look(project)
    assert first.waits == "sheet 1-subcategory to be sent"
    assert not project.sheets.exists()
    found = mcbe_rounds.advance(project)
    people = mcbe_simulated.Annotators(
        mcbe_simulated.truth(), reliability=1, objects=0, rejects=0, spread=0
    )
    sheet = found.sent[SUBCATEGORY].sheet
    people.fill_one(found, sheet, "an")
    (project.sheets / SUBCATEGORY / "fan.xlsx").unlink()
    half = mcbe_rounds.advance(project)
    # What is gone is sent again; with one person's answers there is no agreement, with two there is an alpha.
    assert (project.sheets / SUBCATEGORY / "fan.xlsx").exists()
    assert mcbe_findings.agreement(half).empty
    assert half.waits == "48 answers of sheet 1-subcategory"
    with pytest.raises(BadInput, match="is not done; it waits for 48 answers"):
        mcbe_write.finish(half)
    people.fill_one(half, sheet, "fan")
    half = mcbe_rounds.advance(project)
    assert mcbe_findings.agreement(half).measure.tolist() == ["Krippendorff's alpha (nominal)"]
    while people.fill(half):
        half = mcbe_rounds.advance(project)
    # Nobody merges yet; the rest went on.
    assert half.waits == "a model that merges the explanations"
    calls = []

    def write(prompts):
        calls.append(list(prompts))
        return [f"合并\x07 {k}" for k, _ in enumerate(prompts)]

    for _ in range(2):
        found = mcbe_rounds.advance(project, write, "m")
    assert [len(one) for one in calls] == [12]
    assert "爱吃辣的人来" in calls[0][0]
    assert found.merged["d01"]["text"] == "合并  0"
    assert mcbe_rounds.look(mcbe.opened(tmp_path)).waits == "24 answers of sheet 2-review"


def test_what_a_sheet_rests_on_cannot_change_behind_it(tmp_path):
    project = mcbe.copied(tmp_path)
    mcbe_rounds.advance(project)
    path = tmp_path / mcbe.DRAFTS
    path.write_text(path.read_text("utf-8").replace("湘菜馆", "川菜馆"), "utf-8")
    with pytest.raises(BadInput, match="1-subcategory: went out with other rows or texts"):
        mcbe_rounds.advance(project)


@pytest.mark.parametrize(
    ("old", "new", "column", "what"),
    [
        ("[PLH]说话", "他们说话", "sentence", "has no placeholder"),
        ("d03,", "d02,", "draft", "doubled"),
        ("两位同事在茶水间议论新来的组长。", "", "context", "is empty"),
        ("吃素的人，吃肉的人,", "吃素的人,", "words", "lists one word"),
        ("吃素的人，吃肉的人,", "吃素的人，吃素的人,", "words", "names a word twice"),
    ],
)
def test_a_wrong_draft_is_told_with_its_row_and_goes_to_nobody(tmp_path, old, new, column, what):
    project = mcbe.copied(tmp_path)
    path = tmp_path / mcbe.DRAFTS
    path.write_text(path.read_text("utf-8").replace(old, new, 1), "utf-8")
    found = mcbe.check(project)
    assert column in set(found.column)
    assert found.what.str.contains(what).any()
    went = mcbe_rounds.advance(project)
    assert went.waits == f"{len(found)} things in drafts.csv to be mended"
    assert went.to_mend().what.tolist() == found.what.tolist()
    # As a spreadsheet program counts, the header is row 1.
    assert went.to_mend().row.tolist() == (found.row + 1).tolist()
    assert not project.sheets.exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('en = "Diet"', "", r"categories.diet`: a label is missing; expected en = "),
        ("groups = true", 'groups = "yes"', r"categories.diet.groups`: 'yes' is not allowed"),
        ("[categories.diet]", "[other.diet]", r"expected one table \[categories.NAME\]"),
        (
            'review = ["he", "jin"]',
            'review = ["he"]',
            r"people.review`: .* a list of 2 texts or more",
        ),
        ('panel = ["panel"]', 'panel = ["a", "b"]', r"people.panel`: .* a list of one text"),
        ('language = "zh"', "", r"key `language` is missing"),
        ("seed = 1", "seed = -1", r"key `seed`: -1 is not allowed"),
        ('"口味与性情", ', '"leave out", ', r"is what leaves a draft out"),
    ],
)
def test_a_wrong_project_file_is_refused_with_its_key(tmp_path, old, new, message):
    mcbe.copied(tmp_path)
    path = tmp_path / mcbe.MANIFEST
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")
    with pytest.raises(BadInput, match=message):
        mcbe.opened(tmp_path)


def test_mistakes_in_a_sheet_are_listed_and_the_rest_is_kept(tmp_path):
    from bench.analyses import curate_mcbe

    work = curate_mcbe.opened()
    found = work.go_on()
    listed = work.to_mend(found)
    assert set(listed.what.str.split(";").str[0].str.split(",").str[0]) == {
        "the row is missing",
        "is not allowed",
        "is empty",
        "holds a formula instead of a value",
        "its text was changed",
        "the row is there more than once",
        "is a row of bai",
    }
    # The sheet was filled in anew, and all went on to the end.
    assert (found.state().answers == found.state().needed).all()
    assert found.waits == ""
    assert found.to_mend().empty
    assert work.finished(found) == work.finished(found)


def test_six_spoilt_answers_of_one_person_leave_all_others(tmp_path):
    project = mcbe.copied(tmp_path)
    people = mcbe_simulated.Annotators(mcbe_simulated.truth())
    found = mcbe_rounds.advance(project)
    people.fill(found)
    mcbe_simulated.spoil(found, SUBCATEGORY, "an", "bai")
    assert mcbe_rounds.advance(project).state().answers.tolist() == [54]
