"""How a process ends by a signal, and what it does without a terminal or a working folder.

`Ending` turns a signal into one line and a KeyboardInterrupt, so that blocks are left in order, and
ends the process soon after in any case.
"""

import io
import os
import signal
import sys
import threading
from contextlib import suppress
from types import FrameType

# SIGTERM is how batch systems and containers end a process, SIGHUP a terminal that is closed.
SIGNALS = {
    signal.Signals[name]
    for name in ("SIGINT", "SIGTERM", "SIGHUP")
    if name in signal.Signals.__members__
}
# Seconds that a command has to end in order.
END_WITHIN = 5.0
CLEAR_LINE = "\r\x1b[K"


class Ended(KeyboardInterrupt):
    """A signal came. After KeyboardInterrupt itself in `exec`, Python would end by SIGINT."""


class Ending:
    """What a signal does to this process; further ones do nothing.

    Args:
        line: to print on standard error, where `{}` stands for the signal; nothing that the
            process prints there afterwards is shown.

    Attributes:
        status: 128 and the number of the signal; 0 before one came.
    """

    def __init__(self, line: str) -> None:
        self.status = 0
        self._line = line

    def listen(self) -> None:
        """Raise KeyboardInterrupt in the main thread when a signal comes."""
        for number in SIGNALS:
            # One that is ignored from the start stays so: `nohup`, a script's background.
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._end)

    def ignore(self) -> None:
        """Ignore signals: what is left to do ends by itself."""
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)

    def _end(self, number: int, frame: FrameType | None) -> None:
        if self.status:
            return
        self.status = 128 + number
        # Not by sys.stderr, which may be in the middle of a line.
        with suppress(OSError):
            stderr = os.dup(2)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            is_interrupt = number == signal.SIGINT
            how = "interrupted" if is_interrupt else f"ended by {signal.Signals(number).name}"
            clear = CLEAR_LINE if os.isatty(stderr) else ""
            os.write(stderr, f"{clear}{self._line.format(how)}\n".encode())
        late = threading.Timer(END_WITHIN, os._exit, [self.status])
        late.daemon = True
        late.start()
        raise Ended


def open_streams() -> None:
    """Use UTF-8 for standard output and error, and drop messages if standard error is closed."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    sys.stderr = sys.stderr or io.StringIO()
