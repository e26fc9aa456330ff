"""Which runs an analysis is about."""

from pathlib import Path
from typing import Any

import pytest

from bench import run
from bench.analyses import opened

MODELS = ["simulated:bias=0.2", "simulated:bias=0.8"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for name in ("cbbq", "nli_coal"):
        run.evaluate_all(name, MODELS, folder, limit=2)
    (folder / "notes").mkdir()
    return folder


def test_runs_are_named_by_folder_or_pattern(runs: Path, refusal: Any) -> None:
    every = opened([runs / "*" / "*"])
    assert [(one.model, one.benchmark) for one in every] == [
        (m, b) for m in MODELS for b in ("cbbq", "nli_coal")
    ]
    assert [one.model for one in opened([runs / "*" / "*"], benchmarks=["cbbq"])] == MODELS
    assert [
        one.model for one in opened([every[0].folder, every[2].folder], models=MODELS[1:])
    ] == MODELS[1:]
    said = refusal(opened, [runs / "*" / "*"], models=["gpt"], benchmarks=["mcbe"])
    assert said.startswith("no run of gpt on mcbe: ")
    assert "simulated:bias=0.2 on cbbq" in said
    assert "run.json" in refusal(opened, [runs / "notes"])


def test_without_runs_a_demonstration_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = opened([], benchmarks=["cbbq"], demo=MODELS, options={"cbbq": {"limit": 1}})
    assert [one.model for one in found] == MODELS
    assert found[0].about["asked"]["limit"] == 1
