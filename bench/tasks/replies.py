"""What a reply says in the end: models that think aloud write down other answers before their own; and when it is said.

A reply may be of ten million characters of any kind. So every pattern by which replies are read takes its repeats whole
(`++`), bounds them, or cannot begin in the middle of one, and no reply takes more than linear time.
"""

import re
import sys
import unicodedata
from functools import cache

OPENED, CLOSED = "<think>", "</think>"
# A rating (7, 7分, 得分：7, **7/10**) or the letter of an option and nothing else; "1." may begin a list.
_BARE = re.compile(
    r"[\s*#`\"'“(\[【]*+(?:[^\W\d_]{1,8}\s*+[:：]\s*+)?+[*\s]*+(?:[A-H]|[0-9]++(?:\.[0-9]++)?+(?:\s*+(?:分|/\s*+[0-9]++))?+)[\s*`\"'”)\]】。!！]*+"
)
# What goes on in words; a letter alone may be another option.
_WORDS = re.compile(r"\s*+(?:[^\W\d_]{2}|[^\W\d_A-H])")
# Marks on one letter that are kept, as in Unicode's stream-safe form (UAX #15), and from which length on they are counted.
MARKS, LONG = 30, 1000


def final(reply: str) -> str:
    """What follows the reasoning, which some models write before `</think>`; nothing where it never ends."""
    _, closed, said = reply.rpartition(CLOSED)
    if closed:
        return said.strip()
    return "" if OPENED in reply else reply


def answered(reply: str) -> bool:
    """Whether a reply in the making has a rating or a letter for its first line, and goes on about it in words."""
    line, _, more = final(reply).lstrip().partition("\n")
    return bool(_BARE.fullmatch(line) and _WORDS.match(more))


def plain(text: str) -> str:
    """A text in its plain forms (NFKC): Ａ is A, ， is a comma.

    Marks on a letter are sorted on the way, in quadratic time, so of a long row of them the first ones are kept.
    """
    if len(text) > LONG and not text.isascii():
        text = _rows_of_marks().sub(lambda row: row[0][:MARKS], text)
    return unicodedata.normalize("NFKC", text)


@cache
def _rows_of_marks() -> re.Pattern[str]:
    marks = [chr(code) for code in range(sys.maxunicode + 1) if unicodedata.combining(chr(code))]
    return re.compile(f"[{''.join(marks)}]{{{MARKS + 1},}}")
