"""Loading a checkpoint from the Hub, a folder or a GGUF file, and choosing its device and dtype, once."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

import psutil
import torch
from tqdm.auto import tqdm
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_MASKED_LM_MAPPING,
    AutoConfig,
    AutoTokenizer,
    PreTrainedTokenizerFast,
)
from transformers import modeling_gguf_pytorch_utils as gguf_reading
from transformers.models.auto.tokenization_auto import get_tokenizer_config
from transformers.utils import logging as transformers_logging

from bench.core.errors import BadInput, expected
from bench.scorers.base import Model, TooLong, digest
from bench.scorers.generation_options import GenerationOptions
from bench.scorers.local.location import Location, base_of, check_files

transformers_logging.set_verbosity_error()
transformers_logging.disable_progress_bar()
# The bar of a GGUF file does not listen to that; disable=None draws it on a terminal alone.
gguf_reading.tqdm = partial(tqdm, disable=None)

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
# How the end of an architecture's name tells what the checkpoint can do.
KINDS = {
    "ForSequenceClassification": "classifier",
    "ForMultipleChoice": "multiple choice",
    "ForMaskedLM": "masked",
    "ForPreTraining": "masked",
    "ForCausalLM": "causal",
    "LMHeadModel": "causal",
    "ForConditionalGeneration": "causal",
}


@dataclass(frozen=True)
class Placement:
    """Where a model runs, in which precision, and how many tokens a batch may hold, padding included.

    `tree_tokens` is the same for texts that are computed as a tree, where every token meets every other. A model that is
    `spread` lies on all devices there are, as accelerate deals it out; `device` is where its texts go in.
    """

    device: torch.device
    dtype: torch.dtype
    batch_tokens: int
    tree_tokens: int
    spread: bool = False

    def describe(self) -> dict[str, Any]:
        return {
            "device": "auto" if self.spread else str(self.device),
            "dtype": str(self.dtype).removeprefix("torch."),
            "batch_tokens": self.batch_tokens,
        }


def placement(device: str | None, dtype: str | None, batch_tokens: int | None) -> Placement:
    """The accelerator where there is one, bfloat16 there and float32 on the CPU, unless told otherwise.

    Raises:
        BadInput: an unknown dtype, a device that is not there, or a batch that holds nothing.
    """
    spread = device == "auto"
    if device is None or spread:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        where = torch.device(device)
    except RuntimeError:
        raise BadInput(
            f"--device {device!r}: not a device; allowed: cpu, cuda, cuda:N, auto"
        ) from None
    try:
        torch.empty(1, device=where)
    except (RuntimeError, AssertionError):  # the latter where torch was built without CUDA
        raise BadInput(f"--device {device}: is not available here; use --device cpu") from None
    if dtype is not None and dtype not in DTYPES:
        raise BadInput("--dtype: " + expected(dtype, DTYPES, "dtype"))
    if batch_tokens is not None and batch_tokens < 1:
        raise BadInput(f"--batch-tokens {batch_tokens}: a batch holds at least one token")
    on_cpu = where.type == "cpu"
    precision = DTYPES[dtype] if dtype else (torch.float32 if on_cpu else torch.bfloat16)
    # On a CPU more tokens at a time are no faster; an accelerator wants many, while every one meets every other.
    size, tree = (4096, 512) if on_cpu else (32768, 4096)
    return Placement(
        where, precision, batch_tokens or size, min(tree, batch_tokens or tree), spread
    )


def free_memory(device: torch.device) -> float:
    """Bytes that are free for tensors on `device`; infinite where nobody can say."""
    if device.type == "cpu":
        return float(psutil.virtual_memory().available)
    if device.type != "cuda":
        return math.inf
    # What torch keeps for itself and does not use is free, too.
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return float(torch.cuda.mem_get_info(device)[0] + kept)


@contextmanager
def threads(n: int) -> Iterator[None]:
    """So many threads for torch, and as many as before afterwards.

    Small models are faster on one, and the same on every machine with the same processor.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def load(
    model: str,
    files: Location,
    where: Placement,
    trust_remote_code: bool,
    label_names: Sequence[str] = (),
    generation: GenerationOptions | None = None,
) -> Model:
    """The causal, masked, multiple-choice or classifying model in a Hub id, a folder, or a `.gguf` file.

    Args:
        files: where those of `model` lie.

    Raises:
        BadInput: it cannot be found or read, or is of a kind that answers none of the four verbs; or `label_names` are
            given to what is no classifier, or options of `generation` to what writes no replies.
    """
    generation = generation or GenerationOptions()
    base = base_of(model, files)
    path, options = (base or files).path, files.options | {"trust_remote_code": trust_remote_code}
    own_tokenizer = base and (Path(files.path) / "tokenizer_config.json").is_file()
    try:
        config = AutoConfig.from_pretrained(path, **options)
        tokenizer = tokenizer_of(files.path if own_tokenizer else path, options)
        check_files(model, path, config, options)
    except BadInput:
        raise
    except Exception as error:  # what others have written can be wrong in any way
        raise BadInput(why_not(model, error)) from error
    kind = _kind(model, config)
    if label_names and kind != "classifier":
        raise BadInput(f"model {model}: has no labels to name; leave out --label-names")
    if kind != "causal":
        generation.refuse(
            generation.changed(), f"model {model} is a {kind} model and writes no replies"
        )
    network = _network(model, path, kind, where, options)
    if base:
        _adapt(model, network, files)
    identity = {
        **files.identity,
        **({"base": base.identity} if base else {}),
        **({"trust_remote_code": True} if trust_remote_code else {}),
    }
    if kind == "causal":
        from bench.scorers.local.causal import Causal

        return Causal(network, tokenizer, where, identity, generation)
    if kind == "masked":
        from bench.scorers.local.masked import Masked

        return Masked(network, tokenizer, where, identity)
    if kind == "multiple choice":
        from bench.scorers.local.multiple_choice import MultipleChoice

        return MultipleChoice(network, tokenizer, where, identity)
    from bench.scorers.local.classifier import Classifier

    return Classifier(network, tokenizer, where, identity, label_names)


def tokenizer_identity(tokenizer: Any) -> dict[str, Any]:
    """What `run.json` keeps of a tokenizer."""
    template = getattr(tokenizer, "chat_template", None)
    return {
        "tokenizer_hash": digest(sorted(tokenizer.get_vocab().items())),
        "chat_template_hash": digest(template) if template else None,
        "prompted_as": "chat turn" if template else "bare text (the model has no chat template)",
        # Without a first special token the first token of a text has no likelihood.
        "adds_bos": bool(tokenizer("a")["input_ids"][:1] == [tokenizer.bos_token_id])
        if tokenizer.bos_token_id is not None
        else False,
    }


def special_behind(tokenizer: Any) -> int:
    """How many special tokens the tokenizer puts behind a text, as BERT's does with [SEP]."""
    special = tokenizer("a", return_special_tokens_mask=True)["special_tokens_mask"]
    return len(list(takewhile(bool, reversed(special))))


def check_lengths(
    model: str, lengths: Sequence[int], network: Any, what: str, at_most: int | None = None
) -> None:
    """Refuse what is longer than the positions that the model knows, or `at_most`: nothing is cut in silence.

    Args:
        lengths: tokens of each text of the call.
        what: what has so many tokens, such as `the text`.

    Raises:
        TooLong: a text is too long.
    """
    limit = min(filter(None, (_positions(network), at_most)), default=None)
    if limit is None or max(lengths, default=0) <= limit:
        return
    too_long = {i: length for i, length in enumerate(lengths) if length > limit}
    first = min(too_long)
    raise TooLong(
        f"{model}: reads at most {limit} tokens, and {what} has {too_long[first]} (number {first + 1} of {len(lengths)}); "
        "shorten it",
        {
            i: f"too long for the model: it reads {limit} tokens, {what} has {n}"
            for i, n in too_long.items()
        },
    )


def _positions(network: Any) -> int | None:
    """How many tokens the network has positions for, None where there is no bound.

    RoBERTa and its kin number them from behind the padding token's id, so that the first ones of the table are not used.
    """
    known: int | None = getattr(network.config.get_text_config(), "max_position_embeddings", None)
    table = getattr(getattr(network.base_model, "embeddings", None), "position_embeddings", None)
    unused = getattr(table, "padding_idx", None)
    return known if known is None or unused is None else known - unused - 1


def together(lengths: Sequence[int], budget: int) -> int:
    """How many of the first texts a batch holds, so that the longest of them times their number stays within `budget` tokens."""
    longest = 0
    for n, length in enumerate(lengths):
        longest = max(longest, length)
        if n and longest * (n + 1) > budget:
            return n
    return len(lengths)


def batches(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Positions grouped longest first, so that a batch of the longest times its size stays within `budget` tokens."""
    batch: list[int] = []
    for i in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        if batch and lengths[batch[0]] * (len(batch) + 1) > budget:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def _adapt(model: str, network: Any, files: Location) -> None:
    """Put the adapter in `files` on its base model.

    Raises:
        BadInput: it does not fit.
    """
    try:
        loading = network.load_adapter(files.path, use_safetensors=True)
    except Exception as error:
        raise BadInput(f"{model}: the adapter does not fit its base model ({error})") from error
    wrong = sorted(
        [*getattr(loading, "missing_keys", ()), *getattr(loading, "unexpected_keys", ())]
    )
    if wrong:
        raise BadInput(f"{model}: the adapter does not fit its base model (weights {wrong[0]})")
    network.eval()


def _kind(model: str, config: Any) -> str:
    names = getattr(config, "architectures", None) or []
    for name in names:
        for ending, kind in KINDS.items():
            if name.endswith(ending):
                return kind
    # A GGUF file names no architecture class.
    if not names and type(config) in set(MODEL_FOR_CAUSAL_LM_MAPPING) - set(
        MODEL_FOR_MASKED_LM_MAPPING
    ):
        return "causal"
    raise BadInput(
        f"{model}: its architecture {', '.join(names) or config.model_type} is not one the workbench can ask; "
        f"it asks {', '.join('*' + ending for ending in KINDS)}"
    )


def tokenizer_of(path: str, options: dict[str, Any]) -> Any:
    """The tokenizer of a `Location`."""
    declared = {} if "gguf_file" in options else get_tokenizer_config(path)
    # Where a checkpoint says that its tokenizer.json is all, that is believed: for some architectures (Qwen2's is one)
    # AutoTokenizer takes the family's own splitting instead, and leaves nothing of a text in another vocabulary.
    whole = declared.get("tokenizer_class") in ("TokenizersBackend", "PreTrainedTokenizerFast")
    factory = PreTrainedTokenizerFast if whole and "auto_map" not in declared else AutoTokenizer
    return factory.from_pretrained(path, **options)


def _network(model: str, path: str, kind: str, where: Placement, options: dict[str, Any]) -> Any:
    import transformers

    factory = {
        "causal": transformers.AutoModelForCausalLM,
        "masked": transformers.AutoModelForMaskedLM,
        "classifier": transformers.AutoModelForSequenceClassification,
        "multiple choice": transformers.AutoModelForMultipleChoice,
    }[kind]
    # Pickled weights can run code when they are loaded; safetensors and GGUF cannot. Nor is any fetched from the Hub to
    # compute with quantized ones.
    weights: dict[str, Any] = {"use_safetensors": True}
    if "gguf_file" in options:
        whole = getattr(transformers, "GgufConfig", None)
        weights = {"quantization_config": whole(dequantize=True)} if whole else {}
    if where.spread:
        weights["device_map"] = "auto"
    try:
        network, loading = factory.from_pretrained(
            path, dtype=where.dtype, output_loading_info=True, **weights, **options
        )
    except Exception as error:
        raise BadInput(why_not(model, error)) from error
    if loading["missing_keys"]:
        # transformers fills them with random numbers: a discriminator's or an encoder-decoder's are not what is asked here.
        raise BadInput(
            f"{model}: lacks the weights {', '.join(sorted(loading['missing_keys'])[:3])} of a {kind} model, "
            f"which would be random; the workbench cannot ask it"
        )
    # One that is spread stays where accelerate has put its parts, and takes texts on the first device.
    return (network if where.spread else network.to(where.device)).eval()


def why_not(model: str, error: Exception) -> str:
    """What to say where `model` could not be loaded."""
    first = (str(error).strip().splitlines() or [""])[0][:200]
    if not first or isinstance(error, LookupError):  # whose message is the bare key
        first = f"{type(error).__name__} {first}".strip()
    return f"{model}: cannot be loaded as a model ({first})"
