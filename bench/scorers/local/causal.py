"""Causal language models: likelihood of texts, choice among options, generated replies."""

import copy
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from itertools import chain
from typing import Any

import numpy as np

from bench.config import Generation
from bench.core.errors import BadInput
from bench.scorers.base import Answer, Decoding, Options, digest, not_finite
from bench.scorers.local.chat_template import ChatFormatter
from bench.scorers.local.checkpoint import SERVE, LocalModel, Pretrained
from bench.scorers.local.generation import Generator, StopRule, end_tokens
from bench.scorers.local.logprobs import LogprobReader, Row
from bench.scorers.local.spelling import Spelled, option_logprobs, spell
from bench.tasks.replies import THINKS, is_tag, opened_tag, unfinished_thought
from bench.tasks.request import Request, Turns


class Causal(LocalModel):
    kind = "causal language model"
    request_types = ("nll", "choose", "generate")
    answer_modes = ("text", "letters", "options")

    def __init__(self, pretrained: Pretrained) -> None:
        super().__init__(pretrained)
        network, tokenizer = self.network, self.tokenizer
        self._configuration = network.generation_config
        if tokenizer.pad_token_id is None:
            tokenizer.pad_token = tokenizer.eos_token
        # If the tags of thoughts are special tokens, we keep them, and remove the other special
        # tokens ourselves. Usually there are none, and the tokenizer removes special tokens.
        special = {i for i, token in tokenizer.added_tokens_decoder.items() if token.special}
        special |= set(tokenizer.all_special_ids)
        tags = {i for i in special if is_tag(tokenizer.decode([i]).strip())}
        self._hidden = special - tags if tags else set()
        # The tokens that open a thought.
        names = [token.content for token in tokenizer.added_tokens_decoder.values()]
        self._openings = [name for name in names if name and opened_tag(name) == name]
        self._reader = LogprobReader(network, self.where, tokenizer.pad_token_id or 0)
        if self._reader.sees_ahead():
            raise BadInput(
                f"{self.id}: is no causal language model, because each of its predictions depends "
                "on the words behind it; if it was trained to fill in masked words, name the "
                "architecture for that in its config.json (BertForMaskedLM, for example), "
                f"otherwise {SERVE}"
            )

    def follow(self, generation: Generation) -> None:
        tokenizer, self.generation = self.tokenizer, generation
        # Models that share their weights count their tokens apart.
        self._reader = copy.copy(self._reader)
        self._reader.tally = self.tally
        self.chat = ChatFormatter(self.id, tokenizer, generation)
        self.require_embeddings(self.chat.encode([self.chat.example])[0])
        ends = end_tokens(self._configuration, tokenizer, self.chat.end_of_turn())
        self._generator = Generator(self._reader, tokenizer, self._configuration, ends, generation)
        if not self._generator.in_batches:
            both = "its replies" if self._reader.in_batches else "its log-probabilities and replies"
            self.batches = f"one text at a time, because {both} differ in a batch"

    def describe(self) -> dict[str, Any]:
        ignored = self._generator.ignored
        return {
            **super().describe(),
            "decoding": self._generator.sampling or "greedy",
            **({"generation_config_ignored": ignored} if ignored else {}),
            **self.chat.describe(),
            **self.generation.describe(),
        }

    def resume(self, described: Mapping[str, Any]) -> None:
        if "prompt_date" in described:
            self.chat.date = date.fromisoformat(described["prompt_date"])

    def token_logprobs(self, texts: Sequence[str], *, bos: bool = False) -> list[np.ndarray]:
        """Return the log-probability of each token after the first, special tokens included.

        `bos` puts the token for the beginning first, or else the token for the end, which separates
        documents in training, if the tokenizer puts none.
        """
        encoded = self.tokenizer(list(texts))["input_ids"] if texts else []
        if bos and not self.adds_bos:
            first = self.tokenizer.bos_token_id
            first = self.tokenizer.eos_token_id if first is None else first
            if first is None:
                raise BadInput(
                    f"{self.id}: has no special token to put first; leave out --set bos=forced"
                )
            encoded = [[first, *ids] for ids in encoded]
        self.check_texts(encoded, list(map(len, encoded)))
        return self._reader.read([Row(tuple(ids), tuple(enumerate(ids[1:]))) for ids in encoded])

    def choose(self, prompts: Sequence[Turns], options: Options) -> np.ndarray:
        """Return the sum of log-probabilities of each option's tokens: float64 [n, k]."""
        return self._choose(prompts, [options])[0]

    def _choose(self, prompts: Sequence[Turns], groups: Sequence[Options]) -> list[np.ndarray]:
        """Return log-probabilities like `choose`, for several groups of options together."""
        # An option behind an open thought would be part of this thought.
        texts = [self.chat.render(prompt, close_thought=True) for prompt in prompts]
        # We do not need the prediction after the last token of an option.
        spelled = [spell(self, self.chat.encode, texts, options, -1) for options in groups]
        sums = iter(self._sums(chain(*spelled)))
        return [
            option_logprobs(items, sums, options)
            for items, options in zip(spelled, groups, strict=True)
        ]

    def _sums(self, items: Iterable[Spelled]) -> list[float]:
        """Return the sum of the log-probabilities of each spelling's tokens."""
        # Spellings that differ only in the last token are read in one row.
        targets: dict[tuple[int, ...], dict[tuple[int, int], None]] = {}
        spellings = []
        for item in items:
            for option in chain(*item.options):
                text = (*item.before, *option[:-1])
                reads = list(enumerate(option, len(item.before) - 1))
                targets.setdefault(text, {}).update(dict.fromkeys(reads))
                spellings.append((text, reads))
        rows = [Row(text, tuple(reads)) for text, reads in targets.items()]
        values = {
            (row.ids, target): value
            for row, row_values in zip(rows, self._reader.read(rows), strict=True)
            for target, value in zip(row.targets, row_values, strict=True)
        }
        return [sum(values[text, target] for target in reads) for text, reads in spellings]

    def _ask(self, requests: Sequence[Request]) -> Iterator[Answer]:
        names = [request.options for request in requests]
        choices = [request.options for request in requests if request.request_type == "choose"]
        by_letters = any(len(option) == 1 for options in choices for option in options)
        if not (by_letters and self._openings) or self.generation.thinking_tokens == 0:
            yield from super()._ask(requests)
            return
        # A model that would rather begin a thought than name any letter gives no answer.
        letters, thoughts = self._choose([r.turns for r in requests], [names, self._openings])
        for options, row, thought in zip(names, letters, thoughts, strict=True):
            answer = Answer(options[int(row.argmax())], tuple(map(float, row)))
            yield Answer("", error=THINKS) if thought.max() > row.max() else answer

    def replies(self, prompts: Sequence[Turns], decoding: Decoding) -> list[Answer]:
        """Generate replies; a reply that ends inside its thought is an error."""
        texts = [self.chat.render(prompt) for prompt in prompts]
        opened = [self.chat.opens_thought(*pair) for pair in zip(prompts, texts, strict=True)]
        encoded = self.chat.encode(texts)
        # If a model thinks although thinking is off, its thought is part of its reply.
        thought = self.generation.thinking_tokens or None
        rule = StopRule(self._decode, decoding.max_new_tokens, thought, decoding.until)
        lengths = [len(ids) + rule.limit for ids in encoded]
        self.check_texts(encoded, lengths, "the text with its reply")
        sampled = bool(self._generator.sampling) and not decoding.greedy
        pairs = zip(decoding.seeds, prompts, strict=True)
        seeds = [digest([*pair]) if sampled else "" for pair in pairs]
        # Generate equal requests once.
        keys = list(zip(map(tuple, encoded), seeds, opened, strict=True))
        unique = list(dict.fromkeys(keys))
        option = "--thinking-tokens" if self.generation.thinking_tokens else "--max-new-tokens"
        replies = {}
        for key, reply in zip(unique, self._generator.generate(unique, rule), strict=True):
            ids = reply.ids[reply.start :]
            # Not every token that ends a turn is a special one.
            ends = self.network.generation_config.eos_token_id
            is_end = ids and ids[-1] in ends and ids[-1] in self.tokenizer.added_tokens_decoder
            text = self._decode(ids[:-1] if is_end else ids)
            cut = reply.end == "cut"
            error = unfinished_thought(text, key[2], cut, option)
            if reply.end == "not finite":
                text, error = "", not_finite([math.nan], self.remedy)
            replies[key] = Answer(text, error=error, cut=cut)
        return [replies[key] for key in keys]

    def _decode(self, ids: Sequence[int]) -> str:
        """Decode a reply without special tokens, but with the tags of its thought."""
        visible = [i for i in ids if i not in self._hidden] if self._hidden else ids
        return str(self.tokenizer.decode(visible, skip_special_tokens=not self._hidden))
