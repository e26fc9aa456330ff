"""Reading the letter of a chosen option out of a free reply."""

import re
import unicodedata

_JOINED = r"(?!\s*(?:和|或|与|及|、|/|&|and\b|or\b)\s*[A-H](?![A-Za-z0-9]))"


def letter(reply: str, letters: str) -> str:
    """The one of `letters` that `reply` chooses, or "" where it chooses none or cannot be told.

    In this order: the reply is a single letter; a letter after a word like 答案 or "answer"; a letter at the start; one
    letter alone anywhere. A letter inside a word (the A of AI) or joined with another one (A和B) is no choice, nor is
    the article of "A woman". Full-width forms count as their plain ones.
    """
    text = unicodedata.normalize("NFKC", reply).strip()
    group = f"[{letters}]"
    if re.fullmatch(rf"[\s(\[{{\"'`*]*({group})[\s)\]}}\"'`*.。,:;!]*", text, re.IGNORECASE):
        return re.search(group, text, re.IGNORECASE)[0].upper()  # type: ignore[index]
    named = re.search(
        rf"(?:答案|选项|选择|选|answer|option)(?:\s|is|是|为|应该|应当|会|[:\"'*(\[])*({group}){_bounded()}",
        text,
        re.IGNORECASE,
    )
    if named:
        return named[1].upper()
    leading = re.match(rf"[\s(\[\"'*]*({group}){_bounded()}(?!\s+[a-z])", text)
    if leading:
        return leading[1]
    alone = set(re.findall(rf"(?<![A-Za-z0-9])({group})(?![A-Za-z0-9'])(?!\s+(?!or\b|and\b)[a-z])", text))
    return alone.pop() if len(alone) == 1 else ""


def _bounded() -> str:
    return rf"(?![A-Za-z0-9'])(?i:{_JOINED})"
