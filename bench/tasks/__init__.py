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
ANSWER_MODES = {"text": "generate", "letters": "choose", "options": "choose"}


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
    chosen: str | None,
    request_types: Sequence[str],
    answer_modes: Sequence[str],
) -> AnswerMode | None:
    """Choose the request type and the answer mode of a task; return None if the model has neither.

    Args:
        chosen: the answer mode, one of `ANSWER_MODES`; by default the model's best one.
        request_types, answer_modes: the model's request types and answer modes, the best first.
    """
    for mode in [chosen] if chosen else answer_modes or [""]:
        of_mode = ANSWER_MODES.get(mode)
        for_task = task.request_types_for(mode or None)
        if chosen:  # then we prefer it to `classify`, which needs no answer mode
            for_task = tuple(sorted(for_task, key=lambda name: name != of_mode))
        for request_type in for_task:
            is_missing = request_type == of_mode == "choose" and mode not in answer_modes
            if request_type in request_types and not is_missing:
                return AnswerMode(request_type, mode if request_type == of_mode else "text")
    return None
