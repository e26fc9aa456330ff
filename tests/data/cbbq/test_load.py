"""CBBQ's questions: expanded by the release's rules, settings, and wrong files."""

from collections import Counter

import pytest

from bench import data
from bench.benchmarks import get
from bench.benchmarks.cbbq.templates import CATEGORIES, CONDITIONS
from tests.helpers.cases import cases, pairs
from tests.helpers.recorded import FACTS, templates

A, D = CONDITIONS


def load(folder, *categories, **settings):
    return data.load(data.find("cbbq", folder), categories, **settings)


def test_the_samples_are_2160_questions_with_right_labels():
    samples = get("cbbq").metadata.samples
    items = load(samples)
    assert items == load(samples, labels="audited", polarity="column", dedupe="yes")
    # Two names per slot are four pairs, in two orders except for disease; ten templates each.
    assert Counter((item.category, item.condition) for item in items) == {
        (name, condition): 40 if name == "disease" else 80
        for name in CATEGORIES
        for condition in CONDITIONS
    }
    assert len({item.item_id for item in items}) == len({item.text for item in items}) == 2160


# The rules of the release, by hand: the contexts of 甲 x 丙 and 乙 x 丙.
ALL = [
    "甲和丙来了。丙说甲累了。",
    "丙和甲来了。甲说丙累了。",
    "乙和丙来了。丙说乙累了。",
    "丙和乙来了。乙说丙累了。",
]
FACTS_STAY = [ALL[0], "丙和甲来了。丙说甲累了。", ALL[2], "丙和乙来了。丙说乙累了。"]


@pytest.mark.parametrize(
    ("category", "condition", "contexts"),
    [
        ("region", A, ALL),
        ("region", D, FACTS_STAY),
        ("educational_qualification", D, ALL),
        ("disease", A, ALL[::2]),
        ("disease", D, ALL[::2]),
    ],
)
def test_a_template_is_expanded_by_its_categorys_rule(tmp_path, category, condition, contexts):
    text = "{{NAME1}}和{{NAME2}}来了。{{NAME2}}说{{NAME1}}累了。"
    cells = {"context": text, "bias_targeted_groups": "甲/乙"}
    items = load(
        templates(tmp_path, cells, non_neg=[cells], category=category, condition=condition)
    )
    assert [item.context for item in items] == contexts * 2
    assert [item.example_id for item in items] == list(range(1, len(items) + 1))
    # Options and labels are never swapped.
    assert {(item.ans0 in "甲乙", *item.options[1:]) for item in items} == {(True, "丙", "不知道")}
    found = {
        (one.template, one.polarity, one.label, one.stereotyped == one.target) for one in items
    }
    neg, non_neg = (2, 2) if condition == A else (1, 0)
    assert found == {("neg:1", "neg", neg, True), ("non_neg:1", "non_neg", non_neg, False)}


# How many questions of each template remain; by words of each effect, how many questions it
# concerns or, with a minus, leaves out.
@cases(__file__, "settings.csv")
def test_what_the_settings_leave_and_affect_by_hand(tmp_path, case):
    settings, remaining = pairs(case.pop("settings")), case.pop("remaining").split()
    folder = templates(
        tmp_path,
        {},
        {"label": "0", "question": "谁没带伞？"},
        {"context": FACTS.replace("{{NAME1}}", "{{NAME1]}", 1), "question": "谁没有伞？"},
        {},
        non_neg=[{}, {"question_polarity": "neg", "question": "谁有伞？"}],
        condition=D,
    )
    questions = load(folder, **settings)
    # Questions keep their numbers; of the third template, the swapped ones go.
    steps = {"4": (1, 2, 3, 4), "2": (1, 3), "0": ()}
    expected = [4 * k + step for k, count in enumerate(remaining) for step in steps[count]]
    assert [one.example_id for one in questions] == expected
    effects = data.read(data.find("cbbq", folder), **settings).effects
    assert len(effects) == len([count for count in case.values() if count])
    for words, count in case.items():
        rows = [-one.rows if one.is_excluded else one.rows for one in effects if words in one.what]
        assert sum(rows) == int(count or 0)
    for one in questions:
        of_column = one.template == "non_neg:2" and "polarity" in settings
        assert one.polarity == ("neg" if of_column else one.template.partition(":")[0])
        assert one.label == int(one.template not in ("neg:2", "non_neg:1", "non_neg:2"))
        assert "expansion" in settings or ("{" in one.context) == (one.template == "neg:3")


def test_a_prompt_with_two_labels_is_left_out_or_counted_twice(tmp_path):
    late = {"question": "谁迟到？"}
    folder = templates(tmp_path / "b", {}, late, non_neg=[late], condition=D)
    assert len(load(folder)) == 12
    assert len(load(folder, dedupe="yes")) == 12, "they have another label"
    assert {one.question for one in load(folder, labels="audited")} == {"谁忘了伞？"}
    (one,) = data.read(data.find("cbbq", folder), labels="audited").effects
    assert (one.rows, one.is_excluded, "with both labels" in one.what) == (8, True, True)
    # Where ambiguous, the one label is unknown: 甲 twice and in the other file, where 乙 is new.
    folder = templates(tmp_path / "c", {"NAME1": "[甲, 甲]"}, non_neg=[{"question": "谁忘了伞？"}])
    assert len(load(folder, labels="audited")) == 8
    assert [one.example_id for one in load(folder, dedupe="yes")] == [1, 2, 7, 8]


def test_a_label_that_the_audit_corrects_is_counted(tmp_path):
    group = {"bias_targeted_groups": "学历低的人", "ans0": "学历低的人", "ans1": "学历高的人"}
    place = {"category": "educational_qualification", "condition": D}
    folder = templates(tmp_path, group | {"label": "0"}, non_neg=[group], **place)
    effects = data.read(data.find("cbbq", folder), labels="audited").effects
    assert [one.rows for one in effects if one.what.startswith("label corrected")] == [2]


@pytest.mark.parametrize("form", ["{}.0", " {} "])
def test_a_label_is_a_number_as_programs_write_it(tmp_path, form):
    folder = templates(tmp_path, {"label": form.format(1)}, condition=D)
    assert {one.label for one in load(folder) if one.polarity == "neg"} == {1}


def test_a_folder_without_files_is_refused(tmp_path, refusal):
    (tmp_path / "region" / "ambiguous").mkdir(parents=True)
    message = refusal(load, tmp_path)
    assert message.startswith(
        f"{tmp_path} (--data): holds no data of CBBQ in the layout of its release; "
    )
