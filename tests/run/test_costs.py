"""What a run asks before it is asked: requests, tokens and money, by hand."""

import json
import math
from pathlib import Path

import pytest

from bench.core.errors import BudgetSpent, RunFailed
from bench.run import estimate, evaluate
from tests.helpers.answering import said

CBBQ = {"categories": ["gender"], "limit": 8}
MODEL = "openai:a@http://x.org/v1"


pytestmark = pytest.mark.usefixtures("own_folder")


def tokens(part):
    """The bounds of tokens that are read and written."""
    return [part.tokens_in_low, part.tokens_in_high, part.tokens_out_low, part.tokens_out_high]


def test_requests_of_an_endpoint_are_estimated_without_asking_it(serve):
    server = serve(lambda asked: said("A"))
    found = estimate("cbbq", server.model, price=[2, 10], repeats=3, **CBBQ)
    assert server.seen == server.tried == []
    assert list(Path().iterdir()) == []
    counts = found.parts[["task", "role", "requests", "recorded"]].to_numpy().tolist()
    assert counts == [["ambiguous", "model", 24, 0], ["disambiguous", "model", 24, 0]]
    asked = evaluate("cbbq", "simulated:", out="asked", repeats=3, **CBBQ)
    # 0.6 to 1.2 tokens per wide character, 0.2 to 0.5 per other one, 4 to 30 around a text.
    text = "".join(asked.records.prompt)
    wide = sum(ord(char) > 0x2E7F for char in text)
    other = len(text) - wide
    low, high = 0.6 * wide + 0.2 * other + 4 * 48, 1.2 * wide + 0.5 * other + 30 * 48
    # A letter has 1 to 32 tokens.
    total = found.total
    assert tokens(total) == pytest.approx([low, high, 48, 48 * 32], abs=1)
    costs = (2 * low + 10 * 48) / 1e6, (2 * high + 10 * 48 * 32) / 1e6
    assert (total.cost_low, total.cost_high) == pytest.approx(costs, rel=0.01)


def test_model_and_judge_have_one_budget_and_the_message_says_what_the_rest_needs(serve):
    server = serve(lambda asked: said("1"))
    judge = server.model.replace("openai:", "openai:judge-")
    options = {"tasks": ["ba"], "limit": 2, "judge": judge, "out": "run"}
    whole = int(estimate("mcbe", server.model, **options).total.requests)
    with pytest.raises(BudgetSpent, match=f"needs {whole} requests, [0-9]+ of them recorded"):
        evaluate("mcbe", server.model, limits={"budget_requests": whole // 2}, **options)
    # Three more to each of both found out what it can do.
    assert len(server.seen) == whole // 2 - 6
    evaluate("mcbe", server.model, **options)


def test_what_is_recorded_is_not_paid_again(serve):
    server = serve(lambda asked: said("好的，选A"))
    options = {"categories": ["gender"], "limit": 16, "tasks": ["ambiguous"], "out": "run"}
    with pytest.raises(RunFailed, match="the budget of 12 requests is spent; "):
        evaluate("cbbq", server.model, limits={"budget_requests": 12}, **options)
    # Answers whose file is not complete count too.
    part = estimate("cbbq", server.model, **options).total
    answered = len(server.seen)
    assert (part.requests, part.recorded) == (16, answered)
    assert answered + len(server.tried) == 12
    assert tokens(part)[2:] == [16 - answered, 32 * (16 - answered)]
    evaluate("cbbq", server.model, **options)
    assert len(server.seen) == 16
    done = estimate("cbbq", server.model, price=[2, 10], **options)
    total = done.total
    assert (total.requests, total.recorded, total.cost_low, total.cost_high) == (16, 16, 0, 0)


def test_a_judge_and_a_thought_are_counted_with_the_replies_that_they_read():
    options = {**CBBQ, "settings": {"explanation": "yes"}, "judge": "openai:b@http://y.org/v1"}
    found = estimate("cbbq", MODEL, judge_price=[1, 1], **options)
    own, judged = found.parts.iloc[0], found.parts.iloc[-1]
    assert (own.role, own.requests, judged.role, judged.requests) == ("model", 8, "judge", 8)
    # An explanation has up to 256 tokens, which the judge reads, and writes up to 32.
    assert judged.tokens_in_high - judged.tokens_in_low > 8 * 255
    assert tokens(judged)[2:] == [8, 8 * 32]
    assert math.isnan(own.cost_low)
    assert judged.cost_low > 0
    assert "costs leave out the model, which has no price (--price)" in found.notes
    thoughts = estimate("cbbq", MODEL, **CBBQ, settings={"prompting": "Q+IF+CoT"}).total
    assert thoughts.requests == 32
    assert tokens(thoughts)[2:] == [32, 16 * 256 + 16 * 32]


def test_the_command_prints_all_numbers_of_a_run_or_a_study(bench):
    call = f"run cbbq --model {MODEL} --limit 1 --dry-run --format json --price"
    status, out, _ = bench(f"{call} 1,2")
    whole = json.loads(out)
    assert (status, whole["requests"]) == (0, 28)
    cost = (whole["tokens_in_low"] + 2 * whole["tokens_out_low"]) / 1e6
    assert whole["cost_low"] == pytest.approx(cost, rel=0.01)
    assert {part["task"] for part in whole["parts"]} == {"ambiguous", "disambiguous"}
    options = "{limit: 1, price: [1, 2]}"
    study = f"title: T\nmodels: ['{MODEL}', 'simulated:']\nbenchmarks: {{cbbq: {options}}}"
    Path("s.yml").write_text(study)
    _, out, _ = bench("report s.yml --dry-run --format json")
    first, second = json.loads(out)
    assert (first["model"], first["cost_low"]) == ("openai:a", whole["cost_low"])
    assert (second["model"], second["requests"], second["tokens_in_high"]) == ("simulated:", 28, 0)
    assert "costs" in bench("report s.yml --dry-run")[1]
    assert not Path("reports").exists()
    status, _, err = bench(f"{call} 1")
    assert (status, "--price 1: expected IN,OUT" in err) == (2, True)
