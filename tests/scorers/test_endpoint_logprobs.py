"""Probabilities of an endpoint: those of the same checkpoint here, or not applicable."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from bench import run
from bench.core.errors import BadInput, NotApplicable
from bench.scorers import load
from bench.scorers.endpoint.responses import options, prompt_logprobs
from tests.helpers import checkpoints
from tests.helpers.answering import Behave, Reply, Server, fault, request, said

TEXTS = ["he is a nurse.", "她是医生。", "1 2 3", "工程师是男。"]
Serve = Callable[[Behave], Server]


class Served:
    """Answers as servers do, by a checkpoint of its own.

    Args:
        how: the fields of completions that it knows (`prompt_logprobs`, `echo`), and what it does
            wrong: `shifted`, it reports the next token's probability; `deaf`, it repeats no prompt.
        most: the most likeliest tokens that it reports.
    """

    def __init__(self, folder: str, how: str = "prompt_logprobs echo", most: int = 20) -> None:
        self.how, self.most = how, most
        self.tokenizer = checkpoints.characters(chat=True)
        self.network = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()

    @torch.inference_mode()
    def logprobs(self, text: str) -> tuple[list[int], torch.Tensor]:
        ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids, self.network(torch.tensor([ids])).logits[0].double().log_softmax(-1)

    def of_first_token(self, messages: list[dict[str, str]]) -> torch.Tensor:
        text = self.tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True
        )
        return self.logprobs(text)[1][-1]

    def __call__(self, asked: dict[str, Any]) -> Reply:
        return self.complete(asked) if "prompt" in asked else self.chat(asked)

    def chat(self, asked: dict[str, Any]) -> Reply:
        if "top_logprobs" not in asked:
            return said("he is")
        if asked["top_logprobs"] > self.most:
            return fault(400, f"top_logprobs has to be in [0, {self.most}]")
        assert (asked["temperature"], asked["max_tokens"]) == (1, 1)
        values, ids = self.of_first_token(asked["messages"]).topk(asked["top_logprobs"])
        tokens = [self.tokenizer.decode([k]) for k in ids.tolist()]
        return first_token(dict(zip(tokens, values.tolist(), strict=True)))

    def complete(self, asked: dict[str, Any]) -> Reply:
        for name in ("prompt_logprobs", "echo"):
            if name in asked and name not in self.how:
                return fault(400, f"unknown field {name}")
        ids, logprobs = self.logprobs(asked["prompt"])
        read = [float(logprobs[i, k]) for i, k in enumerate(ids[1:])]
        if "shifted" in self.how:
            read = [*read[1:], -1.0]
        written = int(logprobs[-1].argmax())
        tokens: list[str] = [self.tokenizer.decode([written])]
        values: list[float | None] = [float(logprobs[-1, written])]
        if "echo" in asked and "deaf" not in self.how:
            tokens = [*(self.tokenizer.decode([k]) for k in ids), *tokens]
            values = [None, *read, *values]
        reported = {"tokens": tokens, "token_logprobs": values}
        choice: dict[str, Any] = {"text": "".join(tokens), "logprobs": reported}
        if "prompt_logprobs" in asked:
            entries = [{str(k): {"logprob": v}} for k, v in zip(ids[1:], read, strict=True)]
            choice["prompt_logprobs"] = [None, *entries]
        usage = {"prompt_tokens": len(ids), "completion_tokens": 1}
        return 200, {}, {"choices": [choice], "usage": usage}


def first_token(logprobs: dict[str, float]) -> Reply:
    top = [{"token": token, "logprob": value} for token, value in logprobs.items()]
    return said("x", "length", (9, 1), logprobs={"content": [{**top[0], "top_logprobs": top}]})


@pytest.fixture(autouse=True)
def folder(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    coder = checkpoints.characters(chat=True)
    checkpoints.save(Path("model"), LlamaForCausalLM, LlamaConfig, coder)
    return "./model"


@pytest.fixture
def serve(serve: Callable[..., Server]) -> Serve:
    """The server of all tests, which answers requests that find out what it can do as well."""
    return lambda behave: serve(behave, behave)


def evaluate(benchmark: str, model: str, task: str, out: str = "out", **more: Any) -> run.Run:
    given = {"tasks": [task], "categories": ["gender"], "limit": 3}
    return run.evaluate(benchmark, model, out=out, **{**given, **more})


@pytest.mark.parametrize("how", ["prompt_logprobs echo", "prompt_logprobs", "echo"])
def test_a_text_is_as_likely_as_here(serve: Serve, folder: str, how: str) -> None:
    model = serve(Served(folder, how)).model
    there: Any = load(model)
    here: Any = load(folder, "cpu")
    assert there.verbs == ("nll", "choose", "generate")
    assert there.describe()["nll_from"] == f"{how.split()[0]} of its completions"
    assert there.describe()["lacks"] == {}
    for row, other in zip(there.token_logprobs(TEXTS), here.token_logprobs(TEXTS), strict=True):
        assert len(row) > 3
        np.testing.assert_allclose(row, other, atol=1e-5)
    answers = there.answer([request(text, verb="nll") for text in TEXTS])
    values = [float(answer.response) for answer in answers]
    np.testing.assert_allclose(values, here.nll(TEXTS), atol=1e-5)
    score = evaluate("mcbe", model, "pc", "there").scores().score
    expected = evaluate("mcbe", folder, "pc", "here", device="cpu").scores().score
    np.testing.assert_allclose(score, expected, atol=1e-3)


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("", "status 400: unknown field echo"),
        ("echo shifted", "the server's echo do not agree with the probabilities of what it writes"),
        ("echo deaf", "without log-probabilities"),
    ],
)
def test_without_right_probabilities_of_texts_a_task_is_not_applicable(
    serve: Serve, folder: str, how: str, reason: str
) -> None:
    server = serve(Served(folder, how))
    there: Any = load(server.model)
    assert there.verbs == ("choose", "generate")
    with pytest.raises(NotApplicable) as caught:
        evaluate("mcbe", server.model, "pc")
    message = "task pc of mcbe (the model has choose, generate; the server tells no probabilities"
    assert message in str(caught.value)
    assert reason in str(caught.value)
    with pytest.raises(BadInput, match="cannot do nll"):
        there.nll(TEXTS)


@pytest.mark.parametrize("most", [20, 5])
def test_letters_are_as_likely_as_here(serve: Serve, folder: str, most: int) -> None:
    served = Served(folder, most=most)
    server = serve(served)
    there: Any = load(server.model)
    here: Any = load(folder, "cpu")
    assert there.reads == ("text", "letters")
    assert there.describe()["letters_from"].startswith(f"the {most} likeliest first tokens")
    prompts = [f"who? A. he B. she C. unknown {text}" for text in TEXTS]
    values, expected = there.choose(prompts, list("ABC")), here.choose(prompts, list("ABC"))
    assert {asked["top_logprobs"] for asked in server.seen} == {most}
    known = ~np.isnan(values).any(1)
    assert known.any() or most == 5
    for k in np.flatnonzero(known):
        top = served.of_first_token([{"role": "user", "content": prompts[k]}]).topk(most).values
        bounded = np.maximum(expected[k], float(top[-1]))
        np.testing.assert_allclose(values[k], bounded, atol=1e-5)
    assert there.generate(["x"]) == ["he is"]


def test_a_missing_letter_is_bounded_and_without_any_there_is_no_answer(
    serve: Serve, capsys: Any
) -> None:
    def ask(out: str, **logprobs: float) -> Any:
        tokens = {token.replace("_", " "): value for token, value in logprobs.items()}
        model = serve(lambda asked: first_token(tokens)).model
        return evaluate("cbbq", model, "ambiguous", out, read="letters").records

    rows = ask("some", B=-0.1, The=-3.0, A=-4.0, x=-7.0)
    assert set(rows.response) == {"B"}
    assert [list(row) for row in rows.logprobs] == [[-4.0, -0.1, -7.0]] * len(rows)
    message = f"{len(rows)} options not among the likeliest tokens, which stand with an upper bound"
    assert message in capsys.readouterr().err
    assert set(ask("blank", _C=-0.1, _A=-1.0, _B=-2.0).response) == {"C"}
    rows = ask("none", The=-0.1, It=-3.0)
    message = "no option is among the likeliest first tokens of the reply, which is 'The'"
    assert set(rows.error) == {message}
    assert not rows.valid.any()
    assert rows.logprobs.isna().all()


def test_what_an_endpoint_cannot_do_is_refused_before_anything_is_sent(
    serve: Serve, folder: str
) -> None:
    server, plain = serve(Served(folder)), serve(lambda asked: said("A"))
    with pytest.raises(BadInput, match="give --read text"):
        evaluate("nli_coal", server.model, "ps", categories=["en"], read="letters")
    with pytest.raises(BadInput, match="leave out --set bos=forced"):
        evaluate("mcbe", server.model, "pc", "bos", settings={"bos": "forced"})
    reason = r"the server tells no probabilities of letters \(the server answered without"
    with pytest.raises(NotApplicable, match=reason):
        evaluate("cbbq", plain.model, "ambiguous", "letters", read="letters")
    assert server.seen == plain.seen == []
    done = evaluate("cbbq", plain.model, "ambiguous", "text")
    assert set(done.records.response) == {"A"}
    assert set(done.about["model"]["lacks"]) == {"choose", "nll"}


# What is reported, how many of its tokens the server wrote, and what is read of it.
PROMPTS: list[tuple[str, Any, Any, Any]] = [
    ("prompt_logprobs", None, 1, None),
    ("prompt_logprobs", [None], 1, []),
    ("prompt_logprobs", [None, {"5": {"logprob": -1}}], 1, [-1.0]),
    # Which of two entries is the text's own token is unknown.
    ("prompt_logprobs", [None, {"5": {"logprob": -1}, "6": {"logprob": -2}}], 1, None),
    ("prompt_logprobs", [None, {"5": {"logprob": math.nan}}], 1, None),
    ("prompt_logprobs", [None, 3], 1, None),
    ("echo", [None, -1.0, -2.0, -3.0], 1, [-1.0, -2.0]),
    ("echo", [None, -1.0], 0, [-1.0]),
    ("echo", [-3.0], 1, None),
    ("echo", [-3.0], None, None),
    ("echo", [None, None, -2.0], 0, None),
    ("echo", [None, -1.0], 5, None),
    ("echo", [None, True, -2.0], 1, None),
    ("echo", "none", 1, None),
]


def test_probabilities_are_read_completely_or_not_at_all_and_options_spelt_alike() -> None:
    for how, reported, written, expected in PROMPTS:
        choice = {how: reported, "logprobs": {"token_logprobs": reported}}
        body = {"choices": [choice], "usage": {"completion_tokens": written}}
        assert prompt_logprobs(body, how) == expected, (how, reported)
        assert prompt_logprobs({}, how) is None
    assert options({"A": -1.0, " B": -0.5, "x": -3.0}, "AB") == ([-1.0, -3.0], 1)
    assert options({"▁A": -1.0, "▁B": -0.5}, "AB") == ([-1.0, -0.5], 0)
    assert options({"a": -1.0}, "AB") == ([], 0)
