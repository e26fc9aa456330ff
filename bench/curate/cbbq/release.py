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
from bench.curate.cbbq.rounds import Rounds
from bench.data import MANIFEST, card
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
COPIED = ("NAME1", "NAME2", "ans0", "ans1", "ans2")


class Release(NamedTuple):
    """A data set that was written.

    Attributes:
        left_out: templates that are not in it, with `decision`, `reason` and `note`.
        provenance: one row per row of its files: `file`, `row`, and where that comes from.
    """

    folder: Path
    left_out: pd.DataFrame
    provenance: pd.DataFrame


def write(rounds: Rounds, out: Path | None = None) -> Release:
    """Write the templates that are ready.

    Args:
        out: a new or empty folder, or one that this wrote; default: `release` in the project.

    Raises:
        BadInput: no template is ready (an earlier set stays, see `withdraw`), or the folder holds
            something else.
    """
    project, standing = rounds.project, rounds.standing
    place = out or project.folder / FOLDER
    is_ours = (place / PROVENANCE).is_file() or (place.is_dir() and not any(place.iterdir()))
    if place.exists() and not is_ours:
        raise BadInput(
            f"{place}: holds something that was not written here; give an empty or new folder"
        )
    if not standing.ready.any():
        counts = Counter(note.partition(": ")[0] for note in standing.note)
        waits = "; ".join(f"{note}: {n}" for note, n in counts.items())
        raise BadInput(
            f"{project.folder}: no template is ready, so there is nothing to write; "
            f"{waits or 'there is no template'}"
        )
    scenarios = [rounds.scenarios[name] for name in standing.template[standing.ready]]
    drafts = {row["template"]: row for row in rounds.drafts.to_dict("records") if row["facts"]}
    origins = {(row["template"], int(row["draw"])): row for row in project.table("drafts")}
    settled: Any = standing.set_index("template")
    forms: Any = rounds.forms[rounds.forms.template.map(settled.ready)]
    files: dict[Path, list[Row]] = defaultdict(list)
    provenance = []
    for form in forms.itertuples():
        scenario, decision = rounds.scenarios[form.template], settled.loc[form.template]
        path = Path(scenario.category) / form.condition / FILES[form.polarity]
        files[path].append(
            {
                "question_index": str(len(files[path]) + 1),
                "question_polarity": form.polarity,
                "context_condition": form.condition,
                "category": scenario.category,
                "subcategory": scenario.bias["topic"],
                "bias_targeted_groups": scenario.bias["group"],
                "source": scenario.bias["source"],
                "context": form.context,
                "question": form.question,
                "label": str(form.label),
                **{name: scenario.cells[name] for name in COPIED},
            }
        )
        draft = drafts[form.template] if form.condition == CONDITIONS[1] else {}
        origin = origins[form.template, draft["draw"]] if draft else {}
        blind = rounds.answers[rounds.answers.item_id == form.item_id]
        blind = blind[blind.question == "answer"]
        provenance.append(
            {
                "file": path.as_posix(),
                "row": len(files[path]),
                "item_id": form.item_id,
                "bias": scenario.bias["bias"],
                "author": scenario.cells["author"],
                "drafted_by": origin.get("model", ""),
                "wording": origin.get("wording", ""),
                "wording_version": origin.get("version", ""),
                "seed": origin.get("seed", ""),
                "draw": origin.get("draw", ""),
                "became": draft.get("kind", ""),
                "changed": draft.get("distance", float("nan")),
                "decided_by": draft.get("person", ""),
                "decided_when": draft.get("when", ""),
                "reviewers": ", ".join(sorted(blind.person)),
                "answered_as_labelled": int((blind.answer == blind.label).sum()),
                "objections": decision.objections,
                "decision": decision.decision,
                "reason": decision.reason,
                "discussed_by": decision.decided_by,
                "discussed_when": decision.decided_when,
            }
        )
    table = pd.DataFrame(provenance).sort_values(["file", "row"], kind="stable", ignore_index=True)
    with explain_write_errors(place):
        # The manifest comes last: without it a folder is no data set.
        _clear(place, files)
        safe = table.map(lambda cell: guarded(cell) if isinstance(cell, str) else cell)
        atomic_write(place / PROVENANCE, as_csv(safe))
        for path, rows in files.items():
            atomic_write(place / path, BOM + as_csv(pd.DataFrame(rows, columns=COLUMNS)))
        if prompts := own_prompts(project.folder):
            atomic_write(place / PROMPTS_FILE, read_text(prompts))
        atomic_write(place / MANIFEST, manifest_text(project, scenarios))
        card.write("cbbq", place)
    columns = ["template", "objections", "decision", "reason", "note"]
    return Release(place, standing.loc[~standing.ready, columns].reset_index(drop=True), table)


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
    return to_toml({**manifest.texts, **manifest_tables(manifest._replace(categories=categories))})


def _clear(place: Path, keep: Collection[Path]) -> None:
    """Remove what makes a folder a data set, and its tables except those to `keep`."""
    for name in (MANIFEST, PROMPTS_FILE):
        (place / name).unlink(missing_ok=True)
    card.remove(place)
    for path in place.glob("*/*/templates_generate_*.csv"):
        if path.relative_to(place) not in keep:
            path.unlink()
