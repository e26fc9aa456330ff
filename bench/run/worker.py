"""What a worker of a cluster runs: it loads a model when it is first asked, keeps it, and answers shards (`bench.run.cluster`)."""

import gc
import json
import logging
import platform
import sys
import threading
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, NamedTuple

from bench import __version__, scorers
from bench.core.errors import CONTINUES, BadInput, RunFailed
from bench.run.run_json import first_difference, packages
from bench.scorers.base import Answer, Model, Scorer, Tally
from bench.tasks.request import Request


class Wanted(NamedTuple):
    """A scorer as workers load it: the arguments of `bench.scorers.load`, the options as JSON."""

    model: str
    options: str


@dataclass(frozen=True)
class Order:
    """What a worker is told besides the requests.

    Attributes:
        keep: the scorers of the run; others that the worker holds are forgotten.
        version: the asker's version of this package, which the worker has to have.
        described: what the scorer has to be, as the worker that was asked first described it; None before.
    """

    wanted: Wanted
    keep: tuple[Wanted, ...]
    version: str
    described: dict[str, Any] | None = None


class Shown(NamedTuple):
    """What a worker says of a scorer, and of itself."""

    verbs: tuple[str, ...]
    reads: tuple[str, ...]
    described: dict[str, Any]
    worker: dict[str, Any]


class Answered(NamedTuple):
    """A shard's answers, the tokens that they took, and what the worker says of itself."""

    answers: list[Answer]
    tally: Tally
    worker: dict[str, Any]


# One thing at a time, also where a worker has several threads: they share a model and its device.
_alone = threading.RLock()
_loaded: dict[Wanted, Scorer] = {}


def show(order: Order) -> Shown:
    with _alone, _Saying():
        scorer = _scorer(order)
        return Shown(scorer.verbs, scorer.reads, scorer.describe(), _about(scorer))


def probe(order: Order, languages: list[str]) -> list[dict[str, str]]:
    with _alone, _Saying():
        scorer = _scorer(order)
        return scorer.probe(languages) if isinstance(scorer, Model) else []


def answer(order: Order, requests: list[Request]) -> Answered:
    with _alone, _Saying():
        scorer = _scorer(order)
        before = _tally(scorer)
        answers = scorer.answer(requests)
        after = _tally(scorer)
        new = Tally(
            after.asked - before.asked, after.computed - before.computed, after.read - before.read
        )
        return Answered(answers, new, _about(scorer))


def _scorer(order: Order) -> Scorer:
    """This worker's scorer, loaded once and held against what the first worker has; scorers of other runs make room."""
    if order.version != __version__:
        raise BadInput(
            f"has bias-workbench {__version__}, the asker {order.version}; install the same"
        )
    others = [wanted for wanted in _loaded if wanted not in order.keep]
    for wanted in others:
        del _loaded[wanted]
    if others and (torch := sys.modules.get("torch")):
        gc.collect()
        torch.cuda.empty_cache()
    if order.wanted not in _loaded:
        scorer = scorers.load(order.wanted.model, **json.loads(order.wanted.options))
        if order.described and (other := first_difference(order.described, scorer.describe())):
            raise BadInput(
                f"{order.wanted.model}: is not what the worker that was asked first has ({other})"
            )
        _loaded[order.wanted] = scorer
    return _loaded[order.wanted]


def _tally(scorer: Scorer) -> Tally:
    return replace(scorer.tally) if isinstance(scorer, Model) else Tally()


def _about(scorer: Scorer) -> dict[str, Any]:
    """What a worker says of itself."""
    torch = sys.modules.get("torch")
    name = (
        torch.cuda.get_device_name() if torch and torch.cuda.is_available() else platform.machine()
    )
    device = scorer.describe().get("device")
    return {"address": _address(), "device": device, "hardware": name, "packages": packages()}


def _address() -> str:
    from distributed import get_worker

    return str(get_worker().address)


class _Saying:
    """Whatever goes wrong in the block is said of this worker, in a way that travels; its log has the whole."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, BadInput):
            raise BadInput(f"worker {_address()}: {error}") from None
        if isinstance(error, Exception):
            logging.getLogger("distributed.worker").exception("bench")
            why = f"{type(error).__name__}: {first_line(error)}"
            raise RunFailed(
                f"worker {_address()}: the model did not answer ({why}); {CONTINUES}"
            ) from None


def first_line(error: BaseException) -> str:
    """The first line of an error."""
    return " ".join((str(error).strip().splitlines() or [""])[0].split()) or type(error).__name__
