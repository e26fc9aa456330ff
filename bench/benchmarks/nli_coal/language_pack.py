"""A language pack: a folder of plain files from which NLI-CoAL's sets are built.

- `pack.toml`: language, name, licence and version, and optionally how sets are built (see
  `PackOptions`)
- `occupations.tsv`: word and type, or word and scores s1 (definitional gender) and s2 (stereotype)
- `frames.txt`: one sentence per line, with [Sub] for the occupation; an empty line is unknown
- `terms.tsv`: word and gender: feminine, masculine, and neutral if there are any
"""

import dataclasses
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from random import Random
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import ConfigDict, Field, Strict, StrictBool, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from bench.benchmarks.nli_coal.frames import (
    GENDERS,
    SLOT,
    CaptionFilter,
    Match,
    OneLine,
    Terms,
    checked,
    fault,
    found_in,
    gender_words,
    judged,
    match_of,
)
from bench.core.cells import to_number
from bench.core.errors import BadInput, expected, explained, plain, quoted
from bench.core.files import atomic_write
from bench.data.dataset import is_language
from bench.data.readers import as_path, read_lines, read_toml, to_toml

# Our own packs, a folder per language.
PACKS = Path(__file__).with_name("packs")
FILES = MANIFEST, OCCUPATIONS, FRAMES, TERMS = (
    "pack.toml",
    "occupations.tsv",
    "frames.txt",
    "terms.tsv",
)
# The folder of built sets that holds their pack; the loader finds their gender words in it.
PACK = "pack"
MAX_WORD = 200
# Each word is looked for in every frame.
MAX_TERMS = 1000
# More frames than any set can have.
MAX_FRAMES = 10**9
# Errors of a pack that are listed.
MAX_ERRORS = 1000
# In the order in which the release goes through its words.
TYPES = ("neutral", "female-stereo", "male-stereo")
DESIGNS = ("window", "full")
# Where the frames of a controlled set begin, and how many each word gets, in the release.
SPLITS: Mapping[str, tuple[int, int]] = {"train": (300, 500), "dev": (330, 50), "test": (360, 50)}
# debiaswe's scores: the release takes |s1| < .5 and |s2| > .5 for a stereotype, both strictly.
THRESHOLD = 0.5
REQUIRED = ("language", "name", "licence", "version")

Code = Annotated[str, checked(is_language, "a language's code of two or three small letters")]
# It becomes a part of names of folders and files.
IS_VERSION = re.compile(r"(?:[^\W_]|[.-]){1,40}").fullmatch
Version = Annotated[str, checked(IS_VERSION, "letters, digits, dots and hyphens, such as 1.0")]
Split = Annotated[str, checked(SPLITS.__contains__, ", ".join(SPLITS))]
Share = Annotated[float, Strict(), Field(ge=0, le=1)]
Start = Annotated[int, Strict(), Field(ge=0, lt=MAX_FRAMES)]
Quirk = Literal["longest-occupation", "dev-feminine-first"]
Count = Annotated[int, Strict(), Field(ge=1, lt=MAX_FRAMES)]


class Occupation(NamedTuple):
    """A word for a person, and its `type`: female-stereo, male-stereo or neutral."""

    word: str
    type: str


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class PackOptions:
    """What pack.toml says.

    Attributes:
        match: how gender words are found, as whole words or anywhere; default: by the language.
        verbatim: whether frames are not searched for gendered words.
        design: how words meet frames; see `bench.benchmarks.nli_coal.build`.
        first: the gender with which NS begins.
        definitional, stereotype: thresholds of the scores; see `type_of`.
        shipped, trained: neutral occupations of the down-sampled NS and of the controlled sets;
            default: the first ones.
        quirks: how the release departs from its own scheme; followed only on request. In the first,
            a row names the longest occupation that its premise holds, which may be one of the
            frame's; in the second, the feminine row of the dev sets goes first for words that are
            against the stereotype.
    """

    language: Code
    name: OneLine
    licence: OneLine
    version: Version
    match: Match = "word"
    verbatim: StrictBool = False
    design: Literal["window", "full"] = "window"
    frames_per_word: Count | None = None
    first: Literal["feminine", "masculine"] = "feminine"
    definitional: Share = THRESHOLD
    stereotype: Share = THRESHOLD
    shipped: tuple[OneLine, ...] = ()
    trained: tuple[OneLine, ...] = ()
    quirks: tuple[Quirk, ...] = ()
    splits: Mapping[Split, tuple[Start, Count]] = field(default_factory=lambda: dict(SPLITS))
    captions: CaptionFilter = field(default_factory=CaptionFilter)


OPTIONS = TypeAdapter(PackOptions)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pack(PackOptions):
    """Everything that the sets of one language are built from.

    Attributes:
        occupations: in the order in which they are used within their type.
        frames: line k + 1 of the file; "" if unknown.
        terms: as many feminine as masculine words, used in pairs, and perhaps neutral ones.
    """

    occupations: tuple[Occupation, ...]
    frames: tuple[str, ...]
    terms: Terms

    def of_type(self, *types: str) -> list[Occupation]:
        """List the occupations of `types`, type by type."""
        return [word for kind in types for word in self.occupations if word.type == kind]


def read_pack(folder: str | Path, frames: bool = True) -> Pack:
    """Read a language pack; with `frames=False` without its frames, which are still to be made.

    Raises:
        BadInput: a file, a key or a column is missing or unknown, a value is not allowed, a word or
            a frame occurs twice, a type or a gender has no word, a frame has no slot or holds a
            gendered word; with file, line and column.
    """
    pack, errors = pack_errors(folder, frames, most=1)
    if pack is None:
        raise BadInput(errors[0])
    return pack


def pack_errors(
    folder: str | Path, frames: bool = True, most: int = MAX_ERRORS
) -> tuple[Pack | None, list[str]]:
    """Read a pack, None if anything is wrong, and list what is."""
    errors: list[str] = []
    names = [name for name in FILES if frames or name != FRAMES]
    reading = _read(Path(folder), names)
    try:
        while len(errors) < most:
            errors.append(next(reading))
    except StopIteration as end:
        # A file with errors lacks what its wrong lines may hold.
        paths = {name: str(Path(folder) / name) for name in names}
        right = [n for n in names if not any(error.startswith(paths[n]) for error in errors)]
        errors += _lacking(Path(folder), end.value, right)
        return (None if errors else end.value), errors
    return None, errors


def _read(folder: Path, names: Sequence[str]) -> Generator[str, None, Pack]:
    """Yield the errors of a pack file by file, and return it; after an error the rest is read."""
    present = {name: folder / name for name in names if (folder / name).is_file()}
    for name in [name for name in names if name not in present]:
        paths = sorted(folder.glob("*"))
        similar = [p.name for p in paths if p.stem.casefold() == Path(name).stem and p.name != name]
        but = f", but there is {plain(', '.join(similar))}" if similar else ""
        yield f"{folder / name}: no such file{but}; a language pack has {', '.join(FILES)}"
    options = PackOptions(language="en", name="?", licence="?", version="0")
    if MANIFEST in present:
        options = yield from _options(present[MANIFEST], options)
    terms: dict[str, tuple[str, ...]] = dict.fromkeys(GENDERS, ())
    if TERMS in present:
        path = present[TERMS]
        rows = yield from _words(path, [("word", "gender")])
        if len(rows) > MAX_TERMS:
            yield f"{path}: has more than {MAX_TERMS:,} words, the most that are looked for"
            rows = {}
        for line, row in rows.items():
            if row["gender"] in GENDERS:
                terms[row["gender"]] += (row["word"],)
            else:
                what = expected(row["gender"], GENDERS, "gender")
                yield f"{path}, line {line}, column `gender`: {what}"
    gendered = () if options.verbatim else gender_words(terms)
    occupations: tuple[Occupation, ...] = ()
    if OCCUPATIONS in present:
        occupations = yield from _occupations(present[OCCUPATIONS], options, gendered)
    frames: list[str] = []
    if FRAMES in present:
        without = () if options.verbatim else options.captions.without
        frames = yield from _frames(present[FRAMES], options, [*gendered, *without])
    return Pack(
        **{**vars(options), "splits": {**SPLITS, **options.splits}},
        occupations=occupations,
        frames=tuple(frames),
        terms=terms,
    )


def _options(path: Path, default: PackOptions) -> Generator[str, None, PackOptions]:
    """Read pack.toml; what is wrong in it is as in `default`."""
    try:
        given = read_toml(path)
    except BadInput as error:
        yield str(error)
        return default
    given = {"match": match_of(str(given.get("language", ""))), **given}
    try:
        return OPTIONS.validate_python(given)
    except ValidationError as invalid:
        details = invalid.errors()
    for detail in details:
        *tables, key = map(str, detail["loc"])
        if detail["type"] == "unexpected_keyword_argument":
            allowed = CaptionFilter if tables else PackOptions
            names = [option.name for option in dataclasses.fields(allowed)]
            yield f"{path}: {expected(key, names, 'key of [captions]' if tables else 'key')}"
        else:
            yield f"{path}, key `{'.'.join([*tables, key])}`: {explained(detail)}"
    wrong = {detail["loc"][0] for detail in details}
    good = {key: value for key, value in given.items() if key not in wrong}
    required: dict[str, Any] = {name: getattr(default, name) for name in REQUIRED}
    return OPTIONS.validate_python(required | good)


def _words(
    path: Path, headers: Sequence[tuple[str, ...]]
) -> Generator[str, None, dict[int, dict[str, str]]]:
    """Read tab-separated rows with different words by their line; empty lines are skipped.

    Args:
        headers: the columns that there have to be, by choice.
    """

    def is_right(header: Sequence[str]) -> bool:
        return any(all(header.count(name) == 1 for name in columns) for columns in headers)

    header: list[str] = []
    rows: dict[int, dict[str, str]] = {}
    first: dict[str, int] = {}
    try:
        for line, text in read_lines(path):
            cells, place = [cell.strip() for cell in text.split("\t")], f"{path}, line {line}"
            if not text.strip():
                continue
            if not header:
                header = cells
                if is_right(header):
                    continue
                break
            if len(cells) != len(header):
                yield (
                    f"{place}: has {len(cells)} cells, the header has {len(header)}; they are set "
                    "apart by tabs"
                )
                continue
            row = dict(zip(header, cells, strict=True))
            word, place = row["word"], f"{place}, column `word`"
            if not word or SLOT in word or not word.isprintable() or len(word) > MAX_WORD:
                yield (
                    f"{place}: {quoted(word)} is no word; expected 1 to {MAX_WORD} characters that "
                    f"can be seen, without {SLOT}"
                )
            elif word in first:
                yield f"{place}: {word!r} is in line {first[word]} already; keep one of them"
            else:
                first[word], rows[line] = line, row
    except BadInput as error:
        yield str(error)
        return {}
    if not is_right(header):
        choices = " or ".join(", ".join(columns) for columns in headers)
        yield (
            f"{path}, line 1 (header): expected the columns {choices}, once each and set "
            f"apart by tabs; found: {plain(repr(header[:20])[1:-1])}"
        )
    return rows


def _occupations(
    path: Path, options: PackOptions, gendered: Sequence[str]
) -> Generator[str, None, tuple[Occupation, ...]]:
    occupations = []
    rows = yield from _words(path, [("word", "type"), ("word", "s1", "s2")])
    for line, row in rows.items():
        word, kind, place = row["word"], row.get("type", ""), f"{path}, line {line}"
        if held := found_in(word, gendered, options.match):
            yield f"{place}, column `word`: {word!r} holds {held!r}, a gendered word of {TERMS}"
        if not kind and {"s1", "s2"} <= set(row):
            scores = {name: to_number(row[name]) for name in ("s1", "s2")}
            wrong = next((name for name in scores if not -1 <= scores[name] <= 1), "")
            if wrong:
                yield (
                    f"{place}, column `{wrong}`: {quoted(row[wrong])} is not a number from -1 to 1 "
                    "with a decimal point"
                )
                continue
            kind = type_of(scores["s1"], scores["s2"], options.definitional, options.stereotype)
        if kind not in TYPES:
            yield f"{place}, column `type`: {expected(kind, TYPES, 'type')}"
        occupations.append(Occupation(word, kind))
    return tuple(occupations)


def _frames(
    path: Path, options: PackOptions, gendered: Sequence[str]
) -> Generator[str, None, list[str]]:
    frames: list[str] = []
    first: dict[str, int] = {}
    try:
        for line, text in read_lines(path):
            frame = text.rstrip("\r") if text.strip() else ""
            frames.append(frame)
            if not frame:
                continue
            wrong = fault(frame, gendered, options.match)
            if not wrong and frame in first and not options.verbatim:
                wrong = f"the frame is in line {first[frame]} already"
            if wrong:
                yield f"{path}, line {line}: {wrong}: {plain(frame)[:60]!r}"
            first.setdefault(frame, line)
    except BadInput as error:
        yield str(error)
    while frames and not frames[-1]:
        frames.pop()
    return frames


def _lacking(folder: Path, pack: Pack, right: Sequence[str]) -> Iterator[str]:
    """Yield what files lack whose lines are all right."""
    words = {kind: [word.word for word in pack.of_type(kind)] for kind in TYPES}
    for kind in TYPES if OCCUPATIONS in right else ():
        if not words[kind]:
            yield f"{folder / OCCUPATIONS}: no occupation is of type {kind}; add one at least"
    for key in ("shipped", "trained") if OCCUPATIONS in right else ():
        for word in getattr(pack, key):
            if word not in words["neutral"]:
                what = f"{word!r} is no neutral occupation of {OCCUPATIONS}"
                yield f"{folder / MANIFEST}, key `{key}`: {what}"
    feminine, masculine = (len(pack.terms[gender]) for gender in GENDERS[:2])
    if TERMS in right and not feminine == masculine > 0:
        yield (
            f"{folder / TERMS}: has {feminine} feminine and {masculine} masculine words; they are "
            "used in pairs, so there have to be as many, one at least"
        )
    if FRAMES in right and not pack.frames:
        yield f"{folder / FRAMES}: holds no frames; expected one sentence per line, with {SLOT}"


def write_pack(pack: Pack, folder: str | Path) -> Path:
    """Write `pack` to `folder`, which `read_pack` reads as an equal one; return the folder."""
    folder = Path(folder)
    options = {name: getattr(pack, name) for name in REQUIRED}
    if pack.match != match_of(pack.language):
        options["match"] = pack.match
    options |= OPTIONS.dump_python(pack, exclude_defaults=True, exclude={"match"})
    rows = [(word, gender) for gender, words in pack.terms.items() for word in words]
    atomic_write(folder / MANIFEST, to_toml(options))
    atomic_write(folder / OCCUPATIONS, _tsv(("word", "type"), pack.occupations))
    atomic_write(folder / FRAMES, "".join(f"{frame}\n" for frame in pack.frames))
    atomic_write(folder / TERMS, _tsv(("word", "gender"), rows))
    return folder


def _tsv(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "".join("\t".join(cells) + "\n" for cells in (header, *rows))


def shuffled(pack: Pack, seed: int) -> Pack:
    """Shuffle the occupations of each type, and drop `shipped` and `trained`."""
    words: list[Occupation] = []
    for kind in TYPES:
        of_type = pack.of_type(kind)
        Random(f"{seed} {kind}").shuffle(of_type)
        words += of_type
    return replace(pack, occupations=tuple(words), shipped=(), trained=())


def with_captions(pack: Pack, paths: Sequence[str | Path]) -> Pack:
    """Make the frames of a pack from caption files, one caption per line.

    A repeated caption makes a repeated frame, as in the release, if frames are taken verbatim.

    Raises:
        BadInput: a file is missing or not UTF-8, or no caption makes a frame.
    """
    words = gender_words(pack.terms)
    lines = [line for path in map(as_path, paths) for _, line in read_lines(path)]
    judgements = [judged(line.rstrip("\r"), words, pack.match, pack.captions) for line in lines]
    frames = [frame for frame, _ in judgements if frame]
    if not frames:
        raise BadInput(
            f"{', '.join(map(str, paths))}: no caption of {len(lines):,} lines makes a frame; one "
            f"gendered word of {TERMS} has to be in it, and what [captions] of {MANIFEST} says has "
            "to hold"
        )
    return replace(pack, frames=tuple(frames if pack.verbatim else dict.fromkeys(frames)))


def type_of(
    s1: float, s2: float, definitional: float = THRESHOLD, stereotype: float = THRESHOLD
) -> str:
    """Tell the type of an occupation from its scores, from -1 (female) to 1 (male).

    A stereotype is |s1| < `definitional` and |s2| > `stereotype`, both strictly; this gives all 271
    English types of the release.

    Args:
        s1: definitional score.
        s2: stereotype score.
    """
    if abs(s1) < definitional and abs(s2) > stereotype:
        return "male-stereo" if s2 > 0 else "female-stereo"
    return "neutral"
