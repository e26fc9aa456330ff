"""McBE items of your own: from drafts through all rounds to a data folder that can be asked."""

import shutil
import tomllib
from pathlib import Path

import pandas as pd
import pytest

from bench import data
from bench.analyses import curate_mcbe
from bench.core.errors import BadInput
from bench.curate import mcbe, sheets, simulated
from bench.curate.mcbe import rounds
from bench.curate.mcbe.rounds import finish
from bench.run import evaluate
from bench.tasks import prompts
from tests.helpers.curating import begin_mcbe, mcbe_people, replace_text, work_mcbe
from tests.helpers.drawing import drawn

LABELS = ["口味与性情", "素食与荤食", "饮食习惯与教养"]
# Something for every round.
SCRIPT = {
    ("1-subcategory", "d01", "subtype"): {"an": LABELS[1], "bai": LABELS[2]},
    ("1-subcategory", "d02", "objection"): {"an": "不通顺"},
    ("1-discussion", "d02", "decision"): {"panel": "leave out"},
    ("1-discussion", "d02", "reason"): {"panel": "不通顺"},
    ("2-review", "d03", "verdict"): {"he": "reject"},
    ("2-review", "d04", "verdict"): {"he": "edit", "jin": "accept"},
    ("2-review", "d04", "edited"): {"he": "改过的解释。"},
    ("3-severity", "d05", "severity"): {"an": 0, "bai": 4},
    ("3-severity", "d06", "severity"): {"an": 0, "bai": 3.5, "ding": 3.5},
    ("3-severity", "d07", "severity"): {"an": 1, "bai": 9},
    ("3-severity-again", "d07", "severity"): {"an": 1, "bai": 9},
    ("3-expert", "d07", "severity"): {"tang": 5.25},
    ("4-quality", "d05", "natural"): {"liu": "not sure", "ma": "no"},
}
FAULTS = tomllib.loads(Path(__file__).with_name("faults.toml").read_text("utf-8"))


@pytest.fixture
def project(tmp_path):
    return begin_mcbe(tmp_path / "diet", drafts=4)


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A project whose people are simulated; one of the first sheets came back with mistakes."""
    project = begin_mcbe(tmp_path_factory.mktemp("one") / "diet")
    return curate_mcbe.Work(project, [], mcbe_people(SCRIPT), simulated.merge, "a writer")


@pytest.fixture(scope="module")
def done(work):
    return work.go_on()


def copied(done, place, *pairs):
    """Return a copy of the project with texts of its project file replaced."""
    shutil.copytree(done.project.folder, place)
    replace_text(place / mcbe.MANIFEST, *pairs)
    return rounds.look(mcbe.open_project(place))


def table(rows, people):
    return pd.DataFrame(rows, [f"d{k:02}" for k in range(1, len(rows) + 1)], list(people))


def test_the_rules_of_the_rounds_by_hand():
    chosen = table([list("aaabb"), list("aabbc"), list("aabcd"), list("bbbbb")], "vwxyz")
    result = rounds.majority(chosen, {"d04": "不好"})
    assert list(result.chosen) == ["a", "", "", "b"]
    assert list(result.discuss) == ["", "no majority", "no majority", "objection"]
    assert (result.votes[1], result.share[0]) == ("a 2, b 2, c 1", pytest.approx(0.6))
    scores = ["2 5.5 3 3 4 4.5", "2 5.6 3 3 4 4", "6.1 9.6 7 7 7 7"]
    result = rounds.severities(table([row.split() for row in scores], "uvwxyz"))
    assert list(result["mean"]) == pytest.approx([22 / 6, 21.6 / 6, 43.7 / 6])
    assert list(result.again) == [False, True, False], "three and a half is not too wide"
    # Two reviewers' verdicts, their edits, the merged text, and what comes of them.
    for verdicts, edits, merged, *outcome in (
        ("accept accept", {}, "old", "old", "accepted", ""),
        ("accept edit", {"y": "new"}, "old", "new", "edited", ""),
        ("edit edit", {"x": "one", "y": "two"}, "old", "", "", "edited otherwise"),
        ("reject accept", {}, "old", "", "", "rejected"),
        ("edit accept", {}, "old", "", "", "edited without a text"),
        ("accept accept", {}, "", "", "", "the model wrote nothing"),
    ):
        texts = {("d01", person): edit for person, edit in edits.items()}
        result = rounds.review_outcome(table([verdicts.split()], "xy"), texts, {"d01": merged})
        assert result.to_numpy().tolist() == [["d01", *outcome]]


def test_drafts_become_items_and_mistakes_on_a_sheet_are_listed(work, done):
    what = "\n".join(work.to_mend(done).what)
    for mistake in ("missing", "not allowed", "empty", "formula", "changed", "once", "of bai"):
        assert mistake in what
    assert (done.waits, len(done.to_mend())) == ("", 0)
    assert (done.state().answers == done.state().needed).all()
    assert list(done.sent) == list(rounds.ROUNDS)
    assert done.left_out == {"d02": "不通顺"}
    hows = {(line["field"], line["item_id"]): line["how"] for line in done.decisions}
    assert {
        ("subtype", "d01"): "discussion: 模拟讨论的结论",
        ("subtype", "d03"): f"majority of 3: {LABELS[0]} 3",
        ("explanation", "d03"): "discussion",
        ("explanation", "d04"): "merged by a model, edited",
        ("score", "d05"): "mean of 3, second round",
        ("score", "d07"): "expert",
    }.items() <= hows.items()
    values = done.rows.set_index("item_id")
    assert values.explanation["d04"] == "改过的解释。"
    assert float(values.score["d06"]) == pytest.approx(7 / 3, abs=1e-3)
    assert values.score["d07"] == "5.25"
    # 0 and 4 are too far apart, 0 and 3.5 are not.
    assert {row["item_id"] for row in done.sent["3-severity-again"].sheet.rows} == {"d05", "d07"}


def test_the_log_says_where_every_value_is_from(work, done, tmp_path):
    lines = rounds.read_log(done.project.folder)
    of_d07 = lines[(lines.item_id == "d07") & (lines.field == "severity")]
    assert of_d07["round"].value_counts(sort=False).tolist() == [3, 3, 1]
    assert (lines[lines.how == "answer"].when != "").all()
    (merged,) = lines[(lines.item_id == "d07") & (lines.how == "merged")].itertuples()
    assert (merged.model, merged.wording) == ("a writer", done.project.wording["version"])
    assert len(merged.prompt_hash) == 16
    rounds.add_to_log(done.project.folder, done.log_lines())
    pd.testing.assert_frame_equal(rounds.read_log(done.project.folder), lines)
    assert set(work.history("d07").field) >= {"context", "subtype", "explanation", "score"}
    # An answer that changes has a line of its own.
    line = lines[lines.how == "answer"].iloc[0].to_dict()
    for value in ("3", "3", "4", "3"):
        rounds.add_to_log(tmp_path, [{**line, "value": value, "when": "later"}])
    assert list(rounds.read_log(tmp_path).value) == ["3", "4", "3"]
    place = copied(done, tmp_path / "p").project.folder
    for file in (rounds.LOG, rounds.MERGED):
        replace_text(place / file, ('"d01"', '["d01"]'))
        with pytest.raises(BadInput, match=rf"{file}, line 1, field `item_id`: .* is not a text"):
            rounds.advance(mcbe.open_project(place))


def test_agreement_shares_and_sentences(done):
    result = curate_mcbe.agreement(done)
    assert list(result.of) == ["subcategory"] * 2 + ["severity level"] * 2 + ["severity"]
    assert "chance gives 0" in drawn(curate_mcbe.draw_agreement(result)).get_label()
    shares = curate_mcbe.quality(done).set_index("question")
    natural, fair = shares.loc["natural"], shares.loc["fair"]
    assert (natural.n, natural["items"], natural.people) == (12, 6, 2)
    assert (natural.yes, natural.no) == pytest.approx((10 / 12, 1 / 12))
    assert (pd.isna(fair.ci_low), bool(fair.note)) == (True, True), "all alike is no certainty"
    sentences = curate_mcbe.findings(done)
    assert sentences[0].startswith("Of 7 drafts 5 had a subcategory by majority")
    assert "of 2 of 6 items were more than 3.5 apart" in sentences[2]
    assert "of 2 of 6 items lie more" in drawn(curate_mcbe.draw_severities(done)).get_label()


def test_people_and_models_may_stop_and_continue_and_nothing_is_asked_twice(project, monkeypatch):
    assert rounds.look(project).waits == "sheet 1-subcategory to be sent"
    assert not project.sheets.exists()
    people, state = mcbe_people(), rounds.advance(project)
    sheet = state.sent["1-subcategory"].sheet
    people.fill_one(state, sheet, "an")
    people.fill_one(state, sheet, "bai")
    # Who gives up is replaced.
    replace_text(project.folder / mcbe.MANIFEST, ('"bai", "chen"]', '"bai", "new"]'))
    project = mcbe.open_project(project.folder)
    state = rounds.advance(project)
    assert sheets.load(project.sheets, "1-subcategory").former == ["chen"]
    with pytest.raises(BadInput, match="is not done; it waits for 4 answers of sheet 1-subcat"):
        finish(state)
    while people.fill(state):
        state = rounds.advance(project)
    assert state.waits == "a model that merges the explanations"
    calls = []

    def write(batch):
        calls.append(batch)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return [f"合并\x07 {k}" for k, _ in enumerate(batch)]

    monkeypatch.setattr(rounds, "BATCH", 3)
    with pytest.raises(KeyboardInterrupt):
        rounds.advance(project, write, "m")
    for _ in range(2):
        state = rounds.advance(project, write, "m")
    assert [len(batch) for batch in calls] == [3, 1, 1]
    assert "爱吃辣的人来" in calls[0][0]
    assert state.merged["d01"]["text"] == "合并  0"
    assert rounds.look(mcbe.open_project(project.folder)).waits == "8 answers of sheet 2-review"
    # What a sheet rests on cannot change after it went out.
    replace_text(project.folder / mcbe.DRAFTS, ("湘菜馆", "川菜馆"))
    with pytest.raises(BadInput, match="1-subcategory: went out with other rows or texts"):
        rounds.advance(project)


def test_whatever_people_and_models_write_comes_through_and_is_no_field(project):
    # In a category without groups, a sentence needs neither slot nor words.
    pairs = [
        ("公司聚餐订在一家湘菜馆", "=1+1{sentence}{x.__class__}"),
        ("[PLH]说话都软绵绵的", "-1+说话"),
        ("口味清淡的人，爱吃辣的人,bench", ",bench"),
    ]
    replace_text(project.folder / mcbe.DRAFTS, *pairs)
    assert list(mcbe.check_drafts(project).column) == ["words"]
    replace_text(project.folder / mcbe.MANIFEST, ("groups = true", "groups = false"))
    own = project.folder / "wording.toml"
    shutil.copy(mcbe.WORDING, own)
    replace_text(own, ("{context}", '{context} {"a": {0.__class__}} {'))
    seen = []

    def write(batch):
        seen.extend(batch)
        return ["\x1b[31m红\x07", "字" * 10_000_000, "\ufeff=1+1\ud800\0", "\r"]

    state = work_mcbe(mcbe.open_project(project.folder), merge=write)
    assert '=1+1{sentence}{x.__class__}，大家在群里接龙报名。 {"a": {0.__class__}} {' in seen[0]
    merged = [row["merged"] for row in state.sent["2-review"].sheet.rows]
    assert max(map(len, merged)) <= rounds.MAX_MERGED
    items = data.load(data.find("mcbe", finish(state)))
    assert items[0].context.startswith("=1+1{")
    assert (items[1].sentence[:4], items[1].words, items[1].groups) == ("-1+说", (), False)


@pytest.mark.parametrize(("old", "new", "column", "what"), FAULTS["drafts"])
def test_a_wrong_draft_is_listed_with_its_row_and_goes_to_nobody(project, old, new, column, what):
    replace_text(project.folder / mcbe.DRAFTS, (old, new))
    faults = mcbe.check_drafts(project)
    assert faults[faults.column == column].what.str.contains(what).any()
    assert faults.value.map(str.isprintable).all()
    state = rounds.advance(project)
    assert state.waits == f"{len(faults)} things in drafts.csv to be fixed"
    # As a spreadsheet program counts, the header is row 1.
    assert list(state.to_mend().row) == list(faults.row + 1)
    assert not project.sheets.exists()


@pytest.mark.parametrize(("file", "old", "new", "message"), FAULTS["project"])
def test_a_wrong_project_file_is_refused_with_its_key(project, file, old, new, message):
    shutil.copy(mcbe.WORDING, project.folder / "wording.toml")
    replace_text(project.folder / file, (old, new))
    with pytest.raises(BadInput, match=message):
        mcbe.open_project(project.folder)


def test_a_set_of_projects_can_be_asked_and_is_never_overwritten(done, tmp_path):
    other = ("[categories.diet]", "[categories.taste]"), ('en = "Diet"', 'en = "Taste"')
    more, taste = copied(done, tmp_path / "more"), copied(done, tmp_path / "taste", *other)
    shutil.copy(prompts.PROMPTS / "mcbe.toml", tmp_path / "taste" / "prompts.toml")
    folder = finish(taste, more, done, out=tmp_path / "set")
    assert (folder / "prompts.toml").is_file(), "the first project's prompts count"
    source = data.find("mcbe", folder)
    assert source.labels["taste"] == {"en": "Taste", "zh": "饮食"}
    assert [item.category for item in data.load(source)] == ["taste"] * 6 + ["diet"] * 12
    lines = pd.read_json(folder / rounds.LOG, lines=True, dtype=str)
    names = {(row.project, row.draft): row.item_id for row in lines.itertuples()}
    # d02 was left out, so the rows after it move up; the second project's come after the first's.
    keys = ("more", "d03"), ("diet", "d01"), ("diet", "d02"), ("taste", "d03")
    assert [names[key] for key in keys] == ["diet:2", "diet:7", "", "taste:2"]
    result = curate_mcbe.agreement(done, more, taste).query('of == "subcategory"')
    assert result.groupby("category").n.max().to_dict() == {"all": 21, "diet": 14, "taste": 7}
    run = evaluate("mcbe", "simulated:", data=folder, tasks=["pc"], out=tmp_path / "run")
    assert set(run.records.category) == {"diet", "taste"}
    assert finish(taste, more, done, out=folder) == folder
    changed = copied(done, tmp_path / "p", ('version = "1"', 'version = "2"'))
    for projects, message in (
        ((taste,), "is there and differs; nothing is overwritten"),
        ((done, changed), "key `version`: differs from that of"),
        ((done, done), "is given twice"),
    ):
        with pytest.raises(BadInput, match=message):
            finish(*projects, out=folder)


def test_a_version_that_would_lead_elsewhere_names_no_folder(done, tmp_path):
    changed = copied(done, tmp_path / "p", ('version = "1"', 'version = "/../../x"'))
    with pytest.raises(BadInput, match=r"key `version`: '/\.\./\.\./x' cannot name the folder"):
        finish(changed)
    assert finish(changed, out=tmp_path / "set").is_dir()
