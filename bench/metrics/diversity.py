"""Compute ROUGE-L: how much two texts share.

ROUGE-L is the F measure of the longest common subsequence, 2 LCS / (length + length) (Lin, Text
Summarization Branches Out, 2004, with beta = 1). We take characters as tokens if a text has Chinese
or Japanese ones, otherwise words. The papers of McBE and CBBQ report it and do not define their
tokens.
"""

import re
from collections.abc import Sequence

import numpy as np
from rapidfuzz import process
from rapidfuzz.distance import Indel

# Chinese characters and Japanese kana.
CJK = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
WORD = re.compile(r"\w+|[^\w\s]")


def tokens(text: str) -> str | list[str]:
    """Cut a text into characters without white space, or into words and signs in lower case.

    Examples:
        >>> tokens("Tea is hot."), tokens("公司 很小")
        (['tea', 'is', 'hot', '.'], '公司很小')
    """
    return re.sub(r"\s+", "", text) if CJK.search(text) else WORD.findall(text.lower())


def rouge_l(first: Sequence[str], second: Sequence[str]) -> np.ndarray:
    """Compute ROUGE-L of each text of `first` with each text of `second`.

    Args:
        first, second: texts of any length.

    Returns:
        Values from 0 to 1, a row per text of `first` and a column per text of `second` (float32).

    Examples:
        >>> rouge_l(["the tea is hot"], ["the tea is cold", "rice"])
        array([[0.75, 0.  ]], dtype=float32)
    """
    rows = [tokens(text) for text in first]
    columns = [tokens(text) for text in second]
    # rapidfuzz's similarity by insertions and deletions is 2 LCS / (length + length).
    scorer = Indel.normalized_similarity
    return process.cdist(rows, columns, scorer=scorer, dtype=np.float32, workers=-1)
