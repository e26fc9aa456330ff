"""The same models asked the same questions with two prompt sets: do they get the same scores.

pairs, left_out = pair_runs(open_runs([], "cbbq", demo=["tiny:s"], prompts="reworded"))
result = compare(pairs)
findings(result), agreement(result), generalise(runs).findings
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import scipy

from bench import analyses
from bench.analyses.prompt_robustness.points import (
    HEADLINE,
    Points,
    by_category,
    correlate,
    correlation_table,
    limits,
    overall,
    points,
    rank_changes,
    same_order,
)
from bench.analyses.published import published
from bench.benchmarks import module
from bench.core.errors import BadInput, NoRuns
from bench.core.i18n import _, note, sentences
from bench.metrics.bootstrap import LEVEL
from bench.metrics.correlation import correlations
from bench.metrics.headline import LOW_VALIDITY, range_text, without_brackets
from bench.metrics.mcbe import HEADLINES as MCBE
from bench.metrics.significance import detectable_sentence, format_p
from bench.metrics.table import ALL, Headline
from bench.run.results import Run, labels
from bench.tasks.request import of_judge

__all__ = ["by_category", "correlation_table", "overall", "same_order"]

# What may differ between the runs of a pair. Of what was asked, only what both have counts.
MAY_DIFFER = {"prompts", "wording_hash", "categories", "tasks", "limit"}
KEYS = ["category", "task", "item_id", "request", "repeat"]
# A rank correlation of this much lets a title say that the order stays.
ALIKE = 0.9
# What the McBE paper's Table 12 prints of its scores under two prompt sets: coefficient and p.
PRINTED = {
    ("sc", "spearman"): ("1", "0"),
    ("sc", "pearson"): ("0.999", "2.63e-10"),
    ("bs", "spearman"): ("0.967", "2.16e-5"),
    ("bs", "pearson"): ("0.999", "2.76e-11"),
}


class Pair(NamedTuple):
    """A model's runs with two prompt sets.

    Attributes:
        name: the model's, as tables show it.
        reworded: the tasks whose questions differ.
        alike: those that were asked in the same words; nothing can be said of them.
        differ: what else is not the same in both runs, such as the seed.
    """

    name: str
    first: Run
    second: Run
    reworded: list[str]
    alike: list[str]
    differ: list[str]

    @property
    def wordings(self) -> tuple[str, str]:
        """Return the names of the prompt sets."""
        return _prompts(self.first), _prompts(self.second)


class Result(NamedTuple):
    """Scores under two prompt sets, and what is said of them (see `points`)."""

    points: Points
    correlated: pd.DataFrame
    limits: pd.DataFrame
    ranks: pd.DataFrame

    @classmethod
    def of(cls, found: Points, headlines: Sequence[Headline]) -> "Result":
        """Correlate and rank scores."""
        ranks = rank_changes(found.table, headlines)
        return cls(found, correlate(found), limits(found), ranks)


def open_runs(
    runs: Sequence[str | Path],
    benchmark: str,
    *,
    models: Sequence[str] = (),
    demo: Sequence[str] = (),
    prompts: str = "reworded",
    options: Mapping[str, Any] | None = None,
) -> list[Run]:
    """Open runs; without any, ask `demo` with our prompt set and again with `prompts`.

    See `bench.analyses.opened` for the arguments.
    """
    given = {"benchmarks": [benchmark], "models": models, "demo": demo}
    opened = analyses.opened(runs, **given, options={benchmark: dict(options or {})})
    if runs:
        return opened
    again = {benchmark: {**(options or {}), "prompts": prompts}}
    return opened + analyses.opened([], **given, options=again)


def pair_runs(runs: Sequence[Run], second: str = "") -> tuple[list[Pair], pd.DataFrame]:
    """Pair the runs of each model with two prompt sets; the first run's is the first for all.

    Args:
        runs: of one benchmark.
        second: name of the other prompt set; default: the only other one.

    Returns:
        The pairs, and a frame with `model`, `wording`, `why` of runs that are left out.

    Raises:
        BadInput: several benchmarks, several others without a choice, or a model twice in one.
        NoRuns: only one prompt set, or no pair at all.
    """
    benchmarks = sorted({run.benchmark for run in runs})
    if len(benchmarks) != 1:
        raise BadInput(
            f"runs of {', '.join(benchmarks) or 'no benchmark'}: wordings are compared within one "
            "benchmark"
        )
    first, *others = dict.fromkeys(map(_prompts, runs))
    if not others:
        raise NoRuns(
            f"every run is in the wording {first}: two are compared; ask with --prompts reworded "
            "too"
        )
    chosen = [name for name in others if second in ("", name)]
    if len(chosen) != 1:
        raise BadInput(
            f"{len(others) + 1} wordings ({', '.join([first, *others])}): two are compared; choose "
            "the second by its name"
        )
    if len({(run.model, run.label, _prompts(run)) for run in runs}) < len(runs):
        runs = analyses.alike(runs, ("settings", "generation", "seed", "repeats"))
    by_model: dict[str, dict[str, Run]] = {}
    for model, run in zip(labels(runs), runs, strict=True):
        name, own = _prompts(run), by_model.setdefault(model, {})
        if name in own:
            raise BadInput(
                f"{run.folder} and {own[name].folder}: both are {model} with the wording {name}; "
                "name one"
            )
        if name in (first, chosen[0]):
            own[name] = run
    pairs, left_out = [], []
    for model, own in by_model.items():
        sides = [own[name] for name in (first, chosen[0]) if name in own]
        data = {run.about["asked"]["data_sha256"] for run in sides}
        if len(sides) == 2 and len(data) == 1:
            pairs.append(_pair(model, *sides))
            continue
        both = "the two runs are on different data"
        why = both if len(sides) == 2 else "asked in this wording alone"
        left_out += [{"model": model, "wording": _prompts(run), "why": why} for run in sides]
    if not pairs:
        raise NoRuns(
            f"no model was asked in both wordings, {first} and {chosen[0]}, on the same data"
        )
    return pairs, pd.DataFrame(left_out, columns=["model", "wording", "why"])


def _prompts(run: Run) -> str:
    return str(run.about["asked"]["prompts"])


def _pair(name: str, first: Run, second: Run) -> Pair:
    both = _both(first, second)
    reworded = {
        str(task): bool((rows.prompt_x != rows.prompt_y).any())
        for task, rows in both.groupby("task", sort=False)
    }
    asked = [run.about["asked"] for run in (first, second)]
    return Pair(
        name,
        first,
        second,
        [task for task, differs in reworded.items() if differs],
        [task for task, differs in reworded.items() if not differs],
        [
            f"{key}: {asked[0].get(key)} and {asked[1].get(key)}"
            for key in sorted({*asked[0], *asked[1]} - MAY_DIFFER)
            if asked[0].get(key) != asked[1].get(key)
        ],
    )


def _both(first: Run, second: Run) -> pd.DataFrame:
    """Return the answers that came in both runs, without those of a judge."""
    sides = []
    for run in (first, second):
        rows = run.records[[*KEYS, "prompt", "parsed", "valid", "error"]]
        sides.append(rows[rows.error == ""])
    both = sides[0].merge(sides[1], on=KEYS)
    if both.empty:
        raise BadInput(f"{first.folder} and {second.folder}: have no answer to the same question")
    return both[~both.request.map(of_judge)]


def headlines(pairs: Sequence[Pair]) -> list[Headline]:
    """Return the headlines of reworded tasks, and of all tasks if every one was reworded."""
    benchmark = pairs[0].first.benchmark
    tasks = [task for task in pairs[0].reworded if all(task in pair.reworded for pair in pairs)]
    every = all(not pair.alike for pair in pairs)
    own: Sequence[Headline] = module("metrics", benchmark).HEADLINES
    return [one for one in own if one.task in tasks or (one.task == ALL and every)]


def compare(pairs: Sequence[Pair], preset: str = "") -> Result:
    """Compare the headline scores of reworded tasks, on the answers that both runs have.

    Raises:
        BadInput: no task was reworded, or an unknown preset.
    """
    wanted = headlines(pairs)
    if not wanted:
        raise BadInput(
            f"{', '.join(pairs[0].wordings)}: every task was asked in the same words in both runs"
        )
    scores = {
        pair.name: (
            pair.first.replicates(preset or None, like=[pair.second]),
            pair.second.replicates(preset or None, like=[pair.first]),
            _answered(pair),
        )
        for pair in pairs
    }
    return Result.of(points(scores, wanted), wanted)


def _answered(pair: Pair) -> pd.DataFrame:
    """Count the answers of both runs, and the shares that are readable and read alike."""
    both = _both(pair.first, pair.second).assign(n=1)
    both["same"] = both.valid_x & both.valid_y & (both.parsed_x == both.parsed_y)
    return both.groupby(["category", "task"], sort=False).agg(
        n=("n", "sum"),
        valid_first=("valid_x", "mean"),
        valid_second=("valid_y", "mean"),
        same=("same", "mean"),
    )


def overview(pairs: Sequence[Pair]) -> pd.DataFrame:
    """Return what is compared, one row per pair."""
    columns = ["model", "first", "second", "reworded", "same_words", "also_differ"]
    rows = [
        (pair.name, *pair.wordings, *map(", ".join, (pair.reworded, pair.alike, pair.differ)))
        for pair in pairs
    ]
    return pd.DataFrame(rows, columns=columns)


def table_12() -> Result:
    """Compare the scores that the McBE paper's Table 12 prints, which have no intervals."""
    printed = published("mcbe")
    printed = printed[printed.source.str.endswith("Table 12")]
    keys = ["model", "category", "task", "metric"]
    scores = printed.pivot_table(index=keys, columns="setting", values="score", sort=False)
    scores = scores.reset_index().rename(
        columns={
            "released items, original prompts": "first",
            "released items, new prompts": "second",
        }
    )
    titles = {headline.task: headline.title for headline in MCBE}
    scores = scores.assign(title=scores.task.map(titles), higher="better")
    found = Points(scores.assign(difference=scores.second - scores["first"]), {})
    return Result(found, correlate(found), limits(found), pd.DataFrame())


def table_12_recomputed() -> pd.DataFrame:
    """Return the eight numbers printed with Table 12 next to the same from its scores.

    They are of the nine scores of a task, all categories and models together, with two-sided p by
    the t distribution. `same` says whether both are printed so.
    """
    rows = []
    for task, own in table_12().points.table.groupby("task", sort=False):
        for one in correlations(own["first"].to_numpy(), own.second.to_numpy()):
            printed = PRINTED.get((str(task), one.coefficient))
            if printed:
                value = f"{one.value:.3f}".rstrip("0").rstrip(".")
                p = "0" if one.p == 0 else f"{one.p:.2e}".replace("e-0", "e-")
                same = "yes" if (value, p) == printed else "no"
                exact = (f"{one.value:.6f}", printed[0], f"{one.p:.5e}", printed[1])
                rows.append((task, one.coefficient, one.n, *exact, same))
    columns = ["task", "coefficient", "n", "value", "printed", "p", "printed_p", "same"]
    return pd.DataFrame(rows, columns=columns)


def findings(result: Result) -> list[str]:
    """Say for each headline whether the order of scores stays, how far they move, and how ranks do.

    And whose answers could not be read with one of the prompt sets.
    """
    lines = []
    for row in result.limits.to_dict("records"):
        rho = _of(result.correlated, row).set_index("coefficient").to_dict("index")["spearman"]
        parts = (_order(rho), _moves(row), _places(_of(result.ranks, row)))
        title = without_brackets(row["title"])
        lines.append(_("{title}: {sentence}", title=title, sentence=sentences(parts)))
    table = result.points.table
    whole = table[table.category == ALL] if "valid_first" in table else table[:0]
    for row in whole.to_dict("records"):
        if min(row["valid_first"], row["valid_second"]) < LOW_VALIDITY:
            lines.append(
                _(
                    "{name}: {first} of its answers could be read under the first wording, "
                    "{second} under the second; what differs may be the form of its replies.",
                    name=_name(row),
                    first=f"{row['valid_first']:.0%}",
                    second=f"{row['valid_second']:.0%}",
                )
            )
    return lines


def _order(rho: Mapping[Any, Any]) -> str:
    if pd.isna(rho["value"]):
        return _("no correlation exists ({why}).", why=note(rho["reason"]))
    numbers = [format_p(rho["p"])]
    if not pd.isna(rho["ci_low"]):
        numbers.insert(0, _interval(f"{rho['ci_low']:.2f}", f"{rho['ci_high']:.2f}"))
    return _(
        "over {n} pairs of scores Spearman's ρ = {value} ({around}).",
        n=rho["n"],
        value=f"{rho['value']:.2f}",
        around=_("; ").join(numbers),
    )


def _moves(row: Mapping[Any, Any]) -> str:
    if row["n"] < 2:
        return _("How far scores move cannot be said.")
    scale = max(abs(row["limits_low"]), abs(row["limits_high"]), row["most"])
    ends = [signed(row[name], scale) for name in ("ci_low", "ci_high")]
    around = "" if pd.isna(row["ci_low"]) else _(" ({text})", text=_interval(*ends))
    text = _(
        "Scores move by {mean} on average{around}, nineteen of twenty by {low} to {high}",
        mean=signed(row["mean"], scale),
        around=around,
        low=signed(row["limits_low"], scale),
        high=signed(row["limits_high"], scale),
    )
    if row["of"]:
        text += _(
            "; {n} of {all} by more than chance (without any effect about {expected} would)",
            n=row["beyond_chance"],
            all=row["of"],
            expected=f"{row['of'] / 20:.0f}",
        )
    return _("{text}.", text=text)


def _places(ranks: pd.DataFrame) -> str:
    if len(ranks) < 2:
        return ""
    moved = int((ranks.change != 0).sum())
    return _("{n} of {all} models change places.", n=moved, all=len(ranks))


def by_model(result: Result) -> list[str]:
    """Say how the scores of each model over all categories move."""
    table = result.points.table
    return [model_sentence(row) for row in table[table.category == ALL].to_dict("records")]


def model_sentence(row: Mapping[Any, Any]) -> str:
    """Say how a score of a model moves, never more strongly than its interval."""
    name, difference, low, high = _name(row), row["difference"], row["ci_low"], row["ci_high"]
    if pd.isna(difference):
        return _("{name}: cannot be compared: {why}.", name=name, why=note(row["note"]))
    scale = max(abs(row["first"]), abs(row["second"]))
    alike = _(
        "{share} of {n} questions were answered alike",
        share=f"{row['same']:.0%}",
        n=f"{row['n']:,}",
    )
    if pd.isna(low):
        return _(
            "{name}: {difference}, without an interval: {why}; {alike}.",
            name=name,
            difference=signed(difference, scale),
            why=note(row["note"]),
            alike=alike,
        )
    around = _("; ").join((_interval(signed(low, scale), signed(high, scale)), alike))
    if low <= 0 <= high:
        text = _(
            "{name}: no difference could be shown: {difference} ({around}).",
            name=name,
            difference=signed(difference, scale),
            around=around,
        )
        size = number(row["detectable"], scale)
        return sentences([text, detectable_sentence(size, row["detectable"])])
    about = {"name": name, "size": number(abs(difference), scale), "around": around}
    if difference > 0:
        return _("{name}: {size} higher under the second wording ({around}).", **about)
    return _("{name}: {size} lower under the second wording ({around}).", **about)


def title(result: Result) -> str:
    """Say in one line whether the order of scores stays."""
    rho = result.correlated[result.correlated.coefficient == "spearman"].value.dropna()
    most = result.limits.most.max()
    if rho.empty:
        return _("Too few scores under both wordings to compare their order")
    if rho.min() >= ALIKE:
        order = _("Both wordings order scores alike")
    elif not result.limits.of.sum():
        order = _("The wordings order scores differently")
    elif any(map(_moves_beyond_chance, result.limits.to_dict("records"))):
        order = _("Scores depend on the wording")
    else:
        order = _("No effect of the wording could be shown")
    return _(
        "{order} (ρ = {rho}); single ones move by up to {most}",
        order=order,
        rho=range_text(f"{rho.min():.2f}", f"{rho.max():.2f}"),
        most=number(most, most),
    )


def _moves_beyond_chance(row: Mapping[Any, Any]) -> bool:
    """Whether the mean moved, or more intervals exclude 0 than one of twenty."""
    moved, n, p = row["beyond_chance"], int(row["of"]), 1 - LEVEL
    many = n > 0 and scipy.stats.binomtest(moved, n, p, alternative="greater").pvalue < p
    return bool(many or row["ci_low"] > 0 or row["ci_high"] < 0)


def number(value: float, scale: float) -> str:
    """Write a score with as many digits as its scale, shares or points, makes sensible."""
    return f"{value:.1f}" if scale > 1 else f"{value:.2f}"


def signed(value: float, scale: float) -> str:
    """Write a change of a score with its sign; zero has none."""
    plain = number(abs(value), scale)
    return plain if float(plain) == 0 else f"{'+' if value > 0 else '−'}{plain}"


def _interval(low: str, high: str) -> str:
    return _("95\u00a0% interval {low} to {high}", low=low, high=high)


def _name(row: Mapping[Any, Any]) -> str:
    measure = without_brackets(str(row["title"]))
    return _("{title}, {measure}", title=row["model"], measure=measure)


def _of(table: pd.DataFrame, row: Mapping[Any, Any]) -> pd.DataFrame:
    return table[(table[HEADLINE] == [row[name] for name in HEADLINE]).all(axis=1)]
