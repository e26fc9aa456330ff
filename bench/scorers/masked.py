"""Masked language models: pseudo-log-likelihoods (Salazar et al., ACL 2020), each token masked in turn."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from bench.errors import BadInput
from bench.scorers.base import Model
from bench.scorers.checkpoint import Placement, check_lengths, special_behind, tokenizer_identity


class Masked(Model):
    """A masked language model. Its likelihoods are pseudo-likelihoods: not comparable with a causal model's."""

    verbs = ("nll", "choose")

    def __init__(self, network: Any, tokenizer: Any, where: Placement, identity: dict[str, Any]) -> None:
        if tokenizer.mask_token_id is None:
            raise BadInput(
                f"{identity['id']}: its tokenizer has no mask token, so it cannot be asked as a masked model"
            )
        self.network, self.tokenizer, self.where, self.identity = network, tokenizer, where, identity
        self._behind = special_behind(tokenizer)

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "masked language model (pseudo-log-likelihood)",
            **self.identity,
            **self.where.describe(),
            **tokenizer_identity(self.tokenizer),
            "parameters": self.network.num_parameters(),
        }

    def token_logprobs(self, texts: Sequence[str], *, bos: bool = False) -> list[np.ndarray]:
        """Log-probability of each token given all others, special tokens left out; it has those of both ends anyway."""
        encoded = [self.tokenizer(text)["input_ids"] for text in texts]
        self._check([len(ids) for ids in encoded], "the text")
        special = set(self.tokenizer.all_special_ids)
        return self._masked(
            encoded, [[i for i, token in enumerate(ids) if token not in special] for ids in encoded]
        )

    def choose(self, prompts: Sequence[str], options: Sequence[str]) -> np.ndarray:
        """Sum of pseudo-log-probabilities of each option's tokens behind the prompt: float64 [n, k]."""
        encoded, positions, longest = [], [], []
        for prompt in prompts:
            ids = self.tokenizer(prompt)["input_ids"]
            end = len(ids) - self._behind
            for option in options:
                tokens = self.tokenizer(option, add_special_tokens=False)["input_ids"]
                encoded.append(ids[:end] + tokens + ids[end:])
                positions.append(list(range(end, end + len(tokens))))
            longest.append(max(map(len, encoded[len(encoded) - len(options) :]), default=0))
        self._check(longest, "the text with its reply")
        sums = [float(row.sum()) for row in self._masked(encoded, positions)]
        return np.array(sums, dtype=np.float64).reshape(len(prompts), len(options))

    def _check(self, lengths: Sequence[int], what: str) -> None:
        known = self.tokenizer.model_max_length
        check_lengths(self.identity["id"], lengths, self.network, what, known)

    @torch.inference_mode()
    def _masked(
        self, encoded: Sequence[Sequence[int]], positions: Sequence[Sequence[int]]
    ) -> list[np.ndarray]:
        jobs = [(i, position) for i, places in enumerate(positions) for position in places]
        values: list[list[float]] = [[] for _ in encoded]
        width = max((len(encoded[i]) for i, _ in jobs), default=1)
        size = max(1, self.where.batch_tokens // width)
        for start in range(0, len(jobs), size):
            some = jobs[start : start + size]
            pad = self.tokenizer.pad_token_id or 0
            longest = max(len(encoded[i]) for i, _ in some)
            ids = torch.full((len(some), longest), pad)
            mask = torch.zeros_like(ids)
            for k, (i, position) in enumerate(some):
                ids[k, : len(encoded[i])], mask[k, : len(encoded[i])] = torch.tensor(encoded[i]), 1
                ids[k, position] = self.tokenizer.mask_token_id
            logits = self.network(
                input_ids=ids.to(self.where.device), attention_mask=mask.to(self.where.device)
            ).logits
            rows = logits[torch.arange(len(some)), torch.tensor([position for _, position in some])].float()
            targets = torch.tensor([encoded[i][position] for i, position in some], device=rows.device)
            scores = (rows.gather(1, targets[:, None])[:, 0] - rows.logsumexp(1)).tolist()
            for (i, _), score in zip(some, scores, strict=True):
                values[i].append(score)
        return [np.array(row, dtype=np.float64) for row in values]
