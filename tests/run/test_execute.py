"""Asking in stages: the judge after the model and the model after the judge, kills between them, settings that change it."""

import json
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


def judged(out: str, model: str = MODEL, **options) -> run.Run:
    """A run of the three tasks that may need a judge, the text to be classified put in order by one."""
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
    """A respondent that keeps what it was asked, and refuses where `refuses` says so."""

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
        return [
            Answer("", error="refused")
            if (one.item_id, one.request) in self.refuses
            else Answer(self.reply)
            for one in requests
        ]


def stubs(monkeypatch: pytest.MonkeyPatch, model: Stub, judge: Stub) -> None:
    """Put `model` in place of the model MODEL and `judge` in place of the judge JUDGE."""
    monkeypatch.setattr(scorers, "load", lambda name, *_, **__: {MODEL: model, JUDGE: judge}[name])


def test_what_needs_a_reply_is_asked_after_it_and_about_it() -> None:
    rows = judged("out").records
    place = {
        key: k
        for k, key in enumerate(
            zip(rows.task, rows.item_id, rows.request, rows.repeat, strict=True)
        )
    }
    for task, item, request, repeat in place:
        if task == "sc" and request == "answer":
            assert place[task, item, "order", repeat] < place[task, item, request, repeat]
        if task == "ba" and request != "answer":
            assert place[task, item, "answer", repeat] < place[task, item, request, repeat]
    answers = (
        rows[(rows.task == "ba") & (rows.request == "answer")]
        .set_index(["item_id", "repeat"])
        .response
    )
    marks = rows[rows.request.str.startswith("judge:")]
    assert len(marks) == 4 * len(answers) == 32
    for mark in marks.itertuples():
        assert answers[mark.item_id, mark.repeat] in mark.prompt
    assert (
        len(marks.prompt.unique())
        == len(marks.drop_duplicates(["request", "item_id", "prompt"]))
        >= 16
    )


def test_a_judge_s_order_decides_how_a_text_is_shown(tmp_path: Path) -> None:
    source = table(tmp_path / "d", {}, {})
    judge = replay(tmp_path / "j", {("sc", "age:1", "order"): "1", ("sc", "age:2", "order"): "2"})
    rows = judged("out", judge=judge, tasks=["sc"], categories=None, repeats=1, data=source).records
    first, second = rows[rows.request == "answer"].prompt
    assert "开会，甲先说。" in first
    assert "甲先说。开会，" in second


def test_the_judge_is_asked_greedily_and_the_model_is_not(monkeypatch) -> None:
    model, judge = Stub("m"), Stub("j")
    stubs(monkeypatch, model, judge)
    judged("out")
    assert {(one.task, one.request) for one in judge.asked} == {
        ("sc", "order"),
        *(("ba", f"judge:{k}") for k in range(1, 5)),
    }
    assert all(one.of_judge for one in judge.asked)
    assert {(one.task, one.request) for one in model.asked} == {
        (task, "answer") for task in ("sc", "ba", "bs")
    }
    assert not any(one.of_judge for one in model.asked)
    assert all(one.prompt for one in model.asked + judge.asked)


def test_an_answer_that_did_not_come_is_not_marked(monkeypatch) -> None:
    model, judge = Stub("m", refuses=[("age:1", "answer")]), Stub("j")
    stubs(monkeypatch, model, judge)
    result = judged("out", tasks=["ba"], repeats=1)
    rows = result.records.set_index(["item_id", "request"])
    for k in range(1, 5):
        row = rows.loc["age:1", f"judge:{k}"]
        assert row.error == execute.NOT_ASKED
        assert row.error.startswith("not asked")
        assert (row.response, row.prompt, row.valid) == ("", "", False)
    assert "age:1" not in {one.item_id for one in judge.asked}
    assert len(judge.asked) == 12
    scores = result.scores()
    # Full marks of 5 of 13 in three criteria and of 5 of 5 in one, of three analyses.
    assert cell(scores, preset="robust").score == pytest.approx(5 * (3.5 + 1.5 + 2.5 + 0.5))
    assert cell(scores, category="age", preset="robust").valid_rate == 0.5
    assert (
        "the released code stops with an error: 4 of 8"
        in cell(result.scores("official"), category="age").note
    )


def test_an_order_that_did_not_come_leaves_the_context_first(monkeypatch) -> None:
    model, judge = Stub("m"), Stub("j", reply="2", refuses=[("age:1", "order")])
    stubs(monkeypatch, model, judge)
    result = judged("out", tasks=["sc"], categories=["age"], repeats=1)
    items = result.items.set_index("item_id")
    for one in model.asked:
        item = items.loc[one.item_id]
        sentence = item.sentence.replace("[PLH]", item.words[0])
        both = item.context + sentence if one.item_id == "age:1" else sentence + item.context
        assert both in one.prompt


def sometimes_refusing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulated respondent of which some replies do not come."""
    whole = Simulated.answer

    def answer(self: Simulated, requests: Sequence[Request]) -> list[Answer]:
        refused = {("age:1", "answer"), ("worldview:1", "order"), ("age:8", "judge:2")}
        return [
            Answer("", error="refused") if (one.item_id, one.request) in refused else given
            for one, given in zip(requests, whole(self, requests), strict=True)
        ]

    monkeypatch.setattr(Simulated, "answer", answer)


def test_a_run_that_was_killed_at_any_shard_goes_on_as_if_nothing_had_been(monkeypatch) -> None:
    sometimes_refusing(monkeypatch)
    judged("whole")
    wanted, write = columns("whole"), records.write_shard
    assert wanted.error.nunique() == 3
    number = len(list(Path("whole/records").iterdir()))
    stages = [
        name for name, _ in groupby(wanted.request.map(lambda name: name.startswith("judge")))
    ]
    assert number >= 5
    assert stages == [False, True]
    for last in range(number):

        def killed(folder: Path, k: int, rows: list, last: int = last) -> None:
            if k == last:
                raise KeyboardInterrupt
            write(folder, k, rows)

        monkeypatch.setattr(records, "write_shard", killed)
        with pytest.raises(KeyboardInterrupt):
            judged(f"killed{last}")
        monkeypatch.setattr(records, "write_shard", write)
        # The size of shards is the run's own, whatever it has become since.
        monkeypatch.setattr(run, "SHARD", 5)
        judged(f"killed{last}")
        monkeypatch.setattr(run, "SHARD", 16)
        pd.testing.assert_frame_equal(columns(f"killed{last}"), wanted)


def test_a_shard_of_a_later_stage_that_is_gone_is_asked_again_with_the_replies_on_record() -> None:
    judged("out")
    wanted = columns("out")
    last = max(Path("out/records").iterdir())
    last.unlink()
    judged("out")
    pd.testing.assert_frame_equal(columns("out"), wanted)


def test_a_judge_that_breaks_ends_the_run_by_name_and_the_same_command_continues(
    monkeypatch,
) -> None:
    model, judge = Stub("m"), Stub("j")
    stubs(monkeypatch, model, judge)

    def broken(requests: Sequence[Request]) -> list[Answer]:
        raise RuntimeError("out of memory")

    with monkeypatch.context() as patch:
        patch.setattr(judge, "answer", broken)
        with pytest.raises(
            RunFailed, match=r"the judge did not answer \(out of memory\); the same command"
        ):
            judged("out", tasks=["ba"])
    before = len(model.asked)
    judged("out", tasks=["ba"])
    assert len(model.asked) == before, "the analyses were on record"
    assert len(judge.asked) == 4 * before


def test_a_complete_run_loads_neither_model_nor_judge(monkeypatch) -> None:
    judged("out")
    monkeypatch.setattr(scorers, "load", lambda *_, **__: pytest.fail("somebody was loaded"))
    judged("out")


def test_a_model_that_judges_itself_is_loaded_once(monkeypatch) -> None:
    loaded, whole = [], scorers.load
    monkeypatch.setattr(
        scorers,
        "load",
        lambda *given, **options: loaded.append(given[0]) or whole(*given, **options),
    )
    judged("out", judge=MODEL)
    assert loaded == [MODEL]
    Path("out/records/000004.parquet").unlink()
    judged("out", judge=MODEL)
    assert loaded == [MODEL] * 2


def test_another_judge_may_not_mark_in_the_same_folder(tmp_path: Path, refusal) -> None:
    judged("out")
    assert refusal(judged, "out", judge="simulated:seed=1").startswith(
        "out: holds another run (judge was simulated:competence"
    )
    assert "judge was simulated:competence" in refusal(judged, "out", judge=None)
    # Nor one of the same name with other replies.
    replies = {
        ("ba", f"age:{k}", f"judge:{j}", r): "3"
        for k in range(9)
        for j in range(1, 5)
        for r in (0, 1)
    }
    judge = replay(tmp_path / "judge.jsonl", replies)
    judged("replayed", judge=judge, tasks=["ba"], categories=["age"])
    replay(tmp_path / "judge.jsonl", {**replies, ("ba", "age:1", "judge:1", 0): "4"})
    assert "judge_content was" in refusal(
        judged, "replayed", judge=judge, tasks=["ba"], categories=["age"]
    )


def test_a_judge_of_another_revision_may_not_go_on(refusal) -> None:
    judged("out")
    about = json.loads(Path("out/run.json").read_text("utf-8"))
    about["judge"]["revision"] = "0"
    Path("out/run.json").write_text(json.dumps(about), "utf-8")
    max(Path("out/records").iterdir()).unlink()
    assert refusal(judged, "out").startswith(
        "out: was begun with another judge (revision was 0, now 1)"
    )


def test_run_json_says_who_judged_and_how_it_was_asked() -> None:
    about = json.loads((judged("out", max_new_tokens=100).folder / "run.json").read_text("utf-8"))
    assert (about["judge"]["kind"], about["judge"]["id"]) == ("simulated respondent", JUDGE)
    assert about["asked"]["judge"] == JUDGE
    assert about["asked"]["settings"]["context_order"] == "judge"
    assert about["asked"]["max_new_tokens"] == 100
    assert about["left_out"] == {}


@pytest.mark.parametrize(
    ("cap", "tokens"),
    [
        (None, {"sc": 512, "order": 32, "ba": 512, "judge": 128, "bs": 512}),
        (100, {"sc": 100, "order": 100, "ba": 100, "judge": 100, "bs": 100}),
    ],
)
def test_a_reply_may_take_what_its_task_allows_or_what_the_caller_says(
    monkeypatch, cap: int | None, tokens: dict[str, int]
) -> None:
    model, judge = Stub("m"), Stub("j")
    stubs(monkeypatch, model, judge)
    judged("out", max_new_tokens=cap)
    found = {one.task: one.max_new_tokens for one in model.asked}
    found |= {one.request.partition(":")[0]: one.max_new_tokens for one in judge.asked}
    assert found == tokens


def labels_shown(folder: str) -> dict[int, set[str]]:
    """The last lines of the classification prompts of each repeat, which hold the labels."""
    rows = columns(folder)
    return {k: set(part.prompt.str.split("\n").str[-2]) for k, part in rows.groupby("repeat")}


def test_shuffled_labels_change_with_the_repeat_and_are_the_same_in_a_run_again() -> None:
    options = {
        "tasks": ["sc"],
        "categories": ["age"],
        "repeats": 6,
        "settings": {"label_order": "shuffled"},
    }
    for out in ("one", "two"):
        judged(out, **options)
    pd.testing.assert_frame_equal(columns("one"), columns("two"))
    shown = labels_shown("one")
    assert all(len(lines) == 1 for lines in shown.values())
    assert len({line for lines in shown.values() for line in lines}) > 1
    judged("later", **{**options, "seed": 2, "repeats": 1})
    assert labels_shown("later")[0] == shown[2], "repeat k has the seed of the first and k"


def test_a_forced_first_token_is_one_more_prediction_where_the_tokenizer_gives_none(
    tmp_path: Path,
) -> None:
    source = table(tmp_path / "d", {"sentence": "他是[PLH]。", "words": "医生，护士"})
    for name, around, adds in (("bare", "", False), ("begun", "[CLS] $A", True)):
        checkpoints.save(Path(name), LlamaForCausalLM, LlamaConfig, checkpoints.characters(around))
        lengths = {}
        for bos in ("tokenizer", "forced"):
            result = run.evaluate(
                "mcbe",
                f"./{name}",
                tasks=["pc"],
                settings={"bos": bos},
                data=source,
                device="cpu",
                out=f"{name}-{bos}",
            )
            assert result.about["model"]["adds_bos"] == adds
            assert result.about["asked"]["settings"]["bos"] == bos
            lengths[bos] = result.records.logprobs.map(len).tolist()
        # Five characters: 他是医生。
        assert lengths == {"tokenizer": [5, 5] if adds else [4, 4], "forced": [5, 5]}
    forced, own = (
        records.read(Path(name)).response.tolist() for name in ("begun-forced", "begun-tokenizer")
    )
    assert forced == own
    # Also where both are asked at once.
    requests = [
        Request("age", "pc", "age:1", "医生", "nll", "他是医生。", "v", Key(), bos=bos)
        for bos in (False, True, False)
    ]
    answers = scorers.load("./bare", "cpu").answer(requests)
    assert [len(answer.logprobs) for answer in answers] == [4, 5, 4]
