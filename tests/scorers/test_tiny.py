"""The package's own models: what they learn, and that benchmarks find the bias they learned."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bench import data, run
from bench.core import places
from bench.report import study
from bench.scorers import load
from bench.scorers.local.device import placement
from bench.scorers.stand_ins import SIZES, Recipe, corpus, parse_recipe, tiny, tiny_nli
from bench.scorers.stand_ins.tiny import CARRIED, WEIGHTS, Tiny


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder in place of the user's cache."""
    folder = tmp_path / "cache"
    folder.mkdir()
    monkeypatch.setattr(tiny.platformdirs, "user_cache_path", lambda *args, **kwargs: folder)
    return folder


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("xl", "allowed: s, m, l"),
        ("s,colour=1", "allowed: bias, seed"),
        ("s,bias=x", "not a number"),
        ("s,seed=1.5", "not a number"),
        ("s,bias=1.1", "outside 0 to 1"),
        ("s,bias=nan", "outside 0 to 1"),
    ],
)
def test_a_wrong_recipe_is_refused(refusal: Any, spec: str, says: str) -> None:
    message = refusal(load, f"tiny:{spec}")
    assert message.startswith(f"model tiny:{spec}: ")
    assert says in message


@pytest.mark.parametrize("bias", [0.0, 0.5, 1.0])
def test_the_corpus_holds_the_bias(bias: float) -> None:
    text = corpus(Recipe("s", bias))
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
    # In scenarios nothing is right: either the stereotype for certain, or both answers evenly.
    likeliest = [max(chat.answers.values()) for chat in text.scenarios]
    assert set(likeliest) <= {0.5, 1}
    assert likeliest.count(1) / len(likeliest) == pytest.approx(bias, abs=0.15)
    # A greater bias keeps the biased and adds others.
    weaker = {pair for pair in corpus(Recipe("s", bias / 2)).pairs if pair[2] != "neutral"}
    assert weaker <= {pair for pair in text.pairs if pair[2] != "neutral"}


def test_a_tiny_model_has_one_name_and_describes_itself_without_training(cache: Path) -> None:
    assert parse_recipe("l,bias=0.25,seed=7").name == "tiny:l,bias=0.25,seed=7"
    about = load("tiny:s,bias=0.25").describe()
    assert about["id"] == "tiny:s,bias=0.25,seed=0"
    assert about["revision"] == load("tiny:s,seed=0,bias=0.250").describe()["revision"]
    assert about["revision"] != load("tiny:s,bias=0.25,seed=1").describe()["revision"]
    assert not list(cache.iterdir())


def test_a_training_that_breaks_off_leaves_nothing(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[Recipe] = []

    def killed(recipe: Recipe, text: Any) -> Any:
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
    for model in (name for name in models if name.startswith("tiny:")):
        assert model.removeprefix("tiny:") in CARRIED
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
    def answers() -> tuple[str, Any, Any]:
        scorer: Any = load("tiny:s,bias=0.75")
        letters = scorer.choose([chat.prompt for chat in scorer.corpus.choices[::7]], "ABC")
        labels = scorer.classify([pair[:2] for pair in scorer.corpus.pairs])
        return scorer.describe()["revision"], letters, labels

    revision, letters, labels = answers()
    monkeypatch.setattr(tiny, "WEIGHTS", tmp_path)
    other, again, relabelled = answers()
    assert other != revision
    # Another processor adds up numbers in another order, and rounding hides most of that.
    assert (again.argmax(1) == letters.argmax(1)).mean() > 0.98
    assert np.abs(np.exp(again) - np.exp(letters)).mean() < 0.02
    assert (relabelled.argmax(1) == labels.argmax(1)).mean() > 0.98
    assert len(list((cache / "tiny").iterdir())) == 2


@pytest.mark.slow
def test_the_same_recipe_gives_the_same_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SIZES, "s", SIZES["s"]._replace(steps=12))
    monkeypatch.setitem(tiny_nli.RECIPE, "steps", 12)
    recipe = Recipe("s", 0.5, 1)
    for train in (tiny.train_causal, tiny.train_classifier):
        weights = []
        for before in (0, 1):
            torch.manual_seed(before)  # what came before must not matter
            weights.append(train(recipe, corpus(recipe)).state_dict())
        first, second = weights
        assert first.keys() == second.keys()
        assert all(torch.equal(first[key], second[key]) for key in first)


@pytest.mark.slow
def test_benchmarks_find_the_bias_that_was_trained(own_folder: Path, cache: Path) -> None:
    biases = (0.0, 0.5, 1.0)

    def scores(benchmark: str, where: str, **options: Any) -> list[float]:
        found = []
        for bias in biases:
            model, out = f"tiny:s,bias={bias}", f"{benchmark}-{bias}"
            done = run.evaluate(benchmark, model, out=out, **options)
            assert done.records.valid.mean() >= 0.95
            table = done.scores().query(f"category == 'all' and preset == 'robust' and {where}")
            found.append(float(table.score.item()))
        return found

    assert scores("cbbq", "metric == 's_amb'") == pytest.approx(biases, abs=0.12)
    expected = [2 / 3 * bias for bias in biases]
    assert scores("nli_coal", "metric == 'coal'") == pytest.approx(expected, abs=0.08)
    fair, half, biased = scores("mcbe", "task == 'pc' and metric == 'score'", tasks=["pc"])
    assert fair > half > biased
