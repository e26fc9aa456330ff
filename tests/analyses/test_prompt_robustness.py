"""The same models with two prompt sets: pairs of runs, differences, sources of variance."""

import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bench import run
from bench.analyses import prompt_robustness as robustness
from bench.analyses.prompt_robustness import (
    Result,
    by_model,
    compare,
    findings,
    headlines,
    open_runs,
    overview,
    pair_runs,
    pictures,
    same_order,
    table_12,
    title,
)
from bench.analyses.prompt_robustness.points import Points, points
from bench.analyses.prompt_robustness.study import generalise
from bench.analyses.prompt_robustness.variance import (
    MODELS,
    NEGATIVE,
    ONE_DEGREE,
    ORDERS,
    SEEDS,
    WORDINGS,
    Crossed,
    by_facet,
    components,
    d_study,
    error_variance,
    finding,
    interval,
)
from bench.metrics.bootstrap import DRAWS, Replicates, Sample
from bench.metrics.table import ALL, Headline
from bench.run.results import Run
from tests.helpers.drawing import drawn, ticks, told

RESPONDENTS = ["simulated:bias=0.2,seed=1", "simulated:bias=0.8,seed=2"]
LONG = "simulated:competence=0.8,position=0.3,refuse=0.1,seed=3"
AMBIGUOUS = Headline("ambiguous", "s_amb", "Ambiguous: share", "", True, True, (0, 1))
SCORE = Headline(
    "sc", "score", "Classification (100: all right)", "", False, False, (0, 100), worse="worse"
)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    folder, options = tmp_path_factory.mktemp("runs"), {"categories": ["gender", "age"]}
    every = [
        run.evaluate_all("cbbq", RESPONDENTS, folder / f"own{name}", prompts=name, **options)
        for name in ("", "reworded")
    ]
    return [one for runs in every for one in runs]


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """McBE with two prompt sets, of which the second has another seed, so answers differ."""
    folder, options = tmp_path_factory.mktemp("reader"), {"tasks": ["pc", "ss"]}
    more = ({"out": folder / "a"}, {"out": folder / "b", "prompts": "reworded", "seed": 7})
    return [run.evaluate("mcbe", "simulated:bias=0.3", **options, **own) for own in more]


def test_runs_of_a_model_in_two_wordings_are_a_pair(asked: list[Run]) -> None:
    pairs, left_out = pair_runs(asked)
    assert [pair.name for pair in pairs] == RESPONDENTS
    assert {pair.wordings for pair in pairs} == {("bench-cbbq-3", "bench-cbbq-3#reworded")}
    assert all(pair.reworded == ["ambiguous", "disambiguous"] for pair in pairs)
    assert not any(pair.alike or pair.differ for pair in pairs)
    assert left_out.empty
    pairs, left_out = pair_runs(asked[:-1])
    assert [pair.name for pair in pairs] == RESPONDENTS[:1]
    assert left_out.to_numpy().tolist() == [
        [RESPONDENTS[1], "bench-cbbq-3", "asked in this wording alone"]
    ]


def test_respondents_that_do_not_read_give_the_same_answers_under_both(asked: list[Run]) -> None:
    found = compare(pair_runs(asked)[0]).points.table
    assert set(found.metric) == {"s_amb", "s_disamb", "accuracy"}
    assert (found.difference == 0).all()
    assert (found.same == 1).all()
    whole = found[(found.category == ALL) & (found.metric == "s_amb")].set_index("model")
    first = asked[0].scores()
    own = first.query("category == 'all' and metric == 's_amb' and preset == 'robust'").iloc[0]
    assert whole["first"][RESPONDENTS[0]] == pytest.approx(own.score)
    assert whole.n[RESPONDENTS[0]] == own.n


def test_only_reworded_tasks_are_compared(reader: list[Run]) -> None:
    (pair,), _ = pair_runs(reader)
    assert (pair.reworded, pair.alike) == (["ss"], ["pc"])
    assert pair.differ == ["seed: 0 and 7"]
    assert [one.task for one in headlines([pair])] == ["ss"]
    shown = overview([pair]).iloc[0]
    assert (shown.same_words, shown.also_differ) == ("pc", "seed: 0 and 7")


def test_differences_are_those_of_the_two_score_tables_and_paired(reader: list[Run]) -> None:
    (pair,), _ = pair_runs(reader)
    found = compare([pair]).points
    row = found.table[found.table.category == ALL].iloc[0]
    scores = [
        one.scores().set_index(["category", "task", "metric", "preset"]).score for one in reader
    ]
    place = (ALL, "ss", "score", "robust")
    assert row.difference == pytest.approx(scores[1][place] - scores[0][place])
    assert row.difference != 0
    assert row.ci_low < row.difference < row.ci_high
    assert row.same < 1
    # Draws of the same items: narrower than of two runs apart.
    spread = [np.std(one.replicates()[ALL, "ss", "score"][1:]) for one in reader]
    first, second = found.values[int(str(row.name))]
    assert np.std(second[1:] - first[1:]) < np.hypot(*spread)


def test_what_makes_no_pair_is_refused(
    asked: list[Run], reader: list[Run], tmp_path: Path, refusal: Any
) -> None:
    assert "within one benchmark" in refusal(pair_runs, [*asked, *reader])
    assert "ask with --prompts reworded too" in refusal(pair_runs, asked[:2])
    assert "choose the second by its name" in refusal(pair_runs, asked, "bench-cbbq-9")
    assert "name one" in refusal(pair_runs, [*asked, asked[0]])
    assert "no model was asked in both wordings" in refusal(pair_runs, [asked[0], asked[3]])
    copied = shutil.copytree(asked[2].folder, tmp_path / "copy")
    text = (copied / "run.json").read_text("utf-8")
    sha = asked[2].about["asked"]["data_sha256"]
    (copied / "run.json").write_text(text.replace(sha, "0" * 64), "utf-8")
    pairs, left_out = pair_runs([asked[0], asked[1], Run.open(copied), asked[3]])
    assert [pair.name for pair in pairs] == RESPONDENTS[1:]
    assert list(left_out.why) == ["the two runs are on different data"] * 2
    same = run.evaluate("mcbe", "simulated:bias=0.3", out=tmp_path / "a", tasks=["pc"])
    again = run.evaluate(
        "mcbe", "simulated:bias=0.3", out=tmp_path / "b", tasks=["pc"], prompts="reworded"
    )
    assert "every task was asked in the same words" in refusal(compare, pair_runs([same, again])[0])


def test_without_runs_the_demonstration_is_asked_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = open_runs([], "cbbq", demo=RESPONDENTS[:1], options={"limit": 1, "preset": ""})
    assert [one.about["wording"]["variant"] for one in found] == ["", "reworded"]
    again = open_runs([one.folder for one in found], "cbbq")
    assert [one.folder for one in again] == [one.folder for one in found]


def made(
    values: dict[str, dict[str, tuple[float, float]]],
    spread: float = 0.01,
    headline: Headline = AMBIGUOUS,
    same: float = 0.5,
) -> Points:
    """Return points of {model: {category: (first, second)}}, whose differences have this spread."""
    rng, pairs = np.random.default_rng(0), {}
    for model, row in values.items():
        one, other = Replicates(headline.limits), Replicates(headline.limits)
        for category, (first, second) in row.items():
            place = (category, headline.task, headline.metric)
            one.add(place, np.full(1 + DRAWS, first), Sample(2000, 1))
            noise = np.concatenate([[0], rng.normal(0, spread, DRAWS)])
            other.add(place, second + noise, Sample(2000, 1))
        index = pd.MultiIndex.from_product([[c for c in row if c != ALL], [headline.task]])
        answered = pd.DataFrame(
            {"n": 10, "same": same, "valid_first": 1.0, "valid_second": 0.8}, index=index
        )
        pairs[model] = (one, other, answered)
    return points(pairs, [headline])


@pytest.fixture
def three() -> Points:
    return made(
        {
            "a": {"x": (0.1, 0.2), "y": (0.2, 0.2), ALL: (0.15, 0.20)},
            "b": {"x": (0.4, 0.3), "y": (0.5, 0.6), ALL: (0.45, 0.45)},
            "c": {"x": (0.3, 0.5), "y": (0.7, 0.9), ALL: (0.50, 0.70)},
        }
    )


def test_points_are_differences_with_intervals_and_counts(three: Points) -> None:
    row = three.table.set_index(["model", "category"]).loc["c", "x"]
    assert (row["first"], row.second, row.difference) == pytest.approx((0.3, 0.5, 0.2))
    assert (row.ci_low, row.ci_high) == pytest.approx((0.2 - 0.0196, 0.2 + 0.0196), abs=0.003)
    assert row.detectable == pytest.approx(0.028, rel=0.1)
    assert (row.n, row.valid_first, row.valid_second, row["higher"]) == (10, 1.0, 0.8, "more bias")
    assert three.table.set_index(["model", "category"]).n["c", ALL] == 20


def test_correlations_are_scipy_s_pooled_and_within_each_category(three: Points) -> None:
    found = robustness.correlate(three).set_index("coefficient")
    first, second = [0.1, 0.2, 0.4, 0.5, 0.3, 0.7], [0.2, 0.2, 0.3, 0.6, 0.5, 0.9]
    for name, compute in (
        ("pearson", stats.pearsonr),
        ("spearman", stats.spearmanr),
        ("kendall", stats.kendalltau),
    ):
        expected = compute(first, second)
        assert found.value[name] == pytest.approx(expected.statistic)
        assert found.p[name] == pytest.approx(expected.pvalue)
        inside = [
            compute([0.1, 0.4, 0.3], [0.2, 0.3, 0.5])[0],
            compute([0.2, 0.5, 0.7], [0.2, 0.6, 0.9])[0],
        ]
        assert found.within_category[name] == pytest.approx(np.mean(inside))
        assert (found.lowest[name], found.highest[name]) == pytest.approx(
            (min(inside), max(inside))
        )
    assert list(found.n) == [6, 6, 6]
    assert list(found.defined) == list(found.categories) == [2, 2, 2]


def test_limits_of_agreement_by_hand(three: Points) -> None:
    row = robustness.limits(three).iloc[0]
    differences = [0.1, 0, -0.1, 0.1, 0.2, 0.2]
    assert row["mean"] == pytest.approx(np.mean(differences))
    sd = np.std(differences, ddof=1)
    assert (row.limits_low, row.limits_high) == pytest.approx(
        (np.mean(differences) - 1.96 * sd, np.mean(differences) + 1.96 * sd)
    )
    assert (row.n, row.beyond_chance, row.of) == (6, 5, 6)
    assert row.most == pytest.approx(0.2)
    # Six independent differences: their mean is surer than each by the square root of six.
    assert row.ci_high - row.ci_low == pytest.approx(2 * 1.96 * 0.01 / math.sqrt(6), rel=0.12)


def test_ranks_follow_the_headline_s_direction(three: Points) -> None:
    found = robustness.rank_changes(three.table, [AMBIGUOUS])
    assert list(found.rank_first) == [1, 2, 3]
    assert list(found.change) == [0, 0, 0]
    points = made(
        {"a": {"x": (50, 60), ALL: (50, 60)}, "b": {"x": (40, 70), ALL: (40, 70)}}, 1, SCORE
    )
    found = robustness.rank_changes(points.table, [SCORE])
    assert found[["rank_first", "rank_second", "change"]].to_numpy().tolist() == [
        [1, 2, 1],
        [2, 1, -1],
    ]
    assert list(same_order(points.table)[["same", "categories"]].iloc[0]) == [0, 1]
    assert list(same_order(three.table)[["same", "categories"]].iloc[0]) == [1, 2]


def test_undefined_scores_are_kept_with_a_reason_and_count_nowhere() -> None:
    found = made(
        {
            name: {"x": (0.1 * k, 0.2 * k), "y": (0.1, math.nan), ALL: (0.1, math.nan)}
            for k, name in enumerate("abcd")
        }
    )
    assert set(found.table.note) == {"", "no score under the second wording"}
    correlated, limits = robustness.correlate(found), robustness.limits(found)
    assert set(correlated.n) == {4}
    assert (correlated.defined == 1).all()
    assert (correlated.categories == 2).all()
    assert limits.n[0] == 4
    assert robustness.rank_changes(found.table, [AMBIGUOUS]).empty
    assert (
        "a, Ambiguous: share: cannot be compared: no score under the second wording."
        in by_model(result_of(found))
    )


def result_of(found: Points, headline: Headline = AMBIGUOUS) -> Result:
    return Result.of(found, [headline])


def test_sentences_are_never_stronger_than_the_intervals(three: Points) -> None:
    models = [text.replace("\u00a0", " ") for text in by_model(result_of(three))]
    assert models[0].startswith(
        "a, Ambiguous: share: 0.05 higher under the second wording (95 % interval +0.03"
    )
    assert models[1].startswith("b, Ambiguous: share: no difference could be shown: 0.00 (95 %")
    assert models[1].endswith("These data would have shown one of 0.03.")
    assert "50% of 20 questions were answered alike" in models[2]
    first, second, *_ = findings(result_of(three))
    assert "over 6 pairs of scores Spearman's ρ = 0.93 (95" in first
    assert "0 of 3 models change places." in first
    assert "5 of 6 by more than chance (without any effect about 0 would)" in first
    assert "100% of its answers could be read under the first wording, 80% under" in second
    few = three._replace(table=three.table[:3])
    assert "no correlation exists (2 points" in findings(result_of(few))[0]


def test_the_title_claims_an_effect_only_where_there_is_one() -> None:
    def headed(found: Points) -> str:
        return title(result_of(found))

    rng = np.random.default_rng(1)
    noise = {m: {f"c{k}": (0.5, 0.5 + rng.normal(0, 0.05)) for k in range(6)} for m in "abcd"}
    assert headed(made(noise, 0.05)).startswith("Too few scores")  # the first is constant
    noise = {
        m: {c: (v[0] + rng.normal(0, 0.02), v[1]) for c, v in row.items()}
        for m, row in noise.items()
    }
    assert headed(made(noise, 0.06)).startswith("No effect of the wording could be shown (ρ = ")
    assert headed(made(noise, 0.001)).startswith("Scores depend on the wording (ρ = ")
    order = {
        m: {f"c{k}": (0.1 * j + k, 0.1 * j + k + 0.01) for k in range(6)}
        for j, m in enumerate("abcd")
    }
    assert headed(made(order)).startswith("Both wordings order scores alike (ρ = 1.00)")


@settings(max_examples=3)
@given(st.integers(0, 10_000))
def test_nothing_moves_where_both_prompt_sets_are_one(seed: int) -> None:
    values = np.random.default_rng(seed).random((3, 4))
    rows = {"abc"[k]: {f"c{n}": (v, v) for n, v in enumerate(row)} for k, row in enumerate(values)}
    found = made(rows, 0.0)
    limits = robustness.limits(found).iloc[0]
    assert (limits["mean"], limits.sd, limits.beyond_chance) == (0, 0, 0)
    assert robustness.correlate(found).value.tolist() == pytest.approx([1, 1, 1])
    assert same_order(found.table).same[0] == 4


def test_all_eight_numbers_of_the_paper_s_table_12() -> None:
    rows = robustness.table_12_recomputed().set_index(["task", "coefficient"])
    assert list(rows.same) == ["yes"] * 4
    table = table_12().points.table
    for (task, name), (value, p) in robustness.PRINTED.items():
        assert tuple(rows.loc[(task, name), ["printed", "printed_p"]]) == (value, p)
        own = table[table.task == task]
        compute = stats.spearmanr if name == "spearman" else stats.pearsonr
        expected = compute(own["first"], own.second)
        assert (
            round(expected.statistic, 3) == float(value) == round(float(rows.value[task, name]), 3)
        )
        assert float(f"{expected.pvalue:.2e}") == float(p)
    assert len(table) == 18
    assert same_order(table).same.tolist() == [3, 3]
    limits = table_12().limits.set_index("task")
    assert limits.most.round(2).tolist() == [1.47, 2.57]
    assert limits.ci_low.isna().all()
    assert (table[table.task == "bs"].difference < 0).all()


def test_no_other_cells_give_the_printed_numbers() -> None:
    table = table_12().points.table
    both = stats.pearsonr(table["first"], table.second)
    assert f"{both.pvalue:.2e}" not in ("2.63e-10", "2.76e-11")
    for _, rows in table.groupby(["task", "category"]):
        assert stats.pearsonr(rows["first"], rows.second).pvalue > 1e-3


def test_the_picture_of_table_12_shows_its_scores_and_limits() -> None:
    fig = drawn(pictures.agreement(table_12()))
    left, right = fig.axes[:2]
    marks = [line for line in left.lines if line.get_marker() != "None"]
    assert [len(line.get_xdata()) for line in marks] == [3, 3, 3]
    assert list(marks[0].get_xdata()) == [34.83, 38.15, 30.64]
    assert list(right.lines[0].get_ydata()) == pytest.approx([0.42, -1.47, 1.38])
    assert fig.get_suptitle().startswith("Both wordings order scores alike (ρ = 0.97 to 1.00)")
    assert any(text.startswith("mean") for text in told(right))
    assert "better →" in left.get_xlabel()


@pytest.mark.parametrize("models", [["a"], ["a", LONG], [f"model-{k}" for k in range(12)]])
def test_pictures_show_every_model(models: list[str]) -> None:
    row = {
        category: (0.5 + k / 50, 0.8 + k / 50) for k, category in enumerate(("x", "y", "z", ALL))
    }
    result = result_of(made(dict.fromkeys(models, row)))
    fig = drawn(pictures.differences(result))
    assert fig.get_suptitle().startswith(f"{len(models)} of {len(models)} whole scores move")
    names = [name.replace("\n", "") for name in ticks(fig.axes[0].get_yticklabels())]
    assert names == models[::-1]
    assert "more bias →" in fig.axes[0].get_xlabel()
    drawn(pictures.agreement(result))


def crossed(values: np.ndarray, *facets: str) -> Crossed:
    """Return a table of one category: values [items, *facets]."""
    scores = values.mean(0)
    return Crossed(facets, scores, values - scores, Sample(len(values), 1))


def test_components_of_items_and_wordings_are_those_by_hand() -> None:
    table = crossed(np.array([[1.0, 1], [0, 1], [0, 0]]), WORDINGS)
    found = components(table)
    assert found.df.to_dict() == {"items": 2, "wordings": 1, "items x wordings": 2}
    assert found.mean_square.tolist() == pytest.approx([1 / 2, 1 / 6, 1 / 6])
    assert found.variance.tolist() == pytest.approx([1 / 6, 0, 1 / 6], abs=1e-12)
    assert ONE_DEGREE in found.note["wordings"]
    # 1/6 over 3 items, and 1/6 over 3 items times 2 wordings.
    assert error_variance(found, table.sizes) == pytest.approx(1 / 18 + 1 / 36)
    planned = d_study(found, table.sizes).set_index("wordings")
    assert planned.error[8] ** 2 == pytest.approx(1 / 18 + 1 / 144)
    assert planned.half_width[8] == pytest.approx(1.959964 * planned.error[8])
    assert planned.g.isna().all()


def test_a_negative_component_is_set_to_zero_with_a_note() -> None:
    found = components(crossed(np.array([[1.0, 0], [0, 1], [1, 0], [0, 1]]), WORDINGS))
    assert found.variance["wordings"] == 0
    assert NEGATIVE in found.note["wordings"]


def test_components_of_four_facets_are_found_again() -> None:
    sizes = {MODELS: 4, WORDINGS: 3, ORDERS: 3, SEEDS: 2}
    true = {
        "items": 1.0,
        "models": 0.5,
        "wordings": 0.3,
        "orders": 0.2,
        "items x wordings": 0.4,
        "models x wordings": 0.3,
        "items x models x wordings x orders x seeds": 0.6,
    }
    rng, axes = np.random.default_rng(0), {"items": 12, **sizes}
    means = []
    for _ in range(150):
        values = np.zeros(tuple(axes.values()))
        for source, variance in true.items():
            held = source.split(" x ")
            shape = [size if name in held else 1 for name, size in axes.items()]
            values = values + rng.normal(0, variance**0.5, shape)
        means.append(components(crossed(values, *sizes)).variance)
    found = pd.DataFrame(means).mean()
    for source, variance in true.items():
        assert found[source] == pytest.approx(variance, rel=0.25)
    # What is not there is hardly found; estimates that are set to 0 leave a little.
    assert found.drop(list(true)).max() < 0.06


def test_an_analysis_of_variance_by_least_squares_gives_the_same_mean_squares() -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(size=(5, 3, 2))
    found = components(crossed(values, WORDINGS, SEEDS))
    long = pd.DataFrame(
        [(i, w, s, values[i, w, s]) for i in range(5) for w in range(3) for s in range(2)],
        columns=["items", "wordings", "seeds", "y"],
    )

    def explained(*terms: str) -> float:
        parts = [np.ones((len(long), 1))]
        for term in terms:
            cells = long.groupby(term.split(" x ")).ngroup()
            parts.append(pd.get_dummies(cells).to_numpy(float))
        design = np.hstack(parts)
        fitted = design @ np.linalg.lstsq(design, long.y.to_numpy(), rcond=None)[0]
        return float(((fitted - long.y.mean()) ** 2).sum())

    main = explained("items", "wordings", "seeds")
    assert found.mean_square["items"] * 4 == pytest.approx(explained("items"))
    both = explained("items", "wordings", "seeds", "items x wordings")
    assert found.mean_square["items x wordings"] * 8 == pytest.approx(both - main)
    total = float(((long.y - long.y.mean()) ** 2).sum())
    assert (found.mean_square * found.df).sum() == pytest.approx(total)


def test_coefficients_are_those_of_their_formulas() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(size=(20, 1, 1)) + rng.normal(size=(1, 5, 1)) + rng.normal(size=(20, 5, 4))
    table = crossed(values, MODELS, WORDINGS)
    found = components(table)
    part = found.variance
    relative = part["items x models"] / 20 + part["models x wordings"] / 2
    relative += part["items x models x wordings"] / 40
    absolute = relative + part["items"] / 20 + part["wordings"] / 2 + part["items x wordings"] / 40
    row = d_study(found, table.sizes).set_index("wordings").loc[2]
    assert row.g == pytest.approx(part["models"] / (part["models"] + relative))
    assert row.dependability == pytest.approx(part["models"] / (part["models"] + absolute))
    assert row.error**2 == pytest.approx(absolute)
    assert by_facet(found).sum() == pytest.approx(1)


def test_an_interval_of_one_wording_and_many_seeds_of_no_effect_is_that_of_items() -> None:
    values = np.repeat(np.random.default_rng(2).integers(0, 2, (30, 1)), 4, axis=1).astype(float)
    found = interval(crossed(values, SEEDS), components(crossed(values, SEEDS)), (0, 1))
    error = stats.sem(values[:, 0]) * stats.t.ppf(0.975, 29)
    assert (found.items_low, found.items_high) == pytest.approx(
        (values.mean() - error, values.mean() + error)
    )
    assert (found.ci_low, found.ci_high) == pytest.approx((found.items_low, found.items_high))


def test_two_seeds_of_independent_answers_do_not_widen_an_interval() -> None:
    rng, widths = np.random.default_rng(6), []
    for _ in range(40):
        table = crossed((rng.random((60, 2)) < 0.3).astype(float), SEEDS)
        found = interval(table, components(table), (0, 1))
        widths.append((found.ci_high - found.ci_low) / (found.items_high - found.items_low))
    assert np.median(widths) == pytest.approx(1, abs=0.1)


def test_items_that_do_not_differ_have_no_interval_of_their_own() -> None:
    table = crossed(np.tile([[0.0, 1, 0, 0]], (10, 1)), ORDERS)
    found = interval(table, components(table), (0, 2))
    assert np.isnan([found.items_low, found.items_high]).all()
    assert (found.ci_low, found.ci_high) == pytest.approx((0, 0.25 * (1 + stats.t.ppf(0.975, 3))))


@pytest.mark.slow
@pytest.mark.parametrize(("wordings", "least"), [(2, 0.87), (4, 0.9), (8, 0.92)])
@pytest.mark.parametrize("spread", [0.0, 0.3, 0.8])
def test_an_interval_over_wordings_holds_the_true_score(
    wordings: int,
    least: float,
    spread: float,
) -> None:
    rng, held, narrow, n = np.random.default_rng(5), 0, 0, 400
    true = stats.norm.sf(0.5 / np.sqrt(1 + 0.7**2 + 0.4**2 + spread**2))
    for _ in range(n):
        latent = rng.normal(0, 0.7, (60, 1)) + rng.normal(0, spread, (1, wordings))
        latent = latent + rng.normal(0, np.sqrt(1 + 0.4**2), (60, wordings))
        table = crossed((latent > 0.5).astype(float), WORDINGS)
        found = interval(table, components(table), (0, 1))
        held += found.ci_low <= true <= found.ci_high
        narrow += found.items_low <= true <= found.items_high
    assert least <= held / n <= 0.99
    if spread == 0.8:
        assert narrow / n < 0.8


@pytest.fixture(scope="module")
def studied(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """Two respondents that prefer A, in two wordings, three orders of options and two seeds."""
    folder = tmp_path_factory.mktemp("runs")
    options = {"data": "samples", "categories": ["gender", "age"], "repeats": 2}
    options["settings"] = {"option_order": "rotated"}
    models = ["simulated:bias=0.3,position=0.5,seed=1", "simulated:bias=0.8,seed=2"]
    return [
        run.evaluate("cbbq", model, out=folder / f"{k}{name}", prompts=name or None, **options)
        for k, model in enumerate(models)
        for name in ("", "reworded")
    ]


def test_a_study_of_runs_is_one_crossed_table(studied: list[Run]) -> None:
    study = generalise(studied)
    assert study.left_out.empty
    assert set(study.components.model) == {ALL}
    row = study.scores.set_index(["model", "metric"]).loc["simulated:bias=0.8,seed=2", "s_amb"]
    assert row[["wordings", "orders", "seeds"]].tolist() == [2, 3, 2]
    scores = [
        one.scores().query("category == 'all' and metric == 's_amb'").score.iloc[0]
        for one in studied
    ]
    assert row.score == pytest.approx(np.mean(scores[2:]))
    assert row.ci_low <= row.items_low < row.score < row.items_high <= row.ci_high
    # They do not read, so their answers are the same in other words.
    by_source = study.components[study.components.metric == "s_amb"].set_index("source").variance
    assert by_source[[name for name in by_source.index if "wordings" in name]].max() < 1e-12
    assert by_source["models"] > 0
    assert set(study.planned.wordings) == {1, 2, 4, 8}
    assert len(study.findings) == 3


def test_a_respondent_that_goes_by_position_moves_with_the_order(studied: list[Run]) -> None:
    first, other = generalise(studied[:2]), generalise(studied[2:])
    variances = [
        part.components[part.components.metric == "s_amb"].set_index("source").variance["orders"]
        for part in (first, other)
    ]
    assert variances[0] > 5 * variances[1]


def test_what_makes_no_crossed_table_is_left_out(studied: list[Run], tmp_path: Path) -> None:
    options = {"data": "samples", "categories": ["gender", "age"]}
    alone = run.evaluate("cbbq", "simulated:bias=0.4", out=tmp_path / "a", **options)
    options["settings"] = {"prompting": "Q+IF"}
    plain = run.evaluate("cbbq", "simulated:bias=0.8,seed=2", out=tmp_path / "b", **options)
    study = generalise([*studied, alone, plain])
    why = dict(zip(study.left_out.model, study.left_out.why, strict=True))
    assert why["simulated:bias=0.4"] == "asked in one way alone"
    assert why["simulated:bias=0.8,seed=2"] == "asked with other options or data"
    nothing = generalise([alone])
    assert nothing.scores.empty
    assert nothing.components.empty
    assert nothing.findings == []


def test_a_score_without_a_number_has_a_reason(tmp_path: Path) -> None:
    # Who always says unknown has no number of disambiguous answers that name a person.
    options = {"data": "samples", "categories": ["age"], "repeats": 2}
    silent = run.evaluate("cbbq", "simulated:answer=C", out=tmp_path, **options)
    (why,) = generalise([silent]).left_out.why
    assert why.startswith("Disambiguous")
    assert why.endswith("no number under one of the conditions")


def test_a_finding_says_what_two_wordings_are_worth() -> None:
    table = crossed(np.array([[1.0, 1], [0, 1], [0, 0]]), WORDINGS)
    found = components(table)
    text = finding(found, d_study(found, table.sizes), table.sizes, "Accuracy")
    assert "a score has a standard error of 0.289." in text
    assert "With 8 wordings in place of 2 it would be 0.250." in text
