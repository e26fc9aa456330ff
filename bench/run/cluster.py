"""Asking on many machines: shards go to the workers of a Dask cluster, answers come back to the one who asked.

A worker loads a model when it is first asked and keeps it; the asker needs neither the model's files nor a GPU. What a
lost worker was asked, another one is. Requests and answers travel as pickles, so whoever can reach the scheduler can run
code on the workers and on the asker.
"""

import json
import logging
import queue
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from bench import __version__, scorers
from bench.core.errors import CONTINUES, BadInput, RunFailed
from bench.core.progress import say
from bench.run import worker
from bench.run.run_json import packages
from bench.run.worker import Order, Shown, Wanted, first_line
from bench.scorers.base import Answer, Model, Tally
from bench.scorers.local import file_hash
from bench.tasks.request import Request

# Seconds until a scheduler has to answer; between two looks at who is there; for an answer to be brought; without any
# worker, until the run gives up.
CONNECT, EVERY, FETCH, PATIENCE = 10.0, 5.0, 60.0, 3600.0
# Shards that are on their way for each worker: one that it asks, and one that waits, so that it never does.
AHEAD = 2
# Each worker should have so many shards, so that the last ones keep all of them busy; but a shard is not smaller than this.
EACH, SMALLEST = 4, 32
# Stands for the number of a shard where a worker is asked about a model, not about a shard.
ALL = -1


class Cluster:
    """The workers behind a Dask scheduler, as the asker sees them. It is connected when it is first needed.

    Args:
        address: the scheduler's, like `tcp://10.0.0.1:8786`.
        resources: what a worker has to offer for each shard, like `{"GPU": 1}`.
    """

    def __init__(self, address: str, resources: Mapping[str, float] | None = None) -> None:
        self.address, self.resources = address, _checked(resources or {})
        # What the workers that have answered run on, each kind once.
        self.workers: list[dict[str, Any]] = []
        self._wanted: dict[Wanted, None] = {}
        self._client: Any = None
        self._alone_since: float | None = None

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._client is not None:
            with suppress(Exception):  # the scheduler may be gone
                self._client.close(timeout=EVERY)

    def asks(self, model: str) -> bool:
        """Whether `model` is asked on the cluster: files are read and endpoints are asked by the asker itself.

        Raises:
            BadInput: a path that means something else on every machine.
        """
        kind = model.partition(":")[0]
        if kind in (*scorers.FILES, "openai"):
            return False
        path = Path(model).expanduser()
        if not path.is_absolute() and (model.startswith(".") or path.exists()):
            raise BadInput(
                f"model {model}: workers have working folders of their own; give the whole path with --scheduler"
            )
        return True

    def scorer(self, model: str, options: Mapping[str, Any]) -> Callable[[], "Remote"]:
        """What makes the scorer of `model`, loaded with the `options` of `bench.scorers.load`.

        From now on workers keep it beside the others of this run.
        """
        wanted = Wanted(model, json.dumps(options, sort_keys=True))
        self._wanted[wanted] = None
        return partial(Remote, self, wanted)

    def order(self, wanted: Wanted, described: dict[str, Any] | None = None) -> Order:
        return Order(wanted, tuple(self._wanted), __version__, described)

    def shard(self, largest: int, requests: int) -> int:
        """How many requests a shard should hold, so that all workers that are there have some."""
        if self._client is None:  # nobody there has been asked about a model
            return largest
        enough = requests // (EACH * max(self._places(), 1))
        return min(largest, max(SMALLEST, enough))

    def met(self, worker: dict[str, Any]) -> None:
        """Take note of what a worker says of itself, and tell where it differs from here."""
        about = {name: value for name, value in worker.items() if name != "address"}
        if about in self.workers:
            return
        self.workers.append(about)
        here = packages()
        other = {
            name: value for name, value in about["packages"].items() if here.get(name) != value
        }
        if other:
            listed = ", ".join(
                f"{name} {value} (here {here.get(name)})" for name, value in other.items()
            )
            say(
                f"worker {worker['address']}: has {listed}; its numbers may differ in the last digits"
            )

    def each(
        self, call: Callable[..., Any], work: Iterable[tuple[int, Sequence[Any]]]
    ) -> Iterator[tuple[int, Any]]:
        """What `call` gives on some worker for each of `work` (number of a shard and arguments), as it comes.

        Where one fails, what is on its way still comes, and nothing more is begun.

        Raises:
            BadInput: a worker cannot do this.
            RunFailed: the work failed on a worker, workers died of it again and again, none came, or the scheduler is gone.
        """
        client, done, waiting = self._connected(), queue.SimpleQueue[Any](), iter(work)
        running: dict[str, tuple[int, Any]] = {}
        failure: Exception | None = None
        room, looked = 0, -EVERY
        try:
            while True:
                if time.monotonic() - looked >= EVERY:
                    room, looked = max(AHEAD * self._look(), 1), time.monotonic()
                while not failure and len(running) < room and (one := next(waiting, None)):
                    future = client.submit(
                        call,
                        *one[1],
                        key=f"shard-{one[0]}-{uuid.uuid4().hex}",
                        resources=self.resources or None,
                    )
                    running[future.key] = one[0], future
                    future.add_done_callback(done.put)
                if not running:
                    break
                try:
                    future = done.get(timeout=EVERY)
                except queue.Empty:
                    continue
                number = running[future.key][0]
                try:
                    result = future.result(timeout=FETCH)
                except TimeoutError:  # it was lost with its worker, and is made again
                    future.add_done_callback(done.put)
                    continue
                except Exception as error:
                    del running[future.key]
                    failure = failure or self._failure(number, error)
                    continue
                del running[future.key], future
                yield number, result
        finally:
            if running and client.status == "running":
                client.cancel([future for _, future in running.values()])
        if failure:
            raise failure

    def _failure(self, number: int, error: Exception) -> Exception:
        from distributed.scheduler import KilledWorker

        what = "" if number == ALL else f"shard {number}, "
        if isinstance(error, BadInput | RunFailed):
            return type(error)(f"{what}{error}")
        if isinstance(error, KilledWorker):
            last = error.last_worker.address
            return RunFailed(
                f"{what}worker {last}: died, as others before it that were asked the same; look at its log "
                f"(memory?); {CONTINUES}"
            )
        if isinstance(error, CancelledError):
            return self._gone()
        return RunFailed(
            f"{what}--scheduler {self.address}: nobody could be asked there ({first_line(error)}); scheduler and workers "
            f"need the same environment as this process; {CONTINUES}"
        )

    def _gone(self) -> RunFailed:
        return RunFailed(f"--scheduler {self.address}: the scheduler is gone; {CONTINUES}")

    def _connected(self) -> Any:
        if self._client is None:
            self._client = _connect(self.address)
        return self._client

    def _places(self) -> int:
        """How many workers are there that have what is wanted."""
        return len(self._suited(self._workers()))

    def _workers(self) -> list[dict[str, Any]]:
        try:
            return list(self._connected().scheduler_info(n_workers=-1)["workers"].values())
        except (OSError, RuntimeError, KeyError) as error:
            raise self._gone() from error

    def _suited(self, workers: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        wanted = self.resources.items()
        return [
            one for one in workers if all(one["resources"].get(name, 0) >= n for name, n in wanted)
        ]

    def _look(self) -> int:
        """`_places`, and say so where there are none.

        Raises:
            RunFailed: there have been none for too long.
        """
        workers = self._workers()
        if places := len(self._suited(workers)):
            self._alone_since = None
            return places
        offering = (
            " that offers " + ", ".join(f"{name}={n:g}" for name, n in self.resources.items())
            if self.resources
            else ""
        )
        others = f" ({len(workers)} others are there)" if workers else ""
        if self._alone_since is None:
            self._alone_since = time.monotonic()
            say(
                f"waiting for a worker{offering} at {self.address}{others}; {PATIENCE / 60:.0f} minutes at most"
            )
        elif time.monotonic() - self._alone_since > PATIENCE:
            raise RunFailed(
                f"--scheduler {self.address}: no worker{offering} came{others}; {CONTINUES}"
            )
        return 0


class Remote(Model):
    """A scorer that workers hold, each its own, as the asker sees it.

    Raises:
        BadInput: the workers cannot load it, or have other files than the asker.
    """

    def __init__(self, cluster: Cluster, wanted: Wanted) -> None:
        self._cluster, self._wanted = cluster, wanted
        self.tally = Tally()
        shown: Shown = self._one(worker.show)
        cluster.met(shown.worker)
        self.verbs, self.reads, self._described = shown.verbs, shown.reads, shown.described
        files = scorers.content(wanted.model) or ""
        if file_hash.is_fingerprint(files) and files != self._described["revision"]:
            raise BadInput(
                f"worker {shown.worker['address']}: its files of {wanted.model} are others than those here; copy them anew"
            )

    def describe(self) -> dict[str, Any]:
        return self._described

    def probe(self, languages: Sequence[str]) -> list[dict[str, str]]:
        return list(self._one(worker.probe, list(languages)))

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        return next(answers for _, answers in self.spread({0: requests}))

    def spread(self, shards: Mapping[int, Sequence[Request]]) -> Iterator[tuple[int, list[Answer]]]:
        """The answers to each shard, by its number, as they come from the workers."""
        order = self._cluster.order(self._wanted, self._described)
        work = ((number, (order, _bare(requests))) for number, requests in shards.items())
        for number, found in self._cluster.each(worker.answer, work):
            self._cluster.met(found.worker)
            for name in ("asked", "computed", "read"):
                setattr(self.tally, name, getattr(self.tally, name) + getattr(found.tally, name))
            yield number, found.answers

    def _one(self, call: Callable[..., Any], *given: Any) -> Any:
        order = self._cluster.order(self._wanted)
        return next(result for _, result in self._cluster.each(call, [(ALL, (order, *given))]))


def resources(text: str) -> dict[str, float]:
    """`GPU=1,MEMORY=20` as `Cluster` takes it.

    Raises:
        BadInput: it is not spelt so.
    """
    found: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        with suppress(ValueError):
            found[name.strip()] = float(value)
            continue
        raise BadInput(f"--resources {part}: expected NAME=NUMBER, like GPU=1")
    return _checked(found)


def _checked(wanted: Mapping[str, Any]) -> dict[str, float]:
    for name, value in wanted.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not name or not number or not 0 < value < float("inf"):
            raise BadInput(
                f"--resources {name}={value}: expected NAME=NUMBER, like GPU=1, more than 0"
            )
    return {str(name): value for name, value in wanted.items()}


def _connect(address: str) -> Any:
    """A client of the scheduler at `address`.

    Raises:
        BadInput: Dask is not installed, or the address cannot be one.
        RunFailed: no scheduler answers there.
    """
    try:
        from distributed import Client
    except ImportError:
        raise BadInput('--scheduler: needs Dask; pip install "bias-workbench[cluster]"') from None
    # What it would say of a scheduler that is lost is said in a sentence here.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    found: list[Any] = []

    def connect() -> None:
        try:
            found.append(Client(address, timeout=CONNECT, set_as_default=False, name="bench"))
        except Exception as error:
            found.append(error)

    # In a thread, because Dask waits forever for a server that talks of something else.
    thread = threading.Thread(target=connect, daemon=True)
    thread.start()
    thread.join(CONNECT + 2)
    client = found[0] if found else OSError("what is there is no Dask scheduler")
    if isinstance(client, ValueError | TypeError):
        raise BadInput(
            f"--scheduler {address}: {first_line(client)}; expected one like tcp://10.0.0.1:8786"
        ) from client
    if isinstance(client, Exception):
        raise RunFailed(
            f"--scheduler {address}: no scheduler answers there ({first_line(client)})"
        ) from client
    return client


def _bare(requests: Sequence[Request]) -> list[Request]:
    """Finished requests without what finished them, which holds more than has to travel."""
    return [replace(request, then=None) for request in requests]
