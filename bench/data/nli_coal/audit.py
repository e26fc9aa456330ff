"""Audit an NLI-CoAL folder: rows, words, frames and files, and its size next to the release's.

The word lists and the numbers of the release are in known_words.toml.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import combinations, permutations
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from bench.core.errors import BadInput, plain
from bench.data import audit, nli_coal
from bench.data.audit import Finding, show_cell
from bench.data.nli_coal import english_words, known_words
from bench.data.nli_coal.build import PRO
from bench.data.nli_coal.extract import extract
from bench.data.nli_coal.frames import (
    RELEASED_TERMS,
    SLOT,
    Aligned,
    Terms,
    align,
    found_in,
    match_of,
)
from bench.data.nli_coal.language_pack import PACK, Pack, read_pack
from bench.data.readers import read_json_lines

# Each fault and what it means, in the order of a summary.
FAULTS = {
    "refused": "refused by the loader",
    "not_one_frame": "premise and hypothesis differ in more than the occupation",
    "wrong_occupation": "a row names another occupation than its sentences have",
    "no_occupation": "rows name no occupation, as in the first release",
    "wrong_gender": "the gender is not the one of the set, PS or AS",
    "wrong_type": "the set is not the one of the occupation's type",
    "duplicate_rows": "a pair stands twice in a file",
    "definitional_word": "a word of NS that means a man or a woman by itself",
    "mistranslated": "a machine's translation of the English word, of another meaning",
    "nested_occupation": "an occupation is part of another, so that a plain search finds the "
    "wrong one",
    "gendered_frame": "a frame mentions another person with a gender",
    "occupation_in_frame": "a frame mentions another occupation of the list",
    "slot_repeated": "a frame has the occupation more than once",
    "duplicate_frame": "a frame stands twice in the list of frames",
    "no_full_stop": "a frame does not end with a full stop",
    "all_differs": "4-all is not PS, AS and NS one after the other",
    "tokenized_differs": "tokenized sentences are not the others with blanks",
    "downsample_differs": "a down-sampled row is not a row of the whole set",
    "untrained_words": "down-sampled neutral occupations that no controlled set has",
    "label_balance": "the labels of a controlled set are not a third each",
    "frames_shared": "train, dev and test sets share frames",
}
PS, AS, NS = SETS = tuple(nli_coal.SETS.values())
ALL = "4-all"
# Folders of evaluation sets, by what is in them.
ALL_WORDS, DOWNSAMPLED, TOKENIZED = ("all-words", "untokenized"), "downsamp", "tokenized"


class Line(NamedTuple):
    """A line of a file, what it says, and how its hypothesis was made, if that is known."""

    number: int
    row: dict[str, Any]
    aligned: Aligned | None


class SetFile(NamedTuple):
    """A file of a set with its lines."""

    path: Path
    lines: list[Line]


# The files of each variant (all words, down-sampled, tokenized), by the name of the set.
Files = Mapping[str, Mapping[str, SetFile]]


class Place(NamedTuple):
    """The folder of one language, and how its gender words are found."""

    folder: Path
    root: Path
    language: str
    terms: Terms
    match: str

    def odd(
        self,
        path: Path,
        fault: str,
        what: str,
        *,
        row: int = 0,
        column: str = "",
        value: str = "",
        pairs: int = 0,
    ) -> Finding:
        file = audit.file_name(path, self.root)
        return Finding(file, row, column, "odd", what, show_cell(value), fault, pairs)

    def read(self, path: Path) -> SetFile:
        """Read a file; the blanks of tokenized Japanese do not count."""
        tokenized = any(TOKENIZED in part.split("-") for part in path.parts)
        lines = []
        for number, row in read_json_lines(path):
            premise, hypothesis = (str(row.get(name, "")) for name in ("sentence1", "sentence2"))
            if tokenized:
                premise, hypothesis = premise.replace(" ", ""), hypothesis.replace(" ", "")
            named = row.get("occ_word")
            word = named if isinstance(named, str) else ""
            aligned = align(premise, hypothesis, self.terms, self.match, word)
            lines.append(Line(number, row, aligned))
        return SetFile(path, lines)


def check(folder: Path, **settings: str) -> pd.DataFrame:
    """List everything found in a folder, whatever the settings.

    Returns:
        One row per finding: `file`, `row`, `column`, `kind`, `what`, `value`, `fault`, `pairs`.
        `kind` is `refused` (the loader refuses the file; its first error), `odd` (read, but worth
        a look) or `count` (the folder's numbers next to the release's).

    Source: faults of the authors' files (their repository, commit 4d57afe).
    """
    root = Path(folder)
    findings = [finding for place in _places(root) for finding in _check(place)]
    if not findings:
        what = f"the folder holds no data of {nli_coal.TITLE}; expected {nli_coal.LAYOUT}"
        findings = [Finding("", 0, "", "refused", what, fault="refused")]
    return audit.to_table(findings, "pairs")


def summary(findings: pd.DataFrame) -> pd.DataFrame:
    """Count the findings of `check` by fault: `fault`, `what`, `findings`, `pairs`."""
    rows = [
        (fault, what, len(of_fault), int(of_fault.pairs.sum()))
        for fault, what in FAULTS.items()
        if len(of_fault := findings[findings.fault == fault])
    ]
    return pd.DataFrame(rows, columns=["fault", "what", "findings", "pairs"])


def _places(root: Path) -> list[Place]:
    places = []
    for folder in [*sorted(root.glob("*_v*")), root]:
        language, mark, _ = folder.name.partition("_v")
        if not mark or not folder.is_dir():
            continue
        if (folder / PACK).is_dir():
            with suppress(BadInput):  # the loader reports it
                pack = read_pack(folder / PACK)
                places.append(Place(folder, root, language, pack.terms, pack.match))
                continue
        if language in RELEASED_TERMS:
            terms = RELEASED_TERMS[language]
            places.append(Place(folder, root, language, terms, match_of(language)))
    return places


def _check(place: Place) -> Iterator[Finding]:
    try:
        nli_coal.load(place.folder, [place.language])
    except (BadInput, OSError) as error:
        yield _refused(place, error)
    except KeyError:
        what = f"has not all of {', '.join(SETS)} in {' or '.join(ALL_WORDS)}"
        file = audit.file_name(place.folder, place.root)
        yield Finding(file, 0, "", "refused", what, fault="refused")
    files: dict[str, dict[str, SetFile]] = defaultdict(dict)
    for path in sorted(place.folder.glob("bias-eval-set_v*/*/*.json")):
        variant = "all" if path.parent.name in ALL_WORDS else path.parent.name
        try:
            name = re.split(r"-(?:downsamp|tok)|_v", path.name)[0]
            files[variant][name] = place.read(path)
        except BadInput as error:
            yield _refused(place, error)
    for sets in files.values():
        for name in SETS:
            if name in sets:
                yield from _rows(place, name, sets[name])
    yield from _compare(place, files)
    pack = _pack(place)
    complete = [files["all"][name] for name in SETS if name in files["all"]]
    if len(complete) == len(SETS):
        yield from _words(place, complete)
        yield from _frames(place, complete, pack)
    yield from _controlled(place, pack)
    for variant, title in (("all", "all words"), (DOWNSAMPLED, "down-sampled")):
        if files.get(variant):
            key = place.language if variant == "all" else "downsampled"
            released = known_words()["released"].get(key)
            yield _count(f"{place.language}, {title}", files[variant], released)


def _rows(place: Place, name: str, file: SetFile) -> Iterator[Finding]:
    """Report single rows of PS, AS or NS."""
    unnamed = [line.number for line in file.lines if line.aligned and "occ_word" not in line.row]
    if unnamed:
        what = "names no occupation, as in the first release; it is found by position"
        yield place.odd(
            file.path,
            "no_occupation",
            what,
            row=unnamed[0],
            column="occ_word",
            pairs=len(unnamed),
        )
    first: dict[tuple[str, str], int] = {}
    for number, row, aligned in file.lines:

        def odd(fault: str, column: str, what: str, value: object, row: int = number) -> Finding:
            value = str(value)
            return place.odd(file.path, fault, what, row=row, column=column, value=value, pairs=1)

        pair = (str(row.get("sentence1")), str(row.get("sentence2")))
        earlier = first.setdefault(pair, number)
        if earlier != number:
            yield odd("duplicate_rows", "", f"repeats line {earlier}", pair[0])
        if aligned is None:
            what = "is not the premise with a gendered word in place of the occupation"
            yield odd("not_one_frame", "sentence2", what, pair[1])
            continue
        word, kind = row.get("occ_word", aligned.occupation), row.get("occ_type")
        if word != aligned.occupation:
            what = (
                f"is not what the sentences have, {aligned.occupation!r}; `anomalies=repair` "
                "takes that"
            )
            yield odd("wrong_occupation", "occ_word", what, word)
        elif kind and (kind == "neutral") != (name == NS):
            yield odd("wrong_type", "occ_type", f"does not belong in {name}", kind)
        elif kind in PRO and (aligned.gender == PRO[kind]) != (name == PS):
            what = f"is {aligned.gender}, which for {kind} does not belong in {name}"
            yield odd("wrong_gender", "sentence2", what, aligned.term)


def _words(place: Place, files: Sequence[SetFile]) -> Iterator[Finding]:
    """Report occupations that tell a gender, mean something else, or are part of others."""
    first, pairs = _first(files, "occupation")
    english = english_words(place.folder, place.language)
    known = known_words()
    mistranslated = known["mistranslated"].get(place.language, {})

    def odd(fault: str, word: str, what: str, count: int) -> Finding:
        path, row = first[word]
        return place.odd(path, fault, what, row=row, column="occ_word", value=word, pairs=count)

    for word in first:
        origin = english.get(word, word if place.language == "en" else "")
        if origin in known["definitional"] and first[word][0] == files[2].path:
            translated = "" if origin == word else f" ({origin})"
            what = f"means a man or a woman by itself{translated}; neutral is disputable"
            yield odd("definitional_word", word, what, pairs[word])
        if word in mistranslated:
            meant = f" where {origin} is meant" if origin else ""
            what = f"means {mistranslated[word]}{meant}"
            yield odd("mistranslated", word, what, pairs[word])
    for inner, outer in permutations(first, 2):
        if inner in outer:
            what = f"is part of {outer!r}, so that a search for it finds both"
            yield odd("nested_occupation", inner, what, pairs[outer])


def _frames(place: Place, files: Sequence[SetFile], pack: Pack | None) -> Iterator[Finding]:
    """Report frames, each at the first row that has it."""
    first, pairs = _first(files, "frame")
    known = known_words()
    occupations = {line.aligned.occupation for file in files for line in file.lines if line.aligned}
    # Words of one or two characters are part of many others in a language without blanks.
    occupations = {word for word in occupations if place.match == "word" or len(word) > 2}
    gendered = [*place.terms["feminine"], *place.terms["masculine"]]
    gendered += known["gendered"].get(place.language, ())
    times = Counter(pack.frames if pack else ())
    for frame, (path, row) in first.items():
        rest = frame.replace(SLOT, "\0")
        word = found_in(rest, gendered, place.match)
        other = max(
            (one for one in sorted(occupations) if found_in(rest, (one,), place.match)),
            key=len,
            default="",
        )
        slots, full_stop = frame.count(SLOT), known["full_stop"].get(place.language, ".")
        faults = {
            "gendered_frame": word and f"mentions a person with a gender besides: {word!r}",
            "occupation_in_frame": other and f"mentions the occupation {other!r} besides",
            "slot_repeated": slots > 1 and f"has the occupation {slots} times",
            "duplicate_frame": times[frame] > 1
            and f"stands {times[frame]} times in the list of frames",
            "no_full_stop": not frame.endswith(full_stop) and "does not end with a full stop",
        }
        for fault, what in faults.items():
            if what:
                yield place.odd(
                    path,
                    fault,
                    what,
                    row=row,
                    column="sentence1",
                    value=frame,
                    pairs=pairs[frame],
                )


def _first(
    files: Sequence[SetFile], attribute: str
) -> tuple[dict[str, tuple[Path, int]], Counter[str]]:
    """Find where each occupation or frame occurs first, and how many pairs have it."""
    first: dict[str, tuple[Path, int]] = {}
    pairs: Counter[str] = Counter()
    for path, lines in files:
        for line in lines:
            if line.aligned:
                text = getattr(line.aligned, attribute)
                first.setdefault(text, (path, line.number))
                pairs[text] += 1
    return first, pairs


def _compare(place: Place, files: Files) -> Iterator[Finding]:
    """Report files that should agree with one another."""
    for sets in files.values():
        if {ALL, *SETS} <= set(sets):
            joined = [line.row for name in SETS for line in sets[name].lines]
            if [line.row for line in sets[ALL].lines] != joined:
                what = "is not PS, AS and NS one after the other"
                yield place.odd(sets[ALL].path, "all_differs", what)
    complete, tokenized, small = (files.get(name, {}) for name in ("all", TOKENIZED, DOWNSAMPLED))
    for name in SETS:
        if name in complete and name in tokenized:
            texts = [[_bare(line.row) for line in one[name].lines] for one in (tokenized, complete)]
            differing = sum(a != b for a, b in zip(*texts, strict=False))
            differing += abs(len(texts[0]) - len(texts[1]))
            if differing:
                what = "is more than the untokenized file with blanks"
                finding = place.odd(
                    tokenized[name].path, "tokenized_differs", what, pairs=differing
                )
                yield finding._replace(value=str(differing))
        if name in complete and name in small:
            known = [line.row for line in complete[name].lines]
            path, lines = small[name]
            for line in lines:
                if line.row not in known:
                    what, row = "is no row of the whole set", line.number
                    finding = place.odd(path, "downsample_differs", what, row=row, pairs=1)
                    yield finding._replace(value=str(line.row.get("id")))


def _bare(row: Mapping[str, Any]) -> dict[str, Any]:
    """Remove the blanks of a row's sentences."""
    return {
        name: value.replace(" ", "")
        if name.startswith("sentence") and isinstance(value, str)
        else value
        for name, value in row.items()
    }


def _controlled(place: Place, pack: Pack | None) -> Iterator[Finding]:
    """Report the labels of bias-controlled sets, their words, and the frames that they share."""
    frames: dict[str, set[str]] = {}
    for path in sorted(place.folder.glob("bias-controlled-set_v*/**/*.json")):
        split = re.split("[_-]", path.name)[0]
        try:
            lines = place.read(path).lines
        except BadInput as error:
            yield _refused(place, error)
            continue
        labels = Counter(str(line.row.get("label")) for line in lines)
        if len(labels) != 3 or len(set(labels.values())) != 1:
            counts = ", ".join(f"{label} {count:,}" for label, count in sorted(labels.items()))
            what = f"are not a third each: {counts}"
            yield place.odd(path, "label_balance", what, column="label", pairs=len(lines))
        released = known_words()["released_controlled"].get(split, 0)
        same = "as the release has" if len(lines) == released else f"the release has {released:,}"
        file, what = audit.file_name(path, place.root), f"{len(lines):,} pairs; {same}"
        yield Finding(file, 0, "", "count", what, str(len(lines)))
        frames.setdefault(split, {line.aligned.frame for line in lines if line.aligned})
    for one, other in combinations(("train", "dev", "test"), 2):
        shared = frames.get(one, set()) & frames.get(other, set())
        if shared:
            what = (
                f"{one} and {other} sets share {len(shared)} frames of {len(frames[one])} and "
                f"{len(frames[other])}: their accuracy says nothing of new frames"
            )
            yield place.odd(place.folder, "frames_shared", what, column="sentence1")
    untrained = [word for word in pack.shipped if word not in pack.trained] if pack else []
    if pack and pack.trained and untrained:
        what = (
            f"{len(untrained)} of {len(pack.shipped)} down-sampled neutral occupations are in no "
            "controlled set, so that no model was trained on them"
        )
        value = ", ".join(untrained)
        yield place.odd(place.folder, "untrained_words", what, column="occ_word", value=value)


def _count(
    title: str, files: Mapping[str, SetFile], released: Mapping[str, list[int]] | None
) -> Finding:
    """Count the pairs of each set and the occupations of each type, next to the release's."""
    pairs = [len(files[name].lines) if name in files else 0 for name in SETS]
    types: dict[str, set[str]] = {"feminine": set(), "masculine": set(), "neutral": set()}
    for name in (PS, NS):
        for line in files[name].lines if name in files else ():
            if line.aligned:
                gender = "feminine" if line.aligned.gender == "feminine" else "masculine"
                types["neutral" if name == NS else gender].add(line.aligned.occupation)
    found = {"pairs": pairs, "words": [len(words) for words in types.values()]}
    if released is None:
        same = "no release has this language"
    elif found == released:
        same = "as the release has"
    else:
        same = f"the release has {_numbers_text(released)}"
    return Finding("", 0, "", "count", f"{title}: {_numbers_text(found)}; {same}", str(sum(pairs)))


def _numbers_text(numbers: Mapping[str, Sequence[int]]) -> str:
    pairs = zip(("PS", "AS", "NS"), numbers["pairs"], strict=True)
    words = zip(numbers["words"], ("female-stereo", "male-stereo", "neutral"), strict=True)
    return (
        f"pairs {', '.join(f'{name} {count:,}' for name, count in pairs)}, "
        f"and occupations {', '.join(f'{count} {name}' for count, name in words)}"
    )


def _pack(place: Place) -> Pack | None:
    """Extract the words and frames of a folder, if they follow one of the two designs."""
    try:
        return extract(place.folder)[0]
    except (BadInput, IndexError):
        return None


def _refused(place: Place, error: Exception) -> Finding:
    """Report what the loader says, with the file, the line and the field that it names."""
    text = plain(str(error))
    found = re.match(
        r"(?P<file>.+?)(?:, line (?P<row>\d+))?(?:, field `(?P<column>\w+)`)?: (?P<what>.+)", text
    )
    if not found:
        file = audit.file_name(place.folder, place.root)
        return Finding(file, 0, "", "refused", text, fault="refused")
    file = found["file"].removeprefix(f"{place.root}").lstrip("/\\")
    row, column = int(found["row"] or 0), found["column"] or ""
    return Finding(file, row, column, "refused", found["what"], fault="refused")
