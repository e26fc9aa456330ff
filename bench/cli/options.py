"""The options of `bench run` on the command line, made from the fields of `RunConfig`."""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from bench.config import RunConfig
from bench.core.errors import BadInput


class CliOption(NamedTuple):
    """How an option is spelt on the command line.

    Attributes:
        type: the type that typer parses.
        read: turns what typer has parsed into the option's value; None stands for not given.
        flag: its name, where that is not the field's.
        metavar: what its value is called in the help.
    """

    type: Any
    read: Callable[[Any], Any] = lambda value: value
    flag: str = ""
    metavar: str | None = None


def run_parameters() -> list[inspect.Parameter]:
    """The parameters of `bench run` for typer, one per option of a run; each is None where not given."""
    return [
        _parameter(name, _spelling(name), RunConfig.model_fields[name].description or "")
        for name in RunConfig.model_fields
        if name not in ("benchmark", "limits")
    ]


def read_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a run from what typer has parsed; those that were not given are left out.

    Raises:
        BadInput: a value that is not spelt as the option needs it.
    """
    return {
        name: _spelling(name).read(value)
        for name, value in given.items()
        if value not in (None, "", []) and not (name == "trust_remote_code" and not value)
    }


def listed(names: str) -> list[str] | None:
    """Names set apart by commas; None where there is none."""
    return [name.strip() for name in names.split(",") if name.strip()] or None


def pairs(option: str, example: str) -> Callable[[Sequence[str]], dict[str, str]]:
    """A reader of `NAME=VALUE`, given once per name.

    Args:
        option, example: of the error message.
    """

    def read(given: Sequence[str]) -> dict[str, str]:
        values: dict[str, str] = {}
        for text in given:
            name, equals, value = text.partition("=")
            if not equals or not name.strip():
                raise BadInput(f"{option} {text}: expected NAME=VALUE, like {example}")
            if name.strip() in values:
                raise BadInput(f"{option} {name.strip()}: is given twice; give it once")
            values[name.strip()] = value.strip()
        return values

    return read


def _json_pairs(option: str, example: str) -> Callable[[Sequence[str]], dict[str, Any]]:
    """A reader of `NAME=VALUE` where the value is JSON, or else a text."""

    def value_of(text: str) -> Any:
        try:
            return json.loads(text)
        except ValueError:
            return text

    read_pairs = pairs(option, example)
    return lambda given: {name: value_of(text) for name, text in read_pairs(given).items()}


def _thinking_tokens(text: str) -> int:
    if text == "off":
        return 0
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise BadInput(f"--thinking-tokens {text}: expected a whole number of at least 1, or off")
    return int(text)


def _text_of(file: str) -> str:
    path = Path(file).expanduser()
    try:
        text = path.read_text("utf-8").strip()
    except (OSError, ValueError) as error:
        raise BadInput(f"--system {file}: cannot be read as a UTF-8 text ({error})") from None
    if not text:
        raise BadInput(f"--system {file}: is empty; leave the option out for no system message")
    return text


def _keys(given: Sequence[str]) -> dict[str, str]:
    """Read `HOST=NAME`; what is misspelt may be a key, so it is not repeated."""
    from bench.scorers.endpoint.keys import EXPECTED

    variables: dict[str, str] = {}
    for text in given:
        host, equals, name = (part.strip() for part in text.partition("="))
        if not (host and equals) or host in variables:
            raise BadInput(EXPECTED)
        variables[host] = name
    return variables


def _resources(text: str) -> dict[str, float]:
    from bench.run.cluster import resources

    return resources(text)


def _spelling(name: str) -> CliOption:
    numbers = {
        "limit": int,
        "repeats": int,
        "seed": int,
        "max_new_tokens": int,
        "batch_tokens": int,
        "temperature": float,
        "top_p": float,
        "trust_remote_code": bool,
    }
    others = {
        "categories": CliOption(str, listed),
        "tasks": CliOption(str, listed),
        "label_names": CliOption(str, listed),
        "settings": CliOption(
            list[str], pairs("--set", "context_order=none"), "--set", "NAME=VALUE"
        ),
        "template_arguments": CliOption(
            list[str],
            _json_pairs("--template", "enable_thinking=false"),
            "--template",
            "NAME=VALUE",
        ),
        "request_fields": CliOption(
            list[str],
            _json_pairs("--request-field", "reasoning_effort=low"),
            "--request-field",
            "NAME=VALUE",
        ),
        "thinking_tokens": CliOption(str, _thinking_tokens, metavar="N|off"),
        "system": CliOption(str, _text_of, metavar="FILE"),
        "resources": CliOption(str, _resources),
        "keys": CliOption(list[str], _keys, "--key", "HOST=NAME"),
    }
    return others.get(name) or CliOption(numbers.get(name, str))


def _parameter(name: str, option: CliOption, description: str) -> inspect.Parameter:
    flag = option.flag or f"--{name.replace('_', '-')}"
    spelled = typer.Option(flag, metavar=option.metavar, help=description, show_default=False)
    if option.type is bool:
        annotation: Any = Annotated[bool, spelled]
    else:
        annotation = Annotated[option.type | None, spelled]
    default = False if option.type is bool else None
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )
