"""The `bench` command, and `python -m bench`."""

import io
import os
import sys


def main() -> None:
    """Run the command, in UTF-8; an interruption while the package is loaded is one line too."""
    _use_utf8()
    _use_writable_folders()
    try:
        from bench import cli

        cli.main()
    except KeyboardInterrupt:
        print("bench: interrupted before it began", file=sys.stderr)
        sys.exit(130)


def _use_utf8() -> None:
    """Use UTF-8 for standard output, standard error and names of files on every platform."""
    if sys.getfilesystemencoding() != "utf-8" and os.environ.get("PYTHONUTF8") != "1":
        # Names of files were decoded when Python started, so it starts again.
        os.environ["PYTHONUTF8"] = "1"
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _use_writable_folders() -> None:
    """Where the home folder cannot be written, give matplotlib and IPython a temporary one.

    Each would say that it takes one, in every process of a command. Those that a command starts
    inherit this one, and it is gone when the command ends.
    """
    unset = {"MPLCONFIGDIR", "IPYTHONDIR"} - set(os.environ)
    if not unset or os.access(os.path.expanduser("~"), os.W_OK):
        return
    import atexit
    import shutil
    import tempfile

    try:
        folder = tempfile.mkdtemp(prefix="bench-")
    except OSError:  # nothing can be written at all
        return
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name in unset:
        os.environ[name] = os.path.join(folder, name.lower())
        os.mkdir(os.environ[name])


if __name__ == "__main__":
    main()
