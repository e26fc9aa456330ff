"""Checks of CBBQ's labels on small templates and the real swap, and whom a row is about."""

from pathlib import Path

from bench.benchmarks.cbbq import labels, templates
from bench.benchmarks.cbbq.labels import LEFT_OUT, LabelCheck, check_labels
from bench.benchmarks.cbbq.templates import Template
from bench.data.readers import TableRow
from tests.helpers.cases import cases

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
