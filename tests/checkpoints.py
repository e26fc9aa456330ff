"""Small random checkpoints for the scorers' tests: tokenizers of a character a token, and networks of a layer or two."""

from pathlib import Path
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import GenerationConfig, PreTrainedTokenizerFast

SPECIAL = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]", "<|user|>", "<|assistant|>"]
LETTERS = [*"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,:?!\n", *"他她是不医生护士工程师答案男女，。"]
CHAT = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
BERT = "[CLS] $A [SEP]"
# A shape small enough for a millisecond; weights wide enough that probabilities are far from even.
SHAPE = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "initializer_range": 0.3,
}


def characters(around: str = "", chat: bool = False, mask: bool = True, eos: bool = True) -> PreTrainedTokenizerFast:
    """A token a character; `around` is where special tokens go, like `[CLS] $A [SEP]`. What it does not know is <unk>."""
    vocabulary = {token: i for i, token in enumerate([*SPECIAL, *LETTERS])}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), behavior="isolated")
    backend.decoder = decoders.Fuse()
    if around:
        pair = around.replace("$A", "$A [SEP] $B:1") if "[SEP]" in around else f"{around} $B:1"
        backend.post_processor = processors.TemplateProcessing(
            single=around, pair=pair, special_tokens=[(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")]
        )
    names = {"bos_token": "[CLS]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    names |= {"mask_token": "[MASK]"} if mask else {}
    names |= {"eos_token": "[SEP]", "pad_token": "<pad>"} if eos else {"pad_token": "<pad>"}
    fast = PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token="<unk>", additional_special_tokens=["<|user|>", "<|assistant|>"], **names
    )  # fmt: skip
    fast.chat_template = CHAT if chat else None
    return fast


def merging(*merges: tuple[str, str]) -> PreTrainedTokenizerFast:
    """Bytes and the `merges` of them, as in GPT-2 but without words, so that a merge may cross any boundary."""
    pieces = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *("".join(merge) for merge in merges), "<|end|>"]
    backend = Tokenizer(models.BPE({piece: i for i, piece in enumerate(pieces)}, list(merges)))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<|end|>")


def save(
    folder: Path, network_class: Any, config_class: Any, tokenizer: Any, sampling: dict[str, Any] | None = None, **shape: Any
) -> Path:  # fmt: skip
    """A random network of `config_class` (`shape` over SHAPE) and `tokenizer`, saved in `folder`, which is returned."""
    torch.manual_seed(0)
    names = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    config = config_class(vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id, **names, **(SHAPE | shape))
    network = network_class(config).eval()
    if sampling is not None:
        network.generation_config = GenerationConfig(do_sample=True, **names, **sampling)
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
