"""README and docs: the examples work, and the links lead somewhere."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import transformers
import yaml
from typer.main import get_command

from bench import cli, records
from bench.benchmarks import get, names
from bench.metrics.table import Score
from bench.report import study
from bench.run import evaluate
from bench.scorers import check, load
from tests.helpers.checkpoints import BERT, characters, save

HOME = Path(__file__).parents[1]
README = (HOME / "README.md").read_text("utf-8")
TOP = (HOME / "README.md", HOME / "CONTRIBUTING.md")
PAGES = {path: path.read_text("utf-8") for path in (*TOP, *HOME.glob("docs/*.md"))}
TEXT = "\n".join(PAGES.values())
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", TEXT, re.DOTALL)


def blocks(language):
    return [text for name, text in BLOCKS if name == language]


def test_the_first_commands_and_the_test_command_set_everything_up_themselves():
    install = "python3 -m venv .venv && .venv/bin/pip install -c .ci/constraints.txt -e"
    first = [shlex.split(line, comments=True) for line in blocks("bash")[0].splitlines()]
    start = [".venv/bin/jupyter", "lab", "--notebook-dir=.", "notebooks/00_start.ipynb"]
    assert first == [shlex.split(f"{install} ."), start, [".venv/bin/bench", "report"]]
    test = README.partition("<!-- test command -->\n```bash\n")[2].partition("\n```")[0]
    assert test == f'{install} ".[test]" && .venv/bin/pytest -n auto --dist loadfile'
    assert "README.md" in (HOME / ".ci" / "run").read_text("utf-8")


def test_make_has_the_commands_of_contributing():
    targets = re.findall(r"^(\w+):", (HOME / "Makefile").read_text("utf-8"), re.M)
    assert re.findall(r"^make (\w+)", PAGES[HOME / "CONTRIBUTING.md"], re.M) == targets


# The notebook in docs/studies.md is a page of a report in tests/report.
@pytest.mark.parametrize("code", [code for code in blocks("python") if "# %%" not in code])
def test_a_python_example_runs(code, own_folder):
    exec(code, {})


@pytest.mark.parametrize("text", blocks("yaml"))
def test_a_study_example_is_a_study(text, tmp_path):
    (tmp_path / "mine.yml").write_text(text, "utf-8")
    given = yaml.safe_load(text)["models"]
    models = [entry if isinstance(entry, str) else entry["model"] for entry in given]
    assert [model.model for model in study.load(tmp_path / "mine.yml").models] == models


GROUP = get_command(cli.app)
for one in GROUP.commands.values():
    one.complete()
HELPS = [one.epilog for one in (GROUP, *GROUP.commands.values())]
LINES = "\n".join([*blocks("bash"), *HELPS]).splitlines()
CALLS = [shlex.split(line.partition("  #")[0])[1:] for line in LINES if re.match(" *bench ", line)]


def test_commands_have_the_options_that_are_shown():
    assert all(text.count("bench ") == 2 for text in HELPS)
    for words in CALLS:
        parameters = GROUP.commands[words[0]].params
        options = {name for one in parameters for name in one.opts} | {"--help"}
        assert {word for word in words if word.startswith("--")} <= options, words


def test_models_that_are_shown_can_be_named():
    cells = " ".join(re.findall(r"^\| (`[^|]+) \| ", TEXT, re.M))
    models = re.findall(r"`((?:simulated|tiny):[^`]*|\w+/[\w.-]+)`", cells)
    models += [words[words.index("--model") + 1] for words in CALLS if "--model" in words]
    assert len(models) > 5
    for model in models:
        if not model.startswith(("./", "replay:", "python:")):  # no such file here
            check(model)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "scorer"),
    [
        ("LlamaForCausalLM", "Causal"),
        ("BertForMaskedLM", "Masked"),
        ("BertForSequenceClassification", "Classifier"),
    ],
)
def test_pickled_weights_are_converted_to_the_class_they_were(kind, scorer, tmp_path, refusal):
    network = getattr(transformers, kind)
    names = {0: "entailment", 1: "neutral", 2: "contradiction"}
    old, new = tmp_path / "old", tmp_path / "new"
    save(old, kind, characters(BERT), id2label=names)
    weights = network.from_pretrained(old).state_dict()
    torch.save(weights, old / "pytorch_model.bin")
    (old / "model.safetensors").unlink()
    assert "docs/security.md" in refusal(load, str(old))
    program = re.search(r"python - OLD NEW <<'END'\n(.*?)END\n", TEXT, re.DOTALL)[1]
    subprocess.run([sys.executable, "-", old, new], input=program, text=True, check=True)
    assert type(load(str(new), device="cpu")).__name__ == scorer
    converted = network.from_pretrained(new).state_dict()
    assert all(torch.equal(weights[name], converted[name]) for name in weights)


@pytest.mark.slow
def test_the_page_on_continuous_integration_works_as_written(tmp_path):
    (tmp_path / "notebooks").symlink_to(HOME / "notebooks")
    tools = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for block in re.findall(r"```bash\n(.*?)```", PAGES[HOME / "docs/ci.md"], re.DOTALL):
        command = ["bash", "-e", "-c", block]
        done = subprocess.run(command, cwd=tmp_path, env=tools, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    assert len(list(tmp_path.glob("out/*.ipynb"))) == 2


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_link_to_the_project_leads_somewhere(page):
    for name, anchor in re.findall(r"\]\(((?!https?:)[^)#]*)#?([^)]*)\)", PAGES[page]):
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), name
        assert not anchor or anchor in anchors(PAGES[target]), f"{name}#{anchor}"


def anchors(text):
    """What GitHub and MkDocs make of headings."""
    headings = re.findall(r"^#+ (.*)", re.sub(r"(?ms)^```.*?^```", "", text), re.M)
    return {re.sub(r"[^\w -]", "", one).lower().replace(" ", "-") for one in headings}


def test_files_have_the_described_formats(tmp_path):
    page = (HOME / "docs/formats.md").read_text("utf-8")
    cells = re.findall(r"^\| (`.*?) \|", page, re.M)
    shown = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    assert {*records.SCHEMA.names, *Score._fields} <= shown
    run_json = page.partition("### run.json")[2].partition("\n## ")[0]
    keys = re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`.*?) \|", run_json, re.M)))
    metadata = evaluate("cbbq", "simulated:", limit=1, out=tmp_path / "run").metadata
    assert len(keys) > 10
    assert set(keys) <= set(metadata)
    *answers, printed = blocks("json")
    assert {*json.loads(printed)} == {"run", "scores", "official"}
    for k, line in enumerate("".join(answers).splitlines()):
        path = tmp_path / f"{k}.jsonl"
        path.write_text(line, "utf-8")
        load(f"{'predictions' if 'id' in json.loads(line) else 'replay'}:{path}")


@pytest.mark.parametrize("benchmark", names())
def test_the_settings_of_a_benchmark_are_described(benchmark):
    page = (HOME / "docs/benchmarks.md").read_text("utf-8")
    title = get(benchmark).metadata.title
    own = re.search(rf"^## {title}\n(.*?)(^## |\Z)", page, re.M | re.S)[1]
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \|", own, re.M)
    shown = {name: tuple(re.findall(r"`([^`]+)`", values)) for name, values in rows}
    assert shown == {name: one.allowed for name, one in get(benchmark).settings.items()}
