"""How the command prints results: as a table for a person, or as CSV, JSON or LaTeX for a program."""

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.benchmarks import module
from bench.core.errors import BadInput
from bench.core.progress import say
from bench.core.text import as_json, reveal_invisible
from bench.data.dataset import own_prompts

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from bench.data.fetch import WrittenFile


def check(benchmark: str, found: "pd.DataFrame", format: str) -> None:
    """Print a report of odd rows.

    Raises:
        BadInput: some of them are refused.
    """
    if format == "csv":
        from bench.core.export import to_csv

        _out(to_csv(found))
    elif format == "json":
        _json(found.to_dict("records"))
    else:
        for row in found.to_dict("records"):
            place = ", ".join(
                filter(None, (row["file"], row["row"] and f"row {row['row']}", row["column"]))
            )
            value = f": {row['value']}" if row["value"] else ""
            print(
                reveal_invisible(f"{row['kind']:8} {place or 'the folder'}: {row['what']}{value}")
            )
    refused = int((found.kind == "refused").sum())
    if refused:
        settings = module("data", benchmark).TOLERANT
        way_out = "".join(
            f"; `--set {name}={value}` runs without them" for name, value in settings.items()
        )
        raise BadInput(f"{refused} findings are of rows that are refused{way_out}")


def data(found: list[dict[str, Any]], format: str) -> None:
    """Print what is known of the installed data sets, one after the other."""
    if format == "json":
        _json(found)
        return
    for entry in found:
        title, n = module("data", entry["benchmark"]).TITLE, len(entry["categories"])
        print(f"{title}: {entry['items']:,} items in {n} {'category' if n == 1 else 'categories'}")
        for key, value in (
            ("found", f"{entry['found']}: {entry['folder']}"),
            ("version", f"{entry['name']}, {entry['version']}, sha256 {entry['sha256'][:12]}"),
            ("licence", entry["licence"]),
            ("wording", _own_wording(entry["benchmark"], Path(entry["folder"]))),
            (
                "items",
                ", ".join(f"{name} {count:,}" for name, count in entry["categories"].items()),
            ),
            ("note", entry["note"]),
            *(
                (one["state"], f"{one['where']}: {one['rows']:,} rows, {one['what']}")
                for one in entry["touched"]
            ),
        ):
            if value:
                print(reveal_invisible(f"  {key:8} {value}"))


def _own_wording(benchmark: str, folder: Path) -> str:
    """The wording that a data set brings, "" where it brings none."""
    from bench.tasks import prompts

    found = own_prompts(folder)
    return f"{prompts.load(benchmark, None, folder).label}: {found}" if found else ""


def scores(runs: list[Any], preset: str | None, format: str) -> None:
    """Print the score tables of `runs`; what a reader has to know first goes to standard error."""
    from bench.core.export import to_csv, to_latex
    from bench.metrics.headline import warnings
    from bench.run import table

    for text in warnings([run.about for run in runs]):
        say(f"note: {text}")
    if format == "json":
        found = [
            {
                "run": {"folder": str(run.folder), **run.about},
                "scores": _records(run.scores_beside(preset)),
            }
            for run in runs
        ]
        _json(found[0] if len(found) == 1 else found)
    elif format == "csv":
        _out(to_csv(table(runs, preset)))
    elif format == "latex":
        _out(to_latex(table(runs, preset)))
    else:
        for run in runs:
            _print_table(run, run.scores_beside(preset))


def _records(scores: "pd.DataFrame") -> list[dict[str, Any]]:
    """Rows with null for what is undefined or without end: JSON has no NaN and no infinity."""
    rows = scores.to_dict("records")
    return [
        {
            str(k): None if isinstance(v, float) and not math.isfinite(v) else v
            for k, v in row.items()
        }
        for row in rows
    ]


def _json(found: Any) -> None:
    """Print JSON; what a terminal would act on is written as `\\u` and a number, which is the same to a program."""
    print(as_json(json.dumps(found, ensure_ascii=False, indent=2, allow_nan=False)))


def _out(text: str) -> None:
    """Print a file's content: as it is for a file or a pipe, visible on a terminal."""
    print(reveal_invisible(text) if sys.stdout.isatty() else text, end="")


def _print_table(run: Any, scores: "pd.DataFrame") -> None:
    from rich.table import Table

    console = _console()
    about = run.about
    console.print(
        f"[bold]{_safe(run.label)}[/] on {about['benchmark']}: {_safe(about['data']['name'])}, {_safe(about['data']['version'])}; wording {_safe(about['asked']['prompts'])}"
    )
    told = {headline.metric for headline in module("metrics", run.benchmark).HEADLINES}
    # All numbers of a category are in the other formats; here those that are looked at first.
    scores = scores[(scores.category == "all") | scores.metric.isin(told)]
    for preset, some in scores.groupby("preset", sort=False):
        title = f"preset {preset}" + (
            "" if preset == scores.preset.iloc[0] else ": where the released code's number differs"
        )
        shown = Table(title=title, title_justify="left", show_edge=False, pad_edge=False)
        for name in ("category", "task", "metric"):
            shown.add_column(name)
        bounded = some.bound_low.notna().any()
        columns = ["score", "95 % interval", "n", "valid", *(["if all were"] if bounded else [])]
        for name in (*columns, "baseline"):
            shown.add_column(name, justify="right")
        shown.add_column("note", overflow="fold")
        above = ""
        for row in some.to_dict("records"):
            # What is wrong with a model as a whole is a note of many rows in sequence.
            note, above = (
                "as above" if row["note"] and row["note"] == above else row["note"],
                row["note"],
            )
            low, high, baseline = row["ci_low"], row["ci_high"], row["baseline"]
            shown.add_row(
                *(_safe(row[name]) for name in ("category", "task", "metric")),
                _told(row["score"]),
                _between(low, high),
                f"{row['n']:,}",
                "" if math.isnan(row["valid_rate"]) else f"{row['valid_rate']:.0%}",
                *([_between(row["bound_low"], row["bound_high"])] if bounded else []),
                "" if math.isnan(baseline) else _told(baseline),
                _safe(note),
                style="bold" if row["category"] == "all" else "",
            )
        console.print(shown)
    console.print(f"records: {_safe(run.folder)}", soft_wrap=True)


def _console() -> "Console":
    """Give a console as wide as a terminal; for a file or a pipe wide enough for our tables."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 160, highlight=False)


def _safe(text: object) -> str:
    """A text in which neither rich nor a terminal finds anything to act on."""
    from rich.markup import escape

    return escape(reveal_invisible(text))


def _between(low: float, high: float) -> str:
    return "" if math.isnan(low) else f"{_told(low)} to {_told(high)}"


def _told(value: float) -> str:
    if math.isnan(value):
        return "—"
    return f"{value:.2f}" if abs(value) > 1 else f"{value:.3f}"


def planned(
    benchmark: str, table: "pd.DataFrame", difference: float, power: float, format: str
) -> None:
    """Print how many units a difference needs."""
    from bench.core.export import to_csv, to_latex

    units = module("metrics", benchmark).UNITS
    say(
        f"{units} that a difference of {difference:g} needs, to be found in {power:.0%} of studies at the 5 % "
        "level; requests are those of all models together"
    )
    if format == "json":
        _json(_records(table))
    elif format in ("csv", "latex"):
        _out(to_csv(table) if format == "csv" else to_latex(table))
    else:
        from rich.table import Table

        console = _console()
        shown = Table(show_edge=False, pad_edge=False)
        texts = ("task", "metric", "comparison", "from")
        for name in table:
            shown.add_column(
                str(name).replace("_", " "), justify="left" if name in texts else "right"
            )
        for row in table.to_dict("records"):
            shown.add_row(
                *(
                    _safe(value) if isinstance(value, str) else _amount(value)
                    for value in row.values()
                )
            )
        console.print(shown)


def _amount(value: float) -> str:
    """A count as it is, another number with three digits, and a dash for none."""
    if math.isnan(value):
        return "—"
    return f"{value:,.0f}" if float(value).is_integer() else _told(value)


def readings(run: Any, sheet: Path) -> None:
    """Write a sheet of replies to be read by hand, or print what a sheet says that is filled in."""
    from bench.metrics.readings import precision_note
    from bench.records import READINGS
    from bench.run import readings as sheets

    if not sheet.exists():
        n = sheets.write_sheet(run, sheet)
        print(
            reveal_invisible(
                f"{sheet}: {n:,} replies; write in column `{sheets.READING}` what each of them answers"
            )
        )
        return
    checked = sheets.read_sheet(run, sheet)
    print(
        reveal_invisible(f"{sheet}: {checked.filled:,} of {checked.rows:,} replies are filled in")
    )
    for task in checked.precision.itertuples():
        print(f"{task.task}: {precision_note(task)}")
    print(
        reveal_invisible(
            f"kept in {run.folder / READINGS}; `bench score {run.folder}` shows it beside the scores"
        )
    )


def written(files: "Sequence[WrittenFile]", what: str) -> None:
    """Print which files were made, with how many rows of `what`, and whether they are the released ones."""
    for one in files:
        same = ", as released" if one.as_released else ", not as released" if one.released else ""
        print(f"{one.path}: {one.rows:,} {what}{same} (git blob {one.blob})")
    equal = sum(one.as_released for one in files)
    # The same rows as CSV and as JSON count once.
    rows = sum({one.path.with_suffix(""): one.rows for one in files}.values())
    print(
        f"{rows:,} {what} in {len(files)} files, {equal} of which are the released ones to the byte"
    )
