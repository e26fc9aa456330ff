"""The second room: items become requests, answers become parsed values.

A benchmark's tasks module has `TASKS`, `SETTINGS`, `concerns(item, task)`, `unfit(item, task)`, `verbs(task, read)`, `judged(task, settings)`,
`requests(items, wording, task, verb, settings, seed)` and `parse(task, request, response, item)`. Wording is read from TOML files
(`wording`), never written in code.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from bench.benchmarks import module
from bench.errors import BadInput, expected
from bench.tasks.request import Setting

READ = ("text", "letters")


def chosen(benchmark: str, tasks: Sequence[str] | None) -> list[str]:
    """The tasks asked for, in the benchmark's order; all of them without a choice.

    Raises:
        BadInput: an unknown task.
    """
    known: dict[str, Any] = module("tasks", benchmark).TASKS
    for name in tasks or ():
        if name not in known:
            raise BadInput(expected(name, known, f"task of {benchmark}"))
    return [name for name in known if not tasks or name in tasks]


def settings(benchmark: str, given: Mapping[str, str], preset: str) -> dict[str, str]:
    """Every setting of a benchmark: as given, else as `preset` asks, else the default. Those of its data stand first.

    Raises:
        BadInput: an unknown setting or value.
    """
    known: dict[str, Setting] = {
        **{name: Setting(allowed) for name, allowed in module("data", benchmark).SETTINGS.items()},
        **module("tasks", benchmark).SETTINGS,
    }
    for name, value in given.items():
        if name not in known:
            which = (
                expected(name, known, f"setting of {benchmark}") if known else f"{benchmark} has no settings"
            )
            raise BadInput(f"--set {name}={value}: {which}")
        if value not in known[name].allowed:
            raise BadInput(
                f"--set {name}={value}: " + expected(value, known[name].allowed, f"value of {name}")
            )
    return {name: given.get(name, setting.under(preset)) for name, setting in known.items()}


def of_data(benchmark: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Those of a benchmark's settings that its data module takes."""
    return {name: settings[name] for name in module("data", benchmark).SETTINGS}


def verb(benchmark: str, task: str, read: str | None, verbs: Sequence[str]) -> str | None:
    """The verb with which a model that has `verbs` is asked for `task`; None where it has none that serves.

    `read` says how a choice is read: `text` (generated), `letters` (probabilities of the options); None takes what the
    model can, text first.
    """
    if read is not None and read not in READ:
        raise BadInput(expected(read, READ, "way to read answers"))
    wanted: tuple[str, ...] = module("tasks", benchmark).verbs(task, read)
    return next((name for name in wanted if name in verbs), None)


def reading(read: str | None) -> tuple[str, ...]:
    """The verbs that answer a multiple-choice question under `read`, the first one preferred."""
    return {None: ("generate", "choose"), "text": ("generate",), "letters": ("choose",)}[read]
