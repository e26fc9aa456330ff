"""Endpoints that fail: every answer comes once, whatever breaks between, and none is lost."""

import json
import math
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench import records, run
from bench.core.errors import RunFailed
from bench.report import study
from bench.scorers import load
from bench.scorers.endpoint import client, responses
from tests.helpers.answering import Reply, Server, fault, prompt, request, said
from tests.helpers.faults import KINDS, Faults

pytestmark = pytest.mark.slow
Serve = Callable[..., Server]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, own_folder: Path) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr(run, "SHARD", 16)


def letter(body: dict[str, Any]) -> Reply:
    """A, B or C, by the question, after a moment."""
    time.sleep(0.002)
    return said("ABC"[len(prompt(body)) % 3], usage=(len(prompt(body)), 1))


def evaluate(model: str, out: str, **options: Any) -> run.Run:
    given = {"tasks": ["ambiguous"], "categories": ["gender", "age"], "limit": 40, "repeats": 2}
    return run.evaluate("cbbq", model, out=out, **{**given, **options})


def check_same(one: run.Run, other: run.Run) -> None:
    """The same answers to the same requests, and the same scores."""
    rows = [done.records.drop(columns="seconds") for done in (one, other)]
    pd.testing.assert_frame_equal(*rows)
    pd.testing.assert_frame_equal(one.scores(), other.scores())


def test_at_thirty_percent_of_faults_every_answer_is_recorded_once(serve: Serve) -> None:
    server = serve(letter)
    plain = evaluate(server.model, "plain")
    with Faults(server.server_port, seed=1) as proxy:
        model = f"openai:some-model@http://127.0.0.1:{proxy.port}/v1"
        broken = evaluate(model, "broken", limits={"concurrency": 32, "timeout": 0.7})
    check_same(plain, broken)
    assert len(plain.records) == 160
    assert not broken.records.duplicated(["task", "item_id", "request", "repeat"]).any()
    assert set(proxy.faults) >= set(KINDS), "a fault that did not happen was not tested"
    assert 0.2 < proxy.faults.total() / proxy.came.total() < 0.4
    assert not Path("broken/records/journal.jsonl").exists()


def test_answers_from_before_the_server_broke_are_kept(serve: Serve) -> None:
    count, well = Counter[str](), [False]

    def behave(body: dict[str, Any]) -> Reply:
        count[json.dumps(body, sort_keys=True)] += 1
        unloaded = not well[0] and count.total() > 50
        return fault(404, "the model was unloaded") if unloaded else letter(body)

    server = serve(behave)
    with pytest.raises(RunFailed) as caught:
        evaluate(server.model, "out")
    message = str(caught.value)
    assert message.startswith("the model: http://127.0.0.1:")
    assert "status 404 (the model was unloaded); 50 of 160 requests were answered; " in message
    assert "the same command continues from what is recorded" in message
    assert count.total() <= 50 + 8, "only what was under way was sent after that"
    well[0] = True
    before = count.total()
    continued = evaluate(server.model, "out")
    assert count.total() - before == 110
    check_same(evaluate(server.model, "complete"), continued)


def test_a_request_that_always_fails_does_not_keep_the_others_from_their_answers(
    serve: Serve,
) -> None:
    server = serve(
        lambda body: fault(500, "it broke") if prompt(body) == "7" else said(prompt(body))
    )
    scorer: Any = load(server.model)
    answers: dict[int, str] = {}

    def answer() -> None:
        for k, reply in scorer.stream([request(str(k)) for k in range(50)]):
            answers[k] = reply.response

    with pytest.raises(RunFailed, match=r"a request failed each time \(status 500: it broke\); 49"):
        answer()
    assert answers == {k: str(k) for k in range(50) if k != 7}


def test_a_server_that_answers_nothing_any_more_is_given_up(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "PATIENCE", 0.5)
    scorer = load(serve(lambda body: fault(429, "later")).model, limits={"timeout": 0.1})
    with pytest.raises(RunFailed, match=r"answers nothing any more \(status 429: later\); 0 of 9"):
        scorer.answer([request(str(k)) for k in range(9)])


def test_no_server_is_waited_for_longer_than_an_hour_or_until_it_is_paid(serve: Serve) -> None:
    tomorrow = serve(lambda body: fault(429, "no more today", **{"Retry-After": "86400"}))
    with pytest.raises(RunFailed, match=r"asks to wait 86,400 s \(status 429: no more today\)"):
        load(tomorrow.model).answer([request("x")])
    unpaid = serve(lambda body: fault(429, "You exceeded your current quota", "insufficient_quota"))
    with pytest.raises(RunFailed, match=r"status 429 \(You exceeded your current quota\)"):
        load(unpaid.model).answer([request("x")])
    assert len(unpaid.seen) == 1


def test_a_budget_ends_the_run_and_a_larger_one_continues_it(serve: Serve) -> None:
    server = serve(letter)
    with pytest.raises(RunFailed) as caught:
        evaluate(server.model, "out", limits={"budget_requests": 60})
    assert "the budget of 60 requests is spent (60 requests sent; " in str(caught.value)
    assert "give more by --budget-requests; 5" in str(caught.value)
    assert len(server.seen) + len(server.tried) == 60
    evaluate(server.model, "out")
    assert len(server.seen) == 160
    with pytest.raises(RunFailed, match="the budget of 1,000 tokens is spent"):
        evaluate(server.model, "tokens", limits={"budget_tokens": 1000, "concurrency": 2})
    spent = sum(len(prompt(body)) + 1 for body in server.seen[160:])
    assert 1000 <= spent < 1000 + 2 * max(len(prompt(body)) + 1 for body in server.seen)


def test_no_more_requests_are_under_way_than_allowed(serve: Serve) -> None:
    for n in (1, 3):
        server = serve(letter)
        load(server.model, limits={"concurrency": n}).answer([request(str(k)) for k in range(40)])
        assert server.busiest == n


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"concurrency": 0}, "--concurrency 0: has to be at least 1"),
        ({"timeout": -1.0}, "--timeout -1.0: has to be above 0"),
        ({"budget_tokens": 1.5}, "--budget-tokens 1.5: is not a whole number"),
        ({"concurrency": True}, "concurrency True: is not a whole number"),
        ({"speed": 1}, "limit 'speed' is unknown; allowed: concurrency, timeout, budget_requests"),
    ],
)
def test_wrong_limits_are_refused(refusal: Any, limits: dict[str, Any], message: str) -> None:
    assert message in refusal(evaluate, "simulated:", "out", limits=limits)
    head = "title: T\nmodels: ['simulated:']\nbenchmarks: {cbbq: {}}\noptions: "
    Path("mine.yml").write_text(head + json.dumps({"limits": limits}), "utf-8")
    assert message in refusal(study.load, Path("mine.yml")).replace(".nan", "nan")


def test_replies_that_were_cut_off_are_recorded_and_counted(serve: Serve, capsys: Any) -> None:
    server = serve(lambda body: said("A 因为", "length") if "女" in prompt(body) else said("B"))
    done = evaluate(server.model, "out", repeats=1)
    n = sum("女" in text for text in done.records.prompt)
    assert n > 10
    assert records.count_cut_off(done.folder) == {"ambiguous": n}
    assert set(done.records.response) == {"A 因为", "B"}
    assert done.records.valid.all(), "a choice is a choice, though the rest was cut off"
    message = f"cut off at their limit of tokens: ambiguous {n}; --max-new-tokens"
    assert message in capsys.readouterr().err


def test_a_judge_fails_and_continues_like_a_model(serve: Serve) -> None:
    def judge(body: dict[str, Any]) -> Reply:
        assert body["temperature"] == 0
        return said("有")

    given = {"settings": {"explanation": "yes"}, "repeats": 1, "limit": 10, "max_new_tokens": 8}
    server = serve(judge)
    plain = evaluate("simulated:", "plain", judge=server.model, **given)
    with Faults(server.server_port, seed=2) as proxy:
        model = f"openai:some-model@http://127.0.0.1:{proxy.port}/v1"
        broken = evaluate("simulated:", "broken", judge=model, limits={"timeout": 0.5}, **given)
    check_same(plain, broken)
    assert proxy.faults.total() > 3
    reason = r"status 401; it was asked without a key: .* OPENAI_API_KEY__127_0_0_1_\d+ is not set"
    refusing = serve(lambda body: fault(401, "who are you"))
    with pytest.raises(RunFailed, match=rf"the judge: http://.*{reason}"):
        evaluate("simulated:", "out", judge=refusing.model, **given)


NAMES = [
    "choices",
    "logprobs",
    "content",
    "top_logprobs",
    "token",
    "logprob",
    "token_logprobs",
    "prompt_logprobs",
    "usage",
    "completion_tokens",
    "message",
    "finish_reason",
    "text",
    "type",
    "tokens",
    "error",
    "detail",
    "loc",
]
LEAVES = st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.sampled_from(NAMES)
BODIES = st.recursive(
    LEAVES | st.text(max_size=4),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.sampled_from(NAMES), part),
    max_leaves=20,
)


@settings(max_examples=2000)
@given(BODIES)
def test_any_answer_is_read_or_refused(body: Any) -> None:
    inside: Any = {"choices": [body], "usage": body}
    for choice in (body, inside):
        if isinstance(choice, dict):
            with suppress(responses.Unanswered):
                assert isinstance(responses.text_of(choice), str)
            first = responses.first_tokens(choice)
            values, bounded = responses.options(first, ["token", "content"])
            assert len(values) in (0, 2)
            assert bounded < 2
            for how in ("echo", "prompt_logprobs"):
                values = responses.prompt_logprobs(choice, how) or []
                assert all(math.isfinite(value) for value in [*values, *first.values()])
            responses.last_token(choice)
    assert responses.token_count(inside, "completion_tokens") >= 0
    assert all(isinstance(text, str) for text in responses.error_texts(body))


def test_ctrl_c_ends_it_at_once_and_says_how_to_continue(serve: Serve) -> None:
    server = serve(lambda body: said("A") if len(server.seen) < 30 else time.sleep(60) or said("A"))
    options = f"--model {server.model} --tasks ambiguous --limit 10 --out out".split()
    command = [sys.executable, "-m", "bench", "run", "cbbq", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while len(server.seen) < 37:  # eight under way, which do not end
        time.sleep(0.05)
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, printed = process.communicate(timeout=20)
    assert process.returncode == 130
    message = "bench: interrupted; the same command continues from what is recorded"
    assert printed.strip().splitlines()[-1] == message
    journal = Path("out/records/journal.jsonl").read_text("utf-8")
    assert sum("[" in line for line in journal.splitlines()) == 29
