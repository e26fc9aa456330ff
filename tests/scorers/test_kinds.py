"""Models of one's own: a Python function, or a kind from another package, as in docs/models.md."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

from bench import run
from bench.core.errors import RunFailed
from bench.scorers import check, content, load
from bench.tasks.request import Key, Request

TEXT = (Path(__file__).parents[2] / "docs/models.md").read_text("utf-8")
BLOCKS = re.findall(r"```(py|toml)\n(.*?)```", TEXT, re.DOTALL)
FUNCTION, KIND = [code for language, code in BLOCKS if language == "py"]
(PROJECT,) = [tomllib.loads(code) for language, code in BLOCKS if language == "toml"]
OPTIONS = {"categories": ["gender"], "limit": 2, "out": "run"}


@pytest.fixture
def install(tmp_path, monkeypatch):
    """`install(code, line)`: a package of the module `my_kind` with an entry point."""

    def write(code, line):
        metadata = tmp_path / "site" / "my_kind-0.1.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: my-kind\nVersion: 0.1\n")
        (metadata / "entry_points.txt").write_text(f"[bench.models]\n{line}\n")
        (metadata.parent / "my_kind.py").write_text(code)
        monkeypatch.syspath_prepend(metadata.parent)
        monkeypatch.delitem(sys.modules, "my_kind", raising=False)

    return write


def test_the_function_of_the_manual_answers_cbbq(own_folder):
    Path("my_model.py").write_text(FUNCTION)
    done = run.evaluate("cbbq", "python:my_model:answer", **OPTIONS)
    assert set(done.records.parsed) <= {*"ABC"}
    assert done.records.valid.all()


def test_the_kind_of_the_manual_answers_cbbq(own_folder, install, refusal):
    assert len(KIND.splitlines()) <= 30
    (line,) = PROJECT["project"]["entry-points"]["bench.models"].items()
    install(KIND, " = ".join(line))
    done = run.evaluate("cbbq", "constant:A", **OPTIONS)
    assert set(done.records.response) == {"A"}
    assert "expected A, B or C" in refusal(check, "constant:D")
    assert "openai, python, constant, a Hub id" in refusal(check, "constnt:A")


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("1 / 0", "kind broken of models (my_kind:Kind) cannot be loaded: division by zero"),
        ("Kind = 3", "kind broken of models (my_kind:Kind) cannot be loaded: issubclass() arg 1"),
    ],
)
def test_a_broken_kind_is_named(install, refusal, code, message):
    install(code, "broken = my_kind:Kind")
    assert message in refusal(check, "broken:x")


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"base": "a/b"}, "takes no --base; leave it out"),
        ({"label_names": ["entailment", "neutral", "contradiction"]}, "takes no --label-names"),
        ({"as_model": "x"}, "takes no --as-model"),
        ({"generation": {"top_p": 0.5}}, "--top-p: model simulated:bias=1 cannot follow it"),
        ({"devise": "cpu"}, "did you mean device?"),
    ],
)
def test_an_option_that_a_kind_does_not_take_is_refused(refusal, option, message):
    assert message in refusal(load, "simulated:bias=1", **option)


FEW = {"categories": ["gender"], "limit": 4, "tasks": ["ambiguous"]}
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
        run.evaluate("cbbq", model, out="run", **FEW)
    assert message in str(caught.value)
    done = run.evaluate("cbbq", model, out="run", **FEW)
    # The two replies before the failure are on record.
    assert len(Path("calls").read_text()) == len(done.records) + 1


def test_a_changed_function_is_another_model(answers, refusal):
    model = answers("def answer(prompt): return 'A'")
    first = run.evaluate("cbbq", model, out="run", **FEW)
    assert first.metadata["model"]["revision"] == content(model)
    answers("def answer(prompt): return 'B'")
    given = {"out": "run", **FEW}
    assert "holds another run (model_content" in refusal(run.evaluate, "cbbq", model, **given)
    second = run.evaluate("cbbq", model, out="other", **FEW)
    assert [set(done.records.response) for done in (first, second)] == [{"A"}, {"B"}]
