"""A language pack for NLI-CoAL, from words and captions to sets that every room takes.

made = make("my/pack", ["captions.txt"])
made.sifted, made.checked, made.out
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import NamedTuple

import pandas as pd

from bench.core.errors import BadInput
from bench.core.files import atomic_write
from bench.core.i18n import _
from bench.curate.begin import EXAMPLES
from bench.data.dataset import PROMPTS_FILE, both_language_names
from bench.data.nli_coal.build import build_eval
from bench.data.nli_coal.language_pack import FRAMES, Pack, read_pack, read_words, write_pack
from bench.data.nli_coal.language_pack_audit import check, sift
from bench.data.nli_coal.write import build
from bench.data.readers import as_path, read_text
from bench.run import curated

# Words and captions of our own in a language that the releases have not.
START = EXAMPLES / "nli_coal"
# Where a pack of one's own and its sets are written, in its folder.
MADE = "made"


class Made(NamedTuple):
    """A pack that was made.

    Attributes:
        pack: the whole of it.
        folder: where its files lie.
        out: the folder of the sets that were built of it, which the loader takes.
        sifted: see `bench.data.nli_coal.language_pack_audit.sift`; no rows where the frames stood there already.
        checked: see `bench.data.nli_coal.language_pack_audit.check`.
    """

    pack: Pack
    folder: Path
    out: Path
    sifted: pd.DataFrame
    checked: pd.DataFrame


def given(folder: str = "") -> Path:
    """The folder of the pack, or our own start of one."""
    return as_path(folder) if folder else START


def captions_of(folder: Path, captions: Sequence[str] = ()) -> list[Path]:
    """The files of captions: those named, else captions*.txt beside the words, where no frames stand there already."""
    if captions:
        return [as_path(one) for one in captions]
    return [] if (folder / FRAMES).is_file() else sorted(folder.glob("captions*.txt"))


def checked(folder: str = "", captions: Sequence[str] = ()) -> pd.DataFrame:
    """All that is wrong or odd with what is given; the frames only where they are not still to be made.

    Raises:
        BadInput: no such folder.
    """
    place_ = given(folder)
    return check(place_, frames=not captions_of(place_, captions))


def make(folder: str = "", captions: Sequence[str] = (), out: str = "") -> Made:
    """The pack, with frames made of the captions where there are any, and the sets that are built of it.

    Args:
        folder: words, terms and pack.toml, with frames.txt or captions; our own start of a pack if empty.
        captions: files of captions, one a line; captions*.txt of the folder if empty and it has no frames.
        out: where the pack and the sets are written; `made` in the folder if empty, and our own start's beside the runs.

    Raises:
        BadInput: something is wrong with the pack, or no caption makes a frame.
    """
    place_ = given(folder)
    files = captions_of(place_, captions)
    pack = read_words(place_) if files else read_pack(place_)
    sifted = sift(pack, files)
    if files:
        frames = tuple(frame for frame in sifted.frame if frame)
        if not frames:
            raise BadInput(
                f"{', '.join(map(str, files))}: no caption of {len(sifted):,} makes a frame; the column `why` of the table says why"
            )
        pack = replace(pack, frames=frames)
    made = place_ / MADE if folder else curated(f"nli_{pack.language}")
    target = as_path(out) if out else made
    written = write_pack(pack, target / "pack")
    looked = check(written)
    refused = looked[looked.kind == "refused"]
    if len(refused):
        raise BadInput(
            f"{written}: {len(refused)} findings keep it from being built: {'; '.join(refused.what)}"
        )
    build([pack], target / "sets")
    # What language models are asked in, where our wording has no prompt for the language.
    if (place_ / PROMPTS_FILE).is_file():
        atomic_write(target / "sets" / PROMPTS_FILE, read_text(place_ / PROMPTS_FILE))
    return Made(pack, written, target / "sets", sifted, looked)


def occupations(pack: Pack) -> pd.DataFrame:
    """How many words are of each type, and which: columns `type`, `words`, `examples`."""
    rows = [
        (kind, len(some), _(", ").join(one.word for one in some[:6]))
        for kind in ("female-stereo", "male-stereo", "neutral")
        for some in [pack.of_type(kind)]
    ]
    return pd.DataFrame(rows, columns=["type", "words", "examples"])


def pairs(pack: Pack) -> pd.DataFrame:
    """The pairs that are built, by set, type of occupation and gender of the hypothesis."""
    rows = [
        (name.upper(), row.occupation.type, row.gender, row.occupation.word, row.frame)
        for name, some in build_eval(pack).items()
        for row in some
    ]
    found = pd.DataFrame(rows, columns=["set", "type", "gender", "word", "frame"])
    keys = ["set", "type", "gender"]
    return (
        found.groupby(keys, sort=False)
        .agg(pairs=("word", "size"), words=("word", "nunique"), frames=("frame", "nunique"))
        .reset_index()
    )


def examples(pack: Pack, n: int = 2, seed: int = 0) -> pd.DataFrame:
    """Pairs to look at: `n` of each set and type, drawn at random."""
    rows = []
    for name, some in build_eval(pack).items():
        for kind in dict.fromkeys(row.occupation.type for row in some):
            here = [row for row in some if row.occupation.type == kind]
            for row in Random(f"{seed} {name} {kind}").sample(here, min(n, len(here))):
                rows.append((name.upper(), kind, row.premise, row.hypothesis, row.label))
    return pd.DataFrame(rows, columns=["set", "type", "premise", "hypothesis", "label"])


def findings(made: Made) -> list[str]:
    """What the pack is and what came of it, in sentences."""
    counts = dict(zip(*occupations(made.pack)[["type", "words"]].T.values.tolist(), strict=True))
    told = [
        _(
            "{name} has {n} occupations in {language}: {female} with a female stereotype, {male} with a male one, {neutral} without.",
            name=made.pack.name,
            language=both_language_names(made.pack.language),
            n=len(made.pack.occupations),
            female=counts["female-stereo"],
            male=counts["male-stereo"],
            neutral=counts["neutral"],
        )
    ]
    if len(made.sifted):
        kept = int((made.sifted.frame != "").sum())
        told.append(
            _(
                "{kept} of {n} captions make a frame ({share}); the others are left out by the stated filter, each with its reason.",
                kept=f"{kept:,}",
                n=f"{len(made.sifted):,}",
                share=f"{kept / len(made.sifted):.0%}",
            )
        )
    built = pairs(made.pack).groupby("set", sort=False).pairs.sum()
    parts = _(", ").join(f"{name} {count:,}" for name, count in built.items())
    told.append(_("They make {n} pairs: {parts}.", n=f"{int(built.sum()):,}", parts=parts))
    odd = int((made.checked.kind == "odd").sum())
    told.append(
        _("The checker finds nothing wrong, and {n} things to look at.", n=odd)
        if odd
        else _("The checker finds nothing wrong and nothing odd.")
    )
    return told


def notes(folder: str = "") -> list[str]:
    """What a reader has to know before the first number."""
    if folder:
        return []
    return [
        _(
            "The pack is our own start of one for Korean. Which word has a stereotype was put down by us to show the way; no Korean speakers "
            "were asked, so its scores say nothing about Korean. The parameter pack takes a folder of your own."
        )
    ]
