"""Look at answers: filters, one item by all models, hostile replies, and widgets."""

import json
import re
from html.parser import HTMLParser
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
    rows = "".join(f"开会，,[PLH]先说{k}。,甲，乙,x,y,1\n" for k in range(10))
    (folder / "age.csv").write_text(HEADER + rows, "utf-8")
    replies: dict[str, list[dict[str, Any]]] = {"model": [], "judge": []}
    for k in range(1, 11):
        named = {"task": "ba", "item_id": f"age:{k}"}
        reply = HOSTILE.get(k, f"分析{k}")
        replies["model"].append({**named, "request": "answer", "response": reply})
        replies["judge"] += [
            {**named, "request": f"judge:{j}", "response": str(j)} for j in range(1, 5)
        ]
    for name, lines in replies.items():
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
    # Prompts are searched too, and nothing in a text is a pattern.
    prompt = every.prompt.iloc[0][:40]
    assert set(answers.select(contains=prompt).prompt.str[:40]) == {prompt}
    assert "No answer fits" in explore.table(answers, contains=".*").page
    for filters, message in (
        ({"category": "gendre"}, "category 'gendre'.*physical_appearance"),
        ({"sort": "nonsense"}, "nonsense.*length"),
        ({"modl": "x"}, "filter 'modl'"),
    ):
        assert re.search(message, refusal(answers.select, **filters))
    assert "nothing to look at" in refusal(explore.Answers, [])


def test_rows_are_sorted_stably_and_shown_by_the_page(answers: explore.Answers) -> None:
    rows = answers.select(sort="item_id", descending=True)
    assert list(rows.item_id) == sorted(answers.rows.item_id, reverse=True)
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
    view = explore.item(runs, name)
    assert len(view.frame) == 2 * 2
    text = Page(view._repr_html_()).text
    for wanted in ("simulated:bias=1", "simulated:refuse=1", "answered, repeat 1", "not readable"):
        assert wanted in text
    assert text.count(view.frame.prompt.iloc[0]) == 1, "a prompt that all were asked stands once"
    assert str(answers.fields("cbbq", name)["context"]) in text
    assert "age:999" in refusal(explore.item, answers, "age:999")


def test_what_one_model_alone_was_asked_or_answered(answers: explore.Answers) -> None:
    rows = answers.rows[answers.rows.item_id == answers.rows.item_id.iloc[0]].copy()
    rows["repeat"], rows["error"] = 0, "refused by the filter"
    rows["logprobs"] = [[-0.5, -1.0, float("-inf")]] * len(rows)
    rows["prompt"] = [f"prompt {k}" for k in range(len(rows))]
    other = explore.Answers.__new__(explore.Answers)
    other.items = answers.items
    other.rows = pd.concat([rows, rows.head(1).assign(request="judge:1")])
    text = Page(explore.item(other, rows.item_id.iloc[0]).page).text
    for wanted in (
        "not asked",
        "asked of the judge",
        "no answer came: refused by the filter",
        "Asked simulated:refuse=1:",
        "A: -0.500 (60.7%)",
        "C: -inf (0.0%)",
    ):
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
    elif k == 3:
        assert r"\x1b[31mred\x1b[0m \x00\x07 \u202eturned" in text
    else:
        assert HOSTILE[k] in text
    assert "judge:4, asked of the judge" in text or k == 5


def test_widgets_change_what_is_shown(answers: explore.Answers) -> None:
    browser = explore.Browser(answers)
    bundle = browser._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert "Answers 1 to" in Page(bundle["text/html"]).text, "a saved page has the table"
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
    browser.item.value = second = browser.item.options[1]
    assert f">{second}</h4>" in browser.shown.value
    browser.contains.value = "<script>"
    assert browser.table.value == "<p>No answer fits.</p>"
    assert browser.item.value is None
    assert browser.shown.value == ""
    browser.contains.value = browser.filters["category"].value = browser.sort.value = ""
    browser.validity.value, browser.descending.value = "all", False
    assert (browser.table.value, browser.shown.value) == before


def test_a_hundred_thousand_answers_are_filtered_and_sorted(runs: list[Run]) -> None:
    answers = explore.Answers(runs)
    answers.rows = pd.concat([answers.rows] * (100_000 // len(answers.rows) + 1), ignore_index=True)
    browser = explore.Browser(answers)
    assert len(browser.rows) >= 100_000
    browser.filters["category"].value = "gender"
    browser.filters["category"].value = ""
    browser.contains.value = "gender:ambiguous:1"
    browser.sort.value = "length"
    browser.page.value = 2
    assert 0 < len(browser.rows) < 100_000


def test_two_runs_of_a_model_are_named_by_folder(tmp_path: Any) -> None:
    options: dict[str, Any] = {"data": data.SAMPLES / "nli_coal", "limit": 1}
    both = [
        run.evaluate("nli_coal", "simulated:bias=1", out=tmp_path / name / "x", seed=k, **options)
        for k, name in enumerate("ab")
    ]
    names = ["simulated:bias=1 (a/x)", "simulated:bias=1 (b/x)"]
    assert explore.Answers(both).values("model") == names
    influential = explore.most_influential(both, top=1)
    assert list(influential)[:2] == ["benchmark", "model"]
    assert set(influential.benchmark) == {"nli_coal"}
