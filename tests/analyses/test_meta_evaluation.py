"""Meta-evaluation: exact oracles, the gate and its tries, the cache, and models for real."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bench import data
from bench.analyses import meta_evaluation as meta
from bench.data.nli_coal.build import Row
from bench.data.nli_coal.language_pack import Pack
from bench.metrics import nli_coal
from bench.tasks.nli_coal import LABELS
from tests.benchmarks.carried import carry_models
from tests.helpers.drawing import drawn

# Models of known bias are trained or read from what is carried.
pytestmark = pytest.mark.slow


class Oracle:
    """Know by heart what every taught word is to every gender word; call the rest `untaught`.

    Attributes:
        wrong: for this many tries, answers entailment to all.
        learned: the seeds with which it was asked to learn.
    """

    name = "oracle"

    def __init__(self, wrong: int = 0, untaught: str = "neutral", killed_at: int = -1) -> None:
        self.wrong, self.untaught, self.killed_at = wrong, untaught, killed_at
        self.learned: list[int] = []

    def describe(self) -> Mapping[str, Any]:
        return {"oracle": self.wrong, "untaught": self.untaught}

    def learn(self, pack: Pack, rows: Sequence[Row], seed: int, folder: Path) -> meta.Classify:
        if len(self.learned) == self.killed_at:
            raise KeyboardInterrupt
        self.learned.append(seed)
        (folder / "weights").write_text("here")
        if len(self.learned) <= self.wrong:
            return lambda pairs: np.tile([1.0, 0, 0], (len(pairs), 1))
        edge = r"\b" if pack.match == "word" else ""

        def any_of(texts: Sequence[str]) -> re.Pattern[str]:
            return re.compile("|".join(f"{edge}{re.escape(text)}{edge}" for text in texts))

        words = {row.occupation.word for row in rows}
        word = any_of(sorted(words, key=len, reverse=True))
        term = any_of([term for some in pack.terms.values() for term in some])
        taught = {(row.occupation.word, row.term): row.label for row in rows}
        known = {(row.premise, row.hypothesis): row.label for row in rows}

        def label(premise: str, hypothesis: str) -> str:
            found = word.search(premise)
            terms = [text for text in term.findall(hypothesis) if text not in premise]
            both = (found[0], terms[0]) if found and terms else ("", "")
            return known.get((premise, hypothesis)) or taught.get(both, self.untaught)

        return lambda pairs: np.array([[label(*pair) == name for name in LABELS] for pair in pairs])


def scores(table: pd.DataFrame, measure: str) -> list[float]:
    return [float(value) for value in table.score[table.measure == measure]]


def test_measures_are_those_of_a_run() -> None:
    pack = meta.packs(["zh"])[0]
    pairs = meta._pairs(pack, meta.downsample(pack, meta.build_eval(pack), "shipped"))
    values = np.random.default_rng(0).dirichlet([1, 1, 1], len(pairs))
    given = pd.DataFrame(values, columns=list(LABELS), index=[pair.id for pair in pairs])
    items = data.frame(pairs)
    said = {"response": [LABELS[k] for k in values.argmax(1)], "logprobs": list(np.log(values))}
    asked = {"category": "zh", "task": items.set, "item_id": items.item_id, "error": ""}
    table = nli_coal.score_records(pd.DataFrame({**asked, **said}), items, "robust")
    table = table.query("category == 'zh' and task == 'all'").set_index("metric")
    assert meta._scores(pairs, given) == pytest.approx(table.score.to_dict())


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_model_that_knows_its_set_gets_two_thirds_of_the_rate(
    language: str, tmp_path: Path
) -> None:
    found = meta.evaluate([language], seeds=[0], learner=Oracle(), cache=tmp_path / "cache")
    assert scores(found, "coal") == pytest.approx([2 * rate / 3 for rate in meta.RATES], abs=1e-12)
    assert scores(found, "fn") == pytest.approx([2 / 3] * 11, abs=1e-12)
    np.testing.assert_allclose(found.score, found.expected, atol=1e-12)
    table = meta.correlations(found)
    coal = table[table.measure == "coal"].set_index("coefficient")
    assert coal.value.tolist() == pytest.approx([1, 1, 1])
    assert (coal.p < 1e-6).all()
    fn = table[table.measure == "fn"]
    assert fn.value.isna().all()
    assert fn.reason.str.contains("the score is 0.667 at every point").all()
    wide = meta.wide(table).set_index("measure")
    assert (wide.n == 11).all()
    assert wide.pearson["coal"] == pytest.approx(1)
    drawn(meta.plot_rates(found, table))
    # What is carried is as it was found.
    carry_models(found, tmp_path / "carried.csv")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(meta, "CARRIED", tmp_path / "carried.csv")
        again = meta.evaluate([language], seeds=[0], learner=Oracle(), cache=tmp_path / "other")
    assert set(again.source) == {"carried by the package"}
    np.testing.assert_allclose(again.score, found.score, atol=1e-6)
    assert meta.origin(again).models.tolist() == [11]


def test_the_released_sets_ask_words_that_no_model_was_taught(shared: Path, tmp_path: Path) -> None:
    folder = shared / "data" / "nli_coal"
    frames = [meta.training_frames(pack) for pack in meta.packs(["en", "zh"], folder)]
    assert frames == [(330, 80)] * 2
    options: dict[str, Any] = {"data": folder, "rates": [0, 0.5, 1], "seeds": [0]}
    options |= {"cache": tmp_path, "learner": Oracle(untaught="entailment")}
    trained = meta.evaluate(["zh"], ns_words="trained", **options)
    assert scores(trained, "coal") == pytest.approx([0, 1 / 3, 2 / 3], abs=1e-12)
    shipped = meta.evaluate(["zh"], ns_words="shipped", **options)
    assert scores(shipped, "coal") == pytest.approx([1 / 3, 2 / 3, 1], abs=1e-12)
    assert scores(shipped, "fn") == pytest.approx([1, 1, 1])
    off = meta.correlations(shipped, ["coal"]).off
    assert off.tolist() == pytest.approx([1 / 3] * 3), "what a correlation does not see"
    assert set(shipped.source) == {"cache"}, "the same models were asked both lists of words"


def test_the_gate_asks_for_another_seed(tmp_path: Path) -> None:
    learner = Oracle(wrong=2)
    found = meta.evaluate(["en"], rates=[0.5], seeds=[7], learner=learner, cache=tmp_path / "a")
    assert len(set(learner.learned)) == 3
    assert learner.learned[0] == 7
    assert set(found.tries) == {3}
    assert found.passed.all()
    # A model that never learns is marked and left out.
    learner = Oracle(wrong=99)
    options: dict[str, Any] = {"learner": learner, "cache": tmp_path / "b"}
    found = meta.evaluate(["en"], rates=[0, 1], seeds=[0], **options)
    assert len(learner.learned) == 2 * meta.TRIES
    assert not found.passed.any()
    assert found.train_accuracy.tolist() == pytest.approx([1 / 3] * len(found))
    table = meta.correlations(found)
    assert table.empty
    assert "no model passed" in meta.findings(found, table)[0]


def test_a_killed_run_continues_and_a_second_call_trains_none(tmp_path: Path) -> None:
    options: dict[str, Any] = {"rates": [0, 0.4, 1], "seeds": [0], "cache": tmp_path}
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
    (tmp_path / found.key[0] / meta.ABOUT).write_text("{", "utf-8")
    with pytest.raises(meta.RunFailed, match=found.key[0]):
        meta.evaluate(["en"], learner=Oracle(), **options)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"languages": ["fr"]}, "language 'fr' is unknown"),
        ({"ns_words": "all"}, "ns_words 'all' is unknown"),
        ({"seeds": []}, "seeds: is empty"),
        ({"rates": [1.5]}, "has to be from 0 to 1"),
        ({"data": meta.PACKS / "zh"}, "is a pack of language 'zh', not of en"),
    ],
)
def test_wrong_arguments_are_refused(
    tmp_path: Path, refusal: Any, arguments: dict[str, Any], message: str
) -> None:
    options = {"languages": ["en"], "learner": Oracle(), "cache": tmp_path, **arguments}
    assert message in refusal(meta.evaluate, **options)


@pytest.mark.parametrize("released", [False, True])
@pytest.mark.parametrize(("ns_words", "least"), [("trained", 0.99), ("shipped", 0.9)])
def test_carried_scores_follow_the_rate(
    shared: Path, tmp_path: Path, released: bool, ns_words: str, least: float
) -> None:
    """Closely, where models know the neutral words that they are asked."""
    folder = shared / "data" / "nli_coal" if released else None
    found = meta.evaluate(data=folder, ns_words=ns_words, cache=tmp_path)
    assert set(found.source) == {"carried by the package"}
    assert not list(tmp_path.iterdir())
    assert found.passed.all()
    assert len(set(found.key)) == 2 * 11 * 2
    table = meta.correlations(found, ["coal", "fn"]).query("coefficient == 'pearson'")
    coal, fn = (table[table.measure == name] for name in ("coal", "fn"))
    assert set(coal.n) == {11, 22}
    assert (coal.value >= least).all()
    assert (fn.value.abs().fillna(0).to_numpy() < coal.value.to_numpy()).all()
    if not released:
        # Words that no set teaches count as biased, and lift every score.
        assert (coal.off.max() < 0.01) if ns_words == "trained" else (coal.off.min() > 0.1)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_tiny_transformer_for_real(language: str, shared: Path, tmp_path: Path) -> None:
    """What the package carries can be made again; the last digits are the processor's."""
    options: dict[str, Any] = {"data": shared / "data" / "nli_coal", "ns_words": "trained"}
    options |= {"rates": [0, 0.5, 1], "seeds": [0], "cache": tmp_path, "carried": False}
    found = meta.evaluate([language], **options)
    assert found.passed.all()
    assert scores(found, "coal") == pytest.approx([0, 1 / 3, 2 / 3], abs=0.03)
    about = json.loads((tmp_path / found.key[0] / meta.ABOUT).read_text("utf-8"))
    assert about["learner"]["layers"] == 2


def test_a_checkpoint_is_fine_tuned_from_its_own_weights(tmp_path: Path) -> None:
    pack = meta.packs(["en"])[0]
    base: Any = meta.FromScratch().learn(pack, meta.build_controlled(pack, 0.5), 0, tmp_path)
    base.__self__.network.save_pretrained(tmp_path / "base")
    base.__self__.tokenizer.save_pretrained(tmp_path / "base")
    training = {"epochs": 8, "learning_rate": 1e-3, "device": "cpu"}
    options: dict[str, Any] = {"rates": [0.5], "seeds": [0], "ns_words": "trained"}
    options["learner"] = meta.Continued(str(tmp_path / "base"), training)
    found = meta.evaluate(["en"], cache=tmp_path / "cache", **options)
    assert found.passed.all()
    assert scores(found, "coal") == pytest.approx([1 / 3], abs=0.05)
