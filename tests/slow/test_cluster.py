"""Runs on a cluster: the same records as here, whoever dies; what is refused, and what is said while nobody is there."""

import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import pytest
from distributed import LocalCluster
from pandas.testing import assert_frame_equal

from bench import cli, records, report, run, scorers
from bench.config import RunConfig
from bench.core.errors import BadInput, RunFailed
from bench.report import study, study_runs
from bench.run import cluster, worker
from bench.run.cluster import Cluster
from bench.run.plan import Plan
from bench.scorers.base import VERBS, Answer
from bench.scorers.stand_ins.simulated import Simulated
from tests.helpers.recorded import columns
from tests.slow.helpers import clustered

pytestmark = pytest.mark.slow

MODEL = "simulated:bias=0.6,position=0.2,refuse=0.1,seed=4"


@pytest.fixture(autouse=True)
def small_shards(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "SHARD", 16)
    monkeypatch.setattr(worker, "_loaded", {})


@pytest.fixture(scope="module")
def here() -> Iterator[Any]:
    """A cluster of two workers in this process."""
    with started(processes=False) as some:
        yield some


def started(n: int = 2, **options: Any) -> LocalCluster:
    return LocalCluster(
        n_workers=n,
        threads_per_worker=1,
        dashboard_address=":0",
        memory_limit=0,
        host="127.0.0.1",
        protocol="tcp",
        silence_logs="CRITICAL",
        **options,
    )


def ask(out: str, model: str = MODEL, benchmark: str = "cbbq", **options: Any) -> run.Run:
    given = (
        {"categories": ["gender"], "limit": 40, "out": out}
        if benchmark == "cbbq"
        else {"limit": 2, "out": out}
    )
    return run.evaluate(benchmark, model, partial=True, **{**given, **options})


def same(one: str, other: str) -> None:
    assert_frame_equal(columns(one), columns(other))


@pytest.mark.parametrize("benchmark", ["cbbq", "mcbe", "nli_coal"])
def test_the_records_are_those_of_a_run_here(here: Any, benchmark: str) -> None:
    options = (
        {
            "judge": "simulated:seed=9",
            "settings": {"context_order": "judge", "replies": "until_answered"},
        }
        if benchmark == "mcbe"
        else {}
    )
    far = ask("far", benchmark=benchmark, scheduler=here.scheduler_address, **options)
    near = ask("near", benchmark=benchmark, **options)
    same("far", "near")
    assert {name for name in far.about if far.about[name] != near.about.get(name)} <= {
        "workers",
        "when",
    }
    assert [one["packages"] for one in far.about["workers"]] == [far.about["packages"]]
    assert not (Path("far") / "records" / "journal.jsonl").exists()
    # A complete run is only read: nobody is looked for.
    ask("far", benchmark=benchmark, scheduler="tcp://127.0.0.1:1", **options)


def test_what_was_begun_here_goes_on_there_and_the_other_way_round(here: Any) -> None:
    ask("near")
    for path in sorted(Path("near/records").glob("*.parquet"))[1:]:
        path.unlink()
    before = columns("near")
    ask("near", scheduler=here.scheduler_address)
    ask("whole")
    same("near", "whole")
    assert len(before) == 16


def test_requests_travel_as_data_and_by_name_and_are_small() -> None:
    for benchmark in ("cbbq", "mcbe", "nli_coal"):
        settings = {
            "cbbq": {"prompting": "Q+IF+CoT", "explanation": "yes"},
            "mcbe": {"context_order": "judge", "replies": "until_answered"},
        }.get(benchmark, {})
        config = RunConfig.of(
            benchmark=benchmark, model=MODEL, judge=MODEL, limit=3, settings=settings
        )
        plan = Plan.make(config)
        requests = [
            one for stage in plan.requests(VERBS, ("text",), VERBS, True).stages for one in stage
        ]
        assert benchmark == "nli_coal" or any(one.then for one in requests)
        sent = cluster._bare(requests)
        text = pickle.dumps(sent)
        again = pickle.loads(text)  # noqa: S301
        assert again == sent
        assert all(one.until is other.until for one, other in zip(sent, again, strict=True))
        assert len(text) / len(sent) < 2000


def test_a_worker_loads_a_model_once_and_forgets_those_of_other_runs(
    here: Any, monkeypatch: Any
) -> None:
    loaded = []
    whole = scorers.load

    def load(*given: Any, **options: Any) -> Any:
        loaded.append(given[0])
        time.sleep(0.05)
        return whole(*given, **options)

    monkeypatch.setattr(scorers, "load", load)
    judge = "simulated:seed=9"
    ask("a", benchmark="mcbe", judge=judge, scheduler=here.scheduler_address)
    ask("b", benchmark="mcbe", judge=judge, seed=1, scheduler=here.scheduler_address)
    assert sorted(loaded) == sorted([MODEL, judge])
    assert {wanted.model for wanted in worker._loaded} == {MODEL, judge}
    ask("c", "simulated:seed=1", scheduler=here.scheduler_address)
    assert [wanted.model for wanted in worker._loaded] == ["simulated:seed=1"]


def test_a_worker_with_threads_asks_one_thing_at_a_time(monkeypatch: Any) -> None:
    at_once, most = [], []
    whole = Simulated.answer

    def answer(respondent: Simulated, requests: Any) -> list[Answer]:
        at_once.append(1)
        most.append(len(at_once))
        time.sleep(0.01)
        at_once.pop()
        return whole(respondent, requests)

    monkeypatch.setattr(Simulated, "answer", answer)
    with LocalCluster(
        n_workers=1, threads_per_worker=4, processes=False, dashboard_address=":0"
    ) as some:
        ask("far", scheduler=some.scheduler_address)
    assert max(most) == 1
    assert len(most) > 4


def test_files_and_endpoints_are_asked_from_here(here: Any, tmp_path: Path) -> None:
    some = Cluster("tcp://127.0.0.1:1")
    assert not some.asks("openai:qwen@http://localhost:1/v1")
    ask("near")
    answers = columns("near")[["task", "item_id", "request", "repeat", "response"]]
    answers.to_json("answers.jsonl", orient="records", lines=True)
    # Nobody is at this address; an address is only called where somebody there is to answer.
    replayed = ask(
        "replayed", "replay:answers.jsonl", scheduler="tcp://127.0.0.1:1", limit=40, read="text"
    )
    assert replayed.about.get("workers") is None


def test_a_path_has_to_mean_the_same_everywhere(tmp_path: Path, refusal: Any, here: Any) -> None:
    (tmp_path / "my-model").mkdir()
    for name in ("./my-model", "my-model"):
        said = refusal(ask, "far", name, scheduler=here.scheduler_address)
        assert said.startswith(f"model {name}: workers have working folders of their own")
    # A folder that only workers have is looked for there.
    said = refusal(ask, "far", "/nowhere/model", scheduler=here.scheduler_address)
    assert said.startswith("worker tcp://127.0.0.1:")
    assert "/nowhere/model: " in said
    assert not Path("far").exists()


def test_while_no_worker_is_there_that_is_said_and_not_for_ever(
    capsys: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(cluster, "EVERY", 0.05)
    monkeypatch.setattr(cluster, "PATIENCE", 0.3)
    with started(0, processes=False) as empty:
        with pytest.raises(RunFailed, match="no worker came; the same command continues"):
            ask("far", scheduler=empty.scheduler_address)
        assert capsys.readouterr().err.count("waiting for a worker at tcp://") == 1
        monkeypatch.setattr(cluster, "PATIENCE", 60)
        threading.Timer(0.3, empty.scale, [1]).start()
        ask("far", scheduler=empty.scheduler_address)
        monkeypatch.setattr(cluster, "PATIENCE", 0.3)
        with pytest.raises(
            RunFailed, match=r"no worker that offers GPU=1 came \(1 others are there\)"
        ):
            ask("wanting", scheduler=empty.scheduler_address, resources={"GPU": 1})
    ask("near")
    same("far", "near")


def test_shards_go_to_workers_that_offer_what_is_wanted(monkeypatch: Any) -> None:
    asked = []
    monkeypatch.setattr(worker, "_address", lambda: asked.append(_own()) or _own())
    with started(1, processes=False) as some:
        (plain,) = some.workers.values()
        able = some.sync(_one_more, some.scheduler_address)
        ask("far", scheduler=some.scheduler_address, resources={"GPU": 1})
        some.sync(able.close)
    assert set(asked) == {able.address} != {plain.address}


def _own() -> str:
    from distributed import get_worker

    return str(get_worker().address)


async def _one_more(address: str) -> Any:
    from distributed import Worker

    return await Worker(address, nthreads=1, resources={"GPU": 1}, name="able")


def test_a_small_run_on_many_workers_has_smaller_shards(monkeypatch: Any) -> None:
    some = Cluster("tcp://127.0.0.1:1")
    assert some.shard(256, 100) == 256  # of a model that is asked from here
    some._client = object()
    for places, size in ((0, 256), (2, 256), (100, 256), (150, 197), (1000, 32), (100_000, 32)):
        monkeypatch.setattr(some, "_places", lambda places=places: places)
        assert some.shard(256, 118_666) == size
    assert some.shard(16, 118_666) == 16


def test_a_worker_with_another_model_or_version_is_refused_by_its_address(monkeypatch: Any) -> None:
    monkeypatch.setattr(worker, "_address", lambda: "tcp://10.0.0.7:1")
    wanted = worker.Wanted(MODEL, "{}")
    order = Cluster("tcp://127.0.0.1:1").order(wanted)
    described = worker.show(order).described
    assert described["revision"] == "1"
    for name, value in (("revision", "2"), ("dtype", "float16"), ("tokenizer_hash", "x")):
        worker._loaded.clear()
        other = worker.Order(wanted, (wanted,), order.version, {**described, name: value})
        with pytest.raises(
            BadInput, match=rf"^worker tcp://10.0.0.7:1: .*\({name} was {value}, now "
        ):
            worker.answer(other, [])
    with pytest.raises(
        BadInput, match=r"^worker tcp://10.0.0.7:1: has bias-workbench .*, the asker 9.9; "
    ):
        worker.answer(worker.Order(wanted, (wanted,), "9.9"), [])


def test_other_packages_are_told_once_and_recorded(
    here: Any, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.setattr(worker, "packages", lambda: {**cluster.packages(), "torch": "1.0"})
    about = ask("far", scheduler=here.scheduler_address).about
    assert capsys.readouterr().err.count("has torch 1.0 (here 2") == 1
    assert [one["packages"]["torch"] for one in about["workers"]] == ["1.0"]
    assert about["packages"]["torch"] != "1.0"


@pytest.mark.parametrize(
    ("raised", "kind", "said"),
    [
        (ValueError("what\nis this"), RunFailed, "the model did not answer (ValueError: what); "),
        (BadInput("the model has no tokens"), BadInput, "the model has no tokens"),
    ],
)
def test_a_shard_that_fails_is_named_and_the_others_are_kept(
    here: Any, monkeypatch: Any, raised: Exception, kind: type[Exception], said: str
) -> None:
    whole = Simulated.answer
    ask("near")
    bad = columns("near").item_id[40]

    def answer(respondent: Simulated, requests: Any) -> list[Answer]:
        if any(request.item_id == bad for request in requests):
            raise raised
        return whole(respondent, requests)

    with monkeypatch.context() as patch:
        patch.setattr(Simulated, "answer", answer)
        with pytest.raises(kind) as failure:
            ask("far", scheduler=here.scheduler_address)
    assert str(failure.value).startswith("shard ")
    assert f", worker {here.scheduler_address[:16]}" in str(failure.value)
    assert said in str(failure.value)
    there = len(list(Path("far/records").glob("*.parquet")))
    assert 0 < there < len(list(Path("near/records").glob("*.parquet")))
    ask("far", scheduler=here.scheduler_address)
    same("far", "near")


def test_what_was_not_begun_is_cancelled_when_the_asker_is_interrupted(
    here: Any, monkeypatch: Any
) -> None:
    write, asked = records.write_shard, []
    whole = Simulated.answer

    def answer(respondent: Simulated, requests: Any) -> list[Answer]:
        asked.append(1)
        time.sleep(0.05)
        return whole(respondent, requests)

    def interrupted(*given: Any) -> None:
        write(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Simulated, "answer", answer)
        patch.setattr(records, "write_shard", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ask("far", scheduler=here.scheduler_address)
        time.sleep(0.4)
    assert len(asked) <= 4
    assert not here.scheduler.tasks
    ask("far", scheduler=here.scheduler_address)
    ask("near")
    same("far", "near")


def test_a_scheduler_that_is_lost_ends_the_run_which_can_go_on(here: Any, monkeypatch: Any) -> None:
    write = records.write_shard
    lost = started(1, processes=False)

    def losing(*given: Any) -> None:
        write(*given)
        lost.close()

    with monkeypatch.context() as patch:
        patch.setattr(cluster, "EVERY", 0.2)
        patch.setattr(cluster, "CONNECT", 2)
        patch.setattr(records, "write_shard", losing)
        with pytest.raises(RunFailed, match="the scheduler is gone; the same command continues"):
            ask("far", scheduler=lost.scheduler_address)
    ask("far", scheduler=here.scheduler_address)
    ask("near")
    same("far", "near")


def test_a_worker_that_is_killed_loses_nothing(monkeypatch: Any) -> None:
    write, killed = records.write_shard, []
    with started(processes=True) as some:
        client = some.get_client()
        client.register_plugin(clustered.Slow(0.05))
        pids = list(client.run(os.getpid).values())
        assert len({*pids, os.getpid()}) == 3

        def killing(folder: Path, number: int, rows: Any) -> None:
            write(folder, number, rows)
            if len(list((folder / "records").glob("*.parquet"))) == 4:
                os.kill(pids[0], signal.SIGKILL)
                killed.append(pids[0])

        with monkeypatch.context() as patch:
            patch.setattr(records, "write_shard", killing)
            far = ask("far", scheduler=some.scheduler_address, limit=80)
        assert killed
        assert all(held == [MODEL] for held in client.run(clustered.held).values() if held)
        client.close()
    ask("near", limit=80)
    same("far", "near")
    assert not far.records.duplicated(["task", "item_id", "request", "repeat"]).any()


def test_a_shard_that_kills_its_workers_is_named() -> None:
    ask("near")
    deadly = columns("near").item_id[40]
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        started(1, processes=True) as some,
    ):
        client = some.get_client()
        client.register_plugin(clustered.Slow(0.0, deadly))
        with pytest.raises(
            RunFailed, match=r"^shard \d+, worker tcp://127.0.0.1:\d+: died, as others before it"
        ):
            ask("far", scheduler=some.scheduler_address)
        client.close()


def test_command_and_study_take_a_scheduler(
    here: Any, tmp_path: Path, capsys: Any, monkeypatch: Any, refusal: Any
) -> None:
    words = ["run", "cbbq", "--model", MODEL, "--categories", "gender", "--limit", "40", "--out"]
    monkeypatch.setattr(
        sys, "argv", ["bench", *words, "far", "--scheduler", here.scheduler_address]
    )
    assert cli._status(lambda: cli.app(standalone_mode=False)) == 0
    ask("near")
    same("far", "near")
    monkeypatch.setattr(sys, "argv", ["bench", *words, "other", "--resources", "GPU"])
    assert cli._status(lambda: cli.app(standalone_mode=False)) == 2
    assert "--resources GPU: expected NAME=NUMBER, like GPU=1" in capsys.readouterr().err
    text = "title: t\nmodels: ['simulated:seed=1', 'simulated:seed=2']\nbenchmarks: {cbbq: {limit: 2}}\noptions: {scheduler: 'tcp://127.0.0.1:1', resources: {GPU: 1}}\n"
    (tmp_path / "s.yml").write_text(text, "utf-8")
    plan = study.load(tmp_path / "s.yml")
    options = plan.run_options(plan.models[0], plan.variants[0])
    assert options == {"scheduler": "tcp://127.0.0.1:1", "resources": {"GPU": 1}, "limit": 2}
    # Models would take turns on the same workers.
    assert study_runs.jobs(plan, None) == 1
    assert not {"scheduler", "resources"} & {*report._notebooks(plan, tmp_path)["cbbq"]}


def test_two_workers_that_train_a_model_at_once_have_the_same_one(
    monkeypatch: Any, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(run, "SHARD", 4)
    with started(processes=True) as some:
        ask("far", "tiny:s,bias=0.3", limit=8, scheduler=some.scheduler_address)
    made = sorted(path.name for path in (tmp_path / "cache" / "bias-workbench" / "tiny").iterdir())
    assert [name.partition("-")[0] for name in made] == ["causal"]
    ask("near", "tiny:s,bias=0.3", limit=8)
    same("far", "near")
