"""The same models in two wordings: which runs make a pair, and what is compared."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench import run
from bench.analyses import wordings
from bench.analyses.wordings import compare, headlines, overview, paired
from bench.metrics.table import ALL
from bench.run.results import Run

MODELS = ["simulated:bias=0.2,seed=1", "simulated:bias=0.8,seed=2"]
HERE: dict[str, Any] = {"categories": ["gender", "age"]}


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    folder = tmp_path_factory.mktemp("runs")
    return [
        one
        for prompts in ("", "reworded")
        for one in run.evaluate_all(
            "cbbq", MODELS, folder / (prompts or "ours"), prompts=prompts, **HERE
        )
    ]


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """McBE in two wordings by a respondent whose answers differ: another seed stands for another reading."""
    folder = tmp_path_factory.mktemp("reader")
    first = run.evaluate("mcbe", "simulated:bias=0.3", out=folder / "a", tasks=["pc", "ss"])
    other = run.evaluate(
        "mcbe",
        "simulated:bias=0.3",
        out=folder / "b",
        tasks=["pc", "ss"],
        prompts="reworded",
        seed=7,
    )
    return [first, other]


def test_runs_of_a_model_in_two_wordings_are_a_pair(asked: list[Run]) -> None:
    pairs, left_out = paired(asked)
    assert [pair.name for pair in pairs] == MODELS
    assert {pair.wordings for pair in pairs} == {("bench-cbbq-3", "bench-cbbq-3#reworded")}
    assert all(pair.reworded == ["ambiguous", "disambiguous"] for pair in pairs)
    assert not any(pair.alike or pair.differ for pair in pairs)
    assert left_out.empty
    pairs, left_out = paired(asked[:-1])
    assert [pair.name for pair in pairs] == MODELS[:1]
    assert left_out.to_numpy().tolist() == [
        [MODELS[1], "bench-cbbq-3", "asked in this wording alone"]
    ]


def test_who_does_not_read_gives_the_same_answers_under_both(asked: list[Run]) -> None:
    found = compare(paired(asked)[0]).table
    assert set(found.metric) == {"s_amb", "s_disamb", "accuracy"}
    assert (found.difference == 0).all()
    assert (found.same == 1).all()
    whole = found[(found.category == ALL) & (found.metric == "s_amb")].set_index("model")
    first = asked[0].scores()
    should = first[
        (first.category == ALL) & (first.metric == "s_amb") & (first.preset == "robust")
    ].iloc[0]
    assert whole["first"][MODELS[0]] == pytest.approx(should.score)
    assert whole.n[MODELS[0]] == should.n


def test_only_tasks_in_other_words_are_compared(reader: list[Run]) -> None:
    (pair,), _ = paired(reader)
    assert (pair.reworded, pair.alike) == (["ss"], ["pc"])
    assert pair.differ == ["seed: 0 and 7"]
    assert [one.task for one in headlines([pair])] == ["ss"]
    shown = overview([pair]).iloc[0]
    assert (shown.same_words, shown.also_differ) == ("pc", "seed: 0 and 7")


def test_differences_are_those_of_the_two_score_tables_and_paired(reader: list[Run]) -> None:
    (pair,), _ = paired(reader)
    found = compare([pair])
    row = found.table[found.table.category == ALL].iloc[0]
    scores = [
        one.scores().set_index(["category", "task", "metric", "preset"]).score for one in reader
    ]
    place = (ALL, "ss", "score", "robust")
    assert row.difference == pytest.approx(scores[1][place] - scores[0][place])
    assert row.difference != 0
    assert row.ci_low < row.difference < row.ci_high
    assert row.same < 1
    # Draws of the same items: narrower than of two runs apart.
    spread = [np.std(one.replicates()[ALL, "ss", "score"][1:]) for one in reader]
    first, second = found.values[int(str(row.name))]
    assert np.std(second[1:] - first[1:]) < np.hypot(*spread)


def test_what_makes_no_pair_is_refused(
    asked: list[Run], reader: list[Run], tmp_path: Path, refusal: Any
) -> None:
    assert "within one benchmark" in refusal(paired, [*asked, *reader])
    assert "ask with --prompts reworded too" in refusal(paired, asked[:2])
    assert "choose the second by its name" in refusal(paired, asked, "bench-cbbq-9")
    assert "name one" in refusal(paired, [*asked, asked[0]])
    assert "no model was asked in both wordings" in refusal(paired, [asked[0], asked[3]])
    copied = shutil.copytree(asked[2].folder, tmp_path / "copy")
    text = (copied / "run.json").read_text("utf-8")
    sha = asked[2].about["asked"]["data_sha256"]
    (copied / "run.json").write_text(text.replace(sha, "0" * 64), "utf-8")
    pairs, left_out = paired([asked[0], asked[1], Run.open(copied), asked[3]])
    assert [pair.name for pair in pairs] == MODELS[1:]
    assert list(left_out.why) == ["the two runs are on different data"] * 2
    same = run.evaluate("mcbe", "simulated:bias=0.3", out=tmp_path / "a", tasks=["pc"])
    again = run.evaluate(
        "mcbe", "simulated:bias=0.3", out=tmp_path / "b", tasks=["pc"], prompts="reworded"
    )
    assert "every task was asked in the same words" in refusal(compare, paired([same, again])[0])


def test_without_runs_the_demonstration_is_asked_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = wordings.opened([], "cbbq", demo=MODELS[:1], options={"limit": 1, "preset": ""})
    assert [one.about["wording"]["variant"] for one in found] == ["", "reworded"]
    again = wordings.opened([one.folder for one in found], "cbbq")
    assert [one.folder for one in again] == [one.folder for one in found]
