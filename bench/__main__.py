"""The `bench` command, and `python -m bench`."""

import io
import os
import sys


def main() -> None:
    """Run the command in UTF-8; Ctrl-C ends it with one line and status 130."""
    try:
        _use_utf8()
        from bench import cli

        status = cli.main()
    except KeyboardInterrupt:
        from bench.core.errors import CONTINUES
        from bench.core.progress import say

        say(f"bench: interrupted; {CONTINUES}")
        status = 130
    sys.exit(status)


def _use_utf8() -> None:
    """Write UTF-8; start Python again if it does not decode names of files as UTF-8."""
    if sys.getfilesystemencoding() != "utf-8" and os.environ.get("PYTHONUTF8") != "1":
        os.environ["PYTHONUTF8"] = "1"
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    sys.stderr = sys.stderr or io.StringIO()  # a closed one


if __name__ == "__main__":
    main()
