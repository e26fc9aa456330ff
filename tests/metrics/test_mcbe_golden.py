"""McBE through the command: the scores and prompts of the authors' own functions for some rows."""

import ast
import json
import re
from itertools import product

import pandas as pd
import pytest

from bench import records
from tests.helpers.recorded import command, replay, strict_order

TASKS = {
    "preference_computation": "pc",
    "classification": "sc",
    "scenario_selection": "ss",
    "bias_analysis": "ba",
    "bias_scoring": "bs",
}
# The requests to a judge.
JUDGED = {"sc": ["order"], "ba": ["judge:1", "judge:2", "judge:3", "judge:4"]}
# Answers at which the released code stops, of all answers of the case.
STOPS = {"empty": "20 of 20 answers", "unparsable judge": "3 of 12 answers"}


@pytest.fixture(scope="module")
def golden(shared):
    return json.loads((shared / "golden/mcbe.json").read_text("utf-8"))


@pytest.fixture
def official(monkeypatch, capsys, tmp_path, shared, golden):
    """Runs the command as the release asks, over the golden rows: rows of scores, and records."""
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(golden["rows"]).to_excel(tmp_path / "gender.xlsx", index=False)

    def call(case):
        answers, marks = replies_of(golden, case)
        words = ["run", "mcbe", "--data", tmp_path, "--out", case["name"], "--preset", "official"]
        words += ["--tasks", TASKS[case["task"]], "--format", "json"]
        words += ["--prompts", shared / "data/mcbe/prompts.toml"]
        words += ["--model", replay(tmp_path / "model.jsonl", answers)]
        words += ["--judge", replay(tmp_path / "judge.jsonl", marks)] if marks else []
        status, printed, errors = command(monkeypatch, capsys, *words)
        assert status == 0, errors
        return json.loads(printed)["scores"], records.read(tmp_path / case["name"])

    return call


def replies_of(golden, case):
    """Return the model's and the judge's replies of a case, by task, item and request."""
    task, replies, answers = TASKS[case["task"]], case.get("replies"), {}
    items = [f"gender:{k}" for k in (1, 2, 3)]
    for k, (item, row) in enumerate(zip(items, golden["rows"], strict=True)):
        words = row["words"].split("，")
        if task == "pc":
            nlls = case["mean_nll_per_sentence"][k]
            answers |= {(task, item, w): nll for w, nll in zip(words, nlls, strict=True)}
        elif task == "ss":
            ordered = strict_order(item, words)
            answers |= ordered if isinstance(replies, str) else dict.fromkeys(ordered, replies[0])
        else:
            answers[task, item, "answer"] = replies[k]
    marked = product([task], items, JUDGED.get(task, []))
    return answers, dict(zip(marked, case.get("judge") or [], strict=True))


@pytest.mark.parametrize("number", range(12))
def test_the_command_prints_what_the_released_code_prints(golden, official, number):
    assert len(golden["cases"]) == 12
    case = golden["cases"][number]
    table, asked = official(case)
    answers, marks = replies_of(golden, case)
    assert len(asked) == len(answers) + len(marks)
    rows = [row for row in table if (row["task"], row["metric"]) == (TASKS[case["task"]], "score")]
    assert {row["category"] for row in rows} == {"gender", "all"}
    stops = STOPS.get(case["name"])
    for row in rows:
        if stops:
            assert row["score"] is None
            assert f"the released code stops with an error: {stops}" in row["note"]
        else:
            assert repr(row["score"]) == repr(case["official_result"])
            assert "stops" not in row["note"]
    if not stops and "n_model_calls" in case:
        # The released code makes no other calls than these.
        assert (len(answers), len(marks)) == (case["n_model_calls"], case["n_judge_calls"])


def without_labels(prompt):
    """Return a prompt without its list of labels, and the list, whose order differs by process."""
    (labels,) = re.findall(r"\[.*\]", prompt)
    return prompt.replace(labels, "[]"), set(ast.literal_eval(labels))


def test_prompts_are_the_authors(golden, official):
    asked, wanted = {}, golden["prompts"]
    for case in golden["cases"]:
        if case["name"] in ("all right", "always A", "full marks", "exact"):
            _, rows = official(case)
            keys = zip(rows.task, rows.item_id, rows.request, strict=True)
            asked |= dict(zip(keys, rows.prompt, strict=True))
    for task, request, name in (
        ("sc", "order", "order_row0"),
        ("ss", "男生|女生", "SS_row0_pair0"),
        ("ba", "answer", "BA_row0"),
        ("bs", "answer", "BS_row0"),
        *(("ba", f"judge:{k}", f"judge_row0_{k}") for k in range(1, 5)),
    ):
        assert asked[task, "gender:1", request] == wanted[name]
    for item, name in (("gender:1", "SC_row0"), ("gender:2", "SC_row1_judge_says_2")):
        assert without_labels(asked["sc", item, "answer"]) == without_labels(wanted[name])
    row = golden["rows"][0]
    one, two = (
        row["context"] + row["sentence"].replace("[PLH]", word) for word in row["words"].split("，")
    )
    pairs = [pair.split(" || ") for pair in wanted["SS_row1_order"]]
    own = [prompt for key, prompt in asked.items() if key[:2] == ("ss", "gender:2")]
    assert own == [wanted["SS_row0_pair0"].replace(one, a).replace(two, b) for a, b in pairs]
