"""Runs as records of Every Eval Ever, by its own schema."""

import importlib.util
import json
from pathlib import Path

import pandas as pd
import pytest

from bench import run
from bench.export import eee
from bench.metrics.table import ALL
from tests.helpers.cases import cases

RUNS = {
    "mcbe": {"judge": "simulated:answer=3", "limit": 2},
    "cbbq": {"limit": 3},
    "nli_coal": {"limit": 4},
}


@pytest.mark.parametrize("benchmark", RUNS)
def test_runs_become_records_of_every_eval_ever(benchmark, own_folder):
    done = run.evaluate(benchmark, "simulated:bias=0.7", out="r", **RUNS[benchmark])
    file, samples = eee.write(done, Path("out"))
    assert [file, samples] == eee.write(done, Path("out"))
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


@cases(__file__, "model_ids.csv")
def test_a_model_has_an_organisation_and_a_name(case):
    described = {column: cell for column, cell in case.items() if cell}
    assert eee.model_id(described) == case["name"]
