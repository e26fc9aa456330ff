"""Build NLI-CoAL's sets from a language pack, and write them as the release has them.

There are evaluation sets, down-sampled ones, and bias-controlled ones to train on. Words go
neutral, female-stereo, male-stereo. By the release's sliding window, word k has the frames k to
k + n - 1; in the full design every word has the same n frames. Every frame of every word is a
premise, with each gender word a hypothesis.

Source: the order of the released files (commit 4d57afe), which come out the same to the byte.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from random import Random
from typing import NamedTuple

from bench.core.errors import BadInput, RunFailed, expected
from bench.core.files import atomic_write
from bench.data import MANIFEST
from bench.data.dataset import cldr_name
from bench.data.fetch import WrittenFile, git_blob_id, released_ids
from bench.data.nli_coal import CATEGORIES, NEUTRAL_TERMS
from bench.data.nli_coal import SETS as RELEASED_SETS
from bench.data.nli_coal.frames import fill
from bench.data.nli_coal.language_pack import (
    DESIGNS,
    FRAMES,
    PACK,
    SPLITS,
    TYPES,
    Occupation,
    Pack,
    shuffled,
    write_pack,
)
from bench.data.readers import to_toml

# PS, AS and NS as in the paper; NT is every occupation with the neutral terms.
SETS = ("ps", "as", "ns", "nt")
STEREOTYPED = ("female-stereo", "male-stereo")
PRO = {"female-stereo": "feminine", "male-stereo": "masculine"}
OTHER = {"feminine": "masculine", "masculine": "feminine"}
# Frames per word of the sliding window, and words of each type in the small sets.
WINDOW, WORDS = 10, 10
# Who is against the stereotype at a rate below 1: whole words, female-stereo first (the release);
# whole words, female-stereo and male-stereo in turn; or some frames of each word, drawn by a seed.
ASSIGNMENTS = ("word", "balanced", "row")
NS_WORDS = ("shipped", "trained")
STEMS = {**RELEASED_SETS, "all": "4-all", **NEUTRAL_TERMS}
TEST_NAMES = {1: "test_bias", 0: "test_nonbias"}
RATES = tuple(k / 10 for k in range(11))


class Row(NamedTuple):
    """One pair.

    Attributes:
        id: numbers the pairs of an evaluation set; None in a controlled one.
        occupation: the one in the sentence; `named` is the one that its file says.
        frame: its number, from 0.
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
    """Build the evaluation sets of a pack, by the names of `SETS`; NT needs neutral terms.

    Each frame occurs with each of several gender words; the k-th feminine and masculine words
    belong together, so that a row of AS has the premise of the same row of PS.

    Args:
        design: `window` or `full`; the pack's own if not given.
        frames_per_word: default: the pack's own, else 10 by the window, and in the full design all
            known frames.
        start: the number of the first frame, from 0.
        compat: follow the release's quirks that the pack names.

    Raises:
        BadInput: an unknown design, or a frame that the pack does not have.
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
        """Add each word's frames with each term of its gender to the set `name`."""
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
    """Keep the rows of the first `words` occupations of each stereotype, and of neutral ones.

    Args:
        ns_words: the neutral ones of the released down-sampled set (`shipped`), or of the
            controlled sets (`trained`). In the release these differ in English and Chinese, against
            the paper.

    Raises:
        BadInput: an unknown `ns_words`.
    """
    named = pack.shipped if _known(ns_words, NS_WORDS, "ns_words") == "shipped" else pack.trained
    kept = {*_some(pack, words), *_neutral(pack, named, words)}
    return {name: [row for row in rows if row.occupation in kept] for name, rows in sets.items()}


def untrained(pack: Pack, words: int = WORDS) -> list[str]:
    """List the neutral occupations of the shipped down-sampled NS that no controlled set has."""
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
    """Build a set that teaches a stereotype at a known rate, a third of it with each label.

    What follows the stereotype has the pro-stereotypical gender entailed and the other
    contradicted; what does not, the reverse. Neutral occupations are neutral to both. A higher rate
    only adds to what follows the stereotype at a lower one.

    Args:
        rate: share of the stereotyped occupations, or by `row` of their frames, that follow the
            stereotype, 0 to 1.
        split: train, dev or test, which says which frames; see `start`.
        start, frames_per_word: the first frame, from 0, and frames per word; default: the pack's
            for `split`.
        design: `window` or `full`; the pack's own if not given.
        assignment: one of `ASSIGNMENTS`.
        words: number of occupations of each type: the first ones, or the neutral ones that the pack
            names.
        seed: draws frames, for `row`.
        compat: follow the release's quirks that the pack names.

    Raises:
        BadInput: an unknown split, design or assignment, a rate outside 0 to 1, or a frame that the
            pack does not have.
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
    """Count the frames that a word needs so that a controlled set has `rows` pairs.

    Raises:
        BadInput: no number of frames makes so many pairs.
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
            f"{pack.name}: a frame makes {each} pairs of a controlled set, so it cannot have "
            f"{rows:,}; give {near}"
        )
    return rows // each


def _follow(
    words: Sequence[Occupation],
    frames: Mapping[Occupation, Sequence[int]],
    rate: float,
    assignment: str,
    seed: int,
) -> set[tuple[Occupation, int]]:
    """Choose the frames of words that follow the stereotype."""
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
    """Number each word's frames, from 0."""
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
            f"{pack.name}: {len(words)} words with {many} frames each ({design}) need lines "
            f"{start + 1} to {needed} of {FRAMES}; line {lacking + 1} is not there, it {there}; "
            "ask for fewer frames or another start, add captions, or leave the language out"
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
    """Order words in turn: a female-stereo one, a male-stereo one, and so on."""
    kinds = [[one for one in words if one.type == kind] for kind in STEREOTYPED]
    return [one for one in chain.from_iterable(zip_longest(*kinds)) if one]


def _longest(premise: str, words: Sequence[Occupation]) -> Occupation:
    """Find the longest occupation in `premise`, the leftmost of equally long ones."""
    held = [one for one in words if one.word in premise]
    return max(held, key=lambda one: (len(one.word), -premise.index(one.word)))


def _known(value: str, allowed: Iterable[str], what: str) -> str:
    if value not in allowed:
        raise BadInput(expected(value, list(allowed), what))
    return value


def build(
    packs: Sequence[Pack],
    out: str | Path,
    *,
    design: str | None = None,
    frames_per_word: int | None = None,
    ns_words: str = NS_WORDS[0],
    rates: Sequence[float] = (),
    splits: Sequence[str] = ("train", "dev"),
    start: int | None = None,
    rows: int | None = None,
    assignment: str = ASSIGNMENTS[0],
    seed: int | None = None,
    compat: bool = False,
) -> list[WrittenFile]:
    """Write all sets of `packs` to `out`/LANGUAGE_vVERSION/, with a copy of each pack.

    Evaluation sets, complete and down-sampled, are always written; controlled ones at `rates` for
    each of `splits`.

    Args:
        design, frames_per_word, compat: see `build_eval`.
        ns_words: see `downsample`.
        start, assignment: see `build_controlled`.
        rows: number of pairs of a controlled set; default: what the pack's frames per word make.
        seed: shuffles the words of each type, and draws frames for the assignment by `row`;
            default: the pack's order of words.

    Raises:
        BadInput: an argument is wrong, or a pack has too few frames for it; nothing is written.
        RunFailed: the files cannot be written.
    """
    out = Path(out)
    packs = [pack if seed is None else shuffled(pack, seed) for pack in packs]
    sets: list[tuple[Path, list[Row]]] = []
    for pack in packs:
        complete = build_eval(pack, design=design, frames_per_word=frames_per_word, compat=compat)
        sets += _eval_files(pack, complete, "all-words")
        sets += _eval_files(pack, downsample(pack, complete, ns_words), "downsamp")
        per_word = None if rows is None else frames_for(pack, rows)
        for split in splits:
            for rate in rates:
                controlled = build_controlled(
                    pack,
                    rate,
                    split,
                    start=start,
                    frames_per_word=per_word,
                    design=design,
                    assignment=assignment,
                    seed=seed or 0,
                    compat=compat,
                )
                sets.append((_controlled_path(pack, rate, split), controlled))
    released = released_ids("nli_coal")
    options = {
        "design": design or "",
        "frames_per_word": frames_per_word or 0,
        "ns_words": ns_words,
        "rates": list(rates),
        "splits": list(splits),
        "rows": rows or 0,
        "assignment": assignment,
        "seed": "" if seed is None else seed,
        "compat": compat,
    }
    written = []
    try:
        for name, pairs in sets:
            path = out / name
            lines = [json.dumps(_json(row), ensure_ascii=False) + "\n" for row in pairs]
            atomic_write(path, "".join(lines))
            known = released.get(name.as_posix(), "")
            written.append(WrittenFile(path, len(lines), git_blob_id(path), known))
        for pack in packs:
            write_pack(pack, out / _folder(pack) / PACK)
        equal = sum(file.as_released for file in written)
        manifest: dict[str, object] = {
            name: ", ".join(dict.fromkeys(getattr(pack, name) for pack in packs))
            for name in ("name", "version", "licence", "language")
        }
        manifest["note"] = (
            f"built from language packs; {equal} of {len(written)} files equal the release"
        )
        manifest["build"] = options
        if labels := _labels([pack.language for pack in packs]):
            manifest["categories"] = labels
        atomic_write(out / MANIFEST, to_toml(manifest))
    except OSError as error:
        raise RunFailed(f"{out}: the sets could not be written there ({error})") from None
    return written


def _folder(pack: Pack) -> Path:
    return Path(f"{pack.language}_v{pack.version}")


def _eval_files(
    pack: Pack, sets: Mapping[str, list[Row]], variant: str
) -> list[tuple[Path, list[Row]]]:
    """Name the files of evaluation sets as the release does; 4-all is PS, AS and NS together."""
    suffix = "-downsamp" if variant == "downsamp" else ""
    if pack.language == "ja" and variant == "all-words":
        variant = "untokenized"
    folder = _folder(pack) / f"bias-eval-set_v{pack.version}" / variant
    together = {**sets, "all": [row for name in ("ps", "as", "ns") for row in sets[name]]}
    return [
        (folder / f"{stem}{suffix}_v{pack.version}.json", together[name])
        for name, stem in STEMS.items()
        if name in together
    ]


def _controlled_path(pack: Pack, rate: float, split: str) -> Path:
    """Name the file of a controlled set: `train_r-3` for a rate of .3, `test_bias`."""
    name = f"{split}_r-{round(rate * 10, 4):g}"
    if split == "test" and rate in (0, 1):
        name = TEST_NAMES[int(rate)]
    folder = _folder(pack) / f"bias-controlled-set_v{pack.version}"
    folder = folder / "untokenized" if pack.language == "ja" else folder
    return folder / split / f"{name}.json"


def _labels(languages: Iterable[str]) -> dict[str, dict[str, str]]:
    """Name the languages that the release does not have, in English and in themselves."""
    named = {code: cldr_name(code, "en") for code in languages if code not in CATEGORIES}
    return {
        code: {"en": name, code: cldr_name(code, code) or name}
        for code, name in named.items()
        if name
    }


def _json(row: Row) -> dict[str, object]:
    pair = {"sentence1": row.premise, "sentence2": row.hypothesis, "label": row.label}
    if row.id is None:
        return {**pair}
    return {"id": row.id, **pair, "occ_word": row.named.word, "occ_type": row.named.type}
