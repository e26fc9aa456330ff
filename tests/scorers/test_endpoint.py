"""The endpoint against a real HTTP server: order, retries, refusals, and odd answers."""

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
Serve = Callable[..., Server]


def request(text: str, name: str = "answer", **fields: Any) -> Request:
    return Request("c", "t", "i", name, "generate", text, "v", Key(), **fields)


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr(client, "FIRST_WAIT", 0.001)


def test_answers_come_in_the_order_of_the_requests(serve: Serve) -> None:
    def behave(asked: dict[str, Any]) -> Reply:
        time.sleep(0.002 * (int(prompt(asked)) * 7 % 11))  # later ones are often answered sooner
        return said(f"reply to {prompt(asked)}")

    server = serve(behave)
    scorer: Any = load(server.model)
    answers = scorer.answer([request(str(i), seed=i, max_new_tokens=7 + i % 2) for i in range(60)])
    assert [answer.response for answer in answers] == [f"reply to {i}" for i in range(60)]
    assert all(answer.error == "" and answer.seconds > 0 for answer in answers)
    assert 2 <= server.busiest <= 8
    for asked in server.seen:
        i = int(prompt(asked))
        # Nothing else is sent: decoding is left to the server.
        assert asked == {
            "model": "some-model",
            "messages": [{"role": "user", "content": str(i)}],
            "seed": i,
            "max_tokens": 7 + i % 2,
        }
    assert server.keys == {None}, "without a key there is no header for one"
    assert scorer.generate(["3", "1"]) == ["reply to 3", "reply to 1"]
    assert scorer.answer([]) == []


def test_only_judges_get_temperature_0(serve: Serve) -> None:
    server = serve(lambda asked: said("7"))
    scorer: Any = load(server.model)
    scorer.answer([request("marks", "judge:1"), request("first", "order"), request("answers")])
    scorer.generate(["greedily"], greedy=True)
    temperatures = {prompt(asked): asked.get("temperature") for asked in server.seen}
    assert temperatures == {"marks": 0, "first": 0, "answers": None, "greedily": 0}


def test_it_describes_itself_without_the_key(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET + "\n")
    server = serve(lambda asked: said("A"))
    scorer = load(server.model)
    scorer.answer([request("x")])
    assert server.keys == {f"Bearer {SECRET}"}
    assert scorer.verbs == ("generate",)
    about = scorer.describe()
    assert (about["id"], about["url"]) == (server.model, server.model.partition("@")[2])
    assert about["decoding"] == "the server's own"
    assert SECRET not in json.dumps(about)


def test_a_busy_server_is_asked_again_when_it_says(serve: Serve, waits: list[float]) -> None:
    replies = [fault(429, "slow down", **{"Retry-After": after}) for after in ("20", "0.2")]
    replies.append(said("A"))
    server = serve(lambda asked: replies[len(server.seen) - 1])
    assert load(server.model).answer([request("x")])[0].response == "A"
    assert waits == [20, 0.2]


REFUSED = "refused by the content filter"
REFUSALS: dict[str, Reply] = {
    "azure": fault(400, "filtered due to Azure OpenAI's content management policy", "code"),
    "openai": fault(400, "flagged as violating our content policy", "invalid_prompt"),
    "alibaba": fault(400, "Input data may contain inappropriate content.", "data_inspection"),
    "deepseek": fault(400, "Content Exists Risk", "invalid_request_error"),
    "zhipu": fault(400, "系统检测到输入或生成内容可能包含不安全或敏感内容", "1301"),
    "moonshot": fault(400, "The request was rejected because it was considered high risk"),
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
LONG = "too long for the model: "
CONTEXT = "the request exceeds the available context size. try increasing it"
TOKENS = "The input token count (9) exceeds the maximum number of tokens allowed (8)."
TOO_LONG: dict[str, tuple[Reply, str]] = {
    message: (fault(400, message, code), LONG + message)
    for message, code in {
        "This model's maximum context length is 8192 tokens, you asked for 9000.": "",
        "no": "context_length_exceeded",
        "You passed 1015 input tokens. However, the model's context length is only 1024.": "",
        CONTEXT: "",
        "prompt is too long: 205000 tokens > 200000 maximum": "",
        "Input is too long for requested model.": "",
        "Prompt exceeds max length": "1261",
        "Range of input length should be [1, 30720]": "",
    }.items()
} | {
    "llama.cpp, as an answer": ((200, {}, fault(400, CONTEXT)[2]), LONG + CONTEXT),
    "google": ((400, {}, [{"error": {"message": TOKENS}}]), LONG + TOKENS),
    "too large": (fault(413, "the prompt is too long"), LONG + "the prompt is too long"),
    "with the key": (
        fault(400, f"input is too long for {SECRET} \ud800\nmore"),
        LONG + "input is too long for [key] \ufffd",
    ),
}
ERRORS = {name: (reply, REFUSED) for name, reply in REFUSALS.items()} | TOO_LONG


@pytest.mark.parametrize("name", ERRORS)
def test_a_refused_or_long_text_is_an_error_of_its_own(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    reply, error = ERRORS[name]
    server = serve(lambda asked: reply if prompt(asked) == "bad" else said("fine"))
    answers = load(server.model).answer([request("good"), request("bad"), request("good")])
    assert [answer.response for answer in answers] == ["fine", "", "fine"]
    assert [answer.error for answer in answers] == ["", error, ""]
    assert len(server.seen) == 3, "the refusal is final"


def test_words_of_a_prompt_that_the_server_repeats_are_not_its_own(serve: Serve) -> None:
    def behave(asked: dict[str, Any]) -> Reply:
        detail = [{"type": "missing", "msg": "Field required", "input": prompt(asked)}]
        return 422, {}, {"detail": detail}

    scorer = load(serve(behave).model)
    with pytest.raises(RunFailed, match=r"status 422 \(Field required\)"):
        scorer.answer([request("the risk of sensitive content, and a context length")])


@pytest.mark.parametrize("reason", ["abort", "network_error", "insufficient_system_resource"])
def test_a_reply_that_the_server_broke_off_is_requested_again(serve: Serve, reason: str) -> None:
    server = serve(
        lambda asked: said("It is A, bec", reason) if len(server.seen) < 3 else said("It is C.")
    )
    (answer,) = load(server.model).answer([request("x")])
    assert (answer.response, answer.cut, len(server.seen)) == ("It is C.", False, 3)


NO_TEXT = "the server answered without a text"
THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
TEXT = {"type": "text", "text": "7"}
ODD: list[Any] = [None, 1, {"type": "text", "text": None}, {"type": "image_url"}]


@pytest.mark.parametrize(
    ("message", "response", "error"),
    [
        (None, "", NO_TEXT),
        ("A", "", NO_TEXT),
        ({}, "", ""),
        ({"content": None, "reasoning_content": "It is A."}, "", ""),
        ({"content": "A", "reasoning_content": "It is B."}, "A", ""),
        ({"content": [THOUGHT, TEXT, ".", {"text": "5"}]}, "7.5", ""),
        ({"content": ODD}, "", ""),
        ({"content": 7}, "", NO_TEXT),
        ({"content": {"text": "A"}}, "", NO_TEXT),
        ({"content": "7\ud800"}, "7\ufffd", ""),
        ({"content": f"You sent {SECRET}."}, "You sent [key].", ""),
    ],
)
@pytest.mark.parametrize("reason", [None, "stop", ["stop"]])
def test_an_odd_answer_is_its_text_or_an_error(
    serve: Serve, monkeypatch: Any, message: Any, response: str, error: str, reason: Any
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    body = {"choices": [{"message": message, "finish_reason": reason}]}
    server = serve(lambda asked: (200, {}, body) if prompt(asked) == "x" else said("B"))
    odd, plain = load(server.model).answer([request("x"), request("y")])
    cut = False if reason == "stop" else None
    assert odd == Answer(response, error=error, seconds=odd.seconds, cut=cut)
    assert plain.response == "B"
    pa.array([odd.response, odd.error]).validate(full=True)


def test_a_reply_that_was_cut_off_keeps_its_text(serve: Serve) -> None:
    (cut,) = load(serve(lambda asked: said("I would", "length")).model).answer([request("x")])
    assert (cut.response, cut.error, cut.cut) == ("I would", "", True)


def failure(model: str) -> str:
    with pytest.raises(RunFailed) as caught:
        load(model).answer([request(str(i)) for i in range(20)])
    message = str(caught.value)
    assert "\n" not in message
    assert SECRET[:-4] not in "".join(traceback.format_exception(caught.value))
    assert message.startswith(model.partition("@")[2])
    return message


@pytest.mark.parametrize("status", [401, 403])
def test_a_wrong_key_is_reported_without_the_key(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    server = serve(lambda asked: fault(status, f"Incorrect API key provided: {SECRET[:-4]}****."))
    assert "OPENAI_API_KEY is not set" in failure(server.model)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    message = failure(server.model)
    assert f"status {status}; the environment variable OPENAI_API_KEY is wrong" in message
    assert "sk-" not in message


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (fault(404, f"no model for {SECRET}\nsecond line"), "status 404 (no model for [key])"),
        (fault(400, "max_tokens is case-sensitive"), "status 400 (max_tokens is"),
        ((404, {}, {"detail": "no such path"}), "status 404 (no such path)"),
        (fault(403, "your account is under risk control"), "OPENAI_API_KEY is wrong"),
        (
            fault(503, "overloaded", **{"Retry-After": "0.01"}),
            "20 requests failed each time (status 503: overloaded); 0 of 20",
        ),
    ],
)
def test_other_errors_name_the_status_and_the_servers_reason(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, reply: Reply, message: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    server = serve(lambda asked: reply)
    assert message in failure(server.model)
    assert len(server.seen) < 20 or reply[0] == 503, "waiting requests are cancelled"


@pytest.mark.parametrize(
    "body",
    [
        *({"choices": choices} for choices in ([], None, "A", ["A"])),
        *({"error": "out of memory"}, {"detail": "hello"}),
        *("[]", "7", "", "[" * 5_000, "{not json", "<html>welcome</html>"),
    ],
)
def test_what_is_no_chat_endpoint_is_named(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, body: Any
) -> None:
    monkeypatch.setattr(client, "TRIES", 2)
    kind = {"Content-Type": "text/html"} if "<" in body else {}
    assert "protocol" in failure(serve(lambda asked: (200, kind, body)).model)


def test_a_server_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert "cannot be reached (Connection refused" in failure(
        f"openai:m@http://127.0.0.1:{port}/v1"
    )


@pytest.mark.parametrize(
    "rest", ["", "m", "m@localhost", "@http://h/v1", "m@http://", "m@http://h:x/v1", "m@http://[h"]
)
def test_what_is_no_address_is_refused(refusal: Any, rest: str) -> None:
    message = refusal(load, f"openai:{rest}")
    assert f"openai:{rest}" in message
    assert "NAME@URL" in message


def test_a_key_belongs_into_its_variable(refusal: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for user in ("user", ""):
        message = refusal(load, f"openai:m@http://{user}:{SECRET}@localhost/v1")
        assert "OPENAI_API_KEY" in message
        assert SECRET not in message
    for key in ("sk-密", "sk-two\nlines"):
        monkeypatch.setenv("OPENAI_API_KEY", key)
        assert "sk-" not in refusal(load, "openai:m@http://localhost/v1")
