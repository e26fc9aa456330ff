"""How fast the workbench is: beside the loops of the benchmarks' authors, lm-eval and minicons, in one process, in turns.

Every work is done by all who can do it, one after the other, several times (a b c a b c), on the same loaded network; what
is compared are the seconds of the same turn. Beside the speed stand the tokens that went through the network, what share of
the machine's own speed at products of matrices that is, the memory it took, and whether the answers are the same.

found = measure(Setup("tiny:s"))              # rows: who did which work, and how fast
speed_findings.ratios(found)                  # how many times as fast, and how many times it is meant to be

What was measured on a real model is carried by the package (`carried`). It is made so, with the peers installed:

setup = Setup("HuggingFaceTB/SmolLM2-135M-Instruct", dtype="bfloat16", cbbq="./CBBQ/data")
carry(everything(setup, sizes=["qwen2:0.5b"]))
"""

import platform
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import torch
from transformers import AutoModelForCausalLM, Qwen2Config

from bench import data, scorers
from bench.analyses.speed_peers import Contestant, contestants, turn
from bench.analyses.speed_turns import in_turns
from bench.benchmarks import module
from bench.core.errors import BadInput, expected
from bench.core.files import atomic_write
from bench.core.progress import progress
from bench.metrics.speed_findings import ALONE, TOKENS, WORKS
from bench.run.results import short_name
from bench.scorers.local import checkpoint
from bench.scorers.local.causal import Causal
from bench.scorers.local.prefix_tree import Tree
from bench.tasks import prompts, settings
from bench.tasks.request import Request, Way

# How many times fewer tokens are left of CBBQ where what questions begin with in common stands once, as it is meant to be.
LEFT = 2.0
# Questions taken together from the files: neighbours share words, and a run asks them together too.
STRETCH = 64
# Words of a list, and along what the work grows with whose measures.
LISTS = (2, 3, 4, 6)
ALONG = {"items": ("nll", "letters"), "words": ("nll",), "parameters": ("nll",)}
# Published shapes of Qwen2.5, and a small one of ours: width, inner width, layers, heads, heads of keys and values.
SHAPES = {
    "mini": (256, 1024, 4, 4, 2),
    "0.5b": (896, 4864, 24, 14, 2),
    "1.5b": (1536, 8960, 28, 12, 2),
    "3b": (2048, 11008, 36, 16, 2),
    "7b": (3584, 18944, 28, 28, 4),
}
VOCABULARY = 151_936
CARRIED = data.SAMPLES / "speed.csv"
COUNTS = ["threads", "parameters", "at", "items", "tokens_asked", "tokens_computed", "tokens_read"]
COLUMNS = [
    "model",
    "device",
    "dtype",
    "threads",
    "parameters",
    "along",
    "at",
    "work",
    "who",
    "items",
    "seconds",
    "items_per_second",
    "times",
    "times_low",
    "times_high",
    "at_least",
    "tokens_asked",
    "tokens_computed",
    "tokens_read",
    "tokens_per_second",
    "matmul_gflops",
    "share_of_matmul",
    "peak_mib",
    "memory_times",
    "memory_at_least",
    "same",
    "agree",
    "note",
]
PACKAGES = ("torch", "transformers", "lm-eval", "minicons")


@dataclass(frozen=True)
class Setup:
    """What is measured, and how.

    Attributes:
        model: a causal language model, as the command takes it, or `qwen2:0.5b` with random weights.
        n: items of a work at most: sentences, questions, pairs of scenes, prompts.
        few: items for those who write a reply at a time.
        turns: how often everything is done.
        cap: tokens that are generated where the authors allow 512.
        threads: of torch.
        mcbe, cbbq: folders of data; the package's own samples if empty.
        name: what the model is called in the table.
    """

    model: str
    n: int = 96
    few: int = 8
    turns: int = 3
    cap: int = 32
    threads: int = 1
    device: str = ""
    dtype: str = ""
    mcbe: str = ""
    cbbq: str = ""
    name: str = ""

    def __post_init__(self) -> None:
        for name in ("n", "few", "turns", "cap", "threads"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} {getattr(self, name)}: has to be 1 at least")

    @cached_property
    def loaded(self) -> Causal:
        """The model, loaded once."""
        return load(self.model, self.device, self.dtype)

    @property
    def called(self) -> str:
        return self.name or short_name(self.model)

    def requests(self, work: str, n: int) -> list[Request]:
        """At most `n` items of a work."""
        if work == "letters":
            every = self.questions
            starts = data.spread_evenly(range(0, len(every), STRETCH), -(-n // STRETCH))
            return [one for start in starts for one in every[start : start + STRETCH]][:n]
        if work == "generate":
            return data.spread_evenly(
                [one for task in ("sc", "bs") for one in self._of("mcbe", task, self._instances)], n
            )
        return list(islice(self._of("mcbe", {"nll": "pc"}.get(work, work), self._instances), n))

    def lists(self, n: int, words: int) -> list[Request]:
        """The sentences of `n` lists of so many words; lists that have fewer get others of their category."""
        found = []
        for item in islice((item for item in self._instances if len(item.words) > 1), n):
            others = [
                word
                for one in self._instances
                if one.category == item.category
                for word in one.words
            ]
            several = tuple(dict.fromkeys([*item.words, *others]))[:words]
            found.append(replace(item, words=several))
        return list(self._of("mcbe", "pc", found))

    @cached_property
    def questions(self) -> list[Request]:
        """All questions of CBBQ, in the order of the files."""
        items = data.load(data.find("cbbq", self.cbbq or data.SAMPLES / "cbbq"))
        return [
            one for task in module("tasks", "cbbq").TASKS for one in self._of("cbbq", task, items)
        ]

    @cached_property
    def _instances(self) -> list[Any]:
        return data.load(data.find("mcbe", self.mcbe or data.SAMPLES / "mcbe"))

    def _of(self, benchmark: str, task: str, items: Sequence[Any]) -> Iterator[Request]:
        verb = {"pc": "nll", "sc": "generate", "bs": "generate"}.get(task, "choose")
        way = Way(verb, "letters" if verb == "choose" else "text")
        # Behind a first special token, as lm-eval asks about texts.
        chosen = settings(benchmark, {"bos": "forced"} if benchmark == "mcbe" else {}, "robust")
        found: Iterator[Request] = module("tasks", benchmark).requests(
            items, prompts.load(benchmark), task, way, chosen, 0
        )
        return found


def load(model: str, device: str = "", dtype: str = "", like: Causal | None = None) -> Causal:
    """A causal language model; `qwen2:0.5b` is one of that published shape with random weights.

    Args:
        like: whose tokenizer random weights are asked with; that of `tiny:s` if None.

    Raises:
        BadInput: no such model or shape, or not a causal one.
    """
    kind, _, size = model.partition(":")
    if kind == "qwen2":
        return _random(
            size, checkpoint.placement(device or None, dtype or None, None), like or load("tiny:s")
        )
    scorer: Any = scorers.load(model, device or None, dtype or None)
    found = getattr(scorer, "causal", scorer)
    if not isinstance(found, Causal):
        raise BadInput(f"model {model}: is no causal language model; only those are measured")
    return found


def _random(size: str, where: checkpoint.Placement, like: Causal) -> Causal:
    if size not in SHAPES:
        raise BadInput(f"model qwen2:{size}: " + expected(size, SHAPES, "shape"))
    width, inner, layers, heads, shared = SHAPES[size]
    ends = {
        "eos_token_id": like.tokenizer.eos_token_id,
        "pad_token_id": like.tokenizer.pad_token_id,
    }
    shape = Qwen2Config(
        vocab_size=max(VOCABULARY, len(like.tokenizer)),
        hidden_size=width,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=shared,
        max_position_embeddings=32768,
        tie_word_embeddings=size != "7b",
        bos_token_id=None,
        **ends,
    )
    with torch.random.fork_rng(devices=[]), torch.device(where.device):
        torch.manual_seed(0)
        network = AutoModelForCausalLM.from_config(shape, dtype=where.dtype).eval()
    return Causal(network, like.tokenizer, where, {"id": f"qwen2:{size}"})


def everything(setup: Setup, sizes: Sequence[str] = ()) -> pd.DataFrame:
    """`measure`, `sharing` and `growth` in one table."""
    return pd.concat(
        [measure(setup), sharing(setup), growth(setup, sizes=sizes)], ignore_index=True
    )


def measure(setup: Setup, works: Sequence[str] = tuple(WORKS)) -> pd.DataFrame:
    """A row for each who did a work: items and tokens a second, tokens, memory, answers, and how many times as fast ours is.

    Raises:
        BadInput: an unknown work, no causal model, or no such data.
    """
    for work in works:
        if work not in WORKS:
            raise BadInput(expected(work, WORKS, "work"))
    rows = []
    with progress(len(works), "measuring", "works") as bar:
        for work in works:
            asked, whom = setup.requests(work, setup.n), contestants(work, setup.cap)
            rows += _measured(setup, setup.loaded, work, asked, whom)
            bar.advance()
    return _table(rows)


class Step(NamedTuple):
    """A point of a growth: along what, where on it, and what is measured there."""

    along: str
    at: int
    work: str
    requests: list[Request]
    model: str = ""


def growth(
    setup: Setup, along: Sequence[str] = tuple(ALONG), sizes: Sequence[str] = ()
) -> pd.DataFrame:
    """The same for more items (n/4, n/2, n), longer lists of words (2, 3, 4, 6), and larger models, without who generates.

    Column `along` says which, `at` where on it a row stands.

    Args:
        sizes: the other models; those of random weights are asked with the first one's tokenizer.

    Raises:
        BadInput: an unknown growth, or as `measure`.
    """
    steps = []
    for name in along:
        if name not in ALONG:
            raise BadInput(expected(name, ALONG, "growth"))
        for work in ALONG[name]:
            if name == "items":
                parts = (setup.requests(work, max(1, setup.n // part)) for part in (4, 2, 1))
                steps += [Step(name, len(part), work, part) for part in parts]
            elif name == "words":
                many = max(1, setup.n // max(LISTS))
                steps += [Step(name, words, work, setup.lists(many, words)) for words in LISTS]
            else:
                asked = setup.requests(work, setup.n)
                steps += [Step(name, 0, work, asked, model) for model in (setup.model, *sizes)]
    rows = []
    with progress(len(steps), "growth", "steps") as bar:
        for step in steps:
            here = (
                setup
                if step.model in ("", setup.model)
                else replace(setup, model=step.model, name="")
            )
            model = (
                setup.loaded
                if here is setup
                else load(step.model, setup.device, setup.dtype, setup.loaded)
            )
            whom = [one for one in contestants(step.work, setup.cap) if not one.few]
            found = _measured(here, model, step.work, step.requests, whom)
            rows += [
                {**row, "along": step.along, "at": step.at or row["parameters"]} for row in found
            ]
            bar.advance()
    return _table(rows)


def sharing(setup: Setup) -> pd.DataFrame:
    """Tokens of all questions of CBBQ, and those that are left where what they begin with in common stands once.

    Counted, not timed; so many are left where all are asked in one call.
    """
    model = setup.loaded
    rows = [turn(model.tokenizer, one.turns)[1] for one in setup.questions]
    asked, left = sum(map(len, rows)), len(Tree(rows))
    told = {"times": asked / left, "at_least": LEFT, "note": "counted, not timed"}
    counts = {"items": len(rows), "tokens_asked": asked, "tokens_computed": left}
    return _table([{**_about(setup, model), "work": TOKENS, "who": ALONE, **counts, **told}])


def carry(found: pd.DataFrame, path: str | Path = CARRIED) -> None:
    """Write measurements for the package to carry, with a first line that says on what machine and with what they were made.

    Call it where they were measured.
    """
    model, device, dtype, many = found[["model", "device", "dtype", "threads"]].iloc[0]
    machine = torch.cuda.get_device_name(device) if str(device).startswith("cuda") else _processor()
    known = ", ".join(f"{name} {version(name)}" for name in PACKAGES if _installed(name))
    head = (
        f"# Measured by bench.analyses.speed and kept by bench.analyses.speed.carry: {model} in {dtype} on {machine}, "
        f"{many} thread{'' if many == 1 else 's'}; {known}.\n"
    )
    rows = found.to_csv(index=False, lineterminator="\n", float_format="%.5g")
    atomic_write(Path(path), head + rows)


def carried(path: str | Path = CARRIED) -> pd.DataFrame:
    """The measurements that the package carries, as `everything` gives them."""
    texts = dict.fromkeys(["along", "seconds", "note"], str)
    read: Any = pd.read_csv(path, comment="#", dtype=texts).to_dict("records")
    return _table(read)


def origin(path: str | Path = CARRIED) -> str:
    """On what machine, with what model and versions, the measurements of `carried` were made."""
    with Path(path).open(encoding="utf-8") as lines:
        return next(lines).partition(": ")[2].strip()


def _measured(
    setup: Setup, model: Causal, work: str, requests: Sequence[Request], whom: Sequence[Contestant]
) -> list[dict[str, Any]]:
    rows = in_turns(
        model, work, requests, whom, few=setup.few, turns=setup.turns, use_threads=setup.threads
    )
    return [{**_about(setup, model), **row} for row in rows]


def _about(setup: Setup, model: Causal) -> dict[str, Any]:
    """Whose row it is."""
    return {
        "model": setup.called,
        "device": str(model.where.device),
        "dtype": str(model.network.dtype).removeprefix("torch."),
        "threads": setup.threads,
        "parameters": model.network.num_parameters(),
    }


def _table(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Rows with every column; counts stay whole numbers where some are missing."""
    table = pd.DataFrame(rows, columns=COLUMNS)
    for name in ("along", "seconds", "note"):
        table[name] = ["" if value != value else str(value) for value in table[name]]
    for name in COUNTS:
        whole = [int(value) if value == value else value for value in table[name]]
        table[name] = pd.Series(whole, dtype=object)
    return table


def _processor() -> str:
    """The processor's name, as Linux tells it, or what Python knows."""
    with suppress(OSError):
        found = re.search(
            r"^model name\s*: *(.+)$", Path("/proc/cpuinfo").read_text("utf-8"), re.MULTILINE
        )
        if found:
            return found[1].strip()
    return platform.processor() or platform.machine()


def _installed(package: str) -> bool:
    with suppress(PackageNotFoundError):
        return bool(version(package))
    return False
