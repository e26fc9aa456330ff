"""NLI classifiers: probabilities of entailment, contradiction and neutral for a premise and a hypothesis."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from bench.errors import BadInput
from bench.scorers.base import Model
from bench.scorers.checkpoint import Placement, batches, check_lengths, tokenizer_identity
from bench.tasks.nli_coal import LABELS


class Classifier(Model):
    """A sequence-classification checkpoint with three NLI labels, found by their names."""

    verbs = ("classify",)

    def __init__(self, network: Any, tokenizer: Any, where: Placement, identity: dict[str, Any]) -> None:
        self.network, self.tokenizer, self.where, self.identity = network, tokenizer, where, identity
        self.columns = label_columns(network.config.id2label, str(identity["id"]))

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "NLI classifier",
            **self.identity,
            **self.where.describe(),
            **tokenizer_identity(self.tokenizer),
            "parameters": self.network.num_parameters(),
            "labels": dict(zip(LABELS, self.columns, strict=True)),
        }

    @torch.inference_mode()
    def classify(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """Probabilities [n, 3]; premise first, as in training.

        Nothing is cut. The paper's code cuts at 128 tokens, which no released pair comes near.
        """
        probabilities = np.empty((len(pairs), 3))
        encoded = [self.tokenizer(premise, hypothesis) for premise, hypothesis in pairs]
        lengths = [len(one["input_ids"]) for one in encoded]
        known = self.tokenizer.model_max_length
        check_lengths(self.identity["id"], lengths, self.network, "the pair", known)
        for numbers in batches(lengths, self.where.batch_tokens):
            batch = self.tokenizer.pad([encoded[i] for i in numbers], return_tensors="pt")
            rows = self.network(**batch.to(self.where.device)).logits.float().softmax(-1)[:, self.columns]
            probabilities[numbers] = rows.cpu().double().numpy()
        return probabilities


def label_columns(id2label: Mapping[int, str], model: str) -> list[int]:
    """Columns of entailment, contradiction and neutral, by name: the order differs from checkpoint to checkpoint.

    Raises:
        BadInput: a label is missing, as where they are called LABEL_0 to LABEL_2.
    """
    names = {str(name).lower(): int(column) for column, name in id2label.items()}
    columns = []
    for label in LABELS:
        found = [column for name, column in names.items() if name.startswith(label[:6])]
        if len(found) != 1 or len(names) != len(LABELS):
            raise BadInput(
                f"{model}: its labels are {', '.join(map(str, id2label.values()))}, not {', '.join(LABELS)}; "
                "set id2label in its config.json to what the labels mean"
            )
        columns.append(found[0])
    return columns
