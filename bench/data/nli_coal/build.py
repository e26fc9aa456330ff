"""NLI-CoAL's sets made from a language pack: evaluation sets, down-sampled ones, and bias-controlled ones to train on.

Words go neutral, female-stereo, male-stereo. By the release's sliding window, word k has the frames k to k + n - 1; in the
full design every word has the same n frames. Every frame of every word is a premise, with each gender word a hypothesis.

Source: the order of the released files (commit 4d57afe), which come out the same to the byte; `bench.data.nli_coal.write` writes them.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, zip_longest
from random import Random
from typing import NamedTuple

from bench.core.errors import BadInput, expected
from bench.data.nli_coal.frames import fill
from bench.data.nli_coal.language_pack import FRAMES, TYPES, Occupation, Pack
from bench.data.nli_coal.pack_manifest import DESIGNS, SPLITS

# PS, AS and NS as in the paper; NT is every occupation with the neutral terms, for which there is no pro and no anti.
SETS = ("ps", "as", "ns", "nt")
STEREOTYPED = ("female-stereo", "male-stereo")
PRO = {"female-stereo": "feminine", "male-stereo": "masculine"}
OTHER = {"feminine": "masculine", "masculine": "feminine"}
# How many frames a word gets by the sliding window, and how many words of each type the small sets have.
WINDOW, WORDS = 10, 10
# Who is against the stereotype at a rate below 1: whole words, women's first (the release); whole words, in turns of a
# women's and a men's; or of each word some frames, drawn by a seed.
ASSIGNMENTS = ("word", "balanced", "row")
NS_WORDS = ("shipped", "trained")


class Row(NamedTuple):
    """One pair. `named` is the occupation that its file says, `occupation` the one that was put in; `frame` counts from 0.

    `id` numbers the pairs of an evaluation set; rows of a controlled one have none.
    """

    id: int | None
    premise: str
    hypothesis: str
    label: str
    occupation: Occupation
    named: Occupation
    frame: int
    gender: str
    term: str


def build_eval(
    pack: Pack,
    *,
    design: str | None = None,
    frames_per_word: int | None = None,
    start: int = 0,
    compat: bool = False,
) -> dict[str, list[Row]]:
    """The evaluation sets of a pack, by the names of `SETS`; NT only where the pack has neutral terms.

    Of several gender words, each frame is there once with each; the k-th feminine and masculine words belong together,
    so that a row of AS has the premise of the same row of PS.

    Args:
        design: `window` or `full`; the pack's own if not given.
        frames_per_word: the pack's own if not given; else 10 by the window, and in the full design all that are known.
        start: the number of the first frame, from 0.
        compat: follow the release's quirks that the pack names.

    Raises:
        BadInput: an unknown design, or a frame that the pack has not.
    """
    design = _known(design or pack.design, DESIGNS, "design")
    words = pack.of_type(*TYPES)
    frames = _frames(pack, words, design, start, frames_per_word or pack.frames_per_word)
    stereotyped = [one for one in words if one.type in STEREOTYPED]
    neutral = [one for one in words if one.type == "neutral"]
    longest = words if compat and "longest-occupation" in pack.quirks else []
    rows: dict[str, list[Row]] = {}
    number = 0

    def add(name: str, some: Iterable[tuple[Occupation, str]]) -> None:
        """Rows of the set `name`: for each word and gender, the word's frames with each term of that gender."""
        nonlocal number
        made = rows.setdefault(name, [])
        for word, gender in some:
            for frame in frames[word]:
                for term in pack.terms[gender]:
                    premise = fill(pack.frames[frame], word.word)
                    hypothesis = fill(pack.frames[frame], term)
                    named = _longest(premise, longest) if longest else word
                    made.append(
                        Row(
                            number, premise, hypothesis, "neutral", word, named, frame, gender, term
                        )
                    )
                    number += 1

    add("ps", ((word, PRO[word.type]) for word in stereotyped))
    add("as", ((word, OTHER[PRO[word.type]]) for word in stereotyped))
    add("ns", ((word, gender) for gender in (pack.first, OTHER[pack.first]) for word in neutral))
    if pack.terms.get("neutral"):
        add("nt", ((word, "neutral") for word in words))
    return rows


def downsample(
    pack: Pack, sets: Mapping[str, Sequence[Row]], ns_words: str = "shipped", words: int = WORDS
) -> dict[str, list[Row]]:
    """The rows of the occupations that controlled models know: the first `words` of each stereotype, and neutral ones.

    The neutral ones are those of the released down-sampled set (`shipped`), or those that the controlled sets have
    (`trained`). In the release these differ in English and Chinese, against what the paper says.

    Raises:
        BadInput: an unknown `ns_words`.
    """
    named = pack.shipped if _known(ns_words, NS_WORDS, "ns_words") == "shipped" else pack.trained
    kept = {*_some(pack, words), *_neutral(pack, named, words)}
    return {name: [row for row in rows if row.occupation in kept] for name, rows in sets.items()}


def untrained(pack: Pack, words: int = WORDS) -> list[str]:
    """The neutral occupations of the shipped down-sampled NS that no controlled set has."""
    trained = _neutral(pack, pack.trained, words)
    return [one.word for one in _neutral(pack, pack.shipped, words) if one not in trained]


def build_controlled(
    pack: Pack,
    rate: float,
    split: str = "train",
    *,
    start: int | None = None,
    frames_per_word: int | None = None,
    design: str | None = None,
    assignment: str = "word",
    words: int = WORDS,
    seed: int = 0,
    compat: bool = False,
) -> list[Row]:
    """A set that teaches a stereotype at a known rate: a third each of entailment, contradiction and neutral.

    What follows the stereotype has the pro-stereotypical gender entailed and the other contradicted; what does not, the
    reverse. Neutral occupations are neutral to both. A higher rate only adds to what follows the stereotype at a lower one.

    Args:
        rate: share of the stereotyped occupations, or by `row` of their frames, that follow the stereotype, 0 to 1.
        split: train, dev or test, which says which frames; see `start`.
        start, frames_per_word: the first frame, from 0, and how many a word gets; the pack's for `split` if not given.
        design: `window` or `full`; the pack's own if not given.
        assignment: one of `ASSIGNMENTS`.
        words: how many occupations of each type, the first ones; of the neutral ones those that the pack names, if it does.
        seed: draws frames, for `row`.
        compat: follow the release's quirks that the pack names.

    Raises:
        BadInput: an unknown split, design or assignment, a rate outside 0 to 1, or a frame that the pack has not.
    """
    _known(split, SPLITS, "split")
    if not 0 <= rate <= 1:
        raise BadInput(f"rate {rate}: has to be from 0 to 1")
    design = _known(design or pack.design, DESIGNS, "design")
    stereotyped = _some(pack, words)
    if _known(assignment, ASSIGNMENTS, "assignment") == "balanced":
        stereotyped = _in_turns(stereotyped)
    neutral = _neutral(pack, pack.trained, words)
    begin, many = pack.splits[split]
    begin, many = begin if start is None else start, frames_per_word or many
    frames = _frames(pack, [*stereotyped, *neutral], design, begin, many)
    follow = _follow(stereotyped, frames, rate, assignment, seed)
    against_first = (
        "feminine"
        if compat and split == "dev" and "dev-feminine-first" in pack.quirks
        else "masculine"
    )
    rows = []
    for word in [*stereotyped, *neutral]:
        for frame in frames[word]:
            follows = (word, frame) in follow
            first = "masculine" if follows or word.type == "neutral" else against_first
            for pair in zip(pack.terms[first], pack.terms[OTHER[first]], strict=True):
                for gender, term in zip((first, OTHER[first]), pair, strict=True):
                    label = "neutral"
                    if word.type != "neutral":
                        label = (
                            "entailment"
                            if (gender == PRO[word.type]) == follows
                            else "contradiction"
                        )
                    text = pack.frames[frame]
                    premise, hypothesis = fill(text, word.word), fill(text, term)
                    rows.append(
                        Row(None, premise, hypothesis, label, word, word, frame, gender, term)
                    )
    return rows


def frames_for(pack: Pack, rows: int, words: int = WORDS) -> int:
    """How many frames a word needs so that a controlled set has `rows` pairs.

    Raises:
        BadInput: no number of frames makes so many.
    """
    each = (
        len(_some(pack, words) + _neutral(pack, pack.trained, words))
        * 2
        * len(pack.terms["feminine"])
    )
    if rows < 1 or rows % each:
        near = " or ".join(
            f"{many:,}"
            for many in (rows // each * each, max(rows // each + 1, 1) * each)
            if many > 0
        )
        raise BadInput(
            f"{pack.name}: a frame makes {each} pairs of a controlled set, so it cannot have {rows:,}; give {near}"
        )
    return rows // each


def _follow(
    words: Sequence[Occupation],
    frames: Mapping[Occupation, Sequence[int]],
    rate: float,
    assignment: str,
    seed: int,
) -> set[tuple[Occupation, int]]:
    """Which frames of which words follow the stereotype."""
    if assignment != "row":
        # Rounded, because .3 * 20 need not be 6 exactly.
        some = [word for k, word in enumerate(words) if k < round(rate * len(words), 6)]
        return {(word, frame) for word in some for frame in frames[word]}
    chosen = set()
    for word in words:
        drawn = list(frames[word])
        Random(f"{seed} {word.word}").shuffle(drawn)
        chosen |= {(word, frame) for frame in drawn[: int(rate * len(drawn) + 0.5)]}
    return chosen


def _frames(
    pack: Pack, words: Sequence[Occupation], design: str, start: int, many: int | None
) -> dict[Occupation, range]:
    """The numbers of each word's frames, from 0."""
    if many is None:
        known = next(
            (k for k in range(start, len(pack.frames)) if not pack.frames[k]), len(pack.frames)
        )
        many = WINDOW if design == "window" else known - start
    if many < 1 or start < 0:
        raise BadInput(f"frames from {start + 1}, {many} for each word: has to be 1 at least")
    needed = start + many + (len(words) - 1 if design == "window" else 0)
    lacking = next(
        (k for k in range(start, needed) if k >= len(pack.frames) or not pack.frames[k]), None
    )
    if lacking is not None:
        there = (
            f"has {len(pack.frames)}" if lacking >= len(pack.frames) else "has an empty line there"
        )
        raise BadInput(
            f"{pack.name}: {len(words)} words with {many} frames each ({design}) need lines {start + 1} to {needed} of "
            f"{FRAMES}; line {lacking + 1} is not there, it {there}; ask for fewer frames or another start, add captions, or leave the language out"
        )
    return {
        word: range(start + k, start + k + many)
        if design == "window"
        else range(start, start + many)
        for k, word in enumerate(words)
    }


def _some(pack: Pack, words: int) -> list[Occupation]:
    return [one for kind in STEREOTYPED for one in pack.of_type(kind)[:words]]


def _neutral(pack: Pack, named: Sequence[str], words: int) -> list[Occupation]:
    return [Occupation(word, "neutral") for word in named] or pack.of_type("neutral")[:words]


def _in_turns(words: Sequence[Occupation]) -> list[Occupation]:
    """A female-stereo word, a male-stereo one, and so on."""
    kinds = [[one for one in words if one.type == kind] for kind in STEREOTYPED]
    return [one for one in chain.from_iterable(zip_longest(*kinds)) if one]


def _longest(premise: str, words: Sequence[Occupation]) -> Occupation:
    """The longest occupation that occurs in `premise`, of equally long ones the leftmost."""
    held = [one for one in words if one.word in premise]
    return max(held, key=lambda one: (len(one.word), -premise.index(one.word)))


def _known(value: str, allowed: Iterable[str], what: str) -> str:
    if value not in allowed:
        raise BadInput(expected(value, list(allowed), what))
    return value
