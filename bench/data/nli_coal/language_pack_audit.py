"""Everything that is wrong or odd in a language pack, at once; and which captions make frames by its filter, and why others do not.

The rules by which a pack is refused are the reader's own (`bench.data.nli_coal.language_pack`); here they are only listed.
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
    FRAMES,
    MANIFEST,
    OCCUPATIONS,
    TERMS,
    TYPES,
    Pack,
    faults,
)
from bench.data.nli_coal.pack_manifest import SPLITS
from bench.data.readers import as_path, read_lines

# From this share on, what most frames have in common is their custom.
CUSTOM = 0.8
# A stereotype with less than this share of the stereotyped words hardly counts in a score.
SMALL = 0.25
QUOTED = re.compile(r"^[\"'“”„«»]|[\"'“”„«»]$")
END = re.compile(r"[^\w\s]+$")
TOLD = re.compile(r", line (\d+)(?: \(header\))?(?:, column `(\w+)`)?:? ?")


def check(folder: str | Path, frames: bool = True) -> pd.DataFrame:
    """Everything found in the pack, a row a finding: `file`, `row`, `column`, `kind`, `what`, `value`.

    Without `frames` these are still to be made of captions, and words alone are looked at.

    `kind` is `refused` (no set is built before it is mended), `odd` (look at it) or `count` (how much there is). `row` is
    the line of the file, 0 where a finding concerns the whole file.

    Raises:
        BadInput: no such folder.
    """
    folder = as_path(folder)
    if not folder.is_dir():
        raise BadInput(f"{folder}: no such folder; a language pack is a folder")
    pack, told = faults(folder, frames)
    findings = [_refused(folder, what) for what in told]
    # Line by line, and what is said of a whole file behind its lines.
    files = list(dict.fromkeys(one.file for one in findings))
    findings.sort(key=lambda one: (files.index(one.file), one.row == 0, one.row))
    if pack and frames:
        findings += [*_sets(pack), *_odd_frames(pack)]
    if pack:
        findings += [*_odd_words(pack), *_counts(pack)]
    return audit.to_table(findings)


def sift(pack: Pack, paths: Sequence[str | Path]) -> pd.DataFrame:
    """What the pack's filter makes of captions, a row a line: `file`, `line`, `caption`, `frame`, `why`.

    `frame` is "" where the caption is left out, and `why` says why. A frame that an earlier caption made is left out too.

    Raises:
        BadInput: a file is missing or not UTF-8.
    """
    words = gender_words(pack.terms)
    seen: set[str] = set()
    rows = []
    for path in map(as_path, paths):
        for number, line in read_lines(path):
            caption = line.rstrip("\r")
            frame, why = judged(caption, words, pack.match, pack.captions)
            if frame in seen:
                frame, why = "", "makes a frame that an earlier one makes"
            seen |= {frame} - {""}
            rows.append((path.name, number, caption, frame, why))
    return pd.DataFrame(rows, columns=["file", "line", "caption", "frame", "why"])


def _refused(folder: Path, what: str) -> Finding:
    """A sentence of the reader, its place in columns of its own."""
    name = next(
        (
            one
            for one in (MANIFEST, OCCUPATIONS, FRAMES, TERMS)
            if what.startswith(f"{folder / one}")
        ),
        "",
    )
    rest = what.removeprefix(str(folder / name)) if name else what
    found = TOLD.match(rest)
    row, column = (int(found[1]), found[2] or "") if found else (0, "")
    text = rest[found.end() :] if found else rest.lstrip(":, ")
    return Finding(name, row, column, "refused", text)


def _sets(pack: Pack) -> Iterator[Finding]:
    """What keeps sets from being built."""
    try:
        for words in NS_WORDS:
            downsample(pack, build_eval(pack), words)
    except BadInput as error:
        yield Finding(FRAMES, 0, "", "refused", str(error).removeprefix(f"{pack.name}: "))
    lacking = [name for name in SPLITS if not _has(pack, name)]
    if lacking:
        what = f"has too few frames for the controlled sets {', '.join(lacking)}; evaluation sets need none of them"
        yield Finding(FRAMES, 0, "", "odd", what)


def _has(pack: Pack, split: str) -> bool:
    try:
        build_controlled(pack, 0, split)
    except BadInput:
        return False
    return True


def _odd_words(pack: Pack) -> Iterator[Finding]:
    """What is odd about the language and its words, which is no fault by itself."""
    if pack.language not in CATEGORIES and not cldr_name(pack.language, "en"):
        what = "is a language that has no name in CLDR; write [categories] into dataset.toml of what is built, so that pictures name it"
        yield Finding(MANIFEST, 0, "language", "odd", what, show_cell(pack.language))
    words = [one.word for one in pack.occupations]
    counts = Counter(one.type for one in pack.occupations)
    stereotyped = counts["female-stereo"] + counts["male-stereo"]
    for kind in ("female-stereo", "male-stereo"):
        if counts[kind] < SMALL * stereotyped:
            what = f"{counts[kind]} of {stereotyped} words with a stereotype are {kind}, so that scores are about the others; `coal_balanced` weighs both alike"
            yield Finding(OCCUPATIONS, 0, "type", "odd", what, kind)
    folded = Counter(word.casefold() for word in words)
    for word in words:
        if folded[word.casefold()] > 1:
            yield Finding(
                OCCUPATIONS,
                0,
                "word",
                "odd",
                "differs from another word in case alone",
                show_cell(word),
            )
    for name, some in (
        (OCCUPATIONS, words),
        (TERMS, [term for terms in pack.terms.values() for term in terms]),
    ):
        for word in some:
            if QUOTED.search(word):
                what = "has quotation marks, which stand in every sentence with it"
                yield Finding(name, 0, "word", "odd", what, show_cell(word))
    genders = {term: gender for gender, terms in pack.terms.items() for term in terms}
    taken = gender_words(pack.terms)
    for term, gender in genders.items():
        longer = [
            other
            for other in taken
            if other != term and term in taken and pattern(term, pack.match).search(other)
        ]
        if longer:
            what = f"is found in {longer[0]!r} too, so that captions with that word have several gendered words"
            yield Finding(TERMS, 0, "word", "odd", what, show_cell(term))
        if gender == "neutral" and found_in(term, taken, pack.match):
            yield Finding(
                TERMS, 0, "word", "odd", "is neutral but holds a gendered word", show_cell(term)
            )


def _odd_frames(pack: Pack) -> Iterator[Finding]:
    known = [frame for frame in pack.frames if frame]
    without = sum(" " not in frame.replace(f" {SLOT} ", SLOT) for frame in known)
    if pack.match == "word" and without > CUSTOM * len(known):
        what = 'finds gender words as whole words, but most frames have no blanks; write match = "substring"'
        yield Finding(MANIFEST, 0, "match", "odd", what, pack.match)
    yield from _within(pack, known)
    ends = Counter(_end(frame) for frame in known)
    end, most = ends.most_common(1)[0]
    words = [one.word for one in pack.occupations]
    alike: dict[str, int] = {}
    for line, frame in enumerate(pack.frames, start=1):
        if not frame:
            continue
        if most > CUSTOM * len(known) and _end(frame) != end:
            yield Finding(
                FRAMES,
                line,
                "",
                "odd",
                f"does not end with {end!r} as most frames do"
                if end
                else "ends with a sign, as most frames do not",
                show_cell(frame),
            )
        if frame.count(SLOT) > 1:
            yield Finding(
                FRAMES,
                line,
                "",
                "odd",
                "has several slots, which are all filled with one word",
                show_cell(frame),
            )
        held = found_in(frame.replace(SLOT, "\0"), words, pack.match)
        if held:
            what = (
                f"holds the occupation {held!r} besides the slot, so that two people may be meant"
            )
            yield Finding(FRAMES, line, "", "odd", what, show_cell(frame))
        key = " ".join(frame.casefold().split())
        if key in alike:
            what = f"differs from line {alike[key]} in case or blanks alone"
            yield Finding(FRAMES, line, "", "odd", what, show_cell(frame))
        alike.setdefault(key, line)


def _within(pack: Pack, frames: Sequence[str]) -> Iterator[Finding]:
    """Gendered words that stand in frames as the beginning of longer ones, where whole words alone are looked for."""
    if pack.match != "word" or pack.verbatim:
        return
    for term in pack.gendered:
        longer = re.compile(rf"(?<![\w-]){re.escape(term)}\w+", re.IGNORECASE)
        held = [found[0] for frame in frames if (found := longer.search(frame))]
        if held:
            what = f'begins longer words in {len(held):,} frames, such as {held[0]!r}; if these tell a gender, add them to `without`, or write match = "substring"'
            yield Finding(TERMS, 0, "word", "odd", what, show_cell(term))


def _end(frame: str) -> str:
    found = END.search(frame.replace(SLOT, "x"))
    return found[0] if found else ""


def _counts(pack: Pack) -> Iterator[Finding]:
    """How much there is, and how many pairs it makes."""
    counts = Counter(one.type for one in pack.occupations)
    known = sum(map(bool, pack.frames))
    for kind in TYPES:
        yield Finding(
            OCCUPATIONS, 0, "", "count", f"{counts[kind]} words are {kind}", str(counts[kind])
        )
    if known:
        yield Finding(FRAMES, 0, "", "count", f"{known:,} frames", str(known))
    told = ", ".join(f"{len(words)} {gender}" for gender, words in pack.terms.items() if words)
    yield Finding(TERMS, 0, "", "count", f"words: {told}", str(sum(map(len, pack.terms.values()))))
    if not known:
        return
    try:
        sets = {name: len(rows) for name, rows in build_eval(pack).items()}
    except BadInput:  # told already
        return
    pairs = ", ".join(f"{name.upper()} {count:,}" for name, count in sets.items())
    yield Finding("", 0, "", "count", f"pairs that are built: {pairs}", str(sum(sets.values())))
