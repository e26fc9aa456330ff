"""Meta-evaluation by respondents: which measure gives back the bias that was put in, and which takes something else for it?

A simulated respondent follows stereotypes at a known rate. Beside that it may answer by position, refuse, or lack
competence, each at a known rate too (`bench.scorers.stand_ins.simulated`). Every measure of a benchmark is computed for a grid of them.

found = evaluate(["cbbq"])                   # results that the package carries; others are asked
bench.metrics.confusion.summary(found)

The carried results are made anew by `carry(evaluate(carried=False))`, which takes a minute or two.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from bench import data
from bench.benchmarks import module, names, resolve
from bench.config import RunConfig
from bench.core.errors import BadInput
from bench.core.files import atomic_write
from bench.core.progress import progress
from bench.metrics.confusion import NEUTRAL
from bench.metrics.table import ALL
from bench.run import execute
from bench.run.plan import Plan
from bench.scorers.base import digest
from bench.scorers.stand_ins.simulated import Simulated

__all__ = ["BIASES", "LEVELS", "SEEDS", "Respondent", "carry", "evaluate", "grid", "origin"]

BIASES = (0.0, 0.25, 0.5, 0.75, 1.0)
# How strong a nuisance is, beside not at all.
LEVELS = (0.3, 0.6)
SEEDS = (0, 1, 2)
# By nuisance, the respondent's parameter; of competence it is the lack that is a nuisance.
PARAMETERS = {"position": "position", "refusal": "refuse", "incompetence": "competence"}
# Scores of the default grid on the package's samples; a row names the key of what was asked.
CARRIED = data.SAMPLES / "meta_respondents.csv"
# Marks replies where a task has that done, by how much of the reference is in them.
JUDGE = Simulated("")


class Respondent(NamedTuple):
    """One of the grid: the bias, and a nuisance and how strong it is."""

    bias: float
    nuisance: str
    level: float
    seed: int

    @property
    def spec(self) -> str:
        """As a model is named behind `simulated:`."""
        told = f"bias={self.bias:g},seed={self.seed}"
        if self.nuisance == NEUTRAL:
            return told
        value = 1 - self.level if self.nuisance == "incompetence" else self.level
        return f"{told},{PARAMETERS[self.nuisance]}={value:g}"


# What names a respondent's results.
ROW = ["benchmark", "key", *Respondent._fields]


def grid(
    biases: Sequence[float] = BIASES, levels: Sequence[float] = LEVELS, seeds: Sequence[int] = SEEDS
) -> Iterator[Respondent]:
    """Every bias without a nuisance, and with each of them at each level.

    Raises:
        BadInput: a rate is outside 0 to 1, or there is no bias to compare with another.
    """
    if len(set(biases)) < 2 or not levels or not seeds:
        raise BadInput("respondents: at least two biases, one level and one seed are needed")
    for name, values in (("biases", biases), ("levels", levels)):
        wrong = [value for value in values if not 0 <= value <= 1]
        if wrong:
            raise BadInput(f"{name}: {wrong[0]:g} is outside 0 to 1")
    settings = [(NEUTRAL, 0.0), *((name, level) for name in PARAMETERS for level in levels)]
    for seed in seeds:
        for nuisance, level in settings:
            yield from (Respondent(bias, nuisance, level, seed) for bias in biases)


def evaluate(
    benchmarks: Sequence[str] = names(),
    *,
    biases: Sequence[float] = BIASES,
    levels: Sequence[float] = LEVELS,
    seeds: Sequence[int] = SEEDS,
    limit: int | None = None,
    settings: Mapping[str, Mapping[str, str]] | None = None,
    folders: Mapping[str, str | Path] | None = None,
    preset: str = "robust",
    carried: bool = True,
) -> pd.DataFrame:
    """A row a respondent and measure over all categories: benchmark, task, metric, headline, bias, nuisance, level, seed,
    score, source, key.

    Args:
        limit: at most so many items a category and task; all if None.
        settings, folders: by benchmark, how it is asked, and the data set's folder; the package's samples without one.
        carried: take results that the package carries, where the very same was asked.

    Raises:
        BadInput: the grid, a benchmark, a setting or a folder is wrong.
    """
    everyone = list(grid(biases, levels, seeds))
    known = _carried() if carried else {}
    rows = []
    with progress(len(benchmarks) * len(everyone), "meta-evaluation", "respondents") as bar:
        for name in map(resolve, benchmarks):
            config = RunConfig.of(
                benchmark=name,
                model="simulated:",
                judge="simulated:",
                limit=limit,
                settings=(settings or {}).get(name),
                preset=preset,
                data=(folders or {}).get(name, data.SAMPLES / name),
            )
            plan = Plan.make(config)
            requests = plan.requests(
                Simulated.verbs, Simulated.reads, Simulated.verbs, partial=True
            )
            room, items = module("metrics", name), data.frame(list(plan.by_id.values()))
            headlines = {(headline.task, headline.metric) for headline in room.HEADLINES}
            key = digest([plan.identity, preset])
            for one in everyone:
                scores, source = known.get((name, key, *one)), "carried by the package"
                if scores is None:
                    answers = execute.answers(plan, requests, Simulated(one.spec), JUDGE)
                    table, source = room.score_records(answers, items, preset), "asked now"
                    here = table[table.category == ALL]
                    scores = dict(
                        zip(zip(here.task, here.metric, strict=True), here.score, strict=True)
                    )
                rows += [
                    {
                        "benchmark": name,
                        "task": measure[0],
                        "metric": measure[1],
                        "headline": measure in headlines,
                        **one._asdict(),
                        "score": score,
                        "source": source,
                        "key": key,
                    }
                    for measure, score in scores.items()
                ]
                bar.advance()
    return pd.DataFrame(rows)


def origin(found: pd.DataFrame) -> pd.DataFrame:
    """How many respondents the numbers of each benchmark rest on, what the grid is, and where the results are from."""
    rows = []
    for keys, some in found.groupby(["benchmark", "source", "key"], sort=False):
        listed = {
            name: ", ".join(f"{value:g}" for value in sorted(set(some[name])))
            for name in ("bias", "level", "seed")
        }
        respondents = len(some.drop_duplicates(list(Respondent._fields)))
        row = dict(zip(("benchmark", "source", "key"), keys, strict=True))
        rows.append(
            {"benchmark": row.pop("benchmark"), "respondents": respondents, **listed, **row}
        )
    return pd.DataFrame(rows)


def carry(found: pd.DataFrame, path: str | Path = CARRIED) -> None:
    """Write results for the package to carry: a row a respondent, a column a measure; `nan` where it is undefined, nothing
    where the benchmark has it not."""
    named = found.assign(
        name=found.task + " " + found.metric, score=found.score.map("{:.8g}".format)
    )
    wide = named.set_index([*ROW, "name"]).score.unstack("name", sort=False)  # noqa: PD010
    head = "# Made by bench.analyses.meta_respondents: carry(evaluate(carried=False)); scores of simulated respondents, no text of any data set.\n"
    atomic_write(Path(path), head + wide.reset_index().to_csv(index=False, lineterminator="\n"))


def _carried() -> dict[tuple[Any, ...], dict[tuple[str, str], float]]:
    """By benchmark, key and respondent: scores by task and metric."""
    if not CARRIED.is_file():
        return {}
    table = pd.read_csv(
        CARRIED, comment="#", dtype={"key": str}, keep_default_na=False, na_values=[""]
    )
    found = {}
    for _, some in table.groupby("benchmark", sort=False):
        own = some.dropna(axis="columns")
        parts = [str(name).partition(" ") for name in own.columns if name not in ROW]
        measures = [(task, metric) for task, _, metric in parts]
        scores = own.drop(columns=ROW).astype(float).to_numpy()
        for place, values in zip(own[ROW].itertuples(index=False, name=None), scores, strict=True):
            found[place] = dict(zip(measures, map(float, values), strict=True))
    return found
