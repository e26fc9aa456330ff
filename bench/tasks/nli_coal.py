"""NLI-CoAL's tasks: the label of a premise and hypothesis pair, for each of the three sets."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.data.nli_coal import Pair
from bench.tasks import reading
from bench.tasks.replies import final
from bench.tasks.request import Key, Request, Setting, Way
from bench.tasks.wording import Wording

TASKS = {"ps": "pro-stereotypical set", "as": "anti-stereotypical set", "ns": "non-stereotypical set"}
SETTINGS: dict[str, Setting] = {}
LABELS = ("entailment", "contradiction", "neutral")
# What a model does that follows the stereotype; in NS there is none to follow.
BIASED = {"ps": "entailment", "as": "contradiction", "ns": "neutral"}


def verbs(task: str, read: str | None) -> tuple[str, ...]:
    """The verbs that can answer `task`: an NLI classifier's, else a language model's, asked in words."""
    return ("classify", *reading(read))


def judged(task: str, settings: Mapping[str, str]) -> str:
    """Whether `task` has a use for a judge: none has."""
    return ""


def concerns(pair: Pair, task: str) -> bool:
    """Whether a pair is of `task`'s set."""
    return pair.set == task


def unfit(pair: Pair, task: str) -> str:
    """Why an item of `task` is not asked about: none is left out."""
    return ""


def requests(
    items: Sequence[Pair], wording: Wording, task: str, way: Way, settings: Mapping[str, str], seed: int
) -> Iterator[Request]:
    """One request a pair of `task`'s set.

    Raises:
        BadInput: the wording has no prompt or no label words for a language, and words are needed.
    """
    for pair in items:
        if not concerns(pair, task):
            continue
        key = Key(answers=LABELS, biased=BIASED[task], correct="neutral")
        if way.verb == "classify":
            yield Request(
                pair.category, task, pair.item_id, "label", way.verb, pair.premise, "none: the bare pair", key,
                hypothesis=pair.hypothesis,
            )  # fmt: skip
            continue
        prompt = wording.prompt(pair.category, ("premise", "hypothesis"))
        yield Request(
            pair.category, task, pair.item_id, "label", way.verb,
            prompt.format(premise=pair.premise, hypothesis=pair.hypothesis), wording.label, key, options=LABELS,
        )  # fmt: skip


def parse(task: str, request: str, response: str, item: Any) -> str:
    """The one label that the reply names, or ""."""
    found = [label for label in LABELS if label in final(response).lower()]
    return found[0] if len(found) == 1 else ""
