"""Make the options of a command from the fields of `RunConfig`, and read their values.

`RunConfig` alone defines their names, help texts, defaults and limits.
"""

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import wraps
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from bench.config import Generation, Limits, Options, RunConfig, Where, of_command
from bench.core.errors import BadInput
from bench.data import readers

# Headings in the help, and the options below them.
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
    *parameters, _options = inspect.signature(command).parameters.values()
    declared = {parameter.name for parameter in parameters}
    headings = {name: title for part, title in HEADINGS.items() for name in part.described()}
    options = {
        name: _parameter(name, field, headings.get(name))
        for name, field in RunConfig.described().items()
        if name in OF_COMMANDS[command.__name__] and name not in declared
    }

    @wraps(command)
    def call(**values: Any) -> None:
        of_run = {name: values.pop(name) for name in options}
        command(**values, **read_options(of_run))

    # Arguments come first.
    listed = sorted([*options.values(), *parameters], key=lambda parameter: parameter.kind)
    call.__signature__ = inspect.Signature(listed)  # type: ignore[attr-defined]
    return call


def _parameter(name: str, field: FieldInfo, heading: str | None) -> inspect.Parameter:
    """Describe an option as a parameter for typer; it is None if it was not given."""
    extra = of_command(field)
    kind = _kind(field)
    option = typer.Option(
        *filter(None, [RunConfig.flag(name), extra.get("alias")]),
        metavar=extra.get("metavar") or {bool: "", int: "N", float: "N"}.get(kind, "TEXT"),
        help=" ".join((field.description or "").split()),
        rich_help_panel=heading,
    )
    annotation: Any = Annotated[kind | None, option]
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
    )


def _kind(field: FieldInfo) -> Any:
    """Return the type of an option for typer; pydantic reads lists and values like `N|off`."""
    kind: Any = field.annotation
    while get_origin(kind) in (Union, UnionType, Annotated):
        kind = get_args(kind)[0]
    if get_origin(kind) in (Mapping, Sequence):
        return list[str]
    if kind in (bool, int, float) and "|" not in of_command(field).get("metavar", ""):
        return kind
    return str


def read_options(values: Mapping[str, Any]) -> dict[str, Any]:
    """Check the options that were given, and read their values."""
    options = {name: value for name, value in values.items() if value not in (None, "", [])}
    if path := options.get("system"):
        try:
            options["system"] = readers.read_text(readers.as_path(path)).strip()
        except BadInput as error:
            raise BadInput(f"--system {error}") from None
        if not options["system"]:
            raise BadInput(f"--system {path}: is empty; leave it out for no system message")
    return RunConfig.of(options, command=True).model_dump(exclude_unset=True)
