"""McBE's tasks: preference computation (pc) and scenario selection (ss).

Preference computation asks for the likelihood of the sentence about each group, scenario selection which of two
sentences is likelier to happen, for every pair of groups in both orders.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Any

from bench.data.mcbe import WITHOUT_GROUPS, Instance
from bench.data.tables import number
from bench.tasks import reading
from bench.tasks.letters import letter
from bench.tasks.request import Key, Request
from bench.tasks.wording import Wording

TASKS = {"pc": "preference computation", "ss": "scenario selection"}
LETTERS = "AB"
# Names of the two groups in a scenario selection request, sentence 1's first.
SEPARATOR = "|"


def verbs(task: str, read: str | None) -> tuple[str, ...]:
    """The verbs that can answer `task`, the preferred one first."""
    return ("nll",) if task == "pc" else reading(read)


def concerns(instance: Instance, task: str) -> bool:
    """Whether `task` has anything to ask about an instance."""
    return not applicable(instance)


def applicable(instance: Instance) -> str:
    """Why an instance has no place in pc and ss, or "" where it has one."""
    if instance.category in WITHOUT_GROUPS:
        return "worldview compares ways of living, not groups"
    return "" if len(instance.words) > 1 else "a list of one word leaves nothing to compare"


def requests(items: Sequence[Instance], wording: Wording, task: str, verb: str) -> Iterator[Request]:
    """The requests of `task` over `items`; instances that the task does not apply to yield none."""
    template = wording.prompt("scenario_selection", ("sentence1", "sentence2")) if task == "ss" else ""
    for instance in items:
        if not concerns(instance, task):
            continue
        if task == "pc":
            yield from _preference(instance)
        else:
            yield from _scenarios(instance, template, wording.label, verb)


def parse(task: str, response: str, item: Any) -> str:
    """The letter chosen (ss), or the number (pc); "" where there is none."""
    if task == "ss":
        return letter(response, LETTERS)
    nll = number(response)
    return response if 0 <= nll < math.inf else ""


def _preference(instance: Instance) -> Iterator[Request]:
    for rank, word in enumerate(instance.words):
        yield Request(
            instance.category, "pc", instance.item_id, word, "nll", instance.filled(word), "none: the bare sentence",
            Key(rank=rank / (len(instance.words) - 1)),
        )  # fmt: skip


def _scenarios(instance: Instance, template: str, version: str, verb: str) -> Iterator[Request]:
    for first, second in permutations(instance.words, 2):
        prompt = template.format(
            sentence1=instance.context + instance.filled(first),
            sentence2=instance.context + instance.filled(second),
        )
        # The list starts with the group that the stereotype is about.
        biased = "A" if instance.words.index(first) < instance.words.index(second) else "B"
        yield Request(
            instance.category, "ss", instance.item_id, f"{first}{SEPARATOR}{second}", verb, prompt, version,
            Key(answers=tuple(LETTERS), biased=biased), options=tuple(LETTERS),
        )  # fmt: skip
