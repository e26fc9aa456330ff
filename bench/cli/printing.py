"""Print results as tables for people, or as CSV, JSON or LaTeX for programs."""

import json
import math
import shlex
import sys
from collections.abc import Sequence
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bench
from bench.core.errors import BadInput
from bench.core.numbers import decimals
from bench.core.progress import say
from bench.core.text import as_json, reveal_invisible, truncate

# The length of an example of a reply that we could not parse.
MAX_REPLY_CHARS = 100

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from bench.benchmarks.base import Benchmark
    from bench.run import Estimate, Run


def check(benchmark: "Benchmark", findings: "pd.DataFrame", format: str) -> None:
    """Print the findings of a check."""
    if format != "table":
        _print_as(findings, format)
    for row in findings.to_dict("records") if format == "table" else ():
        parts = (row["file"], row["row"] and f"row {row['row']}", row["column"])
        location = ", ".join(filter(None, parts)) or "the folder"
        value = f": {row['value']}" if row["value"] else ""
        show(f"{row['kind']:8} {location}: {row['what']}{value}")
    if refused := int((findings.kind == "refused").sum()):
        settings = benchmark.metadata.release.tolerant
        fixes = (f"; `--set {name}={value}` runs without them" for name, value in settings.items())
        raise BadInput(f"{refused} findings are of rows that are refused{''.join(fixes)}")


def scores(runs: "Sequence[Run]", preset: str | None, format: str, full: bool) -> None:
    """Print the results of runs; as a table, print sentences, or all scores with `full`."""
    from rich.padding import Padding

    from bench.runs.notes import warnings
    from bench.runs.scores import table

    for text in warnings(runs):
        say(f"note: {text}")
    if format == "json":
        results = [run.as_dict(preset) for run in runs]
        print_json(results[0] if len(results) == 1 else results)
        return
    if format != "table":
        _print_as(table(runs, partial(bench.run.Run.scores_beside, preset=preset)), format)
        return
    console, has_others = _console(), False
    for run in runs:
        scores, metadata = run.scores_beside(preset), run.metadata
        has_others |= len(set(scores.preset)) > 1
        source, prompts = metadata["data"], f"prompts {metadata['asked']['prompts']}"
        scored = f"; preset {preset}" if preset else ""
        title = _safe(f"{source['name']}, version {source['version']}; {prompts}{scored}")
        console.print(f"[bold]{_safe(run.label)}[/] on {run.benchmark}: {title}")
        if full:
            _print_scores(run, scores)
            continue
        for line in _summary(run, scores, 3 if len(runs) == 1 else 1):
            console.print(Padding(_safe(line), (0, 0, 0, 2), expand=False))
    if full:
        return
    if has_others:
        console.print(
            "The released code gets other numbers from the same answers; --preset official shows "
            "them, --full both."
        )
    folders = [str(run.relative_folder) for run in runs]
    pages = ", ".join(dict.fromkeys(f"notebooks/{run.benchmark}.ipynb" for run in runs))
    if not Path("notebooks").is_dir():
        pages = f"{pages} (`bench notebooks notebooks` copies them)"
    named = shlex.quote(folders[0]) if len(folders) == 1 else "..."
    line = (
        f"records: {' '.join(folders)}; all scores: `bench score {named} --full`; pictures: {pages}"
    )
    console.print(_safe(line), soft_wrap=True)


def _summary(run: "Run", scores: "pd.DataFrame", n: int) -> list[str]:
    """Write `n` sentences about a run, and one about replies that could not be parsed."""
    from bench.metrics.primary import LOW_VALIDITY, summary
    from bench.tasks import answer_mode
    from bench.tasks.request import of_judge

    rows = run.replies.assign(readable=run.readable().to_numpy())
    lines = (
        summary(scores.assign(model=run.label), run.definition, n) if rows.readable.any() else []
    )
    rows = rows[~rows.request.map(of_judge)]
    failed, replies = rows[rows.error != ""], rows[rows.error == ""]
    if replies.empty and len(failed):
        reason = failed.error.value_counts().index[0]
        return [*lines, f"None of {len(failed):,} answers came: {reason}."]
    share = replies.groupby("task", sort=False).readable.mean()
    replies = replies[replies.task.isin(share.index[share < LOW_VALIDITY])]
    if replies.empty:
        return lines
    reply = truncate(replies.response[~replies.readable].iloc[0], MAX_REPLY_CHARS)
    line = (
        f"{', '.join(dict.fromkeys(replies.task))}: {replies.readable.sum():,} of "
        f"{len(replies):,} answers could be read. One that could not: "
        f"{f'“{reply}”' if reply else 'an empty reply'}."
    )
    request_types, answer_modes, by_task = (
        run.metadata[name] for name in ("request_types", "answer_modes", "answer_mode")
    )
    if "letters" in answer_modes and any(
        by_task.get(task) == "text"
        and answer_mode(run.definition.tasks[task], "letters", request_types, answer_modes)
        for task in replies.task.unique()
    ):
        line += " Try: --answer-mode letters takes the likeliest letter instead of a reply."
    return [*lines, line]


def _print_scores(run: "Run", scores: "pd.DataFrame") -> None:
    """Print a table by preset, without empty columns; numbers are aligned to the right."""
    from rich.table import Table

    # For categories, we print only the primary metrics; the other formats have all numbers.
    primary_metrics = {primary.metric for primary in run.definition.metrics.primary_metrics}
    scores = scores[(scores.category == "all") | scores.metric.isin(primary_metrics)]
    for preset, part in scores.groupby("preset", sort=False):
        is_first = preset == scores.preset.iloc[0]
        suffix = "" if is_first else ": where the released code's number differs"
        # A problem of the whole model is a note of many rows in sequence.
        is_same = (part.note != "") & (part.note == part.note.shift())
        columns = {
            "95 % interval": part.ci_low.combine(part.ci_high, _interval),
            "n": part.n,
            "valid": part.valid_rate,
            "if all were": part.bound_low.combine(part.bound_high, _interval),
            "baseline": part.baseline,
            "note": part.note.mask(is_same, "as above"),
        }
        texts = part[["category", "task", "metric", "score"]].assign(**columns)
        texts = texts.map(lambda value: value if isinstance(value, str) else _number(value))
        texts = texts.loc[:, (texts != "").any()]
        title = f"preset {preset}{suffix}"
        table = Table(title=title, title_justify="left", show_edge=False, pad_edge=False)
        for name in texts:
            is_text = name in ("category", "task", "metric", "note")
            table.add_column(str(name), justify="left" if is_text else "right", overflow="fold")
        for row in texts.itertuples(index=False):
            table.add_row(*map(_safe, row), style="bold" if row[0] == "all" else "")
        _console().print(table)
    _console().print(f"records: {_safe(run.folder)}", soft_wrap=True)


def estimates(runs: "Sequence[Estimate]", format: str) -> None:
    """Print the requests, tokens and costs of runs; other formats have them by task."""
    import pandas as pd

    from bench.core.export import to_rows
    from bench.run.costs import summed

    if format == "json":
        content = [
            {**run._asdict(), **to_rows(run.total.to_frame().T)[0], "parts": to_rows(run.parts)}
            for run in runs
        ]
        print_json(content[0] if len(content) == 1 else content)
        return
    if format != "table":
        parts = [run.parts.assign(benchmark=run.benchmark, model=run.model) for run in runs]
        _print_as(pd.concat(parts)[["benchmark", "model", *runs[0].parts]], format)
        return
    for run in runs:
        judged = f", judged by {run.judge}" if run.judge else ""
        show(f"{run.model} on {run.benchmark}{judged}: {run}")
    total = summed(runs)
    if len(runs) > 1:
        show(f"in all: {total}")
    for note in total.notes:
        show(note)


def print_json(content: Any) -> None:
    print(as_json(json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False)))


def show(text: str) -> None:
    print(reveal_invisible(text))


def _print_as(table: "pd.DataFrame", format: str) -> None:
    """Print a table as JSON, CSV or LaTeX; for a terminal, escape invisible characters."""
    from bench.core.export import to_csv, to_latex, to_rows

    if format == "json":
        print_json(to_rows(table))
        return
    text = to_csv(table) if format == "csv" else to_latex(table)
    print(reveal_invisible(text) if sys.stdout.isatty() else text, end="")


def _console() -> "Console":
    """Return a console as wide as the terminal; for a file or a pipe, as wide as our tables."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 160, highlight=False)


def _safe(text: object) -> str:
    """Return a text without markup of rich and without control characters."""
    from rich.markup import escape

    return escape(reveal_invisible(text))


def _interval(low: float, high: float) -> str:
    return "" if math.isnan(low) else f"{_number(low)} to {_number(high)}"


def _number(value: float) -> str:
    if isinstance(value, Integral):
        return f"{value:,}"
    return "" if math.isnan(value) else decimals(value, 2 if abs(value) > 1 else 3)
