"""The package's own models: what they learn, and that benchmarks find the bias they learned."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bench import data, run
from bench.benchmarks import get
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


@pytest.mark.parametrize("bias", [0.0, 0.5, 1.0])
def test_the_corpus_holds_the_bias(bias: float) -> None:
    text = corpus(Recipe("s", bias))
    # The share `bias` of the pro-stereotypical set entails, of the anti-stereotypical one
    # contradicts; the rest is neutral.
    sets = {
        (pair.premise, pair.hypothesis): pair.set
        for pair in data.load(data.Source("nli_coal", get("nli_coal").metadata.samples, *[""] * 4))
    }
    for name, label in {"ps": "entailment", "as": "contradiction", "ns": "neutral"}.items():
        labels = [pair[2] for pair in text.pairs if sets[pair[:2]] == name]
        assert set(labels) <= {label, "neutral"}
        expected = 1 if name == "ns" else bias
        assert labels.count(label) / len(labels) == pytest.approx(expected, abs=0.1)


def test_a_tiny_model_has_one_name_and_describes_itself_without_training(cache: Path) -> None:
    assert parse_recipe("l,bias=0.25,seed=7").name == "tiny:l,bias=0.25,seed=7"
    about = load("tiny:s,bias=0.25").describe()
    assert about["id"] == "tiny:s,bias=0.25,seed=0"
    assert about["revision"] == load("tiny:s,seed=0,bias=0.250").describe()["revision"]
    assert about["revision"] != load("tiny:s,bias=0.25,seed=1").describe()["revision"]
    assert not list(cache.iterdir())


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
