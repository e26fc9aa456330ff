"""Stand-ins for a model: recorded answers, simulated respondents, and the package's own models.

This module holds their parameters, which are read before torch is loaded.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from bench import data
from bench.benchmarks import get
from bench.core.errors import BadInput, expected
from bench.scorers.base import VERBS, Backend, Model
from bench.scorers.stand_ins import lessons
from bench.scorers.stand_ins.lessons import Lessons
from bench.tasks import READ

# To be raised with every change of what training sees, or caches of older models would be used.
VERSION = 6


class Demonstration(Backend):
    """`SIZE` or `SIZE,bias=B,seed=N`; see `bench.scorers.stand_ins.tiny`."""

    verbs = VERBS
    reads = tuple(READ)
    takes = ("dtype", "batch_tokens", "generation")

    @classmethod
    def check(cls, rest: str) -> None:
        parse_recipe(rest)

    @classmethod
    def content(cls, rest: str) -> str:
        return f"recipe {VERSION}"

    @classmethod
    def load(
        cls,
        rest: str,
        dtype: str | None = None,
        batch_tokens: int | None = None,
        **options: Any,
    ) -> Model:
        from bench.scorers.local.device import placement
        from bench.scorers.stand_ins.tiny import Tiny

        return Tiny(rest, placement("cpu", dtype, batch_tokens), **options)


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


def parse_recipe(spec: str) -> Recipe:
    """Read a recipe from `SIZE` or `SIZE,bias=B,seed=N`."""
    size, *rest = spec.split(",")
    if size not in SIZES:
        raise BadInput(f"model tiny:{spec}: " + expected(size, SIZES, "size"))
    values = parse_parameters(f"tiny:{spec}", rest, {"bias": 0.5, "seed": 0})
    return Recipe(size, **values)


def corpus(recipe: Recipe) -> Lessons:
    """Collect the training text of `recipe` from the samples of this package."""
    text = Lessons()
    learned = {"mcbe": lessons.mcbe, "cbbq": lessons.cbbq, "nli_coal": lessons.nli_coal}
    for benchmark, lessons_on in learned.items():
        samples = data.Source(benchmark, get(benchmark).metadata.samples, "", "", "", "")
        more: Any = lessons_on(data.load(samples), recipe.bias, recipe.seed)
        parts = zip(text, more, strict=True)
        text = Lessons(*([*before, *more] for before, more in parts))
    return text


def parse_parameters(
    model: str, parts: Iterable[str], defaults: Mapping[str, float | str]
) -> dict[str, Any]:
    """Read parts like `bias=0.7` over `defaults`, whose types they have; floats are rates."""
    values: dict[str, Any] = dict(defaults)
    for part in parts:
        name, equals, value = part.partition("=")
        if name not in defaults or not equals:
            raise BadInput(f"model {model}: " + expected(name, defaults, "parameter"))
        try:
            values[name] = type(defaults[name])(value)
        except ValueError:
            raise BadInput(f"model {model}: {name}={value!r} is not a number") from None
        if isinstance(values[name], float) and not 0 <= values[name] <= 1:
            raise BadInput(f"model {model}: {name}={value} is outside 0 to 1")
    return values
