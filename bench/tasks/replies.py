"""What a reply says in the end: models that think aloud write down other answers before their own; and when it is said.

A reply may be of ten million characters of any kind. So every pattern by which replies are read takes its repeats whole
(`++`), bounds them, or cannot begin in the middle of one, and no reply takes more than linear time.
"""

import re
import sys
import unicodedata
from functools import cache
from typing import NamedTuple

# What a thought stands between.
THOUGHT_TAGS = (("<think>", "</think>"),)
# A rating (7, 7分, 得分：7, **7/10**) or the letter of an option and nothing else; "1." may begin a list.
_BARE = re.compile(
    r"[\s*#`\"'“(\[【]*+(?:[^\W\d_]{1,8}\s*+[:：]\s*+)?+[*\s]*+(?:[A-H]|[0-9]++(?:\.[0-9]++)?+(?:\s*+(?:分|/\s*+[0-9]++))?+)[\s*`\"'”)\]】。!！]*+"
)
# What goes on in words; a letter alone may be another option.
_WORDS = re.compile(r"\s*+(?:[^\W\d_]{2}|[^\W\d_A-H])")
# Marks on one letter that are kept, as in Unicode's stream-safe form (UAX #15), and from which length on they are counted.
MARKS, LONG = 30, 1000


class SplitReply(NamedTuple):
    """A reply in two parts.

    Attributes:
        thought: what the model thought before its answer, without the tags around it.
        answer: what follows the thought, or the whole reply where there is no thought.
        closed: False where a thought did not end, so that there is no answer.
    """

    thought: str
    answer: str
    closed: bool


def split_thought(reply: str, opened: bool = False) -> SplitReply:
    """Split a reply into its thought and its answer.

    Args:
        opened: the prompt had opened a thought already, so that the reply has no opening tag.
    """
    ends, closing = max((reply.rfind(closing), closing) for _, closing in THOUGHT_TAGS)
    if ends >= 0:
        return SplitReply(_without_opening(reply[:ends]), reply[ends + len(closing) :].strip(), True)
    if opened or any(opening in reply for opening, _ in THOUGHT_TAGS):
        return SplitReply(_without_opening(reply), "", False)
    return SplitReply("", reply, True)


def unfinished_thought(reply: str, opened: bool, cut: bool | None, option: str = "--max-new-tokens") -> str:
    """Say why a reply is no answer where its thought did not end, "" where there is an answer.

    Args:
        opened: as for `split_thought`.
        cut: whether the reply ended at its limit of tokens.
        option: which option of the command gives a thought more tokens.
    """
    if split_thought(reply, opened).closed:
        return ""
    return f"cut off while thinking; raise {option}" if cut else "ended while thinking, without an answer"


def final(reply: str) -> str:
    """Leave out a reply's thought; nothing is left where the thought does not end."""
    return split_thought(reply).answer


def answered(reply: str) -> bool:
    """Whether a reply in the making has a rating or a letter for its first line, and goes on about it in words."""
    line, _, more = final(reply).lstrip().partition("\n")
    return bool(_BARE.fullmatch(line) and _WORDS.match(more))


def _without_opening(thought: str) -> str:
    thought = thought.strip()
    for opening, _ in THOUGHT_TAGS:
        thought = thought.removeprefix(opening).lstrip()
    return thought


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
