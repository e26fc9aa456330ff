"""Measure the workbench's speed next to the authors' loops, lm-eval and minicons.

python -m tests.benchmarks.speed --model HuggingFaceTB/SmolLM2-135M-Instruct --dtype bfloat16

Every contestant does the same work on the same loaded network, one after the other, several times
(a b c a b c); what is compared are the seconds of the same turn. lm-eval and minicons take part
where they are installed (`pip install -e ".[peers]"`). `docs/speed.md` has results.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
import torch

from bench import data, scorers
from bench.benchmarks import module
from bench.scorers.base import messages
from bench.tasks import prompts, settings
from bench.tasks.choices import letter
from bench.tasks.request import Request, Way

OURS = "workbench"
BATCH = 32
# Tokens of a reply: where a letter is looked for, where McBE's script allows 512, and where replies
# are the work itself.
LETTER, CAPPED, REPLY = 8, 16, 16

# Log-likelihoods per text, log-probabilities per option, or replies.
Answers = np.ndarray | list[str]
Contestant = Callable[[Sequence[Request]], Answers]


def main() -> None:
    """Read the options, measure every work and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="tiny:s", help="a causal model; default: tiny:s")
    parser.add_argument("--device", help="cpu or cuda; default: an accelerator if there is one")
    parser.add_argument("--dtype", help="float32, bfloat16 or float16; default: by device")
    parser.add_argument("--items", type=int, default=64, help="items per work; default: 64")
    parser.add_argument("--few", type=int, default=4, help="items where replies come one by one")
    parser.add_argument("--turns", type=int, default=3, help="number of turns; default: 3")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch; default: 1")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    scorer: Any = scorers.load(given.model, given.device, given.dtype)
    model = getattr(scorer, "causal", scorer)
    rows = []
    for work in ("nll", "letters", "ss", "generate"):
        rows += measure(work, requests(work, given.items), contestants(work, model), given)
    print(pd.DataFrame(rows).to_string(index=False))


def requests(work: str, n: int) -> list[Request]:
    """Return `n` requests of a work: sentences, questions, ordered pairs of groups, or prompts."""
    benchmark, task, verb = {
        "nll": ("mcbe", "pc", "nll"),
        "letters": ("cbbq", "ambiguous", "choose"),
        "ss": ("mcbe", "ss", "choose"),
        "generate": ("mcbe", "sc", "generate"),
    }[work]
    items = data.load(data.find(benchmark, "samples"))
    # lm-eval puts a special token first, so all do.
    chosen = settings(benchmark, {"bos": "forced"} if benchmark == "mcbe" else {}, "robust")
    way = Way(verb, "letters" if verb == "choose" else "text")
    wording = prompts.load(benchmark)
    return list(
        islice(module("tasks", benchmark).requests(items, wording, task, way, chosen, 0), n)
    )


def measure(
    work: str, asked: list[Request], who: dict[str, Contestant], given: argparse.Namespace
) -> list[dict[str, Any]]:
    """Time every contestant in turns; return one row per contestant.

    `times` is how many times as many items per second the workbench does, the median of the turns;
    `agree` the share of items with the same answer.
    """
    items = {
        name: data.spread_evenly(asked, given.few) if "tokens" in name or "one" in name else asked
        for name in who
    }
    seconds: dict[str, list[float]] = {name: [] for name in who}
    answers: dict[str, Answers] = {}
    for turn in range(given.turns + 1):  # the first one warms up
        for name, run in who.items():
            start = time.perf_counter()
            answers[name] = run(items[name])
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            if turn:
                seconds[name].append(time.perf_counter() - start)
    own = [len(items[OURS]) / spent for spent in seconds[OURS]]
    rows = []
    for name in who:
        pace = [len(items[name]) / spent for spent in seconds[name]]
        places = [asked.index(request) for request in items[name]]
        rows.append(
            {
                "work": work,
                "who": name,
                "items": len(items[name]),
                "items_per_second": median(pace),
                "times": median(a / b for a, b in zip(own, pace, strict=True)),
                "agree": agreement(answers[OURS], answers[name], places),
            }
        )
    return rows


def agreement(ours: Answers, theirs: Answers, places: list[int]) -> float:
    """Return the share of items with the same answer; of likelihoods, those within 0.1 nats."""
    if isinstance(ours, list):
        return float(np.mean([ours[k] == reply for k, reply in zip(places, theirs, strict=True)]))
    if isinstance(theirs, list):
        chosen = ["ABC"[k] for k in ours[places].argmax(1)]
        read = [letter(reply, "ABC"[: ours.shape[1]]) for reply in theirs]
        return float(np.mean([a == b for a, b in zip(chosen, read, strict=True)]))
    if ours.ndim == 1:
        return float(np.mean(np.abs(ours[places] - theirs) < 0.1))
    return float(np.mean(ours[places].argmax(1) == theirs.argmax(1)))


def contestants(work: str, model: Any) -> dict[str, Contestant]:
    """Return who can do a work, the workbench first."""
    peers: dict[str, dict[str, Contestant]] = {
        "nll": {"authors' loop": lambda asked: one_forward_per_text(model, asked)},
        "letters": {f"authors' {LETTER} tokens": lambda asked: replies(model, asked, LETTER)},
        "ss": {f"authors' {CAPPED} tokens": lambda asked: replies(model, asked, CAPPED)},
        "generate": {"one by one": lambda asked: endless(model, replies, asked, REPLY)},
    }
    ours: dict[str, Contestant] = {
        "nll": lambda asked: np.array(
            [row.sum() for row in model.token_logprobs([one.prompt for one in asked], bos=True)]
        ),
        "letters": lambda asked: model.choose([one.turns for one in asked], asked[0].options),
        "generate": lambda asked: endless(
            model,
            lambda model, asked, n: model.generate(
                [one.turns for one in asked], max_new_tokens=n, greedy=True
            ),
            asked,
            REPLY,
        ),
    }
    ours["ss"] = ours["letters"]
    if find_spec("lm_eval") and work in ("nll", "letters"):
        peers[work]["lm-eval"] = lm_eval(model, work)
    if find_spec("minicons") and work == "nll":
        peers[work]["minicons"] = minicons(model)
    return {OURS: ours[work], **peers[work]}


def prompt_text(tokenizer: Any, request: Request) -> str:
    """Return the text that the model continues."""
    text: str = tokenizer.apply_chat_template(
        messages(request.turns), tokenize=False, add_generation_prompt=True
    )
    return text


def with_first_token(tokenizer: Any, text: str) -> list[int]:
    """Encode a text with the special token first that lm-eval uses."""
    ids: list[int] = tokenizer.encode(text)
    first = tokenizer.eos_token_id if tokenizer.bos_token_id is None else tokenizer.bos_token_id
    return ids if ids[:1] == [first] else [first, *ids]


@torch.no_grad()
def one_forward_per_text(model: Any, asked: Sequence[Request]) -> np.ndarray:
    """Do as McBE's preference computation: one forward pass per sentence, all log-probabilities."""
    values = []
    for request in asked:
        ids = torch.tensor([with_first_token(model.tokenizer, request.prompt)])
        ids = ids.to(model.network.device)
        logprobs = model.network(ids).logits.log_softmax(-1)[0, :-1]
        values.append(float(logprobs.gather(1, ids[0, 1:, None]).float().sum()))
    return np.array(values)


@torch.no_grad()
def replies(model: Any, asked: Sequence[Request], new_tokens: int) -> list[str]:
    """Do as the authors' scripts: one greedy reply at a time."""
    texts = []
    for request in asked:
        text = prompt_text(model.tokenizer, request)
        ids = torch.tensor([model.tokenizer.encode(text, add_special_tokens=False)])
        ids = ids.to(model.network.device)
        out = model.network.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=new_tokens,
            do_sample=False,
            pad_token_id=model.tokenizer.pad_token_id,
        )[0, ids.shape[1] :]
        texts.append(model.tokenizer.decode(out, skip_special_tokens=True))
    return texts


def endless(model: Any, run: Callable[..., list[str]], asked: Sequence[Request], n: int) -> Answers:
    """Generate replies that no token ends, so that all are `n` tokens long."""
    with no_end(model.network):
        return run(model, asked, n)


@contextmanager
def no_end(network: Any) -> Iterator[None]:
    """Take the end of a reply out of a network's configuration for a block."""
    before = network.generation_config.eos_token_id
    network.generation_config.eos_token_id = None
    try:
        yield
    finally:
        network.generation_config.eos_token_id = before


def lm_eval(model: Any, work: str) -> Contestant:
    """Return lm-eval's log-likelihoods on the loaded network, in batches of 32."""
    harness = import_module("lm_eval.models.huggingface").HFLM(
        pretrained=model.network, tokenizer=deepcopy(model.tokenizer), batch_size=BATCH
    )
    instance = import_module("lm_eval.api.instance").Instance

    def run(asked: Sequence[Request]) -> np.ndarray:
        pairs = [
            ("", request.prompt) if work == "nll" else (prompt_text(model.tokenizer, request), text)
            for request in asked
            for text in (request.options if work == "letters" else [""])
        ]
        every = [instance("loglikelihood", {}, pair, k) for k, pair in enumerate(pairs)]
        values = np.array([v for v, _ in harness.loglikelihood(every, disable_tqdm=True)])
        return values if work == "nll" else values.reshape(len(asked), -1)

    return run


def minicons(model: Any) -> Contestant:
    """Return minicons' log-likelihoods on the loaded network, in batches of 32."""
    scorer = import_module("minicons.scorer").IncrementalLMScorer(
        model.network, str(model.network.device), tokenizer=deepcopy(model.tokenizer)
    )

    def run(asked: Sequence[Request]) -> np.ndarray:
        texts = [request.prompt for request in asked]
        ids = with_first_token(model.tokenizer, texts[0])
        if ids != model.tokenizer.encode(texts[0]):
            first = model.tokenizer.convert_ids_to_tokens(ids[0])
            texts = [first + text for text in texts]
        sums: list[float] = []
        for k in range(0, len(texts), BATCH):
            sums += scorer.sequence_score(
                texts[k : k + BATCH], reduction=lambda row: row.float().sum().item()
            )
        return np.array(sums)

    return run


if __name__ == "__main__":
    main()
