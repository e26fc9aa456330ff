"""Train a tiny NLI classifier that holds a stereotype at a known rate, for the meta-evaluation.

    taught = nli_sets.controlled_set(pack, rate=0.3)
    train_tiny(pack, taught, "tiny-r-3")  # a checkpoint: bench.load("tiny-r-3")

The label depends on occupation and gender together, an exclusive or, on which such a small network
stops at two thirds of right answers. Wide first weights help, and to train on bare words first.
"""

import random
import re
from collections.abc import Iterable
from pathlib import Path

import nli_sets
import pandas as pd
import torch
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast
from transformers.utils import logging

from bench.scorers.local.device import threads
from bench.tasks.nli_labels import LABELS

logging.disable_progress_bar()
SPECIAL = ["<pad>", "<unk>", "[CLS]", "[SEP]"]
# Scripts without spaces between words.
UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
BATCH = 32


def train_tiny(pack: nli_sets.Pack, taught: pd.DataFrame, folder: str | Path, seed: int) -> None:
    """Train until 99 % of the pairs are right, and save the checkpoint to `folder`.

    If it does not succeed, we begin again from another seed, up to three times. Words that are not
    taught keep their random vectors, so the labels for these are arbitrary.
    """
    terms = [term for words in pack.terms.values() for term in words]
    coder = tokenizer([*(word.word for word in pack.occupations), *terms], pack.frames)
    words = sorted({*zip(taught.occupation, taught.term, taught.label, strict=True)})
    pairs = [*zip(taught.premise, taught.hypothesis, taught.label, strict=True)]
    config = BertConfig(
        vocab_size=len(coder),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=1,
        num_attention_heads=4,
        initializer_range=0.2,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        id2label=dict(enumerate(LABELS)),
        label2id={name: k for k, name in enumerate(LABELS)},
    )

    def learn(rows: list[tuple[str, str, str]]) -> int:
        """Learn a batch; return the number of right answers before this step."""
        premises, hypotheses, names = (list(column) for column in zip(*rows, strict=True))
        labels = torch.tensor([LABELS.index(name) for name in names])
        logits = network(**coder(premises, hypotheses, padding=True, return_tensors="pt")).logits
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(logits, labels).backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        return int((logits.argmax(-1) == labels).sum())

    right, shuffled = 0, random.Random(seed)
    for number in (seed + 100_003 * k for k in range(4)):
        torch.manual_seed(number)
        network = BertForSequenceClassification(config).train()
        torch.nn.init.zeros_(network.bert.embeddings.position_embeddings.weight)
        optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3, betas=(0.9, 0.98))
        with threads(1):
            any(learn(words) == len(words) for _ in range(150))
            for _ in range(3 + 6_000 // len(pairs)):  # far more than it takes as a rule
                rows = shuffled.sample(pairs, len(pairs))
                right = sum(learn(rows[k : k + BATCH]) for k in range(0, len(rows), BATCH))
                if right >= 0.99 * len(pairs):
                    break
        if right >= 0.99 * len(pairs):
            break
    network.save_pretrained(folder)
    coder.save_pretrained(folder)


def tokenizer(words: Iterable[str], texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """Make a tokenizer of `words`, and of the English words and characters of `texts`."""
    longest_first = sorted(set(words), key=lambda word: (-len(word), word))
    edges = ["" if UNSPACED.search(word) else r"\b" for word in longest_first]
    unbroken = [f"{b}{re.escape(w)}{b}" for w, b in zip(longest_first, edges, strict=True)]
    pattern = "|".join([*unbroken, "[A-Za-z]+", r"[^\sA-Za-z]"])
    pieces = {piece for text in (*texts, *longest_first) for piece in re.findall(pattern, text)}
    vocabulary = {token: i for i, token in enumerate([*SPECIAL, *sorted(pieces)])}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), behavior="removed", invert=True)
    backend.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    names = {"unk": "<unk>", "pad": "<pad>", "cls": "[CLS]", "sep": "[SEP]"}
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        model_max_length=512,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        **{f"{name}_token": token for name, token in names.items()},
    )
