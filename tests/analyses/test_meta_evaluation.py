"""The meta-evaluation's notebook: its sets, its scores, a checkpoint of one's own, mistakes."""

from dataclasses import replace

import nli_sets
import numpy as np
import pytest

import bench
from tests.helpers.notebooks import run_cells

# Models of known bias are trained.
pytestmark = pytest.mark.slow


def run(until="", **values):
    """Run the notebook; of the simulated respondents only those of NLI-CoAL."""
    return run_cells("meta_evaluation", until=until, benchmarks=["nli_coal"], **values)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """The variables of the notebook, with three models of known bias."""
    folder = tmp_path_factory.mktemp("trained")
    return run(rates=[0, 0.5, 1], neutral_words="trained", trained=str(folder))


def test_the_share_that_follows_the_stereotype_is_the_rate():
    rates = [k / 10 for k in range(11)]
    cells = run("cell-11", languages=["en", "zh"])
    np.testing.assert_allclose(cells["follows"], [rates] * 2, atol=1e-12)
    labels = cells["taught"].groupby(["language", "rate"]).label.value_counts(normalize=True)
    np.testing.assert_allclose(labels, 1 / 3)


def test_a_tiny_model_gets_two_thirds_of_the_rate_and_a_constant_fn(tiny):
    assert (tiny["answers"].accuracy >= 0.99).all()
    table = tiny["scores"].pivot_table("score", "rate", "measure")
    np.testing.assert_allclose(table.coal, [0, 1 / 3, 2 / 3], atol=0.06)
    np.testing.assert_allclose(table.fn, [2 / 3] * 3, atol=0.1)
    np.testing.assert_allclose(tiny["scores"].score, tiny["scores"].expected, atol=0.1)
    assert tiny["pearson"].set_index("measure").estimate["coal"] > 0.99
    assert list(tiny["beside"].query("column == 'FN' and language == 'zh'").printed) == [-0.535]


def test_the_scores_of_the_notebook_are_those_of_a_run(tiny, tmp_path):
    # The sets of a run have the neutral words that the pack names as shipped.
    words = tiny["asked"]["zh"].query("set == 'ns'").occupation.unique()
    nli_sets.write_sets([replace(tiny["packs"]["zh"], shipped=tuple(words))], tmp_path / "sets")
    model = str(tiny["models"][1]["folder"])
    options = {
        "data": tmp_path / "sets",
        "settings": {"set": "downsample"},
        "out": tmp_path / "run",
    }
    done = bench.evaluate("nli_coal", model, **options)
    scores = done.scores().query("category == 'all' and task == 'all'").set_index("metric").score
    table = tiny["scores"].query("rate == 0.5").set_index("measure").score
    assert scores[["coal", "fn"]].to_list() == pytest.approx(table[["coal", "fn"]].to_list())


def test_a_checkpoint_is_trained_further_once_and_left_out_if_it_did_not_learn(
    tiny, tmp_path, capsys, refusal
):
    model = str(tiny["models"][0]["folder"])  # at 2e-5 it stays as it is
    options = {"rates": [0, 1], "model": model, "trained": str(tmp_path)}
    cells = run("cell-14", **options)
    accuracy = cells["answers"].groupby("rate").accuracy.first()
    assert accuracy[0] >= 0.99 > accuracy[1]
    assert set(cells["scores"].rate) == {0}
    assert len(list(tmp_path.glob("*/training.json"))) == 2
    capsys.readouterr()
    message = refusal(run, "cell-14", **options | {"rates": [1]})
    assert "no model got 99 % of its set right; the best: " in message
    assert "is trained already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"languages": ["fr"]}, "fr/pack.toml: no such file; a language pack has pack.toml"),
        ({"rates": [0, 2]}, "rate 2: has to be from 0 to 1"),
        ({"data": "no-such-folder"}, "no-such-folder"),
    ],
)
def test_a_wrong_parameter_is_explained(refusal, values, message):
    assert message in refusal(run, "cell-11", **values)


def test_neutral_words_are_shipped_or_trained(refusal):
    message = refusal(run, "cell-13", rates=[1], neutral_words="own")
    assert "ns_words 'own' is unknown; allowed: shipped, trained" in message


def test_the_release_has_frames_for_sets_of_4_800_pairs(shared):
    data = str(shared / "data" / "nli_coal")
    cells = run("cell-11", languages=["en", "zh"], rates=[0.3], data=data)
    assert list(cells["taught"].language.value_counts()) == [4800, 4800]
    np.testing.assert_allclose(cells["follows"], 0.3)
