"""Asking in stages: the judge after the model, kills between them, and settings that change it."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import pandas as pd
import pytest
from transformers import LlamaConfig, LlamaForCausalLM

from bench import records, run, scorers
from bench.core.errors import RunFailed
from bench.run import execute
from bench.scorers.base import Answer
from bench.scorers.stand_ins.simulated import Simulated
from bench.tasks.request import Key, Request
from tests.helpers import checkpoints
from tests.helpers.recorded import cell, columns, replay, table

MODEL = "simulated:bias=0.3,competence=0.6,seed=4"
JUDGE = "simulated:competence=0.7,seed=9"


@pytest.fixture(autouse=True)
def small_shards(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "SHARD", 16)


def ask(out: str = "out", model: str = MODEL, **options) -> run.Run:
    """Run the three tasks that can need a judge, who also chooses the order of texts."""
    given = {
        "judge": JUDGE,
        "tasks": ["sc", "ba", "bs"],
        "categories": ["age", "worldview"],
        "limit": 2,
        "repeats": 2,
        "settings": {"context_order": "judge"},
    }
    return run.evaluate("mcbe", model, out=out, **{**given, **options})


class Stub:
    """A respondent that keeps what it was asked, and refuses the requests in `refuses`."""

    verbs = ("generate",)
    reads = ("text",)

    def __init__(
        self, name: str, reply: str = "5", refuses: Sequence[tuple[str, str]] = ()
    ) -> None:
        self.name, self.reply, self.refuses = name, reply, refuses
        self.asked: list[Request] = []

    def describe(self) -> dict[str, str]:
        return {"kind": "stub", "id": self.name}

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        self.asked += requests
        refused = [(request.item_id, request.request) in self.refuses for request in requests]
        return [Answer("", error="refused") if no else Answer(self.reply) for no in refused]


@pytest.fixture
def stubs(monkeypatch: pytest.MonkeyPatch) -> tuple[Stub, Stub]:
    """Stubs in place of MODEL and JUDGE."""
    model, judge = Stub("m"), Stub("j")
    monkeypatch.setattr(scorers, "load", lambda name, *_, **__: {MODEL: model, JUDGE: judge}[name])
    return model, judge


def test_what_needs_a_reply_is_asked_after_it_and_about_it() -> None:
    result = ask(max_new_tokens=100)
    rows, about = result.records, result.about
    assert (about["judge"]["id"], about["asked"]["judge"]) == (JUDGE, JUDGE)
    assert about["asked"]["settings"]["context_order"] == "judge"
    assert (about["asked"]["max_new_tokens"], about["left_out"]) == (100, {})
    names = zip(rows.task, rows.item_id, rows.request, rows.repeat, strict=True)
    place = {key: k for k, key in enumerate(names)}
    for task, item, request, repeat in place:
        if task == "sc" and request == "answer":
            assert place[task, item, "order", repeat] < place[task, item, request, repeat]
        if task == "ba" and request != "answer":
            assert place[task, item, "answer", repeat] < place[task, item, request, repeat]
    answers = rows[(rows.task == "ba") & (rows.request == "answer")]
    replies = answers.set_index(["item_id", "repeat"]).response
    grades = rows[rows.request.str.startswith("judge:")]
    assert len(grades) == 4 * len(replies) == 32
    for grade in grades.itertuples():
        assert replies[grade.item_id, grade.repeat] in grade.prompt


@pytest.mark.parametrize(
    ("limit", "tokens"),
    [
        (None, {"sc": 512, "order": 32, "ba": 512, "judge": 128, "bs": 512}),
        (100, {"sc": 100, "order": 100, "ba": 100, "judge": 100, "bs": 100}),
    ],
)
def test_the_judge_and_the_model_are_asked_their_own_requests(stubs, limit, tokens) -> None:
    model, judge = stubs
    ask(max_new_tokens=limit)
    orders = {("sc", "order"), *(("ba", f"judge:{k}") for k in range(1, 5))}
    assert {(request.task, request.request) for request in judge.asked} == orders
    answers = {(task, "answer") for task in ("sc", "ba", "bs")}
    assert {(request.task, request.request) for request in model.asked} == answers
    assert all(request.of_judge for request in judge.asked), "so it answers greedily"
    assert not any(request.of_judge for request in model.asked)
    limits = {request.task: request.max_new_tokens for request in model.asked}
    limits |= {r.request.partition(":")[0]: r.max_new_tokens for r in judge.asked}
    assert limits == tokens


def test_an_answer_that_did_not_come_is_not_graded(stubs: tuple[Stub, Stub]) -> None:
    model, judge = stubs
    model.refuses = [("age:1", "answer")]
    result = ask(tasks=["ba"], repeats=1)
    rows = result.records.set_index(["item_id", "request"])
    for k in range(1, 5):
        row = rows.loc["age:1", f"judge:{k}"]
        assert row.error == execute.NOT_ASKED
        assert (row.response, row.prompt, row.valid) == ("", "", False)
    assert "age:1" not in {request.item_id for request in judge.asked}
    assert len(judge.asked) == 12
    scores = result.scores()
    # Grades of 5 of 13 in three criteria and of 5 of 5 in one, of three analyses.
    assert cell(scores, preset="robust").score == pytest.approx(5 * (3.5 + 1.5 + 2.5 + 0.5))
    assert cell(scores, category="age", preset="robust").valid_rate == 0.5
    note = cell(result.scores("official"), category="age").note
    assert "the released code stops with an error: 4 of 8" in note


def test_a_judge_s_order_decides_and_without_one_the_context_is_first(stubs) -> None:
    model, judge = stubs
    judge.reply, judge.refuses = "2", [("age:1", "order")]
    result = ask(tasks=["sc"], categories=["age"], repeats=1)
    items = result.items.set_index("item_id")
    for request in model.asked:
        item = items.loc[request.item_id]
        sentence = item.sentence.replace("[PLH]", item.words[0])
        first = request.item_id == "age:1"
        assert (item.context + sentence if first else sentence + item.context) in request.prompt


def test_a_run_that_was_killed_at_any_shard_continues_as_if_it_was_not(monkeypatch) -> None:
    original, write = Simulated.answer, records.write_shard
    refused = {("age:1", "answer"), ("worldview:1", "order"), ("age:8", "judge:2")}

    def sometimes_refuses(self: Simulated, requests: Sequence[Request]) -> list[Answer]:
        return [
            Answer("", error="refused") if (request.item_id, request.request) in refused else answer
            for request, answer in zip(requests, original(self, requests), strict=True)
        ]

    monkeypatch.setattr(Simulated, "answer", sometimes_refuses)
    ask("undisturbed")
    expected = columns("undisturbed")
    assert expected.error.nunique() == 3
    of_judge = expected.request.map(lambda name: name.startswith("judge"))
    assert [value for value, _ in groupby(of_judge)] == [False, True]
    n_shards = len(list(Path("undisturbed/records").iterdir()))
    assert n_shards >= 5
    for last in range(n_shards):

        def killed(folder: Path, number: int, rows: list, last: int = last) -> None:
            if number == last:
                raise KeyboardInterrupt
            write(folder, number, rows)

        with monkeypatch.context() as patch:
            patch.setattr(records, "write_shard", killed)
            with pytest.raises(KeyboardInterrupt):
                ask(f"killed{last}")
        with monkeypatch.context() as patch:
            patch.setattr(run, "SHARD", 5)  # the run keeps its own size of shards
            ask(f"killed{last}")
        pd.testing.assert_frame_equal(columns(f"killed{last}"), expected)
    max(Path("undisturbed/records").iterdir()).unlink()
    ask("undisturbed")
    pd.testing.assert_frame_equal(columns("undisturbed"), expected)


def test_a_judge_that_fails_is_named_and_the_run_continues(stubs, monkeypatch) -> None:
    model, judge = stubs

    def fails(requests: Sequence[Request]) -> list[Answer]:
        raise RuntimeError("out of memory")

    message = r"the judge did not answer \(out of memory\); the same command"
    with monkeypatch.context() as patch:
        patch.setattr(judge, "answer", fails)
        with pytest.raises(RunFailed, match=message):
            ask(tasks=["ba"])
    n_asked = len(model.asked)
    ask(tasks=["ba"])
    assert len(model.asked) == n_asked, "the analyses are on record"
    assert len(judge.asked) == 4 * n_asked


def test_scorers_are_loaded_only_if_needed_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded, load = [], scorers.load
    monkeypatch.setattr(
        scorers, "load", lambda *args, **options: loaded.append(args[0]) or load(*args, **options)
    )
    for _ in range(2):  # the second run is complete
        ask("two")
    assert loaded == [MODEL, JUDGE]
    ask("one", judge=MODEL)
    Path("one/records/000004.parquet").unlink()
    ask("one", judge=MODEL)
    assert loaded[2:] == [MODEL] * 2, "a model that judges itself is loaded once"


def test_another_judge_may_not_continue_a_run(tmp_path: Path, refusal) -> None:
    about = ask().about
    message = "out: holds another run (judge was simulated:competence"
    assert refusal(ask, judge="simulated:seed=1").startswith(message)
    assert refusal(ask, judge=None).startswith(message)
    records.write_run_json(Path("out"), {**about, "judge": {**about["judge"], "revision": "0"}})
    max(Path("out/records").iterdir()).unlink()
    assert refusal(ask).startswith("out: was begun with another judge (revision was 0, now 1)")
    # Nor one of the same name with other replies.
    grades = {
        ("ba", f"age:{k}", f"judge:{j}", r): "3"
        for k in range(9)
        for j in range(1, 5)
        for r in (0, 1)
    }
    options = {"judge": replay(tmp_path / "judge.jsonl", grades), "tasks": ["ba"]}
    ask("replayed", categories=["age"], **options)
    replay(tmp_path / "judge.jsonl", {**grades, ("ba", "age:1", "judge:1", 0): "4"})
    assert "judge_content was" in refusal(ask, "replayed", categories=["age"], **options)


def test_shuffled_labels_change_with_the_repeat_only() -> None:
    options = {"tasks": ["sc"], "categories": ["age"], "settings": {"label_order": "shuffled"}}

    def labels(folder: str, **more) -> list[set[str]]:
        """Ask, and return the lines with the labels, by repeat."""
        rows = ask(folder, **{**options, **more}).records
        return [
            set(prompts.str.split("\n").str[-2]) for _, prompts in rows.groupby("repeat").prompt
        ]

    first = labels("first", repeats=6)
    assert labels("second", repeats=6) == first
    assert all(len(lines) == 1 for lines in first)
    assert len(set.union(*first)) > 1
    # Repeat k has the k-th seed after the first.
    assert labels("later", seed=2, repeats=1)[0] == first[2]


def test_a_forced_first_token_is_one_more_prediction_where_the_tokenizer_gives_none(
    tmp_path: Path,
) -> None:
    source = table(tmp_path / "d", {"sentence": "他是[PLH]。", "words": "医生，护士"})
    for name, template, adds in (("bare", "", False), ("begun", "[CLS] $A", True)):
        tokenizer = checkpoints.characters(template)
        checkpoints.save(Path(name), LlamaForCausalLM, LlamaConfig, tokenizer)
        lengths = {}
        for bos in ("tokenizer", "forced"):
            options = {"tasks": ["pc"], "settings": {"bos": bos}, "data": source, "device": "cpu"}
            result = run.evaluate("mcbe", f"./{name}", out=f"{name}-{bos}", **options)
            assert result.about["model"]["adds_bos"] == adds
            assert result.about["asked"]["settings"]["bos"] == bos
            lengths[bos] = result.records.logprobs.map(len).tolist()
        # Five characters: 他是医生。
        assert lengths == {"tokenizer": [5, 5] if adds else [4, 4], "forced": [5, 5]}
    forced, own = (records.read(Path(name)) for name in ("begun-forced", "begun-tokenizer"))
    assert forced.response.tolist() == own.response.tolist()
    # Also where both are asked at once.
    requests = [
        Request("age", "pc", "age:1", "医生", "nll", "他是医生。", "v", Key(), bos=bos)
        for bos in (False, True, False)
    ]
    answers = scorers.load("./bare", "cpu").answer(requests)
    assert [len(answer.logprobs) for answer in answers] == [4, 5, 4]
