"""The `bench` command, and `python -m bench`."""

import gc
import os
import sys


def main() -> None:
    """Run the command in UTF-8; always exit with a one-line message and a status."""
    status = 128 + 2  # of SIGINT, before we listen to signals
    try:
        _use_utf8()
        from bench.core import process
        from bench.core.errors import CONTINUES

        process.collect_rarely()
        process.open_streams()
        ending = process.Ending(f"bench: {{}}; {CONTINUES}")
        try:
            ending.listen()
            from bench import cli

            status = cli.main()
            if status == cli.INTERRUPTED and not ending.status:  # by code that raises it itself
                sys.stderr.write(f"bench: interrupted; {CONTINUES}\n")
            ending.ignore()
        except BaseException:  # a library may convert KeyboardInterrupt
            if not ending.status:
                raise
        status = ending.status or status
    except KeyboardInterrupt:
        pass
    # At its end, Python would search all modules and items for reference cycles.
    gc.freeze()
    sys.exit(status)


def _use_utf8() -> None:
    """Start Python again, if this process does not decode names of files as UTF-8."""
    if sys.getfilesystemencoding() != "utf-8" and os.environ.get("PYTHONUTF8") != "1":
        os.environ["PYTHONUTF8"] = "1"
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


if __name__ == "__main__":
    main()
