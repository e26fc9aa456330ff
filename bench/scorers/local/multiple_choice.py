"""Encoders with a multiple-choice head, which scores pairs of a text and an option.

CBBQ's paper (Huang and Xiong, LREC-COLING 2024) evaluates BERT, RoBERTa and ALBERT with "no
prompts", in "the multiple-choice question answering format", and gives no formula, code or
checkpoint. Our reading, which nothing confirms: an item is one pair per option, text (context and
question) first and option second, as such a head is trained; softmax over its scores gives the
options' probabilities.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch

from bench.scorers.base import each, option_matrix
from bench.scorers.local.checkpoint import LocalModel
from bench.scorers.local.device import batches
from bench.tasks.request import Turns


class MultipleChoice(LocalModel):
    """An encoder with a multiple-choice head, such as BertForMultipleChoice."""

    kind = (
        "encoder with a multiple-choice head "
        "(pairs of text and option; our reading of the CBBQ paper)"
    )
    verbs = ("choose",)
    # The head never saw letters, but the options themselves.
    reads = ("options",)

    @torch.inference_mode()
    def choose(
        self, prompts: Sequence[Turns], options: Sequence[str] | Sequence[Sequence[str]]
    ) -> np.ndarray:
        """Return the log-probability of each option among those of its prompt: float64 [n, k].

        Each row's probabilities sum to 1; they are not likelihoods of the options' texts. Turns of
        a conversation are joined by line breaks. Nothing is cut.

        Raises:
            TooLong: a text with one of its options is longer than the model can read.
        """
        texts = [prompt if isinstance(prompt, str) else "\n".join(prompt) for prompt in prompts]
        choices = each(options, len(prompts))
        pairs = [(text, option) for text, row in zip(texts, choices, strict=True) for option in row]
        items = [slice(*ends) for ends in pairwise(np.cumsum([0, *map(len, choices)]))]
        # All at once: the tokenizer takes a single pair with an empty option for a single text.
        encoded = self.tokenizer(pairs) if pairs else {"input_ids": []}
        lengths = [len(ids) for ids in encoded["input_ids"]]
        longest = [max(lengths[item], default=0) for item in items]
        self.check_lengths(longest, "the text with an option", self.tokenizer.model_max_length)
        scores = torch.empty(len(pairs))
        self.tally.asked += sum(lengths)
        for numbers in batches(lengths, self.where.batch_tokens):
            some = {name: [rows[i] for i in numbers] for name, rows in encoded.items()}
            batch = self.tokenizer.pad(some, return_tensors="pt").to(self.where.device)
            self.tally.computed += batch["input_ids"].numel()
            # The head scores each pair by itself, so a batch may pass for one item's options.
            logits = self.network(**{name: rows[None] for name, rows in batch.items()}).logits[0]
            scores[numbers] = logits.float().cpu()
        values = [scores[item].log_softmax(0).tolist() for item in items]
        return option_matrix(values, prompts, options)
