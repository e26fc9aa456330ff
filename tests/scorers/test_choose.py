"""Choices of causal models: equal to a slow reference, for shared options and each prompt's own."""

import numpy as np
import pytest

from bench.scorers import load
from tests.helpers.checkpoints import CODE, LETTERS, characters, codes, merging, save
from tests.scorers.test_logprobs import reference

TALK = ("who?", "she.", "is she?")
OPTIONS = {
    "is he a doctor?": ("yes", "no", "not she"),
    "他是护士？答案：": ("他", "她是", "不是他。"),
    "x": ("A", "AB", "ABC"),
    TALK: ("the nurse", "a", "she"),
}
SHARED = ("A", "B", "yes", "yet", "不是", "不")
# How a tokenizer puts special tokens around a text, and whether it has a chat template.
TOKENIZERS = {
    "bare": characters(),
    "bos": characters("[CLS] $A"),
    "bos and eos": characters("[CLS] $A [SEP]"),
    "chat": characters("[CLS] $A", chat=True),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root, kind = tmp_path_factory.mktemp("causal"), "LlamaForCausalLM"
    return {name: str(save(root / name, kind, coder)) for name, coder in TOKENIZERS.items()}


def ids_of(name, turns):
    """The token ids that a conversation should have, looked up by hand."""
    encoded = list(map(codes, turns))
    if name == "chat":
        roles = [CODE["<|user|>"], CODE["<|assistant|>"]]
        ids = [i for k, text in enumerate(encoded) for i in (roles[k % 2], *text)]
        return [*ids, roles[1]]
    bos = [] if name == "bare" else [CODE["[CLS]"]]
    return bos + [i for text in encoded for i in (*text, CODE["\n"])]


def expected_choice(scorer, before, option):
    return float(reference(scorer.network, before + option)[len(before) - 1 :].sum())


@pytest.mark.parametrize("batch_tokens", [50, 4096])
@pytest.mark.parametrize("name", TOKENIZERS)
def test_choose_gives_the_reference(folders, name, batch_tokens):
    scorer = load(folders[name], batch_tokens=batch_tokens)
    prompts = list(OPTIONS)
    for options in (SHARED, list(OPTIONS.values())):
        expected = [
            [
                expected_choice(scorer, ids_of(name, turns), codes(option))
                for option in (SHARED if options == SHARED else OPTIONS[prompt])
            ]
            for prompt in prompts
            for turns in [[prompt] if isinstance(prompt, str) else prompt]
        ]
        values = scorer.choose(prompts, options)
        assert values.dtype == np.float64
        np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-5)
    letters = scorer.choose(["x"], LETTERS)
    assert np.exp(letters).sum() <= 1 + 1e-6


def test_choose_where_the_tokenizer_merges_across_the_boundary(tmp_path):
    # The prompt's line break and A are one token, B and C are not; C and D are one in an option.
    coder = merging(("Ċ", "A"), ("C", "D"))
    model = save(tmp_path, "Qwen2ForCausalLM", coder, num_key_value_heads=4)
    scorer = load(str(model))
    before = coder("Is it?\n")["input_ids"]
    assert coder("Is it?\nA")["input_ids"][: len(before)] != before
    options = ("A", "B", "AB", "CD", "C")
    tokens = [coder(option)["input_ids"] for option in options]
    assert [len(ids) for ids in tokens] == [1, 1, 2, 1, 1]
    expected = [expected_choice(scorer, before, ids) for ids in tokens]
    np.testing.assert_allclose(scorer.choose(["Is it?"], options)[0], expected, rtol=1e-4)
