"""A network to train as an NLI classifier: its labels and its head, and pairs as its tokenizer has them."""

from collections.abc import Mapping, Sequence
from typing import Any

import transformers
from transformers.utils import logging as transformers_logging

from bench.core.errors import BadInput
from bench.data.nli_coal.corpora import LABELS, Example
from bench.scorers.local.checkpoint import explain_load_error, tokenizer_of
from bench.scorers.local.classifier import label_columns
from bench.scorers.local.location import check_files, check_whole, locate

# Parts of the body that are not pretrained in every checkpoint, and learned with the head.
OF_HEAD = ("pooler",)
# Pairs that are encoded at a time.
AT_ONCE = 1000


def load(
    model: str, seed: int, new_head: bool = False, trust_remote_code: bool = False
) -> tuple[Any, Any, bool, str | None]:
    """Network, tokenizer, whether the head is fresh (drawn by `seed`), and a Hub model's commit.

    A classifier whose labels are NLI's by name keeps them, in its own order.

    Raises:
        BadInput: it cannot be loaded, is a classifier of other labels, or lacks weights of its body.
    """
    files = locate(model)
    path, options = files.path, {**files.options, "trust_remote_code": trust_remote_code}
    if "gguf_file" in options:
        raise BadInput(
            f"{model}: a GGUF file is for asking alone; give the folder or the Hub id that it was made from"
        )
    transformers.set_seed(seed)
    try:
        check_whole(model, path)
        config = transformers.AutoConfig.from_pretrained(path, **options)
        tokenizer = tokenizer_of(path, options)
        check_files(model, path, config, options)
        fresh = new_head or not any(
            name.endswith("ForSequenceClassification") for name in config.architectures or []
        )
        labels: dict[str, Any] = {}
        if fresh:
            labels = {
                "num_labels": len(LABELS),
                "id2label": dict(enumerate(LABELS)),
                "label2id": {label: k for k, label in enumerate(LABELS)},
                "ignore_mismatched_sizes": True,
            }
        else:
            _check_labels(config.id2label, model)
        network, loading = transformers.AutoModelForSequenceClassification.from_pretrained(
            path,
            dtype="float32",
            output_loading_info=True,
            use_safetensors=True,
            **labels,
            **options,
        )
    except BadInput:
        raise
    except Exception as error:  # what others have written can be wrong in any way
        raise BadInput(explain_load_error(model, error)) from error
    body = f"{network.base_model_prefix}."
    lacking = [
        name
        for name in sorted(loading["missing_keys"])
        if not fresh or (name.startswith(body) and not any(part in name for part in OF_HEAD))
    ]
    if lacking:
        raise BadInput(
            f"{model}: lacks the weights {', '.join(lacking[:3])}, which would be random"
        )
    if tokenizer.pad_token_id is None:
        if tokenizer.eos_token_id is None:
            raise BadInput(f"{model}: its tokenizer has no token to fill a batch with (pad_token)")
        tokenizer.pad_token = tokenizer.eos_token
    if network.config.pad_token_id is None:
        network.config.pad_token_id = tokenizer.pad_token_id
    return network, tokenizer, fresh, files.commit


def encode(
    tokenizer: Any, examples: Sequence[Example], label_ids: Mapping[str, int], max_length: int
) -> tuple[list[dict[str, Any]], int]:
    """The pairs as Trainer takes them, premise first, and how many were cut to `max_length` tokens."""
    rows: list[dict[str, Any]] = []
    cut = 0
    before = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_error()  # a tokenizer warns of a long text, which is counted here
    for start in range(0, len(examples), AT_ONCE):
        some = examples[start : start + AT_ONCE]
        texts = [one.premise for one in some], [one.hypothesis for one in some]
        whole = [len(ids) for ids in tokenizer(*texts)["input_ids"]]
        cut += sum(length > max_length for length in whole)
        coded = tokenizer(*texts, truncation=True, max_length=max_length)
        rows += [
            {**{name: column[k] for name, column in coded.items()}, "labels": label_ids[one.label]}
            for k, one in enumerate(some)
        ]
    transformers_logging.set_verbosity(before)
    return rows, cut


def _check_labels(id2label: Mapping[int, str], model: str) -> None:
    try:
        label_columns(id2label, model)
    except BadInput as error:
        raise BadInput(f"{error}, or train a fresh head on it with --new-head") from None
