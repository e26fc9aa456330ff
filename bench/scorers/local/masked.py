"""Masked language models: pseudo-log-likelihoods (Salazar et al., ACL 2020), each token masked in turn."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from bench.core.errors import BadInput
from bench.scorers.base import Model, Tally, each
from bench.scorers.local.checkpoint import (
    Placement,
    batches,
    check_lengths,
    special_behind,
    tokenizer_identity,
)
from bench.scorers.local.logprobs import padded
from bench.tasks.request import Turns


class Masked(Model):
    """A masked language model. Its likelihoods are pseudo-likelihoods: not comparable with a causal model's."""

    verbs = ("nll", "choose")
    # The paper gives encoders no letters to choose from.
    reads = ("options", "letters")

    def __init__(
        self, network: Any, tokenizer: Any, where: Placement, identity: dict[str, Any]
    ) -> None:
        if tokenizer.mask_token_id is None:
            raise BadInput(
                f"{identity['id']}: its tokenizer has no mask token, so it cannot be asked as a masked model"
            )
        self.network, self.tokenizer, self.where, self.identity = (
            network,
            tokenizer,
            where,
            identity,
        )
        self.tally = Tally()
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

    def choose(
        self, prompts: Sequence[Turns], options: Sequence[str] | Sequence[Sequence[str]]
    ) -> np.ndarray:
        """Sum of pseudo-log-probabilities of each option's tokens behind the prompt, nats: float64 [n, k].

        Each token of the option is masked in turn, and given the prompt and the option's other tokens. CrowS-Pairs
        (Nangia et al., EMNLP 2020) scores the tokens that two sentences share, given those in which they differ; here
        that would be the prompt's, given the option. Turns of a conversation are joined by line breaks.
        """
        choices = each(options, len(prompts))
        encoded, positions, longest = [], [], []
        for prompt, some in zip(prompts, choices, strict=True):
            ids = self.tokenizer(prompt if isinstance(prompt, str) else "\n".join(prompt))[
                "input_ids"
            ]
            end = len(ids) - self._behind
            for option in some:
                tokens = self.tokenizer(option, add_special_tokens=False)["input_ids"]
                encoded.append(ids[:end] + tokens + ids[end:])
                positions.append(list(range(end, end + len(tokens))))
            longest.append(max(map(len, encoded[len(encoded) - len(some) :]), default=0))
        self._check(longest, "the text with its reply")
        sums = iter([float(row.sum()) for row in self._masked(encoded, positions)])
        values = [[next(sums) for _ in some] for some in choices]
        return np.array(values, dtype=np.float64).reshape(
            len(prompts), -1 if prompts else len(options)
        )

    def _check(self, lengths: Sequence[int], what: str) -> None:
        known = self.tokenizer.model_max_length
        check_lengths(self.identity["id"], lengths, self.network, what, known)

    @torch.inference_mode()
    def _masked(
        self, encoded: Sequence[Sequence[int]], positions: Sequence[Sequence[int]]
    ) -> list[np.ndarray]:
        """Log-probability of the tokens at the `positions` of each text, one masked at a time.

        Texts that differ in the masked token alone are one text then, and are computed once.
        """
        self.tally.asked += sum(map(len, encoded))
        masked: dict[
            tuple[tuple[int, ...], int], list[tuple[int, int]]
        ] = {}  # to the tokens read there, and where they belong
        n = 0
        for text, places in zip(encoded, positions, strict=True):
            for place in places:
                hidden = (*text[:place], self.tokenizer.mask_token_id, *text[place + 1 :])
                masked.setdefault((hidden, place), []).append((text[place], n))
                n += 1
        scores, texts = np.empty(n), list(masked)
        for numbers in batches([len(ids) for ids, _ in texts], self.where.batch_tokens):
            some = [texts[k] for k in numbers]
            ids, mask = padded(
                [text for text, _ in some], self.tokenizer.pad_token_id or 0, self.where.device
            )
            self.tally.computed += ids.numel()
            with reading_at(self.network, [place for _, place in some]):
                rows = self.network(input_ids=ids, attention_mask=mask).logits[0].float()
            reads = [(row, *read) for row, text in enumerate(some) for read in masked[text]]
            lines, targets, where = torch.tensor(reads).T
            found = (
                rows[lines.to(rows.device), targets.to(rows.device)]
                - rows.logsumexp(1)[lines.to(rows.device)]
            )
            scores[where.numpy()] = found.cpu().numpy()
        ends = np.cumsum([0, *map(len, positions)])
        return [scores[start:end] for start, end in pairwise(ends)]


@contextmanager
def reading_at(network: Any, positions: Sequence[int]) -> Iterator[None]:
    """The network's head sees one state a text, that at its position: logits are [1, texts, vocabulary], not a row a token."""

    def gather(body: Any, args: Any, output: Any) -> Any:
        states = output.last_hidden_state
        output.last_hidden_state = states[torch.arange(len(positions)), torch.tensor(positions)][
            None
        ]
        return output

    hook = network.base_model.register_forward_hook(gather)
    try:
        yield
    finally:
        hook.remove()
