"""Projects: from an empty folder to data that the command accepts, and mistakes in their tables."""

from pathlib import Path

import pandas as pd
import pytest

from bench import cli, run
from bench.core.errors import BadInput
from tests.curation.conftest import mcbe_items
from tests.helpers.cases import cases


def tables(folder):
    return {path.relative_to(folder): path.read_text("utf-8") for path in folder.rglob("*.csv")}


@pytest.mark.parametrize("benchmark", ["mcbe", "cbbq"])
def test_the_example_is_data_that_the_command_accepts_and_asks(begin, tmp_path, benchmark):
    work = begin(benchmark, answered=True)
    assert work.advance().problems == []
    folder = work.release()
    assert tables(folder) == tables(Path(__file__).parent / "released" / benchmark)
    command = ["data", benchmark, "--data", str(folder), "--check"]
    assert cli.app(command, standalone_mode=False) in (None, 0)
    options = {"data": folder, "out": tmp_path / "run", "judge": "simulated:"}
    assert len(run.evaluate(benchmark, "simulated:bias=0.5", **options).scores())


def test_the_reasons_of_a_discussion_are_given(begin):
    reasons = begin("mcbe", answered=True).advance().items.discuss
    assert reasons[reasons != ""].to_dict() == {"d02": "no majority", "d06": "objection"}


@pytest.mark.parametrize(
    ("benchmark", "column", "item", "people"),
    [
        ("mcbe", "draft", "d09", {"an", "bai", "panel", "writer"}),
        ("cbbq", "item_id", "knowledge-2", {"editor", "panel", "writer"}),
    ],
)
def test_every_answer_is_in_the_provenance(begin, benchmark, column, item, people):
    path = begin(benchmark, answered=True).release() / "provenance.jsonl"
    table = pd.read_json(path, lines=True, dtype=False)
    answers = table[table[column] == item]
    assert {*answers.person} >= people
    assert answers.value.astype(bool).all()


def test_a_release_is_never_overwritten(begin):
    work = begin("mcbe", answered=True)
    folder = work.release()
    assert work.release() == folder
    work.change("project.toml", 'licence = "', 'licence = "not ')
    with pytest.raises(BadInput, match=r"dataset.toml: is there and differs; .*count up `version`"):
        work.release()
    work.change("project.toml", 'version = "1"', 'version = "2"')
    assert work.release().name == "release-2"


def answer(round_name, row):
    """Agree with everybody, so that no round is about a dispute."""
    return {
        "1-subcategory": {"subtype": {"diet": "口味与性情", "age": "能力"}[row["category"]]},
        "2-explanation": {"explanation": "这句话不公平。"},
        "2-merge": {"merged": "这句话不公平。", "author": "we"},
        "2-review": {"verdict": "accept"},
        "3-severity": {"severity": "4"},
        "4-quality": dict.fromkeys(mcbe_items.QUALITY, "yes"),
    }[round_name]


def test_people_without_disputes_skip_the_rounds_about_them(begin):
    work = begin("mcbe")
    assert work.advance().progress.answered.tolist() == [0, 0, 0]
    with pytest.raises(BadInput, match="not all rounds are over, so there is no data set yet"):
        work.release()
    for _ in range(6):
        work.fill(answer)
        state = work.advance()
    assert state.is_done
    rounds = "1-subcategory 2-explanation 2-merge 2-review 3-severity 4-quality"
    assert {path.name for path in (work.folder / "sheets").iterdir()} == {*rounds.split()}
    assert work.release().is_dir()


def test_a_model_takes_the_place_of_the_writer(begin):
    work = begin("cbbq")
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


def test_a_template_that_the_panel_leaves_out_is_not_in_the_data(begin):
    work = begin("cbbq", answered=True)
    work.answer("3-discussion/panel", 0, "outcome", "leave out")
    for text in tables(work.release()).values():
        assert len(text.splitlines()) == 1 + 3


@cases(__file__, "wrong_projects.csv")
def test_nobody_is_asked_before_the_project_and_its_tables_are_right(begin, case):
    work = begin(case["benchmark"])
    work.change(case["file"], case["old"], case["new"])
    try:
        problems = work.advance().problems
    except BadInput as error:  # the project cannot be opened
        problems = [str(error)]
    assert [one for one in problems if case["said"] in one]
    assert not (work.folder / "sheets").exists()
