"""Who learns a bias-controlled set in a meta-evaluation: the tiny transformer from nothing, or a checkpoint that goes on."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from bench import scorers
from bench.data.nli_coal.build import Row
from bench.data.nli_coal.language_pack import Pack

# Options of a training that its result does not depend on.
WHERE = ("device", "save_every")


class Classifies(Protocol):
    """A model of pairs of sentences."""

    def classify(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """Probabilities of entailment, contradiction, neutral: float64 [n, 3]."""
        ...


class Learner(Protocol):
    """Something that learns a controlled set. `describe` says everything that its models depend on besides set and seed."""

    name: str

    def describe(self) -> Mapping[str, Any]: ...

    def learn(self, pack: Pack, rows: Sequence[Row], seed: int, folder: Path) -> Classifies:
        """A model of `rows`; `folder` is its own, and what lies there after a kill is found there again."""
        ...


class FromScratch:
    """The tiny transformer of `bench.scorers.stand_ins.tiny_nli`. Its vocabulary is the pack's."""

    name = "tiny transformer"

    def describe(self) -> Mapping[str, Any]:
        from bench.scorers.stand_ins.tiny_nli import RECIPE

        return {"model": self.name, **RECIPE}

    def learn(self, pack: Pack, rows: Sequence[Row], seed: int, folder: Path) -> Classifies:
        from bench.scorers.local.classifier import Classifier
        from bench.scorers.local.device import placement
        from bench.scorers.stand_ins.tiny_nli import tokenizer, train

        whole = [
            *(one.word for one in pack.occupations),
            *(word for some in pack.terms.values() for word in some),
        ]
        coder = tokenizer(whole, pack.frames)
        words = sorted({(row.occupation.word, row.term, row.label) for row in rows})
        pairs = [(row.premise, row.hypothesis, row.label) for row in rows]
        network = train(coder, words, pairs, seed, f"{self.name}, from scratch")
        return Classifier(network, coder, placement("cpu", None, None), {"id": self.name})


@dataclass(frozen=True)
class Continued:
    """A checkpoint that goes on training on each controlled set, as in the paper; `options` are those of `bench.train.nli`."""

    model: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return Path(self.model.rstrip("/")).name

    def describe(self) -> Mapping[str, Any]:
        asked = {name: value for name, value in self.options.items() if name not in WHERE}
        return {"model": self.model, "content": scorers.content(self.model), **asked}

    def learn(self, pack: Pack, rows: Sequence[Row], seed: int, folder: Path) -> Classifies:
        from bench import train

        file = folder / "train.jsonl"
        lines = (
            {"sentence1": row.premise, "sentence2": row.hypothesis, "label": row.label}
            for row in rows
        )
        file.write_text(
            "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), "utf-8"
        )
        done = train.nli(self.model, [file], folder / "model", seed=seed, **self.options)
        model: Any = scorers.load(str(done.folder), device=self.options.get("device"))
        return model
