"""Requests for a batch service, and its results, which are read as if a server had answered."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from bench.config import RunConfig
from bench.report import study
from bench.run import batch, evaluate
from tests.helpers.answering import fault, said, unable
from tests.helpers.recorded import command

NAME = "some-model"
CBBQ = {"categories": ["gender"], "limit": 6}


pytestmark = pytest.mark.usefixtures("own_folder")


def spoken(asked):
    """A letter, a grade or a thought, by the conversation and its seed."""
    told = "".join(turn["content"] for turn in asked["messages"])
    text = ["A", "B", "C 因为。", "有", "3"][(len(told) + asked.get("seed", 0)) % 5]
    top = [{"token": letter, "logprob": -1.0 - k} for k, letter in enumerate("BCA")]
    more = (
        {"logprobs": {"content": [{**top[0], "top_logprobs": top}]}} if "logprobs" in asked else {}
    )
    return said(text, "length" if len(told) % 7 == 0 else "stop", (len(told), 1), **more)


def answer(requests, results, behave):
    """Write the results of a batch service that answers a file of requests; return how many."""
    lines = []
    for asked in lines_of(requests):
        assert (asked["method"], asked["url"]) == ("POST", "/v1/chat/completions")
        status, _, body = behave(asked["body"])
        response = {"status_code": status, "request_id": "r", "body": body}
        line = {"id": "b", "custom_id": asked["custom_id"], "response": response, "error": None}
        lines.append(json.dumps(line) + "\n")
    results.parent.mkdir(exist_ok=True)
    results.write_text("".join(lines))
    return len(lines)


def lines_of(*paths):
    return [json.loads(line) for path in paths for line in Path(path).read_text().splitlines()]


def write(results, out, benchmark, **options):
    config = RunConfig.of({"benchmark": benchmark, "as_model": NAME, **options})
    return batch.write(config, results, Path(out))


@pytest.mark.parametrize(
    ("benchmark", "stages", "options"),
    [
        (
            "cbbq",
            2,
            {**CBBQ, "settings": {"prompting": "Q+IF+CoT"}, "repeats": 2, "temperature": 0.5},
        ),
        ("cbbq", 1, {**CBBQ, "read": "letters", "system": "Be brief."}),
        ("cbbq", 2, {**CBBQ, "settings": {"explanation": "yes"}, "judge": True}),
        ("mcbe", 2, {**CBBQ, "tasks": ["sc", "ss", "ba"], "judge": True}),
    ],
)
def test_results_of_a_batch_are_the_records_of_a_run_of_the_server(
    serve, benchmark, stages, options
):
    server = serve(spoken, lambda asked: unable(asked) if "prompt" in asked else spoken(asked))
    options = dict(options)
    judged = options.pop("judge", False)
    live = evaluate(
        benchmark, server.model, out="live", judge=server.model if judged else None, **options
    )
    as_judge = NAME if judged else None
    files = []
    for stage in range(1, stages + 2):
        results = "results" if files else ""
        written, waiting = write(results, "ask.jsonl", benchmark, as_judge=as_judge, **options)
        if not written:
            break
        for file in written:
            files.append(Path("results", f"{stage}{file.path.name}"))
            assert answer(file.path, files[-1], spoken) == file.tasks.total()
    assert stage == stages + 1
    assert not waiting
    source = {"as_model": NAME, "judge": "replay:results" if judged else None, "as_judge": as_judge}
    read = evaluate(benchmark, "replay:results", out="read", **source, **options)
    rows = [run.records.drop(columns="seconds") for run in (live, read)]
    pd.testing.assert_frame_equal(*rows)
    tables = [run.scores() for run in (live, read)]
    tables[0]["note"] = tables[0].note.str.replace("openai:", "")  # "marked by ..."
    pd.testing.assert_frame_equal(*tables)
    assert (read.metadata["model"]["id"], read.label, read.model) == (NAME, NAME, NAME)
    assert read.judge == (NAME if judged else "")
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


def test_the_command_says_what_is_next(monkeypatch, capsys):
    given = f"--as-model {NAME} --categories gender --limit 1 --set prompting=Q+IF+CoT"
    call = f"requests cbbq --out ask.jsonl {given}"
    for stage, out in (("1", "ask.jsonl"), ("2", "next.jsonl")):
        status, printed, _ = command(monkeypatch, capsys, *call.split())
        told = f"{out}: 2 requests to {NAME} (ambiguous 1, disambiguous 1)\nnext: "
        assert (status, printed[: len(told)]) == (0, told)
        answer(Path(out), Path("results", f"{stage}.jsonl"), spoken)
        call = printed.split("`bench ")[1].partition("`")[0]
    status, printed, _ = command(monkeypatch, capsys, *call.split())
    assert (status, call.split()[0]) == (0, "run")
    assert f"{NAME} on cbbq" in printed
    model = f'{{model: "replay:results", as_model: {NAME}}}'
    Path("s.yml").write_text(f"title: T\nmodels: [{model}]\nbenchmarks: {{cbbq: {{}}}}")
    assert [one.label for one in study.load(Path("s.yml")).models] == [NAME]


def result(custom_id, status, body):
    """Return a line of results; without a status, `body` is an error of the service."""
    response = {"status_code": status, "body": body} if status else None
    error = None if status else body
    return json.dumps({"custom_id": custom_id, "response": response, "error": error}) + "\n"


FILTERED = "refused by the content filter"
FIELD = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
DECLINED = said(None)[2]
DECLINED["choices"][0]["message"]["refusal"] = "I cannot help with that."
# Status, body, and the error and the response on record; failures are asked again.
RESULTS = [
    (200, said("A")[2], "", "A"),
    (200, said("The st", "content_filter")[2], FILTERED, ""),
    (200, DECLINED, "refused by the model, in a field of its own", ""),
    (400, fault(400, "Input data may contain inappropriate content.")[2], FILTERED, ""),
    (400, fault(400, FIELD)[2], f"status 400: {FIELD}", ""),
    (0, {"code": "batch_expired", "message": "Not executed in time."}, "Not executed in time.", ""),
]


def test_refusals_and_failures_are_recorded_as_such_and_failures_can_be_asked_again():
    options = {**CBBQ, "tasks": ["ambiguous"]}
    write("", "ask.jsonl", "cbbq", **options)
    ids = [line["custom_id"] for line in lines_of("ask.jsonl")]
    Path("results").mkdir()
    lines = [result(one, *row[:2]) for one, row in zip(ids, RESULTS, strict=True)]
    Path("results/1.jsonl").write_text("".join(lines))
    rows = evaluate("cbbq", "replay:results", as_model=NAME, out="run", **options).records
    assert list(zip(rows.error, rows.response, strict=True)) == [row[2:] for row in RESULTS]
    assert rows.valid.tolist() == [True, *[False] * 5]
    written, _ = write("results", "again.jsonl", "cbbq", **options)
    again = lines_of(written[0].path)
    assert [line["custom_id"] for line in again] == ids[4:]
    assert all("max_tokens" not in one["body"] for one in again)
    answer(written[0].path, Path("results/2.jsonl"), lambda asked: said("B"))
    run = evaluate("cbbq", "replay:results", as_model=NAME, out="run2", **options)
    assert run.records.response.tolist() == ["A", "", "", "", "B", "B"]
    assert run.metadata["model"]["asked_with"] == {"max_tokens": "sent as max_completion_tokens"}


def test_missing_doubled_and_foreign_results_are_refused(refusal):
    def run(**options):
        given = {"as_model": NAME, **CBBQ, **options}
        return refusal(evaluate, "cbbq", "replay:results", **given)

    write("", "ask.jsonl", "cbbq", **CBBQ)
    results = Path("results/1.jsonl")
    answer(Path("ask.jsonl"), results, lambda asked: said("A"))
    lines = results.read_text().splitlines(keepends=True)
    results.write_text("".join(lines[1:]))
    assert "results: has no answer to 1 requests, such as ambiguous-gender_ambiguous_" in run()
    results.write_text("".join([*lines, lines[0]]))
    assert "line 13: a second answer to ambiguous-gender_ambiguous_" in run()
    results.write_text("".join(lines))
    foreign = "results: 12 results, such as ambiguous-gender_ambiguous_"
    assert run(temperature=0.5).startswith(foreign)
    assert run(limit=1).startswith(foreign.replace("12", "10"))
    assert "name the model that gave them by --as-model" in run(as_model="")
    options = {**CBBQ, "temperature": 0.5}
    assert refusal(write, "results", "next.jsonl", "cbbq", **options).startswith(foreign)
    results.write_text(Path("ask.jsonl").read_text())
    assert "line 1: is no result of a batch" in run()
