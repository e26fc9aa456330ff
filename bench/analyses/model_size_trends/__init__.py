"""Does size matter: how a score changes with each doubling of a model's parameters.

    for benchmark, result in analyse(opened(["reports/mine/runs/*/*"])).items():
        findings(result), result.trends, gains(result.series)

A series is models that differ in size alone. The size is what was given for the model; else the
parameters that its run counted; else what its name says, such as 0.5B; `size_from` says which.

The line is that of least squares over the base 2 logarithm of the size. Two questions are kept
apart:

- Does the score change with size? The models are the sample: how far they lie from the line says
  how far another training of the same sizes would move it. The slope is tested by its residual
  standard error, with models - 2 degrees of freedom. Two models always lie on a line.
- Do these models differ? The items are the sample: the slope is computed in every resample of the
  items, which all sizes share. That says what other items of the same kind would show of the same
  models, and nothing of others: models that differ by the luck of their training differ on any
  items.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bench.analyses import same_data
from bench.analyses.published import published
from bench.benchmarks import module
from bench.core.errors import BadInput, NoRuns
from bench.core.numbers import signed
from bench.core.text import sentences
from bench.data import OWN_SAMPLES
from bench.metrics.bootstrap import LEVEL, Place, Replicates, Sample
from bench.metrics.headline import LOW_VALIDITY, TOLD, listing, percent, phrase, short_title
from bench.metrics.significance import compare_resamples, format_p, holm_by_score, undefined
from bench.metrics.table import ALL, Headline, join_notes
from bench.metrics.trend import NOISE, slope_test, slopes
from bench.run import evaluate_all
from bench.run.results import Run, labels, table
from bench.scorers.names import short_name

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
DEMO = ["tiny:s", "tiny:m", *SIMULATED]
PLACE = ["category", "task", "metric"]
# By task, the metric that tells an answer by position, and its name in a sentence.
POSITION = {
    "ss": ("position_bias", "the share of pairs answered by position"),
    "ambiguous": ("first_option", "the share of the first option"),
    "disambiguous": ("first_option", "the share of the first option"),
}
# A change of this much in readable answers, or in answers by position, is reported with a trend.
CHANGE = 0.1
TOO_FEW = "fewer than two sizes have a number"


class Sized(NamedTuple):
    """A model of a series: its size in billions of parameters, where that is from, its scores."""

    model: str
    billions: float
    size_from: str
    replicates: Replicates


Series = Mapping[str, Sequence[Sized]]


class Result(NamedTuple):
    """The series of a benchmark; see the functions of these names."""

    benchmark: str
    series: Series
    points: pd.DataFrame
    trends: pd.DataFrame
    headlines: list[Headline]
    published: pd.DataFrame


def analyse(
    runs: Sequence[Run],
    series: Mapping[str, Sequence[str]] | None = None,
    sizes: Mapping[str, float] | None = None,
    preset: str | None = None,
) -> dict[str, Result]:
    """Return the trends of every benchmark, with the published scores of the same places.

    Args:
        series: models by the name of their series; default: one for each `family` with two sizes.
        sizes: see `billions`.

    Raises:
        BadInput: a model of a series was not run, or on other data; two are of one size; or a size
            is not known.
        NoRuns: no series has two.
    """
    results = {}
    for benchmark, own in by_size(runs, series, sizes, preset).items():
        places = {
            place for models in own.values() for sized in models for place in sized.replicates
        }
        every: Sequence[Headline] = module("metrics", benchmark).HEADLINES
        printed = published(benchmark)
        known = [place in places for place in printed[PLACE].itertuples(index=False, name=None)]
        results[benchmark] = Result(
            benchmark,
            own,
            points([run for run in runs if run.benchmark == benchmark], own, preset),
            trends(own),
            [headline for headline in every if (ALL, headline.task, headline.metric) in places],
            printed[np.array(known) & (printed.series != "")],
        )
    return results


def by_size(
    runs: Sequence[Run],
    series: Mapping[str, Sequence[str]] | None = None,
    sizes: Mapping[str, float] | None = None,
    preset: str | None = None,
) -> dict[str, dict[str, list[Sized]]]:
    """Return the models of each benchmark and series by size, scored on what all of them answered.

    See `analyse` for the arguments.
    """
    result: dict[str, dict[str, list[Sized]]] = {}
    for benchmark in dict.fromkeys(run.benchmark for run in runs):
        own = [run for run in runs if run.benchmark == benchmark]
        names = {run.folder: name for run, name in zip(own, labels(own), strict=True)}
        for name, members in _members(own, series or {}).items():
            same_data(members, f"series {name!r}")
            known = {}
            for run in members:
                try:
                    known[run.folder] = billions(run, sizes)
                except BadInput:
                    if series:
                        raise
            members = sorted(
                (run for run in members if run.folder in known), key=lambda run: known[run.folder]
            )
            for run, other in pairwise(members):
                if known[run.folder][0] == known[other.folder][0]:
                    raise BadInput(
                        f"series {name!r}: {names[run.folder]} and {names[other.folder]} are both "
                        f"of {known[run.folder][0]:g} billion parameters; put them into two series"
                    )
            if len(members) > 1 or (members and series):
                result.setdefault(benchmark, {})[name] = [
                    Sized(
                        names[run.folder],
                        *known[run.folder],
                        run.replicates(
                            preset, like=[other for other in members if other is not run]
                        ),
                    )
                    for run in members
                ]
    if not any(len(models) > 1 for own_series in result.values() for models in own_series.values()):
        models = ", ".join(dict.fromkeys(run.label for run in runs))
        raise NoRuns(
            f"no series has models of two sizes: {models}; give series = {{NAME: [MODEL, MODEL]}}, "
            "or more runs"
        )
    return result


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
    given: Mapping[str, Any] = sizes or {}
    for name in (run.model, run.label):
        if name in given:
            size = given[name]
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
    if match := SIZE.search(short_name(run.model)) or SIZE.search(run.label):
        return float(match[1]) / (1 if match[2] in "Bb" else 1000), NAMED
    if run.model in SIMULATED:
        return SIMULATED[run.model], "ours, for show: it has no parameters"
    raise BadInput(
        f"{run.label}: its size is not known, neither from its run nor from its name; give "
        f"sizes = {{{run.label!r}: billions of parameters}}"
    )


def family(run: Run) -> str:
    """Return the name of a model without its size; a name that a study gives does not count."""
    name = short_name(run.model)
    kind, _colon, rest = name.partition(":")
    if kind == "tiny":
        return ":".join(filter(None, [kind, rest.partition(",")[2]]))
    return re.sub(r"[-_ ]{2,}", "-", SIZE.sub("", name)).strip("-_ ") or name


def format_size(size: float) -> str:
    """Write a size as people do: 7B, 0.5B, 360M, 93K."""
    if size >= 0.45:
        return f"{size:.3g}B"
    return f"{size * 1e3:.3g}M" if size >= 1e-3 else f"{size * 1e6:.3g}K"


def points(runs: Sequence[Run], series: Series, preset: str | None = None) -> pd.DataFrame:
    """Return the scores of every model of the series, with what they can depend on.

    Scores are of the answers that a series has in common; `n`, `valid_rate` and `position` (the
    preference for a position) are of all that the model gave.

    Args:
        runs: all runs of one benchmark that the series were made of.
    """
    scores = table(runs, preset, beside=False)
    rows = [
        (
            name,
            sized.model,
            sized.billions,
            sized.size_from,
            *place,
            *sized.replicates.estimate(place),
        )
        for name, models in series.items()
        for sized in models
        for place in sized.replicates
    ]
    columns = ["series", "model", "billions", "size_from", *PLACE, "score", "ci_low", "ci_high"]
    position = {task: metric for task, (metric, _name) in POSITION.items()}
    prefer = scores[scores.metric == scores.task.map(position)]
    prefer = prefer[["model", "category", "task", "score"]].rename(columns={"score": "position"})
    keys = ["model", *PLACE]
    return (
        pd.DataFrame(rows, columns=columns)
        .merge(scores[[*keys, "n", "valid_rate", "baseline"]], on=keys, how="left")
        .merge(prefer, on=["model", "category", "task"], how="left")
    )


def left_out(runs: Sequence[Run], results: Mapping[str, Result]) -> list[str]:
    """Name the models that are in no series, in one sentence."""
    used = {
        sized.model
        for result in results.values()
        for models in result.series.values()
        for sized in models
    }
    own = [[run for run in runs if run.benchmark == benchmark] for benchmark in results]
    names = [name for group in own for name in labels(group) if name not in used]
    if not names:
        return []
    text = (
        "In no series, as their size is not known or no other size was run: "
        f"{listing(list(dict.fromkeys(names)))} (see the parameters sizes and series)."
    )
    return [text]


def simulated_points() -> pd.DataFrame:
    """Return the scenario selection of simulated respondents on the package's samples."""
    with TemporaryDirectory() as folder:
        runs = evaluate_all("mcbe", list(SIMULATED), folder, tasks=["ss"], data=OWN_SAMPLES)
        rows = points(runs, by_size(runs)["mcbe"])
    return rows.loc[rows.category == ALL, ["billions", "score", "position", "valid_rate"]]


def trends(series: Series) -> pd.DataFrame:
    """Return the change of each score with size, one row per series, category, task and metric.

    Returns:
        How many `sizes`, from which to which (`span`); `per_doubling` with its interval and `p`
        over models; `p_holm`, adjusted for the other series and scores where it is over all
        categories, else for the other categories of the same series and score, of two sizes the
        p over items; `detectable`; `items_low`, `items_high`, `p_items` over items; `note`.
    """
    rows = []
    for name, models in series.items():
        for place in sorted({place for sized in models for place in sized.replicates}):
            known = defined(models, place)
            over = items = undefined(TOO_FEW)
            lost = ""
            if len(known) > 1:
                sizes = [sized.billions for sized in known]
                values = np.array([sized.replicates[place] for sized in known])
                over = slope_test(np.log2(sizes), values[:, 0])
                items = compare_resamples(slopes(np.log2(sizes), values), _sample(known, place))
                missing = [sized.model for sized in models if sized not in known]
                lost = f"no number for {', '.join(missing)}" if missing else ""
            text = join_notes(over.note or items.note, lost, _mixed(models, place))
            about = (name, *place, len(known), _span(known))
            rows.append(
                (*about, *over[:4], over.detectable, items.ci_low, items.ci_high, items.p, text)
            )
    columns = ["series", *PLACE, "sizes", "span", "per_doubling", "ci_low", "ci_high", "p"]
    columns += ["detectable", "items_low", "items_high", "p_items", "note"]
    table = pd.DataFrame(rows, columns=columns)
    adjusted = holm_by_score(table, table.p.fillna(table.p_items), ["series", "task", "metric"])
    table.insert(list(table).index("p") + 1, "p_holm", adjusted)
    return table


def gains(series: Series) -> pd.DataFrame:
    """Return the change per doubling between each size and the next, as `trends` does.

    Returns:
        `gain`, with its interval and `p` over items: whether these two models differ; from which
        size to which (`step`), and how many `doublings` that is.
    """
    rows = []
    for name, models in series.items():
        for place in sorted({place for sized in models for place in sized.replicates}):
            for pair in pairwise(defined(models, place)):
                step = float(np.log2(pair[1].billions / pair[0].billions))
                gain = (pair[1].replicates[place] - pair[0].replicates[place]) / step
                compared = compare_resamples(gain, _sample(pair, place))
                text = join_notes(compared.note, _mixed(pair, place))
                rows.append(
                    (name, *place, _span(pair), step, *compared[:4], compared.detectable, text)
                )
    columns = ["series", *PLACE, "step", "doublings", "gain", "ci_low", "ci_high", "p"]
    table = pd.DataFrame(rows, columns=[*columns, "detectable", "note"])
    adjusted = holm_by_score(table, table.p, ["series", "task", "metric"])
    table.insert(list(table).index("p") + 1, "p_holm", adjusted)
    return table


def defined(models: Sequence[Sized], place: Place) -> list[Sized]:
    """Return the models that have a number at a place."""
    return [sized for sized in models if not np.isnan(sized.replicates.get(place, [np.nan])[0])]


def _mixed(models: Sequence[Sized], place: Place) -> str:
    """Name the categories that have a number at some sizes only: means over all are not alike."""
    if place[0] != ALL:
        return ""
    names = dict.fromkeys(
        own[0] for sized in models for own in sized.replicates if own[1:] == place[1:]
    )
    counts = {name: len(defined(models, (name, *place[1:]))) for name in names if name != ALL}
    partial = [name for name, count in counts.items() if 0 < count < len(models)]
    if not partial:
        return ""
    reason = "without a number at some sizes, so the means are of other categories"
    return f"{', '.join(partial)}: {reason}"


def _sample(models: Sequence[Sized], place: Place) -> Sample:
    return min(sized.replicates.samples[place] for sized in models)


def _span(models: Sequence[Sized]) -> str:
    sizes = [format_size(sized.billions) for sized in models]
    return f"{sizes[0]} to {sizes[-1]}" if sizes else ""


def at_place(rows: pd.DataFrame, headline: Headline) -> pd.DataFrame:
    """Return the rows of a headline over all categories."""
    own = (rows.task == headline.task) & (rows.metric == headline.metric)
    return rows[own & (rows.category == ALL)]


def title_of(headline: Headline) -> str:
    """Return what a headline measures, in one phrase."""
    return short_title(headline).replace(": ", ", ").replace("：", "，")


def is_shown(row: Any) -> Any:
    """Say whether a trend over models (a row, or each of a table) was shown: by p and interval."""
    excludes_zero = (row["ci_low"] > NOISE) | (row["ci_high"] < -NOISE)
    return excludes_zero & (row["p_holm"] < 1 - LEVEL)


def findings(result: Result) -> list[str]:
    """Say of each series which scores change with size; two sizes are compared, and make no trend.

    What was shown comes first; then what else changes with size, and could be all of it.
    """
    lines, caveats = [], []
    places = {(headline.task, headline.metric): headline for headline in result.headlines}
    overall = result.trends[result.trends.category == ALL]
    for series, part in overall.groupby("series", sort=False):
        rows = [row for row in part.to_dict("records") if (row["task"], row["metric"]) in places]
        rows = [row for row in rows if not np.isnan(row["per_doubling"])]
        about: dict[str, Any] = {"series": series, "title": module("data", result.benchmark).TITLE}
        if not rows:
            reason = str(part.note.iloc[0])
            lines.append(
                (2, "{title}, {series}: nothing can be said: {why}.".format(why=reason, **about))
            )
            continue
        is_pair = max(row["sizes"] for row in rows) == 2
        shown = [row for row in rows if (_pair_differs(row) if is_pair else is_shown(row))]
        about["span"] = " to ".join(rows[0]["span"].split(" to "))
        about |= {"sizes": max(row["sizes"] for row in rows), "n": len(shown), "all": len(rows)}
        changes = [
            _change(row, places[row["task"], row["metric"]], is_pair) for row in shown[:TOLD]
        ]
        about["changes"] = "; ".join([*changes, *(["…"] if len(shown) > TOLD else [])])
        if is_pair:
            text = "{title}, {series}: two sizes ({span}) make no trend.".format(**about)
            more = "No difference between them could be shown in {all} scores.".format(**about)
            if shown:
                more = "They differ in {n} of {all} scores: {changes}.".format(**about)
            text = sentences([text, more])
        elif shown:
            text = (
                "{title}, {series}: {n} of {all} scores change with size, over {sizes} sizes "
                "({span}): {changes}."
            ).format(
                **about,
            )
        else:
            text = (
                "{title}, {series}: no change with size could be shown in {all} scores over "
                "{sizes} sizes ({span})."
            ).format(
                **about,
            )
        lines.append((int(is_pair), text))
        for row in shown:
            headline = places[row["task"], row["metric"]]
            own = at_place(result.points, headline).sort_values("billions")
            caveats += [
                f"{title_of(headline)}: {sentence}"
                for sentence in _caveats(own[own.series == series], headline)
            ]
    return [text for _order, text in sorted(lines, key=lambda line: line[0])] + caveats[:TOLD]


def _pair_differs(row: Mapping[Any, Any]) -> bool:
    return bool(row["p_holm"] < 1 - LEVEL)


def _change(row: Mapping[Any, Any], headline: Headline, is_pair: bool) -> str:
    """Write how a score changes with each doubling, and which way is better."""
    low, high = (row[f"{'items' if is_pair else 'ci'}_{end}"] for end in ("low", "high"))
    rises = row["per_doubling"] > 0
    better = "better" if rises != headline.biased_is_high else "worse"
    return (
        f"{phrase(headline.title)} {amount(headline, row['per_doubling'])} points of 100 per "
        f"doubling ({better}; 95\u00a0% interval {amount(headline, low)} to "
        f"{amount(headline, high)}; adjusted {format_p(row['p_holm'])})"
    )


def amount(headline: Headline, value: float) -> str:
    """Write a change of a score with its sign, in points of 100, shares too."""
    return signed(value * (100 if headline.limits[1] <= 1 else 1), 1)


def _caveats(rows: pd.DataFrame, headline: Headline) -> list[str]:
    """Say what else changes with size, and could be all that the trend is."""
    if len(rows) < 2:
        return []
    first, last, parts = rows.iloc[0], rows.iloc[-1], []
    change = abs(last.valid_rate - first.valid_rate)
    if change >= CHANGE or rows.valid_rate.min() < LOW_VALIDITY:
        parts.append(
            f"Readable answers go from {percent(first.valid_rate)} to "
            f"{percent(last.valid_rate)}, so the sizes are not scored alike: this may be no "
            "finding about bias."
        )
    if abs(last.position - first.position) >= CHANGE:
        parts.append(
            f"Beside it, {POSITION[headline.task][1]} goes from {percent(first.position)} to "
            f"{percent(last.position)}."
        )
    return parts
