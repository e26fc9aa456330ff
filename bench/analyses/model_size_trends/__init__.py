"""Does size matter: how a score changes with each doubling of a model's parameters.

    for benchmark, result in analyse(opened(["reports/mine/runs/*/*"])).items():
        findings(result), result.trends, gains(result.series)

A series is models that differ in size alone. The size is what was given for the model; else the
parameters that its run counted; else what its name says, such as 0.5B; `size_from` says which.
"""

from collections.abc import Mapping, Sequence
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bench.analyses.model_size_trends.series import SIMULATED, Series, by_size
from bench.analyses.model_size_trends.slopes import NOISE, PLACE, gains, trends
from bench.analyses.published import published
from bench.benchmarks import module
from bench.core.i18n import N_, _, note, sentences
from bench.data import OWN_SAMPLES
from bench.metrics.bootstrap import LEVEL
from bench.metrics.headline import LOW_VALIDITY, listing, short_title
from bench.metrics.significance import detectable_sentence, format_p
from bench.metrics.table import ALL, Headline
from bench.run import evaluate_all
from bench.run.results import Run, table

__all__ = ["DEMO", "analyse", "findings", "gains", "points", "simulated_points"]

DEMO = ["tiny:s", "tiny:m", *SIMULATED]
# By task, the metric that tells an answer by position, and its name in a sentence.
POSITION = {
    "ss": ("position_bias", N_("the share of pairs answered by position")),
    "ambiguous": ("first_option", N_("the share of the first option")),
    "disambiguous": ("first_option", N_("the share of the first option")),
}
# A change of this much in readable answers, or in answers by position, is reported with a trend.
CHANGE = 0.1


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
    """Return the trends of every benchmark; see `by_size` for the arguments."""
    results = {}
    for benchmark, own in by_size(runs, series, sizes, preset).items():
        places = {place for models in own.values() for one in models for place in one.replicates}
        every: Sequence[Headline] = module("metrics", benchmark).HEADLINES
        results[benchmark] = Result(
            benchmark,
            own,
            points([run for run in runs if run.benchmark == benchmark], own, preset),
            trends(own),
            [one for one in every if (ALL, one.task, one.metric) in places],
            published_scores(benchmark, own),
        )
    return results


def points(runs: Sequence[Run], series: Series, preset: str | None = None) -> pd.DataFrame:
    """Return the scores of every model of the series, with what they can depend on.

    Scores are of the answers that a series has in common; `n`, `valid_rate` and `position` (the
    preference for a position) are of all that the model gave.

    Args:
        runs: all runs of one benchmark that the series were made of.
    """
    scores = table(runs, preset, beside=False)
    keys = ["model", *PLACE]
    rows = [
        (name, one.model, one.billions, one.size_from, *place, *one.replicates.estimate(place))
        for name, models in series.items()
        for one in models
        for place in one.replicates
    ]
    columns = ["series", "model", "billions", "size_from", *PLACE, "score", "ci_low", "ci_high"]
    position = {task: metric for task, (metric, _name) in POSITION.items()}
    prefer = scores[scores.metric == scores.task.map(position)]
    prefer = prefer[["model", "category", "task", "score"]].rename(columns={"score": "position"})
    return (
        pd.DataFrame(rows, columns=columns)
        .merge(scores[[*keys, "n", "valid_rate", "baseline"]], on=keys, how="left")
        .merge(prefer, on=["model", "category", "task"], how="left")
    )


def simulated_points() -> pd.DataFrame:
    """Return the scenario selection of simulated respondents on the package's samples."""
    with TemporaryDirectory() as folder:
        runs = evaluate_all("mcbe", list(SIMULATED), folder, tasks=["ss"], data=OWN_SAMPLES)
        rows = points(runs, by_size(runs)["mcbe"])
    return rows.loc[rows.category == ALL, ["billions", "score", "position", "valid_rate"]]


def published_scores(benchmark: str, series: Series) -> pd.DataFrame:
    """Return the published scores for which one of the series has a score over all categories."""
    places = {place for models in series.values() for one in models for place in one.replicates}
    printed = published(benchmark)
    known = [place in places for place in printed[PLACE].itertuples(index=False, name=None)]
    return printed[np.array(known) & (printed.series != "")]


def at_place(rows: pd.DataFrame, headline: Headline) -> pd.DataFrame:
    """Return the rows of a headline over all categories."""
    own = (rows.task == headline.task) & (rows.metric == headline.metric)
    return rows[own & (rows.category == ALL)]


def title_of(headline: Headline) -> str:
    """Return what a headline measures, in one phrase."""
    return short_title(headline).replace(": ", ", ").replace("：", "，")


def is_shown(row: Mapping[Any, Any]) -> bool:
    """Say whether a trend over models was shown: by `p_holm`, and by its interval."""
    excludes_zero = row["ci_low"] > NOISE or row["ci_high"] < -NOISE
    return bool(excludes_zero and row["p_holm"] < 1 - LEVEL)


def amount(headline: Headline, value: float, signed: bool = False) -> str:
    """Write a change of a score in points of 100, shares too."""
    hundredths = value * (100 if headline.limits[1] <= 1 else 1)
    plain = f"{abs(hundredths):.1f}"
    return f"{'+' if hundredths > 0 else '-'}{plain}" if signed and float(plain) else plain


def findings(result: Result) -> list[str]:
    """Say for each series and headline whether it changes with size; what was shown comes first."""
    found = []
    for headline in result.headlines:
        title = title_of(headline)
        for row in at_place(result.trends, headline).to_dict("records"):
            own = at_place(result.points, headline)
            own = own[own.series == row["series"]].sort_values("billions")
            name = _("{title}, {measure}", title=row["series"], measure=title)
            parts = [_verdict(row, headline)]
            if row["note"] and row["sizes"] != 2:
                parts.append(_("Note: {note}.", note=note(row["note"])))
            text = sentences([*parts, *_caveats(own, row, headline)])
            found.append((not is_shown(row), _("{title}: {sentence}", title=name, sentence=text)))
    return [text for _hidden, text in sorted(found, key=lambda pair: pair[0])]


def _verdict(row: Mapping[Any, Any], headline: Headline) -> str:
    """Say whether a score changes with size; of two sizes, whether these two models differ."""
    if np.isnan(row["per_doubling"]):
        return _("nothing can be said.")
    two = row["sizes"] == 2
    columns = ("items_low", "items_high", "p_items") if two else ("ci_low", "ci_high", "p_holm")
    low, high, p = (float(row[name]) for name in columns)
    numbers = []
    if not np.isnan(low):
        ends = {"low": amount(headline, low, True), "high": amount(headline, high, True)}
        numbers.append(_("95\u00a0% interval {low} to {high}", **ends))
    if not np.isnan(p):
        numbers.append(format_p(p))
    span = _(" to ").join(row["span"].split(" to "))
    numbers.append(_("{n} sizes, {span}", n=row["sizes"], span=span))
    points_of_100 = amount(headline, row["per_doubling"], True)
    about = {"points": points_of_100, "around": _("; ").join(numbers)}
    if two and p < 1 - LEVEL:
        return _(
            "two sizes make no trend. These models differ, by {points} points of 100 a doubling "
            "({around}; over items).",
            **about,
        )
    if two:
        return _(
            "two sizes make no trend. No difference between these models could be shown: {points} "
            "points of 100 a doubling ({around}; over items).",
            **about,
        )
    by = _("{points} points of 100 a doubling ({around})", **about)
    if not is_shown(row):
        detectable = float(row["detectable"])
        return sentences(
            [
                _("no change with size could be shown, {by}.", by=by),
                detectable_sentence(amount(headline, detectable), detectable),
            ]
        )
    rises = row["per_doubling"] > 0
    if rises == headline.biased_is_high:
        text = (
            N_("rises with size (worse), {by}.") if rises else N_("falls with size (worse), {by}.")
        )
    else:
        text = (
            N_("rises with size (better), {by}.")
            if rises
            else N_("falls with size (better), {by}.")
        )
    return _(text, by=by)


def _caveats(rows: pd.DataFrame, trend: Mapping[Any, Any], headline: Headline) -> list[str]:
    """Say what else changes with size, and could be all that the trend is."""
    if len(rows) < 2:
        return []
    first, last, parts = rows.iloc[0], rows.iloc[-1], []
    change = last.valid_rate - first.valid_rate
    if abs(change) >= CHANGE or rows.valid_rate.min() < LOW_VALIDITY:
        parts.append(
            _(
                "Readable answers go from {first} to {last}, so the sizes are not scored alike.",
                first=f"{first.valid_rate:.0%}",
                last=f"{last.valid_rate:.0%}",
            )
        )
        gain = float(trend["per_doubling"]) * (-1 if headline.biased_is_high else 1)
        if is_shown(trend) and abs(change) >= CHANGE and gain * change < 0:
            parts.append(
                _("What changes is how often they can be read: this is no finding about bias.")
            )
    if abs(last.position - first.position) >= CHANGE:
        parts.append(
            _(
                "Beside it, {what} goes from {first} to {last}.",
                what=_(POSITION[headline.task][1]),
                first=f"{first.position:.2f}",
                last=f"{last.position:.2f}",
            )
        )
    near = rows.model[(rows.ci_low <= rows.baseline) & (rows.baseline <= rows.ci_high)]
    if len(near):
        who = _(headline.baseline)
        parts.append(_("{models} cannot be told from {who}.", models=listing(list(near)), who=who))
    return parts
