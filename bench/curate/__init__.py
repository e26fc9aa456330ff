"""Write items of your own: sheets for people, rounds of judgement, and a data folder at the end.

A project is one folder of plain files, so that people can stop and continue for weeks. A model is a
function that the caller passes.
"""

from collections.abc import Sequence
from pathlib import Path

from bench.core.errors import BadInput
from bench.core.files import atomic_write, explain_write_errors
from bench.data import card
from bench.data.readers import as_path as path_of

EXAMPLES = Path(__file__).parent / "examples"
# By benchmark: data of a few rows with a manifest that explains itself.
STARTS = Path(__file__).parent / "starts"
# The files that people write first. Other files of an example are for simulated people.
FILES = {
    "mcbe": ("project.toml", "drafts.csv"),
    "cbbq": ("dataset.toml", "biases.csv", "templates.csv"),
    "nli_coal": ("pack.toml", "occupations.tsv", "terms.tsv", "captions.txt"),
}
# The notebook that continues with them.
NOTEBOOKS = {"mcbe": "curate_mcbe", "cbbq": "curate_cbbq", "nli_coal": "curate_nli"}


def copy_example(benchmark: str, folder: str | Path) -> list[Path]:
    """Copy the files that a project of `benchmark` begins with to an empty or new folder."""
    return _copy([EXAMPLES / benchmark / name for name in FILES[benchmark]], folder)


def copy_start(benchmark: str, folder: str | Path) -> list[Path]:
    """Copy data of a few rows, to be changed, to an empty or new folder.

    Raises:
        BadInput: the benchmark has no such data, or the folder is not empty.
    """
    if not (sources := sorted((STARTS / benchmark).glob("*"))):
        known = ", ".join(sorted(path.name for path in STARTS.iterdir()))
        raise BadInput(
            f"new {benchmark}: has no rows to begin with; allowed: {known}; `bench curate "
            f"{benchmark} DIR` begins a project"
        )
    paths = _copy(sources, folder)
    card.write(benchmark, path_of(folder))
    return [*paths, path_of(folder) / card.CARD]


def _copy(sources: Sequence[Path], folder: str | Path) -> list[Path]:
    place = path_of(folder)
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise BadInput(f"{place}: is not empty; the example is copied to an empty or new folder")
    paths = [place / source.name for source in sources]
    for path, source in zip(paths, sources, strict=True):
        with explain_write_errors(path):
            atomic_write(path, source.read_text("utf-8"))
    return paths


def check_files(benchmark: str, folder: Path) -> None:
    """Check that the files that a project begins with are there.

    Raises:
        BadInput: a file is missing; with the command that writes an example.
    """
    files = ", ".join(FILES[benchmark])
    for name in FILES[benchmark]:
        if not (folder / name).is_file():
            raise BadInput(
                f"{folder / name}: is missing; a project begins with {files}, and "
                f"`bench curate {benchmark} {folder}` writes an example into an empty folder"
            )
