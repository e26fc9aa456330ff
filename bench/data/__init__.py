"""Find the data of a benchmark, load their items, check their rows, and draw samples of items.

source = find("cbbq", "samples")
load(source, ["gender"])
"""

import gc
import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import platformdirs

from bench.benchmarks import get, names, resolve
from bench.core.errors import BadInput, expected
from bench.core.text import read_mapping
from bench.data.manifest import MANIFEST, read_manifest
from bench.data.readers import as_path, open_file

if TYPE_CHECKING:
    import pandas as pd

    from bench.benchmarks.base import Benchmark

# Means the package's own samples in place of a folder; a folder of this name is `./samples`.
OWN_SAMPLES = "samples"
# Means the released data that `bench fetch` brings, and never the samples.
RELEASED = "released"
FOUND_SAMPLES = "samples of this package"
ENVIRONMENT = "BENCH_DATA"


@dataclass(frozen=True)
class Source:
    """A folder of one benchmark's data, with the texts of its manifest.

    Attributes:
        folder: a folder, or a single file with its manifest next to it.
        found: how we found it, for example `--data`.
        language: codes of its languages, with commas; empty without a manifest that names them.
        labels: names of its categories in its manifest, by category and code of their language.

    Examples:
        >>> find("nli_coal", "samples").language
        'en, zh'
    """

    benchmark: "Benchmark"
    folder: Path
    found: str
    name: str
    version: str
    licence: str
    note: str = ""
    language: str = ""
    labels: dict[str, dict[str, str]] = field(default_factory=dict, hash=False)

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the names and bytes of the files that are read, and of how they are read."""
        return _hash_content(self.benchmark, self.folder)

    @property
    def is_sample(self) -> bool:
        """Whether these are the samples that come with the package."""
        return self.folder == self.benchmark.metadata.samples

    def describe(self) -> dict[str, Any]:
        """Return the description for `run.json`."""
        values = {"benchmark": self.benchmark.name, "folder": str(self.folder)}
        return {**vars(self), **values, "sha256": self.sha256}


class SettingEffect(NamedTuple):
    """The number of rows that a setting changes or excludes; `task` is empty for all tasks."""

    category: str
    task: str
    rows: int
    what: str
    is_excluded: bool


class Loaded(NamedTuple):
    """The items of a data set, and the rows that settings changed or left out."""

    items: list[Any]
    effects: Sequence[SettingEffect] = ()


def user_folder() -> Path:
    """Return the folder for the data of `bench fetch`."""
    return platformdirs.user_data_path("bias-workbench", appauthor=False)


def find(benchmark: "str | Benchmark", folder: str | Path | None = None) -> Source:
    """Find the data of a benchmark.

    Args:
        benchmark: its name, or the benchmark itself.
        folder: the folder or file; `samples` for the package's own samples; `released` for
            `$BENCH_DATA/NAME`, then the user's data folder; default: these, then the samples.

    Raises:
        BadInput: the folder does not exist or has no such data, or its manifest is wrong.

    Examples:
        >>> find("cbbq", "samples").version
        'samples-1'
    """
    benchmark = get(benchmark) if isinstance(benchmark, str) else benchmark
    name = benchmark.name
    if folder and folder not in (OWN_SAMPLES, RELEASED):
        return _source(benchmark, as_path(folder), "--data")
    if folder != OWN_SAMPLES:
        if parent := os.environ.get(ENVIRONMENT):
            if not as_path(parent).is_dir():
                raise BadInput(f"{parent}: the folder that ${ENVIRONMENT} names does not exist")
            if (as_path(parent) / name).is_dir():
                return _source(benchmark, as_path(parent) / name, f"${ENVIRONMENT}")
        # `bench fetch` of 0.2 could bring only prompts, without a manifest.
        if (user_folder() / name / MANIFEST).is_file():
            return _source(benchmark, user_folder() / name, "user data folder")
    if folder == RELEASED:
        raise BadInput(
            f"data: {folder}: the released data of {name} are not installed; run this first: "
            f"bench fetch {name}"
        )
    return _source(benchmark, benchmark.metadata.samples, FOUND_SAMPLES)


def find_all(
    benchmarks: Sequence[str] = (), data: Mapping[str, str] | str = ""
) -> dict[str, Source]:
    """Find the data of several benchmarks (default: all) by their names.

    Args:
        data: the folder of each benchmark, in JSON too, as papermill's `-p` gives it; or `samples`
            for all. `find` looks for the data of benchmarks without a folder.
    """
    wanted = list(dict.fromkeys(map(resolve, benchmarks))) or list(names())
    if isinstance(data, str) and not data.startswith("{"):
        data = dict.fromkeys(wanted, data)
    folders = {resolve(name): folder for name, folder in read_mapping(data, name="data").items()}
    if unknown := folders.keys() - set(wanted):
        raise BadInput(expected(min(unknown), wanted, "benchmark with a folder of data,"))
    return {name: find(name, folders.get(name)) for name in wanted}


def load(source: Source, categories: Sequence[str] | None = None, **settings: str) -> list[Any]:
    """Load the items of some categories, default: all, in the order of the files.

    Raises:
        BadInput: the data are wrong, or a category or setting is unknown or not there.

    Examples:
        >>> load(find("nli_coal", "samples"), ["en"])[0].hypothesis
        'the woman is waiting at a bus stop on a rainy morning.'
    """
    return list(read(source, categories, **settings).items)  # the list may be changed


def read(source: Source, categories: Sequence[str] | None = None, **settings: str) -> Loaded:
    """Load the items as `load` does, and count the rows that settings change or leave out."""
    files = source.benchmark.files(source.folder)
    released = source.benchmark.metadata.categories
    allowed = list(dict.fromkeys([*released, *source.labels, *files]))
    for name in categories or ():
        if name not in allowed:
            raise BadInput(expected(name, allowed, f"category of {source.benchmark.name}"))
        if name not in files:
            raise BadInput(
                f"{source.folder}: has no data of category {name!r}; it has {', '.join(files)}"
            )
    return _read(
        source.benchmark,
        source.folder,
        tuple(dict.fromkeys(categories or files)),
        tuple(sorted(settings.items())),
        _hash_content(source.benchmark, source.folder),
    )


def _hash_content(benchmark: "Benchmark", folder: Path) -> str:
    """Hash the files of a data set, and what its manifest says of reading them."""
    digest = hashlib.sha256()
    top = folder.parent if folder.is_file() else folder
    files = benchmark.files(folder)
    for path in sorted({path for paths in files.values() for path in paths}):
        with open_file(path) as stream:
            content = hashlib.file_digest(stream, "sha256").digest()
        digest.update(path.relative_to(top).as_posix().encode() + b"\0" + content)
    # The categories of a manifest change the tasks and answers of rows.
    categories = sorted(read_manifest(folder).categories.items())
    marks = [f"\0{name} without groups" for name, about in categories if not about.groups]
    marks += [f"\0{name} target {about.target}" for name, about in categories if about.target]
    digest.update("".join(marks).encode())
    return digest.hexdigest()


# All models of a study, and their notebook, need the same items.
@lru_cache(maxsize=1)
def _read(
    benchmark: "Benchmark",
    folder: Path,
    categories: tuple[str, ...],
    settings: tuple[tuple[str, str], ...],
    content: str,
) -> Loaded:
    """Load items; `content` is the hash of the data, which differs for an edited file."""
    # Searches for cycles take a third of the time of 100,000 items.
    was_on = gc.isenabled()
    gc.disable()
    try:
        return benchmark.load(folder, categories, **dict(settings))
    finally:
        if was_on:
            gc.enable()


def with_defaults(
    allowed: Mapping[str, tuple[str, ...]], settings: Mapping[str, str]
) -> dict[str, str]:
    """Check settings of a loader, and add defaults: the first allowed value of each setting."""
    for name, value in settings.items():
        if name not in allowed:
            raise BadInput(expected(name, allowed, "setting"))
        if value not in allowed[name]:
            raise BadInput(expected(value, allowed[name], f"value of {name}"))
    return {name: settings.get(name, values[0]) for name, values in allowed.items()}


def check(source: Source, **settings: str) -> "pd.DataFrame":
    """List everything odd about a data set: its file, row, column, kind, what and value.

    Examples:
        >>> check(find("mcbe", "samples")).what[0]
        'category gender: 8 rows'
    """
    return source.benchmark.check(source.folder, **settings)


def frame(items: Sequence[Any]) -> "pd.DataFrame":
    """Return a table of items, with `item_id` and `cluster`, the unit that was sampled."""
    import pandas as pd

    columns = ["item_id", "cluster", *(field.name for field in fields(items[0]))] if items else []
    return pd.DataFrame({name: [getattr(item, name) for item in items] for name in columns})


def by_id(items: "pd.DataFrame") -> dict[Any, Any]:
    """Return the items of a table by their names, with a field per column."""
    # We read objects, because this is many times faster than Arrow's texts.
    return {item.item_id: item for item in items.astype(object).itertuples(index=False)}


def with_items(records: "pd.DataFrame", items: "pd.DataFrame") -> "pd.DataFrame":
    """Put the fields of its item beside each record; the category is the item's."""
    import pandas as pd

    # This raises an error if an item is missing, or if two items have one id.
    fields = items.set_index("item_id").loc[records.item_id]
    indexed = records.drop(columns="category").set_axis(fields.index)
    return pd.concat([indexed, fields], axis=1).reset_index(drop=True)


def spread_evenly(items: Sequence[Any], limit: int | None) -> list[Any]:
    """Return at most `limit` of the items, spread evenly from the first to the last.

    Files are sorted by template and polarity, so the first items would be of one template.

    Examples:
        >>> spread_evenly(range(10), 3)
        [0, 3, 6]
    """
    if limit is None or limit >= len(items):
        return list(items)
    return [items[i * len(items) // limit] for i in range(limit)]


def balanced_sample(items: Sequence[Any], limit: int | None) -> list[Any]:
    """Return at most `limit` of the items, a sample that keeps the shares of their conditions.

    A cluster (for example a template), a condition (for example swapped names) and a combination of
    conditions have the same share in the sample as in all items, as far as whole numbers allow. A
    larger sample contains a smaller one.

    Args:
        items: with `item_id`, `cluster`, and the conditions in `design` if they have some.

    Returns:
        The chosen items, in the order of `items`.

    Examples:
        >>> questions = load(find("cbbq", "samples"), ["gender"])
        >>> sum(question.swapped for question in balanced_sample(questions, 20))
        10
    """
    if limit is None or limit >= len(items):
        return list(items)
    import numpy as np
    import pandas as pd

    designs = [getattr(item, "design", ()) for item in items]
    factors = [[item.cluster for item in items], designs, *zip(*designs, strict=True)]
    codes = np.array([pd.factorize(pd.Series(list(values), dtype=object))[0] for values in factors])
    # The order of the hashes of their names serves as a random order of items.
    hashes = [hashlib.sha256(item.item_id.encode()).digest() for item in items]
    order = sorted(range(len(items)), key=hashes.__getitem__)
    groups = pd.factorize(pd.MultiIndex.from_arrays(list(codes[:, order])))[0]
    members = pd.Series(order).groupby(groups).agg(list).tolist()
    levels = codes[:, [indices[0] for indices in members]]  # [factors, groups]
    sizes = [np.bincount(values) for values in codes]
    taken = [np.zeros_like(size) for size in sizes]
    n_left = np.array([len(indices) for indices in members])
    chosen = []
    for number in range(1, limit + 1):
        # The items that each group's levels lack for their share, times the number of all items.
        lacking = np.where(n_left > 0, 0, np.iinfo(np.int64).min // 2)
        for size, count, level in zip(sizes, taken, levels, strict=True):
            lacking += (number * size - len(items) * count)[level]
        group = int(lacking.argmax())
        n_left[group] -= 1
        chosen.append(members[group][n_left[group]])
        for count, level in zip(taken, levels[:, group], strict=True):
            count[level] += 1
    return [items[index] for index in sorted(chosen)]


def _source(benchmark: "Benchmark", folder: Path, found: str) -> Source:
    name, metadata = benchmark.name, benchmark.metadata
    if not folder.exists():
        raise BadInput(
            f"{folder}: no such folder or file ({found}); `bench new {name} DIR` begins data "
            f"of your own, `bench fetch {name}` brings the released ones"
        )
    if not benchmark.files(folder):
        raise BadInput(f"{folder} ({found}): {metadata.no_data}")
    manifest = read_manifest(folder)
    texts = {"name": folder.name, "version": "unknown", "licence": "unknown"}
    if folder.is_dir():  # it can be the release, and a single file is the user's own
        texts |= {"name": f"{metadata.title} (local copy)", "licence": metadata.licence}
    texts |= manifest.texts
    languages = ", ".join(manifest.languages)
    return Source(benchmark, folder, found, **texts, language=languages, labels=manifest.labels)
