"""Kinds of models from other packages, and the examples in docs/models.md."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

from bench import run
from bench.scorers import check, load

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
