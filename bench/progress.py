"""Progress of long work: a bar on a terminal and in a notebook, a line now and then elsewhere. On standard error.

In notebooks the bar is text too, because a widget is dead when a saved notebook is opened again, and on standard output,
because Jupyter paints the other one red.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tqdm import tqdm

# Seconds between two lines where no bar can be drawn.
EVERY = 30.0


class Progress:
    """Counts what is done of `total` and tells how it stands."""

    def __init__(self, total: int, what: str, unit: str, done: int = 0) -> None:
        self.total, self.what, self.unit, self.done = total, what, unit, done
        # What is over in a moment needs no bar.
        self._bar = (
            tqdm(
                total=total,
                initial=done,
                desc=what,
                unit=f" {unit}",
                leave=False,
                delay=3,
                file=sys.stdout if _in_notebook() else sys.stderr,
            )
            if _interactive()
            else None
        )
        self._told = self._advanced = time.monotonic()

    def advance(self, n: int = 1) -> None:
        self.done += n
        if self._bar is not None:
            self._bar.update(n)
            return
        if n == 0:
            return
        now = time.monotonic()
        # By the latest step alone: the first one may hold the loading or the training of a model.
        left = (now - self._advanced) / n * (self.total - self.done)
        self._advanced = now
        if now - self._told >= EVERY and self.done < self.total:
            self._told = now
            say(f"{self.what}: {self.done} of {self.total} {self.unit}, about {left:.0f} s left")

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


@contextmanager
def progress(total: int, what: str, unit: str, done: int = 0) -> Iterator[Progress]:
    """`with progress(100, "asking tiny:s", "requests") as bar: ...; bar.advance(10)`"""
    bar = Progress(total, what, unit, done)
    try:
        yield bar
    finally:
        bar.close()


def say(message: str) -> None:
    """A line for people, on standard error, so that standard output holds results alone."""
    print(message, file=sys.stderr, flush=True)


def _interactive() -> bool:
    return sys.stderr.isatty() or _in_notebook()


def _in_notebook() -> bool:
    return "ipykernel" in sys.modules
