"""Models with other heads than causal ones: masked models and NLI classifiers."""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import BatchEncoding

from bench.core.errors import BadInput
from bench.scorers.base import Options, Tally
from bench.scorers.local.checkpoint import (
    LocalModel,
    Pretrained,
    n_positions,
    n_trailing_special_tokens,
)
from bench.scorers.local.device import batches
from bench.scorers.local.logprobs import agree, padded, trial_ids
from bench.scorers.local.spelling import option_logprobs, spell
from bench.tasks.nli_labels import LABELS, label
from bench.tasks.request import Turns

# For the self-test: lengths of texts that must have the same scores in a batch as one by one.
TRIAL_LENGTHS = (150, 40, 9, 2)
# For the self-test of classifiers; in some models, padding changes only few of these pairs.
TRIAL_PAIRS = [("a", "a"), ("He has 12.", "她有 3 本书。"), ("她是医生。", "I"), ("a, a, a.", "a")]
# Simple pairs by language that have only one right label.
PROBES = Path(__file__).with_name("nli_probes.toml")


class Encoder(LocalModel):
    """A model that reads each text as a whole."""

    def __init__(self, pretrained: Pretrained) -> None:
        super().__init__(pretrained)
        self.longest = min(self.longest, self.tokenizer.model_max_length)

    def check_batches(self, ask: Callable[[Sequence[Any]], Any], texts: Sequence[Any]) -> None:
        """Use batches of one text from now on, if a batch of `texts` gives other numbers.

        A model that gives one text other numbers each time is refused.
        """

        def answers(batches: Sequence[Sequence[Any]]) -> Iterator[torch.Tensor]:
            return (torch.as_tensor(row) for batch in batches for row in ask(batch))

        alone, dtype = [[text] for text in texts], self.network.dtype
        if not agree(zip(answers([texts]), answers(alone), strict=True), dtype):
            again = zip(answers(alone), answers(alone), strict=True)
            if not agree(again, dtype, if_failed=True):
                raise BadInput(
                    f"{self.id}: gives one text other numbers each time; set its source of chance, "
                    "such as hash_seed of Reformer, in its config.json"
                )
            self.where = replace(self.where, batch_tokens=1)
            self.batches = "one text at a time, because its numbers differ in a batch"
        self.tally = Tally()  # without the test


class Masked(Encoder):
    """A masked language model: pseudo-log-likelihoods (Salazar et al., ACL 2020).

    We mask each token in turn, and predict it from all others. These likelihoods differ in scale
    from a causal model's likelihoods.
    """

    kind = "masked language model (pseudo-log-likelihood)"
    request_types = ("nll", "choose")
    # CBBQ's paper asks encoders by the texts of the options.
    answer_modes = ("options", "letters")

    def __init__(self, pretrained: Pretrained) -> None:
        super().__init__(pretrained)
        tokenizer = self.tokenizer
        if tokenizer.mask_token_id is None:
            raise BadInput(
                f"{self.id}: its tokenizer has no mask token, so it is not usable as a masked model"
            )
        # The special tokens after a text.
        self.require_embeddings([tokenizer.mask_token_id])
        n_trailing = n_trailing_special_tokens(tokenizer)
        self._end = tokenizer("a")["input_ids"][-n_trailing:] if n_trailing else []
        # If the head does not mix tokens, we compute the logits of only one token of each text.
        self._one_by_one = True
        ids, mask = padded([trial_ids(self.network, 9).tolist()], 0, self.where.device)
        with torch.inference_mode():
            expected = self.network(input_ids=ids, attention_mask=mask).logits[0, [4]]
            logits = (self._logits(ids, mask, [4]) for _ in range(1))
            self._one_by_one = agree(zip(logits, [expected], strict=True), self.network.dtype)
        self.check_batches(self._trial, TRIAL_LENGTHS)

    def _trial(self, lengths: Sequence[int]) -> list[np.ndarray]:
        """Return the log-probability of the middle token of texts of these lengths, for a test."""
        limit = n_positions(self.network) or max(lengths)
        encoded = [trial_ids(self.network, min(n, limit)).tolist() for n in lengths]
        return self._masked(encoded, [[len(ids) // 2] for ids in encoded])

    def token_logprobs(self, texts: Sequence[str], *, bos: bool = False) -> list[np.ndarray]:
        """Return the log-probability of each token given all others, without special tokens.

        The token for unknown words counts as any other: without it, two sentences that differ in an
        unknown word would be equally likely. `bos` has no effect.
        """
        encoded = [self.tokenizer(text)["input_ids"] for text in texts]
        self.check_texts(encoded, list(map(len, encoded)))
        special = set(self.tokenizer.all_special_ids) - {self.tokenizer.unk_token_id}
        return self._masked(
            encoded, [[i for i, token in enumerate(ids) if token not in special] for ids in encoded]
        )

    def choose(self, prompts: Sequence[Turns], options: Options) -> np.ndarray:
        """Return the sum of pseudo-log-probabilities of each option's tokens: float64 [n, k].

        We mask each token of the option in turn, given the prompt and the option's other tokens.
        CrowS-Pairs (Nangia et al., EMNLP 2020) scores the common tokens of two sentences instead,
        here the tokens of the prompt, given the different ones, here the option. We join turns of a
        conversation by line breaks, and sum the probabilities of a letter's spellings; see
        `bench.scorers.local.spelling`.
        """
        texts = [prompt if isinstance(prompt, str) else "\n".join(prompt) for prompt in prompts]
        items = spell(self, self._encode, texts, options, len(self._end))
        encoded, positions = [], []
        for before, spelled in items:
            for ids in chain(*spelled):
                encoded.append([*before, *ids, *self._end])
                positions.append(list(range(len(before), len(before) + len(ids))))
        sums = iter([float(row.sum()) for row in self._masked(encoded, positions)])
        return option_logprobs(items, sums, options)

    def _encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the token ids of texts without the special tokens at their ends."""
        encoded = self.tokenizer(list(texts))["input_ids"] if texts else []
        return [ids[: len(ids) - len(self._end)] for ids in encoded]

    @torch.inference_mode()
    def _masked(
        self, encoded: Sequence[Sequence[int]], positions: Sequence[Sequence[int]]
    ) -> list[np.ndarray]:
        """Return log-probabilities of the tokens at `positions`, one masked at a time."""
        self.tally.asked += sum(map(len, encoded))
        # For each masked text and position: the tokens to read, and the positions of their values.
        masked: dict[tuple[tuple[int, ...], int], list[tuple[int, int]]] = {}
        n = 0
        for text, text_positions in zip(encoded, positions, strict=True):
            for position in text_positions:
                hidden = (*text[:position], self.tokenizer.mask_token_id, *text[position + 1 :])
                masked.setdefault((hidden, position), []).append((text[position], n))
                n += 1
        scores, texts = np.empty(n), list(masked)
        for numbers in batches([len(ids) for ids, _ in texts], self.where.batch_tokens):
            batch = [texts[k] for k in numbers]
            padding = self.tokenizer.pad_token_id or 0
            padding = padding if padding < self.network.config.get_text_config().vocab_size else 0
            ids, mask = padded([text for text, _ in batch], padding, self.where.device)
            self.tally.computed += ids.numel()
            logits = self._logits(ids, mask, [position for _, position in batch]).float()
            reads = [(row, *read) for row, text in enumerate(batch) for read in masked[text]]
            rows, targets, indices = torch.tensor(reads).T
            rows, targets = rows.to(logits.device), targets.to(logits.device)
            values = logits[rows, targets] - logits.logsumexp(1)[rows]
            scores[indices.numpy()] = values.cpu().numpy()
        return [scores[start:end] for start, end in pairwise(np.cumsum([0, *map(len, positions)]))]

    def _logits(
        self, ids: torch.Tensor, mask: torch.Tensor, positions: Sequence[int]
    ) -> torch.Tensor:
        """Return the logits at one position of each text: [texts, vocabulary]."""
        wanted = torch.arange(len(positions)), torch.tensor(positions)

        def gather(body: Any, args: Any, output: Any) -> Any:
            output.last_hidden_state = output.last_hidden_state[wanted][None]
            return output

        if self._one_by_one:
            with self.network.base_model.register_forward_hook(gather):
                return self.network(input_ids=ids, attention_mask=mask).logits[0]
        return self.network(input_ids=ids, attention_mask=mask).logits[wanted]


class Classifier(Encoder):
    """A sequence-classification checkpoint with the three NLI labels."""

    kind = "NLI classifier"
    request_types = ("classify",)

    def __init__(self, pretrained: Pretrained, label_names: Sequence[str] = ()) -> None:
        super().__init__(pretrained)
        self.columns = label_columns(self.network.config.id2label, self.id, label_names)
        self.check_batches(self.classify, TRIAL_PAIRS)

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "labels": dict(zip(LABELS, self.columns, strict=True))}

    @torch.inference_mode()
    def classify(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """Return probabilities [n, 3]; premise first, as in training. We do not truncate."""
        probabilities = np.empty((len(pairs), 3))
        if not pairs:
            return probabilities
        encoded = self.tokenizer(*(list(texts) for texts in zip(*pairs, strict=True)))
        lengths = list(map(len, encoded["input_ids"]))
        self.check_texts(encoded["input_ids"], lengths, "the pair")
        # The paper's code truncates at 128 tokens; all released pairs are much shorter.
        self.tally.asked += sum(lengths)
        for numbers in batches(lengths, self.where.batch_tokens):
            texts = {name: [values[i] for i in numbers] for name, values in encoded.items()}
            if len(numbers) > 1:
                texts = self.tokenizer.pad(texts)
            batch = BatchEncoding(texts, tensor_type="pt").to(self.where.device)
            self.tally.computed += batch["input_ids"].numel()
            rows = self.network(**batch).logits.float().softmax(-1)[:, self.columns]
            probabilities[numbers] = rows.cpu().double().numpy()
        return probabilities

    def probe(self, languages: Sequence[str]) -> list[dict[str, str]]:
        """Classify plain pairs, which detects wrong labels, order and an unknown language."""
        rows = [
            {"language": language, "premise": first, "hypothesis": second, "expected": expected}
            for language, by_label in tomllib.loads(PROBES.read_text("utf-8")).items()
            for expected, pairs in by_label.items()
            for first, second in pairs
            if language in languages
        ]
        probabilities = self.classify([(row["premise"], row["hypothesis"]) for row in rows])
        for row, values in zip(rows, probabilities, strict=True):
            row["found"] = "nan" if np.isnan(values).any() else LABELS[int(values.argmax())]
        return rows


def label_columns(
    id2label: Mapping[int, str], model: str, label_names: Sequence[str] = ()
) -> list[int]:
    """Find the columns of entailment, contradiction and neutral by name."""
    columns = {int(column): str(name) for column, name in id2label.items()}
    theirs = ", ".join(columns[k] for k in sorted(columns))
    nameless = len(columns) == len(LABELS) and all(
        re.fullmatch(rf"label_{k}", name, re.IGNORECASE) for k, name in columns.items()
    )
    by_position = nameless and bool(label_names)
    named = {k: label_names[k] if by_position else label(name) for k, name in columns.items()}
    if sorted(named.values()) != sorted(LABELS):
        example = ", or give `bench run` --label-names entailment,neutral,contradiction"
        raise BadInput(
            f"{model}: its labels are {theirs}, not {', '.join(LABELS)}; set id2label in its "
            f"config.json to what they mean{example * nameless}"
        )
    if label_names and [named[k] for k in sorted(named)] != list(label_names):
        raise BadInput(
            f"{model}: its labels are {theirs}, which --label-names {','.join(label_names)} "
            "contradicts; leave it out, or set id2label in its config.json"
        )
    return [next(k for k, name in named.items() if name == wanted) for wanted in LABELS]
