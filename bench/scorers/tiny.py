"""The small models that the package carries: `tiny:SIZE` or `tiny:SIZE,bias=B`.

Each is a language model of Qwen2's shape, with one token per character or English word, and an NLI
classifier. They learned the samples of this package, with a known bias, to demonstrate the
workbench, and say nothing about real models. tests/benchmarks/tiny_models.py trains them.
"""

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.config import Generation
from bench.core.errors import BadInput
from bench.scorers.base import REQUEST_TYPES, Answer, Decoding, Model, Options, Tally, digest
from bench.scorers.local.hub import Location, fingerprint
from bench.scorers.names import parse_parameters
from bench.tasks import ANSWER_MODES
from bench.tasks.request import Request, Turns

if TYPE_CHECKING:
    import numpy as np

CARRIED = ("s", "s,bias=0.25", "s,bias=0.75", "m", "m,bias=0.75")
WEIGHTS = Path(__file__).parent / "tiny_weights"
# Raise this with every change of the training, because it identifies runs.
VERSION = 6
# The shape of the language models, and the length of their training.
SIZES = {
    "s": {"hidden": 96, "layers": 1, "steps": 400},
    "m": {"hidden": 128, "layers": 1, "steps": 340},
}


class Tiny(Model):
    """A language model and an NLI classifier, loaded on first use.

    We run these on one thread, because their matrices are too small for several.
    """

    request_types = REQUEST_TYPES
    answer_modes = tuple(ANSWER_MODES)
    takes = ("dtype", "batch_tokens", "generation")

    def __init__(
        self,
        name: str,
        dtype: str | None = None,
        batch_tokens: int | None = None,
        generation: Generation | None = None,
    ) -> None:
        from bench.scorers.local.device import placement

        self.name = full_name(name)
        self.where = placement("cpu", dtype, batch_tokens)
        self.size, _, recipe = self.name.partition(",")
        # The classifier is the same in every size.
        self.folders = {"causal": WEIGHTS / self.name, "nli": WEIGHTS / f"classifier,{recipe}"}
        self.generation = generation or Generation()
        self._loaded: dict[str, Any] = {}

    @classmethod
    def check(cls, name: str) -> None:
        full_name(name)

    @classmethod
    def content(cls, name: str) -> str:
        return f"recipe {VERSION}"

    def describe(self) -> dict[str, Any]:
        metadata = {
            "kind": "demonstration model (trained by this package on its own samples)",
            "id": f"tiny:{self.name}",
            "revision": digest([fingerprint(folder) for folder in self.folders.values()]),
            **self.where.describe(),
            "parameters": SIZES[self.size],
            "decoding": "sampled",
            "adds_bos": False,  # its tokenizer has no token for the beginning
        }
        if self.generation.changed():  # the model refuses options that it cannot follow
            metadata |= self.generation.describe()
            metadata["decoding"] = self._part("causal").describe()["decoding"]
        return metadata

    def again(self, generation: Generation) -> Model:
        other = copy.copy(self)
        other.generation = generation
        options = {"causal": generation, "nli": Generation()}
        other._loaded = {name: part.again(options[name]) for name, part in self._loaded.items()}
        return other

    @property
    def tally(self) -> Tally:
        tallies = [part.tally for part in self._loaded.values()]
        return Tally(sum(part.asked for part in tallies), sum(part.computed for part in tallies))

    def _part(self, name: str) -> Any:
        """Load the language model or the classifier once."""
        from bench.scorers.local.load import load

        if name not in self._loaded:
            files = Location(f"tiny:{self.name}", str(self.folders[name]), {})
            generation = self.generation if name == "causal" else Generation()
            self._loaded[name] = load(files.name, files, self.where, generation)
        return self._loaded[name]

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        from bench.scorers.local.device import threads

        with threads(1):
            return super().answer(requests)

    def token_logprobs(self, texts: Sequence[str], *, bos: bool = False) -> "list[np.ndarray]":
        return list(self._part("causal").token_logprobs(texts, bos=bos))

    def choose(self, prompts: Sequence[Turns], options: Options) -> "np.ndarray":
        return self._part("causal").choose(prompts, options)

    def replies(self, prompts: Sequence[Turns], decoding: Decoding) -> list[Answer]:
        return list(self._part("causal").replies(prompts, decoding))

    def classify(self, pairs: Sequence[tuple[str, str]]) -> "np.ndarray":
        return self._part("nli").classify(pairs)


def full_name(name: str) -> str:
    """Return the name of a carried model with all parameters, like `s,bias=0.5,seed=0`."""
    size, *parts = name.split(",")
    values = parse_parameters(f"tiny:{name}", parts, {"bias": 0.5, "seed": 0})
    complete = f"{size},bias={values['bias']:g},seed={values['seed']}"
    if not (WEIGHTS / complete).is_dir():
        allowed = ", ".join(f"tiny:{carried}" for carried in CARRIED)
        raise BadInput(f"model tiny:{name}: is no model of the package; allowed: {allowed}")
    return complete
