"""To say that it is not known is no habit: cautious models are ranked, habitual ones are not."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import bench
from bench.benchmarks import get
from bench.metrics import primary
from bench.runs.notes import with_notes
from tests.helpers.recorded import cell, replay, scored

HABITS = {
    "mostly the same letter, which alone could give this score",
    "the same answer to everything",
}
LETTERS = np.array(list("ABC"))
CATEGORIES = ["age", "disability", "gender", "race", "region", "religion"]
UNKNOWN = [0, 0.3, 0.6, 0.9, 1]


class Asked:
    """The questions of a run on CBBQ; answers are places of options: two people, and unknown."""

    def __init__(self, folder, **options):
        self.run = bench.evaluate(
            "cbbq", "simulated:bias=0.5", data="samples", out=folder, **options
        )
        records = self.run.records
        rows = records[["item_id", "task", "request"]].merge(self.run.items, on="item_id")
        self.n = len(rows)
        self.order = [request.partition(":")[2] or "ABC" for request in rows.request]
        self.is_ambiguous = (rows.task == "ambiguous").to_numpy()
        self.right = rows.label.to_numpy(int)
        self.stereotyped = np.where(rows.polarity == "neg", rows.target, 1 - rows.target).astype(
            int
        )
        # The person at the first letter that offers one.
        self.first = np.array(
            ["ABC".index(min(set(own) - {"C"}, key=own.index)) for own in self.order]
        )

    def cautious(self, rate, otherwise, facts=True):
        """Say unknown to a rate of the ambiguous questions, or (without facts) of all."""
        says_unknown = np.random.default_rng(0).random(self.n) < rate
        answers = np.where(says_unknown, 2, otherwise)
        return np.where(self.is_ambiguous | (not facts), answers, self.right)

    def people(self):
        return np.random.default_rng(1).integers(0, 2, self.n)

    def stereotype(self, share, otherwise):
        """Follow the stereotype in a share of the answers."""
        follows = np.random.default_rng(2).random(self.n) < share
        return np.where(follows, self.stereotyped, otherwise)

    def letters(self, answers):
        return [LETTERS[own.index("ABC"[k])] for own, k in zip(self.order, answers, strict=True)]

    def scores(self, letters):
        records = self.run.records.assign(response=letters)
        table = scored("cbbq", records, self.run.items)
        return bench.explain(table.assign(benchmark="cbbq", model="m"))

    def score(self, answers, metric="s_amb"):
        task = {"s_amb": "ambiguous", "s_disamb": "disambiguous"}[metric]
        return cell(self.scores(self.letters(answers)), metric, task=task)


@pytest.fixture(scope="module", params=["released", "rotated"])
def asked(request, tmp_path_factory):
    settings = {"option_order": request.param}
    out = tmp_path_factory.mktemp("run")
    return Asked(out, settings=settings, categories=CATEGORIES, limit=20)


@pytest.mark.parametrize("rate", UNKNOWN)
def test_a_cautious_model_is_ranked_with_its_low_score(asked, rate):
    follows = asked.score(asked.cautious(rate, asked.stereotyped))
    assert follows.doubt == ""
    assert follows.score == pytest.approx(1 - rate, abs=0.1)
    at_random = asked.score(asked.cautious(rate, asked.people(), facts=rate == 1))
    assert (at_random.doubt, at_random.score) == ("", pytest.approx((1 - rate) / 2, abs=0.1))


@pytest.mark.parametrize(("rate", "is_noted"), [(0.3, False), (0.9, True)])
def test_a_large_share_of_unknown_is_a_finding_beside_the_score(asked, rate, is_noted):
    row = asked.score(asked.cautious(rate, asked.stereotyped))
    assert row.note.startswith("says unknown in ") == is_noted
    assert row.note.endswith("% of its readable answers to ambiguous questions") == is_noted


@pytest.mark.parametrize("facts", [True, False])
@pytest.mark.parametrize("rate", UNKNOWN[:-1])
def test_a_letter_for_all_people_is_a_habit_however_often_unknown_is_said(asked, rate, facts):
    row = asked.score(asked.cautious(rate, asked.first, facts))
    assert row.doubt in HABITS
    assert "of the" in row.note


@pytest.mark.parametrize("said", ["letter", "unknown"])
def test_a_constant_answer_is_told_by_the_questions_with_facts(asked, said):
    letters = ["A"] * asked.n if said == "letter" else asked.letters(np.full(asked.n, 2))
    scores = asked.scores(letters)
    overall = scores[scores.primary & (scores.category == "all") & scores.score.notna()]
    assert set(overall.doubt) == {"the same answer to everything"}
    assert overall.note.str.contains("100%").all()


def test_unknown_without_questions_with_facts_may_be_caution(tmp_path):
    asked = Asked(tmp_path, tasks=["ambiguous"], limit=10)
    row = asked.score(np.full(asked.n, 2))
    assert (row.score, row.doubt) == (0, "")
    assert "tell this from a constant answer" in row.note


def test_the_letters_of_a_context_say_nothing_of_the_other_one(asked):
    # Nobody is named where nothing is known, and the person at the first letter where facts are.
    answers = np.where(asked.is_ambiguous, 2, asked.first)
    assert asked.score(answers).doubt == ""
    assert asked.score(answers, "s_disamb").doubt in HABITS


def test_a_score_beyond_what_the_letters_would_give_is_ranked(asked):
    row = asked.score(asked.stereotype(0.5, asked.first))
    assert row.ci_low > row.baseline
    assert row.doubt == ""


# Six models of one series: the larger ones say unknown more often, and follow the stereotype less.
SERIES = {
    0.5: (0.2, 0.9),
    1.5: (0.51, 0.8),
    3: (0.55, 0.8),
    7: (0.67, 0.8),
    14: (0.7, 0.7),
    32: (0.9, 0.6),
}


def test_a_series_of_cautious_models_has_ranks_and_a_trend(tmp_path):
    options = {"categories": CATEGORIES, "limit": 30}
    asked = Asked(tmp_path / "asked", **options)
    habitual = {"A": asked.cautious(0.6, asked.first), "unknown": np.full(asked.n, 2)}
    series = {
        f"{size}B": asked.cautious(rate, asked.stereotype(share, asked.people()))
        for size, (rate, share) in SERIES.items()
    }
    runs = []
    for name, answers in {**series, **habitual}.items():
        keys = asked.run.records[["task", "item_id", "request"]].itertuples(index=False, name=None)
        said = dict(zip(keys, asked.letters(answers), strict=True))
        model = replay(tmp_path / f"{name}.jsonl", said)
        runs.append(bench.evaluate("cbbq", model, data="samples", out=tmp_path / name, **options))
    sizes = {run.model: size for run, size in zip(runs, SERIES, strict=False)}
    own, _common, runs = bench.analyses.open_scores(runs, columns={"billions": sizes})
    rows = bench.measure(own, metric="s_amb")
    overall = rows[rows.category == "all"]
    assert set(overall.model[overall.doubt != ""]) == {*habitual}
    ranked = rows[rows.model.isin(series) & (rows.category != "all")]
    assert bench.friedman(ranked, "category").test.p[0] < 0.05
    trend = bench.trend(overall[overall.doubt == ""], "billions", by="title")
    assert (trend.n[0], trend.estimate[0] < 0, trend.p[0] < 0.05) == (6, True, True)
    pairs = bench.differences(own, bench.outcomes(*runs)).query("metric == 's_amb'")
    of_series = pairs[pairs["first"].isin(series) & pairs.second.isin(series)]
    assert "by letters" not in set(of_series.verdict)
    assert of_series.verdict.eq("different").sum() >= 5
    of_habit = pairs[pairs["first"].isin(habitual) | pairs.second.isin(habitual)]
    assert "different" not in set(of_habit.verdict)
    assert bench.open_ranks(of_series).ranks_from.notna().all()
    scores = own.drop(columns=["title", "primary", "worse", "doubt"])
    assert primary.findings(scores, get("cbbq")).model[0] == "0.5B", "the letter A is left out"


LABELS = ("entailment", "contradiction", "neutral")


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    out = tmp_path_factory.mktemp("run")
    return bench.evaluate("nli_coal", "simulated:bias=0.5", data="samples", out=out)


def coal(pairs, labels):
    records = pairs.records.assign(response=labels)
    table = scored("nli_coal", records, pairs.items)
    return cell(bench.explain(table.assign(benchmark="nli_coal", model="m")), "coal")


@pytest.mark.parametrize("rate", UNKNOWN)
@pytest.mark.parametrize(
    "otherwise", ["stereotype", "one stereotype", "entailment", "contradiction"]
)
def test_neutral_is_no_habit_and_another_label_is(pairs, rate, otherwise):
    stereotype = {"ps": "entailment", "as": "contradiction", "ns": "neutral"}
    stereotype |= {"as": "neutral"} if otherwise == "one stereotype" else {}
    task = pairs.records.task
    labels = task.map(stereotype) if "stereotype" in otherwise else pd.Series(otherwise, task.index)
    is_neutral = np.random.default_rng(0).random(len(labels)) < rate
    row = coal(pairs, labels.mask(is_neutral, "neutral"))
    is_habit = otherwise in LABELS and rate < 1
    assert row.doubt == ("the same answer to everything" if is_habit else "")
    assert ("right here" in row.note) == (rate == 1)


@pytest.mark.parametrize("found", ["neutral", "entailment"])
def test_a_classifier_that_can_only_say_neutral_is_in_doubt(pairs, found):
    records = pairs.records.assign(response="neutral", parsed="neutral")
    table = scored("nli_coal", records, pairs.items)
    plain = {"language": "en", "premise": "a", "hypothesis": "b", "expected": "entailment"}
    probed = replace(pairs, metadata=pairs.metadata | {"probe": [plain | {"found": found}]})
    noted = with_notes(probed, table, records, "robust")
    assert cell(noted, "coal").by_habit == (found == "neutral")
