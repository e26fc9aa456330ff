"""Check that a network gets all of its weights, and takes all weights of its checkpoint."""

import copy
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import torch
from transformers import PreTrainedModel
from transformers.models.auto import modeling_auto as auto

from bench.core.errors import BadInput
from bench.scorers.local.checkpoint import SERVE

# Weights that a network may leave out, because they change no number. transformers itself ignores
# more of them, by the class of the network.
HARMLESS = re.compile(
    r"(^|\.)(inv_freq|position_ids)$"  # computed from the configuration
    r"|\.(masked_bias|causal_mask)$|\.(attn|attention)\.bias$"  # masks of attention
    r"|(^|\.)mtp\w*\."  # predictions of further tokens, for faster replies
    r"|^v_head\."  # of training by rewards
    r"|\._extra_state$"  # of training in 8 bits
)
# Heads of BERT-like models that do not predict words.
OTHER_HEADS = re.compile(r"(^|\.)(pooler|seq_relationship)\.")
# Scales of activations and of the cache, which are not quantized here.
SCALES = re.compile(r"(^|[._])(input|output|[kqv])_(scale|zero_point|global_scale)$")
# The number of a layer.
LAYER = re.compile(r"(?:^|\.)layers\.(\d+)\.")


def check_weights(
    model: str,
    network: Any,
    loading: Mapping[str, Any],
    config: Any,
    kind: str,
    quantized: str = "",
    random_head: bool = False,
) -> None:
    """Refuse a network with a random weight, and a checkpoint with a weight that is not used.

    `loading` has the names of missing and unexpected weights, by transformers. `random_head` allows
    a head that is to be trained.
    """
    missing = sorted(loading["missing_keys"])
    if random_head:
        body = f"{network.base_model_prefix}."
        # Not every checkpoint has a pooler, which then is trained too.
        missing = [name for name in missing if name.startswith(body) and "pooler" not in name]
    if missing:
        # transformers would use random numbers.
        problem = f"lacks the weights {', '.join(missing[:3])} of a {kind} model"
        raise BadInput(f"{model}: {problem}, which would be random; give a complete checkpoint")
    unused = [name for name in loading["unexpected_keys"] if not HARMLESS.search(name)]
    if quantized:
        unused = [name for name in unused if not SCALES.search(name)]
    if kind in ("causal", "masked"):
        unused = [name for name in unused if not OTHER_HEADS.search(name)]
    if unused:
        unused = sorted(set(unused) - _of_other_parts(unused, network, config))
    if unused:
        raise BadInput(
            f"{model}: has the weights {', '.join(unused[:3])}, for which {type(network).__name__} "
            "has no place with this config.json, so its numbers would be others than in training; "
            f"correct config.json, or {SERVE}"
        )


def _of_other_parts(names: Sequence[str], network: Any, config: Any) -> set[str]:
    """Return the weights of parts that compute no answer of this network.

    These are the heads of other tasks, layers that predict further tokens, and leftovers within
    the parts that read images.
    """
    parts = dict(network.named_modules())
    text_config = network.config.get_text_config()
    towers = tuple(
        f"{name}."
        for name, part in parts.items()
        if isinstance(part, PreTrainedModel)
        and type(part.config) not in (type(network.config), type(text_config))
    )
    first = getattr(text_config, "num_hidden_layers", 0)
    further = range(first, first + (getattr(text_config, "num_nextn_predict_layers", 0) or 0))
    other_names = _names_in_other_classes(config)
    heads = {name for name in other_names if name.rpartition(".")[0] not in parts}
    layers = {name for name in names if (match := LAYER.search(name)) and int(match[1]) in further}
    return heads | layers | {name for name in names if name.startswith(towers)}


def _names_in_other_classes(config: Any) -> set[str]:
    """Return the names of weights in all of transformers' classes of a configuration's type."""
    names: set[str] = set()
    for mapping in [value for name, value in vars(auto).items() if name.endswith("_MAPPING")]:
        if type(config) in mapping:
            classes = mapping[type(config)]
            for kind in classes if isinstance(classes, tuple) else [classes]:
                # A class can ask for entries that the configuration lacks.
                with suppress(Exception), torch.device("meta"):
                    network = kind(copy.deepcopy(config))
                    names |= set(network.state_dict())
    return names
