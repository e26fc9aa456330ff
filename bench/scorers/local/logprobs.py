"""Log-probabilities of tokens in a causal model, computed where they are read and nowhere else.

What texts begin with in common is computed once, as a tree (`bench.scorers.local.prefix_tree`): each pass takes a stretch of it, every
token sees those above it alone, by the attention mask, and stands at its depth. Where a model cannot do that, or little is
shared, texts are padded to batches of like length.

The hidden states that are read are gathered, and only they meet the output matrix, a piece of the vocabulary at a time, so
that no tensor is as large as texts times vocabulary. Sums over the vocabulary are in float32.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from transformers import DynamicCache

from bench.scorers.base import Tally
from bench.scorers.local.checkpoint import Placement, batches
from bench.scorers.local.prefix_tree import Part, Tree
from bench.scorers.local.tree_attention import attending, blocks

# Words of the vocabulary that states meet at a time: on a CPU so many logits stay in its cache, so that summing over them
# costs next to nothing beside the product. On an accelerator more, as far as there are no more logits than this.
VOCABULARY, LOGITS = 2048, 2**28
# Of all tokens, the share that has to be different for padded batches to be as fast as a tree.
SPARSE = 0.9
# How far hidden states may be off for the same text computed otherwise, relative to their norm.
OFF = {torch.float32: 1e-3}
ROUGH = 0.05
# Tokens of a stretch when a model is tried.
TRIAL = 7


@dataclass(frozen=True, slots=True)
class Row:
    """Token ids, and which log-probabilities to read: of token `target` after position `position`."""

    ids: tuple[int, ...]
    reads: tuple[tuple[int, int], ...]


class Found:
    """Numbers as a device gives them, put in their places when all are asked for: that is when the device is waited for."""

    def __init__(self, n: int) -> None:
        self.n = n
        self._some: list[tuple[np.ndarray, torch.Tensor]] = []

    def add(self, places: np.ndarray, values: torch.Tensor) -> None:
        self._some.append((places, values))

    def values(self) -> np.ndarray:
        """All of them: float64 [n]."""
        found = np.empty(self.n)
        places = np.concatenate([some for some, _ in self._some])
        found[places] = torch.cat([values for _, values in self._some]).double().cpu().numpy()
        return found


class Reader:
    """Reads log-probabilities off a causal language model, and counts tokens in `tally`."""

    def __init__(self, network: Any, where: Placement, padding: int) -> None:
        self.network, self.where, self.padding = network, where, padding
        self._tree_tokens = TRIAL
        # A model in parts, on several devices or on disk, is called whole, on batches: what it is given finds its way then.
        parts = set(getattr(network, "hf_device_map", {}).values())
        whole = len(parts) > 1 or "disk" in parts
        self._alone = not whole and self._body_and_head_agree()
        # On a CPU by blocks, where the model attends through transformers' interface; else by a mask.
        self._by_block = where.device.type == "cpu" and not whole
        self._trees = not whole and self._trees_agree()
        if self._by_block and not self._trees:
            self._by_block = False
            self._trees = self._trees_agree()
        self._window = _window(network.config.get_text_config())
        self.tally = Tally()  # without the trials
        # What does not fit into memory is halved, and stays so.
        self._tree_tokens, self._batch_tokens = where.tree_tokens, where.batch_tokens

    @torch.inference_mode()
    def read(self, rows: Sequence[Row]) -> list[np.ndarray]:
        """The log-probabilities that each row asks for, in the order of its reads: float64, nats."""
        values: list[np.ndarray] = [np.empty(0)] * len(rows)
        busy = [i for i, row in enumerate(rows) if row.reads]
        if not busy:
            return values
        lengths = [len(rows[i].ids) for i in busy]
        self.tally.asked += sum(lengths)
        if self._trees and (self._window is None or max(lengths) <= self._window):
            tree = Tree([rows[i].ids for i in busy])
            # Without the output matrix apart, batches would have logits of every token.
            if len(tree) <= SPARSE * sum(lengths) or not self._alone:
                for i, found in zip(
                    busy, self._off_tree(tree, [rows[i] for i in busy]), strict=True
                ):
                    values[i] = found
                return values
        waiting = list(batches(lengths, self._batch_tokens))
        while waiting:
            some = [busy[k] for k in waiting[0]]
            try:
                answers = self._off_batch([rows[i] for i in some])
            except torch.OutOfMemoryError:
                if len(some) == 1:
                    raise
                self._batch_tokens = max(self._batch_tokens // 2, 1)
                rest = [k for numbers in waiting for k in numbers]
                again = batches([lengths[k] for k in rest], self._batch_tokens)
                waiting = [[rest[k] for k in numbers] for numbers in again]
                continue
            waiting.pop(0)
            for i, found in zip(some, answers, strict=True):
                values[i] = found
        return values

    def _off_tree(self, tree: Tree, rows: Sequence[Row]) -> list[np.ndarray]:
        positions = [np.array([position for position, _ in row.reads]) for row in rows]
        nodes = np.concatenate([path[at] for path, at in zip(tree.paths, positions, strict=True)])
        targets = np.array([target for row in rows for _, target in row.reads])
        order = np.argsort(nodes, kind="stable")
        ordered = nodes[order]
        found = Found(len(nodes))

        def asked(part: Part) -> np.ndarray:
            ends = np.searchsorted(ordered, [part.nodes[0], part.nodes[-1] + 1])
            return order[slice(*ends)]

        def places(part: Part) -> np.ndarray:
            return np.unique(nodes[asked(part)] - part.nodes[0])

        def take(part: Part, read: np.ndarray, states: torch.Tensor, cache: Any) -> None:
            some = asked(part)
            line = np.searchsorted(read, nodes[some] - part.nodes[0])
            self._logprobs(states, line, targets[some], some, found)

        self._walk(tree, places, take)
        return np.split(found.values(), np.cumsum([len(at) for at in positions])[:-1])

    def _walk(
        self,
        tree: Tree,
        places: Callable[[Part], np.ndarray],
        take: Callable[[Part, np.ndarray, torch.Tensor, Any], None],
        keep: bool = False,
    ) -> None:
        """Compute a tree, a stretch a pass.

        Args:
            places: which tokens of a stretch are read.
            take: called with each stretch, which of its tokens are read, their states, and the cache.
            keep: the last stretch has a cache, too.
        """
        before, cache, first = None, None, 0
        while first < len(tree):
            part = tree.part(first, self._tree_tokens, before)
            last = first + len(part.nodes)
            try:
                read = places(part)
                states, kept = self._pass(tree, part, read, before, cache, keep or last < len(tree))
                take(part, read, states, kept)
            except torch.OutOfMemoryError:
                if self._tree_tokens == 1:
                    raise
                self._tree_tokens //= 2
                continue
            before, cache, first = part, kept, last

    def _pass(
        self, tree: Tree, part: Part, read: np.ndarray, before: Part | None, cache: Any, more: bool
    ) -> tuple[torch.Tensor, Any]:
        """States of the tokens `read` of a stretch, [tokens, width], and keys and values of what the next one needs.

        States are hidden ones; where these do not make the logits alone, the logits.
        """
        self.tally.computed += len(part.nodes)
        kept = DynamicCache() if more or before is not None else None
        if kept is not None and before is not None:
            above = self._send(np.searchsorted(before.known, part.above))
            for k, layer in enumerate(cache.layers):
                kept.update(
                    layer.keys.index_select(2, above), layer.values.index_select(2, above), k
                )
        ids, position = (self._send(some[part.nodes])[None] for some in (tree.ids, tree.depth))
        places = self._send(read)
        options = {
            "input_ids": ids,
            "position_ids": position,
            "past_key_values": kept,
            "use_cache": kept is not None,
        }
        with self._attending(part) as mask:
            if self._alone:
                body = self.network.base_model(attention_mask=mask, **options)
                return body.last_hidden_state[0, places], kept
            return self.network(attention_mask=mask, logits_to_keep=places, **options).logits[
                0
            ], kept

    @contextmanager
    def _attending(self, part: Part) -> Iterator[torch.Tensor]:
        """The network lets every token of a stretch see those that it is given; the mask to call it with."""
        if self._by_block:
            with attending(self.network, blocks(part.sees(), self.network.dtype)):
                # Any mask of four axes keeps transformers from making one of its own.
                yield torch.zeros(1, 1, 1, 1)
            return
        # Made on the device, of numbers alone: the mask itself is large.
        nodes, known, ends = map(self._send, (part.nodes, part.known, part.ends))
        sees = (known <= nodes[:, None]) & (nodes[:, None] < ends)
        mask = torch.zeros(sees.shape, dtype=self.network.dtype, device=self.where.device)
        yield mask.masked_fill_(~sees, torch.finfo(mask.dtype).min)[None, None]

    def can_begin(self, lengths: Sequence[int]) -> bool:
        """Whether `begun` can be asked for texts of such lengths."""
        return (
            self._trees
            and min(lengths) > 1
            and (self._window is None or max(lengths) <= self._window)
        )

    def begun(self, texts: Sequence[Sequence[int]]) -> list[tuple[torch.Tensor, ...]]:
        """Keys and values of all tokens but the last of each text, a pair for each layer: [texts, heads, tokens, width].

        Texts are padded on the left. What they begin with is computed once.
        """
        lengths = [len(text) - 1 for text in texts]
        tree = Tree([text[:-1] for text in texts])
        found: list[list[tuple[torch.Tensor, torch.Tensor]]] = []

        def take(part: Part, read: np.ndarray, states: torch.Tensor, cache: Any) -> None:
            new = slice(len(part.above), None)
            found.append(
                [(layer.keys[0, :, new], layer.values[0, :, new]) for layer in cache.layers]
            )

        self._walk(tree, lambda part: np.empty(0, np.int64), take, keep=True)
        # The nodes of each text behind any of another, which the mask hides.
        paths = np.zeros((len(texts), max(lengths)), np.int64)
        for row, path in zip(paths, tree.paths, strict=True):
            row[len(row) - len(path) :] = path
        places = self._send(paths)
        return [
            tuple(
                torch.cat([part[k][j] for part in found], 1)[:, places].transpose(0, 1)
                for j in (0, 1)
            )
            for k in range(len(found[0]))
        ]

    def _off_batch(self, rows: Sequence[Row]) -> list[np.ndarray]:
        ids, mask = padded([row.ids for row in rows], self.padding, self.where.device)
        self.tally.computed += ids.numel()
        line = np.repeat(np.arange(len(rows)), [len(row.reads) for row in rows])
        position = np.array([position for row in rows for position, _ in row.reads])
        targets = np.array([target for row in rows for _, target in row.reads])
        places, inverse = np.unique(np.stack([line, position]), axis=1, return_inverse=True)
        inverse = inverse.ravel()  # numpy 2.0.0 gives it the shape of a row
        call = self.network.base_model if self._alone else self.network
        out = call(input_ids=ids, attention_mask=mask, use_cache=False)
        states = (out.last_hidden_state if self._alone else out.logits)[
            tuple(map(self._send, places))
        ]
        found = Found(len(targets))
        self._logprobs(states, inverse, targets, np.arange(len(targets)), found)
        return np.split(found.values(), np.cumsum([len(row.reads) for row in rows])[:-1])

    def _logprobs(
        self,
        states: torch.Tensor,
        line: np.ndarray,
        targets: np.ndarray,
        places: np.ndarray,
        found: "Found",
    ) -> None:
        """Of each of `targets` after the state `states[line]`, as `_pass` has states; they belong at `places` of what is found.

        Nothing waits for the device: which targets are in a piece of the vocabulary is known without it.
        """
        self.tally.read += len(states)
        if not len(states):
            return
        order = np.argsort(targets, kind="stable")
        lines, columns = self._send(line[order]), self._send(targets[order])
        values, totals, first = [], [], 0
        for logits in self._logits(states):
            last = first + logits.shape[1]
            some = slice(*np.searchsorted(targets[order], [first, last]))
            values.append(logits[lines[some], columns[some] - first])
            totals.append(logits.logsumexp(1))
            first = last
        total = torch.stack(totals).logsumexp(0)
        found.add(places[order], torch.cat(values) - total[lines])

    def _logits(self, states: torch.Tensor) -> Iterator[torch.Tensor]:
        """Float32 logits [tokens, some of the vocabulary], piece by piece."""
        if not self._alone:
            yield states.float()
            return
        head = self.network.get_output_embeddings()
        step = (
            VOCABULARY
            if self.where.device.type == "cpu"
            else max(VOCABULARY, LOGITS // len(states))
        )
        weights = head.weight.split(step)
        bias = getattr(head, "bias", None)
        biases = [None] * len(weights) if bias is None else bias.split(step)
        for weight, some in zip(weights, biases, strict=True):
            yield torch.nn.functional.linear(states, weight, some).float()

    def _send(self, some: np.ndarray) -> torch.Tensor:
        """Numbers on the device, on the way while the next ones are prepared."""
        sent = torch.from_numpy(some)
        if self.where.device.type == "cuda":
            sent = sent.pin_memory()
        return sent.to(self.where.device, non_blocking=True)

    @torch.inference_mode()
    def _body_and_head_agree(self) -> bool:
        """Whether body and output matrix alone give the model's logits: some models scale or cap them in between."""
        ids = self._some(9)[None]
        try:
            body = self.network.base_model(input_ids=ids, use_cache=False).last_hidden_state
            head = self.network.get_output_embeddings()
            ours = torch.nn.functional.linear(
                body, head.weight, getattr(head, "bias", None)
            ).float()
        except (AttributeError, TypeError, RuntimeError):
            return False
        theirs = self.network(input_ids=ids, use_cache=False).logits.float()
        return ours.shape == theirs.shape and torch.allclose(ours, theirs, rtol=1e-5, atol=1e-5)

    @torch.inference_mode()
    def _trees_agree(self) -> bool:
        """Whether texts have the same states in a tree as alone: not where attention is not by mask and position."""
        self.tally = Tally()
        ids = self._some(24).tolist()
        texts = [ids[:9], ids[:5] + ids[10:16], ids[:5] + ids[16:18], ids[:2] + ids[18:24]]
        tree = Tree(texts)
        found: list[torch.Tensor] = []
        try:
            self._walk(
                tree,
                lambda part: np.arange(len(part.nodes)),
                lambda part, read, states, cache: found.append(states),
            )
            whole = torch.cat(found)
            for text, path in zip(texts, tree.paths, strict=True):
                call = self.network.base_model if self._alone else self.network
                out = call(
                    input_ids=torch.tensor([text], device=self.where.device), use_cache=False
                )
                alone = (out.last_hidden_state if self._alone else out.logits)[0].float()
                off = (whole[torch.from_numpy(path)].float() - alone).norm(dim=1) / alone.norm(
                    dim=1
                )
                if not bool((off <= OFF.get(self.network.dtype, ROUGH)).all()):
                    return False
        # Whatever a model's own code raises: it cannot be asked so.
        except (
            AttributeError,
            TypeError,
            ValueError,
            RuntimeError,
            IndexError,
            NotImplementedError,
        ):
            return False
        return True

    def _some(self, n: int) -> torch.Tensor:
        """Token ids to try the model with."""
        size = self.network.config.get_text_config().vocab_size
        return torch.arange(1, n + 1, device=self.where.device) * 7 % size


def padded(
    encoded: Sequence[Sequence[int]], padding: int, device: torch.device, left: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and mask [texts, longest], on the device."""
    width = max(map(len, encoded))
    ids = torch.full((len(encoded), width), padding)
    mask = torch.zeros_like(ids)
    for k, row in enumerate(encoded):
        place = slice(width - len(row), width) if left else slice(0, len(row))
        ids[k, place], mask[k, place] = torch.tensor(row), 1
    return ids.to(device), mask.to(device)


def _window(config: Any) -> int | None:
    """How many tokens back some layer of the model sees; None where all see everything."""
    window: int | None = getattr(config, "sliding_window", None)
    return window if window and getattr(config, "use_sliding_window", True) else None
