"""The small models that the package carries: their text holds a bias, and benchmarks find it."""

import pytest

from bench import run


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
