"""Measure how similar the texts of a data set are: ROUGE-L, near-duplicates.

ROUGE-L is the F measure of the longest common subsequence, 2 LCS / (length + length) (Lin, Text
Summarization Branches Out, 2004, with beta = 1). We take characters as tokens if a text has Chinese
or Japanese ones, otherwise words. Both papers report it, McBE's over all pairs of default sentences
and CBBQ's within and across categories; neither defines its tokens.
"""

import math
import re
from collections.abc import Sequence
from itertools import permutations
from typing import NamedTuple

import numpy as np
import pandas as pd
from rapidfuzz import process
from rapidfuzz.distance import Indel

from bench.core.errors import BadInput
from bench.metrics.bootstrap import estimate_of_items
from bench.metrics.table import ALL

# The most distinct texts that are compared, in 18 million pairs; of more we take a sample.
LARGEST = 6000
# From this ROUGE-L on, two texts are near-duplicates.
NEAR = 0.8
# Most values are below this one in McBE's paper.
LOW = 0.2
# Most values are below this one in CBBQ's paper.
HALF = 0.5
# Chinese characters and Japanese kana.
CJK = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
WORD = re.compile(r"\w+|[^\w\s]")
# Half the width of a 95 % interval, in standard errors.
_WIDTH = 1.96


class Diversity(NamedTuple):
    """The similarity of the texts of a data set.

    Attributes:
        table: one row per category, `all` for the pairs within categories, and `across` for pairs
            between categories of a language: `texts` (rows), `distinct`, `compared` (texts in the
            pairs), `pairs`, `mean`, `ci_low`, `ci_high`, `median`, `below_low` and `below_half`
            (shares of pairs), `near_duplicates`, `note`.
        near: near-duplicates, the nearest first: `rouge_l`, `item_a`, `item_b`, `text_a`, `text_b`.

    Examples:
        >>> rows = [("a", "x", "en", "the tea is hot"), ("b", "x", "en", "the tea is so hot")]
        >>> texts = pd.DataFrame(rows, columns=["item_id", "category", "language", "text"])
        >>> diversity(texts).near[["rouge_l", "item_a", "item_b"]].round(2)
           rouge_l item_a item_b
        0     0.89      a      b
    """

    table: pd.DataFrame
    near: pd.DataFrame


def tokens(text: str) -> str | list[str]:
    """Cut a text into characters without white space, or into words and signs in lower case."""
    return re.sub(r"\s+", "", text) if CJK.search(text) else WORD.findall(text.lower())


def rouge_l(first: Sequence[str], second: Sequence[str]) -> np.ndarray:
    """Compute ROUGE-L of each of the `first` texts with each of the `second`: float32.

    It is rapidfuzz's similarity by insertions and deletions, 2 LCS / (length + length).
    """
    rows = [tokens(text) for text in first]
    columns = rows if second is first else [tokens(text) for text in second]
    return process.cdist(
        rows, columns, scorer=Indel.normalized_similarity, dtype=np.float32, workers=-1
    )


def duplicates(texts: pd.DataFrame) -> pd.DataFrame:
    """List groups of rows that say the same: `rows`, `items` (names, at most four), `text`.

    Examples:
        >>> rows = [("a", "Tea", "Tea"), ("b", "Rice", "Rice"), ("c", "Tea", "Tea")]
        >>> duplicates(pd.DataFrame(rows, columns=["item_id", "text", "whole"]))
           rows items text
        0     2  a, c  Tea
    """
    groups = texts[texts.duplicated("whole", keep=False)].groupby("whole", sort=False)
    rows = []
    for _text, part in groups:
        more = f" and {len(part) - 4:,} more" if len(part) > 4 else ""
        rows.append((len(part), ", ".join(part.item_id[:4]) + more, part.text.iloc[0]))
    table = pd.DataFrame(rows, columns=["rows", "items", "text"])
    return table.sort_values("rows", ascending=False, kind="stable").reset_index(drop=True)


def diversity(texts: pd.DataFrame) -> Diversity:
    """Compute ROUGE-L within and across categories, over pairs of distinct texts.

    Intervals are by the jackknife over texts of a mean over pairs (Arvesen, Annals of Mathematical
    Statistics, 1969): pairs share texts, so they are not independent.

    Args:
        texts: as `bench.data.texts.texts` returns them; of more than `LARGEST` distinct texts, a
            random sample of this size is compared.

    Raises:
        BadInput: no texts.

    Examples:
        >>> rows = [("a", "x", "en", "the tea is hot"), ("b", "x", "en", "the tea is cold")]
        >>> texts = pd.DataFrame(rows, columns=["item_id", "category", "language", "text"])
        >>> diversity(texts).table[["category", "pairs", "mean"]].head(1)
          category  pairs  mean
        0      all      1  0.75
    """
    if texts.empty:
        raise BadInput("diversity: there are no texts to compare")
    distinct = texts.drop_duplicates(["category", "text"]).reset_index(drop=True)
    compared = distinct
    if len(distinct) > LARGEST:
        sample = np.random.default_rng(0).choice(len(distinct), LARGEST, replace=False)
        compared = distinct.loc[np.sort(sample)].reset_index(drop=True)
    # Pairs between languages stay NaN, because these share hardly any words.
    values = np.full((len(compared), len(compared)), np.nan, dtype=np.float32)
    for language in dict.fromkeys(compared.language):
        own = np.flatnonzero(compared.language == language)
        each = list(compared.text.to_numpy()[own])
        values[np.ix_(own, own)] = rouge_l(each, each)
    names = list(dict.fromkeys(distinct.category))
    codes = compared.category.map(names.index).to_numpy()
    same, known = codes[:, None] == codes[None, :], ~np.isnan(values)
    # Each pair once, and no text with itself.
    within, across = np.triu(same, k=1), np.triu(~same & known, k=1)
    rows = [
        {"category": ALL, **_summary(texts, distinct, values, within)},
        {"category": "across", **_summary(texts, distinct, values, across)},
    ]
    for k, name in enumerate(names):
        own = np.flatnonzero(codes == k)
        pairs = np.ix_(own, own)
        part, kinds = (frame[frame.category == name] for frame in (texts, distinct))
        rows.append({"category": name, **_summary(part, kinds, values[pairs], within[pairs])})
    first, second = np.nonzero((within | across) & (values >= NEAR))
    near = values[first, second].astype(float)
    return Diversity(pd.DataFrame(rows), _pairs(near, compared.iloc[first], compared.iloc[second]))


def overlaps(
    sets: dict[str, pd.DataFrame], near: float = NEAR
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Compare data sets two by two: for each text of one, find the nearest text of the other.

    Args:
        sets: texts by the name of their data set, as `bench.data.texts.texts` returns them; of more
            than `LARGEST` distinct texts of a language, a random sample of this size is compared.
        near: the ROUGE-L from which two texts are near-duplicates.

    Returns:
        One row per ordered pair and language (`first`, `second`, `language`, `texts`, `mean`,
        `ci_low`, `ci_high`, `highest`, `near_duplicates`), and the near-duplicates of all pairs.
        Intervals are by bootstrap over the texts of the first.

    Raises:
        BadInput: `near` is not above 0 and at most 1.

    Examples:
        >>> ours = pd.DataFrame({"item_id": ["a"], "language": "en", "text": "the tea is hot"})
        >>> table, copies = overlaps({"ours": ours, "theirs": ours})
        >>> table[["first", "second", "highest", "near_duplicates"]].head(1)
          first  second  highest  near_duplicates
        0  ours  theirs      1.0                1
    """
    if not 0 < near <= 1:
        raise BadInput(f"least {near:g}: give a ROUGE-L above 0 and at most 1")
    rows, copies = [], []
    for (first, texts), (second, others) in permutations(sets.items(), 2):
        for language in dict.fromkeys(texts.language):
            a, b = (_distinct(frame[frame.language == language]) for frame in (texts, others))
            if b.empty:
                continue
            values = rouge_l(list(a.text), list(b.text))
            best = values.argmax(axis=1)
            part = _pairs(values.max(axis=1), a, b.iloc[best])
            sums = part[["rouge_l"]].assign(n=1.0).to_numpy(float)
            mean = estimate_of_items(sums, lambda s: s[:, 0] / s[:, 1], list(part.item_a))
            close = part[part.rouge_l >= near]
            key = (first, second, language, len(part))
            rows.append((*key, *mean, float(part.rouge_l.max()), len(close)))
            copies.append(close.assign(first=first, second=second))
    keys = ["first", "second", "language", "texts"]
    columns = [*keys, "mean", "ci_low", "ci_high", "highest", "near_duplicates"]
    listed = ["rouge_l", "first", "second", "item_a", "item_b", "text_a", "text_b"]
    table = pd.concat(copies)[listed] if copies else pd.DataFrame(columns=listed)
    return pd.DataFrame(rows, columns=columns), table.reset_index(drop=True)


def _distinct(texts: pd.DataFrame) -> pd.DataFrame:
    texts = texts.drop_duplicates("text")
    return texts.sample(min(len(texts), LARGEST), random_state=0).sort_index()


def jackknife(values: np.ndarray, mask: np.ndarray) -> tuple[float, float, float]:
    """Compute the mean of `values` over the pairs of `mask`, with its jackknife interval.

    Args:
        values, mask: float and bool [n, n]; each pair is in the mask once.

    Returns:
        Mean, low, high; NaN if there is no pair, or no interval.
    """
    in_mask = np.where(mask, values, 0)
    total, pairs = in_mask.sum(dtype=np.float64), int(mask.sum())
    if not pairs:
        return np.nan, np.nan, np.nan
    sums = in_mask.sum(0, dtype=np.float64) + in_mask.sum(1, dtype=np.float64)
    each = mask.sum(0) + mask.sum(1)
    involved = each > 0
    n, left = int(involved.sum()), pairs - each[involved]
    mean = total / pairs
    if n < 3 or (left == 0).any():
        return mean, np.nan, np.nan
    without = (total - sums[involved]) / left
    error = np.sqrt((n - 1) / n * np.sum((without - without.mean()) ** 2))
    return mean, max(0.0, mean - _WIDTH * error), min(1.0, mean + _WIDTH * error)


def _summary(
    texts: pd.DataFrame, distinct: pd.DataFrame, values: np.ndarray, mask: np.ndarray
) -> dict[str, object]:
    pairs = values[mask]
    mean, low, high = jackknife(values, mask)
    return {
        "texts": len(texts),
        "distinct": len(distinct),
        "compared": int((mask.any(axis=0) | mask.any(axis=1)).sum()),
        "pairs": len(pairs),
        "mean": mean,
        "ci_low": low,
        "ci_high": high,
        "median": float(np.median(pairs)) if len(pairs) else math.nan,
        "below_low": float(np.mean(pairs < LOW)) if len(pairs) else math.nan,
        "below_half": float(np.mean(pairs < HALF)) if len(pairs) else math.nan,
        "near_duplicates": int(np.sum(pairs >= NEAR)),
        "note": "" if len(pairs) else "no pair of distinct texts",
    }


def _pairs(values: np.ndarray, first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """List pairs of texts with their ROUGE-L, the nearest first."""
    columns = {
        "rouge_l": values,
        "item_a": first.item_id.to_numpy(),
        "item_b": second.item_id.to_numpy(),
        "text_a": first.text.to_numpy(),
        "text_b": second.text.to_numpy(),
    }
    table = pd.DataFrame(columns)
    return table.sort_values("rouge_l", ascending=False, kind="stable").reset_index(drop=True)
