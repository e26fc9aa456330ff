"""Cells of users: blanks, missing values, numbers and truth values, in every function."""

import numpy as np
import pandas as pd
import pytest

import bench
from bench.core.cells import read_cell
from bench.metrics.user_tables import Table

WORDS = ["yes", "no", "maybe"]
RATINGS = pd.DataFrame(
    [(f"age:{k}", rater, WORDS[k % 3]) for rater in ("ann", "bo") for k in range(9)],
    columns=["item_id", "rater", "rating"],
)
BLANKS = [" ", "\t", "\u00a0", "\u3000", "\u200b", "\ufeff"]
MISSING = ["NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "None", "<NA>", ".", "-", "—"]
KEPT = ["none", "Nan Ling", "-1", "a.", "3.10", "v3.0", "007"]


@pytest.mark.parametrize(
    ("cell", "read"),
    [
        *((f"{blank}yes{blank}", "yes") for blank in BLANKS),
        *((mark, "") for mark in MISSING),
        *((text, text) for text in KEPT),
        ("3.0", "3"),
        ("-3.00", "-3"),
    ],
)
def test_a_cell_is_read_without_blanks_and_marks_of_missing_values(cell, read):
    assert read_cell(cell) == read


@pytest.mark.parametrize("mark", ["NA", ".", "n/a", " - ", "None"])
def test_a_missing_rating_is_no_category_and_is_named(tmp_path, mark):
    RATINGS.replace({"rating": {"no": np.nan}}).to_csv(tmp_path / "r.csv", na_rep=mark)
    alpha = bench.agreement(tmp_path / "r.csv").iloc[0]
    assert (alpha.estimate, alpha.n) == (1, 6)
    assert alpha.note.endswith(f"6 ratings are missing (given as {mark.strip()})")


@pytest.mark.parametrize("column", ["rating", "rater", "item_id"])
def test_a_blank_makes_no_other_rating_rater_or_item(tmp_path, column):
    cells = RATINGS[column].where(RATINGS.index < 13, RATINGS[column] + "\u00a0")
    RATINGS.assign(**{column: cells}).to_csv(tmp_path / "r.csv")
    alpha = bench.agreement(tmp_path / "r.csv").iloc[0]
    assert (alpha.estimate, alpha.n, alpha.raters) == (1, 9, 2)


@pytest.mark.parametrize("form", ["{}.0", "0{}", "{}e0", "{:+d}"])
def test_two_spellings_of_a_number_are_one_rating_and_one_item(tmp_path, form):
    numbers = pd.Series([1 + k % 3 for k in range(9)] * 2)
    texts = numbers.astype(str).where(RATINGS.rater == "ann", numbers.map(form.format))
    RATINGS.assign(rating=texts).to_csv(tmp_path / "r.csv")
    assert list(bench.agreement(tmp_path / "r.csv").estimate) == pytest.approx([1, 1])
    first = pd.DataFrame({"item_id": [1, 2, 3, 4], "score": [1, 2, 3, 5]})
    second = first.assign(item_id=["1.0", "2.0", "3", " 4"])
    assert set(bench.correlate(first, second).n) == {4}


@pytest.mark.parametrize("kind", ["csv", "parquet", "xlsx"])
def test_truth_values_of_a_file_are_1_and_0(tmp_path, kind, refusal):
    table, file = pd.DataFrame({"hit": [True, False, True, True]}), tmp_path / f"hits.{kind}"
    {"csv": table.to_csv, "parquet": table.to_parquet, "xlsx": table.to_excel}[kind](file)
    assert bench.share(file, "hit", cluster=None, stratum=None).estimate[0] == 0.75
    words = table.replace({True: "yes", False: "no"})
    assert "'yes' is not a number" in refusal(bench.share, words, "hit", cluster=None, stratum=None)


def test_blocks_are_told_apart_by_each_of_their_columns():
    places = [("x", "y, z"), ("x, y", "z"), ("u", "v"), ("u", "w")]
    rows = [(m, a, b, k + ord(m)) for m in "abc" for k, (a, b) in enumerate(places)]
    table = pd.DataFrame(rows, columns=["model", "topic", "group", "score"])
    assert bench.friedman(table, blocks=["topic", "group"]).test.n[0] == 4


def test_a_row_has_its_number_in_the_file_and_blank_rows_count(tmp_path, refusal):
    path = tmp_path / "scores.csv"
    path.write_text("model,score\n\na,1\n\nb,\na,2\n", "utf-8")
    table = Table(path)
    message = refusal(table.check_filled, "score")
    assert message == f"{path}, row 4, column `score`: is empty"
    message = refusal(table.check_unique, ["model"], "keep one")
    assert message == f"{path}, row 5: has the same model 'a' as row 2; keep one"


def test_a_wide_row_of_a_file_keeps_its_number(tmp_path, refusal):
    path = tmp_path / "scores.csv"
    path.write_text("model,unit,age,race\n\na,%,1,0.5\n\nb,%,0.5,3\n", "utf-8")
    assert refusal(bench.read_scores, path).startswith(f"{path}, row 4, column `score`: 3 is no ")
