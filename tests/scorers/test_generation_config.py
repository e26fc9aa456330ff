"""A checkpoint's own generation configuration: followed as transformers does, or named."""

import json

import pytest
import torch
import transformers

from bench.scorers import load
from tests.helpers.checkpoints import CODE, LETTERS, characters, save

PROMPTS = ["who is it?", "a", "the doctor and the nurse were here, who?"]
STEPS = 14
# Entries that change greedy replies.
PENALTIES = [
    {"repetition_penalty": 3.0},
    {"no_repeat_ngram_size": 1},
    {"encoder_repetition_penalty": 3.0},
    {"min_new_tokens": 8, "eos_token_id": [3, *range(10, 90)]},
    {"min_length": 16, "eos_token_id": [3, *range(10, 90)]},
    {"suppress_tokens": [*range(20, 60)]},
    {"begin_suppress_tokens": [*range(20, 90)]},
    {"bad_words_ids": [[k] for k in range(20, 60)]},
    {"exponential_decay_length_penalty": [3, 2.0]},
]


def saved(folder, entries, **more):
    coder = characters("[CLS] $A", chat=True, **more)
    save(folder, "LlamaForCausalLM", coder, num_key_value_heads=2)
    path = folder / "generation_config.json"
    path.write_text(json.dumps({"eos_token_id": 3, "pad_token_id": 0, **entries}))
    return str(folder)


def expected(scorer, **options):
    """Return greedy replies of transformers to each prompt alone."""
    network = transformers.AutoModelForCausalLM.from_pretrained(scorer.id)
    replies = []
    for prompt in PROMPTS:
        text = scorer.chat.render(prompt)
        ids = torch.tensor([scorer.tokenizer(text, add_special_tokens=False)["input_ids"]])
        given = {"attention_mask": torch.ones_like(ids), "max_new_tokens": STEPS, **options}
        reply = network.generate(ids, do_sample=False, **given)[0, ids.shape[1] :]
        replies.append(scorer.tokenizer.decode(reply, skip_special_tokens=True))
    return replies


@pytest.mark.parametrize("entries", PENALTIES, ids=lambda entries: next(iter(entries)))
def test_penalties_are_those_of_each_prompt_alone(tmp_path, entries):
    scorer = load(saved(tmp_path, entries), batch_tokens=90)
    replies = expected(scorer)
    assert scorer.generate(PROMPTS[::-1], max_new_tokens=STEPS) == replies[::-1]


# Entries that the workbench does not follow.
IGNORED = [
    {"num_beams": 2, "num_return_sequences": 2},
    {"prompt_lookup_num_tokens": 3},
    {"penalty_alpha": 0.6},
    {"guidance_scale": 1.5},
    {"dola_layers": "high"},
    {"forced_eos_token_id": 3},
    {"max_time": 0.001},
]
# Entries that change no reply.
PLAIN = [
    {"use_cache": False, "cache_implementation": "static", "max_length": 5},
    {"return_dict_in_generate": True, "output_scores": True},
    {"num_beams": 1, "repetition_penalty": 1.0},
    {"do_sample": True, "temperature": 0.0},
    {"do_sample": True, "top_p": 0.0},
]


@pytest.mark.parametrize("entries", [*IGNORED, *PLAIN], ids=lambda entries: [*entries][-1])
def test_entries_that_are_not_followed_change_no_reply_and_are_recorded(tmp_path, entries):
    scorer = load(saved(tmp_path / "with", entries))
    plain = load(saved(tmp_path / "without", {}))
    ignored = scorer.describe().get("generation_config_ignored", [])
    assert ignored == (sorted(entries) if entries in IGNORED else [])
    replies = plain.generate(PROMPTS, max_new_tokens=STEPS)
    assert scorer.generate(PROMPTS, max_new_tokens=STEPS) == replies


@pytest.mark.parametrize(
    "entry", [{"do_sample": True, "top_k": -1}, {"repetition_penalty": -1.0}, {"eos_token_id": "x"}]
)
def test_a_value_that_is_not_allowed_is_named(tmp_path, refusal, entry):
    message = refusal(load, saved(tmp_path, entry))
    assert "generation_config.json" in message
    assert list(entry)[-1].removeprefix("repetition_") in message


def test_stop_strings_end_replies(tmp_path):
    plain = load(saved(tmp_path / "without", {}))
    stop = plain.generate(PROMPTS[:1], max_new_tokens=STEPS)[0][3:5]
    scorer = load(saved(tmp_path / "with", {"stop_strings": [stop]}))
    replies = expected(scorer, tokenizer=scorer.tokenizer)
    assert scorer.generate(PROMPTS, max_new_tokens=STEPS) == replies
    assert replies[0].endswith(stop)
    assert len(replies[0]) < STEPS


def test_a_chat_ends_at_the_tokenizers_end_token_too(tmp_path):
    plain = load(saved(tmp_path / "without", {}))
    first = plain.generate(PROMPTS[:1], max_new_tokens=STEPS)[0]
    end = next(letter for letter in first[2:] if letter in LETTERS)
    folder = saved(tmp_path / "with", {})
    coder = characters("[CLS] $A", chat=True)
    coder.eos_token = end
    coder.save_pretrained(folder)
    scorer = load(folder)
    assert scorer.network.generation_config.eos_token_id == [3, CODE[end]]
    assert scorer.generate(PROMPTS[:1], max_new_tokens=STEPS) == [first[: first.index(end)]]
