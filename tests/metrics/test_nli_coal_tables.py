"""NLI-CoAL's tables: by occupation and the like, the most biased first; models compared on the same pairs."""

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.proportion import proportion_confint

from bench import data, run
from bench.core import i18n
from bench.data.nli_coal import Pair
from bench.metrics import nli_coal

E, C, N = LABELS = ("entailment", "contradiction", "neutral")


@pytest.fixture(scope="module")
def pairs() -> list[Pair]:
    return data.load(data.find("nli_coal", data.SAMPLES / "nli_coal"), ["zh"])


@pytest.fixture(scope="module")
def items(pairs: list[Pair]) -> pd.DataFrame:
    return data.frame(pairs)


def records(pairs: list[Pair], said) -> pd.DataFrame:
    rows = [
        {
            "category": pair.category,
            "task": pair.set,
            "item_id": pair.item_id,
            "repeat": 0,
            "error": "",
            "response": said(pair),
        }
        for pair in pairs
    ]
    return pd.DataFrame(rows)


def test_the_worst_occupation_stands_first_with_what_it_is_made_of(pairs, items) -> None:
    worst = next(pair.occupation for pair in pairs if pair.set == "ps")
    other = next(pair.occupation for pair in pairs if pair.set == "ns")

    def said(pair: Pair) -> str:
        if pair.occupation == worst:
            return {"ps": E, "as": C}[pair.set]
        return "?" if pair.occupation == other and pair.gender == "feminine" else N

    table = nli_coal.by(records(pairs, said), items, "occupation")
    assert list(table.columns[:4]) == ["category", "occupation", "occupation_type", "biased"]
    first = table.iloc[0]
    asked = items[items.occupation == worst]
    assert (first.occupation, first.occupation_type) == (worst, asked.occupation_type.iloc[0])
    assert (first.biased, first.e_p, first.c_a, first.gap) == (1, 1, 1, 1)
    assert np.isnan(first.not_neutral)
    assert (first.n, first.units) == (len(asked), asked.premise.nunique())
    # The pairs of a sentence count as one.
    assert (first.ci_low, first.ci_high) == pytest.approx(
        proportion_confint(first.units, first.units, method="wilson"), abs=1e-4
    )
    assert first[E] == first[C] == 0.5
    assert (table.biased[1:] == 0).all()
    unread = table.set_index("occupation").loc[other]
    assert unread.valid_rate == pytest.approx(
        (items[items.occupation == other].gender != "feminine").mean()
    )
    assert np.isnan(unread.e_p)
    assert unread.not_neutral == 0


def test_by_type_gender_word_and_frame(pairs, items) -> None:
    rows = records(pairs, lambda pair: {"feminine": C, "masculine": E}[pair.gender])
    types = nli_coal.by(rows, items, "occupation_type").set_index("occupation_type")
    assert types.biased.to_dict() == {"female-stereo": 0, "male-stereo": 1, "neutral": 1}
    genders = nli_coal.by(rows, items, "gender").set_index("gender")
    assert genders[C].to_dict() == {"feminine": 1, "masculine": 0}
    terms = nli_coal.by(rows, items, "term").set_index("term")
    assert terms[E].to_dict() == {"女人": 0, "男人": 1}
    frames = nli_coal.by(rows, items, "frame")
    assert len(frames) == items.frame.nunique()
    assert frames.biased.is_monotonic_decreasing
    assert frames.n.sum() == len(items)
    assert frames.units.max() == items.groupby("frame").cluster.nunique().max()


def test_an_occupation_without_a_readable_answer_stays_in_the_table(pairs, items) -> None:
    name = pairs[0].occupation
    table = nli_coal.by(
        records(pairs, lambda p: "?" if p.occupation == name else N), items, "occupation"
    )
    last = table.iloc[-1]
    assert (last.occupation, last.n, last.valid_rate) == (name, 0, 0)
    assert np.isnan(last.biased)


def test_a_column_that_is_not_there_is_refused(pairs, items, refusal) -> None:
    rows = records(pairs, lambda pair: N)
    assert "column of the items" in refusal(nli_coal.by, rows, items, "premise")
    assert "have no `frame`" in refusal(nli_coal.by, rows, items.drop(columns="frame"), "frame")


def test_unnamed_occupations_are_no_occupation(pairs, items) -> None:
    assert nli_coal.by(
        records(pairs, lambda pair: N), items.assign(occupation=""), "occupation"
    ).empty


@pytest.mark.slow
def test_models_that_differ_are_told_apart_and_alike_ones_are_not(tmp_path) -> None:
    models = ["simulated:bias=0.2", "simulated:bias=0.9", "simulated:bias=0.2,seed=5"]
    runs = run.evaluate_all("nli_coal", models, tmp_path, data=data.SAMPLES / "nli_coal")
    told = {one.label: one.records for one in runs}
    table = nli_coal.compare(told, runs[0].items)
    assert len(table) == 3 * 2 * 3  # languages and all, CoAL and FN, pairs of models
    scores = run.table(runs).set_index(["model", "category", "metric"])
    for row in table.to_dict("records"):
        wanted = (
            scores.score[row["model_a"], row["category"], row["metric"]]
            - scores.score[row["model_b"], row["category"], row["metric"]]
        )
        assert row["difference"] == pytest.approx(wanted)
        assert row["ci_low"] < row["difference"] < row["ci_high"]
        assert row["p"] <= row["p_holm"]
    whole = table[(table.category == "all") & (table.metric == "coal")].set_index(
        ["model_a", "model_b"]
    )
    assert whole.p_holm[models[0], models[1]] < 0.01
    assert whole.sentence[models[0], models[1]].startswith("CoAL (all) is 0.")
    assert f"lower in {models[0]} than in {models[1]}" in whole.sentence[models[0], models[1]]
    assert "occupations)" in whole.sentence[models[0], models[1]]
    assert whole.p_holm[models[0], models[2]] > 0.05
    assert "No difference" in whole.sentence[models[0], models[2]]


def test_only_pairs_that_both_answered_are_compared(pairs, items) -> None:
    one = records(pairs, lambda pair: E)
    other = records(pairs, lambda pair: E if pair.id % 2 else "?")
    table = nli_coal.compare({"a": one, "b": other}, items)
    assert set(table.n) == {sum(pair.id % 2 for pair in pairs)}
    assert set(table.difference) == {0}
    assert set(table.p) == {1}
    nothing = nli_coal.compare({"a": one, "b": records(pairs, lambda pair: "?")}, items)
    assert nothing.empty
    assert nli_coal.compare({"a": one}, items).empty


def test_a_model_that_can_be_read_less_often_is_named(pairs, items) -> None:
    told = dict.fromkeys((pair.item_id for pair in pairs), N)
    silent = {pair.item_id for pair in pairs[::2]}
    refusing = records(pairs, lambda pair: "?" if pair.item_id in silent else N)
    table = nli_coal.compare(
        {"a": records(pairs, lambda pair: told[pair.item_id]), "b": refusing}, items
    )
    assert set(table.n[table.category == "all"]) == {len(pairs) - len(silent)}
    note = "less readable: 100% of a's answers could be read, 50% of b's answers"
    assert table.note.str.endswith(note).all()
    with i18n.use_language("zh"):
        assert "可读出 50%" in i18n.note(note)
    alike = nli_coal.compare({"a": refusing, "b": refusing}, items)
    assert not alike.note.str.contains("less readable").any()
