"""The `bench` command, and `python -m bench`."""

import os
import sys


def main() -> None:
    """Run the command in UTF-8; whatever ends it, it says so in one line and has a status."""
    status = 128 + 2  # of SIGINT, before anything listens to signals
    try:
        _use_utf8()
        from bench.core import process
        from bench.core.errors import CONTINUES

        output = process.open_streams()
        ending = process.Ending(f"bench: {{}}; {CONTINUES}")
        try:
            ending.listen()
            _use_writable_folders()
            from bench import cli

            status = cli.main(output)
            ending.ignore()
        except BaseException:  # a library may make another error of it
            if not ending.status:
                raise
        status = ending.status or status
    except KeyboardInterrupt:
        pass
    sys.exit(status)


def _use_utf8() -> None:
    """Start Python again, if names of files were decoded otherwise."""
    if sys.getfilesystemencoding() != "utf-8" and os.environ.get("PYTHONUTF8") != "1":
        os.environ["PYTHONUTF8"] = "1"
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


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
