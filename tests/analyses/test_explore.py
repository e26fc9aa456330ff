"""Look at answers: one item by all models, and filters."""

import re

import pytest

import bench
from bench import run
from bench.analyses import explore
from bench.benchmarks import get

ITEM = "gender:ambiguous:1"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Runs of a biased and of a refusing respondent on two benchmarks, each question twice."""
    folder, models = tmp_path_factory.mktemp("runs"), ["simulated:bias=1", "simulated:refuse=1"]
    options = {"limit": 4, "repeats": 2}
    return [
        one
        for name in ("cbbq", "nli_coal")
        for one in run.evaluate_all(
            name, models, folder, data=get(name).metadata.samples, **options
        )
    ]


@pytest.fixture(scope="module")
def answers(runs):
    return bench.answers(*runs)


@pytest.fixture(scope="module")
def items(runs):
    return bench.items(*runs)


def test_an_item_has_all_requests_of_all_models(answers, items, refusal):
    text = re.sub("<[^>]*>", "", explore.item(answers, ITEM, items).data)
    for wanted in ("simulated:bias=1", "simulated:refuse=1", "repeat", "not readable"):
        assert wanted in text
    rows, fields = (frame[frame.item_id == ITEM] for frame in (answers, items))
    assert text.count(rows.prompt.iloc[0]) == 1, "a prompt that all were asked stands once"
    assert fields.context.iloc[0] in text
    assert "premise" not in text, "a field of the other benchmark"
    assert "age:999" in refusal(explore.item, answers, "age:999")


@pytest.mark.parametrize(
    ("contains", "values", "column", "found"),
    [
        ("", {"valid": False, "task": "all"}, "model", {"simulated:refuse=1"}),
        ("GENDER:AMBIGUOUS", {"verdict": "stereotyped"}, "category", {"gender"}),
        ("<script>", {}, "model", set()),
    ],
)
def test_answers_match_by_text_and_by_columns(answers, contains, values, column, found):
    assert set(explore.matching(answers, contains, **values)[column]) == found
