"""What worker processes of a cluster do differently in a test: they import it from here."""

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

from distributed import WorkerPlugin

from bench.run import cluster
from bench.scorers.base import Answer
from bench.scorers.stand_ins.simulated import Simulated
from bench.tasks.request import Request


class Slow(WorkerPlugin):
    """Let simulated respondents take `seconds` per call, and end the process at item `deadly`."""

    def __init__(self, seconds: float, deadly: str = "") -> None:
        self.seconds, self.deadly = seconds, deadly

    def setup(self, worker: Any) -> None:
        original: Callable[..., list[Answer]] = Simulated.answer

        def answer(respondent: Simulated, requests: Sequence[Request]) -> list[Answer]:
            time.sleep(self.seconds)
            if any(request.item_id == self.deadly for request in requests):
                os._exit(1)
            return original(respondent, requests)

        Simulated.answer = answer  # type: ignore[method-assign]


def loaded_models() -> list[str]:
    """Return the models that this worker has loaded."""
    return [scorer.model for scorer in cluster.WORKER.loaded]
