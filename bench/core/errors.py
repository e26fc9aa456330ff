"""The ways in which the workbench refuses: the caller can mend it (`BadInput`), or the run failed (`RunFailed`)."""

# A message says where and what; more characters than this are a cell or a reply that was quoted whole.
LONGEST = 2000
SHOWN = 100
# The end of a message about a run that did not come to its end.
CONTINUES = "the same command continues from what is recorded"


class BadInput(Exception):
    """The call or the data is wrong. The message is one sentence that names the place and the way out.

    The command prints it without a traceback and ends with status 2. It is one line whatever it quotes: names of files,
    and cells, may hold line breaks and what a terminal would act on.
    """

    def __init__(self, message: str) -> None:
        if len(message) > LONGEST:
            message = f"{message[: LONGEST // 2]} … {message[-LONGEST // 2 :]}"
        super().__init__(plain(message))


class NotApplicable(BadInput):
    """A model that cannot be asked some of the tasks."""


class NoRuns(BadInput):
    """An analysis that has no runs of the kind that it is about; a report leaves it out, and says why."""


class AnotherRun(BadInput):
    """A folder that already holds a run of other settings."""


class RunFailed(Exception):
    """The call was right, but the work could not be done (status 1)."""


def expected(value: object, allowed: object, what: str) -> str:
    """The common half sentence: which value was met, and which are allowed."""
    names = (
        ", ".join(map(str, allowed))
        if isinstance(allowed, list | tuple | set | frozenset | dict)
        else allowed
    )
    return f"{what} {quoted(value)} is unknown; allowed: {names}"


def quoted(value: object) -> str:
    """A value as Python writes it, cut where it is long."""
    try:
        text = repr(value[:SHOWN] + "…" if isinstance(value, str) and len(value) > SHOWN else value)
    except (RecursionError, ValueError):  # nested deeply, or a number of thousands of digits
        text = f"a long {type(value).__name__}"
    return text if len(text) <= 2 * SHOWN else f"{text[:SHOWN]}…"


def plain(text: str) -> str:
    """`text` on one line, with escapes for what a terminal would act on or cannot show."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in text
    )
