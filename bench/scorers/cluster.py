"""A model on the workers of a Dask cluster, which answer blocks of requests.

A worker loads the model at its first block and keeps it until it gets another one. Requests and
answers travel as pickles: whoever reaches the scheduler can run code on the workers and here.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter, methodcaller
from typing import Any

from bench.core.errors import CONTINUES, BadInput, RunFailed
from bench.core.progress import say
from bench.scorers.base import Answer, Model
from bench.tasks.request import Request

CONNECT_SECONDS = 10
RETRIES = 2  # of a block, on any worker
# Entries of a description in which the models of two workers must not differ.
IDENTITY = ("revision", "dtype", "tokenizer_hash", "chat_template_hash")
# The function `bench.load`, the model and its options.
Load = tuple[Callable[..., Model], str, Mapping[str, Any]]


class Remote(Model):
    """A model that each worker of a cluster loads for itself."""

    def __init__(self, address: str, resources: Mapping[str, float], load: Load) -> None:
        self._address, self._resources, self._load = address, dict(resources), load
        self._client, self._described = _client(address), dict[str, Any]()
        abilities = attrgetter("request_types", "answer_modes")
        ((_, (self.request_types, self.answer_modes)),) = self._results([abilities])
        ((_, self._described),) = self._results([methodcaller("describe")])

    def describe(self) -> dict[str, Any]:
        return self._described

    def resume(self, described: Mapping[str, Any]) -> None:
        if "prompt_date" in described:
            self._described = {**self._described, "prompt_date": described["prompt_date"]}

    def probe(self, languages: Sequence[str]) -> list[dict[str, str]]:
        ((_, rows),) = self._results([methodcaller("probe", languages)])
        return list(rows)

    def stream(self, blocks: Sequence[Sequence[Request]]) -> Iterator[list[tuple[Request, Answer]]]:
        # `then` is used up, and need not travel.
        sent = [[replace(request, then=None) for request in block] for block in blocks]
        for number, answers in self._results([methodcaller("answer", block) for block in sent]):
            yield list(zip(blocks[number], answers, strict=True))

    def _results(self, calls: Sequence[Callable[[Model], Any]]) -> Iterator[tuple[int, Any]]:
        """Yield the numbers of calls and their results, as they come; raise a failure last."""
        from distributed import as_completed

        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        needed = self._resources.items()
        if not any(all(w["resources"].get(key, 0) >= n for key, n in needed) for w in workers):
            offering = "".join(f" that offers {key}={n:g}" for key, n in needed)
            say(f"waiting for a worker{offering} at {self._address} ({len(workers)} are there)")
        task = {"load": self._load, "described": self._described, "resources": self._resources}
        futures = self._client.map(work, calls, retries=RETRIES, pure=False, **task)
        numbers = {future.key: number for number, future in enumerate(futures)}
        failure: Exception | None = None
        for future in as_completed(futures):
            try:
                yield numbers[future.key], future.result()
            except (BadInput, RunFailed) as error:
                failure = failure or error
            except Exception as error:  # the scheduler is gone, or a block kills workers
                problem = " ".join(str(error).split()) or type(error).__name__
                lost = RunFailed(f"--scheduler {self._address}: {problem}; {CONTINUES}")
                failure = failure or lost
        if failure:
            raise failure


def _client(address: str) -> Any:
    """Return the client that is connected to a scheduler, or connect one."""
    try:
        from distributed import get_client
    except ImportError:
        raise BadInput('--scheduler: needs Dask; pip install "bias-workbench[cluster]"') from None
    # We report a lost scheduler ourselves.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    try:
        return get_client(address, timeout=CONNECT_SECONDS)
    except (ValueError, TypeError, OSError) as error:
        problem = f"no scheduler answers ({error}); expected an address like tcp://10.0.0.1:8786"
        raise BadInput(f"--scheduler {address}: {problem}") from None


_LOCK = threading.Lock()  # a worker with several threads does one task at a time


def work(call: Callable[[Model], Any], load: Load, described: dict[str, Any]) -> Any:
    """Call the model of a worker, which is loaded for its first call."""
    from distributed import get_worker

    worker = get_worker()
    try:
        with _LOCK:
            if getattr(worker, "bench_load", None) != load:
                worker.bench_model = worker.bench_load = None  # memory may not suffice for both
                function, model, options = load
                worker.bench_model = function(model, **options)
                worker.bench_load = load
            worker.bench_model.resume(described)
            now = worker.bench_model.describe()
            for name in IDENTITY:
                if described.get(name, now.get(name)) != now.get(name):
                    raise BadInput(f"the model's {name} is not that of the first worker's")
            return call(worker.bench_model)
    except BadInput as error:
        raise BadInput(f"worker {worker.address}: {error}") from None
    except Exception as error:  # of a class that the asking process may not have
        problem = " ".join(f"the model did not answer ({type(error).__name__}: {error})".split())
        raise RunFailed(f"worker {worker.address}: {problem}; {CONTINUES}") from None
