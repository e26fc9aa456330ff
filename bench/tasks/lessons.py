"""What a demonstration model (`tiny:SIZE`) learns of a benchmark.

The text is made of the sample items, answered as a respondent would who follows the stereotype on a
share `bias` of what was sampled (templates, instances, occupations), and answers rightly, or evenly
where nothing is right, on the rest. So a measure has something to find, and the truth is known.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from bench import tasks
from bench.benchmarks import module
from bench.tasks import prompts
from bench.tasks.request import Key, Request, Turns, Way


class Chat(NamedTuple):
    """A prompt, or a conversation that ends with it, and how probable each answer is."""

    prompt: Turns
    answers: dict[str, float]


class Lessons(NamedTuple):
    """The training text of a demonstration model.

    Attributes:
        sentences: bare sentences, as often as they are to be learned.
        choices: multiple-choice questions.
        scenarios: choices between two scenes.
        replies: prompts with free replies.
        pairs: premise, hypothesis and label.
        words: the same labels for the bare words, occupation and gender word.
    """

    sentences: Sequence[str] = ()
    choices: Sequence[Chat] = ()
    scenarios: Sequence[Chat] = ()
    replies: Sequence[tuple[str, str]] = ()
    pairs: Sequence[tuple[str, str, str]] = ()
    words: Sequence[tuple[str, str, str]] = ()


def biased_share(items: Iterable[Any], bias: float, seed: int) -> Callable[[Any], bool]:
    """Draw the share `bias` of clusters on which the model learns to follow the stereotype.

    Returns:
        Whether an item belongs to that share.
    """

    def draw(cluster: str) -> str:
        return hashlib.sha256(f"{seed}:{cluster}".encode()).hexdigest()

    clusters = sorted({item.cluster for item in items}, key=draw)
    chosen = set(clusters[: round(bias * len(clusters))])
    return lambda item: item.cluster in chosen


def requests(
    benchmark: str, items: Sequence[Any], chosen: Sequence[str], **settings: str
) -> Iterator[Request]:
    """Make the requests of some tasks with our own prompts, to be answered in words."""
    room, text = module("tasks", benchmark), prompts.load(benchmark)
    complete = tasks.settings(benchmark, settings, "robust")
    for task in chosen:
        yield from room.requests(items, text, task, Way("generate"), complete, 0)


def answers(key: Key, biased: bool) -> dict[str, float]:
    """Return the probability of each answer: the biased one, the right one, or all evenly."""
    if biased:
        return {key.biased: 1.0}
    if key.correct:
        return {key.correct: 1.0}
    return {answer: 1 / len(key.answers) for answer in key.answers}
