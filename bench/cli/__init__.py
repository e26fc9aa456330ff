"""The `bench` command. Results go to standard output, everything else to standard error.

The exit status is 0 if all is done, 1 if the run failed, and 2 if the call or the data is wrong.
"""

import errno
import os
import re
import signal
import sys
from collections.abc import Sequence

import typer

from bench.benchmarks import names
from bench.cli import commands  # noqa: F401  (it adds the commands to the app)
from bench.cli.app import app
from bench.core.errors import BadInput, RunFailed, closest
from bench.core.progress import say

INTERRUPTED = 130
# Errors of standard output, for example in `bench ... | head`.
OUTPUT_ERRORS = (errno.EPIPE, errno.ENOSPC, errno.EIO)


def main() -> int:
    """Run the command, turn an error into one line, and return the exit status."""
    if sys.stdout is None:
        return _failed("standard output: cannot be written (it is closed)")
    try:
        status = _status()
        sys.stdout.flush()
        return status
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python flushes it once more
        if isinstance(error, BrokenPipeError):
            return 128 + signal.SIGPIPE
        return _failed(f"standard output: cannot be written ({error.strerror})")


def _failed(problem: object, status: int = 1) -> int:
    """Say what went wrong, and return the exit status."""
    say(f"bench: {problem}")
    return status


def _status(arguments: Sequence[str] | None = None) -> int:
    try:
        os.getcwd()
    except OSError:
        return _failed("the working folder is gone; change to another one", 2)
    try:
        status = int(app(arguments, standalone_mode=False) or 0)
        if status == INTERRUPTED:  # newer versions of typer return it for Ctrl-C
            raise KeyboardInterrupt
        return status
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # typer raises this for a closed pipe
            raise error.__context__ from None
        call = f"sys.exit({error.code!r})"
        return _failed(f"code of a model or a plug-in has ended the command: {call}")
    except (BadInput, RunFailed) as error:
        return _failed(error, 2 if isinstance(error, BadInput) else 1)
    except typer.Abort as error:  # older ones raise this
        raise KeyboardInterrupt from error
    except OSError as error:  # the disk is full, a folder is gone
        if not error.filename and error.errno in OUTPUT_ERRORS:
            raise
        return _failed(f"{f'{error.filename}: ' * bool(error.filename)}{error.strerror or error}")
    except Exception as error:
        # For a wrong call, versions of typer raise different classes with this method.
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        text = " ".join(message().split())
        unknown = re.search("No such command '(.+?)'", text)
        if unknown and (name := closest(unknown[1], names())):
            text += f" {name} is a benchmark: `bench run {name} --model MODEL` asks it."
        return _failed(text, 2)
