"""Answers of an accelerator compared with those of the CPU, on small random models.

In float32 a number may differ by FLOAT32, and no choice or greedy reply. In bfloat16 it is compared
with the CPU's float32: log-probabilities of a token may differ by BFLOAT16 nats, and of an option
by that per token. Greedy replies in bfloat16 have to be the same when they are asked again.
"""

import numpy as np
import pytest
import torch

from bench.run import evaluate
from bench.scorers import load
from bench.tasks.request import Key, Request
from tests.helpers.checkpoints import BERT, LETTERS, characters, headed, save

pytestmark = pytest.mark.gpu
FLOAT32 = 1e-3
BFLOAT16 = 0.5
# A classifier's probabilities.
BFLOAT16_LABELS = 0.2
LABELS = {0: "entailment", 1: "neutral", 2: "contradiction"}
NAMES = ("causal", "masked", "multiple choice", "classifier")


def texts(n, length):
    """Random texts; each two begin with the same half."""
    rng = np.random.default_rng(0)
    drawn = ["".join(rng.choice(LETTERS, length)) for _ in range(n)]
    return [drawn[k - k % 2][: length // 2] + drawn[k][length // 2 :] for k in range(n)]


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    home = tmp_path_factory.mktemp("models")
    chat = characters(chat=True)
    bert = characters(BERT)
    llama = save(home / "causal", "LlamaForCausalLM", chat)
    save(home / "masked", "BertForMaskedLM", bert)
    headed(home / "multiple choice")
    save(home / "classifier", "BertForSequenceClassification", bert, id2label=LABELS)
    return {name: str(llama.parent / name) for name in NAMES}


@pytest.fixture(scope="session")
def scorer(folders):
    def loaded(name, device, dtype, batch_tokens=None):
        return load(folders[name], device=device, dtype=dtype, batch_tokens=batch_tokens)

    return loaded


PAIRS = list(zip(texts(48, 40)[::2], texts(48, 40)[1::2], strict=True))
PROMPTS, OPTIONS = [(text,) for text in texts(24, 40)], ["a doctor", "a nurse", "nobody"]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    ("name", "request_type", "asked"),
    [
        ("causal", "token_logprobs", [texts(24, 60)]),
        ("masked", "token_logprobs", [texts(24, 60)]),
        ("causal", "choose", [PROMPTS, ["A", "B", "C"]]),
        ("causal", "choose", [PROMPTS, OPTIONS]),
        ("masked", "choose", [PROMPTS, OPTIONS]),
        ("multiple choice", "choose", [PROMPTS, OPTIONS]),
        ("classifier", "classify", [PAIRS]),
    ],
)
def test_numbers(scorer, device, name, request_type, asked, dtype):
    expected = getattr(scorer(name, "cpu", "float32"), request_type)(*asked)
    computed = getattr(scorer(name, device, dtype), request_type)(*asked)
    allowed = {"float32": FLOAT32, "bfloat16": BFLOAT16}[dtype]
    if request_type == "choose":
        allowed *= max(map(len, asked[1]))
    elif request_type == "classify" and dtype == "bfloat16":
        allowed = BFLOAT16_LABELS
    for one, other in zip(expected, computed, strict=True):
        np.testing.assert_allclose(other, one, atol=allowed)
        if dtype == "float32" and request_type != "token_logprobs":
            assert np.argmax(other) == np.argmax(one)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_greedy_replies(scorer, device, dtype):
    requests = [
        Request("gender", "t", str(k), "r", "generate", (text,), "v", Key(), max_new_tokens=24)
        for k, text in enumerate(texts(24, 40))
    ]
    model = scorer("causal", device, dtype)
    replies = [answer.response for answer in model.answer(requests)]
    assert replies == [answer.response for answer in model.answer(requests)]
    if dtype == "float32":
        cpu = scorer("causal", "cpu", "float32").answer(requests)
        assert replies == [answer.response for answer in cpu]


def test_the_size_of_batches_moves_nothing(scorer, device):
    asked = texts(24, 60)
    large = scorer("causal", device, "float32").token_logprobs(asked)
    small = scorer("causal", device, "float32", 64).token_logprobs(asked)
    for one, other in zip(large, small, strict=True):
        np.testing.assert_allclose(other, one, atol=FLOAT32)


def test_a_model_that_is_spread_answers_the_same(scorer, device):
    asked = texts(24, 60)
    model = scorer("causal", "auto", "float32")
    assert model.describe()["device"] == "auto"
    if device.startswith("cuda"):
        assert next(model.network.parameters()).device.type == "cuda"
    expected = scorer("causal", "cpu", "float32").token_logprobs(asked)
    for one, other in zip(expected, model.token_logprobs(asked), strict=True):
        np.testing.assert_allclose(other, one, atol=FLOAT32)


def test_without_options_the_accelerator_is_used_in_bfloat16(folders):
    placed = load(folders["causal"]).describe()
    if torch.cuda.is_available():
        assert (placed["device"], placed["dtype"]) == ("cuda", "bfloat16")
    else:
        assert (placed["device"], placed["dtype"]) == ("cpu", "float32")


@pytest.mark.parametrize(
    ("benchmark", "name"), [("cbbq", "causal"), ("mcbe", "causal"), ("nli_coal", "classifier")]
)
def test_a_run_gives_the_same_answers(folders, device, benchmark, name, tmp_path):
    options = {"limit": 2, "data": "samples", "dtype": "float32", "partial": True}
    if benchmark == "cbbq":
        options["read"] = "letters"
    first, second = (
        evaluate(benchmark, folders[name], device=where, out=tmp_path / str(k), **options)
        for k, where in enumerate(("cpu", device))
    )
    assert len(first.records)
    assert list(second.records.error) == list(first.records.error)
    computed = first.records.logprobs.notna().to_numpy()
    expected, answers = first.records.logprobs[computed], second.records.logprobs[computed]
    for one, other in zip(expected, answers, strict=True):
        np.testing.assert_allclose(other, one, atol=10 * FLOAT32)
