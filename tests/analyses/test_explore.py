"""Look at answers: one item by all models, hostile replies, and filters."""

import re
from html.parser import HTMLParser

import pytest

import bench
from bench import run
from bench.analyses import explore
from bench.benchmarks import get

# Replies, and what a page shows of them.
HOSTILE = {
    "<script>alert(1)</script>": "<script>alert(1)</script>",
    "长" * 1_000_000: "(the first 20,000 of 1,000,000 characters)",
    "\x1b[31mred\x1b[0m \x00\x07 \u202eturned": r"\x1b[31mred\x1b[0m \x00\x07 \u202eturned",
    '"><img src=x onerror=alert(1)> $\\href{javascript:alert(1)}{x}$ </pre></td>': "</pre></td>",
}
TAGS = re.findall(r"\w+", "div p table thead tbody tr th td h4 details summary strong em pre br")


class Page(HTMLParser):
    """Check that a browser would make only our elements of a page, and collect its text."""

    def __init__(self, page):
        super().__init__()
        self.text = ""
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", page)
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        assert tag in TAGS
        known = {"style", "class", "scope", "open", "role", "tabindex", "aria-label", "border"}
        assert {name for name, _ in attrs} <= known

    def handle_data(self, data):
        self.text += data


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
    text = Page(explore.item(answers, ITEM, items).data).text
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
    page = explore.item(rows, "x").data
    text = Page(page).text
    assert all(shown in text for shown in [*HOSTILE.values(), "A: −0.500 (60.7%)"])
    assert "tex2jax_ignore" in page
    assert len(page) < 500_000


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
