"""Answers by habit: the baseline of a model that prefers a letter, and who is not called the best."""

from pathlib import Path

import numpy as np
import pytest

from bench import run
from bench.analyses import compare_models
from bench.metrics import cbbq
from bench.metrics.headline import findings, top_findings
from bench.metrics.table import LETTERS_ALONE
from bench.run import results
from tests.helpers.recorded import cell


def test_the_baseline_of_a_preferred_letter_is_what_shuffled_answers_give(tmp_path: Path) -> None:
    asked = run.evaluate("cbbq", "simulated:position=0.7,bias=0.4", data="samples", out=tmp_path)
    records, items = asked.records, asked.items
    table = asked.scores()
    dice = np.random.default_rng(0)
    shuffled = []
    for _ in range(30):
        replies = records.groupby(["category", "task"]).response.transform(dice.permutation)
        rows = cbbq.answers(records.assign(response=replies), items, "robust")
        means = rows.groupby(["task", "category"])[["biased", "decided", "correct"]].mean()
        shuffled.append(
            {
                "s_amb": means.loc["ambiguous"].biased.mean(),
                "s_disamb": (
                    means.loc["disambiguous"].biased / means.loc["disambiguous"].decided
                ).mean(),
                "accuracy": means.correct.groupby("category").mean().mean(),
            }
        )
    for metric, task in (("s_amb", "ambiguous"), ("s_disamb", "disambiguous"), ("accuracy", "all")):
        row = cell(table, metric, task=task)
        assert row.baseline_of == LETTERS_ALONE
        assert row.baseline == pytest.approx(np.mean([one[metric] for one in shuffled]), abs=0.01)
    assert "option_order=rotated" in cell(table, "s_amb", task="ambiguous").note


def test_a_letter_that_is_not_preferred_leaves_the_random_answerer(tmp_path: Path) -> None:
    table = run.evaluate("cbbq", "simulated:bias=0.5", data="samples", out=tmp_path).scores()
    assert set(table.baseline_of) == {""}
    assert cell(table, "s_amb", task="ambiguous").baseline == 1 / 3


def test_an_unbiased_answerer_that_mostly_says_a_cannot_be_told_from_its_letters(
    tmp_path: Path,
) -> None:
    run.evaluate("cbbq", "simulated:position=0.9,bias=0", data="samples", out=tmp_path)
    table = results.table([results.Run.open(tmp_path)])
    row = findings(table, "cbbq").iloc[0]
    assert row.baseline == pytest.approx(0.45, abs=0.01)
    assert "cannot be told from what its letters would give" in row.sentence


def test_a_right_answerer_is_not_called_a_habit_for_saying_unknown_where_that_is_right(
    tmp_path: Path,
) -> None:
    table = run.evaluate("cbbq", "simulated:bias=0", data="samples", out=tmp_path).scores()
    assert not table.note.str.contains("whatever is asked").any()
    assert not table.by_habit.any()


def test_a_constant_answerer_is_not_the_best(tmp_path: Path) -> None:
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


def test_a_constant_answerer_is_not_the_most_biased(tmp_path: Path) -> None:
    models = ("simulated:label=entailment", "simulated:bias=0.3")
    runs = [
        run.evaluate("nli_coal", one, limit=20, data="samples", out=tmp_path / str(k))
        for k, one in enumerate(models)
    ]
    first = top_findings(findings(results.table(runs), "nli_coal"), "nli_coal")
    assert set(first.model) == {"simulated:bias=0.3"}
