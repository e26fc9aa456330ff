"""Small random checkpoints: tokenizers with one token per character, networks of a layer or two."""

import shutil

import numpy as np
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors

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

LONG = {"rope_type": "longrope", "rope_theta": 10000.0, "original_max_position_embeddings": 40}
LONG |= {"short_factor": [1.0] * 4, "long_factor": [4.0] * 4}
GROUPED = {"num_key_value_heads": 2}
EXPERTS = {**GROUPED, "num_local_experts": 2, "num_experts_per_tok": 1, "head_dim": 8}
CHUNKS = {"attention_chunk_size": 24, "no_rope_layers": [1, 0], "intermediate_size_mlp": 64}
NEO = {"num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]]}
# Architectures that limit, in their own ways, the tokens that a token sees; each with its shape.
LIMITED = {
    "gpt neo, a narrow window": ("GPTNeo", {**NEO, "window_size": 24}),
    "llama 4, narrow chunks": ("Llama4", {**EXPERTS, **CHUNKS}),
    "gpt-oss, a narrow window": ("GptOss", {**EXPERTS, "sliding_window": 24}),
    "modernbert, narrow attention": ("ModernBertDecoder", {"local_attention": 24}),
    "phi 3, long positions": (
        "Phi3",
        {**GROUPED, "max_position_embeddings": 256, "rope_parameters": LONG},
    ),
    "rwkv, no attention": ("Rwkv", {"attention_hidden_size": 32, "rescale_every": 0}),
}


def codes(text):
    """The ids of `text`, looked up by hand."""
    return [CODE.get(letter, CODE["<unk>"]) for letter in text]


def characters(around="", chat=False, mask=True, **options):
    """One token per character; `around` says where special tokens go, like `[CLS] $A [SEP]`."""
    from transformers import PreTrainedTokenizerFast

    backend = Tokenizer(models.WordLevel(CODE, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), behavior="isolated")
    backend.decoder = decoders.Fuse()
    if around:
        backend.post_processor = processors.TemplateProcessing(
            single=around,
            pair="[CLS] $A [SEP] $B:1 [SEP]:1",
            special_tokens=[(name, CODE[name]) for name in ("[CLS]", "[SEP]")],
        )
    if mask:
        options["mask_token"] = "[MASK]"
    fast = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        unk_token="<unk>",
        pad_token="<pad>",
        bos_token="[CLS]",
        cls_token="[CLS]",
        eos_token="[SEP]",
        sep_token="[SEP]",
        additional_special_tokens=["<|user|>", "<|assistant|>"],
        **options,
    )
    fast.chat_template = CHAT if chat else None
    return fast


def merging(*merges):
    """Bytes and `merges` of them; without words, so that a merge may cross any boundary."""
    from transformers import PreTrainedTokenizerFast

    pieces = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *map("".join, merges), "<|end|>"]
    backend = Tokenizer(models.BPE({piece: i for i, piece in enumerate(pieces)}, list(merges)))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<|end|>")


def save(folder, kind, tokenizer, sampling=None, **shape):
    """Save a random network and its tokenizer in `folder`, and return it.

    Args:
        kind: the class of the network in transformers.
        shape: entries of its configuration, over SHAPE.
    """
    import torch
    import transformers

    torch.manual_seed(0)
    network_class = getattr(transformers, kind)
    names = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    names["pad_token_id"] = tokenizer.pad_token_id
    config = network_class.config_class(vocab_size=len(tokenizer), **names, **(SHAPE | shape))
    network = network_class(config).eval()
    if sampling is not None:
        del names["pad_token_id"]
        sampled = transformers.GenerationConfig(do_sample=True, **names, **sampling)
        network.generation_config = sampled
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def headed(folder, kind="BertForMultipleChoice", **shape):
    """Save a random encoder with a multiple-choice head; the tokenizer of RoBERTa has no types."""
    types = [] if kind.startswith("Roberta") else ["token_type_ids"]
    tokenizer = characters(BERT, model_input_names=["input_ids", *types, "attention_mask"])
    return save(folder, kind, tokenizer, **shape)


class Plant:
    """A pickle that makes a file when it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def broken(folder, model, name, content):
    """Copy `model` with one file replaced or left out."""
    shutil.copytree(model, folder)
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    return folder


# A Llama of one layer.
GGUF = {"name": "tiny", "context_length": 128, "embedding_length": 32, "block_count": 1}
GGUF |= {"feed_forward_length": 64, "head_count": 4, "head_count_kv": 4}
GGUF |= {"layer_norm_rms_eps": 1e-5, "rope_dimension_count": 8}


def save_gguf(path, pre="", merges=("t h", "h e")):
    """A random Llama of one layer as a GGUF file, with a tokenizer of bytes; the path.

    `pre` says how texts are split before bytes are merged.
    """
    import gguf

    merged = [merge.replace(" ", "") for merge in merges]
    pieces = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *merged, "<|end|>"]
    width, inner = 32, 64
    writer = gguf.GGUFWriter(path, "llama")
    for name, value in GGUF.items():
        getattr(writer, f"add_{name}")(value)
    writer.add_vocab_size(len(pieces))
    writer.add_tokenizer_model("gpt2")
    if pre:
        writer.add_tokenizer_pre(pre)
    writer.add_token_list(pieces)
    writer.add_token_types([gguf.TokenType.NORMAL] * (len(pieces) - 1) + [gguf.TokenType.CONTROL])
    # transformers 5.0 reads no Llama file with a single merge, or without a first token.
    writer.add_token_merges(list(merges))
    writer.add_bos_token_id(len(pieces) - 1)
    writer.add_eos_token_id(len(pieces) - 1)
    attention = [f"blk.0.attn_{name}" for name in ("q", "k", "v", "output")]
    rng = np.random.default_rng(0)
    for names, shape in (
        (attention, (width, width)),
        (["blk.0.ffn_gate", "blk.0.ffn_up"], (inner, width)),
        (["blk.0.ffn_down"], (width, inner)),
        (["blk.0.attn_norm", "blk.0.ffn_norm"], (width,)),
        (["token_embd", "output"], (len(pieces), width)),
        (["output_norm"], (width,)),
    ):
        for name in names:
            writer.add_tensor(f"{name}.weight", rng.normal(size=shape).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
