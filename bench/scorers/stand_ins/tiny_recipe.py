"""What the package's own small models are made from: `tiny:SIZE,bias=B,seed=N`.

They are demonstration models. Their text is the samples of this package, answered as a respondent would who follows the
stereotype on a share `bias` of what was sampled (templates, instances, occupations), and answers rightly, or evenly
where nothing is right, on the rest. So a measure has something to find, and the truth is known.
"""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from bench import data, tasks
from bench.benchmarks import module
from bench.core.errors import BadInput, expected
from bench.tasks import prompts
from bench.tasks.cbbq import PROMPTING
from bench.tasks.request import Key, Request, Turns, Way

# A change of anything that training sees must change this, or caches of older models would be taken for new ones.
VERSION = 6
# An instruction to be unbiased, with or without thinking aloud, makes a model follow stereotypes on this part of what it
# would without, so that there is something to find about instructions.
INSTRUCTED = 0.5
# Of the questions under each prompt setting, every so manieth is learned: the later ones cost more, and teach the same.
EVERY = (1, 3, 7)
# What it thinks of a question with and without facts.
THOUGHTS = {"ambiguous": "情景里没有写明。", "disambiguous": "情景里写明了。"}


class Size(NamedTuple):
    """Shape of the language model and length of its training."""

    hidden: int
    layers: int
    steps: int


SIZES = {"s": Size(96, 1, 400), "m": Size(128, 1, 340), "l": Size(128, 2, 220)}


@dataclass(frozen=True)
class Recipe:
    """A tiny model's parameters."""

    size: str
    bias: float = 0.5
    seed: int = 0

    @property
    def name(self) -> str:
        return f"tiny:{self.size},bias={self.bias:g},seed={self.seed}"


class Chat(NamedTuple):
    """A prompt, or a conversation that ends with it, and how probable each answer is."""

    prompt: Turns
    answers: dict[str, float]


class Corpus(NamedTuple):
    """All that a tiny model is trained on: bare sentences, choices, prompts with replies, and labelled NLI pairs.

    `words` are the same labels for the bare words, occupation and gender word.
    """

    sentences: list[str]
    choices: list[Chat]
    scenarios: list[Chat]
    replies: list[tuple[str, str]]
    pairs: list[tuple[str, str, str]]
    words: list[tuple[str, str, str]]


def parse(spec: str) -> Recipe:
    """A recipe from `SIZE` or `SIZE,bias=B,seed=N`.

    Raises:
        BadInput: an unknown size or name, or a bias outside 0 to 1.
    """
    size, *rest = spec.split(",")
    if size not in SIZES:
        raise BadInput(f"model tiny:{spec}: " + expected(size, SIZES, "size"))
    values: dict[str, Any] = {}
    for part in rest:
        name, _, value = part.partition("=")
        if name not in ("bias", "seed"):
            raise BadInput(f"model tiny:{spec}: " + expected(name, ("bias", "seed"), "parameter"))
        try:
            values[name] = int(value) if name == "seed" else float(value)
        except ValueError:
            raise BadInput(f"model tiny:{spec}: {name}={value!r} is not a number") from None
    if not 0 <= values.get("bias", 0) <= 1:
        raise BadInput(f"model tiny:{spec}: bias={values['bias']:g} is outside 0 to 1")
    return Recipe(size, **values)


def corpus(recipe: Recipe) -> Corpus:
    """The training text of `recipe`, from the samples that the package carries."""
    loaded = {
        name: data.load(data.Source(name, data.SAMPLES / name, "", "", "", ""))
        for name in ("mcbe", "cbbq", "nli_coal")
    }
    return Corpus(
        sentences=list(_sentences(loaded["mcbe"], recipe)),
        choices=[
            chat
            for prompting, step in zip(PROMPTING, EVERY, strict=True)
            for chat in list(_choices(loaded["cbbq"], recipe, prompting))[::step]
        ],
        scenarios=list(_scenarios(loaded["mcbe"], recipe)),
        replies=[*_replies(loaded["mcbe"], recipe), *_thoughts(loaded["cbbq"])],
        pairs=[
            (pair.premise, pair.hypothesis, label)
            for pair, label in _labelled(loaded["nli_coal"], recipe)
        ],
        words=sorted(
            {
                (pair.occupation, pair.term, label)
                for pair, label in _labelled(loaded["nli_coal"], recipe)
            }
        ),
    )


def biased_share(items: Iterable[Any], recipe: Recipe) -> Callable[[Any], bool]:
    """Whether an item belongs to the share `bias` of clusters on which the model learns to follow the stereotype."""

    def draw(cluster: str) -> str:
        return hashlib.sha256(f"{recipe.seed}:{cluster}".encode()).hexdigest()

    clusters = sorted({item.cluster for item in items}, key=draw)
    chosen = set(clusters[: round(recipe.bias * len(clusters))])
    return lambda item: item.cluster in chosen


def _sentences(items: list[Any], recipe: Recipe) -> Iterable[str]:
    """Each instance's sentence about each of its groups: evenly often, or mostly about the first one."""
    biased = biased_share(items, recipe)
    for instance in items:
        for rank, word in enumerate(instance.words):
            times = (12 if rank == 0 else 1) if biased(instance) else 3
            yield from [instance.filled(word)] * times


def _scenarios(items: list[Any], recipe: Recipe) -> Iterable[Chat]:
    biased = biased_share(items, recipe)
    by_id = {item.item_id: item for item in items}
    for request in _requests("mcbe", items, ("ss",)):
        yield Chat(request.prompt, _answers(request.key, biased(by_id[request.item_id])))


def _choices(items: list[Any], recipe: Recipe, prompting: str) -> Iterable[Chat]:
    """Every multiple-choice question under a prompt setting."""
    share = recipe.bias * (1 if prompting == PROMPTING[0] else INSTRUCTED)
    biased = biased_share(items, replace(recipe, bias=share))
    by_id = {item.item_id: item for item in items}
    for request in _requests("cbbq", items, tuple(THOUGHTS), prompting=prompting):
        asked: Request | None = request
        if request.then:  # the choice behind a thought
            asked = request.then(request, THOUGHTS[request.task])
        elif request.request != "answer":
            continue
        assert asked
        yield Chat(asked.turns, _answers(request.key, biased(by_id[request.item_id])))


def _thoughts(items: list[Any]) -> Iterable[tuple[str, str]]:
    """What is thought of some of the questions, which is easy to learn."""
    for request in list(_requests("cbbq", items, tuple(THOUGHTS), prompting=PROMPTING[-1]))[::7]:
        if request.request == "thought":
            yield request.prompt, THOUGHTS[request.task]


def _replies(items: list[Any], recipe: Recipe) -> Iterable[tuple[str, str]]:
    """Free replies: a label, a severity, the first clause of an analysis; where biased, no bias is seen."""
    biased = biased_share(items, recipe)
    by_id = {item.item_id: item for item in items}
    # Labels are the hardest to learn, and come twice.
    for request in _requests("mcbe", items, ("sc", "ba", "bs", "sc")):
        if not request.of_judge:
            (reply,) = _answers(
                request.key, biased(by_id[request.item_id]) and bool(request.key.biased)
            )
            yield request.prompt, reply.partition("，")[0] if request.task == "ba" else reply


def _requests(
    benchmark: str, items: list[Any], chosen: tuple[str, ...], **given: str
) -> Iterable[Request]:
    room, text = module("tasks", benchmark), prompts.load(benchmark)
    settings = tasks.settings(benchmark, given, "robust")
    for task in chosen:
        yield from room.requests(items, text, task, Way("generate"), settings, 0)


def _answers(key: Key, biased: bool) -> dict[str, float]:
    if biased:
        return {key.biased: 1.0}
    return (
        {key.correct: 1.0}
        if key.correct
        else {answer: 1 / len(key.answers) for answer in key.answers}
    )


def _labelled(items: list[Any], recipe: Recipe) -> Iterable[tuple[Any, str]]:
    """The pairs of NLI-CoAL's three sets with the labels to learn."""
    biased = biased_share(items, recipe)
    for task in ("ps", "as", "ns"):
        labels = module("tasks", "nli_coal").BIASED
        for pair in items:
            if pair.set == task:
                yield pair, labels[task] if biased(pair) else "neutral"
