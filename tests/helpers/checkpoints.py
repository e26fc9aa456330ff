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


# llama.cpp's kinds of values.
KINDS = {bool: "bool", int: "uint32", float: "float32", str: "string", list: "array"}


def save_gguf(
    path,
    pre="",
    merges=("t h", "h e"),
    *,
    network=None,
    keys=None,
    tensors=None,
    special=("<|end|>",),
    pieces=None,
    scores=None,
):
    """A random Llama of one layer, or `network`, as a GGUF file as llama.cpp writes it; the path.

    Its tokens are bytes, merges and `special`, or `pieces` of SentencePiece with their `scores`;
    `pre` names the rules of splitting texts before bytes are merged. `keys` and `tensors` are
    further entries; `{arch}` in a key is the architecture.
    """
    merged = [merge.replace(" ", "") for merge in merges]
    pieces = pieces or [*sorted(pre_tokenizers.ByteLevel.alphabet()), *merged, *special]
    network = network or random_network("Llama", len(pieces), num_hidden_layers=1)
    config = network.config
    name = config.model_type.removesuffix("_text")
    writer = gguf.GGUFWriter(path, name)
    writer.add_name("tiny")
    writer.add_context_length(128)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_vocab_size(len(pieces))
    writer.add_tokenizer_model("llama" if scores else "gpt2")
    if pre:
        writer.add_tokenizer_pre(pre)
    writer.add_token_list(pieces)
    writer.add_token_types(
        [3 if piece in special else 1 for piece in pieces]  # control and normal tokens
    )
    if scores:
        writer.add_token_scores(scores)
    else:
        # transformers 5.0 reads no Llama file with a single merge, or without a first token.
        writer.add_token_merges(list(merges))
    writer.add_bos_token_id(len(pieces) - 1)
    writer.add_eos_token_id(len(pieces) - 1)
    for key, value in (keys or {}).items():
        getattr(writer, f"add_{KINDS[type(value)]}")(key.format(arch=name), value)
    architecture = {name: key for key, name in gguf.MODEL_ARCH_NAMES.items()}[name]
    names = gguf.get_tensor_name_map(architecture, config.num_hidden_layers)
    for place, weight in network.state_dict().items():
        rows = weight.numpy()
        if place == "lm_head.weight" and config.tie_word_embeddings:
            continue
        if name == "llama" and ("q_proj" in place or "k_proj" in place):
            # llama.cpp turns pairs of neighbours.
            halves = rows.reshape(config.num_attention_heads, 2, -1, *rows.shape[1:])
            rows = np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(rows.shape)
        if name.startswith("gemma") and "norm" in place:
            rows = rows + 1
        writer.add_tensor(names.get_name(place, (".weight", ".bias")), rows)
    for place, rows in (tensors or {}).items():
        writer.add_tensor(place, np.array(rows, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def random_network(family, vocab_size, **shape):
    """A random causal network of a family of transformers, for example Llama."""
    torch.manual_seed(0)
    network_class = getattr(transformers, f"{family}ForCausalLM")
    shape = {**SHAPE, "num_key_value_heads": 4, "vocab_size": vocab_size, **shape}
    config = network_class.config_class(**shape)
    return network_class(config).eval()
