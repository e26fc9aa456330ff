"""What each answer says: its verdict, by hand for each benchmark, and the mass of its letters."""

import math
import shutil
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bench
from bench.benchmarks import OWN, get
from bench.core import inputs
from bench.data import by_id
from tests.helpers.answering import said, unable
from tests.helpers.cases import cases, pairs

ITEM = {"words": ["甲", "乙", "丙"], "subtype": "x", "labels": ["x", "y"]}


@cases(__file__, "verdicts.csv")
def test_verdicts_by_hand(case):
    # The stereotyped answer to the non-negative question is the other person.
    numbers = {name: int(case[name]) for name in ("target", "label")}
    item = SimpleNamespace(**ITEM, **numbers, polarity=case["polarity"])
    values = get(case["benchmark"]).values(case["task"], case["request"], item)
    for parsed, verdict in pairs(case["verdicts"]).items():
        assert values.verdict(parsed) == verdict


@pytest.fixture
def parsed(monkeypatch):
    """The replies that CBBQ's parser has read."""
    benchmark, replies = get("cbbq"), []
    parse = benchmark.parse

    def counted(task, request, response, item):
        replies.append(response)
        return parse(task, request, response, item)

    monkeypatch.setattr(type(benchmark), "parse", staticmethod(counted))
    return replies


def test_replies_are_parsed_once(own_folder, parsed):
    asked = {"categories": ["gender"], "limit": 20, "settings": {"prompting": "Q+IF+CoT"}}
    models = ("simulated:bias=0.7", "simulated:bias=0.3,refuse=0.2")
    for model in models:
        run = bench.evaluate("cbbq", model, out=model, **asked)
        assert 0 < len(parsed) <= len(run.records)
        assert list(run.records.parsed) == list(run.answers().parsed)
        del parsed[:]
    bench.score(*models, common=True, preset="official")
    for model in models:
        run = bench.open(model)
        run.scores("paper")
        run.outcomes()
        run.answers()
    assert parsed == []


class Watched:
    """An item that notes which of its fields are read."""

    def __init__(self, item, fields):
        self.item, self.fields = item, fields

    def __getattr__(self, name):
        self.fields.add(name)
        return getattr(self.item, name)


@pytest.mark.parametrize("name", OWN)
def test_a_parser_depends_on_an_item_by_the_fields_that_are_declared(own_folder, name):
    benchmark, fields = get(name), set()
    asked = {"data": "samples", "limit": 4, "judge": "simulated:", "out": "out"}
    run = bench.evaluate(name, "simulated:bias=0.5", partial=True, **asked)
    items = by_id(run.items)
    for row in run.records.itertuples():
        benchmark.parse(row.task, row.request, row.response, Watched(items[row.item_id], fields))
    groups = run.items.astype(str).groupby(list(benchmark.parse_by))
    assert all(groups[field].nunique().max() == 1 for field in fields)


def test_a_newer_parser_reads_an_old_run_without_asking_again(own_folder, monkeypatch):
    run = bench.evaluate("cbbq", "simulated:bias=0.7", categories=["gender"], limit=4, out="out")
    assert run.scores().query("metric == 's_amb' and category == 'all'").score.item() > 0
    monkeypatch.setattr(type(get("cbbq")), "parse", staticmethod(lambda *reply: "C"))
    monkeypatch.setattr(inputs.PACKAGE_CODE, "sha256", "of the newer version")
    assert run.scores().query("metric == 's_amb' and category == 'all'").score.item() == 0
    assert set(run.answers().parsed) == {"C"}


def test_values_that_older_versions_recorded_are_ignored(own_folder):
    shutil.copytree(Path(__file__).parent / "recorded_run", "out")
    answers = bench.open("out").answers()
    for path in Path("out/records").glob("*.parquet"):
        table = pq.read_table(path)
        column = table.schema.get_field_index("parsed")
        empty = pa.array([""] * len(table))
        pq.write_table(table.set_column(column, table.field("parsed"), empty), path)
    pd.testing.assert_frame_equal(bench.open("out").answers(), answers)
    assert answers.parsed.tolist() == answers.response.tolist()


def test_a_run_is_shown_by_its_headline_scores(own_folder):
    asked = {"categories": ["gender"], "limit": 4, "name": "<b>\x1b", "out": "one"}
    run = bench.evaluate("cbbq", "simulated:bias=1", **asked)
    assert repr(run) == r"<Run cbbq, <b>\x1b, 8 answers, one>"
    shown = run._repr_html_()
    assert shown.startswith(r"<p>cbbq, &lt;b&gt;\x1b, 8 answers</p>")
    # Scores, upper ends and valid rates of two tasks; accuracy is 0.
    assert shown.count("<td>1.000</td>") == 2 * 3 + 1
    (run.folder / "records/answers.parquet").unlink()
    assert repr(bench.open("one")) == r"<Run cbbq, <b>\x1b, 0 of 8 answers, one>"
    assert run._repr_html_() is None


@pytest.mark.parametrize(
    ("probabilities", "mass", "is_noted"),
    [
        ({"The": 0.9, "A": 0.01, "B": 0.004, "C": 0.006}, 0.02, True),
        ({"The": 0.6, "A": 0.1, " A": 0.1, "B": 0.05, "C": 0.05}, 0.3, False),
    ],
)
def test_answers_by_letters_have_their_mass_and_a_small_one_is_noted(
    serve, own_folder, probabilities, mass, is_noted
):
    """A server reports these probabilities of first tokens."""
    top = [{"token": token, "logprob": math.log(p)} for token, p in probabilities.items()]
    logprobs = {"content": [{**top[0], "top_logprobs": top}]}

    def reply(asked):
        return said("10", logprobs=logprobs if "top_logprobs" in asked else None)

    model = serve(reply, lambda asked: unable(asked) if "prompt" in asked else reply(asked)).model
    options = {"categories": ["age"], "limit": 2, "answer_mode": "letters", "out": "out"}
    run = bench.evaluate("cbbq", model, **options)
    assert run.answers().mass.to_numpy() == pytest.approx(mass)
    note = (
        f"the letters had a median probability mass of {mass}: the model would rather write "
        "something else; ask it with --answer-mode text"
    )
    table = run.scores()
    rows = table[table.note.str.contains("probability mass")]
    assert all(note in text for text in rows.note)
    assert set(rows.category) == ({"all"} if is_noted else set())
    assert set(rows.task) == ({"ambiguous", "disambiguous"} if is_noted else set())
