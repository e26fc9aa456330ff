"""Hash what kept results are made of: values, the files that they name, and imported code.

Score tables, pages and loaded items are kept under the hash of their inputs. If it has changed, we
make them again.
"""

import ast
import glob
import hashlib
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import Distribution

PACKAGE = Path(__file__).parents[1]
# In a folder with this file, a run, we make these from the other files.
RUN_JSON = "run.json"
MADE_OF_A_RUN = {"cache", "scores.json"}
# Folders of installed packages.
INSTALLED = {"site-packages", "dist-packages"}
# Texts that are separators or abbreviations rather than folders of data.
NO_DATA = ("", ".", "..", "~")


def hash_inputs(*values: object, folder: Path | None = None, but: Path | None = None) -> str:
    """Hash values, with the content of all files and folders that they name, at any depth.

    Args:
        values: parameters, options, paths; a text can also be a pattern of paths.
        folder: relative paths start here; default: the working folder.
        but: a folder that we leave out, because we write into it.

    Examples:
        >>> hash_inputs({"data": PACKAGE}) == hash_inputs({"data": PACKAGE / "core"})
        False
    """
    skipped = [os.path.realpath(but)] if but else []
    return _digest(_with_content(values, folder or Path(), *skipped))


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, default=str).encode()).hexdigest()


def _with_content(value: object, folder: Path, *skipped: str) -> object:
    """Put the hashes of the files that it names beside each text of a value."""
    if isinstance(value, Mapping):
        value = list(value.items())
    if isinstance(value, list | tuple):
        return [_with_content(part, folder, *skipped) for part in value]
    if not isinstance(value, str | Path):
        return value
    text = str(value)
    if Path(text).name in NO_DATA or "\0" in text:
        return [text, []]
    # The folder may be made later.
    path = os.path.normpath(os.path.join(folder, os.path.expanduser(text)))
    paths = [path] if os.path.exists(path) else sorted(glob.glob(path))
    return [text, [_content(path, *skipped) for path in paths]]


def _content(path: str, *skipped: str) -> list[tuple[str, str]]:
    """Return the names and hashes of the files in a folder, or of one file."""
    return [(os.path.relpath(file, path), hash_file(file)) for file in _files(path, *skipped)]


def hash_file(path: str | Path) -> str:
    """Hash a file; if it cannot be read, or is no regular file, return the reason in its place."""
    if not os.path.isfile(path):
        return "no file"
    try:
        with open(path, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        return type(error).__name__


def _files(path: str | Path, *skipped: str) -> Iterator[str]:
    """Yield the files in a folder, or the one file: all but hidden files and bytecode."""
    if not os.path.isdir(path):
        yield str(path)
        return
    folder = os.path.realpath(path)
    if folder in skipped:
        return
    names = {name for name in os.listdir(path) if name[0] != "."}
    made = {"__pycache__", *(MADE_OF_A_RUN if RUN_JSON in names else ())}
    for name in sorted(names - made):
        # A link can lead back to a folder above it.
        yield from _files(os.path.join(path, name), folder, *skipped)


class Code:
    """The files of some code, as this process has imported them.

    Make it when the code is imported: an update of the package does not change the modules of a
    running process, so that its results do not come from the new files.

    Args:
        since: a time in nanoseconds from which on the code may have been imported; files that have
            changed since then count as updated.
    """

    def __init__(self, paths: Iterable[str | Path], since: int | None = None) -> None:
        self.paths = sorted(map(str, paths))
        self._imported = self._state()
        if since is not None and any(max(times) > since for *_, times in self._imported):
            self._imported = []

    def _state(self) -> list[tuple[str, int, int, tuple[int, int]]]:
        states = []
        for path in self.paths:
            for file in _files(path):
                with suppress(OSError):  # for example a link to nothing
                    state = os.stat(file)
                    # No tool sets the time of the last change of a file's state (ctime) back.
                    times = state.st_mtime_ns, state.st_ctime_ns
                    states.append((file, state.st_ino, state.st_size, times))
        return states

    @cached_property
    def sha256(self) -> str:
        """The hash of the files when they are first hashed."""
        return _digest([_content(path) for path in self.paths])

    def key(self) -> str:
        """Return the hash of the files; if they changed since their import, one of its own."""
        content = self.sha256
        return content if self._state() == self._imported else os.urandom(16).hex()


STARTED = time.time_ns()
PACKAGE_CODE = Code([PACKAGE])


def plugin_files(module: str, distribution: "Distribution | None") -> list[Path]:
    """List the files of another package's code, which `module` belongs to.

    These are its package, what its distribution has installed, and the modules that they import
    except for Python's library and installed packages.
    """
    owner = sys.modules[module.partition(".")[0]]
    files = [Path(folder) for folder in getattr(owner, "__path__", [])]
    if not files and owner.__file__:  # a single file, with its tables and settings beside it
        files = [Path(owner.__file__)]
        for kind in ("csv", "toml", "json"):
            files += files[0].parent.glob(f"*.{kind}")
    for path in (distribution.files if distribution else None) or ():
        if "__pycache__" not in path.parts and ".." not in path.parts:
            files.append(Path(str(path.locate())))
    code = [file for path in files for file in _files(path) if file.endswith(".py")]
    imported = [file for module in imported_modules(code).values() for file in module]
    return list(dict.fromkeys([*files, *imported]))


def imported_modules(
    code: Iterable[str | Path], names: Iterable[str] = ()
) -> dict[str, list[Path]]:
    """Map the top-level modules that some Python files import, at any depth, to their files.

    We leave out this package, Python's library, and installed packages.

    Args:
        names: further modules to begin with.
    """
    modules: dict[str, list[Path]] = {}
    unread = list(code)
    names = list(names)
    while unread or names:
        for name in names:
            if name not in modules and name not in {PACKAGE.name, *sys.stdlib_module_names}:
                modules[name] = _files_of_module(name)
                unread += modules[name]
        names = []
        if unread:
            with suppress(SyntaxError, ValueError, OSError):  # a file for another Python
                for node in ast.walk(ast.parse(Path(unread.pop()).read_bytes())):
                    if isinstance(node, ast.Import):
                        names += [alias.name.partition(".")[0] for alias in node.names]
                    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                        names.append(node.module.partition(".")[0])
    return {name: files for name, files in modules.items() if files}


def _files_of_module(name: str) -> list[Path]:
    """List the Python files of a top-level module; none of an installed or compiled one."""
    roots: list[str | None] = []
    with suppress(ImportError, ValueError):
        # A module of this name may have been imported from another folder.
        if spec := PathFinder.find_spec(name) or find_spec(name):
            roots += spec.submodule_search_locations or [spec.origin]
    folders = [root for root in roots if root and not INSTALLED & {*Path(root).parts}]
    files = [Path(file) for folder in folders for file in _files(folder)]
    return [file for file in files if file.suffix == ".py" and file.is_file()]
