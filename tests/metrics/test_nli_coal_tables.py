"""NLI-CoAL's tables: by occupation and the like, the most biased first; models compared on the same pairs."""

import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

from bench import data, run
from bench.core import i18n
from bench.metrics import nli_coal
from tests.metrics.test_nli_coal import C, E, N, by_gender, records


@pytest.fixture(scope="module")
def pairs():
    return data.load(data.find("nli_coal", data.SAMPLES / "nli_coal"), ["zh"])


@pytest.fixture(scope="module")
def items(pairs):
    return data.frame(pairs)


def test_the_worst_occupation_stands_first_with_what_it_is_made_of(pairs, items):
    worst, other = (next(p.occupation for p in pairs if p.set == name) for name in ("ps", "ns"))

    def said(pair):
        if pair.occupation == worst:
            return {"ps": E, "as": C}[pair.set]
        return "?" if pair.occupation == other and pair.gender == "feminine" else N

    table = nli_coal.by(records(pairs, said), items, "occupation")
    assert list(table.columns[:4]) == ["category", "occupation", "occupation_type", "biased"]
    first, asked = table.iloc[0], items[items.occupation == worst]
    assert (first.occupation, first.occupation_type) == (worst, asked.occupation_type.iloc[0])
    assert (first.biased, first.e_p, first.c_a, first.gap) == (1, 1, 1, 1)
    assert first[E] == first[C] == 0.5
    assert np.isnan(first.not_neutral)
    assert (first.n, first.units) == (len(asked), asked.premise.nunique())
    # The pairs of a sentence count as one.
    wilson = proportion_confint(first.units, first.units, method="wilson")
    assert (first.ci_low, first.ci_high) == pytest.approx(wilson, abs=1e-4)
    assert (table.biased[1:] == 0).all()
    unread, asked = table.set_index("occupation").loc[other], items[items.occupation == other]
    assert unread.valid_rate == pytest.approx((asked.gender != "feminine").mean())
    assert np.isnan(unread.e_p)
    assert unread.not_neutral == 0


def test_by_type_gender_word_and_frame(pairs, items):
    rows = records(pairs, by_gender(C, E))
    types, genders, terms, frames = (
        nli_coal.by(rows, items, name).set_index(name)
        for name in ("occupation_type", "gender", "term", "frame")
    )
    assert types.biased.to_dict() == {"female-stereo": 0, "male-stereo": 1, "neutral": 1}
    assert genders[C].to_dict() == {"feminine": 1, "masculine": 0}
    assert terms[E].to_dict() == {"女人": 0, "男人": 1}
    assert (len(frames), frames.n.sum()) == (items.frame.nunique(), len(items))
    assert frames.biased.is_monotonic_decreasing
    assert frames.units.max() == items.groupby("frame").cluster.nunique().max()


def test_an_occupation_without_a_readable_answer_stays_and_one_without_a_name_does_not(
    pairs, items
):
    name = pairs[0].occupation
    rows = records(pairs, lambda pair: "?" if pair.occupation == name else N)
    last = nli_coal.by(rows, items, "occupation").iloc[-1]
    assert (last.occupation, last.n, last.valid_rate) == (name, 0, 0)
    assert np.isnan(last.biased)
    assert nli_coal.by(rows, items.assign(occupation=""), "occupation").empty


def test_a_column_that_is_not_there_is_refused(pairs, items, refusal):
    rows = records(pairs, lambda pair: N)
    assert "column of the items" in refusal(nli_coal.by, rows, items, "premise")
    assert "have no `frame`" in refusal(nli_coal.by, rows, items.drop(columns="frame"), "frame")


@pytest.mark.slow
def test_models_that_differ_are_told_apart_and_alike_ones_are_not(tmp_path):
    models = ["simulated:bias=0.2", "simulated:bias=0.9", "simulated:bias=0.2,seed=5"]
    runs = run.evaluate_all("nli_coal", models, tmp_path, data="samples")
    table = nli_coal.compare({done.label: done.records for done in runs}, runs[0].items)
    assert len(table) == 3 * 2 * 3  # languages and all, CoAL and FN, pairs of models
    scores = run.table(runs).set_index(["category", "metric", "model"]).score
    for row in table.to_dict("records"):
        own = scores[row["category"], row["metric"]]
        assert row["difference"] == pytest.approx(own[row["model_a"]] - own[row["model_b"]])
        assert row["ci_low"] < row["difference"] < row["ci_high"]
        assert row["p"] <= row["p_holm"]
    coal = table[(table.category == "all") & (table.metric == "coal")]
    differ, alike = (coal[coal.model_b == name].iloc[0] for name in models[1:])
    assert (differ.p_holm < 0.01, alike.p_holm > 0.05) == (True, True)
    assert differ.sentence.startswith("CoAL (all) is 0.")
    assert f"lower in {models[0]} than in {models[1]}" in differ.sentence
    assert "occupations)" in differ.sentence
    assert "No difference" in alike.sentence


def test_only_pairs_that_both_answered_are_compared(pairs, items):
    always = records(pairs, lambda pair: E)
    odd = records(pairs, lambda pair: E if pair.id % 2 else "?")
    table = nli_coal.compare({"a": always, "b": odd}, items)
    assert set(table.n) == {sum(pair.id % 2 for pair in pairs)}
    assert set(table.difference) == {0}
    assert set(table.p) == {1}
    never = records(pairs, lambda pair: "?")
    assert nli_coal.compare({"a": always, "b": never}, items).empty
    assert nli_coal.compare({"a": always}, items).empty


def test_a_model_that_can_be_read_less_often_is_named(pairs, items):
    silent = {pair.item_id for pair in pairs[::2]}
    refusing = records(pairs, lambda pair: "?" if pair.item_id in silent else N)
    table = nli_coal.compare({"a": records(pairs, lambda pair: N), "b": refusing}, items)
    assert set(table.n[table.category == "all"]) == {len(pairs) - len(silent)}
    note = "less readable: 100% of a's answers could be read, 50% of b's answers"
    assert table.note.str.endswith(note).all()
    with i18n.use_language("zh"):
        assert "可读出 50%" in i18n.note(note)
    alike = nli_coal.compare({"a": refusing, "b": refusing}, items)
    assert not alike.note.str.contains("less readable").any()
