"""Runs on a cluster: what is refused before anything is asked, and what is said where nobody answers."""

import socket
from pathlib import Path
from typing import Any

import pytest

from bench.core.errors import RunFailed
from bench.run import cluster
from bench.run.cluster import Cluster
from tests.slow.test_cluster import ask

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("own_folder")]


def test_resources_are_spelt_in_one_way(refusal: Any) -> None:
    assert cluster.resources("GPU=1,MEMORY=20.5") == {"GPU": 1, "MEMORY": 20.5}
    assert cluster.resources("") == {}
    for wrong in ("GPU", "GPU=", "GPU=x", "GPU=0", "GPU=-1", "=1", "GPU=nan", "GPU=inf"):
        assert "like GPU=1" in refusal(cluster.resources, wrong)
    assert "--scheduler" in refusal(ask, "far", resources={"GPU": 1})
    assert "'two'" in refusal(ask, "far", resources={"GPU": "two"}, scheduler="tcp://127.0.0.1:1")


@pytest.mark.parametrize("address", ["nonsense", "foo://a:1", "tls://127.0.0.1:1"])
def test_what_can_be_no_address_is_refused(refusal: Any, address: str) -> None:
    said = refusal(ask, "far", scheduler=address)
    assert said.startswith(f"--scheduler {address}: ")
    assert not Path("far").exists()


def test_where_no_scheduler_is_the_run_ends(monkeypatch: Any) -> None:
    monkeypatch.setattr(cluster, "CONNECT", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # one that never answers
        for port in (1, silent.getsockname()[1]):
            with pytest.raises(RunFailed, match="no scheduler answers there"):
                ask("far", scheduler=f"tcp://127.0.0.1:{port}")


def test_whatever_else_dask_says_is_one_line_with_a_way_out() -> None:
    some = Cluster("tcp://127.0.0.1:1")
    said = str(some._failure(3, RuntimeError("Error during deserialization\nof the task graph")))
    assert said.startswith(
        "shard 3, --scheduler tcp://127.0.0.1:1: nobody could be asked there (Error during deserialization); "
    )
    assert "\n" not in said
    assert not str(some._failure(cluster.ALL, RuntimeError("x"))).startswith("shard")
