"""Compare the scores of small random models with transformers, asked one text at a time.

Each row of `ROWS` is an architecture with a form of tokenizer. The reference uses transformers and
tokenizers without our code: one text, one forward pass, float64. `tests/scorers/test_tokens.py`
runs every row.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import transformers
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

from bench.scorers import load
from tests.helpers.checkpoints import SHAPE, save_gguf

SPECIAL = ["<pad>", "<unk>", "<s>", "</s>", "[CLS]", "[SEP]", "[MASK]", "[gMASK]", "<sop>"]
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


class Row(NamedTuple):
    """An architecture with its tokenizer.

    Attributes:
        network: the class of the network.
        tokenizer: makes the tokenizer that the model was trained with.
        shape: of the network, over `SHAPE`.
        declared: the class that tokenizer_config.json names.
        turn: text before and after a prompt in the chat template; without one, a line break.
        special: names of special tokens that tokenizer_config.json gives.
    """

    network: str
    tokenizer: Callable[[], Tokenizer]
    shape: dict[str, Any] | None = None
    declared: str = "PreTrainedTokenizerFast"
    turn: tuple[str, str] | None = None
    special: tuple[str, ...] = ("bos", "eos", "unk", "pad")


def around(core: Tokenizer, template: str) -> Tokenizer:
    """Let a tokenizer put special tokens around a text, like `[CLS] $A [SEP]`."""
    ids = [(name, core.token_to_id(name)) for name in SPECIAL]
    core.post_processor = processors.TemplateProcessing(single=template, special_tokens=ids)
    return core


def byte_level(*splitters: Any, template: str = "") -> Tokenizer:
    """Byte-level BPE as of GPT-2, behind further splitters."""
    core = Tokenizer(models.BPE())
    level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.pre_tokenizer = pre_tokenizers.Sequence([*splitters, level]) if splitters else level
    core.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=500, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    core.train_from_iterator(CORPUS, trainer)
    return around(core, template) if template else core


def digits() -> Tokenizer:
    """Byte-level BPE with each digit by itself, as of SmolLM2 and StarCoder2."""
    return byte_level(pre_tokenizers.Digits(individual_digits=True))


def han() -> Tokenizer:
    """Byte-level BPE with numbers of up to three digits, and Chinese by itself, as of DeepSeek."""
    patterns = (r"\p{N}{1,3}", "[一-龥]+")
    return byte_level(*(pre_tokenizers.Split(Regex(p), "isolated") for p in patterns))


def sentencepiece(template: str = "<s> $A") -> Tokenizer:
    """SentencePiece BPE with bytes for unknown letters, as of Llama 2 and Mistral."""
    letters = sorted({letter for text in CORPUS for letter in text.replace(" ", "▁")})
    merges = [("▁", letter) for letter in "ABC他1"] + [("t", "h"), ("th", "e"), ("▁", "the")]
    pieces = [*SPECIAL, *(f"<0x{k:02X}>" for k in range(256)), *letters, *map("".join, merges)]
    vocabulary = {piece: k for k, piece in enumerate(pieces)}
    core = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", byte_fallback=True))
    core.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    core.add_special_tokens(SPECIAL)
    return around(core, template)


def unigram() -> Tokenizer:
    """SentencePiece unigrams, as of XLM-RoBERTa."""
    core = Tokenizer(models.Unigram())
    core.normalizer = normalizers.NFKC()
    core.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=200, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False
    )
    core.train_from_iterator(CORPUS, trainer)
    return around(core, "<s> $A </s>")


def wordpiece() -> Tokenizer:
    """WordPiece, as of BERT, ERNIE and the Chinese GPT-2."""
    core = Tokenizer(models.WordPiece(unk_token="<unk>"))
    core.normalizer = normalizers.BertNormalizer(lowercase=False)
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=300, special_tokens=SPECIAL, show_progress=False)
    core.train_from_iterator(CORPUS, trainer)
    return around(core, "[CLS] $A [SEP]")


def gguf_bytes() -> Tokenizer:
    """The tokenizer of `save_gguf` with digits one by one, as llama.cpp reads it."""
    merges = [tuple(merge.split()) for merge in GGUF_MERGES]
    pieces = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *map("".join, merges), "<|end|>"]
    core = Tokenizer(models.BPE({piece: k for k, piece in enumerate(pieces)}, merges))
    level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(True), level])
    return core


GGUF_MERGES = ("t h", "Ġ A", "Ġ 1", "1 2", "Ċ Ċ", "Ġ Ġ")
GROUPED = {"num_key_value_heads": 2}
NARROW = {**GROUPED, "head_dim": 8}
VICUNA, LLAMA_2 = ("USER: ", " ASSISTANT: "), ("[INST] ", " [/INST]")
CHAT, GEMMA = ("user\n", "\nassistant\n"), ("user\n", "\nmodel\n")
BERT = {"declared": "BertTokenizer", "special": ("cls", "sep", "mask", "unk", "pad")}
ENDS = {"special": ("bos", "eos", "cls", "sep", "mask", "unk", "pad")}
ROWS = {
    # The class that tokenizer_config.json names splits otherwise.
    "SmolLM2": Row("LlamaForCausalLM", digits, GROUPED, "GPT2Tokenizer", CHAT),
    "StarCoder2": Row("Starcoder2ForCausalLM", digits, GROUPED, "GPT2TokenizerFast"),
    "Qwen2, DeepSeek's tokenizer": Row("Qwen2ForCausalLM", han, GROUPED, "Qwen2Tokenizer", CHAT),
    "SmolLM2, GGUF": Row("LlamaForCausalLM", gguf_bytes),
    # The prompt ends in a blank.
    "Vicuna": Row("LlamaForCausalLM", sentencepiece, turn=VICUNA),
    "GPT-NeoX": Row("GPTNeoXForCausalLM", byte_level, turn=VICUNA),
    "Mistral": Row(
        "MistralForCausalLM", sentencepiece, {**GROUPED, "sliding_window": None}, turn=LLAMA_2
    ),
    "Gemma 2": Row("Gemma2ForCausalLM", sentencepiece, NARROW, turn=GEMMA),
    # Special tokens before a text, or behind it.
    "GLM-4": Row(
        "GlmForCausalLM",
        lambda: byte_level(template="[gMASK] <sop> $A"),
        NARROW,
        special=("eos", "pad"),
    ),
    "Chinese GPT-2": Row("GPT2LMHeadModel", wordpiece, **BERT),
    "BERT": Row("BertForMaskedLM", wordpiece, **BERT),
    "RoBERTa": Row(
        "RobertaForMaskedLM",
        lambda: byte_level(template="<s> $A </s>"),
        {"type_vocab_size": 1},
        **ENDS,
    ),
    "XLM-RoBERTa": Row("XLMRobertaForMaskedLM", unigram, **ENDS),
}


def save(row: Row, folder: Path) -> tuple[str, Tokenizer]:
    """Save the model of a row; return its name and the tokenizer that it was trained with."""
    core = row.tokenizer()
    if row.tokenizer is gguf_bytes:
        return str(save_gguf(folder / "model.gguf", "smollm", GGUF_MERGES)), core
    names = {"cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]", "bos": "<s>", "eos": "</s>"}
    names |= {"unk": "<unk>", "pad": "<pad>"}
    coder = transformers.PreTrainedTokenizerFast(
        tokenizer_object=core, **{f"{name}_token": names[name] for name in row.special}
    )
    if row.turn:
        before, after = map(json.dumps, row.turn)
        content = f"{{{{ {before} + message['content'] + {after} }}}}"
        coder.chat_template = "{% for message in messages %}" + content + "{% endfor %}"
    coder.save_pretrained(folder)
    settings = folder / "tokenizer_config.json"
    metadata = json.loads(settings.read_text("utf-8")) | {"tokenizer_class": row.declared}
    settings.write_text(json.dumps(metadata), "utf-8")
    network = getattr(transformers, row.network)
    ids = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
    torch.manual_seed(1)
    shape = {**SHAPE, "vocab_size": core.get_vocab_size(), **ids, **(row.shape or {})}
    network(network.config_class(**shape)).eval().save_pretrained(folder)
    return str(folder), core


class Reference:
    """The scores of a model by transformers, one text at a time."""

    def __init__(self, row: Row, network: Any, core: Tokenizer) -> None:
        self.row, self.network, self.core = row, network.double(), core
        self.mask = core.token_to_id("[MASK]") if "Masked" in row.network else None
        self.n_end = 0 if row.turn or core.post_processor is None else self.count_end()

    def count_end(self) -> int:
        """Count the special tokens behind a text."""
        mask = self.core.encode("a").special_tokens_mask
        return len(mask) - 1 - max(k for k, special in enumerate(mask) if not special)

    def logprobs(self, ids: Sequence[int], places: Sequence[int]) -> list[float]:
        """Return the log-probability of the tokens at `places`."""
        if self.mask is None:
            logits = self.network(torch.tensor([ids])).logits[0].log_softmax(-1)
            return [float(logits[k - 1, ids[k]]) for k in places]
        values = []
        for k in places:
            masked = torch.tensor([[*ids[:k], self.mask, *ids[k + 1 :]]])
            values.append(float(self.network(masked).logits[0, k].log_softmax(-1)[ids[k]]))
        return values

    def token_logprobs(self, text: str) -> list[float]:
        """Return the log-probabilities of a text's tokens after the first."""
        coded = self.core.encode(text)
        own = [k for k, special in enumerate(coded.special_tokens_mask) if not special]
        return self.logprobs(coded.ids, own if self.mask else range(1, len(coded.ids)))

    def choose(self, prompt: str, options: Sequence[str]) -> list[float]:
        """Return the log-probability of each option, as part of the text with its prompt."""
        text = prompt.join(self.row.turn) if self.row.turn else prompt + "\n" * (not self.mask)
        shortest = [self.encode(text), self.encode(text.rstrip(" "))]
        wholes = [self.encode(text + option) for option in options]
        before = next(b for b in shortest if all(w[: len(b)] == b for w in wholes))
        end = self.core.encode("a").ids[-self.n_end :] if self.n_end else []
        values = []
        for option, whole in zip(options, wholes, strict=True):
            spellings = {tuple(whole)}
            if options == LETTERS:
                spelled = (option, " " + option, chr(ord(option) + 0xFEE0))
                every = {tuple(self.encode(text + s)) for s in spelled}
                single = {w for w in every if len(w) == len(before) + 1 and list(w[:-1]) == before}
                spellings = {w for w in single if w[-1] != self.core.token_to_id("<unk>")}
            sums = [sum(self.logprobs([*w, *end], range(len(before), len(w)))) for w in spellings]
            values.append(float(np.log(np.exp(sums).sum())))
        return values

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text that is to be continued."""
        ids = self.core.encode(text, add_special_tokens=not self.row.turn).ids
        return ids[: len(ids) - self.n_end]


@torch.inference_mode()
def differences(name: str, folder: Path) -> tuple[float, float]:
    """Return the largest difference in `token_logprobs` and in `choose`, in nats."""
    row = ROWS[name]
    model, core = save(row, folder)
    scorer: Any = load(model)
    ours = scorer.token_logprobs(TEXTS), scorer.choose(PROMPTS, LETTERS)
    words = scorer.choose(PROMPTS, WORDS)
    reference = Reference(row, scorer.network, core)
    likelihoods = [
        np.abs(values - reference.token_logprobs(text)).max()
        for values, text in zip(ours[0], TEXTS, strict=True)
    ]
    choices = [
        np.abs(values - [reference.choose(prompt, options) for prompt in PROMPTS]).max()
        for values, options in ((ours[1], LETTERS), (words, WORDS))
    ]
    return float(max(likelihoods)), float(max(choices))
