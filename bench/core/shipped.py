"""The notebooks and the demo study that come with the package, and how to copy them."""

from collections.abc import Iterable
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


def copy_files(folder: Path, source: Path, more: Iterable[Path] = ()) -> list[Path]:
    """Copy a folder of the package, and the files `more`; refuse to overwrite changed files."""
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
