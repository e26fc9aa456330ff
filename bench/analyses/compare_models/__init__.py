"""Models against each other: which pairs differ, and which ranks are open.

for benchmark, runs in by_benchmark(opened(["reports/mine/runs/*/*"])).items():
    result = compare(runs)
    findings([result]), leaderboard(results.table(runs), result)

Every pair is compared on the answers that could be read of both, ranks are of those of all models.
Resamples are drawn alike for all models (see `bench.metrics.bootstrap`), so differences are paired
and clustered.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import combinations
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bench.benchmarks import module
from bench.core.errors import BadInput, NoRuns
from bench.core.text import sentences
from bench.metrics.bootstrap import LEVEL, Place, Replicates
from bench.metrics.headline import (
    HALF,
    Row,
    by_letters,
    doubt,
    gap,
    headline_rows,
    headlines,
    left_out,
    listing,
    number,
    phrase,
    points,
    range_text,
)
from bench.metrics.significance import (
    LESS_READABLE,
    apart,
    benjamini_hochberg,
    compare_resamples,
    differs,
    favours_less_readable,
    format_p,
    readable_difference,
    undefined,
)
from bench.metrics.table import ALL, READABLE, Headline
from bench.run import results
from bench.run.results import KEYS, Run, check_preset, data_conflict, labels
from bench.tasks.request import of_judge

# Two ways to compute the same score differ by less.
NOISE = 1e-9
MODELS = ["task", "metric", "model_a", "model_b"]
TEST = ["difference", "ci_low", "ci_high", "p", "p_adjusted", "d", "h", "detectable", "n", "units"]
SHARES = ["n_asked", "readable_a", "readable_b", "p_readable"]
BOUNDS = ["bound_low_a", "bound_high_a", "bound_low_b", "bound_high_b"]
COLUMNS = [*MODELS, "verdict", "score_a", "score_b", *TEST, "error", "freedom", *SHARES, *BOUNDS]
COLUMNS += ["note"]
# What only the files have of pairs.
IN_FILES = ["score_a", "score_b", "p", "d", "h", "units", "error", "freedom", *SHARES, *BOUNDS]
# The verdicts; the fifth is `bench.metrics.significance.LESS_READABLE`.
DIFFERENT, NOT_SHOWN = "different", "no difference shown"
BY_LETTERS, UNDEFINED = "by letters", "undefined"
# Notes.
NOTHING = "nothing that both answered"
UNEQUAL = "one of them has no number in some categories, which are left out for it alone"


# The task and metric of a headline, then the models' own scores of it over all categories.
OwnScores = Mapping[tuple[str, str], Mapping[str, Row]]


class Compared(NamedTuple):
    """Runs on one benchmark, compared.

    Attributes:
        pairs, ranks: of the functions of these names.
        common: answers that could be read of all models; without any there are no ranks.
        own: of `own_scores`.
        unasked: of the function of this name.
    """

    benchmark: str
    pairs: pd.DataFrame
    ranks: pd.DataFrame
    common: int
    own: OwnScores = MappingProxyType({})
    unasked: Mapping[str, str] = MappingProxyType({})


class Pair(NamedTuple):
    """Headline scores of two models on the answers that could be read of both.

    Attributes:
        answers: how many these are, by task.
        asked: one row per answer of both, readable or not: columns `task`, `stratum`, `unit`,
            `first` and `second` (whether each could be read); None where all could be read.
        bounds: of both, the lowest and highest that each headline score on `asked` could have been.
    """

    first: Replicates
    second: Replicates
    answers: Mapping[str, int]
    asked: pd.DataFrame | None = None
    bounds: tuple[Mapping[Place, tuple[float, float]], ...] = ({}, {})


@dataclass(frozen=True)
class Answers:
    """The answers of a run, read once: which of them could be read, and their scores.

    Attributes:
        records: of the run, without prompts.
        units: by name of the item, its category as `stratum`, and what is drawn again as `unit`.
    """

    records: pd.DataFrame
    items: pd.DataFrame
    units: pd.DataFrame
    readable: pd.Series
    room: Any
    preset: str
    # Two models often have the same answers in common as two others, so scores are kept.
    _known: dict[tuple[str, bytes], Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of_runs(cls, runs: Sequence[Run], preset: str | None) -> list["Answers"]:
        """Read the answers of runs on one benchmark; those with the same items share them.

        Raises:
            BadInput: an unknown preset, or different items of one name.
        """
        if conflict := data_conflict(runs):
            raise BadInput(conflict)
        every: list[Answers] = []
        for run in runs:
            own = preset or str(run.about["preset"])
            check_preset(own)
            room, rows, items = module("metrics", run.benchmark), run.replies, run.items
            same = next((group for group in every if group.items.equals(items)), None)
            if same:
                items, units = same.items, same.units
            else:
                units = items[["item_id", "category"]].assign(unit=room.units(items))
                units = units.rename(columns={"category": "stratum"}).set_index("item_id")
                units = units.astype("category")  # there is one per answer of each pair
            readable = results.readable(run.benchmark, rows, items)
            every.append(cls(rows, items, units, readable, room, own))
        return every

    @property
    def is_ranked(self) -> bool:
        """Whether half of the answers or more could be read."""
        return bool(self.readable.mean() >= HALF)

    def replicates(self, names: pd.Index) -> Replicates:
        """Compute headline scores, observed and resampled, of the readable answers in `names`."""
        scores: Replicates = self._of("replicates", names, self.readable.to_numpy())
        return scores

    def bounds(self, names: pd.Index) -> Mapping[Place, tuple[float, float]]:
        """Compute the least and the most that headline scores of the answers in `names` can be."""
        bounds: Mapping[Place, tuple[float, float]] = self._of("bounds", names, True)
        return bounds

    def _of(self, kind: str, names: pd.Index, counted: Any) -> Any:
        """Compute a kind of scores of the answers in `names` that are `counted`."""
        chosen = self.readable.index.isin(names) & counted
        key = (kind, chosen.tobytes())
        if key not in self._known:
            rows, compute = self.records[chosen], getattr(self.room, kind)
            self._known[key] = compute(rows, self.items, self.preset) if len(rows) else Replicates()
        return self._known[key]

    def ranked(self, everyone: pd.Index, by_task: pd.Index) -> Replicates:
        """Compute the headline scores that models are ranked by.

        Args:
            everyone, by_task: see `_common_answers`; scores over all tasks are of the former, those
                of a task of the latter.
        """
        if len(by_task) == len(everyone):
            return self.replicates(everyone)
        scores = Replicates()
        for names, over_tasks in ((everyone, True), (by_task, False)):
            source = self.replicates(names)
            for place, values in source.items():
                if (place[1] == ALL) == over_tasks:
                    scores.add(place, values, source.samples[place])
        return scores


def by_benchmark(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Return the runs on each benchmark that has two or more.

    Raises:
        NoRuns: there is none.
    """
    names = dict.fromkeys(run.benchmark for run in runs)
    grouped = {name: [run for run in runs if run.benchmark == name] for name in names}
    comparable = {name: group for name, group in grouped.items() if len(group) > 1}
    if not comparable:
        raise NoRuns(
            f"{len(runs)} runs, and no two on one benchmark; to compare models, give two or more"
        )
    return comparable


def compare(runs: Sequence[Run], preset: str | None = None) -> Compared:
    """Compare every pair of `runs`, one per model, all on one benchmark.

    Raises:
        BadInput: fewer than two runs, several benchmarks or runs of a model, different data, or an
            unknown preset.
    """
    benchmarks, names = list(dict.fromkeys(run.benchmark for run in runs)), labels(runs)
    if len(runs) < 2 or len(benchmarks) > 1:
        raise BadInput(
            f"{len(runs)} run{'s' * (len(runs) != 1)} on {', '.join(benchmarks) or 'nothing'}: "
            "to compare models, give two or more runs on one benchmark"
        )
    for name, count in Counter(names).items():
        if count > 1:
            folders = [str(run.folder) for run, own in zip(runs, names, strict=True) if own == name]
            raise BadInput(
                f"{name} has several runs on {benchmarks[0]}: {', '.join(folders)}; name only one"
            )
    every = dict(zip(names, Answers.of_runs(runs, preset), strict=True))
    everyone, by_task = _common_answers(list(every.values()))
    scores = {
        name: answers.ranked(everyone, by_task)
        for name, answers in every.items()
        if answers.is_ranked
    }
    own = own_scores(runs, preset)
    both = {(a, b): _pair(every[a], every[b]) for a, b in combinations(names, 2)}
    table = pairs(both, benchmarks[0], own)
    order = ranks(scores, table, benchmarks[0], own)
    common = sum(_count_by_task(everyone).values())
    return Compared(benchmarks[0], table, order, common, own, unasked(every))


def own_scores(runs: Sequence[Run], preset: str | None = None) -> OwnScores:
    """Return the headline scores of each model over all categories, on all that it was asked."""
    # Each run counts under its own preset.
    scores = results.table(runs, preset, beside=False).assign(preset="")
    benchmark = runs[0].benchmark
    own = module("metrics", benchmark).HEADLINES
    return {
        (headline.task, headline.metric): {
            row["model"]: row
            for row in headline_rows(scores, shown).to_dict("records")
            if row["category"] == ALL
        }
        for headline, shown in zip(own, headlines(scores, benchmark), strict=True)
    }


def unasked(every: Mapping[str, Answers]) -> dict[str, str]:
    """Say of the categories that not all models were asked which of the models were not."""
    categories = {name: set(answers.records.category) for name, answers in every.items()}
    lacking = {
        category: [name for name, own in categories.items() if category not in own]
        for answers in every.values()
        for category in dict.fromkeys(answers.records.category)
    }
    return {
        category: f"not asked of {listing(names)}" for category, names in lacking.items() if names
    }


def _common_answers(every: Sequence[Answers]) -> tuple[pd.Index, pd.Index]:
    """Return the answers that could be read of all models, and those of all that could in the task.

    Models of which fewer than half of the answers could be read are left out: they are not ranked,
    and would leave little to rank the others by.
    """
    read = [answers.readable.index[answers.readable] for answers in every if answers.is_ranked]
    if not read:
        nothing = pd.MultiIndex.from_frame(pd.DataFrame(columns=KEYS))
        return nothing, nothing
    by_task = []
    for task in dict.fromkeys(task for names in read for task in names.unique("task")):
        parts = [names[names.get_level_values("task") == task] for names in read]
        by_task.append(reduce(pd.Index.intersection, [part for part in parts if len(part)]))
    return reduce(pd.Index.intersection, read), by_task[0].append(by_task[1:])


def _pair(first: Answers, second: Answers) -> Pair:
    """Score two models on the answers that could be read of both."""
    asked = first.readable.index.intersection(second.readable.index)
    sides = {"first": first, "second": second}
    rows = pd.DataFrame({name: side.readable.reindex(asked) for name, side in sides.items()})
    both = asked[rows.all(axis=1).to_numpy()]
    scored = (first.replicates(both), second.replicates(both), _count_by_task(both))
    rows = rows.reset_index()
    rows = rows[~rows.request.map(of_judge).astype(bool)]
    if rows[[*sides]].all(axis=None):
        return Pair(*scored)
    rows = rows.join(first.units, on="item_id").drop(columns=["item_id", "request", "repeat"])
    rows["task"] = rows.task.astype("category")
    return Pair(*scored, rows, (first.bounds(asked), second.bounds(asked)))


def _count_by_task(names: pd.Index) -> Counter[str]:
    """Count answers by task, without those of a judge."""
    requests = names.get_level_values("request")
    judged = [request for request in requests.unique() if of_judge(request)]
    return Counter(names.get_level_values("task")[~requests.isin(judged)].tolist())


def pairs(
    compared: Mapping[tuple[str, str], Pair], benchmark: str, own: OwnScores = MappingProxyType({})
) -> pd.DataFrame:
    """Compare every pair of models in every headline score over all categories.

    Args:
        compared: by the names of both models.
        own: the models' own scores; a model without a score makes no pair.

    Returns:
        One row per headline (`task`, `metric`) and pair: `score_a` and `score_b` on the `n` answers
        that could be read of both, of `n_asked`; what `bench.metrics.significance.Comparison`
        holds; `p_adjusted` over all rows; effect sizes `d` and `h` (for shares only); the readable
        shares and p of their difference; the bounds of both scores on all that was asked; and the
        `verdict`.
    """
    rows = [
        (headline, _row(names, pair, headline, own))
        for headline in module("metrics", benchmark).HEADLINES
        for names, pair in compared.items()
        if any((ALL, headline.task, headline.metric) in one.first for one in compared.values())
    ]
    table = pd.DataFrame([row for _headline, row in rows], columns=COLUMNS)
    table["p_adjusted"] = benjamini_hochberg(table.p.to_numpy(float))
    readable = benjamini_hochberg(table.p_readable.to_numpy(float))
    table["verdict"] = [
        _verdict(headline, row, p, own)
        for (headline, _row), row, p in zip(rows, table.to_dict("records"), readable, strict=True)
    ]
    return table


def _row(names: tuple[str, str], pair: Pair, headline: Headline, own: OwnScores) -> dict[str, Any]:
    place, nan = (ALL, headline.task, headline.metric), np.nan
    n = sum(count for task, count in pair.answers.items() if headline.task in (ALL, task))
    row: dict[str, Any] = dict(zip(MODELS, (*place[1:], *names), strict=True))
    row |= {"n": n, **dict(zip(SHARES, (n, 1.0, 1.0, 1.0), strict=True))}
    if pair.asked is not None:
        asked = pair.asked[(pair.asked.task == headline.task) | (headline.task == ALL)]
        if len(asked):
            readable = (float(asked["first"].mean()), float(asked.second.mean()))
            values = (len(asked), *readable, readable_difference(asked).p)
            row |= dict(zip(SHARES, values, strict=True))
    for side, bounds in zip("ab", pair.bounds, strict=True):
        row[f"bound_low_{side}"], row[f"bound_high_{side}"] = bounds.get(place, (nan, nan))
    if place not in pair.first or place not in pair.second:
        return row | undefined(NOTHING)._asdict()
    scores = own.get(place[1:], {})
    without = [name for name in names if name in scores and np.isnan(scores[name]["score"])]
    if without:
        note = "; ".join(f"{name} has no score: {scores[name]['note']}" for name in without)
        return row | undefined(note)._asdict()
    first, second = pair.first[place], pair.second[place]
    samples = [side.samples[place] for side in (pair.first, pair.second)]
    tested = compare_resamples(first - second, min(samples), np.ptp(headline.limits))
    if samples[0] != samples[1] and not tested.note:
        tested = tested._replace(note=UNEQUAL)
    row |= tested._asdict() | {"score_a": float(first[0]), "score_b": float(second[0])}
    error = nan if np.isnan(tested.p) else float(np.nanstd((first - second)[1:]))
    row["d"] = tested.difference / (error * np.sqrt(tested.units)) if error > NOISE else nan
    row["h"] = cohens_h(row["score_a"], row["score_b"]) if headline.limits == (0, 1) else nan
    return row


def cohens_h(first: float, second: float) -> float:
    """Compute Cohen's h of two shares."""
    a, b = 2 * np.arcsin(np.sqrt([first, second]))
    return float(a - b)


def _verdict(headline: Headline, row: Row, p_readable: float, own: OwnScores) -> str:
    """Judge a pair: no model is the better one for its letters, or for being read less often.

    Args:
        p_readable: adjusted over all pairs.
    """
    readable, difference = row["readable_a"] - row["readable_b"], row["difference"]
    if not row["p_adjusted"] < 1 - LEVEL:
        if differs(readable, p_readable):
            return LESS_READABLE
        return UNDEFINED if np.isnan(row["p_adjusted"]) else NOT_SHOWN
    scores = own.get((headline.task, headline.metric), {})
    for side, is_higher in (("a", difference > 0), ("b", difference < 0)):
        score = scores.get(row[f"model_{side}"])
        if score is not None and by_letters(headline, score, higher=is_higher):
            return BY_LETTERS
    gain = -difference if headline.biased_is_high else difference
    bounds = [(row[f"bound_low_{side}"], row[f"bound_high_{side}"]) for side in "ab"]
    hollow = favours_less_readable(gain, readable, row["p_readable"]) and not apart(*bounds)
    return LESS_READABLE if hollow else DIFFERENT


def ranks(
    scores: Mapping[str, Replicates],
    table: pd.DataFrame,
    benchmark: str,
    own: OwnScores = MappingProxyType({}),
) -> pd.DataFrame:
    """Rank models, the best first, and say which ranks the tests leave open.

    Args:
        scores: by model, headline scores on the answers that could be read of all models.
        table: `pairs` of these models.
        own: the models' own scores; a model without a score has no rank.

    Returns:
        One row per headline and model with a score: `score`, `rank`, `ranks_from` and `ranks_to`
        (NaN where a pair could not be tested) and `shares` (how often it has each rank over the
        resamples, which overstate how sure the order of a close pair is).
    """
    rows = []
    for headline in module("metrics", benchmark).HEADLINES:
        place, sign = (ALL, headline.task, headline.metric), 1 if headline.biased_is_high else -1
        without = {name for name, row in own.get(place[1:], {}).items() if np.isnan(row["score"])}
        known = {
            name: replicates[place]
            for name, replicates in scores.items()
            if name not in without and not np.isnan(replicates.get(place, [np.nan])[0])
        }
        if not known:
            continue
        values = np.round(sign * np.stack(list(known.values())) / NOISE) * NOISE
        tested = of_headline(table, headline)
        tested = tested[tested.model_a.isin(known) & tested.model_b.isin(known)]
        shares = shares_of_ranks(values[:, 1:][:, ~np.isnan(values[:, 1:]).any(0)])
        for k, name in enumerate(known):
            rank = 1 + int((values[:, 0] < values[k, 0]).sum())
            first, last = open_ranks(tested, headline, name, list(known))
            rows.append((*place[1:], name, known[name][0], rank, first, last, shares[k]))
    columns = ["task", "metric", "model", "score", "rank", "ranks_from", "ranks_to", "shares"]
    return pd.DataFrame(rows, columns=columns)


def open_ranks(
    table: pd.DataFrame, headline: Headline, model: str, among: Collection[str]
) -> tuple[float, float]:
    """Return the best and the worst rank of a model that tests leave open among some models.

    Args:
        table: the rows of `pairs` of a headline.
        among: names of models, `model` one of them.

    Returns:
        NaN where a pair could not be tested.
    """
    own = table[(table.model_a == model) | (table.model_b == model)]
    own = own[own.model_a.isin(among) & own.model_b.isin(among)]
    if own.p.isna().any() or len(own) < len(among) - 1:
        return np.nan, np.nan
    shown = own[own.verdict == DIFFERENT]
    higher = (shown.difference > 0) == (shown.model_a == model)
    better = int((higher == headline.biased_is_high).sum())
    return 1.0 + better, float(len(among) - (len(shown) - better))


def shares_of_ranks(values: np.ndarray) -> np.ndarray:
    """Count how often each model has each rank.

    Args:
        values: float64 [models, resamples], the lowest the best.

    Returns:
        float64 [models, ranks]; equal models share their ranks. NaN without resamples.
    """
    n = len(values)
    better = (values[None] < values[:, None]).sum(1)
    equal = (values[None] == values[:, None]).sum(1)
    places = np.arange(n)[None, :, None]
    held = ((better[:, None] <= places) & (places < (better + equal)[:, None])) / equal[:, None]
    return held.mean(2) if values.shape[1] else np.full((n, n), np.nan)


def of_headline(table: pd.DataFrame, headline: Headline) -> pd.DataFrame:
    """Return the rows of a headline."""
    return table[(table.task == headline.task) & (table.metric == headline.metric)]


def leaderboard(scores: pd.DataFrame, result: Compared) -> pd.DataFrame:
    """Return the headline scores of each model over all categories, the best first.

    Args:
        scores: score tables with a column `model`, on all that each model was asked.

    Returns:
        Their rows, with the `ranks` that the tests leave open.
    """
    known = result.ranks[result.ranks.ranks_from.notna()]
    keys = known[["task", "metric", "model"]].itertuples(index=False, name=None)
    ends = known[["ranks_from", "ranks_to"]].itertuples(index=False, name=None)
    texts = {
        key: range_text(f"{low:.0f}", f"{high:.0f}")
        for key, (low, high) in zip(keys, ends, strict=True)
    }
    parts = []
    own = module("metrics", result.benchmark).HEADLINES
    for headline, ranked in zip(headlines(scores, result.benchmark), own, strict=True):
        rows = headline_rows(scores, headline)
        rows = rows[rows.category == ALL].sort_values("score", ascending=headline.biased_is_high)
        # Ranks are of common answers in any case, under the headline's own name.
        own_ranks = [texts.get((ranked.task, ranked.metric, name), "") for name in rows.model]
        parts.append(rows.assign(ranks=own_ranks))
    columns = ["task", "metric", "model", "score", "ci_low", "ci_high", "bound_low", "bound_high"]
    columns += ["ranks", "n", "valid_rate", "baseline", "note"]
    return pd.concat(parts)[columns].reset_index(drop=True)


def findings(results: Iterable[Compared]) -> list[str]:
    """Say of each benchmark which model leads and whether that is sure, then how many pairs differ.

    The leader is that of the first score in which all models could be tested. Benchmarks that have
    one come first.
    """
    answers, rest = [], []
    for result in results:
        every: Sequence[Headline] = module("metrics", result.benchmark).HEADLINES
        lines = [line for line in every if len(of_headline(result.pairs, line))]
        ranked = [line for line in lines if _is_ranked(of_headline(result.ranks, line))]
        text = "no two models were asked the same, so none are compared."
        if lines:
            text = _leader(result, (ranked or lines)[0])
            rest += [_titled(result, text) for text in _rest(result, lines)]
        answers.append((not ranked, _titled(result, text)))
    return [text for _late, text in sorted(answers, key=lambda pair: pair[0])] + rest


def _titled(result: Compared, text: str) -> str:
    title = module("data", result.benchmark).TITLE
    return f"{title}: {text}"


def _is_ranked(order: pd.DataFrame) -> bool:
    return len(order) > 1 and bool(order.ranks_from.notna().all())


def _leader(result: Compared, line: Headline) -> str:
    """Say which model leads in a score and by how much, never more strongly than its tests.

    Models whose score tells nothing of groups do not lead.
    """
    pairs, order = of_headline(result.pairs, line), of_headline(result.ranks, line)
    scores = result.own.get((line.task, line.metric), {})
    doubts = {
        name: doubt(line, row, higher=not line.biased_is_high) for name, row in scores.items()
    }
    doubts = {name: text for name, text in doubts.items() if text}
    order = order[~order.model.isin(doubts)].sort_values("rank", kind="stable")
    what = phrase(line.title)
    if len(order) < 2:
        why = "fewer than two models have a score that could differ by group"
        text = f"no order of models can be given in {what}: {why}."
        return sentences([text, left_out(doubts)])
    first, second = order.model[:2]
    names: dict[str, object] = {"first": first, "second": second, "what": what, "k": len(order)}
    both = pairs.model_a.isin([first, second]) & pairs.model_b.isin([first, second])
    (row,) = pairs[both].to_dict("records")
    if np.isnan(row["p_adjusted"]):
        why = row["note"]
        text = "{first} and {second} cannot be compared in {what}: {why}.".format(why=why, **names)
        return sentences([text, left_out(doubts)])
    sign = 1 if (row["model_a"] == first) != line.biased_is_high else -1
    evidence = [f"{adjusted(result.pairs)}{format_p(row['p_adjusted'])}", f"n = {row['n']:,}"]
    ends = sorted(sign * row[name] for name in ("ci_low", "ci_high"))
    if not np.isnan(ends[0]):
        low, high = (points(line, end, signed=ends[0] < 0) for end in ends)
        evidence.insert(0, f"95\u00a0% interval {low} to {high}")
    names["size"] = gap(line, row["difference"])
    names["around"] = "; ".join(evidence)
    names["value"], names["next"] = (number(line, {"score": score}) for score in order.score[:2])
    names["best"] = "least bias" if line.worse == "more bias" else "best score"
    if row["verdict"] == DIFFERENT:
        text = (
            "{first} has the {best} of {k} models in {what}, {value}: {size} from {second}, the "
            "next ({around})."
        ).format(
            **names,
        )
    else:
        text = (
            "{first} and {second} come first of {k} models in {what}, {value} and {next}, but no "
            "difference between them could be shown: {size} ({around})."
        ).format(
            **names,
        )
    parts = [text]
    if row["verdict"] == LESS_READABLE:
        parts.append("What differs is how often they can be read.")
    if row["verdict"] == BY_LETTERS:
        parts.append("What differs may be that one of them prefers a letter.")
    if min(row["readable_a"], row["readable_b"]) < READABLE:
        n, asked = f"{row['n']:,}", f"{row['n_asked']:,}"
        text = f"This is on the {n} of {asked} answers that could be read of both."
        parts.append(text)
    return sentences([*parts, left_out(doubts)])


def adjusted(pairs: pd.DataFrame) -> str:
    """Return the word for p values that were adjusted: a single test needs none."""
    return "adjusted " if pairs.p.notna().sum() > 1 else ""


def _rest(result: Compared, lines: Sequence[Headline]) -> Iterator[str]:
    """Say how many pairs differ in all scores, and which categories are in no rank."""
    rows = pd.concat([of_headline(result.pairs, line) for line in lines])
    counts, tested = rows.verdict.value_counts(), int(rows.p_adjusted.notna().sum())
    parts = []
    if tested:
        text = (
            f"{counts.get(DIFFERENT, 0)} of {tested} pairs differ (headline scores: "
            f"{len(lines)}; paired tests, {adjusted(rows)}p < {1 - LEVEL:.2f})."
        )
        parts.append(text)
    if unread := counts.get(LESS_READABLE, 0):
        text = f"In {unread} of {len(rows)}, what differs is how often the models can be read."
        parts.append(text)
    if letters := counts.get(BY_LETTERS, 0):
        text = f"In {letters} of {len(rows)}, what differs may be that a model prefers a letter."
        parts.append(text)
    if undefined := counts.get(UNDEFINED, 0):
        reason = rows.note[rows.verdict == UNDEFINED].iloc[0]
        parts.append(f"{undefined} of {len(rows)} could not be compared: {reason}.")
    if result.unasked:
        parts.append(f"Ranks are over what all were asked. {left_out(result.unasked)}")
    if parts:
        yield sentences(parts)
