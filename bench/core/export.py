"""Write tables as CSV, Parquet and LaTeX, and pictures as PNG, SVG and PDF."""

import io
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from bench.core.cells import as_csv, guarded
from bench.core.errors import plain
from bench.core.files import atomic_path, atomic_write
from bench.core.numbers import half_up, p_value

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TABLES = {"csv": "CSV", "parquet": "Parquet", "tex": "LaTeX"}
# Columns of p values.
P_VALUES = ("p", "p_adjusted", "p_readable", "p_conover", "p_wilcoxon")
PICTURES = {"png": "PNG", "svg": "SVG", "pdf": "PDF"}
# Makes a table smaller if it is wider than its column, or than the page in a `table*`.
AT_MOST_A_LINE = (
    "\\noindent\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%\n"
)
# A LaTeX table with more rows continues on the next page.
MAX_ROWS_OF_A_PAGE = 40
# Five pages of a paper.
MAX_LATEX_ROWS = 200
# A number, or no number, as tables show it.
NUMBER = r"(< )?[−+\d.,]*"
# Signs that the usual fonts of TeX have in formulas alone.
FORMULAS = {"−": "-", "<": "<", ">": ">", "≈": r"\approx", "≠": r"\neq", "≤": r"\leq"}
FORMULAS |= {"≥": r"\geq", "→": r"\to", "×": r"\times", "∞": r"\infty"}
# Above pandas' own limit, a LaTeX table silently lacks cells.
MAX_CELLS = 2**31


def write_table(
    frame: pd.DataFrame, folder: Path, name: str, shown: pd.DataFrame | None = None
) -> None:
    """Write NAME.csv and NAME.parquet with full precision, and NAME.tex with three digits.

    A table of more than `MAX_LATEX_ROWS` is no table of a paper, and gets no NAME.tex.

    Args:
        shown: the table of NAME.tex; default: the same.
    """
    atomic_write(folder / f"{name}.csv", to_csv(frame))
    with atomic_path(folder / f"{name}.parquet") as draft:
        # Parquet has one type per column: mixed ones become texts.
        objects = frame.loc[:, frame.dtypes.map(pd.api.types.is_object_dtype)]
        mixed = {name: str for name in objects if len(set(map(type, frame[name]))) > 1}
        frame.astype(mixed).rename(columns=str).to_parquet(draft, index=False)
    if len(frame) > MAX_LATEX_ROWS:
        (folder / f"{name}.tex").unlink(missing_ok=True)
        return
    is_long = len(frame) > MAX_ROWS_OF_A_PAGE
    table = to_latex(frame if shown is None else shown, is_long)
    packages = "booktabs, longtable}, and one column" if is_long else "booktabs, graphicx}"
    head = f"% needs \\usepackage{{{packages}; Chinese needs XeLaTeX or LuaLaTeX with ctex\n"
    text = table if is_long else f"{AT_MOST_A_LINE}{table.rstrip()}}}\n"
    atomic_write(folder / f"{name}.tex", head + text)


def to_csv(frame: pd.DataFrame) -> str:
    """Write a table as CSV, with an apostrophe before texts that look like formulas."""
    return as_csv(_texts(frame, guarded))


def to_rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a table's rows for JSON, with None for undefined and infinite numbers."""
    return [
        {
            str(name): None if isinstance(cell, float) and not math.isfinite(cell) else cell
            for name, cell in row.items()
        }
        for row in frame.to_dict("records")
    ]


def to_latex(frame: pd.DataFrame, long: bool = False, caption: str = "") -> str:
    """Write a table as LaTeX with booktabs, without empty columns; NaN is a dash."""
    frame = _texts(frame, lambda text: plain(" ".join(text.splitlines())))
    if len(frame):
        frame = frame.loc[:, (frame != "").any()]
    numbers = set(frame.select_dtypes("number"))
    for name in numbers & {*P_VALUES}:
        frame[name] = frame[name].map(lambda p: p if math.isnan(p) else p_value(p))
    numbers |= {name for name in frame if frame[name].astype(str).str.fullmatch(NUMBER).all()}
    with pd.option_context("styler.render.max_elements", MAX_CELLS):
        text: str = frame.to_latex(
            index=False,
            escape=True,
            float_format=lambda number: str(half_up(number, 3)),
            na_rep="--",
            column_format="".join("r" if name in numbers else "l" for name in frame),
            longtable=long,
            caption=caption or None,
        )
    for sign, formula in FORMULAS.items():
        text = text.replace(sign, f"${formula}$")
    # At the beginning of a row, TeX reads a bracket or a star as an option.
    return re.sub(r"^([\[*])", r"{\1}", text, flags=re.MULTILINE)


def _texts(frame: pd.DataFrame, change: Callable[[str], str]) -> pd.DataFrame:
    """Apply `change` to all texts of a table, names of columns among them."""
    frame = frame.copy()
    for name in frame.select_dtypes(exclude="number"):
        frame[name] = frame[name].map(lambda cell: change(cell) if isinstance(cell, str) else cell)
    return frame.rename(columns=lambda name: change(str(name)))


def write_picture(fig: "Figure", folder: Path, name: str) -> bytes:
    """Write NAME.png, .svg and .pdf with the figure's label as description.

    Returns:
        The picture as PNG without a background, for pages that can be dark.
    """
    label = str(fig.get_label())
    descriptions: dict[str, dict[str, Any]] = {
        "png": {"Description": label},
        "svg": {"Title": label, "Date": None},
        "pdf": {"Title": label, "CreationDate": None},
    }
    for kind, words in descriptions.items():
        with atomic_path(folder / f"{name}.{kind}") as draft:
            fig.savefig(draft, format=kind, facecolor="white", metadata=words)
    return to_png(fig, transparent=True)


def to_png(fig: "Figure", **options: Any) -> bytes:
    """Return a figure as PNG, with its label as description.

    Args:
        options: of matplotlib's `savefig`.
    """
    stream = io.BytesIO()
    fig.savefig(stream, format="png", metadata={"Description": str(fig.get_label())}, **options)
    return stream.getvalue()
