"""Audit a language pack, and tell which captions make frames by its filter.

The rules by which a pack is refused are the reader's own; here they are only listed.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
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

# What at least this share of the frames has in common is usual for them.
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
    """Report what stops sets from being built."""
    try:
        build_eval(pack)
    except BadInput as error:
        yield Finding(FRAMES, 0, "", "refused", str(error).removeprefix(f"{pack.name}: "))
    lacking = []
    for split in SPLITS:
        try:
            build_controlled(pack, 0, split)
        except BadInput:
            lacking.append(split)
    if lacking:
        what = (
            f"has too few frames for the controlled sets {', '.join(lacking)}; evaluation sets "
            "need none of them"
        )
        yield _odd(FRAMES, "", what)


def _frames(pack: Pack) -> Iterator[Finding]:
    frames = [frame for frame in pack.frames if frame]
    if pack.match == "word":
        without_blanks = sum(" " not in frame.replace(f" {SLOT} ", SLOT) for frame in frames)
        if without_blanks > USUAL * len(frames):
            what = (
                "finds gender words as whole words, but most frames have no blanks; write "
                'match = "substring"'
            )
            yield _odd(MANIFEST, "match", what)._replace(value=pack.match)
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
        held_word = found_in(frame.replace(SLOT, "\0"), words, pack.match)
        earlier = first.setdefault(" ".join(frame.casefold().split()), line)
        rules = (
            (is_usual and signs[frame] != end, f"does not end with {end!r} as most frames do"),
            (frame.count(SLOT) > 1, "has several slots, which are all filled with one word"),
            (
                held_word,
                f"holds the occupation {held_word!r} besides the slot, so that two people may be "
                "meant",
            ),
            (earlier != line, f"differs from line {earlier} in case or blanks alone"),
        )
        for is_broken, what in rules:
            if is_broken:
                yield _odd(FRAMES, "", what, frame, line)


def _end(frame: str) -> str:
    """Return the signs after the last word; a search from the left could take long."""
    return "".join(takewhile(SIGN.match, reversed(frame)))[::-1]


def _words(pack: Pack) -> Iterator[Finding]:
    """Report the language, its occupations, and gender words."""
    if pack.language not in CATEGORIES and not cldr_name(pack.language, "en"):
        what = (
            "is a language that has no name in CLDR; write [categories] into dataset.toml of what "
            "is built, so that pictures name it"
        )
        yield _odd(MANIFEST, "language", what, pack.language)
    counts = Counter(occupation.type for occupation in pack.occupations)
    stereotyped = counts["female-stereo"] + counts["male-stereo"]
    for kind in ("female-stereo", "male-stereo"):
        if counts[kind] < SMALL * stereotyped:
            what = (
                f"{counts[kind]} of {stereotyped} words with a stereotype are {kind}, so that "
                "scores are about the others; `coal_balanced` weighs both alike"
            )
            yield _odd(OCCUPATIONS, "type", what)._replace(value=kind)
    words = [occupation.word for occupation in pack.occupations]
    folded = Counter(word.casefold() for word in words)
    for word in words:
        if folded[word.casefold()] > 1:
            yield _odd(OCCUPATIONS, "word", "differs from another word in case alone", word)
    terms = [term for of_gender in pack.terms.values() for term in of_gender]
    for file, listed in ((OCCUPATIONS, words), (TERMS, terms)):
        for word in filter(QUOTED.search, listed):
            yield _odd(
                file, "word", "has quotation marks, which are in every sentence with it", word
            )
    gendered = gender_words(pack.terms)
    for term in terms:
        search = pattern(term, pack.match).search
        longer = next((other for other in gendered if other != term and search(other)), "")
        if term in gendered and longer:
            what = (
                f"is found in {longer!r} too, so that captions with that word have several "
                "gendered words"
            )
            yield _odd(TERMS, "word", what, term)
        if term not in gendered and found_in(term, gendered, pack.match):
            yield _odd(TERMS, "word", "is neutral but holds a gendered word", term)


def _counts(pack: Pack) -> Iterator[Finding]:
    """Count words, frames, and the pairs that they make."""
    types = Counter(occupation.type for occupation in pack.occupations)
    counts = [(OCCUPATIONS, f"{types[kind]} words are {kind}", types[kind]) for kind in TYPES]
    frames = sum(map(bool, pack.frames))
    genders = [f"{len(words)} {gender}" for gender, words in pack.terms.items() if words]
    total = sum(map(len, pack.terms.values()))
    counts += [(FRAMES, f"{frames:,} frames", frames)] if frames else []
    counts.append((TERMS, f"words: {', '.join(genders)}", total))
    try:
        sets = {name: len(rows) for name, rows in build_eval(pack).items()} if frames else {}
    except BadInput:  # reported already
        sets = {}
    if sets:
        pairs = ", ".join(f"{name.upper()} {number:,}" for name, number in sets.items())
        counts.append(("", f"pairs that are built: {pairs}", sum(sets.values())))
    for file, what, number in counts:
        yield Finding(file, 0, "", "count", what, str(number))
