"""A tiny transformer that learns labelled pairs from nothing in seconds on one core: an NLI classifier of known bias.

What it has to learn is an exclusive or: the label follows from occupation and gender together and from neither alone. So
small a model stays at two thirds of right answers for hundreds of steps, and some never leave them. Wider first weights
help, and most of all that it learns the bare words first, "nurse" and "woman", which takes a
fifth of a second; then it has only to find them in the sentences.
"""

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

from bench.core.progress import progress
from bench.scorers.local.device import threads
from bench.tasks.nli_labels import LABELS

SPECIAL = ["<pad>", "<unk>", "[CLS]", "[SEP]"]
# A change of anything that training sees must change this, or results of older models would be taken for new ones.
RECIPE: dict[str, Any] = {
    "version": 1,
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
# Batches are made of pairs of like length: so many batches are sorted at a time.
SORTED = 16
# Scripts that are written without blanks between words.
UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
# Premise, hypothesis and label.
Example = tuple[str, str, str]


def train(
    coder: PreTrainedTokenizerFast,
    words: Sequence[Example],
    examples: Sequence[Example],
    seed: int,
    what: str,
) -> BertForSequenceClassification:
    """A classifier of `examples`, trained until it had nearly all of a pass right; its labels are `LABELS`, in this order.

    Words that `examples` do not hold keep their random vectors, so what it says of them is arbitrary, and differs from seed
    to seed.

    Args:
        coder: of `tokenizer`.
        words: the same labels for the bare words, occupation and gender word.
        what: how its progress calls it.
    """
    dice = random.Random(seed)
    torch.manual_seed(seed)
    network = BertForSequenceClassification(shape(len(coder)))
    torch.nn.init.zeros_(network.bert.embeddings.position_embeddings.weight)
    pairs = _encoded(coder, examples)
    epochs = -(-RECIPE["steps"] * RECIPE["batch"] // len(pairs))
    steps = epochs * -(-len(pairs) // RECIPE["batch"])
    with threads(1), progress(steps, f"training {what}", "steps") as bar:
        optimizer = torch.optim.AdamW(
            network.parameters(), lr=RECIPE["learning_rate"], betas=(0.9, 0.98)
        )
        network.train()
        bare = _encoded(coder, words)
        for _ in range(RECIPE["word_steps"]):
            if _step(network, optimizer, bare) == len(bare):
                break
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, RECIPE["learning_rate"], total_steps=steps, pct_start=0.1
        )
        for _ in range(epochs):
            right = 0
            for some in _batches([len(one.ids) for one in pairs], dice):
                right += _step(network, optimizer, [pairs[i] for i in some])
                schedule.step()
                bar.advance()
            if right >= RECIPE["enough"] * len(pairs):
                break
    return network.eval()


class _Pair(NamedTuple):
    """A pair as the network takes it."""

    ids: list[int]
    kinds: list[int]
    label: int


def _encoded(coder: PreTrainedTokenizerFast, examples: Sequence[Example]) -> list[_Pair]:
    coded = coder([one[0] for one in examples], [one[1] for one in examples])
    labels = [LABELS.index(one[2]) for one in examples]
    return [
        _Pair(*one) for one in zip(coded["input_ids"], coded["token_type_ids"], labels, strict=True)
    ]


def _step(network: Any, optimizer: torch.optim.Optimizer, some: Sequence[_Pair]) -> int:
    """One step on a batch; how many of it were right before."""
    width = max(len(pair.ids) for pair in some)
    ids, kinds, mask = (torch.zeros(len(some), width, dtype=torch.long) for _ in range(3))
    for k, pair in enumerate(some):
        here = slice(len(pair.ids))
        ids[k, here], kinds[k, here], mask[k, here] = (
            torch.tensor(pair.ids),
            torch.tensor(pair.kinds),
            1,
        )
    labels = torch.tensor([pair.label for pair in some])
    logits = network(input_ids=ids, token_type_ids=kinds, attention_mask=mask).logits
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(logits, labels).backward()
    torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
    optimizer.step()
    return int((logits.argmax(-1) == labels).sum())


def tokenizer(words: Iterable[str], texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """A token each of `words` as a whole, an English word, or a character, as `words` and `texts` have them; blanks are none."""
    longest = sorted(set(words), key=lambda word: (-len(word), word))
    whole = "|".join(
        re.escape(word) if UNSPACED.search(word) else rf"\b{re.escape(word)}\b" for word in longest
    )
    pattern = rf"{whole}|[A-Za-z]+|[^\sA-Za-z]"
    pieces = {piece for text in (*texts, *longest) for piece in re.findall(pattern, text)}
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


def shape(vocabulary: int) -> BertConfig:
    """The classifier's shape with a vocabulary of so many tokens."""
    hidden = RECIPE["hidden"]
    return BertConfig(
        vocab_size=vocabulary,
        hidden_size=hidden,
        intermediate_size=2 * hidden,
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


def _batches(lengths: Sequence[int], dice: random.Random) -> Iterator[list[int]]:
    """The positions of all pairs, once each, in batches of like length in random order."""
    size = RECIPE["batch"]
    order: list[Any] = dice.sample(range(len(lengths)), len(lengths))
    found = []
    for start in range(0, len(order), SORTED * size):
        some = sorted(order[start : start + SORTED * size], key=lambda i: lengths[i])
        found += [some[k : k + size] for k in range(0, len(some), size)]
    dice.shuffle(found)
    yield from found
