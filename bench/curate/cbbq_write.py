"""From a curated project to a data set: a folder in the format of CBBQ's release, which every room reads, and its counts.

release/dataset.toml        name, version, language, licence, labels of the categories
release/provenance.csv      where each row comes from: author, draft, decision, reviewers, discussion
release/CATEGORY/CONDITION/templates_generate_neg.csv and templates_generate_nonneg.csv
"""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from bench.core.cells import as_csv, guarded
from bench.core.errors import BadInput
from bench.core.files import atomic_write, explain_write_errors
from bench.curate.cbbq import Project, Scenario
from bench.curate.cbbq_discuss import Discussed, discussed
from bench.curate.cbbq_drafts import decided, each
from bench.curate.cbbq_review import forms, reviewed
from bench.data import MANIFEST as DATASET
from bench.data import Source, cbbq, readers
from bench.data.cbbq.targets import SLOT_NAMES
from bench.data.cbbq.templates import CONDITIONS, FILES
from bench.data.dataset import PROMPTS_FILE, manifest_tables, own_prompts
from bench.data.readers import Row, read_text

FOLDER = "release"
PROVENANCE = "provenance.csv"
# As the release's files begin, and their columns in its order.
MARK = "\ufeff"
COLUMNS = (
    "question_index",
    "question_polarity",
    "context_condition",
    "category",
    "subcategory",
    "bias_targeted_groups",
    "source",
    "context",
    "NAME1",
    "NAME2",
    "question",
    "ans0",
    "ans1",
    "ans2",
    "label",
)


class Made(NamedTuple):
    """A data set that was written.

    Attributes:
        folder: where it is.
        left_out: templates that are not in it: `template`, `objections`, `decision`, `reason` and `note` (see `Discussed.standing`).
        provenance: a row a row of its files: `file`, `row`, and where that comes from.
    """

    folder: Path
    left_out: pd.DataFrame
    provenance: pd.DataFrame


def write(project: Project, out: Path | None = None) -> Made:
    """Write the templates that are ready: their four forms are complete and reviewed, and a discussion kept what was objected to.

    Args:
        out: an empty or new folder, or one that was written by this before; `release` in the project's without it.

    Raises:
        BadInput: no template is ready, or the folder holds something else. An earlier set, of templates that were ready
            before, stays as it is then; see `withdraw`.
        RunFailed: it cannot be written.
    """
    place = out or project.folder / FOLDER
    if (
        place.exists()
        and not (place / PROVENANCE).is_file()
        and (not place.is_dir() or any(place.iterdir()))
    ):
        raise BadInput(
            f"{place}: holds something that was not written here; give an empty or new folder"
        )
    state = discussed(project)
    ready = set(state.standing.template[state.standing.ready])
    if not ready:
        raise BadInput(
            f"{project.folder}: no template is ready, so there is nothing to write; {waits_for(state)}"
        )
    some = [one for one in project.templates() if one.name in ready]
    found = forms(project).set_index("item_id")
    made: dict[Path, list[Row]] = {}
    origin: list[dict[str, Any]] = []
    told = _provenance(project, state)
    for one in some:
        for condition in CONDITIONS:
            for polarity, name in FILES.items():
                item = f"{one.name}:{condition}:{polarity}"
                path = Path(one.category) / condition / name
                rows = made.setdefault(path, [])
                rows.append(_row(one, found.loc[item], len(rows) + 1))
                origin.append(
                    {
                        "file": path.as_posix(),
                        "row": len(rows),
                        "item_id": item,
                        **told(one, condition, item),
                    }
                )
    provenance = (
        pd.DataFrame(origin).sort_values(["file", "row"], kind="stable").reset_index(drop=True)
    )
    with explain_write_errors(place):
        # What an earlier writing left and this one does not make; the manifest comes last, so that a half is no data set.
        _clear(place, made)
        atomic_write(
            place / PROVENANCE,
            as_csv(provenance.map(lambda cell: guarded(cell) if isinstance(cell, str) else cell)),
        )
        for path, rows in made.items():
            atomic_write(place / path, MARK + as_csv(pd.DataFrame(rows, columns=list(COLUMNS))))
        if wording := own_prompts(project.folder):
            atomic_write(place / PROMPTS_FILE, read_text(wording))
        atomic_write(place / DATASET, _manifest(project, some))
    left_out = state.standing[~state.standing.ready][
        ["template", "objections", "decision", "reason", "note"]
    ]
    return Made(place, left_out.reset_index(drop=True), provenance)


def withdraw(project: Project) -> None:
    """Take away the data set that was written before: none of its templates is ready any more.

    Raises:
        RunFailed: a file cannot be removed.
    """
    place = project.folder / FOLDER
    if (place / PROVENANCE).is_file():
        with explain_write_errors(place):
            _clear(place, ())
            (place / PROVENANCE).unlink()


def waits_for(state: Discussed) -> str:
    """What stands between the templates and a data set, with how many of them."""
    counts = state.standing.note.str.partition(": ")[0].value_counts(sort=False)
    told = [f"{note}: {n}" for note, n in counts.items() if note]
    return "; ".join(told) or "there is no template"


def counts(source: Source) -> pd.DataFrame:
    """Templates and the questions that they are expanded to: a row a category, condition and polarity, and one `all`."""
    rows = [
        (category, condition, polarity, len(some), sum(one.size for one in some))
        for category, paths in cbbq.files(source.folder).items()
        for condition in CONDITIONS
        for polarity in FILES
        if (
            some := [
                one
                for one in cbbq.read_templates(paths, category, condition)
                if one.polarity == polarity
            ]
        )
    ]
    table = pd.DataFrame(
        rows, columns=["category", "condition", "polarity", "templates", "questions"]
    )
    total = pd.DataFrame(
        [("all", "", "", int(table.templates.sum()), int(table.questions.sum()))],
        columns=table.columns,
    )
    return pd.concat([table, total], ignore_index=True)


def _clear(place: Path, keep: Collection[Path]) -> None:
    """Remove what makes a folder a data set, and its tables but those to `keep`."""
    (place / DATASET).unlink(missing_ok=True)
    (place / PROMPTS_FILE).unlink(missing_ok=True)
    for path in place.glob("*/*/templates_generate_*.csv"):
        if path.relative_to(place) not in keep:
            path.unlink()


def _manifest(project: Project, some: Collection[Scenario]) -> str:
    """Write the project's manifest, with the slot of the stereotyped group in each category."""
    said = project.manifest
    targets: dict[str, set[int]] = {}
    for one in some:
        targets.setdefault(one.category, set()).add(one.target)
    categories = {
        name: category._replace(target=SLOT_NAMES[targets[name].copy().pop()])
        if not category.target and len(targets.get(name, ())) == 1
        else category
        for name, category in said.categories.items()
    }
    if categories == said.categories:
        return read_text(project.folder / DATASET)
    return readers.to_toml({**said.told, **manifest_tables(said._replace(categories=categories))})


def _row(one: Scenario, form: Any, index: int) -> Row:
    told = {
        "question_index": str(index),
        "question_polarity": form.polarity,
        "context_condition": form.condition,
        "category": one.category,
        "subcategory": one.bias["topic"],
        "bias_targeted_groups": one.bias["group"],
        "source": one.bias["source"],
        "context": form.context,
        "question": form.question,
        "label": str(form.label),
    }
    return told | {name: one.cells[name] for name in ("NAME1", "NAME2", "ans0", "ans1", "ans2")}


def _provenance(
    project: Project, state: Discussed
) -> Callable[[Scenario, str, str], dict[str, Any]]:
    """A function from a template, condition and form to where that comes from."""
    decisions = decided(project)
    drafts = {row.template: row for row in each(decisions.drafts) if row.facts}
    asked = {(row["template"], int(row["draw"])): row for row in project.table("drafts")}
    given = reviewed(project).answers
    answers = given[given.question == "answer"]
    settled = state.standing.set_index("template")

    def of(one: Scenario, condition: str, item: str) -> dict[str, Any]:
        draft = drafts[one.name] if condition == CONDITIONS[1] else None
        of_draft: Row = asked[one.name, draft.draw] if draft else {}
        said = answers[answers.item_id == item]
        return {
            "bias": one.bias["bias"],
            "author": one.cells["author"],
            "drafted_by": of_draft.get("model", ""),
            "wording": of_draft.get("wording", ""),
            "wording_version": of_draft.get("version", ""),
            "seed": of_draft.get("seed", ""),
            "draw": of_draft.get("draw", ""),
            "became": draft.kind if draft else "",
            "changed": draft.distance if draft else float("nan"),
            "decided_by": draft.person if draft else "",
            "decided_when": draft.when if draft else "",
            "reviewers": ", ".join(sorted(said.person)),
            "answered_as_labelled": int((said.answer == said.label).sum()),
            "objections": int(settled.objections[one.name]),
            "decision": settled.decision[one.name],
            "reason": settled.reason[one.name],
            "discussed_by": settled.decided_by[one.name],
            "discussed_when": settled.decided_when[one.name],
        }

    return of
