"""Items to requests: what CBBQ and NLI-CoAL ask, and which letter a reply of any kind can be."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import data, tasks
from bench.tasks import cbbq, nli_coal
from bench.tasks import prompts as wording
from bench.tasks.choices import letter
from bench.tasks.request import Request, Way


def test_a_letter_that_is_not_offered_is_no_answer() -> None:
    assert [letter(text, "AB") for text in ("C", "答案：C", "C. 不确定")] == ["", "", ""]


@given(st.text(), st.sampled_from(["AB", "ABC"]))
def test_any_text_gives_one_of_the_letters_or_nothing(text: str, letters: str) -> None:
    assert letter(text, letters) in {"", *letters}


@given(st.text(alphabet="ABCabc和或、,，.。()（）:：'\"* \n答案选项是isanswero", max_size=40))
def test_any_text_made_of_what_replies_are_made_of_gives_a_letter_that_it_holds(text: str) -> None:
    found = letter(text, "ABC")
    assert found == "" or found in text.upper()


@given(
    st.sampled_from("ABCabcＡＢＣ"),
    st.lists(
        st.sampled_from(["()", "（）", "[]", '""', "''", "**", "``", "  ", "\n\n"]), max_size=4
    ),
    st.sampled_from(["", ".", "。", ",", "，", ":", "！", ";"]),
)
def test_a_single_letter_in_brackets_marks_and_punctuation_is_that_letter(
    name: str, pairs: list[str], end: str
) -> None:
    text = (
        "".join(pair[0] for pair in pairs)
        + name
        + "".join(pair[1] for pair in reversed(pairs))
        + end
    )
    assert letter(text, "ABC") == chr(ord(name.upper()) - (0xFEE0 if ord(name) > 0xFF00 else 0))


GENERATED = Way("generate")


def rendered(
    benchmark: str, room, task: str, prompts: str | None = None, way: Way = GENERATED, **chosen: str
) -> list[Request]:
    items = data.load(data.find(benchmark, data.SAMPLES / benchmark))
    settings = tasks.settings(benchmark, chosen, "robust")
    return list(room.requests(items, wording.load(benchmark, prompts), task, way, settings, 0))


def test_a_cbbq_request_shows_the_text_and_the_options_in_their_order() -> None:
    items = {item.item_id: item for item in data.load(data.find("cbbq", data.SAMPLES / "cbbq"))}
    asked = [request for task in cbbq.TASKS for request in rendered("cbbq", cbbq, task)]
    assert [request.item_id for request in asked if request.category == "age"] == [
        name for name in items if name.startswith("age:")
    ]
    for request in asked[::37]:
        item = items[request.item_id]
        texts = [
            item.context,
            item.question,
            f"A. {item.ans0}\n",
            f"B. {item.ans1}\n",
            f"C. {item.ans2}\n",
        ]
        places = [request.prompt.index(text) for text in texts]
        assert places == sorted(places)
        assert (request.key.biased, request.key.correct) == ("ABC"[item.biased], "ABC"[item.label])
        assert (request.request, request.options) == ("answer", ("A", "B", "C"))


def test_a_classifier_is_shown_the_bare_pair_and_a_language_model_the_wording_of_its_language() -> (
    None
):
    bare = rendered("nli_coal", nli_coal, "ps", way=Way("classify"))
    asked = rendered("nli_coal", nli_coal, "ps")
    assert [request.text for request in bare] == [
        f"{request.prompt}\n{request.hypothesis}" for request in bare
    ]
    for one, other in zip(bare[::50], asked[::50], strict=True):
        assert one.prompt in other.prompt.splitlines()[0]
        assert one.hypothesis in other.prompt.splitlines()[1]
        assert other.prompt.startswith({"en": "Premise: ", "zh": "前提："}[other.category])
        assert (one.key.biased, one.key.correct) == ("entailment", "neutral")


@pytest.mark.parametrize(
    ("benchmark", "task", "read", "verbs", "reads", "wanted"),
    [
        ("mcbe", "pc", None, ("nll", "choose"), ("letters",), ("nll", "text")),
        ("mcbe", "pc", "text", ("generate",), ("text",), None),
        (
            "mcbe",
            "sc",
            "letters",
            ("generate", "choose"),
            ("text", "letters"),
            ("generate", "text"),
        ),
        ("mcbe", "ss", None, ("choose", "generate"), ("text", "letters"), ("generate", "text")),
        ("mcbe", "ss", None, ("nll", "choose"), ("options", "letters"), ("choose", "letters")),
        ("mcbe", "ss", None, ("choose",), ("options",), None),
        ("mcbe", "ss", "options", ("choose",), ("options",), None),
        ("cbbq", "ambiguous", "letters", ("choose",), ("options",), None),
        (
            "mcbe",
            "ss",
            "letters",
            ("choose", "generate"),
            ("text", "letters"),
            ("choose", "letters"),
        ),
        ("cbbq", "ambiguous", "text", ("nll", "choose"), ("letters",), None),
        ("cbbq", "ambiguous", None, ("classify",), (), None),
        ("cbbq", "ambiguous", None, ("choose",), ("options", "letters"), ("choose", "options")),
        (
            "cbbq",
            "ambiguous",
            "options",
            ("generate", "choose"),
            ("text", "letters", "options"),
            ("choose", "options"),
        ),
        ("nli_coal", "ps", None, ("generate", "classify"), ("text",), ("classify", "text")),
        ("nli_coal", "ps", None, ("classify",), (), ("classify", "text")),
        ("nli_coal", "ps", "text", ("classify",), (), ("classify", "text")),
        ("nli_coal", "ps", "text", ("generate", "classify"), ("text",), ("generate", "text")),
        (
            "nli_coal",
            "ps",
            "letters",
            ("choose", "classify"),
            ("text", "letters"),
            ("choose", "letters"),
        ),
        (
            "nli_coal",
            "ns",
            "letters",
            ("choose", "generate"),
            ("text", "letters"),
            ("choose", "letters"),
        ),
    ],
)
def test_a_model_is_asked_in_a_way_that_it_has(
    benchmark: str,
    task: str,
    read: str | None,
    verbs: tuple[str, ...],
    reads: tuple[str, ...],
    wanted: tuple[str, str] | None,
) -> None:
    assert tasks.way(benchmark, task, read, verbs, reads) == wanted


def test_an_unknown_task_and_an_unknown_way_to_read_are_refused(refusal) -> None:
    assert "task of mcbe 'sx' is unknown; allowed: pc, sc, ss, ba, bs" in refusal(
        tasks.chosen, "mcbe", ["sx"]
    )
    assert "allowed: text, letters, options" in refusal(
        tasks.way, "mcbe", "ss", "words", ("generate",), ("text",)
    )
    assert tasks.chosen("nli_coal", ["ns", "ps"]) == ["ps", "ns"]


def test_a_variant_of_our_own_wording_is_chosen_by_its_name() -> None:
    asked = rendered("cbbq", cbbq, "ambiguous", "reworded")
    assert asked[0].prompt.startswith(
        data.load(data.find("cbbq", data.SAMPLES / "cbbq"))[0].context
    )
    assert {request.prompt_version for request in asked} == {"bench-cbbq-3#reworded"}
    assert {request.prompt_version for request in rendered("cbbq", cbbq, "ambiguous")} == {
        "bench-cbbq-3"
    }


def test_the_released_wording_of_cbbq_is_filled_in_as_the_authors_script_does(shared: Path) -> None:
    path = f"{shared}/data/cbbq/prompts.toml"
    (request, *_) = rendered("cbbq", cbbq, "ambiguous", f"{path}#chatglm")
    item = data.load(data.find("cbbq", data.SAMPLES / "cbbq"))[0]
    wanted = tomllib.loads(Path(path).read_text("utf-8"))["chatglm"]["prompt"]
    for field in ("context", "question", "ans0", "ans1", "ans2"):
        wanted = wanted.replace(f"{{{field}}}", getattr(item, field))
    assert request.prompt == wanted
    assert all(
        getattr(item, field) in wanted for field in ("context", "question", "ans0", "ans1", "ans2")
    )


def test_every_released_wording_of_cbbq_renders_and_one_has_to_be_chosen(
    shared: Path, refusal
) -> None:
    path = f"{shared}/data/cbbq/prompts.toml"
    item = data.load(data.find("cbbq", data.SAMPLES / "cbbq"))[0]
    for name in ("chatglm", "gpt-3.5", "belle-ambiguous", "belle-disambiguous", "moss", "bloomz"):
        (request,) = cbbq.requests(
            [item],
            wording.load("cbbq", f"{path}#{name}"),
            "ambiguous",
            Way("generate"),
            tasks.settings("cbbq", {}, "robust"),
            0,
        )
        assert all(
            text in request.prompt
            for text in (item.context, item.question, f"B.{item.ans1}", item.ans2)
        )
        assert request.prompt_version == f"cbbq-scripts-95eaf2e#{name}"
        assert "{" not in request.prompt
    message = refusal(rendered, "cbbq", cbbq, "ambiguous", path)
    assert message.startswith(path)
    assert "chatglm, gpt-3.5" in message
