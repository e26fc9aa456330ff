"""Data of a few rows to begin with, by benchmark, with manifests that explain themselves."""

from pathlib import Path

from bench.benchmarks import get, names
from bench.core.errors import BadInput
from bench.core.files import atomic_write
from bench.data.readers import as_path


def copy_start(benchmark: str, folder: str | Path) -> list[Path]:
    """Copy data of a few rows, to be changed, to an empty or new folder."""
    place = as_path(folder)
    sources = sorted(_folder(benchmark).glob("*"))
    if not sources:
        known = ", ".join(sorted(name for name in names() if _folder(name).is_dir()))
        raise BadInput(
            f"new {benchmark}: has no rows to begin with; allowed: {known}; the notebook "
            "curation/curate_nli.ipynb (`bench notebooks DIR`) begins a language pack"
        )
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise BadInput(f"{place}: is not empty; the example is copied to an empty or new folder")
    paths = [place / source.name for source in sources]
    for path, source in zip(paths, sources, strict=True):
        atomic_write(path, source.read_text("utf-8"))
    return paths


def _folder(benchmark: str) -> Path:
    return get(benchmark).metadata.samples.with_name("start")
