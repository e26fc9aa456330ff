"""A language pack: what NLI-CoAL's sets are made of, in one folder of plain files that people can write.

- `pack.toml`: language, name, licence and version; and how sets are made of it, all of that optional (see `Pack`)
- `occupations.tsv`: word and type, or word and two scores, s1 (definitional gender) and s2 (stereotype)
- `frames.txt`: a sentence a line, with [Sub] where the occupation goes; an empty line is a frame that is not known
- `terms.tsv`: word and gender: feminine, masculine, and neutral where there are any
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from bench.core.cells import to_number
from bench.core.errors import BadInput, expected, plain, quoted
from bench.core.files import atomic_write
from bench.data import readers
from bench.data.nli_coal.frames import (
    GENDERS,
    SLOT,
    CaptionFilter,
    Terms,
    fault,
    found_in,
    from_captions,
    match_of,
)
from bench.data.nli_coal.pack_manifest import (
    KEYS,
    REQUIRED,
    SPLITS,
    THRESHOLD,
    Tell,
    read_manifest,
    refuse,
)
from bench.data.readers import as_path, read_lines

FILES = MANIFEST, OCCUPATIONS, FRAMES, TERMS = (
    "pack.toml",
    "occupations.tsv",
    "frames.txt",
    "terms.tsv",
)
# The folder among built sets that holds the pack they were made of; the loader finds their gender words in it.
PACK = "pack"
OPTIONAL = ("type", "s1", "s2")
MAX_WORD = 200
# Each word is looked for in every frame.
MAX_TERMS = 1000
# In the order in which the release goes through its words.
TYPES = ("neutral", "female-stereo", "male-stereo")


class Occupation(NamedTuple):
    """A word for a person, and its `type`: female-stereo, male-stereo or neutral."""

    word: str
    type: str


@dataclass(frozen=True)
class Pack:
    """Everything that the sets of one language are made of; see the files above.

    `occupations` stand in the order in which they are used within their type. `frames[k]` is line k + 1 of its file, ""
    where not known. `terms` has as many feminine as masculine words, which are used in pairs, and perhaps neutral ones.
    `design` is how words meet frames (see `bench.data.nli_coal.build`), `first` the gender with which NS begins. `shipped` and `trained` are the neutral occupations of the down-sampled
    NS and of the controlled sets; empty: the first ones. `verbatim`: frames were not looked through for gendered words.
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
        """The occupations of `types`, type by type."""
        return [one for kind in types for one in self.occupations if one.type == kind]

    @property
    def gendered(self) -> list[str]:
        """Words that no frame may hold: those of both genders, and those that disqualify a caption."""
        return gendered_words(self.terms, self.captions)


def gendered_words(terms: Terms, captions: CaptionFilter) -> list[str]:
    """The words of both genders, and those that disqualify a caption."""
    return [*terms["feminine"], *terms["masculine"], *captions.without]


def read_pack(folder: str | Path) -> Pack:
    """The language pack in `folder`.

    Raises:
        BadInput: a file, a key or a column is missing or unknown, a value is not allowed, a word or a frame occurs twice,
            a type or a gender has no word, a frame has no slot or holds a gendered word; with file, line and column.
    """
    pack = _read(Path(folder), refuse)
    assert pack is not None  # whatever is wrong was refused
    return pack


def faults(folder: str | Path, frames: bool = True) -> tuple[Pack | None, list[str]]:
    """The pack in `folder`, None where something is wrong with it; and everything for which `read_pack` would refuse it.

    Without `frames` these are still to be made, as for `read_words`.
    """
    told: list[str] = []
    pack = _read(
        Path(folder), told.append, FILES if frames else [name for name in FILES if name != FRAMES]
    )
    return (None if told else pack), told


def _instead(folder: Path, name: str) -> str:
    """That a file is not there, and what is in its place."""
    if (folder / name).exists():
        return "is a folder, not a file"
    stem = Path(name).stem
    near = (
        sorted(path.name for path in folder.glob("*") if path.stem.casefold() == stem)
        if folder.is_dir()
        else []
    )
    return f"no such file, but {plain(', '.join(near))}" if near else "no such file"


def read_words(folder: str | Path) -> Pack:
    """The language pack in `folder` without its frames, which are still to be made.

    Raises:
        BadInput: as `read_pack`.
    """
    pack = _read(Path(folder), refuse, [name for name in FILES if name != FRAMES])
    assert pack is not None  # whatever is wrong was refused
    return pack


def _read(folder: Path, tell: Tell, wanted: Sequence[str] = FILES) -> Pack | None:
    """The pack; None where it is not whole. What is wrong is told, and the rest is looked at nevertheless."""
    there = {name for name in wanted if (folder / name).is_file()}
    for name in wanted:
        if name not in there:
            tell(
                f"{folder / name}: {_instead(folder, name)}; a language pack has {', '.join(FILES)}"
            )
    manifest: dict[str, Any] = {"match": "word", "captions": CaptionFilter()}
    if MANIFEST in there:
        manifest = read_manifest(folder / MANIFEST, tell)
    terms = _terms(folder / TERMS, tell) if TERMS in there else dict.fromkeys(GENDERS, ())
    words = (
        _occupations(folder / OCCUPATIONS, manifest, terms, tell) if OCCUPATIONS in there else ()
    )
    neutral = [one.word for one in words if one.type == "neutral"]
    for kind in ("shipped", "trained") if OCCUPATIONS in there else ():
        for word in manifest.get(kind, ()):
            if word not in neutral:
                tell(
                    f"{folder / MANIFEST}, key `{kind}`: {word!r} is no neutral occupation of {OCCUPATIONS}"
                )
    frames = _frames(folder / FRAMES, manifest, terms, tell) if FRAMES in there else ()
    if len(there) < len(wanted) or not all(key in manifest for key in REQUIRED):
        return None
    return Pack(**manifest, occupations=words, frames=frames, terms=terms)


def write_pack(pack: Pack, folder: str | Path) -> Path:
    """Write `pack` to `folder`, which `read_pack` reads again as an equal one; the folder."""
    folder = Path(folder)
    head = {name: getattr(pack, name) for name in REQUIRED}
    usual = Pack(**head, occupations=(), frames=(), terms={}, match=match_of(pack.language))
    kept = {
        name: value
        for name, value in asdict(pack).items()
        if name in head or (name in KEYS and value != asdict(usual)[name])
    }
    if "captions" in kept:
        bare = asdict(CaptionFilter())
        kept["captions"] = {
            name: value for name, value in kept["captions"].items() if value != bare[name]
        }
    atomic_write(folder / MANIFEST, readers.to_toml(kept))
    atomic_write(folder / OCCUPATIONS, _tsv(("word", "type"), pack.occupations))
    atomic_write(folder / FRAMES, "".join(f"{frame}\n" for frame in pack.frames))
    terms = [(word, gender) for gender, words in pack.terms.items() for word in words]
    atomic_write(folder / TERMS, _tsv(("word", "gender"), terms))
    return folder


def shuffled(pack: Pack, seed: int) -> Pack:
    """The pack with its occupations in another order within each type, which `seed` decides.

    `shipped` and `trained`, which name words of the old order, are dropped.
    """
    words: list[Occupation] = []
    for kind in TYPES:
        some = pack.of_type(kind)
        Random(f"{seed} {kind}").shuffle(some)
        words += some
    return replace(pack, occupations=tuple(words), shipped=(), trained=())


def with_captions(pack: Pack, paths: Sequence[str | Path], most: int | None = None) -> Pack:
    """The pack with frames made of caption files, a caption a line, by the pack's filter; at most `most`.

    Raises:
        BadInput: a file is missing or not UTF-8, or no caption of theirs makes a frame.
    """
    lines: list[str] = []
    for path in map(as_path, paths):
        if not path.is_file():
            raise BadInput(f"{path}: no such file of captions")
        lines += [line.rstrip("\r") for _, line in read_lines(path)]
    frames = from_captions(lines, pack.terms, pack.match, pack.captions, most)
    if not frames:
        where = ", ".join(map(str, paths))
        raise BadInput(
            f"{where}: no caption of {len(lines):,} lines makes a frame; one gendered word of {TERMS} has to be in it, "
            f"and what [captions] of {MANIFEST} says has to hold"
        )
    return replace(pack, frames=tuple(frames))


def type_of(
    s1: float, s2: float, definitional: float = THRESHOLD, stereotype: float = THRESHOLD
) -> str:
    """The type of an occupation with a definitional score `s1` and a stereotype score `s2`, from -1 (female) to 1 (male).

    A stereotype is |s1| < `definitional` and |s2| > `stereotype`, both strictly: so all 271 English types of the release come out.
    """
    if abs(s1) < definitional and abs(s2) > stereotype:
        return "male-stereo" if s2 > 0 else "female-stereo"
    return "neutral"


class Table(NamedTuple):
    """What a file of words holds: its rows by their line, from 1, and whether these are all, so that what lacks is missing."""

    rows: dict[int, dict[str, str]]
    whole: bool


def _table(path: Path, columns: Sequence[str], tell: Tell) -> Table:
    """The rows of a file of tab-separated values, without quoting; empty lines are passed over."""
    header: list[str] = []
    rows: dict[int, dict[str, str]] = {}
    whole, read = True, _lines(path, tell)
    for line, text in read or ():
        cells = [cell.strip() for cell in text.split("\t")]
        if not text.strip():
            continue
        if not header:
            header = cells
            if wrong := _header(header, columns):
                for what in wrong:
                    tell(f"{path}, line {line} (header): {what}")
                return Table({}, False)
        elif len(cells) != len(header):
            whole = False
            tell(
                f"{path}, line {line}: has {len(cells)} cells, the header has {len(header)}; they are set apart by tabs"
            )
        else:
            rows[line] = dict(zip(header, cells, strict=True))
    if read is not None and not header:
        more = "" if len(columns) > 1 else ", and type or s1 and s2"
        tell(f"{path}: is empty; expected a header with the columns {', '.join(columns)}{more}")
    return Table(rows, whole and bool(header))


def _header(header: Sequence[str], columns: Sequence[str]) -> list[str]:
    """What is wrong with the header of a table."""
    found = plain(", ".join(header[:20]))
    if len(header) == 1 and any(
        {*columns} < {*re.split(sign, found)} | {""}
        for sign in (",", ";", r" +")
        if re.search(sign, found)
    ):
        return [f"is {found!r} without a tab; columns are set apart by tabs, in every line"]
    return [
        f"column `{column}` {'is missing' if column not in header else 'occurs more than once'}; found: {found}"
        for column in (*columns, *OPTIONAL)
        if header.count(column) > 1 or (column in columns and column not in header)
    ]


def _lines(path: Path, tell: Tell) -> list[tuple[int, str]] | None:
    """The lines of a file; None where it cannot be read."""
    try:
        return list(read_lines(path))
    except BadInput as error:
        tell(str(error))
        return None


def _words(path: Path, columns: Sequence[str], tell: Tell) -> Table:
    """Rows whose `word` is a word, and not the one of an earlier row."""
    table = _table(path, columns, tell)
    first: dict[str, int] = {}
    for line, row in table.rows.items():
        word, place = row["word"], f"{path}, line {line}, column `word`"
        if not word:
            tell(f"{place}: is empty; expected a word")
        elif SLOT in word or not word.isprintable() or len(word) > MAX_WORD:
            tell(
                f"{place}: {quoted(word)} is no word; it holds {SLOT} or a character that cannot be seen, or has more than {MAX_WORD}"
            )
        elif word in first:
            earlier = table.rows[first[word]]
            other = [name for name in row if row[name] != earlier[name]]
            how = f", with another {', '.join(map(plain, other))}" if other else ""
            tell(
                f"{place}: {word!r} stands in line {first[word]} already{how}; every word needs one line"
            )
        else:
            first[word] = line
    return Table(
        {line: table.rows[line] for line in first.values()},
        table.whole and len(first) == len(table.rows),
    )


def _occupations(
    path: Path, manifest: Mapping[str, Any], terms: Terms, tell: Tell
) -> tuple[Occupation, ...]:
    thresholds = {
        name: manifest[name] for name in ("definitional", "stereotype") if name in manifest
    }
    gendered = () if manifest.get("verbatim") else (*terms["feminine"], *terms["masculine"])
    found = []
    table = _words(path, ("word",), tell)
    for line, row in table.rows.items():
        place, kind = f"{path}, line {line}", row.get("type", "")
        if "type" not in row and not {"s1", "s2"} <= set(row):
            header = plain(", ".join(row))
            tell(
                f"{path}, line 1 (header): column `type` is missing, or columns `s1` and `s2`; found: {header}"
            )
            return ()
        held = found_in(row["word"], gendered, manifest["match"])
        if held:
            tell(
                f"{place}, column `word`: {row['word']!r} holds {held!r}, a gendered word of {TERMS}"
            )
        if not kind and {"s1", "s2"} <= set(row):
            scores = [_score(place, name, row[name], tell) for name in ("s1", "s2")]
            if None in scores:
                continue
            kind = type_of(scores[0] or 0.0, scores[1] or 0.0, **thresholds)
        if kind not in TYPES:
            tell(f"{place}, " + expected(kind, TYPES, "column `type`"))
            continue
        found.append(Occupation(row["word"], kind))
    for kind in TYPES:
        # A row that was refused may be of that type.
        if table.whole and len(found) == len(table.rows) and all(one.type != kind for one in found):
            tell(f"{path}: no occupation is of type {kind}; every type needs one at least")
    return tuple(found)


def _score(place: str, column: str, cell: str, tell: Tell) -> float | None:
    value = to_number(cell)
    if -1 <= value <= 1:
        return value
    point = cell.replace(",", ".")
    meant = (
        f"; if it is {point}, write it with a point"
        if point != cell and -1 <= to_number(point) <= 1
        else ""
    )
    tell(
        f"{place}, column `{column}`: {cell!r} is not a number from -1 to 1{meant}"
    )  # NaN too, which is no number
    return None


def _terms(path: Path, tell: Tell) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {gender: [] for gender in GENDERS}
    table = _words(path, ("word", "gender"), tell)
    whole = table.whole
    for line, row in table.rows.items():
        if row["gender"] not in GENDERS:
            whole = False
            tell(f"{path}, line {line}, " + expected(row["gender"], GENDERS, "column `gender`"))
            continue
        found[row["gender"]].append(row["word"])
    if sum(map(len, found.values())) > MAX_TERMS:
        tell(f"{path}: has more than {MAX_TERMS:,} words, the most that are looked for in frames")
    feminine, masculine = (len(found[gender]) for gender in GENDERS[:2])
    # Rows that were refused may be what lacks.
    for gender in GENDERS[:2] if whole else ():
        if not found[gender]:
            tell(
                f"{path}: no word is {gender}; each of {', '.join(GENDERS[:2])} needs one at least"
            )
    if whole and feminine != masculine and feminine and masculine:
        tell(
            f"{path}: has {feminine} feminine and {masculine} masculine words; they are used in pairs, so there have to be as many"
        )
    return {gender: tuple(words) for gender, words in found.items()}


def _frames(path: Path, manifest: Mapping[str, Any], terms: Terms, tell: Tell) -> tuple[str, ...]:
    verbatim = bool(manifest.get("verbatim"))
    gendered = () if verbatim else gendered_words(terms, manifest["captions"])
    read = _lines(path, tell)
    lines = [line.rstrip("\r") for _, line in read or ()]
    while lines and not lines[-1].strip():
        lines.pop()
    first: dict[str, int] = {}
    for k, frame in enumerate(lines, start=1):
        if not frame.strip():
            lines[k - 1] = ""
            continue
        wrong = fault(frame, gendered, manifest["match"])
        if wrong:
            tell(f"{path}, line {k}: {wrong}: {plain(frame)[:60]!r}")
        elif frame in first and not verbatim:
            tell(
                f"{path}, line {k}: the frame stands in line {first[frame]} already: {plain(frame)[:60]!r}"
            )
        first.setdefault(frame, k)
    if not first and read is not None:
        tell(f"{path}: holds no frames; expected a sentence a line, with {SLOT}")
    return tuple(lines)


def _tsv(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "".join("\t".join(cells) + "\n" for cells in (header, *rows))
