"""How large the models of runs are, and which of them are one series in several sizes.

series = by_size(asked)["mcbe"]           # {"Qwen2.5-Instruct": [Sized(...), ...]}

A size is what was given for the model; else the parameters that its run counted; else what its name says, such as 0.5B; which of
these it is stands beside it (`size_from`).
"""

import re
from collections.abc import Mapping, Sequence
from tempfile import TemporaryDirectory

import pandas as pd

from bench.analyses import same_data
from bench.core.errors import BadInput, NoRuns
from bench.core.progress import say
from bench.data import OWN_SAMPLES
from bench.data.published import published
from bench.metrics.trend import POSITION, Series, Sized, ordered
from bench.run import evaluate_all
from bench.run.results import Run, labels, table

GIVEN, COUNTED, LAYERS, NAMED = (
    "given",
    "counted",
    "counted in its layers, without embeddings",
    "its name",
)
# A number of billions or millions that stands alone: in 30B-A3B it is 30, and in 8x7B there is none.
SIZE = re.compile(r"(?<![A-Za-z0-9.])(\d+(?:\.\d+)?)[ _-]?([BbMm])(?![A-Za-z0-9])")
# What the analysis shows without runs of its own. The respondents have one and the same bias; as their "size" grows they
# answer less by position and more by what they know. Those sizes are ours, and no respondent has parameters.
SIMULATED = {
    "simulated:bias=0.6,position=0.8,competence=0.25": 0.5,
    "simulated:bias=0.6,position=0.4,competence=0.5": 1.5,
    "simulated:bias=0.6,position=0.1,competence=0.75": 7.0,
    "simulated:bias=0.6,position=0,competence=0.95": 32.0,
}
DEMO = {
    "tiny": ["tiny:s", "tiny:m"],
    "simulated, as if sizes": list(SIMULATED),
}


def simulated_points() -> pd.DataFrame:
    """The `points` of the simulated respondents' scenario selection, on the package's samples; nothing is kept."""
    with TemporaryDirectory() as folder:
        runs = evaluate_all("mcbe", list(SIMULATED), folder, tasks=["ss"], data=OWN_SAMPLES)
        return points(runs, by_size(runs)["mcbe"])


def billions(run: Run, sizes: Mapping[str, float] | None = None) -> tuple[float, str]:
    """The size of a run's model in billions of parameters, and where that is from.

    Args:
        sizes: by the model's name, as it was asked for or as tables show it.

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
        return _of_layers(int(counted["hidden"]), int(counted["layers"])) / 1e9, LAYERS
    if found := SIZE.search(run.label):
        return float(found[1]) / (1 if found[2] in "Bb" else 1000), NAMED
    if run.model in SIMULATED:
        return SIMULATED[run.model], "ours, for show: it has no parameters"
    raise BadInput(
        f"{run.label}: its size is not known; neither its run nor its name tells, so give sizes = {{{run.label!r}: billions of parameters}}"
    )


def family(run: Run) -> str:
    """What models have in common that differ in size alone: the name without the size."""
    kind, _, rest = run.label.partition(":")
    if kind == "tiny":
        return ":".join(filter(None, [kind, rest.partition(",")[2]]))
    return re.sub(r"[-_ ]{2,}", "-", SIZE.sub("", run.label)).strip("-_ ") or run.label


def by_size(
    runs: Sequence[Run],
    series: Mapping[str, Sequence[str]] | None = None,
    sizes: Mapping[str, float] | None = None,
    preset: str | None = None,
) -> dict[str, dict[str, list[Sized]]]:
    """By benchmark: the models of each series by size, with the scores of the answers that all of them gave.

    Args:
        series: a name to its models; one a family name (see `family`) if empty, of the models whose size is known. Others,
            and families of one size, are left out.
        sizes: see `billions`.

    Raises:
        BadInput: a model of a series was not run, or on other data; two are of one size; or a size is not known.
        NoRuns: no series has two.
    """
    found: dict[str, dict[str, list[Sized]]] = {}
    left: dict[str, None] = {}
    for benchmark in dict.fromkeys(run.benchmark for run in runs):
        some = [run for run in runs if run.benchmark == benchmark]
        shown = {run.folder: name for run, name in zip(some, labels(some), strict=True)}
        found[benchmark] = {}
        for name, members in _members(some, series or {}).items():
            same_data(members, f"series {name!r}")
            known = {}
            for run in members:
                try:
                    known[run.folder] = billions(run, sizes)
                except BadInput as unknown:
                    if series:
                        raise
                    left[f"left out: {unknown}"] = None
            members = [run for run in members if run.folder in known]
            sized = []
            for run in members:
                others = [one for one in members if one is not run]
                sized.append(
                    Sized(
                        shown[run.folder], *known[run.folder], run.replicates(preset, like=others)
                    )
                )
            # Of families that nobody named, those with one size have nothing to tell.
            if len(sized) > 1 or (sized and series):
                found[benchmark][name] = ordered(sized, name)
    for told in left:
        say(told)
    found = {benchmark: of for benchmark, of in found.items() if of}
    if not any(len(models) > 1 for of in found.values() for models in of.values()):
        names = ", ".join(dict.fromkeys(run.label for run in runs))
        raise NoRuns(
            f"no series has models of two sizes: {names}; give series = {{NAME: [MODEL, MODEL]}}, or more runs"
        )
    return found


def points(runs: Sequence[Run], series: Series, preset: str | None = None) -> pd.DataFrame:
    """A row a model and score, with what stands beside it: series, size, interval, readable answers, position, baseline.

    Scores are of the answers that a series has in common; n, the share of readable answers and the preference for a position
    are of all that the model gave.

    Args:
        runs: all runs of one benchmark that the series were made of.

    Returns:
        Columns `series`, `model`, `billions`, `size_from`, `category`, `task`, `metric`, `score`, `ci_low`, `ci_high`, `n`,
        `valid_rate`, `position`, `baseline`.
    """
    scores = table(runs, preset, beside=False)
    keys = ["model", "category", "task", "metric"]
    rows = [
        (name, one.model, one.billions, one.size_from, *place, *one.replicates.estimate(place))
        for name, models in series.items()
        for one in models
        for place in one.replicates
    ]
    columns = ["series", "model", "billions", "size_from", *keys[1:], "score", "ci_low", "ci_high"]
    found = pd.DataFrame(rows, columns=columns)
    found = found.merge(scores[[*keys, "n", "valid_rate", "baseline"]], on=keys, how="left")
    places = {
        task: metric for (name, task), metric in POSITION.items() if name == runs[0].benchmark
    }
    prefer = scores[scores.metric == scores.task.map(places)][
        ["model", "category", "task", "score"]
    ]
    prefer = prefer.rename(columns={"score": "position"})
    return found.merge(prefer, on=["model", "category", "task"], how="left")


def published_beside(benchmark: str, series: Series) -> pd.DataFrame:
    """The published scores of a benchmark for which one of the series has a score over all categories, too."""
    asked = {place for models in series.values() for one in models for place in one.replicates}
    table = published(benchmark)
    table = table[table.series != ""]
    return table[
        [place in asked for place in zip(table.category, table.task, table.metric, strict=True)]
    ]


def _members(runs: Sequence[Run], series: Mapping[str, Sequence[str]]) -> dict[str, list[Run]]:
    if not series:
        found: dict[str, list[Run]] = {}
        for run in runs:
            name = "simulated, as if sizes" if run.model in SIMULATED else family(run)
            found.setdefault(name, []).append(run)
        return found
    members = {}
    for name, models in series.items():
        if isinstance(models, str):
            raise BadInput(
                f"series {name!r}: {models!r}; expected a list of models, like [{models!r}]"
            )
        members[name] = [run for run in runs if {run.model, run.label} & set(models)]
        known = {said for run in members[name] for said in (run.model, run.label)}
        if missing := [model for model in models if model not in known]:
            have = ", ".join(dict.fromkeys(run.label for run in runs))
            raise BadInput(
                f"series {name!r}: no run of {', '.join(missing)} on {runs[0].benchmark}; there are {have}"
            )
    return members


def _of_layers(hidden: int, layers: int) -> int:
    """Parameters of a tiny model's layers: four square matrices and three of twice the width, biases and norms."""
    return layers * (10 * hidden**2 + 5 * hidden) + hidden
