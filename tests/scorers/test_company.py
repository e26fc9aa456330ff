"""A text has the same log-probabilities and reply alone as with others, in every architecture."""

import random

import numpy as np
import pytest
import torch
import transformers

from bench.scorers import load
from bench.scorers.local.device import placement
from bench.scorers.local.logprobs import LogprobReader
from tests.helpers.checkpoints import LETTERS, SHAPE, characters
from tests.scorers.test_logprobs import reference, rows

CODER = characters("[CLS] $A", chat=True)
GROUPED = {"num_key_value_heads": 2}
EXPERTS = {"num_local_experts": 2, "num_experts_per_tok": 1}
LONG = {
    "rope_type": "longrope",
    "rope_theta": 10000.0,
    "short_factor": [1.0] * 4,
    "long_factor": [4.0] * 4,
    "original_max_position_embeddings": 40,
}
# Architectures that limit, in their own ways, what a token sees; the texts are longer and shorter.
LIMITED = {
    "every second layer sees 24 tokens": (
        "GPTNeo",
        {
            **{"num_layers": 2, "num_heads": 4, "window_size": 24},
            "attention_types": [[["global", "local"], 1]],
        },
    ),
    "chunks of 24 tokens": (
        "Llama4",
        {
            **{**GROUPED, **EXPERTS, "head_dim": 8, "attention_chunk_size": 24},
            **{"no_rope_layers": [1, 0], "intermediate_size_mlp": 64},
        },
    ),
    "a window and sinks": ("GptOss", {**GROUPED, **EXPERTS, "head_dim": 8, "sliding_window": 24}),
    "local attention": ("ModernBertDecoder", {"local_attention": 24}),
    "positions for long texts": (
        "Phi3",
        {**GROUPED, "max_position_embeddings": 256, "rope_parameters": LONG},
    ),
    "a recurrent state": ("Rwkv", {"attention_hidden_size": 32, "rescale_every": 0}),
}


def network(name):
    kind, shape = LIMITED[name]
    text = "Text" if kind == "Llama4" else ""
    config = getattr(transformers, f"{kind}{text}Config")
    special = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
    torch.manual_seed(1)
    built = getattr(transformers, f"{kind}ForCausalLM")(
        config(vocab_size=len(CODER), **{**SHAPE, **special, **shape})
    ).eval()
    with torch.no_grad():  # some configurations have no range of the initial weights
        for weight in built.parameters():
            if weight.dim() >= 2 and weight.std() < 0.15:
                weight.normal_(0, 0.25)
    return built


@pytest.fixture(scope="module", params=LIMITED)
def folder(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("limited")
    network(request.param).save_pretrained(path)
    CODER.save_pretrained(path)
    return str(path)


def texts():
    """Texts that share beginnings; shorter than every limit, and longer."""
    rng = random.Random(1)
    trunk = "".join(rng.choices(LETTERS[:26], k=30))
    sizes = [(30, 3), (30, 9), (20, 2), (30, 40), (25, 5), (3, 1), (10, 40), (5, 7), (5, 9)]
    return [trunk[:k] + "".join(rng.choices(LETTERS[:26], k=n)) for k, n in sizes]


def test_log_probabilities_do_not_depend_on_company(folder):
    scorer = load(folder)
    short = [text for text in texts() if len(text) < 20]
    for group in (texts(), short):
        for text, values in zip(group, scorer.token_logprobs(group), strict=True):
            expected = reference(scorer.network, CODER(text)["input_ids"])
            np.testing.assert_allclose(values, expected, atol=1e-4)


def test_replies_do_not_depend_on_company(folder):
    scorer = load(folder)
    prompts = [texts()[0], "a", texts()[2], "who is it?"]
    expected = []
    for prompt in prompts:
        text = scorer.chat.render(prompt)
        ids = torch.tensor([CODER(text, add_special_tokens=False)["input_ids"]])
        given = {"attention_mask": torch.ones_like(ids), "max_new_tokens": 12}
        reply = scorer.network.generate(ids, do_sample=False, **given)[0, ids.shape[1] :]
        expected.append(CODER.decode(reply, skip_special_tokens=True))
    assert scorer.generate(prompts, max_new_tokens=12) == expected


class OwnWindow(transformers.LlamaForCausalLM):
    """Code that comes with a checkpoint, in which a token sees 16 others."""

    def forward(self, input_ids=None, attention_mask=None, **options):
        if attention_mask is not None and attention_mask.dim() == 4:
            n = attention_mask.shape[-1]
            seen = torch.arange(n)[-attention_mask.shape[-2] :, None] - torch.arange(n) < 16
            attention_mask = attention_mask.masked_fill(~seen, -1e9)
        return super().forward(input_ids=input_ids, attention_mask=attention_mask, **options)


def test_a_tree_is_not_given_to_code_that_comes_with_a_checkpoint():
    config = transformers.LlamaConfig(vocab_size=61, **SHAPE)
    own = OwnWindow(config).eval()
    tested = LogprobReader(own, placement("cpu", None, None), 0)
    trunk = list(range(3, 23))
    sequences = [[*trunk, k, k + 1] for k in range(3, 40)]
    for values, ids in zip(tested.read(rows(sequences)), sequences, strict=True):
        np.testing.assert_allclose(values, reference(own, ids), atol=1e-4)


@pytest.mark.parametrize("kind", ["LlamaForCausalLM", "BertForMaskedLM"])
def test_a_pad_token_without_an_embedding_is_no_obstacle(tmp_path, kind):
    coder = characters("[CLS] $A [SEP]")
    config = getattr(transformers, f"{kind.partition('For')[0]}Config")
    built = getattr(transformers, kind)(config(vocab_size=len(coder), **SHAPE)).eval()
    coder.add_special_tokens({"pad_token": "[PAD]"})
    built.save_pretrained(tmp_path)
    coder.save_pretrained(tmp_path)
    scorer = load(str(tmp_path))
    group = ["the doctor is here", "a", "who is it?"]
    for text, values in zip(group, scorer.token_logprobs(group), strict=True):
        np.testing.assert_allclose(values, scorer.token_logprobs([text])[0], atol=1e-4)


PADS = [(None, None), ("<pad>", None), (None, 0), ("<pad>", 0), ("[SEP]", 0)]
LABELS = {"id2label": dict(enumerate(["contradiction", "neutral", "entailment"]))}


@pytest.mark.parametrize(("of_tokenizer", "of_model"), PADS)
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_classifier_needs_no_pad_token(tmp_path, of_tokenizer, of_model, side):
    coder = characters("$A [SEP]")
    coder.pad_token, coder.padding_side = of_tokenizer, side
    torch.manual_seed(4)
    config = transformers.LlamaConfig(
        vocab_size=len(coder), pad_token_id=of_model, **SHAPE, **LABELS
    )
    built = transformers.LlamaForSequenceClassification(config).eval()
    built.save_pretrained(tmp_path)
    coder.save_pretrained(tmp_path)
    scorer = load(str(tmp_path))
    pairs = [("the nurse was late", "he"), ("he", "she"), ("a doctor spoke to a nurse", "a b")]
    for pair, values in zip(pairs, scorer.classify(pairs), strict=True):
        with torch.no_grad():
            ids = torch.tensor([coder(*pair)["input_ids"]])
            expected = built(ids).logits[0].softmax(-1).numpy()[[2, 0, 1]]
        np.testing.assert_allclose(values, expected, atol=1e-4)
