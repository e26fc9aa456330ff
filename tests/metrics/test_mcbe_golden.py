"""McBE through the command: what the authors' own functions print and ask for the same rows."""

import ast
import json
import re
from itertools import permutations

import pandas as pd
import pytest

from bench import records
from tests.helpers.recorded import command, replay

TASKS = {
    "preference_computation": "pc",
    "classification": "sc",
    "scenario_selection": "ss",
    "bias_analysis": "ba",
    "bias_scoring": "bs",
}
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
        answers, marks = answered(golden, case)
        words = ["run", "mcbe", "--data", tmp_path, "--out", case["name"], "--preset", "official"]
        words += ["--tasks", TASKS[case["task"]], "--format", "json"]
        words += ["--prompts", shared / "data/mcbe/prompts.toml"]
        words += ["--model", replay(tmp_path / "model.jsonl", answers)]
        words += ["--judge", replay(tmp_path / "judge.jsonl", marks)] if marks else []
        status, printed, errors = command(monkeypatch, capsys, *words)
        assert status == 0, errors
        return json.loads(printed)["scores"], records.read(tmp_path / case["name"])

    return call


def answered(golden, case):
    """The model's and the judge's replies of a case, by the names that records have."""
    task, replies, marks = TASKS[case["task"]], case.get("replies"), case.get("judge") or []
    answers = {}
    for k, row in enumerate(golden["rows"]):
        item, words = f"gender:{k + 1}", row["words"].split("，")
        if task == "pc":
            nlls = case["mean_nll_per_sentence"][k]
            answers |= {(task, item, w, 0): nll for w, nll in zip(words, nlls, strict=True)}
        elif task == "ss":
            for a, b in permutations(words, 2):
                earlier = "A" if words.index(a) < words.index(b) else "B"
                reply = earlier if isinstance(replies, str) else replies[0]
                answers[task, item, f"{a}|{b}", 0] = reply
        else:
            answers[task, item, "answer", 0] = replies[k]
    asked = {"sc": ["order"], "ba": ["judge:1", "judge:2", "judge:3", "judge:4"]}.get(task, [])
    places = [(task, f"gender:{k + 1}", name, 0) for k in range(3) for name in asked]
    return answers, dict(zip(places, marks, strict=True))


@pytest.mark.parametrize("number", range(12))
def test_the_command_prints_what_the_released_code_prints(golden, official, number):
    assert len(golden["cases"]) == 12
    case = golden["cases"][number]
    task, name = TASKS[case["task"]], case["name"]
    table, asked = official(case)
    answers, marks = answered(golden, case)
    assert len(asked) == len(answers) + len(marks)
    rows = [row for row in table if (row["task"], row["metric"]) == (task, "score")]
    assert {row["category"] for row in rows} == {"gender", "all"}
    for row in rows:
        if isinstance(case["official_result"], float):
            assert repr(row["score"]) == repr(case["official_result"])
            assert "stops" not in row["note"]
        else:
            assert row["score"] is None
            assert f"the released code stops with an error: {STOPS[name]}" in row["note"]
    if name not in STOPS and case.get("n_model_calls"):
        # The released code makes no other calls than these.
        assert len(answers) == case["n_model_calls"]
        assert len(marks) == case["n_judge_calls"]


def labels_aside(prompt):
    """A prompt without its list of labels, and that list, whose order differs by process."""
    (listed,) = re.findall(r"\[.*\]", prompt)
    return prompt.replace(listed, "[]"), set(ast.literal_eval(listed))


def test_prompts_are_the_authors(golden, official):
    asked, wanted = {}, golden["prompts"]
    for case in golden["cases"]:
        if case["name"] in ("all right", "always A", "full marks", "exact"):
            _, rows = official(case)
            keys = zip(rows.task, rows.item_id, rows.request, strict=True)
            asked |= dict(zip(keys, rows.prompt, strict=True))
    first = wanted["SS_row0_pair0"]
    for key, name in {
        ("sc", "order"): "order_row0",
        ("ss", "男生|女生"): "SS_row0_pair0",
        ("ba", "answer"): "BA_row0",
        ("bs", "answer"): "BS_row0",
        **{("ba", f"judge:{k}"): f"judge_row0_{k}" for k in range(1, 5)},
    }.items():
        assert asked[key[0], "gender:1", key[1]] == wanted[name]
    for item, name in (("gender:1", "SC_row0"), ("gender:2", "SC_row1_judge_says_2")):
        assert labels_aside(asked["sc", item, "answer"]) == labels_aside(wanted[name])
    row = golden["rows"][0]
    one, two = (
        row["context"] + row["sentence"].replace("[PLH]", word) for word in row["words"].split("，")
    )
    pairs = [pair.split(" || ") for pair in wanted["SS_row1_order"]]
    own = [prompt for key, prompt in asked.items() if key[:2] == ("ss", "gender:2")]
    assert own == [first.replace(one, a).replace(two, b) for a, b in pairs]
