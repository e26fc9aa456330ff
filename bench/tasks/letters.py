"""Reading the letter of a chosen option out of a free reply."""

import re

from bench.tasks.replies import plain

# What may join two letters, so that neither is the choice: A和B, A、选项B, A or B.
_CONJUNCTION = r"(?:和|或|与|及|还是|、|，|,|/|&|and\b|or\b|nor\b)"
_JOINED = rf"(?!\s*+(?:{_CONJUNCTION}\s*+)?+(?:选项|option\s)?+\s*+(?-i:[A-H])(?![A-Za-z0-9]))"
_ALONE = r"(?![A-Za-z0-9'])"
_BOUNDED = rf"{_ALONE}(?i:{_JOINED})"
# A capital A before a small English word on its line is the article, unless that word goes on about the answer.
_ARTICLE = (
    r"A(?=[^\S\n]++(?!(?:is|was|are|seems|would|will|should|because|since|as|has|or|and|nor|more)\b)[a-z])"
)
_NAMED = r"(?:答案|选项|选择|选|answer|option|choice)(?:\s|is|是|为|应该|应当|会|[:\"'*(\[])*+"
# What says of letters that they are not the answer, before them or behind.
_NOT = (
    r"(?:(?:并?不是|并非|不[选会应该能可]{1,4}选?|而非|排除|(?i:(?<![a-z])(?:not|isn't|nor|neither|exclude|rule\sout|reject)\s(?:(?:option|choose|pick|select)\s)?))"
    r"(?:答案|选项)?[\s\"'*(]{0,4})"
)
_WRONG = (
    r"[\s\"'*)]{0,4}(?:选项)?(?:不对|不正确|不合[适理]|是?错误|是?错的|错了|(?:不是|并非)(?:正确|最|答案|对的)"
    r"|(?i:is|seems)\s(?i:wrong|incorrect|false|(?:not|n't)\s(?:the|a|right|correct|true)(?![a-z])))"
)


def letter(reply: str, letters: str) -> str:
    """The one of `letters` that `reply` chooses, or "" where it chooses none or cannot be told.

    In this order: the reply is a single letter; a letter after a word like 答案 or "answer"; a letter at the start; one
    letter alone anywhere. A letter inside a word (the A of AI) or joined with another one (A和B) is no choice, nor is
    the article of "A woman", nor the first letter of a reply that lists the options again, nor one that is said not to be
    the answer (不是A, A不对, not A). Full-width forms count as
    their plain ones.
    """
    text = plain(reply).strip()
    group = f"[{letters}]"
    if re.fullmatch(rf"[\s(\[{{\"'`*]*({group})[\s)\]}}\"'`*.。,:;!]*", text, re.IGNORECASE):
        return re.search(group, text, re.IGNORECASE)[0].upper()  # type: ignore[index]
    # A reply that lists the options again chooses by what it says besides.
    listed = rf"^[^\S\n]*+(?:选项\s*+)?+({group})\s*+[.。、:)].*+$"
    if len(set(re.findall(listed, text, re.MULTILINE))) > 1:
        text = re.sub(listed, "", text, flags=re.MULTILINE)
    several = rf"(?!{_ARTICLE}){group}(?:\s?{_CONJUNCTION}\s?(?:选项)?{group}){{0,7}}+(?![A-Za-z0-9])"
    # What stands in its place joins nothing.
    text = re.sub(rf"{_NOT}{several}|(?<![A-Za-z0-9]){several}{_WRONG}", "¬", text)
    # A small letter counts only where nothing but a mark follows: "answer: a man" has an article.
    small = rf"[{letters.lower()}](?=\s*(?:[.。,;:!)\]]|$))"
    named = re.search(rf"(?i:{_NAMED})(?!{_ARTICLE})({group}|{small}){_ALONE}", text)
    if named:
        return named[1].upper() if re.match(rf"(?i:{_JOINED})", text[named.end() :]) else ""
    leading = re.match(rf"[\s(\[\"'*]*(?!{_ARTICLE})({group}){_BOUNDED}", text)
    if leading:
        return leading[1]
    alone = set(re.findall(rf"(?<![A-Za-z0-9])(?!{_ARTICLE})({group})(?![A-Za-z0-9'])", text))
    return alone.pop() if len(alone) == 1 else ""
