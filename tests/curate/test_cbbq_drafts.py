"""CBBQ templates of one's own: drafts of a model, and what people make of them."""

from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bench.core.errors import BadInput
from bench.curate import cbbq, cbbq_drafts, cbbq_review, cbbq_sheets
from tests.helpers.curating_cbbq import FACTS, accepted, answered, changed, drafter


def test_instructions_hold_the_context_and_the_reversed_property_and_take_turns(begun):
    one = begun.templates()[0]
    prompts = cbbq_drafts.wordings().prompts
    for prompt in prompts.values():
        asked = cbbq_drafts.ask(one, prompt)
        assert "一位乡音很重的职员和一位普通话标准的职员" in asked
        assert one.bias["reversed"] in asked
        assert "{" not in asked
    turns = [
        cbbq_drafts.wording_of("x", draw, 7, list(prompts)) for draw in range(1, len(prompts) + 1)
    ]
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
    path = tmp_path / "wording.toml"
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
        ("{{NAME1}}说对了，\x85{{NAME2}}说错了。", "control character"),
        ("{{NAME1}}说对了，{{NAME2}}说错了。", ""),
    ],
)
def test_facts_have_to_name_both_in_whole_sentences(facts, why):
    found = cbbq_drafts.wrong_facts(facts)
    assert (found == "") if why == "" else why in found


def test_a_reply_is_read_with_slots_for_names_and_without_the_context(begun):
    one = begun.templates()[0]
    reply = f"\n情境：{one.filled(one.cells['context'])}\n评语写明，乡音很重的职员条理清楚，\n普通话标准的职员漏看了数据。 "
    assert (
        cbbq_drafts.read_facts(reply, one) == "评语写明，{{NAME1}}条理清楚，{{NAME2}}漏看了数据。"
    )


@settings(max_examples=20, deadline=None)
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
    row = dict.fromkeys(cbbq.TABLES["templates"], "x") | {
        "NAME1": "[店员]",
        "NAME2": "[老店员, 店员甲]",
    }
    one = cbbq.Scenario(row | {"context": "情境"}, dict.fromkeys(cbbq.TABLES["biases"], "x"), 0)
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
    assert dict(kinds) == {
        "work-1": "as drafted",
        "work-2": "drawn again",
        "knowledge-1": "small edit",
        "knowledge-2": "undecided",
    }
    # Two of so many characters were changed.
    assert found.drafts.set_index("template").distance["knowledge-1"] == pytest.approx(
        2 / len(small)
    )
    (row,) = found.to_mend.itertuples()
    assert (row.item_id, row.what) == ("knowledge-2", "cannot stand: says nothing")
    first = cbbq_drafts.shares(found.drafts).iloc[0]
    assert (first.n, first.usable) == (3, pytest.approx(2 / 3))
    # Wilson, by hand: centre (p + z²/2n) / (1 + z²/n).
    z, n, p = 1.959964, 3, 2 / 3
    arm = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    assert (first.ci_low, first.ci_high) == pytest.approx(
        [(p + z**2 / (2 * n) + sign * arm) / (1 + z**2 / n) for sign in (-1, 1)], abs=1e-5
    )
    assert [one.name for one in cbbq_drafts.pending(begun)] == ["work-2"], (
        "only what is to be drawn again"
    )
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
    answered(
        begun,
        "decide-1",
        "ada",
        {
            "work-1": {"decision": "edit", "edited": four},
            "work-2": {"decision": "edit", "edited": five},
        },
    )
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


def test_a_folder_of_a_sheet_that_was_never_written_stops_nothing(begun):
    """As where the process was killed before the sheet's record was there."""
    cbbq_drafts.draw(begun, drafter({}), "me")
    (begun.sheets / "decide-1").mkdir(parents=True)
    assert cbbq_drafts.decided(begun).facts == {}
    (path,) = cbbq_drafts.hand_out(begun, "ada")
    assert path.is_file()


def test_files_that_are_gone_are_written_again_and_renamed_ones_are_left(begun):
    accepted(begun)
    cbbq_review.hand_out(begun, ["bo", "cy"])
    place = begun.sheets / "review-1"
    (place / "bo.xlsx").rename(place / "bo, done.xlsx")
    cbbq_sheets.resend(begun, "review")
    assert {path.name for path in place.glob("*.xlsx")} == {"bo, done.xlsx", "cy.xlsx"}
    (place / "cy.xlsx").unlink()
    (place / "bo, done.xlsx").rename(place / "bo.xlsx")
    cbbq_sheets.resend(begun, "review")
    assert {path.name for path in place.glob("*.xlsx")} == {"bo.xlsx", "cy.xlsx"}


def test_what_is_to_be_mended_of_a_template_that_was_taken_away_is_gone_too(begun):
    cbbq_drafts.draw(begun, drafter({}), "me")
    cbbq_drafts.hand_out(begun, "ada")
    answered(
        begun,
        "decide-1",
        "ada",
        {name: {"decision": "again"} for name in FACTS if name != "work-1"},
    )
    assert list(cbbq_drafts.decided(begun).to_mend.item_id) == ["work-1"]
    begun.save("templates", begun.table("templates")[1:])
    assert cbbq_drafts.decided(begun).to_mend.empty
