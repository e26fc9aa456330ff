"""A language pack: a folder of plain files from which NLI-CoAL's sets are built.

- `pack.toml`: language, name, licence and version, and optionally how sets are built (see `Pack`)
- `occupations.tsv`: word and type, or word and scores s1 (definitional gender) and s2 (stereotype)
- `frames.txt`: one sentence per line, with [Sub] for the occupation; an empty line is unknown
- `terms.tsv`: word and gender: feminine, masculine, and neutral if there are any
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from bench.core.cells import to_number
from bench.core.errors import BadInput, expected, plain, quoted
from bench.core.files import atomic_write
from bench.data.dataset import is_language
from bench.data.nli_coal.frames import (
    GENDERS,
    MATCHES,
    SLOT,
    CaptionFilter,
    Terms,
    fault,
    found_in,
    from_captions,
    match_of,
)
from bench.data.readers import as_path, read_lines, read_toml, to_toml

FILES = MANIFEST, OCCUPATIONS, FRAMES, TERMS = (
    "pack.toml",
    "occupations.tsv",
    "frames.txt",
    "terms.tsv",
)
# The folder of built sets that holds their pack; the loader finds their gender words in it.
PACK = "pack"
OPTIONAL = ("type", "s1", "s2")
MAX_WORD = 200
# Each word is looked for in every frame.
MAX_TERMS = 1000
# More frames than any set can have.
MAX_FRAMES = 10**9
# In the order in which the release goes through its words.
TYPES = ("neutral", "female-stereo", "male-stereo")
DESIGNS = ("window", "full")
# Where the frames of a controlled set begin, and how many each word gets, in the release.
SPLITS: Mapping[str, tuple[int, int]] = {"train": (300, 500), "dev": (330, 50), "test": (360, 50)}
# How the release departs from its own scheme; followed only on request. In the first, a row names
# the longest occupation that its premise holds, which may be one of the frame's; in the second, the
# feminine row of the dev sets goes first for words that are against the stereotype.
QUIRKS = ("longest-occupation", "dev-feminine-first")
# debiaswe's scores: the release takes |s1| < .5 and |s2| > .5 for a stereotype, both strictly.
THRESHOLD = 0.5
REQUIRED = ("language", "name", "licence", "version")
# Takes an error: the loader raises it, the audit collects it and goes on.
Report = Callable[[str], None]


class Occupation(NamedTuple):
    """A word for a person, and its `type`: female-stereo, male-stereo or neutral."""

    word: str
    type: str


@dataclass(frozen=True)
class Pack:
    """Everything that the sets of one language are built from.

    Attributes:
        occupations: in the order in which they are used within their type.
        frames: line k + 1 of the file; "" if unknown.
        terms: as many feminine as masculine words, used in pairs, and perhaps neutral ones.
        match: how gender words are found, one of `MATCHES`.
        verbatim: whether frames are not searched for gendered words.
        design: how words meet frames; see `bench.data.nli_coal.build`.
        first: the gender with which NS begins.
        definitional, stereotype: thresholds of the scores; see `type_of`.
        shipped, trained: neutral occupations of the down-sampled NS and of the controlled sets;
            default: the first ones.
    """

    language: str
    name: str
    licence: str
    version: str
    occupations: tuple[Occupation, ...]
    frames: tuple[str, ...]
    terms: Mapping[str, tuple[str, ...]]
    match: str = "word"
    verbatim: bool = False
    design: str = "window"
    frames_per_word: int | None = None
    first: str = "feminine"
    definitional: float = THRESHOLD
    stereotype: float = THRESHOLD
    shipped: tuple[str, ...] = ()
    trained: tuple[str, ...] = ()
    quirks: tuple[str, ...] = ()
    splits: Mapping[str, tuple[int, int]] = field(default_factory=lambda: dict(SPLITS))
    captions: CaptionFilter = field(default_factory=CaptionFilter)

    def of_type(self, *types: str) -> list[Occupation]:
        """List the occupations of `types`, type by type."""
        return [one for kind in types for one in self.occupations if one.type == kind]

    @property
    def gendered(self) -> list[str]:
        """Words that no frame may hold: of both genders, and those that disqualify a caption."""
        return gendered_words(self.terms, self.captions)


def gendered_words(terms: Terms, captions: CaptionFilter) -> list[str]:
    """List the words of both genders, and those that disqualify a caption."""
    return [*terms["feminine"], *terms["masculine"], *captions.without]


def read_pack(folder: str | Path) -> Pack:
    """Read a language pack.

    Raises:
        BadInput: a file, a key or a column is missing or unknown, a value is not allowed, a word or
            a frame occurs twice, a type or a gender has no word, a frame has no slot or holds a
            gendered word; with file, line and column.
    """
    return _read_strictly(Path(folder), FILES)


def read_words(folder: str | Path) -> Pack:
    """Read a language pack without its frames, which are still to be made.

    Raises:
        BadInput: as `read_pack`.
    """
    return _read_strictly(Path(folder), [name for name in FILES if name != FRAMES])


def faults(folder: str | Path, frames: bool = True) -> tuple[Pack | None, list[str]]:
    """Read a pack and list everything for which `read_pack` would refuse it.

    Args:
        frames: whether to read them; without, they are still to be made.

    Returns:
        The pack, None if anything is wrong; and the errors.
    """
    errors: list[str] = []
    names = [name for name in FILES if frames or name != FRAMES]
    pack = _read(Path(folder), errors.append, names)
    return (None if errors else pack), errors


def _read_strictly(folder: Path, names: Sequence[str]) -> Pack:
    def refuse(error: str) -> None:
        raise BadInput(error)

    pack = _read(folder, refuse, names)
    assert pack is not None  # whatever is wrong was refused
    return pack


def _read(folder: Path, report: Report, names: Sequence[str]) -> Pack | None:
    """Read the pack, None if it is incomplete; after an error the rest is examined nevertheless."""
    present = {name for name in names if (folder / name).is_file()}
    for name in names:
        if name not in present:
            files = ", ".join(FILES)
            report(f"{folder / name}: {_missing(folder, name)}; a language pack has {files}")
    manifest: dict[str, Any] = {"match": "word", "captions": CaptionFilter()}
    terms: Terms = dict.fromkeys(GENDERS, ())
    occupations: tuple[Occupation, ...] = ()
    frames: tuple[str, ...] = ()
    if MANIFEST in present:
        manifest = _manifest(folder / MANIFEST, report)
    if TERMS in present:
        terms = _terms(folder / TERMS, report)
    if OCCUPATIONS in present:
        occupations = _occupations(folder / OCCUPATIONS, manifest, terms, report)
        neutral = [one.word for one in occupations if one.type == "neutral"]
        for key in ("shipped", "trained"):
            for word in manifest.get(key, ()):
                if word not in neutral:
                    report(
                        f"{folder / MANIFEST}, key `{key}`: {word!r} is no neutral occupation of "
                        f"{OCCUPATIONS}"
                    )
    if FRAMES in present:
        frames = _frames(folder / FRAMES, manifest, terms, report)
    if len(present) < len(names) or not all(key in manifest for key in REQUIRED):
        return None
    return Pack(**manifest, occupations=occupations, frames=frames, terms=terms)


def _missing(folder: Path, name: str) -> str:
    if (folder / name).exists():
        return "is a folder, not a file"
    stem = Path(name).stem
    paths = sorted(folder.glob("*")) if folder.is_dir() else []
    similar = [path.name for path in paths if path.stem.casefold() == stem]
    return f"no such file, but {plain(', '.join(similar))}" if similar else "no such file"


def write_pack(pack: Pack, folder: str | Path) -> Path:
    """Write `pack` to `folder`, which `read_pack` reads as an equal one; return the folder."""
    folder = Path(folder)
    required = {name: getattr(pack, name) for name in REQUIRED}
    match = match_of(pack.language)
    default = asdict(Pack(**required, occupations=(), frames=(), terms={}, match=match))
    manifest = {
        name: value
        for name, value in asdict(pack).items()
        if name in required or (name in KEYS and value != default[name])
    }
    if "captions" in manifest:
        bare = asdict(CaptionFilter())
        captions = manifest["captions"].items()
        manifest["captions"] = {name: value for name, value in captions if value != bare[name]}
    terms = [(word, gender) for gender, words in pack.terms.items() for word in words]
    atomic_write(folder / MANIFEST, to_toml(manifest))
    atomic_write(folder / OCCUPATIONS, _tsv(("word", "type"), pack.occupations))
    atomic_write(folder / FRAMES, "".join(f"{frame}\n" for frame in pack.frames))
    atomic_write(folder / TERMS, _tsv(("word", "gender"), terms))
    return folder


def shuffled(pack: Pack, seed: int) -> Pack:
    """Shuffle the occupations of each type, and drop `shipped` and `trained`."""
    words: list[Occupation] = []
    for kind in TYPES:
        of_type = pack.of_type(kind)
        Random(f"{seed} {kind}").shuffle(of_type)
        words += of_type
    return replace(pack, occupations=tuple(words), shipped=(), trained=())


def with_captions(pack: Pack, paths: Sequence[str | Path], most: int | None = None) -> Pack:
    """Make the frames of a pack from caption files, one caption per line; at most `most`.

    Raises:
        BadInput: a file is missing or not UTF-8, or no caption makes a frame.
    """
    lines: list[str] = []
    for path in map(as_path, paths):
        if not path.is_file():
            raise BadInput(f"{path}: no such file of captions")
        lines += [line.rstrip("\r") for _, line in read_lines(path)]
    frames = from_captions(lines, pack.terms, pack.match, pack.captions, most)
    if not frames:
        raise BadInput(
            f"{', '.join(map(str, paths))}: no caption of {len(lines):,} lines makes a frame; one "
            f"gendered word of {TERMS} has to be in it, and what [captions] of {MANIFEST} says has "
            "to hold"
        )
    return replace(pack, frames=tuple(frames))


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


# The manifest, pack.toml: the test of each key, and the values that it allows in words.


class Rule(NamedTuple):
    """Whether a value is allowed, and which ones are."""

    test: Callable[[Any], bool]
    allowed: str


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and "\n" not in value


def _is_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(map(_is_text, value))


def _is_number(value: Any, low: float, high: float, kinds: Any = int) -> bool:
    return isinstance(value, kinds) and not isinstance(value, bool) and low <= value <= high


def _is_version(value: Any) -> bool:
    # It becomes a part of names of folders and files.
    return _is_text(value) and re.fullmatch(r"(?:[^\W_]|[.-]){1,40}", value) is not None


def _is_splits(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        name in SPLITS
        and isinstance(pair, list)
        and [type(one) for one in pair] == [int, int]
        and MAX_FRAMES > pair[0] >= 0 < pair[1] < MAX_FRAMES
        for name, pair in value.items()
    )


def _one_of(allowed: Sequence[str]) -> Rule:
    test = lambda value: isinstance(value, str) and value in allowed  # noqa: E731
    return Rule(test, ", ".join(allowed))


TEXT = Rule(_is_text, "a text on one line")
TEXTS = Rule(_is_texts, "a list of words")
BOOL = Rule(lambda value: isinstance(value, bool), "true, false")
SHARE = Rule(lambda value: _is_number(value, 0, 1, int | float), "a number from 0 to 1")
KEYS: Mapping[str, Rule] = {
    "language": Rule(is_language, "a language's code of two or three small letters, such as zh"),
    "name": TEXT,
    "licence": TEXT,
    "version": Rule(_is_version, "a text of letters, digits, dots and hyphens, such as 1.0"),
    "match": _one_of(MATCHES),
    "verbatim": BOOL,
    "design": _one_of(DESIGNS),
    "frames_per_word": Rule(
        lambda value: _is_number(value, 1, MAX_FRAMES - 1),
        f"a whole number from 1, below {MAX_FRAMES:,}",
    ),
    "first": _one_of(GENDERS[:2]),
    "definitional": SHARE,
    "stereotype": SHARE,
    "shipped": TEXTS,
    "trained": TEXTS,
    "quirks": Rule(
        lambda value: _is_texts(value) and set(value) <= set(QUIRKS),
        f"a list of {', '.join(QUIRKS)}",
    ),
    "splits": Rule(
        _is_splits,
        f"{', '.join(SPLITS)}, each with [where its frames begin, how many a word gets]",
    ),
    "captions": Rule(lambda value: isinstance(value, Mapping), "a table"),
}
CAPTION_KEYS: Mapping[str, Rule] = {
    "without": TEXTS,
    "blanks": BOOL,
    "lower": BOOL,
    "determiners": Rule(
        lambda value: isinstance(value, Mapping) and all(map(_is_text, value.values())),
        "a table of words",
    ),
    "end": Rule(lambda value: value == "" or _is_text(value), TEXT.allowed),
    "skip_id": BOOL,
}


def _manifest(path: Path, report: Report) -> dict[str, Any]:
    """Read what pack.toml says, by the names of `Pack`; wrong keys are reported and left out."""
    given: Mapping[str, Any] = {}
    try:
        given = read_toml(path)
    except BadInput as error:
        report(str(error))
    else:
        for key in REQUIRED:
            if key not in given:
                report(f"{path}: key `{key}` is missing; a pack needs {', '.join(REQUIRED)}")
    manifest = _checked(path, given, KEYS, "key", report)
    captions = manifest.get("captions", {})
    captions = _checked(path, captions, CAPTION_KEYS, "key of [captions]", report)
    manifest["captions"] = CaptionFilter(**captions)
    splits = {name: tuple(pair) for name, pair in manifest.get("splits", {}).items()}
    manifest["splits"] = {**SPLITS, **splits}
    return {"match": match_of(manifest.get("language", "")), **manifest}


def _checked(
    path: Path, given: Mapping[str, Any], rules: Mapping[str, Rule], what: str, report: Report
) -> dict[str, Any]:
    checked = {}
    for key, value in given.items():
        if key not in rules:
            report(f"{path}: {expected(key, rules, what)}")
        elif not rules[key].test(value):
            report(
                f"{path}, {what} `{key}`: {plain(repr(value))[:80]} is not allowed; "
                f"expected {rules[key].allowed}"
            )
        else:
            checked[key] = tuple(value) if isinstance(value, list) else value
    return checked


# The tables of words, and the frames.


class Table(NamedTuple):
    """Rows by their line, from 1; `complete` unless some were refused."""

    rows: dict[int, dict[str, str]]
    complete: bool


def _table(path: Path, columns: Sequence[str], report: Report) -> Table:
    """Read tab-separated values without quoting; empty lines are skipped."""
    lines = _lines(path, report)
    header: list[str] = []
    rows: dict[int, dict[str, str]] = {}
    complete = True
    for line, text in lines or ():
        cells = [cell.strip() for cell in text.split("\t")]
        if not text.strip():
            continue
        if not header:
            header = cells
            errors = _header_errors(header, columns)
            for error in errors:
                report(f"{path}, line {line} (header): {error}")
            if errors:
                return Table({}, False)
        elif len(cells) != len(header):
            complete = False
            report(
                f"{path}, line {line}: has {len(cells)} cells, the header has {len(header)}; they "
                "are set apart by tabs"
            )
        else:
            rows[line] = dict(zip(header, cells, strict=True))
    if lines is not None and not header:
        more = "" if len(columns) > 1 else ", and type or s1 and s2"
        names = ", ".join(columns)
        report(f"{path}: is empty; expected a header with the columns {names}{more}")
    return Table(rows, complete and bool(header))


def _header_errors(header: Sequence[str], columns: Sequence[str]) -> list[str]:
    found = plain(", ".join(header[:20]))
    signs = [sign for sign in (",", ";", r" +") if re.search(sign, found)]
    if len(header) == 1 and any({*columns} < {*re.split(sign, found), ""} for sign in signs):
        return [f"is {found!r} without a tab; columns are set apart by tabs, in every line"]
    return [
        f"column `{column}` {'occurs more than once' if column in header else 'is missing'}; "
        f"found: {found}"
        for column in (*columns, *OPTIONAL)
        if header.count(column) > 1 or (column in columns and column not in header)
    ]


def _lines(path: Path, report: Report) -> list[tuple[int, str]] | None:
    try:
        return list(read_lines(path))
    except BadInput as error:
        report(str(error))
        return None


def _words(path: Path, columns: Sequence[str], report: Report) -> Table:
    """Read the rows whose `word` is a word, and not that of an earlier row."""
    table = _table(path, columns, report)
    first: dict[str, int] = {}
    for line, row in table.rows.items():
        word, place = row["word"], f"{path}, line {line}, column `word`"
        if not word:
            report(f"{place}: is empty; expected a word")
        elif SLOT in word or not word.isprintable() or len(word) > MAX_WORD:
            report(
                f"{place}: {quoted(word)} is no word; it holds {SLOT} or a character that cannot "
                f"be seen, or has more than {MAX_WORD}"
            )
        elif word in first:
            earlier = table.rows[first[word]]
            other = [plain(name) for name in row if row[name] != earlier[name]]
            how = f", with another {', '.join(other)}" if other else ""
            report(
                f"{place}: {word!r} is in line {first[word]} already{how}; every word needs one "
                "line"
            )
        else:
            first[word] = line
    rows = {line: table.rows[line] for line in first.values()}
    return Table(rows, table.complete and len(rows) == len(table.rows))


def _occupations(
    path: Path, manifest: Mapping[str, Any], terms: Terms, report: Report
) -> tuple[Occupation, ...]:
    thresholds = {
        name: manifest[name] for name in ("definitional", "stereotype") if name in manifest
    }
    gendered = () if manifest.get("verbatim") else (*terms["feminine"], *terms["masculine"])
    occupations = []
    table = _words(path, ("word",), report)
    for line, row in table.rows.items():
        word, kind, place = row["word"], row.get("type", ""), f"{path}, line {line}"
        scored = {"s1", "s2"} <= set(row)
        if "type" not in row and not scored:
            report(
                f"{path}, line 1 (header): column `type` is missing, or columns `s1` and `s2`; "
                f"found: {plain(', '.join(row))}"
            )
            return ()
        held = found_in(word, gendered, manifest["match"])
        if held:
            report(f"{place}, column `word`: {word!r} holds {held!r}, a gendered word of {TERMS}")
        if not kind and scored:
            s1, s2 = (_score(place, name, row[name], report) for name in ("s1", "s2"))
            if s1 is None or s2 is None:
                continue
            kind = type_of(s1, s2, **thresholds)
        if kind in TYPES:
            occupations.append(Occupation(word, kind))
        else:
            report(f"{place}, {expected(kind, TYPES, 'column `type`')}")
    types = {occupation.type for occupation in occupations}
    # A refused row may be of the missing type.
    if table.complete and len(occupations) == len(table.rows):
        for kind in TYPES:
            if kind not in types:
                report(f"{path}: no occupation is of type {kind}; every type needs one at least")
    return tuple(occupations)


def _score(place: str, column: str, cell: str, report: Report) -> float | None:
    value = to_number(cell)
    if -1 <= value <= 1:
        return value
    point = cell.replace(",", ".")
    meant = point != cell and -1 <= to_number(point) <= 1
    remedy = f"; if it is {point}, write it with a point" if meant else ""
    report(f"{place}, column `{column}`: {cell!r} is not a number from -1 to 1{remedy}")
    return None


def _terms(path: Path, report: Report) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {gender: [] for gender in GENDERS}
    rows, complete = _words(path, ("word", "gender"), report)
    for line, row in rows.items():
        if row["gender"] in GENDERS:
            found[row["gender"]].append(row["word"])
        else:
            complete = False
            report(f"{path}, line {line}, {expected(row['gender'], GENDERS, 'column `gender`')}")
    if sum(map(len, found.values())) > MAX_TERMS:
        report(f"{path}: has more than {MAX_TERMS:,} words, the most that are looked for in frames")
    feminine, masculine = (len(found[gender]) for gender in GENDERS[:2])
    # A refused row may be the missing one.
    for gender in GENDERS[:2] if complete else ():
        if not found[gender]:
            both = ", ".join(GENDERS[:2])
            report(f"{path}: no word is {gender}; each of {both} needs one at least")
    if complete and feminine and masculine and feminine != masculine:
        report(
            f"{path}: has {feminine} feminine and {masculine} masculine words; they are used in "
            "pairs, so there have to be as many"
        )
    return {gender: tuple(words) for gender, words in found.items()}


def _frames(
    path: Path, manifest: Mapping[str, Any], terms: Terms, report: Report
) -> tuple[str, ...]:
    verbatim = bool(manifest.get("verbatim"))
    gendered = () if verbatim else gendered_words(terms, manifest["captions"])
    read = _lines(path, report)
    frames = [line.rstrip("\r") if line.strip() else "" for _, line in read or ()]
    while frames and not frames[-1]:
        frames.pop()
    first: dict[str, int] = {}
    for line, frame in enumerate(frames, start=1):
        if not frame:
            continue
        wrong = fault(frame, gendered, manifest["match"])
        if not wrong and frame in first and not verbatim:
            wrong = f"the frame is in line {first[frame]} already"
        if wrong:
            report(f"{path}, line {line}: {wrong}: {plain(frame)[:60]!r}")
        first.setdefault(frame, line)
    if not first and read is not None:
        report(f"{path}: holds no frames; expected one sentence per line, with {SLOT}")
    return tuple(frames)


def _tsv(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "".join("\t".join(cells) + "\n" for cells in (header, *rows))
