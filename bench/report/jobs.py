"""The pages of a study, as notebooks with parameters; this module imports no Jupyter."""

import ast
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.benchmarks import get
from bench.core.errors import BadInput, expected, quoted
from bench.core.files import read_json
from bench.report.study import Study, at, is_own, merged

# Notebooks read records, so only notebooks that ask a model need these options.
RESOURCE_OPTIONS = ("device", "batch_tokens", "scheduler", "resources", "limits")
# Allowed types of a parameter's value, by the type annotation in the notebook.
TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
    "list": (list, tuple),
    "dict": (dict,),
}


class Job(NamedTuple):
    """A page to make.

    Attributes:
        name, shown_as: of the page, as a file and in the navigation.
        variants: keys of the study's variants with the runs for this notebook; None if it reads no
            runs.
    """

    name: str
    shown_as: str
    source: Path
    parameters: dict[str, Any]
    variants: Sequence[str] | None = None

    @property
    def reads_anything(self) -> bool:
        """Whether the notebook is the user's, so that we do not know what its page depends on."""
        return is_own(self.source)


def page_jobs(plan: Study) -> list[Job]:
    """List the pages of a study, benchmarks first, with the parameters of their notebooks.

    Raises:
        BadInput: a notebook is missing, or does not have a parameter of the study.
    """
    jobs: list[Job] = []
    data = {}
    for variant in plan.variants:
        options = merged(plan.options, variant.options)
        if options.get("data"):
            data[variant.benchmark] = options["data"]
        if variant.page:
            source = get(variant.benchmark).metadata.page
            known = types_of_parameters(source)
            parameters = {name: value for name, value in options.items() if name in known}
            parameters = {"data": "", **parameters, "models": [], "recorded": []}
            jobs.append(Job(variant.key, variant.title, source, parameters, [variant.key]))
    for page, analysis in plan.analyses.items():
        # An analysis uses the study's runs or data, or asks models under the study's limits.
        with at(plan.path, "analyses", page):
            known = types_of_parameters(analysis.source)
            shared = {key: value for key, value in plan.options.items() if key in RESOURCE_OPTIONS}
            shared |= {"runs": [], "keys": dict(plan.keys)}
            parameters = {name: value for name, value in shared.items() if name in known}
            parameters |= analysis.parameters
            check_parameters(analysis.source, parameters)
            if "others" in known:
                names = parameters.setdefault("benchmarks", plan.benchmarks) or plan.benchmarks
                named = {name: folder for name, folder in data.items() if name in names}
                parameters.setdefault("data", named)
        variants = plan.analysed(page) if "runs" in parameters else None
        jobs.append(Job(page, analysis.title, analysis.source, parameters, variants))
    with at(plan.path, "index"):
        types_of_parameters(plan.index)
    for job in jobs:
        job.parameters["tables"] = f"../tables/{job.name}"
        if plan.paper and "paper" in types_of_parameters(job.source):
            job.parameters["paper"] = plan.paper
        check_parameters(job.source, job.parameters)
    return jobs


def check_parameters(source: Path, parameters: Mapping[str, Any]) -> None:
    """Refuse a parameter that a notebook does not have, or a value of another type."""
    known = types_of_parameters(source)
    for name, value in parameters.items():
        if name not in known:
            raise BadInput(f"{source}: " + expected(name, list(known), "parameter"))
        kinds = TYPES.get(known[name], (object,))
        if value is None or isinstance(value, kinds):
            continue
        others = [other for other, kind in known.items() if isinstance(value, TYPES.get(kind, ()))]
        hint = f"; of this type are {', '.join(others)}" if isinstance(value, dict) else ""
        raise BadInput(
            f"{source}: {name}: expected {known[name]}, found {quoted(value)}"
            + (hint if others else "")
        )


def types_of_parameters(source: Path) -> dict[str, str]:
    """Return the names and types of a notebook's parameters; "" for one without annotation."""
    if not source.is_file():
        known = sorted(path.stem for path in source.parent.glob("*.ipynb"))
        raise BadInput(f"{source.parent}: " + expected(source.stem, known, "notebook"))
    # Papermill itself reads line by line and misses lists over several lines.
    types = {}
    for cell in cells(source):
        if "parameters" not in cell["metadata"].get("tags", ()):
            continue
        for line in ast.parse("".join(cell["source"])).body:
            annotation = ast.unparse(line.annotation) if isinstance(line, ast.AnnAssign) else ""
            for target in getattr(line, "targets", [getattr(line, "target", None)]):
                if isinstance(target, ast.Name):
                    types[target.id] = annotation
    return types


def cells(notebook: Path) -> list[dict[str, Any]]:
    """Read the cells of a notebook as JSON."""
    content = read_json(notebook)
    if content.get("nbformat") != 4 or not isinstance(content.get("cells"), list):
        raise BadInput(f"{notebook}: is no notebook of format 4; save it with JupyterLab")
    return list(content["cells"])
