"""The registry of benchmarks: a new one is a line here, or an entry point.

Another package adds a benchmark with an entry point of the group `bench.benchmarks`:

    [project.entry-points."bench.benchmarks"]
    tea = "tea_bench:BENCHMARK"

`BENCHMARK` is an object of `bench.benchmarks.base.Benchmark`; see docs/new_benchmark.md.
"""

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from bench.core.errors import BadInput, expected, explain_others
from bench.core.inputs import STARTED, Code, plugin_files

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from bench.benchmarks.base import Benchmark

GROUP = "bench.benchmarks"
# The benchmarks of this package.
OWN = ("mcbe", "cbbq", "nli_coal")


def names() -> tuple[str, ...]:
    """Return the names of all benchmarks, first the benchmarks of this package."""
    return (*OWN, *_others())


def resolve(name: str) -> str:
    """Return a benchmark's name as modules spell it (`nli-coal` is `nli_coal`).

    Raises:
        BadInput: there is no such benchmark.
    """
    wanted = name.strip().lower().replace("-", "_")
    # Other packages come second, because a search for them takes time.
    if wanted not in OWN and wanted not in _others():
        raise BadInput(expected(name, names(), "benchmark"))
    return wanted


def get(name: str) -> "Benchmark":
    """Return the benchmark `name`.

    Raises:
        BadInput: there is no such benchmark, or its package cannot be imported.
    """
    return _load(resolve(name))


@cache
def _load(name: str) -> "Benchmark":
    if name in OWN:
        own: Benchmark = import_module(f"bench.benchmarks.{name}").BENCHMARK
        return own
    entry = _others()[name]
    place, remedy = f"benchmark {name} ({entry.value})", "; mend or uninstall its package"
    with explain_others(BadInput, f"{place} cannot be loaded: ", remedy):
        benchmark: Benchmark = entry.load()
        benchmark.code = Code(plugin_files(entry.module, entry.dist), since=STARTED)
        own_name = benchmark.metadata.name
    if own_name != name:
        raise BadInput(f"{place}: calls itself {own_name!r}")
    return benchmark


@cache
def _others() -> "dict[str, EntryPoint]":
    """Return the benchmarks of other packages by name."""
    from importlib.metadata import entry_points  # `bench --help` needs none

    found = {entry.name: entry for entry in entry_points(group=GROUP)}
    return {name: entry for name, entry in found.items() if name not in OWN}
