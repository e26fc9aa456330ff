"""Look at single answers: a table to filter and sort, and one item with all its requests.

    answers = Answers(opened(["reports/mine/runs/*/cbbq"]))
    table(answers, category="gender", verdict="stereotyped", contains="护士")  # in code
    table(answers, model="m", verdict="stereotyped", models_differ=True)      # m is, another not
    item(answers, "gender:ambiguous:17")
    Browser(answers)                                        # the same by clicking, in JupyterLab

The frame stays in the kernel and one page of rows is shown, so a hundred thousand answers are as
fast as a hundred: grids such as itables carry their rows into the page, and ipydatagrid shows
nothing without a kernel. Replies are data: all is escaped, and invisible characters are named.
"""

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import pandas as pd
from rich.cells import cell_len, set_cell_size

from bench.benchmarks import module
from bench.core.cells import rounded
from bench.core.errors import BadInput, expected
from bench.core.numbers import decimals
from bench.core.text import PLAIN, as_html, column, shortened, truncate
from bench.figures.style import label
from bench.metrics.headline import task_words
from bench.metrics.influence import influence
from bench.run.results import Run, all_items, labels
from bench.tasks import VERDICTS
from bench.tasks.request import of_judge

# Answers per page; characters of a text in a cell, and where an item is shown.
PAGE, BRIEF, SHOWN = 25, 80, 20_000
# An item of more requests than these has them folded.
UNFOLDED = 3
# Filters by exact value; each is a column.
FILTERS = ("model", "benchmark", "category", "task", "verdict")
ASKED = ["benchmark", "task", "item_id", "request", "repeat"]
COLUMNS = [*FILTERS, "item_id", "request", "repeat", "question", "valid", "parsed", "response"]
COLUMNS += ["error"]
READ = [*ASKED, "category", "prompt", "response", "logprobs", "parsed", "valid", "error", "seconds"]
READ += ["verdict"]
LENGTH = "length"
SORTS = ("item_id", *FILTERS, "request", "parsed", LENGTH, "seconds")
TEXT = (
    "white-space: pre-wrap; overflow-wrap: anywhere; max-height: 18em; overflow: auto; margin: 0; "
    "text-align: left"
)
# As wide as the page, so that widgets next to it are not pushed out of sight.
BOX = "overflow: auto; contain: inline-size"
# Chinese can be broken at every character, so columns of texts need a least width.
WRAPPED = "; min-width: 6em; white-space: normal"
WIDE = "; min-width: 22em; white-space: normal"
CELL = "text-align: left; vertical-align: top; padding: 0.2em 0.8em 0.2em 0"
# Columns of the list of answers, and the most letters of each; a Chinese character is as wide as
# two.
WIDTHS = {"model": 24, "verdict": 16, "item": 36, "reply": 16, "question": 120}
# Looks of that list: columns need letters of one width.
LIST = "answers-to-click"
FONT = (
    f"<style>.{LIST} select, .{LIST} pre {{ font-family: var(--jp-code-font-family, monospace); "
    "font-size: 12px; margin: 0 }}</style>"
)
VALIDITY: dict[str, bool | None] = {"all": None, "readable": True, "not readable": False}


@dataclass(frozen=True)
class View:
    """Selected answers as a frame, and as a notebook shows them."""

    frame: pd.DataFrame
    page: str = field(repr=False)

    def _repr_html_(self) -> str:
        return self.page


def most_influential(runs: Sequence[Run], top: int = 5) -> pd.DataFrame:
    """List the scenes, instances or occupations without which each run's scores change most."""
    parts = []
    for run, name in zip(runs, labels(runs), strict=True):
        part = influence(run.replies, run.items, run.benchmark, str(run.about["preset"]), top)
        part.insert(0, "benchmark", run.benchmark)
        part.insert(1, "model", name)
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


class Answers:
    """Hold the answers of several runs in one frame, and their items."""

    def __init__(self, runs: Sequence[Run]) -> None:
        if not runs:
            raise BadInput("no run is opened, so there is nothing to look at")
        places = [(name, run.benchmark) for name, run in zip(labels(runs), runs, strict=True)]
        # A model that has two runs of a benchmark is named with their folders.
        near = [(name, run.folder.name) for (name, _code), run in zip(places, runs, strict=True)]
        parts = []
        # Repeats and models were asked the same, so that each text is kept once. Comparing a few
        # codes is quicker than as many names.
        known = {name: pd.Index([], dtype=str) for name in (*FILTERS, "prompt", "question")}
        for place, folders, run in zip(places, near, runs, strict=True):
            folder = run.folder.name
            if near.count(folders) > 1:
                folder = f"{run.folder.parent.name}/{folder}"
            name = place[0] if places.count(place) == 1 else f"{place[0]} ({folder})"
            part = _with_questions(run.answers()[READ]).assign(model=name)
            for text in known:
                more = pd.Index(part[text].unique()).difference(known[text], sort=False)
                if len(more):  # else each part would keep a copy of its own
                    known[text] = known[text].append(more)
                part[text] = pd.Categorical(part[text], known[text])
            parts.append(part)
        for part, text in product(parts, known):
            part[text] = part[text].cat.set_categories(known[text])
        self.rows = pd.concat(parts, ignore_index=True)
        # Requests in the order in which they were asked first, and those with several verdicts.
        self.rows["number"] = self.rows.groupby(ASKED, sort=False, observed=True).ngroup()
        judged = self.rows[self.rows.verdict != ""].groupby("number").verdict.nunique()
        self.rows["differs"] = self.rows.number.isin(judged.index[judged > 1])
        by_benchmark: dict[str, list[Run]] = {}
        for run in runs:
            by_benchmark.setdefault(run.benchmark, []).append(run)
        self.items = [
            (name, all_items(own).set_index("item_id", drop=False))
            for name, own in by_benchmark.items()
        ]

    def values(self, name: str) -> list[str]:
        """Return the values of one of `FILTERS`, in the order of the runs."""
        return list(filter(None, self.rows[name].cat.categories))

    def select(
        self,
        *,
        valid: bool | None = None,
        models_differ: bool = False,
        contains: str = "",
        sort: str = "",
        descending: bool = False,
        **filters: str,
    ) -> pd.DataFrame:
        """Select the rows that meet all conditions, in the order of the requests or sorted.

        Args:
            valid: only answers that could be read, or only those that could not; default: all.
            models_differ: only requests whose answers have different verdicts, by request.
            contains: text in the item's name, prompt, reply or error, in upper or lower case.
            sort: one of `SORTS`; `length` is that of the reply in characters.
            filters: values of `FILTERS`; "" for all.

        Raises:
            BadInput: a value that no opened run has, another `sort`, or an unknown filter.
        """
        keep = pd.Series(True, index=self.rows.index)
        for name, value in filters.items():
            if name not in FILTERS:
                raise BadInput(expected(name, FILTERS, "filter"))
            # A verdict that no answer got is no mistake.
            allowed = VERDICTS if name == "verdict" else self.values(name)
            if value and value not in allowed:
                raise BadInput(expected(value, allowed, name))
            if value:
                keep &= self.rows[name] == value
        if valid is not None:
            keep &= self.rows.valid == valid
        if models_differ:
            keep &= self.rows.differs
        if sort and sort not in SORTS:
            raise BadInput(expected(sort, SORTS, "column to sort by"))
        rows = self.rows[keep]
        if contains:
            matches = pd.Series(False, index=rows.index)
            for name in ("item_id", "response", "error", "prompt"):
                matches |= rows[name].str.contains(contains, case=False, regex=False, na=False)
            rows = rows[matches]
        if not sort:
            return rows.sort_values("number", kind="stable") if models_differ else rows
        by = rows.response.str.len() if sort == LENGTH else rows[sort]
        return rows.loc[by.sort_values(ascending=not descending, kind="stable").index]

    def fields(self, benchmark: str, item_id: str) -> dict[str, Any]:
        """Return the fields of an item."""
        for name, items in self.items:
            if name == benchmark and item_id in items.index:
                return dict(items.loc[item_id])
        return {}


def findings(answers: Answers) -> list[str]:
    """Say how many answers there are, how many could be read, and how often models differ."""
    rows = answers.rows
    judged = rows[rows.verdict != ""]
    return [
        (
            f"{len(rows):,} answers, of which {decimals(100 * rows.valid.mean(), 1)}% could be "
            "read; on "
            f"{judged.number[judged.differs].nunique():,} of {judged.number.nunique():,} "
            "questions whose answers have a verdict, models differ in it."
        )
    ]


def readable(runs: Sequence[Run]) -> pd.DataFrame:
    """Return the share of readable answers: a row per run's folder, a column per model."""
    shares = pd.DataFrame(
        [
            (run.folder.name, name, run.records.valid.mean())
            for run, name in zip(runs, labels(runs), strict=True)
        ],
        columns=["run", "model", "share"],
    )
    wide = shares.pivot_table("share", "run", "model", sort=False)
    return wide.rename_axis(columns=None).reset_index()


def table(
    runs: Sequence[Run] | Answers, *, start: int = 0, rows: int = PAGE, **filters: Any
) -> View:
    """Show a page of the answers that meet the filters of `Answers.select`.

    Args:
        start: the first row to show, from 0.
        rows: of a page.
    """
    frame = _opened(runs).select(**filters)[COLUMNS]
    return View(frame, _table_page(frame, start, rows))


def item(runs: Sequence[Run] | Answers, item_id: str) -> View:
    """Show one item: its fields, and every request with each model's reply and how it was read.

    Raises:
        BadInput: no opened run has it.
    """
    answers = _opened(runs)
    rows = answers.rows[answers.rows.item_id == item_id]
    if rows.empty:
        raise BadInput(
            f"item {item_id!r}: no opened run has an answer about it; see column item_id of the "
            "table"
        )
    parts = [f"<h4 style='margin: 0.6em 0'>{as_html(item_id)}</h4>"]
    for benchmark, own in rows.groupby("benchmark", sort=False, observed=True):
        body = "".join(
            f"<tr>{_cell(as_html(name))}{_cell(_long(_listed(value)))}</tr>"
            for name, value in answers.fields(str(benchmark), item_id).items()
        )
        heading = f"What the data say ({as_html(benchmark)})"
        fields = _table("item", ("field", "value"), body)
        parts.append(f"<details><summary>{heading}</summary>{fields}</details>")
        models = list(dict.fromkeys(own.model))
        named = " · ".join(map(as_html, models))
        parts.append(f"<p>{f'How answers were read: {named}'}</p>")
        requests = own.groupby(["task", "request"], sort=False, observed=True)
        unfold = requests.ngroups <= UNFOLDED
        parts += [_request(str(benchmark), part, models, unfold) for _key, part in requests]
    return View(rows, f"<div class='item {PLAIN}'>{''.join(parts)}</div>")


def _with_questions(rows: pd.DataFrame) -> pd.DataFrame:
    """Add the column `question`: the prompt, without a first line that all of the task share."""
    asked = rows[["task", "prompt"]].drop_duplicates()
    lines = asked.prompt.str.partition("\n")
    is_shared = lines[0].groupby(asked.task).transform("nunique") == 1
    asked["question"] = asked.prompt.where(~is_shared | (lines[2] == ""), lines[2])
    return rows.merge(asked, on=["task", "prompt"], how="left")


def _opened(runs: Sequence[Run] | Answers) -> Answers:
    return runs if isinstance(runs, Answers) else Answers(runs)


def _table_page(rows: pd.DataFrame, start: int = 0, count: int = PAGE) -> str:
    start = max(0, min(start, len(rows) - 1) // count * count)
    page = rows.iloc[start : start + count]
    if page.empty:
        return f"<p>{_counted(page, start, 0)}</p>"
    names = [*map(column, ("model", "verdict", "category", "task"))]
    names += ["item", "question", "reply", "read as"]
    styles = ["", "", "", "", "", WIDE, WRAPPED, ""]
    body = ""
    for row in page.itertuples():
        category = label(str(row.benchmark), str(row.category))
        cells = [row.model, _verdict(row), category, task_words(str(row.task)), _name(row)]
        cells += [row.question, _reply(row), rounded(str(row.parsed or ""))]
        body += f"<tr>{''.join(map(_cell, map(_brief, cells), styles))}</tr>"
    counted = _counted(page, start, len(rows))
    return f"<p>{counted}</p>{_table(counted, names, body)}"


def _counted(page: pd.DataFrame, start: int, n: int) -> str:
    """Say which answers are on a page."""
    if page.empty:
        return "No answer fits."
    return f"Answers {start + 1:,} to {start + len(page):,} of {n:,}."


def _name(row: Any) -> str:
    """Name an item, and the request where its name says something."""
    request = _of_repeat(row.request, row.repeat) if row.repeat else row.request
    return str(row.item_id) if request in ("answer", "label") else f"{row.item_id}, {request}"


def _lines(rows: pd.DataFrame) -> list[str]:
    """Write rows as lines with columns, for a list in which one is chosen; headings first."""
    table: list[tuple[Any, ...]] = [
        (column("model"), column("verdict"), "item", "reply", "question"),
        *(
            (row.model, _verdict(row), _name(row), _reply(row), row.question)
            for row in rows.itertuples()
        ),
    ]
    most = WIDTHS.values()
    texts = [list(map(truncate, line, most)) for line in table]
    widths = [
        min(limit, max(map(cell_len, cells)))
        for cells, limit in zip(zip(*texts, strict=True), most, strict=True)
    ]
    lines = ["  ".join(map(set_cell_size, line, widths)).rstrip() for line in texts]
    return [line.replace(" ", "\u00a0") for line in lines]  # a browser would join spaces


def _reply(row: Any) -> str:
    return rounded(str(row.error or row.response or ""))


def _verdict(row: Any) -> str:
    """Return the verdict on an answer, or whether there is one."""
    return str(row.verdict) if row.verdict or row.valid else "not readable"


def _request(benchmark: str, rows: pd.DataFrame, models: Sequence[str], unfold: bool) -> str:
    """Return one request of an item: its prompts, and a column per model."""
    names = [as_html(rows.task.iloc[0]), as_html(rows.request.iloc[0])]
    if of_judge(rows.request.iloc[0]):
        names.append("asked of the judge")
    elif unit := getattr(module("tasks", benchmark), "UNITS", {}).get(rows.task.iloc[0]):
        names.append(unit)
    not_asked = f"<em>{'not asked'}</em>"
    readings = " · ".join(
        " / ".join(_value(row, _brief) for row in rows[rows.model == model].itertuples())
        or not_asked
        for model in models
    )
    prompts = rows.drop_duplicates("prompt")
    asked = ""
    for row in prompts.itertuples():
        text = "Asked:"
        if len(prompts) > 1:
            text = f"Asked {as_html(row.model)}:"
        asked += f"<p style='margin: 0.4em 0 0'>{text}</p>{_long(row.prompt)}"
    body, repeats = "", sorted(rows.repeat.unique())
    for repeat in repeats:
        own = rows[rows.repeat == repeat].drop_duplicates("model").set_index("model")
        replies = [own.loc[model] if model in own.index else None for model in models]
        lines = {
            "answered": ["" if row is None else _long(rounded(row.response)) for row in replies],
            "read as": [not_asked if row is None else _value(row, _long) for row in replies],
            column("verdict"): ["" if row is None else str(row.verdict) for row in replies],
            "log-probabilities": [
                "" if row is None else _logs(benchmark, row.logprobs) for row in replies
            ],
        }
        for name, cells in lines.items():
            if any(cells):
                heading = name if len(repeats) == 1 else _of_repeat(name, repeat)
                body += f"<tr>{_cell(heading)}{''.join(map(_cell, cells))}</tr>"
    return (
        f"<details{' open' if unfold else ''} style='margin: 0.3em 0'><summary>"
        f"<strong>{', '.join(names)}:</strong> {readings}</summary>"
        f"{asked}{_table(', '.join(names), ('', *models), body)}</details>"
    )


def _of_repeat(name: object, repeat: object) -> str:
    return f"{name}, repeat {repeat}"


def _value(row: Any, show: Callable[[object], str]) -> str:
    """Return the parsed value of a reply, or why there is none."""
    if row.valid:
        return show(rounded(str(row.parsed)))
    reason = "not readable"
    if row.error:
        reason = f"no answer came: {as_html(row.error)}"
    return f"<em>{reason}</em>"


def _logs(benchmark: str, values: Any) -> str:
    """Return the log-probability of each option, named as the benchmark's tasks name them."""
    if values is None or len(values) == 0:
        return ""
    room = module("tasks", benchmark)
    known = next((getattr(room, name) for name in ("LABELS", "LETTERS") if hasattr(room, name)), ())
    names = known if len(known) == len(values) else range(1, len(values) + 1)
    return "<br>".join(
        as_html(f"{name}: {decimals(value, 3)} ({decimals(100 * math.exp(value), 1)}%)")
        for name, value in zip(names, values, strict=True)
    )


def _brief(value: object) -> str:
    return html.escape(truncate(value, BRIEF))


def _long(value: object) -> str:
    return f"<pre style='{TEXT}'>{html.escape(shortened(value, SHOWN))}</pre>"


def _listed(value: Any) -> str:
    if isinstance(value, str) or not hasattr(value, "__len__"):
        return str(value)
    return "\n".join(map(str, value))


def _cell(inner: str, more: str = "") -> str:
    return f"<td style='{CELL}{more}'>{inner}</td>"


def _table(title: str, names: Sequence[str], body: str) -> str:
    """Put a table in a box that scrolls, so the keyboard has to reach it."""
    head = "".join(f"<th scope='col' style='{CELL}'>{as_html(name)}</th>" for name in names)
    return (
        f"<div class='table {PLAIN}' role='region' tabindex='0' aria-label='{as_html(title)}' "
        f"style='{BOX}'><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


class Browser:
    """Filter and sort a table of answers, and open one item, by widgets in JupyterLab."""

    def __init__(self, runs: Sequence[Run] | Answers) -> None:
        import ipywidgets as widgets  # type: ignore[import-untyped]  # slow to load

        self.answers = _opened(runs)
        self.rows = pd.DataFrame()

        self.filters = {
            name: widgets.Dropdown(
                options=[("all", ""), *zip(values, values, strict=True)],
                description=column(name),
            )
            for name in FILTERS
            for values in [self.answers.values(name)]
        }
        self.validity = widgets.Dropdown(
            options=[(name, name) for name in VALIDITY], description="answers"
        )
        self.contains = widgets.Text(description="contains", continuous_update=False)
        self.sort = widgets.Dropdown(
            options=[("as asked", ""), *zip(SORTS, SORTS, strict=True)],
            description="sorted by",
        )
        self.descending = widgets.Checkbox(description="from the end", indent=False)
        self.page = widgets.BoundedIntText(value=1, min=1, max=1, description="page")
        self.models_differ = widgets.Checkbox(description="models differ", indent=False)
        self.head, self.counted, self.shown = (widgets.HTML() for _k in range(3))
        full = widgets.Layout(width="auto")
        self.answer = widgets.Select(rows=12, layout=full)
        choices = [*self.filters.values(), self.validity, self.models_differ, self.contains]
        choices += [self.sort, self.descending]
        for widget in choices:
            widget.observe(self._filter, "value")
        self.page.observe(self._turn, "value")
        self.answer.observe(self._open, "index")
        row = widgets.Layout(flex_flow="row wrap")
        controls = widgets.HBox([*choices, self.page], layout=row)
        self.box = widgets.VBox([controls, self.counted, self.head, self.answer, self.shown])
        self.box.add_class(LIST)
        self._filter()

    def _repr_mimebundle_(self, **_unused: Any) -> dict[str, Any]:
        """Return the widgets, and for pages without a kernel what they show at first."""
        shown: dict[str, Any] = self.box._repr_mimebundle_()
        text = (
            "In JupyterLab there are widgets here to filter, sort and open items. A saved page "
            "shows the first page of the table."
        )
        plain = f"a table of {len(self.answers.rows):,} answers"
        page = f"<p>{text}</p>{_table_page(self.rows)}"
        return {**shown, "text/html": page, "text/plain": plain}

    def _filter(self, _change: object = None) -> None:
        self.rows = self.answers.select(
            valid=VALIDITY[self.validity.value],
            models_differ=self.models_differ.value,
            contains=self.contains.value,
            sort=self.sort.value,
            descending=self.descending.value,
            **{name: widget.value for name, widget in self.filters.items()},
        )
        self.page.max = max(1, -(-len(self.rows) // PAGE))
        if self.page.value == 1:
            self._turn()
        else:
            self.page.value = 1

    def _turn(self, _change: object = None) -> None:
        start = PAGE * (self.page.value - 1)
        page = self.rows.iloc[start : start + PAGE]
        head, *lines = _lines(page)
        self.counted.value = f"<p>{_counted(page, start, len(self.rows))}</p>"
        self.head.value = f"{FONT}<pre style='padding-left: 4px'>{html.escape(head)}</pre>"
        self.answer.options = [(line, start + k) for k, line in enumerate(lines)]
        self.answer.index = 0 if lines else None
        self._open()

    def _open(self, _change: object = None) -> None:
        chosen = self.answer.value
        name = None if chosen is None else self.rows.item_id.iloc[chosen]
        self.shown.value = item(self.answers, name).page if name else ""
