"""Probabilities of an endpoint: read as the server reports them, or not applicable."""

import math

import numpy as np
import pytest

from bench import run
from bench.core.errors import BadInput, NotApplicable, RunFailed
from bench.scorers import load
from tests.helpers.answering import fault, prompt, request, said
from tests.helpers.cases import json_lines


def likelihood(before, token):
    """The log-probability of a character after a text, as the server has it."""
    return -0.1 - (7 * len(before) + ord(token)) % 31 / 10


def likeliest(text, n):
    values = {token: likelihood(text, token) for token in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
    return dict(sorted(values.items(), key=lambda item: -item[1])[:n])


def served(fields="prompt_logprobs echo", most=20, change=lambda text, values: values):
    """Return a function that answers as servers do, with one token per character.

    It knows some `fields` of completions and refuses others, reports at most so many likeliest
    tokens, and may `change` the probabilities of a text's tokens.
    """

    def behave(asked):
        if "prompt" in asked:
            return complete(asked)
        if "top_logprobs" not in asked:
            return said("he is")
        if asked["top_logprobs"] > most:
            return fault(400, f"top_logprobs has to be in [0, {most}]")
        assert (asked["temperature"], asked["max_tokens"]) == (1, 1)
        return first_token(likeliest(prompt(asked), asked["top_logprobs"]))

    def complete(asked):
        text = asked["prompt"]
        for name in {"prompt_logprobs", "echo"} & asked.keys():
            if name not in fields:
                return fault(400, f"unknown field {name}")
        read, written = change(text, [None, *expected(text)]), [likelihood(text, "x")]
        choice = {"logprobs": {"tokens": ["x"], "token_logprobs": written}}
        if "echo" in asked:
            choice["logprobs"] = {"tokens": [*text, "x"], "token_logprobs": read + written}
        if "prompt_logprobs" in asked:
            choice["prompt_logprobs"] = [value and {"5": {"logprob": value}} for value in read]
        usage = {"prompt_tokens": len(text), "completion_tokens": 1}
        return 200, {}, {"choices": [choice], "usage": usage}

    return behave


def expected(text):
    return [likelihood(text[:k], text[k]) for k in range(1, len(text))]


def question(text):
    return request(text, request_type="choose", options=tuple("ABC"))


def first_token(logprobs):
    top = [{"token": token, "logprob": value} for token, value in logprobs.items()]
    return said("x", "length", (9, 1), logprobs={"content": [{**top[0], "top_logprobs": top}]})


pytestmark = pytest.mark.usefixtures("own_folder")


@pytest.fixture
def serve(serve):
    """The server of all tests, which answers requests that find out what it can do as well."""
    return lambda behave: serve(behave, behave)


def evaluate(benchmark, model, task, out="out", **more):
    given = {"tasks": [task], "categories": ["gender"], "limit": 3}
    return run.evaluate(benchmark, model, out=out, **{**given, **more})


@pytest.mark.parametrize("fields", ["prompt_logprobs echo", "prompt_logprobs", "echo"])
def test_a_text_is_as_likely_as_the_server_says(serve, fields):
    model = serve(served(fields)).model
    scorer = load(model)
    assert scorer.request_types == ("nll", "choose", "generate")
    assert scorer.describe()["nll_from"] == "its completions"
    assert scorer.describe()["unsupported"] == {}
    texts = ["he is a nurse.", "她是医生。", "1 2 3", "x"]
    answers = scorer.answer([request(text, request_type="nll") for text in texts])
    for text, answer in zip(texts, answers, strict=True):
        np.testing.assert_allclose(answer.logprobs, expected(text))
    values = [float(answer.response) for answer in answers]
    np.testing.assert_allclose(values[:3], [-np.mean(expected(text)) for text in texts[:3]])
    assert math.isnan(values[3])
    for row in evaluate("mcbe", model, "pc").records.itertuples():
        assert float(row.response) == pytest.approx(-np.mean(expected(row.prompt)))


def shifted(text, values):
    """Report the probability of the next token in place of each token's own."""
    return [None, *values[2:], -1.0]


@pytest.mark.parametrize(
    ("server", "reason"),
    [
        (served(""), "unknown field echo"),
        (served("echo", change=shifted), "its numbers do not agree"),
    ],
)
def test_without_right_probabilities_of_texts_a_task_is_not_applicable(serve, server, reason):
    with pytest.raises(NotApplicable, match=f"task pc of mcbe .*tells no probabilities.*{reason}"):
        evaluate("mcbe", serve(server).model, "pc")


@pytest.mark.parametrize("most", [20, 5])
def test_letters_are_as_likely_as_the_server_says(serve, most):
    server = serve(served(most=most))
    scorer = load(server.model, generation={"request_fields": {"top_logprobs": most}})
    assert scorer.answer_modes == ("text", "letters")
    assert scorer.describe()["letters_from"].startswith(f"the {most} likeliest first tokens")
    prompts = ["who?" + "." * k for k in range(20)]
    answers = scorer.answer([question(text) for text in prompts])
    assert {asked["top_logprobs"] for asked in server.seen} == {most}
    for answer, text in zip(answers, prompts, strict=True):
        top = likeliest(text, most)
        least, listed = min(top.values()), set("ABC") & set(top)
        # Another letter could be as likely as one that is the least likely in the list.
        known = listed == set("ABC") or any(top[letter] > least for letter in listed)
        wanted = tuple(top.get(letter, least) for letter in "ABC")
        assert answer.logprobs == (pytest.approx(wanted) if known else None)


@pytest.mark.parametrize("case", json_lines(__file__, "letters.jsonl"))
def test_first_tokens_are_probabilities_of_letters_or_an_error(serve, case):
    known = case.get("probabilities", {})
    reply = first_token(case.get("logprobs") or {t: math.log(p) for t, p in known.items()})
    choice = reply[2]["choices"][0]
    choice["message"] = case.get("message", choice["message"])
    choice["logprobs"]["content"] *= case.get("tokens", 1)

    def behave(asked):
        if "top_logprobs" not in asked:
            return said("10")
        return reply if prompt(asked) == "who?" else first_token({"A": -0.1, "B": -3.0})

    answer, _ = load(serve(behave).model).answer([question("who?"), question("well?")])
    assert answer.response == case["response"]
    assert case["error"] in answer.error
    assert answer.logprobs == (case["read"] and pytest.approx(np.log(case["read"]).tolist()))


def test_a_run_reports_how_many_letters_are_bounded(serve, capsys):
    model = serve(lambda asked: first_token({"B": -0.1, "A": -4.0, "x": -7.0})).model
    rows = evaluate("cbbq", model, "ambiguous", answer_mode="letters").records
    message = f"{len(rows)} options not among the likeliest tokens, which stand with an upper bound"
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("field", ["prompt_logprobs", "echo"])
@pytest.mark.parametrize("n", [4, 9])
def test_probabilities_of_more_or_fewer_tokens_than_the_prompt_has_are_an_error(serve, field, n):
    def change(text, values):
        return (values * 2)[:n] if text == "he is" else values

    texts = [request(text, request_type="nll") for text in ("he is", "she is")]
    wrong, right = load(serve(served(field, change=change)).model).answer(texts)
    assert wrong.error.startswith("the server answered with")
    assert (wrong.response, wrong.logprobs, right.error) == ("", None, "")


@pytest.mark.parametrize(
    "message",
    [
        {"content": "嗯</think>\n10"},
        {"content": "<think>嗯"},
        {"content": "10", "reasoning_content": "嗯"},
    ],
)
def test_letters_of_a_model_that_thinks_in_every_reply_are_not_applicable(serve, message):
    first, reply = first_token({"嗯": -0.5, "A": -14.0}), said("", message=message)
    server = serve(lambda asked: first if "top_logprobs" in asked else reply)
    scorer = load(server.model)
    assert scorer.answer_modes == ("text",)
    assert "the model thinks first" in scorer.describe()["unsupported"]["choose"]


def test_a_special_token_before_a_text_is_refused_at_once(serve):
    server = serve(served())
    with pytest.raises(BadInput, match="leave out --set bos=forced"):
        evaluate("mcbe", server.model, "pc", "bos", settings={"bos": "forced"})
    assert server.seen == []


@pytest.mark.parametrize(
    ("letters", "says"),
    [
        (said("A"), "the server answered without log-probabilities"),
        (
            fault(403, "You are not allowed to request logprobs"),
            "logprobs is set by --answer-mode letters",
        ),
        (fault(400, "top_logprobs has to be in [0, 5]"), "--request-field top_logprobs=5"),
    ],
)
def test_a_run_without_probabilities_of_letters_ends_with_the_reason(serve, letters, says):
    def behave(asked):
        if "prompt" in asked:
            return fault(404, "no such place")
        return letters if "logprobs" in asked else said("A")

    server = serve(behave)
    with pytest.raises(RunFailed, match=says):
        evaluate("cbbq", server.model, "ambiguous", "letters", answer_mode="letters")
    assert len(server.seen) <= 3 * 3
    done = evaluate("cbbq", server.model, "ambiguous", "text")
    assert set(done.metadata["model"]["unsupported"]) == {"nll"}
