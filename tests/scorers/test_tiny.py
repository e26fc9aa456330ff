"""The package's own models: what they learn, and that benchmarks find the bias they learned."""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from bench import data, run
from bench.core import places
from bench.report import study
from bench.scorers import load
from bench.scorers.local.checkpoint import tokenizer_identity
from bench.scorers.local.device import placement
from bench.scorers.stand_ins import SIZES, Recipe, corpus, parse_recipe, tiny, tiny_nli
from bench.scorers.stand_ins.tiny import CARRIED, WEIGHTS, Tiny
from bench.tasks.lessons import Lessons, biased_share


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("", "allowed: s, m, l"),
        ("xl", "allowed: s, m, l"),
        ("s,colour=1", "allowed: bias, seed"),
        ("s,", "allowed: bias, seed"),
        ("s,bias=x", "not a number"),
        ("s,bias=", "not a number"),
        ("s,seed=1.5", "not a number"),
        ("s,bias=1.1", "outside 0 to 1"),
        ("s,bias=-0.1", "outside 0 to 1"),
        ("s,bias=nan", "outside 0 to 1"),
    ],
)
def test_a_wrong_recipe_is_refused(refusal: Any, spec: str, says: str) -> None:
    message = refusal(load, f"tiny:{spec}")
    assert message.startswith(f"model tiny:{spec}: ")
    assert says in message


def test_a_recipe_has_one_name_and_one_corpus() -> None:
    assert parse_recipe("s") == Recipe("s", 0.5, 0) == parse_recipe("s,seed=0,bias=0.50")
    assert parse_recipe("l,bias=0.25,seed=7").name == "tiny:l,bias=0.25,seed=7"
    recipe = Recipe("s", 0.5, 3)
    assert corpus(recipe) == corpus(recipe) != corpus(Recipe("s", 0.5, 4))
    same = corpus(Recipe("s", 0.0, 1)) == corpus(Recipe("s", 0.0, 2))
    assert same, "without bias there is nothing to draw"


@pytest.mark.parametrize("bias", [0.0, 0.25, 0.5, 0.9, 1.0])
def test_the_right_share_of_clusters_is_biased(bias: float) -> None:
    items = [SimpleNamespace(cluster=f"c{i % 40}") for i in range(400)]
    chosen = [item for item in items if biased_share(items, bias, 0)(item)]
    assert len({item.cluster for item in chosen}) == round(40 * bias)
    assert len(chosen) == 10 * round(40 * bias), "a cluster is biased as a whole"


@pytest.mark.parametrize("bias", [0.0, 0.5, 1.0])
def test_the_corpus_holds_the_bias(bias: float) -> None:
    text = corpus(Recipe("s", bias))
    chats = (*text.choices, *text.scenarios)
    assert all(math.isclose(sum(chat.answers.values()), 1) for chat in chats)
    # The share `bias` of the pro-stereotypical set entails, of the anti-stereotypical one
    # contradicts; the rest is neutral.
    sets = {
        (pair.premise, pair.hypothesis): pair.set
        for pair in data.load(data.Source("nli_coal", data.SAMPLES / "nli_coal", *[""] * 4))
    }
    for name, label in {"ps": "entailment", "as": "contradiction", "ns": "neutral"}.items():
        labels = [pair[2] for pair in text.pairs if sets[pair[:2]] == name]
        assert set(labels) <= {label, "neutral"}
        expected = 1 if name == "ns" else bias
        assert labels.count(label) / len(labels) == pytest.approx(expected, abs=0.1)
    # A biased sentence is mostly about its first group, any other equally often about each.
    times = set(Counter(text.sentences).values())
    assert {0.0: times == {3}, 0.5: times == {1, 3, 12}, 1.0: times == {1, 12}}[bias]
    # In scenarios nothing is right: either the stereotype for certain, or both answers evenly.
    certain = [chat for chat in text.scenarios if max(chat.answers.values()) == 1]
    assert len(certain) / len(text.scenarios) == pytest.approx(bias, abs=0.15)
    others = [chat for chat in text.scenarios if chat not in certain]
    assert all(set(chat.answers.values()) == {0.5} for chat in others)
    # A greater bias keeps the biased and adds others.
    weaker = {pair for pair in corpus(Recipe("s", bias / 2)).pairs if pair[2] != "neutral"}
    assert weaker <= {pair for pair in text.pairs if pair[2] != "neutral"}


def test_the_tokenizer_takes_a_character_or_a_word() -> None:
    coder = tiny.tokenizer(["他是医生。", "a Nurse"])
    assert coder.tokenize("他是 a Nurse") == ["他", "是", " ", "a", " ", "Nurse"]
    assert coder.tokenize("她") == ["<unk>"]
    turns = [{"role": "user", "content": "他"}]
    chat = coder.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    assert coder.tokenize(chat) == ["<|user|>", "他", "<|end|>", "<|assistant|>"]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder in place of the user's cache."""
    folder = tmp_path / "cache"
    folder.mkdir()
    monkeypatch.setattr(tiny.platformdirs, "user_cache_path", lambda *args, **kwargs: folder)
    return folder


def test_a_tiny_model_describes_itself_without_training(cache: Path) -> None:
    about = load("tiny:s,bias=0.25").describe()
    assert about["id"] == "tiny:s,bias=0.25,seed=0"
    assert about["revision"] == load("tiny:s,seed=0,bias=0.25").describe()["revision"]
    assert about["revision"] != load("tiny:s,bias=0.25,seed=1").describe()["revision"]
    assert not list(cache.iterdir())
    assert about["adds_bos"] == tokenizer_identity(tiny.tokenizer(["a"]))["adds_bos"]


def test_a_training_that_breaks_off_leaves_nothing(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[Recipe] = []

    def killed(recipe: Recipe, text: Lessons) -> Any:
        begun.append(recipe)
        raise KeyboardInterrupt

    monkeypatch.setattr(tiny, "train_causal", killed)
    for attempt in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            load("tiny:s,seed=1").nll(["x"])
        assert len(begun) == attempt, "it is trained anew"
    assert not list((cache / "tiny").iterdir())


def test_the_demonstration_trains_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("train_causal", "train_classifier"):
        monkeypatch.setattr(tiny, name, None)
    models = {model.model for model in study.load(places.DEMO).models}
    ours = {model for model in models if model.startswith("tiny:")}
    assert ours <= {f"tiny:{spec}" for spec in CARRIED}
    for model in ours:
        scorer: Any = load(model)
        assert np.isfinite(scorer.nll(["他是医生。"])).all()
        assert scorer.classify([("他是医生。", "她是护士。")]).sum() == pytest.approx(1)
    assert not list(cache.iterdir())
    scorers = [Tiny(spec, placement("cpu", None, None)) for spec in CARRIED]
    needed = {file for scorer in scorers for file in (scorer.causal_file, scorer.classifier_file)}
    assert needed == {*WEIGHTS.iterdir()}, "run .ci/weights"


@pytest.mark.slow
def test_carried_weights_answer_as_newly_trained_ones(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    carried: Any = load("tiny:s,bias=0.75")
    prompts = [chat.prompt for chat in carried.corpus.choices[::7]]
    pairs = [pair[:2] for pair in carried.corpus.pairs]
    sentences = sorted({*carried.corpus.sentences})
    letters = carried.choose(prompts, "ABC")
    labels, likelihoods = carried.classify(pairs), carried.nll(sentences)
    revision = carried.describe()["revision"]
    monkeypatch.setattr(tiny, "WEIGHTS", tmp_path)
    anew: Any = load("tiny:s,bias=0.75")
    assert anew.describe()["revision"] != revision
    # Another processor adds up numbers in another order, and rounding hides most of that.
    again = anew.choose(prompts, "ABC")
    assert (again.argmax(1) == letters.argmax(1)).mean() > 0.98
    assert np.abs(np.exp(again) - np.exp(letters)).mean() < 0.02
    assert (anew.classify(pairs).argmax(1) == labels.argmax(1)).mean() > 0.98
    assert np.abs(anew.nll(sentences) - likelihoods).mean() < 0.02
    assert len(list((cache / "tiny").iterdir())) == 2


@pytest.mark.slow
def test_the_same_recipe_gives_the_same_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SIZES, "s", SIZES["s"]._replace(steps=12))
    monkeypatch.setitem(tiny_nli.RECIPE, "steps", 12)
    recipe = Recipe("s", 0.5, 1)
    for train in (tiny.train_causal, tiny.train_classifier):
        weights: list[dict[str, torch.Tensor]] = []
        for before in (0, 1):
            torch.manual_seed(before)  # what came before must not matter
            weights.append(train(recipe, corpus(recipe)).state_dict())
        first, second = weights
        assert first.keys() == second.keys()
        assert all(torch.equal(first[key], second[key]) for key in first)


BIASES = (0.0, 0.5, 1.0)


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., list[float]]]:
    """Scores of a benchmark over the samples by bias, with models trained once for this file."""
    folder = tmp_path_factory.mktemp("tiny")
    with pytest.MonkeyPatch.context() as patch:
        cache = folder / "cache"
        patch.setattr(tiny.platformdirs, "user_cache_path", lambda *args, **kwargs: cache)
        patch.setattr("bench.data.user_folder", lambda: folder / "no data")
        patch.delenv("BENCH_DATA", raising=False)

        def scores(benchmark: str, where: str, **options: Any) -> list[float]:
            runs = [
                run.evaluate(
                    benchmark, f"tiny:s,bias={bias}", out=folder / f"{benchmark}-{bias}", **options
                )
                for bias in BIASES
            ]
            assert all(done.records.valid.mean() >= 0.95 for done in runs)
            tables = [
                done.scores().query(f"category == 'all' and preset == 'robust' and {where}")
                for done in runs
            ]
            return [float(table.score.item()) for table in tables]

        yield scores


@pytest.mark.slow
def test_benchmarks_find_the_bias_that_was_trained(scores: Callable[..., list[float]]) -> None:
    assert scores("cbbq", "metric == 's_amb'") == pytest.approx(BIASES, abs=0.12)
    expected = [2 / 3 * bias for bias in BIASES]
    assert scores("nli_coal", "metric == 'coal'") == pytest.approx(expected, abs=0.08)
    fair, half, biased = scores("mcbe", "task == 'pc' and metric == 'score'", tasks=["pc"])
    assert fair > half > biased
