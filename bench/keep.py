"""Tables and pictures as files: CSV, Parquet and LaTeX; PNG and SVG that carry their words with them."""

import io
from collections.abc import Callable
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from bench.data.cells import guarded, written
from bench.errors import plain

TABLES = {"csv": "CSV", "parquet": "Parquet", "tex": "LaTeX"}
PICTURES = {"png": "PNG", "svg": "SVG"}
# More rows than a page has make a table that goes on over pages.
LONG = 40
# pandas leaves cells out of a LaTeX table without a word where there are more than it likes.
NO_LIMIT = 2**31
# What TeX acts on, and how it is written so that it is shown.
TEX = str.maketrans(
    {
        **{char: f"\\{char}" for char in "&%$#_{}"},
        "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
        "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    }
)  # fmt: skip


def table(frame: pd.DataFrame, folder: Path, name: str) -> None:
    """Write NAME.csv and NAME.parquet with full precision, and NAME.tex with three digits."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.csv").write_text(csv(frame), "utf-8", newline="")
    _of_one_kind(frame).to_parquet(folder / f"{name}.parquet", index=False)
    long = ", longtable" if len(frame) > LONG else ""
    head = f"% needs \\usepackage{{booktabs{long}}}; Chinese needs XeLaTeX or LuaLaTeX with ctex\n"
    (folder / f"{name}.tex").write_text(head + latex(frame, bool(long)), "utf-8")


def csv(frame: pd.DataFrame) -> str:
    """A table as CSV; a text that a spreadsheet program would take for a formula stands behind an apostrophe."""
    return written(_texts(frame, guarded))


def latex(frame: pd.DataFrame, long: bool = False) -> str:
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


def picture(fig: Figure, folder: Path, name: str) -> None:
    """Write NAME.png and NAME.svg; the figure's label, which says what is seen, is kept in both."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.png").write_bytes(png(fig))
    words = {"Title": str(fig.get_label()), "Date": None}
    fig.savefig(folder / f"{name}.svg", facecolor="white", metadata=words)


def png(fig: Figure) -> bytes:
    """A figure as the bytes of a PNG file."""
    stream = io.BytesIO()
    fig.savefig(stream, format="png", facecolor="white", metadata={"Description": str(fig.get_label())})
    return stream.getvalue()


def _of_one_kind(frame: pd.DataFrame) -> pd.DataFrame:
    """A column that mixes texts with other things is text: Parquet has one type a column."""
    mixed = {
        name: column.map(str)
        for name, column in frame.items()
        if column.dtype == object and len({type(value) for value in column}) > 1
    }
    return frame.assign(**{str(name): column for name, column in mixed.items()}).rename(columns=str)
