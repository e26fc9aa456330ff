"""Generate the replies of a causal language model in batches.

We compute common prefixes of prompts once (`bench.scorers.local.logprobs`). When half of a batch
has ended, other replies take the free places, so that a long reply does not delay the others.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from torch.nn.functional import pad
from transformers import (
    DynamicCache,
    GenerationConfig,
    LogitsProcessorList,
    StoppingCriteria,
    StoppingCriteriaList,
    StopStringCriteria,
    TopPLogitsWarper,
)
from transformers.cache_utils import Cache, DynamicLayer

from bench.config import Generation
from bench.core.errors import BadInput
from bench.scorers.local.device import batch_size, free_memory
from bench.scorers.local.logprobs import LogprobReader, agree, padded, trial_ids
from bench.tasks.replies import LONGEST_TAG, is_thinking
from bench.tasks.request import Until

# Batches of replies are this many times larger than other batches, because a step reads all weights
# for one token of each text.
CPU_BATCH_FACTOR = 4
ACCELERATOR_BATCH_FACTOR = 16  # if memory suffices
# The share of the free memory for keys and values; the rest is for copies of them.
MEMORY_SHARE = 0.25
# Keys and values grow by this many tokens at a time, because each growth copies them.
ROOM = 16
# We rebuild a batch when this share of it has ended.
REBUILD_SHARE = 0.5

# Sampling parameters of generation_config.json, each with the value that disables it.
SAMPLING: dict[str, float] = {
    "temperature": 1.0,
    "top_k": 0,
    "top_p": 1.0,
    "min_p": 0.0,
    "typical_p": 1.0,
    "epsilon_cutoff": 0.0,
    "eta_cutoff": 0.0,
}
# Entries of SAMPLING that we always record.
USUAL = ("temperature", "top_k", "top_p", "min_p")
# Entries of generation_config.json that change logits by earlier tokens.
PENALTIES = (
    "repetition_penalty",
    "encoder_repetition_penalty",
    "no_repeat_ngram_size",
    "encoder_no_repeat_ngram_size",
    "bad_words_ids",
    "sequence_bias",
    "suppress_tokens",
    "begin_suppress_tokens",
    "min_length",
    "min_new_tokens",
    "exponential_decay_length_penalty",
)
# Entries that we set ourselves, or that have no effect on replies.
OTHERS = re.compile(
    r"(bos|eos|pad)_token_id|do_sample|max_(length|new_tokens)|stop_strings|renormalize_logits"
    r"|use_cache|cache_\w+|output_\w+|return_dict_in_generate|transformers_version|_.*"
)
# For messages about wrong entries.
CONFIG = "generation_config.json of the model"
# For the self-test: tokens of its prompts, and of the replies.
TRIAL_PROMPTS = (12, 3)
TRIAL_STEPS = 4


@dataclass(slots=True)
class Reply:
    """A reply, from its prompt to its end."""

    ids: list[int]  # of the prompt, and of the reply so far
    start: int  # tokens of the prompt
    left: int  # maximum number of further tokens
    seed: str  # of its random numbers; "" decodes greedily
    thinking: bool  # whether a thought is open
    answer_start: int = 0  # tokens of a closed thought, before the answer
    end: Literal["", "complete", "cut", "not finite"] = ""  # cut at a limit of tokens


@dataclass(frozen=True)
class StopRule:
    """Ends replies before their token limit."""

    decode: Callable[[Sequence[int]], str]
    answer_tokens: int  # limit of an answer, counted from the end of a thought
    thought_tokens: int | None  # limit of a thought; None: both share the limit of the answer
    until: Until  # whether a text is a complete answer; not called while a thought is open

    @property
    def limit(self) -> int:
        """The most tokens that a reply can have."""
        return self.answer_tokens + (self.thought_tokens or 0)

    def append(self, reply: Reply, token: int) -> None:
        """Continue a reply, and end it if it is complete, or its thought or answer too long."""
        reply.ids.append(token)
        reply.left -= 1
        if reply.left == 0:
            reply.end = "cut"
        if not self.until and self.thought_tokens is None:
            return
        ids = reply.ids[reply.start :]
        # A token has one byte at least, so these contain the last tag.
        thinking = is_thinking(self.decode(ids[-LONGEST_TAG:]), reply.thinking)
        if reply.thinking and not thinking:
            reply.answer_start = len(ids)
        reply.thinking = thinking
        if self.thought_tokens is not None:
            limit = self.thought_tokens if thinking else reply.answer_start + self.answer_tokens
            reply.end = "cut" if len(ids) >= limit else ""
        if self.until and not thinking and self.until(self.decode(ids)):
            reply.end = "complete"


class Generator:
    """Generates replies, and counts tokens in the tally of its `reader`.

    Attributes:
        sampling: empty for greedy decoding.
        ignored: entries of the configuration that we do not follow.
        in_batches: whether prompts have the same replies in a batch and one by one; otherwise we
            generate replies one at a time.
    """

    def __init__(
        self,
        reader: LogprobReader,
        tokenizer: Any,
        config: Any,
        ends: list[int],
        options: Generation,
    ) -> None:
        self.reader, self.network, self.where = reader, reader.network, reader.where
        self.network.generation_config = GenerationConfig(eos_token_id=ends)
        self.sampling, entries = _sampling(config, options), config.to_diff_dict()
        changed = {name: value for name, value in self.sampling.items() if value != SAMPLING[name]}
        # Without an entry, transformers may take the 50 likeliest tokens.
        self._sampling = self._config(do_sample=True, **{"top_k": 0, **changed})
        self._penalties = self._config(**{n: v for n, v in entries.items() if n in PENALTIES})
        self.ignored = []
        for name, value in sorted(entries.items()):
            is_followed = name in SAMPLING or name in PENALTIES or OTHERS.fullmatch(name)
            # Some values have no effect, for example one beam.
            if not is_followed and (value is True or value not in (None, False, 0, 1)):
                self.ignored.append(name)
        stops = getattr(config, "stop_strings", None)
        self.stop = StopStringCriteria(tokenizer, stops) if stops else None
        self.in_batches = reader.in_batches and agree(self._continued(), self.network.dtype)
        # Halved permanently when memory runs out.
        on_cpu = self.where.device.type == "cpu"
        factor = CPU_BATCH_FACTOR if on_cpu else ACCELERATOR_BATCH_FACTOR
        self._tokens = self.where.batch_tokens * factor
        self._token_bytes = self._measure_token_bytes()

    @torch.inference_mode()
    def generate(
        self, requests: Sequence[tuple[Sequence[int], str, bool]], rule: StopRule
    ) -> list[Reply]:
        """Generate a reply to each request: token ids, seed, and whether a thought is open."""
        replies = [
            Reply(list(ids), len(ids), rule.limit, seed, opened) for ids, seed, opened in requests
        ]
        # Neighbours share prefixes, and have similar lengths.
        waiting = sorted(replies, key=lambda reply: reply.ids)
        starts = [reply.start for reply in replies]
        shared = min(starts, default=0) > 1 and self.reader.can_share(starts)
        longest = [start + rule.limit for start in starts]
        together = self.in_batches and self.reader.can_batch(longest)
        live: list[Reply] = []
        cache, rows = None, list[int]()
        memory = MEMORY_SHARE * min(free_memory(self.where.device) / self._token_bytes, 2**40)
        while waiting or live:
            lengths = [len(reply.ids) + reply.left for reply in live + waiting]
            size = batch_size(lengths, min(self._tokens, int(memory)) if together else 1)
            new = max(size - len(live), 0)
            batch, later = live + waiting[:new], waiting[new:]
            try:
                cache = self._rebuilt(cache, rows, batch) if shared else None
                self._step(batch, cache, rule)
            except torch.OutOfMemoryError:
                if len(batch) == 1:
                    raise
                self._tokens = max(self._tokens // 2, 1)
                # We keep the generated tokens, and compute their keys and values again.
                unfinished = [reply for reply in batch if not reply.end]
                live, waiting, cache, rows = [], unfinished + later, None, []
                continue
            rows = [row for row, reply in enumerate(batch) if not reply.end]
            live, waiting = [batch[row] for row in rows], later
        self.reader.tally.asked += sum(len(reply.ids) for reply in replies)
        return replies

    def _continued(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Yield the logits of continuations in a padded batch, and one by one."""
        ids = trial_ids(self.network, sum(TRIAL_PROMPTS)).tolist()
        prompts = [ids[: TRIAL_PROMPTS[0]], ids[TRIAL_PROMPTS[0] :]]
        padding, device = self.reader.padding, self.where.device
        batch, mask = padded(prompts, padding, device, left=True)
        out = self.network.generate(
            input_ids=batch,
            attention_mask=mask,
            max_new_tokens=TRIAL_STEPS,
            do_sample=False,
            output_logits=True,
            return_dict_in_generate=True,
            pad_token_id=padding,
        )
        written = out.sequences[:, batch.shape[1] :].tolist()
        logits = torch.stack(out.logits, 1)
        for prompt, tokens, together in zip(prompts, written, logits, strict=True):
            text = torch.tensor([prompt + tokens], device=device)
            alone = self.network(input_ids=text, use_cache=False).logits
            yield together, alone[0, len(prompt) - 1 : -1]

    def _config(self, **entries: Any) -> GenerationConfig | None:
        """Return a configuration of steps on the logits; None without an effect."""
        try:
            config = GenerationConfig(**entries)
            return config if self._processors(config, [0], torch.tensor([0])) else None
        except (ValueError, TypeError) as error:
            raise BadInput(f"{CONFIG}: {error}; correct or remove the entry") from error

    def _processors(
        self, config: GenerationConfig | None, prompt: Sequence[int], ends: torch.Tensor
    ) -> LogitsProcessorList:
        """Return the steps of a configuration on the logits of the tokens after a prompt."""
        if not config:
            return LogitsProcessorList()
        config._eos_token_tensor = ends if len(ends) else None
        ids = torch.tensor([prompt], device=self.where.device)
        return self.network._get_logits_processor(
            config, len(prompt), ids, device=self.where.device
        )

    @torch.inference_mode()
    def _measure_token_bytes(self) -> float:
        """Measure keys and values of a token in all layers; 1 if the model hides them."""
        ids = torch.ones(1, 2, dtype=torch.long, device=self.where.device)
        cache = self.network(input_ids=ids, use_cache=True).get(self.reader.cache_name)
        layers = getattr(cache, "layers", [])
        tensors = [getattr(layer, name, None) for layer in layers for name in ("keys", "values")]
        return max(1.0, sum(part.nbytes for part in tensors if part is not None) / ids.numel())

    def _step(self, batch: Sequence[Reply], cache: Cache | None, rule: StopRule) -> None:
        """Continue replies until enough have ended; without a cache, until all have."""
        ids, mask = padded(
            [reply.ids for reply in batch], self.reader.padding, self.where.device, left=True
        )
        eos = self.network.generation_config.eos_token_id
        ends = torch.tensor(eos, dtype=torch.long, device=self.where.device)
        broken = torch.zeros(len(batch), dtype=torch.bool, device=self.where.device)
        share = REBUILD_SHARE if cache else 1
        ending = partial(end_replies, batch, rule, set(eos), self.stop, broken, share)
        steps, width = max(reply.left for reply in batch), ids.shape[1]
        processors = LogitsProcessorList([partial(note_broken, broken)])
        if self._penalties:
            prompts = [reply.ids[: reply.start] for reply in batch]
            penalties = [self._processors(self._penalties, prompt, ends) for prompt in prompts]
            padding = [width - len(reply.ids) for reply in batch]
            processors.append(partial(penalize, penalties, padding))
        if self.sampling and batch[0].seed:
            seeds = [reply.seed for reply in batch]
            written = [len(reply.ids) - reply.start for reply in batch]
            for step in self._processors(self._sampling, [0], ends):
                is_top_p = isinstance(step, TopPLogitsWarper)
                processors.append(TopP(step.top_p) if is_top_p else step)
            processors.append(partial(sample, draw(seeds, written, steps), width))
        for part in (self.network, self.network.base_model):
            if hasattr(part, "rope_deltas"):
                part.rope_deltas = None  # models for images keep positions of the batch before
        out = self.network.generate(
            input_ids=ids,
            attention_mask=mask,
            max_new_tokens=steps,
            do_sample=False,
            logits_processor=processors,
            stopping_criteria=StoppingCriteriaList([ending]),
            pad_token_id=self.reader.padding,
            **({self.reader.cache_name: cache} if cache else {}),
        )[:, width:]
        self.reader.tally.computed += out.numel() + (0 if cache else ids.numel())

    def _rebuilt(
        self, before: Cache | None, rows: Sequence[int], batch: Sequence[Reply]
    ) -> Cache | None:
        """Return the keys and values of a new batch, and take those of `rows` from `before`.

        None if numbers are not finite, because they spread in a tree from one text to others.
        """
        started = [reply.ids for reply in batch[len(rows) :]]
        new = self.reader.prefill(started) if started else []
        if not all(states.isfinite().all() for layer in new for states in layer):
            return None
        width = max(len(reply.ids) for reply in batch) - 1
        kept = torch.tensor(rows, device=self.where.device)
        cache = DynamicCache()
        for k in range(len(before.layers) if before else len(new)):
            parts: list[tuple[torch.Tensor, ...]] = []
            if before and rows:
                layer: Any = before.layers[k]
                parts.append((layer.keys[kept], layer.values[kept]))
                before.layers[k] = layer = None  # frees its memory
            if new:
                parts.append(new[k])
            # As much padding on the left as the batch has; the mask hides it.
            keys, values = (
                torch.cat([pad(part, (0, 0, width - part.shape[2], ROOM)) for part in states])
                for states in zip(*parts, strict=True)
            )
            cache.layers.append(GrowingLayer(keys, values, width))
        return cache


class GrowingLayer(DynamicLayer):
    """Keys and values [texts, heads, tokens, size] of a layer, with room behind `width` tokens."""

    def __init__(self, keys: torch.Tensor, values: torch.Tensor, width: int) -> None:
        super().__init__()
        self.lazy_initialization(keys, values)
        self._with_room = [keys, values]
        self.keys, self.values = keys[:, :, :width], values[:, :, :width]

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        first = self.get_seq_length()
        last = first + key_states.shape[2]
        if last > self._with_room[0].shape[2]:
            self._with_room = [pad(states, (0, 0, 0, ROOM)) for states in self._with_room]
        for states, new in zip(self._with_room, (key_states, value_states), strict=True):
            states[:, :, first:last] = new
        self.keys, self.values = (states[:, :, :last] for states in self._with_room)
        return self.keys, self.values


def note_broken(
    broken: torch.Tensor, input_ids: torch.Tensor, scores: torch.Tensor
) -> torch.Tensor:
    """Note the rows with logits that are not finite, as a step on logits that keeps them."""
    # A token can be impossible, with minus infinity, but not all tokens.
    broken |= ~scores.amax(-1).isfinite()
    return scores


def penalize(
    penalties: Sequence[LogitsProcessorList],
    padding: Sequence[int],
    input_ids: torch.Tensor,
    scores: torch.Tensor,
) -> torch.Tensor:
    """Apply to each row its own penalties, without counting the padding."""
    rows = zip(penalties, input_ids, padding, scores, strict=True)
    return torch.cat([steps(ids[None, start:], row[None]) for steps, ids, start, row in rows])


def end_replies(
    batch: Sequence[Reply],
    rule: StopRule,
    ends: set[int],
    stop: StoppingCriteria | None,
    broken: torch.Tensor,
    share: float,
    input_ids: torch.Tensor,
    scores: Any,
    **options: Any,
) -> torch.Tensor:
    """Append each new token to its reply, and return which replies have ended.

    A reply ends at a token of `ends`, a stop string, a limit of `rule`, or logits that are not
    finite (`broken`). The batch stops once a `share` of its replies has ended.
    """
    none = torch.zeros(len(batch), dtype=torch.bool)
    stopped = stop(input_ids, scores) if stop else none
    columns = input_ids[:, -1].tolist(), stopped.tolist(), broken.tolist()
    for reply, token, at_stop, is_broken in zip(batch, *columns, strict=True):
        if reply.end:
            continue
        rule.append(reply, token)
        if is_broken:
            reply.end = "not finite"
        elif at_stop or token in ends:
            reply.end = "complete"
    ended = torch.tensor([bool(reply.end) for reply in batch], device=input_ids.device)
    return ended | (ended.sum() >= share * len(ended))


def draw(seeds: Sequence[str], written: Sequence[int], steps: int) -> torch.Tensor:
    """Return random numbers [reply, step] for further tokens of replies.

    They depend only on a reply's seed (hexadecimal digits) and the number of its token, so that a
    reply does not change with batch size, order, or restart.
    """
    draws = [
        np.random.default_rng(int(seed, 16)).random(before + steps)[before:]
        for seed, before in zip(seeds, written, strict=True)
    ]
    return torch.tensor(np.array(draws))


def sample(
    uniform: torch.Tensor, start: int, input_ids: torch.Tensor, scores: torch.Tensor
) -> torch.Tensor:
    """Turn greedy search into sampling with the numbers of `draw`; rows had `start` tokens."""
    cumulative = scores.double().softmax(-1).cumsum(-1)
    at_step = uniform[:, input_ids.shape[1] - start].to(scores.device)
    chosen = torch.searchsorted(
        cumulative, (at_step * cumulative[:, -1])[:, None], right=True
    ).clamp(max=scores.shape[1] - 1)
    return torch.full_like(scores, -torch.inf).scatter(1, chosen, 0.0)


class TopP(TopPLogitsWarper):
    """Keeps the same tokens as transformers, but sorts with NumPy, many times as fast on a CPU."""

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        if scores.device.type != "cpu":
            return super().__call__(input_ids, scores)
        size = scores.shape[1]
        ascending = torch.from_numpy(np.sort(scores.numpy(), 1))
        shares = ascending.softmax(-1).cumsum(-1)
        removed = (shares <= 1 - self.top_p).sum(-1, keepdim=True).clamp(max=size - 1)
        kept = scores >= ascending.gather(1, removed)
        # If the last removed and the first kept token are as likely, their order decides.
        if (kept.sum(-1, keepdim=True) != size - removed).any():
            return super().__call__(input_ids, scores)
        return scores.masked_fill(~kept, self.filter_value)


def end_tokens(config: Any, tokenizer: Any, end_of_turn: int | None) -> list[int]:
    """Return the tokens that end a reply; `end_of_turn` is the chat template's."""
    ends = config.eos_token_id if isinstance(config.eos_token_id, list) else [config.eos_token_id]
    if tokenizer.chat_template:
        # For some chat models, only the tokenizer or the template names the token that ends a turn.
        ends = [*ends, tokenizer.eos_token_id, end_of_turn]
    ends = [end for end in dict.fromkeys(ends) if end is not None]
    if not all(isinstance(end, int) for end in ends):
        raise BadInput(f"{CONFIG}: eos_token_id is {config.eos_token_id!r}, no number of a token")
    return ends


def _sampling(config: Any, options: Generation) -> dict[str, float]:
    """Return the entries of SAMPLING to follow; none for greedy decoding."""
    sampling = {}
    for name, neutral in SAMPLING.items():
        value = getattr(config, name, None)
        if name == "temperature" and options.temperature is not None:
            value = options.temperature
        if value is None:
            # Without a configuration, transformers samples from the 50 likeliest tokens.
            value = 50 if name == "top_k" else neutral
        try:
            value = type(neutral)(value)
        except (ValueError, TypeError):
            raise BadInput(f"{CONFIG}: {name} is {value!r}, which is no number") from None
        if name in USUAL or value != neutral:
            sampling[name] = value
    samples = config.do_sample if options.temperature is None else True
    return sampling if samples and sampling["temperature"] else {}
