"""What a reply says in the end: models that think aloud write down other answers before their own; and when it is said."""

import re

OPENED, CLOSED = "<think>", "</think>"
# A rating (7, 7分, 得分：7, **7/10**) or the letter of an option and nothing else; "1." may begin a list.
_BARE = re.compile(
    r"[\s*#`\"'“(\[【]*(?:[^\W\d_]{1,8}\s*[:：]\s*)?[*\s]*(?:[A-H]|[0-9]+(?:\.[0-9]+)?\s*(?:分|/\s*[0-9]+)?)[\s*`\"'”)\]】。!！]*"
)
# What goes on in words; a letter alone may be another option.
_WORDS = re.compile(r"\s*(?:[^\W\d_]{2}|[^\W\d_A-H])")


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
