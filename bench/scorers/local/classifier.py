"""NLI classifiers: probabilities of entailment, contradiction and neutral for a premise and a hypothesis."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench.core.errors import BadInput
from bench.scorers.base import Model, Tally
from bench.scorers.local.checkpoint import Placement, batches, check_lengths, tokenizer_identity
from bench.tasks.nli_labels import LABELS, label

# Plain pairs of our own, by language and the label that they have beyond doubt.
PROBES = Path(__file__).with_name("nli_probes.toml")


class Classifier(Model):
    """A sequence-classification checkpoint with three NLI labels, found by their names.

    `label_names` says what LABEL_0, LABEL_1 and LABEL_2 mean, where a checkpoint calls them so.
    """

    verbs = ("classify",)

    def __init__(
        self,
        network: Any,
        tokenizer: Any,
        where: Placement,
        identity: dict[str, Any],
        label_names: Sequence[str] = (),
    ) -> None:
        self.network, self.tokenizer, self.where, self.identity = (
            network,
            tokenizer,
            where,
            identity,
        )
        self.tally = Tally()
        self.columns = label_columns(network.config.id2label, str(identity["id"]), label_names)

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
        encoded = (
            self.tokenizer([pair[0] for pair in pairs], [pair[1] for pair in pairs])
            if pairs
            else {"input_ids": []}
        )
        lengths = [len(ids) for ids in encoded["input_ids"]]
        known = self.tokenizer.model_max_length
        check_lengths(self.identity["id"], lengths, self.network, "the pair", known)
        self.tally.asked += sum(lengths)
        for numbers in batches(lengths, self.where.batch_tokens):
            some = {name: [rows[i] for i in numbers] for name, rows in encoded.items()}
            batch = self.tokenizer.pad(some, return_tensors="pt")
            self.tally.computed += batch["input_ids"].numel()
            rows = (
                self.network(**batch.to(self.where.device))
                .logits.float()
                .softmax(-1)[:, self.columns]
            )
            probabilities[numbers] = rows.cpu().double().numpy()
        return probabilities

    def probe(self, languages: Sequence[str]) -> list[dict[str, str]]:
        """What it says of plain pairs: an identical one, which is entailed, and an open contradiction.

        A checkpoint whose labels are named wrongly, or that takes the hypothesis first, or was not trained in the
        language, shows itself here.

        Returns:
            One row a pair, with `language`, `premise`, `hypothesis`, `expected` and `found`; languages without pairs of
            ours have none.
        """
        rows = [row for row in _probes() if row["language"] in languages]
        if not rows:
            return []
        found = self.classify([(row["premise"], row["hypothesis"]) for row in rows]).argmax(1)
        return [{**row, "found": LABELS[k]} for row, k in zip(rows, found, strict=True)]


def label_columns(
    id2label: Mapping[int, str], model: str, label_names: Sequence[str] = ()
) -> list[int]:
    """Columns of entailment, contradiction and neutral, by name: the order differs from checkpoint to checkpoint.

    Args:
        label_names: what LABEL_0, LABEL_1 and LABEL_2 mean, in this order; names that say it themselves may not contradict.

    Raises:
        BadInput: a label is missing, as where they are called LABEL_0 to LABEL_2 and `label_names` does not say what they
            mean, or it says otherwise than the names.
    """
    columns = {int(column): str(name) for column, name in id2label.items()}
    theirs = ", ".join(columns[k] for k in sorted(columns))
    nameless = len(columns) == len(LABELS) and all(
        re.fullmatch(rf"label_{k}", name, re.IGNORECASE) for k, name in columns.items()
    )
    named = {
        k: label_names[k] if nameless and label_names else label(name)
        for k, name in columns.items()
    }
    if sorted(named.values()) != sorted(LABELS):
        example = (
            "say what they mean, like --label-names entailment,neutral,contradiction, or "
            if nameless
            else ""
        )
        raise BadInput(
            f"{model}: its labels are {theirs}, not {', '.join(LABELS)}; {example}set id2label in its config.json to what they mean"
        )
    if label_names and [named[k] for k in sorted(named)] != list(label_names):
        raise BadInput(
            f"{model}: its labels are {theirs}, which --label-names {','.join(label_names)} contradicts; leave it out, or "
            "set id2label in its config.json"
        )
    return [next(k for k, name in named.items() if name == wanted) for wanted in LABELS]


@cache
def _probes() -> list[dict[str, str]]:
    content = tomllib.loads(PROBES.read_text("utf-8"))
    return [
        {"language": language, "premise": premise, "hypothesis": hypothesis, "expected": expected}
        for language, by_label in content.items()
        for expected, pairs in by_label.items()
        for premise, hypothesis in pairs
    ]
