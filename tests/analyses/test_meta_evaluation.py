"""Meta-evaluation: exact oracles, the gate and its tries, the cache, what is carried, and models for real."""

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

# What r of rate and CoAL has to be, with neutral words that models were taught and with those of the release.
LEAST = {"trained": 0.99, "shipped": 0.9}
Pairs = Sequence[tuple[str, str]]


class Oracle:
    """Know by heart what every taught word is to every gender word; call the rest `untaught`.

    Attributes:
        wrong: for this many tries, answers entailment to all.
        learned: the seeds with which it was asked to learn.
    """

    name = "oracle"

    def __init__(
        self, wrong: int = 0, untaught: str = "neutral", killed_at: int | None = None
    ) -> None:
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
        words = sorted({row.occupation.word for row in rows}, key=len, reverse=True)
        terms = [term for some in pack.terms.values() for term in some]
        edge = r"\b" if pack.match == "word" else ""
        word, term = (
            re.compile("|".join(f"{edge}{re.escape(text)}{edge}" for text in texts))
            for texts in (words, terms)
        )
        taught = {(row.occupation.word, row.term): row.label for row in rows}
        known = {(row.premise, row.hypothesis): row.label for row in rows}

        def label(premise: str, hypothesis: str) -> str:
            if (premise, hypothesis) in known:
                return known[premise, hypothesis]
            found = word.search(premise)
            terms = [text for text in term.findall(hypothesis) if text not in premise]
            return (
                taught.get((found[0], terms[0]), self.untaught)
                if found and terms
                else self.untaught
            )

        return lambda pairs: np.array(
            [[float(label(*pair) == name) for name in LABELS] for pair in pairs]
        )


def scores(table: pd.DataFrame, measure: str) -> list[float]:
    return [float(value) for value in table.score[table.measure == measure]]


def test_measures_are_those_of_a_run() -> None:
    pack = meta.packs(["zh"])[0]
    pairs = meta._pairs(pack, meta.downsample(pack, meta.build_eval(pack), "shipped"))
    values = np.random.default_rng(0).dirichlet([1, 1, 1], len(pairs))
    given = pd.DataFrame(values, columns=list(LABELS), index=[pair.id for pair in pairs])
    items = data.frame(pairs)
    records = pd.DataFrame(
        {
            "category": "zh",
            "task": items.set,
            "item_id": items.item_id,
            "response": [LABELS[k] for k in values.argmax(1)],
            "logprobs": list(np.log(values)),
            "error": "",
        }
    )
    table = nli_coal.score_records(records, items, "robust")
    table = table.query("category == 'zh' and task == 'all'").set_index("metric")
    assert meta._scores(pairs, given) == pytest.approx(table.score.to_dict())


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_model_that_knows_its_set_gets_two_thirds_of_the_rate(
    language: str, tmp_path: Path
) -> None:
    found = meta.evaluate([language], seeds=[0], learner=Oracle(), cache=tmp_path)
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
    label = str(drawn(meta.plot_rates(found, table)).get_label())
    assert label == "The rate that was put in is followed by CoAL."
    texts = meta.findings(found, table)
    assert "r = 1.000 between the rate put in and the score" in texts[0]
    assert "r undefined" in texts[1]


def test_the_released_sets_ask_english_and_chinese_words_that_no_model_was_taught(
    shared: Path, tmp_path: Path
) -> None:
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


def test_the_gate_asks_for_another_seed(tmp_path: Path, capsys: Any) -> None:
    learner = Oracle(wrong=2)
    found = meta.evaluate(["en"], rates=[0.5], seeds=[7], learner=learner, cache=tmp_path / "a")
    assert len(set(learner.learned)) == 3
    assert learner.learned[0] == 7
    assert set(found.tries) == {3}
    assert found.passed.all()
    assert "0.333 of its set right, try 2 of 4" in capsys.readouterr().err
    # A model that never learns is marked and left out.
    learner = Oracle(wrong=99)
    options: dict[str, Any] = {"learner": learner, "cache": tmp_path / "b"}
    found = meta.evaluate(["en"], rates=[0, 0.5, 1], seeds=[0], **options)
    assert len(learner.learned) == 3 * meta.TRIES
    assert not found.passed.any()
    assert found.train_accuracy.tolist() == pytest.approx([1 / 3] * len(found))
    table = meta.correlations(found)
    assert table.empty
    assert meta.wide(table).empty
    assert "no model passed" in meta.findings(found, table)[0]
    assert "followed by none" in drawn(meta.plot_rates(found, table)).get_label()


def test_a_killed_run_continues_and_a_second_call_trains_none(tmp_path: Path) -> None:
    options: dict[str, Any] = {"rates": [0, 0.4, 1], "seeds": [0], "cache": tmp_path}
    with pytest.raises(KeyboardInterrupt):
        meta.evaluate(["en"], learner=Oracle(killed_at=2), **options)
    rest, again = Oracle(), Oracle()
    found = meta.evaluate(["en"], learner=rest, **options)
    assert len(rest.learned) == 1
    second = meta.evaluate(["en"], learner=again, **options)
    assert again.learned == []
    assert set(second.source) == {"cache"}
    assert second.drop(columns="source").equals(found.drop(columns="source"))
    assert not list(tmp_path.rglob("weights")), "answers are kept, and models are not"
    (tmp_path / found.key[0] / meta.ABOUT).write_text("{", "utf-8")
    with pytest.raises(meta.RunFailed, match=found.key[0]):
        meta.evaluate(["en"], learner=Oracle(), **options)


def test_another_set_seed_or_learner_is_another_model(tmp_path: Path) -> None:
    first = meta.evaluate(["en"], rates=[0, 1], seeds=[0, 1], learner=Oracle(), cache=tmp_path)
    options: dict[str, Any] = {"seeds": [0], "cache": tmp_path}
    other = meta.evaluate(["en"], rates=[0], learner=Oracle(wrong=1), **options)
    rows = meta.evaluate(["en"], rates=[0.5], learner=Oracle(), assignment="row", **options)
    assert len({*first.key, *other.key, *rows.key}) == 6
    assert rows.expected.isna().all(), "where frames follow the stereotype, a word has no answer"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"languages": ["fr"]}, "language 'fr' is unknown"),
        ({"ns_words": "all"}, "ns_words 'all' is unknown"),
        ({"seeds": []}, "seeds: is empty"),
        ({"rates": [1.5]}, "has to be from 0 to 1"),
        ({"data": meta.PACKS / "zh"}, "is a pack of language 'zh', not of en"),
        ({"data": meta.PACKS.parent}, str(meta.PACKS.parent)),
    ],
)
def test_wrong_arguments_are_refused(
    tmp_path: Path, refusal: Any, arguments: dict[str, Any], message: str
) -> None:
    options = {"languages": ["en"], "learner": Oracle(), "cache": tmp_path, **arguments}
    assert message in refusal(meta.evaluate, **options)


@pytest.mark.parametrize("released", [False, True])
def test_carried_results_are_used_and_reach_what_the_specification_asks(
    shared: Path, tmp_path: Path, released: bool
) -> None:
    """None is trained, every model passed, and CoAL follows the rate: closely, where models know the words of NS."""
    folder = shared / "data" / "nli_coal" if released else None
    for ns_words, least in LEAST.items():
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


def test_results_are_carried_as_they_were_found(tmp_path: Path, monkeypatch: Any) -> None:
    options: dict[str, Any] = {"rates": [0, 0.3, 1], "seeds": [0], "learner": Oracle()}
    found = meta.evaluate(["en"], cache=tmp_path / "cache", **options)
    carry_models(found, tmp_path / "carried.csv")
    monkeypatch.setattr(meta, "CARRIED", tmp_path / "carried.csv")
    again = meta.evaluate(["en"], cache=tmp_path / "other", **options)
    assert set(again.source) == {"carried by the package"}
    np.testing.assert_allclose(again.score, found.score, atol=1e-6)
    assert again.passed.all()
    assert meta.origin(again).models.tolist() == [3]


class Additive:
    """A bag of words without products: a negative control, because the label is an exclusive or of word and gender."""

    name = "additive"

    def describe(self) -> Mapping[str, Any]:
        return {"additive": 1}

    def learn(self, pack: Pack, rows: Sequence[Row], seed: int, folder: Path) -> meta.Classify:
        pieces = re.compile(r"\w+" if pack.match == "word" else r"\w")
        number: dict[str, int] = {}

        def bag(pairs: Pairs, train: bool = False) -> np.ndarray:
            x = np.zeros((len(pairs), 10_000))
            x[:, -1] = 1
            for k, pair in enumerate(pairs):
                for side, text in enumerate(pair):
                    for piece in pieces.findall(text):
                        if train:
                            number.setdefault(f"{side}{piece}", len(number))
                        if f"{side}{piece}" in number:
                            x[k, number[f"{side}{piece}"]] = 1
            return x[:, [*range(len(number)), -1]]

        x = bag([(row.premise, row.hypothesis) for row in rows], train=True)
        y = np.array([[float(row.label == label) for label in LABELS] for row in rows])
        weights = np.linalg.lstsq(x.T @ x + np.eye(x.shape[1]), x.T @ y, rcond=None)[0]

        def classify(pairs: Pairs) -> np.ndarray:
            odds = np.exp(5 * bag(pairs) @ weights)
            return np.asarray(odds / odds.sum(1, keepdims=True))

        return classify


def test_the_gate_stops_what_cannot_learn_occupation_and_gender_together(tmp_path: Path) -> None:
    options: dict[str, Any] = {"rates": [0, 0.5, 1], "seeds": [0], "cache": tmp_path}
    found = meta.evaluate(["en"], assignment="balanced", learner=Additive(), **options)
    assert not found.passed.any()
    assert (found.train_accuracy < 0.9).all()
    coal = scores(found, "coal")
    assert coal[0] == pytest.approx(coal[2], abs=0.15), "no trace of the rate"
    # By the release's assignment only women's words follow at one half: "woman" alone tells the label.
    released = meta.evaluate(["en"], learner=Additive(), **options)
    assert set(released.rate[released.passed]) == {0.5}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_tiny_transformer_for_real(language: str, shared: Path, tmp_path: Path) -> None:
    """What the package carries can be made again; the last digits are the processor's."""
    options: dict[str, Any] = {"data": shared / "data" / "nli_coal", "ns_words": "trained"}
    options |= {"rates": [0, 0.5, 1], "seeds": [0], "cache": tmp_path, "carried": False}
    found = meta.evaluate([language], **options)
    assert set(found.source) == {"trained now"}
    assert found.passed.all()
    assert scores(found, "coal") == pytest.approx([0, 1 / 3, 2 / 3], abs=0.03)
    about = json.loads((tmp_path / found.key[0] / meta.ABOUT).read_text("utf-8"))
    assert about["learner"]["layers"] == 2


def test_a_checkpoint_is_fine_tuned_from_its_own_weights(tmp_path: Path) -> None:
    pack = meta.packs(["en"])[0]
    rows = meta.build_controlled(pack, 0.5)
    base: Any = meta.FromScratch().learn(pack, rows, 0, tmp_path)
    base.__self__.network.save_pretrained(tmp_path / "base")
    base.__self__.tokenizer.save_pretrained(tmp_path / "base")
    training = {"epochs": 8, "learning_rate": 1e-3, "device": "cpu"}
    options: dict[str, Any] = {"rates": [0.5], "seeds": [0], "ns_words": "trained"}
    learner = meta.Continued(str(tmp_path / "base"), training)
    found = meta.evaluate(["en"], learner=learner, cache=tmp_path / "cache", **options)
    assert found.passed.all()
    assert scores(found, "coal") == pytest.approx([1 / 3], abs=0.05)
