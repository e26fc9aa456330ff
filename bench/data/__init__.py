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

from bench.benchmarks import get, module, names, resolve
from bench.core.errors import BadInput, expected
from bench.data import dataset
from bench.data.dataset import MANIFEST
from bench.data.readers import as_path, open_file

if TYPE_CHECKING:
    import pandas as pd

    from bench.data.texts import Text

# Means the package's own samples in place of a folder; a folder of this name is `./samples`.
OWN_SAMPLES = "samples"
# Means the released data that `bench fetch` brings, and never the samples.
RELEASED = "released"
FOUND_SAMPLES, FOUND_GIVEN = "samples of this package", "--data"
ENVIRONMENT = "BENCH_DATA"
LREC_COLING_2024 = (
    "Proceedings of the 2024 Joint International Conference on Computational Linguistics, "
    "Language Resources and Evaluation (LREC-COLING 2024)"
)


class Dataset(Protocol):
    """The data module of a benchmark.

    Attributes:
        CATEGORY_LABELS: names of the release's categories in the language of the data.
        LANGUAGE: code of the release's language; empty where each category is a language.
        LAYOUT: which files a folder of it holds, in words.
        SETTINGS: allowed values of each setting of the loader, the default first.
        TOLERANT: settings under which `bench fetch` takes a release with faults.
        ITEMS: the items that `load` returns, as a plural noun: questions.
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
    ITEMS: str

    def files(self, folder: Path) -> Mapping[str, Sequence[Path]]:
        """Return the files of each category in a folder; none if it holds no such data.

        Where the rows of a single file name their categories, or its name does, `folder` can be it.
        """

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
    """A folder of one benchmark's data: how it was found, and what its manifest says of it.

    Attributes:
        folder: or a single file, whose manifest stands next to it.
        language: codes of its languages, with commas; empty without a manifest that names them.
        labels: names of its categories in its manifest, by category and code of their language.
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
        """SHA-256 of the names and bytes of the files that are read, and of how they are read."""
        digest = hashlib.sha256()
        files = module("data", self.benchmark).files(self.folder)
        for path in sorted({path for paths in files.values() for path in paths}):
            state = path.stat()
            content = _file_hash(path, state.st_mtime_ns, state.st_size)
            digest.update(
                path.relative_to(dataset.home(self.folder)).as_posix().encode() + b"\0" + content
            )
        # What a manifest says of categories changes which rows are asked in which tasks.
        categories = sorted(dataset.read_manifest(self.folder).categories.items())
        for name, category in categories:
            if not category.groups:
                digest.update(f"\0{name} without groups".encode())
        for name, category in categories:
            if category.target:
                digest.update(f"\0{name} target {category.target}".encode())
        return digest.hexdigest()

    @property
    def is_sample(self) -> bool:
        """Whether these are the samples that come with the package."""
        return self.folder == get(self.benchmark).samples

    def describe(self) -> dict[str, Any]:
        """Return what `run.json` keeps."""
        return {**asdict(self), "folder": str(self.folder), "sha256": self.sha256}


class Paper(NamedTuple):
    """Where a benchmark was published."""

    authors: tuple[str, ...]
    title: str
    venue: str
    year: int
    url: str


class SettingEffect(NamedTuple):
    """How many rows a setting changes or leaves out, or would.

    `task` is empty where it concerns all tasks; `what` follows the number and a colon.
    """

    category: str
    task: str
    rows: int
    what: str
    left_out: bool


def user_folder() -> Path:
    """Return the folder where `bench fetch` puts data."""
    return platformdirs.user_data_path("bias-workbench", appauthor=False)


def find(benchmark: str, folder: str | Path | None = None) -> Source:
    """Find the data of a benchmark.

    Args:
        benchmark: its name.
        folder: the folder or file; `samples` for the package's own samples; `released` for
            `$BENCH_DATA/NAME`, then the user's data folder; default: these, then the samples.

    Raises:
        BadInput: the folder does not exist or has no such data, or its manifest is wrong.
    """
    benchmark = resolve(benchmark)
    if folder == OWN_SAMPLES:
        return _source(benchmark, get(benchmark).samples, FOUND_SAMPLES)
    if folder and folder != RELEASED:
        return _source(benchmark, as_path(folder), FOUND_GIVEN)
    if os.environ.get(ENVIRONMENT):
        parent = as_path(os.environ[ENVIRONMENT])
        if not parent.is_dir():
            raise BadInput(f"{parent}: the folder that ${ENVIRONMENT} names does not exist")
        if (parent / benchmark).is_dir():
            return _source(benchmark, parent / benchmark, f"${ENVIRONMENT}")
    # `bench fetch` of 0.2 could bring prompts alone, without a manifest.
    if (user_folder() / benchmark / MANIFEST).is_file():
        return _source(benchmark, user_folder() / benchmark, "user data folder")
    if folder:
        raise BadInput(
            f"data: {folder}: the released data of {benchmark} are not installed; run this first: "
            f"bench fetch {benchmark}"
        )
    return _source(benchmark, get(benchmark).samples, FOUND_SAMPLES)


def find_all(
    benchmarks: Sequence[str] = (), data: Mapping[str, str] | str = ""
) -> dict[str, Source]:
    """Find the data of several benchmarks, by their names.

    Args:
        benchmarks: their names; default: all.
        data: the folder of each benchmark, or `samples` for all; `find` looks for the others.

    Raises:
        BadInput: an unknown benchmark, one with a folder in `data` that is not among `benchmarks`,
            or data that are missing.
    """
    wanted = list(dict.fromkeys(map(resolve, benchmarks))) or list(names())
    given = dict.fromkeys(wanted, data) if isinstance(data, str) else data
    folders = {resolve(name): folder for name, folder in given.items()}
    for name in folders:
        if name not in wanted:
            raise BadInput(expected(name, wanted, "benchmark with a folder of data,"))
    return {name: find(name, folders.get(name)) for name in wanted}


def load(source: Source, categories: Sequence[str] | None = None, **settings: str) -> list[Any]:
    """Load the items of some categories, default: all, in the order of the files.

    Raises:
        BadInput: the data are wrong, or a category or setting is unknown or not there.
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
    chosen = list(dict.fromkeys(categories)) if categories else present
    return room.load(source.folder, chosen, **settings)


def with_defaults(
    allowed: Mapping[str, tuple[str, ...]], settings: Mapping[str, str]
) -> dict[str, str]:
    """Add the defaults to some settings of a loader, whose first allowed values they are.

    Raises:
        BadInput: there is no such setting, or it cannot have such a value.
    """
    for name, value in settings.items():
        if name not in allowed:
            raise BadInput(expected(name, allowed, "setting"))
        if value not in allowed[name]:
            raise BadInput(expected(value, allowed[name], f"value of {name}"))
    return {name: settings.get(name, values[0]) for name, values in allowed.items()}


def check(source: Source, **settings: str) -> "pd.DataFrame":
    """List everything odd about a data set: its file, row, column, kind, what and value.

    The list is empty for a benchmark without a module `audit`.
    """
    from bench.data import audit

    own = audit_module(source.benchmark)
    if own is None:
        return audit.to_table([])
    findings: pd.DataFrame = own.check(source.folder, **settings)
    return findings


def audit_module(benchmark: str) -> Any:
    """Return the module that reports odd rows of a benchmark's data; None if it has none."""
    name = f"{get(benchmark).data.rpartition('.')[0]}.audit"
    return import_module(name) if find_spec(name) else None


def frame(items: Sequence[Any]) -> "pd.DataFrame":
    """Return a table of items, with `item_id` and `cluster`, the unit that was sampled."""
    import pandas as pd

    columns = ["item_id", "cluster", *(field.name for field in fields(items[0]))] if items else []
    return pd.DataFrame({name: [getattr(item, name) for item in items] for name in columns})


def spread_evenly(items: Sequence[Any], limit: int | None) -> list[Any]:
    """Return at most `limit` of the items, spread evenly from the first to the last.

    Files are sorted by template and polarity, so the first ones would be of one template.
    """
    if limit is None or limit >= len(items):
        return list(items)
    return [items[i * len(items) // limit] for i in range(limit)]


def _source(benchmark: str, folder: Path, found: str) -> Source:
    room = module("data", benchmark)
    if not folder.exists():
        raise BadInput(
            f"{folder}: no such folder or file ({found}); `bench new {benchmark} DIR` begins data "
            f"of your own, `bench fetch {benchmark}` brings the released ones"
        )
    if not room.files(folder):
        raise BadInput(f"{folder}: holds no data of {room.TITLE} ({found}); expected {room.LAYOUT}")
    manifest = dataset.read_manifest(folder)
    # A file alone is the user's own; a folder without a description can be the release.
    name, licence = f"{room.TITLE} (local copy)", room.LICENCE
    if folder.is_file():
        name, licence = folder.name, "unknown"
    texts = {"name": name, "version": "unknown", "licence": licence, **manifest.texts}
    languages = ", ".join(manifest.languages)
    source = Source(benchmark, folder, found, **texts, language=languages, labels=manifest.labels)
    dataset.remember_names(benchmark, {"language": languages, "labels": manifest.labels})
    return source


@cache
def _file_hash(path: Path, modified: int, size: int) -> bytes:
    """Hash a file; `modified` and `size` tell an edited file from the one before."""
    with open_file(path) as stream:
        return hashlib.file_digest(stream, "sha256").digest()
