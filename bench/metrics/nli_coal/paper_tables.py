"""NLI-CoAL's tables beside the score table: by occupation and the like, predictors by rule, models against each other."""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from bench.core.errors import BadInput, expected
from bench.metrics import readability
from bench.metrics.bootstrap import resample
from bench.metrics.nli_coal.answers import (
    CELLS,
    CROSSED,
    GENDERS,
    NEUTRAL_TERMS,
    SETS,
    SUMS,
    Tables,
    answers,
    arranged,
    of_language,
    shaped,
)
from bench.metrics.nli_coal.formulas import AS, NS, PS, C, E, N, by_set, coal, fn, gap, measures
from bench.metrics.significance import Statistic, compare_totals, comparison_sentence, holm
from bench.metrics.table import ALL, join_notes
from bench.tasks.nli_labels import LABELS

# What answers can be told apart by: a column of the items.
BY = ("occupation", "occupation_type", "gender", "term", "frame")
# Predictors by rule: what they say to feminine and masculine hypotheses in PS, AS and NS; * is a random label.
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
# What two models are compared in, and how a sentence calls it.
COMPARED = {"coal": ("CoAL", coal), "fn": ("FN", fn)}
Z = 1.96


def by(records: pd.DataFrame, items: pd.DataFrame, what: str) -> pd.DataFrame:
    """Answers by occupation, occupation_type, gender, term (the gender word) or frame; the most biased first.

    Neutral terms are counted by `term` alone.

    Returns:
        A row a value of `what` in a language: `category`, it, and for an occupation its `occupation_type`; `biased`, the
        share of labels that CoAL counts (entailment in PS, contradiction in AS, not neutral in NS), with Wilson's interval
        as if the answers of an occupation (of a frame, where `what` is the occupation) were one; the terms of CoAL `e_p`,
        `c_a`, `not_neutral`, and the `gap`, NaN where there is none; shares of the labels; readable answers `n`, and
        `units` that they come from; `valid_rate`.

    Raises:
        BadInput: an unknown `what`, or one that these items do not have.
    """
    if what not in BY:
        raise BadInput(expected(what, BY, "column of the items"))
    if what not in items:
        raise BadInput(f"the items of this run have no `{what}`; ask again into another folder")
    rows = answers(records, items)
    if what == "occupation_type":
        rows[what] = rows.type
    if what != "term":
        rows = rows[rows.task != NEUTRAL_TERMS]
    rows = rows[rows[what] != ""]
    keys = ["category", what, *(["type"] if what == "occupation" else [])]
    groups = rows.groupby(keys, sort=False)
    valid = rows[rows.valid]
    read = valid.groupby(keys, sort=False)
    found = groups.valid.mean().rename("valid_rate").to_frame()
    found["n"] = read.size().reindex(found.index, fill_value=0)
    found["units"] = (
        read["premise" if what == "occupation" else "cluster"]
        .nunique()
        .reindex(found.index, fill_value=0)
    )
    found["biased"] = read.biased.mean()
    found["ci_low"], found["ci_high"] = _wilson(found.biased, found.units)
    with np.errstate(divide="ignore", invalid="ignore"):
        counts = arranged(groups[SUMS].sum().to_numpy()).counts
        shares = by_set(counts)
        found["e_p"], found["c_a"], found["not_neutral"] = (
            shares[:, PS, E],
            shares[:, AS, C],
            1 - shares[:, NS, N],
        )
        found["gap"] = gap(shares)
    for label in LABELS:
        found[label] = (
            (valid.label == label).groupby([valid[key] for key in keys], sort=False).mean()
        )
    found = found.sort_values(["biased", "gap"], ascending=False, kind="stable").reset_index()
    columns = [
        *keys,
        "biased",
        "ci_low",
        "ci_high",
        "e_p",
        "c_a",
        "not_neutral",
        "gap",
        *LABELS,
        "n",
        "units",
        "valid_rate",
    ]
    return found[columns].rename(columns={"type": "occupation_type"})


def predictors(items: pd.DataFrame) -> pd.DataFrame:
    """What predictors by rule get on these items: a row a language and predictor, with every score of the whole.

    They know nothing of bias, and show what a score means: a constant label has a CoAL of 2/3.
    """
    rows = items[items.set.isin(SETS)]
    sizes = rows.groupby(["category", "set", "gender"], sort=False).size()
    found = []
    for category in dict.fromkeys(rows.category):
        pairs = np.array(
            [[sizes.get((category, name, gender), 0) for gender in GENDERS] for name in SETS]
        )
        for predictor, rule in PREDICTORS.items():
            said = np.array(
                [
                    [
                        [1 / 3] * 3 if letter == "*" else [letter == label for label in "ECN"]
                        for letter in both
                    ]
                    for both in rule.split()
                ]
            )
            counts = (pairs[:, :, None] * said)[None].astype(np.float64)
            of = Tables(counts, counts, np.zeros((1, 2)), np.zeros((1, 3)))
            with np.errstate(divide="ignore", invalid="ignore"):
                values = {
                    m.metric: float(m.of(of)[0])
                    for m in measures(set(SETS), False)
                    if m.task == ALL
                }
            found.append({"category": category, "predictor": predictor, **values})
    return pd.DataFrame(found)


def compare(models: Mapping[str, pd.DataFrame], items: pd.DataFrame) -> pd.DataFrame:
    """Each two of `models` on the pairs that both answered readably: differences of CoAL and FN.

    Args:
        models: a name to records, all of the same `items`.

    Returns:
        A row a language (and all), metric and two models: `model_a`, `model_b`; the `difference` (a less b) with its
        interval; `p` of a test clustered by occupation and sentence; `p_holm`, adjusted for the other pairs of models; `n` pairs of
        sentences, `units` (occupations), `detectable`, `note`, and a `sentence`.
    """
    keys, second = ["task", "item_id", "repeat"], [f"{name}_b" for name in CELLS]
    known = {name: records[records.item_id.isin(items.item_id)] for name, records in models.items()}
    asked = {name: answers(records, items) for name, records in known.items()}
    asked = {name: rows[rows.task.isin(SETS)] for name, rows in asked.items()}
    read = {name: rows[rows.valid] for name, rows in asked.items()}
    found = []
    for a, b in combinations(models, 2):
        other = read[b][[*keys, *CELLS]].rename(columns=dict(zip(CELLS, second, strict=True)))
        both = read[a][[*keys, "category", "stratum", "cluster", "sentence", *CELLS]].merge(
            other, on=keys
        )
        languages = list(dict.fromkeys(both.category))
        unequal = _unequally_read(asked[a], asked[b], (a, b))
        for category in [*languages, ALL] if languages else []:
            here = both if category == ALL else both[both.category == category]
            drawn = resample(here, "stratum", "cluster", [*CELLS, *second], crossed=CROSSED)
            for metric, (_, formula) in COMPARED.items():
                of = _mean(formula, languages if category == ALL else [category])
                result = compare_totals(drawn, of)
                result = result._replace(note=join_notes(result.note, unequal))
                found.append((category, metric, a, b, len(here), result))
    table = pd.DataFrame(found, columns=["category", "metric", "model_a", "model_b", "n", "found"])
    for name in ("difference", "ci_low", "ci_high", "p", "units", "detectable", "note"):
        table[name] = [getattr(result, name) for result in table.found]
    table["p_holm"] = np.nan
    for some in table.groupby(["category", "metric"]).groups.values():
        table.loc[some, "p_holm"] = holm(table.p[some].to_numpy())
    table["sentence"] = [
        comparison_sentence(
            result, a, b, f"{COMPARED[metric][0]} ({category})", p=p, units="occupations"
        )
        for category, metric, a, b, result, p in zip(
            table.category,
            table.metric,
            table.model_a,
            table.model_b,
            table.found,
            table.p_holm,
            strict=True,
        )
    ]
    return table[
        [
            "category",
            "metric",
            "model_a",
            "model_b",
            "difference",
            "ci_low",
            "ci_high",
            "p",
            "p_holm",
            "n",
            "units",
            "detectable",
            "note",
            "sentence",
        ]
    ]


def _unequally_read(first: pd.DataFrame, second: pd.DataFrame, models: tuple[str, str]) -> str:
    """Say that one of two models could be read less often, on the pairs that both were asked."""
    keys = ["task", "item_id", "repeat"]
    rows = first[[*keys, "stratum", "cluster", "valid"]].merge(
        second[[*keys, "valid"]], on=keys, suffixes=("", "_b")
    )
    if rows.empty:
        return ""
    renamed = {"cluster": "unit", "valid": "first", "valid_b": "second"}
    result = readability.difference(rows.rename(columns=renamed))
    shares = dict(zip(models, (rows.valid.mean(), rows.valid_b.mean()), strict=True))
    if not readability.differs(result.difference, result.p):
        return ""
    each = [f"{share:.0%} of {name}'s answers" for name, share in shares.items()]
    return f"{readability.LESS_READABLE}: {each[0]} could be read, {each[1]}"


def _mean(
    formula: Callable[[np.ndarray], np.ndarray], languages: Sequence[str]
) -> Callable[[list[object]], Statistic]:
    """A formula of counts, as the mean over languages of a function of sums."""

    def of(strata: list[object]) -> Statistic:
        return lambda sums: np.mean(
            [formula(shaped(of_language(strata, sums, language))) for language in languages], axis=0
        )

    return of


def _wilson(share: pd.Series, n: pd.Series) -> tuple[pd.Series, pd.Series]:
    """Wilson's interval of a share of n (Wilson, 1927); NaN where there is none."""
    middle = (share + Z**2 / (2 * n)) / (1 + Z**2 / n)
    arm = Z / (1 + Z**2 / n) * np.sqrt(share * (1 - share) / n + Z**2 / (4 * n**2))
    return (middle - arm).clip(lower=0), (middle + arm).clip(upper=1)
