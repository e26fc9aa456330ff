"""Make the options of `bench run` on the command line from the fields of `RunConfig`."""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from bench.config import LIMITS, Limits, RunConfig, as_flag, of_command
from bench.core.errors import BadInput

# The options of `bench run` by the heading that they have in the help, in its order.
GROUPS: Mapping[str, Sequence[str]] = {
    "Options": (
        *("model", "as_model", "limit", "categories", "tasks", "read", "judge", "as_judge", "data"),
        *("preset", "settings", "full", "format", "name", "out", "source"),
    ),
    "Before it is asked": ("dry_run", "price", "judge_price"),
    "What is asked": ("prompts", "system", "template_arguments", "repeats", "seed", "label_names"),
    "How replies are written": ("max_new_tokens", "thinking_tokens", "temperature", "top_p"),
    "Where the model comes from and runs": (
        *("revision", "base", "trust_remote_code", "device", "dtype", "batch_tokens", "scheduler"),
        "resources",
    ),
    "Endpoints": ("keys", "request_fields", *LIMITS),
}
TEMPLATE = "template."
# What decides the requests of a batch.
OF_REQUESTS = (
    *("as_model", "as_judge", "limit", "categories", "tasks", "read", "data", "preset", "settings"),
    *("prompts", "system", "template_arguments", "repeats", "seed", "max_new_tokens"),
    *("thinking_tokens", "temperature", "top_p", "request_fields"),
)
# What chooses the questions of a benchmark.
OF_QUESTIONS = ("limit", "categories", "data", "settings", "prompts")
OPTIONS = {name: k for k, name in enumerate(chain(*GROUPS.values()))}


def examples(*calls: str) -> str:
    """Return what a help text ends with: calls of `bench`."""
    return "\n\n".join(["Examples:", *(f"  bench {call}" for call in calls)])


def flag(name: str, help: str) -> Any:
    """Describe an option without a value."""
    return typer.Option(name, metavar="", help=help)


def with_run_options(command: Callable[..., None], *names: str) -> Callable[..., None]:
    """Give a command the options of a run in place of its `**given`; by default all of them."""
    own = [
        parameter
        for parameter in inspect.signature(command).parameters.values()
        if parameter.kind is not parameter.VAR_KEYWORD
    ]
    options = [option for option in _run_parameters() if not names or option.name in names]
    parameters = sorted([*own, *options], key=lambda parameter: OPTIONS.get(parameter.name, -1))
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _run_parameters() -> list[inspect.Parameter]:
    """Return the options of a run, but the benchmark, as parameters for typer.

    One that is not given is None, a flag False.
    """
    parameters = []
    groups = {name: title for title, group in GROUPS.items() for name in group}
    fields = {**RunConfig.model_fields, **{name: Limits.model_fields[name] for name in LIMITS}}
    for name in (name for name in fields if name not in ("benchmark", "limits")):
        annotation, metavar = fields[name].annotation, of_command(name)["metavar"]
        # What typer parses: a list of texts like NAME=VALUE, a text, or a number.
        types = [annotation, *get_args(annotation)]
        kind: Any = next((type for type in (bool, int, float) if type in types), str)
        if "=" in metavar:
            kind = list[str]
        elif name in READERS:
            kind = str
        metavar = metavar or ("" if kind is bool else "TEXT" if kind is str else "N")
        described = typer.Option(
            as_flag(name),
            metavar=metavar,
            help=fields[name].description,
            show_default=False,
            rich_help_panel=groups[name],
        )
        parameters.append(
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=False if kind is bool else None,
                annotation=Annotated[kind if kind is bool else kind | None, described],
            )
        )
    return parameters


def read_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Read the options of a run from what typer has parsed; those not given are left out.

    `--set template.NAME=VALUE` is another spelling of `--template NAME=VALUE`.
    """
    of_template = [text for text in given.get("settings") or () if text.startswith(TEMPLATE)]
    if of_template:
        arguments = [text.removeprefix(TEMPLATE) for text in of_template]
        given = {
            **given,
            "settings": [text for text in given["settings"] if text not in of_template],
            "template_arguments": [*(given["template_arguments"] or ()), *arguments],
        }
    options = {
        name: READERS[name](value) if name in READERS else value
        for name, value in given.items()
        if value is not None and value is not False and value not in ("", [])
    }
    options |= {"limits": {n: options.pop(n) for n in LIMITS if n in options}}
    RunConfig.of(options, command=True)
    return options


def listed(names: str) -> list[str] | None:
    """Split comma-separated names; None if there are none."""
    return [name.strip() for name in names.split(",") if name.strip()] or None


def pairs(given: Sequence[str], option: str, example: str) -> dict[str, str]:
    """Read `NAME=VALUE`, given once per name; `option` and `example` are for the error message."""
    values: dict[str, str] = {}
    for text in given:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not name:
            raise BadInput(f"{option} {text}: expected NAME=VALUE, like {example}")
        if name in values:
            raise BadInput(f"{option} {name}: is given twice; give it once")
        values[name] = value
    return values


def read_settings(given: Sequence[str]) -> dict[str, str]:
    """Read `--set NAME=VALUE`."""
    return pairs(given, "--set", "context_order=none")


def _json_pairs(option: str, example: str) -> Callable[[Sequence[str]], dict[str, Any]]:
    def value_of(text: str) -> Any:
        try:
            return json.loads(text)
        except ValueError:
            return {"True": True, "False": False, "None": None}.get(text, text)

    return lambda given: {k: value_of(text) for k, text in pairs(given, option, example).items()}


def _thinking_tokens(text: str) -> int:
    if text == "off":
        return 0
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise BadInput(f"--thinking-tokens {text}: expected a whole number of at least 1, or off")
    return int(text)


def _system_text(file: str) -> str:
    try:
        text = Path(file).expanduser().read_text("utf-8").strip()
    except (OSError, ValueError) as error:
        raise BadInput(f"--system {file}: cannot be read as a UTF-8 text ({error})") from None
    if not text:
        raise BadInput(f"--system {file}: is empty; leave the option out for no system message")
    return text


def _keys(given: Sequence[str]) -> dict[str, str]:
    """Read `HOST=NAME`; what is misspelt can be a key, so it is not repeated."""
    from bench.scorers.endpoint.keys import EXPECTED

    try:
        return pairs(given, "--key", "")
    except BadInput:
        raise BadInput(EXPECTED) from None


def _resources(text: str) -> dict[str, float]:
    from bench.run.cluster import check_resources

    given = pairs([*filter(None, text.split(","))], "--resources", "GPU=1")
    try:
        return check_resources({name: float(value) for name, value in given.items()})
    except ValueError:
        raise BadInput(f"--resources {text}: expected NAME=NUMBER, like GPU=1") from None


def _prices(text: str) -> list[float]:
    try:
        return [float(number) for number in text.split(",")]
    except ValueError:
        raise BadInput(f"--price {text}: expected IN,OUT, two numbers like 0.8,2") from None


# What reads options that typer cannot parse.
READERS: Mapping[str, Callable[[Any], Any]] = {
    "categories": listed,
    "tasks": listed,
    "label_names": listed,
    "settings": read_settings,
    "template_arguments": _json_pairs("--template", "enable_thinking=false"),
    "request_fields": _json_pairs("--request-field", "reasoning_effort=low"),
    "thinking_tokens": _thinking_tokens,
    "system": _system_text,
    "resources": _resources,
    "price": _prices,
    "judge_price": _prices,
    "keys": _keys,
}
