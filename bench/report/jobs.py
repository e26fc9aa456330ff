"""The pages of a study, as notebooks with parameters; this module imports no Jupyter."""

import ast
import builtins
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench.benchmarks import get
from bench.core.errors import BadInput, expected, quoted
from bench.core.files import read_json
from bench.report.study import Study, at, merged

# An analysis gets the study's runs, or asks models in the study's way and under its limits.
SHARED = ("runs", "keys", "device", "batch_tokens", "scheduler", "resources", "limits")
# Allowed types of a parameter's value, where they are more than its annotation says.
TYPES = {"float": int | float, "list": list | tuple}


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


def page_jobs(plan: Study) -> list[Job]:
    """List the pages of a study, benchmarks first, with the parameters of their notebooks.

    Raises:
        BadInput: a notebook is missing, or does not have a parameter of the study.
    """
    jobs: list[Job] = []
    data = {}
    for variant in plan.variants:
        options = merged(plan.shared.options, variant.options)
        if options.get("data"):
            data[variant.benchmark] = options["data"]
        if variant.page:
            source = get(variant.benchmark).metadata.page
            types = types_of_parameters(source)
            parameters = {name: value for name, value in options.items() if name in types}
            parameters = {"data": "", **parameters, "models": [], "recorded": []}
            parameters = _checked(plan, variant.key, source, types, parameters)
            jobs.append(Job(variant.key, variant.title, source, parameters, [variant.key]))
    for page, analysis in plan.analyses.items():
        with at(plan.path, "analyses", page):
            source = analysis.source
            types = types_of_parameters(source)
            shared = {**plan.shared.options, "runs": [], "keys": dict(plan.keys)}
            parameters = {name: shared[name] for name in SHARED if name in types and name in shared}
            parameters |= analysis.parameters
            if "others" in types:
                names = parameters.setdefault("benchmarks", plan.benchmarks) or plan.benchmarks
                parameters.setdefault("data", {name: data[name] for name in names if name in data})
            parameters = _checked(plan, page, source, types, parameters)
        variants = plan.analysed(page) if "runs" in types else None
        jobs.append(Job(page, analysis.title(page), source, parameters, variants))
    with at(plan.path, "index"):
        types_of_parameters(plan.index)
    return jobs


def _checked(
    plan: Study, page: str, source: Path, types: Mapping[str, str], parameters: dict[str, Any]
) -> dict[str, Any]:
    """Add the parameters that the notebook of every page can have, and check all of them."""
    parameters["tables"] = f"../tables/{page}"
    if plan.paper and "paper" in types:
        parameters["paper"] = plan.paper
    check_parameters(source, types, parameters)
    return parameters


def check_parameters(source: Path, types: Mapping[str, str], parameters: Mapping[str, Any]) -> None:
    """Refuse a parameter that a notebook does not have, or a value of another type."""
    for name, value in parameters.items():
        if name not in types:
            raise BadInput(f"{source}: " + expected(name, list(types), "parameter"))
        kind: Any = TYPES.get(types[name]) or getattr(builtins, types[name], object)
        if value is not None and not isinstance(value, kind):
            raise BadInput(f"{source}: {name}: expected {types[name]}, found {quoted(value)}")


def types_of_parameters(source: Path) -> dict[str, str]:
    """Return the names and types of a notebook's parameters; "" for one without annotation."""
    if not source.is_file():
        names = sorted(path.stem for path in source.parent.glob("*.ipynb"))
        raise BadInput(f"{source.parent}: " + expected(source.stem, names, "notebook"))
    # Papermill itself reads line by line and misses lists over several lines.
    types = {}
    for cell in cells(source):
        if "parameters" not in cell["metadata"].get("tags", ()):
            continue
        for line in ast.parse("".join(cell["source"])).body:
            if isinstance(line, ast.AnnAssign):
                types[ast.unparse(line.target)] = ast.unparse(line.annotation)
            elif isinstance(line, ast.Assign):
                types |= {ast.unparse(target): "" for target in line.targets}
    return types


def cells(notebook: Path) -> list[dict[str, Any]]:
    """Read the cells of a notebook as JSON."""
    content = read_json(notebook)
    if content.get("nbformat") != 4 or not isinstance(content.get("cells"), list):
        raise BadInput(f"{notebook}: is no notebook of format 4; save it with JupyterLab")
    return list(content["cells"])
