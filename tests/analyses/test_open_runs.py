"""Which runs an analysis is about."""

from pathlib import Path
from typing import Any

from bench import run
from bench.analyses import opened

MODELS = ["simulated:bias=0.2", "simulated:bias=0.8"]


def test_runs_are_named_by_folder_or_pattern(tmp_path: Path, refusal: Any) -> None:
    for name in ("cbbq", "nli_coal"):
        run.evaluate_all(name, MODELS, tmp_path, limit=2)
    (tmp_path / "notes").mkdir()
    pattern = tmp_path / "*" / "*"
    every = opened([pattern])
    expected = [(model, name) for model in MODELS for name in ("cbbq", "nli_coal")]
    assert [(one.model, one.benchmark) for one in every] == expected
    assert [one.model for one in opened([pattern], benchmarks=["cbbq"])] == MODELS
    (second,) = opened([every[0].folder, every[2].folder], models=MODELS[1:])
    assert second.model == MODELS[1]
    message = refusal(opened, [pattern], models=["gpt"], benchmarks=["mcbe"])
    assert message.startswith("no run of gpt on mcbe: ")
    assert "run.json" in refusal(opened, [tmp_path / "notes"])


def test_without_runs_a_demonstration_is_asked(own_folder: Path) -> None:
    found = opened([], benchmarks=["cbbq"], demo=MODELS, options={"cbbq": {"limit": 1}})
    assert [one.model for one in found] == MODELS
    assert found[0].about["asked"]["limit"] == 1
