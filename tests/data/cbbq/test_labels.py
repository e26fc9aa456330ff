"""CBBQ's templates: names of people, whom a row is about, labels, and scenes."""

import unicodedata
from pathlib import Path

import pandas as pd
import pytest

from bench import data
from bench.benchmarks.cbbq import audit, labels, templates
from bench.benchmarks.cbbq import items as cbbq
from bench.benchmarks.cbbq.expand import expand
from bench.benchmarks.cbbq.labels import LEFT_OUT, LabelCheck, check_labels
from bench.benchmarks.cbbq.scenes import scenes
from bench.benchmarks.cbbq.templates import Template, names
from bench.data.readers import TableRow
from tests.helpers.cases import cases
from tests.helpers.recorded import own_category

MEETING = "门口来了一位{{NAME1}}和一位{{NAME2}}。"
FACTS = "{{NAME2}}忘了带伞；{{NAME1}}带了两把伞。"
REASONS = {
    "": "",
    "biased": labels.BIASED_LABEL,
    "corrected": labels.CORRECTED,
    "supported": labels.SUPPORTED,
    "swapped": labels.SWAPPED_FACTS,
    "no facts": labels.NO_FACTS,
    "wrong name": labels.WRONG_NAME,
    "broken swap": labels.BROKEN_SWAP,
}


def template(category, polarity, label, **cells):
    """Make a disambiguous template whose facts go against a stereotype about NAME1."""
    cells = {
        "bias_targeted_groups": "甲地人",
        "context": MEETING + FACTS,
        "NAME1": "[甲地人]",
        "NAME2": "[乙地人]",
        "ans0": "{{NAME1}}",
        "ans1": "{{NAME2}}",
        **cells,
    }
    filled = TableRow(1, cells)
    names = tuple(templates.names(filled["NAME1"])), tuple(templates.names(filled["NAME2"]))
    return Template(Path("x"), 1, category, "disambiguous", polarity, filled, names, int(label))


@cases(__file__, "labels.csv")
def test_a_label_stands_is_corrected_or_left_out_in_both_halves_or_in_one(case):
    """Right label and reason: unswapped half, swapped one, both after repair; `-`: left out."""
    cells = dict(pair.split("=") for pair in case["change"].split("&") if pair)
    one = template(case["category"], case["polarity"], case["label"], **cells)
    first, second, repaired = (
        LabelCheck(LEFT_OUT if right == "-" else int(right), REASONS[reason])
        for right, _, reason in (
            case[name].partition(" ") for name in ("first", "second", "repaired")
        )
    )
    assert check_labels([one]) == [(first, second)]
    before = first if repaired == second else repaired
    assert check_labels([one], "repair") == [(before, repaired)]
    assert not case["slot"] or str(labels.target_slot(one)) == case["slot"]


def test_a_disease_context_with_the_patient_in_either_slot_is_about_the_first_told_of():
    names = {"NAME1": "[感冒患者]", "NAME2": "[健康的人]"}
    ill = {"bias_targeted_groups": "感冒患者", "ans0": "感冒患者", "ans1": "健康的人"} | names
    well = ill | {"NAME1": names["NAME2"], "NAME2": names["NAME1"]}
    out = LabelCheck(LEFT_OUT, labels.SUPPORTED)
    in_order = MEETING + "{{NAME1}}带了两把伞；{{NAME2}}忘了带。"
    for context, expected in (
        (MEETING + FACTS, [(out, out), (LabelCheck(1),) * 2]),
        (in_order, [(LabelCheck(1),) * 2, (out, out)]),
    ):
        pair = [template("disease", "neg", 1, **ill, context=context)]
        pair.append(template("disease", "neg", 1, **well, context=f" {context}"))
        assert check_labels(pair) == expected


@cases(__file__, "targets.csv")
def test_the_target_is_the_option_of_the_stereotyped_group_or_the_declared_one(case):
    options = frozenset(case["option1"].split(";")), frozenset(case["option2"].split(";"))
    target = templates.target_option(case["category"], case["group"], options, None)
    assert ("None" if target is None else str(target)) == case["target"]
    if target is None:
        assert templates.target_option(case["category"], case["group"], options, 1) == 1


HEAD = 'name = "Ours"\nlanguage = "zh"\n\n[categories.ours]\nen = "Ours"\nzh = "自编"\n'
TARGETS = ('target = "NAME1"\n', 'target = "NAME2"\n')


def targets(folder):
    return {one.target for one in cbbq.load(folder, ["ours"]).items}


def test_rows_without_a_known_group_need_a_slot(tmp_path, refusal):
    group = {"bias_targeted_groups": "被歧视者"}
    folder = own_category(tmp_path / "a", "ours", HEAD, "gender", **group)
    message = refusal(cbbq.load, folder, ["ours"])
    assert "templates_generate_neg.csv, row 1, column `bias_targeted_groups`: '被歧视者'" in message
    assert 'target = "NAME1" or target = "NAME2"' in message
    found = audit.check(folder).query("kind == 'refused'")
    assert found.column.tolist() == ["bias_targeted_groups"] * 20
    for option, line in enumerate(TARGETS):
        folder = own_category(tmp_path / str(option), "ours", HEAD + line, "gender", **group)
        assert targets(folder) == {option}
        assert "refused" not in set(audit.check(folder).kind)
    assert data.find("cbbq", tmp_path / "0").sha256 != data.find("cbbq", folder).sha256


def test_a_row_with_a_known_group_counts_more_than_the_declared_slot(tmp_path):
    folder = own_category(tmp_path / "b", "ours", HEAD + TARGETS[0], "gender")
    assert targets(folder) == {1}
    rows = audit.check(folder).query("fault == 'roles_reversed_vs_category'")
    assert rows.column.tolist() == ["NAME2"] * 20
    expand(data.find("cbbq", folder), tmp_path / "out", "csv")
    assert targets(tmp_path / "out") == {1}


@pytest.mark.parametrize(
    ("cell", "read"),
    [
        ("[old man,  elderly   man ]", ["old man", "elderly man"]),
        ("[북한 주민]", ["북한 주민"]),
        ("[老 人, iPhone 用户, アフリカ 人]", ["老人", "iPhone用户", "アフリカ人"]),
        ("[हिन्दू, ผู้หญิงอีสาน, مُسلِم]", ["हिन्दू", "ผู้หญิงอีสาน", "مُسلِم"]),
        (
            "[non-binary person, O’Brien, l'home gran]",
            ["non-binary person", "O’Brien", "l'home gran"],
        ),
        ("[LGBTQ+, St. John, 卡尔·马克思]", ["LGBTQ+", "St. John", "卡尔·马克思"]),
        ("[女\u200b性, \ufeff男性]", ["女性", "男性"]),
        ("[می\u200cخواهم]", ["می\u200cخواهم"]),
        ("[NA, None, Null, nan]", ["NA", "None", "Null", "nan"]),
    ],
)
def test_a_name_keeps_what_its_script_has(cell, read):
    assert names(cell) == read
    assert names(unicodedata.normalize("NFD", cell)) == read


@pytest.mark.parametrize(
    "name",
    ["甲、乙", "甲，乙", "a;b", "'a'", '"a"', "“a”", "甲(乙)", "{{NAME1}}", "a\0b", "-", " "],
)
def test_what_is_no_name_is_refused(name):
    with pytest.raises(ValueError, match="is not a name"):
        names(f"[{name}]")


WAITING, TALKING, WALKING = "老张和小李在等车。", "老张和小李在开会。", "老张和小李在散步。"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        # Both questions, both contexts and all names are one scene, as is what begins as it does.
        (["a", WAITING, "a", "小李和老张在等车。", "d", f"{WAITING}老张迟到了。"], "111"),
        # Without an ambiguous context, the first sentence is the scene.
        (["a", TALKING, "d", f"{WALKING}老张累了。", "d", f"{WALKING}小李累了。"], "122"),
        # The longer of two is meant.
        (["a", WAITING, "a", f"{WAITING}天黑了。", "d", f"{WAITING}天黑了。老张怕黑。"], "122"),
        # The same first sentence.
        (["a", f"{WAITING}天黑了。", "d", f"{WAITING}老张怕黑。"], "11"),
    ],
)
def test_scenes_by_hand(rows, expected):
    items = pd.DataFrame({"condition": rows[::2], "context": rows[1::2]}).assign(
        category="age", name1="老张", name2="小李", ans0="老张", ans1="小李"
    )
    items["cluster"] = [str(k) for k in range(len(items))]
    items["condition"] = items.condition.map({"a": "ambiguous", "d": "disambiguous"})
    for table in (items, items.drop(columns=["name1", "name2"])):
        assert pd.factorize(scenes(table))[0].tolist() == [int(k) - 1 for k in expected]
    # Other names in another question of the template, and another category.
    other = items.assign(context=items.context.str.replace("老张", "小王"), name1="小王")
    both = pd.concat([items, other, items.assign(category="race", cluster="b")])
    assert scenes(both).nunique() > scenes(items).nunique() == len(set(expected))
    assert scenes(both[: 2 * len(items)]).nunique() == len(set(expected))
