"""The app of the `bench` command, and the arguments and options that its commands share."""

from collections.abc import Callable
from enum import StrEnum
from inspect import getdoc
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperCommand
from typer.main import get_command

from bench import __version__


def argument(metavar: str, help: str) -> Any:
    """Describe an argument."""
    return typer.Argument(metavar=metavar, help=help)


def option(metavar: str, help: str, *flags: str) -> Any:
    """Describe an option; its flag is by default the name of the parameter."""
    return typer.Option(*flags, metavar=metavar, help=help)


def switch(flag: str, help: str) -> Any:
    """Describe an option without a value."""
    return typer.Option(flag, metavar="", help=help)


# Formats of findings, and of scores and estimates.
CheckFormat = StrEnum("CheckFormat", ["table", "csv", "json"])
Format = StrEnum("Format", ["table", "csv", "json", "latex"])
# A group of commands in the help, after the most used ones.
MAKE = "Make items and models"

BenchmarkName = Annotated[str, argument("BENCHMARK", "mcbe, cbbq or nli_coal.")]
Runs = Annotated[
    list[str], argument("RUN_DIR", "Folders that `bench run` wrote, or folders above them.")
]
PrintFormat = Annotated[
    Format, option("NAME", "table (for people), csv, json or latex.", "--format")
]
Full = Annotated[
    bool,
    switch(
        "--full",
        "Print all scores by category, and different scores of preset official, "
        "instead of sentences.",
    ),
]
DryRun = Annotated[
    bool,
    switch(
        "--dry-run",
        "Ask nothing and write nothing; print requests, tokens and, with a price, costs.",
    ),
]


def examples(*calls: str) -> str:
    """Return the end of a help text, with some calls of `bench`."""
    return "\n\n".join(["Examples:", *(f"  bench {call}" for call in calls)])


app = typer.Typer(
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Measure social bias in language models with McBE, CBBQ and NLI-CoAL.",
    epilog=examples("run cbbq --model simulated:bias=0.7 --limit 20", "report"),
)


class Command(TyperCommand):
    """A command that gets its parameters when it is called.

    `bench --help` needs no parameters, and importing `RunConfig` would double its time.
    """

    functions: ClassVar[dict[str | None, Callable[..., None]]] = {}

    def make_context(self, *args: Any, **extra: Any) -> Any:
        self.complete()
        return super().make_context(*args, **extra)

    def complete(self) -> None:
        """Add the parameters of the function, and the options of a run."""
        from bench.cli.options import with_options

        alone = typer.Typer(add_completion=False)
        alone.command()(with_options(self.functions[self.name]))
        complete = get_command(alone)
        self.params, self.callback = complete.params, complete.callback


def command(*calls: str, panel: str = "") -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Turn a function into a command, with some calls as examples in its help."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        Command.functions[function.__name__] = function
        add = app.command(
            function.__name__,
            cls=Command,
            help=getdoc(function),
            epilog=examples(*calls),
            rich_help_panel=panel or None,
        )
        add(lambda: None)
        return function

    return register


@app.callback(invoke_without_command=True)
def _without_command(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    if version:
        print(__version__)
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit(2)
