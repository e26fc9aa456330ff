"""Tokens are those that a model was trained on, and scores those of transformers.

Each row of `families.jsonl` is an architecture with a form of tokenizer: special tokens around a
text, the class that tokenizer_config.json declares, the text before and after a prompt in the chat
template (without one, a prompt ends in a line break), and the special tokens that are named. The
reference uses transformers and tokenizers without our code: one text, one forward pass, float64.
"""

import json

import numpy as np
import pytest
import torch
from tokenizers import (
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import PreTrainedTokenizerFast

from bench.scorers import load
from tests.helpers.cases import json_lines
from tests.helpers.checkpoints import amend, reference, save, save_gguf

FAMILIES = {row["name"]: row for row in json_lines(__file__, "families.jsonl")}
NAMES = {"pad": "<pad>", "unk": "<unk>", "bos": "<s>", "eos": "</s>"}
NAMES |= {"cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
SPECIAL = [*NAMES.values(), "[gMASK]", "<sop>"]
TEXTS = [
    "The nurse was late and the doctor was early.",
    "1. 2024\n\n1. one\n  12 34",
    "他有  20 本书。\n\n4 个人说：“医生很好！”",
    "傈僳族的医生 is HERE, isn't she?",
]
PROMPTS = ["who is the nurse?", "谁是医生？ A. 他 B. 她 C. 不知道", "12 or 34?"]
LETTERS, WORDS = ("A", "B", "C"), ("the nurse", "他 12", "不知道")
CORPUS = [
    *TEXTS[:3],
    *PROMPTS,
    "A B C A. B. C. 他 12 the nurse ASSISTANT: USER: [INST] 34 5\n\n\n\n6 不知道",
] * 20
GGUF_MERGES = ("t h", "Ġ A", "Ġ 1", "1 2", "Ċ Ċ", "Ġ Ġ")
LEVEL = pre_tokenizers.ByteLevel(add_prefix_space=False)
ALPHABET = sorted(LEVEL.alphabet())


def byte_level(*splitters):
    """Byte-level BPE as of GPT-2, behind further splitters."""
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.Sequence([*splitters, LEVEL]) if splitters else LEVEL
    core.decoder = decoders.ByteLevel()
    return trained(core, trainers.BpeTrainer, vocab_size=500, initial_alphabet=ALPHABET)


def trained(core, trainer, **options):
    core.train_from_iterator(
        CORPUS, trainer(special_tokens=SPECIAL, show_progress=False, **options)
    )
    return core


def digits():
    """Byte-level BPE with each digit by itself, as of SmolLM2 and StarCoder2."""
    return byte_level(pre_tokenizers.Digits(individual_digits=True))


def han():
    """Byte-level BPE with numbers of up to three digits, and Chinese by itself, as of DeepSeek."""
    patterns = (r"\p{N}{1,3}", "[一-龥]+")
    return byte_level(*(pre_tokenizers.Split(Regex(p), "isolated") for p in patterns))


def sentencepiece():
    """SentencePiece BPE with bytes for unknown letters, as of Llama 2 and Mistral."""
    letters = sorted({letter for text in CORPUS for letter in text.replace(" ", "▁")})
    merges = [("▁", letter) for letter in "ABC他1"] + [("t", "h"), ("th", "e"), ("▁", "the")]
    pieces = [*SPECIAL, *(f"<0x{k:02X}>" for k in range(256)), *letters, *map("".join, merges)]
    vocabulary = {piece: k for k, piece in enumerate(pieces)}
    core = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", byte_fallback=True))
    steps = [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    core.normalizer = normalizers.Sequence(steps)
    core.add_special_tokens(SPECIAL)
    return core


def unigram():
    """SentencePiece unigrams, as of XLM-RoBERTa."""
    core = Tokenizer(models.Unigram())
    core.normalizer = normalizers.NFKC()
    core.pre_tokenizer = pre_tokenizers.Metaspace()
    return trained(core, trainers.UnigramTrainer, vocab_size=200, unk_token="<unk>")


def wordpiece():
    """WordPiece, as of BERT, ERNIE and the Chinese GPT-2."""
    core = Tokenizer(models.WordPiece(unk_token="<unk>"))
    core.normalizer = normalizers.BertNormalizer(lowercase=False)
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return trained(core, trainers.WordPieceTrainer, vocab_size=300)


def gguf_bytes():
    """The tokenizer of `save_gguf` with digits one by one, as llama.cpp reads it."""
    merges = [tuple(merge.split()) for merge in GGUF_MERGES]
    pieces = [*ALPHABET, *map("".join, merges), "<|end|>"]
    core = Tokenizer(models.BPE({piece: k for k, piece in enumerate(pieces)}, merges))
    core.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(True), LEVEL])
    return core


TOKENIZERS = [byte_level, digits, han, sentencepiece, unigram, wordpiece, gguf_bytes]
TOKENIZERS = {make.__name__: make for make in TOKENIZERS}


def save_family(name, folder):
    """Save a model; return its name and the tokenizer that it was trained with."""
    row = FAMILIES[name]
    core = TOKENIZERS[row["tokenizer"]]()
    if row["around"]:
        ids = [(name, core.token_to_id(name)) for name in SPECIAL]
        core.post_processor = processors.TemplateProcessing(
            single=row["around"], special_tokens=ids
        )
    if row["tokenizer"] == "gguf_bytes":
        return str(save_gguf(folder / "model.gguf", "smollm", GGUF_MERGES)), core
    special = {f"{role}_token": NAMES[role] for role in row["special"]}
    coder = PreTrainedTokenizerFast(tokenizer_object=core, **special)
    if row["turn"]:
        before, after = map(json.dumps, row["turn"])
        content = f"{{{{ {before} + message['content'] + {after} }}}}"
        coder.chat_template = "{% for message in messages %}" + content + "{% endfor %}"
    save(folder, row["network"], coder, **row["shape"])
    if row["declared"]:
        amend(folder / "tokenizer_config.json", tokenizer_class=row["declared"])
    return str(folder), core


class Reference:
    """The scores of a model by transformers, one text at a time."""

    def __init__(self, name, network, core):
        row, self.network, self.core = FAMILIES[name], network, core
        self.turn = row["turn"]
        self.mask = core.token_to_id("[MASK]") if "Masked" in row["network"] else None
        # The special tokens behind a text.
        coded = core.encode("a")
        last = max(k for k, special in enumerate(coded.special_tokens_mask) if not special)
        self.end = [] if self.turn else coded.ids[last + 1 :]

    def token_logprobs(self, text):
        """Return the log-probabilities of a text's tokens after the first."""
        coded = self.core.encode(text)
        own = [k for k, special in enumerate(coded.special_tokens_mask) if not special]
        return reference(self.network, coded.ids, own if self.mask else None, self.mask)

    def choose(self, prompt, options):
        """Return the log-probability of each option, as part of the text with its prompt."""
        text = prompt.join(self.turn) if self.turn else prompt + "\n" * (not self.mask)
        shortest = [self.encode(text), self.encode(text.rstrip(" "))]
        wholes = [self.encode(text + option) for option in options]
        before = next(b for b in shortest if all(w[: len(b)] == b for w in wholes))
        values = []
        for option, whole in zip(options, wholes, strict=True):
            spellings = {tuple(whole)}
            if options == LETTERS:
                spelled = (option, " " + option, chr(ord(option) + 0xFEE0))
                every = {tuple(self.encode(text + s)) for s in spelled}
                single = {w for w in every if len(w) == len(before) + 1 and list(w[:-1]) == before}
                spellings = {w for w in single if w[-1] != self.core.token_to_id("<unk>")}
            sums = []
            for ids in spellings:
                places = range(len(before), len(ids))
                sums.append(reference(self.network, [*ids, *self.end], places, self.mask).sum())
            values.append(np.logaddexp.reduce(sums))
        return values

    def encode(self, text):
        """Return the tokens of a text that is to be continued."""
        ids = self.core.encode(text, add_special_tokens=not self.turn).ids
        return ids[: len(ids) - len(self.end)]


@pytest.mark.parametrize("name", FAMILIES)
@torch.inference_mode()
def test_scores_are_those_of_transformers_for_one_text_at_a_time(tmp_path, name):
    model, core = save_family(name, tmp_path)
    scorer = load(model)
    likelihoods = scorer.token_logprobs(TEXTS)
    choices = {options: scorer.choose(PROMPTS, options) for options in (LETTERS, WORDS)}
    expected = Reference(name, scorer.network, core)
    for text, values in zip(TEXTS, likelihoods, strict=True):
        np.testing.assert_allclose(values, expected.token_logprobs(text), atol=5e-4)
    for options, rows in choices.items():
        for prompt, values in zip(PROMPTS, rows, strict=True):
            np.testing.assert_allclose(values, expected.choose(prompt, options), atol=5e-4)


def test_a_class_that_cannot_make_the_tokens_of_its_file_is_refused(tmp_path, refusal):
    """A token that tokenizer_config.json adds is taken out of the text before it is split."""
    name, _ = save_family("SmolLM2", tmp_path)
    amend(tmp_path / "tokenizer_config.json", eos_token="people")
    message = refusal(load, name)
    assert message.startswith(f"{tmp_path / 'tokenizer.json'}: the class ")
    assert "tokenizer_config.json" in message


@pytest.mark.parametrize("pre", ["", "gpt-2", "qwen2"])
def test_a_gguf_file_that_transformers_splits_rightly_keeps_its_tokens(tmp_path, pre):
    if pre == "qwen2":  # which older versions split by the architecture instead
        pytest.importorskip("transformers.integrations.gguf.gguf_tokenizer_mapping")
    path = save_gguf(tmp_path / "tiny.gguf", pre, ("Ġ a", "1 2"))
    scorer = load(str(path))
    alone = pre == "qwen2"  # which splits digits one by one
    tokens = scorer.tokenizer.tokenize("b a12")
    assert tokens == ["b", "Ġa", *(["1", "2"] if alone else ["12"])]
    assert scorer.describe()["tokenizer"].endswith(f"split as {pre or 'default'})")


def test_a_gguf_file_that_is_split_in_an_unknown_way_is_refused(tmp_path, refusal):
    path = save_gguf(tmp_path / "tiny.gguf", "deepseek-llm")
    message = refusal(load, str(path))
    assert message.startswith(f"{path}: splits texts as deepseek-llm")
    assert "tokenizer.json" in message
