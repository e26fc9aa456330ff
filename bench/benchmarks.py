"""The benchmarks that the workbench knows. A new one is one module in each room and one line here."""

from importlib import import_module
from types import ModuleType

from bench.core.errors import BadInput, expected

NAMES = (
    "mcbe",
    "cbbq",
    "nli_coal",
)


def resolve(name: str) -> str:
    """The benchmark's name as the rooms spell it (`nli-coal` is `nli_coal`).

    Raises:
        BadInput: no such benchmark.
    """
    known = name.strip().lower().replace("-", "_")
    if known not in NAMES:
        raise BadInput(expected(name, NAMES, "benchmark"))
    return known


def module(room: str, name: str) -> ModuleType:
    """The module of benchmark `name` in `room` (`data`, `tasks` or `metrics`)."""
    return import_module(f"bench.{room}.{resolve(name)}")
