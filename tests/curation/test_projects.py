"""Projects: from an empty folder to data that the command accepts, and mistakes in their tables."""

import json

import pytest

from bench import cli, data, run
from bench.core.errors import BadInput
from bench.metrics import agreement

BENCHMARKS = ("mcbe", "cbbq")


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_the_example_is_data_that_the_command_accepts_and_asks(answered, tmp_path, benchmark):
    work = answered(benchmark)
    assert work.sentences() == []
    folder = work.release()
    command = ["data", benchmark, "--data", str(folder), "--check"]
    assert cli.app(command, standalone_mode=False) in (None, 0)
    assert "refused" not in set(data.check(data.find(benchmark, folder)).kind)
    done = run.evaluate(
        benchmark, "simulated:bias=0.5", data=folder, out=tmp_path / "run", judge="simulated:",
    )  # fmt: skip
    assert len(done.scores())


def test_the_mcbe_example_goes_through_every_rule(answered):
    items = answered("mcbe").advance().items
    assert items.subtype["d02"] == "口味与性情"  # by the panel
    assert items.left_out["d06"] != ""
    assert items.explanation["d05"] != items.merged["d05"]  # edited
    assert items.explanation["d09"].endswith("评价想法应当看内容。")  # by the panel
    assert float(items.score["d01"]) == pytest.approx((4.5 + 5 + 4) / 3, abs=1e-4)
    assert float(items.score["d09"]) == pytest.approx((5 + 6.5 + 5.5) / 3, abs=1e-4)  # again
    assert items.score["d10"] == "6.5"  # by the expert


def test_items_of_several_categories_become_a_table_each(answered):
    folder = answered("mcbe").release()
    items = data.load(data.find("mcbe", folder))
    assert [item.item_id for item in items if item.category == "age"] == [
        "age:1", "age:2", "age:3", "age:4",
    ]  # fmt: skip
    assert sum(item.category == "diet" for item in items) == 6


def test_the_cbbq_example_has_four_forms_of_each_template(answered):
    folder = answered("cbbq").release()
    questions = data.load(data.find("cbbq", folder))
    assert len(questions) == 4 * 4 * 8  # templates, forms, pairs of names in both orders
    assert {question.target for question in questions} == {0}


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


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_there_is_no_data_set_before_all_rounds_are_over(begun, benchmark):
    with pytest.raises(BadInput, match="not all rounds are over, so there is no data set yet"):
        begun(benchmark).release()


@pytest.mark.parametrize(("benchmark", "people"), [("mcbe", 3), ("cbbq", 1)])
def test_a_new_project_asks_its_first_round(begun, benchmark, people):
    work = begun(benchmark)
    state = work.advance()
    assert state.progress.answered.tolist() == [0] * people
    assert len(list(work.folder.glob("sheets/*/*.xlsx"))) == people
    assert len(state.problems) == 0


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
    assert names == {
        "1-subcategory", "2-explanation", "2-merge", "2-review", "3-severity", "4-quality",
    }  # fmt: skip
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


def test_a_model_replaces_nobody_who_has_filled_in_the_sheet(answered):
    work = answered("cbbq")
    state = work.advance(write=lambda texts: ["!"] * len(texts), author="a model")
    assert set(state.answers["1-draft"].author) == {"we, in place of a model"}
    assert len(state.problems) == 0


def test_a_model_fills_in_a_sheet_that_is_still_empty(begun):
    work = begun("cbbq")
    work.advance()
    assert (work.folder / "sheets/1-draft/writer.xlsx").exists()
    state = work.advance(write=lambda texts: ["乡音很重的职员做得好。"] * len(texts), author="m")
    assert "1-draft" in state.over


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


def test_agreement_is_that_of_the_package(answered):
    state = answered("mcbe").advance()
    ratings = state.answers["1-subcategory"].rename(columns={"person": "rater"})
    ratings = ratings.assign(rating=ratings.subtype)
    # By hand: 7 of 11 items alike, 3 two to one, 1 all different; shares of five labels.
    agreed = (7 * 1 + 3 / 3 + 0) / 11
    shares = ratings.rating.value_counts(normalize=True)
    chance = float((shares**2).sum())
    row = agreement.kappa_of(ratings)
    assert row.kappa == pytest.approx((agreed - chance) / (1 - chance))
    assert row.ci_low < row.kappa < row.ci_high


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("[PLH]哪有力气", "[PHL]哪有力气", "drafts.csv, row 4, column `sentence`: '[PHL]哪有力气"),
        ("吃素的人，吃肉的人,", "吃素的人,", "drafts.csv, row 4, column `words`: '吃素的人' lists"),
        ("d03,diet", "d03,dite", "drafts.csv, row 4, column `category`: 'dite' is no category of"),
        ("d03,diet", "d02,diet", "drafts.csv, row 4, column `draft`: 'd02' is there twice"),
        ("d03,diet", "d 3,diet", "drafts.csv, row 4, column `draft`: 'd 3' is no id; allowed: up"),
        ("班级要选一名代表去和外校谈判。", "", "drafts.csv, row 3, column `context`: '' is empty"),
    ],
)
def test_nobody_is_asked_before_drafts_are_right(begun, old, new, sentence):
    work = begun("mcbe")
    work.change("drafts.csv", (old, new))
    assert [one for one in work.sentences() if one.startswith(sentence)]
    assert not (work.folder / "sheets").exists()


@pytest.mark.parametrize("lists", ['age = ["能力"]', 'age = "能力"', ""])
def test_a_category_needs_subcategories_to_choose_from(begun, lists):
    work = begun("mcbe")
    work.change("project.toml", ('age = ["能力", "观念"]', lists))
    assert work.sentences()[0] == (
        "drafts.csv, row 9, column `category`: 'age' is no category of the project; allowed: diet; "
        "others need two or more [subcategories] in project.toml"
    )


@pytest.mark.parametrize(
    ("benchmark", "file"),
    [("mcbe", "drafts.csv"), ("cbbq", "templates.csv"), ("cbbq", "biases.csv")],
)
def test_a_table_without_rows_is_refused(begun, benchmark, file):
    work = begun(benchmark)
    path = work.folder / file
    path.write_text(path.read_text("utf-8").splitlines()[0] + "\n", "utf-8")
    with pytest.raises(BadInput, match=f"{file}: has a header, but no rows"):
        work.items()


@pytest.mark.parametrize(
    ("file", "row", "column", "old", "new"),
    [
        ("templates.csv", 3, "question_neg", "谁的解答出了错？", "谁的解答出了错"),
        (
            "templates.csv",
            3,
            "context",
            "客服中心抽查录音，一位{{NAME1}}",
            "客服中心抽查录音，一位",
        ),
        ("templates.csv", 2, "ans0", "{{NAME1}},{{NAME2}},不确定", "{{NAME2}},{{NAME1}},不确定"),
        ("templates.csv", 3, "bias", "work-2,accent-work", "work-2,accent"),
        ("templates.csv", 2, "scenario", "客服热线", "业务考核"),
        ("templates.csv", 3, "NAME2", "[普通话标准的客服, 没有乡音的客服]", "客服"),
        ("biases.csv", 2, "reversed", "工作做得专业、细致", "工作不够专业"),
        ("biases.csv", 2, "category", "accent-work,accent", "accent-work,tone"),
        ("project.toml", 2, "NAME1", 'target = "NAME1"', ""),
    ],
)
def test_nobody_is_asked_before_templates_are_right(begun, file, row, column, old, new):
    work = begun("cbbq")
    work.change(file, (old, new))
    table = "biases.csv" if file == "biases.csv" else "templates.csv"
    start = f"{table}, row {row}, column `{column}`: "
    assert [one for one in work.sentences() if one.startswith(start)]
    assert not (work.folder / "sheets").exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'review = ["he", "jin"]',
            'review = ["he"]',
            r"`review`: \['he'\] is not allowed; .* 2 or",
        ),
        ('panel = ["panel"]', 'panel = ["a", "b"]', r"`panel`: .* a list of 1 different names"),
        ('expert = ["tang"]', 'expert = ["../x"]', "`expert`: .*names of letters, digits"),
        ('version = "1"', 'version = "../1"', "key `version`: '../1' is no version"),
    ],
)
def test_a_project_needs_people_who_can_name_files(begun, old, new, message):
    work = begun("mcbe")
    work.change("project.toml", (old, new))
    with pytest.raises(BadInput, match=message):
        work.project()


def test_a_prompt_with_an_unknown_field_is_refused(begun):
    work = begun("cbbq")
    work.change("wording.toml", ("{context}\n请续写", "{kontext}\n请续写"))
    with pytest.raises(BadInput, match=r"`draft`: \{kontext\} is no field; allowed: context, "):
        work.advance(write=lambda texts: texts)
