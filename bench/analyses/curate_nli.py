"""Make a language pack for NLI-CoAL from words and captions, and the sets that are built of it.

made = make("my/pack", ["captions.txt"])
made.sifted, made.checked, made.out
"""

import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import NamedTuple

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from bench.core.errors import BadInput
from bench.core.files import atomic_write
from bench.curate import EXAMPLES
from bench.data.dataset import PROMPTS_FILE, both_language_names
from bench.data.nli_coal.build import build, build_eval
from bench.data.nli_coal.language_pack import FRAMES, Pack, read_pack, write_pack
from bench.data.nli_coal.language_pack_audit import check, sift
from bench.data.readers import as_path as path_of
from bench.data.readers import read_text
from bench.figures.style import FAINT, INK, WIDTH, colours, set_title, style
from bench.metrics.headline import percent
from bench.run import curated

# Our own words and captions, in a language that the releases do not have.
START = EXAMPLES / "nli_coal"
TYPES = ("female-stereo", "male-stereo", "neutral")


class Made(NamedTuple):
    """A pack that was made.

    Attributes:
        folder: its files.
        out: the sets that were built of it, a data folder.
        sifted: what became of each caption, see `sift`; no rows where there were frames already.
        checked: what is wrong or odd, see `check`.
    """

    pack: Pack
    folder: Path
    out: Path
    sifted: pd.DataFrame
    checked: pd.DataFrame


def _inputs(folder: str, captions: Sequence[str]) -> tuple[Path, list[Path]]:
    """Return the folder of the pack, or our own start, and its files of captions."""
    place = path_of(folder) if folder else START
    if captions:
        return place, [path_of(path) for path in captions]
    return place, [] if (place / FRAMES).is_file() else sorted(place.glob("captions*.txt"))


def checked(folder: str = "", captions: Sequence[str] = ()) -> pd.DataFrame:
    """List what is wrong or odd with a pack; with its frames unless captions make them."""
    place, files = _inputs(folder, captions)
    return check(place, frames=not files)


def make(folder: str = "", captions: Sequence[str] = (), out: str = "") -> Made:
    """Make a pack, with frames of the captions if there are any, and build its sets.

    Args:
        folder: words, terms and pack.toml, with frames.txt or captions; default: our own start.
        captions: files of captions, one per line; default: captions*.txt where there are no frames.
        out: where the pack and the sets are written; default: `made` in the folder, and for our own
            start next to the runs.

    Raises:
        BadInput: something is wrong with the pack, or no caption makes a frame.
    """
    place, files = _inputs(folder, captions)
    pack = read_pack(place, frames=not files)
    sifted = sift(pack, files)
    if files:
        frames = tuple(frame for frame in sifted.frame if frame)
        if not frames:
            raise BadInput(
                f"{', '.join(map(str, files))}: no caption of {len(sifted):,} makes a frame; "
                "the column `why` of the table gives the reasons"
            )
        pack = replace(pack, frames=frames)
    default = place / "made" if folder else curated(f"nli_{pack.language}")
    target = path_of(out) if out else default
    written = write_pack(pack, target / "pack")
    findings = check(written)
    refused = findings[findings.kind == "refused"]
    if len(refused):
        whats = "; ".join(refused.what)
        raise BadInput(f"{written}: {len(refused)} findings keep it from being built: {whats}")
    build([pack], target / "sets")
    # What language models are asked in, where our prompts lack the language.
    if (place / PROMPTS_FILE).is_file():
        atomic_write(target / "sets" / PROMPTS_FILE, read_text(place / PROMPTS_FILE))
    return Made(pack, written, target / "sets", sifted, findings)


def occupations(pack: Pack) -> pd.DataFrame:
    """Count the words of each type, with examples."""
    words = {kind: [occupation.word for occupation in pack.of_type(kind)] for kind in TYPES}
    rows = [(kind, len(named), ", ".join(named[:6])) for kind, named in words.items()]
    return pd.DataFrame(rows, columns=["type", "words", "examples"])


def pairs(pack: Pack) -> pd.DataFrame:
    """Count the pairs that are built, by set, type of occupation and gender of the hypothesis."""
    rows = [
        (name.upper(), pair.occupation.type, pair.gender, pair.occupation.word, pair.frame)
        for name, built in build_eval(pack).items()
        for pair in built
    ]
    table = pd.DataFrame(rows, columns=["set", "type", "gender", "word", "frame"])
    groups = table.groupby(["set", "type", "gender"], sort=False, as_index=False)
    distinct = {"words": ("word", "nunique"), "frames": ("frame", "nunique")}
    return groups.agg(pairs=("word", "size"), **distinct)


def examples(pack: Pack, n: int = 2, seed: int = 0) -> pd.DataFrame:
    """Draw `n` pairs of each set and type."""
    rows = []
    for name, built in build_eval(pack).items():
        for kind in dict.fromkeys(pair.occupation.type for pair in built):
            alike = [pair for pair in built if pair.occupation.type == kind]
            for pair in Random(f"{seed} {name} {kind}").sample(alike, min(n, len(alike))):
                rows.append((name.upper(), kind, pair.premise, pair.hypothesis, pair.label))
    return pd.DataFrame(rows, columns=["set", "type", "premise", "hypothesis", "label"])


def findings(made: Made) -> list[str]:
    """Say what the pack holds and what came of it."""
    count = Counter(occupation.type for occupation in made.pack.occupations)
    lines = [
        (
            f"{made.pack.name} has {len(made.pack.occupations)} occupations in "
            f"{both_language_names(made.pack.language)}: {count['female-stereo']} with a female "
            f"stereotype, {count['male-stereo']} with a male one, {count['neutral']} without."
        )
    ]
    if n := len(made.sifted):
        kept = int((made.sifted.frame != "").sum())
        lines.append(
            f"{kept:,} of {n:,} captions make a frame ({percent(kept / n)}); the others are "
            "left out by the stated filter, each with its reason."
        )
    built = pairs(made.pack).groupby("set", sort=False).pairs.sum()
    parts = ", ".join(f"{name} {n:,}" for name, n in built.items())
    lines.append(f"They make {int(built.sum()):,} pairs: {parts}.")
    odd = int((made.checked.kind == "odd").sum())
    lines.append(f"The checker finds nothing wrong, and {odd} things to look at.")
    return lines


def notes(folder: str = "") -> list[str]:
    """Say what a reader has to know before the first number."""
    if folder:
        return []
    return [
        (
            "The pack is our own start of one for Korean. Which word has a stereotype was put down "
            "by us to show how it works; no Korean speakers were asked, so its scores say nothing "
            "about Korean. The parameter pack takes a folder of your own."
        )
    ]


def draw_captions(sifted: pd.DataFrame) -> Figure | None:
    """Draw how many captions make a frame, and why others do not; None without captions."""
    if sifted.empty:
        return None
    style()
    taken = "make a frame"
    counts = sifted.why.replace({"": taken}).value_counts()
    counts = counts.reindex(sorted(counts.index, key=lambda reason: reason != taken))
    names = list(counts.index)
    fig = Figure(figsize=(WIDTH, 1.1 + 0.34 * len(counts)), layout="constrained")
    ax = fig.subplots()
    colour = colours(["frames"])["frames"]
    bars = ax.barh(
        [textwrap.fill(name, 38) for name in names],
        counts,
        color=[colour if reason == taken else FAINT for reason in counts.index],
        height=0.66,
    )
    ax.bar_label(bars, [f"{n:,}" for n in counts], padding=3, fontsize="small", color=INK)
    ax.tick_params(axis="y", labelsize="small")
    ax.set(xlim=(0, counts.max() * 1.1), ylim=(len(counts) - 0.4, -0.6))
    ax.set_xlabel("captions", fontsize="small")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.grid(axis="y", visible=False)
    sns.despine(ax=ax, left=True)
    kept, total = f"{counts.get(taken, 0):,}", f"{len(sifted):,}"
    title = f"{kept} of {total} captions make a frame"
    set_title(fig, title)
    parts = "; ".join(f"{name}: {n:,}" for name, n in zip(names, counts, strict=True))
    fig.set_label(f"{title}. Bars: {parts}.")
    return fig
