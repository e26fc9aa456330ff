"""Masked language models: pseudo-log-likelihoods (Salazar et al., ACL 2020).

Each token is masked in turn, and predicted from all others.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from bench.core.errors import BadInput
from bench.scorers.base import each, option_matrix
from bench.scorers.local.checkpoint import LocalModel, n_trailing_special_tokens
from bench.scorers.local.device import Placement, batches
from bench.scorers.local.logprobs import padded
from bench.tasks.request import Turns


class Masked(LocalModel):
    """A masked language model; its pseudo-likelihoods differ in scale from a causal model's."""

    kind = "masked language model (pseudo-log-likelihood)"
    verbs = ("nll", "choose")
    # The paper gives encoders no letters to choose from.
    reads = ("options", "letters")

    def __init__(
        self, network: Any, tokenizer: Any, where: Placement, identity: dict[str, Any]
    ) -> None:
        super().__init__(network, tokenizer, where, identity)
        if tokenizer.mask_token_id is None:
            raise BadInput(
                f"{self.id}: its tokenizer has no mask token, so it is not usable as a masked model"
            )
        self._n_trailing = n_trailing_special_tokens(tokenizer)

    def token_logprobs(self, texts: Sequence[str], *, bos: bool = False) -> list[np.ndarray]:
        """Return the log-probability of each token given all others, without special tokens.

        `bos` changes nothing: the model has special tokens at both ends anyway.
        """
        encoded = [self.tokenizer(text)["input_ids"] for text in texts]
        self.check_lengths(list(map(len, encoded)), "the text", self.tokenizer.model_max_length)
        special = set(self.tokenizer.all_special_ids)
        return self._masked(
            encoded, [[i for i, token in enumerate(ids) if token not in special] for ids in encoded]
        )

    def choose(
        self, prompts: Sequence[Turns], options: Sequence[str] | Sequence[Sequence[str]]
    ) -> np.ndarray:
        """Return the sum of pseudo-log-probabilities of each option's tokens: float64 [n, k].

        Each token of the option is masked in turn, given the prompt and the option's other tokens.
        CrowS-Pairs (Nangia et al., EMNLP 2020) scores the tokens that two sentences share, given
        those in which they differ; here that would be the prompt's, given the option. Turns of a
        conversation are joined by line breaks.
        """
        choices = each(options, len(prompts))
        encoded, positions, longest = [], [], []
        for prompt, row in zip(prompts, choices, strict=True):
            text = prompt if isinstance(prompt, str) else "\n".join(prompt)
            ids = self.tokenizer(text)["input_ids"]
            end = len(ids) - self._n_trailing
            for option in row:
                tokens = self.tokenizer(option, add_special_tokens=False)["input_ids"]
                encoded.append(ids[:end] + tokens + ids[end:])
                positions.append(list(range(end, end + len(tokens))))
            longest.append(max(map(len, encoded[len(encoded) - len(row) :]), default=0))
        self.check_lengths(longest, "the text with its reply", self.tokenizer.model_max_length)
        sums = iter([float(row.sum()) for row in self._masked(encoded, positions)])
        return option_matrix([[next(sums) for _ in row] for row in choices], prompts, options)

    @torch.inference_mode()
    def _masked(
        self, encoded: Sequence[Sequence[int]], positions: Sequence[Sequence[int]]
    ) -> list[np.ndarray]:
        """Return log-probabilities of the tokens at `positions`, one masked at a time.

        Texts that differ in the masked token only are computed once.
        """
        self.tally.asked += sum(map(len, encoded))
        # For each masked text and position: the tokens to read, and where their values go.
        masked: dict[tuple[tuple[int, ...], int], list[tuple[int, int]]] = {}
        n = 0
        for text, places in zip(encoded, positions, strict=True):
            for place in places:
                hidden = (*text[:place], self.tokenizer.mask_token_id, *text[place + 1 :])
                masked.setdefault((hidden, place), []).append((text[place], n))
                n += 1
        scores, texts = np.empty(n), list(masked)
        for numbers in batches([len(ids) for ids, _ in texts], self.where.batch_tokens):
            batch = [texts[k] for k in numbers]
            padding = self.tokenizer.pad_token_id or 0
            ids, mask = padded([text for text, _ in batch], padding, self.where.device)
            self.tally.computed += ids.numel()
            with reading_at(self.network, [place for _, place in batch]):
                logits = self.network(input_ids=ids, attention_mask=mask).logits[0].float()
            reads = [(row, *read) for row, text in enumerate(batch) for read in masked[text]]
            rows, targets, places_out = torch.tensor(reads).T
            rows, targets = rows.to(logits.device), targets.to(logits.device)
            values = logits[rows, targets] - logits.logsumexp(1)[rows]
            scores[places_out.numpy()] = values.cpu().numpy()
        return [scores[start:end] for start, end in pairwise(np.cumsum([0, *map(len, positions)]))]


@contextmanager
def reading_at(network: Any, positions: Sequence[int]) -> Iterator[None]:
    """Let the network's head see one state per text, so that logits are [1, texts, vocabulary]."""

    def gather(body: Any, args: Any, output: Any) -> Any:
        states = output.last_hidden_state
        at_positions = states[torch.arange(len(positions)), torch.tensor(positions)]
        output.last_hidden_state = at_positions[None]
        return output

    hook = network.base_model.register_forward_hook(gather)
    try:
        yield
    finally:
        hook.remove()
