"""Write a curated project as a data set in the format of CBBQ's release.

release/dataset.toml        name, version, language, licence, labels of the categories
release/provenance.csv      where each row comes from: author, draft, reviewers, discussion
release/CATEGORY/CONDITION/templates_generate_neg.csv and templates_generate_nonneg.csv
"""

from collections import Counter, defaultdict
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from bench.core.cells import as_csv, guarded
from bench.core.errors import BadInput
from bench.core.files import atomic_write, explain_write_errors
from bench.curate.cbbq import Project, Scenario
from bench.curate.cbbq.discuss import Discussed, discussed
from bench.curate.cbbq.drafts import decided
from bench.curate.cbbq.review import forms, reviewed
from bench.data import MANIFEST
from bench.data.cbbq.templates import CONDITIONS, FILES, SLOT_NAMES
from bench.data.dataset import PROMPTS_FILE, manifest_tables, own_prompts
from bench.data.readers import BOM, Row, read_text, to_toml

FOLDER = "release"
PROVENANCE = "provenance.csv"
# The columns of the release's files, in its order; the files begin with a byte order mark.
COLUMNS = [
    *("question_index", "question_polarity", "context_condition", "category", "subcategory"),
    *("bias_targeted_groups", "source", "context", "NAME1", "NAME2", "question"),
    *("ans0", "ans1", "ans2", "label"),
]


class Release(NamedTuple):
    """A data set that was written.

    Attributes:
        left_out: templates that are not in it, with `decision`, `reason` and `note`.
        provenance: one row per row of its files: `file`, `row`, and where that comes from.
    """

    folder: Path
    left_out: pd.DataFrame
    provenance: pd.DataFrame


def write(project: Project, out: Path | None = None) -> Release:
    """Write the templates that are ready, see `discuss`.

    Args:
        out: a new or empty folder, or one that this wrote; default: `release` in the project.

    Raises:
        BadInput: no template is ready (an earlier set stays, see `withdraw`), or the folder holds
            something else.
    """
    place = out or project.folder / FOLDER
    is_ours = (place / PROVENANCE).is_file() or (place.is_dir() and not any(place.iterdir()))
    if place.exists() and not is_ours:
        raise BadInput(
            f"{place}: holds something that was not written here; give an empty or new folder"
        )
    state = discussed(project)
    standing = state.standing
    ready = {*standing.template[standing.ready]}
    if not ready:
        raise BadInput(
            f"{project.folder}: no template is ready, so there is nothing to write; "
            f"{_waits_for(state)}"
        )
    scenarios = [scenario for scenario in project.templates() if scenario.name in ready]
    files: dict[Path, list[Row]] = defaultdict(list)
    table = forms(project).set_index("item_id")
    origins = _origins(project, state)
    provenance = []
    for scenario in scenarios:
        for condition in CONDITIONS:
            for polarity, name in FILES.items():
                item = f"{scenario.name}:{condition}:{polarity}"
                path = Path(scenario.category) / condition / name
                files[path].append(_row(scenario, table.loc[item], len(files[path]) + 1))
                row = {"file": path.as_posix(), "row": len(files[path]), "item_id": item}
                bias, author = scenario.bias["bias"], scenario.cells["author"]
                provenance.append({**row, "bias": bias, "author": author, **origins[item]})
    origin = pd.DataFrame(provenance).sort_values(["file", "row"], kind="stable", ignore_index=True)
    with explain_write_errors(place):
        # The manifest comes last: without it a folder is no data set.
        _clear(place, files)
        safe = origin.map(lambda cell: guarded(cell) if isinstance(cell, str) else cell)
        atomic_write(place / PROVENANCE, as_csv(safe))
        for path, rows in files.items():
            atomic_write(place / path, BOM + as_csv(pd.DataFrame(rows, columns=COLUMNS)))
        if prompts := own_prompts(project.folder):
            atomic_write(place / PROMPTS_FILE, read_text(prompts))
        atomic_write(place / MANIFEST, manifest_text(project, scenarios))
    columns = ["template", "objections", "decision", "reason", "note"]
    return Release(place, standing.loc[~standing.ready, columns].reset_index(drop=True), origin)


def withdraw(project: Project) -> None:
    """Remove a data set that was written before, as none of its templates is ready any more."""
    place = project.folder / FOLDER
    if (place / PROVENANCE).is_file():
        with explain_write_errors(place):
            _clear(place, ())
            (place / PROVENANCE).unlink()


def manifest_text(project: Project, scenarios: Collection[Scenario]) -> str:
    """Write the project's manifest, with the slot of the stereotyped group in each category."""
    manifest = project.manifest
    targets: dict[str, set[int]] = defaultdict(set)
    for scenario in scenarios:
        targets[scenario.category].add(scenario.target)
    categories = {
        name: category._replace(target=SLOT_NAMES[min(targets[name])])
        if not category.target and len(targets[name]) == 1
        else category
        for name, category in manifest.categories.items()
    }
    if categories == manifest.categories:
        return read_text(project.folder / MANIFEST)
    return to_toml({**manifest.told, **manifest_tables(manifest._replace(categories=categories))})


def _waits_for(state: Discussed) -> str:
    """Count what keeps templates out of the data set."""
    counts = Counter(note.partition(": ")[0] for note in state.standing.note)
    return "; ".join(f"{note}: {n}" for note, n in counts.items() if note) or "there is no template"


def _clear(place: Path, keep: Collection[Path]) -> None:
    """Remove what makes a folder a data set, and its tables except those to `keep`."""
    for name in (MANIFEST, PROMPTS_FILE):
        (place / name).unlink(missing_ok=True)
    for path in place.glob("*/*/templates_generate_*.csv"):
        if path.relative_to(place) not in keep:
            path.unlink()


def _row(scenario: Scenario, form: Any, index: int) -> Row:
    copied = {name: scenario.cells[name] for name in ("NAME1", "NAME2", "ans0", "ans1", "ans2")}
    return copied | {
        "question_index": str(index),
        "question_polarity": form.polarity,
        "context_condition": form.condition,
        "category": scenario.category,
        "subcategory": scenario.bias["topic"],
        "bias_targeted_groups": scenario.bias["group"],
        "source": scenario.bias["source"],
        "context": form.context,
        "question": form.question,
        "label": str(form.label),
    }


def _origins(project: Project, state: Discussed) -> dict[str, dict[str, Any]]:
    """Return where each form comes from: its draft, reviewers and discussion."""
    drafts = {
        row["template"]: row for row in decided(project).drafts.to_dict("records") if row["facts"]
    }
    rows = {(row["template"], int(row["draw"])): row for row in project.table("drafts")}
    answers = reviewed(project).answers
    answers = answers[answers.question == "answer"]
    standing = {row["template"]: row for row in state.standing.to_dict("records")}
    origins = {}
    for form in forms(project).to_dict("records"):
        item, name = form["item_id"], form["template"]
        is_drafted = form["condition"] == CONDITIONS[1] and name in drafts
        draft: dict[Any, Any] = drafts[name] if is_drafted else {}
        row = rows[name, draft["draw"]] if is_drafted else {}
        blind, settled = answers[answers.item_id == item], standing[name]
        origins[item] = {
            "drafted_by": row.get("model", ""),
            "wording": row.get("wording", ""),
            "wording_version": row.get("version", ""),
            "seed": row.get("seed", ""),
            "draw": row.get("draw", ""),
            "became": draft.get("kind", ""),
            "changed": draft.get("distance", float("nan")),
            "decided_by": draft.get("person", ""),
            "decided_when": draft.get("when", ""),
            "reviewers": ", ".join(sorted(blind.person)),
            "answered_as_labelled": int((blind.answer == blind.label).sum()),
            "objections": settled["objections"],
            "decision": settled["decision"],
            "reason": settled["reason"],
            "discussed_by": settled["decided_by"],
            "discussed_when": settled["decided_when"],
        }
    return origins
