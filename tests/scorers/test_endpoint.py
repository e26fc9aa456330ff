"""The endpoint against a real HTTP server: what is sent, retries, refusals, and odd answers."""

import gzip
import json
import os
import re
import socket
import time
import traceback
from collections import Counter
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from openai import _base_client

from bench import run
from bench.core.errors import BudgetSpent, RunFailed
from bench.scorers import load
from bench.scorers.endpoint import client, responses
from tests.helpers.answering import fault, prompt, request, said
from tests.helpers.cases import json_lines

SECRET = "sk-planted-0123456789"
ONE_TASK = {"tasks": ["ambiguous"], "categories": ["gender"], "limit": 12}


@pytest.fixture(autouse=True)
def _environment(monkeypatch, own_folder):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET + "\n")


def test_answers_come_in_the_order_of_the_requests(serve, monkeypatch):
    busy, peaks = [], []

    def behave(asked):
        busy.append(asked)
        peaks.append(len(busy))
        time.sleep(0.002 * (int(prompt(asked)) * 7 % 11))  # later ones are often answered sooner
        busy.pop()
        return said(f"reply to {prompt(asked)}")

    monkeypatch.delenv("OPENAI_API_KEY")
    server = serve(behave)
    scorer = load(server.model)
    answers = scorer.answer([request(str(i), seed=i, max_new_tokens=7 + i % 2) for i in range(60)])
    assert [answer.response for answer in answers] == [f"reply to {i}" for i in range(60)]
    assert all(answer.error == "" and answer.seconds > 0 for answer in answers)
    assert 2 <= max(peaks) <= 8
    # Nothing else is sent: decoding is left to the server.
    usual = {"model": "some-model", "messages": [{"role": "user", "content": "59"}]}
    assert {**usual, "seed": 59, "max_tokens": 8} in server.seen
    assert server.keys == {None}, "without a key there is no header for one"


def test_every_option_is_sent_and_a_judge_gets_none_but_room_to_think(serve):
    generation, of_model, of_judge = json_lines(__file__, "options.jsonl")
    server = serve(lambda asked: said("7"))
    scorer = load(server.model, generation=generation)
    scorer.answer([request(max_new_tokens=8), request("y", "judge:1", max_new_tokens=8)])
    assert sorted(server.seen, key=prompt) == [of_model, of_judge]
    assert server.tried[0]["thinking"] == {"type": "enabled"}, "also to find out what it can do"
    assert server.keys == {f"Bearer {SECRET}"}
    metadata = scorer.describe()
    assert (metadata["id"], metadata["url"]) == (server.model, f"http://{server.host}/v1")
    assert metadata["decoding"] == "temperature 0.5"
    assert metadata["generation"] == generation
    assert SECRET not in json.dumps(metadata)
    off = load(server.model, generation={"thinking_tokens": 0})
    off.answer([request(max_new_tokens=8)])
    assert server.seen[-1]["chat_template_kwargs"] == {"enable_thinking": False}


def test_the_query_of_an_address_stays_behind_its_path_and_its_key_has_a_header_of_its_own(serve):
    """Azure's deployments."""
    server = serve(lambda asked: said("A"))
    server.places = {"/v1/chat/completions?api-version=2024-10-21": "messages"}
    scorer = load(f"{server.model}?api-version=2024-10-21")
    assert scorer.answer([request()])[0].response == "A"
    assert {headers.get("api-key") for headers in server.headers} == {SECRET}
    assert server.keys == {None}


def refusing(*refused):
    """Refuse these prompts."""
    return lambda asked: fault(400, "no") if prompt(asked) in refused else said("A")


def test_a_refused_request_among_answers_has_an_error_of_its_own(serve, monkeypatch):
    monkeypatch.setattr(client, "MOST_REFUSED", 3)
    refused = [str(k) for k in (0, *range(10, 20), 29)]
    server = serve(refusing(*refused))
    scorer = load(server.model, limits={"concurrency": 1})
    answers = scorer.answer([request(str(k)) for k in range(30)])
    assert [str(k) for k, answer in enumerate(answers) if answer.error] == refused
    assert {answer.error for answer in answers} == {"", "status 400: no"}
    asked_again = [prompt(asked) for asked in server.seen if prompt(asked) in ("9", "28")]
    assert asked_again == ["9"] * 4 + ["28"] * 2, "an answered request shows whose fault it is"


def test_where_all_is_refused_from_some_request_on_the_run_ends_with_the_servers_words(serve):
    server = serve(lambda asked: said("A") if len(server.seen) < 5 else fault(400, "no credit"))
    seen = []
    with pytest.raises(RunFailed, match=r"status 400: no credit; 4 of 99 requests were answered"):
        seen += load(server.model).stream([[request(str(k)) for k in range(99)]])
    assert len(server.seen) < 40


def test_the_last_request_of_a_run_is_refused_among_answers_on_record(serve):
    def evaluate():
        return run.evaluate("cbbq", server.model, out="out", limits={"concurrency": 1}, **ONE_TASK)

    server = serve(lambda asked: said("A") if len(server.seen) < 12 else fault(404, "gone"))
    with pytest.raises(RunFailed, match=r"gone; 11 of 12 requests were answered"):
        evaluate()
    last = server.seen[-1]
    server.behave = lambda asked: fault(413, "too large") if asked == last else said("A")
    errors = evaluate().records.error
    assert errors[errors != ""].tolist() == ["status 413: too large"]
    assert len(server.seen) == 12 + 2, "an answered request is asked again"


def test_several_providers_and_fingerprints_are_recorded_and_noted(serve):
    def behave(asked):
        more = {"provider": "ab"[len(server.seen) % 2], "system_fingerprint": "f"}
        status, headers, body = said("A")
        return status, headers, {**body, **more}

    server = serve(behave)
    done = run.evaluate("cbbq", server.model, out="out", **ONE_TASK)
    assert sorted(done.metadata["model"]["providers"]) == ["a", "b"]
    assert done.metadata["model"]["system_fingerprints"] == ["f"]
    assert done.scores().note.str.contains("answers of 2 providers: ").any()


def reply(case):
    return case["status"], case.get("headers", {}), case["body"]


def test_an_odd_or_refused_answer_is_its_text_or_an_error_of_its_own(serve):
    cases = json_lines(__file__, "replies.jsonl")
    server = serve(lambda asked: reply(cases[int(prompt(asked))]))
    answers = load(server.model).answer([request(str(k)) for k in range(len(cases))])
    for case, answer in zip(cases, answers, strict=True):
        assert (answer.response, answer.error) == (case["response"], case["error"]), case
        assert answer.cut == case["cut"] or answer.error == "refused by the content filter"
        pa.array([answer.response, answer.error]).validate(full=True)
    times = Counter(prompt(asked) for asked in server.seen)
    refused = [k for k, case in enumerate(cases) if case["error"]]
    # An answered request may be asked again, to tell a refusal of this request from one of all.
    assert {times[str(k)] for k in refused} == {1}, "a refusal is final"


@pytest.mark.parametrize("case", json_lines(__file__, "again.jsonl"))
def test_a_request_is_sent_again_where_the_server_broke_off_or_asks_to_wait(serve, waits, case):
    server = serve(lambda asked: reply(case) if len(server.seen) < 3 else said("It is C."))
    (answer,) = load(server.model).answer([request()])
    assert (answer.response, answer.cut, len(waits)) == ("It is C.", False, 2)
    assert waits == [case.get("seconds", waits[0]), case.get("seconds", waits[1])]
    assert min(waits) >= case.get("least", 0)


def test_an_account_without_credit_is_not_asked_again(serve, waits):
    unpaid = {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}
    server = serve(lambda asked: (429, {}, unpaid))
    with pytest.raises(RunFailed, match="You exceeded your quota"):
        load(server.model).answer([request()])
    assert (len(server.seen), waits) == (1, [])


@pytest.mark.parametrize("case", json_lines(__file__, "broken.jsonl"))
def test_a_broken_answer_is_asked_for_again_and_is_an_error_if_it_stays_broken(
    serve, monkeypatch, case
):
    def behave(asked):
        is_well = sum(prompt(one) == "y" for one in server.seen) > 2
        return said("C") if prompt(asked) == "y" and is_well else broken

    monkeypatch.setattr(client, "MOST_BYTES", 4096)
    monkeypatch.setattr(client, "MOST_VALUES", 500)
    status, headers, body = reply(case)
    long = json.dumps(said("A" + " " * 5000)[2]).encode()
    values = json.dumps({**said("A")[2], "more": [[]] * 500})
    bodies = {"LONG": long, "LONG, packed": gzip.compress(long), "VALUES": values}
    broken = status, headers, bodies.get(str(body), body)
    server = serve(behave)
    stays, mended = load(server.model).answer([request("x"), request("y")])
    assert (stays.response, stays.error[:24]) == ("", "the server answered with")
    # After them, an answered request is asked again.
    assert (mended.response, mended.error, len(server.seen)) == ("C", "", 3 + 3 + 1)


def test_a_request_that_fails_each_time_is_an_error_among_answers(serve, monkeypatch):
    monkeypatch.setattr(client, "RETRIES", 2)
    server = serve(lambda asked: fault(503, "oh") if prompt(asked) == "x" else said("A"))
    failed, answered = load(server.model).answer([request("x"), request("y")])
    assert failed.error == "the server answered with a failure each time (status 503: oh)"
    assert answered.response == "A"
    assert Counter(map(prompt, server.seen)) == {"x": 3, "y": 2}, "an answered request shows it"


@pytest.mark.parametrize(
    ("header", "wait"),
    [("", None), ("0.99", None), ("-5", None), ("1", 1.0), ("120", 120.0), ("nan", None)],
)
def test_a_wait_is_at_least_a_second(header, wait):
    assert responses.retry_after({"retry-after": header}) == wait


def test_a_budget_counts_each_try(serve):
    server = serve(lambda asked: fault(503, "oh"))
    scorer = load(server.model, limits={"budget_requests": 7})
    before = len(server.headers)
    with pytest.raises(BudgetSpent, match="the budget of 7 requests is spent"):
        scorer.answer([request()])
    assert (before, len(server.headers)) == (3, 7)


def test_broken_answers_on_record_and_what_followed_them_are_asked_for_again(serve):
    is_broken = True

    def behave(asked):
        breaks = is_broken and len(prompt(asked)) % 10 < 3
        return said(None if breaks else "ABC"[len(prompt(asked)) % 3])

    def evaluate(out):
        given = {"settings": {"explanation": "yes"}, "judge": "simulated:", **ONE_TASK}
        return run.evaluate("cbbq", server.model, out=out, **given).records

    server = serve(behave)
    first = evaluate("out")
    broken = first.error.eq("the server answered without a text")
    assert 0 < broken.sum() < len(first)
    is_broken, before = False, len(server.seen)
    again = evaluate("out")
    assert len(server.seen) - before == broken.sum()
    assert not again.error.any()
    undisturbed = evaluate("undisturbed").drop(columns="seconds")
    pd.testing.assert_frame_equal(again.drop(columns="seconds"), undisturbed)


def test_a_reply_far_longer_than_asked_for_is_cut_and_marked(serve):
    server = serve(lambda asked: said("A" * 10_000))
    (answer,) = load(server.model).answer([request(max_new_tokens=16)])
    assert (answer.response, answer.cut, answer.error) == ("A" * 16 * 128, True, "")


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        (fault(429, "later"), "status 429: later"),
        ((200, {}, "<html>log in</html>"), "status 200: something other than OpenAI's protocol"),
        (None, "each request may take 120 s"),
    ],
)
def test_it_is_said_why_no_answer_comes(serve, monkeypatch, capsys, first, reason):
    def behave(asked):
        if not first:
            time.sleep(0.4)
        return first if first and len(server.seen) == 1 else said("A")

    monkeypatch.setattr(client, "SILENCE", 0.1)
    monkeypatch.setattr(client, "BROKEN_WAIT", 0.5)
    monkeypatch.setattr(_base_client, "INITIAL_RETRY_DELAY", 0.5)
    server = serve(behave)
    load(server.model).answer([request()])
    assert re.search(rf"no answer for \d+ s \({reason}", capsys.readouterr().err)


def test_another_model_in_the_middle_of_a_run_ends_it_until_the_first_is_back(serve):
    def behave(asked):
        status, headers, body = said("A")
        name = "two" if change and len(server.seen) > 2 else "one"
        return status, headers, {**body, "model": name}

    def evaluate():
        return run.evaluate("cbbq", server.model, out="out", **ONE_TASK, limits={"concurrency": 1})

    server, change = serve(behave, behave), True
    for _ in range(2):
        with pytest.raises(RunFailed, match="the model that answers is two, and was one before"):
            evaluate()
    metadata = json.loads(Path("out/run.json").read_text("utf-8"))["model"]
    assert metadata["answered_as"] == ["one", "two"]
    assert metadata["answered_by"] == [server.host]
    change = False
    assert not evaluate().records.error.any()


def test_a_redirection_is_recorded_and_another_one_ends_the_run(serve):
    target = serve(lambda asked: said("A"))
    redirects = True

    def behave(asked):
        place = f"http://{target.host}/v1/chat/completions"
        headers = {"Location": place, "Set-Cookie": "a=planted"}
        return (307, headers, "") if redirects else said("A")

    server = serve(behave, behave)
    scorer = load(server.model)
    assert scorer.answer([request()])[0].response == "A"
    assert scorer.describe()["answered_by"] == [target.host]
    assert (server.keys, target.keys) == ({f"Bearer {SECRET}"}, {None}), "a key has its own host"
    assert not any("cookie" in headers for headers in target.headers)
    redirects = False
    message = f"the host that answers is .*, and was {target.host} before"
    with pytest.raises(RunFailed, match=message):
        scorer.answer([request()])


def test_a_redirection_in_a_circle_ends_the_run_at_once(serve):
    server = serve(lambda asked: (307, {"Location": "/v1/chat/completions"}, ""))
    with pytest.raises(RunFailed, match="redirects in a circle"):
        load(server.model).answer([request()])
    assert len(server.seen) < 30


DEEP = [
    {"status": 200, "body": "[" * 5_000, "says": "something other than OpenAI's protocol"},
    {"status": 503, "body": '{"error":' + "[" * 980 + "]" * 980 + "}", "says": "status 503"},
]


@pytest.mark.parametrize("case", [*json_lines(__file__, "refusals.jsonl"), *DEEP])
def test_other_errors_name_the_status_and_the_servers_reason(serve, monkeypatch, case):
    monkeypatch.setattr(client, "RETRIES", 1)
    monkeypatch.setattr(client, "RETRIES_BEFORE_RUN", 1)
    server = serve(lambda asked: reply(case))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    model = server.model if case["status"] else f"openai:m@http://127.0.0.1:{port}/v1"
    is_final = case["status"] in range(400, 500)
    requests = [request(str(i)) for i in range(50 if is_final else 2)]
    with pytest.raises(RunFailed) as caught:
        load(model, generation={"temperature": 5.0}).answer(requests)
    assert str(caught.value).startswith(model.partition("@")[2])
    assert case["says"] in str(caught.value)
    assert "sk-" not in "".join(traceback.format_exception(caught.value))
    assert len(server.seen) < 50, "waiting requests are cancelled"


def reasoning(asked):
    """Refuse what OpenAI's reasoning models refuse, in its words."""
    if "max_tokens" in asked:
        start = "Unsupported parameter: 'max_tokens' is not supported with this model. "
        return fault(400, f"{start}Use 'max_completion_tokens' instead.")
    if asked.get("temperature", 1) != 1:
        start = f"Unsupported value: 'temperature' does not support {asked['temperature']} with"
        return fault(400, f"{start} this model. Only the default (1) is supported.")
    if asked.get("logprobs"):
        return fault(403, "You are not allowed to request logprobs from this model")
    return said("有" if "有" in prompt(asked) else "A")


def test_a_field_that_a_server_refuses_can_be_left_out_of_all_requests(serve):
    server = serve(reasoning, reasoning)
    limits = {"leave_out": ["max_tokens", "temperature"]}
    (answer,) = load(server.model, limits=limits).answer([request(max_new_tokens=5)])
    assert answer.response == "A"
    assert set(server.seen[-1]) == {"model", "messages", "seed", "max_completion_tokens"}
    given = {**ONE_TASK, "settings": {"explanation": "yes"}, "limits": limits}
    done = run.evaluate("cbbq", "simulated:", judge=server.model, out="run", **given)
    assert done.metadata["judge"]["asked_with"] == {
        "max_tokens": "sent as max_completion_tokens",
        "temperature": "left out",
    }
    assert done.metadata["judge"]["decoding"] == "the server's own"
    assert (done.records.error == "").all()


EXTRA = {"type": "extra_forbidden", "msg": "Extra inputs are not permitted"}
EXTRA_TEMPLATE, EXTRA_SEED, EXTRA_MINE = (
    (422, {}, {"detail": [{**EXTRA, "loc": ["body", name], "input": 1}]})
    for name in ("chat_template_kwargs", "seed", "mine")
)


@pytest.mark.parametrize(
    ("refusal", "options", "says"),
    [
        (
            reasoning({"max_tokens": 1}),
            {},
            "max_tokens is set by --max-new-tokens, or not sent with --leave-out max_tokens",
        ),
        (EXTRA_SEED, {}, "seed is set by --seed, or not sent with --leave-out seed"),
        (
            reasoning({"temperature": 0.7}),
            {"temperature": 0.7},
            "temperature is set by --temperature, or not sent with --leave-out",
        ),
        (EXTRA_TEMPLATE, {"thinking_tokens": 0}, "is set by --thinking-tokens and --template"),
        (EXTRA_MINE, {"request_fields": {"mine": 1}}, "mine is set by --request-field mine"),
    ],
)
def test_a_field_that_a_server_refuses_ends_the_run_with_the_name_of_its_option(
    serve, refusal, options, says
):
    server = serve(lambda asked: refusal)
    with pytest.raises(RunFailed, match=rf"status 4\d\d: .*; .*{says}"):
        load(server.model, generation=options).answer([request()])
    assert len(server.seen) == 1, "another try would be refused too"


def test_only_known_fields_can_be_left_out(serve, refusal):
    server = serve(lambda asked: said("A"))
    message = refusal(load, server.model, limits={"leave_out": ["sed"]})
    assert message.startswith("--leave-out: field 'sed' is unknown; allowed: max_tokens, seed")
    assert not server.headers, "nothing is asked before"


def test_a_cut_thought_that_the_template_opened_is_no_answer(serve):
    def opening(asked):
        thought = "题目里有A和B。我觉得是A"
        return said(f"{thought}</think>C") if asked["max_tokens"] > 99 else said(thought, "length")

    scorer = load(serve(opening, opening).model)
    metadata = scorer.describe()
    assert metadata["thoughts"] == "opened by the server's chat template, closed in the reply"
    cut, whole = scorer.answer([request("x", max_new_tokens=n) for n in (32, 100)])
    assert cut.error == "cut off while thinking; raise --thinking-tokens or --max-new-tokens"
    assert (cut.cut, whole.error, whole.cut) == (True, "", False)


@pytest.mark.parametrize(
    ("name", "value"),
    [("all_proxy", "socks5://u:secret@127.0.0.1:9"), ("HTTP_PROXY", "http://127.0.0.1:port")],
)
def test_a_proxy_that_cannot_be_used_is_named_and_this_machine_needs_none(
    serve, monkeypatch, refusal, name, value
):
    for known in [known for known in os.environ if known.lower().endswith("_proxy")]:
        monkeypatch.delenv(known)
    monkeypatch.setenv(name, value)
    scorer = load(serve(lambda asked: said("A")).model)
    assert scorer.answer([request()])[0].response == "A"
    text = refusal(load, "openai:m@http://model.invalid/v1")
    assert "names a proxy that cannot be used" in text
    assert "secret" not in text
