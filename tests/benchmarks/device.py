"""Print tables of memory and speed on a device: `python -m tests.benchmarks.device --device cuda`.

Without --model it asks a model with random weights that is made here: of the shape of Qwen2.5-0.5B
on an accelerator, and a small one on the CPU. No network is needed.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from bench.scorers import load
from bench.tasks.request import Key, Request
from tests.helpers.checkpoints import LETTERS, characters, save

# Of Qwen2.5-0.5B, but for the vocabulary, which is that of the characters.
SHAPE = (
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
)
LARGE = dict(zip(SHAPE, (896, 4864, 24, 14, 2), strict=True))
SMALL = dict(zip(SHAPE, (64, 128, 2, 4, 2), strict=True))
LETTER_OPTIONS = ("A", "B", "C")
NEW_TOKENS = 32
BATCH_TOKENS = (1024, 4096, 16384, 32768, 65536)
MEBIBYTE = 2**20


def main() -> None:
    """Read the options, load the model, and print both tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cuda", help="cuda (default), cuda:1, cpu")
    parser.add_argument("--model", default="", help="a folder or Hub id; default: random weights")
    parser.add_argument("--prompts", type=int, default=0, help="default: 256; 24 on the CPU")
    given = parser.parse_args()
    on_cpu = given.device == "cpu"
    if not on_cpu and not torch.cuda.is_available():
        raise SystemExit("no CUDA device is available here; --device cpu tries this on the CPU")
    n = given.prompts or (24 if on_cpu else 256)
    with tempfile.TemporaryDirectory() as home:
        model = given.model
        if not model:
            shape = SMALL if on_cpu else LARGE
            tokenizer = characters(chat=True)
            folder = Path(home) / "model"
            save(folder, Qwen2ForCausalLM, Qwen2Config, tokenizer, initializer_range=0.02, **shape)
            model = str(folder)
        name = given.device if on_cpu else torch.cuda.get_device_name(given.device)
        asked = given.model or "random weights"
        print(f"\nDevice: {name}; torch {torch.__version__}; model: {asked}")
        print_memory(model, given.device, n)
        print_speed(model, given.device, n)


def print_memory(model: str, device: str, n: int) -> None:
    """Print the peak of memory and the time of log-probabilities, by tokens in a batch."""
    asked = [text + str(k) for k, text in enumerate(texts(4 * n, 200))]
    rows = []
    for batch_tokens in BATCH_TOKENS:
        scorer: Any = load(model, device=device, batch_tokens=batch_tokens)
        scorer.token_logprobs(asked[:2])
        tokens = sum(map(len, scorer.tokenizer(asked)["input_ids"]))
        reset_peak(device)
        seconds = timed(lambda scorer=scorer: scorer.token_logprobs(asked), device)
        rows.append((f"{batch_tokens:,}", f"{peak(device):,.0f}", f"{tokens / seconds:,.0f}"))
        del scorer
    note = " (of the process, which does not shrink)" if device == "cpu" else ""
    print(f"\nLog-probabilities of {len(asked)} texts: memory in MiB{note}")
    print_table(("--batch-tokens", "peak memory", "tokens per second"), rows)


def print_speed(model: str, device: str, n: int) -> None:
    """Print how many prompts per second this package, the authors' loop and `generate` answer."""
    scorer: Any = load(model, device=device)
    network, tokenizer = scorer.network, scorer.tokenizer
    tokenizer.padding_side = "left"
    beginning = texts(1, 150)[0]
    prompts = [beginning + text for text in texts(n, 50)]
    turns = [
        tokenizer.apply_chat_template(
            [{"role": "user", "content": prompt}], tokenize=False, add_generation_prompt=True
        )
        if tokenizer.chat_template
        else prompt
        for prompt in prompts
    ]
    letters = tokenizer.convert_tokens_to_ids(list(LETTER_OPTIONS))
    requests = [
        Request("c", "t", str(k), "r", "generate", prompt, "v", Key(), max_new_tokens=NEW_TOKENS)
        for k, prompt in enumerate(prompts)
    ]

    def encoded(some: Sequence[str]) -> Any:
        return tokenizer(list(some), return_tensors="pt", padding=True).to(network.device)

    def letters_of(some: Sequence[str]) -> np.ndarray:
        with torch.inference_mode():
            logits = network(**encoded(some)).logits[:, -1].float().log_softmax(-1)
        values: np.ndarray = logits[:, letters].cpu().numpy()
        return values

    def replies_of(some: Sequence[str]) -> list[str]:
        batch = encoded(some)
        with torch.inference_mode():
            written = network.generate(**batch, do_sample=False, max_new_tokens=NEW_TOKENS)
        replies: list[str] = tokenizer.batch_decode(
            written[:, batch["input_ids"].shape[1] :], skip_special_tokens=True
        )
        return replies

    def in_batches(call: Callable[[Sequence[str]], Any], size: int) -> list[Any]:
        parts = [call(turns[k : k + size]) for k in range(0, len(turns), size)]
        return [row for part in parts for row in part]

    ways: list[tuple[str, str, Callable[[], Any]]] = [
        ("letters", "bias-workbench", lambda: scorer.choose(prompts, LETTER_OPTIONS).argmax(1)),
        ("letters", "one prompt at a time", lambda: np.argmax(in_batches(letters_of, 1), 1)),
        ("letters", "batches of 32", lambda: np.argmax(in_batches(letters_of, 32), 1)),
        ("replies", "bias-workbench", lambda: [one.response for one in scorer.answer(requests)]),
        ("replies", "one prompt at a time", lambda: in_batches(replies_of, 1)),
        ("replies", "generate, batches of 32", lambda: in_batches(replies_of, 32)),
    ]
    rows, first = [], {}
    for task, name, ask in ways:
        in_batches(letters_of, 32)  # warms up the device
        reset_peak(device)
        answers: list[Any] = []
        seconds = timed(lambda ask=ask, answers=answers: answers.extend(ask()), device)
        expected = first.setdefault(task, answers)
        same = np.mean([one == other for one, other in zip(answers, expected, strict=True)])
        rows.append((task, name, f"{n / seconds:,.1f}", f"{peak(device):,.0f}", f"{same:.0%}"))
    print(f"\n{n} prompts of 200 characters, 150 shared; greedy replies of {NEW_TOKENS} tokens")
    print_table(("task", "asked by", "prompts per second", "peak MiB", "same answers"), rows)


def texts(n: int, length: int) -> list[str]:
    """Make random texts of known characters."""
    rng = np.random.default_rng(0)
    return ["".join(rng.choice(LETTERS, length)) for _ in range(n)]


def timed(call: Callable[[], Any], device: str) -> float:
    """Run `call` and return its seconds."""
    begin = time.perf_counter()
    call()
    if device != "cpu":
        torch.cuda.synchronize(device)
    return time.perf_counter() - begin


def reset_peak(device: str) -> None:
    """Begin to measure the peak of memory anew."""
    if device != "cpu":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)


def peak(device: str) -> float:
    """Return the peak of memory in MiB; on the CPU, what the process holds now."""
    if device == "cpu":
        return float(psutil.Process().memory_info().rss) / MEBIBYTE
    return float(torch.cuda.max_memory_allocated(device)) / MEBIBYTE


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a Markdown table."""
    print("| " + " | ".join(header) + " |")
    print("|" + "---|" * len(header))
    for row in rows:
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
