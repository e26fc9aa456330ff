"""Texts of a data set in one form for every benchmark.

A person wrote each text: an instance of McBE, a template of CBBQ, a sentence of NLI-CoAL
without its occupation.
"""

from typing import TYPE_CHECKING, NamedTuple

from bench.benchmarks import get
from bench.data import Source

if TYPE_CHECKING:
    import pandas as pd

# Marks for the names in a template, of one character. This makes a slot one token.
FIRST, SECOND = "①", "②"


class Text(NamedTuple):
    """One row of `texts`.

    Attributes:
        language: of the text: zh, en, ja or another.
        topic: the subcategory; of NLI-CoAL the set.
        groups: all groups (McBE), the stereotyped group (CBBQ), or the occupation (NLI-CoAL).
        text: the text for ROUGE-L and word counts; CBBQ's context and NLI-CoAL's frame with a mark
            for a name.
        whole: the complete row, which finds duplicates.
        items: the number of questions with this text.
    """

    benchmark: str
    item_id: str
    category: str
    language: str
    topic: str
    groups: tuple[str, ...]
    text: str
    whole: str
    items: int


def texts(*sources: Source) -> "pd.DataFrame":
    """List the texts of data sets: a row per instance, template or pair, in the columns of `Text`.

    Examples:
        >>> from bench.data import find
        >>> texts(find("mcbe", "samples"))[["item_id", "category", "language", "topic"]].head(2)
            item_id category language topic
        0  gender:1   gender       zh  职场角色
        1  gender:2   gender       zh  家庭责任
    """
    import pandas as pd

    rows = [row for own in sources for row in get(own.benchmark).texts(own)]
    return pd.DataFrame(rows, columns=list(Text._fields))


def language(source: Source) -> str:
    """Return the language of a data set of one language: its manifest's, or the release's."""
    return source.language.partition(",")[0] or get(source.benchmark).metadata.language
