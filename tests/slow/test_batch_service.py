"""A batch that a real server answered is the run that asks this server."""

import socket
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from urllib.request import urlopen

import pandas as pd
import pytest

from bench.config import RunConfig
from bench.run import batch, evaluate
from tests.helpers.batch_service import answer, ask
from tests.helpers.checkpoints import characters, save

pytestmark = pytest.mark.slow
SERVE = "import sys; from transformers.cli.transformers import main; main()"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A model's folder, and the URL where `transformers serve` has it."""
    pytest.importorskip("fastapi")
    folder = tmp_path_factory.mktemp("served")
    save(folder, "Qwen2ForCausalLM", characters(chat=True), num_key_value_heads=4)
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    words = ["serve", str(folder), "--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    with subprocess.Popen([sys.executable, "-c", SERVE, *words]) as server:
        try:
            for _ in range(600):
                time.sleep(0.2)
                assert server.poll() is None, "the server ended"
                try:
                    urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
                    break
                except OSError:
                    continue
            yield str(folder), f"http://127.0.0.1:{port}/v1"
        finally:
            server.terminate()


def test_a_batch_gets_the_scores_of_a_run_of_the_same_server(served, own_folder):
    name, url = served
    options = {
        "categories": ["gender"],
        "limit": 10,
        "settings": {"prompting": "Q+IF+CoT"},
        "temperature": 0.0,
        "max_new_tokens": 8,
    }
    live = evaluate("cbbq", f"openai:{name}@{url}", out="live", name="served", **options)
    config = RunConfig.of({"benchmark": "cbbq", "as_model": name, **options})
    for stage in ("1", "2"):
        (written,), _ = batch.write(config, "results" if stage == "2" else "", Path("ask.jsonl"))
        results = Path("results", f"{stage}.jsonl")
        assert answer(written.path, results, ask(f"{url}/chat/completions")) == 20
    given = {"as_model": name, "name": "served", "out": "read", **options}
    read = evaluate("cbbq", "replay:results", **given)
    rows = [run.records.drop(columns="seconds") for run in (live, read)]
    pd.testing.assert_frame_equal(*rows)
    pd.testing.assert_frame_equal(live.scores(), read.scores())
    assert len(set(read.records.response)) > 1, "thoughts and answers differ"
