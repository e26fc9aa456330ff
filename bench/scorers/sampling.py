"""Sample replies as a model's configuration says, with random numbers of each reply's own."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from transformers import LogitsProcessor
from transformers.generation import (
    MinPLogitsWarper,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)


class SeededSampling(LogitsProcessor):
    """Turns greedy search into sampling with a random generator per row.

    A row's draws depend on its seed and step only, so that a reply does not change with batch
    size, order, or restart.

    Args:
        seeds: of each row, in hexadecimal digits.
        written: tokens that each row's reply has already.
        steps: the most further tokens.
        start: tokens of a row, padding included, before the first step.
    """

    def __init__(
        self, seeds: Sequence[str], written: Sequence[int], steps: int, start: int
    ) -> None:
        self.start = start
        draws = [
            np.random.default_rng(int(seed, 16)).random(before + steps)[before:]
            for seed, before in zip(seeds, written, strict=True)
        ]
        self.uniform = torch.tensor(np.array(draws))

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        cumulative = scores.double().softmax(-1).cumsum(-1)
        draw = self.uniform[:, input_ids.shape[1] - self.start].to(scores.device)
        chosen = torch.searchsorted(
            cumulative, (draw * cumulative[:, -1])[:, None], right=True
        ).clamp(max=scores.shape[1] - 1)
        return torch.full_like(scores, -torch.inf).scatter(1, chosen, 0.0)


def take_sampling(
    config: Any, temperature: float | None = None, top_p: float | None = None
) -> dict[str, Any]:
    """Take the sampling part out of a generation configuration; empty for greedy decoding.

    Args:
        temperature: in place of the configuration's; 0 decodes greedily, any other samples.
        top_p: in place of the configuration's.
    """
    wanted = deepcopy(config)
    config.do_sample = False
    for name in ("temperature", "top_k", "top_p", "min_p", "typical_p"):
        setattr(config, name, None)
    if temperature == 0 or (temperature is None and not wanted.do_sample):
        return {}
    # Without a configuration, transformers samples at temperature 1 from the 50 likeliest tokens.
    return {
        "temperature": temperature or wanted.temperature or 1.0,
        "top_k": 50 if wanted.top_k is None else wanted.top_k,
        "top_p": top_p or wanted.top_p or 1.0,
        "min_p": wanted.min_p or 0.0,
    }


def warpers(sampling: dict[str, Any]) -> list[LogitsProcessor]:
    """Return the result of `take_sampling` as steps on the logits."""
    steps: list[LogitsProcessor] = []
    if sampling["temperature"] != 1.0:
        steps.append(TemperatureLogitsWarper(float(sampling["temperature"])))
    if sampling["top_k"]:
        steps.append(TopKLogitsWarper(int(sampling["top_k"])))
    if sampling["top_p"] < 1.0:
        steps.append(TopPLogitsWarper(float(sampling["top_p"])))
    if sampling["min_p"]:
        steps.append(MinPLogitsWarper(float(sampling["min_p"])))
    return steps
