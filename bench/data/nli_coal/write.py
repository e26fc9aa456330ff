"""Writing NLI-CoAL's sets as the release has them: JSON Lines, the same folders and names, and which files are the same."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from bench.core.errors import BadInput, RunFailed, expected
from bench.core.files import atomic_write
from bench.data import MANIFEST, readers
from bench.data.dataset import cldr_name
from bench.data.fetch import WrittenFile, git_blob_id, released_ids
from bench.data.nli_coal import CATEGORIES
from bench.data.nli_coal.build import (
    ASSIGNMENTS,
    NS_WORDS,
    Row,
    build_controlled,
    build_eval,
    downsample,
    frames_for,
)
from bench.data.nli_coal.language_pack import PACK, Pack, shuffled, write_pack

STEMS = {
    "ps": "1-prostereo",
    "as": "2-antistereo",
    "ns": "3-nonstereo",
    "all": "4-all",
    "nt": "5-neutral-terms",
}
TEST_NAMES = {1: "bias", 0: "nonbias"}
RATES = tuple(k / 10 for k in range(11))


def build(
    packs: Sequence[Pack],
    out: str | Path,
    *,
    design: str | None = None,
    frames_per_word: int | None = None,
    ns_words: str = NS_WORDS[0],
    rates: Sequence[float] = (),
    splits: Sequence[str] = ("train", "dev"),
    start: int | None = None,
    rows: int | None = None,
    assignment: str = ASSIGNMENTS[0],
    seed: int | None = None,
    compat: bool = False,
) -> list[WrittenFile]:
    """Write all sets of `packs` to `out`/LANGUAGE_vVERSION/, in the release's layout, with a copy of each pack in it.

    Evaluation sets, whole and down-sampled, always; controlled ones at `rates` for each of `splits`.

    Args:
        design, frames_per_word, ns_words, compat: as in `bench.data.nli_coal.build`, for the evaluation sets.
        start: the first frame of a controlled set, from 0; the pack's if not given.
        rows: how many pairs a controlled set has; as many as the pack's frames a word make if not given.
        assignment: as in `bench.data.nli_coal.build`, for the controlled sets.
        seed: puts the words of each type into another order, and draws frames for the assignment by `row`; without it the
            words stay in the pack's order.

    Raises:
        BadInput: an argument is wrong, or a pack has too few frames for it; nothing is written then.
        RunFailed: the files cannot be written.
    """
    out = Path(out)
    made = []
    packs = [pack if seed is None else shuffled(pack, seed) for pack in packs]
    for pack in packs:
        sets = build_eval(pack, design=design, frames_per_word=frames_per_word, compat=compat)
        small = downsample(pack, sets, ns_words)
        many = None if rows is None else frames_for(pack, rows)
        controlled = {
            (split, rate): build_controlled(
                pack,
                rate,
                split,
                start=start,
                frames_per_word=many,
                design=design,
                assignment=assignment,
                seed=seed or 0,
                compat=compat,
            )
            for split in splits
            for rate in rates
        }
        made.append((pack, sets, small, controlled))
    options = {
        "design": design or "",
        "frames_per_word": frames_per_word or 0,
        "ns_words": ns_words,
        "rates": list(rates),
        "splits": list(splits),
        "rows": rows or 0,
        "assignment": assignment,
        "seed": "" if seed is None else seed,
        "compat": compat,
    }
    written: list[WrittenFile] = []
    try:
        for pack, sets, small, controlled in made:
            written += write_eval(pack, sets, out) + write_eval(pack, small, out, "downsample")
            written += [
                write_controlled(pack, some, rate, split, out)
                for (split, rate), some in controlled.items()
            ]
            write_pack(pack, place(pack, out) / PACK)
        equal = sum(one.as_released for one in written)
        about = {
            name: ", ".join(dict.fromkeys(getattr(pack, name) for pack in packs))
            for name in ("name", "version", "licence", "language")
        }
        note = f"built from language packs; {equal} of {len(written)} files equal the release"
        labels = _labels([pack.language for pack in packs])
        categories = {"categories": labels} if labels else {}
        atomic_write(
            out / MANIFEST, readers.to_toml({**about, "note": note, "build": options, **categories})
        )
    except OSError as error:
        raise RunFailed(f"{out}: the sets could not be written there ({error})") from None
    return written


def write_eval(
    pack: Pack, sets: Mapping[str, Sequence[Row]], out: str | Path, which: str = "all"
) -> list[WrittenFile]:
    """Write evaluation sets, and PS, AS and NS together as 4-all; `which` is `all` or `downsample`, for folder and names."""
    folders = {
        "all": "untokenized" if pack.language == "ja" else "all-words",
        "downsample": "downsamp",
    }
    if which not in folders:
        raise BadInput(expected(which, folders, "set"))
    suffix = "" if which == "all" else "-downsamp"
    folder = place(pack, out) / f"bias-eval-set_v{pack.version}" / folders[which]
    together = {**sets, "all": [row for name in ("ps", "as", "ns") for row in sets[name]]}
    return [
        _file(
            Path(out),
            folder / f"{stem}{suffix}_v{pack.version}.json",
            map(_evaluation, together[name]),
        )
        for name, stem in STEMS.items()
        if name in together
    ]


def write_controlled(
    pack: Pack, rows: Sequence[Row], rate: float, split: str, out: str | Path
) -> WrittenFile:
    """Write a controlled set under the release's name: `train_r-3` for a rate of .3; `test_bias` and `test_nonbias`."""
    name = f"r-{round(rate * 10, 4):g}"
    if split == "test":
        name = TEST_NAMES.get(rate, name)  # type: ignore[call-overload]
    folder = place(pack, out) / f"bias-controlled-set_v{pack.version}"
    folder = folder / "untokenized" if pack.language == "ja" else folder
    return _file(Path(out), folder / split / f"{split}_{name}.json", map(_controlled, rows))


def place(pack: Pack, out: str | Path) -> Path:
    """The folder of a pack's sets."""
    return Path(out) / f"{pack.language}_v{pack.version}"


def _labels(languages: Iterable[str]) -> dict[str, dict[str, str]]:
    """What languages that the release has not are called, in English and in themselves."""
    named = {code: cldr_name(code, "en") for code in languages if code not in CATEGORIES}
    return {
        code: {"en": name, code: cldr_name(code, code) or name}
        for code, name in named.items()
        if name
    }


def _evaluation(row: Row) -> dict[str, object]:
    return {
        "id": row.id,
        "sentence1": row.premise,
        "sentence2": row.hypothesis,
        "label": row.label,
        "occ_word": row.named.word,
        "occ_type": row.named.type,
    }


def _controlled(row: Row) -> dict[str, object]:
    return {"sentence1": row.premise, "sentence2": row.hypothesis, "label": row.label}


def _file(out: Path, path: Path, rows: Iterable[Mapping[str, object]]) -> WrittenFile:
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    atomic_write(path, "".join(lines))
    return WrittenFile(
        path,
        len(lines),
        git_blob_id(path),
        released_ids("nli_coal").get(path.relative_to(out).as_posix(), ""),
    )
