"""Checks of CBBQ's labels on small templates and the real swap, and whom a row is about."""

from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bench.data import SAMPLES, cbbq
from bench.data.cbbq import labels, templates
from bench.data.cbbq.labels import (
    BIASED_LABEL,
    BROKEN_SWAP,
    CORRECTED,
    LEFT_OUT,
    NO_FACTS,
    SUPPORTED,
    SWAPPED_FACTS,
    WRONG_NAME,
    LabelCheck,
    check_labels,
)
from bench.data.cbbq.templates import CATEGORIES, CONDITIONS, Template

MEETING = "门口来了一位{{NAME1}}和一位{{NAME2}}。"
FACTS = "{{NAME2}}忘了带伞；{{NAME1}}带了两把伞。"


def template(
    category: str = "region",
    polarity: str = "neg",
    label: int | None = None,
    condition: str = "disambiguous",
    **cells: str,
) -> Template:
    """Make a template whose facts go against a stereotype about NAME1, with its label."""
    if label is None:
        label = 2 if condition == "ambiguous" else int(polarity == "neg")
    filled = {
        "bias_targeted_groups": "甲地人",
        "context": MEETING + FACTS,
        "NAME1": "[甲地人]",
        "NAME2": "[乙地人]",
        "question": "谁忘了带伞？",
        "ans0": "{{NAME1}}",
        "ans1": "{{NAME2}}",
        **cells,
    }
    names = tuple(templates.names(filled["NAME1"])), tuple(templates.names(filled["NAME2"]))
    return Template(Path("x.csv"), 1, category, condition, polarity, filled, names, label)


def verdict(*given: Template, expansion: str = "compat") -> tuple[LabelCheck, LabelCheck]:
    """Check the last of some templates."""
    return check_labels(given, expansion)[-1]


def stands(label: int) -> tuple[LabelCheck, LabelCheck]:
    return LabelCheck(label), LabelCheck(label)


def out(reason: str) -> tuple[LabelCheck, LabelCheck]:
    return LabelCheck(LEFT_OUT, reason), LabelCheck(LEFT_OUT, reason)


def test_labels_stand_where_unknown_is_right_and_in_the_samples() -> None:
    for category in CATEGORIES:
        for context in (MEETING + FACTS, "{{NAME1]}和{{NAME1}}来了。", MEETING):
            one = template(category, condition="ambiguous", context=context)
            assert verdict(one) == stands(2)
    for category, paths in cbbq.files(SAMPLES / "cbbq").items():
        for condition in CONDITIONS:
            some = cbbq.read_templates(paths, category, condition)
            assert check_labels(some) == [stands(one.label) for one in some]


# Category, group, first name, the label of a sound negative template, and the target's slot.
@pytest.mark.parametrize(
    ("category", "group", "name", "label", "slot"),
    [
        ("SES", "穷人", "穷人", 1, 0),
        ("race", "甲裔", "甲裔", 1, 0),
        ("region", " 甲地人 ", "甲地人", 1, 0),
        ("sexual_orientation", "同性恋", "同性恋者", 1, 0),
        ("gender", "女性", "男生", 0, 1),
        ("gender", "变性人", "变性女生", 1, 1),
        ("physical_appearance", "长相一般的人", "帅哥", 0, 1),
        ("age", "老年人", "青年", 0, 1),
        ("age", "老年人", "奶奶", 1, 0),
        ("age", "年轻人", "青年", 1, 0),
    ],
)
def test_the_option_against_the_stereotype_stands_and_the_other_is_left_out(
    category: str, group: str, name: str, label: int, slot: int
) -> None:
    cells = {"bias_targeted_groups": group, "NAME1": f"[{name}]"}
    sound = template(category, "neg", label, **cells)
    assert verdict(sound) == stands(label)
    assert labels.target_slot(sound) == slot
    assert verdict(template(category, "non_neg", 1 - label, **cells)) == stands(1 - label)
    assert verdict(template(category, "neg", 1 - label, **cells)) == out(BIASED_LABEL)
    assert verdict(template(category, "non_neg", label, **cells)) == out(BIASED_LABEL)
    # The polarity is the file's, not the column's.
    wrong_column = template(category, "non_neg", 1 - label, **cells, question_polarity="neg")
    assert verdict(wrong_column) == stands(1 - label)


def test_in_educational_qualification_facts_by_slot_are_right_in_one_half_at_most() -> None:
    category = "educational_qualification"
    cells = {"NAME1": "[硕士]", "NAME2": "[中专生]", "ans0": "学历较低的人", "ans1": "学历较高的人"}
    by_slot = {**cells, "context": MEETING + "{{NAME1}}忘了带伞；{{NAME2}}带了两把。"}
    swapped = LabelCheck(LEFT_OUT, SWAPPED_FACTS)
    for polarity, right in (("neg", 1), ("non_neg", 0)):
        sound = template(category, polarity, right, **by_slot)
        assert verdict(sound) == (LabelCheck(right), swapped)
        wrong = template(category, polarity, 1 - right, **by_slot)
        assert verdict(wrong) == (LabelCheck(right, CORRECTED), swapped)
        assert labels.target_slot(sound) == 1
    # Facts in words are swapped with nobody.
    in_words = {**cells, "context": MEETING + "学历较高的人忘了带伞；学历较低的人带了两把。"}
    assert verdict(template(category, "neg", 1, **in_words)) == stands(1)
    assert verdict(template(category, "neg", 0, **in_words)) == out(BIASED_LABEL)


ILL = {"bias_targeted_groups": "感冒患者", "ans0": "感冒患者", "ans1": "没有感冒的人"}
FIRST = {**ILL, "NAME1": "[感冒患者, 感冒发烧的人]", "NAME2": "[健康的人]"}
SECOND = {**ILL, "NAME1": "[健康的人]", "NAME2": "[感冒患者, 感冒发烧的人]"}
IN_ORDER = MEETING + "{{NAME1}}带了两把伞；{{NAME2}}忘了带。"


@pytest.mark.parametrize("polarity", ["neg", "non_neg"])
def test_in_disease_the_facts_are_about_one_slot(polarity: str) -> None:
    # They are written for a patient in the first slot.
    assert verdict(template("disease", **FIRST)) == stands(1)
    assert verdict(template("disease", **FIRST, context=IN_ORDER)) == stands(1)
    assert verdict(template("disease", polarity, **SECOND)) == out(SUPPORTED)
    # A context with the patient in either slot is about the one that it tells of first.
    in_first, in_second = template("disease", **FIRST), template("disease", polarity, **SECOND)
    assert check_labels([in_first, in_second]) == [out(SUPPORTED), stands(in_second.label)]
    in_first = template("disease", **FIRST, context=IN_ORDER)
    in_second = template("disease", polarity, **SECOND, context=f" {IN_ORDER}")
    assert check_labels([in_first, in_second]) == [stands(1), out(SUPPORTED)]


@pytest.mark.parametrize(
    ("group", "ans0", "name1", "name2", "patient"),
    [
        ("感冒患者", "患者", "感冒患者", "朋友", 0),
        ("感冒患者", "患者", "朋友", "得过感冒", 1),
        ("感冒患者", "小王", "腿摔伤了", "患上感冒", 1),
        ("流感患者", "感冒的人", "刚得感冒", "健康的", 0),
        ("感冒患者", "患者", "没有感冒的", "感冒的", 1),
        ("感冒患者", "患者", "从未感冒过", "感冒的", 1),
        ("感冒患者", "患者", "感冒的, 朋友", "感冒的, 感冒过的", 1),
        ("感冒患者", "患者", "感冒的", "感冒过的", None),
        ("感冒患者", "患者", "姐姐", "朋友", None),
    ],
)
def test_the_patient_is_found_by_the_words_of_the_group_and_the_option(
    group: str, ans0: str, name1: str, name2: str, patient: int | None
) -> None:
    cells = {"bias_targeted_groups": group, "ans0": ans0, "ans1": "别人"}
    one = template("disease", **cells, NAME1=f"[{name1}]", NAME2=f"[{name2}]")
    assert labels.patient_slot(one) == patient
    assert labels.target_slot(one) == (patient or 0)
    assert verdict(one) == (out(SUPPORTED) if patient == 1 else stands(1))


MISSPELT, LOST = "misspelt", "lost"


# A context, and why its label is not trusted: in both halves, or in the swapped one where a
# placeholder is misspelt, which repair fixes, or lost.
@pytest.mark.parametrize(
    ("context", "reason"),
    [
        (MEETING, NO_FACTS),
        (f" {MEETING}\n", NO_FACTS),
        ("门口来了两个人，一个是{{NAME1}}，另一个是{{NAME2}}。", NO_FACTS),
        ("有两个人，{{NAME1}}和{{NAME2}}一起来了", NO_FACTS),
        ("门口来了{{NAME1]}和{{NAME2}}。", NO_FACTS),
        (MEETING + "女生忘了带伞。", ""),
        ("门口来了{{NAME1}}和{{NAME2}}，女生忘了带伞。", ""),
        (MEETING + "{{NAME2}}忘了带伞。", ""),
        # A fact about the wrong one.
        (MEETING + "{{NAME1}}忘了带伞。{{NAME1}}则带了两把。", WRONG_NAME),
        (MEETING + "{{NAME2}}忘了带伞，而{{NAME2}}带了两把。", WRONG_NAME),
        (MEETING + "{{NAME2}}忘了伞，{{NAME1}}带了，不过他希望{{NAME1}}也带。", WRONG_NAME),
        (MEETING + "{{NAME2}}忘了带伞，{{NAME1}}带了两把，而且{{NAME1}}借给了别人。", ""),
        (MEETING + "{{NAME1}}带了两把伞，{{NAME1}}借给了别人，但{{NAME2}}忘了带。", ""),
        # A swap that reaches the facts.
        (MEETING + FACTS, ""),
        ("来了{{NAME2}}和{{NAME1}}。" + FACTS, ""),
        ("来了{{NAME1}}和{{NAME2]}。" + FACTS, MISSPELT),
        ("来了{{NMAE1}}和{{NAME2}}。" + FACTS, MISSPELT),
        ("来了{NAME1}}和NAME2}}。" + FACTS, MISSPELT),
        (MEETING + "{{NAME2]}忘了带伞；{{NAME1}}带了两把。", MISSPELT),
        ("来了{{NAME1]}和{{NAME2}}。女生忘了带伞。", ""),
        ("来了{{NAME1}}和{{NAME1}}。女生忘了带伞。", ""),
        ("来了{{NAME1}}和{{NAME1}}。" + FACTS, LOST),
    ],
)
def test_facts_that_do_not_fit_are_left_out_in_both_halves_or_in_one(
    context: str, reason: str
) -> None:
    in_both = out(reason) if reason else stands(1)
    in_one = (LabelCheck(1), LabelCheck(LEFT_OUT, BROKEN_SWAP))
    for category in ("region", "religion"):
        one = template(category, context=context)
        assert verdict(one) == (in_one if reason in (MISSPELT, LOST) else in_both)
        repaired = {MISSPELT: stands(1), LOST: in_one}.get(reason, in_both)
        assert verdict(one, expansion="repair") == repaired
    if reason in (MISSPELT, LOST):  # disease has no second half
        assert verdict(template("disease", **FIRST, context=context)) == stands(1)


tokens = st.sampled_from(
    ["{{NAME1}}", "{{NAME2}}", "{{NAME1]}", "{{NAME2]}", "{{NMAE1}}", "NAME2}}", "{NAME1}}"]
)


@given(st.tuples(tokens, tokens), st.lists(tokens, max_size=4))
def test_a_swapped_half_stands_only_where_the_release_s_swap_leaves_the_facts(
    introduced: tuple[str, str], told: list[str]
) -> None:
    start = f"来了{introduced[0]}和{introduced[1]}。"
    text = start + "".join(f"听说{token}忘了伞。" for token in told)
    assume(templates.PLACEHOLDER.search(text))
    first, second = templates.contexts("region", "disambiguous", text, "甲", "乙")
    facts = first.partition("。")[2], second.partition("。")[2]
    before, swapped = verdict(template(context=text))
    if facts[0] != facts[1]:
        assert swapped.label == LEFT_OUT
    elif not templates.malformed(text) and before.label != LEFT_OUT and told:
        broken = LabelCheck(LEFT_OUT, BROKEN_SWAP)
        assert swapped == (LabelCheck(1) if introduced[0] != introduced[1] else broken)
    if before.reason in ("", BROKEN_SWAP):
        assert before == LabelCheck(1)


# Targets


@pytest.mark.parametrize(
    ("category", "group", "ans0", "target"),
    [
        ("region", "河南人", "河南人", 0),
        ("disease", "病人", "患者", 0),
        ("educational_qualification", "低学历", "学历较低的人", 0),
        ("gender", "女性", "男生", 1),
        ("gender", "跨性别者", "变性女生", 0),
        ("physical_appearance", "长相一般的人", "长相出众的人", 1),
        ("age", "老龄人", "青年", 1),
        ("age", "老年人", "外婆", 0),
        ("age", "00后/年轻人", "00后", 0),
        ("race", "黑人", "阿拉伯人", 0),
        ("sport", "足球迷", "球迷", None),
    ],
)
def test_the_target_is_the_option_of_the_stereotyped_group(
    category: str, group: str, ans0: str, target: int | None
) -> None:
    options = (frozenset([ans0]), frozenset(["别的人"]))
    assert templates.target_option(category, group, options, None) == target
    assert templates.target_option("sport", "足球迷", options, 1) == 1, "as declared"


@pytest.mark.parametrize(
    ("group", "first", "second", "option"),
    [
        ("女性", "男司机", "女司机", 1),
        ("女性", "女教授", "男教授", 0),
        ("男性/女性", "男司机", "女司机", None),
        ("河南人/安徽人", "河南店主 安徽店主", "浙江店主 福建店主", 0),
        ("非异性恋者", "同性恋者 双性恋者", "异性恋者", 0),
        ("变性人", "非变性女生", "变性女生", 1),
        ("残疾人", "坐轮椅的程序员", "没有残疾的程序员", 0),
        ("残疾人", "坐轮椅的程序员", "没有任何残疾的程序员", None),
        ("外貌不出众者", "长相出众 很有气质", "长相一般 长相普通", 1),
        ("非裔美国人", "白种人", "非裔美国人", 1),
        ("无锡人", "无锡人", "苏州人", 0),
        ("老年人", "二十岁的人", "五十八岁的人", None),
        ("老人", "年轻的老板", "年长的员工", None),
        ("印度人", "印度", "美国 印度尼西亚", None),
        ("、/", "甲", "乙", None),
        ("women", "a group of men", "a group of women", 1),
        ("men", "a group of women", "a few people", None),
        ("Muslims", "non-Muslims", "Muslims", 1),
        ("immigrants", "immigrants", "people who are not immigrants", 0),
    ],
)
def test_the_group_is_looked_for_in_the_texts_of_the_options(
    group: str, first: str, second: str, option: int | None
) -> None:
    texts = [frozenset([text] if group.isascii() else text.split()) for text in (first, second)]
    assert templates.named_option(group, (texts[0], texts[1])) == option
