"""Records: what a row holds, scoring again without asking, and files that are cut off or are something else."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench import data, records, run, scorers
from bench.scorers.stand_ins.simulated import Simulated


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "SHARD", 16)


def ask(out: str = "out", **options) -> run.Run:
    model = "simulated:bias=0.6,refuse=0.1"
    return run.evaluate(
        "mcbe",
        model,
        tasks=["ss"],
        categories=["age"],
        data=data.SAMPLES / "mcbe",
        out=out,
        **options,
    )


def test_a_row_holds_what_was_asked_and_what_came_back() -> None:
    rows = ask().records
    assert list(rows) == [
        "benchmark",
        "category",
        "task",
        "item_id",
        "request",
        "repeat",
        "seed",
        "prompt_version",
        "prompt_hash",
        "prompt",
        "response",
        "logprobs",
        "parsed",
        "valid",
        "error",
        "seconds",
        "cut",
    ]
    first = rows.iloc[0]
    assert tuple(first[["benchmark", "category", "task", "item_id", "repeat"]]) == (
        "mcbe",
        "age",
        "ss",
        "age:1",
        0,
    )
    assert first.prompt_version == "bench-mcbe-3"
    assert first.parsed == first.response
    assert first.valid
    assert first.error == ""
    assert rows.prompt_hash.nunique() == rows.prompt.nunique() == len(rows)


def test_stored_records_are_scored_again_under_any_preset_and_nobody_is_asked(
    monkeypatch: pytest.MonkeyPatch, refusal
) -> None:
    ask()
    monkeypatch.setattr(Simulated, "answer", None)
    result = run.Run.open("out")
    tables = {preset: result.scores(preset) for preset in ("robust", "official", "paper")}
    for preset, table in tables.items():
        assert set(table.preset) >= {preset}
        assert list(table)[:4] == ["benchmark", "category", "task", "metric"]
    best = {
        preset: table[(table.metric == "score") & (table.preset == preset)].score.iloc[0]
        for preset, table in tables.items()
    }
    assert best["paper"] < best["robust"]
    assert result.scores().equals(tables["robust"])
    assert "preset 'strict' is unknown; allowed: robust, official, paper" in refusal(
        result.scores, "strict"
    )


def test_another_preset_on_the_same_folder_is_kept_and_asks_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ask()
    monkeypatch.setattr(scorers, "load", None)
    assert ask(preset="official").about["preset"] == "official"
    assert run.Run.open("out").about["preset"] == "official"


@pytest.mark.parametrize("length", [0, 10, -20])
def test_a_record_file_that_is_cut_off_is_named(refusal, length: int) -> None:
    result = ask()
    path = records.shard_path(result.folder, 1)
    path.write_bytes(path.read_bytes()[:length])
    message = refusal(result.scores)
    assert message.startswith(f"{path}: is not a whole record file")
    path.unlink()
    ask().scores()


def test_an_older_run_has_no_places_and_goes_on_in_its_own_order() -> None:
    result = ask()
    whole, about = result.records, records.read_run_json(result.folder)
    paths = sorted((result.folder / "records").iterdir())
    assert len(paths) > 2
    schema = pa.schema([field for field in records.SCHEMA if field.name not in ("place", "cut")])
    for k, path in enumerate(paths):
        some = pa.Table.from_pandas(whole[k * 16 : (k + 1) * 16], schema, preserve_index=False)
        pq.write_table(some, path)
    paths[1].unlink()
    del about["order"]
    records.write_run_json(result.folder, about)
    again = ask().records
    assert again.drop(columns="seconds").equals(whole.drop(columns="seconds"))


def test_what_begins_alike_is_asked_together_and_read_in_the_plan_s_order() -> None:
    result = ask()
    asked = [
        text
        for path in sorted((result.folder / "records").iterdir())
        for text in pq.read_table(path)["prompt"].to_pylist()
    ]
    assert asked == sorted(asked)
    assert result.records.item_id.tolist() == sorted(
        result.records.item_id, key=lambda name: int(name.partition(":")[2])
    )
    assert result.records.prompt.tolist() != asked


def test_a_folder_without_a_run_or_without_records_is_named(refusal) -> None:
    Path("empty").mkdir()
    assert refusal(run.Run.open, "empty").startswith("empty: holds no run (no run.json)")
    assert refusal(run.Run.open, "gone").startswith("gone: holds no run (no run.json)")
    result = ask()
    for path in (result.folder / "records").iterdir():
        path.unlink()
    assert refusal(result.scores).startswith("out: holds no records yet")
    Path("out/run.json").write_text("{", "utf-8")
    assert refusal(run.Run.open, "out").startswith(f"{Path('out/run.json')}: cannot be read")


@pytest.mark.parametrize("name", ["run.json", "items.parquet"])
def test_a_broken_file_beside_the_records_is_named(refusal, name: str) -> None:
    result = ask()
    path = result.folder / name
    path.write_bytes(b"[]" if name == "run.json" else path.read_bytes()[:50])
    assert str(path) in refusal(lambda: run.Run.open("out").scores())
