"""Look at answers: one item by all models, hostile replies, and filters."""

import html
import re

import pytest

import bench
from bench import run
from bench.analyses import explore
from bench.core.text import INVISIBLE

# Replies, and what a page shows of them.
HOSTILE = {
    "<script>alert(1)</script>": "<script>alert(1)</script>",
    "长" * 1_000_000: "(the first 20,000 of 1,000,000 characters)",
    "\x1b[31mred \u202eturned": r"\x1b[31mred \u202eturned",
    "<img src=x onerror=alert(1)> $\\href{}$ </pre></td>": "</pre></td>",
}
ITEM = "gender:ambiguous:25"


def text_of(page):
    """The text of a page, as a browser shows it."""
    return html.unescape(re.sub(r"<[^>]*>", "", page.data))


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Runs of a biased and of a refusing respondent on two benchmarks, each question twice."""
    folder, models = tmp_path_factory.mktemp("runs"), ["simulated:bias=1", "simulated:refuse=1"]
    options = {"limit": 4, "repeats": 2, "data": "samples"}
    cbbq, nli = (run.evaluate_all(name, models, folder, **options) for name in ("cbbq", "nli_coal"))
    return cbbq + nli


@pytest.fixture(scope="module")
def answers(runs):
    return bench.answers(*runs)


def test_an_item_has_all_requests_of_all_models(runs, answers, refusal):
    items = bench.items(*runs)
    text = text_of(explore.item(answers, ITEM, items))
    for wanted in ("simulated:bias=1", "simulated:refuse=1", "repeat", "not readable"):
        assert wanted in text
    rows, fields = (frame[frame.item_id == ITEM] for frame in (answers, items))
    assert text.count(rows.prompt.iloc[0]) == 1, "a prompt that all were asked stands once"
    assert fields.context.iloc[0] in text
    assert "premise" not in text, "a field of the other benchmark"
    assert "age:999" in refusal(explore.item, answers, "age:999")


def test_replies_are_shown_as_text(answers):
    rows = answers.head(len(HOSTILE)).assign(item_id="x", response=list(HOSTILE))
    rows = rows.assign(request=list("abcd"), prompt=list(HOSTILE))
    rows["logprobs"] = [[-0.5, -1.0, float("-inf")]] * len(rows)
    page = explore.item(rows, "x")
    text = text_of(page)
    assert all(shown in text for shown in [*HOSTILE.values(), "A: −0.500 (60.7%)"])
    assert not re.search(r"<(?:script|img)|</pre>", page.data)
    assert not INVISIBLE.search(page.data)
    assert "tex2jax_ignore" in page.data
    assert len(page.data) < 500_000


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
