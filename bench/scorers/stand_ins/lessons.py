"""The lessons of a demonstration model (`tiny:SIZE`) on each benchmark of this package.

The text is made of the sample items, answered as a respondent would who follows the stereotype on a
share `bias` of what was sampled (templates, instances, occupations), and answers rightly, or evenly
where nothing is right, on the rest. So a measure has something to find, and the truth is known.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from bench import tasks
from bench.benchmarks import get
from bench.tasks import prompts
from bench.tasks.request import Key, Request, Turns, Way

# The thoughts on CBBQ's questions without and with facts.
THOUGHTS = {"ambiguous": "情景里没有写明。", "disambiguous": "情景里写明了。"}
# The share of the bias that an instruction to be unbiased leaves.
INSTRUCTED = 0.5
# The questions that are learned under each of CBBQ's prompt settings: all, every third or seventh.
LEARNED_EVERY = (1, 3, 7)


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
    own, text = get(benchmark), prompts.load(benchmark)
    complete = tasks.settings(benchmark, settings, "robust")
    for task in chosen:
        yield from own.requests(items, text, task, Way("generate"), complete, 0)


def answers(key: Key, biased: bool) -> dict[str, float]:
    """Return the probability of each answer: the biased one, the right one, or all evenly."""
    if biased:
        return {key.biased: 1.0}
    if key.correct:
        return {key.correct: 1.0}
    return {answer: 1 / len(key.answers) for answer in key.answers}


def mcbe(items: Sequence[Any], bias: float, seed: int) -> Lessons:
    """Make the lessons on McBE; if the model is biased, it sees no bias in an item."""
    biased = biased_share(items, bias, seed)
    by_id = {item.item_id: item for item in items}
    # The first group is the stereotyped one.
    sentences = [
        sentence
        for item in items
        for rank, word in enumerate(item.words)
        for sentence in [item.filled(word)] * ((12 if rank == 0 else 1) if biased(item) else 3)
    ]
    scenarios = [
        Chat(request.prompt, answers(request.key, biased(by_id[request.item_id])))
        for request in requests("mcbe", items, ("ss",))
    ]
    replies = []
    # Labels are the hardest to learn, and come twice.
    for request in requests("mcbe", items, ("sc", "ba", "bs", "sc")):
        if not request.of_judge:
            follows = biased(by_id[request.item_id]) and bool(request.key.biased)
            (reply,) = answers(request.key, follows)
            # Of an analysis, the first clause.
            text = reply.partition("，")[0] if request.task == "ba" else reply
            replies.append((request.prompt, text))
    return Lessons(sentences=sentences, scenarios=scenarios, replies=replies)


def cbbq(items: Sequence[Any], bias: float, seed: int) -> Lessons:
    """Make the lessons on CBBQ.

    An instruction to be unbiased makes the model follow stereotypes half as often, so that there is
    something to find about instructions.
    """
    by_id = {item.item_id: item for item in items}
    tasks, settings = tuple(get("cbbq").tasks), get("cbbq").settings["prompting"].allowed
    choices: list[Chat] = []
    for prompting, step in zip(settings, LEARNED_EVERY, strict=True):
        biased = biased_share(items, bias if step == 1 else bias * INSTRUCTED, seed)
        chats = []
        for request in requests("cbbq", items, tasks, prompting=prompting):
            if request.request != "answer":
                continue
            then = request.then  # the choice after a thought
            asked = then(request, THOUGHTS[request.task]) if then else request
            assert asked
            chat = Chat(asked.turns, answers(request.key, biased(by_id[request.item_id])))
            chats.append(chat)
        choices += chats[::step]
    instructed = list(requests("cbbq", items, tasks, prompting=settings[-1]))
    thoughts = [
        (request.prompt, THOUGHTS[request.task])
        for request in instructed[:: LEARNED_EVERY[-1]]
        if request.request == "thought"
    ]
    return Lessons(choices=choices, replies=thoughts)


def nli_coal(items: Sequence[Any], bias: float, seed: int) -> Lessons:
    """Make the lessons on NLI-CoAL: the pairs of the three sets, and their words."""
    biased, by_id = biased_share(items, bias, seed), {item.item_id: item for item in items}
    labelled = [
        (pair, request.key.biased if biased(pair) else request.key.correct)
        for request in requests("nli_coal", items, ("ps", "as", "ns"))
        for pair in [by_id[request.item_id]]
    ]
    return Lessons(
        pairs=[(pair.premise, pair.hypothesis, label) for pair, label in labelled],
        words=sorted({(pair.occupation, pair.term, label) for pair, label in labelled}),
    )
