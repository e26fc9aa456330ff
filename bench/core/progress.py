"""Progress of long work: a bar on a terminal and in a notebook, a line now and then elsewhere. On standard error.

In notebooks the bar is text too, because a widget is dead when a saved notebook is opened again. It is an output that
changes and is empty in the end, because a saved notebook would keep every state of a line that is written over.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench.core.text import reveal_invisible

# Seconds between two lines where no bar can be drawn.
EVERY = 30.0


class Progress:
    """Counts what is done of `total` and tells how it stands."""

    def __init__(self, total: int, what: str, unit: str, done: int = 0) -> None:
        self.total, self.what, self.unit, self.done = total, what, unit, done
        self._bar = _bar(total, what, unit, done) if _interactive() else None
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


def _bar(total: int, what: str, unit: str, done: int) -> Any:
    from tqdm import tqdm

    return tqdm(
        total=total,
        initial=done,
        desc=what,
        unit=f" {unit}",
        leave=False,
        delay=3,  # what is over in a moment needs no bar
        file=_Output() if in_notebook() else sys.stderr,
        ncols=100 if in_notebook() else None,
        # Each has an output of its own in a notebook, and none has to move to another's line.
        position=0 if in_notebook() else None,
    )


class _Output:
    """An output of a notebook's cell that shows the last line written, as a file for tqdm."""

    def __init__(self) -> None:
        self._shown: Any = None

    def write(self, text: str) -> None:
        from IPython.display import display

        line = {"text/plain": text.rsplit("\r", 1)[-1].strip()}
        if self._shown is None:
            self._shown = display(line, raw=True, display_id=True)
        else:
            self._shown.update(line, raw=True)

    def flush(self) -> None:
        pass


@contextmanager
def progress(total: int, what: str, unit: str, done: int = 0) -> Iterator[Progress]:
    """`with progress(100, "asking tiny:s", "requests") as bar: ...; bar.advance(10)`"""
    bar = Progress(total, what, unit, done)
    try:
        yield bar
    finally:
        bar.close()


def say(message: str) -> None:
    """A line for people, on standard error, so that standard output holds results alone.

    In a notebook, where results are not printed, on standard output, because Jupyter paints the other one red.
    """
    # What a model or a file said is told in errors too, and a terminal would act on its escapes.
    print(reveal_invisible(message), file=sys.stdout if in_notebook() else sys.stderr, flush=True)


def _interactive() -> bool:
    return sys.stderr.isatty() or in_notebook()


def in_notebook() -> bool:
    """Tell whether this process is a notebook's kernel; one that runs notebooks has IPython imported, too."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return getattr(shell, "kernel", None) is not None
