"""Build NLI-CoAL's sets from a language pack, and write them as the release has them.

There are evaluation sets, down-sampled sets, and bias-controlled sets to train on. The order of
words is neutral, female-stereo, male-stereo. In the design `window` of the release, word k has the
frames k to k + n - 1; in the design `full` every word has the same n frames. For example, "The
nurse is asleep." is a premise of this frame, and "The woman is asleep." a hypothesis.

Source: the order of the released files (commit 4d57afe), which come out the same to the byte.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import count, product, zip_longest
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from bench.benchmarks.nli_coal.frames import fill
from bench.benchmarks.nli_coal.items import NEUTRAL_TERMS
from bench.benchmarks.nli_coal.items import SETS as RELEASED_SETS
from bench.benchmarks.nli_coal.language_pack import (
    FRAMES,
    SPLITS,
    TYPES,
    Occupation,
    Pack,
)
from bench.core.errors import BadInput, expected

if TYPE_CHECKING:
    pass

PRO = {"female-stereo": "feminine", "male-stereo": "masculine"}
OTHER = {"feminine": "masculine", "masculine": "feminine"}
# Frames per word of the sliding window.
WINDOW = 10
# Words of each type in the small sets.
WORDS = 10
# Which pairs follow the stereotype at a rate below 1: whole words, female-stereo first (the
# release); whole words, female-stereo and male-stereo in turn; or a random sample of the frames of
# each word.
ASSIGNMENTS = ("word", "balanced", "row")
NS_WORDS = ("shipped", "trained")
STEMS = {**RELEASED_SETS, "all": "4-all", **NEUTRAL_TERMS}
TEST_NAMES = {1: "test_bias", 0: "test_nonbias"}


class Row(NamedTuple):
    """One pair.

    Attributes:
        id: numbers the pairs of an evaluation set; None in a controlled one.
        frame: its number, from 0.
    """

    id: int | None
    premise: str
    hypothesis: str
    label: str
    occupation: Occupation
    frame: int
    gender: str
    term: str


def build_eval(pack: Pack) -> dict[str, list[Row]]:
    """Build the evaluation sets of a pack: ps, as, ns, and nt if there are neutral terms.

    Each frame occurs with each of several gender words. We pair the k-th feminine and masculine
    words: this gives a row of AS the premise of the same row of PS. By default, a word has 10
    frames by the window, and all known ones in the full design.
    """
    words = pack.of_type(*TYPES)
    frames = _frames(pack, words, 0, pack.frames_per_word)
    stereotyped = [word for word in words if word.type in PRO]
    neutral = [word for word in words if word.type == "neutral"]
    genders = {
        "ps": [(word, PRO[word.type]) for word in stereotyped],
        "as": [(word, OTHER[PRO[word.type]]) for word in stereotyped],
        "ns": [(word, gender) for gender in (pack.first, OTHER[pack.first]) for word in neutral],
    }
    if pack.terms.get("neutral"):
        genders["nt"] = [(word, "neutral") for word in words]
    numbers = count()
    sets: dict[str, list[Row]] = {name: [] for name in genders}
    for name, of_set in genders.items():
        for word, gender in of_set:
            for frame, term in product(frames[word], pack.terms[gender]):
                row = _row(pack, next(numbers), "neutral", word, frame, gender, term)
                sets[name].append(row)
    return sets


def downsample(
    pack: Pack, sets: Mapping[str, Sequence[Row]], ns_words: str = "shipped"
) -> dict[str, list[Row]]:
    """Keep the rows of the first ten occupations of each stereotype, and of neutral ones.

    Args:
        ns_words: the neutral ones of the released down-sampled set (`shipped`), or of the
            controlled sets (`trained`). In the release these differ in English and Chinese, against
            the paper.
    """
    _check("ns_words", ns_words, NS_WORDS)
    named = pack.shipped if ns_words == "shipped" else pack.trained
    kept = {*_stereotyped(pack), *_neutral(pack, named)}
    return {name: [row for row in rows if row.occupation in kept] for name, rows in sets.items()}


def untrained(pack: Pack) -> list[str]:
    """List the neutral occupations of the shipped down-sampled NS that no controlled set has."""
    trained = _neutral(pack, pack.trained)
    return [word.word for word in _neutral(pack, pack.shipped) if word not in trained]


def build_controlled(
    pack: Pack,
    rate: float,
    split: str = "train",
    *,
    assignment: str = "word",
    seed: int = 0,
    compat: bool = False,
) -> list[Row]:
    """Build a set that teaches a stereotype at a known rate, a third of it with each label.

    If a pair follows the stereotype, the pro-stereotypical gender is entailed and the other one is
    contradicted; else this is reversed. Neutral occupations are neutral to both. For example, rate
    0.3 adds to the pairs that follow the stereotype at rate 0.2, and changes no other pair.

    Args:
        rate: share of the stereotyped occupations, or by `row` of their frames, that follow the
            stereotype, 0 to 1.
        split: train, dev or test. This gives the frames.
        assignment: one of `ASSIGNMENTS`.
        seed: draws frames, for `row`.
        compat: follow the release's quirks that the pack names.
    """
    _check("split", split, SPLITS)
    _check("assignment", assignment, ASSIGNMENTS)
    if not 0 <= rate <= 1:
        raise BadInput(f"rate {rate}: has to be from 0 to 1")
    stereotyped = _stereotyped(pack)
    if assignment == "balanced":
        kinds = [[word for word in stereotyped if word.type == kind] for kind in PRO]
        stereotyped = [word for turn in zip_longest(*kinds) for word in turn if word]
    neutral = _neutral(pack, pack.trained)
    frames = _frames(pack, [*stereotyped, *neutral], *pack.splits[split])
    if assignment == "row":
        follow = set()
        for word in stereotyped:
            order = list(frames[word])
            Random(f"{seed} {word.word}").shuffle(order)
            follow |= {(word, frame) for frame in order[: int(rate * len(order) + 0.5)]}
    else:
        # We round, because for example .3 * 20 need not be 6 exactly.
        words = stereotyped[: math.ceil(round(rate * len(stereotyped), 6))]
        follow = {(word, frame) for word in words for frame in frames[word]}
    is_quirky = compat and split == "dev" and "dev-feminine-first" in pack.quirks
    rows = []
    for word in [*stereotyped, *neutral]:
        for frame in frames[word]:
            follows = (word, frame) in follow
            genders = ["masculine", "feminine"]
            if is_quirky and word in stereotyped and not follows:
                genders.reverse()
            for terms in zip(*(pack.terms[gender] for gender in genders), strict=True):
                for gender, term in zip(genders, terms, strict=True):
                    is_pro = gender == PRO.get(word.type)
                    label = "entailment" if is_pro == follows else "contradiction"
                    label = label if word.type in PRO else "neutral"
                    rows.append(_row(pack, None, label, word, frame, gender, term))
    return rows


def _row(
    pack: Pack, number: int | None, label: str, word: Occupation, frame: int, gender: str, term: str
) -> Row:
    premise, hypothesis = (fill(pack.frames[frame], text) for text in (word.word, term))
    return Row(number, premise, hypothesis, label, word, frame, gender, term)


def _frames(
    pack: Pack, words: Sequence[Occupation], start: int, number: int | None
) -> dict[Occupation, range]:
    """Number each word's frames, from 0."""
    step = 1 if pack.design == "window" else 0
    known = [*pack.frames, ""].index("", start) if 0 <= start <= len(pack.frames) else start
    if number is None:
        number = WINDOW if step else known - start
    if number < 1 or start < 0:
        raise BadInput(f"frames from {start + 1}, {number} for each word: has to be 1 at least")
    needed = start + number + step * (len(words) - 1)
    if known < needed:
        raise BadInput(
            f"{pack.name}: {len(words)} words with {number} frames each ({pack.design}) need lines "
            f"{start + 1} to {needed} of {FRAMES}; line {known + 1} is missing or empty; "
            "ask for fewer frames or another start, add captions, or leave the language out"
        )
    starts = {word: start + step * k for k, word in enumerate(words)}
    return {word: range(begin, begin + number) for word, begin in starts.items()}


def _stereotyped(pack: Pack) -> list[Occupation]:
    return [word for kind in PRO for word in pack.of_type(kind)[:WORDS]]


def _neutral(pack: Pack, named: Sequence[str]) -> list[Occupation]:
    return [Occupation(word, "neutral") for word in named] or pack.of_type("neutral")[:WORDS]


def _check(what: str, value: str, allowed: Iterable[str]) -> None:
    if value not in allowed:
        raise BadInput(expected(value, list(allowed), what))
