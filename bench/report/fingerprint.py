"""Hash what a page is made of: its source, parameters, files, runs, and this package.

The hash stands in the metadata of the page's executed notebook.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from bench import benchmarks, data, scorers
from bench.core.errors import BadInput
from bench.core.files import read_json
from bench.core.inputs import PACKAGE_CODE, hash_inputs
from bench.core.shipped import NOTEBOOKS
from bench.data.manifest import MANIFEST, home
from bench.report.jobs import Job, cells
from bench.report.study import Study
from bench.run.run_json import packages

# Key of our entries in the metadata of a notebook.
METADATA = "bench"
# Parameters with a folder that a page writes to.
WRITTEN = ("tables", "trained")


def of_study(plan: Study) -> str:
    """Hash what all pages share: the code, the data, and the names of the models."""
    code = {"bench": PACKAGE_CODE.key()}
    folders = [
        data.find(variant.benchmark, plan.run_options(model, variant).get("data")).folder
        for model, variant in plan.runs
    ]
    # A parameter can name a benchmark.
    for text in _texts([plan.benchmarks, *(part.parameters for part in plan.analyses.values())]):
        with suppress(BadInput):
            code[text] = benchmarks.get(text).code.key()
            folders.append(data.find(text).folder)
    files = [path for folder in folders for path in (folder, home(folder) / MANIFEST)]
    files += sorted((NOTEBOOKS / "curation").glob("*.py"))  # which notebooks import
    labels = [model.label for model in plan.models]
    return hash_inputs(code, packages(), list(dict.fromkeys(files)), labels)


def of_page(shared: str, job: Job, report: Path) -> str:
    """Hash the inputs of a page; `shared` is the hash of `of_study`."""
    parameters = {name: value for name, value in job.parameters.items() if name not in WRITTEN}
    # The runs have what their models answered, so we do not hash large files of models.
    models = repr(parameters.pop("models", ())) if parameters.get("recorded") else ""
    contents = [_content(text) for text in _texts(parameters)]
    source = [
        [cell["cell_type"], cell["source"], cell["metadata"].get("tags")]
        for cell in cells(job.source)
    ]
    values = shared, source, parameters, models, contents
    return hash_inputs(*values, folder=report / "notebooks", but=report)


def is_fresh(notebook: Path, inputs: str) -> bool:
    """Return whether a notebook was executed to its end with these inputs."""
    metadata = read_json(notebook).get("metadata", {})
    return bool(metadata.get(METADATA, {}).get("inputs") == inputs)


def _texts(value: object) -> Iterator[str]:
    """Yield the texts in a value, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(part)


def _content(text: str) -> str | None:
    """Hash the files of a model of a kind with a name, for example of a Python function."""
    kind, _rest = scorers.split_kind(text)
    if kind and kind in scorers.BACKENDS:
        with suppress(BadInput):
            return scorers.content(text)
    return None
