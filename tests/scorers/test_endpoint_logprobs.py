"""Probabilities through an endpoint are those that the same checkpoint has here; where a server's are none, it is said."""

import json
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
from bench.scorers.endpoint.responses import by_echo, by_prompt_logprobs, options
from bench.tasks.request import Key, Request
from tests.helpers import checkpoints
from tests.helpers.answering import Behave, Reply, Server, fault, said

TEXTS = ["he is a nurse.", "她是医生。", "1 2 3", "工程师是男。"]
QUESTION = "who? A. he B. she C. unknown"


class Served:
    """Answers as servers do, by a forward pass of its own.

    Args:
        how: which fields of completions it knows (`prompt_logprobs`, `echo`), and what it does wrong: `shifted`, it
            tells the probability of the token behind; `deaf`, it repeats no prompt; `sharp`, its temperature is not 1.
        told: likeliest tokens that it tells at most.
    """

    def __init__(self, folder: str, how: str = "prompt_logprobs echo", told: int = 20) -> None:
        self.how, self.told = how, told
        self.tokenizer = checkpoints.characters(chat=True)
        self.network = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()

    @torch.inference_mode()
    def logits(self, text: str) -> tuple[list[int], torch.Tensor]:
        ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        values = self.network(torch.tensor([ids])).logits[0].double()
        return ids, (values * (3 if "sharp" in self.how else 1)).log_softmax(-1)

    def __call__(self, asked: dict[str, Any]) -> Reply:
        return self.complete(asked) if "prompt" in asked else self.chat(asked)

    def chat(self, asked: dict[str, Any]) -> Reply:
        if "top_logprobs" not in asked:
            return said("he is")
        if asked["top_logprobs"] > self.told:
            return fault(400, f"top_logprobs has to be in [0, {self.told}]")
        assert (asked["temperature"], asked["max_tokens"]) == (1, 1)
        text = self.tokenizer.apply_chat_template(
            asked["messages"], tokenize=False, add_generation_prompt=True
        )
        values, ids = self.logits(text)[1][-1].topk(asked["top_logprobs"])
        some = [
            {"token": self.tokenizer.decode([k]), "logprob": v}
            for k, v in zip(ids.tolist(), values.tolist(), strict=True)
        ]
        return said(
            some[0]["token"],
            "length",
            (9, 1),
            logprobs={"content": [{**some[0], "top_logprobs": some}]},
        )

    def complete(self, asked: dict[str, Any]) -> Reply:
        for name in ("prompt_logprobs", "echo"):
            if name in asked and name not in self.how:
                return fault(400, f"unknown field {name}")
        ids, values = self.logits(asked["prompt"])
        read = [float(values[i, k]) for i, k in enumerate(ids[1:])]
        if "shifted" in self.how:
            read = [*read[1:], -1.0]
        written = int(values[-1].argmax())
        tokens, told = [self.tokenizer.decode([written])], [float(values[-1, written])]
        if "echo" in asked and "deaf" not in self.how:
            tokens, told = (
                [*map(self.tokenizer.decode, ([k] for k in ids)), *tokens],
                [None, *read, *told],
            )
        choice: dict[str, Any] = {
            "text": "".join(tokens),
            "finish_reason": "length",
            "logprobs": {"tokens": tokens, "token_logprobs": told},
        }
        if "prompt_logprobs" in asked:
            choice["prompt_logprobs"] = [
                None,
                *({str(k): {"logprob": v, "rank": 1}} for k, v in zip(ids[1:], read, strict=True)),
            ]
        usage = {"prompt_tokens": len(ids), "completion_tokens": 1}
        return 200, {}, {"object": "text_completion", "choices": [choice], "usage": usage}


@pytest.fixture(autouse=True)
def _environment(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture
def folder(own_folder: Path) -> str:
    torch.manual_seed(0)
    checkpoints.save(
        Path("model"), LlamaForCausalLM, LlamaConfig, checkpoints.characters(chat=True)
    )
    return "./model"


@pytest.fixture
def serve(serve: Callable[..., Server]) -> Callable[[Behave], Server]:
    """The server of all tests, which answers probes of what it can do as well."""
    return lambda behave: serve(behave, behave)


Serve = Callable[[Behave], Server]


@pytest.mark.parametrize("how", ["prompt_logprobs echo", "prompt_logprobs", "echo"])
def test_a_text_is_as_likely_as_here(serve: Serve, folder: str, how: str) -> None:
    there, here = load(serve(Served(folder, how)).model), load(folder, "cpu")
    assert there.verbs == ("nll", "choose", "generate")
    assert there.describe()["nll_from"] == f"{how.split()[0]} of its completions"
    assert there.describe()["lacks"] == {}
    for one, other in zip(there.token_logprobs(TEXTS), here.token_logprobs(TEXTS), strict=True):  # type: ignore[attr-defined]
        assert len(one) > 3
        np.testing.assert_allclose(one, other, atol=1e-5)
    np.testing.assert_allclose(there.nll(TEXTS), here.nll(TEXTS), atol=1e-5)  # type: ignore[attr-defined]
    requests = [Request("c", "pc", "i", "w", "nll", text, "v", Key()) for text in TEXTS]
    for one, other in zip(there.answer(requests), here.answer(requests), strict=True):
        assert float(one.response) == pytest.approx(float(other.response), abs=1e-5)


def test_preference_computation_scores_as_here(serve: Serve, folder: str) -> None:
    given = {"tasks": ["pc"], "categories": ["gender"], "limit": 3}
    there = run.evaluate("mcbe", serve(Served(folder)).model, out="there", **given)
    here = run.evaluate("mcbe", folder, device="cpu", out="here", **given)
    assert there.about["model"]["lacks"] == {}
    one, other = there.scores(), here.scores()
    assert list(one.metric) == list(other.metric)
    np.testing.assert_allclose(one.score, other.score, atol=1e-3)


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("", "status 400: unknown field echo"),
        ("echo shifted", "the server's echo do not agree with the probabilities of what it writes"),
        ("prompt_logprobs shifted", "unknown field echo"),
        ("echo deaf", "without log-probabilities"),
    ],
)
def test_where_a_server_tells_no_probabilities_or_wrong_ones_it_is_not_applicable(
    serve: Serve, folder: str, how: str, why: str
) -> None:
    server = serve(Served(folder, how))
    there = load(server.model)
    assert there.verbs == ("choose", "generate")
    with pytest.raises(NotApplicable) as caught:
        run.evaluate("mcbe", server.model, tasks=["pc"], categories=["gender"], limit=2, out="out")
    assert (
        "cannot do task pc of mcbe (the model has choose, generate; the server tells no probabilities of a text's tokens"
        in str(caught.value)
    )
    assert why in str(caught.value)
    with pytest.raises(BadInput, match="cannot do nll"):
        there.nll(TEXTS)  # type: ignore[attr-defined]


def test_letters_are_as_likely_as_here(serve: Serve, folder: str) -> None:
    there, here = load(serve(Served(folder)).model), load(folder, "cpu")
    assert there.reads == ("text", "letters")
    prompts = [f"{QUESTION} {text}" for text in TEXTS]
    found, wanted = there.choose(prompts, list("ABC")), here.choose(prompts, list("ABC"))  # type: ignore[attr-defined]
    known = ~np.isnan(found).any(1)
    assert known.any()
    likeliest = Served(folder)
    for row, other, prompt in zip(
        found[known], wanted[known], np.array(prompts)[known], strict=True
    ):
        text = likeliest.tokenizer.apply_chat_template(
            [{"role": "user", "content": prompt}], tokenize=False, add_generation_prompt=True
        )
        least = float(likeliest.logits(text)[1][-1].topk(20).values[-1])
        for value, real in zip(row, other, strict=True):
            assert value == pytest.approx(real if real >= least else least, abs=1e-5)
            assert value >= real - 1e-5, "an upper bound"
    assert there.generate(["x"]) == ["he is"]  # type: ignore[attr-defined]


def test_fewer_likeliest_tokens_are_asked_for_where_a_server_tells_no_more(
    serve: Serve, folder: str
) -> None:
    server = serve(Served(folder, told=5))
    there = load(server.model)
    assert there.describe()["letters_from"].startswith("the 5 likeliest first tokens")
    there.choose([QUESTION], list("ABC"))  # type: ignore[attr-defined]
    assert server.tried[0]["top_logprobs"] == 20
    assert server.seen[-1]["top_logprobs"] == 5


def tokens(**told: float) -> Behave:
    some = [{"token": token.replace("_", " "), "logprob": value} for token, value in told.items()]
    return lambda asked: said(
        "x", "length", logprobs={"content": [{**some[0], "top_logprobs": some}]}
    )


def test_a_letter_that_is_not_told_is_bounded_and_one_of_none_is_no_answer(
    serve: Serve, folder: str, capsys: Any
) -> None:
    def ask(out: str, **told: float) -> Any:
        return run.evaluate(
            "cbbq",
            serve(tokens(**told)).model,
            tasks=["ambiguous"],
            categories=["gender"],
            limit=4,
            read="letters",
            out=out,
        )

    rows = ask("some", B=-0.1, The=-3.0, A=-4.0, x=-7.0).records
    assert set(rows.response) == {"B"}
    assert [list(row) for row in rows.logprobs] == [[-4.0, -0.1, -7.0]] * len(rows)
    assert (
        f"{len(rows)} options not among the likeliest tokens, which stand with an upper bound"
        in capsys.readouterr().err
    )
    rows = ask("blank", _C=-0.1, _A=-1.0, _B=-2.0).records
    assert set(rows.response) == {"C"}
    rows = ask("none", The=-0.1, It=-3.0).records
    assert set(rows.error) == {
        "no option is among the likeliest first tokens of the reply, which is 'The'"
    }
    assert not rows.valid.any()
    assert rows.logprobs.isna().all()


def test_options_of_several_characters_are_refused_before_anybody_is_asked(serve: Serve) -> None:
    server = serve(tokens(B=-0.1, A=-1.0))
    with pytest.raises(BadInput, match="give --read text"):
        run.evaluate(
            "nli_coal",
            server.model,
            tasks=["ps"],
            categories=["en"],
            limit=2,
            read="letters",
            out="out",
        )
    assert server.seen == []


def test_a_token_cannot_be_put_first(serve: Serve, folder: str) -> None:
    with pytest.raises(BadInput, match="leave out --set bos=forced"):
        run.evaluate(
            "mcbe",
            serve(Served(folder)).model,
            tasks=["pc"],
            categories=["gender"],
            limit=2,
            settings={"bos": "forced"},
            out="out",
        )


def test_without_probabilities_letters_are_not_applicable_and_text_is_asked(serve: Serve) -> None:
    server = serve(lambda asked: said("A"))
    with pytest.raises(
        NotApplicable,
        match=r"the server tells no probabilities of letters \(the server answered without",
    ):
        run.evaluate(
            "cbbq",
            server.model,
            tasks=["ambiguous"],
            categories=["gender"],
            limit=2,
            read="letters",
            out="out",
        )
    done = run.evaluate(
        "cbbq", server.model, tasks=["ambiguous"], categories=["gender"], limit=2, out="out"
    )
    assert set(done.records.response) == {"A"}
    assert set(json.loads((done.folder / "run.json").read_text("utf-8"))["model"]["lacks"]) == {
        "choose",
        "nll",
    }


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ({}, None),
        ({"choices": [{"prompt_logprobs": None}]}, None),
        ({"choices": [{"prompt_logprobs": []}]}, None),
        ({"choices": [{"prompt_logprobs": [None]}]}, []),
        ({"choices": [{"prompt_logprobs": [None, {"5": {"logprob": -1}}]}]}, [-1.0]),
        # Which of two is the one that stands there cannot be told.
        (
            {
                "choices": [
                    {"prompt_logprobs": [None, {"5": {"logprob": -1}, "6": {"logprob": -2}}]}
                ]
            },
            None,
        ),
        ({"choices": [{"prompt_logprobs": [None, {"5": {"logprob": None}}]}]}, None),
        ({"choices": [{"prompt_logprobs": [None, {"5": {"logprob": math.nan}}]}]}, None),
        ({"choices": [{"prompt_logprobs": [None, 3]}]}, None),
    ],
)
def test_prompt_logprobs_are_read_whole_or_not_at_all(
    body: Any, wanted: list[float] | None
) -> None:
    assert by_prompt_logprobs(body) == wanted


@pytest.mark.parametrize(
    ("told", "written", "wanted"),
    [
        ([None, -1.0, -2.0, -3.0], 1, [-1.0, -2.0]),
        ([None, -1.0], 0, [-1.0]),
        ([-3.0], 1, None),
        ([-3.0], None, None),
        ([None, None, -2.0], 0, None),
        ([None, -1.0], 5, None),
        ([None, True, -2.0], 1, None),
        ("none", 1, None),
    ],
)
def test_an_echo_is_read_up_to_what_was_written(
    told: Any, written: int | None, wanted: list[float] | None
) -> None:
    body = {
        "choices": [{"logprobs": {"token_logprobs": told}}],
        "usage": {"completion_tokens": written},
    }
    assert by_echo(body) == wanted


def test_options_are_spelt_alike() -> None:
    assert options({"A": -1.0, " B": -0.5, "x": -3.0}, "AB") == ([-1.0, -3.0], 1)
    assert options({"▁A": -1.0, "▁B": -0.5}, "AB") == ([-1.0, -0.5], 0)
    assert options({"a": -1.0}, "AB") == ([], 0)
