"""Log-probabilities of tokens in a causal model, only for the tokens that we need.

We compute common prefixes of texts once, as a tree (`bench.scorers.local.prefix_tree`): each pass
takes a stretch of it, and the attention mask lets every token see only its ancestors. If a model
does not support this, or texts share little, we pad texts in batches of similar length, and one at
a time if even this changes numbers. A test with a few tokens at loading is enough, because trees
are for models with transformers' attention interface, and for texts within its windows.

We multiply only the needed hidden states with the output matrix, a piece of the vocabulary at a
time, so that no tensor is as large as texts times vocabulary. Sums over it are in float32.
"""

import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import DynamicCache

from bench.scorers.base import Tally
from bench.scorers.local.checkpoint import n_positions
from bench.scorers.local.device import Placement, batch_size
from bench.scorers.local.prefix_tree import Tree

# Tokens of the vocabulary at a time on a CPU, so that the logits fit into its cache.
CPU_VOCABULARY = 2048
# The most logits that we compute at a time on an accelerator.
MAX_LOGITS = 2**28
# If more than this share of the tokens is left in the tree, padded batches are as fast.
SPARSE = 0.9
# Maximum error of hidden states of a tree, relative to their norm.
TOLERANCE = {torch.float32: 1e-3}
LOW_PRECISION_TOLERANCE = 0.05
# For the self-test: tokens of a stretch of the tree, and lengths of the texts of a batch.
TRIAL_TOKENS = 7
TRIAL_LENGTHS = (40, 9, 2)
# Configuration entries that limit how far back a token sees; transformers' masks apply these.
MASKED = ("sliding_window", "attention_chunk_size", "local_attention")
# Further entries of this kind, which only the model's own code applies.
OWN_LIMIT = re.compile(
    r"^(?!num_|n_).*(window|span)(s|_sizes?|_lengths?)?$|attention_chunk|chunk_length"
    r"|^index_(topk|block_size|local_blocks)|^compress_"
)


@dataclass(frozen=True, slots=True)
class Row:
    """Token ids, and the tokens to predict, each after a position."""

    ids: tuple[int, ...]
    targets: tuple[tuple[int, int], ...]


# Values with their positions in the result.
Parts = list[tuple[np.ndarray, torch.Tensor]]


class LogprobReader:
    """Reads log-probabilities of a causal language model, and counts tokens in `tally`."""

    def __init__(self, network: Any, where: Placement, padding: int) -> None:
        self.network, self.where = network, where
        text_config = network.config.get_text_config()
        # If the pad token has no embedding, we use token 0.
        self.padding = padding if 0 <= padding < text_config.vocab_size else 0
        self._tree_tokens = TRIAL_TOKENS
        # Transformers 5.24 renamed the argument for keys and values.
        is_renamed = "cache" in signature(network.forward).parameters
        self.cache_name = "cache" if is_renamed else "past_key_values"
        # We call a model on several devices or on disk as a whole, because only this moves its
        # inputs between devices.
        parts = set(getattr(network, "hf_device_map", {}).values())
        distributed = len(parts) > 1 or "disk" in parts
        self._separable = not distributed and self._body_and_head_agree()
        # In networks with this table of transformers, only the mask decides which tokens see which.
        module = sys.modules[type(network).__module__]
        by_mask = hasattr(module, "ALL_ATTENTION_FUNCTIONS")
        can_share = by_mask and module.__name__.startswith("transformers.") and not distributed
        self._trees = can_share and agree(self._in_tree(), network.dtype)
        self._longest_in_tree, self._longest_in_batch = _limits(text_config)
        self.in_batches = agree(self._in_batch(), network.dtype)
        self.tally = Tally()  # without the tests
        # Halved permanently when memory runs out.
        self._tree_tokens = where.tree_tokens
        self._batch_tokens = where.batch_tokens if self.in_batches else 1

    @torch.inference_mode()
    def read(self, rows: Sequence[Row]) -> list[np.ndarray]:
        """Return the log-probabilities of each row: float64, nats."""
        values: dict[int, np.ndarray] = dict.fromkeys(range(len(rows)), np.empty(0))
        waiting = [i for i, row in enumerate(rows) if row.targets]
        lengths = [len(rows[i].ids) for i in waiting]
        self.tally.asked += sum(lengths)
        if waiting and self.can_share(lengths):
            tree = Tree([rows[i].ids for i in waiting])
            # If the output matrix is not separable, batches would compute logits of all tokens.
            if len(tree) <= SPARSE * sum(lengths) or not self._separable:
                read = self._read_tree(tree, [rows[i] for i in waiting])
                values.update(zip(waiting, read, strict=True))
                # NaN spreads through the mask to other texts, so we repeat these in batches.
                waiting = [i for i in waiting if not np.isfinite(values[i]).all()]
        waiting.sort(key=lambda i: -len(rows[i].ids))
        lengths = [len(rows[i].ids) for i in waiting]
        together = self.can_batch(lengths)
        while waiting:
            size = batch_size(lengths, self._batch_tokens if together else 1)
            try:
                read = self._read_batch([rows[i] for i in waiting[:size]])
            except torch.OutOfMemoryError:
                if size == 1:
                    raise
                self._batch_tokens = max(self._batch_tokens // 2, 1)
                continue
            values.update(zip(waiting, read, strict=False))
            waiting, lengths = waiting[size:], lengths[size:]
        return list(values.values())

    def can_batch(self, lengths: Sequence[int]) -> bool:
        """Return whether texts of these lengths have the same numbers in a batch as one by one."""
        return self.in_batches and max(lengths, default=0) <= self._longest_in_batch

    def can_share(self, lengths: Sequence[int]) -> bool:
        """Return whether texts of these lengths have the same numbers in a tree as one by one."""
        return self._trees and self.in_batches and max(lengths, default=0) <= self._longest_in_tree

    def prefill(self, texts: Sequence[Sequence[int]]) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Return keys and values of all tokens but the last of each text with at least two.

        `can_share` must hold for their lengths. Per layer, both have the form [texts, heads,
        tokens, size], padded on the left.
        """
        tree = Tree([text[:-1] for text in texts])
        parts: list[list[tuple[torch.Tensor, torch.Tensor]]] = []

        def take(first: int, last: int, states: torch.Tensor, cache: Any) -> None:
            new = slice(first - last, None)
            parts.append(
                [(layer.keys[0, :, new], layer.values[0, :, new]) for layer in cache.layers]
            )

        self._walk(tree, np.empty(0, np.int64), take)
        # Node 0 is a placeholder for padding; the mask hides it.
        paths = np.zeros((len(texts), max(map(len, tree.paths))), np.int64)
        for row, path in zip(paths, tree.paths, strict=True):
            row[len(row) - len(path) :] = path
        nodes = self._send(paths.ravel())

        def joined(layer: int, kind: int) -> torch.Tensor:
            states = torch.cat([part[layer][kind] for part in parts], 1)
            return states.index_select(1, nodes).unflatten(1, paths.shape).transpose(0, 1)

        return [(joined(k, 0), joined(k, 1)) for k in range(len(parts[0]))]

    def _read_tree(self, tree: Tree, rows: Sequence[Row]) -> list[np.ndarray]:
        nodes = np.concatenate(
            [
                path[[position for position, _ in row.targets]]
                for path, row in zip(tree.paths, rows, strict=True)
            ]
        )
        targets = np.array([target for row in rows for _, target in row.targets])
        order = np.argsort(nodes, kind="stable")
        wanted = np.unique(nodes)
        parts: Parts = []

        def take(first: int, last: int, states: torch.Tensor, cache: Any) -> None:
            reads = order[slice(*np.searchsorted(nodes, [first, last], sorter=order))]
            line = np.searchsorted(wanted, nodes[reads]) - np.searchsorted(wanted, first)
            if len(reads):
                parts.append((reads, self._logprobs(states, line, targets[reads])))

        self._walk(tree, wanted, take)
        return _split(parts, rows)

    def _walk(
        self,
        tree: Tree,
        wanted: np.ndarray,
        take: Callable[[int, int, torch.Tensor, Any], None],
    ) -> None:
        """Compute a tree, one stretch per pass.

        Args:
            wanted: the sorted numbers of the nodes whose states we need.
            take: called with the first node of a stretch, the first one behind it, the states of
                its wanted nodes, and the cache.
        """
        # The nodes whose keys and values are in the cache: the ancestors of a stretch, and itself.
        cached, cache, first = np.empty(0, np.int64), DynamicCache(), 0
        while first < len(tree):
            nodes = np.arange(first, min(first + self._tree_tokens, len(tree)))
            last = first + len(nodes)
            read = wanted[slice(*np.searchsorted(wanted, [first, last]))] - first
            try:
                above = np.flatnonzero(tree.end[:first] > first)
                columns = self._send(np.searchsorted(cached, above))
                new_cache = DynamicCache()
                for k, layer in enumerate(cache.layers):
                    states = (layer.keys, layer.values)
                    new_cache.update(*(part.index_select(2, columns) for part in states), k)
                seen = np.concatenate([above, nodes])
                take(first, last, self._pass(tree, nodes, seen, read, new_cache), new_cache)
            except torch.OutOfMemoryError:
                if self._tree_tokens == 1:
                    raise
                self._tree_tokens //= 2
                continue
            cached, cache, first = seen, new_cache, last

    def _pass(
        self,
        tree: Tree,
        nodes: np.ndarray,
        cached: np.ndarray,
        read: np.ndarray,
        cache: DynamicCache,
    ) -> torch.Tensor:
        """Add a stretch to `cache`; return the states (or logits) of its tokens `read`."""
        self.tally.computed += len(nodes)
        # Each token sees only its ancestors. We make this large mask on the device.
        rows, columns, ends = map(self._send, (nodes[:, None], cached, tree.end[cached]))
        mask = torch.zeros(len(rows), len(columns), dtype=self.network.dtype, device=rows.device)
        mask.masked_fill_((columns > rows) | (rows >= ends), torch.finfo(mask.dtype).min)
        options = {
            "input_ids": self._send(tree.ids[nodes])[None],
            "attention_mask": mask[None, None],
            "position_ids": self._send(tree.depth[nodes])[None],
            self.cache_name: cache,
            "use_cache": True,
        }
        positions = self._send(read)
        if self._separable:
            return self.network.base_model(**options).last_hidden_state[0, positions]
        return self.network(logits_to_keep=positions, **options).logits[0]

    def _read_batch(self, rows: Sequence[Row]) -> list[np.ndarray]:
        ids, mask = padded([row.ids for row in rows], self.padding, self.where.device)
        self.tally.computed += ids.numel()
        line = np.repeat(np.arange(len(rows)), [len(row.targets) for row in rows])
        position, targets = np.array([target for row in rows for target in row.targets]).T
        positions, inverse = np.unique(np.stack([line, position]), axis=1, return_inverse=True)
        states = self._states(input_ids=ids, attention_mask=mask)[tuple(map(self._send, positions))]
        # NumPy 2.0.0 gives `inverse` the shape of a row.
        values = self._logprobs(states, inverse.ravel(), targets)
        return _split([(np.arange(len(targets)), values)], rows)

    def _states(self, **inputs: torch.Tensor) -> torch.Tensor:
        """Return hidden states [texts, tokens, size], or logits if the head is not separable."""
        if self._separable:
            body: Any = self.network.base_model(**inputs, use_cache=False)
            return body.last_hidden_state
        return self.network(**inputs, use_cache=False).logits

    def _logprobs(self, states: torch.Tensor, line: np.ndarray, target: np.ndarray) -> torch.Tensor:
        """Return the log-probability of each target after the state in its line."""
        lines, targets = self._send(line), self._send(target)
        values, totals, first = torch.zeros_like(targets, dtype=torch.float32), [], 0
        for logits in self._logits(states):
            columns, width = targets - first, logits.shape[1]
            inside = (columns >= 0) & (columns < width)
            values += logits[lines, columns.clamp(0, width - 1)].where(inside, 0.0)
            totals.append(logits.logsumexp(1))
            first += width
        return values - torch.stack(totals).logsumexp(0)[lines]

    def _logits(self, states: torch.Tensor) -> Iterator[torch.Tensor]:
        """Yield float32 logits [tokens, part of the vocabulary]."""
        if not self._separable:
            yield states.float()
            return
        head = self.network.get_output_embeddings()
        on_cpu = self.where.device.type == "cpu"
        step = CPU_VOCABULARY if on_cpu else max(CPU_VOCABULARY, MAX_LOGITS // len(states))
        bias = getattr(head, "bias", None)
        for first in range(0, len(head.weight), step):
            piece = slice(first, first + step)
            part = None if bias is None else bias[piece]
            yield torch.nn.functional.linear(states, head.weight[piece], part).float()

    def _send(self, numbers: np.ndarray) -> torch.Tensor:
        """Send numbers to the device, without waiting for them."""
        sent = torch.from_numpy(numbers)
        if self.where.device.type == "cuda":
            sent = sent.pin_memory()
        return sent.to(self.where.device, non_blocking=True)

    @torch.inference_mode()
    def _body_and_head_agree(self) -> bool:
        """Return whether the logits are the product with the output matrix, without a cap."""
        ids = trial_ids(self.network, 9).to(self.where.device)[None]
        try:
            body = self.network.base_model(input_ids=ids, use_cache=False).last_hidden_state
            head = self.network.get_output_embeddings()
            bias = getattr(head, "bias", None)
            ours = torch.nn.functional.linear(body, head.weight, bias).float()
        except (AttributeError, TypeError, RuntimeError):
            return False
        theirs = self.network(input_ids=ids, use_cache=False).logits.float()
        return ours.shape == theirs.shape and torch.allclose(ours, theirs, rtol=1e-5, atol=1e-5)

    @torch.inference_mode()
    def sees_ahead(self) -> bool:
        """Return whether the last token, or that there is one, changes an earlier prediction."""
        ids = trial_ids(self.network, 13)
        texts = torch.stack([ids[:12], torch.cat([ids[:11], ids[12:]])]).to(self.where.device)
        first, second = self.network(input_ids=texts, use_cache=False).logits[:, :-1].float()
        (shorter,) = self.network(input_ids=texts[:1, :-1], use_cache=False).logits.float()
        dtype = self.network.dtype
        return not (close(first, second, dtype) and close(shorter, first, dtype))

    def _in_batch(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Yield the states of texts in a padded batch, and of each text by itself."""
        limit = n_positions(self.network) or max(TRIAL_LENGTHS)
        ids = trial_ids(self.network, max(TRIAL_LENGTHS)).tolist()
        texts = [ids[-min(n, limit) :] for n in TRIAL_LENGTHS]
        batch, mask = padded(texts, self.padding, self.where.device)
        together = self._states(input_ids=batch, attention_mask=mask)
        for text, states in zip(texts, together, strict=True):
            yield states[: len(text)], self._alone(text)

    def _in_tree(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Yield the states of texts in a tree, and of each text by itself."""
        self.tally = Tally()
        ids = trial_ids(self.network, 24).tolist()
        texts = [ids[:9], ids[:5] + ids[10:16], ids[:5] + ids[16:18], ids[:2] + ids[18:24]]
        tree = Tree(texts)
        parts: list[torch.Tensor] = []
        self._walk(
            tree, np.arange(len(tree)), lambda first, last, states, cache: parts.append(states)
        )
        states = torch.cat(parts)
        for text, path in zip(texts, tree.paths, strict=True):
            yield states[torch.from_numpy(path)], self._alone(text)

    def _alone(self, text: Sequence[int]) -> torch.Tensor:
        return self._states(input_ids=torch.tensor([text], device=self.where.device))[0]


@torch.inference_mode()
def agree(
    pairs: Iterable[tuple[torch.Tensor, torch.Tensor]], dtype: torch.dtype, if_failed: bool = False
) -> bool:
    """Return whether pairs of states or logits are close; `if_failed` after any error."""
    try:
        return all(close(states, expected, dtype) for states, expected in pairs)
    except Exception:  # a model's own code can raise anything
        return if_failed


def close(states: torch.Tensor, expected: torch.Tensor, dtype: torch.dtype) -> bool:
    """Return whether states or logits [tokens, size] are as expected; NaN equals NaN."""
    if expected.isnan().any():
        return bool(torch.equal(states.isnan(), expected.isnan()))
    tolerance = TOLERANCE.get(dtype, LOW_PRECISION_TOLERANCE)
    off = (states.float() - expected.float()).norm(dim=-1)
    return bool((off <= tolerance * expected.float().norm(dim=-1)).all())


def trial_ids(network: Any, n: int) -> torch.Tensor:
    """Return `n` tokens for a test of a model."""
    return torch.arange(1, n + 1) * 7 % network.config.get_text_config().vocab_size


def _split(parts: Parts, rows: Sequence[Row]) -> list[np.ndarray]:
    """Return the values of each row's reads: float64. This waits for the device only once."""
    order = np.concatenate([part for part, _ in parts])
    values = np.empty(len(order))
    values[order] = torch.cat([part for _, part in parts]).double().cpu().numpy()
    return np.split(values, np.cumsum([len(row.targets) for row in rows])[:-1])


def padded(
    rows: Sequence[Sequence[int]], padding: int, device: torch.device, left: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ids and mask [texts, longest] on the device."""
    texts, side = [torch.tensor(row) for row in rows], "left" if left else "right"
    ids = pad_sequence(texts, True, padding, side)
    mask = pad_sequence(list(map(torch.ones_like, texts)), True, 0, side)
    return ids.to(device), mask.to(device)


def _limits(config: Any) -> tuple[float, float]:
    """Return the maximum lengths of texts in a tree, and in a padded batch.

    In longer texts, a token sees only a part of the text by the configuration, so that numbers
    differ from a text by itself. If transformers' masks do this, only trees need the limit.
    "longrope" changes the positions of all texts of a batch for the longest one.
    """
    entries = dict(vars(config))
    if not entries.get("use_sliding_window", True):
        entries.pop("sliding_window", None)
    rope = entries.get("rope_parameters") or {}
    for part in (rope, *rope.values()):
        if isinstance(part, dict) and part.get("rope_type") == "longrope":
            entries["rope_window"] = part.get("original_max_position_embeddings")
    tree = batch = math.inf
    for name, value in entries.items():
        sizes = value if isinstance(value, list | tuple) else [value]
        least = min((n for n in sizes if type(n) is int and n > 0), default=math.inf)
        if name in MASKED:
            tree = min(tree, least)
        elif OWN_LIMIT.search(name):
            batch = min(batch, least)
    return min(tree, batch), batch
