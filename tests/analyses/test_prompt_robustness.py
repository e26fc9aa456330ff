"""The same models with two prompt sets: pairs of runs, differences, sources of variance."""

import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from bench import run
from bench.analyses import prompt_robustness as robustness
from bench.analyses.prompt_robustness import (
    Result,
    compare,
    compare_scores,
    findings,
    open_runs,
    overview,
    pair_runs,
    pictures,
    same_order,
    table_12,
    title,
)
from bench.analyses.prompt_robustness.study import (
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
    generalise,
    interval,
)
from bench.metrics.bootstrap import DRAWS, Replicates, Sample
from bench.metrics.table import ALL, Headline
from bench.run.results import Run
from tests.helpers.drawing import drawn, ticks

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


def test_respondents_that_do_not_read_give_the_same_answers_under_both(asked: list[Run]) -> None:
    pairs, left_out = pair_runs(asked)
    assert [pair.name for pair in pairs] == RESPONDENTS
    assert {pair.prompts for pair in pairs} == {("bench-cbbq-3", "bench-cbbq-3#reworded")}
    assert all(pair.reworded == ["ambiguous", "disambiguous"] for pair in pairs)
    assert not any(pair.alike or pair.differ for pair in pairs)
    assert left_out.empty
    result = compare(pairs)
    assert set(result.table.metric) == {"s_amb", "s_disamb", "accuracy"}
    assert (result.table.difference == 0).all()
    assert (result.table.same == 1).all()
    whole = result.overall[result.overall.metric == "s_amb"].set_index("model")
    first = asked[0].scores()
    own = first.query("category == 'all' and metric == 's_amb' and preset == 'robust'").iloc[0]
    assert whole["first"][RESPONDENTS[0]] == pytest.approx(own.score)
    assert whole.n[RESPONDENTS[0]] == own.n


def test_only_reworded_tasks_are_compared_by_paired_differences(reader: list[Run]) -> None:
    pairs, _left_out = pair_runs(reader)
    assert overview(pairs).iloc[0, 3:].tolist() == ["ss", "pc", "seed: 0 and 7"]
    result = compare(pairs)
    assert set(result.table.task) == {"ss"}
    row = result.overall.iloc[0]
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
    first, second = result.values[int(str(row.name))]
    assert np.std(second[1:] - first[1:]) < np.hypot(*spread)


def test_what_makes_no_pair_is_refused_or_left_out(
    asked: list[Run], reader: list[Run], tmp_path: Path, refusal: Any
) -> None:
    assert "within one benchmark" in refusal(pair_runs, [*asked, *reader])
    assert "ask with --prompts reworded too" in refusal(pair_runs, asked[:2])
    assert "choose the second by its name" in refusal(pair_runs, asked, "bench-cbbq-9")
    assert "name one" in refusal(pair_runs, [*asked, asked[0]])
    assert "no model was asked with both" in refusal(pair_runs, [asked[0], asked[3]])
    pairs, left_out = pair_runs(asked[:-1])
    assert [pair.name for pair in pairs] == RESPONDENTS[:1]
    alone = [RESPONDENTS[1], "bench-cbbq-3", "asked in this wording alone"]
    assert left_out.to_numpy().tolist() == [alone]
    copied = shutil.copytree(asked[2].folder, tmp_path / "copy")
    text = (copied / "run.json").read_text("utf-8")
    sha = asked[2].about["asked"]["data_sha256"]
    (copied / "run.json").write_text(text.replace(sha, "0" * 64), "utf-8")
    pairs, left_out = pair_runs([asked[0], asked[1], Run.open(copied), asked[3]])
    assert [pair.name for pair in pairs] == RESPONDENTS[1:]
    assert list(left_out.why) == ["the two runs are on different data"] * 2
    same = [
        run.evaluate(
            "mcbe", "simulated:bias=0.3", out=tmp_path / out, tasks=["pc"], prompts=prompts
        )
        for out, prompts in (("a", None), ("b", "reworded"))
    ]
    assert "every task was asked in the same words" in refusal(compare, pair_runs(same)[0])


def test_without_runs_the_demonstration_is_asked_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runs = open_runs([], "cbbq", demo=RESPONDENTS[:1], options={"limit": 1, "preset": ""})
    assert [one.about["wording"]["variant"] for one in runs] == ["", "reworded"]
    again = open_runs([one.folder for one in runs], "cbbq")
    assert [one.folder for one in again] == [one.folder for one in runs]


def made(
    values: dict[str, dict[str, tuple[float, float]]],
    spread: float = 0.01,
    headline: Headline = AMBIGUOUS,
) -> Result:
    """Compare {model: {category: (first, second)}}, whose differences have this spread."""
    rng, pairs = np.random.default_rng(0), {}
    for model, row in values.items():
        one, other = Replicates(), Replicates()
        for category, (first, second) in row.items():
            place = (category, headline.task, headline.metric)
            one.add(place, np.full(1 + DRAWS, first), Sample(2000, 1))
            noise = np.concatenate([[0], rng.normal(0, spread, DRAWS)])
            other.add(place, second + noise, Sample(2000, 1))
        index = pd.MultiIndex.from_product([[c for c in row if c != ALL], [headline.task]])
        answered = {"n": 10, "same": 0.5, "valid_first": 1.0, "valid_second": 0.8}
        pairs[model] = (one, other, pd.DataFrame(answered, index=index))
    return compare_scores(pairs, [headline])


@pytest.fixture
def three() -> Result:
    return made(
        {
            "a": {"x": (0.1, 0.2), "y": (0.2, 0.2), ALL: (0.15, 0.20)},
            "b": {"x": (0.4, 0.3), "y": (0.5, 0.6), ALL: (0.45, 0.45)},
            "c": {"x": (0.3, 0.5), "y": (0.7, 0.9), ALL: (0.50, 0.70)},
        }
    )


def test_differences_limits_and_ranks_by_hand(three: Result) -> None:
    row = three.table.set_index(["model", "category"]).loc["c", "x"]
    assert (row["first"], row.second, row.difference) == pytest.approx((0.3, 0.5, 0.2))
    assert (row.ci_low, row.ci_high) == pytest.approx((0.2 - 0.0196, 0.2 + 0.0196), abs=0.003)
    assert row.detectable == pytest.approx(0.028, rel=0.1)
    assert (row.n, row.valid_first, row.valid_second, row["higher"]) == (10, 1.0, 0.8, "more bias")
    assert three.table.set_index(["model", "category"]).n["c", ALL] == 20
    limits, differences = three.limits.iloc[0], [0.1, 0, -0.1, 0.1, 0.2, 0.2]
    mean, sd = np.mean(differences), np.std(differences, ddof=1)
    assert (limits.limits_low, limits["mean"], limits.limits_high) == pytest.approx(
        (mean - 1.96 * sd, mean, mean + 1.96 * sd)
    )
    assert (limits.n, limits.beyond_chance, limits.of) == (6, 5, 6)
    assert limits.most == pytest.approx(0.2)
    # Six independent differences: their mean is surer than each by the square root of six.
    assert limits.ci_high - limits.ci_low == pytest.approx(2 * 1.96 * 0.01 / 6**0.5, rel=0.12)
    assert list(three.ranks.rank_first) == [1, 2, 3]
    assert list(three.ranks.change) == [0, 0, 0]
    assert list(same_order(three)[["same", "categories"]].iloc[0]) == [1, 2]
    swapped = {"a": {"x": (50, 60), ALL: (50, 60)}, "b": {"x": (40, 70), ALL: (40, 70)}}
    result = made(swapped, 1, SCORE)  # higher is better
    ranks = result.ranks[["rank_first", "rank_second", "change"]]
    assert ranks.to_numpy().tolist() == [[1, 2, 1], [2, 1, -1]]
    assert list(same_order(result)[["same", "categories"]].iloc[0]) == [0, 1]


def test_correlations_are_scipy_s_pooled_and_within_each_category(three: Result) -> None:
    table = three.correlated.set_index("coefficient")
    first, second = [0.1, 0.2, 0.4, 0.5, 0.3, 0.7], [0.2, 0.2, 0.3, 0.6, 0.5, 0.9]
    for name in ("pearson", "spearman", "kendall"):
        compute = getattr(stats, "kendalltau" if name == "kendall" else f"{name}r")
        expected = compute(first, second)
        assert table.pooled[name] == pytest.approx(expected.statistic)
        assert table.p[name] == pytest.approx(expected.pvalue)
        inside = [compute(first[k::2], second[k::2])[0] for k in (0, 1)]
        assert table.within_category[name] == pytest.approx(np.mean(inside))
        assert table.lowest_within[name] == pytest.approx(min(inside))
        assert table.highest_within[name] == pytest.approx(max(inside))
    assert list(table.n) == [6, 6, 6]
    assert list(table.defined) == list(table.categories) == [2, 2, 2]


def test_undefined_scores_are_kept_with_a_reason_and_count_nowhere() -> None:
    undefined = {
        name: {"x": (0.1 * k, 0.2 * k), "y": (0.1, math.nan), ALL: (0.1, math.nan)}
        for k, name in enumerate("abcd")
    }
    result = made(undefined)
    assert set(result.table.note) == {"", "no score under the second wording"}
    assert set(result.correlated.n) == {4}
    assert (result.correlated.defined == 1).all()
    assert (result.correlated.categories == 2).all()
    assert result.limits.n[0] == 4
    assert result.ranks.empty
    drawn(pictures.differences(result))


def test_findings_hold_the_mean_difference_and_what_could_not_be_read(three: Result) -> None:
    first, second = (text.replace("\u00a0", " ") for text in findings(three))
    assert first.startswith("Ambiguous: share: scores move by +0.08 on average (95 % interval")
    assert "Over 6 pairs of scores: Spearman's ρ = 0.93 (95" in first
    assert second.startswith("Few answers of a, b and c could be read")
    few = Result(three.table[:3], three.values, three.samples)
    assert "Over 2 pairs of scores: 2 points" in findings(few)[0]


def test_the_title_claims_an_effect_only_where_there_is_one() -> None:
    rng = np.random.default_rng(1)
    noise = {m: {f"c{k}": (0.5, 0.5 + rng.normal(0, 0.05)) for k in range(6)} for m in "abcd"}
    assert title(made(noise, 0.05)).startswith("Too few scores")  # the first is constant
    noise = {
        m: {c: (v[0] + rng.normal(0, 0.02), v[1]) for c, v in row.items()}
        for m, row in noise.items()
    }
    assert title(made(noise, 0.06)).startswith("No effect of the prompt set could be shown (ρ = ")
    assert title(made(noise, 0.001)).startswith("Scores depend on the prompt set (ρ = ")
    order = {
        m: {f"c{k}": (0.1 * j + k, 0.1 * j + k + 0.01) for k in range(6)}
        for j, m in enumerate("abcd")
    }
    assert title(made(order)).startswith("Both prompt sets order scores alike (ρ = 1.00)")


def test_all_eight_numbers_of_the_paper_s_table_12() -> None:
    rows = robustness.table_12_recomputed().set_index(["task", "coefficient"])
    assert list(rows.same) == ["yes"] * 4
    result = table_12()
    for (task, name), (value, p) in robustness.PRINTED.items():
        assert tuple(rows.loc[(task, name), ["printed", "printed_p"]]) == (value, p)
        own = result.table[result.table.task == task]
        compute = stats.spearmanr if name == "spearman" else stats.pearsonr
        expected = compute(own["first"], own.second)
        assert round(expected.statistic, 3) == float(value)
        assert round(float(rows.value[task, name]), 3) == float(value)
        assert float(f"{expected.pvalue:.2e}") == float(p)
    assert len(result.table) == 18
    assert same_order(result).same.tolist() == [3, 3]
    assert result.limits.most.round(2).tolist() == [1.47, 2.57]
    assert result.limits.ci_low.isna().all()
    fig = drawn(pictures.agreement(result))
    marks = [line for line in fig.axes[0].lines if line.get_marker() != "None"]
    assert [len(line.get_xdata()) for line in marks] == [3, 3, 3]
    assert list(marks[0].get_xdata()) == [34.83, 38.15, 30.64]
    lines = [line for line in fig.axes[1].lines if line.get_marker() != "None"]
    assert list(lines[0].get_ydata()) == pytest.approx([0.42, -1.47, 1.38])


def test_pictures_show_every_model() -> None:
    models = ["a", LONG, *(f"model-{k}" for k in range(12))]
    row = {name: (0.5 + k / 50, 0.8 + k / 50) for k, name in enumerate(("x", "y", "z", ALL))}
    result = made(dict.fromkeys(models, row))
    fig = drawn(pictures.differences(result))
    assert fig.get_suptitle().startswith("14 of 14 whole scores move")
    names = [name.replace("\n", "") for name in ticks(fig.axes[0].get_yticklabels())]
    assert names == models
    assert [len(part.get_segments()) for part in fig.axes[0].collections] == [1] * 14
    drawn(pictures.agreement(result))


def crossed(values: np.ndarray, *facets: str) -> Crossed:
    """Return a table of one category: values [items, *facets]."""
    scores = values.mean(0)
    return Crossed(facets, scores, values - scores, Sample(len(values), 1))


def test_components_of_items_and_prompt_sets_are_those_by_hand() -> None:
    table = crossed(np.array([[1.0, 1], [0, 1], [0, 0]]), WORDINGS)
    found = components(table)
    assert found.df.to_dict() == {"items": 2, "wordings": 1, "items x wordings": 2}
    assert found.mean_square.tolist() == pytest.approx([1 / 2, 1 / 6, 1 / 6])
    assert found.variance.tolist() == pytest.approx([1 / 6, 0, 1 / 6], abs=1e-12)
    assert ONE_DEGREE in found.note["wordings"]
    # 1/6 over 3 items, and 1/6 over 3 items times 2 prompt sets.
    assert error_variance(found, table.sizes) == pytest.approx(1 / 18 + 1 / 36)
    plan = d_study(found, table.sizes)
    planned = plan.set_index("wordings")
    assert planned.error[8] ** 2 == pytest.approx(1 / 18 + 1 / 144)
    assert planned.half_width[8] == pytest.approx(1.959964 * planned.error[8])
    assert planned.g.isna().all()
    text = finding(found, plan, table.sizes, "Accuracy")
    assert "a score has a standard error of 0.289" in text
    assert "With 8 prompt sets in place of 2 it would be 0.25." in text
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


def test_intervals_are_as_wide_as_items_or_other_facets_ask() -> None:
    # Many seeds without any effect: that of items.
    values = np.repeat(np.random.default_rng(2).integers(0, 2, (30, 1)), 4, axis=1).astype(float)
    found = interval(crossed(values, SEEDS), (0, 1))
    error = stats.sem(values[:, 0]) * stats.t.ppf(0.975, 29)
    for name in ("items", "ci"):
        ends = (found[f"{name}_low"], found[f"{name}_high"])
        assert ends == pytest.approx((values.mean() - error, values.mean() + error))
    # Two seeds of independent answers do not widen it.
    rng, widths = np.random.default_rng(6), []
    for _ in range(40):
        found = interval(crossed((rng.random((60, 2)) < 0.3).astype(float), SEEDS), (0, 1))
        width = {name: found[f"{name}_high"] - found[f"{name}_low"] for name in ("ci", "items")}
        widths.append(width["ci"] / width["items"])
    assert np.median(widths) == pytest.approx(1, abs=0.1)
    # Items that do not differ have none of their own.
    found = interval(crossed(np.tile([[0.0, 1, 0, 0]], (10, 1)), ORDERS), (0, 2))
    assert np.isnan([found["items_low"], found["items_high"]]).all()
    high = 0.25 * (1 + stats.t.ppf(0.975, 3))
    assert (found["ci_low"], found["ci_high"]) == pytest.approx((0, high))


@pytest.mark.slow
@pytest.mark.parametrize(("prompts", "least"), [(2, 0.87), (4, 0.9), (8, 0.92)])
@pytest.mark.parametrize("spread", [0.0, 0.3, 0.8])
def test_an_interval_over_prompt_sets_holds_the_true_score(
    prompts: int, least: float, spread: float
) -> None:
    rng, held, narrow, n = np.random.default_rng(5), 0, 0, 400
    true = stats.norm.sf(0.5 / np.sqrt(1 + 0.7**2 + 0.4**2 + spread**2))
    for _ in range(n):
        latent = rng.normal(0, 0.7, (60, 1)) + rng.normal(0, spread, (1, prompts))
        latent = latent + rng.normal(0, np.sqrt(1 + 0.4**2), (60, prompts))
        found = interval(crossed((latent > 0.5).astype(float), WORDINGS), (0, 1))
        held += found["ci_low"] <= true <= found["ci_high"]
        narrow += found["items_low"] <= true <= found["items_high"]
    assert least <= held / n <= 0.99
    if spread == 0.8:
        assert narrow / n < 0.8


@pytest.fixture(scope="module")
def studied(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """Two respondents, the first of which prefers A, with all conditions crossed."""
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
    drawn(pictures.uncertainty(study.components, study.planned))
    # Who goes by position moves with the order.
    parts = [generalise(runs).components for runs in (studied[:2], studied[2:])]
    orders = [
        part[(part.metric == "s_amb") & (part.source == "orders")].variance.iloc[0]
        for part in parts
    ]
    assert orders[0] > 5 * orders[1]


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
    assert pictures.uncertainty(nothing.components, nothing.planned) is None
    # Who always says unknown has no number of disambiguous answers that name a person.
    options = {"data": "samples", "categories": ["age"], "repeats": 2}
    silent = run.evaluate("cbbq", "simulated:answer=C", out=tmp_path / "c", **options)
    (reason,) = generalise([silent]).left_out.why
    assert reason.startswith("Disambiguous")
    assert reason.endswith("no number under one of the conditions")
