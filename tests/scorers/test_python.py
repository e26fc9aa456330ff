"""A Python function is a model: `python:MODULE:FUNCTION`."""

from pathlib import Path

import pytest

from bench import run
from bench.core.errors import RunFailed
from bench.scorers import content, load
from bench.tasks.request import Key, Request

OPTIONS = {"categories": ["gender"], "limit": 4, "tasks": ["ambiguous"]}
ASKED = Request("c", "t", "i", "r", "generate", "How?", "v", Key(), earlier=("Who?", "I."), seed=7)


@pytest.fixture
def answers(own_folder):
    """`answers(code)`: write the module `mine`, and return the name of its function `answer`."""

    def write(code):
        (own_folder / "mine.py").write_text(code)
        return "python:mine:answer"

    return write


@pytest.mark.parametrize(
    ("code", "reply"),
    [
        ("def answer(prompt): return prompt", "Who?\n\nI.\n\nHow?"),
        ("def answer(prompt, seed): return str(seed)", "7"),
        ("from other import answer", "other"),
    ],
)
def test_a_function_gets_the_text_and_its_seed(answers, code, reply):
    Path("other.py").write_text("def answer(prompt): return 'other'")
    (answer,) = load(answers(code)).answer([ASKED])
    assert answer.response == reply


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("python:mine", "expected python:MODULE:FUNCTION"),
        ("python:missing:answer", "there is no missing.py in the working folder"),
        ("python:missing.part:answer", "No module named 'missing'"),
        ("python:mine:anwser", "did you mean answer?"),
        ("python:broken:answer", "broken.py cannot be imported (ZeroDivisionError: "),
    ],
)
def test_a_function_that_is_not_there_is_refused(answers, refusal, model, message):
    answers("def answer(prompt): return ''")
    Path("broken.py").write_text("1 / 0")
    assert message in refusal(load, model)


@pytest.mark.parametrize(
    ("reply", "message"),
    [("1 / 0", "raised ZeroDivisionError: division by zero"), ("3", "returned 3, which is not")],
)
def test_a_failing_function_ends_the_run_which_continues(answers, reply, message):
    model = answers(f"""
from pathlib import Path
calls = Path("calls")
def answer(prompt):
    calls.write_text(calls.read_text() + "c")
    return {reply} if len(calls.read_text()) == 3 else "A"
""")
    Path("calls").write_text("")
    with pytest.raises(RunFailed, match="the model: python:mine:answer") as caught:
        run.evaluate("cbbq", model, out="run", **OPTIONS)
    assert message in str(caught.value)
    done = run.evaluate("cbbq", model, out="run", **OPTIONS)
    # The two replies before the failure are on record.
    assert len(Path("calls").read_text()) == len(done.records) + 1


def test_a_changed_function_is_another_model(answers, refusal):
    model = answers("def answer(prompt): return 'A'")
    first = run.evaluate("cbbq", model, out="run", **OPTIONS)
    assert first.metadata["model"]["revision"] == content(model)
    answers("def answer(prompt): return 'B'")
    given = {"out": "run", **OPTIONS}
    assert "holds another run (model_content" in refusal(run.evaluate, "cbbq", model, **given)
    second = run.evaluate("cbbq", model, out="other", **OPTIONS)
    assert [set(done.records.response) for done in (first, second)] == [{"A"}, {"B"}]
