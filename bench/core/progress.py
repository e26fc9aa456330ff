"""Show progress: a bar on terminals and in notebooks, otherwise a line from time to time.

In notebooks this bar is text in an output that is empty at the end: a widget would be dead in a
saved notebook, and a saved line would keep all its states.
"""

import io
import sys
import threading
from typing import TYPE_CHECKING, Any

from bench.core.text import reveal_invisible

if TYPE_CHECKING:
    from tqdm import tqdm

LINE_INTERVAL = 30.0  # seconds between two lines without a bar
BAR_DELAY = 3.0  # seconds; short work needs no bar
CLEAR_LINE = "\r\x1b[K"


def progress(total: int, title: str, unit: str, done: int = 0) -> "tqdm[Any]":
    """Show progress: `with progress(100, "asking tiny:s", "requests") as bar: bar.update()`."""
    from tqdm import tqdm

    options: dict[str, Any] = {"total": total, "initial": done, "desc": title, "leave": False}
    options["delay"] = BAR_DELAY
    form = "{desc} |{bar}| "
    if in_notebook():
        options |= {"file": _CellOutput(), "ncols": 100, "position": 0}
    elif not sys.stderr.isatty() or threading.current_thread() is not threading.main_thread():
        # Threads share a terminal, and print lines.
        lines = {"mininterval": LINE_INTERVAL, "maxinterval": 2 * LINE_INTERVAL}
        options |= {"file": _Lines(), "delay": LINE_INTERVAL, "position": 0, **lines}
        form = "{desc}: "
    form += f"{{n_fmt}} of {{total_fmt}} {unit}, {{elapsed}} passed, {{remaining}} left"
    return tqdm(**options, bar_format=form)


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
    """Print a line on standard error; in a notebook on standard output, because it is not red."""
    text = reveal_invisible(message)
    if in_notebook():
        print(text, flush=True)
    else:
        # Overwrite a bar.
        clear = CLEAR_LINE if sys.stderr.isatty() else ""
        try:
            print(clear + text, file=sys.stderr, flush=True)
        except OSError:  # a closed terminal; the work goes on
            sys.stderr = io.StringIO()


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return getattr(shell, "kernel", None) is not None
