"""NLI classifiers: probabilities of entailment, contradiction and neutral for a pair."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench.core.errors import BadInput
from bench.scorers.local.checkpoint import LocalModel
from bench.scorers.local.device import Placement
from bench.tasks.nli_labels import LABELS, label

# Our own plain pairs, by language, with undoubted labels.
PROBES = Path(__file__).with_name("nli_probes.toml")


class Classifier(LocalModel):
    """A sequence-classification checkpoint with the three NLI labels.

    `label_names` are the meanings of LABEL_0, LABEL_1 and LABEL_2, if the checkpoint does not say.
    """

    kind = "NLI classifier"
    request_types = ("classify",)

    def __init__(
        self,
        network: Any,
        tokenizer: Any,
        where: Placement,
        identity: dict[str, Any],
        label_names: Sequence[str] = (),
    ) -> None:
        super().__init__(network, tokenizer, where, identity)
        self.columns = label_columns(network.config.id2label, self.id, label_names)
        self.check_batches(self.classify, [("a", "a"), ("a, a, a.", "a")])

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "labels": dict(zip(LABELS, self.columns, strict=True))}

    @torch.inference_mode()
    def classify(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """Return probabilities [n, 3]; premise first, as in training.

        We do not truncate. The paper's code truncates at 128 tokens; all released pairs are much
        shorter.
        """
        probabilities = np.empty((len(pairs), 3))
        if not pairs:
            return probabilities
        encoded = self.tokenizer(*(list(texts) for texts in zip(*pairs, strict=True)))
        lengths = [len(ids) for ids in encoded["input_ids"]]
        self.check_lengths(lengths, "the pair", self.tokenizer.model_max_length)
        for numbers, batch in self.padded_batches(encoded):
            rows = self.network(**batch).logits.float().softmax(-1)[:, self.columns]
            probabilities[numbers] = rows.cpu().double().numpy()
        return probabilities

    def probe(self, languages: Sequence[str]) -> list[dict[str, str]]:
        """Classify plain pairs: a sentence with itself, and with an open contradiction.

        This detects labels with wrong names, a model that takes the hypothesis first, and an
        unknown language.
        """
        rows = [row for row in probe_pairs() if row["language"] in languages]
        probabilities = self.classify([(row["premise"], row["hypothesis"]) for row in rows])
        labels = [
            "nan" if np.isnan(row).any() else LABELS[int(row.argmax())] for row in probabilities
        ]
        return [{**row, "found": name} for row, name in zip(rows, labels, strict=True)]


def probe_pairs() -> list[dict[str, str]]:
    """Read the plain pairs, with `language`, `premise`, `hypothesis` and `expected`."""
    return [
        {"language": language, "premise": first, "hypothesis": second, "expected": expected}
        for language, by_label in tomllib.loads(PROBES.read_text("utf-8")).items()
        for expected, pairs in by_label.items()
        for first, second in pairs
    ]


def label_columns(
    id2label: Mapping[int, str], model: str, label_names: Sequence[str] = ()
) -> list[int]:
    """Find the columns of entailment, contradiction and neutral by name.

    Args:
        label_names: the meanings of LABEL_0, LABEL_1 and LABEL_2; they may not contradict the
            checkpoint's own names.
    """
    columns = {int(column): str(name) for column, name in id2label.items()}
    theirs = ", ".join(columns[k] for k in sorted(columns))
    nameless = len(columns) == len(LABELS) and all(
        re.fullmatch(rf"label_{k}", name, re.IGNORECASE) for k, name in columns.items()
    )
    given = label_names if nameless else ()
    named = {k: given[k] if given else label(name) for k, name in columns.items()}
    if sorted(named.values()) != sorted(LABELS):
        example = "give their meaning, like --label-names entailment,neutral,contradiction, or "
        raise BadInput(
            f"{model}: its labels are {theirs}, not {', '.join(LABELS)}; {example * nameless}"
            "set id2label in its config.json to what they mean"
        )
    if label_names and [named[k] for k in sorted(named)] != list(label_names):
        raise BadInput(
            f"{model}: its labels are {theirs}, which --label-names {','.join(label_names)} "
            "contradicts; leave it out, or set id2label in its config.json"
        )
    return [next(k for k, name in named.items() if name == wanted) for wanted in LABELS]
