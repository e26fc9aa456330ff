"""Rules that turn answers into items, for answers that the examples do not have."""

import pandas as pd
import pytest

from tests.curation.conftest import cbbq_templates, mcbe_items


@pytest.mark.parametrize(
    ("scores", "score"),
    [
        (("2", "5.6", "3"), ""),
        (("1.4", "4.9", "3.4"), "3.2333"),  # a float misses 3.5 by a hair
    ],
)
def test_scores_more_than_three_and_a_half_apart_are_given_again(scores, score):
    items = pd.DataFrame({"score": ""}, index=["d1"])
    answers = pd.DataFrame({"item_id": "d1", "severity": scores})
    result = mcbe_items.average(items, answers).loc["d1"]
    assert result.score == score
    assert float(result.highest) == max(map(float, scores))


@pytest.mark.parametrize(
    ("verdicts", "edits", "explanation"),
    [
        (["edit", "edit"], ["new", "new"], "new"),
        (["edit", "edit"], ["one", "two"], ""),
        (["accept", "accept"], ["", "a remark"], "merged"),
    ],
)
def test_reviewers_edit_alike_or_leave_it_to_the_panel(verdicts, edits, explanation):
    items = pd.DataFrame({"merged": "merged"}, index=["d1"])
    answers = pd.DataFrame({"item_id": "d1", "verdict": verdicts, "edited": edits})
    assert mcbe_items.review(items, answers).explanation["d1"] == explanation


def test_facts_contradict_the_bias_about_the_second_person():
    row = {"context": "", "facts": "x", "question_neg": "", "question_nonneg": "", "target": 1}
    forms = cbbq_templates.forms(pd.DataFrame([row], index=["t1"]))
    assert forms.label.tolist() == [2, 2, 0, 1]
