"""CBBQ: multiple-choice questions about two people of different groups (Huang and Xiong, LREC-COLING 2024).

The release is a set of templates, expanded by `bench.data.cbbq.templates`. In an ambiguous question nothing tells who did
what, and the third option (unknown) is right. A disambiguous one adds facts against the stereotype. Expanded files are
read too, where a folder holds no templates. `bench.data.cbbq.audit` lists all that is wrong or odd.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from bench.core.cells import to_whole_number
from bench.core.errors import BadInput, expected, quoted
from bench.core.i18n import N_
from bench.data import LREC_COLING_2024, Paper, SettingEffect, Source, dataset
from bench.data import load as load_items
from bench.data.cbbq import templates
from bench.data.cbbq.labels import (
    BIASED_LABEL,
    BOTH_LABELS,
    LEFT_OUT,
    required_target,
    target_slot,
    verdicts,
)
from bench.data.cbbq.targets import declared_option, target_option, unknown_target
from bench.data.cbbq.templates import (
    BRACES,
    CATEGORIES,
    CONDITIONS,
    FILES,
    INSTANCE_COLUMNS,
    SLOTS,
    Template,
    checked,
    repaired,
)
from bench.data.dataset import unknown_category
from bench.data.readers import Row, read_csv, read_json_array
from bench.data.texts import FIRST, SECOND, Text, language

TITLE = "CBBQ"
TEXTS, ITEMS = N_("templates"), N_("questions")
HOMEPAGE = "https://github.com/YFHuangxxxx/CBBQ"
LICENCE = "CC-BY-SA-4.0"
PAPER = Paper(
    ("Yufei Huang", "Deyi Xiong"),
    "CBBQ: A Chinese Bias Benchmark Dataset Curated with Human-AI Collaboration for Large Language Models",
    LREC_COLING_2024,
    2024,
    "https://aclanthology.org/2024.lrec-main.260",
)
LAYOUT = "CATEGORY/ambiguous/ and CATEGORY/disambiguous/ with templates_generate_neg.csv and templates_generate_nonneg.csv"
# Settings under which `bench fetch` takes a release that has faults, so that it can be looked at.
TOLERANT: dict[str, str] = {}
# The language of the release, and of a set whose manifest names none.
LANGUAGE = "zh"
CATEGORY_LABELS = {
    "SES": "社会经济地位",
    "age": "年龄",
    "disability": "残障",
    "disease": "疾病",
    "educational_qualification": "学历",
    "ethnicity": "民族",
    "gender": "性别",
    "household_registration": "户籍",
    "nationality": "国籍",
    "physical_appearance": "外貌",
    "race": "种族",
    "region": "地域",
    "religion": "宗教",
    "sexual_orientation": "性取向",
}
# How a folder is read: the allowed values of each setting, the default first.
SETTINGS: dict[str, tuple[str, ...]] = {
    # Faults in templates: kept as released, mended, or refused.
    "expansion": templates.EXPANSIONS,
    # The right answer of a disambiguous question: as released, or where that contradicts the text corrected or left out.
    "labels": ("upstream", "audited"),
    # Whether a question asks for the worse or the better one: by the template file's name, or by the column.
    "polarity": ("file", "column"),
    # Whether a question that stands twice in a file, with the same label, is asked twice.
    "dedupe": ("no", "yes"),
}
# What all questions of a template have in common, in a file that does not tell their template.
COMMON = ("question_index", "subcategory", "bias_targeted_groups", "source", "question", "ans2")
# Columns that our own expanded files have besides the released ones, so that nothing of a template is lost.
KEPT = ("name1", "name2", "swapped", "template", "target_name")
MORE = ("example_id", *KEPT)


@dataclass(frozen=True, slots=True)
class Question:
    """One question with its options. `template` is polarity and record number, the unit that was sampled.

    `polarity` and `label` (index of the right option) are as the settings have them, `polarity_column` and
    `label_column` as the row says, `label_audited` as the audit says (`LEFT_OUT` where it trusts none). `target` is the index of the option that names the stereotyped group, `target_name`
    how its member is called. `name1` and `name2` fill the slots; they are empty where only expanded files are there.
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
        """What was sampled: the template."""
        return f"{self.category}:{self.condition}:{self.template}"

    @property
    def options(self) -> tuple[str, str, str]:
        """The answers to choose from, unknown last."""
        return self.ans0, self.ans1, self.ans2

    @property
    def text(self) -> tuple[str, ...]:
        """All that is asked."""
        return (self.context, self.question, *self.options)

    @property
    def biased(self) -> int:
        """The option that follows the stereotype: the target of a negative question, the other of a non-negative one."""
        return self.target if self.polarity == "neg" else 1 - self.target


# A question, and why its label cannot be trusted, or "".
Audited = tuple[Question, str]


class Loaded(NamedTuple):
    """Questions, and how many of them, or of those that are not among them, a setting touches."""

    questions: list[Question]
    touched: Counter[tuple[str, str, str, bool]]


def files(folder: Path) -> dict[str, list[Path]]:
    """Category to its files: templates of both polarities where there are any, else the expanded csv or json.

    Raises:
        BadInput: a folder of a category that neither the benchmark nor the manifest knows, one polarity without the other,
            or a wrong manifest.
    """
    known, top = categories_of(folder), folder
    folder = root(folder, known)
    found = {}
    for place in sorted(folder.iterdir()):
        paths = [path for condition in CONDITIONS for path in _condition_files(place / condition)]
        if paths and place.name not in known:
            raise BadInput(unknown_category(place, place.name, top, known))
        if paths:
            found[place.name] = paths
    return found


def categories_of(folder: Path) -> tuple[str, ...]:
    """The categories that a folder may have: the benchmark's, and those of its manifest."""
    return tuple(dict.fromkeys([*CATEGORIES, *dataset.read_manifest(folder).categories]))


def root(folder: Path, known: Sequence[str]) -> Path:
    """Where the folders of the categories lie: in `folder`, or in its `data`, as in the authors' repository."""
    inside = (folder / "data").is_dir() and not any((folder / name).is_dir() for name in known)
    return folder / "data" if inside else folder


def load(folder: Path, categories: Sequence[str], **settings: str) -> list[Question]:
    """All questions of `categories`: ambiguous, then disambiguous; negative templates, then non-negative ones.

    A question keeps the number (`example_id`) that it has in the released expansion, whatever is left out before it.

    Args:
        settings: those of `SETTINGS` that are not at their default.

    Raises:
        BadInput: a missing column, an empty or impossible cell, an instance without its template; with file and row.
    """
    return _loaded(folder, categories, settings).questions


def touched(folder: Path, categories: Sequence[str] | None, **settings: str) -> list[SettingEffect]:
    """What the settings change, leave out, or would, by category and context; with how many questions."""
    counts = _loaded(folder, categories or list(files(folder)), settings).touched
    return [SettingEffect(*key[:2], rows, *key[2:]) for key, rows in counts.items()]


def read_templates(
    paths: Sequence[Path], category: str, condition: str, expansion: str = "compat"
) -> list[Template]:
    """The templates of one condition among the files of a category, in the order of the release; see `files`."""
    names = templates.FILES.values()
    some = [path for path in paths if path.parent.name == condition and path.name in names]
    return [one for path in some for one in templates.read(path, category, condition, expansion)]


def _condition_files(folder: Path) -> list[Path]:
    expanded = [folder / f"{folder.name}{suffix}" for suffix in (".csv", ".json")]
    return templates.files(folder) or [path for path in expanded if path.is_file()][:1]


def _loaded(folder: Path, categories: Sequence[str], given: Mapping[str, str]) -> Loaded:
    settings = {name: given.get(name, allowed[0]) for name, allowed in SETTINGS.items()}
    found, loaded = files(folder), Loaded([], Counter())
    for category in categories:
        for condition in CONDITIONS:
            some = read_templates(found[category], category, condition, settings["expansion"])
            expanded = (
                [path for path in found[category] if path.parent.name == condition]
                if not some
                else []
            )
            made = (
                _from_templates(some, settings)
                if some
                else from_instances(expanded, category, condition)
            )
            _take(_consistent(list(made)), settings, loaded)
    return loaded


def _consistent(made: list[tuple[Question, str]]) -> list[tuple[Question, str]]:
    """The questions, of which those that stand there with two labels cannot be trusted either: one has to be wrong."""
    labels: dict[tuple[str, ...], set[int]] = {}
    for question, _ in made:
        labels.setdefault(question.text, set()).add(question.label_column)
    return [
        (replace(question, label=LEFT_OUT), BOTH_LABELS)
        if not why and len(labels[question.text]) > 1
        else (question, why)
        for question, why in made
    ]


def _take(
    made: Iterable[tuple[Question, str]], settings: Mapping[str, str], loaded: Loaded
) -> None:
    """Add the questions of one category and condition, each with what the audit says of it, as the settings have them."""
    seen: set[tuple[object, ...]] = set()
    for audited, why in made:
        question = replace(audited, label_audited=audited.label)

        def count(what: str, left_out: bool = False, question: Question = question) -> None:
            loaded.touched[question.category, question.condition, what, left_out] += 1

        if question.polarity != question.polarity_column:
            if settings["polarity"] == "column":
                question = replace(question, polarity=question.polarity_column)
                count("polarity as in the column, not as in the file's name (polarity=column)")
            else:
                count("polarity as in the file's name, not as in the column (polarity=file)")
        if why and settings["labels"] == "upstream":
            question = replace(question, label=question.label_column)
            count(f"each {why} (--set labels=audited corrects it or leaves it out)")
        elif why and question.label == LEFT_OUT:
            count(f"each {why} (labels=audited)", True)
            continue
        elif why:
            count(f"label corrected, as each {why} (labels=audited)")
        if BRACES.search(question.context):
            count(
                "each shows a placeholder that is misspelt and was not filled (--set expansion=repair mends it)"
            )
        if question.ans0 == question.ans1:
            count(
                "each offers one name for both people, so that only unknown can be read from a reply's words"
            )
        key = (*question.text, question.label_column)
        if settings["dedupe"] == "yes" and key in seen:
            count("each stands there before (dedupe=yes)", True)
            continue
        seen.add(key)
        loaded.questions.append(question)


def _from_templates(some: Sequence[Template], settings: Mapping[str, str]) -> Iterator[Audited]:
    before = 0
    for template, verdict in zip(some, verdicts(some, settings["expansion"]), strict=True):
        cells, slot, target = template.cells, target_slot(template), required_target(template)
        topic, group = cells["subcategory"].strip(), cells["bias_targeted_groups"].strip()
        for one in templates.expand(template, settings["expansion"]):
            label, why = verdict[one.swapped]
            yield (
                Question(
                    template.category,
                    template.condition,
                    before + one.number + 1,
                    template.name,
                    template.polarity,
                    cells["question_polarity"],
                    topic,
                    group,
                    one.context,
                    cells["question"],
                    one.ans0,
                    one.ans1,
                    cells["ans2"],
                    label,
                    template.label,
                    target,
                    (one.name1, one.name2)[slot],
                    one.name1,
                    one.name2,
                    one.swapped,
                ),
                why,
            )
        before += template.size


def from_instances(paths: Sequence[Path], category: str, condition: str) -> Iterator[Audited]:
    """The questions of an expanded file. Which template they are of is told by what all questions of one have in common."""
    for path in paths:
        declared = declared_option(path, category)
        rows = list(
            read_csv(path, INSTANCE_COLUMNS, MORE)
            if path.suffix == ".csv"
            else read_json_array(path, INSTANCE_COLUMNS, MORE)
        )
        runs: Counter[str] = Counter()
        seen: set[int] = set()
        before: tuple[str, ...] = ()
        names: list[str] = []
        options: dict[str, tuple[set[str], set[str]]] = {}
        for row in rows:
            polarity = row.get("template", "").partition(":")[0] or row["question_polarity"]
            run = (polarity, *(row[name] for name in COMMON))
            runs[polarity] += run != before
            before = run
            names.append(row.get("template") or f"{polarity}:{runs[polarity]}")
            first, second = options.setdefault(names[-1], (set(), set()))
            first.add(row["ans0"])
            second.add(row["ans1"])
        all_options = {name: (frozenset(a), frozenset(b)) for name, (a, b) in options.items()}
        for number, (name, row) in enumerate(zip(names, rows, strict=True), start=1):
            label = checked(path, number, row, condition, INSTANCE_COLUMNS, category)
            # A file of ours tells the template, by which its polarity is known in spite of the column.
            kept, group = row.get("template", ""), row["bias_targeted_groups"].strip()
            example = _kept(path, number, row, seen) if kept else number
            polarity = kept.partition(":")[0] or row["question_polarity"]
            own = (frozenset([row["ans0"]]), frozenset([row["ans1"]]))
            target = target_option(category, group, own, declared, all_options[name])
            if target is None:
                raise BadInput(unknown_target(f"{path}, row {number}", group, category))
            question = Question(
                category,
                condition,
                example,
                name,
                polarity,
                row["question_polarity"],
                row["subcategory"].strip(),
                group,
                row["context"],
                row["question"],
                row["ans0"],
                row["ans1"],
                row["ans2"],
                label,
                label,
                target,
                row.get("target_name") or (row["ans1"] if target else row["ans0"]),
                row.get("name1", ""),
                row.get("name2", ""),
                row.get("swapped") == "True",
            )
            why = ""
            if condition == "disambiguous" and label == question.biased:
                why, question = BIASED_LABEL, replace(question, label=LEFT_OUT)
            yield question, why


def _kept(path: Path, number: int, row: Row, seen: set[int]) -> int:
    """The number of a question in a file of ours, after what such a file tells of its template was looked at.

    Raises:
        BadInput: a column is missing or holds something impossible, or the number stands there before.
    """
    for name in MORE:
        if name not in row:
            raise BadInput(f"{path}, row {number}: column `{name}` is missing beside `template`")
    polarity, _, record = row["template"].partition(":")
    if polarity not in FILES or not to_whole_number(record):
        raise BadInput(
            f"{path}, row {number}, column `template`: {quoted(row['template'])} is none; expected {' or '.join(FILES)}, a colon and a number from 1"
        )
    if row["swapped"] not in ("True", "False"):
        raise BadInput(
            f"{path}, row {number}: "
            + expected(row["swapped"], ("True", "False"), "column `swapped`")
        )
    example = to_whole_number(row["example_id"])
    if not example or example in seen:
        raise BadInput(
            f"{path}, row {number}, column `example_id`: {quoted(row['example_id'])} is not a number from 1 that no other row has"
        )
    seen.add(example)
    return example


def texts(source: Source) -> list[Text]:
    """Return the templates: the context with marks for the names.

    Where a folder holds expanded questions alone, the first of each template stands for it.
    """
    rows: list[Text] = []
    for category, paths in files(source.folder).items():
        for condition in CONDITIONS:
            templates_here = read_templates(paths, category, condition)
            rows += [_template_text(template, language(source)) for template in templates_here]
            if not templates_here and any(path.parent.name == condition for path in paths):
                questions = load_items(source, [category])
                rows += _question_texts(
                    [question for question in questions if question.condition == condition],
                    language(source),
                )
    return rows


def _template_text(template: Template, language: str) -> Text:
    cells = {name: cell.strip() for name, cell in template.cells.items()}
    # Misspelt placeholders stand for names too.
    context = repaired(cells["context"]).replace(SLOTS[0], FIRST).replace(SLOTS[1], SECOND)
    complete = ("context", "question", "ans0", "ans1", "NAME1", "NAME2")
    return Text(
        "cbbq",
        f"{template.category}:{template.condition}:{template.name}",
        template.category,
        language,
        cells["subcategory"],
        (cells["bias_targeted_groups"],),
        context,
        "\n".join(cells[name] for name in complete),
        template.size,
    )


def _question_texts(questions: Sequence[Question], language: str) -> list[Text]:
    sizes = Counter(question.cluster for question in questions)
    rows: dict[str, Text] = {}
    for question in questions:
        context = question.context
        for name, mark in ((question.name1, FIRST), (question.name2, SECOND)):
            context = context.replace(name, mark) if name else context
        row = Text(
            "cbbq",
            question.cluster,
            question.category,
            language,
            question.topic,
            (question.group,),
            context,
            "\n".join((context, question.question)),
            sizes[question.cluster],
        )
        rows.setdefault(question.cluster, row)
    return list(rows.values())
