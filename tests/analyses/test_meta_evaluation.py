"""Meta-evaluation: exact oracles, the gate and its tries, what is kept and continued, what is carried, and models for real."""

import json
import math
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

# Models of known bias are trained or read from what is carried.
pytestmark = pytest.mark.slow

# What r of rate and CoAL has to be, with neutral words that models were taught and with those of the release.
LEAST = {"trained": 0.99, "shipped": 0.9}


class Oracle:
    """Knows by heart what every taught word is to every gender word, and calls the rest neutral.

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

    def learn(self, pack: Pack, rows: Sequence[Row], seed: int, folder: Path) -> "Oracle":
        if len(self.learned) == self.killed_at:
            raise KeyboardInterrupt
        self.learned.append(seed)
        assert folder.is_dir()
        (folder / "weights").write_text("here")
        words = sorted({row.occupation.word for row in rows}, key=len, reverse=True)
        terms = [term for some in pack.terms.values() for term in some]
        edge = r"\b" if pack.match == "word" else ""
        self.word, self.term = (
            re.compile("|".join(f"{edge}{re.escape(one)}{edge}" for one in some))
            for some in (words, terms)
        )
        self.said = {(row.occupation.word, row.term): row.label for row in rows}
        self.known = {(row.premise, row.hypothesis): row.label for row in rows}
        return self

    def classify(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        if len(self.learned) <= self.wrong:
            return np.tile([1.0, 0, 0], (len(pairs), 1))
        return np.array(
            [[float(self._label(*pair) == label) for label in LABELS] for pair in pairs]
        )

    def _label(self, premise: str, hypothesis: str) -> str:
        if (premise, hypothesis) in self.known:
            return self.known[premise, hypothesis]
        word = self.word.search(premise)
        found = [term for term in self.term.findall(hypothesis) if word and term not in premise]
        return (
            self.said.get((word[0], found[0]), self.untaught) if word and found else self.untaught
        )


def test_measures_are_those_of_a_run(tmp_path: Path) -> None:
    cell = next(iter(meta._cells(meta.packs(["zh"])[0], [0.5], [0], Oracle(), "word")))
    pairs = cell.asked["shipped"]
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
    table = nli_coal.score_records(records, items, "robust").query(
        "category == 'zh' and task == 'all'"
    )
    assert meta._scores(pairs, given) == pytest.approx(
        dict(zip(table.metric, table.score, strict=True))
    )


def scores(found: Any, measure: str) -> list[float]:
    return [float(value) for value in found.score[found.measure == measure]]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_model_that_knows_its_set_gets_two_thirds_of_the_rate(
    language: str, tmp_path: Path
) -> None:
    found = meta.evaluate([language], seeds=[0], learner=Oracle(), cache=tmp_path)
    assert scores(found, "coal") == pytest.approx([2 * rate / 3 for rate in meta.RATES], abs=1e-12)
    assert scores(found, "fn") == pytest.approx([2 / 3] * 11, abs=1e-12)
    np.testing.assert_allclose(found.score, found.expected, atol=1e-12)
    table = meta.correlations(found)
    assert set(table.n) == {11}
    coal = table[table.measure == "coal"].set_index("coefficient")
    assert coal.value.tolist() == pytest.approx([1, 1, 1])
    assert (coal.p < 1e-6).all()
    fn = table[table.measure == "fn"]
    assert fn.value.isna().all()
    assert fn.reason.str.contains("the score is 0.667 at every point").all()
    assert (meta.wide(table).n == 11).all()


def test_the_released_sets_ask_english_and_chinese_words_that_no_model_was_taught(
    shared: Path, tmp_path: Path
) -> None:
    options: dict[str, Any] = {
        "data": shared / "data" / "nli_coal",
        "rates": [0, 0.5, 1],
        "seeds": [0],
        "cache": tmp_path,
    }
    assert [meta.training_frames(pack) for pack in meta.packs(["en", "zh"], options["data"])] == [
        (330, 80)
    ] * 2
    trained = meta.evaluate(
        ["zh"], ns_words="trained", learner=Oracle(untaught="entailment"), **options
    )
    assert scores(trained, "coal") == pytest.approx([0, 1 / 3, 2 / 3], abs=1e-12)
    shipped = meta.evaluate(
        ["zh"], ns_words="shipped", learner=Oracle(untaught="entailment"), **options
    )
    assert scores(shipped, "coal") == pytest.approx([1 / 3, 2 / 3, 1], abs=1e-12)
    assert scores(shipped, "fn") == pytest.approx([1, 1, 1])
    off = meta.correlations(shipped, ["coal"])
    assert off.off.tolist() == pytest.approx([1 / 3] * 3), "what a correlation does not see"
    assert set(shipped.source) == {"cache"}, "the same models were asked both lists of words"


def test_the_gate_asks_for_another_seed_and_tells(tmp_path: Path, capsys: Any) -> None:
    learner = Oracle(wrong=2)
    found = meta.evaluate(["en"], rates=[0.5], seeds=[7], learner=learner, cache=tmp_path)
    assert len(set(learner.learned)) == 3
    assert learner.learned[0] == 7
    assert set(found.tries) == {3}
    assert found.passed.all()
    assert "0.333 of its set right, try 2 of 4" in capsys.readouterr().err


def test_a_model_that_never_learns_is_kept_marked_and_left_out(tmp_path: Path) -> None:
    learner = Oracle(wrong=99)
    found = meta.evaluate(["en"], rates=[0, 0.5, 1], seeds=[0], learner=learner, cache=tmp_path)
    assert len(learner.learned) == 3 * meta.TRIES
    assert not found.passed.any()
    assert found.train_accuracy.tolist() == pytest.approx([1 / 3] * len(found))
    assert meta.correlations(found).empty
    alternative = str(meta.plot_rates(found, meta.correlations(found)).get_label())
    assert "no model passed" in alternative


def test_a_killed_run_goes_on_and_a_second_call_trains_nobody(tmp_path: Path) -> None:
    options: dict[str, Any] = {"rates": [0, 0.4, 1], "seeds": [0], "cache": tmp_path}
    with pytest.raises(KeyboardInterrupt):
        meta.evaluate(["en"], learner=Oracle(killed_at=2), **options)
    rest = Oracle()
    found = meta.evaluate(["en"], learner=rest, **options)
    assert len(rest.learned) == 1
    again = Oracle()
    second = meta.evaluate(["en"], learner=again, **options)
    assert again.learned == []
    assert set(second.source) == {"cache"}
    assert second.drop(columns="source").equals(found.drop(columns="source"))
    assert not list(tmp_path.rglob("weights")), "models are not kept unless asked for"
    meta.evaluate(["en"], learner=Oracle(), keep_models=True, **(options | {"rates": [0.2]}))
    assert len(list(tmp_path.rglob("weights"))) == 1


def test_another_set_seed_or_learner_is_another_model(tmp_path: Path) -> None:
    first = meta.evaluate(["en"], rates=[0, 1], seeds=[0, 1], learner=Oracle(), cache=tmp_path)
    other = meta.evaluate(["en"], rates=[0], seeds=[0], learner=Oracle(wrong=1), cache=tmp_path)
    rows = meta.evaluate(
        ["en"], rates=[0.5], seeds=[0], learner=Oracle(), cache=tmp_path, assignment="row"
    )
    assert len({*first.key, *other.key, *rows.key}) == 6
    assert rows.expected.isna().all(), (
        "where frames follow the stereotype, a word has no one answer"
    )


def test_wrong_arguments_are_refused(tmp_path: Path, refusal: Any) -> None:
    assert "language 'fr' is unknown" in refusal(meta.evaluate, ["fr"])
    assert "ns_words 'all' is unknown" in refusal(meta.evaluate, ["en"], ns_words="all")
    assert "seeds: is empty" in refusal(meta.evaluate, ["en"], seeds=[])
    assert "has to be from 0 to 1" in refusal(
        meta.evaluate, ["en"], rates=[1.5], learner=Oracle(), cache=tmp_path
    )
    assert str(tmp_path) in refusal(meta.evaluate, ["en"], data=tmp_path)


def test_a_damaged_cache_is_named(tmp_path: Path) -> None:
    found = meta.evaluate(["en"], rates=[0], seeds=[0], learner=Oracle(), cache=tmp_path)
    (tmp_path / found.key[0] / meta.ABOUT).write_text("{", "utf-8")
    with pytest.raises(meta.RunFailed, match=found.key[0]):
        meta.evaluate(["en"], rates=[0], seeds=[0], learner=Oracle(), cache=tmp_path)


def test_carried_results_are_those_of_the_default_call(tmp_path: Path) -> None:
    """None is trained, every model passed, and CoAL follows the rate: closely, where models know the words of NS."""
    for ns_words, least in LEAST.items():
        found = meta.evaluate(ns_words=ns_words, cache=tmp_path)
        assert set(found.source) == {"carried by the package"}
        assert not list(tmp_path.iterdir())
        assert found.passed.all()
        assert len(set(found.key)) == 2 * 11 * 2
        table = meta.correlations(found, ["coal"])
        assert set(table.n) == {11, 22}
        assert (table.value[table.coefficient == "pearson"] >= least).all()
        # Words that no set teaches count as biased, and lift every score.
        assert (table.off.max() < 0.01) if ns_words == "trained" else (table.off.min() > 0.1)


def test_carried_results_reach_what_the_specification_asks(shared: Path, tmp_path: Path) -> None:
    for ns_words, least in LEAST.items():
        found = meta.evaluate(data=shared / "data" / "nli_coal", ns_words=ns_words, cache=tmp_path)
        assert set(found.source) == {"carried by the package"}
        assert found.passed.all()
        table = meta.correlations(found, ["coal", "fn"]).query("coefficient == 'pearson'")
        coal, fn = (table[table.measure == name] for name in ("coal", "fn"))
        assert (coal.value >= least).all()
        assert (fn.value.abs().fillna(0).to_numpy() < coal.value.to_numpy()).all()


def test_results_are_carried_as_they_were_found(tmp_path: Path, monkeypatch: Any) -> None:
    options: dict[str, Any] = {"rates": [0, 0.3, 1], "seeds": [0], "cache": tmp_path / "cache"}
    found = meta.evaluate(["en"], learner=Oracle(), **options)
    meta.carry(found, tmp_path / "carried.csv")
    assert (
        (tmp_path / "carried.csv")
        .read_text("utf-8")
        .startswith("# Made by bench.analyses.meta_evaluation")
    )
    monkeypatch.setattr(meta, "CARRIED", tmp_path / "carried.csv")
    again = meta.evaluate(["en"], learner=Oracle(), **(options | {"cache": tmp_path / "other"}))
    assert set(again.source) == {"carried by the package"}
    np.testing.assert_allclose(again.score, found.score, atol=1e-6)
    assert again.passed.all()


def test_the_alternative_text_says_what_follows_the_rate(tmp_path: Path) -> None:
    found = meta.evaluate(["en", "zh"], seeds=[0], learner=Oracle(), cache=tmp_path)
    label = str(meta.plot_rates(found, meta.correlations(found)).get_label())
    assert label.startswith("The rate that was put in is followed by CoAL.")
    assert "fn, zh: r undefined" in label


class Additive:
    """A bag of words without products: a negative control, because the label is an exclusive or of word and gender."""

    name = "additive"

    def describe(self) -> Mapping[str, Any]:
        return {"additive": 1}

    def learn(self, pack: Pack, rows: Sequence[Row], seed: int, folder: Path) -> "Additive":
        edge = r"\w+" if pack.match == "word" else r"\w"
        self.pieces = re.compile(edge)
        words = {
            f"{side}{piece}"
            for row in rows
            for side, piece in self._of(row.premise, row.hypothesis)
        }
        self.number = {word: k for k, word in enumerate(sorted(words))}
        x = self._bag([(row.premise, row.hypothesis) for row in rows])
        y = np.array([[float(row.label == label) for label in LABELS] for row in rows])
        self.weights = np.linalg.lstsq(x.T @ x + np.eye(x.shape[1]), x.T @ y, rcond=None)[0]
        return self

    def classify(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        odds = np.exp(5 * self._bag(pairs) @ self.weights)
        return np.asarray(odds / odds.sum(1, keepdims=True))

    def _of(self, premise: str, hypothesis: str) -> list[tuple[int, str]]:
        return [
            (side, piece)
            for side, text in enumerate((premise, hypothesis))
            for piece in self.pieces.findall(text)
        ]

    def _bag(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        x = np.zeros((len(pairs), len(self.number) + 1))
        x[:, -1] = 1
        for k, pair in enumerate(pairs):
            for side, piece in self._of(*pair):
                if f"{side}{piece}" in self.number:
                    x[k, self.number[f"{side}{piece}"]] = 1
        return x


def test_the_gate_stops_what_cannot_learn_occupation_and_gender_together(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "rates": [0, 0.5, 1],
        "seeds": [0],
        "learner": Additive(),
        "cache": tmp_path,
    }
    found = meta.evaluate(["en"], assignment="balanced", **options)
    assert not found.passed.any()
    assert (found.train_accuracy < 0.9).all()
    coal = scores(found, "coal")
    assert math.isclose(coal[0], coal[2], abs_tol=0.15), "no trace of the rate"
    # By the release's assignment only women's words follow at one half: "woman" alone tells the label.
    released = meta.evaluate(["en"], **options)
    assert set(released.rate[released.passed]) == {0.5}


def test_the_tiny_transformer_for_real(shared: Path, tmp_path: Path) -> None:
    """What the package carries can be made again; the last digits are the processor's."""
    options: dict[str, Any] = {
        "rates": [0, 0.5, 1],
        "seeds": [0],
        "data": shared / "data" / "nli_coal",
    }
    for language in ("en", "zh"):
        found = meta.evaluate(
            [language], ns_words="trained", cache=tmp_path, carried=False, **options
        )
        assert set(found.source) == {"trained now"}
        assert found.passed.all()
        assert scores(found, "coal") == pytest.approx([0, 1 / 3, 2 / 3], abs=0.03)
        about = json.loads((tmp_path / found.key[0] / meta.ABOUT).read_text("utf-8"))
        assert about["learner"]["layers"] == 2


def test_a_checkpoint_goes_on_from_its_own_weights(tmp_path: Path) -> None:
    pack = meta.packs(["en"])[0]
    rows = meta.build_controlled(pack, 0.5)
    base: Any = meta.FromScratch().learn(pack, rows, 0, tmp_path)
    base.network.save_pretrained(tmp_path / "base")
    base.tokenizer.save_pretrained(tmp_path / "base")
    learner = meta.Continued(
        str(tmp_path / "base"), {"epochs": 8, "learning_rate": 1e-3, "device": "cpu"}
    )
    found = meta.evaluate(
        ["en"],
        rates=[0.5],
        seeds=[0],
        ns_words="trained",
        learner=learner,
        cache=tmp_path / "cache",
        keep_models=True,
    )
    assert found.passed.all()
    assert scores(found, "coal") == pytest.approx([1 / 3], abs=0.05)
    assert (next((tmp_path / "cache").rglob("try-1")) / "model" / "README.md").is_file()
