"""McBE's five tasks: their requests under settings and prompts of a user's own, and replies."""

import re

import pytest

from bench import tasks
from bench.benchmarks import get
from bench.benchmarks.mcbe import requests as mcbe
from bench.benchmarks.mcbe.items import WITHOUT_GROUPS, Instance
from bench.tasks import prompts as prompt_sets
from bench.tasks.request import AnswerMode

LABELS = ("年龄", "职业", "职业分工")
CONTEXT = "村里开会。"
SLOTS = "[PLH]说得多，[PLH]也听。"
SENTENCE = "甲说得多，甲也听。"


def instance(category="age", words="甲乙丙", row=1, sentence=SLOTS):
    fixed = (tuple(words), "职业", "参考答案", 4.5, LABELS)
    groups = category not in WITHOUT_GROUPS
    return Instance(category, row, CONTEXT, sentence, *fixed, groups=groups)


def asked(task, items=(), prompts=None, seed=0, **given):
    """Return the requests of a task about `items`, or about a plain one."""
    settings = tasks.settings(get("mcbe"), given, "robust")
    answer_mode = AnswerMode("nll" if task == "pc" else "generate")
    prompts = prompt_sets.load(get("mcbe"), prompts)
    items = [item for item in items or [instance()] if not mcbe.excluded(item, task)]
    return list(mcbe.requests(items, prompts, task, answer_mode, settings, seed))


def test_scenario_selection_asks_for_every_pair_in_both_orders():
    requests = asked("ss")
    # The word that stands first in the list is the one that the stereotype is about.
    assert {request.request: request.key.biased for request in requests} == {
        **{"甲|乙": "A", "甲|丙": "A", "乙|丙": "A"},
        **{"乙|甲": "B", "丙|甲": "B", "丙|乙": "B"},
    }
    for request in requests:
        words = request.request.split("|")
        first, second = (request.prompt.index(SLOTS.replace("[PLH]", word)) for word in words)
        assert 0 < first < second


@pytest.mark.parametrize(
    ("bos", "suffix"), [("tokenizer", ""), ("forced", ", after a first special token")]
)
def test_preference_computation_asks_for_the_bare_sentence_of_each_word(bos, suffix):
    for request, word in zip(asked("pc", bos=bos), "甲乙丙", strict=True):
        assert (request.request, request.prompt) == (word, SLOTS.replace("[PLH]", word))
        assert (request.item_id, request.request_type, request.category) == ("age:1", "nll", "age")
        assert request.bos == (bos == "forced")
        assert request.prompt_version == f"none: the bare sentence{suffix}"


@pytest.mark.parametrize(("task", "n"), [("pc", 0), ("ss", 0), ("sc", 3), ("bs", 3), ("ba", 10)])
def test_items_without_groups_or_words_are_asked_where_none_are_compared(task, n):
    bare = instance("worldview", "", sentence="没有空。")
    assert len(asked(task, [instance("worldview"), instance("age", "甲"), bare])) == n
    assert mcbe.excluded(bare, "ba") == "the instance names no group"
    if task in ("sc", "bs"):
        assert "没有空。" in asked(task, [bare])[0].prompt


@pytest.mark.parametrize(
    ("order", "text"),
    [
        ("context_first", CONTEXT + SENTENCE),
        ("sentence_first", SENTENCE + CONTEXT),
        ("none", SENTENCE),
    ],
)
def test_the_text_to_be_classified_stands_in_the_order_that_was_set(order, text):
    (request,) = asked("sc", context_order=order)
    assert text in request.prompt
    assert (CONTEXT in request.prompt) == (order != "none")
    assert "年龄、职业、职业分工" in request.prompt
    assert (request.key.correct, request.key.answers) == ("职业", LABELS)


@pytest.mark.parametrize("reply", ["2", "1", "2\n", "2.", "句子2", "２", "", None])
def test_the_judge_s_2_and_nothing_else_puts_the_sentence_first(reply):
    order, answer = asked("sc", context_order="judge")
    assert SLOTS in order.prompt, "as released, the slot is sent as it is"
    assert (order.of_judge, answer.of_judge, answer.after) == (True, False, "order")
    text = SENTENCE + CONTEXT if reply == "2" else CONTEXT + SENTENCE
    assert text in answer.then(answer, reply).prompt


@pytest.mark.parametrize(
    ("task", "stopped"), [("sc", []), ("bs", ["answer"]), ("ba", [f"judge:{k}" for k in "1234"])]
)
def test_replies_are_written_until_they_answer_if_wanted(task, stopped):
    assert not any(request.until for request in asked(task))
    requests = [request for request in asked(task, replies="until_answered") if request.until]
    assert [request.request for request in requests] == stopped
    assert all(r.until("8分\n因为") and not r.until("8分") for r in requests)


def test_shuffled_labels_are_the_same_within_a_category_and_others_by_seed():
    items = [instance(name, row=k) for name in ("age", "race") for k in range(2)]

    def labels(seed):
        requests = asked("sc", items, seed=seed, label_order="shuffled")
        return [re.search("年龄.*职业|职业.*年龄", request.prompt)[0] for request in requests]

    orders = [labels(seed) for seed in range(20)]
    assert all((age, race) == (again, last) for age, again, race, last in orders)
    assert len({age for age, *_ in orders}) > 3
    assert any(age != race for age, _, race, _ in orders)


def test_the_judge_is_asked_four_times_about_the_analysis_and_its_reference():
    _, *marks = asked("ba")
    finished = [request.then(request, "<think>嗯</think>一段{分析}") for request in marks]
    assert len({request.prompt for request in finished}) == 4
    for request, maximum in zip(finished, (13, 13, 13, 5), strict=True):
        assert (request.of_judge, request.after) == (True, "answer")
        for text in ("一段{分析}", "参考答案", f"从0到{maximum}，"):
            assert text in request.prompt
        assert "think" not in request.prompt
    # A simulated judge gives full marks to the reference, and none to another text.
    for reply, grades in (("参考答案", ["13", "13", "13", "5"]), ("xyz", ["0"] * 4)):
        assert [request.then(request, reply).key.correct for request in marks] == grades
    for nothing in (None, "<think>嗯"):
        assert [request.then(request, nothing) for request in marks] == [None] * 4


@pytest.mark.parametrize(
    ("task", "name", "reply", "parsed"),
    [
        *(("pc", "甲", reply, "") for reply in ("nan", "A", "", "inf", "1e400", "-1")),
        ("pc", "甲", "3.25", "3.25"),
        ("pc", "甲", "0.0", "0.0"),
        ("sc", "order", "2", "2"),
        ("sc", "order", "2.", ""),
        ("ba", "answer", " 有偏见。\n", "有偏见。"),
        ("ba", "judge:4", "13", ""),
    ],
)
def test_a_reply_that_is_no_answer_to_its_request_is_not_read(task, name, reply, parsed):
    assert mcbe.parse(task, name, reply, instance()) == parsed


@pytest.mark.parametrize(
    ("preset", "order"), [("robust", "context_first"), ("official", "judge"), ("paper", "none")]
)
def test_the_place_of_the_context_is_the_preset_s_unless_told_otherwise(preset, order):
    assert tasks.settings(get("mcbe"), {}, preset)["context_order"] == order
    assert tasks.settings(get("mcbe"), {"context_order": "none"}, preset)["context_order"] == "none"


@pytest.mark.parametrize(
    ("task", "request_", "names", "verdicts"),
    [
        ("sc", "answer", sorted(LABELS), {"职业": "right"}),
        ("ss", "甲|乙", ["A", "B"], {"A": "stereotyped"}),
        ("ss", "丙|甲", ["A", "B"], {"B": "stereotyped"}),
        ("bs", "answer", sorted(map(str, range(11))), {}),
        ("sc", "order", [], {}),
    ],
)
def test_a_choice_is_right_or_stereotyped_and_a_rating_is_neither(task, request_, names, verdicts):
    values = mcbe.values(task, request_, instance())
    assert (list(values.names), values.verdicts) == (names, verdicts)
