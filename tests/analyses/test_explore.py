"""Look at answers: filters, one item by all models, hostile replies, and widgets."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from bench import data, run
from bench.analyses import explore
from bench.run import Run
from tests.helpers.recorded import table as written

HOSTILE = {
    1: "<script>alert(1)</script>",
    2: "长" * 1_000_000,
    3: "\x1b[31mred\x1b[0m \x00\x07 \u202eturned",
    4: '"><img src=x onerror=alert(1)> $\\href{javascript:alert(1)}{x}$ </pre></td>',
    5: "",
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
        assert {name for name, _ in attrs} <= {"style", "class", "scope", "open"}

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Ten analyses of which five are hostile, graded by a judge."""
    folder = tmp_path_factory.mktemp("hostile")
    written(folder, *({"sentence": f"[PLH]先说{k}。"} for k in range(10)))
    named = [{"task": "ba", "item_id": f"age:{k}"} for k in range(1, 11)]
    replies = {"model": ["answer"], "judge": [f"judge:{k}" for k in range(1, 5)]}
    for name, requests in replies.items():
        lines = [
            {**item, "request": request, "response": HOSTILE.get(k, "说") if name == "model" else k}
            for k, item in enumerate(named, 1)
            for request in requests
        ]
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    model, judge = (f"replay:{folder / name}.jsonl" for name in replies)
    return run.evaluate("mcbe", model, judge=judge, tasks=["ba"], data=folder, out=folder / "out")


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> explore.Answers:
    """Answers of a biased and of a refusing respondent on two benchmarks, twice each."""
    folder, models = tmp_path_factory.mktemp("runs"), ["simulated:bias=1", "simulated:refuse=1"]
    asked = [
        run.evaluate_all(name, models, folder, data=data.SAMPLES / name, limit=4, repeats=2)
        for name in ("cbbq", "nli_coal")
    ]
    return explore.Answers([one for runs in asked for one in runs])


def test_filters_select_and_sort_rows(answers: explore.Answers, refusal: Any) -> None:
    every = answers.select()
    assert len(every) == len(answers.rows) == 2 * 2 * (14 * 2 * 4 + 2 * 3 * 4)
    gender = explore.table(answers, benchmark="cbbq", category="gender", valid=True).frame
    assert set(gender.category) == {"gender"}
    assert set(gender.model) == {"simulated:bias=1"}
    assert len(gender) == 2 * 2 * 4
    assert set(explore.table(answers, valid=False).frame.model) == {"simulated:refuse=1"}
    assert set(answers.select(contains="ENTAILMENT").response) == {"entailment"}
    # Prompts are searched too, and nothing in a text is a pattern.
    prompt = every.prompt.iloc[0][:40]
    assert set(answers.select(contains=prompt).prompt.str[:40]) == {prompt}
    assert answers.select(contains=".*").empty
    rows = answers.select(sort="item_id", descending=True)
    assert list(rows.item_id) == sorted(every.item_id, reverse=True)
    lengths = answers.select(sort="length", descending=True).response.str.len()
    assert lengths.is_monotonic_decreasing
    pages = [explore.table(answers, start=start).page for start in (0, 7, explore.PAGE, 10**9)]
    assert pages[0] == pages[1] != pages[2]
    assert f"to {len(every)} of {len(every)}" in pages[3]
    for filters, message in (
        ({"category": "gendre"}, "category 'gendre'.*physical_appearance"),
        ({"sort": "nonsense"}, "nonsense.*length"),
        ({"modl": "x"}, "filter 'modl'"),
    ):
        assert re.search(message, refusal(answers.select, **filters))
    assert "nothing to look at" in refusal(explore.Answers, [])


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
    # What one model alone was asked, an answer that did not come, and log-probabilities.
    rows = view.frame.assign(repeat=0, error="refused by the filter")
    rows["logprobs"] = [[-0.5, -1.0, float("-inf")]] * len(rows)
    rows["prompt"] = [f"prompt {k}" for k in range(len(rows))]
    other = explore.Answers.__new__(explore.Answers)
    other.items, other.rows = answers.items, pd.concat([rows, rows[:1].assign(request="judge:1")])
    text = Page(explore.item(other, name).page).text
    for wanted in ("not asked", "no answer came: refused by the filter", "A: -0.500 (60.7%)"):
        assert wanted in text


@pytest.mark.parametrize("k", HOSTILE)
def test_replies_are_shown_as_text(hostile: Run, k: int) -> None:
    answers = explore.Answers([hostile])
    item = explore.item(answers, f"age:{k}")
    table = explore.table(answers, sort="length", descending=True)
    text = Page(item.page).text
    Page(table.page)
    assert "tex2jax_ignore" in item.page
    assert "tex2jax_ignore" in table.page
    assert item.frame.response.iloc[0] == HOSTILE[k], "the frame has it as it was given"
    if k == 2:
        assert "(the first 20,000 of 1,000,000 characters)" in text
        assert len(item.page) < 150_000
        assert len(table.page) < 60_000
    else:
        shown = {3: r"\x1b[31mred\x1b[0m \x00\x07 \u202eturned"}
        assert shown.get(k, HOSTILE[k]) in text


def test_widgets_change_what_is_shown(answers: explore.Answers) -> None:
    many = explore.Answers.__new__(explore.Answers)
    many.items = answers.items
    many.rows = pd.concat([answers.rows] * (100_000 // len(answers.rows) + 1), ignore_index=True)
    for browser in (explore.Browser(answers), explore.Browser(many)):
        bundle = browser._repr_mimebundle_()
        assert "application/vnd.jupyter.widget-view+json" in bundle
        assert "Answers 1 to" in Page(bundle["text/html"]).text, "a saved page has the table"
        assert browser.item.value == browser.rows.item_id.iloc[0]
        assert browser.page.max == -(-len(browser.rows) // explore.PAGE)
        before = browser.table.value, browser.shown.value
        browser.page.value = 3
        assert f"Answers {2 * explore.PAGE + 1} to" in browser.table.value
        browser.filters["category"].value = "gender"
        assert browser.page.value == 1
        browser.validity.value = "not readable"
        assert set(browser.rows.model) == {"simulated:refuse=1"}
        browser.sort.value, browser.descending.value = "item_id", True
        assert browser.item.value == max(browser.rows.item_id)
        browser.contains.value = "<script>"
        assert browser.table.value == "<p>No answer fits.</p>"
        assert (browser.item.value, browser.shown.value) == (None, "")
        browser.contains.value = browser.filters["category"].value = browser.sort.value = ""
        browser.validity.value, browser.descending.value = "all", False
        assert (browser.table.value, browser.shown.value) == before


def test_two_runs_of_a_model_are_named_by_folder(tmp_path: Path) -> None:
    options: Any = {"data": data.SAMPLES / "nli_coal", "limit": 1}
    both = [
        run.evaluate("nli_coal", "simulated:bias=1", out=tmp_path / name / "x", seed=k, **options)
        for k, name in enumerate("ab")
    ]
    names = ["simulated:bias=1 (a/x)", "simulated:bias=1 (b/x)"]
    assert explore.Answers(both).values("model") == names
    influential = explore.most_influential(both, top=1)
    assert list(influential)[:2] == ["benchmark", "model"]
    assert set(influential.benchmark) == {"nli_coal"}
