"""Rules for rows of CBBQ's templates, in addition to the rules for all benchmarks."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from bench.benchmarks.cbbq import items, targets
from bench.benchmarks.cbbq.templates import (
    COLUMNS,
    CONDITIONS,
    SLOT_NAMES,
    SLOTS,
    TEXTS,
    Template,
    malformed,
)
from bench.data.checks import Errors, Rule, Tables, file_name, in_cells, noted

NAME_OF_SLOT = {None: "", 0: SLOT_NAMES[0], 1: SLOT_NAMES[1]}


def rows(folder: Path, errors: Errors, **settings: str) -> Tables:
    """Yield the templates of each category and condition, and note the errors of refused ones."""
    for category, paths in items.files(folder).items():
        for condition in CONDITIONS:
            with noted(errors):
                templates = items.read_templates(paths, category, condition)
                for template in templates:
                    with noted(errors):
                        targets.required_target(template)
                pairs = zip(templates, items.check_labels(templates), strict=True)
                yield pd.DataFrame([_row(*pair, folder) for pair in pairs])


def _row(template: Template, labels: Sequence[tuple[int, str]], folder: Path) -> dict[str, Any]:
    cells = template.cells
    part = f"{template.category}/{template.condition}"
    file = file_name(template.path, folder)
    texts = [cells[name].strip() for name in ("context", "question", *SLOT_NAMES, "ans0", "ans1")]
    return {
        **{name: cells[name] for name in COLUMNS},
        "file": file,
        "row": cells.number,
        "name": template.category,
        "counts_as": f"{template.condition} {template.polarity} templates",
        "part": part,
        "balance": f"{template.polarity} templates",
        "key": "\x1f".join((part, file, *texts)),
        "reason": " or ".join(dict.fromkeys(reason for _, reason in labels if reason)),
        "slot": NAME_OF_SLOT[targets.target_of(template)],
        "declared": NAME_OF_SLOT[template.declared],
        "group": "\x1f".join((part, template.group)),
    }


def missing(context: str) -> str:
    """Name the groups that a context never mentions."""
    slots = zip(SLOT_NAMES, SLOTS, strict=True)
    return " and ".join(name for name, slot in slots if slot not in context)


def reversed_slot(table: pd.DataFrame, column: str) -> "pd.Series[str]":
    """Find groups in the other slot than dataset.toml says, or than in most rows about them."""
    usual = table.slot.groupby(table.group).transform(lambda slots: slots.mode()[0])
    usual = table.declared.where(table.declared != "", usual)
    return usual.where((table.slot == column) & (usual != column), "")


RULES = (
    Rule(
        "label",
        ["label"],
        lambda table, column: table.reason,
        "each question {found}; `--set labels=audited` corrects it or leaves it out",
    ),
    Rule(
        "placeholder_left",
        TEXTS,
        in_cells(lambda text: " and ".join(dict.fromkeys(malformed(text)))),
        "has a wrong placeholder or a stray brace: {found}; `--set expansion=repair` mends it",
    ),
    Rule("group_not_named", ["context"], in_cells(missing), "never names {found}"),
    Rule(
        "roles_reversed",
        SLOT_NAMES,
        reversed_slot,
        "has the stereotyped group, which dataset.toml or most rows have in {found}",
    ),
)
RELEASED: Any = pd.read_csv(Path(__file__).with_name("release.csv"), index_col="category").to_dict(
    "index"
)
