"""Requests made of items, and replies read as values.

Prompts are read from TOML files (`bench.tasks.prompts`), never written in code.
"""

from collections.abc import Mapping, Sequence

from bench.benchmarks import get
from bench.core.errors import BadInput, expected
from bench.tasks.request import Way

# The verdicts on an answer: it follows the stereotype; it is right; it says that
# nothing is known though facts are given; it is another answer; it could not be read.
VERDICTS = ("stereotyped", "right", "unknown", "other", "unreadable")
# How a choice is read: in a generated reply, or by the probabilities of letters or option texts.
READ = {"text": "generate", "letters": "choose", "options": "choose"}


def chosen(benchmark: str, tasks: Sequence[str] | None) -> list[str]:
    """Return the chosen tasks in the benchmark's order; all by default.

    Raises:
        BadInput: an unknown task.
    """
    known = get(benchmark).tasks
    for name in tasks or ():
        if name not in known:
            raise BadInput(expected(name, known, f"task of {benchmark}"))
    return [name for name in known if not tasks or name in tasks]


def settings(benchmark: str, given: Mapping[str, str], preset: str) -> dict[str, str]:
    """Return every setting of a benchmark: as given, or the preset's; data settings first.

    Raises:
        BadInput: an unknown setting or value.
    """
    known = get(benchmark).settings
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


def of_data(benchmark: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a benchmark's loader."""
    known = get(benchmark).settings
    return {name: settings[name] for name in known if known[name].of_data}


def way(
    benchmark: str, task: str, read: str | None, verbs: Sequence[str], reads: Sequence[str]
) -> Way | None:
    """Choose how a model is asked in a task; return None if it cannot be.

    Args:
        read: how a choice is read, one of `READ`; by default what the model does best.
        verbs, reads: what the model can do, and how it can be read, the best first.
    """
    verbs_of = get(benchmark).tasks[task].verbs
    ways: Sequence[str | None] = [read] if read else reads or [None]
    for how in ways:
        # A given way of reading means a language model's answer, also of a model that can classify.
        able = sorted(verbs_of(how), key=lambda verb: read is not None and verb != READ[read])
        for verb in able:
            chosen = how is not None and READ[how] == "choose" == verb
            if verb in verbs and not (chosen and how not in reads):
                return Way(verb, how if how and READ[how] == verb else "text")
    return None
