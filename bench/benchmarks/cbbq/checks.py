"""Rules for rows of CBBQ's templates, in addition to the rules for all benchmarks."""

from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from bench.benchmarks.cbbq import items, targets, templates
from bench.benchmarks.cbbq.templates import (
    CATEGORIES,
    COLUMNS,
    CONDITIONS,
    PLACEHOLDER,
    SLOTS,
    TEXTS,
    Template,
    malformed,
)
from bench.core.errors import BadInput
from bench.data.checks import (
    CHARACTERS,
    Rule,
    Tables,
    differs_from,
    file_name,
    given_by,
    in_cells,
    invisible,
)

SLOT_NAMES = {None: "", 0: "NAME1", 1: "NAME2"}
LISTS = ("NAME1", "NAME2")


def rows(folder: Path, **settings: str) -> Tables:
    """Yield the templates of each category and condition, and the errors of refused ones."""
    single = None
    categories = CATEGORIES
    expansion = settings.get("expansion", "compat")
    try:
        single = items.single_table(folder)
        categories = items.categories_of(folder)
        items.files(folder)
    except BadInput as error:
        yield error
    root = folder if single or not folder.is_dir() else items.root(folder, categories)
    for category, condition in product(categories, CONDITIONS):
        part = root / category / condition
        rows_of_part: list[Template] = []
        is_complete = True
        for path in [single] if single else [part / name for name in templates.FILES.values()]:
            try:
                if path.is_file():
                    rows_of_part.extend(templates.read(path, category, condition, expansion))
            except BadInput as error:
                is_complete = False  # the rows after it are not read
                yield error
        for template in rows_of_part:
            try:
                targets.required_target(template)
            except BadInput as error:
                yield error
        pairs = zip(rows_of_part, items.check_labels(rows_of_part), strict=True)
        table = pd.DataFrame([_row(*pair, folder) for pair in pairs])
        yield table if is_complete else table.assign(balance="")


def _row(template: Template, labels: list[tuple[int, str]], folder: Path) -> dict[str, Any]:
    cells = template.cells
    part = f"{template.category}/{template.condition}"
    file = file_name(template.path, folder)
    texts = [cells[name].strip() for name in ("context", "question", *LISTS, "ans0", "ans1")]
    return {
        **{name: cells[name] for name in COLUMNS},
        "file": file,
        "row": cells.number,
        "name": template.category,
        "counts_as": f"{template.condition} {template.polarity} templates",
        "part": part,
        "balance": f"{template.polarity} templates",
        "polarity": template.polarity,
        "key": "\0".join((part, file, *texts)),
        "prompt": "\0".join((part, *texts[:2])),
        "reason": " or ".join(dict.fromkeys(reason for _, reason in labels if reason)),
        "slot": SLOT_NAMES[targets.target_of(template)],
        "declared": SLOT_NAMES[template.declared],
        "group": "\0".join((part, template.group)),
    }


def missing(context: str) -> str:
    """Name the groups that a context never mentions."""
    named = {match[0] for match in PLACEHOLDER.finditer(context)}
    return " and ".join(name for name, slot in zip(LISTS, SLOTS, strict=True) if slot not in named)


def misspelt(text: str) -> str:
    """List the placeholders of a text that are not filled, and its other braces."""
    return " and ".join(dict.fromkeys(malformed(text)))


def twice(cell: str) -> str:
    """List the names that a cell has twice."""
    return ", ".join(name for name, n in Counter(templates.names(cell)).items() if n > 1)


def in_both(table: pd.DataFrame, column: str) -> "pd.Series[str]":
    """List the names that both people can have."""
    lists = [table[name].map(templates.names) for name in LISTS]
    common = [", ".join(sorted({*first} & {*second})) for first, second in zip(*lists, strict=True)]
    return pd.Series(common, index=table.index)


def reversed_slot(table: pd.DataFrame, column: str) -> "pd.Series[str]":
    """Find groups in the other slot than dataset.toml says, or than in most rows about them."""
    usual = table.slot.groupby(table.group).transform(lambda slots: slots.mode()[0])
    usual = table.declared.where(table.declared != "", usual)
    return usual.where((table.slot == column) & (usual != column), "")


def in_both_polarities(table: pd.DataFrame, column: str) -> "pd.Series[str]":
    """Find questions that the file of the other polarity has too; return the file and row there."""
    locations = table.file + ", row " + table.row.astype(str)
    location_of: dict[tuple[str, str], str] = {}
    for polarity, prompt, location in zip(table.polarity, table.prompt, locations, strict=True):
        location_of[polarity, prompt] = location
    other = {"neg": "non_neg", "non_neg": "neg"}
    pairs = zip(table.polarity, table.prompt, strict=True)
    in_other = [location_of.get((other[polarity], prompt), "") for polarity, prompt in pairs]
    return pd.Series(in_other, index=table.index)


RULES = (
    Rule("invisible_characters", COLUMNS, in_cells(invisible), CHARACTERS),
    Rule(
        "polarity_column",
        ["question_polarity"],
        differs_from("polarity"),
        "is not that of the file, {found}, which is believed unless `--set polarity=column`",
    ),
    Rule(
        "category_column",
        ["category"],
        differs_from("name"),
        "is not that of the folder, {found}, which is believed",
    ),
    Rule(
        "label",
        ["label"],
        given_by("reason"),
        "each question {found}; `--set labels=audited` corrects it or leaves it out",
    ),
    Rule(
        "placeholder_left",
        TEXTS,
        in_cells(misspelt),
        "has a wrong placeholder or a stray brace: {found}; `--set expansion=repair` mends it",
    ),
    Rule("group_not_named", ["context"], in_cells(missing), "never names {found}"),
    Rule("name_twice", LISTS, in_cells(twice), "lists a name twice: {found}"),
    Rule(
        "name_in_both_lists",
        ["NAME2"],
        in_both,
        "lists names of NAME1 too: {found}; both people of a question are then called alike",
    ),
    Rule(
        "roles_reversed",
        LISTS,
        reversed_slot,
        "has the stereotyped group, which dataset.toml or most rows have in {found}",
    ),
    Rule(
        "both_polarities",
        ["question"],
        in_both_polarities,
        "is asked of this context in the other polarity too, in {found}; one is not negated",
    ),
)
RELEASED: Any = pd.read_csv(Path(__file__).with_name("release.csv"), index_col="category").to_dict(
    "index"
)
