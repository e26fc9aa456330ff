"""The same models with two prompt sets: pairs of runs, differences, sources of variance."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from bench import run
from bench.analyses import prompt_robustness as robustness
from bench.analyses.prompt_robustness import Result, compare, pair_runs, pictures, study
from bench.metrics.bootstrap import DRAWS, Replicates, Sample
from bench.metrics.table import ALL, Headline
from bench.run import Run
from tests.helpers.drawing import drawn

RESPONDENTS = ["simulated:bias=0.2,seed=1", "simulated:bias=0.8,seed=2"]
AMBIGUOUS = Headline("ambiguous", "s_amb", "Ambiguous: share", "", True, True, (0, 1))
POINTS = Headline("sc", "score", "Classification", "", False, False, (0, 100), worse="worse")


def test_only_reworded_tasks_are_compared_by_paired_differences(tmp_path: Path) -> None:
    # The second run has another seed, so answers differ; both prompt sets have the same task pc.
    given: Any = (
        {"out": tmp_path / "a"},
        {"out": tmp_path / "b", "prompts": "reworded", "seed": 7},
    )
    runs = [run.evaluate("mcbe", RESPONDENTS[0], tasks=["pc", "ss"], **own) for own in given]
    pairs, _left_out = pair_runs(runs)
    assert robustness.overview(pairs).iloc[0, 3:].tolist() == ["ss", "pc", "seed: 0 and 7"]
    result = compare(pairs)
    assert set(result.table.task) == {"ss"}
    row = result.overall.iloc[0]
    scores = [one.scores().set_index(["category", "task", "metric", "preset"]) for one in runs]
    first, second = (table.score[ALL, "ss", "score", "robust"] for table in scores)
    assert row.difference == pytest.approx(second - first)
    assert row.ci_low < row.difference < row.ci_high
    assert row.same < 1


def test_what_makes_no_pair_is_refused_or_left_out(own_folder: Path, refusal: Any) -> None:
    options: Any = {"limit": 2, "preset": ""}
    a, b, a2, b2 = robustness.open_runs([], "cbbq", demo=RESPONDENTS, options=options)
    options["tasks"] = ["pc"]
    same = robustness.open_runs([], "mcbe", demo=RESPONDENTS[:1], options=options)
    for message, *arguments in (
        ("within one benchmark", [a, a2, *same]),
        ("ask with --prompts reworded too", [a, b]),
        ("choose the second by its name", [a, b, a2, b2], "bench-cbbq-9"),
        ("name one of them", [a, b, a2, b2, a]),
        ("no model was asked with both", [a, b2]),
    ):
        assert message in refusal(pair_runs, *arguments)
    assert "every task was asked in the same words" in refusal(compare, pair_runs(same)[0])
    pairs, left_out = pair_runs([a, b, a2])
    assert [pair.name for pair in pairs] == RESPONDENTS[:1]
    assert list(left_out.model) == RESPONDENTS[1:]
    # Simulated respondents do not read, and answer the same under both.
    table = compare(pairs).table
    assert (set(table.difference), set(table.same)) == ({0}, {1})
    asked = a2.about["asked"] | {"data_sha256": "0" * 64}
    pairs, left_out = pair_runs([a, b, Run(a2.folder, a2.about | {"asked": asked}), b2])
    assert [pair.name for pair in pairs] == RESPONDENTS[1:]
    assert list(left_out.why) == ["the two runs are on different data"] * 2


def made(
    values: dict[str, dict[str, tuple[float, float]]], headline: Headline = AMBIGUOUS
) -> Result:
    """Compare {model: {category: (first, second)}}, whose differences have a spread of 0.01."""
    rng, pairs = np.random.default_rng(0), {}
    for model, row in values.items():
        one, other = Replicates(), Replicates()
        for category, (first, second) in row.items():
            place = (category, headline.task, headline.metric)
            one.add(place, np.full(1 + DRAWS, first), Sample(2000, 1))
            noise = np.concatenate([[0], rng.normal(0, 0.01, DRAWS)])
            other.add(place, second + noise, Sample(2000, 1))
        index = pd.MultiIndex.from_product([[c for c in row if c != ALL], [headline.task]])
        answered = {"n": 10, "same": 0.5, "valid_first": 1.0, "valid_second": 0.8}
        pairs[model] = (one, other, pd.DataFrame(answered, index=index))
    return robustness.compare_scores(pairs, [headline])


@pytest.fixture(scope="module")
def three() -> Result:
    a = {"x": (0.1, 0.2), "y": (0.2, 0.2), ALL: (0.15, 0.20)}
    b = {"x": (0.4, 0.3), "y": (0.5, 0.6), ALL: (0.45, 0.45)}
    return made({"a": a, "b": b, "c": {"x": (0.3, 0.5), "y": (0.7, 0.9), ALL: (0.50, 0.70)}})


def test_differences_limits_and_ranks_by_hand(three: Result) -> None:
    row = three.table.set_index(["model", "category"]).loc["c", "x"]
    assert (row["first"], row.second, row.difference) == pytest.approx((0.3, 0.5, 0.2))
    assert (row.ci_low, row.ci_high) == pytest.approx((0.2 - 0.0196, 0.2 + 0.0196), abs=0.003)
    assert (row.n, row.valid_first, row.valid_second, row["higher"]) == (10, 1.0, 0.8, "more bias")
    limits, differences = three.limits.iloc[0], [0.1, 0, -0.1, 0.1, 0.2, 0.2]
    mean, arm = np.mean(differences), 1.96 * np.std(differences, ddof=1)
    ends = (limits.limits_low, limits["mean"], limits.limits_high)
    assert ends == pytest.approx((mean - arm, mean, mean + arm))
    assert (limits.n, limits.beyond_chance, limits.of) == (6, 5, 6)
    # Six independent differences: their mean is surer than each by the square root of six.
    assert limits.ci_high - limits.ci_low == pytest.approx(2 * 1.96 * 0.01 / 6**0.5, rel=0.12)
    swapped = {"a": {"x": (50, 60), ALL: (50, 60)}, "b": {"x": (40, 70), ALL: (40, 70)}}
    ranks = made(swapped, POINTS).ranks[["rank_first", "rank_second", "change"]]
    assert ranks.to_numpy().tolist() == [[1, 2, 1], [2, 1, -1]], "higher is better"


def shifted(headlines: int, shift: float) -> Result:
    """Two models without an effect, but for a shift of the first of several headlines."""
    rng, pairs = np.random.default_rng(1), {}
    lines = [AMBIGUOUS._replace(task=f"t{k}") for k in range(headlines)]
    for model in ("a", "b"):
        one, other = Replicates(), Replicates()
        for line in lines:
            moved = shift if line.task == "t0" else 0.0
            for place, first, second in (("x", 0.5, 0.502), ("y", 0.501, 0.5), ("z", 0.502, 0.501)):
                key = (place, line.task, line.metric)
                one.add(key, np.full(1 + DRAWS, first), Sample(2000, 1))
                noise = np.concatenate([[0], rng.normal(0, 0.01, DRAWS)])
                other.add(key, second + moved + noise, Sample(2000, 1))
            key = (ALL, line.task, line.metric)
            one.add(key, np.full(1 + DRAWS, 0.501), Sample(2000, 1))
            other.add(
                key, 0.501 + moved + np.append(0, rng.normal(0, 0.006, DRAWS)), Sample(2000, 1)
            )
        index = pd.MultiIndex.from_product([["x", "y", "z"], [line.task for line in lines]])
        answered = {"n": 10, "same": 0.5, "valid_first": 1.0, "valid_second": 1.0}
        pairs[model] = (one, other, pd.DataFrame(answered, index=index))
    return robustness.compare_scores(pairs, lines)


@pytest.mark.parametrize(
    ("headlines", "shift", "title"),
    [
        # The mean of six scores has a standard error of 0.004: p = 0.007 for 0.011.
        (1, 0.011, "Scores depend on the prompt set"),
        (6, 0.011, "No effect of the prompt set could be shown"),
        (6, 0.02, "Scores depend on the prompt set"),
    ],
)
def test_a_title_claims_what_holds_among_all_headlines(
    headlines: int, shift: float, title: str
) -> None:
    assert robustness.title(shifted(headlines, shift)).startswith(title)


def test_a_sentence_claims_what_holds_among_all_headlines() -> None:
    first, second = robustness.findings(shifted(2, 0.02))
    assert first.startswith("Under other words")
    assert second.startswith("No effect of other words on")


def test_p_of_models_is_adjusted_for_the_other_models_and_headlines() -> None:
    rows = shifted(3, 0.02).overall
    assert rows.p_holm.to_numpy() == pytest.approx(multipletests(rows.p, method="holm")[1])


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
    # An undefined score is kept with a reason and counts nowhere.
    gaps = made({name: {"x": (0.1 * k, 0.2), "y": (0.1, math.nan)} for k, name in enumerate("ab")})
    assert set(gaps.table.note) == {"", "no score under the second wording"}
    assert set(gaps.correlated.n) == {2}


def test_all_eight_numbers_of_the_paper_s_table_12() -> None:
    rows = robustness.table_12_recomputed().set_index(["task", "coefficient"])
    assert list(rows.same) == ["yes"] * 4
    result = robustness.table_12()
    for (task, name), (value, p) in robustness.PRINTED.items():
        own = result.table[result.table.task == task]
        expected = getattr(stats, f"{name}r")(own["first"], own.second)
        assert round(expected.statistic, 3) == round(float(rows.value[task, name]), 3)
        assert round(expected.statistic, 3) == float(value)
        assert float(f"{expected.pvalue:.2e}") == float(p)
    axes = drawn(pictures.agreement(result)).axes
    mark = next(line for line in axes[0].lines if line.get_marker() != "None")
    assert list(mark.get_xdata()) == [34.83, 38.15, 30.64]


def crossed(values: Any, *facets: str) -> study.Crossed:
    """Return a table of one category: values [items, *facets]."""
    values = np.array(values, dtype=float)
    return study.Crossed(facets, values.mean(0), values - values.mean(0), Sample(len(values), 1))


def test_components_and_coefficients_are_those_by_hand() -> None:
    table = crossed([[1, 1], [0, 1], [0, 0]], study.WORDINGS)
    found = study.components(table)
    assert found.df.to_dict() == {"items": 2, "wordings": 1, "items x wordings": 2}
    assert found.mean_square.tolist() == pytest.approx([1 / 2, 1 / 6, 1 / 6])
    assert found.variance.tolist() == pytest.approx([1 / 6, 0, 1 / 6], abs=1e-12)
    # 1/6 over 3 items, and 1/6 over 3 items times 2 prompt sets.
    assert study.error_variance(found, table.sizes) == pytest.approx(1 / 18 + 1 / 36)
    planned = study.d_study(found, table.sizes).set_index("wordings")
    assert planned.error[8] ** 2 == pytest.approx(1 / 18 + 1 / 144)
    rng = np.random.default_rng(1)
    values = rng.normal(size=(20, 1, 1)) + rng.normal(size=(1, 5, 1)) + rng.normal(size=(20, 5, 4))
    table = crossed(values, study.MODELS, study.WORDINGS)
    found = study.components(table)
    part = found.variance
    chance = part["items x models"] / 20 + part["models x wordings"] / 2
    chance += part["items x models x wordings"] / 40
    row = study.d_study(found, table.sizes).set_index("wordings").loc[2]
    assert row.g == pytest.approx(part["models"] / (part["models"] + chance))


def test_intervals_are_as_wide_as_items_or_other_facets_ask() -> None:
    # Many seeds without any effect: that of items.
    values = np.repeat(np.random.default_rng(2).integers(0, 2, (30, 1)), 4, axis=1)
    found = study.interval(crossed(values, study.SEEDS), (0, 1))
    arm = stats.sem(values[:, 0]) * stats.t.ppf(0.975, 29)
    expected = (values.mean() - arm, values.mean() + arm)
    assert (found["ci_low"], found["ci_high"]) == pytest.approx(expected)


def test_a_study_of_runs_is_one_crossed_table(tmp_path: Path) -> None:
    models, folders = ["simulated:bias=0.3,seed=1", RESPONDENTS[1]], iter("abcdefg")
    rotated: Any = {"settings": {"option_order": "rotated"}, "repeats": 2}

    def ask(model: str, **options: Any) -> Run:
        return run.evaluate(
            "cbbq", model, out=tmp_path / next(folders), categories=["gender", "age"], **options
        )

    runs = [ask(model, prompts=name, **rotated) for model in models for name in (None, "reworded")]
    found = study.generalise(runs)
    assert found.left_out.empty
    row = found.scores.set_index(["model", "metric"]).loc[models[1], "s_amb"]
    assert row[["wordings", "orders", "seeds"]].tolist() == [2, 3, 2]
    own = [one.scores().query("category == 'all' and metric == 's_amb'").score for one in runs[2:]]
    assert row.score == pytest.approx(np.mean([scores.iloc[0] for scores in own]))
    assert row.ci_low <= row.items_low < row.score < row.items_high <= row.ci_high
    # They do not read, so their answers are the same in other words.
    variance = found.components.query("metric == 's_amb'").set_index("source").variance
    assert variance["wordings"] < 1e-12 < variance["models"]
    # What makes no crossed table is left out.
    alone = ask("simulated:bias=0.4")
    told = ask(models[1], settings={"prompting": "Q+IF"})
    left_out = study.generalise([*runs, alone, told]).left_out.set_index("model").why
    assert left_out["simulated:bias=0.4"] == "asked in one way alone"
    assert left_out[models[1]] == "asked with other options or data"
