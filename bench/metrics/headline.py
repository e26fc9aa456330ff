"""Findings: a sentence a headline number, made by rule from its row: what, how much, how sure, on what."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from bench.benchmarks import module
from bench.core.i18n import LANGUAGES, N_, _, language, note, sentences
from bench.data import dataset
from bench.data.dataset import language_name
from bench.metrics.table import ALL, Headline

# Below this share of readable answers, a score says more about the format of replies than about bias.
LOW_VALIDITY = 0.9
# A score over tasks, where models were not asked the same ones.
COMMON_TITLE = N_("Tasks that all models were asked")
COMMON_FOUND = N_("scored {value} of 100 over the tasks that all models here were asked")
# So many categories that sets call differently are told one by one.
TOLD = 3


def findings(scores: pd.DataFrame, benchmark: str) -> pd.DataFrame:
    """The headline rows of a table of several models (column `model`), with a `sentence` each."""
    rows = []
    for headline in headlines(scores, benchmark):
        some = headline_rows(scores, headline)
        some = some[some.category == ALL]
        rows += [
            {
                **row,
                "title": headline.title,
                "sentence": sentences(
                    [
                        sentence(headline, row, _telling(scores, headline, row)),
                        _audited(scores, headline, row),
                    ]
                ),
            }
            for row in some.to_dict("records")
        ]
    return pd.DataFrame(rows, columns=[*scores.columns, "title", "sentence"])


def headlines(scores: pd.DataFrame, benchmark: str) -> list[Headline]:
    """The headline numbers of a benchmark; over the tasks that all models were asked, where these differ.

    Args:
        scores: score tables with a column `model`.
    """
    every: tuple[Headline, ...] = module("metrics", benchmark).HEADLINES
    if not any(one.common in set(scores.metric) for one in every if one.common):
        return list(every)
    asked = scores[(scores.category == ALL) & (scores.task != ALL) & scores.valid_rate.notna()]
    tasks = set(asked.groupby("model").task.agg(frozenset))
    if len(tasks) < 2:
        return list(every)
    return [
        one._replace(metric=one.common, title=COMMON_TITLE, found=COMMON_FOUND)
        if one.common in set(scores.metric)
        else one
        for one in every
    ]


def _audited(scores: pd.DataFrame, headline: Headline, row: dict[Any, Any]) -> str:
    """The score by audited labels, in a sentence, where released labels are at fault; else ""."""
    here = scores[
        (scores.model == row["model"]) & (scores.category == ALL) & (scores.task == row["task"])
    ]
    for other in here[here.metric == f"{row['metric']}_audited"].to_dict("records"):
        if not math.isnan(other["score"]):
            return _(
                "By labels that were audited it is {value} (n = {n}).",
                value=_number(headline, float(other["score"])),
                n=f"{int(other['n']):,}",
            )
    return ""


def _telling(scores: pd.DataFrame, headline: Headline, row: dict[Any, Any]) -> dict[Any, Any]:
    """The row of a number that tells a model from the one who gets the baseline; empty where none does."""
    here = scores[
        (scores.model == row["model"]) & (scores.category == ALL) & (scores.preset == row["preset"])
    ]
    for task, metric in headline.also:
        for other in here[(here.task == task) & (here.metric == metric)].to_dict("records"):
            if other["ci_low"] > other["baseline"] or other["ci_high"] < other["baseline"]:
                return other
    return {}


def listing(parts: Sequence[str]) -> str:
    """Several things in a sentence: a, b and c."""
    return _(" and ").join(filter(None, (_(", ").join(parts[:-1]), *parts[-1:])))


def range_text(low: str, high: str) -> str:
    """From one number to another; one where both are the same."""
    return low if low == high else _("{low} to {high}", low=low, high=high)


def top_findings(found: pd.DataFrame, benchmark: str) -> pd.DataFrame:
    """Of `findings`, for each headline the one on the model that shows most bias; simulated respondents only among themselves."""
    rows = []
    real = found[~found.model.str.startswith("simulated:")]
    for headline in headlines(found, benchmark):
        among = real if len(real) else found
        some = among[(among.task == headline.task) & (among.metric == headline.metric)]
        defined = some[some.score.notna()]
        # Who gives the same answer to everything shows no bias, however large the score.
        informed = defined[~defined.get("by_habit", pd.Series(False, defined.index)).astype(bool)]
        defined = informed if len(informed) else defined
        if not defined.empty:
            rows.append(
                defined.score.idxmax() if headline.biased_is_high else defined.score.idxmin()
            )
        else:
            rows += list(some.index[:1])
    return found.loc[rows]


def headline_rows(scores: pd.DataFrame, headline: Headline) -> pd.DataFrame:
    """Rows of `headline` under the table's first preset, which is the one asked for (official ones stand behind).

    Tables that were kept before scores had bounds and habits get empty ones.
    """
    first = scores.preset.iloc[0]
    empty: dict[str, Any] = {
        "bound_low": math.nan,
        "bound_high": math.nan,
        "baseline_of": "",
        "by_habit": False,
    }
    scores = scores.assign(**{name: value for name, value in empty.items() if name not in scores})
    return scores[
        (scores.task == headline.task)
        & (scores.metric == headline.metric)
        & (scores.preset == first)
    ]


def sentence(
    headline: Headline, row: dict[Any, Any], telling: Mapping[Any, Any] | None = None
) -> str:
    """One finding in words; never stronger than the interval allows.

    Args:
        telling: the row of another number, which tells the model from the one who gets the baseline.
    """
    if math.isnan(float(row["score"])):
        what = re.split("[:：]", short_title(headline))[0].lower()
        return _(
            "{model}: {what} is undefined: {why}.",
            model=row["model"],
            what=what,
            why=note(row["note"]),
        )
    score, low, high, baseline = (
        float(row[name]) for name in ("score", "ci_low", "ci_high", "baseline")
    )
    around = [
        _(
            "95\u00a0% interval {low} to {high}",
            low=_bare(headline, low),
            high=_bare(headline, high),
        )
        if not math.isnan(low)
        else _("no interval: too few items in a category")
    ]
    who = _(row.get("baseline_of") or headline.baseline)
    if not math.isnan(baseline):
        around.append(_("{who} {value}", who=who, value=_bare(headline, baseline)))
    around.append(_("n = {n}", n=f"{int(row['n']):,}"))
    found = _(headline.found, value=_number(headline, score))
    text = _(
        "{model} {found} ({around}).", model=row["model"], found=found, around=_("; ").join(around)
    )
    told = [text]
    if not math.isnan(baseline) and low <= baseline <= high:
        if telling:
            other = _(
                "{who} would get as much, but the model is none: its {metric} is {value} "
                "(95\u00a0% interval {low} to {high}; {who} {baseline}).",
                who=who,
                metric=telling["metric"],
                value=f"{telling['score']:.2f}",
                low=f"{telling['ci_low']:.2f}",
                high=f"{telling['ci_high']:.2f}",
                baseline=f"{telling['baseline']:.2f}",
            )
            told.append(other[:1].upper() + other[1:])
        else:
            told.append(_("This cannot be told from {who}.", who=who))
    told.append(unread(headline, row))
    if row["note"]:
        told.append(_("Note: {note}.", note=note(row["note"])))
    return sentences(told)


def unread(headline: Headline, row: Mapping[Any, Any]) -> str:
    """How many answers could be read, and what the score could have been otherwise; "" where enough could."""
    share = f"{float(row['valid_rate']):.0%}"
    if not math.isnan(float(row.get("bound_low", math.nan))):
        ends = (_bare(headline, float(row[name])) for name in ("bound_low", "bound_high"))
        between = _("{low} to {high}", **dict(zip(("low", "high"), ends, strict=True)))
        return _(
            "Only {share} of its answers could be read: depending on the others, this would be {between}.",
            share=share,
            between=between,
        )
    if float(row["valid_rate"]) < LOW_VALIDITY:
        return _("Only {share} of its answers could be read.", share=share)
    return ""


def short_title(headline: Headline) -> str:
    """A headline's title in the language that is spoken, without what stands in brackets."""
    return without_brackets(headline.title)


def without_brackets(title: str) -> str:
    """The same of a title that stands in a table."""
    return re.split(r" \(|（", _(title))[0]


def interval(headline: Headline, row: dict[Any, Any]) -> str:
    """The interval as it stands beside a score, or "" where there is none."""
    low, high = float(row["ci_low"]), float(row["ci_high"])
    return "" if math.isnan(low) else f"{_bare(headline, low)}–{_bare(headline, high)}"


def number(headline: Headline, row: dict[Any, Any]) -> str:
    """The score in the headline's unit, or a dash where it is undefined."""
    score = float(row["score"])
    return "—" if math.isnan(score) else _number(headline, score)


def disagreements(scores: pd.DataFrame) -> pd.DataFrame:
    """Rows in which the released code's number differs from ours, side by side; aggregates alone."""
    keys = ["model", "category", "task", "metric"]
    official = scores[(scores.preset == "official") & (scores.category == ALL)]
    ours = scores[scores.preset == scores.preset.iloc[0]]
    both = official.merge(ours[[*keys, "score"]], on=keys, how="left", suffixes=("_official", ""))
    missing = both.score.isna() & both.score_official.notna() & (both.note == "")
    both.loc[missing, "note"] = "a number of the released code alone"
    return (
        both[[*keys, "score", "score_official", "note"]]
        if scores.preset.iloc[0] != "official"
        else both.iloc[:0]
    )


def _number(headline: Headline, value: float) -> str:
    bare = _bare(headline, value)
    return _("{value}\u00a0%", value=bare) if headline.share else bare


def _bare(headline: Headline, value: float) -> str:
    if headline.share:
        return f"{100 * value:.0f}"
    return f"{value:.1f}" if headline.limits[1] > 1 else f"{value:.2f}"


def prompt_language_warning(about: Mapping[str, Any]) -> str:
    """That a run's wording is not in the language of its data, in a sentence; "" where it is, or nobody knows."""
    known = about.get("wording", {}).get("foreign")
    found: list[Any] = (
        [known.get(name) for name in ("data", "wording")] if isinstance(known, Mapping) else []
    )
    # A run may come from anywhere.
    if not found or not all(isinstance(codes, list) and codes for codes in found):
        return ""
    theirs, ours = (listing([language_name(str(code)) for code in codes]) for codes in found)
    return _(
        "The data {name} are in {theirs}, but the wording {wording}, in which models are asked about them, is in {ours}; a file "
        "prompts.toml beside dataset.toml, or --prompts FILE, asks in their own language.",
        name=about["data"]["name"],
        theirs=theirs,
        ours=ours,
        wording=about["asked"]["prompts"],
    )


def warnings(abouts: Sequence[dict[Any, Any]]) -> list[str]:
    """What a reader has to know before the first number: demonstration models, simulated respondents, sample data, foreign wording."""
    found = []
    kinds = {str(about["model"]["kind"]).partition(" (")[0] for about in abouts}
    if "demonstration model" in kinds:
        found.append(
            _(
                "Models called tiny are demonstration models: this package trained them on its own samples, with a bias "
                "that is set. They show what the pages look like, and say nothing about real models."
            )
        )
    if "simulated respondent" in kinds:
        found.append(
            _(
                "Models called simulated are no models: they answer by dice of known bias, as a yardstick for the measures."
            )
        )
    samples = {
        module("data", about["benchmark"]).TITLE: None
        for about in abouts
        if "samples" in str(about["data"]["version"])
    }
    if samples:
        found.append(
            _(
                "The data for {names} are this package's own samples in the benchmark's format. These are not the benchmark's "
                "items, and the numbers are not results on the benchmark; “bench fetch” brings the released data.",
                names=_(", ").join(samples),
            )
        )
    found += dict.fromkeys(filter(None, map(prompt_language_warning, abouts)))
    return found + category_name_warnings((about["benchmark"], about["data"]) for about in abouts)


def category_name_warnings(sets: Iterable[tuple[str, Mapping[str, Any]]]) -> list[str]:
    """That data sets which are shown together do not call their categories alike: a sentence a category, of the first few.

    Args:
        sets: the benchmark of each, and what `run.json` says of it.
    """
    apart = dataset.differing_names(sets)
    told = [
        _(
            "Category {category} of {benchmark} is called {first} in the data {one}, and {second} in the data {other}; here it is called {shown}.",
            category=found.category,
            benchmark=module("data", found.benchmark).TITLE,
            one=found.sets[0],
            other=found.sets[1],
            first=_both(*found.names[0]),
            second=_both(*found.names[1]),
            shown=_both(
                dataset.native_name(found.benchmark, found.category),
                dataset.english_name(found.benchmark, found.category),
            ),
        )
        for found in apart[:TOLD]
    ]
    more = len(apart) - len(told)
    return [*told, _("So are {n} more categories.", n=more)] if more > 0 else told


def _both(own: str, english: str) -> str:
    first, second = (english, own) if language() == LANGUAGES[0] else (own, english)
    return _("{name} ({own})", name=first, own=second) if own else english
