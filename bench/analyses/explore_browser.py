"""Show the widgets of `bench.analyses.explore`: filters, a table of answers, and one item."""

from collections.abc import Sequence
from typing import Any

import ipywidgets as widgets  # type: ignore[import-untyped]
import pandas as pd

from bench.analyses.explore import FILTERS, PAGE, SORTS, Answers, item_page, table_page
from bench.core.i18n import N_, _, column
from bench.run.results import Run

EVERY = N_("all")
# The names of the choices, and which answers they select.
VALIDITY: dict[str, bool | None] = {EVERY: None, N_("readable"): True, "not readable": False}
ASKED = N_("as asked")
NOTE = N_(
    "In JupyterLab there are widgets here to filter, sort and open items. A saved page shows the "
    "first page of the table."
)


class Browser:
    """Filter and sort a table of answers, and open one item.

    Attributes:
        filters: by column, the dropdowns of exact values.
        validity, contains, sort, descending, page, item: the other widgets.
        table, shown: the table and the item as HTML.
        rows: the selected answers.
    """

    def __init__(self, runs: Sequence[Run] | Answers) -> None:
        self.answers = runs if isinstance(runs, Answers) else Answers(runs)
        self.rows = pd.DataFrame()
        self.filters = {
            name: widgets.Dropdown(
                options=[
                    (_(EVERY), EVERY),
                    *((value, value) for value in self.answers.values(name)),
                ],
                description=column(name),
            )
            for name in FILTERS
        }
        self.validity = widgets.Dropdown(
            options=[(_(name), name) for name in VALIDITY], description=_("answers")
        )
        self.contains = widgets.Text(description=_("contains"), continuous_update=False)
        self.sort = widgets.Dropdown(
            options=[(_(ASKED), ASKED), *((name, name) for name in SORTS)],
            description=_("sorted by"),
        )
        self.descending = widgets.Checkbox(description=_("from the end"), indent=False)
        self.page = widgets.BoundedIntText(value=1, min=1, max=1, description=_("page"))
        self.item = widgets.Dropdown(description=_("item"))
        self.table, self.shown = widgets.HTML(), widgets.HTML()
        choices = [*self.filters.values(), self.validity, self.contains, self.sort, self.descending]
        for widget in choices:
            widget.observe(self._filter, "value")
        self.page.observe(self._turn, "value")
        self.item.observe(self._open, "value")
        row = widgets.Layout(flex_flow="row wrap")
        self.box = widgets.VBox(
            [widgets.HBox([*choices, self.page], layout=row), self.table, self.item, self.shown]
        )
        self._filter()

    def _repr_mimebundle_(self, **_unused: Any) -> dict[str, Any]:
        """Return the widgets, and for pages without a kernel what they show at first."""
        shown: dict[str, Any] = self.box._repr_mimebundle_()
        plain = _("a table of {n} answers", n=f"{len(self.answers.rows):,}")
        return {**shown, "text/html": f"<p>{_(NOTE)}</p>{self.table.value}", "text/plain": plain}

    def _filter(self, _unused: object = None) -> None:
        chosen = {
            name: "" if menu.value == EVERY else menu.value for name, menu in self.filters.items()
        }
        self.rows = self.answers.select(
            **chosen,
            valid=VALIDITY[self.validity.value],
            contains=self.contains.value,
            sort="" if self.sort.value == ASKED else self.sort.value,
            descending=self.descending.value,
        )
        self.page.max = max(1, -(-len(self.rows) // PAGE))
        if self.page.value == 1:
            self._turn()
        else:
            self.page.value = 1

    def _turn(self, _unused: object = None) -> None:
        start = PAGE * (self.page.value - 1)
        self.table.value = table_page(self.rows, start)
        # Only those on the page: a list of all would be too long.
        self.item.options = list(dict.fromkeys(self.rows.item_id.iloc[start : start + PAGE]))
        self.item.value = next(iter(self.item.options), None)

    def _open(self, _unused: object = None) -> None:
        self.shown.value = item_page(self.answers, self.item.value) if self.item.value else ""
