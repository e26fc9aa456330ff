"""Measure the workbench's speed and memory next to the authors' loops, lm-eval and minicons.

    python -m tests.benchmarks.speed --model HuggingFaceTB/SmolLM2-135M-Instruct --dtype bfloat16
    python -m tests.benchmarks.speed --model random --batch-tokens 1024 16384

Every contestant does the same work on the same loaded network, one after the other, several times
(a b c a b c); we compare the seconds of the same turn. lm-eval and minicons take part if they are
installed (`pip install -e ".[peers]"`). `docs/speed.md` has results.
"""

import argparse
import tempfile
import time
from copy import deepcopy
from importlib.util import find_spec
from itertools import islice
from statistics import median

import numpy as np
import pandas as pd
import torch

from bench import data, scorers
from bench.benchmarks import get
from bench.scorers.base import messages
from bench.tasks import prompts, settings
from bench.tasks.choices import letter
from bench.tasks.request import AnswerMode
from tests.helpers.checkpoints import characters, save

OURS, ONE_BY_ONE, BATCH = "workbench", "one by one", 32
# Items of a work, items that are replied to one by one, and turns.
ITEMS, FEW, TURNS = 64, 4, 3
# Benchmark, task, request type, and tokens of a reply if the authors generate one: a letter, McBE's
# choice (its script allows 512), replies of different lengths, and of one length.
WORKS = {
    "nll": ("mcbe", "pc", "nll", 0),
    "letters": ("cbbq", "ambiguous", "choose", 8),
    "ss": ("mcbe", "ss", "choose", 16),
    "replies": ("cbbq", "ambiguous", "generate", 96),
    "generate": ("mcbe", "sc", "generate", 16),
}
# The shape of Qwen2.5-0.5B but for its vocabulary.
QWEN = {"hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24}
QWEN |= {"num_attention_heads": 14, "num_key_value_heads": 2, "initializer_range": 0.02}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="random", help="a causal model, or random: its weights")
    parser.add_argument("--device", help="cpu or cuda; default: an accelerator if there is one")
    parser.add_argument("--dtype", help="float32, bfloat16 or float16; default: by device")
    parser.add_argument("--batch-tokens", type=int, nargs="*", default=(), help="also by batch")
    given = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as home:
        if given.model == "random":
            on_gpu = given.device != "cpu" and torch.cuda.is_available()
            shape = QWEN if on_gpu else {"num_key_value_heads": 2}
            given.model = str(save(home, "Qwen2ForCausalLM", characters(chat=True), **shape))
        model = scorers.load(given.model, device=given.device, dtype=given.dtype)
        print(f"{model.network.device}, torch {torch.__version__}")
        parts = [measure(work, requests(work, ITEMS), contestants(work, model)) for work in WORKS]
        print(pd.concat(parts).to_string(index=False))
        del model
        for size in given.batch_tokens:
            print(by_batch(size, given))


def requests(work, n):
    """Return `n` requests of a work: sentences, questions, ordered pairs of groups, or prompts."""
    name, task, request_type, _ = WORKS[work]
    benchmark = get(name)
    items = filter(benchmark.tasks[task].applies, data.load(data.find(benchmark, "samples")))
    items = [item for item in items if not benchmark.tasks[task].excluded(item)]
    # lm-eval puts a special token first, so all do.
    chosen = settings(benchmark, {"bos": "forced"} if name == "mcbe" else {}, "robust")
    answer_mode = AnswerMode(request_type, "letters" if request_type == "choose" else "text")
    every = benchmark.requests(items, prompts.load(benchmark), task, answer_mode, chosen, 0)
    return list(islice(every, n))


def timed(run, *given):
    """Return a result, its seconds, and the peak of an accelerator's memory in MiB."""
    if on_cuda := torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    result = run(*given)
    if on_cuda:
        torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated() / 2**20 if on_cuda else np.nan
    return result, time.perf_counter() - start, peak


def measure(work, asked, who):
    """Time every contestant in turns; return one row per contestant.

    `times` is how many times as many items per second the workbench does, the median of the turns;
    `agree` the share of items with the same answer.
    """
    few = data.spread_evenly(asked, FEW)
    items = {name: few if name.endswith(ONE_BY_ONE) else asked for name in who}
    paces = {name: [] for name in who}
    answers, peaks = {}, {}
    for turn in range(TURNS + 1):  # the first one warms up
        for name, run in who.items():
            answers[name], seconds, peaks[name] = timed(run, items[name])
            paces[name] += [len(items[name]) / seconds] * bool(turn)
    rows = []
    for name, pace in paces.items():
        times = median(ours / theirs for ours, theirs in zip(paces[OURS], pace, strict=True))
        places = [asked.index(request) for request in items[name]]
        agree = agreement(answers[OURS], answers[name], places)
        rows.append((work, name, len(items[name]), median(pace), times, agree, peaks[name]))
    columns = ["work", "who", "items", "items_per_second", "times", "agree", "peak_mib"]
    return pd.DataFrame(rows, columns=columns)


def by_batch(size, given):
    """Return speed and memory of log-likelihoods with `size` tokens in a batch."""
    options = {"device": given.device, "dtype": given.dtype, "batch_tokens": size}
    model = scorers.load(given.model, **options)
    texts = [request.prompt for request in requests("letters", 4 * ITEMS)]
    model.token_logprobs(texts[:2])
    logprobs, seconds, peak = timed(model.token_logprobs, texts)
    pace = sum(map(len, logprobs)) / seconds
    return f"batches of {size} tokens: {pace:.0f} tokens per second, {peak:.0f} MiB"


def agreement(ours, theirs, places):
    """Return the share of items with the same answer; of likelihoods, those within 0.1 nats."""
    if isinstance(ours, list):
        same = [ours[k] == reply for k, reply in zip(places, theirs, strict=True)]
    elif ours.ndim == 1:
        same = np.abs(ours[places] - theirs) < 0.1
    elif isinstance(theirs, list):
        letters = ["ABC"[k] for k in ours[places].argmax(1)]
        read = [letter(reply, "ABC"[: ours.shape[1]]) for reply in theirs]
        same = [a == b for a, b in zip(letters, read, strict=True)]
    else:
        same = ours[places].argmax(1) == theirs.argmax(1)
    return float(np.mean(same))


def contestants(work, model):
    """Return the functions that can do a work, the workbench first."""
    tokens = WORKS[work][3]
    if work == "generate":  # the last work: no token ends a reply, so that all are equally long
        model.network.generation_config.eos_token_id = []

    def ours(asked):
        if work == "nll":
            rows = model.token_logprobs([request.prompt for request in asked], bos=True)
            return np.array([row.sum() for row in rows])
        turns = [request.turns for request in asked]
        if WORKS[work][2] == "generate":
            return model.generate(turns, max_new_tokens=tokens, greedy=True)
        return model.choose(turns, asked[0].options)

    who = {OURS: ours}
    if work == "nll":
        who["authors' loop"] = lambda asked: one_forward_per_text(model, asked)
    else:
        name = f"authors' {tokens} tokens"
        who[f"{name}, {ONE_BY_ONE}"] = lambda asked: replies(model, asked, tokens, 1)
        who[f"{name}, batches of {BATCH}"] = lambda asked: replies(model, asked, tokens, BATCH)
    if find_spec("lm_eval") and work in ("nll", "letters"):
        who["lm-eval"] = lm_eval(model, work)
    if find_spec("minicons") and work == "nll":
        who["minicons"] = minicons(model)
    return who


def prompt_text(tokenizer, request):
    turns = messages(request.turns)
    return tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)


def with_first_token(tokenizer, text):
    """Encode a text with the special token first that lm-eval uses."""
    ids = tokenizer.encode(text)
    first = tokenizer.eos_token_id if tokenizer.bos_token_id is None else tokenizer.bos_token_id
    return ids if ids[:1] == [first] else [first, *ids]


@torch.no_grad()
def one_forward_per_text(model, asked):
    """Do as McBE's preference computation: one forward pass per sentence, all log-probabilities."""
    values = []
    for request in asked:
        ids = torch.tensor([with_first_token(model.tokenizer, request.prompt)])
        ids = ids.to(model.network.device)
        logprobs = model.network(ids).logits.log_softmax(-1)[0, :-1]
        values.append(float(logprobs.gather(1, ids[0, 1:, None]).float().sum()))
    return np.array(values)


@torch.no_grad()
def replies(model, asked, new_tokens, size):
    """Do as the authors' scripts: greedy replies, `size` at once."""
    tokenizer, texts = model.tokenizer, []
    given = {"max_new_tokens": new_tokens, "do_sample": False}
    for k in range(0, len(asked), size):
        prompts = [prompt_text(tokenizer, request) for request in asked[k : k + size]]
        ids = [tokenizer.encode(prompt, add_special_tokens=False) for prompt in prompts]
        batch = tokenizer.pad({"input_ids": ids}, padding_side="left", return_tensors="pt")
        batch = batch.to(model.network.device)
        out = model.network.generate(**batch, pad_token_id=tokenizer.pad_token_id, **given)
        written = out[:, batch["input_ids"].shape[1] :]
        texts += tokenizer.batch_decode(written, skip_special_tokens=True)
    return texts


def lm_eval(model, work):
    """Return lm-eval's log-likelihoods on the loaded network."""
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    tokenizer = model.tokenizer
    harness = HFLM(pretrained=model.network, tokenizer=deepcopy(tokenizer), batch_size=BATCH)

    def run(asked):
        if work == "nll":
            pairs = [("", request.prompt) for request in asked]
        else:
            texts = [(prompt_text(tokenizer, request), request.options) for request in asked]
            pairs = [(text, option) for text, options in texts for option in options]
        every = [Instance("loglikelihood", {}, pair, k) for k, pair in enumerate(pairs)]
        values = np.array([v for v, _ in harness.loglikelihood(every, disable_tqdm=True)])
        return values if work == "nll" else values.reshape(len(asked), -1)

    return run


def minicons(model):
    """Return minicons' log-likelihoods on the loaded network."""
    from minicons.scorer import IncrementalLMScorer

    tokenizer, device = model.tokenizer, str(model.network.device)
    scorer = IncrementalLMScorer(model.network, device, tokenizer=deepcopy(tokenizer))

    def run(asked):
        texts = [request.prompt for request in asked]
        ids = with_first_token(tokenizer, texts[0])
        if ids != tokenizer.encode(texts[0]):
            first = tokenizer.convert_ids_to_tokens(ids[0])
            texts = [first + text for text in texts]
        parts = [texts[k : k + BATCH] for k in range(0, len(texts), BATCH)]
        total = {"reduction": lambda row: row.float().sum().item()}
        return np.array([v for part in parts for v in scorer.sequence_score(part, **total)])

    return run


if __name__ == "__main__":
    main()
