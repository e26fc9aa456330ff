"""Requests about items, and values read from replies.

Prompts are in TOML files (`bench.tasks.prompts`), never in code.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bench.core.errors import BadInput, expected
from bench.tasks.request import AnswerMode

if TYPE_CHECKING:
    from bench.benchmarks.base import Benchmark, Task

# The verdicts on an answer; `unknown` is an answer that it is not known, although facts are given.
VERDICTS = ("stereotyped", "right", "unknown", "other", "unreadable")
# The request type of each answer mode: a generated reply, or probabilities of letters or options.
READ = {"text": "generate", "letters": "choose", "options": "choose"}


def chosen(benchmark: "Benchmark", tasks: Sequence[str] | None) -> list[str]:
    """Return the chosen tasks in the benchmark's order; all by default.

    Raises:
        BadInput: an unknown task.
    """
    available = benchmark.tasks
    for name in tasks or ():
        if name not in available:
            raise BadInput(expected(name, available, f"task of {benchmark.name}"))
    return [name for name in available if not tasks or name in tasks]


def settings(benchmark: "Benchmark", chosen: Mapping[str, str], preset: str) -> dict[str, str]:
    """Return the value of every setting of a benchmark, by default the preset's.

    Raises:
        BadInput: an unknown setting or value.
    """
    available = benchmark.settings
    for name, value in chosen.items():
        reason = ""
        if not available:
            reason = f"{benchmark.name} has no settings"
        elif name not in available:
            reason = expected(name, available, f"setting of {benchmark.name}")
        elif value not in available[name].allowed:
            reason = expected(value, available[name].allowed, f"value of {name}")
        if reason:
            raise BadInput(f"--set {name}={value}: {reason}")
    return {name: chosen.get(name, setting.under(preset)) for name, setting in available.items()}


def of_data(benchmark: "Benchmark", settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a benchmark's loader."""
    available = benchmark.settings
    return {name: settings[name] for name in available if available[name].of_data}


def answer_mode(
    task: "Task",
    read: str | None,
    request_types: Sequence[str],
    answer_modes: Sequence[str],
) -> AnswerMode | None:
    """Choose the request type and the answer mode of a task; return None if the model has neither.

    Args:
        read: the answer mode, one of `READ`; by default the model's best one.
        request_types, answer_modes: the model's request types and answer modes, the best first.
    """
    modes: Sequence[str | None] = [read] if read else answer_modes or [None]
    for how in modes:
        # If the user chose an answer mode, we prefer it to `classify`, which needs none.
        able = sorted(
            task.request_types_for(how), key=lambda name: read is not None and name != READ[read]
        )
        for request_type in able:
            chosen = how is not None and READ[how] == "choose" == request_type
            if request_type in request_types and not (chosen and how not in answer_modes):
                return AnswerMode(
                    request_type, how if how and READ[how] == request_type else "text"
                )
    return None
