"""Audit a language pack, and find the captions that make frames by its filter.

The reader decides when to refuse a pack; this module only lists the reasons.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import takewhile
from pathlib import Path

import pandas as pd

from bench.benchmarks.nli_coal.audit import refused
from bench.benchmarks.nli_coal.build import build_controlled, build_eval
from bench.benchmarks.nli_coal.frames import SLOT, found_in, gender_words, judged, pattern
from bench.benchmarks.nli_coal.items import CATEGORIES
from bench.benchmarks.nli_coal.language_pack import (
    FRAMES,
    MANIFEST,
    OCCUPATIONS,
    SPLITS,
    TERMS,
    TYPES,
    Pack,
    pack_errors,
)
from bench.core.errors import BadInput
from bench.data import audit
from bench.data.audit import Finding, show_cell
from bench.data.dataset import cldr_name
from bench.data.readers import as_path, read_lines

# A property of at least this share of the frames is usual.
USUAL = 0.8
# A stereotype with less than this share of the stereotyped words hardly counts in a score.
SMALL = 0.25
QUOTED = re.compile(r"^[\"'“”„«»]|[\"'“”„«»]$")
SIGN = re.compile(r"[^\w\s]")


def check(folder: str | Path, frames: bool = True) -> pd.DataFrame:
    """List everything found in a pack, in the columns of `Finding`; `row` is a line.

    Args:
        frames: whether to audit them; without, they are still to be made of captions.
    """
    folder = as_path(folder)
    if not folder.is_dir():
        raise BadInput(f"{folder}: no such folder; a language pack is a folder")
    pack, errors = pack_errors(folder, frames)
    findings = [refused(folder, error) for error in errors]
    if pack and frames:
        findings += [*_too_few_frames(pack), *_frames(pack)]
    if pack:
        findings += [*_words(pack), *_counts(pack)]
    return audit.to_table(findings)


def sift(pack: Pack, paths: Sequence[str | Path]) -> pd.DataFrame:
    """Apply the pack's filter to captions.

    Returns:
        One row per line: `file`, `line`, `caption`, `frame` ("" if it is excluded) and `why` it is
        excluded. A frame that an earlier caption made is excluded too.
    """
    words = gender_words(pack.terms)
    seen: set[str] = set()
    rows = []
    for path in map(as_path, paths):
        for number, line in read_lines(path):
            caption = line.rstrip("\r")
            frame, reason = judged(caption, words, pack.match, pack.captions)
            if frame in seen:
                frame, reason = "", "makes a frame that an earlier one makes"
            seen |= {frame} - {""}
            rows.append((path.name, number, caption, frame, reason))
    return pd.DataFrame(rows, columns=["file", "line", "caption", "frame", "why"])


def _odd(file: str, column: str, what: str, value: str = "", row: int = 0) -> Finding:
    return Finding(file, row, column, "odd", what, show_cell(value))


def _too_few_frames(pack: Pack) -> Iterator[Finding]:
    """Report the sets that cannot be built."""
    try:
        build_eval(pack)
    except BadInput as error:
        yield Finding(FRAMES, 0, "", "refused", str(error).removeprefix(f"{pack.name}: "))
    impossible = []
    for split in SPLITS:
        try:
            build_controlled(pack, 0, split)
        except BadInput:
            impossible.append(split)
    if impossible:
        sets = f"the controlled sets {', '.join(impossible)}; evaluation sets need none of them"
        yield _odd(FRAMES, "", f"has too few frames for {sets}")


def _frames(pack: Pack) -> Iterator[Finding]:
    frames = [frame for frame in pack.frames if frame]
    if pack.match == "word":
        without_blanks = sum(" " not in frame.replace(f" {SLOT} ", SLOT) for frame in frames)
        if without_blanks > USUAL * len(frames):
            what = "finds gender words as whole words, but most frames have no blanks"
            yield _odd(MANIFEST, "match", f'{what}; write match = "substring"', pack.match)
        gendered = [*gender_words(pack.terms), *pack.captions.without]
        for term in gendered if not pack.verbatim else ():
            longer = re.compile(rf"(?<![\w-]){re.escape(term)}\w+", re.IGNORECASE)
            held = [match[0] for frame in frames if (match := longer.search(frame))]
            if held:
                what = (
                    f"begins longer words in {len(held):,} frames, such as {held[0]!r}; if these "
                    'tell a gender, add them to `without`, or write match = "substring"'
                )
                yield _odd(TERMS, "word", what, term)
    signs = {frame: _end(frame.replace(SLOT, "x")) for frame in frames}
    end, count = Counter(signs[frame] for frame in frames).most_common(1)[0]
    is_usual = count > USUAL * len(frames)
    words = [occupation.word for occupation in pack.occupations]
    first: dict[str, int] = {}
    for line, frame in enumerate(pack.frames, start=1):
        if not frame:
            continue
        word = found_in(frame.replace(SLOT, "\0"), words, pack.match)
        earlier = first.setdefault(" ".join(frame.casefold().split()), line)
        besides = f"holds the occupation {word!r} besides the slot, so that two people may be meant"
        rules = {
            f"does not end with {end!r} as most frames do": is_usual and signs[frame] != end,
            "has several slots, which are all filled with one word": frame.count(SLOT) > 1,
            besides: word,
            f"differs from line {earlier} in case or blanks alone": earlier != line,
        }
        yield from (_odd(FRAMES, "", what, frame, line) for what, is_odd in rules.items() if is_odd)


def _end(frame: str) -> str:
    """Return the signs after the last word; a search from the left could take long."""
    return "".join(takewhile(SIGN.match, reversed(frame)))[::-1]


def _words(pack: Pack) -> Iterator[Finding]:
    """Report the language, its occupations, and gender words."""
    types = Counter(occupation.type for occupation in pack.occupations)
    stereotyped = types["female-stereo"] + types["male-stereo"]
    words = [occupation.word for occupation in pack.occupations]
    folded = Counter(map(str.casefold, words))
    terms = [term for of_gender in pack.terms.values() for term in of_gender]
    gendered = gender_words(pack.terms)
    neutral = [term for term in terms if term not in gendered]
    quotes = "has quotation marks, which are in every sentence with it"
    # The file and column of each rule, the odd values, and why they are odd.
    rules: list[tuple[str, str, Iterable[str], str]] = [
        (
            MANIFEST,
            "language",
            {pack.language} - {*CATEGORIES} if not cldr_name(pack.language, "en") else (),
            "is a language that has no name in CLDR; write [categories] into dataset.toml of the "
            "sets, so that pictures name it",
        )
    ]
    for kind in ("female-stereo", "male-stereo"):
        what = (
            f"{types[kind]} of {stereotyped} words with a stereotype are {kind}, so that "
            "scores are about the others; `coal_balanced` weighs both alike"
        )
        rare = [kind] if types[kind] < SMALL * stereotyped else ()
        rules.append((OCCUPATIONS, "type", rare, what))
    alike = [word for word in words if folded[word.casefold()] > 1]
    rules += [
        (OCCUPATIONS, "word", alike, "differs from another word in case alone"),
        (OCCUPATIONS, "word", filter(QUOTED.search, words), quotes),
        (TERMS, "word", filter(QUOTED.search, terms), quotes),
    ]
    for term in gendered:
        others = [other for other in gendered if other != term]
        longer = next(filter(pattern(term, pack.match).search, others), "")
        what = f"is found in {longer!r} too, so that captions with that have several gendered words"
        rules.append((TERMS, "word", [term] if longer else (), what))
    held = [term for term in neutral if found_in(term, gendered, pack.match)]
    rules.append((TERMS, "word", held, "is neutral but holds a gendered word"))
    for file, column, values, what in rules:
        yield from (_odd(file, column, what, value) for value in values)


def _counts(pack: Pack) -> Iterator[Finding]:
    """Count words, frames, and the pairs that they make."""
    types = Counter(occupation.type for occupation in pack.occupations)
    for kind in TYPES:
        yield _count(OCCUPATIONS, f"{types[kind]} words are {kind}", types[kind])
    frames = sum(map(bool, pack.frames))
    if frames:
        yield _count(FRAMES, f"{frames:,} frames", frames)
    genders = [f"{len(words)} {gender}" for gender, words in pack.terms.items() if words]
    yield _count(TERMS, f"words: {', '.join(genders)}", sum(map(len, pack.terms.values())))
    with suppress(BadInput):  # reported already
        sets = {name.upper(): len(rows) for name, rows in build_eval(pack).items()}
        pairs = ", ".join(f"{name} {number:,}" for name, number in sets.items())
        yield _count("", f"pairs that are built: {pairs}", sum(sets.values()))


def _count(file: str, what: str, number: int) -> Finding:
    return Finding(file, 0, "", "count", what, str(number))
