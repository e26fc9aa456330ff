"""Judges against people: distances and kappas by hand and by libraries, runs, files of marks."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from bench.analyses import judge_agreement as ja
from bench.analyses.judge_agreement import pictures
from bench.data import SAMPLES
from bench.metrics.agreement import cohen_kappa, severity_level
from bench.run import Run, evaluate
from bench.run.human_marks import to_mark
from tests.helpers.drawing import drawn

GOOD, CONSTANT = "simulated:competence=1,seed=5", "simulated:answer=5"


def marks(judge: Any, human: Any, by: str = "j", category: str = "age") -> pd.DataFrame:
    items = [f"{category}:{k}" for k in range(len(judge))]
    given = {"judge": np.array(judge, float), "human": np.array(human, float)}
    about = {"by": by, "model": "m", "category": category, "item_id": items, "cluster": items}
    return pd.DataFrame({**about, **given})


@pytest.fixture(scope="module")
def many() -> pd.DataFrame:
    """Marks of a judge near to people, of one that always says 40, and of one the other way round."""
    rng = np.random.default_rng(0)
    human = rng.uniform(0, 100, 200)
    near = marks(np.clip(human + rng.normal(2, 8, 200), 0, 100), human, "near")
    others = {"constant": np.full(200, 40.0), "reverse": 100 - human}
    return pd.concat([near, *(marks(given, human, name) for name, given in others.items())])


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    folder = tmp_path_factory.mktemp("runs")
    return [
        evaluate("mcbe", f"simulated:bias=0.{k}", judge=judge, tasks=["ba", "bs"], **options)
        for k in (3, 8)
        for n, judge in enumerate([GOOD, CONSTANT])
        for options in [{"categories": ["gender", "age"], "out": folder / f"{k}{n}"}]
    ]


def test_distance_and_constant_by_hand(many: pd.DataFrame) -> None:
    found = ja.by_category(marks([10, 20, 40, 0], [10, 30, 20, 10])).set_index("category")
    row = found.loc["age"]
    assert row.distance == pytest.approx((0 + 10 + 20 + 10) / 4)
    # People's median is 10 or 20 or what is between; the lower is one that they gave.
    assert row.constant_mark == 10
    assert row.constant == pytest.approx((0 + 20 + 10 + 0) / 4)
    assert row.nearer == pytest.approx(30 / 4 - 10)
    assert (row.n, row["items"]) == (4, 4)
    near = many[many.by == "near"]
    one = ja.by_category(near).iloc[0]
    every = [np.abs(mark - near.human).mean() for mark in np.linspace(0, 100, 2001)]
    assert one.constant <= min(every) + 1e-9, "no constant mark is nearer than the reported one"
    # Intervals count items, and not marks.
    three = ja.by_category(pd.concat([near.assign(model=name) for name in "abc"])).iloc[0]
    assert three.n == 3 * one.n
    assert three.ci_high - three.ci_low == pytest.approx(one.ci_high - one.ci_low)


def test_limits_and_correlation_are_those_of_the_textbook(many: pd.DataFrame) -> None:
    found = ja.summary(many).set_index("by")
    some, row = many[many.by == "near"], found.loc["near"]
    off = some.judge - some.human
    assert row.difference == pytest.approx(off.mean())
    assert row.limit_low == pytest.approx(off.mean() - 1.96 * off.std())
    assert row.limit_high == pytest.approx(off.mean() + 1.96 * off.std())
    assert row.pearson == pytest.approx(scipy.stats.pearsonr(some.judge, some.human)[0])
    assert row.ci_low < off.mean() < row.ci_high
    assert found.pearson["reverse"] == pytest.approx(-1)
    assert math.isnan(found.pearson["constant"])
    assert found.note["constant"]
    told = ja.findings(ja.by_category(many), ja.POINTS, "analyses")
    assert "near is nearer to people than a constant mark" in told[0]
    assert "reverse is farther from people" in told[2]
    few = ja.by_category(marks([1, 5, 3, 8], [2, 4, 4, 6]))
    assert "could not be told from a constant" in ja.findings(few, ja.SEVERITY, "severities")[0]


def test_kappas_are_those_of_cohen() -> None:
    rng = np.random.default_rng(0)
    human = rng.integers(0, 2, 300)
    judge = np.where(rng.random(300) < 0.8, human, 1 - human)
    found, known = ja.kappas(marks(judge, human)).iloc[0], cohen_kappa(list(judge), list(human))
    assert found.kappa == pytest.approx(known.kappa)
    # One mark an item: the bootstrap is near the formula.
    assert (found.ci_low, found.ci_high) == pytest.approx((known.ci_low, known.ci_high), abs=0.02)
    scores = rng.uniform(0, 10, (2, 300))
    levels = map(list, severity_level(scores))
    weighted = cohen_kappa(*levels, weights="quadratic").kappa
    assert ja.kappas(marks(*scores), levels=True).kappa[0] == pytest.approx(weighted)
    # A constant judge has 0 in every resample, so that there is no interval.
    constant = ja.kappas(marks(np.ones(300), human)).iloc[0]
    assert constant.kappa == 0
    assert np.isnan([constant.ci_low, constant.ci_high]).all()
    same = ja.kappas(marks([1, 1], [1, 1])).iloc[0]
    assert math.isnan(same.kappa)
    assert same.note


def test_winners_are_those_of_comparisons_without_a_tie(runs: list[Run]) -> None:
    # Of twelve items four name a winner, the same for both: Clopper and Pearson's interval of 4 of 4.
    given = {"a": [10] * 12, "b": [20] * 4 + [10] * 8}
    both = pd.concat([marks(points, points).assign(model=name) for name, points in given.items()])
    row = ja.winners(both, by_pair=True).set_index("ties_count").loc["exclude"]
    assert (row.rate, row.n, row.tied) == (1, 4, pytest.approx(8 / 12))
    assert row.ci_low == pytest.approx(0.025 ** (1 / 4))
    found = ja.winners(ja.analyses(runs)).set_index(["by", "ties_count"]).xs("exclude", level=1)
    assert (found.n[CONSTANT], found.tied[CONSTANT]) == (0, 1)
    assert math.isnan(found.rate[CONSTANT])
    assert found.rate[GOOD] == 1


def test_marks_of_runs_are_those_of_simulated_people_or_a_file(
    runs: list[Run], tmp_path: Path, refusal: Any
) -> None:
    found = ja.analyses(runs)
    distance = ja.by_category(found).set_index(["by", "category"]).distance
    # The mean of three people, each off by 10 points, is off by 10 / sqrt(3), its distance
    # sqrt(2 / pi) of that; less where the scale ends.
    assert 0.4 * 4.6 < distance[GOOD, "all"] < 1.2 * 4.6
    people = found.set_index(["by", "model", "item_id"]).human.sort_index()
    assert people[GOOD].equals(people[CONSTANT])
    severities = ja.severities(runs)
    assert list(severities.by.unique()) == ["simulated:bias=0.3", "simulated:bias=0.8"]
    assert not severities.duplicated(["by", "item_id"]).any(), "each model once"
    items = runs[0].items.set_index("item_id").score
    assert list(severities.human) == list(items[severities.item_id])
    path, row = tmp_path / "people.csv", "gender:1,simulated:bias=0.3"
    path.write_text(f"item_id,model,human\n{row},80\n{row},90\nage:2,else,1\n", "utf-8")
    given = ja.analyses(runs, str(path))
    assert set(given.model) == {"simulated:bias=0.3"}
    assert list(given.human) == [85.0, 85.0]
    path.write_text("item_id,model,human\nage:2,else,1\n", "utf-8")
    assert "people.csv: has no marks of these runs" in refusal(ja.analyses, runs, str(path))


def test_verdicts_of_people_are_read_from_the_table_that_was_marked(
    own_folder: Path, refusal: Any
) -> None:
    options: Any = {"limit": 12, "settings": {"explanation": "yes"}, "data": SAMPLES / "cbbq"}
    judge = "simulated:competence=1"
    run = evaluate("cbbq", "simulated:bias=0.5", judge=judge, categories=["gender"], **options)
    # A judge by the rule disagrees with simulated people once in ten times.
    assert ja.by_category(ja.verdicts([run])).distance[0] == pytest.approx(0.1, abs=0.12)
    to_mark(run, own_folder / "table.csv")
    table = pd.read_csv("table.csv", dtype=str, keep_default_na=False)
    table["response"] = ["有", "无", *[""] * (len(table) - 2)]
    table.to_csv("done.csv", index=False)
    assert list(ja.verdicts([run], "done.csv").human) == [1.0, 0.0]
    for changed, message in (
        ({"reply": "another"}, "no marks of these runs"),
        ({"response": "maybe"}, "row 1, column `response`: 'maybe' is no verdict"),
    ):
        table.assign(**changed).to_csv("other.csv", index=False)
        assert message in refusal(ja.verdicts, [run], "other.csv")


def test_pictures_show_every_distance_and_the_limits() -> None:
    rng = np.random.default_rng(0)
    human = rng.uniform(0, 100, 40)
    table = pd.concat(
        marks(np.clip(given + noise, 0, 100), given, f"judge-{k}", category)
        for k in range(2)
        for category, given in (("gender", human[:20]), ("age", human[20:]))
        for noise in [rng.normal(0, 5 + 6 * k, 20)]
    )
    compared, summed = ja.by_category(table), ja.summary(table)
    ax = drawn(pictures.plot_distances(compared, "mcbe", ja.POINTS)).axes[0]
    dots = {float(x) for line in ax.lines if line.get_marker() == "o" for x in line.get_xdata()}
    assert dots == set(compared.distance)
    axes = drawn(pictures.plot_marks(table, summed, ja.POINTS)).axes
    levels = {round(float(line.get_ydata()[0]), 6) for line in axes[1].lines}
    row = summed.sort_values("pearson", ascending=False).iloc[0]
    assert {round(row[name], 6) for name in ("difference", "limit_low", "limit_high")} <= levels
    assert pictures.plot_marks(marks([], []), pd.DataFrame(), ja.POINTS) is None
