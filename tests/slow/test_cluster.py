"""Runs on a cluster: the same records as here whoever dies, and errors that name who failed."""

import itertools
import os
import re
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from distributed import Client, LocalCluster, Worker, WorkerPlugin
from pandas.testing import assert_frame_equal

from bench import records, run
from bench.core.errors import BadInput, RunFailed
from bench.scorers import cluster
from bench.scorers.simulated import Simulated
from tests.helpers.recorded import columns, watch

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("small_blocks")]

MODEL = "simulated:bias=0.6,position=0.2,refuse=0.1,seed=4"
NOBODY = "tcp://127.0.0.1:1"


def started(n=2, threads=1, processes=False):
    options = {"protocol": "tcp", "host": "127.0.0.1", "dashboard_address": ":0"}
    options |= {"memory_limit": 0, "silence_logs": "CRITICAL", "processes": processes}
    return LocalCluster(n_workers=n, threads_per_worker=threads, **options)


@pytest.fixture(scope="module")
def scheduler():
    """The address of a cluster of two workers in this process."""
    with started() as local:
        yield local.scheduler_address


def ask(out, benchmark="cbbq", **options):
    given = {"categories": ["gender"], "limit": 40} if benchmark == "cbbq" else {"limit": 2}
    try:
        return run.evaluate(benchmark, MODEL, partial=True, out=out, **{**given, **options})
    finally:
        with suppress(ValueError):  # nobody connected
            Client.current().close()


def assert_as_here(**options):
    ask("near", **options)
    assert_frame_equal(columns("far"), columns("near"))


def after_blocks(monkeypatch, call):
    add = records.add
    monkeypatch.setattr(records, "add", lambda *given: (add(*given), call()))


class Slow(WorkerPlugin):
    """Let simulated respondents take a moment, and end the process at item `deadly`."""

    def __init__(self, deadly=""):
        self.deadly = deadly

    def setup(self, worker):
        def before(requests):
            time.sleep(0.05)
            if self.deadly in {request.item_id for request in requests}:
                os._exit(1)

        watch(pytest.MonkeyPatch(), before)


JUDGED = {"benchmark": "mcbe", "judge": "simulated:"}
STAGES = {"settings": {"context_order": "judge", "replies": "until_answered"}}


@pytest.mark.parametrize("options", [{}, {**JUDGED, **STAGES}], ids=len)
def test_the_records_are_those_of_a_run_here(scheduler, options):
    far = ask("far", scheduler=scheduler, **options)
    assert_as_here(**options)
    near = run.Run.open("near").metadata
    assert {name for name in near if far.metadata[name] != near[name]} <= {"when", "files"}
    ask("far", scheduler=NOBODY, **options)  # a complete run is only read


def test_a_worker_loads_a_model_once_and_does_one_task_at_a_time(monkeypatch):
    loaded, running, most = [], [], []

    def watched(cls, rest, **options):
        loaded.append(rest)
        return cls(rest)

    def observe(requests):
        running.append(1)
        most.append(len(running))
        time.sleep(0.01)
        running.pop()

    monkeypatch.setattr(Simulated, "load", classmethod(watched))
    watch(monkeypatch, observe)
    with started(1, threads=4) as local:
        for seed in range(2):
            ask(str(seed), seed=seed, scheduler=local.scheduler_address)
    assert loaded == [MODEL.removeprefix("simulated:")]
    assert max(most) == 1


def test_a_run_waits_for_workers_that_offer_the_resources(capsys):
    workers = []

    async def able(address):
        workers.append(await Worker(address, nthreads=1, resources={"GPU": 1}))

    with started(1) as local:
        threading.Timer(2, lambda: local.sync(able, local.scheduler_address)).start()
        ask("far", scheduler=local.scheduler_address, resources={"GPU": 1})
        local.sync(workers[0].close)
    message = r"waiting for a worker that offers GPU=1 at tcp\S+ \(1 are there\)\n"
    assert len(re.findall(message, capsys.readouterr().err)) == 1
    assert_as_here()


def test_a_worker_with_another_model_is_refused(scheduler, monkeypatch):
    calls = itertools.count()
    monkeypatch.setattr(
        Simulated, "describe", lambda self: {"kind": "simulated", "revision": str(next(calls))}
    )
    with pytest.raises(BadInput, match=r"^worker tcp://.*: the model's revision is not that of"):
        ask("far", scheduler=scheduler)


def test_a_model_that_a_worker_cannot_load_is_named(scheduler):
    with pytest.raises(BadInput, match=r"^worker tcp://.*: ./no-model: no such model folder"):
        run.evaluate("cbbq", "./no-model", scheduler=scheduler, out="far")


def test_a_failing_worker_is_named_and_other_blocks_are_kept(scheduler, monkeypatch):
    ask("near")
    bad = columns("near").item_id[40]

    def fail(requests):
        if bad in {request.item_id for request in requests}:
            raise ValueError("what\nis this")

    message = r"^worker tcp://.*: the model did not answer \(ValueError: what is this\); "
    with monkeypatch.context() as patch:
        watch(patch, fail)
        with pytest.raises(RunFailed, match=message):
            ask("far", scheduler=scheduler)
    assert 0 < len(columns("far")) < len(columns("near"))
    ask("far", scheduler=scheduler)
    assert_as_here()


def test_a_run_whose_scheduler_is_lost_ends_and_continues(scheduler, monkeypatch):
    lost = started(1)
    with monkeypatch.context() as patch:
        after_blocks(patch, lost.close)
        with pytest.raises(RunFailed, match=r"^--scheduler tcp://.*; the same command continues"):
            ask("far", scheduler=lost.scheduler_address)
    ask("far", scheduler=scheduler)
    assert_as_here()


def test_a_killed_worker_loses_nothing_and_a_block_that_kills_is_told(monkeypatch):
    ask("near", limit=80)
    deadly, written = columns("near").item_id[40], []
    with started(processes=True) as local:
        client = local.get_client()
        client.register_plugin(Slow())
        pids = list(client.run(os.getpid).values())

        def kill():
            written.append(1)
            if len(written) == 4:
                os.kill(pids[0], signal.SIGKILL)

        with monkeypatch.context() as patch:
            after_blocks(patch, kill)
            ask("far", scheduler=local.scheduler_address, limit=80)
        assert_frame_equal(columns("far"), columns("near"))
        local.scheduler.allowed_failures = 0
        local.get_client().register_plugin(Slow(deadly), name="deadly")
        message = r"^--scheduler tcp://.* died"
        with pytest.raises(RunFailed, match=message):
            ask("other", scheduler=local.scheduler_address, limit=80)


def test_what_cannot_be_a_cluster_is_refused(refusal, monkeypatch):
    message = refusal(ask, "far", resources={"GPU": 0})
    assert "resources: 0 is not allowed; it has to be above 0" in message
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.5)
    for address in ("foo://a:1", NOBODY):
        message = refusal(ask, "far", scheduler=address)
        assert message.startswith(f"--scheduler {address}: no scheduler answers (")
    assert not Path("far").exists()
