"""Builds the package by setuptools, and adds what does not lie in bench/.

A wheel gets bench/shipped: the notebooks without their outputs, the files beside them, and the demo
study. A source distribution gets all that its tests need. An editable install gets nothing: the
package finds these files in the checkout.
"""

import json
from pathlib import Path

from setuptools.build_meta import *  # noqa: F403  the hooks that pip calls
from setuptools.command.build_py import build_py

OF_NOTEBOOKS = ("ipynb", "py", "toml", "csv", "tsv", "txt")
SHIPPED = (
    "notebooks/*.ipynb",
    *(f"notebooks/curation/**/*.{kind}" for kind in OF_NOTEBOOKS),
    "reports/demo.yml",
)
KINDS = ("csv", "ipynb", "json", "jsonl", "parquet", "py", "toml", "tsv", "txt", "yml")
OF_TESTS = (
    *(f"tests/**/*.{kind}" for kind in KINDS),
    "tests/plugin/*.dist-info/*",
    "docs/*.md",
    "docs/demonstration/*",
    ".ci/*",
    ".github/**/*",
    "reports/*.yml",
    "CHANGELOG.md",
    "CITATION.cff",
    "CONTRIBUTING.md",
    "environment.yml",
)


class BuildPy(build_py):
    """The step of setuptools that gathers the files of the package."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            for source in _files(SHIPPED):
                target = Path(self.build_lib, "bench/shipped", source)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(_content(source), "utf-8", newline="\n")

    def get_source_files(self) -> list[str]:
        return [*super().get_source_files(), *map(str, _files((*SHIPPED, *OF_TESTS)))]


def _files(patterns: tuple[str, ...]) -> list[Path]:
    return sorted({path for pattern in patterns for path in Path().glob(pattern) if path.is_file()})


def _content(source: Path) -> str:
    text = source.read_text("utf-8")
    if source.suffix != ".ipynb":
        return text
    book = json.loads(text)
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            cell.update(outputs=[], execution_count=None)
    return json.dumps(book, ensure_ascii=False, indent=1) + "\n"
