"""Options of generation at an endpoint, servers that refuse some of them, and models that think."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench import run
from bench.core.errors import RunFailed
from bench.scorers import load
from bench.scorers.base import Scorer
from bench.scorers.endpoint import client
from bench.tasks.request import Key, Request
from tests.helpers.answering import Reply, Server, fault, prompt, said

Serve = Callable[..., Server]
CUT_OFF = "cut off while thinking; raise --thinking-tokens or --max-new-tokens"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, own_folder: Path) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr(client, "FIRST_WAIT", 0.001)


def request(text: str = "x", name: str = "answer", **fields: Any) -> Request:
    return Request("c", "t", "i", name, "generate", text, "v", Key(), **fields)


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
    for name in ("temperature", "top_p"):
        if asked.get(name, 1) != 1:
            return refuse(
                name,
                f"Unsupported value: '{name}' does not support {asked[name]} with this model. "
                "Only the default (1) value is supported.",
            )
    if asked.get("logprobs"):
        return refuse("logprobs", "You are not allowed to request logprobs from this model")
    return said("有" if "有" in prompt(asked) else "A")


def test_every_option_is_sent_and_a_judge_gets_none_but_room_to_think(serve: Serve) -> None:
    server = serve(lambda asked: said("7"))
    generation = {
        "temperature": 0.5,
        "top_p": 0.9,
        "system": "Be brief.",
        "thinking_tokens": 100,
        "template_arguments": {"depth": 2},
        "request_fields": {"thinking": {"type": "enabled"}},
    }
    scorer = load(server.model, generation=generation)
    scorer.answer([request(max_new_tokens=8), request("y", "judge:1", max_new_tokens=8)])
    sent = {asked["messages"][-1]["content"]: asked for asked in server.seen}
    assert sent["x"] == {
        "model": "some-model",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "x"}],
        "seed": 0,
        "max_tokens": 108,
        "temperature": 0.5,
        "top_p": 0.9,
        "chat_template_kwargs": {"depth": 2},
        "thinking": {"type": "enabled"},
    }
    assert sent["y"] == {
        "model": "some-model",
        "messages": [{"role": "user", "content": "y"}],
        "seed": 0,
        "max_tokens": 108,
        "temperature": 0,
    }
    assert server.tried[0]["thinking"] == {"type": "enabled"}, (
        "it is found out about as it is asked"
    )
    assert scorer.describe()["decoding"] == "temperature 0.5, top_p 0.9"
    assert scorer.describe()["generation"] == generation


def test_a_server_is_asked_in_the_way_that_it_names(serve: Serve, capsys: Any) -> None:
    server = serve(reasoning, reasoning)
    scorer = load(server.model, generation={"temperature": 0.7})
    assert scorer.verbs == ("generate",)
    assert scorer.describe()["asked_with"] == {"max_tokens": "sent as max_completion_tokens"}
    for _ in range(2):
        answers = scorer.answer([request(str(k), max_new_tokens=5) for k in range(20)])
        assert {answer.response for answer in answers} == {"A"}
    assert len(server.seen) <= 40 + 8, (
        "it is learnt from the first requests, those under way at a time"
    )
    assert server.seen[-1] == {
        "model": "some-model",
        "messages": server.seen[-1]["messages"],
        "seed": 0,
        "max_completion_tokens": 5,
    }
    asked_with = scorer.describe()["asked_with"]
    assert set(asked_with) == {"max_tokens", "temperature=0.7"}
    assert "left out" in asked_with["temperature=0.7"]
    assert capsys.readouterr().err.count("does not take temperature=0.7") == 1
    assert str(scorer.spent).startswith(f"{len(server.seen) + len(server.tried)} requests")  # type: ignore[attr-defined]


def test_a_judge_that_cannot_be_greedy_is_noted_in_the_run(serve: Serve, capsys: Any) -> None:
    judge = serve(reasoning, reasoning)
    given = {"categories": ["gender"], "limit": 2, "settings": {"explanation": "yes"}}
    done = run.evaluate("cbbq", "simulated:", judge=judge.model, out="run", **given)
    about = json.loads(Path("run/run.json").read_text("utf-8"))
    assert about == json.loads(json.dumps(done.about))
    assert set(about["judge"]["asked_with"]) == {"max_tokens", "temperature=0"}
    assert about["judge"]["decoding"] == "the server's own"
    assert "does not take temperature=0, which is left out" in capsys.readouterr().err
    assert (done.records.error == "").all()


@pytest.mark.parametrize(
    ("generation", "name", "message"),
    [
        ({"temperature": 5.0}, "temperature", "temperature must be at most 2"),
        ({"template_arguments": {"a": 1}}, "chat_template_kwargs", "Unrecognized argument"),
        (
            {"request_fields": {"thinking": 1}},
            "thinking",
            "Unrecognized request argument: thinking",
        ),
        ({}, "max_tokens", "Range of max_tokens should be [1, 8]"),
        ({}, "max_completion_tokens", "max_completion_tokens is not supported"),
    ],
)
def test_what_the_user_chose_or_nothing_can_replace_fails_with_the_servers_reason(
    serve: Serve, generation: dict[str, Any], name: str, message: str
) -> None:
    server = serve(lambda asked: refuse(name, message))
    scorer = load(server.model, generation=generation)
    with pytest.raises(RunFailed) as caught:
        scorer.answer([request()])
    assert f"status 400 ({message})" in str(caught.value)
    assert len(server.seen) <= 2


EXTRA = {"type": "extra_forbidden", "msg": "Extra inputs are not permitted"}


@pytest.mark.parametrize("name", ["seed", "chat_template_kwargs"])
def test_a_field_of_the_workbenchs_own_is_left_out_where_it_is_forbidden(
    serve: Serve, name: str
) -> None:
    def strict(asked: dict[str, Any]) -> Reply:
        detail = {"detail": [{**EXTRA, "loc": ["body", name], "input": asked.get(name)}]}
        return (422, {}, detail) if name in asked else said("A")

    server = serve(strict, strict)
    scorer = load(server.model, generation={"thinking_tokens": 0})
    assert scorer.answer([request()])[0].response == "A"
    assert list(scorer.describe()["asked_with"]) == [name]
    assert name not in server.seen[-1]


def test_thinking_is_switched_off_by_the_template(serve: Serve) -> None:
    server = serve(lambda asked: said("A"))
    scorer = load(server.model, generation={"thinking_tokens": 0})
    scorer.answer([request(max_new_tokens=8), request("y", "judge:1", max_new_tokens=8)])
    for asked in (*server.tried[:1], *server.seen):
        assert asked["chat_template_kwargs"] == {"enable_thinking": False}
    assert {asked["max_tokens"] for asked in server.seen} == {8}


def answers_of(serve: Serve, message: dict[str, Any], reason: str) -> tuple[str, str, bool | None]:
    choice = {"finish_reason": reason, "message": {"role": "assistant", **message}}
    scorer: Scorer = load(serve(lambda asked: (200, {}, {"choices": [choice]})).model)
    (answer,) = scorer.answer([request()])
    return answer.response, answer.error, answer.cut


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_only_the_content_is_the_answer(serve: Serve, field: str) -> None:
    thought = {field: "The answer may be B."}
    assert answers_of(serve, {"content": "A", **thought}, "stop") == ("A", "", False)
    assert answers_of(serve, {"content": "A, bec", **thought}, "length") == ("A, bec", "", True)
    for content in (None, "", "\n"):
        _, error, cut = answers_of(serve, {"content": content, **thought}, "length")
        assert (error, cut) == (CUT_OFF, True)
    assert answers_of(serve, {"content": "<think>B, or", **thought}, "length")[1:] == (
        CUT_OFF,
        True,
    )
    assert answers_of(serve, {"content": "<think>B?</think>A"}, "stop")[1:] == ("", False)


def test_a_thought_without_room_that_the_server_refuses_is_an_error_of_its_row(
    serve: Serve,
) -> None:
    message = (
        "Could not finish the message because max_tokens or model output limit was reached. "
        "Please try again with higher max_tokens."
    )
    server = serve(lambda asked: fault(400, message) if prompt(asked) == "x" else said("A"))
    answers = load(server.model).answer([request("x"), request("y")])
    assert [(answer.response, answer.error) for answer in answers] == [("", CUT_OFF), ("A", "")]


@pytest.mark.parametrize(
    ("name", "instead"),
    [("temperature", "--temperature"), ("max_tokens", "--max-new-tokens"), ("n", "")],
)
def test_a_request_field_with_an_option_of_its_own_is_refused(
    refusal: Any, name: str, instead: str
) -> None:
    model = "openai:m@http://127.0.0.1:9/v1"
    message = refusal(load, model, generation={"request_fields": {name: 1}})
    assert f"--request-field {name}:" in message
    assert instead in message
