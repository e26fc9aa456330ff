"""Audit a language pack, and tell which captions make frames by its filter.

The rules by which a pack is refused are the reader's own; here they are only listed.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from bench.core.errors import BadInput
from bench.data import audit
from bench.data.audit import Finding, show_cell
from bench.data.dataset import cldr_name
from bench.data.nli_coal import CATEGORIES
from bench.data.nli_coal.build import NS_WORDS, build_controlled, build_eval, downsample
from bench.data.nli_coal.frames import SLOT, found_in, gender_words, judged, pattern
from bench.data.nli_coal.language_pack import (
    FILES,
    FRAMES,
    MANIFEST,
    OCCUPATIONS,
    SPLITS,
    TERMS,
    TYPES,
    Pack,
    faults,
)
from bench.data.readers import as_path, read_lines

# What at least this share of the frames has in common is usual for them.
USUAL = 0.8
# A stereotype with less than this share of the stereotyped words hardly counts in a score.
SMALL = 0.25
QUOTED = re.compile(r"^[\"'“”„«»]|[\"'“”„«»]$")
END = re.compile(r"[^\w\s]+$")
PLACE = re.compile(r", line (\d+)(?: \(header\))?(?:, column `(\w+)`)?:? ?")


def check(folder: str | Path, frames: bool = True) -> pd.DataFrame:
    """List everything found in a pack.

    Args:
        frames: whether to audit them; without, they are still to be made of captions.

    Returns:
        One row per finding: `file`, `row`, `column`, `kind`, `what`, `value`. `kind` is `refused`
        (no set is built before it is fixed), `odd` (worth a look) or `count`. `row` is the line of
        the file, 0 for the whole file.

    Raises:
        BadInput: no such folder.
    """
    folder = as_path(folder)
    if not folder.is_dir():
        raise BadInput(f"{folder}: no such folder; a language pack is a folder")
    pack, errors = faults(folder, frames)
    findings = [_refused(folder, error) for error in errors]
    # Line by line, and what concerns a whole file after its lines.
    files = list(dict.fromkeys(finding.file for finding in findings))
    findings.sort(key=lambda one: (files.index(one.file), one.row == 0, one.row))
    if pack and frames:
        findings += [*_too_few_frames(pack), *_frames(pack)]
    if pack:
        findings += [*_words(pack), *_terms(pack), *_counts(pack)]
    return audit.to_table(findings)


def sift(pack: Pack, paths: Sequence[str | Path]) -> pd.DataFrame:
    """Apply the pack's filter to captions.

    Returns:
        One row per line: `file`, `line`, `caption`, `frame` ("" if it is left out) and `why` it is
        left out. A frame that an earlier caption made is left out too.

    Raises:
        BadInput: a file is missing or not UTF-8.
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


def _odd(file: str, what: str, value: str = "", *, column: str = "", row: int = 0) -> Finding:
    return Finding(file, row, column, "odd", what, show_cell(value))


def _refused(folder: Path, error: str) -> Finding:
    """Report an error of the reader, with the file, the line and the column that it names."""
    name = next((one for one in FILES if error.startswith(f"{folder / one}")), "")
    rest = error.removeprefix(str(folder / name)) if name else error
    place = PLACE.match(rest)
    if not place:
        return Finding(name, 0, "", "refused", rest.lstrip(":, "))
    return Finding(name, int(place[1]), place[2] or "", "refused", rest[place.end() :])


def _too_few_frames(pack: Pack) -> Iterator[Finding]:
    """Report what stops sets from being built."""
    try:
        for words in NS_WORDS:
            downsample(pack, build_eval(pack), words)
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
        yield _odd(FRAMES, what)


def _words(pack: Pack) -> Iterator[Finding]:
    """Report the language and its occupations."""
    if pack.language not in CATEGORIES and not cldr_name(pack.language, "en"):
        what = (
            "is a language that has no name in CLDR; write [categories] into dataset.toml of what "
            "is built, so that pictures name it"
        )
        yield _odd(MANIFEST, what, pack.language, column="language")
    words = [occupation.word for occupation in pack.occupations]
    counts = Counter(occupation.type for occupation in pack.occupations)
    stereotyped = counts["female-stereo"] + counts["male-stereo"]
    for kind in ("female-stereo", "male-stereo"):
        if counts[kind] < SMALL * stereotyped:
            what = (
                f"{counts[kind]} of {stereotyped} words with a stereotype are {kind}, so that "
                "scores are about the others; `coal_balanced` weighs both alike"
            )
            yield _odd(OCCUPATIONS, what, column="type")._replace(value=kind)
    folded = Counter(word.casefold() for word in words)
    for word in words:
        if folded[word.casefold()] > 1:
            yield _odd(OCCUPATIONS, "differs from another word in case alone", word, column="word")
    terms = [term for of_gender in pack.terms.values() for term in of_gender]
    for file, listed in ((OCCUPATIONS, words), (TERMS, terms)):
        for word in listed:
            if QUOTED.search(word):
                what = "has quotation marks, which are in every sentence with it"
                yield _odd(file, what, word, column="word")


def _terms(pack: Pack) -> Iterator[Finding]:
    """Report gender words that are found in others."""
    gendered = gender_words(pack.terms)
    for gender, terms in pack.terms.items():
        for term in terms:
            others = gendered if gender != "neutral" else []
            word = pattern(term, pack.match)
            longer = [other for other in others if other != term and word.search(other)]
            if longer:
                what = (
                    f"is found in {longer[0]!r} too, so that captions with that word have several "
                    "gendered words"
                )
                yield _odd(TERMS, what, term, column="word")
            if gender == "neutral" and found_in(term, gendered, pack.match):
                what = "is neutral but holds a gendered word"
                yield _odd(TERMS, what, term, column="word")


def _frames(pack: Pack) -> Iterator[Finding]:
    frames = [frame for frame in pack.frames if frame]
    without_blanks = sum(" " not in frame.replace(f" {SLOT} ", SLOT) for frame in frames)
    if pack.match == "word":
        if without_blanks > USUAL * len(frames):
            what = (
                "finds gender words as whole words, but most frames have no blanks; write "
                'match = "substring"'
            )
            yield _odd(MANIFEST, what, column="match")._replace(value=pack.match)
        for term in pack.gendered if not pack.verbatim else ():
            longer = re.compile(rf"(?<![\w-]){re.escape(term)}\w+", re.IGNORECASE)
            held = [match[0] for frame in frames if (match := longer.search(frame))]
            if held:
                what = (
                    f"begins longer words in {len(held):,} frames, such as {held[0]!r}; if these "
                    'tell a gender, add them to `without`, or write match = "substring"'
                )
                yield _odd(TERMS, what, term, column="word")
    end, count = Counter(map(_end, frames)).most_common(1)[0]
    words = [occupation.word for occupation in pack.occupations]
    first: dict[str, int] = {}
    for line, frame in enumerate(pack.frames, start=1):
        if not frame:
            continue
        if count > USUAL * len(frames) and _end(frame) != end:
            what = "ends with a sign, as most frames do not"
            if end:
                what = f"does not end with {end!r} as most frames do"
            yield _odd(FRAMES, what, frame, row=line)
        if frame.count(SLOT) > 1:
            what = "has several slots, which are all filled with one word"
            yield _odd(FRAMES, what, frame, row=line)
        held_word = found_in(frame.replace(SLOT, "\0"), words, pack.match)
        if held_word:
            what = (
                f"holds the occupation {held_word!r} besides the slot, so that two people may be "
                "meant"
            )
            yield _odd(FRAMES, what, frame, row=line)
        earlier = first.setdefault(" ".join(frame.casefold().split()), line)
        if earlier != line:
            what = f"differs from line {earlier} in case or blanks alone"
            yield _odd(FRAMES, what, frame, row=line)


def _end(frame: str) -> str:
    match = END.search(frame.replace(SLOT, "x"))
    return match[0] if match else ""


def _counts(pack: Pack) -> Iterator[Finding]:
    """Count words, frames, and the pairs that they make."""

    def count(file: str, what: str, number: int) -> Finding:
        return Finding(file, 0, "", "count", what, str(number))

    types = Counter(occupation.type for occupation in pack.occupations)
    for kind in TYPES:
        yield count(OCCUPATIONS, f"{types[kind]} words are {kind}", types[kind])
    frames = sum(map(bool, pack.frames))
    if frames:
        yield count(FRAMES, f"{frames:,} frames", frames)
    genders = [f"{len(words)} {gender}" for gender, words in pack.terms.items() if words]
    total = sum(map(len, pack.terms.values()))
    yield count(TERMS, f"words: {', '.join(genders)}", total)
    if frames:
        try:
            sets = {name: len(rows) for name, rows in build_eval(pack).items()}
        except BadInput:  # reported already
            return
        pairs = ", ".join(f"{name.upper()} {number:,}" for name, number in sets.items())
        yield count("", f"pairs that are built: {pairs}", sum(sets.values()))
