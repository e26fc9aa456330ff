"""Probabilities of an endpoint: read as the server reports them, or not applicable."""

import math

import numpy as np
import pytest

from bench import run
from bench.core.errors import BadInput, NotApplicable
from bench.scorers import load
from tests.helpers.answering import fault, prompt, request, said


def likelihood(before, token):
    """The log-probability of a character after a text, as the server has it."""
    return -0.1 - (7 * len(before) + ord(token)) % 31 / 10


def likeliest(text, n):
    values = {token: likelihood(text, token) for token in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
    return dict(sorted(values.items(), key=lambda item: -item[1])[:n])


class Served:
    """Answers as servers do, with one token per character.

    Args:
        how: the fields of completions that it knows (`prompt_logprobs`, `echo`), and what it does
            wrong: `shifted`, it reports the next token's probability.
        most: the most likeliest tokens that it reports.
    """

    def __init__(self, how="prompt_logprobs echo", most=20):
        self.how, self.most = how, most

    def __call__(self, asked):
        if "prompt" in asked:
            return self.complete(asked)
        if "top_logprobs" not in asked:
            return said("he is")
        if asked["top_logprobs"] > self.most:
            return fault(400, f"top_logprobs has to be in [0, {self.most}]")
        assert (asked["temperature"], asked["max_tokens"]) == (1, 1)
        return first_token(likeliest(prompt(asked), asked["top_logprobs"]))

    def complete(self, asked):
        for name in ("prompt_logprobs", "echo"):
            if name in asked and name not in self.how:
                return fault(400, f"unknown field {name}")
        text = asked["prompt"]
        read = expected(text)
        if "shifted" in self.how:
            read = [*read[1:], -1.0]
        tokens, values = (list(text), [None, *read]) if "echo" in asked else ([], [])
        written = {"tokens": [*tokens, "x"], "token_logprobs": [*values, likelihood(text, "x")]}
        choice = {"text": "x", "logprobs": written}
        if "prompt_logprobs" in asked:
            choice["prompt_logprobs"] = [None, *({"5": {"logprob": value}} for value in read)]
        usage = {"prompt_tokens": len(text), "completion_tokens": 1}
        return 200, {}, {"choices": [choice], "usage": usage}


def expected(text):
    return [likelihood(text[:k], text[k]) for k in range(1, len(text))]


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


@pytest.mark.parametrize("how", ["prompt_logprobs echo", "prompt_logprobs", "echo"])
def test_a_text_is_as_likely_as_the_server_says(serve, how):
    model = serve(Served(how)).model
    scorer = load(model)
    assert scorer.request_types == ("nll", "choose", "generate")
    assert scorer.describe()["nll_from"] == f"{how.split()[0]} of its completions"
    assert scorer.describe()["lacks"] == {}
    texts = ["he is a nurse.", "她是医生。", "1 2 3", "x"]
    answers = scorer.answer([request(text, request_type="nll") for text in texts])
    for text, answer in zip(texts, answers, strict=True):
        np.testing.assert_allclose(answer.logprobs, expected(text))
    values = [float(answer.response) for answer in answers]
    np.testing.assert_allclose(values[:3], [-np.mean(expected(text)) for text in texts[:3]])
    assert math.isnan(values[3])
    for row in evaluate("mcbe", model, "pc").records.itertuples():
        assert float(row.response) == pytest.approx(-np.mean(expected(row.prompt)))


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("", "status 400: unknown field echo"),
        ("echo shifted", "the server's echo do not agree with the probabilities of what it writes"),
    ],
)
def test_without_right_probabilities_of_texts_a_task_is_not_applicable(serve, how, reason):
    server = serve(Served(how))
    with pytest.raises(NotApplicable) as caught:
        evaluate("mcbe", server.model, "pc")
    message = "task pc of mcbe (the model has choose, generate; the server tells no probabilities"
    assert message in str(caught.value)
    assert reason in str(caught.value)


@pytest.mark.parametrize("most", [20, 5])
def test_letters_are_as_likely_as_the_server_says(serve, most):
    server = serve(Served(most=most))
    scorer = load(server.model)
    assert scorer.answer_modes == ("text", "letters")
    assert scorer.describe()["letters_from"].startswith(f"the {most} likeliest first tokens")
    prompts = ["who?" + "." * k for k in range(20)]
    answers = scorer.answer(
        [request(text, request_type="choose", options=(*"ABC",)) for text in prompts]
    )
    assert {asked["top_logprobs"] for asked in server.seen} == {most}
    for answer, text in zip(answers, prompts, strict=True):
        top = likeliest(text, most)
        least, listed = min(top.values()), set("ABC") & set(top)
        # Another letter could be as likely as one that is the least likely in the list.
        known = listed == set("ABC") or any(top[letter] > least for letter in listed)
        wanted = tuple(top.get(letter, least) for letter in "ABC")
        assert answer.logprobs == (pytest.approx(wanted) if known else None)


def test_a_missing_letter_is_bounded_and_without_any_there_is_no_answer(serve, capsys):
    def ask(out, logprobs):
        model = serve(lambda asked: first_token(logprobs)).model
        return evaluate("cbbq", model, "ambiguous", out, read="letters").records

    rows = ask("some", {"B": -0.1, "The": -3.0, "A": -4.0, "x": -7.0})
    assert set(rows.response) == {"B"}
    assert [list(row) for row in rows.logprobs] == [[-4.0, -0.1, -7.0]] * len(rows)
    message = f"{len(rows)} options not among the likeliest tokens, which stand with an upper bound"
    assert message in capsys.readouterr().err
    rows = ask("none", {"The": -0.1, "It": -3.0})
    message = "no option is among the likeliest first tokens of the reply, which is 'The'"
    assert set(rows.error) == {message}
    assert not rows.valid.any()
    assert rows.logprobs.isna().all()


def choose_letter(serve, logprobs):
    """Have a server that reports letters to a probe answer a question with these tokens."""
    reply = first_token(logprobs) if isinstance(logprobs, dict) else logprobs
    plain = first_token({"10": -0.1, "11": -3.0})

    def behave(asked):
        if "top_logprobs" not in asked:
            return said("10")
        return reply if prompt(asked) == "who?" else plain

    scorer = load(serve(behave).model)
    (answer,) = scorer.answer([request("who?", request_type="choose", options=tuple("ABC"))])
    return answer


@pytest.mark.parametrize(
    ("tokens", "letter", "sums"),
    [
        # Probabilities are added: ln(0.2 + 0.3) for B.
        ({"A": 0.4, "B": 0.2, " B": 0.3, "C": 0.1}, "B", (0.4, 0.5, 0.1)),
        ({" A": 0.5, "The": 0.2, "B": 0.01, " B": 0.2, " C": 0.02}, "A", (0.5, 0.21, 0.02)),
        ({"▁A": 0.3, "ĠA": 0.2, "Ｂ": 0.1, "B": 0.1, "\nC": 0.1}, "A", (0.5, 0.2, 0.1)),
    ],
)
def test_a_letter_is_summed_over_its_spellings(serve, tokens, letter, sums):
    answer = choose_letter(serve, {token: math.log(p) for token, p in tokens.items()})
    assert answer.response == letter
    np.testing.assert_allclose(np.exp(answer.logprobs), sums)


def doubled():
    """Report two tokens of a reply of one."""
    status, headers, body = first_token({"A": -0.3, "B": -2.0, "C": -3.0})
    body["choices"][0]["logprobs"]["content"] *= 2
    return status, headers, body


NO_NUMBER = "a log-probability that is not a number of at most 0"


@pytest.mark.parametrize(
    ("tokens", "error"),
    [
        *(({"A": -0.3, "B": value, "C": -2.0}, NO_NUMBER) for value in (None, 0.5, "x", 10**400)),
        *(({"A": -0.3, "B": value, "C": -2.0}, NO_NUMBER) for value in (math.nan, -math.inf)),
        (doubled(), "the log-probabilities of 2 tokens of a reply of 1"),
        (dict.fromkeys("ABCDEFGHIJKLMNOPQRSTUVWXYZ", -4.0), "26 likeliest tokens in place of 20"),
        # A letter that is not reported could be the likeliest.
        ({"The": -0.1, "It": -3.0, "A": -7.0}, "B, C is not among the likeliest first tokens"),
    ],
)
def test_probabilities_that_cannot_be_read_are_an_error(serve, tokens, error):
    answer = choose_letter(serve, tokens)
    assert error in answer.error
    assert (answer.response, answer.logprobs) == ("", None)


def resized(reply, how, n):
    """Report n log-probabilities of a prompt, or one for n below 0 too few."""
    choice = reply[2]["choices"][0]
    place, name = (choice, how) if how in choice else (choice["logprobs"], "token_logprobs")
    place[name] = [None, *place[name][1:] * 2][:n] if n >= 0 else place[name][:n]
    return reply


@pytest.mark.parametrize("how", ["prompt_logprobs", "echo"])
@pytest.mark.parametrize("n", [-1, 9])
def test_probabilities_of_more_or_fewer_tokens_than_the_prompt_has_are_an_error(serve, how, n):
    served = Served(how)

    def behave(asked):
        reply = served(asked)
        return resized(reply, how, n) if asked.get("prompt") == "he is" else reply

    scorer = load(serve(behave).model)
    (wrong, right) = scorer.answer(
        [request(text, request_type="nll") for text in ("he is", "she is")]
    )
    assert wrong.error.startswith("the server answered with")
    assert (wrong.response, wrong.logprobs) == ("", None)
    assert right.error == ""


TAIL = {"A": -14.0, "B": -15.0, "C": -16.0}


def thinking(**message):
    """Reply with a thought apart from the content."""
    reply = first_token({"嗯": -0.5, **TAIL})
    reply[2]["choices"][0]["message"] = message
    return reply


@pytest.mark.parametrize(
    "reply",
    [
        *({token: -0.01, **TAIL} for token in ("<think>", "<|channel|>", "[THINK]", "</think>")),
        thinking(content=None, reasoning_content="嗯"),
        thinking(content="", reasoning="嗯"),
        thinking(content="\n", reasoning_details="嗯"),
    ],
)
def test_letters_in_the_tail_of_a_thought_are_no_answer(serve, reply):
    answer = choose_letter(serve, reply)
    assert answer.error.startswith("the model thinks first, so its first token is no letter")
    assert answer.logprobs is None


@pytest.mark.parametrize(
    "message",
    [
        {"content": "嗯</think>\n10"},
        {"content": "<think>嗯"},
        {"content": "10", "reasoning_content": "嗯"},
    ],
)
def test_letters_of_a_model_that_thinks_in_every_reply_are_not_applicable(serve, message):
    def behave(asked):
        if "top_logprobs" in asked:
            return first_token({"嗯": -0.5, **TAIL})
        choice = {"message": message, "finish_reason": "stop"}
        return 200, {}, {"choices": [choice]}

    scorer = load(serve(behave).model)
    assert scorer.answer_modes == ("text",)
    assert "the model thinks first" in scorer.describe()["lacks"]["choose"]


def test_what_an_endpoint_cannot_do_is_refused_at_once(serve):
    server, plain = serve(Served()), serve(lambda asked: said("A"))
    with pytest.raises(BadInput, match="leave out --set bos=forced"):
        evaluate("mcbe", server.model, "pc", "bos", settings={"bos": "forced"})
    reason = r"the server tells no probabilities of letters \(the server answered without"
    with pytest.raises(NotApplicable, match=reason):
        evaluate("cbbq", plain.model, "ambiguous", "letters", read="letters")
    assert server.seen == plain.seen == []
    done = evaluate("cbbq", plain.model, "ambiguous", "text")
    assert set(done.metadata["model"]["lacks"]) == {"choose", "nll"}
