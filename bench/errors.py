"""The ways in which the workbench refuses: the caller can mend it (`BadInput`), or the run failed (`RunFailed`)."""


class BadInput(Exception):
    """The call or the data is wrong. The message is one sentence that names the place and the way out.

    The command prints it without a traceback and ends with status 2.
    """


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
    return f"{what} {value!r} is unknown; allowed: {names}"
