"""How much the texts of a data set say the same: ROUGE-L between them, near-duplicates, exact duplicates, coverage.

ROUGE-L is the F measure of the longest common subsequence, 2 LCS / (length + length) (Lin, Text Summarization Branches Out,
2004, with beta = 1). Its tokens are characters where a text has Chinese or Japanese ones, else words. Both papers report
it, McBE's over all pairs of default sentences and CBBQ's within and across categories; neither says what its tokens are.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from rapidfuzz import process
from rapidfuzz.distance import Indel

from bench.core.errors import BadInput
from bench.metrics.bootstrap import estimate, resample
from bench.metrics.table import ALL, Card

# Of more distinct texts a sample of so many is compared, in 18 million pairs.
LARGEST = 6000
# From this ROUGE-L on, two texts are near-duplicates.
NEAR = 0.8
# Most scores lie below the first by McBE's paper, below the second by CBBQ's.
LOW, HALF = 0.2, 0.5
BINS = np.linspace(0, 1, 21)
# Chinese characters and Japanese kana.
CJK = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
WORD = re.compile(r"\w+|[^\w\s]")
SEED = 0
# Half the width of a 95 % interval, in standard errors.
_WIDTH = 1.96
CARDS = (
    Card(
        "rouge_l",
        "how much two texts share: the F measure of their longest common subsequence of characters (Chinese, Japanese) or words",
        "2 LCS(a, b) / (|a| + |b|)",
        "Lin, 2004, beta = 1; tokens ours, no paper names them",
        "0 to 1",
        "low: texts that differ",
    ),
    Card(
        "within, across",
        "mean ROUGE-L over the pairs of distinct texts of one category; of two categories in one language",
        "mean over pairs",
        "Huang and Xiong, LREC-COLING 2024, Figure 3",
        "0 to 1",
        "low",
    ),
    Card(
        "mean_to_others",
        "mean ROUGE-L of a text to all other distinct texts in its language",
        "mean over texts",
        "Lan et al., Findings of ACL 2025",
        "0 to 1",
        "low: most below 0.2, says the paper",
    ),
    Card(
        "near_duplicates",
        f"pairs of distinct texts whose ROUGE-L is {NEAR} or more",
        "count",
        "ours",
        "0 or more",
        "0",
    ),
    Card(
        "duplicates",
        "rows of which another one says the very same",
        "count",
        "ours",
        "0 or more",
        "0",
    ),
    Card(
        "nearest",
        "mean over the texts of one data set of the highest ROUGE-L to a text of another one",
        "mean of maxima",
        "ours",
        "0 to 1",
        "low: nothing taken over",
    ),
    Card(
        "kappa",
        "agreement of annotators beyond chance: Cohen's of two, Fleiss' of more",
        "(observed - chance) / (1 - chance)",
        "Cohen, 1960; Fleiss, 1971; bands by Landis and Koch, 1977",
        "-1 to 1",
        "1",
    ),
)


class Diversity(NamedTuple):
    """What the texts of a data set share.

    Attributes:
        table: a row a category, one `all` for all pairs within categories, one `across` for those between categories of a
            language: `texts` (rows), `distinct`, `compared` (those in the pairs), `pairs`, `mean`, `ci_low`, `ci_high`,
            `median`, `below_low` and `below_half` (shares of pairs), `near_duplicates`, `note`.
        between: mean ROUGE-L of each two categories of a language, a square frame; NaN where there is no pair.
        histogram: `low`, `high` (of ROUGE-L), `within`, `across`: shares of the pairs.
        each: a row a compared text: `item_id`, `category`, `text`, `mean_to_others`.
        near: near-duplicates, the nearest first: `rouge_l`, `item_a`, `item_b`, `text_a`, `text_b`.
    """

    table: pd.DataFrame
    between: pd.DataFrame
    histogram: pd.DataFrame
    each: pd.DataFrame
    near: pd.DataFrame


def tokens(text: str) -> str | list[str]:
    """What ROUGE-L compares: the characters but for white space, or the words and signs in lower case."""
    return re.sub(r"\s+", "", text) if CJK.search(text) else WORD.findall(text.lower())


def rouge_l(first: Sequence[str], second: Sequence[str]) -> np.ndarray:
    """ROUGE-L of each of the `first` texts with each of the `second`, float32 [first, second].

    It is one less rapidfuzz's normalised insertions and deletions, which are 1 - 2 LCS / (length + length).
    """
    one = [tokens(text) for text in first]
    other = one if second is first else [tokens(text) for text in second]
    # All cores; the result is the same whatever their number.
    return process.cdist(
        one, other, scorer=Indel.normalized_similarity, dtype=np.float32, workers=-1
    )


def by_each(texts: pd.DataFrame, by: str) -> pd.DataFrame:
    """The texts with a row each value of `category`, `topic` or `group`: one text may be about several groups, or about none."""
    if by != "group":
        return texts
    return (
        texts.explode("groups", ignore_index=True)
        .rename(columns={"groups": by})
        .dropna(subset=[by])
    )


def coverage(texts: pd.DataFrame, by: str) -> pd.DataFrame:
    """How many texts, distinct ones and items each value of column `by` has, by language; the most frequent first.

    Args:
        texts: as `bench.data.texts.texts` gives them.
    """
    counted = (
        by_each(texts, by)
        .groupby(by, sort=False)
        .agg(texts=("text", "size"), distinct=("text", "nunique"), items=("items", "sum"))
    )
    return counted.sort_values("texts", ascending=False, kind="stable").reset_index()


def duplicates(texts: pd.DataFrame) -> pd.DataFrame:
    """Rows that say the very same, a row a group of them: `rows`, `items` (their names, four at most), `text`."""
    groups = texts[texts.duplicated("whole", keep=False)].groupby("whole", sort=False)
    found = [(len(some), _named(list(some.item_id)), some.text.iloc[0]) for _, some in groups]
    table = pd.DataFrame(found, columns=["rows", "items", "text"])
    return table.sort_values("rows", ascending=False, kind="stable").reset_index(drop=True)


def diversity(texts: pd.DataFrame, *, largest: int = LARGEST, seed: int = SEED) -> Diversity:
    """ROUGE-L within and across categories, over pairs of distinct texts.

    A text that stands in a category several times counts once in it. Intervals are by the jackknife over texts of a mean
    over pairs (Arvesen, Annals of Mathematical Statistics, 1969): pairs share texts, so they are no independent numbers.

    Args:
        texts: as `bench.data.texts.texts` gives them.
        largest: of more distinct texts so many, drawn at random, are compared.

    Raises:
        BadInput: no texts.
    """
    if texts.empty:
        raise BadInput("diversity: there are no texts to compare")
    distinct = texts.drop_duplicates(["category", "text"]).reset_index(drop=True)
    some = distinct
    if len(distinct) > largest:
        drawn = np.random.default_rng(seed).choice(len(distinct), largest, replace=False)
        some = distinct.loc[np.sort(drawn)].reset_index(drop=True)
    values = _by_language(some)
    names = list(dict.fromkeys(distinct.category))
    codes = some.category.map(names.index).to_numpy()
    same = codes[:, None] == codes[None, :]
    within, across = _triangle(same), _triangle(~same & ~np.isnan(values))
    rows = [{"category": ALL, **_sizes(texts, distinct, within), **_summary(values, within)}]
    rows.append(
        {"category": "across", **_sizes(texts, distinct, across), **_summary(values, across)}
    )
    for k, name in enumerate(names):
        here = np.flatnonzero(codes == k)
        own, mask = (
            values[np.ix_(here, here)],
            _triangle(np.ones((len(here), len(here)), dtype=bool)),
        )
        sizes = _sizes(texts[texts.category == name], distinct[distinct.category == name], mask)
        rows.append({"category": name, **sizes, **_summary(own, mask)})
    return Diversity(
        pd.DataFrame(rows),
        _between(values, codes, names),
        _histogram(values, within, across),
        _each(some, values),
        _near(some, values, within | across),
    )


def nearest(
    first: pd.DataFrame, second: pd.DataFrame, *, largest: int = LARGEST, seed: int = SEED
) -> pd.DataFrame:
    """For each distinct text of the first data set, the one of the second in its language that shares most with it.

    Args:
        first, second: as `bench.data.texts.texts` gives them.
        largest: of more distinct texts so many, drawn at random, are compared.

    Returns:
        A row a text that has another in its language: `rouge_l`, `language`, `item_a`, `item_b`, `text_a`, `text_b`; the
        nearest first.
    """
    rows = []
    for language in dict.fromkeys(first.language):
        one, other = (
            _drawn(part[part.language == language].drop_duplicates("text"), largest, seed)
            for part in (first, second)
        )
        if one.empty or other.empty:
            continue
        values = rouge_l(list(one.text), list(other.text))
        best = values.argmax(axis=1)
        rows.append(
            pd.DataFrame(
                {
                    "rouge_l": values[np.arange(len(one)), best],
                    "language": language,
                    "item_a": one.item_id.to_numpy(),
                    "item_b": other.item_id.to_numpy()[best],
                    "text_a": one.text.to_numpy(),
                    "text_b": other.text.to_numpy()[best],
                }
            )
        )
    columns = ["rouge_l", "language", "item_a", "item_b", "text_a", "text_b"]
    found = pd.concat(rows) if rows else pd.DataFrame(columns=columns)
    return found.sort_values("rouge_l", ascending=False, kind="stable").reset_index(drop=True)


def overlaps(sets: dict[str, pd.DataFrame]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What data sets share, two by two: `nearest` of each ordered pair of them in short, and its nearest texts.

    Args:
        sets: texts by the name of their data set.

    Returns:
        A row a pair and language (`first`, `second`, `language`, `texts`, `mean`, `ci_low`, `ci_high`, `highest`,
        `near_duplicates`), and the near-duplicates of all pairs. The interval is by bootstrap over the first one's texts.
    """
    rows, near = [], []
    for one, first in sets.items():
        for other, second in sets.items():
            if one == other:
                continue
            for language, some in nearest(first, second).groupby("language", sort=False):
                sums = some.assign(stratum=ALL, n=1.0)
                mean = estimate(
                    resample(sums, "stratum", "item_a", ["rouge_l", "n"]),
                    lambda s: s[:, 0, 0] / s[:, 0, 1],
                )
                close = some[some.rouge_l >= NEAR]
                rows.append(
                    (one, other, language, len(some), *mean, float(some.rouge_l.max()), len(close))
                )
                near.append(close.assign(first=one, second=other))
    names = [
        "first",
        "second",
        "language",
        "texts",
        "mean",
        "ci_low",
        "ci_high",
        "highest",
        "near_duplicates",
    ]
    found = ["rouge_l", "first", "second", "item_a", "item_b", "text_a", "text_b"]
    listed = pd.concat(near)[found] if near else pd.DataFrame(columns=found)
    return pd.DataFrame(rows, columns=names), listed.reset_index(drop=True)


def jackknife(values: np.ndarray, mask: np.ndarray) -> tuple[float, float, float]:
    """The mean of `values` over the pairs of `mask` with its 95 % interval by the jackknife over texts.

    Args:
        values, mask: float and bool [n, n]; each pair stands once in the mask.

    Returns:
        Mean, low, high; NaN where there is no pair, or no interval.
    """
    counted = np.where(mask, values, 0)
    total, pairs = counted.sum(dtype=np.float64), int(mask.sum())
    if not pairs:
        return np.nan, np.nan, np.nan
    sums = counted.sum(0, dtype=np.float64) + counted.sum(1, dtype=np.float64)
    each = mask.sum(0) + mask.sum(1)
    involved = each > 0
    n, left = int(involved.sum()), pairs - each[involved]
    mean = total / pairs
    # Without the only pair there is nothing left to take a mean of.
    if n < 3 or (left == 0).any():
        return mean, np.nan, np.nan
    without = (total - sums[involved]) / left
    error = np.sqrt((n - 1) / n * np.sum((without - without.mean()) ** 2))
    return mean, max(0.0, mean - _WIDTH * error), min(1.0, mean + _WIDTH * error)


def _by_language(some: pd.DataFrame) -> np.ndarray:
    """ROUGE-L of all pairs; NaN between languages, which share no words to speak of."""
    values = np.full((len(some), len(some)), np.nan, dtype=np.float32)
    for language in dict.fromkeys(some.language):
        here = np.flatnonzero(some.language == language)
        texts = list(some.text.to_numpy()[here])
        values[np.ix_(here, here)] = rouge_l(texts, texts)
    return values


def _triangle(mask: np.ndarray) -> np.ndarray:
    """Each pair once, and no text with itself."""
    return np.triu(mask, k=1)


def _sizes(texts: pd.DataFrame, distinct: pd.DataFrame, mask: np.ndarray) -> dict[str, object]:
    compared = int((mask.any(axis=0) | mask.any(axis=1)).sum())
    return {"texts": len(texts), "distinct": len(distinct), "compared": compared}


def _summary(values: np.ndarray, mask: np.ndarray) -> dict[str, object]:
    found = values[mask]
    mean, low, high = jackknife(values, mask)
    note = "" if len(found) else "no pair of distinct texts"
    return {
        "pairs": len(found),
        "mean": mean,
        "ci_low": low,
        "ci_high": high,
        "median": float(np.median(found)) if len(found) else np.nan,
        "below_low": float(np.mean(found < LOW)) if len(found) else np.nan,
        "below_half": float(np.mean(found < HALF)) if len(found) else np.nan,
        "near_duplicates": int(np.sum(found >= NEAR)),
        "note": note,
    }


def _between(values: np.ndarray, codes: np.ndarray, names: list[str]) -> pd.DataFrame:
    groups = np.eye(len(names))[codes]
    known = ~np.isnan(values)
    np.fill_diagonal(known, False)
    sums, pairs = (
        groups.T @ part @ groups for part in (np.where(known, values, 0), known.astype(float))
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        return pd.DataFrame(np.where(pairs > 0, sums / pairs, np.nan), index=names, columns=names)


def _histogram(values: np.ndarray, within: np.ndarray, across: np.ndarray) -> pd.DataFrame:
    shares = {}
    for name, mask in (("within", within), ("across", across)):
        counts = np.histogram(values[mask], BINS)[0]
        shares[name] = counts / counts.sum() if counts.sum() else np.full(len(counts), np.nan)
    return pd.DataFrame({"low": BINS[:-1], "high": BINS[1:], **shares})


def _each(some: pd.DataFrame, values: np.ndarray) -> pd.DataFrame:
    # A text is wholly like itself.
    known = (~np.isnan(values)).sum(1) - 1
    sums = np.nansum(values, axis=1, dtype=np.float64) - 1
    mean = np.where(known > 0, sums / np.maximum(known, 1), np.nan)
    return some[["item_id", "category", "text"]].assign(mean_to_others=mean)


def _near(some: pd.DataFrame, values: np.ndarray, mask: np.ndarray) -> pd.DataFrame:
    first, second = np.nonzero(mask & (values >= NEAR))
    table = pd.DataFrame({"rouge_l": values[first, second].astype(float)})
    for name, column in (("item", "item_id"), ("text", "text")):
        table[f"{name}_a"], table[f"{name}_b"] = (
            some[column].to_numpy()[first],
            some[column].to_numpy()[second],
        )
    return table.sort_values("rouge_l", ascending=False, kind="stable").reset_index(drop=True)


def _drawn(texts: pd.DataFrame, largest: int, seed: int) -> pd.DataFrame:
    return texts.sample(min(len(texts), largest), random_state=seed).sort_index()


def _named(items: list[str]) -> str:
    more = f" and {len(items) - 4:,} more" if len(items) > 4 else ""
    return ", ".join(items[:4]) + more
