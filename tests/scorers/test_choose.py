"""Choices of causal models: equal to a slow reference, for shared options and each prompt's own."""

from itertools import cycle

import numpy as np
import pytest
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

from bench.scorers import load
from tests.helpers.answering import request
from tests.helpers.cases import json_lines
from tests.helpers.checkpoints import CODE, characters, codes, merging, reference, save

PROMPTS = [("is he a doctor?",), ("他是护士？答案：",), ("x",), ("who?", "she.", "is she?")]
OWN = [
    ("yes", "no", "not she"),
    ("他", "她是", "不是他。"),
    ("A", "AB", "ABC"),
    ("the nurse", "a", "she"),
]
SHARED = ("A", "B", "yes", "yet", "不是", "不")


def ids_of(turns, chat):
    """The token ids that a conversation should have, looked up by hand."""
    if not chat:
        return [CODE["[CLS]"], *codes("\n".join([*turns, ""]))]
    roles = cycle((CODE["<|user|>"], CODE["<|assistant|>"]))
    return [token for text in (*turns, "") for token in (next(roles), *codes(text))]


def logprob(scorer, before, option):
    return reference(scorer.network, before + option)[len(before) - 1 :].sum()


@pytest.mark.parametrize("options", [SHARED, OWN])
@pytest.mark.parametrize("batch_tokens", [50, 4096])
@pytest.mark.parametrize("chat", [False, True])
def test_choose_gives_the_reference(tmp_path, chat, batch_tokens, options):
    save(tmp_path, "LlamaForCausalLM", characters("[CLS] $A", chat=chat))
    scorer = load(str(tmp_path), batch_tokens=batch_tokens)
    expected = [
        [logprob(scorer, ids_of(turns, chat), codes(option)) for option in row]
        for turns, row in zip(PROMPTS, OWN if options is OWN else [SHARED] * 4, strict=True)
    ]
    values = scorer.choose(PROMPTS, options)
    assert values.dtype == np.float64
    np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-5)


def test_choose_if_the_tokenizer_merges_across_the_boundary(tmp_path):
    # The prompt's line break and A are one token, B and C are not; C and D are one in an option.
    coder = merging(("Ċ", "A"), ("C", "D"))
    scorer = load(str(save(tmp_path, "Qwen2ForCausalLM", coder, num_key_value_heads=4)))
    before = coder("Is it?\n")["input_ids"]
    assert coder("Is it?\nA")["input_ids"][: len(before)] != before
    options = ("A", "B", "AB", "CD", "C")
    tokens = [coder(option)["input_ids"] for option in options]
    assert [len(ids) for ids in tokens] == [1, 1, 2, 1, 1]
    expected = [logprob(scorer, before, ids) for ids in tokens]
    np.testing.assert_allclose(scorer.choose(["Is it?"], options)[0], expected, rtol=1e-4)


ANSWERS = ("A", "B", "C")
# A tokenizer of characters has pieces of two characters too: letters with a blank before them.
MERGES = [(" ", "A"), (" ", "B"), (" ", "C")]
ASSISTANT = "{% for m in messages %}{{ m['content'] }} ASSISTANT: {% endfor %}"


def coder(pieces="", merges=(), template=None, unknown="<unk>"):
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


def model(folder, tokenizer, masked=False):
    kind = "BertForMaskedLM" if masked else "LlamaForCausalLM"
    return load(str(save(folder, kind, tokenizer)))


def next_token(scorer, before, tokens):
    """The log of the summed probabilities of `tokens` after a text, or at its last mask."""
    ids = scorer.tokenizer(before, return_tensors="pt")["input_ids"]
    logprobs = scorer.network(ids).logits[0, -1].detach().double().log_softmax(-1)
    wanted = scorer.tokenizer.convert_tokens_to_ids(tokens)
    return float(logprobs[wanted].logsumexp(0))


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("case", json_lines(__file__, "spellings.jsonl"))
def test_the_probability_of_a_letter_is_the_sum_over_its_single_tokens(tmp_path, masked, case):
    merges = [tuple(pair) for pair in case["merges"]]
    scorer = model(tmp_path, coder(case["pieces"], merges), masked)
    before = "who?[MASK]" if masked else "who?\n"
    expected = [next_token(scorer, before, row) for row in case["spellings"]]
    values = scorer.choose(["who?"], ANSWERS)[0]
    np.testing.assert_allclose(values, expected, atol=1e-5)
    assert np.exp(values).sum() < 1


@pytest.mark.parametrize(
    ("merges", "options", "tokens"),
    [
        # The last blank of the prompt belongs to an option that is one token with it.
        (MERGES, ANSWERS, [[" A"], [" B"], [" C"]]),
        # All options of a prompt begin at the same place: the blank and the word are two tokens.
        (MERGES, ("A", "他"), [[" A"], [" ", "他"]]),
        # A tokenizer that keeps blanks apart has the blank in the prompt.
        ((), ANSWERS, [["A"], ["B"], ["C"]]),
    ],
)
def test_a_last_blank_of_a_prompt_belongs_to_the_token_that_the_tokenizer_would_make(
    tmp_path, merges, options, tokens
):
    scorer = model(tmp_path, coder("", merges, ASSISTANT))
    before = "who? ASSISTANT:" if merges else "who? ASSISTANT: "
    expected = [
        sum(next_token(scorer, before + "".join(row[:k]), [token]) for k, token in enumerate(row))
        for row in tokens
    ]
    np.testing.assert_allclose(scorer.choose(["who?"], options)[0], expected, atol=1e-5)


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
    tmp_path, masked, unknown, options, reason
):
    scorer = model(tmp_path, coder(unknown=unknown), masked)
    requests = [
        request("who?", request_type="choose", options=row) for row in (("他", "她"), options)
    ]
    right, wrong = scorer.answer(requests)
    assert (right.error, right.response) == ("", scorer.answer(requests[:1])[0].response)
    assert (wrong.error, wrong.response, wrong.logprobs) == (reason, "", None)
