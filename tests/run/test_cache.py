"""Score tables are kept beside the records, and are the same with and without."""

import pandas as pd
import pytest

from bench import records
from bench.run import Run, evaluate, results


@pytest.fixture
def run(tmp_path):
    return evaluate("cbbq", "simulated:bias=0.6,refuse=0.2", limit=2, out=tmp_path / "run")


def kept(run):
    return sorted((run.folder / "cache").glob("*.parquet"))


@pytest.mark.parametrize("preset", ["robust", "official", "paper"])
def test_a_kept_table_is_read_and_equals_a_computed_one(run, monkeypatch, preset):
    table = run.scores(preset)
    assert len(kept(run)) == 1
    monkeypatch.setattr(results.Run, "_scores", lambda *given: pytest.fail("computed"))
    pd.testing.assert_frame_equal(Run.open(run.folder).scores(preset), table)


def test_a_damaged_table_is_computed_again(run):
    table, (path,) = run.scores(), kept(run)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    pd.testing.assert_frame_equal(run.scores(), table)
    assert kept(run)[0].read_bytes() != bytes(content)


def test_a_table_of_other_code_is_computed_again_and_replaced(run, monkeypatch):
    run.scores()
    before = kept(run)
    monkeypatch.setattr(results, "code_hash", lambda *folder: "another")
    run.scores()
    assert len(kept(run)) == 1
    assert kept(run) != before


def test_a_damaged_run_has_no_scores_although_they_were_kept(run, refusal):
    run.scores()
    path = run.folder / records.RECORDS
    path.write_bytes(path.read_bytes()[:-1])
    assert "damaged" in refusal(run.scores)
