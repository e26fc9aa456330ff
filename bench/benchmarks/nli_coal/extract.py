"""Extract a language pack from NLI-CoAL's released files, so that we can rebuild these.

The seed of the release's word order and its list of captions are unknown, so both are data. We do
not trust the named occupations and their types, and find the occupation of a frame by position.
"""

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from bench.benchmarks.nli_coal import METADATA
from bench.benchmarks.nli_coal import items as nli_coal
from bench.benchmarks.nli_coal.build import PRO
from bench.benchmarks.nli_coal.frames import (
    RELEASED_CAPTIONS,
    RELEASED_TERMS,
    Aligned,
    align,
    match_of,
)
from bench.benchmarks.nli_coal.language_pack import PACK, SPLITS, Occupation, Pack, Quirk, read_pack
from bench.core.errors import BadInput, expected, plain
from bench.data.readers import read_json_lines

# Folders of the sets with all words, untokenized.
ALL_WORDS, _ = nli_coal.VARIANTS["all", "plain"]
TYPE = {gender: kind for kind, gender in PRO.items()}


class Run(NamedTuple):
    """Consecutive rows with one occupation: their frames, and the gender of the hypotheses."""

    occupation: str
    frames: list[str]
    gender: str


def extract(folder: str | Path, languages: Sequence[str] | None = None) -> list[Pack]:
    """Extract a pack for each language of `folder` (or of `languages`).

    The frames of the release are 0 to 279 (Chinese 274) from the evaluation sets, and 330 to 438
    from the dev and test sets, by the offsets of `SPLITS`. Sets of `bench build` have their pack
    beside them. If this is there, we read it.
    """
    files = nli_coal.files(Path(folder))
    for name in languages or ():
        if name not in files:
            raise BadInput(expected(name, files, f"{folder}: language"))
    if not files:
        raise BadInput(f"{folder}: {METADATA.no_data}")
    return [_pack(name, files[name]) for name in files if not languages or name in languages]


def _pack(language: str, paths: Sequence[Path]) -> Pack:
    place = paths[0].parents[2]
    if (place / PACK).is_dir():
        return read_pack(place / PACK)
    complete = [path for path in paths if path.parent.name in ALL_WORDS]
    if len(complete) < 3:
        raise BadInput(
            f"{place}: has no complete evaluation sets ({' or '.join(ALL_WORDS)}) to take words "
            "and frames from"
        )
    (pro, pro_is_wrong), (neutral, neutral_is_wrong) = (
        _read(path, language) for path in (complete[0], complete[2])
    )
    first = neutral[0].gender
    neutral = [run for run in neutral if run.gender == first]
    occupations = [Occupation(run.occupation, "neutral") for run in neutral]
    occupations += [Occupation(run.occupation, TYPE[run.gender]) for run in pro]
    windows = [run.frames for run in (*neutral, *pro)]
    step = 0 if all(window == windows[0] for window in windows) else 1
    frames: dict[int, str] = {}
    for k, window in enumerate(windows):
        _place(complete[0].parent, frames, window, step * k)
    # Words of the controlled sets, and whether their dev set begins with the feminine.
    trained: list[str] = []
    is_backward = False
    for split, (start, _) in SPLITS.items():
        sets = sorted(place.glob(f"bias-controlled-set_v*/{split}/{split}_*.json"))
        sets += sorted(place.glob(f"bias-controlled-set_v*/untokenized/{split}/{split}_*.json"))
        for path in sets[:1]:  # the frames are the same at every rate
            runs, _ = _read(path, language)
            trained = [run.occupation for run in runs]
            is_backward = is_backward or runs[0].gender == "feminine"
            for k, run in enumerate(runs):
                _place(path, frames, run.frames, start + step * k)
    quirks: list[Quirk] = ["longest-occupation"] if pro_is_wrong or neutral_is_wrong else []
    # Only the Japanese dev sets have this quirk, and they need not be at hand.
    if is_backward or (language == "ja" and not trained):
        quirks.append("dev-feminine-first")
    small = sorted(place.glob("bias-eval-set_v*/downsamp/3-nonstereo-downsamp_v*.json"))
    shipped = _read(small[-1], language)[0] if small else []
    stereotyped = {run.occupation for run in pro}
    return Pack(
        language=language,
        name=f"{METADATA.title} ({place.name})",
        licence=METADATA.licence,
        version=place.name.partition("_v")[2],
        occupations=tuple(occupations),
        frames=tuple(frames.get(k, "") for k in range(max(frames) + 1)),
        terms=RELEASED_TERMS[language],
        match=match_of(language),
        verbatim=True,
        design="window" if step else "full",
        frames_per_word=len(windows[0]),
        first="feminine" if first == "feminine" else "masculine",
        shipped=tuple(run.occupation for run in shipped if run.gender == first),
        trained=tuple(word for word in trained if word not in stereotyped),
        quirks=tuple(quirks),
        captions=RELEASED_CAPTIONS[language],
    )


def _place(path: Path, frames: dict[int, str], window: Sequence[str], start: int) -> None:
    """Number frames from `start`; those that are known already have to be the same."""
    for k, frame in enumerate(window, start):
        if frames.setdefault(k, frame) != frame:
            raise BadInput(
                f"{path}: is neither a sliding window nor every frame with every word: frame "
                f"{k + 1} is {plain(frames[k])[:50]!r} as well as {plain(frame)[:50]!r}"
            )


def _read(path: Path, language: str) -> tuple[list[Run], bool]:
    """Read a file as runs of one occupation, and whether a row names another than its sentences.

    In a controlled file the two genders of a frame alternate, in an evaluation set they do not.
    """
    pairs: list[Aligned] = []
    is_wrong = False
    for line, row in read_json_lines(path):
        premise, hypothesis = (str(row.get(name, "")) for name in ("sentence1", "sentence2"))
        pair = align(premise, hypothesis, RELEASED_TERMS[language], match_of(language))
        if pair is None:
            raise BadInput(
                f"{path}, line {line}: `sentence2` is not `sentence1` with a gender word in place "
                "of an occupation"
            )
        pairs.append(pair)
        is_wrong = is_wrong or row.get("occ_word", pair.occupation) != pair.occupation
    if not pairs:
        raise BadInput(f"{path}: holds no pairs")
    runs = []
    for occupation, group in groupby(pairs, attrgetter("occupation")):
        run = list(group)
        genders = list(dict.fromkeys(pair.gender for pair in run))
        if len(genders) == 2 and run[0].frame == run[1].frame:
            run, genders = run[::2], genders[:1]
        for gender in genders:
            frames = [pair.frame for pair in run if pair.gender == gender]
            runs.append(Run(occupation, frames, gender))
    return runs, is_wrong
