"""Masked models and multiple-choice heads: equal to a slow reference, whatever the batch."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AlbertConfig,
    AlbertForMultipleChoice,
    BertConfig,
    BertForMaskedLM,
    BertForMultipleChoice,
    BertModel,
    RobertaConfig,
    RobertaForMultipleChoice,
)

from bench.run import evaluate
from bench.scorers import load
from tests.helpers.checkpoints import BERT, LETTERS, SPECIAL, characters, headed, save

CODE = dict(zip([*SPECIAL, *LETTERS], range(1000), strict=False))
TEXTS = ["the doctor is here.", "他是医生。", "", "x", "she is an engineer. is she?", "🙂a"]
PROMPTS = ["is she a doctor? ", "他是医生，她是护士。谁是工程师？", "x", "the engineer. who? "]
OPTIONS = [
    ("yes", "no", "who is she?"),
    ("他", "她", "不是他。"),
    ("A", "B", "A B C"),
    ("", "the engineer", "no"),
]
# The encoders of CBBQ's paper; RoBERTa has no token types.
HEADS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "bert": (BertForMultipleChoice, BertConfig, {}),
    "roberta": (RobertaForMultipleChoice, RobertaConfig, {}),
    "albert": (AlbertForMultipleChoice, AlbertConfig, {"embedding_size": 16}),
}


def masked(folder: Path, around: str = BERT, **options: Any) -> Any:
    save(folder, BertForMaskedLM, BertConfig, characters(around), max_position_embeddings=64)
    return load(str(folder), **options)


def encoded(text: str, around: str = BERT) -> list[int]:
    """The token ids of `text`, looked up by hand."""
    first, last = ([CODE[name]] if name in around else [] for name in ("[CLS]", "[SEP]"))
    return [*first, *(CODE.get(letter, CODE["<unk>"]) for letter in text), *last]


def reference(scorer: Any, ids: list[int], position: int) -> float:
    """Log-probability of the token at `position` with it alone masked, from float64 logits."""
    shown = [*ids[:position], CODE["[MASK]"], *ids[position + 1 :]]
    with torch.no_grad():
        logits = scorer.network(torch.tensor([shown])).logits[0, position].double()
    return float(logits.log_softmax(-1)[ids[position]])


def test_pseudo_likelihoods_are_the_reference(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    sizes = rng.permutation(np.arange(1, 60, 6))
    texts = [*TEXTS, *("".join(rng.choice(LETTERS, size)) for size in sizes)]
    scorer = masked(tmp_path)
    # Unknown letters are special tokens, which have no likelihood.
    expected = [
        [reference(scorer, ids, i) for i in range(1, len(ids) - 1) if ids[i] != CODE["<unk>"]]
        for ids in map(encoded, texts)
    ]
    for batch_tokens in (1, 100, 100_000):
        tested: Any = load(str(tmp_path), batch_tokens=batch_tokens)
        for values, row in zip(expected, tested.token_logprobs(texts), strict=True):
            np.testing.assert_allclose(row, values, rtol=1e-4, atol=1e-5)
        means = [-np.mean(values) if values else np.nan for values in expected]
        np.testing.assert_allclose(tested.nll(texts), means, rtol=1e-4)
    assert scorer.nll([]).shape == (0,)


@pytest.mark.parametrize("around", [BERT, "[CLS] $A", "$A [SEP]", ""])
def test_choose_reads_the_options_positions(tmp_path: Path, around: str) -> None:
    scorer = masked(tmp_path, around)
    prompts, options = ["他是医生？答案：", "is she?", "x"], ("A", "B", "yes", "不是")
    first = "[CLS]" in around
    expected = [
        [
            sum(
                reference(scorer, encoded(prompt + option, around), first + len(prompt) + n)
                for n in range(len(option))
            )
            for option in options
        ]
        for prompt in prompts
    ]
    for batch_tokens in (1, 4096):
        tested: Any = load(str(tmp_path), batch_tokens=batch_tokens)
        np.testing.assert_allclose(tested.choose(prompts, options), expected, rtol=1e-4, atol=1e-5)
    assert scorer.choose([], options).shape == (0, 4)


def test_no_batch_is_wider_or_larger_than_it_has_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer = masked(tmp_path, batch_tokens=60)
    masks, forward = [], scorer.network.forward

    def watched(**inputs: Any) -> Any:
        masks.append(inputs["attention_mask"])
        return forward(**inputs)

    monkeypatch.setattr(scorer.network, "forward", watched)
    pairs = [f"{a}{b}" for a, b in zip(LETTERS[:15], LETTERS[15:30], strict=True)]
    scorer.nll(["a" * 38, *pairs])
    # 40 tokens leave no room for a second text; texts of four tokens are 15 per batch.
    assert [tuple(mask.shape) for mask in masks] == [(1, 40)] * 38 + [(15, 4)] * 2
    assert all(mask.all() for mask in masks), "nothing is padded"


def test_texts_that_differ_in_the_masked_token_only_are_computed_once(tmp_path: Path) -> None:
    scorer = masked(tmp_path)
    scorer.choose(["is she?", "x"], ["A", "B", "C"])
    assert scorer.tally.asked == 3 * (10 + 4)
    assert scorer.tally.computed == 2 * 10, "two texts, padded to the longer one"


def choosing(name: str, folder: Path) -> Any:
    if name == "masked":
        return masked(folder)
    network, config, shape = HEADS[name]
    headed(folder, network, config, name != "roberta", max_position_embeddings=65, **shape)
    return load(str(folder))


@pytest.mark.parametrize("name", ["masked", "bert"])
def test_each_prompt_may_have_its_own_options(tmp_path: Path, name: str) -> None:
    scorer = choosing(name, tmp_path)
    values = scorer.choose(PROMPTS, OPTIONS)
    alone = [scorer.choose([prompt], row)[0] for prompt, row in zip(PROMPTS, OPTIONS, strict=True)]
    np.testing.assert_allclose(values, alone, rtol=1e-4, atol=1e-5)
    backwards = scorer.choose(PROMPTS[::-1], [row[::-1] for row in OPTIONS[::-1]])
    np.testing.assert_allclose(backwards[::-1, ::-1], values, rtol=1e-4, atol=1e-5)
    shared = scorer.choose(PROMPTS, [("yes", "no")] * 4)
    np.testing.assert_allclose(scorer.choose(PROMPTS, ("yes", "no")), shared, rtol=1e-5)
    turns = ("who?", "she.", "is she?")
    joined = scorer.choose(["\n".join(turns)], ("yes", "no"))
    np.testing.assert_allclose(scorer.choose([turns], ("yes", "no")), joined, rtol=1e-5)
    with pytest.raises(ValueError, match="shape"):
        scorer.choose(["a", "b"], [("A", "B"), ("A", "B", "yes", "no")])


@pytest.mark.parametrize("name", HEADS)
def test_a_heads_choices_are_those_of_transformers(tmp_path: Path, name: str) -> None:
    coder = choosing(name, tmp_path).tokenizer
    assert ("token_type_ids" in coder("a", "b")) is (name != "roberta")
    prompts = [prompt for prompt in PROMPTS for _ in range(3)]
    options = [option for row in OPTIONS for option in row]
    batch = coder(prompts, options, padding=True, return_tensors="pt")
    network = HEADS[name][0].from_pretrained(tmp_path).double().eval()
    with torch.no_grad():
        shaped = {key: values.reshape(len(PROMPTS), 3, -1) for key, values in batch.items()}
        expected = network(**shaped).logits.log_softmax(-1).numpy()
    assert np.ptp(expected, 1).min() > 1e-3, "the options differ"
    for batch_tokens in (1, 40, 100_000):
        scorer: Any = load(str(tmp_path), batch_tokens=batch_tokens)
        values = scorer.choose(PROMPTS, OPTIONS)
        assert values.dtype == np.float64
        np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(np.exp(values).sum(1), 1, rtol=1e-6)
    assert scorer.choose([], ("yes", "no")).shape == (0, 2)
    assert "our reading" in scorer.describe()["kind"]


def test_a_tokenizer_without_a_mask_token_is_refused(tmp_path: Path, refusal: Any) -> None:
    folder = save(tmp_path, BertForMaskedLM, BertConfig, characters(BERT, mask=False))
    assert "no mask token" in refusal(load, str(folder))


@pytest.mark.parametrize("network", [BertModel, BertForMaskedLM])
def test_a_random_head_is_refused(tmp_path: Path, refusal: Any, network: Any) -> None:
    folder = save(tmp_path / "plain", network, BertConfig, characters(BERT))
    config = json.loads((folder / "config.json").read_text())
    config["architectures"] = ["BertForMultipleChoice"]
    (folder / "config.json").write_text(json.dumps(config))
    message = refusal(load, str(folder))
    assert message.startswith(f"{folder}: lacks the weights ")
    assert "classifier.bias" in message
    assert "multiple choice model, which would be random" in message
    headed(tmp_path / "head")
    weights = load_file(tmp_path / "head" / "model.safetensors")
    del weights["classifier.weight"]
    save_file(weights, tmp_path / "head" / "model.safetensors", {"format": "pt"})
    assert "lacks the weights classifier.weight of" in refusal(load, str(tmp_path / "head"))


def test_cbbq_is_answered_by_options_or_by_letters(own_folder: Path) -> None:
    encoder = str(save(own_folder / "m", BertForMaskedLM, BertConfig, characters(BERT)))
    head = str(headed(own_folder / "h"))
    given: dict[str, Any] = {"limit": 1, "categories": ["gender"]}
    for model, read in ((encoder, None), (encoder, "options"), (encoder, "letters"), (head, None)):
        done = evaluate("cbbq", model, read=read, out=Path(f"{Path(model).name} {read}"), **given)
        rows = done.records
        assert set(rows.task) == {"ambiguous", "disambiguous"}
        assert rows.valid.all()
        assert rows.parsed.isin(list("ABC")).all()
        letters = read == "letters"
        assert rows.response.isin(list("ABC")).all() == letters
        assert rows.prompt.str.contains("A. ", regex=False).all() == letters
        if model == head:
            np.testing.assert_allclose([np.exp(row).sum() for row in rows.logprobs], 1, rtol=1e-6)
        scores = done.scores().query("preset == 'robust' and category == 'gender'")
        assert scores.set_index("metric").score["s_amb"] in (0, 1)


def test_mcbe_has_letters_only(own_folder: Path) -> None:
    folder = str(save(own_folder / "model", BertForMaskedLM, BertConfig, characters(BERT)))
    done = evaluate("mcbe", folder, tasks=["ss"], limit=1, categories=["gender"], out="run")
    assert done.records.response.isin(["A", "B"]).all()
    assert done.records.valid.all()
    assert (done.scores().metric == "score").any()
