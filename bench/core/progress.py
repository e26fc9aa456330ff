"""Show progress: a bar on terminals and in notebooks, else a line now and then on standard error.

In notebooks the bar is text in an output that is empty at the end: a widget would be dead in a
saved notebook, and a saved line would keep all its states.
"""

import io
import multiprocessing
import sys
import threading
import time
from collections import deque
from contextlib import closing
from typing import Any

from bench.core.process import CLEAR_LINE
from bench.core.text import reveal_invisible

# Seconds between two lines where no bar can be drawn.
EVERY = 30.0
# Seconds before a bar is shown; short work needs none.
DELAY = 3.0
# Seconds after which a speed means something, and that the recent speed is of.
MEANINGFUL, RECENT = 10.0, 60.0


class Progress:
    """Counts what is done of a total, and shows it with the time that the rest will take.

    The time rests on the recent speed by `size`, and is not shown before that is known.

    Attributes:
        size: of what is left, in a unit of work; by default all are of the same size.
    """

    def __init__(
        self, total: int, title: str, unit: str, done: int = 0, size: float | None = None
    ) -> None:
        self.total, self.title, self.unit, self.done = total, title, unit, done
        self.size = float(total - done if size is None else size)
        self._printed = time.monotonic()
        self.begin()
        self._bar: Any = None
        if _interactive():
            from tqdm import tqdm

            self._bar = tqdm(
                total=total,
                initial=done,
                desc=title,
                leave=False,
                delay=DELAY,
                file=_Output() if in_notebook() else sys.stderr,
                ncols=100 if in_notebook() else None,
                # Each bar has its own output in a notebook, so none moves to another's line.
                position=0 if in_notebook() else None,
                bar_format=f"{{desc}} |{{bar}}| {{n_fmt}} of {{total_fmt}} {unit}, {{elapsed}}"
                "{postfix}",
            )
        self._closed = threading.Event()
        self._clock = threading.Thread(target=self._tick, daemon=True)
        if self._bar is not None and not in_notebook():
            self._clock.start()

    def begin(self) -> None:
        """Time anew from here: a model was loaded, or another one is asked."""
        # When something was done, and the size of what was left then.
        self._steps = deque([(time.monotonic(), self.size)])

    def advance(self, n: int = 1, size: float | None = None) -> None:
        """Count `n` more, of `size` together."""
        if n:
            self.done += n
            self.size -= n if size is None else size
            now = time.monotonic()
            self._steps.append((now, self.size))
            while len(self._steps) > 2 and now - self._steps[1][0] > RECENT:
                self._steps.popleft()
            self._show(n)

    def tell(self, title: str) -> None:
        """Show what is being done now."""
        self.title = title
        if self._bar is not None:
            self._bar.set_description_str(title, refresh=False)
        self._show()

    def _show(self, n: int = 0) -> None:
        left = self._left()
        if self._bar is not None:
            self._bar.set_postfix_str(left, refresh=not n)
            self._bar.update(n)
        elif time.monotonic() - self._printed >= EVERY and self.done < self.total:
            self._printed = time.monotonic()
            done = f"{self.title}: {self.done:,} of {self.total:,} {self.unit}"
            say(", ".join(filter(None, (done, left))))

    def _tick(self) -> None:
        """Let the bar's clock go on within a long step."""
        while not self._closed.wait(1):
            if time.monotonic() - self._printed > DELAY:
                self._bar.refresh()

    def _left(self) -> str:
        """Say how long the rest will take; "" as long as that cannot be known."""
        (start, first), (now, last) = self._steps[0], self._steps[-1]
        if now - start < MEANINGFUL or first <= last:
            return ""
        left = round((now - start) / (first - last) * max(last, 0))
        if left < 100:
            return f"about {left} s left"
        minutes = round(left / 60)
        if minutes < 100:
            return f"about {minutes} min left"
        return f"about {minutes / 60:.1f} h left"

    def close(self) -> None:
        self._closed.set()
        if self._clock.is_alive():
            self._clock.join()
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


def progress(
    total: int, title: str, unit: str, done: int = 0, size: float | None = None
) -> closing[Progress]:
    """Show progress: `with progress(100, "asking tiny:s", "requests") as bar: bar.advance()`."""
    return closing(Progress(total, title, unit, done, size))


def say(message: str) -> None:
    """Print a line on standard error; in a notebook on standard output, which is not red there."""
    text = reveal_invisible(message)
    if in_notebook():
        print(text, flush=True)
    else:
        # On a line of its own: a bar may stand there, of this process or of another.
        clear = CLEAR_LINE if sys.stderr.isatty() else ""
        print(clear + text, file=sys.stderr, flush=True)


def _interactive() -> bool:
    # Processes that are started beside each other share a terminal, and say lines.
    alone = multiprocessing.parent_process() is None
    return (sys.stderr.isatty() and alone) or in_notebook()


def in_notebook() -> bool:
    """Tell whether this process is the kernel of a notebook."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return getattr(shell, "kernel", None) is not None
