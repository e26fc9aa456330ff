"""Fingerprints: hashes of all inputs of a page or a report, in a file beside it.

While they stay the same, we do not make it again.
"""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from bench import __version__, data, records, scorers
from bench.benchmarks import get
from bench.core.errors import BadInput
from bench.core.files import atomic_write, read_json
from bench.report.study import Study
from bench.run.cache import code_hash, hash_files
from bench.scorers.base import digest
from bench.tasks import prompts


def of_page(source: Path, parameters: Mapping[str, Any], runs: Iterable[Path]) -> dict[str, Any]:
    """Return the hashes of an executed notebook's inputs; `runs` has one per run, by folder."""
    return {
        "notebook": _of_notebook(source),
        "parameters": digest(parameters),
        "runs": {str(folder): _of_run(folder) for folder in runs},
        "package": _package(),
    }


def of_report(plan: Study, folder: Path) -> dict[str, Any]:
    """Return the hashes of a whole report's inputs.

    These are the study, its notebooks, data, prompts and models, all runs that its pages opened,
    the package, and the names of the pages and folders of tables that are there.
    """
    runs: set[str] = set()
    for page in (folder / "notebooks").glob("*.fingerprint.json"):
        runs |= set(read_json(page).get("runs", ()))
    content = cache(scorers.content)  # the files of a model are hashed once for all variants
    inputs = {}
    for model in plan.models:
        for variant in plan.variants_of(model):
            options = plan.run_options(model, variant)
            specs = [model.model, options.get("judge"), options.get("base")]
            source = data.find(variant.benchmark, options.get("data"))
            wording = prompts.load(variant.benchmark, options.get("prompts"), source.folder)
            inputs[f"{model.folder}/{variant.key}"] = [
                digest(options),
                [content(spec) for spec in specs if spec],
                source.sha256,
                digest(wording.tables),
            ]
    notebooks = [get(variant.benchmark).metadata.page for variant in plan.variants if variant.page]
    notebooks += [analysis.source for analysis in plan.analyses.values()]
    return {
        "study": digest(repr(plan)),
        "notebooks": list(map(_of_notebook, notebooks)),
        "inputs": inputs,
        "runs": {path: _of_run(Path(path)) for path in sorted(runs)},
        "package": _package(),
        "pages": sorted(path.name for path in (*folder.glob("*.html"), *folder.glob("tables/*/"))),
    }


def changed(target: Path, now: Mapping[str, Any]) -> list[str]:
    """List the parts of a fingerprint that changed since `target` was made.

    All parts, if it was not made to its end. Runs that a notebook opened count, even if no
    parameter names them.
    """
    before = read_json(_beside(target)) if target.is_file() else {}
    others = before.get("runs", {}).keys() - now["runs"].keys()
    now = {**now, "runs": {**now["runs"], **{run: _of_run(Path(run)) for run in others}}}
    return [name for name, value in now.items() if before.get(name) != value]


def is_unchanged(plan: Study, folder: Path) -> bool:
    """Return whether a report was made to its end, and none of its inputs has changed."""
    index = folder / "index.html"
    try:
        return _beside(index).is_file() and not changed(index, of_report(plan, folder))
    except (BadInput, OSError):  # data that are no longer there, for example
        return False


def forget(target: Path) -> None:
    """Make a notebook or a report count as changed."""
    for path in (_beside(target), opened_runs(target)):
        path.unlink(missing_ok=True)


def remember(target: Path, now: Mapping[str, Any]) -> None:
    """Save the fingerprint of a report or of an executed notebook, with the runs that it opened.

    Runs in temporary folders that it has removed are left out.
    """
    listing = opened_runs(target)
    named = listing.read_text("utf-8").splitlines() if listing.is_file() else []
    opened = {folder: _of_run(Path(folder)) for folder in named if Path(folder).is_dir()}
    content = {**now, "runs": {**opened, **now["runs"]}}
    atomic_write(_beside(target), json.dumps(content, indent=2))
    listing.unlink(missing_ok=True)


def opened_runs(target: Path) -> Path:
    """Return the file in which a notebook lists the runs that it opens."""
    return target.with_suffix(".opened")


def _beside(target: Path) -> Path:
    return target.with_suffix(".fingerprint.json")


def _of_run(folder: Path) -> str:
    return hash_files(folder, records.files(folder))


def _of_notebook(source: Path) -> str:
    book = json.loads(source.read_text("utf-8"))
    return digest([cell["source"] for cell in book["cells"]])


def _package() -> str:
    return f"{__version__} {code_hash()}"
