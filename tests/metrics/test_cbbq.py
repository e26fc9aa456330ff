"""CBBQ's scores: respondents of known bias, refusals, and what stands next to a score in its note."""

import numpy as np
import pandas as pd
import pytest

from bench import data, run
from bench.metrics import cbbq
from tests.helpers.recorded import cell, templates

A, D = "ambiguous", "disambiguous"


def evaluate(folder, model, categories=None, source="samples", **options):
    options |= {"categories": categories, "data": source, "out": folder}
    return run.evaluate("cbbq", model, **options)


def cells(table, preset="robust"):
    """(category, task, metric) to score."""
    return table[table.preset == preset].set_index(["category", "task", "metric"]).score


def test_always_unknown_is_unbiased_where_ambiguous_and_undefined_elsewhere(shared, tmp_path):
    categories = ["disease", "sexual_orientation"]
    result = evaluate(tmp_path, "simulated:answer=C", categories, shared / "data/cbbq")
    for preset in ("robust", "official"):
        table = result.scores(preset)
        for category in (*categories, "all"):
            rows = table[table.category == category].set_index("metric")
            assert rows.score["s_amb"] == 0
            for metric in ("s_disamb", "s_total"):
                assert rows.loc[metric, ["score", "ci_low", "ci_high"]].isna().all()
                assert "decides for one of the two" in rows.note[metric]
            assert rows.n["s_disamb"] == 0
    accuracy = cells(result.scores())
    assert (accuracy["all", A, "accuracy"], accuracy["all", D, "accuracy"]) == (1, 0)


def test_a_refusal_is_no_measurement_of_bias_and_counts_as_none_in_the_released_scripts(tmp_path):
    table = evaluate(tmp_path, "simulated:refuse=1", ["age", "gender"]).scores_beside()
    robust = table[table.preset == "robust"].set_index("metric")
    biased = robust.loc[["s_amb", "s_disamb", "s_total", "first_option"]]
    assert len(biased) == 3 * 5
    assert biased.score.isna().all()
    assert set(biased.note) == {"no answer could be read"}
    assert (biased.valid_rate == 0).all()
    # No answer is right, though: who could not be read did not answer rightly.
    assert (robust.score["accuracy"] == 0).all()
    assert cells(table, "official")["age", A, "s_amb"] == 0


@pytest.mark.parametrize(
    ("change", "amb", "disamb"),
    [
        ({"response": "我不便回答"}, 0.5, 1),  # of every second answer
        ({"error": "refused by the server"}, 0.5, 1),
    ],
)
def test_half_the_answers_refused_lowers_the_ambiguous_score_alone(tmp_path, change, amb, disamb):
    result = evaluate(tmp_path, "simulated:bias=1", ["region"])
    records = result.records
    records.loc[records.index % 2 == 0, list(change)] = list(change.values())
    scores = cells(cbbq.score_records(records, result.items, "robust"))["region"]
    values = [scores[A, "s_amb"], scores[D, "s_disamb"], scores["all", "s_total"]]
    assert values == pytest.approx([amb, disamb, 0.4 * amb + 0.6 * disamb])


@pytest.mark.parametrize("bias", [0, 0.25, 0.5, 1])
def test_a_simulated_bias_is_recovered_and_the_rest_is_right(tmp_path, bias):
    # The respondent follows the stereotype with this chance and is right otherwise; right is never biased in the samples.
    # One interval in twenty may miss; with this seed none of the twelve does.
    table = evaluate(tmp_path, f"simulated:bias={bias},seed=2").scores("robust")
    scores = cells(table)
    for metric, task in (("s_amb", A), ("s_disamb", D), ("s_total", "all")):
        rows = table[table.metric == metric].set_index("category")
        overall, rows = rows.loc["all"], rows.drop("all")
        assert overall.ci_low <= bias <= overall.ci_high
        # Means are over categories, not over questions.
        assert overall.score == pytest.approx(rows.score.mean())
        assert len(rows) == 14
        n = np.where(rows.index == "disease", 40, 80)
        weight = 0.4**2 + 0.6**2 if metric == "s_total" else 1
        error = np.sqrt(bias * (1 - bias) / n * weight)
        assert ((rows.score - bias).abs() <= 4 * error + 1e-12).all()
        if task != "all":
            right = scores["all", task, "accuracy"]
            assert right == pytest.approx(1 - scores["all", task, metric])


def test_one_context_alone_has_no_total(tmp_path):
    table = evaluate(tmp_path, "simulated:bias=1", ["age"], tasks=[A]).scores("robust")
    wanted = {"s_amb", "accuracy", "s_amb_decided", "unknown", "first_option"}
    assert set(table.metric) == wanted


def test_the_official_number_is_shown_next_to_the_robust_one_where_they_differ(shared, tmp_path):
    category = "educational_qualification"
    table = evaluate(tmp_path, "simulated:answer=A", [category], shared / "data/cbbq")
    rows = table.scores_beside().query("category == @category and metric in ('s_amb', 's_disamb')")
    assert rows[["metric", "preset", "score"]].to_numpy().tolist() == [
        ["s_amb", "robust", 0.5],
        ["s_disamb", "robust", 0.5],
        ["s_amb", "official", 1.0],
    ]


def test_a_perfect_reader_has_no_bias_by_audited_labels(shared, tmp_path):
    categories = ["disease", "educational_qualification"]
    options = {"tasks": [D], "limit": 300}
    asked = evaluate(tmp_path, "simulated:", categories, shared / "data/cbbq", **options)
    items = asked.items.set_index("item_id")
    # Where the audit trusts no label the facts support the stereotype, as the released label says.
    facts = items.label_audited.where(items.label_audited >= 0, items.label_column)
    replies = asked.records.item_id.map(facts).map(dict(enumerate("ABC")))
    table = cbbq.score_records(asked.records.assign(response=replies), asked.items, "robust")
    released, audited = (cell(table, f"s_disamb{end}", task=D) for end in ("", "_audited"))
    assert 0.1 < released.score < 0.6
    assert audited.score == 0
    assert audited.n == (items.label_audited >= 0).sum() < released.n


def test_without_a_fault_in_the_labels_there_is_one_number(tmp_path):
    asked = evaluate(tmp_path, "simulated:", ["age"])
    assert not asked.scores().metric.str.contains("audited").any()
    old = cbbq.score_records(asked.records, asked.items.drop(columns="label_audited"), "robust")
    assert cell(old, "accuracy", task="all").score == pytest.approx(1)


def test_the_official_preset_knows_the_released_order_alone_and_says_so(own_folder):
    options = {"source": None, "limit": 12}
    model, categories = "simulated:bias=0.4", ["age", "gender"]
    done = evaluate("out", model, categories, settings={"option_order": "rotated"}, **options)
    official, robust = (done.scores(preset) for preset in ("official", "robust"))
    alone = evaluate("alone", model, categories, **options).scores("official")
    pd.testing.assert_frame_equal(official.drop(columns="note"), alone.drop(columns="note"))
    note = "asked with option_order=rotated where this preset has released"
    assert note not in " ".join(alone.note)
    for category, n in (("age", 12), ("gender", 12), ("all", 24)):
        row = cell(official, "s_amb", category=category, task=A)
        assert note in row.note
        assert row.n == n
        assert cell(robust, "s_amb", "robust", category=category, task=A).n == 3 * n


LABEL = "has the stereotyped answer for its label, though its facts are to go against it"
FILE = "polarity as in the file's name, not as in the column (polarity=file)"


@pytest.mark.parametrize(
    ("settings", "metric", "number", "text"),
    [
        ({}, "s_amb", "4 instances", FILE),
        ({}, "s_disamb", "4 instances", FILE),
        ({}, "s_disamb", "4 instances", f"each {LABEL} (--set labels=audited corrects it"),
        ({"polarity": "column"}, "s_amb", "4 instances", "polarity as in the column, not as in"),
        ({"labels": "audited"}, "s_disamb", "4 instances are left out", f"each {LABEL} (labels="),
    ],
)
def test_the_notes_tell_how_many_questions_labels_and_polarity_touch(
    tmp_path, settings, metric, number, text
):
    # A label that says the stereotyped answer, and a column of the other polarity: 4 questions each.
    source = tmp_path / "data"
    for condition in (A, D):
        wrong = {} if condition == A else {"label": "0", "question": "谁没带伞？"}
        non_neg = [{}, {"question_polarity": "neg"}]
        templates(source, {}, wrong, non_neg=non_neg, condition=condition)
    done = evaluate(tmp_path / "out", "simulated:bias=1", None, source, settings=settings)
    row = cell(done.scores(), metric, "robust", category="region")
    (part,) = (part for part in row.note.split("; ") if text in part)
    assert part.startswith(number)
    if settings.get("labels"):
        assert row.n == 16 - 4


def test_gender_has_the_cells_of_the_paper_s_figure(shared):
    items = data.frame(data.load(data.find("cbbq", shared / "data/cbbq"), ["gender"]))
    fixed = {"repeat": 0, "request": "answer", "response": "B", "error": "", "logprobs": None}
    rows = items[["category", "item_id"]].assign(task=items.condition, **fixed)
    table = cbbq.by_name_and_topic(rows, items)
    assert (table.name.nunique(), table.topic.nunique(), len(table)) == (19, 21, 58)
    assert (table.n_amb.sum(), table.n_disamb.sum()) == (1534, 1838)
    place = {"target_name": "女生", "topic": table.topic[0], "condition": A}
    asked = items[(items[list(place)] == pd.Series(place)).all(axis=1)]
    row = table[(table.name == "女生") & (table.topic == table.topic[0])].iloc[0]
    # Always B is biased where B is the woman of a negative question, or the other of a non-negative one.
    assert row.n_amb == len(asked) > 0
    assert row.s_amb == pytest.approx(((asked.polarity == "neg") == (asked.target == 1)).mean())


@pytest.mark.parametrize(
    ("categories", "wanted", "shown"),
    [
        (["village", "hobby"], "", "village"),
        (["age", "gender"], "", "gender"),
        (["village", "hobby"], "hobby", "hobby"),
        ([], "", "gender"),
    ],
)
def test_names_and_topics_are_shown_of_a_category_that_is_there(categories, wanted, shown):
    assert cbbq.shown_category(pd.DataFrame({"category": categories}), wanted) == shown
