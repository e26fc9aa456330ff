"""Looking at single answers without a restart of the kernel: one table to filter and sort, and one item with all that was
asked and answered, by all models side by side.

runs = opened(["reports/mine/runs/*/cbbq"])
explore.table(runs, category="gender", valid=False, contains="护士")      # works everywhere, without widgets too
explore.item(runs, "gender:ambiguous:17")
explore.browser(runs)                                                # the same to click through, in JupyterLab

The frame stays in the kernel and a page of rows is shown, so a hundred thousand answers are as quick as a hundred: that is
why this is no grid that carries its rows into the page (itables), or that shows nothing without a kernel (ipydatagrid).
What models said is data: every word is escaped, and characters that cannot be seen are named.
"""

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from bench.benchmarks import module
from bench.core import i18n
from bench.core.errors import BadInput, expected
from bench.core.text import PLAIN, as_html, shortened, truncate
from bench.metrics.influence import influence
from bench.run.results import Run, labels
from bench.tasks.request import of_judge

# Answers on a page of the table; characters of a reply in its cell, and of a text where an item is shown.
PAGE, BRIEF, SHOWN = 25, 80, 20_000
# An item of more requests than these has them folded.
UNFOLDED = 3
# Filters by exact value; each is a column.
FILTERS = ("model", "benchmark", "category", "task")
COLUMNS = (
    "model",
    "benchmark",
    "category",
    "task",
    "item_id",
    "request",
    "repeat",
    "valid",
    "parsed",
    "response",
    "error",
)
# By what the table can be sorted besides; computed where it is asked for.
LENGTH = "length"
SORTS = ("item_id", *FILTERS, "request", "parsed", LENGTH, "seconds")
TEXT = "white-space: pre-wrap; overflow-wrap: anywhere; max-height: 18em; overflow: auto; margin: 0; text-align: left"
# As wide as there is room, whatever it holds; a widget would else be pushed out of sight, where nothing scrolls.
BOX = "overflow: auto; contain: inline-size"
# Chinese can be broken at every character, so a last column that is pressed would be one character wide.
LAST = "min-width: 16em"
CELL = "text-align: left; vertical-align: top; padding: 0.2em 0.8em 0.2em 0"


@dataclass(frozen=True)
class View:
    """What was found: a frame to go on with, and how a notebook shows it."""

    frame: pd.DataFrame
    page: str = field(repr=False)

    def _repr_html_(self) -> str:
        return self.page


def most_influential(runs: Sequence[Run], top: int = 5) -> pd.DataFrame:
    """List the scenes, instances or occupations without which each run's scores change most.

    Returns:
        `benchmark` and `model`, and what `bench.metrics.influence.influence` has.
    """
    parts = []
    for run, name in zip(runs, labels(runs), strict=True):
        found = influence(run.records, run.items, run.benchmark, str(run.about["preset"]), top)
        found.insert(0, "benchmark", run.benchmark)
        found.insert(1, "model", name)
        parts.append(found)
    return pd.concat(parts, ignore_index=True)


class Answers:
    """The answers of several runs in one frame, and their items."""

    def __init__(self, runs: Sequence[Run]) -> None:
        if not runs:
            raise BadInput("no run is opened, so there is nothing to look at")
        parts = [
            run.records.assign(model=name) for run, name in zip(runs, _names(runs), strict=True)
        ]
        self.rows = pd.concat(parts, ignore_index=True)
        # Comparing a few codes is quicker than a hundred thousand names.
        kinds = {
            name: pd.CategoricalDtype(list(dict.fromkeys(self.rows[name]))) for name in FILTERS
        }
        self.rows = self.rows.astype(kinds)
        self.items = [(run.benchmark, run.items.set_index("item_id", drop=False)) for run in runs]

    def values(self, column: str) -> list[str]:
        """The values of one of `FILTERS`, in the order of the runs."""
        return list(self.rows[column].cat.categories)

    def found(
        self,
        *,
        model: str = "",
        benchmark: str = "",
        category: str = "",
        task: str = "",
        valid: bool | None = None,
        contains: str = "",
        sort: str = "",
        descending: bool = False,
    ) -> pd.DataFrame:
        """The rows of the records that fit all that is given, in the order in which they were asked, or sorted.

        Args:
            valid: only answers that could be read, or only those that could not; all if None.
            contains: text in the item's name, the prompt, the reply or the error; upper and lower case are one.
            sort: one of `SORTS`; `length` is the reply's in characters.

        Raises:
            BadInput: a value that no opened run has, or another `sort`.
        """
        keep = pd.Series(True, index=self.rows.index)
        for name, value in zip(FILTERS, (model, benchmark, category, task), strict=True):
            if value and value not in self.rows[name].cat.categories:
                raise BadInput(expected(value, self.values(name), name))
            if value:
                keep &= self.rows[name] == value
        if valid is not None:
            keep &= self.rows.valid == valid
        if sort and sort not in SORTS:
            raise BadInput(expected(sort, SORTS, "column to sort by"))
        # Text is looked for in what is left alone.
        rows = self.rows[keep]
        if contains:
            here = pd.Series(False, index=rows.index)
            for name in ("item_id", "response", "error", "prompt"):
                here |= rows[name].str.contains(contains, case=False, regex=False, na=False)
            rows = rows[here]
        if not sort:
            return rows
        by = rows.response.str.len() if sort == LENGTH else rows[sort]
        return rows.loc[by.sort_values(ascending=not descending, kind="stable").index]

    def item(self, item_id: str) -> pd.DataFrame:
        """All rows of an item, of all models, in the order in which they were asked.

        Raises:
            BadInput: no opened run has it.
        """
        rows = self.rows[self.rows.item_id == item_id]
        if rows.empty:
            raise BadInput(
                f"item {item_id!r}: no opened run has an answer about it; the table names those that there are, in its column item_id"
            )
        return rows

    def told(self, benchmark: str, item_id: str) -> dict[str, Any]:
        """What the data say of an item."""
        for name, items in self.items:
            if name == benchmark and item_id in items.index:
                return dict(items.loc[item_id])
        return {}


def table(runs: Sequence[Run] | Answers, *, start: int = 0, **filters: Any) -> View:
    """The answers that fit, a page of them shown; see `Answers.found` for the filters.

    Args:
        start: the first row that is shown, from 0.
    """
    rows = _opened(runs).found(**filters)[list(COLUMNS)]
    return View(rows, table_page(rows, start))


def item(runs: Sequence[Run] | Answers, item_id: str) -> View:
    """One item: what the data say, and every request with what each model was asked, said, and was read as."""
    answers = _opened(runs)
    rows = answers.item(item_id)
    return View(rows, item_page(answers, item_id))


def browser(runs: Sequence[Run] | Answers) -> Any:
    """The widgets to do the same by hand: a `bench.analyses.explore_browser.Browser`, which JupyterLab shows."""
    from bench.analyses.explore_browser import Browser  # slow to load, and not everyone clicks

    return Browser(runs)


def table_page(rows: pd.DataFrame, start: int = 0) -> str:
    """A page of a table of answers as HTML."""
    start = max(0, min(start, len(rows) - 1) // PAGE * PAGE)
    some = rows.iloc[start : start + PAGE]
    if some.empty:
        return f"<p>{i18n._('No answer fits.')}</p>"
    names = (
        *map(i18n.column, ("model", "category", "task")),
        i18n._("item"),
        i18n._("request"),
        i18n._("read as"),
        i18n._("reply"),
    )
    unread = f"<em>{i18n._('not readable')}</em>"
    lines = [
        [
            row.model,
            row.category,
            row.task,
            row.item_id,
            _repeated(row.request, row.repeat),
            row.parsed if row.valid else None,
            row.error or row.response,
        ]
        for row in some.itertuples()
    ]
    told = i18n._(
        "Answers {first} to {last} of {all}.",
        first=f"{start + 1:,}",
        last=f"{start + len(some):,}",
        all=f"{len(rows):,}",
    )
    body = "".join(
        f"<tr>{''.join(_cell(_brief(value) if value is not None else unread) for value in line[:-1])}"
        f"{_cell(_brief(line[-1]), LAST)}</tr>"
        for line in lines
    )
    return f"<p>{told}</p>{_table(names, body)}"


def item_page(answers: Answers, item_id: str) -> str:
    """One item as HTML: a part a request, a column a model."""
    rows = answers.item(item_id)
    parts = [f"<h4 style='margin: 0.6em 0'>{as_html(item_id)}</h4>"]
    for benchmark in rows.benchmark.unique():
        here = rows[rows.benchmark == benchmark]
        told = answers.told(benchmark, item_id)
        body = "".join(
            f"<tr>{_cell(as_html(name))}{_cell(_long(_listed(value)))}</tr>"
            for name, value in told.items()
        )
        parts.append(
            f"<details><summary>{i18n._('What the data say ({benchmark})', benchmark=as_html(benchmark))}</summary>"
            f"{_table((i18n._('field'), i18n._('value')), body)}</details>"
        )
        models = list(dict.fromkeys(here.model))
        parts.append(
            f"<p>{i18n._('How answers were read: {models}', models=' · '.join(map(as_html, models)))}</p>"
        )
        requests = here.groupby(["task", "request"], sort=False, observed=True)
        parts += [
            _request(benchmark, some, models, requests.ngroups <= UNFOLDED)
            for _unused, some in requests
        ]
    return f"<div class='item {PLAIN}'>{''.join(parts)}</div>"


def _request(benchmark: str, rows: pd.DataFrame, models: Sequence[str], unfold: bool) -> str:
    """One request of an item: the prompt, or those of each model where they differ, and a column a model."""
    first = rows.iloc[0]
    head = i18n._(", ").join(
        filter(
            None,
            (
                as_html(first.task),
                as_html(first.request),
                i18n._("asked of the judge") if of_judge(first.request) else "",
            ),
        )
    )
    said = " · ".join(_said(rows[rows.model == model]) for model in models)
    prompts = rows.drop_duplicates("prompt")
    asked = "".join(
        f"<p style='margin: 0.4em 0 0'>{i18n._('Asked:') if len(prompts) == 1 else i18n._('Asked {model}:', model=as_html(row.model))}"
        f"</p>{_long(row.prompt)}"
        for row in prompts.itertuples()
    )
    body, repeats = "", sorted(rows.repeat.unique())
    for repeat in repeats:
        some = rows[rows.repeat == repeat].drop_duplicates("model").set_index("model")
        answered, read, logs = i18n._("answered"), i18n._("read as"), i18n._("log-probabilities")
        lines: dict[str, list[str]] = {answered: [], read: [], logs: []}
        for model in models:
            one = some.loc[model] if model in some.index else None
            lines[answered].append("" if one is None else _long(one.response))
            lines[read].append(_not_asked() if one is None else _read(one))
            lines[logs].append("" if one is None else _logs(benchmark, one.logprobs))
        for name, cells in lines.items():
            if any(cells):
                named = name if len(repeats) == 1 else _of_repeat(name, repeat)
                body += f"<tr>{_cell(named)}{''.join(map(_cell, cells))}</tr>"
    return (
        f"<details{' open' if unfold else ''} style='margin: 0.3em 0'><summary><strong>{head}:</strong> {said}</summary>"
        f"{asked}{_table(('', *models), body)}</details>"
    )


def _repeated(name: object, repeat: object) -> str:
    return _of_repeat(name, repeat) if repeat else str(name)


def _of_repeat(name: object, repeat: object) -> str:
    return i18n._("{name}, repeat {repeat}", name=name, repeat=repeat)


def _not_asked() -> str:
    return f"<em>{i18n._('not asked')}</em>"


def _said(rows: pd.DataFrame) -> str:
    """How one model's answers to a request were read, repeat by repeat."""
    return " / ".join(map(_glance, rows.itertuples())) or _not_asked()


def _glance(row: Any) -> str:
    return _brief(row.parsed) if row.valid else _problem(row)


def _problem(row: Any) -> str:
    """Why there is no parsed value."""
    said = (
        i18n._("no answer came: {why}", why=as_html(row.error))
        if row.error
        else i18n._("not readable")
    )
    return f"<em>{said}</em>"


def _read(row: Any) -> str:
    return _long(row.parsed) if row.valid else _problem(row)


def _logs(benchmark: str, values: Any) -> str:
    """Each option's log-probability, under its name where the benchmark's tasks name as many."""
    if values is None or len(values) == 0:
        return ""
    room = module("tasks", benchmark)
    known = next((getattr(room, name) for name in ("LABELS", "LETTERS") if hasattr(room, name)), ())
    names = known if len(known) == len(values) else range(1, len(values) + 1)
    shown = (
        f"{name}: {value:.3f} ({math.exp(value):.1%})"
        for name, value in zip(names, values, strict=True)
    )
    return "<br>".join(as_html(one) for one in shown)


def _names(runs: Sequence[Run]) -> list[str]:
    """A name a run: the model's, with the folder's where a model has two runs of a benchmark."""
    names = labels(runs)
    places = [(name, run.benchmark) for name, run in zip(names, runs, strict=True)]
    return [
        name if places.count(place) == 1 else f"{name} ({run.folder.parent.name}/{run.folder.name})"
        for name, place, run in zip(names, places, runs, strict=True)
    ]


def _opened(runs: Sequence[Run] | Answers) -> Answers:
    return runs if isinstance(runs, Answers) else Answers(runs)


def _brief(value: object) -> str:
    return html.escape(truncate(value, BRIEF))


def _long(value: object) -> str:
    return f"<pre style='{TEXT}'>{html.escape(shortened(value, SHOWN))}</pre>"


def _listed(value: Any) -> str:
    """A field of an item: lists as their parts."""
    if isinstance(value, str) or not hasattr(value, "__len__"):
        return str(value)
    return "\n".join(map(str, value))


def _cell(inner: str, more: str = "") -> str:
    return (
        f"<td style='{CELL}; {more}'>{inner}</td>" if more else f"<td style='{CELL}'>{inner}</td>"
    )


def _table(names: Sequence[str], body: str) -> str:
    head = "".join(f"<th scope='col' style='{CELL}'>{as_html(name)}</th>" for name in names)
    return f"<div class='table {PLAIN}' style='{BOX}'><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
