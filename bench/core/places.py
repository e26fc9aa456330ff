"""The folders of the notebooks and the demo study, and the default folders of runs and reports."""

import os
import tomllib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from bench.core.errors import BadInput
from bench.core.files import atomic_write

PACKAGE = Path(__file__).parents[1]
# In a wheel, the copies of notebooks/ and reports/demo.yml; a checkout has the originals.
SHIPPED = PACKAGE / "shipped"
_HOME = SHIPPED if SHIPPED.is_dir() else PACKAGE.parent
NOTEBOOKS = _HOME / "notebooks"
# Kinds of files that the package copies to users.
KINDS = (".ipynb", ".py", ".toml", ".csv", ".tsv", ".txt")
DEMO = _HOME / "reports" / "demo.yml"


def reports() -> Path:
    """Return the folder of reports and runs: $BENCH_REPORTS, or `reports` here or in a checkout."""
    if given := os.environ.get("BENCH_REPORTS"):
        return Path(given)
    folder = Path.cwd()
    return next(filter(_is_checkout, (folder, *folder.parents)), folder) / "reports"


def report_folder(name: str, out: str | Path | None) -> Path:
    """Return the folder of a report, absolute, because kernels have another working folder."""
    return Path(out).resolve() if out else reports() / name


def copy_files(folder: Path, source: Path, more: Iterable[Path] = ()) -> list[Path]:
    """Copy the files in a folder of the package, and `more`; overwrite no file that differs."""
    contents = {folder / file.name: file.read_text("utf-8") for file in more}
    contents |= {
        folder / file.relative_to(source): file.read_text("utf-8")
        for file in sorted(source.rglob("*"))
        if file.suffix in KINDS and not file.parent.name.startswith(".")
    }
    for path, content in contents.items():
        if path.exists() and (not path.is_file() or path.read_bytes() != content.encode()):
            raise BadInput(
                f"{path}: is there already, and differs; give another folder, or move the file away"
            )
    for path, content in contents.items():
        atomic_write(path, content)
    return list(contents)


def _is_checkout(folder: Path) -> bool:
    # The file is missing, or another project's.
    with suppress(OSError, ValueError, LookupError, TypeError):
        content = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))
        return bool(content["project"]["name"] == "bias-workbench")
    return False
