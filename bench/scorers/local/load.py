"""Load a checkpoint from the Hub, a folder or a GGUF file as a model of its kind."""

from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
import transformers
from tqdm.auto import tqdm
from transformers import modeling_gguf_pytorch_utils as gguf_utils

from bench.config import Generation
from bench.core.errors import BadInput
from bench.scorers.base import Model
from bench.scorers.local.causal import Causal
from bench.scorers.local.chat_template import chat_template_of
from bench.scorers.local.checkpoint import SERVE, LocalModel, Pretrained, quantization, tokenizer_of
from bench.scorers.local.device import Placement
from bench.scorers.local.encoders import Classifier, Masked
from bench.scorers.local.gguf import GGUF, LLAMA_SERVER
from bench.scorers.local.hub import Location, base_of
from bench.scorers.local.kinds import kind_of
from bench.scorers.local.logprobs import trial_ids
from bench.scorers.local.weights import check_weights
from bench.tasks.nli_labels import LABELS

# The progress bar of GGUF files ignores transformers' settings; disable=None limits it to a
# terminal.
gguf_utils.tqdm = partial(tqdm, disable=None)


def load(
    model: str,
    files: Location,
    where: Placement,
    generation: Generation,
    trust_remote_code: bool = False,
    label_names: Sequence[str] = (),
    base: str | None = None,
    new_head: bool = False,
) -> Model:
    """Load the model at `files`.

    Args:
        base: replaces the base model that an adapter names.
        new_head: put a random head of an NLI classifier on it, to be trained.
    """
    base_files = base_of(model, files, base)
    complete = base_files or files
    path, trust = complete.path, {"trust_remote_code": trust_remote_code}
    options = complete.options | trust
    own_tokenizer = base_files and (Path(files.path) / "tokenizer_config.json").is_file()
    # Loading pickled weights can run code; safetensors and GGUF cannot. We also fetch no kernels
    # for quantized weights from the Hub.
    weights: dict[str, Any] = {"dtype": where.dtype, "device_map": where.device_map}
    if "gguf_file" not in options:
        weights["use_safetensors"] = True
    elif gguf_config := getattr(transformers, "GgufConfig", None):
        weights["quantization_config"] = gguf_config(dequantize=True)
    # The problem and the remedy, if transformers fails.
    problem, remedy = "cannot be loaded as a model", ""
    try:
        gguf = GGUF(Path(path, options["gguf_file"])) if "gguf_file" in options else None
        config = transformers.AutoConfig.from_pretrained(path, **options)
        if quantized := quantization(model, complete, config):
            problem = f"its weights are quantized ({quantized}), which cannot be read here"
            remedy = f"install what is missing, or {SERVE}"
        if new_head:
            kind, auto_class = "classifier", transformers.AutoModelForSequenceClassification
            weights["id2label"] = dict(enumerate(LABELS))
            weights["label2id"] = {name: column for column, name in enumerate(LABELS)}
        else:
            kind, auto_class = kind_of(model, config, trust_remote_code)
        if auto_class is transformers.AutoModelForMultimodalLM:
            problem, remedy = f"is a model for images or sound ({config.model_type})", SERVE
            problem += ", which cannot be asked a text alone here"
        described = (files.path, trust) if own_tokenizer else (path, options)
        if gguf and not own_tokenizer:
            tokenizer, tokenizer_name = gguf.tokenizer()
        else:
            tokenizer, tokenizer_name = tokenizer_of(*described)
            tokenizer.chat_template = chat_template_of(tokenizer, *described)
        if label_names and kind != "classifier":
            raise BadInput(f"model {model}: takes no --label-names; leave it out")
        if gguf:
            gguf.complete(config)
            gguf.check_tensors(config)
            weights["config"] = config
        network, loading = auto_class.from_pretrained(
            path, output_loading_info=True, **weights, **options
        )
        check_weights(model, network, loading, config, kind, quantized, random_head=new_head)
        if gguf:
            gguf.finish(network)
        identity: dict[str, Any] = {**files.identity, "tokenizer": tokenizer_name}
        if base_files:
            _adapt(model, network, files)
            identity["base"] = base_files.identity
        if quantized:
            identity["quantized"] = quantized
        if trust_remote_code:
            identity["trust_remote_code"] = True
        pretrained = Pretrained(network.eval(), tokenizer, where, identity)
        loaded: LocalModel
        if kind == "classifier":
            loaded = Classifier(pretrained, label_names)
        else:
            loaded = Causal(pretrained) if kind == "causal" else Masked(pretrained)
        loaded.follow(generation)
        return loaded
    except BadInput:
        raise
    except (Exception, SystemExit) as error:  # code and files of others can be wrong in any way
        if "gguf_file" in options:
            remedy = LLAMA_SERVER
        first = (str(error).strip().splitlines() or [""])[0][:200]
        message = f"{model}: {problem} ({type(error).__name__}: {first})"
        raise BadInput(f"{message}; {remedy}" if remedy else message) from error


def _adapt(model: str, network: Any, files: Location) -> None:
    """Put the adapter at `files` on its base model; raises BadInput if it does not fit.

    peft puts most adapters into the layers of the network, which then computes with them by itself.
    Others, such as prompts that are learned, are followed by peft's own class alone.
    """
    import peft

    try:
        config = peft.PeftConfig.from_pretrained(files.path)
    except Exception as error:
        problem = f"its adapter_config.json cannot be read by peft {version('peft')} ({error})"
        raise BadInput(f"{model}: {problem}; update peft") from error
    adapter = f"{model}: the adapter ({config.peft_type.value})"
    unsupported = (
        f"{adapter} is followed by peft's PeftModel alone, which is not supported; give an adapter "
        "of weights, such as LoRA, or the folder of peft's `merge_and_unload`"
    )
    if config.is_prompt_learning or getattr(config, "alora_invocation_tokens", None):
        raise BadInput(unsupported)
    try:
        config.base_model_name_or_path = None  # peft would warn of another name
        adapted = peft.get_peft_model(network, config)
        loading = adapted.load_adapter(files.path, "default", torch_device=str(network.device))
        ids = trial_ids(network, 9)[None].to(network.device)
        with torch.inference_mode():
            expected, logits = (part(input_ids=ids).logits for part in (adapted, network))
    except Exception as error:
        raise BadInput(f"{adapter} does not fit its base model ({error})") from error
    names = ("missing_keys", "unexpected_keys")
    if wrong := sorted(key for name in names for key in getattr(loading, name)):
        raise BadInput(f"{adapter} does not fit its base model (weights {wrong[0]})")
    if not torch.allclose(logits, expected, equal_nan=True):
        raise BadInput(unsupported)
