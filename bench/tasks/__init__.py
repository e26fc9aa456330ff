"""Requests made of items, and replies read as values.

A benchmark's tasks module offers what `Tasks` lists. Prompts are read from TOML files
(`bench.tasks.prompts`), never written in code.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from bench.benchmarks import module
from bench.core.errors import BadInput, expected
from bench.tasks.request import Request, Setting, Way

if TYPE_CHECKING:
    from bench.tasks.prompts import PromptSet

# What an answer says, see `Tasks.verdict_of`: it follows the stereotype; it is right; it says that
# nothing is known though facts are given; it is another answer; it could not be read.
VERDICTS = ("stereotyped", "right", "unknown", "other", "unreadable")
# How a choice is read: in a generated reply, or by the probabilities of letters or option texts.
READ = {"text": "generate", "letters": "choose", "options": "choose"}


class Tasks(Protocol):
    """The tasks module of a benchmark.

    One more function is optional: `script(prompt_version)`, the released script of a prompt set.

    Attributes:
        TASKS: title of each task, in the order in which they are asked.
        SETTINGS: settings of how items are asked.
    """

    TASKS: Mapping[str, str]
    SETTINGS: Mapping[str, Setting]

    def concerns(self, item: Any, task: str) -> bool:
        """Whether an item is asked in a task."""

    def unfit(self, item: Any, task: str) -> str:
        """Return why an item cannot be asked in a task that concerns it; empty if it can."""

    def verbs(self, task: str, read: str | None) -> tuple[str, ...]:
        """Return the scorer's verbs that can answer a task, the best first."""

    def judged(self, task: str, settings: Mapping[str, str]) -> str:
        """Return `needed` or `wanted` where a task has a use for a judge, else an empty text."""

    def requests(
        self,
        items: Sequence[Any],
        prompts: "PromptSet",
        task: str,
        way: Way,
        settings: Mapping[str, str],
        seed: int,
    ) -> Iterator[Request]:
        """Make the requests of a task, item by item."""

    def parse(self, task: str, request: str, response: str, item: Any) -> str:
        """Read a reply; return a value, or an empty text if it holds none."""

    def verdict_of(self, task: str, request: str, parsed: str, item: Any) -> str:
        """Return one of `VERDICTS` for an answer; empty where none is right or wrong."""

    def readable_values(self, task: str, request: str, item: Any) -> Mapping[str, str] | range:
        """Return the values that `parse` can read, each with its meaning."""


def chosen(benchmark: str, tasks: Sequence[str] | None) -> list[str]:
    """Return the chosen tasks in the benchmark's order; all by default.

    Raises:
        BadInput: an unknown task.
    """
    known = module("tasks", benchmark).TASKS
    for name in tasks or ():
        if name not in known:
            raise BadInput(expected(name, known, f"task of {benchmark}"))
    return [name for name in known if not tasks or name in tasks]


def settings(benchmark: str, given: Mapping[str, str], preset: str) -> dict[str, str]:
    """Return every setting of a benchmark: as given, or the preset's; data settings first.

    Raises:
        BadInput: an unknown setting or value.
    """
    known: dict[str, Setting] = {
        **{name: Setting(allowed) for name, allowed in module("data", benchmark).SETTINGS.items()},
        **module("tasks", benchmark).SETTINGS,
    }
    for name, value in given.items():
        reason = ""
        if not known:
            reason = f"{benchmark} has no settings"
        elif name not in known:
            reason = expected(name, known, f"setting of {benchmark}")
        elif value not in known[name].allowed:
            reason = expected(value, known[name].allowed, f"value of {name}")
        if reason:
            raise BadInput(f"--set {name}={value}: {reason}")
    return {name: given.get(name, setting.under(preset)) for name, setting in known.items()}


def released_limit(benchmark: str, prompt_version: str) -> int | None:
    """Find how many tokens the released script of a prompt set lets a reply have.

    None for other prompt sets, and for benchmarks whose scripts are not told apart.
    """
    find = getattr(module("tasks", benchmark), "script", None)
    script = find(prompt_version) if find else None
    return script.max_new_tokens if script else None


def of_data(benchmark: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a benchmark's data module."""
    return {name: settings[name] for name in module("data", benchmark).SETTINGS}


def way(
    benchmark: str, task: str, read: str | None, verbs: Sequence[str], reads: Sequence[str]
) -> Way | None:
    """Choose how a model is asked in a task; return None if it cannot be.

    Args:
        read: how a choice is read, one of `READ`; by default what the model does best.
        verbs, reads: what the model can do, and how it can be read, the best first.
    """
    verbs_of = module("tasks", benchmark).verbs
    ways: Sequence[str | None] = [read] if read else reads or [None]
    for how in ways:
        # A given way of reading means a language model's answer, also of a model that can classify.
        able = sorted(verbs_of(task, how), key=lambda verb: read is not None and verb != READ[read])
        for verb in able:
            chosen = how is not None and READ[how] == "choose" == verb
            if verb in verbs and not (chosen and how not in reads):
                return Way(verb, how if how and READ[how] == verb else "text")
    return None


def reading(read: str | None, ways: Sequence[str] = ("text", "letters")) -> tuple[str, ...]:
    """Return the verbs that answer a multiple-choice question that can be read in some ways."""
    return tuple(dict.fromkeys(READ[name] for name in ways if read in (None, name)))
