"""Replies of a causal language model, many at a time.

What prompts begin with is computed once (`bench.scorers.local.logprobs`). When half of the replies of a batch have ended, they
leave it, and others take their places, so that a long reply does not hold up the rest.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from transformers import LogitsProcessorList, StoppingCriteria, StoppingCriteriaList
from transformers.cache_utils import Cache, DynamicLayer

from bench.scorers.local.checkpoint import free_memory, together
from bench.scorers.local.logprobs import Reader, padded
from bench.scorers.local.thinking import Progress, StopRule
from bench.scorers.sampling import SeededSampling, warpers

# Replies are written by so many times the tokens of a batch: each step has one token a text, and reads all weights. On an
# accelerator rather as many as fit into memory.
TOGETHER, ON_ACCELERATOR = 4, 16
# The share of the free memory that keys and values may take: they are there twice, and in parts, when a batch is made.
SHARE = 0.25
# The share of a batch that has to have ended before it is made anew, which copies the keys and values of the others.
LEAVING = 0.5


@dataclass(slots=True)
class Reply:
    """A reply in the making: `ids` are its prompt, of `start` tokens, and what is written of it; `left` may follow.

    Attributes:
        progress: whether it is still a thought.
        cut: whether it ended at a limit of tokens.
    """

    ids: list[int]
    start: int
    left: int
    seed: str
    progress: Progress
    cut: bool = False

    @property
    def longest(self) -> int:
        return len(self.ids) + self.left


class Writer:
    """Writes replies with a causal language model, and counts tokens in the tally of its `reader`.

    Args:
        sampling: how tokens are drawn, as `bench.scorers.sampling.take_sampling` found it; the likeliest where empty.
    """

    def __init__(self, reader: Reader, sampling: dict[str, Any]) -> None:
        self.reader, self.network, self.where = reader, reader.network, reader.where
        self.sampling = sampling
        # What does not fit into memory is halved, and stays so.
        self._tokens = self.where.batch_tokens * (
            TOGETHER if self.where.device.type == "cpu" else ON_ACCELERATOR
        )
        self._bytes = self._bytes_of_a_token()

    @torch.inference_mode()
    def write(
        self,
        prompts: Sequence[Sequence[int]],
        seeds: Sequence[str],
        thinking: Sequence[bool],
        rule: StopRule,
    ) -> list[tuple[list[int], bool]]:
        """Write a reply to each prompt: its token ids, and whether it was cut off at a limit of tokens.

        Args:
            seeds: of the dice of each; its likeliest tokens where empty.
            thinking: whether each prompt has opened a thought.
            rule: how long replies may be.
        """
        replies = [
            Reply(list(ids), len(ids), rule.limit, seed, Progress(opened))
            for ids, seed, opened in zip(prompts, seeds, thinking, strict=True)
        ]
        # Neighbours begin alike, and have much the same length.
        waiting = sorted(replies, key=lambda reply: reply.ids)
        joining = bool(replies) and self.reader.can_begin([len(ids) for ids in prompts])
        live: list[Reply] = []
        cache, rows = None, list[int]()
        room = int(SHARE * min(free_memory(self.where.device) / self._bytes, 2**40))
        while waiting or live:
            size = together([reply.longest for reply in live + waiting], min(self._tokens, room))
            new = max(size - len(live), 0)
            batch, rest = live + waiting[:new], waiting[new:]
            try:
                cache = self._cache(batch, cache, rows) if joining else None
                over = self._round(batch, cache, rule)
            except torch.OutOfMemoryError:
                if len(batch) == 1:
                    raise
                self._tokens = max(self._tokens // 2, 1)
                # What is written stays; its keys and values are computed again.
                live, waiting, cache, rows = [], batch + rest, None, []
                continue
            rows = [row for row, ended in enumerate(over) if not ended]
            live, waiting = [batch[row] for row in rows], rest
        self.reader.tally.asked += sum(len(reply.ids) for reply in replies)
        return [(reply.ids[reply.start :], reply.cut) for reply in replies]

    @torch.inference_mode()
    def _bytes_of_a_token(self) -> float:
        """Bytes that keys and values of a token take in all layers; next to none where the model does not show them."""
        ids = torch.ones(1, 2, dtype=torch.long, device=self.where.device)
        cache = self.network(input_ids=ids, use_cache=True).get("past_key_values")
        layers = getattr(cache, "layers", [])
        both = [
            some
            for layer in layers
            for name in ("keys", "values")
            if (some := getattr(layer, name, None)) is not None
        ]
        return max(1.0, sum(some.nbytes for some in both) / ids.numel())

    def _round(self, batch: Sequence[Reply], cache: Cache | None, rule: StopRule) -> list[bool]:
        """Write on until enough of `batch` have ended, all where there is no `cache`; which of them have."""
        ids, mask = padded(
            [reply.ids for reply in batch], self.reader.padding, self.where.device, left=True
        )
        end = self.network.generation_config.eos_token_id
        ends = torch.tensor([] if end is None else end, dtype=torch.long, device=self.where.device)
        ending = Ending(batch, ends, rule, LEAVING if cache else 1)
        steps, width = max(reply.left for reply in batch), ids.shape[1]
        processors = LogitsProcessorList()
        if self.sampling and batch[0].seed:
            written = [len(reply.ids) - reply.start for reply in batch]
            processors += warpers(self.sampling)
            processors.append(
                SeededSampling([reply.seed for reply in batch], written, steps, width)
            )
        out = self.network.generate(
            input_ids=ids,
            attention_mask=mask,
            past_key_values=cache,
            max_new_tokens=steps,
            do_sample=False,
            logits_processor=processors,
            stopping_criteria=StoppingCriteriaList([ending]),
            pad_token_id=self.reader.padding,
        )
        self.reader.tally.computed += out[:, width:].numel() + (0 if cache else ids.numel())
        for k, (row, length) in enumerate(
            zip(out[:, width:].tolist(), ending.lengths(), strict=True)
        ):
            reply = batch[k]
            reply.ids += row[:length]
            reply.left -= length
            reply.progress, reply.cut = ending.progress[k], bool(ending.cut[k])
        return list(ending.over.tolist())

    def _cache(self, batch: Sequence[Reply], before: Cache | None, rows: Sequence[int]) -> Cache:
        """Keys and values of all tokens but the last of each, padded on the left: those of `rows` of `before`, then new ones."""
        begun = (
            self.reader.begun([reply.ids for reply in batch[len(rows) :]])
            if len(batch) > len(rows)
            else []
        )
        width = max(len(reply.ids) for reply in batch) - 1
        room = max(reply.left for reply in batch)
        kept = torch.tensor(rows, device=self.where.device)
        layers = []
        for k in range(len(before.layers) if before else len(begun)):
            keys: list[torch.Tensor] = []
            values: list[torch.Tensor] = []
            if before and rows:
                layer: Any = before.layers[k]
                keys, values = [layer.keys[kept]], [layer.values[kept]]
                before.layers[k] = layer = None  # so that its memory is free for the new one
            if begun:
                keys, values = [*keys, begun[k][0]], [*values, begun[k][1]]
            layers.append(Roomy(keys, values, width, room))
        return Cache(layers=layers)


class Roomy(DynamicLayer):
    """Keys and values of a layer with room for what is to come, so that a step does not copy those that are there.

    Args:
        keys, values: [texts, heads, tokens, width] each, to stand below each other; longer ones are cut on the left to
            `width` tokens, shorter ones are padded there.
        room: for how many more tokens.
    """

    def __init__(
        self, keys: Sequence[torch.Tensor], values: Sequence[torch.Tensor], width: int, room: int
    ) -> None:
        super().__init__()
        self.lazy_initialization(keys[0], values[0])
        self._room = [_below(some, width, room) for some in (keys, values)]
        self.keys, self.values = (some[:, :, :width] for some in self._room)

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **options: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        first = self.get_seq_length()
        last = first + key_states.shape[-2]
        for room, some in zip(self._room, (key_states, value_states), strict=True):
            room[:, :, first:last] = some
        self.keys, self.values = (room[:, :, :last] for room in self._room)
        return self.keys, self.values


def _below(some: Sequence[torch.Tensor], width: int, room: int) -> torch.Tensor:
    _, heads, _, size = some[0].shape
    # Padding is masked, but must not be what no number is.
    found = some[0].new_zeros(sum(map(len, some)), heads, width + room, size)
    first = 0
    for one in some:
        one = one[:, :, -width:]
        found[first : first + len(one), :, width - one.shape[2] : width] = one
        first += len(one)
    return found


class Ending(StoppingCriteria):
    """Which replies have ended: by a token of `ends`, at their limit, or by `rule`; and which were `cut` off at a limit.

    All are ended when that `share` of them have.
    """

    def __init__(
        self, batch: Sequence[Reply], ends: torch.Tensor, rule: StopRule, share: float
    ) -> None:
        self.ends, self.rule, self.share, self.steps = ends, rule, share, 0
        self.progress = [replace(reply.progress) for reply in batch]
        self.written = [reply.ids[reply.start :] for reply in batch]
        self.limits = torch.tensor([reply.left for reply in batch], device=ends.device)
        self.ended = self.limits.clone()  # after how many tokens
        self.over = torch.zeros(len(batch), dtype=torch.bool, device=ends.device)
        self.cut = self.over.clone()

    def __call__(self, input_ids: torch.Tensor, scores: Any, **options: Any) -> torch.Tensor:
        self.steps += 1
        last = input_ids[:, -1]
        said, full = torch.isin(last, self.ends), self.limits <= self.steps
        if self.rule.until or self.rule.thought_tokens is not None:
            marks = [
                self._follow(row, progress, token)
                for row, progress, token in zip(
                    self.written, self.progress, last.tolist(), strict=True
                )
            ]
            enough, reached = torch.tensor(marks, device=last.device).T
            said, full = said | enough, full | reached
        new = (said | full) & ~self.over
        self.ended = torch.where(new, self.steps, self.ended)
        self.cut |= new & ~said
        self.over |= new
        enough = self.over.sum() >= self.share * len(self.over)
        return self.over | enough

    def _follow(self, row: list[int], progress: Progress, token: int) -> tuple[bool, bool]:
        """Whether a reply says enough with one `token` more, and whether it has reached a limit."""
        row.append(token)
        self.rule.follow(progress, row)
        return self.rule.enough(progress, row), self.rule.full(progress, row)

    def lengths(self) -> list[int]:
        """How many tokens each has got."""
        return torch.where(self.over, self.ended, self.steps).tolist()
