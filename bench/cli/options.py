"""Make the options of a command from the fields of a pydantic model, and read their values.

This model is the only place with names, help texts, defaults and limits. On the command line, lists
of names are comma-separated; files and NAME=VALUE are repeated options.
"""

import inspect
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import wraps
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from bench.config import (
    BuildOptions,
    Generation,
    Limits,
    Options,
    RunConfig,
    TrainOptions,
    Where,
    group_of,
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
OF_REQUESTS -= {"model", "judge", "name", "revision", "base", "label_names"}
# Models of the options of commands, and the names of these options.
OF_COMMANDS: Mapping[str, tuple[type[Options], Collection[str]]] = {
    "run": (RunConfig, RunConfig.described()),
    "requests": (RunConfig, OF_REQUESTS),
    "export": (RunConfig, ("limit", "categories", "data", "settings", "prompts")),
    "data": (RunConfig, ("data", "settings")),
    "expand": (RunConfig, ("data",)),
    "build": (BuildOptions, BuildOptions.described()),
    "train": (TrainOptions, TrainOptions.described()),
}


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of its model in place of `**options`."""
    if command.__name__ not in OF_COMMANDS:
        return command
    model, names = OF_COMMANDS[command.__name__]
    *own, _options = inspect.signature(command).parameters.values()
    declared = {parameter.name for parameter in own}
    headings = {name: title for part, title in HEADINGS.items() for name in part.described()}
    if model is not RunConfig:
        headings = {}
    parameters = [
        _parameter(name, model.flag(name), field, headings.get(name))
        for name, field in model.described().items()
        if name in names and name not in declared
    ]
    # Arguments come first, and options with a heading last.
    listed = sorted([*parameters, *own], key=lambda one: (one.kind, one.name in headings))

    @wraps(command)
    def call(**given: Any) -> None:
        command(**read_options(model, given) | {name: given[name] for name in declared})

    call.__signature__ = inspect.Signature(listed)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in listed}
    return call


def _parameter(name: str, flag: str, field: FieldInfo, heading: str | None) -> inspect.Parameter:
    """Return an option as a parameter for typer; its default is None, or False for a flag."""
    extra, help = of_command(field), " ".join((field.description or "").split())
    kind: Any = _type(field)[0]
    if kind in (Mapping, Sequence):
        kind = list[str]
    elif kind not in (bool, int, float) or "|" in extra.get("metavar", ""):  # such as N|off
        kind = str
    default: Any = False if kind is bool else None
    if field.is_required():
        default = inspect.Parameter.empty
    elif kind in (int, float, str) and "default:" not in help.lower():  # typer shows it then
        default = field.default
    usual = {bool: "", int: "N", float: "N"}.get(kind, "TEXT")
    option = typer.Option(
        *filter(None, [extra.get("alias"), flag]),
        metavar=extra.get("metavar") or usual,
        help=help,
        show_default=default is not None and default is not False,
        rich_help_panel=heading,
    )
    annotation: Any = Annotated[kind | None if default is None else kind, option]
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


def read_options(model: type[Options], given: Mapping[str, Any]) -> dict[str, Any]:
    """Read and check options from the values of typer; ignore empty values and other names."""
    options: dict[str, Any] = {}
    for name, value in given.items():
        if value is None or value is False or value in ("", [], {}):
            continue
        for group, field in model.model_fields.items():
            if name == group:
                options[name] = _value(model, name, value)
            elif (part := group_of(field)) and name in part.model_fields:
                options.setdefault(group, {})[name] = _value(part, name, value)
    config = model.of(options, command=True)
    return config.model_dump(include=set(options), exclude_unset=True)


def _type(field: FieldInfo) -> tuple[Any, list[Any]]:
    """Return the first type of a field and its parameters, without annotations."""
    kind: Any = field.annotation
    while get_origin(kind) in (Union, UnionType, Annotated):
        kind = get_args(kind)[0]
    parameters = [
        get_args(one)[0] if get_origin(one) is Annotated else one for one in get_args(kind)
    ]
    return get_origin(kind) or kind, parameters


def _value(model: type[Options], name: str, given: Any) -> Any:
    """Read the value of an option by its type."""
    field = model.model_fields[name]
    kind, parameters = _type(field)
    if name == "system":
        try:
            text = readers.read_text(readers.as_path(given)).strip()
        except BadInput as error:
            raise BadInput(f"--system {error}") from None
        if not text:
            raise BadInput(f"--system {given}: is empty; leave it out for no system message")
        return text
    if kind is Mapping:
        texts = ",".join(given).split(",") if parameters[1] is float else given
        read: Any = {str: str, float: _number}.get(parameters[1], _json)
        try:
            values = pairs(texts, model.flag(name), of_command(field).get("metavar") or "NAME=N")
        except BadInput:
            if name != "keys":
                raise
            from bench.scorers.endpoint.keys import EXPECTED

            raise BadInput(EXPECTED) from None  # a misspelt value can be a key
        return {key: read(value) for key, value in values.items()}
    if kind is Sequence and Path not in get_args(parameters[0]):  # a path can hold commas
        texts = [part.strip() for text in given for part in text.split(",") if part.strip()]
        return [_number(text) for text in texts] if parameters[0] is float else texts
    return given


def pairs(given: Sequence[str], option: str, form: str = "NAME=VALUE") -> dict[str, str]:
    """Read texts like `NAME=VALUE`; `option` and `form` are for the error message."""
    values: dict[str, str] = {}
    for text in given:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name:
            raise BadInput(f"{option} {text}: expected {form}")
        if name in values:
            raise BadInput(f"{option} {name}: is given twice; give it once")
        values[name] = value
    return values


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return {"True": True, "False": False, "None": None}.get(text, text)


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
