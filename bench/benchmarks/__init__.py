"""The benchmarks that the workbench knows: a new one is a line here, or an entry point.

Another package adds a benchmark with an entry point of the group `bench.benchmarks`:

    [project.entry-points."bench.benchmarks"]
    tea = "tea_bench:BENCHMARK"

where `BENCHMARK = Benchmark.of_package("tea", "tea_bench", Path(__file__).parent)`; see
docs/new_benchmark.md. What its modules offer is in `bench.data.Dataset`, `bench.tasks.Tasks` and
`bench.metrics.Metrics`.
"""

from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, overload

from bench.core.errors import BadInput, expected
from bench.core.places import NOTEBOOKS, PACKAGE

if TYPE_CHECKING:
    from bench.data import Dataset
    from bench.metrics import Metrics
    from bench.tasks import Tasks

GROUP = "bench.benchmarks"


class Release(NamedTuple):
    """Where released data are: on `github` at a commit, or on the Hugging Face `hub`."""

    host: str
    repository: str
    commit: str


@dataclass(frozen=True)
class Benchmark:
    """A benchmark, and where its parts are.

    Attributes:
        data, tasks, metrics: names of its modules.
        samples: folder of the sample data that come with the package.
        prompts: its own prompt set.
        notebook: its page in reports.
        source: where `bench fetch` gets the released data: `github:OWNER/NAME@COMMIT`,
            `hub:OWNER/NAME`, or nothing.
    """

    name: str
    data: str
    tasks: str
    metrics: str
    samples: Path
    prompts: Path
    notebook: Path
    source: str = ""

    @property
    def release(self) -> Release:
        """Where the released data are; empty parts if that is not known."""
        host, _, address = self.source.partition(":")
        repository, _, commit = address.partition("@")
        return Release(host, repository, commit)

    @classmethod
    def of_package(cls, name: str, package: str, folder: Path) -> Self:
        """Describe a benchmark that is a package of its own, in `folder`.

        Its modules are `items`, `requests` and `scores`, its files `samples/`, `prompts.toml` and
        `NAME.ipynb`.
        """
        return cls(
            name,
            data=f"{package}.items",
            tasks=f"{package}.requests",
            metrics=f"{package}.scores",
            samples=folder / "samples",
            prompts=folder / "prompts.toml",
            notebook=folder / f"{name}.ipynb",
        )


def _own(name: str, source: str) -> Benchmark:
    """Describe a benchmark of this package."""
    own = Benchmark.of_package(name, f"bench.benchmarks.{name}", PACKAGE / "benchmarks" / name)
    return replace(own, notebook=NOTEBOOKS / f"{name}.ipynb", source=source)


BENCHMARKS = (
    # McBE's card names its commit only as an abbreviation (ec8bd87), which the Hub does not take.
    _own("mcbe", "hub:Velikaya/McBE"),
    _own("cbbq", "github:YFHuangxxxx/CBBQ@95eaf2eeaa0b936f3e97e3424f134e9d7655da98"),
    _own(
        "nli_coal",
        "github:panatchakorn-a/bias-eval-nli-considering-all-labels"
        "@4d57afe81db25011b4c515ab1575115c3cfb1765",
    ),
)


def names() -> tuple[str, ...]:
    """Return the names of all benchmarks, those of other packages last."""
    return tuple(_registered())


def resolve(name: str) -> str:
    """Return a benchmark's name as modules spell it (`nli-coal` is `nli_coal`).

    Raises:
        BadInput: there is no such benchmark.
    """
    return get(name).name


def get(name: str) -> Benchmark:
    """Return the benchmark `name`.

    Raises:
        BadInput: there is no such benchmark, or its package cannot be imported.
    """
    wanted = name.strip().lower().replace("-", "_")
    for benchmark in BENCHMARKS:  # without a look at what else is installed, which takes time
        if benchmark.name == wanted:
            return benchmark
    if wanted not in _registered():
        raise BadInput(expected(name, names(), "benchmark"))
    return _registered()[wanted]


@overload
def module(room: Literal["data"], name: str) -> "Dataset": ...
@overload
def module(room: Literal["tasks"], name: str) -> "Tasks": ...
@overload
def module(room: Literal["metrics"], name: str) -> "Metrics": ...
def module(room: Literal["data", "tasks", "metrics"], name: str) -> Any:
    """Return the module of benchmark `name` in a room.

    Raises:
        BadInput: there is no such benchmark.
    """
    return import_module(getattr(get(name), room))


@cache
def _registered() -> dict[str, Benchmark]:
    """Return all benchmarks by name: those of this package, then those of others."""
    registered = {benchmark.name: benchmark for benchmark in BENCHMARKS}
    for entry in entry_points(group=GROUP):
        try:
            benchmark = entry.load()
        except Exception as error:  # another package's code can fail in any way
            raise BadInput(
                f"benchmark {entry.name} ({entry.value}) cannot be loaded: {error}; mend or "
                "uninstall its package"
            ) from error
        if not isinstance(benchmark, Benchmark):
            raise BadInput(f"entry point {entry.name} ({entry.value}): is not a Benchmark")
        registered.setdefault(benchmark.name, benchmark)
    return registered
