"""Errors: the caller can fix the input (`BadInput`), or the work failed (`RunFailed`)."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

# Characters of a message; a longer one quotes a cell or a reply.
LONGEST = 2000
SHOWN = 100
# What pydantic calls types, in words.
TYPES = {
    "string_type": "a text",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "sequence_str": "a list",
    "is_instance_of": "a list",
    "list_type": "a list",
    "mapping_type": "a mapping of names to values",
    "dict_type": "a mapping of names to values",
    "model_type": "a mapping of names to values",
}
# Ends the message of a run that did not finish.
CONTINUES = "the same command continues from what is recorded"


class BadInput(Exception):
    """The call or the data is wrong; the message is one line that says where and how to fix it.

    The command prints it without a traceback and ends with status 2.
    """

    def __init__(self, message: str) -> None:
        if len(message) > LONGEST:
            message = f"{message[: LONGEST // 2]} … {message[-LONGEST // 2 :]}"
        super().__init__(plain(message))


class NotApplicable(BadInput):
    """A model cannot do some of the tasks."""


class NoRuns(BadInput):
    """An analysis has no runs of its kind; a report leaves it out and says why."""


class AnotherRun(BadInput):
    """A folder holds a run with other settings; `identity` is that of the run that was meant."""

    def __init__(self, message: str, identity: str) -> None:
        super().__init__(message)
        self.identity = identity


class RunFailed(Exception):
    """The call was right, but the work failed (status 1)."""


class BudgetSpent(RunFailed):
    """A budget of requests or tokens is spent."""


def expected(value: object, allowed: str | Iterable[object], what: str) -> str:
    """Say that a value is unknown, and which are allowed."""
    if isinstance(allowed, str):
        return f"{what} {quoted(value)} is unknown; allowed: {allowed}"
    names = list(map(str, allowed))
    meant = closest(str(value), names)
    suggestion = f"; did you mean {meant}?" if meant else ""
    return f"{what} {quoted(value)} is unknown; allowed: {', '.join(names)}{suggestion}"


def closest(value: str, allowed: Iterable[str]) -> str:
    """Return the name that a misspelt one most likely means; "" if none is like it."""
    return next(iter(get_close_matches(value.lower(), list(allowed), n=1)), "")


def explained(error: Mapping[str, Any]) -> str:
    """Say what is wrong with a value, by one of the errors of pydantic's `ValidationError`."""
    kind, value, message = error["type"], error["input"], error["msg"]
    if kind == "missing":
        return "is missing"
    if kind in TYPES:
        return f"{quoted(value)} is not {TYPES[kind]}"
    message = message.removeprefix("Value error, ").replace("Input should be", "it has to be")
    if kind == "value_error" and isinstance(value, Mapping):  # of several values together
        return message
    return f"{quoted(value)} is not allowed; {message}"


def quoted(value: object) -> str:
    """Return a value as Python writes it, shortened."""
    try:
        text = repr(value[:SHOWN] + "…" if isinstance(value, str) and len(value) > SHOWN else value)
    except (RecursionError, ValueError):  # nested deeply, or a number of thousands of digits
        text = f"a long {type(value).__name__}"
    return text if len(text) <= 2 * SHOWN else f"{text[:SHOWN]}…"


def plain(text: str) -> str:
    """Return `text` on one line, with escapes for what a terminal would act on or cannot show."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in text
    )
