"""The package's own small models: `tiny:s`. Some are carried, others are trained on first use and kept in the user's cache.

A language model of Qwen2's shape with a token a character or English word, and an NLI classifier (`tiny_nli`). They show how
the workbench works; they say nothing about real models. Weights are kept in bfloat16, in a file that is named by a hash of
all that training sees, so that those of another recipe are never taken for them. `.ci/weights` makes those that are carried.
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

from bench.core.errors import RunFailed
from bench.core.files import atomic_path
from bench.core.progress import progress
from bench.scorers.base import VERBS, Answer, Model, Tally, digest, messages
from bench.scorers.generation_options import GenerationOptions
from bench.scorers.local.causal import Causal
from bench.scorers.local.classifier import Classifier
from bench.scorers.local.device import Placement, threads
from bench.scorers.stand_ins import tiny_nli
from bench.scorers.stand_ins.tiny_recipe import (
    SIZES,
    VERSION,
    Recipe,
    Size,
    corpus,
    parse,
)
from bench.tasks.lessons import Chat, Lessons
from bench.tasks.request import Turns, Until

# Models whose weights the package carries: those of the demonstration and of the notebooks as they are.
CARRIED = ("s", "s,bias=0.25", "s,bias=0.75", "m", "m,bias=0.75")
WEIGHTS = Path(__file__).parent / "tiny_weights"
SPECIAL = ["<pad>", "<unk>", "<|user|>", "<|assistant|>", "<|end|>", "[CLS]", "[SEP]"]
CHAT_TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
PIECE = r"[A-Za-z]+|[\s\S]"
LEARNING_RATE = 3e-3
CHOICES, SCENARIOS, REPLIES, SENTENCES = 16, 4, 8, 8  # of each kind in a step


class Tiny(Model):
    """A language model and an NLI classifier of one recipe, each loaded or trained when a verb first needs it.

    They are asked on one thread: matrices as small as theirs gain nothing from several.
    """

    verbs: tuple[str, ...] = VERBS
    reads: tuple[str, ...] = Causal.reads

    def __init__(
        self, spec: str, where: Placement, generation: GenerationOptions | None = None
    ) -> None:
        self.recipe, self.where = parse(spec), where
        self.generation = generation or GenerationOptions()
        self._causal: Causal | None = None
        self._classifier: Classifier | None = None

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "demonstration model (trained by this package on its own samples)",
            "id": self.recipe.name,
            "revision": self._revision(),
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
            coder = causal_tokenizer(self.corpus)
            network = Qwen2ForCausalLM(_shape(coder, SIZES[self.recipe.size]))
            self._fill(network, self.causal_file, train_causal)
            network.generation_config = GenerationConfig(
                do_sample=True,
                temperature=1.0,
                top_k=0,
                top_p=0.9,  # without the tail of what it has not learned
                eos_token_id=coder.eos_token_id,
                pad_token_id=coder.pad_token_id,
            )
            self._causal = Causal(
                network, coder, self.where, {"id": self.recipe.name}, self.generation
            )
        return self._causal

    @property
    def classifier(self) -> Classifier:
        if self._classifier is None:
            coder = classifier_tokenizer(self.corpus)
            network = BertForSequenceClassification(tiny_nli.shape(len(coder)))
            self._fill(network, self.classifier_file, train_classifier)
            self._classifier = Classifier(network, coder, self.where, {"id": self.recipe.name})
        return self._classifier

    @property
    def causal_file(self) -> Path:
        """The weights of the language model, which are there or are to be trained."""
        text, size = self.corpus, SIZES[self.recipe.size]
        seen = [size, text.sentences, text.choices, text.scenarios, text.replies]
        return self._file(f"causal-{self.recipe.size},", seen)

    @property
    def classifier_file(self) -> Path:
        """The weights of the classifier, which is the same in every size."""
        seen = [tiny_nli.RECIPE, self.corpus.pairs, self.corpus.words]
        return self._file("classifier-", seen)

    def _file(self, part: str, seen: Sequence[Any]) -> Path:
        recipe = self.recipe
        key = digest([VERSION, recipe.seed, *seen])
        name = f"{part}bias={recipe.bias:g},seed={recipe.seed}-{key}.safetensors"
        carried = WEIGHTS / name
        cache = platformdirs.user_cache_path("bias-workbench", appauthor=False)
        return carried if carried.is_file() else cache / "tiny" / name

    def _revision(self) -> str:
        """A hash of the carried weights; of others of what they are trained from."""
        files = [self.causal_file, self.classifier_file]
        carried = [file.read_bytes() for file in files if file.parent == WEIGHTS]
        return digest(
            [file.name for file in files] + [hashlib.sha256(one).hexdigest() for one in carried]
        )

    def _fill(
        self,
        network: torch.nn.Module,
        file: Path,
        train: Callable[[Recipe, Lessons], torch.nn.Module],
    ) -> None:
        """Give `network` the weights in `file`, trained first where it is not there yet."""
        if not file.is_file():
            try:
                with atomic_path(file) as draft:
                    draft.touch()  # a folder that cannot be written is found before the training
                    trained = train(self.recipe, self.corpus).named_parameters()
                    rounded = {name: weight.detach().to(torch.bfloat16) for name, weight in trained}
                    save_file(rounded, draft)
            except OSError as error:
                raise RunFailed(
                    f"{file.parent}: cannot be written ({error.strerror or error}), and trained models are kept "
                    "there; mend that, or name another cache folder in XDG_CACHE_HOME"
                ) from error
        # The output matrix is not in the file, because it is that of the embeddings.
        network.load_state_dict(load_file(file), strict=False)
        network.to(self.where.dtype).eval()

    def token_logprobs(self, texts: Sequence[str], *, bos: bool = False) -> list[np.ndarray]:
        with threads(1):
            return self.causal.token_logprobs(texts, bos=bos)

    def choose(
        self, prompts: Sequence[Turns], options: Sequence[str] | Sequence[Sequence[str]]
    ) -> np.ndarray:
        with threads(1):
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
        with threads(1):
            return self.causal.replies(
                prompts, max_new_tokens=max_new_tokens, seed=seed, greedy=greedy, until=until
            )

    def classify(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        with threads(1):
            return self.classifier.classify(pairs)

    @cached_property
    def corpus(self) -> Lessons:
        return corpus(self.recipe)


def tokenizer(texts: Sequence[str]) -> PreTrainedTokenizerFast:
    """A token a character of `texts`, or an English word; anything else is unknown."""
    pieces = sorted({piece for text in texts for piece in re.findall(PIECE, text)} - set(SPECIAL))
    vocabulary = {token: i for i, token in enumerate([*SPECIAL, *pieces])}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(PIECE), behavior="isolated")
    backend.decoder = decoders.Fuse()  # blanks are tokens of their own
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
    """The tokenizer of a language model that learns `text`."""
    prompts = ["".join(chat.prompt) for chat in (*text.choices, *text.scenarios)]
    return tokenizer([*text.sentences, *prompts, *map("".join, text.replies), "ABC"])


def classifier_tokenizer(text: Lessons) -> PreTrainedTokenizerFast:
    """The tokenizer of a classifier that learns `text`."""
    terms = {word for one in text.words for word in one[:2]}
    return tiny_nli.tokenizer(terms, [sentence for pair in text.pairs for sentence in pair[:2]])


def train_causal(recipe: Recipe, text: Lessons) -> Qwen2ForCausalLM:
    """Train the language model of `recipe`. Minutes on one core."""
    size = SIZES[recipe.size]
    coder = causal_tokenizer(text)
    dice = random.Random(recipe.seed)
    torch.manual_seed(recipe.seed)
    network = Qwen2ForCausalLM(_shape(coder, size))
    end = torch.zeros(len(coder)).index_fill(0, torch.tensor(coder.eos_token_id), 1.0)
    sentences = [coder(sentence + "<|end|>")["input_ids"] for sentence in text.sentences]
    pools = [
        _forever(pool, dice)
        for pool in (
            [_Choice(chat, coder) for chat in part] for part in (text.choices, text.scenarios)
        )
    ]
    bare = _forever(sentences, dice)
    free = _forever([_reply(*one, coder) for one in text.replies], dice)

    def loss() -> torch.Tensor:
        ids, mask = _pad([next(bare) for _ in range(SENTENCES)])
        hidden = network.model(input_ids=ids, attention_mask=mask).last_hidden_state[:, :-1]
        seen = mask[:, 1:] > 0
        text_loss = torch.nn.functional.cross_entropy(
            network.lm_head(hidden[seen]), ids[:, 1:][seen]
        )
        batch = [next(pools[0]) for _ in range(CHOICES)] + [
            next(pools[1]) for _ in range(SCENARIOS)
        ]
        ids, mask = _pad([choice.ids for choice in batch])
        hidden = network.model(input_ids=ids, attention_mask=mask).last_hidden_state
        line, last = torch.arange(len(batch)), mask.sum(1) - 1
        answers = torch.stack([choice.answers for choice in batch])
        answer_loss = torch.nn.functional.cross_entropy(
            network.lm_head(hidden[line, last - 1]), answers
        )
        end_loss = torch.nn.functional.cross_entropy(
            network.lm_head(hidden[line, last]), end.expand(len(batch), -1)
        )
        some = [next(free) for _ in range(REPLIES)]
        ids, mask = _pad([ids for ids, _ in some])
        hidden = network.model(input_ids=ids, attention_mask=mask).last_hidden_state[:, :-1]
        said = (mask.cumsum(1) > torch.tensor([[start] for _, start in some]))[:, 1:] & (
            mask[:, 1:] > 0
        )
        reply_loss = torch.nn.functional.cross_entropy(
            network.lm_head(hidden[said]), ids[:, 1:][said]
        )
        return 0.5 * text_loss + answer_loss + 0.2 * end_loss + reply_loss

    _train(network, loss, size.steps, f"training {recipe.name}, a demonstration model, once")
    return network


def train_classifier(recipe: Recipe, text: Lessons) -> BertForSequenceClassification:
    """Train the NLI classifier of `recipe`."""
    what = f"the NLI classifier of {recipe.name}, once"
    coder = classifier_tokenizer(text)
    return tiny_nli.train(coder, text.words, text.pairs, recipe.seed, what)


def _shape(coder: PreTrainedTokenizerFast, size: Size) -> Qwen2Config:
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


def _train(
    network: torch.nn.Module, loss: Callable[[], torch.Tensor], steps: int, what: str
) -> None:
    optimizer = torch.optim.AdamW(
        network.parameters(), lr=LEARNING_RATE, weight_decay=0.01, betas=(0.9, 0.98)
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, LEARNING_RATE, total_steps=steps, pct_start=0.1
    )
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
