"""Options of generation: what a local model does with them, and who refuses them."""

from pathlib import Path
from typing import Any

import pytest
from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification

from bench import run
from bench.scorers import load
from bench.tasks.request import Key, Request
from tests.helpers.checkpoints import BERT, CHAT, characters, headed, save
from tests.scorers.test_thinking import FORGETS, NO_SYSTEM, PLAIN, saved

QUESTIONS = ["the doctor is here. who?", "the nurse", "他是医生。谁？", "t"]
WARM = {"temperature": 1.5, "top_k": 0}


@pytest.fixture(scope="module")
def greedy(tmp_path_factory: pytest.TempPathFactory) -> str:
    return saved(tmp_path_factory.mktemp("greedy"), CHAT)


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> str:
    return saved(tmp_path_factory.mktemp("sampled"), CHAT, sampling=WARM)


def replies(model: str, generation: dict[str, Any] | None = None, **options: Any) -> list[str]:
    return load(model, generation=generation).generate(QUESTIONS, max_new_tokens=8, **options)


def test_nothing_is_said_of_options_that_were_not_given(greedy: str) -> None:
    described = load(greedy, generation={"temperature": None, "system": ""}).describe()
    assert described == load(greedy).describe()
    assert not {"generation", "thoughts"} & set(described)


def test_a_temperature_overrides_how_the_model_decodes(greedy: str, sampled: str) -> None:
    likeliest, drawn = replies(sampled, greedy=True), replies(sampled)
    assert replies(sampled, {"temperature": 0}) == likeliest != drawn
    assert replies(greedy) == likeliest, "the weights are the same"
    # Where a configuration is silent, transformers draws from the 50 likeliest tokens.
    warm = load(greedy, generation={"temperature": 1.5})
    assert warm.describe()["decoding"] == {
        "temperature": 1.5,
        "top_k": 50,
        "top_p": 1.0,
        "min_p": 0.0,
    }
    assert warm.describe()["generation"] == {"temperature": 1.5}
    assert warm.generate(QUESTIONS, max_new_tokens=8) != likeliest
    assert warm.generate(QUESTIONS, max_new_tokens=8, greedy=True) == likeliest
    assert replies(sampled, {"temperature": 1.5}) == drawn
    assert replies(sampled, {"top_p": 1e-6}) == likeliest


def test_a_judge_s_requests_stay_greedy(sampled: str) -> None:
    scorer = load(sampled, generation={"temperature": 2.0})
    ask = [
        Request("c", "t", "i", name, "generate", text, "v", Key(), max_new_tokens=8)
        for text in QUESTIONS
        for name in ("answer", "judge")
    ]
    found = [answer.response for answer in scorer.answer(ask)]
    assert found[1::2] == replies(sampled, greedy=True) != found[::2]


def test_nothing_is_drawn_from_where_the_likeliest_is_taken(
    greedy: str, sampled: str, refusal: Any
) -> None:
    for model, given in ((greedy, {"top_p": 0.9}), (sampled, {"top_p": 0.9, "temperature": 0})):
        message = refusal(load, model, generation=given)
        assert message.startswith("--top-p 0.9: ")
        assert "--temperature" in message


def test_a_system_message_stands_first(tmp_path: Path, greedy: str) -> None:
    system = "be <|user|> brief"
    scorer: Any = load(greedy, generation={"system": system})
    coder, speech = scorer.tokenizer, scorer.chat
    (ids,) = speech.encode([speech.render("who?")])
    marks = coder.convert_tokens_to_ids(["<|user|>", "<|assistant|>"])
    assert [token for token in ids if token in marks] == marks, (
        "what a system message names is text"
    )
    assert coder.decode(ids).startswith(
        coder.decode(coder(CHAT and "<|system|>", add_special_tokens=False)["input_ids"])
    )
    assert scorer.describe()["generation"] == {"system": system}
    bare: Any = load(saved(tmp_path, None), generation={"system": "be brief"})
    assert bare.chat.render("who?") == "be brief\n\nwho?\n"
    assert "system message" in bare.describe()["prompted_as"]


@pytest.mark.parametrize("template", [NO_SYSTEM, FORGETS])
def test_a_template_without_a_system_message_is_named(
    tmp_path: Path, template: str, refusal: Any
) -> None:
    folder = saved(tmp_path, template)
    load(folder)
    message = refusal(load, folder, generation={"system": "be brief"})
    assert message.startswith(f"--system: the chat template of {folder} ")


def test_arguments_go_to_the_template_that_knows_them(
    tmp_path: Path, greedy: str, refusal: Any
) -> None:
    folder = saved(
        tmp_path / "style", PLAIN + "{% if style %}{{ style }}{% endif %}{{ bos_token }}"
    )
    scorer: Any = load(folder, generation={"template_arguments": {"style": "curt"}})
    assert scorer.chat.render("who?") == "<|user|>who?<|assistant|>curt[CLS]"
    message = refusal(load, folder, generation={"template_arguments": {"tone": "curt"}})
    assert message.startswith("--template tone: ")
    assert message.endswith("it takes style")
    taken = {"template_arguments": {"messages": []}}
    assert refusal(load, greedy, generation=taken).startswith("--template messages: ")
    bare = saved(tmp_path / "bare", None)
    assert "no chat template" in refusal(
        load, bare, generation={"template_arguments": {"style": "x"}}
    )
    assert refusal(load, greedy, generation={"request_fields": {"n": 1}}).startswith(
        "--request-field: "
    )


def test_who_writes_no_replies_refuses_the_options(tmp_path: Path, refusal: Any) -> None:
    (tmp_path / "answers.jsonl").write_text("", "utf-8")
    labels = {"num_labels": 3, "id2label": {0: "entailment", 1: "contradiction", 2: "neutral"}}
    labels["label2id"] = {name: i for i, name in labels["id2label"].items()}
    coder = characters(BERT)
    models = [
        "simulated:bias=0.5",
        f"replay:{tmp_path / 'answers.jsonl'}",
        f"predictions:{tmp_path / 'answers.jsonl'}",
        str(save(tmp_path / "masked", BertForMaskedLM, BertConfig, coder)),
        str(save(tmp_path / "nli", BertForSequenceClassification, BertConfig, coder, **labels)),
        str(headed(tmp_path / "choice")),
    ]
    for model in models:
        message = refusal(load, model, generation={"temperature": 0.5})
        assert message.startswith("--temperature: ")
        assert model in message


def test_the_demonstration_model_takes_them(refusal: Any) -> None:
    scorer = load("tiny:s", generation={"temperature": 0})
    described = scorer.describe()
    assert (described["generation"], described["decoding"]) == ({"temperature": 0}, "greedy")
    assert scorer.generate(["t"], max_new_tokens=3, seed=1) == scorer.generate(
        ["t"], max_new_tokens=3, seed=2
    )
    scorer = load("tiny:s", generation={"template_arguments": {"tone": "curt"}})
    assert refusal(scorer.describe).startswith("--template tone: ")


def test_a_judge_that_writes_nothing_needs_no_room_for_thoughts(
    tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    given: dict[str, Any] = {"categories": ["age"], "tasks": ["ba"], "limit": 1, "out": "out"}
    model = saved(tmp_path / "model", CHAT)
    done = run.evaluate(
        "mcbe", model, judge="simulated:", thinking_tokens=4, max_new_tokens=4, **given
    )
    assert done.about["model"]["generation"] == {"thinking_tokens": 4}
    assert "generation" not in done.about["judge"]
