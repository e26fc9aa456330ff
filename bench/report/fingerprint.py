"""Decide whether a page or a report has to be made again, by a hash of everything it is made of.

The hash of a page stands in the metadata of its executed notebook, and the one of a report in a
file beside its index.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from bench import benchmarks, data, scorers
from bench.core.errors import BadInput
from bench.core.files import atomic_write, read_json
from bench.core.inputs import PACKAGE_CODE, hash_inputs
from bench.core.shipped import NOTEBOOKS
from bench.data.manifest import MANIFEST, home
from bench.report.study import Study, is_own
from bench.run.run_json import packages
from bench.tasks import prompts

# Key of our entries in the metadata of a notebook.
METADATA = "bench"
# Parameters with a folder that a page writes to.
WRITTEN = ("tables", "trained")


def of_study(plan: Study) -> str:
    """Hash what all pages of a study share: the code, the data, and the models' names."""
    names, folders = dict.fromkeys(plan.benchmarks), set()
    for text in _texts([analysis.parameters for analysis in plan.analyses.values()]):
        with suppress(BadInput):
            names[benchmarks.resolve(text)] = None
    for name in names:
        with suppress(BadInput):
            folders.add(data.find(name).folder)
    for model in plan.models:
        for variant in plan.variants_of(model):
            given = plan.run_options(model, variant).get("data")
            folders.add(data.find(variant.benchmark, given).folder)
    files = [path for folder in sorted(folders) for path in (folder, home(folder) / MANIFEST)]
    files += sorted((NOTEBOOKS / "curation").glob("*.py"))  # which notebooks import
    code = [PACKAGE_CODE.key(), *(benchmarks.get(name).code.key() for name in names)]
    return hash_inputs(code, packages(), files, [model.label for model in plan.models])


def of_page(shared: str, source: Path, parameters: Mapping[str, Any], report: Path) -> str:
    """Hash the inputs of a page, among them the runs and files that its parameters name.

    Args:
        shared: the hash of `of_study`.
        report: the folder of the report.
    """
    given = {name: value for name, value in parameters.items() if name not in WRITTEN}
    # Their runs have what they answered.
    models = repr(given.pop("models", ())) if given.get("recorded") else ""
    contents = [_content(text) for text in _texts(given)]
    values = shared, _cells(source), given, models, contents
    return hash_inputs(*values, folder=report / "notebooks", but=report)


def is_fresh(notebook: Path, inputs: str) -> bool:
    """Return whether a notebook was executed to its end with these inputs."""
    metadata = read_json(notebook).get("metadata", {})
    return bool(metadata.get(METADATA, {}).get("inputs") == inputs)


def of_report(plan: Study, report: Path) -> str:
    """Hash the inputs of a whole report, and the names of its pages and tables."""
    content = cache(scorers.content)  # the files of a model are hashed once for all variants
    asked = []
    for model in plan.models:
        for variant in plan.variants_of(model):
            options = plan.run_options(model, variant)
            specs = [model.model, options.get("judge"), options.get("base")]
            source = data.find(variant.benchmark, options.get("data"))
            wording = prompts.load(source.benchmark, options.get("prompts"), source.folder)
            contents = [content(spec) for spec in specs if spec]
            run = f"../runs/{model.folder}/{variant.key}"  # from the folder of the notebooks
            asked.append([repr(options), contents, repr(wording.tables), run])
    pages = [variant.benchmark for variant in plan.variants if variant.page]
    sources = [benchmarks.get(name).metadata.page for name in pages]
    analyses = plan.analyses.values()
    sources += [plan.index, *(analysis.source for analysis in analyses)]
    given = [analysis.parameters for analysis in analyses]
    contents = [_content(text) for text in _texts(given)]
    made = sorted(path.name for path in (*report.glob("*.html"), *report.glob("tables/*/")))
    values = of_study(plan), repr(plan), list(map(_cells, sources)), asked, given, contents, made
    return hash_inputs(*values, folder=report / "notebooks", but=report)


def is_unchanged(plan: Study, report: Path) -> bool:
    """Return whether a report was made to its end, and nothing that it is made of has changed.

    We cannot know which files a notebook of the user reads, so that we always run it again.
    """
    if any(is_own(analysis.source) for analysis in plan.analyses.values()):
        return False
    try:
        return _of_index(report).read_text("utf-8") == of_report(plan, report)
    except (BadInput, OSError):  # no report, or data that are no longer there
        return False


def forget(report: Path) -> None:
    """Make a report count as changed."""
    _of_index(report).unlink(missing_ok=True)


def remember(plan: Study, report: Path) -> None:
    """Note that a report was made to its end."""
    atomic_write(_of_index(report), of_report(plan, report))


def _of_index(report: Path) -> Path:
    return report / "notebooks" / "index.sha256"


def _cells(notebook: Path) -> list[Any]:
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    return [[cell["cell_type"], cell["source"], cell["metadata"].get("tags")] for cell in cells]


def _texts(value: object) -> Iterator[str]:
    """Yield the texts in a value, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(part)


def _content(text: str) -> str | None:
    """Hash the files of a model of a kind with files, for example of a Python function."""
    kind, _ = scorers.split_kind(text)
    if kind and kind in scorers.BACKENDS:
        with suppress(BadInput):
            return scorers.content(text)
    return None
