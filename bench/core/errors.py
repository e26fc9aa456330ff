"""Errors: the caller can fix the input (`BadInput`), or the work failed (`RunFailed`)."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

# Characters of a message; we shorten a longer one, which quotes a cell or a reply.
LONGEST = 2000
MAX_QUOTED_CHARS = 100
# Names of types for pydantic's kinds of errors.
TYPES = {
    "string_type": "a text; put quotes around it",
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
    """The call or the data is wrong; the message names the place and the remedy in one line.

    For this error, the command prints no traceback and ends with status 2.
    """

    def __init__(self, message: str) -> None:
        if len(message) > LONGEST:
            message = f"{message[: LONGEST // 2]} … {message[-LONGEST // 2 :]}"
        super().__init__(plain(message))


class NotApplicable(BadInput):
    """A model cannot do some of the tasks."""


class NoRuns(BadInput):
    """An analysis has no runs of its kind; a report skips it and gives the reason."""


class AnotherRun(BadInput):
    """A folder holds a run with other settings; `identity` is the identity of the planned run."""

    def __init__(self, message: str, identity: str) -> None:
        super().__init__(message)
        self.identity = identity


class RunFailed(Exception):
    """The call was right, but the work failed (status 1)."""


class BudgetSpent(RunFailed):
    """A budget of requests or tokens is spent."""


@contextmanager
def explain_others(error_type: type[Exception], before: str, after: str = "") -> Iterator[None]:
    """Turn any exception of other people's code in this block, also `sys.exit`, into our error.

    Args:
        error_type: the class of the error, `BadInput` or `RunFailed`.
        before: the beginning of its message; the class and the first line of the cause follow.
        after: the end of its message.

    Examples:
        >>> with explain_others(RunFailed, "the model raised "):
        ...     raise SystemExit("set MY_KEY")
        Traceback (most recent call last):
        bench.core.errors.RunFailed: the model raised SystemExit: set MY_KEY
    """
    try:
        yield
    except KeyboardInterrupt:  # of the user
        raise
    except BaseException as error:
        line = str(error).partition("\n")[0]
        reason = f"{type(error).__name__}: {line}".removesuffix(": ")
        raise error_type(f"{before}{reason}{after}") from error


def expected(value: object, allowed: Iterable[object], name: str) -> str:
    """Return the message for an unknown value, with the allowed ones.

    Examples:
        >>> expected("cbqq", ["mcbe", "cbbq"], "benchmark")
        "benchmark 'cbqq' is unknown; allowed: mcbe, cbbq; did you mean cbbq?"
    """
    names = list(map(str, allowed))
    meant = closest(str(value), names)
    suggestion = f"; did you mean {meant}?" if meant else ""
    return f"{name} {quoted(value)} is unknown; allowed: {', '.join(names)}{suggestion}"


def closest(value: str, allowed: Iterable[str]) -> str:
    """Return the allowed name that is most similar to a misspelt one; "" if none is similar."""
    return next(iter(get_close_matches(value.lower(), list(allowed), n=1)), "")


def explained(error: Mapping[str, Any]) -> str:
    """Explain an error of pydantic's `ValidationError` about a value."""
    kind, value, message = error["type"], error["input"], error["msg"]
    if kind == "missing":
        return "is missing"
    if kind in TYPES:
        return f"{quoted(value)} is not {TYPES[kind]}"
    message = message.removeprefix("Value error, ").replace("Input should be", "it has to be")
    message = message.replace("greater than or equal to", "at least")
    message = message.replace("less than or equal to", "at most").replace("greater than", "above")
    if kind == "value_error" and isinstance(value, Mapping):  # about several values together
        return message
    return f"{quoted(value)} is not allowed; {message}"


def quoted(value: object) -> str:
    """Return a value as Python writes it, shortened."""
    try:
        is_long = isinstance(value, str) and len(value) > MAX_QUOTED_CHARS
        text = repr(value[:MAX_QUOTED_CHARS] + "…" if is_long else value)  # type: ignore[index]
    except (RecursionError, ValueError):  # nested deeply, or a number of thousands of digits
        text = f"a long {type(value).__name__}"
    return text if len(text) <= 2 * MAX_QUOTED_CHARS else f"{text[:MAX_QUOTED_CHARS]}…"


def plain(text: str) -> str:
    """Return `text` on one line, with escapes for control characters and invisible ones."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in text
    )
