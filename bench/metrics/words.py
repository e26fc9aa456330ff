"""Count the words of a data set: Chinese cut by jieba, English by blanks, without common words.

A word counts once per text, so that a text that repeats it says no more than another. The extra
`words` brings the packages that this needs.
"""

import re
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from typing import Any

import pandas as pd
import platformdirs

from bench.core.errors import BadInput
from bench.core.i18n import N_, _
from bench.data.dataset import language_name

# The four that McBE's paper leaves out beside a common list (appendix, word clouds).
EXTRA = {"zh": ("然后", "一些", "那些", "可能")}
# Parts of speech that say what a text is about, as jieba marks them: names, verbs, adjectives, set phrases; not numbers with
# their measure words, pronouns, adverbs, particles.
CONTENT = ("n", "v", "a", "b", "j", "i", "l", "z")
ENGLISH = re.compile(r"[a-z][a-z'-]+")
PACKAGES = ("jieba", "stopwordsiso", "wordcloud")
NOT_INSTALLED = N_("Words are not counted: {packages} not installed; run: pip install {extra}")
NO_SEGMENTER = N_(
    "Words of {language} are not counted: the workbench cuts Chinese and English alone."
)


def counts(texts: pd.DataFrame, *, least: int = 1) -> pd.DataFrame:
    """How many texts of each category have a word: `category`, `word`, `texts`, `of`, the most frequent first.

    Args:
        texts: as `bench.data.texts.texts` gives them; a text that stands in a category twice counts once. `of` is how
            many the category has then. Languages that cannot be cut are left out (see `uncounted`).
        least: words that stand in fewer texts of a category are left out.

    Raises:
        BadInput: the packages of the extra `words` are not installed.
    """
    if reason := missing_packages():
        raise BadInput(reason)
    rows = []
    for (category, language), some in texts.groupby(["category", "language"], sort=False):
        if str(language) in _CUT:
            different = some.text.drop_duplicates()
            found = Counter(word for text in different for word in set(words(str(language), text)))
            # Words of a number are in the order of their letters, so that tables are the same everywhere.
            ranked = sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))
            rows += [(category, word, n, len(different)) for word, n in ranked if n >= least]
    return pd.DataFrame(rows, columns=["category", "word", "texts", "of"])


def missing_packages() -> str:
    """Name the packages that counting needs and lacks, and how to install them; "" if it has all."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if not missing:
        return ""
    return _(NOT_INSTALLED, packages=", ".join(missing), extra='"bias-workbench[words]"')


def uncounted(texts: pd.DataFrame) -> list[str]:
    """What is to be said of each language whose words are not counted."""
    languages = dict.fromkeys(map(str, texts.language))
    return [
        _(NO_SEGMENTER, language=language_name(language))
        for language in languages
        if language not in _CUT
    ]


def words(language: str, text: str) -> list[str]:
    """The words of a text in their order: without common words, numbers, signs, and single Chinese characters."""
    common = _common(language)
    return [word for word in _CUT[language](text) if word not in common]


@cache
def _common(language: str) -> frozenset[str]:
    """Words that say nothing of what a text is about, after lists of the packages wordcloud and stopwordsiso."""
    if language == "en":
        # The other package's list of English goes too far: it has man, old and young.
        from wordcloud import STOPWORDS  # slow to load

        return frozenset(STOPWORDS)
    import stopwordsiso

    return frozenset(stopwordsiso.stopwords(language)) | set(EXTRA.get(language, ()))


@cache
def _jieba() -> Any:
    import jieba  # slow to load
    from jieba import posseg

    jieba.setLogLevel("CRITICAL")  # a cache that cannot be written costs time alone
    cutter = jieba.Tokenizer()
    # By default its cache lies in a folder that all users share, where anybody may have put it.
    folder = platformdirs.user_cache_path("bias-workbench", appauthor=False)
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    cutter.tmp_dir = str(folder)
    return posseg.POSTokenizer(cutter)


def _chinese(text: str) -> list[str]:
    # One character is mostly a particle or a part of a name.
    return [word for word, kind in _jieba().cut(text) if len(word) > 1 and kind.startswith(CONTENT)]


def _english(text: str) -> list[str]:
    return ENGLISH.findall(text.lower())


_CUT: dict[str, Callable[[str], list[str]]] = {"zh": _chinese, "en": _english}
