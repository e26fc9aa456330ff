"""Encoders with a multiple-choice head, which scores pairs of a text and an option.

CBBQ's paper (Huang and Xiong, LREC-COLING 2024) asks BERT, RoBERTa and ALBERT with "no prompts", in "the multiple-choice
question answering format", and gives no formula, code or checkpoint. Our reading, which nothing confirms: an item is as
many pairs as it has options, text (context and question) first and option second, as such a head is trained; softmax over
its scores gives the options' probabilities.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from bench.scorers.base import Model, Tally, each
from bench.scorers.local.checkpoint import Placement, batches, check_lengths, tokenizer_identity
from bench.tasks.request import Turns


class MultipleChoice(Model):
    """An encoder with a multiple-choice head, such as BertForMultipleChoice."""

    verbs = ("choose",)
    # The head never saw letters, but the options themselves.
    reads = ("options",)

    def __init__(
        self, network: Any, tokenizer: Any, where: Placement, identity: dict[str, Any]
    ) -> None:
        self.network, self.tokenizer, self.where, self.identity = (
            network,
            tokenizer,
            where,
            identity,
        )
        self.tally = Tally()

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "encoder with a multiple-choice head (pairs of text and option; our reading of the CBBQ paper)",
            **self.identity,
            **self.where.describe(),
            **tokenizer_identity(self.tokenizer),
            "parameters": self.network.num_parameters(),
        }

    @torch.inference_mode()
    def choose(
        self, prompts: Sequence[Turns], options: Sequence[str] | Sequence[Sequence[str]]
    ) -> np.ndarray:
        """Log-probability of each option among those of its prompt, nats: float64 [n, k].

        They are shares, each row's probabilities sum to 1: not likelihoods of the options' texts. Turns of a
        conversation are joined by line breaks. Nothing is cut.

        Raises:
            TooLong: a text with one of its options is longer than the model can read.
        """
        texts = [prompt if isinstance(prompt, str) else "\n".join(prompt) for prompt in prompts]
        choices = each(options, len(prompts))
        pairs = [
            (text, option) for text, some in zip(texts, choices, strict=True) for option in some
        ]
        items = [slice(start, end) for start, end in pairwise(np.cumsum([0, *map(len, choices)]))]
        # All at once: the tokenizer takes a single pair with an empty option for a text without one.
        encoded = self.tokenizer(pairs) if pairs else {"input_ids": []}
        lengths = [len(ids) for ids in encoded["input_ids"]]
        longest = [max(lengths[item], default=0) for item in items]
        known = self.tokenizer.model_max_length
        check_lengths(self.identity["id"], longest, self.network, "the text with an option", known)
        scores = torch.empty(len(pairs))
        self.tally.asked += sum(lengths)
        for numbers in batches(lengths, self.where.batch_tokens):
            some = {name: [rows[i] for i in numbers] for name, rows in encoded.items()}
            batch = self.tokenizer.pad(some, return_tensors="pt").to(self.where.device)
            self.tally.computed += batch["input_ids"].numel()
            # The head scores each pair by itself, so those of a batch can be shown as the options of a single item.
            logits = self.network(**{name: rows[None] for name, rows in batch.items()}).logits[0]
            scores[numbers] = logits.float().cpu()
        values = [scores[item].log_softmax(0).tolist() for item in items]
        return np.array(values, dtype=np.float64).reshape(
            len(prompts), -1 if prompts else len(options)
        )
