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
    return (*OWN, *_plugins())


def resolve(name: str) -> str:
    """Return a benchmark's name as modules spell it (`nli-coal` is `nli_coal`).

    Raises:
        BadInput: there is no such benchmark.
    """
    module_name = name.strip().lower().replace("-", "_")
    # Plug-ins are looked up second, because searching for them takes time.
    if module_name not in OWN and module_name not in _plugins():
        raise BadInput(expected(name, names(), "benchmark"))
    return module_name


def get(name: str) -> "Benchmark":
    """Return the benchmark `name`.

    Raises:
        BadInput: there is no such benchmark, or its package cannot be imported.
    """
    return _load(resolve(name))


@cache
def _load(name: str) -> "Benchmark":
    if name in OWN:
        return import_module(f"bench.benchmarks.{name}").BENCHMARK
    entry = _plugins()[name]
    title = f"benchmark {name} ({entry.value})"
    remedy = "; mend or uninstall its package"
    with explain_others(BadInput, f"{title} cannot be loaded: ", remedy):
        benchmark = entry.load()
        benchmark.code = Code(plugin_files(entry.module, entry.dist), since=STARTED)
        declared_name = benchmark.metadata.name
    if declared_name != name:
        raise BadInput(f"{title}: calls itself {declared_name!r}")
    return benchmark


@cache
def _plugins() -> "dict[str, EntryPoint]":
    """Return the benchmarks of other packages by name."""
    from importlib.metadata import entry_points  # `bench --help` needs none

    entries = entry_points(group=GROUP)
    return {entry.name: entry for entry in entries if entry.name not in OWN}
