"""The second room: items become requests, answers become parsed values.

A benchmark's tasks module has `TASKS`, `SETTINGS`, `concerns(item, task)`, `unfit(item, task)`, `verbs(task, read)`,
`judged(task, settings)`, `requests(items, wording, task, way, settings, seed)`, `parse(task, request, response, item)` and
`readable_values(task, request, item)`. Wording is read from TOML files (`wording`), never written in code.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from bench.benchmarks import module
from bench.core.errors import BadInput, expected
from bench.tasks.request import Setting, Way

# How a choice is read, and by which verb: the reply's words, or the likeliest letter or text of an option.
READ = {"text": "generate", "letters": "choose", "options": "choose"}


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
                expected(name, known, f"setting of {benchmark}")
                if known
                else f"{benchmark} has no settings"
            )
            raise BadInput(f"--set {name}={value}: {which}")
        if value not in known[name].allowed:
            raise BadInput(
                f"--set {name}={value}: " + expected(value, known[name].allowed, f"value of {name}")
            )
    return {name: given.get(name, setting.under(preset)) for name, setting in known.items()}


def released_limit(benchmark: str, prompt_version: str) -> int | None:
    """Find how many tokens the released script of a wording lets a reply have.

    None for other wordings, and for benchmarks whose scripts are not told apart.
    """
    find = getattr(module("tasks", benchmark), "script", None)
    script = find(prompt_version) if find else None
    return script.max_new_tokens if script else None


def of_data(benchmark: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Those of a benchmark's settings that its data module takes."""
    return {name: settings[name] for name in module("data", benchmark).SETTINGS}


def way(
    benchmark: str, task: str, read: str | None, verbs: Sequence[str], reads: Sequence[str]
) -> Way | None:
    """How a model is asked for `task`; None where it cannot be.

    Args:
        read: how a choice is read, one of `READ`; what the model does best if None.
        verbs, reads: what the model can do, and how it can be read, the best first.

    Raises:
        BadInput: an unknown `read`.
    """
    if read is not None and read not in READ:
        raise BadInput(expected(read, READ, "way to read answers"))
    verbs_of = module("tasks", benchmark).verbs
    ways: Sequence[str | None] = [read] if read else reads or [None]
    for how in ways:
        # Whoever says how to read means a language model's answer, also of a model that can classify.
        able = sorted(verbs_of(task, how), key=lambda verb: read is not None and verb != READ[read])
        for verb in able:
            chosen = how is not None and READ[how] == "choose" == verb
            if verb in verbs and not (chosen and how not in reads):
                return Way(verb, how if how and READ[how] == verb else "text")
    return None


def reading(read: str | None, ways: Sequence[str] = ("text", "letters")) -> tuple[str, ...]:
    """The verbs that answer a multiple-choice question under `read`, one of the `ways` in which it can be asked."""
    return tuple(dict.fromkeys(READ[name] for name in ways if read in (None, name)))
