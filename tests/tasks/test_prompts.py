"""Prompt sets are files that are checked, and a model is asked in a way that it has."""

import tomllib
from pathlib import Path

import pytest

from bench import data, tasks
from bench.benchmarks import get
from bench.tasks import prompts as prompt_sets
from bench.tasks.request import AnswerMode
from tests.helpers.cases import cases

WRONG = tomllib.loads(Path(__file__).with_name("wrong_prompts.toml").read_text("utf-8"))


def asked(benchmark, task, prompts):
    """Return the requests of a task about the samples."""
    items = data.load(data.find(benchmark, "samples"))
    settings, text = (
        tasks.settings(get(benchmark), {}, "robust"),
        prompt_sets.load(get(benchmark), prompts),
    )
    requests = get(benchmark).requests
    return list(requests(items, text, task, AnswerMode("generate"), settings, 0))


@cases(__file__, "ways.csv")
def test_a_model_is_asked_in_a_way_that_it_has(case):
    names = (case[name].split() for name in ("task", "verbs", "reads", "expected"))
    (benchmark, task), request_types, answer_modes, expected = names
    mode = tasks.answer_mode(
        get(benchmark).tasks[task], case["read"] or None, request_types, answer_modes
    )
    assert list(mode or ()) == expected


def test_unknown_settings_and_files_are_refused(refusal):
    message = refusal(tasks.settings, get("mcbe"), {"x": "y"}, "robust")
    assert "--set x=y: setting of mcbe 'x' is" in message
    assert "no.toml: cannot be read (No such file" in refusal(
        prompt_sets.load, get("mcbe"), "no.toml"
    )


def test_tasks_are_asked_in_the_order_of_the_benchmark():
    assert tasks.chosen(get("nli_coal"), ["ns", "ps"]) == ["ps", "ns"]


@pytest.mark.parametrize(
    "name", ["chatglm", "gpt-3.5", "belle-ambiguous", "belle-disambiguous", "moss", "bloomz"]
)
def test_released_prompts_of_cbbq_are_filled_in_as_the_authors_script_does(shared, name):
    path = shared / "data/cbbq/prompts.toml"
    item = data.load(data.find("cbbq", "samples"))[0]
    request = asked("cbbq", "ambiguous", f"{path}#{name}")[0]
    expected = tomllib.loads(path.read_text("utf-8"))[name]["prompt"]
    for field in ("context", "question", "ans0", "ans1", "ans2"):
        assert f"{{{field}}}" in expected
        expected = expected.replace(f"{{{field}}}", getattr(item, field))
    assert (request.prompt, request.prompt_version) == (expected, f"cbbq-scripts-95eaf2e#{name}")


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file_of_prompts_is_refused_with_file_and_table(tmp_path, refusal, name):
    path, wrong = tmp_path / "own.toml", WRONG[name]
    path.write_text(wrong["text"], wrong.get("encoding", "utf-8"))
    benchmark, task = wrong.get("asked", ("mcbe", "ss"))
    message = refusal(asked, benchmark, task, f"{path}{wrong.get('variant', '')}")
    assert message.startswith(f"{path}{wrong['place']}")
    assert wrong["reason"] in message


def test_the_released_prompts_are_next_to_the_data_or_in_the_user_s_folder(
    tmp_path, monkeypatch, refusal
):
    monkeypatch.setattr(prompt_sets, "user_folder", lambda: tmp_path / "user")
    message = refusal(prompt_sets.load, get("mcbe"), "official", get("mcbe").metadata.samples)
    assert message.startswith(str(tmp_path / "user/mcbe/prompts.toml"))
    assert "`bench fetch mcbe` brings them" in message
    beside = tmp_path / "beside"
    for folder in (tmp_path / "user/mcbe", beside):
        folder.mkdir(parents=True)
        (folder / "prompts.toml").write_text(f"version = '{folder.name}'\n[x]\n", "utf-8")
    samples = get("mcbe").metadata.samples
    assert prompt_sets.load(get("mcbe"), "official", samples).version == "mcbe"
    assert prompt_sets.load(get("mcbe"), "official", beside).version == "beside"
