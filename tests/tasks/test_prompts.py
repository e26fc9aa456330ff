"""Prompt sets are files that are checked, and a model is asked in a way that it has."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from bench import data, tasks
from bench.benchmarks import module
from bench.tasks import cbbq
from bench.tasks import prompts as prompt_sets
from bench.tasks.request import Request, Way

SCENARIOS = "version = 'v'\n[scenario_selection]\nprompt = '{}'\n"


def asked(
    benchmark: str, task: str, prompts: str | None = None, verb: str = "generate", **chosen: str
) -> list[Request]:
    """Return the requests of a task about the samples."""
    items = data.load(data.find(benchmark, data.SAMPLES / benchmark))
    settings = tasks.settings(benchmark, chosen, "robust")
    text = prompt_sets.load(benchmark, prompts)
    room = module("tasks", benchmark)
    return list(room.requests(items, text, task, Way(verb), settings, 0))


def write(tmp_path: Path, text: str | bytes) -> str:
    path = tmp_path / "own.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def test_a_cbbq_request_shows_the_text_and_the_options_in_their_order() -> None:
    items = {item.item_id: item for item in data.load(data.find("cbbq", data.SAMPLES / "cbbq"))}
    requests = [request for task in cbbq.TASKS for request in asked("cbbq", task)]
    ages = [request.item_id for request in requests if request.category == "age"]
    assert ages == [name for name in items if name.startswith("age:")]
    for request in requests[::37]:
        item = items[request.item_id]
        options = (f"A. {item.ans0}\n", f"B. {item.ans1}\n", f"C. {item.ans2}\n")
        places = [request.prompt.index(text) for text in (item.context, item.question, *options)]
        assert places == sorted(places)
        assert (request.key.biased, request.key.correct) == ("ABC"[item.biased], "ABC"[item.label])
        assert (request.request, request.options) == ("answer", ("A", "B", "C"))


def test_a_classifier_is_shown_the_bare_pair_and_a_language_model_a_prompt_in_its_language() -> (
    None
):
    bare, prompted = asked("nli_coal", "ps", verb="classify"), asked("nli_coal", "ps")
    for pair, request in zip(bare[::50], prompted[::50], strict=True):
        assert pair.text == f"{pair.prompt}\n{pair.hypothesis}"
        first, second = request.prompt.splitlines()[:2]
        assert pair.prompt in first
        assert pair.hypothesis in second
        assert request.prompt.startswith({"en": "Premise: ", "zh": "前提："}[request.category])
        assert (pair.key.biased, pair.key.correct) == ("entailment", "neutral")


@pytest.mark.parametrize(
    ("task", "read", "verbs", "reads", "expected"),
    [
        ("mcbe pc", None, "nll choose", "letters", ("nll", "text")),
        ("mcbe pc", "text", "generate", "text", None),
        ("mcbe sc", "letters", "generate choose", "text letters", ("generate", "text")),
        ("mcbe ss", None, "choose generate", "text letters", ("generate", "text")),
        ("mcbe ss", None, "nll choose", "options letters", ("choose", "letters")),
        ("mcbe ss", None, "choose", "options", None),
        ("mcbe ss", "options", "choose", "options", None),
        ("mcbe ss", "letters", "choose generate", "text letters", ("choose", "letters")),
        ("cbbq ambiguous", "letters", "choose", "options", None),
        ("cbbq ambiguous", "text", "nll choose", "letters", None),
        ("cbbq ambiguous", None, "classify", "", None),
        ("cbbq ambiguous", None, "choose", "options letters", ("choose", "options")),
        (
            *("cbbq ambiguous", "options", "generate choose", "text letters options"),
            ("choose", "options"),
        ),
        ("nli_coal ps", None, "generate classify", "text", ("classify", "text")),
        ("nli_coal ps", None, "classify", "", ("classify", "text")),
        ("nli_coal ps", "text", "classify", "", ("classify", "text")),
        ("nli_coal ps", "text", "generate classify", "text", ("generate", "text")),
        ("nli_coal ps", "letters", "choose classify", "text letters", ("choose", "letters")),
        ("nli_coal ns", "letters", "choose generate", "text letters", ("choose", "letters")),
    ],
)
def test_a_model_is_asked_in_a_way_that_it_has(
    task: str, read: str | None, verbs: str, reads: str, expected: tuple[str, str] | None
) -> None:
    assert tasks.way(*task.split(), read, verbs.split(), reads.split()) == expected


def test_unknown_tasks_ways_to_read_and_settings_are_refused(refusal: Any) -> None:
    message = refusal(tasks.chosen, "mcbe", ["sx"])
    assert "task of mcbe 'sx' is unknown; allowed: pc, sc, ss, ba, bs" in message
    message = refusal(tasks.way, "mcbe", "ss", "words", ("generate",), ("text",))
    assert "allowed: text, letters, options" in message
    assert tasks.chosen("nli_coal", ["ns", "ps"]) == ["ps", "ns"]
    message = refusal(tasks.settings, "mcbe", {"boss": "forced"}, "robust")
    assert "--set boss=forced: setting of mcbe 'boss' is unknown" in message
    message = refusal(tasks.settings, "mcbe", {"bos": "x"}, "robust")
    assert "--set bos=x: value of bos 'x' is unknown; allowed: tokenizer, forced" in message


def test_a_variant_of_our_own_prompts_is_chosen_by_its_name() -> None:
    first = data.load(data.find("cbbq", data.SAMPLES / "cbbq"))[0]
    reworded = asked("cbbq", "ambiguous", "reworded")
    assert reworded[0].prompt.startswith(first.context)
    assert {request.prompt_version for request in reworded} == {"bench-cbbq-3#reworded"}
    plain = {request.prompt_version for request in asked("cbbq", "ambiguous")}
    assert plain == {"bench-cbbq-3"}


def test_released_prompts_of_cbbq_are_filled_in_as_the_authors_script_does(
    shared: Path, refusal: Any
) -> None:
    path = f"{shared}/data/cbbq/prompts.toml"
    item = data.load(data.find("cbbq", data.SAMPLES / "cbbq"))[0]
    settings = tasks.settings("cbbq", {}, "robust")
    for name in ("chatglm", "gpt-3.5", "belle-ambiguous", "belle-disambiguous", "moss", "bloomz"):
        text = prompt_sets.load("cbbq", f"{path}#{name}")
        (request,) = cbbq.requests([item], text, "ambiguous", Way("generate"), settings, 0)
        expected = tomllib.loads(Path(path).read_text("utf-8"))[name]["prompt"]
        for field in ("context", "question", "ans0", "ans1", "ans2"):
            assert f"{{{field}}}" in expected
            expected = expected.replace(f"{{{field}}}", getattr(item, field))
        assert request.prompt == expected
        assert request.prompt_version == f"cbbq-scripts-95eaf2e#{name}"
    message = refusal(asked, "cbbq", "ambiguous", path)
    assert message.startswith(path)
    assert "chatglm, gpt-3.5" in message


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("version = 'v'\n[other]\nprompt = 'x'\n", ": table [scenario_selection] is missing", ""),
        ("version = 'v'\n[scenario_selection]\nx = 1\n", "PROMPT", "is missing or not a text"),
        (SCENARIOS.format("{sentence1}"), "PROMPT", "field {sentence2} is missing"),
        (SCENARIOS.format("{sentence1}{sentence2}{words}"), "PROMPT", "field 'words' is unknown"),
        (SCENARIOS.format("{sentence1}{sentence2}{}"), "PROMPT", "field '' is unknown"),
        (SCENARIOS.format("{sentence1}{sentence2"), "PROMPT", "write a brace that is text twice"),
        (SCENARIOS.format("{sentence1}{sentence2}}"), "PROMPT", "write a brace that is text twice"),
        *(
            (SCENARIOS.format(f"{field}{{sentence2}}"), "PROMPT", "")
            for field in ("{sentence1:,}", "{sentence1!z}", "{sentence1:{sentence2}}")
        ),
        ("[scenario_selection]\nprompt = '{sentence1}{sentence2}'\n", "", "expected `version"),
        ("version = 'v'\n", "", "a table a prompt"),
        (f"version = '{'v' * 201}'\n[x]\n", ", key `version`", "at most 200 characters"),
        ("version = 'v'\nlanguage = 'chinese'\n[x]\n", ", key `language`", "codes of languages"),
        ("version = 'v'\n[x]\nunbiased_instruction = 1\n", ", table [x]", "true or false"),
        ("version = 'v'\ndefault = 'a'\n[variants]\na = 1\n[x]\n", ", table [variants.a]", ""),
        ("version = ", "", "not TOML"),
        (SCENARIOS.format("句子{sentence1}").encode("gbk"), ", line 3", "not UTF-8"),
    ],
)
def test_a_wrong_file_of_prompts_is_refused_with_file_and_table(
    tmp_path: Path, refusal: Any, text: str | bytes, place: str, reason: str
) -> None:
    path = write(tmp_path, text)
    message = refusal(asked, "mcbe", "ss", path)
    place = place.replace("PROMPT", ", table [scenario_selection], `prompt`")
    assert message.startswith(f"{path}{place}")
    assert reason in message


def test_files_and_variants_that_are_not_there_are_refused(tmp_path: Path, refusal: Any) -> None:
    (tmp_path / "folder.toml").mkdir()
    path = write(tmp_path, SCENARIOS.format("{sentence1}{sentence2}"))
    for choice, reason in (
        (f"{tmp_path}/no.toml", f"{tmp_path}/no.toml: no such file of prompts"),
        (f"{tmp_path}/folder.toml", f"{tmp_path}/folder.toml: is a folder"),
        (f"{path}#polite", "prompt set 'polite' is unknown; allowed: scenario_selection"),
        ("polite", "prompt set 'polite' is unknown; allowed: reworded"),
    ):
        assert reason in refusal(prompt_sets.load, "mcbe", choice)
    for task in ("pc", "sc", "ss", "ba", "bs"):
        message = refusal(asked, "mcbe", task, f"{path}#scenario_selection")
        assert message.startswith(f"{path}: is one prompt set")
        assert "give the file without #scenario_selection" in message


def test_the_released_prompts_are_next_to_the_data_or_in_the_user_s_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusal: Any
) -> None:
    monkeypatch.setattr(prompt_sets, "user_folder", lambda: tmp_path / "user")
    message = refusal(prompt_sets.load, "mcbe", "official", data.SAMPLES / "mcbe")
    assert message.startswith(str(tmp_path / "user/mcbe/prompts.toml"))
    assert "`bench fetch mcbe` brings them" in message
    for folder, version in (("user/mcbe", "fetched"), ("beside", "beside the data")):
        (tmp_path / folder).mkdir(parents=True)
        text = f"version = '{version}'\n[x]\nprompt = ''\n"
        (tmp_path / folder / "prompts.toml").write_text(text, "utf-8")
    assert prompt_sets.load("mcbe", "official", data.SAMPLES / "mcbe").version == "fetched"
    beside = prompt_sets.load("mcbe", "official", tmp_path / "beside")
    assert beside.version == "beside the data"
