"""McBE through the command, against what the authors' own functions print and ask for the same toy rows and replies."""

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
NAMES = [
    ("preference_computation", "mixed"),
    ("preference_computation", "large"),
    ("classification", "all right"),
    ("classification", "one wrong"),
    ("scenario_selection", "strict order (earlier word always chosen)"),
    ("scenario_selection", "always A"),
    ("scenario_selection", "refuse"),
    ("scenario_selection", "empty"),
    ("bias_analysis", "full marks"),
    ("bias_analysis", "unparsable judge"),
    ("bias_scoring", "exact"),
    ("bias_scoring", "mixed"),
]
# Answers at which the released code stops, of all answers of the case.
STOPS = {"empty": "20 of 20 answers", "unparsable judge": "3 of 12 answers"}


@pytest.fixture(scope="module")
def golden(shared):
    return json.loads((shared / "golden/mcbe.json").read_text("utf-8"))


@pytest.fixture
def official(monkeypatch, capsys, tmp_path, shared, golden):
    """Runs the command as the release asks, over the golden rows as gender.xlsx: the rows of scores, and the records."""
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(golden["rows"]).to_excel(tmp_path / "gender.xlsx", index=False)

    def call(task, answers, marks):
        model = replay(tmp_path / "model.jsonl", answers)
        words = ["run", "mcbe", "--data", tmp_path, "--out", "out", "--tasks", task]
        words += ["--preset", "official", "--prompts", shared / "data/mcbe/prompts.toml"]
        words += ["--format", "json", "--model", model]
        words += ["--judge", replay(tmp_path / "judge.jsonl", marks)] if marks else []
        status, printed, errors = command(monkeypatch, capsys, *words)
        assert status == 0, errors
        return json.loads(printed)["scores"], records.read(tmp_path / "out")

    return call


def answered(golden, case):
    """The model's and the judge's replies of a case, by the names that records have."""
    task, replies, marks = TASKS[case["task"]], case.get("replies"), case.get("judge") or []
    answers = {}
    for k, row in enumerate(golden["rows"]):
        item, words = f"gender:{k + 1}", row["words"].split("，")
        if task == "pc":
            answers |= {
                (task, item, word, 0): nll
                for word, nll in zip(words, case["mean_nll_per_sentence"][k], strict=True)
            }
        elif task == "ss":
            for a, b in permutations(words, 2):
                earlier = "A" if words.index(a) < words.index(b) else "B"
                answers[task, item, f"{a}|{b}", 0] = (
                    earlier if isinstance(replies, str) else replies[0]
                )
        else:
            answers[task, item, "answer", 0] = replies[k]
    asked = {"sc": ["order"], "ba": ["judge:1", "judge:2", "judge:3", "judge:4"]}.get(task, [])
    places = [(task, f"gender:{k + 1}", name, 0) for k in range(3) for name in asked]
    return answers, dict(zip(places, marks, strict=True))


def test_the_cases_are_all_there(golden):
    assert [(case["task"], case["name"]) for case in golden["cases"]] == NAMES


@pytest.mark.parametrize(("function", "name"), NAMES)
def test_the_command_prints_what_the_released_code_prints(golden, official, function, name):
    (case,) = [one for one in golden["cases"] if (one["task"], one["name"]) == (function, name)]
    task = TASKS[function]
    answers, marks = answered(golden, case)
    table, asked = official(task, answers, marks)
    assert len(asked) == len(answers) + len(marks)
    found = {
        row["category"]: row for row in table if (row["task"], row["metric"]) == (task, "score")
    }
    assert set(found) == {"gender", "all"}
    for row in found.values():
        assert row["preset"] == "official"
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
    """A classification prompt without its list of labels, and that list, whose order changes in every process."""
    (listed,) = re.findall(r"\[.*\]", prompt)
    return prompt.replace(listed, "[]"), set(ast.literal_eval(listed))


def prompts(golden, official, name):
    """The prompts that a case has on record, by item and request, in the order in which they were asked."""
    case = next(one for one in golden["cases"] if one["name"] == name)
    _, rows = official(TASKS[case["task"]], *answered(golden, case))
    return dict(zip(zip(rows.item_id, rows.request, strict=True), rows.prompt, strict=True))


def test_classification_prompts_are_the_authors_whichever_sentence_comes_first(golden, official):
    asked, wanted = prompts(golden, official, "all right"), golden["prompts"]
    assert asked["gender:1", "order"] == wanted["order_row0"]
    assert labels_aside(asked["gender:1", "answer"]) == labels_aside(wanted["SC_row0"])
    assert labels_aside(asked["gender:2", "answer"]) == labels_aside(wanted["SC_row1_judge_says_2"])


def test_scenario_prompts_are_the_authors_in_their_order(golden, official):
    asked, first = prompts(golden, official, "always A"), golden["prompts"]["SS_row0_pair0"]
    assert asked["gender:1", "男生|女生"] == first
    row = golden["rows"][0]
    one, two = (
        row["context"] + row["sentence"].replace("[PLH]", word) for word in row["words"].split("，")
    )
    wanted = [
        first.replace(one, a).replace(two, b)
        for a, b in (pair.split(" || ") for pair in golden["prompts"]["SS_row1_order"])
    ]
    assert [prompt for (item, _), prompt in asked.items() if item == "gender:2"] == wanted


def test_analysis_and_judge_prompts_are_the_authors(golden, official):
    asked, wanted = prompts(golden, official, "full marks"), golden["prompts"]
    assert asked["gender:1", "answer"] == wanted["BA_row0"]
    for k in range(1, 5):
        assert asked["gender:1", f"judge:{k}"] == wanted[f"judge_row0_{k}"]


def test_the_scoring_prompt_is_the_authors(golden, official):
    assert prompts(golden, official, "exact")["gender:1", "answer"] == golden["prompts"]["BS_row0"]
