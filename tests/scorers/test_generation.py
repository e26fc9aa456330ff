"""Replies of local models: greedy, sampled, in batches, and by options of generation."""

import json
from collections import Counter

import pytest
import torch
import transformers
from scipy.stats import chisquare

from bench.scorers import load
from bench.scorers.local.generation import TopP
from tests.helpers.answering import request
from tests.helpers.cases import json_lines
from tests.helpers.checkpoints import BERT, CODE, LETTERS, SPECIAL, characters, save
from tests.scorers.test_logprobs import MODELS

FAMILIES = {name: row["replies"] for name, row in MODELS.items() if row["replies"]}
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
# Tokens of replies.
STEPS = 14


def saved(folder, name="llama", sampling=None, chat=True, **entries):
    """Save a model; `entries` are of its generation_config.json."""
    row, coder = MODELS[name], characters("[CLS] $A", chat=chat)
    save(folder, row["network"], coder, sampling, **row["shape"])
    if entries:
        path = folder / "generation_config.json"
        path.write_text(json.dumps({"eos_token_id": 3, "pad_token_id": 0, **entries}))
    return str(folder)


@pytest.fixture(scope="module")
def greedy(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("greedy"))


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """The same Llama, with a configuration that samples."""
    return saved(tmp_path_factory.mktemp("warm"), sampling={"temperature": 1.5, "top_k": 0})


def replies(model, **options):
    return load(model, **options).generate(QUESTIONS, max_new_tokens=STEPS)


def expected_replies(scorer, **options):
    """Return greedy replies of transformers to each prompt alone."""
    network = transformers.AutoModelForCausalLM.from_pretrained(scorer.id)
    replies = []
    for question in QUESTIONS:
        text = scorer.chat.render(question)
        ids = torch.tensor([scorer.tokenizer(text, add_special_tokens=False)["input_ids"]])
        given = {"attention_mask": torch.ones_like(ids), "max_new_tokens": STEPS, **options}
        reply = network.generate(ids, do_sample=False, **given)[0, ids.shape[1] :]
        replies.append(scorer.tokenizer.decode(reply, skip_special_tokens=True))
    return replies


@pytest.mark.parametrize("name", FAMILIES)
def test_greedy_replies_are_the_models_own(tmp_path, name):
    model = saved(tmp_path, name)
    scorer = load(model, batch_tokens=1)
    assert scorer.describe()["decoding"] == "greedy"
    free = scorer.generate(QUESTIONS, max_new_tokens=STEPS)
    # A token inside some reply ends it from here on, so that replies differ in length.
    eos = CODE[next(reply for reply in free if len(reply) > 4)[4]]
    expected = expected_replies(scorer, eos_token_id=eos)
    for tested in (scorer, load(model)):
        tested.network.generation_config.eos_token_id = [eos]
        assert tested.generate(QUESTIONS[::-1], max_new_tokens=STEPS) == expected[::-1]


@pytest.mark.parametrize("name", FAMILIES)
def test_common_beginnings_of_prompts_are_computed_once_if_that_changes_no_reply(
    tmp_path, name, monkeypatch
):
    monkeypatch.setattr("bench.scorers.local.generation.ROOM", 3)
    model, texts, tallies = saved(tmp_path, name), [], []
    for trees in (True, False):
        scorer = load(model)
        scorer._generator.sampling = WARM
        scorer._reader._trees &= trees
        texts.append(scorer.generate(QUESTIONS, max_new_tokens=STEPS, seed=5))
        tallies.append(scorer.tally)
    assert texts[0] == texts[1]
    assert len(set(texts[0])) > 3
    assert tallies[0].asked == tallies[1].asked
    assert (tallies[0].computed < tallies[1].computed) is (FAMILIES[name] == "shared")


def test_a_batch_that_does_not_fit_into_memory_is_halved(greedy, monkeypatch):
    scorer = load(greedy)
    forward, sizes = scorer.network.base_model.forward, []

    def small(input_ids, **options):
        cache = options["cache" if "cache" in options else "past_key_values"]
        sizes.append(len(input_ids) * cache.get_seq_length())
        if sizes[-1] > 100:
            raise torch.OutOfMemoryError("too much")
        return forward(input_ids=input_ids, **options)

    monkeypatch.setattr(scorer.network.base_model, "forward", small)
    assert scorer.generate(QUESTIONS, max_new_tokens=STEPS) == replies(greedy)
    assert max(sizes) > 100


def test_batches_take_a_quarter_of_the_free_memory(greedy, monkeypatch):
    # Room for the keys and values of 200 tokens, from the model's configuration.
    scorer = load(greedy)
    config = scorer.network.config
    token_bytes = 2 * 4 * config.num_hidden_layers * config.num_key_value_heads * config.head_dim
    free = 4 * 200 * token_bytes
    monkeypatch.setattr("bench.scorers.local.generation.free_memory", lambda device: free)
    forward, sizes = scorer.network.base_model.forward, []

    def watched(input_ids, **options):
        sizes.append(len(input_ids))
        return forward(input_ids=input_ids, **options)

    monkeypatch.setattr(scorer.network.base_model, "forward", watched)
    assert scorer.generate(QUESTIONS, max_new_tokens=STEPS) == replies(greedy)
    longest = max(len(scorer.tokenizer(text).input_ids) for text in QUESTIONS) + STEPS
    assert max(sizes) in (200 // longest, 200 // longest + 1)


def test_a_reply_that_alone_does_not_fit_into_memory_is_an_error(greedy, monkeypatch):
    scorer, calls = load(greedy), []

    def full(**options):
        calls.append(options)
        assert len(calls) < 100, "it is not tried for ever"
        raise torch.OutOfMemoryError("too much")

    monkeypatch.setattr(scorer.network.base_model, "forward", full)
    with pytest.raises(torch.OutOfMemoryError):
        scorer.generate(QUESTIONS[:2], max_new_tokens=STEPS)


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


@pytest.mark.parametrize(
    "sampling",
    [
        {"temperature": 2.0, "top_k": 0},
        {"temperature": 1.5, "top_k": 5},
        {"temperature": 1.0, "top_k": 0, "top_p": 0.6, "min_p": 0.1},
        {},
    ],
)
def test_first_tokens_are_drawn_from_the_models_distribution(tmp_path, sampling):
    scorer = load(saved(tmp_path, sampling=sampling, chat=False))
    # Two thousand prompts with their own seeds that look the same to the model: unknown letters.
    prompts = [chr(0xAC00 + i) for i in range(2000)]
    ids = scorer.tokenizer(prompts[0] + "\n")["input_ids"]
    with torch.no_grad():
        logits = scorer.network(torch.tensor([ids])).logits[:, -1].double()
    # transformers takes the 50 likeliest if a configuration is silent.
    config = transformers.GenerationConfig(do_sample=True, **{"top_k": 50, **sampling})
    steps = scorer.network._get_logits_processor(config, 1, torch.tensor([ids]), device="cpu")
    p = steps(torch.tensor([ids]), logits).softmax(-1)[0].numpy()
    # Special tokens are not shown in a reply, so all of them are one.
    likely = Counter({"": 2000 * p[: len(SPECIAL)].sum()})
    likely.update({letter: 2000 * p[CODE[letter]] for letter in LETTERS})
    observed = Counter(scorer.generate(prompts, max_new_tokens=1))
    assert all(likely[token] > 0 for token in observed)
    often = [token for token in likely if likely[token] >= 5]
    counts = [[table[token] for token in often] for table in (observed, likely)]
    counts = [[*column, 2000.001 - sum(column)] for column in counts]
    assert chisquare(*counts).pvalue > 1e-3


@pytest.mark.parametrize("top_p", [0.05, 0.5, 0.95])
@pytest.mark.parametrize("logits", ["different", "equal", "impossible"])
def test_top_p_keeps_the_same_tokens_as_transformers(top_p, logits):
    scores = torch.randn(20, 300, generator=torch.Generator().manual_seed(1)) * 3
    if logits == "equal":
        scores = scores.round()
    if logits == "impossible":
        scores[:, ::2] = -torch.inf
    expected = transformers.TopPLogitsWarper(top_p)(None, scores)
    assert torch.equal(TopP(top_p)(None, scores), expected)


def test_options_override_how_the_model_decodes(greedy, warm):
    likeliest, drawn = replies(greedy), replies(warm)
    assert likeliest != drawn
    assert load(warm).generate(QUESTIONS, max_new_tokens=STEPS, greedy=True) == likeliest
    assert replies(warm, generation={"temperature": 0}) == likeliest
    assert replies(warm, generation={"temperature": 1.5}) == drawn
    # Without a configuration, transformers draws from the 50 likeliest tokens.
    scorer = load(greedy, generation={"temperature": 1.5})
    assert scorer.describe()["decoding"] == {**WARM, "temperature": 1.5, "top_k": 50}
    assert scorer.generate(QUESTIONS, max_new_tokens=STEPS) != likeliest


def test_an_option_of_replies_is_refused_by_a_model_that_writes_none(tmp_path, refusal):
    masked = save(tmp_path, "BertForMaskedLM", characters(BERT))
    message = refusal(load, str(masked), generation={"temperature": 0.5})
    assert message.startswith(f"--temperature: model {masked} ")


def test_a_judge_is_greedy_also_beside_a_model_that_samples(greedy, warm):
    scorer = load(warm, generation={"temperature": 2.0})
    names = ("answer", "judge:1")
    requests = [request(text, name, max_new_tokens=STEPS) for text in QUESTIONS for name in names]
    texts = [answer.response for answer in scorer.answer(requests)]
    assert texts[1::2] == replies(greedy) != texts[::2]
    assert texts[::2] == scorer.generate(QUESTIONS, max_new_tokens=STEPS)


@pytest.mark.parametrize(
    "entries",
    [
        {"repetition_penalty": 3.0},
        {"no_repeat_ngram_size": 1},
        {"encoder_repetition_penalty": 3.0},
        {"min_new_tokens": 8, "eos_token_id": [3, *range(10, 90)]},
        {"min_length": 16, "eos_token_id": [3, *range(10, 90)]},
        {"suppress_tokens": [*range(20, 60)]},
        {"begin_suppress_tokens": [*range(20, 90)]},
        {"bad_words_ids": [[k] for k in range(20, 60)]},
        {"exponential_decay_length_penalty": [3, 2.0]},
    ],
)
def test_penalties_are_those_of_each_prompt_alone(tmp_path, entries):
    scorer = load(saved(tmp_path, **entries), batch_tokens=90)
    expected = expected_replies(scorer)
    assert scorer.generate(QUESTIONS[::-1], max_new_tokens=STEPS) == expected[::-1]


@pytest.mark.parametrize("case", json_lines(__file__, "entries.jsonl"))
def test_entries_that_are_not_followed_change_no_reply_and_are_recorded(tmp_path, greedy, case):
    scorer = load(saved(tmp_path, **case["entries"]))
    ignored = scorer.describe().get("generation_config_ignored", [])
    assert ignored == (sorted(case["entries"]) if case["ignored"] else [])
    assert scorer.generate(QUESTIONS, max_new_tokens=STEPS) == replies(greedy)


@pytest.mark.parametrize(
    "entry", [{"do_sample": True, "top_k": -1}, {"repetition_penalty": -1.0}, {"eos_token_id": "x"}]
)
def test_a_value_that_is_not_allowed_is_named(tmp_path, refusal, entry):
    message = refusal(load, saved(tmp_path, **entry))
    assert "generation_config.json" in message
    assert list(entry)[-1].removeprefix("repetition_") in message


def test_stop_strings_end_replies(tmp_path, greedy):
    stop = replies(greedy)[0][3:5]
    scorer = load(saved(tmp_path, stop_strings=[stop]))
    expected = expected_replies(scorer, tokenizer=scorer.tokenizer)
    assert scorer.generate(QUESTIONS, max_new_tokens=STEPS) == expected
    assert expected[0].endswith(stop)
    assert len(expected[0]) < STEPS


@pytest.mark.parametrize(("behind", "ends"), [("[MASK]", True), (" [MASK]\n", True), ("\n", False)])
def test_a_chat_ends_at_the_token_that_its_template_writes_behind_a_reply(tmp_path, behind, ends):
    coder = characters("[CLS] $A")
    coder.chat_template = (
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}" + behind + "{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )
    save(tmp_path, "LlamaForCausalLM", coder)
    tokens = load(str(tmp_path)).network.generation_config.eos_token_id
    assert tokens == [CODE["[SEP]"], *[CODE["[MASK]"]] * ends]


def test_a_chat_ends_at_the_tokenizers_end_token_too(tmp_path, greedy):
    first = replies(greedy)[0]
    end = next(letter for letter in first[2:] if letter in LETTERS)
    model, coder = saved(tmp_path), characters("[CLS] $A", chat=True)
    coder.eos_token = end
    coder.save_pretrained(tmp_path)
    scorer = load(model)
    assert scorer.network.generation_config.eos_token_id == [3, CODE[end]]
    assert scorer.generate(QUESTIONS[:1], max_new_tokens=STEPS) == [first[: first.index(end)]]
