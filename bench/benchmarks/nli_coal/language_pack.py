"""A language pack: a folder of plain files from which NLI-CoAL's sets are built.

- `pack.toml`: language, name, licence and version, and optionally how sets are built (see
  `PackOptions`)
- `occupations.tsv`: word and type, or word and scores s1 (definitional gender) and s2 (stereotype)
- `frames.txt`: one sentence per line, with [Sub] for the occupation; an empty line is unknown
- `terms.tsv`: word and gender: feminine, masculine, and neutral if there are any
"""

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, fields, replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import ConfigDict, Field, Strict, StrictBool, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from bench.benchmarks.nli_coal.frames import (
    GENDERS,
    SLOT,
    CaptionFilter,
    Match,
    OneLine,
    Terms,
    fault,
    found_in,
    gender_words,
    judged,
    match_of,
)
from bench.core.cells import to_number
from bench.core.errors import BadInput, expected, explained, plain, quoted
from bench.core.files import atomic_write
from bench.core.places import NOTEBOOKS
from bench.data.dataset import checked, is_language
from bench.data.readers import as_path, read_lines, read_toml, to_toml

if TYPE_CHECKING:
    import pandas as pd

# Our own packs, a folder per language.
PACKS = NOTEBOOKS / "curation" / "packs"
FILES = MANIFEST, OCCUPATIONS, FRAMES, TERMS = (
    "pack.toml",
    "occupations.tsv",
    "frames.txt",
    "terms.tsv",
)
# The folder of built sets that holds their pack; the loader finds their gender words in it.
PACK = "pack"
# In the order in which the release goes through its words.
TYPES = ("neutral", "female-stereo", "male-stereo")
DESIGNS = ("window", "full")
# The first frame of a controlled set, and the frames of each word, in the release.
SPLITS: Mapping[str, tuple[int, int]] = {"train": (300, 500), "dev": (330, 50), "test": (360, 50)}
# debiaswe's scores: the release takes |s1| < .5 and |s2| > .5 for a stereotype, both strictly.
THRESHOLD = 0.5

Code = Annotated[str, checked(is_language, "a language's code of two or three small letters")]
# It becomes a part of names of folders and files.
IS_VERSION = re.compile(r"(?:[^\W_]|[.-]){1,40}").fullmatch
Version = Annotated[str, checked(IS_VERSION, "letters, digits, dots and hyphens, such as 1.0")]
Split = Annotated[str, checked(SPLITS.__contains__, ", ".join(SPLITS))]
Share = Annotated[float, Strict(), Field(ge=0, le=1)]
Start = Annotated[int, Strict(), Field(ge=0)]
Quirk = Literal["longest-occupation", "dev-feminine-first"]
Count = Annotated[int, Strict(), Field(ge=1)]


class Occupation(NamedTuple):
    """A word for a person, and its `type`: female-stereo, male-stereo or neutral."""

    word: str
    type: str


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class PackOptions:
    """The values of pack.toml.

    Attributes:
        match: how gender words are found, as whole words or anywhere; default: by the language.
        verbatim: whether frames are not searched for gendered words.
        design: how words meet frames; see `bench.benchmarks.nli_coal.build`.
        first: the gender with which NS begins.
        definitional, stereotype: thresholds of the scores; see `type_of`.
        shipped, trained: neutral occupations of the down-sampled NS and of the controlled sets;
            default: the first ones.
        quirks: how the release departs from its own scheme; we follow this only on request. In the
            first quirk, a row names the longest occupation in its premise, and this may be a word
            of the frame. In the second, the feminine row of the dev sets goes first for words that
            are against the stereotype.
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
    without: tuple[OneLine, ...] = ()


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
    """Read a language pack; with `frames=False` without its frames, if these are still missing."""
    pack, errors = pack_errors(folder, frames)
    if pack is None:
        raise BadInput(errors[0])
    return pack


def pack_errors(folder: str | Path, frames: bool = True) -> tuple[Pack | None, list[str]]:
    """Read a pack, None if anything is wrong, and list all errors."""
    folder, errors = Path(folder), list[str]()
    names = [name for name in FILES if frames or name != FRAMES]
    if missing := next((name for name in names if not (folder / name).is_file()), ""):
        return None, [f"{folder / missing}: no such file; a language pack has {', '.join(FILES)}"]
    try:
        given = read_toml(folder / MANIFEST)
        words = {name: list(read_lines(folder / name)) for name in (TERMS, OCCUPATIONS)}
        frame_lines = list(read_lines(folder / FRAMES)) if frames else []
    except BadInput as error:
        return None, [str(error)]
    options = _options(folder / MANIFEST, given, errors)
    if options is None:
        return None, errors
    terms: dict[str, tuple[str, ...]] = dict.fromkeys(GENDERS, ())
    for place, row in _words(folder / TERMS, words[TERMS], [("word", "gender")], errors):
        if row["gender"] in GENDERS:
            terms[row["gender"]] += (row["word"],)
        else:
            errors.append(f"{place}, column `gender`: {expected(row['gender'], GENDERS, 'gender')}")
    gendered = () if options.verbatim else gender_words(terms)
    headers = [("word", "type"), ("word", "s1", "s2")]
    rows = _words(folder / OCCUPATIONS, words[OCCUPATIONS], headers, errors)
    occupations = [_occupation(place, row, options, gendered, errors) for place, row in rows]
    without = () if options.verbatim else options.captions.without
    pack = Pack(
        **{**vars(options), "splits": {**SPLITS, **options.splits}},
        occupations=tuple(occupations),
        frames=_frames(folder / FRAMES, frame_lines, options, [*gendered, *without], errors),
        terms=terms,
    )
    # A file with errors lacks the words or frames of its wrong lines.
    right = [n for n in names if not any(error.startswith(f"{folder / n},") for error in errors)]
    errors += _missing(folder, pack, right)
    return (None if errors else pack), errors


def _options(path: Path, given: Mapping[str, Any], errors: list[str]) -> PackOptions | None:
    """Check the values of pack.toml."""
    given = {"match": match_of(str(given.get("language", ""))), **given}
    try:
        return OPTIONS.validate_python(given)
    except ValidationError as invalid:
        details = invalid.errors()
    for detail in details:
        *tables, key = map(str, detail["loc"])
        if detail["type"] == "unexpected_keyword_argument":
            names = [option.name for option in fields(CaptionFilter if tables else PackOptions)]
            what = "key of [captions]" if tables else "key"
            errors.append(f"{path}: {expected(key, names, what)}")
        else:
            errors.append(f"{path}, key `{'.'.join([*tables, key])}`: {explained(detail)}")
    return None


def _words(
    path: Path,
    lines: Sequence[tuple[int, str]],
    headers: Sequence[tuple[str, ...]],
    errors: list[str],
) -> list[tuple[str, dict[str, str]]]:
    """Return tab-separated rows with different words, each with its place; blank lines are skipped.

    Args:
        headers: the columns of the file, by choice.
    """
    filled = [(line, text) for line, text in lines if text.strip()]
    table = [(line, [cell.strip() for cell in text.split("\t")]) for line, text in filled]
    top, columns = table[0] if table else (1, [])
    if not any(set(names) <= set(columns) for names in headers):
        errors.append(
            f"{path}, line {top} (header): expected the columns "
            f"{' or '.join(map(', '.join, headers))}, set apart by tabs; found: "
            f"{plain(', '.join(columns))[:200]}"
        )
        return []
    first: dict[str, int] = {}
    rows = []
    for line, cells in table[1:]:
        place, row = f"{path}, line {line}", dict(zip(columns, cells, strict=False))
        word = row.get("word", "")
        if len(cells) != len(columns):
            problem = f"has {len(cells)} cells, the header has {len(columns)}"
            errors.append(f"{place}: {problem}; they are set apart by tabs")
        elif not word or SLOT in word or not word.isprintable():
            problem = f"{quoted(word)} is no word; expected characters that can be seen"
            errors.append(f"{place}, column `word`: {problem}, without {SLOT}")
        elif word in first:
            problem = f"{word!r} is in line {first[word]} already; keep one of them"
            errors.append(f"{place}, column `word`: {problem}")
        else:
            first[word] = line
            rows.append((place, row))
    return rows


def _occupation(
    place: str,
    row: Mapping[str, str],
    options: PackOptions,
    gendered: Sequence[str],
    errors: list[str],
) -> Occupation:
    """Return the occupation of a row, by its type or its scores."""
    word, kind = row["word"], row.get("type", "")
    if held := found_in(word, gendered, options.match):
        problem = f"{word!r} holds {held!r}, a gendered word of {TERMS}"
        errors.append(f"{place}, column `word`: {problem}")
    if not kind and {"s1", "s2"} <= set(row):
        s1, s2 = to_number(row["s1"]), to_number(row["s2"])
        for name, score in (("s1", s1), ("s2", s2)):
            if not -1 <= score <= 1:
                problem = f"{quoted(row[name])} is not a number from -1 to 1 with a decimal point"
                errors.append(f"{place}, column `{name}`: {problem}")
        kind = type_of(s1, s2, options.definitional, options.stereotype)
    if kind not in TYPES:
        errors.append(f"{place}, column `type`: {expected(kind, TYPES, 'type')}")
    return Occupation(word, kind)


def _frames(
    path: Path,
    lines: Sequence[tuple[int, str]],
    options: PackOptions,
    gendered: Sequence[str],
    errors: list[str],
) -> tuple[str, ...]:
    """Return the frames of lines, without the unknown ones at the end."""
    frames: list[str] = []
    first: dict[str, int] = {}
    for line, text in lines:
        frame = text.rstrip("\r") if text.strip() else ""
        frames.append(frame)
        problem = fault(frame, gendered, options.match) if frame else ""
        if frame in first and not options.verbatim:
            problem = problem or f"the frame is in line {first[frame]} already"
        if problem:
            errors.append(f"{path}, line {line}: {problem}: {plain(frame)[:60]!r}")
        if frame:
            first.setdefault(frame, line)
    while frames and not frames[-1]:
        frames.pop()
    return tuple(frames)


def _missing(folder: Path, pack: Pack, right: Sequence[str]) -> Iterator[str]:
    """Yield the words and frames that files without a wrong line have too few of."""
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
    """Write `pack` to `folder`, and return this folder; `read_pack` gives an equal pack."""
    folder = Path(folder)
    options = OPTIONS.dump_python(pack, exclude_defaults=True, exclude={"match"})
    if pack.match != match_of(pack.language):
        options["match"] = pack.match
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


def sift(pack: Pack, paths: Sequence[str | Path]) -> "pd.DataFrame":
    """Apply the pack's filter to captions.

    Returns:
        One row per line: `file`, `line`, `caption`, `frame` ("" if it is excluded) and `why` it is
        excluded. A frame that an earlier caption made is excluded too, but in verbatim packs, as in
        the release.
    """
    import pandas as pd

    words = gender_words(pack.terms)
    lines = [(path.name, *line) for path in map(as_path, paths) for line in read_lines(path)]
    table = pd.DataFrame(lines, columns=["file", "line", "caption"])
    table["caption"] = table.caption.str.rstrip("\r")
    judgements = [judged(caption, words, pack.match, pack.captions) for caption in table.caption]
    table = table.join(pd.DataFrame(judgements, table.index, ["frame", "why"], dtype=object))
    if not pack.verbatim:
        repeats = table.duplicated("frame") & (table.frame != "")
        table.loc[repeats, ["frame", "why"]] = "", "makes a frame that an earlier one makes"
    return table


def with_captions(pack: Pack, paths: Sequence[str | Path]) -> Pack:
    """Make the frames of a pack from caption files, one caption per line; see `sift`."""
    table = sift(pack, paths)
    frames = tuple(table.frame[table.frame != ""])
    if not frames:
        raise BadInput(
            f"{', '.join(map(str, paths))}: no caption of {len(table):,} lines makes a frame; one "
            f"gendered word of {TERMS} has to be in it, and what [captions] of {MANIFEST} says has "
            "to hold"
        )
    return replace(pack, frames=frames)


def type_of(
    s1: float, s2: float, definitional: float = THRESHOLD, stereotype: float = THRESHOLD
) -> str:
    """Return the type of an occupation by its scores, from -1 (female) to 1 (male).

    A stereotype is a definitional score |s1| < `definitional` and a stereotype score |s2| >
    `stereotype`, both strictly; this gives all 271 English types of the release.

    Examples:
        >>> type_of(0.1, -0.8), type_of(0.9, 0.8)
        ('female-stereo', 'neutral')
    """
    if abs(s1) < definitional and abs(s2) > stereotype:
        return "male-stereo" if s2 > 0 else "female-stereo"
    return "neutral"
