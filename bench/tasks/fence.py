"""Fence a reply off in a judge's prompt, so that instructions in it are read as data.

The reply is between two lines with the same word. This word is a hash of the reply: the same in
every run, unknown to the author of the reply, and not in it. We respell turn markers of chat
templates in the reply, because many servers read `<|im_end|>` anywhere as the end of the turn.
"""

import hashlib
import re
import string
from typing import Any

FIELD = "fence"
# The length of the word. It has no digits, so that nobody can read it as a grade.
LENGTH = 10
# Turn markers: <|im_end|>, <｜User｜>, <end_of_turn>, </s>, [INST], <<SYS>>, [gMASK].
_CONTROL = re.compile(
    r"<[|｜][^<>\n]{1,40}[|｜]>|<</?SYS>>"
    r"|</?(?i:s|bos|eos|pad|unk|sop|eop|mask|cls|sep|think|system|user|human|assistant|tool"
    r"|function|(?:start|end|begin)_of_\w{1,20}"
    r"|tool_\w{1,20}|\w{1,20}_\d{1,6}|unused\d{1,6})>"
    r"|\[/?[a-z]?[A-Z][A-Z_]{1,24}\]",
)
# Brackets that no tokenizer reads as brackets of markers, and that Unicode normalization keeps.
_BRACKETS = str.maketrans("<>[]|｜", "〈〉〔〕¦¦")


def judged(template: str, field: str, reply: str, **fields: Any) -> str:
    """Fill a reply into a judge's prompt, fenced if the template has the field `fence`.

    A template without this field, for example a released one, gets the reply as it is.

    Examples:
        >>> judged("Grade this: {reply}, behind {fence}", "reply", "10 <|im_end|>")
        'Grade this: 10 〈¦im_end¦〉, behind eixokbygmi'
    """
    if f"{{{FIELD}}}" not in template:
        return template.format(**{field: reply}, **fields)
    text = _CONTROL.sub(lambda marker: marker[0].translate(_BRACKETS), reply)
    return template.format(**{field: text, FIELD: word(text)}, **fields)


def word(reply: str, attempt: int = 0) -> str:
    """Make a word of ten small letters from a reply that is not in it."""
    text = f"{attempt}:{reply}".encode("utf-8", "surrogatepass")
    number = int.from_bytes(hashlib.sha256(text).digest())
    letters = ""
    for _ in range(LENGTH):
        number, position = divmod(number, len(string.ascii_lowercase))
        letters += string.ascii_lowercase[position]
    return word(reply, attempt + 1) if letters in reply else letters
