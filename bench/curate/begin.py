"""How a project of one's own begins: with the files of the example, to be changed by people."""

from pathlib import Path

from bench.core.errors import BadInput
from bench.core.files import atomic_write, explain_write_errors
from bench.data.readers import as_path as path_of

EXAMPLES = Path(__file__).parent / "examples"
# What people write before anything is asked of anybody. Other files of an example are for the simulated people.
FILES = {
    "mcbe": ("project.toml", "drafts.csv"),
    "cbbq": ("dataset.toml", "biases.csv", "templates.csv"),
    "nli_coal": ("pack.toml", "occupations.tsv", "terms.tsv", "captions.txt"),
}
# Where each goes on.
NOTEBOOKS = {"mcbe": "curate_mcbe", "cbbq": "curate_cbbq", "nli_coal": "curate_nli"}


def copy(benchmark: str, folder: str | Path) -> list[Path]:
    """The files with which a project of `benchmark` begins, copied to an empty or new folder.

    Raises:
        BadInput: the folder holds something.
        RunFailed: it cannot be written.
    """
    place = path_of(folder)
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise BadInput(f"{place}: is not empty; the example is copied to an empty or new folder")
    made = [place / name for name in FILES[benchmark]]
    for path in made:
        with explain_write_errors(path):
            atomic_write(path, (EXAMPLES / benchmark / path.name).read_text("utf-8"))
    return made


def check(benchmark: str, folder: Path) -> None:
    """See that what a project of `benchmark` begins with is there.

    Raises:
        BadInput: a file is missing; with the command that makes an example.
    """
    for name in FILES[benchmark]:
        if not (folder / name).is_file():
            raise BadInput(
                f"{folder / name}: is missing; a project begins with {', '.join(FILES[benchmark])}, "
                f"and `bench curate {benchmark} {folder}` writes an example of them into an empty folder"
            )
