"""Which runs are one series of models that differ in size alone, and how large each is."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from bench.analyses import same_data
from bench.core.errors import BadInput, NoRuns
from bench.core.progress import say
from bench.metrics.bootstrap import Replicates
from bench.run.results import Run, labels

GIVEN, COUNTED, NAMED = "given", "counted", "its name"
LAYERS = "counted in its layers, without embeddings"
# A number of billions or millions that stands alone: in 30B-A3B it is 30, in 8x7B there is none.
SIZE = re.compile(r"(?<![A-Za-z0-9.])(\d+(?:\.\d+)?)[ _-]?([BbMm])(?![A-Za-z0-9])")
# Respondents of the same bias; as their "size" grows they answer less by position and more by what
# they know. These sizes are ours: no respondent has parameters.
SIMULATED = {
    "simulated:bias=0.6,position=0.8,competence=0.25": 0.5,
    "simulated:bias=0.6,position=0.4,competence=0.5": 1.5,
    "simulated:bias=0.6,position=0.1,competence=0.75": 7.0,
    "simulated:bias=0.6,position=0,competence=0.95": 32.0,
}


class Sized(NamedTuple):
    """A model of a series: its size in billions of parameters, where that is from, its scores."""

    model: str
    billions: float
    size_from: str
    replicates: Replicates


Series = Mapping[str, Sequence[Sized]]


def by_size(
    runs: Sequence[Run],
    series: Mapping[str, Sequence[str]] | None = None,
    sizes: Mapping[str, float] | None = None,
    preset: str | None = None,
) -> dict[str, dict[str, list[Sized]]]:
    """Return the models of each benchmark and series by size, scored on what all of them answered.

    Args:
        series: models by the name of their series; default: one for each `family` with two sizes.
        sizes: see `billions`.

    Raises:
        BadInput: a model of a series was not run, or on other data; two are of one size; or a size
            is not known.
        NoRuns: no series has two.
    """
    found: dict[str, dict[str, list[Sized]]] = {}
    left_out: dict[str, None] = {}
    for benchmark in dict.fromkeys(run.benchmark for run in runs):
        own = [run for run in runs if run.benchmark == benchmark]
        names = {run.folder: name for run, name in zip(own, labels(own), strict=True)}
        for name, members in _members(own, series or {}).items():
            same_data(members, f"series {name!r}")
            known = {}
            for run in members:
                try:
                    known[run.folder] = billions(run, sizes)
                except BadInput as error:
                    if series:
                        raise
                    left_out[f"left out: {error}"] = None
            members = [run for run in members if run.folder in known]
            if len(members) > 1 or (members and series):
                sized = [
                    Sized(
                        names[run.folder], *known[run.folder], run.replicates(preset, like=others)
                    )
                    for run in members
                    for others in [[other for other in members if other is not run]]
                ]
                found.setdefault(benchmark, {})[name] = ordered(sized, name)
    for text in left_out:
        say(text)
    if not any(len(models) > 1 for own_series in found.values() for models in own_series.values()):
        models = ", ".join(dict.fromkeys(run.label for run in runs))
        raise NoRuns(
            f"no series has models of two sizes: {models}; give series = {{NAME: [MODEL, MODEL]}}, "
            "or more runs"
        )
    return found


def _members(runs: Sequence[Run], series: Mapping[str, Sequence[str]]) -> dict[str, list[Run]]:
    members: dict[str, list[Run]] = {}
    if not series:
        for run in runs:
            name = "simulated, as if sizes" if run.model in SIMULATED else family(run)
            members.setdefault(name, []).append(run)
    for name, models in series.items():
        if isinstance(models, str):
            raise BadInput(
                f"series {name!r}: {models!r}; expected a list of models, like [{models!r}]"
            )
        members[name] = [run for run in runs if {run.model, run.label} & set(models)]
        known = {own for run in members[name] for own in (run.model, run.label)}
        if missing := [model for model in models if model not in known]:
            have = ", ".join(dict.fromkeys(run.label for run in runs))
            raise BadInput(
                f"series {name!r}: no run of {', '.join(missing)} on {runs[0].benchmark}; "
                f"there are {have}"
            )
    return members


def billions(run: Run, sizes: Mapping[str, float] | None = None) -> tuple[float, str]:
    """Return the size of a run's model in billions of parameters, and where that is from.

    Args:
        sizes: by the model's name, as it was given or as tables show it.

    Raises:
        BadInput: a size that is not positive, or none is known.
    """
    for name in (run.model, run.label):
        if name in (sizes or {}):
            size = (sizes or {})[name]
            if isinstance(size, bool) or not isinstance(size, int | float) or not size > 0:
                raise BadInput(
                    f"sizes: {name!r}: {size!r}; expected billions of parameters, above 0"
                )
            return float(size), GIVEN
    counted = run.about["model"].get("parameters")
    if isinstance(counted, int) and counted > 0:
        return counted / 1e9, COUNTED
    if isinstance(counted, Mapping) and {"hidden", "layers"} <= set(counted):
        # A tiny model: four square matrices and three of twice the width, biases and norms.
        hidden, layers = int(counted["hidden"]), int(counted["layers"])
        return (layers * (10 * hidden**2 + 5 * hidden) + hidden) / 1e9, LAYERS
    if match := SIZE.search(run.label):
        return float(match[1]) / (1 if match[2] in "Bb" else 1000), NAMED
    if run.model in SIMULATED:
        return SIMULATED[run.model], "ours, for show: it has no parameters"
    raise BadInput(
        f"{run.label}: its size is not known, neither from its run nor from its name; give "
        f"sizes = {{{run.label!r}: billions of parameters}}"
    )


def family(run: Run) -> str:
    """Return the name of a model without its size."""
    kind, _colon, rest = run.label.partition(":")
    if kind == "tiny":
        return ":".join(filter(None, [kind, rest.partition(",")[2]]))
    return re.sub(r"[-_ ]{2,}", "-", SIZE.sub("", run.label)).strip("-_ ") or run.label


def ordered(models: Iterable[Sized], name: str) -> list[Sized]:
    """Sort the models of series `name` by size.

    Raises:
        BadInput: two are of one size, so that no line over sizes goes through both.
    """
    by_billions = sorted(models, key=lambda one: one.billions)
    for one, other in pairwise(by_billions):
        if one.billions == other.billions:
            raise BadInput(
                f"series {name!r}: {one.model} and {other.model} are both of {one.billions:g} "
                "billion parameters; put them into two series"
            )
    return by_billions


def format_size(size: float) -> str:
    """Write a size as people do: 7B, 0.5B, 360M, 93K."""
    if size >= 0.45:
        return f"{size:.3g}B"
    return f"{size * 1e3:.3g}M" if size >= 1e-3 else f"{size * 1e6:.3g}K"
