"""NLI-CoAL's further tables: by occupation and the like, predictors by rule, pairs of models."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations

import numpy as np
import pandas as pd

from bench.core.errors import BadInput, expected
from bench.core.numbers import decimals
from bench.metrics.bootstrap import resample
from bench.metrics.engine import Sums
from bench.metrics.nli_coal.answers import (
    CELLS,
    CROSSED,
    GENDERS,
    NEUTRAL_TERMS,
    SETS,
    SUMS,
    answers,
    of_language,
    shaped,
)
from bench.metrics.nli_coal.formulas import AS, NS, PS, WHOLE, C, E, N, by_set, coal, fn, gap
from bench.metrics.significance import (
    LESS_READABLE,
    Statistic,
    compare_totals,
    comparison_sentence,
    differs,
    holm,
    readable_difference,
)
from bench.metrics.table import ALL, join_notes
from bench.tasks.nli_labels import LABELS

# Columns of the items by which answers can be grouped.
BY = ("occupation", "occupation_type", "gender", "term", "frame")
# Predictors by rule: what they say to feminine and masculine hypotheses in PS, AS and NS; * is a
# random label.
PREDICTORS = {
    "always neutral": "NN NN NN",
    "always entailment": "EE EE EE",
    "always contradiction": "CC CC CC",
    "man: entailment, woman: contradiction": "CE CE CE",
    "woman: entailment, man: contradiction": "EC EC EC",
    "random": "** ** **",
    "the stereotype, neutral without one": "EE CC NN",
    "the stereotype, entailment without one": "EE CC EE",
    "its opposite, neutral without one": "CC EE NN",
}
LETTERS = {"E": (1, 0, 0), "C": (0, 1, 0), "N": (0, 0, 1), "*": (1 / 3, 1 / 3, 1 / 3)}
# What two models are compared in, and how a sentence calls it.
COMPARED = {"coal": ("CoAL", coal), "fn": ("FN", fn)}
ANSWER = ["task", "item_id", "repeat"]
Z = 1.96


def by(records: pd.DataFrame, items: pd.DataFrame, column: str) -> pd.DataFrame:
    """Group answers by a column of `BY`, the most biased group first.

    Neutral terms are counted by `term` alone.

    Returns:
        One row per value of `column` in a language: `category`, the value, and for an occupation
            its
        `occupation_type`; `biased`, the share of labels that CoAL counts (entailment in PS,
        contradiction in AS, not neutral in NS), with Wilson's interval as if the answers of an
        occupation (of a frame, where `column` is the occupation) were one; the terms of CoAL `e_p`,
        `c_a`, `not_neutral`, and the `gap`, NaN where there is none; shares of the labels; readable
        answers `n`, and `units` that they come from; `valid_rate`.

    Raises:
        BadInput: an unknown column, or one that these items do not have.
    """
    if column not in BY:
        raise BadInput(expected(column, BY, "column of the items"))
    if column not in items:
        raise BadInput(f"the items of this run have no `{column}`; ask again into another folder")
    rows = answers(records, items)
    if column == "occupation_type":
        rows[column] = rows.type
    if column != "term":
        rows = rows[rows.task != NEUTRAL_TERMS]
    rows = rows[rows[column] != ""]
    rows = rows.assign(**{label: rows.label == label for label in LABELS})
    keys = ["category", column, *(["type"] if column == "occupation" else [])]
    groups, readable = (part.groupby(keys, sort=False) for part in (rows, rows[rows.valid]))
    table = groups.valid.mean().rename("valid_rate").to_frame()
    units = readable["premise" if column == "occupation" else "cluster"].nunique()
    table["n"] = readable.size().reindex(table.index, fill_value=0)
    table["units"] = units.reindex(table.index, fill_value=0)
    table[["biased", *LABELS]] = readable[["biased", *LABELS]].mean()
    table["ci_low"], table["ci_high"] = _wilson(table.biased, table.units)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = by_set(shaped(groups[CELLS].sum().to_numpy()))
        table["e_p"], table["c_a"] = shares[:, PS, E], shares[:, AS, C]
        table["not_neutral"], table["gap"] = 1 - shares[:, NS, N], gap(shares)
    table = table.sort_values(["biased", "gap"], ascending=False, kind="stable").reset_index()
    shown = ["biased", "ci_low", "ci_high", "e_p", "c_a", "not_neutral", "gap"]
    table = table[[*keys, *shown, *LABELS, "n", "units", "valid_rate"]]
    return table.rename(columns={"type": "occupation_type"})


def _wilson(share: pd.Series, n: pd.Series) -> tuple[pd.Series, pd.Series]:
    """Compute Wilson's interval of a share of n (Wilson, 1927); NaN where there is none."""
    middle = (share + Z**2 / (2 * n)) / (1 + Z**2 / n)
    arm = Z / (1 + Z**2 / n) * np.sqrt(share * (1 - share) / n + Z**2 / (4 * n**2))
    return (middle - arm).clip(lower=0), (middle + arm).clip(upper=1)


def predictors(items: pd.DataFrame) -> pd.DataFrame:
    """Compute the scores of predictors by rule on these items: one row per language and predictor.

    They know nothing of bias, and show what a score means: a constant label has a CoAL of 2/3.
    """
    rows = items[items.set.isin(SETS)]
    sizes = rows.groupby(["category", "set", "gender"], sort=False).size()
    table = []
    for category in dict.fromkeys(rows.category):
        cells = [[sizes.get((category, name, gender), 0) for gender in GENDERS] for name in SETS]
        for predictor, rule in PREDICTORS.items():
            labels = [[LETTERS[letter] for letter in both] for both in rule.split()]
            counts = np.zeros((1, 1, len(SUMS)))
            counts[..., : len(CELLS)] = (np.array(cells)[:, :, None] * np.array(labels)).ravel()
            sums = Sums(SUMS, counts, {(category, ALL): 0})
            with np.errstate(divide="ignore", invalid="ignore"):
                values = {metric.name: float(metric.values(sums)[0]) for metric in WHOLE}
            table.append({"category": category, "predictor": predictor, **values})
    return pd.DataFrame(table)


def compare(models: Mapping[str, pd.DataFrame], items: pd.DataFrame) -> pd.DataFrame:
    """Compare each two models in CoAL and FN on the pairs that both answered readably.

    Args:
        models: names to records, all of the same `items`.

    Returns:
        One row per language (and all), metric and pair of models: `model_a`, `model_b`; the
        `difference` (a less b) with its interval; `p` of a test clustered by occupation and
        sentence; `p_holm`, adjusted for the other pairs of models; `n` pairs of sentences, `units`
        (occupations), `detectable`, `note`, and a `sentence`.
    """
    second = [f"{name}_b" for name in CELLS]
    known = {name: records[records.item_id.isin(items.item_id)] for name, records in models.items()}
    asked = {name: answers(records, items) for name, records in known.items()}
    asked = {name: answered[answered.task.isin(SETS)] for name, answered in asked.items()}
    read = {name: answered[answered.valid] for name, answered in asked.items()}
    rows: list[dict[str, object]] = []
    words: list[Callable[..., str]] = []
    for a, b in combinations(models, 2):
        other = read[b][[*ANSWER, *CELLS]].rename(columns=dict(zip(CELLS, second, strict=True)))
        own = [*ANSWER, "category", "stratum", "cluster", "sentence", *CELLS]
        both = read[a][own].merge(other, on=ANSWER)
        languages = list(dict.fromkeys(both.category))
        unequal = _unequally_read(asked[a], asked[b], (a, b))
        for category in [*languages, ALL] if languages else []:
            part = both if category == ALL else both[both.category == category]
            drawn = resample(part, "stratum", "cluster", [*CELLS, *second], crossed=CROSSED)
            for metric, (name, formula) in COMPARED.items():
                mean = _mean(formula, languages if category == ALL else [category])
                result = compare_totals(drawn, mean)
                result = result._replace(note=join_notes(result.note, unequal))
                place = {"category": category, "metric": metric, "model_a": a, "model_b": b}
                title = f"{name} ({category})"
                rows.append(place | result._asdict() | {"n": len(part), "p_holm": math.nan})
                words.append(partial(comparison_sentence, result, a, b, title, units="occupations"))
    numbers = ["difference", "ci_low", "ci_high", "p", "p_holm", "n", "units", "detectable"]
    columns = ["category", "metric", "model_a", "model_b", *numbers, "note"]
    table = pd.DataFrame(rows, columns=columns)
    for index in table.groupby(["category", "metric"]).groups.values():
        table.loc[index, "p_holm"] = holm(table.p[index].to_numpy())
    sentences = [put(p=p) for put, p in zip(words, table.p_holm, strict=True)]
    return table.assign(sentence=sentences)


def _unequally_read(first: pd.DataFrame, second: pd.DataFrame, models: tuple[str, str]) -> str:
    """Say that one of two models could be read less often, on the pairs that both were asked."""
    rows = first[[*ANSWER, "stratum", "cluster", "valid"]].merge(
        second[[*ANSWER, "valid"]], on=ANSWER, suffixes=("", "_b")
    )
    if rows.empty:
        return ""
    rows = rows.rename(columns={"cluster": "unit", "valid": "first", "valid_b": "second"})
    result = readable_difference(rows)
    if not differs(result.difference, result.p):
        return ""
    shares = [f"{decimals(100 * share)}%" for share in (rows["first"].mean(), rows.second.mean())]
    return (
        f"{LESS_READABLE}: {shares[0]} of {models[0]}'s answers could be read, "
        f"{shares[1]} of {models[1]}'s answers"
    )


def _mean(
    formula: Callable[[np.ndarray], np.ndarray], languages: Sequence[str]
) -> Callable[[list[object]], Statistic]:
    """Make of a formula of counts the mean over languages of a function of sums."""
    return lambda strata: (
        lambda sums: np.mean(
            [formula(shaped(of_language(strata, sums, language))) for language in languages], axis=0
        )
    )
