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
from bench.analyses.prompt_robustness import Result, compare, pair_runs, pictures, same_order, title
from bench.analyses.prompt_robustness.study import (
    MODELS,
    NEGATIVE,
    ORDERS,
    SEEDS,
    WORDINGS,
    Crossed,
    components,
    d_study,
    error_variance,
    generalise,
    interval,
)
from bench.metrics.bootstrap import DRAWS, Replicates, Sample
from bench.metrics.table import ALL, Headline
from bench.run import Run
from tests.helpers.drawing import drawn

RESPONDENTS = ["simulated:bias=0.2,seed=1", "simulated:bias=0.8,seed=2"]
AMBIGUOUS = Headline("ambiguous", "s_amb", "Ambiguous: share", "", True, True, (0, 1))
POINTS = Headline("sc", "score", "Classification", "", False, False, (0, 100), worse="worse")


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
    assert left_out.empty
    result = compare(pairs)
    assert set(result.table.metric) == {"s_amb", "s_disamb", "accuracy"}
    assert (result.table.difference == 0).all()
    assert (result.table.same == 1).all()


def test_only_reworded_tasks_are_compared_by_paired_differences(reader: list[Run]) -> None:
    pairs, _left_out = pair_runs(reader)
    assert robustness.overview(pairs).iloc[0, 3:].tolist() == ["ss", "pc", "seed: 0 and 7"]
    result = compare(pairs)
    assert set(result.table.task) == {"ss"}
    row = result.overall.iloc[0]
    keys = ["category", "task", "metric", "preset"]
    first, second = (
        one.scores().set_index(keys).score[ALL, "ss", "score", "robust"] for one in reader
    )
    assert row.difference == pytest.approx(second - first)
    assert row.ci_low < row.difference < row.ci_high
    assert row.same < 1
    # Draws of the same items: narrower than of two runs apart.
    apart = [np.std(one.replicates()[ALL, "ss", "score"][1:]) for one in reader]
    one, other = result.values[int(str(row.name))]
    assert np.std(other[1:] - one[1:]) < np.hypot(*apart)


def test_what_makes_no_pair_is_refused_or_left_out(
    asked: list[Run], reader: list[Run], own_folder: Path, refusal: Any
) -> None:
    for message, *arguments in (
        ("within one benchmark", [*asked, *reader]),
        ("ask with --prompts reworded too", asked[:2]),
        ("choose the second by its name", asked, "bench-cbbq-9"),
        ("name one", [*asked, asked[0]]),
        ("no model was asked with both", [asked[0], asked[3]]),
    ):
        assert message in refusal(pair_runs, *arguments)
    pairs, left_out = pair_runs(asked[:-1])
    assert [pair.name for pair in pairs] == RESPONDENTS[:1]
    assert list(left_out.model) == RESPONDENTS[1:]
    copied = shutil.copytree(asked[2].folder, own_folder / "copy")
    text = (copied / "run.json").read_text("utf-8")
    sha = asked[2].about["asked"]["data_sha256"]
    (copied / "run.json").write_text(text.replace(sha, "0" * 64), "utf-8")
    pairs, left_out = pair_runs([asked[0], asked[1], Run.open(copied), asked[3]])
    assert [pair.name for pair in pairs] == RESPONDENTS[1:]
    assert list(left_out.why) == ["the two runs are on different data"] * 2
    # Without runs, a demonstration is asked with both; McBE's task pc has the same words in both.
    options = {"limit": 1, "preset": "", "tasks": ["pc"]}
    same = robustness.open_runs([], "mcbe", demo=RESPONDENTS[:1], options=options)
    assert [one.about["wording"]["variant"] for one in same] == ["", "reworded"]
    assert "every task was asked in the same words" in refusal(compare, pair_runs(same)[0])


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
    return robustness.compare_scores(pairs, [headline])


@pytest.fixture(scope="module")
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
    limits, differences = three.limits.iloc[0], [0.1, 0, -0.1, 0.1, 0.2, 0.2]
    mean, sd = np.mean(differences), np.std(differences, ddof=1)
    assert (limits.limits_low, limits["mean"], limits.limits_high) == pytest.approx(
        (mean - 1.96 * sd, mean, mean + 1.96 * sd)
    )
    assert (limits.n, limits.beyond_chance, limits.of) == (6, 5, 6)
    # Six independent differences: their mean is surer than each by the square root of six.
    assert limits.ci_high - limits.ci_low == pytest.approx(2 * 1.96 * 0.01 / 6**0.5, rel=0.12)
    assert list(three.ranks.change) == [0, 0, 0]
    assert list(same_order(three)[["same", "categories"]].iloc[0]) == [1, 2]
    swapped = {"a": {"x": (50, 60), ALL: (50, 60)}, "b": {"x": (40, 70), ALL: (40, 70)}}
    ranks = made(swapped, 1, POINTS).ranks[["rank_first", "rank_second", "change"]]
    assert ranks.to_numpy().tolist() == [[1, 2, 1], [2, 1, -1]], "higher is better"


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
    assert list(table.n) == [6, 6, 6]
    # Undefined scores are kept with a reason and count nowhere.
    undefined = {
        name: {"x": (0.1 * k, 0.2 * k), "y": (0.1, math.nan), ALL: (0.1, math.nan)}
        for k, name in enumerate("abcd")
    }
    result = made(undefined)
    assert set(result.table.note) == {"", "no score under the second wording"}
    assert set(result.correlated.n) == {4}
    assert result.limits.n[0] == 4
    assert result.ranks.empty


def test_the_title_claims_an_effect_only_where_there_is_one() -> None:
    rng = np.random.default_rng(1)

    def scores(shift: float) -> dict[str, Any]:
        noise = rng.normal(0, shift, (4, 6, 2))
        return {
            m: {f"c{k}": tuple(0.5 + noise[j, k]) for k in range(6)} for j, m in enumerate("abcd")
        }

    noise = scores(0.05)
    assert title(made(noise, 0.06)).startswith("No effect of the prompt set could be shown")
    assert title(made(noise, 0.001)).startswith("Scores depend on the prompt set")


def test_all_eight_numbers_of_the_paper_s_table_12() -> None:
    rows = robustness.table_12_recomputed().set_index(["task", "coefficient"])
    assert list(rows.same) == ["yes"] * 4
    result = robustness.table_12()
    for (task, name), (value, p) in robustness.PRINTED.items():
        own = result.table[result.table.task == task]
        compute = stats.spearmanr if name == "spearman" else stats.pearsonr
        expected = compute(own["first"], own.second)
        assert round(expected.statistic, 3) == float(value)
        assert round(float(rows.value[task, name]), 3) == float(value)
        assert float(f"{expected.pvalue:.2e}") == float(p)
    assert len(result.table) == 18
    assert same_order(result).same.tolist() == [3, 3]
    assert result.limits.most.round(2).tolist() == [1.47, 2.57]
    axes = drawn(pictures.agreement(result)).axes
    marks = [next(line for line in ax.lines if line.get_marker() != "None") for ax in axes[:2]]
    assert list(marks[0].get_xdata()) == [34.83, 38.15, 30.64]
    assert list(marks[1].get_ydata()) == pytest.approx([0.42, -1.47, 1.38])


def crossed(values: Any, *facets: str) -> Crossed:
    """Return a table of one category: values [items, *facets]."""
    values = np.array(values, dtype=float)
    return Crossed(facets, values.mean(0), values - values.mean(0), Sample(len(values), 1))


def test_components_of_items_and_prompt_sets_are_those_by_hand() -> None:
    table = crossed([[1, 1], [0, 1], [0, 0]], WORDINGS)
    found = components(table)
    assert found.df.to_dict() == {"items": 2, "wordings": 1, "items x wordings": 2}
    assert found.mean_square.tolist() == pytest.approx([1 / 2, 1 / 6, 1 / 6])
    assert found.variance.tolist() == pytest.approx([1 / 6, 0, 1 / 6], abs=1e-12)
    # 1/6 over 3 items, and 1/6 over 3 items times 2 prompt sets.
    assert error_variance(found, table.sizes) == pytest.approx(1 / 18 + 1 / 36)
    planned = d_study(found, table.sizes).set_index("wordings")
    assert planned.error[8] ** 2 == pytest.approx(1 / 18 + 1 / 144)
    assert planned.half_width[8] == pytest.approx(1.959964 * planned.error[8])
    found = components(crossed([[1, 0], [0, 1], [1, 0], [0, 1]], WORDINGS))
    assert found.variance["wordings"] == 0
    assert NEGATIVE in found.note["wordings"]


def test_components_of_four_facets_are_found_again() -> None:
    sizes = {MODELS: 4, WORDINGS: 3, ORDERS: 3, SEEDS: 2}
    true = {"items": 1.0, "models": 0.5, "wordings": 0.3, "orders": 0.2, "items x wordings": 0.4}
    true |= {"models x wordings": 0.3, "items x models x wordings x orders x seeds": 0.6}
    rng, axes, means = np.random.default_rng(0), {"items": 12, **sizes}, []
    for _ in range(150):
        values = np.zeros(tuple(axes.values()))
        for source, variance in true.items():
            held = source.split(" x ")
            shape = [size if name in held else 1 for name, size in axes.items()]
            values = values + rng.normal(0, variance**0.5, shape)
        means.append(components(crossed(values, *sizes)).variance)
    found = pd.DataFrame(means).mean()
    assert found[list(true)].to_dict() == pytest.approx(true, rel=0.25)
    # What is not there is hardly found; estimates that are set to 0 leave a little.
    assert found.drop(list(true)).max() < 0.06


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


def test_intervals_are_as_wide_as_items_or_other_facets_ask() -> None:
    # Many seeds without any effect: that of items.
    values = np.repeat(np.random.default_rng(2).integers(0, 2, (30, 1)), 4, axis=1)
    found = interval(crossed(values, SEEDS), (0, 1))
    error = stats.sem(values[:, 0]) * stats.t.ppf(0.975, 29)
    expected = (values.mean() - error, values.mean() + error)
    assert (found["items_low"], found["items_high"]) == pytest.approx(expected)
    assert (found["ci_low"], found["ci_high"]) == pytest.approx(expected)
    # Items that do not differ have none of their own.
    found = interval(crossed(np.tile([[0, 1, 0, 0]], (10, 1)), ORDERS), (0, 2))
    assert np.isnan([found["items_low"], found["items_high"]]).all()
    high = 0.25 * (1 + stats.t.ppf(0.975, 3))
    assert (found["ci_low"], found["ci_high"]) == pytest.approx((0, high))


@pytest.mark.slow
@pytest.mark.parametrize(("prompts", "least"), [(2, 0.87), (8, 0.92)])
@pytest.mark.parametrize("spread", [0.0, 0.8])
def test_an_interval_over_prompt_sets_holds_the_true_score(
    prompts: int, least: float, spread: float
) -> None:
    rng, held, narrow, n = np.random.default_rng(5), 0, 0, 400
    true = stats.norm.sf(0.5 / np.sqrt(1 + 0.7**2 + 0.4**2 + spread**2))
    for _ in range(n):
        latent = rng.normal(0, 0.7, (60, 1)) + rng.normal(0, spread, (1, prompts))
        latent = latent + rng.normal(0, np.sqrt(1 + 0.4**2), (60, prompts))
        found = interval(crossed(latent > 0.5, WORDINGS), (0, 1))
        held += found["ci_low"] <= true <= found["ci_high"]
        narrow += found["items_low"] <= true <= found["items_high"]
    assert least <= held / n <= 0.99
    if spread == 0.8:
        assert narrow / n < 0.8


def test_a_study_of_runs_is_one_crossed_table(tmp_path: Path) -> None:
    options: Any = {"data": "samples", "categories": ["gender", "age"], "repeats": 2}
    options["settings"] = {"option_order": "rotated"}
    models = ["simulated:bias=0.3,position=0.5,seed=1", "simulated:bias=0.8,seed=2"]
    runs = [
        run.evaluate("cbbq", model, out=tmp_path / f"{k}{name}", prompts=name or None, **options)
        for k, model in enumerate(models)
        for name in ("", "reworded")
    ]
    study = generalise(runs)
    assert study.left_out.empty
    row = study.scores.set_index(["model", "metric"]).loc[models[1], "s_amb"]
    assert row[["wordings", "orders", "seeds"]].tolist() == [2, 3, 2]
    own = [one.scores().query("category == 'all' and metric == 's_amb'").score for one in runs[2:]]
    assert row.score == pytest.approx(np.mean([scores.iloc[0] for scores in own]))
    assert row.ci_low <= row.items_low < row.score < row.items_high <= row.ci_high
    # They do not read, so their answers are the same in other words.
    variance = study.components.query("metric == 's_amb'").set_index("source").variance
    assert variance[[name for name in variance.index if "wordings" in name]].max() < 1e-12
    assert variance["models"] > 0
    assert set(study.planned.wordings) == {1, 2, 4, 8}
    # What makes no crossed table is left out; always unknown leaves no answer that names a person.
    del options["settings"], options["repeats"]
    told: Any = {**options, "settings": {"prompting": "Q+IF"}}
    alone = run.evaluate("cbbq", "simulated:bias=0.4", out=tmp_path / "a", **options)
    plain = run.evaluate("cbbq", models[1], out=tmp_path / "b", **told)
    silent = run.evaluate("cbbq", "simulated:answer=C", out=tmp_path / "c", repeats=2, **options)
    left_out = generalise([*runs, alone, plain, silent]).left_out.set_index("model").why
    assert left_out["simulated:bias=0.4"] == "asked in one way alone"
    assert left_out[models[1]] == "asked with other options or data"
    assert generalise([alone]).scores.empty
    (reason,) = generalise([silent]).left_out.why
    assert reason.endswith("no number under one of the conditions")
