"""Make the options of a command from the fields of a pydantic model, and read their values.

This model is the only place with names, help texts, defaults and limits. On the command line, lists
of names are comma-separated; files and NAME=VALUE are repeated options.
"""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from bench.config import Options, group_of, of_command
from bench.core.errors import BadInput

# The options of `bench run` by their heading in the help, in its order.
GROUPS: Mapping[str, Sequence[str]] = {
    "Options": (
        *("model", "as_model", "limit", "categories", "tasks", "read", "judge", "as_judge", "data"),
        *("preset", "settings", "full", "format", "name", "out", "source"),
    ),
    "Cost estimate": ("dry_run", "price", "judge_price", "speed"),
    "Prompt": ("prompts", "system", "template_arguments", "repeats", "seed", "label_names"),
    "Generation": ("max_new_tokens", "thinking_tokens", "temperature", "top_p"),
    "Model loading": (
        *("revision", "base", "trust_remote_code", "device", "dtype", "batch_tokens", "scheduler"),
        "resources",
    ),
    "Endpoints": (
        *("keys", "request_fields", "concurrency", "timeout", "budget_requests", "budget_tokens"),
    ),
}
# Options that decide the requests of a batch.
OF_REQUESTS = (
    *("as_model", "as_judge", "limit", "categories", "tasks", "read", "data", "preset", "settings"),
    *("prompts", "system", "template_arguments", "repeats", "seed", "max_new_tokens"),
    *("thinking_tokens", "temperature", "top_p", "request_fields"),
)
# Options that choose the questions of a benchmark.
OF_QUESTIONS = ("limit", "categories", "data", "settings", "prompts")


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
    return typer.Option(False, flag, metavar="", help=help, show_default=False)


def with_options(
    command: Callable[..., None],
    model: type[Options],
    names: Sequence[str] = (),
    groups: Mapping[str, Sequence[str]] | None = None,
) -> Callable[..., None]:
    """Give a command the options of a model in place of its `**values`.

    Args:
        names: only these options; default: all options that the command does not declare itself.
        groups: options by their heading in the help, in its order; default: one group.
    """
    own = [
        parameter
        for parameter in inspect.signature(command).parameters.values()
        if parameter.kind is not parameter.VAR_KEYWORD
    ]
    declared = {parameter.name for parameter in own}
    headings = {name: title for title, group in (groups or {}).items() for name in group}
    options = [
        _parameter(model, name, headings.get(name))
        for name in model.described()
        if name not in declared and (not names or name in names)
    ]
    order = {name: place for place, name in enumerate(headings)}
    parameters = sorted([*own, *options], key=lambda parameter: order.get(parameter.name, -1))
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


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


def _parameter(model: type[Options], name: str, heading: str | None) -> inspect.Parameter:
    """Return an option as a parameter for typer; its default is None, or False for a flag."""
    field = model.described()[name]
    kind, help = _kind(field), field.description or ""
    default: Any = False if kind is bool else None
    if field.is_required():
        default = inspect.Parameter.empty
    elif kind in (int, float, str) and "default:" not in help.lower():  # typer shows it then
        default = field.default
    usual = {bool: "", int: "N", float: "N"}.get(kind, "TEXT")
    option = typer.Option(
        *filter(None, [of_command(field).get("alias"), model.flag(name)]),
        metavar=of_command(field).get("metavar") or usual,
        help=help,
        show_default=default is not None and default is not False,
        rich_help_panel=heading,
    )
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind | None if default is None else kind, option],
    )


def _kind(field: FieldInfo) -> Any:
    """Return the type that typer parses: a number, a flag, a text, or several texts."""
    kind, _ = _type(field)
    if kind in (Mapping, Sequence):
        return list[str]
    is_text = "|" in of_command(field).get("metavar", "")  # N|off
    return kind if kind in (bool, int, float) and not is_text else str


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
        return _system_text(given)
    if name == "keys":
        return _keys(given)
    if kind is Mapping:
        texts = ",".join(given).split(",") if parameters[1] is float else given
        read: Any = {str: str, float: _number}.get(parameters[1], _json)
        values = pairs(texts, model.flag(name), of_command(field).get("metavar", "NAME=NUMBER"))
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


def _system_text(file: str) -> str:
    try:
        text = Path(file).expanduser().read_text("utf-8").strip()
    except (OSError, ValueError) as error:
        raise BadInput(f"--system {file}: cannot be read as a UTF-8 text ({error})") from None
    if not text:
        raise BadInput(f"--system {file}: is empty; leave the option out for no system message")
    return text


def _keys(given: Sequence[str]) -> dict[str, str]:
    """Read `HOST=NAME`; a misspelt value can be a key, so no message repeats it."""
    from bench.scorers.endpoint.keys import EXPECTED

    try:
        return pairs(given, "--key")
    except BadInput:
        raise BadInput(EXPECTED) from None
