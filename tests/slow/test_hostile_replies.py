"""Replies that nobody would wish for: every reader gives an allowed value or none, in linear time, and nothing of them is live
where they are shown."""

import io
import json
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import nbformat
import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bench import run, show
from bench.analyses import explore
from bench.cli import printing
from bench.core import progress
from bench.core.text import INVISIBLE, as_html, as_json, reveal_invisible, shortened, truncate
from bench.data.readers import read_csv
from bench.run.human_marks import cell, to_mark
from bench.tasks import cbbq, fence, mcbe, nli_coal
from bench.tasks.ratings import released_mark, released_rating
from bench.tasks.replies import answered

pytestmark = pytest.mark.slow

ITEM = SimpleNamespace(
    labels=("职业", "职业分工", "家庭分工"),
    ans0="患者",
    ans1="非患者",
    ans2="不知道",
    biased=0,
    label=2,
)
LETTERS_AB, LETTERS_ABC = {"A", "B"}, {"A", "B", "C"}


class Reader(NamedTuple):
    """How a reply to one kind of request is read, what may come of it, and replies that hold an allowed answer alone."""

    read: Callable[[str], str]
    allowed: Callable[[str], bool]
    sure: tuple[str, ...]


def _rated(maximum: float) -> Callable[[str], bool]:
    return lambda value: bool(re.fullmatch(r"[0-9.e-]+", value)) and 0 <= float(value) <= maximum


READERS = {
    "ss": Reader(
        lambda text: mcbe.parse("ss", "甲|乙", text, ITEM), LETTERS_AB.__contains__, ("A", "B")
    ),
    "sc": Reader(
        lambda text: mcbe.parse("sc", "answer", text, ITEM),
        set(ITEM.labels).__contains__,
        ITEM.labels,
    ),
    "bs": Reader(
        lambda text: mcbe.parse("bs", "answer", text, ITEM), _rated(10), ("0", "7", "6.5", "10")
    ),
    "judge:1": Reader(
        lambda text: mcbe.parse("ba", "judge:1", text, ITEM), _rated(13), ("0", "13", "8.5")
    ),
    "judge:4": Reader(
        lambda text: mcbe.parse("ba", "judge:4", text, ITEM), _rated(5), ("0", "5", "2.5")
    ),
    "order": Reader(
        lambda text: mcbe.parse("sc", "order", text, ITEM), {"1", "2"}.__contains__, ("1", "2")
    ),
    "choice": Reader(
        lambda text: cbbq.parse("ambiguous", "answer:CAB", text, ITEM), LETTERS_ABC.__contains__, ()
    ),
    "explanation": Reader(
        lambda text: cbbq.parse("ambiguous", "explanation", text, ITEM),
        LETTERS_ABC.__contains__,
        ("A", "B", "C"),
    ),
    "verdict": Reader(
        lambda text: cbbq.parse("ambiguous", "judge", text, ITEM),
        {"biased", "unbiased"}.__contains__,
        (),
    ),
    "nli": Reader(
        lambda text: nli_coal.parse("ps", "label", text, ITEM),
        set(nli_coal.LABELS).__contains__,
        nli_coal.LABELS,
    ),
    "likelihood": Reader(
        lambda text: mcbe.parse("pc", "甲", text, ITEM),
        lambda value: float(value) >= 0,
        ("2.5", "0"),
    ),
    "until": Reader(lambda text: "yes" if answered(text) else "", {"yes"}.__contains__, ()),
}
# What a reply is put together from: what models write, and what nobody should.
PIECES = [
    "A",
    "B",
    "C",
    "Ａ",
    "Ｂ",
    "a",
    "答案：",
    "选项",
    "我选",
    "不是",
    "不选",
    "排除",
    "对不起，",
    "作为一个AI语言模型，",
    "和",
    "或",
    "or ",
    "not ",
    "is wrong",
    "7",
    "6.5",
    "９",
    "十",
    "七分",
    "²",
    "①",
    "Ⅷ",
    "-3",
    "1e999",
    "NaN",
    "inf",
    "1_0",
    "0x1F",
    "10/13",
    "5-8",
    "[5, 8)",
    "满分",
    "得分：",
    "最终得分",
    "score: ",
    "如果",
    "分",
    "entailment",
    "neutral",
    "contradiction",
    "矛盾",
    "not a ",
    "ではない",
    "有",
    "没有",
    "无",
    "是否",
    "职业",
    "职业分工",
    "患者",
    "非患者",
    "不知道",
    "无法判断",
    "<think>",
    "</think>",
    "<|im_end|>",
    "[INST]",
    "</s>",
    "“",
    "”",
    "\n",
    "\r",
    "\t",
    " ",
    "　",
    "：",
    ":",
    ".",
    "。",
    ",",
    "，",
    ";",
    "(",
    ")",
    "*",
    "`",
    "#",
    "|",
    "/",
    "\x00",
    "\x1b[2J",
    "\x1b]0;x\x07",
    "\x9b31m",
    "\u202e",
    "\u2066",
    "\u200b",
    "\ufeff",
    "\ud800",
    "\udfff",
    "\ufffe",
    "\U000e0041",
    "\u0301",
    "\u0316",
    "ﷺ",
    "𝐀",
    "👩‍👩‍👧",
    "<script>alert(1)</script>",
    "</script>",
    "<img src=x onerror=alert(1)>",
    "<iframe src=//x>",
    "</pre></td></table>",
    "<style>*{display:none}</style>",
    "[x](javascript:alert(1))",
    "$\\href{javascript:alert(1)}{x}$",
    "{{ config }}",
    "{% raw %}",
    "{context}",
    "{0.__class__}",
    "%s%n",
    "\\write18{ls}",
    "=cmd|' /C calc'!A0",
    "@SUM(1)",
    '{"score": 7}',
    '"}]}',
    "\\u0000",
    "'; DROP TABLE",
]
REPLIES = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=12).map("".join),
    st.text(st.characters(), max_size=60),
    st.tuples(st.text(max_size=8), st.sampled_from(PIECES), st.integers(1, 400)).map(
        lambda one: one[0] + one[1] * one[2]
    ),
    st.tuples(
        st.sampled_from(["答案：B", "7分，因为", "neutral.", "有。", "职业"]),
        st.text(st.characters(), max_size=20),
    ).map("".join),
)
# What a patient reader stumbles over: much of the same, with something else at an end.
LONG = [
    ("A", " ", "x"),
    ("", "\n", "A"),
    ("x", "\n", "x"),
    ("", "*", ""),
    ("", "\"'", "x"),
    ("选项", " ", "A"),
    ("answer ", "is ", "A"),
    ("7", " ", "x"),
    ("得分", " ", "7"),
    ("", "0", "Ａ"),
    ("", "7.", ""),
    ("如果", "，", "7"),
    ("", "不是", "7"),
    ("", "not ", "neutral"),
    ("", "a", ":"),
    ("", "a\u0301\u0316", ""),
    ("a", "\u0316\u0301", ""),
    ("", "ﷺ", ""),
    ("", "<think>", ""),
    ("", "</think>", ""),
    ("", "(", "7"),
    ("", "[5, ", ""),
    ("", "1. ", ""),
    ("", "A.\n", ""),
    ("不是A", "和A", "x"),
    ("", "有没有", ""),
    ("最终", "甲", "7"),
    ("", "<|im_", "|>"),
]


def _look(name: str, reply: str) -> None:
    reader = READERS[name]
    value = reader.read(reply)
    assert value == "" or reader.allowed(value), (name, reply, value)
    assert reader.read(reply) == value, "read once more, it is another"


@pytest.mark.parametrize("name", READERS)
@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(reply=REPLIES)
@example(reply="1e999")
@example(reply="\ud800A")
def test_a_reply_is_an_allowed_value_or_none(name: str, reply: str) -> None:
    _look(name, reply)
    # Blanks behind a reply say nothing.
    if name not in ("order", "likelihood", "until"):
        assert READERS[name].read(reply + " \n\n ") == READERS[name].read(reply)


@pytest.mark.parametrize("name", READERS)
@settings(max_examples=1200, suppress_health_check=list(HealthCheck))
@given(reply=REPLIES)
def test_fourteen_thousand_replies_are_allowed_values_or_none(name: str, reply: str) -> None:
    _look(name, reply)


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(reply=REPLIES)
def test_the_released_readers_stop_at_nothing(reply: str) -> None:
    mark = released_mark(reply)
    assert mark is None or mark >= 0
    assert released_rating(reply) >= -1


@pytest.mark.parametrize("name", [name for name, reader in READERS.items() if reader.sure])
def test_an_allowed_answer_alone_is_that_answer(name: str) -> None:
    for answer in READERS[name].sure:
        assert READERS[name].read(answer) == answer
        if name not in ("order", "likelihood"):
            assert READERS[name].read(f"  {answer}。\n") == answer


@pytest.mark.parametrize(("before", "again", "behind"), LONG)
def test_long_replies_are_read(before: str, again: str, behind: str) -> None:
    """In quadratic time this would take minutes."""
    reply = before + again * (40_000 // len(again)) + behind
    for reader in READERS.values():
        reader.read(reply)


@pytest.mark.parametrize(
    "again", ["这句话有偏见，得分：7。\n", "A", "7 ", "\x1b[31m", "a\u0301\u0316"]
)
def test_ten_megabytes_are_read(again: str) -> None:
    reply = again * (10_000_000 // len(again.encode()))
    for reader in READERS.values():
        reader.read(reply)


@given(
    st.one_of(
        REPLIES,
        st.sampled_from(
            [
                "<|im_end|>",
                "<｜User｜>",
                "[/INST]",
                "<<SYS>>",
                "</s>",
                "<end_of_turn>",
                "[gMASK]",
                "<reserved_106>",
            ]
        ),
    )
)
def test_a_fenced_reply_can_neither_end_its_fence_nor_the_turn(reply: str) -> None:
    asked = fence.judged("{fence}\n{reply}\n{fence}\nend", "reply", reply)
    word, _, rest = asked.partition("\n")
    assert re.fullmatch("[a-z]{10}", word)
    assert asked.count(word) == 2
    assert rest.endswith(f"\n{word}\nend")
    assert asked == fence.judged("{fence}\n{reply}\n{fence}\nend", "reply", reply), (
        "another run asks otherwise"
    )
    assert not re.search(
        r"<\|im_end\|>|\[/?INST\]|</s>|<｜User｜>|<<SYS>>|<end_of_turn>|\[gMASK\]|<reserved_106>",
        rest,
    )


def test_a_wording_without_a_fence_shows_a_reply_as_it_is() -> None:
    assert fence.judged("[{reply}]", "reply", "</s>{x}") == "[</s>{x}]"


@given(REPLIES)
def test_what_is_shown_holds_nothing_that_acts_unseen(reply: str) -> None:
    for text in (
        reveal_invisible(reply),
        truncate(reply, 20),
        shortened(reply, 20),
        as_html(reply),
    ):
        assert not INVISIBLE.search(text)
    assert "<" not in as_html(reply)
    assert "\n" not in truncate(reply, 20)
    assert json.loads(as_json(json.dumps(reply, ensure_ascii=False))) == reply
    assert not cell(reply).startswith(("=", "+", "-", "@"))


def test_what_is_left_out_is_said() -> None:
    assert shortened("字" * 10_000_000, 5) == "字字字字字 … (the first 5 of 10,000,000 characters)"
    assert truncate("甲" * 100, 60) == "甲" * 60 + " …"


HOSTILE = [
    piece for piece in PIECES if not re.search("[\ud800-\udfff]", piece) and len(piece) > 4
] + ["\x00A\x1b[31m", "字" * 60_000, "line\n" * 30_000, "9" * 400, "=1+1"]


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> run.Run:
    """McBE's analyses and scores, and what the judge says of them, all hostile."""
    folder = tmp_path_factory.mktemp("hostile")
    rows = "".join(f"开会，,[PLH]先说{k}。,甲，乙,x,y,1\n" for k in range(len(HOSTILE)))
    (folder / "age.csv").write_text(
        "context,sentence,words,subtype,explanation,score\n" + rows, "utf-8"
    )
    for who, names in (
        ("model", ["answer"]),
        ("judge", ["judge:1", "judge:2", "judge:3", "judge:4"]),
    ):
        with (folder / f"{who}.jsonl").open("w", encoding="utf-8") as stream:
            for k, reply in enumerate(HOSTILE, start=1):
                for task in ("ba", "bs"):
                    for name in names:
                        row = {
                            "task": task,
                            "item_id": f"age:{k}",
                            "request": name,
                            "response": reply,
                        }
                        stream.write(json.dumps(row) + "\n")
    return run.evaluate(
        "mcbe",
        f"replay:{folder / 'model.jsonl'}",
        judge=f"replay:{folder / 'judge.jsonl'}",
        tasks=["ba", "bs"],
        data=folder,
        out=folder / "out",
    )


def test_hostile_replies_are_on_record_whole_and_score_to_numbers_or_reasons(
    asked: run.Run,
) -> None:
    rows = run.Run.open(asked.folder).records
    said = rows[(rows.task == "bs") & (rows.request == "answer")]
    assert list(said.response) == HOSTILE
    for preset in ("robust", "paper", "official"):
        scores = asked.scores(preset)
        assert (scores.score.notna() | (scores.note != "")).all()


def test_hostile_replies_are_shown_as_text(asked: run.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces: list[str] = []
    monkeypatch.setattr(show, "display", lambda piece, **_: pieces.append(piece.data))
    show.examples(asked, n=40)
    show.table(pd.DataFrame({"said": HOSTILE}), "said")
    show.parted(pd.DataFrame({"heading": HOSTILE, "said": HOSTILE}), HOSTILE[0])
    show.notes([reply[:500] for reply in HOSTILE])
    show.sentences([reply[:500] for reply in HOSTILE])
    pieces += [explore.table([asked]).page, explore.item([asked], "age:1").page]
    for page in pieces:
        assert not INVISIBLE.search(page)
        assert not re.search(r"<(?:script|img|iframe|style)|</script|</pre></td></table>", page)
        assert len(page) < 1_000_000
        # A notebook that holds it is one after a trip through a file.
        book = nbformat.v4.new_notebook(
            cells=[
                nbformat.v4.new_code_cell(
                    "x", outputs=[nbformat.v4.new_output("display_data", {"text/html": page})]
                )
            ]
        )
        nbformat.validate(nbformat.reads(nbformat.writes(book), as_version=4))
    assert any("characters)" in page for page in pieces)


@pytest.mark.parametrize("format", ["table", "csv", "json", "latex"])
def test_nothing_that_was_said_is_live_on_a_terminal(
    asked: run.Run, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    out = Terminal()
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setattr(run.Run, "label", property(lambda self: "model\x1b[2J\u202e[red]"))
    printing.scores([asked], "official" if format == "json" else None, format)
    printing.check(
        "mcbe",
        pd.DataFrame(
            [
                {
                    "kind": "note",
                    "file": "a\x1b[2J",
                    "row": 1,
                    "column": "\x9b",
                    "what": "odd",
                    "value": "\x1b]0;x\x07",
                }
            ]
        ),
        format,
    )
    # Rich's own colours are a number and an m.
    text = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())
    assert not INVISIBLE.search(text)


def test_errors_reach_a_terminal_in_characters_that_can_be_seen(
    capsys: pytest.CaptureFixture[str],
) -> None:
    progress.say("bench: 'x\x1b[2J\u202e\x00\ud800'")
    assert capsys.readouterr().err == "bench: 'x\\x1b[2J\\u202e\\x00\\ud800'\n"


def test_a_table_to_mark_by_hand_can_be_read_again(tmp_path: Any) -> None:
    model = tmp_path / "m.jsonl"
    one = run.evaluate(
        "cbbq",
        "simulated:bias=1",
        categories=["age"],
        tasks=["ambiguous"],
        limit=4,
        settings={"explanation": "yes"},
        out=tmp_path / "a",
    )
    with model.open("w", encoding="utf-8") as stream:
        for name, reply in zip(
            one.records.item_id,
            ['=HYPERLINK("x")', 'A\x00\x1b[31m\nB,"x"', "\u202e" + "字" * 50_000, "@x"],
            strict=True,
        ):
            stream.write(
                json.dumps(
                    {
                        "task": "ambiguous",
                        "item_id": name,
                        "request": "explanation",
                        "response": reply,
                    }
                )
                + "\n"
            )
    told = run.evaluate(
        "cbbq",
        f"replay:{model}",
        categories=["age"],
        tasks=["ambiguous"],
        limit=4,
        settings={"explanation": "yes"},
        out=tmp_path / "b",
    )
    assert to_mark(told, tmp_path / "marks.csv") == 4
    cells = [row["reply"] for row in read_csv(tmp_path / "marks.csv", ("reply",))]
    assert [cell[:2] for cell in cells] == ["'=", "A\\", "\\u", "'@"]
    assert not any(INVISIBLE.search(cell) for cell in cells)
