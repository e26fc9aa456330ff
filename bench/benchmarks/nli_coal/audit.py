"""Audit an NLI-CoAL folder: rows, words, frames and files, and its size next to the release's.

The word lists and the numbers of the release are in known_words.toml.
"""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import combinations, permutations, zip_longest
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from bench.benchmarks.nli_coal import METADATA
from bench.benchmarks.nli_coal import items as nli_coal
from bench.benchmarks.nli_coal.build import PRO, untrained
from bench.benchmarks.nli_coal.extract import ALL_WORDS, extract
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
from bench.benchmarks.nli_coal.language_pack import Pack
from bench.core.errors import BadInput, plain
from bench.data import audit
from bench.data.readers import read_json_lines

odd = audit.Faults(Path(__file__).with_name("faults.csv")).odd
PS, AS, NS = SETS = tuple(nli_coal.SETS.values())
ALL = "4-all"
# Folders of evaluation sets, by their content.
DOWNSAMPLED, TOKENIZED = "downsamp", "tokenized"
# An error of the reader: the file, the line, the field or column, and the reason.
ERROR = re.compile(
    r"(?P<file>.+?)(?:, line (?P<row>\d+))?(?: \(header\))?"
    r"(?:, (?:column|field) `(?P<column>\w+)`)?: (?P<what>.+)"
)
Audit = Iterator[pd.DataFrame]


class Place(NamedTuple):
    """The folder of one language, and how its gender words are found."""

    folder: Path
    root: Path
    language: str
    terms: Terms
    match: str


def check(folder: Path, **settings: str) -> pd.DataFrame:
    """List everything found in a folder, in the columns of `bench.data.audit`.

    Source: faults of the authors' files (their repository, commit 4d57afe).
    """
    root = Path(folder)
    findings = [finding for place in _places(root) for finding in _check(place)]
    if not findings:
        findings = [audit.refused(what=f"the folder {METADATA.no_data}")]
    return audit.to_table(findings, "pairs")


def refused(root: Path, error: Exception | str) -> pd.DataFrame:
    """Report an error of a reader, with the file, the line and the column that it names."""
    text = plain(str(error)).removeprefix(str(root)).lstrip("/\\")
    named = ERROR.fullmatch(text)
    if not named:
        return audit.refused(what=text)
    file, _, key = named["file"].partition(", ")  # a key of TOML
    what = f"{key}: {named['what']}" if key else named["what"]
    row, column = int(named["row"] or 0), named["column"] or ""
    return audit.refused(file=file, row=row, column=column, what=what)


def _places(root: Path) -> Iterator[Place]:
    for language, folder in nli_coal.places(root):
        try:
            yield Place(folder, root, language, *nli_coal.gender_terms(folder, language))
        except BadInput:  # a wrong pack, which the loader reports
            if language in RELEASED_TERMS:
                yield Place(folder, root, language, RELEASED_TERMS[language], match_of(language))


def _lines(path: Path, place: Place) -> pd.DataFrame:
    """Read the lines of a file, each with its frame; the blanks of tokenized Japanese go.

    The frame is empty if the hypothesis is not the premise with another word.
    """
    is_tokenized = any(TOKENIZED in part.split("-") for part in path.parts)
    rows = []
    for number, data in read_json_lines(path):
        for name in ("sentence1", "sentence2") if is_tokenized else ():
            data[name] = str(data.get(name, "")).replace(" ", "")
        premise, hypothesis = (str(data.get(name, "")) for name in ("sentence1", "sentence2"))
        named, kind = (str(data.get(name) or "") for name in ("occ_word", "occ_type"))
        aligned = align(premise, hypothesis, place.terms, place.match, named)
        rows.append(
            {
                "row": number,
                "data": data,
                "sentence1": premise,
                "sentence2": hypothesis,
                "occ_type": kind,
                "occ_word": named,
                **(aligned or Aligned("", "", "", ""))._asdict(),
            }
        )
    if not rows:
        raise BadInput(f"{path}: holds no pairs")
    return pd.DataFrame(rows).assign(file=audit.file_name(path, place.root), items=1)


def _check(place: Place) -> Audit:
    folder = audit.file_name(place.folder, place.root)
    try:
        nli_coal.load(place.folder, [place.language])
    except BadInput as error:
        yield refused(place.root, error)
    except KeyError:
        what = f"has not all of {', '.join(SETS)} in {' or '.join(ALL_WORDS)}"
        yield audit.refused(file=folder, what=what)
    # The lines of each variant (all words, down-sampled, tokenized), by the name of the set.
    files: dict[str, dict[str, pd.DataFrame]] = {}
    for path in sorted(place.folder.glob("bias-eval-set_v*/*/*.json")):
        variant = "all" if path.parent.name in ALL_WORDS else path.parent.name
        name = re.split(r"-(?:downsamp|tok)|_v", path.name)[0]
        try:
            lines = _lines(path, place).assign(set=name)
        except BadInput as error:
            yield refused(place.root, error)
            continue
        files.setdefault(variant, {})[name] = lines
        if name in SETS:
            yield from _row_rules(lines, name)
    yield from _file_rules(files)
    try:  # words and frames, if the files follow one of the two designs
        pack = extract(place.folder)[0]
    except (BadInput, IndexError):
        pack = None
    complete = files.get("all", {})
    if set(SETS) <= set(complete):
        lines = pd.concat([complete[name] for name in SETS], ignore_index=True)
        lines = lines[lines.frame != ""]
        yield from _word_rules(lines, place)
        yield from _frame_rules(lines, place, Counter(pack.frames if pack else ()))
    yield from _controlled_rules(place, pack)
    for variant, title in (("all", "all words"), (DOWNSAMPLED, "down-sampled")):
        if variant in files:
            key = place.language if variant == "all" else "downsampled"
            released = known_words()["released"].get(key)
            yield _count(f"{place.language}, {title}", files[variant], released)


def _row_rules(lines: pd.DataFrame, name: str) -> Audit:
    """Find faults of single rows of PS, AS or NS."""
    sentences = ["sentence1", "sentence2"]
    first = lines.groupby(sentences).row.transform("first")
    yield odd(lines[first != lines.row], "duplicate_rows", first=first, value=lines.sentence1)
    yield odd(lines[lines.frame == ""], "not_one_frame")
    lines = lines[lines.frame != ""]
    unnamed = lines[lines.occ_word == ""]
    yield odd(unnamed[:1], "no_occupation", items=len(unnamed))
    is_wrong = (lines.occ_word != "") & (lines.occ_word != lines.occupation)
    yield odd(lines[is_wrong], "wrong_occupation")
    lines = lines[~is_wrong & (lines.occ_type != "")]
    is_wrong = (lines.occ_type == "neutral") != (name == NS)
    yield odd(lines[is_wrong], "wrong_type")
    lines = lines[~is_wrong & lines.occ_type.isin(list(PRO))]
    is_wrong = (lines.gender == lines.occ_type.map(PRO)) != (name == PS)
    yield odd(lines[is_wrong], "wrong_gender", value=lines.term)


def _word_rules(lines: pd.DataFrame, place: Place) -> Audit:
    """Find occupations that have a gender, mean something else, or are part of others."""
    pairs = lines.occupation.value_counts()
    first = lines.drop_duplicates("occupation").set_index("occupation", drop=False)
    first = first.assign(items=pairs, occ_word=first.occupation)
    english = english_words(place.folder, place.language)
    is_english = place.language == "en"
    origin = first.occupation.map(lambda word: english.get(word, word if is_english else ""))
    is_definitional = origin.isin(known_words()["definitional"]) & (first.set == NS)
    translated = (" (" + origin + ")").where(origin != first.occupation, "")
    yield odd(first[is_definitional], "definitional_word", translated=translated)
    meaning = first.occupation.map(known_words()["mistranslated"].get(place.language, {}))
    meant = (" where " + origin + " is meant").where(origin != "", "")
    yield odd(first[meaning.notna()], "mistranslated", meaning=meaning, meant=meant)
    nested = [(a, b) for a, b in permutations(first.occupation, 2) if a in b]
    inner, outer = ([pair[k] for pair in nested] for k in (0, 1))
    found = first.loc[inner].reset_index(drop=True)
    yield odd(found, "nested_occupation", outer=outer, items=pairs[outer].tolist())


def _frame_rules(lines: pd.DataFrame, place: Place, times: Counter[str]) -> Audit:
    """Find faults of frames, each at the first row that has it."""
    known = known_words()
    gendered = [*gender_words(place.terms), *known["gendered"].get(place.language, ())]
    # Words of one or two characters are part of many others in a language without blanks.
    occupations = [
        word for word in sorted(set(lines.occupation)) if place.match == "word" or len(word) > 2
    ]

    def longest_occupation(text: str) -> str:
        mentioned = [word for word in occupations if found_in(text, (word,), place.match)]
        return max(mentioned, key=len, default="")

    frame = lines.frame.drop_duplicates()
    rest = frame.str.replace(SLOT, "\0", regex=False)
    first = lines.loc[frame.index].assign(
        items=frame.map(lines.frame.value_counts()),
        value=frame,
        word=rest.map(lambda text: found_in(text, gendered, place.match)),
        other=rest.map(longest_occupation),
        slots=frame.str.count(re.escape(SLOT)),
        times=frame.map(times),
    )
    yield odd(first[first.word != ""], "gendered_frame")
    yield odd(first[first.other != ""], "occupation_in_frame")
    yield odd(first[first.slots > 1], "slot_repeated")
    yield odd(first[first.times > 1], "duplicate_frame")
    full_stop = known["full_stop"].get(place.language, ".")
    yield odd(first[~frame.str.endswith(full_stop)], "no_full_stop")


def _file_rules(files: dict[str, dict[str, pd.DataFrame]]) -> Audit:
    """Find files that should agree with one another."""
    for sets in files.values():
        if {ALL, *SETS} <= set(sets):
            joined = [data for name in SETS for data in sets[name].data]
            if list(sets[ALL].data) != joined:
                yield odd(sets[ALL].file[0], "all_differs")
    complete, tokenized, small = (files.get(name, {}) for name in ("all", TOKENIZED, DOWNSAMPLED))
    for name in filter(complete.__contains__, SETS):
        rows = list(complete[name].data)
        if name in tokenized:
            pairs = zip_longest(tokenized[name].data, rows)
            differing = sum(a != b for a, b in pairs)
            if differing:
                file = tokenized[name].file[0]
                yield odd(file, "tokenized_differs", value=differing, items=differing)
        if name in small:
            is_other = [data not in rows for data in small[name].data]
            number = small[name].data.map(lambda data: str(data.get("id")))
            yield odd(small[name][is_other], "downsample_differs", value=number)


def _controlled_rules(place: Place, pack: Pack | None) -> Audit:
    """Find faults of bias-controlled sets: labels, words, and shared frames; and their sizes."""
    folder = audit.file_name(place.folder, place.root)
    frames: dict[str, set[str]] = {split: set() for split in ("train", "dev", "test")}
    for path in sorted(place.folder.glob("bias-controlled-set_v*/**/*.json")):
        split, file = re.split("[_-]", path.name)[0], audit.file_name(path, place.root)
        try:
            lines = _lines(path, place)
        except BadInput as error:
            yield refused(place.root, error)
            continue
        labels = Counter(str(data.get("label")) for data in lines.data)
        if len(labels) != 3 or len(set(labels.values())) != 1:
            counts = ", ".join(f"{label} {count:,}" for label, count in sorted(labels.items()))
            yield odd(file, "label_balance", counts=counts, items=len(lines))
        released = known_words()["released_controlled"].get(split, 0)
        same = "as the release has" if len(lines) == released else f"the release has {released:,}"
        what = f"{len(lines):,} pairs; {same}"
        yield audit.finding(file=file, kind="count", what=what, value=len(lines))
        # The frames are the same at every rate.
        frames[split] = frames.get(split) or set(lines.frame) - {""}
    for split, other in combinations(("train", "dev", "test"), 2):
        sizes = {"size": len(frames[split]), "other_size": len(frames[other])}
        if shared := len(frames[split] & frames[other]):
            names = {"split": split, "other": other, "shared": shared}
            yield odd(folder, "frames_shared", **names, **sizes)
    words = untrained(pack) if pack and pack.shipped and pack.trained else []
    if pack and words:
        numbers = {"missing": len(words), "shipped": len(pack.shipped)}
        yield odd(folder, "untrained_words", value=", ".join(words), **numbers)


def _count(
    title: str, sets: dict[str, pd.DataFrame], released: dict[str, int] | None
) -> pd.DataFrame:
    """Count the pairs of each set and the occupations of each type, next to the release's."""
    words = set()
    for name in filter(sets.__contains__, (PS, NS)):
        lines = sets[name][sets[name].frame != ""]
        genders = ["neutral"] * len(lines) if name == NS else lines.gender
        words |= set(zip(genders, lines.occupation, strict=True))
    types = Counter(kind for kind, _ in words)
    numbers = {key.upper(): len(sets.get(name, ())) for key, name in nli_coal.SETS.items()}
    size = sum(numbers.values())
    numbers |= {"female-stereo": types["feminine"], "male-stereo": types["masculine"]}
    return audit.counted(title, numbers | {"neutral": types["neutral"]}, released, size)
