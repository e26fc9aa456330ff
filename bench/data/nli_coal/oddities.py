"""What is odd in single rows, words and frames of NLI-CoAL's evaluation sets; the files are `bench.data.nli_coal.audit`'s."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

from bench.data import audit, nli_coal
from bench.data.audit import Finding, show_cell
from bench.data.nli_coal.build import PRO
from bench.data.nli_coal.faults import DEFINITIONAL, FULL_STOP, GENDERED, MISTRANSLATED, english
from bench.data.nli_coal.frames import SLOT, Aligned, align, found_in
from bench.data.nli_coal.language_pack import Pack

SETS = tuple(nli_coal.SETS.values())
TOKENIZED = "tokenized"


class Read(NamedTuple):
    """A row of a file: its line, what it says, and how its hypothesis came about, if that is known."""

    line: int
    row: dict[str, Any]
    found: Aligned | None


class Place(NamedTuple):
    """The folder of one language, and how its gender words are found."""

    folder: Path
    root: Path
    language: str
    terms: Mapping[str, tuple[str, ...]]
    match: str

    def name(self, path: Path) -> str:
        return audit.file_name(path, self.root)


def aligned(place: Place, path: Path, line: int, row: dict[str, Any]) -> Read:
    """A row of a file with how its hypothesis came about; blanks of tokenized Japanese do not count."""
    premise, hypothesis = (str(row.get(name, "")) for name in ("sentence1", "sentence2"))
    if any(TOKENIZED in part.split("-") for part in path.parts):
        premise, hypothesis = premise.replace(" ", ""), hypothesis.replace(" ", "")
    word = row.get("occ_word")
    found = align(
        premise, hypothesis, place.terms, place.match, word if isinstance(word, str) else ""
    )
    return Read(line, row, found or align(premise, hypothesis, place.terms, place.match))


def of_rows(place: Place, name: str, path: Path, rows: Sequence[Read]) -> Iterator[Finding]:
    """What is odd in single rows of PS, AS or NS."""
    file = place.name(path)
    seen: dict[tuple[str, str], int] = {}
    unnamed = [one for one in rows if one.found and "occ_word" not in one.row]
    if unnamed:
        what = "names no occupation, as in the first release; it is found by position"
        yield Finding(
            file, unnamed[0].line, "occ_word", "odd", what, "", "no_occupation", len(unnamed)
        )
    for line, row, found in rows:
        pair = (str(row.get("sentence1")), str(row.get("sentence2")))
        if seen.setdefault(pair, line) != line:
            yield Finding(
                file,
                line,
                "",
                "odd",
                f"repeats line {seen[pair]}",
                show_cell(pair[0]),
                "duplicate_rows",
                1,
            )
        if found is None:
            what = "is not the premise with a gendered word in place of the occupation"
            yield Finding(
                file, line, "sentence2", "odd", what, show_cell(pair[1]), "not_one_frame", 1
            )
            continue
        word, kind = row.get("occ_word", found.occupation), row.get("occ_type")
        if word != found.occupation:
            what = f"is not what the sentences have, {found.occupation!r}; `anomalies=repair` takes that"
            yield Finding(
                file, line, "occ_word", "odd", what, show_cell(str(word)), "wrong_occupation", 1
            )
            continue
        if kind and (kind == "neutral") != (name == SETS[2]):
            what = f"does not belong in {name}"
            yield Finding(file, line, "occ_type", "odd", what, show_cell(kind), "wrong_type", 1)
        elif kind in PRO and (found.gender == PRO[kind]) != (name == SETS[0]):
            what = f"is {found.gender}, which for {kind} does not belong in {name}"
            yield Finding(
                file, line, "sentence2", "odd", what, show_cell(found.term), "wrong_gender", 1
            )


def of_words(place: Place, whole: Sequence[tuple[Path, list[Read]]]) -> Iterator[Finding]:
    """What is odd about occupations: those that tell a gender, those that mean something else, and those within others."""
    first, pairs = _first(place, whole, "occupation")
    known = english(place.folder, place.language)
    for word in first:
        origin = known.get(word, word if place.language == "en" else "")
        if origin in DEFINITIONAL and first[word][0] == place.name(whole[2][0]):
            what = (
                "means a man or a woman by itself"
                + ("" if origin == word else f" ({origin})")
                + "; neutral is disputable"
            )
            yield Finding(
                *first[word],
                "occ_word",
                "odd",
                what,
                show_cell(word),
                "definitional_word",
                pairs[word],
            )
        if word in MISTRANSLATED.get(place.language, ()):
            meant = f" where {origin} is meant" if origin else ""
            what = f"means {MISTRANSLATED[place.language][word]}{meant}"
            yield Finding(
                *first[word], "occ_word", "odd", what, show_cell(word), "mistranslated", pairs[word]
            )
    for inner, outer in permutations(first, 2):
        if inner in outer:
            what = f"is part of {outer!r}, so that a search for it finds both"
            yield Finding(
                *first[inner],
                "occ_word",
                "odd",
                what,
                show_cell(inner),
                "nested_occupation",
                pairs[outer],
            )


def of_frames(
    place: Place, whole: Sequence[tuple[Path, list[Read]]], pack: Pack | None
) -> Iterator[Finding]:
    """What is odd about frames, each told at the first row that has it."""
    first, pairs = _first(place, whole, "frame")
    words = {one.found.occupation for _, rows in whole for one in rows if one.found}
    gendered = (
        *place.terms["feminine"],
        *place.terms["masculine"],
        *GENDERED.get(place.language, ()),
    )
    times = Counter(pack.frames if pack else ())
    for frame, (file, line) in first.items():
        rest = frame.replace(SLOT, "\0")

        def tell(
            what: str, fault: str, frame: str = frame, at: tuple[str, int] = (file, line)
        ) -> Finding:
            return Finding(*at, "sentence1", "odd", what, show_cell(frame), fault, pairs[frame])

        word = found_in(rest, gendered, place.match)
        if word:
            yield tell(f"mentions a person with a gender besides: {word!r}", "gendered_frame")
        # Words of one or two characters are part of many others in a language without blanks.
        longer = (one for one in words if place.match == "word" or len(one) > 2)
        other = max(
            (one for one in longer if found_in(rest, (one,), place.match)), key=len, default=""
        )
        if other:
            yield tell(f"mentions the occupation {other!r} besides", "occupation_in_frame")
        if frame.count(SLOT) > 1:
            yield tell(f"has the occupation {frame.count(SLOT)} times", "slot_repeated")
        if times[frame] > 1:
            yield tell(f"stands {times[frame]} times in the list of frames", "duplicate_frame")
        if not frame.endswith(FULL_STOP.get(place.language, ".")):
            yield tell("does not end with a full stop", "no_full_stop")


def _first(
    place: Place, whole: Sequence[tuple[Path, list[Read]]], what: str
) -> tuple[dict[str, tuple[str, int]], Counter[str]]:
    """File and line where each occupation or frame stands first, and how many pairs have it."""
    first: dict[str, tuple[str, int]] = {}
    pairs: Counter[str] = Counter()
    for path, rows in whole:
        for one in rows:
            if one.found:
                found = getattr(one.found, what)
                first.setdefault(found, (place.name(path), one.line))
                pairs[found] += 1
    return first, pairs
