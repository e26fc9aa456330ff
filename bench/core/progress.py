"""Show progress: a bar on terminals and in notebooks, else a line now and then on standard error.

In notebooks the bar is text in an output that is empty at the end: a widget would be dead in a
saved notebook, and a saved line would keep all its states.
"""

import io
import sys
import time
from contextlib import closing
from typing import Any

from bench.core.text import reveal_invisible

# Seconds between two lines where no bar can be drawn.
EVERY = 30.0


class Progress:
    """Counts what is done of a total, and shows it."""

    def __init__(self, total: int, what: str, unit: str, done: int = 0) -> None:
        self.total, self.what, self.unit, self.done = total, what, unit, done
        self._printed = self._advanced = time.monotonic()
        self._bar: Any = None
        if _interactive():
            from tqdm import tqdm

            self._bar = tqdm(
                total=total,
                initial=done,
                desc=what,
                unit=f" {unit}",
                leave=False,
                delay=3,  # short work needs no bar
                file=_Output() if in_notebook() else sys.stderr,
                ncols=100 if in_notebook() else None,
                # Each bar has its own output in a notebook, so none moves to another's line.
                position=0 if in_notebook() else None,
            )

    def advance(self, n: int = 1) -> None:
        self.done += n
        if self._bar is not None:
            self._bar.update(n)
            return
        if n == 0:
            return
        now = time.monotonic()
        # The latest step alone counts: the first one can include loading a model.
        left = (now - self._advanced) / n * (self.total - self.done)
        self._advanced = now
        if now - self._printed >= EVERY and self.done < self.total:
            self._printed = now
            say(f"{self.what}: {self.done} of {self.total} {self.unit}, about {left:.0f} s left")

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


class _Output(io.StringIO):
    """A file for tqdm that shows the last line in an output of a notebook's cell."""

    _shown: Any = None

    def write(self, text: str) -> int:
        from IPython.display import display

        line = {"text/plain": text.rsplit("\r", 1)[-1].strip()}
        if self._shown is None:
            self._shown = display(line, raw=True, display_id=True)
        else:
            self._shown.update(line, raw=True)
        return len(text)


def progress(total: int, what: str, unit: str, done: int = 0) -> closing[Progress]:
    """Show progress: `with progress(100, "asking tiny:s", "requests") as bar: bar.advance()`."""
    return closing(Progress(total, what, unit, done))


def say(message: str) -> None:
    """Print a line on standard error; in a notebook on standard output, which is not red there."""
    print(reveal_invisible(message), file=sys.stdout if in_notebook() else sys.stderr, flush=True)


def _interactive() -> bool:
    return sys.stderr.isatty() or in_notebook()


def in_notebook() -> bool:
    """Tell whether this process is the kernel of a notebook."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return getattr(shell, "kernel", None) is not None
