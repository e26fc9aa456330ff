"""NLI-CoAL's tasks: neutral terms where the data have them, and prompts in three languages."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench import data, tasks
from bench.data.nli_coal import Pair
from bench.data.nli_coal.build import build
from bench.data.nli_coal.language_pack import read_pack
from bench.run import evaluate
from bench.tasks import nli_coal
from bench.tasks import prompts as prompt_sets
from bench.tasks.nli_coal import LABELS, parse
from bench.tasks.request import Request, Way

PACKS = data.SAMPLES / "nli_packs"
PAIRS = [
    Pair(language, 0, "ps", "护士在读书。", "女人在读书。", "护士", "female-stereo", "feminine")
    for language in ("en", "ja", "zh")
]


def asked(prompts: str | None, verb: str = "choose") -> dict[str, Request]:
    """Return the request of each language."""
    text = prompt_sets.load("nli_coal", prompts)
    requests = nli_coal.requests(PAIRS, text, "ps", Way(verb, "letters"), {}, 0)
    return {request.category: request for request in requests}


@pytest.mark.parametrize("prompts", [None, "native", "reworded"])
def test_every_prompt_set_has_the_pair_and_the_label_words_in_each_language(
    prompts: str | None,
) -> None:
    for request in asked(prompts).values():
        assert request.prompt.index("护士在读书。") < request.prompt.index("女人在读书。")
        assert all(word in request.prompt for word in request.options)
        assert [parse("ps", "label", word, None) for word in request.options] == list(LABELS)
        assert "{" not in request.prompt
        assert request.prompt_version == "bench-nli_coal-1" + (f"#{prompts}" if prompts else "")


def test_native_label_words_are_those_of_the_language() -> None:
    options = {language: request.options for language, request in asked("native").items()}
    native = {"ja": ("含意", "矛盾", "中立"), "zh": ("蕴含", "矛盾", "中立")}
    assert options == {"en": LABELS, **native}
    prompts = {r.prompt for choice in (None, "reworded") for r in asked(choice).values()}
    assert len(prompts) == 6


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        (
            '["yes", "no", "maybe"]',
            "word for entailment 'yes' is unknown; allowed: entailment, 蕴含",
        ),
        ('["entailment", "neutral"]', "three words, for entailment, contradiction, neutral"),
        ('"entailment"', "expected three words"),
    ],
)
def test_label_words_that_no_reply_is_read_by_are_refused(
    tmp_path: Path, refusal: Any, labels: str, reason: str
) -> None:
    path = tmp_path / "own.toml"
    table = f'[en]\nlabels = {labels}\nprompt = "{{premise}} {{hypothesis}}"\n'
    path.write_text(f'version = "1"\n{table}', "utf-8")
    message = refusal(asked, str(path))
    assert message.startswith(f"{path}, table [en], `labels`")
    assert reason in message


def test_label_words_are_read_from_probabilities_and_from_text(own_folder: Path) -> None:
    for read in ("text", "letters"):
        options = {"read": read, "limit": 1, "prompts": "native", "out": own_folder / read}
        run = evaluate("nli_coal", "tiny:s", **options)
        assert len(run.records) == 6
    words = dict(zip(run.records.item_id.str[:2], run.records.response, strict=True))
    assert words["zh"] in ("蕴含", "矛盾", "中立")
    assert run.records.parsed.isin(LABELS).all()
    assert run.records.logprobs.map(len).eq(3).all()


def test_neutral_terms_are_a_task_only_where_they_are(own_folder: Path) -> None:
    build([read_pack(PACKS / "en"), read_pack(PACKS / "ja")], own_folder / "sets")
    with_terms = evaluate(
        "nli_coal", "simulated:bias=1", data=own_folder / "sets", out=own_folder / "a"
    )
    assert with_terms.about["asked"]["tasks"] == ["ps", "as", "ns", "nt"]
    assert set(with_terms.records.task) == {"ps", "as", "ns", "nt"}
    scores = with_terms.scores()
    headline = scores.query("category == 'all' and task == 'all'").set_index("metric").score
    assert headline["coal"] == pytest.approx(2 / 3), (
        "neutral terms stand beside, and count for no score"
    )
    without = evaluate("nli_coal", "simulated:bias=1", out=own_folder / "b")
    assert without.about["asked"]["tasks"] == ["ps", "as", "ns"]
    assert without.about["left_out"] == {}


def test_neutral_terms_that_are_asked_for_and_not_there_are_refused(
    own_folder: Path, refusal: Any
) -> None:
    said = refusal(evaluate, "nli_coal", "simulated:", tasks=["nt"], out=own_folder / "c")
    assert "leaves nothing to ask for tasks nt" in said
    assert "allowed: ps, as, ns, nt" in refusal(tasks.chosen, "nli_coal", ["xx"])


def test_replay_answers_a_pair_of_neutral_terms(own_folder: Path) -> None:
    build([read_pack(PACKS / "ja")], own_folder / "sets")
    pairs = [
        one for one in data.load(data.find("nli_coal", own_folder / "sets")) if one.set == "nt"
    ]
    lines = [
        {"task": "nt", "item_id": one.item_id, "request": "label", "response": "entailment"}
        for one in pairs
    ]
    (own_folder / "r.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    run = evaluate(
        "nli_coal",
        f"replay:{own_folder / 'r.jsonl'}",
        tasks=["nt"],
        data=own_folder / "sets",
        out=own_folder / "r",
    )
    assert run.scores().query("task == 'nt' and metric == 'entailment'").score.eq(1).all()
