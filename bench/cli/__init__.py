"""The `bench` command. Results go to standard output, everything else to standard error.

Exit status: 0 done; 1 the run failed; 2 the call or the data is wrong, said in one line.
"""

import inspect
import re
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from bench import __version__
from bench.benchmarks import module, names, resolve
from bench.cli import make as cli_make
from bench.cli.make import Data
from bench.cli.options import pairs, read_options, run_parameters
from bench.config import RunConfig
from bench.core.errors import CONTINUES, BadInput, RunFailed, expected
from bench.core.progress import say

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Measure social bias in language models with McBE, CBBQ and NLI-CoAL.",
)
INTERRUPTED = 130
_read_settings = pairs("--set", "context_order=none")
FORMATS = ("table", "csv", "json", "latex")

Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help=RunConfig.model_fields["settings"].description
    ),
]
Format = Annotated[str, typer.Option("--format", help="table, csv, json or latex.")]


def _show_version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _without_command(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit(2)


@app.command()
def data(
    benchmark: Annotated[
        str, typer.Argument(help="mcbe, cbbq or nli_coal; all of them without it.")
    ] = "",
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
    from bench.cli import printing

    formats = ("table", "csv", "json") if check else ("table", "json")
    if format not in formats:
        raise BadInput("--format: " + expected(format, formats, "format"))
    for name, given in (("--data", data), ("--check", check), ("--set", settings)):
        if given and not benchmark:
            raise BadInput(
                f"{name}: say which benchmark it is about, like `bench data mcbe {name} ...`"
            )
    chosen = (
        tasks.settings(benchmark, _read_settings(settings or []), "robust") if benchmark else {}
    )
    of_data = tasks.of_data(benchmark, chosen) if benchmark else {}
    if check:
        printing.check(benchmark, room.check(room.find(benchmark, data), **of_data), format)
        return
    found: list[dict[str, Any]] = []
    for name in [benchmark] if benchmark else names():
        source = room.find(name, data)
        items = room.load(source, **of_data)
        touched = [
            {
                "state": "left out" if one.left_out else "touched",
                "where": ", ".join(filter(None, (one.category, one.task))),
                "rows": one.rows,
                "what": one.what,
            }
            for one in module("data", name).touched(source.folder, None, **of_data)
        ]
        found.append(
            {
                **source.describe(),
                "items": len(items),
                "categories": dict(Counter(item.category for item in items)),
                "touched": touched,
            }
        )
    printing.data(found, format)


@app.command()
def fetch(
    benchmark: Annotated[str, typer.Argument(help="mcbe, cbbq or nli_coal.")],
    source: Annotated[
        str, typer.Option("--from", help="A local copy: a folder, a .tar.gz or a .zip.")
    ] = "",
) -> None:
    """Bring a released data set to the user's data folder, from the Hub or GitHub, or from a local copy."""
    from bench.data.fetch import fetch as bring

    brought = bring(benchmark, source or None)
    print(brought.folder)


# In the order of the help.
for command in (
    cli_make.expand,
    cli_make.curate,
    cli_make.notebooks,
    cli_make.build,
    cli_make.train,
):
    app.command()(command)


def run(
    benchmark: Annotated[str, typer.Argument(help="mcbe, cbbq or nli_coal; not with --from.")] = "",
    *,
    source: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="RUN",
            help="Folder or run.json of a run: ask the same again, and compare.",
        ),
    ] = "",
    concurrency: Annotated[
        int | None, typer.Option(help="Concurrent requests to an endpoint; default: 8.")
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(help="Seconds that an endpoint may take per request; default: 120."),
    ] = None,
    budget_requests: Annotated[
        int | None,
        typer.Option(help="Send an endpoint at most N requests, then end; default: no budget."),
    ] = None,
    budget_tokens: Annotated[
        int | None,
        typer.Option(
            help="Let an endpoint read and write at most N tokens, then end; default: no budget."
        ),
    ] = None,
    format: Format = "table",
    **given: Any,
) -> None:
    """Ask a model, write the records, print the score table. A run that was interrupted continues."""
    from bench.cli import printing
    from bench.run import evaluate, repeat

    _check_format(format)
    options = read_options(given)
    limits: dict[str, float | None] = {
        "concurrency": concurrency,
        "timeout": timeout,
        "budget_requests": budget_requests,
        "budget_tokens": budget_tokens,
    }
    if source:
        done = repeat(
            source, limits=limits, **({"benchmark": benchmark} if benchmark else {}), **options
        )
    else:
        for value, spelling in (
            (benchmark, "argument 'BENCHMARK'"),
            (options.get("model"), "option '--model'"),
        ):
            if not value:
                raise BadInput(f"Missing {spelling}; or repeat a run by --from RUN")
        done = evaluate(benchmark, limits=limits, **options)
    printing.scores([done], None, format)


def _with_run_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give `bench run` an option per field of `RunConfig`, in place of its `**given`."""
    own = inspect.signature(command).parameters.values()
    named = [parameter for parameter in own if parameter.kind is not parameter.VAR_KEYWORD]
    parameters = [named[0], *run_parameters(), *named[1:]]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


app.command()(_with_run_options(run))


@app.command()
def score(
    runs: Annotated[
        list[str], typer.Argument(metavar="RUN_DIR...", help="Folders that `bench run` wrote.")
    ],
    preset: Annotated[
        str, typer.Option(help="robust, official or paper; the run's own without it.")
    ] = "",
    format: Format = "table",
) -> None:
    """Score stored records again, asking nobody."""
    from bench.cli import printing
    from bench.run import Run

    _check_format(format)
    printing.scores([Run.open(folder) for folder in runs], preset or None, format)


@app.command()
def plan(
    benchmark: Annotated[str, typer.Argument(help="mcbe, cbbq or nli_coal.")],
    difference: Annotated[
        float,
        typer.Option(
            help="Difference to be found, in the unit of the scores: 0.05 of a share, 5 of 100."
        ),
    ],
    power: Annotated[
        float | None, typer.Option(help="How often it is to be found; default: 0.8.")
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="RUN",
            help="Folder of a run whose spread is taken; give it twice for the differences of two "
            "runs. Default: units that are all or nothing at even odds.",
        ),
    ] = None,
    budget_requests: Annotated[
        int | None,
        typer.Option(
            help="Say what N requests to all models together would show; default: no budget."
        ),
    ] = None,
    data: Data = "",
    format: Format = "table",
) -> None:
    """Say how many scenes, instances or occupations a difference needs, before a run."""
    from bench.analyses.planning import planned
    from bench.cli import printing
    from bench.metrics.significance import POWER
    from bench.run import Run

    _check_format(format)
    power = POWER if power is None else power
    runs = [Run.open(folder) for folder in source or []]
    table = planned(benchmark, difference, power, runs, budget_requests, data)
    printing.planned(resolve(benchmark), table, difference, power, format)


@app.command()
def mark(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN_DIR...",
            help="Folders that `bench run` wrote; with --readings one, and the sheet behind it.",
        ),
    ],
    out: Annotated[
        str, typer.Option(help="The sheet to write, FILE.csv; not with --readings.")
    ] = "",
    readings: Annotated[
        bool,
        typer.Option(
            "--readings",
            help="RUN_DIR SHEET.csv: write 100 random replies to be read by hand; if the sheet is there "
            "already, filled in, print how many the reader of replies had read rightly. Default: off.",
        ),
    ] = False,
) -> None:
    """Write a sheet of replies to mark by hand: CBBQ's explanations or McBE's bias analyses.

    `bench run --judge replay:FILE.csv` reads marks of explanations, the notebook judge_agreement
    those of analyses; several runs of McBE make one blind sheet, on which models can be compared.
    """
    from bench.cli import printing
    from bench.run import Run, human_marks

    if readings:
        if out or len(runs) != 2:
            raise BadInput(
                "--readings: needs a run and a sheet, like `bench mark --readings RUN_DIR SHEET.csv`"
            )
        printing.readings(Run.open(runs[0]), Path(runs[1]).expanduser())
        return
    if not out:
        raise BadInput(
            "Missing option '--out': name the sheet to write, like `bench mark RUN_DIR --out FILE.csv`"
        )
    given = [Run.open(folder) for folder in runs]
    print(f"{out}: {human_marks.write_sheet(given, Path(out).expanduser())}")


@app.command()
def report(
    study: Annotated[
        str, typer.Argument(metavar="[STUDY.yml]", help="What to run; the demo study without it.")
    ] = "",
    out: Annotated[str, typer.Option(help="Folder of the report. Default: ./reports/STUDY.")] = "",
    jobs: Annotated[
        int | None, typer.Option(help="Models at a time; as many as there are cores, at most.")
    ] = None,
) -> None:
    """Run a study's benchmarks and notebooks into an HTML report; prints the path of its index page."""
    from bench.report.build import make

    made = make(study or None, out or None, jobs)
    print(made.page)
    if made.failed:
        raise RunFailed(
            f"{len(made.failed)} of the study's parts failed: {', '.join(made.failed)}; the report says why"
        )


@app.command()
def version() -> None:
    """Show the version, like --version."""
    print(__version__)


def main() -> None:
    """Run the command, and turn what went wrong into one line and an exit status."""
    # As batch systems and containers end what they take back: like Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    status = _status(lambda: app(standalone_mode=False))
    # Whoever is impatient, and presses it again, does not see the ending of this process end with a traceback.
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, signal.SIG_IGN)
    sys.exit(status)


def _status(command: Callable[[], Any]) -> int:
    try:
        status = int(command() or 0)
    except BadInput as error:
        say(f"bench: {error}")
        return 2
    except RunFailed as error:
        say(f"bench: {error}")
        return 1
    except (KeyboardInterrupt, typer.Abort):
        status = INTERRUPTED
    except BrokenPipeError:
        return 1
    except Exception as error:
        # Errors of the call itself. Their class has moved between versions of typer; this method it has kept.
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        said = " ".join(message().split())
        say(f"bench: {said}{_as_setting(said)}")
        return 2
    # Some versions of typer raise, others return.
    if status == INTERRUPTED:
        say(f"bench: interrupted; {CONTINUES}")
    return status


def _as_setting(said: str) -> str:
    """What to write for an unknown option that is a benchmark's setting."""
    from bench import tasks

    for name in names():
        for setting, value in tasks.settings(name, {}, "robust").items():
            if re.search(rf"No such option:? '?--{setting.replace('_', '[-_]')}\b", said):
                return f"; {setting} is a setting of {name}, given like --set {setting}={value}"
    return ""


def _check_format(name: str) -> None:
    if name not in FORMATS:
        raise BadInput("--format: " + expected(name, FORMATS, "format"))
