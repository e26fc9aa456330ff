"""Typed items of each benchmark, where they come from, and whether they are right.

A benchmark's data module offers what `Dataset` lists, and where odd rows are reported, a module
`audit` next to it with `check(folder, **settings)`. `find` says which folder is read, `load` reads
it.
"""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import platformdirs

from bench.benchmarks import get, module, resolve
from bench.core.errors import BadInput, expected
from bench.data import dataset
from bench.data.dataset import MANIFEST
from bench.data.readers import as_path, open_file

if TYPE_CHECKING:
    import pandas as pd

    from bench.data.texts import Text

SAMPLES = Path(__file__).parent / "samples"
# In place of a folder: the package's own samples, whatever is installed. A folder of this name is `./samples`.
OWN_SAMPLES = "samples"
FOUND_SAMPLES = "samples of this package"
ENVIRONMENT = "BENCH_DATA"
LREC_COLING_2024 = "Proceedings of the 2024 Joint International Conference on Computational Linguistics, Language Resources and Evaluation (LREC-COLING 2024)"


class Dataset(Protocol):
    """The data module of a benchmark.

    Attributes:
        CATEGORIES: those of the release.
        CATEGORY_LABELS: their names in the language of the data.
        LANGUAGE: code of the release's language; empty where each category is a language.
        LAYOUT: which files a folder of it holds, in words.
        SETTINGS: allowed values of each setting of the loader, the default first.
        TOLERANT: settings under which `bench fetch` takes a release with faults.
        TEXTS, ITEMS: what `texts` and `load` return, as plural nouns: templates, questions.
    """

    TITLE: str
    HOMEPAGE: str
    LICENCE: str
    PAPER: "Paper"
    CATEGORIES: Sequence[str]
    CATEGORY_LABELS: Mapping[str, str]
    LANGUAGE: str
    LAYOUT: str
    SETTINGS: Mapping[str, tuple[str, ...]]
    TOLERANT: Mapping[str, str]
    TEXTS: str
    ITEMS: str

    def files(self, folder: Path) -> Mapping[str, Sequence[Path]]:
        """Return the files of each category in a folder; none if it holds no such data."""

    def load(self, folder: Path, categories: Sequence[str], **settings: str) -> list[Any]:
        """Read the items of some categories, in the order of the files.

        An item is a dataclass with `item_id`, `category` and `cluster`, the unit that was sampled.
        """

    def touched(
        self, folder: Path, categories: Sequence[str] | None, **settings: str
    ) -> list["SettingEffect"]:
        """Count the rows that settings change or leave out."""

    def texts(self, source: "Source") -> "Sequence[Text]":
        """Return what people wrote, without copies that are generated from it."""


@dataclass(frozen=True)
class Source:
    """A folder of one benchmark's data: where it is, how it was found, and which version it holds.

    `language` has the codes of its languages, with commas, and `labels` what its manifest calls categories, by the code of
    the label's language; both are empty where there is no manifest that says so.
    """

    benchmark: str
    folder: Path
    found: str
    name: str
    version: str
    licence: str
    note: str = ""
    language: str = ""
    labels: dict[str, dict[str, str]] = field(default_factory=dict, hash=False)

    @property
    def sha256(self) -> str:
        """SHA-256 over the names and bytes of the files that the loader reads, and what the manifest says of how."""
        return _hash(self.benchmark, self.folder)

    @property
    def is_sample(self) -> bool:
        return self.folder == get(self.benchmark).samples

    def describe(self) -> dict[str, Any]:
        """What `run.json` keeps of it."""
        return {**asdict(self), "folder": str(self.folder), "sha256": self.sha256}


class Paper(NamedTuple):
    """Where a benchmark was published, so that it can be cited."""

    authors: tuple[str, ...]
    title: str
    venue: str
    year: int
    url: str


class SettingEffect(NamedTuple):
    """How many rows a setting changes, leaves out, or would; `what` says it, behind their number and a colon.

    `task` is empty where it concerns all tasks alike.
    """

    category: str
    task: str
    rows: int
    what: str
    left_out: bool


def user_folder() -> Path:
    """Where `bench fetch` puts data."""
    return platformdirs.user_data_path("bias-workbench", appauthor=False)


def find(benchmark: str, folder: str | Path | None = None) -> Source:
    """The data of `benchmark`: `folder` if given, else `$BENCH_DATA/NAME`, the user's data folder, the samples.

    Args:
        folder: `samples` means the package's own samples; a folder of that name is written `./samples`.

    Raises:
        BadInput: a folder was given that does not exist or holds none of the benchmark's files.
    """
    benchmark = resolve(benchmark)
    if folder == OWN_SAMPLES:
        return _source(benchmark, get(benchmark).samples, FOUND_SAMPLES)
    if folder:
        return _source(benchmark, as_path(folder), "--data")
    if os.environ.get(ENVIRONMENT):
        candidate = as_path(os.environ[ENVIRONMENT])
        if not candidate.is_dir():
            raise BadInput(f"{candidate}: the folder that ${ENVIRONMENT} names does not exist")
        if (candidate / benchmark).is_dir():
            return _source(benchmark, candidate / benchmark, f"${ENVIRONMENT}")
    candidate = user_folder() / benchmark
    # The manifest is written last, so a half-finished fetch has none and is not taken for data.
    if (candidate / MANIFEST).is_file():
        return _source(benchmark, candidate, "user data folder")
    return _source(benchmark, get(benchmark).samples, FOUND_SAMPLES)


def load(source: Source, categories: Sequence[str] | None = None, **settings: str) -> list[Any]:
    """The items of `source`, in the order of its files; all categories, or those named.

    `settings` are those of the benchmark's data module.

    Raises:
        BadInput: the data is wrong, or a category is unknown or not in this folder.
    """
    room = module("data", source.benchmark)
    present = list(room.files(source.folder))
    known = list(dict.fromkeys([*room.CATEGORIES, *source.labels, *present]))
    for name in categories or ():
        if name not in known:
            raise BadInput(expected(name, known, f"category of {source.benchmark}"))
        if name not in present:
            raise BadInput(
                f"{source.folder}: has no data of category {name!r}; it has {', '.join(present)}"
            )
    wanted = list(dict.fromkeys(categories)) if categories else present
    return room.load(source.folder, wanted, **settings)


def check(source: Source, **settings: str) -> "pd.DataFrame":
    """Everything odd about the data of `source`: a row a finding, with file, row, column, kind, what and value.

    Raises:
        BadInput: the benchmark's loader has no such report.
    """
    name = f"{get(source.benchmark).data}.audit"
    if not has_audit(source.benchmark):
        raise BadInput(
            f"--check: {source.benchmark} has no report of odd rows; `bench data {source.benchmark}` says whether it loads"
        )
    found: pd.DataFrame = import_module(name).check(source.folder, **settings)
    return found


def has_audit(benchmark: str) -> bool:
    """Whether a benchmark has a report of odd rows."""
    parent = module("data", benchmark)
    return hasattr(parent, "__path__") and find_spec(f"{get(benchmark).data}.audit") is not None


def frame(items: Sequence[Any]) -> "pd.DataFrame":
    """One row an item with its `item_id` and `cluster` (what was sampled), as metrics want it."""
    import pandas as pd

    names = ["item_id", "cluster", *(field.name for field in fields(items[0]))] if items else []
    return pd.DataFrame({name: [getattr(item, name) for item in items] for name in names})


def spread_evenly(items: Sequence[Any], limit: int | None) -> list[Any]:
    """At most `limit` of `items`, spread evenly from first to last.

    Files are sorted by template and polarity, so that the first N would be one template in one polarity.
    """
    if limit is None or limit >= len(items):
        return list(items)
    return [items[i * len(items) // limit] for i in range(limit)]


def _source(benchmark: str, folder: Path, found: str) -> Source:
    room = module("data", benchmark)
    if not folder.is_dir():
        raise BadInput(
            f"{folder}: no such folder ({found}); `bench fetch {benchmark}` brings the released data"
        )
    if not room.files(folder):
        raise BadInput(f"{folder}: holds no data of {room.TITLE} ({found}); expected {room.LAYOUT}")
    usual = {
        "name": f"{room.TITLE} (local copy)",
        "version": "unknown",
        "licence": room.LICENCE,
        "note": "",
    }
    said = dataset.read_manifest(folder)
    source = Source(
        benchmark,
        folder,
        found,
        **{**usual, **said.told},
        language=", ".join(said.languages),
        labels=said.labels,
    )
    dataset.remember_names(benchmark, {"language": source.language, "labels": source.labels})
    return source


def _hash(benchmark: str, folder: Path) -> str:
    digest = hashlib.sha256()
    paths = sorted(
        {path for paths in module("data", benchmark).files(folder).values() for path in paths}
    )
    for path in paths:
        state = path.stat()
        content = _file_hash(path, state.st_mtime_ns, state.st_size)
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + content)
    # Without groups, rows are asked in fewer tasks.
    categories = dataset.read_manifest(folder).categories
    alone = [name for name, one in categories.items() if not one.groups]
    digest.update("".join(f"\0{name} without groups" for name in sorted(alone)).encode())
    targets = sorted((name, one.target) for name, one in categories.items() if one.target)
    digest.update("".join(f"\0{name} target {slot}" for name, slot in targets).encode())
    return digest.hexdigest()


@cache
def _file_hash(path: Path, modified: int, size: int) -> bytes:
    """The hash of a file as it was then: an edited file is another one."""
    with open_file(path) as stream:
        return hashlib.file_digest(stream, "sha256").digest()
