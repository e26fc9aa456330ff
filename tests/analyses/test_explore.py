"""Look at answers: one item by all models, and widgets."""

import re

import pandas as pd
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


def test_widgets_change_what_is_shown(answers, items):
    many = pd.concat([answers] * 20, ignore_index=True)
    browser = explore.Browser(many.assign(long=many.prompt.str.len() > 10), items)
    assert len(browser.rows) > 10_000
    assert "25 of 10,880 answers" in browser._repr_mimebundle_()["text/html"], "on a saved page"
    browser.list.index = 7  # a click on the eighth row
    chosen = browser.rows.iloc[7]
    assert chosen.item_id in browser.shown.value
    assert chosen.question[:10] in browser.list.options[7][0]
    assert browser.filters["long"].options == (("all", None), ("True", True)), "a column of ours"
    browser.filters["valid"].value = False
    assert set(browser.rows.model) == {"simulated:refuse=1"}
    browser.contains.value = "<script>"
    assert "No answer fits." in browser.head.value
    assert (browser.list.options, browser.shown.value) == ((), "")
    browser.contains.value, browser.filters["valid"].value = "", None
    browser.filters["verdict"].value = "stereotyped"
    assert set(browser.rows.model) == {"simulated:bias=1"}
    browser.contains.value = "GENDER:AMBIGUOUS"
    assert set(browser.rows.category) == {"gender"}
