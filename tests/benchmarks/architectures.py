"""Compare tiny random models of all architectures of transformers with transformers itself.

    python -m tests.benchmarks.architectures [causal] [masked] [classifier] [TYPE ...]

The reference asks one text at a time, in one forward pass, and takes log-probabilities in float64.
We ask all texts together: log-probabilities of their tokens, and of options after a prompt
(`choose`), or the classes of pairs. The script takes some minutes, and prints a line per type:
`right` or `WRONG` with the largest difference, `refused` with the reason, or `not built` if its
configuration has other entries than `SMALL` or transformers fails by itself.
"""

import contextlib
import io
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from bench.core.errors import BadInput
from bench.scorers import load
from bench.scorers.local.kinds import KINDS
from tests.helpers.checkpoints import BERT, CODE, characters, codes, reference

HIDDEN = "hidden_size d_model n_embd dim emb_dim embedding_size word_embed_proj_dim d_embed"
HIDDEN += " attention_hidden_size rnn_hidden_size lru_width"
WIDE = "intermediate_size ffn_dim d_ff d_inner n_inner hidden_dim ffn_hidden_size feed_forward_size"
WIDE += " encoder_ffn_dim decoder_ffn_dim moe_intermediate_size shared_expert_intermediate_size"
LAYERS = "num_hidden_layers n_layer n_layers num_layers encoder_layers decoder_layers"
HEADS = "num_attention_heads n_head n_heads num_heads encoder_attention_heads"
HEADS += " decoder_attention_heads"
FEW = "num_key_value_heads num_kv_heads num_experts_per_tok top_k n_group topk_group moe_topk"
EIGHT = "head_dim attention_head_size d_kv qk_nope_head_dim qk_rope_head_dim v_head_dim rotary_dim"
EIGHT += " d_head state_size mamba_d_state ssm_state_size linear_key_head_dim linear_value_head_dim"
FOUR = "num_experts num_local_experts n_routed_experts moe_num_experts linear_num_key_heads"
FOUR += " linear_num_value_heads"
POSITIONS = "max_position_embeddings n_positions max_seq_len max_sequence_length"
RANKS = "q_lora_rank kv_lora_rank embedding_dim_per_layer hidden_size_per_layer_input"
# Entries of configurations with small values.
SMALL = {
    name: value
    for names, value in (
        (HIDDEN, 32),
        (WIDE, 64),
        (LAYERS, 2),
        (HEADS, 4),
        (FEW, 2),
        (EIGHT, 8),
        (FOUR, 4),
        (POSITIONS, 256),
        (RANKS, 16),
        ("vocab_size vocab_size_per_layer_input", len(CODE)),
        ("pad_token_id pad_index", 0),
        ("bos_token_id", CODE["[CLS]"]),
        ("eos_token_id", CODE["[SEP]"]),
        ("decoder_start_token_id mask_index", CODE["[MASK]"]),
        ("axial_pos_embds", False),
        ("hash_seed", 0),
    )
    for name in names.split()
}
LARGE = 20_000_000  # parameters of a configuration that is not small
TEXTS = ["she is a doctor.", "x", "the engineer is here, and he is not a nurse. " * 3, "他是医生。"]
PROMPTS, OPTIONS = ["who is she?", "他是医生，她是"], ("the nurse", "no")
LABELS = {"id2label": {0: "entailment", 1: "neutral", 2: "contradiction"}, "num_labels": 3}


def build(kind: str, auto_class: Any, model_type: str, folder: Path) -> Any:
    """Save a tiny random model of a type, and return it as transformers loads it."""
    config_class = transformers.CONFIG_MAPPING[model_type]
    default = config_class()
    entries = {
        name: value
        for name, value in SMALL.items()
        if hasattr(default, name) and not isinstance(getattr(config_class, name, None), property)
    }
    if hasattr(default, "causal"):  # XLM has one class for masked and for causal models
        entries["causal"] = kind == "causal"
    config = config_class(**entries, **(LABELS if kind == "classifier" else {}))
    with torch.device("meta"):
        size = auto_class.from_config(config).num_parameters()
    if size > LARGE:
        raise ValueError(f"{size:,} parameters")
    torch.manual_seed(0)
    network = auto_class.from_config(config)
    for part in network.modules():
        if isinstance(part, torch.nn.Linear | torch.nn.Embedding):
            part.weight.data.normal_(0, 0.2)
    network.save_pretrained(folder)
    characters(BERT if kind != "causal" else "[CLS] $A").save_pretrained(folder)
    return auto_class.from_pretrained(folder).eval()


@torch.inference_mode()
def expected(kind: str, network: Any) -> list[np.ndarray]:
    """Return the reference's numbers: one array per text, prompt or pair."""
    if kind == "classifier":
        tokenizer = characters(BERT)
        rows = [tokenizer(text, "she is", return_tensors="pt") for text in TEXTS]
        return [network(**row).logits[0].double().softmax(-1).numpy() for row in rows]
    mask, end = (CODE["[MASK]"], [CODE["[SEP]"]]) if kind == "masked" else (None, [])

    def logprobs(before: str, text: str) -> np.ndarray:
        ids = [CODE["[CLS]"], *codes(before + text), *end]
        places = range(1 + len(before), len(ids) - len(end))
        return reference(lambda row: network(input_ids=row), ids, places, mask)

    prompts = PROMPTS if mask else [f"{prompt}\n" for prompt in PROMPTS]
    choices = [np.array([logprobs(p, option).sum() for option in OPTIONS]) for p in prompts]
    return [logprobs("", text) for text in TEXTS] + choices


def answers(kind: str, scorer: Any) -> list[np.ndarray]:
    """Return our numbers of the same texts, asked together."""
    if kind == "classifier":
        order = [scorer.describe()["labels"][name] for name in scorer.describe()["labels"]]
        rows = scorer.classify([(text, "she is") for text in TEXTS])
        return list(rows[:, np.argsort(order)])
    return [*scorer.token_logprobs(TEXTS), *scorer.choose(PROMPTS, OPTIONS)]


def compare(kind: str, auto_class: Any, model_type: str) -> tuple[str, float | str]:
    """Return the outcome of a type, and the largest difference or the reason."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            network = build(kind, auto_class, model_type, Path(folder))
            theirs = expected(kind, network)
        except Exception as error:  # any failure of transformers
            return "not built", f"{type(error).__name__}: {' '.join(str(error).split())[:80]}"
        try:
            ours = answers(kind, load(folder))
        except BadInput as error:
            return "refused", str(error).replace(folder, "it").replace("\n", " ")[:110]
        except Exception as error:
            return "WRONG", f"{type(error).__name__}: {error}"[:110]
    off = max(np.abs(a - b).max(initial=0) for a, b in zip(ours, theirs, strict=True))
    return ("right" if off < 1e-3 else "WRONG"), float(off)


def main() -> None:
    """Compare the kinds and types that are named, or all."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    for kind in ("causal", "masked", "classifier"):
        auto_class, types = next(row[1:] for row in KINDS if row[0] == kind)
        named = set(sys.argv[1:])
        chosen = [t for t in types if not named or kind in named or t in named]
        outcomes, largest = Counter[str](), 0.0
        for model_type in chosen:
            with contextlib.redirect_stderr(io.StringIO()):
                outcome, what = compare(kind, auto_class, model_type)
            outcomes[outcome] += 1
            if outcome == "right" and isinstance(what, float):
                largest = max(largest, what)
            shown = f"{what:.1e}" if isinstance(what, float) else what
            print(f"{kind:11}{model_type:28}{outcome:10}{shown}", flush=True)
        counts = ", ".join(f"{n} {name}" for name, n in outcomes.items())
        print(f"\n{kind}: {counts}; largest difference of those right: {largest:.1e}\n", flush=True)


if __name__ == "__main__":
    main()
