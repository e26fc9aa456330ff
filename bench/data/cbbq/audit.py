"""Audit a CBBQ folder: list everything wrong or odd in it, and compare its size with the release.

The rules were derived from the ten categories of the release that were available. They hold no row
numbers and no sentences of the release; words that they need, such as surnames, are constants here.
"""

import csv
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from operator import attrgetter, itemgetter
from pathlib import Path

import pandas as pd

from bench.core.errors import BadInput, plain
from bench.data import audit, cbbq
from bench.data.audit import Finding, show_cell
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
    mentions,
)
from bench.data.cbbq.targets import (
    declared_option,
    named_option,
    target_option,
    unknown_target,
    usual_option,
)
from bench.data.cbbq.templates import (
    CATEGORIES,
    CONDITIONS,
    FILES,
    INSTANCE_COLUMNS,
    PLACEHOLDER,
    SLOTS,
    Filling,
    Template,
    expand,
    malformed,
    read,
)
from bench.data.readers import Row, read_csv, read_json_array

# Each fault and what it means, in the order of a summary.
FAULTS = {
    "refused": "refused by the loader",
    "label_wrong_in_unswapped_half": "the label is the stereotyped answer, the facts of the first "
    "half are against it",
    "facts_support_stereotype": "the facts of the swapped half support the stereotype",
    "label_contradicts_facts": "the facts are about the other person than the label",
    "label_is_biased": "the label is the stereotyped answer",
    "no_disambiguating_facts": "disambiguous without facts",
    "swap_breaks_facts": "the swap of the names reaches the facts, or a fact names the wrong "
    "person",
    "malformed_placeholder": "a placeholder is misspelt, or a brace belongs to none",
    "group_not_named": "the context never names one group, or both",
    "slot_attribute_not_swapped": "words that belong to the names are not swapped with them",
    "person_not_swapped": "fixed persons belong to the names and are not swapped with them",
    "group_and_slot_disagree": "the group is that of the other slot",
    "roles_reversed_vs_category": "the names stand in the other slot than in the rest of the "
    "category",
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
# Why a label cannot be trusted, and the fault that this is.
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
# Characters that end a name, and that a template also puts after a name.
ENDINGS = "人的者族"
GENDERED = re.compile(PLACEHOLDER.pattern + r"的?([男女](?:人|性|生|士|孩|子|员工|同学|朋友))")
PERSON = (
    r"(?:[小老阿][王李张刘陈杨赵黄周吴徐孙胡朱林何郭罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕苏卢"
    r"蒋蔡贾丁魏薛叶余潘杜戴汪田任姜范石姚谭廖邹熊陆郝崔邱秦江史顾侯邵孟段钱汤尹黎贺龚文明红强丽华军"
    r"芳伟]|张三|李四|王五)"
)
# A person next to a slot: (from) X's Wang, X Wang; Wang is (from) X; Wang, an X; Wang and Li, from
# X and Y respectively.
ATTACHED = re.compile(
    rf"{PLACEHOLDER.pattern}[人籍的]*{PERSON}"
    rf"|{PERSON}(?:是|为|来自|出生于|生于|的?老家|的?家乡|，|（|\()[^，。；]{{0,4}}?"
    rf"{PLACEHOLDER.pattern}"
    rf"|{PERSON}[^。；]{{0,6}}分别[^，。；]{{0,4}}?{PLACEHOLDER.pattern}"
)
PRONOUNS = re.compile(r"[他她它]\s*/\s*[他她它]")
# Columns by which a template repeats another; the wording of the third option does not count.
SAME_TEMPLATE = ("context", "NAME1", "NAME2", "question", "ans0", "ans1")
# Columns where a spreadsheet may have counted a number up, and how many rows make that likely.
FILLED = ("subcategory", "bias_targeted_groups", "source", "context", "NAME1", "NAME2")
SERIES = 3
NUMBER = re.compile(r"\d+")
LOCK = "~$"
TEXTS = ("context", "ans0", "ans1")

# Templates by condition and polarity, questions by condition, and distinct questions.
Numbers = tuple[int, ...]


@dataclass(frozen=True)
class RowCase:
    """A row of a file, with its category and the first two options of each of its questions."""

    file: str
    row: int
    category: str
    cells: Row
    options: Sequence[tuple[str, str]]

    def odd(
        self, fault: str, column: str, what: str, value: str = "", questions: int | None = None
    ) -> Finding:
        """Report a cell; `value` is the cell and `questions` all of the row unless given."""
        value = show_cell(value or self.cells[column])
        count = len(self.options) if questions is None else questions
        return Finding(self.file, self.row, column, "odd", plain(what), value, fault, count)

    def share(self, questions: int) -> str:
        """Write `3 of its 4 questions`, or `its 4 questions` for all of them."""
        total = len(self.options)
        part = "" if questions == total else f"{questions:,} of "
        return f"{part}its {total:,} {'question' if total == 1 else 'questions'}"


@dataclass(frozen=True)
class TemplateCase(RowCase):
    """A template and what the rules need.

    Attributes:
        fillings: its questions.
        checks: the label checks of its two halves, the unswapped one first.
        repaired: these checks once misspelt placeholders are repaired.
        usual_target: the option that names its group in the category.
    """

    template: Template
    fillings: Sequence[Filling]
    checks: Sequence[LabelCheck]
    repaired: Sequence[LabelCheck]
    usual_target: int | None


def check(folder: Path, **settings: str) -> pd.DataFrame:
    """List everything found in a folder.

    The data are audited as released, whatever the settings; with `expansion=strict` the table also
    lists what that refuses.

    Returns:
        One row per finding: `file`, `row`, `column`, `kind`, `what`, `value`, `fault`, `questions`.
        `kind` is `refused` (the loader refuses the file; its first error), `odd` (read, but worth a
        look) or `count` (the folder's numbers next to the release's). `row` counts templates from
        1; it is 0 for a whole file or folder. A template has at most one finding per fault, and
        `questions` says how many of its questions have it.

    Source: faults of the authors' files (their repository, commit 95eaf2e).
    """
    folder = Path(folder)
    return audit.to_table(_audit(folder, settings.get("expansion", "compat")), "questions")


def summary(findings: pd.DataFrame) -> pd.DataFrame:
    """Count the findings of `check` by fault, in the order of `FAULTS`.

    Returns:
        `fault`, `what`, `files`, `templates` (rows of files; 0 for faults of whole files) and
        `questions`. A question may have several faults.
    """
    rows = []
    for fault, what in FAULTS.items():
        of_fault = findings[findings.fault == fault]
        places = of_fault[of_fault.row > 0][["file", "row"]].drop_duplicates()
        questions = int(of_fault.questions.sum())
        rows.append((fault, what, of_fault.file.nunique(), len(places), questions))
    table = pd.DataFrame(rows, columns=["fault", "what", "files", "templates", "questions"])
    return table[table.files > 0].reset_index(drop=True)


def _audit(folder: Path, expansion: str) -> Iterator[Finding]:
    try:
        if not cbbq.files(folder):
            what = f"the folder holds no data of {cbbq.TITLE}; expected {cbbq.LAYOUT}"
            yield Finding("", 0, "", "refused", what, fault="refused")
    except (BadInput, OSError) as error:
        yield _refused(folder, folder, error)
    try:
        known = cbbq.categories_of(folder)
    except BadInput:  # reported above
        known = CATEGORIES
    root = cbbq.root(folder, known)
    numbers: dict[str, Numbers] = {}
    for category in known:
        parts = [_Condition(folder, root / category / name, expansion) for name in CONDITIONS]
        for part in parts:
            yield from part.findings()
        templates = [
            sum(template.polarity == polarity for template in part.templates)
            for part in parts
            for polarity in FILES
        ]
        distinct = {question[:-1] for part in parts for question in part.questions}
        numbers[category] = (*templates, *(len(part.questions) for part in parts), len(distinct))
    for path in sorted(root.rglob(f"{LOCK}*")):
        what = "is a lock file that a spreadsheet program left there, and is not read"
        yield _odd(audit.file_name(path, folder), "lock_file", what)
    yield from _counts(numbers)


class _Condition:
    """The files of one condition of a category: `findings` reads and audits them."""

    def __init__(self, folder: Path, place: Path, expansion: str) -> None:
        self.folder, self.place, self.expansion = folder, place, expansion
        self.category, self.condition = place.parent.name, place.name
        names = (*FILES.values(), f"{place.name}.csv", f"{place.name}.json")
        paths = [place / name for name in names if (place / name).is_file()]
        self.paths = [path for path in paths if path.name in FILES.values()]
        self.expanded = [path for path in paths if path not in self.paths]
        self.templates: list[Template] = []
        # All that a model sees of each question, and its label at the end.
        self.questions: list[tuple[str, ...]] = []

    def findings(self) -> Iterator[Finding]:
        """Audit the templates, or the expanded file where there are none."""
        bare = [path for path in self.paths if path.read_bytes()[:3] != b"\xef\xbb\xbf"]
        for path in bare if len(bare) < len(self.paths) else ():
            what = "has no byte order mark, while the file beside it has one"
            yield _odd(audit.file_name(path, self.folder), "no_byte_order_mark", what)
        complete = len(self.paths) == 2
        for path in self.paths:
            try:
                for template in read(path, self.category, self.condition):
                    self.templates.append(template)  # keeps those before the first refused one
                if self.expansion == "strict":
                    list(read(path, self.category, self.condition, self.expansion))
            except (BadInput, OSError) as error:
                complete = complete and self.expansion == "strict"
                yield _refused(path, self.folder, error)
        if self.templates or not self.expanded:
            yield from self._in_templates(complete)
        else:
            yield from self._in_instances(self.expanded[0])
        yield from _repeated_questions(audit.file_name(self.place, self.folder), self.questions)

    def _in_templates(self, complete: bool) -> Iterator[Finding]:
        for template in self.templates:
            if template.target is None:
                group = template.cells["bias_targeted_groups"]
                error = BadInput(unknown_target(template.place, group, template.category))
                yield _refused(template.path, self.folder, error)
        cases = _cases(self.templates, self.folder)
        rows = [
            case.cells | {"context": one.context, "ans0": one.ans0, "ans1": one.ans1}
            for case in cases
            for one in case.fillings
        ]
        self.questions = [_question(row) for row in rows]
        for case in cases:
            for rule in TEMPLATE_RULES:
                yield from rule(case)
        yield from _repeated_templates(cases)
        for _, of_file in groupby(cases, key=attrgetter("file")):
            cases_of_file = list(of_file)
            yield from _series(cases_of_file)
            yield from _index(cases_of_file)
        for path in self.expanded if complete else ():
            yield from _compare(audit.file_name(path, self.folder), path, rows)

    def _in_instances(self, path: Path) -> Iterator[Finding]:
        file = audit.file_name(path, self.folder)
        try:
            rows = _read(path)
            list(cbbq.from_instances([path], self.category, self.condition))
        except (BadInput, OSError) as error:
            yield _refused(path, self.folder, error)
            rows = []
        self.questions = [_question(row) for row in rows]
        declared = declared_option(path, self.category)
        # A fault is reported once for each cell that has it.
        found: dict[tuple[str, ...], list[Finding]] = defaultdict(list)
        for number, row in enumerate(rows, start=1):
            case = RowCase(file, number, self.category, row, [(row["ans0"], row["ans1"])])
            findings = [finding for rule in ROW_RULES for finding in rule(case)]
            if self.condition == "disambiguous":
                findings += _biased_label(case, declared)
            cells = itemgetter("question_index", "question", "bias_targeted_groups")(row)
            for finding in findings:
                found[finding.fault, finding.column, *cells].append(finding)
        for first, *more in found.values():
            count = f" (and {len(more):,} more of the same question)" if more else ""
            yield first._replace(what=first.what + count, items=1 + len(more))
        yield from _polarities(file, [row["question_polarity"] for row in rows])


def _cases(templates: Sequence[Template], folder: Path) -> list[TemplateCase]:
    targets = Counter(one.target for one in templates if one.target is not None)
    most_common = targets.most_common(1)[0][0] if targets else None
    cases = []
    for template, checks, repaired in zip(
        templates, check_labels(templates), check_labels(templates, "repair"), strict=True
    ):
        group = template.cells["bias_targeted_groups"].strip()
        usual = (template.declared, usual_option(template.category, group), most_common)
        fillings = list(expand(template))
        case = TemplateCase(
            audit.file_name(template.path, folder),
            template.record,
            template.category,
            template.cells,
            [(filling.ans0, filling.ans1) for filling in fillings],
            template,
            fillings,
            checks,
            repaired,
            next((option for option in usual if option is not None), None),
        )
        cases.append(case)
    return cases


# Rules for one row, of a template or of an expanded question.


def _placeholders(case: RowCase) -> Iterator[Finding]:
    tokens = {column: malformed(case.cells[column]) for column in TEXTS}
    columns = [column for column in TEXTS if tokens[column]]
    if columns:
        distinct = dict.fromkeys(token for column in columns for token in tokens[column])
        what = (
            f"has {' and '.join(distinct)} for a placeholder, which stays in the text; "
            "`--set expansion=repair` fixes it"
        )
        finding = case.odd("malformed_placeholder", columns[0], what)
        yield finding._replace(column=", ".join(columns), value="")


def _cells(case: RowCase) -> Iterator[Finding]:
    group, question = case.cells["bias_targeted_groups"], case.cells["question"].strip()
    if group != group.strip().strip("/、，,").strip():
        what = "has separators or blanks around the groups"
        yield case.odd("group_cell", "bias_targeted_groups", what)
    if "/" in PRONOUNS.sub("", question):
        yield case.odd("two_wordings", "question", "has two wordings with `/` between", question)
    # Other languages than Chinese end a question with their own sign.
    if not question.endswith("？" if CHINESE.search(question) else ("？", "?")):
        what = "ends in an ASCII `?`" if question.endswith("?") else "does not end in `？`"
        yield case.odd("question_mark", "question", what, question)


def _options(case: RowCase) -> Iterator[Finding]:
    equal = [first for first, second in case.options if first == second]
    if equal:
        what = f"has the same text as `ans1` in {case.share(len(equal))}, which then has no answer"
        yield case.odd("options_equal", "ans0", what, equal[0], len(equal))
    within = [f"{a} ~ {b}" for a, b in case.options if a != b and (a in b or b in a)]
    if within:
        what = (
            f"is part of `ans1`, or has it as a part, in {case.share(len(within))}: "
            "a reply that quotes one holds both"
        )
        yield case.odd("option_in_option", "ans0", what, within[0], len(within))


def _category(case: RowCase) -> Iterator[Finding]:
    if case.cells["category"] != case.category:
        what = f"is not {case.category!r} as its folder says, which is believed"
        yield case.odd("category_column_wrong", "category", what)


def _biased_label(case: RowCase, declared: int | None) -> Iterator[Finding]:
    """Report an expanded disambiguous question whose label is the stereotyped answer."""
    cells = case.cells
    options = (frozenset([cells["ans0"]]), frozenset([cells["ans1"]]))
    target = target_option(case.category, cells["bias_targeted_groups"].strip(), options, declared)
    if target is not None:
        biased = target if cells["question_polarity"] == "neg" else 1 - target
        if cells["label"] == str(biased):
            what = f"a question {BIASED_LABEL}; `--set labels=audited` leaves it out"
            yield case.odd("label_is_biased", "label", what)


# Rules for one template.


def _polarity(case: TemplateCase) -> Iterator[Finding]:
    polarity = case.template.polarity
    if case.cells["question_polarity"] != polarity:
        what = (
            f"is not {polarity!r} as its file's name says, which is believed unless "
            "`--set polarity=column`"
        )
        yield case.odd("polarity_column_wrong", "question_polarity", what)


def _labels(case: TemplateCase) -> Iterator[Finding]:
    """Report each reason of the label checks once, with the questions of both halves."""
    reasons = Counter(case.checks[filling.swapped].reason for filling in case.fillings)
    del reasons[""]
    for reason, count in reasons.items():
        label = next(check.label for check in case.checks if check.reason == reason)
        them = "it" if count == 1 else "them"
        done = f"leaves {them} out" if label == LEFT_OUT else f"gives {them} label {label}"
        stays = any(check.reason == reason for check in case.repaired)
        remedy = "" if stays else ", `--set expansion=repair` fixes the text"
        what = f"in {case.share(count)}, each {reason}; `--set labels=audited` {done}{remedy}"
        yield case.odd(LABEL_FAULTS[reason], "label", what, questions=count)


def _named_groups(case: TemplateCase) -> Iterator[Finding]:
    found = mentions(case.cells["context"])
    named = {slot for slot, sound in zip(found.slots, found.sound, strict=True) if sound}
    missing = next((slot for slot in ("1", "2") if slot not in named), None)
    if missing:
        what = f"never names NAME{missing}" if named else "names neither NAME1 nor NAME2"
        if missing in found.slots:
            what += ", because of a misspelt placeholder"
        elif len(found.slots) > 1:
            what += f", and NAME{found.slots[0]} {len(found.slots)} times"
        yield case.odd("group_not_named", "context", what)


def _swap(case: TemplateCase) -> Iterator[Finding]:
    """Report words that should be swapped with the names, and are not."""
    context, options = case.cells["context"], [case.cells["ans0"], case.cells["ans1"]]
    nouns: dict[str, set[str]] = {"1": set(), "2": set()}
    for slot, noun in GENDERED.findall(context):
        nouns[slot].add(noun)
    endings = {PLACEHOLDER.sub("", option).strip() for option in options}
    if all(nouns.values()) and nouns["1"] != nouns["2"]:
        texts = [slot + "/".join(sorted(nouns[k])) for k, slot in zip("12", SLOTS, strict=True)]
        what = f"has {' and '.join(texts)}, of which the names alone are swapped"
        yield case.odd("slot_attribute_not_swapped", "context", what)
    elif len(endings) == 2 and all(PLACEHOLDER.search(option) for option in options):
        what = (
            "has other words beside the name than `ans1`, while the names alone are swapped in "
            "the context"
        )
        yield case.odd("slot_attribute_not_swapped", "ans0", what, " ~ ".join(options))
    person = ATTACHED.search(context)
    if person:
        what = "has a person who belongs to a slot, whose name alone is swapped"
        yield case.odd("person_not_swapped", "context", what, person[0])


def _names(case: TemplateCase) -> Iterator[Finding]:
    lists = dict(zip(("NAME1", "NAME2"), case.template.names, strict=True))
    repeated = {
        column: [name for name, count in Counter(names).items() if count > 1]
        for column, names in lists.items()
    }
    columns = [column for column in repeated if repeated[column]]
    if columns:
        distinct = {(one.name1, one.name2, one.swapped) for one in case.fillings}
        surplus = len(case.fillings) - len(distinct)
        names = ", ".join(name for column in columns for name in repeated[column])
        what = f"lists {names} more than once, so that {surplus:,} of its questions are asked again"
        finding = case.odd("duplicate_names", columns[0], what, questions=surplus)
        yield finding._replace(column=", ".join(columns))
    both = sorted(set(lists["NAME1"]) & set(lists["NAME2"]))
    if both:
        alike = sum(filling.name1 == filling.name2 for filling in case.fillings)
        what = (
            f"lists {', '.join(both)} as NAME1 does, so that {alike:,} questions are about two "
            "people called alike"
        )
        yield case.odd("name_in_both_lists", "NAME2", what, questions=alike)


def _roles(case: TemplateCase) -> Iterator[Finding]:
    """Report a stereotyped group that fills another option than in the category."""
    target = case.template.target
    if target is None:
        return
    named = named_option(case.cells["bias_targeted_groups"].strip(), case.template.options)
    if named not in (None, target):
        what = f"names those of NAME{2 - target}, as in another row; NAME{target + 1} counts here"
        yield case.odd("group_and_slot_disagree", "bias_targeted_groups", what)
    elif case.usual_target not in (None, target):
        what = (
            f"has the stereotyped group, which is in NAME{2 - target} in the rest of the category"
        )
        yield case.odd("roles_reversed_vs_category", f"NAME{target + 1}", what)


def _doubled(case: TemplateCase) -> Iterator[Finding]:
    """Report a name that ends as the text after its slot begins, such as 老人 before 人."""
    texts = [case.cells[column] for column in TEXTS]
    after = {part[:1] for text in texts for slot in SLOTS for part in text.split(slot)[1:]}
    ends = {name[-1] for names in case.template.names for name in names}
    doubled = [
        2 * char
        for char in ENDINGS
        if char in after & ends and not any(2 * char in text for text in texts)
    ]
    count = sum(
        any(pair in text for pair in doubled for text in (one.context, one.ans0, one.ans1))
        for one in case.fillings
    )
    if count:
        what = (
            f"comes out with {' and '.join(doubled)} in {case.share(count)}: "
            "a name ends as the text after it begins"
        )
        yield case.odd("doubled_character", "context", what, questions=count)


RowRule = Callable[[RowCase], Iterator[Finding]]
TemplateRule = Callable[[TemplateCase], Iterator[Finding]]
ROW_RULES: tuple[RowRule, ...] = (_placeholders, _cells, _options, _category)
# In the order in which the findings of a template are listed.
TEMPLATE_RULES: tuple[TemplateRule, ...] = (
    _polarity,
    _category,
    _labels,
    _placeholders,
    _named_groups,
    _swap,
    _names,
    _roles,
    _doubled,
    _cells,
    _options,
)


# Rules between the templates or rows of a file.


def _repeated_templates(cases: Sequence[TemplateCase]) -> Iterator[Finding]:
    """Report templates that repeat an earlier one, or whose question is in both polarities."""
    first: dict[tuple[str, ...], TemplateCase] = {}
    asked: dict[tuple[str, ...], list[TemplateCase]] = defaultdict(list)
    for case in cases:
        asked[_asked(case)].append(case)
    for case in cases:
        polarity = case.template.polarity
        key = (polarity, *(case.cells[name].strip() for name in SAME_TEMPLATE))
        earlier = first.setdefault(key, case)
        if earlier is not case:
            same = earlier.cells["ans2"] == case.cells["ans2"]
            what = f"repeats row {earlier.row}{'' if same else ', with another third option'}"
            yield case.odd("duplicate_template", "question", what)._replace(column="")
        opposite = [one for one in asked[_asked(case)] if one.template.polarity != polarity]
        if opposite:
            what = (
                "is asked of the same context in the other polarity's file, "
                f"row {', '.join(str(one.row) for one in opposite)}: one of them is not negated"
            )
            question = case.cells["question"].strip()
            yield case.odd("same_question_in_both_polarities", "question", what, question)


def _asked(case: RowCase) -> tuple[str, str]:
    return case.cells["context"].strip(), case.cells["question"].strip()


def _series(cases: Sequence[TemplateCase]) -> Iterator[Finding]:
    """Report cells that differ in one number, which goes up by one from row to row.

    The first cell of such a series is not reported.
    """
    columns: dict[int, str] = {}
    for column in FILLED:
        rows: dict[tuple[str, str], dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for k, case in enumerate(cases):
            cell = case.cells[column]
            for match in NUMBER.finditer(cell):
                rows[cell[: match.start()], cell[match.end() :]][int(match[0])].append(k)
        for values in rows.values():
            # In consecutive numbers, number minus rank is constant.
            for _, run in groupby(enumerate(sorted(values)), key=lambda pair: pair[1] - pair[0]):
                filled = [values[value] for _, value in run]
                if len(filled) >= SERIES and filled == sorted(filled):
                    for k in chain.from_iterable(filled[1:]):
                        columns.setdefault(k, column)
    what = "counts a number up from row to row, as a spreadsheet fills cells"
    for k, column in sorted(columns.items()):
        yield cases[k].odd("excel_autofill", column, what)


def _index(cases: Sequence[TemplateCase]) -> Iterator[Finding]:
    """Report a column `question_index` that does not number the templates."""
    cells = [case.cells["question_index"].strip() for case in cases]
    numbers = [int(cell) for cell in cells if cell.isdecimal()]
    repeated = sum(count > 1 for count in Counter(numbers).values())
    gaps = len(set(range(1, max(numbers, default=0) + 1)) - set(numbers))
    wrong = next((cell for cell in cells if not cell.isdecimal()), None)
    reasons = [
        f"holds {show_cell(wrong)}" if wrong is not None else "",
        f"has {_several(repeated)} more than once" if repeated else "",
        f"leaves out {_several(gaps)}" if gaps else "",
        "is not in order" if numbers != sorted(numbers) else "",
    ]
    if any(reasons):
        what = f"{', '.join(filter(None, reasons))}: it is no key"
        yield _odd(cases[0].file, "index_no_key", what, "question_index")


def _several(numbers: int) -> str:
    return "1 number" if numbers == 1 else f"{numbers:,} numbers"


def _polarities(file: str, polarities: Sequence[str]) -> Iterator[Finding]:
    """Report the polarities of an expanded file, whose negative questions should come first."""
    column = "question_polarity"
    if len(set(polarities)) == 1:
        what = (
            f"is {polarities[0]!r} in every row, though a file holds both; its templates would tell"
        )
        yield _odd(file, "one_polarity", what, column, len(polarities))
    late = polarities[polarities.index("non_neg") :].count("neg") if "non_neg" in polarities else 0
    if late:
        what = (
            f"is 'neg' in {late:,} rows after the first 'non_neg', though negative questions come "
            "first"
        )
        yield _odd(file, "polarity_order", what, column, late)


def _compare(file: str, path: Path, wanted: Sequence[Row]) -> Iterator[Finding]:
    """Report an expanded file that differs from what the templates beside it yield."""
    try:
        rows = _read(path)
    except (BadInput, OSError) as error:
        what = f"cannot be compared with the templates beside it: {audit.error_reason(path, error)}"
        yield _odd(file, "expanded_differ", what)
        return
    if len(rows) != len(wanted):
        what = (
            f"has {len(rows):,} rows, and the templates beside it, which are read, "
            f"yield {len(wanted):,}"
        )
        yield _odd(file, "expanded_differ", what, items=abs(len(rows) - len(wanted)))
        return
    differing = [
        (number, column, row[column])
        for number, (row, cells) in enumerate(zip(rows, wanted, strict=True), start=1)
        for column in INSTANCE_COLUMNS
        if row[column] != cells[column]
    ]
    if differing:
        number, column, value = differing[0]
        count = len({number for number, *_ in differing})
        what = (
            "differs from what the templates beside it, which are read, yield; "
            f"in {count:,} rows, this is the first"
        )
        finding = _odd(file, "expanded_differ", what, column, count)
        yield finding._replace(row=number, value=show_cell(value))


def _repeated_questions(place: str, questions: Sequence[tuple[str, ...]]) -> Iterator[Finding]:
    """Report questions that occur twice in a condition, which is one file of the release."""
    surplus = len(questions) - len(set(questions))
    if surplus:
        what = (
            f"{surplus:,} of its {len(questions):,} questions repeat an earlier one with its "
            "label; `--set dedupe=yes` leaves them out"
        )
        yield _odd(place, "duplicate_questions", what, items=surplus)
    labels: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for *text, label in questions:
        labels[tuple(text)].append(label)
    opposite = [found for found in labels.values() if len(set(found)) > 1]
    if opposite:
        what = f"{len(opposite):,} prompts occur with opposite labels"
        yield _odd(place, "opposite_labels", what, "label", sum(map(len, opposite)))


def _odd(file: str, fault: str, what: str, column: str = "", items: int = 0) -> Finding:
    """Report a whole file or folder."""
    return Finding(file, 0, column, "odd", plain(what), "", fault, items)


def _counts(numbers: Mapping[str, Numbers]) -> Iterator[Finding]:
    """Report the numbers of each category and of all, next to the release's where it has them."""
    with Path(__file__).with_name("release.csv").open(encoding="utf-8", newline="") as stream:
        released = {name: tuple(map(int, row)) for name, *row in list(csv.reader(stream))[1:]}
    pairs: list[tuple[str, Numbers, str]] = [
        (f"category {name}", found, "the release has no such category")
        for name, found in numbers.items()
        if name not in released
    ]
    comparison = ""
    if any(sum(numbers[name][4:6]) for name in CATEGORIES):
        pairs += [
            (f"category {name}", numbers[name], _against(numbers[name], released[name]))
            for name in CATEGORIES
        ]
        comparison = _against(_total(numbers.values()), _total(released.values()))
    pairs.append(("all categories", _total(numbers.values()), comparison))
    for name, found, told in pairs:
        what = "; ".join(filter(None, (f"{name}: {_numbers_text(found)}", told)))
        yield Finding("", 0, "", "count", what, str(sum(found[4:6])))


def _total(numbers: Iterable[Numbers]) -> Numbers:
    """Add up categories, which have no text in common."""
    return tuple(map(sum, zip(*numbers, strict=True)))


def _against(found: Numbers, released: Numbers) -> str:
    same = found == released
    return "as the release has" if same else f"the release has {_numbers_text(released)}"


def _numbers_text(numbers: Numbers) -> str:
    a, b, c, d, ambiguous, disambiguous, distinct = numbers
    return (
        f"{a + b + c + d:,} templates ({a:,} + {b:,} ambiguous, {c:,} + {d:,} disambiguous), "
        f"{ambiguous + disambiguous:,} questions ({ambiguous:,} + {disambiguous:,}), "
        f"{distinct:,} distinct"
    )


def _refused(path: Path, folder: Path, error: Exception) -> Finding:
    """Report what the loader says, with the row and the column that it names."""
    reason = audit.error_reason(path, error)
    row = re.match(r"row (\d+)(?: (\(header\)))?[,:] ", reason)
    reason = reason[row.end() :] if row else reason
    column = re.match(r"(?:column|field) `(\w+)`(?:: )?", reason)
    reason = reason[column.end() :] if column else reason
    file = audit.file_name(path, folder) if path != folder else ""
    number = int(row[1]) if row and not row[2] else 0
    name = column[1] if column else ""
    return Finding(file, number, name, "refused", reason.lstrip(": "), "", "refused")


def _read(path: Path) -> list[Row]:
    return (read_csv if path.suffix == ".csv" else read_json_array)(path, INSTANCE_COLUMNS)


def _question(row: Row) -> tuple[str, ...]:
    columns = ("context", "question", "ans0", "ans1", "ans2", "label")
    return tuple(row[column] for column in columns)
