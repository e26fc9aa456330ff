"""Models of one's own: a Python function, or a kind from another package, as in docs/models.md."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

from bench import run
from bench.core.errors import RunFailed
from bench.scorers import check, content, load
from tests.helpers.answering import request

TEXT = (Path(__file__).parents[2] / "docs/models.md").read_text("utf-8")
BLOCKS = re.findall(r"```(py|toml)\n(.*?)```", TEXT, re.DOTALL)
FUNCTION, KIND = [code for language, code in BLOCKS if language == "py"]
(PROJECT,) = [tomllib.loads(code) for language, code in BLOCKS if language == "toml"]
OPTIONS = {"categories": ["gender"], "tasks": ["ambiguous"], "limit": 4, "out": "run"}


@pytest.fixture
def install(tmp_path, monkeypatch):
    """`install(code, line)`: a package of the module `my_kind` with an entry point."""

    def package(code, line):
        metadata = tmp_path / "site" / "my_kind-0.1.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: my-kind\nVersion: 0.1\n")
        (metadata / "entry_points.txt").write_text(f"[bench.models]\n{line}\n")
        (metadata.parent / "my_kind.py").write_text(code)
        monkeypatch.syspath_prepend(metadata.parent)
        monkeypatch.delitem(sys.modules, "my_kind", raising=False)

    return package


def test_the_function_of_the_manual_answers_cbbq(own_folder):
    Path("my_model.py").write_text(FUNCTION)
    done = run.evaluate("cbbq", "python:my_model:answer", **OPTIONS)
    assert set(done.answers().parsed) <= {*"ABC"}


@pytest.mark.parametrize(
    ("reply", "recorded"),
    [
        ("'A\\ud83d'", "A\ufffd"),
        ("'\\udc00A'", "\ufffdA"),
        # Two halves of one character.
        ("'A\\ud83d' + '\\ude00'", "A😀"),
        ("type('Reply', (str,), {'encode': None, '__str__': None})('A')", "A"),
    ],
)
def test_replies_are_recorded_in_whole_characters(own_folder, install, reply, recorded):
    kind = KIND.replace("Answer(self.letter)", f"Answer({reply})")
    kind = kind.replace('"revision": ', f'"version": {reply}, "revision": ')
    assert kind.count(reply) == 2
    install(kind, "constant = my_kind:Constant")
    Path("whole.py").write_text(f"def answer(text):\n    return {reply}\n")
    options = {**OPTIONS, "settings": {"explanation": "yes"}, "judge": "simulated:"}
    for model in ("python:whole:answer", "constant:A"):
        done = run.evaluate("cbbq", model, **{**options, "out": model.partition(":")[0]})
        rows = done.records[~done.records.request.str.startswith("judge")]
        assert set(rows.response) == {recorded}
        assert run.evaluate("cbbq", model, **{**options, "out": done.folder}).records.equals(
            done.records
        )
    assert done.metadata["model"]["version"] == recorded


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
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise SystemExit('set MY_KEY')", "SystemExit: set MY_KEY"),
        ("Kind = 3", "TypeError: issubclass() arg 1"),
        ("class Kind: pass", "TypeError: it is no subclass of bench.scorers.Model"),
    ],
)
def test_a_broken_kind_is_named(install, refusal, code, message):
    install(code, "broken = my_kind:Kind")
    start = "kind broken of models (my_kind:Kind) cannot be loaded: "
    assert refusal(check, "broken:x").startswith(start + message)


def write(code):
    """Write the module `mine`, and return the model of its function `answer`."""
    Path("mine.py").write_text(code)
    return "python:mine:answer"


@pytest.mark.parametrize(
    ("code", "reply"),
    [
        ("def answer(prompt): return prompt", "Who?\n\nI.\n\nHow?"),
        ("def answer(prompt, seed): return str(seed)", "7"),
        ("from other import answer", "other"),
    ],
)
def test_a_function_gets_the_text_and_its_seed(own_folder, code, reply):
    Path("other.py").write_text("def answer(prompt): return 'other'")
    (answer,) = load(write(code)).answer([request("How?", earlier=("Who?", "I."), seed=7)])
    assert answer.response == reply


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("python:mine", "expected python:MODULE:FUNCTION"),
        ("python:missing:answer", "there is no missing.py in the working folder"),
        ("python:missing.part:answer", "No module named 'missing'"),
        ("python:mine:anwser", "did you mean answer?"),
        ("python:broken:answer", "broken.py cannot be imported (ZeroDivisionError: "),
        ("python:ends:answer", "ends.py cannot be imported (SystemExit: set MY_KEY)"),
        ("python:package.part:answer", "package.part is not found (SystemExit: set MY_KEY)"),
    ],
)
def test_a_function_that_is_not_there_is_refused(own_folder, refusal, model, message):
    write("def answer(prompt): return ''")
    Path("broken.py").write_text("1 / 0")
    Path("package").mkdir()
    for module in ("ends.py", "package/__init__.py"):
        Path(module).write_text("import sys\nsys.exit('set MY_KEY')")
    assert message in refusal(load, model)


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ("1 / 0", "raised ZeroDivisionError: division by zero"),
        ("3", "returned 3, which is not"),
        ("sys.exit('set MY_KEY')", "raised SystemExit: set MY_KEY"),
        ("fail(asyncio.CancelledError('late'))", "raised CancelledError: late"),
        ("fail(type('Stop', (BaseException,), {})('now'))", "raised Stop: now"),
    ],
)
def test_a_failing_function_ends_the_run_which_continues(own_folder, reply, message):
    model = write(f"""
import asyncio, sys
from pathlib import Path
calls = Path("calls")
def fail(error):
    raise error
def answer(prompt):
    calls.write_text(calls.read_text() + "c")
    return {reply} if len(calls.read_text()) == 3 else "A"
""")
    Path("calls").write_text("")
    with pytest.raises(RunFailed, match="the model: python:mine:answer") as caught:
        run.evaluate("cbbq", model, **OPTIONS)
    assert message in str(caught.value)
    done = run.evaluate("cbbq", model, **OPTIONS)
    # The two replies before the failure are on record.
    assert len(Path("calls").read_text()) == len(done.records) + 1


def test_an_interrupt_ends_the_run_as_such(own_folder):
    with pytest.raises(KeyboardInterrupt):
        run.evaluate("cbbq", write("def answer(prompt): raise KeyboardInterrupt"), **OPTIONS)


def test_a_changed_function_is_another_model(own_folder, refusal):
    model = write("def answer(prompt): return 'A'")
    first = run.evaluate("cbbq", model, **OPTIONS)
    assert first.metadata["model"]["revision"] == content(model)
    write("def answer(prompt): return 'B'")
    assert "holds another run (the content of --model" in refusal(
        run.evaluate, "cbbq", model, **OPTIONS
    )
    second = run.evaluate("cbbq", model, **OPTIONS | {"out": "other"})
    assert set(second.records.response) == {"B"}


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("from other import letter\n", "other.py"),
        ("def letter():\n    import parts.deep; return parts.deep.letter()\n", "parts/deep.py"),
    ],
)
def test_a_function_is_known_by_all_modules_of_one_s_own_that_it_imports(own_folder, code, name):
    def reply(letter):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(f"def letter(): return '{letter}'" + "\n" * (letter == "B"))
        model = write(f"{code}def answer(prompt): return letter()")
        (answer,) = load(model).answer([request("How?")])
        return answer.response, content(model)

    (first, before), (second, now) = reply("A"), reply("B")
    assert (first, second) == ("A", "B")
    assert before != now


def test_a_function_of_a_package_is_known_by_the_whole_package(own_folder):
    Path("own").mkdir()
    for name in ("__init__", "model", "words"):
        Path(f"own/{name}.py").write_text("")
    Path("own/model.py").write_text("from .words import answer")
    before = content("python:own.model:answer")
    Path("own/words.py").write_text("def answer(prompt): return 'A'")
    assert content("python:own.model:answer") != before
    (answer,) = load("python:own.model:answer").answer([request("How?")])
    assert answer.response == "A"
