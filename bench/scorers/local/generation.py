"""Generate the replies of a causal language model in batches.

The common beginnings of prompts are computed once (`bench.scorers.local.logprobs`). When half of
a batch has ended, other replies take the free places, so that a long reply does not hold up the
rest.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from transformers import LogitsProcessorList, StoppingCriteria, StoppingCriteriaList
from transformers.cache_utils import Cache, DynamicLayer

from bench.scorers.local.device import batch_size, free_memory
from bench.scorers.local.logprobs import LogprobReader, padded
from bench.scorers.local.thinking import Progress, StopRule
from bench.scorers.sampling import SeededSampling, warpers

# Replies are generated in batches of so many times the tokens: each step has one token per text,
# and reads all weights. On an accelerator up to as many as fit into memory.
ON_CPU, ON_ACCELERATOR = 4, 16
# The share of the free memory for keys and values, which are copied when a batch is rebuilt.
MEMORY_SHARE = 0.25
# The share of a batch that has to end before it is rebuilt.
REBUILD_SHARE = 0.5


@dataclass(slots=True)
class Reply:
    """A reply under way.

    Attributes:
        ids: the prompt's tokens and those generated so far.
        start: tokens of the prompt.
        left: how many more tokens it may have.
        seed: of its random numbers; "" decodes greedily.
        progress: whether it is still a thought.
        cut: whether it ended at a limit of tokens.
    """

    ids: list[int]
    start: int
    left: int
    seed: str
    progress: Progress
    cut: bool = False


class Generator:
    """Generates replies, and counts tokens in the tally of its `reader`.

    Args:
        sampling: the result of `bench.scorers.sampling.take_sampling`; empty for greedy decoding.
    """

    def __init__(self, reader: LogprobReader, sampling: dict[str, Any]) -> None:
        self.reader, self.network, self.where = reader, reader.network, reader.where
        self.sampling = sampling
        # Halved for good when a batch does not fit into memory.
        factor = ON_CPU if self.where.device.type == "cpu" else ON_ACCELERATOR
        self._tokens = self.where.batch_tokens * factor
        self._token_bytes = self._measure_token_bytes()

    @torch.inference_mode()
    def generate(
        self, requests: Sequence[tuple[Sequence[int], str, bool]], rule: StopRule
    ) -> list[tuple[list[int], bool]]:
        """Generate replies: their token ids, and whether they were cut at a limit of tokens.

        Args:
            requests: token ids of the prompt, the seed ("" for greedy decoding), and whether the
                prompt has opened a thought.
        """
        replies = [
            Reply(list(ids), len(ids), rule.limit, seed, Progress(opened))
            for ids, seed, opened in requests
        ]
        # Neighbours begin alike, and have similar lengths.
        waiting = sorted(replies, key=lambda reply: reply.ids)
        shared = bool(replies) and self.reader.can_prefill([reply.start for reply in replies])
        live: list[Reply] = []
        cache, rows = None, list[int]()
        memory = MEMORY_SHARE * min(free_memory(self.where.device) / self._token_bytes, 2**40)
        while waiting or live:
            lengths = [len(reply.ids) + reply.left for reply in live + waiting]
            size = batch_size(lengths, min(self._tokens, int(memory)))
            new = max(size - len(live), 0)
            batch, rest = live + waiting[:new], waiting[new:]
            try:
                cache = self._rebuilt(cache, rows, batch) if shared else None
                over = self._step(batch, cache, rule)
            except torch.OutOfMemoryError:
                if len(batch) == 1:
                    raise
                self._tokens = max(self._tokens // 2, 1)
                # Generated tokens stay; their keys and values are computed again.
                live, waiting, cache, rows = [], batch + rest, None, []
                continue
            rows = [row for row, ended in enumerate(over) if not ended]
            live, waiting = [batch[row] for row in rows], rest
        self.reader.tally.asked += sum(len(reply.ids) for reply in replies)
        return [(reply.ids[reply.start :], reply.cut) for reply in replies]

    @torch.inference_mode()
    def _measure_token_bytes(self) -> float:
        """Measure keys and values of a token in all layers; 1 where the model hides them."""
        ids = torch.ones(1, 2, dtype=torch.long, device=self.where.device)
        cache = self.network(input_ids=ids, use_cache=True).get("past_key_values")
        layers = getattr(cache, "layers", [])
        tensors = [getattr(layer, name, None) for layer in layers for name in ("keys", "values")]
        return max(1.0, sum(part.nbytes for part in tensors if part is not None) / ids.numel())

    def _step(self, batch: Sequence[Reply], cache: Cache | None, rule: StopRule) -> list[bool]:
        """Continue replies until enough of them have ended, and tell which have.

        Without a `cache` all of them end.
        """
        ids, mask = padded(
            [reply.ids for reply in batch], self.reader.padding, self.where.device, left=True
        )
        eos = self.network.generation_config.eos_token_id
        ends = torch.tensor([] if eos is None else eos, dtype=torch.long, device=self.where.device)
        ending = Ending(batch, ends, rule, REBUILD_SHARE if cache else 1)
        steps, width = max(reply.left for reply in batch), ids.shape[1]
        processors = LogitsProcessorList()
        if self.sampling and batch[0].seed:
            seeds = [reply.seed for reply in batch]
            written = [len(reply.ids) - reply.start for reply in batch]
            processors += warpers(self.sampling)
            processors.append(SeededSampling(seeds, written, steps, width))
        out = self.network.generate(
            input_ids=ids,
            attention_mask=mask,
            past_key_values=cache,
            max_new_tokens=steps,
            do_sample=False,
            logits_processor=processors,
            stopping_criteria=StoppingCriteriaList([ending]),
            pad_token_id=self.reader.padding,
        )[:, width:]
        self.reader.tally.computed += out.numel() + (0 if cache else ids.numel())
        for k, (reply, row, length) in enumerate(
            zip(batch, out.tolist(), ending.lengths(), strict=True)
        ):
            reply.ids += row[:length]
            reply.left -= length
            reply.progress, reply.cut = ending.progress[k], bool(ending.cut[k])
        return list(ending.over.tolist())

    def _rebuilt(self, before: Cache | None, rows: Sequence[int], batch: Sequence[Reply]) -> Cache:
        """Return keys and values of all tokens but the last of each reply, padded on the left.

        Args:
            before: has those of the first replies, at `rows`.
        """
        started = [reply.ids for reply in batch[len(rows) :]]
        new = self.reader.prefill(started) if started else []
        width = max(len(reply.ids) for reply in batch) - 1
        room = max(reply.left for reply in batch)
        kept = torch.tensor(rows, device=self.where.device)
        layers = []
        for k in range(len(before.layers) if before else len(new)):
            parts: list[tuple[torch.Tensor, ...]] = []
            if before and rows:
                layer: Any = before.layers[k]
                parts.append((layer.keys[kept], layer.values[kept]))
                before.layers[k] = layer = None  # frees its memory
            if new:
                parts.append(new[k])
            layers.append(PreallocatedLayer(parts, width, room))
        return Cache(layers=layers)


class PreallocatedLayer(DynamicLayer):
    """Keys and values of a layer with room for further tokens, so that a step copies none.

    Args:
        parts: keys and values [texts, heads, tokens, size], to be stacked; longer ones are cut on
            the left to `width` tokens, shorter ones are padded there.
        room: for how many more tokens.
    """

    def __init__(self, parts: Sequence[tuple[torch.Tensor, ...]], width: int, room: int) -> None:
        super().__init__()
        self.lazy_initialization(*parts[0])
        self._buffers = [_stacked(list(some), width, room) for some in zip(*parts, strict=True)]
        self.keys, self.values = (buffer[:, :, :width] for buffer in self._buffers)

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **options: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        first = self.get_seq_length()
        last = first + key_states.shape[-2]
        for buffer, states in zip(self._buffers, (key_states, value_states), strict=True):
            buffer[:, :, first:last] = states
        self.keys, self.values = (buffer[:, :, :last] for buffer in self._buffers)
        return self.keys, self.values


def _stacked(parts: Sequence[torch.Tensor], width: int, room: int) -> torch.Tensor:
    _, heads, _, size = parts[0].shape
    # Padding is masked, but must not be NaN.
    buffer = parts[0].new_zeros(sum(map(len, parts)), heads, width + room, size)
    first = 0
    for part in parts:
        part = part[:, :, -width:]
        buffer[first : first + len(part), :, width - part.shape[2] : width] = part
        first += len(part)
    return buffer


class Ending(StoppingCriteria):
    """Ends replies at a token of `ends`, at their limit, or by `rule`.

    Ends the batch when the `share` of its replies have ended.

    Attributes:
        over: which replies have ended.
        cut: which of them at a limit of tokens.
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
        finished, full = torch.isin(last, self.ends), self.limits <= self.steps
        if self.rule.until or self.rule.thought_tokens is not None:
            marks = []
            for row, progress, token in zip(
                self.written, self.progress, last.tolist(), strict=True
            ):
                row.append(token)
                self.rule.follow(progress, row)
                marks.append((self.rule.enough(progress, row), self.rule.full(progress, row)))
            enough, reached = torch.tensor(marks, device=last.device).T
            finished, full = finished | enough, full | reached
        new = (finished | full) & ~self.over
        self.ended = torch.where(new, self.steps, self.ended)
        self.cut |= new & ~finished
        self.over |= new
        return self.over | (self.over.sum() >= self.share * len(self.over))

    def lengths(self) -> list[int]:
        """Return how many tokens each reply got."""
        return torch.where(self.over, self.ended, self.steps).tolist()
