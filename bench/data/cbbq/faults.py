"""What can be wrong with one CBBQ template, or with one expanded question: each fault by a rule, with a name of its own.

The rules were read off the ten categories that were at hand, and hold no row numbers and no sentences of theirs. Where a
rule has to know words, such as surnames, they stand here as constants.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from bench.data.audit import show_cell
from bench.data.cbbq.labels import (
    BIASED_LABEL,
    BROKEN_SWAP,
    CORRECTED,
    LEFT_OUT,
    NO_FACTS,
    SUPPORTED,
    SWAPPED_FACTS,
    WRONG_NAME,
    Verdict,
    mentions,
)
from bench.data.cbbq.targets import named_option
from bench.data.cbbq.templates import PLACEHOLDER, SLOTS, Filling, Template, malformed
from bench.data.readers import Row

# The name of each fault, and what is said of the templates that have it; names as in the audit that the rules follow.
FAULTS = {
    "refused": "refused by the loader",
    "label_wrong_in_unswapped_half": "the label is the stereotyped answer, the facts of the first half are against it",
    "facts_support_stereotype": "the facts of the swapped half support the stereotype",
    "label_contradicts_facts": "the facts are about the other person than the label",
    "label_is_biased": "the label is the stereotyped answer",
    "no_disambiguating_facts": "disambiguous without facts",
    "swap_breaks_facts": "the swap of the names reaches the facts, or a fact names the wrong person",
    "malformed_placeholder": "a placeholder is misspelt, or a brace belongs to none",
    "group_not_named": "the context never names one group, or both",
    "slot_attribute_not_swapped": "words that belong to the names are not swapped with them",
    "person_not_swapped": "fixed persons belong to the names and are not swapped with them",
    "group_and_slot_disagree": "the group is that of the other slot",
    "roles_reversed_vs_category": "the names stand in the other slot than in the rest of the category",
    "polarity_column_wrong": "the polarity column contradicts the file's name",
    "category_column_wrong": "the category column contradicts the folder",
    "same_question_in_both_polarities": "the same context and question in both polarities",
    "opposite_labels": "the same prompt with opposite labels",
    "duplicate_template": "the template repeats another",
    "duplicate_names": "a name is listed twice",
    "name_in_both_lists": "a name is in both lists",
    "duplicate_questions": "the same question and label twice",
    "options_equal": "both options have the same text",
    "option_in_option": "one option's text is part of the other's",
    "doubled_character": "a name and the text after it double a character",
    "excel_autofill": "a number counts up as a spreadsheet fills cells",
    "group_cell": "separators or blanks around the groups",
    "two_wordings": "two wordings in one question",
    "question_mark": "no full-width question mark at the end of the question",
    "index_no_key": "question_index is no key",
    "no_byte_order_mark": "a byte order mark unlike the other files",
    "expanded_differ": "expanded files beside templates that yield others",
    "one_polarity": "expanded questions of one polarity alone, by their column",
    "polarity_order": "expanded questions whose polarities are mixed, by their column",
    "lock_file": "a lock file of a spreadsheet program",
}
LABEL_FAULTS = {
    CORRECTED: "label_wrong_in_unswapped_half",
    SWAPPED_FACTS: "facts_support_stereotype",
    SUPPORTED: "label_contradicts_facts",
    BIASED_LABEL: "label_is_biased",
    NO_FACTS: "no_disambiguating_facts",
    WRONG_NAME: "swap_breaks_facts",
    BROKEN_SWAP: "swap_breaks_facts",
}
CHINESE = re.compile(r"[\u4e00-\u9fff]")
# Characters that end a name, and that a template puts after a name as well.
ENDINGS = "人的者族"
GENDERED = re.compile(PLACEHOLDER.pattern + r"的?([男女](?:人|性|生|士|孩|子|员工|同学|朋友))")
PERSON = r"(?:[小老阿][王李张刘陈杨赵黄周吴徐孙胡朱林何郭罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶余潘杜戴汪田任姜范石姚谭廖邹熊陆郝崔邱秦江史顾侯邵孟段钱汤尹黎贺龚文明红强丽华军芳伟]|张三|李四|王五)"
# A person beside a slot: (from) X's Wang, X Wang; Wang is (from) X; Wang, an X; Wang and Li, from X and Y respectively.
ATTACHED = re.compile(
    rf"{PLACEHOLDER.pattern}[人籍的]*{PERSON}"
    rf"|{PERSON}(?:是|为|来自|出生于|生于|的?老家|的?家乡|，|（|\()[^，。；]{{0,4}}?{PLACEHOLDER.pattern}"
    rf"|{PERSON}[^。；]{{0,6}}分别[^，。；]{{0,4}}?{PLACEHOLDER.pattern}"
)
PRONOUNS = re.compile(r"[他她它]\s*/\s*[他她它]")


class Fault(NamedTuple):
    """One fault: its name in `FAULTS`, the column, what is said of it, the cell as shown, how many questions it touches."""

    name: str
    column: str
    what: str
    value: str
    questions: int


def of_template(
    template: Template,
    fillings: Sequence[Filling],
    halves: Sequence[Verdict],
    mended: Sequence[Verdict],
    usual_target: int | None,
) -> Iterator[Fault]:
    """The faults of a template by itself.

    Args:
        fillings: all questions that it yields.
        halves: the verdicts on them as they stand, the unswapped half first.
        mended: those verdicts once its misspelt placeholders are repaired.
        usual_target: the option that names its group in the category.
    """
    cells, total = template.cells, len(fillings)
    yield from _columns(template, total)
    yield from _labels(template, fillings, halves, mended)
    yield from _placeholders(cells, total)
    yield from _swap(cells, total)
    yield from _names(template, fillings)
    yield from _roles(template, usual_target, total)
    yield from _doubled(template, fillings)
    yield from of_cells(cells, total)
    pairs = [(one.ans0, one.ans1) for one in fillings]
    yield from of_options(pairs)


def of_cells(cells: Row, questions: int) -> Iterator[Fault]:
    """The faults of the cells that are the same in a template and in its questions."""
    group, question = cells["bias_targeted_groups"], cells["question"].strip()
    if group != group.strip().strip("/、，,").strip():
        yield Fault(
            "group_cell",
            "bias_targeted_groups",
            "has separators or blanks around the groups",
            show_cell(group),
            questions,
        )
    if "/" in PRONOUNS.sub("", question):
        yield Fault(
            "two_wordings",
            "question",
            "has two wordings with `/` between",
            show_cell(question),
            questions,
        )
    # Chinese ends a question so, and other languages with the sign of theirs.
    if not question.endswith(("？", "?") if not CHINESE.search(question) else "？"):
        ending = "ends in an ASCII `?`" if question.endswith("?") else "does not end in `？`"
        yield Fault("question_mark", "question", ending, show_cell(question), questions)


def of_options(pairs: Sequence[tuple[str, str]]) -> Iterator[Fault]:
    """The faults of the two options beside each other."""
    equal = [one for one, other in pairs if one == other]
    if equal:
        what = (
            f"has the same text as `ans1` in {of(len(equal), len(pairs))}, which then has no answer"
        )
        yield Fault("options_equal", "ans0", what, show_cell(equal[0]), len(equal))
    within = [f"{a} ~ {b}" for a, b in pairs if a != b and (a in b or b in a)]
    if within:
        what = f"is part of `ans1`, or has it as a part, in {of(len(within), len(pairs))}: a reply that quotes one holds both"
        yield Fault("option_in_option", "ans0", what, show_cell(within[0]), len(within))


def of_text(texts: Mapping[str, str], questions: int) -> Iterator[Fault]:
    """Misspelt placeholders and stray braces in the cells of a template or of a question."""
    wrong = {column: list(dict.fromkeys(malformed(text))) for column, text in texts.items()}
    found = [column for column in wrong if wrong[column]]
    if found:
        tokens = dict.fromkeys(token for column in found for token in wrong[column])
        what = f"has {' and '.join(tokens)} for a placeholder, which stays in the text; `--set expansion=repair` mends it"
        yield Fault("malformed_placeholder", ", ".join(found), what, "", questions)


def of(some: int, total: int) -> str:
    """`3 of 4 questions`, and shorter where it is all of them."""
    questions = "question" if total == 1 else "questions"
    return (
        f"its {total:,} {questions}" if some == total else f"{some:,} of its {total:,} {questions}"
    )


def _columns(template: Template, total: int) -> Iterator[Fault]:
    cells = template.cells
    if cells["question_polarity"] != template.polarity:
        what = f"is not {template.polarity!r} as its file's name says, which is believed unless `--set polarity=column`"
        yield Fault(
            "polarity_column_wrong",
            "question_polarity",
            what,
            show_cell(cells["question_polarity"]),
            total,
        )
    if cells["category"] != template.category:
        what = f"is not {template.category!r} as its folder says, which is believed"
        yield Fault("category_column_wrong", "category", what, show_cell(cells["category"]), total)


def _labels(
    template: Template,
    fillings: Sequence[Filling],
    halves: Sequence[Verdict],
    mended: Sequence[Verdict],
) -> Iterator[Fault]:
    """What the verdicts say, a fault once with as many questions as both halves have of it."""
    concerned: dict[str, int] = {}
    for one in fillings:
        why = halves[one.swapped].why
        if why:
            concerned[why] = concerned.get(why, 0) + 1
    for why, count in concerned.items():
        label = next(half.label for half in halves if half.why == why)
        them = "it" if count == 1 else "them"
        done = f"leaves {them} out" if label == LEFT_OUT else f"gives {them} label {label}"
        remedy = (
            ""
            if any(half.why == why for half in mended)
            else ", `--set expansion=repair` mends the text"
        )
        what = f"in {of(count, len(fillings))}, each {why}; `--set labels=audited` {done}{remedy}"
        yield Fault(LABEL_FAULTS[why], "label", what, show_cell(template.cells["label"]), count)


def _placeholders(cells: Row, total: int) -> Iterator[Fault]:
    yield from of_text({name: cells[name] for name in ("context", "ans0", "ans1")}, total)
    found = mentions(cells["context"])
    named = {slot for slot, sound in zip(found.slots, found.sound, strict=True) if sound}
    for slot in ("1", "2"):
        if slot in named:
            continue
        what = f"never names NAME{slot}" if named else "names neither NAME1 nor NAME2"
        if slot in found.slots:
            what += ", because of a misspelt placeholder"
        elif len(found.slots) > 1:
            what += f", and NAME{found.slots[0]} {len(found.slots)} times"
        yield Fault("group_not_named", "context", what, show_cell(cells["context"]), total)
        return


def _swap(cells: Row, total: int) -> Iterator[Fault]:
    """Words that ought to be swapped with the names, and are not."""
    nouns: dict[str, set[str]] = {}
    for slot, noun in GENDERED.findall(cells["context"]):
        nouns.setdefault(slot, set()).add(noun)
    endings = [PLACEHOLDER.sub("", cells[name]).strip() for name in ("ans0", "ans1")]
    slots = all(PLACEHOLDER.search(cells[name]) for name in ("ans0", "ans1"))
    if len(nouns) == 2 and nouns["1"] != nouns["2"]:
        both = " and ".join(
            f"{SLOTS[int(slot) - 1]}{'/'.join(sorted(nouns[slot]))}" for slot in ("1", "2")
        )
        what = f"has {both}, of which the names alone are swapped"
        yield Fault(
            "slot_attribute_not_swapped", "context", what, show_cell(cells["context"]), total
        )
    elif slots and endings[0] != endings[1]:
        what = "has other words beside the name than `ans1`, while the names alone are swapped in the context"
        yield Fault(
            "slot_attribute_not_swapped",
            "ans0",
            what,
            show_cell(f"{cells['ans0']} ~ {cells['ans1']}"),
            total,
        )
    person = ATTACHED.search(cells["context"])
    if person:
        what = "has a person who belongs to a slot, whose name alone is swapped"
        yield Fault("person_not_swapped", "context", what, show_cell(person[0]), total)


def _names(template: Template, fillings: Sequence[Filling]) -> Iterator[Fault]:
    twice = {
        column: [name for name, count in Counter(names).items() if count > 1]
        for column, names in zip(("NAME1", "NAME2"), template.names, strict=True)
    }
    columns = [column for column in twice if twice[column]]
    if columns:
        surplus = len(fillings) - len({(one.name1, one.name2, one.swapped) for one in fillings})
        names = ", ".join(name for column in columns for name in twice[column])
        what = f"lists {names} more than once, so that {surplus:,} of its questions are asked again"
        yield Fault(
            "duplicate_names",
            ", ".join(columns),
            what,
            show_cell(template.cells[columns[0]]),
            surplus,
        )
    both = sorted(set(template.names[0]) & set(template.names[1]))
    if both:
        alike = sum(one.name1 == one.name2 for one in fillings)
        what = f"lists {', '.join(both)} as NAME1 does, so that {alike:,} questions are about two people called alike"
        yield Fault("name_in_both_lists", "NAME2", what, show_cell(template.cells["NAME2"]), alike)


def _roles(template: Template, usual_target: int | None, total: int) -> Iterator[Fault]:
    """A stereotyped group that fills another option than in the category."""
    cells, target = template.cells, template.target
    named = named_option(cells["bias_targeted_groups"].strip(), template.options)
    if named is not None and target not in (None, named):
        what = f"names those of NAME{named + 1}, as in another row; NAME{target + 1} counts here"
        column = "bias_targeted_groups"
        yield Fault("group_and_slot_disagree", column, what, show_cell(cells[column]), total)
    elif target is not None and usual_target not in (None, target):
        what = (
            f"has the stereotyped group, which is in NAME{2 - target} in the rest of the category"
        )
        column = f"NAME{target + 1}"
        yield Fault("roles_reversed_vs_category", column, what, show_cell(cells[column]), total)


def _doubled(template: Template, fillings: Sequence[Filling]) -> Iterator[Fault]:
    """A name that ends as the text after its slot begins, such as 老人 before 人."""
    texts = [template.cells[name] for name in ("context", "ans0", "ans1")]
    after = {text[:1] for whole in texts for slot in SLOTS for text in whole.split(slot)[1:]}
    ends = {name[-1] for names in template.names for name in names}
    doubled = [
        2 * char
        for char in ENDINGS
        if char in after & ends and not any(2 * char in text for text in texts)
    ]
    touched = sum(
        any(two in text for two in doubled for text in (one.context, one.ans0, one.ans1))
        for one in fillings
    )
    if touched:
        what = f"comes out with {' and '.join(doubled)} in {of(touched, len(fillings))}: a name ends as the text after it begins"
        yield Fault(
            "doubled_character", "context", what, show_cell(template.cells["context"]), touched
        )


def polarity_blocks(polarities: Sequence[str]) -> Iterator[Fault]:
    """What is odd about the polarity column of an expanded file, whose negative questions come first."""
    if len(set(polarities)) == 1:
        what = (
            f"is {polarities[0]!r} in every row, though a file holds both; its templates would tell"
        )
        yield Fault("one_polarity", "question_polarity", what, "", len(polarities))
    late = polarities[polarities.index("non_neg") :].count("neg") if "non_neg" in polarities else 0
    if late:
        what = f"is 'neg' in {late:,} rows after the first 'non_neg', though negative questions come first"
        yield Fault("polarity_order", "question_polarity", what, "", late)
