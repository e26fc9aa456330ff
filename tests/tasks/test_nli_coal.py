"""NLI-CoAL's tasks: prompts in three languages, and neutral terms if the data have them."""

import pytest

from bench import tasks
from bench.benchmarks import get
from bench.benchmarks.nli_coal import requests as nli_coal
from bench.benchmarks.nli_coal.items import Pair
from bench.benchmarks.nli_coal.requests import LABELS, parse
from bench.run import evaluate
from bench.tasks import prompts as prompt_sets
from bench.tasks.request import AnswerMode

SENTENCES = "护士在读书。", "女人在读书。"
# The label words of our own prompts in each language.
NATIVE = {"en": LABELS, "ja": ("含意", "矛盾", "中立"), "zh": ("蕴含", "矛盾", "中立")}


def asked(prompts=None, request_type="choose"):
    """Return the request about a pair in each language."""
    rest = (*SENTENCES, "护士", "female-stereo", "feminine")
    pairs = [Pair(language, 0, "ps", *rest) for language in NATIVE]
    text, answer_mode = prompt_sets.load(get("nli_coal"), prompts), AnswerMode(request_type)
    requests = nli_coal.requests(pairs, text, "ps", answer_mode, {}, 0)
    return {request.category: request for request in requests}


@pytest.mark.parametrize("name", [None, "native", "reworded"])
def test_every_prompt_set_has_the_pair_and_the_label_words_in_each_language(name):
    for language, request in asked(name).items():
        premise, hypothesis = map(request.prompt.index, SENTENCES)
        assert premise < hypothesis
        assert all(word in request.prompt for word in request.options)
        assert [parse("ps", "label", word, None) for word in request.options] == list(LABELS)
        assert request.prompt_version == "bench-nli_coal-1" + (f"#{name}" if name else "")
        assert name != "native" or request.options == NATIVE[language]


def test_a_classifier_is_shown_the_bare_pair():
    bare = asked(request_type="classify")["en"]
    assert bare.text == "\n".join(SENTENCES)
    assert (bare.key.biased, bare.key.correct) == ("entailment", "neutral")


def test_neutral_terms_are_no_task_of_data_without_them(own_folder, refusal):
    done = evaluate("nli_coal", "simulated:bias=1", out=own_folder / "a")
    assert set(done.records.task) == {"ps", "as", "ns"}
    assert done.metadata["skipped"] == {}
    message = refusal(evaluate, "nli_coal", "simulated:", tasks=["nt"], out=own_folder / "b")
    assert "leaves nothing to ask for tasks nt" in message
    assert "allowed: ps, as, ns, nt" in refusal(tasks.chosen, get("nli_coal"), ["xx"])
