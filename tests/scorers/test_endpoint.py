"""The endpoint against a real HTTP server: what is sent, retries, refusals, and odd answers."""

import gzip
import json
import socket
import threading
import time
import traceback
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from bench import run
from bench.core.errors import RunFailed
from bench.scorers import load
from bench.scorers.endpoint import client
from tests.helpers.answering import fault, prompt, request, said

SECRET = "sk-planted-0123456789"


@pytest.fixture(autouse=True)
def _environment(monkeypatch, own_folder):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET + "\n")


def test_answers_come_in_the_order_of_the_requests(serve, monkeypatch):
    def behave(asked):
        time.sleep(0.002 * (int(prompt(asked)) * 7 % 11))  # later ones are often answered sooner
        return said(f"reply to {prompt(asked)}")

    monkeypatch.delenv("OPENAI_API_KEY")
    server = serve(behave)
    scorer = load(server.model)
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
    assert scorer.answer([]) == []


GENERATION = {
    "temperature": 0.5,
    "top_p": 0.9,
    "system": "Be brief.",
    "thinking_tokens": 100,
    "template_arguments": {"depth": 2},
    "request_fields": {"thinking": {"type": "enabled"}},
}


def test_every_option_is_sent_and_a_judge_gets_none_but_room_to_think(serve):
    server = serve(lambda asked: said("7"))
    scorer = load(server.model, generation=GENERATION)
    scorer.answer([request(max_new_tokens=8), request("y", "judge:1", max_new_tokens=8)])
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
    messages = [{"role": "user", "content": "y"}]
    assert sent["y"] == {**usual, "messages": messages, "temperature": 0}
    assert server.tried[0]["thinking"] == {"type": "enabled"}, "also to find out what it can do"
    assert server.keys == {f"Bearer {SECRET}"}
    metadata = scorer.describe()
    assert (metadata["id"], metadata["url"]) == (server.model, server.model.partition("@")[2])
    assert metadata["decoding"] == "temperature 0.5, top_p 0.9"
    assert metadata["generation"] == GENERATION
    assert SECRET not in json.dumps(metadata)
    off = load(server.model, generation={"thinking_tokens": 0})
    off.answer([request(max_new_tokens=8)])
    assert server.seen[-1]["chat_template_kwargs"] == {"enable_thinking": False}


REFUSED = "refused by the content filter"
# What servers answer, and the response and the error that they are; null is not told.
LINES = Path(__file__).with_name("replies.jsonl").read_text("utf-8").splitlines()
REPLIES = [json.loads(line) for line in LINES]


def test_an_odd_or_refused_answer_is_its_text_or_an_error_of_its_own(serve):
    def behave(asked):
        case = REPLIES[int(prompt(asked))]
        return case["status"], case.get("headers", {}), case["body"]

    server = serve(behave)
    answers = load(server.model).answer([request(str(k)) for k in range(len(REPLIES))])
    for case, answer in zip(REPLIES, answers, strict=True):
        assert (answer.response, answer.error) == (case["response"], case["error"]), case
        assert answer.cut == case["cut"] or answer.error == REFUSED
        pa.array([answer.response, answer.error]).validate(full=True)
    assert len(server.seen) == len(REPLIES), "a refusal is final"


def test_a_request_is_sent_again_where_the_server_broke_off_or_asks_to_wait(serve, waits):
    reasons = ["abort", "network_error", "insufficient_system_resource"]
    replies = [said("It is A, bec", reason) for reason in reasons]
    replies += [fault(429, "slow down", **{"Retry-After": after}) for after in ("3600", "0.2")]
    replies.append(said("It is C."))
    server = serve(lambda asked: replies[len(server.seen) - 1])
    (answer,) = load(server.model).answer([request("x")])
    assert (answer.response, answer.cut, len(server.seen)) == ("It is C.", False, 6)
    assert waits[3:] == [3600, 0.2]


# Answers that cannot be read, though another may be.
BROKEN_ANSWERS = [
    said(None),
    (200, {}, {"choices": [{"message": None, "finish_reason": "stop"}]}),
    (200, {}, '{"choices": [{"message": {"content": NaN}, "finish_reason": "stop"}]}'),
    (200, {}, {"choices": [{"message": {"content": {"text": "A"}}}]}),
    (200, {"Content-Encoding": "gzip, gzip"}, "x"),
    (200, {"Content-Encoding": "gzip"}, "no gzip"),
]


@pytest.mark.parametrize("broken", BROKEN_ANSWERS)
def test_a_broken_answer_is_asked_for_again_and_is_an_error_if_it_stays_broken(serve, broken):
    def behave(asked):
        is_well = sum(prompt(one) == "y" for one in server.seen) > 2
        return said("C") if prompt(asked) == "y" and is_well else broken

    server = serve(behave)
    stays, mended = load(server.model).answer([request("x"), request("y")])
    assert (stays.response, stays.error[:24]) == ("", "the server answered with")
    assert (mended.response, mended.error, len(server.seen)) == ("C", "", 6)


@pytest.mark.parametrize("share", [0.3, 1])
def test_broken_answers_on_record_and_what_followed_them_are_asked_for_again(serve, share):
    is_broken = True

    def behave(asked):
        breaks = is_broken and len(prompt(asked)) % 10 < 10 * share
        return said(None if breaks else "ABC"[len(prompt(asked)) % 3])

    server = serve(behave)
    given = {"tasks": ["ambiguous"], "categories": ["gender"], "limit": 12}
    given |= {"settings": {"explanation": "yes"}, "judge": "simulated:"}
    first = run.evaluate("cbbq", server.model, out="out", **given).records
    broken = first.error.eq("the server answered without a text")
    assert 0 < broken.sum() < len(first)
    is_broken, before = False, len(server.seen)
    again = run.evaluate("cbbq", server.model, out="out", **given).records
    assert len(server.seen) - before == broken.sum()
    undisturbed = run.evaluate("cbbq", server.model, out="undisturbed", **given).records
    assert not again.error.any()
    pd.testing.assert_frame_equal(
        again.drop(columns="seconds"), undisturbed.drop(columns="seconds")
    )


def packed(n):
    return gzip.compress(json.dumps(said("A" + " " * n)[2]).encode())


@pytest.mark.parametrize("body", [packed(5000), b" " * 5000], ids=["packed", "plain"])
def test_a_body_beyond_the_limit_is_an_error(serve, monkeypatch, body):
    monkeypatch.setattr(client, "MOST_BYTES", 4096)
    how = {"Content-Encoding": "gzip"} if body[0] == 31 else {}
    server = serve(lambda asked: (200, how, body))
    (answer,) = load(server.model).answer([request()])
    assert answer.error.startswith("the server answered with more than")


def test_a_reply_far_longer_than_asked_for_is_cut_and_marked(serve):
    server = serve(lambda asked: said("A" * 10_000))
    (answer,) = load(server.model).answer([request(max_new_tokens=16)])
    assert (answer.response, answer.cut, answer.error) == ("A" * 16 * 128, True, "")


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (fault(429, "later"), "status 429: later"),
        ((200, {}, "<html>log in</html>"), "did not answer as a chat endpoint"),
        (None, "each request may take 120 s"),
    ],
)
def test_it_is_said_why_no_answer_comes(serve, monkeypatch, capsys, reply, reason):
    monkeypatch.setattr(client, "SILENCE", 0.1)
    monkeypatch.setattr(client, "FIRST_WAIT", 0.5)
    is_well = threading.Event()

    def behave(asked):
        if not reply:
            is_well.wait(9)
        return said("A") if is_well.is_set() or not reply else reply

    scorer = load(serve(behave).model)
    threading.Timer(0.4, is_well.set).start()
    scorer.answer([request()])
    assert f"no answer for 0 s ({reason}" in capsys.readouterr().err


def test_another_model_in_the_middle_of_a_run_ends_it_until_the_first_is_back(serve):
    def named(name):
        status, headers, body = said("A")
        return status, headers, {**body, "model": name}

    names = ["one", "one", "two"]
    server = serve(
        lambda asked: named(names[min(len(server.seen), len(names)) - 1]),
        lambda asked: named(names[0]),
    )
    given = {
        "tasks": ["ambiguous"],
        "categories": ["age"],
        "limit": 4,
        "limits": {"concurrency": 1},
    }
    with pytest.raises(RunFailed, match="the model that answers is two, and was one before"):
        run.evaluate("cbbq", server.model, out="out", **given)
    names[:] = ["two"]
    with pytest.raises(RunFailed, match="the model that answers is two, and was one before"):
        run.evaluate("cbbq", server.model, out="out", **given)
    metadata = json.loads(Path("out/run.json").read_text("utf-8"))["model"]
    assert metadata["answered_as"] == ["one", "two"]
    assert metadata["answered_by"] == [f"127.0.0.1:{server.server_port}"]
    names[:] = ["one"]
    assert not run.evaluate("cbbq", server.model, out="out", **given).records.error.any()


def test_a_redirection_is_recorded_and_another_one_ends_the_run(serve):
    target = serve(lambda asked: said("A"))
    there = f"http://127.0.0.1:{target.server_port}/v1/chat/completions"
    redirects = True

    def behave(asked):
        headers = {"Location": there, "Set-Cookie": "a=planted"}
        return (307, headers, "") if redirects else said("A")

    server = serve(behave, behave)
    scorer = load(server.model)
    assert scorer.answer([request()])[0].response == "A"
    host = f"127.0.0.1:{target.server_port}"
    assert scorer.describe()["answered_by"] == [host]
    assert (server.keys, target.keys) == ({f"Bearer {SECRET}"}, {None}), "a key has its own host"
    assert not any("cookie" in headers for headers in target.headers)
    redirects = False
    with pytest.raises(RunFailed, match=f"the host that answers is .*, and was {host} before"):
        scorer.answer([request()])


WRONG_KEY = f"Incorrect API key provided: {SECRET[:-4]}****."
IS_WRONG = "the environment variable OPENAI_API_KEY is wrong"
REQUIRED = {"type": "missing", "msg": "Field required", "input": "sensitive content"}
PROTOCOL = "did not answer as a chat endpoint of OpenAI's protocol does"
AGAIN = "2 requests failed each time (status 503: overloaded); 0 of 2"


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (fault(401, WRONG_KEY), f"status 401; {IS_WRONG}"),
        # Status 403 can be about the key, or about something else.
        (fault(403, "region not supported"), "status 403 (region not supported)"),
        (fault(403, "Incorrect API key provided"), IS_WRONG),
        (fault(403, f"no access for {SECRET[:5]}***{SECRET[-4:]}"), IS_WRONG),
        ((403, {}, {}), IS_WRONG),
        # A quota that is used up is not waited for.
        (fault(429, "You exceeded your current quota", "insufficient_quota"), "status 429"),
        (fault(404, f"no model for {SECRET}\nsecond line"), "status 404 (no model for [key])"),
        # Words of a prompt that the server repeats are not its own.
        ((422, {}, {"detail": [REQUIRED]}), "status 422 (Field required)"),
        (None, "cannot be reached ("),
        (fault(503, "overloaded", **{"Retry-After": "0.01"}), AGAIN),
        ((200, {}, "[" * 5_000), PROTOCOL),
        ((503, {}, '{"error":' + "[" * 980 + "]" * 980 + "}"), "status 503"),
        ((200, {}, {"choices": []}), PROTOCOL),
    ],
)
def test_other_errors_name_the_status_and_the_servers_reason(serve, monkeypatch, reply, message):
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


def refuse(name, message):
    return 400, {}, {"error": {"message": message, "param": name, "code": "unsupported_parameter"}}


def reasoning(asked):
    """Refuse what OpenAI's reasoning models refuse, in its words."""
    if "max_tokens" in asked:
        start = "Unsupported parameter: 'max_tokens' is not supported with this model. "
        return refuse("max_tokens", f"{start}Use 'max_completion_tokens' instead.")
    if asked.get("temperature", 1) != 1:
        start = f"Unsupported value: 'temperature' does not support {asked['temperature']} with"
        return refuse("temperature", f"{start} this model. Only the default (1) is supported.")
    if asked.get("logprobs"):
        return refuse("logprobs", "You are not allowed to request logprobs from this model")
    return said("有" if "有" in prompt(asked) else "A")


def test_a_server_is_asked_in_the_way_that_it_names(serve, capsys):
    server = serve(reasoning, reasoning)
    scorer = load(server.model, generation={"temperature": 0.7})
    assert scorer.request_types == ("generate",)
    asked_with = scorer.describe()["asked_with"]
    assert set(asked_with) == {"max_tokens", "temperature=0.7"}
    assert asked_with["max_tokens"] == "sent as max_completion_tokens"
    assert "left out" in asked_with["temperature=0.7"]
    for _ in range(2):
        answers = scorer.answer([request(str(k), max_new_tokens=5) for k in range(20)])
        assert {answer.response for answer in answers} == {"A"}
    assert len(server.seen) <= 40, "it was learnt before"
    assert set(server.seen[-1]) == {"model", "messages", "seed", "max_completion_tokens"}
    assert capsys.readouterr().err.count("does not take temperature=0.7") == 1
    assert scorer.spent.startswith(f"{len(server.seen) + len(server.tried)} requests")
    given = {"categories": ["gender"], "limit": 2, "settings": {"explanation": "yes"}}
    done = run.evaluate("cbbq", "simulated:", judge=server.model, out="run", **given)
    assert set(done.metadata["judge"]["asked_with"]) == {"max_tokens", "temperature=0"}
    assert (done.records.error == "").all()


def test_what_the_user_chose_is_not_left_out(serve):
    server = serve(lambda asked: refuse("temperature", "temperature must be at most 2"))
    with pytest.raises(RunFailed, match=r"status 400 \(temperature must be at most 2\)"):
        load(server.model, generation={"temperature": 5.0}).answer([request()])
    assert len(server.seen) <= 2


@pytest.mark.parametrize("name", ["seed", "chat_template_kwargs"])
def test_a_field_of_the_workbenchs_own_is_left_out_where_it_is_forbidden(serve, name):
    def strict(asked):
        extra = {"type": "extra_forbidden", "msg": "Extra inputs are not permitted"}
        detail = {"detail": [{**extra, "loc": ["body", name], "input": asked.get(name)}]}
        return (422, {}, detail) if name in asked else said("A")

    server = serve(strict, strict)
    scorer = load(server.model, generation={"thinking_tokens": 0})
    assert scorer.answer([request()])[0].response == "A"
    assert list(scorer.describe()["asked_with"]) == [name]
    assert name not in server.seen[-1]


CUT_OFF = "cut off while thinking; raise --thinking-tokens or --max-new-tokens"


def opening(asked):
    """Reply as a model does whose chat template opens a thought, at a server that keeps it in."""
    thought = "题目里有A和B。我觉得是A"
    return said(f"{thought}</think>C") if asked["max_tokens"] > 99 else said(thought, "length")


def test_a_cut_thought_that_the_template_opened_is_no_answer(serve):
    scorer = load(serve(opening, opening).model)
    metadata = scorer.describe()
    assert metadata["thoughts"] == "opened by the server's chat template, closed in the reply"
    cut, whole = scorer.answer([request("x", max_new_tokens=n) for n in (32, 100)])
    assert (cut.error, cut.cut) == (CUT_OFF, True)
    assert (whole.error, whole.cut) == ("", False)


GEMINI = "You exceeded your current quota, please check your plan.\nPlease retry in 1.2s."
DASHSCOPE = "You exceeded your current quota. See https://x.org/error-code#token-limit"


@pytest.mark.parametrize(
    ("busy", "seconds"),
    [
        (fault(429, GEMINI), 1.2),
        (fault(429, "Please try again in 1m30s (requests per min)"), 90),
        (fault(429, "Please retry after 20 seconds."), 20),
        (fault(429, DASHSCOPE, "insufficient_quota"), None),
        (fault(429, "You exceeded your current quota", **{"Retry-After": "3"}), 3),
    ],
)
def test_a_quota_of_a_minute_is_waited_for(serve, waits, busy, seconds):
    server = serve(lambda asked: busy if len(server.seen) < 3 else said("C"))
    (answer,) = load(server.model).answer([request()])
    assert (answer.response, len(waits)) == ("C", 2)
    assert seconds is None or waits == [seconds] * 2


def test_a_server_without_permission_for_log_probabilities_is_read_by_text(serve):
    message = "You are not allowed to request logprobs from this model"

    def behave(asked):
        return fault(403, message) if "prompt" in asked or "logprobs" in asked else said("C")

    scorer = load(serve(behave, behave).model)
    assert scorer.answer([request()])[0].response == "C"
    assert message in scorer.unsupported["choose"]


@pytest.mark.parametrize(
    ("name", "value"),
    [("all_proxy", "socks5://u:secret@127.0.0.1:9"), ("HTTP_PROXY", "http://127.0.0.1:port")],
)
def test_a_proxy_that_cannot_be_used_is_named_and_this_machine_needs_none(
    serve, monkeypatch, refusal, name, value
):
    for kind in ("http", "https", "all", "no"):
        monkeypatch.delenv(f"{kind}_proxy", raising=False)
        monkeypatch.delenv(f"{kind}_proxy".upper(), raising=False)
    monkeypatch.setenv(name, value)
    scorer = load(serve(lambda asked: said("A")).model)
    assert scorer.answer([request()])[0].response == "A"
    text = refusal(load, "openai:m@http://model.invalid/v1")
    assert "names a proxy that cannot be used" in text
    assert "secret" not in text
