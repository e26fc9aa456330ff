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
from dataclasses import dataclass, field, replace
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
# Each worker should get this many shards, so that all are busy to the end; but shards of fewer
# requests than this are too small.
SHARDS_PER_WORKER, SMALLEST = 4, 32
# Number of a task that is about a model, not about a shard.
NO_SHARD = -1


class LoadOptions(NamedTuple):
    """The arguments of `bench.scorers.load`: the model, and its options as JSON."""

    model: str
    options: str


@dataclass(frozen=True)
class ShardTask:
    """What a worker has to do.

    Attributes:
        scorer: the scorer to ask.
        keep: all scorers of the run; the worker forgets others.
        described: what the first worker said of the scorer, which has to be the same; None before.
        requests: the requests to answer.
        probe: languages of an NLI probe; see `bench.scorers.base.Model.probe`.
        version: of this package, which has to be the worker's.
    """

    scorer: LoadOptions
    keep: tuple[LoadOptions, ...]
    described: dict[str, Any] | None = None
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


@dataclass
class _Worker:
    """What a worker process keeps between tasks; it does one at a time."""

    lock: threading.RLock = field(default_factory=threading.RLock)
    loaded: dict[LoadOptions, Scorer] = field(default_factory=dict)


WORKER = _Worker()


def work(task: ShardTask) -> ShardResult:
    """Do a task on a worker; the worker's log has the traceback of a failure."""
    with WORKER.lock:
        try:
            scorer = _load(task)
            model = scorer if isinstance(scorer, Model) else None
            before = replace(model.tally) if model else Tally()
            answers = scorer.answer(task.requests) if task.requests else []
            after = model.tally if model else before
            torch, described = sys.modules.get("torch"), scorer.describe()
            has_gpu = torch is not None and torch.cuda.is_available()
            worker = {
                "address": _address(),
                "device": described.get("device"),
                "hardware": torch.cuda.get_device_name()
                if torch and has_gpu
                else platform.machine(),
                "packages": packages(),
            }
            probe = model.probe(task.probe) if model and task.probe else []
            tally = Tally(*(getattr(after, n) - getattr(before, n) for n in Tally.__slots__))
            return ShardResult(scorer.verbs, scorer.reads, described, worker, answers, probe, tally)
        except BadInput as error:
            raise BadInput(f"worker {_address()}: {error}") from None
        except Exception as error:  # of a class that this process may not have
            logging.getLogger("distributed.worker").exception("bench")
            reason = f"{type(error).__name__}: {_first_line(error)}"
            raise RunFailed(
                f"worker {_address()}: the model did not answer ({reason}); {CONTINUES}"
            ) from None


def _load(task: ShardTask) -> Scorer:
    """Load the task's scorer, unless it is loaded; scorers of other runs are forgotten."""
    if task.version != __version__:
        raise BadInput(
            f"has bias-workbench {__version__}, the asker {task.version}; install the same"
        )
    others = [name for name in WORKER.loaded if name not in task.keep]
    for name in others:
        del WORKER.loaded[name]
    if others and (torch := sys.modules.get("torch")):
        gc.collect()
        torch.cuda.empty_cache()
    if task.scorer not in WORKER.loaded:
        scorer = scorers.load(task.scorer.model, **json.loads(task.scorer.options))
        if task.described and (other := first_difference(task.described, scorer.describe())):
            raise BadInput(f"{task.scorer.model}: is not what the first worker has ({other})")
        WORKER.loaded[task.scorer] = scorer
    return WORKER.loaded[task.scorer]


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
        self.scorers: dict[LoadOptions, None] = {}
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

    def scorer(self, model: str, options: Mapping[str, Any]) -> LoadOptions:
        """Register a scorer of the run, which workers keep; `RemoteScorer` asks it."""
        scorer = LoadOptions(model, json.dumps(options, sort_keys=True))
        self.scorers[scorer] = None
        return scorer

    def shard_size(self, largest: int, requests: int) -> int:
        """Choose the number of requests per shard, so that all workers have some to do."""
        if self._client is None:  # nothing is asked on the cluster
            return largest
        enough = requests // (SHARDS_PER_WORKER * max(self._count_workers(), 1))
        return min(largest, max(SMALLEST, enough))

    def run(self, tasks: Iterable[tuple[int, ShardTask]]) -> Iterator[tuple[int, ShardResult]]:
        """Do tasks on workers, and yield each result with the task's number as it comes.

        After a failure those that were sent still come, and no further ones are sent.
        """
        from distributed import as_completed

        client, waiting = self._connect(), iter(tasks)
        numbers: dict[str, int] = {}
        queue = as_completed(loop=client.loop)
        failure: Exception | None = None
        capacity, next_look = 0, 0.0
        try:
            while True:
                if time.monotonic() >= next_look:
                    capacity = max(AHEAD * self._wait_for_workers(), 1)
                    next_look = time.monotonic() + EVERY
                free = 0 if failure else max(capacity - len(numbers), 0)
                for number, task in islice(waiting, free):
                    # Dask would not compute a task again whose key it knows.
                    key = f"shard-{number}-{time.monotonic_ns()}"
                    future = client.submit(work, task, key=key, resources=self.resources or None)
                    numbers[key] = number
                    queue.add(future)
                if not numbers:
                    break
                batch = queue.next_batch(block=False)
                if not batch:
                    time.sleep(0.01)
                for future in batch:
                    number = numbers.pop(future.key)
                    try:
                        result = future.result()
                    except Exception as error:
                        failure = failure or self._explain(number, error)
                        continue
                    self._note_worker(result.worker)
                    yield number, result
        finally:
            if client.status == "running":
                client.cancel(list(queue.futures))
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
        if isinstance(error, KilledWorker):
            return RunFailed(
                f"{shard}worker {error.last_worker.address}: died, as others before it that were "
                f"asked the same; look at its log (memory?); {CONTINUES}"
            )
        if isinstance(error, CancelledError):
            return self._gone()
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
        client = outcomes[-1]
        if isinstance(client, Exception):
            place, reason = f"--scheduler {self.address}", _first_line(client)
            if isinstance(client, ValueError | TypeError):
                expected = "expected one like tcp://10.0.0.1:8786"
                raise BadInput(f"{place}: {reason}; {expected}") from client
            raise RunFailed(f"{place}: no scheduler answers there ({reason})") from client
        self._client = client
        return client

    def _workers(self) -> list[dict[str, Any]]:
        try:
            return list(self._connect().scheduler_info(n_workers=-1)["workers"].values())
        except (OSError, RuntimeError, KeyError) as error:
            raise self._gone() from error

    def _count_workers(self) -> int:
        """Count the workers that offer the resources."""
        return sum(
            all(worker["resources"].get(name, 0) >= n for name, n in self.resources.items())
            for worker in self._workers()
        )

    def _wait_for_workers(self) -> int:
        """Count the workers that offer the resources; say when there are none, and give up."""
        if n := self._count_workers():
            self._alone_since = None
            return n
        offers = ", ".join(f"{name}={n:g}" for name, n in self.resources.items())
        offering = f" that offers {offers}" if offers else ""
        others = f" ({len(workers)} others are there)" if (workers := self._workers()) else ""
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
    """A scorer that each worker of a cluster loads for itself."""

    def __init__(self, cluster: Cluster, scorer: LoadOptions) -> None:
        self._cluster, self._scorer = cluster, scorer
        self.tally = Tally()
        self._described: dict[str, Any] | None = None
        first = self._run_one()
        self.verbs, self.reads, self._described = first.verbs, first.reads, first.described
        files = scorers.content(scorer.model) or ""
        if file_hash.is_fingerprint(files) and files != first.described["revision"]:
            raise BadInput(
                f"worker {first.worker['address']}: its files of {scorer.model} are others than "
                "those here; copy them anew"
            )

    def describe(self) -> dict[str, Any]:
        return self._described or {}

    def probe(self, languages: Sequence[str]) -> list[dict[str, str]]:
        return self._run_one(probe=tuple(languages)).probe

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        return next(answers for _, answers in self.answer_shards({0: requests}))

    def answer_shards(
        self, shards: Mapping[int, Sequence[Request]]
    ) -> Iterator[tuple[int, list[Answer]]]:
        """Answer shards in any order; yield the number of each with its answers."""
        # `then` is done with, and holds more than has to travel.
        tasks = (
            (number, self._task(requests=[replace(request, then=None) for request in requests]))
            for number, requests in shards.items()
        )
        for number, result in self._cluster.run(tasks):
            for name in Tally.__slots__:
                new = getattr(self.tally, name) + getattr(result.tally, name)
                setattr(self.tally, name, new)
            yield number, result.answers

    def _task(self, **content: Any) -> ShardTask:
        return ShardTask(self._scorer, tuple(self._cluster.scorers), self._described, **content)

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
