"""The endpoint against a real HTTP server: what is sent, retries, refusals, and odd answers."""

import json
import socket
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bench import run
from bench.core.errors import RunFailed
from bench.scorers import load
from bench.scorers.endpoint import client
from tests.helpers.answering import Reply, Server, fault, prompt, request, said

SECRET = "sk-planted-0123456789"
Serve = Callable[..., Server]


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, own_folder: Path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET + "\n")


def test_answers_come_in_the_order_of_the_requests(serve: Serve, monkeypatch: Any) -> None:
    def behave(asked: dict[str, Any]) -> Reply:
        time.sleep(0.002 * (int(prompt(asked)) * 7 % 11))  # later ones are often answered sooner
        return said(f"reply to {prompt(asked)}")

    monkeypatch.delenv("OPENAI_API_KEY")
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


GENERATION: dict[str, Any] = {
    "temperature": 0.5,
    "top_p": 0.9,
    "system": "Be brief.",
    "thinking_tokens": 100,
    "template_arguments": {"depth": 2},
    "request_fields": {"thinking": {"type": "enabled"}},
}


def test_every_option_is_sent_and_a_judge_gets_none_but_room_to_think(serve: Serve) -> None:
    server = serve(lambda asked: said("7"))
    scorer: Any = load(server.model, generation=GENERATION)
    scorer.answer([request(max_new_tokens=8), request("y", "judge:1", max_new_tokens=8)])
    scorer.generate(["z"], greedy=True, max_new_tokens=8)
    sent = {asked["messages"][-1]["content"]: asked for asked in server.seen}
    usual = {"model": "some-model", "seed": 0, "max_tokens": 108}
    assert sent["x"] == {
        **usual,
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "x"}],
        "temperature": 0.5,
        "top_p": 0.9,
        "chat_template_kwargs": {"depth": 2},
        "thinking": {"type": "enabled"},
    }
    for text in ("y", "z"):
        messages = [{"role": "user", "content": text}]
        assert sent[text] == {**usual, "messages": messages, "temperature": 0}
    assert server.tried[0]["thinking"] == {"type": "enabled"}, "also to find out what it can do"
    assert server.keys == {f"Bearer {SECRET}"}
    about = scorer.describe()
    assert (about["id"], about["url"]) == (server.model, server.model.partition("@")[2])
    assert about["decoding"] == "temperature 0.5, top_p 0.9"
    assert about["generation"] == GENERATION
    assert SECRET not in json.dumps(about)
    off = load(server.model, generation={"thinking_tokens": 0})
    off.answer([request(max_new_tokens=8)])
    assert server.seen[-1]["chat_template_kwargs"] == {"enable_thinking": False}


REFUSED = "refused by the content filter"
# What servers answer, and the response and the error that they are; null is not told.
LINES = Path(__file__).with_name("replies.jsonl").read_text("utf-8").splitlines()
REPLIES = [json.loads(line) for line in LINES]


def test_an_odd_or_refused_answer_is_its_text_or_an_error_of_its_own(serve: Serve) -> None:
    def behave(asked: dict[str, Any]) -> Reply:
        case = REPLIES[int(prompt(asked))]
        return case["status"], case.get("headers", {}), case["body"]

    server = serve(behave)
    answers = load(server.model).answer([request(str(k)) for k in range(len(REPLIES))])
    for case, answer in zip(REPLIES, answers, strict=True):
        assert (answer.response, answer.error) == (case["response"], case["error"]), case
        assert answer.cut == case["cut"] or answer.error == REFUSED
        pa.array([answer.response, answer.error]).validate(full=True)
    assert len(server.seen) == len(REPLIES), "a refusal is final"


def test_a_request_is_sent_again_where_the_server_broke_off_or_asks_to_wait(
    serve: Serve, waits: list[float]
) -> None:
    reasons = ["abort", "network_error", "insufficient_system_resource"]
    replies = [said("It is A, bec", reason) for reason in reasons]
    replies += [fault(429, "slow down", **{"Retry-After": after}) for after in ("3600", "0.2")]
    replies.append(said("It is C."))
    server = serve(lambda asked: replies[len(server.seen) - 1])
    (answer,) = load(server.model).answer([request("x")])
    assert (answer.response, answer.cut, len(server.seen)) == ("It is C.", False, 6)
    assert waits[3:] == [3600, 0.2]


WRONG_KEY = f"Incorrect API key provided: {SECRET[:-4]}****."
IS_WRONG = "the environment variable OPENAI_API_KEY is wrong"
REQUIRED = {"type": "missing", "msg": "Field required", "input": "sensitive content"}
PROTOCOL = "did not answer as a chat endpoint of OpenAI's protocol does"
AGAIN = "2 requests failed each time (status 503: overloaded); 0 of 2"


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (fault(401, WRONG_KEY), f"status 401; {IS_WRONG}"),
        (fault(404, f"no model for {SECRET}\nsecond line"), "status 404 (no model for [key])"),
        # Words of a prompt that the server repeats are not its own.
        ((422, {}, {"detail": [REQUIRED]}), "status 422 (Field required)"),
        (None, "cannot be reached (Connection refused"),
        (fault(503, "overloaded", **{"Retry-After": "0.01"}), AGAIN),
        ((200, {}, "[" * 5_000), PROTOCOL),
        ((200, {"Content-Type": "text/html"}, "<html>welcome</html>"), PROTOCOL),
        *(((200, {}, {"choices": choices}), PROTOCOL) for choices in ([], ["A"])),
    ],
)
def test_other_errors_name_the_status_and_the_servers_reason(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, reply: Reply | None, message: str
) -> None:
    monkeypatch.setattr(client, "TRIES", 2)
    server = serve(lambda asked: reply)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    model = server.model if reply else f"openai:m@http://127.0.0.1:{port}/v1"
    transient = not reply or reply[0] in (200, 503)
    with pytest.raises(RunFailed) as caught:
        load(model).answer([request(str(i)) for i in range(2 if transient else 20)])
    assert str(caught.value).startswith(model.partition("@")[2])
    assert message in str(caught.value)
    assert "sk-" not in "".join(traceback.format_exception(caught.value))
    assert len(server.seen) < 20, "waiting requests are cancelled"


def refuse(name: str, message: str) -> Reply:
    return 400, {}, {"error": {"message": message, "param": name, "code": "unsupported_parameter"}}


def reasoning(asked: dict[str, Any]) -> Reply:
    """Refuse what OpenAI's reasoning models refuse, in its words."""
    if "max_tokens" in asked:
        return refuse(
            "max_tokens",
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead.",
        )
    if asked.get("temperature", 1) != 1:
        return refuse(
            "temperature",
            f"Unsupported value: 'temperature' does not support {asked['temperature']} with this "
            "model. Only the default (1) value is supported.",
        )
    if asked.get("logprobs"):
        return refuse("logprobs", "You are not allowed to request logprobs from this model")
    return said("有" if "有" in prompt(asked) else "A")


def test_a_server_is_asked_in_the_way_that_it_names(serve: Serve, capsys: Any) -> None:
    server = serve(reasoning, reasoning)
    scorer: Any = load(server.model, generation={"temperature": 0.7})
    assert scorer.verbs == ("generate",)
    assert scorer.describe()["asked_with"] == {"max_tokens": "sent as max_completion_tokens"}
    for _ in range(2):
        answers = scorer.answer([request(str(k), max_new_tokens=5) for k in range(20)])
        assert {answer.response for answer in answers} == {"A"}
    assert len(server.seen) <= 40 + 8, "it is learnt from the first requests"
    assert set(server.seen[-1]) == {"model", "messages", "seed", "max_completion_tokens"}
    asked_with = scorer.describe()["asked_with"]
    assert set(asked_with) == {"max_tokens", "temperature=0.7"}
    assert "left out" in asked_with["temperature=0.7"]
    assert capsys.readouterr().err.count("does not take temperature=0.7") == 1
    assert scorer.spent.startswith(f"{len(server.seen) + len(server.tried)} requests")
    given = {"categories": ["gender"], "limit": 2, "settings": {"explanation": "yes"}}
    done = run.evaluate("cbbq", "simulated:", judge=server.model, out="run", **given)
    assert set(done.about["judge"]["asked_with"]) == {"max_tokens", "temperature=0"}
    assert (done.records.error == "").all()


def test_what_the_user_chose_is_not_left_out(serve: Serve) -> None:
    server = serve(lambda asked: refuse("temperature", "temperature must be at most 2"))
    with pytest.raises(RunFailed, match=r"status 400 \(temperature must be at most 2\)"):
        load(server.model, generation={"temperature": 5.0}).answer([request()])
    assert len(server.seen) <= 2


@pytest.mark.parametrize("name", ["seed", "chat_template_kwargs"])
def test_a_field_of_the_workbenchs_own_is_left_out_where_it_is_forbidden(
    serve: Serve, name: str
) -> None:
    def strict(asked: dict[str, Any]) -> Reply:
        extra = {"type": "extra_forbidden", "msg": "Extra inputs are not permitted"}
        detail = {"detail": [{**extra, "loc": ["body", name], "input": asked.get(name)}]}
        return (422, {}, detail) if name in asked else said("A")

    server = serve(strict, strict)
    scorer = load(server.model, generation={"thinking_tokens": 0})
    assert scorer.answer([request()])[0].response == "A"
    assert list(scorer.describe()["asked_with"]) == [name]
    assert name not in server.seen[-1]
