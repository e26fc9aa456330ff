"""End a process by a signal, and set up its standard streams and its garbage collector.

`Ending` turns a signal into one line and a KeyboardInterrupt, so that `finally` blocks run, and
ends this process soon after in any case.
"""

import gc
import io
import os
import signal
import sys
import threading
from contextlib import suppress
from types import FrameType

# Batch systems and containers send SIGTERM, a closed terminal sends SIGHUP.
SIGNALS = {
    signal.Signals[name]
    for name in ("SIGINT", "SIGTERM", "SIGHUP")
    if name in signal.Signals.__members__
}
# A command has so much time for its `finally` blocks.
GRACE_SECONDS = 5.0
CLEAR_LINE = "\r\x1b[K"
# New objects, and collections of a generation, before the collector looks at the next older one.
COLLECTOR_THRESHOLDS = (50_000, 20, 20)


def collect_rarely() -> None:
    """Look for reference cycles more rarely than Python: imports and tables make hardly any."""
    gc.set_threshold(*COLLECTOR_THRESHOLDS)


class Ended(KeyboardInterrupt):
    """A signal arrived; Python ends by SIGINT after KeyboardInterrupt itself in `exec`."""


class Ending:
    """The effect of the first signal: we print `line`, with the signal in place of `{}`.

    `status` is then 128 and the number of the signal; before it is 0.
    """

    def __init__(self, line: str) -> None:
        self.status, self._line = 0, line

    def listen(self) -> None:
        """Raise KeyboardInterrupt in the main thread when a signal arrives."""
        for number in SIGNALS:
            # Keep ignoring a signal that the parent ignores, for example under `nohup`.
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._end)

    def ignore(self) -> None:
        """Ignore signals from now on."""
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)

    def _end(self, number: int, frame: FrameType | None) -> None:
        if self.status:
            return
        self.status = 128 + number
        # We do not use sys.stderr: it may be in the middle of a line.
        with suppress(OSError):
            stderr = os.dup(2)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            is_interrupt = number == signal.SIGINT
            how = "interrupted" if is_interrupt else f"ended by {signal.Signals(number).name}"
            clear = CLEAR_LINE if os.isatty(stderr) else ""
            os.write(stderr, f"{clear}{self._line.format(how)}\n".encode())
        late = threading.Timer(GRACE_SECONDS, os._exit, [self.status])
        late.daemon = True
        late.start()
        raise Ended


def open_streams() -> None:
    """Use UTF-8 for standard output and error, and drop messages if standard error is closed."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    sys.stderr = sys.stderr or io.StringIO()
