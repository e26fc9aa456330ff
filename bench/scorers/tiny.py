"""The package's own small models, trained on first use and kept in the user's cache folder: `tiny:s`.

A language model of Qwen2's shape with a token a character or English word, and an NLI classifier (`tiny_nli`), each made
when it is first asked for. They show how the workbench works; they say nothing about real models.
"""

import os
import random
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs
import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    BertForSequenceClassification,
    GenerationConfig,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from bench.errors import RunFailed
from bench.progress import progress
from bench.scorers import tiny_nli
from bench.scorers.base import VERBS, Answer, Model, Tally, digest, messages
from bench.scorers.causal import Causal
from bench.scorers.checkpoint import Placement, threads
from bench.scorers.classifier import Classifier
from bench.scorers.generation_options import GenerationOptions
from bench.scorers.tiny_recipe import SIZES, VERSION, Chat, Corpus, Recipe, Size, corpus, parse
from bench.tasks.request import Turns, Until

SPECIAL = ["<pad>", "<unk>", "<|user|>", "<|assistant|>", "<|end|>", "[CLS]", "[SEP]"]
CHAT_TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
PIECE = r"[A-Za-z]+|[\s\S]"
LEARNING_RATE = 3e-3
CHOICES, SCENARIOS, REPLIES, SENTENCES = 16, 4, 8, 8  # of each kind in a step


class Tiny(Model):
    """A language model and an NLI classifier of one recipe, each loaded or trained when a verb first needs it."""

    verbs: tuple[str, ...] = VERBS
    reads: tuple[str, ...] = Causal.reads

    def __init__(self, spec: str, where: Placement, generation: GenerationOptions | None = None) -> None:
        self.recipe, self.where = parse(spec), where
        self.generation = generation or GenerationOptions()
        self._text: Corpus | None = None
        self._causal: Causal | None = None
        self._classifier: Classifier | None = None

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "demonstration model (trained by this package on its own samples)",
            "id": self.recipe.name,
            "revision": self._key(),
            **self.where.describe(),
            "parameters": SIZES[self.recipe.size]._asdict(),
            "decoding": "sampled",
            "adds_bos": False,  # its tokenizer has no token for the beginning
            **self._options(),
        }

    def _options(self) -> dict[str, Any]:
        """The options of generation that were given, after refusing those that the model cannot follow."""
        given = self.generation.describe()
        return {**given, "decoding": self.causal.describe()["decoding"]} if given else {}

    @property
    def tally(self) -> Tally:  # type: ignore[override]
        parts = [part.tally for part in (self._causal, self._classifier) if part]
        return Tally(sum(part.asked for part in parts), sum(part.computed for part in parts))

    @property
    def causal(self) -> Causal:
        if self._causal is None:
            folder = self._made("causal", train_causal)
            network = Qwen2ForCausalLM.from_pretrained(folder, dtype=self.where.dtype).eval()
            self._causal = Causal(
                network,
                PreTrainedTokenizerFast.from_pretrained(folder),
                self.where,
                {"id": self.recipe.name},
                self.generation,
            )
        return self._causal

    @property
    def classifier(self) -> Classifier:
        if self._classifier is None:
            folder = self._made("classifier", train_classifier)
            network = BertForSequenceClassification.from_pretrained(folder, dtype=self.where.dtype).eval()
            tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
            self._classifier = Classifier(network, tokenizer, self.where, {"id": self.recipe.name})
        return self._classifier

    def token_logprobs(self, texts: Sequence[str], *, bos: bool = False) -> list[np.ndarray]:
        return self.causal.token_logprobs(texts, bos=bos)

    def choose(
        self, prompts: Sequence[Turns], options: Sequence[str] | Sequence[Sequence[str]]
    ) -> np.ndarray:
        return self.causal.choose(prompts, options)

    def replies(
        self,
        prompts: Sequence[Turns],
        *,
        max_new_tokens: int,
        seed: int | Sequence[int],
        greedy: bool,
        until: Until,
    ) -> list[Answer]:
        return self.causal.replies(
            prompts, max_new_tokens=max_new_tokens, seed=seed, greedy=greedy, until=until
        )

    def classify(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        return self.classifier.classify(pairs)

    def _corpus(self) -> Corpus:
        if self._text is None:
            self._text = corpus(self.recipe)
        return self._text

    def _key(self) -> str:
        return digest([VERSION, self.recipe.name, SIZES[self.recipe.size], self._corpus()])

    def _made(self, part: str, train: Callable[[Recipe, Corpus, Path], None]) -> Path:
        """The folder of a trained part, made first where it is not there yet."""
        folder = (
            platformdirs.user_cache_path("bias-workbench", appauthor=False) / "tiny" / f"{self._key()}-{part}"
        )
        if not folder.is_dir():
            try:
                folder.parent.mkdir(parents=True, exist_ok=True)
                # Made beside its final place and renamed, so that a half-made model is never taken for one.
                draft = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".draft-"))
            except OSError as error:
                raise RunFailed(
                    f"{folder.parent}: cannot be written ({error.strerror or error}), and trained models are kept "
                    "there; mend that, or name another cache folder in XDG_CACHE_HOME"
                ) from error
            try:
                train(self.recipe, self._corpus(), draft)
                with suppress(OSError):  # another process was faster, with the same result
                    os.rename(draft, folder)
            finally:
                shutil.rmtree(draft, ignore_errors=True)
        return folder


def tokenizer(texts: Sequence[str]) -> PreTrainedTokenizerFast:
    """A token a character of `texts`, or an English word; anything else is unknown."""
    pieces = sorted({piece for text in texts for piece in re.findall(PIECE, text)} - set(SPECIAL))
    vocabulary = {token: i for i, token in enumerate([*SPECIAL, *pieces])}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(PIECE), behavior="isolated")
    backend.decoder = decoders.Fuse()  # blanks are tokens of their own
    fast = PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token="<unk>", pad_token="<pad>", eos_token="<|end|>", cls_token="[CLS]",
        sep_token="[SEP]", additional_special_tokens=["<|user|>", "<|assistant|>"], model_max_length=1024,
    )  # fmt: skip
    fast.chat_template = CHAT_TEMPLATE
    return fast


def train_causal(recipe: Recipe, text: Corpus, folder: Path) -> None:
    """Train the language model of `recipe` and save it with its tokenizer. Seconds to a minute on one core."""
    size = SIZES[recipe.size]
    chats = [*text.choices, *text.scenarios]
    prompts = ["".join(chat.prompt) for chat in chats]
    coder = tokenizer([*text.sentences, *prompts, *map("".join, text.replies), "ABC"])
    dice = random.Random(recipe.seed)
    torch.manual_seed(recipe.seed)
    network = Qwen2ForCausalLM(_shape(coder, size))
    end = torch.zeros(len(coder)).index_fill(0, torch.tensor(coder.eos_token_id), 1.0)
    sentences = [coder(sentence + "<|end|>")["input_ids"] for sentence in text.sentences]
    pools = [
        _forever(pool, dice)
        for pool in ([_Choice(chat, coder) for chat in part] for part in (text.choices, text.scenarios))
    ]
    bare = _forever(sentences, dice)
    free = _forever([_reply(*one, coder) for one in text.replies], dice)

    def loss() -> torch.Tensor:
        ids, mask = _pad([next(bare) for _ in range(SENTENCES)])
        hidden = network.model(input_ids=ids, attention_mask=mask).last_hidden_state[:, :-1]
        seen = mask[:, 1:] > 0
        text_loss = torch.nn.functional.cross_entropy(network.lm_head(hidden[seen]), ids[:, 1:][seen])
        batch = [next(pools[0]) for _ in range(CHOICES)] + [next(pools[1]) for _ in range(SCENARIOS)]
        ids, mask = _pad([choice.ids for choice in batch])
        hidden = network.model(input_ids=ids, attention_mask=mask).last_hidden_state
        line, last = torch.arange(len(batch)), mask.sum(1) - 1
        answers = torch.stack([choice.answers for choice in batch])
        answer_loss = torch.nn.functional.cross_entropy(network.lm_head(hidden[line, last - 1]), answers)
        end_loss = torch.nn.functional.cross_entropy(
            network.lm_head(hidden[line, last]), end.expand(len(batch), -1)
        )
        some = [next(free) for _ in range(REPLIES)]
        ids, mask = _pad([ids for ids, _ in some])
        hidden = network.model(input_ids=ids, attention_mask=mask).last_hidden_state[:, :-1]
        said = (mask.cumsum(1) > torch.tensor([[start] for _, start in some]))[:, 1:] & (mask[:, 1:] > 0)
        reply_loss = torch.nn.functional.cross_entropy(network.lm_head(hidden[said]), ids[:, 1:][said])
        return 0.5 * text_loss + answer_loss + 0.2 * end_loss + reply_loss

    _train(network, loss, size.steps, f"training {recipe.name}, a demonstration model, once")
    network.generation_config = GenerationConfig(
        do_sample=True,
        temperature=1.0,
        top_k=0,
        top_p=0.9,  # without the tail of what it has not learned
        eos_token_id=coder.eos_token_id,
        pad_token_id=coder.pad_token_id,
    )
    network.save_pretrained(folder)
    coder.save_pretrained(folder)


def train_classifier(recipe: Recipe, text: Corpus, folder: Path) -> None:
    """Train the NLI classifier of `recipe` and save it with its tokenizer."""
    whole = {word for one in text.words for word in one[:2]}
    coder = tiny_nli.tokenizer(whole, [sentence for pair in text.pairs for sentence in pair[:2]])
    what = f"the NLI classifier of {recipe.name}, once"
    network = tiny_nli.train(coder, text.words, text.pairs, recipe.seed, what)
    network.save_pretrained(folder)
    coder.save_pretrained(folder)


def _shape(coder: PreTrainedTokenizerFast, size: Size) -> Qwen2Config:
    return Qwen2Config(
        vocab_size=len(coder), hidden_size=size.hidden, intermediate_size=2 * size.hidden, num_hidden_layers=size.layers,
        num_attention_heads=4, num_key_value_heads=4, max_position_embeddings=1024, tie_word_embeddings=True,
        # Larger than usual: from 0.02 so small a model does not leave the mean answer.
        initializer_range=0.1, bos_token_id=None, eos_token_id=coder.eos_token_id, pad_token_id=coder.pad_token_id,
    )  # fmt: skip


def _turn(prompt: Turns, coder: PreTrainedTokenizerFast) -> list[int]:
    text = coder.apply_chat_template(messages(prompt), tokenize=False, add_generation_prompt=True)
    return list(coder(text)["input_ids"])


def _reply(prompt: str, reply: str, coder: PreTrainedTokenizerFast) -> tuple[list[int], int]:
    """A prompt with its reply encoded, and where the reply begins."""
    ids = _turn(prompt, coder)
    return [*ids, *coder(reply + "<|end|>")["input_ids"]], len(ids)


class _Choice:
    """A chat encoded for training: prompt and the likeliest answer's token, and the answers' probabilities."""

    def __init__(self, chat: Chat, coder: PreTrainedTokenizerFast) -> None:
        tokens = {answer: coder.convert_tokens_to_ids(answer) for answer in chat.answers}
        self.ids = [
            *_turn(chat.prompt, coder),
            tokens[max(chat.answers, key=lambda answer: chat.answers[answer])],
        ]
        self.answers = torch.zeros(len(coder))
        for answer, probability in chat.answers.items():
            self.answers[tokens[answer]] = probability


def _train(network: torch.nn.Module, loss: Callable[[], torch.Tensor], steps: int, what: str) -> None:
    optimizer = torch.optim.AdamW(
        network.parameters(), lr=LEARNING_RATE, weight_decay=0.01, betas=(0.9, 0.98)
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LEARNING_RATE, total_steps=steps, pct_start=0.1)
    with threads(1), progress(steps, what, "steps") as bar:
        for _ in range(steps):
            optimizer.zero_grad()
            loss().backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            bar.advance()


def _forever(pool: Sequence[Any], dice: random.Random) -> Iterator[Any]:
    while True:
        yield from dice.sample(pool, len(pool))


def _pad(rows: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    width = max(map(len, rows))
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for k, row in enumerate(rows):
        ids[k, : len(row)], mask[k, : len(row)] = torch.tensor(row), 1
    return ids, mask
