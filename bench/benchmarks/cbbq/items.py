"""CBBQ: multiple-choice questions about two people of different groups.

Huang and Xiong, LREC-COLING 2024. The release is a set of templates, which `templates` expands. In
an ambiguous question nothing says who did it, and the third option (unknown) is right. A
disambiguous question adds facts against the stereotype.
"""

import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from bench.benchmarks.cbbq import templates
from bench.benchmarks.cbbq.labels import LEFT_OUT, Label, check_label
from bench.benchmarks.cbbq.targets import (
    patient_slot,
    required_target,
    stereotyped_option,
    target_slot,
)
from bench.benchmarks.cbbq.templates import CATEGORIES, CONDITIONS, FILES, Template, repaired
from bench.core.errors import BadInput
from bench.data import Loaded, SettingEffect, with_defaults
from bench.data.manifest import composed, read_manifest, unknown_category

# How a folder is read: the allowed values of each setting, the default first.
SETTINGS: dict[str, tuple[str, ...]] = {
    # Faults in templates: kept as released, or fixed.
    "expansion": ("compat", "repair"),
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


# Not frozen, because the release has 73,458 of them, and a frozen one takes three times as long.
@dataclass(slots=True)
class Question:
    """One question with its options.

    Attributes:
        template: polarity and record number of the template, the unit that was sampled.
        polarity, label: by the settings; `polarity_column` and `label_column` are the cells of the
            row, and `label_audited` is the audit's label (`LEFT_OUT` if both are wrong).
        target: index of the option that names the stereotyped group, `target_name` its member.
        name1, name2: the names in the slots.
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
    name1: str
    name2: str
    swapped: bool
    label_audited: int

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
        return self.polarity, self.swapped, self.stereotyped

    @property
    def options(self) -> tuple[str, str, str]:
        """The answers to choose from, unknown last."""
        return self.ans0, self.ans1, self.ans2

    @property
    def text(self) -> tuple[str, ...]:
        """All texts of the question."""
        return (self.context, self.question, *self.options)

    @property
    def stereotyped(self) -> int:
        """The option that follows the stereotype (see `bench.benchmarks.cbbq.targets`)."""
        return stereotyped_option(self.target, self.polarity)


# Notes on odd questions that are asked.
MISSPELT = (
    "each shows a placeholder that is misspelt and was not filled (--set expansion=repair fixes it)"
)
BOTH_LABELS = "occurs with both labels, once in each polarity"
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
    """Map each category to its files: templates of both polarities.

    A single table of templates, `folder` itself or its `TABLE`, is the file of each category in it.
    An unknown category, one polarity without the other, and questions without their templates are
    refused.
    """
    if table := single_table(folder):
        return {category: [table] for category in templates.categories(table)}
    allowed = list(dict.fromkeys([*CATEGORIES, *read_manifest(folder).categories]))
    top = folder
    if (top / "data").is_dir() and not any((top / name).is_dir() for name in allowed):
        top = folder / "data"  # as in the release
    by_category: dict[str, list[Path]] = {}
    for category_folder in sorted(top.iterdir()):
        for condition in CONDITIONS:
            inside = category_folder / condition
            paths = [inside / name for name in FILES.values() if os.path.lexists(inside / name)]
            if len(paths) == 1:
                (missing,) = set(FILES.values()) - {paths[0].name}
                raise BadInput(
                    f"{inside / missing}: is missing beside {paths[0].name}; both polarities are "
                    "needed"
                )
            if not paths:
                for suffix in (".csv", ".json"):
                    if (questions := inside / f"{condition}{suffix}").exists():
                        raise BadInput(
                            f"{questions}: holds questions, and the loader makes these of "
                            f"templates; put the released {' and '.join(FILES.values())} beside it"
                        )
                continue
            category = composed(category_folder.name)
            if category not in allowed:
                raise BadInput(unknown_category(category_folder, category, folder, allowed))
            by_category.setdefault(category, []).extend(paths)
    return by_category


def single_table(folder: Path) -> Path | None:
    """Return the table with all templates of a folder, or `folder` if it is a file; else None."""
    if folder.is_file() and folder.parent.name in CONDITIONS:
        raise BadInput(f"{folder}: is a part of the data in {folder.parents[2]}; give that folder")
    path = folder if folder.is_file() else folder / TABLE
    return path if path.is_file() else None


def load(folder: Path, categories: Sequence[str], **settings: str) -> Loaded:
    """Load all questions of `categories`.

    Ambiguous questions come first, and negative templates before non-negative ones. A question has
    the number (`example_id`) of the released expansion, also if questions before it are excluded.
    """
    paths = files(folder)
    chosen = with_defaults(SETTINGS, settings)
    questions: list[Question] = []
    effects = Effects()
    for category in categories:
        for condition in CONDITIONS:
            rows = read_templates(paths[category], category, condition)
            audited = list(from_templates(rows, chosen["expansion"]))
            questions += _apply(chosen, audited, effects)
    counts = [
        SettingEffect(category, condition, count, what, is_excluded)
        for (category, condition, what, is_excluded), count in effects.items()
    ]
    return Loaded(questions, counts)


def read_templates(paths: Sequence[Path], category: str, condition: str) -> list[Template]:
    """Read the templates of one condition among the files of a category, in the release's order."""
    rows: list[Template] = []
    for path in paths:
        if path.parent.name == condition or path.parent.name not in CONDITIONS:
            rows += templates.read(path, category, condition)
    return rows


def _apply(
    settings: Mapping[str, str], audited: list[Audited], counts: Effects
) -> Iterator[Question]:
    """Yield the questions of a category and condition under the settings, and count the effects."""
    by_column = settings["polarity"] == "column"
    by_audit = settings["labels"] == "audited"
    polarity_effect = "polarity as in the file's name, not as in the column (polarity=file)"
    if by_column:
        polarity_effect = "polarity as in the column, not as in the file's name (polarity=column)"
    # If the same question has two labels, one of these has to be wrong.
    labelled = {(question.text, question.label_column) for question, _ in audited}
    contradictory = {text for text, label in labelled if label == 0 and (text, 1) in labelled}
    seen: set[tuple[object, ...]] = set()
    for question, reason in audited:
        effects = []
        if question.polarity != question.polarity_column:
            effects.append(polarity_effect)
            if by_column:
                question.polarity = question.polarity_column
        if not reason and question.text in contradictory:
            question.label_audited = LEFT_OUT
            reason = BOTH_LABELS
        left_out = ""
        if reason and not by_audit:
            effects.append(f"each {reason} (--set labels=audited corrects it or leaves it out)")
        elif reason and question.label_audited == LEFT_OUT:
            left_out = f"each {reason} (labels=audited)"
        elif reason:
            question.label = question.label_audited
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


def check_labels(rows: Sequence[Template], expansion: str = "compat") -> list[list[Label]]:
    """Check the label of each template of one condition, in both polarities."""
    texts = [template.cells["context"] for template in rows]
    texts = [repaired(text) for text in texts] if expansion == "repair" else texts
    # One context of disease may be used with the patient in either slot.
    patients: dict[str, set[int | None]] = defaultdict(set)
    for template, text in zip(rows, texts, strict=True):
        patients[text.strip()].add(patient_slot(template))
    return [
        check_label(template, text, patients[text.strip()])
        for template, text in zip(rows, texts, strict=True)
    ]


def from_templates(rows: Sequence[Template], expansion: str) -> Iterator[Audited]:
    """Expand the templates of one condition of a category.

    We fill a template pair by pair of names, in both orders of mention (`swapped`). With `repair`
    we fill misspelt placeholders too, and exclude pairs of equal names; the other questions keep
    their numbers (`example_id`).
    """
    number = 0
    is_repaired = expansion == "repair"
    for template, labels in zip(rows, check_labels(rows, expansion), strict=True):
        cells = template.cells
        texts = [cells[column] for column in templates.TEXTS]
        text, first, second = map(repaired, texts) if is_repaired else texts
        target = required_target(template)
        slot = target_slot(template)
        for names in product(*template.names):
            contexts = templates.contexts(template.category, template.condition, text, *names)
            for swapped, context in enumerate(contexts):
                number += 1
                if is_repaired and names[0] == names[1]:
                    continue
                label, reason = labels[swapped]
                question = Question(
                    category=template.category,
                    condition=template.condition,
                    example_id=number,
                    template=template.name,
                    polarity=template.polarity,
                    polarity_column=cells["question_polarity"],
                    topic=cells["subcategory"].strip(),
                    group=template.group,
                    context=context,
                    question=cells["question"],
                    ans0=templates.fill(first, *names),
                    ans1=templates.fill(second, *names),
                    ans2=cells["ans2"],
                    label=template.label,
                    label_column=template.label,
                    target=target,
                    target_name=names[slot],
                    name1=names[0],
                    name2=names[1],
                    swapped=swapped == 1,
                    label_audited=label,
                )
                yield question, reason
