"""Judges against people: distances and kappas by hand and by libraries, runs, files of marks."""

import math

import numpy as np
import pandas as pd
import pytest
import scipy.stats

from bench.analyses import judge_agreement as ja
from bench.analyses.judge_agreement import pictures
from bench.core.errors import BadInput
from bench.data import SAMPLES
from bench.metrics.agreement import cohen_kappa, severity_level
from bench.run import evaluate
from bench.run.human_marks import to_mark
from tests.helpers.drawing import drawn

GOOD, CONSTANT = "simulated:competence=1,seed=5", "simulated:answer=5"


def marks(judge, human, by="j", category="age", items=None):
    items = items or [f"{category}:{k}" for k in range(len(judge))]
    return pd.DataFrame(
        {
            "by": by,
            "model": "m",
            "category": category,
            "item_id": items,
            "cluster": items,
            "judge": np.array(judge, float),
            "human": np.array(human, float),
        }
    )


@pytest.fixture
def many():
    rng = np.random.default_rng(0)
    human = rng.uniform(0, 100, 200)
    near = marks(np.clip(human + rng.normal(2, 8, 200), 0, 100), human, "near")
    return pd.concat(
        [near, marks(np.full(200, 40.0), human, "constant"), marks(100 - human, human, "reverse")]
    )


@pytest.fixture
def runs(tmp_path, monkeypatch):
    (tmp_path / "reports").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BENCH_DATA", str(SAMPLES))
    mcbe = {"tasks": ["ba", "bs"], "categories": ["gender", "age"]}
    return ja.judged(
        [],
        demo=["simulated:bias=0.3", "simulated:bias=0.8"],
        judges=[GOOD, CONSTANT],
        options={"mcbe": mcbe},
    )


def test_distance_and_constant_by_hand():
    found = (
        ja.by_category(marks([10, 20, 40, 0], [10, 30, 20, 10])).set_index("category").loc["age"]
    )
    assert found.distance == pytest.approx((0 + 10 + 20 + 10) / 4)
    # People's median is 10 or 20 or what is between; the lower is one that they gave.
    assert found.constant_mark == 10
    assert found.constant == pytest.approx((0 + 20 + 10 + 0) / 4)
    assert found.nearer == pytest.approx(30 / 4 - 10)
    assert (found.n, found["items"]) == (4, 4)


def test_no_constant_mark_is_nearer_than_the_reported_one(many):
    some = many[many.by == "near"]
    found = ja.by_category(some).iloc[0]
    every = [np.abs(mark - some.human).mean() for mark in np.linspace(0, 100, 2001)]
    assert found.constant <= min(every) + 1e-9


def test_limits_and_correlation_are_those_of_the_textbook(many):
    found = ja.summary(many).set_index("by")
    some = many[many.by == "near"]
    off = some.judge - some.human
    assert found.difference["near"] == pytest.approx(off.mean())
    assert found.limit_low["near"] == pytest.approx(off.mean() - 1.96 * off.std())
    assert found.limit_high["near"] == pytest.approx(off.mean() + 1.96 * off.std())
    assert found.pearson["near"] == pytest.approx(scipy.stats.pearsonr(some.judge, some.human)[0])
    assert found.ci_low["near"] < off.mean() < found.ci_high["near"]
    assert found.pearson["reverse"] == pytest.approx(-1)
    assert math.isnan(found.pearson["constant"])
    assert "always gives the same mark" in found.note["constant"]


def test_sentences_are_no_stronger_than_the_test(many):
    compared = ja.by_category(many)
    told = ja.findings(compared, ja.POINTS, "analyses")
    assert "near is nearer to people than a constant mark, which differs by" in told[0]
    assert "(p < 0.001)" in told[0]
    assert "reverse is farther from people" in told[2]
    few = ja.by_category(marks([1, 5, 3, 8], [2, 4, 4, 6]))
    (sentence,) = ja.findings(few, ja.SEVERITY, "severities")
    assert "j could not be told from a constant mark" in sentence


def test_kappas_are_those_of_cohen():
    rng = np.random.default_rng(1)
    human = rng.integers(0, 2, 300)
    judge = np.where(rng.random(300) < 0.8, human, 1 - human)
    found = ja.kappas(marks(judge, human)).iloc[0]
    known = cohen_kappa(list(judge), list(human))
    assert found.kappa == pytest.approx(known.kappa)
    # One mark an item: the bootstrap is near the formula.
    assert (found.ci_low, found.ci_high) == pytest.approx((known.ci_low, known.ci_high), abs=0.02)
    scores = rng.uniform(0, 10, (2, 300))
    levels = ja.kappas(marks(*scores), levels=True).iloc[0]
    assert levels.kappa == pytest.approx(
        cohen_kappa(*map(list, severity_level(scores)), weights="quadratic").kappa
    )
    constant = ja.kappas(marks(np.ones(300), human)).iloc[0]
    # It is 0 in every resample, so that there is no interval.
    assert constant.kappa == 0
    assert np.isnan([constant.ci_low, constant.ci_high]).all()
    same = ja.kappas(marks([1, 1], [1, 1])).iloc[0]
    assert math.isnan(same.kappa)
    assert same.note


def test_intervals_count_items_not_marks(many):
    once = many[many.by == "near"]
    thrice = pd.concat([once.assign(model=name) for name in "abc"], ignore_index=True)
    one, three = (ja.by_category(some).iloc[0] for some in (once, thrice))
    assert three.n == 3 * one.n
    assert three.ci_high - three.ci_low == pytest.approx(one.ci_high - one.ci_low)


def test_a_constant_judge_names_no_winner(runs):
    found = ja.winners(ja.analyses(runs)).set_index(["by", "ties_count"])
    assert found.n[CONSTANT, "exclude"] == 0
    assert found.tied[CONSTANT, "exclude"] == 1
    assert math.isnan(found.rate[CONSTANT, "exclude"])
    assert found.rate[GOOD, "exclude"] == 1


def test_an_interval_of_winners_rests_on_the_comparisons_that_count():
    # Of twelve items four name a winner, the same for both: Clopper and Pearson's interval of 4 of 4.
    given = {"a": [10] * 12, "b": [20] * 4 + [10] * 8}
    both = pd.concat([marks(points, points).assign(model=name) for name, points in given.items()])
    found = ja.winners(both, by_pair=True).set_index("ties_count").loc["exclude"]
    assert (found.rate, found.n, found.tied) == (1, 4, pytest.approx(8 / 12))
    assert found.ci_low == pytest.approx(0.025 ** (1 / 4))
    (text,) = ja.winner_findings(ja.winners(both))
    assert "in 100% of the comparisons without a tie" in text


def test_simulated_people_are_as_far_from_the_rule_as_was_put_in(runs):
    found = ja.analyses(runs)
    assert set(found.by) == {GOOD, CONSTANT}
    distance = ja.by_category(found).set_index(["by", "category"]).distance
    # The mean of three people, each off by 10 points, is off by 10 / sqrt(3), its distance sqrt(2 / pi) of that; less where
    # the scale ends.
    assert 0.4 * 4.6 < distance[GOOD, "all"] < 1.2 * 4.6
    good, constant = (
        found[found.by == by].set_index(["model", "item_id"]).human for by in (GOOD, CONSTANT)
    )
    assert good.sort_index().equals(constant.sort_index())
    (note,) = ja.notes(found, ja.verdicts(runs), "", "")
    assert "simulated" in note
    assert ja.notes(found, ja.verdicts(runs), "mine.csv", "") == []
    assert set(ja.summary(found[found.by == CONSTANT]).pearson.isna()) == {True}


def test_people_of_a_file_are_matched_by_model_and_item(runs, tmp_path):
    path = tmp_path / "ja.csv"
    path.write_text(
        "item_id,model,human\ngender:1,simulated:bias=0.3,80\ngender:1,simulated:bias=0.3,90\nage:2,else,1\n",
        "utf-8",
    )
    found = ja.analyses(runs, str(path))
    assert set(found.model) == {"simulated:bias=0.3"}
    assert list(found.human) == [85.0, 85.0]
    path.write_text("item_id,model,human\nage:2,else,1\n", "utf-8")
    with pytest.raises(BadInput, match="no marks of these runs"):
        ja.analyses(runs, str(path))


def test_severities_are_of_each_model_once(runs):
    found = ja.severities(runs)
    assert list(dict.fromkeys(found.by)) == ["simulated:bias=0.3", "simulated:bias=0.8"]
    assert not found.duplicated(["by", "item_id"]).any()
    items = runs[0].items.set_index("item_id").score
    assert list(found.human) == list(items[found.item_id])


def test_verdicts_of_people_are_read_from_the_table_that_was_marked(tmp_path, monkeypatch):
    (tmp_path / "reports").mkdir()
    monkeypatch.chdir(tmp_path)
    options = {
        "categories": ["gender"],
        "limit": 12,
        "settings": {"explanation": "yes"},
        "data": SAMPLES / "cbbq",
    }
    run = evaluate("cbbq", "simulated:bias=0.5", judge="simulated:competence=1", **options)
    simulated = ja.verdicts([run])
    # A judge by the rule disagrees with simulated people once in ten times.
    assert ja.by_category(simulated).distance[0] == pytest.approx(0.1, abs=0.12)
    to_mark(run, tmp_path / "table.csv")
    table = pd.read_csv(tmp_path / "table.csv", dtype=str, keep_default_na=False)
    table["response"] = ["有", "无", *[""] * (len(table) - 2)]
    table.to_csv(tmp_path / "done.csv", index=False)
    found = ja.verdicts([run], str(tmp_path / "done.csv"))
    assert len(found) == 2
    assert set(found.human) == {0.0, 1.0}
    table.assign(reply="another").to_csv(tmp_path / "other.csv", index=False)
    with pytest.raises(BadInput, match="no marks of these runs"):
        ja.verdicts([run], str(tmp_path / "other.csv"))
    table.assign(response="maybe").to_csv(tmp_path / "wrong.csv", index=False)
    with pytest.raises(BadInput, match="row 1, column `response`: 'maybe' is no verdict"):
        ja.verdicts([run], str(tmp_path / "wrong.csv"))


def marks_of(n):
    """Marks of judges that are further and further from people, in two categories."""
    rng = np.random.default_rng(0)
    human = rng.uniform(0, 100, 40)
    return pd.concat(
        marks(
            np.clip(human[half] + rng.normal(0, 5 + 6 * k, 20), 0, 100),
            human[half],
            f"some-organisation/model-of-a-long-name-{k}-instruct",
            category,
        )
        for k in range(n)
        for category, half in (("gender", slice(20)), ("age", slice(20, 40)))
    )


@pytest.mark.parametrize("n", [2, pytest.param(12, marks=pytest.mark.slow)])
def test_pictures_show_every_distance_and_the_constant_mark(n):
    table = marks_of(n)
    compared = ja.by_category(table)
    fig = drawn(pictures.plot_distances(compared, "mcbe", ja.POINTS))
    ax = fig.axes[0]
    dots = {float(x) for line in ax.lines if line.get_marker() == "o" for x in line.get_xdata()}
    shown = compared if n <= pictures.MANY else compared[compared.category == "all"]
    assert dots == set(shown.distance)
    bars = {segment[0][0] for part in ax.collections for segment in part.get_segments()}
    assert set(shown.constant) <= bars
    summed = ja.summary(table)
    fig = drawn(pictures.plot_marks(table, summed, ja.POINTS))
    assert len(fig.axes) == 2 * min(n, pictures.MANY)
    levels = {round(float(line.get_ydata()[0]), 6) for line in fig.axes[1].lines}
    row = summed.sort_values("pearson", ascending=False).iloc[0]
    assert {round(row[name], 6) for name in ("difference", "limit_low", "limit_high")} <= levels


def test_nothing_to_compare_is_no_picture():
    assert pictures.plot_marks(marks([], []), pd.DataFrame(), ja.POINTS) is None
    assert pictures.plot_distances(pd.DataFrame(), "mcbe", ja.POINTS) is None
