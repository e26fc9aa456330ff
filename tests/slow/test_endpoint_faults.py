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
from bench.scorers import load
from bench.scorers.endpoint import client, responses
from tests.helpers.answering import KINDS, Reply, Server, fault, prompt, request, said

pytestmark = pytest.mark.slow
Serve = Callable[..., Server]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, own_folder: Path) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


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


@pytest.mark.parametrize("judge", [False, True])
def test_at_thirty_percent_of_faults_every_answer_is_recorded_once(
    serve: Serve, judge: bool
) -> None:
    server = serve((lambda body: said("有")) if judge else letter)
    more: dict[str, Any] = {"settings": {"explanation": "yes"}, "limit": 10} if judge else {}

    def ask(out: str, **options: Any) -> run.Run:
        given = ("simulated:", server.model) if judge else (server.model, None)
        return evaluate(given[0], out, judge=given[1], **more, **options)

    plain = ask("plain")
    server.rate = 0.3
    broken = ask("broken", limits={"concurrency": 32, "timeout": 0.7})
    check_same(plain, broken)
    assert not broken.records.duplicated(["task", "item_id", "request", "repeat"]).any()
    assert judge or set(server.faults) >= set(KINDS), "a fault that did not happen was not tested"
    assert server.faults.total() > 3


def test_answers_from_before_the_server_broke_are_kept(serve: Serve) -> None:
    count, well = Counter[str](), [False]

    def behave(body: dict[str, Any]) -> Reply:
        count[json.dumps(body, sort_keys=True)] += 1
        unloaded = not well[0] and count.total() > 50
        return fault(404, "the model was unloaded") if unloaded else letter(body)

    server = serve(behave)
    with pytest.raises(RunFailed) as caught:
        evaluate(server.model, "out")
    message = "status 404 (the model was unloaded); 50 of 160 requests were answered; the same comm"
    assert message in str(caught.value)
    assert count.total() <= 50 + 8, "only what was under way was sent after that"
    well[0] = True
    before = count.total()
    continued = evaluate(server.model, "out")
    assert count.total() - before == 110
    check_same(evaluate(server.model, "complete"), continued)


QUOTA = fault(429, "You exceeded your current quota", "insufficient_quota")


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (fault(429, "later"), r"answers nothing any more \(status 429: later\); 0 of 9"),
        (fault(429, "no", **{"Retry-After": "86400"}), r"to wait 86,400 s \(status 429: no\)"),
        (QUOTA, r"status 429 \(You exceeded your current quota\)"),
    ],
)
def test_a_server_that_answers_nothing_any_more_is_given_up(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, reply: Reply, message: str
) -> None:
    monkeypatch.setattr(client, "PATIENCE", 0.5)
    scorer = load(serve(lambda body: reply).model, limits={"timeout": 10})
    with pytest.raises(RunFailed, match=message):
        scorer.answer([request(str(k)) for k in range(9)])


def test_a_budget_ends_the_run_and_a_larger_one_continues_it(serve: Serve) -> None:
    server = serve(letter)
    with pytest.raises(RunFailed) as caught:
        evaluate(server.model, "out", limits={"budget_requests": 60})
    assert "the budget of 60 requests is spent; " in str(caught.value)
    assert len(server.seen) + len(server.tried) == 60
    evaluate(server.model, "out")
    assert len(server.seen) == 160
    with pytest.raises(RunFailed, match="the budget of 1,000 tokens is spent"):
        evaluate(server.model, "tokens", limits={"budget_tokens": 1000, "concurrency": 2})
    sizes = [len(prompt(body)) + 1 for body in server.seen]
    assert 1000 <= sum(sizes[160:]) < 1000 + 2 * max(sizes)


FIELDS = """choices logprobs content top_logprobs token logprob token_logprobs prompt_logprobs usage
completion_tokens prompt_tokens message finish_reason text type tokens error detail loc"""
NAMES = FIELDS.split()
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.just(10**400)
    | st.floats()
    | st.sampled_from(NAMES)
)
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
            with suppress(responses.Unanswered):
                first = responses.first_tokens(choice)
                assert all(math.isfinite(value) for _, value in first)
                responses.begins_thought(choice, first)
                values, bounded = responses.options(first, ["token", "content"])
                assert len(values) in (0, 2)
                assert bounded < 2
            for how in ("echo", "prompt_logprobs"):
                with suppress(responses.Broken):
                    values = responses.prompt_logprobs(choice, how) or []
                    assert all(map(math.isfinite, values))
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
    assert records.count(Path("out")) == 29
