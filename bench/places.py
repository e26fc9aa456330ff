"""Where the notebooks and the demo study are, and where runs and reports go by default."""

import tomllib
from pathlib import Path

PACKAGE = Path(__file__).parent
# In a wheel, the copies of notebooks/ and reports/demo.yml; a checkout has the originals.
SHIPPED = PACKAGE / "shipped"
_HOME = SHIPPED if SHIPPED.is_dir() else PACKAGE.parent
NOTEBOOKS = _HOME / "notebooks"
DEMO = _HOME / "reports" / "demo.yml"


def checkout(folder: Path) -> Path | None:
    """Return the checkout of this project that `folder` is in, or None if it is in none."""
    return next(filter(_is_checkout, (folder, *folder.parents)), None)


def reports() -> Path:
    """Return the default folder of reports and runs: `./reports`, or that of the checkout around it."""
    return (checkout(Path.cwd()) or Path.cwd()) / "reports"


def _is_checkout(folder: Path) -> bool:
    try:
        content = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))
    except (OSError, ValueError):  # none, or one of another project that cannot be read
        return False
    project = content.get("project")
    return isinstance(project, dict) and project.get("name") == "bias-workbench"
