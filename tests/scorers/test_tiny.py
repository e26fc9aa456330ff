"""The small models that the package carries: their text holds a bias, and benchmarks find it."""

import pytest

from bench import data, run
from bench.benchmarks import get
from bench.core import places
from bench.report import study
from bench.scorers.stand_ins.tiny import CARRIED, WEIGHTS, full_name
from tests.benchmarks.tiny_models import lessons


@pytest.mark.parametrize("bias", [0.0, 0.5, 1.0])
def test_the_text_of_the_training_holds_the_bias(bias):
    text = lessons(bias)
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


def test_the_package_carries_the_models_of_the_demonstration():
    needed = {full_name(spec) for spec in CARRIED}
    needed |= {f"classifier,{name.partition(',')[2]}" for name in needed}
    assert {folder.name for folder in WEIGHTS.iterdir()} == needed
    models = {model.model for model in study.load(places.DEMO).models}
    assert {name.removeprefix("tiny:") for name in models if name.startswith("tiny:")} <= {*CARRIED}


@pytest.mark.slow
def test_benchmarks_find_the_bias_of_the_training(own_folder):
    biases = (0.25, 0.5, 0.75)

    def scores(benchmark, where, **options):
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
