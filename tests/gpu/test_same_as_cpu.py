"""Answers of an accelerator compared with those of the CPU, on small random models.

In float32 a number may differ by FLOAT32, and no choice or greedy reply. In bfloat16 it is compared
with the CPU's float32: log-probabilities of a token may differ by BFLOAT16 nats, and of an option
by that per token. Greedy replies in bfloat16 have to be the same when they are asked again.
"""

import numpy as np
import pytest
import torch

from bench.scorers import load
from tests.helpers.checkpoints import LETTERS, characters, save, save_encoder

pytestmark = pytest.mark.gpu
FLOAT32 = 1e-3
BFLOAT16 = 0.5
# A classifier's probabilities.
BFLOAT16_LABELS = 0.2
LABELS = ("entailment", "neutral", "contradiction")


def texts(n, length):
    """Random texts; each two begin with the same half."""
    rng = np.random.default_rng(0)
    drawn = ["".join(rng.choice(LETTERS, length)) for _ in range(n)]
    return [drawn[k - k % 2][: length // 2] + drawn[k][length // 2 :] for k in range(n)]


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    home = tmp_path_factory.mktemp("models")
    models = {
        "causal": save(home / "causal", "LlamaForCausalLM", characters(chat=True)),
        "masked": save_encoder(home / "masked", "BertForMaskedLM"),
        "classifier": save_encoder(home / "nli", "BertForSequenceClassification", LABELS),
    }
    return {name: str(folder) for name, folder in models.items()}


TEXTS, PROMPTS = texts(24, 60), texts(24, 40)
PAIRS = list(zip(texts(48, 40)[::2], texts(48, 40)[1::2], strict=True))
OPTIONS = ["a doctor", "a nurse", "nobody"]


@pytest.mark.parametrize(
    ("where", "dtype", "batch_tokens"),
    [("", "float32", None), ("", "bfloat16", None), ("", "float32", 64), ("auto", "float32", None)],
)
@pytest.mark.parametrize(
    ("name", "request_type", "asked"),
    [
        ("causal", "token_logprobs", [TEXTS]),
        ("masked", "token_logprobs", [TEXTS]),
        ("causal", "choose", [PROMPTS, ["A", "B", "C"]]),
        ("causal", "choose", [PROMPTS, OPTIONS]),
        ("masked", "choose", [PROMPTS, OPTIONS]),
        ("classifier", "classify", [PAIRS]),
    ],
)
def test_numbers(folders, device, where, dtype, batch_tokens, name, request_type, asked):
    cpu = load(folders[name], device="cpu", dtype="float32")
    model = load(folders[name], device=where or device, dtype=dtype, batch_tokens=batch_tokens)
    if where and device.startswith("cuda"):
        assert next(model.network.parameters()).device.type == "cuda"
    allowed = {"float32": FLOAT32, "bfloat16": BFLOAT16}[dtype]
    if request_type == "choose":
        allowed *= max(map(len, asked[1]))
    elif request_type == "classify" and dtype == "bfloat16":
        allowed = BFLOAT16_LABELS
    expected, computed = (getattr(one, request_type)(*asked) for one in (cpu, model))
    for one, other in zip(expected, computed, strict=True):
        np.testing.assert_allclose(other, one, atol=allowed)
        if dtype == "float32" and request_type != "token_logprobs":
            assert np.argmax(other) == np.argmax(one)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_greedy_replies(folders, device, dtype):
    def replies(device, dtype):
        model = load(folders["causal"], device=device, dtype=dtype)
        return model.generate(PROMPTS, max_new_tokens=24, greedy=True)

    first = replies(device, dtype)
    assert replies(device, dtype) == first
    if dtype == "float32":
        assert replies("cpu", dtype) == first


def test_without_options_the_accelerator_is_used_in_bfloat16(folders):
    placed = load(folders["causal"]).describe()
    expected = ("cuda", "bfloat16") if torch.cuda.is_available() else ("cpu", "float32")
    assert (placed["device"], placed["dtype"]) == expected
