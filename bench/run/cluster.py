"""Ask models on the workers of a Dask cluster: blocks of requests go there, and answers come back.

A worker loads a model at its first block and keeps it; this process needs neither the model's files
nor a GPU. Dask gives the blocks of a lost worker to another one. Requests and answers travel as
pickles, so that everybody who reaches the scheduler can run code on the workers and here.
"""

import gc
import json
import logging
import platform
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import replace
from operator import methodcaller
from pathlib import Path
from typing import Any, NamedTuple

from bench import __version__, scorers
from bench.core.errors import CONTINUES, BadInput, RunFailed
from bench.core.progress import say
from bench.run.run_json import other_scorer, packages
from bench.scorers.base import Answer, Model, Tally
from bench.scorers.local import hub
from bench.tasks.request import Request

# A model and its options as JSON.
Key = tuple[str, str]
CONNECT_SECONDS = 10.0
# Tries after the first failure of a task, on any worker.
RETRIES = 2


class Result(NamedTuple):
    """The result of a call of a worker's model, its tokens, and the descriptions of both."""

    value: Any
    tokens: Tally
    request_types: tuple[str, ...]
    answer_modes: tuple[str, ...]
    described: dict[str, Any]
    worker: dict[str, Any]


# A worker with several threads does one task at a time.
_LOCK = threading.Lock()


def work(**task: Any) -> Result:
    """Do the task `_work` on a worker; the worker's log has the traceback of a failure."""
    from distributed import get_worker

    worker = get_worker()
    try:
        with _LOCK:
            return _work(vars(worker).setdefault("bench_models", {}), **task)
    except BadInput as error:
        raise BadInput(f"worker {worker.address}: {error}") from None
    except Exception as error:  # of a class that the asking process may not have
        logging.getLogger("distributed.worker").exception("bench")
        raise RunFailed(
            f"worker {worker.address}: the model did not answer ({type(error).__name__}: "
            f"{_first_line(error)}); {CONTINUES}"
        ) from None


def _work(
    models: dict[Key, Model],
    version: str,
    model: Key,
    keep: Sequence[Key],
    described: dict[str, Any],
    call: Callable[[Model], Any],
) -> Result:
    """Load a model of the run's models `keep`, check it against `described`, and call it."""
    if version != __version__:
        raise BadInput(f"has bias-workbench {__version__}, the asker {version}; install the same")
    torch = sys.modules.get("torch")
    if not models.keys() <= set(keep):  # models of another run
        models.clear()
        gc.collect()
        if torch:
            torch.cuda.empty_cache()
    name, options = model
    if model not in models:
        models[model] = scorers.load(name, **json.loads(options))
    scorer = models[model]
    if difference := other_scorer(described, scorer):
        raise BadInput(f"{name}: is not the first worker's ({difference})")
    before = replace(scorer.tally)
    value = call(scorer)
    tally, now = scorer.tally, scorer.describe()
    tokens = Tally(tally.asked - before.asked, tally.computed - before.computed)
    is_on_gpu = torch and torch.cuda.is_available()
    hardware = torch.cuda.get_device_name() if torch and is_on_gpu else platform.machine()
    worker = {"device": now.get("device"), "hardware": hardware, "packages": packages()}
    return Result(value, tokens, scorer.request_types, scorer.answer_modes, now, worker)


class Cluster:
    """The workers of a Dask scheduler that offer some resources; the first task connects to it.

    Attributes:
        models: the models of a run, each with its options; workers keep them.
        workers: distinct descriptions of the workers that answered.
    """

    def __init__(
        self,
        address: str,
        resources: Mapping[str, float] | None,
        models: Iterable[tuple[str, Mapping[str, Any]]],
    ) -> None:
        self.address, self.resources = address, dict(resources or {})
        self.models: list[Key] = [(model, json.dumps(options)) for model, options in models]
        self.workers: list[dict[str, Any]] = []
        self._client: Any = None

    def close(self) -> None:
        with suppress(Exception):  # nobody connected, or the scheduler is gone
            self._client.close(timeout=CONNECT_SECONDS)

    def run(self, task: Mapping[str, Any], calls: Sequence[Any]) -> Iterator[tuple[int, Result]]:
        """Yield results of calls of a model with their numbers; raise the first failure last."""
        self._client = client = self._client or self._connect()
        from distributed import as_completed

        self._say_if_nobody_works()
        task = {**task, "version": __version__, "keep": self.models}
        options = {"pure": False, "retries": RETRIES, "resources": self.resources}
        numbers = {client.submit(work, **task, call=c, **options): k for k, c in enumerate(calls)}
        failure: Exception | None = None
        try:
            for future in as_completed(numbers, loop=client.loop):
                try:
                    result = future.result()
                except Exception as error:
                    failure = failure or self._explain(error)
                    continue
                if result.worker not in self.workers:
                    self.workers.append(result.worker)
                yield numbers[future], result
        finally:
            if client.status == "running":
                client.cancel(list(numbers))
        if failure:
            raise failure

    def _connect(self) -> Any:
        try:
            from distributed import Client
            from distributed.comm import connect
            from distributed.utils import LoopRunner, sync
        except ImportError:
            raise BadInput(
                '--scheduler: needs Dask; pip install "bias-workbench[cluster]"'
            ) from None
        # This module reports a lost scheduler itself.
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
        runner = LoopRunner()
        runner.start()
        try:
            # `Client` would wait forever for a server of another kind, such as Dask's dashboard.
            comm = sync(runner.loop, connect, self.address, callback_timeout=CONNECT_SECONDS)
            sync(runner.loop, comm.close)
            return Client(self.address, loop=runner.loop, set_as_default=False)
        except (ValueError, TypeError) as error:
            raise BadInput(
                f"--scheduler {self.address}: {_first_line(error)}; expected one like "
                "tcp://10.0.0.1:8786"
            ) from None
        except Exception as error:  # a server of another kind can answer anything
            raise RunFailed(
                f"--scheduler {self.address}: no scheduler answers there ({_first_line(error)})"
            ) from None

    def _say_if_nobody_works(self) -> None:
        """Report if no worker offers the resources; Dask waits for one."""
        needed = self.resources.items()
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        offers = [worker["resources"] for worker in workers]
        if not any(all(offer.get(name, 0) >= n for name, n in needed) for offer in offers):
            listed = ", ".join(f"{name}={n:g}" for name, n in needed)
            offering = f" that offers {listed}" if listed else ""
            others = f" ({len(offers)} others are there)" if offers else ""
            say(f"waiting for a worker{offering} at {self.address}{others}")

    def _explain(self, error: Exception) -> Exception:
        from distributed.scheduler import KilledWorker

        if isinstance(error, BadInput | RunFailed):
            return error
        if isinstance(error, KilledWorker):
            return RunFailed(
                f"worker {error.last_worker.address}: died, as other workers did with the same "
                f"requests; look at its log (memory?); {CONTINUES}"
            )
        problem = (
            f"no worker could be asked ({_first_line(error)}); scheduler and workers need the same "
            "environment as this process"
        )
        if isinstance(error, CancelledError):
            problem = "the scheduler is gone"
        return RunFailed(f"--scheduler {self.address}: {problem}; {CONTINUES}")


class RemoteScorer(Model):
    """A model that each worker of a cluster loads for itself."""

    def __init__(self, cluster: Cluster, model: str, options: Mapping[str, Any]) -> None:
        path = Path(model).expanduser()
        if not path.is_absolute() and (model.startswith(".") or path.exists()):
            raise BadInput(
                f"model {model}: workers have working folders of their own; give the absolute "
                "path with --scheduler"
            )
        self._cluster, self._key = cluster, (model, json.dumps(options))
        self._described: dict[str, Any] = {}
        ((_, first),) = self._run([methodcaller("describe")])
        self.request_types, self.answer_modes = first.request_types, first.answer_modes
        self._described = first.described
        files = scorers.content(model) or ""
        if hub.is_fingerprint(files) and files != first.described["revision"]:
            raise BadInput(
                f"--scheduler {cluster.address}: the workers' files of {model} differ from the "
                "files here; copy them anew"
            )

    def describe(self) -> dict[str, Any]:
        return self._described

    def resume(self, described: Mapping[str, Any]) -> None:
        if "prompt_date" in described:
            self._described = {**self._described, "prompt_date": described["prompt_date"]}

    def probe(self, languages: Sequence[str]) -> list[dict[str, str]]:
        ((_, result),) = self._run([methodcaller("probe", languages)])
        return result.value

    def stream(self, blocks: Sequence[Sequence[Request]]) -> Iterator[list[tuple[Request, Answer]]]:
        # `then` is used up, and need not travel.
        requests = [[replace(request, then=None) for request in block] for block in blocks]
        for number, result in self._run([methodcaller("answer", block) for block in requests]):
            self.tally.asked += result.tokens.asked
            self.tally.computed += result.tokens.computed
            yield list(zip(blocks[number], result.value, strict=True))

    def _run(self, calls: Sequence[Callable[[Model], Any]]) -> Iterator[tuple[int, Result]]:
        return self._cluster.run({"model": self._key, "described": self._described}, calls)


def _first_line(error: BaseException) -> str:
    return " ".join(str(error).strip().partition("\n")[0].split()) or type(error).__name__
