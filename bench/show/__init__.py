"""Show tables, pictures and findings in a notebook, and save them.

For example:

    bench.publish(scores, "scores", "Scores by model", into="reports/mine/mcbe")
"""

import base64
import io
import math
import os
import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
import PIL.Image
from IPython.display import HTML, display
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure
from pandas.io.formats.style import Styler

from bench.benchmarks import get
from bench.core import export
from bench.core.numbers import decimals, p_value
from bench.core.text import PLAIN, as_html, column, sentences, shortened
from bench.figures.style import DPI, number_unknown
from bench.metrics import primary
from bench.metrics.primary import findings as all_findings
from bench.metrics.primary import measure_words, too_few_tasks
from bench.metrics.table import ALL
from bench.run import Run
from bench.runs.notes import warnings
from bench.show.paper import paper_table

if TYPE_CHECKING:
    import nbformat

__all__ = ["cautions", "findings", "glance", "paper_table", "publish"]

MAX_ROWS = 20  # of a table on a page; its file has all of them
MAX_CELL_CHARS = 2000
# Columns in the unit of a score.
SCORES = {"score", "estimate", "ci_low", "ci_high", "bound_low", "bound_high", "baseline"}
SCORES |= {"detectable", "score_released"}
# Columns of shares, in any table.
SHARES = {"valid_rate", "readable_first", "readable_second"}
# Heads that are not the name of the column.
HEADS = {
    "billions": "billions of parameters",
    "ci_low": "95 % interval",
    "clusters": "scenes",
    "data_sha256": "SHA-256 of the data",
    "p_adjusted": "adjusted p",
    "p_conover": "p (Conover)",
    "p_readable": "p (readable)",
    "p_wilcoxon": "p (Wilcoxon)",
    "readable_first": "readable, first",
    "readable_second": "readable, second",
    "valid_rate": "readable",
}
# The largest p of a significant difference.
LEVEL = 0.05
# Pixels per inch of a picture on a page.
PIXELS = 96


def __dir__() -> list[str]:
    return __all__


def publish(
    item: Any,
    name: str,
    caption: str = "",
    into: str | Path | None = None,
    percent: Collection[Any] = (),
    heads: Mapping[str, str] | None = None,
) -> None:
    """Show a table or a picture as Jupyter does, and save it for a report.

    We save a table as NAME.csv and .parquet with all of its columns, rows and digits, and up to 200
    rows as NAME.tex, as it is shown; a picture as NAME.png, .svg and .pdf.

    Args:
        item: a frame; a figure of matplotlib; or the axes or the grid that seaborn returns.
        name: the name of the files.
        caption: a sentence on the content and how to read it. Default: the name.
        into: the folder of the files, for example a notebook's parameter `tables`. Default: none.
        percent: columns of shares to show in per cent; the files have fractions. This happens by
            itself for the scores in rows with the `unit` %.
        heads: the heads of columns, by their names; a column with an empty head is not shown.
            Default: their names in words.

    Examples:
        >>> import pandas as pd
        >>> ranks = pd.DataFrame({"model": ["a", "b"], "mean_rank": [1.25, 1.75]})
        >>> publish(ranks, "mean_ranks", "Mean ranks over four categories")  # doctest: +SKIP
    """
    folder = Path(into) if into else None
    caption = caption or name.replace("_", " ").capitalize()
    if isinstance(item, pd.DataFrame):
        _publish_table(item, name, caption, folder, set(percent), heads or {})
    else:
        _publish_picture(item if isinstance(item, Figure) else item.figure, name, caption, folder)


def _publish_table(
    frame: pd.DataFrame,
    name: str,
    caption: str,
    folder: Path | None,
    percent: Collection[Any],
    heads: Mapping[str, str],
) -> None:
    rows = frame.reset_index() if any(frame.index.names) else frame
    shown, are_numbers = _as_shown(rows, percent, heads)
    if folder:
        export.write_table(rows, folder, _file_name(name), shown)
    if rows.empty:
        display(HTML(_html("paragraph", f"{caption}: none.")), metadata={"caption": caption})
        return
    sides: dict[Any, Any] = {
        column: [{"selector": "", "props": f"text-align: {'right' if is_number else 'left'}"}]
        for column, is_number in are_numbers.items()
    }
    styler = (
        Styler(shown.head(MAX_ROWS), uuid=_file_name(name), cell_ids=False)
        .hide(axis="index")
        .format(as_html)
        .format(_category_html, subset=shown.columns.intersection(["category"]))
        .format_index(as_html, axis=1)
        .set_table_styles(sides)
        .set_caption(_html("links_after", caption, _files(name, export.TABLES, folder)))
    )
    table = Markup(styler.to_html())
    data = {
        "text/html": _html("scrolling", caption, table, max(0, len(rows) - MAX_ROWS)),
        "text/plain": shown.head(MAX_ROWS).to_string(index=False),
    }
    display(data, metadata={"caption": caption}, raw=True)


def _as_shown(
    rows: pd.DataFrame, percent: Collection[Any], heads: Mapping[str, str]
) -> tuple[pd.DataFrame, dict[str, bool]]:
    """Write the cells of a table as texts under their heads, and say which columns are numbers."""
    columns: dict[str, list[str]] = {}
    are_numbers = {}
    is_share = rows.unit == "%" if "unit" in rows else pd.Series(False, rows.index)
    # A unit that all rows have stands in the head.
    unit = ", %" if len(rows) and is_share.all() else ""
    for name in rows:
        values = rows[name]
        head = heads.get(str(name), HEADS.get(str(name), column(str(name))))
        is_blank = len(rows) > 0 and (values.isna() | (values == "")).all()
        is_alike = name == "unit" and (values == values.iloc[:1].squeeze()).all()
        if head == "" or is_blank or is_alike or (name == "ci_high" and "ci_low" in rows):
            continue
        texts = _texts(values, name, is_share, percent)
        if name == "ci_low" and "ci_high" in rows:
            ends = _texts(rows.ci_high, "ci_high", is_share, percent)
            pairs = zip(texts, ends, strict=True)
            texts = [f"{low} to {high}" if low else "" for low, high in pairs]
        elif name in percent or name in SHARES:
            head += ", %"
        elif name in ("score", "estimate") and name not in heads:
            head += unit
        columns[head] = texts
        are_numbers[head] = pd.api.types.is_numeric_dtype(values)
    return pd.DataFrame(columns, rows.index, dtype=object), are_numbers


def _texts(
    values: pd.Series, name: Any, is_share: "pd.Series[bool]", percent: Collection[Any]
) -> list[str]:
    """Write the cells of a column."""
    if name in export.P_VALUES:
        return ["" if math.isnan(p) else p_value(p) for p in values]
    if name == "metric":
        return [measure_words(metric) for metric in values]
    is_percent = is_share & (name in SCORES) | (name in {*SHARES, *percent})
    return list(map(_cell, values.tolist(), is_percent))


def _cell(value: Any, is_percent: bool) -> str:
    """Write a cell: three decimals, two from 10 on, six for small numbers, and no NaN."""
    if is_percent:
        return "" if math.isnan(value) else decimals(100 * value, 1)
    if isinstance(value, float):
        if math.isnan(value):
            return ""
        # A difference of equal shares can be 1e-16.
        value = round(value, 12)
        is_small = 0 < abs(value) < 0.0005
        return decimals(value, 6 if is_small else 3 - (abs(value) >= 10))
    if value is pd.NA or value is None:
        return ""
    is_count = isinstance(value, Integral) and not isinstance(value, bool)
    return f"{value:,}" if is_count else shortened(value, MAX_CELL_CHARS)


def _category_html(category: object) -> str:
    """Mark the name of a category; a report links it to its answers."""
    return as_html(category) if category == ALL else _html("category", str(category))


def _publish_picture(fig: Figure, name: str, caption: str, folder: Path | None) -> None:
    fig.set_label(fig.get_label() or fig.get_suptitle() or caption)
    key = number_unknown(fig)
    caption = f"{caption}. {key}" if key else caption
    # Like Jupyter, we show the complete picture.
    with mpl.rc_context({"savefig.bbox": "tight"}):
        dpi = DPI if folder else PIXELS
        if folder:
            png = export.write_picture(fig, folder, _file_name(name))
        else:
            png = export.to_png(fig, dpi=dpi, facecolor="white")
    plt.close(fig)  # otherwise, Jupyter would show it again below the cell
    width = round(PIL.Image.open(io.BytesIO(png)).width * PIXELS / dpi)
    data = {"image/png": base64.b64encode(png).decode(), "text/plain": caption}
    display(data, metadata={"image/png": {"alt": str(fig.get_label()), "width": width}}, raw=True)
    files = _files(name, export.PICTURES, folder)
    display(HTML(_html("caption", caption, files)), metadata={"caption": caption})


def findings(
    scores: pd.DataFrame, differences: pd.DataFrame | None = None, title: str = ""
) -> None:
    """Print the findings of a benchmark, a sentence a line; the first answers its question.

    Each primary metric has a sentence on the most biased model, with a doubt if the interval, the
    unparsed answers or a constant answer leave the result open.

    Args:
        scores: of `bench.explain`, of one benchmark.
        differences: of `bench.compare` between models, on one of the primary metrics.
        title: the title of this metric; default: the first primary metric.

    Examples:
        >>> import bench
        >>> run = bench.evaluate("cbbq", "simulated:bias=0.7", data="samples", limit=10)
        >>> findings(bench.explain(bench.score(run)))
        simulated:bias=0.7 answered 71 % of the ambiguous questions with the stereotype (95 %
        interval 63 to 78; above a random answerer, 33; n = 140).
        ...
    """
    benchmark = get(scores.benchmark.iloc[0])
    results = all_findings(scores.drop(columns=["title", "primary", "worse", "doubt"]), benchmark)
    if results.empty:
        print(too_few_tasks(benchmark))
        return
    print(*results.sentence, sep="\n")
    overall = scores[scores.primary & (scores.category == ALL)]
    first = overall[overall.title == (title or overall.title.iloc[0])]
    if differences is not None and differences.p_adjusted.notna().any():
        n, apart = differences.p_adjusted.notna().sum(), (differences.p_adjusted < LEVEL).sum()
        print(
            f"{first.title.iloc[0]}: {apart} of {n} pairs of models can be told apart (paired "
            f"tests, p adjusted by Holm below {LEVEL})."
        )
    for reason, rows in first[first.doubt != ""].groupby("doubt", sort=False):
        models = primary.listing(list(rows.model))
        print(f"{rows.title.iloc[0]} says nothing of the bias of {models}: {reason}.")


def answer_output(sentences: list[str]) -> "nbformat.NotebookNode":
    """Return the output of a cell with sentences; the first is the page's answer."""
    import nbformat

    html = _html("findings", sentences)
    metadata = {"findings": sentences}
    return nbformat.v4.new_output("display_data", {"text/html": html}, metadata=metadata)


def cautions(runs: Sequence[Run]) -> None:
    """Show warnings about the models and data, to read before the first number.

    Examples:
        >>> import bench
        >>> run = bench.evaluate("cbbq", "simulated:bias=0.7", data="samples", limit=10)
        >>> cautions([run])
        <IPython.core.display.HTML object>
    """
    if texts := warnings(runs):
        display(HTML(_html("notice", " ".join(texts))))


def glance(scores: pd.DataFrame, asked: pd.DataFrame) -> str:
    """Write a table with the first score of each model and variant as HTML, with bars.

    A longer bar is worse; the stroke in it is the baseline.

    Args:
        scores: rows of `bench.explain` over all categories, of primary measures, with a column
            `variant`.
        asked: a row per `model` and `variant`, with the reason `why` there are no scores.
    """
    cells = {(row["model"], row["variant"]): row for row in asked.to_dict("records")}
    headings: dict[str, tuple[str, str]] = {}
    notes = []
    for row in scores.to_dict("records"):
        if headings.setdefault(row["variant"], (row["title"], row["worse"]))[0] != row["title"]:
            continue
        line = primary.metric_of(get(row["benchmark"]), row)
        doubt = row["doubt"] and f"{row['doubt']}."
        note = sentences([primary.unread(line, row), doubt, row["note"]])
        if note:
            notes.append(f"{row['model']}, {row['variant']}: {note}")
        cells[row["model"], row["variant"]] |= {
            "text": primary.number(line, row),
            "reach": primary.interval(line, row),
            "share": line.badness(row["score"]),
            "baseline": line.badness(row["baseline"]),
            "note": note,
            "doubt": row["doubt"],
        }
    variants, models = dict.fromkeys(asked.variant), dict.fromkeys(asked.model)
    return _html("glance", headings, list(variants), list(models), cells, notes)


def _files(name: str, kinds: Mapping[str, str], folder: Path | None) -> list[tuple[str, str]]:
    """Return the paths of saved files, relative to the notebook, and their kinds."""
    if not folder:
        return []
    place = Path(os.path.relpath(folder / _file_name(name))).as_posix()
    files = {f"{place}.{kind}": text for kind, text in kinds.items()}
    return [(file, text) for file, text in files.items() if Path(file).is_file()]


def _html(macro: str, *values: Any) -> str:
    return str(getattr(_macros(), macro)(*values))


@cache
def _macros() -> Any:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined
    )
    environment.filters["visible"] = lambda text: Markup(as_html(text))
    environment.globals.update(plain=PLAIN, column=column)
    return environment.get_template("cells.html.j2").module


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.-]+", "_", name)
