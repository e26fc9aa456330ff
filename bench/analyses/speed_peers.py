"""Whose speed is measured: the workbench, the loops of the benchmarks' authors, and other harnesses, on one loaded network.

The loops are our own few lines of what the released scripts do. lm-eval and minicons are taken where they are installed
(`pip install 'bias-workbench[peers]'`), are given the network that is loaded already, and batches of 32 texts.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import torch
from transformers import StoppingCriteria, StoppingCriteriaList

from bench.metrics.speed_findings import GUESS, OURS
from bench.scorers.base import messages
from bench.scorers.local.causal import Causal
from bench.tasks.request import Request, Turns

BATCH = 32
# Tokens of a reply: as CBBQ's letters are asked for, as McBE's script allows, and in the work that generates.
LETTER, WHOLE, REPLY = 8, 512, 16


class Said(NamedTuple):
    """What came of a work.

    Attributes:
        values: [items] log-likelihood of a text, or [items, options] log-probabilities; nats.
        replies: what was generated instead.
        whole: seconds that the work would have taken with replies of `WHOLE` tokens; NaN where that has no meaning.
        note: how `whole` was found.
    """

    values: np.ndarray | None = None
    replies: list[str] | None = None
    whole: float = np.nan
    note: str = ""


Run = Callable[[Sequence[Request]], Said]


class Contestant(NamedTuple):
    """Who does a work: `make` gives the function that does it with a model, whose batches and copies stay out of the time.

    Attributes:
        package: what has to be installed for it; "" where nothing.
        few: so slow that it is given a few of the items.
    """

    who: str
    make: Callable[[Causal], Run]
    package: str = ""
    few: bool = False

    @property
    def missing(self) -> bool:
        """Whether its package is not installed."""
        return bool(self.package) and find_spec(self.package) is None


def contestants(work: str, cap: int) -> list[Contestant]:
    """Who does `work`, the workbench first; `cap` is how many tokens of `WHOLE` are really generated."""
    whole = WHOLE if cap < WHOLE else 0
    return {
        "nll": [
            Contestant(OURS, _ours_nll),
            Contestant("authors' loop", _a_forward_each),
            Contestant("lm-eval", _lm_eval_nll, "lm_eval"),
            Contestant("minicons", _minicons_nll, "minicons"),
        ],
        "letters": [
            Contestant(OURS, _ours_letters),
            Contestant("lm-eval", _lm_eval_letters, "lm_eval"),
            Contestant(
                f"authors' {LETTER} tokens", lambda model: _a_reply_each(model, LETTER), few=True
            ),
        ],
        "ss": [
            Contestant(OURS, _ours_letters),
            Contestant(
                f"authors' {cap} tokens", lambda model: _a_reply_each(model, cap, whole), few=True
            ),
        ],
        "generate": [
            Contestant(OURS, _ours_replies),
            Contestant("one by one", _an_endless_reply_each, few=True),
        ],
    }[work]


def encoded(tokenizer: Any, text: str) -> list[int]:
    """Token ids of a text behind a special token: that for the beginning, or for the end where there is none.

    So lm-eval asks about a text without a context, and so all are asked here.
    """
    ids: list[int] = tokenizer.encode(text)
    first = tokenizer.eos_token_id if tokenizer.bos_token_id is None else tokenizer.bos_token_id
    return ids if ids[:1] == [first] else [first, *ids]


def turn(tokenizer: Any, prompt: Turns) -> tuple[str, list[int]]:
    """The text that the model continues, and its token ids: a user's turn, or bare where the model knows no turns."""
    if tokenizer.chat_template:
        text = tokenizer.apply_chat_template(
            messages(prompt), tokenize=False, add_generation_prompt=True
        )
        return text, tokenizer.encode(text, add_special_tokens=False)
    text = "\n".join([*([prompt] if isinstance(prompt, str) else prompt), ""])
    return text, tokenizer.encode(text)


def _ours_nll(model: Causal) -> Run:
    def run(requests: Sequence[Request]) -> Said:
        rows = model.token_logprobs([request.prompt for request in requests], bos=True)
        return Said(np.array([row.sum() for row in rows]))

    return run


def _ours_letters(model: Causal) -> Run:
    return lambda requests: Said(model.choose([one.turns for one in requests], requests[0].options))


def _ours_replies(model: Causal) -> Run:
    def run(requests: Sequence[Request]) -> Said:
        with _endless(model.network):
            prompts = [request.turns for request in requests]
            return Said(replies=model.generate(prompts, max_new_tokens=REPLY, greedy=True))

    return run


def _a_forward_each(model: Causal) -> Run:
    """McBE's preference computation: a sentence a pass, all logits, all their log-probabilities in the model's dtype.

    Unlike the script it keeps no gradients, which makes it faster than that is.
    """

    @torch.no_grad()
    def run(requests: Sequence[Request]) -> Said:
        values = []
        for request in requests:
            ids = torch.tensor(
                [encoded(model.tokenizer, request.prompt)], device=model.network.device
            )
            logprobs = model.network(ids).logits.log_softmax(-1)[0, :-1]
            values.append(float(logprobs.gather(1, ids[0, 1:, None]).float().sum()))
        return Said(np.array(values))

    return run


def _a_reply_each(model: Causal, new_tokens: int, whole: int = 0) -> Run:
    """A prompt at a time, greedily; `whole` tells how long it takes to that many tokens where a reply does not stop before."""

    @torch.no_grad()
    def run(requests: Sequence[Request]) -> Said:
        replies, seconds, going = [], 0.0, 0
        for request in requests:
            began, watch = time.perf_counter(), _First()
            ids = torch.tensor(
                [turn(model.tokenizer, request.turns)[1]], device=model.network.device
            )
            out = model.network.generate(
                input_ids=ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=new_tokens,
                do_sample=False,
                pad_token_id=model.tokenizer.pad_token_id,
                stopping_criteria=StoppingCriteriaList([watch]),
            )[0, ids.shape[1] :]
            replies.append(model.tokenizer.decode(out, skip_special_tokens=True))
            ended = time.perf_counter()
            seconds += ended - began
            if (
                whole > new_tokens > 1
                and len(out) == new_tokens
                and int(out[-1]) not in _ends(model.network)
            ):
                # Later tokens take no less than those behind the first, as there is ever more to look back on.
                seconds += (ended - watch.seconds) / (new_tokens - 1) * (whole - new_tokens)
                going += 1
        told = (
            f"{GUESS}: {going} of {len(replies)} replies had not stopped after {new_tokens} tokens"
        )
        return Said(
            None,
            replies,
            seconds if whole else np.nan,
            told if going else "every reply had stopped",
        )

    return run


def _an_endless_reply_each(model: Causal) -> Run:
    reply = _a_reply_each(model, REPLY)

    def run(requests: Sequence[Request]) -> Said:
        with _endless(model.network):
            return reply(requests)

    return run


class _First(StoppingCriteria):
    """Never stops, and keeps when the first token was there."""

    seconds = 0.0

    def __call__(self, input_ids: torch.Tensor, scores: Any, **options: Any) -> Any:
        self.seconds = self.seconds or time.perf_counter()
        return torch.zeros(len(input_ids), dtype=torch.bool, device=input_ids.device)


@contextmanager
def _endless(network: Any) -> Iterator[None]:
    """No token ends a reply, so that all are equally long."""
    before = network.generation_config.eos_token_id
    network.generation_config.eos_token_id = None
    try:
        yield
    finally:
        network.generation_config.eos_token_id = before


def _ends(network: Any) -> Sequence[int]:
    end = network.generation_config.eos_token_id
    return [] if end is None else [end] if isinstance(end, int) else end


def _lm_eval(model: Causal) -> Callable[[Sequence[tuple[str, str]]], list[float]]:
    """lm-eval's log-likelihood of continuations: sums, nats."""
    logging.getLogger("lm_eval").setLevel(logging.ERROR)  # it warns of what is meant here
    harness = import_module("lm_eval.models.huggingface").HFLM(
        pretrained=model.network, tokenizer=deepcopy(model.tokenizer), batch_size=BATCH
    )
    instance = import_module("lm_eval.api.instance").Instance

    def ask(pairs: Sequence[tuple[str, str]]) -> list[float]:
        asked = [instance("loglikelihood", {}, pair, k) for k, pair in enumerate(pairs)]
        return [value for value, _ in harness.loglikelihood(asked, disable_tqdm=True)]

    return ask


def _lm_eval_nll(model: Causal) -> Run:
    ask = _lm_eval(model)
    return lambda requests: Said(np.array(ask([("", request.prompt) for request in requests])))


def _lm_eval_letters(model: Causal) -> Run:
    ask = _lm_eval(model)

    def run(requests: Sequence[Request]) -> Said:
        texts = [turn(model.tokenizer, request.turns)[0] for request in requests]
        pairs = [
            (text, option)
            for text, one in zip(texts, requests, strict=True)
            for option in one.options
        ]
        return Said(np.array(ask(pairs)).reshape(len(requests), -1))

    return run


def _minicons_nll(model: Causal) -> Run:
    scorer = import_module("minicons.scorer").IncrementalLMScorer(
        model.network, str(model.network.device), tokenizer=deepcopy(model.tokenizer)
    )

    def run(requests: Sequence[Request]) -> Said:
        texts = [request.prompt for request in requests]
        ids = encoded(model.tokenizer, texts[0])
        if ids != model.tokenizer.encode(texts[0]):
            first = model.tokenizer.convert_ids_to_tokens(ids[0])
            texts = [first + text for text in texts]
        parts = [texts[k : k + BATCH] for k in range(0, len(texts), BATCH)]
        sums = [
            scorer.sequence_score(part, reduction=lambda row: row.float().sum().item())
            for part in parts
        ]
        return Said(np.array([value for part in sums for value in part]))

    return run
