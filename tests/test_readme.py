"""README and docs: the examples work, and the links lead somewhere."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    LlamaConfig,
    LlamaForCausalLM,
)
from typer.main import get_command

from bench import cli
from bench.core.errors import BadInput
from bench.report import study
from bench.scorers import check, load
from bench.scorers.local.causal import Causal
from bench.scorers.local.classifier import Classifier
from bench.scorers.local.encoders import Masked
from tests.helpers.checkpoints import BERT, characters, save

HOME = Path(__file__).parents[1]
README = (HOME / "README.md").read_text("utf-8")
PAGES = {path: path.read_text("utf-8") for path in [HOME / "README.md", *HOME.glob("docs/*.md")]}
TEXT = "\n".join(PAGES.values())
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", TEXT, re.DOTALL)


def blocks(language):
    return [text for name, text in BLOCKS if name == language]


def commands():
    """Every `bench ...` that is shown, without comments."""
    lines = [line.partition("  #")[0] for text in blocks("bash") for line in text.splitlines()]
    return [line for line in lines if line.startswith("bench ")]


def test_the_first_two_commands_set_everything_up_themselves():
    first, second = blocks("bash")[:2]
    assert shlex.split(first) == shlex.split(
        "python3 -m venv .venv && .venv/bin/pip install -c .ci/constraints.txt -e . && .venv/bin/bench report"
    )
    assert second.startswith(
        "python3 -m venv .venv && .venv/bin/pip install -c .ci/constraints.txt -e "
    )
    assert second.rstrip().endswith(".venv/bin/pytest -n auto --dist loadfile")
    assert "<!-- test command -->\n```bash\n" + second in README


def test_continuous_integration_runs_what_the_readme_says():
    assert "README.md" in (HOME / ".ci" / "run").read_text("utf-8")


@pytest.mark.parametrize("code", blocks("python"))
def test_a_python_example_runs(code, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "gender" in done.stdout


@pytest.mark.parametrize("text", blocks("yaml"))
def test_a_study_example_is_a_study(text, tmp_path):
    (tmp_path / "mine.yml").write_text(text, "utf-8")
    models = [
        entry if isinstance(entry, str) else entry["model"]
        for entry in yaml.safe_load(text)["models"]
    ]
    assert [model.model for model in study.load(tmp_path / "mine.yml").models] == models


@pytest.mark.parametrize("line", commands())
def test_a_command_has_the_options_that_are_shown(line):
    words = shlex.split(line)[1:]
    command = get_command(cli.app).commands[words[0]]
    options = {option for parameter in command.params for option in parameter.opts} | {"--help"}
    assert {word for word in words if word.startswith("--")} <= options
    if "--model" in words:
        model = words[words.index("--model") + 1]
        if not model.startswith("./"):
            check(model)


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("causal", marks=pytest.mark.slow),
        pytest.param("masked", marks=pytest.mark.slow),
        pytest.param("classifier", marks=pytest.mark.slow),
    ],
)
def test_pickled_weights_are_converted_to_the_class_they_were(kind, tmp_path, refusal):
    network_class, config_class, ending = {
        "causal": (LlamaForCausalLM, LlamaConfig, Causal),
        "masked": (BertForMaskedLM, BertConfig, Masked),
        "classifier": (BertForSequenceClassification, BertConfig, Classifier),
    }[kind]
    names = {0: "entailment", 1: "neutral", 2: "contradiction"}
    labels = {"id2label": names} if kind == "classifier" else {}
    old, new = tmp_path / "old", tmp_path / "new"
    save(old, network_class, config_class, characters(BERT), **labels)
    weights = network_class.from_pretrained(old).state_dict()
    torch.save(weights, old / "pytorch_model.bin")
    (old / "model.safetensors").unlink()
    assert "docs/security.md" in refusal(load, str(old))
    program = re.search(r"python - OLD NEW <<'END'\n(.*?)END\n", TEXT, re.DOTALL)[1]
    subprocess.run([sys.executable, "-", old, new], input=program, text=True, check=True)
    scorer = load(str(new), device="cpu")
    assert type(scorer) is ending
    converted = network_class.from_pretrained(new).state_dict()
    assert all(torch.equal(weights[name], converted[name]) for name in weights)


def test_every_model_of_the_table_is_one_that_can_be_named():
    rows = re.findall(r"^\| (`[^|]+) \| ", TEXT, re.MULTILINE)
    for model in re.findall(r"`([^`]+)`", " ".join(rows)):
        if re.match(r"(simulated|tiny):", model) or re.fullmatch(r"\w+/[\w.-]+", model):
            check(model)
    with pytest.raises(BadInput):
        check("simulated:nonsense=1")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_link_to_the_project_leads_somewhere(page):
    for place in re.findall(r"\]\(((?!https?:)[^)#]+)[)#]", PAGES[page]):
        assert (page.parent / place).exists(), place
