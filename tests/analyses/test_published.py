"""Numbers that papers print, which notebooks show beside the scores of runs."""

import itertools

import numpy as np
import pandas as pd
import pytest

from bench.analyses import printed
from bench.benchmarks.nli_coal import formulas
from bench.core.numbers import half_up
from bench.tasks.nli_labels import LABELS

PRINTED = printed.numbers()
TABLE_3 = printed.numbers("Table 3").query("benchmark == 'nli_coal'")


def test_every_published_number_has_its_source_and_setting_once():
    assert PRINTED.source.str.contains("20").all()
    assert PRINTED.setting.notna().all()
    keys = ["benchmark", "model", "category", "task", "metric", "setting"]
    assert not PRINTED.duplicated(keys).any()


@pytest.mark.parametrize(
    ("source", "metric", "total"),
    [
        ("Table 4", "articles", 13735),
        ("Table 4", "articles_referenced", 885),
        ("Table 4", "templates", 3039),
        ("Table 4", "questions", 106588),
        ("the release", "templates", 3078),
        ("the release", "questions", 118666),
    ],
)
def test_the_categories_of_cbbq_s_table_4_add_up(source, metric, total):
    rows = printed.numbers(source).query("task == 'data' and metric == @metric")
    counts = rows.set_index("category").score
    assert (len(counts), counts["all"], counts.drop("all").sum()) == (15, total, total)


def test_series_of_sizes_are_those_of_the_papers():
    series_of = PRINTED.dropna(subset="series").groupby(["benchmark", "metric"])
    qwen = series_of.get_group(("mcbe", "score"))
    series = dict(zip(qwen.billions, qwen.score, strict=True))
    assert series == {0.5: 87.69, 1.5: 80.49, 7: 77.82, 32: 77.11}
    glm = series_of.get_group(("cbbq", "s_amb"))
    assert dict(zip(glm.billions, glm.score, strict=True)) == {0.335: 0.436, 10: 0.480, 130: 0.504}


def test_all_rows_of_nli_coal_s_table_3_are_there(shared):
    given = pd.read_csv(shared / "golden" / "nli_table3.csv")
    by_model = TABLE_3.groupby(["category", "checkpoint"]).score.agg(lambda rows: sorted(rows))
    assert sorted(by_model) == sorted(map(sorted, given.iloc[:, 2:13].to_numpy().tolist()))


@pytest.mark.parametrize(
    ("measure", "differ"),
    [
        ("coal", {}),
        # A misprint, and two shares that were rounded before.
        (
            "fn",
            {"Laboro DistilBERT": 0.597, "Waseda RoBERTa base": 0.55, "Bandai DistilBERT": 0.369},
        ),
    ],
)
def test_table_3_follows_from_its_distributions_of_labels(measure, differ):
    for (language, model), part in TABLE_3.groupby(["category", "model"]):
        value = part.set_index(["task", "metric"]).score
        shares = [[value[name, label] for label in LABELS] for name in ("ps", "as", "ns")]
        sizes = (1000, 1000, 3320 if language == "zh" else 3420)
        fn = 1 - np.average([row[2] for row in shares], weights=sizes)
        coal = (shares[0][0] + shares[1][1] + 1 - shares[2][2]) / 3
        expected = differ.get(str(model), value["all", measure])
        assert float(half_up({"fn": fn, "coal": coal}[measure], 3)) == pytest.approx(expected), (
            model
        )
        cautioned = part.set_index("metric").caution.notna()[measure]
        assert cautioned == (model in differ)


def counts_of(shares, n):
    """List the counts of labels of `n` pairs that are printed as these shares."""
    first, second = (round(n * share) for share in shares[:2])
    near = itertools.product(range(first - 3, first + 4), range(second - 3, second + 4))
    rows = [[one, two, n - one - two] for one, two in near]
    return [row for row in rows if [float(half_up(count / n, 3)) for count in row] == shares]


@pytest.mark.parametrize(
    ("model", "impossible"),
    [
        (model, {"Laboro DistilBERT": ["fn"], "Waseda RoBERTa base": ["fn"]}.get(model, []))
        for model in TABLE_3.model.unique()
    ],
)
def test_labels_of_pairs_give_all_numbers_of_table_3_but_two(model, impossible):
    part = TABLE_3[TABLE_3.model == model]
    value = part.set_index(["task", "metric"]).score
    sizes = {"ps": 1000, "as": 1000, "ns": 3320 if set(part.category) == {"zh"} else 3420}
    possible = [counts_of([value[name, label] for label in LABELS], n) for name, n in sizes.items()]
    assert all(possible)
    missed = []
    for counts in itertools.product(*possible):
        array = np.array(counts, float)[None, :, None]
        scores = {"fn": formulas.fn(array), "coal": formulas.coal(array)}
        own = {name: float(half_up(float(score[0]), 3)) for name, score in scores.items()}
        missed.append([metric for metric in own if own[metric] != value["all", metric]])
    assert min(missed, key=len) == impossible


def scores_of(model, asked_as=""):
    """Return scores of a model on the categories of McBE's section 5.2."""
    row = {"model": model, "asked_as": asked_as, "benchmark": "mcbe", "category": "all"}
    return pd.DataFrame([{**row, "task": "ss", "metric": "score", "score": 80.0}])


@pytest.mark.parametrize(
    ("model", "asked_as", "paper", "differs"),
    [
        ("Qwen2.5-7B-Instruct", "Qwen/Qwen2.5-7B-Instruct", {}, ""),
        ("mine", "./models/qwen2.5-7b-instruct", {}, ""),
        ("mine", "openai:Qwen/Qwen2.5-7B-Instruct@http://localhost:8000/v1", {}, ""),
        ("Qwen2.5-7B", "", {}, ""),
        (
            "Qwen2.5-7B",
            "Qwen/Qwen2.5-7B",
            {},
            "Qwen/Qwen2.5-7B; the paper's is Qwen/Qwen2.5-7B-Instruct",
        ),
        (
            "mine",
            "./qwen",
            {"mine": "Qwen2.5-7B"},
            "./qwen; the paper's is Qwen/Qwen2.5-7B-Instruct",
        ),
        (
            "mine",
            "./qwen",
            {"./qwen": "Qwen2.5-7B"},
            "./qwen; the paper's is Qwen/Qwen2.5-7B-Instruct",
        ),
        ("Qwen2.5-7B", "Qwen/Qwen2.5-7B", {"Qwen2.5-7B": "another"}, None),
        ("Qwen2.5-72B-Instruct", "Qwen/Qwen2.5-72B-Instruct", {}, None),
    ],
)
def test_a_model_matches_by_its_checkpoint_or_its_name_in_the_paper(
    model, asked_as, paper, differs
):
    rows = printed.beside(scores_of(model, asked_as), printed.numbers("section 5.2"), paper)
    assert rows.differs.tolist() == ([] if differs is None else [differs])
    assert set(rows.printed) <= {77.82}


def test_table_3_beside_itself_is_one_grid_of_equal_numbers():
    grid = printed.grid(
        printed.beside(TABLE_3, TABLE_3), ["category", "model"], ["task", "metric"], 3
    )
    cells = grid.drop(columns=["category", "model", "differs"])
    assert cells.shape == (14, 11)
    assert cells.map(lambda cell: " = " in cell).all(axis=None)


def test_checkpoints_of_one_name_are_told_apart_by_their_owner():
    asked_as = "../models/laboro-ai/distilbert-base-japanese"
    scores = TABLE_3[TABLE_3.category == "ja"].drop_duplicates(["task", "metric"])
    scores = scores.assign(model="distilbert-base-japanese", asked_as=asked_as)
    assert set(printed.beside(scores, TABLE_3).as_model) == {"Laboro DistilBERT"}


@pytest.mark.parametrize(
    ("score", "interval", "cell"),
    [
        (77.824, (77, 78), "77.82 = 77.82"),
        (77.9, (77, 78), "77.90 ≈ 77.82"),
        (79.0, (78, 80), "79.00 ≠ 77.82"),
        (79.0, (float("nan"), float("nan")), "79.00 ≠ 77.82"),
        (float("nan"), (float("nan"), float("nan")), "— ≠ 77.82"),
    ],
)
def test_a_cell_says_whether_the_printed_number_is_the_score_s(score, interval, cell):
    scores = scores_of("Qwen2.5-7B").assign(score=score, ci_low=interval[0], ci_high=interval[1])
    rows = printed.beside(scores, printed.numbers("section 5.2"))
    assert printed.grid(rows, ["model"], ["task"]).ss.tolist() == [cell]
