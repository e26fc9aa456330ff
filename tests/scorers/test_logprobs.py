"""Likelihoods of causal models: equal to a slow reference, by prefix tree or in batches."""

import random
from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers

from bench.scorers import load
from bench.scorers.local import logprobs
from bench.scorers.local.device import placement
from bench.scorers.local.logprobs import LogprobReader, Row
from tests.helpers.cases import json_lines
from tests.helpers.checkpoints import SHAPE, characters, merging, reference, save

VOCABULARY = 61
# Whether an architecture can be computed by trees; whether its logits are the product of the last
# hidden state and the output matrix; and whether beginnings of prompts are shared for its replies
# (empty if replies need no test).
MODELS = {row["name"]: row for row in json_lines(__file__, "causal.jsonl")}


def network(name):
    kind = getattr(transformers, MODELS[name]["network"])
    torch.manual_seed(3)
    special = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    shape = SHAPE | special | MODELS[name]["shape"]
    built = kind(kind.config_class(vocab_size=VOCABULARY, **shape)).eval()
    with torch.no_grad():  # some configurations have no range of the initial weights
        for weight in built.parameters():
            if weight.dim() >= 2 and weight.std() < 0.15:
                weight.normal_(0, 0.25)
    return built


def texts():
    """Texts that share beginnings of every length, single tokens, duplicates, and a lone one."""
    rng, tokens = random.Random(0), range(3, VOCABULARY)
    trunk = rng.choices(tokens, k=30)
    branches = [trunk[:k] + rng.choices(tokens, k=rng.randrange(1, 9)) for k in range(30)]
    return [*branches, branches[4], trunk[:1], trunk, rng.choices(tokens, k=50)]


def reader(model, tree_tokens=64):
    where = replace(placement("cpu", None, None), tree_tokens=tree_tokens)
    return LogprobReader(model, where, 0)


def read(tested, sequences):
    return tested.read([Row(tuple(ids), tuple(enumerate(ids[1:]))) for ids in sequences])


def check(tested, sequences):
    for values, ids in zip(read(tested, sequences), sequences, strict=True):
        np.testing.assert_allclose(values, reference(tested.network, ids), atol=2e-5)


@pytest.mark.parametrize("name", MODELS)
def test_every_architecture_gives_the_reference(name, monkeypatch):
    monkeypatch.setattr(logprobs, "CPU_VOCABULARY", 7)
    model = network(name)
    tested = reader(model)
    can = [tested._trees, tested._separable]
    assert can == [MODELS[name][column] for column in ("trees", "separable")]
    check(tested, texts())
    different = len({tuple(ids[:k]) for ids in texts() for k in range(1, len(ids) + 1)})
    assert tested.tally.asked == sum(len(ids) for ids in texts() if len(ids) > 1)
    assert (tested.tally.computed == different) is (tested._trees and "narrow" not in name)
    for size in (7, 1000):
        check(reader(model, size), [ids[:30] for ids in texts()])


@pytest.mark.parametrize(("tree", "limit"), [(True, 20), (False, 100)])
def test_a_batch_that_does_not_fit_into_memory_is_halved_for_good(monkeypatch, tree, limit):
    tested = reader(network("qwen2, tied"), 64)
    tested._trees, tested._batch_tokens = tree, 400
    body, sizes = tested.network.base_model, []
    forward = body.forward

    def small(**options):
        sizes.append(options["input_ids"].numel())
        if sizes[-1] > limit:
            raise torch.OutOfMemoryError("too much")
        return forward(**options)

    expected = read(tested, texts())
    monkeypatch.setattr(body, "forward", small)
    for values, row in zip(read(tested, texts()), expected, strict=True):
        np.testing.assert_allclose(values, row, atol=2e-5)
    assert sum(size > limit for size in sizes) == 2, "the size that was found is kept"


TEXTS = ["the doctor is here.", "他是医生。", "", "x", "🙂 and 👩🏽‍⚕️ and ﷽", "tab\tnul\0end"]
TEXTS += ["very long text " * 90, "the doctor is here."]
OF_BYTES = merging(("t", "h"))


@pytest.mark.parametrize(
    ("coder", "first"),
    # A model without a token for the beginning uses its token for the end.
    [
        (characters(), "[CLS]"),
        (characters("[CLS] $A"), None),
        (characters("[SEP] [CLS] $A"), None),
        (OF_BYTES, "<|end|>"),
    ],
)
def test_likelihoods_of_texts_are_the_reference_with_and_without_bos(tmp_path, coder, first):
    scorer = load(str(save(tmp_path, "LlamaForCausalLM", coder)))
    assert scorer.describe()["adds_bos"] == (first is None)
    before = [coder.convert_tokens_to_ids(first)] if first else []
    plain, begun = (scorer.token_logprobs(TEXTS, bos=bos) for bos in (False, True))
    for text, row, with_bos in zip(TEXTS, plain, begun, strict=True):
        ids = coder(text)["input_ids"]
        expected = [reference(scorer.network, tokens) for tokens in (ids, before + ids)]
        np.testing.assert_allclose(row, expected[0], rtol=1e-4, atol=2e-5)
        np.testing.assert_allclose(with_bos, expected[1], rtol=1e-4, atol=2e-5)
    means = [-row.mean() if len(row) else np.nan for row in plain]
    np.testing.assert_allclose(scorer.nll(TEXTS), means, rtol=1e-5)
    assert (scorer.nll([]).shape, scorer.choose([], ["A", "B"]).shape) == ((0,), (0, 2))
    assert scorer.generate([]) == scorer.answer([]) == []


def test_a_distributed_model_gives_the_same_numbers(tmp_path, monkeypatch):
    """With some kilobytes of memory accelerate leaves the other parts of the model on disk."""
    model = str(save(tmp_path / "m", "LlamaForCausalLM", characters("[CLS] $A")))
    plain = load(model)
    factory = transformers.AutoModelForCausalLM
    complete = factory.from_pretrained

    def limited(*given, **options):
        memory = {"max_memory": {"cpu": 45_000}, "offload_folder": str(tmp_path / "off")}
        return complete(*given, **options, **memory)

    monkeypatch.setattr(factory, "from_pretrained", limited)
    spread = load(model, device="auto")
    assert "disk" in spread.network.hf_device_map.values()
    assert spread.describe() == {**plain.describe(), "device": "auto"}
    prompts, options = ["他是医生。", "abc", "她不是"], ["A", "他是", "BC"]
    np.testing.assert_allclose(spread.nll(prompts), plain.nll(prompts), rtol=1e-5)
    choices = plain.choose(prompts, options)
    np.testing.assert_allclose(spread.choose(prompts, options), choices, rtol=1e-5)
    replies = plain.generate(prompts, max_new_tokens=8)
    assert spread.generate(prompts, max_new_tokens=8) == replies


class OwnWindow(transformers.LlamaForCausalLM):
    """Code that comes with a checkpoint, in which a token sees 16 others."""

    def forward(self, input_ids=None, attention_mask=None, **options):
        if attention_mask is not None and attention_mask.dim() == 4:
            n = attention_mask.shape[-1]
            seen = torch.arange(n)[-attention_mask.shape[-2] :, None] - torch.arange(n) < 16
            attention_mask = attention_mask.masked_fill(~seen, -1e9)
        return super().forward(input_ids=input_ids, attention_mask=attention_mask, **options)


def test_a_tree_is_not_given_to_code_that_comes_with_a_checkpoint():
    own = OwnWindow(transformers.LlamaConfig(vocab_size=VOCABULARY, **SHAPE)).eval()
    check(reader(own), [[*range(3, 23), k, k + 1] for k in range(3, 40)])


@pytest.mark.parametrize("kind", ["LlamaForCausalLM", "BertForMaskedLM"])
def test_a_pad_token_without_an_embedding_is_no_obstacle(tmp_path, kind):
    coder = characters("[CLS] $A [SEP]")
    save(tmp_path, kind, coder)
    coder.add_special_tokens({"pad_token": "[PAD]"})
    coder.save_pretrained(tmp_path)
    scorer = load(str(tmp_path))
    group = ["the doctor is here", "a", "who is it?"]
    for text, values in zip(group, scorer.token_logprobs(group), strict=True):
        np.testing.assert_allclose(values, scorer.token_logprobs([text])[0], atol=1e-4)
