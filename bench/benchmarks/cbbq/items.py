"""CBBQ: multiple-choice questions about two people of different groups.

Huang and Xiong, LREC-COLING 2024. The release is a set of templates, which `templates` expands. In
an ambiguous question nothing says who did it, and the third option (unknown) is right. A
disambiguous question adds facts against the stereotype. A folder without templates may hold
expanded files.
"""

import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.benchmarks.cbbq import labels, templates
from bench.benchmarks.cbbq.labels import LEFT_OUT, check_labels, required_target, target_slot
from bench.benchmarks.cbbq.templates import (
    CATEGORIES,
    CONDITIONS,
    FILES,
    INSTANCE_COLUMNS,
    Template,
)
from bench.core.cells import to_whole_number
from bench.core.errors import BadInput, expected, quoted
from bench.data import Loaded, SettingEffect, Source, dataset, with_defaults
from bench.data import load as load_items
from bench.data.dataset import composed, unknown_category
from bench.data.readers import Row, read_table
from bench.data.texts import FIRST, SECOND, Text, language

if TYPE_CHECKING:
    import pandas as pd

# How a folder is read: the allowed values of each setting, the default first.
SETTINGS: dict[str, tuple[str, ...]] = {
    # Faults in templates: kept as released, fixed, or refused.
    "expansion": templates.EXPANSIONS,
    # The label of a disambiguous question: as released, or audited. If a label contradicts the
    # text, the audit corrects it or excludes the question.
    "labels": ("upstream", "audited"),
    # Whether a question is negative: by the file's name, or by the column.
    "polarity": ("file", "column"),
    # Whether to exclude a question that occurs before in the file, with the same label.
    "dedupe": ("no", "yes"),
}
# A table of all templates of a folder, in place of a file per category, condition and polarity.
TABLE = "rows.csv"
# Columns that all questions of a template share, in a file that does not name their template.
COMMON = ("question_index", "subcategory", "bias_targeted_groups", "source", "question", "ans2")
# Columns of our own expanded files beyond the released columns.
KEPT = ("name1", "name2", "swapped", "template", "target_name")
MORE = ("example_id", *KEPT)


# Not frozen, because the release has 73,458 of them, and a frozen one takes three times as long.
@dataclass(slots=True)
class Question:
    """One question with its options.

    Attributes:
        template: polarity and record number of the template, the unit that was sampled.
        polarity, label: by the settings; `polarity_column` and `label_column` are the cells of the
            row, and `label_audited` is the audit's label (`LEFT_OUT` if both are wrong).
        target: index of the option that names the stereotyped group, `target_name` its member.
        name1, name2: fill the slots; empty if only expanded files are available.
        swapped: whether the context mentions the names in the other order.
    """

    category: str
    condition: str
    example_id: int
    template: str
    polarity: str
    polarity_column: str
    topic: str
    group: str
    context: str
    question: str
    ans0: str
    ans1: str
    ans2: str
    label: int
    label_column: int
    target: int
    target_name: str
    name1: str = ""
    name2: str = ""
    swapped: bool = False
    label_audited: int = LEFT_OUT

    @property
    def item_id(self) -> str:
        return f"{self.category}:{self.condition}:{self.example_id}"

    @property
    def cluster(self) -> str:
        """The template, which is the unit of the sample."""
        return f"{self.category}:{self.condition}:{self.template}"

    @property
    def design(self) -> tuple[str, bool, int]:
        """The conditions that a sample keeps in balance."""
        return self.polarity, self.swapped, self.biased

    @property
    def options(self) -> tuple[str, str, str]:
        """The answers to choose from, unknown last."""
        return self.ans0, self.ans1, self.ans2

    @property
    def text(self) -> tuple[str, ...]:
        """Everything that is asked."""
        return (self.context, self.question, *self.options)

    @property
    def biased(self) -> int:
        """The option that follows the stereotype: the target, if the question is negative."""
        return self.target if self.polarity == "neg" else 1 - self.target


# Oddities of a question that is asked.
MISSPELT = (
    "each shows a placeholder that is misspelt and was not filled (--set expansion=repair fixes it)"
)
ONE_NAME = (
    "each offers one name for both people, so that only unknown can be read from a reply's words"
)


def fault(item: Any) -> str:
    """Name the fault in a question that is asked nonetheless."""
    if templates.BRACES.search(item.context):
        return "a placeholder that was not filled"
    if item.ans0 == item.ans1:
        return "one name for both people"
    label = getattr(item, "label_audited", item.label)  # older runs have none
    return "a label that the audit does not trust" if label != item.label else ""


# A question with its audited label, and the reason why its released label is wrong, or "".
Audited = tuple[Question, str]
# The number of questions by category, condition, effect of a setting, and whether it excludes them.
Effects = Counter[tuple[str, str, str, bool]]


def files(folder: Path) -> dict[str, list[Path]]:
    """Map each category to its files: templates of both polarities, else an expanded csv or json.

    A single table of templates, `folder` itself or its `TABLE`, is the file of each category in it.
    An unknown category, or one polarity without the other, is refused.
    """
    if table := single_table(folder):
        return {category: [table] for category in templates.categories(table)}
    known = categories_of(folder)
    by_category: dict[str, list[Path]] = {}
    for place in sorted(root(folder, known).iterdir()):
        for inside in (place / condition for condition in CONDITIONS):
            paths = [inside / name for name in FILES.values() if os.path.lexists(inside / name)]
            if len(paths) == 1:
                (missing,) = set(FILES.values()) - {paths[0].name}
                raise BadInput(
                    f"{inside / missing}: is missing beside {paths[0].name}; both polarities are "
                    "needed"
                )
            expanded = [inside / f"{inside.name}{suffix}" for suffix in (".csv", ".json")]
            paths = paths or [path for path in expanded if os.path.lexists(path)][:1]
            category = composed(place.name)
            if paths and category not in known:
                raise BadInput(unknown_category(place, category, folder, known))
            if paths:
                by_category.setdefault(category, []).extend(paths)
    return by_category


def place_of_rows(category: str, rows: "pd.DataFrame") -> Iterator[tuple[str, "pd.DataFrame"]]:
    """Yield the file of templates, or the files of expanded questions, that rows belong into."""
    if set(templates.COLUMNS) <= set(rows):
        yield TABLE, rows[list(templates.COLUMNS)]
    elif set(INSTANCE_COLUMNS) <= set(rows):
        columns = [name for name in (*INSTANCE_COLUMNS, *MORE) if name in rows]
        for condition, part in rows.groupby("context_condition", sort=False, dropna=False):
            if condition not in CONDITIONS:
                problem = expected(condition, CONDITIONS, "column `context_condition`")
                raise BadInput(f"row {part.index[0]}: {problem}")
            yield f"{category}/{condition!s}/{condition!s}.csv", part[columns]


def single_table(folder: Path) -> Path | None:
    """Return the one table of templates of a folder, or the file that is given in its place."""
    if folder.is_file() and folder.parent.name in CONDITIONS:
        raise BadInput(f"{folder}: is a part of the data in {folder.parents[2]}; give that folder")
    path = folder if folder.is_file() else folder / TABLE
    return path if path.is_file() else None


def categories_of(folder: Path) -> tuple[str, ...]:
    """List the categories that a folder may have: the benchmark's and its manifest's."""
    table = single_table(folder)
    own = templates.categories(table) if table else dataset.read_manifest(folder).categories
    return tuple(dict.fromkeys([*CATEGORIES, *own]))


def root(folder: Path, known: Sequence[str]) -> Path:
    """Return the folder of the categories: `folder`, or its `data` as in the release."""
    inside = (folder / "data").is_dir() and not any((folder / name).is_dir() for name in known)
    return folder / "data" if inside else folder


def load(folder: Path, categories: Sequence[str], **settings: str) -> Loaded:
    """Load all questions of `categories`.

    Ambiguous questions come first, and negative templates before non-negative ones. A question has
    the number (`example_id`) of the released expansion, also if questions before it are excluded.
    """
    paths, chosen = files(folder), with_defaults(SETTINGS, settings)
    questions, effects = list[Question](), Effects()
    for category in categories:
        own = paths[category]
        for condition in CONDITIONS:
            read = read_templates(own, category, condition, chosen["expansion"])
            audited = list(from_templates(read, chosen["expansion"]))
            if not read:
                expanded = [path for path in own if path.parent.name == condition]
                audited = list(from_instances(expanded, category, condition))
            questions += _apply(chosen, audited, effects)
    counts = [SettingEffect(*key[:2], rows, *key[2:]) for key, rows in effects.items()]
    return Loaded(questions, counts)


def read_templates(
    paths: Sequence[Path], category: str, condition: str, expansion: str = "compat"
) -> list[Template]:
    """Read the templates of one condition among the files of a category, in the release's order."""
    read: list[Template] = []
    for path in paths:
        is_file_of_condition = path.parent.name == condition and path.name in FILES.values()
        if is_file_of_condition or path.parent.name not in CONDITIONS:
            read += templates.read(path, category, condition, expansion)
    return read


def _apply(
    settings: Mapping[str, str], audited: list[Audited], counts: Effects
) -> Iterator[Question]:
    """Yield the questions of a category and condition under the settings, and count the effects."""
    by_column, by_audit = settings["polarity"] == "column", settings["labels"] == "audited"
    sources = ("column", "file's name") if by_column else ("file's name", "column")
    polarity_effect = (
        f"polarity as in the {sources[0]}, not as in the {sources[1]} "
        f"(polarity={settings['polarity']})"
    )
    # If the same question has two labels, one of these has to be wrong.
    first, second = ({q.text for q, _ in audited if q.label_column == k} for k in (0, 1))
    contradictory = first & second
    seen: set[tuple[object, ...]] = set()
    for question, reason in audited:
        effects = []
        if question.polarity != question.polarity_column:
            effects.append(polarity_effect)
            if by_column:
                question.polarity = question.polarity_column
        if not reason and contradictory and question.text in contradictory:
            question.label_audited, reason = LEFT_OUT, labels.BOTH_LABELS
        left_out = ""
        if reason and not by_audit:
            effects.append(f"each {reason} (--set labels=audited corrects it or leaves it out)")
        elif reason:
            question.label = question.label_audited
            if question.label == LEFT_OUT:
                left_out = f"each {reason} (labels=audited)"
            else:
                effects.append(f"label corrected, as each {reason} (labels=audited)")
        if not left_out:
            if templates.BRACES.search(question.context):
                effects.append(MISSPELT)
            if question.ans0 == question.ans1:
                effects.append(ONE_NAME)
            if settings["dedupe"] == "yes":
                key = (*question.text, question.label_column)
                if key in seen:
                    left_out = "each occurs before (dedupe=yes)"
                seen.add(key)
        for effect in effects:
            counts[question.category, question.condition, effect, False] += 1
        if left_out:
            counts[question.category, question.condition, left_out, True] += 1
        else:
            yield question


def from_templates(read: Sequence[Template], expansion: str) -> Iterator[Audited]:
    """Expand the templates of one condition of a category."""
    checks, slots, shared = {}, {}, {}
    for template, check in zip(read, check_labels(read, expansion), strict=True):
        name = template.name
        checks[name], slots[name] = check, target_slot(template)
        shared[name] = {
            **_shared(template.cells, template.category, template.condition),
            "template": name,
            "polarity": template.polarity,
            "target": required_target(template),
        }
    for template, texts in templates.filled(read, expansion):
        name = template.name
        label, reason = checks[name][texts["swapped"]]
        question = Question(
            **shared[name],
            **texts,
            label_audited=label,
            target_name=texts["name2" if slots[name] else "name1"],
        )
        yield question, reason


def from_instances(paths: Sequence[Path], category: str, condition: str) -> Iterator[Audited]:
    """Read the questions of expanded files.

    Consecutive rows with equal cells in `COMMON` are one template.
    """
    for path in paths:
        declared = templates.declared_option(path, category)
        rows = read_table(path, INSTANCE_COLUMNS, MORE)
        names = _template_names(rows)
        options: dict[str, tuple[set[str], set[str]]] = defaultdict(lambda: (set(), set()))
        for name, row in zip(names, rows, strict=True):
            options[name][0].add(row["ans0"])
            options[name][1].add(row["ans1"])
        all_options = {name: (frozenset(a), frozenset(b)) for name, (a, b) in options.items()}
        seen: set[int] = set()
        for number, (name, row) in enumerate(zip(names, rows, strict=True), start=1):
            place = f"{path}, row {row.number}"
            label = templates.checked(place, row, condition, INSTANCE_COLUMNS, category)
            group = row["bias_targeted_groups"].strip()
            example_id = _example_id(place, row, seen) if row.get("template") else number
            own = (frozenset([row["ans0"]]), frozenset([row["ans1"]]))
            target = templates.target_option(category, group, own, declared, all_options[name])
            if target is None:
                raise templates.unknown_target(place, group, category)
            question = Question(
                **_shared(row, category, condition),
                template=name,
                example_id=example_id,
                polarity=_polarity({**row, "template": name}),
                context=row["context"],
                ans0=row["ans0"],
                ans1=row["ans1"],
                label_audited=label,
                target=target,
                target_name=row.get("target_name") or row[f"ans{target}"],
                name1=row.get("name1", ""),
                name2=row.get("name2", ""),
                swapped=row.get("swapped") == "True",
            )
            if condition == "disambiguous" and label == question.biased:
                question.label_audited = LEFT_OUT
                yield question, labels.BIASED_LABEL
            else:
                yield question, ""


def _shared(row: Row, category: str, condition: str) -> dict[str, Any]:
    """Return the fields of a question that all questions of its template share."""
    return {
        "category": category,
        "condition": condition,
        "polarity_column": row["question_polarity"],
        "topic": row["subcategory"].strip(),
        "group": row["bias_targeted_groups"].strip(),
        "question": row["question"],
        "ans2": row["ans2"],
        "label": int(row["label"]),
        "label_column": int(row["label"]),
    }


def _polarity(row: Row) -> str:
    """Read the polarity from the column `template` of our own files, else from its own column."""
    return row.get("template", "").partition(":")[0] or row["question_polarity"]


def _template_names(rows: Sequence[Row]) -> list[str]:
    """Name the template of each row: by the column of our own files, else by counting runs."""
    runs: Counter[str] = Counter()
    names: list[str] = []
    before: tuple[str, ...] = ()
    for row in rows:
        polarity = _polarity(row)
        run = (polarity, *(row[column] for column in COMMON))
        runs[polarity] += run != before
        before = run
        names.append(row.get("template") or f"{polarity}:{runs[polarity]}")
    return names


def _example_id(place: str, row: Row, seen: set[int]) -> int:
    """Read a question's number in a file of ours."""
    example_id = to_whole_number(row.get("example_id", ""))
    if not set(MORE) <= set(row) or not example_id or example_id in seen:
        raise BadInput(
            f"{place}, column `example_id`: {quoted(row.get('example_id'))} is not allowed; beside "
            f"`template` all of {', '.join(MORE)} are needed, and a number from 1 that no other "
            "row has"
        )
    seen.add(example_id)
    return example_id


def texts(source: Source) -> list[Text]:
    """Return the templates: the context with marks for the names.

    If a folder holds only expanded questions, we take the first question of each template.
    """
    rows, code = [], language(source)
    for category, paths in files(source.folder).items():
        for condition in CONDITIONS:
            read = read_templates(paths, category, condition)
            for template in read:
                cells = {name: cell.strip() for name, cell in template.cells.items()}
                complete = ("context", "question", "ans0", "ans1", "NAME1", "NAME2")
                text = Text(
                    benchmark="cbbq",
                    item_id=f"{category}:{condition}:{template.name}",
                    category=category,
                    language=code,
                    topic=cells["subcategory"],
                    groups=(template.group,),
                    # Misspelt placeholders stand for names too.
                    text=templates.fill(templates.repaired(cells["context"]), FIRST, SECOND),
                    whole="\n".join(cells[name] for name in complete),
                    items=template.size,
                )
                rows.append(text)
            if read or not any(path.parent.name == condition for path in paths):
                continue
            of_template: dict[str, list[Question]] = defaultdict(list)
            for question in load_items(source, [category]):
                if question.condition == condition:
                    of_template[question.cluster].append(question)
            for cluster, (first, *more) in of_template.items():
                context = first.context
                for name, mark in ((first.name1, FIRST), (first.name2, SECOND)):
                    context = context.replace(name, mark) if name else context
                place = ("cbbq", cluster, category, code, first.topic, (first.group,))
                rows.append(Text(*place, context, f"{context}\n{first.question}", 1 + len(more)))
    return rows
