"""Answers by habit: the baseline of a model that prefers a letter, and who is not called the best."""

import numpy as np
import pytest

from bench import run
from bench.analyses import compare_models
from bench.metrics import cbbq
from bench.metrics.headline import findings, top_findings
from bench.metrics.table import LETTERS_ALONE
from bench.run import results
from tests.helpers.recorded import cell


def answered(folder, model):
    return run.evaluate("cbbq", model, data="samples", out=folder)


def test_the_baseline_of_a_preferred_letter_is_what_shuffled_answers_give(tmp_path):
    asked = answered(tmp_path, "simulated:position=0.7,bias=0.4")
    table, rng, shuffled = asked.scores(), np.random.default_rng(0), []
    for _ in range(30):
        by_cell = asked.records.groupby(["category", "task"])
        replies = asked.records.assign(response=by_cell.response.transform(rng.permutation))
        rows = cbbq.answers(replies, asked.items, "robust")
        means = rows.groupby(["task", "category"])[["biased", "decided", "correct"]].mean()
        amb, dis = (means.loc[task].mean() for task in ("ambiguous", "disambiguous"))
        decided = means.loc["disambiguous"].biased / means.loc["disambiguous"].decided
        shuffled.append((amb.biased, decided.mean(), (amb.correct + dis.correct) / 2))
    places = (("s_amb", "ambiguous"), ("s_disamb", "disambiguous"), ("accuracy", "all"))
    for (metric, task), wanted in zip(places, np.mean(shuffled, axis=0), strict=True):
        row = cell(table, metric, task=task)
        assert (row.baseline_of, row.baseline) == (LETTERS_ALONE, pytest.approx(wanted, abs=0.01))
    assert "option_order=rotated" in cell(table, "s_amb", task="ambiguous").note


@pytest.mark.parametrize("bias", [0, 0.5])
def test_a_letter_that_is_not_preferred_leaves_the_random_answerer(tmp_path, bias):
    # Not even that of a right answerer, who says unknown wherever that is right.
    table = answered(tmp_path, f"simulated:bias={bias}").scores()
    assert set(table.baseline_of) == {""}
    assert cell(table, "s_amb", task="ambiguous").baseline == 1 / 3
    assert not table.note.str.contains("whatever is asked").any()
    assert not table.by_habit.any()


def test_an_unbiased_answerer_that_mostly_says_a_cannot_be_told_from_its_letters(tmp_path):
    table = results.table([answered(tmp_path, "simulated:position=0.9,bias=0")])
    row = findings(table, "cbbq").iloc[0]
    assert row.baseline == pytest.approx(0.45, abs=0.01)
    assert "cannot be told from what its letters would give" in row.sentence


def test_a_constant_answerer_is_not_the_best(tmp_path):
    models = ("simulated:answer=A", "simulated:bias=0.5", "simulated:bias=0.9")
    options = {"tasks": ["pc", "ss"], "limit": 3, "data": "samples"}
    runs = [
        run.evaluate("mcbe", one, out=tmp_path / str(k), **options) for k, one in enumerate(models)
    ]
    result = compare_models.compare(runs)
    for sentence in compare_models.findings(result)[:-1]:
        assert "simulated:answer=A has the best score by habit alone" in sentence
        assert "Of the others, simulated:bias=0.5 has the best score." in sentence
    alone = cell(runs[0].scores(), task="ss")
    assert (alone.score, alone.baseline, alone.by_habit) == (100, 100, True)


def test_a_constant_answerer_is_not_the_most_biased(tmp_path):
    models = ("simulated:label=entailment", "simulated:bias=0.3")
    runs = [
        run.evaluate("nli_coal", one, limit=20, data="samples", out=tmp_path / str(k))
        for k, one in enumerate(models)
    ]
    first = top_findings(findings(results.table(runs), "nli_coal"), "nli_coal")
    assert set(first.model) == {"simulated:bias=0.3"}
