"""What local models share: tokenizers, limits of length, and the frame of `LocalModel`."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

import numpy as np
import torch
from transformers import AutoTokenizer, BatchEncoding, PreTrainedTokenizerFast
from transformers.models.auto.tokenization_auto import get_tokenizer_config
from transformers.quantizers import AutoHfQuantizer
from transformers.utils import logging as transformers_logging

from bench.core.errors import BadInput
from bench.scorers.base import Model, Tally, TooLong, digest
from bench.scorers.local.device import Placement, batches
from bench.tasks.request import Request

transformers_logging.set_verbosity_error()
transformers_logging.disable_progress_bar()
for backend in ("bitsandbytes", "torchao"):
    # These warn at every layer, or of parts for devices that are not here.
    logging.getLogger(backend).setLevel(logging.ERROR)


# What can be done with a checkpoint that transformers cannot load here.
SERVE = "serve it, with vLLM for example, and give openai:NAME@URL"


# What to do about numbers that are not finite, by the dtype at hand.
REMEDIES = {
    torch.float16: "float16 overflows on this model; use --dtype bfloat16 or float32",
    torch.bfloat16: "bfloat16 may be too coarse for this model; use --dtype float32",
}


class LocalModel(Model):
    """A network with its tokenizer on this machine."""

    kind: str
    # Why texts are asked one at a time, for `run.json`.
    batches = ""

    def __init__(
        self, network: Any, tokenizer: Any, where: Placement, identity: dict[str, Any]
    ) -> None:
        self.network, self.tokenizer = network, tokenizer
        self.where, self.identity = where, identity
        self.id = str(identity["id"])  # for messages
        self.tally = Tally()
        self.tokenizer_identity = tokenizer_identity(tokenizer)
        self.remedy = REMEDIES.get(
            where.dtype, "its weights may be damaged; compare the files with the released ones"
        )

    def describe(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            **self.identity,
            **self.where.describe(),
            **self.tokenizer_identity,
            "parameters": self.network.num_parameters(),
            **({"batches": self.batches} if self.batches else {}),
        }

    def count_tokens(self, requests: Sequence[Request]) -> list[int]:
        """Count the tokens of each request as the model reads it."""
        rows = [
            (request.prompt, request.hypothesis) if request.verb == "classify" else (request.text,)
            for request in requests
        ]
        return [len(self.tokenizer(*row)["input_ids"]) for row in rows]

    def check_lengths(self, lengths: Sequence[int], text: str, at_most: int | None = None) -> None:
        """Raise TooLong for texts beyond the model's positions or `at_most`; nothing is cut.

        Args:
            lengths: tokens of each text of the call.
            text: how messages call them, such as `the text`.
        """
        limit = min(filter(None, (n_positions(self.network), at_most)), default=None)
        if limit is None or max(lengths, default=0) <= limit:
            return
        too_long = {i: length for i, length in enumerate(lengths) if length > limit}
        first = min(too_long)
        raise TooLong(
            f"{self.id}: reads at most {limit} tokens, and {text} has {too_long[first]} "
            f"(number {first + 1} of {len(lengths)}); shorten it",
            {
                i: f"too long for the model: it reads {limit} tokens, {text} has {n}"
                for i, n in too_long.items()
            },
        )

    def check_batches(self, ask: Callable[[Sequence[Any]], Any], texts: Sequence[Any]) -> None:
        """Ask one text at a time from now on, if a batch of `texts` gives other numbers.

        This happens without a pad token, for example, or with one that the model does not know.
        """
        tolerance = 1e-3 if self.where.dtype == torch.float32 else 0.1
        try:
            together = np.concatenate([np.ravel(row) for row in ask(texts)])
            alone = np.concatenate([np.ravel(ask([text])[0]) for text in texts])
            agree = np.allclose(together, alone, rtol=tolerance, atol=tolerance, equal_nan=True)
        except Exception:  # a model's own code can raise anything
            agree = False
        if not agree:
            self.where = replace(self.where, batch_tokens=1)
            self.batches = "one text at a time, because its numbers differ in a batch"
        self.tally = Tally()  # without the test

    def padded_batches(self, encoded: Mapping[str, Any]) -> Iterator[tuple[list[int], Any]]:
        """Yield positions of encoded texts of similar length, and their tensors on the device."""
        lengths = [len(ids) for ids in encoded["input_ids"]]
        self.tally.asked += sum(lengths)
        for numbers in batches(lengths, self.where.batch_tokens):
            rows = {name: [values[i] for i in numbers] for name, values in encoded.items()}
            if len(numbers) > 1:
                rows = self.tokenizer.pad(rows)
            batch = BatchEncoding(rows, tensor_type="pt").to(self.where.device)
            self.tally.computed += batch["input_ids"].numel()
            yield numbers, batch


def n_positions(network: Any) -> int | None:
    """Return how many tokens the network has positions for; None if there is no limit.

    RoBERTa and its relatives count positions from behind the padding token's id, so the first
    rows of their table are not used.
    """
    known: int | None = getattr(network.config.get_text_config(), "max_position_embeddings", None)
    table = getattr(getattr(network.base_model, "embeddings", None), "position_embeddings", None)
    unused = getattr(table, "padding_idx", None)
    if known is None or known < 0:  # XLNet has -1, because its positions are relative
        return None
    return known if unused is None else known - unused - 1


def tokenizer_of(path: str, options: dict[str, Any]) -> Any:
    """Load the tokenizer in a folder or a GGUF file."""
    declared = {} if "gguf_file" in options else get_tokenizer_config(path)
    # Where a checkpoint declares that its tokenizer.json is complete, that is used as it is: for
    # some architectures (such as Qwen2) AutoTokenizer takes the family's own splitting instead,
    # and leaves nothing of a text in another vocabulary.
    complete = declared.get("tokenizer_class") in ("TokenizersBackend", "PreTrainedTokenizerFast")
    factory = PreTrainedTokenizerFast if complete and "auto_map" not in declared else AutoTokenizer
    return factory.from_pretrained(path, **options)


def tokenizer_identity(tokenizer: Any) -> dict[str, Any]:
    """Return what `run.json` keeps of a tokenizer."""
    template, bos = getattr(tokenizer, "chat_template", None), tokenizer.bos_token_id
    return {
        "tokenizer_hash": digest(sorted(tokenizer.get_vocab().items())),
        "chat_template_hash": digest(template) if template else None,
        "prompted_as": "chat turn" if template else "bare text (the model has no chat template)",
        # Without a first special token, the first token of a text has no likelihood.
        "adds_bos": bos is not None and bool(tokenizer("a")["input_ids"][:1] == [bos]),
    }


def n_trailing_special_tokens(tokenizer: Any) -> int:
    """Count the special tokens that the tokenizer puts after a text, such as BERT's [SEP]."""
    special = tokenizer("a", return_special_tokens_mask=True)["special_tokens_mask"]
    return len(list(takewhile(bool, reversed(special))))


def quantization(model: str, config: Any) -> str:
    """Say how a checkpoint's weights are quantized, such as `gptq, 4 bits`; "" if they are not.

    Raises:
        BadInput: transformers does not know the method, and would take the numbers as they are.
    """
    text_config = config.get_text_config()
    values = getattr(config, "quantization_config", None) or getattr(
        text_config, "quantization_config", None
    )
    if not values:
        return ""
    method = str(values.get("quant_method", "bitsandbytes"))
    if not AutoHfQuantizer.supports_quant_method(values):
        raise BadInput(
            f"{model}: is quantized by {method}, which transformers cannot read; {SERVE}"
        )
    loaded = next((n for n in (4, 8) if values.get(f"load_in_{n}bit")), None)
    bits = values.get("bits", loaded)
    return f"{method}, {bits} bits" if bits else method


def explain_load_error(model: str, error: Exception, quantized: str = "") -> str:
    """Return the message for a model that could not be loaded.

    `quantized` says how its weights are quantized; see `quantization`.
    """
    first = (str(error).strip().splitlines() or [""])[0][:200]
    if not first or isinstance(error, LookupError):  # whose message is the bare key
        first = f"{type(error).__name__} {first}".strip()
    if quantized:
        what = f"its weights are quantized ({quantized}), which cannot be read here ({first})"
        return f"{model}: {what}; install what is missing, or {SERVE}"
    return f"{model}: cannot be loaded as a model ({first})"
