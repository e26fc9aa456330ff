"""Replies that nobody would wish for: every reader gives an allowed value or none, and nothing of
them is live where they are shown."""

import io
import json
import re
from types import SimpleNamespace

import pandas as pd
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bench import run, show
from bench.benchmarks.cbbq import requests as cbbq
from bench.benchmarks.mcbe import requests as mcbe
from bench.benchmarks.nli_coal import requests as nli_coal
from bench.cli import printing
from bench.core.cells import guarded
from bench.core.text import INVISIBLE, as_html, as_json, reveal_invisible, shortened, truncate
from bench.report import site
from bench.tasks import fence
from bench.tasks.ratings import released_mark, released_rating
from bench.tasks.replies import answered
from tests.helpers import recorded
from tests.helpers.cases import json_lines

pytestmark = pytest.mark.slow

LABELS = ("职业", "职业分工", "家庭分工")
ITEM = SimpleNamespace(labels=LABELS, ans0="患者", ans1="非患者", ans2="不知道", biased=0, label=2)
# Benchmark, task and request; the values that a reader may give, or the largest number.
READERS = {
    "ss": (mcbe, "ss", "甲|乙", "AB"),
    "sc": (mcbe, "sc", "answer", LABELS),
    "bs": (mcbe, "bs", "answer", 10),
    "judge:1": (mcbe, "ba", "judge:1", 13),
    "order": (mcbe, "sc", "order", "12"),
    "choice": (cbbq, "ambiguous", "answer:CAB", "ABC"),
    "explanation": (cbbq, "ambiguous", "explanation", "ABC"),
    "verdict": (cbbq, "ambiguous", "judge", ("biased", "unbiased")),
    "nli": (nli_coal, "ps", "label", nli_coal.LABELS),
    "likelihood": (mcbe, "pc", "甲", 10**400),
}


# What a reply is put together from: what models write, and what nobody should.
PIECES = json_lines(__file__, "pieces.jsonl")
BEGUN = ["答案：B", "7分，因为", "neutral.", "有。", "职业"]
REPLIES = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=12).map("".join),
    st.text(st.characters(), max_size=60),
    st.builds(lambda piece, n: piece * n, st.sampled_from(PIECES), st.integers(1, 400)),
    st.tuples(st.sampled_from(BEGUN), st.text(st.characters(), max_size=20)).map("".join),
)


@pytest.mark.parametrize("name", READERS)
@settings(max_examples=1200, suppress_health_check=list(HealthCheck))
@given(reply=REPLIES)
@example(reply="1e999")
@example(reply="\ud800A")
def test_a_reply_is_an_allowed_value_or_none(name, reply):
    benchmark, task, request, allowed = READERS[name]
    value = str(benchmark.parse(task, request, reply, ITEM))
    if value and isinstance(allowed, int):
        assert re.fullmatch(r"[0-9.e+-]+", value)
        assert 0 <= float(value) <= allowed
    else:
        assert not value or value in tuple(allowed)
    # Blanks behind a reply say nothing.
    if name not in ("order", "likelihood"):
        assert str(benchmark.parse(task, request, f"{reply} \n\n ", ITEM)) == value
    assert (released_mark(reply) or 0) >= 0
    assert released_rating(reply) >= -1
    assert answered(reply) in (True, False)


MARKS = "<|im_end|> <｜User｜> [/INST] <<SYS>> </s> <end_of_turn> [gMASK] <reserved_106>"


@given(st.one_of(REPLIES, st.sampled_from(MARKS.split())))
def test_a_fenced_reply_can_neither_end_its_fence_nor_the_turn(reply):
    asked = fence.judged("{fence}\n{reply}\n{fence}\nend", "reply", reply)
    word, _, rest = asked.partition("\n")
    assert re.fullmatch("[a-z]{10}", word)
    assert asked.count(word) == 2
    assert rest.endswith(f"\n{word}\nend")
    assert not any(marker in rest for marker in (*MARKS.split(), "[INST]"))
    assert fence.judged("[{reply}]", "reply", "</s>{x}") == "[</s>{x}]"


@given(REPLIES)
def test_what_is_shown_holds_nothing_that_acts_unseen(reply):
    shown = [reveal_invisible(reply), truncate(reply, 20), shortened(reply, 20), as_html(reply)]
    assert not any(map(INVISIBLE.search, shown))
    assert "<" not in as_html(reply)
    assert "\n" not in truncate(reply, 20)
    assert json.loads(as_json(json.dumps(reply, ensure_ascii=False))) == reply
    assert not guarded(reveal_invisible(reply)).startswith(("=", "+", "-", "@"))


HOSTILE = [piece for piece in PIECES if not re.search("[\ud800-\udfff]", piece) and len(piece) > 4]
HOSTILE += ["\x00A\x1b[31m", "字" * 60_000, "line\n" * 30_000, "9" * 400, "=1+1"]


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """A run of McBE with hostile replies of the model and of the judge."""
    tmp = tmp_path_factory.mktemp("hostile")
    data = recorded.table(tmp / "data", *[{"sentence": f"[PLH]{k}。"} for k in range(len(HOSTILE))])
    replies = {
        (task, f"age:{k}", name): reply
        for k, reply in enumerate(HOSTILE, start=1)
        for task in ("ba", "bs")
        for name in ("answer", "judge:1", "judge:2", "judge:3", "judge:4")
    }
    model, tasks = recorded.replay(tmp / "replies.jsonl", replies), ["ba", "bs"]
    return run.evaluate("mcbe", model, judge=model, tasks=tasks, data=data, out=tmp / "out")


def test_hostile_replies_are_shown_as_text(asked, monkeypatch, tmp_path):
    pieces = []
    monkeypatch.setattr(show, "display", lambda piece, **_: pieces.append(piece))
    for k in range(0, len(HOSTILE), show.MAX_ROWS):
        show.publish(pd.DataFrame({"said": HOSTILE[k : k + show.MAX_ROWS]}), "said", HOSTILE[0])
    monkeypatch.setattr(show, "warnings", lambda runs: [reply[:500] for reply in HOSTILE])
    show.cautions([])
    pieces.append(show.answer_output([reply[:500] for reply in HOSTILE]).data)
    file = site.write_answers([asked], tmp_path / "answers.html")
    pages = [piece["text/html"] if isinstance(piece, dict) else piece.data for piece in pieces]
    for page in pages:
        assert not INVISIBLE.search(page)
        assert not re.search(r"<(?:script|img|iframe)|</script|</pre></td></table>", page)
        # A table has one style of its own, by pandas.
        assert page.count("<style") == page.count('<style type="text/css">') <= 1
        assert len(page) < 1_000_000
    assert any("characters)" in page for page in pages)
    page = file.read_text("utf-8")
    assert not INVISIBLE.search(page)
    assert not re.search(r"<(?:img|iframe)|</script(?!>\s*</body>)", page)


@pytest.mark.parametrize("format", ["table", "csv", "json", "latex"])
def test_nothing_that_was_said_is_live_on_a_terminal(asked, format, monkeypatch):
    out = io.StringIO()
    out.isatty = lambda: True
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setattr(run.Run, "label", property(lambda self: "model\x1b[2J\u202e[red]"))
    for full in (False, True):
        printing.scores([asked], "official" if format == "json" else None, format, full)
    finding = {"kind": "note", "file": "a\x1b[2J", "row": 1, "column": "\x9b", "what": "odd"}
    printing.check("mcbe", pd.DataFrame([{**finding, "value": "\x1b]0;x\x07"}]), format)
    # Rich's own colours are a number and an m.
    assert not INVISIBLE.search(re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue()))
