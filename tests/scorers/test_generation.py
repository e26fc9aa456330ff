"""Replies of local models: greedy, sampled, in batches, and by options of generation."""

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from scipy.stats import chisquare
from transformers import BertConfig, BertForMaskedLM

from bench.scorers import load
from bench.scorers.local.generation import SeededSampling
from tests.helpers.answering import request
from tests.helpers.checkpoints import BERT, CODE, LETTERS, SPECIAL, characters, save

# Architecture and shape, and whether common beginnings can be computed once.
FAMILIES: dict[str, tuple[str, dict[str, Any], bool]] = {
    "llama": ("Llama", {"num_key_value_heads": 2}, True),
    "gpt2": ("GPT2", {"n_positions": 512}, True),
    "cohere": ("Cohere", {"logit_scale": 4.0}, True),
    "a narrow window": ("Mistral", {"sliding_window": 8, "num_key_value_heads": 2}, False),
    "bloom": ("Bloom", {"n_layer": 2, "n_head": 4}, False),
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


def saved(folder: Path, name: str, sampling: dict[str, Any] | None = None, **more: Any) -> str:
    kind, shape, _ = FAMILIES[name]
    network = getattr(transformers, "GPT2LMHeadModel" if kind == "GPT2" else f"{kind}ForCausalLM")
    config, coder = getattr(transformers, f"{kind}Config"), characters("[CLS] $A", **more)
    return str(save(folder, network, config, coder, sampling, **shape))


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("generate")
    return {name: saved(folder / name, name, chat=True) for name in FAMILIES}


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The Llama of `folders`, whose configuration samples."""
    sampling = {"temperature": 1.5, "top_k": 0}
    return saved(tmp_path_factory.mktemp("warm"), "llama", sampling, chat=True)


def replies(model: Any, generation: dict[str, Any] | None = None, **options: Any) -> list[str]:
    scorer: Any = load(str(model), generation=generation)
    return scorer.generate(QUESTIONS, max_new_tokens=8, **options)  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", FAMILIES)
def test_common_beginnings_are_computed_once_and_greedy_replies_are_the_models_own(
    folders: dict[str, str], name: str
) -> None:
    scorer: Any = load(folders[name])
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
        tested: Any = load(folders[name], batch_tokens=batch_tokens)
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


def test_a_sampled_reply_depends_on_prompt_and_seed_only(warm: str) -> None:
    scorer: Any = load(warm)
    assert scorer.describe()["decoding"] == {**WARM, "temperature": 1.5}
    seeds = range(len(QUESTIONS))
    free = scorer.generate(QUESTIONS, max_new_tokens=24, seed=seeds)
    # A character that is early in some replies and late in others ends them.
    places = {char: len({reply.find(char) for reply in free}) for char in "".join(free).strip()}
    end = CODE[max(places, key=lambda char: places[char])]
    scorer.network.generation_config.eos_token_id = [end]
    pairs = zip(seeds, QUESTIONS, strict=True)
    drawn = [scorer.generate([q], max_new_tokens=24, seed=k)[0] for k, q in pairs]
    assert len(set(map(len, drawn))) > 2
    for batch_tokens in (1, 20, 40, 4096):
        tested: Any = load(warm, batch_tokens=batch_tokens)
        tested.network.generation_config.eos_token_id = [end]
        again = tested.generate(QUESTIONS[::-1], max_new_tokens=24, seed=seeds[::-1])
        assert again == drawn[::-1]
    assert scorer.generate(QUESTIONS, max_new_tokens=24, seed=99) != drawn
    before = scorer.tally.computed
    repeats = scorer.generate([QUESTIONS[0]] * 5, max_new_tokens=8, seed=range(5))
    assert drawn[0].startswith(repeats[0])
    assert len(set(repeats)) > 3
    prompt = len(scorer.tokenizer(scorer.chat.render(QUESTIONS[0]))["input_ids"])
    computed = scorer.tally.computed - before
    assert computed <= prompt - 1 + 5 * 8, "the prompt of the repeats is computed once"


def test_what_does_not_fit_into_memory_is_halved_for_good(
    folders: dict[str, str], monkeypatch: Any
) -> None:
    scorer: Any = load(folders["llama"], batch_tokens=200)
    expected = scorer.generate(QUESTIONS, max_new_tokens=12)
    generate, sizes = scorer.network.generate, []

    def small(**options: Any) -> Any:
        sizes.append(options["input_ids"].numel())
        if sizes[-1] > 120:
            raise torch.OutOfMemoryError("too much")
        return generate(**options)

    monkeypatch.setattr(scorer.network, "generate", small)
    assert scorer.generate(QUESTIONS, max_new_tokens=12) == expected
    refused = [k for k, size in enumerate(sizes) if size > 120]
    assert refused == list(range(len(refused))), "the size that was found is kept"
    assert 0 < len(refused) < len(sizes)


DECODING: dict[str, dict[str, Any]] = {
    "temperature": {"temperature": 2.0, "top_k": 0},
    "top_k": {"temperature": 1.5, "top_k": 5},
    "top_p": {"temperature": 1.0, "top_k": 0, "top_p": 0.6},
    "min_p": {"temperature": 1.0, "top_k": 0, "min_p": 0.1},
    "silent": {},  # transformers then takes the 50 likeliest
}


def distribution(
    logits: np.ndarray,
    temperature: float = 1.0,
    top_k: int = 50,
    top_p: float = 1.0,
    min_p: float = 0.0,
) -> np.ndarray:
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
def test_first_tokens_are_drawn_from_the_models_distribution(tmp_path: Path, name: str) -> None:
    scorer: Any = load(saved(tmp_path, "llama", DECODING[name]))
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


@pytest.mark.parametrize("draw", [0.0, 0.5, 1 - 2**-53])
def test_impossible_tokens_are_never_drawn(draw: float) -> None:
    inf = math.inf
    scores = torch.tensor([[-inf, 0, 0, -inf], [-inf, -inf, -inf, 5], [-30, 20, -inf, -40.0]])
    # The sum of many small probabilities is rounded, and the end of the vocabulary is closed.
    wide = torch.randn(1, 150_000, generator=torch.manual_seed(0))
    wide[:, 100_000:] = -inf
    for table in (scores, wide):
        seeded = SeededSampling(["a"] * len(table), [0] * len(table), steps=1, start=7)
        seeded.uniform[:] = draw
        chosen = seeded(torch.zeros(len(table), 7, dtype=torch.long), table).argmax(-1)
        assert torch.isfinite(table[torch.arange(len(table)), chosen]).all()


def test_options_override_how_the_model_decodes(
    folders: dict[str, str], warm: str, tmp_path: Path, refusal: Any
) -> None:
    masked = save(tmp_path, BertForMaskedLM, BertConfig, characters(BERT))
    greedy = folders["llama"]
    likeliest, drawn = replies(greedy), replies(warm)
    assert replies(warm, greedy=True) == replies(warm, {"temperature": 0}) == likeliest != drawn
    assert replies(warm, {"top_p": 1e-6}) == likeliest
    assert replies(warm, {"temperature": 1.5}) == drawn
    scorer: Any = load(greedy, generation={"temperature": 1.5})
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
