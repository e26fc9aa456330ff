"""Show progress: a bar on terminals and in notebooks, else a line now and then on standard error.

In notebooks the bar is text in an output that is empty at the end: a widget would be dead in a
saved notebook, and a saved line would keep all its states.
"""

import io
import multiprocessing
import sys
from typing import TYPE_CHECKING, Any

from bench.core.process import CLEAR_LINE
from bench.core.text import reveal_invisible

if TYPE_CHECKING:
    from tqdm import tqdm

# Seconds between two lines where no bar can be drawn.
LINE_INTERVAL = 30.0
# Seconds before a bar is shown; short work needs none.
BAR_DELAY = 3.0


def progress(total: int, title: str, unit: str, done: int = 0) -> "tqdm[Any]":
    """Show progress: `with progress(100, "asking tiny:s", "requests") as bar: bar.update()`."""
    from tqdm import tqdm

    options: dict[str, Any] = {"total": total, "initial": done, "desc": title, "leave": False}
    counts = f"{{n_fmt}} of {{total_fmt}} {unit}"
    times = "{elapsed} passed, {remaining} left"
    if in_notebook():
        options |= {"file": _CellOutput(), "ncols": 100, "position": 0, "delay": BAR_DELAY}
    elif sys.stderr.isatty() and multiprocessing.parent_process() is None:
        options |= {"delay": BAR_DELAY}
    else:
        # Processes that are started beside each other share a terminal, and print lines.
        lines = {"mininterval": LINE_INTERVAL, "maxinterval": 2 * LINE_INTERVAL}
        options |= {"file": _Lines(), "delay": LINE_INTERVAL, "position": 0, **lines}
        return tqdm(**options, bar_format=f"{{desc}}: {counts}, {times}")
    return tqdm(**options, bar_format=f"{{desc}} |{{bar}}| {counts}, {times}")


class _CellOutput(io.StringIO):
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


class _Lines(io.StringIO):
    """A file for tqdm that prints each state of the bar as a line of its own."""

    def write(self, text: str) -> int:
        if line := text.strip():
            say(line)
        return len(text)


def say(message: str) -> None:
    """Print a line on standard error; in a notebook on standard output, which is not red there."""
    text = reveal_invisible(message)
    if in_notebook():
        print(text, flush=True)
    else:
        # On a line of its own: a bar may stand there, of this process or of another.
        clear = CLEAR_LINE if sys.stderr.isatty() else ""
        try:
            print(clear + text, file=sys.stderr, flush=True)
        except OSError:  # nobody can read messages, and the work goes on
            sys.stderr = io.StringIO()


def in_notebook() -> bool:
    """Tell whether this process is the kernel of a notebook."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return getattr(shell, "kernel", None) is not None
