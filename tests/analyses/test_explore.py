"""Look at answers: filters, one item by all models, hostile replies, and widgets."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from bench import data, run
from bench.analyses import explore

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

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text = ""
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", page)
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        assert tag in TAGS
        known = {"style", "class", "scope", "open", "role", "tabindex", "aria-label"}
        assert {name for name, _ in attrs} <= known

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> explore.Answers:
    """Answers of a biased and of a refusing respondent on two benchmarks, twice each."""
    folder, models = tmp_path_factory.mktemp("runs"), ["simulated:bias=1", "simulated:refuse=1"]
    asked = [
        run.evaluate_all(name, models, folder, data=data.SAMPLES / name, limit=4, repeats=2)
        for name in ("cbbq", "nli_coal")
    ]
    return explore.Answers([one for runs in asked for one in runs])


def test_shares_of_readable_answers_are_by_run_and_model(tmp_path: Path) -> None:
    models, options = ["simulated:bias=1", "simulated:refuse=1"], {"limit": 2, "repeats": 2}
    runs = [
        one
        for name in ("cbbq", "nli_coal")
        for one in run.evaluate_all(name, models, tmp_path, data=data.SAMPLES / name, **options)
    ]
    shares = explore.readable(runs)
    assert list(shares.columns) == ["run", *models]
    assert [name.split(".")[0] for name in shares.run] == ["cbbq", "nli_coal"]
    assert shares[models].to_numpy().tolist() == [[1.0, 0.0], [1.0, 0.0]]


def test_filters_select_and_sort_rows(answers: explore.Answers, refusal: Any) -> None:
    every = answers.select()
    assert len(every) == len(answers.rows) == 2 * 2 * (14 * 2 * 4 + 2 * 3 * 4)
    gender = explore.table(answers, benchmark="cbbq", category="gender", valid=True).frame
    assert set(gender.model) == {"simulated:bias=1"}
    assert len(gender) == 2 * 2 * 4
    assert set(explore.table(answers, valid=False).frame.model) == {"simulated:refuse=1"}
    assert set(answers.select(contains="ENTAILMENT").response) == {"entailment"}
    # Prompts are searched too, and nothing in a text is a pattern.
    prompt = every.prompt.iloc[0][:40]
    assert set(answers.select(contains=prompt).prompt.str[:40]) == {prompt}
    assert answers.select(contains=".*").empty
    # One always follows the stereotype, and the other refuses: they differ wherever one can.
    assert set(answers.select(verdict="stereotyped").model) == {"simulated:bias=1"}
    differing = answers.select(models_differ=True, model="simulated:refuse=1")
    assert set(differing.verdict) == {"unreadable"}
    pairs = answers.select(models_differ=True).head(2)
    assert len({*pairs.item_id}) == 1, "answers to one request are next to each other"
    assert pairs.model.nunique() == 2
    lengths = answers.select(sort="length", descending=True).response.str.len()
    assert lengths.is_monotonic_decreasing
    pages = [explore.table(answers, start=start).page for start in (0, 7, explore.PAGE, 10**9)]
    assert pages[0] == pages[1] != pages[2]
    assert f"to {len(every)} of {len(every)}" in pages[3]
    # The first line of CBBQ's prompts is the same in all, and so no part of the question.
    assert pages[0].count("阅读下面的情景") == 0
    assert every.question.iloc[0][:40] in pages[0]
    message = refusal(answers.select, category="gendre")
    assert re.search("category 'gendre'.*physical_appearance", message)
    assert "filter 'modl'" in refusal(answers.select, modl="x")


def test_an_item_has_all_requests_of_all_models(answers: explore.Answers, refusal: Any) -> None:
    name = "gender:ambiguous:1"
    view = explore.item(answers, name)
    assert len(view.frame) == 2 * 2
    text = Page(view._repr_html_()).text
    for wanted in ("simulated:bias=1", "simulated:refuse=1", "answered, repeat 1", "not readable"):
        assert wanted in text
    assert text.count(view.frame.prompt.iloc[0]) == 1, "a prompt that all were asked stands once"
    assert str(answers.fields("cbbq", name)["context"]) in text
    assert "age:999" in refusal(explore.item, answers, "age:999")


def changed(answers: explore.Answers, rows: pd.DataFrame) -> explore.Answers:
    """Return the same items with other rows."""
    other = explore.Answers.__new__(explore.Answers)
    other.items, other.rows = answers.items, rows
    return other


def test_replies_are_shown_as_text(answers: explore.Answers) -> None:
    rows = answers.rows.head(len(HOSTILE)).assign(item_id="x", response=list(HOSTILE))
    rows = rows.assign(request=list("abcd"), prompt=list(HOSTILE))
    rows["logprobs"] = [[-0.5, -1.0, float("-inf")]] * len(rows)
    hostile = changed(answers, rows)
    item, table = explore.item(hostile, "x"), explore.table(hostile)
    assert list(item.frame.response) == list(HOSTILE), "the frame has them as they were given"
    text = Page(item.page).text
    assert all(shown in text for shown in [*HOSTILE.values(), "A: −0.500 (60.7%)"])
    for page in (item.page, table.page):
        Page(page)
        assert "tex2jax_ignore" in page
        assert len(page) < 500_000


def test_widgets_change_what_is_shown(answers: explore.Answers) -> None:
    browser = explore.Browser(changed(answers, pd.concat([answers.rows] * 400, ignore_index=True)))
    assert len(browser.rows) > 100_000
    assert "Answers 1 to" in browser._repr_mimebundle_()["text/html"], "on a saved page"
    assert browser.page.max == -(-len(browser.rows) // explore.PAGE)
    browser.page.value = 3
    assert f"Answers {2 * explore.PAGE + 1} to" in browser.counted.value
    browser.answer.index = 7  # a click on the eighth row
    chosen = browser.rows.iloc[2 * explore.PAGE + 7]
    assert chosen.item_id in browser.shown.value
    assert chosen.question[:10] in browser.answer.options[7][0]
    browser.validity.value = "not readable"
    assert browser.page.value == 1
    assert set(browser.rows.model) == {"simulated:refuse=1"}
    browser.sort.value, browser.descending.value = "item_id", True
    assert max(browser.rows.item_id) in browser.shown.value
    browser.contains.value = "<script>"
    assert browser.counted.value == "<p>No answer fits.</p>"
    assert (browser.answer.options, browser.shown.value) == ((), "")
    browser.contains.value, browser.validity.value = "", "all"
    browser.models_differ.value, browser.filters["verdict"].value = True, "stereotyped"
    assert set(browser.rows.model) == {"simulated:bias=1"}


def test_the_finding_counts_answers_and_those_that_could_be_read(answers: explore.Answers) -> None:
    [finding] = explore.findings(answers)
    assert finding.startswith(
        f"{2 * 2 * (14 * 2 * 4 + 2 * 3 * 4)} answers, of which 50.0% could be read"
    )
