"""Choices of causal models: equal to a slow reference, for shared options and each prompt's own."""

import numpy as np
import pytest
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

from bench.scorers import load
from bench.tasks.request import Key, Request
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
    tmp_path, pieces, merges, spellings
):
    scorer = model(tmp_path, coder(pieces, merges))
    expected = [next_token(scorer, "who?\n", tokens) for tokens in spellings]
    values = scorer.choose(["who?"], ANSWERS)[0]
    np.testing.assert_allclose(values, expected, atol=1e-5)
    assert np.exp(values).sum() < 1


def test_a_masked_model_sums_the_spellings_at_the_mask(tmp_path):
    scorer = model(tmp_path, coder("ＡＢＣ", MERGES), masked=True)
    ids = scorer.tokenizer("who?[MASK]", return_tensors="pt")["input_ids"]
    logprobs = scorer.network(ids).logits[0, -1].detach().double().log_softmax(-1)
    expected = [
        float(logprobs[scorer.tokenizer.convert_tokens_to_ids(tokens)].logsumexp(0))
        for tokens in (["A", " A", "Ａ"], ["B", " B", "Ｂ"], ["C", " C", "Ｃ"])
    ]
    np.testing.assert_allclose(scorer.choose(["who?"], ANSWERS)[0], expected, atol=1e-5)


@pytest.mark.parametrize(
    ("merges", "options", "tokens"),
    [
        # The last blank of the prompt belongs to an option that is one token with it.
        (MERGES, ANSWERS, [[" A"], [" B"], [" C"]]),
        # All options of a prompt begin at the same place: the blank and the word are two tokens.
        (MERGES, ("A", "他"), [[" A"], [" ", "他"]]),
        # A tokenizer that keeps blanks apart has the blank in the prompt.
        ((), ANSWERS, [[" ", "A"], [" ", "B"], [" ", "C"]]),
    ],
)
def test_a_last_blank_of_a_prompt_stands_where_the_tokenizer_would_put_it(
    tmp_path, merges, options, tokens
):
    scorer, before = model(tmp_path, coder("", merges, ASSISTANT)), "who? ASSISTANT:"
    blank = next_token(scorer, before, [" "]) if merges else 0
    expected = [
        next_token(scorer, before, [first])
        if not rest
        else blank + next_token(scorer, f"{before} ", rest)
        for first, *rest in tokens
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
        Request("c", "t", str(k), "r", "choose", "who?", "v", Key(), options=row)
        for k, row in enumerate((("他", "她"), options))
    ]
    right, wrong = scorer.answer(requests)
    assert (right.error, right.response) == ("", scorer.answer(requests[:1])[0].response)
    assert (wrong.error, wrong.response, wrong.logprobs) == (reason, "", None)
