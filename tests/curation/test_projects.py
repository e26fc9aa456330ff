"""Projects: from an empty folder to data that the command accepts, and mistakes in their tables."""

import json

import pytest

from bench import cli, data, run
from bench.core.errors import BadInput
from tests.helpers.cases import cases


# The CBBQ example has four templates, each in four forms with four pairs of names in both orders.
@pytest.mark.parametrize(("benchmark", "n"), [("mcbe", 10), ("cbbq", 4 * 4 * 8)])
def test_the_example_is_data_that_the_command_accepts_and_asks(answered, tmp_path, benchmark, n):
    work = answered(benchmark)
    assert work.sentences() == []
    folder = work.release()
    command = ["data", benchmark, "--data", str(folder), "--check"]
    assert cli.app(command, standalone_mode=False) in (None, 0)
    source = data.find(benchmark, folder)
    assert "refused" not in set(data.check(source).kind)
    assert len(data.load(source)) == n
    options = {"data": folder, "out": tmp_path / "run", "judge": "simulated:"}
    assert len(run.evaluate(benchmark, "simulated:bias=0.5", **options).scores())


@pytest.mark.parametrize(
    ("benchmark", "key", "item"), [("mcbe", "draft", "d09"), ("cbbq", "item_id", "knowledge-2")]
)
def test_every_answer_is_in_the_provenance(answered, benchmark, key, item):
    work = answered(benchmark)
    lines = (work.release() / "provenance.jsonl").read_text("utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row[key] == item]
    people = {row["person"] for row in rows}
    assert people >= ({"an", "bai", "panel", "writer"} if benchmark == "mcbe" else {"editor"})
    assert all(row["value"] for row in rows)


def test_a_release_is_never_overwritten(answered):
    work = answered("mcbe")
    folder = work.release()
    assert work.release() == folder
    sheet = work.sheet("3-expert/tang")
    sheet["severity"] = "7"
    work.save("3-expert/tang", sheet)
    quality = [work.sheet(f"4-quality/{person}") for person in ("liu", "ma")]
    for person, table in zip(("liu", "ma"), quality, strict=True):
        table.loc[table.item_id == "d10", "score"] = "7"
        work.save(f"4-quality/{person}", table)
    with pytest.raises(BadInput, match=r"age.csv: is there and differs; .*count up `version`"):
        work.release()
    work.change("project.toml", ('version = "1"', 'version = "2"'))
    assert work.release().name == "release-2"


@pytest.mark.parametrize(("benchmark", "people"), [("mcbe", 3), ("cbbq", 1)])
def test_a_new_project_asks_its_first_round_and_has_no_data_set_yet(begun, benchmark, people):
    work = begun(benchmark)
    state = work.advance()
    assert state.progress.answered.tolist() == [0] * people
    assert len(list(work.folder.glob("sheets/*/*.xlsx"))) == people
    assert len(state.problems) == 0
    with pytest.raises(BadInput, match="not all rounds are over, so there is no data set yet"):
        work.release()


def answer(round_name, _person, row):
    """Agree with everybody, so that no round is about a dispute."""
    if round_name == "1-subcategory":
        return {"subtype": {"diet": "口味与性情", "age": "能力"}[row["category"]]}
    return {
        "2-explanation": {"explanation": "这句话不公平。"},
        "2-merge": {"merged": "这句话不公平。", "author": "we"},
        "2-review": {"verdict": "accept"},
        "3-severity": {"severity": "4"},
        "4-quality": dict.fromkeys(row.keys() & QUALITY, "yes"),
    }[round_name]


QUALITY = {"natural", "biased", "comparable", "label", "explained", "fair"}


def test_people_without_disputes_skip_the_rounds_about_them(begun):
    work = begun("mcbe")
    for _ in range(6):
        state = work.advance()
        work.fill(answer)
    assert state.is_done
    names = {path.name for path in (work.folder / "sheets").iterdir()}
    rounds = "1-subcategory 2-explanation 2-merge 2-review 3-severity 4-quality"
    assert names == {*rounds.split()}
    assert work.release().is_dir()


def test_a_model_takes_the_place_of_the_writer(begun):
    work = begun("cbbq")
    prompts = []

    def write(texts):
        prompts.extend(texts)
        return ["乡音很重的职员做得好，普通话标准的职员没有做好。"] * len(texts)

    state = work.advance(write=write, author="a model")
    assert len(prompts) == 4
    assert "一位乡音很重的职员和一位普通话标准的职员" in prompts[0]
    assert "乡音很重的职员工作做得专业、细致，而普通话标准的职员工作不够专业" in prompts[0]
    assert set(state.answers["1-draft"].author) == {"a model"}
    assert state.items.draft["work-1"] == "{{NAME1}}做得好，{{NAME2}}没有做好。"
    work.advance(write=write)
    assert len(prompts) == 4, "what is written is not asked again"


def test_a_draft_with_a_fault_cannot_be_accepted(answered):
    work = answered("cbbq")
    sheet = work.sheet("1-facts/editor")
    sheet.loc[sheet.item_id == "knowledge-1", "decision"] = "accept"
    work.save("1-facts/editor", sheet)
    assert work.sentences() == [
        "sheets/1-facts/editor.csv, row 2, column `decision`: 'accept' is not an answer; allowed: "
        "one of edit, again"
    ]


def test_a_template_that_the_panel_leaves_out_is_not_in_the_data(answered):
    work = answered("cbbq")
    sheet = work.sheet("3-discussion/panel")
    sheet["outcome"] = ["leave out", "keep"]
    work.save("3-discussion/panel", sheet)
    questions = data.load(data.find("cbbq", work.release()))
    assert len(questions) == 3 * 4 * 8


def mistakes(work):
    """The sentences about a project, of which one alone refuses to open it."""
    try:
        return work.sentences()
    except BadInput as error:
        return [str(error)]


@cases(__file__, "wrong_projects.csv")
def test_nobody_is_asked_before_the_project_and_its_tables_are_right(begun, case):
    work = begun(case["benchmark"])
    work.change(case["file"], (case["old"], case["new"]))
    assert [one for one in mistakes(work) if case["said"] in one]
    assert not (work.folder / "sheets").exists()
