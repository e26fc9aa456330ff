"""The folders of reports and runs, unless their user names others."""

import os
import tomllib
from contextlib import suppress
from pathlib import Path


def reports() -> Path:
    """Return the folder of reports: $BENCH_REPORTS, or `reports` here or in a checkout."""
    if folder := os.environ.get("BENCH_REPORTS"):
        return Path(folder)
    here = Path.cwd()
    return next(filter(_is_checkout, (here, *here.parents)), here) / "reports"


def runs() -> Path:
    """Return the folder of runs, which is in the one of reports."""
    return reports() / "runs"


def report(name: str, out: str | Path | None) -> Path:
    """Return the folder of a report, absolute, because kernels have another working folder."""
    return Path(out).resolve() if out else reports() / name


def _is_checkout(folder: Path) -> bool:
    # The file is missing, or another project's.
    with suppress(OSError, ValueError, LookupError, TypeError):
        content = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))
        return bool(content["project"]["name"] == "bias-workbench")
    return False
