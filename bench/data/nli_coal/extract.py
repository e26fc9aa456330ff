"""Extract a language pack from NLI-CoAL's released files, so that everything can be rebuilt.

The seed of the release's word order and its list of captions are unknown, so both are data. Neither
the named occupations nor their types are trusted: what was put into a frame is found by position.
"""

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from bench.core.errors import BadInput, expected, plain
from bench.data import nli_coal
from bench.data.nli_coal.build import PRO
from bench.data.nli_coal.frames import RELEASED_CAPTIONS, RELEASED_TERMS, Aligned, align, match_of
from bench.data.nli_coal.language_pack import PACK, SPLITS, Occupation, Pack, read_pack
from bench.data.readers import read_json_lines

# Folders of the sets with all words, untokenized.
WHOLE = ("all-words", "untokenized")
TYPE = {gender: kind for kind, gender in PRO.items()}


class Run(NamedTuple):
    """Consecutive rows with one occupation: their frames, and the gender of the hypotheses."""

    occupation: str
    frames: list[str]
    gender: str


def extract(folder: str | Path, languages: Sequence[str] | None = None) -> list[Pack]:
    """Extract a pack for each language of `folder` (or of `languages`).

    The frames of the release are 0 to 279 (Chinese 274) from the evaluation sets, and 330 to 438
    from the dev and test sets, by the offsets of `SPLITS`. Sets that `bench.data.nli_coal.build`
    wrote have their pack beside them, which is read.

    Raises:
        BadInput: an unknown language, a row that is no frame filled twice, or sets of neither
            design.
    """
    found = nli_coal.files(Path(folder))
    for name in languages or ():
        if name not in found:
            raise BadInput(expected(name, found, f"{folder}: language"))
    if not found:
        raise BadInput(f"{folder}: holds no data of {nli_coal.TITLE}; expected {nli_coal.LAYOUT}")
    return [_pack(name, found[name]) for name in found if not languages or name in languages]


def _pack(language: str, paths: Sequence[Path]) -> Pack:
    place = paths[0].parents[2]
    if (place / PACK).is_dir():
        return read_pack(place / PACK)
    whole = [path for path in paths if path.parent.name in WHOLE]
    if len(whole) < 3:
        raise BadInput(
            f"{place}: has no whole evaluation sets ({' or '.join(WHOLE)}) to take words "
            "and frames from"
        )
    (pro_rows, pro), (neutral_rows, neutral) = (
        _read(path, language) for path in (whole[0], whole[2])
    )
    first = neutral[0].gender
    neutral = [run for run in neutral if run.gender == first]
    occupations = [Occupation(run.occupation, "neutral") for run in neutral]
    occupations += [Occupation(run.occupation, TYPE[run.gender]) for run in pro]
    windows = [run.frames for run in (*neutral, *pro)]
    design = "full" if all(some == windows[0] for some in windows) else "window"
    frames: dict[int, str] = {}
    for k, some in enumerate(windows):
        _place(whole[0].parent, frames, some, 0 if design == "full" else k)
    trained, backward = _controlled(place, language, frames, design)
    wrong = any(
        row.get("occ_word", one.occupation) != one.occupation
        for row, one in pro_rows + neutral_rows
    )
    quirks = ["longest-occupation"] if wrong else []
    # Only the Japanese dev sets have it, which need not be at hand.
    quirks += ["dev-feminine-first"] if backward or (language == "ja" and not trained) else []
    small = sorted(place.glob("bias-eval-set_v*/downsamp/3-nonstereo-downsamp_v*.json"))
    shipped = [
        run.occupation
        for path in small[-1:]
        for run in _read(path, language)[1]
        if run.gender == first
    ]
    stereotyped = {run.occupation for run in pro}
    return Pack(
        language=language,
        name=f"{nli_coal.TITLE} ({place.name})",
        licence=nli_coal.LICENCE,
        version=place.name.partition("_v")[2],
        occupations=tuple(occupations),
        frames=tuple(frames.get(k, "") for k in range(max(frames) + 1)),
        terms=RELEASED_TERMS[language],
        match=match_of(language),
        verbatim=True,
        design=design,
        frames_per_word=len(windows[0]),
        first=first,
        shipped=tuple(shipped),
        trained=tuple(word for word in trained if word not in stereotyped),
        quirks=tuple(quirks),
        captions=RELEASED_CAPTIONS[language],
    )


def _controlled(
    place: Path, language: str, frames: dict[int, str], design: str
) -> tuple[list[str], bool]:
    """Read the words of the controlled sets, and whether the dev set begins with the feminine.

    Their frames are added to `frames`.
    """
    words: list[str] = []
    backward = False
    for split, (start, _) in SPLITS.items():
        paths = sorted(place.glob(f"bias-controlled-set_v*/{split}/{split}_*.json"))
        paths += sorted(place.glob(f"bias-controlled-set_v*/untokenized/{split}/{split}_*.json"))
        for path in paths[:1]:  # the frames are the same at every rate
            _, runs = _read(path, language)
            words = [run.occupation for run in runs]
            backward = backward or runs[0].gender == "feminine"
            for k, run in enumerate(runs):
                _place(path, frames, run.frames, start + (0 if design == "full" else k))
    return words, backward


def _place(path: Path, frames: dict[int, str], some: Sequence[str], start: int) -> None:
    """Number frames from `start`; those that are known already have to be the same."""
    for k, frame in enumerate(some, start):
        if frames.setdefault(k, frame) != frame:
            raise BadInput(
                f"{path}: is neither a sliding window nor every frame with every word: frame "
                f"{k + 1} is {plain(frames[k])[:50]!r} as well as {plain(frame)[:50]!r}"
            )


def _read(path: Path, language: str) -> tuple[list[tuple[dict[str, Any], Aligned]], list[Run]]:
    """Read the rows of a file, aligned, and as runs of one occupation.

    In a controlled file the two genders of a frame alternate, in an evaluation set they do not.
    """
    rows = []
    for line, row in read_json_lines(path):
        premise, hypothesis = (str(row.get(name, "")) for name in ("sentence1", "sentence2"))
        found = align(premise, hypothesis, RELEASED_TERMS[language], match_of(language))
        if found is None:
            raise BadInput(
                f"{path}, line {line}: `sentence2` is not `sentence1` with a gender word in place "
                "of an occupation"
            )
        rows.append((row, found))
    if not rows:
        raise BadInput(f"{path}: holds no pairs")
    runs = []
    for _, some in groupby((one for _, one in rows), attrgetter("occupation")):
        run = list(some)
        genders = dict.fromkeys(one.gender for one in run)
        if len(genders) == 2 and run[0].frame == run[1].frame:
            run = run[::2]
            genders = {run[0].gender: None}
        runs += [
            Run(run[0].occupation, [one.frame for one in run if one.gender == gender], gender)
            for gender in genders
        ]
    return rows, runs
