"""Causal language models: likelihood of texts, choice among options (both by `bench.scorers.reading`), generated replies."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from transformers import LogitsProcessor, LogitsProcessorList
from transformers.generation import (
    MinPLogitsWarper,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from bench.errors import BadInput
from bench.scorers.base import Model, digest, each, messages
from bench.scorers.checkpoint import Placement, batches, check_lengths, special_behind, tokenizer_identity
from bench.scorers.reading import Reader, Row, padded
from bench.tasks.request import Turns


class Causal(Model):
    """A causal language model on one device."""

    verbs = ("nll", "choose", "generate")
    reads = ("text", "letters", "options")

    def __init__(self, network: Any, tokenizer: Any, where: Placement, identity: dict[str, Any]) -> None:
        self.network, self.tokenizer, self.where, self.identity = network, tokenizer, where, identity
        if tokenizer.pad_token_id is None:
            tokenizer.pad_token = tokenizer.eos_token
        self._behind = special_behind(tokenizer)
        self._first = tokenizer.eos_token_id if tokenizer.bos_token_id is None else tokenizer.bos_token_id
        self._coder = tokenizer_identity(tokenizer)
        self._sampling = _take_sampling(network.generation_config)
        self._reader = Reader(network, where, tokenizer.pad_token_id or 0)
        self.tally = self._reader.tally

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "causal language model",
            **self.identity,
            **self.where.describe(),
            **self._coder,
            "parameters": self.network.num_parameters(),
            "decoding": self._sampling or "greedy",
        }

    def token_logprobs(self, texts: Sequence[str], *, bos: bool = False) -> list[np.ndarray]:
        """Log-probability of each token after the first (with the special tokens that the tokenizer adds).

        Args:
            bos: put a first special token before texts that the tokenizer gives none: that for the beginning, or where
                the model has none, that for the end, as it stood between documents in training.
        """
        encoded = self.tokenizer(list(texts))["input_ids"] if texts else []
        if bos and not self._coder["adds_bos"]:
            if self._first is None:
                raise BadInput(
                    f"{self.identity['id']}: has no special token to put first; leave out --set bos=forced"
                )
            encoded = [[self._first, *ids] for ids in encoded]
        self._check([len(ids) for ids in encoded], "the text")
        rows = [Row(tuple(ids), tuple((i, ids[i + 1]) for i in range(len(ids) - 1))) for ids in encoded]
        return self._reader.read(rows)

    def choose(
        self, prompts: Sequence[Turns], options: Sequence[str] | Sequence[Sequence[str]]
    ) -> np.ndarray:
        """Sum of log-probabilities of each option's tokens after the prompt: float64 [n, k]."""
        rows: dict[tuple[int, ...], dict[tuple[int, int], None]] = {}
        wanted: list[list[tuple[tuple[int, ...], tuple[tuple[int, int], ...]]]] = []
        for text, some in zip(map(self._turn, prompts), each(options, len(prompts)), strict=True):
            wanted.append([self._continuation(text, option) for option in some])
            # Options that part only in their last token are read off the same row.
            for ids, reads in wanted[-1]:
                rows.setdefault(ids, {}).update(dict.fromkeys(reads))
        longest = [max((len(ids) for ids, _ in line), default=0) for line in wanted]
        self._check(longest, "the text with its reply")
        values = self._reader.read([Row(ids, tuple(reads)) for ids, reads in rows.items()])
        found = {
            (ids, read): value
            for (ids, reads), row in zip(rows.items(), values, strict=True)
            for read, value in zip(reads, row, strict=True)
        }
        return np.array(
            [[sum(found[ids, read] for read in reads) for ids, reads in line] for line in wanted],
            dtype=np.float64,
        ).reshape(len(prompts), -1 if prompts else len(options))

    def generate(
        self, prompts: Sequence[Turns], *, max_new_tokens: int = 32, seed: int = 0, greedy: bool = False
    ) -> list[str]:
        """Replies, decoded as the model's own generation configuration says (sampled or greedy), or greedily."""
        encoded = {prompt: self._encode(self._turn(prompt)) for prompt in dict.fromkeys(prompts)}
        lengths = {prompt: len(ids) + max_new_tokens for prompt, ids in encoded.items()}
        self._check([lengths[prompt] for prompt in prompts], "the text with its reply")
        unique = list(encoded)
        replies: dict[Turns, str] = {}
        for numbers in batches(list(lengths.values()), self.where.batch_tokens):
            some = [unique[i] for i in numbers]
            dice = [] if greedy else [digest([seed, prompt]) for prompt in some]
            texts = self._generate([encoded[prompt] for prompt in some], dice, max_new_tokens)
            replies.update(zip(some, texts, strict=True))
        return [replies[prompt] for prompt in prompts]

    def _turn(self, prompt: Turns) -> str:
        """The text that the model continues: turns of user and model, or bare with a line break after each."""
        said = [prompt] if isinstance(prompt, str) else prompt
        if not self.tokenizer.chat_template:
            return "\n".join([*said, ""])
        return str(
            self.tokenizer.apply_chat_template(messages(prompt), tokenize=False, add_generation_prompt=True)
        )

    def _encode(self, text: str) -> list[int]:
        if self.tokenizer.chat_template:  # which writes the special tokens itself
            return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])
        ids = self.tokenizer(text)["input_ids"]
        # The text goes on, so what the tokenizer puts behind it is left out.
        return list(ids[: len(ids) - self._behind])

    def _check(self, lengths: Sequence[int], what: str) -> None:
        check_lengths(self.identity["id"], lengths, self.network, what)

    def _continuation(self, text: str, option: str) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...]]:
        """Token ids of text and option without the last one, and the reads that give the option's tokens."""
        before, whole = self._encode(text), self._encode(text + option)
        if whole[: len(before)] != before or len(whole) == len(before):
            # The tokenizer merged across the boundary, so the option is encoded by itself.
            whole = before + list(self.tokenizer(option, add_special_tokens=False)["input_ids"])
        reads = tuple((i - 1, whole[i]) for i in range(len(before), len(whole)))
        return tuple(whole[:-1]), reads

    @torch.inference_mode()
    def _generate(self, encoded: list[list[int]], dice: list[str], max_new_tokens: int) -> list[str]:
        ids, mask = padded(encoded, self.tokenizer.pad_token_id or 0, self.where.device, left=True)
        processors = LogitsProcessorList()
        if self._sampling and dice:
            processors += _warpers(self._sampling)
            processors.append(SeededSampling(dice, max_new_tokens, ids.shape[1]))
        out = self.network.generate(
            input_ids=ids, attention_mask=mask, max_new_tokens=max_new_tokens, do_sample=False,
            logits_processor=processors, pad_token_id=self.tokenizer.pad_token_id,
        )  # fmt: skip
        return list(self.tokenizer.batch_decode(out[:, ids.shape[1] :], skip_special_tokens=True))


class SeededSampling(LogitsProcessor):
    """Turns greedy search into sampling in which every row has dice of its own.

    A row's draws depend on its seed and step alone, so that a reply does not change with batch size, order, or restart.
    """

    def __init__(self, seeds: Sequence[str], steps: int, start: int) -> None:
        self.start = start
        self.uniform = torch.tensor(
            np.array([np.random.default_rng(int(seed, 16)).random(steps) for seed in seeds])
        )

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        cumulative = scores.double().softmax(-1).cumsum(-1)
        draw = self.uniform[:, input_ids.shape[1] - self.start].to(scores.device)
        chosen = torch.searchsorted(cumulative, (draw * cumulative[:, -1])[:, None], right=True).clamp(
            max=scores.shape[1] - 1
        )
        return torch.full_like(scores, -torch.inf).scatter(1, chosen, 0.0)


def _take_sampling(config: Any) -> dict[str, Any]:
    """The sampling part of a generation configuration, taken out of it; empty where the model decodes greedily."""
    wanted = deepcopy(config)
    config.do_sample = False
    for name in ("temperature", "top_k", "top_p", "min_p", "typical_p"):
        setattr(config, name, None)
    if not wanted.do_sample:
        return {}
    # Where the configuration is silent, transformers samples at temperature 1 from the 50 likeliest tokens.
    found = {"temperature": wanted.temperature or 1.0, "top_k": 50 if wanted.top_k is None else wanted.top_k}
    return found | {"top_p": wanted.top_p or 1.0, "min_p": wanted.min_p or 0.0}


def _warpers(sampling: dict[str, Any]) -> list[LogitsProcessor]:
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
