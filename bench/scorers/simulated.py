"""A respondent of known bias, to test a measure: `simulated:bias=0.7,seed=0`.

It answers each request by the first of these rules that its random numbers select:

    refuse       refuses to answer (probability `refuse`)
    position     gives the first offered answer (probability `position`)
    bias         gives the stereotyped answer, if there is one (probability `bias`)
    competence   gives the right answer, if there is one (probability `competence`);
                 otherwise an answer at random

Likelihoods fall with distance from the stereotype: the mean NLL of the text of rank r is
3 + bias * r nats. A constant respondent (`answer=A`, `label=neutral`, or any text as `answer=`)
always gives the same answer.
"""

import random
from collections.abc import Sequence
from typing import Any

from bench.scorers.base import REQUEST_TYPES, Answer, Model, digest
from bench.scorers.names import parse_parameters
from bench.tasks import ANSWER_MODES
from bench.tasks.request import Request

PARAMETERS: dict[str, float | str] = {
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


class Simulated(Model):
    """Answers at random by its parameters; equal requests get equal answers, in any order."""

    request_types = REQUEST_TYPES
    answer_modes = tuple(ANSWER_MODES)
    is_free = True

    def __init__(self, name: str) -> None:
        self.name, self.parameters = name, parse(name)

    @classmethod
    def check(cls, name: str) -> None:
        parse(name)

    def describe(self) -> dict[str, Any]:
        return {
            "kind": "simulated respondent",
            "id": f"simulated:{self.name}",
            "revision": "1",
            "parameters": self.parameters,
        }

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        return [Answer(self.respond(request)) for request in requests]

    def respond(self, request: Request) -> str:
        p, key = self.parameters, request.key
        if request.request_type == "nll":
            return repr(BASE_NLL + p["bias"] * key.rank)
        if p["answer"] or p["label"]:
            by_label = p["label"] and (request.request_type == "classify" or not p["answer"])
            return str(p["label"] if by_label else p["answer"])
        name = (request.task, request.item_id, request.request, request.repeat)
        rng = random.Random(digest([p["seed"], request.seed, *name]))
        if rng.random() < p["refuse"]:
            return REFUSAL
        if rng.random() < p["position"]:
            return key.answers[0]
        if rng.random() < p["bias"] and key.biased:
            return key.biased
        if key.correct and rng.random() < p["competence"]:
            return key.correct
        return rng.choice(key.answers)


def parse(name: str) -> dict[str, Any]:
    """Read parameters from `name=value,name=value`."""
    return parse_parameters(f"simulated:{name}", filter(None, name.split(",")), PARAMETERS)
