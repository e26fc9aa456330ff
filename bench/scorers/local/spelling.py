"""Find the token ids of options as a model would write them after a text.

We encode an option together with its text, because tokenizers join text across the boundary. For
example, a SentencePiece model continues `ASSISTANT: ` by `▁A`, which begins with the blank, and not
by `A` after a `▁`; then this option begins before the blank.

A letter to choose has several spellings: `A`, ` A` and the full-width `Ａ`. We sum the
probabilities of the spellings that are a single token.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, combinations
from typing import Any, NamedTuple

import numpy as np

from bench.scorers.base import Options, Unanswerable, each

LETTER = re.compile("[A-Za-z]")
# The distance from a letter to its full-width form.
FULL_WIDTH = ord("Ａ") - ord("A")
# Tokenizers join blanks with the word after them; line breaks end with the prompt.
BLANKS = re.compile(r"[^\S\r\n]+\Z")

Ids = tuple[int, ...]


class Spelled(NamedTuple):
    """A text and its options as tokens."""

    before: Ids  # the text, without a trailing blank if the options' tokens include it
    options: list[list[Ids]]  # the spellings of each option, to sum their probabilities


def spell(
    model: Any,
    encode: Callable[[Sequence[str]], list[list[int]]],
    texts: Sequence[str],
    options: Options,
    n_more: int,
) -> list[Spelled]:
    """Encode the options of each text, and check that a model can read them.

    Args:
        model: a `LocalModel`.
        encode: encodes texts before a continuation.
        options: of all texts, or of each.
        n_more: how many more tokens the model reads than those of a text with an option.
    """
    choices = each(options, len(texts))
    spellings = [_spellings(options) for options in choices]
    pairs = list(zip(texts, spellings, strict=True))
    strings = {BLANKS.sub("", text): None for text in texts} | dict.fromkeys(texts)
    strings |= {text + s: None for text, options in pairs for option in options for s in option}
    ids = dict(zip(strings, map(tuple, encode(list(strings))), strict=True))
    result = [_spell(model.tokenizer, *pair, ids) for pair in pairs]
    Unanswerable.check(model.id, list(map(_problem, result, choices)))
    complete = [[(*before, *ids) for ids in chain(*spelt)] for before, spelt in result]
    longest = [max(map(len, rows)) + n_more for rows in complete]
    model.check_texts([set(chain(*rows)) for rows in complete], longest, "the text with its reply")
    return result


def option_logprobs(
    items: Sequence[Spelled], sums: Iterator[float], options: Sequence[Any]
) -> np.ndarray:
    """Return the log of the summed probabilities of each option's spellings: float64 [n, k].

    `sums` yields those of the spellings; without items, `options` has the number of options.
    """
    with np.errstate(invalid="ignore"):  # NaN stays NaN
        values = [
            [np.logaddexp.reduce([next(sums) for _ in option]) for option in item.options]
            for item in items
        ]
    return np.reshape(values, (len(items), len(values[0] if items else options)))


def _spellings(options: Sequence[str]) -> list[tuple[str, ...]]:
    if all(map(LETTER.fullmatch, options)):
        return [(letter, f" {letter}", chr(ord(letter) + FULL_WIDTH)) for letter in options]
    return [(option,) for option in options]


def _spell(
    tokenizer: Any, text: str, options: Sequence[tuple[str, ...]], ids: Mapping[str, Ids]
) -> Spelled:
    boundaries = ids[text], ids[BLANKS.sub("", text)]
    common = (
        before
        for before in boundaries
        if all(_after(before, ids[text + option]) for option, *_ in options)
    )
    before = next(common, ids[text])
    spellings: list[list[Ids]] = []  # of each option, its own first
    for option, *alternatives in options:
        tokens = _after(before, ids[text + option])
        if ids[text + option] == ids[text]:
            tokens = ()  # the tokenizer drops all of its letters
        elif not tokens:  # without a common boundary, we encode an option by itself
            tokens = tuple(tokenizer(option, add_special_tokens=False)["input_ids"])
        further = [_after(before, ids[text + alternative]) for alternative in alternatives]
        spellings.append([tokens, *further])
    # Exclude tokens that several letters share, for example the token for unknown words.
    count = Counter(chain(*map(set, spellings)))
    count[(tokenizer.unk_token_id,)] = 2
    rows = []
    for row in spellings:
        singles: set[Ids] = {ids for ids in row if len(ids) == 1 and count[ids] == 1}
        rows.append(sorted(singles) or row[:1])
    return Spelled(before, rows)


def _after(before: Ids, continued: Ids) -> Ids:
    """Return the tokens after `before`; none if the tokenizer joined some across the boundary."""
    return continued[len(before) :] if continued[: len(before)] == before else ()


def _problem(spelled: Spelled, options: Sequence[str]) -> str:
    """Return the reason why the tokens do not distinguish the options; "" if they do."""
    rows = list(zip(options, spelled.options, strict=True))
    for option, spellings in rows:
        if spellings == [()]:
            return f"the tokenizer leaves nothing of the option {option!r}"
    for (a, x), (b, y) in combinations(rows, 2):
        if x == y and a != b:
            return f"the options {a!r} and {b!r} have the same tokens"
    return ""
