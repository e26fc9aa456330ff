"""A reply that is shown to a judge: fenced off as data, so that what it says is no part of what the judge is told.

The reply stands between two lines that hold the same word. The word is made of the reply by a hash, so that a run can be
repeated, that nobody who writes a reply can know it, and that it does not occur in the reply. What a chat template
writes to begin and end a turn is spelled otherwise in the reply: many a server reads `<|im_end|>` as the end of the turn
wherever it stands.
"""

import hashlib
import re
import string
from typing import Any

FIELD = "fence"
# Letters of the word. No digits: a judge that copies the word has given no mark.
LENGTH = 10
# What chat templates and tokenizers write around turns: <|im_end|>, <｜User｜>, <end_of_turn>, </s>, [INST], <<SYS>>, [gMASK].
_CONTROL = re.compile(
    r"<[|｜][^<>\n]{1,40}[|｜]>|<</?SYS>>"
    r"|</?(?i:s|bos|eos|pad|unk|sop|eop|mask|cls|sep|think|system|user|human|assistant|tool|function|(?:start|end|begin)_of_\w{1,20}"
    r"|tool_\w{1,20}|\w{1,20}_\d{1,6}|unused\d{1,6})>"
    r"|\[/?[a-z]?[A-Z][A-Z_]{1,24}\]",
)
# Brackets that no tokenizer takes for others, and that stay what they are when forms are normalized.
_BRACKETS = str.maketrans("<>[]|｜", "〈〉〔〕¦¦")


def judged(template: str, field: str, reply: str, **others: Any) -> str:
    """What a judge is asked: `template` with the reply as `field`, fenced where the template has the field `fence`.

    A template without it, such as a released one, shows the reply as it is.
    """
    if f"{{{FIELD}}}" not in template:
        return template.format(**{field: reply}, **others)
    said = disarmed(reply)
    return template.format(**{field: said, FIELD: word(said)}, **others)


def disarmed(reply: str) -> str:
    """The reply with the brackets of turn markers spelled otherwise: 〈¦im_end¦〉. Other text is left as it is."""
    return _CONTROL.sub(lambda found: found[0].translate(_BRACKETS), reply)


def word(reply: str) -> str:
    """Ten small letters that follow from a reply and are not in it."""
    again = 0
    while True:
        # A half of a pair has no UTF-8, and a reply may hold one.
        number = int.from_bytes(
            hashlib.sha256(f"{again}:{reply}".encode(errors="surrogatepass")).digest()
        )
        letters = []
        for _ in range(LENGTH):
            number, one = divmod(number, len(string.ascii_lowercase))
            letters.append(string.ascii_lowercase[one])
        found = "".join(letters)
        if found not in reply:
            return found
        again += 1
