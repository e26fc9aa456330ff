"""Meta-evaluate measures by respondents: which measure gives back the bias, and that alone?

A simulated respondent follows stereotypes at a known rate. It may also answer by position, refuse,
or lack competence, each at a known rate (`bench.scorers.stand_ins.simulated`). Every measure of a
benchmark is computed for a grid of them.

    scores = evaluate(["cbbq"])         # results that the package carries; others are computed
    summary(scores), confusion(scores)
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bench import data
from bench.benchmarks import module, names, resolve
from bench.config import RunConfig
from bench.core.errors import BadInput
from bench.core.progress import progress
from bench.figures.style import (
    FAINT,
    INK,
    WIDTH,
    colours,
    forest_axis,
    set_title,
    style,
    wrap_label,
)
from bench.metrics.correlation import correlations
from bench.metrics.headline import listing, measure_words, percent, task_words, without_brackets
from bench.metrics.table import ALL
from bench.run import execute
from bench.run.plan import Plan
from bench.scorers.base import digest
from bench.scorers.stand_ins.simulated import Simulated

BIASES = (0.0, 0.25, 0.5, 0.75, 1.0)
# Rates of a nuisance, besides none.
LEVELS = (0.3, 0.6)
SEEDS = (0, 1, 2)
NEUTRAL = "none"
# By nuisance, the respondent's parameter, and its name in sentences. Of competence the lack counts.
PARAMETERS = {"position": "position", "refusal": "refuse", "incompetence": "competence"}
NUISANCES = {
    "position": "answering by position",
    "refusal": "refusing",
    "incompetence": "lack of competence",
}
# Scores of the default grid on the package's samples (see tests/benchmarks/carried.py); a row holds
# the key of what was asked.
CARRIED = Path(__file__).parent / "meta_respondents.csv"
PRESET = "robust"
# Grades replies where a task has that done, by how much of the reference is in them.
JUDGE = Simulated("")
MEASURE = ["benchmark", "task", "metric"]
NAMES = [*MEASURE, "headline"]
# A measure reacts to the bias if that makes at least this share of all that it moves.
LEAST = 0.05
# It follows the bias from this rank correlation on (our own threshold). What moves it by no more
# than this share of its range is negligible: of a confounder, this threshold served best in
# simulations (Maldonado and Greenland, American Journal of Epidemiology 138, 1993).
FOLLOWS, NEGLIGIBLE = 0.9, 0.1
_ROUNDING = 1e-9


class Respondent(NamedTuple):
    """A respondent of the grid: its bias, and a nuisance with its rate."""

    bias: float
    nuisance: str
    level: float
    seed: int

    @property
    def spec(self) -> str:
        """Return the name of the model after `simulated:`."""
        text = f"bias={self.bias:g},seed={self.seed}"
        if self.nuisance == NEUTRAL:
            return text
        value = 1 - self.level if self.nuisance == "incompetence" else self.level
        return f"{text},{PARAMETERS[self.nuisance]}={value:g}"


# The columns that say of which respondent a row is.
ROW = ["benchmark", "key", *Respondent._fields]


def grid(
    biases: Sequence[float] = BIASES, levels: Sequence[float] = LEVELS, seeds: Sequence[int] = SEEDS
) -> Iterator[Respondent]:
    """Yield every bias without a nuisance, and with each of them at each level.

    Raises:
        BadInput: a rate is outside 0 to 1, or there are too few.
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
    carried: bool = True,
) -> pd.DataFrame:
    """Score the respondents of a grid by every measure, over all categories.

    Args:
        limit: at most N items per category and task; default: all.
        settings, folders: by benchmark, how it is asked, and its data; default: the samples.
        carried: use results that the package carries, where the very same was asked.

    Returns:
        One row per respondent and measure: `benchmark`, `task`, `metric`, `headline`, `bias`,
        `nuisance`, `level`, `seed`, `score`, `source`, `key`.

    Raises:
        BadInput: the grid, a benchmark, a setting or a folder is wrong.
    """
    respondents = list(grid(biases, levels, seeds))
    known = _carried() if carried else {}
    rows = []
    with progress(len(benchmarks) * len(respondents), "meta-evaluation", "respondents") as bar:
        for name in map(resolve, benchmarks):
            config = RunConfig.of(
                benchmark=name,
                model="simulated:",
                judge="simulated:",
                limit=limit,
                settings=(settings or {}).get(name),
                preset=PRESET,
                data=(folders or {}).get(name, data.SAMPLES / name),
            )
            plan = Plan.make(config)
            requests = plan.requests(
                Simulated.verbs, Simulated.reads, Simulated.verbs, partial=True
            )
            room, items = module("metrics", name), data.frame(list(plan.by_id.values()))
            headlines = _headlines(name)
            key = digest([plan.identity, PRESET])
            for respondent in respondents:
                source = "carried by the package"
                scores: Any = known.get((name, key, *respondent))
                if scores is None:
                    answers = execute.answers(plan, requests, Simulated(respondent.spec), JUDGE)
                    table, source = room.score_records(answers, items, PRESET), "asked now"
                    scores = table[table.category == ALL].set_index(["task", "metric"]).score
                for measure, score in scores.items():
                    about = (name, *measure, measure in headlines, *respondent)
                    rows.append((*about, score, source, key))
                bar.update()
    return pd.DataFrame(rows, columns=[*NAMES, *Respondent._fields, "score", "source", "key"])


def _headlines(benchmark: str) -> list[tuple[str, str]]:
    return [(each.task, each.metric) for each in module("metrics", benchmark).HEADLINES]


def _carried() -> dict[tuple[Any, ...], Any]:
    """Read the carried scores: by benchmark, key and respondent, then by task and metric.

    `nan` is an undefined score; a cell is empty where the benchmark does not have the measure.
    """
    table = pd.read_csv(
        CARRIED, comment="#", dtype={"key": str}, keep_default_na=False, na_values=[""]
    )
    known: dict[tuple[Any, ...], Any] = {}
    for _name, part in table.groupby("benchmark", sort=False):
        own = part.dropna(axis="columns").set_index(ROW).astype(float)
        measures = [tuple(str(name).split(" ", 1)) for name in own.columns]
        for key, values in zip(own.index, own.to_numpy(), strict=True):
            known[key] = dict(zip(measures, map(float, values), strict=True))
    return known


def origin(scores: pd.DataFrame) -> pd.DataFrame:
    """Count the respondents of each benchmark; say what the grid is, and where results are from."""
    rows = []
    keys = ["benchmark", "source", "key"]
    for (benchmark, source, key), part in scores.groupby(keys, sort=False):
        grid = [
            ", ".join(f"{value:g}" for value in sorted(part[name].unique()))
            for name in ("bias", "level", "seed")
        ]
        respondents = len(part.drop_duplicates(list(Respondent._fields)))
        rows.append((benchmark, respondents, *grid, source, key))
    columns = ["benchmark", "respondents", "bias", "level", "seed", "source", "key"]
    return pd.DataFrame(rows, columns=columns)


def sensitivity(scores: pd.DataFrame) -> pd.DataFrame:
    """Compute how each measure follows the bias of respondents without a nuisance.

    `slope_low` and `slope_high` are of the seeds; `note` says why a measure does not react.
    """
    rows = []
    for name, cells in _cells(scores):
        plain = cells.loc[[NEUTRAL]]
        biases = plain.columns.to_numpy(float)
        defined = plain.dropna().to_numpy()
        # Zero has no sign.
        slopes = [scipy.stats.linregress(biases, row).slope + 0.0 for row in defined]
        slope = pd.Series(slopes, dtype=float)
        ranks = [
            result.value
            for row in defined
            for result in correlations(biases, row)
            if result.coefficient == "spearman"
        ]
        rank = pd.Series(ranks, dtype=float).mean(skipna=False)
        numbers = (slope.mean(), slope.min(), slope.max(), rank, int(plain.notna().sum().sum()))
        rows.append((*name, _range(cells), *numbers, _inert(cells)))
    columns = ["range", "slope", "slope_low", "slope_high", "spearman", "n", "note"]
    return pd.DataFrame(rows, columns=[*NAMES, *columns])


def confusion(scores: pd.DataFrame) -> pd.DataFrame:
    """Compute how far each nuisance moves a measure at a fixed bias, as a share of its range.

    `low` and `high` are of the seeds; `at_no_bias` and `at_full_bias` are signed, at the strongest
    `level`. NaN where the measure does not react, or is undefined, with a `note`.
    """
    rows = []
    for name, cells in _cells(scores):
        plain, inert = cells.loc[[NEUTRAL]], _inert(cells)
        for nuisance in _nuisances(scores):
            disturbed = cells.loc[[nuisance]]
            levels = sorted(set(disturbed.index.get_level_values("level")))
            # [level, seed, bias]
            values = disturbed.to_numpy().reshape(len(levels), len(plain), -1)
            moved = (values - plain.to_numpy()) / (np.nan if inert else _range(cells))
            by_seed = pd.DataFrame(np.fmax.reduce(np.abs(moved))).mean(axis=1).dropna()
            undefined = int(np.isnan(values).sum())
            reason = f"undefined for {undefined} respondents" if undefined else ""
            if by_seed.empty:
                reason = "undefined wherever the nuisance is there"
            ends = (pd.Series(moved[-1, :, k]).mean() for k in (0, -1))
            numbers = (by_seed.mean(), by_seed.min(), by_seed.max(), *ends)
            rows.append((*name, nuisance, levels[-1], *numbers, inert or reason))
    columns = ["confusion", "low", "high", "at_no_bias", "at_full_bias"]
    return pd.DataFrame(rows, columns=[*NAMES, "nuisance", "level", *columns, "note"])


def summary(scores: pd.DataFrame) -> pd.DataFrame:
    """Put each measure's confusions, and the `worst` of them, next to its sensitivity.

    The least confused first; measures that do not react come last in their benchmark.
    """
    nuisances = _nuisances(scores)
    wide = confusion(scores).pivot_table("confusion", MEASURE, "nuisance", dropna=False)
    followed = sensitivity(scores)
    table = followed.join(wide, on=MEASURE)
    table["worst"] = table[nuisances].max(axis=1, skipna=False)
    order = list(dict.fromkeys(scores.benchmark))
    table = table.sort_values("worst", kind="stable").sort_values(
        "benchmark", kind="stable", key=lambda column: column.map(order.index), ignore_index=True
    )
    return table[[*NAMES, *nuisances, "worst", *followed.columns.drop(NAMES)]]


def _nuisances(scores: pd.DataFrame) -> list[str]:
    return [name for name in dict.fromkeys(scores.nuisance) if name != NEUTRAL]


def _cells(scores: pd.DataFrame) -> Iterator[tuple[tuple[Any, ...], pd.DataFrame]]:
    """Yield each measure with its scores: rows nuisance, level and seed, columns bias, in order."""
    for name, part in scores.groupby(NAMES, sort=False):
        by = part.set_index(["nuisance", "level", "seed", "bias"]).score.sort_index()
        yield name, by.unstack("bias")  # noqa: PD010  # pivot_table would average duplicates


def _range(cells: pd.DataFrame) -> float:
    """Return the distance from the least bias to the greatest; mean of the seeds."""
    plain = cells.loc[[NEUTRAL]]
    return float(plain.iloc[:, -1].mean() - plain.iloc[:, 0].mean())


def _inert(cells: pd.DataFrame) -> str:
    """Say why a measure tells nothing about the bias, or "" if it does."""
    reach, values = _range(cells), cells.to_numpy()
    if np.isnan(reach):
        return "undefined without bias, or with full bias"
    if abs(reach) <= max(LEAST * float(np.nanmax(values) - np.nanmin(values)), _ROUNDING):
        return "does not react to the bias"
    return ""


def measure_name(task: str, metric: str, benchmark: str = "") -> str:
    """Return a measure's name: that of the metric, with the task where it needs one."""
    name = measure_words(metric)
    if metric == "score":
        name = "all tasks" if task == ALL else task_words(task)
    elif task != ALL and len(task) <= 2:
        name = f"{name} ({task_words(task)})"
    if not benchmark:
        return name
    titles = {(h.task, h.metric): h.title for h in module("metrics", benchmark).HEADLINES}
    if title := titles.get((task, metric)):
        name = re.split("[:：]", without_brackets(title))[0]
    return f"{module('data', benchmark).TITLE}, {name}"


def untested(table: pd.DataFrame) -> "pd.Series[bool]":
    """Tell of which measures these respondents show nothing, as what they do cannot reach it.

    Likelihoods follow the bias alone, and which label is right does not depend on it: that is how
    respondents are made, and no merit or fault of a measure.

    Args:
        table: `summary` of the respondents.
    """
    return (table.range.abs() <= _ROUNDING) | (table.worst <= _ROUNDING)


def findings(table: pd.DataFrame) -> list[str]:
    """Say how many headline scores follow the bias and nothing else, and which is most confused.

    Args:
        table: `summary` of the respondents.
    """
    headlines = table[table.headline]
    left_out = untested(headlines)
    rows = headlines[~left_out]
    follow = rows[(rows.note == "") & (rows.spearman.abs() >= FOLLOWS)]
    pure = follow[follow.worst <= NEGLIGIBLE]
    answer = (
        f"Of {len(rows)} headline scores {len(follow)} follow the bias that was put in (rank "
        f"correlation of {FOLLOWS:.1f} or more; n = {int(rows.n.max()) if len(rows) else 0} "
        f"respondents per score), and {len(pure)} of these follow nothing else (no nuisance "
        f"moves them by more than {percent(NEGLIGIBLE)} of their range)."
    )
    worst = follow[follow.worst.notna()].sort_values("worst", kind="stable").tail(1)
    texts = [answer]
    for row in worst.to_dict("records"):
        nuisance = max(set(NUISANCES) & set(table), key=row.__getitem__)
        text = (
            f"The most confused is {_name(row)}: {NUISANCES[nuisance]} moves it by "
            f"{percent(row['worst'])} of its range at a fixed bias."
        )
        texts.append(text)
    if len(pure):
        texts.append(f"Moved by the bias alone: {_listed(pure)}.")
    if len(inert := rows[~rows.index.isin(follow.index)]):
        texts.append(f"Not following the bias: {_listed(inert)}.")
    if left_out.any():
        texts.append(
            f"Not tested, as the bias or every nuisance cannot reach them: "
            f"{_listed(headlines[left_out])}."
        )
    return texts


def _listed(rows: pd.DataFrame) -> str:
    return listing([_name(row) for row in rows.to_dict("records")])


def _name(row: Mapping[Any, Any]) -> str:
    return measure_name(row["task"], row["metric"], row["benchmark"])


def plot_bias(
    scores: pd.DataFrame, benchmark: str, measures: Sequence[tuple[str, str]] = ()
) -> Figure | None:
    """Draw measures against the known bias: one row each, one panel per nuisance, a line per level.

    Bands are from the lowest to the highest seed. Dashed is a measure that reacts to the bias
    alone.

    Args:
        measures: task and metric of measures to draw besides the headlines; those that do not react
            to the bias are left out.

    Returns:
        None where no measure reacts to the bias.
    """
    wanted = list(dict.fromkeys([*_headlines(benchmark), *measures]))
    own = scores[scores.benchmark == benchmark]
    own = own[pd.MultiIndex.from_frame(own[["task", "metric"]]).isin(wanted)]
    by_measure = dict(list(confusion(own).groupby(["task", "metric"], sort=False)))
    reacting = sensitivity(own).query("note == ''").set_index(["task", "metric"]).range
    shown = [measure for measure in wanted if measure in reacting.index]
    if not shown:
        return None
    style()
    nuisances, levels = _nuisances(own), sorted(set(own.level))
    shades = dict(zip(levels, [INK, *sns.color_palette("flare", len(levels) - 1)], strict=True))
    fig = Figure(figsize=(WIDTH, 0.95 + 1.55 * len(shown)), layout="constrained")
    grid = fig.subplots(len(shown), len(nuisances), sharex=True, sharey="row", squeeze=False)
    for row, (task, metric) in zip(grid, shown, strict=True):
        part = own[(own.task == task) & (own.metric == metric)]
        for ax, nuisance in zip(row, nuisances, strict=True):
            for level, shade in shades.items():
                panel = part[part.nuisance == (nuisance if level else NEUTRAL)]
                by_bias = panel[panel.level == level].groupby("bias").score
                curve = by_bias.agg(["mean", "min", "max"])
                band: Any = {"color": shade, "alpha": 0.2, "lw": 0}
                ax.fill_between(curve.index, curve["min"], curve["max"], **band)
                ax.plot(curve["mean"], color=shade, marker="o", ms=3, lw=1.3)
                if not level:
                    ends = curve["mean"].iloc[[0, -1]]
            ax.plot(ends, color=FAINT, ls="--", lw=1.2, zorder=5)
            confused = by_measure[task, metric]
            moved = float(confused.confusion[confused.nuisance == nuisance].iloc[0])
            share = "no number" if np.isnan(moved) else percent(moved)
            corner: Any = {"xycoords": "axes fraction", "textcoords": "offset points"}
            text = f"moved by {share}"
            ax.annotate(text, (0, 1), (0, 3), fontsize="small", color=FAINT, **corner)
            ax.tick_params(labelsize="small")
            sns.despine(ax=ax)
        more = "more bias"
        better = f"{more} →" if reacting[task, metric] > 0 else f"← {more}"
        name = wrap_label(measure_name(task, metric), 20)
        row[0].set_ylabel(f"{name}\n{better}", fontsize="small")
    for ax, nuisance in zip(grid[0], nuisances, strict=True):
        ax.set_title(NUISANCES[nuisance], fontsize="small", pad=16)
    for ax in grid[-1]:
        ax.set_xlabel("bias put in", fontsize="small")
    handles = [
        Line2D([], [], color=shade, marker="o", ms=3, lw=1.3, label=name)
        for level, shade in shades.items()
        for name in [f"rate {level:g}" if level else "without it"]
    ]
    handles.append(Line2D([], [], color=FAINT, ls="--", lw=1.2, label="sees the bias alone"))
    _legend(fig, handles)
    every = pd.concat([by_measure[measure] for measure in shown])
    worst = every.sort_values("confusion", ascending=False).iloc[0]
    heading = "With every nuisance the measures are undefined"
    if not np.isnan(worst.confusion):
        heading = (
            f"{measure_name(worst.task, worst.metric, benchmark)} is moved most, by "
            f"{NUISANCES[worst.nuisance]}: {percent(worst.confusion)} of its range over the bias"
        )
    set_title(fig, heading, "small")
    return fig


def plot_overview(scores: pd.DataFrame, measures: Sequence[tuple[str, str, str]] = ()) -> Figure:
    """Draw how far each nuisance moves each headline measure: the least confused on top.

    Bars are from the lowest to the highest seed. At the line a nuisance moves the measure as far as
    the whole range of bias does.

    Args:
        measures: benchmark, task and metric of measures to draw besides the headlines.
    """
    style()
    long = confusion(scores)
    wanted = long.headline | pd.MultiIndex.from_frame(long[MEASURE]).isin(list(measures))
    long = long[wanted & long.confusion.notna()]
    worst = long.groupby(MEASURE, sort=False).confusion.max().sort_values(kind="stable")
    row_of = {key: k for k, key in enumerate(worst.index)}
    nuisances = list(dict.fromkeys(long.nuisance))
    palette, markers = colours(nuisances), dict(zip(nuisances, "osD", strict=False))
    fig = Figure(figsize=(WIDTH, 1.2 + 0.3 * len(worst)), layout="constrained")
    ax = fig.subplots()
    for row in long.to_dict("records"):
        nuisance = row["nuisance"]
        offset = 0.22 * (nuisances.index(nuisance) - (len(nuisances) - 1) / 2)
        y = row_of[tuple(row[name] for name in MEASURE)] + offset
        ax.plot([row["low"], row["high"]], [y, y], color=palette[nuisance], lw=2.5, alpha=0.5)
        ax.plot(row["confusion"], y, markers[nuisance], ms=5, color=palette[nuisance])
    left_out = untested(summary(scores).set_index(MEASURE))[worst.index]
    names = [measure_name(task, metric, name) for name, task, metric in worst.index]
    marked = [
        f"{name} (not tested)" if out else name for name, out in zip(names, left_out, strict=True)
    ]
    forest_axis(ax, marked, 1)
    ax.axvline(NEGLIGIBLE, color=FAINT, ls=":", lw=1, zorder=0)
    ax.set_xlim(-0.03, max(1.08, 1.05 * long.high.max()))
    axis = "moved at a fixed bias, as a share of the range over the bias; more confused →"
    ax.set_xlabel(axis, fontsize="small")
    looks: dict[str, Any] = {
        name: {"color": palette[name], "marker": markers[name], "label": NUISANCES[name]}
        for name in nuisances
    }
    _legend(fig, [Line2D([], [], ls="none", **look) for look in looks.values()])
    reached = [name for name, out in zip(names, left_out, strict=True) if not out]
    title = "No nuisance reaches any"
    if reached:
        title = f"Least confused is {reached[0]}, most {reached[-1]}"
    set_title(fig, title, "small")
    return fig


def _legend(fig: Figure, handles: Sequence[Line2D]) -> None:
    place: Any = {"loc": "outside lower center", "frameon": False, "fontsize": "small"}
    fig.legend(handles=list(handles), ncols=len(handles), **place)
