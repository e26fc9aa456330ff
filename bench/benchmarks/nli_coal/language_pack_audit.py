"""Audit a language pack.

The reader decides when to refuse a pack; this module only lists the reasons.
"""

import re
from collections import Counter
from contextlib import suppress
from itertools import takewhile
from pathlib import Path

import pandas as pd

from bench.benchmarks.nli_coal.audit import Audit, odd, refused
from bench.benchmarks.nli_coal.build import build_controlled, build_eval
from bench.benchmarks.nli_coal.frames import SLOT, found_in, gender_words, pattern
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
from bench.data.dataset import cldr_name
from bench.data.readers import as_path

# A property of at least this share of the frames is usual.
USUAL = 0.8
# A stereotype with less than this share of the stereotyped words hardly counts in a score.
SMALL = 0.25
QUOTED = r"^[\"'“”„«»]|[\"'“”„«»]$"
SIGN = re.compile(r"[^\w\s]")


def check(folder: str | Path, frames: bool = True) -> pd.DataFrame:
    """List everything found in a pack, in the columns of `bench.data.audit`; `row` is a line.

    Args:
        frames: whether to audit them; without, they are still to be made of captions.
    """
    folder = as_path(folder)
    if not folder.is_dir():
        raise BadInput(f"{folder}: no such folder; a language pack is a folder")
    pack, errors = pack_errors(folder, frames)
    findings = [refused(folder, error) for error in errors]
    if pack and frames:
        findings += [*_size_rules(pack), *_frame_rules(pack)]
    if pack:
        findings += [*_word_rules(pack), *_counts(pack)]
    return audit.to_table(findings)


def _size_rules(pack: Pack) -> Audit:
    """Find the sets that cannot be built."""
    try:
        build_eval(pack)
    except BadInput as error:
        yield audit.refused(file=FRAMES, what=str(error).removeprefix(f"{pack.name}: "))
    impossible = []
    for split in SPLITS:
        try:
            build_controlled(pack, 0, split)
        except BadInput:
            impossible.append(split)
    if impossible:
        yield odd(FRAMES, "too_few_frames", splits=", ".join(impossible))


def _frame_rules(pack: Pack) -> Audit:
    lines = pd.DataFrame({"value": pack.frames, "row": range(1, len(pack.frames) + 1)})
    lines = lines[lines.value != ""].assign(file=FRAMES)
    frames = lines.value
    if pack.match == "word":
        has_blanks = frames.str.replace(f" {SLOT} ", SLOT, regex=False).str.contains(" ")
        if (~has_blanks).mean() > USUAL:
            yield odd(MANIFEST, "no_blanks", value=pack.match)
        gendered = [*gender_words(pack.terms), *pack.captions.without]
        for term in gendered if not pack.verbatim else ():
            longer = re.compile(rf"(?<![\w-]){re.escape(term)}\w+", re.IGNORECASE)
            held = [match[0] for frame in frames if (match := longer.search(frame))]
            if held:
                fields = {"value": term, "frames": len(held), "longer": held[0]}
                yield odd(TERMS, "longer_word", **fields)
    ends = frames.str.replace(SLOT, "x", regex=False).map(_end)
    usual, count = Counter(ends).most_common(1)[0]
    if count > USUAL * len(frames):
        yield odd(lines[ends != usual], "other_end", end=usual)
    words = [occupation.word for occupation in pack.occupations]
    rest = frames.str.replace(SLOT, "\0", regex=False)
    other = rest.map(lambda text: found_in(text, words, pack.match))
    folded = frames.map(lambda text: " ".join(text.casefold().split()))
    first = lines.row.groupby(folded).transform("first")
    yield odd(lines[frames.str.count(re.escape(SLOT)) > 1], "several_slots")
    yield odd(lines[other != ""], "other_occupation", other=other)
    yield odd(lines[first != lines.row], "alike_frames", first=first)


def _end(frame: str) -> str:
    """Return the signs after the last word; a search from the left could take long."""
    return "".join(takewhile(SIGN.match, reversed(frame)))[::-1]


def _word_rules(pack: Pack) -> Audit:
    """Find faults of the language, its occupations, and gender words."""
    if pack.language not in CATEGORIES and not cldr_name(pack.language, "en"):
        yield odd(MANIFEST, "no_name", value=pack.language)
    words = pd.DataFrame(pack.occupations).assign(file=OCCUPATIONS, row=0)
    sizes = words.type.value_counts().reindex(["female-stereo", "male-stereo"])
    for kind, size in sizes.items():
        if size < SMALL * sizes.sum():
            fields = {"value": kind, "size": size, "stereotyped": sizes.sum()}
            yield odd(OCCUPATIONS, "rare_type", **fields)
    yield odd(words[words.word.str.casefold().duplicated(keep=False)], "alike_words")
    gendered = gender_words(pack.terms)
    terms = pd.DataFrame({"word": [*gendered, *pack.terms["neutral"]]}).assign(file=TERMS, row=0)
    for table in (words, terms):
        yield odd(table[table.word.str.contains(QUOTED)], "quotes")
    for term in gendered:
        others = [other for other in gendered if other != term]
        if longer := next(filter(pattern(term, pack.match).search, others), ""):
            yield odd(TERMS, "nested_term", value=term, longer=longer)
    for term in pack.terms["neutral"]:
        if found_in(term, gendered, pack.match):
            yield odd(TERMS, "gendered_neutral", value=term)


def _counts(pack: Pack) -> Audit:
    """Count words, frames, and the pairs that they make."""
    types = Counter(occupation.type for occupation in pack.occupations)
    frames = sum(map(bool, pack.frames))
    genders = [f"{len(words)} {gender}" for gender, words in pack.terms.items() if words]
    counts = [(OCCUPATIONS, f"{types[kind]} words are {kind}", types[kind]) for kind in TYPES]
    counts += [(FRAMES, f"{frames:,} frames", frames)] * bool(frames)
    counts.append((TERMS, f"words: {', '.join(genders)}", sum(map(len, pack.terms.values()))))
    with suppress(BadInput):  # reported already
        sets = {name.upper(): len(rows) for name, rows in build_eval(pack).items()}
        pairs = ", ".join(f"{name} {number:,}" for name, number in sets.items())
        counts.append(("", f"pairs that are built: {pairs}", sum(sets.values())))
    for file, what, value in counts:
        yield audit.finding(file=file, kind="count", what=what, value=value)
