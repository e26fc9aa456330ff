"""Scores measured elsewhere: what a table of a user means, in `bench.read_scores`."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy

import bench

CATEGORIES = [f"c{k}" for k in range(12)]
MODELS = {"good": 90, "middle": 80, "bad": 60}
SCORES = pd.DataFrame(
    [(name, c, mean + k % 3) for name, mean in MODELS.items() for k, c in enumerate(CATEGORIES)],
    columns=["model", "category", "score"],
).assign(task="ss", metric="score")


@pytest.fixture
def read(tmp_path):
    """Return a function that writes a frame as CSV and reads it as scores."""

    def write_and_read(frame, *needed, **options):
        frame.to_csv(tmp_path / "mine.csv", index=False)
        return bench.read_scores(tmp_path / "mine.csv", *needed, **options)

    return write_and_read


def paper_like():
    """Return 11 models of 50 to 70 points, in 12 categories of McBE's five tasks."""
    draw = np.random.default_rng(3).normal
    names = ["pc", "sc", "ss", "ba", "bs"]
    rows = [
        (f"m{k}", category, task, "score", 50 + 2 * k + draw(0, 3))
        for k in range(11)
        for category in CATEGORIES
        for task in names
    ]
    return pd.DataFrame(rows, columns=["model", "category", "task", "metric", "score"])


def test_several_tasks_are_averaged_in_each_block_as_in_the_paper(read):
    scores, table = paper_like(), read(paper_like())
    first = bench.measure(table)
    assert set(first.title) == {"all tasks, score"}
    blocks = first[first.category != "all"]
    ascending = not (blocks.worse == "lower").any()
    test, ranks, _pairs = bench.friedman(blocks, ascending=ascending)
    means = scores.pivot_table("score", "category", "model", aggfunc="mean")
    q = scipy.stats.friedmanchisquare(*means.to_numpy().T).statistic
    assert (test.n[0], ranks.model[0]) == (12, "m10")
    assert test.estimate[0] == pytest.approx(q)
    overall = first[first.category == "all"].set_index("model").score
    assert overall["m3"] == pytest.approx(scores[scores.model == "m3"].score.mean())


@pytest.mark.parametrize(
    ("column", "value", "score"), [("category", "c1", "all"), ("task", "ss", "c1")]
)
def test_a_mean_over_fewer_parts_than_other_models_have_is_undefined(read, column, value, score):
    table = paper_like()
    table = read(table[(table.model != "m2") | (table[column] != value)])
    first = bench.measure(table)
    missing = first[first.score.isna()]
    assert set(missing.model) == {"m2"}
    assert score in set(missing.category)
    assert missing.note.str.contains(f"a {column} has no score").any()


@pytest.mark.parametrize(
    "name", ["All", " all", "Overall", "AVERAGE", "total\u00a0", "总体", "平均", "", "Mean"]
)
def test_an_average_is_recognised_by_its_name_for_each_model(read, name):
    means = pd.DataFrame({"model": ["good"], "category": [name], "score": [1.0]})
    table = read(pd.concat([SCORES, means.assign(task="ss", metric="score")]))
    overall = table[table.category == "all"].set_index("model").score
    assert overall["good"] == 1.0
    assert overall["bad"] == pytest.approx(61)
    assert set(bench.differences(table).n) == {12}


@pytest.mark.parametrize(
    ("columns", "side"),
    [
        ({}, "lower"),  # McBE's scenario selection
        ({"task": "ambiguous", "metric": "s_amb"}, "higher"),
        ({"benchmark": "McBE", "task": "all"}, "lower"),
        ({"benchmark": "nli-coal", "task": "all", "metric": "fn"}, "higher"),
        ({"task": "all"}, ""),  # any benchmark can have a score over all tasks
        ({"benchmark": "mine"}, ""),
        ({"worse": "Higher "}, "higher"),
        ({"worse": "LOWER"}, "lower"),
        ({"benchmark": "mine", "worse": ""}, ""),
    ],
)
def test_the_worse_side_is_that_of_the_table_or_of_the_benchmark(read, columns, side):
    assert set(read(SCORES.assign(**columns)).worse) == {side}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"worse": "less"}, "row 1, column `worse`: 'less' is not allowed; write higher or lower"),
        ({"worse": ["lower"] * 35 + ["higher"]}, "row 36, column `worse`: 'higher' is not allowed"),
        ({"unit": "percent"}, "row 1, column `unit`: 'percent' is not allowed; write % or points"),
        ({"unit": "%"}, "row 1, column `score`: 90 is no share from 0 to 1"),
        ({"billions": "7,5B"}, "row 1, column `billions`: '7,5B' is not a number such as 7 or 7B"),
        ({"model": ["NA"] * 36}, "row 1, column `model`: is empty (given as NA)"),
        ({"score": ["45%"] * 36}, "row 1, column `score`: '45%' is not a number"),
        ({"score": [""] * 36}, "row 1, column `score`: is empty; give a number"),
    ],
)
def test_a_wrong_cell_is_refused_with_its_place(read, refusal, changes, message):
    assert f"mine.csv, {message}" in refusal(read, SCORES.assign(**changes))


@pytest.mark.parametrize("column", ["prompts", "seed", "annotator", ""])
def test_two_rows_of_one_score_are_refused_by_the_column_in_which_they_differ(
    read, refusal, column
):
    other = SCORES.assign(score=SCORES.score + 1)
    if column:
        other, first = other.assign(**{column: "b"}), SCORES.assign(**{column: "a"})
    text = refusal(read, pd.concat([first if column else SCORES, other]))
    assert "row 37: has the same benchmark 'mine', title 'ss, score', model 'good'" in text
    assert (f"and another `{column}`" in text) == bool(column)


def test_repeats_are_averaged_and_are_no_categories(read):
    repeats = [SCORES.assign(repeat=k, score=SCORES.score + k) for k in range(3)]
    table = read(pd.concat(repeats))
    assert len(table) == 36 + 3
    assert table.score[0] == SCORES.score[0] + 1
    assert set(bench.differences(pd.concat(repeats)).n) == {12}


def test_benchmarks_and_models_are_chosen_by_name(read, refusal):
    both = pd.concat([SCORES.assign(benchmark="mcbe"), SCORES.assign(benchmark="Mine")])
    table = read(both, benchmarks=["McBE"], models=["good", "bad"])
    assert set(table.benchmark + table.model) == {"mcbegood", "mcbebad"}
    assert set(read(SCORES, benchmarks=["cbbq"]).benchmark) == {"cbbq"}
    assert "model 'god' is unknown; allowed: good" in refusal(read, SCORES, models=["god"])


def test_a_score_that_is_given_as_na_is_undefined_and_says_so(read):
    table = read(SCORES.astype({"score": object}).replace({"score": {91: "n/a"}}))
    assert set(table.note) == {"", "the score is given as n/a", "a category has no score"}


def test_a_table_with_a_column_for_each_category_is_read_and_said(read, refusal, capsys):
    wide = SCORES.pivot_table("score", "model", "category").reset_index()
    table = read(wide.assign(Average=50, vendor="x", billions=[7, 3, 1]))
    assert set(table.category) == {*CATEGORIES, "all"}
    assert set(table[table.category == "all"].score) == {50}
    assert "we take these columns for categories: c0, c1" in capsys.readouterr().err
    assert "column `c0`: '9O' is not a number" in refusal(read, wide.assign(c0=["9O", 1, 2]))
    for frame in (wide.rename(columns={"model": "name"}), SCORES.drop(columns="score")):
        assert "give a row for each score" in refusal(read, frame)


def test_series_and_sizes_are_those_in_the_names_of_models(read):
    names = {"good": "Lingxi 0.5B", "middle": "org/Lingxi-7B", "bad": "other"}
    table = read(SCORES.replace({"model": names})).drop_duplicates("model").set_index("model")
    assert table.family.to_dict() == {
        "Lingxi 0.5B": "Lingxi",
        "org/Lingxi-7B": "Lingxi",
        "other": "mine",
    }
    assert table.billions.dropna().to_dict() == {"Lingxi 0.5B": 0.5, "org/Lingxi-7B": 7}
    said = read(SCORES.replace({"model": names}).assign(billions=3, family="mine too"))
    assert (set(said.billions), set(said.family)) == ({3}, {"mine too"})
    assert "billions" not in read(SCORES)


def test_a_wide_table_has_the_columns_that_have_a_default(read):
    wide = SCORES.pivot_table("score", "model", "category").reset_index()
    assert set(read(wide, "category", "family").category) == {*CATEGORIES, "all"}


def test_what_publish_writes_is_read_back_equal(tmp_path):
    names = ["@cf/meta", "-instruct", "=1", "+x", "plain"]
    rows = [(name, category, float(k)) for k, name in enumerate(names) for category in "xyz"]
    table = pd.DataFrame(rows, columns=["model", "category", "score"])
    table = table.assign(task="ss", metric="score", unit="%", primary=[True, False, True] * 5)
    table["score"] /= 10
    bench.publish(table, "scores", into=tmp_path)
    for kind in ("csv", "parquet"):
        pd.testing.assert_frame_equal(
            bench.read_scores(tmp_path / f"scores.{kind}"),
            bench.read_scores(table).assign(benchmark="scores", family="scores"),
            check_dtype=False,
        )


def test_frames_of_other_libraries_are_taken_and_others_refused(refusal):
    assert len(bench.read_scores(pa.Table.from_pandas(SCORES))) == 39
    assert len(bench.read_scores(SCORES.set_index(["model", "category"]))) == 39
    assert "is a dict; give a frame of pandas" in refusal(bench.read_scores, {})
    doubled = pd.concat([SCORES, SCORES[["score"]]], axis=1)
    assert "column `score` occurs more than once" in refusal(bench.read_scores, doubled)
    levels = pd.concat({"score": SCORES}, axis=1)
    assert "has 2 levels of column names" in refusal(bench.read_scores, levels)


def test_a_table_that_was_read_is_read_again_without_a_change():
    table = bench.read_scores(paper_like())
    pd.testing.assert_frame_equal(bench.read_scores(table), table)
