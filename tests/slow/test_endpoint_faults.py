"""Endpoints that fail: every answer comes once, whatever breaks between, and nothing that came is lost."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

from bench import records, run
from bench.core.errors import BadInput, RunFailed
from bench.report import study
from bench.scorers import load
from bench.scorers.endpoint import client
from bench.tasks.request import Key, Request
from tests.helpers.answering import Reply, Server, fault, prompt, said
from tests.helpers.faults import KINDS, Faults

pytestmark = pytest.mark.slow

SMALL = "BENCH_SERVED_MODEL"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, own_folder: Path) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr(client, "FIRST_WAIT", 0.001)
    monkeypatch.setattr(run, "SHARD", 16)


Serve = Callable[..., Server]


def request(text: str) -> Request:
    return Request("c", "t", "i", "answer", "generate", text, "v", Key())


def letter(asked: dict[str, Any]) -> Reply:
    """A, B or C, by the question; it takes a moment."""
    time.sleep(0.002)
    return said("ABC"[len(prompt(asked)) % 3], usage=(len(prompt(asked)), 1))


def asked(model: str, out: str, **options: Any) -> run.Run:
    given = {
        "tasks": ["ambiguous"],
        "categories": ["gender", "age"],
        "limit": 40,
        "repeats": 2,
        "out": out,
    }
    return run.evaluate("cbbq", model, **{**given, **options})


def same(one: run.Run, other: run.Run) -> None:
    """The same answers to the same requests, and the same scores."""
    told = [result.records.drop(columns="seconds") for result in (one, other)]
    pd.testing.assert_frame_equal(*told)
    pd.testing.assert_frame_equal(one.scores(), other.scores())


def test_at_thirty_percent_of_faults_every_answer_is_recorded_once(serve: Serve) -> None:
    server = serve(letter)
    plain = asked(server.model, "plain")
    n = len(plain.records)
    with Faults(server.server_port, seed=1, pause=0.02) as proxy:
        broken = asked(
            f"openai:some-model@http://127.0.0.1:{proxy.port}/v1",
            "broken",
            limits={"concurrency": 32, "timeout": 0.7},
        )
    same(plain, broken)
    assert n == 160
    assert not broken.records.duplicated(["task", "item_id", "request", "repeat"]).any()
    assert set(proxy.faults) == set(KINDS), "a fault that did not happen was not tried"
    assert 0.2 < proxy.faults.total() / proxy.came.total() < 0.4
    assert not Path("broken/records/journal.jsonl").exists()


def test_what_was_answered_before_the_server_broke_is_kept_and_the_rest_is_asked_later(
    serve: Serve,
) -> None:
    count, well = Counter[str](), [False]

    def behave(body: dict[str, Any]) -> Reply:
        count[json.dumps(body, sort_keys=True)] += 1
        return (
            letter(body) if well[0] or count.total() <= 50 else fault(404, "the model was unloaded")
        )

    server = serve(behave)
    with pytest.raises(RunFailed) as caught:
        asked(server.model, "out")
    message = str(caught.value)
    assert message.startswith("the model: http://127.0.0.1:")
    assert (
        "status 404 (the model was unloaded); 50 of 160 requests were answered; the same command continues from what is recorded"
        in message
    )
    assert count.total() <= 50 + 8, "only what was under way was sent after that"
    well[0] = True
    before = count.total()
    whole = asked(server.model, "out")
    assert count.total() - before == 110
    same(asked(server.model, "whole"), whole)


def test_a_request_that_always_fails_does_not_keep_the_others_from_their_answers(
    serve: Serve,
) -> None:
    scorer = load(
        serve(
            lambda body: fault(500, "it broke") if prompt(body) == "7" else said(prompt(body))
        ).model
    )
    found: dict[int, Any] = {}

    def ask() -> None:
        for k, answer in scorer.stream([request(str(k)) for k in range(50)]):  # type: ignore[attr-defined]
            found[k] = answer.response

    with pytest.raises(
        RunFailed, match=r"a request failed each time \(status 500: it broke\); 49 of 50"
    ):
        ask()
    assert found == {k: str(k) for k in range(50) if k != 7}


def test_a_server_that_answers_nothing_any_more_is_given_up(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "PATIENCE", 0.5)
    scorer = load(serve(lambda body: fault(429, "later")).model, limits={"timeout": 0.1})
    with pytest.raises(RunFailed, match=r"answers nothing any more \(status 429: later\); 0 of 9"):
        scorer.answer([request(str(k)) for k in range(9)])


def test_what_the_server_asks_to_wait_is_waited_but_not_for_ever(
    serve: Serve, waits: list[float]
) -> None:
    replies = [fault(503, "restarting", **{"Retry-After": "1"}), said("A")]
    server = serve(lambda body: replies[len(server.seen) - 1])
    assert load(server.model).answer([request("x")])[0].response == "A"
    assert waits == [1]
    tomorrow = serve(lambda body: fault(429, "no more today", **{"Retry-After": "86400"}))
    with pytest.raises(RunFailed, match=r"asks to wait 86,400 s \(status 429: no more today\)"):
        load(tomorrow.model).answer([request("x")])
    unpaid = serve(lambda body: fault(429, "You exceeded your current quota", "insufficient_quota"))
    with pytest.raises(RunFailed, match=r"status 429 \(You exceeded your current quota\)"):
        load(unpaid.model).answer([request("x")])
    assert len(unpaid.seen) == 1


def test_a_budget_ends_the_run_and_a_larger_one_goes_on(serve: Serve) -> None:
    server = serve(letter)
    with pytest.raises(
        RunFailed,
        match=r"the budget of 60 requests is spent \(60 requests sent; .*; give more by --budget-requests; 5\d of 160 requests",
    ):
        asked(server.model, "out", limits={"budget_requests": 60})
    assert len(server.seen) + len(server.tried) == 60
    asked(server.model, "out")
    assert len(server.seen) == 160
    with pytest.raises(RunFailed, match="the budget of 1,000 tokens is spent"):
        asked(server.model, "tokens", limits={"budget_tokens": 1000, "concurrency": 2})
    spent = sum(len(prompt(body)) + 1 for body in server.seen[160:])
    assert 1000 <= spent < 1000 + 2 * max(len(prompt(body)) + 1 for body in server.seen)


def test_no_more_requests_are_under_way_than_allowed(serve: Serve) -> None:
    for n in (1, 3):
        server = serve(letter)
        load(server.model, limits={"concurrency": n}).answer([request(str(k)) for k in range(40)])
        assert server.busiest == n


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"concurrency": 0}, "--concurrency 0: has to be at least 1"),
        ({"timeout": -1.0}, "--timeout -1.0: has to be above 0"),
        ({"timeout": float("nan")}, "--timeout nan"),
        ({"budget_tokens": 1.5}, "budget_tokens 1.5: is not a whole number"),
        ({"concurrency": True}, "concurrency True: is not a whole number"),
        ({"speed": 1}, "limit 'speed' is unknown; allowed: concurrency, timeout, budget_requests"),
    ],
)
def test_limits_that_are_none_are_refused(limits: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput) as caught:
        asked("simulated:", "out", limits=limits)
    assert words in str(caught.value)


def test_a_study_has_limits_too(tmp_path: Path) -> None:
    file = tmp_path / "mine.yml"
    text = "title: T\nmodels: ['simulated:']\nbenchmarks: {cbbq: {}}\noptions: {limits: {concurrency: %s}}\n"
    file.write_text(text.replace("%s", "64"), "utf-8")
    assert study.load(file).options["limits"] == {"concurrency": 64}
    file.write_text(text.replace("%s", "0"), "utf-8")
    with pytest.raises(
        BadInput, match=r"mine\.yml, key `options`: --concurrency 0: has to be at least 1"
    ):
        study.load(file)


def test_replies_that_were_cut_off_are_recorded_and_counted(serve: Serve, capsys: Any) -> None:
    server = serve(lambda body: said("A 因为", "length") if "女" in prompt(body) else said("B"))
    done = asked(server.model, "out", repeats=1)
    n = sum("女" in text for text in done.records.prompt)
    assert n > 10
    assert records.cut(done.folder) == {"ambiguous": n}
    assert set(done.records.response) == {"A 因为", "B"}
    assert done.records.valid.all(), "a choice is a choice, though the rest was cut off"
    assert (
        f"cut off at their limit of tokens: ambiguous {n}; --max-new-tokens"
        in capsys.readouterr().err
    )


def test_a_judge_fails_and_goes_on_like_a_model(serve: Serve) -> None:
    def judge(body: dict[str, Any]) -> Reply:
        assert body["temperature"] == 0
        return said("有")

    given = {"settings": {"explanation": "yes"}, "repeats": 1, "limit": 10, "max_new_tokens": 8}
    server = serve(judge)
    plain = asked("simulated:", "plain", judge=server.model, **given)
    with Faults(server.server_port, seed=2, pause=0.02) as proxy:
        broken = asked(
            "simulated:",
            "broken",
            judge=f"openai:some-model@http://127.0.0.1:{proxy.port}/v1",
            limits={"timeout": 0.5},
            **given,
        )
    same(plain, broken)
    assert proxy.faults.total() > 3
    reason = r"status 401; it was asked without a key: .* OPENAI_API_KEY__127_0_0_1_\d+ is not set"
    with pytest.raises(RunFailed, match=rf"the judge: http://.*{reason}"):
        asked(
            "simulated:", "out", judge=serve(lambda body: fault(401, "who are you")).model, **given
        )


def test_ctrl_c_ends_it_at_once_and_says_how_to_go_on(serve: Serve) -> None:
    server = serve(lambda body: said("A") if len(server.seen) < 30 else time.sleep(60) or said("A"))
    command = [
        sys.executable,
        "-m",
        "bench",
        "run",
        "cbbq",
        "--model",
        server.model,
        "--tasks",
        "ambiguous",
        "--limit",
        "10",
        "--out",
        "out",
    ]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while len(server.seen) < 37:  # eight under way, which do not end
        time.sleep(0.05)
        assert started.poll() is None
    started.send_signal(signal.SIGINT)
    _, told = started.communicate(timeout=20)
    assert started.returncode == 130
    assert (
        told.strip().splitlines()[-1]
        == "bench: interrupted; the same command continues from what is recorded"
    )
    journal = Path("out/records/journal.jsonl").read_text("utf-8")
    assert sum("[" in line for line in journal.splitlines()) == 29


def as_llama(folder: Path) -> Path:
    """The package's own small model as a checkpoint whose tokenizer `transformers` loads as it was written."""
    load("tiny:s").generate(["x"])  # type: ignore[attr-defined]
    scorer: Any = load("tiny:s")
    network, tokenizer = scorer.causal.network, scorer.causal.tokenizer
    known = {
        key: value
        for key, value in network.config.to_dict().items()
        if key in LlamaConfig().to_dict()
    }
    config = LlamaConfig(
        **{**known, "model_type": "llama", "architectures": None, "attention_bias": True}
    )
    same = LlamaForCausalLM(config)
    state = {
        name: torch.zeros_like(one) for name, one in same.state_dict().items()
    } | network.state_dict()
    same.load_state_dict(state)
    same.generation_config = GenerationConfig(do_sample=False, eos_token_id=tokenizer.eos_token_id)
    same.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_a_real_server_behind_faults_gives_the_scores_of_one_without(tmp_path: Path) -> None:
    """`transformers serve` with the checkpoint that BENCH_SERVED_MODEL names, or with the package's own small model."""
    folder = Path(os.environ[SMALL]) if SMALL in os.environ else as_llama(tmp_path / "model")
    if not shutil.which("transformers"):
        pytest.skip("no command `transformers` on the path")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        "transformers",
        "serve",
        str(folder),
        "--port",
        str(port),
        "--device",
        "cpu",
        "--dtype",
        "float32",
    ]
    with Path("serve.log").open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            if server.poll() is not None:
                pytest.skip(
                    f"transformers serve does not start: {Path('serve.log').read_text()[-300:]}"
                )
            time.sleep(0.2)
        options = {
            "tasks": None,
            "categories": None,
            "limit": None,
            "repeats": 1,
            "max_new_tokens": 8,
        }
        n = int(os.environ.get("BENCH_SERVED_REQUESTS", "2000"))
        options["limit"] = max(n // 27, 1)
        began = time.monotonic()
        plain = asked(f"openai:{folder}@http://127.0.0.1:{port}/v1", "plain", **options)
        between = time.monotonic()
        with Faults(port, seed=3, retry_after="1", pause=0.05) as proxy:
            broken = asked(
                f"openai:{folder}@http://127.0.0.1:{proxy.port}/v1",
                "broken",
                limits={
                    "concurrency": 16,
                    "timeout": float(os.environ.get("BENCH_SERVED_TIMEOUT", "5")),
                },
                **options,
            )
        print(
            f"{len(plain.records):,} requests; without faults {between - began:.0f} s, with faults {time.monotonic() - between:.0f} s; "
            f"sent {proxy.came.total():,}, faults {dict(proxy.faults)} = {proxy.faults.total() / proxy.came.total():.1%}, whole answers {proxy.whole:,}"
        )
        same(plain, broken)
        assert len(plain.records) >= 0.95 * n
        assert len(set(plain.records.response)) > 1
        assert not broken.records.duplicated(["task", "item_id", "request", "repeat"]).any()
        assert (broken.records.error == "").all()
    finally:
        server.terminate()
        server.wait(20)
