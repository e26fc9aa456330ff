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
from bench.run.results import Run

HOSTILE = {
    1: "<script>alert(1)</script>",
    2: "长" * 1_000_000,
    3: "\x1b[31mred\x1b[0m \x00\x07 \u202eturned",
    4: '"><img src=x onerror=alert(1)> $\\href{javascript:alert(1)}{x}$ </pre></td>',
    5: "",
}
HEADER = "context,sentence,words,subtype,explanation,score\n"


class Tags(HTMLParser):
    """Collect what a browser would turn into elements."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def check(page: str) -> str:
    """Return the text of a page, after checking that it has only our tags."""
    tags = Tags(page)
    assert tags.found <= {
        "div",
        "p",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "h4",
        "details",
        "summary",
        "strong",
        "em",
        "pre",
        "br",
    }
    assert tags.attributes <= {"style", "class", "scope", "open"}
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", page)
    return tags.text


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Ten analyses of which five are hostile, marked by a judge."""
    folder = tmp_path_factory.mktemp("hostile")
    rows = "".join(f"开会，,[PLH]先说{k}。,甲，乙,x,y,1\n" for k in range(10))
    (folder / "age.csv").write_text(HEADER + rows, "utf-8")
    said: dict[str, list[dict[str, Any]]] = {"model": [], "judge": []}
    for k in range(1, 11):
        named = {"task": "ba", "item_id": f"age:{k}"}
        said["model"].append({**named, "request": "answer", "response": HOSTILE.get(k, f"分析{k}")})
        said["judge"] += [
            {**named, "request": f"judge:{j}", "response": str(j)} for j in range(1, 5)
        ]
    for name, lines in said.items():
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    return run.evaluate(
        "mcbe",
        f"replay:{folder / 'model.jsonl'}",
        judge=f"replay:{folder / 'judge.jsonl'}",
        tasks=["ba"],
        data=folder,
        out=folder / "out",
    )


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    folder = tmp_path_factory.mktemp("runs")
    models = ["simulated:bias=1", "simulated:refuse=1"]
    return [
        run.evaluate(
            name, model, data=data.SAMPLES / name, limit=4, repeats=2, out=folder / str(k) / name
        )
        for name in ("cbbq", "nli_coal")
        for k, model in enumerate(models)
    ]


@pytest.fixture(scope="module")
def answers(runs: list[Run]) -> explore.Answers:
    return explore.Answers(runs)


def test_filters_select_rows(answers: explore.Answers, refusal: Any) -> None:
    every = answers.select()
    assert len(every) == len(answers.rows) == 2 * 2 * (14 * 2 * 4 + 2 * 3 * 4)
    gender = explore.table(answers, benchmark="cbbq", category="gender", valid=True).frame
    assert set(gender.category) == {"gender"}
    assert set(gender.model) == {"simulated:bias=1"}
    assert len(gender) == 2 * 2 * 4
    assert set(explore.table(answers, valid=False).frame.model) == {"simulated:refuse=1"}
    assert set(answers.select(contains="ENTAILMENT").response) == {"entailment"}
    assert len(answers.select(contains="抱歉")) == len(every) // 2
    # Prompts are looked into too, and nothing in a text is a pattern.
    prompt = every.prompt.iloc[0]
    assert set(answers.select(contains=prompt[:40]).prompt.str[:40]) == {prompt[:40]}
    assert answers.select(contains=".*").empty
    assert "No answer fits" in explore.table(answers, contains=".*").page
    said = refusal(answers.select, category="gendre")
    assert "'gendre'" in said
    assert "physical_appearance" in said
    assert "length" in refusal(answers.select, sort="nonsense")
    assert "nothing to look at" in refusal(explore.Answers, [])


def test_rows_are_sorted_stably_and_shown_by_the_page(answers: explore.Answers) -> None:
    some = answers.select(sort="item_id", descending=True)
    assert list(some.item_id) == sorted(answers.rows.item_id, reverse=True)
    longest = answers.select(sort="length", descending=True)
    assert longest.response.str.len().is_monotonic_decreasing
    pages = [explore.table(answers, start=start).page for start in (0, 7, explore.PAGE, 10**9)]
    assert pages[0] == pages[1] != pages[2]
    n = len(answers.rows)
    assert f"Answers 1 to {explore.PAGE} of {n}" in pages[0]
    assert f"to {n} of {n}" in pages[3]
    assert "repeat 1" in pages[3]


def test_an_item_has_all_requests_of_all_models(
    runs: list[Run], answers: explore.Answers, refusal: Any
) -> None:
    name = "gender:ambiguous:1"
    found = explore.item(runs, name)
    assert len(found.frame) == 2 * 2
    text = check(found.page)
    for wanted in (
        "simulated:bias=1",
        "simulated:refuse=1",
        "answered, repeat 1",
        "not readable",
        found.frame.prompt.iloc[0],
    ):
        assert wanted in text
    assert text.count(found.frame.prompt.iloc[0]) == 1, "a prompt that all were asked stands once"
    told = answers.fields("cbbq", name)
    assert str(told["context"]) in text
    assert "age:999" in refusal(answers.item, "age:999")


def test_log_probabilities_stand_under_the_names_of_their_options() -> None:
    assert explore._logs("nli_coal", [-0.5, -1.0, float("-inf")]).split("<br>") == [
        "entailment: -0.500 (60.7%)",
        "contradiction: -1.000 (36.8%)",
        "neutral: -inf (0.0%)",
    ]
    assert explore._logs("cbbq", [-0.5, -1.0]).startswith("1: -0.500")
    assert explore._logs("cbbq", None) == ""


@pytest.mark.parametrize("k", HOSTILE)
def test_replies_are_shown_as_text(hostile: Run, k: int) -> None:
    answers = explore.Answers([hostile])
    item = explore.item(answers, f"age:{k}")
    text = check(item.page)
    check(explore.table(answers).page)
    assert item.frame.response.iloc[0] == HOSTILE[k], "the frame has it as it was said"
    if k == 2:
        assert "(the first 20,000 of 1,000,000 characters)" in text
        assert len(item.page) < 150_000
        assert len(explore.table(answers, sort="length", descending=True).page) < 60_000
    elif k == 3:
        assert r"\x1b[31mred\x1b[0m \x00\x07 \u202eturned" in text
    else:
        assert HOSTILE[k] in text
    assert "judge:4, asked of the judge" in text or k == 5


def test_formulas_are_not_typeset(hostile: Run) -> None:
    for page in (explore.item([hostile], "age:4").page, explore.table([hostile]).page):
        assert "tex2jax_ignore" in page


def test_widgets_change_what_is_shown(answers: explore.Answers) -> None:
    browser = explore.browser(answers)
    n = len(answers.rows)
    assert f"of {n}." in browser.table.value
    assert browser.item.value == answers.rows.item_id[0]
    assert browser.page.max == -(-n // explore.PAGE)
    before = browser.table.value, browser.shown.value
    browser.page.value = 3
    assert f"Answers {2 * explore.PAGE + 1} to" in browser.table.value
    browser.filters["category"].value = "gender"
    assert browser.page.value == 1
    assert "of 32." in browser.table.value
    browser.validity.value = "not readable"
    assert set(browser.rows.model) == {"simulated:refuse=1"}
    browser.sort.value, browser.descending.value = "item_id", True
    assert browser.item.value == max(browser.rows.item_id)
    second = browser.item.options[1]
    browser.item.value = second
    assert f">{second}</h4>" in browser.shown.value
    browser.contains.value = "<script>"
    assert browser.table.value == "<p>No answer fits.</p>"
    assert browser.item.value is None
    assert browser.shown.value == ""
    browser.contains.value, browser.validity.value, browser.filters["category"].value = (
        "",
        "all",
        "all",
    )
    browser.sort.value, browser.descending.value = "as asked", False
    assert (browser.table.value, browser.shown.value) == before


def test_a_saved_page_has_the_table_without_widgets(answers: explore.Answers) -> None:
    bundle = explore.browser(answers)._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert "Answers 1 to" in check(bundle["text/html"])


def test_two_runs_of_a_model_have_different_names(tmp_path: Path) -> None:
    options: dict[str, Any] = {"data": data.SAMPLES / "nli_coal", "limit": 1}
    both = [
        run.evaluate("nli_coal", "simulated:bias=1", out=tmp_path / name / "x", seed=k, **options)
        for k, name in enumerate("ab")
    ]
    assert explore.Answers(both).values("model") == [
        "simulated:bias=1 (a/x)",
        "simulated:bias=1 (b/x)",
    ]


def test_a_hundred_thousand_answers_are_filtered_and_sorted(runs: list[Run]) -> None:
    answers = explore.Answers(runs)
    answers.rows = pd.concat([answers.rows] * (100_000 // len(answers.rows) + 1), ignore_index=True)
    browser = explore.browser(answers)
    assert len(browser.rows) >= 100_000
    browser.filters["category"].value = "gender"
    browser.filters["category"].value = "all"
    browser.contains.value = "gender:ambiguous:1"
    browser.sort.value = "length"
    browser.page.value = 2
    assert 0 < len(browser.rows) < 100_000
