"""Train the classifiers of the `tiny:` models, small transformers that learn labelled pairs.

The label depends on occupation and gender together, an exclusive or, on which such a small model
stops at two thirds of right answers. Wider first weights help, and above all to train first on the
bare words, for example "nurse" and "woman", in a fifth of a second.
"""

import random
import re
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

from bench.core.progress import progress
from bench.scorers.local.device import threads
from bench.tasks.nli_labels import LABELS

SPECIAL = ["<pad>", "<unk>", "[CLS]", "[SEP]"]
# We sort the pairs of so many batches by length, so that a batch has pairs of similar length.
SORTED = 16
# Scripts without spaces between words.
UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
# The shape of the classifier, and its training.
RECIPE: dict[str, Any] = {
    "hidden": 64,
    "layers": 2,
    "heads": 4,
    "initializer_range": 0.2,
    "learning_rate": 2e-3,
    "batch": 64,
    "word_steps": 150,
    "steps": 800,
    "enough": 0.999,
}
# Premise, hypothesis and label.
Example = tuple[str, str, str]
# A pair as the network takes it: token ids, types, mask and label.
Row = dict[str, Any]


def train(
    coder: PreTrainedTokenizerFast,
    words: Sequence[Example],
    examples: Sequence[Example],
    seed: int,
    title: str,
) -> BertForSequenceClassification:
    """Train a classifier until it gets nearly all `examples` right; its labels are `LABELS`.

    Other words keep their random vectors, so its labels for these are arbitrary.

    Args:
        words: the same labels for the bare words, occupation and gender word.
    """
    rng = random.Random(seed)
    torch.manual_seed(seed)
    network = BertForSequenceClassification(config(len(coder)))
    torch.nn.init.zeros_(network.bert.embeddings.position_embeddings.weight)
    pairs = _encoded(coder, examples)
    epochs = -(-RECIPE["steps"] * RECIPE["batch"] // len(pairs))
    steps = epochs * -(-len(pairs) // RECIPE["batch"])
    with threads(1), progress(steps, f"training {title}", "steps") as bar:
        optimizer = torch.optim.AdamW(
            network.parameters(), lr=RECIPE["learning_rate"], betas=(0.9, 0.98)
        )
        network.train()
        bare = _encoded(coder, words)
        for _ in range(RECIPE["word_steps"]):
            if _step(network, coder, optimizer, bare) == len(bare):
                break
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, RECIPE["learning_rate"], total_steps=steps, pct_start=0.1
        )
        for _ in range(epochs):
            right = 0
            for batch in _batches(pairs, rng):
                right += _step(network, coder, optimizer, batch)
                schedule.step()
                bar.update()
            if right >= RECIPE["enough"] * len(pairs):
                break
    return network.eval()


def descend(network: Any, optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
    optimizer.step()


def tokenizer(words: Iterable[str], texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """Make a tokenizer of `words`, and of the English words and characters of `texts`."""
    longest_first = sorted(set(words), key=lambda word: (-len(word), word))
    unbroken = "|".join(
        re.escape(word) if UNSPACED.search(word) else rf"\b{re.escape(word)}\b"
        for word in longest_first
    )
    pattern = rf"{unbroken}|[A-Za-z]+|[^\sA-Za-z]"
    pieces = {piece for text in (*texts, *longest_first) for piece in re.findall(pattern, text)}
    vocabulary = {token: i for i, token in enumerate([*SPECIAL, *sorted(pieces)])}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), behavior="removed", invert=True)
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        unk_token="<unk>",
        pad_token="<pad>",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=512,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


def config(n_tokens: int) -> BertConfig:
    """Return the classifier's configuration with a vocabulary of `n_tokens`."""
    return BertConfig(
        vocab_size=n_tokens,
        hidden_size=RECIPE["hidden"],
        intermediate_size=2 * RECIPE["hidden"],
        num_hidden_layers=RECIPE["layers"],
        num_attention_heads=RECIPE["heads"],
        max_position_embeddings=512,
        initializer_range=RECIPE["initializer_range"],
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        pad_token_id=0,
        num_labels=len(LABELS),
        id2label=dict(enumerate(LABELS)),
        label2id={label: k for k, label in enumerate(LABELS)},
    )


def _encoded(coder: PreTrainedTokenizerFast, examples: Sequence[Example]) -> list[Row]:
    premises, hypotheses, labels = (list(column) for column in zip(*examples, strict=True))
    coded = {**coder(premises, hypotheses), "labels": list(map(LABELS.index, labels))}
    return [dict(zip(coded, row, strict=True)) for row in zip(*coded.values(), strict=True)]


def _step(network: Any, coder: Any, optimizer: Any, batch: Sequence[Row]) -> int:
    """Learn a batch; return the number of right answers before this step."""
    given = coder.pad(batch, return_tensors="pt")
    labels = given.pop("labels")
    logits = network(**given).logits
    descend(network, optimizer, torch.nn.functional.cross_entropy(logits, labels))
    return int((logits.argmax(-1) == labels).sum())


def _batches(pairs: Sequence[Row], rng: random.Random) -> list[list[Row]]:
    """Return all pairs, once each, in batches of similar length."""
    size = RECIPE["batch"]
    order = rng.sample(pairs, len(pairs))
    batches = []
    for start in range(0, len(order), SORTED * size):
        chunk = sorted(
            order[start : start + SORTED * size], key=lambda pair: len(pair["input_ids"])
        )
        batches += [chunk[k : k + size] for k in range(0, len(chunk), size)]
    rng.shuffle(batches)
    return batches
