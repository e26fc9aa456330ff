"""Split a reply into the thought and the answer of the model, and put it into plain forms.

A reply may have ten million characters of any kind. So `plain` keeps only its beginning and its
end, and patterns for the whole reply take their repeats possessively (`++`).
"""

import re
import unicodedata
from pathlib import Path
from typing import NamedTuple

# Traditional characters and their simplified forms, in pairs, for the characters of the word lists
# of `choices`, `ratings` and the tasks. If you add a word with a new character, add its pair.
_PAIRS = Path(__file__).with_name("simplified.txt").read_text("utf-8").split()
_SIMPLIFIED = {ord(pair[0]): pair[1] for pair in _PAIRS}
# Names of tags around a thought: <think>, <Thought>, <seed:think>, <|START_THINKING|>, <analysis>.
_NAME = r"[\w:]{0,20}?(?:think|thought|reason|analysis|reflection)\w{0,12}"
# Other tags, of Magistral, Kimi, Apertus, openPangu, Gemma 4 and gpt-oss.
_OTHER_TAGS = {
    "[THINK]": "[/THINK]",
    "◁think▷": "◁/think▷",
    "<|inner_prefix|>": "<|inner_suffix|>",
    "[unused16]": "[unused17]",
    "<|channel>thought": "<channel|>",
    "<|channel|>analysis<|message|>": "<|end|><|start|>assistant<|channel|>final<|message|>",
}
_OPENING_TAG = re.compile(
    "|".join(map(re.escape, _OTHER_TAGS))
    + rf"|<\|channel\|?>(?!final|commentary)|<\|?(?!end_|\w{{0,30}}_end\|?>){_NAME}\|?>",
    re.IGNORECASE,
)
_CLOSING_TAG = re.compile(
    "|".join(map(re.escape, _OTHER_TAGS.values()))
    + rf"|<\|channel\|>final[^\n<]{{0,20}}<\|message\|>|<\|?(?:/|end_){_NAME}\|?>"
    + r"|<\|?\w{0,20}(?:think|thought|reason)\w{0,12}_end\|?>",
    re.IGNORECASE,
)
# The error if we want letters from a model that thinks first.
THINKS = (
    "the model thinks first, so its first token is no letter; give --answer-mode text, "
    "or switch thinking off"
)
# More characters than any tag has.
LONGEST_TAG = 64
# Thoughts without tags, of gpt-oss without its special tokens, Ollama's console and Granite 3.2.
_OPENING = re.compile(
    rf"{_OPENING_TAG.pattern}|\A\s*+(?:(?-i:analysis)(?=[a-z]|[^\x00-\x7f：，。])|thinking\.\.\.\n"
    r"|here(?: is|'s) my thought process:)",
    re.IGNORECASE,
)
_CLOSING = re.compile(
    rf"{_CLOSING_TAG.pattern}|assistantfinal|\.\.\.done thinking\.|here(?: is|'s) my response:",
    re.IGNORECASE,
)
# A thought of Gemma 4 whose special tokens were removed, so that nothing marks its end.
_HEADING = re.compile(r"\s*+thought\n")
# A turn of the user that a model invents behind its answer, with special tokens or without.
_NEXT_TURN = re.compile(
    r"(?:<\|?[a-z_]{1,20}\|?>)?(?<![a-z ])user(?:<\|[a-z_]{1,20}\|>)?\n"
    r"|<[|｜][Uu]ser[|｜]>|\[INST\]"
)
# How models begin a reply in which they decline to answer, in Chinese, English and Japanese.
_DECLINES = re.compile(
    r"\W*(?:(?:非常|十分|很|真的|实在)?(?:抱歉|对不起)|不好意思|(?:我|我们|本模型)(?:很?遗憾|无法|不能|不会|"
    r"拒绝|不便|不宜)(?!判断|确定)|作为(?:一[个名款]|人工智能|AI|语言模型|大模型)|根据.{0,12}规定"
    r"|(?:i'?m|i am) (?:so |very |really )?sorry|sorry|i apologi[sz]e|unfortunately, i"
    r"|i (?:cannot|can't|can not|won't|will not|must decline|refuse|decline)\b"
    r"(?! be (?:sure|certain))"
    r"|(?:i'?m|i am) (?:not able|unable|not comfortable)|as an? (?:ai|artificial|language model)"
    r"|申し訳|すみませんが|お答えできません|回答を控え)",
    re.IGNORECASE,
)
# We read this many characters at both ends of a long reply.
ENDS = 4000
# Only a rating (7, 7分, 得分：7, **7/10**) or the letter of an option; "1." may begin a list.
_BARE = re.compile(
    r"[\s*#`\"'“(\[【]*+(?:[^\W\d_]{1,8}\s*+[:：]\s*+)?+[*\s]*+"
    r"(?:[A-H]|[0-9]++(?:\.[0-9]++)?+(?:\s*+(?:分|/\s*+[0-9]++))?+)[\s*`\"'”)\]】。!！]*+"
)
# Tags around an answer.
_MARKUP = re.compile(r"</?\w{1,20}>")
# More text in words; a single letter may be another option.
_WORDS = re.compile(r"\s*+(?:[^\W\d_]{2}|[^\W\d_A-H])")


class SplitReply(NamedTuple):
    """A reply in two parts.

    Attributes:
        thought: the model's thought before its answer, without the tags around it.
        answer: the text after the thought, or the whole reply if there is no thought.
        closed: False if a thought did not end, so that there is no answer.
    """

    thought: str
    answer: str
    closed: bool


def split_thought(reply: str, opened: bool = False) -> SplitReply:
    """Split a reply into its thought and its answer.

    Args:
        opened: the prompt had opened a thought already, so that the reply has no opening tag.

    Examples:
        >>> split_thought("<think>She or he?</think>C")
        SplitReply(thought='She or he?', answer='C', closed=True)
    """
    if turn := _NEXT_TURN.search(reply):
        reply = reply[: turn.start()]
    opening = _OPENING.search(reply)
    closings = list(_CLOSING.finditer(reply))
    closed = bool(closings)
    if closings:
        thought, answer = reply[: closings[-1].start()], reply[closings[-1].end() :].strip()
    elif heading := _HEADING.match(reply):
        thought, _, answer = reply[heading.end() :].strip().rpartition("\n")
        closed = bool(_BARE.fullmatch(answer))
        thought, answer = (thought, answer) if closed else (f"{thought}\n{answer}", "")
    elif opened or opening:
        thought, answer = reply, ""
    else:
        return SplitReply("", reply, True)
    if opening and not opened and not answer:
        before = _MARKUP.sub("", reply[: opening.start()])
        if _BARE.fullmatch(before):  # the answer came first: "C\n<reason>..."
            thought, answer, closed = thought[opening.start() :], before.strip(), True
    thought = thought.strip()
    if opening := _OPENING.match(thought):
        thought = thought[opening.end() :].lstrip()
    return SplitReply(thought, answer, closed)


def opened_tag(text: str) -> str:
    """Return the opening tag at the end of a text, "" if there is none."""
    tail = text.rstrip()[-LONGEST_TAG:]
    return next((tag[0] for tag in _OPENING_TAG.finditer(tail) if tag.end() == len(tail)), "")


def closing_tag(opening: str) -> str:
    """Return the tag that closes a thought.

    Examples:
        >>> closing_tag("<think>"), closing_tag("<|START_THINKING|>")
        ('</think>', '<|END_THINKING|>')
    """
    for start, end in (("START", "END"), ("start", "end"), ("begin", "end")):
        if start in opening:
            return opening.replace(start, end)
    return _OTHER_TAGS.get(opening) or opening.replace("<", "</", 1)


def is_tag(text: str) -> bool:
    """Return whether a text, for example a special token, is a tag of a thought or a part of it."""
    parts = ("<|channel|>", "<|message|>", "<|channel>")
    return text in parts or bool(_OPENING_TAG.fullmatch(text) or _CLOSING_TAG.fullmatch(text))


def closes_unopened(text: str) -> bool:
    """Return whether a text closes a thought that it did not open, because a template opens it."""
    opening, closing = _OPENING.search(text), _CLOSING_TAG.search(text)
    return bool(closing and not (opening and opening.start() < closing.start()))


def is_thinking(text: str, before: bool) -> bool:
    """Return whether a thought is open after a text: by its last tag, if any, or as `before`."""
    opening, closing = (
        max((tag.end() for tag in tags.finditer(text)), default=-1)
        for tags in (_OPENING_TAG, _CLOSING_TAG)
    )
    return before if opening == closing else opening > closing


def unfinished_thought(
    reply: str, opened: bool, cut: bool | None, option: str = "--max-new-tokens"
) -> str:
    """Say why a reply has no answer if its thought did not end; "" if there is an answer.

    Args:
        opened: as for `split_thought`.
        cut: whether the reply ended at its limit of tokens.
        option: the option of the command that gives a thought more tokens.
    """
    if split_thought(reply, opened).closed:
        return ""
    if cut:
        return f"cut off while thinking; raise {option}"
    return "ended while thinking, without an answer"


def final(reply: str) -> str:
    """Return a reply without its thought; "" if the thought does not end."""
    return split_thought(reply).answer


def answered(reply: str) -> bool:
    """Return whether the first line of a reply is a rating or letter, and more follows in words."""
    line, _, more = final(reply).lstrip().partition("\n")
    return bool(_BARE.fullmatch(line) and _WORDS.match(more))


def ends(text: str) -> str:
    """Truncate a long text to its first and last `ENDS` characters, with a line break between."""
    return text if len(text) <= 2 * ENDS else f"{text[:ENDS]}\n{text[-ENDS:]}"


def simplified(text: str) -> str:
    """Put traditional characters into simplified forms, so that one word list reads both."""
    return text.translate(_SIMPLIFIED)


def plain(text: str) -> str:
    """Put a text, or the ends of a long one, into plain forms.

    Examples:
        >>> plain("Ａ：無法確定")
        'A:无法确定'
    """
    return simplified(unicodedata.normalize("NFKC", ends(text)))


def declines(reply: str) -> bool:
    """Return whether a reply begins as one in which a model declines to answer.

    Examples:
        >>> declines("I'm sorry, but I can't choose between people."), declines("B. I am sure.")
        (True, False)
        >>> declines("抱歉，我不便回答。"), declines("无法判断")
        (True, False)
    """
    return bool(_DECLINES.match(plain(final(reply))))
