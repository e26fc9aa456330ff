"""Runs and questions in the formats of other programs, which can read them."""

import importlib.util
import json
import runpy
import shutil
from pathlib import Path

import pandas as pd
import pytest
import yaml
from huggingface_hub import parse_eval_result_entries

from bench import export, run
from bench.benchmarks import get
from bench.data import find
from bench.data.readers import to_toml
from bench.export import eee, lm_eval
from bench.metrics.table import ALL
from bench.scorers.names import short_name

RUNS = {
    "mcbe": {"judge": "simulated:answer=3", "limit": 2},
    "cbbq": {"limit": 3},
    "nli_coal": {"limit": 4},
}
CBBQ = {"categories": ["gender", "age"], "limit": 6, "data": "samples"}
SCORES = (("ambiguous", "s_amb"), ("disambiguous", "s_disamb"), (ALL, "accuracy"))


def score(done, task, metric):
    rows = done.scores().query("category == 'all' and task == @task and metric == @metric")
    return float(rows.score.item())


# Every Eval Ever


@pytest.mark.parametrize("benchmark", RUNS)
def test_runs_become_records_of_every_eval_ever(benchmark, own_folder):
    done = run.evaluate(benchmark, "simulated:bias=0.7", out="r", **RUNS[benchmark])
    (file, samples) = export.write_runs(["r"], "eee", Path("out"))
    assert (file, samples) == tuple(export.write_runs(["r"], "eee", Path("out")))
    content = json.loads(file.read_text("utf-8"))
    lines = [json.loads(line) for line in samples.read_text("utf-8").splitlines()]
    pointer, results = content["detailed_evaluation_results"], content["evaluation_results"]
    assert samples == Path("out", pointer["file_path"])
    judgements = done.records.request.str.startswith("judge")
    assert len(lines) == pointer["total_rows"] == sum(~judgements)
    assert {line["evaluation_id"] for line in lines} == {content["evaluation_id"]}
    scores = done.scores().set_index(["task", "metric", "category"])
    for result in results:
        row = scores.loc[tuple(result["evaluation_result_id"].split(":"))]
        details = result["score_details"]
        assert (details["score"], details["uncertainty"]["num_samples"]) == (row.score, row.n)
        if pd.notna(row.ci_low):
            interval = details["uncertainty"]["confidence_interval"]
            assert (interval["lower"], interval["upper"]) == (row.ci_low, row.ci_high)
    judged = [result for result in results if "llm_scoring" in result["metric_config"]]
    tasks = {result["evaluation_result_id"].partition(":")[0] for result in judged}
    assert tasks == ({"ba", ALL} if benchmark == "mcbe" else set())
    if package := importlib.util.find_spec("every_eval_ever"):
        from jsonschema import Draft7Validator

        schemas = Path(str(package.origin)).parent / "schemas"
        for name, values in (("eval", [content]), ("instance_level_eval", lines)):
            schema = json.loads((schemas / f"{name}.schema.json").read_text("utf-8"))
            assert schema["version"] == eee.SCHEMA
            for value in values:
                Draft7Validator(schema).validate(value)


@pytest.mark.parametrize(
    ("described", "name"),
    [
        ({"id": "Qwen/Qwen3-8B", "revision": "a" * 40}, "Qwen/Qwen3-8B"),
        ({"id": "gpt2", "revision": "a" * 40}, "huggingface/gpt2"),
        ({"id": "models/mine", "revision": "1234", "device": "cpu"}, "local/mine"),
        ({"id": "/models/mine", "revision": "1234"}, "local/mine"),
        ({"id": "replay:there/a b.jsonl"}, "recorded/a_b.jsonl"),
        ({"id": "qwen-plus", "revision": "1234"}, "recorded/qwen-plus"),
        ({"id": "Qwen/Qwen3-8B", "revision": "1234"}, "Qwen/Qwen3-8B"),
        ({"id": "openai:qwen-plus@http://h:1/v1", "host": "h:1"}, "h_1/qwen-plus"),
        ({"id": "openai:Qwen/Q@http://h:1/v1", "host": "h:1"}, "Qwen/Q"),
        ({"id": "tiny:s,bias=1"}, "bias-workbench/tiny_s,bias=1"),
    ],
)
def test_a_model_has_an_organisation_and_a_name(described, name):
    assert export.model_id(described) == name


# The Hugging Face Hub


def test_scores_on_a_dataset_of_the_hub_name_it_at_its_commit(own_folder, refusal):
    shutil.copytree(get("mcbe").metadata.samples, "mcbe")
    options = {"limit": 2, "data": "mcbe", "tasks": ["ss"]}
    asked = run.evaluate("mcbe", "simulated:bias=0.5", out="s", **options)
    keys = ["task", "item_id", "request", "response"]
    asked.records[keys].to_json("answers.jsonl", orient="records", lines=True)
    assert "the package's samples" in refusal(export.write_runs, ["s"], "hub", Path("out"))
    manifest = {
        "name": "McBE",
        "version": "0123456",
        "revision": "0123456789" * 4,
        "fetched_from": "https://huggingface.co/datasets/Velikaya/McBE",
    }
    Path("mcbe/dataset.toml").write_text(to_toml(manifest), "utf-8")
    done = run.evaluate("mcbe", "replay:answers.jsonl", out="r", **options)
    message = refusal(export.write_runs, ["r"], "hub", Path("out"))
    assert "is not known to be Velikaya/McBE" in message
    manifest["sha256"] = find("mcbe", "mcbe").sha256
    Path("mcbe/dataset.toml").write_text(to_toml(manifest), "utf-8")
    (file,) = export.write_runs(["r"], "hub", Path("out"))
    assert file.parent == Path("out/recorded/answers.jsonl/.eval_results")
    entries = parse_eval_result_entries(yaml.safe_load(file.read_text("utf-8")))
    (entry,) = [entry for entry in entries if entry.task_id == "ss_score"]
    assert (entry.dataset_id, entry.dataset_revision) == ("Velikaya/McBE", manifest["revision"])
    assert entry.value == pytest.approx(score(done, "ss", "score"), abs=1e-6)
    assert "95 % interval" in str(entry.notes)


# lm-evaluation-harness


@pytest.mark.parametrize("read", ["letters", "text"])
def test_the_harness_reads_and_scores_as_a_run_does_and_its_samples_are_scored_here(
    read, own_folder
):
    options = {**CBBQ, "settings": {"option_order": "rotated"}}
    done = run.evaluate("cbbq", "simulated:bias=0.6", out="r", read=read, **options)
    lm_eval.write(Path("tasks"), **options)
    name = "letters" if read == "letters" else "replies"
    text = Path(f"tasks/cbbq_{name}.yaml").read_text("utf-8")
    task = yaml.safe_load(text.replace("!function utils.", ""))
    ours = runpy.run_path("tasks/utils.py")
    given = done.records.set_index(["task", "item_id", "request"])
    values, logged = [], []
    for line in Path("tasks/questions.jsonl").read_text("utf-8").splitlines():
        doc = json.loads(line)
        row = given.loc[(doc["task"], doc["item_id"], doc["request"])]
        assert doc["prompt"] == row.prompt
        results, responses = [row.response], [[row.response]]
        if read == "letters":
            results = [(-float(letter != row.response), False) for letter in "ABC"]
            responses = [[[str(number), "False"]] for number, _greedy in results]
        values.append(ours[task["process_results"]](doc, results))
        logged.append({"doc": doc, "resps": responses})
    assert len(logged) == len(given)
    scores = {}
    for metric in task["metric_list"]:
        numbers = [value[metric["metric"]] for value in values]
        scores[metric["metric"]] = ours[metric["aggregation"]](numbers)
    expected = {metric: score(done, part, metric) for part, metric in SCORES}
    assert scores == pytest.approx(expected, abs=1e-12)
    Path("out").mkdir()
    samples = Path(f"out/samples_cbbq_{name}_2026-01-01T00.jsonl")
    samples.write_text("\n".join(map(json.dumps, logged)), "utf-8")
    about = {"model_name": "Qwen/Qwen3-8B", "config": {"model_sha": "a" * 40}}
    Path("out/results_2026-01-01T00.json").write_text(json.dumps(about), "utf-8")
    again = run.evaluate("cbbq", f"lm-eval:{samples}", out="again", **options)
    assert again.label == short_name("lm-eval:a/Qwen__Qwen3-8B/s.jsonl") == "Qwen3-8B"
    assert export.model_id(again.metadata["model"]) == "Qwen/Qwen3-8B"
    assert {metric: score(again, part, metric) for part, metric in SCORES} == expected


def test_what_the_harness_cannot_ask_or_did_not_log_is_refused(own_folder, refusal):
    thought = {**CBBQ, "settings": {"prompting": "Q+IF+CoT"}}
    assert "asks each question once" in refusal(lm_eval.write, Path("t"), **thought)
    lm_eval.write(Path("tasks"), **CBBQ)
    docs = Path("tasks/questions.jsonl").read_text("utf-8").splitlines()
    lines = [json.dumps({"doc": json.loads(doc), "resps": [["A"]]}) for doc in docs]
    Path("s.jsonl").write_text("\n".join(lines), "utf-8")
    more = {**CBBQ, "limit": 7}
    assert "has no answer for task" in refusal(run.evaluate, "cbbq", "lm-eval:s.jsonl", **more)
    other = {**CBBQ, "prompts": "reworded"}
    assert "has another prompt" in refusal(run.evaluate, "cbbq", "lm-eval:s.jsonl", **other)
    Path("s.jsonl").write_text('{"doc": {"text": "t"}, "resps": [["A"]]}', "utf-8")
    assert "line 1: is no logged" in refusal(run.evaluate, "cbbq", "lm-eval:s.jsonl", **CBBQ)


@pytest.mark.slow
def test_the_harness_itself_runs_the_tasks(own_folder):
    harness = pytest.importorskip("lm_eval")
    from lm_eval.tasks import TaskManager

    lm_eval.write(Path("tasks"), **CBBQ)
    names = ["cbbq_letters", "cbbq_replies"]
    manager = TaskManager(include_path="tasks")
    found = harness.simple_evaluate("dummy", tasks=names, task_manager=manager, log_samples=True)
    for task in names:
        lines = [json.dumps(line, default=str) for line in found["samples"][task]]
        Path(f"{task}.jsonl").write_text("\n".join(lines), "utf-8")
        done = run.evaluate("cbbq", f"lm-eval:{task}.jsonl", out=task, **CBBQ)
        for place in SCORES:
            theirs = found["results"][task][f"{place[1]},none"]
            assert theirs == pytest.approx(score(done, *place), nan_ok=True)
