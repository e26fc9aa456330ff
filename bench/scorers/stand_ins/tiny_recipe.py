"""Parameters of the package's own small models, `tiny:SIZE,bias=B,seed=N`, and what they learn."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

from bench import data
from bench.benchmarks import BENCHMARKS
from bench.core.errors import BadInput, expected
from bench.tasks.lessons import Lessons

# A change of anything that training sees must change this, or caches of older models would be taken for new ones.
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
    """A recipe from `SIZE` or `SIZE,bias=B,seed=N`.

    Raises:
        BadInput: an unknown size or name, or a bias outside 0 to 1.
    """
    size, *rest = spec.split(",")
    if size not in SIZES:
        raise BadInput(f"model tiny:{spec}: " + expected(size, SIZES, "size"))
    values: dict[str, Any] = {}
    for part in rest:
        name, _, value = part.partition("=")
        if name not in ("bias", "seed"):
            raise BadInput(f"model tiny:{spec}: " + expected(name, ("bias", "seed"), "parameter"))
        try:
            values[name] = int(value) if name == "seed" else float(value)
        except ValueError:
            raise BadInput(f"model tiny:{spec}: {name}={value!r} is not a number") from None
    if not 0 <= values.get("bias", 0) <= 1:
        raise BadInput(f"model tiny:{spec}: bias={values['bias']:g} is outside 0 to 1")
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
