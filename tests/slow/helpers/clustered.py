"""What workers of a cluster in another process are to do otherwise in a test: they import it from here."""

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

from distributed import WorkerPlugin

from bench.scorers.base import Answer
from bench.scorers.stand_ins.simulated import Simulated
from bench.tasks.request import Request


class Slow(WorkerPlugin):
    """A simulated respondent takes `seconds` a call, and the process of whoever is asked about `deadly` ends."""

    def __init__(self, seconds: float, deadly: str = "") -> None:
        self.seconds, self.deadly = seconds, deadly

    def setup(self, worker: Any) -> None:
        whole: Callable[..., list[Answer]] = Simulated.answer

        def answer(respondent: Simulated, requests: Sequence[Request]) -> list[Answer]:
            time.sleep(self.seconds)
            if any(request.item_id == self.deadly for request in requests):
                os._exit(1)
            return whole(respondent, requests)

        Simulated.answer = answer  # type: ignore[method-assign]


def held() -> list[str]:
    """Models that this worker has loaded."""
    from bench.run import worker

    return [wanted.model for wanted in worker._loaded]
