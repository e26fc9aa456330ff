"""Tell the kind of a checkpoint by its architecture, as transformers' auto classes list them."""

from collections.abc import Mapping, Sequence
from typing import Any

import transformers
from transformers.models.auto import modeling_auto as auto

from bench.core.errors import BadInput

MASKED = auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
PRETRAINED = set(auto.MODEL_FOR_PRETRAINING_MAPPING_NAMES.values())
# The kinds and their auto classes, with the names of the architectures that these load, by type.
# Models that also see images or hear sound write texts as a causal model.
KINDS: list[tuple[str, Any, dict[str, str]]] = [
    ("causal", transformers.AutoModelForCausalLM, auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES),
    ("causal", transformers.AutoModelForMultimodalLM, auto.MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES),
    ("masked", transformers.AutoModelForMaskedLM, MASKED),
    (
        "classifier",
        transformers.AutoModelForSequenceClassification,
        auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES,
    ),
]


def kind_of(model: str, config: Any, own_code: bool = False) -> tuple[str, Any]:
    """Return the kind of a checkpoint, and the auto class that loads it; refuse any other.

    `own_code` says whether the code that comes with the checkpoint may run.
    """
    names = getattr(config, "architectures", None) or []
    named = ", ".join(names) or config.model_type
    own_classes = dict(getattr(config, "auto_map", None) or {}) if own_code else {}
    of_each = (_kinds_of_architecture(name, config, own_classes) for name in names)
    kinds = next(filter(None, of_each), [])
    if not kinds and not any(hasattr(transformers, name) for name in names):
        # GGUF files have no architecture, and some checkpoints a name that nobody else has.
        kinds = [kind for kind, auto_class, _ in KINDS if auto_class.__name__ in own_classes]
        if not kinds and config.model_type not in MASKED:
            kinds = [
                kind for kind, _, types in KINDS if kind == "causal" and config.model_type in types
            ]
    is_discriminator = not kinds and named in PRETRAINED and config.model_type in MASKED
    if is_discriminator or named.endswith("ForMultipleChoice"):
        raise BadInput(
            f"{model}: predicts no words ({named} is a discriminator or a multiple-choice head); "
            "give the masked language model that it was trained with or from, for example "
            "google/electra-small-generator, or ask it by a function of yours, as "
            "python:MODULE:FUNCTION"
        )
    kind = kinds[0] if kinds else ""
    if "masked" in kinds and not getattr(config, "causal", False):
        kind = "masked"  # XLM has one class for masked and for causal models
    encoder_decoder = config.is_encoder_decoder or config.get_text_config().is_encoder_decoder
    if encoder_decoder and kind in ("causal", "masked", ""):
        remedy = "give a causal or a masked language model"
        raise BadInput(f"{model}: is an encoder-decoder ({named}); {remedy}")
    for name, auto_class, types in KINDS:
        if name == kind and (auto_class.__name__ in own_classes or config.model_type in types):
            return kind, auto_class
    raise BadInput(
        f"{model}: the architecture {named} of the type {config.model_type} is not supported; "
        "supported: causal, masked, classifier models that transformers' auto classes load"
    )


def _kinds_of_architecture(name: str, config: Any, own_classes: Mapping[str, Any]) -> Sequence[str]:
    """Return the kinds of an architecture, most often one."""
    kinds = [
        kind
        for kind, auto_class, architectures in KINDS
        if name in architectures.values()
        or str(own_classes.get(auto_class.__name__)).endswith(f".{name}")
    ]
    # Of the classes for pretraining, those that predict words share weights with their embeddings.
    if not kinds and name in PRETRAINED and config.model_type in MASKED:
        kinds = ["masked"] * bool(getattr(transformers, name)._tied_weights_keys)
    return kinds
