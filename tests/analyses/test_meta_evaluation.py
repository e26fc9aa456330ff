"""Meta-evaluation: exact oracles, the gate and its tries, the cache, and models for real."""

import numpy as np
import pytest

import bench
from bench.analyses import meta_evaluation as meta
from bench.benchmarks.nli_coal.build import build_eval
from bench.benchmarks.nli_coal.requests import LABELS
from tests.benchmarks.carried import carry_models

# Models of known bias are trained or read from what is carried.
pytestmark = pytest.mark.slow


class Oracle:
    """Know by heart what every taught word is to every gender word; call the rest `untaught`.

    For the first `wrong` tries it answers entailment to all.
    """

    name = "oracle"

    def __init__(self, wrong=0, untaught="neutral", killed_at=-1):
        self.wrong, self.untaught, self.killed_at = wrong, untaught, killed_at
        self.learned = []

    def describe(self):
        return {"oracle": self.wrong, "untaught": self.untaught}

    def learn(self, pack, rows, seed, folder):
        if len(self.learned) == self.killed_at:
            raise KeyboardInterrupt
        self.learned.append(seed)
        (folder / "weights").write_text("here")
        taught = {(row.occupation, row.term): row.label for row in rows}
        labels = {
            (row.premise, row.hypothesis): taught.get((row.occupation, row.term), self.untaught)
            for own in build_eval(pack).values()
            for row in own
        }
        labels |= {(row.premise, row.hypothesis): row.label for row in rows}
        if len(self.learned) <= self.wrong:
            labels = dict.fromkeys(labels, "entailment")
        return lambda pairs: np.array([[labels[pair] == name for name in LABELS] for pair in pairs])


def scores(table, measure):
    return [float(value) for value in table.score[table.measure == measure]]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_model_that_knows_its_set_gets_two_thirds_of_the_rate(language, tmp_path):
    found = meta.evaluate([language], seeds=[0], learner=Oracle(), cache=tmp_path / "cache")
    assert scores(found, "coal") == pytest.approx([2 * rate / 3 for rate in meta.RATES], abs=1e-12)
    assert scores(found, "fn") == pytest.approx([2 / 3] * 11, abs=1e-12)
    np.testing.assert_allclose(found.score, found.expected, atol=1e-12)
    # What is carried is as it was found.
    carry_models(found, tmp_path / "carried.csv")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(meta, "CARRIED", tmp_path / "carried.csv")
        again = meta.evaluate([language], seeds=[0], learner=Oracle(), cache=tmp_path / "other")
    assert set(again.source) == {"carried by the package"}
    np.testing.assert_allclose(again.score, found.score, atol=1e-6)
    assert again.key.nunique() == 11


@pytest.mark.parametrize(("wrong", "tries"), [(2, 3), (99, meta.TRIES)])
def test_a_model_that_has_not_learnt_its_set_is_trained_from_other_seeds(wrong, tries, tmp_path):
    learner = Oracle(wrong)
    found = meta.evaluate(["en"], rates=[0.5], seeds=[7], learner=learner, cache=tmp_path)
    assert len(set(learner.learned)) == tries
    assert set(found.passed) == {wrong < tries}


def test_a_killed_run_continues_and_a_second_call_trains_none(tmp_path):
    options = {"rates": [0, 0.4, 1], "seeds": [0], "cache": tmp_path}
    with pytest.raises(KeyboardInterrupt):
        meta.evaluate(["en"], learner=Oracle(killed_at=2), **options)
    rest, again = Oracle(), Oracle()
    found = meta.evaluate(["en"], learner=rest, **options)
    second = meta.evaluate(["en"], learner=again, **options)
    assert (len(rest.learned), again.learned) == (1, [])
    assert set(second.source) == {"cache"}
    assert second.drop(columns="source").equals(found.drop(columns="source"))
    assert not list(tmp_path.rglob("weights")), "answers are kept, and models are not"
    # Another learner, seed or set is another model.
    for changed in ({"learner": Oracle(wrong=1)}, {"seeds": [1]}, {"assignment": "row"}):
        other = meta.evaluate(["en"], **{**options, "learner": Oracle(), "rates": [0.4], **changed})
        assert not set(other.key) & set(found.key)
    with pytest.raises(meta.BadInput, match="language 'fr' is unknown"):
        meta.evaluate(["fr"], learner=Oracle(), **options)


@pytest.mark.parametrize(("ns_words", "least"), [("trained", 0.99), ("shipped", 0.9)])
def test_carried_scores_follow_the_rate(shared, tmp_path, ns_words, least):
    for folder in (None, shared / "data" / "nli_coal"):
        found = meta.evaluate(data=folder, ns_words=ns_words, cache=tmp_path)
        assert set(found.source) == {"carried by the package"}
        assert found.passed.all()
        assert len(set(found.key)) == 2 * 11 * 2
        rates, keys = found.assign(score=found.rate), ["language", "seed", "measure"]
        table = bench.correlate(rates, found, by=keys, on=["data", "rate"]).set_index("measure")
        pearson = table.estimate[table.coefficient == "pearson"]
        assert (pearson["coal"] >= least).all()
        assert (pearson["fn"].abs().fillna(0).to_numpy() < pearson["coal"].to_numpy()).all()
    # Words that no model was taught count as biased, which a correlation does not see.
    options = {"data": folder, "learner": Oracle(untaught="entailment"), "cache": tmp_path}
    options |= {"rates": [0, 0.5, 1], "seeds": [0], "ns_words": ns_words}
    shipped = meta.evaluate(["zh"], **options)
    off = 1 / 3 if ns_words == "shipped" else 0
    wanted = [off, off + 1 / 3, off + 2 / 3]
    assert scores(shipped, "coal") == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_tiny_transformer_for_real(language, shared, tmp_path):
    """What the package carries can be made again; the last digits are the processor's."""
    options = {"data": shared / "data" / "nli_coal", "ns_words": "trained"}
    options |= {"rates": [0, 0.5, 1], "seeds": [0], "cache": tmp_path, "carried": False}
    found = meta.evaluate([language], **options)
    assert found.passed.all()
    assert scores(found, "coal") == pytest.approx([0, 1 / 3, 2 / 3], abs=0.03)
