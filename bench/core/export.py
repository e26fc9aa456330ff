"""Tables and pictures as files: CSV, Parquet and LaTeX; PNG and SVG that carry their words with them."""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import scipy

from bench.core.cells import as_csv, guarded
from bench.core.errors import plain
from bench.core.files import atomic_path, explain_write_errors

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TABLES = {"csv": "CSV", "parquet": "Parquet", "tex": "LaTeX"}
PICTURES = {"png": "PNG", "svg": "SVG"}
# More rows than a page has make a table that goes on over pages.
LONG = 40
# Colours of a picture in a notebook: the commonest as they are, and others that stand for the rest.
EXACT, OTHERS = 128, 128
# Where red, green and blue stand in the number of a colour.
SHIFTS = np.array([16, 8, 0], dtype=np.int32)
# pandas leaves cells out of a LaTeX table without a word where there are more than it likes.
NO_LIMIT = 2**31
# What TeX acts on, and how it is written so that it is shown.
TEX = str.maketrans(
    {
        **{char: f"\\{char}" for char in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
    }
)


def write_table(frame: pd.DataFrame, folder: Path, name: str) -> None:
    """Write NAME.csv and NAME.parquet with full precision, and NAME.tex with three digits."""
    with _file(folder / f"{name}.csv") as draft:
        draft.write_text(to_csv(frame), "utf-8", newline="")
    with _file(folder / f"{name}.parquet") as draft:
        _of_one_kind(frame).to_parquet(draft, index=False)
    long = ", longtable" if len(frame) > LONG else ""
    head = f"% needs \\usepackage{{booktabs{long}}}; Chinese needs XeLaTeX or LuaLaTeX with ctex\n"
    with _file(folder / f"{name}.tex") as draft:
        draft.write_text(head + to_latex(frame, bool(long)), "utf-8")


def write_text(path: Path, content: str) -> None:
    """Write a page or another file of text."""
    with _file(path) as draft:
        draft.write_text(content, "utf-8")


def to_csv(frame: pd.DataFrame) -> str:
    """A table as CSV; a text that a spreadsheet program would take for a formula stands behind an apostrophe."""
    return as_csv(_texts(frame, guarded))


def to_latex(frame: pd.DataFrame, long: bool = False) -> str:
    """A table as LaTeX with the rules of booktabs; what is undefined is a dash, and a long one goes on over pages.

    Every text is shown as it is: none of it is a command to TeX.
    """
    with pd.option_context("styler.render.max_elements", NO_LIMIT):
        text: str = _texts(frame, _tex).to_latex(
            index=False, escape=False, float_format="%.3f", na_rep="--", longtable=long
        )
    return text


def _texts(frame: pd.DataFrame, change: Callable[[str], str]) -> pd.DataFrame:
    """The table with every text in it, names of columns too, as `change` makes it; numbers stay numbers."""
    changed = {
        name: column.map(lambda value: change(value) if isinstance(value, str) else value)
        for name, column in frame.items()
        if not pd.api.types.is_numeric_dtype(column.dtype)
    }
    return frame.assign(**{str(name): column for name, column in changed.items()}).rename(
        columns=lambda name: change(str(name))
    )


def _tex(text: str) -> str:
    """A text with nothing in it that TeX acts on, on one line."""
    shown = plain(" ".join(text.splitlines())).translate(TEX)
    # After the end of a row, and after a rule, a bracket or a star would be an option.
    return f"{{{shown[0]}}}{shown[1:]}" if shown.startswith(("[", "*")) else shown


def write_picture(fig: "Figure", folder: Path, name: str) -> bytes:
    """Write NAME.png and NAME.svg; the figure's label, which says what is seen, is kept in both.

    Returns:
        The bytes of the PNG file.
    """
    drawn = to_png(fig)
    with _file(folder / f"{name}.png") as draft:
        draft.write_bytes(drawn)
    words = {"Title": str(fig.get_label()), "Date": None}
    # The layout is that of the PNG, and takes as long as the drawing.
    fig.set_layout_engine("none")
    with _file(folder / f"{name}.svg") as draft:
        fig.savefig(draft, format="svg", facecolor="white", metadata=words)
    return drawn


def to_png(fig: "Figure", dpi: int | None = None) -> bytes:
    """A figure as the bytes of a PNG file; without `dpi` as fine as the style of pictures says."""
    words = {"Description": str(fig.get_label())}
    stream = io.BytesIO()
    fig.savefig(stream, format="png", dpi=dpi, facecolor="white", metadata=words)
    return stream.getvalue()


@contextmanager
def _file(path: Path) -> Iterator[Path]:
    with explain_write_errors(path), atomic_path(path) as draft:
        yield draft


def quantize_png(png: bytes) -> bytes:
    """The same picture in few colours, a third as large, in which the eye sees no difference."""
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    opened = Image.open(io.BytesIO(png))
    picture = opened.convert("RGB")
    red, green, blue = np.moveaxis(np.asarray(picture, dtype=np.int32) << SHIFTS, 2, 0)
    pixels = red | green | blue
    # By hashing, in place of sorting a million pixels.
    at, found = pd.factorize(pixels.ravel(), sort=True)
    n = np.bincount(at)
    colours = found[:, None] >> SHIFTS & 255
    # Grounds and models' colours are the commonest; what is between them stands where edges are smoothed.
    rest = picture.quantize(OTHERS, Image.Quantize.FASTOCTREE).getpalette() or []
    palette = np.vstack([colours[np.argsort(-n, kind="stable")[:EXACT]], np.reshape(rest, (-1, 3))])
    nearest = scipy.spatial.KDTree(palette).query(colours)[1].astype(np.uint8)
    few = Image.fromarray(nearest[at].reshape(pixels.shape))
    few.putpalette(palette.astype(np.uint8).tobytes())
    words = PngInfo()
    words.add_itxt("Description", str(opened.info["Description"]))
    stream = io.BytesIO()
    few.save(stream, format="png", optimize=True, pnginfo=words)
    return stream.getvalue()


def _of_one_kind(frame: pd.DataFrame) -> pd.DataFrame:
    """A column that mixes texts with other things is text: Parquet has one type a column."""
    mixed = {
        name: column.map(str)
        for name, column in frame.items()
        if column.dtype == object and len({type(value) for value in column}) > 1
    }
    return frame.assign(**{str(name): column for name, column in mixed.items()}).rename(columns=str)
