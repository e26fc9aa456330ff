"""What is wrong or odd in a folder of NLI-CoAL: rows, words, frames and files, and its numbers beside the release's."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd

from bench.core.errors import BadInput, plain
from bench.data import audit, nli_coal
from bench.data.audit import Finding, show_cell
from bench.data.nli_coal.extract import extract
from bench.data.nli_coal.faults import FAULTS, RELEASED, RELEASED_CONTROLLED, RELEASED_SMALL
from bench.data.nli_coal.frames import RELEASED_TERMS, match_of
from bench.data.nli_coal.language_pack import PACK, Pack, read_pack
from bench.data.nli_coal.oddities import (
    SETS,
    TOKENIZED,
    Place,
    Read,
    aligned,
    of_frames,
    of_rows,
    of_words,
)
from bench.data.readers import read_json_lines

ALL = "4-all"
# Folders of evaluation sets, by what is in them.
WHOLE, SMALL = ("all-words", "untokenized"), "downsamp"
Files = dict[str, dict[str, tuple[Path, list[Read]]]]


def check(folder: Path, **settings: str) -> pd.DataFrame:
    """Everything found in `folder`, a row a finding: `file`, `row`, `column`, `kind`, `what`, `value`, `fault`, `pairs`.

    `kind` is `refused` (what `load` refuses, by its first fault), `odd` (read, but look at it) or `count` (numbers of the
    folder beside those of the release). All files are looked at as they are, whatever the settings.

    Source: the faults that the authors' files were found to have (their repository, commit 4d57afe).
    """
    root = Path(folder)
    findings = [one for place in _places(root) for one in _check(place)]
    if not findings:
        what = f"the folder holds no data of {nli_coal.TITLE}; expected {nli_coal.LAYOUT}"
        findings = [Finding("", 0, "", "refused", what, fault="refused")]
    return audit.to_table(findings, "pairs")


def summary(found: pd.DataFrame) -> pd.DataFrame:
    """A row for each fault that `check` found: `fault`, `what`, `findings`, `pairs`, in the order of `FAULTS`."""
    rows = [
        (fault, what, len(some), int(some.pairs.sum()))
        for fault, what in FAULTS.items()
        for some in [found[found.fault == fault]]
        if len(some)
    ]
    return pd.DataFrame(rows, columns=["fault", "what", "findings", "pairs"])


def _places(root: Path) -> list[Place]:
    found = []
    for folder in [*sorted(root.glob("*_v*")), root]:
        language, mark, _ = folder.name.partition("_v")
        if not mark or not folder.is_dir():
            continue
        if (folder / PACK).is_dir():
            with suppress(BadInput):  # the loader tells it
                pack = read_pack(folder / PACK)
                found.append(Place(folder, root, language, pack.terms, pack.match))
                continue
        if language in RELEASED_TERMS:
            found.append(
                Place(folder, root, language, RELEASED_TERMS[language], match_of(language))
            )
    return found


def _check(place: Place) -> Iterator[Finding]:
    try:
        nli_coal.load(place.folder, [place.language])
    except (BadInput, OSError) as error:
        yield Finding(*_refused(place, error), fault="refused")
    except KeyError:
        what = f"has not all of {', '.join(SETS)} in {' or '.join(WHOLE)}"
        yield Finding(place.name(place.folder), 0, "", "refused", what, fault="refused")
    files: Files = defaultdict(dict)
    for path in sorted(place.folder.glob("bias-eval-set_v*/*/*.json")):
        try:
            rows = [aligned(place, path, line, row) for line, row in read_json_lines(path)]
        except BadInput as error:
            yield Finding(*_refused(place, error), fault="refused")
            continue
        variant = "all" if path.parent.name in WHOLE else path.parent.name
        files[variant][re.split(r"-(?:downsamp|tok)|_v", path.name)[0]] = (path, rows)
    for sets in files.values():
        for name in SETS:
            if name in sets:
                yield from of_rows(place, name, *sets[name])
    yield from _files(place, files)
    pack = _pack(place)
    whole = [files["all"][name] for name in SETS if name in files["all"]]
    if len(whole) == len(SETS):
        yield from of_words(place, whole)
        yield from of_frames(place, whole, pack)
    yield from _controlled(place, pack)
    for variant, (pairs, words) in {
        "all": RELEASED.get(place.language, ((), ())),
        SMALL: RELEASED_SMALL,
    }.items():
        if files.get(variant):
            yield from _counts(place, variant, files[variant], pairs, words)


def _files(place: Place, files: Files) -> Iterator[Finding]:
    """Files that have to agree with one another."""
    for sets in files.values():
        if ALL in sets and all(name in sets for name in SETS):
            path, rows = sets[ALL]
            if [one.row for one in rows] != [one.row for name in SETS for one in sets[name][1]]:
                yield Finding(
                    place.name(path),
                    0,
                    "",
                    "odd",
                    "is not PS, AS and NS one after the other",
                    "",
                    "all_differs",
                )
    for name in SETS:
        whole = files["all"].get(name)
        if not whole:
            continue
        if name in files[TOKENIZED]:
            path, rows = files[TOKENIZED][name]
            texts = [[_bare(one.row) for one in some] for some in (rows, whole[1])]
            differ = sum(a != b for a, b in zip(*texts, strict=False)) + abs(
                len(texts[0]) - len(texts[1])
            )
            if differ:
                what = "is more than the untokenized file with blanks"
                yield Finding(
                    place.name(path), 0, "", "odd", what, str(differ), "tokenized_differs", differ
                )
        if name in files[SMALL]:
            path, rows = files[SMALL][name]
            known = [one.row for one in whole[1]]
            for one in rows:
                if one.row not in known:
                    what = "is no row of the whole set"
                    yield Finding(
                        place.name(path),
                        one.line,
                        "",
                        "odd",
                        what,
                        str(one.row.get("id")),
                        "downsample_differs",
                        1,
                    )


def _controlled(place: Place, pack: Pack | None) -> Iterator[Finding]:
    """What is odd about bias-controlled sets: their labels, their words, and which frames they share."""
    paths = sorted(place.folder.glob("bias-controlled-set_v*/**/*.json"))
    frames: dict[str, set[str]] = {}
    for path in paths:
        split = path.name.partition("_")[0].partition("-")[0]
        try:
            rows = [aligned(place, path, line, row) for line, row in read_json_lines(path)]
        except BadInput as error:
            yield Finding(*_refused(place, error), fault="refused")
            continue
        labels = Counter(str(one.row.get("label")) for one in rows)
        if len(labels) != 3 or len(set(labels.values())) != 1:
            told = ", ".join(f"{label} {count:,}" for label, count in sorted(labels.items()))
            yield Finding(
                place.name(path),
                0,
                "label",
                "odd",
                f"are not a third each: {told}",
                "",
                "label_balance",
                len(rows),
            )
        released = RELEASED_CONTROLLED.get(split)
        same = (
            "as the release has" if len(rows) == released else f"the release has {released or 0:,}"
        )
        yield Finding(
            place.name(path), 0, "", "count", f"{len(rows):,} pairs; {same}", str(len(rows))
        )
        frames.setdefault(split, {one.found.frame for one in rows if one.found})
    for one, other in (("train", "dev"), ("train", "test"), ("dev", "test")):
        shared = frames.get(one, set()) & frames.get(other, set())
        if shared:
            what = f"{one} and {other} sets share {len(shared)} frames of {len(frames[one])} and {len(frames[other])}: their accuracy says nothing of new frames"
            yield Finding(
                place.name(place.folder), 0, "sentence1", "odd", what, "", "frames_shared"
            )
    if pack and pack.shipped and pack.trained:
        words = [word for word in pack.shipped if word not in pack.trained]
        if words:
            what = f"{len(words)} of {len(pack.shipped)} down-sampled neutral occupations are in no controlled set, so that no model was trained on them"
            yield Finding(
                place.name(place.folder),
                0,
                "occ_word",
                "odd",
                what,
                show_cell(", ".join(words)),
                "untrained_words",
                0,
            )


def _counts(
    place: Place,
    variant: str,
    sets: Mapping[str, tuple[Path, list[Read]]],
    pairs: Sequence[int],
    words: Sequence[int],
) -> Iterator[Finding]:
    """Pairs of each set and occupations of each type, by what the sentences have, beside those of the release."""
    here = tuple(len(sets[name][1]) if name in sets else 0 for name in SETS)
    female: set[str] = set()
    male: set[str] = set()
    neutral: set[str] = set()
    for one in sets[SETS[0]][1] if SETS[0] in sets else ():
        if one.found:
            (female if one.found.gender == "feminine" else male).add(one.found.occupation)
    for one in sets[SETS[2]][1] if SETS[2] in sets else ():
        if one.found:
            neutral.add(one.found.occupation)
    types = (len(female), len(male), len(neutral))
    same = (
        "as the release has"
        if (here, types) == (tuple(pairs), tuple(words))
        else f"the release has {_told(pairs, words)}"
        if pairs
        else "no release has this language"
    )
    what = f"{place.language}, {'all words' if variant == 'all' else 'down-sampled'}: {_told(here, types)}; {same}"
    yield Finding("", 0, "", "count", what, str(sum(here)))


def _told(pairs: Sequence[int], words: Sequence[int]) -> str:
    sets = ", ".join(
        f"{name} {count:,}" for name, count in zip(("PS", "AS", "NS"), pairs, strict=True)
    )
    kinds = ", ".join(
        f"{count} {name}"
        for name, count in zip(("female-stereo", "male-stereo", "neutral"), words, strict=True)
    )
    return f"pairs {sets}, and occupations {kinds}"


def _pack(place: Place) -> Pack | None:
    """The words and frames of a folder, if they are by one of the two designs."""
    try:
        return extract(place.folder)[0]
    except (BadInput, IndexError):
        return None


def _refused(place: Place, error: Exception) -> tuple[str, int, str, str, str]:
    """What the loader says, with the place it names in columns of its own: file, row, column, kind, what."""
    text = plain(str(error))
    found = re.match(
        r"(?P<file>.+?)(?:, line (?P<row>\d+))?(?:, field `(?P<column>\w+)`)?: (?P<what>.+)", text
    )
    if not found:
        return place.name(place.folder), 0, "", "refused", text
    file = found["file"].removeprefix(f"{place.root}").lstrip("/\\")
    return file, int(found["row"] or 0), found["column"] or "", "refused", found["what"]


def _bare(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with its sentences without blanks."""
    return {
        name: value.replace(" ", "")
        if name.startswith("sentence") and isinstance(value, str)
        else value
        for name, value in row.items()
    }
