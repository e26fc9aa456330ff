"""Options are scored as a model would write them, and letters by all of their spellings."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer, models
from transformers import (
    BertConfig,
    BertForMaskedLM,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

from bench.scorers import load
from bench.tasks.request import Key, Request
from tests.helpers.checkpoints import save

ANSWERS = ("A", "B", "C")
# A tokenizer of characters has pieces of two characters too: letters with a blank before them.
MERGES = [(" ", "A"), (" ", "B"), (" ", "C")]
FULL_WIDTH = ("Ａ", "Ｂ")
ASSISTANT = "{% for m in messages %}{{ m['content'] }} ASSISTANT: {% endfor %}"


def coder(
    pieces: str = "", merges: Any = (), template: str | None = None, unknown: str | None = "<unk>"
) -> PreTrainedTokenizerFast:
    letters = "".join(map(chr, range(32, 127))) + "\n他她" + pieces
    names = ["<pad>", "<unk>", "<s>", "</s>", "[MASK]", *letters, *map("".join, merges)]
    vocabulary = {name: k for k, name in enumerate(dict.fromkeys(names))}
    core = Tokenizer(models.BPE(vocabulary, list(merges), unk_token=unknown))
    special = {"pad_token": "<pad>", "eos_token": "</s>", "mask_token": "[MASK]"}
    if unknown:
        special["unk_token"] = unknown
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, **special)
    tokenizer.chat_template = template
    return tokenizer


def model(folder: Path, tokenizer: Any, masked: bool = False) -> Any:
    kind = (BertForMaskedLM, BertConfig) if masked else (LlamaForCausalLM, LlamaConfig)
    save(folder, *kind, tokenizer)
    return load(str(folder))


def next_token(scorer: Any, before: str, tokens: list[str]) -> float:
    """The log of the summed probabilities of `tokens` after a text, by transformers."""
    ids = scorer.tokenizer(before, return_tensors="pt")["input_ids"]
    logprobs = scorer.network(ids).logits[0, -1].detach().double().log_softmax(-1)
    wanted = scorer.tokenizer.convert_tokens_to_ids(tokens)
    return float(logprobs[wanted].logsumexp(0))


@pytest.mark.parametrize(
    ("pieces", "merges", "spellings"),
    [
        ("", (), [["A"], ["B"], ["C"]]),
        ("", MERGES, [["A", " A"], ["B", " B"], ["C", " C"]]),
        ("ＡＢＣ", MERGES, [["A", " A", "Ａ"], ["B", " B", "Ｂ"], ["C", " C", "Ｃ"]]),
        # C has no full-width token, and the token for unknown letters is none of C.
        ("ＡＢ", MERGES[:1], [["A", " A", "Ａ"], ["B", "Ｂ"], ["C"]]),
    ],
)
def test_the_probability_of_a_letter_is_the_sum_over_its_single_tokens(
    tmp_path: Path, pieces: str, merges: Any, spellings: list[list[str]]
) -> None:
    scorer = model(tmp_path, coder(pieces, merges))
    expected = [next_token(scorer, "who?\n", tokens) for tokens in spellings]
    values = scorer.choose(["who?"], ANSWERS)[0]
    np.testing.assert_allclose(values, expected, atol=1e-5)
    assert np.exp(values).sum() < 1


def test_the_texts_of_options_have_one_spelling(tmp_path: Path) -> None:
    scorer = model(tmp_path, coder("ＡＢＣ", MERGES))
    value = scorer.choose(["who?"], ("A", "他"))[0, 0]
    assert value == pytest.approx(next_token(scorer, "who?\n", ["A"]), abs=1e-5)


def test_a_masked_model_sums_the_spellings_at_the_mask(tmp_path: Path) -> None:
    scorer = model(tmp_path, coder("ＡＢＣ", MERGES), masked=True)
    ids = scorer.tokenizer("who?[MASK]", return_tensors="pt")["input_ids"]
    logprobs = scorer.network(ids).logits[0, -1].detach().double().log_softmax(-1)
    expected = [
        float(logprobs[scorer.tokenizer.convert_tokens_to_ids(tokens)].logsumexp(0))
        for tokens in (["A", " A", "Ａ"], ["B", " B", "Ｂ"], ["C", " C", "Ｃ"])
    ]
    np.testing.assert_allclose(scorer.choose(["who?"], ANSWERS)[0], expected, atol=1e-5)


def test_a_last_blank_of_a_prompt_belongs_to_an_option_that_is_one_token_with_it(
    tmp_path: Path,
) -> None:
    scorer = model(tmp_path, coder("", MERGES, ASSISTANT))
    expected = [next_token(scorer, "who? ASSISTANT:", [f" {letter}"]) for letter in ANSWERS]
    np.testing.assert_allclose(scorer.choose(["who?"], ANSWERS)[0], expected, atol=1e-5)


def test_all_options_of_a_prompt_begin_at_the_same_place(tmp_path: Path) -> None:
    """` A` is one token, and ` 他` two: the second is likely as the blank and the word after it."""
    scorer = model(tmp_path, coder("", MERGES, ASSISTANT))
    before = "who? ASSISTANT:"
    blank = next_token(scorer, before, [" "])
    expected = [
        next_token(scorer, before, [" A"]),
        blank + next_token(scorer, before + " ", ["他"]),
    ]
    np.testing.assert_allclose(scorer.choose(["who?"], ("A", "他"))[0], expected, atol=1e-5)


def test_a_last_blank_stays_where_tokenizers_keep_it_apart(tmp_path: Path) -> None:
    scorer = model(tmp_path, coder("", (), ASSISTANT))
    expected = [next_token(scorer, "who? ASSISTANT: ", [letter]) for letter in ANSWERS]
    np.testing.assert_allclose(scorer.choose(["who?"], ANSWERS)[0], expected, atol=1e-5)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    ("unknown", "options", "reason"),
    [
        (None, ("他", "無法"), "the tokenizer leaves nothing of the option '無法'"),
        (None, ("他", ""), "the tokenizer leaves nothing of the option ''"),
        ("<unk>", ("無", "有"), "the options '無' and '有' have the same tokens"),
    ],
)
def test_options_that_cannot_be_told_apart_are_an_error_of_their_request_alone(
    tmp_path: Path, masked: bool, unknown: str | None, options: tuple[str, ...], reason: str
) -> None:
    scorer = model(tmp_path, coder(unknown=unknown), masked)
    requests = [
        Request("c", "t", str(k), "r", "choose", "who?", "v", Key(), options=row)
        for k, row in enumerate((("他", "她"), options))
    ]
    right, wrong = scorer.answer(requests)
    assert (right.error, right.response) == ("", scorer.answer(requests[:1])[0].response)
    assert (wrong.error, wrong.response, wrong.logprobs) == (reason, "", None)
