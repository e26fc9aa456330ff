"""Replies of local models: greedy, sampled, in batches, and by options of generation."""

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare
from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification

from bench import run
from bench.scorers import load
from bench.scorers.local.generation import PreallocatedLayer, SeededSampling
from tests.helpers.answering import request
from tests.helpers.checkpoints import BERT, LETTERS, SPECIAL, characters, headed, save

# Architecture and shape, and whether common beginnings can be computed once.
FAMILIES: dict[str, tuple[str, dict[str, Any], bool]] = {
    "llama": ("Llama", {"num_key_value_heads": 2}, True),
    "gpt2": ("GPT2", {"n_positions": 512}, True),
    "gemma2": ("Gemma2", {"head_dim": 8, "final_logit_softcapping": 3.0}, True),
    "cohere": ("Cohere", {"logit_scale": 4.0}, True),
    "a narrow window": ("Mistral", {"sliding_window": 8, "num_key_value_heads": 2}, False),
    "bloom": ("Bloom", {"n_layer": 2, "n_head": 4}, False),
}
QUESTIONS = [
    "the doctor is here. who is it?",
    "the doctor is here. who?",
    "the doctor is not here.",
    "the nurse",
    "t",
    "他是医生。谁？",
    "他是医生。不是护士。",
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
@pytest.mark.parametrize("sampled", [False, True])
def test_common_beginnings_are_computed_once_and_replies_stay(
    folders: dict[str, str], name: str, sampled: bool
) -> None:
    texts, tallies = [], []
    for trees in (True, False):
        scorer: Any = load(folders[name])
        if sampled:
            scorer._generator.sampling = WARM
        scorer._reader._trees &= trees
        texts.append(scorer.generate(QUESTIONS, max_new_tokens=12, seed=5))
        tallies.append(scorer.tally)
    assert texts[0] == texts[1]
    assert len(set(texts[0])) > 3 or name == "gemma2"  # which says nothing, greedily
    assert tallies[0].asked == tallies[1].asked
    assert (tallies[0].computed < tallies[1].computed) is FAMILIES[name][2]


@pytest.mark.parametrize("name", ["llama", "gpt2", "cohere"])
def test_greedy_replies_are_the_models_own(folders: dict[str, str], name: str) -> None:
    scorer: Any = load(folders[name])
    coder = scorer.tokenizer
    free = scorer.generate(QUESTIONS, max_new_tokens=12)
    # A token inside some reply ends it from here on, so that replies differ in length.
    eos = coder.convert_tokens_to_ids(next(reply for reply in free if len(reply) > 4)[4])
    expected = []
    for question in QUESTIONS:
        ids = torch.tensor(
            [coder(scorer.chat.render(question), add_special_tokens=False).input_ids]
        )
        mask = torch.ones_like(ids)
        out = scorer.network.generate(
            ids, attention_mask=mask, do_sample=False, max_new_tokens=12, eos_token_id=eos
        )
        expected.append(coder.decode(out[0, ids.shape[1] :], skip_special_tokens=True))
    assert scorer.describe()["decoding"] == "greedy"
    for batch_tokens in (1, 4096):
        tested: Any = load(folders[name], batch_tokens=batch_tokens)
        tested.network.generation_config.eos_token_id = eos
        assert tested.generate(QUESTIONS[::-1], max_new_tokens=12) == expected[::-1]


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize(
    "name",
    [
        "llama",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("gpt2", "cohere", "bloom")),
    ],
)
def test_replies_that_have_ended_leave_their_places_to_others(
    folders: dict[str, str], name: str, sampled: bool, monkeypatch: Any
) -> None:
    scorer: Any = load(folders[name], batch_tokens=40)
    if sampled:
        scorer._generator.sampling = WARM
    prompts = [f"{question}{end}" for question in QUESTIONS for end in ("", "?", " no.")]

    def one_by_one() -> list[str]:
        return [scorer.generate([p], max_new_tokens=24, seed=1)[0] for p in prompts]

    # A character that is early in some replies and late in others ends them.
    free = one_by_one()
    places = {char: len({reply.find(char) for reply in free}) for char in "".join(free).strip()}
    end = max(places, key=lambda char: places[char])
    scorer.network.generation_config.eos_token_id = [scorer.tokenizer.convert_tokens_to_ids(end)]
    generate, rounds = scorer.network.generate, []

    def counted(**options: Any) -> Any:
        out = generate(**options)
        rounds.append((len(out), out.shape[1] - options["input_ids"].shape[1]))
        return out

    monkeypatch.setattr(scorer.network, "generate", counted)
    expected = one_by_one()
    written = sum(steps for _, steps in rounds)
    rounds.clear()
    assert scorer.generate(prompts, max_new_tokens=24, seed=1) == expected
    assert len({len(reply) for reply in expected}) > 2
    if FAMILIES[name][2]:
        # At most half of a batch had ended already, and one batch is not full.
        assert sum(rows * steps for rows, steps in rounds) < 2.5 * written
        assert max(rows for rows, _ in rounds) > 2


def test_a_sampled_reply_depends_on_prompt_and_seed_only(warm: str) -> None:
    scorer: Any = load(warm)
    assert scorer.describe()["decoding"] == {**WARM, "temperature": 1.5}
    drawn = scorer.generate(QUESTIONS, max_new_tokens=10, seed=3)
    for tested in (scorer, load(warm, batch_tokens=1)):
        assert tested.generate(QUESTIONS[::-1], max_new_tokens=10, seed=3) == drawn[::-1]
    some = [*QUESTIONS[2:4], QUESTIONS[2]]
    assert scorer.generate(some, max_new_tokens=10, seed=3) == [*drawn[2:4], drawn[2]]
    other = scorer.generate(QUESTIONS, max_new_tokens=10, seed=4)
    assert all(a != b for a, b in zip(drawn, other, strict=True))
    seeds = range(len(QUESTIONS))
    apart = [
        scorer.generate([question], max_new_tokens=8, seed=seed)[0]
        for seed, question in zip(seeds, QUESTIONS, strict=True)
    ]
    assert scorer.generate(QUESTIONS, max_new_tokens=8, seed=seeds) == apart
    before = scorer.tally.computed
    repeats = scorer.generate([QUESTIONS[0]] * 5, max_new_tokens=8, seed=range(5))
    assert repeats[0] == apart[0]
    assert len(set(repeats)) > 3
    prompt = len(scorer.tokenizer(scorer.chat.render(QUESTIONS[0]))["input_ids"])
    computed = scorer.tally.computed - before
    assert computed <= prompt - 1 + 5 * 8, "the prompt of the repeats is computed once"


def test_until_ends_a_reply(folders: dict[str, str]) -> None:
    scorer: Any = load(folders["llama"])
    complete = scorer.generate(QUESTIONS, max_new_tokens=20)
    cut = scorer.generate(QUESTIONS, max_new_tokens=20, until=lambda reply: len(reply) >= 3)
    assert cut == [reply[: len(short)] for reply, short in zip(complete, cut, strict=True)]
    assert {len(short) for short, reply in zip(cut, complete, strict=True) if len(reply) > 3} == {3}


CODE = dict(zip([*SPECIAL, *LETTERS], range(1000), strict=False))
lengths = st.lists(st.integers(1, 9), min_size=1, max_size=4)


@given(lengths, st.integers(0, 9), st.integers(0, 5))
def test_keys_and_values_are_right_aligned_and_grow_in_place(
    sizes: list[int], more: int, steps: int
) -> None:
    width = max(*sizes, more)
    blocks = [torch.randn(2, 3, n, 4) for n in sizes]
    layer = PreallocatedLayer([(block, -block) for block in blocks], width, room=steps)
    pad = torch.nn.functional.pad
    expected = torch.cat([pad(block, (0, 0, width - block.shape[2], 0)) for block in blocks])
    for _ in range(steps):
        new = torch.randn(len(expected), 3, 1, 4)
        keys, values = layer.update(new, -new)
        expected = torch.cat([expected, new], 2)
        assert torch.equal(keys, expected)
        assert torch.equal(values, -expected)
    assert layer.get_seq_length() == width + steps


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
    "all tokens": {"temperature": 1.0, "top_k": 0},
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
    coder = scorer.tokenizer
    # Two thousand prompts with their own seeds that look the same to the model: unknown letters.
    prompts = [chr(0xAC00 + i) for i in range(2000)]
    ids = coder(prompts[0] + "\n")["input_ids"]
    with torch.no_grad():
        logits = scorer.network(torch.tensor([ids])).logits[0, -1].double().numpy()
    p = distribution(logits, **DECODING[name])
    drawn = scorer.generate(prompts, max_new_tokens=1)
    # Special tokens are not shown in a reply, so all of them are one.
    likely = Counter({"": 2000 * p[: len(SPECIAL)].sum()})
    likely.update({letter: 2000 * p[CODE[letter]] for letter in LETTERS})
    observed = Counter(drawn)
    assert all(likely[token] > 0 for token in observed)
    often = [token for token in likely if likely[token] >= 5]
    assert len(often) >= 3
    counts = [[table[token] for token in often] for table in (observed, likely)]
    rest = [2000 - sum(column) for column in counts]
    if rest[1] > 1e-9:
        counts = [[*column, more] for column, more in zip(counts, rest, strict=True)]
    assert chisquare(*counts).pvalue > 1e-3


def test_random_numbers_follow_the_scores_and_the_seed() -> None:
    p = np.array([0.5, 0.0, 0.3, 0.15, 0.05])
    scores = torch.tensor(np.log(np.where(p, p, 1e-320))).masked_fill(
        torch.tensor(p == 0), -math.inf
    )
    scores = scores.expand(4000, 5)
    seeded = SeededSampling([f"{i:x}" for i in range(4000)], [0] * 4000, steps=2, start=3)
    first, second = (
        seeded(torch.zeros(4000, n, dtype=torch.long), scores).argmax(-1) for n in (3, 4)
    )
    for drawn in (first, second):
        counts = np.bincount(drawn.numpy(), minlength=5)
        assert counts[1] == 0
        assert chisquare(counts[p > 0], 4000 * p[p > 0]).pvalue > 1e-3
    assert (first == second).float().mean() < 0.45  # 0.365 if the steps are independent
    again = SeededSampling(["7"], [0], steps=2, start=9)
    assert again(torch.zeros(1, 9, dtype=torch.long), scores[:1]).argmax(-1) == first[7]


@pytest.mark.parametrize("draw", [0.0, 1e-300, 0.5, 1 - 2**-53])
def test_impossible_tokens_are_never_drawn(draw: float) -> None:
    inf = math.inf
    scores = torch.tensor(
        [[-inf, 0, 0, -inf], [0, -inf, -inf, -inf], [-inf, -inf, -inf, 5], [-30, 20, -inf, -40.0]]
    )
    # The sum of many small probabilities is rounded, and the end of the vocabulary is closed.
    wide = torch.randn(1, 150_000, generator=torch.manual_seed(0))
    wide[:, 100_000:] = -inf
    for table in (scores, wide):
        seeded = SeededSampling(["a"] * len(table), [0] * len(table), steps=1, start=7)
        seeded.uniform[:] = draw
        chosen = seeded(torch.zeros(len(table), 7, dtype=torch.long), table).argmax(-1)
        assert torch.isfinite(table[torch.arange(len(table)), chosen]).all()


def test_a_models_own_generation_configuration_is_used(tmp_path: Path) -> None:
    folder = saved(tmp_path, "llama")
    transformers.GenerationConfig(do_sample=True, temperature=2.0, top_k=0).save_pretrained(folder)
    assert replies(folder, seed=0) == replies(folder, seed=0) != replies(folder, seed=1)


def test_a_temperature_overrides_how_the_model_decodes(
    folders: dict[str, str], warm: str, refusal: Any
) -> None:
    greedy = folders["llama"]
    unchanged = load(greedy, generation={"temperature": None, "system": ""}).describe()
    assert unchanged == load(greedy).describe()
    assert not {"generation", "thoughts"} & set(unchanged)
    likeliest, drawn = replies(greedy), replies(warm)
    assert replies(warm, greedy=True) == replies(warm, {"temperature": 0}) == likeliest != drawn
    assert replies(warm, {"top_p": 1e-6}) == likeliest
    assert replies(warm, {"temperature": 1.5}) == drawn
    scorer: Any = load(greedy, generation={"temperature": 1.5})
    # Without a configuration, transformers draws from the 50 likeliest tokens.
    assert scorer.describe()["decoding"] == {**WARM, "temperature": 1.5, "top_k": 50}
    assert scorer.describe()["generation"] == {"temperature": 1.5}
    assert scorer.generate(QUESTIONS, max_new_tokens=8) != likeliest
    for model, options in ((greedy, {"top_p": 0.9}), (warm, {"top_p": 0.9, "temperature": 0})):
        message = refusal(load, model, generation=options)
        assert message.startswith("--top-p 0.9: ")
        assert "--temperature" in message


def test_a_judge_is_greedy_also_beside_a_model_that_samples(
    folders: dict[str, str], warm: str
) -> None:
    scorer: Any = load(warm, generation={"temperature": 2.0})
    requests = [
        request(text, name, max_new_tokens=8)
        for text in QUESTIONS
        for name in ("answer", "judge:1")
    ]
    texts = [answer.response for answer in scorer.answer(requests)]
    assert texts[1::2] == replies(folders["llama"]) != texts[::2]
    assert texts[::2] == scorer.generate(QUESTIONS, max_new_tokens=8)


def test_models_that_write_no_replies_refuse_the_options(tmp_path: Path, refusal: Any) -> None:
    (tmp_path / "answers.jsonl").write_text("", "utf-8")
    labels = {"num_labels": 3, "id2label": {0: "entailment", 1: "contradiction", 2: "neutral"}}
    coder = characters(BERT)
    models = [
        "simulated:bias=0.5",
        f"replay:{tmp_path / 'answers.jsonl'}",
        f"predictions:{tmp_path / 'answers.jsonl'}",
        str(save(tmp_path / "masked", BertForMaskedLM, BertConfig, coder)),
        str(save(tmp_path / "nli", BertForSequenceClassification, BertConfig, coder, **labels)),
        str(headed(tmp_path / "choice")),
    ]
    for model in models:
        message = refusal(load, model, generation={"temperature": 0.5})
        assert message.startswith("--temperature: ")
        assert model in message


def test_the_demonstration_model_takes_the_options(refusal: Any) -> None:
    scorer: Any = load("tiny:s", generation={"temperature": 0})
    described = scorer.describe()
    assert (described["generation"], described["decoding"]) == ({"temperature": 0}, "greedy")
    first, second = (scorer.generate(["t"], max_new_tokens=3, seed=seed) for seed in (1, 2))
    assert first == second
    scorer = load("tiny:s", generation={"template_arguments": {"tone": "curt"}})
    assert refusal(scorer.describe).startswith("--template tone: ")


def test_a_judge_that_writes_nothing_needs_no_room_for_thoughts(
    folders: dict[str, str], own_folder: Path
) -> None:
    given: dict[str, Any] = {"categories": ["age"], "tasks": ["ba"], "limit": 1, "out": "out"}
    model = folders["llama"]
    done = run.evaluate(
        "mcbe", model, judge="simulated:", thinking_tokens=4, max_new_tokens=4, **given
    )
    assert done.about["model"]["generation"] == {"thinking_tokens": 4}
    assert "generation" not in done.about["judge"]
