"""The parts of the `bench` command: its app, and the descriptions of commands and options."""

from collections.abc import Callable
from enum import StrEnum
from inspect import getdoc
from typing import Any

import typer
from typer.core import TyperCommand
from typer.main import get_command

from bench import __version__

# Formats of findings, and of scores and estimates.
CheckFormat = StrEnum("CheckFormat", ["table", "csv", "json"])
Format = StrEnum("Format", ["table", "csv", "json", "latex"])
# Groups of commands in the help, after the most used ones.
PLAN = "Plan and check"
MAKE = "Make items and models"


def examples(*calls: str) -> str:
    """Return the end of a help text: calls of `bench`."""
    return "\n\n".join(["Examples:", *(f"  bench {call}" for call in calls)])


def argument(metavar: str, help: str, default: Any = ...) -> Any:
    """Describe an argument; by default it is required."""
    return typer.Argument(default, metavar=metavar, help=help)


def given(metavar: str, help: str, default: Any = "", flag: str = "") -> Any:
    """Describe an option; with the default `...` it is required."""
    return typer.Option(default, *filter(None, [flag]), metavar=metavar, help=help)


def switch(flag: str, help: str) -> Any:
    """Describe an option without a value."""
    return typer.Option(False, flag, metavar="", help=help)


app = typer.Typer(
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Measure social bias in language models with McBE, CBBQ and NLI-CoAL.",
    epilog=examples("run cbbq --model simulated:bias=0.7 --limit 20", "report"),
)


def command(*calls: str, panel: str = "") -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of a function, with calls as examples in its help.

    It gets its parameters when it is chosen, because the models of options take as long to import
    as the rest of `bench --help`, which shows none of them.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        class Command(TyperCommand):
            def make_context(self, *args: Any, **extra: Any) -> Any:
                self.complete()
                return super().make_context(*args, **extra)

            def complete(self) -> None:
                """Add the parameters of the function, and the options of a model."""
                from bench.cli.options import with_options

                alone = typer.Typer(add_completion=False)
                alone.command()(with_options(function))
                complete = get_command(alone)
                self.params, self.callback = complete.params, complete.callback

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
    version: bool = typer.Option(False, "--version", help="Show the version."),
) -> None:
    if version:
        print(__version__)
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit(2)
