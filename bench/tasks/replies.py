"""Split a reply into what the model thought and what it answered, and put it into plain forms.

A reply may be of ten million characters of any kind. So `plain` keeps its beginning and its end,
where answers stand, and patterns that read it whole take their repeats possessively (`++`).
"""

import re
import unicodedata
from typing import NamedTuple

from bench.tasks.simplified import simplified

# Tags around a thought: of most models; of prompts for Claude, of EXAONE and others; of Magistral,
# Kimi, Seed-OSS, Command and OpenThinker.
THOUGHT_TAGS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<seed:think>", "</seed:think>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
)
# Also the channels of gpt-oss, with its special tokens or, as they are often left out, without.
_OPENING = re.compile(
    "|".join(re.escape(opening) for opening, _ in THOUGHT_TAGS)
    + r"|<\|channel\|>analysis<\|message\|>|\Aanalysis(?=[A-Z]|[^\x00-\x7f：，。])"
)
_CLOSING = re.compile(
    "|".join(re.escape(closing) for _, closing in THOUGHT_TAGS)
    + r"|<\|channel\|>final<\|message\|>|assistantfinal"
)
# How many characters of a long reply are read for a choice at its beginning, and at its end.
ENDS = 4000
# A rating (7, 7分, 得分：7, **7/10**) or the letter of an option alone; "1." may begin a list.
_BARE = re.compile(
    r"[\s*#`\"'“(\[【]*+(?:[^\W\d_]{1,8}\s*+[:：]\s*+)?+[*\s]*+"
    r"(?:[A-H]|[0-9]++(?:\.[0-9]++)?+(?:\s*+(?:分|/\s*+[0-9]++))?+)[\s*`\"'”)\]】。!！]*+"
)
# What goes on in words; a letter alone may be another option.
_WORDS = re.compile(r"\s*+(?:[^\W\d_]{2}|[^\W\d_A-H])")


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
    closing = None
    for closing in _CLOSING.finditer(reply):  # noqa: B007
        pass
    if closing:
        thought, answer = reply[: closing.start()], reply[closing.end() :].strip()
    elif opened or _OPENING.search(reply):
        thought, answer = reply, ""
    else:
        return SplitReply("", reply, True)
    thought = thought.strip()
    if opening := _OPENING.match(thought):
        thought = thought[opening.end() :].lstrip()
    return SplitReply(thought, answer, closing is not None)


def unfinished_thought(
    reply: str, opened: bool, cut: bool | None, option: str = "--max-new-tokens"
) -> str:
    """Say why a reply is no answer where its thought did not end, "" where there is an answer.

    Args:
        opened: as for `split_thought`.
        cut: whether the reply ended at its limit of tokens.
        option: which option of the command gives a thought more tokens.
    """
    if split_thought(reply, opened).closed:
        return ""
    if cut:
        return f"cut off while thinking; raise {option}"
    return "ended while thinking, without an answer"


def final(reply: str) -> str:
    """Leave out a reply's thought; nothing is left where the thought does not end."""
    return split_thought(reply).answer


def answered(reply: str) -> bool:
    """Tell whether the first line of a reply is a rating or letter, and more follows in words."""
    line, _, more = final(reply).lstrip().partition("\n")
    return bool(_BARE.fullmatch(line) and _WORDS.match(more))


def ends(text: str) -> str:
    """Keep both ends of a long text, a line each."""
    return text if len(text) <= 2 * ENDS else f"{text[:ENDS]}\n{text[-ENDS:]}"


def plain(text: str) -> str:
    """Put a text, or the ends of a long one, into plain forms: Ａ becomes A, 無 becomes 无."""
    return simplified(unicodedata.normalize("NFKC", ends(text)))
