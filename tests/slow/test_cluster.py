"""Runs on a cluster: the same records as here whoever dies, and errors that name who failed."""

import os
import pickle
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import dask
import pytest
from distributed import LocalCluster
from pandas.testing import assert_frame_equal

from bench import records, run, scorers
from bench.cli.options import read_options
from bench.config import RunConfig
from bench.core.errors import BadInput, RunFailed
from bench.report import study, study_runs
from bench.run import cluster
from bench.run.cluster import Cluster, LoadOptions, ShardTask
from bench.run.plan import Plan
from bench.scorers.base import VERBS, Answer
from bench.scorers.stand_ins.simulated import Simulated
from tests.helpers.recorded import columns, command
from tests.slow.helpers import clustered

pytestmark = pytest.mark.slow

MODEL = "simulated:bias=0.6,position=0.2,refuse=0.1,seed=4"
NOBODY = "tcp://127.0.0.1:1"


@pytest.fixture(autouse=True)
def small_shards(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "SHARD", 16)
    monkeypatch.setattr(cluster, "WORKER", cluster._Worker())


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """The address of a cluster of two workers in this process."""
    with started() as local:
        yield local.scheduler_address


def started(n: int = 2, **options: Any) -> LocalCluster:
    given = {"threads_per_worker": 1, "processes": False, "protocol": "tcp", "memory_limit": 0}
    given |= {"host": "127.0.0.1", "dashboard_address": ":0", "silence_logs": "CRITICAL"}
    return LocalCluster(n_workers=n, **{**given, **options})


def ask(out: str, model: str = MODEL, benchmark: str = "cbbq", **options: Any) -> run.Run:
    given = {"categories": ["gender"], "limit": 40} if benchmark == "cbbq" else {"limit": 2}
    return run.evaluate(benchmark, model, partial=True, out=out, **{**given, **options})


def assert_as_here(out: str = "far", **options: Any) -> None:
    """Compare a run with the same run without a cluster."""
    ask("near", **options)
    assert_frame_equal(columns(out), columns("near"))


def before_answers(monkeypatch: Any, call: Callable[[Any], None]) -> None:
    """Call `call` with the requests before a simulated respondent answers them."""
    original = Simulated.answer

    def answer(respondent: Simulated, requests: Any) -> list[Answer]:
        call(requests)
        return original(respondent, requests)

    monkeypatch.setattr(Simulated, "answer", answer)


def after_shards(monkeypatch: Any, call: Callable[[Path], None]) -> None:
    """Call `call` with the run's folder after each shard that is written."""
    write = records.write_shard

    def written(folder: Path, *arguments: Any) -> None:
        write(folder, *arguments)
        call(folder)

    monkeypatch.setattr(records, "write_shard", written)


@pytest.mark.parametrize("benchmark", ["cbbq", "mcbe", "nli_coal"])
def test_the_records_are_those_of_a_run_here(scheduler: str, benchmark: str) -> None:
    options: dict[str, Any] = {"benchmark": benchmark}
    if benchmark == "mcbe":
        settings = {"context_order": "judge", "replies": "until_answered"}
        options |= {"judge": "simulated:seed=9", "settings": settings}
    far = ask("far", scheduler=scheduler, **options)
    assert_as_here(**options)
    near = run.Run.open("near")
    other = {name for name in far.about if far.about[name] != near.about.get(name)}
    assert other <= {"workers", "when"}
    assert [worker["packages"] for worker in far.about["workers"]] == [far.about["packages"]]
    assert not Path("far/records/journal.jsonl").exists()
    ask("far", scheduler=NOBODY, **options)  # a complete run is only read
    # What was begun here continues on the cluster.
    for path in sorted(Path("near/records").glob("*.parquet"))[1:]:
        path.unlink()
    ask("near", scheduler=scheduler, **options)
    assert_frame_equal(columns("far"), columns("near"))


@pytest.mark.parametrize("benchmark", ["cbbq", "mcbe", "nli_coal"])
def test_requests_travel_without_what_finished_them(benchmark: str) -> None:
    settings = {"mcbe": {"context_order": "judge", "replies": "until_answered"}}.get(benchmark)
    config = RunConfig.of(benchmark=benchmark, model=MODEL, judge=MODEL, limit=3, settings=settings)
    stages = Plan.make(config).requests(VERBS, ("text",), VERBS, True).stages
    requests = [replace(request, then=None) for stage in stages for request in stage]
    text = pickle.dumps(requests)
    again = pickle.loads(text)  # noqa: S301
    assert again == requests
    assert all(a.until is b.until for a, b in zip(requests, again, strict=True))
    assert len(text) / len(requests) < 2000


def test_a_worker_loads_a_model_once_and_forgets_those_of_other_runs(
    scheduler: str, monkeypatch: Any
) -> None:
    loaded, load = [], scorers.load
    monkeypatch.setattr(
        scorers, "load", lambda *args, **options: loaded.append(args[0]) or load(*args, **options)
    )
    judge = "simulated:seed=9"
    for seed in (0, 1):
        ask(f"{seed}", benchmark="mcbe", judge=judge, seed=seed, scheduler=scheduler)
    assert sorted(loaded) == sorted([MODEL, judge])
    ask("other", "simulated:seed=1", scheduler=scheduler)
    assert clustered.loaded_models() == ["simulated:seed=1"]


def test_a_worker_with_several_threads_does_one_task_at_a_time(monkeypatch: Any) -> None:
    running, most = [], []

    def watch(requests: Any) -> None:
        running.append(1)
        most.append(len(running))
        time.sleep(0.01)
        running.pop()

    before_answers(monkeypatch, watch)
    with started(1, threads_per_worker=4) as local:
        ask("far", scheduler=local.scheduler_address)
    assert max(most) == 1
    assert len(most) > 4


def test_files_and_endpoints_are_asked_from_here() -> None:
    assert not Cluster(NOBODY).asks("openai:qwen@http://localhost:1/v1")
    ask("near")
    answers = columns("near")[["task", "item_id", "request", "repeat", "response"]]
    answers.to_json("answers.jsonl", orient="records", lines=True)
    replayed = ask("far", "replay:answers.jsonl", scheduler=NOBODY, read="text")
    assert replayed.about.get("workers") is None


def test_a_model_path_has_to_be_absolute(tmp_path: Path, refusal: Any, scheduler: str) -> None:
    (tmp_path / "my-model").mkdir()
    for name in ("./my-model", "my-model"):
        message = refusal(ask, "far", name, scheduler=scheduler)
        assert message.startswith(f"model {name}: workers have working folders of their own")
    # A folder that only workers have is looked for there.
    message = refusal(ask, "far", "/nowhere/model", scheduler=scheduler)
    assert message.startswith("worker tcp://127.0.0.1:")
    assert "/nowhere/model: " in message
    assert not Path("far").exists()


def test_a_run_waits_for_workers_but_not_for_ever(capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(cluster, "EVERY", 0.05)
    monkeypatch.setattr(cluster, "PATIENCE", 0.3)
    with started(0) as local:
        options = {"scheduler": local.scheduler_address}
        with pytest.raises(RunFailed, match="no worker came; the same command continues"):
            ask("far", **options)
        assert capsys.readouterr().err.count("waiting for a worker at tcp://") == 1
        monkeypatch.setattr(cluster, "PATIENCE", 60)
        threading.Timer(0.3, local.scale, [1]).start()
        ask("far", **options)
        monkeypatch.setattr(cluster, "PATIENCE", 0.3)
        message = r"no worker that offers GPU=1 came \(1 others are there\)"
        with pytest.raises(RunFailed, match=message):
            ask("other", resources={"GPU": 1}, **options)
    assert_as_here()


def test_shards_go_to_workers_that_offer_the_resources(monkeypatch: Any) -> None:
    asked, own_address = set(), cluster._address

    def address() -> str:
        asked.add(own_address())
        return own_address()

    async def add_worker(address: str) -> Any:
        from distributed import Worker

        return await Worker(address, nthreads=1, resources={"GPU": 1}, name="able")

    monkeypatch.setattr(cluster, "_address", address)
    with started(1) as local:
        able = local.sync(add_worker, local.scheduler_address)
        ask("far", scheduler=local.scheduler_address, resources={"GPU": 1})
        local.sync(able.close)
    assert asked == {able.address}


def test_a_small_run_on_many_workers_has_smaller_shards(monkeypatch: Any) -> None:
    some = Cluster(NOBODY)
    assert some.shard_size(256, 100) == 256  # of a model that is asked from here
    some._client = object()
    for workers, size in ((0, 256), (2, 256), (100, 256), (150, 197), (1000, 32), (100_000, 32)):
        monkeypatch.setattr(some, "_count_workers", lambda workers=workers: workers)
        assert some.shard_size(256, 118_666) == size
    assert some.shard_size(16, 118_666) == 16


def test_a_worker_with_another_model_or_version_is_refused_by_its_address(monkeypatch: Any) -> None:
    monkeypatch.setattr(cluster, "_address", lambda: "tcp://10.0.0.7:1")
    scorer = LoadOptions(MODEL, "{}")
    task = ShardTask(scorer, (scorer,))
    described = cluster.work(task).described
    for name, value in (("revision", "2"), ("dtype", "float16"), ("tokenizer_hash", "x")):
        cluster.WORKER.loaded.clear()
        message = rf"^worker tcp://10.0.0.7:1: .*\({name} was {value}, now "
        with pytest.raises(BadInput, match=message):
            cluster.work(replace(task, described={**described, name: value}))
    message = r"^worker tcp://10.0.0.7:1: has bias-workbench .*, the asker 9.9; "
    with pytest.raises(BadInput, match=message):
        cluster.work(replace(task, version="9.9"))


def test_other_packages_are_reported_once_and_recorded(
    scheduler: str, monkeypatch: Any, capsys: Any
) -> None:
    packages, on_worker = cluster.packages, threading.get_ident()

    def of_thread() -> dict[str, str]:
        old = {} if threading.get_ident() == on_worker else {"torch": "1.0"}
        return {**packages(), **old}

    monkeypatch.setattr(cluster, "packages", of_thread)
    about = ask("far", scheduler=scheduler).about
    assert capsys.readouterr().err.count("has torch 1.0 (here 2") == 1
    assert [worker["packages"]["torch"] for worker in about["workers"]] == ["1.0"]
    assert about["packages"]["torch"] != "1.0"


@pytest.mark.parametrize(
    ("raised", "kind", "message"),
    [
        (ValueError("what\nis this"), RunFailed, "the model did not answer (ValueError: what); "),
        (BadInput("the model has no tokens"), BadInput, "the model has no tokens"),
    ],
)
def test_a_shard_that_fails_is_named_and_the_others_are_kept(
    scheduler: str, monkeypatch: Any, raised: Exception, kind: type[Exception], message: str
) -> None:
    ask("near")
    bad = columns("near").item_id[40]

    def fail(requests: Any) -> None:
        if any(request.item_id == bad for request in requests):
            raise raised

    with monkeypatch.context() as patch:
        before_answers(patch, fail)
        place = rf"^shard \d+, worker {scheduler[:16]}.*{re.escape(message)}"
        with pytest.raises(kind, match=place):
            ask("far", scheduler=scheduler)
    n_far, n_near = (len(list(Path(n, "records").glob("*.parquet"))) for n in ("far", "near"))
    assert 0 < n_far < n_near
    ask("far", scheduler=scheduler)
    assert_as_here()


def test_an_interrupted_run_cancels_what_waits_on_the_cluster(monkeypatch: Any) -> None:
    asked: list[int] = []

    def interrupt(folder: Path) -> None:
        raise KeyboardInterrupt

    with started() as local:
        with monkeypatch.context() as patch:
            before_answers(patch, lambda requests: asked.append(1) or time.sleep(0.05))
            after_shards(patch, interrupt)
            with pytest.raises(KeyboardInterrupt):
                ask("far", scheduler=local.scheduler_address)
            time.sleep(0.4)
        assert len(asked) <= 4
        assert not local.scheduler.tasks
        ask("far", scheduler=local.scheduler_address)
    assert_as_here()


def test_a_run_whose_scheduler_is_lost_ends_and_continues(scheduler: str, monkeypatch: Any) -> None:
    lost = started(1)
    with monkeypatch.context() as patch:
        patch.setattr(cluster, "EVERY", 0.2)
        patch.setattr(cluster, "CONNECT", 2)
        after_shards(patch, lambda folder: lost.close())
        with pytest.raises(RunFailed, match="the scheduler is gone; the same command continues"):
            ask("far", scheduler=lost.scheduler_address)
    ask("far", scheduler=scheduler)
    assert_as_here()


def test_a_killed_worker_loses_nothing(monkeypatch: Any) -> None:
    killed = []
    with started(processes=True) as local:
        client = local.get_client()
        client.register_plugin(clustered.Slow(0.05))
        pids = list(client.run(os.getpid).values())

        def kill(folder: Path) -> None:
            if len(list((folder / "records").glob("*.parquet"))) == 4:
                os.kill(pids[0], signal.SIGKILL)
                killed.append(pids[0])

        with monkeypatch.context() as patch:
            after_shards(patch, kill)
            far = ask("far", scheduler=local.scheduler_address, limit=80)
        assert killed
        client.close()
    assert_as_here(limit=80)
    assert not far.records.duplicated(["task", "item_id", "request", "repeat"]).any()


def test_a_shard_that_kills_its_workers_is_named() -> None:
    ask("near")
    deadly = columns("near").item_id[40]
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        started(1, processes=True) as local,
    ):
        client = local.get_client()
        client.register_plugin(clustered.Slow(0.0, deadly))
        message = r"^shard \d+, worker tcp://127.0.0.1:\d+: died, as others before it"
        with pytest.raises(RunFailed, match=message):
            ask("far", scheduler=local.scheduler_address)
        client.close()


def test_two_workers_that_train_a_model_at_once_have_the_same_one(
    monkeypatch: Any, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(run, "SHARD", 4)
    with started(processes=True) as local:
        ask("far", "tiny:s,bias=0.3", limit=8, scheduler=local.scheduler_address)
    models = [path.name for path in (tmp_path / "cache/bias-workbench/tiny").iterdir()]
    assert [name.partition("-")[0] for name in models] == ["causal"]
    assert_as_here(model="tiny:s,bias=0.3", limit=8)


def test_the_command_and_a_study_take_a_scheduler(
    scheduler: str, tmp_path: Path, capsys: Any, monkeypatch: Any
) -> None:
    call = f"run cbbq --model {MODEL} --categories gender --limit 40".split()
    far = command(monkeypatch, capsys, *call, "--out", "far", "--scheduler", scheduler)
    assert far[0] == 0
    assert_as_here()
    text = (
        "title: t\nmodels: ['simulated:seed=1', 'simulated:seed=2']\n"
        "benchmarks: {cbbq: {limit: 2}}\n"
        "options: {scheduler: 'tcp://127.0.0.1:1', resources: {GPU: 1}}\n"
    )
    (tmp_path / "s.yml").write_text(text, "utf-8")
    plan = study.load(tmp_path / "s.yml")
    options = plan.run_options(plan.models[0], plan.variants[0])
    assert options == {"scheduler": NOBODY, "resources": {"GPU": 1}, "limit": 2}
    assert study_runs.jobs(plan, None) == 1  # models would take turns on the same workers


# What is refused before anything is asked.


@pytest.mark.parametrize("value", ["x", "0", "-1", "nan", "inf", ""])
def test_resources_are_numbers_above_0(refusal: Any, value: str) -> None:
    assert read_options({"resources": "A=1,B=20.5"})["resources"] == {"A": 1, "B": 20.5}
    assert "like GPU=1" in refusal(read_options, {"resources": f"GPU={value}"})
    assert "'two'" in refusal(ask, "far", resources={"GPU": "two"}, scheduler=NOBODY)


@pytest.mark.parametrize("address", ["nonsense", "foo://a:1", "tls://127.0.0.1:1"])
def test_an_address_that_cannot_be_one_is_refused(refusal: Any, address: str) -> None:
    assert refusal(ask, "far", scheduler=address).startswith(f"--scheduler {address}: ")
    assert not Path("far").exists()


def test_without_a_scheduler_the_run_ends(monkeypatch: Any) -> None:
    monkeypatch.setattr(cluster, "CONNECT", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it never answers
        for port in (1, silent.getsockname()[1]):
            with pytest.raises(RunFailed, match="no scheduler answers there"):
                ask("far", scheduler=f"tcp://127.0.0.1:{port}")


def test_other_errors_of_dask_are_one_line_with_a_hint() -> None:
    error = RuntimeError("Error during deserialization\nof the task graph")
    message = str(Cluster(NOBODY)._explain(3, error))
    assert message.startswith(f"shard 3, --scheduler {NOBODY}: no worker could be asked (Error ")
    assert "\n" not in message
    assert not str(Cluster(NOBODY)._explain(cluster.NO_SHARD, error)).startswith("shard")
