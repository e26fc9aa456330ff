"""McBE items of your own: from drafts through all rounds to a data folder that can be asked."""

import shutil

import numpy as np
import pandas as pd
import pytest

from bench import data
from bench.analyses import curate_mcbe
from bench.core.errors import BadInput
from bench.core.i18n import use_language
from bench.curate import copy_example, mcbe, sheets, simulated
from bench.curate.mcbe import rounds
from bench.curate.mcbe.rounds import (
    AGAIN,
    DISCUSSION,
    EXPERT,
    QUALITY,
    REVIEW,
    SEVERITY,
    SUBCATEGORY,
    finish,
)
from bench.metrics import agreement
from bench.tasks import prompts
from tests.helpers.curating import replace_text, work_mcbe
from tests.helpers.drawing import drawn, ticks

LABELS = ["口味与性情", "素食与荤食", "饮食习惯与教养"]
# Something for every round.
SCRIPT = {
    **{(SUBCATEGORY, who, "d01", "subtype"): LABELS[1] for who in ("an", "bai")},
    **{(SUBCATEGORY, who, "d01", "subtype"): LABELS[2] for who in ("chen", "ding")},
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
    **{(name, "an", "d07", "severity"): 1 for name in (SEVERITY, AGAIN)},
    **{(name, "bai", "d07", "severity"): 9 for name in (SEVERITY, AGAIN)},
    (EXPERT, "tang", "d07", "severity"): 5.25,
    (QUALITY, "liu", "d05", "natural"): "not sure",
    (QUALITY, "ma", "d05", "natural"): "no",
}


def begin(folder, *pairs):
    """Copy the example, with texts of its project file replaced."""
    copy_example("mcbe", folder)
    replace_text(folder / mcbe.MANIFEST, *pairs)
    return mcbe.open_project(folder)


@pytest.fixture
def project(tmp_path):
    return begin(tmp_path / "diet")


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A project that went through all rounds."""
    return work_mcbe(begin(tmp_path_factory.mktemp("one") / "diet"), SCRIPT)


@pytest.fixture(scope="module")
def batch(tmp_path_factory):
    """Another batch of the same category: other people, and one draft less."""
    place = tmp_path_factory.mktemp("two") / "more"
    people = '"an", "bai", "chen", "ding", "fan"', '"v", "w", "x", "y", "z"'
    project = begin(place, people)
    lines = (place / mcbe.DRAFTS).read_text("utf-8").splitlines()
    (place / mcbe.DRAFTS).write_text("\n".join([lines[0], *lines[2:]]) + "\n", "utf-8")
    return work_mcbe(project)


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """Another category of the same set."""
    place = tmp_path_factory.mktemp("three") / "taste"
    category = ("[categories.diet]", "[categories.taste]"), ('en = "Diet"', 'en = "Taste"')
    return work_mcbe(begin(place, *category))


def table(rows, people):
    return pd.DataFrame(rows, [f"d{k:02}" for k in range(1, len(rows) + 1)], list(people))


def provenance_of(folder):
    return pd.read_json(folder / rounds.LOG, lines=True, dtype=str)


def test_a_majority_is_more_than_half_and_objections_are_discussed():
    chosen = table([list("aaabb"), list("aabbc"), list("aabcd"), list("bbbbb")], "vwxyz")
    result = rounds.majority(chosen, {"d04": "不好"})
    assert list(result.chosen) == ["a", "", "", "b"]
    assert list(result.discuss) == ["", "no majority", "no majority", "objection"]
    assert result.votes[1] == "a 2, b 2, c 1"
    assert result.share[0] == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("verdicts", "edits", "merged", "text", "how", "discuss"),
    [
        (("accept", "accept"), {}, "old", "old", "accepted", ""),
        (("accept", "edit"), {"y": "new"}, "old", "new", "edited", ""),
        (("edit", "edit"), {"x": "same", "y": "same"}, "old", "same", "edited", ""),
        (("edit", "edit"), {"x": "one", "y": "two"}, "old", "", "", "edited otherwise"),
        (("reject", "accept"), {}, "old", "", "", "rejected"),
        (("edit", "accept"), {}, "old", "", "", "edited without a text"),
        (("accept", "accept"), {}, "", "", "", "the model wrote nothing"),
    ],
)
def test_what_two_reviewers_make_of_a_merged_text(verdicts, edits, merged, text, how, discuss):
    by_person = {("d01", person): edit for person, edit in edits.items()}
    result = rounds.review_outcome(table([verdicts], "xy"), by_person, {"d01": merged})
    assert result.to_numpy().tolist() == [["d01", text, how, discuss]]


def test_a_severity_is_the_mean_and_three_and_a_half_is_not_too_wide():
    scores = [
        ["2", "5.5", "3", "3", "4", "4.5"],
        ["2", "5.6", "3", "3", "4", "4"],
        ["6.1", "9.6", "7", "7", "7", "7"],
    ]
    result = rounds.severities(table(scores, "uvwxyz"))
    assert list(result["mean"]) == pytest.approx([22 / 6, 21.6 / 6, 43.7 / 6])
    assert list(result.again) == [False, True, False]


@pytest.mark.slow
def test_drafts_become_items_and_every_round_decides_what_is_its_own(done):
    assert done.waits == ""
    assert done.left_out == {"d02": "不通顺"}
    assert len(done.rows) == 11
    assert list(done.sent) == list(rounds.ROUNDS)
    assert done.to_mend().empty
    assert (done.state().answers == done.state().needed).all()
    decided = pd.DataFrame(done.decisions).set_index(["field", "item_id"])
    hows = decided.how.to_dict()
    assert hows["subtype", "d01"].startswith("discussion: ")
    assert hows["subtype", "d03"] == f"majority of 5: {LABELS[0]} 5"
    assert hows["explanation", "d03"] == "discussion"
    assert hows["explanation", "d04"] == "merged by a model, edited"
    assert hows["score", "d05"] == "mean of 6, second round"
    values = done.rows.set_index("item_id")
    assert values.explanation["d04"] == "改过的解释。"
    assert float(values.score["d06"]) == pytest.approx(17.5 / 6, abs=1e-3)
    assert (values.score["d07"], decided.who["score", "d07"]) == ("5.25", "tang")
    # 0 and 4 are too far apart, 0 and 3.5 are not.
    assert {row["item_id"] for row in done.sent[AGAIN].sheet.rows} == {"d05", "d07"}


@pytest.mark.slow
def test_the_log_says_where_every_value_is_from(done):
    lines = rounds.read_log(done.project.folder)
    of_d07 = lines[lines.item_id == "d07"]
    fields = {"context", "sentence", "words", "subtype", "explanation", "severity", "score"}
    assert set(of_d07.field) >= fields | {"natural"}
    counts = of_d07[of_d07.field == "severity"].groupby("round").size().to_dict()
    assert counts == {SEVERITY: 6, AGAIN: 6, EXPERT: 1}
    merged = lines[lines.how == "merged"]
    assert len(merged) == 11
    assert set(merged.model) == {"a writer"}
    assert set(merged.wording) == {done.project.wording["version"]}
    assert (merged.prompt_hash.str.len() == 16).all()
    assert (lines[lines.how == "answer"].when != "").all()
    rounds.add_to_log(done.project.folder, done.log_lines())
    pd.testing.assert_frame_equal(rounds.read_log(done.project.folder), lines)


def test_an_answer_that_changes_has_a_line_of_its_own(tmp_path):
    line = {"item_id": "d01", "field": "severity", "who": "an", "round": SEVERITY, "how": "answer"}
    for value in ("3", "3", "4", "3"):
        rounds.add_to_log(tmp_path, [{**line, "value": value, "when": "later"}])
    assert list(rounds.read_log(tmp_path).value) == ["3", "4", "3"]
    (tmp_path / rounds.LOG).write_text('{"item_id": "d1"}\n{"item_id": ["d2"]}\n')
    with pytest.raises(BadInput, match=r"line 2, field `item_id`: \['d2'\] is not a text"):
        rounds.read_log(tmp_path)


@pytest.mark.slow
def test_agreement_shares_and_sentences(done):
    result = curate_mcbe.agreement(done)
    assert list(zip(result.of, result.measure, strict=True)) == [
        ("subcategory", "Fleiss' kappa"),
        ("subcategory", "Krippendorff's alpha (nominal)"),
        ("severity level", "Fleiss' kappa"),
        ("severity level", "Krippendorff's alpha (ordinal)"),
        ("severity", "Krippendorff's alpha (interval)"),
    ]
    shares = curate_mcbe.quality(done).set_index("question")
    natural, fair = shares.loc["natural"], shares.loc["fair"]
    assert (natural.n, natural["items"], natural.people) == (88, 11, 8)
    assert (natural.yes, natural.no) == pytest.approx((86 / 88, 1 / 88))
    assert natural.ci_low < natural.yes <= natural.ci_high <= 1
    assert np.isnan(fair.ci_low), "all say yes, which is no certainty"
    assert fair.note
    sentences = curate_mcbe.findings(done)
    assert sentences[0].startswith("Of 12 drafts 10 had a subcategory by majority")
    assert "1 had no majority and 1 an objection" in sentences[0]
    assert "of 2 of 11 items were more than 3.5 apart" in sentences[2]
    assert "1 still were" in sentences[2]
    figure = drawn(curate_mcbe.draw_severities(done))
    assert "Severities of 2 of 11 items lie more than 3.5 apart" in figure.get_label()
    assert len(figure.axes[0].get_yticklabels()) == 11


@pytest.mark.slow
def test_agreement_over_projects_counts_each_item_once(done, batch, other):
    result = curate_mcbe.agreement(done, batch, other)
    kappas = result[(result.of == "subcategory") & (result.measure == "Fleiss' kappa")]
    assert kappas.set_index("category").n.to_dict() == {"all": 35, "diet": 23, "taste": 12}


def test_agreement_is_drawn_with_categories_and_without_undefined_numbers():
    row = {"of": "severity", "measure": "Krippendorff's alpha (interval)", "value": 0.5}
    row |= {"ci_low": 0.2, "ci_high": 0.7}
    undefined = {"category": "a", "of": "subcategory", "measure": "Fleiss' kappa"}
    rows = pd.DataFrame([row | {"category": "a"}, row | {"category": "b"}, undefined])
    figure = drawn(curate_mcbe.draw_agreement(rows))
    assert [text.get_text() for text in figure.axes[0].texts] == ["undefined"]
    names = ticks(figure.axes[0].get_yticklabels())
    assert names[0] == "a, severities as numbers: Krippendorff's alpha (interval)"
    assert "Agreement is 0.50; chance gives 0" in figure.get_label()
    assert curate_mcbe.draw_agreement(rows[:0]) is None
    with use_language("zh"):
        assert "一致性" in curate_mcbe.draw_agreement(rows).get_label()


@pytest.mark.slow
def test_people_and_models_may_stop_and_continue_and_nothing_is_asked_twice(project, monkeypatch):
    first = rounds.look(project)
    assert first.waits == "sheet 1-subcategory to be sent"
    assert not project.sheets.exists()
    truth = simulated.mcbe_truth()
    people = simulated.Annotators(truth, reliability=1, objects=0, rejects=0, spread=0)
    state = rounds.advance(project)
    sheet = state.sent[SUBCATEGORY].sheet
    people.fill_one(state, sheet, "an")
    (project.sheets / SUBCATEGORY / "fan.xlsx").unlink()
    state = rounds.advance(project)
    # What is lost is sent again; agreement needs two people.
    assert (project.sheets / SUBCATEGORY / "fan.xlsx").exists()
    assert curate_mcbe.agreement(state).empty
    assert state.waits == "48 answers of sheet 1-subcategory"
    with pytest.raises(BadInput, match="is not done; it waits for 48 answers"):
        finish(state)
    people.fill_one(state, sheet, "fan")
    state = rounds.advance(project)
    assert list(curate_mcbe.agreement(state).measure) == ["Krippendorff's alpha (nominal)"]
    while people.fill(state):
        state = rounds.advance(project)
    assert state.waits == "a model that merges the explanations"
    calls = []

    def write(batch):
        if len(calls) == 1:
            calls.append([])
            raise KeyboardInterrupt
        calls.append(batch)
        return [f"合并\x07 {k}" for k, _ in enumerate(batch)]

    monkeypatch.setattr(rounds, "BATCH", 5)
    with pytest.raises(KeyboardInterrupt):
        rounds.advance(project, write, "m")
    for _ in range(2):
        state = rounds.advance(project, write, "m")
    assert [len(batch) for batch in calls] == [5, 0, 5, 2]
    assert "爱吃辣的人来" in calls[0][0]
    assert state.merged["d01"]["text"] == "合并  0"
    assert rounds.look(mcbe.open_project(project.folder)).waits == "24 answers of sheet 2-review"


def test_who_gives_up_is_replaced_in_the_project_file(project):
    people = simulated.Annotators(simulated.mcbe_truth(), reliability=1, objects=0)
    state = rounds.advance(project)
    for person in ("an", "bai", "chen", "ding"):
        people.fill_one(state, state.sent[SUBCATEGORY].sheet, person)
    replace_text(project.folder / mcbe.MANIFEST, ('"ding", "fan"]', '"ding", "new"]'))
    project = mcbe.open_project(project.folder)
    state = rounds.advance(project)
    assert (project.sheets / SUBCATEGORY / "new.xlsx").exists()
    people.fill_one(state, state.sent[SUBCATEGORY].sheet, "new")
    assert SEVERITY in rounds.advance(project).sent
    assert sheets.load(project.sheets, SUBCATEGORY).former == ["fan"]
    # What a sheet rests on cannot change after it went out.
    replace_text(project.folder / mcbe.DRAFTS, ("湘菜馆", "川菜馆"))
    with pytest.raises(BadInput, match="1-subcategory: went out with other rows or texts"):
        rounds.advance(project)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cut", "message"),
    [
        (lambda text: text[:-60], r"line 11: not JSON \(Unterminated string"),
        (lambda text: text.replace('"when"', '"then"', 1), "line 1: expected texts item_id, text"),
        (lambda text: text.replace('"d02"', '["d02"]', 1), "line 1: expected texts"),
    ],
)
def test_a_corrupted_merged_text_is_refused_with_its_line(batch, tmp_path, cut, message):
    shutil.copytree(batch.project.folder, tmp_path / "p")
    path = tmp_path / "p" / rounds.MERGED
    path.write_text(cut(path.read_text("utf-8")), "utf-8")
    with pytest.raises(BadInput, match=message):
        rounds.look(mcbe.open_project(tmp_path / "p"))


@pytest.mark.slow
def test_whatever_people_and_models_write_comes_through_and_is_no_field(project):
    pairs = [
        ("公司聚餐订在一家湘菜馆", "=1+1{sentence}{x.__class__}"),
        ("班级要选", "@SUM(班级"),
        ("[PLH]说话", "-1+[PLH]"),
        ("别叫[PLH]", "＝＋[PLH]"),
    ]
    replace_text(project.folder / mcbe.DRAFTS, *pairs)
    own = project.folder / "wording.toml"
    shutil.copy(mcbe.WORDING, own)
    replace_text(own, ("{context}", '{context} {"a": {0.__class__}} {'))
    replies = ["\x1b[31m红\x07", "字" * 10_000_000, "\ud800", "\ufeff=1+1", "\0\uffff", "", "\r"]
    seen = []

    def write(batch):
        seen.extend(batch)
        return [replies[k % len(replies)] for k, _ in enumerate(batch)]

    state = work_mcbe(mcbe.open_project(project.folder), merge=write)
    assert '=1+1{sentence}{x.__class__}，大家在群里接龙报名。 {"a": {0.__class__}} {' in seen[0]
    merged = [row["merged"] for row in state.sent[REVIEW].sheet.rows]
    assert max(map(len, merged)) <= rounds.MAX_MERGED
    items = data.load(data.find("mcbe", finish(state)))
    assert [item.context[:5] for item in items[:2]] == ["=1+1{", "@SUM("]
    assert {"＝＋[PL", "-1+[P"} & {item.sentence[:5] for item in items}


@pytest.mark.parametrize(
    ("old", "new", "column", "what"),
    [
        ("[PLH]说话", "他们说话", "sentence", "has no placeholder"),
        ("d03,", "d02,", "draft", "doubled"),
        ("两位同事在茶水间议论新来的组长。", "", "context", "is empty"),
        ("吃素的人，吃肉的人,", "吃素的人,", "words", "lists one word"),
        ("吃素的人，吃肉的人,", "吃素的人，吃素的人,", "words", "names a word twice"),
        *(("公司聚餐", text, "context", "") for text in ("\ufeff公司", "公\x85司", "公\uffff司")),
    ],
)
def test_a_wrong_draft_is_listed_with_its_row_and_goes_to_nobody(project, old, new, column, what):
    path = project.folder / mcbe.DRAFTS
    path.write_text(path.read_text("utf-8").replace(old, new, 1), "utf-8")
    faults = mcbe.check_drafts(project)
    assert column in set(faults.column)
    assert faults.what.str.contains(what).any()
    assert faults.value.map(str.isprintable).all()
    state = rounds.advance(project)
    assert state.waits == f"{len(faults)} things in drafts.csv to be fixed"
    # As a spreadsheet program counts, the header is row 1.
    assert list(state.to_mend().row) == list(faults.row + 1)
    assert not project.sheets.exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('en = "Diet"', "", r"categories.diet`: a label is missing; expected en = "),
        ("groups = true", 'groups = "yes"', r"categories.diet.groups`: 'yes' is not allowed"),
        ("[categories.diet]", "[other.diet]", "key `categories`: Field required"),
        ('"he", "jin"]', '"he"]', "key `people.review`: .* at least 2 items"),
        ('panel = ["panel"]', 'panel = ["a", "b"]', "key `people.panel`: .* at most 1 item"),
        ('language = "zh"', "", "key `language` is missing"),
        ("seed = 1", "seed = -1", "key `seed`: Input should be greater than or equal to 0"),
        ('"口味与性情", ', '"leave out", ', "is the answer that leaves a draft out"),
        *(
            ('"an", "chen", "gao"', f'"an", "{name}", "gao"', "key `people.explanation")
            for name in ("../x", "con", "a" * 70, "x.", "\\u001b[31m", "AN")
        ),
    ],
)
def test_a_wrong_project_file_is_refused_with_its_key(project, old, new, message):
    replace_text(project.folder / mcbe.MANIFEST, (old, new))
    with pytest.raises(BadInput, match=message):
        mcbe.open_project(project.folder)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('version = "bench-curate-mcbe-1"', "", r"expected `version = "),
        ("{explanations}", "{others}", r"table \[merge\], `prompt`: expected the fields"),
        ("{context}", "{context!r}", r"table \[merge\], `prompt`: expected the fields"),
        ('severity = "偏', 'serious = "偏', r"table \[asked\], `severity`: is missing"),
        ('reason = "', 'reason = "\\u001b', r"table \[asked\], `reason`: holds a control"),
        ("[quality]", "[questions]", r"table \[quality\]: expected questions"),
        *(
            ("natural = ", f'"{name}" = ', rf"\[quality\]: '{name}' cannot be a question's name")
            for name in ("context", "", "x ")
        ),
    ],
)
def test_a_wrong_wording_is_refused_with_its_table(project, old, new, message):
    own = project.folder / "wording.toml"
    shutil.copy(mcbe.WORDING, own)
    replace_text(own, (old, new))
    with pytest.raises(BadInput, match=message):
        mcbe.open_project(project.folder)


@pytest.mark.slow
def test_the_finished_set_can_be_asked_and_is_never_overwritten(done, tmp_path):
    from bench.run import evaluate

    folder = finish(done, out=tmp_path / "out")
    source = data.find("mcbe", folder)
    items = data.load(source)
    assert (source.name, source.version) == ("McBE example: diet", "1")
    assert source.labels["diet"] == {"en": "Diet", "zh": "饮食"}
    assert len(items) == 11
    assert {item.subtype for item in items} == {*done.project.subcategories}
    lines = provenance_of(folder)
    names = dict(zip(lines.draft, lines.item_id, strict=True))
    # d02 was left out, so the rows after it move up.
    assert (names["d01"], names["d02"], names["d03"]) == ("diet:1", "", "diet:2")
    model, tasks = "simulated:bias=0.7,seed=1", ["pc", "ss"]
    scores = evaluate("mcbe", model, data=folder, tasks=tasks, out=tmp_path / "run").scores()
    assert set(scores.category) == {"diet", "all"}
    assert finish(done, out=tmp_path / "out") == folder
    path = folder / "diet.csv"
    path.write_bytes(path.read_text("utf-8").encode("utf-8-sig"))
    with pytest.raises(BadInput, match=r"diet.csv: is there and differs; nothing is overwritten"):
        finish(done, out=tmp_path / "out")


@pytest.mark.slow
def test_a_set_of_projects_has_their_categories_and_batches(done, batch, other, tmp_path):
    folder = finish(done, batch, other, out=tmp_path / "set")
    items = data.load(data.find("mcbe", folder))
    categories = pd.Series([item.category for item in items]).value_counts()
    assert categories.to_dict() == {"diet": 22, "taste": 12}
    lines = provenance_of(folder)
    names = {(row.project, row.draft): row.item_id for row in lines.itertuples()}
    # Eleven of the first project, then the second's; its first draft is d02.
    keys = ("diet", "d12"), ("more", "d02"), ("taste", "d02")
    assert [names[key] for key in keys] == ["diet:11", "diet:12", "taste:2"]
    sentence = batch.project.drafts.set_index("draft").sentence["d02"]
    assert {item.item_id: item.sentence for item in items}["diet:12"] == sentence


@pytest.mark.slow
def test_projects_that_differ_in_what_they_say_of_the_set_are_refused(done, other, tmp_path):
    place = tmp_path / "p"
    shutil.copytree(other.project.folder, place)
    replace_text(place / mcbe.MANIFEST, ('version = "1"', 'version = "2"'))
    changed = rounds.look(mcbe.open_project(place))
    begun = rounds.look(begin(tmp_path / "begun"))
    for projects, message in (
        ((done, changed), "key `version`: differs from that of"),
        ((done, done), "is given twice"),
        ((done, begun), "begun: is not done; it waits for sheet 1-subcategory to be sent"),
    ):
        with pytest.raises(BadInput, match=message):
            finish(*projects, out=tmp_path / "set")
    assert not (tmp_path / "set").exists()
    shutil.copy(prompts.PROMPTS / "mcbe.toml", place / "prompts.toml")
    replace_text(place / "prompts.toml", ('version = "bench-mcbe-3"', 'version = "mine-1"'))
    assert prompts.load("mcbe", data=finish(changed)).version == "mine-1"


@pytest.mark.slow
def test_a_category_without_groups_needs_neither_slot_nor_words(project):
    pair = "[PLH]哪有力气，跑两步就得喘。,吃素的人，吃肉的人,", "只吃素哪有力气。,,"
    replace_text(project.folder / mcbe.DRAFTS, pair)
    assert list(mcbe.check_drafts(project).column) == ["words"]
    replace_text(project.folder / mcbe.MANIFEST, ("groups = true", "groups = false"))
    project = mcbe.open_project(project.folder)
    assert mcbe.check_drafts(project).empty
    items = data.load(data.find("mcbe", finish(work_mcbe(project))))
    assert [item.words for item in items if item.sentence == "只吃素哪有力气。"] == [()]
    assert not items[0].groups


def test_simulated_annotators_have_the_kappa_that_they_must(project):
    truth = {
        f"d{k:03}": {"subtype": LABELS[k % 3], "explanation": "x", "severity": "5"}
        for k in range(600)
    }
    people = simulated.Annotators(truth, reliability=0.8, objects=0)
    questions = [sheets.Question("subtype", "?", project.subcategories)]
    rows = [{"item_id": item} for item in truth]
    names = list(project.people["subcategory"])
    sheet = sheets.Sheet(SUBCATEGORY, 1, names, questions, rows, "")
    answers = [
        ("diet", item, person, people.answers(sheet, person, {"item_id": item})["subtype"])
        for item in truth
        for person in names
    ]
    ratings = pd.DataFrame(answers, columns=["category", "item_id", "rater", "rating"])
    (row,) = agreement.kappas(ratings).itertuples()
    assert row.ci_low < 0.64 < row.ci_high
    assert row.ci_high - row.ci_low < 0.12


@pytest.mark.slow
def test_the_example_lists_mistakes_of_a_sheet_and_goes_on_to_the_end():
    work = curate_mcbe.open_project()
    state = work.go_on()
    listed = work.to_mend(state)
    assert {what.partition(";")[0].partition(",")[0] for what in listed.what} == {
        "the row is missing",
        "is not allowed",
        "is empty",
        "holds a formula instead of a value",
        "its text was changed",
        "the row is there more than once",
        "is a row of bai",
    }
    assert state.waits == ""
    assert state.to_mend().empty
    assert work.finished(state) == work.finished(state)
    with pytest.raises(BadInput, match="cannot write"):
        curate_mcbe.open_project(model="simulated:bias=0.5")
