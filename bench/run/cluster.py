"""Ask models on the workers of a Dask cluster; shards go there, and answers come back.

A worker loads a model when it is first asked and keeps it; the process that asks needs neither the
model's files nor a GPU. Dask gives the shards of a lost worker to another one. Requests and answers
travel as pickles, so whoever can reach the scheduler can run code on the workers and here.
"""

import gc
import json
import logging
import platform
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Self

from bench import __version__, scorers
from bench.core.errors import CONTINUES, BadInput, RunFailed
from bench.core.progress import say
from bench.run.run_json import first_difference, packages
from bench.scorers.base import Answer, Model, Scorer, Tally
from bench.scorers.local import file_hash
from bench.tasks.request import Request

# Seconds within which a scheduler has to answer.
CONNECT = 10.0
# Seconds between two looks at which workers there are, and without any until the run gives up.
EVERY, PATIENCE = 5.0, 3600.0
# Shards per worker that are sent at a time: one that it computes, and one that waits.
AHEAD = 2
# Number of a task that is about a model, not about a shard.
NO_SHARD = -1


class ShardTask(NamedTuple):
    """What a worker has to do.

    Attributes:
        model, options: the arguments of `bench.scorers.load`, the options as JSON.
        keep: all models of the run with their options; the worker forgets others.
        described: what the first worker said of the model, which has to be the same; {} before.
        requests: the requests to answer.
        probe: languages of an NLI probe; see `bench.scorers.base.Model.probe`.
        version: of this package, which has to be the worker's.
    """

    model: str
    options: str
    keep: tuple[tuple[str, str], ...]
    described: dict[str, Any]
    requests: Sequence[Request] = ()
    probe: Sequence[str] = ()
    version: str = __version__


class ShardResult(NamedTuple):
    """What a worker says of its scorer and of itself, its answers, and the tokens they took."""

    verbs: tuple[str, ...]
    reads: tuple[str, ...]
    described: dict[str, Any]
    worker: dict[str, Any]
    answers: list[Answer]
    probe: list[dict[str, str]]
    tally: Tally


# What a worker process has loaded, by model and options, and the lock of its one task at a time.
LOADED: dict[tuple[str, str], Scorer] = {}
_LOCK = threading.Lock()


def work(task: ShardTask) -> ShardResult:
    """Do a task on a worker; the worker's log has the traceback of a failure."""
    address = _address()
    try:
        with _LOCK:
            return _work(task, address)
    except BadInput as error:
        raise BadInput(f"worker {address}: {error}") from None
    except Exception as error:  # of a class that this process may not have
        logging.getLogger("distributed.worker").exception("bench")
        reason = f"{type(error).__name__}: {_first_line(error)}"
        raise RunFailed(
            f"worker {address}: the model did not answer ({reason}); {CONTINUES}"
        ) from None


def _work(task: ShardTask, address: str) -> ShardResult:
    if task.version != __version__:
        raise BadInput(
            f"has bias-workbench {__version__}, the asker {task.version}; install the same"
        )
    torch = sys.modules.get("torch")
    if others := LOADED.keys() - set(task.keep):
        for key in others:
            del LOADED[key]
        if torch:
            gc.collect()
            torch.cuda.empty_cache()
    key = task.model, task.options
    scorer = LOADED.get(key) or scorers.load(task.model, **json.loads(task.options))
    model = scorer if isinstance(scorer, Model) else None
    if model:
        model.resume(task.described)
    if key not in LOADED:
        if task.described and (other := first_difference(task.described, scorer.describe())):
            raise BadInput(f"{task.model}: is not what the first worker has ({other})")
        LOADED[key] = scorer
    before = replace(model.tally) if model else Tally()
    answers = scorer.answer(task.requests) if task.requests else []
    described, torch = scorer.describe(), sys.modules.get("torch")
    has_gpu = torch is not None and torch.cuda.is_available()
    worker = {
        "address": address,
        "device": described.get("device"),
        "hardware": torch.cuda.get_device_name() if torch and has_gpu else platform.machine(),
        "packages": packages(),
    }
    probe = model.probe(task.probe) if model and task.probe else []
    after = model.tally if model else before
    tally = Tally(*(getattr(after, name) - getattr(before, name) for name in Tally.__slots__))
    return ShardResult(scorer.verbs, scorer.reads, described, worker, answers, probe, tally)


def _address() -> str:
    from distributed import get_worker

    return str(get_worker().address)


def _first_line(error: BaseException) -> str:
    return " ".join(str(error).strip().partition("\n")[0].split()) or type(error).__name__


class Cluster:
    """The workers of a Dask scheduler; it is connected to when it is first needed.

    Args:
        address: of the scheduler, like `tcp://10.0.0.1:8786`.
        resources: what a worker has to offer for each shard, like `{"GPU": 1}`.
    """

    def __init__(self, address: str, resources: Mapping[str, float] | None = None) -> None:
        self.address, self.resources = address, check_resources(resources or {})
        # What the workers that have answered run on, each kind once.
        self.workers: list[dict[str, Any]] = []
        self.models: list[tuple[str, str]] = []
        self._client: Any = None
        self._alone_since: float | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._client is not None:
            with suppress(Exception):  # the scheduler may be gone
                self._client.close(timeout=EVERY)

    def asks(self, model: str) -> bool:
        """Return whether workers ask `model`; files and endpoints are asked from here."""
        if scorers.split_kind(model)[0] in (*scorers.FILES, "openai"):
            return False
        path = Path(model).expanduser()
        if not path.is_absolute() and (model.startswith(".") or path.exists()):
            raise BadInput(
                f"model {model}: workers have working folders of their own; give the absolute "
                "path with --scheduler"
            )
        return True

    def register(self, model: str, options: Mapping[str, Any]) -> tuple[str, str]:
        """Add a model to those that workers keep; `RemoteScorer` asks it."""
        self.models.append((model, json.dumps(options, sort_keys=True)))
        return self.models[-1]

    def run(self, tasks: Iterable[tuple[int, ShardTask]]) -> Iterator[tuple[int, ShardResult]]:
        """Do tasks on workers, and yield each result with the task's number as it comes.

        After a failure those that were sent still come, and no further ones are sent.
        """
        from distributed import wait

        client, waiting = self._connect(), iter(tasks)
        sent: dict[Any, int] = {}
        failure: Exception | None = None
        capacity, next_look = 0, 0.0
        try:
            while True:
                if time.monotonic() >= next_look:
                    capacity = max(AHEAD * self._wait_for_workers(), 1)
                    next_look = time.monotonic() + EVERY
                for number, task in islice(waiting, 0 if failure else max(capacity - len(sent), 0)):
                    # Impure, because Dask would not compute a task again that it knows.
                    future = client.submit(work, task, pure=False, resources=self.resources or None)
                    sent[future] = number
                if not sent:
                    break
                with suppress(TimeoutError, CancelledError), client.as_current():
                    wait(list(sent), timeout=EVERY, return_when="FIRST_COMPLETED")
                for future in [future for future in sent if future.done()]:
                    number = sent.pop(future)
                    try:
                        result = future.result()
                    except Exception as error:
                        failure = failure or self._explain(number, error)
                        continue
                    self._note_worker(result.worker)
                    yield number, result
        finally:
            if client.status == "running":
                client.cancel(list(sent))
        if failure:
            raise failure

    def _note_worker(self, worker: dict[str, Any]) -> None:
        """Keep what a worker says of itself, and say where its packages differ from those here."""
        about = {name: value for name, value in worker.items() if name != "address"}
        if about in self.workers:
            return
        self.workers.append(about)
        own = packages()
        differing = [
            f"{name} {version} (here {own.get(name)})"
            for name, version in about["packages"].items()
            if own.get(name) != version
        ]
        if differing:
            say(
                f"worker {worker['address']}: has {', '.join(differing)}; its numbers may differ "
                "in the last digits"
            )

    def _explain(self, number: int, error: Exception) -> Exception:
        """Say which shard an error is of, and on which worker it happened."""
        from distributed.scheduler import KilledWorker

        shard = "" if number == NO_SHARD else f"shard {number}, "
        if isinstance(error, BadInput | RunFailed):
            return type(error)(f"{shard}{error}")
        if isinstance(error, CancelledError):
            return self._gone()
        if isinstance(error, KilledWorker):
            return RunFailed(
                f"{shard}worker {error.last_worker.address}: died, as others before it that were "
                f"asked the same; look at its log (memory?); {CONTINUES}"
            )
        return RunFailed(
            f"{shard}--scheduler {self.address}: no worker could be asked ({_first_line(error)}); "
            f"scheduler and workers need the same environment as this process; {CONTINUES}"
        )

    def _gone(self) -> RunFailed:
        return RunFailed(f"--scheduler {self.address}: the scheduler is gone; {CONTINUES}")

    def _connect(self) -> Any:
        """Return the client; connect first if there is none."""
        if self._client is not None:
            return self._client
        try:
            from distributed import Client
        except ImportError:
            raise BadInput(
                '--scheduler: needs Dask; pip install "bias-workbench[cluster]"'
            ) from None
        # A lost scheduler is reported by this module.
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
        outcomes: list[Any] = [OSError("what is there is no Dask scheduler")]

        def connect() -> None:
            try:
                outcomes.append(
                    Client(self.address, timeout=CONNECT, set_as_default=False, name="bench")
                )
            except Exception as error:
                outcomes.append(error)

        # In a thread, because Dask waits forever for a server of another protocol.
        thread = threading.Thread(target=connect, daemon=True)
        thread.start()
        thread.join(CONNECT + 2)
        self._client, place = outcomes[-1], f"--scheduler {self.address}"
        if isinstance(outcomes[-1], Exception):
            self._client, reason = None, _first_line(outcomes[-1])
            if isinstance(outcomes[-1], ValueError | TypeError):
                raise BadInput(f"{place}: {reason}; expected one like tcp://10.0.0.1:8786")
            raise RunFailed(f"{place}: no scheduler answers there ({reason})")
        return self._client

    def _count_workers(self) -> tuple[int, int]:
        """Count the workers that offer the resources, and all workers."""
        try:
            workers = self._connect().scheduler_info(n_workers=-1)["workers"].values()
        except (OSError, RuntimeError, KeyError) as error:
            raise self._gone() from error
        needed = self.resources.items()
        offers = (worker["resources"] for worker in workers)
        able = sum(all(offer.get(name, 0) >= n for name, n in needed) for offer in offers)
        return able, len(workers)

    def _wait_for_workers(self) -> int:
        """Count the workers that offer the resources; say when there are none, and give up."""
        able, total = self._count_workers()
        if able:
            self._alone_since = None
            return able
        offers = ", ".join(f"{name}={n:g}" for name, n in self.resources.items())
        offering = f" that offers {offers}" if offers else ""
        others = f" ({total} others are there)" if total else ""
        now = time.monotonic()
        if self._alone_since is None:
            self._alone_since = now
            say(
                f"waiting for a worker{offering} at {self.address}{others}; "
                f"{PATIENCE / 60:.0f} minutes at most"
            )
        elif now - self._alone_since > PATIENCE:
            raise RunFailed(
                f"--scheduler {self.address}: no worker{offering} came{others}; {CONTINUES}"
            )
        return 0


class RemoteScorer(Model):
    """A model of `Cluster.models`, which each worker loads for itself."""

    def __init__(self, cluster: Cluster, model: tuple[str, str]) -> None:
        self._cluster, self._model = cluster, model
        self.tally = Tally()
        self._described: dict[str, Any] = {}
        first = self._run_one()
        self.verbs, self.reads, self._described = first.verbs, first.reads, first.described
        files = scorers.content(model[0]) or ""
        if file_hash.is_fingerprint(files) and files != first.described["revision"]:
            raise BadInput(
                f"worker {first.worker['address']}: its files of {model[0]} are others than those "
                "here; copy them anew"
            )

    def describe(self) -> dict[str, Any]:
        return self._described

    def resume(self, described: Mapping[str, Any]) -> None:
        if "prompt_date" in described:
            self._described = {**self._described, "prompt_date": described["prompt_date"]}

    def probe(self, languages: Sequence[str]) -> list[dict[str, str]]:
        return self._run_one(probe=tuple(languages)).probe

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        return next(answers for _, answers in self.answer_blocks([requests]))

    def answer_blocks(
        self, blocks: Sequence[Sequence[Request]]
    ) -> Iterator[tuple[int, list[Answer]]]:
        """Answer blocks in any order; yield the number of each with its answers."""
        # `then` is done with, and holds more than has to travel.
        tasks = (
            (number, self._task(requests=[replace(request, then=None) for request in requests]))
            for number, requests in enumerate(blocks)
        )
        for number, result in self._cluster.run(tasks):
            for name in Tally.__slots__:
                new = getattr(self.tally, name) + getattr(result.tally, name)
                setattr(self.tally, name, new)
            yield number, result.answers

    def _task(self, **content: Any) -> ShardTask:
        return ShardTask(*self._model, tuple(self._cluster.models), self._described, **content)

    def _run_one(self, **content: Any) -> ShardResult:
        ((_, result),) = self._cluster.run([(NO_SHARD, self._task(**content))])
        return result


def check_resources(resources: Mapping[str, Any]) -> dict[str, float]:
    """Return the resources that a worker has to offer, checked."""
    for name, value in resources.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not name or not is_number or not 0 < value < float("inf"):
            raise BadInput(f"--resources {name}={value}: expected NAME=NUMBER above 0, like GPU=1")
    return {str(name): value for name, value in resources.items()}
