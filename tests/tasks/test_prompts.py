"""Prompt sets are files that are checked, and a model is asked in a way that it has."""

import tomllib
from pathlib import Path

import pytest

from bench import data, tasks
from bench.benchmarks import get
from bench.tasks import prompts as prompt_sets
from bench.tasks.request import AnswerMode
from tests.helpers.cases import cases

SCENARIOS = "version = 'v'\n[scenario_selection]\nprompt = '{}'\n"
BOTH = SCENARIOS.format("{sentence1}{sentence2}")


def asked(benchmark, task, prompts=None, request_type="generate"):
    """Return the requests of a task about the samples."""
    items = data.load(data.find(benchmark, get(benchmark).metadata.samples))
    settings, text = tasks.settings(benchmark, {}, "robust"), prompt_sets.load(benchmark, prompts)
    requests = get(benchmark).requests
    return list(requests(items, text, task, AnswerMode(request_type), settings, 0))


@cases(__file__, "ways.csv")
def test_a_model_is_asked_in_a_way_that_it_has(case):
    task, request_types, answer_modes, expected = (
        tuple(case[name].split()) for name in ("task", "verbs", "reads", "expected")
    )
    assert tasks.answer_mode(*task, case["read"] or None, request_types, answer_modes) == (
        expected or None
    )


@pytest.mark.parametrize(
    ("call", "arguments", "message"),
    [
        (tasks.settings, ("mcbe", {"x": "y"}, "robust"), "--set x=y: setting of mcbe 'x' is"),
        (tasks.settings, ("mcbe", {"bos": "x"}, "robust"), "--set bos=x: value of bos 'x' is"),
        (prompt_sets.load, ("mcbe", "no.toml"), "no.toml: cannot be read (No such file"),
    ],
)
def test_unknown_tasks_settings_and_files_are_refused(call, arguments, message, refusal):
    assert message in refusal(call, *arguments)
    assert tasks.chosen("nli_coal", ["ns", "ps"]) == ["ps", "ns"]


def test_released_prompts_of_cbbq_are_filled_in_as_the_authors_script_does(shared):
    path = f"{shared}/data/cbbq/prompts.toml"
    item = data.load(data.find("cbbq", get("cbbq").metadata.samples))[0]
    for name in ("chatglm", "gpt-3.5", "belle-ambiguous", "belle-disambiguous", "moss", "bloomz"):
        request = asked("cbbq", "ambiguous", f"{path}#{name}")[0]
        expected = tomllib.loads(Path(path).read_text("utf-8"))[name]["prompt"]
        for field in ("context", "question", "ans0", "ans1", "ans2"):
            assert f"{{{field}}}" in expected
            expected = expected.replace(f"{{{field}}}", getattr(item, field))
        assert request.prompt == expected
        assert request.prompt_version == f"cbbq-scripts-95eaf2e#{name}"


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("version = 'v'\n[scenario_selection]\nx = 1\n", "PROMPT", "is missing or not a text"),
        (SCENARIOS.format("{sentence1}"), "PROMPT", "field {sentence2} is missing"),
        (SCENARIOS.format("{sentence1}{sentence2}{}"), "PROMPT", "field '' is unknown"),
        (SCENARIOS.format("{sentence1}{sentence2"), "PROMPT", "write a brace that is text twice"),
        (SCENARIOS.format("{sentence1:{sentence2}}"), "PROMPT", ""),
        ("version = 'v'\n", "", "a table a prompt"),
        (f"version = '{'v' * 201}'\n[x]\n", "", "a line of at most 200 characters"),
        ("version = 'v'\nlanguage = 'chinese'\n[x]\n", ", key `language`", "codes of languages"),
        ("version = 'v'\ndefault = 'a'\n[variants]\na = 1\n[x]\n", "", "prompt set 'a' is"),
        (SCENARIOS.format("句子{sentence1}").encode("gbk"), ", line 3", "not UTF-8"),
    ],
)
def test_a_wrong_file_of_prompts_is_refused_with_file_and_table(
    tmp_path, refusal, text, place, reason
):
    path = tmp_path / "own.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    message = refusal(asked, "mcbe", "ss", str(path))
    place = place.replace("PROMPT", ", table [scenario_selection], `prompt`")
    assert message.startswith(f"{path}{place}")
    assert reason in message
    path.write_text(BOTH, "utf-8")
    message = refusal(asked, "mcbe", "ss", f"{path}#scenario_selection")
    assert message.startswith(f"{path}: is one prompt set")


def test_the_released_prompts_are_next_to_the_data_or_in_the_user_s_folder(
    tmp_path, monkeypatch, refusal
):
    monkeypatch.setattr(prompt_sets, "user_folder", lambda: tmp_path / "user")
    message = refusal(prompt_sets.load, "mcbe", "official", get("mcbe").metadata.samples)
    assert message.startswith(str(tmp_path / "user/mcbe/prompts.toml"))
    assert "`bench fetch mcbe` brings them" in message
    beside = tmp_path / "beside"
    for folder in (tmp_path / "user/mcbe", beside):
        folder.mkdir(parents=True)
        (folder / "prompts.toml").write_text(BOTH.replace("'v'", f"'{folder.name}'"), "utf-8")
    samples = get("mcbe").metadata.samples
    assert prompt_sets.load("mcbe", "official", samples).version == "mcbe"
    assert prompt_sets.load("mcbe", "official", beside).version == "beside"
