"""CBBQ's questions: expanded by the release's rules, settings, and wrong files."""

from collections import Counter

import pandas as pd
import pytest

from bench import data
from bench.benchmarks import get
from bench.benchmarks.cbbq.expand import expand
from bench.benchmarks.cbbq.templates import CATEGORIES, CONDITIONS, FILES
from tests.helpers.cases import cases, pairs
from tests.helpers.recorded import FACTS, templates

A, D = CONDITIONS


def load(folder, *categories, **settings):
    return data.load(data.find("cbbq", folder), categories, **settings)


def test_the_samples_are_2160_sound_questions():
    items = load(get("cbbq").metadata.samples)
    assert items == load(
        get("cbbq").metadata.samples, labels="audited", polarity="column", dedupe="yes"
    )
    # Two names per slot are four pairs, in two orders except for disease; ten templates each.
    assert Counter((item.category, item.condition) for item in items) == {
        (name, condition): 40 if name == "disease" else 80
        for name in CATEGORIES
        for condition in CONDITIONS
    }
    assert len({item.item_id for item in items}) == len({item.text for item in items}) == 2160
    for item in items:
        # Facts go against the stereotype.
        assert item.label == (2 if item.condition == A else 1 - item.biased)
        assert not set("{}NAME") & set("".join(item.text))
        assert len(set(item.options)) == 3


# The rules of the release, by hand: the contexts of 甲 x 丙 and 乙 x 丙.
ALL = [
    "甲和丙来了。丙说甲累了。",
    "丙和甲来了。甲说丙累了。",
    "乙和丙来了。丙说乙累了。",
    "丙和乙来了。乙说丙累了。",
]
FIRST = [ALL[0], "丙和甲来了。丙说甲累了。", ALL[2], "丙和乙来了。丙说乙累了。"]
RULES = {
    **{(name, A): ALL for name in CATEGORIES},
    **{(name, D): FIRST for name in CATEGORIES},
    ("educational_qualification", D): ALL,
    ("disease", A): ALL[::2],
    ("disease", D): ALL[::2],
}


@pytest.mark.parametrize(("category", "condition"), RULES)
def test_a_template_is_expanded_by_its_categorys_rule(tmp_path, category, condition):
    text = "{{NAME1}}和{{NAME2}}来了。{{NAME2}}说{{NAME1}}累了。"
    cells = {"context": text, "bias_targeted_groups": "甲/乙"}
    items = load(
        templates(tmp_path, cells, non_neg=[cells], category=category, condition=condition)
    )
    assert [item.context for item in items] == RULES[category, condition] * 2
    assert [item.example_id for item in items] == list(range(1, len(items) + 1))
    # Options and labels are never swapped.
    assert {(item.ans0 in "甲乙", *item.options[1:]) for item in items} == {(True, "丙", "不知道")}
    found = {(one.template, one.polarity, one.label, one.biased == one.target) for one in items}
    neg, non_neg = (2, 2) if condition == A else (1, 0)
    assert found == {("neg:1", "neg", neg, True), ("non_neg:1", "non_neg", non_neg, False)}


# What the settings affect, by words of its description.
EFFECTS = {
    "file": "(polarity=file)",
    "column": "(polarity=column)",
    "biased": "the stereotyped answer for its label",
    "swapped": "facts that are swapped in part",
    "misspelt": "a placeholder that is misspelt",
    "twice": "occurs before",
}


# How many questions of each template remain; what is affected or, with a minus, left out.
@cases(__file__, "settings.csv")
def test_what_the_settings_leave_and_affect_by_hand(tmp_path, case):
    settings = pairs(case["settings"])
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
    expected = [
        4 * k + step for k, count in enumerate(case["remaining"].split()) for step in steps[count]
    ]
    assert [one.example_id for one in questions] == expected
    found = Counter()
    for effect in data.read(data.find("cbbq", folder), **settings).effects:
        (name,) = (name for name, words in EFFECTS.items() if words in effect.what)
        found[name] += -effect.rows if effect.left_out else effect.rows
    assert [f"{name}={found[name]}" for name in EFFECTS if name in found] == case["effects"].split()
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
    assert (one.rows, one.left_out, "with both labels" in one.what) == (8, True, True)
    # Where ambiguous, the one label is unknown: 甲 twice and in the other file, where 乙 is new.
    folder = templates(tmp_path / "c", {"NAME1": "[甲, 甲]"}, non_neg=[{"question": "谁忘了伞？"}])
    assert len(load(folder, labels="audited")) == 8
    assert [one.example_id for one in load(folder, dedupe="yes")] == [1, 2, 7, 8]


def test_a_wrong_cell_is_refused_with_file_row_and_column(tmp_path, refusal):
    path = templates(tmp_path, {}, {"category": "regoin"}) / f"region/ambiguous/{FILES['neg']}"
    message = refusal(load, tmp_path)
    assert message.startswith(f"{path}, row 2: column `category` 'regoin' is unknown; allowed:")


def test_folders_that_are_no_categories_are_refused(tmp_path, refusal):
    (tmp_path / "region" / "ambiguous").mkdir(parents=True)
    message = refusal(load, tmp_path)
    assert message.startswith(f"{tmp_path}: holds no data of CBBQ (--data); expected CATEGORY/amb")
    for name in FILES.values():
        path = templates(tmp_path) / "region/ambiguous" / name
        path.unlink()
        assert refusal(load, tmp_path).startswith(f"{path}: is missing beside ")
    message = refusal(load, templates(templates(tmp_path), category="regions"))
    assert f"{tmp_path / 'regions'}: category 'regions' is unknown" in message
    assert "[categories.regions]" in message


def test_our_own_columns_of_expanded_files_are_checked(tmp_path, refusal):
    expand(data.find("cbbq", templates(tmp_path / "in")), tmp_path / "out", "csv", "repair")
    path = tmp_path / "out/region/ambiguous/ambiguous.csv"
    rows = pd.read_csv(path, dtype=str)
    rows.drop(columns="name1").to_csv(path, index=False)
    assert refusal(load, tmp_path / "out").startswith(f"{path}, row 1, ")
    for change in ("example_id=x", "example_id=1", "category=regoin"):
        wrong = rows.copy()
        column, _, wrong.loc[1, column] = change.partition("=")
        wrong.to_csv(path, index=False)
        assert refusal(load, tmp_path / "out").startswith(f"{path}, row 2")
