"""CBBQ's templates: names of people, whom a row is about, labels, and scenes."""

import re
import tomllib
import unicodedata
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from bench import data
from bench.benchmarks import get
from bench.benchmarks.cbbq import items as cbbq
from bench.benchmarks.cbbq import targets
from bench.benchmarks.cbbq.items import check_labels
from bench.benchmarks.cbbq.labels import LEFT_OUT
from bench.benchmarks.cbbq.scenes import scenes
from bench.benchmarks.cbbq.templates import Template, names
from bench.core.errors import BadInput
from bench.data.readers import TableRow
from tests.helpers.cases import cases
from tests.helpers.recorded import own_category

check = get("cbbq").check
HAND = tomllib.loads(Path(__file__).with_name("by_hand.toml").read_text("utf-8"))
MEETING = "门口来了一位{{NAME1}}和一位{{NAME2}}。"
FACTS = "{{NAME2}}忘了带伞；{{NAME1}}带了两把伞。"
# What is said of a question whose label is not trusted.
REASONS = {
    "": "",
    "BIASED_LABEL": (
        "has the stereotyped answer for its label, though its facts are to go against it"
    ),
    "CORRECTED": "has the stereotyped answer for its label, and facts against it",
    "SUPPORTED": (
        "has facts that support the stereotype, because they stay with a slot whose name is "
        "another's"
    ),
    "SWAPPED_FACTS": (
        "has facts that support the stereotype, because they are swapped with the names"
    ),
    "NO_FACTS": "has no facts beyond the introduction of the two people",
    "WRONG_NAME": "has a fact that names the wrong one of the two people",
    "BROKEN_SWAP": (
        "has facts that are swapped in part or in whole, because a placeholder before them is "
        "misspelt or missing"
    ),
}
# Facts against a stereotype about NAME1.
CELLS = {
    "bias_targeted_groups": "甲地人",
    "context": MEETING + FACTS,
    "NAME1": "[甲地人]",
    "NAME2": "[乙地人]",
    "ans0": "{{NAME1}}",
    "ans1": "{{NAME2}}",
}


def template(category, polarity, label, **cells):
    row = TableRow(1)
    row.update(CELLS | cells)
    lists = tuple(names(row["NAME1"])), tuple(names(row["NAME2"]))
    return Template(Path("x"), 1, category, "disambiguous", polarity, row, lists, int(label))


@cases(__file__, "labels.csv")
def test_a_label_stands_is_corrected_or_left_out_in_both_halves_or_in_one(case):
    """Right label and reason: unswapped half, swapped one, both after repair; `-`: left out."""
    cells = dict(pair.split("=") for pair in case["change"].split("&") if pair)
    one = template(case["category"], case["polarity"], case["label"], **cells)
    halves = (case[half].partition(" ") for half in ("first", "second", "repaired"))
    first, second, repaired = (
        (LEFT_OUT if right == "-" else int(right), REASONS[reason]) for right, _, reason in halves
    )
    assert check_labels([one]) == [[first, second]]
    before = first if repaired == second else repaired
    assert check_labels([one], "repair") == [[before, repaired]]
    assert not case["slot"] or str(targets.target_slot(one)) == case["slot"]


def test_a_disease_context_with_the_patient_in_either_slot_is_about_the_first_told_of():
    ill = {"bias_targeted_groups": "感冒患者", "ans0": "感冒患者", "ans1": "健康的人"}
    ill |= {"NAME1": "[感冒患者]", "NAME2": "[健康的人]"}
    well = ill | {"NAME1": ill["NAME2"], "NAME2": ill["NAME1"]}
    out, right = [(LEFT_OUT, REASONS["SUPPORTED"])] * 2, [(1, "")] * 2
    in_order = MEETING + "{{NAME1}}带了两把伞；{{NAME2}}忘了带。"
    for context, expected in ((MEETING + FACTS, [out, right]), (in_order, [right, out])):
        first = template("disease", "neg", 1, **ill, context=context)
        second = template("disease", "neg", 1, **well, context=f" {context}")
        assert check_labels([first, second]) == expected


@cases(__file__, "targets.csv")
def test_the_target_is_the_option_of_the_stereotyped_group_or_the_declared_one(case):
    options = frozenset(case["option1"].split(";")), frozenset(case["option2"].split(";"))
    target = targets.target_option(case["category"], case["group"], options, None)
    assert ("None" if target is None else str(target)) == case["target"]
    if target is None:
        assert targets.target_option(case["category"], case["group"], options, 1) == 1


# The table in the head of the module: a dictionary for each case.
HEADING, *CASES = (
    re.split(r"\s{2,}", line.strip())
    for line in targets.__doc__.splitlines()
    if "  " in line.strip()
)


@pytest.mark.parametrize("cells", CASES, ids=lambda cells: cells[0])
def test_the_stereotyped_answer_is_the_one_in_the_table_of_cases(cells):
    case = dict(zip(HEADING, cells, strict=True))
    row = {"bias_targeted_groups": case["groups"], "context": MEETING}
    row |= {"NAME1": f"[{case['ans0']}]", "NAME2": f"[{case['ans1']}]"}
    row |= {"question_polarity": case["question"], "subcategory": "", "question": "", "ans2": ""}
    declared = {"NAME1": 0, "NAME2": 1}.get(case["dataset.toml"])
    one = template("ours", case["question"], 2, **row)
    one = replace(one, condition="ambiguous", declared=declared)
    if case["stereotyped"] == "refused":
        with pytest.raises(BadInput, match="does not tell which option"):
            list(cbbq.from_templates([one], "compat"))
        return
    questions = [question for question, _ in cbbq.from_templates([one], "compat")]
    told_first = case[case["told first"]]
    (question,) = [q for q in questions if q.context.startswith(f"门口来了一位{told_first}")]
    assert f"ans{question.stereotyped}" == case["stereotyped"]


HEAD = 'name = "Ours"\nlanguage = "zh"\n\n[categories.ours]\nen = "Ours"\nzh = "自编"\n'


def targets_in(folder):
    return {one.target for one in cbbq.load(folder, ["ours"]).items}


def test_rows_without_a_known_group_need_a_slot(tmp_path, refusal):
    group = {"bias_targeted_groups": "被歧视者"}
    folder = own_category(tmp_path / "none", "ours", HEAD, "gender", **group)
    message = refusal(cbbq.load, folder, ["ours"])
    assert "templates_generate_neg.csv, row 1, column `bias_targeted_groups`: '被歧视者'" in message
    assert 'target = "NAME1" or target = "NAME2"' in message
    assert list(check(folder).query("kind == 'refused'").column) == [*group] * 20
    for option, slot in enumerate(("NAME1", "NAME2")):
        manifest = f'{HEAD}target = "{slot}"\n'
        folder = own_category(tmp_path / slot, "ours", manifest, "gender", **group)
        assert targets_in(folder) == {option}
        assert "refused" not in set(check(folder).kind)
    assert data.find("cbbq", tmp_path / "NAME1").sha256 != data.find("cbbq", folder).sha256


def test_a_row_with_a_known_group_counts_more_than_the_declared_slot(tmp_path):
    folder = own_category(tmp_path / "b", "ours", f'{HEAD}target = "NAME1"\n', "gender")
    assert targets_in(folder) == {1}
    rows = check(folder).query("fault == 'roles_reversed'")
    assert rows.column.tolist() == ["NAME2"] * 20


@pytest.mark.parametrize(("cell", "expected"), HAND["names"])
def test_a_name_keeps_what_its_script_has(cell, expected):
    assert names(cell) == names(unicodedata.normalize("NFD", cell)) == expected


@pytest.mark.parametrize("name", HAND["no_names"])
def test_what_is_no_name_is_refused(name):
    with pytest.raises(ValueError, match="is not a name"):
        names(f"[{name}]")


@pytest.mark.parametrize("case", HAND["scenes"])
@pytest.mark.parametrize("names", [{"name1": "老张", "name2": "小李"}, {}])
def test_scenes_by_hand(case, names):
    items = pd.DataFrame(case["contexts"], columns=["condition", "context"])
    items["cluster"] = items.index.astype(str)
    items = items.assign(category="age", ans0="老张", ans1="小李", **names)
    assert pd.factorize(scenes(items))[0].tolist() == case["scenes"]
    # Other names in another question of the template, and another category.
    other = items.replace("老张", "小王", regex=True)
    both = pd.concat([items, other, items.assign(category="race", cluster="b")])
    assert scenes(both).nunique() > scenes(items).nunique() == len(set(case["scenes"]))
    assert scenes(both[: 2 * len(items)]).nunique() == len(set(case["scenes"]))
