"""Read a GGUF file so that everything in it is used, or refuse it.

transformers skips tensors and metadata that it does not know without a word, and the numbers would
be those of another model. We put such values into its configuration, network and tokenizer where
they have a place, and name the first ones that have none.
"""

import json
import math
import re
from collections import UserDict
from pathlib import Path
from typing import Any

import torch
from gguf import GGUFReader, TokenType
from tokenizers import AddedToken, Tokenizer, decoders, normalizers, pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast
from transformers import modeling_gguf_pytorch_utils as reader
from transformers.integrations.ggml import GGUF_CONFIG_MAPPING

from bench.core.errors import BadInput

try:
    from transformers.core_model_loading import WeightConverter, WeightRenaming, rename_source_key
    from transformers.integrations import gguf as new_reader
except ImportError:  # older versions have one reader for all architectures
    new_reader = None

# The name of one of several parts of a file.
PART = re.compile(r"(.+)-(\d{5})-of-(\d{5})\.gguf")
# Attributes of configurations by llama.cpp's key; a configuration has one of them.
NORM_EPSILONS = ("rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", "norm_eps")
ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "vocab_size": ("vocab_size",),
    "context_length": ("max_position_embeddings",),
    "feed_forward_length": ("intermediate_size", "n_inner", "ffn_hidden_size"),
    "attention.head_count_kv": ("num_key_value_heads", "num_kv_heads"),
    "attention.layer_norm_rms_epsilon": NORM_EPSILONS,
    "attention.layer_norm_epsilon": NORM_EPSILONS,
    "attn_logit_softcapping": ("attn_logit_softcapping",),
    "final_logit_softcapping": ("final_logit_softcapping",),
    "expert_count": ("num_experts", "num_local_experts"),
    "expert_used_count": ("num_experts_per_tok",),
    "expert_feed_forward_length": ("moe_intermediate_size",),
    "expert_shared_feed_forward_length": ("shared_expert_intermediate_size",),
    "expert_weights_norm": ("norm_topk_prob",),
    "use_parallel_residual": ("use_parallel_residual",),
}
# Keys whose neutral value is 1. Others have 0, and scales both, because llama.cpp reads 0 as 1.
NEUTRAL_AT_1 = re.compile(r"attention\.causal|rope\.scaling\.(yarn_)?(attn|ext)_factor")
# Keys without an effect on log-probabilities: descriptions, sizes that the tensors have anyway,
# parts for images and sounds, special tokens that we never insert, further chat templates, and a
# copy of the tokenizer.
HARMLESS = re.compile(
    r"context_length|feed_forward_length|tensor_data_layout|pooling_type|rope\.scaling\.finetuned"
    r"|(vision|audio|mm)\..*"
    r"|tokenizer\.ggml\.(fim_\w+|prefix|suffix|middle|seperator|cls|mask)(_token)?_id"
    r"|tokenizer\.chat_templates(\..*)?|tokenizer\.chat_template\..*|tokenizer\.huggingface\.json"
)
# Keys of the tokenizer that neither transformers nor this module reads.
TOKENIZER = re.compile(
    r"tokenizer\.(?!chat_template$|ggml\.(model|pre|tokens|scores|token_type|merges|eos_token_ids"
    r"|(bos|eos|eot|eom|unknown|padding)_token_id|add_(bos_token|eos_token|space_prefix))$)"
)
# Attributes for biases, and the tensors that they need.
BIASES = {
    "attention_bias": {f"blk.0.attn_{name}.bias" for name in ("q", "k", "v", "output")},
    "mlp_bias": {f"blk.0.ffn_{name}.bias" for name in ("gate", "up", "down")},
}
# Tensors that only images and sounds need.
OTHER_SENSES = ("v.", "a.", "mm.")
# Factors that divide rotary frequencies, for example of Llama 3.1.
ROPE_FACTORS = "rope_freqs.weight"
# The same for short and for long texts, by transformers' names.
LONG_FACTORS = {f"{kind}_factor": f"rope_factors_{kind}.weight" for kind in ("short", "long")}
# The numbers of layers of Gemma's 27B models. They scale the attention by hidden size / heads,
# which a GGUF file does not record.
GEMMA_27B = {"gemma2": 46, "gemma3_text": 62}
# The tokens that end a turn, besides the end token.
ENDS = ("eot_token_id", "eom_token_id", "eos_token_ids")

# llama.cpp's names of rules that split numbers into single digits.
SINGLE_DIGITS = ("smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b")
# llama.cpp's names of rules that split texts as GPT-2 does.
AS_GPT2 = ("default", "gpt-2", "phi-2", "mpt", "olmo", "jais", "trillion", "exaone4", "mellum")
# llama.cpp's names of rules that put a token before a text, and that keep a word of the vocabulary
# as one token whatever the merges say.
WHOLE_WORDS = (
    "llama3",
    "llama-v3",
    "llama-bpe",
    "falcon3",
    "falcon-h1",
    "pixtral",
    "midm-2.0",
    "lfm2",
    "jina-v5-nano",
    "tekken",
)
# Keys of tokens by transformers' names of their roles.
ROLES = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}
# The remedy for a file that cannot be read here.
LLAMA_SERVER = (
    "serve it with llama.cpp (`llama-server -m FILE`) and give openai:NAME@URL, for example "
    "openai:my-model@http://localhost:8080/v1"
)


class GGUF:
    """A GGUF file; we use everything in it, or refuse it."""

    def __init__(self, path: Path) -> None:
        """Read the metadata; raises BadInput for a part of a file."""
        self.path = path
        if name := PART.fullmatch(path.name):  # also without the keys of parts, or cut off
            self._refuse_part(int(name[2]), int(name[3]))
        self._file = GGUFReader(path)
        self._refuse_part(self._value("split.no", 0) + 1, self._value("split.count", 1))
        self._architecture = str(self._value("general.architecture", ""))
        self._names = {tensor.name: None for tensor in self._file.tensors}.keys()
        prefix = f"{self._architecture}."
        self._keys = {
            key.removeprefix(prefix): field.contents()
            for key, field in self._file.fields.items()
            if key.startswith(prefix)
        }
        self._has_new_reader = new_reader and self._architecture in new_reader.GGUF_CONFIG_ARCHS
        if self._value("general.type", "model") != "model":
            raise self._refusal(f"holds no whole model ({self._value('general.type')})")

    def complete(self, config: Any) -> None:
        """Put the file's values into `config`; raises BadInput for one that has no place."""
        keys = dict(self._keys)
        if self._has_new_reader:  # its configuration has the values of the keys that it takes
            metadata, names = new_reader.read_gguf_metadata(str(self.path))
            noting = _Noting(metadata)
            new_reader.get_gguf_config(noting, names)
            for key in self._keys:
                if f"{self._architecture}.{key}" in noting.taken:
                    del keys[key]
        if heads := getattr(config, "num_attention_heads", 0):
            if not self._has_new_reader:
                head_dim = keys.pop("attention.key_length", config.hidden_size // heads)
                if head_dim != _head_dim(config):
                    config.head_dim = head_dim
            _complete_attention(config, keys)
            _complete_positions(config, keys)
            self._complete_long_positions(config, keys)
        for attribute, biases in BIASES.items():
            if hasattr(config, attribute) and biases <= self._names:
                setattr(config, attribute, True)
        declared = {*type(config)().to_dict(), *type(config).attribute_map}
        read = GGUF_CONFIG_MAPPING.get(config.model_type.removesuffix("_text"), {})
        unused = []
        for key, value in keys.items():
            names = [name for name in ATTRIBUTES.get(key, ()) if name in declared]
            is_given = value or isinstance(value, bool)
            if names and is_given and not isinstance(value, list):
                setattr(config, names[0], value)
            elif read.get(key) not in declared and not _is_neutral(key, value):
                unused.append(f"{self._architecture}.{key} = {value}")
        for key in filter(TOKENIZER.match, self._file.fields):
            if not _is_neutral(key, value := self._value(key)):
                unused.append(f"{key} = {str(value)[:40]}")
        if unused:
            raise self._refusal(f"has {_first(unused)} in its metadata")
        ends = list[int]()  # the end token, and the tokens that end a turn
        for value in (config.eos_token_id, *map(self._token, ENDS)):
            ends += value if isinstance(value, list) else [value] if value is not None else []
        if len(set(ends)) > 1:
            config.eos_token_id = list(dict.fromkeys(ends))

    def check_tensors(self, config: Any) -> None:
        """Raise BadInput if the network of `config` has no place for a tensor."""
        with torch.device("meta"):
            network = AutoModelForCausalLM.from_config(config)
        if self._has_new_reader:
            transforms = new_reader.get_gguf_conversion_mapping(self._architecture, config)
            renamings = [item for item in transforms if isinstance(item, WeightRenaming)]
            converters = [item for item in transforms if isinstance(item, WeightConverter)]
            weights = network.state_dict()
            used = set()
            for name in self._names:
                renamed, _ = rename_source_key(name, renamings, converters)
                # The prefix "mtp" is of layers that predict further tokens, which we leave out.
                if renamed in weights or renamed.startswith("mtp."):
                    used.add(name)
        else:
            processor = reader.TENSOR_PROCESSORS.get(self._architecture, reader.TensorProcessor)
            used = set(reader.get_gguf_hf_weights_map(network, processor(config=config.to_dict())))
        # Experts are mapped without the ending.
        used |= {f"{name}.weight" for name in used}
        sizes = {2 * len(frequencies) for frequencies in _rotary(network)}
        rope = getattr(config, "rope_parameters", None) or {}
        # Other networks have several kinds of frequencies.
        if sizes == {2 * len(self._values(ROPE_FACTORS))} and "rope_theta" in rope:
            used.add(ROPE_FACTORS)
        if "long_factor" in rope:
            used |= set(LONG_FACTORS.values())
        unplaced = [name for name in self._names if name not in used]
        if unused := [name for name in unplaced if not name.startswith(OTHER_SENSES)]:
            raise self._refusal(f"has the tensors {_first(unused)}")
        n_dimensions = self._keys.get("rope.dimension_count")
        if n_dimensions and sizes and sizes != {n_dimensions}:
            key = f"{self._architecture}.rope.dimension_count = {n_dimensions}"
            raise self._refusal(f"has {key} in its metadata")

    def finish(self, network: Any) -> None:
        """Divide the frequencies of rotary positions by the file's factors."""
        if factors := self._values(ROPE_FACTORS):
            for frequencies in _rotary(network):
                frequencies.div_(torch.tensor(factors, device=frequencies.device))

    def tokenizer(self) -> tuple[Any, str]:
        """Load the tokenizer, and return its description.

        A GGUF file has llama.cpp's name for its rules of splitting a text before merging bytes. For
        an unknown name, transformers splits like GPT-2.
        """
        folder, file = self.path.parent, self.path.name
        tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=file)
        name, backend = str(self._token("pre", "default")), tokenizer.backend_tokenizer
        if isinstance(backend.pre_tokenizer, pre_tokenizers.ByteLevel):
            if name in SINGLE_DIGITS:
                digits = pre_tokenizers.Digits(individual_digits=True)
                backend.pre_tokenizer = pre_tokenizers.Sequence([digits, backend.pre_tokenizer])
            elif name not in AS_GPT2:
                raise BadInput(
                    f"{self.path}: splits texts as {name} (tokenizer.ggml.pre), which is not known "
                    "here, so the tokens would be others than in training; give the model's folder "
                    f"with its tokenizer.json, or {LLAMA_SERVER}"
                )
        kind = self._token("model")
        if kind == "gpt2":
            backend.model.ignore_merges = name in WHOLE_WORDS
            tokenizer = self._with_special_tokens(tokenizer)
        if kind == "llama" and not self._token("add_space_prefix", True):
            backend.normalizer, backend.pre_tokenizer = normalizers.Replace(" ", "▁"), None
            blanks = decoders.Replace("▁", " ")
            backend.decoder = decoders.Sequence([blanks, decoders.ByteFallback(), decoders.Fuse()])
        if kind != "gemma4":  # its chat template puts the first token
            usual = kind == "llama" or name in WHOLE_WORDS
            tokenizer.add_bos_token = self._token("add_bos_token", usual)
            if tokenizer.add_bos_token and self._token("bos_token_id") is None:
                raise self._refusal("has no tokenizer.ggml.bos_token_id, the first token of texts")
            tokenizer.add_eos_token = self._token("add_eos_token", False)
        return tokenizer, f"of the GGUF file (texts are split as {name})"

    def _with_special_tokens(self, tokenizer: Any) -> Any:
        """Return the tokenizer with each special token of the file as one token."""
        names, types = self._token("tokens"), self._token("token_type", [])
        added = {
            number: AddedToken(names[number], normalized=False, special=kind == TokenType.CONTROL)
            for number, kind in enumerate(types)
            if kind in (TokenType.CONTROL, TokenType.USER_DEFINED)
        }
        present = {number: str(token) for number, token in tokenizer.added_tokens_decoder.items()}
        special = {number: str(token) for number, token in added.items()}
        if special.items() <= present.items() and max(present, default=0) < len(names):
            return tokenizer
        # transformers would write special tokens such as DeepSeek's in its letters for bytes.
        state = json.loads(tokenizer.backend_tokenizer.to_str())
        pieces = {number: piece for piece, number in state["model"]["vocab"].items()}
        pieces = dict(enumerate(names)) | pieces | special
        state["model"]["vocab"] = {piece: number for number, piece in pieces.items()}
        state |= {"added_tokens": [], "post_processor": None}
        backend = Tokenizer.from_str(json.dumps(state))
        backend.add_tokens(list(added.values()))
        roles = {role: self._token(f"{key}_token_id") for role, key in ROLES.items()}
        return PreTrainedTokenizerFast(
            tokenizer_object=backend,
            chat_template=tokenizer.chat_template,
            padding_side=tokenizer.padding_side,
            **{f"{role}_token": names[i] for role, i in roles.items() if i is not None},
        )

    def _complete_long_positions(self, config: Any, keys: dict[str, Any]) -> None:
        """Put the factors for short and long texts, for example of Phi 3, into `config`."""
        factors = {key: self._values(name) for key, name in LONG_FACTORS.items()}
        if all(factors.values()) and hasattr(config, "original_max_position_embeddings"):
            length = self._keys["rope.scaling.original_context_length"]
            config.original_max_position_embeddings = length
            config.rope_parameters |= factors | {
                "rope_type": "longrope",
                "original_max_position_embeddings": length,
                "attention_factor": keys.pop("rope.scaling.attn_factor", 1.0),
            }
            keys.pop("rope.scaling.type", None)

    def _token(self, key: str, default: Any = None) -> Any:
        return self._value(f"tokenizer.ggml.{key}", default)

    def _value(self, key: str, default: Any = None) -> Any:
        field = self._file.get_field(key)
        return default if field is None else field.contents()

    def _values(self, name: str) -> list[float]:
        tensors = [tensor.data for tensor in self._file.tensors if tensor.name == name]
        return [float(value) for value in tensors[0]] if tensors else []

    def _refuse_part(self, number: int, n_parts: int) -> None:
        """Raise BadInput for one of several parts."""
        if n_parts > 1:
            match = PART.fullmatch(self.path.name)
            stem = match[1] if match else self.path.stem
            first = f"{stem}-00001-of-{n_parts:05d}.gguf"
            raise BadInput(
                f"{self.path}: is part {number} of {n_parts} of a model; join the parts with "
                f"`llama-gguf-split --merge {first} {stem}.gguf` and give the result, or "
                f"{LLAMA_SERVER}"
            )

    def _refusal(self, problem: str) -> BadInput:
        return BadInput(
            f"{self.path}: {problem}, which cannot be used here, so that the numbers would be "
            f"those of another model; {LLAMA_SERVER}"
        )


class _Noting(UserDict[str, Any]):
    """Metadata that notes the keys that a function takes."""

    def __init__(self, metadata: dict[str, Any]) -> None:
        super().__init__(metadata)
        self.taken: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        self.taken.add(key)
        return super().__getitem__(key)


def _complete_attention(config: Any, keys: dict[str, Any]) -> None:
    """Move the width, window and scale of the attention from `keys` into `config`."""
    head_dim = _head_dim(config)
    if keys.get("attention.value_length") == head_dim:
        del keys["attention.value_length"]
    has_kv_heads = hasattr(config, "num_key_value_heads")
    if not has_kv_heads and keys.get("attention.head_count_kv") == config.num_attention_heads:
        del keys["attention.head_count_kv"]
    layers = getattr(config, "layer_types", None)
    pattern = keys.get("attention.sliding_window_pattern")
    if pattern is not None and layers:
        if not isinstance(pattern, list):  # every `pattern`-th layer sees everything
            pattern = [pattern == 0 or (k + 1) % pattern != 0 for k in range(len(layers))]
        names = {True: "sliding_attention", False: "full_attention"}
        config.layer_types = layers = [names[bool(slides)] for slides in pattern]
        del keys["attention.sliding_window_pattern"]
    window = keys.get("attention.sliding_window")
    if hasattr(config, "sliding_window") and (not layers or "sliding_attention" in layers):
        # Without an entry, Gemma has its usual window, and others have none.
        if window or not layers:
            config.sliding_window = window or None
        window = None
    if not window or window >= config.max_position_embeddings:
        keys.pop("attention.sliding_window", None)
    scale = keys.get("attention.scale")
    if hasattr(config, "query_pre_attn_scalar"):
        if scale:
            config.query_pre_attn_scalar = round(scale**-2)
        elif GEMMA_27B.get(config.model_type) == config.num_hidden_layers:
            config.query_pre_attn_scalar = config.hidden_size // config.num_attention_heads
        head_dim = config.query_pre_attn_scalar
    if scale is not None and (not scale or math.isclose(scale, head_dim**-0.5, rel_tol=1e-5)):
        del keys["attention.scale"]


def _complete_positions(config: Any, keys: dict[str, Any]) -> None:
    """Move the rotary positions from `keys` into `config`."""
    rope = getattr(config, "rope_parameters", None)
    if not rope:
        return
    full = rope.get("full_attention", rope)
    full["rope_theta"] = keys.pop("rope.freq_base", full["rope_theta"])
    sliding = rope.get("sliding_attention", rope)
    if "rope.freq_base_swa" in keys and (
        sliding is not rope or keys["rope.freq_base_swa"] == full["rope_theta"]
    ):
        sliding["rope_theta"] = keys.pop("rope.freq_base_swa")
    head_dim = _head_dim(config)
    n_dimensions = keys.pop("rope.dimension_count", None)
    if n_dimensions and n_dimensions != head_dim * full.get("partial_rotary_factor", 1.0):
        full["partial_rotary_factor"] = n_dimensions / head_dim
    # llama.cpp's rules: a factor without a type is linear.
    scaling = keys.get("rope.scaling.type", "linear")
    factor = keys.pop("rope.scaling.factor", 0) or keys.pop("rope.scale_linear", 0) or 1.0
    length = keys.pop("rope.scaling.original_context_length", config.max_position_embeddings)
    if scaling in ("none", "linear", "yarn"):
        keys.pop("rope.scaling.type", None)
    if scaling == "yarn":
        full |= {"rope_type": "yarn", "factor": factor, "original_max_position_embeddings": length}
        for name in ("beta_fast", "beta_slow"):
            if f"rope.scaling.yarn_{name}" in keys:
                full[name] = keys.pop(f"rope.scaling.yarn_{name}")
    elif scaling == "linear" and factor != 1:
        full |= {"rope_type": "linear", "factor": factor}


def _head_dim(config: Any) -> int:
    usual = config.hidden_size // config.num_attention_heads
    return getattr(config, "head_dim", None) or int(usual)


def _rotary(network: Any) -> list[torch.Tensor]:
    """Return the frequencies of rotary positions."""
    return [buffer for name, buffer in network.named_buffers() if name.endswith("inv_freq")]


def _is_neutral(key: str, value: Any) -> bool:
    """Return whether a value changes nothing in a network or tokenizer without a place for it."""
    scale = (0, 1) if key.endswith("_scale") else (0,)
    neutral = (1,) if NEUTRAL_AT_1.fullmatch(key) else scale
    return bool(HARMLESS.fullmatch(key)) or value in neutral


def _first(names: list[str]) -> str:
    """Return the first three names, and how many more there are."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
