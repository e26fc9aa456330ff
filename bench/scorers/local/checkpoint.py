"""Tokenizers and limits of length of local models, and their base class `LocalModel`."""

import copy
import logging
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import safe_open
from tokenizers import Tokenizer
from transformers import AutoTokenizer, PreTrainedTokenizerFast
from transformers.models.auto.tokenization_auto import get_tokenizer_config
from transformers.quantizers import AutoHfQuantizer
from transformers.utils import is_protobuf_available, is_sentencepiece_available
from transformers.utils import logging as transformers_logging

from bench.config import Generation
from bench.core.errors import BadInput
from bench.scorers.base import Model, Tally, Unanswerable, digest
from bench.scorers.local.device import Placement
from bench.scorers.local.hub import WEIGHTS, Location, shard_names

transformers_logging.set_verbosity_error()
transformers_logging.disable_progress_bar()
for backend in ("bitsandbytes", "torchao"):
    # These warn about every layer, or about missing devices.
    logging.getLogger(backend).setLevel(logging.ERROR)

# The remedy for a checkpoint that transformers cannot load here.
SERVE = "serve it, with vLLM for example, and give openai:NAME@URL"
# Tokenizers that put a token before a text by default; transformers 5 leaves it out.
WITH_FIRST_TOKEN = ("LlamaTokenizer", "CodeLlamaTokenizer", "GemmaTokenizer")
# The number formats of weights that are not quantized.
FLOATS = ("F64", "F32", "F16", "BF16")
# Texts that different tokenizers split differently: digits, blanks, line breaks, punctuation, case
# and variants of letters.
LINES = (
    "In 2024, 12345 people paid $3.50 for 7 books, didn't they?",
    "  two  blanks,   three, a tab\tand\n\none  line break \r\n 4\n\n5\n  678 ",
    "他有20本书，共1,250元。\n\n“真的吗？”她问……  第 3 天\n\n\n4 个人",
    "The Nurse's CAFÉ isn't naïve; \u212be\u0301 \ufb01 ＡＢＣ１２３，：；（一）🙂",
    "def f(x_1): return {'a': x_1**2}  # 注释",
)
# The remedy for numbers that are not finite, by dtype.
REMEDIES = {
    torch.float16: "float16 overflows on this model; use --dtype bfloat16 or float32",
    torch.bfloat16: "bfloat16 may be too coarse for this model; use --dtype float32",
}


class Pretrained(NamedTuple):
    """A checkpoint that is loaded."""

    network: Any
    tokenizer: Any
    where: Placement
    identity: dict[str, Any]  # its name, its revision and so on, for `run.json`


class LocalModel(Model):
    """A network with its tokenizer on this machine."""

    kind: str
    # The reason for batches of one text, for `run.json`.
    batches = ""

    def __init__(self, pretrained: Pretrained) -> None:
        self.network, self.tokenizer, self.where, self.identity = pretrained
        self.id = str(self.identity["id"])  # for messages
        self.tally = Tally()
        template = getattr(self.tokenizer, "chat_template", None)
        # Without a first special token, the first token of a text has no likelihood. It need not be
        # the bos_token: for example, it can be [CLS], or [gMASK] and <sop>.
        self.adds_bos = _special_tokens_mask(self.tokenizer)[:1] == [1]
        self.of_tokenizer = {
            "tokenizer_hash": digest(sorted(self.tokenizer.get_vocab().items())),
            "chat_template_hash": digest(template) if template else None,
            "prompted_as": "chat turn"
            if template
            else "bare text (the model has no chat template)",
            "adds_bos": self.adds_bos,
        }
        self.remedy = REMEDIES.get(
            self.where.dtype, "its weights may be damaged; compare the files with the released ones"
        )
        self._n_embeddings = math.inf
        with suppress(NotImplementedError):  # a model's own code need not name its embeddings
            table = self.network.get_input_embeddings()
            self._n_embeddings = getattr(table, "num_embeddings", math.inf)
        self.require_embeddings(self.tokenizer("a")["input_ids"])
        self.longest = n_positions(self.network) or math.inf

    def describe(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            **self.identity,
            **self.where.describe(),
            **self.of_tokenizer,
            "parameters": self.network.num_parameters(),
            **({"batches": self.batches} if self.batches else {}),
        }

    def again(self, generation: Generation) -> Model:
        other = copy.copy(self)
        other.tally = Tally()
        other.follow(generation)
        return other

    def follow(self, generation: Generation) -> None:
        """Generate replies by these options; refuse them if the model cannot follow them."""
        generation.refuse(generation.changed(), f"model {self.id} writes no replies")

    def check_texts(
        self, texts: Iterable[Collection[int]], lengths: Sequence[int], name: str = "the text"
    ) -> None:
        """Raise Unanswerable for texts with a token that the network cannot read, or too long ones.

        Args:
            lengths: of the texts, with what follows them.
            name: of such a text, for messages.
        """
        Unanswerable.check(self.id, list(map(self._without_embedding, texts)))
        problem = f"too long for the model: it reads {self.longest} tokens, {name} has "
        Unanswerable.check(self.id, [f"{problem}{n}" * (n > self.longest) for n in lengths])

    def require_embeddings(self, ids: Sequence[int]) -> None:
        """Refuse the model if it cannot read these tokens, which it needs for every request."""
        if problem := self._without_embedding(ids):
            raise BadInput(f"{self.id}: {problem}; give the tokenizer that it was trained with")

    def _without_embedding(self, ids: Collection[int]) -> str:
        token = max(ids, default=0)
        if token < self._n_embeddings:
            return ""
        named = f"the token {self.tokenizer.decode([token])!r} (number {token})"
        return f"{named} is not among the {self._n_embeddings} that the network reads"


def n_positions(network: Any) -> int | None:
    """Return the number of positions of a network; None if there is no limit."""
    n: int | None = getattr(network.config.get_text_config(), "max_position_embeddings", None)
    if n is None or n < 0:  # XLNet has -1, because its positions are relative
        return None
    # RoBERTa and its relatives count positions from behind the padding token's id.
    table = getattr(getattr(network.base_model, "embeddings", None), "position_embeddings", None)
    padding = getattr(table, "padding_idx", None)
    return n if padding is None else n - padding - 1


def tokenizer_of(path: str, options: dict[str, Any]) -> tuple[Any, str]:
    """Load the tokenizer in a folder, and return its description.

    Some classes of transformers ignore parts of tokenizer.json, for example the rules for splitting
    a text. We take the parts of this file, because the model was trained on its tokens.
    """
    declared = get_tokenizer_config(path)
    own_code = "auto_map" in declared
    # These classes mean that tokenizer.json is complete without a class of the model's family.
    complete = declared.get("tokenizer_class") in ("TokenizersBackend", "PreTrainedTokenizerFast")
    factory = PreTrainedTokenizerFast if complete and not own_code else AutoTokenizer
    file = Path(path) / "tokenizer.json"
    try:
        tokenizer = factory.from_pretrained(path, **options)
    except Exception as error:
        pieces = [*Path(path).glob("*.model"), *Path(path).glob("*.spm")]
        # Other files of this name, for example of Llama 3, are text.
        is_binary = any(name.read_bytes()[:1] == b"\n" for name in pieces)
        can_read = is_sentencepiece_available() and is_protobuf_available()
        if is_binary and not file.is_file() and not can_read:
            raise BadInput(
                f"{path}: its tokenizer is a SentencePiece model without tokenizer.json, for which "
                "two packages must be installed (`pip install sentencepiece protobuf`); a "
                "checkpoint with tokenizer.json needs no package"
            ) from error
        raise
    kind = type(tokenizer).__name__
    if own_code and options.get("trust_remote_code"):
        return tokenizer, f"{kind}, code that comes with the model"
    if not file.is_file():
        if kind in WITH_FIRST_TOKEN and "add_bos_token" not in declared:
            tokenizer.add_bos_token = True
        return tokenizer, f"{kind} (the model has no tokenizer.json)"
    reference = Tokenizer.from_file(str(file))
    reference.no_truncation()
    reference.no_padding()
    differs = not _agree(tokenizer, reference)
    if backend := getattr(tokenizer, "backend_tokenizer", None):
        for part in ("normalizer", "pre_tokenizer", "model", "decoder", "post_processor"):
            setattr(backend, part, getattr(reference, part))
    if not _agree(tokenizer, reference):
        raise BadInput(
            f"{file}: the class {kind} makes other tokens than this file; name "
            "PreTrainedTokenizerFast as tokenizer_class in tokenizer_config.json"
        )
    return tokenizer, "tokenizer.json" + f", from which the class {kind} differs" * differs


def _agree(tokenizer: Any, reference: Tokenizer) -> bool:
    """Return whether both make the same tokens of `LINES`, and put the same ones around them."""
    texts = [(line, None) for line in LINES] + list(pairwise(LINES))
    return all(
        tokenizer(first, second, add_special_tokens=special)["input_ids"]
        == reference.encode(first, second, add_special_tokens=special).ids
        for first, second in texts
        for special in (False, True)
    )


def n_trailing_special_tokens(tokenizer: Any) -> int:
    """Count the special tokens that the tokenizer puts after a text, for example BERT's [SEP]."""
    return len(list(takewhile(bool, reversed(_special_tokens_mask(tokenizer)))))


def _special_tokens_mask(tokenizer: Any) -> list[int]:
    """Return 1 for each token that the tokenizer adds to a text of one letter, 0 for the letter."""
    return tokenizer("a", return_special_tokens_mask=True)["special_tokens_mask"]


def quantization(model: str, files: Location, config: Any) -> str:
    """Return the quantization of a checkpoint's weights, for example `gptq, 4 bits`, or ""."""
    configs = (config, config.get_text_config())
    named = (getattr(c, "quantization_config", None) for c in configs)
    values: Mapping[str, Any] = next(filter(None, named), {})
    loaded = next((n for n in (4, 8) if values.get(f"load_in_{n}bit")), None)
    method = str(values.get("quant_method", "bitsandbytes" if loaded else ""))
    if not method:
        if not files.options:
            _refuse_packed(model, Path(files.path))
        return ""
    if not AutoHfQuantizer.supports_quant_method(values):
        raise BadInput(
            f"{model}: is quantized by {method}, which transformers cannot read; {SERVE}"
        )
    bits = values.get("bits", loaded)
    return f"{method}, {bits} bits" if bits else method


def _refuse_packed(model: str, folder: Path) -> None:
    """Refuse quantized weights for which config.json names no method."""
    for file in [WEIGHTS] if (folder / WEIGHTS).is_file() else shard_names(folder):
        with safe_open(folder / file, "pt") as content:
            for name in content.keys():  # noqa: SIM118  # it is no mapping
                dtype = content.get_slice(name).get_dtype()
                if dtype not in FLOATS and name.endswith("weight"):
                    raise BadInput(
                        f"{model}: its weights are quantized ({name} is stored as {dtype}), and "
                        "config.json names no method by which transformers could read them, as in "
                        f"an export for MLX; give the model that it was made from, or {SERVE}"
                    )
