"""Audit a CBBQ folder: list everything wrong or odd in it, and compare its size with the release.

We derived the rules from the ten available categories of the release. They hold no row numbers and
no sentences of the release; the words that they need, for example surnames, are constants here.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from operator import attrgetter, itemgetter
from pathlib import Path

import pandas as pd

from bench.benchmarks.cbbq import METADATA, labels
from bench.benchmarks.cbbq import items as cbbq
from bench.benchmarks.cbbq import templates as cbbq_templates
from bench.benchmarks.cbbq.labels import LEFT_OUT, LabelCheck, check_labels
from bench.benchmarks.cbbq.templates import (
    CATEGORIES,
    CONDITIONS,
    FILES,
    INSTANCE_COLUMNS,
    PLACEHOLDER,
    SLOTS,
    TEXTS,
    Template,
)
from bench.core.cells import to_whole_number
from bench.core.errors import BadInput, plain
from bench.data import audit
from bench.data.audit import Finding, show_cell
from bench.data.dataset import composed
from bench.data.readers import Row, read_table

# Each fault and its meaning.
FAULTS: dict[str, str] = dict(
    pd.read_csv(Path(__file__).with_name("faults.csv")).itertuples(index=False, name=None)
)
# The fault for each reason why a label is wrong.
LABEL_FAULTS = {
    labels.CORRECTED: "label_wrong_in_unswapped_half",
    labels.SWAPPED_FACTS: "facts_support_stereotype",
    labels.SUPPORTED: "label_contradicts_facts",
    labels.BIASED_LABEL: "label_is_biased",
    labels.NO_FACTS: "no_disambiguating_facts",
    labels.WRONG_NAME: "swap_breaks_facts",
    labels.BROKEN_SWAP: "swap_breaks_facts",
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
# A person next to a slot, for example "Wang from X", "Wang is X", or "Wang and Li, from X and Y".
ATTACHED = re.compile(
    rf"{PLACEHOLDER.pattern}[人籍的]*{PERSON}"
    rf"|{PERSON}(?:是|为|来自|出生于|生于|的?老家|的?家乡|，|（|\()[^，。；]{{0,4}}?"
    rf"{PLACEHOLDER.pattern}"
    rf"|{PERSON}[^。；]{{0,6}}分别[^，。；]{{0,4}}?{PLACEHOLDER.pattern}"
)
PRONOUNS = re.compile(r"[他她它]\s*/\s*[他她它]")
# Columns in which a spreadsheet may have counted a number up.
FILLED = ("subcategory", "bias_targeted_groups", "source", "context", "NAME1", "NAME2")
# From this many consecutive numbers on, we take them for counted up.
SERIES = 3
NUMBER = re.compile(r"(?<!\d)\d{1,15}(?!\d)")
# The place of an error in a message of the loader.
PLACE = re.compile(
    r"(?:row (?P<row>\d+)(?P<header> \(header\))?[,:] )?(?:(?:column|field) `(?P<column>\w+)`)?"
)
# The columns of a question that a model sees, and its label.
ASKED = ("context", "question", "ans0", "ans1", "ans2", "label")
NAMES = itemgetter("name1", "name2", "swapped")


@dataclass(frozen=True)
class Case:
    """A row of a file with the values that the rules need.

    Attributes:
        rows: its questions, as in an expanded file.
        checks: their label checks, counted.
        template: None for a row of an expanded file.
        usual: the option that names its group in the category.
    """

    file: str
    row: int
    category: str
    cells: Row
    rows: Sequence[Row]
    checks: Mapping[LabelCheck, int]
    template: Template | None = None
    usual: int | None = None

    def odd(
        self,
        fault: str,
        column: str,
        detail: str = "",
        value: str | None = None,
        questions: int | None = None,
    ) -> Finding:
        """Report a cell; `value` is the cell and `questions` all of the row unless given."""
        value = show_cell(self.cells[column] if value is None else value)
        count = len(self.rows) if questions is None else questions
        return _odd(self.file, fault, detail, column, count)._replace(row=self.row, value=value)


def check(folder: Path, **settings: str) -> pd.DataFrame:
    """List everything found in a folder, in the columns of `Finding`.

    We audit the data as released, whatever the settings; with `expansion=strict` the table also
    lists the rows that this setting refuses. A template has at most one finding per fault, and
    `questions` is the number of its questions with this fault.

    Source: faults of the authors' files (their repository, commit 95eaf2e).
    """
    findings = _audit(Path(folder), settings.get("expansion", "compat"))
    return audit.to_table(findings, "questions")


def _audit(folder: Path, expansion: str) -> Iterator[Finding]:
    known: Sequence[str] = CATEGORIES
    table, root = None, folder
    try:
        table = cbbq.single_table(folder)
        known = cbbq.categories_of(folder)
        if not cbbq.files(folder):
            what = f"the folder holds no data of {METADATA.title}; expected {METADATA.layout}"
            yield Finding("", 0, "", "refused", what, fault="refused")
    except (BadInput, OSError) as error:
        yield _refused(folder, folder, error)
    if not table and folder.is_dir():
        root = cbbq.root(folder, known)
    numbers: dict[str, Counter[str]] = {}
    for category in known:
        numbers[category], texts = Counter(), set()
        for condition in CONDITIONS:
            place = root / category / condition
            findings, templates, rows = _condition(folder, place, expansion, table)
            yield from findings
            numbers[category].update(f"{condition}_{row.polarity}" for row in templates)
            numbers[category][condition] = len(rows)
            texts |= {tuple(row[column] for column in ASKED[:-1]) for row in rows}
        numbers[category]["distinct"] = len(texts)
    for path in sorted(root.rglob("~$*")):
        yield _odd(audit.file_name(path, folder), "lock_file")
    yield from _counts(numbers)


def _condition(
    folder: Path, place: Path, expansion: str, table: Path | None
) -> tuple[list[Finding], list[Template], list[Row]]:
    """Audit the templates of a condition of a category, or the expanded file if there are none.

    Args:
        table: the single table of all templates, if the folder has one.

    Returns:
        The findings, the readable templates, and the questions.
    """
    category, condition = place.parent.name, place.name
    paths = [path for path in (place / name for name in FILES.values()) if path.is_file()]
    paths = [table] if table else paths
    bare = [path for path in paths if path.read_bytes()[:3] != b"\xef\xbb\xbf"]
    findings = [
        _odd(audit.file_name(path, folder), "no_byte_order_mark")
        for path in (bare if len(bare) < len(paths) else ())
    ]
    templates: list[Template] = []
    complete = bool(table) or len(paths) == 2
    for path in paths:
        try:
            for template in cbbq_templates.read(path, category, condition):
                templates.append(template)  # keeps those before the first refused one
            if expansion == "strict":
                list(cbbq_templates.read(path, category, condition, expansion))
        except (BadInput, OSError) as error:
            complete = complete and expansion == "strict"
            findings.append(_refused(path, folder, error))
    expanded = [place / f"{condition}{suffix}" for suffix in (".csv", ".json")]
    expanded = [path for path in expanded if path.is_file()]
    rows: list[Row] = []
    if expanded and not templates:
        findings += _in_instances(expanded[0], folder, rows)
    else:
        findings += _in_templates(templates, folder, rows)
        for path in expanded if complete else ():
            findings += _compare(audit.file_name(path, folder), path, rows)
    file = audit.file_name(table or place, folder)
    questions = pd.DataFrame(rows, columns=list(ASKED))
    if surplus := int(questions.duplicated().sum()):
        detail = f"{surplus:,} of {len(questions):,}; `--set dedupe=yes` leaves them out"
        findings.append(_odd(file, "duplicate_questions", detail, items=surplus))
    labels_of = questions.groupby(list(ASKED[:-1])).label.agg(["nunique", "size"])
    opposite = labels_of[labels_of["nunique"] > 1]
    if len(opposite):
        detail = f"{len(opposite):,} prompts"
        findings.append(_odd(file, "opposite_labels", detail, "label", int(opposite["size"].sum())))
    return findings, templates, rows


def _in_templates(
    templates: Sequence[Template], folder: Path, questions: list[Row]
) -> Iterator[Finding]:
    targets: dict[str, Counter[int]] = defaultdict(Counter)
    for template in templates:
        if template.target is None:
            place = (template.place, template.group, template.category)
            yield _refused(template.path, folder, cbbq_templates.unknown_target(*place))
        else:
            targets[template.group][template.target] += 1
    cases = []
    for template, checks in zip(templates, check_labels(templates), strict=True):
        usual = template.declared
        if usual is None and targets[template.group]:
            usual = targets[template.group].most_common(1)[0][0]
        rows = [row for _, row in cbbq_templates.expand([template])]
        questions += rows
        case = Case(
            audit.file_name(template.path, folder),
            template.cells.number,
            template.category,
            template.cells,
            rows,
            Counter(checks[row["swapped"] == "True"] for row in rows),
            template,
            usual,
        )
        cases.append(case)
    yield from chain.from_iterable(map(_row_faults, cases))
    yield from _repeated_templates(cases)
    for _, of_file in groupby(cases, key=attrgetter("file")):
        yield from _file_faults(list(of_file))


def _in_instances(path: Path, folder: Path, questions: list[Row]) -> Iterator[Finding]:
    file, category = audit.file_name(path, folder), composed(path.parents[1].name)
    try:
        rows = read_table(path, INSTANCE_COLUMNS)
        audited = list(cbbq.from_instances([path], category, path.stem))
    except (BadInput, OSError) as error:
        yield _refused(path, folder, error)
        return
    questions += rows
    # A fault is reported once for each cell that has it.
    by_cell: dict[tuple[str, ...], list[Finding]] = defaultdict(list)
    for row, (question, reason) in zip(rows, audited, strict=True):
        case = Case(file, row.number, category, row, [row], {LabelCheck(question.label, reason): 1})
        cells = itemgetter("question_index", "question", "bias_targeted_groups")(row)
        for finding in _row_faults(case):
            by_cell[finding.fault, finding.column, *cells].append(finding)
    for first, *more in by_cell.values():
        count = f" (and {len(more):,} more of the same question)" if more else ""
        yield first._replace(what=first.what + count, items=1 + len(more))
    polarities = [row["question_polarity"] for row in rows]
    if len(set(polarities)) == 1:
        yield _odd(file, "one_polarity", polarities[0], "question_polarity", len(rows))
    elif polarities and (late := polarities[polarities.index("non_neg") :].count("neg")):
        yield _odd(file, "polarity_order", "", "question_polarity", late)


# The rules for a row


def _row_faults(case: Case) -> Iterator[Finding]:
    cells, template = case.cells, case.template
    if template and cells["question_polarity"] != template.polarity:
        detail = "the name is believed unless `--set polarity=column`"
        yield case.odd("polarity_column_wrong", "question_polarity", detail)
    if cells["category"] != case.category:
        detail = f"{case.category!r}, which is believed"
        yield case.odd("category_column_wrong", "category", detail)
    for (label, reason), count in case.checks.items():
        if reason:
            done = "leaves them out" if label == LEFT_OUT else f"gives them label {label}"
            detail = f"`--set labels=audited` {done}"
            yield case.odd(LABEL_FAULTS[reason], "label", detail, questions=count)
    tokens = {column: cbbq_templates.malformed(cells[column]) for column in TEXTS}
    if any(tokens.values()):
        distinct = " and ".join(dict.fromkeys(chain(*tokens.values())))
        columns = ", ".join(column for column in TEXTS if tokens[column])
        detail = f"{distinct}; `--set expansion=repair` fixes it"
        yield case.odd("malformed_placeholder", columns, detail, "")
    if template:
        yield from _template_faults(case, template)
    for column, cell in cells.items():
        if codes := audit.invisible(cell.replace("\n", "")):
            yield case.odd("invisible_characters", plain(column), codes, cell)
    group, question = cells["bias_targeted_groups"], cells["question"].strip()
    if group != group.strip().strip("/、，,").strip():
        yield case.odd("group_cell", "bias_targeted_groups")
    if "/" in PRONOUNS.sub("", question):
        yield case.odd("two_wordings", "question", value=question)
    # Other languages than Chinese end a question with their own sign.
    if not question.endswith("？" if CHINESE.search(question) else ("？", "?")):
        yield case.odd("question_mark", "question", value=question)
    options = [(row["ans0"], row["ans1"]) for row in case.rows]
    if equal := [first for first, second in options if first == second]:
        yield case.odd("options_equal", "ans0", "", equal[0], len(equal))
    if within := [f"{a} ~ {b}" for a, b in options if a != b and (a in b or b in a)]:
        detail = "a reply that quotes one holds both"
        yield case.odd("option_in_option", "ans0", detail, within[0], len(within))


def _template_faults(case: Case, template: Template) -> Iterator[Finding]:
    context, options = case.cells["context"], [case.cells["ans0"], case.cells["ans1"]]
    tokens = {match[0] for match in PLACEHOLDER.finditer(context)}
    if missing := [slot.strip("{}") for slot in SLOTS if slot not in tokens]:
        yield case.odd("group_not_named", "context", " and ".join(missing))
    gendered = GENDERED.findall(context)
    nouns = {k: sorted({noun for slot, noun in gendered if slot == k}) for k in "12"}
    endings = {PLACEHOLDER.sub("", option).strip() for option in options}
    if all(nouns.values()) and nouns["1"] != nouns["2"]:
        detail = " and ".join(f"NAME{k}{'/'.join(nouns[k])}" for k in nouns)
        yield case.odd("slot_attribute_not_swapped", "context", detail)
    elif len(endings) == 2 and all(PLACEHOLDER.search(option) for option in options):
        yield case.odd("slot_attribute_not_swapped", "ans0", "", " ~ ".join(options))
    if person := ATTACHED.search(context):
        yield case.odd("person_not_swapped", "context", value=person[0])

    lists = dict(zip(("NAME1", "NAME2"), template.names, strict=True))
    repeated = {
        column: [name for name, count in Counter(names).items() if count > 1]
        for column, names in lists.items()
    }
    if columns := [column for column in repeated if repeated[column]]:
        surplus = len(case.rows) - len(set(map(NAMES, case.rows)))
        detail, cell = ", ".join(chain(*repeated.values())), case.cells[columns[0]]
        yield case.odd("duplicate_names", ", ".join(columns), detail, cell, surplus)
    if both := sorted(set(lists["NAME1"]) & set(lists["NAME2"])):
        alike = sum(row["name1"] == row["name2"] for row in case.rows)
        detail = f"{', '.join(both)}; both people of a question are then called alike"
        yield case.odd("name_in_both_lists", "NAME2", detail, questions=alike)

    target = template.target
    named = cbbq_templates.named_option(template.group, template.options)
    if target is not None and named not in (None, target):
        detail = f"NAME{target + 1} counts here"
        yield case.odd("group_and_slot_disagree", "bias_targeted_groups", detail)
    elif target is not None and case.usual not in (None, target):
        declared = "" if template.declared is None else "dataset.toml says so; the words count"
        yield case.odd("roles_reversed_vs_category", f"NAME{target + 1}", declared)

    # A name that ends as the text after its slot begins, such as 老人 before 人.
    texts = [case.cells[column] for column in TEXTS]
    after = {part[:1] for text in texts for slot in SLOTS for part in text.split(slot)[1:]}
    ends = {name[-1] for names in template.names for name in names}
    pairs = [2 * char for char in ENDINGS if char in after & ends]
    doubled = [pair for pair in pairs if not any(pair in text for text in texts)]
    count = sum(any(pair in row[text] for pair in doubled for text in TEXTS) for row in case.rows)
    if count:
        yield case.odd("doubled_character", "context", " and ".join(doubled), questions=count)


# The rules for a file, or for both polarities


def _repeated_templates(cases: Sequence[Case]) -> Iterator[Finding]:
    """Report templates that repeat an earlier one, or have their question in both polarities."""
    question, same = itemgetter("context", "question"), itemgetter("NAME1", "NAME2", "ans0", "ans1")
    first: dict[tuple[str, ...], Case] = {}
    asked: dict[tuple[str, ...], list[Case]] = defaultdict(list)
    for case in cases:
        asked[tuple(map(str.strip, question(case.cells)))].append(case)
    for case in cases:
        key = tuple(map(str.strip, question(case.cells)))
        others = (cell.strip() for cell in same(case.cells))
        earlier = first.setdefault((Path(case.file).name, *key, *others), case)
        if earlier is not case:
            differs = earlier.cells["ans2"] != case.cells["ans2"]
            detail = f"row {earlier.row}{', with another third option' * differs}"
            finding = case.odd("duplicate_template", "question", detail)
            yield finding._replace(column="")
        if opposite := [str(other.row) for other in asked[key] if other.file != case.file]:
            detail = f"row {', '.join(opposite)} there; one of them is not negated"
            yield case.odd("same_question_in_both_polarities", "question", detail, key[1])


def _file_faults(cases: Sequence[Case]) -> Iterator[Finding]:
    """Report numbers that count up from row to row, but not the first, and a wrong index."""
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
    for k, column in sorted(columns.items()):
        yield cases[k].odd("excel_autofill", column)

    in_folder = all(Path(case.file).parent.name in CONDITIONS for case in cases)
    indices = [to_whole_number(case.cells["question_index"].strip()) for case in cases]
    numbers = [number for number in indices if number is not None]
    reasons = {
        "it holds other than numbers": len(numbers) < len(indices),
        "it repeats numbers": len(set(numbers)) < len(numbers),
        # In a table of all templates, other rows have the numbers between.
        "it leaves out numbers": in_folder and len(set(numbers) - {0}) < max(numbers, default=0),
        "it is not in order": numbers != sorted(numbers),
    }
    if any(reasons.values()):
        detail = ", ".join(reason for reason in reasons if reasons[reason])
        yield _odd(cases[0].file, "index_no_key", detail, "question_index")


def _compare(file: str, path: Path, wanted: Sequence[Row]) -> Iterator[Finding]:
    """Report an expanded file that differs from the questions of the templates beside it."""
    fault = "expanded_differ"
    try:
        rows = read_table(path, INSTANCE_COLUMNS)
    except (BadInput, OSError) as error:
        yield _odd(file, fault, f"it cannot be compared: {audit.error_reason(path, error)}")
        return
    if len(rows) != len(wanted):
        detail = f"{len(rows):,} rows, the templates yield {len(wanted):,}"
        yield _odd(file, fault, detail, items=abs(len(rows) - len(wanted)))
        return
    columns = [
        [name for name in INSTANCE_COLUMNS if row[name] != cells[name]]
        for row, cells in zip(rows, wanted, strict=True)
    ]
    differing = [row for row, names in zip(rows, columns, strict=True) if names]
    if differing:
        (column, *_), row = next(filter(None, columns)), differing[0]
        detail, count = f"in {len(differing):,} rows, this is the first", len(differing)
        finding = _odd(file, fault, detail, column, count)
        yield finding._replace(row=row.number, value=show_cell(row[column]))


def _odd(file: str, fault: str, detail: str = "", column: str = "", items: int = 0) -> Finding:
    """Report a whole file or folder."""
    what = plain(": ".join(filter(None, (FAULTS[fault], detail))))
    return Finding(file, 0, column, "odd", what, "", fault, items)


def _counts(numbers: Mapping[str, Counter[str]]) -> Iterator[Finding]:
    """Report the numbers of each category and of all, next to the release's if it has them."""
    released = pd.read_csv(Path(__file__).with_name("release.csv"), index_col="category")
    rows = [[counts[str(column)] for column in released] for counts in numbers.values()]
    table = pd.DataFrame(rows, index=list(numbers), columns=released.columns)
    own = [name for name in numbers if name not in released.index]
    is_release = bool(table.loc[list(CATEGORIES), list(CONDITIONS)].to_numpy().any())
    # Categories have no text in common, so distinct questions add up.
    for frame in (table, released):
        frame.loc["all categories"] = frame.sum()
    for name in [*own, *(CATEGORIES if is_release else ()), "all categories"]:
        counts = _numbers_text(table.T[name])
        text = f"{name if name == 'all categories' else f'category {name}'}: {counts}"
        if name in own:
            text += "; the release has no such category"
        elif is_release:
            known = _numbers_text(released.T[name])
            text += "; as the release has" if counts == known else f"; the release has {known}"
        yield Finding("", 0, "", "count", text, str(table.T[name][list(CONDITIONS)].sum()))


def _numbers_text(numbers: "pd.Series[int]") -> str:
    a, b, c, d, ambiguous, disambiguous, distinct = map(int, numbers)
    return (
        f"{a + b + c + d:,} templates ({a:,} + {b:,} ambiguous, {c:,} + {d:,} disambiguous), "
        f"{ambiguous + disambiguous:,} questions ({ambiguous:,} + {disambiguous:,}), "
        f"{distinct:,} distinct"
    )


def _refused(path: Path, folder: Path, error: Exception) -> Finding:
    """Report an error of the loader, with the row and the column that it names."""
    file = audit.file_name(path, folder) if path != folder else ""
    reason = audit.error_reason(path, error)
    place = PLACE.match(reason)
    assert place, "every part of it can be missing"
    row = int(place["row"]) if place["row"] and not place["header"] else 0
    reason = reason[place.end() :].lstrip(": ")
    return Finding(file, row, place["column"] or "", "refused", reason, "", "refused")
