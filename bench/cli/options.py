"""Make the options of a command from the fields of `RunConfig`, and read their values.

This model is the only place with their names, help texts, defaults and limits.
"""

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import wraps
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from bench.config import (
    Generation,
    Limits,
    Options,
    RunConfig,
    Where,
    of_command,
)
from bench.core.errors import BadInput
from bench.data import readers

# Headings in the help.
HEADINGS: Mapping[type[Options], str] = {
    Where: "Execution",
    Limits: "Endpoints",
    Generation: "Generation",
}
# Options that decide the requests of a batch.
OF_REQUESTS = RunConfig.described().keys() - Where.described().keys()
OF_REQUESTS -= {"model", "judge", "name", "base", "label_names"}
OF_REQUESTS |= {"leave_out"}
# The options of a run that commands have.
OF_COMMANDS: Mapping[str, Collection[str]] = {
    "run": RunConfig.described(),
    "requests": OF_REQUESTS,
    "data": ("data", "settings"),
}


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a run in place of `**options`."""
    if command.__name__ not in OF_COMMANDS:
        return command
    names = OF_COMMANDS[command.__name__]
    *parameters, _options = inspect.signature(command).parameters.values()
    declared = {parameter.name for parameter in parameters}
    headings = {name: title for part, title in HEADINGS.items() for name in part.described()}
    options = [
        _parameter(name, RunConfig.flag(name), field, headings.get(name))
        for name, field in RunConfig.described().items()
        if name in names and name not in declared
    ]
    # Arguments come first.
    listed = sorted([*options, *parameters], key=lambda parameter: parameter.kind)

    @wraps(command)
    def call(**given: Any) -> None:
        command(**read_options(given) | {name: given[name] for name in declared})

    call.__signature__ = inspect.Signature(listed)  # type: ignore[attr-defined]
    return call


def _parameter(name: str, flag: str, field: FieldInfo, heading: str | None) -> inspect.Parameter:
    """Return an option as a parameter for typer; its default is None, or False for a flag."""
    extra, help = of_command(field), " ".join((field.description or "").split())
    kind = _kind(field)
    default: Any = False if kind is bool else None
    if field.is_required():
        default = inspect.Parameter.empty
    elif kind in (int, float, str) and "default:" not in help.lower():  # typer shows it then
        default = field.default
    usual = {bool: "", int: "N", float: "N"}.get(kind, "TEXT")
    option = typer.Option(
        *filter(None, [flag, extra.get("alias")]),
        metavar=extra.get("metavar") or usual,
        help=help,
        rich_help_panel=heading,
    )
    annotation: Any = Annotated[kind | None if default is None else kind, option]
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


def _kind(field: FieldInfo) -> Any:
    """Return the type of an option for typer; pydantic reads numbers like `N|off`, and lists."""
    kind: Any = field.annotation
    while get_origin(kind) in (Union, UnionType, Annotated):
        kind = get_args(kind)[0]
    if get_origin(kind) in (Mapping, Sequence):
        return list[str]
    if kind in (bool, int, float) and "|" not in of_command(field).get("metavar", ""):
        return kind
    return str


def read_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Read and check options from the values of typer; ignore empty values and other names."""
    known = RunConfig.model_fields | RunConfig.described()
    options = {
        name: value
        for name, value in given.items()
        if name in known and value is not False and value not in (None, "", [])
    }
    if "system" in options:
        options["system"] = _system_message(options["system"])
    config = RunConfig.of(options, command=True)
    return config.model_dump(exclude_unset=True)


def _system_message(path: str) -> str:
    try:
        text = readers.read_text(readers.as_path(path)).strip()
    except BadInput as error:
        raise BadInput(f"--system {error}") from None
    if not text:
        raise BadInput(f"--system {path}: is empty; leave it out for no system message")
    return text
