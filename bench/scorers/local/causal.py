"""Causal language models: likelihood of texts, choice among options (both by `bench.scorers.local.logprobs`), generated replies."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.core.errors import BadInput
from bench.scorers.base import Answer, Model, digest, each, each_seed
from bench.scorers.generation_options import GenerationOptions
from bench.scorers.local.chat_template import Speech
from bench.scorers.local.checkpoint import (
    Placement,
    check_lengths,
    special_behind,
    tokenizer_identity,
)
from bench.scorers.local.generation import Writer
from bench.scorers.local.logprobs import Reader, Row
from bench.scorers.local.thinking import StopRule
from bench.scorers.sampling import take_sampling
from bench.tasks.replies import THOUGHT_TAGS, unfinished_thought
from bench.tasks.request import Turns, Until


class Causal(Model):
    """A causal language model on one device."""

    verbs = ("nll", "choose", "generate")
    reads = ("text", "letters", "options")

    def __init__(
        self,
        network: Any,
        tokenizer: Any,
        where: Placement,
        identity: dict[str, Any],
        generation: GenerationOptions | None = None,
    ) -> None:
        self.generation = generation or GenerationOptions()
        self.network, self.tokenizer, self.where, self.identity = (
            network,
            tokenizer,
            where,
            identity,
        )
        if tokenizer.pad_token_id is None:
            tokenizer.pad_token = tokenizer.eos_token
        self._speech = Speech(identity["id"], tokenizer, special_behind(tokenizer), self.generation)
        self._hidden = _hidden_tokens(tokenizer)
        self._first = (
            tokenizer.eos_token_id if tokenizer.bos_token_id is None else tokenizer.bos_token_id
        )
        self._coder = tokenizer_identity(tokenizer)
        self._reader = Reader(network, where, tokenizer.pad_token_id or 0)
        self._writer = Writer(self._reader, self._sampling())
        self.tally = self._reader.tally

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "causal language model",
            **self.identity,
            **self.where.describe(),
            **self._coder,
            "parameters": self.network.num_parameters(),
            "decoding": self._writer.sampling or "greedy",
            **self._speech.describe(),
            **self.generation.describe(),
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
        rows = [
            Row(tuple(ids), tuple((i, ids[i + 1]) for i in range(len(ids) - 1))) for ids in encoded
        ]
        return self._reader.read(rows)

    def choose(
        self, prompts: Sequence[Turns], options: Sequence[str] | Sequence[Sequence[str]]
    ) -> np.ndarray:
        """Sum of log-probabilities of each option's tokens after the prompt: float64 [n, k]."""
        rows: dict[tuple[int, ...], dict[tuple[int, int], None]] = {}
        wanted: list[list[tuple[tuple[int, ...], tuple[tuple[int, int], ...]]]] = []
        choices = each(options, len(prompts))
        # What stands behind an open thought would be a part of it.
        texts = [self._speech.written(prompt, closed=True) for prompt in prompts]
        before = self._speech.encoded(texts)
        whole = iter(
            self._speech.encoded(
                [
                    text + option
                    for text, some in zip(texts, choices, strict=True)
                    for option in some
                ]
            )
        )
        for start, some in zip(before, choices, strict=True):
            wanted.append([self._continuation(start, next(whole), option) for option in some])
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

    def replies(
        self,
        prompts: Sequence[Turns],
        *,
        max_new_tokens: int,
        seed: int | Sequence[int],
        greedy: bool,
        until: Until,
    ) -> list[Answer]:
        """Write replies, decoded as the model's generation configuration or the options say, or greedily.

        One that ends inside its thought has an error, because what it holds is no answer.
        """
        texts = [self._speech.written(prompt) for prompt in prompts]
        opened = [self._speech.opens_thought(*pair) for pair in zip(prompts, texts, strict=True)]
        encoded = self._speech.encoded(texts)
        # Where thinking is off, a model that thinks all the same does so within its reply.
        rule = StopRule(self._text, max_new_tokens, self.generation.thinking_tokens or None, until)
        self._check([len(ids) + rule.limit for ids in encoded], "the text with its reply")
        seeds = each_seed(seed, len(prompts))
        # The same reply is written once.
        sampled = bool(self._writer.sampling) and not greedy
        dice = [digest([*one]) if sampled else "" for one in zip(seeds, prompts, strict=True)]
        asked = list(zip(map(tuple, encoded), dice, opened, strict=True))
        unique = list(dict.fromkeys(asked))
        written = self._writer.write(
            [ids for ids, _, _ in unique],
            [seed for _, seed, _ in unique],
            [thinking for _, _, thinking in unique],
            rule,
        )
        replies = {
            key: self._reply(ids, key[2], cut)
            for key, (ids, cut) in zip(unique, written, strict=True)
        }
        return [replies[key] for key in asked]

    def _reply(self, ids: list[int], opened: bool, cut: bool) -> Answer:
        text = self._text(ids)
        option = "--thinking-tokens" if self.generation.thinking_tokens else "--max-new-tokens"
        return Answer(text, error=unfinished_thought(text, opened, cut, option), cut=cut)

    def _text(self, ids: Sequence[int]) -> str:
        """Decode a reply without special tokens, but with the tags of its thought."""
        shown = [i for i in ids if i not in self._hidden] if self._hidden else ids
        return str(self.tokenizer.decode(shown, skip_special_tokens=not self._hidden))

    def _sampling(self) -> dict[str, Any]:
        config, options = self.network.generation_config, self.generation
        sampling = take_sampling(config, options.temperature, options.top_p)
        if options.top_p is not None and not sampling:
            raise BadInput(
                f"--top-p {options.top_p}: {self.identity['id']} decodes greedily and draws from nothing; "
                "give a --temperature above 0 too"
            )
        return sampling

    def _check(self, lengths: Sequence[int], what: str) -> None:
        check_lengths(self.identity["id"], lengths, self.network, what)

    def _continuation(
        self, before: list[int], whole: list[int], option: str
    ) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...]]:
        """Token ids of a text and option without the last one, and the reads that give the option's tokens.

        Args:
            before, whole: token ids of the text, and of the text with the option behind it.
        """
        if whole[: len(before)] != before or len(whole) == len(before):
            # The tokenizer merged across the boundary, so the option is encoded by itself.
            whole = before + list(self.tokenizer(option, add_special_tokens=False)["input_ids"])
        reads = tuple((i - 1, whole[i]) for i in range(len(before), len(whole)))
        return tuple(whole[:-1]), reads


def _hidden_tokens(tokenizer: Any) -> set[int]:
    """The special tokens that a decoded reply leaves out where tags of thoughts are special too.

    Empty where they are not, which is nearly always: then the tokenizer itself leaves out special tokens.
    """
    special = {i for i, token in tokenizer.added_tokens_decoder.items() if token.special}
    special |= set(tokenizer.all_special_ids)
    tags = {i for i in special if tokenizer.decode([i]).strip() in itertools.chain(*THOUGHT_TAGS)}
    return special - tags if tags else set()
