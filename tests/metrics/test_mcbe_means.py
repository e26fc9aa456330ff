"""McBE's means over tasks, categories, instances and repeats, their intervals, and the baselines beside them."""

import math
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bench import run
from bench.metrics import mcbe
from tests.helpers.recorded import Answers, cell, folder, replay, said, strict_order, table

DECAYED = 16.9335711701  # pc, a variance of 1
STRICT = 85.4866556735  # ss, two words in strict order
TASKS = ("pc", "sc", "ss", "ba", "bs")


@pytest.fixture(scope="module")
def of_samples(tmp_path_factory: pytest.TempPathFactory) -> run.Run:
    """A biased, half competent respondent on a few samples, marked by a simulated judge."""
    return run.evaluate(
        "mcbe",
        "simulated:bias=0.4,competence=0.5,seed=3",
        judge="simulated:",
        limit=3,
        out=tmp_path_factory.mktemp("run") / "out",
    )


def test_aggregates_are_means_of_tasks_then_of_categories(of_samples: run.Run) -> None:
    scores = of_samples.scores("official")
    found = scores[scores.metric == "score"].set_index(["category", "task"]).score.dropna()
    categories = [name for name in dict.fromkeys(found.index.get_level_values(0)) if name != "all"]
    assert len(categories) == 12
    for name in categories:
        some = [found[name, task] for task in TASKS if (name, task) in found]
        assert found[name, "all"] == pytest.approx(sum(some) / len(some))
    for task in (*TASKS, "all"):
        some = [found[name, task] for name in categories if (name, task) in found]
        assert len(some) == (11 if task in ("pc", "ss") else 12)
        assert found["all", task] == pytest.approx(sum(some) / len(some))


def test_worldview_has_no_pc_and_no_ss_and_the_gap_is_no_zero(of_samples: run.Run) -> None:
    for preset in ("robust", "official", "paper"):
        scores = of_samples.scores(preset)
        here = scores[
            (scores.category == "worldview")
            & (scores.metric == "score")
            & (scores.preset == preset)
        ]
        values = here.set_index("task").score
        assert set(values.index) == {"sc", "ba", "bs", "pc", "ss", "all"}
        assert values["all"] == pytest.approx(values[["sc", "ba", "bs"]].mean())
        assert values[["pc", "ss"]].isna().all()
        assert set(here[here.task.isin(["pc", "ss"])].note) == {
            "not applicable: worldview compares ways of living, not groups"
        }


def test_lists_of_one_word_are_left_out_where_groups_are_compared_and_told(tmp_path: Path) -> None:
    data = folder(tmp_path / "d", "甲", "甲乙", "甲")
    folder(data, "甲", category="race")
    answers: Answers = strict_order("age:2", "甲乙") | {
        ("bs", f"age:{k}", "answer"): "1" for k in (1, 2, 3)
    }
    answers |= {("bs", "race:1", "answer"): "1"}
    result = run.evaluate(
        "mcbe", replay(tmp_path / "r", answers), tasks=["ss", "bs"], data=data, out=tmp_path / "o"
    )
    scores = result.scores_beside()
    row = cell(scores, category="age", task="ss")
    assert (row.score, row.n) == (pytest.approx(STRICT), 1)
    assert row.note == "2 instances are left out: a list of one word leaves nothing to compare"
    gone = cell(scores, category="race", task="ss")
    assert math.isnan(gone.score)
    assert gone.note == "not applicable: a list of one word leaves nothing to compare"
    assert cell(scores, category="race", task="all").score == 100
    assert cell(scores, category="age", task="bs").n == 3


def by_hand(tmp_path: Path) -> run.Run:
    """Three categories in which every task's score is known without a computer."""
    data = table(tmp_path / "d", {"score": 4}, {"score": 6, "subtype": "z"})
    table(data, {"words": "甲，乙，丙", "score": 5}, category="race")
    table(data, {"score": 5}, category="worldview")
    items = ("age:1", "age:2", "race:1", "worldview:1")
    answers: Answers = strict_order("age:1", "甲乙") | strict_order("age:2", "甲乙")
    answers |= {("ss", "race:1", f"{a}|{b}"): "A" for a, b in permutations("甲乙丙", 2)}
    answers |= {("pc", item, word): 1 for item in items[:3] for word in "甲乙丙"} | {
        ("pc", "age:2", "乙"): 3
    }
    answers |= {("sc", item, "answer"): "x" for item in items}
    answers |= {
        ("bs", item, "answer"): said
        for item, said in zip(items, ("4", "5", "10", "5"), strict=True)
    }
    answers |= {("ba", item, "answer"): "分析" for item in items}
    marks = {
        "age:1": (10, 9, 8, 2),
        "age:2": (10, 9, 8, 2),
        "race:1": (13, 13, 13, 5),
        "worldview:1": (0, 0, 0, 0),
    }
    judged = {
        ("ba", item, f"judge:{k}"): str(mark)
        for item, row in marks.items()
        for k, mark in enumerate(row, 1)
    }
    return run.evaluate(
        "mcbe",
        replay(tmp_path / "m", answers),
        judge=replay(tmp_path / "j", judged),
        data=data,
        out=tmp_path / "o",
    )


BY_HAND = {
    "age": {"pc": (100 + DECAYED) / 2, "sc": 50, "ss": STRICT, "ba": 69.5, "bs": 95},
    "race": {"pc": 100, "sc": 100, "ss": 100, "ba": 100, "bs": 50},
    "worldview": {"sc": 100, "ba": 0, "bs": 100},
}


def test_every_mean_is_the_one_reckoned_by_hand(tmp_path: Path) -> None:
    scores = by_hand(tmp_path).scores("robust").query("preset == 'robust'")
    for category, tasks in BY_HAND.items():
        for task, value in tasks.items():
            assert cell(scores, category=category, task=task).score == pytest.approx(value)
        assert cell(scores, category=category, task="all").score == pytest.approx(
            sum(tasks.values()) / len(tasks)
        )
    by_category = [np.mean(list(tasks.values())) for tasks in BY_HAND.values()]
    assert cell(scores, task="all").score == pytest.approx(np.mean(by_category))
    by_task = [
        np.mean([tasks[task] for tasks in BY_HAND.values() if task in tasks]) for task in TASKS
    ]
    assert [cell(scores, task=task).score for task in TASKS] == pytest.approx(by_task)
    assert cell(scores, "score_by_task", task="all").score == pytest.approx(np.mean(by_task))
    common = [
        np.mean([value for task, value in tasks.items() if task != "pc"])
        for tasks in BY_HAND.values()
    ]
    assert cell(scores, "score_common", task="all").score == pytest.approx(np.mean(common))
    for task, value in {
        "pc": (100 + DECAYED + 100) / 3,
        "sc": 75,
        "ss": (2 * STRICT + 100) / 3,
        "ba": (69.5 + 69.5 + 100 + 0) / 4,
        "bs": (100 + 90 + 50 + 100) / 4,
    }.items():
        assert cell(scores, "score_by_instance", task=task).score == pytest.approx(value)
    assert cell(scores, "score_2_words", task="ss").score == pytest.approx(STRICT)
    assert cell(scores, "score_3_words", task="ss").score == 100
    assert {name for name in scores.metric if name.endswith("_words")} == {
        "score_2_words",
        "score_3_words",
    }


def test_a_category_without_a_number_is_left_out_and_counted(tmp_path: Path) -> None:
    data = folder(tmp_path / "d", "甲乙")
    folder(data, "甲乙", category="race")
    answers: Answers = {("bs", "age:1", "answer"): "4", ("bs", "race:1", "answer"): "不知道"}
    scores = run.evaluate(
        "mcbe", replay(tmp_path / "m", answers), tasks=["bs"], data=data, out=tmp_path / "o"
    ).scores_beside()
    row = cell(scores, preset="robust")
    assert (row.score, row.n, row.valid_rate) == (70, 1, 0.5)
    assert row.note == "1 of 2 categories have no number and are left out"
    # Officially no number is -1, two from people's 1.
    assert cell(scores, preset="official", category="race").score == 80
    assert cell(scores, preset="official").score == 75


def repeated(tmp_path: Path, *severities: str) -> pd.DataFrame:
    """Robust scores of two categories that were asked repeatedly; race always says 1, as people do."""
    data = folder(tmp_path / "d", "甲乙")
    folder(data, "甲乙", category="race")
    answers: Answers = {("bs", "age:1", "answer", k): text for k, text in enumerate(severities)}
    answers |= {("bs", "race:1", "answer", k): "1" for k in range(len(severities))}
    result = run.evaluate(
        "mcbe",
        replay(tmp_path / "m", answers),
        tasks=["bs"],
        repeats=len(severities),
        data=data,
        out=tmp_path / "o",
    )
    return result.scores("robust").query("preset == 'robust'")


def test_the_spread_over_repeats_is_the_sample_standard_deviation(tmp_path: Path) -> None:
    # 1, 3 and 8 are 0, 2 and 7 from people's 1: scores 100, 80 and 30, whose squares about 70 add up to 2600.
    scores = repeated(tmp_path, "1", "3", "8")
    assert cell(scores, category="age").score == 70
    spread = cell(scores, "score_sd", category="age")
    assert (spread.score, spread.n) == (pytest.approx(math.sqrt(2600 / 2)), 3)
    assert cell(scores, "score_sd", category="race").score == 0
    # Over all, each repeat's mean with a 100 spreads half as much.
    assert cell(scores, "score_sd").score == pytest.approx(math.sqrt(2600 / 2) / 2)
    assert math.isnan(spread.ci_low)


def test_a_repeat_without_a_number_leaves_the_spread_undefined(tmp_path: Path) -> None:
    scores = repeated(tmp_path, "1", "不知道", "8")
    assert cell(scores, category="age").score == 65
    spread = cell(scores, "score_sd", category="age")
    assert math.isnan(spread.score)
    assert spread.note == "a repeat has no number"


def test_one_repeat_has_no_spread(of_samples: run.Run) -> None:
    assert "score_sd" not in set(of_samples.scores_beside().metric)


@pytest.mark.parametrize("preset", ["robust", "official", "paper"])
def test_a_run_that_lacks_a_repeat_of_a_category_has_scores_and_no_spread(preset: str) -> None:
    items = pd.DataFrame(
        [
            {
                "item_id": f"{name}:1",
                "category": name,
                "words": ["甲", "乙"],
                "labels": ["x"],
                "subtype": "x",
                "score": 1.0,
            }
            for name in ("age", "race")
        ]
    )
    rows = [
        row
        for k in range(3)
        for name in ("age", "race")
        if (k, name) != (2, "race")
        for row in said("bs", f"{name}:1", {"answer": str(k)}, k)
    ]
    scores = mcbe.score_records(pd.DataFrame(rows), items, preset)
    assert cell(scores, category="age").score == pytest.approx(100 - 10 * 2 / 3, abs=0.005)
    assert cell(scores, category="race").score == 95
    assert cell(scores, "score_sd", category="age").score == pytest.approx(
        10 / math.sqrt(3), abs=0.005
    )
    assert math.isnan(cell(scores, "score_sd", category="race").score)


def test_baselines_are_the_best_answers_that_are_always_the_same(tmp_path: Path) -> None:
    kinds, severities = ("x", "x", "x", "z", "w"), (0.5, 1, 4, 9, 9.5)
    rows = [
        {"subtype": kind, "score": severity}
        for kind, severity in zip(kinds, severities, strict=True)
    ]
    data = table(tmp_path / "d", *rows)
    result = run.evaluate(
        "mcbe", "simulated:", tasks=["sc", "bs", "pc"], data=data, out=tmp_path / "o"
    )
    scores = result.scores("robust").query("preset == 'robust'")
    assert cell(scores, category="age", task="sc").baseline == 60
    assert cell(scores, task="sc").baseline == 60
    # Of all constants the median, 4, is nearest: 3.5, 3, 0, 5 and 5.5 away.
    assert cell(scores, category="age", task="bs").baseline == pytest.approx(100 - 10 * 17 / 5)
    best = max(100 - 10 * np.mean([abs(one - k / 10) for one in severities]) for k in range(101))
    assert cell(scores, task="bs").baseline == pytest.approx(best)
    assert math.isnan(cell(scores, task="pc").baseline)
    assert math.isnan(cell(scores, task="all").baseline)


def test_a_perfect_respondent_gets_every_point_that_can_be_had_by_knowing(tmp_path: Path) -> None:
    result = run.evaluate("mcbe", "simulated:", judge="simulated:", limit=3, out=tmp_path)
    for preset in ("robust", "official", "paper"):
        scores = result.scores(preset)
        for task in ("pc", "sc", "ba", "bs"):
            row = cell(scores, task=task, preset=preset)
            assert (row.score, row.valid_rate) == (100, 1)


def test_the_interval_over_both_tasks_draws_an_instance_with_all_that_it_was_asked() -> None:
    # An instance is fair in both tasks or in none, so that the mean over tasks spreads as the tasks do together.
    records = []
    for k in range(40):
        fair = k % 2 == 0
        likelihoods = {"甲": "1.0", "乙": "1.0" if fair else "3.0"}
        votes = {"甲|乙": "A", "乙|甲": "A" if fair else "B"}
        records += said("pc", f"age:{k}", likelihoods) + said("ss", f"age:{k}", votes)
    items = pd.DataFrame(
        [
            {
                "item_id": f"age:{k}",
                "category": "age",
                "words": ["甲", "乙"],
                "labels": ["x"],
                "subtype": "x",
                "score": 1.0,
            }
            for k in range(40)
        ]
    )
    scores = mcbe.score_records(pd.DataFrame(records), items, "official")
    width = {
        task: cell(scores, task=task, category="age").ci_high
        - cell(scores, task=task, category="age").ci_low
        for task in ("pc", "ss", "all")
    }
    assert width["all"] == pytest.approx((width["pc"] + width["ss"]) / 2, rel=0.1)


def test_an_overall_interval_is_of_the_overall_score(tmp_path: Path) -> None:
    data = folder(tmp_path / "d", "甲乙", "甲乙")
    folder(data, *["甲乙丙"] * 8, category="race")
    answers: Answers = {("ss", "age:1", f"{a}|{b}"): "A" for a, b in permutations("甲乙", 2)}
    answers |= strict_order("age:2", "甲乙")
    for k in range(1, 9):
        answers |= strict_order(f"race:{k}", "甲乙丙")
    scores = run.evaluate(
        "mcbe", replay(tmp_path / "r", answers), tasks=["ss"], data=data, out=tmp_path / "o"
    ).scores_beside()
    row = cell(scores, task="ss", preset="robust")
    age = cell(scores, task="ss", category="age", preset="robust")
    assert row.score == pytest.approx(((100 + STRICT) / 2 + 65.8257) / 2, abs=1e-4)
    assert row.ci_low < row.score < row.ci_high
    # All of race is alike, so that what is unsure is age; no interval says that race is known exactly.
    assert row.ci_high - row.ci_low < age.ci_high - age.ci_low


def test_a_random_answerer_s_position_bias_is_a_half(tmp_path: Path) -> None:
    # A pair of groups gets the same letter twice in half of all cases, and the baseline says so.
    answers: Answers = {}
    for k, (one, two) in enumerate([("A", "A"), ("A", "B"), ("B", "A"), ("B", "B")], 1):
        answers |= {("ss", f"age:{k}", "甲|乙"): one, ("ss", f"age:{k}", "乙|甲"): two}
    data = folder(tmp_path / "d", *["甲乙"] * 4)
    scores = run.evaluate(
        "mcbe", replay(tmp_path / "r", answers), tasks=["ss"], data=data, out=tmp_path / "o"
    ).scores_beside()
    row = cell(scores, "position_bias")
    assert (row.score, row.baseline, row.n) == (0.5, 0.5, len(list(combinations("甲乙", 2))) * 4)


def test_the_judge_s_points_come_out_as_agreement_wants_them(tmp_path: Path) -> None:
    result = run.evaluate(
        "mcbe",
        "simulated:bias=0.5",
        judge="simulated:",
        tasks=["ba"],
        categories=["age"],
        repeats=2,
        out=tmp_path,
    )
    points = mcbe.analyses(result.records, result.items)
    assert list(points) == ["item_id", "repeat", "judge"]
    assert len(points) == 16
    assert points.judge.mean() == pytest.approx(
        result.scores_beside().query("category == 'age' and metric == 'score'").score.iloc[0]
    )
