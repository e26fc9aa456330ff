"""Every tensor of a checkpoint is used, its kind is recognized, and its tokens have embeddings."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, processors
from transformers import AutoTokenizer

from bench.scorers import load
from bench.scorers.base import Unanswerable
from tests.helpers.cases import json_lines
from tests.helpers.checkpoints import BERT, CHAT, CODE, amend, characters, codes, reference, save

NLI = {"id2label": {0: "neutral", 1: "entailment", 2: "contradiction"}}
TEXT = "she is a doctor."


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    return save(tmp_path_factory.mktemp("llama"), "LlamaForCausalLM", characters("[CLS] $A"))


@pytest.fixture
def model(tmp_path, llama):
    """A folder to change."""
    return Path(shutil.copytree(llama, tmp_path / "model"))


def rewrite(folder, change):
    """Change the weights of a model in a folder."""
    file = folder / "model.safetensors"
    save_file(change(load_file(file)), file, {"format": "pt"})


def answers(scorer):
    """Answer a request of the model's kind."""
    if "nll" in scorer.request_types:
        return np.concatenate(scorer.token_logprobs([TEXT, "no"]))
    return scorer.classify([(TEXT, "no")])


@pytest.mark.parametrize("case", json_lines(__file__, "leftovers.jsonl"))
def test_a_weight_without_a_place_is_refused_unless_it_changes_no_number(tmp_path, refusal, case):
    labels = NLI if "Sequence" in case["network"] else {}
    save(tmp_path, case["network"], characters(BERT), **labels)
    expected = answers(load(str(tmp_path)))
    rewrite(tmp_path, lambda weights: weights | {name: torch.ones(32) for name in case["names"]})
    amend(tmp_path / "config.json", **case.get("config", {}))
    if case["says"]:
        assert case["says"] in refusal(load, str(tmp_path))
    else:
        np.testing.assert_allclose(answers(load(str(tmp_path))), expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.uint8, torch.int32])
def test_packed_weights_need_a_method_of_quantization(model, refusal, dtype):
    rewrite(model, lambda weights: {name: weights[name].to(dtype) for name in weights})
    assert "config.json names no method" in refusal(load, str(model))


EYE = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "image_size": 28}
EYE |= {"num_attention_heads": 2, "patch_size": 14}
WORDS = {"vocab_size": len(CODE), "hidden_size": 32, "intermediate_size": 48, "head_dim": 8}
WORDS |= {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
WORDS |= {"initializer_range": 0.3, "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
SECTIONS = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [1, 1, 2]}
QWEN = {"depth": 1, "embed_dim": 16, "num_heads": 2, "hidden_size": 32, "patch_size": 14}
MULTIMODAL = {
    "Qwen2VLForConditionalGeneration": {
        "text_config": WORDS | {"rope_parameters": SECTIONS},
        "vision_config": QWEN,
    },
    "LlavaForConditionalGeneration": {
        "text_config": WORDS | {"model_type": "llama"},
        "vision_config": EYE | {"model_type": "clip_vision_model"},
        "image_token_index": 5,
    },
    "Qwen2AudioForConditionalGeneration": {
        "text_config": WORDS | {"model_type": "qwen2"},
        "audio_config": {"d_model": 16, "encoder_layers": 1, "encoder_attention_heads": 2}
        | {"encoder_ffn_dim": 16, "num_mel_bins": 8, "model_type": "qwen2_audio_encoder"},
        "audio_token_index": 5,
    },
}


def save_multimodal(folder, kind, **shape):
    network_class = getattr(transformers, kind)
    torch.manual_seed(0)
    network_class(network_class.config_class(**shape)).save_pretrained(folder)
    characters("[CLS] $A", chat=True).save_pretrained(folder)
    return network_class.from_pretrained(folder).eval()


@pytest.mark.parametrize("kind", MULTIMODAL)
def test_a_model_that_also_sees_or_hears_answers_texts_as_transformers_does(tmp_path, kind):
    network = save_multimodal(tmp_path, kind, **MULTIMODAL[kind])
    scorer, texts = load(str(tmp_path)), [TEXT, "no"]
    expected = [reference(network, [CODE["[CLS]"], *codes(text)]) for text in texts]
    for _ in range(2):  # also after a reply
        for values, row in zip(scorer.token_logprobs(texts), expected, strict=True):
            np.testing.assert_allclose(values, row, atol=1e-4)
        scorer.generate(["who?"], max_new_tokens=3)


def test_a_model_that_needs_an_image_is_refused(tmp_path, refusal):
    queries = EYE | {"encoder_hidden_size": 16}
    shape = {"vision_config": EYE, "qformer_config": queries, "num_query_tokens": 2}
    words = {"model_type": "opt", "vocab_size": len(CODE), "ffn_dim": 48, "hidden_size": 32}
    words |= {"num_hidden_layers": 1, "num_attention_heads": 4, "word_embed_proj_dim": 32}
    save_multimodal(tmp_path, "Blip2ForConditionalGeneration", **shape, text_config=words)
    assert "is a model for images or sound (blip-2)" in refusal(load, str(tmp_path))


XLM = {"emb_dim": 32, "n_layers": 2, "n_heads": 4, "init_std": 0.3, "embed_init_std": 0.3}
XLM |= {"pad_index": 0, "mask_index": 4, "use_lang_emb": False}
LATENTS = {"d_model": 32, "d_latents": 32, "num_latents": 8, "max_position_embeddings": 64}
LATENTS |= {"num_self_attention_heads": 4, "num_cross_attention_heads": 4}
LATENTS |= {"num_self_attends_per_block": 1}
HASHES = {"attention_head_size": 8, "attn_layers": ["local", "lsh"], "axial_pos_embds": False}
HASHES |= {"feed_forward_size": 64, "max_position_embeddings": 512, "hash_seed": 1}


@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        ("FlaubertWithLMHeadModel", XLM),
        ("XLMWithLMHeadModel", XLM),
        ("PerceiverForMaskedLM", LATENTS),  # its head mixes all states
        ("ReformerForMaskedLM", HASHES),  # its attention depends on the longest text of a batch
    ],
)
def test_a_masked_model_of_any_form_has_the_numbers_of_transformers(tmp_path, kind, shape):
    save(tmp_path, kind, characters(BERT), **shape)
    scorer = load(str(tmp_path))
    texts = [TEXT, TEXT * 3 if kind == "PerceiverForMaskedLM" else TEXT * 7]
    for text, values in zip(texts, scorer.token_logprobs(texts), strict=True):
        ids = [CODE["[CLS]"], *codes(text), CODE["[SEP]"]]
        expected = reference(scorer.network, ids, range(1, len(ids) - 1), CODE["[MASK]"])
        np.testing.assert_allclose(values, expected, atol=1e-4)


def test_a_model_with_other_numbers_each_time_is_refused(tmp_path, refusal):
    shape = HASHES | {"hash_seed": None, "hidden_dropout_prob": 0.0}
    save(tmp_path, "ReformerForMaskedLM", characters(BERT), **shape)
    assert "other numbers each time" in refusal(load, str(tmp_path))


def test_a_causal_model_with_the_class_of_masked_ones_is_causal(tmp_path):
    save(tmp_path, "XLMWithLMHeadModel", characters("[CLS] $A"), causal=True, **XLM)
    assert "generate" in load(str(tmp_path)).request_types


def test_an_architecture_that_only_its_author_names_has_the_kind_of_its_type(model):
    expected = answers(load(str(model)))
    amend(model / "config.json", architectures=["LLaMAForCausalLM"])
    np.testing.assert_array_equal(answers(load(str(model))), expected)


@pytest.mark.parametrize(
    ("type", "kind"),
    [
        ("electra", "ElectraForPreTraining"),
        ("funnel", "FunnelForPreTraining"),
        ("bert", "BertForMultipleChoice"),
        ("gpt2", "OwnForMultipleChoice"),
    ],
)
def test_a_head_that_predicts_no_words_is_named(model, refusal, type, kind):
    entries = {"model_type": type, "architectures": [kind]}
    (model / "config.json").write_text(json.dumps(entries))
    assert f"predicts no words ({kind} is" in refusal(load, str(model))


CODE_OF_A_MODEL = """
from transformers import BertConfig, BertForMaskedLM
class Config(BertConfig):
    model_type = "own"
class Network(BertForMaskedLM):
    config_class = Config
    base_model_prefix = "body"
    def forward(self, input_ids, attention_mask=None):
        return super().forward(input_ids=input_ids, attention_mask=attention_mask)
"""


def test_a_masked_model_with_its_own_code_has_its_own_numbers(tmp_path):
    save(tmp_path, "BertForMaskedLM", characters(BERT))
    expected = answers(load(str(tmp_path)))
    (tmp_path / "own.py").write_text(CODE_OF_A_MODEL)
    classes = {"AutoConfig": "own.Config", "AutoModelForMaskedLM": "own.Network"}
    entries = {"model_type": "own", "auto_map": classes, "architectures": ["Network"]}
    amend(tmp_path / "config.json", **entries)
    scorer = load(str(tmp_path), trust_remote_code=True)
    np.testing.assert_allclose(answers(scorer), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("file", "says"),
    [
        ("onnx/model.onnx", "of ONNX (onnx/model.onnx)"),
        ("tf_model.h5", "of TensorFlow (tf_model.h5)"),
        ("flax_model.msgpack", "of Flax (flax_model.msgpack)"),
        ("openvino_model.xml", "of OpenVINO"),
        ("model.gguf", "give the file itself: "),
        ("model.fp16.safetensors", "variant (model.fp16.safetensors) and no model.safetensors"),
        ("README.md", "holds no model.safetensors"),
    ],
)
def test_weights_of_other_programs_are_named(model, refusal, file, says):
    (model / file).parent.mkdir(exist_ok=True)
    (model / "model.safetensors").rename(model / file)
    (model / "openvino_model.bin").touch()
    assert says in refusal(load, str(model))


def test_a_part_of_the_weights_that_is_missing_is_named(model, refusal):
    index = {"weight_map": {"lm_head.weight": "model-00001-of-00002.safetensors"}}
    (model / "model.safetensors.index.json").write_text(json.dumps(index))
    (model / "model.safetensors").unlink()
    assert "model-00001-of-00002.safetensors" in refusal(load, str(model))


@pytest.mark.skipif(
    transformers.utils.is_sentencepiece_available(), reason="sentencepiece is installed"
)
def test_the_missing_package_for_a_sentencepiece_model_is_named(tmp_path, refusal):
    save(tmp_path, "XLMRobertaForMaskedLM", characters(BERT))
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / "sentencepiece.bpe.model").write_bytes(
        b"\n\x0e\n\x05<unk>\x15\x00\x00\x00\x00\x18\x02"
    )
    amend(tmp_path / "tokenizer_config.json", tokenizer_class="XLMRobertaTokenizer")
    assert "pip install sentencepiece" in refusal(load, str(tmp_path))


def test_a_chat_token_without_an_embedding_is_refused(model, refusal):
    tokenizer = characters("[CLS] $A", chat=True)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|user|>", "<|turn|>"]})
    tokenizer.chat_template = CHAT.replace("<|assistant|>", "<|turn|>")
    tokenizer.save_pretrained(model)
    assert f"the token '<|turn|>' (number {len(CODE)})" in refusal(load, str(model))


def test_a_text_with_a_token_without_an_embedding_is_an_error_of_its_request(model):
    tokenizer = characters("[CLS] $A")
    tokenizer.add_tokens(["<|new|>"])
    tokenizer.save_pretrained(model)
    scorer = load(str(model))
    assert scorer.nll(["she"]).shape == (1,)
    with pytest.raises(Unanswerable, match="the token") as caught:
        scorer.nll(["she", "a <|new|> word"])
    assert list(caught.value.reasons) == [1]


@pytest.mark.parametrize("declared", ["DebertaTokenizer", "RobertaTokenizer", "BertTokenizer"])
@pytest.mark.parametrize(
    "pair", ["[CLS] $A [SEP] $B:1 [SEP]:1", "[CLS] $A [SEP] [SEP] $B", "$A $B"]
)
def test_special_tokens_are_those_of_the_file_whatever_the_class(tmp_path, declared, pair):
    single = pair.partition(" $B")[0].replace(" [SEP] [SEP]", "")
    tokenizer = characters()
    ids = [(name, CODE[name]) for name in ("[CLS]", "[SEP]")]
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single=single, pair=pair, special_tokens=ids
    )
    save(tmp_path, "RobertaForSequenceClassification", tokenizer, **NLI)
    amend(tmp_path / "tokenizer_config.json", tokenizer_class=declared)
    file = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    read = load(str(tmp_path)).tokenizer
    assert read(TEXT)["input_ids"] == file.encode(TEXT).ids
    assert read(TEXT, "no")["input_ids"] == file.encode(TEXT, "no").ids


def test_a_first_token_of_the_file_stays_with_the_class_of_gpt_neox(model):
    expected = answers(load(str(model)))
    amend(model / "tokenizer_config.json", tokenizer_class="GPTNeoXTokenizer")
    np.testing.assert_array_equal(answers(load(str(model))), expected)


ROLES = "{% for m in messages %}[{{ m['role'] }}]{{ m['content'] }}{% endfor %}"
NAMED = [{"name": "default", "template": ROLES}, {"name": "rag", "template": "{{ mode }}" + ROLES}]


@pytest.mark.parametrize("file", ["chat_template.json", "processor_config.json"])
@pytest.mark.parametrize("template", [ROLES, NAMED, {"default": ROLES}])
def test_the_chat_template_can_be_the_processors(model, refusal, file, template):
    (model / file).write_text(json.dumps({"chat_template": template}))
    scorer = load(str(model))
    assert scorer.chat.render("who?") == "[user]who?"
    assert scorer.describe()["prompted_as"] == "chat turn"
    (model / file).write_text("{")
    assert f"{file}: is no JSON object" in refusal(load, str(model))


def test_of_several_chat_templates_the_default_one_asks(model, refusal):
    amend(model / "tokenizer_config.json", chat_template=NAMED)
    assert load(str(model)).chat.render("who?") == "[user]who?"
    asked = {"template_arguments": {"mode": "x"}}
    assert "takes no such argument" in refusal(load, str(model), generation=asked)
    amend(model / "tokenizer_config.json", chat_template=NAMED[1:])
    assert "chat templates are named rag" in refusal(load, str(model))


DATES = [
    "{{ strftime_now('%d %b %Y, %-d. %A') }}",
    "{% set form = '%B' %}{{ strftime_now( form ) | upper }} {{ strftime_now(\"%Y\") | int + 1 }}",
    "{% macro head() %}{% if strftime_now is defined %}{{ strftime_now('%j') }}{% endif %}"
    "{% endmacro %}\n\n{{ head() }}",
]


@pytest.mark.parametrize("template", DATES)
@pytest.mark.parametrize("named", [False, True])
def test_today_is_recorded_and_written_as_transformers_writes_it(model, template, named):
    template += ROLES
    entry = [{"name": "default", "template": template}] if named else template
    amend(model / "tokenizer_config.json", chat_template=entry)
    scorer = load(str(model))
    turns = [{"role": "user", "content": "who?"}]
    options = {"tokenize": False, "add_generation_prompt": True}
    expected = AutoTokenizer.from_pretrained(model).apply_chat_template(turns, **options)
    assert scorer.chat.render("who?") == expected
    assert scorer.describe()["prompt_date"] == scorer.chat.date.isoformat()
    scorer.resume({"prompt_date": "2020-02-02"})
    assert scorer.chat.render("who?") != expected


def save_adapter(folder, base, options):
    """Save a random adapter of the model at `base`."""
    peft = pytest.importorskip("peft")
    torch.manual_seed(0)
    config = getattr(peft, options.pop("kind"))(task_type="CAUSAL_LM", **options)
    network = peft.get_peft_model(transformers.LlamaForCausalLM.from_pretrained(base), config)
    for weight in network.parameters():
        if weight.requires_grad:
            weight.data.normal_(0.2, 0.3)
    network.save_pretrained(folder)
    amend(folder / "adapter_config.json", base_model_name_or_path=str(base))
    return peft.PeftModel


QV = {"target_modules": ["q_proj", "v_proj"]}


@pytest.mark.parametrize(
    "options",
    [
        {"kind": "LoraConfig", **QV, "use_dora": True},
        {"kind": "LoraConfig", **QV, "trainable_token_indices": [10, 11]},
        {"kind": "LoraConfig", **QV, "modules_to_save": ["lm_head"]},
        {"kind": "IA3Config", **QV, "feedforward_modules": []},
        {"kind": "LoHaConfig", **QV},
    ],
)
def test_an_adapter_in_the_layers_has_the_numbers_of_peft(tmp_path, llama, options):
    of_peft = save_adapter(tmp_path, llama, dict(options))
    base = transformers.LlamaForCausalLM.from_pretrained(llama)
    network = of_peft.from_pretrained(base, tmp_path).eval()
    ids = [CODE["[CLS]"], *codes(TEXT)]
    expected = reference(lambda rows: network(input_ids=rows), ids)
    (values,) = load(str(tmp_path)).token_logprobs([TEXT])
    np.testing.assert_allclose(values, expected, atol=1e-4)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"kind": "PromptTuningConfig", "num_virtual_tokens": 2}, "PROMPT_TUNING"),
        ({"kind": "LoraConfig", **QV, "alora_invocation_tokens": [9]}, "peft's PeftModel alone"),
    ],
)
def test_an_adapter_outside_of_the_layers_is_refused(tmp_path, llama, refusal, options, says):
    save_adapter(tmp_path, llama, dict(options))
    assert says in refusal(load, str(tmp_path))


def test_an_adapter_that_does_not_fit_or_is_unknown_is_refused(tmp_path, llama, refusal):
    save_adapter(tmp_path, llama, {"kind": "LoraConfig", **QV, "use_dora": True})
    amend(tmp_path / "adapter_config.json", use_dora=False)
    assert "does not fit its base model (weights " in refusal(load, str(tmp_path))
    amend(tmp_path / "adapter_config.json", peft_type="NEWER")
    assert "update peft" in refusal(load, str(tmp_path))
