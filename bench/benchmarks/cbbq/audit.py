"""Audit a CBBQ folder: list everything wrong or odd in it, and compare its size with the release.

We derived the rules from the ten available categories of the release. They hold no row numbers and
no sentences of the release; the words that they need, for example surnames, are constants here.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import chain, groupby, product
from pathlib import Path
from typing import Any

import pandas as pd

from bench.benchmarks.cbbq import METADATA, items, labels, templates
from bench.benchmarks.cbbq.templates import CATEGORIES, CONDITIONS, PLACEHOLDER, SLOTS, Template
from bench.core.cells import to_whole_number
from bench.core.errors import BadInput, plain
from bench.data import audit
from bench.data.audit import refused

odd = audit.Faults(Path(__file__).with_name("faults.csv")).odd
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
# The columns of a question that a model sees.
ASKED = ["context", "question", "ans0", "ans1", "ans2"]
TEXTS = list(templates.TEXTS)
PLACE_OF_CASE = ["folder", "condition"]
Audit = Iterator[pd.DataFrame]


def check(folder: Path, **settings: str) -> pd.DataFrame:
    """List everything found in a folder, in the columns of `bench.data.audit`.

    We audit the data as released, whatever the settings; with `expansion=strict` the table also
    lists the rows that this setting refuses. A template has at most one finding per fault, and
    `questions` is the number of its questions with this fault.

    Source: faults of the authors' files (their repository, commit 95eaf2e).
    """
    findings = _findings(Path(folder), settings.get("expansion", "compat"))
    return audit.to_table(findings, "questions")


def _findings(folder: Path, expansion: str) -> Audit:
    known: Sequence[str] = CATEGORIES
    table, root = None, folder
    try:
        table = items.single_table(folder)
        known = items.categories_of(folder)
        if not items.files(folder):
            yield refused(what=f"the folder {METADATA.no_data}")
    except (BadInput, OSError) as error:
        yield _refused(folder, folder, error)
    if not table and folder.is_dir():
        root = items.root(folder, known)
    cases, questions = [], []  # cases are templates
    for category, condition in product(known, CONDITIONS):
        place = root / category / condition
        own = {"folder": category, "condition": condition}
        own["place"] = audit.file_name(table or place, folder)
        paths = [table] if table else [place / name for name in templates.FILES.values()]
        paths = [path for path in paths if path.is_file()]
        bare = [path for path in paths if path.read_bytes()[:3] != b"\xef\xbb\xbf"]
        for path in bare if len(bare) < len(paths) else ():
            yield odd(audit.file_name(path, folder), "no_byte_order_mark")
        read = list[Template]()
        for path in paths:
            try:
                for template in templates.read(path, category, condition):
                    read.append(template)  # keeps those before the first refused one
                if expansion == "strict":
                    list(templates.read(path, category, condition, expansion))
            except (BadInput, OSError) as error:
                yield _refused(path, folder, error)
        if read:
            cases.append(_templates(read, folder).assign(**own))
            filled = templates.filled(read)
            texts = pd.DataFrame([{"case": one.place, **fields} for one, fields in filled])
            shared = cases[-1][["question", "ans2", "label", *own]]
            questions.append(texts.join(shared, on="case"))
            for template in read:
                if template.target is None:
                    row = (template.place, template.group, template.category)
                    yield _refused(template.path, folder, templates.unknown_target(*row))
    if cases:
        all_cases = pd.concat(cases)
        yield from _row_rules(all_cases, pd.concat(questions))
        yield from _template_rules(all_cases)
        yield from _repeated_templates(all_cases)
        for _, of_file in all_cases.groupby([*PLACE_OF_CASE, "file"], sort=False):
            yield from _file_rules(of_file)
    empty = pd.DataFrame(columns=[*PLACE_OF_CASE, "polarity", *ASKED])
    all_questions = pd.concat([empty, *questions])
    yield from _question_rules(all_questions)
    for path in sorted(root.rglob("~$*")):
        yield odd(audit.file_name(path, folder), "lock_file")
    yield from _counts(pd.concat([empty, *cases]), all_questions, known)


# Reading


def _templates(read: Sequence[Template], folder: Path) -> pd.DataFrame:
    """Return a table of templates, by their place."""
    rows = [
        {
            **{column: template.cells[column] for column in templates.COLUMNS},
            "file": audit.file_name(template.path, folder),
            "row": template.cells.number,
            "items": template.size,
            "polarity": template.polarity,
            "cells": template.cells,
            # Disease has no questions in the other order.
            "checks": checks[:1] if template.category == "disease" else checks,
            "template": template,
        }
        for template, checks in zip(read, labels.check_labels(read), strict=True)
    ]
    return pd.DataFrame(rows, index=[template.place for template in read])


def _refused(path: Path, folder: Path, error: Exception) -> pd.DataFrame:
    """Report an error of the loader, with the row and the column that it names."""
    file = audit.file_name(path, folder) if path != folder else ""
    reason = audit.error_reason(path, error)
    place = PLACE.match(reason)
    assert place, "every part of it can be missing"
    row = int(place["row"]) if place["row"] and not place["header"] else 0
    reason = reason[place.end() :].lstrip(": ")
    return refused(file=file, row=row, column=place["column"] or "", what=reason)


# Rules for rows of templates


def _row_rules(cases: pd.DataFrame, questions: pd.DataFrame) -> Audit:
    rows = cases.to_dict("records")
    yield odd(cases[cases.question_polarity != cases.polarity], "polarity_column_wrong")
    yield odd(cases[cases.category != cases.folder], "category_column_wrong")
    labelled: dict[str, list[dict[Hashable, Any]]] = defaultdict(list)
    for row in rows:
        for (label, reason), count in Counter(row["checks"]).items():
            is_excluded = label == labels.LEFT_OUT
            done = "leaves them out" if is_excluded else f"gives them label {label}"
            size = count * row["items"] // len(row["checks"])
            if reason:
                labelled[LABEL_FAULTS[reason]].append({**row, "done": done, "items": size})
    for fault, found_rows in labelled.items():
        yield odd(found_rows, fault)
    wrong = cases[TEXTS].map(templates.malformed)
    columns = audit.true_columns(wrong.map(bool))
    tokens = (wrong.context + wrong.ans0 + wrong.ans1).map(dict.fromkeys).map(" and ".join)
    is_wrong = columns != ""
    yield odd(cases[is_wrong], "malformed_placeholder", column=columns, detail=tokens, value="")
    for row in rows:
        for column, cell in row["cells"].items():
            if codes := audit.invisible(cell.replace("\n", "")):
                fields = {"column": plain(column), "codes": codes, "value": cell}
                yield odd([row], "invisible_characters", **fields)
    group, question = cases.bias_targeted_groups, cases.question.str.strip()
    yield odd(cases[group != group.str.strip().str.strip("/、，,").str.strip()], "group_cell")
    two = question.str.replace(PRONOUNS, "", regex=True).str.contains("/")
    yield odd(cases[two], "two_wordings", value=question)
    # Other languages than Chinese end a question with their own sign.
    ends = question.str.endswith("？")
    ends |= question.str.endswith("?") & ~question.str.contains(CHINESE)
    yield odd(cases[~ends], "question_mark", value=question)
    first, second = questions.ans0, questions.ans1
    within = [a != b and (a in b or b in a) for a, b in zip(first, second, strict=True)]
    for fault, is_odd, value in (
        ("options_equal", first == second, first),
        ("option_in_option", within, first + " ~ " + second),
    ):
        found = value[is_odd].groupby(questions.case[is_odd], sort=False).agg(["first", "size"])
        yield odd(cases.loc[found.index], fault, value=found["first"], items=found["size"])


def _template_rules(cases: pd.DataFrame) -> Audit:
    names = {0: "NAME1", 1: "NAME2", None: ""}
    template, context = cases.template, cases.context
    for row in cases.to_dict("records"):
        yield from _name_rules(row, row["template"])
    missing = context.map(_missing_slots)
    yield odd(cases[missing != ""], "group_not_named", detail=missing)
    fault, nouns = "slot_attribute_not_swapped", context.map(_different_nouns)
    options = cases[["ans0", "ans1"]]
    has_slots = options.map(PLACEHOLDER.search).notna().all(axis=1)
    endings = options.map(lambda text: PLACEHOLDER.sub("", text).strip())
    differ = has_slots & (endings.ans0 != endings.ans1) & (nouns == "")
    value = cases.ans0 + " ~ " + cases.ans1
    yield odd(cases[nouns != ""], fault, detail=": " + nouns)
    yield odd(cases[differ], fault, column="ans0", value=value, detail="")
    person = context.map(lambda text: match[0] if (match := ATTACHED.search(text)) else "")
    yield odd(cases[person != ""], "person_not_swapped", value=person)
    slot = template.map(lambda one: names[one.target])
    named = template.map(lambda one: names[templates.named_option(one.group, one.options)])
    declared = template.map(lambda one: names[one.declared])
    group = cases.bias_targeted_groups.str.strip()
    usual = slot.groupby([cases.folder, cases.condition, group]).transform(_most_common)
    usual = declared.where(declared != "", usual)
    disagrees = (slot != "") & (named != "") & (named != slot)
    yield odd(cases[disagrees], "group_and_slot_disagree", slot=slot)
    is_reversed = (slot != "") & (usual != "") & (usual != slot) & ~disagrees
    why = (declared != "").map({True: ": dataset.toml says so; the words count", False: ""})
    value = cases.NAME1.where(slot == "NAME1", cases.NAME2)
    fields = {"column": slot, "detail": why, "value": value}
    yield odd(cases[is_reversed], "roles_reversed_vs_category", **fields)


def _most_common(slots: "pd.Series[str]") -> str:
    counts = Counter(filter(None, slots))
    return counts.most_common(1)[0][0] if counts else ""


def _missing_slots(context: str) -> str:
    tokens = {match[0] for match in PLACEHOLDER.finditer(context)}
    return " and ".join(slot.strip("{}") for slot in SLOTS if slot not in tokens)


def _different_nouns(context: str) -> str:
    """Return the nouns of men or women that follow each slot, "" if they are the same."""
    gendered = GENDERED.findall(context)
    nouns = {k: sorted({noun for slot, noun in gendered if slot == k}) for k in "12"}
    is_same = not all(nouns.values()) or nouns["1"] == nouns["2"]
    return "" if is_same else " and ".join(f"NAME{k}{'/'.join(nouns[k])}" for k in nouns)


def _name_rules(row: Mapping[Hashable, Any], template: Template) -> Audit:
    """Report names that are listed twice, or that double a character of the text after them."""
    counts = dict(zip(("NAME1", "NAME2"), map(Counter, template.names), strict=True))
    repeated = {column: [*(count - Counter([*count]))] for column, count in counts.items()}
    first, second = counts.values()
    # The orders of mention of a pair of names.
    orders = template.size // (first.total() * second.total())
    if columns := [column for column in repeated if repeated[column]]:
        detail, surplus = ", ".join(chain(*repeated.values())), orders * len(first) * len(second)
        fields = {"column": ", ".join(columns), "value": row[columns[0]], "detail": detail}
        yield odd([row], "duplicate_names", items=template.size - surplus, **fields)
    if both := sorted(set(first) & set(second)):
        alike = orders * sum(first[name] * second[name] for name in both)
        yield odd([row], "name_in_both_lists", detail=", ".join(both), items=alike)
    # A name that ends as the text after its slot begins, such as 老人 before 人.
    texts = [row[column] for column in TEXTS]
    after = {part[:1] for text in texts for slot in SLOTS for part in text.split(slot)[1:]}
    ends = {name[-1] for name in (*first, *second)}
    pairs = [2 * char for char in ENDINGS if char in after & ends]
    doubled = [pair for pair in pairs if not any(pair in text for text in texts)]
    count = sum(
        any(pair in one[column] for pair in doubled for column in TEXTS)
        for _, one in templates.filled([template] if doubled else [])
    )
    if count:
        yield odd([row], "doubled_character", detail=" and ".join(doubled), items=count)


# Rules for files, for both polarities, and for all questions


def _repeated_templates(cases: pd.DataFrame) -> Audit:
    """Report templates that repeat an earlier one, or have their question in both polarities."""
    texts = ["context", "question", "NAME1", "NAME2", "ans0", "ans1"]
    stripped = cases.assign(**{name: cases[name].str.strip() for name in texts})
    same = stripped.groupby([*PLACE_OF_CASE, "file", *texts])
    first, is_other = same.row.transform("first"), same.ans2.transform("first") != cases.ans2
    other = is_other.map({True: ", with another third option", False: ""})
    fields = {"detail": first.astype(str) + other, "value": cases.question}
    yield odd(cases[same.cumcount() > 0], "duplicate_template", **fields)
    keys = [*PLACE_OF_CASE, "context", "question"]
    questions = stripped[[*keys, "file", "row"]]
    pairs = questions.reset_index().merge(questions, on=keys)
    pairs = pairs[pairs.file_x != pairs.file_y].astype({"row_y": str})
    rows = pairs.groupby("index").row_y.agg(", ".join)
    fields = {"detail": rows, "value": stripped.question}
    yield odd(cases.loc[rows.index], "same_question_in_both_polarities", **fields)


def _file_rules(cases: pd.DataFrame) -> Audit:
    """Report numbers that count up from row to row, but not the first, and a wrong index."""
    columns: dict[int, str] = {}
    for column in FILLED:
        rows: dict[tuple[str, str], dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for k, cell in enumerate(cases[column]):
            for match in NUMBER.finditer(cell):
                rows[cell[: match.start()], cell[match.end() :]][int(match[0])].append(k)
        for values in rows.values():
            # In consecutive numbers, number minus rank is constant.
            for _, run in groupby(enumerate(sorted(values)), key=lambda pair: pair[1] - pair[0]):
                filled = [values[value] for _, value in run]
                if len(filled) >= SERIES and filled == sorted(filled):
                    for k in chain.from_iterable(filled[1:]):
                        columns.setdefault(k, column)
    for k, column in columns.items():
        yield odd(cases.iloc[[k]], "excel_autofill", column=column, value=cases[column])
    file = cases.file.iloc[0]
    in_folder = Path(file).parent.name in CONDITIONS
    indices = [to_whole_number(cell.strip()) for cell in cases.question_index]
    numbers = [number for number in indices if number is not None]
    reasons = {
        "it holds other than numbers": len(numbers) < len(indices),
        "it repeats numbers": len(set(numbers)) < len(numbers),
        # In a table of all templates, other rows have the numbers between.
        "it leaves out numbers": in_folder and len(set(numbers) - {0}) < max(numbers, default=0),
        "it is not in order": numbers != sorted(numbers),
    }
    if detail := ", ".join(reason for reason, is_true in reasons.items() if is_true):
        yield odd(file, "index_no_key", detail=detail)


def _question_rules(questions: pd.DataFrame) -> Audit:
    """Report questions of a category and condition that are the same."""
    for _, of_place in questions.groupby(PLACE_OF_CASE, sort=False):
        place = of_place.place.iloc[0]
        if surplus := int(of_place.duplicated([*ASKED, "label"]).sum()):
            yield odd(place, "duplicate_questions", items=surplus, size=len(of_place))
        sizes = of_place.groupby(ASKED).label.agg(["nunique", "size"])
        opposite = sizes["size"][sizes["nunique"] > 1]
        if len(opposite):
            yield odd(place, "opposite_labels", items=opposite.sum(), prompts=len(opposite))


def _counts(cases: pd.DataFrame, questions: pd.DataFrame, known: Sequence[str]) -> Audit:
    """Report the numbers of each category and of all, next to the release's if it has them."""
    released = pd.read_csv(Path(__file__).with_name("release.csv"), index_col="category")
    distinct = questions.drop_duplicates(["folder", *ASKED]).folder.value_counts()
    parts = [
        pd.crosstab(cases.folder, cases.condition + " " + cases.polarity + " templates"),
        pd.crosstab(questions.folder, questions.condition + " questions"),
        distinct.rename("distinct questions"),
    ]
    table = pd.concat(parts, axis=1).reindex(index=list(known), columns=released.columns)
    table = table.fillna(0).astype(int)
    own = [name for name in known if name not in released.index]
    is_release = bool(table.loc[list(CATEGORIES)].to_numpy().any())
    # Categories have no text in common, so distinct questions add up.
    for frame in (table, released):
        frame.loc["all categories"] = frame.sum()
    for name in [*own, *(CATEGORIES if is_release else ()), "all categories"]:
        title = name if name == "all categories" else f"category {name}"
        title += " (the release has no such category)" * (name in own)
        numbers = table.T[name].to_dict()
        theirs = released.T[name].to_dict() if is_release and name not in own else None
        size = sum(numbers[f"{condition} questions"] for condition in CONDITIONS)
        yield audit.counted(title, numbers, theirs, size)
