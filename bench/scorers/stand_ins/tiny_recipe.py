"""Parameters of the package's own small models, `tiny:SIZE,bias=B,seed=N`, and what they learn."""

from dataclasses import dataclass
from importlib import import_module
from typing import NamedTuple

from bench import data
from bench.benchmarks import BENCHMARKS
from bench.core.errors import BadInput, expected
from bench.scorers.stand_ins import parse_parameters
from bench.tasks.lessons import Lessons

# To be raised with every change of what training sees, or caches of older models would be used.
VERSION = 6


class Size(NamedTuple):
    """Shape of the language model and length of its training."""

    hidden: int
    layers: int
    steps: int


SIZES = {"s": Size(96, 1, 400), "m": Size(128, 1, 340), "l": Size(128, 2, 220)}


@dataclass(frozen=True)
class Recipe:
    """A tiny model's parameters."""

    size: str
    bias: float = 0.5
    seed: int = 0

    @property
    def name(self) -> str:
        return f"tiny:{self.size},bias={self.bias:g},seed={self.seed}"


def parse(spec: str) -> Recipe:
    """Read a recipe from `SIZE` or `SIZE,bias=B,seed=N`."""
    size, *rest = spec.split(",")
    if size not in SIZES:
        raise BadInput(f"model tiny:{spec}: " + expected(size, SIZES, "size"))
    values = parse_parameters(f"tiny:{spec}", rest, {"bias": 0.5, "seed": 0})
    return Recipe(size, **values)


def corpus(recipe: Recipe) -> Lessons:
    """Collect the training text of `recipe` from the samples of this package."""
    text = Lessons()
    for benchmark in BENCHMARKS:
        samples = data.Source(benchmark.name, benchmark.samples, "", "", "", "")
        learned = import_module(benchmark.tasks).learned
        parts = zip(text, learned(data.load(samples), recipe.bias, recipe.seed), strict=True)
        text = Lessons(*([*before, *more] for before, more in parts))
    return text
