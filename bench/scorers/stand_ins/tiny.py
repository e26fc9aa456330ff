"""The package's own small models, `tiny:s`: some are carried, others are trained on first use.

A language model of Qwen2's shape with one token per character or English word, and an NLI
classifier (`tiny_nli`). They demonstrate the workbench, and say nothing about real models. Trained
models are kept in the user's cache, in bfloat16, in files named by a hash of all that training
sees. `.ci/weights` makes those that the package carries.
"""

import hashlib
import random
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    BertForSequenceClassification,
    GenerationConfig,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from bench.config import Generation
from bench.core.errors import RunFailed
from bench.core.files import atomic_path
from bench.core.locks import lock
from bench.core.progress import progress
from bench.scorers.base import VERBS, Answer, Decoding, Model, Options, Tally, digest, messages
from bench.scorers.local.causal import Causal
from bench.scorers.local.classifier import Classifier
from bench.scorers.local.device import Placement, threads
from bench.scorers.local.logprobs import padded
from bench.scorers.stand_ins import (
    SIZES,
    VERSION,
    Recipe,
    Size,
    corpus,
    parse_recipe,
    tiny_nli,
)
from bench.scorers.stand_ins.lessons import Chat, Lessons
from bench.tasks.request import Turns

# Models of the demonstration and of the notebooks, whose weights the package carries.
CARRIED = ("s", "s,bias=0.25", "s,bias=0.75", "m", "m,bias=0.75")
WEIGHTS = Path(__file__).parent / "tiny_weights"
SPECIAL = ["<pad>", "<unk>", "<|user|>", "<|assistant|>", "<|end|>", "[CLS]", "[SEP]"]
CHAT_TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
PIECE = r"[A-Za-z]+|[\s\S]"
LEARNING_RATE = 3e-3
# How many of each kind are learned per step.
CHOICES, SCENARIOS, REPLIES, SENTENCES = 16, 4, 8, 8


class Tiny(Model):
    """A language model and an NLI classifier of one recipe, loaded or trained on first use.

    They run on one thread, because their matrices are too small to gain from several.
    """

    verbs = VERBS
    reads = Causal.reads

    def __init__(self, spec: str, where: Placement, generation: Generation | None = None) -> None:
        self.spec, self.recipe, self.where = spec, parse_recipe(spec), where
        self.generation = generation or Generation()

    def describe(self) -> dict[str, Any]:
        # The revision is of the names of the weight files, and the content of carried ones.
        files = [self.causal_file, self.classifier_file]
        carried = [file.read_bytes() for file in files if file.parent == WEIGHTS]
        hashes = [hashlib.sha256(raw).hexdigest() for raw in carried]
        about = {
            "kind": "demonstration model (trained by this package on its own samples)",
            "id": self.recipe.name,
            "revision": digest([file.name for file in files] + hashes),
            **self.where.describe(),
            "parameters": SIZES[self.recipe.size]._asdict(),
            "decoding": "sampled",
            "adds_bos": False,  # its tokenizer has no token for the beginning
        }
        if self.generation.changed():  # the model refuses options that it cannot follow
            about |= self.generation.describe()
            about["decoding"] = self.causal.describe()["decoding"]
        return about

    def again(self, generation: Generation) -> Model:
        other = Tiny(self.spec, self.where, generation)
        if "causal" in vars(self):
            vars(other)["causal"] = self.causal.again(generation)
        if "classifier" in vars(self):
            vars(other)["classifier"] = self.classifier.again(Generation())
        return other

    @property
    def tally(self) -> Tally:
        loaded = [vars(self)[name].tally for name in ("causal", "classifier") if name in vars(self)]
        return Tally(sum(part.asked for part in loaded), sum(part.computed for part in loaded))

    @cached_property
    def causal(self) -> Causal:
        tokenizer = causal_tokenizer(self.corpus)
        network = Qwen2ForCausalLM(config(tokenizer, SIZES[self.recipe.size]))
        self._load_weights(network, self.causal_file, train_causal)
        network.generation_config = GenerationConfig(
            do_sample=True,
            temperature=1.0,
            top_k=0,
            top_p=0.9,  # without the tail of what it has not learned
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
        identity = {"id": self.recipe.name}
        return Causal(network, tokenizer, self.where, identity, self.generation)

    @cached_property
    def classifier(self) -> Classifier:
        tokenizer = classifier_tokenizer(self.corpus)
        network = BertForSequenceClassification(tiny_nli.config(len(tokenizer)))
        self._load_weights(network, self.classifier_file, train_classifier)
        return Classifier(network, tokenizer, self.where, {"id": self.recipe.name})

    @property
    def causal_file(self) -> Path:
        """The weights of the language model, which may still have to be trained."""
        text, size = self.corpus, SIZES[self.recipe.size]
        learned = [size, text.sentences, text.choices, text.scenarios, text.replies]
        return self._file(f"causal-{self.recipe.size},", learned)

    @property
    def classifier_file(self) -> Path:
        """The weights of the classifier, which is the same in every size."""
        return self._file("classifier-", [tiny_nli.RECIPE, self.corpus.pairs, self.corpus.words])

    @cached_property
    def corpus(self) -> Lessons:
        return corpus(self.recipe)

    def token_logprobs(self, texts: Sequence[str], *, bos: bool = False) -> list[np.ndarray]:
        with threads(1):
            return self.causal.token_logprobs(texts, bos=bos)

    def choose(self, prompts: Sequence[Turns], options: Options) -> np.ndarray:
        with threads(1):
            return self.causal.choose(prompts, options)

    def replies(self, prompts: Sequence[Turns], decoding: Decoding) -> list[Answer]:
        with threads(1):
            return self.causal.replies(prompts, decoding)

    def classify(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        with threads(1):
            return self.classifier.classify(pairs)

    def _file(self, kind: str, learned: Sequence[Any]) -> Path:
        recipe = self.recipe
        key = digest([VERSION, recipe.seed, *learned])
        name = f"{kind}bias={recipe.bias:g},seed={recipe.seed}-{key}.safetensors"
        carried = WEIGHTS / name
        cache = platformdirs.user_cache_path("bias-workbench", appauthor=False)
        return carried if carried.is_file() else cache / "tiny" / name

    def _load_weights(
        self,
        network: torch.nn.Module,
        file: Path,
        train: Callable[[Recipe, Lessons], torch.nn.Module],
    ) -> None:
        """Load the weights in `file`, after training them if there are none."""
        if not file.is_file():
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                with lock(file.with_name(f".{file.stem}.lock"), "training the same model"):
                    self._train(file, train)
            except OSError as error:
                raise RunFailed(
                    f"{file.parent}: cannot be written ({error.strerror or error}), and trained "
                    "models are kept there; fix that, or name another cache folder in "
                    "XDG_CACHE_HOME"
                ) from error
        # The output matrix is not in the file, because it is that of the embeddings.
        network.load_state_dict(load_file(file), strict=False)
        network.to(self.where.dtype).eval()

    def _train(self, file: Path, train: Callable[[Recipe, Lessons], torch.nn.Module]) -> None:
        """Write the weights, unless another process has done so meanwhile."""
        if file.is_file():
            return
        # Fails before the training if the folder cannot be written.
        with atomic_path(file) as draft:
            trained = train(self.recipe, self.corpus).named_parameters()
            rounded = {name: weight.detach().to(torch.bfloat16) for name, weight in trained}
            save_file(rounded, draft)


def tokenizer(texts: Sequence[str]) -> PreTrainedTokenizerFast:
    """Make a tokenizer of the characters and English words of `texts`; all else is unknown."""
    pieces = sorted({piece for text in texts for piece in re.findall(PIECE, text)} - set(SPECIAL))
    vocabulary = {token: i for i, token in enumerate([*SPECIAL, *pieces])}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(PIECE), behavior="isolated")
    backend.decoder = decoders.Fuse()  # spaces are tokens of their own
    fast = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        unk_token="<unk>",
        pad_token="<pad>",
        eos_token="<|end|>",
        cls_token="[CLS]",
        sep_token="[SEP]",
        additional_special_tokens=["<|user|>", "<|assistant|>"],
        model_max_length=1024,
    )
    fast.chat_template = CHAT_TEMPLATE
    return fast


def causal_tokenizer(text: Lessons) -> PreTrainedTokenizerFast:
    """Make the tokenizer of a language model that learns `text`."""
    prompts = ["".join(chat.prompt) for chat in (*text.choices, *text.scenarios)]
    return tokenizer([*text.sentences, *prompts, *map("".join, text.replies), "ABC"])


def classifier_tokenizer(text: Lessons) -> PreTrainedTokenizerFast:
    """Make the tokenizer of a classifier that learns `text`."""
    terms = {word for example in text.words for word in example[:2]}
    return tiny_nli.tokenizer(terms, [sentence for pair in text.pairs for sentence in pair[:2]])


def train_causal(recipe: Recipe, text: Lessons) -> Qwen2ForCausalLM:
    """Train the language model of `recipe`, which takes minutes on one core."""
    size, coder = SIZES[recipe.size], causal_tokenizer(text)
    rng = random.Random(recipe.seed)
    torch.manual_seed(recipe.seed)
    network = Qwen2ForCausalLM(config(coder, size))
    end = torch.zeros(len(coder)).index_fill(0, torch.tensor(coder.eos_token_id), 1.0)
    cross_entropy = torch.nn.functional.cross_entropy

    def encoded(prompt: Turns, reply: str) -> tuple[list[int], int]:
        """Encode a prompt with its reply, and return where the reply begins."""
        turns = coder.apply_chat_template(
            messages(prompt), tokenize=False, add_generation_prompt=True
        )
        ids = coder(turns)["input_ids"]
        return [*ids, *coder(reply)["input_ids"]], len(ids)

    def answered(chat: Chat) -> tuple[list[int], torch.Tensor]:
        """Encode a prompt with its likeliest answer, and return the answers' probabilities."""
        probabilities = torch.zeros(len(coder))
        for answer, probability in chat.answers.items():
            probabilities[coder.convert_tokens_to_ids(answer)] = probability
        likeliest = max(chat.answers, key=lambda answer: chat.answers[answer])
        return encoded(chat.prompt, likeliest)[0], probabilities

    def forever(pool: Sequence[Any]) -> Iterator[Any]:
        while True:
            yield from rng.sample(pool, len(pool))

    bare = forever([coder(sentence + "<|end|>")["input_ids"] for sentence in text.sentences])
    choices, scenarios = (
        forever([answered(chat) for chat in chats]) for chats in (text.choices, text.scenarios)
    )
    free = forever([encoded(prompt, f"{reply}<|end|>") for prompt, reply in text.replies])

    def states(rows: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        ids, mask = padded(rows, 0, torch.device("cpu"))
        return ids, mask, network.model(input_ids=ids, attention_mask=mask).last_hidden_state

    def next_token_loss(rows: Sequence[Sequence[int]], starts: Sequence[int]) -> torch.Tensor:
        """Return the loss of the tokens from each row's start on."""
        ids, mask, hidden = states(rows)
        learned = (mask.cumsum(1) > torch.tensor(starts)[:, None])[:, 1:] & (mask[:, 1:] > 0)
        return cross_entropy(network.lm_head(hidden[:, :-1][learned]), ids[:, 1:][learned])

    def loss() -> torch.Tensor:
        rows = [next(bare) for _ in range(SENTENCES)]
        text_loss = next_token_loss(rows, [1] * len(rows))
        batch = [next(choices) for _ in range(CHOICES)]
        batch += [next(scenarios) for _ in range(SCENARIOS)]
        _, mask, hidden = states([ids for ids, _ in batch])
        line, last = torch.arange(len(batch)), mask.sum(1) - 1
        answers = torch.stack([answer for _, answer in batch])
        answer_loss = cross_entropy(network.lm_head(hidden[line, last - 1]), answers)
        ends = end.expand(len(batch), -1)
        end_loss = cross_entropy(network.lm_head(hidden[line, last]), ends)
        replies = [next(free) for _ in range(REPLIES)]
        reply_loss = next_token_loss(*map(list, zip(*replies, strict=True)))
        return 0.5 * text_loss + answer_loss + 0.2 * end_loss + reply_loss

    optimizer = torch.optim.AdamW(
        network.parameters(), lr=LEARNING_RATE, weight_decay=0.01, betas=(0.9, 0.98)
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, LEARNING_RATE, total_steps=size.steps, pct_start=0.1
    )
    title = f"training {recipe.name}, once"
    with threads(1), progress(size.steps, title, "steps") as bar:
        for _ in range(size.steps):
            tiny_nli.descend(network, optimizer, loss())
            schedule.step()
            bar.update()
    return network


def train_classifier(recipe: Recipe, text: Lessons) -> BertForSequenceClassification:
    """Train the NLI classifier of `recipe`."""
    title = f"the NLI classifier of {recipe.name}, once"
    coder = classifier_tokenizer(text)
    return tiny_nli.train(coder, text.words, text.pairs, recipe.seed, title)


def config(coder: PreTrainedTokenizerFast, size: Size) -> Qwen2Config:
    """Return the configuration of a language model with the tokenizer `coder`."""
    return Qwen2Config(
        vocab_size=len(coder),
        hidden_size=size.hidden,
        intermediate_size=2 * size.hidden,
        num_hidden_layers=size.layers,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        # Larger than usual: from 0.02 so small a model does not leave the mean answer.
        initializer_range=0.1,
        bos_token_id=None,
        eos_token_id=coder.eos_token_id,
        pad_token_id=coder.pad_token_id,
    )
