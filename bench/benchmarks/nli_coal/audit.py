"""Audit an NLI-CoAL folder: rows, words, frames and files, and its size next to the release's.

The word lists and the numbers of the release are in known_words.toml.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import combinations, permutations, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from bench.benchmarks.nli_coal import METADATA
from bench.benchmarks.nli_coal import items as nli_coal
from bench.benchmarks.nli_coal.build import PRO, untrained
from bench.benchmarks.nli_coal.extract import extract
from bench.benchmarks.nli_coal.frames import (
    RELEASED_TERMS,
    SLOT,
    Aligned,
    Terms,
    align,
    found_in,
    gender_words,
    match_of,
)
from bench.benchmarks.nli_coal.items import english_words, known_words
from bench.benchmarks.nli_coal.language_pack import PACK, Pack, read_pack
from bench.core.errors import BadInput, plain
from bench.data import audit
from bench.data.audit import Finding, show_cell
from bench.data.readers import read_json_lines

PS, AS, NS = SETS = tuple(nli_coal.SETS.values())
ALL = "4-all"
# Folders of evaluation sets, by their content.
ALL_WORDS, DOWNSAMPLED, TOKENIZED = ("all-words", "untokenized"), "downsamp", "tokenized"
# An error of the reader: the file, the line, the field or column, and the reason.
ERROR = re.compile(
    r"(?P<file>.+?)(?:, line (?P<row>\d+))?(?: \(header\))?"
    r"(?:, (?:column|field) `(?P<column>\w+)`)?: (?P<what>.+)"
)


class Line(NamedTuple):
    """A line of a file, its values, and how its hypothesis was made, if that is known."""

    path: Path
    number: int
    row: dict[str, Any]
    aligned: Aligned | None


# The lines of each variant (all words, down-sampled, tokenized), by the name of the set.
Files = Mapping[str, Mapping[str, Sequence[Line]]]


class Place(NamedTuple):
    """The folder of one language, and how its gender words are found."""

    folder: Path
    root: Path
    language: str
    terms: Terms
    match: str

    def odd(
        self, line: Line, column: str, fault: str, what: str, value: object = "", pairs: int = 1
    ) -> Finding:
        file = audit.file_name(line.path, self.root)
        text = show_cell(value) if isinstance(value, str) else str(value)
        return Finding(file, line.number, column, "odd", what, text, fault, pairs)

    def read(self, path: Path) -> list[Line]:
        """Read a file; the blanks of tokenized Japanese do not count."""
        is_tokenized = any(TOKENIZED in part.split("-") for part in path.parts)
        lines = []
        for number, row in read_json_lines(path):
            for name in ("sentence1", "sentence2") if is_tokenized else ():
                row[name] = str(row.get(name, "")).replace(" ", "")
            premise, hypothesis = (str(row.get(name, "")) for name in ("sentence1", "sentence2"))
            word = row.get("occ_word")
            named = word if isinstance(word, str) else ""
            aligned = align(premise, hypothesis, self.terms, self.match, named)
            lines.append(Line(path, number, row, aligned))
        if not lines:
            raise BadInput(f"{path}: holds no pairs")
        return lines


def check(folder: Path, **settings: str) -> pd.DataFrame:
    """List everything found in a folder, in the columns of `Finding`, whatever the settings.

    Source: faults of the authors' files (their repository, commit 4d57afe).
    """
    root = Path(folder)
    findings = [finding for place in _places(root) for finding in _check(place)]
    if not findings:
        what = f"the folder holds no data of {METADATA.title}; expected {METADATA.layout}"
        findings = [Finding("", 0, "", "refused", what, fault="refused")]
    return audit.to_table(findings, "pairs")


def refused(root: Path, error: Exception | str) -> Finding:
    """Report an error of a reader, with the file, the line and the column that it names."""
    text = plain(str(error)).removeprefix(str(root)).lstrip("/\\")
    named = ERROR.fullmatch(text)
    if not named:
        return Finding("", 0, "", "refused", text, fault="refused")
    file, _, key = named["file"].partition(", ")  # a key of TOML
    what = f"{key}: {named['what']}" if key else named["what"]
    row, column = int(named["row"] or 0), named["column"] or ""
    return Finding(file, row, column, "refused", what, fault="refused")


def _places(root: Path) -> Iterator[Place]:
    for folder in [*sorted(root.glob("*_v*")), root]:
        language, mark, _ = folder.name.partition("_v")
        if not mark or not folder.is_dir():
            continue
        with suppress(BadInput):  # the loader reports it
            if (folder / PACK).is_dir():
                pack = read_pack(folder / PACK)
                yield Place(folder, root, language, pack.terms, pack.match)
                continue
        if language in RELEASED_TERMS:
            yield Place(folder, root, language, RELEASED_TERMS[language], match_of(language))


def _check(place: Place) -> Iterator[Finding]:
    folder = Line(place.folder, 0, {}, None)
    try:
        nli_coal.load(place.folder, [place.language])
    except BadInput as error:
        yield refused(place.root, error)
    except KeyError:
        what = f"has not all of {', '.join(SETS)} in {' or '.join(ALL_WORDS)}"
        yield place.odd(folder, "", "refused", what, pairs=0)._replace(kind="refused")
    files: dict[str, dict[str, list[Line]]] = defaultdict(dict)
    for path in sorted(place.folder.glob("bias-eval-set_v*/*/*.json")):
        variant = "all" if path.parent.name in ALL_WORDS else path.parent.name
        name = re.split(r"-(?:downsamp|tok)|_v", path.name)[0]
        try:
            files[variant][name] = place.read(path)
        except BadInput as error:
            yield refused(place.root, error)
    for sets in files.values():
        for name in filter(sets.__contains__, SETS):
            yield from _rows(place, name, sets[name])
    yield from _compare(place, files)
    try:  # words and frames, if the files follow one of the two designs
        pack = extract(place.folder)[0]
    except (BadInput, IndexError):
        pack = None
    if set(SETS) <= set(files["all"]):
        lines = [line for name in SETS for line in files["all"][name] if line.aligned]
        yield from _words(place, lines)
        yield from _frames(place, lines, pack)
    yield from _controlled(place, pack)
    for variant, title in (("all", "all words"), (DOWNSAMPLED, "down-sampled")):
        if files[variant]:
            key = place.language if variant == "all" else "downsampled"
            released = known_words()["released"].get(key)
            yield _count(f"{place.language}, {title}", files[variant], released)


def _rows(place: Place, name: str, lines: Sequence[Line]) -> Iterator[Finding]:
    """Report single rows of PS, AS or NS."""
    unnamed = [line for line in lines if line.aligned and "occ_word" not in line.row]
    if unnamed:
        what = "names no occupation, as in the first release; it is found by position"
        yield place.odd(unnamed[0], "occ_word", "no_occupation", what, pairs=len(unnamed))
    first: dict[tuple[str, str], int] = {}
    for line in lines:
        _, number, row, aligned = line
        premise, hypothesis = str(row.get("sentence1")), str(row.get("sentence2"))
        earlier = first.setdefault((premise, hypothesis), number)
        if earlier != number:
            yield place.odd(line, "", "duplicate_rows", f"repeats line {earlier}", premise)
        if aligned is None:
            what = "is not the premise with a gendered word in place of the occupation"
            yield place.odd(line, "sentence2", "not_one_frame", what, hypothesis)
            continue
        word, kind = row.get("occ_word", aligned.occupation), row.get("occ_type")
        if word != aligned.occupation:
            what = (
                f"is not what the sentences have, {aligned.occupation!r}; `anomalies=repair` "
                "takes that"
            )
            yield place.odd(line, "occ_word", "wrong_occupation", what, str(word))
        elif kind and (kind == "neutral") != (name == NS):
            what = f"does not belong in {name}"
            yield place.odd(line, "occ_type", "wrong_type", what, str(kind))
        elif kind in PRO and (aligned.gender == PRO[kind]) != (name == PS):
            what = f"is {aligned.gender}, which for {kind} does not belong in {name}"
            yield place.odd(line, "sentence2", "wrong_gender", what, aligned.term)


def _words(place: Place, lines: Sequence[Line]) -> Iterator[Finding]:
    """Report occupations that have a gender, mean something else, or are part of others."""
    first, pairs = _first(lines, "occupation")
    english = english_words(place.folder, place.language)
    known = known_words()
    mistranslated = known["mistranslated"].get(place.language, {})
    for word, line in first.items():
        origin = english.get(word, word if place.language == "en" else "")
        if origin in known["definitional"] and line.path.name.startswith(NS):
            translated = "" if origin == word else f" ({origin})"
            what = f"means a man or a woman by itself{translated}; neutral is disputable"
            yield place.odd(line, "occ_word", "definitional_word", what, word, pairs[word])
        if word in mistranslated:
            meant = f" where {origin} is meant" if origin else ""
            what = f"means {mistranslated[word]}{meant}"
            yield place.odd(line, "occ_word", "mistranslated", what, word, pairs[word])
    for inner, outer in permutations(first, 2):
        if inner in outer:
            what = f"is part of {outer!r}, so that a search for it finds both"
            line = first[inner]
            yield place.odd(line, "occ_word", "nested_occupation", what, inner, pairs[outer])


def _frames(place: Place, lines: Sequence[Line], pack: Pack | None) -> Iterator[Finding]:
    """Report frames, each at the first row that has it."""
    first, pairs = _first(lines, "frame")
    known = known_words()
    # Words of one or two characters are part of many others in a language without blanks.
    occupations = [
        word
        for word in sorted(_first(lines, "occupation")[0])
        if place.match == "word" or len(word) > 2
    ]
    gendered = [*gender_words(place.terms), *known["gendered"].get(place.language, ())]
    full_stop = known["full_stop"].get(place.language, ".")
    times = Counter(pack.frames if pack else ())
    for frame, line in first.items():
        rest, slots = frame.replace(SLOT, "\0"), frame.count(SLOT)
        word = found_in(rest, gendered, place.match)
        mentioned = [other for other in occupations if found_in(rest, (other,), place.match)]
        longest = max(mentioned, key=len, default="")
        rules = (
            (word, "gendered_frame", f"mentions a person with a gender besides: {word!r}"),
            (longest, "occupation_in_frame", f"mentions the occupation {longest!r} besides"),
            (slots > 1, "slot_repeated", f"has the occupation {slots} times"),
            (
                times[frame] > 1,
                "duplicate_frame",
                f"stands {times[frame]} times in the list of frames",
            ),
            (not frame.endswith(full_stop), "no_full_stop", "does not end with a full stop"),
        )
        for is_broken, fault, what in rules:
            if is_broken:
                yield place.odd(line, "sentence1", fault, what, frame, pairs[frame])


def _first(lines: Sequence[Line], attribute: str) -> tuple[dict[str, Line], Counter[str]]:
    """Find the first line with each occupation or frame, and count its pairs."""
    first: dict[str, Line] = {}
    for line in lines:
        first.setdefault(getattr(line.aligned, attribute), line)
    return first, Counter(getattr(line.aligned, attribute) for line in lines)


def _compare(place: Place, files: Files) -> Iterator[Finding]:
    """Report files that should agree with one another."""
    for sets in files.values():
        if {ALL, *SETS} <= set(sets):
            joined = [line.row for name in SETS for line in sets[name]]
            if [line.row for line in sets[ALL]] != joined:
                what = "is not PS, AS and NS one after the other"
                yield place.odd(sets[ALL][0], "", "all_differs", what, pairs=0)._replace(row=0)
    complete, tokenized, small = (files.get(name, {}) for name in ("all", TOKENIZED, DOWNSAMPLED))
    for name in filter(complete.__contains__, SETS):
        rows = [line.row for line in complete[name]]
        bare = [line.row for line in tokenized.get(name, ())]
        differing = sum(a != b for a, b in zip_longest(bare, rows)) if bare else 0
        if differing:
            what = "is more than the untokenized file with blanks"
            odd = ("", "tokenized_differs", what, differing, differing)
            yield place.odd(tokenized[name][0], *odd)._replace(row=0)
        for line in small.get(name, ()):
            if line.row not in rows:
                what = "is no row of the whole set"
                yield place.odd(line, "", "downsample_differs", what, str(line.row.get("id")))


def _controlled(place: Place, pack: Pack | None) -> Iterator[Finding]:
    """Report the labels of bias-controlled sets, their words, and the frames that they share."""
    folder = Line(place.folder, 0, {}, None)
    frames: dict[str, set[str]] = defaultdict(set)
    for path in sorted(place.folder.glob("bias-controlled-set_v*/**/*.json")):
        split = re.split("[_-]", path.name)[0]
        try:
            lines = place.read(path)
        except BadInput as error:
            yield refused(place.root, error)
            continue
        labels = Counter(str(line.row.get("label")) for line in lines)
        if len(labels) != 3 or len(set(labels.values())) != 1:
            counts = ", ".join(f"{label} {count:,}" for label, count in sorted(labels.items()))
            what = f"are not a third each: {counts}"
            odd = place.odd(lines[0], "label", "label_balance", what, pairs=len(lines))
            yield odd._replace(row=0)
        released = known_words()["released_controlled"].get(split, 0)
        same = "as the release has" if len(lines) == released else f"the release has {released:,}"
        file, what = audit.file_name(path, place.root), f"{len(lines):,} pairs; {same}"
        yield Finding(file, 0, "", "count", what, str(len(lines)))
        # The frames are the same at every rate.
        frames[split] = frames[split] or {line.aligned.frame for line in lines if line.aligned}
    for split, other in combinations(("train", "dev", "test"), 2):
        shared = frames[split] & frames[other]
        if shared:
            what = (
                f"{split} and {other} sets share {len(shared)} frames of {len(frames[split])} and "
                f"{len(frames[other])}: their accuracy says nothing of new frames"
            )
            yield place.odd(folder, "sentence1", "frames_shared", what, pairs=0)
    words = untrained(pack) if pack and pack.shipped and pack.trained else []
    if pack and words:
        what = (
            f"{len(words)} of {len(pack.shipped)} down-sampled neutral occupations are in no "
            "controlled set, so that no model was trained on them"
        )
        yield place.odd(folder, "occ_word", "untrained_words", what, ", ".join(words), 0)


def _count(
    title: str, files: Mapping[str, Sequence[Line]], released: Mapping[str, list[int]] | None
) -> Finding:
    """Count the pairs of each set and the occupations of each type, next to the release's."""

    def described(numbers: Mapping[str, list[int]]) -> str:
        pairs = zip(("PS", "AS", "NS"), numbers["pairs"], strict=True)
        words = zip(numbers["words"], ("female-stereo", "male-stereo", "neutral"), strict=True)
        return (
            f"pairs {', '.join(f'{name} {count:,}' for name, count in pairs)}, "
            f"and occupations {', '.join(f'{count} {name}' for count, name in words)}"
        )

    words = {
        ("neutral" if name == NS else line.aligned.gender, line.aligned.occupation)
        for name in (PS, NS)
        for line in files.get(name, ())
        if line.aligned
    }
    types = Counter(kind for kind, _ in words)
    counts = {
        "pairs": [len(files.get(name, ())) for name in SETS],
        "words": [types["feminine"], types["masculine"], types["neutral"]],
    }
    same = f"the release has {described(released)}" if released else "no release has this language"
    same = "as the release has" if counts == released else same
    what = f"{title}: {described(counts)}; {same}"
    return Finding("", 0, "", "count", what, str(sum(counts["pairs"])))
