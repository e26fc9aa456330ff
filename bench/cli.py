"""The `bench` command. Results go to standard output, everything else to standard error.

Exit status: 0 done; 1 the run failed; 2 the call or the data is wrong, said in one line.
"""

import json
import math
import sys
from collections.abc import Callable
from typing import Annotated, Any

import pandas as pd
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bench import __version__
from bench.benchmarks import NAMES, module
from bench.errors import BadInput, RunFailed, expected
from bench.progress import say

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Measure social bias in language models with McBE, CBBQ and NLI-CoAL.",
)
FORMATS = ("table", "csv", "json", "latex")

Data = Annotated[
    str,
    typer.Option(
        "--data", help="Folder of the data set; else $BENCH_DATA, the user's data folder, the samples."
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="What a benchmark lets you choose, once each. mcbe: context_order, label_order, bos, separators, encoding, bad_rows.",
    ),
]
Format = Annotated[str, typer.Option("--format", help="table, csv, json or latex.")]
Preset = Annotated[str, typer.Option(help="How answers are scored: robust, official or paper.")]


@app.callback(invoke_without_command=True)
def _without_command(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit(2)


@app.command()
def data(
    benchmark: Annotated[str, typer.Argument(help="mcbe, cbbq or nli_coal; all of them without it.")] = "",
    data: Data = "",
    check: Annotated[
        bool, typer.Option("--check", help="List everything odd about the data, row by row.")
    ] = False,
    settings: Settings = None,
    format: Annotated[str, typer.Option("--format", help="table, csv or json.")] = "table",
) -> None:
    """Show which data are installed: found where, how many items, which version, under which licence."""
    from bench import data as room
    from bench import tasks

    formats = ("table", "csv", "json") if check else ("table", "json")
    if format not in formats:
        raise BadInput("--format: " + expected(format, formats, "format"))
    for name, given in (("--data", data), ("--check", check), ("--set", settings)):
        if given and not benchmark:
            raise BadInput(f"{name}: say which benchmark it is about, like `bench data mcbe {name} ...`")
    chosen = tasks.settings(benchmark, _pairs(settings or []), "robust") if benchmark else {}
    of_data = tasks.of_data(benchmark, chosen) if benchmark else {}
    if check:
        _print_check(room.check(room.find(benchmark, data), **of_data), format)
        return
    found: list[dict[str, Any]] = []
    for name in [benchmark] if benchmark else NAMES:
        source = room.find(name, data)
        items = room.load(source, **of_data)
        counts = pd.Series([item.category for item in items]).value_counts(sort=False)
        found.append(
            {
                **source.describe(),
                "items": len(items),
                "categories": {str(k): int(v) for k, v in counts.items()},
            }
        )
    if format == "json":
        print(json.dumps(found, ensure_ascii=False, indent=2))
        return
    for entry in found:
        print(
            f"{module('data', entry['benchmark']).TITLE}: {entry['items']:,} items in {len(entry['categories'])} categories"
        )
        for key, value in (
            ("found", f"{entry['found']}: {entry['folder']}"),
            ("version", f"{entry['name']}, {entry['version']}, sha256 {entry['sha256'][:12]}"),
            ("licence", entry["licence"]),
            ("items", ", ".join(f"{name} {count:,}" for name, count in entry["categories"].items())),
            ("note", entry["note"]),
        ):
            if value:
                print(f"  {key:8} {value}")


@app.command()
def fetch(
    benchmark: Annotated[str, typer.Argument(help="mcbe, cbbq or nli_coal.")],
    source: Annotated[str, typer.Option("--from", help="A local copy: a folder, a .tar.gz or a .zip.")] = "",
) -> None:
    """Bring a released data set to the user's data folder, from the Hub or GitHub, or from a local copy."""
    from bench.data.fetch import fetch as bring

    brought = bring(benchmark, source or None)
    print(brought.folder)


@app.command()
def run(
    benchmark: Annotated[str, typer.Argument(help="mcbe, cbbq or nli_coal.")],
    model: Annotated[
        str,
        typer.Option(
            help="A Hub id, a folder, a .gguf file, openai:NAME@URL, replay:FILE, simulated:..., tiny:SIZE."
        ),
    ],
    judge: Annotated[
        str, typer.Option(help="Who marks replies where a task has that done; spelt like --model.")
    ] = "",
    categories: Annotated[str, typer.Option(help="Only these, comma-separated.")] = "",
    tasks: Annotated[str, typer.Option(help="Only these, comma-separated.")] = "",
    limit: Annotated[
        int | None, typer.Option(help="At most so many items a category and task, evenly spread.")
    ] = None,
    repeats: Annotated[int, typer.Option(help="Ask everything so often, with a seed each.")] = 1,
    seed: Annotated[int, typer.Option(help="Seed of the first repeat.")] = 0,
    read: Annotated[
        str, typer.Option(help="How a choice is read: text (generated) or letters (probabilities).")
    ] = "",
    max_new_tokens: Annotated[
        int | None, typer.Option(help="So many tokens a reply may take; what the tasks allow without it.")
    ] = None,
    settings: Settings = None,
    preset: Preset = "robust",
    prompts: Annotated[
        str, typer.Option(help="Wording: a name of ours, official (fetched), or FILE or FILE#NAME.")
    ] = "",
    data: Data = "",
    out: Annotated[
        str, typer.Option(help="The run's folder; reports/runs/MODEL/BENCHMARK-ID without it.")
    ] = "",
    device: Annotated[
        str, typer.Option(help="cpu, cuda, cuda:1...; the accelerator where there is one.")
    ] = "",
    dtype: Annotated[str, typer.Option(help="float32, bfloat16 or float16.")] = "",
    batch_tokens: Annotated[int | None, typer.Option(help="Tokens in a batch, padding included.")] = None,
    trust_remote_code: Annotated[
        bool, typer.Option("--trust-remote-code", help="Run code that comes with a Hub model.")
    ] = False,
    format: Format = "table",
) -> None:
    """Ask a model, write the records, print the score table. A run that was interrupted continues."""
    from bench.run import evaluate

    _check_format(format)
    done = evaluate(
        benchmark, model, judge=judge or None, categories=_listed(categories), tasks=_listed(tasks), limit=limit,
        repeats=repeats, seed=seed, read=read or None, max_new_tokens=max_new_tokens, settings=_pairs(settings or []),
        preset=preset, prompts=prompts or None, data=data or None, out=out or None, device=device or None, dtype=dtype or None,
        batch_tokens=batch_tokens, trust_remote_code=trust_remote_code,
    )  # fmt: skip
    _print_scores([done], None, format)


@app.command()
def score(
    runs: Annotated[list[str], typer.Argument(metavar="RUN_DIR...", help="Folders that `bench run` wrote.")],
    preset: Annotated[str, typer.Option(help="robust, official or paper; the run's own without it.")] = "",
    format: Format = "table",
) -> None:
    """Score stored records again, asking nobody."""
    from bench.run import Run

    _check_format(format)
    _print_scores([Run.open(folder) for folder in runs], preset or None, format)


@app.command()
def report(
    study: Annotated[
        str, typer.Argument(metavar="[STUDY.yml]", help="What to run; the demo study without it.")
    ] = "",
    out: Annotated[str, typer.Option(help="Folder of the report; reports/STUDY without it.")] = "",
    jobs: Annotated[
        int | None, typer.Option(help="Models at a time; as many as there are cores, at most.")
    ] = None,
) -> None:
    """Run a study's benchmarks and notebooks into an HTML report; prints the path of its index page."""
    from bench.report import make

    made = make(study or None, out or None, jobs)
    print(made.page)
    if made.failed:
        raise RunFailed(
            f"{len(made.failed)} of the study's parts failed: {', '.join(made.failed)}; the report says why"
        )


@app.command()
def version() -> None:
    """Show the version."""
    print(__version__)


def main() -> None:
    """Run the command, and turn what went wrong into one line and an exit status."""
    sys.exit(_status(lambda: app(standalone_mode=False)))


def _status(command: Callable[[], Any]) -> int:
    try:
        return int(command() or 0)
    except BadInput as error:
        say(f"bench: {error}")
        return 2
    except RunFailed as error:
        say(f"bench: {error}")
        return 1
    except (KeyboardInterrupt, typer.Abort):
        say("bench: interrupted; the same command continues from what is recorded")
        return 130
    except BrokenPipeError:
        return 1
    except Exception as error:
        # Errors of the call itself. Their class has moved between versions of typer; this method it has kept.
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        say(f"bench: {' '.join(message().split())}")
        return 2


def _print_check(found: pd.DataFrame, format: str) -> None:
    """The report of odd rows; refused ones make the status 2."""
    if format == "csv":
        print(found.to_csv(index=False), end="")
    elif format == "json":
        print(json.dumps(found.to_dict("records"), ensure_ascii=False, indent=2))
    else:
        for row in found.to_dict("records"):
            place = ", ".join(filter(None, (row["file"], row["row"] and f"row {row['row']}", row["column"])))
            print(
                f"{row['kind']:8} {place or 'the folder'}: {row['what']}"
                + (f": {row['value']}" if row["value"] else "")
            )
    refused = int((found.kind == "refused").sum())
    if refused:
        raise BadInput(
            f"{refused} findings are of rows that are refused; `--set bad_rows=leave_out` runs without them"
        )


def _listed(names: str) -> list[str] | None:
    return [name.strip() for name in names.split(",") if name.strip()] or None


def _pairs(given: list[str]) -> dict[str, str]:
    """`--set name=value`, once or several times."""
    for one in given:
        if "=" not in one:
            raise BadInput(f"--set {one}: expected NAME=VALUE, like context_order=none")
    pairs = [(one.partition("=")[0].strip(), one.partition("=")[2].strip()) for one in given]
    for name, _ in pairs:
        if [other for other, _ in pairs].count(name) > 1:
            raise BadInput(f"--set {name}: is given twice; give it once")
    return dict(pairs)


def _check_format(name: str) -> None:
    if name not in FORMATS:
        raise BadInput("--format: " + expected(name, FORMATS, "format"))


def _print_scores(runs: list[Any], preset: str | None, format: str) -> None:
    from bench.metrics.findings import warnings
    from bench.run import table

    for text in warnings([run.about for run in runs]):
        say(f"note: {text}")
    if format == "json":
        found = [
            {"run": {"folder": str(run.folder), **run.about}, "scores": _records(run.scores(preset))}
            for run in runs
        ]
        print(
            json.dumps(found[0] if len(found) == 1 else found, ensure_ascii=False, indent=2, allow_nan=False)
        )
    elif format == "csv":
        print(table(runs, preset).to_csv(index=False), end="")
    elif format == "latex":
        print(
            table(runs, preset).to_latex(index=False, escape=True, float_format="%.3f", na_rep="--"), end=""
        )
    else:
        for run in runs:
            _print_table(run, run.scores(preset))


def _records(scores: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows with null for what is undefined: JSON has no NaN."""
    rows = scores.to_dict("records")
    return [
        {str(k): None if isinstance(v, float) and math.isnan(v) else v for k, v in row.items()}
        for row in rows
    ]


def _print_table(run: Any, scores: pd.DataFrame) -> None:
    # Wide enough for a file or a pipe; a terminal has its own width.
    console = Console(width=None if sys.stdout.isatty() else 160, highlight=False)
    about = run.about
    console.print(
        f"[bold]{escape(run.label)}[/] on {about['benchmark']}: {about['data']['name']}, {about['data']['version']}; wording {escape(about['asked']['prompts'])}"
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
        for name in ("score", "95 % interval", "n", "valid", "baseline"):
            shown.add_column(name, justify="right")
        shown.add_column("note", overflow="fold")
        for row in some.to_dict("records"):
            low, high, baseline = row["ci_low"], row["ci_high"], row["baseline"]
            shown.add_row(
                *(row[name] for name in ("category", "task", "metric")),
                _told(row["score"]),
                "" if math.isnan(low) else f"{_told(low)} to {_told(high)}",
                f"{row['n']:,}",
                "" if math.isnan(row["valid_rate"]) else f"{row['valid_rate']:.0%}",
                "" if math.isnan(baseline) else _told(baseline),
                escape(row["note"]),
                style="bold" if row["category"] == "all" else "",
            )
        console.print(shown)
    console.print(f"records: {escape(str(run.folder))}", soft_wrap=True)


def _told(value: float) -> str:
    if math.isnan(value):
        return "—"
    return f"{value:.2f}" if abs(value) > 1 else f"{value:.3f}"
