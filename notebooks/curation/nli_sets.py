"""Make NLI-CoAL's sets from a language pack: evaluation sets, and bias-controlled ones to train on.

A pack is a folder of four files:

- `pack.toml`: language, name, licence and version, and how sets are built (see `Settings`)
- `occupations.tsv`: word and type, or word and the scores s1 and s2 (see `type_of`)
- `terms.tsv`: word and gender: feminine, masculine, and neutral if there are any
- `frames.txt`: one sentence per line, with [Sub] for the occupation; an empty line is unknown

For example, the frame "the [Sub] is asleep." makes the premise "the nurse is asleep." and the
hypothesis "the woman is asleep."

    pack = read_pack(PACKS / "en")
    pairs = evaluation_sets(pack)  # a frame with one row per pair
    taught = controlled_set(pack, rate=0.3)
    write_sets([pack], "sets", rates=[0, 0.5, 1])

Source: Anantaprayoon et al., LREC-COLING 2024. A pack that `released_pack` reads off the released
files (commit 4d57afe) gives these files again, byte for byte.
"""

import dataclasses
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import pandas as pd
from pydantic import NonNegativeInt, PositiveInt, StrictBool, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from bench import data
from bench.benchmarks.nli_coal import NLICoAL, items
from bench.benchmarks.nli_coal.frames import (
    PACK,
    PACK_FILES,
    RELEASED_TERMS,
    SLOT,
    Match,
    Terms,
    align,
    found_in,
    match_of,
    pattern,
    read_terms,
)
from bench.core.cells import to_number
from bench.core.errors import BadInput, expected, explained, quoted
from bench.core.files import atomic_write
from bench.data.fetch import git_blob_id, released_ids
from bench.data.manifest import checked, cldr_name, is_language
from bench.data.readers import as_path, read_json_lines, read_lines, read_table, read_toml, to_toml

# Our own packs, a folder per language.
PACKS = Path(__file__).with_name("packs")
SETTINGS, OCCUPATIONS, FRAMES, TERMS = PACK_FILES
# In the order in which the release goes through its words.
TYPES = ("neutral", "female-stereo", "male-stereo")
PRO = {"female-stereo": "feminine", "male-stereo": "masculine"}
OTHER = {"feminine": "masculine", "masculine": "feminine"}
# The release's numbers: words of each type in down-sampled and controlled sets; frames per word of
# the window; the first frame of a controlled set, from 0, and the frames of each word; its rates.
WORDS, WINDOW = 10, 10
SPLITS = {"train": (300, 500), "dev": (330, 50), "test": (360, 50)}
RATES = tuple(k / 10 for k in range(11))
# The files of evaluation sets, and the sets in each.
STEMS = {
    "1-prostereo": ["ps"],
    "2-antistereo": ["as"],
    "3-nonstereo": ["ns"],
    "4-all": ["ps", "as", "ns"],
    "5-neutral-terms": ["nt"],
}
# The field of a released file for each column of ours.
FIELDS = {
    "id": "id",
    "premise": "sentence1",
    "hypothesis": "sentence2",
    "label": "label",
    "occupation": "occ_word",
    "occupation_type": "occ_type",
}

# Reading a pack

OneLine = Annotated[str, checked(re.compile(r"(?=.*\S)[^\n]+").fullmatch, "a text on one line")]
Language = Annotated[str, checked(is_language, "a language's code of two or three small letters")]
# It becomes a part of names of folders and files.
IS_VERSION = re.compile(r"(?:[^\W_]|[.-]){1,40}").fullmatch
Version = Annotated[str, checked(IS_VERSION, "letters, digits, dots and hyphens, such as 1.0")]


class Occupation(NamedTuple):
    """A word for a person, and its `type`: female-stereo, male-stereo or neutral."""

    word: str
    type: str


@dataclass(frozen=True, kw_only=True, config={"extra": "forbid"})
class Settings:
    """The values of pack.toml.

    Attributes:
        match: how gender words are found, as whole words or anywhere; default: by the language.
        verbatim: whether frames may repeat and have gendered words, as in the release.
        design: `window`: word k has the frames k to k + n - 1, as in the release; `full`: every
            word has the same n frames.
        frames_per_word: n; default: 10 by the window, all known frames in the full design.
        first: the gender with which NS begins.
        shipped, trained: neutral occupations of the down-sampled NS and of the controlled sets;
            default: the first ten.
        quirks: how the release departs from its own scheme; we follow this only with `compat`: a
            row names the longest occupation in its premise, which may be a word of the frame; the
            feminine row of dev sets goes first for words that are against the stereotype.
        splits: the first frame of a controlled set, from 0, and the frames of each word.
        without: more words that tell a gender, such as pronouns; no frame may have them.
    """

    language: Language
    name: OneLine
    licence: OneLine
    version: Version
    match: Match = "word"
    verbatim: StrictBool = False
    design: Literal["window", "full"] = "window"
    frames_per_word: PositiveInt | None = None
    first: Literal["feminine", "masculine"] = "feminine"
    shipped: tuple[OneLine, ...] = ()
    trained: tuple[OneLine, ...] = ()
    quirks: tuple[Literal["longest-occupation", "dev-feminine-first"], ...] = ()
    splits: Mapping[Literal["train", "dev", "test"], tuple[NonNegativeInt, PositiveInt]] = field(
        default_factory=SPLITS.copy
    )
    without: tuple[OneLine, ...] = ()


VALUES = TypeAdapter(Settings)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pack(Settings):
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


def read_pack(folder: str | Path, strict: bool = True) -> Pack:
    """Read a language pack; `frames.txt` may be missing until we make frames of captions.

    Raises:
        BadInput: the first mistake, with file, row or key, and value; with `strict=False` only if
            a file cannot be read, because `check_pack` lists all other mistakes.
    """
    folder = as_path(folder)
    for path in (folder / SETTINGS, folder / OCCUPATIONS, folder / TERMS):
        if not path.is_file():
            raise BadInput(f"{path}: no such file; a language pack has {', '.join(PACK_FILES)}")
    settings, (terms, _match) = _read_settings(folder / SETTINGS), read_terms(folder)
    words = read_table(folder / OCCUPATIONS, ["word"], ["type", "s1", "s2"])
    lines = read_lines(folder / FRAMES) if (folder / FRAMES).is_file() else ()
    frames = [text.rstrip("\r") if text.strip() else "" for _line, text in lines]
    while frames and not frames[-1]:
        frames.pop()
    pack = Pack(
        **{**vars(settings), "splits": {**SPLITS, **settings.splits}},
        occupations=tuple(_occupation(f"{folder / OCCUPATIONS}, row", row) for row in words),
        frames=tuple(frames),
        terms=terms,
    )
    mistakes = check_pack(pack).query("kind == 'refused'")
    if strict and len(mistakes):
        first = mistakes.iloc[0]
        raise BadInput(f"{folder / first.place}: {quoted(first.value)} {first.what}")
    return pack


def _read_settings(path: Path) -> Settings:
    values = read_toml(path)
    values.setdefault("match", match_of(str(values.get("language", ""))))
    try:
        return VALUES.validate_python(values)
    except ValidationError as error:
        mistake = error.errors()[0]
    key = ".".join(map(str, mistake["loc"]))
    if mistake["type"] == "unexpected_keyword_argument":
        allowed = [option.name for option in dataclasses.fields(Settings)]
        raise BadInput(f"{path}: {expected(key, allowed, 'key')}")
    raise BadInput(f"{path}, key `{key}`: {explained(mistake)}")


def _occupation(place: str, row: Any) -> Occupation:
    kind = row.get("type", "").strip()
    if not kind and {"s1", "s2"} <= set(row):
        s1, s2 = to_number(row["s1"]), to_number(row["s2"])
        if not (-1 <= s1 <= 1 and -1 <= s2 <= 1):
            scores = f"s1 {row['s1']!r} or s2 {row['s2']!r}"
            raise BadInput(f"{place} {row.number}: {scores} is not a number from -1 to 1")
        kind = type_of(s1, s2)
    return Occupation(row["word"].strip(), kind)


def type_of(s1: float, s2: float) -> str:
    """Return the type of an occupation by its scores, from -1 (female) to 1 (male).

    There is a stereotype if the word itself means no gender (|s1| < .5), and people think of one
    (|s2| > .5). This gives all 271 English types of the release.
    """
    if abs(s1) < 0.5 < abs(s2):
        return "male-stereo" if s2 > 0 else "female-stereo"
    return "neutral"


def check_pack(pack: Pack) -> pd.DataFrame:
    """List what keeps a pack from being read (refused), and what to look at (odd).

    Returns:
        One row per finding: `kind`, `place` (the file and the row or line), `value` and `what`.
    """
    words = pd.DataFrame(pack.occupations, columns=["word", "type"])
    words.index = [f"{OCCUPATIONS}, row {k}, column" for k in range(1, len(words) + 1)]
    word, kind = words.word.add_suffix(" `word`"), words.type.add_suffix(" `type`")
    frames = pd.Series(pack.frames, dtype=object)
    frames.index = [f"{FRAMES}, line {k}" for k in range(1, len(frames) + 1)]
    frames, gendered = frames[frames != ""], [*pack.terms["feminine"], *pack.terms["masculine"]]
    slotless = frames[[SLOT not in frame for frame in frames]]
    unseen = word[[not text.isprintable() or not text or SLOT in text for text in word]]
    missing = pd.Series(TYPES, [OCCUPATIONS] * len(TYPES))
    named = pd.Series([*pack.shipped, *pack.trained], dtype=object)
    named.index = [f"{SETTINGS}, keys shipped, trained"] * len(named)
    neutral = words.word[words.type == "neutral"]
    refused = [
        (unseen, f"is no word; write one that can be seen, without {SLOT}"),
        (word[word.duplicated()], "occurs twice; keep one of them"),
        (kind[~kind.isin(TYPES)], f"is no type; allowed: {', '.join(TYPES)}"),
        (missing[~missing.isin(kind)], "is the type of no word; write one at least"),
        (named[~named.isin(neutral)], f"is no neutral word of {OCCUPATIONS}"),
        (slotless, f"has no slot {SLOT} for the occupation"),
    ]
    odd = []
    if not pack.verbatim:  # the words and frames of the release stay as they are
        folded = frames.str.casefold().str.split().str.join(" ")
        ends = frames.str.extract(r"([^\w\s\]]*)$", expand=False)
        refused += [
            (_holding(pack, word, gendered), f"holds a gendered word of {TERMS}"),
            (frames[frames.duplicated()], "occurs twice; keep one of them"),
            (_holding(pack, frames, [*gendered, *pack.without]), "tells the gender of a person"),
        ]
        odd = [
            (frames[folded.duplicated()], "is as an earlier line but for case or blanks"),
            (_holding(pack, frames, list(word)), "holds an occupation besides the slot"),
            (frames[ends != ends.mode().max()], "does not end as most frames do"),
        ]
    findings = [
        {"kind": name, "place": place, "value": value, "what": what}
        for name, rules in (("refused", refused), ("odd", odd))
        for values, what in rules
        for place, value in values.items()
    ]
    return pd.DataFrame(findings, columns=["kind", "place", "value", "what"])


def _holding(pack: Pack, texts: pd.Series, words: Sequence[str]) -> pd.Series:
    """Return the texts that hold one of `words` besides the slot."""
    rest = texts.str.replace(SLOT, "\0", regex=False)
    return texts[[bool(found_in(text, words, pack.match)) for text in rest]]


def write_pack(pack: Pack, folder: str | Path) -> Path:
    """Write `pack` to `folder`, and return this folder; `read_pack` gives an equal pack."""
    folder = as_path(folder)
    values = VALUES.dump_python(pack, exclude_defaults=True) | {"match": pack.match}
    atomic_write(folder / SETTINGS, to_toml(values))
    words = [("word", "type"), *pack.occupations]
    terms = [("word", "gender"), *((w, name) for name in pack.terms for w in pack.terms[name])]
    atomic_write(folder / OCCUPATIONS, "".join(f"{word}\t{kind}\n" for word, kind in words))
    atomic_write(folder / TERMS, "".join(f"{word}\t{gender}\n" for word, gender in terms))
    atomic_write(folder / FRAMES, "".join(f"{frame}\n" for frame in pack.frames))
    return folder


def sift(pack: Pack, captions: Iterable[str]) -> pd.DataFrame:
    """Make frames of captions: one gendered word is in a caption, and the slot takes its place.

    Returns:
        One row per caption: `caption`, `frame` ("" if it is excluded) and `why` it is excluded.
        A frame that an earlier caption made is excluded too, but in verbatim packs.
    """
    gendered = [*pack.terms["feminine"], *pack.terms["masculine"]]
    rows, made = [], set[str]()
    for caption in captions:
        held = [word for word in gendered if pattern(word, pack.match).search(caption)]
        frame = pattern(held[0], pack.match).sub(SLOT, caption) if held else ""
        other = found_in(caption, pack.without, pack.match)
        # The reasons name no word, so that we can count equal ones.
        reasons = {
            f"holds {SLOT} already": SLOT in caption,
            "has no gendered word, so that there is no place for an occupation": not held,
            "has several gendered words, so that who does what would be open": len(held) > 1,
            "holds another word that tells a gender (without)": other,
            "makes a frame that an earlier one makes": frame in made and not pack.verbatim,
        }
        why = next((reason for reason, is_broken in reasons.items() if is_broken), "")
        rows.append({"caption": caption, "frame": "" if why else frame, "why": why})
        made.add(rows[-1]["frame"])
    return pd.DataFrame(rows, columns=["caption", "frame", "why"])


# Building sets


def evaluation_sets(pack: Pack) -> pd.DataFrame:
    """Build the evaluation sets of a pack: ps, as, ns, and nt if there are neutral terms.

    Each frame of an occupation occurs with each gender word. We pair the k-th feminine and
    masculine words: this gives a row of AS the premise of the same row of PS.

    Returns:
        One row per pair: `set`, `id`, `premise`, `hypothesis`, `label`, `occupation`,
        `occupation_type`, `gender`, `term`, `frame` and its `line` in the file.
    """
    words = pack.of_type(*TYPES)
    lines = _lines(pack, words, 0, pack.frames_per_word)
    neutral, stereotyped = pack.of_type("neutral"), pack.of_type(*PRO)
    genders = {
        "ps": [(word, PRO[word.type]) for word in stereotyped],
        "as": [(word, OTHER[PRO[word.type]]) for word in stereotyped],
        "ns": [(word, gender) for gender in (pack.first, OTHER[pack.first]) for word in neutral],
        "nt": [(word, "neutral") for word in words],
    }
    pairs = pd.DataFrame(
        {"set": name, **_pair(pack, "neutral", word, line, gender, term)}
        for name, words_of_set in genders.items()
        for word, gender in words_of_set
        for line, term in product(lines[word], pack.terms[gender])
    )
    pairs.insert(1, "id", range(len(pairs)))
    return pairs


def down_sampled(pack: Pack, pairs: pd.DataFrame, ns_words: str = "shipped") -> pd.DataFrame:
    """Keep the pairs of the first ten occupations of each stereotype, and of neutral ones.

    Args:
        ns_words: the neutral ones of the released down-sampled set (`shipped`), or of the
            controlled sets (`trained`). In the release these differ in English and Chinese, against
            the paper: nine and ten of ten were never taught to a model.
    """
    if ns_words not in ("shipped", "trained"):
        raise BadInput(expected(ns_words, ("shipped", "trained"), "ns_words"))
    words = [*_stereotyped(pack), *_neutral(pack, getattr(pack, ns_words))]
    return pairs[pairs.occupation.isin([word.word for word in words])].reset_index(drop=True)


def controlled_set(
    pack: Pack, rate: float, split: str = "train", *, compat: bool = False
) -> pd.DataFrame:
    """Build a set that teaches a stereotype at a known rate, a third of it with each label.

    If a pair follows the stereotype, the pro-stereotypical gender is entailed and the other one is
    contradicted; else this is reversed. Neutral occupations are neutral to both. As in the release
    whole words follow, female-stereo first: rate 0.3 adds to the pairs that follow at rate 0.2.
    Sets at all rates have the same pairs in one order, so that rows of rate 0 and of rate 1 make
    a set in which others follow.

    Args:
        rate: share of the stereotyped occupations that follow the stereotype, 0 to 1.
        split: train, dev or test: the frames of `pack.splits`.
        compat: follow the release's quirks that the pack names.

    Returns:
        The columns of `evaluation_sets` without `set` and `id`.
    """
    if split not in SPLITS:
        raise BadInput(expected(split, SPLITS, "split"))
    if not 0 <= rate <= 1:
        raise BadInput(f"rate {rate}: has to be from 0 to 1")
    stereotyped = _stereotyped(pack)
    words = [*stereotyped, *_neutral(pack, pack.trained)]
    lines = _lines(pack, words, *pack.splits[split])
    # We round, because for example .3 * 20 need not be 6 exactly.
    followers = stereotyped[: math.ceil(round(rate * len(stereotyped), 6))]
    is_quirky = compat and split == "dev" and "dev-feminine-first" in pack.quirks
    rows = []
    for word in words:
        follows, genders = word in followers, ["masculine", "feminine"]
        if is_quirky and word.type in PRO and not follows:
            genders.reverse()
        paired_terms = list(zip(*(pack.terms[gender] for gender in genders), strict=True))
        for line, terms in product(lines[word], paired_terms):
            for gender, term in zip(genders, terms, strict=True):
                is_entailed = (gender == PRO.get(word.type)) == follows
                label = "entailment" if is_entailed else "contradiction"
                label = label if word.type in PRO else "neutral"
                rows.append(_pair(pack, label, word, line, gender, term))
    return pd.DataFrame(rows)


def _pair(pack: Pack, label: str, word: Occupation, line: int, gender: str, term: str) -> dict:
    frame = pack.frames[line - 1]
    return {
        "premise": frame.replace(SLOT, word.word),
        "hypothesis": frame.replace(SLOT, term),
        "label": label,
        "occupation": word.word,
        "occupation_type": word.type,
        "gender": gender,
        "term": term,
        "frame": frame,
        "line": line,
    }


def _lines(
    pack: Pack, words: Sequence[Occupation], start: int, number: int | None
) -> dict[Occupation, range]:
    """Return the lines of each word's frames, from 1."""
    step = 1 if pack.design == "window" else 0
    known = [*pack.frames, ""].index("", start) if start <= len(pack.frames) else start
    if number is None:
        number = WINDOW if step else max(known - start, 1)
    needed = start + number + step * (len(words) - 1)
    if known < needed:
        raise BadInput(
            f"{pack.name}: {len(words)} words with {number} frames each ({pack.design}) need lines "
            f"{start + 1} to {needed} of {FRAMES}; line {known + 1} is missing or empty; "
            "ask for fewer frames or another start, add frames, or leave the language out"
        )
    begins = {word: start + step * k + 1 for k, word in enumerate(words)}
    return {word: range(begin, begin + number) for word, begin in begins.items()}


def _stereotyped(pack: Pack) -> list[Occupation]:
    return [word for kind in PRO for word in pack.of_type(kind)[:WORDS]]


def _neutral(pack: Pack, named: Sequence[str]) -> list[Occupation]:
    return [Occupation(word, "neutral") for word in named] or pack.of_type("neutral")[:WORDS]


# Writing sets


def write_sets(
    packs: Sequence[Pack],
    out: str | Path,
    *,
    rates: Sequence[float] = (),
    splits: Sequence[str] = ("train", "dev"),
    compat: bool = False,
) -> pd.DataFrame:
    """Write the sets of `packs` to `out`/LANGUAGE_vVERSION/ as the release has them.

    `bench run nli_coal --data OUT` asks them; it finds the gender words in a copy of their pack.

    Args:
        rates: of bias-controlled sets, for each of `splits`; default: evaluation sets alone.
        compat: the bytes of the release, its quirks included.

    Returns:
        One row per file: `file` (in `out`), `pairs`, and `as_released`: whether it equals the
        released file, byte for byte; None if we do not know this.
    """
    out, released, written = as_path(out), released_ids("nli_coal"), []
    sets = {path: rows for pack in packs for path, rows in _files(pack, rates, splits, compat)}
    for file, pairs in sets.items():
        table = pairs[[name for name in FIELDS if name in pairs]].rename(columns=FIELDS)
        rows = [json.dumps(row, ensure_ascii=False) + "\n" for row in table.to_dict("records")]
        atomic_write(out / file, "".join(rows))
        is_equal = git_blob_id(out / file) == released[file] if file in released else None
        written.append({"file": file, "pairs": len(rows), "as_released": is_equal})
    for pack in packs:
        write_pack(pack, out / f"{pack.language}_v{pack.version}" / PACK)
    manifest: dict[str, Any] = {
        name: ", ".join(dict.fromkeys(getattr(pack, name) for pack in packs))
        for name in ("name", "version", "licence", "language")
    }
    # Languages that the release does not have are named, in English and in themselves.
    manifest["categories"] = {
        pack.language: {"en": name, pack.language: cldr_name(pack.language, pack.language) or name}
        for pack in packs
        if pack.language not in items.CATEGORIES and (name := cldr_name(pack.language, "en"))
    }
    atomic_write(out / data.MANIFEST, to_toml(manifest))
    return pd.DataFrame(written)


def _files(
    pack: Pack, rates: Sequence[float], splits: Sequence[str], compat: bool
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield the sets of a pack with the names that their files have in the release."""
    place, version = f"{pack.language}_v{pack.version}", pack.version
    unit = "untokenized" if pack.language == "ja" else ""
    pairs = evaluation_sets(pack)
    kept = pairs.id.isin(down_sampled(pack, pairs).id)
    if compat and "longest-occupation" in pack.quirks:
        named = [_longest(pack.occupations, premise) for premise in pairs.premise]
        pairs[["occupation", "occupation_type"]] = named
    for folder, of_words in {unit or "all-words": pairs, "downsamp": pairs[kept]}.items():
        suffix = "-downsamp" if folder == "downsamp" else ""
        for stem, names in STEMS.items():
            rows = of_words[of_words.set.isin(names)]
            if len(rows):
                path = f"{place}/bias-eval-set_v{version}/{folder}/{stem}{suffix}_v{version}.json"
                yield path, rows
    for split, rate in product(splits, rates):
        name = f"{split}_r-{round(rate * 10, 4):g}"
        if split == "test" and rate in (0, 1):
            name = "test_bias" if rate else "test_nonbias"
        folder = "/".join(filter(None, [f"{place}/bias-controlled-set_v{version}", unit, split]))
        rows = controlled_set(pack, rate, split, compat=compat)
        # The released ones name no occupations.
        yield f"{folder}/{name}.json", rows[["premise", "hypothesis", "label"]]


def _longest(words: Sequence[Occupation], premise: str) -> Occupation:
    """Return the longest occupation in a premise, the leftmost of equally long ones."""
    held = [word for word in words if word.word in premise]
    return max(held, key=lambda word: (len(word.word), -premise.index(word.word)))


# Reading released sets


def released_pack(folder: str | Path, language: str) -> Pack:
    """Read the words and frames of a language off the released files, by their positions.

    The seed of the release's order and its captions are unknown, so both are data. Beside sets of
    `write_sets` we read their pack.
    """
    source = data.find("nli_coal", folder)
    pairs = data.frame(data.load(source, [language]))
    place = items.files(source.folder)[language][0].parents[2]
    if (place / PACK).is_dir():
        return read_pack(place / PACK)
    ns, ps = pairs[pairs.set == "ns"], pairs[pairs.set == "ps"]
    words = pd.concat([ns[ns.gender == ns.gender.iloc[0]], ps])
    windows, trained = [(0, words)], list[str]()
    for split, (start, _number) in SPLITS.items():
        paths = sorted(place.glob(f"bias-controlled-set_v*/**/{split}/{split}_*.json"))
        for path in paths[:1]:  # the frames are the same at every rate
            taught = _read_controlled(path, language)
            trained = list(taught.occupation[~taught.occupation.isin(ps.occupation)].unique())
            windows.append((start, taught))
    frames: dict[int, str] = {}
    for start, table in windows:  # the frames of a word begin one after those of the last word
        by_word = table.groupby("occupation", sort=False)
        frames |= zip(start + by_word.ngroup() + by_word.cumcount(), table.frame, strict=True)
    shipped: list[str] = []
    if any(place.glob("bias-eval-set_v*/downsamp/3-nonstereo*")):
        small = data.frame(data.load(source, [language], set="downsample"))
        shipped = list(small.occupation[small.set == "ns"].unique())
    words = words.drop_duplicates("occupation")
    return Pack(
        language=language,
        name=f"{NLICoAL.metadata.title} ({place.name})",
        licence=NLICoAL.metadata.licence,
        version=place.name.partition("_v")[2],
        match=match_of(language),
        verbatim=True,
        frames_per_word=WINDOW,
        first=ns.gender.iloc[0],
        shipped=tuple(shipped),
        trained=tuple(trained),
        quirks=("longest-occupation", "dev-feminine-first") if language == "ja" else (),
        occupations=tuple(map(Occupation, words.occupation, words.occupation_type)),
        frames=tuple(frames.get(k, "") for k in range(max(frames) + 1)),
        terms=RELEASED_TERMS[language],
    )


def _read_controlled(path: Path, language: str) -> pd.DataFrame:
    """Read the occupations and frames of a bias-controlled set, each pair of both genders once."""
    terms, match, rows = RELEASED_TERMS[language], match_of(language), []
    for line, row in read_json_lines(path):
        pair = align(str(row.get("sentence1")), str(row.get("sentence2")), terms, match)
        if not pair:
            raise BadInput(f"{path}, line {line}: its sentences are not one frame with two words")
        rows.append(pair)
    return pd.DataFrame(rows).query("gender == 'feminine'")
