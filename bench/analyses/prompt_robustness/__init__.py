"""The same models asked the same questions with two prompt sets: do they get the same scores.

pairs, left_out = pair_runs(open_runs([], "cbbq", demo=["tiny:s"], prompts="reworded"))
result = compare(pairs)
findings(result), result.limits

A correlation over categories and models says whether the order of scores stays; it is high wherever
models differ much, whatever the prompts do. So the paired differences are shown next to it (Bland
and Altman, Lancet 1986).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy

from bench import analyses
from bench.analyses.published import published
from bench.benchmarks import module
from bench.core.errors import BadInput, NoRuns
from bench.core.numbers import decimals, signed
from bench.core.text import sentences
from bench.metrics.bootstrap import LEVEL, Replicates, Sample, pooled
from bench.metrics.correlation import (
    COEFFICIENTS,
    NOISE,
    by_group,
    correlations,
    reliability,
    with_interval,
)
from bench.metrics.headline import LOW_VALIDITY, listing, phrase, range_text
from bench.metrics.mcbe import HEADLINES as MCBE
from bench.metrics.significance import compare_resamples, format_p, holm, holm_by_score
from bench.metrics.table import ALL, Headline
from bench.run.results import Run
from bench.tasks.request import of_judge

# What may differ between the runs of a pair. Of what was asked, only what both have counts.
MAY_DIFFER = {"prompts", "wording_hash", "categories", "tasks", "limit"}
KEYS = ["category", "task", "item_id", "request", "repeat"]
HEADLINE = ["task", "metric"]
TESTED = ["difference", "ci_low", "ci_high", "p", "detectable"]
SHARES = ["same", "valid_first", "valid_second"]
SHOWN = [*HEADLINE, "first", "second", *TESTED, "p_holm", "n", *SHARES, "note"]
# 95 % of normal differences are within so many standard deviations of their mean.
LIMITS = 1.96
# A rank correlation of this much lets a title say that the order stays.
ALIKE = 0.9
# Scores in the reasons for an undefined correlation.
NAMES = ("the score under the first wording", "the score under the second wording")
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
        prompts: names of the prompt sets.
        both: the answers that came in both runs, without those of a judge.
        reworded: the tasks whose questions differ.
        alike: those that were asked in the same words; nothing can be said of them.
        differ: what else is not the same in both runs, such as the seed.
    """

    name: str
    first: Run
    second: Run
    prompts: tuple[str, str]
    both: pd.DataFrame
    reworded: list[str]
    alike: list[str]
    differ: list[str]


@dataclass(frozen=True)
class Result:
    """Scores under two prompt sets.

    Attributes:
        table: one row per model, category (or `all`) and headline: `title`, `higher` (what a higher
            score means), `first`, `second`, `difference` (second less first) with `ci_low`,
            `ci_high`, `p`, `p_holm` (over all categories adjusted for the other models and
            headlines, else for the other categories of the same model and headline) and
            `detectable`, `n` (answers of each), `same` (the share that was read alike),
            `valid_first`, `valid_second`, `note`.
        values: by row number, both scores: float64 [2, 1 + draws], observed first.
        samples: by row number, what it rests on.
    """

    table: pd.DataFrame
    values: Mapping[int, np.ndarray] = field(default_factory=dict)
    samples: Mapping[int, Sample] = field(default_factory=dict)

    @property
    def overall(self) -> pd.DataFrame:
        """The rows over all categories."""
        return self.table[self.table.category == ALL]

    @property
    def by_category(self) -> pd.DataFrame:
        """The rows of single categories."""
        return self.table[self.table.category != ALL]

    @cached_property
    def correlated(self) -> pd.DataFrame:
        """Correlations of the scores of single categories, a row per headline and coefficient.

        `pooled` over all points with its interval; the `ceiling` below which chance of items keeps
        it; and of the coefficients within each category their mean, `lowest_within`,
        `highest_within`, and in how many of all `categories` there is one (`defined`).
        """
        rows = []
        for keys, part in self.by_category.groupby(HEADLINE, sort=False):
            coefficients = correlations(
                part["first"].to_numpy(float), part.second.to_numpy(float), NAMES
            )
            ceiling = np.nan
            if set(part.index) <= set(self.values):  # published scores have no resamples
                first, second = np.stack([self.values[k] for k in part.index], axis=1)
                freedom = self._sample(part).freedom
                coefficients = [
                    with_interval(value, first, second, freedom) for value in coefficients
                ]
                ceiling = float(np.sqrt(reliability(first) * reliability(second)))
            rows += [
                dict(zip(HEADLINE, keys, strict=True)) | value._asdict() | {"ceiling": ceiling}
                for value in coefficients
            ]
        columns = [*HEADLINE, "coefficient"]
        each = by_group(self.by_category, [*HEADLINE, "category"], "first", "second", NAMES)
        within = each.groupby(columns, sort=False).value.agg(
            within_category="mean",
            lowest_within="min",
            highest_within="max",
            defined="count",
            categories="size",
        )
        table = pd.DataFrame(rows).rename(columns={"value": "pooled"})
        table = table.merge(within.reset_index(), on=columns, how="left")
        table.insert(len(table.columns) - 1, "reason", table.pop("reason"))
        return table.sort_values(
            "coefficient", key=lambda names: names.map(list(COEFFICIENTS).index), kind="stable"
        ).reset_index(drop=True)

    @cached_property
    def limits(self) -> pd.DataFrame:
        """How far the scores of single categories move, a row per headline (Bland and Altman).

        `title`, `n`, `mean` difference with its interval and `p`, `sd`, `limits_low`,
        `limits_high`, `most` (the largest distance), `beyond_chance` (how many intervals exclude 0)
        and `of`, those with an interval; `p_count`, for no more of these than one of twenty; and
        `p_holm`, the smaller p, adjusted for all in the table.
        """
        rows = []
        for keys, own in self.by_category.groupby(HEADLINE, sort=False):
            known = own[own.difference.notna()]
            mean, sd = known.difference.mean(), known.difference.std(ddof=1)
            tested = compare_resamples(np.array([np.nan]), Sample(0, 0))
            if len(known) and set(known.index) <= set(self.values):
                # Models were asked the same items.
                differences = [self.values[k][1] - self.values[k][0] for k in known.index]
                tested = compare_resamples(np.mean(differences, axis=0), self._sample(known))
            ends = known.reindex(columns=["ci_low", "ci_high"]).dropna()
            rows.append(
                {
                    **dict(zip(HEADLINE, keys, strict=True)),
                    "title": own.title.iloc[0],
                    "n": len(known),
                    "mean": mean,
                    "ci_low": tested.ci_low,
                    "ci_high": tested.ci_high,
                    "p": tested.p,
                    "sd": sd,
                    "limits_low": mean - LIMITS * sd,
                    "limits_high": mean + LIMITS * sd,
                    "most": known.difference.abs().max(),
                    "beyond_chance": int(((ends.ci_low > NOISE) | (ends.ci_high < -NOISE)).sum()),
                    "of": len(ends),
                }
            )
        table = pd.DataFrame(rows)
        by_chance = scipy.stats.binom.sf(table.beyond_chance - 1, table.of, 1 - LEVEL)
        table["p_count"] = np.where(table.of > 0, by_chance, np.nan)
        adjusted = holm(table[["p", "p_count"]].to_numpy(float).ravel()).reshape(-1, 2)
        return table.assign(p_holm=np.fmin(*adjusted.T))

    @cached_property
    def ranks(self) -> pd.DataFrame:
        """Ranks of the models by headline, 1 for least bias; ties share the mean of their ranks."""
        rows = self.overall[self.overall.difference.notna()]
        order = rows.groupby(HEADLINE, sort=False).ngroup().sort_values(kind="stable").index
        rows = rows.loc[order].reset_index(drop=True)
        table = rows[[*HEADLINE, "title", "model", "first", "second"]].copy()
        for name in ("first", "second"):
            bias = rows[name].round(9).where(rows.biased_is_high, -rows[name].round(9))
            table[f"rank_{name}"] = bias.groupby([rows[key] for key in HEADLINE]).rank()
        return table.assign(change=table.rank_second - table.rank_first)

    def _sample(self, rows: pd.DataFrame) -> Sample:
        """Return what rows rest on together; models were asked the same items."""
        return pooled(list({rows.category[k]: self.samples[k] for k in rows.index}.values()))


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
    own: dict[str, Any] = dict(options or {})
    both = [own] if runs else [own, {**own, "prompts": prompts}]
    return [
        run for each in both for run in analyses.opened(runs, **given, options={benchmark: each})
    ]


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
            f"runs of {', '.join(benchmarks) or 'no benchmark'}: prompt sets are compared within "
            "one benchmark"
        )
    first, *others = dict.fromkeys(map(_prompts, runs))
    if not others:
        raise NoRuns(
            f"every run has the prompt set {first}: two are compared; ask with --prompts reworded "
            "too"
        )
    chosen = [name for name in others if second in ("", name)]
    if len(chosen) != 1:
        raise BadInput(
            f"{len(others) + 1} prompt sets ({', '.join([first, *others])}): two are compared; "
            "choose the second by its name"
        )
    if len({(run.model, run.label, _prompts(run)) for run in runs}) < len(runs):
        runs = analyses.alike(runs, ("settings", "generation", "seed", "repeats"))
    pairs, left_out = [], []
    for model, own in analyses.by_model(runs, _prompts).items():
        sides = [own[name] for name in (first, chosen[0]) if name in own]
        if len(sides) == 2 and len({run.about["asked"]["data_sha256"] for run in sides}) == 1:
            pairs.append(_pair(model, *sides))
            continue
        both = "the two runs are on different data"
        why = both if len(sides) == 2 else "asked in this wording alone"
        left_out += [(model, _prompts(run), why) for run in sides]
    if not pairs:
        raise NoRuns(
            f"no model was asked with both prompt sets, {first} and {chosen[0]}, on the same data"
        )
    return pairs, pd.DataFrame(left_out, columns=["model", "wording", "why"])


def _prompts(run: Run) -> str:
    return str(run.about["asked"]["prompts"])


def _pair(name: str, first: Run, second: Run) -> Pair:
    answers = [
        run.records.loc[run.records.error == "", [*KEYS, "prompt", "parsed", "valid"]]
        for run in (first, second)
    ]
    both = answers[0].merge(answers[1], on=KEYS)
    if both.empty:
        raise BadInput(f"{first.folder} and {second.folder}: have no answer to the same question")
    both = both[~both.request.map(of_judge)]
    differs = (both.prompt_x != both.prompt_y).groupby(both.task, sort=False).any()
    asked = [run.about["asked"] for run in (first, second)]
    return Pair(
        name,
        first,
        second,
        (_prompts(first), _prompts(second)),
        both,
        list(differs.index[differs]),
        list(differs.index[~differs]),
        [
            f"{key}: {asked[0].get(key)} and {asked[1].get(key)}"
            for key in sorted({*asked[0], *asked[1]} - MAY_DIFFER)
            if asked[0].get(key) != asked[1].get(key)
        ],
    )


def compare(pairs: Sequence[Pair], preset: str = "") -> Result:
    """Compare the headline scores of reworded tasks, on the answers that both runs have.

    Scores over all tasks are compared where every task was reworded.

    Raises:
        BadInput: no task was reworded, or an unknown preset.
    """
    tasks = set.intersection(*(set(pair.reworded) for pair in pairs))
    if all(not pair.alike for pair in pairs):
        tasks.add(ALL)
    headlines = module("metrics", pairs[0].first.benchmark).HEADLINES
    headlines = tuple(headline for headline in headlines if headline.task in tasks)
    if not headlines:
        raise BadInput(
            f"{', '.join(pairs[0].prompts)}: every task was asked in the same words in both runs"
        )
    scores = {}
    for pair in pairs:
        both = pair.both.assign(n=1)
        both["same"] = both.valid_x & both.valid_y & (both.parsed_x == both.parsed_y)
        answered = both.groupby(["category", "task"], sort=False).agg(
            n=("n", "sum"),
            valid_first=("valid_x", "mean"),
            valid_second=("valid_y", "mean"),
            same=("same", "mean"),
        )
        first = pair.first.replicates(preset or None, like=[pair.second])
        second = pair.second.replicates(preset or None, like=[pair.first])
        scores[pair.name] = (first, second, answered)
    return compare_scores(scores, headlines)


def compare_scores(
    pairs: Mapping[str, tuple[Replicates, Replicates, pd.DataFrame]], headlines: Sequence[Headline]
) -> Result:
    """Compare the scores of several models under two prompt sets.

    Args:
        pairs: by model, its scores of the same answers under the first and the second; and a frame
            with the index (category, task) and columns `n`, `same`, `valid_first`, `valid_second`.
    """
    rows: list[dict[str, Any]] = []
    values, samples = {}, {}
    for model, (first, second, answered) in pairs.items():
        for headline in headlines:
            good = "less bias" if headline.worse == "more bias" else "better"
            score = (headline.task, headline.metric)
            for place in [key for key in first if key[1:] == score and key in second]:
                both = np.stack([first[place], second[place]])
                sample = min(first.samples[place], second.samples[place])
                with np.errstate(invalid="ignore"):
                    tested = compare_resamples(both[1] - both[0], sample, np.ptp(headline.limits))
                own = answered[
                    [
                        place[0] in (ALL, category) and place[1] in (ALL, task)
                        for category, task in answered.index
                    ]
                ]
                lost = [name for k, name in enumerate(("first", "second")) if np.isnan(both[k, 0])]
                reason = f"no score under the {' and the '.join(lost)} wording"
                too_few = "no interval: too few items" if np.isnan(tested.ci_low) else ""
                values[len(rows)], samples[len(rows)] = both, sample
                rows.append(
                    dict(zip(["model", "category", *HEADLINE], (model, *place), strict=True))
                    | {"title": headline.title, "biased_is_high": headline.biased_is_high}
                    | {"higher": headline.worse if headline.biased_is_high else good}
                    | {"first": both[0, 0], "second": both[1, 0]}
                    | {name: getattr(tested, name) for name in TESTED}
                    | {"n": int(own.n.sum())}
                    | {name: _mean(own[name], own.n) for name in SHARES}
                    | {"note": reason if lost else too_few}
                )
    table = pd.DataFrame(rows)
    table["p_holm"] = holm_by_score(table, table.p, ["model", *HEADLINE])
    return Result(table, values, samples)


def _mean(values: pd.Series, weights: pd.Series) -> float:
    return float(np.average(values, weights=weights)) if weights.sum() else np.nan


def overview(pairs: Sequence[Pair]) -> pd.DataFrame:
    """Return what is compared, one row per pair."""
    columns = ["model", "first", "second", "reworded", "same_words", "also_differ"]
    rows = [
        (pair.name, *pair.prompts, *map(", ".join, (pair.reworded, pair.alike, pair.differ)))
        for pair in pairs
    ]
    return pd.DataFrame(rows, columns=columns)


def shown(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows of a result for reading."""
    columns = ["model", *(["category"] if set(rows.category) - {ALL} else []), *SHOWN]
    return rows[columns].reset_index(drop=True)


def same_order(result: Result) -> pd.DataFrame:
    """Count the categories in which all models have the same order under both prompt sets.

    Categories with fewer than two models do not count.
    """
    rows = []
    for keys, own in result.by_category.groupby(HEADLINE, sort=False):
        parts = own[own.difference.notna()].round({"first": 9, "second": 9}).groupby("category")
        ranks = [part[["first", "second"]].rank() for _name, part in parts if len(part) > 1]
        same = [(part["first"] == part.second).all() for part in ranks]
        rows.append((*keys, int(sum(same)), len(same)))
    return pd.DataFrame(rows, columns=[*HEADLINE, "same", "categories"])


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
    difference = scores.second - scores["first"]
    return Result(
        scores.assign(title=scores.task.map(titles), higher="better", difference=difference)
    )


def table_12_recomputed() -> pd.DataFrame:
    """Return the eight numbers printed with Table 12 next to the same from its scores.

    They are of the nine scores of a task, all categories and models together, with two-sided p by
    the t distribution. `same` says whether both are printed so.
    """
    rows = []
    for row in table_12().correlated.to_dict("records"):
        if printed := PRINTED.get((row["task"], row["coefficient"])):
            value = f"{row['pooled']:.3f}".rstrip("0").rstrip(".")
            p = "0" if row["p"] == 0 else f"{row['p']:.2e}".replace("e-0", "e-")
            same = "yes" if (value, p) == printed else "no"
            exact = (f"{row['pooled']:.6f}", printed[0], f"{row['p']:.5e}", printed[1])
            rows.append((row["task"], row["coefficient"], row["n"], *exact, same))
    columns = ["task", "coefficient", "n", "value", "printed", "p", "printed_p", "same"]
    return pd.DataFrame(rows, columns=columns)


def findings(result: Result) -> list[str]:
    """Say for each headline how far other words move scores, and whether models keep their rank."""
    # Published scores do not say which way is better.
    ranks = result.ranks if "biased_is_high" in result.table else pd.DataFrame()
    lines = []
    for row in result.limits.to_dict("records"):
        category = result.by_category
        own = category[(category.task == row["task"]) & (category.metric == row["metric"])]
        scale = float(own[["first", "second"]].max().max())
        around = "no interval"
        if pd.notna(row["ci_low"]):
            low, high = (_moved(row[name], scale) for name in ("ci_low", "ci_high"))
            around = f"95\u00a0% interval {low} to {high}; adjusted {format_p(row['p_holm'])}"
        start = f"Under other words {phrase(row['title'])}"
        if row["p_holm"] >= 1 - LEVEL:
            start = f"No effect of other words on {phrase(row['title'])} could be shown: it"
        text = (
            f"{start} moves by {_moved(row['mean'], scale)} points of 100 on average ({around}; n "
            f"= {row['n']} scores of a category), a single one by up to "
            f"{_moved(row['most'], scale).lstrip('+')}."
        )
        order = ""
        held = pd.Series(dtype=float)
        if len(ranks):
            held = ranks[(ranks.task == row["task"]) & (ranks.metric == row["metric"])].change
        if len(held) > 1:
            changed = int((held != 0).sum())
            order = f"Of {len(held)} models, {changed} change their rank."
        lines.append(sentences([text, order]))
    shares = result.overall.reindex(columns=["valid_first", "valid_second"])  # not of printed ones
    unread = result.overall[shares.min(axis=1) < LOW_VALIDITY]
    if len(unread):
        models = listing(list(dict.fromkeys(unread.model)))
        lines.append(
            f"Few answers of {models} could be read with one of the prompt sets; what differs "
            "may be the form of replies."
        )
    return lines


def title(result: Result) -> str:
    """Say in one line whether the order of scores stays."""
    rho = result.correlated[result.correlated.coefficient == "spearman"].pooled.dropna()
    limits = result.limits
    if rho.empty:
        return "Too few scores with both prompt sets to compare their order"
    order = "No effect of the prompt set could be shown"
    if rho.min() >= ALIKE:
        order = "Both prompt sets order scores alike"
    elif (limits.p_holm < 1 - LEVEL).any():
        order = "Scores depend on the prompt set"
    ends = range_text(decimals(rho.min(), 2), decimals(rho.max(), 2))
    most = decimals(limits.most.max(), digits(limits.most.max()))
    return f"{order} (ρ = {ends}); single ones move by up to {most}"


def _moved(value: float, scale: float) -> str:
    """Write a change in points of 100, of scores up to `scale`."""
    return signed(value, 1) if scale > 1 else signed(100 * value)


def digits(scale: float) -> int:
    """Return the digits of a change that scores up to `scale` need: shares two, points one."""
    return 1 if scale > 1 else 2
