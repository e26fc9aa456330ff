"""A respondent of known bias, to see what a measure makes of it: `simulated:bias=0.7,seed=0`.

It answers each request by the first of these that its dice say:

    refuse       refuses to answer (probability `refuse`)
    position     gives the answer that is offered first (probability `position`)
    bias         follows the stereotype, where an answer does (probability `bias`)
    competence   gives the right answer (probability `competence`), else one at random;
                 where no answer is right, one at random

Likelihoods fall with distance from the stereotype: the mean NLL of the text of rank r is 3 + bias * r nats. A constant
respondent (`answer=A`, `label=neutral`, or any text as `answer=`) always says the same.
"""

import random
from collections.abc import Sequence
from typing import Any

from bench.core.errors import BadInput, expected
from bench.scorers.base import VERBS, Answer, digest
from bench.tasks import READ
from bench.tasks.request import Request

PARAMETERS = {
    "bias": 0.0,
    "seed": 0,
    "position": 0.0,
    "refuse": 0.0,
    "competence": 1.0,
    "answer": "",
    "label": "",
}
REFUSAL = "抱歉，这个问题我不便回答。"
BASE_NLL = 3.0


class Simulated:
    """Answers as the dice of its parameters fall; the same request gets the same answer, in any order."""

    verbs: tuple[str, ...] = VERBS
    reads: tuple[str, ...] = tuple(READ)

    def __init__(self, spec: str) -> None:
        self.spec = spec
        self.parameters = parse(spec)

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "simulated respondent",
            "id": f"simulated:{self.spec}",
            "revision": "1",
            "parameters": self.parameters,
        }

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        return [Answer(self.respond(request)) for request in requests]

    def respond(self, request: Request) -> str:
        """The answer to one request."""
        p, key = self.parameters, request.key
        if request.verb == "nll":
            return repr(BASE_NLL + p["bias"] * key.rank)
        if p["answer"] or p["label"]:
            return str(
                p["label"]
                if request.verb == "classify" and p["label"]
                else p["answer"] or p["label"]
            )
        dice = random.Random(
            digest(
                [
                    p["seed"],
                    request.seed,
                    request.task,
                    request.item_id,
                    request.request,
                    request.repeat,
                ]
            )
        )
        if dice.random() < p["refuse"]:
            return REFUSAL
        if dice.random() < p["position"]:
            return key.answers[0]
        if dice.random() < p["bias"] and key.biased:
            return key.biased
        if key.correct and dice.random() < p["competence"]:
            return key.correct
        return dice.choice(key.answers)


def parse(spec: str) -> dict[str, Any]:
    """Parameters from `name=value,name=value`.

    Raises:
        BadInput: an unknown name, or a rate outside 0 to 1.
    """
    values: dict[str, Any] = dict(PARAMETERS)
    for part in filter(None, spec.split(",")):
        name, equals, value = part.partition("=")
        if name not in PARAMETERS or not equals:
            raise BadInput(f"model simulated:{spec}: " + expected(name, PARAMETERS, "parameter"))
        if isinstance(PARAMETERS[name], str):
            values[name] = value
            continue
        try:
            values[name] = int(value) if name == "seed" else float(value)
        except ValueError:
            raise BadInput(f"model simulated:{spec}: {name}={value!r} is not a number") from None
        if name != "seed" and not 0 <= values[name] <= 1:
            raise BadInput(f"model simulated:{spec}: {name}={value} is outside 0 to 1")
    return values
