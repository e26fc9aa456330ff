"""Replies of local models: greedy, sampled, in batches, and by options of generation."""

import json
from collections import Counter

import numpy as np
import pytest
import torch
import transformers
from scipy.stats import chisquare

from bench.scorers import load
from tests.helpers.answering import request
from tests.helpers.checkpoints import BERT, CODE, LETTERS, LIMITED, SPECIAL, characters, save

# Architecture and shape, and whether common beginnings can be computed once.
FAMILIES = {
    "llama": ("Llama", {"num_key_value_heads": 2}, True),
    "a narrow window": ("Mistral", {"sliding_window": 8, "num_key_value_heads": 2}, False),
    "bloom": ("Bloom", {"n_layer": 2, "n_head": 4}, False),
    **{name: (*family, name == "phi 3, long positions") for name, family in LIMITED.items()},
}
QUESTIONS = [
    "the doctor is here. who is it?",
    "the doctor is here. who?",
    "the nurse",
    "t",
    "他是医生。谁？",
    "他是",
    "the doctor is here. who is it? and why is that so?",
]
WARM = {"temperature": 1.3, "top_k": 0, "top_p": 1.0, "min_p": 0.0}


def saved(folder, name, sampling=None, **more):
    kind, shape, _ = FAMILIES[name]
    return str(
        save(folder, f"{kind}ForCausalLM", characters("[CLS] $A", **more), sampling, **shape)
    )


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("generate")
    return {name: saved(folder / name, name, chat=True) for name in FAMILIES}


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """The Llama of `folders`, whose configuration samples."""
    sampling = {"temperature": 1.5, "top_k": 0}
    return saved(tmp_path_factory.mktemp("warm"), "llama", sampling, chat=True)


def replies(model, generation=None, **options):
    scorer = load(str(model), generation=generation)
    return scorer.generate(QUESTIONS, max_new_tokens=8, **options)


@pytest.mark.parametrize("name", FAMILIES)
def test_common_beginnings_are_computed_once_and_greedy_replies_are_the_models_own(folders, name):
    scorer = load(folders[name])
    assert scorer.describe()["decoding"] == "greedy"
    coder, network = scorer.tokenizer, scorer.network
    free = scorer.generate(QUESTIONS, max_new_tokens=12)
    # A token inside some reply ends it from here on, so that replies differ in length.
    eos = CODE[next(reply for reply in free if len(reply) > 4)[4]]
    expected = []
    for question in QUESTIONS:
        text = scorer.chat.render(question)
        ids = torch.tensor([coder(text, add_special_tokens=False).input_ids])
        given = {"attention_mask": torch.ones_like(ids), "eos_token_id": eos}
        out = network.generate(ids, do_sample=False, max_new_tokens=12, **given)
        expected.append(coder.decode(out[0, ids.shape[1] :], skip_special_tokens=True))
    for batch_tokens in (1, 4096):
        tested = load(folders[name], batch_tokens=batch_tokens)
        tested.network.generation_config.eos_token_id = eos
        assert tested.generate(QUESTIONS[::-1], max_new_tokens=12) == expected[::-1]
    texts, tallies = [], []
    for trees in (True, False):
        tested = load(folders[name])
        tested._generator.sampling = WARM
        tested._reader._trees &= trees
        texts.append(tested.generate(QUESTIONS, max_new_tokens=12, seed=5))
        tallies.append(tested.tally)
    assert texts[0] == texts[1]
    assert len(set(texts[0])) > 3
    assert tallies[0].asked == tallies[1].asked
    assert (tallies[0].computed < tallies[1].computed) is FAMILIES[name][2]


def test_a_sampled_reply_depends_on_prompt_and_seed_only(warm):
    scorer = load(warm)
    assert scorer.describe()["decoding"] == {**WARM, "temperature": 1.5}
    seeds = range(len(QUESTIONS))
    free = scorer.generate(QUESTIONS, max_new_tokens=16, seed=seeds)
    # A character that is early in some replies and late in others ends them.
    places = {char: len({reply.find(char) for reply in free}) for char in "".join(free).strip()}
    end = CODE[max(places, key=lambda char: places[char])]
    scorer.network.generation_config.eos_token_id = [end]
    pairs = zip(seeds, QUESTIONS, strict=True)
    drawn = [scorer.generate([q], max_new_tokens=16, seed=k)[0] for k, q in pairs]
    assert len(set(map(len, drawn))) > 2
    tested = load(warm, batch_tokens=40)
    tested.network.generation_config.eos_token_id = [end]
    again = tested.generate(QUESTIONS[::-1], max_new_tokens=16, seed=seeds[::-1])
    assert again == drawn[::-1]
    assert scorer.generate(QUESTIONS, max_new_tokens=16, seed=99) != drawn
    before = scorer.tally.computed
    repeats = scorer.generate([QUESTIONS[0]] * 5, max_new_tokens=8, seed=range(5))
    assert drawn[0].startswith(repeats[0])
    assert len(set(repeats)) > 3
    prompt = len(scorer.tokenizer(scorer.chat.render(QUESTIONS[0]))["input_ids"])
    computed = scorer.tally.computed - before
    assert computed <= prompt - 1 + 5 * 8, "the prompt of the repeats is computed once"


DECODING = {
    "temperature": {"temperature": 2.0, "top_k": 0},
    "top_k": {"temperature": 1.5, "top_k": 5},
    "top_p and min_p": {"temperature": 1.0, "top_k": 0, "top_p": 0.6, "min_p": 0.1},
    "silent": {},  # transformers then takes the 50 likeliest
}


def distribution(logits, temperature=1.0, top_k=50, top_p=1.0, min_p=0.0):
    """The distribution that a generation configuration means."""
    p = np.exp((logits - logits.max()) / temperature)
    p /= p.sum()
    order = np.argsort(-p)
    if top_k:
        p[order[top_k:]] = 0
    before = np.cumsum(p[order]) - p[order]
    p[order[before >= top_p * p.sum()]] = 0
    p[p < min_p * p.max()] = 0
    return p / p.sum()


@pytest.mark.parametrize("name", DECODING)
def test_first_tokens_are_drawn_from_the_models_distribution(tmp_path, name):
    scorer = load(saved(tmp_path, "llama", DECODING[name]))
    # Two thousand prompts with their own seeds that look the same to the model: unknown letters.
    prompts = [chr(0xAC00 + i) for i in range(2000)]
    ids = scorer.tokenizer(prompts[0] + "\n")["input_ids"]
    with torch.no_grad():
        logits = scorer.network(torch.tensor([ids])).logits[0, -1].double().numpy()
    p = distribution(logits, **DECODING[name])
    # Special tokens are not shown in a reply, so all of them are one.
    likely = Counter({"": 2000 * p[: len(SPECIAL)].sum()})
    likely.update({letter: 2000 * p[CODE[letter]] for letter in LETTERS})
    observed = Counter(scorer.generate(prompts, max_new_tokens=1))
    assert all(likely[token] > 0 for token in observed)
    often = [token for token in likely if likely[token] >= 5]
    counts = [[table[token] for token in often] for table in (observed, likely)]
    counts = [[*column, 2000.001 - sum(column)] for column in counts]
    assert chisquare(*counts).pvalue > 1e-3


def test_options_override_how_the_model_decodes(folders, warm, tmp_path, refusal):
    masked = save(tmp_path, "BertForMaskedLM", characters(BERT))
    greedy = folders["llama"]
    likeliest, drawn = replies(greedy), replies(warm)
    assert replies(warm, greedy=True) == replies(warm, {"temperature": 0}) == likeliest != drawn
    assert replies(warm, {"top_p": 1e-6}) == likeliest
    assert replies(warm, {"temperature": 1.5}) == drawn
    scorer = load(greedy, generation={"temperature": 1.5})
    # Without a configuration, transformers draws from the 50 likeliest tokens.
    assert scorer.describe()["decoding"] == {**WARM, "temperature": 1.5, "top_k": 50}
    assert scorer.generate(QUESTIONS, max_new_tokens=8) != likeliest
    message = refusal(load, greedy, generation={"top_p": 0.9})
    assert message.startswith("--top-p 0.9: ")
    message = refusal(load, str(masked), generation={"temperature": 0.5})
    assert message.startswith(f"--temperature: model {masked} ")
    # A judge is greedy, also beside a model that samples.
    scorer = load(warm, generation={"temperature": 2.0})
    names = ("answer", "judge:1")
    requests = [request(text, name, max_new_tokens=8) for text in QUESTIONS for name in names]
    texts = [answer.response for answer in scorer.answer(requests)]
    assert texts[1::2] == likeliest != texts[::2]
    assert texts[::2] == scorer.generate(QUESTIONS, max_new_tokens=8)


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


def with_entries(folder, entries, **more):
    coder = characters("[CLS] $A", chat=True, **more)
    save(folder, "LlamaForCausalLM", coder, num_key_value_heads=2)
    path = folder / "generation_config.json"
    path.write_text(json.dumps({"eos_token_id": 3, "pad_token_id": 0, **entries}))
    return str(folder)


def expected_replies(scorer, **options):
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
    scorer = load(with_entries(tmp_path, entries), batch_tokens=90)
    replies = expected_replies(scorer)
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
    scorer = load(with_entries(tmp_path / "with", entries))
    plain = load(with_entries(tmp_path / "without", {}))
    ignored = scorer.describe().get("generation_config_ignored", [])
    assert ignored == (sorted(entries) if entries in IGNORED else [])
    replies = plain.generate(PROMPTS, max_new_tokens=STEPS)
    assert scorer.generate(PROMPTS, max_new_tokens=STEPS) == replies


@pytest.mark.parametrize(
    "entry", [{"do_sample": True, "top_k": -1}, {"repetition_penalty": -1.0}, {"eos_token_id": "x"}]
)
def test_a_value_that_is_not_allowed_is_named(tmp_path, refusal, entry):
    message = refusal(load, with_entries(tmp_path, entry))
    assert "generation_config.json" in message
    assert list(entry)[-1].removeprefix("repetition_") in message


def test_stop_strings_end_replies(tmp_path):
    plain = load(with_entries(tmp_path / "without", {}))
    stop = plain.generate(PROMPTS[:1], max_new_tokens=STEPS)[0][3:5]
    scorer = load(with_entries(tmp_path / "with", {"stop_strings": [stop]}))
    replies = expected_replies(scorer, tokenizer=scorer.tokenizer)
    assert scorer.generate(PROMPTS, max_new_tokens=STEPS) == replies
    assert replies[0].endswith(stop)
    assert len(replies[0]) < STEPS


def test_a_chat_ends_at_the_tokenizers_end_token_too(tmp_path):
    plain = load(with_entries(tmp_path / "without", {}))
    first = plain.generate(PROMPTS[:1], max_new_tokens=STEPS)[0]
    end = next(letter for letter in first[2:] if letter in LETTERS)
    folder = with_entries(tmp_path / "with", {})
    coder = characters("[CLS] $A", chat=True)
    coder.eos_token = end
    coder.save_pretrained(folder)
    scorer = load(folder)
    assert scorer.network.generation_config.eos_token_id == [3, CODE[end]]
    assert scorer.generate(PROMPTS[:1], max_new_tokens=STEPS) == [first[: first.index(end)]]
