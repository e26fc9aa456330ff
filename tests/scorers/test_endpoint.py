"""The endpoint against a real HTTP server: order, retries, refusals, and a key that shows up nowhere."""

import json
import socket
import time
import traceback
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from bench.core.errors import RunFailed
from bench.scorers import load
from bench.scorers.base import Answer
from bench.scorers.endpoint import client
from bench.tasks.request import Key, Request
from tests.helpers.answering import Reply, Server, fault, prompt, said

SECRET = "sk-planted-0123456789"


def request(text: str, name: str = "answer", **fields: Any) -> Request:
    return Request("c", "t", "i", name, "generate", text, "v", Key(), **fields)


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr(client, "FIRST_WAIT", 0.001)


Serve = Callable[..., Server]


def test_answers_come_in_the_order_of_the_requests(serve: Serve) -> None:
    def behave(asked: dict[str, Any]) -> Reply:
        time.sleep(0.002 * (int(prompt(asked)) * 7 % 11))  # later ones are often answered sooner
        return said(f"reply to {prompt(asked)}")

    server = serve(behave)
    scorer = load(server.model)
    answers = scorer.answer([request(str(i), seed=i, max_new_tokens=7 + i % 2) for i in range(60)])
    assert [answer.response for answer in answers] == [f"reply to {i}" for i in range(60)]
    assert all(
        answer.error == "" and answer.logprobs is None and answer.seconds > 0 for answer in answers
    )
    assert 2 <= server.busiest <= 8
    for asked in server.seen:
        i = int(prompt(asked))
        # Nothing but this is sent: how to decode is left to the server.
        assert asked == {
            "model": "some-model",
            "messages": [{"role": "user", "content": str(i)}],
            "seed": i,
            "max_tokens": 7 + i % 2,
        }
    assert server.keys == {None}, "without a key there is no header for one"
    assert scorer.generate(["3", "1"]) == ["reply to 3", "reply to 1"]
    assert scorer.answer([]) == []


def test_a_judge_is_asked_at_temperature_0_and_nobody_else(serve: Serve) -> None:
    server = serve(lambda asked: said("7"))
    scorer = load(server.model)
    scorer.answer(
        [request("marks", "judge:1"), request("which first", "order"), request("answers")]
    )
    scorer.generate(["greedily"], greedy=True)
    found = {prompt(asked): asked.get("temperature") for asked in server.seen}
    assert found == {"marks": 0, "which first": 0, "answers": None, "greedily": 0}


def test_it_says_what_it_is(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET + "\n")
    server = serve(lambda asked: said("A"))
    scorer = load(server.model)
    scorer.answer([request("x")])
    assert server.keys == {f"Bearer {SECRET}"}
    assert scorer.verbs == ("generate",)
    about = scorer.describe()
    assert (about["id"], about["url"]) == (server.model, server.model.partition("@")[2])
    assert about["prompted_as"] == "chat turn of the endpoint"
    assert about["decoding"] == "the server's own"
    assert SECRET not in json.dumps(about)


def test_a_busy_server_is_asked_again_when_it_says(serve: Serve, waits: list[float]) -> None:
    replies = [fault(429, "slow down", **{"Retry-After": after}) for after in ("20", "0.2")] + [
        said("A")
    ]
    server = serve(lambda asked: replies[len(server.seen) - 1])
    assert load(server.model).answer([request("x")])[0].response == "A"
    assert waits == [20, 0.2]


REFUSALS: dict[str, Reply] = {
    "azure": fault(
        400,
        "The response was filtered due to Azure OpenAI's content management policy.",
        "content_filter",
    ),
    "openai": fault(
        400, "Invalid prompt: flagged as violating our content policy", "invalid_prompt"
    ),
    "alibaba": fault(
        400, "Input data may contain inappropriate content.", "data_inspection_failed"
    ),
    "deepseek": fault(400, "Content Exists Risk", "invalid_request_error"),
    "zhipu": fault(400, "系统检测到输入或生成内容可能包含不安全或敏感内容", "1301"),
    "moonshot": fault(
        400, "The request was rejected because it was considered high risk", "content_filter"
    ),
    "openrouter": fault(403, "Your chosen model requires moderation and your input was flagged"),
    "by its code": fault(422, "rejected", "content_filter"),
    "without an object": (403, {}, {"error": "blocked by our content policy"}),
    "in a list": (400, {}, [{"error": {"code": 400, "message": "sensitive content"}}]),
    "bare": (451, {"Content-Type": "text/plain"}, "sensitive content"),
    "as an answer": (200, {}, {"error": {"message": "flagged by moderation", "code": 403}}),
    "reason without message": (200, {}, {"choices": [{"finish_reason": "content_filter"}]}),
    "reason": said(None, "content_filter"),
    "reason with text": said("The st", "content_filter"),
    "sensitive": said("", "sensitive"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_of_the_content_filter_is_an_answer(serve: Serve, name: str) -> None:
    server = serve(lambda asked: REFUSALS[name] if prompt(asked) == "bad" else said("fine"))
    answers = load(server.model).answer([request("good"), request("bad"), request("good")])
    assert [answer.response for answer in answers] == ["fine", "", "fine"]
    assert [answer.error for answer in answers] == ["", "refused by the content filter", ""]
    assert len(server.seen) == 3, "a refusal is final"


TOO_LONG = {
    "openai": fault(
        400,
        "This model's maximum context length is 8192 tokens, you asked for 9000.",
        "context_length_exceeded",
    ),
    "by its code": fault(400, "no", "context_length_exceeded"),
    "vllm": fault(
        400,
        "You passed 1015 input tokens. However, the model's context length is only 1024 tokens.",
    ),
    "llama.cpp": fault(400, "the request exceeds the available context size. try increasing it"),
    "llama.cpp, as an answer": (
        200,
        *fault(400, "the request exceeds the available context size.")[1:],
    ),
    "anthropic": fault(400, "prompt is too long: 205000 tokens > 200000 maximum"),
    "bedrock": fault(400, "Input is too long for requested model."),
    "google": (
        400,
        {},
        [
            {
                "error": {
                    "message": "The input token count (9) exceeds the maximum number of tokens allowed (8)."
                }
            }
        ],
    ),
    "zhipu": fault(400, "Prompt exceeds max length", "1261"),
    "alibaba": fault(400, "Range of input length should be [1, 30720]"),
    "too large": fault(413, "the prompt is too long"),
}


@pytest.mark.parametrize("name", TOO_LONG)
def test_a_text_too_long_for_the_model_is_an_answer(serve: Serve, name: str) -> None:
    server = serve(lambda asked: TOO_LONG[name] if prompt(asked) == "long" else said("fine"))
    answers = load(server.model).answer([request("short"), request("long"), request("short")])
    assert [answer.response for answer in answers] == ["fine", "", "fine"]
    assert [answer.error for answer in answers][::2] == ["", ""]
    body = TOO_LONG[name][2]
    message = (body[0] if isinstance(body, list) else body)["error"]["message"]
    assert answers[1].error == f"too long for the model: {message}"
    assert len(server.seen) == 3, "that it is too long is final"


def test_why_a_text_is_too_long_is_told_without_the_key_and_can_be_written(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    server = serve(lambda asked: fault(400, f"input is too long for {SECRET} \ud800\nmore"))
    (answer,) = load(server.model).answer([request("x")])
    assert answer.error == "too long for the model: input is too long for [key] \ufffd"


def test_words_of_a_prompt_that_the_server_repeats_are_not_its_own(serve: Serve) -> None:
    def behave(asked: dict[str, Any]) -> Reply:
        return (
            422,
            {},
            {"detail": [{"type": "missing", "msg": "Field required", "input": prompt(asked)}]},
        )

    scorer = load(serve(behave).model)
    with pytest.raises(RunFailed, match=r"status 422 \(Field required\)"):
        scorer.answer([request("the risk of sensitive content, and a context length")])


def test_a_reply_cut_short_keeps_its_text_and_an_empty_one_is_empty(serve: Serve) -> None:
    server = serve(
        lambda asked: said("I would say th", "length") if prompt(asked) == "x" else said(None)
    )
    cut, empty = load(server.model).answer([request("x"), request("y")])
    assert (cut.response, cut.error, cut.cut) == ("I would say th", "", True)
    assert empty == Answer("", seconds=empty.seconds, cut=False)


@pytest.mark.parametrize("reason", ["abort", "network_error", "insufficient_system_resource"])
def test_a_reply_that_the_server_broke_off_is_asked_for_again(serve: Serve, reason: str) -> None:
    server = serve(
        lambda asked: said("It is A, bec", reason) if len(server.seen) < 3 else said("It is C.")
    )
    (answer,) = load(server.model).answer([request("x")])
    assert (answer.response, answer.cut, len(server.seen)) == ("It is C.", False, 3)


def test_a_reply_that_repeats_the_key_is_kept_without_it(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    (answer,) = load(serve(lambda asked: said(f"You sent {SECRET}.")).model).answer([request("x")])
    assert answer.response == "You sent [key]."


NO_TEXT = "the server answered without a text"
THOUGHTS = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}


@pytest.mark.parametrize(
    ("choice", "response", "error"),
    [
        ({"finish_reason": "stop"}, "", NO_TEXT),
        ({"message": None}, "", NO_TEXT),
        ({"message": "A"}, "", NO_TEXT),
        ({"message": {}}, "", ""),
        ({"message": {"content": None, "reasoning_content": "It is A."}}, "", ""),
        ({"message": {"content": "A", "reasoning_content": "It is B."}}, "A", ""),
        (
            {"message": {"content": [THOUGHTS, {"type": "text", "text": "7"}, ".", {"text": "5"}]}},
            "7.5",
            "",
        ),
        (
            {
                "message": {
                    "content": [None, 1, {"type": "text", "text": None}, {"type": "image_url"}]
                }
            },
            "",
            "",
        ),
        ({"message": {"content": 7}}, "", NO_TEXT),
        ({"message": {"content": {"text": "A"}}}, "", NO_TEXT),
        ({"message": {"content": "7\ud800"}}, "7\ufffd", ""),
        ({"message": {"content": "🙂"}, "finish_reason": ["stop"]}, "🙂", ""),
    ],
)
def test_an_odd_answer_is_its_text_or_says_that_it_has_none(
    serve: Serve, choice: dict[str, Any], response: str, error: str
) -> None:
    server = serve(
        lambda asked: (200, {}, {"choices": [choice]}) if prompt(asked) == "x" else said("B")
    )
    odd, plain = load(server.model).answer([request("x"), request("y")])
    assert odd == Answer(response, error=error, seconds=odd.seconds, cut=odd.cut)
    assert plain.response == "B"
    pa.array([odd.response, odd.error]).validate(full=True)


def failure(model: str) -> str:
    with pytest.raises(RunFailed) as caught:
        load(model).answer([request(str(i)) for i in range(20)])
    message = str(caught.value)
    assert "\n" not in message
    assert SECRET[:-4] not in "".join(traceback.format_exception(caught.value))
    assert message.startswith(model.partition("@")[2])
    return message


@pytest.mark.parametrize("status", [401, 403])
def test_a_wrong_key_is_said_without_the_key(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    server = serve(lambda asked: fault(status, f"Incorrect API key provided: {SECRET[:-4]}****."))
    assert "OPENAI_API_KEY is not set" in failure(server.model)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    message = failure(server.model)
    assert f"status {status}" in message
    assert "OPENAI_API_KEY is wrong" in message
    assert "sk-" not in message


def test_other_errors_name_the_status_and_the_servers_reason(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    server = serve(lambda asked: fault(404, f"no model some-model for {SECRET}\nsecond line"))
    message = failure(server.model)
    assert "status 404" in message
    assert "no model some-model for [key]" in message
    assert len(server.seen) < 20, "requests that wait are given up"
    assert "status 400" in failure(
        serve(lambda asked: fault(400, "max_tokens is case-sensitive")).model
    )
    assert "status 404 (no such path)" in failure(
        serve(lambda asked: (404, {}, {"detail": "no such path"})).model
    )
    assert (
        "key"
        in failure(
            serve(lambda asked: fault(403, "your account is under risk control")).model
        ).lower()
    )
    server = serve(lambda asked: fault(503, "overloaded", **{"Retry-After": "0.01"}))
    assert "20 requests failed each time (status 503: overloaded); 0 of 20" in failure(server.model)


@pytest.mark.parametrize(
    "reply",
    [
        (200, {}, {"choices": []}),
        (200, {}, {"choices": None}),
        (200, {}, {"choices": "A"}),
        (200, {}, {"choices": ["A"]}),
        (200, {}, {"error": "out of memory"}),
        (200, {}, "[]"),
        (200, {}, "7"),
        (200, {}, ""),
        (200, {}, "[" * 5_000),
        (200, {}, {"detail": "hello"}),
        (200, {}, "{not json"),
        (200, {"Content-Type": "text/html"}, "<html>welcome</html>"),
    ],
)
def test_what_is_no_chat_endpoint_is_named(
    serve: Serve, reply: Reply, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "TRIES", 2)
    assert "protocol" in failure(serve(lambda asked: reply).model)


def test_a_server_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    message = failure(f"openai:m@http://127.0.0.1:{port}/v1")
    assert "cannot be reached" in message
    assert "refused" in message.lower()


@pytest.mark.parametrize(
    "model",
    [
        "openai:",
        "openai:m",
        "openai:m@localhost",
        "openai:@http://h/v1",
        "openai:m@http://",
        "openai:m@http://h:x/v1",
        "openai:m@http://[h/v1",
    ],
)
def test_what_is_no_address_is_refused(refusal: Any, model: str) -> None:
    message = refusal(load, model)
    assert model in message
    assert "NAME@URL" in message


def test_a_key_has_one_place(refusal: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for user in ("user", ""):
        message = refusal(load, f"openai:m@http://{user}:{SECRET}@localhost/v1")
        assert "OPENAI_API_KEY" in message
        assert SECRET not in message
    for key in ("sk-密", "sk-two\nlines"):
        monkeypatch.setenv("OPENAI_API_KEY", key)
        assert "sk-" not in refusal(load, "openai:m@http://localhost/v1")
