"""Read which of several answers a reply chooses: a letter, an option's text, a category, a label.

A reply mentions answers, and each mention is looked at in its clause. Denied, blamed, supposed
and listed mentions are no choice (不选A, 选B是刻板印象, if B, A和B). The others count, in order:

1. an answer that is announced (答案：C, 应选C, I choose C), affirmed (C最合适, C is correct) or
   opens the reply: the last of them, unless it contradicts an earlier one without a correction;
2. the last that is named as an option (选C, option C), with the same condition;
3. the only one.

What cannot be told is no choice: an unread reply does less harm than a misread one. The words that
deny, announce and so on are in `reply_words.toml`.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from bench.tasks.replies import plain
from bench.tasks.simplified import simplified

# How many characters are looked at before and after a mention, up to the end of its clause.
WINDOW = 80
_MARKS = r"[\s\"'“”‘’「」『』【】《》()\[\]{}:=_-]"
_WORDS: dict[str, Any] = tomllib.loads(
    simplified(Path(__file__).with_name("reply_words.toml").read_text("utf-8"))
)
# What replies call certain answers: the option unknown, descriptions A and B, the NLI labels.
NAMES: dict[str, list[str]] = _WORDS["names"]


def _pattern(word: str) -> str:
    if re.fullmatch(r"[a-z][a-z'* ]*", word):
        return rf"(?<![a-z]){word.replace('*', '[a-z]*')}(?![a-z])"
    return word


def _any(*lists: Sequence[str]) -> str:
    """Make a pattern of any of the words, the longest first."""
    words = sorted({word for words in lists for word in words}, key=len, reverse=True)
    return f"(?:{'|'.join(map(_pattern, words))})"


def _run(*lists: Sequence[str]) -> str:
    """Make a pattern of any number of words and marks."""
    return rf"(?:{_any(*lists)}|{_MARKS})*+"


class _Pattern:
    """A pattern that is compiled when it is first used: all of them take a tenth of a second."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern

    def __getattr__(self, name: str) -> Any:
        """Give a method of the compiled pattern, and keep it."""
        method = getattr(re.compile(self.pattern, re.IGNORECASE), name)
        setattr(self, name, method)
        return method


_CLAUSE = re.compile(r"[,;。!?\n]|\.(?=\s|$|\.)")
_OPTION, _FILLER = [_WORDS["option"]], [_WORDS["option"], _WORDS["filler"]]
_OF_IT = _run(*_OPTION, _WORDS["of_it"])


def _before(table: str) -> _Pattern:
    words = _WORDS[table]
    return _Pattern(_any(words["words"]) + _run(*_FILLER, words["filler"]) + "$")


_DENYING = _before("deny_before")
_NEGATION = _Pattern(_any(_WORDS["deny_before"]["negations"]))
_CONTRAST = _Pattern(_any(_WORDS["deny_before"]["contrasts"]))
_ANNOUNCING = _Pattern(f"(?:{_before('announce_before').pattern[:-1]}|^(?:应该|可能|大概)?是)$")
_SUPPOSING = _Pattern(_any(_WORDS["suppose_before"]["words"]))
_NAMING = _Pattern(rf"{_any(*_OPTION)}{_MARKS}*+$")
_DEGREES = f"(?:{_any(_WORDS['affirm_after']['degrees'])})*+"
_AFFIRMING = _Pattern(
    rf"{_OF_IT}{_DEGREES}(?:比[^,。;\n]{{1,16}}?)?\s?{_any(_WORDS['affirm_after']['words'])}"
)
_DENIED = _Pattern(rf"{_OF_IT}{_DEGREES}(?:太|同样)?\s?{_any(_WORDS['deny_after']['words'])}")
_TOLD = _Pattern(
    f"{_OF_IT}{_run(_WORDS['tell_after']['adverbs'])}{_any(_WORDS['tell_after']['words'])}"
)
_SUPPOSED = _Pattern(rf"{_MARKS}*+的话")
# What goes on about an option behind a comma: 选A，是不负责任的.
_GOING_ON = _Pattern(r",\s?(?:则|就|会|那|便|[都也]?是(?!因为|由于|基于))")
_BLAMED = _Pattern(_any(_WORDS["blame"]["words"]))
_EXCUSED = _Pattern(_any(_WORDS["blame"]["excuses"]) + "[^,]{0,12}" + _BLAMED.pattern)
_RETRACTION = _Pattern(_any(_WORDS["turn"]["retract"]))
_TURN = _Pattern(_any(_WORDS["turn"]["words"], _WORDS["turn"]["retract"]))
_BEGINNING = _Pattern(_run(*_OPTION, _WORDS["opening"]))
_BOUNDARY = re.compile(r"$|[^\w]|类|的|です|だ")
_JOINING = _Pattern(
    _run(*_OPTION, [r"\([^()]{0,20}\)"])
    + _any(_WORDS["conjunctions"])
    + _run(*_OPTION, _WORDS["second"])
)
_COMMA = re.compile(rf"{_MARKS}*+,{_MARKS}*+")
_COMMA_AFTER = re.compile(rf"{_MARKS}*+(?:[,。;!?.\n]|$|都|均|两|皆|(?:or|and)\b)")
_LISTED = re.compile(r"\s?[.、:)](?!\s?[A-H](?![A-Za-z]))|(?:选项)?[是为](?!正确|最|因)")
# A capital A before a small English word is the article, unless that word goes on about the answer.
_ARTICLE = (
    r"A (?!(?:is|was|are|seems?|looks|would|will|should|could|might|may|does|has|because|since|as"
    r"|or|and|nor|more|over|rather|than|but|instead|the|relies|assumes|reflects)\b)[a-z]"
)
_LETTER = re.compile(
    rf"(?<![A-Za-z0-9])(?:(?!{_ARTICLE})[A-H]|[a-h](?=\s?(?:[.。,;:!?)\]}}\"'、]|$)))"
    r"(?!'?[A-Za-z0-9])"
)
# Small letters are mentions after these alone.
_BEFORE_SMALL = _Pattern(rf"(?:^|[(:]|{_any(*_OPTION, ['is'])}){_MARKS}*+$")


class Mention(NamedTuple):
    """Where a text mentions an answer."""

    start: int
    end: int
    value: str


class Choice(NamedTuple):
    """What a text chooses: a value, or "" where it chooses none; and the values that it denies."""

    value: str
    denied: frozenset[str]


def tidy(reply: str) -> str:
    """Put a reply into plain forms without markup; what is boxed or tagged gets a label."""
    text = plain(reply).replace("’", "'")
    text = re.sub(r"\\boxed\s?\{", " answer: {", text)
    text = re.sub(r"\\(?:text|math)[a-z]{0,8}\s?\{|\\[a-z]{1,12}|\\[\[\]()]", " ", text)
    text = re.sub(r"<\|?/?([A-Za-z_]{1,20})\|?>", r"\n\1:\n", text)
    text = re.sub(r"[*`#$|\\]|^\s?(?:[->•]\s)+", " ", text, flags=re.MULTILINE)
    text = re.sub(r"[^\S\n]+", " ", text)
    return re.sub(r"\s?\n\s*", "\n", text).strip()


# Most replies are one of a few, and an analysis reads the replies of a run many times.
@lru_cache(maxsize=2**14)
def letter(reply: str, letters: str) -> str:
    """Read the one of `letters` that a reply chooses, or "".

    A letter in a word (the A of AI) is none, nor is the article of "A woman".
    """
    text = tidy(reply)
    mentions = [
        Mention(match.start(), match.end(), match[0].upper())
        for match in _LETTER.finditer(text)
        if match[0].upper() in letters
        and (
            match[0].isupper()
            or _BEFORE_SMALL.search(text[max(0, match.start() - WINDOW) : match.start()])
        )
    ]
    return choice(text, _unlisted(text, mentions, letters)).value


def named(reply: str, names: Mapping[str, str], sure: bool = False) -> Choice:
    """Read which value of `names` a reply chooses by the words that stand for it.

    Of words that contain one another the longest is taken: 患者 is not mentioned in 非患者.

    Args:
        sure: as for `choice`.
    """
    text = tidy(reply)
    values = {plain(name).lower(): value for name, value in names.items()}
    # Only what occurs, so that few patterns are compiled.
    by_length = sorted(filter(text.lower().__contains__, values), key=len, reverse=True)
    matches = re.finditer("|".join(map(re.escape, by_length)), text.lower()) if by_length else ()
    mentions = [Mention(match.start(), match.end(), values[match[0]]) for match in matches]
    return choice(text, mentions, words=True, sure=sure)


def choice(
    text: str, mentions: Sequence[Mention], words: bool = False, sure: bool = False
) -> Choice:
    """Decide which of the mentions in a tidy text is its choice, as the module says.

    Args:
        words: the mentions are words; they open a text only where they end there, a negation
            far off denies them, and what is told or blamed of them is not about the choice.
        sure: take only what is announced, affirmed or opens the text.
    """
    denied: set[str] = set()
    ranks: list[tuple[int, Mention]] = []
    for group in _groups(text, mentions):
        first, last = group[0], group[-1]
        before = _clause_before(text, first.start)
        end = _CLAUSE.search(text, last.end, last.end + WINDOW)
        after = text[last.end : end.start() if end else last.end + WINDOW]
        if _DENYING.search(before) or _DENIED.match(after):
            denied |= {mention.value for mention in group}
        elif len({mention.value for mention in group}) == 1 and not (end and end[0] == "?"):
            rank = _rank(text, first, before, after, words)
            if rank and end and _GOING_ON.match(text, end.start()):
                rank = None
            if rank and words and _NEGATION.search(_CONTRAST.split(before)[-1]):
                denied.add(last.value)
            elif rank is not None:
                ranks.append((rank, last))
    best = [mention for rank, mention in ranks if rank == 0]
    if best and (retraction := _RETRACTION.search(text, best[-1].end)):
        best += [mention for _, mention in ranks if mention.start >= retraction.end()]
    if best or sure:
        value = _last(text, best)
    elif by_name := [mention for rank, mention in ranks if rank == 1]:
        value = _last(text, by_name)
    else:
        values = {mention.value for _, mention in ranks}
        value = values.pop() if len(values) == 1 else ""
    return Choice(value, frozenset(denied))


def _clause_before(text: str, place: int) -> str:
    return _CLAUSE.split(text[max(0, place - WINDOW) : place])[-1]


def _rank(text: str, mention: Mention, before: str, after: str, words: bool) -> int | None:
    """Tell how strong a mention is, 0 (announced) to 2; None where it is no choice."""
    if _SUPPOSING.search(before) or _SUPPOSED.match(after):
        return None
    blamed = not words and _BLAMED.search(after) and not _EXCUSED.search(after)
    if _AFFIRMING.match(after) and not blamed:
        return 0
    if blamed or (not words and _TOLD.match(after)):
        return None
    first = mention.start <= WINDOW and _BEGINNING.fullmatch(text[: mention.start])
    if _ANNOUNCING.search(before) or (first and (not words or _BOUNDARY.match(after))):
        return 0
    return 1 if _NAMING.search(before) else 2


def _last(text: str, mentions: Sequence[Mention]) -> str:
    """The last value, or "" where it contradicts an earlier one and nothing says why."""
    if not mentions:
        return ""
    last = mentions[-1]
    others = [mention for mention in mentions if mention.value != last.value]
    return last.value if not others or _TURN.search(text, others[-1].end, last.start) else ""


def _groups(text: str, mentions: Sequence[Mention]) -> list[list[Mention]]:
    """Put mentions together that are joined: A和B; A, B or C."""
    groups: list[list[Mention]] = []
    for mention in mentions:
        if groups and _joined(text, groups[-1], mention):
            groups[-1].append(mention)
        else:
            groups.append([mention])
    return groups


def _joined(text: str, group: Sequence[Mention], mention: Mention) -> bool:
    between = text[group[-1].end : mention.start]
    if len(between) > WINDOW:
        return False
    if not between.strip(" ") or _JOINING.fullmatch(between):
        return True
    is_listed = _COMMA.fullmatch(between) and _COMMA_AFTER.match(text, mention.end)
    return bool(is_listed) and not _DENYING.search(_clause_before(text, group[0].start))


def _unlisted(text: str, mentions: Sequence[Mention], letters: str) -> list[Mention]:
    """Leave out the letters of a list that says the options again: A. 男生 B. 女生."""
    listed: set[Mention] = set()
    run: list[Mention] = []
    for mention in mentions:
        before = _clause_before(text, mention.start)
        if not _LISTED.match(text, mention.end) or _ANNOUNCING.search(before):
            continue
        if len(run) < len(letters) and mention.value == letters[len(run)]:
            run.append(mention)
        else:
            run = [mention] if mention.value == letters[0] else []
        if len(run) > 1:
            listed |= set(run)
    return [mention for mention in mentions if mention not in listed]
