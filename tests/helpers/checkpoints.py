"""Small random checkpoints: tokenizers with one token per character, networks of a layer or two."""

import json

import gguf
import numpy as np
import torch
import transformers
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

SPECIAL = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]", "<|user|>", "<|assistant|>"]
LETTERS = [
    *"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,:?!\n",
    *"他她是不医生护士工程师答案男女，。",
]
# The id of each token.
CODE = {token: k for k, token in enumerate([*SPECIAL, *LETTERS])}
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


def codes(text):
    """The ids of `text`, looked up by hand."""
    return [CODE.get(letter, CODE["<unk>"]) for letter in text]


def characters(around="", chat=False, **options):
    """One token per character; `around` gives places of special tokens, like `[CLS] $A [SEP]`."""
    backend = Tokenizer(models.WordLevel(CODE, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), behavior="isolated")
    backend.decoder = decoders.Fuse()
    if around:
        backend.post_processor = processors.TemplateProcessing(
            single=around,
            pair="[CLS] $A [SEP] $B:1 [SEP]:1",
            special_tokens=[(name, CODE[name]) for name in ("[CLS]", "[SEP]")],
        )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        unk_token="<unk>",
        pad_token="<pad>",
        bos_token="[CLS]",
        cls_token="[CLS]",
        eos_token="[SEP]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        additional_special_tokens=["<|user|>", "<|assistant|>"],
        **options,
    )
    fast.chat_template = CHAT if chat else None
    return fast


def reference(network, ids, places=None, mask=None):
    """Log-probabilities of tokens after the first, or at `places`, from all logits in float64.

    With `mask`, each token is masked alone.
    """

    def logprobs(row):
        with torch.no_grad():
            return network(torch.tensor([row])).logits[0].double().log_softmax(-1)

    places = list(range(1, len(ids)) if places is None else places)
    if mask is None:
        rows = logprobs(ids)[[k - 1 for k in places]] if places else []
    else:
        rows = [logprobs([*ids[:k], mask, *ids[k + 1 :]])[k] for k in places]
    return np.array([float(row[ids[k]]) for row, k in zip(rows, places, strict=True)])


def merging(*merges):
    """Bytes and `merges` of them; without words, so that a merge may cross any boundary."""
    pieces = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *map("".join, merges), "<|end|>"]
    backend = Tokenizer(models.BPE({piece: i for i, piece in enumerate(pieces)}, list(merges)))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<|end|>")


def save(folder, kind, tokenizer, sampling=None, **shape):
    """Save a random network and its tokenizer in `folder`, and return it.

    Args:
        kind: the class of the network in transformers.
        sampling: entries of a configuration that samples replies.
        shape: entries of its configuration, over SHAPE.
    """
    torch.manual_seed(0)
    network_class = getattr(transformers, kind)
    names = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    shape = SHAPE | names | {"pad_token_id": tokenizer.pad_token_id} | shape
    network = network_class(network_class.config_class(vocab_size=len(tokenizer), **shape)).eval()
    if sampling is not None:
        sampled = transformers.GenerationConfig(do_sample=True, **names, **sampling)
        network.generation_config = sampled
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def amend(path, **entries):
    """Change entries of a JSON file."""
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | entries), "utf-8")


def save_encoder(folder, kind, labels=(), **shape):
    """Save a random encoder; the tokenizer of RoBERTa has no token types."""
    types = [] if kind.startswith("Roberta") else ["token_type_ids"]
    tokenizer = characters(BERT, model_input_names=["input_ids", *types, "attention_mask"])
    if labels:
        shape["id2label"] = dict(enumerate(labels))
        shape["label2id"] = {label: k for k, label in enumerate(labels)}
    return save(folder, kind, tokenizer, **shape)


GGUF = {
    "name": "tiny",
    "context_length": 128,
    "embedding_length": 32,
    "block_count": 1,
    "feed_forward_length": 64,
    "head_count": 4,
    "head_count_kv": 4,
    "layer_norm_rms_eps": 1e-5,
    "rope_dimension_count": 8,
    "tokenizer_model": "gpt2",
}


def save_gguf(path, pre="", merges=("t h", "h e")):
    """A random Llama of one layer as a GGUF file, with a tokenizer of bytes; the path.

    `pre` names the rules of splitting texts before bytes are merged.
    """
    merged = [merge.replace(" ", "") for merge in merges]
    pieces = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *merged, "<|end|>"]
    writer = gguf.GGUFWriter(path, "llama")
    for name, value in GGUF.items():
        getattr(writer, f"add_{name}")(value)
    writer.add_vocab_size(len(pieces))
    if pre:
        writer.add_tokenizer_pre(pre)
    writer.add_token_list(pieces)
    writer.add_token_types([gguf.TokenType.NORMAL] * (len(pieces) - 1) + [gguf.TokenType.CONTROL])
    # transformers 5.0 reads no Llama file with a single merge, or without a first token.
    writer.add_token_merges(list(merges))
    writer.add_bos_token_id(len(pieces) - 1)
    writer.add_eos_token_id(len(pieces) - 1)
    shape = {**SHAPE, "num_hidden_layers": 1, "vocab_size": len(pieces)}
    torch.manual_seed(0)
    network = transformers.LlamaForCausalLM(transformers.LlamaConfig(**shape))
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, 1)
    for name, weight in network.state_dict().items():
        writer.add_tensor(names.get_name(name, (".weight",)), weight.numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
