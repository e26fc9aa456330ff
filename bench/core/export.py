"""Write tables as CSV, Parquet and LaTeX, and pictures as PNG and SVG with their description."""

import io
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy

from bench.core.cells import as_csv, guarded
from bench.core.errors import plain
from bench.core.files import atomic_path, explain_write_errors
from bench.core.numbers import half_up

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TABLES = {"csv": "CSV", "parquet": "Parquet", "tex": "LaTeX"}
PICTURES = {"png": "PNG", "svg": "SVG"}
# Rows from which a LaTeX table goes on over pages.
LONG = 40
# Colours of a picture in a notebook: the most common ones, and some that stand for the rest.
EXACT, OTHERS = 128, 128
# Shifts of red, green and blue in the number of a colour.
SHIFTS = np.array([16, 8, 0], dtype=np.int32)
# Else pandas leaves cells out of a large LaTeX table, without a warning.
NO_LIMIT = 2**31
# How to write what TeX would act on.
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
    """Write a text file."""
    with _file(path) as draft:
        draft.write_text(content, "utf-8")


def to_csv(frame: pd.DataFrame) -> str:
    """Write a table as CSV, with an apostrophe before texts that look like formulas."""
    return as_csv(_texts(frame, guarded))


def to_rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a table's rows for JSON, which has None for undefined and infinite numbers."""
    return [
        {
            str(name): None if isinstance(cell, float) and not math.isfinite(cell) else cell
            for name, cell in row.items()
        }
        for row in frame.to_dict("records")
    ]


def to_latex(frame: pd.DataFrame, long: bool = False) -> str:
    """Write a table as LaTeX with booktabs; texts are escaped, and NaN is a dash."""
    with pd.option_context("styler.render.max_elements", NO_LIMIT):
        text: str = _texts(frame, _tex).to_latex(
            index=False,
            escape=False,
            float_format=lambda number: str(half_up(number, 3)),
            na_rep="--",
            longtable=long,
        )
    return text


def _texts(frame: pd.DataFrame, change: Callable[[str], str]) -> pd.DataFrame:
    """Apply `change` to all texts of a table, names of columns among them."""
    changed = {
        name: column.map(lambda value: change(value) if isinstance(value, str) else value)
        for name, column in frame.items()
        if not pd.api.types.is_numeric_dtype(column.dtype)
    }
    return frame.assign(**{str(name): column for name, column in changed.items()}).rename(
        columns=lambda name: change(str(name))
    )


def _tex(text: str) -> str:
    """Escape a text for TeX, on one line."""
    shown = plain(" ".join(text.splitlines())).translate(TEX)
    # After a row or a rule, a bracket or a star would be an option.
    return f"{{{shown[0]}}}{shown[1:]}" if shown.startswith(("[", "*")) else shown


def write_picture(fig: "Figure", folder: Path, name: str) -> bytes:
    """Write NAME.png and NAME.svg with the figure's label as description; return the PNG."""
    drawn = to_png(fig)
    with _file(folder / f"{name}.png") as draft:
        draft.write_bytes(drawn)
    words = {"Title": str(fig.get_label()), "Date": None}
    # The layout of the PNG is kept, because it takes as long as the drawing.
    fig.set_layout_engine("none")
    with _file(folder / f"{name}.svg") as draft:
        fig.savefig(draft, format="svg", facecolor="white", metadata=words)
    return drawn


def to_png(fig: "Figure", dpi: int | None = None) -> bytes:
    """Return a figure as PNG; default of `dpi`: the style's."""
    words = {"Description": str(fig.get_label())}
    stream = io.BytesIO()
    fig.savefig(stream, format="png", dpi=dpi, facecolor="white", metadata=words)
    return stream.getvalue()


@contextmanager
def _file(path: Path) -> Iterator[Path]:
    with explain_write_errors(path), atomic_path(path) as draft:
        yield draft


def quantize_png(png: bytes, *, transparent: bool = False) -> bytes:
    """Return a picture in few colours, a third as large, that looks the same.

    Args:
        transparent: makes white transparent, for pages that can be dark.
    """
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    opened = Image.open(io.BytesIO(png))
    picture = opened.convert("RGB")
    red, green, blue = np.moveaxis(np.asarray(picture, dtype=np.int32) << SHIFTS, 2, 0)
    pixels = red | green | blue
    # Hashing is faster than sorting a million pixels.
    at, distinct = pd.factorize(pixels.ravel(), sort=True)
    n = np.bincount(at)
    colours = distinct[:, None] >> SHIFTS & 255
    # Colours that are not common are those of smoothed edges.
    rest = picture.quantize(OTHERS, Image.Quantize.FASTOCTREE).getpalette() or []
    palette = np.vstack([colours[np.argsort(-n, kind="stable")[:EXACT]], np.reshape(rest, (-1, 3))])
    nearest = scipy.spatial.KDTree(palette).query(colours)[1].astype(np.uint8)
    few = Image.fromarray(nearest[at].reshape(pixels.shape))
    few.putpalette(palette.astype(np.uint8).tobytes())
    words = PngInfo()
    words.add_itxt("Description", str(opened.info["Description"]))
    stream = io.BytesIO()
    white = np.flatnonzero((palette == 255).all(axis=1))
    ground = {"transparency": int(white[0])} if transparent and len(white) else {}
    few.save(stream, format="png", optimize=True, pnginfo=words, **ground)
    return stream.getvalue()


def _of_one_kind(frame: pd.DataFrame) -> pd.DataFrame:
    """Make columns of mixed types text, because Parquet has one type per column."""
    mixed = {
        name: column.map(str)
        for name, column in frame.items()
        if column.dtype == object and len({type(value) for value in column}) > 1
    }
    return frame.assign(**{str(name): column for name, column in mixed.items()}).rename(columns=str)
