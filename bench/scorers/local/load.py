"""Load a checkpoint from the Hub, a folder or a GGUF file as a model of its kind."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import transformers
from tqdm.auto import tqdm
from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, MODEL_FOR_MASKED_LM_MAPPING
from transformers import modeling_gguf_pytorch_utils as gguf_utils

from bench.config import Generation
from bench.core.errors import BadInput
from bench.scorers.base import Model
from bench.scorers.local.causal import Causal
from bench.scorers.local.checkpoint import (
    Pretrained,
    explain_load_error,
    quantization,
    tokenizer_of,
)
from bench.scorers.local.device import Placement
from bench.scorers.local.encoders import Classifier, Masked, MultipleChoice
from bench.scorers.local.gguf import GGUF, SERVE
from bench.scorers.local.hub import Location, base_of

# The progress bar of GGUF files ignores transformers' settings; disable=None limits it to a
# terminal.
gguf_utils.tqdm = partial(tqdm, disable=None)

# Kinds of checkpoints by the end of their architecture's name.
KINDS = {
    "ForSequenceClassification": "classifier",
    "ForMultipleChoice": "multiple choice",
    "ForMaskedLM": "masked",
    "ForPreTraining": "masked",
    "ForCausalLM": "causal",
    "LMHeadModel": "causal",
    "ForConditionalGeneration": "causal",
}
AUTO_CLASSES: dict[str, Any] = {
    "causal": transformers.AutoModelForCausalLM,
    "masked": transformers.AutoModelForMaskedLM,
    "classifier": transformers.AutoModelForSequenceClassification,
    "multiple choice": transformers.AutoModelForMultipleChoice,
}


def load(
    model: str,
    files: Location,
    where: Placement,
    generation: Generation,
    trust_remote_code: bool = False,
    label_names: Sequence[str] = (),
    base: str | None = None,
) -> Model:
    """Load the model at `files`; `base` replaces the base model that an adapter names."""
    base_files = base_of(model, files, base)
    complete = base_files or files
    path, trust = complete.path, {"trust_remote_code": trust_remote_code}
    options = complete.options | trust
    own_tokenizer = base_files and (Path(files.path) / "tokenizer_config.json").is_file()
    # Loading pickled weights can run code; safetensors and GGUF cannot. We also fetch no kernels
    # for quantized weights from the Hub.
    weights: dict[str, Any] = {"dtype": where.dtype}
    if "gguf_file" not in options:
        weights["use_safetensors"] = True
    elif gguf_config := getattr(transformers, "GgufConfig", None):
        weights["quantization_config"] = gguf_config(dequantize=True)
    if where.spread:
        weights["device_map"] = "auto"
    quantized = ""
    try:
        gguf = GGUF(Path(path, options["gguf_file"])) if "gguf_file" in options else None
        config = transformers.AutoConfig.from_pretrained(path, **options)
        if gguf and not own_tokenizer:
            tokenizer, tokenizer_name = gguf.tokenizer()
        else:
            tokenizer, tokenizer_name = tokenizer_of(
                *((files.path, trust) if own_tokenizer else (path, options))
            )
        if quantized := quantization(model, config):
            # Read packed weights on the device that uses them.
            weights.setdefault("device_map", {"": where.device})
        kind = _kind(model, config)
        if label_names and kind != "classifier":
            raise BadInput(f"model {model}: takes no --label-names; leave it out")
        if kind != "causal":
            reason = f"model {model} is a {kind} model and writes no replies"
            generation.refuse(generation.changed(), reason)
        if gguf:
            gguf.complete(config)
            gguf.check_tensors(config)
            weights["config"] = config
        network, loading = AUTO_CLASSES[kind].from_pretrained(
            path, output_loading_info=True, **weights, **options
        )
        if loading["missing_keys"]:
            # transformers would use random numbers.
            missing = ", ".join(sorted(loading["missing_keys"])[:3])
            problem = f"lacks the weights {missing} of a {kind} model, which would be random"
            raise BadInput(f"{model}: {problem}; give a complete checkpoint")
        if gguf:
            gguf.finish(network)
        if "device_map" not in weights:
            network.to(where.device)
        identity: dict[str, Any] = {**files.identity, "tokenizer": tokenizer_name}
        if base_files:
            _adapt(model, network, files)
            identity["base"] = base_files.identity
        if quantized:
            identity["quantized"] = quantized
        if trust_remote_code:
            identity["trust_remote_code"] = True
        pretrained = Pretrained(network.eval(), tokenizer, where, identity)
        if kind == "causal":
            return Causal(pretrained, generation=generation)
        if kind == "classifier":
            return Classifier(pretrained, label_names=label_names)
        return Masked(pretrained) if kind == "masked" else MultipleChoice(pretrained)
    except BadInput:
        raise
    except Exception as error:  # code and files of others can be wrong in any way
        remedy = f"; {SERVE}" if "gguf_file" in options else ""
        raise BadInput(explain_load_error(model, error, quantized) + remedy) from error


def _kind(model: str, config: Any) -> str:
    names = getattr(config, "architectures", None) or []
    for name in names:
        for ending, kind in KINDS.items():
            if not name.endswith(ending):
                continue
            if kind in ("causal", "masked") and getattr(config, "is_encoder_decoder", False):
                remedy = "give a causal or a masked language model"
                raise BadInput(f"{model}: is an encoder-decoder ({name}); {remedy}")
            return kind
    # A GGUF file names no architecture class.
    generative = set(MODEL_FOR_CAUSAL_LM_MAPPING) - set(MODEL_FOR_MASKED_LM_MAPPING)
    if not names and type(config) in generative:
        return "causal"
    raise BadInput(
        f"{model}: the architecture {', '.join(names) or config.model_type} is not supported; "
        f"supported: {', '.join('*' + ending for ending in KINDS)}"
    )


def _adapt(model: str, network: Any, files: Location) -> None:
    """Put the adapter at `files` on its base model; raises BadInput if it does not fit."""
    misfit = f"{model}: the adapter does not fit its base model"
    try:
        loading = network.load_adapter(files.path, use_safetensors=True)
    except Exception as error:
        raise BadInput(f"{misfit} ({error})") from error
    names = ("missing_keys", "unexpected_keys")
    if wrong := sorted(key for name in names for key in getattr(loading, name, ())):
        raise BadInput(f"{misfit} (weights {wrong[0]})")
