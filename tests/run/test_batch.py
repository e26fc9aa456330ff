"""Requests for a batch service, and its results, which are read as if a server had answered."""

import gzip
import json
import re
from pathlib import Path

import pandas as pd
import pytest

from bench.config import RunConfig
from bench.report import study
from bench.run import batch, evaluate
from tests.helpers.answering import said, unable
from tests.helpers.cases import json_lines

NAME = "some-model"
CBBQ = {"categories": ["gender"], "limit": 6}


pytestmark = pytest.mark.usefixtures("own_folder")


def spoken(asked):
    """A letter, a grade or a thought, by the conversation and its seed."""
    told = "".join(turn["content"] for turn in asked["messages"])
    text = ["A", "B", "C 因为。", "有", "3"][(len(told) + asked.get("seed", 0)) % 5]
    top = [{"token": letter, "logprob": -1.0 - k} for k, letter in enumerate("BCA")]
    logprobs = {"content": [{**top[0], "top_logprobs": top}]} if "logprobs" in asked else None
    return said(text, "length" if len(told) % 7 == 0 else "stop", (len(told), 1), logprobs=logprobs)


def result(custom_id, status, body):
    """Return a line of results; without a status, `body` is an error of the service."""
    response = {"status_code": status, "request_id": "r", "body": body} if status else None
    error = None if status else body
    return json.dumps({"custom_id": custom_id, "response": response, "error": error}) + "\n"


def answer(requests, results, behave):
    """Write the results of a batch service that answers a file of requests."""
    asked = lines_of(requests)
    assert {(one["method"], one["url"]) for one in asked} == {("POST", "/v1/chat/completions")}
    replies = [(one["custom_id"], behave(one["body"])) for one in asked]
    results.parent.mkdir(exist_ok=True)
    results.write_text("".join(result(name, status, body) for name, (status, _, body) in replies))


def lines_of(*paths):
    return [json.loads(line) for path in paths for line in Path(path).read_text().splitlines()]


def write(results, out, benchmark, **options):
    config = RunConfig.of({"benchmark": benchmark, "as_model": NAME, **options})
    return batch.write(config, results, Path(out))


def evaluate_results(benchmark="cbbq", **options):
    return evaluate(benchmark, "replay:results", as_model=NAME, **options)


@pytest.mark.parametrize(
    ("benchmark", "stages", "options"),
    [
        ("cbbq", 2, {"settings": {"prompting": "Q+IF+CoT"}, "repeats": 2, "temperature": 0.5}),
        ("cbbq", 1, {"answer_mode": "letters", "system": "Be brief."}),
        ("cbbq", 2, {"settings": {"explanation": "yes"}, "judge": True}),
        ("mcbe", 2, {"tasks": ["sc", "ss", "ba"], "judge": True}),
    ],
)
def test_results_of_a_batch_are_the_records_of_a_run_of_the_server(
    serve, benchmark, stages, options
):
    server = serve(spoken, lambda asked: unable(asked) if "prompt" in asked else spoken(asked))
    options = {**CBBQ, **options}
    judged = options.pop("judge", False)
    judge, as_judge = ("replay:results", NAME) if judged else (None, None)
    live = evaluate(
        benchmark, server.model, out="live", judge=server.model if judged else None, **options
    )
    for stage in range(stages):
        results = "results" if stage else ""
        written, _ = write(results, f"ask{stage}.jsonl", benchmark, as_judge=as_judge, **options)
        assert written
        for path, count in written.items():
            assert count == len(lines_of(path))
            answer(path, Path("results", path.name), spoken)
    rest = write("results", "ask.jsonl", benchmark, as_judge=as_judge, **options)
    assert rest == ({}, 0)
    read = evaluate_results(benchmark, judge=judge, as_judge=as_judge, out="read", **options)
    rows = [run.records.drop(columns="seconds") for run in (live, read)]
    pd.testing.assert_frame_equal(*rows)
    tables = [run.scores() for run in (live, read)]
    tables[0]["note"] = tables[0].note.str.replace("openai:", "")  # "marked by ..."
    pd.testing.assert_frame_equal(*tables)
    assert (read.metadata["model"]["id"], read.label, read.model) == (NAME, NAME, NAME)
    assert read.judge == (as_judge or "")
    # The same bodies were sent to the server.
    bodies = [line["body"] for line in lines_of(*Path().glob("ask*"))]
    assert all(body in server.seen for body in bodies)


def test_ids_can_be_read_and_fit_every_service():
    config = {"tasks": ["ss", "bs"], "categories": ["gender"], "repeats": 2}
    write("", "ask.jsonl", "mcbe", **config)
    ids = [line["custom_id"] for line in lines_of("ask.jsonl")]
    assert len(set(ids)) == len(ids) > 40
    assert all(re.fullmatch(r"(ss|bs)-gender_\d+-(answer)?-[01]-[0-9a-f]{16}", one) for one in ids)
    assert max(map(len, ids)) <= 64


def test_the_command_says_what_is_next(bench):
    given = f"cbbq --as-model {NAME} --categories gender --limit 1 --set prompting=Q+IF+CoT"
    told = {"ask": "--results results writes the next of 2", "next": "`bench run` with the same"}
    for out, then in told.items():
        results = "--results results" if out == "next" else ""
        status, printed, _ = bench(f"requests {given} --out {out}.jsonl {results}")
        assert (status, printed.splitlines()[0]) == (0, f"{out}.jsonl: 2 requests")
        assert then in printed
        answer(f"{out}.jsonl", Path("results", f"{out}.jsonl"), spoken)
    status, printed, _ = bench(f"run {given} --model replay:results")
    assert status == 0
    assert f"{NAME} on cbbq" in printed
    model = f'{{model: "replay:results", as_model: {NAME}}}'
    Path("s.yml").write_text(f"title: T\nmodels: [{model}]\nbenchmarks: {{cbbq: {{}}}}")
    assert [one.label for one in study.load(Path("s.yml")).models] == [NAME]


def test_refusals_and_failures_are_recorded_as_such_and_failures_can_be_asked_again():
    cases, options = json_lines(__file__, "results.jsonl"), {**CBBQ, "tasks": ["ambiguous"]}
    write("", "ask.jsonl", "cbbq", **options)
    ids = [line["custom_id"] for line in lines_of("ask.jsonl")]
    Path("results").mkdir()
    lines = [result(one, row["status"], row["body"]) for one, row in zip(ids, cases, strict=True)]
    Path("results/1.jsonl").write_text("".join(lines))
    rows = evaluate_results(out="run", **options).answers()
    assert rows.error.tolist() == [row["error"] for row in cases]
    assert rows.response.tolist() == [row["response"] for row in cases]
    assert rows.valid.tolist() == [True, *[False] * 5]
    write("results", "again.jsonl", "cbbq", **options, limits={"leave_out": ["max_tokens"]})
    again = lines_of("again.jsonl")
    assert [line["custom_id"] for line in again] == ids[4:]
    assert all("max_completion_tokens" in one["body"] for one in again)
    answer("again.jsonl", Path("results/2.jsonl"), lambda asked: said("B"))
    run = evaluate_results(out="run2", **options)
    assert run.records.response.tolist() == ["A", "", "", "", "B", "B"]


@pytest.mark.parametrize(
    ("form", "name"),
    [
        (lambda body: {"response": {"body": {**body, "choices": body["choices"][0]}}}, "1.jsonl"),
        (lambda body: {"response": {"status_code": "200", "body": json.dumps(body)}}, "1.jsonl"),
        (lambda body: {"response": body, "error": None}, "1.jsonl.gz"),
    ],
)
def test_variants_of_openai_s_form_are_read(form, name):
    write("", "ask.jsonl", "cbbq", **CBBQ)
    lines = [{**form(said("B")[2]), "custom_id": one["custom_id"]} for one in lines_of("ask.jsonl")]
    text = "".join(json.dumps(line) + "\n" for line in lines).encode()
    Path("results").mkdir()
    Path("results", name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    Path("results/batch.json").write_text("{\n}\n")  # what a service tells of the batch itself
    assert set(evaluate_results(out="run", **CBBQ).records.response) == {"B"}


def test_failures_are_told_with_their_line_and_asked_again(capsys):
    write("", "ask.jsonl", "cbbq", **CBBQ)
    too_long, expired, empty, *others = [one["custom_id"] for one in lines_of("ask.jsonl")]
    lines = [
        result(too_long, 400, {"message": "too many tokens"}),
        result(expired, 0, {"message": "batch expired"}),
        result(empty, 200, {"choices": [{"message": {}, "finish_reason": "stop"}]}),
        *(result(name, 200, said("B")[2]) for name in others),
    ]
    Path("results").mkdir()
    Path("results/1.jsonl").write_text("".join(lines))
    errors = evaluate_results(out="run", **CBBQ).records.error
    no_text = "the server answered without a text"
    assert [*filter(None, errors)] == ["status 400: too many tokens", "batch expired", no_text]
    message = "failed at the service: 3 requests (`bench requests` with --results results writes "
    message += "them again), first results/1.jsonl, line 1: status 400: too many tokens"
    assert message in capsys.readouterr().err
    assert write("results", "again.jsonl", "cbbq", **CBBQ) == ({Path("again.jsonl"): 3}, 0)
    answer("again.jsonl", Path("results/2.jsonl"), lambda asked: said("B"))
    assert set(evaluate_results(out="run2", **CBBQ).records.response) == {"B"}


MISSING = "results: has no answer to ambiguous-gender_ambiguous_"


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda lines: lines[1:], {}, MISSING),
        (list, {"temperature": 0.5}, MISSING),
        (lambda lines: [*lines, lines[0]], {}, "line 13, and results/1.jsonl, line 1: are both an"),
        (list, {"as_model": ""}, "name the model that gave them by --as-model"),
        (lambda _: [Path("ask.jsonl").read_text()], {}, "line 1: is no result of a batch"),
        (lambda _: ['{"custom_id": "a", "result": {}}'], {}, "line 1: is no result of a batch"),
        (lambda _: [], {}, "results: holds no results (*.jsonl)"),
    ],
)
def test_missing_and_doubled_results_are_refused(refusal, change, options, message):
    write("", "ask.jsonl", "cbbq", **CBBQ)
    results = Path("results/1.jsonl")
    answer("ask.jsonl", results, lambda asked: said("A"))
    results.write_text("".join(change(results.read_text().splitlines(keepends=True))))
    given = {"as_model": NAME, **CBBQ, **options}
    assert message in refusal(evaluate, "cbbq", "replay:results", **given)


def test_results_of_other_requests_are_left_out():
    write("", "ask.jsonl", "cbbq", **CBBQ)
    answer("ask.jsonl", Path("results/1.jsonl"), lambda asked: said("A"))
    fewer = evaluate_results(**{**CBBQ, "limit": 1}).records
    assert 0 < len(fewer) < len(lines_of("ask.jsonl"))
